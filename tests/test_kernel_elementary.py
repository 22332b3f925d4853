"""The exponentials of kernels: accurate everywhere, and right at the edges."""

import functools
import math
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from irlang.interp.kernel_elementary import HELPERS
from irlang.scalar import SCALARS

Array = np.ndarray[Any, Any]
FUNCTIONS = {"exp": "exp_of", "expm1": "expm1_of", "tanh": "tanh_of", "erf": "erf_of"}
FUNCTIONS["sigmoid"] = "sigmoid"
_WIDEST = {"exp": 745.0, "expm1": 709.0, "sigmoid": 745.0}  # beyond, nothing changes any more


@functools.cache
def texts(compiled: bool) -> dict[str, Any]:
    """What the texts define, by Python or by numba."""
    space: dict[str, Any] = {"math": math, "np": np}
    for text in HELPERS.values():
        exec(text, space)  # noqa: S102
        if compiled:
            numba = pytest.importorskip("numba")
            name = text[4 : text.index("(")]
            space[name] = numba.njit(fastmath={"contract"}, error_model="numpy")(space[name])
    return space


def by_text(name: str, x: float, *, compiled: bool = False) -> float:
    with np.errstate(all="ignore"):
        return float(texts(compiled)[FUNCTIONS[name]](np.float64(x)))


def ulps(name: str, x: float) -> float:
    """How far off a value is, in units in the last place; beyond the largest number it has none,
    and infinity is right.
    """
    with mpmath.workdps(40):
        expected, found = SCALARS[name].exact(mpmath.mpf(x)), by_text(name, x)
        if math.isinf(float(expected)):
            return 0.0 if found == float(expected) else math.inf
        off = abs(mpmath.mpf(found) - expected)
        return float(off / mpmath.mpf(float(np.spacing(abs(float(expected))))))


@pytest.mark.parametrize("name", FUNCTIONS)
@example(size=9.0, fraction=2.0, sign=1)  # exp of it is infinite
@given(
    size=st.floats(-40, math.log2(745.0)), fraction=st.floats(1, 2), sign=st.sampled_from((-1, 1))
)
def test_two_units_in_the_last_place(name: str, size: float, fraction: float, sign: int) -> None:
    x = sign * min(2.0**size * fraction, _WIDEST.get(name, 40.0))
    assert ulps(name, x) <= 2.5


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(
    "x", [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, -5e-324, 1e-310, 1e3, -1e3, 1e308]
)
def test_the_edges_are_those_of_numpy(name: str, x: float) -> None:
    with np.errstate(all="ignore"):
        expected = float(SCALARS[name].numpy(np.array([x]))[0])
    found = by_text(name, x)
    np.testing.assert_equal(found, expected)
    assert math.isnan(x) or math.copysign(1.0, found) == math.copysign(1.0, expected)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_compiler_gives_what_python_gives(name: str) -> None:
    x = np.concatenate([np.linspace(-50, 50, 301), np.linspace(-1.5, 1.5, 301)])
    found = [by_text(name, one, compiled=True) for one in x]
    np.testing.assert_allclose(found, [by_text(name, one) for one in x], rtol=2.0**-50, atol=0)
