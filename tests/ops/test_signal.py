"""Transforms and windows against NumPy and PyTorch, in float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irlang.catalog import builtin
from irlang.expand import expand
from irlang.instance import instantiate
from irlang.interp import rounding
from tests.ops.oracle import Array, call

torch = pytest.importorskip("torch")


def values(data: st.DataObject, *shape: int) -> Array:
    return np.random.default_rng(data.draw(st.integers(0, 99))).uniform(-2, 2, shape)


def pair(z: Array) -> Array:
    """Real and imaginary parts on a last axis."""
    return np.stack([z.real, z.imag], -1)


@settings(max_examples=30)
@given(st.data())
def test_a_transform_is_that_of_numpy(data: st.DataObject) -> None:
    size, length = data.draw(st.integers(1, 7)), data.draw(st.integers(1, 9))
    inverse, parts = data.draw(st.booleans()), data.draw(st.sampled_from((1, 2)))
    x = values(data, 2, size, 3, parts)
    z = x[..., 0] + (1j * x[..., 1] if parts == 2 else 0)
    fast = (np.fft.ifft if inverse else np.fft.fft)(z, length, axis=1)
    attrs = {"axis": 1, "length": length, "inverse": inverse}
    call("dft", {"x": x}, **attrs)["y"].check(pair(fast))
    if not inverse:
        half = pair(fast)[:, : length // 2 + 1]
        call("dft", {"x": x}, **attrs, onesided=True)["y"].check(half)


@settings(max_examples=30)
@given(st.data())
def test_half_a_spectrum_gives_the_real_signal(data: st.DataObject) -> None:
    size, length = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 10))
    x = values(data, 2, size, 2)
    fast = np.fft.irfft(x[..., 0] + 1j * x[..., 1], length, axis=1)
    attrs = {"axis": -2, "length": length, "inverse": True, "onesided": True}
    call("dft", {"x": x}, **attrs)["y"].check(fast[..., None])


@settings(max_examples=20)
@given(st.data())
def test_a_short_time_transform_is_one_of_every_frame(data: st.DataObject) -> None:
    length, step = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 4))
    size, more = data.draw(st.integers(length, 12)), data.draw(st.integers(0, 3))
    x, window = values(data, 2, size, 1), values(data, length)
    onesided = data.draw(st.booleans())
    starts = range(0, size - length + 1, step)
    frames = np.stack([x[:, s : s + length, 0] * window for s in starts], 1)
    full = length + more
    spectrum = (np.fft.rfft(frames, full) if onesided else np.fft.fft(frames, full)).copy()
    if not more:
        native = torch.stft(
            torch.tensor(x[..., 0]), length, step, length, torch.tensor(window), center=False,
            onesided=onesided, return_complex=True,
        )  # fmt: skip
        spectrum = native.numpy().swapaxes(1, 2)
    attrs = {"length": length, "step": step, "fft_length": full, "onesided": onesided}
    call("stft", {"x": x, "window": window}, **attrs)["y"].check(pair(spectrum))


@pytest.mark.parametrize("size", [2, 3, 8, 9])
@pytest.mark.parametrize("periodic", [False, True])
def test_windows_are_those_of_torch(size: int, periodic: bool) -> None:
    named = {
        torch.hann_window: [0.5, 0.5],
        torch.hamming_window: [0.54, 0.46],
        torch.blackman_window: [0.42, 0.5, 0.08],
    }
    for native, terms in named.items():
        attrs = {"size": size, "terms": tuple(terms), "periodic": periodic, "to": "f64"}
        result = call("cosine_window", {}, **attrs)["y"]
        expected = native(size, periodic, dtype=torch.float64).numpy()
        assert np.abs(expected - result.value).max() <= 32 * 2.0**-53  # of terms of size 1


@pytest.mark.parametrize("size", [1, 2, 3, 8, 9])
@pytest.mark.parametrize("periodic", [False, True])
def test_further_windows_are_those_of_torch(size: int, periodic: bool) -> None:
    for name, native, options in (
        ("bartlett_window", torch.bartlett_window, {}),
        ("kaiser_window", torch.kaiser_window, {"beta": 14.5}),
    ):
        result = call(name, {}, size=size, periodic=periodic, to="f64", **options)["y"]
        expected = native(size, periodic=periodic, dtype=torch.float64, **options).numpy()
        assert np.abs(expected - result.value).max() <= 64 * 2.0**-53  # of terms of size 1


@pytest.mark.parametrize("periodic", [False, True])
def test_a_triangle_is_within_the_rounding_of_its_documented_formula(periodic: bool) -> None:
    """torch.bartlett_window: 2 n / (N - 1), and 2 less that behind the middle, in f32."""
    op = builtin().op("bartlett_window")
    assert op is not None
    for size in (*range(3, 260, 7), 256, 1000):
        instance = instantiate(op, {}, {"size": size, "periodic": periodic})
        ball = rounding.evaluate(expand(instance, builtin()), {}, "f32")["y"]
        step = np.float32(2) / np.float32(size if periodic else size - 1)
        rising = np.arange(size).astype(np.float32) * step
        falling = np.float32(2) - rising
        wanted = np.where(rising <= 1, rising, falling).astype(np.float64)
        assert np.all(np.abs(wanted - ball.value) <= ball.bound)
        assert np.max(ball.bound) <= 8 * 2.0**-24  # a few roundings of numbers up to 2


def test_an_empty_window_and_one_of_a_single_sample() -> None:
    assert call("cosine_window", {}, size=0, to="f64")["y"].value.shape == (0,)
    assert np.isinf(call("cosine_window", {}, size=1, to="f64")["y"].radius).all()


def test_mel_weights_are_triangles() -> None:
    bins, length, rate, low, high = 6, 64, 8000, 100.0, 3900.0
    mel = 2595 * np.log10(1 + np.array([low, high]) / 700)
    points = mel[0] + np.arange(bins + 2) * (mel[1] - mel[0]) / (bins + 2)
    corner = np.floor((length + 1) * 700 * (10 ** (points / 2595) - 1) / rate).astype(int)
    y = np.zeros((length // 2 + 1, bins))
    for m in range(bins):
        first, centre, last = corner[m : m + 3]
        for f in range(len(y)):
            if first <= f < centre:
                y[f, m] = (f - first) / (centre - first)
            elif centre < f < last:
                y[f, m] = (last - f) / (last - centre)
            elif f == centre:
                y[f, m] = 1
    attrs = {"bins": bins, "dft_length": length, "sample_rate": rate, "low": low, "high": high}
    call("mel_weight_matrix", {}, **attrs, to="f64")["y"].check(y)


@settings(max_examples=30)
@given(st.data())
def test_frames_are_those_of_unfold(data: st.DataObject) -> None:
    size, step = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 4))
    length = data.draw(st.integers(1, size))
    x = values(data, 2, size)
    expected = torch.from_numpy(x).unfold(-1, length, step).numpy()
    call("frames", {"x": x}, length=length, step=step)["y"].check(expected)


def test_a_signal_that_is_shorter_has_no_frames() -> None:
    found = call("frames", {"x": np.ones((2, 3))}, length=4, step=2)["y"]
    found.check(np.ones((2, 0, 4)))
