"""Quotients by an element that the dividend hangs on: what they are where that is near 0, order of
magnitude by order of magnitude.

A sine is as small as what it is taken of, so that `sin(x) / x` is no more than 1 however small `x`
is, while the interval of all sines by that of all `x` is without end.
"""

from __future__ import annotations

from collections.abc import Iterator

from irlang import equations as eq
from irlang.interp.assumptions import Facts
from irlang.interp.conditions import Conditions
from irlang.interp.extremes import UNFOLDED
from irlang.interp.interval import NOTHING, Numbers, join
from irlang.interp.range_eval import Limits

_FURTHER = 2.0**-4  # times the largest numbers of a step are its least
_FAR = 2.0**24  # a quotient that is larger than this has no bound that would be of use


class Orders(Conditions):
    """An evaluator that looks at quotients by orders of magnitude of the divisor."""

    def by_orders(self, expr: eq.Apply, found: Numbers, box: Limits, facts: Facts) -> Numbers:
        """A quotient by an element of the dividend; found anew where that is without end."""
        divisor = self.copies(expr.args[1], box)[-1]
        numbers = self.value(divisor, box, facts)
        if not isinstance(divisor, eq.Read) or not numbers.finite or numbers.holds(0.0):
            return found
        top = self.unfolded(expr.args[0], box, UNFOLDED, frozenset((divisor,)))
        if divisor not in eq.walk(top) or eq.reduces(top):
            return found
        made = NOTHING
        for piece in self._by_order(numbers):
            known = {**facts, divisor: piece}
            dividend = self.value(top, box, known)
            one, _ = self.own.apply("/", [dividend, piece], "real")
            if not one.finite or one.magnitude > _FAR:
                return found
            made = join(made, one)
        return self.cut(found, made.low, made.high, "a function of the divisor is as small as it")

    def _by_order(self, numbers: Numbers) -> Iterator[Numbers]:
        """The numbers of a set without 0, some orders of magnitude at a time, either side apart."""
        for sign in (1.0, -1.0):
            end = numbers.high if sign > 0 else -numbers.low
            while end > 0:
                low = end * _FURTHER if end * _FURTHER >= self.own.least else 0.0
                piece = numbers.between(*sorted((sign * low, sign * end)))
                if piece.pieces:
                    yield piece
                end = low
