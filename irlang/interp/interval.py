"""Sets of numbers that a value may be: a few intervals, NaN, infinities, and who made them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

Piece = tuple[float, float]
Origin = tuple[str, int]  # a place of an expansion: target of an equation, number of the operation
REPORTED: Origin = ("", -1)  # a place of an earlier call: what it made is no news
MOST = 3  # intervals of a set
INT64 = (-(2**63), 2**63 - 1)
_INF = math.inf


@dataclass(frozen=True, slots=True)
class Numbers:
    """A set of numbers.

    pieces: closed intervals, disjoint, in order, of finite numbers. nan, below, above: whether NaN,
    -Inf, +Inf are in the set. whole: whether the finite numbers are integers. origins: the places
    that made what is not finite out of finite numbers; none where it was given.
    """

    pieces: tuple[Piece, ...] = ()
    nan: bool = False
    below: bool = False
    above: bool = False
    whole: bool = False
    origins: frozenset[Origin] = frozenset()

    @property
    def low(self) -> float:
        """The least number; -Inf where it is in the set, +Inf for none."""
        return -_INF if self.below else self.pieces[0][0] if self.pieces else _INF

    @property
    def high(self) -> float:
        """The largest number; +Inf where it is in the set, -Inf for none."""
        return _INF if self.above else self.pieces[-1][1] if self.pieces else -_INF

    @property
    def finite(self) -> bool:
        """Whether there are finite numbers only."""
        return not (self.nan or self.below or self.above)

    @property
    def empty(self) -> bool:
        """Whether there is nothing in the set."""
        return not self.pieces and self.finite

    @property
    def only(self) -> float | None:
        """The number, where there is one only."""
        if len(self.pieces) == 1 and self.finite and self.pieces[0][0] == self.pieces[0][1]:
            return self.pieces[0][0]
        return None

    @property
    def magnitude(self) -> float:
        """The largest absolute value of a finite number; 0 for none."""
        return max(-self.pieces[0][0], self.pieces[-1][1], 0.0) if self.pieces else 0.0

    def holds(self, number: float) -> bool:
        """Whether a number is in the set."""
        if math.isnan(number):
            return self.nan
        if math.isinf(number):
            return self.above if number > 0 else self.below
        return any(low <= number <= high for low, high in self.pieces) and (
            not self.whole or float(number).is_integer()
        )

    @property
    def news(self) -> frozenset[Origin]:
        """The places of the call itself that made what is not finite."""
        return self.origins - {REPORTED}

    def finite_part(self) -> Numbers:
        """The finite numbers; given infinities stay."""
        return Numbers(self.pieces, whole=self.whole) if self.origins else self

    def filled(self, largest: float) -> Numbers:
        """The set with all numbers up to `largest` on the sides where it has an infinity."""
        pieces = list(self.pieces)
        if pieces and self.above:
            pieces[-1] = (pieces[-1][0], max(pieces[-1][1], largest))
        if pieces and self.below:
            pieces[0] = (min(pieces[0][0], -largest), pieces[0][1])
        return replace(self, pieces=tuple(pieces))

    def reported(self) -> Numbers:
        """The same set, as the calls see it that come after."""
        return replace(self, origins=frozenset((REPORTED,))) if self.origins else self

    def between(self, low: float, high: float) -> Numbers:
        """The numbers from `low` to `high`; NaN is none of them."""
        if self.whole:
            low = math.ceil(low) if math.isfinite(low) else low
            high = math.floor(high) if math.isfinite(high) else high
        cut = tuple((max(a, low), min(b, high)) for a, b in self.pieces if a <= high and b >= low)
        below, above = self.below and low == -_INF, self.above and high == _INF
        origins = self.origins if below or above else frozenset[Origin]()
        return Numbers(cut, False, below, above, self.whole, origins)


NOTHING = Numbers()


def number(value: float) -> Numbers:
    """The set of one number."""
    if isinstance(value, bool):
        value = int(value)
    if math.isnan(value):
        return Numbers(nan=True)
    if math.isinf(value):
        return Numbers(below=value < 0, above=value > 0)
    return Numbers(((value, value),), whole=float(value).is_integer())


def interval(low: float, high: float, whole: bool = False) -> Numbers:
    """The numbers from `low` to `high`; infinite ends are in the set."""
    if whole:
        low = math.ceil(low) if math.isfinite(low) else low
        high = math.floor(high) if math.isfinite(high) else high
    if low > high:
        return NOTHING
    below, above = low == -_INF, high == _INF
    ends = (-np.finfo(float).max if below else low, np.finfo(float).max if above else high)
    return Numbers((ends,), False, below, above, whole)


def truth(can: Iterable[bool]) -> Numbers:
    """A truth value that may be any of these."""
    found = set(can)
    return Numbers(merged_pieces([(int(one), int(one)) for one in found]), whole=True)


def may(value: Numbers, which: bool) -> bool:
    """Whether a truth value may be that."""
    return value.holds(1 if which else 0) or (which and value.nan)


def merged_pieces(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """Disjoint intervals in order, the closest joined until there are few; a gap at 0 goes last."""
    ordered: list[Piece] = []
    for low, high in sorted(pieces):
        if ordered and low <= ordered[-1][1]:
            ordered[-1] = (ordered[-1][0], max(ordered[-1][1], high))
        else:
            ordered.append((low, high))
    while len(ordered) > MOST:

        def width(i: int) -> tuple[bool, float]:
            left, right = ordered[i][1], ordered[i + 1][0]
            return (left < 0 < right or (left == 0) != (right == 0)), right - left

        at = min(range(len(ordered) - 1), key=width)
        ordered[at : at + 2] = [(ordered[at][0], ordered[at + 1][1])]
    return tuple(ordered)


def join(*sets: Numbers) -> Numbers:
    """All that is in one of the sets."""
    present = [one for one in sets if not one.empty]
    if len(present) <= 1:
        return present[0] if present else NOTHING
    first = present[0]
    if all(one is first or one == first for one in present):
        return first
    return Numbers(
        merged_pieces(piece for one in present for piece in one.pieces),
        any(one.nan for one in present),
        any(one.below for one in present),
        any(one.above for one in present),
        all(one.whole or not one.pieces for one in present),
        frozenset[Origin]().union(*(one.origins for one in present)),
    )


def meet(one: Numbers, other: Numbers) -> Numbers:
    """The finite numbers of `one` that `other` has too; what is not finite stays as in `one`."""
    if one == other or not one.pieces:
        return one
    cut = [
        (max(a, c), min(b, d)) for a, b in one.pieces for c, d in other.pieces if a <= d and c <= b
    ]
    return replace(one, pieces=merged_pieces(cut), whole=one.whole or other.whole)


def hull(value: Numbers) -> Numbers:
    """The least interval around a set."""
    if len(value.pieces) < 2:
        return value
    return replace(value, pieces=((value.pieces[0][0], value.pieces[-1][1]),))


def wrapped(pieces: tuple[Piece, ...], least: int, largest: int) -> tuple[Piece, ...]:
    """Integers in a type that wraps around: any of it where they do not fit."""
    if pieces and (pieces[0][0] < least or pieces[-1][1] > largest):
        return ((least, largest),)
    return pieces
