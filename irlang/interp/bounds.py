"""What bounds an element, as a sum of others: a maximum is no less than any of those that it is
taken over, a sum of what is not negative no less than a term, a function lies near its argument.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from irlang import equations as eq
from irlang.interp.assumptions import Facts
from irlang.interp.elements import Sum, has_default
from irlang.interp.interval import may, truth
from irlang.interp.matching import match
from irlang.interp.range_eval import Limits
from irlang.interp.regions import Box
from irlang.interp.sums import ATOMS, WHOLE, Sums
from irlang.interp.unfolding import anonymous, ends_of, instance, settled, specialised
from irlang.scalar import SCALARS

_DEEP = 1  # definitions, one behind another
_NESTED = 3  # maxima inside one another
# reductions of which the first is no less (True), or no more, than the second of the same terms,
# those of a sum not being negative, those of a product neither and 1 at most; `the` is one of
# them, whichever is chosen
_ORDERED = frozenset(
    {(kind, kind, below) for kind in ("sum", "max", "min") for below in (True, False)}
    | {("sum", "max", True), ("sum", "min", True), ("max", "min", True), ("min", "max", False)}
    | {("prod", "min", False), ("prod", "the", False)}
    | {("sum", "the", True), ("max", "the", True), ("min", "the", False)}
)
_BEYOND = frozenset({("sum", True), ("prod", False)})


class Bounds(Sums):
    """An evaluator that knows sums that are no larger, or no less, than an element."""

    def _bounds(
        self, atom: eq.Expr, below: bool, rest: Sum, box: Limits, facts: Facts
    ) -> Iterator[Sum]:
        """Sums that are no larger (`below`), or no less, than an element."""
        term = self.extreme(atom, box) or self.meaning(atom, box)
        if isinstance(term, eq.Apply):
            yield from self._bounds_of_apply(term, below, box, facts)
            yield from self._one_of_two(term, below, rest, box, facts)
            yield from self._bounds_of_mean(term, below, rest, box, facts)
            if self._cased() and term.function in ("+", "-"):
                made = self._combined(term, box, facts, 0)
                if made is not None and len(made.factors) <= ATOMS:
                    yield made
        elif isinstance(term, eq.Reduce):
            yield from self._bounds_of_reduction(term, below, rest, box, facts)
            written = self.as_written(atom, box)
            if isinstance(written, eq.Reduce) and written != term:
                yield from self._bounds_of_reduction(written, below, rest, box, facts)
            deep = self.nested(term, box)
            if deep is not None:
                yield from self._bounds_of_reduction(deep, below, rest, box, facts)

    def _bounds_of_apply(
        self, term: eq.Apply, below: bool, box: Limits, facts: Facts
    ) -> Iterator[Sum]:
        if term.function == ("max" if below else "min"):
            for arg in self._flat(term, box):
                own, apart = self.whole(arg, box), self.sum_of(arg, box, facts)
                yield own
                if apart != own:
                    yield apart
        elif term.function == "abs" and below:
            inner, apart = self.whole(term.args[0], box), self.sum_of(term.args[0], box, facts)
            for sum_ in (inner,) if apart == inner else (inner, apart):
                yield sum_
                yield Sum({}).plus(sum_, -1.0)
        elif term.function == "neg":
            yield Sum({}).plus(self.whole(term.args[0], box), -1.0)
        elif term.function in ("*", "/") and not self._cased():
            pairs = (term.args, term.args[::-1]) if term.function == "*" else (term.args,)
            for one, times in pairs:
                yield from self._scaled_bounds(term, one, times, below, box, facts)
        elif term.function == "//" and self.kind(term) == "int":
            by = self.remembered(term.args[1], box, facts).only
            if by is not None and by > 0:  # what is left is less than what is divided by
                whole = Sum({}, error=1 / WHOLE).plus(self.whole(term.args[0], box), 1 / by)
                yield whole.plus(Sum({}, -1.0), (by - 1) / by) if below else whole
        elif SCALARS[term.function].near is not None:
            yield from self._near(term, below, box, facts)
        elif term.function == "select":
            ends = [self.sum_of(arg, box, facts) for arg in term.args[1:]]
            for end, rest in (ends, ends[::-1]):
                gap = end.plus(rest, -1.0) if below else rest.plus(end, -1.0)
                if self.upper(gap, box, facts, 0) + gap.error <= 0:
                    yield end

    def _one_of_two(
        self, term: eq.Apply, below: bool, rest: Sum, box: Limits, facts: Facts
    ) -> Iterator[Sum]:
        """What is added to, or taken away from, where it cancels and that is of one sign: rounding
        keeps the order, so that no difference is more than what a positive number is taken from.
        """
        if term.function not in ("+", "-") or not rest.factors:
            return
        second = 1.0 if term.function == "+" else -1.0
        pairs = zip(term.args, term.args[::-1], (1.0, second), (second, 1.0), strict=True)
        for one, other, sign, turned in pairs:
            bound = Sum({}).plus(self.whole(one, box), sign)
            if not bound.factors.keys() <= rest.factors.keys():
                continue
            numbers = self.remembered(other, box, facts)
            ends = (numbers.low, numbers.high) if turned == 1 else (-numbers.high, -numbers.low)
            if numbers.pieces and (ends[0] >= 0 if below else ends[1] <= 0):
                yield bound

    def _bounds_of_mean(
        self, term: eq.Apply, below: bool, rest: Sum, box: Limits, facts: Facts
    ) -> Iterator[Sum]:
        """The same of a multiple of a sum, as a mean is: so many times what bounds that."""
        if term.function not in ("*", "/"):
            return
        pairs = (term.args, term.args[::-1]) if term.function == "*" else (term.args,)
        for one, times in pairs:
            number = times.value if isinstance(times, (eq.Const, eq.Size)) else 0
            look = self.meaning(one, box) if number > 0 else None
            size = self.interval(term, box, facts)
            if not isinstance(look, eq.Reduce) or look.kind != "sum" or not size.finite:
                continue
            factor = self.own.nearest(float(number))
            factor = factor if term.function == "*" else 1 / factor
            error = Sum({}, error=2 * self.own.row.unit * size.magnitude + self.own.least)
            for bound in self._bounds_of_reduction(look, below, rest, box, facts):
                if bound.factors.keys() <= rest.factors.keys():
                    yield error.plus(bound, factor)

    def _near(self, term: eq.Apply, below: bool, box: Limits, facts: Facts) -> Iterator[Sum]:
        """The argument of a function, and how far its value is from that at least, or at most."""
        row = SCALARS[term.function]
        end = (row.near or (-math.inf, math.inf))[0 if below else 1]
        error = 0.0
        if row.ulps:
            size = self.interval(term, box, facts)
            rounding = 2 * (row.ulps + 1) * self.own.row.unit
            largest = max(size.magnitude, row.least) if size.finite else math.inf
            error = rounding * largest + self.own.least
        if math.isfinite(end) and math.isfinite(error):
            own = self.whole(term.args[0], box)
            apart = self.sum_of(term.args[0], box, facts)
            for argument in (own,) if apart == own else (own, apart):
                yield argument.plus(Sum({}, end, error))

    def leaves(self, term: eq.Apply, box: Limits, depth: int = _NESTED) -> Iterator[eq.Expr]:
        """The numbers of which a maximum or minimum is one, those of others inside it included.
        What lies too deep is a number itself.
        """
        for arg in term.args:
            look = self.meaning(arg, box)
            if depth and isinstance(look, eq.Apply) and look.function == term.function:
                yield from self.leaves(look, box, depth - 1)
            else:
                yield arg

    def _flat(self, term: eq.Apply, box: Limits, depth: int = _NESTED) -> Iterator[eq.Expr]:
        """The arguments of a maximum or minimum, and of those inside it."""
        for arg in term.args:
            yield arg
            look = self.meaning(arg, box)
            if depth and isinstance(look, eq.Apply) and look.function == term.function:
                yield from self._flat(look, box, depth - 1)

    def _scaled_bounds(
        self,
        term: eq.Apply,
        one: eq.Expr,
        times: eq.Expr,
        below: bool,
        box: Limits,
        facts: Facts,
    ) -> Iterator[Sum]:
        """A number times another, or divided by it, is no more than itself, or no less; nor than
        itself with the other sign, times what is 1 at most in size.
        """
        size, factor = (self.remembered(part, box, facts) for part in (one, times))
        if not (size.finite and size.pieces and factor.finite and factor.pieces):
            return
        if term.function == "/" and factor.low <= 0:
            return
        shrinks = factor.low >= 1 if term.function == "/" else factor.high <= 1
        grows = factor.high <= 1 if term.function == "/" else factor.low >= 1
        up = (size.low >= 0 and shrinks) or (size.high <= 0 and grows)
        slack = Sum({}, error=2 * self.own.row.unit * size.magnitude * (term.function == "/"))
        down = (size.low >= 0 and grows) or (size.high <= 0 and shrinks)
        if down if below else up:
            yield self.whole(one, box).plus(slack)
        turned = size.low >= 0 if below else size.high <= 0
        if turned and factor.low < 0 and term.function == "*" and factor.magnitude <= 1:
            yield slack.plus(self.whole(one, box), -1.0)

    def _cases(
        self, atom: eq.Expr, below: bool, box: Limits, facts: Facts
    ) -> Iterator[Sequence[Sum]]:
        """Sums of which one at least is no larger (`below`), or no less, than an element."""
        term = self.meaning(atom, box)
        if not isinstance(term, eq.Apply):
            return
        if term.function == ("min" if below else "max"):
            args = list(self.leaves(term, box))
            own = [self.whole(arg, box) for arg in args]
            yield own
            apart = [self.sum_of(arg, box, facts) for arg in args]
            if apart != own:
                yield apart
        elif term.function == "select":
            condition = self.value(term.args[0], box, facts)
            arms = zip((True, False), term.args[1:], strict=True)
            yield [self.whole(arm, box) for which, arm in arms if may(condition, which)]
        elif term.function == "+":
            parts = self.average(term, box, facts)
            if parts is not None:
                yield parts
        elif term.function == "*" and self._cased():
            for one, other in (term.args, term.args[::-1]):
                times = self.value(one, box, facts)
                if times.finite and times.pieces and other in self._by_case:
                    whole = self.whole(other, box)
                    size = self.interval(term, box, facts).magnitude
                    error = 2 * self.own.row.unit * size + self.own.least
                    ends = (times.low, times.high)
                    yield [Sum({}, error=error).plus(whole, end) for end in ends]

    def average(self, expr: eq.Apply, box: Limits, facts: Facts) -> Sequence[Sum] | None:  # noqa: ARG002
        """Two sums between which a sum of two products lies; None where that is not known."""
        return None

    def _bounds_of_reduction(
        self, term: eq.Reduce, below: bool, rest: Sum, box: Limits, facts: Facts
    ) -> Iterator[Sum]:
        """Terms of a reduction, all of them on one side of it, that are elements of `rest`."""
        inner = self.inner_box(term, box)
        if inner is None or term.body is None:
            return
        if term.where is not None:
            yield from self._chosen_bounds(term, below, rest, inner, box, facts)
            return
        if not self._is_beyond(term.kind, term.body, below, inner):
            return
        free = {name: inner[name] for name, _ in term.binders}
        patterns = list(self._patterns(term.body, free, inner))
        first: dict[str, eq.Expr] = {name: eq.Const(0) for name in free}
        yield self.whole(settled(eq.substitute(term.body, first)), box)
        alike = anonymous(term)
        for other in rest.factors:
            its = self.extreme(other, box) or self.meaning(other, box)
            its = self.single(its, box) or its
            is_term = isinstance(its, eq.Reduce) and its.kind != "sum"
            if isinstance(its, eq.Reduce) and (term.kind, its.kind, below) in _ORDERED:
                its = eq.Reduce(
                    term.kind, its.binders, None if its.kind == "the" else its.where, its.body
                )
                same = anonymous(its) == alike
                yield from [Sum({other: 1.0})] * same
                if same and is_term and term.kind == "sum":
                    yield from self._with_others(other, term, inner, box, facts)
            for (pattern, lies), target in product(patterns, self.looks(other, box)):
                found: dict[str, eq.Expr] = {}
                if match(pattern, target, lies, found, box) and self.stays(found, lies, box):
                    yield Sum({other: 1.0})
                    if term.kind == "sum" and len(found) == len(free):
                        yield from self._with_others(other, term, inner, box, facts)
        if term.kind == "sum":
            return
        parts = self.sum_of(term.body, inner, {}).factors
        news = len(parts) > 1 or [*parts.values()] == [-1.0]
        if not news or len(parts) > len(rest.factors):
            return
        for other, part in product(rest.factors, parts):
            found = {}
            # a term that is a sum of elements of `rest`
            whole = match(part, other, free, found) and len(found) == len(free)
            if whole and self.stays(found, free, box):
                yield self.sum_of(settled(eq.substitute(term.body, found)), box, facts)

    def where(self, expr: eq.Reduce, box: Limits, facts: Facts) -> Facts:
        """The facts for the terms of a reduction that a condition holds for. That it holds is kept
        where it tells indices only, and terms are made of the largest of those that one chooses.
        """
        where, body = expr.where, expr.body
        if where is None or body is None or eq.reads(where) or not self._chooses(body, box, _DEEP):
            return facts
        return {**facts, where: truth([True])}

    def _chooses(self, expr: eq.Expr, box: Limits, depth: int) -> bool:
        """Whether a maximum or minimum of those for which a condition holds is in an expression, or
        in what that is made of.
        """
        for part in eq.walk(expr):
            term = self.meaning(part, box) if eq.indices(part) <= box.keys() else part
            if isinstance(term, eq.Reduce) and term.where and term.kind in ("max", "min"):
                return True
            if term != part and depth and self._chooses(term, box, depth - 1):
                return True
        return False

    def _chosen_bounds(
        self, term: eq.Reduce, below: bool, rest: Sum, inner: Limits, box: Limits, facts: Facts
    ) -> Iterator[Sum]:
        """The same of a maximum or minimum of those elements for which a condition holds, as it
        does for these.
        """
        if term.body is None or term.where is None or (term.kind == "max") != below:
            return
        free = {name: inner[name] for name, _ in term.binders}
        patterns = self.looks(term.body, inner) if term.kind in ("max", "min") else ()
        for other, pattern in product(rest.factors, patterns):
            for target in self.looks(other, box):
                found: dict[str, eq.Expr] = {}
                if not match(pattern, target, free, found, box) or len(found) < len(free):
                    continue
                holds = self.value(settled(eq.substitute(term.where, found)), box, facts)
                if self.stays(found, free, box) and not may(holds, False):
                    yield Sum({other: 1.0})

    def _is_beyond(self, kind: str, body: eq.Expr, below: bool, inner: Limits) -> bool:
        """Whether a reduction is no less (`below`), or no more, than any of its terms: a sum of
        what is not negative, a product of shares.
        """
        if kind in ("max", "min"):
            return (kind == "max") == below
        terms = self.value(body, inner, {}) if (kind, below) in _BEYOND else None
        return terms is not None and terms.low >= 0 and (kind == "sum" or terms.high <= 1)

    def extreme(self, expr: eq.Expr, box: Limits) -> eq.Reduce | None:
        """The largest of some elements, or the least, for one that is read where that is."""
        if not isinstance(expr, eq.Read) or not any(isinstance(at, eq.Read) for at in expr.index):
            return None
        found = specialised(expr, box, self.tensors, self.decided)
        return found if isinstance(found, eq.Reduce) else None

    def _patterns(
        self, body: eq.Expr, free: Limits, inner: Limits
    ) -> Iterator[tuple[eq.Expr, Limits]]:
        """How the terms of a reduction may be written, and the indices at which they are that: an
        element of several tensors that are joined is one of the first at first.
        """
        for look in self.looks(body, inner):
            yield look, free
            if isinstance(look, eq.Apply) and look.function == "real":
                yield look.args[0], free  # a condition that counts
            if has_default(look):  # what lies inside is itself, whatever is read outside
                yield replace(look, default=None), free
        read = self.source(body, inner) if isinstance(body, eq.Read) else (body, None)
        if not isinstance(read[0], eq.Read) or read[0].default is not None or read[1] is not None:
            return
        for region in self.tensors[read[0].tensor].regions:
            within = self._lies_in(read[0], region.box, free, inner)
            if within is not None and region.term is not None:
                yield instance(region.term, read[0]), within

    def _lies_in(self, read: eq.Read, region: Box, free: Limits, inner: Limits) -> Limits | None:
        """Where an element lies in a region, as bounds of free indices; None for nowhere, or where
        that is not so simple.
        """
        found = dict(free)
        for index, (first, end) in zip(read.index, region, strict=True):
            ends = ends_of(index, inner)
            if ends is not None and first <= ends[0] and ends[1] < end:
                continue
            if not isinstance(index, eq.Index) or index.name not in free:
                return None
            low, high = found[index.name]
            found[index.name] = max(low, first), min(high, end - 1)
            if found[index.name][0] > found[index.name][1]:
                return None
        return found

    def _with_others(
        self, one: eq.Expr, term: eq.Reduce, inner: Limits, box: Limits, facts: Facts
    ) -> Iterator[Sum]:
        """A term of a sum, and the least that all others are; nothing where rounding is as much."""
        assert term.body is not None
        count = math.prod(inner[name][1] + 1 for name, _ in term.binders)
        least = (count - 1) * self.value(term.body, inner, {}).low
        size = self.interval(term, box, facts)
        if not (least > 0 and size.finite and size.pieces):
            return
        error = 2 * count * (self.own.row.unit * size.magnitude + self.own.least)
        if least > error:
            yield Sum({one: 1.0}, least, error)
