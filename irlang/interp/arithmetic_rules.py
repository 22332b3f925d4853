"""Functions of several arguments over intervals, where the corners do not tell: a pole, a sign."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from irlang.interp.interval import INT64, Piece
from irlang.scalar import SCALARS, WHOLE
from irlang.scalar_row import Scalar

if TYPE_CHECKING:
    from irlang.interp.arithmetic import Arithmetic

_INF = math.inf
_TOP = float(np.finfo(np.float64).max)
_EXPONENTS = 64  # integers that are tried one by one


@dataclass(slots=True)
class Found:
    """What an operation may give, piece by piece."""

    pieces: list[Piece]
    nan: bool = False
    below: bool = False
    above: bool = False

    def add(self, value: float) -> None:
        """One more number, finite or not."""
        if value != value:
            self.nan = True
        elif value == _INF:
            self.above = True
        elif value == -_INF:
            self.below = True
        else:
            self.pieces.append((value, value))

    def anything(self, largest: float) -> None:
        """All numbers, finite or not."""
        self.nan = self.below = self.above = True
        self.pieces.append((-largest, largest))


@dataclass(frozen=True, slots=True)
class Case:
    """A function on an interval for every argument. whole: which have integers only. kind: of the
    result. found: where it is put.
    """

    own: Arithmetic
    row: Scalar
    pieces: Sequence[Piece]
    whole: Sequence[bool]
    kind: str
    found: Found


def _divide(case: Case) -> None:
    top, (low, high) = case.pieces
    least = 1 if case.whole[1] else case.own.least
    if low <= 0 <= high:
        if case.kind == "real":
            case.found.nan |= top[0] <= 0 <= top[1]
            if top[0] < 0 or top[1] > 0:  # a zero has either sign
                case.found.above = case.found.below = True
        else:
            case.found.pieces.append((0, 0))  # what NumPy gives
    for part in ((low, min(high, -least)), (max(low, least), high)):
        if part[0] <= part[1]:
            case.own.corners(case.row, (top, part), case.kind, case.found)


def _remainder(case: Case) -> None:
    (low, high), (least, largest) = case.pieces
    if least <= 0 <= largest:
        if case.kind == "real":
            case.found.nan = True
        else:
            case.found.pieces.append((0, 0))  # what NumPy gives
    if case.kind == "int" and least == largest > 0 and low // least == high // least:
        start = low // least * least
        case.found.pieces.append((low - start, high - start))
        return
    edge = 1 if case.kind == "int" else 0  # rounding may reach the divisor itself
    ends = (min(least + edge, 0), max(largest - edge, 0))
    if low >= 0 and least > 0:
        ends = (0, min(ends[1], high))
    case.found.pieces.append(ends)


def _power(case: Case) -> None:
    (low, high), (least, largest) = case.pieces
    if high >= 0:
        _positive_power(case, (max(low, 0.0), high), (least, largest), case.found)
    if low >= 0:
        return
    if least < largest and not (case.whole[1] and largest - least <= _EXPONENTS):
        case.found.anything(case.own.largest)
        return
    whole = [least] if least == largest else range(int(least), int(largest) + 1)
    for exponent in whole:
        if not float(exponent).is_integer():
            case.found.nan = True
            continue
        mirrored = Found([])
        _positive_power(case, (max(-high, 0.0), -low), (exponent, exponent), mirrored)
        odd = int(exponent) % 2 == 1
        case.found.pieces += [(-b, -a) for a, b in mirrored.pieces] if odd else mirrored.pieces
        case.found.below |= odd and mirrored.above
        case.found.above |= not odd and mirrored.above


def _positive_power(case: Case, base: Piece, exponent: Piece, found: Found) -> None:
    low, high = base
    own, row = case.own, case.row
    if low == 0 and exponent[0] < 0:
        found.above = True
        if exponent[1] >= 0:
            found.pieces.append((0.0, 1.0))
        if high == 0:
            return
        low = own.least
    with_ends = {(a, b) for a in (low, high) for b in exponent}
    values = [min(float(row.numpy(np.float64(a), np.float64(b))), _TOP) for a, b in with_ends]
    ends = own.outward(min(values), max(values), row.ulps)
    floor = 1.0 if low >= 1 and exponent[0] >= 0 else 0.0
    ceiling = 1.0 if high <= 1 and exponent[0] >= 0 else _INF
    low, high = max(ends[0], floor), min(ends[1], ceiling)
    found.above |= high > own.largest
    if low <= own.largest:
        found.pieces.append((low, min(high, own.largest)))


def _bits(case: Case) -> None:
    """Any integer; one that has no more bits than its arguments where they are not negative."""
    if all(low == high for low, high in case.pieces):
        value = int(case.row.exact(*(int(low) for low, _ in case.pieces)))
        case.found.pieces.append((value, value))
    elif case.row.name.startswith("bit_") and all(low >= 0 for low, _ in case.pieces[1:]):
        most = max(int(high).bit_length() for _, high in case.pieces)
        positive = len(case.pieces) > 1 and case.pieces[0][0] >= 0
        case.found.pieces.append((0, 2**most - 1) if positive else (INT64[0], 2**64 - 1))
    else:
        case.found.pieces.append((INT64[0], 2**64 - 1))


def _image(case: Case) -> None:
    """By the row's own bounds."""
    ends = case.row.image(*case.pieces) if case.row.image is not None else None
    if ends is None:
        case.found.anything(case.own.largest)
        return
    for end in ends:
        if math.isinf(end):
            case.found.add(end)
    low, high = max(ends[0], -_TOP), min(ends[1], _TOP)
    case.own.put(case.found, low, high, case.row.ulps, case.kind)


Rule = Callable[[Case], None]
RULES: dict[str, Rule] = {
    **{row.name: _image for row in SCALARS.values() if row.arity > 1 and row.image is not None},
    **dict.fromkeys(WHOLE, _bits),
    "/": _divide,
    "//": _divide,
    "ceildiv": _divide,
    "%": _remainder,
    "pow": _power,
}
