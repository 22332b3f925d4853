"""Sums of sums over the same indices: what cancels does so term by term.

The union of two soft masks, sum(p) + sum(t) - sum(p t), is not negative, for p + t - p t is not.
A mean less the minimum is not negative, for each of its terms less the minimum is not.
The terms of each sum may be added in any order, so what rounding adds is that of them all.
"""

from __future__ import annotations

import math

from irlang import equations as eq
from irlang.interp.assumptions import Facts
from irlang.interp.elements import Sum
from irlang.interp.parts import Parts
from irlang.interp.range_eval import Limits
from irlang.interp.unfolding import inner_box, settled

_FAR_OFF = 4.0  # times the size of the terms: so far off as to be of no use

Added = tuple[eq.Expr, float, eq.Reduce]  # an element, its factor, and the sum that it is


class Pooled(Parts):
    """An evaluator that adds up sums over the same indices as one."""

    def together(self, made: Sum, box: Limits, facts: Facts, left: int) -> float:
        """No value of a sum is above this, by the sums in it that go over the same indices."""
        groups: dict[tuple[int, ...], list[Added]] = {}
        for atom, factor in made.factors.items():
            added = self._added(atom, factor, box)
            inner = None if added is None else inner_box(added[2], box)
            if added is not None and inner is not None:
                extents = tuple(inner[name][1] + 1 for name, _ in added[2].binders)
                groups.setdefault(extents, []).append(added)
        best = super().together(made, box, facts, left)
        for extents, group in groups.items():
            signs = {factor > 0 for _, factor, _ in group}
            count = math.prod(extents)
            if count * count * self.own.row.unit > _FAR_OFF:
                continue
            own = [atom for atom, _, _ in group]
            rest = Sum({a: f for a, f in made.factors.items() if a not in own}, made.constant)
            if len(signs) > 1:
                end = self._by_terms(group, count, Sum({}), box, facts)
                best = min(best, end + self.upper(rest, box, facts, left - 1))
            if rest.factors and all(self._is_end(atom, box) for atom in rest.factors):
                # a share of it beside every term
                best = min(best, self._by_terms(group, count, rest, box, facts))
        return best

    def _is_end(self, atom: eq.Expr, box: Limits) -> bool:
        """Whether an element is the largest or the least of some."""
        term = self.meaning(atom, box)
        return isinstance(term, eq.Reduce) and term.kind in ("max", "min")

    def _added(self, atom: eq.Expr, factor: float, box: Limits) -> Added | None:
        """The sum that an element is, or a multiple of one."""
        term = self.meaning(atom, box)
        while isinstance(term, eq.Apply) and term.function in ("*", "/"):
            one, other = term.args
            if term.function == "*" and isinstance(one, (eq.Const, eq.Size)):
                one, other = other, one
            if not isinstance(other, (eq.Const, eq.Size)) or not float(other.value):
                return None
            by = self.own.nearest(float(other.value))
            factor = factor * by if term.function == "*" else factor / by
            term = self.meaning(one, box)
        plain = isinstance(term, eq.Reduce) and term.kind == "sum" and term.where is None
        if not plain or not isinstance(term, eq.Reduce) or term.body is None:
            return None
        nested = any(isinstance(part, eq.Reduce) for part in eq.walk(term.body))
        return None if nested or self.kind(term) != "real" else (atom, factor, term)

    def _by_terms(
        self, group: list[Added], count: int, rest: Sum, box: Limits, facts: Facts
    ) -> float:
        """No value of some sums of so many terms, and the rest, is above this."""
        names = [name for name, _ in group[0][2].binders]
        inner = inner_box(group[0][2], box)
        assert inner is not None  # as it has extents
        total, size = Sum({}).plus(rest, 1 / count), 0.0
        for _, factor, term in group:
            pairs = zip(term.binders, names, strict=True)
            own: dict[str, eq.Expr] = {name: eq.Index(new) for (name, _), new in pairs}
            assert term.body is not None
            body = settled(eq.substitute(term.body, own))
            numbers = self.value(body, inner, {})
            if not numbers.finite:
                return math.inf
            total = total.plus(self.whole(body, inner), factor)
            size += abs(factor) * numbers.magnitude
        rounding = self.own.row.unit * (count + 2) * count * size * (1 + 1e-6)
        end = self.upper(total, inner, facts, 2) + total.error
        return count * end * (1 + 1e-12 * math.copysign(1, end)) + rounding + self.own.least * count
