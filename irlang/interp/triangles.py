"""Lengths of vectors that add up to another: that is no longer than they are together.

`|a - c|` is no more than `|a - b| + |b - c|`, as `a - c` is the sum of both differences.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

from irlang import equations as eq
from irlang.interp.assumptions import Facts
from irlang.interp.elements import Sum
from irlang.interp.projections import Projections
from irlang.interp.range_eval import Limits
from irlang.interp.unfolding import settled


@dataclass(frozen=True, slots=True)
class Length:
    """The root of a sum of squares, and of a number that is added to it. vector: an element of what
    is squared, at indices of the box `inner`, which are so many. more: the root of the number: it
    is as one element beside those of the vector.
    """

    vector: Sum
    inner: Limits
    count: int
    more: float


class Triangles(Projections):
    """An evaluator that knows how long sums of vectors are."""

    def _bounds(
        self, atom: eq.Expr, below: bool, rest: Sum, box: Limits, facts: Facts
    ) -> Iterator[Sum]:
        """Sums that are no larger (`below`), or no less, than an element."""
        yield from super()._bounds(atom, below, rest, box, facts)
        if below or len(rest.factors) < 2 or self._level > 1:
            return
        own = self._as_length(atom, box, None)
        others = [] if own is None else [one for one in rest.factors if one != atom]
        lengths = [(one, self._as_length(one, box, own)) for one in others]
        for (one, first), (other, second) in combinations(lengths, 2):
            if own is None or first is None or second is None:
                continue
            for sign, turn in product((1.0, -1.0), repeat=2):
                left = own.vector.plus(first.vector, sign).plus(second.vector, turn)
                if left.factors or left.constant:
                    continue
                sizes = [self.interval(o, box, {}).magnitude for o in (atom, one, other)]
                error = self.own.changed_by(own.count + 6) * sum(sizes)
                error += math.sqrt(own.count) * (left.error + math.sqrt(4 * self.own.least))
                error += max(0.0, own.more - first.more - second.more)
                if math.isfinite(error):
                    yield Sum({one: 1.0, other: 1.0}, error=error)

    def _as_length(self, expr: eq.Expr, box: Limits, like: Length | None) -> Length | None:
        """An expression as a length; with the indices of another that is as many numbers long."""
        under = self.root_of(self.meaning(expr, box), box)
        more, squares = 0.0, None if under is None else self._summed(under, box)
        term = under if squares or under is None else self.meaning(under, box)
        if isinstance(term, eq.Apply) and term.function == "+":
            for one, other in (term.args, term.args[::-1]):
                added = self.remembered(other, box, {}).only
                if added is not None and added >= 0:
                    more, squares = math.sqrt(added), squares or self._summed(one, box)
        if squares is None:
            return None
        body, inner = squares
        names = [name for name in inner if name not in box]
        if like is not None:
            theirs = [name for name in like.inner if name not in box]
            if [inner[name] for name in names] != [like.inner[name] for name in theirs]:
                return None
            pairs = zip(names, theirs, strict=True)
            renamed: dict[str, eq.Expr] = {own: eq.Index(its) for own, its in pairs}
            body, inner, names = settled(eq.substitute(body, renamed)), like.inner, theirs
        base = self.square_of(body, inner)
        count = math.prod(inner[name][1] + 1 for name in names)
        if base is None or count * self.own.row.unit > 0.125:
            return None
        return Length(self.sum_of(base, inner, {}), inner, count, more)
