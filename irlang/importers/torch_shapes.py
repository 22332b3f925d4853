"""Shapes: what moves elements without changing them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from irlang.importers.sizes import is_open
from irlang.importers.torch_call import Call, Rule, Uncovered, Value
from irlang.importers.torch_pieces import piece
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
    """Padding in PyTorch's order: pairs from the last axis on. A circular one goes round what a
    negative amount leaves.
    """
    if mode == "circular" and min(given, default=0) < 0:
        x = padded(c, x, [min(n, 0) for n in given], "constant", 0)
        given = [max(n, 0) for n in given]
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


def _sum_to_size(c: Call) -> Value:
    x, shape = c.tensor("self"), c.result().shape
    lead = x.rank - len(shape)
    axes = list(range(lead)) + [
        lead + d for d, n in enumerate(shape) if n == 1 and x.shape[lead + d] != 1
    ]
    x = c.cast(x, c.out)
    found = c("reduce_sum", x, axes=axes, keepdims=True) if axes else x
    return c.reshape(found, shape)


def _resized(c: Call) -> Value:
    """The first elements in another shape."""
    x, shape = c.tensor("self"), c.result().shape
    count = math.prod(shape)
    if count > math.prod(x.shape):
        raise Uncovered("its elements are whatever was in memory")
    return c.reshape(piece(c, c.reshape(x, [math.prod(x.shape)]), 0, 0, count), shape)


def _chunk_concat(c: Call) -> Value:
    """Every tensor in so many pieces, filled up with zeros; the pieces side by side."""
    count, parts_ = c.whole("num_chunks"), []
    for t in c.get("tensors"):
        axis = c.axis("dim", t.rank)
        after = [0] * t.rank
        after[axis] = -int(t.shape[axis]) % count
        t = c("pad", t, before=[0] * t.rank, after=after) if any(after) else t
        rest = math.prod(t.shape[axis:]) // count
        parts_.append(c.reshape(t, [*t.shape[:axis], count, rest]))
    y = parts_[0] if len(parts_) == 1 else c("concat", *parts_, axis=parts_[0].rank - 1)
    return c.cast(y, c.out)


SHAPES: dict[str, Rule] = {
    "resize": _resized,
    "resize_as": _resized,
    "_chunk_cat": _chunk_concat,
    **dict.fromkeys(
        (
            *("view", "reshape", "_unsafe_view", "flatten", "unflatten", "ravel", "view_as"),
            *("reshape_as", "_reshape_alias", "numel"),
        ),
        to_result,
    ),
    **dict.fromkeys(
        (
            *("clone", "alias", "contiguous", "lift_fresh", "lift", "resolve_conj"),
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
    "broadcast_tensors": _broadcast_all,
    "channel_shuffle": _shuffle,
    "pixel_shuffle": _pixels("shuffle", "upscale_factor"),
    "pixel_unshuffle": _pixels("unshuffle", "downscale_factor"),
    "sum_to_size": _sum_to_size,
}  # fmt: skip
