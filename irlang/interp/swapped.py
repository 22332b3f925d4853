"""Sums of sums of products, added up the other way round.

All probabilities of two draws, `sum(j, k) sum(n) a[n, j] * b[n, k]`, are `sum(n)` of the sum of a
row of `a` times that of `b`: as many as there are rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from irlang import equations as eq
from irlang.interp.centred import Centred
from irlang.interp.elements import Sum
from irlang.interp.interval import Numbers
from irlang.interp.range_eval import Limits

_FACTORS = 2  # products inside one another that are taken apart
_LARGEST = 0.125  # share by which rounding may change a sum

Ends = tuple[float, float]


class Swapped(Centred):
    """An evaluator that adds up sums of products of what is not negative by their factors."""

    def by_swapping(self, expr: eq.Reduce, found: Numbers, box: Limits) -> Numbers:
        """A sum, less what is beyond that of its terms' factors, where these are sums of products
        themselves, or sums of such sums.
        """
        inner = self.inner_box(expr, box)
        if inner is None or expr.body is None or expr.where is not None:
            return found
        body = self.sum_of(expr.body, inner, {})
        if body.constant or not body.factors or min(body.factors.values()) <= 0:
            return found
        ends = [self._of_atom(atom, expr, inner, box) for atom in body.factors]
        if not all(math.isfinite(high) for _, high in ends):
            return found
        low, high = (
            sum(factor * end for factor, end in zip(body.factors.values(), side, strict=True))
            for side in zip(*ends, strict=True)
        )
        return self.cut(found, *self._rounded(low, high, body, expr, inner), "sums are swapped")

    def _rounded(self, low: float, high: float, body: Sum, expr: eq.Reduce, inner: Limits) -> Ends:
        """What a sum of terms may be that is exactly between two numbers."""
        terms = math.prod(inner[name][1] + 1 for name, _ in expr.binders)
        share = 2 * (terms + 2) * self.own.row.unit
        lost = terms * (body.error + 2 * self.own.least)
        if share > _LARGEST:
            return 0.0, math.inf
        return low * (1 - share) - lost, high * (1 + share) + lost

    def _of_atom(self, atom: eq.Expr, expr: eq.Reduce, inner: Limits, box: Limits) -> Ends:
        """Between which numbers the sum of an element lies over the indices of a reduction; without
        end where it is no sum of products.
        """
        look = self.meaning(atom, inner)
        if not isinstance(look, eq.Reduce) or look.kind != "sum" or look.where is not None:
            return 0.0, math.inf
        further = self.inner_box(look, inner)
        if further is None or look.body is None or self.kind(look.body) != "real":
            return 0.0, math.inf
        rows = self.one_box({**box, **{name: further[name] for name, _ in look.binders}})
        for factors in self._taken_apart(look.body, further, _FACTORS):
            ends = self._of_factors(factors, look, expr, further, rows, box)
            if ends is not None:
                return ends
        return 0.0, math.inf

    def _of_factors(
        self,
        factors: Sequence[eq.Expr],
        look: eq.Reduce,
        expr: eq.Reduce,
        further: Limits,
        rows: Limits,
        box: Limits,
    ) -> Ends | None:
        """The same by the factors of the products, each index of `expr` being one's alone."""
        names = [name for name, _ in expr.binders]
        if any(eq.indices(size) for _, size in (*expr.binders, *look.binders)):
            return None
        if [sum(name in eq.indices(one) for one in factors) for name in names] != [1] * len(names):
            return None
        if len(factors) < 2 or any(self.interval(one, further, {}).low < 0 for one in factors):
            return None
        count = math.prod(rows[name][1] + 1 for name, _ in look.binders)
        share = 2 * (count + 2 * len(factors)) * self.own.row.unit
        low = high = 1.0
        rest: list[eq.Expr] = []
        for one in factors:
            own = tuple((name, size) for name, size in expr.binders if name in eq.indices(one))
            if not own:
                rest.append(one)
                continue
            total = self.anew(eq.Reduce("sum", own, None, one), rows)
            low, high = low * total.low, high * total.high
        if len(rest) > 1 or share > _LARGEST or not math.isfinite(high):
            return None
        if not rest:
            return low * count * (1 - share), high * count * (1 + share)
        total = self.anew(eq.Reduce("sum", look.binders, None, rest[0]), box)
        return low * total.low * (1 - share), high * total.high * (1 + share)
