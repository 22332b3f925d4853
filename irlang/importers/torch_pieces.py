"""Pieces of a tensor: what takes some of its elements along an axis."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from irlang.importers.torch_call import Call, Rule, Uncovered, Value
from irlang.importers.torch_views import bounds


def piece(c: Call, x: Value, axis: int, first: int, end: int, step: int = 1) -> Value:
    """Positions first, first + step, … before end of an axis."""
    size = x.shape[axis]
    if first == 0 and step == 1 and end is size:
        return x
    attrs: dict[str, Any] = {"axes": [axis]}
    if first != 0:
        attrs["begin"] = [first]
    if end is not size:
        attrs["end"] = [end]
    if step != 1:
        attrs["step"] = [step]
    return c("slice", x, **attrs)


def _slice(c: Call) -> Value:
    x = c.tensor("self")
    axis = c.axis("dim", x.rank, 0)
    return piece(c, x, axis, *bounds(c, x.shape[axis]))


def _narrow(c: Call) -> Value:
    x = c.tensor("self")
    axis = c.axis("dim", x.rank)
    first = c.number("start")
    first = first + x.shape[axis] if first < 0 else first
    return piece(c, x, axis, first, first + c.whole("length"))


def at(c: Call, x: Value, axis: int, index: int) -> Value:
    """One position of an axis, which goes."""
    index = index + x.shape[axis] if index < 0 else index
    return c("squeeze", piece(c, x, axis, index, index + 1), axes=[axis])


def _select(c: Call) -> Value:
    x = c.tensor("self")
    return at(c, x, c.axis("dim", x.rank), c.whole("index"))


def _unbind(c: Call) -> list[Value]:
    x = c.tensor("self")
    axis = c.axis("dim", x.rank, 0)
    return [at(c, x, axis, i) for i in range(int(x.shape[axis]))]


def parts(c: Call, x: Value, axis: int, sizes: Sequence[int]) -> list[Value]:
    """Pieces of the given sizes."""
    if len(sizes) == 1:
        return [x]
    return c.several("split", x, axis=axis, sizes=list(sizes))


def pieces(c: Call, x: Value, axis: int, size: int) -> list[Value]:
    """Pieces of a size, the last of which may be smaller."""
    whole = x.shape[axis]
    if size == 0:
        return [x]
    sizes = [min(size, whole - i) for i in range(0, int(whole), int(size))] or [whole]
    return parts(c, x, axis, sizes)


def _split(c: Call) -> list[Value]:
    x = c.tensor("self")
    return pieces(c, x, c.axis("dim", x.rank, 0), c.whole("split_size"))


def _split_sizes(c: Call) -> list[Value]:
    x = c.tensor("self")
    return parts(c, x, c.axis("dim", x.rank, 0), c.numbers("split_sizes"))


def _chunk(c: Call) -> list[Value]:
    x = c.tensor("self")
    axis, count = c.axis("dim", x.rank, 0), c.whole("chunks")
    if x.shape[axis] == 0:
        return parts(c, x, axis, [0] * count)
    return pieces(c, x, axis, -(-x.shape[axis] // count))


def _cuts(c: Call, x: Value, axis: int, given: Any) -> list[Value]:
    """tensor_split: as many pieces, or pieces that end at the given positions."""
    size = int(x.shape[axis])
    if isinstance(given, Value):
        array = c.known(given)
        if array is None:
            raise Uncovered("where it is split is not known")
        given = array.tolist()
    if isinstance(given, int):
        if given < 1:
            raise Uncovered("no pieces")
        few, more = divmod(size, given)
        ends = np.cumsum([few + 1] * more + [few] * (given - more)).tolist()[:-1]
    else:
        ends = [min(max(e + size if e < 0 else e, 0), size) for e in given]
    edges = [0, *ends, size]
    return [
        piece(c, x, axis, a, max(a, b)) if (a, b) != (0, size) else x
        for a, b in itertools.pairwise(edges)
    ]


def _tensor_split(c: Call) -> list[Value]:
    x = c.tensor("self")
    names = ("sections", "indices", "tensor_indices_or_sections", "indices_or_sections")
    given = next(c.get(name) for name in names if c.has(name))
    if isinstance(given, Value) and given.rank == 0:
        given = int(c.number("tensor_indices_or_sections"))
    return _cuts(c, x, c.axis("dim", x.rank, 0), given)


def _axis_split(axis: int) -> Rule:
    def rule(c: Call) -> list[Value]:
        x = c.tensor("self")
        given = c.get("sections") if c.has("sections") else c.get("indices")
        return _cuts(c, x, 0 if axis == 1 and x.rank == 1 else axis, given)

    return rule


PIECES: dict[str, Rule] = {
    "slice": _slice,
    "narrow": _narrow,
    "select": _select,
    "unbind": _unbind,
    "split": _split,
    "unsafe_split": _split,
    "split_with_sizes": _split_sizes,
    "unsafe_split_with_sizes": _split_sizes,
    "chunk": _chunk,
    "unsafe_chunk": _chunk,
    "tensor_split": _tensor_split,
    "hsplit": _axis_split(1),
    "vsplit": _axis_split(0),
    "dsplit": _axis_split(2),
}  # fmt: skip
