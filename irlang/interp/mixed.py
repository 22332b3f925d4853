"""Mixtures: numbers that are weighted by some parts of one whole and added up, one by one.

A number that is shifted by a softmax over three places, or that gates mix which are slices of one
softmax, lies among those that are mixed.
"""

from __future__ import annotations

from collections.abc import Iterator

from irlang import equations as eq
from irlang.interp.assumptions import Facts
from irlang.interp.interval import Numbers, join, number
from irlang.interp.orders import Orders
from irlang.interp.parts import Part, apart
from irlang.interp.range_eval import Limits

_MOST = 6  # numbers that are mixed


class Mixed(Orders):
    """An evaluator that knows between which numbers mixtures lie."""

    def mixture(self, expr: eq.Apply, found: Numbers, box: Limits, facts: Facts) -> Numbers:
        """A sum of products of which parts of one whole are factors."""
        terms = list(self._mixed(expr, box, _MOST))
        if not 2 <= len(terms) <= _MOST:
            return found
        parts: list[Part] = []
        mixed: list[Numbers] = []
        for term in terms:
            pairs: tuple[tuple[eq.Expr, ...], ...] = ()
            if isinstance(term, eq.Apply) and term.function == "*":
                pairs = (term.args, term.args[::-1])
            for weight, other in pairs:
                part = self.part_of(weight, box)
                if part is not None and (not parts or part.whole == parts[0].whole):
                    parts.append(part)
                    mixed.append(self.value(other, box, facts))
                    break
            else:
                return found
        ends = join(*mixed)
        if not ends.finite or ends.empty or not apart([part.at for part in parts]):
            return found
        count = parts[0].count
        if parts[0].more or len(parts) < count:  # something is left to others
            ends = join(ends, number(0.0))
        slack = ends.magnitude * (2 * (count + 4) + 4 * (len(parts) + 2)) * self.own.row.unit
        slack += ends.magnitude * len(parts) * max(part.off for part in parts)
        slack += (ends.magnitude + 2) * count * self.own.least
        return self.cut(found, ends.low - slack, ends.high + slack, "numbers are mixed")

    def _mixed(self, expr: eq.Expr, box: Limits, most: int) -> Iterator[eq.Expr]:
        """The terms of a sum, and of the sums that are terms of it, all of them."""
        term = self.meaning(expr, box)
        if isinstance(term, eq.Apply) and term.function == "+" and most > 0:
            for arg in term.args:
                yield from self._mixed(arg, box, most - 1)
        else:
            yield term
