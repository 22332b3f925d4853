"""Scalar functions at exact numbers: Python's integers and booleans, mpmath's reals.

Where a real function is not that of `irlang.scalar` the row there works in the precision at hand;
quotients and remainders need more.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import mpmath

from irlang.scalar import SCALARS, WHOLE

Value = Any  # mpf, int or bool

_LARGEST_EXPONENT = 16384
_SMALLEST_EXPONENT = -16494
_LEAST_INTEGER = -(2**63)

ON_INTEGERS: dict[str, Callable[..., Value]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": lambda a, b: a // b if b else 0,
    "%": lambda a, b: a % b if b else 0,
    "ceildiv": lambda a, b: -(-a // b) if b else 0,
    "neg": operator.neg,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "not": operator.not_,
    "max": max,
    "min": min,
    "abs": abs,
    "sign": lambda a: (a > 0) - (a < 0),
    "sq": lambda a: a * a,
    **dict.fromkeys(("int", "floor", "ceil", "round", "trunc"), int),
    **{name: SCALARS[name].exact for name in WHOLE},
}


def _fraction(value: Value) -> Fraction:
    sign, mantissa, exponent, _ = value._mpf_
    return Fraction((-1) ** sign * int(mantissa)) * Fraction(2) ** int(exponent)


def _floor_divide(a: Value, b: Value) -> Value:
    """Rounded once, after dividing exactly; by the rules of C's fmod where one is infinite."""
    if b == 0:
        return SCALARS["/"].exact(a, b)
    if not mpmath.isfinite(a) or mpmath.isnan(b):
        return mpmath.nan
    if mpmath.isinf(b):
        return mpmath.mpf(-1 if a * mpmath.sign(b) < 0 else 0)
    return mpmath.mpf(math.floor(_fraction(a) / _fraction(b)))


def _remainder(a: Value, b: Value) -> Value:
    """The remainder with the sign of the divisor."""
    if b == 0 or not mpmath.isfinite(a) or mpmath.isnan(b):
        return mpmath.nan
    if mpmath.isinf(b):
        return b if a * mpmath.sign(b) < 0 else a
    rest = _fraction(a) % _fraction(b)
    return mpmath.mpf(rest.numerator) / rest.denominator


def _power(a: Value, b: Value) -> Value:
    """IEEE 754's pow where the base is negative and one of the two is infinite."""
    if a < 0 and (mpmath.isinf(a) or mpmath.isinf(b)) and not mpmath.isnan(b) and b != 0:
        size = mpmath.power(-a, b) if a != -1 else mpmath.mpf(1)
        odd = mpmath.isfinite(b) and mpmath.isint(b) and int(b) % 2 == 1
        return -size if odd else size
    return SCALARS["pow"].exact(a, b)


_ON_REALS: dict[str, Callable[..., Value]] = {
    "//": _floor_divide,
    "%": _remainder,
    "ceildiv": lambda a, b: -_floor_divide(-a, b),
    "pow": _power,
}


def scalar(function: str) -> Callable[[Sequence[Value]], Value]:
    """A scalar function of `irlang.scalar`, of numbers of any kind."""
    on_integers = ON_INTEGERS.get(function)
    on_reals = _ON_REALS.get(function) or SCALARS[function].exact
    if function == "not":
        return lambda args: not args[0] if isinstance(args[0], int) else args[0] == 0

    def at(args: Sequence[Value]) -> Value:
        if on_integers is not None and all([isinstance(arg, int) for arg in args]):  # noqa: C419
            return on_integers(*args)
        value = on_reals(*[_real(arg) for arg in args])
        if function == "int":
            return whole_or_least(value)
        return _in_range(value) if isinstance(value, mpmath.mpf) else value

    return at


def apply(function: str, args: Sequence[Value]) -> Value:
    """The value of one."""
    return scalar(function)(args)


def _real(value: Value) -> Value:
    return mpmath.mpf(int(value)) if isinstance(value, int) else value


def number(value: Value) -> Value:
    """A number of the equations as this module has it: bool, int or mpf."""
    if isinstance(value, Fraction):
        return mpmath.mpf(value.numerator) / value.denominator
    return mpmath.mpf(value) if isinstance(value, float) else value


def _in_range(value: Value) -> Value:
    """Beyond the range of binary128: infinite, or zero. It keeps exponents from exploding."""
    _, mantissa, exponent, bits = value._mpf_
    if mantissa:  # neither zero, infinite nor NaN
        exponent += bits
        if exponent > _LARGEST_EXPONENT:
            return mpmath.inf if value > 0 else mpmath.ninf
        if exponent < _SMALLEST_EXPONENT:
            return mpmath.mpf(0)
    return value


def whole_or_least(value: Value) -> int:
    """Truncated; the least 64-bit integer for what 64 bits cannot hold, NaN included."""
    if isinstance(value, int):
        return int(value)
    if not mpmath.isfinite(value):
        return _LEAST_INTEGER
    whole = int(value)
    return whole if _LEAST_INTEGER <= whole < -_LEAST_INTEGER else _LEAST_INTEGER


def whole(value: Value) -> int | None:
    """An index; None where it is not finite."""
    if isinstance(value, int):
        return int(value)
    return int(value) if mpmath.isfinite(value) else None
