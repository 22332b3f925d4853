"""Walks an ONNX graph and writes it, node by node; functions are written out where they are called.

What cannot be translated does not end the walk: all of it is reported at once, by operator and
place. What depends on it is passed over in silence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from irlang.diagnostics import Diagnostic, InvalidInput
from irlang.equations import TensorInfo
from irlang.importers.onnx_control import Control, Lost
from irlang.importers.onnx_file import dtype, tensor
from irlang.importers.onnx_left_out import LEFT_OUT
from irlang.importers.onnx_node import ByFunction, Node, Value, constant
from irlang.importers.onnx_schema import (
    Scope,
    attributes_of,
    function_of,
    functions_written,
    known_function,
    misfit,
    operator,
    schema_of,
    versions,
)
from irlang.importers.onnx_table import ROWS, Row
from irlang.importers.sizes import Dim
from irlang.importers.value import Unsupported, check_shape
from irlang.importers.writer import Array, Fault, Writer

_MOST_NODES = 200_000  # once all functions, and all steps of loops, are written out


class Broken:
    """A value that is not there, because of something reported before."""


class Walk:
    """One pass over a model.

    sizes: the example of every open size, by its name in the model; fixed sizes as plain integers.
    constants: values that inputs are fixed to. Problems are collected in `problems`, and `needed`
    has the inputs whose values would have to be known.
    """

    def __init__(
        self,
        model: Any,
        folder: Path | None,
        writer: Writer,
        sizes: Mapping[str, int],
        constants: Mapping[str, Array],
    ) -> None:
        self.model = model
        writer.results.update(item.name for item in model.graph.output)
        self.folder = folder
        self.writer = writer
        self.sizes = sizes
        self.constants = constants
        self.problems: list[Diagnostic] = []
        self.needed: set[str] = set()
        self.steps = 0  # of loops, so far
        self._written = 0  # nodes
        self.values: dict[str, Value | Broken] = {}
        self.functions = {(f.domain, f.name, f.overload): f for f in model.functions}
        self.inputs: dict[str, str] = {}  # names in the text, by those in the model
        self._symbols: dict[str, int] = {}
        self._made: set[str] = set()

    def run(self) -> list[str]:
        """Writes everything; the names of the results in the text."""
        graph = self.model.graph
        scope = Scope(versions(self.model.opset_import))
        written = functions_written(self.functions)
        calls = sum(written.get((n.domain, n.op_type, n.overload), 0) for n in graph.node)
        if calls + len(graph.node) > _MOST_NODES:
            message = f"the model has more than {_MOST_NODES} nodes, functions written out"
            raise InvalidInput(Diagnostic("file.onnx", message))
        self.initialisers(graph, scope)
        self._inputs(graph)
        self.nodes(graph.node, scope)
        return self._outputs(graph)

    @property
    def missing(self) -> int:
        """How many of the nodes, those of functions apart, have a result that is not there."""
        return sum(
            any(isinstance(self.values.get(name), Broken) for name in node.output)
            for node in self.model.graph.node
        )

    def problem(self, code: str, message: str, place: str = "") -> None:
        """Records what is wrong, or not supported."""
        self.problems.append(Diagnostic(code, message, node=place))

    # ---- what is there before the first node

    def initialisers(self, graph: Any, scope: Scope) -> None:
        """The parameters of a graph."""
        if graph.sparse_initializer:
            self.problem("import.sparse", "sparse parameters are not supported")
            for sparse in graph.sparse_initializer:
                self.values[sparse.values.name] = Broken()
        for proto in graph.initializer:
            name = scope.outer(proto.name)
            self._new(name)
            self.values[name] = Broken()
            try:
                array = tensor(proto, self.folder, f"the parameter `{name}`")
            except Unsupported as error:
                self.problem("import.type", f"the parameter `{name}`: {error.reason}")
            except InvalidInput as error:
                self.problems += error.diagnostics
            else:
                self.values[name] = constant(self.writer, array, name)

    def _inputs(self, graph: Any) -> None:
        for item in graph.input:
            if item.name in self.values:
                continue  # a parameter that may be replaced; older models declare all of them
            self._new(item.name)
            self.values[item.name] = Broken()
            try:
                info = self._declared(item)
                if item.name in self.constants:
                    self.values[item.name] = self._fixed(item.name, info)
                    continue
            except Unsupported as error:
                self.problem("import.input", f"the input `{item.name}`: {error.reason}")
                continue
            except InvalidInput as error:
                self.problems += error.diagnostics
                continue
            name = self.inputs[item.name] = self.writer.input(item.name, info)
            value = Value(info, lambda: "", sources=frozenset((item.name,)), name=name)
            self.values[item.name] = value

    def _fixed(self, name: str, info: TensorInfo) -> Value:
        array = self.constants[name]
        value = constant(self.writer, array, name)
        if value.dtype != info.dtype or len(value.shape) != len(info.shape):
            raise Unsupported(f"it is {info}, and fixed to {value.info}")
        return value

    def _declared(self, item: Any) -> TensorInfo:
        """The type of an input; sizes that are left open become symbols."""
        if not item.type.HasField("tensor_type"):
            kind = item.type.WhichOneof("value") or "missing"
            raise Unsupported(f"its type is {kind.removesuffix('_type')}, not a tensor")
        kind = item.type.tensor_type
        name = dtype(kind.elem_type)
        if not kind.HasField("shape"):
            raise Unsupported("its shape is not declared")
        sizes: list[int] = []
        for axis, dim in enumerate(kind.shape.dim):
            if dim.HasField("dim_value"):
                sizes.append(dim.dim_value)
            else:
                sizes.append(self._symbol(dim.dim_param or f"{item.name}_{axis}"))
        check_shape(tuple(sizes), f"the input `{item.name}`")
        return TensorInfo(tuple(sizes), name)

    def _symbol(self, name: str) -> int:
        if name not in self._symbols:
            said = self.sizes[name]
            self._symbols[name] = self.writer.size(name, said) if isinstance(said, Dim) else said
        return self._symbols[name]

    def _new(self, name: str) -> None:
        if name in self._made:
            self.problem("file.duplicate", f"the value `{name}` is given twice", name)
        self._made.add(name)

    # ---- nodes

    def nodes(self, nodes: Sequence[Any], scope: Scope) -> None:
        """Writes nodes in their order. Raises `InvalidInput` where they become too many."""
        self._written += len(nodes)
        self.require_room()
        later = {scope.outer(name) for node in nodes for name in node.output}
        for node in nodes:
            self._node(node, scope, later)

    def require_room(self, more: int = 0) -> None:
        """Raises `InvalidInput` where there would be too many nodes with so many more."""
        if self._written + more > _MOST_NODES:
            message = f"the model has more than {_MOST_NODES} nodes, steps of loops written out"
            raise InvalidInput(Diagnostic("file.onnx", message))

    def _node(self, node: Any, scope: Scope, later: set[str]) -> None:
        inputs = [scope.outer(name) for name in node.input]
        outputs = [scope.outer(name) for name in node.output]
        place = scope.prefix + (node.name or next(filter(None, outputs), ""))
        for name in filter(None, outputs):
            self._new(name)
        missing = [name for name in inputs if name and name not in self.values]
        for name in missing:
            if name in later:
                why = "is read before it is computed: the nodes are out of order, or form a circle"
                self.problem("file.order", f"`{name}` {why}", place)
            else:
                self.problem("file.missing", f"`{name}` is read, and nothing gives it", place)
        for name in filter(None, outputs):
            self.values[name] = Broken()
        function = self.functions.get((node.domain, node.op_type, node.overload))
        key = operator(node)
        given = [self.values.get(name, Broken()) if name else None for name in inputs]
        row = ROWS.get(key)
        whole = not any(isinstance(value, Broken) for value in given)
        if function is not None:
            self._function(function, node, scope, place)
        elif row is None and not _subgraphs(node):
            self._body(node, scope, given, place)
        elif whole:
            values = [value for value in given if not isinstance(value, Broken)]
            self.writer.owner = place
            version, attributes = scope.version(node.domain), attributes_of(node, scope)
            made = Node(self.writer, key, version, values, outputs, attributes)
            lacking = misfit(schema_of(node, scope), node)
            if lacking:
                self.problem("file.node", f"{key} `{place}`: {lacking}", place)
            elif row is None:
                self._control(node, scope, made, place)
            else:
                try:
                    self._row(row, made, place)
                except ByFunction:
                    self._body(node, scope, given, place)

    def _control(self, node: Any, scope: Scope, made: Node, place: str) -> None:
        """Writes a node that holds graphs of its own."""
        with suppress(Lost):
            self._row(lambda made: Control(self, node, scope, made, place).write(), made, place)

    def _row(self, row: Row, node: Node, place: str) -> None:
        """Writes a node by its row."""
        key = node.kind
        try:
            results = row(node)
            node.finish()
        except Unsupported as error:
            self.needed |= error.sources
            self._refuse(key, place, error.reason)
            return
        except Fault as error:
            for code, message in error.faults:
                self.problem(code, f"{key} `{place}`: {message}", place)
            return
        except InvalidInput as error:
            for found in error.diagnostics:
                self.problem(found.code, f"{key} `{place}`: {found.message}", place)
            return
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            # A row takes a node for what its operator's schema says; attributes and inputs may
            # still contradict one another.
            why = f"its inputs and attributes do not fit together ({error})"
            self.problem("file.node", f"{key} `{place}`: {why}", place)
            return
        several = [results] if isinstance(results, Value) else list(results)
        for name, value in zip(node.outputs, several, strict=False):
            if name and value is not None:
                self.values[name] = value
        for name in filter(None, node.outputs[len(several) :]):
            self._refuse(key, place, f"its result `{name}`")

    def _body(
        self, node: Any, scope: Scope, given: Sequence[Value | Broken | None], place: str
    ) -> None:
        """Writes a node by the function that ONNX has for its operator, if it has one."""
        if any(isinstance(value, Broken) for value in given) and known_function(node, scope):
            return
        body = None if operator(node) in LEFT_OUT else function_of(node, scope, given)
        if body is None:
            self._refuse(operator(node), place, _reason(operator(node)))
        else:
            self._function(body, node, scope, place)

    def _refuse(self, kind: str, place: str, reason: str) -> None:
        self.problem("import.operator", f"{kind} `{place}`: {reason}", place)

    def _function(self, function: Any, node: Any, scope: Scope, place: str) -> None:
        names = dict.fromkeys((*function.input, *function.output), "")
        names.update(zip(function.input, map(scope.outer, node.input), strict=False))
        names.update(zip(function.output, map(scope.outer, node.output), strict=False))
        for formal, name in names.items():
            if formal in function.output and not name:
                names[formal] = f"{place}/{formal}"
        for name in function.output:
            self._made.discard(names[name])
        attributes = {item.name: item for item in function.attribute_proto}
        attributes.update(attributes_of(node, scope))
        inner = Scope(
            {**scope.versions, **versions(function.opset_import)}, names, f"{place}/", attributes
        )
        self.nodes(function.node, inner)

    # ---- results

    def _outputs(self, graph: Any) -> list[str]:
        """The results under their own names; a result that is an input too needs a name."""
        found: list[str] = []
        for item in graph.output:
            value = self.values.get(item.name)
            if value is None:
                self.problem("file.missing", f"the result `{item.name}` is computed by nothing")
            elif isinstance(value, Value):
                self.writer.owner = item.name
                name = value.text()
                if name in found or name in self.writer.inputs or not self._called(name, item.name):
                    try:
                        name = self.writer.call([item.name], "identity", name)[0]
                    except Fault as error:  # an input of a type that no operator takes
                        for code, message in error.faults:
                            self.problem(code, f"the result `{item.name}`: {message}")
                        continue
                found.append(name)
        return found

    def _called(self, name: str, wanted: str) -> bool:
        """Whether a value of the text is the result of a call and has the name that is wanted."""
        return self.writer.original(name) == wanted and name not in self.writer.params


def _subgraphs(node: Any) -> bool:
    return any(item.HasField("g") or item.graphs for item in node.attribute)


def _reason(key: str) -> str:
    """Why an operator has no row."""
    return LEFT_OUT.get(key, "this operator is not translated")
