"""Sums of elements in which some cancel, and what bounds an element.

An expression is taken apart into elements of tensors; an element that stands in a sum may be
replaced by what bounds it, as a maximum by one of those that it is taken over.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from irlang import equations as eq
from irlang.interp.assumptions import Facts
from irlang.interp.elements import Sum, has_default
from irlang.interp.interval import may
from irlang.interp.range_eval import Limits
from irlang.interp.singles import Singles
from irlang.interp.unfolding import (
    anonymous,
    instance,
    match,
    settled,
)
from irlang.scalar import SCALARS

_DEPTH = 6  # definitions that are looked into, one behind another
_ATOMS = 8  # elements of a sum

_NESTED = 3  # maxima inside one another
_REPLACED = 3  # elements replaced by what bounds them
_LOOKED_AT_OF_TWO = 12  # sums, for one end of a sum of two elements, or for two in place of others
# the same of proofs by cases, and sums that they look at
_REPLACED_BY_CASE, _LOOKED_AT_BY_CASE = 8, 400
# reductions of which the first is no less (True), or no more, than the second of the same terms,
# those of a sum not being negative; `the` is one of them, whichever is chosen
_ORDERED = frozenset(
    {(kind, kind, below) for kind in ("sum", "max", "min") for below in (True, False)}
    | {("sum", "max", True), ("sum", "min", True), ("max", "min", True), ("min", "max", False)}
    | {("sum", "the", True), ("max", "the", True), ("min", "the", False)}
)


class Sums(Singles):
    """An evaluator that knows between which numbers a sum of elements lies."""

    _comparing = False  # whether both terms of two sums are compared
    _by_case: tuple[eq.Expr, ...] = ()  # elements for which a proof goes by cases

    # ---- sums of elements

    def sum_of(self, expr: eq.Expr, box: Limits, facts: Facts, depth: int = _DEPTH) -> Sum:
        """An expression as a sum of elements; of one, itself, where it is nothing better."""
        expr = self.started(expr, box)
        if self._equal is not None and expr == self._equal[0]:
            return Sum({self._equal[1]: 1.0})
        if isinstance(expr, (eq.Const, eq.Size)):
            return Sum({}, self.own.nearest(float(expr.value)))
        if isinstance(expr, eq.Read) and expr.default is None:
            return self._element(expr, box, facts, depth)
        if isinstance(expr, eq.Apply):
            made = self._combined(expr, box, facts, depth)
            if made is not None and len(made.factors) <= _ATOMS:
                return made
        return Sum({expr: 1.0})

    def _element(self, expr: eq.Read, box: Limits, facts: Facts, depth: int) -> Sum:
        read, region = self.source(expr, box)
        if self._equal is not None and read == self._equal[0]:
            return Sum({self._equal[1]: 1.0})
        if region is None:
            return Sum({read: 1.0})
        only = region.numbers.only
        if only is not None:
            return Sum({}, float(only))
        term = region.term
        if depth and isinstance(term, eq.Apply) and self.as_here(read.tensor):
            made = self._combined(instance(term, read), box, facts, depth - 1)
            # a reduction inside is known by its bounds only: the element as a whole is better
            if (
                made is not None
                and len(made.factors) <= _ATOMS
                and not any(map(eq.reduces, made.factors))
            ):
                return made
        return Sum({read: 1.0})

    def _combined(self, expr: eq.Expr, box: Limits, facts: Facts, depth: int) -> Sum | None:
        """Sums, differences and multiples; None of anything else."""
        if not isinstance(expr, eq.Apply) or self.kind(expr) != "real":
            return None
        function = expr.function
        if function in ("neg", "real", "about", "constant"):
            return Sum({}).plus(
                self.sum_of(expr.args[0], box, facts, depth), -1.0 if function == "neg" else 1.0
            )
        if function not in ("+", "-", "*", "/"):
            return None
        left, right = expr.args
        if function in ("+", "-"):
            made = self.sum_of(left, box, facts, depth).plus(
                self.sum_of(right, box, facts, depth), 1.0 if function == "+" else -1.0
            )
        else:
            one, other = self.sum_of(left, box, facts, depth), self.sum_of(right, box, facts, depth)
            if function == "*" and other.factors:
                one, other = other, one
            if other.factors or other.error or not other.constant:
                return None
            times = other.constant if function == "*" else 1 / other.constant
            made = Sum({}).plus(one, times)
        size = self.interval(expr, box, facts)
        if not size.finite:
            return None
        unit = self.own.row.unit * size.magnitude + self.own.least
        return replace(made, error=made.error + unit)

    def sum_ends(self, expr: eq.Apply, box: Limits, facts: Facts) -> tuple[float, float]:
        """Between which numbers a sum lies by what cancels in it."""
        # as it stands: the difference of two elements is rounded once, so it is on the side of 0
        # where the exact one is
        low, high = self._ends_of_two(expr, expr.args, box, facts)
        apart = [self._original(arg, box, facts) for arg in expr.args]
        if low < 0 < high and apart != list(expr.args):
            ends = self._ends_of_two(expr, apart, box, facts)
            low, high = max(low, ends[0]), min(high, ends[1])
        # with the definitions of its elements, the rounding of all steps added up
        made_ = self._combined(expr, box, facts, _DEPTH)
        if made_ is not None and len(made_.factors) <= _ATOMS:
            low = max(low, -self.upper(Sum({}).plus(made_, -1.0), box, facts) - made_.error)
            high = min(high, self.upper(made_, box, facts) + made_.error)
        return low, high

    def _ends_of_two(
        self, expr: eq.Apply, args: Sequence[eq.Expr], box: Limits, facts: Facts
    ) -> tuple[float, float]:
        """The ends of a sum or difference of two elements, rounded once."""
        one, other = (self.whole(arg, box) for arg in args)
        made = one.plus(other, 1.0 if expr.function == "+" else -1.0)
        low = -self.upper(Sum({}).plus(made, -1.0), box, facts)
        terms = [self.meaning(arg, box) for arg in args]
        if any(isinstance(term, eq.Apply) and term.function in ("max", "min") for term in terms):
            self._left = max(self._left, _LOOKED_AT_OF_TWO)  # whatever was tried for the other end
        return self.own.outward(low, self.upper(made, box, facts), 0.5)

    def _original(self, expr: eq.Expr, box: Limits, facts: Facts) -> eq.Expr:
        """What an element is a copy of, so that the same one has one name; of the same value."""
        found = self.copies(expr, box)[-1]
        if found != expr:
            key, own = (self.here(one, box, facts) for one in (found, expr))
            if own in self._memory:
                self._memory.setdefault(key, self._memory[own])
        return found

    def upper(self, made: Sum, box: Limits, facts: Facts, left: int = _REPLACED) -> float:
        """No value of a sum is above this, rounding errors aside."""
        if not left or not made.factors:
            return self._upper(made, box, facts, left)
        terms = frozenset(made.factors.items()), made.constant, left, self._level, self._comparing
        key = self.here(terms, box, facts)
        found = self._proved.get(key)
        if found is not None and found[1] <= self._left:
            self._left -= found[1]
            return float(found[0])
        before = self._left
        best = self._upper(made, box, facts, left)
        if self._left >= 0 and self.left >= 0:  # nothing was left out
            self._proved[key] = best, before - self._left, box, facts
        return best

    def _upper(self, made: Sum, box: Limits, facts: Facts, left: int) -> float:
        """The same, found anew."""
        ends = [made.constant]
        for atom, factor in made.factors.items():
            numbers = self.remembered(atom, box, facts)
            end = numbers.high if factor > 0 else numbers.low
            if numbers.empty or not math.isfinite(end):
                ends = [math.inf]
                break
            product = factor * end
            exact = abs(factor) == 1 or not end
            ends.append(product if exact else math.nextafter(product, math.inf))
        best = _total(ends)
        self._left -= 1
        if not left or self._left < 0 or self.left < 0 or not made.factors:
            return best
        for atom, factor in self._outermost_first(made, box):
            rest = Sum({a: f for a, f in made.factors.items() if a != atom}, made.constant)
            term = self.meaning(atom, box)
            if factor > 0 and isinstance(term, eq.Apply) and term.function == "abs":
                best = min(
                    best, self._either_way(term.args[0], factor, rest, best, box, facts, left)
                )
            for bound in self._bounds(atom, factor < 0, rest, box, facts):
                for times in (factor, *_cancelling(rest, bound, factor)):
                    replaced = rest.plus(bound, times)
                    if times != factor:
                        replaced = replaced.plus(Sum({atom: 1.0}), factor - times)
                    if len(replaced.factors) <= len(made.factors) + self._cased():
                        error = abs(times) * bound.error
                        best = min(best, self.upper(replaced, box, facts, left - 1) + error)
            for cases in self._cases(atom, factor < 0, box, facts):
                found = -math.inf
                for case in cases:
                    replaced = rest.plus(case, factor)
                    error = abs(factor) * case.error
                    found = max(found, self.upper(replaced, box, facts, left - 1) + error)
                    if found >= best:
                        break
                best = min(best, found)
        if left == _REPLACED and len(made.factors) > 1:
            best = min(best, self.together(made, box, facts, left))
        elif left == _REPLACED - 1 and self._two_sums(made, box):
            looked_at, self._left = self._left, _LOOKED_AT_OF_TWO
            best = min(best, self.together(made, box, facts, left))
            self._left = looked_at
        return best

    def _outermost_first(self, made: Sum, box: Limits) -> list[tuple[eq.Expr, float]]:
        """The elements of a sum and their factors: those first that are made of another."""
        pairs = list(made.factors.items())
        if len(pairs) != 2:
            return pairs
        last = self.meaning(pairs[1][0], box)
        made_of = isinstance(last, eq.Apply) and pairs[0][0] in last.args
        return pairs[::-1] if made_of else pairs

    def _two_sums(self, made: Sum, box: Limits) -> bool:
        """Whether an expression is of two elements, both sums over indices."""
        terms = [self.meaning(atom, box) for atom in made.factors]
        return len(terms) == 2 and all(isinstance(t, eq.Reduce) and t.kind == "sum" for t in terms)

    def _either_way(
        self,
        expr: eq.Expr,
        factor: float,
        rest: Sum,
        most: float,
        box: Limits,
        facts: Facts,
        left: int,
    ) -> float:
        """No value of a sum with so many times the size of an expression is above this; nothing is
        said beyond `most`.
        """
        inner, found = self.whole(expr, box), -math.inf
        for sign in (factor, -factor):
            made = rest.plus(inner, sign)
            end = self.upper(made, box, facts, left)
            if left < _REPLACED and len(made.factors) == 2:
                end = min(end, self.together(made, box, facts, left))
            found = max(found, end)
            if found >= most:
                break
        return found

    def together(self, made: Sum, box: Limits, facts: Facts, left: int) -> float:  # noqa: ARG002
        """The same of sums over the same indices; nothing is known here."""
        return math.inf

    def _cased(self) -> bool:
        """Whether the proof under way, not one inside it, goes by cases."""
        return bool(self._by_case) and self._level == 1

    def rise(self, body: eq.Expr, others: Sequence[eq.Expr], up: bool, box: Limits) -> float:
        """How far an expression may go beyond the largest of some others, or below the least."""
        bound = others[0]
        for other in others[1:]:
            bound = eq.Apply("max" if up else "min", (other, bound))
        ends = ((body, 1.0), (bound, -1.0))
        made = Sum({})
        for expr, factor in ends:
            made = made.plus(self.whole(expr, box), factor if up else -factor)
        facts: Facts = {}
        # what functions give is known by relations before: a proof inside a proof has none
        parts = [part for part in eq.walk(body) if isinstance(part, eq.Apply) and _is_leaf(part)]
        known = [(p, self.value(p, box, facts)) for p in parts if eq.indices(p) <= box.keys()]
        self._by_case = tuple(others)

        def proof() -> float:
            self._left = _LOOKED_AT_BY_CASE
            return self.upper(made, box, facts, _REPLACED_BY_CASE) + made.error

        try:
            return self.aside(proof, known, box, facts)
        finally:
            self._by_case = ()

    # ---- what bounds an element

    def _bounds(
        self, atom: eq.Expr, below: bool, rest: Sum, box: Limits, facts: Facts
    ) -> Iterator[Sum]:
        """Sums that are no larger (`below`), or no less, than an element."""
        term = self.meaning(atom, box)
        if isinstance(term, eq.Apply):
            yield from self._bounds_of_apply(term, below, box, facts)
            if self._cased() and term.function in ("+", "-"):
                made = self._combined(term, box, facts, 0)
                if made is not None and len(made.factors) <= _ATOMS:
                    yield made
        elif isinstance(term, eq.Reduce):
            yield from self._bounds_of_reduction(term, below, rest, box, facts)

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
            inner = self.whole(term.args[0], box)
            yield inner
            yield Sum({}).plus(inner, -1.0)
        elif term.function in ("*", "/") and not self._cased():
            pairs = (term.args, term.args[::-1]) if term.function == "*" else (term.args,)
            for one, times in pairs:
                yield from self._scaled_bounds(term, one, times, below, box, facts)
        elif SCALARS[term.function].near is not None:
            yield from self._near(term, below, box, facts)
        elif term.function == "select":
            ends = [self.sum_of(arg, box, facts) for arg in term.args[1:]]
            for end, rest in (ends, ends[::-1]):
                gap = end.plus(rest, -1.0) if below else rest.plus(end, -1.0)
                if self.upper(gap, box, facts, 0) + gap.error <= 0:
                    yield end

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
            yield self.whole(term.args[0], box).plus(Sum({}, end, error))

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
            own = [self.whole(arg, box) for arg in term.args]
            yield own
            apart = [self.sum_of(arg, box, facts) for arg in term.args]
            if apart != own:
                yield apart
        elif term.function == "select":
            condition = self.value(term.args[0], box, facts)
            arms = zip((True, False), term.args[1:], strict=True)
            yield [self.whole(arm, box) for which, arm in arms if may(condition, which)]
        elif not self._cased():
            return
        elif term.function == "*":
            for one, other in (term.args, term.args[::-1]):
                times = self.value(one, box, facts)
                if times.finite and times.pieces and other in self._by_case:
                    whole = self.whole(other, box)
                    size = self.interval(term, box, facts).magnitude
                    error = 2 * self.own.row.unit * size + self.own.least
                    ends = (times.low, times.high)
                    yield [Sum({}, error=error).plus(whole, end) for end in ends]
        elif term.function == "+":
            parts = self.average(term, box, facts)
            if parts is not None:
                yield parts

    def average(self, expr: eq.Apply, box: Limits, facts: Facts) -> Sequence[Sum] | None:  # noqa: ARG002
        """Two sums between which a sum of two products lies; None where that is not known."""
        return None

    def _bounds_of_reduction(
        self, term: eq.Reduce, below: bool, rest: Sum, box: Limits, facts: Facts
    ) -> Iterator[Sum]:
        """Terms of a maximum, or of a sum where none is negative, that are elements of `rest`."""
        inner = self.inner_box(term, box)
        if inner is None or term.where is not None or term.body is None:
            return
        if term.kind == "sum":
            if not below or self.value(term.body, inner, {}).low < 0:
                return
        elif term.kind != ("max" if below else "min"):
            return
        free = {name: inner[name] for name, _ in term.binders}
        patterns = self.looks(term.body, inner)
        # an element that lies inside is itself, whatever is read outside
        patterns += tuple(replace(p, default=None) for p in patterns if has_default(p))
        first: dict[str, eq.Expr] = {name: eq.Const(0) for name in free}
        yield self.whole(settled(eq.substitute(term.body, first)), box)
        alike = anonymous(term)
        for other in rest.factors:
            its = self.meaning(other, box)
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
            for pattern, target in product(patterns, self.looks(other, box)):
                found: dict[str, eq.Expr] = {}
                if match(pattern, target, free, found) and self.stays(found, free, box):
                    yield Sum({other: 1.0})
                    if term.kind == "sum" and len(found) == len(free):
                        yield from self._with_others(other, term, inner, box, facts)
        if term.kind == "sum" or len(rest.factors) < 2:
            return
        parts = self.sum_of(term.body, inner, {}).factors
        for other, part in product(rest.factors, parts if len(parts) > 1 else ()):
            found = {}
            # a term that is a sum of elements of `rest`
            whole = match(part, other, free, found) and len(found) == len(free)
            if whole and self.stays(found, free, box):
                yield self.sum_of(settled(eq.substitute(term.body, found)), box, facts)

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


def _cancelling(rest: Sum, bound: Sum, factor: float) -> Iterator[float]:
    """How much of an element that stands in a sum `factor` times may be replaced by a bound, so
    that an element of this just cancels: of `2 x - y - z` one x by y, the other by z.
    """
    for other, times in bound.factors.items():
        part = -rest.factors.get(other, 0.0) / times
        if 0 < part / factor < 1:
            yield part


def _total(ends: list[float]) -> float:
    """A sum, no less than the exact one."""
    if any(abs(end) > 1e290 for end in ends):  # only the sum of very large numbers overflows
        return math.inf
    total = math.fsum(ends)  # of which the sign of what is left is exact too
    return math.nextafter(total, math.inf) if math.fsum((*ends, -total)) > 0 else total


def _is_leaf(expr: eq.Apply) -> bool:
    """Whether a function is not taken apart into a sum, or cases."""
    row = SCALARS[expr.function]
    return row.kind == "real" and row.arity == 1
