"""Sums of products and the lengths of what is multiplied: no such sum is more than both lengths.

|sum u v| <= sqrt(sum u^2) sqrt(sum v^2) (Cauchy and Schwarz), so that a cosine or a correlation is
1 at most, however it is computed: by lengths that divide the sum, or the factors before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import TypeGuard

from irlang import equations as eq
from irlang.interp.assumptions import Facts
from irlang.interp.elements import Sum
from irlang.interp.interval import Numbers
from irlang.interp.lengths import Lengths, Products, is_absolute
from irlang.interp.range_eval import Limits
from irlang.interp.unfolding import pinned, settled

_ROOT = 0.5  # power of the largest number from which on whole tensors are measured
_DEPTH = 6  # expressions that are looked into, one inside another


class Norms(Lengths):
    """An evaluator that knows what lengths are to sums of products."""

    def by_lengths(self, expr: eq.Expr, found: Numbers, box: Limits, facts: Facts) -> Numbers:  # noqa: ARG002
        """A sum of products, less what is beyond the lengths of both factors."""
        sum_ = self.of_products(expr, box)
        if sum_ is None or sum_.count * self.own.row.unit > 0.125:
            return found
        ends = [self._length(factor, sum_) for factor in sum_.factors]
        if not found.finite or found.magnitude > self.own.largest**_ROOT:
            whole = [self._length_of_whole(factor, sum_) for factor in sum_.factors]
            ends = [min(pair) for pair in zip(ends, whole, strict=True)]
        end = math.prod(ends) * (1 + self.own.changed_by(sum_.count + 2))
        end += sum_.count * self.own.least
        if not end < found.magnitude:
            return found
        if found.nan and end <= self.own.largest:
            factors = (self.value(factor, sum_.inner, {}) for factor in sum_.factors)
            if all(factor.finite for factor in factors):  # no part of the sum is infinite either
                found = replace(found, nan=False)
        return self.cut(found, -end, end, "a sum of products is no more than both lengths")

    def of_lengths(
        self, expr: eq.Expr, sum_: Products, squared: bool, depth: int = _DEPTH
    ) -> float:
        """A number f > 0 so that an expression is no less than f times both lengths, or the square
        of that; 0 for none.
        """
        if not depth or self.done():
            return 0.0
        less = 1 - 4 * self.own.row.unit
        best = 0.0
        if depth == _DEPTH and not squared:  # no less than the square of either is both of them
            squares = (self.of_length(expr, one, sum_, True) for one in sum_.factors)
            best = min(squares) * less
        if depth == _DEPTH and not best:
            best = self._of_one_length(expr, sum_, squared) * less
        for look in self.looks(expr, sum_.inner):
            if not squared:
                best = max(best, self._of_both_squares(look, sum_, depth) * less)
            if not isinstance(look, eq.Apply):
                continue
            root = None if squared else self.root_of(look, sum_.inner)
            if root is not None:
                under = self.of_lengths(root, sum_, True, depth - 1)
                best = max(best, math.sqrt(max(under, 0.0)) * less)
            if look.function in ("*", "sq"):
                pair = look.args * (1 + (look.function == "sq"))
                for one, other in (pair, pair[::-1]):
                    shares = [
                        self.of_length(part, factor, sum_, squared, depth - 1)
                        for part, factor in zip((one, other), sum_.factors, strict=True)
                    ]
                    best = max(best, math.prod(shares) * less)
            for part, times in self._parts(look, sum_.inner):
                found = self.of_lengths(part, sum_, squared, depth - 1)
                best = max(best, found * times * less)
        return best

    def _of_one_length(self, expr: eq.Expr, sum_: Products, squared: bool) -> float:
        """The same by the length of one factor, where that of the other is known."""
        best = 0.0
        for one, other in (sum_.factors, sum_.factors[::-1]):
            share = self.of_length(expr, one, sum_, squared)
            length = self._length(other, sum_) if share else math.inf
            if 0 < length < math.inf:
                best = max(best, share / length ** (2 if squared else 1))
        return best

    def _of_both_squares(self, look: eq.Expr, sum_: Products, depth: int) -> float:
        """The same of a sum of both squares, which is no less than twice the product: as it is
        written, or as one sum of what both are sums of.
        """
        terms = look
        if isinstance(look, eq.Reduce) and look.kind == "sum" and look.where is None and look.body:
            inner = self.inner_box(look, sum_.inner)
            terms = look.body if inner is None else self.meaning(look.body, inner)
        if not isinstance(terms, eq.Apply) or terms.function != "+":
            return 0.0
        both = terms.args
        if terms is not look and isinstance(look, eq.Reduce):
            both = tuple(replace(look, body=one) for one in both)
        shares = [
            [self.of_length(one, factor, sum_, True, depth - 1) for factor in sum_.factors]
            for one in both
        ]
        products = shares[0][0] * shares[1][1], shares[0][1] * shares[1][0]
        rounding = 1 - self.own.changed_by(4)
        return 2 * math.sqrt(max(products)) * rounding

    def _most(self, expr: eq.Apply, box: Limits, divisor: Numbers) -> float:
        """How large a quotient may be whose divisor is made up of the dividend."""
        found = super()._most(expr, box, divisor)
        for part, times, few in self._multiples(expr.args[0], box):
            sum_ = self.of_products(part, box) or self._of_sizes(part, box)
            if sum_ is None or sum_.count * self.own.row.unit > 0.125:
                continue
            share = self.of_lengths(expr.args[1], sum_, False)
            if not share:
                continue
            sizes = [self.value(factor, sum_.inner, {}).magnitude for factor in sum_.factors]
            least = sum_.count * self.own.least
            # squares, and products of two sums of them, may have been flushed to 0: of the square
            # of the divisor so much is missing, however small it is
            lost = math.sqrt(4 * least) * (1 + sum_.count * (sizes[0] + sizes[1]))
            rounding = 1 + self.own.changed_by(sum_.count + 6)
            ratio = math.hypot(rounding / share, lost / divisor.low) * (1 + 4 * self.own.row.unit)
            most = times * (ratio + least / divisor.low)
            found = min(found, most + 2 * (1 + few) * self.own.least / divisor.low)
        return min(found, self._most_of_square(expr, box, divisor))

    def over_lengths(self, expr: eq.Apply, found: Numbers, box: Limits) -> Numbers:
        """A sum of products, times the reciprocals of both lengths."""
        if found.magnitude <= 1:
            return found
        factors = self._factors_of(expr, box)
        divisors = [self.divisor_of(factor, box) for factor in factors]
        known = [at for at, divisor in enumerate(divisors) if divisor is not None]
        if len(known) != len(factors) - 1 or len(known) != 2:
            return found
        (part,) = (factor for at, factor in enumerate(factors) if at not in known)
        sum_ = self.of_products(part, box)
        if sum_ is None or sum_.count * self.own.row.unit > 0.125:
            return found
        both = eq.Apply("*", tuple(one for one in divisors if one is not None))
        share = self.of_lengths(both, sum_, False)
        reach = math.prod(self.value(factors[at], box, {}).magnitude for at in known)
        if not share or not math.isfinite(reach):
            return found
        sizes = [self.value(factor, sum_.inner, {}).magnitude for factor in sum_.factors]
        least = sum_.count * self.own.least
        # squares, and products of two sums of them, may have been flushed to 0
        lost = math.sqrt(4 * least) * (1 + sum_.count * (sizes[0] + sizes[1])) + least
        end = (1 + self.own.changed_by(sum_.count + 28)) / share + lost * max(reach, 1.0)
        return self.cut(found, -end, end, "a sum of products is no more than both lengths")

    def _factors_of(self, expr: eq.Expr, box: Limits, depth: int = 2) -> list[eq.Expr]:
        """The factors of a product, and of those in it, the signs aside."""
        term = self.meaning(expr, box)
        while isinstance(term, eq.Apply) and term.function == "neg":
            expr, term = term.args[0], self.meaning(term.args[0], box)
        if not depth or not isinstance(term, eq.Apply) or term.function != "*":
            return [expr]
        return [part for arg in term.args for part in self._factors_of(arg, box, depth - 1)]

    def _most_of_square(self, expr: eq.Apply, box: Limits, divisor: Numbers) -> float:
        """The same of the square of a sum of products, or of a mean."""
        found = math.inf
        for part, times, few in self._multiples(pinned(expr.args[0], box), box):
            for made, scale in self._squared_products(part, box):
                share = self.of_lengths(pinned(expr.args[1], box), made, True)
                if share:
                    rounding = 1 + self.own.changed_by(2 * made.count + 10)
                    most = scale**2 * rounding + self._lost(made, box) / divisor.low
                    most = times * most / share
                    found = min(found, most + 2 * (1 + few) * self.own.least / divisor.low)
        return found

    def _squared_products(self, expr: eq.Expr, box: Limits) -> Iterator[tuple[Products, float]]:
        """A sum of products of which an expression is the square, and what times the sum it squares
        at most.
        """
        term = self.meaning(expr, box)
        inner = self.square_of(term, box)
        for base, scale, _ in () if inner is None else self._multiples(inner, box, 1):
            made = self.of_products(base, box) or self._with_ones(base, box)
            if made is not None and made.count * self.own.row.unit <= 0.125:
                yield made, scale
        if inner is None and isinstance(term, eq.Apply) and term.function == "*":
            for (one, scale, _), (other, times, _) in product(
                *(self._multiples(arg, box, 1) for arg in term.args)
            ):
                left, right = self.of_products(one, box), self.of_products(other, box)
                if left is not None and right is not None and self._reversed(left, right):
                    yield left, math.sqrt(scale * times) * (1 + self.own.row.unit)

    def _reversed(self, one: Products, other: Products) -> bool:
        """Whether two sums are of the same products with the factors in the other order, as on both
        sides of the diagonal of a matrix times itself; each may be rounded in its own way.
        """
        if len(one.names) != len(other.names) or one.count * self.own.row.unit > 0.125:
            return False
        if any(one.inner[a] != other.inner[b] for a, b in zip(one.names, other.names, strict=True)):
            return False
        names: dict[str, eq.Expr] = {
            b: eq.Index(a) for a, b in zip(one.names, other.names, strict=True)
        }
        turned = [
            {settled(eq.substitute(look, names)) for look in self.looks(factor, other.inner)}
            for factor in other.factors[::-1]
        ]
        return all(
            not looks.isdisjoint(map(settled, self.looks(factor, one.inner)))
            for factor, looks in zip(one.factors, turned, strict=True)
        )

    def _with_ones(self, expr: eq.Expr, box: Limits) -> Products | None:
        """A sum of terms, each once."""
        terms = self._summed(expr, box)
        if terms is None or self.kind(terms[0]) != "real":
            return None
        names = tuple(terms[1].keys() - box.keys())
        return Products((terms[0], eq.Const(1.0)), terms[1], names)

    def _lost(self, sum_: Products, box: Limits) -> float:  # noqa: ARG002
        """What the square of a sum of products and the products of the squares may be off by, as
        numbers next to 0 were rounded.
        """
        sizes = [self.value(factor, sum_.inner, {}).magnitude for factor in sum_.factors]
        squares = math.fsum(size * size for size in sizes)
        return 8 * sum_.count * self.own.least * (1 + sum_.count * squares)

    def _bounds(
        self, atom: eq.Expr, below: bool, rest: Sum, box: Limits, facts: Facts
    ) -> Iterator[Sum]:
        """Sums that are no larger (`below`), or no less, than an element."""
        yield from super()._bounds(atom, below, rest, box, facts)
        if not below:
            yield from self._by_sizes(atom, rest, box)
            yield from self._by_square_of_sum(atom, rest, box)
        if isinstance(self.meaning(atom, box), eq.Reduce):
            yield from self._by_length(atom, below, rest, box)
            yield from self._by_both_lengths(atom, below, rest, box)
            yield from self._by_tangents(atom, below, rest, box)
        if not below:
            yield from self._by_projection(self.meaning(atom, box), rest, box)
            yield from self._by_share_of_length(atom, rest, box)
        for sum_, scale in () if below else self._squared_products(pinned(atom, box), box):
            for other in rest.factors:
                share = self.of_lengths(pinned(other, box), sum_, True)
                rounding = self.own.changed_by(2 * sum_.count + 10)
                # what was added to the squares is more than is lost
                if share > scale**2 * (1 + rounding):
                    times = scale**2 * (1 + rounding) / share
                    yield Sum({other: times}, error=self._lost(sum_, box))
                elif share:
                    size = self.interval(other, box, {}).magnitude
                    error = scale**2 * rounding * size / share
                    yield Sum({other: scale**2 / share}, error=error + self._lost(sum_, box))

    def _by_projection(self, term: eq.Expr, rest: Sum, box: Limits) -> Iterator[Sum]:
        """The square of one length, for that of a sum of products divided by the other's."""
        if not isinstance(term, eq.Apply) or term.function != "/":
            return
        top, bottom = term.args
        divisor = self.remembered(bottom, box, {})
        for sum_, scale in self._squared_products(top, box) if divisor.low > 0 else ():
            for other in rest.factors:
                share = self.of_lengths(eq.Apply("*", (other, bottom)), sum_, True)
                size = self.interval(other, box, {}).magnitude
                if share and math.isfinite(size):
                    error = self.own.changed_by(2 * sum_.count + 12) * size / share
                    lost = self._lost(sum_, box) / divisor.low + self.own.least
                    yield Sum({other: scale**2 / share}, error=scale**2 * (error + lost))

    def _by_share_of_length(self, atom: eq.Expr, rest: Sum, box: Limits) -> Iterator[Sum]:
        """The square of one length, for that of a sum of products divided by the other length, as
        when a matrix is taken apart by its rows.
        """
        base = self.square_of(self.meaning(atom, box), box)
        ratio = None if base is None else self.meaning(base, box)
        if not isinstance(ratio, eq.Apply) or ratio.function != "/":
            return
        top, bottom = ratio.args
        divisor = self.remembered(bottom, box, {})
        reach = self.interval(base or bottom, box, {}).magnitude
        for part, times, few in self._multiples(top, box) if divisor.low > 0 else ():
            sum_ = self.of_products(part, box)
            if sum_ is None or sum_.count * self.own.row.unit > 0.125:
                continue
            for one, two in (sum_.factors, sum_.factors[::-1]):
                share = self.of_length(bottom, one, sum_, False)
                for other in rest.factors if share else ():
                    squares = self.of_length(other, two, sum_, True)
                    if not squares:
                        continue
                    most = times * times / share / share / squares
                    rounding = self.own.changed_by(2 * sum_.count + 16)
                    # squares that have lost so much, and what the products and the quotient have
                    lost, size = 4 * sum_.count * self.own.least, self.interval(other, box, {})
                    error = lost * (size.magnitude / squares + lost) / divisor.low / divisor.low
                    error = times * times * (lost / share / share + error)
                    off = 2 * (sum_.count + few + 1) * self.own.least * max(1.0, times)
                    off /= min(1.0, divisor.low)
                    error = 2 * (error + off * (2 * reach + off) + self.own.least)
                    if math.isfinite(most + error):
                        yield Sum({other: most * (1 + rounding)}, error=error)

    def _by_both_lengths(self, atom: eq.Expr, below: bool, rest: Sum, box: Limits) -> Iterator[Sum]:
        """The product of both lengths, for a sum of products, or what is no less than that."""
        others = [one for one in rest.factors if _is_made(self.meaning(one, box))]
        sum_ = self.of_products(atom, box) if others else None
        if sum_ is None or sum_.count * self.own.row.unit > 0.125:
            return
        for other in others:
            share = self.of_lengths(other, sum_, False)
            size = self.interval(other, box, {}).magnitude
            if share and math.isfinite(size):
                error = self.own.changed_by(sum_.count + 8) * size / share
                error += math.sqrt(self._lost(sum_, box))
                yield Sum({other: -1 / share if below else 1 / share}, error=error)

    def _by_tangents(self, atom: eq.Expr, below: bool, rest: Sum, box: Limits) -> Iterator[Sum]:
        """The product of the squares of both lengths, or what is no less than that, for a sum of
        products: that is no more than its root, which lies below its tangents.
        """
        others = [one for one in rest.factors if _is_product(self.meaning(one, box))]
        sum_ = self.of_products(atom, box) if others else None
        if sum_ is None or sum_.count * self.own.row.unit > 0.125:
            return
        for other in others:
            share, ends = self.of_lengths(other, sum_, True), self.interval(other, box, {})
            if not share or not ends.finite or ends.high <= 0:
                continue
            by = abs(rest.factors[other])
            # where the root is steep enough to take away all of the other, if once or twice the sum
            # is there, and at the end
            met = [times / share / by / by for times in (0.25, 1.0)]
            for at in dict.fromkeys((ends.high, *(one for one in met if one < ends.high))):
                root = math.sqrt(at / share)
                slope, most = 0.5 * root / at, math.sqrt(ends.high / share)
                error = self.own.changed_by(sum_.count + 8) * most
                error += math.sqrt(self._lost(sum_, box))
                sign = -1.0 if below else 1.0
                if math.isfinite(error) and at > 0:
                    yield Sum({other: sign * slope}, sign * root / 2, error)

    def _by_length(self, atom: eq.Expr, below: bool, rest: Sum, box: Limits) -> Iterator[Sum]:
        """A length, for a sum of what it is the length of, as often as the root of their number."""
        terms = self._summed(atom, box)
        if terms is None:
            return
        body, inner = terms
        names = tuple(inner.keys() - box.keys())
        sized = next((one.args[0] for one in self.looks(body, inner) if is_absolute(one)), body)
        sum_ = Products((sized, sized), inner, names)
        if sum_.count * self.own.row.unit > 0.125:
            return
        for other in rest.factors:
            if other == atom or isinstance(self.meaning(other, box), eq.Reduce):
                continue
            share = self.of_length(other, sized, sum_, False)
            if share:
                times = math.sqrt(sum_.count) / share * (1 + 4 * self.own.row.unit)
                lost = sum_.count * math.sqrt(4 * self.own.least)
                off = self.own.changed_by(sum_.count + 8)
                made = self.rounded(other, -times if below else times, off, lost, box, below)
                if math.isfinite(made.error):
                    yield made

    def _by_sizes(self, atom: eq.Expr, rest: Sum, box: Limits) -> Iterator[Sum]:
        """The sum of the sizes, for the root of a sum of squares."""
        under = self.root_of(self.meaning(atom, box), box)
        squares = None if under is None else self._summed(under, box)
        base = None if squares is None else self.square_of(*squares)
        if squares is None or base is None:
            return
        for other in rest.factors:
            sizes = self._summed(other, box)
            if sizes is None or list(sizes[1].values()) != list(squares[1].values()):
                continue
            renamed: dict[str, eq.Expr] = {
                a: eq.Index(b) for a, b in zip(squares[1], sizes[1], strict=True)
            }
            bases = [settled(eq.substitute(one, renamed)) for one in self.looks(base, squares[1])]
            inner = (one.args[0] for one in self.looks(*sizes) if is_absolute(one))
            if any(look in bases for one in inner for look in self.looks(one, sizes[1])):
                count = math.prod(sizes[1][name][1] + 1 for name in sizes[1].keys() - box.keys())
                lost = math.sqrt(count * self.own.least)
                share = self.own.changed_by(2 * count + 8)
                yield self.rounded(other, 1.0, share, lost, box, False)

    def _by_square_of_sum(self, atom: eq.Expr, rest: Sum, box: Limits) -> Iterator[Sum]:
        """The square of a sum of numbers that are not negative, for the sum of their squares."""
        squares = self._summed(atom, box)
        base = None if squares is None else self.square_of(*squares)
        if squares is None or base is None:
            return
        for other in rest.factors:
            total = self.square_of(other, box)
            terms = None if total is None else self._summed(total, box)
            if terms is None or list(terms[1].values()) != list(squares[1].values()):
                continue
            if not self.interval(*terms, {}).low >= 0:
                continue
            renamed: dict[str, eq.Expr] = {
                a: eq.Index(b) for a, b in zip(squares[1], terms[1], strict=True)
            }
            bases = [settled(eq.substitute(one, renamed)) for one in self.looks(base, squares[1])]
            looks = self.looks(*terms)
            sizes = (one for look in looks if is_absolute(look) for one in look.args)
            if any(look in bases for look in (*looks, *sizes)):
                count = math.prod(terms[1][name][1] + 1 for name in terms[1].keys() - box.keys())
                share = self.own.changed_by(3 * count + 8)
                made = self.rounded(other, 1.0, share, 4 * count * self.own.least, box, False)
                if math.isfinite(made.error) and math.isfinite(share):
                    yield made


def _is_made(expr: eq.Expr) -> TypeGuard[eq.Apply]:
    return isinstance(expr, eq.Apply) and expr.function in ("*", "sqrt", "pow")


def _is_product(expr: eq.Expr) -> TypeGuard[eq.Apply]:
    return isinstance(expr, eq.Apply) and expr.function in ("*", "sq")
