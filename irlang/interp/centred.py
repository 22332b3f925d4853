"""The largest of some numbers is no less than their mean, the least no more: of what their own mean
was taken from, the largest is not negative, but for rounding.
"""

from __future__ import annotations

import math

from irlang import equations as eq
from irlang.interp.assumptions import Facts
from irlang.interp.elements import Sum
from irlang.interp.range_eval import Limits
from irlang.interp.somewhere import Somewhere

_SLACK = 1 + 2.0**-40  # of the arithmetic here


class Centred(Somewhere):
    """An evaluator that compares an extreme with the mean of what it is taken of."""

    def beside_mean(self, expr: eq.Reduce, inner: Limits, box: Limits, facts: Facts) -> float:
        """The least that the largest of some numbers is, or the most that the least of them is, by
        what cancels in their mean; infinite where nothing does.
        """
        assert expr.body is not None
        sign = 1.0 if expr.kind == "max" else -1.0
        names = {name for name, _ in expr.binders}
        body = self.sum_of(expr.body, inner, facts)
        apart = {atom for atom in body.factors if not eq.indices(atom) & names}
        if not any(self._added(atom, 1.0, box) for atom in apart) or len(apart) == len(
            body.factors
        ):
            return -sign * math.inf
        count = math.prod(inner[name][1] + 1 for name in names)
        total = Sum({}, count * body.constant)
        for atom, factor in body.factors.items():
            if atom in apart:
                total = total.plus(Sum({atom: 1.0}), count * factor)
            else:
                added = eq.Reduce("sum", expr.binders, None, atom)
                total = total.plus(Sum({added: 1.0}), factor)
        beyond = self.upper(Sum({}).plus(total, -sign), box, facts)
        lost = body.error + self.own.row.unit * self.interval(expr.body, inner, {}).magnitude
        return -sign * (beyond / count * (_SLACK if beyond > 0 else 1 / _SLACK) + lost)
