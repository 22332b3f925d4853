"""Ranges of reals as integers and back again, against fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from irlang.catalog import builtin
from irlang.interp.gradient import gradients
from irlang.interp.shape import check
from irlang.parser import parse
from tests.ops.compare import agrees, integers, left_open, reals

few = settings(max_examples=25)
Array = np.ndarray[Any, Any]


def scaled(x: Array, low: float, high: float, bits: int, sign: bool, narrow: bool, up: bool) -> Any:
    """Every element by the largest factor that keeps both ends within the integers."""
    most = 2 ** (bits - sign) - 1
    least = (-most - (not narrow)) if sign else 0
    ends = ((Fraction(low), least), (Fraction(high), most))
    factors = [q / end for end, q in ends if end * q > 0]
    assume(factors)
    factor = min(factors)
    found = []
    for v in x.flat:
        held = min(max(Fraction(v) * factor, least), most)
        assume(abs(held % 1 - Fraction(1, 2)) > Fraction(1, 10**9))
        found.append(float((math.floor(held + Fraction(1, 2)) if up else round(held)) / factor))
    return np.array(found).reshape(x.shape)


@given(
    data=st.data(),
    bits=st.integers(2, 9),
    sign=st.booleans(),
    narrow=st.booleans(),
    up=st.booleans(),
    ranged=st.booleans(),
    sliced=st.booleans(),
)
@few
def test_what_scales_leave(
    data: st.DataObject,
    bits: int,
    sign: bool,
    narrow: bool,
    up: bool,
    ranged: bool,
    sliced: bool,
) -> None:
    x = data.draw(reals((2, 3)))
    parts = [x[:, i] for i in range(3)] if sliced else [x]
    ends = [np.sort(data.draw(reals((2,)))) for _ in parts]
    if not ranged:
        ends = [np.array([part.min(), part.max()]) for part in parts]
    options = (bits, sign, narrow, up)
    wanted = [
        scaled(part, float(low), float(high), *options)
        for part, (low, high) in zip(parts, ends, strict=True)
    ]
    inputs = {"x": x}
    if ranged:
        rows = np.array(ends)
        inputs |= {"low": rows[:, 0] if sliced else rows[0, 0, ...], "high": rows[:, 1]}
        inputs |= {} if sliced else {"low": np.array(rows[0, 0]), "high": np.array(rows[0, 1])}
    agrees(
        "quantize_and_dequantize", inputs, np.stack(wanted, 1) if sliced else wanted[0],
        operations=8, magnitude=float(np.abs([x.max(), x.min(), *np.ravel(ends)]).max()),
        bits=bits, signed=sign, narrow=narrow, rounding="up" if up else "even",
        sliced=sliced, axis=1,
    )  # fmt: skip


def test_a_range_of_nothing_is_open() -> None:
    ends = {"low": np.array([0.0, 0.0]), "high": np.array([0.0, 1.0])}
    found = left_open(
        "quantize_and_dequantize", {"x": np.array([2.0, np.nan]), **ends}, sliced=True
    )
    assert found is not None
    assert found.tolist() == [True, True]
    found = left_open("quantize_and_dequantize", {"x": np.array([0.0, 3.0]), **ends}, sliced=True)
    assert found is not None
    assert found.tolist() == [True, False]


def test_what_is_beyond_a_range_has_no_gradient() -> None:
    text = """nnir 1
model m(x: f32[5], a: f32[], b: f32[]) -> loss: f32[] {
  y = quantize_and_dequantize(x%s)
  loss = reduce_sum(y)
}
"""
    x = np.array([-2.0, -0.5, 0.25, 0.75, 3.0], np.float32)
    given: dict[str, Array] = {"x": x, "a": np.array(-1, np.float32), "b": np.array(1, np.float32)}
    for ends, wanted in (("", [1, 1, 1, 1, 1]), (", a, b; bits = 4", [0, 1, 1, 1, 0])):
        graph = check(parse(text % ends, "m.nnir"), builtin()).graphs[0]
        assert np.asarray(gradients(graph, given, builtin())["x"]).tolist() == wanted


@given(data=st.data(), kind=st.sampled_from([np.int8, np.uint8, np.int16, np.int32]))
@few
def test_integers_of_a_range(data: st.DataObject, kind: Any) -> None:
    limits = np.iinfo(kind)
    x = data.draw(integers((2, 3), kind, int(limits.min), int(limits.max)))
    ends = np.sort(data.draw(reals((2, 3))), 0)
    low, high = ends
    whole = x.astype(np.float64)
    part = (whole - limits.min) / (float(limits.max) - limits.min)
    inputs = {"x": x, "low": low, "high": high}
    most = float(np.abs(ends).max())
    agrees("dequantize_range", inputs, low + part * (high - low), operations=8, magnitude=2 * most,
           sliced=True, axis=1)  # fmt: skip
    factor = high / limits.max
    if limits.min:
        factor = np.maximum(low / (limits.min + 1), factor)
    agrees("dequantize_range", inputs, whole * factor, operations=8, sliced=True, axis=1,
           mode="scaled", narrow=bool(limits.min))  # fmt: skip


@given(data=st.data(), sliced=st.booleans(), bits=st.sampled_from([2, 4, 8]))
@few
def test_gradients_of_a_range(data: st.DataObject, sliced: bool, bits: int) -> None:
    tf = pytest.importorskip("tensorflow")
    x, g = (data.draw(reals((4, 3))) for _ in range(2))
    shape = (3,) if sliced else ()
    low, high = data.draw(reals(shape)) - 12.0, data.draw(reals(shape)) + 12.0
    function = "fake_quant_with_min_max_vars" + "_per_channel" * sliced + "_gradient"
    # far from the ends, which have been moved
    x = np.where(x > 0.5, 40.0, np.where(x < -0.5, -40.0, x / 8))
    given = {"g": g, "x": x, "low": low, "high": high}
    narrow = {name: tf.constant(value, tf.float32) for name, value in given.items()}
    got = getattr(tf.quantization, function)(*narrow.values(), num_bits=bits)
    to_x, to_low, to_high = (value.numpy() for value in got)
    axes = (0,) if sliced else (0, 1)
    wanted = [
        np.where(np.abs(x) == 40, 0, g), np.where(x == -40, g, 0).sum(axes),
        np.where(x == 40, g, 0).sum(axes),
    ]  # fmt: skip
    agrees("fake_quantize_range_gradient", given, wanted, operations=16, magnitude=64.0, bits=bits)
    for ours, theirs in zip(wanted, (to_x, to_low, to_high), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-4)
