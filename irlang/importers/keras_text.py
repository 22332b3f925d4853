"""Reads the text of a Keras program: its syntax tree is looked at, never run.

What is understood is what such a script consists of: `Input`s, layers called on values one after
another, one `Model`, weights set by `get_layer(name)`, and constants given to `predict`. Every
other statement is passed over. Raises `Unreadable` where a statement of these kinds says
something else, with its line.
"""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass, field
from typing import Any, NoReturn


class Unreadable(Exception):
    """The text is not such a program."""


@dataclass(frozen=True, slots=True)
class Config:
    """A layer as it is constructed: its class, and arguments as Python values (or a `Config`)."""

    kind: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The class, and that of the cell inside it: `RNN(LSTMCell)`."""
        items = [*self.args, *(item for item in self.kwargs.values() if isinstance(item, Config))]
        inner = [item.name for item in items if isinstance(item, Config)]
        return f"{self.kind}({', '.join(inner)})" if inner else self.kind


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer and the values it is called on; `name` is that of its result.

    title: Keras's name of the layer, by which its weights are found. args, kwargs: what else it is
    called with, values by their `Name`.
    """

    name: str
    title: str
    config: Config
    operands: tuple[str, ...]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Name:
    """A value that is passed to a layer beside its operands."""

    name: str


@dataclass(slots=True)
class Constant:
    """`tf.constant(value, dtype)`; value: nested lists of numbers."""

    value: Any
    dtype: str | None = None


@dataclass(slots=True)
class Program:
    """A Keras program.

    inputs: the declared shape of every `Input`, without the batch. weights: by layer title and
    position. fed: the constant of every input.
    """

    inputs: dict[str, tuple[int | None, ...]] = field(default_factory=dict)
    layers: list[Layer] = field(default_factory=list)
    weights: dict[str, dict[int, Any]] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    fed: dict[str, Constant] = field(default_factory=dict)


def read(text: str) -> Program:
    """The program that a Python text describes."""
    try:
        with warnings.catch_warnings():  # of what Python would say about the text's style
            warnings.simplefilter("ignore", SyntaxWarning)
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Unreadable(f"not Python: {error}") from None
    reader = _Reader()
    for statement in tree.body:
        try:
            reader.statement(statement)
        except RecursionError:
            raise Unreadable(f"line {statement.lineno}: nested too deeply") from None
    return reader.finish()


class _Reader:
    def __init__(self) -> None:
        self.program = Program()
        self.current = ""  # the layer whose weights `w` are
        self.constants: dict[str, Constant] = {}
        self.declared: tuple[str, ...] = ()
        self.predicted: tuple[str, ...] = ()

    def statement(self, node: ast.stmt) -> None:
        """Takes in one statement."""
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name):
                self.assigned(target.id, node.value)
            elif isinstance(target, ast.Subscript) and self.current:
                self.weight(target, node.value)
        for call in (n for n in _calls(node) if _attribute(n) == "predict"):
            if call.args:
                self.predicted = _names(call.args[0])

    def assigned(self, name: str, value: ast.expr) -> None:
        """`name = value`."""
        if not isinstance(value, ast.Call):
            return
        function = _attribute(value)
        if function == "get_weights":
            owner = value.func.value if isinstance(value.func, ast.Attribute) else value
            if isinstance(owner, ast.Call) and _attribute(owner) == "get_layer" and owner.args:
                self.current = str(_value(owner.args[0]))
        elif function == "Input":
            shape = _keywords(value).get("shape", value.args[0] if value.args else None)
            self.program.inputs[name] = _shape(shape, value)
        elif function == "Model":
            keywords = _keywords(value)
            if "inputs" not in keywords or "outputs" not in keywords:
                _refuse(value, "a model is written Model(inputs = ..., outputs = ...)")
            self.declared = _names(keywords["inputs"])
            self.program.outputs = _names(keywords["outputs"])
        elif function == "constant" and value.args:
            dtype = _keywords(value).get("dtype")
            self.constants[name] = Constant(_value(value.args[0]), _dtype(dtype))
        elif isinstance(value.func, ast.Call) and value.args:
            config = _config(value.func)
            title = str(config.kwargs.get("name", name))
            args = tuple(_passed(item) for item in value.args[1:])
            kwargs = {key: _passed(item) for key, item in _keywords(value).items()}
            operands = _names(value.args[0])
            self.program.layers.append(Layer(name, title, config, operands, args, kwargs))

    def weight(self, target: ast.Subscript, value: ast.expr) -> None:
        """`w[i] = np.array(...)`."""
        index = _value(target.slice)
        if not isinstance(index, int):
            _refuse(target, "weights are numbered")
        if isinstance(value, ast.Call) and _attribute(value) == "array" and value.args:
            value = value.args[0]
        self.program.weights.setdefault(self.current, {})[index] = _value(value)

    def finish(self) -> Program:
        """The program, its inputs joined with what they are fed."""
        if not self.program.outputs:
            raise Unreadable("no model is made")
        fed = self.predicted or self.declared
        if len(fed) != len(self.declared):
            raise Unreadable(f"{len(self.declared)} inputs are given {len(fed)} values")
        for name, constant in zip(self.declared, fed, strict=True):
            if name not in self.program.inputs:
                raise Unreadable(f"`{name}` is not an Input")
            if constant not in self.constants:
                raise Unreadable(f"`{constant}` has no value")
            self.program.fed[name] = self.constants[constant]
        return self.program


def _refuse(node: ast.expr, message: str) -> NoReturn:
    raise Unreadable(f"line {node.lineno}: {message}")


def _calls(node: ast.stmt) -> list[ast.Call]:
    """The calls of a statement, not those inside of lists of numbers."""
    found: list[ast.Call] = []
    pending: list[ast.AST] = [node]
    while pending:
        item = pending.pop()
        if isinstance(item, ast.Call):
            found.append(item)
        if not isinstance(item, (ast.List, ast.Tuple)):
            pending.extend(ast.iter_child_nodes(item))
    return found


def _attribute(call: ast.Call) -> str:
    """The last part of what is called: `Add` of `keras.layers.Add(...)`."""
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _keywords(call: ast.Call) -> dict[str, ast.expr]:
    return {item.arg: item.value for item in call.keywords if item.arg}


def _value(node: ast.expr) -> Any:
    """A Python value of literals."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError):
        _refuse(node, "not a literal")


def _config(call: ast.Call) -> Config:
    def argument(node: ast.expr) -> Any:
        if isinstance(node, (ast.List, ast.Tuple)) and any(
            isinstance(item, ast.Call) for item in node.elts
        ):
            return tuple(argument(item) for item in node.elts)
        return _config(node) if isinstance(node, ast.Call) else _value(node)

    return Config(
        _attribute(call),
        tuple(argument(item) for item in call.args),
        {key: argument(item) for key, item in _keywords(call).items()},
    )


def _passed(node: ast.expr) -> Any:
    """What a layer is called with: a value, several, or a literal."""
    if isinstance(node, ast.Name):
        return Name(node.id)
    if isinstance(node, (ast.List, ast.Tuple)):
        return tuple(_passed(item) for item in node.elts)
    return _value(node)


def _names(node: ast.expr) -> tuple[str, ...]:
    items = node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]
    names = tuple(item.id for item in items if isinstance(item, ast.Name))
    if len(names) != len(items):
        _refuse(node, "values are given by their names")
    return names


def _shape(node: ast.expr | None, call: ast.Call) -> tuple[int | None, ...]:
    value = _value(node) if node is not None else ()
    sizes = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    if not all(size is None or isinstance(size, int) for size in sizes):
        _refuse(call, "a shape is a list of sizes")
    return sizes


def _dtype(node: ast.expr | None) -> str | None:
    if node is None:
        return None
    if isinstance(node, ast.Attribute):
        return node.attr
    return str(_value(node))
