"""Scalar functions of balls: radii that propagate, and the rounding of every result.

Forward error analysis (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., chapters 2
to 4): a function moves by no more than it can while its arguments move in their balls, and its own
result is rounded within the allowance of `irlang.scalar`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from irlang.dtypes import DTYPES
from irlang.interp import wide
from irlang.interp.ball import Ball, least
from irlang.interp.ball_arithmetic import BallArithmetic
from irlang.interp.ball_decisions import BallDecisions
from irlang.interp.ball_sure import exactly, is_zero
from irlang.interp.overflow import exceeding
from irlang.scalar import SCALARS, WHOLE
from irlang.scalar_row import Scalar
from irlang.special import polygamma_terms, steepest_polygamma

_STEPS = frozenset({"floor", "ceil", "round", "trunc", "sign", "int"})
# of what kinds of numbers they are is not for the type of the others to say
_OF_WHOLE = frozenset({"polygamma", "rounded", "int", "select"})
_COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})
_CHOOSING = frozenset({"min", "max"})
_ORDERED = _COMPARISONS | _CHOOSING
# How far a value can move when its argument does: |f(a) - f(b)| <= L |a - b| everywhere.
_LIPSCHITZ = {
    "sin": 1.0,
    "cos": 1.0,
    "tanh": 1.0,
    "sigmoid": 0.25,
    "erf": 1.1283791670955126,
    "erfc": 1.1283791670955126,
}


_LARGEST = DTYPES["f64"].largest


class BallFunctions(BallArithmetic, BallDecisions):
    """Scalar functions over balls, at the precision of a floating-point type, on a target."""

    def apply(self, function: str, args: list[Ball]) -> Ball:
        """A scalar function: propagated radii, and the rounding of the result."""
        whole = [np.asarray(arg.value).dtype.kind in "iuO" for arg in args]
        if function not in _OF_WHOLE:
            args = self.mixed(
                args, real=SCALARS[function].kind == "real", ordered=function in _ORDERED
            )
        if any(wide.is_wide(arg.value) for arg in args):
            value = wide.apply(function, [arg.value for arg in args])
            if np.asarray(value).dtype.kind != "f":
                return self._of_integers(value, args)
            args = [Ball(np.asarray(a.value, dtype=np.float64), a.radius) for a in args]
        rule = _RULES.get(function)
        found = self._function(function, args) if rule is None else rule(self, function, args)
        self._overflown(function, args, found)
        if function in _CHOOSING and any(whole) and not all(whole):
            found = self.unheld(found)
        self._unsigned(function, args, found)
        if found.radius is not None:
            found.least = self.least(function, args)
        return found

    def _overflown(self, function: str, args: list[Ball], found: Ball) -> None:
        """Nothing is known of what has overflowed, but what it is by itself."""
        margin = 1 + 2 * self.unit * (1 + self.allowed(function).ulps)
        limit = min(self.dtype.largest * margin, _LARGEST)
        found.beyond, endless = exceeding(SCALARS[function], args, found.value, limit)
        if endless is not None and endless.any():
            found.radius = np.where(endless, np.inf, found.bound)

    @staticmethod
    def _unsigned(function: str, args: list[Ball], found: Ball) -> None:
        """Zeros that are made of those without a sign; what is divided by these has none either."""
        if all(arg.signless is None for arg in args):
            return
        if function == "/" and args[1].signless is not None:
            endless = args[1].signless & (np.asarray(args[0].value) != 0)
            found.radius = np.where(endless, np.inf, found.bound)
        made = [one.signless for one in (*args, found) if one.signless is not None]
        if np.asarray(found.value).dtype.kind == "f":
            found.signless = functools.reduce(np.logical_or, made) & (found.value == 0)

    def _exact(self, function: str, args: list[Ball]) -> Ball:
        return self._of_integers(SCALARS[function].numpy(*(arg.value for arg in args)), args)

    @staticmethod
    def _of_integers(value: Any, args: list[Ball]) -> Ball:
        """A function of integers; of one that rounding has a say in nothing is known."""
        if all(arg.radius is None for arg in args):
            return Ball(value)
        doubtful = np.asarray(sum(np.asarray(arg.bound) for arg in args)) > 0
        return Ball(value, np.where(doubtful, np.inf, 0.0))

    def _same(self, function: str, args: list[Ball]) -> Ball:
        a = args[0]
        return replace(a, value=SCALARS[function].numpy(a.value))

    def _approximate(self, function: str, args: list[Ball]) -> Ball:
        """A number by itself: what is made of it does not depend on how far off it may be. Of one
        that is none, as of what has overflowed, as much is known as there was.
        """
        radius, value = args[0].radius, SCALARS[function].numpy(*(arg.value for arg in args))
        if radius is None or np.all(np.isfinite(value)):
            return Ball(value)
        return Ball(value, np.where(np.isfinite(value), 0.0, radius))

    def _about(self, function: str, args: list[Ball]) -> Ball:  # noqa: ARG002
        """A value that is rounded even where no arithmetic would.

        NaN, as the difference of equal infinities is, says nothing: there may be a tie.
        """
        found = self.rounded(args[0].value, args[0].bound)
        no_number = np.isnan(found.value)
        if np.any(no_number):
            found.radius = np.where(no_number, np.inf, found.bound)
        return found

    def _select(self, function: str, args: list[Ball]) -> Ball:  # noqa: ARG002
        return self.select(*args)

    def _power(self, function: str, args: list[Ball]) -> Ball:
        a, b = args
        row = SCALARS[function]
        value = row.numpy(a.value, b.value)
        if a.radius is None and b.radius is None:
            return self.rounded(value, 0.0, self.allowed(function))
        slack: Any = 0.0
        for da in (a.bound, -np.asarray(a.bound)):
            for db in (b.bound, -np.asarray(b.bound)):
                corner = row.numpy(np.maximum(a.value + da, least(a)), b.value + db)
                slack = np.maximum(slack, np.abs(corner - value))
        whole = (b.radius is None) & (np.floor(b.value) == b.value)
        crosses = np.abs(a.value) <= a.bound  # a turning point, or a pole, at zero
        near_zero = np.where(np.asarray(b.value) > 0, np.abs(value), np.inf)
        slack = np.where(crosses, np.maximum(slack, near_zero), slack)
        with np.errstate(invalid="ignore"):
            fits = np.where(whole, True, np.maximum(a.value - a.bound, least(a)) >= 0)
        allowed = self.allowed(function)
        exact = (np.asarray(a.bound) == 0) & (np.asarray(b.bound) == 0)  # be it infinite or NaN
        return self.rounded(value, np.where(exact, 0.0, np.where(fits, slack, np.inf)), allowed)

    def _function(self, function: str, args: list[Ball]) -> Ball:
        """A function of one argument, by its monotone pieces or its Lipschitz constant."""
        row = SCALARS[function]
        a = args[0]
        value = row.numpy(a.value)
        if np.asarray(value).dtype.kind in "ib":
            return self._of_integers(value, args)
        slack = 0.0 if a.radius is None else self._slack(function, a, value)
        found = self.rounded(value, slack, self.allowed(function))
        # at the origin no library is unsure, nor of a limit (IEEE 754-2019, 9.2.1: exp(-inf) is 0)
        sure = (exactly(a, is_zero) | exactly(a, np.isinf)) & (value == 0)
        if np.any(sure):
            found.radius = np.where(sure, 0.0, found.bound)
        return found

    def _slack(self, function: str, a: Ball, value: Any) -> Any:
        """How far a function moves while its argument moves in a ball."""
        row = SCALARS[function]
        radius = np.asarray(a.radius)
        bound = _LIPSCHITZ.get(function)
        if row.monotone is None:
            if bound is None:
                assert row.steepest is not None, f"{function} has no slope"
                with np.errstate(invalid="ignore"):
                    bound_at = row.steepest(a.value - radius, a.value + radius)
                    slack = np.where(radius > 0, bound_at * radius, 0.0)
            else:
                slack = np.minimum(bound * radius, 2.0)
        else:
            low, high = np.maximum(a.value - radius, a.least), a.value + radius
            at_low, at_high = row.numpy(low), row.numpy(high)
            slack = np.maximum(np.abs(at_high - value), np.abs(at_low - value))
            for turn in row.monotone:
                crossed = (low < turn) & (turn < high)
                slack = np.where(crossed, np.maximum(slack, np.abs(row.numpy(turn) - value)), slack)
            if bound is not None:  # differences of nearby values lose digits; the slope does not
                slack = np.minimum(
                    np.where(np.isnan(slack), np.inf, slack) + self._own(row, value), bound * radius
                )
            else:
                slack = slack + self._own(row, np.maximum(np.abs(at_low), np.abs(at_high)))
            with np.errstate(invalid="ignore"):
                outside = (low < row.domain[0]) | (high > row.domain[1])
                # wherever in its ball the argument lies, there is no value
                never = ((high < row.domain[0]) | (low > row.domain[1])) & np.isnan(value)
            slack = np.where(outside | np.isnan(slack), np.inf, slack)
            slack = np.where((radius == 0) | never, 0.0, slack)
        # an argument of which nothing is known may be NaN: then nothing is known of the value
        return np.where(np.isinf(radius), np.inf, slack)

    def _level(self, function: str, args: list[Ball]) -> Ball:
        """A function that rises by no more than its arguments do, whichever rises most."""
        row = SCALARS[function]
        value = row.numpy(*(arg.value for arg in args))
        slack = functools.reduce(np.maximum, (np.asarray(arg.bound) for arg in args))
        doubt = self._own(row, np.maximum(np.abs(value), row.least))
        slack = np.where(np.isinf(slack), np.inf, slack + np.where(np.isfinite(value), doubt, 0.0))
        return self.rounded(value, slack, self.allowed(function))

    def _rising(self, function: str, args: list[Ball]) -> Ball:
        """A function that is monotone in every argument: it is furthest off at two corners."""
        row = SCALARS[function]
        value = row.numpy(*(arg.value for arg in args))
        if all(arg.radius is None for arg in args):
            return self.rounded(value, 0.0, self.allowed(function))
        low, high = (
            row.numpy(
                *(
                    a.value + end * d * np.asarray(a.bound)
                    for a, d in zip(args, row.rises, strict=True)
                )
            )
            for end in (-1, 1)
        )
        with np.errstate(invalid="ignore"):
            slack = np.maximum(np.abs(high - value), np.abs(low - value))
            slack = slack + self._own(row, np.maximum(np.abs(high), np.abs(low)))
        moved = functools.reduce(np.maximum, (np.asarray(arg.bound) for arg in args))
        slack = np.where(moved == 0, 0.0, np.where(np.isnan(slack), np.inf, slack))
        return self.rounded(value, slack, self.allowed(function))

    @staticmethod
    def _own(row: Scalar, value: Any) -> Any:
        """The error of the oracle's own function values."""
        return max(4.0, 2 * row.ulps) * 2.0**-53 * np.abs(value)

    def _ordered(self, function: str, args: list[Ball]) -> Ball:
        """A function of a whole number, which is its order, and of a number."""
        row = SCALARS[function]
        order, a = args
        value = row.numpy(order.value, a.value)
        slack: Any = 0.0
        if a.radius is not None:
            radius = np.asarray(a.radius)
            with np.errstate(invalid="ignore"):
                steepest = steepest_polygamma(order.value, a.value - radius, a.value + radius)
                slack = np.where(radius > 0, steepest * radius, 0.0)
        slack = np.where(np.asarray(order.bound) > 0, np.inf, slack)
        allowed = self.allowed(function)
        terms = polygamma_terms(order.value, a.value)
        with np.errstate(invalid="ignore"):  # what cancels is rounded as it was before
            more = np.where(terms > 1, np.maximum(terms - np.abs(value), 0.0), 0.0)
        return self.rounded(value, slack + 2 * self.unit * allowed.ulps * more, allowed)


_RULES: dict[str, Callable[[BallFunctions, str, list[Ball]], Ball]] = {
    **dict.fromkeys(("+", "-", "*", "/"), BallFunctions.operation),
    **dict.fromkeys(("neg", "abs", "real", "constant"), BallFunctions._same),
    **dict.fromkeys(("max", "min"), BallFunctions.extreme),
    **dict.fromkeys(_COMPARISONS, BallFunctions.comparison),
    **dict.fromkeys(("and", "or", "not"), BallFunctions.logic),
    **dict.fromkeys(("isnan", "isinf"), BallFunctions.test),
    "about": BallFunctions._about,
    "approximate": BallFunctions._approximate,
    **dict.fromkeys(_STEPS, BallFunctions.step),
    **dict.fromkeys(("//", "%", "ceildiv"), BallFunctions.quotient),
    **dict.fromkeys(WHOLE, BallFunctions._exact),
    "rounded": BallFunctions.nearest,
    "select": BallFunctions._select,
    "pow": BallFunctions._power,
    "logaddexp": BallFunctions._level,
    "polygamma": BallFunctions._ordered,
    **{name: BallFunctions._rising for name, row in SCALARS.items() if row.rises},
}
