"""Where arithmetic on balls rounds nothing, or gives infinity or NaN whoever computes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irlang.interp.ball import Ball

_FRACTION = (1 << 52) - 1  # the bits of a float64 that a power of two has not


def unrounded(function: str, a: Ball, b: Ball) -> Any:
    """Where arithmetic rounds nothing: with zero, and times or by a power of two.

    Zero times anything is zero, and what is added to zero stays. A power of two moves the exponent,
    which is exact between the least normal number and the largest.
    """
    if function in "+-":
        return exactly(a, is_zero) | exactly(b, is_zero)
    if function == "/":
        return exactly(a, is_zero) | exactly(b, _is_power)
    return exactly(a, _moves) | exactly(b, _moves)


def exactly(ball: Ball, test: Callable[[Any], Any]) -> Any:
    """Where a value is exact and passes a test."""
    exact = np.asarray(ball.bound) == 0
    return exact & test(np.asarray(ball.value)) if exact.any() else exact


def no_number(ball: Ball) -> Any:
    """Where a value is NaN for sure, whoever computes it."""
    return exactly(ball, np.isnan)


def certain(function: str, a: Ball, b: Ball) -> Any:
    """Where arithmetic gives NaN or an infinity whoever computes it."""
    found = no_number(a) | no_number(b)
    if function in "+-":
        return found | _beside(a, b) | _beside(b, a)
    if function in "*/":
        found = found | _endless(a, b)
    return found | _endless(b, a) if function == "*" else found


def _beside(a: Ball, b: Ball) -> Any:
    """Where `a` is infinite for sure, and `b` is not: so then are their sum and difference."""
    return exactly(a, np.isinf) & np.isfinite(b.value) & np.isfinite(b.bound)


def _endless(a: Ball, b: Ball) -> Any:
    """Where `a` is infinite for sure, and `b` a finite number that is surely not zero: so then are
    their product and quotient.
    """
    finite = np.isfinite(b.value) & np.isfinite(b.bound)
    return exactly(a, np.isinf) & finite & (np.abs(b.value) > b.bound)


def is_zero(value: Any) -> Any:
    """Whether numbers are zero."""
    return value == 0


def _is_power(value: Any) -> Any:
    """Not of 1: programs fold a divisor of one element, or an open gate, into other factors."""
    bits = np.asarray(value, dtype=np.float64).view(np.int64)
    power = (bits & _FRACTION) == 0  # of zero and of infinity, too
    return power & (value != 0) & (np.abs(value) != 1) & np.isfinite(value)


def _moves(value: Any) -> Any:
    return (value == 0) | _is_power(value)
