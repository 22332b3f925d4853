"""Sums of products of balls by BLAS: the value in float64, what bounds its error in float32.

The error of a sum of products has two parts (Higham, chapter 3): what the factors' own radii make
of it, sum r_a (|b| + r_b) + |a| r_b, and the roundings (`Precision.summed`), which go by
sum (|a| + r_a)(|b| + r_b) and by the size of the sum. The first two are sums of products
themselves, of numbers that are not negative, so that nothing cancels in them: single precision,
rounded upwards, is enough for a bound and takes half the time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.interp.balls import Ball, Balls
from irlang.interp.contraction import Contraction
from irlang.interp.endless import settled_sum

Array = np.ndarray[Any, Any]
Evaluate = Callable[[eq.Equation], Ball]

_MOST = 1e15  # the largest factor whose products stay far from single precision's overflow


@dataclass(frozen=True, slots=True)
class Bounds:
    """What bounds are computed in: a type, and its unit roundoff.

    least: below it a number loses digits; what a product loses is less.
    """

    dtype: type[np.floating[Any]]
    unit: float
    least: float

    def enlargement(self, terms: int) -> float:
        """What a sum of products of two `upward` has to be multiplied by for all roundings."""
        return 1 + 2 * (terms + 12) * self.unit

    def upward(self, parts: Sequence[tuple[Array, float]]) -> Array:
        """The sum of |array| times a number over `parts`.

        No element is smaller than it should be by more than eight roundings, which `enlargement`
        makes good, and none is lost.
        """
        total: Array | None = None
        for array, by in parts:
            found = np.empty(array.shape, self.dtype)
            np.abs(array, out=found, casting="same_kind")
            if by != 1:
                found *= self.dtype(by * (1 + 2 * self.unit))
            if total is None:
                total = found
            else:
                total += found
        assert total is not None
        total += self.dtype(self.least)
        return total


SINGLE = Bounds(np.float32, 2.0**-24, 2.0**-126)
DOUBLE = Bounds(np.float64, 2.0**-53, 2.0**-1074)


def bounds_of(domain: Balls) -> Bounds:
    """The precision of bounds: single, but for a type that has numbers below its least."""
    return SINGLE if domain.tiny >= SINGLE.least else DOUBLE


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
        self.value = np.asarray(self.ball.value, dtype=np.float64)
        self.radius = self.ball.radius
        if self.radius is not None:
            self.radius = np.broadcast_to(np.asarray(self.radius, float), self.value.shape)

    @property
    def unknown(self) -> bool:
        """Whether nothing is known of any element; what is padded has some that are."""
        if self.radius is None or not self.radius.size:
            return False
        if self.viewed and self._product.pads(self._factor, self.value.shape):
            return False
        return bool(np.isinf(self.radius.flat[0]) and np.isinf(self.radius).all())

    def operand(self, array: Array) -> Array:
        """An array of the ball (values, sizes, radii), with an axis for each index."""
        if not self.viewed:
            return array
        view = self._product.view(self._factor, array)
        assert view is not None
        return view

    def parts(self, of_size: float, of_radius: float) -> list[tuple[Array, float]]:
        """What makes |value| of_size + radius of_radius: arrays, and what to multiply them by."""
        found = [(self.value, of_size)] if of_size else []
        return found + ([(self.radius, of_radius)] if of_radius and self.radius is not None else [])


def applies(product: Contraction) -> bool:
    """Whether this module bounds a product: two factors without a filter, zeros around them."""
    return (
        len(product.factors) == 2
        and product.masked is None
        and all(_zero_around(factor.expr) for factor in product.factors)
    )


def _zero_around(expr: eq.Expr) -> bool:
    if not isinstance(expr, eq.Read) or expr.default is None:
        return True
    return isinstance(expr.default, (eq.Const, eq.Size)) and expr.default.value == 0


def product_ball(
    product: Contraction, domain: Balls, tensors: Any, evaluate: Evaluate, spare: int = 0
) -> Ball:
    """The result of a contraction as a ball; `evaluate` gives a factor that is no plain read.

    spare: the number of terms that will be added to it.
    """
    a, b = (_Factor(product, number, tensors, evaluate) for number in (0, 1))
    value = product.multiply([f.operand(f.value) for f in (a, b)])
    terms = count(product)
    of_terms, of_slack, of_sum = _roundings(domain, terms, spare)
    counted = (of_terms + of_sum) / (1 + domain.growth(1))
    if (a.unknown or b.unknown) and np.isfinite(value).all():
        return Ball(value, np.full(value.shape, np.inf), terms + 1, spare=spare, share=counted)
    # one sum for the roundings and for what the radius of the first factor makes of it
    growth = of_terms + domain.arithmetic.rougher(terms, 2, domain.unit)
    bound = _single if bounds_of(domain) is SINGLE else _double
    radius = bound(product, (a, growth, of_slack + growth), (b, 1, 1), terms)
    if b.radius is not None:
        radius += bound(product, (a, of_slack, 0), (b, 0, 1), terms)
    if of_sum:
        radius += of_sum * np.abs(value)
    radius += terms * domain.lost
    if domain.arithmetic.fast:
        most = _by_largest(product, *(f.operand(_double_of(f, 1, 1)) for f in (a, b)))
        radius += domain.arithmetic.fast * growth * most
    sure = settled_sum(
        value,
        [(f.value, f.radius) for f in (a, b)],
        lambda parts: product.multiply([f.operand(p) for f, p in zip((a, b), parts, strict=True)]),
        domain.most,
    )
    if sure is not None:
        radius = np.where(sure, 0.0, radius)
    more = domain.narrowed(
        [(f.value, f.radius) for f in (a, b)],
        terms,
        lambda parts: product.multiply([f.operand(p) for f, p in zip((a, b), parts, strict=True)]),
    )
    if more is not None:
        radius = radius + more
    apart = _overflows_apart(product, (a, b), domain.most)
    if apart is not None:
        radius = np.where(apart, np.inf, radius)
    # as much as what is added later may count on: it has at least the roundings in it
    found = Ball(value, radius, terms + 1, spare=spare, share=counted)
    most = np.max(radius, initial=0.0)
    return found if most / counted + most <= domain.dtype.largest else domain.bounded(found)


def _overflows_apart(product: Contraction, factors: Sequence[_Factor], most: float) -> Array | None:
    """Where a factor that is summed first along what no other varies along is too large by then
    (`endless.separable`); None: nowhere.
    """
    found: Array | None = None
    names = [product.factors[number].names for number in range(len(factors))]
    for number in range(len(factors)):
        others = {name for m, some in enumerate(names) if m != number for name in some}
        own = [
            axis
            for axis, name in enumerate(names[number])
            if name in product.summed and name not in others
        ]
        if not own:
            continue
        operands = [one.operand(one.value) for one in factors]
        array = operands[number]
        with np.errstate(invalid="ignore", over="ignore"):
            sizes = np.abs(array)
            size = np.sum(sizes, axis=tuple(own), where=np.isfinite(sizes), keepdims=True)
        if not np.any(size > most):
            continue
        marks = [np.ones(operand.shape) for operand in operands]
        marks[number] = np.broadcast_to(size > most, array.shape).astype(np.float64)
        lost = product.multiply(marks) > 0
        found = lost if found is None else found | lost
    return found


def _roundings(domain: Balls, terms: int, spare: int) -> tuple[float, float, float]:
    """What the radius of a sum of products has of the magnitudes of its terms, of what the radii of
    the factors make of it, and of its own size: `Precision.summed`, by coefficients.
    """
    if domain.arithmetic.halved:
        return domain.growth(terms + spare), 1.0, 0.0
    once, added = domain.growth(1), domain.growth(terms - 1 + spare)
    return once + added / 2 + once * added, 1 + added / 2, added / 2


def further(
    rest: eq.Equation,
    product: Contraction,
    terms: Mapping[str, int],
    others: Sequence[Contraction],
) -> int:
    """How many terms the rest of an equation may add to a product: those of all else there.

    terms: of the tensors that are sums.
    """
    counts = {**terms, **{other.target: count(other) + 1 for other in others}}
    parts = _written_out(rest.body)
    reads = [part.tensor if isinstance(part, eq.Read) else "" for part in parts]
    if product.target not in reads:
        return 0
    return sum(counts.get(name, 1) for name in reads) - counts[product.target]


def _written_out(expr: eq.Expr) -> list[eq.Expr]:
    """What a sum or a difference that is written out is made of."""
    if isinstance(expr, eq.Apply) and expr.function in ("+", "-"):
        return [term for arg in expr.args for term in _written_out(arg)]
    return [expr]


def count(product: Contraction) -> int:
    """The number of terms of a sum of products."""
    return max(math.prod(product.extents[name] for name in product.summed), 1)


def _by_largest(product: Contraction, left: Array, right: Array) -> Array:
    """The sum where every element of one factor, or of the other, is as large as its largest."""
    most = [np.broadcast_to(np.max(view, initial=0.0), view.shape) for view in (left, right)]
    return np.maximum(product.multiply([most[0], right]), product.multiply([left, most[1]]))


Side = tuple[_Factor, float, float]  # and what to multiply its |value| and its radius by


def _double(product: Contraction, left: Side, right: Side, terms: int) -> Array:
    """The sum of products, for a type whose least numbers single precision has not."""
    total = product.multiply([side[0].operand(_double_of(*side)) for side in (left, right)])
    return total * DOUBLE.enlargement(terms)


def _double_of(factor: _Factor, of_size: float, of_radius: float) -> Array:
    parts = [np.abs(array) * by for array, by in factor.parts(of_size, of_radius)]
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


def _single(product: Contraction, left: Side, right: Side, terms: int) -> Array:
    """The sum of products, rounded upwards, in single precision.

    Infinite ones remain what they are: a product of one with zero is NaN, of which nothing is
    known. A side that is too large for single precision is scaled by a power of two.
    """
    scales, operands = [], []
    for factor, of_size, of_radius in (left, right):
        array, scale = _scaled(factor.parts(of_size, of_radius))
        scales.append(scale)
        operands.append(factor.operand(array))
    total = product.multiply(operands)
    found: Array = np.multiply(
        total, SINGLE.enlargement(terms) * scales[0] * scales[1], dtype=np.float64
    )
    found += terms * SINGLE.least * scales[0] * scales[1]
    return found


def _scaled(parts: list[tuple[Array, float]]) -> tuple[Array, float]:
    """A sum of arrays in single precision, divided by a power of two if it is too large for it."""
    found = SINGLE.upward(parts)
    most = float(np.max(found, initial=0.0))
    if not most <= _MOST:  # but for those that are infinite, or beyond single precision
        most = float(np.max(found, initial=0.0, where=np.isfinite(found)))
    if most <= _MOST:
        return found, 1.0
    scale = 2.0 ** math.ceil(math.log2(most / _MOST))
    return SINGLE.upward([(array / scale, by) for array, by in parts]), scale
