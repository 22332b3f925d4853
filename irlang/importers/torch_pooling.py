"""Pooling, and its inverse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from irlang.importers.torch_call import FLOATS, Call, Rule, Uncovered, Value
from irlang.importers.torch_layers import batched, pads, spread


def _window(c: Call, rank: int) -> dict[str, Any]:
    window = c.numbers("kernel_size", None, rank)
    stride = c.get("stride") or window
    stride = list(stride) * (rank if len(stride) == 1 else 1)
    attrs: dict[str, Any] = {"window": window, "stride": stride}
    attrs |= pads(c.numbers("padding", [0], rank))
    if c.flag("ceil_mode"):
        attrs["ceil_mode"] = True
    return attrs


def _max_pool(rank: int) -> Rule:
    def rule(c: Call) -> Any:
        x = c.tensor("self")
        attrs = _window(c, rank)
        attrs |= spread("dilation", c.numbers("dilation", [1], rank))
        if len(c.node.results) == 1:
            return batched(c, x, rank, lambda v: c("max_pool", v, **attrs))
        return batched(c, x, rank, lambda v: c.several("max_pool_with_argmax", v, **attrs))

    return rule


def _avg_pool(rank: int) -> Rule:
    def rule(c: Call) -> Any:
        x = c.tensor("self")
        if x.dtype not in FLOATS:
            raise Uncovered("pooling of integers")
        attrs = _window(c, rank)
        divisor = c.get("divisor_override")
        if c.flag("count_include_pad", True) or divisor is not None:
            attrs["count_include_pad"] = True
        if divisor is None:
            return batched(c, x, rank, lambda v: c("avg_pool", v, **attrs))
        # the sum of a window is the mean of the whole window times its size
        if attrs.get("ceil_mode"):
            raise Uncovered("divisor_override with ceil_mode")
        whole = math.prod(attrs["window"])
        return batched(
            c, x, rank, lambda v: c("multiply", c("avg_pool", v, **attrs), whole / divisor)
        )

    return rule


def _adaptive(rank: int, op: str) -> Rule:
    def rule(c: Call) -> Any:
        x = c.tensor("self")
        sizes, wanted = list(x.shape[-rank:]), list(c.result().shape[-rank:])
        if 0 in c.result().shape:
            count = 2 if op == "max" else 1
            nothing = [c.param(0, c.result(i).shape, c.result(i).dtype) for i in range(count)]
            return nothing if op == "max" else nothing[0]
        if op == "max":
            found = batched(c, x, rank, lambda v: c("adaptive_max_pool", v, size=wanted))
            return [found, _adaptive_places(c, x, rank, found)]
        if all(n == 1 for n in wanted):
            return batched(c, x, rank, lambda v: c("global_avg_pool", v, keepdims=True))
        if all(n % m == 0 for n, m in zip(sizes, wanted, strict=True)):
            window = [n // m for n, m in zip(sizes, wanted, strict=True)]
            return batched(c, x, rank, lambda v: c("avg_pool", v, window=window))
        return batched(c, x, rank, lambda v: c("adaptive_avg_pool", v, size=wanted))

    return rule


def _adaptive_places(c: Call, x: Value, rank: int, found: Value) -> Value:
    """Where the largest element of each window is, the first of equals: windows are made as wide as
    the widest by repeating their last element.
    """
    sizes, wanted = ([int(n) for n in v.shape[-rank:]] for v in (x, found))
    places = np.zeros([1] * (2 * rank), np.int64)
    for d, (n, m) in enumerate(zip(sizes, wanted, strict=True)):
        ends = [(i * n // m, -(-(i + 1) * n // m)) for i in range(m)]
        widest = max(b - a for a, b in ends)
        shape = [1] * (2 * rank)
        shape[d], shape[rank + d] = m, widest
        line = np.array([[min(a + k, b - 1) for k in range(widest)] for a, b in ends])
        places = places * n + line.reshape(shape)
    table = places.reshape(math.prod(wanted), -1)
    lead = list(x.shape[:-rank])
    taken = c("gather", c.reshape(x, [*lead, math.prod(sizes)]), c.param(table), axis=len(lead))
    best = c("expand_dims", c("argmax", taken, axis=-1), axes=[len(lead) + 1])
    base = c.broadcast(c.param(table), [*lead, *table.shape])
    return c.reshape(c("take_along_axis", base, best, axis=-1), c.result(1).shape)


def _unpool(rank: int) -> Rule:
    def rule(c: Call) -> Any:
        x, places = c.tensor("self"), c.tensor("indices")
        size = c.numbers("output_size")
        if x.rank == rank + 2:
            return c("max_unpool", x, places, size=size)
        x, places = (c("expand_dims", v, axes=[0]) for v in (x, places))
        return c("squeeze", c("max_unpool", x, places, size=size), axes=[0])

    return rule


POOLING: dict[str, Rule] = {
    **{f"max_pool{d}d": _max_pool(d) for d in (1, 2, 3)},
    **{f"max_pool{d}d_with_indices": _max_pool(d) for d in (1, 2, 3)},
    **{f"avg_pool{d}d": _avg_pool(d) for d in (1, 2, 3)},
    **{f"adaptive_avg_pool{d}d": _adaptive(d, "avg") for d in (1, 2, 3)},
    **{f"_adaptive_avg_pool{d}d": _adaptive(d, "avg") for d in (2, 3)},
    **{f"adaptive_max_pool{d}d": _adaptive(d, "max") for d in (1, 2, 3)},
    **{f"max_unpool{d}d": _unpool(d) for d in (2, 3)},
}
