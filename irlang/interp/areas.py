"""Products that are no more than others because their factors are not: areas inside areas.

The intersection of two boxes is no larger than either, as neither of its sides is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import permutations, product
from typing import Any

from irlang import equations as eq
from irlang.interp.assumptions import Facts
from irlang.interp.elements import Sum
from irlang.interp.range_eval import Limits
from irlang.interp.tangents import Tangents
from irlang.interp.unfolding import settled

_MOST = 3  # factors of a product
_LOOKED_AT = 100  # sums that the comparison of two factors looks at
_REPLACED = 4  # elements that are replaced in one of these
_SLIGHT = 2.0**-6  # times the factor, by which one may be larger than the other


class Areas(Tangents):
    """An evaluator that compares products factor by factor."""

    _gaps: dict[Any, tuple[float, Limits, Facts]]

    def forget(self) -> None:
        """Tensors have become others: factors are compared anew."""
        super().forget()
        self._gaps = {}

    def _bounds(
        self, atom: eq.Expr, below: bool, rest: Sum, box: Limits, facts: Facts
    ) -> Iterator[Sum]:
        """Sums that are no larger (`below`), or no less, than an element."""
        yield from super()._bounds(atom, below, rest, box, facts)
        own = None if below else self._sides(atom, box)
        if own is None or self._level > 1:
            return
        for other in rest.factors:
            its = self._sides(other, box)
            if its is None or len(its) != len(own) or other == atom:
                continue
            error = min(self._gap(own, turned, box, facts) for turned in permutations(its))
            if math.isfinite(error):
                yield Sum({other: 1.0}, error=error)

    def _sides(self, expr: eq.Expr, box: Limits) -> list[eq.Expr] | None:
        """The factors of a product, if none of them is negative."""
        for look in self.looks(expr, box):
            found: list[eq.Expr] = []
            if isinstance(look, eq.Apply) and look.function == "*":
                found = list(look.args)
            elif isinstance(look, eq.Reduce) and look.kind == "prod" and look.where is None:
                found = self._written_apart(look, box)
            if found and all(self.interval(one, box, {}).low >= 0 for one in found):
                return found
        return None

    def _written_apart(self, look: eq.Reduce, box: Limits) -> list[eq.Expr]:
        """The factors of a product over indices, if they are few."""
        inner = self.inner_box(look, box)
        names = [name for name, _ in look.binders]
        if inner is None or look.body is None:
            return []
        extents = [range(inner[name][1] + 1) for name in names]
        if math.prod(map(len, extents)) > _MOST:
            return []
        return [
            settled(eq.substitute(look.body, dict(zip(names, map(eq.Const, at), strict=True))))
            for at in product(*extents)
        ]

    def _gap(
        self, own: list[eq.Expr], its: tuple[eq.Expr, ...], box: Limits, facts: Facts
    ) -> float:
        """The same as `_excess`, found once in the course of a proof."""
        key = self.here((*own, *its), box, facts)
        found = self._gaps.get(key)
        if found is None:  # what the ids are of is kept too, so that they stay its own
            found = self._gaps[key] = (self._excess(own, its, box, facts), box, facts)
        return found[0]

    def _above(self, one: eq.Expr, other: Sum, box: Limits, facts: Facts) -> float:
        """By how much an expression is more than a sum, rounding included."""
        left, self._left = self._left, _LOOKED_AT
        gap = self.whole(one, box).plus(other, -1.0)
        more = max(0.0, self.upper(gap, box, facts, _REPLACED) + gap.error)
        self._left = left
        return more

    def _excess(
        self, own: list[eq.Expr], its: tuple[eq.Expr, ...], box: Limits, facts: Facts
    ) -> float:
        """By how much a product may be more than another, rounding included, if its factors are
        more by rounding at most; infinite if they are not.
        """
        ends, wider, most = 1.0, 1.0, 0.0
        for one, other in zip(own, its, strict=True):
            high = self.interval(other, box, facts).high
            more = self._above(one, self.whole(other, box), box, facts)
            if not more <= _SLIGHT * high:  # as what it is a multiple of
                more = self._above(one, self.sum_of(other, box, facts), box, facts)
            if not more <= _SLIGHT * high:
                return math.inf
            ends, wider, most = ends * high, wider * (high + more), max(most, more)
        if not most and len(own) == 2:  # one rounding, which is monotone
            return 0.0
        rounding = 2 * len(own) * self.own.row.unit * wider + self.own.least
        return (wider - ends) * (1 + 1e-6) + rounding
