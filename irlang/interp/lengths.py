"""Lengths of the factors of sums of products, and what is no less than one.

The length of what is divided by its own is 1 at most, of a sum no more than both; that of a row of
a tensor is known by how the tensor was made.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import TypeGuard

from irlang import equations as eq
from irlang.affine import affine
from irlang.interp.matching import match
from irlang.interp.polynomials import Element
from irlang.interp.range_eval import Limits
from irlang.interp.shares import Shares
from irlang.interp.spans import plain_axes, repeated, span
from irlang.interp.unfolding import settled

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


class Lengths(Shares):
    """An evaluator that knows how long the factors of sums of products are."""

    def of_products(self, expr: eq.Expr, box: Limits) -> Products | None:
        """A sum of products; None for anything else."""
        term = self.beside_zero(expr, box)
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

    def _of_sizes(self, expr: eq.Expr, box: Limits) -> Products | None:
        """A sum of sizes, each once: no more than their length as often as the root of their
        number.
        """
        terms = self._summed(expr, box)
        if terms is None:
            return None
        body, inner = terms
        sized = next((one.args[0] for one in self.looks(body, inner) if is_absolute(one)), None)
        names = tuple(inner.keys() - box.keys())
        return None if sized is None else Products((sized, eq.Const(1.0)), inner, names)

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
                found = self._divisors(other, sum_.inner) if scaled else ((other, 1.0),)
                best = min(best, *(self._length_by(top, *one, sum_) for one in found), math.inf)
        return best

    def _length_by(self, top: eq.Expr, divisor: eq.Expr, more: float, sum_: Products) -> float:
        """The same of what is divided by its own length, and multiplied by so much at most."""
        best, least = math.inf, self.value(divisor, sum_.inner, {}).low
        for part, times, few in self._multiples(top, sum_.inner) if least > 0 else ():
            share = self.of_length(divisor, part, sum_, False)
            if share:
                lost, by = self.lost_under(divisor, 4 * sum_.count * self.own.least, sum_.inner)
                lost = times * lost + 2 * few * sum_.count * self.own.least
                own = times * (1 + 12 * self.own.row.unit) / share / by + lost / least
                best = min(best, own * more)
        if more != 1.0:  # the quotient of both may have lost digits
            size = self.value(top, sum_.inner, {}).magnitude
            best += math.sqrt(sum_.count) * size * self.own.least
        return best

    def _divisors(self, factor: eq.Expr, box: Limits) -> Iterator[tuple[eq.Expr, float]]:
        """What an expression is the reciprocal of, as often as a number; it may be the lesser of
        that and another.
        """
        divisor = self.divisor_of(factor, box)
        look = self.meaning(factor, box)
        if divisor is not None:
            yield divisor, 1.0
        elif isinstance(look, eq.Apply) and look.function == "/":
            size = self.value(look.args[0], box, {})
            if size.finite:
                yield look.args[1], size.magnitude
        elif isinstance(look, eq.Apply) and look.function == "*":
            for one, other in (look.args, look.args[::-1]):
                size, divisor = self.value(other, box, {}), self.divisor_of(one, box)
                if divisor is not None and size.finite:
                    yield divisor, size.magnitude
        elif isinstance(look, eq.Apply) and look.function == "min":
            positive = all(self.value(one, box, {}).low >= 0 for one in look.args)
            for one in look.args if positive else ():
                yield from self._divisors(one, box)
        elif isinstance(look, eq.Apply) and look.function == "max":  # of what has no least number
            for one, other in (look.args, look.args[::-1]):
                if self.value(other, box, {}).high <= self.value(one, box, {}).low:
                    yield from self._divisors(one, box)

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
                return 1 - self.own.changed_by(sum_.count + 2)
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
        if len(set(reads)) < len(reads):
            return 0.0  # two are one element, whose square is there once
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
        length = self._length(row, sum_)
        return length * length * (1 + 4 * self.own.row.unit)  # infinite where `**` would raise

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

    def _summed(self, expr: eq.Expr, box: Limits) -> tuple[eq.Expr, Limits] | None:
        """The terms of a sum, and the box with their indices."""
        term = self.meaning(expr, box)
        if not isinstance(term, eq.Reduce) or term.kind != "sum" or term.where is not None:
            return None
        inner = self.inner_box(term, box)
        return None if inner is None or term.body is None else (term.body, inner)


def is_absolute(expr: eq.Expr) -> TypeGuard[eq.Apply]:
    """Whether an expression is the size of another."""
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
