"""Pooling against PyTorch, TensorFlow, Keras and plain loops, in float64."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.ops.oracle import Array, call

torch = pytest.importorskip("torch")
tf = pytest.importorskip("tensorflow")

F = torch.nn.functional
MAX = (F.max_pool1d, F.max_pool2d, F.max_pool3d)
AVERAGE = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)


def values(rng: np.random.Generator, *shape: int) -> Array:
    return rng.uniform(-2, 2, shape)


def drawn(data: st.DataObject, rank: int, low: int, high: int) -> tuple[int, ...]:
    return tuple(data.draw(st.integers(low, high)) for _ in range(rank))


def fits(size: tuple[int, ...], span: list[int], pad: tuple[int, ...]) -> bool:
    return all(s <= n + 2 * p for n, s, p in zip(size, span, pad, strict=True))


@settings(max_examples=30)
@given(st.data())
def test_max_pool_is_that_of_torch(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    rank = data.draw(st.sampled_from((1, 2, 2, 3)))
    size, window = drawn(data, rank, 1, 7 if rank < 3 else 4), drawn(data, rank, 1, 3)
    dilation, stride = drawn(data, rank, 1, 2), drawn(data, rank, 1, 4)
    pad = tuple(data.draw(st.integers(0, k // 2)) for k in window)
    span = [d * (k - 1) + 1 for d, k in zip(dilation, window, strict=True)]
    assume(fits(size, span, pad))
    ceil_mode = data.draw(st.booleans())
    x = values(rng, 2, 2, *size)
    result = call(
        "max_pool", {"x": x}, window=window, stride=stride, dilation=dilation,
        pad="given", before=pad, after=pad, ceil_mode=ceil_mode,
    )["y"]  # fmt: skip
    result.check(MAX[rank - 1](torch.tensor(x), window, stride, pad, dilation, ceil_mode).numpy())


@settings(max_examples=30)
@given(st.data())
def test_avg_pool_is_that_of_torch(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    rank = data.draw(st.sampled_from((1, 2, 2, 3)))
    size, window = drawn(data, rank, 1, 7 if rank < 3 else 4), drawn(data, rank, 1, 3)
    stride = drawn(data, rank, 1, 4)
    pad = tuple(data.draw(st.integers(0, k // 2)) for k in window)
    # torch.nn.functional.avg_pool3d asks that the window fit without the padding
    assume(fits(size, list(window), pad if rank < 3 else (0, 0, 0)))
    ceil_mode, include = data.draw(st.booleans()), data.draw(st.booleans())
    x = values(rng, 2, 2, *size)
    result = call(
        "avg_pool", {"x": x}, window=window, stride=stride, pad="given", before=pad, after=pad,
        ceil_mode=ceil_mode, count_include_pad=include,
    )["y"]  # fmt: skip
    pool = AVERAGE[rank - 1]
    result.check(pool(torch.tensor(x), window, stride, pad, ceil_mode, include).numpy())


@settings(max_examples=30)
@given(st.data())
def test_pools_padded_to_the_same_size_are_those_of_tensorflow(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    rank = data.draw(st.sampled_from((1, 2, 2)))  # TensorFlow's 3-D maximum has no float64
    size, window = drawn(data, rank, 1, 7), drawn(data, rank, 1, 4)
    stride = drawn(data, rank, 1, 4)
    pad = data.draw(st.sampled_from(("same", "valid")))
    assume(pad == "same" or fits(size, list(window), (0,) * rank))
    x = values(rng, 2, 2, *size)
    for name, pool in (("max_pool", tf.nn.max_pool), ("avg_pool", tf.nn.avg_pool)):
        native = pool(tf.constant(np.moveaxis(x, 1, -1)), window, stride, pad.upper())
        result = call(name, {"x": x}, window=window, stride=stride, pad=pad)["y"]
        result.check(np.moveaxis(native.numpy(), -1, 1))


def test_the_stride_is_the_window_unless_it_is_given() -> None:
    x = values(np.random.default_rng(0), 1, 1, 6, 6)
    result = call("max_pool", {"x": x}, window=(2, 3))["y"]
    result.check(tf.keras.layers.MaxPooling2D((2, 3), data_format="channels_last", dtype="float64")(
        np.moveaxis(x, 1, -1)).numpy().transpose(0, 3, 1, 2))  # fmt: skip


def windows(
    x: Array, window: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...],
    before: tuple[int, ...], after: tuple[int, ...], value: Callable[[list[float], int], float],
) -> Array:  # fmt: skip
    """A pool by loops: `value` of the elements of a window and its number of padded positions."""
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, window, strict=True)]
    out = tuple(
        (n + b + a - s) // t + 1
        for n, b, a, s, t in zip(x.shape, before, after, spans, stride, strict=True)
    )
    y = np.empty(out)
    for at in itertools.product(*map(range, out)):
        elements, padding = [], 0
        for k in itertools.product(*map(range, window)):
            fives = zip(at, stride, k, dilation, before, strict=True)
            place = tuple(o * t + i * d - b for o, t, i, d, b in fives)
            if all(0 <= p < n for p, n in zip(place, x.shape, strict=True)):
                elements.append(float(x[place]))
            else:
                padding += 1
        y[at] = value(elements, padding)
    return y


@settings(max_examples=30)
@given(st.data())
def test_pools_with_uneven_padding_and_dilation(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    rank = data.draw(st.sampled_from((1, 2)))
    size, window = drawn(data, rank, 1, 6), drawn(data, rank, 1, 3)
    dilation, stride = drawn(data, rank, 1, 3), drawn(data, rank, 1, 4)
    span = [d * (k - 1) + 1 for d, k in zip(dilation, window, strict=True)]
    before = tuple(data.draw(st.integers(0, s - 1)) for s in span)
    after = tuple(data.draw(st.integers(0, s - 1)) for s in span)
    assume(all(s <= n + b + a for s, n, b, a in zip(span, size, before, after, strict=True)))
    x = values(rng, 1, 1, *size)
    attrs: dict[str, Any] = {
        "window": window, "stride": stride, "dilation": dilation, "pad": "given",
        "before": before, "after": after,
    }  # fmt: skip

    def loop(value: Callable[[list[float], int], float]) -> Array:
        sizes = window, stride, dilation, before, after
        return windows(x[0, 0], *sizes, value)[None, None]

    largest = call("max_pool", {"x": x}, **attrs)["y"]
    empty = loop(lambda elements, _: float(not elements)) == 1
    np.testing.assert_array_equal(np.isinf(largest.radius), empty)
    largest.check(loop(lambda elements, _: max(elements, default=0.0)))
    mean = call("avg_pool", {"x": x}, **attrs)["y"]
    np.testing.assert_array_equal(np.isinf(mean.radius), empty)
    mean.check(loop(lambda elements, _: sum(elements) / max(len(elements), 1)))
    call("avg_pool", {"x": x}, **attrs, count_include_pad=True)["y"].check(
        loop(lambda elements, padding: sum(elements) / (len(elements) + padding))
    )
    order = data.draw(st.sampled_from((1, 2, 3, 2.5)))
    call("lp_pool", {"x": x}, **attrs, p=order)["y"].check(
        loop(lambda elements, _: sum(abs(e) ** order for e in elements) ** (1 / order))
    )


@pytest.mark.parametrize("size", [(5,), (3, 1), (2, 3, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_global_pools(size: tuple[int, ...], keepdims: bool) -> None:
    x = values(np.random.default_rng(1), 2, 3, *size)
    axes = tuple(range(2, x.ndim))
    call("global_max_pool", {"x": x}, keepdims=keepdims)["y"].check(x.max(axes, keepdims=keepdims))
    call("global_avg_pool", {"x": x}, keepdims=keepdims)["y"].check(x.mean(axes, keepdims=keepdims))


@settings(max_examples=30)
@given(st.data())
def test_positions_of_the_largest_are_those_of_torch(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    rank = data.draw(st.sampled_from((1, 2, 3)))
    size, window = drawn(data, rank, 1, 6 if rank < 3 else 4), drawn(data, rank, 1, 3)
    dilation, stride = drawn(data, rank, 1, 2), drawn(data, rank, 1, 3)
    pad = tuple(data.draw(st.integers(0, k // 2)) for k in window)
    span = [d * (k - 1) + 1 for d, k in zip(dilation, window, strict=True)]
    assume(fits(size, span, pad))
    ceil_mode = data.draw(st.booleans())
    x = rng.integers(-2, 3, (2, 2, *size)).astype(np.float64)  # ties: the first of several
    attrs: dict[str, Any] = {
        "window": window, "stride": stride, "dilation": dilation, "pad": "given", "before": pad,
        "after": pad, "ceil_mode": ceil_mode,
    }  # fmt: skip
    found = call("max_pool_with_argmax", {"x": x}, **attrs)
    arguments = (torch.tensor(x), window, stride, pad, dilation, ceil_mode, True)
    y, indices = (value.numpy() for value in MAX[rank - 1](*arguments))
    found["y"].check(y)
    found["indices"].check(indices)
    # over the whole tensor, and with the first axis counted first
    plane = np.arange(4).reshape(2, 2, *(1,) * rank) * int(np.prod(size))
    call("max_pool_with_argmax", {"x": x}, **attrs, whole=True)["indices"].check(indices + plane)
    places = np.unravel_index(indices, size)
    column = np.ravel_multi_index(places, size, order="F")
    call("max_pool_with_argmax", {"x": x}, **attrs, order="column")["indices"].check(column)
    if not ceil_mode:
        undone = call("max_unpool", {"x": y, "indices": indices}, size=size)["y"]
        flat = np.zeros((2, 2, int(np.prod(size))))
        np.put_along_axis(flat, indices.reshape(2, 2, -1), y.reshape(2, 2, -1), 2)
        undone.check(flat.reshape(x.shape))
        whole = {"x": y, "indices": indices + plane}
        call("max_unpool", whole, size=size, whole=True)["y"].check(flat.reshape(x.shape))


@settings(max_examples=30)
@given(st.data())
def test_adaptive_pools_are_those_of_torch(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    rank = data.draw(st.sampled_from((1, 2, 3)))
    size, out = drawn(data, rank, 1, 6), drawn(data, rank, 1, 8 if rank < 3 else 4)
    x = values(rng, 2, 2, *size)
    for kind in ("avg", "max"):
        native = getattr(F, f"adaptive_{kind}_pool{rank}d")
        result = call(f"adaptive_{kind}_pool", {"x": x}, size=out)["y"]
        result.check(native(torch.tensor(x), out).numpy())


def test_the_largest_of_integers() -> None:
    x = np.array([[[-128, -127, 5, 127]]], np.int8)
    attrs = {"window": 3, "stride": 1, "pad": "given", "before": 1, "after": 1}
    result = call("max_pool", {"x": x}, **attrs)["y"]
    np.testing.assert_array_equal(result.value, [[[-127, 5, 127, 127]]])
