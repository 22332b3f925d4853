"""The first meaning: sizes, element types, and every violated precondition of a file.

Takes a syntax tree; gives one `Graph` a valid model, and all diagnostics. A value that a fault
leaves unknown silences what depends on it, so that no fault is a cascade of another. Symbolic
sizes that nobody binds are taken as 2. Non-goal: what depends on the values of elements.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from irlang import ast
from irlang.catalog import Catalog
from irlang.diagnostics import Diagnostic, InvalidInput, Note, Span, fail
from irlang.dtypes import CLASSES, DTYPES
from irlang.equations import TensorInfo
from irlang.evaluate import Evaluator, Scope
from irlang.expand import Instance, instantiate
from irlang.graph import Graph, Initial, Node, Operand, Param, Port
from irlang.parser.printer import print_type
from irlang.signature import Fault, Given, show

evaluate = Evaluator()
DEFAULT_SIZE = 2
_LARGEST = 2**62  # elements; beyond it no index fits
_CALL_LIMIT = 100_000
_INITIALISERS = {"uniform": 2, "normal": 2, "data": 2}


@dataclass(frozen=True, slots=True)
class Checked:
    """A file that has been checked: its valid models, and what is wrong with the others."""

    graphs: tuple[Graph, ...]
    diagnostics: tuple[Diagnostic, ...]
    catalog: Catalog

    @property
    def valid(self) -> bool:
        """Whether nothing is an error."""
        return not any(d.severity == "error" for d in self.diagnostics)


def check(file: ast.File, catalog: Catalog, bind: Mapping[str, int] | None = None) -> Checked:
    """Checks every model of a file, with the file's own definitions over the catalogue."""
    diagnostics = _duplicates(file)
    own = catalog.with_file(file)
    constants: dict[str, Any] = {}
    for item in file.items:
        if isinstance(item, ast.Let):
            try:
                constants[item.name] = evaluate.known(item.value, Scope(constants, {}, set()))
            except InvalidInput as error:
                diagnostics += error.diagnostics
    graphs = []
    for model in file.models:
        checker = _Checker(file, own, dict(bind or {}))
        graph = checker.model(model, constants)
        diagnostics += checker.diagnostics
        if not any(d.severity == "error" for d in checker.diagnostics):
            graphs.append(graph)
    return Checked(tuple(graphs), tuple(diagnostics), own)


def _duplicates(file: ast.File) -> list[Diagnostic]:
    seen: dict[str, Span] = {}
    found = []
    for item in file.items:
        if item.name in seen:
            message = f"`{item.name}` is defined twice in this file"
            notes = (Note("first here", seen[item.name]),)
            found.append(Diagnostic("file.duplicate", message, item.span, notes=notes))
        seen.setdefault(item.name, item.span)
    return found


@dataclass(slots=True)
class _Frame:
    """Where statements are checked: a model's body, a block's, or a repetition's.

    names: sizes and constants; values: source name -> value name, None where a fault hides it;
    declared: the types as written, for labels; prefix: of the names of values made here.
    """

    names: dict[str, Any]
    values: dict[str, str | None] = field(default_factory=dict)
    prefix: str = ""
    own: set[str] = field(default_factory=set)


class _Checker:
    """Checks one model."""

    def __init__(self, file: ast.File, catalog: Catalog, bind: dict[str, int]) -> None:
        self.catalog = catalog
        self.blocks = {block.name: block for block in file.blocks}
        self.bind = bind
        self.diagnostics: list[Diagnostic] = []
        self.graph = Graph("")
        self.declared: dict[str, tuple[str, Span]] = {}
        self.depth = 0
        self.calls = 0

    def report(self, code: str, message: str, span: Span, node: str = "", help: str = "") -> None:
        """Records a fault."""
        self.diagnostics.append(Diagnostic(code, message, span, node=node, help=help))

    def model(self, model: ast.Model, constants: Mapping[str, Any]) -> Graph:
        """The graph of a model; meaningless where errors were reported."""
        folder = str(Path(model.span.file).parent) if model.span.file else "."
        self.graph = Graph(model.name, folder=folder, doc=model.doc)
        frame = _Frame({**constants, **self.bind})
        for item in model.inputs:
            self._input(item, frame)
        self.graph.sizes = {
            n: v for n, v in frame.names.items() if n not in constants and isinstance(v, int)
        }
        self._statements(model.body, frame)
        for output in model.outputs:
            self._output(output, frame)
        loss = frame.values.get("loss")
        if loss is not None:
            self.graph.loss = loss
            if self.graph.values[loss].shape != ():
                info = self.graph.values[loss]
                self.report("model.loss", f"`loss` is {info}; a loss is a single number", model.span)
        return self.graph

    # ---- declarations

    def _type(self, kind: ast.TensorType, frame: _Frame, symbolic: bool = False) -> TensorInfo | None:
        """The type that is written, with its sizes known; reports what is wrong with it."""
        if kind.dtype not in DTYPES:
            near = ", ".join(sorted(DTYPES))
            self.report("type.dtype", f"there is no element type `{kind.dtype}`", kind.span, help=f"one of {near}")
            return None
        shape: list[int] = []
        for dim in kind.dims:
            if dim.kind != "size" or dim.broadcast or dim.at is not None:
                self.report("type.axis", "`..`, `~` and `@` belong to definitions", dim.span)
                return None
            if symbolic and isinstance(dim.size, ast.Name) and dim.size.id not in frame.names:
                frame.names[dim.size.id] = DEFAULT_SIZE
            try:
                size = evaluate.known(dim.size, Scope(frame.names, {}, set()))
            except InvalidInput as error:
                self.diagnostics += (d.at(dim.span) for d in error.diagnostics)
                return None
            if not isinstance(size, int) or isinstance(size, bool) or size < 0:
                self.report("type.size", f"a size is a whole number, not {show(size)}", dim.span)
                return None
            shape.append(size)
        if math.prod(shape) > _LARGEST:
            self.report("type.size", f"{math.prod(shape)} elements are too many", kind.span)
            return None
        return TensorInfo(tuple(shape), kind.dtype)

    def _within(self, within: tuple[ast.Expr, ast.Expr] | None, frame: _Frame) -> tuple[float, float] | None:
        if within is None:
            return None
        ends = []
        for node in within:
            try:
                value = evaluate.known(node, Scope(frame.names, {}, set()))
            except InvalidInput as error:
                self.diagnostics += error.diagnostics
                return None
            if not isinstance(value, (int, float)) and not hasattr(value, "denominator"):
                self.report("model.range", f"{show(value)} is not a number", node.span)
                return None
            ends.append(float(value))
        if not ends[0] <= ends[1]:
            message = f"the range [{ends[0]}, {ends[1]}] holds no value"
            self.report("model.range", message, within[0].span)
            return None
        return ends[0], ends[1]

    def _new(self, name: str, frame: _Frame, span: Span, value: str | None) -> None:
        """Gives a source name its value; a name is given once, save in a repetition."""
        if name in frame.own or name in frame.names:
            self.report("model.duplicate", f"`{name}` is already defined", span, name)
        frame.own.add(name)
        frame.values[name] = value

    def _input(self, item: ast.ModelInput, frame: _Frame) -> None:
        info = self._type(item.type, frame, symbolic=True)
        within = self._within(item.within, frame)
        self.declared[item.name] = (f"{item.name}: {print_type(item.type)}", item.span)
        self._new(item.name, frame, item.span, item.name if info else None)
        if info:
            self.graph.inputs[item.name] = Port(info, within, item.span)
            self.graph.values[item.name] = info

    def _output(self, output: ast.ModelOutput, frame: _Frame) -> None:
        if output.name not in frame.values:
            message = f"the result `{output.name}` is not computed"
            near = self._near(output.name, frame)
            self.report("model.output", message, output.span, output.name, near)
            return
        info = self._type(output.type, frame)
        value = frame.values[output.name]
        if info is None or value is None:
            return
        actual = self.graph.values[value]
        if actual != info:
            message = f"`{output.name}` is {actual}; the model says {print_type(output.type)}"
            help_ = f"declare it as {actual}"
            self.report("model.output", message, output.span, output.name, help_)
            return
        self.graph.outputs[output.name] = value

    def _near(self, name: str, frame: _Frame) -> str:
        import difflib

        near = difflib.get_close_matches(name, [*frame.values, *frame.names], n=3, cutoff=0.5)
        return f"did you mean {' or '.join(f'`{n}`' for n in near)}?" if near else ""

    # ---- statements

    def _statements(self, body: tuple[ast.Statement, ...], frame: _Frame) -> None:
        for statement in body:
            match statement:
                case ast.Let():
                    self._let(statement, frame)
                case ast.Param():
                    self._param(statement, frame)
                case ast.Assign():
                    self._assign(statement, frame)
                case ast.For():
                    self._for(statement, frame)
                case _:
                    self.report("model.statement", "this does not belong into a model", statement.span)

    def _let(self, statement: ast.Let, frame: _Frame) -> None:
        try:
            value = evaluate.known(statement.value, Scope(frame.names, {}, set()))
        except InvalidInput as error:
            self.diagnostics += error.diagnostics
            return
        if statement.name in frame.own or statement.name in frame.names:
            self.report("model.duplicate", f"`{statement.name}` is already defined", statement.span)
        frame.names[statement.name] = value

    def _param(self, statement: ast.Param, frame: _Frame) -> None:
        info = self._type(statement.type, frame)
        within = self._within(statement.within, frame)
        initial = None
        name = frame.prefix + statement.name
        if info is not None and statement.value is not None:
            try:
                initial = self._initial(statement.value, info, frame)
            except InvalidInput as error:
                self.diagnostics += (d.at(d.span, name) for d in error.diagnostics)
        self.declared[name] = (f"param {statement.name}: {print_type(statement.type)}", statement.span)
        self._new(statement.name, frame, statement.span, name if info else None)
        if info:
            self.graph.params[name] = Param(info, within, initial, statement.span)
            self.graph.values[name] = info

    def _initial(self, node: ast.Expr, info: TensorInfo, frame: _Frame) -> Initial:
        if isinstance(node, ast.Call):
            return self._initialiser(node, frame)
        value = evaluate.known(node, Scope(frame.names, {}, set()))
        if isinstance(value, tuple):
            shape = _nested_shape(value, node.span)
            if shape != info.shape:
                message = f"the values have shape {list(shape)}; the parameter is {info}"
                raise fail("param.value", message, node.span)
            return Initial("literal", value)
        if isinstance(value, str):
            raise fail("param.value", "a value is a number, a list, or an initialiser", node.span)
        return Initial("constant", (value,))

    def _initialiser(self, node: ast.Call, frame: _Frame) -> Initial:
        wanted = _INITIALISERS.get(node.function)
        if wanted is None:
            message = f"there is no initialiser `{node.function}`"
            raise fail("param.initialiser", message, node.span, help=f"one of {', '.join(_INITIALISERS)}")
        scope = Scope(frame.names, {}, set())
        args = tuple(evaluate.known(arg, scope) for arg in node.args)
        attrs = {key: evaluate.known(value, scope) for key, value in node.attrs}
        seed = attrs.pop("seed", None)
        textual = node.function == "data"
        fits = all(isinstance(a, str) if textual else isinstance(a, (int, float)) for a in args)
        if len(args) != wanted or attrs or not fits or not isinstance(seed, (int, type(None))):
            usage = 'data("file.safetensors", "name")' if textual else f"{node.function}(a, b; seed = 1)"
            raise fail("param.initialiser", f"`{node.function}` is written {usage}", node.span)
        return Initial(node.function, args, seed)

    def _for(self, statement: ast.For, frame: _Frame) -> None:
        try:
            bound = evaluate.known(statement.bound, Scope(frame.names, {}, set()))
        except InvalidInput as error:
            self.diagnostics += error.diagnostics
            return
        if not isinstance(bound, int) or not 0 <= bound <= _CALL_LIMIT:
            message = f"a repetition goes a whole number of times, not {show(bound)}"
            self.report("model.repeat", message, statement.bound.span)
            return
        for i in range(bound):
            inner = _Frame({**frame.names, statement.name: i}, dict(frame.values))
            inner.prefix = f"{frame.prefix}{statement.name}{i}."
            before = len(self.diagnostics)
            self._statements(statement.body, inner)
            for name in inner.own & frame.values.keys():
                frame.values[name] = inner.values[name]
            if len(self.diagnostics) > before or self.calls > _CALL_LIMIT:
                return  # the same fault again and again says nothing new

    # ---- calls

    def _assign(self, statement: ast.Assign, frame: _Frame) -> None:
        names = statement.targets
        results = self._call(statement.value, frame, names, statement.span)
        if results is not None and len(results) < len(names):
            message = f"`{statement.value.function}` gives {len(results)} results, not {len(names)}"
            self.report("model.results", message, statement.span, names[0])
            results = None
        for number, name in enumerate(names):
            self._new(name, frame, statement.span, None if results is None else results[number])

    def _call(self, call: ast.Call, frame: _Frame, names: tuple[str, ...], span: Span) -> list[str] | None:
        """The values that a call gives, by name; None where they are not known."""
        self.calls += 1
        if self.calls > _CALL_LIMIT:
            if self.calls == _CALL_LIMIT + 1:
                self.report("model.size", f"more than {_CALL_LIMIT} calls", span)
            return None
        if call.function in self.blocks:
            return self._call_block(self.blocks[call.function], call, frame, names)
        op = self.catalog.op(call.function)
        if op is None:
            near = self.catalog.nearest(call.function, self.blocks)
            help_ = f"did you mean {' or '.join(f'`{n}`' for n in near)}?" if near else ""
            self.report("model.operator", f"there is no operator `{call.function}`", call.span, names[0], help_)
            for arg in call.args:  # faults inside the arguments are still worth telling
                if isinstance(arg, ast.Call):
                    self._call(arg, frame, (names[0],), arg.span)
            return None
        operands = self._operands(op, call, frame, names[0])
        attrs = self._attributes(op, call, frame, names[0])
        if operands is None or attrs is None:
            return None
        return self._apply(op, call, operands, attrs, frame, names, span)

    def _apply(self, op: ast.Op, call: ast.Call, operands: dict[str, list[tuple[str, Span]]], attrs: dict[str, tuple[Any, Span]], frame: _Frame, names: tuple[str, ...], span: Span) -> list[str] | None:  # fmt: skip
        inputs: dict[str, Operand] = {}
        given: dict[str, Given] = {}
        families = {item.name: bool(item.family) for item in op.inputs}
        for formal, members in operands.items():
            values = tuple(name for name, _ in members)
            infos = tuple(self.graph.values[name] for name in values)
            inputs[formal] = values if families[formal] else values[0]
            given[formal] = infos if families[formal] else infos[0]
        values_of = {key: value for key, (value, _) in attrs.items()}
        try:
            instance = instantiate(op, given, values_of)
        except InvalidInput as error:
            for d in error.diagnostics:
                notes = (*d.notes, Note("in this definition", d.span))
                self.diagnostics.append(Diagnostic(d.code, d.message, call.span, node=names[0], notes=notes))
            return None
        for fault in instance.faults:
            self._fault(fault, call, operands, attrs, names[0])
        if instance.outputs is None:
            return None
        if any(math.prod(info.shape) > _LARGEST for _, info in instance.outputs):
            self.report("type.size", f"the result of `{op.name}` has too many elements", call.span, names[0])
            return None
        outputs = self._name_outputs(instance, frame, names)
        node = Node(outputs[0] if outputs else names[0], op, inputs, values_of, tuple(outputs), instance, span)
        self.graph.nodes.append(node)
        for value, (_, info) in zip(outputs, instance.outputs, strict=True):
            self.graph.values[value] = info
        return outputs

    def _name_outputs(self, instance: Instance, frame: _Frame, names: tuple[str, ...]) -> list[str]:
        outputs = []
        for number, (formal, _) in enumerate(instance.outputs or ()):
            base = names[number] if number < len(names) else f"{names[0]}.{formal}"
            name = candidate = frame.prefix + base
            count = 1
            while name in self.graph.values:
                count += 1
                name = f"{candidate}_{count}"
            self.graph.values[name] = TensorInfo((), "f32")  # taken
            outputs.append(name)
        return outputs

    def _fault(self, fault: Fault, call: ast.Call, operands: dict[str, list[tuple[str, Span]]], attrs: dict[str, tuple[Any, Span]], name: str) -> None:  # fmt: skip
        """Places a fault at the attribute or input that is likeliest to be wrong."""
        sources = list(dict.fromkeys(fault.sources))
        span = next((attrs[s][1] for s in sources if s in attrs), None)
        tensors = [s for s in sources if s in operands]
        if span is None:
            span = operands[tensors[0]][0][1] if tensors else call.span
        shown: list[str] = []
        notes: list[Note] = []
        for source in tensors:
            for value, _ in operands[source]:
                shown.append(f"{value} is {self.graph.values[value]}")
                if value in self.declared:
                    text, place = self.declared[value]
                    notes.append(Note(f"declared here: {text}", place))
        label = "; ".join(dict.fromkeys(shown))
        self.diagnostics.append(
            Diagnostic(fault.code, fault.message, span, node=name, badness=fault.badness, label=label, notes=tuple(notes))
        )

    def _operands(self, op: ast.Op, call: ast.Call, frame: _Frame, name: str) -> dict[str, list[tuple[str, Span]]] | None:
        """Inputs of a call by the definition's names."""
        formals = op.inputs
        pairs: list[tuple[ast.Input, ast.Expr]] = []
        for number, node in enumerate(call.args):
            last = formals[-1] if formals else None
            if number < len(formals):
                pairs.append((formals[number], node))
            elif last is not None and last.family:
                pairs.append((last, node))
            else:
                message = f"`{op.name}` takes {len(formals)} input{'s' * (len(formals) != 1)}, not {len(call.args)}"
                self.report("model.arguments", message, node.span, name)
                return None
        by_name = {item.name: item for item in formals}
        taken = {item.name for item, _ in pairs}
        for key, node in call.attrs:
            if key in by_name:
                if key in taken:
                    self.report("model.arguments", f"`{key}` is given twice", node.span, name)
                    return None
                pairs.append((by_name[key], node))
        found: dict[str, list[tuple[str, Span]]] = {}
        numbers: list[tuple[ast.Input, ast.Expr, int]] = []
        known = True
        for item, node in pairs:
            entries = found.setdefault(item.name, [])
            nodes = node.items if isinstance(node, ast.ListOf) and item.family else (node,)
            for one in nodes:
                if isinstance(one, (ast.Name, ast.Call)) and not self._is_number(one, frame):
                    value = self._tensor(one, frame, f"{name}_{one.function}" if isinstance(one, ast.Call) else name)
                    known = known and value is not None
                    entries.append((value or "", one.span))
                else:
                    numbers.append((item, one, len(entries)))
                    entries.append(("", one.span))
        if not known:
            return None
        for item, node, position in numbers:
            value = self._number(item, op, node, frame, found, name)
            if value is None:
                return None
            found[item.name][position] = (value, node.span)
        return found

    def _is_number(self, node: ast.Expr, frame: _Frame) -> bool:
        return isinstance(node, ast.Name) and node.id not in frame.values and (
            node.id in frame.names or node.id in ("true", "false", "inf", "nan", "pi")
        )

    def _tensor(self, node: ast.Expr, frame: _Frame, name: str) -> str | None:
        if isinstance(node, ast.Call):
            results = self._call(node, frame, (name,), node.span)
            return results[0] if results else None
        assert isinstance(node, ast.Name)
        if node.id not in frame.values:
            near = self._near(node.id, frame)
            self.report("model.name", f"`{node.id}` is not defined", node.span, name, near)
            return None
        return frame.values[node.id]

    def _number(self, item: ast.Input, op: ast.Op, node: ast.Expr, frame: _Frame, found: dict[str, list[tuple[str, Span]]], name: str) -> str | None:  # fmt: skip
        """A number in place of a tensor: a constant of the other inputs' element type."""
        try:
            value = evaluate.known(node, Scope(frame.names, {}, set()))
        except InvalidInput as error:
            self.diagnostics += error.diagnostics
            return None
        if isinstance(value, (str, tuple)):
            self.report("model.operand", "a tensor or a number is needed here", node.span, name)
            return None
        dtype = item.type.dtype
        if dtype in dict(op.dtypes):
            same = [i.name for i in op.inputs if i.type.dtype == dtype]
            peers = [self.graph.values[v].dtype for n in same for v, _ in found.get(n, ()) if v]
            kind = "bool" if isinstance(value, bool) else "i64" if isinstance(value, int) else "f32"
            allowed = CLASSES.get(dict(op.dtypes)[dtype], frozenset())
            dtype = peers[0] if peers else kind if kind in allowed else "f32"
        elif dtype not in DTYPES:
            dtype = {"int": "i64", "bool": "bool"}.get(dtype, "f32")
        constant = f"{frame.prefix}{name}_{item.name}"
        count = 1
        while constant in self.graph.values:
            count += 1
            constant = f"{frame.prefix}{name}_{item.name}_{count}"
        info = TensorInfo((), dtype)
        self.graph.params[constant] = Param(info, None, Initial("constant", (value,)), node.span, literal=True)
        self.graph.values[constant] = info
        return constant

    def _attributes(self, op: ast.Op | ast.Block, call: ast.Call, frame: _Frame, name: str) -> dict[str, tuple[Any, Span]] | None:
        declared = {attr.name: attr for attr in op.attrs}
        inputs = {item.name for item in op.inputs}
        found: dict[str, tuple[Any, Span]] = {}
        for key, node in call.attrs:
            attr = declared.get(key)
            if attr is None:
                if key in inputs:
                    continue
                message = f"`{op.name}` has no attribute `{key}`"
                help_ = f"it has {', '.join(declared)}" if declared else "it has none"
                self.report("model.attribute", message, node.span, name, help_)
                return None
            if key in found:
                self.report("model.attribute", f"`{key}` is given twice", node.span, name)
                return None
            literal = attr.type.kind == "enum" or attr.type.name == "dtype"
            try:
                if literal and isinstance(node, ast.Name) and node.id not in frame.names:
                    found[key] = (node.id, node.span)
                else:
                    found[key] = (evaluate.known(node, Scope(frame.names, {}, set())), node.span)
            except InvalidInput as error:
                self.diagnostics += (d.at(d.span, name) for d in error.diagnostics)
                return None
        return found

    # ---- blocks

    def _call_block(self, block: ast.Block, call: ast.Call, frame: _Frame, names: tuple[str, ...]) -> list[str] | None:
        """Inlines a block; its values and parameters are named after the call."""
        if self.depth > 50:
            self.report("model.depth", f"`{block.name}` uses itself", call.span, names[0])
            return None
        if len(call.args) != len(block.inputs):
            message = f"`{block.name}` takes {len(block.inputs)} inputs, not {len(call.args)}"
            self.report("model.arguments", message, call.span, names[0])
            return None
        attrs = self._attributes(block, call, frame, names[0])
        args = [self._tensor(a, frame, f"{names[0]}_{i}") if isinstance(a, (ast.Name, ast.Call)) else None for i, a in enumerate(call.args)]
        if attrs is None or None in args:
            return None
        inner = _Frame({key: value for key, (value, _) in attrs.items()}, prefix=f"{frame.prefix}{names[0]}.")
        for attr in block.attrs:
            if attr.name not in inner.names:
                if attr.default is None:
                    message = f"attribute `{attr.name}` of `{block.name}` must be given"
                    self.report("model.attribute", message, call.span, names[0])
                    return None
                if attr.type.kind == "enum" and isinstance(attr.default, ast.Name):
                    inner.names[attr.name] = attr.default.id
                else:
                    inner.names[attr.name] = evaluate.known(attr.default, Scope(inner.names, {}, set()))
        for item, value, node in zip(block.inputs, args, call.args, strict=True):
            actual = self.graph.values[value or ""]
            if not self._fits(item.type, actual, inner):
                message = f"{value} is {actual}; `{block.name}` takes {item.name}: {print_type(item.type)}"
                self.report(f"{block.name}.{item.name}", message, node.span, names[0])
                return None
            self._new(item.name, inner, item.span, value)
        self.depth += 1
        before = len(self.diagnostics)
        self._statements(block.body, inner)
        self.depth -= 1
        if len(self.diagnostics) > before:
            return None
        results = [inner.values.get(output.name) for output in block.outputs]
        if None in results:
            missing = block.outputs[results.index(None)]
            self.report("model.output", f"the result `{missing.name}` is not computed", missing.span)
            return None
        return [r for r in results if r is not None]

    def _fits(self, kind: ast.TensorType, actual: TensorInfo, frame: _Frame) -> bool:
        """Matches the type of a block's input; binds the sizes that it names."""
        if kind.dtype != actual.dtype or len(kind.dims) != len(actual.shape):
            return False
        for dim, size in zip(kind.dims, actual.shape, strict=True):
            if isinstance(dim.size, ast.Name) and dim.size.id not in frame.names:
                frame.names[dim.size.id] = size
            elif evaluate.known(dim.size, Scope(frame.names, {}, set())) != size:
                return False
        return True


def _nested_shape(value: Any, span: Span) -> tuple[int, ...]:
    """The shape of nested lists, which must be regular and of numbers."""
    if not isinstance(value, tuple):
        if isinstance(value, str):
            raise fail("param.value", "a value is a number", span)
        return ()
    shapes = {_nested_shape(item, span) for item in value}
    if len(shapes) > 1:
        raise fail("param.value", "the lists have different lengths", span)
    return (len(value), *(shapes.pop() if shapes else ()))
