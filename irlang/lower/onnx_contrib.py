"""Operators that ONNX Runtime has beside ONNX's: those of its domain `com.microsoft`.

What its passes fuse becomes these, and exporters write some of them. Their definitions stand in its
documentation (ContribOperators.md). Which releases have kernels for processors was asked of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from irlang.equations import TensorInfo
from irlang.lower.call import Call, Native
from irlang.lower.legalise import windows
from irlang.lower.onnx_builder import OnnxBuilder
from irlang.lower.onnx_contrib_further import FURTHER
from irlang.lower.onnx_contrib_fused import FUSED
from irlang.lower.onnx_contrib_quantized import QUANTIZED
from irlang.lower.onnx_file import CONTRIBUTED
from irlang.lower.onnx_layers import placed
from irlang.lower.value import Value

Onnx = Call[OnnxBuilder]
_REAL = ("f32", "f64")
_NONE = (
    "bf16",
    "u16",
    "i8",
    "bool",
)  # of which there are few kernels


def _node(call: Onnx, op: str, values: list[Value], **attributes: Any) -> Value:
    names = [value.text for value in values]
    return call.build.contributed(op, names, [call.out], **attributes)[0]


def _gelu(call: Onnx) -> Value | None:
    x = call.input("x")
    word = {"none": "Gelu", "tanh": "FastGelu"}.get(call["approximate"])
    return _node(call, word, [x]) if word and x.dtype == "f32" else None


# Of f64 1.23 has no kernel, and 1.31 has one; between them none was asked.
_WIDE_SINCE = (1, 31)


def _matmul(call: Onnx) -> Value | None:
    a, b = call.input("a"), call.input("b")
    wide = a.dtype == "f64" and call.build.runtime.contributes(_WIDE_SINCE)
    if not (a.dtype == "f32" or wide) or min(a.rank, b.rank) < 2:
        return None
    turned = {"transA": int(call["transpose_a"]), "transB": int(call["transpose_b"])}
    return _node(call, "FusedMatMul", [a, b], **turned)


def _conv(call: Onnx) -> Value | None:
    frame, x = windows(call), call.input("x")
    if x.dtype != "f32" or not 1 <= frame.rank <= 3:
        return None
    values = [x, *(call.input(name) for name in ("w", "b") if call.has(name))]
    return _node(call, "FusedConv", values, group=call["groups"], **placed(call, frame))


def _inverse(call: Onnx) -> Value | None:
    x = call.input("x")
    return _node(call, "Inverse", [x]) if x.dtype in _REAL and x.rank >= 2 else None


def _cdist(call: Onnx) -> Value | None:
    a, b = call.input("a"), call.input("b")
    if call["p"] != 2 or a.rank != 2 or b.rank != 2 or a.dtype not in _REAL:
        return None
    return _node(call, "CDist", [a, b], metric="euclidean")


def _crop_and_resize(call: Onnx) -> Value | None:
    x, boxes, batch = (call.input(name) for name in ("x", "boxes", "batch"))
    if x.rank != 4 or x.dtype != "f32":
        return None
    size = call.build.constant(call["size"], "i32")
    mode = {"linear": "bilinear"}.get(call["mode"], call["mode"])
    values = [x, boxes, call.build.cast(batch, "i32"), size]
    number = float(call["extrapolation"])
    return _node(call, "CropAndResize", values, mode=mode, extrapolation_value=number)


def _trilu(call: Onnx) -> Value | None:
    x = call.input("x")
    if x.dtype not in (*_REAL, "i64"):
        return None
    k = call.build.constant(call["k"], "i64")
    return _node(call, "Trilu", [x, k], upper=int(call["upper"]))


def _gather_nd(call: Onnx) -> Value | None:
    x, ids = call.input("x"), call.input("ids")
    if call["batch_dims"] or not x.rank or ids.dtype not in ("i32", "i64"):
        return None
    return _node(call, "GatherND", [x, ids])


def _pad(call: Onnx) -> Value | None:
    x, build = call.input("x"), call.build
    if x.dtype != "f32" or call["mode"] not in ("constant", "reflect", "edge"):
        return None
    amounts = build.integers([*call["before"], *call["after"]])
    number = build.constant(np.asarray(float(call["value"])), "f32")
    return _node(call, "Pad", [x, amounts, number], mode=call["mode"])


def _expand_dims(call: Onnx) -> Value | None:
    if len(call["axes"]) != 1:
        return None
    axis = call.build.constant(np.asarray(call["axes"][0]), "i32")
    return _node(call, "ExpandDims", [call.input("x"), axis])


def _layer_norm(call: Onnx) -> Value | None:
    """The norm of a sum, one part of which is nothing."""
    return _skipped(call, "SkipLayerNormalization", "gamma", "beta")


def _rms_norm(call: Onnx) -> Value | None:
    return _skipped(call, "SkipSimplifiedLayerNormalization", "gamma")


def _skipped(call: Onnx, op: str, scale: str, shift: str = "") -> Value | None:
    x, build = call.input("x"), call.build
    last = call.axes("axes", x.rank) == (x.rank - 1,)
    if (
        x.dtype not in _REAL
        or x.rank != 3
        or not last
        or call.get("eps_to", "variance") != "variance"
    ):
        return None
    channels = x.shape[-1:]
    ones = build.constant(np.ones(channels), x.dtype)
    given = call.input(scale) if call.has(scale) else ones
    values = [x, build.constant(np.zeros(x.shape), x.dtype), build.expand(given, channels)]
    if shift and call.has(shift):
        values.append(build.expand(call.input(shift), channels))
    return _node(call, op, values, epsilon=float(call["eps"]))


def _grid_sample(call: Onnx) -> Value | None:
    x, grid = call.input("x"), call.input("grid")
    if x.rank != 4 or x.dtype != "f32" or grid.rank != 4:
        return None
    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(call["mode"], call["mode"])
    corners = int(call["align_corners"])
    return _node(
        call, "GridSample", [x, grid], mode=mode, padding_mode=call["padding"],
        align_corners=corners,
    )  # fmt: skip


def _frames(call: Onnx) -> Value | None:
    x = call.input("x")
    options = {"dim": -1, "size": call["length"], "step": call["step"]}
    return _node(call, "UnfoldTensor", [x], **options) if x.rank else None


def _rotary_embedding(call: Onnx) -> Value | None:
    """The angles stand in a table, a row for every place; here they are those of all samples."""
    x, build = call.input("x"), call.build
    tables = [call.input(name) for name in ("cos", "sin")]
    if x.rank != 4 or x.dtype != "f32" or 2 * tables[0].shape[-1] != x.shape[3]:
        return None
    batch, _, length, size = x.shape
    if any(set(table.shape[:-2]) - {1} for table in tables):
        return None
    rows = [build.expand(build.reshape(t, t.shape[-2:]), (length, size // 2)) for t in tables]
    places = build.constant(np.tile(np.arange(length), (batch, 1)), "i64")
    turned = int(call["interleaved"])
    return _node(call, "RotaryEmbedding", [x, places, *rows], interleaved=turned)


def _attention(call: Onnx) -> Value | None:
    """Heads lie beside one another, behind the places."""
    q, k, v = (call.input(name) for name in "qkv")
    build, (batch, heads, length, _) = call.build, q.shape
    usual = {"softcap": 0, "left_window_size": -1, "right_window_size": -1, "past": 0}
    if q.dtype != "f32" or heads != k.shape[1] or call.has("mask") or call.has("kv_lengths"):
        return None
    if any(call[name] != value for name, value in usual.items()) or 0 in (*q.shape, *k.shape):
        return None
    if call["causal"] and length != k.shape[2]:
        return None

    def beside(x: Value) -> Value:
        turned = build.transpose(x, (0, 2, 1, 3))
        return build.reshape(turned, (batch, x.shape[2], heads * x.shape[3]))

    inputs = [beside(value).text for value in (q, k, v)]
    if call.has("bias"):
        shape = (batch, heads, length, k.shape[2])
        inputs += ["", "", build.expand(call.input("bias"), shape).text]
    wide = TensorInfo((batch, length, heads * v.shape[3]), "f32")
    made = build.contributed(
        "MultiHeadAttention", inputs, [wide], num_heads=heads,
        scale=float(call["scale"]), unidirectional=int(call["causal"]),
    )[0]  # fmt: skip
    split = build.reshape(made, (batch, length, heads, v.shape[3]))
    return build.transpose(split, (0, 2, 1, 3))


# By operator: the names there, and the first release that has it for processors.
_RULES: dict[str, tuple[str, Callable[[Onnx], Value | None], tuple[int, ...]]] = {
    "gelu": ("Gelu, com.microsoft.FastGelu", _gelu, ()),
    "matmul": ("FusedMatMul", _matmul, ()),
    "conv": ("FusedConv", _conv, ()),
    "inverse": ("Inverse", _inverse, ()),
    "cdist": ("CDist", _cdist, ()),
    "crop_and_resize": ("CropAndResize", _crop_and_resize, ()),
    "trilu": ("Trilu", _trilu, ()),
    "gather_nd": ("GatherND", _gather_nd, ()),
    "pad": ("Pad", _pad, ()),
    "expand_dims": ("ExpandDims", _expand_dims, ()),
    "layer_norm": ("SkipLayerNormalization", _layer_norm, ()),
    "rms_norm": ("SkipSimplifiedLayerNormalization", _rms_norm, (1, 17)),
    "grid_sample": ("GridSample", _grid_sample, ()),
    "frames": ("UnfoldTensor", _frames, (1, 20)),
    "rotary_embedding": ("RotaryEmbedding", _rotary_embedding, (1, 17)),
    "attention": ("MultiHeadAttention", _attention, (1, 17)),
}


def _there(
    rule: Callable[[Onnx], Value | None], since: tuple[int, ...]
) -> Callable[[Onnx], Value | None]:
    def only(call: Onnx) -> Value | None:
        there = call.build.runtime.contributes(since) and call.out.dtype not in _NONE
        return rule(call) if there else None

    return only


def _rows() -> Iterator[tuple[str, Native]]:
    for name, (spelt, rule, since) in _RULES.items():
        yield name, Native(f"{CONTRIBUTED}.{spelt}", _there(rule, since))
    yield from (*QUANTIZED, *FUSED, *FURTHER)


def with_contributed(table: Mapping[str, Native]) -> dict[str, Native]:
    """A table with these words behind its own."""
    found = dict(table)
    for name, word in _rows():
        own = found.get(name)
        found[name] = word if own is None else replace(own, others=(*own.others, word))
    return found
