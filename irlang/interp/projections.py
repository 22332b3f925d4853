"""A vector's part along another: `sum(a b) b / sum(b b)` is no longer than `a`.

So the target in a mixture of signals, and the side of a gradient that conflicts with another one,
are no larger than what they were taken from, however short the direction is.
"""

from __future__ import annotations

import math

from irlang import equations as eq
from irlang.interp.interval import Numbers
from irlang.interp.lengths import Products
from irlang.interp.norms import Norms
from irlang.interp.range_eval import Limits


class Projections(Norms):
    """An evaluator that bounds what is divided by the square of a length."""

    def _most(self, expr: eq.Apply, box: Limits, divisor: Numbers) -> float:
        """How large a quotient may be whose divisor is made up of the dividend."""
        found = super()._most(expr, box, divisor)
        factors = self._factors_of(expr.args[0], box)
        if len(factors) != 2 or divisor.low <= 0:
            return found
        for part, element in (factors, factors[::-1]):
            sum_ = self.of_products(part, box)
            if sum_ is not None and sum_.count * self.own.row.unit <= 0.125:
                found = min(found, self._along(sum_, element, expr.args[1], box, divisor))
        return found

    def _along(
        self, sum_: Products, element: eq.Expr, square: eq.Expr, box: Limits, divisor: Numbers
    ) -> float:
        """The same of a sum of products times an element of the one factor, where the divisor is no
        less than the square of the length of that: no more than the length of the other.
        """
        best = math.inf
        free = {name: sum_.inner[name] for name in sum_.names}
        for factor, other in (sum_.factors, sum_.factors[::-1]):
            if not self.among(self.looks(factor, sum_.inner), self.looks(element, box), free, box):
                continue
            share = self.of_length(square, factor, sum_, True)
            sizes = [self.value(one, sum_.inner, {}).magnitude for one in (factor, other)]
            if not share or not all(map(math.isfinite, sizes)):
                continue
            length = self._length(other, sum_) * (1 + self.own.changed_by(sum_.count + 8))
            # products and squares next to 0 are lost, of the dividend and of the divisor
            lost = 4 * sum_.count * self.own.least * (1 + sizes[0]) * (1 + sizes[1])
            lost *= (1 + length) / min(share, 1.0)
            best = min(best, length / share + lost / divisor.low)
        return best
