"""A node of a graph that is being written: its inputs, and the calls it becomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from irlang import ast
from irlang.equations import TensorInfo
from irlang.importers.sizes import Dim
from irlang.importers.value import (
    Fold,
    Operand,
    Unsupported,
    Value,
    constant,
    feeds_of,
    foldable,
)
from irlang.importers.writer import Array, Writer

_DEEPEST = 64  # calls on known values that wait for one another


class NodeBase:
    """A call of an operator of another system.

    kind: the operator. given: the inputs, None where one is left out. outputs: the names of the
    results, empty where one is not wanted.
    """

    def __init__(
        self, writer: Writer, kind: str, given: Sequence[Value | None], outputs: Sequence[str]
    ) -> None:
        self.writer = writer
        self.kind = kind
        self.given = list(given)
        self.outputs = list(outputs)

    # ---- inputs

    @property
    def x(self) -> list[Value]:
        """The inputs, where none of them is left out."""
        found = [value for value in self.given if value is not None]
        if len(found) != len(self.given):
            raise Unsupported("an input in the middle is left out")
        return found

    def input(self, place: int) -> Value:
        """An input that must be there."""
        found = self.optional(place)
        if found is None:
            raise Unsupported(f"input {place} is missing")
        return found

    def optional(self, place: int) -> Value | None:
        """An input, None where it is left out."""
        return self.given[place] if place < len(self.given) else None

    def known(self, place: int) -> Array:
        """The values of an input, which must be known when the model is read."""
        return self.values(self.input(place), f"input {place}")

    def values(self, value: Value, what: str) -> Array:
        """The values of a tensor, which must be known when the model is read."""
        found = value.known()
        if found is None:
            made = ", ".join(f"`{name}`" for name in sorted(value.sources)) or "large parameters"
            raise Unsupported(f"{what} must be known, and depends on {made}", value.sources)
        return found

    def known_ints(self, place: int) -> list[int]:
        """Known whole numbers; some of them may be open sizes."""
        return [
            item if isinstance(item, Dim) else int(item)
            for item in self.known(place).reshape(-1).tolist()
        ]

    def known_number(self, place: int) -> Any:
        """A single known number."""
        found = self.known(place)
        if found.size != 1:
            raise Unsupported(f"input {place} has {found.size} numbers, not one")
        return found.reshape(-1).tolist()[0]

    # ---- what is written

    def wants(self, place: int) -> bool:
        """Whether a result is asked for."""
        return place < len(self.outputs) and bool(self.outputs[place])

    def call(self, op: str, *operands: Operand, **attrs: Any) -> Value:
        """A call whose result is that of the node. by_name: optional inputs by name."""
        return self.calls(1, op, *operands, **attrs)[0]

    def calls(self, count: int, op: str, /, *operands: Operand, **attrs: Any) -> list[Value]:
        """A call whose results are those of the node."""
        first = next((name for name in self.outputs if name), self.kind)
        names = [
            self.outputs[i] if self.wants(i) else f"{first}_{i}" if i else first
            for i in range(count)
        ]
        return self._call(names, op, operands, **attrs)

    def result(self, place: int, op: str, *operands: Operand, **attrs: Any) -> Value:
        """A call that gives one of the results of the node."""
        return self._call([self.outputs[place]], op, operands, **attrs)[0]

    def step(self, suffix: str, op: str, *operands: Operand, **attrs: Any) -> Value:
        """A call on the way to the result."""
        return self.steps([suffix], op, *operands, **attrs)[0]

    def steps(
        self, suffixes: Sequence[str], op: str, *operands: Operand, **attrs: Any
    ) -> list[Value]:
        """A call of several results on the way to the result."""
        first = next((name for name in self.outputs if name), self.kind)
        names = [f"{first}_{suffix}" if suffix else first for suffix in suffixes]
        return self._call(names, op, operands, **attrs)

    def _call(
        self,
        wanted: Sequence[str],
        op: str,
        operands: Sequence[Operand],
        by_name: Mapping[str, Value] | None = None,
        **attrs: Any,
    ) -> list[Value]:
        extra = dict(by_name or {})
        values = [v for v in (*operands, *extra.values()) if isinstance(v, Value)]
        sources = frozenset[str]().union(*(value.sources for value in values))
        peer = next((v.dtype for v in operands if isinstance(v, Value)), "f32")
        infos = [v.info if isinstance(v, Value) else TensorInfo((), peer) for v in operands]
        instance = self.writer.instance(op, infos, {k: v.info for k, v in extra.items()}, attrs)
        outputs = list(instance.outputs or ())[: len(wanted)]
        made: list[Value] = []
        owner = self.writer.owner

        def write(place: int) -> str:
            """The names of all results are there once one is needed, which may be much later."""
            shown = [v.text() if isinstance(v, Value) else v for v in operands]
            names = {key: value.text() for key, value in extra.items()}
            now, self.writer.owner = self.writer.owner, owner
            found = self.writer.call(wanted, op, *shown, by_name=names, **attrs)
            self.writer.owner = now
            for value, name in zip(made, found, strict=True):
                value.name = value.name or name
            return found[place]

        fold = None
        drawn = any(isinstance(s, ast.Some) for s in instance.binding.op.body)
        if not drawn and foldable(values, [info for _, info in outputs]):
            feeds = feeds_of(instance, operands, extra, infos)
            fold = Fold(instance, feeds, self.writer)
        for place, (formal, info) in enumerate(outputs):
            value = Value(info, lambda place=place: write(place), sources=sources)  # type: ignore[misc]
            if fold is not None:
                value.fold = lambda formal=formal: fold(formal)
                value.write = self._folded(value, wanted[place], value.write)
                value.depth = 1 + max((v.depth for v in values), default=0)
                value.rounded = any(v.info.kind == "real" or v.rounded for v in values)
            made.append(value)
        for value in made:
            if value.depth > _DEEPEST:
                value.known()
                value.text()
                value.depth = 0
        if fold is None:
            made[0].text()
        return made

    def _folded(self, value: Value, wanted: str, write: Callable[[], str]) -> Callable[[], str]:
        """What is computed from whole numbers and truth values alone is written as what it is; a
        real would be rounded, and a runtime may round the other way where the result hangs on it.
        """

        def as_parameter() -> str:
            if value.info.kind == "real" or value.rounded:
                return write()
            known = value.known()
            return self.writer.param(wanted, value.info, known) if known is not None else write()

        return as_parameter

    def const(self, array: Any, name: str = "", info: TensorInfo | None = None) -> Value:
        """A tensor that is known: an array, or one number everywhere in a tensor of a type."""
        return constant(self.writer, array, name or self.outputs[0], info)
