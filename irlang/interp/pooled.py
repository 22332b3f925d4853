"""Sums of sums over the same indices: what cancels does so term by term.

The union of two soft masks, sum(p) + sum(t) - sum(p t), is not negative, for p + t - p t is not.
A mean less the minimum is not negative, for each of its terms less the minimum is not.
The terms of each sum may be added in any order, so what rounding adds is that of them all.
A maximum is no less than its term at any index, and a minimum no more: of several over the same
indices that holds at one and the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from irlang import equations as eq
from irlang.interp.assumptions import Facts
from irlang.interp.elements import Sum
from irlang.interp.parts import Parts
from irlang.interp.range_eval import Limits
from irlang.interp.unfolding import settled

_FAR_OFF = 4.0  # times the size of the terms: so far off as to be of no use

Added = tuple[eq.Expr, float, eq.Reduce]  # an element, its factor, and the sum that it is


class Pooled(Parts):
    """An evaluator that adds up sums over the same indices as one."""

    def together(self, made: Sum, box: Limits, facts: Facts, left: int) -> float:
        """No value of a sum is above this, by the sums in it that go over the same indices."""
        groups: dict[tuple[int, ...], list[Added]] = {}
        for atom, factor in made.factors.items():
            added = self._added(atom, factor, box)
            inner = None if added is None else self.inner_box(added[2], box)
            if added is not None and inner is not None:
                extents = tuple(inner[name][1] + 1 for name, _ in added[2].binders)
                groups.setdefault(extents, []).append(added)
        best = super().together(made, box, facts, left)
        best = min(best, self._at_one_index(made, box, facts, left))
        for extents, group in groups.items():
            count = math.prod(extents)
            if count * count * self.own.row.unit > _FAR_OFF:
                continue
            own = [atom for atom, _, _ in group]
            rest = Sum({a: f for a, f in made.factors.items() if a not in own}, made.constant)
            if len(group) > 1:
                end = self._by_terms(group, count, Sum({}), box, facts)
                best = min(best, end + self.upper(rest, box, facts, left - 1))
            if rest.factors and all(self._is_end(atom, box) for atom in rest.factors):
                # a share of it beside every term
                best = min(best, self._by_terms(group, count, rest, box, facts))
        return best

    def by_form(self, expr: eq.Expr, box: Limits, facts: Facts) -> tuple[float, float]:
        """Between which numbers an expression lies as a polynomial of elements."""
        raise NotImplementedError

    def most_by_case(self, terms: Sequence[tuple[eq.Expr, float]], box: Limits) -> float:
        """No value of some truth values and whole numbers, each times a factor, is above this."""
        raise NotImplementedError

    def _at_one_index(self, made: Sum, box: Limits, facts: Facts, left: int) -> float:
        """The same by the terms, at one index, of all maxima and minima over the same indices that
        are no less than any of their terms, as they stand in the sum.
        """
        groups: dict[tuple[int, ...], list[Added]] = {}
        for atom, factor in made.factors.items():
            times, term = self._signed(factor, atom, box)
            if not isinstance(term, eq.Reduce) or term.kind != ("max" if times < 0 else "min"):
                continue
            inner = self.inner_box(term, box)
            if inner is not None and term.where is None and term.body is not None:
                extents = tuple(inner[name][1] + 1 for name, _ in term.binders)
                groups.setdefault(extents, []).append((atom, times, term))
        best = math.inf
        for group in groups.values():
            if len(group) < 2:
                continue
            own = {atom for atom, _, _ in group}
            total = Sum({a: f for a, f in made.factors.items() if a not in own}, made.constant)
            inner = self.inner_box(group[0][2], box)
            assert inner is not None  # as it has extents
            for _, times, term in group:
                body = _under(term, group[0][2])
                total = total.plus(self.sum_of(body, inner, facts), times)
            best = min(best, self.upper(total, inner, facts, left - 1) + total.error)
        return best

    def _signed(self, factor: float, atom: eq.Expr, box: Limits) -> tuple[float, eq.Expr]:
        """What an element is computed as, and its factor, the signs before it being counted."""
        term = self.meaning(atom, box)
        while isinstance(term, eq.Apply) and term.function == "neg":
            factor, term = -factor, self.meaning(term.args[0], box)
        return factor, term

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
            by = self._constant(other, box)
            if not by:
                return None
            factor = factor * by if term.function == "*" else factor / by
            term = self.meaning(one, box)
        plain = isinstance(term, eq.Reduce) and term.kind == "sum" and term.where is None
        if not plain or not isinstance(term, eq.Reduce) or term.body is None:
            return None
        return None if eq.reduces(term.body) or self.kind(term) == "bool" else (atom, factor, term)

    def _constant(self, expr: eq.Expr, box: Limits) -> float | None:
        """The number that a factor is; of an element, where it is the same all over the box."""
        if isinstance(expr, (eq.Const, eq.Size)):
            return self.own.nearest(float(expr.value))
        return self.remembered(expr, box, {}).only if isinstance(expr, eq.Read) else None

    def _by_terms(
        self, group: list[Added], count: int, rest: Sum, box: Limits, facts: Facts
    ) -> float:
        """No value of some sums of so many terms, and the rest, is above this."""
        inner = self.inner_box(group[0][2], box)
        assert inner is not None  # as it has extents
        total, size, exact = Sum({}).plus(rest, 1 / count), 0.0, True
        apart = total  # with what the terms are made of
        for atom, factor, term in group:
            body = _under(term, group[0][2])
            numbers = self.value(body, inner, {})
            if not numbers.finite:
                return math.inf
            total = total.plus(self.whole(body, inner), factor)
            apart = apart.plus(self.sum_of(body, inner, facts), factor)
            size += abs(factor) * numbers.magnitude
            alone = abs(factor) == 1 and self.meaning(atom, box) == term
            exact = exact and alone and numbers.whole
        end = self.upper(total, inner, facts, 2) + total.error
        if len(apart.factors) < len(total.factors):
            end = min(end, self.upper(apart, inner, facts, 2) + apart.error)
        if len(group) > 1 and not exact and self._level == 1 and rest == Sum({}):
            end = min(end, self._as_form(group, inner, facts))
        if exact and len(group) == 2 and all(factor == group[0][1] for _, factor, _ in group):
            both = eq.Apply(
                "+", (_under(group[0][2], group[0][2]), _under(group[1][2], group[0][2]))
            )
            made = self.anew(both, inner)  # as of a condition and its opposite
            if made.finite and made.pieces:
                end = min(end, made.high if group[0][1] > 0 else -made.low)
        if exact and len(group) == 2 and end > 0:  # as of two conditions of which one says more
            pairs = [(_under(term, group[0][2]), factor) for _, factor, term in group]
            end = min(end, self.most_by_case(pairs, inner))
        if exact and len(group) > 2 and rest == Sum({}):
            # as of those that are found and right, found and wrong, left out and right, ...
            end = min(end, self.by_form(_added_up(group), inner, facts)[1])
        if exact and count * size * self.own.row.unit <= 1 and end <= 0 and rest == Sum({}):
            return math.nextafter(count * end, 0.0)  # counts are added up as they are
        rounding = self.own.row.unit * (count + 2) * count * size * (1 + 1e-6)
        return count * end * (1 + 1e-12 * math.copysign(1, end)) + rounding + self.own.least * count

    def _as_form(self, group: list[Added], inner: Limits, facts: Facts) -> float:
        """No value of the terms at one index, each with its factor, is above this, as a polynomial:
        squares of sums and differences less the squares of what these are of.
        """
        bodies = [_under(term, group[0][2]) for _, _, term in group]
        looks = [self.meaning(body, inner) for body in bodies]
        if not any(isinstance(one, eq.Apply) and one.function in ("*", "sq") for one in looks):
            return math.inf
        made: eq.Expr = eq.Const(0.0)
        lost = 0.0  # of factors that the type does not have
        for body, (_, factor, _) in zip(bodies, group, strict=True):
            size = self.interval(body, inner, facts).magnitude
            lost += abs(self.own.nearest(factor) - factor) * size
            made = eq.Apply("+", (made, eq.Apply("*", (eq.Const(factor), body))))
        return self.by_form(made, inner, facts)[1] + lost


def _added_up(group: list[Added]) -> eq.Expr:
    """The terms of some sums over the same indices, each of them added once, or taken away."""
    (_, factor, first), *others = group
    made = _under(first, first)
    made = made if factor > 0 else eq.Apply("neg", (made,))
    for _, factor, term in others:
        made = eq.Apply("+" if factor > 0 else "-", (made, _under(term, first)))
    return made


def _under(term: eq.Reduce, other: eq.Reduce) -> eq.Expr:
    """What a reduction goes over, with the indices of another."""
    pairs = zip(term.binders, other.binders, strict=True)
    own: dict[str, eq.Expr] = {name: eq.Index(new) for (name, _), (new, _) in pairs}
    assert term.body is not None
    return settled(eq.substitute(term.body, own))
