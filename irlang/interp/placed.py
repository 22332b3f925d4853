"""Sums of terms that are not negative by one of them, at a place that is known: at a corner, on a
diagonal, or at an index from outside, where an element meets itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from irlang import equations as eq
from irlang.interp.assumptions import Facts
from irlang.interp.extremes import FURTHER, UNFOLDED
from irlang.interp.interval import Numbers
from irlang.interp.range_eval import Limits
from irlang.interp.sums import ATOMS
from irlang.interp.swapped import Swapped
from irlang.interp.unfolding import settled

_CORNERS = 2  # indices at whose ends terms are looked at
_OF_TWO = frozenset({"==", "<=", ">=", "-"})  # what is known of an element and itself


class Placed(Swapped):
    """An evaluator that knows what a sum is at least by a term at one place."""

    def chosen_terms(self, expr: eq.Reduce, found: Numbers, box: Limits, facts: Facts) -> Numbers:
        """A sum of the terms that a condition holds for, none of them negative: as of all terms, of
        which the others are 0. That of a segment holds for the row that it is read for.
        """
        if expr.kind != "sum" or found.low != 0 or self.kind(expr) != "real":
            return found
        assert expr.where is not None
        assert expr.body is not None
        body = eq.Apply("select", (expr.where, expr.body, eq.Const(0.0)))
        every = eq.Reduce("sum", expr.binders, None, body)
        placed = self.aside(lambda: self.placed(every, box, facts))
        return self.cut(found, placed, math.inf, "a term, that at a corner, is known")

    def placed(self, expr: eq.Reduce, box: Limits, facts: Facts) -> float:
        """What a sum of terms that are not negative is at least, by one at an end of every index:
        where indices decide what a term is, as on a diagonal that counts as 0. Or by the one at an
        index from outside, where what a term compares is one element.
        """
        inner = self.inner_box(expr, box)
        if inner is None or expr.body is None or self.value(expr.body, inner, facts).low < 0:
            return 0.0
        bodies = [expr.body, *self._written_out(expr.body, inner, FURTHER)]
        body = bodies[min(len(bodies) - 1, UNFOLDED)]
        names = [name for name, _ in expr.binders]
        for one in dict.fromkeys((body, bodies[-1])):
            least = self._beside(one, names, inner, box, facts)
            if least > 0:
                return least
        by_place = any(_by_place(part, names) for part in eq.walk(body))
        met = sum(map(_meets, eq.walk(body)))
        counts = isinstance(body, eq.Apply) and body.function == "real"
        ranked = isinstance(expr.body, eq.Read) and self.is_ranked(self.meaning(expr.body, inner))
        beside = isinstance(body, eq.Apply) and any(map(_compares, eq.walk(body)))
        if not (by_place or counts or ranked or beside) or len(names) > _CORNERS:
            return 0.0
        best = 0.0
        for at in product(*({*inner[name]} for name in names)):
            ends: dict[str, eq.Expr] = {n: eq.Const(end) for n, end in zip(names, at, strict=True)}
            term = expr.body if ranked else body
            term = settled(eq.substitute(term, ends))
            if beside and not (by_place or counts) and sum(map(_meets, eq.walk(term))) <= met:
                continue
            if counts and self._holds(term, box, facts):
                return 1.0
            best = max(best, (self.anew(term, box) if ranked else self.value(term, box, facts)).low)
        return best

    def _holds(self, term: eq.Expr, box: Limits, facts: Facts) -> bool:
        """Whether a condition that counts as 0 or 1 holds by what cancels in a difference."""
        condition = self.meaning(term.args[0], box) if isinstance(term, eq.Apply) else term
        if not isinstance(condition, eq.Apply) or condition.function not in (">", "<"):
            return False
        args = condition.args if condition.function == ">" else condition.args[::-1]
        larger, smaller = (self.sum_of(arg, box, facts) for arg in args)
        gap = smaller.plus(larger, -1.0)
        return len(gap.factors) <= ATOMS and self.upper(gap, box, facts) + gap.error < 0

    def _beside(
        self, body: eq.Expr, names: Sequence[str], inner: Limits, box: Limits, facts: Facts
    ) -> float:
        """What a term is at least at an index from outside, where it compares an element with
        itself, or hangs on a sum of what does.
        """
        met = sum(map(_meets, eq.walk(body)))
        for at, ends in box.items() if len(names) == 1 else ():
            if ends[1] > inner[names[0]][1]:
                continue
            term = settled(eq.substitute(body, {names[0]: eq.Index(at)}))
            sums = dict(self._at_one_place(term, box, facts))
            if sums or sum(map(_meets, eq.walk(term))) > met:
                least = self.value(term, box, {**facts, **sums}).low
                if least > 0:
                    return least
        return 0.0

    def _at_one_place(
        self, term: eq.Expr, box: Limits, facts: Facts
    ) -> Iterator[tuple[eq.Expr, Numbers]]:
        """Elements that one index reads twice, as on a diagonal, and what the sums there are."""
        for part in eq.walk(term):
            if not isinstance(part, eq.Read) or len(set(part.index)) == len(part.index):
                continue
            look = self.meaning(part, box)
            if not isinstance(look, eq.Reduce) or look.body is None:
                continue
            inner = self.inner_box(look, box)
            if inner is not None:
                written = replace(look, body=self.unfolded(look.body, inner, UNFOLDED))
                if any(map(_meets, eq.walk(written))):
                    yield part, self.value(written, box, facts)


def _meets(part: eq.Expr) -> bool:
    """Whether an expression compares an element with itself, or takes it from itself."""
    return isinstance(part, eq.Apply) and part.function in _OF_TWO and part.args[0] == part.args[1]


def _compares(part: eq.Expr) -> bool:
    """Whether an expression compares two elements of one tensor, or takes one from the other."""
    if not isinstance(part, eq.Apply) or part.function not in _OF_TWO:
        return False
    one, other = part.args
    return isinstance(one, eq.Read) and isinstance(other, eq.Read) and one.tensor == other.tensor


def _by_place(part: eq.Expr, names: list[str]) -> bool:
    """Whether an expression is one of two as indices say, one of some names among them."""
    if not isinstance(part, eq.Apply) or part.function != "select" or eq.reads(part.args[0]):
        return False
    return bool(eq.indices(part.args[0]) & set(names))
