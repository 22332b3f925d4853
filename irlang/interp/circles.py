"""Squares that add up to 1: those of two functions of one argument, as of its sine and cosine."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from irlang import equations as eq
from irlang.interp.areas import Areas
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

    def terms_of(self, expr: eq.Reduce, inner: Limits) -> list[eq.Expr]:
        """The terms of a sum over one index of few numbers, one by one; of others none."""
        if len(expr.binders) != 1 or expr.body is None or expr.where is not None:
            return []
        name = expr.binders[0][0]
        if inner[name][1] + 1 != _TERMS:
            return []
        body = expr.body
        return [settled(eq.substitute(body, {name: eq.Const(at)})) for at in range(_TERMS)]
