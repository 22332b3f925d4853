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
from irlang.interp.range_eval import Limits, outside
from irlang.interp.sums import ATOMS
from irlang.interp.swapped import Swapped
from irlang.interp.unfolding import anonymous, settled, specialised

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
        found = self.cut(found, placed, math.inf, "a term, that at a corner, is known")
        if found.low >= 1.0:
            return found
        least = self.aside(lambda: self._among_chosen(expr, box, facts))
        why = f"a term, that at the maximum or minimum, is {least:.6g} at least"
        return self.cut(found, least, math.inf, why)

    def _among_chosen(self, expr: eq.Reduce, box: Limits, facts: Facts) -> float:
        """What a sum of terms that a condition holds for, none of them negative, is at least: by
        that of the element which is the largest, or the least, of all that the condition holds for.
        """
        inner = self.inner_box(expr, box)
        if inner is None or expr.body is None or self.value(expr.body, inner, facts).low < 0:
            return 0.0
        names = [name for name, _ in expr.binders]
        expr = self._copies_seen_through(expr, inner)
        assert expr.body is not None
        best = 0.0
        for written in self._written_out(expr.body, inner, UNFOLDED + 1):
            body, where = written, expr.where
            if isinstance(where, eq.Apply) and where.function == "==" and self._are_whole(where):
                for one, other in (where.args, where.args[::-1]):
                    if eq.indices(one) & {*names} and not eq.indices(other) & {*names}:
                        body = settled(_in_place(body, one, other))
            best = max(best, self._least_chosen(expr, body, inner, box, facts))
            if best >= 1.0:
                break  # as it is an exponential of 0; written out further it says the same
        return best

    def _least_chosen(
        self, expr: eq.Reduce, body: eq.Expr, inner: Limits, box: Limits, facts: Facts
    ) -> float:
        """The same of terms that are written out so far."""
        names = [name for name, _ in expr.binders]
        best = 0.0
        for atom in dict.fromkeys(eq.walk(body)):
            if not isinstance(atom, eq.Read) or not eq.indices(atom) <= box.keys():
                continue
            term = self.meaning(atom, inner)
            bounded = self._unbounded(term, inner, facts) or self._joined(term, inner, facts)
            largest = _of_chosen(term) if bounded is None else bounded
            if largest is None or self._chosen_by(largest, inner) != chosen_by(expr):
                continue
            is_any = bounded is None and self.anew(atom, box, facts).finite
            if not is_any and self.selected(largest, inner) is None:
                continue  # there may be none
            for equal in dict.fromkeys(self._choices(largest, body, inner, names)):
                with self.taken_as(equal, settled(atom)):
                    best = max(best, self.value(body, inner, facts).low)
        return best

    def _copies_seen_through(self, term: eq.Reduce, inner: Limits) -> eq.Reduce:
        """A reduction whose condition compares what the elements there are copies of."""
        if term.where is None:
            return term
        return replace(term, where=specialised(term.where, inner, self.tensors, self.decided))

    def _chosen_by(self, term: eq.Reduce, box: Limits) -> eq.Expr:
        """The indices for which the condition of a reduction holds."""
        inner = self.inner_box(term, box)
        return chosen_by(term if inner is None else self._copies_seen_through(term, inner))

    def _unbounded(self, term: eq.Expr, box: Limits, facts: Facts) -> eq.Reduce | None:
        """What is chosen, of a maximum or minimum of that and a number that is beyond all of it, as
        the rows of a segment are put into the least number there is; None for any other.
        """
        if not isinstance(term, eq.Apply) or term.function not in ("max", "min"):
            return None
        for arg, other in (term.args, term.args[::-1]):
            chosen = _of_chosen(self.meaning(arg, box))
            inner = None if chosen is None else self.inner_box(chosen, box)
            if chosen is None or inner is None or chosen.body is None:
                continue
            body = self.value(chosen.body, inner, outside(chosen, box, facts))
            end = self.value(other, box, facts)
            larger, lesser = (body, end) if term.function == "max" else (end, body)
            if chosen.kind == term.function and _in_order(lesser, larger):
                return chosen
        return None

    def _joined(self, term: eq.Expr, box: Limits, facts: Facts) -> eq.Reduce | None:
        """The same, of what is chosen among elements and numbers that are joined to them, so that
        some are there for each segment: what is chosen of the first; None for any other.
        """
        chosen = _of_chosen(term)
        inner = None if chosen is None else self.inner_box(chosen, box)
        if chosen is None or inner is None or not isinstance(chosen.body, eq.Read):
            return None
        name = chosen.binders[0][0]
        read, region = self.source(chosen.body, inner)
        axes = [axis for axis, at in enumerate(read.index) if at == eq.Index(name)]
        if region is not None or len(axes) != 1 or len(chosen.binders) != 1:
            return None
        first = sorted(self.tensors[read.tensor].bounds(axes[0]))[1]
        if first > inner[name][1] or chosen.where is None:
            return None
        boxes = [
            self.one_box({**inner, name: ends})
            for ends in ((0, first - 1), (first, inner[name][1]))
        ]
        facts = outside(chosen, box, facts)
        own, others = (self.value(chosen.body, one, facts) for one in boxes)
        if not (_in_order(others, own) if chosen.kind == "max" else _in_order(own, others)):
            return None
        where, body = (
            specialised(part, boxes[0], self.tensors, self.decided)
            for part in (chosen.where, chosen.body)
        )
        return eq.Reduce(chosen.kind, ((name, eq.Const(first)),), where, body)

    def some_chosen(self, term: eq.Reduce, facts: Facts) -> bool:
        """Whether the condition of a reduction is known to hold of some term."""
        own = chosen_by(replace(term, body=None))
        return any(
            isinstance(fact, eq.Reduce)
            and fact.kind == "any"
            and fact.where is None
            and chosen_by(replace(fact, where=fact.body)) == own
            for fact in facts
        )

    def _are_whole(self, comparison: eq.Apply) -> bool:
        """Whether whole numbers are compared, so that equal ones are one number: 0 has no sign."""
        return all(self.kind(arg) == "int" for arg in comparison.args)

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
        """What a term is at least at an index from outside, or at one place of pairs, where it
        compares an element with itself, or hangs on a sum of what does.
        """
        met = sum(map(_meets, eq.walk(body)))
        places: list[dict[str, eq.Expr]] = [
            {names[0]: eq.Index(at)}
            for at, ends in box.items()
            if len(names) == 1 and ends[1] <= inner[names[0]][1]
        ]
        if len(names) == _CORNERS:  # of all pairs, also each with itself
            places.append(dict.fromkeys(names, eq.Const(0)))
        for place in places:
            term = settled(eq.substitute(body, place))
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


def _of_chosen(term: eq.Expr) -> eq.Reduce | None:
    """A maximum or minimum of elements that a condition holds for; None for any other."""
    if not isinstance(term, eq.Reduce) or term.kind not in ("max", "min"):
        return None
    body = term.body
    if term.where is not None or not isinstance(body, eq.Apply) or body.function != "select":
        return term if term.where is not None else None
    where, chosen, none = body.args
    end = -math.inf if term.kind == "max" else math.inf
    if not isinstance(none, (eq.Const, eq.Size)) or none.value != end:
        return None
    return replace(term, where=where, body=chosen)


def _in_order(lesser: Numbers, larger: Numbers) -> bool:
    """Whether no number of one set is above any of another."""
    if lesser.nan or larger.nan or lesser.above or larger.below:
        return False
    return not (lesser.pieces and larger.pieces) or lesser.high <= larger.low


def chosen_by(term: eq.Reduce) -> eq.Expr:
    """The indices for which the condition of a reduction holds."""
    return anonymous(eq.Reduce("count", term.binders, term.where, None))


def _in_place(expr: eq.Expr, one: eq.Expr, other: eq.Expr) -> eq.Expr:
    """An expression with one part in place of another."""
    return other if expr == one else eq.rebuild(expr, lambda part: _in_place(part, one, other))


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
