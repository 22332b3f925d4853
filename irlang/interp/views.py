"""Affine indices as strided views of a tensor: nothing is copied for them.

A `Frame` says which indices are in scope and over what ranges; a view has one axis for each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.affine import Affine, affine

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(slots=True)
class Frame:
    """The indices in scope: axis and range of each, or the number that it is fixed at.

    active: where the value is wanted at all (None: everywhere); outside it, a read past the end of
    a tensor is no error.
    known: what does not hang on any tensor's numbers and was found out before, for all frames with
    these indices: frames inside, and by the expression what is read.
    """

    axes: dict[str, int]
    ranges: list[tuple[int, int]]
    fixed: dict[str, int] = field(default_factory=dict)
    active: Any = None
    known: dict[Any, Any] = field(default_factory=dict)

    def deeper(self, extents: list[tuple[str, int]]) -> Frame:
        """This frame with more axes behind."""
        key = tuple(extents)
        found: Frame | None = self.known.get(key)
        if found is None:
            axes, ranges = dict(self.axes), list(self.ranges)
            for name, extent in extents:
                axes[name] = len(ranges)
                ranges.append((0, extent))
            found = self.known[key] = Frame(axes, ranges, self.fixed)
        active = self.active
        if active is None:
            return found
        active = active.reshape(active.shape + (1,) * len(extents)) if np.ndim(active) else active
        return Frame(found.axes, found.ranges, self.fixed, active, found.known)

    def where(self, condition: Any) -> Frame:
        """This frame, with values wanted only where `condition` holds."""
        active = condition if self.active is None else self.active & condition
        return Frame(self.axes, self.ranges, self.fixed, active, self.known)

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of every axis."""
        return tuple([stop - start for start, stop in self.ranges])


def form(position: eq.Expr, frame: Frame) -> Affine | None:
    """The affine form of an index in a frame: fixed indices are numbers, and a quotient that is the
    same all over the frame (the group of a filter, where there is one group) is one too.
    """
    if isinstance(position, eq.Index):
        if position.name in frame.fixed:
            return Affine({}, frame.fixed[position.name])
        return Affine({position.name: 1})
    if not isinstance(position, eq.Apply):
        return affine(position)
    if position.function == "neg":
        inner = form(position.args[0], frame)
        return None if inner is None else Affine({}).plus(inner, -1)
    if len(position.args) != 2 or position.function not in ("+", "-", "*", "//", "%"):
        return None
    left, right = (form(arg, frame) for arg in position.args)
    if left is None or right is None:
        return None
    if position.function in ("+", "-"):
        return left.plus(right, 1 if position.function == "+" else -1)
    if position.function == "*":
        if not left.known:
            left, right = right, left
        return Affine({}).plus(right, left.constant) if left.known else None
    if not right.known or right.constant < 1:
        return None
    least, greatest = extent(left, frame)
    quotient = least // right.constant
    if greatest // right.constant != quotient:
        return None
    if position.function == "//":
        return Affine({}, quotient)
    return left.plus(Affine({}, -quotient * right.constant))


def extent(form: Affine, frame: Frame) -> tuple[int, int]:
    """The least and the greatest value of a form in a frame."""
    least = greatest = form.constant
    for name, coefficient in form.coefficients.items():
        start, stop = frame.ranges[frame.axes[name]]
        ends = (coefficient * start, coefficient * (stop - 1))
        least += min(ends)
        greatest += max(ends)
    return least, greatest


@dataclass(frozen=True, slots=True)
class View:
    """The elements of a tensor at affine positions, with an axis for every index of a frame.

    shape: of the view, 1 where an index takes no part. first: the first element, by axis of the
    tensor, `below` included. moves: how many elements (third) of an axis of the tensor (second) a
    step along an axis of the view (first) goes. below, above: how far positions go past either end
    of each axis. apart: whether none of them is inside. padded: whether the tensor needs something
    around it. same: whether the view is the tensor as it stands.
    """

    shape: tuple[int, ...]
    first: tuple[int, ...]
    moves: tuple[tuple[int, int, int], ...]
    below: tuple[int, ...]
    above: tuple[int, ...]
    apart: bool
    padded: bool
    same: bool

    def of(self, array: Any) -> Array:
        """The view of an array, which has been padded where that is needed."""
        if self.same:
            return array  # type: ignore[no-any-return]
        strides = [0] * len(self.shape)
        for axis, of, elements in self.moves:
            strides[axis] += elements * array.strides[of]
        offset = sum([at * stride for at, stride in zip(self.first, array.strides, strict=True)])
        return np.ndarray(self.shape, array.dtype, array, offset, strides)

    def pad(self, array: Any, default: Any) -> Array:
        """A copy of an array with a default around it."""
        sizes = list(zip(self.below, array.shape, self.above, strict=True))
        dtype = np.result_type(array, default) if array.dtype.kind != "f" else array.dtype
        padded = np.full([b + n + a for b, n, a in sizes], default, dtype=dtype)
        padded[tuple(slice(b, b + n) for b, n, _ in sizes)] = array
        return padded


def view(read: eq.Read, frame: Frame, shape: tuple[int, ...]) -> View | None:
    """The view that a read of a tensor of that shape is; None where it is none."""
    key = id(read), shape
    if key not in frame.known:  # the expression is kept: its id stays its own
        frame.known[key] = read, _view(read, frame, shape)
    found: View | None = frame.known[key][1]
    return found


def _view(read: eq.Read, frame: Frame, shape: tuple[int, ...]) -> View | None:
    if 0 in frame.shape or 0 in shape:
        return None
    extents, first, moves = [1] * len(frame.ranges), [], []
    below, above, apart = [], [], False
    for of, (position, size) in enumerate(zip(read.index, shape, strict=True)):
        one = form(position, frame)
        if one is None:
            return None
        least, greatest = extent(one, frame)
        below.append(max(-least, 0))
        above.append(max(greatest - size + 1, 0))
        apart = apart or greatest < 0 or least >= size
        start = one.constant + below[-1]
        for name, coefficient in one.coefficients.items():
            axis = frame.axes[name]
            begin, stop = frame.ranges[axis]
            if stop - begin > 1:  # however far a step that nobody takes would go
                moves.append((axis, of, coefficient))
            extents[axis] = stop - begin
            start += coefficient * begin
        first.append(start)
    ends = tuple(below), tuple(above)
    padded = any(below) or any(above)
    whole = [(axis, axis, 1) for axis, size in enumerate(shape) if size > 1]
    same = tuple(extents) == shape and moves == whole and not (any(first) or padded)
    return View(tuple(extents), tuple(first), tuple(moves), *ends, apart, padded, same)
