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
    """

    axes: dict[str, int]
    ranges: list[tuple[int, int]]
    fixed: dict[str, int] = field(default_factory=dict)
    active: Any = None

    def deeper(self, extents: list[tuple[str, int]]) -> Frame:
        """This frame with more axes behind."""
        axes, ranges = dict(self.axes), list(self.ranges)
        for name, extent in extents:
            axes[name] = len(ranges)
            ranges.append((0, extent))
        active = self.active
        if active is not None:
            active = (
                active.reshape(active.shape + (1,) * len(extents)) if np.ndim(active) else active
            )
        return Frame(axes, ranges, self.fixed, active)

    def where(self, condition: Any) -> Frame:
        """This frame, with values wanted only where `condition` holds."""
        active = condition if self.active is None else self.active & condition
        return Frame(self.axes, self.ranges, self.fixed, active)

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


def strided(array: Any, forms: list[Affine], below: list[int], frame: Frame) -> Array:
    """The view whose axes are those of the frame (extent 1 where an index takes no part)."""
    strides, shape = [0] * len(frame.ranges), [1] * len(frame.ranges)
    offset = 0
    for form, shift, stride in zip(forms, below, array.strides, strict=True):
        base = form.constant + shift
        for name, coefficient in form.coefficients.items():
            axis = frame.axes[name]
            start, stop = frame.ranges[axis]
            strides[axis] += coefficient * stride
            shape[axis] = stop - start
            base += coefficient * start
        offset += base * stride
    return np.ndarray(shape, array.dtype, array, offset, strides)


def pad(array: Any, default: Any, below: list[int], above: list[int]) -> Array:
    """A copy of an array with a default around it, by axis."""
    shape = [b + n + a for b, n, a in zip(below, array.shape, above, strict=True)]
    padded = np.full(
        shape,
        default,
        dtype=np.result_type(array, default) if array.dtype.kind != "f" else array.dtype,
    )
    padded[tuple(slice(b, b + n) for b, n in zip(below, array.shape, strict=True))] = array
    return padded
