"""Products of several factors, which a program may multiply in any order.

One order rounds nothing where another rounds twice, and what an order meets on its way may be
beyond the largest number, or below the least normal one, though the product itself is neither.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from irlang.interp.ball import Ball

_LOOKED = 1 << 16  # elements of a factor; larger ones are not kept for products to come
_MOST = 8  # factors; a product of more is one itself
Move = tuple[Callable[[Any], Any], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Factor:
    """A number that is multiplied, or divided by.

    moves: how products that it is in have been rearranged since, with their shapes before.
    """

    ball: Ball
    divides: bool = False
    moves: tuple[Move, ...] = ()

    def inverse(self) -> Factor:
        """Divided by where it was multiplied, and the other way round."""
        return replace(self, divides=not self.divides)

    def placed(self, array: Any) -> Any:
        """An array of its elements as those of the product lie."""
        for change, shape in self.moves:
            array = change(np.asarray(np.broadcast_to(array, shape), order="C"))
        return array


Factors = tuple[Factor, ...]


def joined(function: str, a: Ball, b: Ball) -> Factors:
    """The factors of a product or a quotient; none where they are too large to be looked at."""
    if max(np.size(a.value), np.size(b.value)) > _LOOKED:
        return ()
    left, right = ((one.factors or (Factor(one),)) for one in (a, b))
    if len(left) + len(right) > _MOST:
        left, right = (Factor(a),), (Factor(b),)
    return left + (tuple(one.inverse() for one in right) if function == "/" else right)


def moved(factors: Factors, change: Callable[[Any], Any], shape: tuple[int, ...]) -> Factors:
    """The factors of a product of a shape that is rearranged."""
    return tuple(replace(one, moves=(*one.moves, (change, shape))) for one in factors)


def are_whole(factors: Sequence[Factor]) -> Any:
    """Where all are exact whole numbers: then so are all products, none larger than the last.

    Of what has been too large to be looked at nothing is known.
    """
    return _all_are(factors, lambda value, divides: (np.floor(value) == value) & (not divides))


def are_plain(factors: Sequence[Factor]) -> Any:
    """Where all are exact whole numbers, or powers of two that are multiplied or divided by: no
    product of some of them has an odd part that is larger than that of the last.
    """

    def plain(value: Any, divides: bool) -> Any:
        whole = (np.floor(value) == value) & np.isfinite(value) & (not divides)
        return whole | (np.abs(np.frexp(value)[0]) == 0.5)

    return _all_are(factors, plain)


def _all_are(factors: Sequence[Factor], test: Callable[[Any, bool], Any]) -> Any:
    """Where all factors are exact and pass a test, which is told whether they are divided by."""
    found: Any = np.bool_(len(factors) > 0)
    for one in factors:
        if one.ball.unrounded:  # of what factors that is a product is not known
            return np.False_
        value = np.asarray(one.ball.value, dtype=np.float64)
        with np.errstate(invalid="ignore"):
            fits = (np.asarray(one.ball.bound) == 0) & test(value, one.divides)
        found = found & one.placed(fits)
    return found


def _sizes(factor: Factor) -> tuple[Any, Any]:
    """The least and the largest size of every element, 1 where it is surely zero or not finite."""
    value = np.asarray(factor.ball.value, dtype=np.float64)
    bound = np.asarray(factor.ball.bound, dtype=np.float64)
    size = np.abs(value)
    plain = np.isfinite(size) & np.isfinite(bound) & ((bound > 0) | (size > 0))
    low = np.where(plain, np.maximum(size - bound, 0.0), 1.0)
    high = np.where(plain, size + bound, 1.0)
    return (1.0 / high, 1.0 / low) if factor.divides else (low, high)


def _ends(factor: Factor) -> tuple[float, float]:
    """What neither an element nor 1 is larger than, and what neither is smaller than; but zeros."""
    size, bound = np.abs(factor.ball.value), factor.ball.bound
    high = float(np.max(size, initial=0.0)) + float(np.max(bound, initial=0.0))
    if factor.ball.radius is None:
        low = float(np.min(size, where=size > 0, initial=1.0))
    else:
        low = float(np.min(np.where(size + bound > 0, size - bound, 1.0), initial=1.0))
    if not math.isfinite(high) or low < 0:
        return math.inf, 0.0
    high, low = max(high, 1.0), min(low, 1.0)
    return (1 / low if low else math.inf, 1 / high) if factor.divides else (high, low)


def on_the_way(factors: Sequence[Factor], tiny: float, largest: float) -> tuple[Any, Any] | None:
    """What some order of multiplying finite numbers meets; None where it is no more than usual.

    Gives where nothing is known of the product, as some partial product may be beyond `largest`
    (or below `tiny`, and multiplied by an infinity), and by how much it may be off elsewhere per
    unit of what one partial product loses that is below `tiny`.
    """
    if not factors:  # too large to be looked at
        return None
    with np.errstate(all="ignore"):
        ends = [_ends(one) for one in factors]
        most, least = (math.prod(end) for end in zip(*ends, strict=True))
        if most <= largest and least >= tiny:
            return None
        sizes = [_sizes(one) for one in factors]
        high, low = np.asarray(1.0), np.asarray(1.0)
        zero, endless, no_number = np.asarray(False), np.asarray(False), np.asarray(False)
        for one, (lower, upper) in zip(factors, sizes, strict=True):
            value = np.asarray(one.ball.value, dtype=np.float64)
            sure = np.asarray(one.ball.bound) == 0
            none, all_ = sure & (value == 0), sure & np.isinf(value)
            none, all_ = (all_, none) if one.divides else (none, all_)
            high = high * one.placed(np.maximum(upper, 1.0))
            low = low * one.placed(np.minimum(lower, 1.0))
            zero, endless = zero | one.placed(none), endless | one.placed(all_)
            no_number = no_number | one.placed(sure & np.isnan(value))
    vanishes, overflows = low < tiny, high > largest
    unknown = ~no_number & ~(zero & endless) & np.where(endless, vanishes, overflows)
    return unknown, np.where(vanishes & ~zero & ~endless, high, 0.0)
