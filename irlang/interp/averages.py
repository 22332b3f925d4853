"""What is known of an average: it lies between the numbers that it is of.

Two products whose weights are not negative and add up to a number are one, be it written as
`p * u + (1 - p) * v`, as a quotient beside another, or with 1 as one of the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

from irlang import equations as eq
from irlang.interp.assumptions import Facts
from irlang.interp.elements import Sum
from irlang.interp.interval import Numbers, join
from irlang.interp.placed import Placed
from irlang.interp.range_eval import Limits
from irlang.interp.weights import Average

_HARDLY = 2.0**-10  # below 0: weights that rounding made so


class Averages(Placed):
    """An evaluator that knows averages of two numbers."""

    def mean_of_two(self, expr: eq.Apply, found: Numbers, box: Limits, facts: Facts) -> Numbers:
        """`a * u + b * v` with weights that are not negative, or hardly, and add up to a number."""
        for (a, u), (b, v), weight, error in self._averages(expr, box, facts, -_HARDLY):
            if found.low < 0:
                least = self.of_two(((a, u), (b, v), weight, error), box)
                found = self.cut(found, least, math.inf, "parts of two wholes are compared")
            ends = join(self.value(u, box, facts), self.value(v, box, facts))
            if not ends.finite or not ends.pieces:
                continue
            below = max(0.0, *(-self.value(one, box, facts).low for one in (a, b)))
            weights = weight + error, error + 2 * below
            slack = self._slack_of_average(*weights, ends.magnitude)
            # what is added is not negative, so that rounding changes it by a share of itself
            positive = ends.low >= 0 and not below
            lost = self._slack_of_average(*weights, ends.low) if positive else slack
            low = min(ends.low * (weight + error), ends.low * weight)
            high = max(ends.high * (weight + error), ends.high * weight)
            return self.cut(found, low - lost, high + slack, "an average of two numbers")
        return found

    def average(self, expr: eq.Apply, box: Limits, facts: Facts) -> Sequence[Sum] | None:
        """Two sums between which a sum of two products lies; None where that is not known."""
        for (_, u), (_, v), weight, error in self._averages(expr, box, facts):
            ends = join(self.value(u, box, facts), self.value(v, box, facts))
            if ends.finite and ends.pieces:
                slack = Sum({}, error=self._slack_of_average(weight, error, ends.magnitude))
                return [slack.plus(self.whole(one, box), weight) for one in (u, v)]
        return None

    def _slack_of_average(self, weight: float, error: float, size: float) -> float:
        """What rounding adds to an average of numbers of a size. error: of the weights. The sum and
        products are rounded once each, a quotient by way of a reciprocal twice.
        """
        return 5 * self.own.row.unit * weight * size + 2 * self.own.least + error * size

    def _averages(
        self, expr: eq.Apply, box: Limits, facts: Facts, least: float = 0.0
    ) -> Iterator[Average]:
        """Weights and numbers of averages, what the weights add up to, and how sure that is. One of
        the numbers may be 1, as in `p + (1 - p) * q`. least: what the weights may be.
        """
        terms = [self.meaning(arg, box) for arg in expr.args]
        made = {term.function if isinstance(term, eq.Apply) else "" for term in terms}
        # a quotient counts beside another, or beside a product
        if not made & {"*", "/"} or ("/" in made and not made <= {"*", "/"}):
            return
        ways = [_weighed(arg, term) for arg, term in zip(expr.args, terms, strict=True)]
        for (a, u), (b, v) in product(*ways):
            total = self.sum_of(a, box, facts).plus(self.sum_of(b, box, facts))
            if total.factors or total.constant <= 0:
                continue
            if all(self.value(weight, box, facts).low >= least for weight in (a, b)):
                yield (a, u), (b, v), total.constant, total.error


def _weighed(expr: eq.Expr, term: eq.Expr) -> list[tuple[eq.Expr, eq.Expr]]:
    """Weights and numbers of which an expression is the product, by what it is computed as; of a
    quotient, what is divided and the reciprocal of the divisor; of another the number 1.
    """
    if isinstance(term, eq.Apply) and term.function == "*":
        one, other = term.args
        return [(one, other), (other, one)]
    if isinstance(term, eq.Apply) and term.function == "/":
        return [(term.args[0], eq.Apply("/", (eq.Const(1.0), term.args[1])))]
    return [(expr, eq.Const(1.0))]
