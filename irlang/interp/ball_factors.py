"""Products of several factors, which a program may multiply in any order.

One order rounds nothing where another rounds twice, and what an order meets on its way may be
beyond the largest number, or below the least normal one, though the product itself is neither.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from irlang.interp.ball import Ball

_LOOKED = 1 << 16  # elements of a factor; larger ones are not kept for products to come
_MOST = 8  # factors; a product of more is one itself


@dataclass(frozen=True, slots=True)
class Factor:
    """A number that is multiplied, or divided by.

    aligned: whether its elements lie as those of the product do; if not, the product has been
    rearranged since, and what is known of it is what all of its elements have in common.
    """

    ball: Ball
    divides: bool = False
    aligned: bool = True

    def inverse(self) -> Factor:
        """Divided by where it was multiplied, and the other way round."""
        return replace(self, divides=not self.divides)


Factors = tuple[Factor, ...]


def joined(function: str, a: Ball, b: Ball) -> Factors:
    """The factors of a product or a quotient; none where they are too large to be looked at."""
    if max(np.size(a.value), np.size(b.value)) > _LOOKED:
        return ()
    left, right = ((one.factors or (Factor(one),)) for one in (a, b))
    if len(left) + len(right) > _MOST:
        left, right = (Factor(a),), (Factor(b),)
    return left + (tuple(one.inverse() for one in right) if function == "/" else right)


def apart(factors: Factors) -> Factors:
    """The factors of a product whose elements lie elsewhere now."""
    return tuple(replace(one, aligned=False) for one in factors)


def are_whole(factors: Sequence[Factor]) -> Any:
    """Where all are exact whole numbers: then so are all products, none larger than the last."""
    found: Any = np.True_
    for one in factors:
        value = np.asarray(one.ball.value)
        with np.errstate(invalid="ignore"):
            fits = (np.asarray(one.ball.bound) == 0) & (np.floor(value) == value)
        found = found & ((fits if one.aligned else fits.all()) & (not one.divides))
    return found


@dataclass(slots=True)
class _Sizes:
    """Of a factor: its least and its largest size (1 where it is zero or not finite), and where it
    is surely zero, infinite or no number.
    """

    low: Any
    high: Any
    zero: Any
    endless: Any
    no_number: Any


def _sizes(factor: Factor) -> _Sizes:
    value = np.asarray(factor.ball.value, dtype=np.float64)
    bound = np.asarray(factor.ball.bound, dtype=np.float64)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        size, exact = np.abs(value), bound == 0
        zero, endless, nan = exact & (size == 0), exact & np.isinf(size), exact & np.isnan(size)
        plain = np.isfinite(size) & np.isfinite(bound) & ~zero
        high = np.where(plain, size + bound, 1.0)
        low = np.where(plain, np.maximum(size - bound, 0.0), 1.0)
        if not factor.aligned:
            low, high = np.min(low, initial=1.0), np.max(high, initial=1.0)
            zero, endless, nan = zero.any(), endless.any(), nan.all()
        if factor.divides:
            low, high, zero, endless = 1.0 / high, 1.0 / low, endless, zero
    return _Sizes(low, high, zero, endless, nan)


def on_the_way(factors: Sequence[Factor], tiny: float, largest: float) -> tuple[Any, Any] | None:
    """What some order of multiplying finite numbers meets; None where it is no more than usual.

    Gives where nothing is known of the product, as some partial product may be beyond `largest`
    (or below `tiny`, and multiplied by an infinity), and by how much it may be off elsewhere per
    unit of what one partial product loses that is below `tiny`.
    """
    sizes = [_sizes(one) for one in factors]
    with np.errstate(over="ignore"):
        most = math.prod(max(1.0, float(np.max(one.high, initial=1.0))) for one in sizes)
        least = math.prod(min(1.0, float(np.min(one.low, initial=1.0))) for one in sizes)
        if most <= largest and least >= tiny:
            return None
        high, low = np.asarray(1.0), np.asarray(1.0)
        zero, endless, nan = np.asarray(False), np.asarray(False), np.asarray(False)
        for one in sizes:
            high, low = high * np.maximum(one.high, 1.0), low * np.minimum(one.low, 1.0)
            zero, endless = zero | one.zero, endless | one.endless
            nan = nan | one.no_number
    vanishes, overflows = low < tiny, high > largest
    unknown = ~nan & ~(zero & endless) & np.where(endless, vanishes, overflows)
    return unknown, np.where(vanishes & ~zero & ~endless, high, 0.0)
