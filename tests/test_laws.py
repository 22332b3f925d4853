"""The laws: tails against sums in high precision, draws against the tails."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from irlang.laws import ALARM, LAWS, even, probability


def _binomial(k: int, n: int, p: Fraction) -> tuple[float, float]:
    terms = [math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(n + 1)]
    return float(sum(terms[: k + 1])), float(sum(terms[k:]))


@pytest.mark.parametrize("p", [Fraction(1, 2), Fraction(1, 10), Fraction(93, 100)])
@pytest.mark.parametrize("n", [1, 2, 17, 60])
def test_binomial_tails_are_sums_of_terms(n: int, p: Fraction) -> None:
    for k in range(n + 1):
        found = LAWS["binomial"].tails(k, n, float(p))
        assert found == pytest.approx(_binomial(k, n, p), rel=1e-11)


@pytest.mark.parametrize(("n", "p"), [(10**4, 0.3), (10**6, 0.999), (10**6, 1e-4), (10**7, 0.5)])
def test_binomial_tails_of_large_counts(n: int, p: float) -> None:
    deviation = math.sqrt(n * p * (1 - p))
    for far in (-7, -3, 0, 3, 7):
        k = round(n * p + far * deviation)
        assert LAWS["binomial"].tails(k, n, p)[0] == pytest.approx(_summed(k, n, p), rel=1e-6)


def _summed(k: int, n: int, p: float) -> float:
    """The same sum with thirty digits, downwards from k until terms no longer count."""
    with mpmath.workdps(30):
        q = mpmath.mpf(p)
        log = mpmath.loggamma(n + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(n - k + 1)
        term = mpmath.exp(log + k * mpmath.log(q) + (n - k) * mpmath.log(1 - q))
        total = term
        while k and (term > total * mpmath.mpf(10) ** -15 or k > n * p):
            term *= mpmath.mpf(k) / (n - k + 1) * (1 - q) / q
            total += term
            k -= 1
        return float(total)


@pytest.mark.parametrize("n", [1, 2, 9, 1000, 10**6])
def test_chi_squared_tails(n: int) -> None:
    for far in (-6, -2, 0, 2, 6):
        q = max(n + far * math.sqrt(2 * n), 1e-3)
        with mpmath.workdps(30):
            above = mpmath.gammainc(mpmath.mpf(n) / 2, q / 2, regularized=True)
            wanted = (float(1 - above), float(above))
        assert LAWS["chi_squared"].tails(q, n) == pytest.approx(wanted, rel=1e-7)


def test_normal_tails() -> None:
    for z in (-30.0, -6.1, -1.0, 0.0, 2.5, 20.0):
        with mpmath.workdps(30):
            wanted = float(mpmath.ncdf(z)), float(mpmath.ncdf(-z))
        assert LAWS["normal"].tails(1 + 2 * z, 1, 2) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize(
    ("law", "params"),
    [("bernoulli", (0.3,)), ("binomial", (20, 0.7)), ("uniform", (-1, 3)), ("normal", (2, 0.5)),
     ("chi_squared", (6,))],
)  # fmt: skip
def test_draws_follow_their_tails(law: str, params: tuple[float, ...]) -> None:
    """The share of draws at most a quantile, itself judged by the binomial law."""
    row = LAWS[law]
    assert row.draw is not None
    values = np.sort(row.draw(np.random.default_rng(1), (20_000,), *params)).astype(float)
    for value in values[[100, 5_000, 10_000, 19_900]]:
        at_most, _ = row.tails(value, *params)
        count = int(np.sum(values <= value))
        assert probability("binomial", count, count, (20_000, at_most)) > ALARM


def test_a_bounded_sum_is_as_rare_as_is_said() -> None:
    """Of many sums of centred numbers, no larger share is far out than the bound allows."""
    rng = np.random.default_rng(2)
    sums = (rng.random((100_000, 20)) - 0.5).sum(axis=1)
    for k in (1.0, 2.0, 3.0):
        assert np.mean(sums >= k) <= LAWS["bounded_sum"].tails(k, 20)[1]


def test_the_likeliest_value_of_an_interval_is_judged() -> None:
    assert probability("normal", -1.0, 50.0, (0, 1)) == 1.0
    assert probability("normal", 3.0, 50.0, (0, 1)) == probability("normal", 3.0, 3.0, (0, 1))
    assert probability("normal", -50.0, -3.0, (0, 1)) == probability("normal", 3.0, 3.0, (0, 1))
    assert probability("binomial", 900, 1000, (1000, 0.5)) < ALARM


@pytest.mark.parametrize("law", LAWS)
def test_nothing_is_no_alarm(law: str) -> None:
    """Of no elements nothing can be said."""
    params = {"binomial": (0, 0.5), "chi_squared": (0,), "bounded_sum": (0,), "normal": (0, 0)}
    if law in params:
        assert probability(law, 0, 0, params[law]) == 1.0


def test_a_range_may_be_wider_than_the_largest_number() -> None:
    one, other = (np.random.default_rng(5) for _ in range(2))
    np.testing.assert_array_equal(even(one, -0.3, 2.5, (9,)), other.uniform(-0.3, 2.5, 9))
    wide = even(one, -1.7e308, 1.7e308, (1000,))
    assert np.all(np.abs(wide) <= 1.7e308)
    assert 0.4 < np.mean(wide > 0) < 0.6
    assert np.all(np.isfinite(even(one, -math.inf, 1.0, (9,))))
