"""Scalar functions over sets of numbers, rounded in a target's element type.

What a function gives on sets contains what it gives on any of their numbers. How it goes over an
interval is read from its row of `irlang.scalar`: domain, monotone pieces, allowance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise, product
from operator import add, mul, sub, truediv

import numpy as np

from irlang.dtypes import DTYPES, integer_range
from irlang.interp.arithmetic_rules import RULES, Case, Found
from irlang.interp.interval import (
    INT64,
    NOTHING,
    Numbers,
    Origin,
    Piece,
    may,
    merged_pieces,
    truth,
    wrapped,
)
from irlang.scalar import SCALARS
from irlang.scalar_row import Scalar

_INF = math.inf
_FEW = 2  # whole numbers, beside the first, that a function takes
_STEEP = 2.0**10  # times a number that is next to 0, what a function makes of it
# as IEEE 754 has them, with no detour by arrays; divisors are not 0 here
_DOUBLE: dict[str, Callable[..., float]] = {"+": add, "-": sub, "*": mul, "/": truediv}
_TOP = float(np.finfo(np.float64).max)


class Arithmetic:
    """Operations on sets of numbers, rounded in an element type.

    dtype: a name of `irlang.dtypes`. flush: whether denormal numbers may be flushed to zero,
    and values of a function that a library loses.
    far: whether numbers have the exponents of f64, as targets may compute with inside a call.
    """

    def __init__(self, dtype: str, flush: bool = False, far: bool = False) -> None:
        row = DTYPES[dtype]
        if row.stored or row.kind != "real":
            row = DTYPES["f32"]
        if far:
            row = replace(DTYPES["f64"], name=row.name, unit=row.unit)
        self.row = row
        self.wide = row.bits == 64
        self.largest = row.largest
        self.flush = flush
        # the least number above 0: a denormal one, unless those may be flushed
        self.least = row.tiny if flush else 2 * row.unit * row.tiny

    # ---- rounding

    def changed_by(self, roundings: int) -> float:
        """The share by which a number may change that is rounded so often, each time by a unit."""
        share = roundings * self.row.unit
        return share / (1 - share) if share < 1 else math.inf

    def nearest(self, value: float) -> float:
        """A number rounded to the type; infinite beyond its largest."""
        if self.wide:
            return float(value)
        try:
            return float(np.asarray(float(value)).astype(self.row.numpy))
        except OverflowError:
            return math.copysign(_INF, value)

    def outward(self, low: float, high: float, ulps: float) -> Piece:
        """Ends beyond which nothing lies that is off by the allowance; they may be infinite."""
        positive, negative = low >= 0, high <= 0  # an allowance does not reach over 0
        if ulps > 0.5:
            step = 2 * self.row.unit * ulps
            low -= step * max(abs(low), self.row.tiny)
            high += step * max(abs(high), self.row.tiny)
        if not self.wide or ulps > 0.5:
            low, high = math.nextafter(low, -_INF), math.nextafter(high, _INF)
        low, high = self.nearest(low), self.nearest(high)
        low, high = max(low, 0.0) if positive else low, min(high, 0.0) if negative else high
        if self.flush:
            low = 0.0 if 0 < low < self.row.tiny else low
            high = 0.0 if -self.row.tiny < high < 0 else high
        return low, high

    def rounded(self, low: float, high: float, ulps: float = 0.5) -> Numbers:
        """What a result between two exact numbers may be once it is rounded."""
        low, high = self.outward(low, high, ulps)
        ends = max(low, -self.largest), min(high, self.largest)
        pieces = (ends,) if ends[0] <= ends[1] else ()
        return Numbers(pieces, False, low == -_INF, high == _INF)

    def real(self, value: Numbers) -> Numbers:
        """A set of numbers of another type, rounded to this one."""
        found = Found([], value.nan, value.below, value.above)
        for low, high in value.pieces:
            low, high = self.nearest(low), self.nearest(high)
            found.below |= low == -_INF
            found.above |= high == _INF
            if low <= self.largest and high >= -self.largest:
                found.pieces.append((max(low, -self.largest), min(high, self.largest)))
        return replace(
            value,
            pieces=merged_pieces(found.pieces),
            nan=found.nan,
            below=found.below,
            above=found.above,
        )

    # ---- application of a scalar function

    def apply(
        self,
        function: str,
        args: Sequence[Numbers],
        kind: str,
        origin: Origin | None = None,
        fused: bool = False,
    ) -> tuple[Numbers, bool]:
        """What a function gives on sets, and whether it makes NaN or Inf out of finite numbers.

        kind: `real`, `int` or `bool`, of the result. origin: what the result names as its place.
        fused: whether an argument may be a product that is not rounded by itself.
        """
        row = SCALARS[function]
        if any(arg.empty for arg in args):
            return NOTHING, False
        if row.kind == "bool":
            return _judged(function, args), False
        found = Found([])
        whole = _stays_whole(row, args, kind)
        rule = RULES.get(function)
        split = function == "*" and kind == "real" and not whole
        for pieces in product(*(_by_sign(arg) if split else arg.pieces for arg in args)):
            if rule is not None:
                rule(Case(self, row, pieces, [arg.whole for arg in args], kind, found))
            elif row.arity == 1:
                self._unary(row, *pieces[0], kind, found)
            else:
                self.corners(row, pieces, kind, found)
        originates = found.nan or found.below or found.above
        # what follows from an earlier place of the call is that one's doing
        earlier = any(arg.news for arg in args)
        origins = frozenset[Origin]().union(*(arg.origins for arg in args))
        if originates and origin is not None and not earlier:
            origins |= {origin}
        if not all(arg.finite for arg in args):
            passed = _passed(row, args)
            new = passed.nan and not any(arg.nan or arg.origins for arg in args)
            if new and origin:
                originates, origins = True, origins | {origin}
            found.nan, found.below = found.nan or passed.nan, found.below or passed.below
            found.above = found.above or passed.above
            found.pieces += passed.pieces
        pieces = merged_pieces(found.pieces)
        if function in ("+", "-") and kind == "real" and not fused:
            pieces = self._beside_zero(pieces, args)
        if whole and kind == "real" and row.derivative == ("",):
            pieces = tuple(one for piece in pieces for one in _steps(*piece))
        if kind == "int":
            pieces = wrapped(pieces, INT64[0], 2**64 - 1)
        made = Numbers(pieces, found.nan, found.below, found.above, whole)
        return made if made.finite else replace(made, origins=origins), originates and not earlier

    def _beside_zero(self, pieces: tuple[Piece, ...], args: Sequence[Numbers]) -> tuple[Piece, ...]:
        """A sum less what is too close to 0.

        Where it is much smaller than its terms these are of a size, so that it is exact, and a
        multiple of the last place of either: 0, or no less than that.
        """
        size = max(_least_size(arg) for arg in args)
        gap = 0.5 * self.row.unit * size
        if gap <= self.least:
            return pieces
        found: list[Piece] = []
        for low, high in pieces:
            zero = [(0.0, 0.0)] * (low <= 0 <= high)
            sides = (low, min(high, -gap)), *zero, (max(low, gap), high)
            found += [(a, b) for a, b in sides if a <= b]
        return merged_pieces(found)

    def put(self, found: Found, low: float, high: float, ulps: float, kind: str) -> None:
        """Adds what lies between two exact results."""
        if kind != "real" or ulps == 0:
            found.pieces.append((low, high))
            return
        low, high = self.outward(low, high, ulps)
        found.below |= low == -_INF
        found.above |= high == _INF
        if low <= self.largest and high >= -self.largest:
            found.pieces.append((max(low, -self.largest), min(high, self.largest)))

    def _unary(self, row: Scalar, low: float, high: float, kind: str, found: Found) -> None:
        """By the domain and the monotone pieces of a function of one argument."""
        start, stop = row.domain
        if low < start or high > stop:
            found.nan = True
            low, high = max(low, start), min(high, stop)
            if low > high:
                return
        if row.monotone is None:
            self._image(row, low, high, found)
            return
        if kind == "int" and isinstance(low, int) and isinstance(high, int):
            turns = [int(turn) for turn in row.monotone if low < turn < high]
            whole = [int(row.exact(x)) for x in (low, *turns, high)]
            found.pieces.append((min(whole), max(whole)))
            return
        for left, right in _between(low, high, row.monotone):
            values = [float(row.numpy(np.float64(x))) for x in (left, right)]
            for at, x in enumerate((left, right)):
                if math.isinf(values[at]):  # a pole: the numbers beside it are finite
                    found.add(values[at])
                    if x == 0:  # of either sign
                        found.add(float(row.numpy(np.float64(-0.0))))
                    beside = self._beside(x, right if at == 0 else left)
                    values[at] = float(row.numpy(np.float64(beside)))
            if any(math.isinf(v) for v in values):  # beyond double precision
                values = [max(min(v, _TOP), -_TOP) for v in values]
            least = 2 * self.row.unit * self.row.tiny
            if left == values[0] == 0 and least < right and kind == "real":
                first = float(row.numpy(np.float64(least)))
                if first >= _STEEP * least:  # what is not 0 is far from it
                    found.pieces.append((0.0, 0.0))
                    left, values[0] = least, first
            ends = list(zip(values, (left, right), strict=True))
            self._monotone(row, ends if values[0] <= values[1] else ends[::-1], kind, found)

    def _monotone(
        self, row: Scalar, ends: list[tuple[float, float]], kind: str, found: Found
    ) -> None:
        """Between the values at two arguments; exact ones, and limits, are not passed."""
        if row.ulps <= 0.5 or kind != "real":
            self.put(found, ends[0][0], ends[1][0], row.ulps, kind)
            return
        (low, at_low), (high, at_high) = ends
        least, largest = self._limits(row)
        wide_low, wide_high = self.outward(low, high, row.ulps)
        if _is_exact(at_low, low):
            wide_low = low
        if _is_exact(at_high, high):
            wide_high = high
        wide_low, wide_high = max(wide_low, least), min(wide_high, largest)
        if self.flush and not self.wide and 0 < wide_low < row.lost:
            wide_low = 0.0
        found.below |= wide_low < -self.largest
        found.above |= wide_high > self.largest
        if wide_low <= self.largest and wide_high >= -self.largest:
            found.pieces.append((max(wide_low, -self.largest), min(wide_high, self.largest)))

    def _limits(self, row: Scalar) -> Piece:
        """Between which numbers of the type all values of a function lie."""
        least, largest = _limits(row.name)
        return min(least, self.nearest(least)), max(largest, self.nearest(largest))

    def _beside(self, pole: float, toward: float) -> float:
        """The number next to a pole."""
        if pole == 0:
            return math.copysign(self.least, toward) if toward else 0.0
        up = toward > pole
        step = 2 * self.row.unit * abs(pole) * (0.5 if up == (pole < 0) else 1.0)
        return self.nearest(pole + step if up else pole - step) if toward != pole else pole

    def _image(self, row: Scalar, low: float, high: float, found: Found) -> None:
        """By the row's own bounds; anything where it has none."""
        ends = row.image(low, high) if row.image is not None else None
        if ends is None:
            found.pieces.append((-self.largest, self.largest))
            found.nan = found.above = found.below = True
            return
        least, largest = self._limits(row)
        for end in ends:
            if math.isinf(end):
                found.add(end)
        top = _TOP
        wide = self.outward(max(ends[0], -top), min(ends[1], top), row.ulps)
        kept = max(wide[0], least, -self.largest), min(wide[1], largest, self.largest)
        found.below |= max(wide[0], least) < -self.largest
        found.above |= min(wide[1], largest) > self.largest
        found.pieces.append(kept)

    def corners(self, row: Scalar, pieces: Sequence[Piece], kind: str, found: Found) -> None:
        """Of a function that is monotone in every argument while the others stay."""
        values: list[float]
        if kind == "int":
            values = [int(row.exact(*map(int, corner))) for corner in product(*pieces)]
        else:
            at = _DOUBLE.get(row.name) or _of_numpy(row)
            values = [at(*map(float, corner)) for corner in set(product(*pieces))]
        if any(v != v for v in values):
            found.nan = True
            values = [v for v in values if v == v]
        if values:
            ulps = row.ulps if row.name in ("max", "min") else max(row.ulps, 0.5)
            self.put(found, min(values), max(values), ulps, kind)


def _steps(low: float, high: float) -> list[Piece]:
    """The few whole numbers that a function takes which has no others, as a sign is."""
    if high - low > _FEW:
        return [(low, high)]
    return [(float(at), float(at)) for at in range(math.ceil(low), math.floor(high) + 1)]


def _of_numpy(row: Scalar) -> Callable[..., float]:
    """What a function gives for numbers, by NumPy."""
    return lambda *args: float(row.numpy(*map(np.float64, args)))


def _by_sign(value: Numbers) -> tuple[Piece, ...]:
    """The pieces of a set; of whole numbers 0 and those on either side of it by themselves."""
    if not value.whole or not value.holds(0.0):
        return value.pieces
    sides = (
        (low, high)
        for a, b in value.pieces
        for low, high in ((a, min(b, -1)), (0, 0), (max(a, 1), b))
    )
    return tuple((low, high) for low, high in sides if low <= high)


def _least_size(value: Numbers) -> float:
    """The least absolute value in a set of finite numbers."""
    if value.holds(0.0) or not value.finite:
        return 0.0
    return min((abs(end) for piece in value.pieces for end in piece), default=0.0)


def _between(low: float, high: float, turns: tuple[float, ...]) -> list[Piece]:
    if low == high:
        return [(low, high)]
    return list(pairwise([low, *(turn for turn in turns if low < turn < high), high]))


def _is_exact(argument: float, value: float) -> bool:
    """Whether every implementation gives exactly this: 1 at 0 for an exponential, and the like."""
    return argument in (0.0, 1.0, -1.0) and value in (0.0, 1.0, -1.0, 0.5)


@cache
def _limits(function: str) -> Piece:
    """Between which numbers all values of a function lie, from its ends and turns."""
    row = SCALARS[function]
    if row.image is not None:
        ends = row.image(*row.domain)
        return ends if ends is not None else (-_INF, _INF)
    if row.monotone is None:
        return -_INF, _INF
    at = (row.domain[0], *row.monotone, row.domain[1])
    values = [float(row.numpy(np.float64(x))) for x in at]
    return min(values), max(values)


def _stays_whole(row: Scalar, args: Sequence[Numbers], kind: str) -> bool:
    """Whether the result is an integer."""
    if kind == "int" or row.name in ("floor", "ceil", "round", "trunc", "sign", "int"):
        return True
    own = args[1:] if row.name == "select" else args
    return row.name in _WHOLE and all(arg.whole for arg in own)


_WHOLE = frozenset(
    {
        *("+", "-", "*", "//", "%", "neg", "abs", "sq", "max", "min", "select"),
        *("real", "about", "constant"),
    }
)


def _passed(row: Scalar, args: Sequence[Numbers]) -> Found:
    """What a function gives where an argument is NaN or infinite, at points that tell."""
    found = Found([])
    if any(arg.nan for arg in args):
        found.nan = True
    choices = []
    for arg in args:
        ends = {float(end) for piece in arg.pieces for end in piece}
        if any(low < 0 < high for low, high in arg.pieces):
            ends.add(0.0)
        infinite = ([-_INF] if arg.below else []) + ([_INF] if arg.above else [])
        choices.append([*sorted(ends), *infinite])
    for point in product(*choices):
        if any(map(math.isinf, point)):
            found.add(float(row.numpy(*map(np.float64, point))))
    if found.pieces:  # between these points the function is monotone
        found.pieces = [(min(p[0] for p in found.pieces), max(p[1] for p in found.pieces))]
    return found


def _judged(function: str, args: Sequence[Numbers]) -> Numbers:
    """A comparison, a connective or a test."""
    if function == "not":
        return truth(not one for one in (True, False) if may(args[0], one))
    if function in ("and", "or"):
        both = product(*([one for one in (True, False) if may(arg, one)] for arg in args))
        return truth(all(pair) if function == "and" else any(pair) for pair in both)
    a = args[0]
    if function == "isnan":
        return truth([*([True] if a.nan else []), *([False] if not _only_nan(a) else [])])
    if function == "isinf":
        rest = bool(a.pieces) or a.nan
        return truth([*([True] if a.below or a.above else []), *([False] if rest else [])])
    b = args[1]
    can: set[bool] = set()
    if a.nan or b.nan:
        can.add(function == "!=")
    if _only_nan(a) or _only_nan(b):
        return truth(can)
    low, high = a.low, a.high
    least, largest = b.low, b.high
    if function in (">", ">="):
        low, high, least, largest = least, largest, low, high
    if function in ("<", ">"):
        can |= {True} if low < largest else set()
        can |= {False} if high >= least else set()
    elif function in ("<=", ">="):
        can |= {True} if low <= largest else set()
        can |= {False} if high > least else set()
    else:
        same = any(p[0] <= q[1] and q[0] <= p[1] for p in a.pieces for q in b.pieces)
        same = same or (a.below and b.below) or (a.above and b.above)
        always = low == high == least == largest
        can |= {function == "=="} if same else set()
        can |= {function != "=="} if not always else set()
    return truth(can)


def _only_nan(value: Numbers) -> bool:
    return value.nan and not (value.pieces or value.below or value.above)


def stored(value: Numbers, dtype: str, own: Arithmetic) -> Numbers:
    """What a set becomes when it is assigned to a tensor of a type."""
    row = DTYPES[dtype]
    if row.kind == "bool":
        can = [True] if any(p != (0, 0) for p in value.pieces) or not value.finite else []
        return truth([*can, *([False] if value.holds(0) else [])])
    if row.kind == "int":
        least, largest = integer_range(dtype)
        whole = [(math.trunc(a), math.trunc(b)) for a, b in value.pieces]
        if not value.finite:
            whole = [(least, largest)]
        return Numbers(wrapped(merged_pieces(whole), least, largest), whole=True)
    narrow = own if own.row.name == row.name else Arithmetic(dtype, own.flush)
    return narrow.real(value) if narrow.row.unit > own.row.unit or not row.stored else value
