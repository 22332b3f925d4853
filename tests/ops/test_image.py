"""Resampling against PyTorch, TensorFlow and plain loops, in float64."""

from __future__ import annotations

import itertools
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


@settings(max_examples=30)
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


@pytest.mark.parametrize(
    ("aspect", "size", "shape"),
    [
        ("not_smaller", (0, 1), (0, 1)),
        ("not_smaller", (2, 0), (2, 12)),
        ("not_larger", (0, 3), (0, 0)),
    ],
)
def test_a_size_of_nothing_is_a_scale_of_nothing(
    aspect: str, size: tuple[int, int], shape: tuple[int, int]
) -> None:
    """ONNX Resize divides the sizes, whichever they are, and takes the least or the largest."""
    result = call("resize", {"x": np.ones((2, 3, 1, 6))}, size=size, mode="linear", aspect=aspect)
    result["y"].check(np.ones((2, 3, *shape)))


@settings(max_examples=15)
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


@settings(max_examples=8)
@given(st.data())
def test_resize_is_that_of_tensorflow(data: st.DataObject) -> None:
    """TensorFlow computes in float32; its bicubic weights are from a table, unless antialiased."""
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
        # The exact meaning of the widest weights takes a second a channel; they know no channels.
        shown = 1 if method == "bicubic" else 2
        native = native[..., :shown]
        result = call("resize", {"x": x[:, :shown]}, size=out, **attrs)["y"]
        decided = np.isfinite(result.radius)
        gap = np.abs(np.moveaxis(native.numpy(), -1, 1) - result.value)
        assert gap[decided].max(initial=0) <= 64 * 2.0**-24 * 10


# ---- grids


PADDINGS = ("zeros", "border", "reflection")


@settings(max_examples=30)
@given(st.data())
def test_grid_sample_is_that_of_torch(data: st.DataObject) -> None:
    rank = data.draw(st.sampled_from((2, 2, 3)))
    size, out = drawn(data, rank, 1, 5), drawn(data, rank, 1, 3)
    x = values(data, 2, 2, *size)
    # coordinates on elements and between them, at the ends, and outside
    steps = data.draw(st.sampled_from((None, 2, 3)))
    grid = values(data, 2, *out, rank)
    grid = grid if steps is None else np.round(grid * steps) / steps
    mode = data.draw(st.sampled_from(("linear", "nearest", *(("cubic",) if rank == 2 else ()))))
    padding, corners = data.draw(st.sampled_from(PADDINGS)), data.draw(st.booleans())
    spelt = {"linear": "bilinear", "nearest": "nearest", "cubic": "bicubic"}[mode]
    native = F.grid_sample(torch.tensor(x), torch.tensor(grid), spelt, padding, corners)
    attrs = {"mode": mode, "padding": padding, "align_corners": corners}
    call("grid_sample", {"x": x, "grid": grid}, **attrs)["y"].check(native.numpy())


@pytest.mark.parametrize(("size", "open_"), [(9, [False] * 4 + [True]), (6, [False] * 5)])
def test_beside_no_number_rounding_decides_what_a_whole_coordinate_reads(
    size: int, open_: list[bool]
) -> None:
    """By a ratio of 1/3 the middle is on the second element, or hardly before it."""
    found = call("resize", {"x": np.array([[[0.0, 1, np.inf]]])}, size=(size,), mode="linear")["y"]
    np.testing.assert_array_equal(np.isinf(found.radius[0, 0, :5]), open_)


def test_nothing_is_said_of_a_place_that_is_no_number() -> None:
    grid = np.array([[[[np.nan, 0.3], [0.3, 0.3], [np.inf, 0.3]]]])
    found = call("grid_sample", {"x": np.ones((1, 1, 3, 3)), "grid": grid})["y"]
    np.testing.assert_array_equal(np.isinf(found.radius).ravel(), [True, False, True])


@settings(max_examples=20)
@given(st.data())
def test_affine_grid_is_that_of_torch(data: st.DataObject) -> None:
    rank = data.draw(st.sampled_from((2, 3)))
    size = drawn(data, rank, 1, 4)
    theta = values(data, 2, rank, rank + 1)
    corners = data.draw(st.booleans())
    native = F.affine_grid(torch.tensor(theta), [2, 1, *size], corners)
    result = call("affine_grid", {"theta": theta}, size=size, align_corners=corners)["grid"]
    result.check(native.numpy())


# ---- regions


def sampled(image: Array, place: tuple[float, ...]) -> float:
    """Linear interpolation at a place, zero outside."""
    total = 0.0
    for corner in itertools.product((0, 1), repeat=image.ndim):
        at = tuple(int(np.floor(u)) + c for u, c in zip(place, corner, strict=True))
        if all(0 <= i < n for i, n in zip(at, image.shape, strict=True)):
            weights = [1 - abs(u - i) for u, i in zip(place, at, strict=True)]
            total += float(image[at]) * float(np.prod(weights))
    return total


@settings(max_examples=20)
@given(st.data())
def test_roi_align_is_a_mean_of_samples(data: st.DataObject) -> None:
    size, out = drawn(data, 2, 1, 5), drawn(data, 2, 1, 3)
    x = values(data, 2, 2, *size)
    rois = 3 * np.random.default_rng(data.draw(st.integers(0, 99))).uniform(-1, 2, (3, 4))
    batch = np.array([1, 0, 1])
    aligned, ratio = data.draw(st.booleans()), data.draw(st.integers(1, 3))
    y = np.zeros((3, 2, *out))
    for r, c, *o in np.ndindex(y.shape):
        start = [0.5 * rois[r, 1 - d] - aligned / 2 for d in (0, 1)]
        length = [0.5 * (rois[r, 3 - d] - rois[r, 1 - d]) for d in (0, 1)]
        length = length if aligned else [max(n, 1.0) for n in length]
        for k in np.ndindex(ratio, ratio):
            u = [start[d] + (o[d] + (k[d] + 0.5) / ratio) * length[d] / out[d] for d in (0, 1)]
            if all(-1 <= p <= n for p, n in zip(u, size, strict=True)):
                place = tuple(min(max(p, 0.0), n - 1.0) for p, n in zip(u, size, strict=True))
                y[r, c, *o] += sampled(x[batch[r], c], place) / ratio**2
    attrs = {"size": out, "sampling_ratio": ratio, "scale": 0.5, "aligned": aligned}
    call("roi_align", {"x": x, "rois": rois, "batch": batch}, **attrs)["y"].check(y)


def test_nothing_is_said_of_regions_at_an_infinite_scale() -> None:
    """A corner at 0 is nowhere then: 0 times infinity."""
    given_ = {
        "x": np.ones((1, 1, 2, 2)),
        "rois": np.array([[0.0, 1, 1, 1]]),
        "batch": np.array([0]),
    }
    for scale in (np.inf, -np.inf, 1.0):
        y = call("roi_align", given_, size=(2, 2), sampling_ratio=1, scale=scale)["y"]
        assert np.isinf(y.radius).all() == np.isinf(scale)


@settings(max_examples=20)
@given(st.data())
def test_max_roi_pool_is_the_largest_of_a_bin(data: st.DataObject) -> None:
    size, out = drawn(data, 2, 1, 6), drawn(data, 2, 1, 3)
    x = values(data, 2, 2, *size)
    corners = np.random.default_rng(data.draw(st.integers(0, 99))).integers(-1, 7, (4, 4))
    rois = np.column_stack([[0, 1, 1, 0], corners]).astype(np.float64)
    y = np.zeros((4, 2, *out))
    for r, c, *o in np.ndindex(y.shape):
        cells = x[int(rois[r, 0]), c]
        for d in (0, 1):
            first, last = int(rois[r, 2 - d]), int(rois[r, 4 - d])
            length = max(last - first + 1, 1)
            low = first + o[d] * length // out[d]
            high = first - (-(o[d] + 1) * length // out[d])
            cells = cells.take(range(min(max(low, 0), size[d]), min(max(high, 0), size[d])), d)
        y[r, c, *o] = cells.max(initial=-np.inf) if cells.size else 0
    call("max_roi_pool", {"x": x, "rois": rois}, size=out)["y"].check(y)


@settings(max_examples=20)
@given(st.data())
def test_crop_and_resize_is_that_of_tensorflow(data: st.DataObject) -> None:
    size, out = drawn(data, 2, 1, 5), drawn(data, 2, 1, 4)
    x = values(data, 2, 2, *size).astype(np.float32).astype(np.float64)
    boxes = (values(data, 3, 4) / 2 + 0.5).astype(np.float32).astype(np.float64)
    batch = np.array([1, 0, 1], np.int32)
    image = np.moveaxis(x, 1, -1).astype(np.float32)
    for mode, method in (("linear", "bilinear"), ("nearest", "nearest")):
        native = tf.image.crop_and_resize(image, boxes, batch, out, method, 1.5).numpy()
        inputs: dict[str, Array] = {"x": x, "boxes": boxes, "batch": batch}
        result = call("crop_and_resize", inputs, size=out, mode=mode, extrapolation=1.5)["y"]
        gap = np.abs(np.moveaxis(native, -1, 1) - result.value)
        assert gap.max(initial=0) <= 64 * 2.0**-24 * 10
