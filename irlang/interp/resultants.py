"""Lengths of means: the mean of vectors is no longer than the longest of them.

`c^2 + s^2` of a mean cosine and a mean sine, or the squares of the mean of some unit vectors, add
up to 1 at most. By Cauchy and Schwarz the square of a mean is no more than the mean of the squares,
for each coordinate, and the mean over all vectors is no more than the largest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from irlang import equations as eq
from irlang.interp.circles import Circles
from irlang.interp.range_eval import Limits
from irlang.interp.unfolding import settled

_ADDED = 4  # squares that are added up one by one
_FAR_OFF = 0.125  # of a mean, which rounding may have made wrong


class Resultants(Circles):
    """An evaluator that knows how long a mean is at most."""

    def of_means(self, expr: eq.Expr, box: Limits) -> float:
        """What a sum of squares of means is at most, as a sum of the squares of what these are
        taken of; infinite where it is none.
        """
        if isinstance(expr, eq.Reduce):
            return self._of_mean_vector(expr, box)
        added = list(self._addends(expr, box))
        if not 1 < len(added) <= _ADDED:
            return math.inf
        made: eq.Expr | None = None
        own: Limits = {}
        counts, scale = 0, 0.0
        for term in added:
            base = self.square_of(term, box)
            mean = None if base is None else self._mean(base, box)
            if mean is None:
                return math.inf
            body, count, inner, near = mean
            if made is None:
                own, counts = inner, count
            if count != counts or list(inner.values()) != list(own.values()):
                return math.inf
            new: dict[str, eq.Expr] = {
                a: eq.Index(b) for a, b in zip(inner, own, strict=True) if a != b
            }
            square = eq.Apply("sq", (settled(eq.substitute(body, new)),))
            made = square if made is None else eq.Apply("+", (made, square))
            scale = max(scale, abs(near))
        if made is None:
            return math.inf
        return self._at_most(made, counts, len(added), own, scale)

    def _of_mean_vector(self, expr: eq.Reduce, box: Limits) -> float:
        """The same of a sum over an index."""
        inner = self.inner_box(expr, box)
        if inner is None or expr.body is None or expr.where is not None:
            return math.inf
        base = self.square_of(expr.body, inner)
        mean = None if base is None else self._mean(base, inner)
        if mean is None:
            return math.inf
        body, count, further, near = mean
        names = [name for name, _ in expr.binders]
        added = math.prod(inner[name][1] + 1 for name in names)
        outer = {name: ends for name, ends in further.items() if name not in names}
        made = eq.Reduce("sum", expr.binders, None, eq.Apply("sq", (body,)))
        return self._at_most(made, count, added, outer, abs(near))

    def _addends(self, expr: eq.Expr, box: Limits) -> Iterator[eq.Expr]:
        """The terms of a sum that is written out, and of those inside it."""
        term = self.meaning(expr, box)
        if isinstance(term, eq.Apply) and term.function == "+":
            for arg in term.args:
                yield from self._addends(arg, box)
        else:
            yield expr

    def _at_most(self, squares: eq.Expr, count: int, added: int, box: Limits, near: float) -> float:
        """The largest sum of squares of what so many numbers are a mean of, `near` times over."""
        largest = self.anew(squares, box)
        # a mean is rounded as often as there are numbers, and by a multiple of it that is hardly
        # one; its square and the sum of these, here and there, as often as there are squares
        mean, squared = (self.own.changed_by(often) for often in (count + 3, added + 1))
        if not largest.finite or largest.empty or mean > _FAR_OFF:
            return math.inf
        size = math.sqrt(max(largest.high, 0.0) * (1 + squared)) + math.sqrt(added) * self.own.least
        size = near * size * (1 + mean) + (count + 2) * math.sqrt(added) * self.own.least
        return size * size * (1 + squared) + (added + 2) * self.own.least
