"""Functions of elements that NumPy and PyTorch have beside the usual ones, against those."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from irlang.catalog import builtin
from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.expand import expand
from irlang.instance import instantiate
from irlang.interp import reference, rounding
from irlang.interp.balls import Ball
from irlang.interp.plain import load
from tests.ops.compare import agrees, broadcasting, expansion, integers, left_open, reals, shapes

few = settings(max_examples=25)
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
Function = Callable[..., Any]


def of_torch(function: Function, **options: Any) -> Function:
    """A function of PyTorch over arrays."""
    return lambda *args: function(*map(torch.from_numpy, args), **options).numpy()


ONE: dict[str, tuple[Function, float, float]] = {
    "frac": (of_torch(torch.frac), -6, 6),
    "nan_to_num": (np.nan_to_num, -6, 6),
    "exp2": (np.exp2, -30, 30),
    "log2": (np.log2, -1, 30),
    "log10": (np.log10, -1, 30),
    "cbrt": (np.cbrt, -6, 6),
    "sinc": (np.sinc, -6, 6),
    "entr": (of_torch(torch.special.entr), -1, 6),
    "deg2rad": (np.deg2rad, -400, 400),
    "rad2deg": (np.rad2deg, -6, 6),
}


@pytest.mark.parametrize("op", ONE)
@given(data=st.data())
@few
def test_a_function_of_one_tensor(op: str, data: st.DataObject) -> None:
    function, low, high = ONE[op]
    x = data.draw(reals(data.draw(shapes()), low, high, special=True))
    agrees(op, {"x": x}, function(x), operations=8, magnitude=2.0 if op == "sinc" else 0.0)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_pi_is_rounded_in_every_type(dtype: str) -> None:
    """sin(pi x) / (pi x) of a whole number is 0, whatever the nearest number to pi makes of it."""
    x = np.arange(1.0, 9.0)
    tensors = {"x": Ball(load(TensorInfo(x.shape, dtype), x))}
    op = builtin().op("sinc")
    assert op is not None
    made = expand(instantiate(op, {"x": TensorInfo(x.shape, dtype)}, {}), builtin())
    found = rounding.evaluate(made, tensors, dtype)["y"]
    assert np.all(np.abs(found.value) <= found.bound)
    assert np.all(found.bound <= 16 * DTYPES[dtype].unit)


@given(data=st.data())
@few
def test_the_inverse_of_the_complementary_error_function(data: st.DataObject) -> None:
    x = data.draw(reals((4,), 0.1, 1.9))
    agrees("erfcinv", {"x": x}, of_torch(torch.erfinv)(1 - x), operations=16, magnitude=8.0)
    ends = np.array([0.0, 2.0, -1.0, 3.0])
    agrees("erfcinv", {"x": ends}, np.array([np.inf, -np.inf, np.nan, np.nan]))


TWO: dict[str, Function] = {
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "log_add_exp": np.logaddexp,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "multiply_no_nan": lambda a, b: np.where(b == 0, 0, a * b),
    "divide_no_nan": lambda a, b: np.where(b == 0, 0, a / b),
}


@pytest.mark.parametrize("op", TWO)
@given(data=st.data())
@few
def test_a_function_of_two_tensors(op: str, data: st.DataObject) -> None:
    shape = data.draw(broadcasting(2))
    a, b = (data.draw(reals(s, special=True)) for s in shape.input_shapes)
    agrees(op, {"a": a, "b": b}, TWO[op](a, b), operations=8, magnitude=4.0)


@given(data=st.data())
@few
def test_powers_of_two_are_added(data: st.DataObject) -> None:
    a, b = (data.draw(reals((4,), -60, 60, special=True)) for _ in range(2))
    agrees("log_add_exp", {"a": a, "b": b}, np.logaddexp2(a, b), operations=8, magnitude=4.0,
           base="two")  # fmt: skip


@given(data=st.data())
@few
def test_products_with_a_logarithm(data: st.DataObject) -> None:
    x, y = (data.draw(reals((5,), low, special=True)) for low in (-6, -2))
    y = np.where(np.isnan(y), 1.0, y)
    for op, function in (("xlogy", torch.xlogy), ("xlog1py", torch.special.xlog1py)):
        expected = of_torch(function)(x, y)
        agrees(op, {"x": x, "y": y}, expected, operations=8, magnitude=20.0)


@given(data=st.data())
@few
def test_a_step(data: st.DataObject) -> None:
    x = np.nan_to_num(data.draw(reals((5,), -1, 1, special=True)))
    at_zero = data.draw(reals((5,), -1, 1, special=True))
    agrees("heaviside", {"x": x, "at_zero": at_zero}, np.heaviside(x, at_zero))


@given(data=st.data(), equal_nan=st.booleans())
@few
def test_what_is_close(data: st.DataObject, equal_nan: bool) -> None:
    a, b = (data.draw(reals((6,), special=True)) for _ in range(2))
    options: dict[str, Any] = {"rtol": 0.25, "atol": 0.125, "equal_nan": equal_nan}
    agrees("isclose", {"a": a, "b": b}, np.isclose(a, b, **options), **options)


@given(data=st.data())
@few
def test_times_a_power_of_two(data: st.DataObject) -> None:
    x, n = data.draw(reals((4,))), data.draw(integers((4,), np.int32, -40, 40))
    agrees("ldexp", {"x": x, "n": n}, np.ldexp(x, n))


@given(data=st.data())
@few
def test_functions_of_three_tensors(data: st.DataObject) -> None:
    a, b, c = (data.draw(reals((4,))) for _ in range(3))
    agrees("lerp", {"a": a, "b": b, "w": c}, a + c * (b - a), operations=5, magnitude=80.0)
    given_ = {"x": a, "a": b, "b": c}
    agrees("addcmul", given_, a + 0.5 * b * c, operations=3, magnitude=40.0, value=0.5)
    divisor = {**given_, "b": np.abs(c) + 1}
    expected = a - 3 * b / divisor["b"]
    agrees("addcdiv", divisor, expected, operations=3, magnitude=40.0, value=-3)


@given(data=st.data(), eps=st.sampled_from([-1.0, 0.0, 0.125]))
@few
def test_logit(data: st.DataObject, eps: float) -> None:
    x = data.draw(reals((5,), -1, 2))
    expected = of_torch(torch.logit, eps=None if eps < 0 else eps)(x)
    agrees("logit", {"x": x}, expected, operations=8, magnitude=4.0, eps=eps)


def test_numbers_may_stand_for_what_is_none() -> None:
    x = np.array([1.0, np.nan, np.inf, -np.inf])
    agrees("nan_to_num", {"x": x}, np.array([1.0, 7.0, 2.0, -3.0]), nan=7, posinf=2, neginf=-3)


@given(data=st.data(), invert=st.booleans())
@few
def test_what_is_among_others(data: st.DataObject, invert: bool) -> None:
    x, values = data.draw(reals((4,), special=True)), data.draw(reals((3,), special=True))
    expected = np.isin(x, values, invert=invert)
    agrees("isin", {"x": x, "values": values}, expected, invert=invert)


# Zeros have a sign, which `exact`, whose numbers are reals, does not see.

ZEROS = np.array([0.0, -0.0, 2.0, -2.0])


def by_reference(op: str, **inputs: Any) -> Any:
    made = expansion(op, inputs)
    return reference.evaluate(made, inputs)[made.outputs[0]]


def test_the_sign_of_zero_counts() -> None:
    np.testing.assert_array_equal(by_reference("signbit", x=ZEROS), np.signbit(ZEROS))
    a, b = (side.reshape(-1).copy() for side in np.meshgrid(ZEROS, ZEROS))
    found = by_reference("copysign", a=a, b=b)
    np.testing.assert_array_equal(found, np.copysign(a, b))
    np.testing.assert_array_equal(np.signbit(found), np.signbit(b))
    found = by_reference("atan2", a=a, b=b)
    np.testing.assert_allclose(found, np.arctan2(a, b), rtol=1e-15)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(np.arctan2(a, b)))


def test_nan_has_no_sign() -> None:
    x = np.array([1.0, np.nan])
    open_ = left_open("signbit", {"x": x})
    assert open_ is not None
    np.testing.assert_array_equal(open_, [False, True])
