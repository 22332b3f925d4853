"""A value and its radius, and the arithmetic of radii that every rule uses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irlang.interp.ball_factors import Factors
from irlang.interp.running import Running


@dataclass(slots=True)
class Ball:
    """Values and their radii; None is exact everywhere. For truth values: 1 is uncertain.

    A sum of `terms` numbers keeps its `magnitude`, which no sum of some of them exceeds: what is
    added to it later may be added in any order with them (a bias that starts the accumulation), and
    is rounded as often. Its radius has gamma_(terms - 1 + spare) times the magnitude in it; a
    product counts as one term more. What is added within the spare roundings leaves them as they
    are. `share` is what to divide the radius by for a bound of the magnitude, where that is not
    there itself.

    `least`: no true value is smaller, whatever the radius, nor is what any program computes there
    (a square, a sum of squares).
    `running`: of what a recurrence adds up, the terms so far.
    `beyond`: where one operation of exact numbers has left the type's range. Nothing is known
    there, but that a program which shows this very result shows an infinity.
    `signless`: where a zero may have either sign, as a step makes of what rounding may have left on
    either side of it.
    `factors`: of a product or a quotient, those of which any order may be multiplied first.
    `unrounded`: whether such a product was exact because of what its factors happen to be.
    `ends`: of a count, and of a choice between a number and an infinity, the least and the largest
    that it may be, where the radius, which is the same to either side, reaches further.
    """

    value: Any
    radius: Any = None
    terms: int = 1
    magnitude: Any = None
    spare: int = 0
    share: float = 0.0
    least: float = -math.inf
    running: Running | None = None
    beyond: Any = None
    signless: Any = None
    factors: Factors = ()
    unrounded: bool = False
    ends: tuple[Any, Any] | None = None

    @property
    def roundings(self) -> int:
        """How many roundings of the magnitude there are in the radius."""
        return self.terms - 1 + self.spare

    @property
    def bound(self) -> Any:
        """The radius, 0 where it is exact."""
        return 0.0 if self.radius is None else self.radius


def whole(array: Any, shape: tuple[int, ...]) -> Any:
    """An array spread to a shape, contiguous so that it can be viewed."""
    if isinstance(array, np.ndarray) and array.shape == shape and array.flags.c_contiguous:
        return array
    return np.asarray(np.broadcast_to(array, shape), order="C")


def least(ball: Ball) -> float:
    """What no element is smaller than; minus infinity where that is not known."""
    if ball.radius is not None and np.ndim(ball.value) == 0 and np.size(ball.radius):
        return max(ball.least, float(np.min(ball.value - ball.radius)))  # which may be by place
    if ball.radius is not None:
        return ball.least
    array = np.asarray(ball.value)
    found = float(np.min(array)) if array.size and array.dtype.kind in "fib" else math.nan
    return -math.inf if math.isnan(found) else found


def magnitude(ball: Ball) -> Any:
    """What no sum of some of what a value was summed from exceeds."""
    if ball.magnitude is None and ball.share:
        ball.magnitude = ball.radius / ball.share
    return np.abs(ball.value) + ball.bound if ball.magnitude is None else ball.magnitude


def gross(ball: Ball) -> Any:
    """The sum of the magnitudes of what a value was summed from: what is above zero and what is
    below it have the value for their difference, and neither exceeds the magnitude.
    """
    size = magnitude(ball)
    return size if ball.terms == 1 else 2 * size - np.abs(ball.value)


def running(ball: Ball, unit: float) -> Running:
    """The terms of a running sum; what is none has its own, and zero is no term."""
    if ball.running is not None:
        return ball.running
    value = np.asarray(ball.value, dtype=np.float64)
    with np.errstate(invalid="ignore"):  # what an infinity is added to may overflow the other way
        size = np.where(np.isfinite(value), gross(ball), 0.0)
    slack = np.asarray(ball.bound)
    rough = ~(simple(value, unit) & (slack == 0))
    count = np.asarray(size != 0, dtype=np.float64) * ball.terms
    return Running(count, size, slack, rough.astype(np.float64))


def ends(ball: Ball) -> tuple[Any, Any]:
    """The least and the largest that a value may be."""
    if ball.ends is not None:
        return ball.ends
    with np.errstate(invalid="ignore"):
        return ball.value - ball.bound, ball.value + ball.bound


def gap(a: Any, b: Any) -> Any:
    """|a - b|, 0 between equal infinities."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        return np.where(a == b, 0.0, np.abs(a - b))


def settled(value: Any, radius: Any) -> Ball:
    """A value that a step may have freed of its error: whole numbers are then counted exactly."""
    return Ball(value, radius) if np.any(radius) else Ball(value)


def spread(value: Any, lower: Any, upper: Any) -> Any:
    """How far an interval reaches from a value inside it."""
    reach = np.maximum(gap(upper, value), gap(value, lower))
    return np.where(np.isnan(reach), np.inf, reach)


def gamma(n: int, unit: float) -> float:
    """gamma_n of the error analysis; infinite where n u reaches 1."""
    return n * unit / (1 - n * unit) if n * unit < 1 else math.inf


def coarse(unit: float) -> tuple[float, float]:
    """A power of two `grid` and a bound `reach`: whatever is made of multiples of 1 / grid that are
    smaller than reach, and is one, needs no rounding.
    """
    grid = 2.0 ** (math.log2(1.0 / unit) // 3)
    return grid, 1.0 / (unit * grid * 4)


def simple(value: Any, unit: float) -> Any:
    """Where numbers are such multiples that are smaller than the bound."""
    grid, reach = coarse(unit)
    with np.errstate(invalid="ignore", over="ignore"):
        return (np.abs(value) < reach) & (np.floor(value * grid) == value * grid)


def far_above(unit: float, least: float) -> tuple[float, float]:
    """Added to a float64 and taken away again, a large number leaves what has no digits below its
    own last one. That is to be above unit times the magnitudes of a sum's terms, and no less than
    the least number that is not flushed: what to multiply the magnitudes by, and the least of it.
    Three times a power of two keeps as many digits of a term of either sign.
    """
    return 3 * 2.0**53 * unit, 3 * 2.0**51 * least


def unrounded_sum(terms: Sequence[Ball], total: Any, unit: float, least: float) -> Any:
    """Where no order of a sum rounds anything: all terms are exact, and multiples of a power of two
    that all of them together are no more than 1 / unit times of, and that is not below `least`.
    total: of their magnitudes, in float64.
    """
    found = np.True_
    with np.errstate(invalid="ignore", over="ignore"):
        times, floor = far_above(unit, least)
        far = np.maximum(times * total, floor)
        for term in terms:
            value = np.asarray(term.value, dtype=np.float64)
            found = found & ((value + far) - far == value) & (np.asarray(term.bound) == 0)
    return found
