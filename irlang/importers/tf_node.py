"""A node of a TensorFlow graph that is being written: what rows of the mapping tables are given.

TensorFlow puts the channels of images last, the definitions put them first. A convolution leaves
its result with channels first, and the nodes after it take it so where they can (`Node.first`,
`Node.moved`); it is transposed where somebody needs the other order (`Node.last`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from irlang.equations import TensorInfo
from irlang.importers.node import NodeBase
from irlang.importers.sizes import Dim
from irlang.importers.tf_file import Attribute, dtype
from irlang.importers.value import Unsupported, Value
from irlang.importers.writer import Writer

Count = int  # inside `Node`, `int` is a method
Twins = dict[Value, Value]  # of a value with channels last, the same with channels first
Result = Value | Sequence[Value | None]
Row = Callable[["Node"], Result]


class Node(NodeBase):
    """A call of a TensorFlow operator, with its attributes."""

    def __init__(
        self,
        writer: Writer,
        kind: str,
        given: Sequence[Value],
        outputs: Sequence[str],
        attributes: Mapping[str, Attribute],
        twins: Twins,
    ) -> None:
        super().__init__(writer, kind, given, outputs)
        self.twins = twins
        self._attributes = attributes
        # types follow from the inputs; what begins with `_` is for TensorFlow's own use
        kinds = ("type", "list type")
        self._open = {
            name
            for name, item in attributes.items()
            if not name.startswith("_") and item.kind not in kinds and name != "N"
        }
        self._unread = set(range(len(self.given)))

    # ---- inputs

    @property
    def x(self) -> list[Value]:
        """All inputs."""
        self._unread.clear()
        return super().x

    def optional(self, place: Count) -> Value | None:
        """An input, None where it is left out."""
        self._unread.discard(place)
        return super().optional(place)

    def pass_over(self) -> None:
        """Inputs that were not asked for say nothing about the values."""
        self._unread.clear()

    # ---- attributes

    def _attribute(self, name: str, kind: str) -> Any:
        """An attribute of a kind, None where it is not given."""
        self._open.discard(name)
        found = self._attributes.get(name)
        if found is None or (found.kind == "list" and not kind.startswith("list")):
            return None
        if found.kind not in (kind, "list" if kind.startswith("list") else kind):
            raise Unsupported(f"the attribute `{name}` is not of the kind that the operator has")
        return found.value

    def _or(self, name: str, kind: str, default: Any) -> Any:
        found = self._attribute(name, kind)
        if found is None and default is None:
            raise Unsupported(f"its attribute `{name}` is missing")
        return default if found is None else found

    def int(self, name: str, default: Any = None) -> Any:
        """A whole number."""
        return self._or(name, "i", default)

    def flag(self, name: str, default: Any = False) -> bool:
        """A truth value."""
        return bool(self._or(name, "b", default))

    def real(self, name: str, default: Any = None) -> float:
        """A number, as short as single precision allows."""
        return float(str(np.float32(self._or(name, "f", default))))

    def ints(self, name: str, default: Any = None) -> Any:
        """Whole numbers."""
        return list(self._or(name, "list i", default))

    def reals(self, name: str, default: Any = None) -> list[float]:
        """Numbers."""
        return list(self._or(name, "list f", default))

    def word(self, name: str, default: Any = None) -> str:
        """A text."""
        found = self._or(name, "s", default)
        return found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found)

    def element_type(self, name: str, default: str = "") -> str:
        """An element type."""
        found = self._attribute(name, "type")
        return default if found is None else dtype(found)

    def ignore(self, *names: str) -> None:
        """Attributes that say nothing about the values."""
        self._open.difference_update(names)

    def finish(self) -> None:
        """Raises `Unsupported` for attributes and inputs that nobody asked for."""
        if self._open:
            raise Unsupported(f"the attribute `{min(self._open)}`")
        if self._unread:
            raise Unsupported(f"it has {len(self.given)} inputs, which is too many")

    # ---- the order of axes

    @property
    def ahead(self) -> bool:
        """Whether TensorFlow itself has channels first here."""
        return self.word("data_format", "NHWC").startswith("NC")

    def first(self, x: Value) -> Value:
        """A value with its channels, which TensorFlow has last, first."""
        if x.rank < 3:
            raise Unsupported(f"an image of {x.rank} axes")
        if x not in self.twins:
            self.twins[x] = self.turned(x, [0, x.rank - 1, *range(1, x.rank - 1)], "first")
        return self.twins[x]

    def turned(self, x: Value, perm: Sequence[Count], suffix: str) -> Value:
        """A value with its axes in another order; the numbers of a constant are rearranged."""
        known = x.known() if x.origin and not x.name else None
        if known is None:
            return self.step(suffix, "transpose", x, perm=list(perm))
        return self.const(np.ascontiguousarray(known.transpose(perm)), f"{x.origin}_{suffix}")

    def last(self, y: Value) -> Value:
        """A value that has its channels first in TensorFlow's order, written where it is needed."""
        perm = [0, *range(2, y.rank), 1]
        info = TensorInfo(tuple(y.shape[d] for d in perm), y.dtype)
        wanted, owner = f"{self.outputs[0] or self.kind}_last", self.writer.owner

        def write() -> str:
            now, self.writer.owner = self.writer.owner, owner
            name = self.writer.call([wanted], "transpose", y.text(), perm=perm)[0]
            self.writer.owner = now
            return name

        made = Value(info, write, sources=y.sources)
        self.twins[made] = y
        return made

    def moved(self) -> Node | None:
        """The node on inputs whose channels are first, where one of them has its channels first
        and the others broadcast to it; else None.
        """
        x = next((value for value in self.x if value in self.twins), None)
        if x is None:
            return None
        found: list[Value | None] = []
        for value in self.x:
            if value in self.twins and value.rank == x.rank:
                found.append(self.twins[value])
            elif value.rank == 0:
                found.append(value)
            elif value.rank == x.rank and all(_is_one(size) for size in value.shape[:-1]):
                found.append(self.first(value))
            elif value.rank == 1:
                axes = list(range(1, x.rank - 1))
                found.append(self.step("channels", "expand_dims", value, axes=axes))
            else:
                return None
        inner = copy.copy(self)
        inner.given = found
        return inner


def _is_one(size: int) -> bool:
    return not is_open(size) and size == 1


def elementwise(row: Row) -> Row:
    """A row that works element by element, so that it may as well do so with channels first."""

    def either(n: Node) -> Result:
        inner = n.moved()
        if inner is None:
            return row(n)
        y = row(inner)
        assert isinstance(y, Value)
        return n.last(y)

    return either


def calls(op: str, **attrs: Any) -> Row:
    """A row for an operator that has the same inputs, and no attributes."""

    def row(n: Node) -> Value:
        return n.call(op, *n.x, **attrs)

    return row


def is_open(value: Any) -> bool:
    """Whether a size is left open."""
    return isinstance(value, Dim)
