"""ONNX Runtime's operators that are several as one, against NumPy in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.compare import Array, agrees, all_left_open, integers, left_open, reals
from tests.ops.oracle import call

few = settings(max_examples=20, deadline=None)
sizes = st.integers(1, 4)
_BYTES = {"u8": (np.uint8, 0, 255), "i8": (np.int8, -128, 127)}


def _erf(x: Array) -> Array:
    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(x))


def _normal(t: Array, eps: float) -> Array:
    return np.asarray((t - t.mean(-1, keepdims=True)) / np.sqrt(t.var(-1, keepdims=True) + eps))


def whole(data: st.DataObject, shape: tuple[int, ...], kind: str = "") -> Array:
    dtype, low, high = _BYTES[kind or data.draw(st.sampled_from(["u8", "i8"]))]
    return data.draw(integers(shape, dtype, low, high))


def step(data: st.DataObject, shape: tuple[int, ...] = ()) -> Any:
    return np.asarray(data.draw(integers(shape, np.int64, 1, 999)) / 4096)


@given(data=st.data(), c=sizes)
@few
def test_gelu_of_a_sum(data: st.DataObject, c: int) -> None:
    x, b = data.draw(reals((2, c), -3, 3)), data.draw(reals((c,), -3, 3))
    v = x + b
    agrees("bias_gelu", {"x": x, "b": b}, v * (1 + _erf(v / np.sqrt(2))) / 2, operations=64,
           magnitude=6.0)  # fmt: skip


@given(data=st.data(), b=sizes, size=sizes, lone=st.booleans())
@few
def test_norms_of_sums(data: st.DataObject, b: int, size: int, lone: bool) -> None:
    x = data.draw(reals((b, 2, size)))
    gamma, beta, bias = (data.draw(reals((size,))) for _ in range(3))
    skip = data.draw(reals((1 if lone else b, 2, size)))
    total = x + skip + bias
    inputs = {"x": x, "skip": skip, "gamma": gamma, "beta": beta, "bias": bias}
    agrees("skip_layer_norm", inputs, [_normal(total, 0.5) * gamma + beta, total],
           operations=512, magnitude=64.0, eps=0.5)  # fmt: skip
    full = np.broadcast_to(skip, x.shape).copy()
    given_ = {"x": x, "skip": full, "gamma": gamma, "bias": bias}
    root = np.sqrt((total * total).mean(-1, keepdims=True) + 0.5)
    agrees("skip_rms_norm", given_, [total / root * gamma, total],
           operations=512, magnitude=64.0, eps=0.5)  # fmt: skip


@given(data=st.data(), b=sizes, length=sizes)
@few
def test_embeddings(data: st.DataObject, b: int, length: int) -> None:
    words, places, kinds = (data.draw(reals((n, 3))) for n in (5, 4, 2))
    ids = data.draw(integers((b, length), np.int32, 0, 4))
    segments = data.draw(integers((b, length), np.int32, 0, 1))
    gamma, beta = data.draw(reals((3,))), data.draw(reals((3,)))
    inputs = {
        "ids": ids, "segments": segments, "words": words, "places": places, "kinds": kinds,
        "gamma": gamma, "beta": beta,
    }  # fmt: skip
    total = words[ids] + places[:length] + kinds[segments]
    agrees("embed_layer_norm", inputs, _normal(total, 0.5) * gamma + beta, operations=512,
           magnitude=64.0, eps=0.5)  # fmt: skip


def _softmax(s: Array) -> Array:
    e = np.exp(s - s.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


@given(data=st.data(), heads=st.integers(1, 2), causal=st.booleans(), masked=st.booleans())
@few
def test_attention(data: st.DataObject, heads: int, causal: bool, masked: bool) -> None:
    b, length, e, d = 2, 3, 2, 2
    x = data.draw(reals((b, length, e), -2, 2))
    w, bias = data.draw(reals((e, 3 * heads * d), -2, 2)), data.draw(reals((3 * heads * d,), -2, 2))
    mask = np.ones((b, length), np.int32)
    if masked:
        mask[:, causal:] = data.draw(integers((b, length - causal), np.int32, 0, 1))
    parts = np.split(x @ w + bias, 3, axis=-1)
    q, k, v = (p.reshape(b, length, heads, d).transpose(0, 2, 1, 3) for p in parts)
    s = q @ k.transpose(0, 1, 3, 2) / np.sqrt(d)
    s = s + np.where(mask == 0, -10000.0, 0.0)[:, None, None, :]
    s = np.where(np.triu(np.ones((length, length), bool), 1), -np.inf, s) if causal else s
    right = (_softmax(s) @ v).transpose(0, 2, 1, 3).reshape(b, length, heads * d)
    inputs = {"x": x, "w": w, "bias": bias, "mask": mask}
    # scores of -10000 and some are off by as many of its units
    agrees("packed_attention", inputs, right, operations=4096, magnitude=1e4, heads=heads,
           causal=causal)  # fmt: skip


@given(data=st.data(), heads=st.integers(1, 2), causal=st.booleans())
@few
def test_quantised_attention(data: st.DataObject, heads: int, causal: bool) -> None:
    """It is attention of what the integers stand for."""
    x, w = whole(data, (2, 3, 2), "u8"), whole(data, (2, 6 * heads))
    p, q = data.draw(integers((), np.uint8, 0, 99)), data.draw(integers((), w.dtype, 0, 99))
    s, r = step(data) / 64, step(data, (6 * heads,)) / 64
    bias = data.draw(reals((6 * heads,), -1, 1))
    inputs = {
        "x": x, "w": w, "bias": bias, "x_scale": s, "w_scale": r, "x_zero": p, "w_zero": q,
    }  # fmt: skip
    real = {
        "x": (x.astype(float) - float(p)) * s, "w": (w.astype(float) - float(q)) * r, "bias": bias,
    }  # fmt: skip
    attrs = {"heads": heads, "causal": causal}
    right = call("packed_attention", real, **attrs)["y"].value
    agrees("quantized_attention", inputs, right, operations=4096, magnitude=64.0, **attrs)


def test_positions_that_see_masked_keys_alone_are_open() -> None:
    inputs: dict[str, Array] = {
        "x": np.ones((1, 3, 2)),
        "w": np.ones((2, 6)),
        "mask": np.array([[0, 1, 0]], np.int32),
    }
    for causal in (False, True):
        radius = call("packed_attention", inputs, heads=1, causal=causal)["y"].radius
        assert np.isinf(radius[0, :, 0]).tolist() == [causal, False, False]


@given(data=st.data(), size=sizes, length=st.integers(0, 6))
@few
def test_rows_that_are_not_repeated(data: st.DataObject, size: int, length: int) -> None:
    ids = data.draw(integers((2, length), np.int64, 0, 2))
    scores = data.draw(reals((2, 3)))
    right = scores.copy()
    for row, own in zip(ids.tolist(), right, strict=True):
        last = row[length - size + 1 :] if size > 1 else []
        for start in range(length - size + 1):
            if row[start : start + size - 1] == last:
                own[row[start + size - 1]] = -np.inf
    agrees("ngram_repeat_block", {"ids": ids, "scores": scores}, right, size=size)


@given(data=st.data(), m=sizes, k=sizes, n=sizes, each=st.booleans())
@few
def test_products_of_bytes(data: st.DataObject, m: int, k: int, n: int, each: bool) -> None:
    a, b = whole(data, (m, k)), whole(data, (k, n))
    p = data.draw(integers((), a.dtype, 0, 99))
    q = data.draw(integers((n,) if each else (), b.dtype, 0, 99))
    s, r = step(data), step(data, (n,) if each else ())
    bias = data.draw(reals((n,)))
    left, right = a.astype(float) - float(p), b.astype(float) - q
    inputs: dict[str, Any] = {"a": a, "b": b, "a_scale": s, "b_scale": r, "a_zero": p}
    inputs |= {"b_zero": q, "bias": bias}
    agrees("matmul_integer_to_float", inputs, (left @ right) * (s * r) + bias, operations=8,
           magnitude=1e5)  # fmt: skip
    z, t = whole(data, (), "u8"), step(data)
    given_ = {
        "a": a, "a_scale": s, "a_zero": p, "b": b, "b_scale": r,
        "b_zero": q, "y_scale": t, "y_zero": z,
    }  # fmt: skip
    steps = (left @ right) * (s * r / t)
    found = np.clip(np.rint(steps) + int(z), 0, 255)
    open_ = left_open("qlinear_gemm", given_)
    if np.abs(steps - np.floor(steps) - 0.5).min() > 1e-6:
        assert open_ is None or not open_.any()
        agrees("qlinear_gemm", given_, found.astype(np.uint8))


@given(data=st.data(), m=sizes, k=sizes, n=sizes)
@few
def test_reals_that_are_quantised_on_the_way(data: st.DataObject, m: int, k: int, n: int) -> None:
    a, b = data.draw(integers((m, k), np.int64, -99, 99)) / 64, whole(data, (k, n))
    r, bias = step(data), data.draw(reals((n,)))
    inputs = {"a": a, "b": b, "b_scale": r, "bias": bias}
    high, low = max(a.max(), 0.0), min(a.min(), 0.0)
    unit = (high - low) / 255
    if unit == 0:
        assert all_left_open("dynamic_quantize_matmul", inputs)[-1].all()
        return
    zero, steps = -low / unit, a / unit
    middle = np.abs(np.append(steps, zero) - np.floor(np.append(steps, zero)) - 0.5)
    if middle.min() < 1e-6:
        return
    whole_zero = np.clip(np.rint(zero), 0, 255)
    q = np.clip(np.rint(steps) + whole_zero, 0, 255) - whole_zero
    agrees("dynamic_quantize_matmul", inputs, (q @ b.astype(float)) * (unit * r) + bias,
           operations=8, magnitude=1e5)  # fmt: skip


@given(data=st.data(), bits=st.sampled_from([2, 4, 8]), k=st.integers(1, 40), zeros=st.booleans())
@few
def test_weights_of_few_bits(data: st.DataObject, bits: int, k: int, zeros: bool) -> None:
    n, block, per, blocks = 2, 16, 8 // bits, -(-k // 16)
    codes = data.draw(integers((n, blocks * block), np.uint8, 0, 2**bits - 1))
    points = data.draw(integers((n, blocks), np.uint8, 0, 2**bits - 1))
    scales, x = step(data, (n, blocks)), data.draw(reals((3, k)))

    def packed(numbers: Array) -> Array:
        room = -len(numbers[0]) % per
        rows = np.pad(numbers, ((0, 0), (0, room))).reshape(n, -1, per).astype(int)
        return np.asarray((rows << (bits * np.arange(per))).sum(-1), np.uint8)

    inputs: dict[str, Any] = {"x": x, "w": packed(codes).reshape(n, blocks, -1), "scales": scales}
    if zeros:
        inputs["zeros"] = packed(points)
    middle = points if zeros else np.full_like(points, 2 ** (bits - 1))
    reals_ = (codes.astype(float) - np.repeat(middle, block, 1)) * np.repeat(scales, block, 1)
    agrees("matmul_nbits", inputs, x @ reals_[:, :k].T, operations=64, magnitude=1e4, bits=bits,
           block_size=block)  # fmt: skip
