"""Numbers less their own mean: the largest of them is not negative, but for rounding, and the sum
of their squares is no more than where half of the numbers are at either end of their range. They
add up to 0, as the differences of two laws do: a sum of differences is a difference of sums.
"""

from __future__ import annotations

import math
from dataclasses import replace

from irlang import equations as eq
from irlang.interp.assumptions import Facts
from irlang.interp.elements import Sum
from irlang.interp.interval import Numbers
from irlang.interp.range_eval import Limits
from irlang.interp.somewhere import Somewhere
from irlang.interp.sums import added

_SLACK = 1 + 2.0**-40  # of the arithmetic here


class Centred(Somewhere):
    """An evaluator that knows what is left of numbers less their mean."""

    def beside_mean(self, expr: eq.Reduce, inner: Limits, box: Limits, facts: Facts) -> float:
        """The least that the largest of some numbers is, or the most that the least of them is, by
        what cancels in their mean; infinite where nothing does.
        """
        assert expr.body is not None
        sign = 1.0 if expr.kind == "max" else -1.0
        body = self.sum_of(expr.body, inner, facts)
        total = self._all_together(body, expr, inner, box)
        if total is None:
            return -sign * math.inf
        count = _count(expr, inner)
        beyond = self.upper(Sum({}).plus(total, -sign), box, facts)
        lost = body.error + self.own.row.unit * self.interval(expr.body, inner, {}).magnitude
        return -sign * (beyond / count * (_SLACK if beyond > 0 else 1 / _SLACK) + lost)

    def by_difference(self, expr: eq.Reduce, found: Numbers, box: Limits, facts: Facts) -> Numbers:
        """A sum of differences, less what is beyond the difference of the sums."""
        inner = self.inner_box(expr, box)
        term = None if inner is None or expr.body is None else self.meaning(expr.body, inner)
        if inner is None or not isinstance(term, eq.Apply) or term.function != "-":
            return found
        body, count = self.sum_of(term, inner, facts), _count(expr, inner)
        if len(body.factors) < 2 or count * self.own.row.unit > 0.125:
            return found
        total = self._distributed(body, expr, inner)
        sizes = [
            abs(factor) * self.interval(atom, inner, {}).magnitude
            for atom, factor in body.factors.items()
            if eq.indices(atom) & _names(expr)
        ]
        # of every sum as it is added up, and of the differences
        size = self.interval(term, inner, {}).magnitude + math.fsum(sizes)
        lost = count * (body.error + self.own.changed_by(count + 2) * size + self.own.least)
        low, high = (self.upper(Sum({}).plus(total, sign), box, facts) for sign in (-1.0, 1.0))
        if low + high > lost:  # as each of the sums lies by itself, as one of all parts of a whole
            made = [(self.anew(atom, box), factor) for atom, factor in total.factors.items()]
            ends = [factor * end for one, factor in made for end in (one.low, one.high)]
            pairs = list(zip(ends[::2], ends[1::2], strict=True))
            low = min(low, added([-total.constant, *(-min(pair) for pair in pairs)]))
            high = min(high, added([total.constant, *map(max, pairs)]))
        lost += total.error + (_SLACK - 1) * (abs(low) + abs(high))
        if not math.isfinite(lost):
            return found
        why = "a sum of differences is a difference of sums"
        return self.cut(found, -low - lost, high + lost, why)

    def by_spread(self, expr: eq.Reduce, found: Numbers, box: Limits, facts: Facts) -> Numbers:
        """A sum of squares, less what is beyond those of numbers about their own mean (Popoviciu's
        inequality).
        """
        inner = self.inner_box(expr, box)
        base = None if inner is None or expr.body is None else self.square_of(expr.body, inner)
        if base is None or inner is None:
            return found
        body = self.sum_of(base, inner, facts)
        total = self._all_together(body, expr, inner, box)
        own = [atom for atom in body.factors if eq.indices(atom) & _names(expr)]
        if total is None or len(own) != 1:
            return found
        numbers = self.interval(own[0], inner, {})
        if not numbers.finite:
            return found
        count = _count(expr, inner)
        half = abs(body.factors[own[0]]) * 0.5 * (numbers.high - numbers.low)
        # how far the mean of what is left is from 0, and what rounding makes of each
        off = max(self.upper(Sum({}).plus(total, sign), box, facts) for sign in (1, -1)) / count
        lost = body.error + self.own.row.unit * self.interval(base, inner, {}).magnitude
        most = half * half + 2 * off * (half + off) + lost * (2 * (2 * half + off) + lost)
        end = count * most * _SLACK * (1 + self.own.changed_by(count + 2))
        end += count * self.own.least
        if not 0 <= end < found.magnitude:
            return found
        if found.nan and end <= self.own.largest and self.value(base, inner, {}).finite:
            found = replace(found, nan=False)  # no part of the sum is infinite
        return self.cut(found, 0.0, end, "numbers about their own mean are within half their range")

    def _all_together(self, body: Sum, expr: eq.Reduce, inner: Limits, box: Limits) -> Sum | None:
        """The sum of all terms of a reduction, which are `body`; None where nothing can cancel, as
        no part is the same of all, or all are.
        """
        apart = {atom for atom in body.factors if not eq.indices(atom) & _names(expr)}
        cancels = any(self._added(atom, 1.0, box) for atom in apart)
        if not cancels or len(apart) == len(body.factors):
            return None
        return self._distributed(body, expr, inner)

    def _distributed(self, body: Sum, expr: eq.Reduce, inner: Limits) -> Sum:
        """The sum of all terms of a reduction, element by element."""
        count = _count(expr, inner)
        total = Sum({}, count * body.constant)
        for atom, factor in body.factors.items():
            if not eq.indices(atom) & _names(expr):
                total = total.plus(Sum({atom: 1.0}), count * factor)
            else:
                added = eq.Reduce("sum", expr.binders, None, atom)
                total = total.plus(Sum({added: 1.0}), factor)
        return total


def _names(expr: eq.Reduce) -> set[str]:
    return {name for name, _ in expr.binders}


def _count(expr: eq.Reduce, inner: Limits) -> int:
    return math.prod(inner[name][1] + 1 for name in _names(expr))
