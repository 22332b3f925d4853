"""Sums of which it is sure that they are infinite, or no number, whoever adds them up.

A NaN makes any sum NaN, and so do infinities of both signs. Infinities of one sign make an
infinity, unless the numbers beside them may overflow the other way first. Of a product the same
holds where such a factor meets one that is surely not zero; where it meets a zero nothing is known:
a program may leave out what lies in padding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irlang.interp.ball import Ball

Array = np.ndarray[Any, np.dtype[Any]]
Added = Callable[[Sequence[Array]], Array]  # the sums of the products of such factors


def settled_sum(
    value: Any, factors: Sequence[tuple[Any, Any]], added: Added, most: float
) -> Array | None:
    """Where a sum of products is surely what `value` says, infinite or NaN; None: nowhere.

    value: the sums. factors: one or two, their values and radii (None: exact). added: adds up
    products of arrays of the factors' shapes. most: beyond it a program may overflow. The numbers
    beside an infinity may be half of it: what the sum is added to, as a bias to a product, may be
    added to these first, and is asked the same where that is done.
    """
    found = np.asarray(value)
    if found.dtype.kind != "f" or np.all(np.isfinite(found)) or len(factors) > 2:
        return None
    sides = [_Side(*factor) for factor in factors]
    if len(sides) == 1:
        sides.append(_Side(np.ones_like(sides[0].value), None))
    a, b = sides
    with np.errstate(invalid="ignore", over="ignore"):
        no_number = added([a.nan, b.other]) + added([a.other, b.nan])
        up = added([a.up, b.above]) + added([a.down, b.below])
        up = up + added([a.above, b.up]) + added([a.below, b.down])
        down = added([a.up, b.below]) + added([a.down, b.above])
        down = down + added([a.below, b.up]) + added([a.above, b.down])
        loose = added([a.strange, b.about]) + added([a.about, b.strange])
        loose = loose + added([a.open, b.any]) + added([a.any, b.open])
        beside = added([a.size, b.size])
    one_way = (up > 0) ^ (down > 0)
    sure = (no_number > 0) | ((up > 0) & (down > 0))
    bounded = beside <= most / 2
    return np.asarray(sure | (one_way & (loose == 0) & bounded) & ~np.isfinite(found))


def settled_product(ball: Ball, axes: tuple[int, ...], tiny: float) -> Array:
    """Where a product of all numbers along axes is surely infinite or NaN, in whatever order.

    NaN makes NaN, and so does an infinity with a zero. An infinity alone makes an infinity, unless
    the numbers beside it may be flushed to zero first: tiny is the least that is not.
    """
    value = np.asarray(ball.value)
    size = np.broadcast_to(np.abs(value) - ball.bound, np.shape(value))
    exact = np.broadcast_to(np.asarray(ball.bound) == 0, np.shape(value))
    with np.errstate(invalid="ignore"):
        endless = np.any(exact & np.isinf(value), axis=axes)
        nothing = np.any(exact & (value == 0), axis=axes)
        small = np.where(exact & np.isinf(value), 1.0, np.clip(size, 0.0, 1.0))
        beside = np.prod(small, axis=axes)
        finite = np.all(np.isfinite(size) | exact & np.isinf(value), axis=axes)
    settled = endless & (nothing | finite & (beside >= tiny))
    return np.asarray(settled | np.any(exact & np.isnan(value), axis=axes))


def separable(factors: Sequence[tuple[Any, Any]], rank: int, most: float) -> Array | None:
    """Where factors may be added up each by itself before they are multiplied; None: nowhere.

    What a factor does not vary along may be summed without it: `sum a[i] * b[j]` is a product of
    two sums, and so do programs compute it (`einsum`). That makes a difference where such a factor
    is infinite, as the others may cancel first, or where it is no number and the sum is empty; and
    where its own sum overflows, along all axes or along those that no other factor has: in
    `sum a[i] * b[i, j]` the second may be summed over `j` first. factors: values and radii (None:
    exact). rank: the sum is over all axes from there on. most: as of `settled_sum`.
    """
    arrays = [np.asarray(value) for value, _ in factors]
    width = max(array.ndim for array in arrays)
    shapes = [(1,) * (width - array.ndim) + array.shape for array in arrays]
    empty = any(0 in shape[rank:] for shape in shapes)
    real = [n for n, array in enumerate(arrays) if array.dtype.kind == "f"]
    axes = [a for a in range(rank, width) if any(shapes[n][a] > 1 for n in real)]
    axes += [a for a in range(rank, width) if any(shape[a] == 0 for shape in shapes)]
    found: Array | None = None
    inner = tuple(range(rank, width))
    for n in real:
        value, radius = arrays[n].reshape(shapes[n]), factors[n][1]
        if all(shapes[n][axis] != 1 for axis in axes):
            others = [shapes[m] for m in range(len(shapes)) if m != n]
            own = tuple(a for a in axes if all(shape[a] == 1 for shape in others))
            if not own or not others or empty:
                continue
            with np.errstate(invalid="ignore", over="ignore"):
                size = np.sum(np.abs(value), axis=own, where=np.isfinite(value), keepdims=True)
            lost = np.any(size > most, axis=inner)
            if lost.any():
                found = lost if found is None else found | lost
            continue
        strange = ~np.isfinite(value) if empty else np.isinf(value)
        if radius is not None:
            strange = strange | np.isinf(
                np.broadcast_to(radius, arrays[n].shape).reshape(shapes[n])
            )
        with np.errstate(invalid="ignore", over="ignore"):
            lost = np.sum(np.abs(value), axis=inner, where=np.isfinite(value)) > most
        lost = lost | np.any(strange, axis=inner)
        if lost.any():
            found = lost if found is None else found | lost
    return found


class _Side:
    """A factor by what its elements are: 1 where they are, 0 elsewhere."""

    def __init__(self, value: Any, radius: Any) -> None:
        self.value = np.asarray(value, np.float64)
        bound = np.broadcast_to(np.asarray(0.0 if radius is None else radius), self.value.shape)
        with np.errstate(invalid="ignore"):
            exact, finite = bound == 0, np.isfinite(self.value) & np.isfinite(bound)
            size = np.where(finite, np.abs(self.value) + bound, 0.0)
        self.any, self.size = np.ones_like(self.value), size
        self.nan = _as(exact & np.isnan(self.value))
        self.up, self.down = (_as(exact & (self.value == end)) for end in (np.inf, -np.inf))
        self.strange = self.nan + self.up + self.down
        self.other = _as(~(exact & (self.value == 0)))
        self.above = _as((finite & (self.value > bound)) | (exact & (self.value == np.inf)))
        self.below = _as((finite & (self.value < -bound)) | (exact & (self.value == -np.inf)))
        self.about = _as(finite & (np.abs(self.value) <= bound))
        self.open = _as(~finite & ~exact)


def _as(where: Array) -> Array:
    return np.asarray(where, np.float64)
