"""What is known of an expression inside a branch: `if x > 0 then log(x)`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from irlang import equations as eq
from irlang.affine import Affine, affine
from irlang.equation_rules import negation
from irlang.interp.arithmetic import Arithmetic
from irlang.interp.interval import NOTHING, Numbers, interval, join, meet, truth
from irlang.interp.regions import Ends, form_ends

Facts = Mapping[eq.Expr, Numbers]  # sets in which expressions lie
OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_ALL = interval(-math.inf, math.inf)
_FAR = 2**31  # a whole number this far from 0 may pass the end of its type in a difference


def assume(walk: Any, condition: eq.Expr, holds: bool, box: Any, facts: Facts) -> Facts | None:
    """The facts, and those that follow from a condition that holds, or does not.

    None where it cannot be. walk: evaluates expressions.
    """
    if not holds:
        opposite = negation(condition)
        if isinstance(opposite, eq.Apply) and opposite.function == "not":
            inner = opposite.args[0]
            meaning = walk.meaning(inner, box) if isinstance(inner, eq.Read) else inner
            if meaning != inner:
                return assume(walk, meaning, False, box, facts)
            return _compared(walk, inner, False, box, facts)
        return assume(walk, opposite, True, box, facts)
    if isinstance(condition, eq.Read):
        meaning = walk.meaning(condition, box)
        return assume(walk, meaning, True, box, facts) if meaning != condition else facts
    if isinstance(condition, eq.Apply):
        if condition.function == "and":
            first = assume(walk, condition.args[0], True, box, facts)
            return None if first is None else assume(walk, condition.args[1], True, box, first)
        if condition.function == "or":
            ways = [assume(walk, part, True, box, facts) for part in condition.args]
            return _either([way for way in ways if way is not None])
        if condition.function == "not":
            inner = condition.args[0]
            logical = isinstance(inner, eq.Apply) and inner.function in ("and", "or", "not")
            if logical or isinstance(inner, eq.Read):
                return assume(walk, inner, False, box, facts)
            return _compared(walk, inner, False, box, facts)
        return _compared(walk, condition, True, box, facts)
    if isinstance(condition, eq.Reduce) and condition.kind == "any":
        return {**facts, condition: truth([True])}
    return facts


def _either(ways: Sequence[Facts]) -> Facts | None:
    """What holds whichever of some ways it is; None where it is none of them."""
    if not ways:
        return None
    common = [expr for expr in ways[0] if all(expr in way for way in ways)]
    return {expr: join(*(way[expr] for way in ways)) for expr in common}


def _compared(walk: Any, condition: eq.Expr, holds: bool, box: Any, facts: Facts) -> Facts | None:
    """What follows from a comparison for both of its sides."""
    if not isinstance(condition, eq.Apply) or condition.function not in OPPOSITE:
        return facts
    if not eq.reads(condition):
        return facts
    function = condition.function if holds else OPPOSITE[condition.function]
    left, right = condition.args
    found: dict[eq.Expr, Numbers] = dict(facts)
    own = walk.own
    for this, other, relation in ((left, right, function), (right, left, TURNED[function])):
        if not eq.reads(this):
            continue
        limits = walk.value(other, box, facts)
        allowed = _allowed(relation, limits, own, walk.kind(this) != "real")
        now = meet(walk.value(this, box, dict(found)), allowed)
        if now.empty and not (now.nan and not holds):
            return None
        if function == "==" and limits.only == 0 and _is_never(this, facts, walk, box):
            return None
        _learn(found, this, allowed, walk, box)
    whole = all(_is_small(walk, side, box, facts) for side in (left, right))
    if function != "==" and (whole or (eq.reads(left) and eq.reads(right))):
        gap = _allowed(function, Numbers(((0.0, 0.0),)), own, whole)
        _learn(found, eq.Apply("-", (left, right)), gap, walk, box)
        gap = _allowed(TURNED[function], Numbers(((0.0, 0.0),)), own, whole)
        _learn(found, eq.Apply("-", (right, left)), gap, walk, box)
    return found


def _is_never(expr: eq.Expr, facts: Facts, walk: Any, box: Any) -> bool:
    """Whether an expression cannot be 0, as another is."""
    zeros = (other for other, numbers in facts.items() if numbers.only == 0)
    return any(not walk.both_zero(expr, other, box) for other in zeros)


def _is_small(walk: Any, side: eq.Expr, box: Any, facts: Facts) -> bool:
    """Whether these are whole numbers so small that the difference of two is what it should be."""
    if walk.kind(side) != "int":
        return False
    value = walk.value(side, box, facts)
    return not value.empty and value.magnitude <= _FAR


def within(expr: eq.Expr, ends: Ends, box: Mapping[str, Ends], facts: Facts) -> Ends:
    """The ends of a whole number, less what is excluded by what is known of a difference that it is
    but for indices: `lengths[b] - 1 - s`, where `s < lengths[b]`.
    """
    low, high = ends
    if not eq.reads(expr) or max(abs(low), abs(high)) > _FAR:
        return ends
    form = _whole(expr)
    for gap, numbers in facts.items():
        if form is None or not (isinstance(gap, eq.Apply) and gap.function == "-"):
            continue
        other = _whole(gap)
        rest = None if other is None else form.plus(other, -1)
        if rest is None or not numbers.pieces or any(n not in box for n in rest.coefficients):
            continue
        least, most = form_ends(rest, box) or (0, 0)
        if not math.isinf(numbers.low):
            low = max(low, math.ceil(numbers.low) + least)
        if not math.isinf(numbers.high):
            high = min(high, math.floor(numbers.high) + most)
    return (low, high) if low <= high else ends


def _whole(expr: eq.Expr) -> Affine | None:
    """The affine form of a sum of indices and elements, which stand for themselves."""
    match expr:
        case eq.Read():
            return Affine({repr(expr): 1}) if expr.default is None else None
        case eq.Apply(function="+" | "-"):
            left, right = map(_whole, expr.args)
            if left is None or right is None:
                return None
            return left.plus(right, 1 if expr.function == "+" else -1)
        case _:
            return affine(expr)


def _allowed(relation: str, limits: Numbers, own: Arithmetic, whole: bool) -> Numbers:
    """The numbers that stand in a relation to some number of a set."""
    if limits.nan or limits.empty:
        return _ALL
    low, high = limits.low, limits.high
    if relation == "==":
        return limits if limits.finite else _ALL
    if relation == "!=":
        if low != high or math.isinf(low):
            return _ALL
        return Numbers(
            (
                (-_TOP, _before(low, own, whole)),
                (_after(low, own, whole), _TOP),
            )
        )
    if relation in ("<", "<="):
        end = high if relation == "<=" or math.isinf(high) else _before(high, own, whole)
        return interval(-math.inf, end)
    end = low if relation == ">=" or math.isinf(low) else _after(low, own, whole)
    return interval(end, math.inf)


_TOP = float.fromhex("0x1.fffffffffffffp+1023")


def _after(value: float, own: Arithmetic, whole: bool) -> float:
    """The next number of the type."""
    if whole:
        return math.floor(value) + 1
    if value == 0:
        return own.least
    step = 2 * own.row.unit * max(abs(value), own.row.tiny)
    near = own.nearest(value + step / 2)  # a number next to it, or the number itself
    return near if near > value else math.nextafter(value, math.inf)


def _before(value: float, own: Arithmetic, whole: bool) -> float:
    return -_after(-value, own, whole)


def _learn(
    found: dict[eq.Expr, Numbers], expr: eq.Expr, allowed: Numbers, walk: Any, box: Any
) -> None:
    """Notes where an expression lies, and what follows for what it is made of."""
    found[expr] = meet(found[expr], allowed) if expr in found else allowed
    if isinstance(expr, eq.Read):
        meaning = walk.meaning(expr, box)
        if meaning != expr:
            _learn(found, meaning, allowed, walk, box)
        return
    if not isinstance(expr, eq.Apply):
        return
    if expr.function in ("neg", "about", "constant", "real"):
        mirrored = allowed if expr.function != "neg" else _mirrored(allowed)
        _learn(found, expr.args[0], mirrored, walk, box)
    elif expr.function in ("abs", "sq"):
        if expr.function == "sq":
            if allowed.holds(0.0):
                return
            allowed = interval(walk.own.least, math.inf)
        positive = allowed.between(0.0, math.inf)
        both = Numbers(
            (*_mirrored(positive).pieces, *positive.pieces),
            below=positive.above,
            above=positive.above,
        )
        _learn(found, expr.args[0], both if both.pieces else NOTHING, walk, box)


def _mirrored(one: Numbers) -> Numbers:
    pieces = tuple((-b, -a) for a, b in reversed(one.pieces))
    return Numbers(pieces, one.nan, one.above, one.below, one.whole)
