"""Resampling against PyTorch and TensorFlow, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.ops.oracle import Array, call

torch = pytest.importorskip("torch")
tf = pytest.importorskip("tensorflow")

F = torch.nn.functional
LINEAR = ("linear", "bilinear", "trilinear")


def values(data: st.DataObject, *shape: int) -> Array:
    return np.random.default_rng(data.draw(st.integers(0, 99))).uniform(-2, 2, shape)


def drawn(data: st.DataObject, rank: int, low: int, high: int) -> tuple[int, ...]:
    return tuple(data.draw(st.integers(low, high)) for _ in range(rank))


@settings(max_examples=60)
@given(st.data())
def test_resize_is_interpolate_of_torch(data: st.DataObject) -> None:
    rank = data.draw(st.sampled_from((1, 2, 2, 3)))
    size, out = drawn(data, rank, 1, 6), drawn(data, rank, 1, 9)
    x = values(data, 2, 2, *size)
    attrs: dict[str, Any] = {"size": out}
    options: dict[str, Any] = {}
    mode = data.draw(st.sampled_from(("nearest", "nearest-exact", "linear", "cubic")))
    if mode == "nearest":
        attrs |= {"coord": "asymmetric", "rounding": "floor"}
    elif mode == "nearest-exact":
        attrs |= {"coord": "half_pixel", "rounding": "round_prefer_ceil"}
    else:
        assume(mode == "linear" or rank == 2)
        attrs["mode"] = mode
        options["align_corners"] = data.draw(st.booleans())
        attrs["coord"] = "align_corners" if options["align_corners"] else "half_pixel"
        if rank == 2 and not options["align_corners"] and data.draw(st.booleans()):
            options["antialias"] = True
            attrs |= {"antialias": True, "exclude_outside": True}
            if mode == "cubic":
                attrs["cubic_coeff"] = -0.5
        mode = "bicubic" if mode == "cubic" else LINEAR[rank - 1]
    result = call("resize", {"x": x}, **attrs)["y"]
    result.check(F.interpolate(torch.tensor(x), size=out, mode=mode, **options).numpy())


@settings(max_examples=40)
@given(st.data())
def test_resize_by_a_scale_is_that_of_torch(data: st.DataObject) -> None:
    """The scale that is given is used, not that of the sizes."""
    size = drawn(data, 2, 2, 6)
    scale = data.draw(st.sampled_from(((0.5, 1.5), (1.3, 0.7), (2.0, 3.0))))
    # PyTorch copies along an axis whose size stays, whatever the scale
    assume(all(int(n * factor) != n for n, factor in zip(size, scale, strict=True)))
    x = values(data, 1, 2, *size)
    mode = data.draw(st.sampled_from(("nearest", "linear", "cubic")))
    coord = "asymmetric" if mode == "nearest" else "half_pixel"
    attrs: dict[str, Any] = {"scale": scale, "mode": mode, "coord": coord, "rounding": "floor"}
    spelt = {"nearest": "nearest", "linear": "bilinear", "cubic": "bicubic"}[mode]
    native = F.interpolate(torch.tensor(x), scale_factor=scale, mode=spelt)
    call("resize", {"x": x}, **attrs)["y"].check(native.numpy())


@settings(max_examples=30)
@given(st.data())
def test_resize_is_that_of_tensorflow(data: st.DataObject) -> None:
    """TensorFlow computes in float32, positions among them; its bicubic weights are from a table."""
    size, out = drawn(data, 2, 1, 6), drawn(data, 2, 1, 9)
    x = values(data, 1, 2, *size).astype(np.float32).astype(np.float64)
    last = tf.constant(np.moveaxis(x, 1, -1).astype(np.float32))
    for method, attrs, antialias in (
        ("nearest", {"coord": "tf_half_pixel_for_nn", "rounding": "floor"}, False),
        ("bilinear", {"mode": "linear"}, False),
        ("bilinear", {"mode": "linear", "antialias": True, "exclude_outside": True}, True),
        (
            "bicubic",
            {"mode": "cubic", "cubic_coeff": -0.5, "antialias": True, "exclude_outside": True},
            True,
        ),
    ):
        native = tf.image.resize(last, out, method, antialias=antialias)
        result = call("resize", {"x": x}, size=out, **attrs)["y"]
        decided = np.isfinite(result.radius)
        gap = np.abs(np.moveaxis(native.numpy(), -1, 1) - result.value)
        assert gap[decided].max(initial=0) <= 64 * 2.0**-24 * 10
