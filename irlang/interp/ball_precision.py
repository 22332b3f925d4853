"""What a floating-point type, on a target, makes of a ball: roundings, and where it ends."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from irlang.arithmetic import STANDARD, Allowance, Arithmetic
from irlang.dtypes import DTYPES, DType
from irlang.interp.ball import Ball, gamma, least

CORRECTLY = Allowance(0.5)
_CANCELLED = 8.0  # units in the last place of 1


class Precision:
    """A floating-point type on a target.

    lost: what a rounding may lose of a number below the least normal one, `tiny`.
    """

    def __init__(self, dtype: str, arithmetic: Arithmetic = STANDARD) -> None:
        self.arithmetic = arithmetic
        self.dtype = self.row(dtype)
        self.unit = math.sqrt(self.dtype.unit) if arithmetic.halved else self.dtype.unit
        self.tiny = self.dtype.tiny
        # a formula that loses half of the digits may also meet larger numbers on its way
        self.most = self.dtype.largest * (self.unit if arithmetic.halved else 1.0)
        self.lost = self.tiny if arithmetic.flush else self.tiny * self.unit

    def row(self, dtype: str) -> DType:
        """What is known of a type, in the range that the target has of it."""
        found = DTYPES[dtype]
        return replace(found, largest=DTYPES["f64"].largest) if self.arithmetic.far else found

    def growth(self, roundings: int) -> float:
        """What so many roundings make of a relative error; half the digits are lost but once."""
        if not self.arithmetic.halved:
            return gamma(roundings, self.unit)
        return max(gamma(roundings, self.dtype.unit), self.unit * min(roundings, 1))

    def summed(
        self, added: int, multiplied: int, total: Any, value: Any, slack: Any
    ) -> tuple[Any, Any]:
        """What the roundings of a sum of products do in any order, and its `magnitude`.

        Every term is multiplied `multiplied` times, which rounds it. A partial sum is one of some
        of the terms, so that none is larger than all that are above zero, or all below: half of
        their magnitudes and of the size of their sum. m roundings of numbers that do not exceed a
        bound, but for what was rounded before, make gamma_m times the bound at most: by induction
        over the two parts of a sum it is (1 + u)^m - 1. A multiplication that is fused with an
        addition rounds once for both. total: of the magnitudes, with the radii; slack: of these.
        """
        if self.arithmetic.halved:  # what a formula loses goes by all that it has looked at
            return self.growth(added + multiplied) * total, total
        once = self.growth(multiplied) * total
        most = (total + np.abs(value) + slack) / 2 + once
        return once + self.growth(added) * most, most

    def allowed(self, function: str) -> Allowance:
        """The allowance of a function; with half the digits one rounding, or what 1 cancels."""
        found = self.arithmetic.allowance(function)
        if not self.arithmetic.halved:
            return found
        place = self.dtype.unit / self.unit
        return Allowance(
            max(1.0, found.ulps * place), max(found.absolute, 1.0) * _CANCELLED * place
        )

    def rounded(self, value: Any, slack: Any, allowed: Allowance = CORRECTLY) -> Ball:
        """A result that is rounded, wherever in its slack it lies."""
        place = 2 * self.unit  # the last place of a number is at most so much of it
        least = self.lost if allowed is CORRECTLY else self.tiny  # libraries flush denormals
        with np.errstate(invalid="ignore"):
            size = np.abs(value) + slack
            own = place * np.maximum(allowed.ulps * size, allowed.absolute) + least
            own = np.where(np.isfinite(value), own, 0.0)
            return self.bounded(Ball(value, slack + own))

    def bounded(self, ball: Ball) -> Ball:
        """Nothing is known beyond the largest number: on the way there a program may overflow.

        Nor is anything where the radius itself has no value (0 times an infinite one).
        """
        size = np.abs(ball.value) if ball.magnitude is None else ball.magnitude
        with np.errstate(invalid="ignore"):
            within = size + ball.bound <= self.most
        if np.all(within):  # no radius is without a value then
            return ball
        lost = ~(within | ~np.isfinite(ball.value)) | np.isnan(ball.bound)
        if np.any(lost):
            ball.radius = np.where(lost, np.inf, ball.bound)
        return ball

    def narrowed(
        self,
        factors: Sequence[tuple[Any, Any]],
        terms: int,
        added: Callable[[list[Any]], Any],
    ) -> Any:
        """What the range of a coarser format adds to the radius of a sum of products: infinity
        where a factor or a sum may be infinite in it, and what is lost of small numbers; None for
        nothing.

        factors: values and radii (None: exact). added: adds up products of arrays of their shapes.
        """
        own, most = self.arithmetic, self.arithmetic.added(self.unit)
        held = own.held(self.unit)
        below, lost = own.vanishing(own.factors, self.unit, self.tiny)
        _, of_sums = own.vanishing(own.sums, self.unit, self.tiny)
        if math.inf == most == held and not lost and not of_sums:
            return None
        found: Any = 2 * terms * of_sums
        with np.errstate(invalid="ignore"):
            values = [np.abs(np.asarray(value, np.float64)) for value, _ in factors]
            radii = [0.0 if radius is None else radius for _, radius in factors]
            wide = [size + radius for size, radius in zip(values, radii, strict=True)]
            for place, (size, radius) in enumerate(zip(values, radii, strict=True)):
                beyond = np.isfinite(size) & (wide[place] > held)
                small = (wide[place] > 0) & (size - radius < below)
                ones = [np.ones(np.shape(one)) for one in values]
                if np.any(beyond):
                    ones[place] = beyond.astype(np.float64)
                    found = np.where(added(ones) > 0, np.inf, found)
                if np.any(small):
                    others = [one + lost for one in wide]
                    others[place] = np.broadcast_to(small, np.shape(size)).astype(np.float64)
                    found = found + lost * added(others)
            if most < math.inf:
                found = np.where(added(wide) > most, np.inf, found)
        return found

    def mixed(self, args: list[Ball], *, real: bool = False, ordered: bool = False) -> list[Ball]:
        """Whole numbers beside reals, or all where `real`, as the type's nearest numbers.

        Nothing is known of what is made of those beyond the largest one: to a program that turns
        them into the type first they are infinite. ordered: whether only their order is asked for,
        which is the same then beside all that is finite.
        """
        kinds = [np.asarray(arg.value).dtype.kind for arg in args]
        if not real and "f" not in kinds:
            return args
        endless = np.asarray(not ordered)
        for arg, kind in zip(args, kinds, strict=True):
            if kind not in "iuO" and ordered:
                endless = endless | np.isinf(arg.value)
        pairs = zip(args, kinds, strict=True)
        return [
            self.unheld(self.converted(arg), endless) if kind in "iuO" else arg
            for arg, kind in pairs
        ]

    def unheld(self, ball: Ball, where: Any = True) -> Ball:
        """A ball of which nothing is known where it is finite and beyond the largest number."""
        size = np.abs(np.asarray(ball.value, dtype=np.float64))
        beyond = (size > self.dtype.largest) & np.isfinite(size) & where
        if not np.any(beyond):
            return ball
        return replace(ball, radius=np.where(beyond, np.inf, ball.bound))

    def converted(self, ball: Ball) -> Ball:
        """Whole numbers as reals: off by a rounding where the type does not have them."""
        value = np.asarray(ball.value, dtype=np.float64)
        near = np.abs(value) * self.unit <= 1
        if np.all(near):
            return ball
        with np.errstate(over="ignore", invalid="ignore"):
            held = near | (value.astype(self.dtype.numpy).astype(np.float64) == value)
            held = held & (np.abs(value) <= self.dtype.largest)
        if np.all(held):
            return ball
        radius = ball.bound + np.where(held, 0.0, self.unit * np.abs(value))
        floor = 0.0 if least(ball) >= 0 else -math.inf
        return Ball(ball.value, radius, least=floor)

    def least(self, function: str, args: list[Ball]) -> float:
        """What no value of a function is smaller than, as far as it is not negative."""
        if function == "*" and args[0] is args[1]:
            return 0.0
        return self.floor(function, *map(least, args))

    def floor(self, function: str, *args: float) -> float:
        """The same, of what the arguments are not smaller than."""
        if function not in _LEAST:
            return -math.inf
        found = _LEAST[function](*args)
        found *= 1 - 16 * self.unit  # more than any of these functions is off
        return -math.inf if found < 0 else found if found >= self.tiny else 0.0


_LEAST: dict[str, Callable[..., float]] = {
    "+": lambda a, b: a + b if a >= 0 and b >= 0 else -math.inf,
    "*": lambda a, b: a * b if a >= 0 and b >= 0 else -math.inf,
    "/": lambda a, b: 0.0 if a >= 0 and b >= 0 else -math.inf,
    "max": max,
    "min": min,
    "pow": lambda a, b: 0.0 if a >= 0 else -math.inf,  # noqa: ARG005
    **dict.fromkeys(("real", "about", "constant"), lambda a: a),
    **dict.fromkeys(("sq", "abs", "exp", "sigmoid", "softplus", "rsqrt", "erfc"), lambda a: 0.0),  # noqa: ARG005
    "sqrt": lambda a: math.sqrt(a) if a > 0 else 0.0,
}
