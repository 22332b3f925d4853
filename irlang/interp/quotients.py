"""Quotients of numbers of which one is known to be no less than the other, and by how much."""

from __future__ import annotations

import math

from irlang import equations as eq
from irlang.interp.assumptions import Facts
from irlang.interp.counting import Counting
from irlang.interp.elements import Sum
from irlang.interp.interval import Numbers
from irlang.interp.range_eval import Limits

_LEFT_BESIDE = 3  # elements of a sum, for what is left of a divisor beside the dividend
_LOOKED_AT_BESIDE = 4  # sums, for the same
_LOOKED_AT = 32  # sums, for the lower end of a quotient
_ROUNDED = 2.0**-18  # more than once, as rounding makes it of numbers that are not small
_HARDLY_MORE = 32.0  # times, which may be rounding of what is small beside what it is taken of
_SEVERAL = 1.5  # times that a dividend is its divisor, from which on multiples are tried
NO_LESS = "the divisor is no less than the dividend"


class Quotients(Counting):
    """An evaluator that compares a dividend with the divisor."""

    def quotient(self, expr: eq.Apply, found: Numbers, box: Limits, facts: Facts) -> Numbers:
        """A quotient by what is no less than the dividend is 1 at most."""
        divisor = self.remembered(expr.args[1], box, facts)
        chosen = None if found.finite else self.as_choice(self.meaning(expr.args[1], box), box)
        if chosen is not None:
            found = self.split_divisor(expr.args[0], chosen, found, box, facts)
        if not found.finite and self._same(expr, box):
            found = self.cut(found, 1.0, 1.0, "a number is divided by itself")
        if not found.finite and not divisor.holds(0.0):
            found = self.by_orders(expr, found, box, facts)
        if not divisor.holds(0.0):
            found = self.by_factors(expr, found, box)
        if divisor.low <= 0:
            found = self._of_smaller_size(expr, found, divisor, facts)
            return self._of_part_or_nothing(expr, found, divisor, box, facts)
        excess = self._excess_of(expr.args[0], expr.args[1], box, facts)
        dividend = self.remembered(expr.args[0], box, facts)
        if dividend.low < 0 < excess and found.high > _SEVERAL:
            apart = eq.Apply("-", expr.args[::-1])
            excess = min(excess, -self.by_form(apart, box, facts)[0])
        high = math.inf
        if excess <= 0:
            high = self._of_more(expr.args[0], expr.args[1], 1.0, dividend.high, box, facts)
        low = self._turned_around(expr, excess, found, divisor, box, facts)
        if high > 1.0:
            high = self._most(expr, box, divisor)
            low = min(low, high)
            high = self._hardly_more(expr, excess, high, divisor, box, facts)
        if not math.isinf(high) or not math.isinf(low):
            found = self.cut(found, -low, high, NO_LESS)
        return self.beside_others(expr, found, box, facts) if found.low >= 0 else found

    def _turned_around(
        self,
        expr: eq.Apply,
        excess: float,
        found: Numbers,
        divisor: Numbers,
        box: Limits,
        facts: Facts,
    ) -> float:
        """How large the opposite of a quotient is at most. excess: of the dividend."""
        one, other = expr.args
        dividend = self.remembered(one, box, facts)
        if dividend.low >= 0:
            # it may be no less than the divisor, where that is no number
            if not (excess > 0 and found.low < 1.0 < found.high and divisor.only is None):
                return 0.0
            less = self._excess_of(other, one, box, facts)
            least = 1 - max(less, 0.0) / divisor.low
            if less > 0 and least < 1 - _ROUNDED:
                least = max(least, 1 / self.times_at_most(other, one, box, facts))
            if less <= 0 and divisor.finite:
                least = 1 + self._more(other, one, 1.0, box, facts) / divisor.high
            return min(0.0, -least * (1 - 4 * self.own.row.unit))
        if found.low >= -1.0:
            return math.inf
        mirrored = Sum({}).plus(self.whole(one, box), -1.0).plus(self.whole(other, box), -1.0)
        self._left = max(self._left, _LOOKED_AT)  # whatever was tried for the other end
        gap = self.upper(mirrored, box, facts)
        if gap > 0 and found.low < -_SEVERAL:
            gap = min(gap, -self.by_form(eq.Apply("+", expr.args), box, facts)[0])
        low = self._times_one(gap, divisor)
        return low if low > 1.0 else self._of_more(one, other, -1.0, -dividend.low, box, facts)

    def _hardly_more(
        self,
        expr: eq.Apply,
        excess: float,
        most: float,
        divisor: Numbers,
        box: Limits,
        facts: Facts,
    ) -> float:
        """How large a quotient is at most whose dividend is the larger one, by so much."""
        high = min(most, self._times_one(excess, divisor))
        if 1 + _ROUNDED < high < _HARDLY_MORE:
            high = min(high, self.times_at_most(expr.args[0], expr.args[1], box, facts))
        if high > _SEVERAL:
            high = min(high, self._by_multiple(expr, divisor, box, facts))
        return high

    def _by_multiple(self, expr: eq.Apply, divisor: Numbers, box: Limits, facts: Facts) -> float:
        """How large a quotient is at most, by so many times the divisor as an element is in the
        dividend for every time that it is in the divisor: of 255 steps between two ends.
        """
        top, bottom = (self.sum_of(arg, box, facts) for arg in expr.args)
        best = math.inf
        shared = (
            top.factors[one] / bottom.factors[one] for one in top.factors if one in bottom.factors
        )
        for times in dict.fromkeys(one for one in shared if one > 1):
            gap = top.plus(bottom, -times)
            self._left = max(self._left, _LOOKED_AT_BESIDE)  # whatever was tried before
            more = max(0.0, self.upper(gap, box, facts) + gap.error)
            best = min(best, (times + more / divisor.low) * (1 + 4 * self.own.row.unit))
        return best

    def _of_part_or_nothing(
        self, expr: eq.Apply, found: Numbers, divisor: Numbers, box: Limits, facts: Facts
    ) -> Numbers:
        """A part by a whole that may be 0: NaN where it is, as the part is 0 then, too."""
        dividend = self.remembered(expr.args[0], box, facts)
        both = (dividend, divisor)
        if any(not one.pieces or one.low < 0 or one.above or one.below for one in both):
            return found
        if found.high <= 1.0 or self._excess_of(expr.args[0], expr.args[1], box, facts) > 0:
            return found
        return self.cut(found, 0.0, 1.0, NO_LESS)

    def _of_smaller_size(
        self, expr: eq.Apply, found: Numbers, divisor: Numbers, facts: Facts
    ) -> Numbers:
        """A quotient of either sign, where a condition says that its divisor is no smaller."""
        if divisor.holds(0.0) or -1.0 <= found.low <= found.high <= 1.0:
            return found
        sizes = eq.Apply("-", tuple(eq.Apply("abs", (arg,)) for arg in expr.args))
        if sizes not in facts or not facts[sizes].high <= 0:
            return found
        return self.cut(found, -1.0, 1.0, NO_LESS)

    def _times_one(self, excess: float, divisor: Numbers) -> float:
        """How large a quotient is at most whose dividend is larger than the divisor by so much."""
        if excess <= 0:
            return 1.0
        return (1 + excess / divisor.low) * (1 + 4 * self.own.row.unit)

    def _more(self, one: eq.Expr, other: eq.Expr, sign: float, box: Limits, facts: Facts) -> float:
        """By how much one expression is less than another at least, times a sign; 0 if that is not
        known, or not more than rounding may be.
        """
        apart = Sum({}).plus(self.sum_of(one, box, facts), sign)
        apart = apart.plus(self.sum_of(other, box, facts), -1.0)
        if len(apart.factors) > _LEFT_BESIDE:
            return 0.0
        self._left = max(self._left, _LOOKED_AT_BESIDE)  # whatever was tried before
        return max(0.0, -self.upper(apart, box, facts) - apart.error)

    def _of_more(
        self, part: eq.Expr, whole: eq.Expr, sign: float, most: float, box: Limits, facts: Facts
    ) -> float:
        """How large a number is at most, times a sign, that is divided by what is no less: no more
        than at its largest, beside the least that is left of the other, as `t / (t + 1)` rises.
        """
        if not 0 <= most < math.inf:
            return 1.0
        more = self._more(part, whole, sign, box, facts)
        if more <= 0:
            return 1.0
        return min(1.0, most / (most + more) * (1 + 8 * self.own.row.unit) + self.own.least)

    def _excess_of(self, one: eq.Expr, other: eq.Expr, box: Limits, facts: Facts) -> float:
        """By how much an expression is larger than another, at most; infinite if not known."""
        whole = self.whole(one, box).plus(self.whole(other, box), -1.0)
        most = self.upper(whole, box, facts)
        if most <= 0 or self.remembered(one, box, facts).low < 0:
            return most  # the rest takes long where there are many of them
        apart = self.sum_of(one, box, facts).plus(self.sum_of(other, box, facts), -1.0)
        if apart != whole:
            most = min(most, self.upper(apart, box, facts) + apart.error)
        if most > 0:
            most = min(most, -self.by_form(eq.Apply("-", (other, one)), box, facts)[0])
        return most
