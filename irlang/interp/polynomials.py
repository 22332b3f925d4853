"""Polynomials of a few elements: where they lie within ranges, by corners or by squares.

Along an element that is not squared a polynomial is a line, so that it is least at an end of that;
in the others, if it is of degree two there, it is no less than what is left when squares are
completed, or than its least eigenvalue says. The reciprocal of a divisor is an element too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np

from irlang import equations as eq

_ELEMENTS = 6  # of a polynomial
_TERMS = 24
_DEGREE = 6
DOUBLE = 2.0**-40  # what arithmetic in double precision may lose of the sizes of all terms


@dataclass(frozen=True, slots=True)
class Over:
    """The exact reciprocal of an element, which is not 0."""

    base: eq.Expr


Element = eq.Expr | Over
Monomial = tuple[Element, ...]  # its elements, in an order of their own
Ranges = Mapping[Element, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Form:
    """A polynomial, and how far the expression may be from it by rounding. size: of its values.
    relative, lost: the same as a share of the value, and what numbers next to 0 lose beyond that,
    where there is nothing but products. cancelled: whether terms of a sum have cancelled.
    """

    terms: dict[Monomial, float]
    size: float
    error: float = 0.0
    relative: float = 0.0
    lost: float = 0.0
    cancelled: bool = False

    def plus(self, other: Form, times: float = 1.0) -> Form:
        """`self + times * other`, not rounded."""
        terms = dict(self.terms)
        for monomial, factor in other.terms.items():
            terms[monomial] = terms.get(monomial, 0.0) + times * factor
        size = self.size + abs(times) * other.size
        kept = {monomial: factor for monomial, factor in terms.items() if factor}
        only = not self.terms and not self.error
        relative, lost = (other.relative, abs(times) * other.lost) if only else (math.inf, 0.0)
        error = self.error + abs(times) * other.error
        cancelled = self.cancelled or other.cancelled or len(kept) < len(terms)
        return Form(kept, size, error, relative, lost, cancelled)

    def times(self, other: Form) -> Form:
        """The product, not rounded."""
        terms: dict[Monomial, float] = {}
        for (one, a), (two, b) in product(self.terms.items(), other.terms.items()):
            monomial = without_pairs(tuple(sorted((*one, *two), key=repr)))
            terms[monomial] = terms.get(monomial, 0.0) + a * b
        error = self.error * (other.size + other.error) + other.error * self.size
        kept = {monomial: factor for monomial, factor in terms.items() if factor}
        relative = (1 + self.relative) * (1 + other.relative) - 1
        lost = self.lost * (other.size + other.error) + other.lost * (self.size + self.error)
        cancelled = self.cancelled or other.cancelled
        return Form(kept, self.size * other.size, error, relative, lost, cancelled)

    def elements(self) -> list[Element]:
        """The elements that it is made of."""
        return list(dict.fromkeys(element for monomial in self.terms for element in monomial))

    def usable(self) -> bool:
        """Whether it is small enough to be looked at."""
        short = len(self.terms) <= _TERMS and all(len(one) <= _DEGREE for one in self.terms)
        return short and len(self.elements()) <= _ELEMENTS


def in_place_of(element: Element, other: Element, sign: float, form: Form) -> Form:
    """A polynomial with an element, or its opposite, in place of another."""
    terms: dict[Monomial, float] = {}
    for monomial, factor in form.terms.items():
        made = tuple(sorted((other if one == element else one for one in monomial), key=repr))
        own = factor * sign ** monomial.count(element)
        terms[made] = terms.get(made, 0.0) + own
    return replace(form, terms={monomial: factor for monomial, factor in terms.items() if factor})


def reciprocal(element: Element) -> Element:
    """The exact reciprocal of an element, and of that the element."""
    return element.base if isinstance(element, Over) else Over(element)


def without_pairs(monomial: Monomial) -> Monomial:
    """A product without elements whose reciprocals are among its factors, and those."""
    for one in monomial:
        if isinstance(one, Over) and one.base in monomial:
            left = list(monomial)
            left.remove(one)
            left.remove(one.base)
            return without_pairs(tuple(left))
    return monomial


def size_of(form: Form, ranges: Ranges) -> float:
    """What all terms come to at most, each without its sign."""
    return sum(
        abs(factor) * math.prod(max(map(abs, ranges[one])) for one in monomial)
        for monomial, factor in form.terms.items()
    )


def crosses(form: Form) -> bool:
    """Whether elements stand in a polynomial in more than one term, one of them with others."""
    counts = Counter(element for monomial in form.terms for element in set(monomial))
    return any(n > 1 for n in counts.values()) and any(len(one) > 1 for one in form.terms)


def least(form: Form, ranges: Ranges, together: float) -> float:
    """What a polynomial is at least for elements within ranges, but for what double precision
    loses: at a corner of those along which it is a line, by squares in the others.

    together: what the sum of the squares of all elements is at most, where that is known.
    """
    if together and all(len(monomial) <= 2 for monomial in form.terms):
        return max(_by_squares(form, ranges, together), least(form, ranges, 0.0))
    form, ranges = _merged(form, ranges)
    squared = {one for monomial in form.terms for one in monomial if monomial.count(one) > 1}
    if any(sum(one in squared for one in monomial) > 2 for monomial in form.terms):
        return -math.inf
    flat = [one for one in ranges if one not in squared]
    inside = {one: ends for one, ends in ranges.items() if one in squared}
    best = math.inf
    for corner in product(*(ranges[one] for one in flat)):
        at = dict(zip(flat, corner, strict=True))
        terms: dict[Monomial, float] = {}
        for monomial, factor in form.terms.items():
            left = tuple(one for one in monomial if one in squared)
            value = factor * math.prod(at[one] for one in monomial if one not in squared)
            terms[left] = terms.get(left, 0.0) + value
        best = min(best, _by_squares(Form(terms, 0.0), inside, 0.0))
    return best


def _merged(form: Form, ranges: Ranges) -> tuple[Form, Ranges]:
    """A polynomial with one element in place of two that stand in all terms together."""
    terms, ends = dict(form.terms), dict(ranges)
    for one, other in combinations(ranges, 2):
        if one not in ends or other not in ends:
            continue
        if any(monomial.count(one) != monomial.count(other) for monomial in terms):
            continue
        terms = {tuple(p for p in m if p != other): factor for m, factor in terms.items()}
        products = [a * b for a, b in product(ends[one], ends.pop(other))]
        ends[one] = min(products), max(products)
    return replace(form, terms=terms), ends


def _by_squares(form: Form, ranges: Ranges, together: float) -> float:
    """A bound of a form of degree two, `z' G z + b' z + c`.

    `z' G z` is no less than the least eigenvalue of `G` times the square of `z`, if that is
    negative. If it is not, the form is no less than `c - w' G w + (b + 2 G w)' z` for any w.
    """
    place = {element: number for number, element in enumerate(ranges)}
    matrix, slopes = np.zeros((len(place), len(place))), np.zeros(len(place))
    linear: dict[Monomial, float] = {}
    for monomial, factor in form.terms.items():
        if len(monomial) < 2:
            linear[monomial] = factor
            for element in monomial:
                slopes[place[element]] = factor
        else:
            one, other = (place[element] for element in monomial)
            matrix[one, other] += factor / 2
            matrix[other, one] += factor / 2
    best = math.fsum(factor * _low(monomial, factor, ranges) for monomial, factor in linear.items())
    if not matrix.any():
        return best
    if len(place) == 1:
        (ends,) = ranges.values()
        return _of_parabola(float(matrix[0, 0]), float(slopes[0]), linear.get((), 0.0), ends)
    slack = DOUBLE * float(np.abs(matrix).sum())
    lowest = float(np.linalg.eigvalsh(matrix)[0])
    sizes = [max(map(abs, ends)) for ends in ranges.values()]
    squares = min(math.fsum(size * size for size in sizes), together or math.inf)
    if lowest < slack:
        best += (lowest - slack) * squares
    if lowest >= -slack and slopes.any():
        at = np.linalg.lstsq(matrix, -slopes / 2, rcond=None)[0]
        left = float(np.abs(slopes + 2 * matrix @ at) @ sizes)
        square = float(at @ matrix @ at)
        lost = DOUBLE * float(np.abs(at) @ np.abs(matrix) @ np.abs(at)) + left * (1 + DOUBLE)
        around = math.fsum(
            (size + abs(w)) * (size + abs(w)) for size, w in zip(sizes, at, strict=True)
        )
        best = max(best, linear.get((), 0.0) - square - lost - 2 * slack * around)
    return best


def _of_parabola(square: float, slope: float, rest: float, ends: tuple[float, float]) -> float:
    """Where a polynomial of degree two in one element is lowest, but for what double precision
    loses: at an end, or where its slope is 0.
    """
    at = [*ends]
    if square > 0:
        at.append(min(max(-slope / (2 * square), ends[0]), ends[1]))
    return min((square * x + slope) * x + rest for x in at)


def _low(monomial: Monomial, factor: float, ranges: Ranges) -> float:
    """Where a linear term is lowest."""
    return 1.0 if not monomial else ranges[monomial[0]][0 if factor > 0 else 1]
