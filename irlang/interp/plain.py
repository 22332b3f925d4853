"""The domain of plain numbers: what `vector` and `reference` compute with.

Reals are float64, integers int64 (wrapped to their stored type on assignment; those of u64 are
Python's, see `wide`), truth values bool.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.diagnostics import fail
from irlang.dtypes import DTYPES
from irlang.interp import wide
from irlang.scalar import SCALARS

Array = np.ndarray[Any, np.dtype[Any]]
Value = Any
FOLD: dict[str, Callable[..., Array]] = {
    "sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "all": np.all, "any": np.any,
}  # fmt: skip


class Plain:
    """The domain of plain numbers: arrays of float64, int64 and bool.

    any_order: whether sums of more than two, written out, come to `sum`. cached: the elements of a
    temporary array that is still read fast after it was written.
    """

    any_order = False
    cached = 1 << 15

    def number(self, value: eq.Scalar) -> Value:
        """A number of the text or of the call."""
        return float(value) if isinstance(value, Fraction) else wide.number(value)

    def array(self, value: Array) -> Value:
        """Whole numbers or truth values, free of error."""
        return value

    def parts(self, value: Value, change: Callable[[Any], Any]) -> Value:
        """A value whose arrays are rearranged by `change`."""
        return change(value)

    def padded(self, value: Value, default: Value, change: Callable[[Any, Any], Any]) -> Value:
        """A value rearranged with a default around it."""
        return change(value, default)

    def sample(self, value: Value) -> Any:
        """The values alone."""
        return value

    def sure(self, value: Value) -> bool:  # noqa: ARG002
        """Whether truth values are what they are whoever computes them."""
        return True

    def apply(self, function: str, args: list[Value]) -> Value:
        """A scalar function."""
        if any(map(wide.is_wide, args)):
            return wide.apply(function, args)
        return SCALARS[function].numpy(*args)

    def select(self, condition: Value, yes: Value, no: Value) -> Value:
        """`yes` where the condition holds, `no` elsewhere."""
        return np.where(condition, yes, no)

    def fold(self, kind: str, value: Value, axes: tuple[int, ...]) -> Value:
        """A reduction over the trailing axes."""
        if kind in ("max", "min") and value.dtype == np.bool_:
            kind = "any" if kind == "max" else "all"
        found = FOLD[kind](value, axis=axes)
        return np.asarray(found, dtype=object) if wide.is_wide(value) else found

    def contract(self, factors: list[Value], rank: int) -> Value:
        """The sum over all axes from `rank` on of the product of the factors."""
        return contract(factors, rank)

    def place(self, kind: str, value: Value, among: Value | None) -> Value:
        """The position of the greatest or least element along the last axis.

        among: which of them are asked for, of the same shape; None for all.
        """
        first = np.argmax if kind == "argmax" else np.argmin
        if among is None:
            return first(value, -1)
        value, among = np.asarray(value), np.asarray(among, dtype=bool)
        at = first(np.where(among, value, _last(kind, value)), -1)
        # one of the others comes first where all that are asked for are the last there is
        asked = np.take_along_axis(among, at[..., None], -1)[..., 0]
        return np.where(asked, at, np.argmax(among, -1))

    def pick(self, value: Value, at: Array, certain: Any) -> Value:  # noqa: ARG002
        """The elements at positions `at` along the last axis."""
        return np.take_along_axis(value, at[..., None], -1)[..., 0]

    def gather(self, value: Value, index: tuple[Any, ...], certain: list[Any]) -> Value:  # noqa: ARG002
        """Elements at computed positions."""
        return value[index]

    def within(self, inside: Any, positions: list[Any], shape: tuple[int, ...]) -> Value:  # noqa: ARG002
        """Whether positions are inside a shape, as `inside` says of their values."""
        return np.asarray(inside)

    def store(self, value: Value, info: eq.TensorInfo, shape: tuple[int, ...]) -> Value:
        """A value converted to the kind of a tensor and spread to `shape`."""
        array = convert(value, info)
        spread = array if array.shape == shape else np.broadcast_to(array, shape)
        return np.asarray(spread, order="C")

    def empty(self, info: eq.TensorInfo) -> Value:
        """A tensor to be filled step by step."""
        return np.zeros(info.shape, wide.carrier(info))

    def adding(self, info: eq.TensorInfo) -> Value:
        """The same, of a recurrence that adds to what it had before."""
        return self.empty(info)

    def assign(self, target: Value, where: tuple[Any, ...], value: Value) -> None:
        """Fills a part of a tensor."""
        target[where] = value


def _last(kind: str, value: Array) -> Any:
    """What no number of an array is less than, or greater than for `argmin`, in its own type."""
    largest = kind == "argmin"
    if value.dtype.kind == "f":
        return math.inf if largest else -math.inf
    if value.dtype.kind == "b":
        return largest
    if value.dtype.kind == "O":  # those of u64
        return 2**64 if largest else -1
    return np.iinfo(value.dtype).max if largest else np.iinfo(value.dtype).min


def convert(value: Any, info: eq.TensorInfo) -> Array:
    """Assignment: reals become integers by truncation, integers wrap, truth is `!= 0`."""
    array = np.asarray(value)
    if info.kind == "real":
        return array.astype(np.float64, copy=False)
    if info.kind == "bool":
        return array if array.dtype == np.bool_ else np.asarray(array != 0, dtype=bool)
    if info.dtype == "u64" or DTYPES[info.dtype].stored or wide.is_wide(array):
        return wide.wrapped(array, info)
    with np.errstate(invalid="ignore"):
        whole = array if array.dtype.kind in "iu" else np.trunc(array).astype(np.int64)
        return whole.astype(DTYPES[info.dtype].numpy, copy=False).astype(np.int64, copy=False)


def contract(factors: list[Any], rank: int) -> Any:
    """The sum of a product of arrays over their axes from `rank` on, without the whole product."""
    arrays = [np.asarray(f) for f in factors]
    width = max(a.ndim for a in arrays)
    scale: Any = 1
    operands: list[Any] = []
    present: set[int] = set()
    for array in arrays:
        if array.ndim == 0 or array.size == 1:
            scale = scale * array.reshape(())
            continue
        full = array.reshape((1,) * (width - array.ndim) + array.shape)
        axes = [axis for axis, size in enumerate(full.shape) if size != 1]
        operands += [full.reshape([full.shape[axis] for axis in axes]), axes]
        present.update(axes)
    outer = [axis for axis in sorted(present) if axis < rank]
    if not operands:
        return np.asarray(scale).reshape((1,) * rank)
    size = math.prod(
        max(a.shape[axis] if a.ndim == width else 1 for a in arrays) for axis in range(width)
    )
    total = np.einsum(*operands, outer, optimize=size > 1 << 15) * scale
    shape = [1] * rank
    for axis, extent in zip(outer, np.shape(total), strict=True):
        shape[axis] = extent
    return np.asarray(total).reshape(shape)


def require_arrays(expansion: eq.Expansion) -> None:
    """Raises `run.memory` where a tensor of a definition can be no array, though it be empty."""
    for name, info in expansion.tensors.items():
        if info.too_large:
            raise fail("run.memory", f"`{name}` would be {info}: {info.too_large}")


def load(info: eq.TensorInfo, array: Any) -> Array:
    """An input as the evaluators take it: float64, int64 (see `wide`) or bool, contiguous."""
    if info.dtype == "u64":
        return np.asarray(wide.wrapped(array, info), order="C")
    return np.asarray(np.asarray(array).astype(wide.carrier(info), copy=False), order="C")
