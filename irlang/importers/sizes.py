"""Sizes that a model leaves open, as integers that remember what they are made of.

A `Dim` is an integer: that of one example, by which every comparison is decided. Sums, products and
quotients of it are `Dim`s again and know their text (`2 * N + 1`), so that the shapes which follow
from definitions, and the attributes which follow from shapes, are written for every size. Whoever
uses it must make sure that no decision hung on the example: a text that comes out the same for
other examples is right for those too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Monomial = tuple[str, ...]  # the factors, in order; () is the number 1


class Dim(int):
    """An integer with its text. terms: the coefficient of every product of symbols."""

    terms: dict[Monomial, int]

    def __new__(cls, value: int, terms: Mapping[Monomial, int]) -> Dim:
        """`value` in the example, the sum of `terms` in general."""
        made = super().__new__(cls, value)
        made.terms = dict(terms)
        return made

    @classmethod
    def symbol(cls, name: str, value: int) -> Dim:
        """A size by its name."""
        return cls(value, {(name,): 1})

    def __add__(self, other: Any) -> Any:
        return _sum(self, other, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return _sum(self, other, -1)

    def __rsub__(self, other: Any) -> Any:
        return _sum(-self, other, 1)

    def __neg__(self) -> Any:
        return Dim(-int(self), {m: -c for m, c in self.terms.items()})

    def __mul__(self, other: Any) -> Any:
        if not _whole(other):
            return int(self) * other
        found: dict[Monomial, int] = {}
        for m, c in self.terms.items():
            for n, d in _terms(other).items():
                key = tuple(sorted((*m, *n)))
                found[key] = found.get(key, 0) + c * d
        return _made(int(self) * int(other), found)

    __rmul__ = __mul__

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        if modulus is not None or not _whole(other) or isinstance(other, Dim) or other < 1:
            return pow(int(self), other, modulus)
        result: Any = self
        for _ in range(other - 1):
            result = result * self
        return result

    def __floordiv__(self, other: Any) -> Any:
        return _quotient(self, other)[0] if _whole(other) else int(self) // other

    def __rfloordiv__(self, other: Any) -> Any:
        return _quotient(other, self)[0] if _whole(other) else other // int(self)

    def __mod__(self, other: Any) -> Any:
        return _quotient(self, other)[1] if _whole(other) else int(self) % other

    def __rmod__(self, other: Any) -> Any:
        return _quotient(other, self)[1] if _whole(other) else other % int(self)

    def __abs__(self) -> Any:
        return -self if self < 0 else self

    def __str__(self) -> str:
        text = ""
        for monomial, coefficient in sorted(self.terms.items(), key=_order):
            sign = "-" if coefficient < 0 else "+"
            lone = coefficient == 1 or (coefficient == -1 and bool(text))
            part = _product(monomial, abs(coefficient), lone)
            text += f" {sign} {part}" if text else part if sign == "+" else f"-{part}"
        return text

    __repr__ = __str__


def is_open(value: Any) -> bool:
    """Whether a number is not the same for all sizes."""
    return isinstance(value, Dim)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _terms(value: int) -> dict[Monomial, int]:
    return value.terms if isinstance(value, Dim) else {(): int(value)}


def _made(value: int, terms: dict[Monomial, int]) -> int:
    """A plain integer where no symbol is left."""
    terms = {monomial: c for monomial, c in terms.items() if c}
    return Dim(value, terms) if terms.keys() - {()} else value


def _sum(left: int, right: Any, sign: int) -> Any:
    if not _whole(right):
        return int(left) + sign * right
    found = dict(_terms(left))
    for monomial, c in _terms(right).items():
        found[monomial] = found.get(monomial, 0) + sign * c
    return _made(int(left) + sign * int(right), found)


def _quotient(left: int, right: int) -> tuple[int, int]:
    """Quotient and remainder, toward minus infinity; a zero divisor raises as integers do."""
    quotient, remainder = divmod(int(left), int(right))
    exact = _divided(_terms(left), _terms(right))
    if exact is not None:
        return _made(quotient, exact), 0
    texts = (f"({value})" if _binary(value) else str(value) for value in (left, right))
    over = " {} ".join(texts)
    atoms = (over.format("//"), over.format("%"))
    return Dim(quotient, {(atoms[0],): 1}), Dim(remainder, {(atoms[1],): 1})


def _divided(left: dict[Monomial, int], right: dict[Monomial, int]) -> dict[Monomial, int] | None:
    """The quotient where nothing remains, whatever the sizes; sizes are not zero."""
    if len(right) > 1:
        # a multiple of the whole divisor
        first = next(iter(right))
        if first not in left or left.keys() != right.keys() or left[first] % right[first]:
            return None
        factor = left[first] // right[first]
        return {(): factor} if all(left[m] == factor * right[m] for m in right) else None
    ((divisor, by),) = right.items()
    found: dict[Monomial, int] = {}
    for monomial, c in left.items():
        rest = list(monomial)
        for factor_ in divisor:
            if factor_ not in rest:
                return None
            rest.remove(factor_)
        if c % by:
            return None
        found[tuple(rest)] = c // by
    return found


def _binary(value: int) -> bool:
    """Whether the text of a number needs brackets as an operand of a quotient."""
    text = str(value)
    return " " in text or text.startswith("-")


def _product(monomial: Monomial, coefficient: int, lone: bool) -> str:
    """lone: a single factor needs no brackets."""
    if not monomial:
        return str(coefficient)
    bare = lone and len(monomial) == 1
    factors = [name if bare or " " not in name else f"({name})" for name in monomial]
    return " * ".join(factors if coefficient == 1 else [str(coefficient), *factors])


def _order(item: tuple[Monomial, int]) -> tuple[bool, int, Monomial]:
    """Positive terms first, then longer products, the number last."""
    monomial, coefficient = item
    return coefficient < 0, -len(monomial), monomial
