"""How many times over a number holds another: what is left of it when that is taken away.

An intersection is no more than either set, so that both sizes together hold it twice: their union,
the sizes less the intersection, is not negative, however each of the sums was rounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from irlang import equations as eq
from irlang.interp.interval import Numbers
from irlang.interp.jensen import Jensen
from irlang.interp.range_eval import Limits
from irlang.interp.shares import is_sum
from irlang.interp.unfolding import pinned

_DEPTH = 3  # expressions that are looked into, one inside another
_MANY = 1.125  # times that the divisor is the dividend, up to which a bound is as good as any
_LOST = 2.0  # of the least numbers that a product may have lost: of an eighth of `left_over` each


class Holdings(Jensen):
    """An evaluator that knows how many times over a number holds another."""

    def left_over(self, expr: eq.Apply, box: Limits) -> float:
        """How far below 0 a difference is at most: what numbers lose that are rounded to denormal
        ones, where what is taken away is there; infinite where that is not known.
        """
        whole, part = (pinned(arg, box) for arg in expr.args)
        if not self.own.flush:
            self._exactly = True
            try:
                if self.times(whole, part, box) >= 1:
                    return 0.0
            finally:
                self._exactly = False
        held = self.times(whole, part, box) >= 1
        return self.own.least / self.own.row.unit if held else math.inf

    def _most(self, expr: eq.Apply, box: Limits, divisor: Numbers) -> float:
        """How large a quotient may be, by how many times its divisor holds the dividend."""
        there = pinned(expr, box)
        assert isinstance(there, eq.Apply)
        most = super()._most(there, box, divisor)
        if most <= _MANY:
            return most
        most = min(most, self._most_by_square(there, box, divisor))
        own, its = there.args
        apart = self._without_addend(own, its, box)
        for top, bottom in [(own, its), *([] if apart is None else [apart])]:
            for part, many, lost in self._multiples(top, box):
                held = self.times(bottom, part, box) if lost <= _LOST else 0.0
                if held:
                    share = many / held * (1 + 16 * self.own.row.unit)
                    share = share if bottom is its else max(1.0, share)
                    few = self.own.least / self.own.row.unit / divisor.low
                    most = min(most, share + 2 * max(1.0, share) * few)
        return most

    def _most_by_square(self, expr: eq.Apply, box: Limits, divisor: Numbers) -> float:
        """The same by a root, as a polynomial: how far the square of the dividend is beyond what is
        under that.
        """
        top, bottom = expr.args
        under = self.root_of(self.meaning(bottom, box), box)
        if under is None or eq.reduces(self.meaning(under, box)):
            return math.inf
        gap = self.by_form(eq.Apply("-", (under, eq.Apply("sq", (top,)))), box, {})[0]
        least = divisor.low * divisor.low * (1 - 16 * self.own.row.unit)
        if not (math.isfinite(gap) and least > 0):
            return math.inf
        square = 1 + max(0.0, -gap) / least
        return math.sqrt(square) * (1 + 16 * self.own.row.unit)

    def times(self, expr: eq.Expr, part: eq.Expr, box: Limits, depth: int = _DEPTH) -> float:
        """How many times the size of a part an expression is at least; 0 if that is not known."""
        if not depth or self.done():
            return 0.0
        best = max(self._shares(expr, part, box), default=0.0)
        term = self.meaning(expr, box)
        if isinstance(term, eq.Reduce):
            return max(best, self._of_sums((term,), part, box, depth))
        if not isinstance(term, eq.Apply) or term.function != "+" or best >= 1:
            return best
        one, other = (self.meaning(arg, box) for arg in term.args)
        less = 1 - 4 * self.own.row.unit
        if all(self.value(arg, box, {}).low >= 0 for arg in term.args):
            both = sum(self.times(arg, part, box, depth - 1) for arg in term.args)
            best = max(best, both * less, self._of_squares(one, other, part, box) * less)
        if isinstance(one, eq.Reduce) and isinstance(other, eq.Reduce):
            best = max(best, self._of_sums((one, other), part, box, depth) * less)
        return best

    def _shares(self, expr: eq.Expr, part: eq.Expr, box: Limits) -> Iterator[float]:
        """The same by what the part is a multiple of, and what the expression holds of that."""
        for one, many, lost in self._multiples(part, box):
            # a product with a number up to 1 is rounded to no more
            if many and (many <= 1 or not lost if self._exactly else lost <= _LOST):
                yield self.share(expr, self.looks(one, box), False, False, box) / max(1.0, many)

    def _of_squares(self, one: eq.Expr, other: eq.Expr, part: eq.Expr, box: Limits) -> float:
        """The same of two squares and the product of what they are the squares of."""
        if self._exactly:
            return 0.0
        bases = [self.square_of(term, box) for term in (one, other)]
        factors = self.meaning(part, box)
        if None in bases or not isinstance(factors, eq.Apply) or factors.function != "*":
            return 0.0
        looks = [{*self.looks(base, box)} for base in bases if base is not None]
        for args in (factors.args, factors.args[::-1]):
            if all(look & {*self.looks(arg, box)} for look, arg in zip(looks, args, strict=True)):
                return 2 * (1 - 4 * self.own.row.unit)
        return 0.0

    def _of_sums(
        self, sums: tuple[eq.Reduce, ...], part: eq.Expr, box: Limits, depth: int
    ) -> float:
        """The same of one sum, or of two together, and a sum of as many terms, one by one."""
        own = next((top for top in self.looks(part, box) if isinstance(top, eq.Reduce)), None)
        if own is None or own.body is None or not all(map(is_sum, (own, *sums))):
            return 0.0
        bodies = []
        for sum_ in sums:
            paired = self.term_beside(own, sum_, box)
            if paired is None:
                return 0.0
            body, inner, count = paired
            if self.value(body, inner, {}).low < 0:
                return 0.0
            bodies.append(body)
        each = eq.Apply("+", (bodies[0], bodies[1])) if len(bodies) == 2 else bodies[0]
        many = self.times(each, own.body, inner, depth - 1)
        return many * (1 - 4 * (count + 4) * self.own.row.unit)
