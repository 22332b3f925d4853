"""Scalar functions of balls: radii that propagate, and the rounding of every result.

Forward error analysis (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., chapters 2
to 4): a function moves by no more than it can while its arguments move in their balls, and its own
result is rounded within the allowance of `irlang.scalar`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from irlang.arithmetic import STANDARD, Allowance, Arithmetic
from irlang.dtypes import DTYPES
from irlang.interp import wide
from irlang.interp.ball import Ball, coarse, gamma, gap, least, magnitude, running, settled, spread
from irlang.interp.endless import settled_sum
from irlang.interp.overflow import exceeding
from irlang.interp.running import Running, chosen
from irlang.scalar import SCALARS, WHOLE, Scalar
from irlang.special import steepest_polygamma

_STEPS = frozenset({"floor", "ceil", "round", "trunc", "sign", "int"})
# of what kinds of numbers they are is not for the type of the others to say
_OF_WHOLE = frozenset({"polygamma", "rounded", "int", "select"})
_COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})
# How far a value can move when its argument does: |f(a) - f(b)| <= L |a - b| everywhere.
_LIPSCHITZ = {
    "sin": 1.0,
    "cos": 1.0,
    "tanh": 1.0,
    "sigmoid": 0.25,
    "erf": 1.1283791670955126,
    "erfc": 1.1283791670955126,
}


_CORRECTLY = Allowance(0.5)
_CANCELLED = 8.0  # units in the last place of 1
_LARGEST = DTYPES["f64"].largest
_FRACTION = (1 << 52) - 1  # the bits of a float64 that a power of two has not


class BallFunctions:
    """Scalar functions over balls, at the precision of a floating-point type, on a target.

    lost: what a rounding may lose of a number below the least normal one, `tiny`.
    """

    def __init__(self, dtype: str, arithmetic: Arithmetic = STANDARD) -> None:
        self.dtype = DTYPES[dtype]
        self.arithmetic = arithmetic
        self.unit = math.sqrt(self.dtype.unit) if arithmetic.halved else self.dtype.unit
        self.tiny = self.dtype.tiny
        # a formula that loses half of the digits may also meet larger numbers on its way
        self.most = self.dtype.largest * (self.unit if arithmetic.halved else 1.0)
        self.lost = self.tiny if arithmetic.flush else self.tiny * self.unit

    def growth(self, roundings: int) -> float:
        """What so many roundings make of a relative error; half the digits are lost but once."""
        if not self.arithmetic.halved:
            return gamma(roundings, self.unit)
        return max(gamma(roundings, self.dtype.unit), self.unit * min(roundings, 1))

    def allowed(self, function: str) -> Allowance:
        """The allowance of a function; with half the digits one rounding, or what 1 cancels."""
        found = self.arithmetic.allowance(function)
        if not self.arithmetic.halved:
            return found
        place = self.dtype.unit / self.unit
        return Allowance(
            max(1.0, found.ulps * place), max(found.absolute, 1.0) * _CANCELLED * place
        )

    def select(self, condition: Ball, yes: Ball, no: Ball) -> Ball:
        """A choice; where the condition is uncertain, either value may be meant.

        So may be, at a kink or a tie, any real number between them: of these the middle is given.
        """
        yes, no = self.mixed([yes, no])
        value = np.where(condition.value, yes.value, no.value)
        if condition.radius is None:
            if yes.radius is None and no.radius is None:
                return Ball(value)
            own = np.where(condition.value, yes.bound, no.bound)
            found = Ball(value, own, least=min(least(yes), least(no)))
            return self._either(found, condition, yes, no, 0.0)
        apart = gap(yes.value, no.value)
        doubtful = np.asarray(condition.radius) > 0
        if value.dtype == np.float64:
            middle = doubtful & np.isfinite(apart)
            with np.errstate(invalid="ignore"):
                value = np.where(middle, yes.value / 2 + no.value / 2, value)
            apart = np.where(middle, apart / 2, apart)
        between, apart = apart, apart + np.maximum(yes.bound, no.bound)
        own = np.where(condition.value, yes.bound, no.bound)
        if value.dtype == np.bool_:
            apart = np.minimum(apart, 1.0)
        radius = np.where(doubtful, apart, own)
        found = Ball(value, radius, least=min(least(yes), least(no)))
        return self._either(found, condition, yes, no, between)

    @staticmethod
    def _either(found: Ball, condition: Ball, yes: Ball, no: Ball, between: Any) -> Ball:
        """A choice, with the terms of what is chosen where that is a running sum."""
        if yes.running is not None or no.running is not None:
            doubtful = np.asarray(condition.bound) > 0
            found.running = chosen(condition.value, doubtful, running(yes), running(no), between)
        return found

    def apply(self, function: str, args: list[Ball]) -> Ball:
        """A scalar function: propagated radii, and the rounding of the result."""
        if function not in _OF_WHOLE:
            args = self.mixed(args, real=SCALARS[function].kind == "real")
        if any(wide.is_wide(arg.value) for arg in args):
            value = wide.apply(function, [arg.value for arg in args])
            if np.asarray(value).dtype.kind != "f":
                return self._of_integers(value, args)
            args = [Ball(np.asarray(a.value, dtype=np.float64), a.radius) for a in args]
        rule = _RULES.get(function)
        found = self._function(function, args) if rule is None else rule(self, function, args)
        self._overflown(function, args, found)
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

    def mixed(self, args: list[Ball], *, real: bool = False) -> list[Ball]:
        """Whole numbers beside reals, or all where `real`, as the type's nearest numbers."""
        kinds = [np.asarray(arg.value).dtype.kind for arg in args]
        if not real and "f" not in kinds:
            return args
        pairs = zip(args, kinds, strict=True)
        return [self.converted(arg) if kind in "iuO" else arg for arg, kind in pairs]

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

    def _rounded(self, value: Any, slack: Any, allowed: Allowance = _CORRECTLY) -> Ball:
        """A result that is rounded, wherever in its slack it lies."""
        place = 2 * self.unit  # the last place of a number is at most so much of it
        least = self.lost if allowed is _CORRECTLY else self.tiny  # libraries flush denormals
        with np.errstate(invalid="ignore"):
            size = np.abs(value) + slack
            own = place * np.maximum(allowed.ulps * size, allowed.absolute) + least
            own = np.where(np.isfinite(value), own, 0.0)
            return self.bounded(Ball(value, slack + own))

    def _arithmetic(self, function: str, args: list[Ball]) -> Ball:
        a, b = args
        value = SCALARS[function].numpy(a.value, b.value)
        exact, halved = a.radius is None and b.radius is None, self.arithmetic.halved
        kind = np.asarray(value).dtype.kind
        # Then no operand is infinite or no number, but for a divisor, which may be infinite.
        finite = kind == "f" and bool(np.isfinite(value).all())
        if exact and kind in "ib":
            return Ball(value)
        if function in "+-":
            slack: Any = a.bound + b.bound
        elif exact:
            slack = 0.0
        elif function == "*":
            slack = np.abs(a.value) * b.bound + np.abs(b.value) * a.bound + a.bound * b.bound
            slack = np.where(np.isnan(slack), np.inf, slack)  # 0 * inf
        else:
            low = np.maximum(np.abs(b.value) - b.bound, least(b))
            slack = (a.bound + np.abs(value) * b.bound) / np.where(low > 0, low, np.nan)
            # a divisor that may be zero, or a numerator that may: the quotient may be NaN
            doubtful = (np.asarray(b.bound) > 0) | ((a.bound > 0) & (np.abs(a.value) <= a.bound))
            slack = np.where(low > 0, slack, np.where(doubtful, np.inf, 0.0))
        if kind in "ib":
            return Ball(value, slack)
        if not finite:
            slack = np.where(_sure(function, a, b), 0.0, slack)
        if function in "+-" and a.terms + b.terms > 2:
            return self.longer([a, b], value)
        if function in "+-" and exact and not halved and self._integers(a, b, value):
            return Ball(value)
        found = self._rounded(
            value, slack, self.allowed(function) if function == "/" else _CORRECTLY
        )
        if halved:  # an exact operation may stand for some that are not
            return self._added(found, args) if function in "+-" else found
        zero = (np.asarray(a.value) == 0) | (np.asarray(b.value) == 0)
        free = _free(function, a, b) & (zero | (np.abs(value) >= self.tiny))
        if function != "/":
            free = free | self._coarse(a, b, value)
        if np.any(free):
            found.radius = np.where(free & np.isfinite(found.bound), slack, found.bound)
        if function in "+-":
            return self.bounded(self._added(found, args, free))
        if function in "*/" and self.arithmetic.distributes:
            return self._distributed(found, a, b, function, slack)
        return found

    def _distributed(self, found: Ball, a: Ball, b: Ball, function: str, slack: Any) -> Ball:
        """A product with a sum whose terms may each have been multiplied instead."""
        if function == "*" and b.terms > a.terms:
            a, b = b, a
        if a.terms == 1:
            return found
        more = 1 if function == "*" else 2  # roundings of each term: the reciprocal's is one
        other = magnitude(b) if function == "*" else 1 / np.maximum(np.abs(b.value) - b.bound, 0)
        total = magnitude(a) * other
        grown = self.growth(a.terms - 1 + more)
        if b.terms == 1 or function == "/":
            terms = a.terms + more
            grown -= self.growth(a.terms - 1)  # which the radius of the sum has in it
        else:
            terms = a.terms + b.terms
            grown = self.growth(terms)
        radius = np.maximum(found.bound, slack + grown * total)
        radius = np.where((found.bound == 0) & ~np.isfinite(found.value), 0.0, radius)
        if b.terms == 1:  # of terms of either sign, each by itself times infinity
            endless = np.isinf(b.value) if function == "*" else np.asarray(b.value) == 0
            radius = np.where(endless, np.inf, radius)
        return self.bounded(Ball(found.value, radius, terms, total))

    def longer(self, parts: list[Ball], value: Any) -> Ball:
        """Sums and what is added to them, as one sum; its roundings take the place of theirs."""
        parts = [p for p in parts if p.radius is not None or np.ndim(p.value) or p.value != 0]
        if len(parts) == 1:
            return replace(parts[0], value=value)
        terms = sum(part.terms for part in parts)
        roundings = max(terms - 1, *(part.roundings for part in parts))
        sizes = [magnitude(part) for part in parts]
        radius = sum(
            part.bound + (self.growth(roundings) - self.growth(part.roundings)) * size
            for part, size in zip(parts, sizes, strict=True)
        )
        spare, total = roundings - (terms - 1), sum(sizes)
        radius = radius + self.flushed(len(parts) - 1, total)
        radius = self._surely(value, parts, radius)
        return self.bounded(self._added(Ball(value, radius, terms, total, spare), parts))

    def _surely(self, value: Any, parts: list[Ball], radius: Any) -> Any:
        """The radius of a sum, none where it is surely infinite or no number."""
        if np.all(np.isfinite(value)):
            return radius
        shape = np.shape(value)
        whole = [
            np.stack([np.broadcast_to(np.asarray(a, np.float64), shape) for a in arrays])
            for arrays in ([p.value for p in parts], [p.bound for p in parts])
        ]
        sure = settled_sum(
            value,
            [(whole[0], whole[1])],
            lambda added: np.sum(added[0] * added[1], axis=0),
            self.most,
        )
        return radius if sure is None else np.where(sure, 0.0, radius)

    def flushed(self, additions: int, total: Any) -> Any:
        """What so many additions lose to denormal partial sums, none of which exceeds `total`."""
        return additions * np.minimum(self.lost, total)

    def _added(self, found: Ball, parts: list[Ball], exact: Any = np.False_) -> Ball:
        """A sum that goes on a running one: its terms, and a radius that any order of them has.

        exact: where one order rounds nothing; nor does another.
        """
        if all(part.running is None for part in parts):
            return found
        found.running = functools.reduce(Running.plus, map(running, parts))
        with np.errstate(invalid="ignore"):
            radius = np.maximum(found.bound, found.running.radius(self._growths))
        found.radius = np.where(np.isfinite(found.value) & ~exact, radius, found.bound)
        return found

    def _growths(self, roundings: Any) -> Any:
        """`growth` of every element."""
        numbers, places = np.unique(roundings, return_inverse=True)
        found = np.array([self.growth(int(number)) for number in numbers])
        return found[places].reshape(np.shape(roundings))

    def _coarse(self, a: Ball, b: Ball, value: Any) -> Any:
        """Where operands and result are multiples of a unit so large that any order is exact."""
        grid, limit = coarse(self.unit)

        def simple(numbers: Any) -> Any:
            with np.errstate(invalid="ignore", over="ignore"):
                return (np.abs(numbers) < limit) & (np.floor(numbers * grid) == numbers * grid)

        found = simple(np.asarray(value, dtype=np.float64))
        if not np.any(found):
            return found
        return found & _exactly(a, simple) & _exactly(b, simple)

    def _integers(self, a: Ball, b: Ball, value: Any) -> bool:
        """Whether a sum is one of small whole numbers, which no format rounds."""
        with np.errstate(invalid="ignore"):
            return bool(
                np.ndim(a.value) + np.ndim(b.value) > 0
                and np.all(np.abs(value) < 1.0 / self.unit)
                and np.all(np.floor(a.value) == a.value)
                and np.all(np.floor(b.value) == b.value)
            )

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

    def _about(self, function: str, args: list[Ball]) -> Ball:  # noqa: ARG002
        """A value that is rounded even where no arithmetic would."""
        return self._rounded(args[0].value, args[0].bound)

    def _extreme(self, function: str, args: list[Ball]) -> Ball:
        a, b = args
        value = SCALARS[function].numpy(a.value, b.value)
        if a.radius is None and b.radius is None:
            return Ball(value)
        with np.errstate(invalid="ignore"):
            upper = SCALARS[function].numpy(a.value + a.bound, b.value + b.bound)
            lower = SCALARS[function].numpy(a.value - a.bound, b.value - b.bound)
        sure = (np.asarray(a.bound) == 0) & (np.asarray(b.bound) == 0)
        sure = sure | _no_number(a) | _no_number(b)
        return settled(value, np.where(sure, 0.0, spread(value, lower, upper)))

    def _comparison(self, function: str, args: list[Ball]) -> Ball:
        a, b = args
        value = SCALARS[function].numpy(a.value, b.value)
        if a.radius is None and b.radius is None:
            return Ball(value)
        if a is b:  # the same number, of which it is asked whether it is one
            return Ball(value, np.isinf(a.radius).astype(np.float64))
        reach = np.asarray(a.bound + b.bound)
        with np.errstate(invalid="ignore"):
            near = np.isinf(reach) | ((gap(a.value, b.value) <= reach) & (reach > 0))
        return Ball(value, near.astype(np.float64))

    def _logic(self, function: str, args: list[Ball]) -> Ball:
        value = SCALARS[function].numpy(*(x.value for x in args))
        if all(x.radius is None for x in args):
            return Ball(value)
        if function == "not":
            return Ball(value, args[0].radius)
        a, b = args
        doubt_a, doubt_b = np.asarray(a.bound) > 0, np.asarray(b.bound) > 0
        settling_a = ~doubt_a & (
            ~np.asarray(a.value, bool) if function == "and" else np.asarray(a.value, bool)
        )
        settling_b = ~doubt_b & (
            ~np.asarray(b.value, bool) if function == "and" else np.asarray(b.value, bool)
        )
        doubt = (doubt_a | doubt_b) & ~settling_a & ~settling_b
        return Ball(value, doubt.astype(np.float64))

    def _test(self, function: str, args: list[Ball]) -> Ball:
        value = SCALARS[function].numpy(np.asarray(args[0].value, dtype=np.float64))
        if args[0].radius is None:
            return Ball(value)
        return Ball(value, np.isinf(args[0].radius).astype(np.float64))

    def _select(self, function: str, args: list[Ball]) -> Ball:  # noqa: ARG002
        return self.select(*args)

    def _step(self, function: str, args: list[Ball] | Ball) -> Ball:
        ball = args if isinstance(args, Ball) else args[0]
        step = SCALARS[function].numpy
        value = step(ball.value)
        if ball.radius is None:
            return Ball(value)
        with np.errstate(invalid="ignore"):
            upper, lower = step(ball.value + ball.bound), step(ball.value - ball.bound)
            around = spread(value, lower, upper)
        around = np.where(np.asarray(ball.bound) == 0, 0.0, around)  # exact, be it NaN
        # what nothing is known of may be NaN, of which a step is no whole number
        return settled(value, np.where(np.isinf(ball.bound), np.inf, around))

    def _nearest(self, function: str, args: list[Ball]) -> Ball:
        """A number put into few digits: a step function, exact at what is exact."""
        ball, *kind = args
        step = SCALARS[function].numpy
        given = [arg.value for arg in kind]
        value = step(ball.value, *given)
        if ball.radius is None:
            return Ball(value)
        with np.errstate(invalid="ignore"):
            upper, lower = (step(ball.value + sign * ball.bound, *given) for sign in (1, -1))
            around = spread(value, lower, upper)
        return Ball(value, np.where(np.asarray(ball.bound) == 0, 0.0, around))  # exact, be it NaN

    def _quotient(self, function: str, args: list[Ball]) -> Ball:
        """`//`, `%` and `ceildiv`: exact on whole numbers; on reals a step, or a jump near one."""
        a, b = args
        value = SCALARS[function].numpy(a.value, b.value)
        if np.asarray(value).dtype.kind in "ib" and a.radius is None and b.radius is None:
            return Ball(value)
        radius = self._jumping(function, a, b, value)
        if a.radius is not None or b.radius is not None:
            with np.errstate(invalid="ignore"):
                known = (np.asarray(a.bound) == 0) & (np.asarray(b.bound) == 0)
                exact = known & (np.floor(a.value) == a.value) & (np.floor(b.value) == b.value)
            radius = np.where(exact & (np.abs(a.value) * self.unit < 1), 0.0, radius)
        return Ball(value, radius)

    def _jumping(self, function: str, a: Ball, b: Ball, value: Any) -> Any:
        """The radius of a quotient of numbers that are not known, or not whole."""
        with np.errstate(all="ignore"):
            ratio = np.true_divide(a.value, b.value)
            low = np.abs(b.value) - b.bound
            slack = (a.bound + np.abs(ratio) * b.bound) / np.maximum(low, 0.0)
            slack = slack + 2 * self.unit * np.abs(ratio)
            jump = np.floor(ratio + slack) != np.floor(ratio - slack)
            # a divisor that may be zero, or a denormal that may be flushed to it
            lost = (low <= 0) & (np.asarray(b.bound) > 0) | (b.value != 0) & (low < self.tiny)
            if function != "%":
                return np.where(lost, np.inf, np.where(jump, np.ceil(slack) + 1.0, 0.0))
            own = a.bound + np.abs(np.floor(ratio)) * b.bound + self.unit * np.abs(value)
            whole = (a.radius is None and b.radius is None) & (value == 0)
            own = np.where(jump & ~whole, np.abs(b.value) + own, own)
            return np.where(lost, np.inf, own)

    def _power(self, function: str, args: list[Ball]) -> Ball:
        a, b = args
        row = SCALARS[function]
        value = row.numpy(a.value, b.value)
        if a.radius is None and b.radius is None:
            return self._rounded(value, 0.0, self.allowed(function))
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
        return self._rounded(value, np.where(exact, 0.0, np.where(fits, slack, np.inf)), allowed)

    def _function(self, function: str, args: list[Ball]) -> Ball:
        """A function of one argument, by its monotone pieces or its Lipschitz constant."""
        row = SCALARS[function]
        a = args[0]
        value = row.numpy(a.value)
        if np.asarray(value).dtype.kind in "ib":
            return self._of_integers(value, args)
        slack = 0.0 if a.radius is None else self._slack(function, a, value)
        found = self._rounded(value, slack, self.allowed(function))
        origin = _exactly(a, _is_zero) & (value == 0)  # of which no library is unsure
        if np.any(origin):
            found.radius = np.where(origin, 0.0, found.bound)
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
            slack = np.where(radius == 0, 0.0, np.where(outside | np.isnan(slack), np.inf, slack))
        # an argument of which nothing is known may be NaN: then nothing is known of the value
        return np.where(np.isinf(radius), np.inf, slack)

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
        return self._rounded(value, slack, self.allowed(function))


def _free(function: str, a: Ball, b: Ball) -> Any:
    """Where arithmetic rounds nothing: with zero, and times or by a power of two.

    Zero times anything is zero, and what is added to zero stays. A power of two moves the exponent,
    which is exact between the least normal number and the largest.
    """
    if function in "+-":
        return _exactly(a, _is_zero) | _exactly(b, _is_zero)
    if function == "/":
        return _exactly(a, _is_zero) | _exactly(b, _is_power)
    return _exactly(a, _moves) | _exactly(b, _moves)


def _exactly(ball: Ball, test: Callable[[Any], Any]) -> Any:
    """Where a value is exact and passes a test."""
    exact = np.asarray(ball.bound) == 0
    return exact & test(np.asarray(ball.value)) if exact.any() else exact


def _no_number(ball: Ball) -> Any:
    """Where a value is NaN for sure, whoever computes it."""
    return _exactly(ball, np.isnan)


def _sure(function: str, a: Ball, b: Ball) -> Any:
    """Where arithmetic gives NaN or an infinity whoever computes it."""
    found = _no_number(a) | _no_number(b)
    if function in "*/":
        found = found | _endless(a, b)
    return found | _endless(b, a) if function == "*" else found


def _endless(a: Ball, b: Ball) -> Any:
    """Where `a` is infinite for sure, and `b` a finite number that is surely not zero: so then are
    their product and quotient.
    """
    finite = np.isfinite(b.value) & np.isfinite(b.bound)
    return _exactly(a, np.isinf) & finite & (np.abs(b.value) > b.bound)


def _is_zero(value: Any) -> Any:
    return value == 0


def _is_power(value: Any) -> Any:
    """Not of 1: programs fold a divisor of one element, or an open gate, into other factors."""
    bits = np.asarray(value, dtype=np.float64).view(np.int64)
    power = (bits & _FRACTION) == 0  # of zero and of infinity, too
    return power & (value != 0) & (np.abs(value) != 1) & np.isfinite(value)


def _moves(value: Any) -> Any:
    return (value == 0) | _is_power(value)


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

_RULES: dict[str, Callable[[BallFunctions, str, list[Ball]], Ball]] = {
    **dict.fromkeys(("+", "-", "*", "/"), BallFunctions._arithmetic),
    **dict.fromkeys(("neg", "abs", "real", "constant"), BallFunctions._same),
    **dict.fromkeys(("max", "min"), BallFunctions._extreme),
    **dict.fromkeys(_COMPARISONS, BallFunctions._comparison),
    **dict.fromkeys(("and", "or", "not"), BallFunctions._logic),
    **dict.fromkeys(("isnan", "isinf"), BallFunctions._test),
    "about": BallFunctions._about,
    **dict.fromkeys(_STEPS, BallFunctions._step),
    **dict.fromkeys(("//", "%", "ceildiv"), BallFunctions._quotient),
    **dict.fromkeys(WHOLE, BallFunctions._exact),
    "rounded": BallFunctions._nearest,
    "select": BallFunctions._select,
    "pow": BallFunctions._power,
    "polygamma": BallFunctions._ordered,
}
