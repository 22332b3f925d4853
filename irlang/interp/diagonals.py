"""Reductions over what is special at one index that is known: the diagonal of a matrix, a triangle.

A row of A + I has one term that holds the 1, and a row of a mask 1 - I has one that is 0 and others
that are not. Such a reduction is taken apart into the term at that index and the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import prod

from irlang import equations as eq
from irlang.affine import Affine, affine
from irlang.equation_rules import linear
from irlang.interp.assumptions import Facts
from irlang.interp.interval import Numbers, number
from irlang.interp.range_eval import Limits
from irlang.interp.reductions import Part, reduced
from irlang.interp.relations import Relations
from irlang.interp.unfolding import ends_of, settled, small

_WRITTEN = 6  # definitions by which a term is written out, at most
_KINDS = ("sum", "max", "min")
_EQUALITIES = {"==": False, "!=": True}  # what they are where the indices differ
_COMPARISONS = (*_EQUALITIES, "<", "<=", ">", ">=")
_WHY = "one of the terms is that on the diagonal"


@dataclass(frozen=True, slots=True)
class Turn:
    """An index of a reduction and, in terms of the others, the value at which a comparison turns.

    gap: what is 0 there.
    """

    name: str
    index: eq.Expr
    gap: Affine


class Diagonals(Relations):
    """An evaluator that looks at the term of a reduction at which a comparison of indices turns."""

    def summed(self, expr: eq.Reduce, found: Numbers, box: Limits, facts: Facts) -> Numbers:
        """A reduction, less what its term at such an index, and all others, exclude."""
        found = super().summed(expr, found, box, facts)
        if self._level or self.done() or expr.kind not in _KINDS or expr.where is not None:
            return found
        inner = self.inner_box(expr, box)
        if inner is None or expr.body is None or self.kind(expr) != "real":
            return found
        body = self.unfolded(expr.body, inner, _WRITTEN)
        for turn in self._turns(body, expr, inner) if small(body) else ():
            parts = self.aside(partial(self._parts_of, body, expr, inner, turn, facts))
            made, _ = reduced(expr.kind, parts, "real", self.own, None)
            if made.pieces and made.finite:
                found = self.cut(found, made.low, made.high, _WHY)
        return found

    def _turns(self, body: eq.Expr, expr: eq.Reduce, inner: Limits) -> Iterator[Turn]:
        """Where, along the indices of a reduction, a comparison of indices turns."""
        bound = [name for name, _ in expr.binders]
        seen: list[tuple[str, Affine]] = []
        for part in eq.walk(body):
            if not isinstance(part, eq.Apply) or part.function not in _COMPARISONS:
                continue
            gap = _gap(part)
            own = [name for name in bound if gap is not None and name in gap.coefficients]
            if gap is None or len(own) != 1 or not gap.coefficients.keys() <= inner.keys():
                continue
            name, times = own[0], gap.coefficients[own[0]]
            gap = Affine({}).plus(gap, times)
            rest = Affine({n: c for n, c in gap.coefficients.items() if n != name}, gap.constant)
            if abs(times) != 1 or not rest.coefficients or (name, gap) in seen:
                continue
            seen.append((name, gap))
            index = linear(Affine({}).plus(rest, -1))
            ends = ends_of(index, {other: inner[other] for other in inner if other != name})
            if ends is not None and ends[0] >= 0 and ends[1] <= inner[name][1]:
                yield Turn(name, index, gap)

    def _parts_of(
        self, body: eq.Expr, expr: eq.Reduce, inner: Limits, turn: Turn, facts: Facts
    ) -> list[Part]:
        """The terms at an index, and those at all others."""
        extent = inner[turn.name][1] + 1
        count = prod(inner[name][1] + 1 for name, _ in expr.binders) // extent
        outer = {name: ends for name, ends in inner.items() if name != turn.name}
        here = settled(eq.substitute(body, {turn.name: turn.index}))
        found = [Part(self.value(here, outer, facts), count, count, number(0))]
        if extent > 1:
            rest = self.value(_differing(body, turn.gap), inner, facts)
            found.append(Part(rest, count * (extent - 1), count * (extent - 1), number(0)))
        return found


def _gap(part: eq.Apply) -> Affine | None:
    """The difference of two indices that are compared."""
    left, right = affine(part.args[0]), affine(part.args[1])
    return None if left is None or right is None else left.plus(right, -1)


def _differing(expr: eq.Expr, gap: Affine) -> eq.Expr:
    """An expression where a difference of indices is not 0."""
    if isinstance(expr, eq.Apply) and expr.function in _EQUALITIES:
        own = _gap(expr)
        if own is not None and own in (gap, Affine({}).plus(gap, -1)):
            return eq.Const(_EQUALITIES[expr.function])
    return eq.rebuild(expr, lambda part: _differing(part, gap))
