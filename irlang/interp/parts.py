"""Elements that are parts of one whole: together they are no more than it.

A sum of some terms of another that has none below 0 is no more than that: the diagonal of a
confusion matrix, or a row of it, than all of its elements.

The quotients of some terms that are not negative by their sum add up to 1, so that no sum of some
of them is more: what is left of 1 when the first results of a softmax are taken
away is not negative.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

from irlang import equations as eq
from irlang.affine import affine
from irlang.interp.assumptions import Facts
from irlang.interp.elements import Sum
from irlang.interp.interval import Numbers
from irlang.interp.matching import match, within
from irlang.interp.range_eval import Limits
from irlang.interp.runs import Runs
from irlang.interp.unfolding import specialised
from irlang.scalar import SCALARS

_GROWN = 2  # numbers that a sum is made larger by
_LARGE = 0.095  # an error of an exponent: a part would be off by a tenth, and is of no use


@dataclass(frozen=True, slots=True)
class Part:
    """An element that is a term of a sum, divided by the sum, or by what is no less.

    whole: the divisor. at: the indices that the term has in the sum. count: of its terms, and
    terms: what each of them may be. more: how much the divisor may be above the sum.
    """

    whole: eq.Expr
    at: tuple[eq.Expr, ...]
    count: int
    terms: Numbers
    more: float = 0.0
    off: float = 0.0


class Parts(Runs):
    """An evaluator that knows what parts of one whole add up to."""

    def _bounds(
        self, atom: eq.Expr, below: bool, rest: Sum, box: Limits, facts: Facts
    ) -> Iterator[Sum]:
        """Sums that are no larger (`below`), or no less, than an element."""
        yield from super()._bounds(atom, below, rest, box, facts)
        term = self.meaning(atom, box)
        if not below or not isinstance(term, eq.Reduce):
            return
        for other in rest.factors:
            its = self.meaning(other, box)
            if isinstance(its, eq.Reduce) and other != atom:
                error = self._slack_of_some(term, its, box)
                if math.isfinite(error) and error and self._by_share:
                    count = self._number_of(term, box)
                    share, lost = self.own.changed_by(2 * count), count * self.own.least
                    yield self.rounded(other, 1.0, share, lost, box, True)
                yield from [Sum({other: 1.0}, error=error)] * math.isfinite(error)
            elif other != atom:
                count = self.terms_of_run(term, other, box)
                size = self.interval(atom, box, facts).magnitude
                error = 2 * (count + 2) * self.own.row.unit * size + count * self.own.least
                if count > 0 and math.isfinite(error) and self._by_share:
                    # each of both sums is rounded once less than it has terms
                    share, lost = self.own.changed_by(2 * count - 1), count * self.own.least
                    yield self.rounded(other, 1.0, share, lost, box, True)
                yield from [Sum({other: 1.0}, error=error)] * (count > 0 and math.isfinite(error))

    def _number_of(self, term: eq.Reduce, box: Limits) -> int:
        """How many terms a reduction has."""
        inner = self.inner_box(term, box) or {}
        return math.prod(inner[name][1] + 1 for name, _ in term.binders)

    def _slack_of_some(self, whole: eq.Reduce, some: eq.Reduce, box: Limits) -> float:
        """How far a sum of some terms of another may be above it, by rounding: none of them is
        negative, and each is met once. Infinite where that is not known.
        """
        inner, own = self.inner_box(whole, box), self.inner_box(some, box)
        if {whole.kind, some.kind} != {"sum"} or whole.where is not None or inner is None:
            return math.inf
        if own is None or whole.body is None or some.body is None or self.kind(whole) != "real":
            return math.inf
        terms = self.value(whole.body, inner, {})
        count = math.prod(inner[name][1] + 1 for name, _ in whole.binders)
        if not (terms.finite and terms.low >= 0) or count * self.own.row.unit > 0.125:
            return math.inf
        free = {name: inner[name] for name, _ in whole.binders}
        names = [name for name, _ in some.binders]
        for pattern, target in product(self.looks(whole.body, inner), self.looks(some.body, own)):
            found: dict[str, eq.Expr] = {}
            if not match(pattern, target, free, found) or len(found) < len(free):
                continue
            if self.stays(found, free, own) and tell_apart(names, list(found.values()), own):
                if terms.whole and count * terms.high * self.own.row.unit <= 1:
                    return 0.0  # counts are added up as they are
                return self.own.changed_by(2 * count) * count * terms.high + count * self.own.least
        return math.inf

    def together(self, made: Sum, box: Limits, facts: Facts, left: int) -> float:
        """No value of a sum is above this, by the parts of one whole in it."""
        best = super().together(made, box, facts, left)
        groups: dict[eq.Expr, list[tuple[eq.Expr, Part]]] = {}
        for atom in made.factors:
            part = self.part_of(atom, box)
            if part is not None:
                groups.setdefault(part.whole, []).append((atom, part))
        for group in groups.values():
            largest = max(made.factors[atom] for atom, _ in group)
            if len(group) < 2 or not apart([part.at for _, part in group]):
                continue
            exact = group[0][1].more == 0 and len(group) == group[0][1].count
            off = max(part.off for _, part in group)
            if largest <= 0 and not exact:
                continue
            own = {atom for atom, _ in group}
            rest = Sum({a: f for a, f in made.factors.items() if a not in own}, made.constant)
            count = group[0][1].count
            lost = self.own.changed_by(count + 6) + count * (self.own.least + off)
            total = 1 + math.copysign(lost, largest)
            best = min(best, largest * total + self.upper(rest, box, facts, left - 1))
        return best

    def beside_others(self, expr: eq.Apply, found: Numbers, box: Limits, facts: Facts) -> Numbers:
        """A term by the sum that it is part of: the others leave it no more, and no less."""
        part = self.part_of(expr, box)
        if part is None or part.count < 2 or not part.terms.finite:
            return found
        own = self.remembered(expr.args[0], box, facts)
        if own.empty or own.low < 0 or not own.finite:
            return found
        least, most = (part.count - 1) * part.terms.low, (part.count - 1) * part.terms.high
        low = own.low / (own.low + most + part.more) if own.low > 0 else 0.0
        high = own.high / (own.high + least) if least > 0 else 1.0
        slack = 1 + self.own.changed_by(part.count + 6)
        ends = low / slack - self.own.least, high * slack + self.own.least
        if not (ends[0] > found.low or ends[1] < found.high):
            return found
        return self.cut(found, *ends, "the other terms of the divisor are known")

    def part_of(self, atom: eq.Expr, box: Limits) -> Part | None:
        """An element as a part of a whole."""
        term = self.meaning(atom, box)
        if isinstance(term, eq.Apply) and term.function == "exp":
            return self._part_by_logarithm(term.args[0], box)
        if not isinstance(term, eq.Apply) or term.function != "/":
            return None
        return self._quotient_part(term.args[0], term.args[1], box)

    def _part_by_logarithm(self, expr: eq.Expr, box: Limits) -> Part | None:
        """The same of what an exponential is taken of: a number less the logarithm of the sum of
        the exponentials of all such numbers, or less what was taken from each of them and that.
        """
        term = self.meaning(expr, box)
        if not isinstance(term, eq.Apply) or term.function != "-":
            return None
        number, taken = term.args
        ways: list[tuple[eq.Expr, eq.Expr, float]] = [(number, taken, 0.0)]
        both = specialised(self.meaning(taken, box), box, self.tensors, self.decided)
        if isinstance(both, eq.Apply) and both.function == "+":
            # (x - m) - log(s) as x - (m + log(s)), which is rounded before it is taken away
            size = self.interval(taken, box, {})
            error = 2 * self.own.row.unit * size.magnitude if size.finite else math.inf
            for shift, rest in (both.args, both.args[::-1]):
                ways.append((eq.Apply("-", (number, shift)), rest, error))
        for least, logarithm, error in ways:
            inner = self.meaning(logarithm, box)
            if not isinstance(inner, eq.Apply) or inner.function != "log":
                continue
            reach = self.interval(logarithm, box, {})
            reach = reach if reach.finite else self.anew(logarithm, box)
            if not reach.finite or reach.empty:
                continue
            # what the logarithm was rounded by, and what the exponents were: e^-a differs from
            # e^-(a (1 + d)) by no more than d / e, however large a is
            unit = self.own.row.unit
            error += 2 * (SCALARS["log"].ulps + 1) * unit * max(reach.magnitude, 1.0)
            if error >= _LARGE:
                continue
            off = math.expm1(error) + 2 * (SCALARS["exp"].ulps + 4) * unit + self.own.least
            top = eq.Apply("exp", (least,))
            part = self._quotient_part(top, inner.args[0], box, True)
            if part is not None:
                return replace(part, off=off)
        return None

    def _quotient_part(
        self, top: eq.Expr, divisor: eq.Expr, box: Limits, positive: bool = False
    ) -> Part | None:
        """A quotient as a part of a whole. positive: whether the divisor is known to be finite and
        no 0.
        """
        whole = self.copies(divisor, box)[-1]
        total, more = self._grown(self.meaning(whole, box), box)
        if not isinstance(total, eq.Reduce) or total.kind != "sum" or total.where is not None:
            return None
        inner = self.inner_box(total, box)
        if inner is None or total.body is None:
            return None
        reach = None if positive else self.remembered(whole, box, {})
        if reach is not None and (reach.low < 0 or not reach.finite):
            return None
        if reach is not None and reach.low == 0 and self.own.flush:
            return None  # else a sum is 0 only where all of its terms are: its parts are NaN then
        count = math.prod(inner[name][1] + 1 for name, _ in total.binders)
        terms = self.value(total.body, inner, {})
        if count * self.own.row.unit > 0.125 or terms.low < 0:
            return None
        free = {name: inner[name] for name, _ in total.binders}
        for pattern, target in product(self.looks(total.body, inner), self.looks(top, box)):
            found = self._indices_of(pattern, target, free, inner, box)
            if found is not None and len(found) == len(free) and within(found, free, box):
                return Part(whole, tuple(found[name] for name in free), count, terms, more)
        return None

    def _indices_of(
        self, pattern: eq.Expr, target: eq.Expr, free: Limits, inner: Limits, box: Limits
    ) -> dict[str, eq.Expr] | None:
        """The indices for which a term of a sum is an expression: as they stand, or one exponential
        and another of numbers that are computed alike.
        """
        found: dict[str, eq.Expr] = {}
        if match(pattern, target, free, found):
            return found
        own, its = _arguments(pattern, "exp"), _arguments(target, "exp")
        if not own or not its:
            return None
        for one, other in product(self.looks(own[0], inner), self.looks(its[0], box)):
            found = {}
            if match(one, other, free, found):
                return found
            pairs = zip(_arguments(one, "-"), _arguments(other, "-"), strict=False)
            met = self._indices_of_all(list(pairs), free, inner, box)
            if met is not None:
                return met
        return None

    def _indices_of_all(
        self, pairs: Sequence[tuple[eq.Expr, eq.Expr]], free: Limits, inner: Limits, box: Limits
    ) -> dict[str, eq.Expr] | None:
        """The same of several, each in some way in which it is computed; None where there is none
        at all.
        """
        found: dict[str, eq.Expr] = {}
        for one, other in pairs:
            for own, its in product(self.looks(one, inner), self.looks(other, box)):
                met = dict(found)
                if match(own, its, free, met):
                    found = met
                    break
            else:
                return None
        return found if pairs else None

    def _grown(self, term: eq.Expr, box: Limits) -> tuple[eq.Expr, float]:
        """The sum that an expression is no less than, as one with a small number is that keeps a
        divisor from 0, and how much more it may be; itself where it is none.
        """
        more = 0.0
        for _ in range(_GROWN):
            if not isinstance(term, eq.Apply) or term.function not in ("+", "max"):
                break
            for one, other in (term.args, term.args[::-1]):
                inner, least = self.meaning(one, box), self.remembered(other, box, {})
                if least.low >= 0 and least.finite and isinstance(inner, (eq.Apply, eq.Reduce)):
                    term, more = inner, more + least.high
                    break
            else:
                break
        return term, more


def tell_apart(names: Iterable[str], at: Sequence[eq.Expr], box: Limits) -> bool:
    """Whether no two values of some indices lead to the same place: each of them is an index of the
    place by itself, or a digit of one, but for what is added to it.
    """
    unknown = set(names)
    forms = [form for form in map(affine, _rejoined(at)) if form is not None]
    for _ in forms:  # what is told by one index is a number in the others
        for form in forms:
            own = {name: form.coefficients[name] for name in unknown & form.coefficients.keys()}
            if _digits(own, box):
                unknown -= own.keys()
    return not unknown


def _digits(times: Mapping[str, int], box: Limits) -> bool:
    """Whether a sum of multiples of indices has another value for all other values of these."""
    reach = 0
    for name in sorted(times, key=lambda name: abs(times[name])):
        if abs(times[name]) <= reach:
            return False
        reach += abs(times[name]) * (box[name][1] - box[name][0])
    return True


def _rejoined(at: Sequence[eq.Expr]) -> list[eq.Expr]:
    """Indices, and what those are quotient and remainder of that stand side by side."""
    parts = [one for one in at if isinstance(one, eq.Apply) and one.function in ("//", "%")]
    quotients = [one.args for one in parts if one.function == "//"]
    return [*at, *(one.args[0] for one in parts if one.function == "%" and one.args in quotients)]


def apart(places: Sequence[tuple[eq.Expr, ...]]) -> bool:
    """Whether no two of some places are one, whatever the indices in them are."""
    return all(
        any(_differ(a, b) for a, b in zip(one, other, strict=True))
        for one, other in combinations(places, 2)
    )


def _differ(one: eq.Expr, other: eq.Expr) -> bool:
    forms = affine(one), affine(other)
    if forms[0] is None or forms[1] is None:
        return False
    gap = forms[0].plus(forms[1], -1)
    return gap.known and gap.constant != 0


def _arguments(expr: eq.Expr, function: str) -> tuple[eq.Expr, ...]:
    """What a function is of; nothing of any other expression."""
    return expr.args if isinstance(expr, eq.Apply) and expr.function == function else ()
