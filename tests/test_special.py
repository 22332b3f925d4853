"""Special functions where their usual series do not reach."""

from __future__ import annotations

import math
import time

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irlang import special
from irlang.catalog import builtin
from irlang.equations import TensorInfo
from irlang.expand import expand
from irlang.instance import instantiate
from irlang.interp import exact, reference
from irlang.interp.balls import Ball, Balls
from irlang.scalar_values import erf


@pytest.mark.parametrize("order", [1, 2, 3, 8, 40])
@pytest.mark.parametrize("x", [-50.3, -60.25, -120.9999, -300.0001])
def test_polygamma_left_of_many_poles(order: int, x: float) -> None:
    """Against mpmath's recurrence, with digits to spare for what cancels in it."""
    with mpmath.workdps(120):
        right = mpmath.re(mpmath.psi(order, mpmath.mpf(x)))
    with mpmath.workdps(30):
        assert abs(special.polygamma_exact(order, mpmath.mpf(x)) / right - 1) < 1e-28


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("x", [1e-300, 5e-324, 1e-5, 40.0, 1e4, 1e200, 8e307, 1.7e308])
def test_bessel_functions_over_the_whole_range(order: int, x: float) -> None:
    exact = {special.bessel_i: special.bessel_i_exact, special.bessel_k: special.bessel_k_exact}
    for function, exactly in exact.items():
        with mpmath.workdps(30):
            right = float(exactly(order, mpmath.mpf(x)))
        assert np.isclose(function(order, np.array([x]))[0], right, rtol=16 * 2.0**-52, atol=5e-324)


def test_polygamma_far_to_the_left_takes_no_longer() -> None:
    start = time.monotonic()
    with mpmath.workdps(30):
        far = special.polygamma_exact(1, mpmath.mpf(-(10**9)) - mpmath.mpf(1) / 4)
        # of the trigamma function nothing but the periodic part is left: pi² / sin²(pi / 4)
        assert abs(far - 2 * mpmath.pi**2) < 2e-9
    assert np.isfinite(special.polygamma([[3.0]], [[-4_000_000.5]])).all()
    assert time.monotonic() - start < 5


def test_the_error_function_is_good_to_a_unit() -> None:
    """Between the places that it is tabled at, at them, near 0, and where it is 1."""
    rng = np.random.default_rng(5)
    tabled = np.arange(0, 6.2, 1 / 1024)
    x = np.concatenate([rng.normal(0, 2, 4000), tabled, 10.0 ** rng.uniform(-320, 1, 2000)])
    true = np.array([float(mpmath.erf(mpmath.mpf(float(number)))) for number in x])
    assert (np.abs(erf(x) - true) <= np.spacing(np.abs(true))).all()
    ends = erf(np.array([[-np.inf, -0.0, 0.0], [np.inf, 1e300, np.nan]]))
    np.testing.assert_array_equal(ends, [[-1, 0, 0], [1, 1, np.nan]])
    assert np.signbit(ends[0, 1])
    assert not np.signbit(ends[0, 2])


@pytest.mark.parametrize("order", ["zero", "one"])
def test_bessel_functions_at_infinity_are_no_product_of_nothing(order: str) -> None:
    """i0 and i1 grow without end: their scaled forms vanish, which says nothing of them."""
    op = builtin().op("bessel_i")
    assert op is not None
    call = instantiate(op, {"x": TensorInfo((3,), "f32")}, {"order": order})
    expansion = expand(call, builtin())
    given = {"x": np.array([np.inf, -np.inf, np.nan])}
    wanted = [np.inf, -np.inf if order == "one" else np.inf, np.nan]
    for meaning in (reference.evaluate, lambda e, v: {"y": exact.evaluate(e, v)["y"].numpy()}):
        np.testing.assert_array_equal(meaning(expansion, given)["y"], wanted)


@given(st.floats(-0.6875, -0.3125, width=32), st.sampled_from([0, 2, 4]))
def test_a_sum_of_what_lies_on_either_side_of_a_zero_is_right(x: float, order: int) -> None:
    """As (-1)^(n + 1) n! zeta(n + 1, x) is computed: its first two terms cancel."""
    if order == 0:
        computed = float(np.float32(float(mpmath.digamma(x + 1))) - np.float32(1) / np.float32(x))
    else:
        power = np.float32(order + 1)
        total = np.float32(0)
        for k in range(12):
            total = np.float32(total + np.float32(1) / np.float32(np.float32(x + k) ** power))
        total = np.float32(total + np.float32(float(mpmath.zeta(order + 1, x + 12))))
        computed = float(-total * np.float32(math.factorial(order)))
    domain = Balls("f32")
    found = domain.apply("polygamma", [Ball(np.array([order])), Ball(np.array([float(x)]))])
    assert abs(computed - found.value[0]) <= found.bound[0]
