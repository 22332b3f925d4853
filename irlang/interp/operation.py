"""A call of an operator in a model: operands found, fit judged, a node added to the graph."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from irlang import ast
from irlang.catalog import Catalog
from irlang.diagnostics import Diagnostic, Edit, InvalidInput, Note, Span
from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.graph import Graph, Initial, Node, Operand, Param
from irlang.graph_numbers import number_type
from irlang.instance import Instance, instantiate
from irlang.interp.call import Declared, Formal, Operands, attributes, blame, pair
from irlang.interp.declaration import require_range
from irlang.interp.frame import Frame, meant
from irlang.interp.schedule import schedule

_SLIP = 0.85  # how alike two names are, of 1, for one to be a slip of the pen for the other
_MOST_STEPS = 50_000  # statements and calls, once blocks are inlined and repetitions unrolled


class FileScope:
    """What all models of a file share: its blocks and constants."""

    def __init__(self, file: ast.File, catalog: Catalog, broken: set[str]) -> None:
        self.catalog = catalog
        self.blocks = {block.name: block for block in file.blocks}
        self.own = {op.name for op in file.ops}
        self.broken = broken  # definitions whose text is at fault, which is reported once
        self.diagnostics: list[Diagnostic] = []
        words = {c for block in file.blocks for attr in block.attrs for c in attr.type.choices}
        choices = {word: word for word in (*DTYPES, *catalog.choices(), *words)}
        self.root = Frame({}, choices)
        for item in file.items:
            if isinstance(item, ast.Let) and not item.params:
                try:
                    self.root.names[item.name] = self.root.setting(item.value)
                except InvalidInput as error:
                    self.root.hidden.add(item.name)
                    self.diagnostics += error.diagnostics

    def frame(self, names: Mapping[str, Any], prefix: str = "") -> Frame:
        """A frame that sees the file's constants, and `names` over them."""
        inner = Frame({**self.root.names, **names}, self.root.choices, prefix=prefix)
        inner.hidden = self.root.hidden - names.keys()
        return inner


class Calls(ABC):
    """What is gathered about one model while it is checked, and the calls of operators in it.

    doubtful: values whose types follow from a call that is at fault.
    """

    def __init__(self, file: FileScope, bind: dict[str, int]) -> None:
        self.file = file
        self.bind = bind
        self.diagnostics: list[Diagnostic] = []
        self.graph = Graph("")
        self.declared: dict[str, Declared] = {}
        self.doubtful: set[str] = set()
        self.steps = 0

    def report(self, code: str, message: str, span: Span, node: str = "", help: str = "") -> None:
        """Records a fault."""
        self.diagnostics.append(Diagnostic(code, message, span, node=node, help=help))

    def relay(self, error: InvalidInput, node: str = "") -> None:
        """Records the faults of a part."""
        self.diagnostics += (d.at(d.span, d.node or node) for d in error.diagnostics)

    @abstractmethod
    def enter(
        self, block: ast.Block, call: ast.Call, operands: Operands, frame: Frame, name: str
    ) -> list[str] | None:
        """The values that a call of a block gives."""

    def step(self, span: Span) -> bool:
        """Counts a statement or a call; False, and one report, when there are too many."""
        self.steps += 1
        if self.steps == _MOST_STEPS:
            message = f"more than {_MOST_STEPS} statements with blocks and repetitions written out"
            self.report("model.size", message, span)
        return not self.stopped

    @property
    def stopped(self) -> bool:
        """Whether there were too many statements: what comes after is not looked at."""
        return self.steps >= _MOST_STEPS

    def unique(self, name: str) -> str:
        """A name that no value has yet."""
        candidate, count = name, 1
        while candidate in self.graph.values:
            count += 1
            candidate = f"{name}_{count}"
        return candidate

    def call(
        self, call: ast.Call, frame: Frame, names: tuple[str, ...], span: Span
    ) -> list[str] | None:
        """The values that a call gives, by name; None where they are not known."""
        if not self.step(span):
            return None
        definition = self.file.blocks.get(call.function) or self.file.catalog.op(call.function)
        if definition is None:
            self._unknown(call, names[0])
            for arg in call.args:  # faults inside the arguments are still worth telling
                if isinstance(arg, (ast.Call, ast.Name)) and not frame.is_number(arg):
                    self._tensor(arg, frame, names[0])
            return None
        pairs, faults = pair(definition, call)
        attrs, more, known = attributes(definition, call, frame)
        self.diagnostics += (d.at(d.span, names[0]) for d in (*faults, *more))
        operands = self._operands(definition, pairs, frame, names[0])
        if operands is None or faults or more or not known:
            return None
        operands.attrs = attrs
        if isinstance(definition, ast.Block):
            return self.enter(definition, call, operands, frame, names[0])
        return self._apply(definition, call, operands, frame, names, span)

    def _unknown(self, call: ast.Call, node: str) -> None:
        """Reports an operator that there is not, and a plain slip of the pen as an edit."""
        name, span = call.function, call.span
        functions = (*self.file.catalog.names(), *self.file.blocks)
        place = Span(span.file, span.line, span.column, span.line, span.column + len(name))
        slips = difflib.get_close_matches(name, functions, n=1, cutoff=_SLIP)
        self.diagnostics.append(
            Diagnostic(
                "model.operator",
                f"there is no operator `{name}`",
                place,
                node=node,
                help=meant(self.file.catalog.nearest(name, self.file.blocks)),
                edits=(Edit(place, slips[0]),) if slips else (),
            )
        )

    def _operands(
        self,
        definition: ast.Op | ast.Block,
        pairs: list[tuple[Formal, ast.Expr]],
        frame: Frame,
        name: str,
    ) -> Operands | None:
        """Inputs of a call by the names of the signature."""
        found = Operands()
        numbers: list[tuple[Formal, ast.Expr, int]] = []
        known = True
        for item, node in pairs:
            entries = found.tensors.setdefault(item.name, [])
            family = isinstance(item, ast.Input) and item.family
            for one in node.items if isinstance(node, ast.ListOf) and family else (node,):
                if frame.is_number(one):
                    numbers.append((item, one, len(entries)))
                    entries.append(("", one.span))
                    continue
                value = self._tensor(one, frame, name)
                known = known and value is not None
                entries.append((value or "", one.span))
        if not known:
            return None
        for item, node, position in numbers:
            value = self._number(item, definition, node, frame, found, name)
            if value is None:
                return None
            found.tensors[item.name][position] = (value, node.span)
        return found

    def _tensor(self, node: ast.Expr, frame: Frame, name: str) -> str | None:
        """The value that an operand is."""
        if isinstance(node, ast.Call):
            results = self.call(node, frame, (f"{name}_{node.function}",), node.span)
            return results[0] if results else None
        assert isinstance(node, ast.Name)
        if node.id not in frame.values:
            help_ = frame.near(node.id)
            self.report("model.name", f"`{node.id}` is not defined", node.span, name, help_)
            return None
        return frame.values[node.id]

    def _number(
        self,
        item: Formal,
        definition: ast.Op | ast.Block,
        node: ast.Expr,
        frame: Frame,
        found: Operands,
        name: str,
    ) -> str | None:
        """A number in place of a tensor: a constant of the other inputs' element type."""
        try:
            value = frame.number(node)
        except InvalidInput as error:
            self.relay(error, name)
            return None
        if isinstance(value, (str, tuple)):
            self.report("model.operand", "a tensor or a number is needed here", node.span, name)
            return None
        given = {n: [self.graph.values[v].dtype for v, _ in vs if v]
                 for n, vs in found.tensors.items()}  # fmt: skip
        dtype = number_type(definition, item.type.dtype, value, given)
        # `y, y_high = f(x, 1)` has a result by the name of y's operand `high`
        constant = self.unique(f"{frame.prefix}{name}_{item.name}_number")
        info = TensorInfo((), dtype)
        try:
            require_range(value, info, node.span)
        except InvalidInput as error:
            self.relay(error, name)
            return None
        start = Initial("constant", (value,))
        self.graph.params[constant] = Param(info, None, start, node.span, literal=True)
        self.graph.values[constant] = info
        return constant

    def _apply(
        self,
        op: ast.Op,
        call: ast.Call,
        operands: Operands,
        frame: Frame,
        names: tuple[str, ...],
        span: Span,
    ) -> list[str] | None:
        """A call of an operator becomes a node, unless it does not fit."""
        values, attrs = self.graph.values, operands.settings()
        families = {item.name for item in op.inputs if item.family}
        inputs: dict[str, Operand] = {}
        for formal, members in operands.tensors.items():
            given = tuple(name for name, _ in members)
            inputs[formal] = given if formal in families else given[0]
        if op.name in self.file.broken:
            return None
        try:
            instance = instantiate(op, operands.given(op, values), attrs)
        except InvalidInput as error:
            self._inside(error, call, names[0])
            return None
        read = {name for members in operands.tensors.values() for name, _ in members}
        doubtful = instance.faults or not read.isdisjoint(self.doubtful)
        for fault in instance.faults:
            placed = blame(fault, op, call, operands, values, self.declared)
            self.diagnostics.append(placed.at(placed.span, names[0]))
        if instance.outputs is None:
            return None
        for _, info in instance.outputs:
            if info.too_large:
                message = f"the result of `{op.name}` is {_short(info)}: {info.too_large}"
                self.report("type.size", message, call.span, names[0])
                return None
        outputs = self._results(instance, frame, names)
        if doubtful:
            self.doubtful.update(outputs)
        node = Node(outputs[0] if outputs else names[0], op, inputs, attrs, outputs, instance, span)
        if op.name in self.file.own and not instance.faults:
            try:
                # The definition itself may be at fault.
                schedule(node.expansion(self.file.catalog).equations)
            except InvalidInput as error:
                self._inside(error, call, names[0])
                return None
        self.graph.nodes.append(node)
        return list(outputs)

    def _inside(self, error: InvalidInput, call: ast.Call, name: str) -> None:
        """Faults of a definition, at the call that meets them."""
        for d in error.diagnostics:
            notes = (*d.notes, Note(f"in the definition of `{call.function}`", d.span))
            fault = Diagnostic(d.code, d.message, call.span, node=name, help=d.help, notes=notes)
            self.diagnostics.append(fault)

    def _results(self, instance: Instance, frame: Frame, names: tuple[str, ...]) -> tuple[str, ...]:
        outputs = []
        for number, (formal, info) in enumerate(instance.outputs or ()):
            base = names[number] if number < len(names) else f"{names[0]}.{formal}"
            name = self.unique(frame.prefix + base)
            self.graph.values[name] = info
            outputs.append(name)
        return tuple(outputs)


def _short(info: TensorInfo) -> str:
    text = str(info)
    return text if len(text) <= 80 else f"{text[:60]}…"
