"""Sums of products that have a factor in common, and products of several factors.

`x * s - m * s` is `(x - m) * s`, and `x * (s * g)` is `(x * s) * g`, but for rounding: so a batch
norm is written in graphs of TensorFlow, whose `s` is the reciprocal of the deviation and `g` a
weight. What is known of a number over its deviation is known of these.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

from irlang import equations as eq
from irlang.interp.assumptions import Facts
from irlang.interp.averages import Averages
from irlang.interp.elements import Sum
from irlang.interp.interval import Numbers
from irlang.interp.range_eval import Limits

_OPENED = 2  # products that are looked into, one inside another
_FACTORS = 4  # of a product that is put together otherwise
_SHARED = "terms have a factor in common"
_PAIR = "two of several factors are known together"


class Factored(Averages):
    """An evaluator that puts products together otherwise than they are written."""

    def by_pairs(self, expr: eq.Apply, found: Numbers, box: Limits) -> Numbers:
        """A product of several factors, of which one is a reciprocal, less what is beyond another
        one divided so, times the rest.
        """
        _, factors = self._factors(expr, box, _OPENED)
        if not 3 <= len(factors) <= _FACTORS:
            return found
        sizes = [self.interval(one, box, {}).magnitude for one in factors]
        lost = self._lost_in_product(factors, box)
        if not math.isfinite(lost):
            return found
        for at, factor in enumerate(factors):
            if self.divisor_of(factor, box) is None:
                continue
            for other, number in enumerate(factors):
                if other == at or self.divisor_of(number, box) is not None:
                    continue
                pair = self.anew(eq.Apply("*", (number, factor)), box).magnitude
                rest = (size for i, size in enumerate(sizes) if i not in (at, other))
                end = pair * math.prod(rest) * (1 + self.own.changed_by(8)) + lost
                if end < found.magnitude:
                    found = self.cut(found, -end, end, _PAIR)
        return found

    def by_shared_factor(
        self, expr: eq.Apply, found: Numbers, box: Limits, facts: Facts
    ) -> Numbers:
        """A sum of which two terms are products with a factor in common."""
        made = self.sum_of(expr, box, facts)
        for (one, times), (other, by) in combinations(made.factors.items(), 2):
            if abs(times) != abs(by):
                continue
            size = sum(self.interval(atom, box, facts).magnitude for atom in (one, other))
            if not math.isfinite(size):
                continue
            for product, rounded, lost in self._as_one(one, other, times * by > 0, box):
                numbers = self.anew(product, box)
                if not numbers.finite or numbers.empty or numbers.magnitude >= size:
                    continue
                error = self.own.changed_by(rounded) * size
                error += self.own.changed_by(_FACTORS + 4) * numbers.magnitude
                error = abs(times) * (error + lost) + made.error
                ends = [abs(times) * end for end in (numbers.low, numbers.high)]
                low, high = ends if times > 0 else (-ends[1], -ends[0])
                rest = {a: f for a, f in made.factors.items() if a not in (one, other)}
                above = self.upper(Sum(rest, made.constant), box, facts, 1)
                below = self.upper(Sum({}).plus(Sum(rest, made.constant), -1.0), box, facts, 1)
                found = self.cut(found, low - below - error, high + above + error, _SHARED)
        return found

    def _as_one(
        self, one: eq.Expr, other: eq.Expr, added: bool, box: Limits
    ) -> Iterator[tuple[eq.Expr, int, float]]:
        """The sum or difference of two products as a product with the factor that both have, how
        often either of them is rounded, and what may be lost of both by denormal numbers.
        """
        for depth in range(1, _OPENED + 1):
            (sign, left), (turn, right) = (self._factors(atom, box, depth) for atom in (one, other))
            own, shared, kept = self._in_common(left, right, box)
            if not (own and shared and kept) or max(len(left), len(right)) > _FACTORS:
                continue
            function = "+" if added == (sign == turn) else "-"
            made: eq.Expr = eq.Apply(function, (_product(own), _product(kept)))
            made = _product([made, *shared])
            lost = self._lost_in_product(left, box) + self._lost_in_product(right, box)
            if math.isfinite(lost):
                made = made if sign > 0 else eq.Apply("neg", (made,))
                yield made, max(len(left), len(right)) - 1, lost

    def _lost_in_product(self, factors: Sequence[eq.Expr], box: Limits) -> float:
        """How far products of some of several factors that are rounded to a denormal number, or to
        0, take the product of all from what it is, in any order: as far as the others make of it.
        """
        sizes = (self.interval(one, box, {}).magnitude for one in factors)
        return 8 * self.own.least * math.prod(max(size, 1.0) for size in sizes)

    def _in_common(
        self, left: list[eq.Expr], right: list[eq.Expr], box: Limits
    ) -> tuple[list[eq.Expr], list[eq.Expr], list[eq.Expr]]:
        """The factors of one product alone, of both, and of the other alone."""
        own, shared, kept = list[eq.Expr](), list[eq.Expr](), list(right)
        for factor in left:
            looks = self.looks(factor, box)
            twin = next((k for k in kept if any(a in looks for a in self.looks(k, box))), None)
            if twin is None:
                own.append(factor)
            else:
                shared.append(factor)
                kept.remove(twin)
        return own, shared, kept


def _product(factors: list[eq.Expr]) -> eq.Expr:
    made = factors[0]
    for factor in factors[1:]:
        made = eq.Apply("*", (made, factor))
    return made
