"""Element by element: arithmetic, order, logic, selection and conversion, against NumPy."""

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irlang.diagnostics import InvalidInput
from irlang.dtypes import DTYPES, integer_range
from tests.ops.compare import (
    agrees,
    booleans,
    broadcasting,
    exactly,
    expansion,
    integers,
    left_open,
    reals,
    results,
    shapes,
)

few = settings(max_examples=25)
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
Function = Callable[..., Any]

# One tensor, floats: name -> function, lowest and highest value drawn.
REAL: dict[str, tuple[Function, float, float]] = {
    "identity": (lambda x: x, -6, 6),
    "stop_gradient": (lambda x: x, -6, 6),
    "negate": (np.negative, -6, 6),
    "abs": (np.abs, -6, 6),
    "sign": (np.sign, -6, 6),
    "square": (np.square, -6, 6),
    "reciprocal": (np.reciprocal, -6, 6),
    "floor": (np.floor, -6, 6),
    "ceil": (np.ceil, -6, 6),
    "round": (np.rint, -6, 6),
    "trunc": (np.trunc, -6, 6),
    "sqrt": (np.sqrt, -1, 6),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0, 6),
    "exp": (np.exp, -30, 30),
    "expm1": (np.expm1, -30, 30),
    "log": (np.log, -1, 30),
    "log1p": (np.log1p, -2, 30),
    "sin": (np.sin, -30, 30),
    "cos": (np.cos, -30, 30),
    "tan": (np.tan, -1.5, 1.5),
    "asin": (np.arcsin, -1.5, 1.5),
    "acos": (np.arccos, -1.5, 1.5),
    "atan": (np.arctan, -30, 30),
    "sinh": (np.sinh, -30, 30),
    "cosh": (np.cosh, -30, 30),
    "tanh": (np.tanh, -30, 30),
    "asinh": (np.arcsinh, -30, 30),
    "acosh": (np.arccosh, 0, 30),
    "atanh": (np.arctanh, -1.5, 1.5),
    "erf": (np.vectorize(math.erf, otypes=[float]), -6, 6),
}


@pytest.mark.parametrize("op", REAL)
@given(data=st.data())
@few
def test_a_function_of_one_tensor(op: str, data: st.DataObject) -> None:
    function, low, high = REAL[op]
    x = data.draw(reals(data.draw(shapes()), low, high, special=True))
    agrees(op, {"x": x}, function(x))


WRAPPING: dict[str, Function] = {
    "identity": np.positive, "stop_gradient": np.positive, "negate": np.negative, "abs": np.abs,
    "sign": np.sign, "square": np.square,
}  # fmt: skip


@pytest.mark.parametrize("op", WRAPPING)
@given(data=st.data())
@few
def test_integers_wrap(op: str, data: st.DataObject) -> None:
    x = data.draw(integers(data.draw(shapes()), np.int8, -128, 127))
    agrees(op, {"x": x}, WRAPPING[op](x))


# Two tensors, floats: name -> function.
PAIRS: dict[str, Function] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "squared_difference": lambda a, b: np.square(a - b),
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}


@pytest.mark.parametrize("op", PAIRS)
@given(data=st.data())
@few
def test_two_tensors_broadcast(op: str, data: st.DataObject) -> None:
    first, second = data.draw(broadcasting(2)).input_shapes
    a = data.draw(reals(first, special=True))
    b = data.draw(reals(second, special=True))
    agrees(op, {"a": a, "b": b}, PAIRS[op](a, b), operations=3)


@given(data=st.data())
@few
def test_powers(data: st.DataObject) -> None:
    first, second = data.draw(broadcasting(2)).input_shapes
    a = data.draw(reals(first, -3, 3))
    b = data.draw(reals(second, -4, 4))
    agrees("power", {"a": a, "b": b}, np.power(a, b), operations=2)


@given(data=st.data())
@few
def test_quotients_rounded_down(data: st.DataObject) -> None:
    # Quarters are exact, so that every quotient is on one side of its whole number.
    first, second = data.draw(broadcasting(2)).input_shapes
    a = data.draw(integers(first, np.int64, -20, 20)) / 4
    b = data.draw(integers(second, np.int64, 1, 12)) / 4 * data.draw(st.sampled_from((-1, 1)))
    agrees("floor_divide", {"a": a, "b": b}, np.floor_divide(a, b))
    agrees("modulo", {"a": a, "b": b}, np.remainder(a, b), operations=2, magnitude=5)
    agrees("modulo", {"a": a, "b": b}, np.fmod(a, b), operations=2, magnitude=5, sign_of="dividend")


INTEGER_PAIRS: dict[str, Function] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "squared_difference": lambda a, b: np.square(a - b),
    "equal": np.equal,
    "less": np.less,
}


@pytest.mark.parametrize("op", INTEGER_PAIRS)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64])
@given(data=st.data())
@few
def test_two_integers_wrap(op: str, dtype: Any, data: st.DataObject) -> None:
    first, second = data.draw(broadcasting(2, 2)).input_shapes
    low, high = integer_range(np.dtype(dtype).name.replace("uint", "u").replace("int", "i"))
    a = data.draw(integers(first, dtype, low, high))
    b = data.draw(integers(second, dtype, low, high))
    agrees(op, {"a": a, "b": b}, INTEGER_PAIRS[op](a, b))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64])
@given(data=st.data())
@few
def test_integers_divide(dtype: Any, data: st.DataObject) -> None:
    name = np.dtype(dtype).name.replace("uint", "u").replace("int", "i")
    low, high = integer_range(name)
    first, second = data.draw(broadcasting(2, 2)).input_shapes
    a = data.draw(integers(first, dtype, max(low, -high), high))
    b = data.draw(integers(second, dtype, 1, high))
    if low and data.draw(st.booleans()):
        b = -b
    inputs = {"a": a, "b": b}
    truncated = ((a - np.fmod(a, b)) // b).astype(dtype)
    agrees("divide", inputs, truncated)
    agrees("floor_divide", inputs, np.floor_divide(a, b))
    agrees("modulo", inputs, np.remainder(a, b))
    agrees("modulo", inputs, np.fmod(a, b), sign_of="dividend")


MERGED: dict[str, Function] = {
    "add_n": lambda *xs: reduce(np.add, xs),
    "multiply_n": lambda *xs: reduce(np.multiply, xs),
    "average_n": lambda *xs: reduce(np.add, xs) / len(xs),
    "maximum_n": lambda *xs: reduce(np.maximum, xs),
    "minimum_n": lambda *xs: reduce(np.minimum, xs),
}


@pytest.mark.parametrize("op", MERGED)
@given(data=st.data())
@few
def test_any_number_of_tensors_broadcast(op: str, data: st.DataObject) -> None:
    drawn = data.draw(broadcasting(data.draw(st.integers(1, 4))))
    xs = tuple(data.draw(reals(shape)) for shape in drawn.input_shapes)
    scale = 6 if op in ("add_n", "average_n") else 0
    expected = np.broadcast_to(MERGED[op](*xs), drawn.result_shape)
    agrees(op, {"xs": xs}, expected, operations=len(xs), magnitude=scale * len(xs))


@given(data=st.data())
@few
def test_clip(data: st.DataObject) -> None:
    x = data.draw(reals(data.draw(shapes()), special=True))
    bounds: dict[str, Any] = {
        k: data.draw(st.floats(-4, 4)) for k in ("min", "max") if data.draw(st.booleans())
    }
    low, high = bounds.get("min", -np.inf), bounds.get("max", np.inf)
    agrees("clip", {"x": x}, np.minimum(np.maximum(x, low), high), **bounds)


@pytest.mark.parametrize(("low", "high"), [(-3, 4), (-1000, 5), (2.5, 1e30), (-math.inf, math.inf)])
def test_clip_of_integers(low: float, high: float) -> None:
    x = np.arange(-128, 128, dtype=np.int8)
    lowest, largest = int(max(low, -128)), int(min(high, 127))
    agrees("clip", {"x": x}, np.minimum(np.maximum(x, lowest), largest), min=low, max=high)


@pytest.mark.parametrize(
    ("dtype", "bounds", "wanted"),
    [
        (np.uint8, {"max": -1.25}, 0), (np.uint8, {"min": 300.5}, 255),
        (np.int8, {"min": 200}, 127), (np.int8, {"max": -200}, -128),
    ],
)  # fmt: skip
def test_a_bound_that_the_type_has_not_is_its_end(
    dtype: Any, bounds: dict[str, Any], wanted: int
) -> None:
    agrees("clip", {"x": np.array([0, 7], dtype)}, np.full(2, wanted, dtype), **bounds)


def test_clip_keeps_every_digit_of_an_integer() -> None:
    x = np.array([2**62 + 1, -(2**62) - 1, 5])
    agrees("clip", {"x": x}, np.array([2**62 + 1, -3, 5]), min=-3)


@given(data=st.data())
@few
def test_nan_and_infinity_are_found(data: st.DataObject) -> None:
    x = data.draw(reals(data.draw(shapes()), special=True))
    agrees("isnan", {"x": x}, np.isnan(x))
    agrees("isinf", {"x": x}, np.isinf(x))
    agrees("isinf", {"x": x}, np.isposinf(x), negative=False)
    agrees("isinf", {"x": x}, np.isneginf(x), positive=False)


LOGIC = {"logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor}


@pytest.mark.parametrize("op", LOGIC)
@given(data=st.data())
@few
def test_logic(op: str, data: st.DataObject) -> None:
    first, second = data.draw(broadcasting(2)).input_shapes
    a, b = data.draw(booleans(first)), data.draw(booleans(second))
    agrees(op, {"a": a, "b": b}, LOGIC[op](a, b))
    agrees("logical_not", {"x": a}, np.logical_not(a))
    agrees("equal", {"a": a, "b": b}, np.equal(a, b))


@given(data=st.data())
@few
def test_where(data: st.DataObject) -> None:
    condition, first, second = data.draw(broadcasting(3)).input_shapes
    c = data.draw(booleans(condition))
    a, b = data.draw(reals(first, special=True)), data.draw(reals(second, special=True))
    agrees("where", {"condition": c, "a": a, "b": b}, np.where(c, a, b))
    whole = [data.draw(integers(shape, np.int64, -(2**63), 2**63 - 1)) for shape in (first, second)]
    agrees("where", {"condition": c, "a": whole[0], "b": whole[1]}, np.where(c, *whole))


@pytest.mark.parametrize("to", [n for n, d in DTYPES.items() if d.kind != "real"])
@given(data=st.data())
@few
def test_a_real_becomes_an_integer_by_truncation_and_is_free_out_of_range(
    to: str, data: st.DataObject
) -> None:
    x = data.draw(reals(data.draw(shapes()), -300, 300, special=True))
    free = left_open("cast", {"x": x}, to=to)
    if to == "bool":
        assert free is None
        agrees("cast", {"x": x}, x != 0, to=to)
        return
    low, high = integer_range(to)
    outside = ~((np.trunc(x) >= low) & (np.trunc(x) <= high))
    assert free is not None
    assert np.array_equal(free, outside)
    inside = np.where(outside, 0, x)
    agrees("cast", {"x": inside}, inside.astype(DTYPES[to].numpy), to=to)


@pytest.mark.parametrize("to", ["i8", "u8", "i16", "u16", "i32", "u32"])
def test_a_real_is_free_from_one_beyond_the_range_on(to: str) -> None:
    low, high = integer_range(to)
    x = np.array([low - 1, low - 0.75, high + 0.75, high + 1])
    free = left_open("cast", {"x": x}, to=to)
    assert free is not None
    assert free.tolist() == [True, False, False, True]
    agrees("cast", {"x": x[1:3]}, np.array([low, high], DTYPES[to].numpy), to=to)


@pytest.mark.parametrize("to", [n for n, d in DTYPES.items() if not d.stored])
@given(data=st.data())
@few
def test_an_integer_is_cast_by_wrapping(to: str, data: st.DataObject) -> None:
    x = data.draw(integers(data.draw(shapes()), np.int32, -(2**31), 2**31 - 1))
    real = DTYPES[to].kind == "real"  # the meanings keep reals unrounded
    expected = x.astype(np.float64 if real else DTYPES[to].numpy)
    if to == "f16":
        expected = np.where(np.abs(expected) < 65520, expected, np.sign(expected) * np.inf)
    assert left_open("cast", {"x": x}, to=to) is None
    agrees("cast", {"x": x}, expected, to=to)
    agrees("cast", {"x": x > 0}, (x > 0).astype(expected.dtype), to=to)


def test_shapes_that_do_not_broadcast_are_refused() -> None:
    with pytest.raises(AssertionError, match=r"add\.b"):
        expansion("add", {"a": np.zeros((2, 3)), "b": np.zeros((2, 4))})


@pytest.mark.parametrize("op", ["divide", "floor_divide", "modulo"])
def test_an_integer_divided_by_zero_is_refused_a_real_is_not(op: str) -> None:
    zero = {"a": np.array([1, 2]), "b": np.array([1, 0])}
    with pytest.raises(InvalidInput, match=f"{op}.divisor"):
        exactly(expansion(op, zero), zero)
    real = {name: value.astype(np.float64) for name, value in zero.items()}
    expected = {"divide": np.inf, "floor_divide": np.inf, "modulo": np.nan}[op]
    agrees(op, real, np.array([{"modulo": 0.0}.get(op, 1.0), expected]))


SMALL = ["f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f4e2m1"]


@pytest.mark.parametrize("to", SMALL)
@given(data=st.data())
@settings(max_examples=20)
def test_cast_to_small_reals(to: str, data: st.DataObject) -> None:
    """As the types themselves round; beyond the largest as ONNX says."""
    row = DTYPES[to]
    x = data.draw(reals(data.draw(shapes()), -1000, 1000))
    if data.draw(st.booleans()):
        x = x / 1024
    with np.errstate(over="ignore"):
        rounded = x.astype(row.numpy).astype(np.float64)
    within = np.isfinite(rounded) & (np.abs(x) <= row.largest)
    bounded = np.where(within, rounded, np.sign(x) * row.largest)
    agrees("cast", {"x": x}, bounded, to=to)
    if row.bits == 8:
        for value in (np.inf, -np.inf, np.nan, 1e6):
            got = results("cast", {"x": np.array(value)}, to=to, saturate=False)
            with np.errstate(over="ignore"):
                want = float(np.asarray(value).astype(row.numpy))
            for (found,) in got.values():
                np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("to", ["i2", "i4", "u2", "u4"])
@given(data=st.data())
@settings(max_examples=20)
def test_cast_to_small_integers_wraps(to: str, data: st.DataObject) -> None:
    x = data.draw(integers(data.draw(shapes()), np.int32, -99, 99))
    least, most = integer_range(to)
    wrapped = (x.astype(np.int64) - least) % (most - least + 1) + least
    agrees("cast", {"x": x}, wrapped.astype(DTYPES[to].numpy), to=to)
    small = wrapped.astype(DTYPES[to].numpy)
    agrees("cast", {"x": small}, wrapped.astype(np.float64), to="f64")
    agrees("cast", {"x": small}, wrapped.astype(np.uint8), to="u8")


def test_what_a_type_cannot_hold_is_infinite() -> None:
    x = np.array([65504.0, 65519.0, 65520.0, -65520.0, 1e300, np.inf, np.nan])
    for (found,) in results("cast", {"x": x}, to="f16").values():
        rounded = found.astype(np.float16)
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(rounded, x.astype(np.float16))
        assert list(np.isinf(found)) == [False, False, True, True, True, True, False]
