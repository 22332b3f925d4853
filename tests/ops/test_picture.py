"""Pictures, and what else is told of signals and numbers, against NumPy and TensorFlow."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.compare import agrees, left_open, reals, shapes

few = settings(max_examples=25)

# Of red, green and blue, a row each, what they give to every channel.
_TO_YUV = [
    [0.299, -0.14714119, 0.61497538],
    [0.587, -0.28886916, -0.51496512],
    [0.114, 0.43601035, -0.10001026],
]
_TO_YIQ = [
    [0.299, 0.59590059, 0.2115],
    [0.587, -0.27455667, -0.52273617],
    [0.114, -0.32134392, 0.31119955],
]


@given(data=st.data(), kind=st.sampled_from(["yuv", "yiq"]))
@few
def test_colours_of_television(data: st.DataObject, kind: str) -> None:
    x = data.draw(reals((*data.draw(shapes()), 3), -2, 2))
    forth = np.array(_TO_YUV if kind == "yuv" else _TO_YIQ)
    agrees(f"rgb_to_{kind}", {"x": x}, x @ forth, operations=8, magnitude=4.0)
    tf = pytest.importorskip("tensorflow")
    back = getattr(tf.image, f"{kind}_to_rgb")(tf.constant(np.eye(3))).numpy()
    agrees(f"{kind}_to_rgb", {"x": x}, x @ back, operations=8, magnitude=8.0)
    # both ways are rounded: to eight digits, but one number of YIQ to four
    unit = 0.5e-8 if kind == "yuv" else 0.5e-4
    bound = unit * (np.abs(back).sum(0) + np.abs(forth).sum(1, keepdims=True))
    assert (np.abs(forth @ back - np.eye(3)) <= bound).all()


def test_what_no_weight_is_given_is_open() -> None:
    x = np.array([[0.0, np.inf, 1.0], [0.0, 1.0, np.nan], [np.inf, 0.0, 0.0]])
    found = left_open("yuv_to_rgb", {"x": x})
    assert found is not None
    assert found.tolist() == [[True, False, False], [False, False, True], [False] * 3]


@given(data=st.data(), gamma=st.integers(0, 12), gain=st.integers(-8, 8))
@few
def test_gamma(data: st.DataObject, gamma: int, gain: int) -> None:
    x = data.draw(reals(data.draw(shapes()), 0.25, 4))
    agrees("adjust_gamma", {"x": x}, gain / 4 * x ** (gamma / 4), operations=16, magnitude=128.0,
           gamma=gamma / 4, gain=gain / 4)  # fmt: skip


@given(data=st.data())
@few
def test_how_pictures_change(data: st.DataObject) -> None:
    x = data.draw(reals(data.draw(st.tuples(*(st.integers(0, 4) for _ in range(4))))))
    dy, dx = np.zeros_like(x), np.zeros_like(x)
    dy[:, :-1], dx[:, :, :-1] = np.diff(x, axis=1), np.diff(x, axis=2)
    agrees("image_gradients", {"x": x}, [dy, dx], operations=2, magnitude=8.0)


@given(data=st.data(), size=st.integers(1, 4), sigma=st.integers(1, 6), top=st.integers(1, 3))
@few
def test_likeness(data: st.DataObject, size: int, sigma: int, top: int) -> None:
    """Means, variances and covariances of each window, about its mean."""
    shape = (2, *data.draw(st.tuples(*(st.integers(size, size + 2) for _ in range(2)))), 2)
    a, b = data.draw(reals(shape, 0, 1)), data.draw(reals(shape, 0, 1))
    bell = np.exp(-(((np.arange(size) - (size - 1) / 2) / (sigma / 2)) ** 2) / 2)
    w = np.outer(bell, bell) / np.outer(bell, bell).sum()
    c1, c2 = (0.01 * top) ** 2, (0.03 * top) ** 2
    found = np.zeros(2)
    rows, columns = shape[1] - size + 1, shape[2] - size + 1
    for n, r, s, c in np.ndindex(2, rows, columns, 2):
        p, q = (x[n, r : r + size, s : s + size, c] for x in (a, b))
        mp, mq = (w * p).sum(), (w * q).sum()
        vp, vq = (w * (p - mp) ** 2).sum(), (w * (q - mq) ** 2).sum()
        cov = (w * (p - mp) * (q - mq)).sum()
        found[n] += (2 * mp * mq + c1) * (2 * cov + c2) / ((mp**2 + mq**2 + c1) * (vp + vq + c2))
    found /= rows * columns * 2
    # what is left of a difference of numbers up to 2 is divided by c2, or more
    agrees("ssim", {"a": a, "b": b}, found, operations=80, magnitude=4 / 0.03**2,
           max_value=top, size=size, sigma=sigma / 2)  # fmt: skip


@given(data=st.data(), step=st.integers(1, 3))
@few
def test_frames_are_put_together(data: st.DataObject, step: int) -> None:
    many, length = data.draw(st.integers(1, 4)), data.draw(st.integers(step, 4))
    x = data.draw(reals((2, many, length)))
    wanted = np.zeros((2, (many - 1) * step + length))
    for f in range(many):
        wanted[:, f * step : f * step + length] += x[:, f]
    agrees("overlap_add", {"x": x}, wanted, operations=4, magnitude=16.0, step=step)


@given(data=st.data())
@few
def test_functions(data: st.DataObject) -> None:
    x = np.round(data.draw(reals((3, 2), -2, 2)))
    y = data.draw(reals((3, 2), 0.25, 4))
    agrees("xdivy", {"x": x, "y": y}, np.where(x == 0, 0.0, x / y), operations=2, magnitude=16.0)
    agrees("zero_fraction", {"x": x}, (x == 0).mean(), operations=2, magnitude=1.0)
    gammas = [math.lgamma(p) + math.lgamma(q) - math.lgamma(p + q) for p, q in y]
    agrees("log_beta", {"x": y}, np.array(gammas), operations=16, magnitude=32.0)
    columns = [np.kron(x[:, n], y[:, n]) for n in range(2)]
    agrees("khatri_rao", {"a": x, "b": y}, np.stack(columns, 1))


def test_quotients_of_zero() -> None:
    x, y = np.zeros(4), np.array([0.0, np.inf, -1.0, np.nan])
    found = left_open("xdivy", {"x": x, "y": y})
    assert found is not None
    assert found.tolist() == [False, False, False, True]
    agrees("xdivy", {"x": x[:3], "y": y[:3]}, np.zeros(3))
