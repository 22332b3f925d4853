"""Values of the scalar functions, over arrays and exactly, where a library's own do not serve.

Over arrays the rules are those of IEEE 754; over mpmath's numbers too, where mpmath would raise or
give a complex number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import mpmath
import numpy as np

Array = Any


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), over arrays and without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


def sigmoid_exact(x: Any) -> Any:
    """1 / (1 + exp(-x)), of an mpmath number."""
    return 1 / (1 + mpmath.exp(-x))


_PLACES = 512  # a unit, at which the error function is known
_ONE = 6  # from which on it is 1
_BLOCK = 8192  # numbers that stay in the cache while they are computed


@cache
def _erf_terms() -> tuple[Array, ...]:
    """The Taylor coefficients of erf at k / 512, by power: Hermite's polynomials give them.

    At most 1 / 1024 from such a place the sixth term is under 2**-60 of the value. Abramowitz and
    Stegun, Handbook of Mathematical Functions, 7.1.19.
    """
    places = np.arange(_ONE * _PLACES + 1) / _PLACES
    slope = 2 / math.sqrt(math.pi) * np.exp(-places * places)
    hermite = [np.ones_like(places), 2 * places]
    for n in range(1, 4):
        hermite.append(2 * places * hermite[n] - 2 * n * hermite[n - 1])
    terms = [np.array([math.erf(place) for place in places])]
    terms += [(-1) ** n * slope * h / math.factorial(n + 1) for n, h in enumerate(hermite)]
    return tuple(terms)


def erf(x: Array) -> Array:
    """The error function over arrays, to two units in the last place; in float64."""
    x = np.asarray(x, dtype=np.float64)
    terms, flat, found = _erf_terms(), x.reshape(-1), np.empty(x.size)
    for start in range(0, flat.size, _BLOCK):
        part = flat[start : start + _BLOCK]
        size = np.fmin(np.abs(part), _ONE)
        place = np.rint(size * _PLACES)
        size -= place / _PLACES
        number = place.astype(np.intp)
        total = terms[-1].take(number)
        for term in terms[-2::-1]:
            total *= size
            total += term.take(number)
        found[start : start + _BLOCK] = np.where(np.isnan(part), part, np.copysign(total, part))
    return found.reshape(x.shape)


def floor_divide(a: Array, b: Array) -> Array:
    """floor(a / b), over arrays."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.floor_divide(a, b)


def remainder(a: Array, b: Array) -> Array:
    """What floor(a / b) leaves of a, over arrays."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.remainder(a, b)


def zero_divisor(_: Array, b: Array) -> Array:
    """Where a quotient has a pole."""
    return np.asarray(b) == 0


def round_even(x: Any) -> Any:
    """The nearest whole number; of two, the even one."""
    return mpmath.nint(x)


def exact_pow(a: Any, b: Any) -> Any:
    """A to the power b (IEEE 754-2019 `pow`): anything to the power 0, and 1 to anything, is 1."""
    if mpmath.isnan(a) or mpmath.isnan(b):
        return mpmath.mpf(1) if b == 0 or a == 1 else mpmath.nan
    if b == 0 or a == 1:
        return mpmath.mpf(1)
    if a == 0 and b < 0:
        return mpmath.inf
    if a < 0 and not mpmath.isint(b) and mpmath.isfinite(a) and mpmath.isfinite(b):
        return mpmath.nan
    return mpmath.power(a, b)


def guarded(function: Callable[[Any], Any], defined: Callable[[Any], bool]) -> Callable[[Any], Any]:
    """NaN outside the domain, where mpmath would give a complex number or raise."""

    def value(x: Any) -> Any:
        return function(x) if not mpmath.isnan(x) and defined(x) else mpmath.nan

    return value


def ceildiv(a: Array, b: Array) -> Array:
    """ceil(a / b), over arrays."""
    return -floor_divide(-a, b)


def nan_max(*args: Any) -> Any:
    """The largest; NaN is passed on (IEEE 754-2019 `maximum`)."""
    return mpmath.nan if any(mpmath.isnan(a) for a in args) else max(args)


def nan_min(*args: Any) -> Any:
    """The smallest; NaN is passed on (IEEE 754-2019 `minimum`)."""
    return mpmath.nan if any(mpmath.isnan(a) for a in args) else min(args)


def exact_divide(a: Any, b: Any) -> Any:
    """A quotient; by zero it is infinite, or NaN."""
    if b == 0:
        return mpmath.nan if a == 0 or mpmath.isnan(a) else mpmath.inf * mpmath.sign(a)
    return mpmath.mpf(a) / b


def exact_log(x: Any) -> Any:
    """The natural logarithm, minus infinity at 0."""
    return mpmath.log(x) if x > 0 else mpmath.ninf


def exact_log1p(x: Any) -> Any:
    """log(1 + x), minus infinity at -1."""
    return mpmath.log1p(x) if x > -1 else mpmath.ninf


def atanh(x: Any) -> Any:
    """The inverse of tanh, infinite at -1 and 1."""
    return mpmath.inf * mpmath.sign(x) if abs(x) == 1 else mpmath.atanh(x)


def finite(x: Any) -> bool:
    """Whether an mpmath number is finite."""
    return bool(mpmath.isfinite(x))


def exact_trunc(x: Any) -> Any:
    """What is before the point; of what is not finite, itself."""
    return mpmath.sign(x) * mpmath.floor(abs(x)) if finite(x) else x


def exact_softplus(x: Any) -> Any:
    """log(1 + exp(x)), of any size."""
    return x if x == mpmath.inf else mpmath.log1p(mpmath.exp(-abs(x))) + max(x, 0)


def exact_logaddexp(a: Any, b: Any) -> Any:
    """log(exp(a) + exp(b)), of any size."""
    return a + mpmath.log(2) if a == b else max(a, b) + mpmath.log1p(mpmath.exp(-abs(a - b)))


def exact_rsqrt(x: Any) -> Any:
    """1 / sqrt(x), infinite at 0."""
    return mpmath.inf if x == 0 else 1 / mpmath.sqrt(x)


def whole(x: Array) -> Array:
    """What is before the point, over arrays; whole numbers as i64."""
    array = np.asarray(x)
    return np.trunc(array) if array.dtype.kind == "f" else array.astype(np.int64)


def rounded(a: Array, digits: Array, finest: Array) -> Array:
    """To `digits` binary digits, but no finer than multiples of `finest`; ties to even."""
    a = np.asarray(a, dtype=np.float64)
    with np.errstate(all="ignore"):
        unit = np.maximum(
            np.ldexp(1.0, np.frexp(a)[1] - np.asarray(digits, dtype=np.int32)), finest
        )
        return np.where(np.isfinite(a), np.rint(a / unit) * unit, a)


def exact_rounded(a: Any, digits: Any, finest: Any) -> Any:
    """As `rounded`, of an mpmath number."""
    if not mpmath.isfinite(a):
        return a
    unit = max(mpmath.ldexp(1, mpmath.frexp(a)[1] - int(digits)), finest)
    return mpmath.nint(a / unit) * unit


def places(b: Array) -> Array:
    """A number of bit positions that every processor can shift by."""
    return np.minimum(np.maximum(b, 0), 63)


def wrapped_power(a: Any, b: Any) -> int:
    """A to the power b in 64 bits with a sign; 0 for a negative b."""
    return (pow(int(a), int(b), 2**64) + 2**63) % 2**64 - 2**63 if b >= 0 else 0


_WRAPPED_POWER = np.frompyfunc(wrapped_power, 2, 1)


def integer_power(a: Array, b: Array) -> Array:
    """Powers of whole numbers, wrapping at 64 bits; exact over objects."""
    wide = object in (np.asarray(a).dtype, np.asarray(b).dtype)
    found = np.asarray(_WRAPPED_POWER(a, b))
    return found if wide else found.astype(np.int64)


def rsqrt(x: Array) -> Array:
    """1 / sqrt(x), over arrays."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return 1.0 / np.sqrt(x)


def ufunc(name: str) -> Callable[..., Array]:
    """NumPy's function of that name, silent about what IEEE 754 makes of any argument."""
    function = getattr(np, name)

    def value(*args: Array) -> Array:
        with np.errstate(all="ignore"):
            return function(*args)

    return value


def arithmetic(name: str) -> Callable[..., Array]:
    """Arithmetic, where truth values count as 0 and 1 (NumPy adds them by `or`)."""
    function = ufunc(name)

    def value(*args: Array) -> Array:
        return function(*[np.asarray(a, np.int64) if _is_truth(a) else a for a in args])

    return value


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool) or getattr(value, "dtype", None) == np.bool_


def steepest_tan(low: Array, high: Array) -> Array:
    """Infinite over a pole."""
    at_low, at_high = np.tan(low), np.tan(high)
    steepest = 1.0 + np.maximum(np.abs(at_low), np.abs(at_high)) ** 2
    return np.where((at_low > at_high) | (high - low > 2.0), np.inf, steepest)
