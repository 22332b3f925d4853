"""Numbers times logarithms, by the tangents of a logarithm: w log(w / v) is no less than w - v.

So the deviance of a Poisson law, the divergence of two coins, and an exponential less its tangent
are not negative: `exp(a) - exp(b) - exp(b) (a - b)` is the same of `w = exp(b)` and `v = exp(a)`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from irlang import equations as eq
from irlang.interp.assumptions import Facts
from irlang.interp.elements import Sum
from irlang.interp.entropies import Entropies
from irlang.interp.range_eval import Limits
from irlang.interp.sums import ATOMS
from irlang.scalar import SCALARS

_FAR_OFF = 2.0**-5  # an error of a logarithm that is of no use
_LOGARITHM, _EXPONENTIAL = SCALARS["log"], SCALARS["exp"]


@dataclass(frozen=True, slots=True)
class _Number:
    """A number above 0, by a sum that it is, or hardly another; and how far its logarithm, as it is
    met, may be from that of the sum.
    """

    sum: Sum
    off: float


class Tangents(Entropies):
    """An evaluator that knows how a number times a logarithm lies to what that is taken of."""

    def _bounds(
        self, atom: eq.Expr, below: bool, rest: Sum, box: Limits, facts: Facts
    ) -> Iterator[Sum]:
        """Sums that are no larger (`below`), or no less, than an element."""
        yield from super()._bounds(atom, below, rest, box, facts)
        if rest.factors:
            yield from self._by_logarithm(atom, below, rest, box)

    def together(self, made: Sum, box: Limits, facts: Facts, left: int) -> float:
        """No value of a sum is above this, by all such products in it at once."""
        best = super().together(made, box, facts, left)
        total, count = Sum({}, made.constant), 0
        for atom, factor in made.factors.items():
            bound = next(self._by_logarithm(atom, factor < 0, made, box), None)
            count += bound is not None
            total = total.plus(bound or Sum({atom: 1.0}), factor)
        if count > 1 and len(total.factors) <= ATOMS:
            best = min(best, self.upper(total, box, facts, left - 1) + total.error)
        return best

    def _by_logarithm(self, atom: eq.Expr, below: bool, rest: Sum, box: Limits) -> Iterator[Sum]:
        """What a number times its own logarithm less another is no less than, or no more."""
        term = self.meaning(atom, box)
        if not isinstance(term, eq.Apply) or term.function != "*":
            return
        for weight, factor in (term.args, term.args[::-1]):
            for upper, lower, error in self._logarithms_of(factor, rest, box):
                own = self._weight_as(weight, upper if below else lower, box)
                size = self.interval(weight, box, {})
                reach = self.interval(factor, box, {}).magnitude
                if own is None or size.low < 0 or not math.isfinite(size.magnitude + reach):
                    continue
                lost = error + upper.off + lower.off + own
                if lost < _FAR_OFF:
                    # of the logarithms, of the weight as a sum, and of the product
                    off = size.magnitude * (2 * lost + 2 * self.own.row.unit * reach)
                    made = upper.sum.plus(lower.sum, -1.0)
                    yield replace(made, error=made.error + off + 2 * self.own.least)

    def _logarithms_of(
        self, factor: eq.Expr, rest: Sum, box: Limits
    ) -> Iterator[tuple[_Number, _Number, float]]:
        """Two numbers whose logarithms a factor is the difference of, and its own error."""
        term, unit = self.meaning(factor, box), self.own.row.unit
        if not isinstance(term, eq.Apply) or term.function not in ("log", "-"):
            return
        reach = self.interval(factor, box, {}).magnitude
        if not math.isfinite(reach):
            return
        if term.function == "log":
            error = 2 * (_LOGARITHM.ulps + 1) * unit * max(reach, _LOGARITHM.least)
            ratio = self.meaning(term.args[0], box)
            pair: tuple[eq.Expr, ...] = (term.args[0], eq.Const(1.0))
            if isinstance(ratio, eq.Apply) and ratio.function == "/":
                pair, error = ratio.args, error + 4 * unit
                if self.interval(term.args[0], box, {}).low < self.own.row.tiny:
                    return  # the quotient may have lost digits
            numbers = [self._positive(one, box) for one in pair]
        else:
            error = unit * reach
            numbers = [self._exponential(one, rest, box) for one in term.args]
        if numbers[0] is not None and numbers[1] is not None:
            yield numbers[0], numbers[1], error

    def _positive(self, expr: eq.Expr, box: Limits) -> _Number | None:
        """A number as a sum; None where it may be 0 or less, or is not known so well."""
        least = 1.0 if isinstance(expr, eq.Const) else self.interval(expr, box, {}).low
        made = self.sum_of(expr, box, {})
        if least < self.own.row.tiny or not math.isfinite(made.error):
            return None
        return _Number(replace(made, error=0.0), 2 * made.error / least)

    def _exponential(self, expr: eq.Expr, rest: Sum, box: Limits) -> _Number | None:
        """The number whose logarithm an element is: what that is taken of, or an exponential of it
        that is an element of a sum, or a factor beside it.
        """
        term = self.meaning(expr, box)
        if isinstance(term, eq.Apply) and term.function == "log":
            found = self._positive(term.args[0], box)
            reach = self.interval(expr, box, {}).magnitude
            error = 2 * (_LOGARITHM.ulps + 1) * self.own.row.unit * max(reach, _LOGARITHM.least)
            return None if found is None else replace(found, off=found.off + error)
        looks = self.looks(expr, box)
        for other in (*rest.factors, eq.Apply("exp", (expr,))):
            its = self.meaning(other, box)
            if not isinstance(its, eq.Apply) or its.function != "exp":
                continue
            same = any(look in looks for look in self.looks(its.args[0], box))
            if same and self.interval(other, box, {}).low >= self.own.row.tiny:
                off = 2 * (_EXPONENTIAL.ulps + 1) * self.own.row.unit
                return _Number(self.whole(other, box), off)
        return None

    def _weight_as(self, weight: eq.Expr, number: _Number, box: Limits) -> float | None:
        """How far the logarithm of a weight may be from that of a number that it is; None if it is
        another.
        """
        made = self._positive(weight, box)
        if made is not None and made.sum == number.sum:
            return made.off
        term = self.meaning(weight, box)
        if not isinstance(term, eq.Apply) or term.function != "exp" or len(number.sum.factors) != 1:
            return None
        ((atom, factor),) = number.sum.factors.items()
        its = self.meaning(atom, box)
        if number.sum.constant or factor != 1 or not isinstance(its, eq.Apply):
            return None
        looks = self.looks(term.args[0], box)
        if its.function == "exp" and any(one in looks for one in self.looks(its.args[0], box)):
            return 2 * (_EXPONENTIAL.ulps + 1) * self.own.row.unit
        return None
