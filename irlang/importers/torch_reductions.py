"""Reductions, running ones, order statistics, norms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from irlang.importers.torch_call import FLOATS, Call, Rule, Uncovered, Value
from irlang.importers.torch_elementwise import truth
from irlang.importers.torch_pieces import piece


def over(c: Call, x: Value, name: str = "dim") -> dict[str, Any]:
    """`axes` and `keepdims` of a reduction."""
    attrs: dict[str, Any] = {"axes": c.axes(name, x.rank)}
    if c.flag("keepdim"):
        attrs["keepdims"] = True
    return attrs


def _reduce(op: str) -> Rule:
    """A sum, product or mean in the type of the result."""

    def rule(c: Call) -> Value:
        x = c.cast(c.tensor("self"), c.out)
        return c(op, x, **over(c, x))

    return rule


def _truths(op: str) -> Rule:
    def rule(c: Call) -> Value:
        x = truth(c, c.tensor("self"))
        return c.cast(c(op, x, **over(c, x)), c.out)

    return rule


def _extremes(op: str) -> Rule:
    """The extremes amax and amin; of truth values they are any and all."""

    def rule(c: Call) -> Value:
        x = c.tensor("self")
        if x.dtype == "bool":
            logical = "reduce_any" if op == "reduce_max" else "reduce_all"
            return c(logical, x, **over(c, x))
        return c(op, x, **over(c, x))

    return rule


def _with_place(op: str, place: str) -> Rule:
    """Extremes along an axis, with the place of the first of equals; without one, of all."""

    def rule(c: Call) -> Any:
        x = c.tensor("self")
        work = c.cast(x, "u8") if x.dtype == "bool" else x
        if not c.has("dim"):
            return c.cast(c(op, work, axes=list(range(x.rank))), x.dtype)
        if x.rank == 0:
            return [x, c.param(0, (), "i64")]
        axis, keep = c.axis("dim", x.rank), c.flag("keepdim")
        values = c.cast(c(op, work, axes=[axis], keepdims=keep), x.dtype)
        return [values, c(place, work, axis=axis, keepdims=keep)]

    return rule


def _place(op: str) -> Rule:
    def rule(c: Call) -> Value:
        x = c.tensor("self")
        x = c.cast(x, "u8") if x.dtype == "bool" else x
        if x.rank == 0:
            return c.param(0, (), "i64")
        if not c.has("dim"):
            flat = c(op, c.reshape(x, [math.prod(x.shape)]), axis=0)
            return c.reshape(flat, c.result().shape)
        return c(op, x, axis=c.axis("dim", x.rank), keepdims=c.flag("keepdim"))

    return rule


def _correction(c: Call) -> int:
    if c.has("correction"):
        found = c.number("correction")
        if found != int(found):
            raise Uncovered("a correction that is no integer")
        return int(found)
    return 1 if c.flag("unbiased", True) else 0


def _spread(op: str, mean: bool) -> Rule:
    def rule(c: Call) -> Any:
        x = c.tensor("self")
        found = c(op, x, correction=_correction(c), **over(c, x))
        return [found, c("reduce_mean", x, **over(c, x))] if mean else found

    return rule


def _nan_sum(c: Call) -> Value:
    x = c.cast(c.tensor("self"), c.out)
    if c.out in FLOATS:
        x = c("where", c("isnan", x), 0, x)
    return c("reduce_sum", x, **over(c, x))


def _nan_mean(c: Call) -> Value:
    x = c.cast(c.tensor("self"), c.out)
    missing = c("isnan", x)
    total = c("reduce_sum", c("where", missing, 0, x), **over(c, x))
    count = c("reduce_sum", c.cast(c("logical_not", missing), c.out), **over(c, x))
    return c("divide", total, count)


def _count(c: Call) -> Value:
    x = c.cast(truth(c, c.tensor("self")), "i64")
    return c("reduce_sum", x, axes=c.axes("dim", x.rank))


def _running(op: str) -> Rule:
    def rule(c: Call) -> Value:
        x = c.cast(c.tensor("self"), c.out)
        return c(op, x, axis=c.axis("dim", x.rank)) if x.rank else x

    return rule


def norm(c: Call, x: Value, p: Any, axes: list[int], keep: bool) -> Value:
    """The vector norm over axes."""
    attrs = {"axes": axes, "keepdims": keep}
    if p == 2:
        return c("reduce_l2", x, **attrs)
    if p == 1:
        return c("reduce_l1", x, **attrs)
    size = c("abs", x)
    if p == math.inf:
        return c("reduce_max", size, **attrs)
    if p == -math.inf:
        return c("reduce_min", size, **attrs)
    if p == 0:
        return c("reduce_sum", c.cast(c("not_equal", x, 0), x.dtype), **attrs)
    return c("power", c("reduce_sum", c("power", size, float(p)), **attrs), 1 / p)


def _norm(c: Call) -> Value:
    p = next((c.get(name) for name in ("ord", "p") if c.has(name)), 2)
    if isinstance(p, str):
        raise Uncovered(f"the norm {p}")
    x = c.cast(c.tensor("self"), c.out)
    return norm(c, x, p, c.axes("dim", x.rank), c.flag("keepdim"))


def _matrix_norm(c: Call) -> Value:
    """The Frobenius norm, and those of rows and columns."""
    x = c.cast(c.tensor("self"), c.out)
    order = c.get("ord")
    if order is None and not c.has("dim"):
        return norm(c, x, 2, list(range(x.rank)), c.flag("keepdim"))
    given = c.get("dim")
    axes = c.axes("dim", x.rank) if given is not None else list(range(x.rank))
    if "matrix" in c.node.target and given is None:
        axes = [x.rank - 2, x.rank - 1]
        order = "fro" if order is None else order
    if len(axes) == 1 or order is None:
        return norm(c, x, 2 if order is None else order, axes, c.flag("keepdim"))
    if order == "fro":
        return norm(c, x, 2, axes, c.flag("keepdim"))
    if order not in (1, -1, math.inf, -math.inf):
        raise Uncovered(f"the norm {order}, which needs singular values")
    first, second = axes if abs(order) == 1 else axes[::-1]
    sums = c("reduce_l1", x, axes=[first], keepdims=True)
    op = "reduce_max" if order > 0 else "reduce_min"
    found = c(op, sums, axes=[second], keepdims=True)
    return found if c.flag("keepdim") else c("squeeze", found, axes=axes)


# ---- order


def ranked(c: Call, x: Value, axis: int, descending: bool, stable: bool = False) -> list[Value]:
    """Elements in order and where they were, which is left open for equal ones unless `stable`."""
    work = c.cast(x, "u8") if x.dtype == "bool" else x
    if x.rank == 0:
        return [x, c.param(0, (), "i64")]
    attrs: dict[str, Any] = {"descending": True} if descending else {}
    if not stable:
        attrs["stable"] = False
    values, places = c.several("sort", work, axis=axis, nans="largest", **attrs)
    return [c.cast(values, x.dtype), places]


def _sort(c: Call) -> list[Value]:
    x = c.tensor("self")
    return ranked(c, x, c.axis("dim", x.rank, -1), c.flag("descending"), c.flag("stable"))


def _top_k(c: Call) -> list[Value]:
    x = c.tensor("self")
    axis = c.axis("dim", x.rank, -1)
    found = ranked(c, x, axis, c.flag("largest", True))
    if x.rank == 0:
        return found
    return [piece(c, item, axis, 0, c.whole("k")) for item in found]


def _kth(c: Call) -> list[Value]:
    x = c.tensor("self")
    axis = c.axis("dim", x.rank, -1)
    return _nth(c, x, axis, c.whole("k") - 1, c.flag("keepdim"))


def _nth(c: Call, x: Value, axis: int, n: int, keep: bool) -> list[Value]:
    values, places = ranked(c, x, axis, False)
    if x.rank == 0:
        return [values, places]
    found = [piece(c, item, axis, n, n + 1) for item in (values, places)]
    return found if keep else [c("squeeze", item, axes=[axis]) for item in found]


def _median(c: Call) -> Any:
    """The lower of two in the middle."""
    x = c.tensor("self")
    if not c.has("dim"):
        flat = c.reshape(x, [math.prod(x.shape)])
        return _nth(c, flat, 0, (int(flat.shape[0]) - 1) // 2, False)[0]
    axis = c.axis("dim", x.rank)
    n = (int(x.shape[axis]) - 1) // 2 if x.rank else 0
    return _nth(c, x, axis, n, c.flag("keepdim"))


def _quantile(c: Call) -> Value:
    x, q = c.tensor("self"), c.get("q")
    array = c.known(q) if isinstance(q, Value) else np.asarray(q)
    if array is None:
        raise Uncovered("the quantile depends on values")
    axis = c.axis("dim", x.rank) if c.has("dim") else 0
    flat = x if c.has("dim") else c.reshape(x, [math.prod(x.shape)])
    if flat.rank == 0:
        flat = c.reshape(flat, [1])
    size = int(flat.shape[axis])
    values = ranked(c, flat, axis, False)[0]
    found = []
    mode = c.get("interpolation", "linear")
    for share in array.reshape(-1):
        # PyTorch computes the place in the element type
        place = float(array.dtype.type(share) * array.dtype.type(size - 1))
        low, high = math.floor(place), math.ceil(place)
        if mode == "lower":
            high = low
        elif mode == "higher":
            low = high
        elif mode == "nearest":
            low = high = round(place)
        a, b = (piece(c, values, axis, n, n + 1) for n in (low, high))
        weight = 0.5 if mode == "midpoint" else place - low
        item = a if low == high else c("add", a, c("multiply", c("subtract", b, a), weight))
        found.append(item)
    stacked = found[0] if len(found) == 1 else c("concat", *found, axis=axis)
    order = [axis, *[d for d in range(flat.rank) if d != axis]]
    return c.reshape(c("transpose", stacked, perm=order), c.result().shape)


def _between(c: Call) -> list[Value]:
    x = c.tensor("self")
    attrs = over(c, x)
    if x.dtype == "bool":
        return [c("reduce_all", x, **attrs), c("reduce_any", x, **attrs)]
    return [c("reduce_min", x, **attrs), c("reduce_max", x, **attrs)]


REDUCTIONS: dict[str, Rule] = {
    "sum": _reduce("reduce_sum"),
    "prod": _reduce("reduce_prod"),
    "mean": _reduce("reduce_mean"),
    "nansum": _nan_sum,
    "nanmean": _nan_mean,
    "logsumexp": _reduce("reduce_logsumexp"),
    "special_logsumexp": _reduce("reduce_logsumexp"),
    "all": _truths("reduce_all"),
    "any": _truths("reduce_any"),
    "amax": _extremes("reduce_max"),
    "amin": _extremes("reduce_min"),
    "aminmax": _between,
    "max": _with_place("reduce_max", "argmax"),
    "min": _with_place("reduce_min", "argmin"),
    "argmax": _place("argmax"),
    "argmin": _place("argmin"),
    "var": _spread("reduce_variance", False),
    "std": _spread("reduce_std", False),
    "var_mean": _spread("reduce_variance", True),
    "std_mean": _spread("reduce_std", True),
    "count_nonzero": _count,
    "cumsum": _running("cumsum"),
    "cumprod": _running("cumprod"),
    "norm": _norm,
    "linalg_vector_norm": _norm,
    "linalg_norm": _matrix_norm,
    "linalg_matrix_norm": _matrix_norm,
    "sort": _sort,
    "argsort": lambda c: _sort(c)[1],
    "msort": lambda c: ranked(c, c.tensor("self"), 0, False)[0],
    "topk": _top_k,
    "kthvalue": _kth,
    "median": _median,
    "quantile": _quantile,
}
