"""What conditions say of a result: a condition that stands in it, or chooses what it is made of,
holds or does not, and in both cases more is known than in general.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import partial
from typing import TypeGuard

from irlang import equations as eq
from irlang.interp.assumptions import Facts, assume
from irlang.interp.elements import Sum
from irlang.interp.extremes import UNFOLDED, Extremes, is_truth
from irlang.interp.interval import Numbers, interval, join, meet, number, truth
from irlang.interp.range_eval import OF_ITSELF, Limits
from irlang.interp.sums import ATOMS
from irlang.interp.unfolding import small
from irlang.scalar import SCALARS

_OPPOSITES = {"<=": ">", "<": ">=", "!=": "=="}
_CONDITIONS = 2  # by which a sum is taken apart


class Conditions(Extremes):
    """An evaluator that looks at what is left of a result where a condition holds, or does not."""

    _masks: bool | None = None  # whether there are truth values among the tensors
    _ordering = False  # whether it is looked at which side of a comparison is larger

    def split_divisor(
        self, top: eq.Expr, chosen: eq.Apply, found: Numbers, box: Limits, facts: Facts
    ) -> Numbers:
        """A quotient by one of two divisors: each with what its condition says of the dividend."""
        arms = []
        for which, arm in ((True, chosen.args[1]), (False, chosen.args[2])):
            known = assume(self, chosen.args[0], which, box, facts)
            if known is not None:
                arms.append(self.anew(eq.Apply("/", (top, arm)), box, known))
        made = join(*arms)
        return made if made.finite else found

    def as_choice(self, term: eq.Expr, box: Limits) -> eq.Apply | None:
        """An expression as a choice of two, also where a condition that counts as 0 or 1 chooses:
        `c * a + (1 - c) * b` of finite numbers.
        """
        if not isinstance(term, eq.Apply):
            return None
        if term.function == "select":
            return term
        parts = [self.meaning(arg, box) for arg in term.args] if term.function == "+" else []
        arms: dict[bool, eq.Expr] = {}
        conditions = set()
        for part in parts:
            pairs = [part.args, part.args[::-1]] if _is_product(part) else [(part, eq.Const(1.0))]
            for factor, arm in pairs:
                mask = self.meaning(factor, box)
                if is_truth(mask, self.kind) and self.value(arm, box, {}).finite:
                    condition, holds = self._condition(mask.args[0], box)
                    arms[holds] = arm
                    conditions.add(condition)
                    break
        if len(arms) != len(parts) or not arms or len(conditions) != 1:
            return None
        return eq.Apply("select", (*conditions, arms[True], arms[False]))

    def as_one(self, expr: eq.Apply, found: Numbers, box: Limits, facts: Facts) -> Numbers:
        """A comparison, none of its sides being NaN, in a proof in which two elements are one: of
        these two, or of what is one of them and a number.
        """
        if self._equal is None:
            return found
        one, other = (self.copies(arg, box) for arg in expr.args)
        if any(a in one and b in other for a, b in (self._equal, self._equal[::-1])):
            return truth([OF_ITSELF[expr.function]])
        if self.kind(expr.args[0]) != "real":
            return found
        first, second = (self.sum_of(arg, box, facts) for arg in expr.args)
        gap = first.plus(second, -1.0)
        if gap.factors:
            return self._in_order(expr, found, gap, box, facts)
        ends = interval(gap.constant - gap.error, gap.constant + gap.error)
        return meet(found, self.own.apply(expr.function, [ends, number(0.0)], "bool")[0])

    def _in_order(
        self, expr: eq.Apply, found: Numbers, gap: Sum, box: Limits, facts: Facts
    ) -> Numbers:
        """The same, where one side is known to be no less than the other, as the largest element
        is, which one of both is taken to be.
        """
        if gap.error or len(gap.factors) > ATOMS or expr.function not in ("<=", ">=", "<", ">"):
            return found
        if self._ordering:  # a bound of it is what a condition chooses, and that is this one
            return found
        less = gap if expr.function in ("<=", ">") else Sum({}).plus(gap, -1.0)
        self._ordering = True
        try:
            in_order = self.upper(less, box, facts, 1) <= 0
        finally:
            self._ordering = False
        return truth([OF_ITSELF[expr.function]]) if in_order else found

    def has_masks(self, expr: eq.Expr) -> bool:
        """Whether truth values may count as numbers in what an expression hangs on."""
        if self._masks is None:
            self._masks = any(tensor.info.dtype == "bool" for tensor in self.tensors.values())
        return self._masks or any(self.kind(part) == "bool" for part in eq.walk(expr))

    def by_truth(self, expr: eq.Apply, found: Numbers, box: Limits, facts: Facts) -> Numbers:
        """A sum in which a condition counts as 0 or 1 twice, or once beside what it compares: what
        it is if that holds, or not.
        """
        plain = self.unfolded(expr, box, UNFOLDED, truths=False)
        truths = self._truths(plain, box)
        compared = [_elements(condition) for condition in truths]
        for (condition, sites), kept in zip(truths.items(), compared, strict=True):
            # what it compares stays an element, of which more is known where it holds
            body = self.unfolded(expr, box, UNFOLDED, kept, truths=False)
            again = len(sites) > 1 or compared.count(kept) > 1  # as `a <= b` and `b <= a`
            if not again and not _stands_beside(kept, body):
                continue
            parts = self._truths(body, box).get(condition, {})
            arms = []
            for which in (True, False):
                known = assume(self, condition, which, box, facts)
                if known is not None:
                    known = {
                        **known,
                        **{p: number(float(which == holds)) for p, holds in parts.items()},
                    }
                    arms.append(self.aside(partial(self.value, body, box, known)))
            found = self._either(found, arms)
        return found

    def _truths(self, body: eq.Expr, box: Limits) -> dict[eq.Expr, dict[eq.Apply, bool]]:
        """The conditions that count as numbers in an expression: where, and whether as they are
        or as their opposites.
        """
        sites: dict[eq.Expr, dict[eq.Apply, bool]] = {}
        for part in eq.walk(body) if small(body) else ():
            if is_truth(part, self.kind):
                condition, holds = self._condition(part.args[0], box)
                sites.setdefault(condition, {})[part] = holds
        return sites

    def _condition(self, condition: eq.Expr, box: Limits) -> tuple[eq.Expr, bool]:
        """What a condition compares, in the one way that it is written, and whether it is that or
        its opposite.
        """
        holds = True
        while True:
            term = self.meaning(condition, box)
            if isinstance(term, eq.Apply) and term.function == "not":
                condition, holds = term.args[0], not holds
            elif term == condition or not isinstance(term, eq.Apply):
                turned = self._denied(term, box)
                return self.unfolded(turned or term, box, 0), holds == (turned is None)
            else:
                condition = term

    def _denied(self, term: eq.Expr, box: Limits) -> eq.Expr | None:
        """The comparison that holds where one does not, if that is how opposites are written; None
        for others, and where there may be NaN, for which neither holds.
        """
        if not isinstance(term, eq.Apply) or term.function not in _OPPOSITES:
            return None
        if any(self.value(arg, box, {}).nan for arg in term.args):
            return None
        return eq.Apply(_OPPOSITES[term.function], term.args)

    def by_branch(self, expr: eq.Apply, found: Numbers, box: Limits, facts: Facts) -> Numbers:
        """A sum in which a condition chooses: what it is if that holds, or not."""
        body = self.unfolded(expr, box, UNFOLDED)
        body = self._signs_chosen(body, box, facts) if small(body) else body
        parts = [part for part in eq.walk(body) if _is_choice(part)] if small(body) else []
        # one that hangs on an index that is bound further in is another for every term there
        parts = [part for part in parts if eq.indices(part.args[0]) <= box.keys()]
        met = [part.args[0] for part in parts]
        worth = [c for c in dict.fromkeys(met) if met.count(c) > 1 or _tells_of(c, body)]
        for condition in worth[:_CONDITIONS]:
            arms = []
            for which in (True, False):
                known = assume(self, condition, which, box, facts)
                if known is not None:
                    chosen = _chosen(body, condition, which)
                    arms.append(self.aside(partial(self.value, chosen, box, known)))
            found = self._either(found, arms)
        return found

    def _signs_chosen(self, body: eq.Expr, box: Limits, facts: Facts) -> eq.Expr:
        """An expression with every sign of what is no NaN as what comparisons choose; of a
        difference, as what comparing both sides chooses, as no difference is rounded to 0.
        """

        def chosen(part: eq.Expr) -> eq.Expr:
            part = eq.rebuild(part, chosen)
            if not (isinstance(part, eq.Apply) and part.function == "sign"):
                return part
            (inner,) = part.args
            numbers = self.value(inner, box, facts) if eq.indices(inner) <= box.keys() else None
            if numbers is None or numbers.nan or self.kind(inner) != "real" or self.own.flush:
                return part
            sides: tuple[eq.Expr, ...] = (inner, eq.Const(0.0))
            if isinstance(inner, eq.Apply) and inner.function == "-":
                sides = inner.args
            below = eq.Apply("select", (eq.Apply("<", sides), eq.Const(-1.0), eq.Const(0.0)))
            return eq.Apply("select", (eq.Apply(">", sides), eq.Const(1.0), below))

        return chosen(body)

    def _either(self, found: Numbers, arms: Sequence[Numbers]) -> Numbers:
        """A set that is what it is where a condition holds, or where it does not."""
        made = join(*arms)
        if not (made.finite and made.pieces):
            return found
        found = self.cut(found, made.low, made.high, "a condition holds or does not")
        return self._less_gaps(found, made)

    def _less_gaps(self, found: Numbers, made: Numbers) -> Numbers:
        """A set less what lies between the pieces of another that it is part of: a number that is
        moved away from 0 by its own sign does not come near 0.
        """
        cut = meet(found, made)
        if len(cut.pieces) < 2 or cut.pieces == found.pieces:
            return found
        self.because("a condition holds or does not")
        return cut


def _stands_beside(elements: Set[eq.Expr], body: eq.Expr) -> bool:
    """Whether one of some elements stands in an expression, not only in its conditions."""
    if isinstance(body, eq.Apply) and SCALARS[body.function].kind == "bool":
        return False
    return body in elements or any(_stands_beside(elements, p) for p in eq.children(body))


def _elements(condition: eq.Expr) -> frozenset[eq.Expr]:
    return frozenset(part for part in eq.walk(condition) if isinstance(part, eq.Read))


def _is_product(part: eq.Expr) -> TypeGuard[eq.Apply]:
    return isinstance(part, eq.Apply) and part.function == "*"


def _is_choice(part: eq.Expr) -> TypeGuard[eq.Apply]:
    """Whether an expression is one of two, as a condition on elements says."""
    chooses = isinstance(part, eq.Apply) and part.function == "select"
    return chooses and isinstance(part, eq.Apply) and bool(eq.reads(part.args[0]))


def _tells_of(condition: eq.Expr, body: eq.Expr) -> bool:
    """Whether a condition is on elements that stand in an expression beside it, too."""
    own = {part for part in eq.walk(condition) if isinstance(part, eq.Read)}
    arms = (_chosen(body, condition, which) for which in (True, False))
    return any(part in own for arm in arms for part in eq.walk(arm))


def _chosen(expr: eq.Expr, condition: eq.Expr, holds: bool) -> eq.Expr:
    """An expression where a condition holds, or does not."""
    if _is_choice(expr) and expr.args[0] == condition:
        return _chosen(expr.args[1 if holds else 2], condition, holds)
    return eq.rebuild(expr, lambda part: _chosen(part, condition, holds))
