"""Reductions over sets of numbers: the terms come in parts, each a set and how many of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from irlang.interp.arithmetic import Arithmetic
from irlang.interp.interval import (
    INT64,
    REPORTED,
    Numbers,
    Origin,
    Piece,
    hull,
    interval,
    join,
    may,
    merged_pieces,
    number,
    truth,
)

_POWERS = 64  # factors that are multiplied one by one


@dataclass(frozen=True, slots=True)
class Part:
    """Terms: at least and at most so many numbers of a set, at these indices."""

    body: Numbers
    least: int
    most: int
    index: Numbers


def reduced(
    kind: str,
    parts: Sequence[Part],
    own_kind: str,
    own: Arithmetic,
    origin: Origin | None,
) -> tuple[Numbers, bool]:
    """A reduction, and whether it makes NaN or Inf out of finite numbers.

    kind: of the reduction; own_kind: `real`, `int` or `bool`, of its value.
    """
    if kind in ("all", "any"):
        return _logical(kind, parts), False
    if kind == "count":
        sure = sum(part.least for part in parts)
        return interval(sure, sum(part.most for part in parts), whole=True), False
    if kind in ("argmax", "argmin"):
        return join(*(part.index for part in parts)), False
    if kind == "the":
        return join(*(part.body for part in parts)), False
    found = _folded(kind, parts, own_kind, own)
    origins = frozenset[Origin]().union(*(part.body.origins for part in parts))
    finite = [replace(part, body=_finite(part.body)) for part in parts]
    same = all(part.body.finite for part in parts)
    originates = not (found if same else _folded(kind, finite, own_kind, own)).finite
    if found.nan and not any(part.body.nan or part.body.origins for part in parts):
        originates = True
    originates = originates and not origins - {REPORTED}
    if originates and origin is not None:
        origins |= {origin}
    return replace(found, origins=frozenset() if found.finite else origins), originates


def _folded(kind: str, parts: Sequence[Part], own_kind: str, own: Arithmetic) -> Numbers:
    if kind in ("max", "min"):
        return _extreme(kind, parts, own_kind)
    return total(parts, own_kind, own) if kind == "sum" else _product(parts, own_kind, own)


def _finite(body: Numbers) -> Numbers:
    return body if body.finite else Numbers(body.pieces, whole=body.whole)


def _logical(kind: str, parts: Sequence[Part]) -> Numbers:
    settles = kind == "any"
    can = [settles] if any(part.most and may(part.body, settles) for part in parts) else []
    sure = any(part.least and not may(part.body, not settles) for part in parts)
    return truth([*can, *([] if sure else [not settles])])


def _extreme(kind: str, parts: Sequence[Part], own_kind: str) -> Numbers:
    """The largest or least term: no less than any that is surely there."""
    flip = -1.0 if kind == "min" else 1.0
    floor = -math.inf
    for part in parts:
        if part.least and not part.body.empty:
            floor = max(floor, part.body.low if kind == "max" else -part.body.high)
    bodies = [part.body for part in parts if part.most]
    found = join(*bodies)
    if floor > -math.inf:
        nan, origins = found.nan, found.origins
        found = found.between(floor, math.inf) if flip > 0 else found.between(-math.inf, -floor)
        return replace(found, nan=nan, origins=origins)
    if all(part.least == 0 for part in parts):
        if own_kind == "int":
            return join(found, number(INT64[0] if kind == "max" else INT64[1]))
        return replace(found, below=found.below or flip > 0, above=found.above or flip < 0)
    return found


def total(parts: Sequence[Part], own_kind: str, own: Arithmetic) -> Numbers:
    """The sum of all terms in any order, each step rounded."""
    present = [part for part in parts if part.most and not part.body.empty]
    if not present:
        return number(0) if own_kind == "int" else Numbers(((0.0, 0.0),), whole=True)
    low = high = negative = positive = 0.0
    if own_kind == "int":
        low = high = 0
    whole, floor, ceiling = True, 0.0, 0.0
    for part in present:
        whole = whole and part.body.whole
        if not part.body.pieces:
            continue
        least, largest = part.body.pieces[0][0], part.body.pieces[-1][1]
        low += least * (part.most if least < 0 else part.least)
        high += largest * (part.most if largest > 0 else part.least)
        negative += max(-least, 0) * part.most
        positive += max(largest, 0) * part.most
        if part.least:
            floor, ceiling = max(floor, least), min(ceiling, largest)
    if own_kind == "int":
        if low < INT64[0] or high > 2**64 - 1:
            return interval(INT64[0], 2**64 - 1, whole=True)
        return interval(low, high, whole=True)
    count = sum(part.most for part in present)
    unit = own.row.unit * max(count - 1, 0)
    exact = whole and (negative + positive) * own.row.unit <= 0.5
    slack = 0.0 if exact else unit * (positive + negative)
    down = low if not slack or _adds_up(present, 0, own) else low - slack
    up = high if not slack or _adds_up(present, -1, own) else high + slack
    if not negative:  # no order makes a sum of such terms less than one of them
        down = max(down, low * (1 - unit), floor)
    if not positive:
        up = min(up, high * (1 - unit), ceiling)
    found = own.rounded(down, up)
    gap = 0.0 if negative else _gap(present)
    if gap:  # any order of such terms is none or no less than one that is not
        found = replace(found, pieces=_without((0.0, gap), found.pieces))
    if exact:
        found = replace(found, whole=True)
    over = positive * (1 + unit) > own.largest, negative * (1 + unit) > own.largest
    above = found.above or over[0] or any(part.body.above for part in present)
    below = found.below or over[1] or any(part.body.below for part in present)
    nan = any(part.body.nan for part in present) or (above and below)
    return replace(found, above=above, below=below, nan=nan)


def _gap(parts: Sequence[Part]) -> float:
    """What a term is at least that is not 0, none of them being negative; 0 where there is no
    number between 0 and the others that no term is.
    """
    ends = (piece[0] for part in parts for piece in part.body.pieces if piece != (0.0, 0.0))
    return min(ends, default=0.0)


def _without(gap: Piece, pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Pieces without the numbers inside a gap between 0 and another."""
    found: list[Piece] = []
    for low, high in pieces:
        if low <= gap[0] < gap[1] <= high:
            found += [(low, gap[0]), (gap[1], high)]
        else:
            found.append((low, high))
    return tuple(found)


def _adds_up(parts: Sequence[Part], end: int, own: Arithmetic) -> bool:
    """Whether the ends of all terms add up to what the type holds, in every order: to no step is
    anything lost. No order makes more of smaller terms then, since rounding keeps an order: the
    mean of probabilities is 1 at most.

    end: 0 for the lower ends, -1 for the upper ones.
    """
    step, size = math.inf, 0.0
    for part in parts:
        number_ = part.body.pieces[end][end] if part.body.pieces else math.nan
        if not math.isfinite(number_):
            return False
        if number_:
            above, below = number_.as_integer_ratio()
            step = min(step, (above & -above) / below)
            size += abs(number_) * part.most
    return step >= own.row.tiny and 2 * size * own.row.unit <= step


def _product(parts: Sequence[Part], own_kind: str, own: Arithmetic) -> Numbers:
    """The product of all terms, one by one; by their size where they are many."""
    found = number(1)
    for part in parts:
        body = hull(part.body)
        if part.most > _POWERS:
            found = join(found, _powers(body, own_kind, own))
            continue
        for step in range(part.most):
            made, _ = own.apply("*", [found, body], own_kind)
            found = made if step < part.least else join(found, made)
    return found if own_kind == "int" else _any_order(found, parts, own)


def _any_order(found: Numbers, parts: Sequence[Part], own: Arithmetic) -> Numbers:
    """What a product may be in another order: on the way it may leave the type."""
    count = sum(part.most for part in parts)
    if count < 3:
        return found
    logs = [(math.log(max(part.body.magnitude, 1.0)), part.most) for part in parts]
    least = [
        min((abs(end) for piece in part.body.pieces for end in piece if end), default=1.0)
        for part in parts
    ]
    over = sum(log * most for log, most in logs) > math.log(own.largest)
    under = sum(
        math.log(min(low, 1.0)) * part.most for low, part in zip(least, parts, strict=True)
    ) < math.log(own.row.tiny)
    slack = 2 * count * own.row.unit
    # no rounding takes a product of factors that are 1 at most above 1
    end = 1.0 if all(part.body.magnitude <= 1 for part in parts) else own.largest
    # nor one of factors that are not negative below 0
    least_end = 0.0 if all(part.body.low >= 0 for part in parts) else -end
    pieces = []
    for low, high in found.pieces:
        if not (low == high and low in (-1, 0, 1)):
            low, high = low - slack * abs(low) - own.least, high + slack * abs(high) + own.least
        if under:
            low, high = min(low, 0.0), max(high, 0.0)
        if over:
            low, high = -own.largest if found.low < 0 else 0.0, own.largest
        pieces.append((max(low, least_end), min(high, end)))
    above, below = found.above or over, found.below or (over and found.low < 0)
    nan = found.nan or (over and (under or found.holds(0.0)))
    return replace(found, pieces=merged_pieces(pieces), above=above, below=below, nan=nan)


def _powers(body: Numbers, own_kind: str, own: Arithmetic) -> Numbers:
    """What many factors may multiply to."""
    if own_kind == "int":
        small = body.magnitude <= 1
        return interval(-1, 1, whole=True) if small else interval(INT64[0], 2**64 - 1, whole=True)
    if body.magnitude <= 1 and body.finite:
        return interval(0.0 if body.low >= 0 else -1.0, 1.0)
    low = 0.0 if body.low >= 0 else -own.largest
    return Numbers(((low, own.largest),), body.nan, low < 0, True)
