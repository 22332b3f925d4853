"""Reading a tensor at index terms: slices and takes along single axes, else from its flat form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from irlang.lower.terms import Axes, Known, Term, Traced, number
from irlang.lower.value import Array, Value

if TYPE_CHECKING:
    from irlang.lower.expressions import Expressions


def gather(walker: Expressions, source: Value, index: Sequence[Term]) -> Term:
    """The elements of `source` at one index an axis, all of them inside."""
    axes = walker.union(index)
    if sum(len(part.axes) for part in index) != len(axes):
        return Traced(_flat(walker, source, index, axes), axes)
    value = source
    # From the last axis on, so that those before it keep their places.
    for axis in reversed(range(source.rank)):
        value = _along(walker, value, index[axis], axis)
    order = [axis for part in index for axis in part.axes]
    shape = tuple(walker.extents[axis] for axis in order)
    value = walker.reshaped(value, shape)
    placed = tuple(order.index(axis) for axis in axes)
    if placed != tuple(range(len(placed))):
        value = walker.builder.transpose(value, placed)
    return Traced(value, axes)


def _along(walker: Expressions, value: Value, part: Term, axis: int) -> Value:
    build = walker.builder
    if isinstance(part, Known):
        if not part.axes:
            return build.pick(value, axis, int(part.array))
        line = part.array.reshape(-1)
        run = _progression(line)
        if run is None:
            return build.take(value, build.constant(line, "i64"), axis)
        start, stop, step = run
        if (start, step, len(line)) == (0, 1, value.shape[axis]):
            return value
        return build.slice(value, axis, start, stop, step)
    indices = walker.reshaped(
        build.cast(part.value, "i64"), (int(np.prod(part.value.shape, dtype=np.int64)),)
    )
    return build.take(value, indices, axis)


def _progression(line: Array) -> tuple[int, int, int] | None:
    """Start, stop and step of indices that are evenly spaced."""
    if len(line) == 1:
        return int(line[0]), int(line[0]) + 1, 1
    step = int(line[1] - line[0])
    if step == 0 or bool((np.diff(line) != step).any()):
        return None
    stop = int(line[-1]) + (1 if step > 0 else -1)
    return int(line[0]), stop, step


def _flat(walker: Expressions, source: Value, index: Sequence[Term], axes: Axes) -> Value:
    position: Term = number(0)
    for part, extent in zip(index, source.shape, strict=True):
        position = walker.applied("*", [position, number(extent)])
        position = walker.applied("+", [position, part])
    build = walker.builder
    size = int(np.prod(source.shape, dtype=np.int64))
    if isinstance(position, Known) and np.array_equal(position.array.reshape(-1), np.arange(size)):
        return walker.reshaped(source, tuple(walker.extents[axis] for axis in axes))
    indices = walker.over(position, position.axes, "i64")
    count = int(np.prod(indices.shape, dtype=np.int64))
    taken = build.take(walker.reshaped(source, (size,)), walker.reshaped(indices, (count,)), 0)
    return walker.reshaped(taken, tuple(walker.extents[axis] for axis in axes))
