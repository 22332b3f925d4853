"""Sums of elements in which some cancel.

An expression is taken apart into elements of tensors; an element that stands in a sum may be
replaced by what bounds it, as a maximum by one of those that it is taken over.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import cast

from irlang import equations as eq
from irlang.interp.assumptions import Facts
from irlang.interp.elements import Sum
from irlang.interp.range_eval import Limits
from irlang.interp.singles import Singles
from irlang.interp.unfolding import instance
from irlang.scalar import SCALARS

ATOMS = 8  # elements of a sum
_DEPTH = 6  # definitions that are looked into, one behind another
_REPLACED = 3  # elements replaced by what bounds them
_LOOKED_AT_OF_TWO = 12  # sums, for one end of a sum of two elements, or for two in place of others
# Times, of two numbers of which one is hardly more than the other.
_ROUNDED = (1024, 128, 32, 16, 12)
_SLIGHT = 0.125  # of a number, by which another is hardly more
WHOLE = 2.0**53  # up to which whole numbers are numbers of double precision
_AT_LEAST = 1  # the same, for all elements of a sum as they stand
# the same of proofs by cases, and sums that they look at
_REPLACED_BY_CASE, _LOOKED_AT_BY_CASE = 8, 400


class Sums(Singles):
    """An evaluator that knows between which numbers a sum of elements lies."""

    _met_run = False  # whether a sum was of results of a recurrence
    _kept_runs = False  # whether these are not taken apart
    _comparing = False  # whether both terms of two sums are compared
    _apart = 0  # functions that were taken apart
    _by_share = False  # whether what rounding does is told as a share of a number, not as its most
    _by_case: tuple[eq.Expr, ...] = ()  # elements for which a proof goes by cases

    # ---- sums of elements

    def sum_of(self, expr: eq.Expr, box: Limits, facts: Facts, depth: int = _DEPTH) -> Sum:
        """An expression as a sum of elements; of one, itself, where it is nothing better.

        In a proof it is taken apart once, however many parts of it read it.
        """
        if not self._level:
            return self._sum_of(expr, box, facts, depth)
        key = "sum", self.here(expr, box, facts), depth, self._kept_runs
        found = self._proved.get(key)
        if found is not None:
            self._work += found[2]  # it costs as if it were taken apart again
            self._apart += found[2]
        else:
            met, self._met_run, before = self._met_run, False, self._apart
            made = self._sum_of(expr, box, facts, depth)
            found = made, self._met_run, self._apart - before, box, facts
            self._proved[key] = found
            self._met_run = met
        self._met_run = self._met_run or found[1]
        return cast("Sum", found[0])

    def _sum_of(self, expr: eq.Expr, box: Limits, facts: Facts, depth: int) -> Sum:
        """The same, found anew."""
        expr = self.started(expr, box)
        if self._equal is not None and expr == self._equal[0]:
            return Sum({self._equal[1]: 1.0})
        if isinstance(expr, (eq.Const, eq.Size)):
            return Sum({}, self.own.nearest(float(expr.value)))
        if isinstance(expr, eq.Read) and expr.default is None:
            return self._element(expr, box, facts, depth)
        if isinstance(expr, eq.Apply):
            made = self._combined(expr, box, facts, depth)
            if made is not None and len(made.factors) <= ATOMS:
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
        tensor = self.tensors[read.tensor]
        term = region.term
        if term is None and tensor.info.kind == "int":
            term = tensor.written
        if tensor.step is not None:
            self._met_run = True
            depth = 0 if self._kept_runs else depth
        if depth and isinstance(term, eq.Apply) and self.as_here(read.tensor):
            made = self._combined(instance(term, read), box, facts, depth - 1)
            # a reduction inside is known by its bounds only: the element as a whole is better
            if (
                made is not None
                and len(made.factors) <= ATOMS
                and not any(map(eq.reduces, made.factors))
            ):
                return made
        return Sum({read: 1.0})

    def _combined(self, expr: eq.Expr, box: Limits, facts: Facts, depth: int) -> Sum | None:
        """Sums, differences and multiples; None of anything else."""
        kind = self.kind(expr)
        if not isinstance(expr, eq.Apply) or kind == "bool":
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
        self._apart += 1
        size = self.interval(expr, box, facts)
        if not size.finite:
            return None
        if kind == "int":  # not rounded; what it is in double precision is
            return made if size.magnitude < WHOLE else None
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
        self._met_run = False
        made_ = self._combined(expr, box, facts, _DEPTH)
        met_run = self._met_run
        if made_ is not None and len(made_.factors) <= ATOMS:
            self._left = max(self._left, _AT_LEAST)  # whatever was tried before
            low = max(low, -self.upper(Sum({}).plus(made_, -1.0), box, facts) - made_.error)
            self._left = max(self._left, _AT_LEAST)
            high = min(high, self.upper(made_, box, facts) + made_.error)
        if met_run and low <= 0 <= high:  # the results of a recurrence as they are
            self._kept_runs = True
            made_ = self._combined(expr, box, facts, _DEPTH)
            self._kept_runs = False
            self._left = max(self._left, _LOOKED_AT_OF_TWO)  # whatever was tried before
            if made_ is not None and 1 < len(made_.factors) <= ATOMS:
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
        how = left, self._level, self._comparing, self._by_share
        terms = frozenset(made.factors.items()), made.constant, how
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
        best = added(ends)
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
        """The elements of a sum and their factors: those first that are made of another; of two
        maxima or minima that first which may be any of its arguments, as the others have to do.
        """
        pairs = list(made.factors.items())
        if len(pairs) != 2:
            return pairs
        first, last = (self.meaning(atom, box) for atom, _ in pairs)
        if not isinstance(last, eq.Apply):
            return pairs
        if isinstance(first, eq.Apply) and {first.function, last.function} <= {"max", "min"}:
            turned = last.function == ("max" if pairs[1][1] > 0 else "min")
        else:
            turned = pairs[0][0] in last.args
        return pairs[::-1] if turned else pairs

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
        """No value of a sum with so many times the size of an expression is above this, that taken
        apart or as it stands; nothing is said beyond `most`.
        """
        whole, apart = self.whole(expr, box), self.sum_of(expr, box, facts)
        before, best = self._left, math.inf
        for inner in (whole,) if apart == whole else (apart, whole):
            self._left, found = before, -math.inf
            for sign in (factor, -factor):
                made = rest.plus(inner, sign)
                if len(made.factors) > ATOMS:
                    return best
                end = self.upper(made, box, facts, left)
                if left < _REPLACED and len(made.factors) == 2:
                    end = min(end, self.together(made, box, facts, left))
                found = max(found, end + abs(factor) * inner.error)
                if found >= most:
                    break
            best = min(best, found)
        return best

    def rounded(
        self, other: eq.Expr, times: float, share: float, lost: float, box: Limits, below: bool
    ) -> Sum:
        """So many times an element, which may be off by a share of itself and by what is lost, as
        what is no larger (`below`), or no less.
        """
        size = self.interval(other, box, {})
        if self._by_share and size.low >= 0:
            off = -abs(times) * share if below else abs(times) * share
            return Sum({other: times + off}, error=lost)
        return Sum({other: times}, error=abs(times) * share * size.magnitude + lost)

    def times_at_most(self, one: eq.Expr, other: eq.Expr, box: Limits, facts: Facts) -> float:
        """How many times another expression one is at most, hardly more than once; infinite where
        that is not known. However small both are, rounding counts as a share of them.
        """
        best = math.inf
        before, self._by_share = self._by_share, True
        try:
            for often in _ROUNDED:
                share = self.own.changed_by(often)
                if share >= _SLIGHT:
                    continue
                gap = self.whole(one, box).plus(self.whole(other, box), -(1 + share))
                self._left = max(self._left, _LOOKED_AT_OF_TWO)  # whatever was tried before
                if self.upper(gap, box, facts) + gap.error > 0:
                    break
                best = (1 + share) * (1 + 4 * self.own.row.unit)
        finally:
            self._by_share = before
        return best

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

    # ---- what bounds an element, as `bounds` and others tell

    def _bounds(
        self, atom: eq.Expr, below: bool, rest: Sum, box: Limits, facts: Facts
    ) -> Iterator[Sum]:
        """Sums that are no larger (`below`), or no less, than an element."""
        raise NotImplementedError

    def _cases(
        self, atom: eq.Expr, below: bool, box: Limits, facts: Facts
    ) -> Iterator[Sequence[Sum]]:
        """Sums of which one at least is no larger (`below`), or no less, than an element."""
        raise NotImplementedError


def _cancelling(rest: Sum, bound: Sum, factor: float) -> Iterator[float]:
    """How much of an element that stands in a sum `factor` times may be replaced by a bound, so
    that an element of this just cancels: of `2 x - y - z` one x by y, the other by z.
    """
    for other, times in bound.factors.items():
        part = -rest.factors.get(other, 0.0) / times
        if 0 < part / factor < 1:
            yield part


def added(ends: list[float]) -> float:
    """A sum, no less than the exact one."""
    if any(abs(end) > 1e290 for end in ends):  # only the sum of very large numbers overflows
        return math.inf
    total = math.fsum(ends)  # of which the sign of what is left is exact too
    return math.nextafter(total, math.inf) if math.fsum((*ends, -total)) > 0 else total


def _is_leaf(expr: eq.Apply) -> bool:
    """Whether a function is not taken apart into a sum, or cases."""
    row = SCALARS[expr.function]
    return row.kind == "real" and row.arity == 1
