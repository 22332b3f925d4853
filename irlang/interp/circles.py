"""Squares that add up to 1: those of two functions of one argument, as of its sine and cosine."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import product

from irlang import equations as eq
from irlang.interp.areas import Areas
from irlang.interp.assumptions import Facts
from irlang.interp.elements import Sum
from irlang.interp.polynomials import Element, Over
from irlang.interp.range_eval import Limits
from irlang.interp.unfolding import settled
from irlang.scalar import SCALARS

_TERMS = 2  # of a sum over an index


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

    def terms_of(self, expr: eq.Reduce, inner: Limits) -> list[eq.Expr]:
        """The terms of a sum over one index of few numbers, one by one; of others none."""
        if len(expr.binders) != 1 or expr.body is None or expr.where is not None:
            return []
        name = expr.binders[0][0]
        if inner[name][1] + 1 != _TERMS:
            return []
        body = expr.body
        return [settled(eq.substitute(body, {name: eq.Const(at)})) for at in range(_TERMS)]
