"""ONNX's operators that read, or write, at positions which are elements of tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from irlang.importers.onnx_node import Node, Value
from irlang.importers.sizes import Dim

Row = Callable[[Node], Value | Sequence[Value | None]]


def _gather(n: Node) -> Value:
    return n.call("gather", n.input(0), n.input(1), axis=n.int("axis", 0), negative="from_end")


def _gather_elements(n: Node) -> Value:
    """Positions may be of a smaller shape, along the other axes: the rest is never read."""
    x, ids, axis = n.input(0), n.input(1), n.int("axis", 0)
    if len(x.shape) == len(ids.shape):
        axes = [d for d in range(len(x.shape)) if d != axis % len(x.shape)]
        pairs = {d: (ids.shape[d], x.shape[d]) for d in axes}
        axes = [d for d in axes if not any(isinstance(n, Dim) for n in pairs[d])]
        axes = [d for d in axes if pairs[d][0] < pairs[d][1]]
        if axes:
            end = [ids.shape[d] for d in axes]
            x = n.step("reached", "slice", x, axes=axes, end=end)
    return n.call("take_along_axis", x, ids, axis=axis, negative="from_end")


def _one_hot(n: Node) -> Value:
    """`values` are the number elsewhere and the number at the position."""
    ids = n.input(0)
    if ids.info.kind == "real":
        ids = n.step("ids", "cast", ids, to="i64")
    off, on = n.known(2).reshape(-1).tolist()
    depth = n.known_ints(1)[0]
    attrs = {"depth": depth, "axis": n.int("axis", -1), "on": on, "off": off}
    return n.call("one_hot", ids, **attrs, negative="from_end", to=n.input(2).dtype)


def _compress(n: Node) -> Value:
    """The slices, or the elements, for which a condition holds that is known."""
    x, axis = n.input(0), n.int("axis")
    kept = np.flatnonzero(n.known(1))
    if axis is None:
        x, axis = n.step("flat", "reshape", x, shape=[math.prod(x.shape)]), 0
    return n.call("gather", x, n.const(kept, f"{n.outputs[0]}_kept"), axis=axis)


def _nonzero(n: Node) -> Value:
    """The positions of what is not zero, where that is known."""
    return n.const(np.array(np.nonzero(n.known(0)), np.int64))


ROWS: dict[str, Row] = {
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "Compress": _compress,
    "NonZero": _nonzero,
    "OneHot": _one_hot,
}
