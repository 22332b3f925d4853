"""Special functions that are integrals or oscillate.

Bessel's J and Y, the exponential integral, the dilogarithm, Dawson's and Fresnel's integrals.

Each is defined exactly, over mpmath numbers; over arrays the values are those, element by element,
rounded once. Sources: Abramowitz and Stegun, Handbook of Mathematical Functions, chapters 5, 7, 9
and 27. Functions of an interval take its ends, and give bounds of slopes or values in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np

from irlang.special import by_mpmath

Array = Any
Ends = tuple[float, float]

LARGEST_DAWSON = 0.9241388730045917  # where Dawson's integral is largest

_FAR = 50  # from where on a continued series has more digits than is asked for
_ENDLESS = 10**100


def never_steeper(slope: float) -> Callable[[Array, Array], Array]:
    """Of a function that is nowhere steeper, whatever the interval."""
    return lambda low, high: np.full_like(np.asarray(low + high, np.float64), slope)


# ---- Bessel functions of the first and the second kind, of order 0 or 1


def bessel_j_exact(order: int, x: Any) -> Any:
    """Of the first kind; 0 at infinity, which is its limit."""
    if mpmath.isnan(x):
        return x
    return mpmath.mpf(0) if mpmath.isinf(x) else mpmath.re(mpmath.besselj(order, x))


def bessel_y_exact(order: int, x: Any) -> Any:
    """Of the second kind; minus infinity at 0, NaN below, and 0 at infinity."""
    if mpmath.isnan(x) or x < 0:
        return mpmath.nan
    if x == 0:
        return mpmath.ninf
    return mpmath.mpf(0) if mpmath.isinf(x) else mpmath.re(mpmath.bessely(order, x))


def j0_exact(x: Any) -> Any:
    """J of order 0."""
    return bessel_j_exact(0, x)


def j1_exact(x: Any) -> Any:
    """J of order 1."""
    return bessel_j_exact(1, x)


def y0_exact(x: Any) -> Any:
    """Y of order 0."""
    return bessel_y_exact(0, x)


def y1_exact(x: Any) -> Any:
    """Y of order 1."""
    return bessel_y_exact(1, x)


j0, j1, y0, y1 = map(by_mpmath, (j0_exact, j1_exact, y0_exact, y1_exact))


def steepest_y(order: int, low: Array, high: Array) -> Array:  # noqa: ARG001
    """A slope that Y has nowhere beyond `low`: infinite from 0 down.

    The slope of order 0 is -Y1, and |Y1(x)| <= 2 / (pi x) + 0.36 (where both are of one size it is
    less, and later less than 0.8 / sqrt(x)); that of order 1 is Y0 - Y1 / x, at most
    2 / (pi x²) + 0.7 |log(x)| + 0.6.
    """
    low = np.asarray(low, np.float64)
    with np.errstate(all="ignore"):
        own = 0.6367 / low + 0.36
        if order:
            own = 0.6367 / low**2 + 0.7 * np.abs(np.minimum(np.log(low), 0)) + 0.6
    return np.where(low > 0, own, np.inf)


def image_of_y(order: int, low: float, high: float) -> Ends:  # noqa: ARG001
    """From the value at the lower end, or the least turn, to the first turn, which is highest."""
    least, largest = ((-0.34032, 0.52080), (-0.30318, 0.41675))[order]
    start = float((y1 if order else y0)(np.float64(max(low, 0.0))))
    return min(start, least), largest


# ---- integrals


def expint_exact(x: Any) -> Any:
    """The integral of exp(t) / t from minus infinity, its principal value for x > 0."""
    if mpmath.isnan(x):
        return x
    if x == 0:
        return mpmath.ninf
    if abs(x) > 10**4:  # beyond all ranges
        return mpmath.inf if x > 0 else -mpmath.mpf(0)
    return mpmath.re(mpmath.ei(x))


def spence_exact(x: Any) -> Any:
    """The integral of log(t) / (1 - t) from 1 to x; NaN below 0."""
    if mpmath.isnan(x) or x < 0:
        return mpmath.nan
    return mpmath.ninf if x == mpmath.inf else mpmath.re(mpmath.polylog(2, 1 - x))


def dawson_exact(x: Any) -> Any:
    """exp(-x²) times the integral of exp(t²) from 0 to x."""
    if mpmath.isnan(x):
        return x
    if mpmath.isinf(x):
        return 1 / x
    if abs(x) > _FAR:
        term, total, square = mpmath.mpf(1), mpmath.mpf(1), 2 * x * x
        for k in range(1, 40):
            term = term * (2 * k - 1) / square
            total += term
        return total / (2 * x)
    return mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-x * x) * mpmath.erfi(x)


def fresnel_sin_exact(x: Any) -> Any:
    """The integral of sin(pi t² / 2) from 0 to x."""
    if mpmath.isnan(x):
        return x
    return mpmath.sign(x) / 2 if abs(x) > _ENDLESS else mpmath.re(mpmath.fresnels(x))


def fresnel_cos_exact(x: Any) -> Any:
    """The integral of cos(pi t² / 2) from 0 to x."""
    if mpmath.isnan(x):
        return x
    return mpmath.sign(x) / 2 if abs(x) > _ENDLESS else mpmath.re(mpmath.fresnelc(x))


expint, spence, dawson = map(by_mpmath, (expint_exact, spence_exact, dawson_exact))
fresnel_sin, fresnel_cos = map(by_mpmath, (fresnel_sin_exact, fresnel_cos_exact))
