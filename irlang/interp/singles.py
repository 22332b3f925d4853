"""Sums of which one term counts: those whose others are multiplied by 0, as by a one-hot vector.

Such a sum is one of the terms, whichever it is: no more than the largest, no less than the least.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from irlang import equations as eq
from irlang.affine import Affine, affine
from irlang.interp.elements import Elements
from irlang.interp.interval import NOTHING, Numbers, join, meet, number
from irlang.interp.range_eval import Limits
from irlang.interp.unfolding import settled

_FACTORS = 3  # products inside one another


class Singles(Elements):
    """An evaluator that knows which sums are one of their terms."""

    def by_single(self, expr: eq.Reduce, found: Numbers, box: Limits) -> Numbers:
        """A sum, less what none of its terms is, where one of them counts at most, or one of each
        of several such sums.
        """
        found = self._by_several(expr, found, box)
        for term, certain in self._singles(expr, box):
            inner = self.inner_box(expr, box)
            if inner is None or term.body is None:
                continue
            place = term.where.args[1] if isinstance(term.where, eq.Apply) else None
            made = self.value(term.body, inner, {})
            # as on the diagonal that a mask leaves, or where another number is largest
            if certain and place is not None and (found.low < 0) != isinstance(place, eq.Read):
                there = {expr.binders[0][0]: place}
                made = meet(made, self.anew(settled(eq.substitute(term.body, there)), box))
            made = made if certain else join(made, number(0.0))
            if made.finite and made.pieces:
                found = self.cut(found, made.low, made.high, "one term of a sum counts")
        return found

    def by_one(self, expr: eq.Reduce, found: Numbers, box: Limits) -> Numbers:
        """A maximum of what is 1 at one index for sure: no less than that."""
        inner = self.inner_box(expr, box)
        if expr.kind != "max" or len(expr.binders) != 1 or inner is None or expr.body is None:
            return found
        name = expr.binders[0][0]
        place = None if found.low >= 1 else self.place_of_one(expr.body, name, inner)
        ends = NOTHING if place is None else self.interval(place, box, {})
        if not (ends.finite and 0 <= ends.low <= ends.high <= inner[name][1]):
            return found
        return self.cut(found, 1.0, math.inf, "one of the terms is 1")

    def _by_several(self, expr: eq.Reduce, found: Numbers, box: Limits) -> Numbers:
        """A sum of sums over other indices, added up the other way round: of each row of one-hot
        vectors one counts, however many of a kind there are.
        """
        inner = self.inner_box(expr, box)
        if inner is None or expr.body is None or expr.where is not None or found.low > 0:
            return found
        for look in self.looks(expr.body, inner):
            if not isinstance(look, eq.Reduce) or look.kind != "sum" or look.where is not None:
                continue
            further = self.inner_box(look, inner)
            if further is None or look.body is None or self.kind(look.body) != "real":
                continue
            rows = self.one_box({**box, **{name: further[name] for name, _ in look.binders}})
            each = self._counted(look.body, expr, rows)
            count, terms = (
                math.prod(its[name][1] + 1 for name, _ in reduce.binders)
                for its, reduce in ((further, look), (inner, expr))
            )
            slack = 4 * count * terms * self.own.row.unit
            if each is None or slack > 0.5 or self.interval(look.body, further, {}).low < 0:
                continue
            ends = count * each.low * (1 - slack), count * each.high * (1 + slack)
            found = self.cut(found, *ends, "one term of each of several sums counts")
        return found

    def _counted(self, body: eq.Expr, expr: eq.Reduce, box: Limits) -> Numbers | None:
        """What the one term of a sum is that counts, for each of its indices; None where it may be
        that none does.
        """
        left, within = dict(expr.binders), self.inner_box(expr, box)
        while left:
            if within is None:
                return None
            for name, bound in left.items():
                inner = self.one_box({n: ends for n, ends in within.items() if n != name})
                term = self.single(eq.Reduce("sum", ((name, bound),), None, body), inner)
                if term is not None and term.body is not None and name not in eq.indices(term.body):
                    body = term.body
                    break
            else:
                return None
            del left[name]
        found = self.interval(body, box, {})
        return found if found.finite and found.pieces else None

    def single(self, expr: eq.Expr, box: Limits) -> eq.Reduce | None:
        """The term that a sum is, as `the` of all of them; None where it may be none of them."""
        if not isinstance(expr, eq.Reduce):
            return None
        return next((term for term, certain in self._singles(expr, box) if certain), None)

    def _singles(self, expr: eq.Reduce, box: Limits) -> Iterator[tuple[eq.Reduce, bool]]:
        """The term that counts in a sum as `the` of all, and whether there is one for sure."""
        inner = self.inner_box(expr, box)
        if expr.kind != "sum" or len(expr.binders) != 1 or expr.where is not None:
            return
        if inner is None or expr.body is None:
            return
        name = expr.binders[0][0]
        for factors in self._taken_apart(expr.body, inner, _FACTORS):
            for at, factor in enumerate(factors):
                place = self.place_of_one(factor, name, inner)
                if place is None:
                    continue
                rest = (*factors[:at], *factors[at + 1 :])
                where = eq.Apply("==", (eq.Index(name), place))
                lies = self.interval(place, box, {})
                certain = lies.finite and inner[name][0] <= lies.low <= lies.high <= inner[name][1]
                yield eq.Reduce("the", expr.binders, where, _product(rest)), certain
                return

    def _taken_apart(
        self, expr: eq.Expr, inner: Limits, depth: int
    ) -> Iterator[tuple[eq.Expr, ...]]:
        """The factors of a product, those that are products themselves taken apart or not."""
        term = self.meaning(expr, inner)
        if depth and isinstance(term, eq.Apply) and term.function == "*":
            for left in self._taken_apart(term.args[0], inner, depth - 1):
                for right in self._taken_apart(term.args[1], inner, depth - 1):
                    yield (*left, *right)
        yield (expr,)

    def place_of_one(self, factor: eq.Expr, name: str, inner: Limits) -> eq.Expr | None:
        """The index at which an expression is 1, where it is 0 at all others."""
        term = self.meaning(factor, inner)
        condition = None
        if isinstance(term, eq.Apply) and term.function == "real":
            condition = self.meaning(term.args[0], inner)
        elif isinstance(term, eq.Apply) and term.function == "select":
            ends = [self.interval(arm, inner, {}).only for arm in term.args[1:]]
            condition = self.meaning(term.args[0], inner) if ends == [1.0, 0.0] else None
        if not isinstance(condition, eq.Apply) or condition.function != "==":
            return None
        for one, other in (condition.args, condition.args[::-1]):
            if self.meaning(one, inner) == eq.Index(name) and name not in eq.indices(other):
                return other
        return solved(condition, name)


def solved(condition: eq.Apply, name: str) -> eq.Expr | None:
    """The index of a name that an equation of indices says it is: another, so much further on."""
    left, right = map(affine, condition.args)
    form = None if left is None or right is None else left.plus(right, -1)
    own = 0 if form is None else form.coefficients.get(name, 0)
    if form is None or abs(own) != 1:
        return None
    rest = form.plus(Affine({name: own}), -1)
    places = [(other, -own * times) for other, times in rest.coefficients.items()]
    further = eq.Const(-own * rest.constant)
    if not places:
        return further
    (other, times), *more = places
    if more or times != 1:
        return None
    return eq.Apply("+", (eq.Index(other), further)) if rest.constant else eq.Index(other)


def _product(factors: Sequence[eq.Expr]) -> eq.Expr:
    made: eq.Expr | None = None
    for factor in factors:
        made = factor if made is None else eq.Apply("*", (made, factor))
    return eq.Const(1.0) if made is None else made
