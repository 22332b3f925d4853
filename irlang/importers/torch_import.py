"""Imports a program of PyTorch, as `torch.export.save` writes it, as the text of a model.

Neither PyTorch nor pickle is needed. Operators without a translation are reported all at once, each
with the module and the line that it comes from. What the program changes in place is a new value;
where it changes one of its inputs or buffers, the new value is a further result of the model.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from irlang.catalog import Catalog, builtin
from irlang.diagnostics import Diagnostic, InvalidInput, fail
from irlang.equations import TensorInfo
from irlang.importers import torch_program
from irlang.importers.sizes import is_open
from irlang.importers.torch_archive import Archive
from irlang.importers.torch_call import Call, Hole, Rule, Uncovered, Value
from irlang.importers.torch_left_out import LEFT_OUT
from irlang.importers.torch_program import Node, Opaque, Program, Ref
from irlang.importers.torch_rules import IGNORED, RULES
from irlang.importers.torch_views import VIEWS, put_back
from irlang.importers.writer import Array, Fault, Writer

_LINE = re.compile(r'File "([^"]*)", line (\d+), in (\w+)')
_MISMATCHES = (
    *(TypeError, ValueError, KeyError, IndexError, AttributeError, ArithmeticError),
    *(StopIteration, AssertionError),
)
DATA = "weights.safetensors"


@dataclass(slots=True)
class Imported:
    """A program as a model's text.

    tensors: what belongs into the file of parameters beside it. inputs: names of the model's inputs
    in the order of the program. outputs: names of its results; those after `returned` are the new
    values of inputs and buffers that the program changes.
    """

    text: str
    tensors: dict[str, Array]
    inputs: list[str]
    outputs: list[str]
    returned: int
    writer: Writer = field(repr=False)


def load(
    source: Path | IO[bytes],
    name: str = "imported",
    catalog: Catalog | None = None,
    data: str | None = DATA,
) -> Imported:
    """A `.pt2` file as the text of a model.

    data: the name of the file of parameters; None writes every number into the text. Raises
    `InvalidInput` with everything that has no translation.
    """
    archive = Archive(source)
    archive.require_memory()
    writer = Writer(catalog or builtin(), data)
    program = torch_program.read(archive, writer.size)
    return Translation(archive, program, writer).text(name)


class Translation:
    """A program on its way. values: by the names of the graph, None where a fault left a hole."""

    def __init__(self, archive: Archive, program: Program, writer: Writer) -> None:
        self.archive = archive
        self.program = program
        self.writer = writer
        self.values: dict[str, Any] = {}
        self.user: dict[str, Value] = {}
        self.faults: list[Diagnostic] = []
        self.made: list[Value] = []
        self.changed: dict[str, str] = {}  # inputs and buffers that are written to, by value name
        self._parents: dict[str, tuple[str, Node]] = {}
        self._kept: dict[str, tuple[str, str]] = {}

    def text(self, name: str) -> Imported:
        """Translates everything and writes it."""
        self._inputs()
        for node in self.program.nodes:
            self._node(node)
        if self.faults:
            raise InvalidInput(*self.faults)
        outputs, returned = self._outputs()
        if not outputs:
            raise fail("torch.output", "the program gives no tensor")
        for value in self.user.values():
            value.name = self.writer.input(value.wanted, value.info)
        names = self._write(outputs)
        title = re.sub(r"\W", "_", name, flags=re.ASCII)
        title = title if title[:1].isalpha() else f"m_{title}"
        written = self.writer.text(title, "A program of PyTorch, from torch.export.", names)
        inputs = [value.name for value in self.user.values()]
        return Imported(written, self.writer.tensors, inputs, names, returned, self.writer)

    # ---- what goes in

    def _inputs(self) -> None:
        for kind, name, outside in self.program.inputs:
            if kind == "other":
                self._fault("torch.input", f"an input is {outside}, which irlang has not", outside)
                continue
            meta = self.program.metas.get(name)
            if meta is None or not meta.dtype:
                self.values[name] = None
                self._fault(
                    "torch.type", f"`{outside}` is complex or of 8-bit floats", outside or name
                )
                continue
            if any(isinstance(size, Opaque) for size in meta.shape):
                self.values[name] = None
                self._fault("torch.type", f"`{outside}` has a size that is not known", outside)
                continue
            info = TensorInfo(meta.shape, meta.dtype)
            if kind == "user":
                value = Value(info, wanted=outside)
                self.user[name] = value
            else:
                value = Value(info, data=self._stored(outside, info), wanted=outside)
            self.values[name] = value
            self._kept[name] = (kind, outside)
        self.values.update(
            {
                name: value
                for name, value in self.program.constants.items()
                if name not in self.values
            }
        )

    def _stored(self, outside: str, info: TensorInfo) -> Array:
        array = self.archive.tensor(outside)
        if array.shape != tuple(info.shape) or self.archive.tensors[outside].dtype != info.dtype:
            raise fail("file.torch", f"the archive is malformed: `{outside[:80]}` is not {info}")
        return array

    # ---- the nodes

    def _node(self, node: Node) -> None:
        name, *rest = node.target.split(".", 1)[-1].split(".")
        refs = _flat(node.results)
        if name in IGNORED or (refs and all(ref.name in self.program.symbols for ref in refs)):
            return  # sizes are known without their nodes
        in_place = name.endswith("_") and not name.endswith("__")
        key = name.removesuffix("_") if in_place else name
        overload = ".".join(rest)
        rule = RULES.get(f"{key}.{overload}") or RULES.get(key)
        try:
            if rule is None or not node.target.startswith("aten."):
                raise Uncovered(LEFT_OUT.get(key, ""))
            call = Call(node, self.program, self.values, self.writer)
            self._assign(node, call, rule(call))
            if in_place:
                self._change(node)
            for argument, value in call.extra.items():
                self._set(node.args[argument], value)
            if key in VIEWS:
                source = node.args.get("self", node.args.get("input"))
                if isinstance(source, Ref):
                    for result in _flat(node.results):
                        self._parents[result.name] = (source.name, node)
        except Hole:
            self._give_up(node)
        except _MISMATCHES as error:
            # a file from outside may give an operator what its schema does not allow
            self._give_up(node)
            told = (
                f"{node.target} has arguments that it cannot take: {type(error).__name__}: {error}"
            )
            self._fault("torch.arguments", told, node.name, _place(node))
        except Uncovered as error:
            self._give_up(node)
            reason = str(error)
            told = f"{node.target} has no translation" + (f": {reason}" if reason else "")
            self._fault("torch.unsupported", told, node.name, _place(node))
        except Fault as error:
            self._give_up(node)
            why = "; ".join(message for _, message in error.faults)
            told = f"{node.target} asks for what its definition refuses: {why}"
            self._fault("torch.refused", told, node.name, _place(node))

    def _fault(self, code: str, message: str, node: str, place: str = "") -> None:
        told = f"{message} (in {place})" if place else message
        self.faults.append(Diagnostic(code, told, node=node))

    def _give_up(self, node: Node) -> None:
        for result in _flat(node.results):
            self.values[result.name] = None

    def _assign(self, node: Node, call: Call, found: Any) -> None:
        """Binds the results, which must have the types that were recorded."""
        refs = _flat(node.results)
        values = found if isinstance(found, (list, tuple)) else [found]
        if len(values) < len(refs):
            raise Uncovered(f"it gives {len(refs)} results")
        for position, (ref, value) in enumerate(zip(refs, values, strict=False)):
            if not isinstance(value, Value):
                self.values[ref.name] = value
                continue
            meta = call.result(position)
            if value.dtype != meta.dtype or tuple(value.shape) != tuple(meta.shape):
                recorded = TensorInfo(meta.shape, meta.dtype)
                raise Uncovered(f"its result is {recorded}; the translation gives {value.info}")
            if not value.wanted:
                value.wanted = _wanted(node, ref.name) if position == 0 else ref.name
            self.values[ref.name] = value

    # ---- changes in place

    def _change(self, node: Node) -> None:
        source = node.args.get("self", node.args.get("input"))
        refs = _flat(node.results)
        if isinstance(source, Ref) and refs:
            self._set(source, self.values[refs[0].name], refs[0].name)

    def _set(self, source: Any, value: Value, alias: str = "") -> None:
        """A tensor has a new value: so have the one that it is a view of, and the views of it."""
        if not isinstance(source, Ref):
            raise Uncovered("it changes what is no tensor")
        name = source.name
        self.values[name] = value
        if alias:
            # the result is the tensor itself; later changes of either are changes of both
            self._parents.setdefault(
                alias, (name, Node(alias, "aten.alias.default", {"self": source}, (Ref(alias),)))
            )
        while name in self._parents:
            parent, node = self._parents[name]
            call = Call(node, self.program, self.values, self.writer)
            self.values[parent] = value = put_back(call, self.values[name])
            name = parent
        if name in self._kept:
            self.changed[name] = self._kept[name][1]
        self._refresh(name)

    def _refresh(self, root: str) -> None:
        """Makes the views of a changed tensor anew."""
        fresh = {root}
        for child, (parent, node) in list(self._parents.items()):
            if parent in fresh:
                fresh.add(child)
                key = node.target.split(".")[1].removesuffix("_")
                rule: Rule = RULES[key]
                call = Call(node, self.program, self.values, self.writer)
                found = rule(call)
                values = found if isinstance(found, (list, tuple)) else [found]
                for ref, value in zip(_flat(node.results), values, strict=False):
                    self.values[ref.name] = value

    # ---- what comes out

    def _outputs(self) -> tuple[list[tuple[str, Value]], int]:
        found: list[tuple[str, Value]] = []
        further: list[tuple[str, Value]] = []
        for kind, raw, outside in self.program.outputs:
            items = raw if isinstance(raw, list) else [raw]
            for item in items:
                value = self.values.get(item.name) if isinstance(item, Ref) else None
                if not isinstance(value, Value):
                    continue  # None and numbers: no tensor of the model
                if kind in ("user", "loss_output"):
                    found.append((value.wanted or item.name, value))
                else:
                    further.append((f"{outside}_next", value))
        for name, outside in self.changed.items():
            further.append((f"{outside}_next", self.values[name]))
        return found + further, len(found)

    def _write(self, outputs: Sequence[tuple[str, Value]]) -> list[str]:
        """Writes what the outputs need, and gives their names."""
        call = Call(Node("", "", {}, ()), self.program, {}, self.writer)
        results: list[Value] = []
        for wanted, value in outputs:
            if value.made is None or any(value is other for other in results):
                value = call("identity", value)
            value.wanted = wanted
            results.append(value)
        for value in results:
            self._need(value)
        return [value.name for value in results]

    def _need(self, value: Value) -> None:
        """Writes a value and what it is made of, without recursion: graphs are deep."""
        stack = [value]
        while stack:
            top = stack[-1]
            if top.name:
                stack.pop()
                continue
            if top.made is None:
                self._parameter(top)
                stack.pop()
                continue
            operands = [*top.made.operands, *top.made.by_name.values()]
            waiting = [i for i in operands if isinstance(i, Value) and not i.name]
            if waiting:
                for item in reversed(waiting):
                    item.wanted = item.wanted or f"{top.wanted or top.made.op}_{_role(item)}"
                stack.extend(reversed(waiting))
                continue
            made = top.made
            names = self.writer.call(
                [
                    item.wanted or f"{top.wanted or made.op}_{i}"
                    for i, item in enumerate(made.results)
                ],
                made.op,
                *[item.name if isinstance(item, Value) else item for item in made.operands],
                by_name={key: item.name for key, item in made.by_name.items()},
                **made.attrs,
            )
            for item, name in zip(made.results, names, strict=True):
                item.name = name
            stack.pop()

    def _parameter(self, value: Value) -> None:
        data = value.data
        if data is None:
            raise AssertionError("an input has its name")
        if not isinstance(data, np.ndarray) and not any(map(is_open, value.shape)):
            info = value.info
            value.name = self.writer.param(value.wanted or "constant", info, data)
            return
        value.name = self.writer.param(value.wanted or "constant", value.info, data)


def _flat(results: Sequence[Any]) -> list[Ref]:
    found: list[Ref] = []
    for item in results:
        found += [i for i in (item if isinstance(item, list) else [item]) if isinstance(i, Ref)]
    return found


def _role(value: Value) -> str:
    """What an operand is called that has no name of its own."""
    return value.made.op if value.made is not None else "constant"


def _wanted(node: Node, name: str) -> str:
    """The name of a result: that of the module where a layer gives it, else the graph's."""
    path, kind = node.module
    layer = kind.startswith("torch.nn.modules.") and path and "container" not in kind
    return path.replace(".", "_") if layer else name


def _place(node: Node) -> str:
    """Where a node comes from, for people: the module, and the line of the program."""
    lines = _LINE.findall(node.trace)
    told = [f"module `{node.module[0]}`"] if node.module[0] else []
    own = [found for found in lines if "/torch/" not in found[0]] or lines
    if own:
        file, line, _ = own[-1]
        told.append(f"{Path(file).name}:{line}")
    return ", ".join(told)


def unsupported(error: InvalidInput) -> Mapping[str, int]:
    """How often each diagnostic's cause stands in an error."""
    return Counter(item.code for item in error.diagnostics)
