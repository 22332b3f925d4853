"""Arithmetic and bits of integers, extremes among them, against NumPy, PyTorch and TensorFlow."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from irlang.diagnostics import InvalidInput
from tests.ops.compare import (
    MEANINGS,
    Array,
    agrees,
    broadcasting,
    expansion,
    integers,
    left_open,
    results,
    shapes,
)

few = settings(max_examples=30)
TYPES = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
SIGNED = TYPES[:4]


def whole(data: st.DataObject, shape: Any, dtype: Any) -> Array:
    """Integers of all sizes, the extremes often."""
    info = np.iinfo(dtype)
    ends = st.sampled_from([int(info.min), int(info.min) + 1, -1, 0, 1, 2, int(info.max)])
    elements = ends.filter(lambda n: n >= info.min) | st.integers(int(info.min), int(info.max))
    return data.draw(hnp.arrays(dtype, shape, elements=elements))


def pair(data: st.DataObject, dtype: Any) -> dict[str, Array]:
    one, other = data.draw(broadcasting(2)).input_shapes
    return {"a": whole(data, one, dtype), "b": whole(data, other, dtype)}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("add", np.add),
        ("subtract", np.subtract),
        ("multiply", np.multiply),
        ("maximum", np.maximum),
        ("minimum", np.minimum),
        ("squared_difference", lambda a, b: (a - b) * (a - b)),
        ("bit_and", np.bitwise_and),
        ("bit_or", np.bitwise_or),
        ("bit_xor", np.bitwise_xor),
        ("less", np.less),
        ("less_equal", np.less_equal),
        ("greater", np.greater),
        ("greater_equal", np.greater_equal),
        ("equal", np.equal),
        ("not_equal", np.not_equal),
    ],
)
@given(data=st.data())
@settings(max_examples=10)
def test_two_integers(name: str, function: Any, dtype: Any, data: st.DataObject) -> None:
    inputs = pair(data, dtype)
    with np.errstate(over="ignore"):
        agrees(name, inputs, function(inputs["a"], inputs["b"]))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("negate", np.negative),
        ("abs", np.abs),
        ("sign", np.sign),
        ("square", np.square),
        ("bit_not", np.invert),
        ("bit_count", lambda x: np.bitwise_count(x.view(x.dtype.str.replace("i", "u")))),
        ("identity", lambda x: x),
    ],
)
@given(data=st.data())
@settings(max_examples=10)
def test_one_integer(name: str, function: Any, dtype: Any, data: st.DataObject) -> None:
    x = whole(data, data.draw(shapes()), dtype)
    agrees(name, {"x": x}, function(x).astype(dtype))


@pytest.mark.parametrize("dtype", TYPES)
@given(data=st.data())
@settings(max_examples=15)
def test_quotients_and_remainders(dtype: Any, data: st.DataObject) -> None:
    inputs = pair(data, dtype)
    a, b = inputs["a"], inputs["b"]
    if not (b != 0).all() or (np.iinfo(dtype).min < 0 and (b == -1).any()):
        return
    agrees("floor_divide", inputs, np.floor_divide(a, b))
    agrees("modulo", inputs, np.remainder(a, b))
    agrees("modulo", inputs, np.fmod(a, b), sign_of="dividend")
    truncated = (a - np.fmod(a, b)) // b
    agrees("divide", inputs, truncated)
    if dtype in SIGNED:
        tensors = torch.from_numpy(np.asarray(a)), torch.from_numpy(np.asarray(b))
        found = torch.div(*tensors, rounding_mode="trunc").numpy()
        np.testing.assert_array_equal(truncated, found)
        np.testing.assert_array_equal(np.fmod(a, b), torch.fmod(*tensors).numpy())


@pytest.mark.parametrize("dtype", TYPES)
@given(data=st.data())
@settings(max_examples=15)
def test_shifts(dtype: Any, data: st.DataObject) -> None:
    one, other = data.draw(broadcasting(2)).input_shapes
    bits = np.dtype(dtype).itemsize * 8
    a = whole(data, one, dtype)
    b = data.draw(integers(other, dtype, 0, bits - 1))
    unsigned = np.dtype(f"u{np.dtype(dtype).itemsize}")
    agrees("bit_shift", {"a": a, "b": b}, np.left_shift(a, b))
    agrees("bit_shift", {"a": a, "b": b}, np.right_shift(a, b), direction="right")
    logical = np.right_shift(a.astype(unsigned), b.astype(unsigned)).astype(dtype)
    agrees("bit_shift", {"a": a, "b": b}, logical, direction="right", logical=True)


@pytest.mark.parametrize("dtype", TYPES)
def test_shifts_too_far_leave_what_comes_in(dtype: Any) -> None:
    """As ONNX has it: -1 for what is negative and moved right, else 0."""
    bits = np.dtype(dtype).itemsize * 8
    low = np.iinfo(dtype).min
    a = np.array([max(-8, low), 4, max(-1, low), np.iinfo(dtype).max], dtype)
    far = np.array([max(-1, low), bits, bits + 1, 0 if low else bits], dtype)
    inputs = {"a": a, "b": far}
    still = np.where((far >= 0) & (far < bits), a, 0).astype(dtype)
    agrees("bit_shift", inputs, still, too_far="filled")
    right = np.where((far >= 0) & (far < bits), a, np.where(a < 0, -1, 0)).astype(dtype)
    agrees("bit_shift", inputs, right, too_far="filled", direction="right")


def test_shifts_too_far_are_open() -> None:
    inputs = {"a": np.array([1, 1, 1, 1], np.int8), "b": np.array([-1, 0, 7, 8], np.int8)}
    open_ = left_open("bit_shift", inputs)
    assert open_ is not None
    np.testing.assert_array_equal(open_, [True, False, False, True])


@pytest.mark.parametrize("dtype", TYPES)
@given(data=st.data())
@settings(max_examples=15)
def test_power(dtype: Any, data: st.DataObject) -> None:
    one, other = data.draw(broadcasting(2)).input_shapes
    a = whole(data, one, dtype)
    b = data.draw(integers(other, data.draw(st.sampled_from([np.int8, np.int64])), 0, 9))
    with np.errstate(over="ignore"):
        agrees("power", {"a": a, "b": b}, np.power(a, b.astype(dtype)))


def test_power_of_mixed_types() -> None:
    tf = pytest.importorskip("tensorflow")
    a, b = np.array([1.5, -2.0, 3.0]), np.array([2, 3, -2], np.int32)
    agrees("power", {"a": a, "b": b}, tf.pow(a, b.astype(np.float64)).numpy(), operations=16)
    base, half = np.array([9, 2, 3], np.int8), np.array([0.5, 6.5, 7.0])
    agrees("power", {"a": base[:1], "b": half[:1]}, np.array([3], np.int8))
    open_ = left_open("power", {"a": base, "b": half})
    assert open_ is not None
    np.testing.assert_array_equal(open_, [False, False, True])


@pytest.mark.parametrize("meaning", MEANINGS)
def test_an_integer_to_a_negative_power_is_refused(meaning: str) -> None:
    inputs = {"a": np.array([2, 3]), "b": np.array([1, -1])}
    with pytest.raises(InvalidInput, match=r"power\.exponent"):
        MEANINGS[meaning](expansion("power", inputs), inputs)


@pytest.mark.parametrize("dtype", TYPES)
@given(data=st.data())
@settings(max_examples=15)
def test_reductions(dtype: Any, data: st.DataObject) -> None:
    x = whole(data, data.draw(shapes(least=1, low=1)), dtype)
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    with np.errstate(over="ignore"):
        agrees("reduce_sum", {"x": x}, x.sum(axis, dtype=dtype), axes=axis)
        agrees("reduce_prod", {"x": x}, x.prod(axis, dtype=dtype), axes=axis)
    agrees("reduce_max", {"x": x}, x.max(axis), axes=axis)
    agrees("reduce_min", {"x": x}, x.min(axis), axes=axis)
    agrees("argmax", {"x": x}, x.argmax(axis), axis=axis)
    agrees("argmin", {"x": x}, x.argmin(axis), axis=axis)
    order = np.argsort(x, axis, kind="stable")
    agrees("sort", {"x": x}, [np.take_along_axis(x, order, axis), order], axis=axis)
    running = np.maximum.accumulate(x, axis)
    places = np.zeros(x.shape, np.int64)
    for place in np.ndindex(*x.shape):
        line = np.moveaxis(x, axis, -1)[tuple(np.delete(place, axis))]
        places[place] = max(k for k in range(place[axis] + 1) if line[k] == running[place])
    agrees("cummax", {"x": x}, [running, places], axis=axis)


@given(data=st.data())
@few
def test_mean(data: st.DataObject) -> None:
    tf = pytest.importorskip("tensorflow")
    x = data.draw(integers(data.draw(shapes(least=1, low=1)), np.int32, -99, 99))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    agrees("reduce_mean", {"x": x}, tf.reduce_mean(x, axis).numpy(), axes=axis)


@pytest.mark.parametrize("dtype", TYPES)
@given(data=st.data())
@settings(max_examples=15)
def test_clip(dtype: Any, data: st.DataObject) -> None:
    x = whole(data, data.draw(shapes()), dtype)
    agrees("clip", {"x": x}, np.clip(x, dtype(2), dtype(7)), min=2, max=7)
    agrees("clip", {"x": x}, np.maximum(x, dtype(3)), min=2.5 + 0.5)


@given(data=st.data(), dtype=st.sampled_from([np.int8, np.int32, np.int64, np.uint8]))
@few
def test_divisors_and_multiples(data: st.DataObject, dtype: Any) -> None:
    a, b = (data.draw(integers((5,), dtype, 0, 11)) for _ in range(2))
    if np.issubdtype(dtype, np.signedinteger):
        a, b = (x * data.draw(st.sampled_from([-1, 1])) for x in (a, b))
    agrees("gcd", {"a": a, "b": b}, np.gcd(a, b))
    agrees("lcm", {"a": a, "b": b}, np.lcm(a, b))


def test_the_longest_division_there_is() -> None:
    """Neighbours in Fibonacci's sequence take the most steps."""
    fibonacci = [1, 1]
    while sum(fibonacci[-2:]) < 2**63:
        fibonacci.append(sum(fibonacci[-2:]))
    a, b = (np.array([n], np.int64) for n in fibonacci[-2:])
    agrees("gcd", {"a": a, "b": b}, np.gcd(a, b))
    agrees("gcd", {"a": b, "b": a}, np.gcd(a, b))


@pytest.mark.parametrize("dtype", SIGNED)
def test_the_least_integer_has_no_divisor_that_is_said(dtype: Any) -> None:
    """Nor is anything divided by -1 on the way, which ends a process where it is the dividend."""
    a = np.array([np.iinfo(dtype).min, 6, np.iinfo(dtype).min], dtype)
    b = np.array([-1, 4, 0], dtype)
    found = left_open("gcd", {"a": a, "b": b})
    assert found is not None
    assert list(found) == [True, False, True]
    for (divisor,) in results("gcd", {"a": a, "b": b}).values():
        assert list(divisor) == [1, 2, 0]
