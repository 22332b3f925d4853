"""Colours and edges of images, against Python's colorsys, NumPy and TensorFlow."""

import colorsys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.compare import agrees, left_open, reals, shapes

few = settings(max_examples=25)


def of_colours(function: Callable[..., Any], x: Any) -> Any:
    """A function of three numbers, of every colour."""
    found = [function(*colour) for colour in x.reshape(-1, 3)]
    return np.array(found, np.float64).reshape(x.shape)


def round_numbers(x: Any) -> Any:
    """Of which differences are exact, so that no turn is a whole one but for the rounding."""
    return np.round(x * 64) / 64


@given(data=st.data())
@few
def test_colours(data: st.DataObject) -> None:
    x = round_numbers(data.draw(reals((*data.draw(shapes()), 3), 0, 1)))
    turned = of_colours(colorsys.rgb_to_hsv, x)
    agrees("rgb_to_hsv", {"x": x}, turned, operations=16, magnitude=2.0)
    back = of_colours(colorsys.hsv_to_rgb, x)
    agrees("hsv_to_rgb", {"x": x}, back, operations=16, magnitude=6.0)
    grey = x @ np.array([[0.2989], [0.587], [0.114]])
    agrees("rgb_to_grayscale", {"x": x}, grey, operations=8, magnitude=1.0)


@given(data=st.data(), factor=st.integers(-2, 8), delta=st.integers(-8, 8))
@few
def test_adjusted_colours(data: st.DataObject, factor: int, delta: int) -> None:
    x = round_numbers(data.draw(reals((2, 3), 0, 1)))
    hue, saturation, value = np.moveaxis(of_colours(colorsys.rgb_to_hsv, x), -1, 0)
    more = np.stack([hue, np.clip(saturation * factor / 4, 0, 1), value], -1)
    agrees("adjust_saturation", {"x": x}, of_colours(colorsys.hsv_to_rgb, more), operations=64,
           magnitude=6.0, factor=factor / 4)  # fmt: skip
    turned = np.stack([(hue + delta / 8) % 1, saturation, value], -1)
    agrees("adjust_hue", {"x": x}, of_colours(colorsys.hsv_to_rgb, turned), operations=64,
           magnitude=6.0, delta=delta / 8)  # fmt: skip


@given(data=st.data())
@few
def test_edges_and_standard_images(data: st.DataObject) -> None:
    tf = pytest.importorskip("tensorflow")
    shape = data.draw(st.tuples(*(st.integers(low, 4) for low in (1, 2, 2, 1))))
    x = data.draw(reals(shape, -2, 2))
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), mode="reflect")
    smooth = [1.0, 2.0, 1.0]
    height, width = shape[1:3]
    expected = np.zeros((*shape, 2))
    for a in range(3):
        for b in range(3):
            part = padded[:, a : a + height, b : b + width]
            expected[..., 0] += (a - 1) * smooth[b] * part
            expected[..., 1] += (b - 1) * smooth[a] * part
    agrees("sobel_edges", {"x": x}, expected, operations=16, magnitude=16.0)
    found = tf.image.sobel_edges(tf.constant(x, tf.float32))
    assert np.abs(found - expected).max() <= 2.0**-16  # nine products of numbers up to 4, in f32
    spread = np.maximum(x.std((1, 2, 3), keepdims=True), np.prod(shape[1:]) ** -0.5)
    expected = (x - x.mean((1, 2, 3), keepdims=True)) / spread
    agrees("image_standardization", {"x": x}, expected, operations=64, magnitude=16.0)


def test_edges_beside_what_is_not_finite_are_open() -> None:
    x = np.zeros((1, 3, 5, 1))
    x[0, 1, 0, 0] = np.inf
    found = left_open("sobel_edges", {"x": x})
    assert found is not None
    assert found[:, :, :2].all()
    assert not found[:, :, 2:].any()
