"""The laws that values left open follow: how to draw from each, and how unlikely an outcome is.

One table for the whole language. A `some` names the law that the oracle draws from; an `ensure`
names the law that a statistic of the results must follow. The statistic is refused where an outcome
at least as far out, on either side, is less likely than `ALARM`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

# The probability, for every law of every `ensure`, that a right result is called wrong.
ALARM = 1e-9

Array = np.ndarray[Any, np.dtype[Any]]
Number = int | float | Fraction
Tails = tuple[float, float]
_LARGEST = float(np.finfo(np.float64).max)
_STEPS = 100_000  # of a series or a continued fraction
_BLOCK = 4096  # terms of a binomial tail that are added at a time


def even(
    numbers: np.random.Generator, low: float, high: float, shape: tuple[int, ...] | None = None
) -> Any:
    """Numbers drawn evenly from a range, which may be wider than the largest number, or endless."""
    least, most = (min(max(end, -_LARGEST), _LARGEST) / 2 for end in (low, high))
    return 2 * numbers.uniform(least, most, shape)


@dataclass(frozen=True, slots=True)
class Law:
    """A law of one number.

    params: the names of its numbers. kind: `real`, `int` or `bool`, of what it gives. distance: how
    far the numbers are from being allowed, 0 where they are; domain: the same in words. certain:
    the only value that it gives, None where there are several. draw: so many independent values.
    tails: the probabilities of at most, and of at least, a value; a bound on each will do.
    support: between which numbers all values of generators lie.
    """

    params: tuple[str, ...]
    kind: str
    domain: str
    distance: Callable[..., float]
    tails: Callable[..., Tails]
    certain: Callable[..., Number | bool | None] = lambda *_: None
    draw: Callable[..., Array] | None = None
    support: Callable[..., tuple[float, float]] = lambda *_: (-math.inf, math.inf)


def probability(law: str, low: float, high: float, params: tuple[Number, ...]) -> float:
    """How likely an outcome is that is at least as far out, on either side.

    low, high: between which the outcome lies; the likeliest there is taken.
    """
    row = LAWS[law]
    numbers = tuple(map(float, params))
    at_most, at_least = row.tails(low, *numbers)
    if at_least > at_most and high > low:
        at_most, at_least = row.tails(high, *numbers)
        if at_least < at_most:
            return 1.0  # the middle of the law lies between
    return min(1.0, 2.0 * min(at_most, at_least))


# ---- tails ------------------------------------------------------------------------------------


def _normal(k: float, mean: float, deviation: float) -> Tails:
    if deviation == 0:
        return float(mean <= k), float(k <= mean)
    z = (k - mean) / (deviation * math.sqrt(2))
    return 0.5 * math.erfc(-z), 0.5 * math.erfc(z)


def _uniform(k: float, low: float, high: float) -> Tails:
    if low == high:
        return float(low <= k), float(k <= low)
    share = min(max((k - low) / (high - low), 0.0), 1.0)
    return share, 1.0 - share


def _bernoulli(k: float, p: float) -> Tails:
    return _binomial(k, 1.0, p)


def _binomial(k: float, n: float, p: float) -> Tails:
    return _at_most(math.floor(k), int(n), p), _at_most(int(n) - math.ceil(k), int(n), 1.0 - p)


def _at_most(k: int, n: int, p: float) -> float:
    """The probability of at most k successes in n: exact, term by term from the largest down."""
    if k < 0:
        return 0.0
    if k >= n or p <= 0:
        return 1.0
    if p >= 1:
        return 0.0
    if k > n * p + 1:  # the other tail is the short one
        return 1.0 - _at_most(n - k - 1, n, 1.0 - p)
    log_term = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    log_term += k * math.log(p) + (n - k) * math.log1p(-p)
    total = 0.0
    while True:
        steps = np.arange(k, max(k - _BLOCK, 0), -1, dtype=np.float64)
        with np.errstate(divide="ignore"):
            ratios = np.log(steps) - np.log(n - steps + 1) + math.log1p(-p) - math.log(p)
        logs = log_term + np.concatenate(([0.0], np.cumsum(ratios)))
        total += float(np.sum(np.exp(logs[:-1]))) if k > 0 else 0.0
        k -= len(steps)
        log_term = float(logs[-1])
        last = math.exp(log_term)
        if k == 0:
            return min(total + last, 1.0)
        if last < total * 1e-18 or last == 0.0:
            return min(total, 1.0)


def _chi_squared(k: float, n: float) -> Tails:
    if n == 0:
        return float(k >= 0), float(k <= 0)
    return _gamma_tails(n / 2, max(k, 0.0) / 2)


def _gamma_tails(a: float, x: float) -> Tails:
    """The regularised incomplete gamma functions P and Q: a series below, a fraction above."""
    if x == 0:
        return 0.0, 1.0
    if math.isinf(x):
        return 1.0, 0.0
    front = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        term = total = 1.0 / a
        for n in range(1, _STEPS):
            term *= x / (a + n)
            total += term
            if term < total * 1e-17:
                break
        below = front * total
        return below, 1.0 - below
    b = x + 1.0 - a
    c, d = math.inf, 1.0 / b
    fraction = d
    for n in range(1, _STEPS):
        step = -n * (n - a)
        b += 2.0
        d = 1.0 / (step * d + b)
        c = b + step / c
        fraction *= c * d
        if abs(c * d - 1.0) < 1e-16:
            break
    above = front * fraction
    return 1.0 - above, above


def _bounded(k: float, n: float) -> Tails:
    """Hoeffding's bound, on the side where the sum lies."""
    if n == 0:
        return float(k >= 0), float(k <= 0)
    tail = math.exp(-2.0 * k * k / n)
    return (tail, 1.0) if k < 0 else (1.0, tail)


# ---- the table --------------------------------------------------------------------------------

# No generator that turns 64 random bits, or a double, into a normal number gets further from the
# mean, in deviations: the least positive double is met 38.5 of them below.
_FARTHEST = 39.0


def _outside(value: Number, low: float, high: float) -> float:
    return float(max(low - value, value - high, 0.0))


def _flip(generator: np.random.Generator, shape: tuple[int, ...], p: float) -> Array:
    return np.asarray(generator.random(shape) < p)


LAWS: dict[str, Law] = {
    "bernoulli": Law(
        ("p",),
        "bool",
        "p lies in [0, 1]",
        lambda p: _outside(p, 0, 1),
        _bernoulli,
        lambda p: p >= 1 if p in (0, 1) else None,
        _flip,
        lambda _: (0.0, 1.0),
    ),
    "binomial": Law(
        ("n", "p"),
        "int",
        "n is a count, and p lies in [0, 1]",
        lambda n, p: max(-n, 0) + abs(n - round(n)) + _outside(p, 0, 1),
        _binomial,
        lambda n, p: 0 if n == 0 or p == 0 else n if p == 1 else None,
        lambda generator, shape, n, p: generator.binomial(int(n), p, shape),
        lambda n, _: (0.0, float(n)),
    ),
    "uniform": Law(
        ("low", "high"),
        "real",
        "low is at most high",
        lambda low, high: max(low - high, 0),
        _uniform,
        lambda low, high: low if low == high else None,
        lambda generator, shape, low, high: even(generator, low, high, shape),
        lambda low, high: (float(low), float(high)),
    ),
    "normal": Law(
        ("mean", "deviation"),
        "real",
        "the deviation is 0 or more",
        lambda _, deviation: max(-deviation, 0),
        _normal,
        lambda mean, deviation: mean if deviation == 0 else None,
        lambda generator, shape, mean, deviation: generator.normal(mean, deviation, shape),
        lambda mean, d: (float(mean - _FARTHEST * d), float(mean + _FARTHEST * d)),
    ),
    "chi_squared": Law(
        ("n",),
        "real",
        "n is a count",
        lambda n: max(-n, 0),
        _chi_squared,
        lambda n: 0 if n == 0 else None,
        lambda generator, shape, n: generator.chisquare(n, shape),
        lambda n: (0.0, float((math.sqrt(n) + _FARTHEST) ** 2)),
    ),
    "bounded_sum": Law(
        ("n",),
        "real",
        "n is a count",
        lambda n: max(-n, 0),
        _bounded,
        lambda n: 0 if n == 0 else None,
    ),
}
