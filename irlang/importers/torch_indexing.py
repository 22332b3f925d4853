"""Elements at positions: indexing, gathering, scattering, searching."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from irlang.dtypes import DTYPES, integer_range
from irlang.importers.torch_call import FLOATS, Call, Rule, Uncovered, Value
from irlang.importers.torch_elementwise import plain, truth
from irlang.importers.torch_shapes import permuted


def _lined(x: Value, c: Call) -> Value:
    """At least one axis."""
    return c.reshape(x, [1]) if x.rank == 0 else x


def _whole(c: Call, ids: Value) -> Value:
    """Positions as signed integers."""
    return c.cast(ids, "i64") if ids.dtype in ("u8", "bool") else ids


def _select(c: Call) -> Value:
    x, ids = c.tensor("self"), c.tensor("index")
    if x.rank == 0:
        return x
    return c("gather", x, _lined(ids, c), axis=c.axis("dim", x.rank))


def _take(c: Call) -> Value:
    x, ids = c.tensor("self"), c.tensor("index")
    flat = c.reshape(x, [math.prod(x.shape)])
    return c("gather", flat, ids, axis=0, negative="from_end")


def fitted(c: Call, x: Value, ids: Value, axis: int) -> Value:
    """The part of `x` that positions of a smaller shape reach."""
    axes = [d for d in range(x.rank) if d != axis and x.shape[d] != ids.shape[d]]
    if not axes:
        return x
    return c("slice", x, axes=axes, end=[ids.shape[d] for d in axes])


def _gather(c: Call) -> Value:
    x, ids = c.tensor("self"), c.tensor("index")
    axis = c.axis("dim", x.rank)
    x, lined = _lined(x, c), _lined(ids, c)
    if 0 in lined.shape:
        return c.param(0, c.result().shape, c.out)
    y = c("take_along_axis", fitted(c, x, lined, axis), lined, axis=axis)
    return c.reshape(y, ids.shape)


def _take_along(c: Call) -> Value:
    x, ids = c.tensor("self"), c.tensor("indices")
    if not c.has("dim"):
        flat, places = (c.reshape(t, [math.prod(t.shape)]) for t in (x, ids))
        return c("take_along_axis", flat, places, axis=0, negative="from_end")
    axis = c.axis("dim", x.rank)
    shape = np.broadcast_shapes(
        *[tuple(1 if d == axis else int(n) for d, n in enumerate(t.shape)) for t in (x, ids)]
    )
    x, ids = (
        c.broadcast(t, [t.shape[d] if d == axis else n for d, n in enumerate(shape)])
        for t in (x, ids)
    )
    return c("take_along_axis", x, ids, axis=axis, negative="from_end")


# ---- indices for several axes


class Places:
    """`x[indices]` as rows of a matrix: which axes are indexed, and the number of each row.

    moved: `x` with the indexed axes first, as one. rows: the positions along it, of shape `shape`.
    """

    def __init__(self, c: Call, x: Value, indices: list[Value | None]) -> None:
        indices = self._unmasked(c, indices)
        self.axes = [d for d, item in enumerate(indices) if item is not None]
        tensors = [_whole(c, item) for item in indices if item is not None]
        self.shape = np.broadcast_shapes(*[tuple(int(n) for n in t.shape) for t in tensors])
        self.rest = [d for d in range(x.rank) if d not in self.axes]
        self.order = [*self.axes, *self.rest]
        sizes = [x.shape[d] for d in self.axes]
        rows: Value | None = None
        for size, t in zip(sizes, tensors, strict=True):
            t = c.cast(t, "i64")
            if rows is None and len(sizes) == 1:
                rows = t
                break
            t = c("modulo", t, size)
            rows = t if rows is None else c("add", c("multiply", rows, size), t)
        assert rows is not None
        self.rows = rows if rows.shape == self.shape else c.broadcast(rows, self.shape)
        moved = permuted(c, x, self.order)
        self.moved_shape = moved.shape
        self.moved = c.reshape(moved, [math.prod(sizes), *[x.shape[d] for d in self.rest]])
        joined = self.axes == list(range(self.axes[0], self.axes[0] + len(self.axes)))
        self.place = self.axes[0] if joined else 0

    def _unmasked(self, c: Call, indices: list[Value | None]) -> list[Value | None]:
        found: list[Value | None] = []
        for item in indices:
            if item is None or item.dtype not in ("bool", "u8"):
                found.append(item)
                continue
            mask = c.known(item)
            if mask is None:
                raise Uncovered("the size of its result depends on values")
            found += [c.param(places.astype(np.int64)) for places in np.nonzero(mask)]
        return found

    def result_order(self) -> list[int]:
        """Where the axes of a result go that has those of the rows first."""
        count = len(self.shape)
        before = list(range(count, count + self.place))
        return [*before, *range(count), *range(count + self.place, count + len(self.rest))]


def _index(c: Call) -> Value:
    x, indices = c.tensor("self"), c.get("indices")
    if all(item is None for item in indices):
        return x
    found = Places(c, x, indices)
    if 0 in c.result().shape:
        return c.param(0, c.result().shape, c.out)
    if len(found.axes) == 1:
        return c("gather", x, found.rows, axis=found.axes[0], negative="from_end")
    taken = c("gather", found.moved, found.rows, axis=0)
    return permuted(c, taken, found.result_order())


def _index_put(c: Call) -> Value:
    x, indices = c.tensor("self"), c.get("indices")
    values = c.cast(c.tensor("values"), x.dtype)
    add = c.flag("accumulate")
    masks = [item for item in indices if item is not None and item.dtype == "bool"]
    if masks and len(indices) == 1 and c.known(masks[0]) is None:
        if math.prod(values.shape) != 1:
            raise Uncovered("how many values it takes depends on a mask")
        mask = c.reshape(masks[0], [*masks[0].shape, *[1] * (x.rank - masks[0].rank)])
        values = c.reshape(values, [])
        return c("where", mask, c("add", x, values) if add else values, x)
    if all(item is None for item in indices):
        values = c.broadcast(values, x.shape)
        return c("add", x, values) if add else values
    found = Places(c, x, indices)
    rest = [x.shape[d] for d in found.rest]
    order = found.result_order()
    both = [*found.shape, *rest]
    values = c.broadcast(values, [both[d] for d in order])
    values = permuted(c, values, [order.index(d) for d in range(len(order))])
    count = math.prod(found.shape)
    if count == 0:
        return x
    rows = c.reshape(found.rows, [count])
    put = c(
        "scatter_slices",
        _number(c, found.moved),
        rows,
        _number(c, c.reshape(values, [count, *rest])),
        axis=0,
        reduction="add" if add else "none",
        negative="from_end",
    )
    back = c.reshape(c.cast(put, x.dtype), found.moved_shape)
    return permuted(c, back, [found.order.index(d) for d in range(x.rank)])


def _number(c: Call, x: Value) -> Value:
    return c.cast(x, "u8") if x.dtype == "bool" else x


# ---- scattering

_REDUCTIONS = {
    None: "none", "add": "add", "sum": "add", "multiply": "mul", "prod": "mul", "amax": "max",
    "amin": "min", "mean": "add",
}  # fmt: skip


def _neutral(dtype: str, reduction: str) -> Any:
    if reduction in ("add", "mul"):
        return 0 if reduction == "add" else 1
    if DTYPES[dtype].kind == "real":
        return -math.inf if reduction == "max" else math.inf
    return integer_range(dtype)[0 if reduction == "max" else 1]


def put(
    c: Call,
    x: Value,
    ids: Value,
    updates: Value,
    axis: int,
    how: str | None,
    own: bool,
    op: str,
) -> Value:
    """A scatter of elements or slices. own: whether what was there takes part."""
    reduction = _REDUCTIONS[how]
    dtype = x.dtype
    x, updates = _number(c, x), _number(c, updates)
    work = x.dtype
    hits: Value | None = None
    if not own or how == "mean":
        ones = c.broadcast(c.param(1, (), "i64"), updates.shape)
        zeros = c.broadcast(c.param(0, (), "i64"), x.shape)
        hits = c(op, zeros, ids, ones, axis=axis, reduction="add")
    base = x
    if not own and hits is not None:
        base = c("where", c("greater", hits, 0), _neutral(work, reduction), x)
    y = c(op, base, ids, updates, axis=axis, reduction=reduction)
    if how == "mean" and hits is not None:
        count = c("add", hits, 1) if own else c("maximum", hits, 1)
        y = c("divide" if work in FLOATS else "floor_divide", y, c.cast(count, work))
    return c.cast(y, dtype)


def _scatter(reduction: str | None = None) -> Rule:
    def rule(c: Call) -> Value:
        x, ids = c.tensor("self"), c.tensor("index")
        axis = c.axis("dim", x.rank)
        how = c.get("reduce") or reduction
        source = c.get("src") if c.has("src") else c.get("value")
        shape = x.shape
        x, ids = _lined(x, c), _lined(ids, c)
        if isinstance(source, Value):
            source = _lined(source, c)
            axes = [d for d in range(x.rank) if source.shape[d] != ids.shape[d]]
            if axes:
                source = c("slice", source, axes=axes, end=[ids.shape[d] for d in axes])
        else:
            source = c.broadcast(c.param(source, (), x.dtype), ids.shape)
        if 0 in ids.shape:
            return c.tensor("self")
        own = c.flag("include_self", True)
        return c.reshape(put(c, x, ids, source, axis, how, own, "scatter_elements"), shape)

    return rule


def _slices(reduction: str | None = None) -> Rule:
    """index_add, index_copy, index_reduce."""

    def rule(c: Call) -> Value:
        x, ids = c.tensor("self"), _lined(c.tensor("index"), c)
        axis = c.axis("dim", x.rank)
        source = c.tensor("source")
        alpha = plain(c.get("alpha", 1))
        shape = x.shape
        x = _lined(x, c)
        source = c.reshape(
            source, [ids.shape[0] if d == axis else n for d, n in enumerate(x.shape)]
        )
        if alpha != 1:
            source = c("multiply", source, alpha)
        how = c.get("reduce") or reduction
        own = c.flag("include_self", True)
        return c.reshape(put(c, x, ids, source, axis, how, own, "scatter_slices"), shape)

    return rule


def _index_fill(c: Call) -> Value:
    x, ids = c.tensor("self"), _lined(c.tensor("index"), c)
    axis = c.axis("dim", x.rank)
    size = x.shape[axis] if x.rank else 1
    zeros, ones = c.param(0, (size,), "i64"), c.param(1, ids.shape, "i64")
    there = c("greater", c("scatter_slices", zeros, ids, ones, reduction="add"), 0)
    there = c.reshape(there, [size if d == axis else 1 for d in range(x.rank)])
    value = c.get("value")
    value = c.as_tensor(value, x.dtype) if isinstance(value, Value) or x.dtype == "bool" else value
    return c("where", there, value, x)


def _put(c: Call) -> Value:
    x, ids, source = c.tensor("self"), c.tensor("index"), c.tensor("source")
    flat, rows, values = (c.reshape(t, [math.prod(t.shape)]) for t in (x, ids, source))
    rows = c("modulo", rows, math.prod(x.shape))
    how = "add" if c.flag("accumulate") else None
    return c.reshape(put(c, flat, rows, values, 0, how, True, "scatter_slices"), x.shape)


def _masked_scatter(c: Call) -> Value:
    """The elements of the source, one after another, where the mask holds."""
    x = c.tensor("self")
    shape = np.broadcast_shapes(*[tuple(int(n) for n in t.shape) for t in (x, c.tensor("mask"))])
    mask = c.broadcast(truth(c, c.tensor("mask")), shape)
    source = c.tensor("source")
    flat = c.reshape(source, [math.prod(source.shape)])
    count = c("cumsum", c.cast(c.reshape(mask, [math.prod(shape)]), "i64"), axis=0)
    places = c("clip", c("subtract", count, 1), min=0, max=int(flat.shape[0]) - 1)
    taken = c.reshape(c("gather", flat, places, axis=0), mask.shape)
    return c("where", mask, taken, x)


# ---- searching


def _sorted(c: Call) -> Value:
    line, wanted = c.tensor("sorted_sequence"), c.get("self")
    if c.has("sorter"):
        line = c("take_along_axis", line, c.tensor("sorter"), axis=-1)
    right = c.flag("right") or c.get("side") == "right"
    return _below(c, line, wanted, right)


def _below(c: Call, line: Value, wanted: Any, right: bool) -> Value:
    """How many of a sorted line are less than what is wanted (or not more)."""
    dtype = c.common(line, wanted)
    line = c.cast(line, dtype)
    wanted = c.as_tensor(plain(wanted), dtype)
    before = [1] * wanted.rank if line.rank == 1 else [*line.shape[:-1], 1]
    line = c.reshape(line, [*before, line.shape[-1]])
    wanted = c("expand_dims", wanted, axes=[wanted.rank])
    below = c("less_equal" if right else "less", line, wanted)
    total = c("reduce_sum", c.cast(below, "i64"), axes=[-1])
    return c.cast(total, c.out)


def _buckets(c: Call) -> Value:
    return _below(c, c.tensor("boundaries"), c.get("self"), c.flag("right"))


def _is_in(c: Call) -> Value:
    first = "elements" if "elements" in c.node.args else "element"
    second = "test_elements" if "test_elements" in c.node.args else "test_element"
    a, b = c.get(first), c.get(second)
    dtype = c.common(a, b)
    a, b = c.as_tensor(plain(a), dtype), c.as_tensor(plain(b), dtype)
    line = c.reshape(b, [*[1] * a.rank, math.prod(b.shape)])
    same = c("reduce_any", c("equal", c("expand_dims", a, axes=[a.rank]), line), axes=[-1])
    return c("logical_not", same) if c.flag("invert") else same


def _running(op: str) -> Rule:
    def rule(c: Call) -> list[Value]:
        x = c.tensor("self")
        if x.rank == 0:
            return [x, c.param(0, (), "i64")]
        y, at = c.several(op, _number(c, x), axis=c.axis("dim", x.rank))
        return [c.cast(y, x.dtype), at]

    return rule


def _log_running(c: Call) -> Value:
    x = c.tensor("self")
    return c("logcumsumexp", x, axis=c.axis("dim", x.rank)) if x.rank else x


def _nonzero(c: Call) -> Value:
    mask = c.known(c.tensor("self"))
    if mask is None:
        raise Uncovered("the size of its result depends on values")
    return c.param(np.argwhere(mask).astype(np.int64))


INDEXING: dict[str, Rule] = {
    "index_select": _select,
    "take": _take,
    "gather": _gather,
    "take_along_dim": _take_along,
    "index": _index,
    "_unsafe_index": _index,
    "index_put": _index_put,
    "_unsafe_index_put": _index_put,
    "scatter": _scatter(),
    "scatter_add": _scatter("add"),
    "scatter_reduce": _scatter(),
    "index_add": _slices("add"),
    "index_copy": _slices(),
    "index_reduce": _slices(),
    "index_fill": _index_fill,
    "put": _put,
    "masked_scatter": _masked_scatter,
    "searchsorted": _sorted,
    "bucketize": _buckets,
    "isin": _is_in,
    "cummax": _running("cummax"),
    "cummin": _running("cummin"),
    "logcumsumexp": _log_running,
    "nonzero": _nonzero,
    "argwhere": _nonzero,
}
