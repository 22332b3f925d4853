"""Expressions as polynomials of a few elements, and where these lie.

`(a + c)^2 - 4 a c` is the square of `a - c`, and `2 a b` of two shares is no more than `a + b`: an
interval sees neither, as elements stand in both sides. A polynomial may be cleared of the
reciprocal of a divisor, and parted by the sign of an element whose size stands in it, too.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from irlang import equations as eq
from irlang.interp.assumptions import Facts
from irlang.interp.crossed import Crossed
from irlang.interp.interval import Numbers, meet
from irlang.interp.polynomials import (
    DOUBLE,
    Element,
    Form,
    Monomial,
    Over,
    Ranges,
    crosses,
    in_place_of,
    least,
    reciprocal,
    size_of,
    without_pairs,
)
from irlang.interp.range_eval import Limits
from irlang.interp.unfolding import instance, small

_DEPTH = 8  # definitions that are looked into, one behind another
# a row of a tensor is lost where its elements are taken apart; moving averages are deep
_DEPTHS = (1, 2, 3, 4, _DEPTH, 2 * _DEPTH)
_BY_SIGNS = 2  # cases, from which on no more are parted
_CHOOSING = ("max", "min", "select")  # functions whose value is one of their last two arguments
_HIDDEN = 3  # definitions that a divisor is looked into
_CLEARED = 1  # divisors that a polynomial is cleared of, one after another
_SQUARED_ROOT = 8  # roundings of a root, whose error counts twice, and of its square


class Forms(Crossed):
    """An evaluator that knows where polynomials of a few elements lie."""

    # while a polynomial is looked at; boxes and facts are kept, so that their ids stay their own
    _spans: dict[Any, tuple[Numbers, Limits, Facts]] | None = None
    _formed: dict[Any, tuple[Form | None, Limits, Facts]] | None = None  # the same of polynomials

    def by_form(self, expr: eq.Expr, box: Limits, facts: Facts) -> tuple[float, float]:
        """Between which numbers an expression lies as a polynomial of elements."""
        around, self._spans, self._formed = (self._spans, self._formed), {}, {}
        try:
            return self._ends_of_form(expr, box, facts)
        finally:
            self._spans, self._formed = around

    def _ends_of_form(self, expr: eq.Expr, box: Limits, facts: Facts) -> tuple[float, float]:
        low, high = -math.inf, math.inf
        before: Form | None = None
        for depth in _DEPTHS:
            form = self.form_of(expr, box, facts, depth)
            if form is None or form == before or not form.usable():
                continue
            before = form
            elements = form.elements()
            told = not elements or form.cancelled or crosses(form) or self._hides(form, box)
            if told or self.in_one_row(elements, box):
                low = max(low, self.least_of(form, box, facts))
                high = min(high, -self.least_of(Form({}, 0.0).plus(form, -1.0), box, facts))
        return low, high

    def _hides(self, form: Form, box: Limits) -> bool:
        """Whether a divisor in a polynomial, or one of two numbers, is made of another element."""
        elements = form.elements()
        apart = [one for one in elements if isinstance(one, Over) or self._one_of(one, box)]
        return len(elements) > 1 and any(
            not {*self._reads(one, box, _HIDDEN)}.isdisjoint(elements)
            for one in (one.base if isinstance(one, Over) else one for one in apart)
        )

    def _one_of(self, element: Element, box: Limits) -> tuple[eq.Expr, ...]:
        """The numbers of which an element is one, without rounding: as a maximum, or by choice."""
        term = element if isinstance(element, Over) else self.meaning(element, box)
        if not isinstance(term, eq.Apply) or term.function not in _CHOOSING:
            return ()
        return term.args[-2:]

    def _reads(self, expr: eq.Expr, box: Limits, depth: int) -> Iterator[eq.Expr]:
        """The elements that an expression is made of, so many definitions deep."""
        term = self.meaning(expr, box)
        for part in eq.walk(term) if small(term) else ():
            if isinstance(part, eq.Read) and part.default is None:
                own = self.copies(part, box)[-1]
                yield own
                if depth and own != expr and eq.indices(own) <= box.keys():
                    yield from self._reads(own, box, depth - 1)

    def least_of(self, form: Form, box: Limits, facts: Facts, clear: int = _CLEARED) -> float:
        """No value of what a polynomial stands for is below this."""
        ranges = {one: self._ends_of(one, box, facts) for one in form.elements()}
        if not all(math.isfinite(end) for ends in ranges.values() for end in ends):
            return -math.inf
        lost = form.error + DOUBLE * (size_of(form, ranges) + form.size)
        row = self.in_one_row(form.elements(), box)
        found = min(least(*case, row) for case in self._by_signs(form, ranges, box)) - lost
        for one in ranges if clear and found < 0 else ():
            linear = all(monomial.count(one) <= 1 for monomial in form.terms)
            if isinstance(one, Over) and linear:
                found = max(found, self._cleared(form, one, ranges, box, facts, clear) - lost)
            elif linear and (arms := self._one_of(one, box)):
                found = max(found, self._by_arms(form, one, arms, ranges, box, facts, clear) - lost)
        return found

    def _by_arms(
        self,
        form: Form,
        one: Element,
        arms: Sequence[eq.Expr],
        ranges: Ranges,
        box: Limits,
        facts: Facts,
        clear: int,
    ) -> float:
        """The same of a polynomial of an element that is one of some numbers: the least of any."""
        kept = {monomial: factor for monomial, factor in form.terms.items() if one not in monomial}
        rest = _without(one, form)
        whole, times = (Form(part, size_of(Form(part, 0.0), ranges)) for part in (kept, rest))
        lowest = math.inf
        for arm in arms:
            own = self.form_of(arm, box, facts, _DEPTH)
            made = None if own is None else whole.plus(times.times(own))
            if made is None or not made.usable() or one in made.elements():
                return -math.inf
            lowest = min(lowest, self.least_of(made, box, facts, clear - 1))
            if lowest == -math.inf:
                break
        return lowest

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
                (in_place_of(size, own, sign, one), {**others, own: ends})
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
        whole, below = Form(kept, 0.0), Form(_without(one, form), 0.0)
        whole, below = (replace(part, size=size_of(part, ranges)) for part in (whole, below))
        off = math.inf  # what the rounding of d comes to, once all is divided by it
        if divisor.relative <= 0.25:
            lost = divisor.lost * high
            off = whole.size * (divisor.relative * (1 + lost) / (1 - divisor.relative) + lost)
        made = whole.times(replace(divisor, error=0.0)).plus(below)
        if not made.usable() or one in made.elements():
            return -math.inf
        off = min(off, whole.size * divisor.error * high)
        lowest = self.least_of(made, box, facts, clear - 1)
        return lowest * (high if lowest < 0 else low) - off * (1 + DOUBLE)

    def in_one_row(self, elements: Collection[Element], box: Limits) -> float:  # noqa: ARG002
        """What the sum of the squares of some elements is at most as they are parts of one length;
        0 where that is not known.
        """
        return 0.0

    def form_of(self, expr: eq.Expr, box: Limits, facts: Facts, depth: int) -> Form | None:
        """An expression as a polynomial; of one element, itself, where it is nothing better.

        What several parts of a model read is taken apart once: there may be as many ways to it as
        a tree has leaves.
        """
        if self._formed is None:
            return self._form_of(expr, box, facts, depth)
        key = self.here(expr, box, facts), depth
        if key not in self._formed:
            self._formed[key] = self._form_of(expr, box, facts, depth), box, facts
        return self._formed[key][0]

    def _form_of(self, expr: eq.Expr, box: Limits, facts: Facts, depth: int) -> Form | None:
        """The same, found anew."""
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
        smallest = min(abs(numbers.low), abs(numbers.high))
        relative = min(divisor.relative + divisor.lost / smallest, divisor.error / smallest)
        if len(divisor.terms) == 1 and relative <= 0.25:
            ((monomial, factor),) = divisor.terms.items()
            ends = [self._ends_of(one, box, facts) for one in monomial]
            if all(
                math.isfinite(end) and low * high > 0 for low, high in ends for end in (low, high)
            ):
                made = without_pairs(tuple(sorted(map(reciprocal, monomial), key=repr)))
                # |1/b - 1/c| = |b - c| / |b c|, where |c| is no less than |b| less that share of it
                relative = relative / (1 - relative) * (1 + DOUBLE)
                error = relative / smallest * (1 + DOUBLE)
                return Form({made: 1 / factor}, (1 + DOUBLE) / smallest, error, relative)
        own = self.copies(expr, box)[-1]
        return Form({(Over(own),): 1.0}, (1 + DOUBLE) / smallest)


def _without(one: Element, form: Form) -> dict[Monomial, float]:
    """The terms of a polynomial that an element stands in, divided by it."""
    return {
        tuple(part for part in monomial if part != one): factor
        for monomial, factor in form.terms.items() if one in monomial
    }  # fmt: skip
