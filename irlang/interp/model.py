"""The body of a model, statement by statement: declarations, assignments, repetitions, blocks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from irlang import ast
from irlang.diagnostics import InvalidInput, Note, Span
from irlang.equations import TensorInfo
from irlang.graph import LOSS, Graph, Param, Port
from irlang.interp.call import Declared, Operands
from irlang.interp.declaration import initial, interval, tensor_type
from irlang.interp.frame import Frame
from irlang.interp.operation import Calls, FileScope
from irlang.parser.printer import print_type
from irlang.scope import show
from irlang.signature import attribute_problem

_MOST_NESTED = 40  # blocks inside one another


class ModelCheck(Calls):
    """Checks one model."""

    def __init__(self, file: FileScope, bind: dict[str, int]) -> None:
        super().__init__(file, bind)
        self.open: list[str] = []  # the blocks that we are in
        self.entered: set[str] = set()
        self.prefixes: set[str] = set()

    def model(self, model: ast.Model) -> Graph:
        """The graph of a model; meaningless where errors were reported."""
        folder = str(Path(model.span.file).parent) if model.span.file else "."
        self.graph = Graph(model.name, folder=folder, doc=model.doc)
        frame = self.file.frame(self.bind)
        for item in model.inputs:
            self._input(item, frame)
        dims = (dim.size for item in model.inputs for dim in item.type.dims)
        named = {part.id for size in dims for part in ast.walk(size) if isinstance(part, ast.Name)}
        constants = self.file.root.names.keys() - self.bind.keys()
        self.graph.sizes = {
            n: v for n, v in frame.names.items() if n in named - constants and isinstance(v, int)
        }
        self._statements(model.body, frame)
        for output in model.outputs:
            self._output(output, frame)
        loss = frame.values.get(LOSS)
        if loss is not None:
            self.graph.loss = loss
            info = self.graph.values[loss]
            sure = loss not in self.doubtful
            if sure and (info.shape != () or info.kind != "real"):
                message = f"`loss` is {info}; a loss is a single real number"
                giving = (s for s in model.body if isinstance(s, ast.Assign) and LOSS in s.targets)
                span = next((s.span for s in giving), model.span)
                self.report("model.loss", message, span, LOSS)
        return self.graph

    # ---- declarations

    def _new(self, name: str, frame: Frame, span: Span, value: str | None) -> None:
        """Gives a source name its value; a name is given once, save in a repetition."""
        if frame.taken(name):
            self.report("model.duplicate", f"`{name}` is already defined", span, name)
        frame.own.add(name)
        frame.values[name] = value

    def _declaration(
        self, item: ast.ModelInput | ast.Param, frame: Frame
    ) -> tuple[TensorInfo | None, tuple[float, float] | None]:
        """The type and the range that are declared, None where they are faulty."""
        info = within = None
        try:
            info = tensor_type(item.type, frame, symbolic=isinstance(item, ast.ModelInput))
        except InvalidInput as error:
            self.relay(error, item.name)
        try:
            within = interval(item.within, frame)
        except InvalidInput as error:
            self.relay(error, item.name)
        return info, within

    def _input(self, item: ast.ModelInput, frame: Frame) -> None:
        info, within = self._declaration(item, frame)
        text = f"{item.name}: {print_type(item.type)}"
        self.declared[item.name] = Declared(text, item.span, item.type)
        self._new(item.name, frame, item.span, item.name if info else None)
        if info:
            self.graph.inputs[item.name] = Port(info, within, item.span)
            self.graph.values[item.name] = info

    def _output(self, output: ast.ModelOutput, frame: Frame) -> None:
        if self.stopped:
            return
        name, span = output.name, output.span
        if name in self.graph.outputs:
            self.report("model.duplicate", f"the result `{name}` is given twice", span, name)
            return
        if name not in frame.values:
            message = f"the result `{name}` is not computed"
            self.report("model.output", message, span, name, frame.near(name))
            return
        try:
            info = tensor_type(output.type, frame)
        except InvalidInput as error:
            self.relay(error, name)
            return
        value = frame.values[name]
        if value is None:
            return
        actual = self.graph.values[value]
        if actual != info and value not in self.doubtful:
            message = f"`{name}` is {actual}; the model says {print_type(output.type)}"
            self.report("model.output", message, span, name, f"declare it as {actual}")
            return
        self.graph.outputs[name] = value

    # ---- statements

    def _statements(self, body: tuple[ast.Statement, ...], frame: Frame) -> None:
        for statement in body:
            if not self.step(statement.span):
                return
            match statement:
                case ast.Let():
                    self._let(statement, frame)
                case ast.Param():
                    self._param(statement, frame)
                case ast.Assign():
                    self._assign(statement, frame)
                case ast.For():
                    self._for(statement, frame)

    def _let(self, statement: ast.Let, frame: Frame) -> None:
        name = statement.name
        if frame.taken(name) or name in frame.values:
            self.report("model.duplicate", f"`{name}` is already defined", statement.span, name)
            return
        try:
            frame.names[name] = frame.setting(statement.value)
        except InvalidInput as error:
            frame.hidden.add(name)
            self.relay(error, name)

    def _param(self, statement: ast.Param, frame: Frame) -> None:
        info, within = self._declaration(statement, frame)
        start = None
        name = self.unique(frame.prefix + statement.name)
        if info is not None and statement.value is not None:
            try:
                start = initial(statement.value, info, frame)
            except InvalidInput as error:
                self.relay(error, name)
        text = f"param {statement.name}: {print_type(statement.type)}"
        self.declared[name] = Declared(text, statement.span, statement.type)
        self._new(statement.name, frame, statement.span, name if info else None)
        if info:
            self.graph.params[name] = Param(info, within, start, statement.span)
            self.graph.values[name] = info

    def _for(self, statement: ast.For, frame: Frame) -> None:
        try:
            bound = frame.number(statement.bound)
        except InvalidInput as error:
            self.relay(error)
            self._hide(statement.body, frame)
            return
        if not isinstance(bound, int) or isinstance(bound, bool) or bound < 0:
            message = f"a repetition goes a whole number of times, not {show(bound)}"
            self.report("model.repeat", message, statement.bound.span)
            self._hide(statement.body, frame)
            return
        if frame.taken(statement.name) or statement.name in frame.values:
            message = f"`{statement.name}` is already defined"
            self.report("model.duplicate", message, statement.span, statement.name)
        for i in range(bound):
            inner = replace(
                frame,
                names={**frame.names, statement.name: i},
                values=dict(frame.values),
                hidden=set(frame.hidden),
                own=set(),
                prefix=f"{frame.prefix}{statement.name}{i}.",
            )
            before = len(self.diagnostics)
            if not self.step(statement.span):
                return
            self._statements(statement.body, inner)
            for name in inner.own & frame.values.keys():
                frame.values[name] = inner.values[name]
            if len(self.diagnostics) > before:
                return  # the same fault again and again says nothing new

    @staticmethod
    def _hide(body: tuple[ast.Statement, ...], frame: Frame) -> None:
        """What a repetition would change is not known where the repetition is not."""
        for part in (p for statement in body for p in ast.walk(statement)):
            if isinstance(part, ast.Assign):
                frame.values.update(dict.fromkeys(part.targets))

    def _assign(self, statement: ast.Assign, frame: Frame) -> None:
        names = statement.targets
        results = self.call(statement.value, frame, names, statement.span)
        if results is not None and len(results) < len(names):
            given = f"{len(results)} result{'s' * (len(results) != 1)}"
            message = f"`{statement.value.function}` gives {given}, not {len(names)}"
            self.report("model.results", message, statement.span, names[0])
            results = None
        for number, name in enumerate(names):
            self._new(name, frame, statement.span, None if results is None else results[number])

    # ---- blocks

    def enter(
        self, block: ast.Block, call: ast.Call, operands: Operands, frame: Frame, name: str
    ) -> list[str] | None:
        """Inlines a block; its values and parameters are named after the call."""
        self.entered.add(block.name)
        if block.name in self.open or len(self.open) >= _MOST_NESTED:
            what = "uses itself" if block.name in self.open else "is in too many blocks"
            self.report("model.depth", f"`{block.name}` {what}", call.span, name)
            return None
        inner = self._settings(block, call, operands, frame, name)
        if inner is None:
            return None
        for item in block.inputs:
            ((value, span),) = operands.tensors.get(item.name) or [("", call.span)]
            if not value:
                message = f"input `{item.name}` of `{block.name}` is missing"
                self.report("model.arguments", message, call.span, name)
                return None
            actual = self.graph.values[value]
            if not self._matches(item.type, actual, inner):
                if value not in self.doubtful:
                    taken = f"`{block.name}` takes {item.name}: {print_type(item.type)}"
                    message = f"{value} is {actual}; {taken}"
                    self.report(f"{block.name}.{item.name}", message, span, name)
                return None
            self._new(item.name, inner, item.span, value)
        before = len(self.diagnostics)
        self.open.append(block.name)
        self._statements(block.body, inner)
        self.open.pop()
        results = [self._result(output, inner) for output in block.outputs]
        note = Note(f"`{block.name}` is called here", call.span)
        self.diagnostics[before:] = [
            replace(d, notes=(*d.notes, note)) for d in self.diagnostics[before:]
        ]
        known = [result for result in results if result is not None]
        return known if len(known) == len(results) else None

    def _settings(
        self, block: ast.Block, call: ast.Call, operands: Operands, frame: Frame, name: str
    ) -> Frame | None:
        """The frame of a block, with its attributes; None where one is not known."""
        settings = operands.settings()
        inner = self.file.frame(settings, f"{self._prefix(frame.prefix + name)}.")
        for attr in block.attrs:
            if attr.name not in settings:
                if attr.default is None:
                    message = f"attribute `{attr.name}` of `{block.name}` must be given"
                    self.report("model.attribute", message, call.span, name)
                    return None
                try:
                    inner.names[attr.name] = inner.setting(attr.default)
                except InvalidInput as error:
                    self.relay(error, name)
                    return None
            problem = attribute_problem(attr.type, inner.names[attr.name])
            if problem:
                span = operands.attrs[attr.name][1].span if attr.name in settings else call.span
                self.report(f"{block.name}.{attr.name}", f"`{attr.name}` {problem}", span, name)
                return None
        return inner

    def _prefix(self, name: str) -> str:
        """`name`, or one with a number where an earlier call of a block has it."""
        candidate, count = name, 1
        while candidate in self.prefixes:
            count += 1
            candidate = f"{name}_{count}"
        self.prefixes.add(candidate)
        return candidate

    def _result(self, output: ast.ModelOutput, inner: Frame) -> str | None:
        """The value of a block's result."""
        if self.stopped:
            return None
        if output.name not in inner.values:
            message = f"the result `{output.name}` is not computed"
            help_ = inner.near(output.name)
            self.report("model.output", message, output.span, output.name, help_)
            return None
        value = inner.values[output.name]
        if value is None:
            return None
        try:
            info = tensor_type(output.type, inner)
        except InvalidInput as error:
            self.relay(error, output.name)
            return None
        if info != self.graph.values[value] and value not in self.doubtful:
            message = f"`{output.name}` is {self.graph.values[value]}; the block says {info}"
            self.report("model.output", message, output.span, output.name)
            return None
        return value

    @staticmethod
    def _matches(kind: ast.TensorType, actual: TensorInfo, frame: Frame) -> bool:
        """Matches the type of a block's input; binds the sizes that it names."""
        if kind.dtype != actual.dtype or len(kind.dims) != len(actual.shape):
            return False
        for dim, size in zip(kind.dims, actual.shape, strict=True):
            if isinstance(dim.size, ast.Name) and dim.size.id not in frame.names:
                frame.names[dim.size.id] = size
        try:
            return tensor_type(kind, frame) == actual
        except InvalidInput:
            return False
