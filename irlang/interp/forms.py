"""Expressions as polynomials of a few elements: where these lie, by corners or by squares.

`(a + c)^2 - 4 a c` is the square of `a - c`, and `2 a b` of two shares is no more than `a + b`: an
interval sees neither, as elements stand in both sides. A polynomial in which no element is squared
is least at a corner of the ranges; one of degree two is no less than its least eigenvalue says.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from irlang import equations as eq
from irlang.interp.assumptions import Facts
from irlang.interp.range_eval import Limits
from irlang.interp.squares import Squares
from irlang.interp.unfolding import instance

_DEPTH = 8  # definitions that are looked into, one behind another
_ELEMENTS = 6  # of a polynomial
_TERMS = 24
_DEGREE = 4
_DOUBLE = 2.0**-40  # what arithmetic in double precision may lose of the sizes of all terms

Monomial = tuple[eq.Expr, ...]  # its elements, in an order of their own


@dataclass(frozen=True, slots=True)
class Form:
    """A polynomial, and how far the expression may be from it by rounding. size: of its values."""

    terms: dict[Monomial, float]
    size: float
    error: float = 0.0

    def plus(self, other: Form, times: float = 1.0) -> Form:
        """`self + times * other`, not rounded."""
        terms = dict(self.terms)
        for monomial, factor in other.terms.items():
            terms[monomial] = terms.get(monomial, 0.0) + times * factor
        size = self.size + abs(times) * other.size
        kept = {monomial: factor for monomial, factor in terms.items() if factor}
        return Form(kept, size, self.error + abs(times) * other.error)

    def times(self, other: Form) -> Form:
        """The product, not rounded."""
        terms: dict[Monomial, float] = {}
        for (one, a), (two, b) in product(self.terms.items(), other.terms.items()):
            monomial = tuple(sorted((*one, *two), key=repr))
            terms[monomial] = terms.get(monomial, 0.0) + a * b
        error = self.error * (other.size + other.error) + other.error * self.size
        kept = {monomial: factor for monomial, factor in terms.items() if factor}
        return Form(kept, self.size * other.size, error)

    def elements(self) -> list[eq.Expr]:
        """The elements that it is made of."""
        return list(dict.fromkeys(element for monomial in self.terms for element in monomial))

    def usable(self) -> bool:
        """Whether it is small enough to be looked at."""
        short = len(self.terms) <= _TERMS and all(len(one) <= _DEGREE for one in self.terms)
        return short and len(self.elements()) <= _ELEMENTS


class Forms(Squares):
    """An evaluator that knows where polynomials of a few elements lie."""

    def by_form(self, expr: eq.Expr, box: Limits, facts: Facts) -> tuple[float, float]:
        """Between which numbers an expression lies as a polynomial of elements."""
        form = self.form_of(expr, box, facts, _DEPTH)
        if form is None or not _crosses(form):
            return -math.inf, math.inf
        least = self.least_of(form, box, facts)
        most = -self.least_of(Form({}, 0.0).plus(form, -1.0), box, facts)
        return least, most

    def least_of(self, form: Form, box: Limits, facts: Facts) -> float:
        """No value of what a polynomial stands for is below this."""
        elements = form.elements()
        ends = [self.remembered(one, box, facts) for one in elements]
        if not all(end.finite and end.pieces for end in ends):
            return -math.inf
        ranges = {one: (end.low, end.high) for one, end in zip(elements, ends, strict=True)}
        squared = any(max(Counter(one).values(), default=0) > 1 for one in form.terms)
        found = _by_squares(form, ranges) if squared else _at_corners(form, ranges)
        sizes = sum(
            abs(factor) * math.prod(max(map(abs, ranges[one])) for one in monomial)
            for monomial, factor in form.terms.items()
        )
        return found - form.error - _DOUBLE * (sizes + form.size)

    def form_of(self, expr: eq.Expr, box: Limits, facts: Facts, depth: int) -> Form | None:
        """An expression as a polynomial; of one element, itself, where it is nothing better."""
        expr = self.started(expr, box)
        if isinstance(expr, (eq.Const, eq.Size)):
            value = self.own.nearest(float(expr.value))
            return Form({(): value}, abs(value)) if math.isfinite(value) else None
        if isinstance(expr, eq.Read) and expr.default is None:
            read, region = self.source(expr, box)
            if region is not None and region.numbers.only is not None:
                value = float(region.numbers.only)
                return Form({(): value}, abs(value))
            inner = None if region is None else region.term
            if depth and isinstance(inner, eq.Apply) and self.as_here(read.tensor):
                made = self._made(instance(inner, read), box, facts, depth - 1)
                if made is not None:
                    return made
            expr = read
        elif isinstance(expr, eq.Apply):
            made = self._made(expr, box, facts, depth)
            if made is not None:
                return made
        size = self.interval(expr, box, facts)
        return Form({(expr,): 1.0}, size.magnitude) if size.finite else None

    def _made(self, expr: eq.Expr, box: Limits, facts: Facts, depth: int) -> Form | None:
        """Sums, products and squares; None of anything else."""
        if not isinstance(expr, eq.Apply) or self.kind(expr) != "real":
            return None
        if expr.function in ("neg", "about", "constant"):
            inner = self.form_of(expr.args[0], box, facts, depth)
            sign = -1.0 if expr.function == "neg" else 1.0
            return None if inner is None else Form({}, 0.0).plus(inner, sign)
        base = self.square_of(expr, box)
        if base is not None and expr.function != "*":
            pair: tuple[eq.Expr, ...] = (base, base)
        elif expr.function in ("+", "-", "*", "/"):
            pair = expr.args
        else:
            return None
        forms = [self.form_of(arg, box, facts, depth) for arg in pair]
        size = self.interval(expr, box, facts)
        if forms[0] is None or forms[1] is None or not size.finite:
            return None
        made = _joined(expr.function, forms[0], forms[1])
        if made is None or not made.usable():
            return None
        unit = self.own.row.unit * (size.magnitude + made.error) + self.own.least
        return replace(made, size=size.magnitude, error=made.error + unit)


def _joined(function: str, one: Form, other: Form) -> Form | None:
    """Two polynomials added, multiplied, or the one divided by a number."""
    if function in ("+", "-"):
        return one.plus(other, 1.0 if function == "+" else -1.0)
    if function != "/":
        return one.times(other)
    divisor = other.terms.get((), 0.0)
    if other.error or len(other.terms) != 1 or not divisor:
        return None
    return Form({}, 0.0).plus(one, 1 / divisor)


def _crosses(form: Form) -> bool:
    """Whether elements stand in a polynomial in more than one term, one of them with others."""
    counts = Counter(element for monomial in form.terms for element in set(monomial))
    return (
        form.usable()
        and any(n > 1 for n in counts.values())
        and any(len(monomial) > 1 for monomial in form.terms)
    )


def _value(form: Form, at: Callable[[eq.Expr], float]) -> float:
    return math.fsum(
        factor * math.prod(map(at, monomial)) for monomial, factor in form.terms.items()
    )


def _at_corners(form: Form, ranges: dict[eq.Expr, tuple[float, float]]) -> float:
    """The least value where no element is squared: along each it is a line."""
    return min(
        _value(form, dict(zip(ranges, corner, strict=True)).__getitem__)
        for corner in product(*ranges.values())
    )


def _by_squares(form: Form, ranges: dict[eq.Expr, tuple[float, float]]) -> float:
    """A bound of a form of degree two: `z' G z`, of the elements and 1, is no less than the least
    eigenvalue of `G` times the square of `z`, if that is negative.
    """
    if any(len(monomial) > 2 for monomial in form.terms):
        return -math.inf
    place = {element: number for number, element in enumerate(ranges)}
    matrix = np.zeros((len(place), len(place)))
    linear: dict[Monomial, float] = {}
    for monomial, factor in form.terms.items():
        if len(monomial) < 2:
            linear[monomial] = factor
        else:
            one, other = (place[element] for element in monomial)
            matrix[one, other] += factor / 2
            matrix[other, one] += factor / 2
    size = float(np.abs(matrix).sum())
    least = min(0.0, float(np.linalg.eigvalsh(matrix)[0]) - _DOUBLE * size)
    squares = sum(max(map(abs, ends)) ** 2 for ends in ranges.values())
    return least * squares + _at_corners(Form(linear, 0.0), ranges)
