"""Squares that add up to 1: those of two functions of one argument, as of its sine and cosine."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from irlang import equations as eq
from irlang.interp.areas import Areas
from irlang.interp.assumptions import Facts
from irlang.interp.elements import Sum
from irlang.interp.polynomials import Element, Over
from irlang.interp.range_eval import Limits
from irlang.interp.unfolding import settled
from irlang.scalar import SCALARS

_TERMS = 2  # of a sum over an index
_FACTORS = 3  # products that are looked into, one inside another


@dataclass(frozen=True, slots=True)
class Pair:
    """A function of two numbers, multiplied, and by nothing that is more than 1. positive: nor by
    anything that is less than 0.
    """

    function: str
    args: tuple[eq.Expr, eq.Expr]
    positive: bool


class Circles(Areas):
    """An evaluator that knows which squares add up to 1."""

    def off_circle(self, terms: Sequence[eq.Expr], box: Limits) -> float | None:
        """How far from 1 a sum of two terms may be, where they are such squares."""
        if len(terms) != _TERMS:
            return None
        bases = [self.square_of(term, box) for term in terms]
        looks = [self.looks(base, box) if base is not None else () for base in bases]
        for one, other in product(*looks):
            if not (isinstance(one, eq.Apply) and isinstance(other, eq.Apply)):
                continue
            row = SCALARS[one.function]
            if not row.circle or row.circle != other.function:
                continue
            if not set(self.copies(one.args[0], box)) & set(self.copies(other.args[0], box)):
                continue
            ulps = max(row.ulps, SCALARS[other.function].ulps)
            off = 2 * (ulps + 1) * self.own.row.unit * max(1.0, row.least)
            # each square is that of a number so far off, both squares and their sum are rounded
            return 2 * off * (2 + off) + 8 * self.own.row.unit + 4 * self.own.least
        return None

    def both_zero(self, one: eq.Expr, other: eq.Expr, box: Limits) -> bool:
        """Whether two expressions may be 0 at once: a sine and a cosine of one number are not."""
        off = self.off_circle([eq.Apply("sq", (base,)) for base in (one, other)], box)
        return (off is None or off >= 1) and super().both_zero(one, other, box)

    def in_one_row(self, elements: Collection[Element], box: Limits) -> float:
        """What the sum of the squares of some elements is at most, also where each two of them are
        a sine and a cosine of one argument.
        """
        found = super().in_one_row(elements, box)
        left = [one for one in elements if not isinstance(one, Over)]
        if found or len(left) < max(len(elements), _TERMS) or len(left) % _TERMS:
            return found
        most = 0.0
        while left:
            one = eq.Apply("sq", (left.pop(),))
            offs = (
                (other, self.off_circle((one, eq.Apply("sq", (other,))), box)) for other in left
            )
            met = next(((other, off) for other, off in offs if off is not None), None)
            if met is None:
                return 0.0
            left.remove(met[0])
            most += 1 + met[1]
        return most

    def _bounds(
        self, atom: eq.Expr, below: bool, rest: Sum, box: Limits, facts: Facts
    ) -> Iterator[Sum]:
        """Sums that are no larger (`below`), or no less, than an element: what a square leaves of
        1, for another, or for one times what is 1 at most.
        """
        yield from super()._bounds(atom, below, rest, box, facts)
        yield from self._by_two_circles(atom, below, rest, box, facts)
        base = None if below or not rest.factors else self.square_of(atom, box)
        look = None if base is None else self.meaning(base, box)
        if base is None or look is None:
            return
        parts = [base]
        if isinstance(look, eq.Apply) and look.function == "*":
            for one, other in (look.args, look.args[::-1]):
                if self.interval(other, box, facts).magnitude <= 1:
                    parts.append(one)
        for other, part in product(rest.factors, parts):
            if self.square_of(other, box) is None:
                continue
            off = self.off_circle((eq.Apply("sq", (part,)), other), box)
            if off is not None:
                yield Sum({other: -1.0}, 1.0, off)

    def _by_two_circles(
        self, atom: eq.Expr, below: bool, rest: Sum, box: Limits, facts: Facts
    ) -> Iterator[Sum]:
        """What a product of two sines, or two cosines, leaves of 1 for that of the others of both
        numbers; and what it leaves for the square of the sine of half of their difference, as
        `cos(a) cos(b)` is half of `cos(a - b) + cos(a + b)`, and of sines half of the difference.
        """
        for pair in self._pairs_of_circle(atom, box, facts):
            row = SCALARS[pair.function]
            other_row = SCALARS[row.circle]
            ulps = max(row.ulps, other_row.ulps)
            off = 2 * (ulps + 1) * self.own.row.unit * max(1.0, row.least, other_row.least)
            # two products of two numbers that are so far off, and all that is rounded beyond that
            off = 4 * off * (2 + off) + 16 * self.own.row.unit + 8 * self.own.least
            for other in rest.factors:
                for its in self._pairs_of_circle(other, box, facts):
                    if its.function == row.circle and self._same_two(pair.args, its.args, box):
                        for sign in (1.0, -1.0):
                            yield Sum({other: sign}, -1.0 if below else 1.0, off)
                if below or not pair.positive:
                    continue
                apart = self._of_half_difference(other, pair, box, facts)
                if apart < 1:
                    yield Sum({other: -1.0}, 1.0, off + 2 * apart)

    def _pairs_of_circle(self, expr: eq.Expr, box: Limits, facts: Facts) -> Iterator[Pair]:
        """Two sines or cosines in a product of which all other factors are no more than 1."""
        term = self.meaning(expr, box)
        if not isinstance(term, eq.Apply) or term.function != "*":
            return
        sign, factors = self._factors(expr, box, _FACTORS)
        looks = [self.meaning(one, box) for one in factors]
        met = [
            (at, one)
            for at, one in enumerate(looks)
            if isinstance(one, eq.Apply) and SCALARS[one.function].circle
        ]
        for (at, one), (place, other) in combinations(met, 2):
            if one.function != other.function:
                continue
            rest = [factors[i] for i in range(len(factors)) if i not in (at, place)]
            sizes = [self.interval(part, box, facts) for part in rest]
            if all(size.finite and size.magnitude <= 1 for size in sizes):
                positive = sign > 0 and all(size.low >= 0 for size in sizes)
                yield Pair(one.function, (one.args[0], other.args[0]), positive)

    def _same_two(self, ones: Sequence[eq.Expr], others: Sequence[eq.Expr], box: Limits) -> bool:
        """Whether two numbers are two others, in either order."""
        return any(
            all(
                set(self.copies(one, box)) & set(self.copies(other, box))
                for one, other in zip(ones, turned, strict=True)
            )
            for turned in (others, others[::-1])
        )

    def _of_half_difference(self, expr: eq.Expr, pair: Pair, box: Limits, facts: Facts) -> float:
        """How far a number may be from half of the difference of two, where an expression is the
        square of its sine; 1 where it is none.
        """
        base = self.square_of(expr, box)
        look = None if base is None else self.meaning(base, box)
        if not isinstance(look, eq.Apply) or len(look.args) != 1:
            return 1.0
        row = SCALARS[look.function]
        if not row.circle or float(row.numpy(0.0)):
            return 1.0
        half, one, other = (self.sum_of(arg, box, facts) for arg in (look.args[0], *pair.args))
        for sign in (0.5, -0.5):
            left = half.plus(one, sign).plus(other, -sign)
            if not left.factors and not left.constant:
                return left.error
        return 1.0

    def terms_of(self, expr: eq.Reduce, inner: Limits) -> list[eq.Expr]:
        """The terms of a sum over one index of few numbers, one by one; of others none."""
        if len(expr.binders) != 1 or expr.body is None or expr.where is not None:
            return []
        name = expr.binders[0][0]
        if inner[name][1] + 1 != _TERMS:
            return []
        body = expr.body
        return [settled(eq.substitute(body, {name: eq.Const(at)})) for at in range(_TERMS)]
