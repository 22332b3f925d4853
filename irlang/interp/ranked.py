"""Elements by their ranks: which of two sorted ones is the larger.

`the(i | place[i] == r) x[i]` is the element that so many others come before. Whether those are the
smaller ones, so that the results do not fall with r, is decided by trying: the condition of `place`
compares two elements and their indices, and three elements have but a few orders.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import permutations, product
from typing import Any

from irlang import equations as eq
from irlang.affine import affine
from irlang.interp.assumptions import Facts
from irlang.interp.elements import Sum
from irlang.interp.monotone import Monotone
from irlang.interp.range_eval import Limits
from irlang.interp.regions import form_ends
from irlang.interp.unfolding import instance, settled
from irlang.scalar import SCALARS

_TURNED = {"max": "min", "min": "max"}

AtRank = tuple[eq.Reduce, eq.Read, eq.Expr]  # as `at_rank` gives it
Condition = tuple[eq.Expr, str, str, eq.Read, eq.Read]  # with both indices, and both elements


class Ranked(Monotone):
    """An evaluator that knows the order of sorted elements."""

    def _bounds(
        self, atom: eq.Expr, below: bool, rest: Sum, box: Limits, facts: Facts
    ) -> Iterator[Sum]:
        """Sums that are no larger (`below`), or no less, than an element."""
        yield from super()._bounds(atom, below, rest, box, facts)
        own = at_rank(self.meaning(atom, box))
        if own is None:
            return
        yield from self._beside_extremes(own[0], below, rest, box)
        end = self._end(own, box)
        extreme = end == (1 if below else -1)  # the largest, or the least, of all
        free = self.inner_box(own[0], box) if extreme else None
        for other in rest.factors:
            for sign in (1.0, -1.0) if free is not None else ():
                one = own[0] if sign > 0 else self._opposite(own[0], box)
                if one is not None and free is not None and self._is_one_of(one, other, free, box):
                    yield Sum({other: sign})
            its = at_rank(self.meaning(other, box))
            if its is None or its[:2] != own[:2]:
                continue
            forms = affine(own[2]), affine(its[2])
            if forms[0] is None or forms[1] is None:
                continue
            gap = form_ends(forms[0].plus(forms[1], -1), box)
            if gap is None or gap[0] < 0 < gap[1]:
                continue
            later = 1 if gap[0] >= 0 else -1
            if self._rises(own[0], own[1]) == (later if below else -later):
                yield Sum({other: 1.0})

    def _beside_extremes(
        self, own: eq.Reduce, below: bool, rest: Sum, box: Limits
    ) -> Iterator[Sum]:
        """The least or the largest of the elements, between which those at all ranks lie."""
        inner = self.inner_box(own, box)
        for other in rest.factors if inner is not None and own.body is not None else ():
            term = self.meaning(other, box)
            if isinstance(term, eq.Reduce) and term.kind == ("min" if below else "max"):
                its = self.inner_box(term, box) if term.where is None else None
                if its is None or term.body is None or inner is None or own.body is None:
                    continue
                free = {name: its[name] for name, _ in term.binders}
                if self.among(self.looks(term.body, its), self.looks(own.body, inner), free, inner):
                    yield Sum({other: 1.0})

    def _end(self, own: AtRank, box: Limits) -> int:
        """1 where the element at a rank is the largest of all, -1 where it is the least, else 0."""
        form, inner = affine(own[2]), self.inner_box(own[0], box)
        ends = None if form is None else form_ends(form, box)
        if ends is None or inner is None or len(own[0].binders) != 1:
            return 0
        last = inner[own[0].binders[0][0]][1]
        if ends not in ((0, 0), (last, last)):
            return 0
        return self._rises(own[0], own[1]) * (-1 if ends == (0, 0) else 1)

    def _is_one_of(self, term: eq.Reduce, other: eq.Expr, inner: Limits, box: Limits) -> bool:
        """Whether an element is one of those that are sorted."""
        if term.body is None:
            return False
        free = {name: inner[name] for name, _ in term.binders}
        return self.among(self.looks(term.body, inner), self.looks(other, box), free, box)

    def chosen(self, term: eq.Expr, box: Limits) -> eq.Reduce | None:
        """A reduction whose value is one of its terms: an extreme, or the first or last when they
        are sorted, or the opposite of one of opposites.
        """
        if isinstance(term, eq.Apply) and term.function == "neg":
            inner = self.chosen(self.meaning(term.args[0], box), box)
            return None if inner is None else self._opposite(inner, box)
        if isinstance(term, eq.Reduce) and term.kind in ("max", "min") and term.where is None:
            return term
        own = at_rank(term)
        return own[0] if own is not None and self._end(own, box) else None

    def one_of(self, term: eq.Expr, box: Limits) -> eq.Reduce | None:
        """The same, also at a rank between: the k-th of sorted numbers is one of them."""
        own = at_rank(term)
        return self.chosen(term, box) if own is None else own[0]

    def _opposite(self, term: eq.Reduce, box: Limits) -> eq.Reduce | None:
        """A reduction over the numbers of whose opposites one is."""
        inner = self.inner_box(term, box)
        body = None if inner is None or term.body is None else self.meaning(term.body, inner)
        if not isinstance(body, eq.Apply) or body.function != "neg":
            return None
        return eq.Reduce(_TURNED.get(term.kind, term.kind), term.binders, None, body.args[0])

    def is_ranked(self, term: eq.Expr) -> bool:
        """Whether an expression is the element at some rank."""
        return at_rank(term) is not None

    def largest(self, term: eq.Expr, box: Limits) -> eq.Reduce | None:
        """The largest of the elements that are sorted, where an element is that."""
        own = at_rank(term)
        if own is None or self._end(own, box) != 1:
            return None
        return eq.Reduce("max", own[0].binders, None, own[0].body)

    def _rises(self, term: eq.Reduce, place: eq.Read) -> int:
        """1 where no element falls with its rank, -1 where none rises, 0 where that is unknown."""
        body = self.tensors[place.tensor].body if place.tensor in self.tensors else None
        if not isinstance(body, eq.Reduce) or not isinstance(term.body, eq.Read):
            return 0
        count = instance(body, place)
        assert isinstance(count, eq.Reduce)
        (name, bound), *more = term.binders
        if count.where is None or more or len(count.binders) != 1 or count.binders[0][1] != bound:
            return 0
        other = count.binders[0][0]
        its = settled(eq.substitute(term.body, {name: eq.Index(other)}))
        assert isinstance(its, eq.Read)
        condition = count.where, name, other, term.body, its
        used = {part for part in eq.walk(count.where) if isinstance(part, eq.Read)}
        if not used <= {term.body, its} or term.body == its:
            return 0
        return next((sign for sign in (1, -1) if _is_order(condition, sign)), 0)


def at_rank(term: eq.Expr) -> AtRank | None:
    """The element at a rank: that of any rank, what is compared with it, and the rank."""
    if not isinstance(term, eq.Reduce) or term.kind != "the":
        return None
    where = term.where
    if not isinstance(where, eq.Apply) or where.function != "==":
        return None
    names = {name for name, _ in term.binders}
    for place, rank in (where.args, where.args[::-1]):
        if isinstance(place, eq.Read) and not eq.indices(rank) & names and not eq.reads(rank):
            return eq.Reduce(term.kind, term.binders, None, term.body), place, rank
    return None


@cache
def _is_order(condition: Condition, sign: int) -> bool:
    """Whether of any two elements of which one is the larger (the smaller, if `sign` is -1) it has
    the larger rank: what comes before the other comes before it, and so does the other.
    """
    for a, b, c in product(range(3), repeat=3):
        if sign * a <= sign * b:
            continue
        for at in permutations(range(3)):
            larger, smaller, third = zip((a, b, c), at, strict=True)
            if not _before(condition, smaller, larger) or _before(condition, larger, smaller):
                return False
            if _before(condition, third, smaller) and not _before(condition, third, larger):
                return False
    return True


def _before(condition: Condition, one: tuple[int, int], two: tuple[int, int]) -> bool:
    """Whether one element, at an index, is counted among those before another."""
    where, name, other, element, its = condition
    known: dict[eq.Expr, Any] = {
        eq.Index(name): two[1], eq.Index(other): one[1], element: two[0], its: one[0],
    }  # fmt: skip
    return bool(_value(where, known))


def _value(expr: eq.Expr, known: Mapping[eq.Expr, Any]) -> Any:
    """An expression of a few known numbers; NaN, which is in no order, where it has others."""
    if expr in known:
        return known[expr]
    if isinstance(expr, (eq.Const, eq.Size)):
        return expr.value
    if isinstance(expr, eq.Apply):
        args = [_value(arg, known) for arg in expr.args]
        if expr.function == "select":
            return args[1] if args[0] else args[2]
        return SCALARS[expr.function].numpy(*args)
    return float("nan")
