"""Special functions of two arguments, monotone in each: incomplete gamma functions and the zeta
function of Hurwitz, exactly and, element by element, over arrays.

Sources: Abramowitz and Stegun, Handbook of Mathematical Functions, chapter 6; Apostol, Introduction
to Analytic Number Theory, chapter 12.
"""

from __future__ import annotations

from typing import Any

import mpmath

from irlang.special import by_mpmath

LARGEST_ORDER = 10**6  # beyond it a step stands for the incomplete gamma functions
_SURE = 10**8  # from here on, for all orders up to the largest, nothing of the integral is left


def gammainc_exact(a: Any, x: Any) -> Any:
    """The integral of t^(a - 1) exp(-t) from 0 to x, over that to infinity.

    1 where a is 0 and 0 where x is; NaN where both are, or both infinite, or one is negative.
    """
    ends = _ends(a, x)
    return mpmath.gammainc(a, 0, x, regularized=True) if ends is None else ends


def gammaincc_exact(a: Any, x: Any) -> Any:
    """1 less the same."""
    ends = _ends(a, x)
    return mpmath.gammainc(a, x, mpmath.inf, regularized=True) if ends is None else 1 - ends


def _ends(a: Any, x: Any) -> Any:
    """The lower function where it is a limit or has one; None elsewhere."""
    if mpmath.isnan(a) or mpmath.isnan(x) or a < 0 or x < 0 or (a == x and a in (0, mpmath.inf)):
        return mpmath.nan
    if a == 0 or x == 0:
        return mpmath.mpf(1 if a == 0 else 0)
    if a > LARGEST_ORDER:
        return mpmath.mpf(0 if x < a else 1)
    return mpmath.mpf(1) if x > _SURE else None


def zeta_exact(s: Any, q: Any) -> Any:
    """The sum of (k + q)^-s over k from 0 on, for s > 1 and q > 0; infinite at 1, else NaN."""
    if mpmath.isnan(s) or mpmath.isnan(q) or s < 1 or q <= 0:
        return mpmath.nan
    if s == 1:
        return mpmath.inf
    if q == mpmath.inf:
        return mpmath.mpf(0)
    if s > 1000:  # the first terms are all
        return mpmath.power(q, -s) + mpmath.power(q + 1, -s) if q < _SURE else mpmath.mpf(0)
    if q > _SURE:  # Euler and Maclaurin's sum
        return mpmath.power(q, 1 - s) * (1 / (s - 1) + 1 / (2 * q) + s / (12 * q * q))
    return mpmath.zeta(s, q)


gammainc, gammaincc, zeta = (
    by_mpmath(exact, 2) for exact in (gammainc_exact, gammaincc_exact, zeta_exact)
)
