"""Comparisons that rounding keeps: a number that is no more than another is no more when both are
rounded to a type, and no number of the type lies between a sum and what that is rounded to. Nor do
multiples and rising functions change the order of two numbers.

So a corner that lies beyond another stays there, and the union of two areas, less the part that
they share, is no less than this part, whatever is lost on the way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.interp.assumptions import Facts
from irlang.interp.elements import Sum
from irlang.interp.interval import Numbers, hull, join
from irlang.interp.range_eval import Limits
from irlang.interp.selected import Selected
from irlang.scalar import SCALARS
from irlang.scalar_row import Scalar

_ROUGH = 2.0**-40  # of functions and sums in double precision
_STEPS = 512  # into which the way of a function is cut
_SMALL = 2.0**-6  # what is no more than a guard of a divisor
_COMPARED = 2  # terms that were added to the one of two numbers and not to the other
_LOOKED_AT = 32  # sums, where two elements are compared before the last rounding
_LOOKED_AT_ALIKE = 12  # where both are rounded sums
_LOOKED_AT_OF_TWO = 4  # where both terms of two sums are


class Monotone(Selected):
    """An evaluator that compares sums and differences that are rounded."""

    _pairs: dict[Any, tuple[bool, Limits, Facts]]

    def forget(self) -> None:
        """Tensors have become others: sums are compared anew."""
        super().forget()
        self._pairs = {}

    def _bounds(
        self, atom: eq.Expr, below: bool, rest: Sum, box: Limits, facts: Facts
    ) -> Iterator[Sum]:
        """Sums that are no larger (`below`), or no less, than an element."""
        yield from super()._bounds(atom, below, rest, box, facts)
        yield from self._by_condition(atom, below, box, facts)
        term = self.meaning(atom, box)
        if not isinstance(term, eq.Apply):
            return
        if term.function in ("+", "-"):
            yield from self._moved(term, below, box, facts)
            yield from self._shifted(term, below, rest, box, facts)
        elif term.function in ("*", "/"):
            yield from self._stretched(term, below, rest, box, facts)
            yield from self._drawn(term, below, box, facts)
        elif len(term.args) == 1:
            yield from self._mapped(term, below, rest, box, facts)

    def _by_condition(self, atom: eq.Expr, below: bool, box: Limits, facts: Facts) -> Iterator[Sum]:
        """What a condition that holds here says is no larger than an element, or no less."""
        for gap, numbers in facts.items() if not self.own.flush else ():
            if not isinstance(gap, eq.Apply) or gap.function != "-" or not numbers.low >= 0:
                continue
            largest, least = gap.args
            own, other = (largest, least) if below else (least, largest)
            if atom in self.copies(own, box) or own in self.copies(atom, box):
                yield self.whole(other, box)

    def together(self, made: Sum, box: Limits, facts: Facts, left: int) -> float:
        """No value of a sum of two elements is above this, by what is rounded to one of them."""
        best = super().together(made, box, facts, left)
        if len(made.factors) == 2 and best > made.constant and not self.own.flush:
            aside = self._on_one_side(made, box, facts) or self._rounded_alike(made, box, facts)
            best = made.constant if aside else best
        return best

    def _rounded_alike(self, made: Sum, box: Limits, facts: Facts) -> bool:
        """Whether one of two elements is no more than the other because both are sums of two terms,
        rounded once, and the one exact sum is no more than the other.
        """
        if self._comparing or any(abs(factor) != 1 for factor in made.factors.values()):
            return False
        exact = Sum({})
        for atom, factor in made.factors.items():
            term = self.meaning(atom, box)
            if not isinstance(term, eq.Apply) or term.function not in ("+", "-"):
                return False
            signs = 1.0, 1.0 if term.function == "+" else -1.0
            for arg, sign in zip(term.args, signs, strict=True):
                only = self.remembered(arg, box, facts).only
                one = self.whole(self._original(arg, box, facts), box)
                exact = exact.plus(one if only is None else Sum({}, float(only)), factor * sign)
        before, self._left, self._comparing = self._left, _LOOKED_AT_ALIKE, True
        try:
            return self.upper(exact, box, facts, _COMPARED) + exact.error <= 0
        finally:
            self._left, self._comparing = before, False

    def _on_one_side(self, made: Sum, box: Limits, facts: Facts) -> bool:
        """Whether one of two elements, times a power of two, is no more than the other because it
        was so before that was rounded, or the other way round: rounding to a type passes no number
        of the type.
        """
        pairs = list(made.factors.items())
        for (atom, factor), (other, many) in (pairs, pairs[::-1]):
            term = self.meaning(atom, box)
            if not isinstance(term, eq.Apply) or term.function not in ("+", "-"):
                continue
            if abs(factor) != 1 or factor * many > 0:
                continue
            if not self._is_number(other, many, box, facts):
                continue
            exact = Sum({other: many})
            signs = 1.0, 1.0 if term.function == "+" else -1.0
            for arg, sign in zip(term.args, signs, strict=True):
                times = factor * sign
                exact = exact.plus(self._as_bound(arg, times < 0, box, facts), times)
            before, self._left = self._left, _LOOKED_AT
            try:
                if self.upper(exact, box, facts) + exact.error <= 0:
                    return True
            finally:
                self._left = before
        return False

    def _as_bound(self, expr: eq.Expr, below: bool, box: Limits, facts: Facts) -> Sum:
        """A term of a sum as one element; of a small number less an element the opposite of that,
        where that is a bound: so an optimiser writes a sum to which the number is added at last.
        """
        only = self.remembered(expr, box, facts).only
        if only is not None:
            return Sum({}, float(only))
        look = self.meaning(expr, box)
        if isinstance(look, eq.Apply) and look.function == "-":
            first = self.remembered(look.args[0], box, facts).only
            if first is not None and (0 <= first < _SMALL if below else -_SMALL < first <= 0):
                return Sum({}).plus(self.whole(look.args[1], box), -1.0)
        return self.whole(expr, box)

    def _is_number(self, expr: eq.Expr, times: float, box: Limits, facts: Facts) -> bool:
        """Whether the type has so many times an element."""
        if not isinstance(expr, eq.Read) or self.infos[expr.tensor].dtype != self.own.row.name:
            return False
        size = self.interval(expr, box, facts)
        whole = abs(times) >= 1 and math.frexp(times)[0] in (0.5, -0.5)
        return whole and size.finite and abs(times) * size.magnitude <= self.own.largest

    def _moved(
        self, term: eq.Apply, below: bool, box: Limits, facts: Facts, both: bool = False
    ) -> Iterator[Sum]:
        """One of two terms, where what is added to it, or taken from it, moves it one way only:
        rounding is monotone, so that adding what is not negative lowers none. both: whether minus
        what is taken away is a term as well.
        """
        taken = term.function == "-"
        pairs = ((term.args, False), (term.args[::-1], taken))
        for (one, other), turned in pairs[: 2 if both or not taken else 1]:
            moves = self.value(other, box, {})
            if not moves.finite or moves.low < 0 < moves.high:
                moves = self._looked_at(other, moves, box)
            if not (moves.finite and moves.pieces):
                continue
            by = (moves.low, moves.high)
            if taken and not turned:
                by = (-moves.high, -moves.low)
            least = float(by[0] if below else -by[1])
            if least >= 0:
                # nor does it move one by less than it is, but for that rounding
                size = self.interval(one, box, facts).magnitude + least
                error = self.own.row.unit * size + self.own.least
                change = (least if below else -least, error) if least > error else (0.0, 0.0)
                yield Sum({}, *change).plus(self._turned(one, box), -1.0 if turned else 1.0)

    def _drawn(self, term: eq.Apply, below: bool, box: Limits, facts: Facts) -> Iterator[Sum]:
        """Multiples of what bounds a sum or difference that an element is so many times, as of one
        number less another: a step of so much from the one to the other does not go beyond it.
        """
        for one, times in (term.args, term.args[::-1])[: 2 if term.function == "*" else 1]:
            only, inner = self.remembered(times, box, facts).only, self.meaning(one, box)
            if only is None or not 0 < only < math.inf or not isinstance(inner, eq.Apply):
                continue
            by = float(only) if term.function == "*" else 1 / float(only)
            sum_ = inner.function in ("+", "-")
            for bound in self._moved(inner, below, box, facts, True) if sum_ else ():
                if len(bound.factors) != 1 or bound.constant or bound.error:
                    continue
                ((atom, sign),) = bound.factors.items()
                ends = self.interval(atom, box, facts)
                error = by * ends.magnitude * 2 * self.own.row.unit + self.own.least
                yield Sum({}, error=error).plus(bound, by)
                # nor, rounded, beyond the bound itself, where that is on the far side of 0
                far = ends.high <= 0 if below == (sign > 0) else ends.low >= 0
                if by <= 1 and abs(sign) == 1 and far:
                    yield bound

    def _turned(self, expr: eq.Expr, box: Limits) -> Sum:
        """An expression as one element, with no rounding; of its opposite, minus that."""
        term = self.meaning(expr, box)
        if isinstance(term, eq.Apply) and term.function == "neg":
            return Sum({}).plus(self.whole(term.args[0], box), -1.0)
        return self.whole(expr, box)

    def _looked_at(self, expr: eq.Expr, found: Numbers, box: Limits) -> Numbers:
        """What a reduction may be that an interval does not tell, as the logarithm of a sum that is
        1 at least.
        """
        return self.anew(expr, box) if eq.reduces(expr) else found

    def _shifted(
        self, term: eq.Apply, below: bool, rest: Sum, box: Limits, facts: Facts
    ) -> Iterator[Sum]:
        """Elements of `rest` that are the same sum with a first term that is smaller, or larger, or
        a sum of which this holds for both terms, or a difference of which it holds, the other way
        round, for what is taken away; and the opposites of such differences.
        """
        for other in rest.factors:
            look = self.meaning(other, box)
            if not isinstance(look, eq.Apply) or look.function != term.function or look == term:
                continue
            if term.function == "-" and self._opposite_no_less(term, look, below, box, facts):
                yield Sum({other: -1.0})
                continue
            first, second = zip(term.args, look.args, strict=True)
            same = set(self.copies(second[0], box)) & set(self.copies(second[1], box))
            if term.function == "+" and not same:
                both = self._both_no_less((first, second), below, box, facts)
                yield from [Sum({other: 1.0})] * both
                continue
            if not same and not self._no_less(second, not below, box, facts):
                continue
            if self._no_less(first, below, box, facts):
                yield Sum({other: 1.0})

    def _opposite_no_less(
        self, term: eq.Apply, look: eq.Apply, below: bool, box: Limits, facts: Facts
    ) -> bool:
        """Whether a difference is no less, or no more, than another the other way round: what is
        taken away may be exchanged, as rounding does not hang on the sign.
        """
        if self._comparing:
            return False
        (one, taken), (its_taken, other) = term.args, look.args
        pairs = ((one, other), (its_taken, taken))
        return self._both_no_less(pairs, below, box, facts)

    def _stretched(
        self, term: eq.Apply, below: bool, rest: Sum, box: Limits, facts: Facts
    ) -> Iterator[Sum]:
        """Elements of `rest` that are the same multiple of a number that is smaller, or larger, or
        a number divided by one that is larger, or smaller.
        """
        for other in rest.factors:
            look = self.meaning(other, box)
            if not isinstance(look, eq.Apply) or look.function != term.function or look == term:
                continue
            if term.function == "/" and self._divided(term, look, below, box, facts):
                yield Sum({other: 1.0})
                continue
            turns = (False, True) if term.function == "*" else (False,)
            for own, its in product(turns, turns):
                (one, times), (same, its_times) = (
                    args[::-1] if turned else args
                    for args, turned in ((term.args, own), (look.args, its))
                )
                if not set(self.copies(times, box)) & set(self.copies(its_times, box)):
                    continue
                size = self.interval(times, box, facts)
                positive = size.low >= 0
                if size.empty or not (positive or size.high <= 0):
                    continue
                if self._no_less((one, same), below == positive, box, facts):
                    yield Sum({other: 1.0})
                    break

    def _divided(
        self, term: eq.Apply, look: eq.Apply, below: bool, box: Limits, facts: Facts
    ) -> bool:
        """Whether a quotient is no less, or no more, than another of the same dividend, as its
        divisor is no more, or no less; both have one sign.
        """
        if not set(self.copies(term.args[0], box)) & set(self.copies(look.args[0], box)):
            return False
        top, *divisors = (
            self.interval(one, box, facts) for one in (term.args[0], term.args[1], look.args[1])
        )
        ends = join(*divisors)
        if top.empty or ends.empty or not (ends.low > 0 or ends.high < 0):
            return False
        if not (top.low >= 0 or top.high <= 0):
            return False
        return self._no_less((term.args[1], look.args[1]), below != (top.low >= 0), box, facts)

    def _mapped(
        self, term: eq.Apply, below: bool, rest: Sum, box: Limits, facts: Facts
    ) -> Iterator[Sum]:
        """Elements of `rest` that are the same function of a number that is smaller, or larger,
        where it rises, or falls, all the way between both.
        """
        row = SCALARS[term.function]
        known = row.monotone is not None and row.kind in ("real", "same")
        for other in rest.factors if known and self.kind(term) == "real" else ():
            look = self.meaning(other, box)
            if not isinstance(look, eq.Apply) or look.function != term.function or look == term:
                continue
            args = [self.interval(one.args[0], box, facts) for one in (term, look)]
            way = hull(join(*args))
            if not (way.finite and way.pieces):
                continue
            if any(way.low < turn < way.high for turn in row.monotone or ()):
                continue
            values, _ = self.own.apply(row.name, [way], "real")
            if not values.finite:  # a pole, or the end of the domain
                continue
            first, last = (float(row.numpy(np.float64(end))) for end in (way.low, way.high))
            pair, rising = (term.args[0], look.args[0]), first <= last
            if self._no_less(pair, below == rising, box, facts):
                largest = max(values.magnitude, row.least)
                lost = 4 * (row.ulps + 1) * self.own.row.unit * largest + 2 * self.own.least
                # above half a unit it need not be monotone once it is rounded
                yield Sum({other: 1.0}, error=lost if row.ulps > 0.5 else 0.0)
                gap = self._least_gap(pair, below == rising, box, facts)
                less, more = args[::-1] if below == rising else args
                change = _least_change(row, less, more, gap)
                if change > lost:
                    yield Sum({other: 1.0}, change if below else -change, lost)

    def _least_gap(self, pair: Sequence[eq.Expr], below: bool, box: Limits, facts: Facts) -> float:
        """By how much the first of two numbers is larger at least; or smaller, not `below`."""
        own, its = (self.sum_of(one, box, facts) for one in pair)
        gap = its.plus(own, -1.0) if below else own.plus(its, -1.0)
        return -self.upper(gap, box, facts, _COMPARED) - gap.error

    def _both_no_less(
        self, pairs: Sequence[Sequence[eq.Expr]], below: bool, box: Limits, facts: Facts
    ) -> bool:
        """The same of two pairs, with sums to look at of its own; not inside itself, and once."""
        if self._comparing:
            return False
        key = self.here((*pairs, below), box, facts)
        if key not in self._pairs:  # what the ids are of is kept too, so that they stay its own
            self._pairs[key] = self._compared_both(pairs, below, box, facts), box, facts
        return self._pairs[key][0]

    def _compared_both(
        self, pairs: Sequence[Sequence[eq.Expr]], below: bool, box: Limits, facts: Facts
    ) -> bool:
        before, self._comparing = self._left, True
        try:
            for pair in pairs:
                self._left = _LOOKED_AT_OF_TWO
                if not self._no_less(pair, below, box, facts):
                    return False
            return True
        finally:
            self._left, self._comparing = before, False

    def _no_less(self, pair: Sequence[eq.Expr], below: bool, box: Limits, facts: Facts) -> bool:
        """Whether the first of two numbers is no less than the second; or no more, not `below`."""
        own, its = (self.whole(self._original(one, box, facts), box) for one in pair)
        gap = its.plus(own, -1.0) if below else own.plus(its, -1.0)
        return self.upper(gap, box, facts, _COMPARED) <= 0


def _least_change(row: Scalar, less: Numbers, more: Numbers, gap: float) -> float:
    """By how much a function that rises, or falls, all the way differs at two numbers, of which one
    is larger by a gap at least: as much as it does from the smaller to what is so much further, and
    from what is so much before the larger to that.
    """
    gap -= _ROUGH * (less.magnitude + more.magnitude)  # sums of both are rounded
    if not 0 < gap < math.inf or less.empty or more.empty:
        return 0.0
    # every number is told from its own end: a gap that is far larger than it would swallow it
    less_ends = less.low, min(less.high, more.high - gap)
    more_ends = max(more.low, less.low + gap), more.high
    return max(_change(row, *less_ends, gap), _change(row, *more_ends, -gap))


def _change(row: Scalar, low: float, high: float, gap: float) -> float:
    """By how much it changes at least from a number between two ends to what is a gap further, or
    so much before it: in each of small steps, from its one end to what lies so far from the other.
    """
    step = (high - low) / _STEPS
    if not 0 <= step < abs(gap):
        return 0.0
    at = np.linspace(low, high, _STEPS + 1)
    first, last = (at[:-1], at[1:]) if gap > 0 else (at[1:], at[:-1])
    values = row.numpy(np.append(first + gap, last))
    change = np.abs(values[:_STEPS] - values[_STEPS:])
    return float(change.min()) * (1 - _ROUGH) - _ROUGH * float(np.abs(values).max())
