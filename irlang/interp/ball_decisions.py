"""Decisions over balls: what rounding may turn to the other side is uncertain, and told so."""

from __future__ import annotations

from typing import Any

import numpy as np

from irlang.interp.ball import Ball, ends, gap, least, running, settled, spread
from irlang.interp.ball_precision import Precision
from irlang.interp.ball_sure import no_number
from irlang.interp.ball_zeros import either_zero
from irlang.interp.running import chosen
from irlang.scalar import SCALARS

_WIDEST = 2.0**53  # below which a float has every whole number


class BallDecisions(Precision):
    """Choices, comparisons, logic, steps, and the quotients of which a step is a part."""

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
        if value.dtype == np.float64 and np.any(doubtful & np.isinf(apart)):
            found.ends = self._between(condition, yes, no)
        return self._either(found, condition, yes, no, between)

    @staticmethod
    def _between(condition: Ball, yes: Ball, no: Ball) -> tuple[Any, Any]:
        """What a choice lies between: one of the two, or both where it is open."""
        chosen = np.asarray(condition.value, dtype=bool)
        doubtful = np.asarray(condition.radius) > 0
        pairs = zip(ends(yes), ends(no), (np.minimum, np.maximum), strict=True)
        low, high = (
            np.where(doubtful, extreme(one, other), np.where(chosen, one, other))
            for one, other, extreme in pairs
        )
        return low, high

    def _either(self, found: Ball, condition: Ball, yes: Ball, no: Ball, between: Any) -> Ball:
        """A choice, with the terms of what is chosen where that is a running sum."""
        if yes.running is not None or no.running is not None:
            doubtful = np.asarray(condition.bound) > 0
            first, second = running(yes, self.unit), running(no, self.unit)
            found.running = chosen(condition.value, doubtful, first, second, between)
        return found

    def extreme(self, function: str, args: list[Ball]) -> Ball:
        """The larger or the smaller of two; of zeros of either sign it may be either."""
        a, b = args
        value = SCALARS[function].numpy(a.value, b.value)
        tie = either_zero(value, np.asarray(a.value) == b.value)
        signless = None
        if tie is not None:
            signless = either_zero(value, tie & (np.signbit(a.value) != np.signbit(b.value)))
        if a.radius is None and b.radius is None:
            return Ball(value, signless=signless)
        with np.errstate(invalid="ignore"):
            upper = SCALARS[function].numpy(a.value + a.bound, b.value + b.bound)
            lower = SCALARS[function].numpy(a.value - a.bound, b.value - b.bound)
        sure = (np.asarray(a.bound) == 0) & (np.asarray(b.bound) == 0)
        sure = sure | no_number(a) | no_number(b)
        found = settled(value, np.where(sure, 0.0, spread(value, lower, upper)))
        found.signless = signless
        return found

    def comparison(self, function: str, args: list[Ball]) -> Ball:
        """A comparison, in doubt where the balls touch."""
        a, b = args
        value = SCALARS[function].numpy(a.value, b.value)
        if a.radius is None and b.radius is None:
            return Ball(value)
        if a is b:  # the same number, of which it is asked whether it is one
            return Ball(value, np.isinf(a.radius).astype(np.float64))
        reach = np.asarray(a.bound + b.bound)
        with np.errstate(invalid="ignore"):
            near = gap(a.value, b.value) <= reach
            if a.ends is not None or b.ends is not None:
                near = near & _may_differ(function, ends(a), ends(b))
            near = np.isinf(reach) | (near & (reach > 0))
        return Ball(value, near.astype(np.float64))

    def logic(self, function: str, args: list[Ball]) -> Ball:
        """`and`, `or` and `not`: what one side settles is certain."""
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

    def test(self, function: str, args: list[Ball]) -> Ball:
        """Whether a number is infinite, or none; in doubt where nothing is known of it."""
        value = SCALARS[function].numpy(np.asarray(args[0].value, dtype=np.float64))
        if args[0].radius is None:
            return Ball(value)
        return Ball(value, np.isinf(args[0].radius).astype(np.float64))

    def step(self, function: str, args: list[Ball] | Ball) -> Ball:
        """A function with steps: where a ball reaches over one, either side may be meant."""
        ball = args if isinstance(args, Ball) else args[0]
        step = SCALARS[function].numpy
        value = step(ball.value)
        if function == "int":
            value = _counted(value)
        if ball.radius is None:
            return Ball(value)
        with np.errstate(invalid="ignore"):
            upper, lower = step(ball.value + ball.bound), step(ball.value - ball.bound)
            around = spread(value, lower, upper)
        around = np.where(np.asarray(ball.bound) == 0, 0.0, around)  # exact, be it NaN
        # what nothing is known of may be NaN, of which a step is no whole number
        found = settled(value, np.where(np.isinf(ball.bound), np.inf, around))
        if np.asarray(ball.value).dtype == np.bool_ and found.radius is not None:
            doubtful = np.asarray(ball.bound) > 0
            found.ends = np.where(doubtful, 0, value), np.where(doubtful, 1, value)
        found.signless = either_zero(value, np.signbit(lower) != np.signbit(upper))
        return found

    def nearest(self, function: str, args: list[Ball]) -> Ball:
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

    def quotient(self, function: str, args: list[Ball]) -> Ball:
        """`//`, `%` and `ceildiv`: exact on whole numbers; on reals a step, or a jump near one."""
        a, b = args
        value = SCALARS[function].numpy(a.value, b.value)
        if np.asarray(value).dtype.kind in "ib" and a.radius is None and b.radius is None:
            return Ball(value)
        # libraries give a remainder of zero the sign of the dividend, or that of the divisor
        signless = either_zero(value, function == "%")
        radius = self._jumping(function, a, b, value)
        if a.radius is not None or b.radius is not None:
            with np.errstate(invalid="ignore"):
                known = (np.asarray(a.bound) == 0) & (np.asarray(b.bound) == 0)
                exact = known & (np.floor(a.value) == a.value) & (np.floor(b.value) == b.value)
                # of whole numbers too, a remainder that a divisor was added to is rounded
                most = np.maximum(np.abs(a.value), np.abs(value))
            radius = np.where(exact & (most * self.unit < 1), 0.0, radius)
        if np.asarray(value).dtype.kind == "f" and function == "%":
            # by zero, or of an infinity, there is none, and nothing is rounded on the way to that
            known = (np.asarray(a.bound) == 0) & (np.asarray(b.bound) == 0)
            radius = np.where(known & np.isnan(value), 0.0, radius)
        return Ball(value, radius, signless=signless)

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
            own = a.bound + np.abs(np.floor(ratio)) * b.bound
            own = own + self.unit * (np.abs(value) + own)
            whole = (a.radius is None and b.radius is None) & (value == 0)
            own = np.where(jump & ~whole, np.abs(b.value) + own, own)
            return np.where(lost, np.inf, own)


def _may_differ(function: str, a: tuple[Any, Any], b: tuple[Any, Any]) -> Any:
    """Whether numbers between ends may compare one way and the other."""
    if function in ("==", "!="):
        return (a[0] <= b[1]) & (b[0] <= a[1])
    compare = SCALARS[function].numpy
    return compare(a[0], b[1]) != compare(a[1], b[0])


def _counted(value: Any) -> Any:
    """Whole numbers as such, whose arithmetic rounds nothing, where all are finite and fit."""
    with np.errstate(invalid="ignore"):
        fits = np.asarray(value).dtype.kind == "f" and bool(np.all(np.abs(value) < _WIDEST))
    return np.asarray(value).astype(np.int64) if fits else value
