"""Convolutions against PyTorch, TensorFlow, Keras and plain loops, in float64."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.ops.oracle import Array, Result, call

torch = pytest.importorskip("torch")
tf = pytest.importorskip("tensorflow")

CONV = (torch.nn.functional.conv1d, torch.nn.functional.conv2d, torch.nn.functional.conv3d)
TRANSPOSED = (
    torch.nn.functional.conv_transpose1d,
    torch.nn.functional.conv_transpose2d,
    torch.nn.functional.conv_transpose3d,
)


def values(rng: np.random.Generator, *shape: int) -> Array:
    return rng.uniform(-2, 2, shape)


def last(x: Array) -> Array:
    """Channels last."""
    return np.moveaxis(x, 1, -1)


def filters(w: Array) -> Array:
    """Spatial axes first, then input and output channels, of a weight [F, C, K..]."""
    return np.moveaxis(w, (0, 1), (-1, -2))


def drawn(data: st.DataObject, rank: int, low: int, high: int) -> tuple[int, ...]:
    return tuple(data.draw(st.integers(low, high)) for _ in range(rank))


def padded(x: Array, before: tuple[int, ...], after: tuple[int, ...]) -> Array:
    return np.pad(x, [(0, 0), (0, 0), *zip(before, after, strict=True)])


@settings(max_examples=40)
@given(st.data())
def test_conv_with_given_padding_is_that_of_torch(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    rank = data.draw(st.sampled_from((1, 1, 2, 2, 3)))
    groups, g = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 2))
    size = drawn(data, rank, 1, 7 if rank < 3 else 4)
    kernel = drawn(data, rank, 1, 3)
    stride, dilation = drawn(data, rank, 1, 4), drawn(data, rank, 1, 2)
    before, after = drawn(data, rank, 0, 2), drawn(data, rank, 0, 2)
    per = data.draw(st.integers(1, 2))
    x = values(rng, data.draw(st.integers(1, 2)), groups * g, *size)
    w, b = values(rng, groups * per, g, *kernel), values(rng, groups * per)
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    wide = padded(x, before, after)
    assume(all(span <= n for span, n in zip(spans, wide.shape[2:], strict=True)))
    result = call(
        "conv", {"x": x, "w": w, "b": b}, stride=stride, dilation=dilation, groups=groups,
        pad="given", before=before, after=after,
    )["y"]  # fmt: skip
    native = CONV[rank - 1](*map(torch.tensor, (wide, w, b)), stride, 0, dilation, groups)
    result.check(native.numpy())


@settings(max_examples=40)
@given(st.data())
def test_conv_padded_to_the_same_size_is_that_of_tensorflow(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    rank = data.draw(st.sampled_from((1, 2, 2)))
    size, kernel = drawn(data, rank, 1, 7), drawn(data, rank, 1, 4)
    stride, dilation = drawn(data, rank, 1, 4), (1,) * rank
    if data.draw(st.booleans()):  # TensorFlow does not have both
        stride, dilation = dilation, drawn(data, rank, 1, 3)
    pad = data.draw(st.sampled_from(("same", "valid")))
    x = values(rng, 2, 2, *size)
    w = values(rng, 3, 2, *kernel)
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    assume(pad == "same" or all(span <= n for span, n in zip(spans, size, strict=True)))
    result = call("conv", {"x": x, "w": w}, stride=stride, dilation=dilation, pad=pad)["y"]
    native = tf.nn.convolution(
        last(x), filters(w), strides=stride, padding=pad.upper(), dilations=dilation
    )
    result.check(np.moveaxis(native.numpy(), -1, 1))


@settings(max_examples=40)
@given(st.data())
def test_conv_transpose_is_that_of_torch(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    rank = data.draw(st.sampled_from((1, 1, 2, 2, 3)))
    groups, d = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 2))
    g = data.draw(st.integers(1, 2))
    size = drawn(data, rank, 1, 4 if rank < 3 else 2)
    kernel, stride = drawn(data, rank, 1, 3), drawn(data, rank, 1, 4 if rank < 3 else 2)
    dilation = drawn(data, rank, 1, 2)
    extra = tuple(
        data.draw(st.integers(0, max(s, e) - 1)) for s, e in zip(stride, dilation, strict=True)
    )
    before, after = drawn(data, rank, 0, 2), drawn(data, rank, 0, 2)
    x, w = values(rng, 2, groups * d, *size), values(rng, groups * d, g, *kernel)
    b = values(rng, groups * g)
    native = TRANSPOSED[rank - 1](
        torch.tensor(x), torch.tensor(w), torch.tensor(b), stride, 0, extra, groups, dilation
    ).numpy()
    pad = data.draw(st.sampled_from(("valid", "given")))
    attrs: dict[str, Any] = {}
    if pad == "given":
        assume(all(p + q < n for p, q, n in zip(before, after, native.shape[2:], strict=True)))
        cut = [slice(p, n - q) for p, q, n in zip(before, after, native.shape[2:], strict=True)]
        native = native[(slice(None), slice(None), *cut)]
        attrs = {"before": before, "after": after}
    result = call(
        "conv_transpose", {"x": x, "w": w, "b": b}, stride=stride, dilation=dilation,
        groups=groups, output_padding=extra, pad=pad, **attrs,
    )["y"]  # fmt: skip
    result.check(native)


@settings(max_examples=30)
@given(st.data())
def test_conv_transpose_is_that_of_keras(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    rank = data.draw(st.sampled_from((1, 2, 2, 3)))
    size = drawn(data, rank, 1, 4 if rank < 3 else 2)
    kernel, stride = drawn(data, rank, 1, 4), drawn(data, rank, 1, 3)
    pad = data.draw(st.sampled_from(("same", "valid")))
    x, w, b = values(rng, 2, 2, *size), values(rng, 2, 3, *kernel), values(rng, 3)
    layers = tf.keras.layers
    kind = (layers.Conv1DTranspose, layers.Conv2DTranspose, layers.Conv3DTranspose)[rank - 1]
    layer = kind(3, kernel, strides=stride, padding=pad, dtype="float64")
    layer.build((None, *size, 2))
    layer.set_weights([np.moveaxis(w, (0, 1), (-1, -2)), b])
    spare: Any = 0
    if pad == "valid":
        spare = tuple(max(0, s - k) for s, k in zip(stride, kernel, strict=True))
    result = call(
        "conv_transpose", {"x": x, "w": w, "b": b}, stride=stride, pad=pad, output_padding=spare
    )["y"]
    result.check(np.moveaxis(layer(last(x)).numpy(), -1, 1))


@settings(max_examples=30)
@given(st.data())
def test_depthwise_conv_is_that_of_tensorflow(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    size, kernel = drawn(data, 2, 2, 6), drawn(data, 2, 1, 3)
    stride: int = data.draw(st.integers(1, 3))  # TensorFlow's strides are equal
    dilation: tuple[int, ...] = (1, 1)
    if data.draw(st.booleans()):
        stride, dilation = 1, drawn(data, 2, 1, 2)
    pad = data.draw(st.sampled_from(("same", "valid")))
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    assume(pad == "same" or all(span <= n for span, n in zip(spans, size, strict=True)))
    c, m = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 2))
    x, w = values(rng, 2, c, *size), values(rng, c, m, *kernel)
    result = call("depthwise_conv", {"x": x, "w": w}, stride=stride, dilation=dilation, pad=pad)
    native = tf.nn.depthwise_conv2d(
        last(x), np.moveaxis(w, (0, 1), (-2, -1)), [1, stride, stride, 1], pad.upper(),
        dilations=dilation,
    )  # fmt: skip
    result["y"].check(np.moveaxis(native.numpy(), -1, 1))
    grouped = call(
        "conv", {"x": x, "w": w.reshape(c * m, 1, *kernel)},
        stride=stride, dilation=dilation, pad=pad, groups=c,
    )  # fmt: skip
    result["y"].check(grouped["y"].value)


@settings(max_examples=25)
@given(st.data())
def test_separable_conv_is_that_of_keras(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    rank = data.draw(st.sampled_from((1, 2)))
    size, kernel = drawn(data, rank, 3, 5), drawn(data, rank, 1, 3)
    stride = (data.draw(st.integers(1, 3)),) * rank
    pad = data.draw(st.sampled_from(("same", "valid")))
    c, m, f = 2, data.draw(st.integers(1, 2)), 3
    x, w = values(rng, 2, c, *size), values(rng, c, m, *kernel)
    p, b = values(rng, f, c * m), values(rng, f)
    kind = (tf.keras.layers.SeparableConv1D, tf.keras.layers.SeparableConv2D)[rank - 1]
    layer = kind(f, kernel, strides=stride, padding=pad, depth_multiplier=m, dtype="float64")
    layer.build((None, *size, c))
    layer.set_weights([np.moveaxis(w, (0, 1), (-2, -1)), p.T.reshape((1,) * rank + (c * m, f)), b])
    result = call("separable_conv", {"x": x, "w": w, "p": p, "b": b}, stride=stride, pad=pad)
    result["y"].check(np.moveaxis(layer(last(x)).numpy(), -1, 1))


def unshared(x: Array, w: Array, b: Array, stride: tuple[int, ...], out: tuple[int, ...]) -> Array:
    """A local layer by loops: a window of the input times the kernel of its position."""
    kernel = w.shape[3:]
    y = np.empty((x.shape[0], w.shape[1], *out))
    for position, at in enumerate(np.ndindex(out)):
        first = [o * s for o, s in zip(at, stride, strict=True)]
        window = [slice(f, f + k) for f, k in zip(first, kernel, strict=True)]
        part = x[(slice(None), slice(None), *window)].reshape(x.shape[0], -1)
        matrix = w[position].reshape(w.shape[1], -1)
        y[(slice(None), slice(None), *at)] = part @ matrix.T + b[position]
    return y


@settings(max_examples=30)
@given(st.data())
def test_locally_connected_is_a_kernel_for_every_position(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    rank = data.draw(st.sampled_from((1, 2)))
    size, kernel, stride = drawn(data, rank, 1, 5), drawn(data, rank, 1, 3), drawn(data, rank, 1, 3)
    pad = data.draw(st.sampled_from(("same", "valid", "given")))
    before, after = drawn(data, rank, 0, 1), drawn(data, rank, 0, 1)
    x = values(rng, 2, 2, *size)
    if pad == "given":
        wide = padded(x, before, after)
    elif pad == "same":
        threes = zip(size, stride, kernel, strict=True)
        need = [max(0, (-(-n // s) - 1) * s + k - n) for n, s, k in threes]
        wide = padded(x, tuple(n // 2 for n in need), tuple(n - n // 2 for n in need))
    else:
        wide = x
    assume(all(k <= n for k, n in zip(kernel, wide.shape[2:], strict=True)))
    out = tuple((n - k) // s + 1 for n, k, s in zip(wide.shape[2:], kernel, stride, strict=True))
    w, b = values(rng, int(np.prod(out)), 2, 2, *kernel), values(rng, int(np.prod(out)), 2)
    result: Result = call(
        "locally_connected", {"x": x, "w": w, "b": b},
        stride=stride, pad=pad, before=before, after=after,
    )["y"]  # fmt: skip
    result.check(unshared(wide, w, b, stride, out))


# ---- columns, offsets, time


@settings(max_examples=30)
@given(st.data())
def test_columns_are_those_of_torch(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    size, window = drawn(data, 2, 1, 6), drawn(data, 2, 1, 3)
    stride, dilation, pad = drawn(data, 2, 1, 3), drawn(data, 2, 1, 2), drawn(data, 2, 0, 2)
    fives = zip(size, window, dilation, pad, strict=True)
    assume(all(d * (k - 1) + 1 <= n + 2 * p for n, k, d, p in fives))
    x = values(rng, 2, 3, *size)
    attrs = {"stride": stride, "dilation": dilation, "before": pad, "after": pad, "window": window}
    columns = torch.nn.functional.unfold(torch.tensor(x), window, dilation, pad, stride)
    call("im2col", {"x": x}, **attrs)["y"].check(columns.numpy())
    image = torch.nn.functional.fold(columns, size, window, dilation, pad, stride)
    call("col2im", {"x": columns.numpy()}, size=size, **attrs)["y"].check(image.numpy())


@settings(max_examples=20)
@given(st.data())
def test_a_deformable_convolution_by_loops(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    size, kernel = drawn(data, 2, 2, 5), drawn(data, 2, 1, 2)
    stride, dilation = drawn(data, 2, 1, 2), drawn(data, 2, 1, 2)
    before, after = drawn(data, 2, 0, 1), drawn(data, 2, 0, 1)
    groups, moves = data.draw(st.sampled_from((1, 2))), data.draw(st.sampled_from((1, 2)))
    span = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    sixes = zip(size, before, after, span, stride, strict=True)
    out = tuple((n + b + a - s) // t + 1 for n, b, a, s, t in sixes)
    assume(min(out) >= 1)
    taps = kernel[0] * kernel[1]
    x, w = values(rng, 1, 4, *size), values(rng, 2, 4 // groups, *kernel)
    offset, mask = values(rng, 1, moves * taps * 2, *out), values(rng, 1, moves * taps, *out)
    b = values(rng, 2)
    y = np.zeros((1, 2, *out))
    for f, i, j in np.ndindex(2, *out):
        y[0, f, i, j] = b[f]
        for c, p, q in np.ndindex(4 // groups, *kernel):
            channel = f // (2 // groups) * (4 // groups) + c
            tap = channel // (4 // moves) * taps + p * kernel[1] + q
            place = [
                o * stride[d] - before[d] + k * dilation[d] + offset[0, 2 * tap + d, i, j]
                for d, (o, k) in enumerate(((i, p), (j, q)))
            ]
            for corner in np.ndindex(2, 2):
                at = [int(np.floor(u)) + e for u, e in zip(place, corner, strict=True)]
                if all(0 <= a < n for a, n in zip(at, size, strict=True)):
                    near = (1 - abs(place[0] - at[0])) * (1 - abs(place[1] - at[1]))
                    pixel = x[0, channel, at[0], at[1]] * near * mask[0, tap, i, j]
                    y[0, f, i, j] += pixel * w[f, c, p, q]
    inputs = {"x": x, "w": w, "offset": offset, "b": b, "mask": mask}
    attrs: dict[str, Any] = {
        "stride": stride, "dilation": dilation, "before": before, "after": after,
        "groups": groups, "offset_groups": moves,
    }  # fmt: skip
    call("deform_conv", inputs, **attrs)["y"].check(y)
    still = {"x": x, "w": w, "offset": np.zeros_like(offset), "b": b}
    frame = {"pad": "given", "groups": groups, "stride": stride, "dilation": dilation}
    plain = call("conv", {"x": x, "w": w, "b": b}, before=before, after=after, **frame)["y"]
    call("deform_conv", still, **attrs)["y"].check(plain.value)


@settings(max_examples=20)
@given(st.data())
def test_a_causal_convolution_goes_on_where_it_stopped(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    length, kernel = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 4))
    x, w, b = values(rng, 2, 3, length), values(rng, 3, 1, kernel), values(rng, 3)
    padded = torch.nn.functional.pad(torch.tensor(x), (kernel - 1, 0))
    whole = CONV[0](padded, torch.tensor(w), torch.tensor(b), groups=3).numpy()
    call("causal_conv", {"x": x, "w": w, "b": b})["y"].check(whole)
    cut = data.draw(st.integers(0, length))
    begun = call("causal_conv", {"x": x[..., :cut], "w": w, "b": b})
    state = begun["present"].value
    np.testing.assert_array_equal(state, padded[..., cut : cut + kernel - 1].numpy())
    rest = {"x": x[..., cut:], "w": w, "b": b, "past": state}
    call("causal_conv", rest)["y"].check(whole[..., cut:])
    silu = call("causal_conv", rest, activation="silu")["y"]
    silu.check(torch.nn.functional.silu(torch.tensor(whole[..., cut:].copy())).numpy())
