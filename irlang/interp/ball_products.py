"""Sums of products of balls by BLAS: the value in float64, what bounds its error in float32.

The error of a sum of products has two parts (Higham, chapter 3): what the factors' own radii make
of it, sum r_a (|b| + r_b) + |a| r_b, and the roundings, gamma_n sum (|a| + r_a)(|b| + r_b). Both
are sums of products themselves, of numbers that are not negative, so that nothing cancels in them:
single precision, rounded upwards, is enough for a bound and takes half the time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.interp.balls import Ball, Balls
from irlang.interp.contraction import Contraction

Array = np.ndarray[Any, Any]
Evaluate = Callable[[eq.Equation], Ball]

_SINGLE = 2.0**-24  # unit roundoff of the bounds
_LEAST = (
    2.0**-126
)  # below it single precision loses digits; what is lost is less than `terms` times it
_MOST = 1e15  # the largest factor whose products stay far from single precision's overflow


class _Factor:
    """One factor as a ball, and as the operands that the bounds are made of."""

    def __init__(self, product: Contraction, number: int, tensors: Any, evaluate: Evaluate) -> None:
        self._product = product
        self._factor = product.factors[number]
        expr = self._factor.expr
        self.viewed = False
        if isinstance(expr, eq.Read):
            self.ball: Ball = tensors[expr.tensor]
            self.viewed = product.view(self._factor, np.asarray(self.ball.value)) is not None
        if not self.viewed:
            assert self._factor.equation is not None
            self.ball = evaluate(self._factor.equation)

    def operand(self, array: Array) -> Array:
        """An array of the ball (values, sizes, radii), with an axis for each index."""
        if not self.viewed:
            return array
        view = self._product.view(self._factor, array)
        assert view is not None
        return view

    def size(self) -> Array:
        """|value|."""
        return np.abs(np.asarray(self.ball.value, dtype=np.float64))

    def wide(self) -> Array:
        """What no admissible value exceeds."""
        return self.size() if self.ball.radius is None else self.size() + self.ball.radius

    def radius(self) -> Array:
        """The radius of every element."""
        return np.broadcast_to(np.asarray(self.ball.bound, float), np.shape(self.ball.value)).copy()


def applies(product: Contraction, tensors: Any) -> bool:
    """Whether this module bounds a product: two factors without a filter, zeros around them."""
    return (
        len(product.factors) == 2
        and product.masked is None
        and all(_zero_around(factor.expr) for factor in product.factors)
        and all(
            np.all(np.isfinite(tensors[name].bound))
            for factor in product.factors
            for name in eq.reads(factor.expr)
        )
    )


def _zero_around(expr: eq.Expr) -> bool:
    if not isinstance(expr, eq.Read) or expr.default is None:
        return True
    return isinstance(expr.default, (eq.Const, eq.Size)) and expr.default.value == 0


def product_ball(product: Contraction, domain: Balls, tensors: Any, evaluate: Evaluate) -> Ball:
    """The result of a contraction as a ball; `evaluate` gives a factor that is no plain read."""
    a, b = (_Factor(product, number, tensors, evaluate) for number in (0, 1))
    value = product.multiply(
        [f.operand(np.asarray(f.ball.value, dtype=np.float64)) for f in (a, b)]
    )
    terms = math.prod(product.extents[name] for name in product.summed)
    wide = a.wide(), b.wide()
    single = domain.tiny >= _LEAST and all(np.max(w, initial=0.0) <= _MOST for w in wide)
    up = _upward if single else np.asarray

    def bound(left: Array, right: Array) -> Array:
        total = product.multiply([a.operand(left), b.operand(right)])
        if not single:
            return total
        return total.astype(np.float64) * (1 + 2 * (terms + 2) * _SINGLE) + terms * _LEAST

    total = bound(up(wide[0]), up(wide[1]))
    radius = domain.growth(max(terms, 1)) * total + terms * domain.lost
    if a.ball.radius is not None:
        radius += bound(up(a.radius()), up(wide[1]))
    if b.ball.radius is not None:
        radius += bound(up(a.size()), up(b.radius()))
    return domain.bounded(Ball(value, radius, terms, total))


def _upward(array: Array) -> Array:
    """In single precision, none of them smaller and none of them lost."""
    return (array * (1 + 4 * _SINGLE) + _LEAST).astype(np.float32)
