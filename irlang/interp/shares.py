"""How large an element is at least by those that it is made of, and quotients by such elements.

A sum of terms that are not negative is no less than any of them, the root of a sum of squares no
less than the size of one: so that what is divided by its norm is 1 at most.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from irlang import equations as eq
from irlang.interp.assumptions import Facts
from irlang.interp.elements import Looks, Sum
from irlang.interp.forms import Forms
from irlang.interp.interval import Numbers
from irlang.interp.range_eval import Limits
from irlang.interp.unfolding import settled

_LOOKED_AT = 32  # sums, where the terms of two are compared
_NO_LESS = "the divisor is no less than the dividend"


class Shares(Forms):
    """An evaluator that knows how much of an element another one holds."""

    _exactly = False  # whether nothing may be lost that is rounded to a denormal number
    _ordered: dict[Any, tuple[float, Limits]]  # sums that are compared term by term

    def forget(self) -> None:
        """Tensors have become others: sums are compared anew."""
        super().forget()
        self._ordered = {}

    def _most(self, expr: eq.Apply, box: Limits, divisor: Numbers) -> float:
        """How large a quotient may be whose divisor is made up of the dividend, by `share`."""
        top, bottom = expr.args
        apart = self._without_addend(top, bottom, box)
        if apart is not None:
            share = self.share(apart[1], self.looks(apart[0], box), False, False, box)
            if share:
                lost = 4 * self.own.least / divisor.low
                return max(1.0, 1 / share) * (1 + 16 * self.own.row.unit) + lost
        for (part, times, few), rooted in product(self._multiples(top, box), (False, True)):
            share = self.share(bottom, self.looks(part, box), rooted, False, box)
            if share:
                # a square may have been flushed to 0: the dividend's size is known up to that
                lost, by = (
                    self.lost_under(bottom, 4 * self.own.least, box) if rooted else (0.0, 1.0)
                )
                most = 1 / share / by * (1 + 16 * self.own.row.unit) + lost / divisor.low
                # and so may what a multiple lost when it was rounded
                return most if not few else times * most + 2 * few * self.own.least / divisor.low
        found = self._most_of_extreme(top, bottom, box, divisor)
        return found if math.isfinite(found) else self._most_of_weighted(top, bottom, box, divisor)

    def _most_of_extreme(
        self, top: eq.Expr, bottom: eq.Expr, box: Limits, divisor: Numbers
    ) -> float:
        """The same of the largest of some numbers, or the least: it is one of them, of which the
        divisor is made up, as a length is no less than any size.
        """
        term = self.meaning(top, box)
        if not isinstance(term, eq.Reduce) or term.kind not in ("max", "min"):
            return math.inf
        inner = self.inner_box(term, box)
        if inner is None or term.where is not None or term.body is None:
            return math.inf
        looks = self.looks(term.body, inner)
        of_sizes = (
            look.args[0] for look in looks if isinstance(look, eq.Apply) and look.function == "abs"
        )
        tops = (*looks, *(one for size in of_sizes for one in self.looks(size, inner)))
        for rooted in (False, True):
            share = self.share(bottom, tops, rooted, False, inner)
            if share:
                lost, by = (
                    self.lost_under(bottom, 4 * self.own.least, inner) if rooted else (0.0, 1.0)
                )
                return 1 / share / by * (1 + 16 * self.own.row.unit) + lost / divisor.low
        return math.inf

    def lost_under(self, divisor: eq.Expr, squares: float, box: Limits) -> tuple[float, float]:
        """By how much a root of squares may be too small that have lost so much, as they were
        rounded to denormal numbers; and a factor. It is not, but for the factor, where no less was
        added to the squares, or to the root: a share may count what was added, too, of which the
        least is left where what it was added to is largest.
        """
        lost = math.sqrt(squares)
        for look in self.looks(divisor, box):
            under = self.root_of(look, box)
            for one, own in ((under, squares), (look, lost)):
                term = None if one is None else self.meaning(one, box)
                if not isinstance(term, eq.Apply) or term.function != "+":
                    continue
                for part, added in (term.args, term.args[::-1]):
                    size = self.value(part, box, {})
                    if size.finite and size.high > 0 and self.value(added, box, {}).low >= own:
                        return 0.0, size.high / (size.high + own)
        return lost, 1.0

    def _most_of_weighted(
        self, top: eq.Expr, bottom: eq.Expr, box: Limits, divisor: Numbers
    ) -> float:
        """The same of a sum of numbers times their weights, by what is no less than these."""
        term = self.meaning(top, box)
        inner = self.inner_box(term, box) if isinstance(term, eq.Reduce) and is_sum(term) else None
        if inner is None or not isinstance(term, eq.Reduce) or term.body is None:
            return math.inf
        body = self.meaning(term.body, inner)
        if not isinstance(body, eq.Apply) or body.function != "*" or divisor.only is not None:
            return math.inf
        count = math.prod(inner[name][1] + 1 for name, _ in term.binders)
        for weight, number in (body.args, body.args[::-1]):
            numbers = self.value(number, inner, {})
            if self.value(weight, inner, {}).low < 0 or not numbers.finite or numbers.empty:
                continue
            total = replace(term, body=weight)
            share = self.share(bottom, (total,), False, False, box)
            if share and count * self.own.row.unit <= 0.125:
                rounding = 1 + 4 * (count + 4) * self.own.row.unit
                lost = 2 * count * self.own.least / divisor.low
                return numbers.magnitude * rounding / share + lost
        return math.inf

    def _without_addend(
        self, top: eq.Expr, bottom: eq.Expr, box: Limits
    ) -> tuple[eq.Expr, eq.Expr] | None:
        """Two sums without a number that is added to both, or a larger one to the second: if the
        first is no more than so many times the second without it, so it is with it, but for 1.
        """
        terms = [self.meaning(one, box) for one in (top, bottom)]
        if not all(isinstance(term, eq.Apply) and term.function == "+" for term in terms):
            return None
        own, its = (term.args for term in terms if isinstance(term, eq.Apply))
        for (one, added), (other, more) in product((own, own[::-1]), (its, its[::-1])):
            least, most = self.value(added, box, {}), self.value(more, box, {})
            if least.low >= 0 and least.high <= most.low and self.value(one, box, {}).low >= 0:
                return one, other
        return None

    def beside_zero(self, expr: eq.Expr, box: Limits) -> eq.Expr:
        """What an element is computed as; of a sum with 0, as beside a diagonal that something is
        added to, what the other term is.
        """
        term = self.meaning(expr, box)
        if isinstance(term, eq.Apply) and term.function == "+":
            one, other = term.args
            zero = [self.value(arg, box, {}).only == 0 for arg in term.args]
            term = self.meaning(one if zero[1] else other, box) if any(zero) else term
        return term

    def _multiples(
        self, expr: eq.Expr, box: Limits, depth: int = 2
    ) -> Iterator[tuple[eq.Expr, float, float]]:
        """An element, and those that it is so many times at most, but for so many of the least
        numbers that its products lost.
        """
        yield expr, 1.0, 0.0
        term = self.beside_zero(expr, box) if depth else expr
        if isinstance(term, eq.Apply) and term.function == "*":
            for one, other in (term.args, term.args[::-1]):
                numbers = self.value(other, box, {})
                if numbers.finite and numbers.pieces:
                    times = numbers.magnitude
                    for part, factor, lost in self._multiples(one, box, depth - 1):
                        yield part, factor * times, 1.0 + lost * times
        elif isinstance(term, eq.Apply) and term.function == "/":
            divisor = self.value(term.args[1], box, {})
            if divisor.finite and divisor.low > 1:
                yield term.args[0], 1 / divisor.low, 1.0

    def _scaled(self, expr: eq.Apply, found: Numbers, box: Limits) -> Numbers:
        """A product with the reciprocal of what the other factor is part of."""
        for top, factor in (expr.args, expr.args[::-1]):
            divisor = self.divisor_of(factor, box)
            if divisor is not None:
                reach = self.value(factor, box, {})
                share = self.share(divisor, self.looks(top, box), True, False, box)
                if share and reach.finite:
                    lost = math.sqrt(4 * self.own.least) * reach.magnitude
                    end = 1 / share * (1 + 32 * self.own.row.unit) + lost
                    return self.cut(found, -end, end, _NO_LESS)
        return found

    def share(
        self,
        expr: eq.Expr,
        tops: Looks,
        rooted: bool,
        squared: bool,
        box: Limits,
        free: Limits | None = None,
        depth: int = 12,
    ) -> float:
        """A factor f > 0 so that an expression is no less than f times the size of an element.

        tops: how the element may be written. rooted: whether its square may be met under a root;
        squared: whether that is so here. free: indices of sums around, of which one value will do.
        0 for none.
        """
        if not depth or self.done():
            return 0.0
        less = 1 - 4 * self.own.row.unit
        best = 0.0
        for look in self.looks(expr, box):
            if self._is_size(look, tops, squared, box, free or {}):
                return less
            if isinstance(look, eq.Reduce):
                found = 0.0 if squared else self._by_term(look, tops, box)
                if found:
                    return found
                chosen = self.selected(look, box)
                if chosen is not None and (look.kind == "max" or self.only_adds(look, box)):
                    among = self.share(chosen, tops, rooted, squared, box, free, depth - 1)
                    best = max(best, among)
                inner = self._terms(look, box)
                if inner is None or look.body is None:
                    continue
                own = {**(free or {}), **{name: inner[name] for name, _ in look.binders}}
                found = self.share(look.body, tops, rooted, squared, inner, own, depth - 1)
                best = max(best, found)
            if not isinstance(look, eq.Apply):
                continue
            under_root = self.root_of(look, box) if rooted and not squared else None
            if under_root is not None:
                under = self.share(under_root, tops, rooted, True, box, free, depth - 1)
                best = max(best, math.sqrt(under) * less)
            shares = [
                (self.share(part, tops, rooted, squared, box, free, depth - 1) * less, factor)
                for part, factor in self._parts(look, box)
            ]
            best = max(best, *(own * factor for own, factor in shares), 0.0)
            if look.function == "+" and not rooted and not free:
                # two terms that are no less than the element each, both of them together: what
                # either adds to the other is among it
                best = max(best, sum(own for own, _ in shares))
            taken = set(self.copies(look.args[-1], box)) & {*tops}
            if look.function == "-" and taken and not rooted:
                share = self.share(look.args[0], tops, False, False, box, free, depth - 1)
                best = max(best, (share - 1) * less)
        return best

    def _by_term(self, look: eq.Reduce, tops: Looks, box: Limits) -> float:
        """The same of a sum of as many terms, none of them negative nor more than that of `look`:
        in whatever order each of both sums is taken.
        """
        own = next((top for top in tops if isinstance(top, eq.Reduce) and is_sum(top)), None)
        if own is None:
            counts = (self.terms_of_run(look, top, box) for top in tops)
            count = next((n for n in counts if n), 0)
            return 1 - 2 * (count + 2) * self.own.row.unit if count else 0.0
        if not is_sum(look):
            return 0.0
        key = look, own, id(box), self._equal
        if key not in self._ordered:  # what the id is of is kept too, so that it stays its own
            self._ordered[key] = self._each_no_less(look, own, box), box
        return self._ordered[key][0]

    def _each_no_less(self, look: eq.Reduce, own: eq.Reduce, box: Limits) -> float:
        """The same of two sums."""
        paired = self.term_beside(look, own, box)
        if paired is None or look.body is None:
            return 0.0
        body, inner, count = paired
        if not self.interval(body, inner, {}).low >= 0:
            return 0.0
        left, self._left = self._left, _LOOKED_AT
        gap = self.whole(body, inner).plus(self.whole(look.body, inner), -1.0)
        above = self.upper(gap, inner, {}) > 0
        self._left = left
        return 0.0 if above else 1 - 2 * (count + 2) * self.own.row.unit

    def term_beside(
        self, look: eq.Reduce, own: eq.Reduce, box: Limits
    ) -> tuple[eq.Expr, Limits, int] | None:
        """A term of one sum with the indices of another, which has as many, the box with these, and
        how many they are; None where the sums are not alike, or too long for what rounding adds.
        """
        inner, its = self.inner_box(look, box), self.inner_box(own, box)
        if inner is None or its is None or own.body is None:
            return None
        names = [name for name, _ in look.binders]
        extents = [its[name] for name, _ in own.binders]
        count = math.prod(inner[name][1] + 1 for name in names)
        if extents != [inner[name] for name in names] or count * self.own.row.unit > 0.125:
            return None
        renamed: dict[str, eq.Expr] = {
            name: eq.Index(new) for (name, _), new in zip(own.binders, names, strict=True)
        }
        return settled(eq.substitute(own.body, renamed)), inner, count

    def _parts(self, look: eq.Apply, box: Limits) -> Iterator[tuple[eq.Expr, float]]:
        """Expressions that, times a factor, a result is no less than."""
        args = look.args
        if look.function == "max" or (
            look.function == "+" and all(self._not_negative(arg, box) for arg in args)
        ):
            for arg, other in (args, args[::-1]):
                own, more = (self.value(one, box, {}) for one in (arg, other))
                added = look.function == "+" and not self._exactly and own.finite and own.high > 0
                yield arg, 1.0 + more.low / own.high if added else 1.0
        elif look.function in ("*", "/") and not self._exactly:
            for one, other in (args, args[::-1]) if look.function == "*" else (args,):
                times = self.value(other, box, {})
                if times.finite and times.low > 0:
                    factor = 1 / times.high if look.function == "/" else times.low
                    yield one, factor * self._kept(look, box)

    def _kept(self, look: eq.Apply, box: Limits) -> float:
        """What of a product is left at least, beside rounding, where it may be a denormal number
        and not 0.
        """
        low = self.value(look, box, {}).low
        return low / (low + self.own.least) if 0 < low < self.own.row.tiny else 1.0

    def _not_negative(self, expr: eq.Expr, box: Limits) -> bool:
        """Whether a number is not negative, also as a sum of squares, on a diagonal as anywhere, or
        as a multiple of one.
        """
        if self.value(expr, box, {}).low >= 0:
            return True
        term = self.meaning(expr, box)
        if isinstance(term, eq.Apply) and term.function in ("*", "/"):
            one, times = term.args
            return self.interval(times, box, {}).low > 0 and self._not_negative(one, box)
        if not isinstance(term, eq.Reduce) or term.kind != "sum" or term.body is None:
            return False
        inner = self.inner_box(term, box)
        return inner is not None and self.square_of(term.body, inner) is not None

    def _terms(self, look: eq.Reduce, box: Limits) -> Limits | None:
        """The indices of a sum of terms that are not negative, or of a maximum: it is no less than
        any of its terms.
        """
        inner = self.inner_box(look, box)
        if inner is None or look.where is not None or look.body is None:
            return None
        positive = look.kind == "sum" and self.value(look.body, inner, {}).low >= 0
        return inner if positive or look.kind == "max" else None

    def _is_size(
        self, look: eq.Expr, tops: Looks, squared: bool, box: Limits, free: Limits
    ) -> bool:
        """Whether an expression is the size of an element, or its square."""
        inner: eq.Expr | None = None
        if not squared:  # an element is its own size where it is not negative
            sized = isinstance(look, eq.Apply) and look.function == "abs"
            inner = look.args[0] if sized and isinstance(look, eq.Apply) else look
        elif isinstance(look, eq.Apply):
            by_two = look.function == "pow" and self.value(look.args[1], box, {}).only == 2
            alike = look.function == "*" and self._same(look, box)
            inner = look.args[0] if by_two or alike or look.function == "sq" else None
        if inner is None:
            return False
        outer = {name: ends for name, ends in box.items() if name not in free}
        met = self.among(self.looks(inner, box), tops, free, outer)
        return met and (inner is not look or self.value(look, box, {}).low >= 0)

    def _bounds(
        self, atom: eq.Expr, below: bool, rest: Sum, box: Limits, facts: Facts
    ) -> Iterator[Sum]:
        """Sums that are no larger (`below`), or no less, than an element."""
        yield from super()._bounds(atom, below, rest, box, facts)
        term = self.meaning(atom, box)
        if not below or self.root_of(term, box) is None:
            return
        for other in rest.factors:
            look = self.meaning(other, box)
            sized = look.args[0] if isinstance(look, eq.Apply) and look.function == "abs" else other
            share = self.share(term, self.looks(sized, box), True, False, box)
            if share:
                lost = Sum({}, error=math.sqrt(4 * self.own.least))
                yield lost.plus(Sum({other: 1.0}), share)
                yield lost.plus(Sum({other: 1.0}), -share)


def is_sum(term: eq.Reduce) -> bool:
    """Whether a reduction adds up all of its terms."""
    return term.kind == "sum" and term.where is None and term.body is not None
