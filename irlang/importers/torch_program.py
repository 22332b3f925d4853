"""An exported PyTorch program as data: nodes, arguments, and the types that were recorded.

Reads the JSON of `torch/_export/serde/schema.py` (version 8). A size that depends on a dynamic
dimension is an open one (`irlang.importers.sizes`), with the size at the time of the export as its
example; one that depends on values is `Opaque`.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from irlang.importers.sizes import Dim
from irlang.importers.torch_archive import (
    DTYPES,
    Archive,
    listed,
    malformed,
    mapping,
    size,
    text,
    whole,
)

_MAJOR = 8
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}
_SYMBOL = re.compile(r"""Symbol\('(\w+)'[^()]*\)|([A-Za-z_]\w*)""")
Open = Callable[[str, int], Dim]  # a size by its name and example
_LARGEST_EXPRESSION = 2000  # characters of a size
_LARGEST_POWER = 8  # of a symbol


@dataclass(frozen=True, slots=True)
class Ref:
    """A value of the graph, by name."""

    name: str


@dataclass(frozen=True, slots=True)
class Opaque:
    """An argument that says nothing of the result (device, layout), or that is not understood."""

    kind: str


@dataclass(frozen=True, slots=True)
class Dtype:
    """An element type as an argument; `name` is empty where irlang has none."""

    name: str


@dataclass(frozen=True, slots=True)
class Meta:
    """The recorded type of a tensor. dtype: empty where irlang has none."""

    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """A call. target: `aten.add.Tensor`. args: by the names of the schema. results: of names, a
    list standing for a result that is a list of tensors. module: path and class of the innermost
    module. trace: where it was written.
    """

    name: str
    target: str
    args: Mapping[str, Any]
    results: tuple[Any, ...]
    module: tuple[str, str] = ("", "")
    trace: str = ""


@dataclass(slots=True)
class Program:
    """The graph. inputs and outputs: (kind, name of the value, name outside) triples. numbers: what
    stands for numbers that no call can take as such, by type and text.
    """

    nodes: list[Node]
    inputs: list[tuple[str, str, str]]
    outputs: list[tuple[str, Any, str]]
    metas: dict[str, Meta]
    symbols: dict[str, Any]
    constants: dict[str, Any] = field(default_factory=dict)
    numbers: dict[tuple[str, str], Any] = field(default_factory=dict)


def read(archive: Archive, size: Open) -> Program:
    """The program of an archive; raises `InvalidInput` where it is not of the format.

    size: makes an open size.
    """
    raw = mapping(archive.program, "the program")
    version = mapping(raw.get("schema_version"), "the schema's version")
    if whole(version.get("major"), "the schema's version") != _MAJOR:
        raise malformed(f"its schema has version {version.get('major')}, not {_MAJOR}")
    module = mapping(raw.get("graph_module"), "the module")
    graph = mapping(module.get("graph"), "the graph")
    sizes = Sizes(size)
    sizes.learn(graph.get("tensor_values"), graph.get("sym_int_values"))
    metas = {
        name: sizes.meta(item)
        for name, item in mapping(graph.get("tensor_values"), "the types").items()
    }
    symbols = {
        name: sizes.number(item)
        for key in ("sym_int_values", "sym_float_values", "sym_bool_values")
        for name, item in mapping(graph.get(key) or {}, "the sizes").items()
    }
    program = Program([], [], [], metas, symbols)
    for item in listed(graph.get("nodes"), "the list of nodes"):
        program.nodes.append(_node(item))
    signature = mapping(module.get("signature"), "the signature")
    for item in listed(signature.get("input_specs"), "the list of inputs"):
        _input(mapping(item, "an input"), program)
    for item in listed(signature.get("output_specs"), "the list of outputs"):
        _output(mapping(item, "an output"), program)
    return program


def _node(raw: Any) -> Node:
    raw = mapping(raw, "a node")
    target = text(raw.get("target"), "a node's target")
    about = f"a node of `{target}`"
    args = {}
    for item in listed(raw.get("inputs"), about):
        item = mapping(item, about)
        args[text(item.get("name"), about)] = argument(item.get("arg"))
    metadata = mapping(raw.get("metadata") or {}, about)
    results = tuple(argument(item) for item in listed(raw.get("outputs"), about))
    stack = str(metadata.get("nn_module_stack", "")).split(";")[-1].split(",")
    path = (stack[1], stack[2]) if len(stack) == 3 and "metadata_hook" not in stack[1] else ("", "")
    name = raw.get("name")
    return Node(
        name if isinstance(name, str) else "",
        target.removeprefix("torch.ops."),
        args,
        results,
        path,
        str(metadata.get("stack_trace", "")),
    )


def _input(raw: Mapping[str, Any], program: Program) -> None:
    for kind, key in (
        ("parameter", "parameter_name"),
        ("buffer", "buffer_name"),
        ("tensor_constant", "tensor_constant_name"),
    ):
        if kind in raw:
            item = mapping(raw[kind], kind)
            arg = mapping(item.get("arg"), kind)
            outside = text(item.get(key), kind)
            program.inputs.append((kind, text(arg.get("name"), kind), outside))
            return
    if "user_input" in raw:
        found = argument(mapping(raw["user_input"], "an input").get("arg"))
        if isinstance(found, Ref):
            program.inputs.append(("user", found.name, found.name))
        return  # a number or None that was given at the export: the graph has it already
    if "constant_input" in raw:
        item = mapping(raw["constant_input"], "an input")
        name = text(item.get("name"), "an input")
        program.constants[name] = argument(item.get("value"))
        return
    for kind in raw:
        program.inputs.append(("other", kind, kind))


def _output(raw: Mapping[str, Any], program: Program) -> None:
    for kind, item in raw.items():
        item = mapping(item, "an output")
        found = argument(item.get("arg")) if kind == "user_output" else None
        if kind == "user_output":
            program.outputs.append(("user", found, ""))
            continue
        if kind == "token":
            continue
        arg = mapping(item.get("arg"), "an output")
        names = [value for key, value in item.items() if key.endswith("_name")]
        program.outputs.append(
            (kind, Ref(text(arg.get("name"), "an output")), str(names[0]) if names else "")
        )


# ---- arguments


def argument(raw: Any) -> Any:
    """An argument: a number, a truth value, a text, None, `Ref`, `Dtype`, `Opaque`, or a list."""
    raw = mapping(raw, "an argument")
    if len(raw) != 1:
        raise malformed("an argument has not one kind")
    (kind, value) = next(iter(raw.items()))
    read = _ARGUMENTS.get(kind)
    return Opaque(kind.removeprefix("as_")) if read is None else read(value)


def _real(raw: Any) -> float:
    if isinstance(raw, str) and raw.lower() in ("infinity", "-infinity", "nan", "inf", "-inf"):
        return float(raw.lower())
    if isinstance(raw, bool) or not isinstance(raw, (int, float)):
        raise malformed("a number is none")
    return float(raw)


def _truth(raw: Any) -> bool:
    if not isinstance(raw, bool):
        raise malformed("a truth value is none")
    return raw


def _ref(raw: Any) -> Ref:
    return Ref(text(mapping(raw, "a tensor").get("name"), "a tensor's name"))


def _symbolic(raw: Any) -> Any:
    raw = mapping(raw, "a size")
    if "as_name" in raw:
        return Ref(text(raw["as_name"], "a size"))
    if "as_int" in raw:
        return whole(raw["as_int"], "a size")
    if "as_float" in raw:
        return _real(raw["as_float"])
    return _truth(raw.get("as_bool"))


def _optional(raw: Any) -> Ref | None:
    raw = mapping(raw, "a tensor")
    return _ref(raw["as_tensor"]) if "as_tensor" in raw else None


def _dtype(raw: Any) -> Dtype:
    return Dtype(DTYPES.get(whole(raw, "an element type"), ""))


def _many(read: Any) -> Any:
    return lambda raw: [read(item) for item in listed(raw, "a list")]


def _integer(raw: Any) -> int:
    return whole(raw, "a number")


def _text(raw: Any) -> str:
    return text(raw, "a text")


_ARGUMENTS: dict[str, Any] = {
    "as_none": lambda _: None,
    "as_tensor": _ref,
    "as_tensors": _many(_ref),
    "as_int": _integer,
    "as_ints": _many(_integer),
    "as_float": _real,
    "as_floats": _many(_real),
    "as_string": _text,
    "as_strings": _many(_text),
    "as_bool": _truth,
    "as_bools": _many(_truth),
    "as_sym_int": _symbolic,
    "as_sym_ints": _many(_symbolic),
    "as_sym_float": _symbolic,
    "as_sym_floats": _many(_symbolic),
    "as_sym_bool": _symbolic,
    "as_sym_bools": _many(_symbolic),
    "as_scalar_type": _dtype,
    "as_optional_tensor": _optional,
    "as_optional_tensors": _many(_optional),
    "as_nested_tensors": _many(_many(_ref)),
    "as_int_lists": _many(_many(_integer)),
}


# ---- types and sizes


class Sizes:
    """Reads sizes. open: makes a symbol."""

    def __init__(self, open: Open) -> None:
        self._open = open
        self._hints: dict[str, int] = {}
        self._symbols: dict[str, Dim] = {}

    def learn(self, *tables: Any) -> None:
        """Finds the examples of the symbols: where a symbol stands alone, its hint says it."""
        for table in tables:
            for entry in mapping(table or {}, "the types").values():
                entry = mapping(entry, "a type")
                for item in entry["sizes"] if isinstance(entry.get("sizes"), list) else [entry]:
                    raw = item.get("as_expr") if isinstance(item, dict) else None
                    if not isinstance(raw, dict) or not isinstance(raw.get("hint"), dict):
                        continue
                    written, hint = raw.get("expr_str"), raw["hint"].get("as_int")
                    found = _SYMBOL.fullmatch(written) if isinstance(written, str) else None
                    if found and type(hint) is int:
                        self._hints.setdefault(found[1] or found[2], hint)

    def meta(self, raw: Any) -> Meta:
        """The type of a tensor."""
        raw = mapping(raw, "a type")
        dtype = DTYPES.get(whole(raw.get("dtype"), "an element type"), "")
        found = [self.size(item) for item in listed(raw.get("sizes"), "a type")]
        return Meta(dtype, tuple(found))

    def size(self, raw: Any) -> Any:
        """A size of a type."""
        raw = mapping(raw, "a size")
        return self.number(raw) if "as_expr" in raw else size(raw, "a type")

    def number(self, raw: Any) -> Any:
        """A size, number or truth value; one that depends on values is `Opaque`."""
        raw = mapping(raw, "a size")
        if "as_expr" not in raw:
            if len(raw) != 1:
                raise malformed("a size has not one kind")
            (value,) = raw.values()
            if isinstance(value, (bool, float)):
                return value
            return whole(value, "a size")
        raw = mapping(raw["as_expr"], "a size")
        written = text(raw.get("expr_str"), "a size")
        if len(written) > _LARGEST_EXPRESSION:
            raise malformed("the expression of a size is too long")
        try:
            return self._value(ast.parse(written, mode="eval").body)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise malformed(f"`{written[:80]}` is no expression of a size") from None
        except _Unknown:
            return Opaque("a size that depends on values")

    def _value(self, tree: ast.expr) -> Any:
        if isinstance(tree, ast.Name):
            return self._symbol(tree.id)
        if isinstance(tree, ast.Constant) and type(tree.value) is int:
            return whole(tree.value, "a size")
        if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
            return -self._value(tree.operand)
        if isinstance(tree, ast.BinOp):
            left, right = self._value(tree.left), self._value(tree.right)
            if isinstance(tree.op, ast.Pow):
                if isinstance(right, Dim) or not 1 <= right <= _LARGEST_POWER:
                    raise _Unknown
                return left**right
            function = _OPERATORS.get(type(tree.op))
            if function is None or (isinstance(tree.op, (ast.FloorDiv, ast.Mod)) and right == 0):
                raise _Unknown
            return function(left, right)
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
            name, (first, *_) = tree.func.id, tree.args or [ast.Constant(0)]
            if name == "Symbol" and isinstance(first, ast.Constant):
                return self._symbol(str(first.value))
            return self._called(name, [self._value(item) for item in tree.args])
        raise _Unknown

    def _symbol(self, name: str) -> Dim:
        if name not in self._hints:
            raise _Unknown
        if name not in self._symbols:
            self._symbols[name] = self._open(name, self._hints[name])
        return self._symbols[name]

    def _called(self, name: str, parts: list[Any]) -> Any:
        if name == "Integer" and len(parts) == 1:
            return parts[0]
        if name in ("Add", "Mul") and parts:
            function = _OPERATORS[ast.Add if name == "Add" else ast.Mult]
            return functools.reduce(function, parts)
        if name == "Pow" and len(parts) == 2 and not isinstance(parts[1], Dim):
            if 1 <= parts[1] <= _LARGEST_POWER:
                return parts[0] ** parts[1]
            raise _Unknown
        if name in ("Max", "Min") and parts:
            found = (max if name == "Max" else min)(int(item) for item in parts)
            return Dim(found, {(f"{name.lower()}({', '.join(map(str, parts))})",): 1})
        if len(parts) == 2 and parts[1] != 0:
            if name in ("FloorDiv", "CleanDiv"):
                return parts[0] // parts[1]
            if name in ("Mod", "PythonMod"):
                return parts[0] % parts[1]
            if name == "CeilDiv":
                return -(-parts[0] // parts[1])
        raise _Unknown


class _Unknown(Exception):
    """A size that no symbol of the inputs makes up."""
