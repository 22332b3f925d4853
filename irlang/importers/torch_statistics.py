"""Order statistics that leave out NaN, the commonest element, histograms, finite differences; and
the gradients that a program may hold as operators of its own.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from irlang.dtypes import DTYPES
from irlang.importers.torch_call import FLOATS, Call, Rule, Uncovered, Value
from irlang.importers.torch_indexing import Places, put
from irlang.importers.torch_pieces import piece
from irlang.importers.torch_reductions import ranked


def _along(c: Call, x: Value) -> tuple[Value, int]:
    """The axis that is meant; all elements in one where none is."""
    if c.has("dim"):
        x = c.reshape(x, [1]) if x.rank == 0 else x
        return x, c.axis("dim", x.rank)
    return c.reshape(x, [math.prod(x.shape)]), 0


def _shaped(c: Call, found: list[Value]) -> Any:
    """Results with the axis of size 1 that is left, or without."""
    if len(c.node.results) == 1:
        return c.reshape(found[0], c.result().shape)
    return [c.reshape(item, c.result(i).shape) for i, item in enumerate(found)]


def _nan_median(c: Call) -> Any:
    """The lower of two in the middle of what is not NaN; NaN is sorted last."""
    x, axis = _along(c, c.tensor("self"))
    values, places = ranked(c, x, axis, False)
    if x.dtype in FLOATS:
        there = c.cast(c("logical_not", c("isnan", x)), "i64")
        count = c("reduce_sum", there, axes=[axis], keepdims=True)
        middle = c("floor_divide", c("maximum", c("subtract", count, 1), 0), 2)
        found = [c("take_along_axis", item, middle, axis=axis) for item in (values, places)]
    else:
        n = (int(x.shape[axis]) - 1) // 2
        found = [piece(c, item, axis, n, n + 1) for item in (values, places)]
    return _shaped(c, found)


def _mode(c: Call) -> Any:
    """The commonest element, the smallest of several."""
    x = c.tensor("self")
    if x.rank == 0:
        return [x, c.param(0, (), "i64")]
    axis = c.axis("dim", x.rank, -1)
    values, places = ranked(c, x, axis, False)
    same = c(
        "equal", c("expand_dims", values, axes=[axis]), c("expand_dims", values, axes=[axis + 1])
    )
    count = c("reduce_sum", c.cast(same, "i64"), axes=[axis])
    best = c("argmax", count, axis=axis, keepdims=True)
    return _shaped(c, [c("take_along_axis", item, best, axis=axis) for item in (values, places)])


def _histogram(c: Call) -> Value:
    x = c.tensor("self")
    bins, low, high = c.whole("bins", 100), c.number("min", 0), c.number("max", 0)
    flat = c.reshape(x, [math.prod(x.shape), 1])
    if low == high:
        raise Uncovered("a range that depends on values")
    inside = c("logical_and", c("greater_equal", flat, low), c("less_equal", flat, high))
    share = c("divide", c("subtract", flat, low), high - low)
    place = c("minimum", c("floor", c("multiply", share, float(bins))), float(bins - 1))
    line = c.param(np.arange(bins).astype(DTYPES[x.dtype].numpy))
    here = c("logical_and", inside, c("equal", place, line))
    return c("reduce_sum", c.cast(here, x.dtype), axes=[0])


def _gradient(c: Call) -> list[Value]:
    x = c.tensor("self")
    dims = c.get("dim")
    axes = [dims] if isinstance(dims, int) else dims or list(range(x.rank))
    spacing = c.get("spacing", 1)
    if isinstance(spacing, list) and any(isinstance(item, Value) for item in spacing):
        raise Uncovered("coordinates that are tensors")
    steps = (
        spacing if isinstance(spacing, list) else [1 if spacing is None else spacing] * len(axes)
    )
    found = []
    for number, (axis, step) in enumerate(zip(axes, steps, strict=True)):
        axis %= x.rank
        size = x.shape[axis]
        y = c.cast(x, c.result(number).dtype)

        def take(first: int, end: int, y: Value = y, axis: int = axis) -> Value:
            return piece(c, y, axis, first, end)

        middle = c("divide", c("subtract", take(2, size), take(0, size - 2)), 2 * step)
        if c.whole("edge_order", 1) == 1:
            first = c("subtract", take(1, 2), take(0, 1))
            last = c("subtract", take(size - 1, size), take(size - 2, size - 1))
        else:
            first = _edge(c, -1.0, take(0, 1), take(1, 2), take(2, 3))
            ends = [take(size - i - 1, size - i) for i in range(3)]
            last = _edge(c, 1.0, *ends)
        ends = [c("divide", item, step) for item in (first, last)]
        found.append(c("concat", ends[0], middle, ends[1], axis=axis))
    return found


def _edge(c: Call, sign: float, a: Value, b: Value, d: Value) -> Value:
    """The difference of second order at an end: sign * (1.5 a - 2 b + 0.5 d)."""
    inner = c("subtract", c("multiply", a, 1.5 * sign), c("multiply", b, 2.0 * sign))
    return c("add", inner, c("multiply", d, 0.5 * sign))


def _static_places(c: Call) -> Value:
    """The positions of what is not zero, as many as are asked for; `fill_value` after the last."""
    x, size = c.tensor("self"), c.whole("size")
    count = math.prod(int(n) for n in x.shape)
    if x.rank == 0 or count == 0 or size == 0:
        return c.param(c.whole("fill_value", -1), c.result().shape, "i64")
    mask = c.cast(c.cast(c.reshape(x, [count]), "bool"), "u8")
    _, places = ranked(c, mask, 0, True, stable=True)
    taken = piece(c, places, 0, 0, min(size, count))
    if size > count:
        taken = c("pad", taken, before=[0], after=[size - count])
    line = c.param(np.arange(size))
    there = c("less", line, c("reduce_sum", c.cast(mask, "i64")))
    columns, unit = [], count
    for n in x.shape:
        unit //= int(n)
        place = c("modulo", c("floor_divide", taken, unit), int(n))
        columns.append(c("where", there, place, c.whole("fill_value", -1)))
    return c("stack", *columns, axis=1)


# ---- indices that a mask guards


def _bounded(c: Call) -> list[Value | None]:
    """The indices, brought inside their axes: what lies outside is masked."""
    x = c.tensor("self")
    return [
        item if item is None else c("clip", c.cast(item, "i64"), min=0, max=int(x.shape[d]) - 1)
        for d, item in enumerate(c.get("indices"))
    ]


def _masked_index(c: Call) -> Value:
    x = c.tensor("self")
    found = Places(c, x, _bounded(c))
    taken = c("gather", found.moved, found.rows, axis=0)
    order = found.result_order()
    taken = taken if order == sorted(order) else c("transpose", taken, perm=order)
    fill = c.as_tensor(c.get("fill"), x.dtype)
    return c("where", c.cast(c.tensor("mask"), "bool"), taken, fill)


def _masked_index_add(c: Call) -> Value:
    x = c.tensor("self")
    found = Places(c, x, _bounded(c))
    if found.rest:
        raise Uncovered("fewer indices than axes")
    values = c("where", c.cast(c.tensor("mask"), "bool"), c.tensor("values"), 0)
    values = c.reshape(c.broadcast(values, found.shape), [math.prod(found.shape)])
    rows = c.reshape(found.rows, [math.prod(found.shape)])
    y = put(c, found.moved, rows, values, 0, "add", True, "scatter_slices")
    return c.reshape(y, x.shape)


# ---- gradients


def _softmax_gradient(c: Call) -> Value:
    g, y = c.tensor("grad_output"), c.tensor("output")
    if y.rank == 0:
        return c("multiply", y, c("subtract", g, c("multiply", g, y)))
    inner = c("reduce_sum", c("multiply", g, y), axes=[c.axis("dim", y.rank)], keepdims=True)
    return c("multiply", y, c("subtract", g, inner))


def _dropout_gradient(c: Call) -> Value:
    g = c.cast(c.tensor("grad_output"), c.out)
    mask = c.cast(c.tensor("mask"), c.out)
    return c("multiply", c("multiply", g, mask), c.number("scale"))


def _pool_gradient(c: Call) -> Value:
    x, g, places = (c.tensor(name) for name in ("self", "grad_output", "indices"))
    lead, inner = list(x.shape[:-2]), math.prod(x.shape[-2:])
    zeros = c.broadcast(c.param(0, (), g.dtype), [*lead, inner])
    updates, ids = (c.reshape(t, [*lead, math.prod(g.shape[-2:])]) for t in (g, places))
    y = c("scatter_elements", zeros, ids, updates, axis=len(lead), reduction="add")
    return c.reshape(y, x.shape)


STATISTICS: dict[str, Rule] = {
    "nanmedian": _nan_median,
    "mode": _mode,
    "histc": _histogram,
    "gradient": _gradient,
    "nonzero_static": _static_places,
    "_unsafe_masked_index": _masked_index,
    "_unsafe_masked_index_put_accumulate": _masked_index_add,
    "_softmax_backward_data": _softmax_gradient,
    "native_dropout_backward": _dropout_gradient,
    "max_pool2d_with_indices_backward": _pool_gradient,
}
