"""Special functions against integrals by Gauss's rule, and by what is known of their products."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irlang.adjoint import adjoint
from irlang.catalog import builtin
from irlang.equations import TensorInfo
from irlang.expand import expand
from irlang.instance import instantiate
from irlang.interp import rounding
from irlang.interp.balls import Ball
from irlang.interp.plain import load
from tests.ops.compare import agrees, exactly, expansion, left_open, reals, results

few = settings(max_examples=25)
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(120)


def integral(of: Callable[[Any], Any], low: Any, high: Any) -> Any:
    """Of smooth functions, one for each end, by 120 points."""
    half, middle = (high - low) / 2, (high + low) / 2
    at = middle[..., None] + half[..., None] * _NODES
    return half * (of(at) @ _WEIGHTS)


@given(data=st.data(), order=st.sampled_from([0, 1]))
@few
def test_bessel_functions_are_means_over_a_circle(data: st.DataObject, order: int) -> None:
    x = data.draw(reals((4,), -30, 30))
    angle = (np.arange(120) + 0.5) * math.pi / 120
    expected = np.cos(order * angle - x[:, None] * np.sin(angle)).mean(-1)
    name = ("zero", "one")[order]
    agrees("bessel_j", {"x": x}, expected, operations=64, magnitude=1.0, order=name)


@given(data=st.data())
@few
def test_bessel_functions_of_both_kinds_make_a_known_determinant(data: st.DataObject) -> None:
    """J1 Y0 - J0 Y1 = 2 / (pi x), whose integral over the orders is that of no other pair."""
    x = data.draw(reals((4,), 0.05, 30))
    found = {
        kind + order: results(f"bessel_{kind}", {"x": x}, order=order)["exact"][0]
        for kind in "jy"
        for order in ("zero", "one")
    }
    made = found["jone"] * found["yzero"] - found["jzero"] * found["yone"]
    np.testing.assert_allclose(made, 2 / (math.pi * x), rtol=1e-13)
    # by which Y0 is known up to a multiple of J0: its sum of Neumann's, of the even orders
    assert (
        abs(results("bessel_y", {"x": np.array([1.0])})["exact"][0][0] - 0.08825696421567696)
        < 1e-16
    )


def test_bessel_functions_at_ends() -> None:
    ends = np.array([0.0, -0.0, -1.0, -np.inf, np.inf, np.nan])
    for order, first in (("zero", 1.0), ("one", 0.0)):
        j = results("bessel_j", {"x": ends}, order=order)
        y = results("bessel_y", {"x": ends}, order=order)
        for meaning in j:
            assert j[meaning][0][:2].tolist() == [first, first]
            assert np.isnan(j[meaning][0][5])
            assert y[meaning][0][:2].tolist() == [-np.inf, -np.inf]
            assert np.isnan(y[meaning][0][[2, 5]]).all()
        for op in ("bessel_j", "bessel_y"):
            found = left_open(op, {"x": ends}, order=order)
            assert found is not None
            assert found.tolist() == [False, False, False, True, True, False]


@given(data=st.data())
@few
def test_exponential_integrals(data: st.DataObject) -> None:
    """Ei(x) and E1(x) differ from log(x) and Euler's constant by an entire function's integral."""
    x = data.draw(reals((4,), 0.05, 6))
    rise = integral(lambda t: np.expm1(t) / t, np.zeros_like(x), x)
    fall = integral(lambda t: np.expm1(-t) / t, np.zeros_like(x), x)
    shared = np.log(x) + np.euler_gamma
    size = 1 + np.abs(shared) + np.abs(rise)
    agrees("expint", {"x": x}, shared + rise, operations=64, magnitude=size)
    agrees("exp1", {"x": x}, -shared - fall, operations=64, magnitude=size)


@given(data=st.data())
@few
def test_dilogarithms(data: st.DataObject) -> None:
    x = data.draw(reals((4,), 0.25, 6))
    with np.errstate(all="ignore"):
        found = integral(lambda t: np.where(t == 1, -1.0, np.log(t) / (1 - t)), np.ones_like(x), x)
    agrees("spence", {"x": x}, found, operations=64, magnitude=1.0)
    ends = np.array([0.0, 1.0, -1.0, np.inf, np.nan])
    agrees("spence", {"x": ends}, np.array([math.pi**2 / 6, 0.0, np.nan, -np.inf, np.nan]))


@given(data=st.data())
@few
def test_integrals_of_dawson_and_fresnel(data: st.DataObject) -> None:
    x = data.draw(reals((4,), -4, 4))
    zero = np.zeros_like(x)
    grown = integral(lambda t: np.exp(t * t - (x * x)[:, None]), zero, x)
    agrees("dawsn", {"x": x}, grown, operations=256, magnitude=1.0)
    sine = integral(lambda t: np.sin(math.pi / 2 * t * t), zero, x)
    cosine = integral(lambda t: np.cos(math.pi / 2 * t * t), zero, x)
    agrees("fresnel", {"x": x}, sine, operations=256, magnitude=1.0, of="sine")
    agrees("fresnel", {"x": x}, cosine, operations=256, magnitude=1.0, of="cosine")
    ends = np.array([np.inf, -np.inf, np.nan])
    agrees("dawsn", {"x": ends}, np.array([0.0, -0.0, np.nan]))
    for of in ("sine", "cosine"):
        agrees("fresnel", {"x": ends}, np.array([0.5, -0.5, np.nan]), of=of)
    far = np.array([2000.0, -1e5, 1e30, 1e200])
    agrees("dawsn", {"x": far}, (1 + 0.5 / far**2 + 0.75 / far**4) / (2 * far), operations=4)


def _value(of: Callable[..., Any]) -> Callable[..., Any]:
    """By one of NumPy's series, of which all coefficients but the last are 0."""
    return lambda x, n: of(x, [0.0] * n + [1.0])


POLYNOMIALS: dict[str, Callable[[Any, int], Any]] = {
    "chebyshev_t": _value(np.polynomial.chebyshev.chebval),
    "hermite_h": _value(np.polynomial.hermite.hermval),
    "hermite_he": _value(np.polynomial.hermite_e.hermeval),
    "laguerre_l": _value(np.polynomial.laguerre.lagval),
    "legendre_p": _value(np.polynomial.legendre.legval),
    # of x = cos(a)
    "chebyshev_u": lambda x, n: np.sin((n + 1) * np.arccos(x)) / np.sin(np.arccos(x)),
    "chebyshev_v": lambda x, n: np.cos((n + 0.5) * np.arccos(x)) / np.cos(np.arccos(x) / 2),
    "chebyshev_w": lambda x, n: np.sin((n + 0.5) * np.arccos(x)) / np.sin(np.arccos(x) / 2),
}


@given(data=st.data(), family=st.sampled_from(sorted(POLYNOMIALS)), n=st.integers(0, 8))
@few
def test_orthogonal_polynomials(data: st.DataObject, family: str, n: int) -> None:
    x = data.draw(reals((4,), -0.9, 0.9))
    function = POLYNOMIALS[family]
    # terms of the recurrence are no larger than at i, where all have one sign
    size = float(np.abs(np.polynomial.hermite.hermval(1j, [0.0] * n + [1.0]))) + 1000
    for shifted in (False, True) if family.startswith("chebyshev") else (False,):
        at = (x + 1) / 2 if shifted else x
        agrees("orthogonal_polynomial", {"x": at}, function(x, n), operations=8 * n + 8,
               magnitude=size, n=n, family=family, shifted=shifted)  # fmt: skip


@given(
    x=st.lists(st.floats(-0.96875, 0.96875, width=32), min_size=1, max_size=4),
    n=st.integers(6, 24),
    family=st.sampled_from(["chebyshev_t", "chebyshev_u"]),
)
@few
def test_cosines_may_stand_for_polynomials_of_high_degrees(
    x: list[float], n: int, family: str
) -> None:
    """As PyTorch documents of the first two kinds, in f32."""
    at = np.array(x, np.float32)
    angle = np.arccos(at)
    if family == "chebyshev_t":
        wanted = np.cos(np.float32(n) * angle)
    else:
        wanted = np.sin(np.float32(n + 1) * angle) / np.sin(angle)
    op, info = builtin().op("orthogonal_polynomial"), TensorInfo(at.shape, "f32")
    assert op is not None
    made = expand(instantiate(op, {"x": info}, {"n": n, "family": family}), builtin())
    balls = {"x": Ball(load(info, at))}
    found = rounding.evaluate(made, balls, "f32")["y"]
    assert np.all(np.abs(wanted.astype(np.float64) - found.value) <= found.bound)
    exact = POLYNOMIALS[family](at.astype(np.float64), n)
    assert np.all(np.abs(exact - found.value) <= 2.0**-40 * 3.0**n)
    if n == 6 and family == "chebyshev_t":
        assert np.all(found.bound <= 1e-4)


def test_an_orthogonal_polynomial_is_left_open_at_infinity() -> None:
    found = left_open("orthogonal_polynomial", {"x": np.array([1.0, -np.inf, np.nan])}, n=2)
    assert found is not None
    assert found.tolist() == [False, True, False]


@given(data=st.data(), order=st.integers(1, 8))
@few
def test_incomplete_gamma_functions_of_whole_orders(data: st.DataObject, order: int) -> None:
    """Of the order n the upper one is a sum of n terms, x^k exp(-x) / k!."""
    x = data.draw(reals((4,), 0, 20))
    upper = sum(np.exp(-x) * x**k / math.factorial(k) for k in range(order))
    a = np.array(float(order))
    agrees("gammaincc", {"a": a, "x": x}, upper, operations=64, magnitude=1.0)
    agrees("gammainc", {"a": a, "x": x}, 1 - upper, operations=64, magnitude=1.0)
    half = np.full(4, 0.5)
    erf = np.array([math.erf(math.sqrt(number)) for number in x])
    agrees("gammainc", {"a": half, "x": x}, erf, operations=16, magnitude=1.0)


def test_incomplete_gamma_functions_at_ends() -> None:
    a = np.array([0.0, 1.0, 0.0, -1.0, 1.0, np.nan, 1.0, 1.0, 2e5])
    x = np.array([1.0, 0.0, 0.0, 1.0, -1.0, 1.0, np.nan, np.inf, 1.0])
    lower = np.array([1.0, 0.0, np.nan, np.nan, np.nan, np.nan, np.nan, 1.0])
    agrees("gammainc", {"a": a[:-1], "x": x[:-1]}, lower)
    agrees("gammaincc", {"a": a[:-1], "x": x[:-1]}, 1 - lower)
    for op in ("gammainc", "gammaincc"):
        found = left_open(op, {"a": a, "x": x})
        assert found is not None
        assert found.tolist() == [False] * 8 + [True]


@given(data=st.data())
@few
def test_zeta_functions_are_sums(data: st.DataObject) -> None:
    s, q = data.draw(reals((4,), 1.25, 6)), data.draw(reals((4,), 0.25, 9))
    far = q + 200
    terms = (q[:, None] + np.arange(200)) ** -s[:, None]
    rest = far ** (1 - s) / (s - 1) + far**-s / 2 + s * far ** (-s - 1) / 12
    total = terms.sum(-1) + rest - s * (s + 1) * (s + 2) * far ** (-s - 3) / 720
    agrees("zeta", {"s": s, "q": q}, total, operations=200)
    one = np.array([1.0])
    agrees("zeta", {"s": 2 * one, "q": one}, math.pi**2 / 6 * one, operations=2)
    agrees("zeta", {"s": one, "q": one}, np.inf * one)
    found = left_open("zeta", {"s": np.array([0.5, 2, 2, 1]), "q": np.array([1.0, 0, 3, 2])})
    assert found is not None
    assert found.tolist() == [True, True, False, False]


@pytest.mark.parametrize("op", ["gammainc", "gammaincc", "zeta"])
def test_gradients_of_functions_that_hold_an_argument_constant(op: str) -> None:
    """By the one a central quotient of the exact meaning; none by the other."""
    held, moved = ("s", "q") if op == "zeta" else ("a", "x")
    inputs = {held: np.array([1.5, 2.0, 4.25]), moved: np.array([0.75, 2.0, 5.5])}
    step = 2.0**-12
    ends = [
        results(op, {**inputs, moved: inputs[moved] + sign * step})["exact"][0] for sign in (1, -1)
    ]
    backward = adjoint(expansion(op, inputs), [held, moved])
    found = exactly(backward, {**inputs, "d_y": np.ones(3)})
    np.testing.assert_allclose(found[f"d_{moved}"], (ends[0] - ends[1]) / (2 * step), rtol=1e-5)
    assert found[f"d_{held}"].tolist() == [0.0, 0.0, 0.0]
