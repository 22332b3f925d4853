"""Sums of products and the lengths of what is multiplied: no such sum is more than both lengths.

|sum u v| <= sqrt(sum u^2) sqrt(sum v^2) (Cauchy and Schwarz), so that a cosine or a correlation is
1 at most, however it is computed: by lengths that divide the sum, or the factors before it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import TypeGuard

from irlang import equations as eq
from irlang.affine import affine
from irlang.interp.assumptions import Facts
from irlang.interp.elements import Sum
from irlang.interp.forms import Element
from irlang.interp.interval import Numbers
from irlang.interp.matching import match
from irlang.interp.range_eval import Limits
from irlang.interp.shares import Shares
from irlang.interp.spans import plain_axes, repeated, span
from irlang.interp.unfolding import settled

_ROOT = 0.5  # power of the largest number from which on whole tensors are measured
_SCALED = 2  # factors before a number that is divided by its length
_DEPTH = 6  # expressions that are looked into, one inside another


@dataclass(frozen=True, slots=True)
class Products:
    """A sum of products of two expressions. inner: the box with its indices, which are `names`."""

    factors: tuple[eq.Expr, eq.Expr]
    inner: Limits
    names: tuple[str, ...]

    @property
    def count(self) -> int:
        """How many terms it has."""
        return math.prod(self.inner[name][1] + 1 for name in self.names)


class Norms(Shares):
    """An evaluator that knows what lengths are to sums of products."""

    def of_products(self, expr: eq.Expr, box: Limits) -> Products | None:
        """A sum of products; None for anything else."""
        term = self.meaning(expr, box)
        plain = isinstance(term, eq.Reduce) and term.kind == "sum" and term.where is None
        if not plain or not isinstance(term, eq.Reduce) or term.body is None:
            return None
        inner = self.inner_box(term, box)
        if inner is None or self.kind(term.body) != "real":
            return None
        names = tuple(name for name, _ in term.binders)
        for look in self.looks(term.body, inner):
            if isinstance(look, eq.Apply) and look.function in ("*", "sq"):
                return Products((look.args[0], look.args[-1]), inner, names)
        base = self.square_of(term.body, inner)
        return None if base is None else Products((base, base), inner, names)

    def by_lengths(self, expr: eq.Expr, found: Numbers, box: Limits, facts: Facts) -> Numbers:  # noqa: ARG002
        """A sum of products, less what is beyond the lengths of both factors."""
        sum_ = self.of_products(expr, box)
        if sum_ is None or sum_.count * self.own.row.unit > 0.125:
            return found
        ends = [self._length(factor, sum_) for factor in sum_.factors]
        if not found.finite or found.magnitude > self.own.largest**_ROOT:
            whole = [self._length_of_whole(factor, sum_) for factor in sum_.factors]
            ends = [min(pair) for pair in zip(ends, whole, strict=True)]
        end = math.prod(ends) * (1 + 2 * (sum_.count + 2) * self.own.row.unit)
        end += sum_.count * self.own.least
        if not end < found.magnitude:
            return found
        if found.nan and end <= self.own.largest:
            factors = (self.value(factor, sum_.inner, {}) for factor in sum_.factors)
            if all(factor.finite for factor in factors):  # no part of the sum is infinite either
                found = replace(found, nan=False)
        return self.cut(found, -end, end, "a sum of products is no more than both lengths")

    def _length_of_whole(self, factor: eq.Expr, sum_: Products) -> float:
        """The same by how long the whole tensor is of which elements are read."""
        best = math.inf
        for look in self.looks(factor, sum_.inner):
            if isinstance(look, eq.Read) and look.default in (None, eq.Const(0)):
                times = repeated(look, sum_.inner, sum_.names)
                tensor, axes = self.tensors[look.tensor], plain_axes(look)
                if times is not None:
                    best = min(best, math.sqrt(times) * span(tensor))
                if times == 1 and tensor.known is not None and axes is not None:
                    row = [axes[name] for name in sum_.names if name in axes]
                    best = min(best, tensor.known.row(row))
        return best

    def _length(self, factor: eq.Expr, sum_: Products, depth: int = _SCALED) -> float:
        """What the root of the sum of the squares of a factor is at most."""
        best = math.sqrt(sum_.count) * self.value(factor, sum_.inner, {}).magnitude
        for look in self.looks(factor, sum_.inner):
            if isinstance(look, eq.Apply) and look.function in ("+", "-") and depth:
                best = min(best, self._length_of_sum(look, sum_, depth))
            if not isinstance(look, eq.Apply) or look.function not in ("/", "*"):
                continue
            for top, other in (look.args, look.args[::-1])[: 1 + (look.function == "*")]:
                scaled = look.function == "*"
                if scaled and depth:
                    best = min(best, self._length_of_multiple(top, other, sum_, depth))
                divisor = self.divisor_of(other, sum_.inner) if scaled else other
                if divisor is None:
                    continue
                least = self.value(divisor, sum_.inner, {}).low
                for part, times, few in self._multiples(top, sum_.inner) if least > 0 else ():
                    share = self.of_length(divisor, part, sum_, False)
                    if share:
                        lost = times * math.sqrt(4 * sum_.count * self.own.least)
                        lost += 2 * few * sum_.count * self.own.least
                        own = times * (1 + 12 * self.own.row.unit) / share + lost / least
                        best = min(best, own)
        return best

    def _length_of_sum(self, look: eq.Apply, sum_: Products, depth: int) -> float:
        """The same of numbers that are added, or taken from one another: no more than both."""
        terms = [self.meaning(one, sum_.inner) for one in look.args]
        if not any(isinstance(one, eq.Apply) and one.function in ("/", "*") for one in terms):
            return math.inf  # nothing is known but their ends
        both = [self._length(one, sum_, depth - 1) for one in look.args]
        rounding = math.sqrt(sum_.count) * self.own.least
        return sum(both) * (1 + 4 * self.own.row.unit) + rounding

    def _length_of_multiple(
        self, factor: eq.Expr, times: eq.Expr, sum_: Products, depth: int
    ) -> float:
        """The same of numbers that are multiplied by others, by the largest of those."""
        own, size = (self.value(one, sum_.inner, {}) for one in (factor, times))
        look = self.meaning(factor, sum_.inner)
        quotient = isinstance(look, eq.Apply) and look.function in ("*", "/")
        if not quotient or not (own.finite and size.finite):
            return math.inf
        length = self._length(factor, sum_, depth - 1)
        rounding = math.sqrt(sum_.count) * self.own.least
        return length * size.magnitude * (1 + 4 * self.own.row.unit) + rounding

    def of_length(
        self, expr: eq.Expr, factor: eq.Expr, sum_: Products, squared: bool, depth: int = _DEPTH
    ) -> float:
        """A number f > 0 so that an expression is no less than f times the length of a factor, or
        its square; 0 for none.
        """
        if not depth or self.done():
            return 0.0
        less = 1 - 4 * self.own.row.unit
        best = 0.0
        for look in self.looks(expr, sum_.inner):
            if isinstance(look, eq.Reduce) and squared and self._is_square_sum(look, factor, sum_):
                return 1 - 2 * (sum_.count + 2) * self.own.row.unit
            if not isinstance(look, eq.Apply):
                continue
            root = None if squared else self.root_of(look, sum_.inner)
            if root is not None:
                under = self.of_length(root, factor, sum_, True, depth - 1)
                best = max(best, math.sqrt(max(under, 0.0)) * less)
            for part, times in self._parts(look, sum_.inner):
                found = self.of_length(part, factor, sum_, squared, depth - 1)
                best = max(best, found * times * less)
        return best

    def in_one_row(self, elements: Collection[Element], box: Limits) -> float:
        """What the sum of the squares of some elements is at most, which are those of one row of a
        tensor, by the length of that row; 0 for others, and where it says no more than their ends.
        """
        pins: dict[str, eq.Expr] = {
            n: eq.Const(low) for n, (low, high) in box.items() if low == high
        }
        pinned = [settled(eq.substitute(one, pins)) for one in elements if isinstance(one, eq.Read)]
        reads = [one for one in pinned if isinstance(one, eq.Read) and one.default is None]
        if len(reads) < max(2, len(elements)) or len({one.tensor for one in reads}) > 1:
            return 0.0
        columns = list(zip(*(one.index for one in reads), strict=True))
        apart = [axis for axis, column in enumerate(columns) if len(set(column)) > 1]
        if len(apart) != 1 or not all(isinstance(at, eq.Const) for at in columns[apart[0]]):
            return 0.0
        (axis,) = apart
        extent = self.infos[reads[0].tensor].shape[axis]
        name = f"row {axis}"
        index = (*reads[0].index[:axis], eq.Index(name), *reads[0].index[axis + 1 :])
        row = replace(reads[0], index=index)
        sum_ = Products((row, row), {**box, name: (0, extent - 1)}, (name,))
        return self._length(row, sum_) ** 2 * (1 + 4 * self.own.row.unit)

    def _is_square_sum(self, look: eq.Reduce, factor: eq.Expr, sum_: Products) -> bool:
        """Whether a reduction adds up the squares of a factor over all indices of its sum."""
        inner = self.inner_box(look, sum_.inner)
        if look.kind != "sum" or look.where is not None or look.body is None or inner is None:
            return False
        if eq.indices(look) & set(sum_.names):
            return False  # it is another length for every term
        base = self.square_of(look.body, inner)
        if base is None:
            return False
        free = {name: inner[name] for name, _ in look.binders}
        for pattern, target in product(self.looks(base, inner), self.looks(factor, sum_.inner)):
            found: dict[str, eq.Expr] = {}
            if match(pattern, target, free, found) and len(found) == len(free):
                met = _each_met_once(found.values(), sum_.names)
                if met and self.stays(found, free, sum_.inner):
                    return True
        return False

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
        rounding = 1 - 2 * (sum_.count + 2) * self.own.row.unit
        return 2 * math.sqrt(max(products)) * rounding

    def _most(self, expr: eq.Apply, box: Limits, divisor: Numbers) -> float:
        """How large a quotient may be whose divisor is made up of the dividend."""
        found = super()._most(expr, box, divisor)
        for part, times, few in self._multiples(expr.args[0], box):
            sum_ = self.of_products(part, box)
            if sum_ is None or sum_.count * self.own.row.unit > 0.125:
                continue
            share = self.of_lengths(expr.args[1], sum_, False)
            if not share:
                continue
            sizes = [self.value(factor, sum_.inner, {}).magnitude for factor in sum_.factors]
            least = sum_.count * self.own.least
            # squares, and products of two sums of them, may have been flushed to 0
            lost = math.sqrt(4 * least) * (1 + sum_.count * (sizes[0] + sizes[1])) + least
            rounding = 1 + 4 * (sum_.count + 4) * self.own.row.unit
            most = times * (rounding / share + lost / divisor.low)
            found = min(found, most + 2 * (1 + few) * self.own.least / divisor.low)
        return min(found, self._most_of_square(expr, box, divisor))

    def _most_of_square(self, expr: eq.Apply, box: Limits, divisor: Numbers) -> float:
        """The same of the square of a sum of products, or of a mean."""
        found = math.inf
        for part, times, few in self._multiples(expr.args[0], box):
            for made, scale in self._squared_products(part, box):
                share = self.of_lengths(expr.args[1], made, True)
                if share:
                    rounding = 1 + 8 * (made.count + 4) * self.own.row.unit
                    most = scale**2 * rounding + self._lost(made, box) / divisor.low
                    most = times * most / share
                    found = min(found, most + 2 * (1 + few) * self.own.least / divisor.low)
        return found

    def _squared_products(self, expr: eq.Expr, box: Limits) -> Iterator[tuple[Products, float]]:
        """A sum of products of which an expression is the square, and what times the sum it squares
        at most.
        """
        inner = self.square_of(self.meaning(expr, box), box)
        for base, scale, _ in () if inner is None else self._multiples(inner, box, 1):
            made = self.of_products(base, box)
            if made is not None and made.count * self.own.row.unit <= 0.125:
                yield made, scale

    def _lost(self, sum_: Products, box: Limits) -> float:  # noqa: ARG002
        """What the square of a sum of products and the products of the squares may be off by, as
        numbers next to 0 were rounded.
        """
        sizes = [self.value(factor, sum_.inner, {}).magnitude for factor in sum_.factors]
        return 8 * sum_.count * self.own.least * (1 + sum_.count * math.hypot(*sizes) ** 2)

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
        for sum_, scale in () if below else self._squared_products(atom, box):
            for other in rest.factors:
                share = self.of_lengths(other, sum_, True)
                rounding = 8 * (sum_.count + 4) * self.own.row.unit
                if share > 1 + rounding:  # what was added to the squares is more than is lost
                    times = scale**2 * (1 + rounding) / share
                    yield Sum({other: times}, error=self._lost(sum_, box))
                elif share:
                    size = self.interval(other, box, {}).magnitude
                    error = scale**2 * rounding * size / share
                    yield Sum({other: scale**2 / share}, error=error + self._lost(sum_, box))

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
                error = 8 * (sum_.count + 4) * self.own.row.unit * size / share
                error += math.sqrt(self._lost(sum_, box))
                yield Sum({other: -1 / share if below else 1 / share}, error=error)

    def _by_length(self, atom: eq.Expr, below: bool, rest: Sum, box: Limits) -> Iterator[Sum]:
        """A length, for a sum of what it is the length of, as often as the root of their number."""
        terms = self._summed(atom, box)
        if terms is None:
            return
        body, inner = terms
        names = tuple(inner.keys() - box.keys())
        sized = next((one.args[0] for one in self.looks(body, inner) if _is_absolute(one)), body)
        sum_ = Products((sized, sized), inner, names)
        if sum_.count * self.own.row.unit > 0.125:
            return
        for other in rest.factors:
            if other == atom or isinstance(self.meaning(other, box), eq.Reduce):
                continue
            share = self.of_length(other, sized, sum_, False)
            if share:
                times = math.sqrt(sum_.count) / share * (1 + 4 * self.own.row.unit)
                size = self.interval(other, box, {}).magnitude
                error = 4 * (sum_.count + 4) * self.own.row.unit * size * times
                error += sum_.count * math.sqrt(4 * self.own.least)
                if math.isfinite(error):
                    yield Sum({other: -times if below else times}, error=error)

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
            inner = (one.args[0] for one in self.looks(*sizes) if _is_absolute(one))
            if any(look in bases for one in inner for look in self.looks(one, sizes[1])):
                count = math.prod(sizes[1][name][1] + 1 for name in sizes[1].keys() - box.keys())
                size = self.interval(other, box, {}).magnitude
                error = 4 * (count + 4) * self.own.row.unit * size
                yield Sum({other: 1.0}, error=error + math.sqrt(count * self.own.least))

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
            if any(look in bases for look in self.looks(*terms)):
                count = math.prod(terms[1][name][1] + 1 for name in terms[1].keys() - box.keys())
                size = self.interval(other, box, {}).magnitude
                error = 4 * (count + 4) * self.own.row.unit * size
                if math.isfinite(error):
                    yield Sum({other: 1.0}, error=error + 4 * count * self.own.least)

    def _summed(self, expr: eq.Expr, box: Limits) -> tuple[eq.Expr, Limits] | None:
        """The terms of a sum, and the box with their indices."""
        term = self.meaning(expr, box)
        if not isinstance(term, eq.Reduce) or term.kind != "sum" or term.where is not None:
            return None
        inner = self.inner_box(term, box)
        return None if inner is None or term.body is None else (term.body, inner)


def _is_made(expr: eq.Expr) -> TypeGuard[eq.Apply]:
    return isinstance(expr, eq.Apply) and expr.function in ("*", "sqrt", "pow")


def _is_absolute(expr: eq.Expr) -> TypeGuard[eq.Apply]:
    return isinstance(expr, eq.Apply) and expr.function == "abs"


def _each_met_once(places: Iterable[eq.Expr], names: tuple[str, ...]) -> bool:
    """Whether no two values of some indices lead to the same places."""
    taken: list[str] = []
    for place in places:
        met = eq.indices(place) & set(names)
        if met and affine(place) is None:
            return False
        taken += met
    return sorted(taken) == sorted(names)
