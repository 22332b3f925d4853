"""Shapes, pieces and constants: what moves elements and what makes them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from irlang.dtypes import DTYPES
from irlang.importers.sizes import is_open
from irlang.importers.torch_call import Call, Rule, Uncovered, Value
from irlang.importers.torch_views import bounds, inserted


def to_result(c: Call) -> Value:
    """`self` in the shape that was recorded."""
    return c.reshape(c.tensor("self"), c.result().shape)


def _same(c: Call) -> Value:
    return c.tensor("self")


def _expand(c: Call) -> Value:
    return c.broadcast(c.tensor("self"), c.result().shape)


def swapped(c: Call, x: Value, i: int, j: int) -> Value:
    """Two axes exchanged."""
    order = list(range(x.rank))
    if i == j or not order:
        return x
    order[i], order[j] = order[j], order[i]
    return c("transpose", x, perm=order)


def permuted(c: Call, x: Value, order: Sequence[int]) -> Value:
    """Axes in another order."""
    order = list(order)
    return x if order == sorted(order) else c("transpose", x, perm=order)


def _transpose(first: str, second: str) -> Rule:
    def rule(c: Call) -> Value:
        x = c.tensor("self")
        return swapped(c, x, c.axis(first, x.rank), c.axis(second, x.rank))

    return rule


def _permute(c: Call) -> Value:
    x = c.tensor("self")
    return permuted(c, x, [int(d) % max(x.rank, 1) for d in c.numbers("dims")])


def _move(c: Call) -> Value:
    x = c.tensor("self")
    source = [int(d) % x.rank for d in c.numbers("source")]
    target = [int(d) % x.rank for d in c.numbers("destination")]
    rest = iter(d for d in range(x.rank) if d not in source)
    order = [source[target.index(d)] if d in target else next(rest) for d in range(x.rank)]
    return permuted(c, x, order)


def _matrix_transpose(c: Call) -> Value:
    x = c.tensor("self")
    return swapped(c, x, x.rank - 2, x.rank - 1) if x.rank >= 2 else x


def _unsqueeze(c: Call) -> Value:
    x = c.tensor("self")
    return c("expand_dims", x, axes=[c.whole("dim") % (x.rank + 1)])


def _squeeze(c: Call) -> Value:
    x = c.tensor("self")
    axes = c.axes("dim", x.rank) if "dim" in c.node.args else list(range(x.rank))
    if c.get("dim") == []:
        axes = []
    axes = [d for d in axes if not is_open(x.shape[d]) and x.shape[d] == 1]
    return c("squeeze", x, axes=axes) if axes else x


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


def _concat(c: Call) -> Value:
    tensors = [c.cast(item, c.out) for item in c.get("tensors")]
    kept = [item for item in tensors if item.shape != (0,)] or tensors[:1]
    axis = c.axis("dim", kept[0].rank, 0)
    return kept[0] if len(kept) == 1 else c("concat", *kept, axis=axis)


def _stack(c: Call) -> Value:
    tensors = [c.cast(item, c.out) for item in c.get("tensors")]
    return c("stack", *tensors, axis=c.whole("dim", 0) % (tensors[0].rank + 1))


def raised(c: Call, x: Value, rank: int) -> Value:
    """atleast_1d, 2d and 3d."""
    if x.rank >= rank:
        return x
    shape = [1] * (rank - x.rank) + list(x.shape)
    if rank == 3 and x.rank:
        shape = [1, *x.shape, 1] if x.rank == 1 else [*x.shape, 1]
    return c.reshape(x, shape)


def _raise(rank: int) -> Rule:
    def rule(c: Call) -> Any:
        if c.has("tensors"):
            return [raised(c, item, rank) for item in c.get("tensors")]
        return raised(c, c.tensor("self"), rank)

    return rule


def _joined(rank: int, axis: int) -> Rule:
    """hstack, vstack, dstack, column_stack."""

    def rule(c: Call) -> Value:
        tensors = [raised(c, c.cast(item, c.out), rank) for item in c.get("tensors")]
        where = 0 if rank == 1 and tensors[0].rank == 1 else axis
        return tensors[0] if len(tensors) == 1 else c("concat", *tensors, axis=where)

    return rule


def _columns(c: Call) -> Value:
    tensors = [c.cast(item, c.out) for item in c.get("tensors")]
    tensors = [c.reshape(t, [*t.shape, *[1] * (2 - t.rank)]) if t.rank < 2 else t for t in tensors]
    tensors = [c.reshape(t, [1, 1]) if t.rank < 2 else t for t in tensors]
    return tensors[0] if len(tensors) == 1 else c("concat", *tensors, axis=1)


def _flip(axes: Sequence[int] | None = None) -> Rule:
    def rule(c: Call) -> Value:
        x = c.tensor("self")
        chosen = list(axes) if axes is not None else [int(d) % x.rank for d in c.numbers("dims")]
        return c("reverse", x, axes=chosen) if chosen else x

    return rule


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


def _roll(c: Call) -> Value:
    x = c.tensor("self")
    shifts, axes = c.numbers("shifts"), c.get("dims") or []
    if not axes:
        flat = c.reshape(x, [math.prod(x.shape)])
        return c.reshape(c("roll", flat, shift=[int(shifts[0])], axes=[0]), x.shape)
    if 0 in x.shape:
        return x
    for shift, axis in zip(shifts, axes, strict=True):
        x = c("roll", x, shift=[int(shift)], axes=[int(axis) % x.rank])
    return x


def _tile(name: str) -> Rule:
    def rule(c: Call) -> Value:
        x = c.tensor("self")
        repeats = c.numbers(name, [])
        repeats = [1] * (x.rank - len(repeats)) + repeats
        x = c.reshape(x, [1] * (len(repeats) - x.rank) + list(x.shape))
        return x if all(n == 1 for n in repeats) else c("tile", x, repeats=repeats)

    return rule


def _repeat_interleave(c: Call) -> Value:
    x = c.tensor("self")
    repeats = c.get("repeats")
    if c.get("dim") is None:
        x = c.reshape(x, [math.prod(x.shape)])
    axis = c.axis("dim", x.rank, 0) if c.has("dim") else 0
    if isinstance(repeats, int):
        return c("repeat", x, repeats=repeats, axis=axis)
    counts = c.known(repeats)
    if counts is None:
        raise Uncovered("how often elements are repeated depends on values")
    places = np.repeat(
        np.arange(int(x.shape[axis])), np.broadcast_to(counts, (int(x.shape[axis]),))
    )
    return c("gather", x, c.param(places.astype(np.int64)), axis=axis)


_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def padded(c: Call, x: Value, given: Sequence[int], mode: str, value: Any) -> Value:
    """Padding in PyTorch's order: pairs from the last axis on."""
    before, after = [0] * x.rank, [0] * x.rank
    for i in range(len(given) // 2):
        before[x.rank - 1 - i], after[x.rank - 1 - i] = given[2 * i], given[2 * i + 1]
    attrs: dict[str, Any] = {"before": before, "after": after}
    if mode != "constant":
        attrs["mode"] = _MODES[mode]
    elif value:
        attrs["value"] = float(value)
    return c("pad", x, **attrs)


def _pad(c: Call) -> Value:
    mode = c.get("mode", "constant")
    if mode not in _MODES:
        raise Uncovered(f"the mode {mode}")
    return padded(c, c.tensor("self"), c.numbers("pad"), mode, c.get("value"))


def _pad_in(mode: str) -> Rule:
    return lambda c: padded(c, c.tensor("self"), c.numbers("padding"), mode, 0)


def _insert(kind: str) -> Rule:
    """select_scatter and slice_scatter."""

    def rule(c: Call) -> Value:
        x, source = c.tensor("self"), c.tensor("src")
        axis = c.axis("dim", x.rank, 0)
        if kind == "select":
            source = c("expand_dims", source, axes=[axis])
            return inserted(c, x, source, axis, c.whole("index"), 1)
        first, _, step = bounds(c, x.shape[axis])
        return inserted(c, x, source, axis, first, step)

    return rule


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


def _as_strided(c: Call) -> Value:
    x = c.tensor("self")
    sizes, strides = c.numbers("size"), c.numbers("stride")
    first = c.whole("storage_offset") if c.has("storage_offset") else 0
    places = np.full(tuple(int(n) for n in sizes), first)
    for d, (n, s) in enumerate(zip(sizes, strides, strict=True)):
        places = places + (s * np.arange(n)).reshape(
            [-1 if e == d else 1 for e in range(len(sizes))]
        )
    count = math.prod(x.shape)
    if places.size and (places.min() < 0 or places.max() >= count):
        raise Uncovered("it reads the memory of another tensor")
    flat = c.reshape(x, [count])
    return c("gather", flat, c.param(places.astype(np.int64)), axis=0)


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


def _broadcast_all(c: Call) -> list[Value]:
    return [c.broadcast(t, c.result(i).shape) for i, t in enumerate(c.get("tensors"))]


def _shuffle(c: Call) -> Value:
    x, groups = c.tensor("self"), c.whole("groups")
    n, channels, *rest = x.shape
    split = c.reshape(x, [n, groups, channels // groups, *rest])
    return c.reshape(swapped(c, split, 1, 2), x.shape)


def _pixels(op: str, name: str) -> Rule:
    def rule(c: Call) -> Value:
        x, factor = c.tensor("self"), c.whole(name)
        *lead, channels, high, wide = x.shape
        if op == "shuffle":
            split = c.reshape(x, [*lead, channels // factor**2, factor, factor, high, wide])
            order = [0, 3, 1, 4, 2]
        else:
            split = c.reshape(x, [*lead, channels, high // factor, factor, wide // factor, factor])
            order = [0, 2, 4, 1, 3]
        n = len(lead)
        mixed = permuted(c, split, [*range(n), *[n + d for d in order]])
        return c.reshape(mixed, c.result().shape)

    return rule


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


# ---- element types and constants


def _to(c: Call) -> Value:
    return c.cast(c.tensor("self"), c.out)


def _filled(value: Any = None, name: str = "fill_value") -> Rule:
    """zeros, ones, full and their like: one number everywhere."""

    def rule(c: Call) -> Value:
        number = c.get(name) if value is None else value
        if isinstance(number, Value):
            return c.broadcast(c.reshape(c.cast(number, c.out), []), c.result().shape)
        return c.param(number, c.result().shape, c.out)

    return rule


def _undefined(c: Call) -> Value:
    if 0 in c.result().shape:
        return c.param(0, c.result().shape, c.out)
    raise Uncovered("its elements are whatever was in memory")


def counted(c: Call, size: int, dtype: str) -> Value:
    """0, 1, 2, …"""
    if is_open(size):
        ones = c.param(1, (size,), dtype)
        return c("cumsum", ones, axis=0, exclusive=True)
    return c.param(np.arange(int(size)).astype(DTYPES[dtype].numpy))


def _arange(c: Call) -> Value:
    first, step = c.get("start", 0), c.get("step", 1)
    size = c.result().shape[0]
    if is_open(size) or is_open(first) or is_open(step):
        places = counted(c, size, c.out)
        if step != 1:
            places = c("multiply", places, step)
        return c("add", places, first) if first != 0 else places
    numbers = np.array([first + i * step for i in range(int(size))])
    return c.param(numbers.astype(DTYPES[c.out].numpy))


def _spaced(base: bool) -> Rule:
    def rule(c: Call) -> Value:
        first, last = c.number("start"), c.number("end")
        size = int(c.result().shape[0])
        step = (last - first) / (size - 1) if size > 1 else 0.0
        if c.out[0] in "iu" and not base:
            step_ = step
            half = size // 2
            values = [
                first + step_ * i if i < half else last - step_ * (size - 1 - i)
                for i in range(size)
            ]
            return c.param(np.trunc(np.array(values)).astype(DTYPES[c.out].numpy))
        values = [first + i * step for i in range(size)]
        if base:
            values = [float(c.number("base", 10.0)) ** v for v in values]
        array = np.array(values, np.float64)
        return c.param((np.trunc(array) if c.out[0] in "iu" else array).astype(DTYPES[c.out].numpy))

    return rule


def _eye(c: Call) -> Value:
    rows, columns = (int(n) for n in c.result().shape)
    return c.param(np.eye(rows, columns).astype(DTYPES[c.out].numpy))


def _triangle_places(upper: bool) -> Rule:
    def rule(c: Call) -> Value:
        shape = (c.whole("row"), c.whole("col"))
        if max(shape) > 4096:
            raise Uncovered("it is too large to be written out")
        full = np.ones(shape, bool)
        k = c.whole("offset", 0)
        found = np.nonzero(np.triu(full, k) if upper else np.tril(full, k))
        return c.param(np.stack(found).astype(DTYPES[c.out].numpy))

    return rule


def _size(c: Call) -> Any:
    x = c.tensor("self")
    return x.shape[c.axis("dim", x.rank)]


def _item(c: Call) -> Any:
    return c.number("self")


def _fill(c: Call) -> Value:
    x, value = c.tensor("self"), c.get("value")
    if isinstance(value, Value):
        return c.broadcast(c.cast(value, x.dtype), x.shape)
    return c.param(value, x.shape, x.dtype)


def _copy(c: Call) -> Value:
    x = c.tensor("self")
    return c.broadcast(c.cast(c.tensor("src"), x.dtype), x.shape)


def _sum_to_size(c: Call) -> Value:
    x, shape = c.tensor("self"), c.result().shape
    lead = x.rank - len(shape)
    axes = list(range(lead)) + [
        lead + d for d, n in enumerate(shape) if n == 1 and x.shape[lead + d] != 1
    ]
    x = c.cast(x, c.out)
    found = c("reduce_sum", x, axes=axes, keepdims=True) if axes else x
    return c.reshape(found, shape)


SHAPES: dict[str, Rule] = {
    **dict.fromkeys(
        (
            *("view", "reshape", "_unsafe_view", "flatten", "unflatten", "ravel", "view_as"),
            *("reshape_as", "_reshape_alias", "numel"),
        ),
        to_result,
    ),
    **dict.fromkeys(
        (
            *("clone", "detach", "alias", "contiguous", "lift_fresh", "lift", "resolve_conj"),
            *("resolve_neg", "conj", "conj_physical", "real", "requires_grad"),
        ),
        _same,
    ),
    **dict.fromkeys(("expand", "expand_as", "broadcast_to"), _expand),
    "transpose": _transpose("dim0", "dim1"),
    "swapaxes": _transpose("axis0", "axis1"),
    "swapdims": _transpose("dim0", "dim1"),
    "t": _matrix_transpose,
    "mT": _matrix_transpose,
    "mH": _matrix_transpose,
    "matrix_H": _matrix_transpose,
    "adjoint": _matrix_transpose,
    "numpy_T": lambda c: permuted(c, c.tensor("self"), range(c.tensor("self").rank)[::-1]),
    "permute": _permute,
    "movedim": _move,
    "moveaxis": _move,
    "squeeze": _squeeze,
    "unsqueeze": _unsqueeze,
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
    "cat": _concat,
    "concat": _concat,
    "concatenate": _concat,
    "stack": _stack,
    "hstack": _joined(1, 1),
    "vstack": _joined(2, 0),
    "row_stack": _joined(2, 0),
    "dstack": _joined(3, 2),
    "column_stack": _columns,
    "atleast_1d": _raise(1),
    "atleast_2d": _raise(2),
    "atleast_3d": _raise(3),
    "flip": _flip(),
    "fliplr": _flip([1]),
    "flipud": _flip([0]),
    "rot90": _rot90,
    "roll": _roll,
    "repeat": _tile("repeats"),
    "tile": _tile("dims"),
    "repeat_interleave": _repeat_interleave,
    "pad": _pad,
    "constant_pad_nd": _pad,
    **{f"reflection_pad{d}d": _pad_in("reflect") for d in (1, 2, 3)},
    **{f"replication_pad{d}d": _pad_in("replicate") for d in (1, 2, 3)},
    "select_scatter": _insert("select"),
    "slice_scatter": _insert("slice"),
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
    "broadcast_tensors": _broadcast_all,
    "channel_shuffle": _shuffle,
    "pixel_shuffle": _pixels("shuffle", "upscale_factor"),
    "pixel_unshuffle": _pixels("unshuffle", "downscale_factor"),
    "block_diag": _block_diagonal,
    "sum_to_size": _sum_to_size,
    # element types and constants
    "to": _to,
    "_to_copy": _to,
    "type_as": _to,
    **dict.fromkeys(("zeros", "zeros_like", "new_zeros", "zero"), _filled(0)),
    **dict.fromkeys(("ones", "ones_like", "new_ones"), _filled(1)),
    **dict.fromkeys(("full", "full_like", "new_full"), _filled()),
    "scalar_tensor": _filled(None, "s"),
    **dict.fromkeys(
        (
            *("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided"),
            "empty_permuted",
        ),
        _undefined,
    ),
    "fill": _fill,
    "copy": _copy,
    "arange": _arange,
    "linspace": _spaced(False),
    "logspace": _spaced(True),
    "eye": _eye,
    "tril_indices": _triangle_places(False),
    "triu_indices": _triangle_places(True),
    "sym_size": _size,
    "item": _item,
    "_local_scalar_dense": _item,
}  # fmt: skip
SHAPES |= {
    f"{name}_copy": SHAPES[name]
    for name in (
        *("alias", "detach", "expand", "permute", "squeeze", "unsqueeze", "transpose", "t", "view"),
        *("slice", "select", "narrow", "unbind", "split", "split_with_sizes", "diagonal", "unfold"),
        *("lift_fresh", "as_strided"),
    )
}
