"""Products with quotients in them: their sign where factors stand twice, and how they lie beside
the squares of the quotients.

`2 r a b` with a size of `r` below 1 is a share of `a^2 + b^2`, however large these are: so the
exponent of a normal law of two numbers that hang together does not change its sign. There
`a = x / s` and `b = y / t`, while the product is written `r x y / (s t)`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from irlang import equations as eq
from irlang.interp.assumptions import Facts
from irlang.interp.elements import Sum
from irlang.interp.range_eval import Limits
from irlang.interp.squares import Squares
from irlang.interp.unfolding import pinned

_SIGNED = ("*", "/")  # by both factors the sign of a result is told alike
_OPENED = 3  # products that are looked into, one inside another, for a sign
_DEEP = 4  # products and quotients that are looked into, one inside another
_FACTORS = 8  # of a product, those that it is divided by included


class Ratio(NamedTuple):
    """A product of some factors, divided by others."""

    tops: list[eq.Expr]
    bottoms: list[eq.Expr]


class Crossed(Squares):
    """An evaluator that looks at products of quotients."""

    def _sign(self, expr: eq.Expr, box: Limits) -> int:
        """1 or -1 for a product whose sign is known because factors stand in it twice; else 0.

        An element that stands there twice is one number, however it was rounded: what is left when
        such pairs are taken away is opened, level by level.
        """
        sign, single, paired = 1, [expr], False
        for _ in range(_OPENED + 1):
            left = self._without_twins(single, box)
            paired = paired or len(left) < len(single)
            opened = [self._factors(factor, box, 1, _SIGNED) for factor in left]
            sign *= math.prod(turn for turn, _ in opened)
            single = [part for _, parts in opened for part in parts]
            if single == left:
                break
        if not paired:
            return 0
        for factor in single:
            numbers = self.value(factor, box, {})
            if not numbers.finite or numbers.low < 0 < numbers.high:
                return 0
            sign = -sign if numbers.low < 0 else sign
        return sign

    def _without_twins(self, factors: Sequence[eq.Expr], box: Limits) -> list[eq.Expr]:
        """Some factors without those that stand among them twice."""
        single: list[eq.Expr] = []
        for factor in factors:
            looks = self._nameless(factor, box)
            twin = next((o for o in single if looks & self._nameless(o, box)), None)
            if twin is None:
                single.append(factor)
            else:
                single.remove(twin)
        return single

    def _nameless(self, expr: eq.Expr, box: Limits) -> frozenset[eq.Expr]:
        """The ways in which an element may be written that tell its sign, whatever it was rounded
        to: sums over the same terms may be on either side of 0, as each has its own order.
        """
        looks = (pinned(look, box) for look in self.looks(expr, box))
        return frozenset(one for one in looks if not any(map(_adds_up, eq.walk(one))))

    def _bounds(
        self, atom: eq.Expr, below: bool, rest: Sum, box: Limits, facts: Facts
    ) -> Iterator[Sum]:
        """Sums that are no larger (`below`), or no less, than an element."""
        yield from super()._bounds(atom, below, rest, box, facts)
        term = self.meaning(atom, box)
        if isinstance(term, eq.Apply) and term.function in ("*", "/"):
            yield from self._by_squared_quotients(term, below, rest, box)

    def _by_squared_quotients(
        self, term: eq.Apply, below: bool, rest: Sum, box: Limits
    ) -> Iterator[Sum]:
        """Half the squares of two quotients that it is a multiple of, or the sum of both, where
        that is in `rest`; as often as what is left of the product is large.
        """
        whole = self._ratio(term, box)
        if not whole.bottoms or len(whole.tops) + len(whole.bottoms) > _FACTORS:
            return
        sizes = [self.interval(one, box, {}) for one in (*whole.tops, *whole.bottoms)]
        if any(size.empty or not size.finite for size in sizes):
            return
        if any(size.holds(0.0) for size in sizes[len(whole.tops) :]):
            return
        for (holder, one), (other, its) in combinations(self._squares_in(rest, box), 2):
            left = self._without(whole, one, box)
            left = None if left is None else self._without(left, its, box)
            if left is None:
                continue
            apart = self._size(left, box)
            # every operation rounds once, in whatever order they are done
            many = 2 * (len(whole.tops) + len(whole.bottoms)) + 8
            share = 0.5 * apart * (1 + 2 * many * self.own.row.unit)
            lost = many * self.own.least * self._largest(whole, box)
            if 0 < share < math.inf and math.isfinite(lost):
                half = -share if below else share
                bound = Sum({holder: half}, error=lost)
                yield bound if holder == other else bound.plus(Sum({other: 1.0}), half)

    def _squares_in(self, rest: Sum, box: Limits) -> list[tuple[eq.Expr, Ratio]]:
        """What is squared in the elements of a sum, and which element that is or is a term of."""
        found = []
        for holder in rest.factors:
            terms = [holder]
            look = self.meaning(holder, box)
            added = look.args if isinstance(look, eq.Apply) and look.function == "+" else ()
            if added and all(self.interval(arg, box, {}).low >= 0 for arg in added):
                terms = list(added)
            for term in terms:
                base = self.square_of(term, box)
                if base is not None:
                    found.append((holder, self._ratio(base, box)))
        return found

    def _ratio(self, expr: eq.Expr, box: Limits, depth: int = _DEEP, below: bool = False) -> Ratio:
        """The factors of a product and those that it is divided by, but for its sign. below:
        whether something is divided by it: then it is opened where all its digits are kept alone,
        as what is lost of a product next to 0 changes a quotient by as much as there is.
        """
        term = self.meaning(expr, box) if depth else expr
        if isinstance(term, eq.Apply) and depth:
            if term.function == "neg":
                return self._ratio(term.args[0], box, depth - 1, below)
            if term.function in ("*", "/") and not (below and self._loses_digits(expr, box)):
                divides = term.function == "/"
                one = self._ratio(term.args[0], box, depth - 1, below)
                other = self._ratio(term.args[1], box, depth - 1, below or divides)
                if divides:
                    other = Ratio(other.bottoms, other.tops)
                return Ratio(one.tops + other.tops, one.bottoms + other.bottoms)
        return Ratio([expr], [])

    def _loses_digits(self, expr: eq.Expr, box: Limits) -> bool:
        """Whether an element may be so near 0 that its type has fewer digits for it."""
        ends = self.interval(expr, box, {})
        return ends.empty or max(ends.low, -ends.high) < self.own.row.tiny

    def _without(self, whole: Ratio, part: Ratio, box: Limits) -> Ratio | None:
        """What is left of a product without the factors of another; None where it has not all."""
        tops = self._less(whole.tops, part.tops, box)
        bottoms = self._less(whole.bottoms, part.bottoms, box)
        return None if tops is None or bottoms is None else Ratio(tops, bottoms)

    def _less(
        self, every: Sequence[eq.Expr], some: Sequence[eq.Expr], box: Limits
    ) -> list[eq.Expr] | None:
        left = list(every)
        for one in some:
            looks = self.looks(one, box)
            twin = next((o for o in left if any(a in looks for a in self.looks(o, box))), None)
            if twin is None:
                return None
            left.remove(twin)
        return left

    def _size(self, ratio: Ratio, box: Limits) -> float:
        """How large a product is at most, whatever its sign; no divisor is 0."""
        size = 1.0
        for one in ratio.tops:
            size *= self.interval(one, box, {}).magnitude
        for one in ratio.bottoms:
            ends = self.interval(one, box, {})
            size /= min(abs(ends.low), abs(ends.high))
        return size

    def _largest(self, ratio: Ratio, box: Limits) -> float:
        """How much any part of a product may multiply what was lost next to 0."""
        parts = [Ratio([one], []) for one in ratio.tops]
        parts += [Ratio([], [one]) for one in ratio.bottoms]
        return math.prod(max(self._size(part, box), 1.0) for part in parts)


def _adds_up(part: eq.Expr) -> bool:
    """Whether an expression is rounded as often as there are terms, in an order that none tells."""
    return isinstance(part, eq.Reduce) and part.kind in ("sum", "prod")
