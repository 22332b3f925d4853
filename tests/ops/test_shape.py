"""Operators that move elements, against NumPy and PyTorch."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.compare import Array, agrees, expansion, reals, shapes

few = settings(max_examples=40)
Pairs = list[tuple[int, int]]


def numbered(shape: Any, dtype: Any = np.int64) -> Array:
    """A tensor whose elements say where they were."""
    return np.arange(1, math.prod(shape) + 1, dtype=dtype).reshape(shape)


def draw_axis(data: st.DataObject, rank: int) -> int:
    return data.draw(st.integers(-rank, rank - 1))


def draw_axes(data: st.DataObject, rank: int) -> tuple[int, ...]:
    order = data.draw(st.permutations(range(rank)))[: data.draw(st.integers(0, rank))]
    return tuple(axis - rank * data.draw(st.integers(0, 1)) for axis in order)


def per_axis(data: st.DataObject, rank: int, low: int, high: int) -> tuple[int, ...]:
    return tuple(data.draw(st.integers(low, high)) for _ in range(rank))


# ---- the same elements in another shape


@given(data=st.data())
@few
def test_reshape(data: st.DataObject) -> None:
    factors = data.draw(st.lists(st.integers(1, 3), max_size=4))
    x = numbered(data.draw(st.permutations(list(factors))))
    shape: list[int] = list(factors)
    if len(shape) > 1 and data.draw(st.booleans()):  # join two axes
        shape[:2] = [shape[0] * shape[1]]
    if data.draw(st.booleans()) and shape:
        shape[data.draw(st.integers(0, len(shape) - 1))] = -1
    agrees("reshape", {"x": x}, x.reshape(shape), shape=tuple(shape))


@pytest.mark.parametrize("shape", [(0,), (3, 0, 2), (-1, 5), (0, 7)])
def test_reshape_of_nothing(shape: tuple[int, ...]) -> None:
    x = np.zeros((2, 0, 3))
    agrees("reshape", {"x": x}, x.reshape(shape), shape=shape)


@given(data=st.data())
@few
def test_flatten(data: st.DataObject) -> None:
    x = numbered(data.draw(shapes(least=1)))
    first = draw_axis(data, x.ndim)
    last = data.draw(st.integers(first % x.ndim, x.ndim - 1)) - x.ndim * data.draw(
        st.integers(0, 1)
    )
    expected = torch.flatten(torch.from_numpy(x), first, last).numpy()
    agrees("flatten", {"x": x}, expected, axis=first, end=last)


def test_flatten_as_keras_has_it() -> None:
    agrees("flatten", {"x": numbered((2, 3, 4))}, numbered((2, 3, 4)).reshape(2, 12))
    agrees("flatten", {"x": numbered((2,))}, numbered((2,)).reshape(2, 1))
    agrees("flatten", {"x": numbered(())}, numbered(()).reshape(1), axis=0)


@given(data=st.data())
@few
def test_axes_of_size_one_go_and_come(data: st.DataObject) -> None:
    x = numbered(data.draw(shapes()))
    axes = draw_axes(data, x.ndim + data.draw(st.integers(0, 2)))
    rank = x.ndim + len(axes)
    places = {axis % rank for axis in axes}
    if len(places) < len(axes):
        return
    longer = np.expand_dims(x, axes)
    agrees("expand_dims", {"x": x}, longer, axes=axes)
    agrees("squeeze", {"x": longer}, x, axes=axes)
    agrees("squeeze", {"x": longer}, np.squeeze(longer))


@given(data=st.data())
@few
def test_transpose(data: st.DataObject) -> None:
    x = numbered(data.draw(shapes(most=4)))
    order = data.draw(st.permutations(range(x.ndim)))
    perm = tuple(axis - x.ndim * data.draw(st.integers(0, 1)) for axis in order)
    agrees("transpose", {"x": x}, np.transpose(x, perm), perm=perm)
    agrees("transpose", {"x": x}, np.transpose(x))


# ---- several tensors


@given(data=st.data())
@few
def test_concat_and_split(data: st.DataObject) -> None:
    shape = list(data.draw(shapes(least=1)))
    axis = draw_axis(data, len(shape))
    sizes = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    shape[axis] = sum(sizes)
    whole = numbered(shape)
    parts = np.split(whole, np.cumsum(sizes)[:-1], axis=axis)
    agrees("concat", {"xs": tuple(parts)}, whole, axis=axis)
    agrees("split", {"x": whole}, parts, axis=axis, sizes=tuple(sizes))


@pytest.mark.parametrize(
    ("size", "parts", "sizes"),
    [(6, 3, [2, 2, 2]), (7, 3, [3, 3, 1]), (3, 1, [3]), (2, 2, [1, 1]), (0, 2, [0, 0])],
)
def test_split_into_equal_parts(size: int, parts: int, sizes: list[int]) -> None:
    x = numbered((2, size))
    agrees("split", {"x": x}, np.split(x, np.cumsum(sizes)[:-1], 1), axis=1, parts=parts)


@given(data=st.data())
@few
def test_stack(data: st.DataObject) -> None:
    shape = data.draw(shapes(most=2))
    count = data.draw(st.integers(1, 3))
    xs = tuple(numbered(shape) + 100 * i for i in range(count))
    axis = draw_axis(data, len(shape) + 1)
    agrees("stack", {"xs": xs}, np.stack(xs, axis), axis=axis)


# ---- parts, and more


@given(data=st.data())
@settings(max_examples=150)
def test_slices_are_those_of_python(data: st.DataObject) -> None:
    x = numbered(data.draw(shapes(high=4)))
    axes = draw_axes(data, x.ndim)
    begin, end = (per_axis(data, len(axes), -6, 6) for _ in range(2))
    step = tuple(data.draw(st.integers(-3, 3).filter(bool)) for _ in axes)
    index = [slice(None)] * x.ndim
    for axis, first, last, by in zip(axes, begin, end, step, strict=True):
        index[axis] = slice(first, last, by)
    attrs: dict[str, Any] = {"axes": axes, "begin": begin, "end": end, "step": step}
    agrees("slice", {"x": x}, x[tuple(index)], **attrs)


def test_slice_keeps_what_is_not_named() -> None:
    x = numbered((3, 4))
    agrees("slice", {"x": x}, x)
    agrees("slice", {"x": x}, x[1:, 2:], begin=(1, 2))
    agrees("slice", {"x": x}, x[:, ::2], axes=(1,), step=2)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
@given(data=st.data())
@settings(max_examples=60)
def test_pad(mode: str, data: st.DataObject) -> None:
    x = numbered(data.draw(shapes(least=1, low=1, high=4)))
    reach = {"reflect": [n - 1 for n in x.shape], "symmetric": x.shape, "wrap": x.shape}
    most = reach.get(mode, [3] * x.ndim)
    pairs: Pairs = [(data.draw(st.integers(0, m)), data.draw(st.integers(0, m))) for m in most]
    before, after = (tuple(pair[side] for pair in pairs) for side in (0, 1))
    attrs: dict[str, Any] = {"before": before, "after": after, "mode": mode}
    named: Any = mode
    if mode == "constant":
        attrs["value"] = data.draw(st.integers(-5, 5))
        expected = np.pad(x, pairs, named, constant_values=attrs["value"])
    else:
        expected = np.pad(x, pairs, named)
    agrees("pad", {"x": x}, expected, **attrs)


@given(data=st.data())
@few
def test_pad_takes_away_where_it_is_negative(data: st.DataObject) -> None:
    x = numbered(data.draw(shapes(least=1, low=2, high=4)), np.float64)
    before, after = (per_axis(data, x.ndim, -1, 2) for _ in range(2))
    widths = [n for pair in zip(reversed(before), reversed(after), strict=True) for n in pair]
    expected = F.pad(torch.from_numpy(x), widths, value=0.5).numpy()
    agrees("pad", {"x": x}, expected, before=before, after=after, value=0.5)


def test_pad_of_an_empty_axis() -> None:
    agrees("pad", {"x": np.zeros((0, 1))}, np.full((2, 1), 3.0), before=(2, 0), value=3)
    for mode in ("edge", "reflect", "symmetric", "wrap"):
        agrees("pad", {"x": np.zeros((0, 1))}, np.zeros((0, 1)), mode=mode)


def test_padding_keeps_every_digit_of_an_integer() -> None:
    x = np.array([2**62 + 1])
    agrees("pad", {"x": x}, np.array([2**62 + 1, 7]), after=1, value=7)


@given(data=st.data())
@few
def test_crop(data: st.DataObject) -> None:
    shape = data.draw(shapes(high=4))
    before = tuple(data.draw(st.integers(0, max(n - 1, 0))) for n in shape)
    room = [max(n - 1 - b, 0) for n, b in zip(shape, before, strict=True)]
    after = tuple(data.draw(st.integers(0, most)) for most in room)
    x = numbered(shape)
    index = tuple(slice(b, n - a) for b, a, n in zip(before, after, shape, strict=True))
    agrees("crop", {"x": x}, x[index], before=before, after=after)


@given(data=st.data())
@few
def test_repetition(data: st.DataObject) -> None:
    x = numbered(data.draw(shapes(least=1)))
    axis, times = draw_axis(data, x.ndim), data.draw(st.integers(0, 3))
    agrees("repeat", {"x": x}, np.repeat(x, times, axis), repeats=times, axis=axis)
    counts = per_axis(data, x.ndim, 0, 2)
    agrees("tile", {"x": x}, np.tile(x, counts), repeats=counts)
    rows = numbered(data.draw(shapes(least=2, most=2)))
    n = max(times, 1)
    agrees("repeat_vector", {"x": rows}, np.repeat(rows[:, None], n, 1), n=n)


@given(data=st.data())
@few
def test_reverse_and_roll(data: st.DataObject) -> None:
    x = numbered(data.draw(shapes(high=4)))
    axes = draw_axes(data, x.ndim)
    agrees("reverse", {"x": x}, np.flip(x, axes), axes=axes)
    agrees("reverse", {"x": x}, np.flip(x))
    shift = per_axis(data, len(axes), -6, 6)
    rolled = np.roll(x, shift, axes) if axes else x  # NumPy takes () for no shift at all
    agrees("roll", {"x": x}, rolled, axes=axes, shift=shift)


@given(data=st.data())
@few
def test_broadcast_to(data: st.DataObject) -> None:
    shape = data.draw(shapes())
    kept = tuple(1 if data.draw(st.booleans()) else n for n in shape)
    x = numbered(kept[data.draw(st.integers(0, len(shape))) :])
    agrees("broadcast_to", {"x": x}, np.broadcast_to(x, shape), shape=shape)


@given(data=st.data())
@few
def test_triangles(data: st.DataObject) -> None:
    x = numbered(data.draw(shapes(least=2, most=4)))
    k = data.draw(st.integers(-4, 4))
    agrees("trilu", {"x": x}, np.triu(x, k), k=k)
    agrees("trilu", {"x": x}, np.tril(x, k), k=k, upper=False)


# ---- images


@given(data=st.data())
@few
def test_upsample(data: st.DataObject) -> None:
    x = numbered(data.draw(shapes(least=3, most=5, low=1)), np.float64)
    scale = per_axis(data, x.ndim - 2, 1, 3)
    expected = F.interpolate(torch.from_numpy(x), scale_factor=scale, mode="nearest").numpy()
    agrees("upsample", {"x": x}, expected, scale=scale)


COORDINATES: dict[str, Callable[[int, int, int], Fraction]] = {
    "half_pixel": lambda o, i, j: Fraction(2 * o + 1, 2) * i / j - Fraction(1, 2),
    "asymmetric": lambda o, i, j: Fraction(o * i, j),
    "align_corners": lambda o, i, j: Fraction(o * (i - 1), j - 1) if j > 1 else Fraction(0),
}
ROUNDINGS: dict[str, Callable[[Fraction], int]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "round_prefer_floor": lambda u: math.ceil(u - Fraction(1, 2)),
    "round_prefer_ceil": lambda u: math.floor(u + Fraction(1, 2)),
}


@pytest.mark.parametrize("coord", COORDINATES)
@pytest.mark.parametrize("rounding", ROUNDINGS)
@given(data=st.data())
@few
def test_the_nearest_element(coord: str, rounding: str, data: st.DataObject) -> None:
    x = numbered(data.draw(shapes(least=3, most=4, low=1, high=4)))
    size = per_axis(data, x.ndim - 2, 1, 7)
    expected = x
    for axis, (i, j) in enumerate(zip(x.shape[2:], size, strict=True), 2):
        sampled = [ROUNDINGS[rounding](COORDINATES[coord](o, i, j)) for o in range(j)]
        expected = np.take(expected, np.clip(sampled, 0, i - 1), axis)
    agrees("resize", {"x": x}, expected, size=size, coord=coord, rounding=rounding)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 8, 12])
def test_the_nearest_element_as_in_torch(size: int) -> None:
    x = numbered((1, 1, 4), np.float64)
    for mode, coord, rounding in (
        ("nearest", "asymmetric", "floor"),
        ("nearest-exact", "half_pixel", "round_prefer_ceil"),
    ):
        expected = F.interpolate(torch.from_numpy(x), size, mode=mode).numpy()
        agrees("resize", {"x": x}, expected, size=size, coord=coord, rounding=rounding)


@pytest.mark.parametrize("coord", COORDINATES)
@given(data=st.data())
@settings(max_examples=20)
def test_linear_interpolation(coord: str, data: st.DataObject) -> None:
    x = data.draw(reals(data.draw(shapes(least=3, most=4, low=1, high=4))))
    size = per_axis(data, x.ndim - 2, 1, 7)
    expected = x
    for axis, (i, j) in enumerate(zip(x.shape[2:], size, strict=True), 2):
        sampled = np.array([float(COORDINATES[coord](o, i, j)) for o in range(j)])
        interpolate = partial(np.interp, sampled, np.arange(i))
        expected = np.apply_along_axis(interpolate, axis, expected)
    agrees(
        "resize",
        {"x": x},
        expected,
        mode="linear",
        operations=20,
        magnitude=24,
        size=size,
        coord=coord,
    )


@pytest.mark.parametrize(("rank", "mode"), [(1, "linear"), (2, "bilinear"), (3, "trilinear")])
@given(data=st.data())
@settings(max_examples=15)
def test_linear_interpolation_as_in_torch(rank: int, mode: str, data: st.DataObject) -> None:
    shape = (1, 2, *per_axis(data, rank, 1, 3))
    size = per_axis(data, rank, 1, 4)
    x = data.draw(reals(shape))
    for corners, coord in ((True, "align_corners"), (False, "half_pixel")):
        image = torch.from_numpy(x)
        expected = F.interpolate(image, size, mode=mode, align_corners=corners).numpy()
        agrees(
            "resize",
            {"x": x},
            expected,
            mode="linear",
            operations=30,
            magnitude=24,
            size=size,
            coord=coord,
        )


@given(data=st.data())
@few
def test_blocks_and_channels(data: st.DataObject) -> None:
    n, c, h, w = per_axis(data, 4, 0, 3)
    b = data.draw(st.integers(1, 3))
    image = numbered((n, c, h * b, w * b))
    blocks = image.reshape(n, c, h, b, w, b)
    crd = np.einsum("nchiwj->ncijhw", blocks).reshape(n, c * b * b, h, w)
    dcr = np.einsum("nchiwj->nijchw", blocks).reshape(n, c * b * b, h, w)
    for mode, channels in (("crd", crd), ("dcr", dcr)):
        agrees("space_to_depth", {"x": image}, channels, block_size=b, mode=mode)
        agrees("depth_to_space", {"x": channels}, image, block_size=b, mode=mode)
    if image.size:
        shuffled = F.pixel_shuffle(torch.from_numpy(crd), b).numpy()
        agrees("depth_to_space", {"x": crd}, shuffled, block_size=b, mode="crd")


def test_a_boolean_and_a_small_float_can_be_moved() -> None:
    assert expansion("transpose", {"x": np.zeros((2, 3), bool)}).tensors["y"].dtype == "bool"
    assert expansion("reshape", {"x": np.zeros(4, np.float16)}, shape=(2, 2)).outputs == ("y",)


@given(data=st.data())
@few
def test_blocks_and_batches_are_those_of_tensorflow(data: st.DataObject) -> None:
    tf = pytest.importorskip("tensorflow")
    n, c = per_axis(data, 2, 1, 2)
    rank = data.draw(st.integers(1, 3))
    block, out = per_axis(data, rank, 1, 3), per_axis(data, rank, 1, 3)
    before = tuple(data.draw(st.integers(0, b * o - 1)) for b, o in zip(block, out, strict=True))
    after = tuple(
        data.draw(st.integers(0, b * o - 1 - p)) for b, o, p in zip(block, out, before, strict=True)
    )
    size = [b * o - p - q for b, o, p, q in zip(block, out, before, after, strict=True)]
    x = numbered((n, c, *size))
    pads = list(zip(before, after, strict=True))
    native = tf.space_to_batch(np.moveaxis(x, 1, -1), block, pads).numpy()
    attrs: dict[str, Any] = {"block_size": block, "before": before, "after": after}
    agrees("space_to_batch", {"x": x}, np.moveaxis(native, -1, 1), **attrs)
    agrees("batch_to_space", {"x": np.moveaxis(native, -1, 1)}, x, **attrs)


@given(data=st.data())
@few
def test_groups_of_channels_in_turn(data: st.DataObject) -> None:
    groups, each = per_axis(data, 2, 1, 3)
    x = numbered(
        (2, groups * each, *per_axis(data, data.draw(st.integers(1, 2)), 1, 2)), np.float64
    )
    expected = F.channel_shuffle(torch.from_numpy(x), groups).numpy()
    agrees("channel_shuffle", {"x": x}, expected, groups=groups)


@given(data=st.data())
@few
def test_the_middle(data: st.DataObject) -> None:
    x = numbered(data.draw(shapes(least=1, most=3, low=0, high=5)))
    size = per_axis(data, x.ndim, 0, 6)
    expected = x
    for axis, (n, m) in enumerate(zip(x.shape, size, strict=True)):
        if m < n:
            expected = expected.take(range((n - m) // 2, (n - m) // 2 + m), axis)
        else:
            pads = [(0, 0)] * x.ndim
            pads[axis] = ((m - n) // 2, (m - n) - (m - n) // 2)
            expected = np.pad(expected, pads)
    agrees("center_crop_pad", {"x": x}, expected, size=size)
    if x.ndim > 1:
        one = numbered((2, 5))
        agrees("center_crop_pad", {"x": one}, one[:, 1:4], size=(3,), axes=(-1,))
