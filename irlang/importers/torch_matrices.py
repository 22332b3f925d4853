"""Diagonals, triangles, windows, grids: elements moved by positions that are known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from irlang.importers.torch_call import Call, Rule, Uncovered, Value
from irlang.importers.torch_shapes import permuted, raised, swapped


def _rot90(c: Call) -> Value:
    x = c.tensor("self")
    i, j = (int(d) % x.rank for d in c.numbers("dims", [0, 1]))
    turns = c.whole("k", 1) % 4
    if turns == 0:
        return x
    if turns == 2:
        return c("reverse", x, axes=[i, j])
    if turns == 1:
        return swapped(c, c("reverse", x, axes=[j]), i, j)
    return c("reverse", swapped(c, x, i, j), axes=[j])


def _triangle(upper: bool) -> Rule:
    return lambda c: c("trilu", c.tensor("self"), k=c.whole("diagonal", 0), upper=upper)


def diagonal(c: Call, x: Value, offset: int, i: int, j: int) -> Value:
    """The diagonal of two axes as the last axis."""
    rest = [d for d in range(x.rank) if d not in (i, j)]
    x = permuted(c, x, [*rest, i, j])
    rows, columns = int(x.shape[-2]), int(x.shape[-1])
    lead = list(x.shape[:-2])
    first = max(-offset, 0) * columns + max(offset, 0)
    count = max(0, min(rows - max(-offset, 0), columns - max(offset, 0)))
    flat = c.reshape(x, [*lead, rows * columns])
    places = first + (columns + 1) * np.arange(count)
    return c("gather", flat, c.param(places.astype(np.int64)), axis=len(lead))


def _diagonal(c: Call) -> Value:
    x = c.tensor("self" if "self" in c.node.args else "A")
    first = -2 if "linalg" in c.node.target else 0
    i, j = c.axis("dim1", x.rank, first), c.axis("dim2", x.rank, first + 1)
    return diagonal(c, x, c.whole("offset", 0), i, j)


def embedded(c: Call, x: Value, offset: int = 0, i: int = -2, j: int = -1) -> Value:
    """The last axis as the diagonal of matrices whose axes are i and j."""
    count = int(x.shape[-1])
    size = count + abs(offset)
    lead = list(x.shape[:-1])
    places = np.full((size, size), count, np.int64)
    for n in range(count):
        places[n + max(-offset, 0), n + max(offset, 0)] = n
    before, after = [0] * x.rank, [0] * (x.rank - 1) + [1]
    longer = c("pad", x, before=before, after=after)
    full = c("gather", longer, c.param(places), axis=len(lead))
    rank = x.rank + 1
    i, j = i % rank, j % rank
    places_of = {i: rank - 2, j: rank - 1}
    rest = iter(range(rank - 2))
    return permuted(c, full, [places_of[d] if d in places_of else next(rest) for d in range(rank)])


def _diag_embed(c: Call) -> Value:
    return embedded(
        c, c.tensor("self"), c.whole("offset", 0), c.whole("dim1", -2), c.whole("dim2", -1)
    )


def _diag(c: Call) -> Value:
    x, offset = c.tensor("self"), c.whole("diagonal", 0)
    return embedded(c, x, offset) if x.rank == 1 else diagonal(c, x, offset, 0, 1)


def _diagflat(c: Call) -> Value:
    x = c.tensor("self")
    return embedded(c, c.reshape(x, [math.prod(x.shape)]), c.whole("offset", 0))


def windows(c: Call, x: Value, axis: int, size: int, step: int) -> Value:
    """Windows along an axis, each as a new last axis."""
    count = (int(x.shape[axis]) - size) // step + 1
    places = step * np.arange(count)[:, None] + np.arange(size)[None, :]
    taken = c("gather", x, c.param(places.astype(np.int64)), axis=axis)
    order = [d for d in range(taken.rank) if d != axis + 1] + [axis + 1]
    return permuted(c, taken, order)


def _unfold(c: Call) -> Value:
    x = c.tensor("self")
    if x.rank == 0:
        return c.reshape(x, c.result().shape)
    return windows(c, x, c.axis("dimension", x.rank), c.whole("size"), c.whole("step"))


def strided(c: Call, count: int) -> np.ndarray[Any, np.dtype[Any]]:
    """The places in memory that sizes and strides name, inside so many elements."""
    sizes, strides = c.numbers("size"), c.numbers("stride")
    first = c.whole("storage_offset") if c.has("storage_offset") else 0
    places = np.full(tuple(int(n) for n in sizes), first)
    for d, (n, s) in enumerate(zip(sizes, strides, strict=True)):
        shape = [-1 if e == d else 1 for e in range(len(sizes))]
        places = places + (s * np.arange(n)).reshape(shape)
    if places.size and (places.min() < 0 or places.max() >= count):
        raise Uncovered("it reads the memory of another tensor")
    return places.astype(np.int64)


def _as_strided(c: Call) -> Value:
    x = c.tensor("self")
    count = math.prod(x.shape)
    flat = c.reshape(x, [count])
    return c("gather", flat, c.param(strided(c, count)), axis=0)


def _meshgrid(c: Call) -> list[Value]:
    tensors = c.get("tensors")
    vectors = [c.reshape(t, [math.prod(t.shape)]) for t in tensors]
    turned = c.get("indexing", "ij") == "xy" and len(vectors) >= 2
    if turned:
        vectors[:2] = vectors[1::-1]
    shape = [v.shape[0] for v in vectors]
    grids = []
    for d, v in enumerate(vectors):
        lone = c.reshape(v, [n if e == d else 1 for e, n in enumerate(shape)])
        grids.append(c.broadcast(lone, shape))
    if turned:
        grids[:2] = grids[1::-1]
    return grids


def _block_diagonal(c: Call) -> Value:
    rows = []
    tensors = [raised(c, c.cast(t, c.out), 2) for t in c.get("tensors")]
    width = sum(int(t.shape[1]) for t in tensors)
    at_ = 0
    for t in tensors:
        before, after = [0, at_], [0, width - at_ - int(t.shape[1])]
        rows.append(c("pad", t, before=before, after=after))
        at_ += int(t.shape[1])
    return rows[0] if len(rows) == 1 else c("concat", *rows, axis=0)


def _diagonal_scatter(c: Call) -> Value:
    x = c.tensor("self")
    i, j = c.axis("dim1", x.rank, 0), c.axis("dim2", x.rank, 1)
    source = c.cast(c.tensor("src"), x.dtype)
    offset = c.whole("offset", 0)
    size = [int(x.shape[i]), int(x.shape[j])]
    lead = [d for d in range(x.rank) if d not in (i, j)]
    count = int(source.shape[-1])
    places = np.arange(size[0] * size[1])
    for n in range(count):
        places[(n + max(-offset, 0)) * size[1] + n + max(offset, 0)] = size[0] * size[1] + n
    moved = permuted(c, x, [*lead, i, j])
    flat = c.reshape(moved, [*moved.shape[:-2], size[0] * size[1]])
    both = c("concat", flat, source, axis=len(lead))
    taken = c("gather", both, c.param(places.astype(np.int64)), axis=len(lead))
    back = c.reshape(taken, moved.shape)
    order = [*lead, i, j]
    return permuted(c, back, [order.index(d) for d in range(x.rank)])


def _strided_scatter(c: Call) -> Value:
    x, source = c.tensor("self"), c.cast(c.tensor("src"), c.out)
    count, more = math.prod(x.shape), math.prod(source.shape)
    places = np.arange(count)
    places[strided(c, count).reshape(-1)] = count + np.arange(more)
    both = c("concat", c.reshape(x, [count]), c.reshape(source, [more]), axis=0)
    return c.reshape(c("gather", both, c.param(places), axis=0), x.shape)


MATRICES: dict[str, Rule] = {
    "as_strided_scatter": _strided_scatter,
    "rot90": _rot90,
    "diagonal_scatter": _diagonal_scatter,
    "tril": _triangle(False),
    "triu": _triangle(True),
    "diagonal": _diagonal,
    "linalg_diagonal": _diagonal,
    "diag_embed": _diag_embed,
    "diag": _diag,
    "diagflat": _diagflat,
    "unfold": _unfold,
    "as_strided": _as_strided,
    "meshgrid": _meshgrid,
    "block_diag": _block_diagonal,
}
