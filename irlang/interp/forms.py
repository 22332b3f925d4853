"""Expressions as polynomials of a few elements: where these lie, by corners or by squares.

`(a + c)^2 - 4 a c` is the square of `a - c`, and `2 a b` of two shares is no more than `a + b`: an
interval sees neither, as elements stand in both sides. Along an element that is not squared a
polynomial is a line, so that it is least at an end of that; in the others, if it is of degree two
there, it is no less than what is left when squares are completed, or than its least eigenvalue
says. The reciprocal of a divisor is an element too, of which a polynomial may be cleared.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.interp.assumptions import Facts
from irlang.interp.interval import Numbers, meet
from irlang.interp.range_eval import Limits
from irlang.interp.squares import Squares
from irlang.interp.unfolding import instance

_DEPTH = 8  # definitions that are looked into, one behind another
_DEPTHS = (1, 2, 3, 4, _DEPTH)  # a row of a tensor is lost where its elements are taken apart
_ELEMENTS = 6  # of a polynomial
_TERMS = 24
_DEGREE = 6
_BY_SIGNS = 2  # cases, from which on no more are parted
_CLEARED = 1  # divisors that a polynomial is cleared of, one after another
_SQUARED_ROOT = 8  # roundings of a root, whose error counts twice, and of its square
_DOUBLE = 2.0**-40  # what arithmetic in double precision may lose of the sizes of all terms


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
            monomial = _cancelled(tuple(sorted((*one, *two), key=repr)))
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


class Forms(Squares):
    """An evaluator that knows where polynomials of a few elements lie."""

    # while a polynomial is looked at; boxes and facts are kept, so that their ids stay their own
    _spans: dict[Any, tuple[Numbers, Limits, Facts]] | None = None

    def by_form(self, expr: eq.Expr, box: Limits, facts: Facts) -> tuple[float, float]:
        """Between which numbers an expression lies as a polynomial of elements."""
        around, self._spans = self._spans, {}
        try:
            return self._ends_of_form(expr, box, facts)
        finally:
            self._spans = around

    def _ends_of_form(self, expr: eq.Expr, box: Limits, facts: Facts) -> tuple[float, float]:
        low, high = -math.inf, math.inf
        before: Form | None = None
        for depth in _DEPTHS:
            form = self.form_of(expr, box, facts, depth)
            if form is None or form == before or not form.usable():
                continue
            before = form
            elements = form.elements()
            told = not elements or form.cancelled or _crosses(form)
            if told or self.in_one_row(elements, box):
                low = max(low, self.least_of(form, box, facts))
                high = min(high, -self.least_of(Form({}, 0.0).plus(form, -1.0), box, facts))
        return low, high

    def least_of(self, form: Form, box: Limits, facts: Facts, clear: int = _CLEARED) -> float:
        """No value of what a polynomial stands for is below this."""
        ranges = {one: self._ends_of(one, box, facts) for one in form.elements()}
        if not all(math.isfinite(end) for ends in ranges.values() for end in ends):
            return -math.inf
        lost = form.error + _DOUBLE * (_sizes(form, ranges) + form.size)
        row = self.in_one_row(form.elements(), box)
        found = min(_least(*case, row) for case in self._by_signs(form, ranges, box)) - lost
        for one in ranges if clear and found < 0 else ():
            linear = all(monomial.count(one) <= 1 for monomial in form.terms)
            if isinstance(one, Over) and linear:
                found = max(found, self._cleared(form, one, ranges, box, facts, clear) - lost)
        return found

    def _by_signs(self, form: Form, ranges: Ranges, box: Limits) -> list[tuple[Form, Ranges]]:
        """The polynomial where elements whose sizes stand in it, too, are negative and are not."""
        cases = [(form, ranges)]
        for size in ranges:
            term = size if isinstance(size, Over) else self.meaning(size, box)
            sized = term.args[0] if isinstance(term, eq.Apply) and term.function == "abs" else None
            own = None if sized is None else self.copies(sized, box)[-1]
            if own is None or own not in ranges or len(cases) > _BY_SIGNS:
                continue
            low, high = ranges[own]
            halves = [(1.0, (max(low, 0.0), high)), (-1.0, (low, min(high, 0.0)))]
            cases = [
                (_in_place_of(size, own, sign, one), {**others, own: ends})
                for one, others in cases
                for sign, ends in halves
                if ends[0] <= ends[1]
            ]
        return cases

    def _ends_of(self, element: Element, box: Limits, facts: Facts) -> tuple[float, float]:
        """Between which numbers an element lies, or the exact reciprocal of one."""
        base = element.base if isinstance(element, Over) else element
        numbers = self.remembered(base, box, facts)
        if not (numbers.finite and numbers.pieces):
            return -math.inf, math.inf
        if base is element:
            return numbers.low, numbers.high
        if numbers.low <= 0 <= numbers.high:
            return -math.inf, math.inf
        ends = sorted((1 / numbers.low, 1 / numbers.high))
        return math.nextafter(ends[0], -math.inf), math.nextafter(ends[1], math.inf)

    def _cleared(
        self, form: Form, one: Over, ranges: Ranges, box: Limits, facts: Facts, clear: int
    ) -> float:
        """The same of `P + Q / d` by `P d + Q`, d being positive."""
        low, high = ranges[one]  # of 1 / d
        divisor = self.form_of(one.base, box, facts, _DEPTH)
        if low <= 0 or divisor is None:
            return -math.inf
        kept = {monomial: factor for monomial, factor in form.terms.items() if one not in monomial}
        rest = {
            tuple(part for part in monomial if part != one): factor
            for monomial, factor in form.terms.items() if one in monomial
        }  # fmt: skip
        whole, below = Form(kept, 0.0), Form(rest, 0.0)
        whole, below = (replace(part, size=_sizes(part, ranges)) for part in (whole, below))
        off = math.inf  # what the rounding of d comes to, once all is divided by it
        if divisor.relative <= 0.25:
            lost = divisor.lost * high
            off = whole.size * (divisor.relative * (1 + lost) / (1 - divisor.relative) + lost)
        made = whole.times(replace(divisor, error=0.0)).plus(below)
        if not made.usable() or one in made.elements():
            return -math.inf
        off = min(off, whole.size * divisor.error * high)
        least = self.least_of(made, box, facts, clear - 1)
        return least * (high if least < 0 else low) - off * (1 + _DOUBLE)

    def in_one_row(self, elements: Collection[Element], box: Limits) -> float:  # noqa: ARG002
        """What the sum of the squares of some elements is at most as they are parts of one length;
        0 where that is not known.
        """
        return 0.0

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
                known = region.numbers if region is not None else None
                made = self._made(instance(inner, read), box, facts, depth - 1, known)
                if made is not None:
                    return made
            expr = read
        elif isinstance(expr, eq.Apply):
            made = self._made(expr, box, facts, depth)
            if made is not None:
                return made
        size = self._span(expr, box, facts)
        return Form({(expr,): 1.0}, size.magnitude) if size.finite else None

    def _made(
        self, expr: eq.Expr, box: Limits, facts: Facts, depth: int, known: Numbers | None = None
    ) -> Form | None:
        """Sums, products and squares; None of anything else. known: what it is known to be."""
        if not isinstance(expr, eq.Apply) or self.kind(expr) != "real":
            return None
        if expr.function in ("neg", "about", "constant"):
            inner = self.form_of(expr.args[0], box, facts, depth)
            sign = -1.0 if expr.function == "neg" else 1.0
            return None if inner is None else Form({}, 0.0).plus(inner, sign)
        base = self.square_of(expr, box)
        root = None if base is None else self.root_of(self.meaning(base, box), box)
        under = None if root is None else self.form_of(root, box, facts, depth)
        if under is not None:
            return self._squared_root(under, expr, box, facts)
        if base is not None and expr.function != "*":
            pair: tuple[eq.Expr, ...] = (base, base)
        elif expr.function in ("+", "-", "*", "/"):
            pair = expr.args
        else:
            return None
        forms = [self.form_of(arg, box, facts, depth) for arg in pair]
        size = self._span(expr, box, facts)
        size = size if known is None else meet(size, known)
        if expr.function == "/" and forms[1] is not None:
            forms[1] = self._reciprocal(forms[1], expr.args[1], box, facts)
        if forms[0] is None or forms[1] is None or not size.finite:
            return None
        if expr.function in ("+", "-"):
            made = forms[0].plus(forms[1], 1.0 if expr.function == "+" else -1.0)
        else:
            made = forms[0].times(forms[1])
        if not made.usable():
            return None
        if expr.function in ("+", "-") and self._adds_up(expr, box, facts):
            lost = 2 * (forms[0].lost + forms[1].lost)
            made = replace(made, relative=max(forms[0].relative, forms[1].relative), lost=lost)
        # rounded once more: by a share of itself, but next to 0
        relative = (1 + made.relative) * (1 + self.own.row.unit) ** 2 - 1
        lost = made.lost + self.own.least
        error = made.error + self.own.row.unit * (size.magnitude + made.error) + self.own.least
        if relative <= 0.25:
            error = min(error, (relative * size.magnitude + lost) / (1 - relative))
        return replace(made, size=size.magnitude, error=error, relative=relative, lost=lost)

    def _squared_root(self, under: Form, expr: eq.Expr, box: Limits, facts: Facts) -> Form | None:
        """The square of a root: what is under that, but for rounding."""
        size = self._span(expr, box, facts)
        if not size.finite:
            return None
        share = self.own.changed_by(_SQUARED_ROOT)
        relative, lost = (1 + under.relative) * (1 + share) - 1, 2 * under.lost + self.own.least
        error = under.error + share * (under.size + under.error) + self.own.least
        return replace(under, size=size.magnitude, error=error, relative=relative, lost=lost)

    def _span(self, expr: eq.Expr, box: Limits, facts: Facts) -> Numbers:
        """Where an expression lies by intervals, computed once for all forms of a sum."""
        if self._spans is None:
            return self.interval(expr, box, facts)
        key = self.here(expr, box, facts)
        if key not in self._spans:
            self._spans[key] = self.interval(expr, box, facts), box, facts
        return self._spans[key][0]

    def _adds_up(self, expr: eq.Apply, box: Limits, facts: Facts) -> bool:
        """Whether both terms of a sum have one sign, so that nothing cancels in it."""
        ends = [self._span(arg, box, facts) for arg in expr.args]
        if not all(end.finite and end.pieces for end in ends):
            return False
        one, other = ends
        sign = 1.0 if expr.function == "+" else -1.0
        below = min(one.low, sign * other.low, sign * other.high)
        above = max(one.high, sign * other.low, sign * other.high)
        return below >= 0 or above <= 0

    def _reciprocal(self, divisor: Form, expr: eq.Expr, box: Limits, facts: Facts) -> Form | None:
        """What a division multiplies by: the reciprocals of the factors of a product, or that of
        the divisor as a whole.
        """
        numbers = self.remembered(expr, box, facts)
        if not (numbers.finite and numbers.pieces) or numbers.low <= 0 <= numbers.high:
            return None
        least = min(abs(numbers.low), abs(numbers.high))
        relative = min(divisor.relative + divisor.lost / least, divisor.error / least)
        if len(divisor.terms) == 1 and relative <= 0.25:
            ((monomial, factor),) = divisor.terms.items()
            ends = [self._ends_of(one, box, facts) for one in monomial]
            if all(
                math.isfinite(end) and low * high > 0 for low, high in ends for end in (low, high)
            ):
                made = _cancelled(tuple(sorted(map(_over, monomial), key=repr)))
                # |1/b - 1/c| = |b - c| / |b c|, where |c| is no less than |b| less that share of it
                relative = relative / (1 - relative) * (1 + _DOUBLE)
                error = relative / least * (1 + _DOUBLE)
                return Form({made: 1 / factor}, (1 + _DOUBLE) / least, error, relative)
        own = self.copies(expr, box)[-1]
        return Form({(Over(own),): 1.0}, (1 + _DOUBLE) / least)


def _in_place_of(element: Element, other: Element, sign: float, form: Form) -> Form:
    """A polynomial with an element, or its opposite, in place of another."""
    terms: dict[Monomial, float] = {}
    for monomial, factor in form.terms.items():
        made = tuple(sorted((other if one == element else one for one in monomial), key=repr))
        own = factor * sign ** monomial.count(element)
        terms[made] = terms.get(made, 0.0) + own
    return replace(form, terms={monomial: factor for monomial, factor in terms.items() if factor})


def _over(element: Element) -> Element:
    """The exact reciprocal of an element, and of that the element."""
    return element.base if isinstance(element, Over) else Over(element)


def _cancelled(monomial: Monomial) -> Monomial:
    """A product without elements whose reciprocals are among its factors, and those."""
    for one in monomial:
        if isinstance(one, Over) and one.base in monomial:
            left = list(monomial)
            left.remove(one)
            left.remove(one.base)
            return _cancelled(tuple(left))
    return monomial


def _sizes(form: Form, ranges: Ranges) -> float:
    """What all terms come to at most, each without its sign."""
    return sum(
        abs(factor) * math.prod(max(map(abs, ranges[one])) for one in monomial)
        for monomial, factor in form.terms.items()
    )


def _crosses(form: Form) -> bool:
    """Whether elements stand in a polynomial in more than one term, one of them with others."""
    counts = Counter(element for monomial in form.terms for element in set(monomial))
    return any(n > 1 for n in counts.values()) and any(len(one) > 1 for one in form.terms)


def _least(form: Form, ranges: Ranges, together: float) -> float:
    """What a polynomial is at least for elements within ranges, but for what double precision
    loses: at a corner of those along which it is a line, by squares in the others.

    together: what the sum of the squares of all elements is at most, where that is known.
    """
    if together and all(len(monomial) <= 2 for monomial in form.terms):
        return max(_by_squares(form, ranges, together), _least(form, ranges, 0.0))
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
    slack = _DOUBLE * float(np.abs(matrix).sum())
    least = float(np.linalg.eigvalsh(matrix)[0])
    sizes = [max(map(abs, ends)) for ends in ranges.values()]
    squares = min(math.fsum(size * size for size in sizes), together or math.inf)
    if least < slack:
        best += (least - slack) * squares
    if least >= -slack and slopes.any():
        at = np.linalg.lstsq(matrix, -slopes / 2, rcond=None)[0]
        left = float(np.abs(slopes + 2 * matrix @ at) @ sizes)
        square = float(at @ matrix @ at)
        lost = _DOUBLE * float(np.abs(at) @ np.abs(matrix) @ np.abs(at)) + left * (1 + _DOUBLE)
        around = math.fsum(
            (size + abs(w)) * (size + abs(w)) for size, w in zip(sizes, at, strict=True)
        )
        best = max(best, linear.get((), 0.0) - square - lost - 2 * slack * around)
    return best


def _of_parabola(square: float, slope: float, rest: float, ends: tuple[float, float]) -> float:
    """Where a polynomial of degree two in one element is least, but for what double precision
    loses: at an end, or where its slope is 0.
    """
    at = [*ends]
    if square > 0:
        at.append(min(max(-slope / (2 * square), ends[0]), ends[1]))
    return min((square * x + slope) * x + rest for x in at)


def _low(monomial: Monomial, factor: float, ranges: Ranges) -> float:
    """Where a linear term is least."""
    return 1.0 if not monomial else ranges[monomial[0]][0 if factor > 0 else 1]
