"""Conditions that hold of one element at least: a row of which any is kept has one that is kept.

So the largest of a row is finite whose masked elements are -inf, where all of it is 0 if no element
is kept: a softmax that is guarded against rows that are masked whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from itertools import product

from irlang import equations as eq
from irlang.interp.assumptions import OPPOSITE, TURNED, Facts, assume
from irlang.interp.extremes import UNFOLDED
from irlang.interp.interval import Numbers, join, may, truth
from irlang.interp.quotients import Quotients
from irlang.interp.range_eval import Limits
from irlang.interp.unfolding import anonymous, instance, settled

_DEEP = 6  # definitions behind one another
_FEW = 2  # conditions that are looked at
_ABOVE = (">", ">=", "==")  # a number, so that what stands before it is not 0

Some = tuple[eq.Expr, bool]  # what holds, or does not, of one element at least


class Somewhere(Quotients):
    """An evaluator that knows that what holds of some element holds of one."""

    def by_some(self, expr: eq.Reduce, inner: Limits, facts: Facts) -> Numbers | None:
        """An element that is met among those of a reduction, by a condition on all of them that is
        chosen by: as one that makes it hold, or not. None where there is no such condition.
        """
        assert expr.body is not None
        names = [name for name, _ in expr.binders]
        body = self.unfolded(expr.body, inner, UNFOLDED)
        conditions = [
            part
            for part in dict.fromkeys(eq.walk(body))
            if self.kind(part) == "bool" and eq.reads(part) and not eq.indices(part) & {*names}
        ]
        for condition in conditions[:_FEW]:
            met = []
            for holds in (True, False):
                known = assume(self, condition, holds, inner, facts)
                some = self._some(condition, holds, inner, names, _DEEP)
                if known is not None and some is not None:
                    known = assume(self, *some, inner, known)
                    known = None if known is None else {**known, some[0]: truth([some[1]])}
                if known is not None:
                    known = {**known, condition: truth([holds])}
                    met.append(self.value(body, inner, known))
            made = join(*met)
            if made.pieces and not (made.below or made.above):
                return made
        return None

    def of_an_extreme(self, expr: eq.Reduce, found: Numbers, box: Limits) -> Numbers:
        """How often a condition holds that compares each element with all, as how far they are
        above it: at least once where it does for the largest of them, or for the least.
        """
        if expr.kind != "count" or found.low > 0 or len(expr.binders) != 1 or self.done():
            return found
        inner, (name, bound) = self.inner_box(expr, box), expr.binders[0]
        if inner is None or expr.where is None:
            return found
        condition = self._with_sums(expr.where, inner)
        each = dict.fromkeys(
            part
            for part in eq.walk(condition)
            if isinstance(part, eq.Read)
            and part.default is None
            and name in eq.indices(part) <= inner.keys()
        )
        met = each if eq.reduces(condition) else ()
        for element, kind in product(list(met)[:_FEW], ("max", "min")):
            extreme = eq.Reduce(kind, ((name, bound),), None, element)
            body = anonymous(extreme)
            if self.aside(partial(self._holds_where, condition, element, body, inner)):
                return self.cut(found, 1, math.inf, "what holds of the largest holds of one")
        return found

    def _holds_where(
        self, condition: eq.Expr, element: eq.Expr, extreme: eq.Expr, inner: Limits
    ) -> bool:
        """Whether a condition holds where an element is the largest, or the least, of all."""
        with self.taken_as(element, extreme):
            return not may(self.value(condition, inner, {}), False)

    def _with_sums(self, expr: eq.Expr, inner: Limits) -> eq.Expr:
        """An expression with what is added up in its elements, and what that is made of."""
        if isinstance(expr, eq.Read):
            term = self.meaning(expr, inner)
            return term if isinstance(term, eq.Reduce) and term.where is None else expr
        return eq.rebuild(expr, lambda part: self._with_sums(part, inner))

    def _some(
        self, condition: eq.Expr, holds: bool, inner: Limits, names: list[str], depth: int
    ) -> Some | None:
        """What holds, or does not, at some index, if a condition holds, or does not; a number
        counts as one that holds where it is not 0.
        """
        if not depth:
            return None
        if isinstance(condition, eq.Read):
            term = self._made_as(condition, inner)
            return None if term is None else self._some(term, holds, inner, names, depth - 1)
        if isinstance(condition, eq.Reduce):
            return self._in_reduction(condition, holds, inner, names, depth)
        if not isinstance(condition, eq.Apply):
            return None
        if condition.function == "not":
            return self._some(condition.args[0], not holds, inner, names, depth)
        if condition.function == "real":
            return self._some(condition.args[0], holds, inner, names, depth)
        if condition.function == "and" and holds:
            parts = (self._some(arg, holds, inner, names, depth - 1) for arg in condition.args)
            return next((part for part in parts if part is not None), None)
        numbers = self._as_nought(condition, holds, inner)
        found = (self._some(one, not nought, inner, names, depth - 1) for one, nought in numbers)
        return next((one for one in found if one is not None), None)

    def _as_nought(
        self, condition: eq.Apply, holds: bool, inner: Limits
    ) -> Iterator[tuple[eq.Expr, bool]]:
        """The numbers that are 0, or are not, as a comparison says that holds, or does not."""
        function = condition.function
        if function not in OPPOSITE:
            return
        function = function if holds else OPPOSITE[function]
        turned = TURNED[function], condition.args[::-1]
        for relation, (one, other) in ((function, condition.args), turned):
            limit = self.interval(other, inner, {})
            if limit.empty or not eq.reads(one):
                continue
            above = relation in _ABOVE and (limit.low > 0 or (limit.low == 0 and relation == ">"))
            if above or (limit.only == 0 and relation == "!="):
                yield one, False
            nought = limit.only == 0 and relation in ("==", "<=")
            if nought and self.interval(one, inner, {}).low >= 0:
                yield one, True

    def _in_reduction(
        self, term: eq.Reduce, holds: bool, inner: Limits, names: list[str], depth: int
    ) -> Some | None:
        """The same of a reduction over indices that are as many as some others."""
        own = self.inner_box(term, inner)
        if own is None or term.where is not None or term.body is None:
            return None
        if [own[name] for name, _ in term.binders] != [inner[name] for name in names]:
            return None
        if term.kind not in (("any", "max", "sum") if holds else ("all", "min")):
            return None
        if term.kind != "any" and term.kind != "all" and self.interval(term.body, own, {}).low < 0:
            return None
        renamed: dict[str, eq.Expr] = {
            name: eq.Index(new) for (name, _), new in zip(term.binders, names, strict=True)
        }
        return self._of_one(settled(eq.substitute(term.body, renamed)), holds, inner, depth)

    def _of_one(self, body: eq.Expr, holds: bool, inner: Limits, depth: int) -> Some | None:
        """A condition that counts as a number, as the condition itself."""
        while depth and self.kind(body) != "bool":
            term = self._made_as(body, inner) if isinstance(body, eq.Read) else None
            if isinstance(body, eq.Apply) and body.function == "real":
                term = body.args[0]
            if term is None:
                return None
            body, depth = term, depth - 1
        return (body, holds) if depth else None

    def _made_as(self, read: eq.Read, inner: Limits) -> eq.Expr | None:
        """What an element is computed as, whole numbers too; None where that is not known."""
        if read.default is not None:
            return None
        read, region = self.source(read, inner)
        tensor = self.tensors[read.tensor]
        for term in (None if region is None else region.term, tensor.body, tensor.written):
            made = None if term is None else instance(term, read)
            if made is not None and made != read:
                return made
        return None
