"""Special functions over arrays and exactly: what neither NumPy nor Python's `math` has.

Values over arrays are good to a few units in the last place of float64 (the tests measure it); a
value beyond the reach of the series is taken from mpmath, element by element. Sources: Abramowitz
and Stegun, Handbook of Mathematical Functions, chapters 6, 7, 9 and 26.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np

Array = Any

ORDERS = 100  # of polygamma: beyond, factorials leave the range of numbers
LARGEST_I1E = 1.5451272579925427  # where i1e is largest

_BERNOULLI = [float(mpmath.bernoulli(2 * k)) for k in range(1, 13)]
_SLOWEST = -50.0  # below, the recurrence of the higher polygamma functions has too many terms
_DIGITS = 25


def elementwise(function: Callable[..., float], arity: int = 1) -> Callable[..., Array]:
    """A function of numbers as one of arrays."""
    spread = np.frompyfunc(function, arity, 1)

    def value(*args: Array) -> Array:
        return np.asarray(spread(*(np.asarray(a, np.float64) for a in args)), np.float64)

    return value


def by_mpmath(exact: Callable[..., Any], arity: int = 1) -> Callable[..., Array]:
    """A function of mpmath numbers as one of arrays, rounded once."""

    def number(*args: float) -> float:
        with mpmath.workdps(_DIGITS):
            return float(exact(*(mpmath.mpf(float(x)) for x in args)))

    return elementwise(number, arity)


# ---- the logarithm of the gamma function and its derivatives


def _lgamma(x: float) -> float:
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):  # at a pole, or too large
        return math.inf


lgamma = elementwise(_lgamma)


def gamma_poles(x: Array) -> Array:
    """Where the gamma function and its derivatives have poles."""
    x = np.asarray(x)
    return (x <= 0) & (np.floor(x) == x)


def lgamma_exact(x: Any) -> Any:
    """The logarithm of |gamma(x)|."""
    if mpmath.isnan(x):
        return x
    if mpmath.isinf(x) or (x <= 0 and mpmath.isint(x)):
        return mpmath.inf
    if x > 0:
        return mpmath.re(mpmath.loggamma(x))
    reflected = mpmath.log(mpmath.pi / abs(mpmath.sinpi(x)))
    return reflected - mpmath.re(mpmath.loggamma(1 - x))


def polygamma_exact(order: Any, x: Any) -> Any:
    """The derivative of digamma of an order from 0 to ORDERS; NaN for any other order.

    At a pole it is infinite where the function is from both sides, and NaN otherwise.
    """
    if mpmath.isnan(order) or mpmath.isnan(x) or not (0 <= order <= ORDERS):
        return mpmath.nan
    if not mpmath.isint(order) or x == mpmath.ninf:
        return mpmath.nan
    if x == mpmath.inf:
        return mpmath.inf if order == 0 else mpmath.mpf(0)
    if x <= 0 and mpmath.isint(x):
        return mpmath.inf if int(order) % 2 else mpmath.nan
    if x < _SLOWEST:
        return _reflected(int(order), x)
    return mpmath.re(mpmath.psi(int(order), x))


def _reflected(n: int, x: Any) -> Any:
    """By the value at 1 - x: mpmath goes from there to a negative x in steps of 1."""
    with mpmath.extraprec(64 + 8 * n):  # the two may nearly cancel
        cotangent = mpmath.cospi(x) / mpmath.sinpi(x)
        periodic = mpmath.pi ** (n + 1) * mpmath.polyval(_cotangents(n), cotangent)
        found = (-1) ** n * mpmath.re(mpmath.psi(n, 1 - x)) - periodic
    return +found


@functools.cache
def _cotangents(n: int) -> tuple[int, ...]:
    """The n-th derivative of cot as a polynomial in cot, by falling powers."""
    if n == 0:
        return (1, 0)
    before = _cotangents(n - 1)
    degree = len(before) - 1
    slope = [c * (degree - k) for k, c in enumerate(before[:-1])]  # times -(1 + cot²)
    return tuple(-(a + b) for a, b in zip([*slope, 0, 0], [0, 0, *slope], strict=True))


def polygamma(order: Array, x: Array) -> Array:
    """The same over arrays."""
    order, x = np.broadcast_arrays(np.asarray(order, np.float64), np.asarray(x, np.float64))
    found = np.full(x.shape, np.nan)
    for n in np.unique(order):
        if 0 <= n <= ORDERS and n == np.floor(n):
            chosen = order == n
            found[chosen] = _digamma(x[chosen]) if n == 0 else _derivative(int(n), x[chosen])
    return found


def _digamma(x: Array) -> Array:
    with np.errstate(all="ignore"):
        pole = (x <= 0) & (x == np.floor(x))
        reflected = x < 0
        y = np.where(reflected, 1 - x, x)
        below = np.zeros_like(y)
        for _ in range(12):
            small = y < 12
            below = below + np.where(small, 1 / y, 0.0)
            y = np.where(small, y + 1, y)
        series = np.zeros_like(y)
        for k in range(len(_BERNOULLI), 0, -1):
            series = (series + _BERNOULLI[k - 1] / (2 * k)) / (y * y)
        found = np.log(y) - 0.5 / y - series - below
        rest = x - np.round(x)  # tan has the period 1 in x, and is exact to reduce
        found = np.where(reflected, found - math.pi / np.tan(math.pi * rest), found)
        return np.where(pole | (x == -np.inf), np.nan, found)


def _derivative(n: int, x: Array) -> Array:
    """By the sum over 1 / (x + k)^(n + 1), whose tail is that of Euler and Maclaurin."""
    s = n + 1
    start = 12 + s / 2
    with np.errstate(all="ignore"):
        pole = (x <= 0) & (x == np.floor(x))
        slow = (x < _SLOWEST) & ~pole
        y = np.where(slow | pole | (x == -np.inf), 1.0, x)
        head = np.zeros_like(y)
        while (y < start).any():
            small = y < start
            head = head + np.where(small, y ** float(-s), 0.0)
            y = np.where(small, y + 1, y)
        factor = s * y ** float(-s - 1)
        tail = y ** float(1 - s) / (s - 1) + 0.5 * y ** float(-s)
        for k, number in enumerate(_BERNOULLI, 1):
            tail = tail + number / math.factorial(2 * k) * factor
            factor = factor * (s + 2 * k - 1) * (s + 2 * k) / (y * y)
        tail = np.where(np.isinf(y), 0.0, tail)
        found = (-1.0) ** s * math.factorial(n) * (head + tail)
        found = np.where(pole, np.inf if n % 2 else np.nan, found)
        found = np.where(x == -np.inf, np.nan, found)
    for place in zip(*np.nonzero(slow & np.isfinite(x)), strict=True):
        with mpmath.workdps(_DIGITS):
            found[place] = float(polygamma_exact(n, mpmath.mpf(float(x[place]))))
    return found


def steepest_polygamma(order: Array, low: Array, high: Array) -> Array:
    """The largest slope over an interval; of order -1, that of lgamma.

    Slopes of even order rise between two poles, those of odd order are convex and positive: either
    is largest at an end. Infinite where a pole may lie between.
    """
    with np.errstate(invalid="ignore"):
        ends = [np.abs(polygamma(np.asarray(order) + 1, end)) for end in (low, high)]
        pole = (low <= 0) & ((np.floor(low) != np.floor(high)) | (low == np.floor(low)))
        found = np.maximum(*ends)
    return np.where(pole | np.isnan(found), np.inf, found)


def polygamma_terms(order: Array, x: Array) -> Array:
    """The largest of the terms that a derivative of digamma is the sum of, n! / (x + k)^(n + 1),
    where it may be much larger than the sum: between two poles those on either side cancel if the
    order is even. 0 where all have one sign.
    """
    order, x = np.broadcast_arrays(np.asarray(order, np.float64), np.asarray(x, np.float64))
    factorials = np.array([math.factorial(n) for n in range(ORDERS + 1)], np.float64)
    known = (order >= 0) & (order <= ORDERS) & (order % 2 == 0) & (x < 0)
    with np.errstate(all="ignore"):
        size = factorials[np.where(known, order, 0).astype(int)] / np.abs(x - np.rint(x)) ** (
            order + 1
        )
    return np.where(known & np.isfinite(size), size, 0.0)


# ---- the error function's relatives

erfc = elementwise(math.erfc)


def erfc_exact(x: Any) -> Any:
    """1 - erf(x); 0 where it is smaller than any number."""
    if mpmath.isnan(x):
        return x
    return mpmath.mpf(0) if x > 10**4 else mpmath.erfc(max(x, mpmath.mpf(-(10**4))))


def erfcx(x: Array) -> Array:
    """exp(x * x) * erfc(x)."""
    x = np.asarray(x, np.float64)
    with np.errstate(all="ignore"):
        near = np.clip(x, -27.0, 12.0)
        high = np.round(near * 2.0**20) / 2.0**20  # its square is exact
        product = np.exp(high * high) * np.exp((near - high) * (near + high)) * erfc(near)
        far = np.maximum(x, 12.0)
        series = np.ones_like(far)
        for k in range(25, 0, -1):
            series = 1.0 - (2 * k - 1) * series / (2 * far * far)
        found = np.where(x > 12.0, series / (far * math.sqrt(math.pi)), product)
        found = np.where(x < -26.7, np.inf, found)
    return np.where(np.isnan(x), x, found)


def erfcx_exact(x: Any) -> Any:
    """The same exactly; from 50 on, where both factors leave any range, by the continued series."""
    if mpmath.isnan(x):
        return x
    if x == mpmath.inf:
        return mpmath.mpf(0)
    if x < -200:
        return mpmath.inf
    if x > 50:
        terms, total, square = mpmath.mpf(1), mpmath.mpf(1), 2 * x * x
        for k in range(1, 40):
            terms = -terms * (2 * k - 1) / square
            total += terms
        return total / (x * mpmath.sqrt(mpmath.pi))
    return mpmath.exp(x * x) * mpmath.erfc(x)


def _normal_tail(p: float) -> float:
    """The x at which erfc(x) = p, for p from 0 to 1, by Halley's iteration."""
    if p <= 0:
        return math.inf
    root = math.sqrt(-2 * math.log(p / 2))
    above = 2.515517 + 0.802853 * root + 0.010328 * root**2
    below = 1 + 1.432788 * root + 0.189269 * root**2 + 0.001308 * root**3
    x = (root - above / below) / math.sqrt(2)
    for _ in range(3):
        step = (math.erfc(x) - p) / (-2 / math.sqrt(math.pi) * math.exp(-x * x))
        x -= step / (1 + x * step)
    return x


def _erfinv(x: float) -> float:
    if math.isnan(x) or abs(x) > 1:
        return math.nan
    if abs(x) > 0.5:
        return math.copysign(_normal_tail(1 - abs(x)), x)
    y = x * math.sqrt(math.pi) / 2
    for _ in range(4):
        step = (math.erf(y) - x) / (2 / math.sqrt(math.pi) * math.exp(-y * y))
        y -= step / (1 + y * step)
    return y


def _ndtri(p: float) -> float:
    if math.isnan(p) or not 0 <= p <= 1:
        return math.nan
    if p < 0.25:
        return -math.sqrt(2) * _normal_tail(2 * p)
    if p > 0.75:
        return math.sqrt(2) * _normal_tail(2 * (1 - p))
    return math.sqrt(2) * _erfinv(2 * p - 1)


erfinv = elementwise(_erfinv)
ndtri = elementwise(_ndtri)


def erfinv_exact(x: Any) -> Any:
    """The inverse of erf; NaN outside [-1, 1]."""
    if mpmath.isnan(x) or abs(x) > 1:
        return mpmath.nan
    return mpmath.inf * x if abs(x) == 1 else mpmath.erfinv(x)


def ndtri_exact(p: Any) -> Any:
    """The inverse of the normal distribution function; NaN outside [0, 1]."""
    if mpmath.isnan(p) or not 0 <= p <= 1:
        return mpmath.nan
    if p == 0 or p == 1:
        return mpmath.inf if p == 1 else mpmath.ninf
    with mpmath.extraprec(max(0, -2 * mpmath.frexp(p)[1]) + 20):
        found = mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1)
    return +found


# ---- modified Bessel functions, scaled by exp(-|x|)

_FAR = 20.0


def bessel_i(order: int, x: Array) -> Array:
    """exp(-|x|) times the modified Bessel function of order 0 or 1."""
    x = np.asarray(x, np.float64)
    with np.errstate(all="ignore"):
        near = np.minimum(np.abs(x), _FAR)
        quarter = near * near / 4
        term = np.ones_like(near) if order == 0 else near / 2
        total = term
        for k in range(1, 90):
            term = term * quarter / (k * (k + order))
            total = total + term
        far = np.maximum(np.abs(x), _FAR)
        series = np.ones_like(far)
        for k in range(30, 0, -1):
            series = 1 - (4 * order**2 - (2 * k - 1) ** 2) * series / (8 * k * far)
        found = np.where(
            np.abs(x) > _FAR,
            series / (math.sqrt(2 * math.pi) * np.sqrt(far)),
            total * np.exp(-near),
        )
        found = np.where(np.isnan(x), x, found)
    return np.where(x < 0, -found, found) if order else found


def bessel_i_exact(order: int, x: Any) -> Any:
    """The same exactly."""
    if mpmath.isnan(x):
        return x
    if abs(x) > 10**8:  # the series of Hankel, of which these terms are enough
        size, term, total = abs(x), mpmath.mpf(1), mpmath.mpf(1)
        for k in range(1, 12):
            term = -term * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k * size)
            total += term
        found = total / mpmath.sqrt(2 * mpmath.pi * size)
        return found * (mpmath.sign(x) if order else 1)
    return mpmath.besseli(order, x) * mpmath.exp(-abs(x))


_NODES = 120
_NONE_LEFT = 45.0  # exp(-this) is nothing beside 1
_SMALL = 1e-8


def bessel_k(order: int, x: Array) -> Array:
    """exp(x) times the modified Bessel function of the second kind, of order 0 or 1; x > 0.

    The integral of exp(-x (cosh(t) - 1)) cosh(order t) over t > 0, by the trapezoidal rule, which
    is as good as exact for such a function.
    """
    x = np.asarray(x, np.float64)
    with np.errstate(all="ignore"):
        near = np.where(x > _SMALL, np.minimum(x, 1e30), 1.0)
        width = np.arccosh(1 + _NONE_LEFT / near) if near.size else near
        width = np.where(near > 1e3, np.sqrt(2 * _NONE_LEFT / near), width) / _NODES
        total = np.full_like(near, 0.5)
        for k in range(1, _NODES + 8):
            t = k * width
            total = total + np.exp(-2 * near * np.sinh(t / 2) ** 2) * (np.cosh(t) if order else 1)
        small = 1 / x if order else math.log(2) - np.log(x) - np.euler_gamma
        large = np.sqrt(math.pi / 2 / x)
        found = np.where(x > 1e30, large, np.where(x > _SMALL, total * width, small * (1 + x)))
        found = np.where(x == 0, np.inf, found)
    return np.where(x < 0, np.nan, found)


def bessel_k_exact(order: int, x: Any) -> Any:
    """The same exactly; NaN below 0."""
    if mpmath.isnan(x) or x < 0:
        return mpmath.nan
    if x == 0:
        return mpmath.inf
    if x > 10**8:
        term, total = mpmath.mpf(1), mpmath.mpf(1)
        for k in range(1, 12):
            term = term * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k * x)
            total += term
        return total * mpmath.sqrt(mpmath.pi / 2 / x)
    return mpmath.besselk(order, x) * mpmath.exp(x)
