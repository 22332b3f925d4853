"""A term that is among those that a condition selects, whatever data says.

Of the rows of a segment, read at the segment that a row is in, that row is one: `ids[n] == ids[j]`
holds where `n` is `j`. So a maximum of a segment is no less than any of its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from irlang import equations as eq
from irlang.interp.assumptions import Facts
from irlang.interp.bounds import Bounds
from irlang.interp.elements import Sum
from irlang.interp.interval import Numbers, may, truth
from irlang.interp.matching import match
from irlang.interp.range_eval import Limits
from irlang.interp.singles import solved
from irlang.interp.unfolding import instance, settled, specialised


class Selected(Bounds):
    """An evaluator that knows a term of a reduction for which its condition holds."""

    def selected(self, term: eq.Reduce, box: Limits) -> eq.Expr | None:
        """A term of a reduction at indices at which both sides of its condition, an equation, are
        one element; the condition may choose between the term and another, too. None where there is
        no such term.
        """
        inner = self.inner_box(term, box)
        if inner is None or term.body is None:
            return None
        where, body = term.where, term.body
        if where is None:
            look = self.meaning(body, inner)
            if not isinstance(look, eq.Apply) or look.function != "select":
                return None
            where, body, _ = look.args
        condition = self.meaning(where, inner)
        if has_choices(condition):
            condition = specialised(condition, inner, self.tensors, self.decided)
        if not isinstance(condition, eq.Apply) or condition.function != "==":
            return None
        free = {name: inner[name] for name, _ in term.binders}
        for one, other in (condition.args, condition.args[::-1]):
            if eq.indices(other) & free.keys():
                continue
            patterns = _in_one(self._patterns(one, free, inner))
            for (pattern, lies), target in product(patterns, self.looks(other, box)):
                found: dict[str, eq.Expr] = {}
                if not match(pattern, target, lies, found, box):
                    found = self._counted_to(pattern, target, lies, {**inner, **lies})
                if len(found) == len(free) and self.stays(found, lies, box):
                    return settled(eq.substitute(body, found))
            here = self._equal_here(one, other, free, box)
            if here is not None:
                return settled(eq.substitute(body, here))
        return None

    def surely(self, expr: eq.Reduce, found: Numbers, box: Limits) -> Numbers:
        """Whether a condition holds of any element: of the one at which it compares equal ones."""
        if expr.kind != "any" or expr.where is not None or expr.body is None:
            return found
        each = eq.Reduce("sum", expr.binders, expr.body, eq.Const(1.0))
        holds = may(found, False) and self.selected(each, box) is not None
        return truth([True]) if holds else found

    def _equal_here(
        self, one: eq.Expr, other: eq.Expr, free: Limits, box: Limits
    ) -> dict[str, eq.Expr] | None:
        """The index from outside at which one side is the number that the other is, as data says
        of the rows of one segment.
        """
        only = self.interval(other, box, {}).only if len(free) == 1 else None
        for name in free if only is not None else ():
            for outer, ends in box.items():
                found: dict[str, eq.Expr] = {name: eq.Index(outer)}
                if free[name][0] <= ends[0] and ends[1] <= free[name][1]:
                    there = settled(eq.substitute(one, found))
                    if self.interval(there, box, {}).only == only:
                        return found
        return None

    def _counted_to(
        self, pattern: eq.Expr, target: eq.Expr, lies: Limits, inner: Limits
    ) -> dict[str, eq.Expr]:
        """The index at which what counts along a tensor is another; nothing for others."""
        if len(lies) != 1 or not isinstance(pattern, eq.Read):
            return {}
        (name,) = lies
        read, region = self.source(pattern, self.one_box(inner))
        term = self.tensors[read.tensor].body if region is None else region.term
        if term is None or eq.reads(term):
            return {}
        place = solved(eq.Apply("==", (instance(term, read), target)), name)
        return {} if place is None else {name: place}

    def _bounds_of_reduction(
        self, term: eq.Reduce, below: bool, rest: Sum, box: Limits, facts: Facts
    ) -> Iterator[Sum]:
        """Terms of a maximum, or of a sum where none is negative."""
        yield from super()._bounds_of_reduction(term, below, rest, box, facts)
        if term.kind == ("max" if below else "min") or (below and self.only_adds(term, box)):
            chosen = self.selected(term, box)
            if chosen is not None:
                for one in dict.fromkeys(self.copies(chosen, box)):
                    yield self.whole(one, box)

    def only_adds(self, term: eq.Reduce, box: Limits) -> bool:
        """Whether a reduction is a sum of terms of which none is negative."""
        inner = self.inner_box(term, box) if term.kind == "sum" else None
        return inner is not None and self.value(term.body or eq.Const(0), inner, {}).low >= 0


def has_choices(condition: eq.Expr) -> bool:
    """Whether an expression is made of what conditions choose, as a place counted from the end."""
    return any(
        isinstance(part, eq.Apply) and part.function == "select" for part in eq.walk(condition)
    )


def _in_one(patterns: Iterable[tuple[eq.Expr, Limits]]) -> list[tuple[eq.Expr, Limits]]:
    """Patterns with where they hold: what holds in regions side by side holds in all of them."""
    found: dict[eq.Expr, Limits] = {}
    for pattern, lies in patterns:
        before = found.get(pattern)
        if before is not None and len(lies) == 1:
            (name,) = lies
            first, then = sorted((before[name], lies[name]))
            if then[0] <= first[1] + 1:
                found[pattern] = {name: (first[0], max(first[1], then[1]))}
        else:
            found.setdefault(pattern, lies)
    return list(found.items())
