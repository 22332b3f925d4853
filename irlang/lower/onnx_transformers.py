"""How ONNX spells what transformers are made of, from opset 23 and 24 on."""

from __future__ import annotations

from typing import Any

import numpy as np

from irlang.lower.call import Call, Native
from irlang.lower.legalise import trailing
from irlang.lower.onnx_builder import OnnxBuilder
from irlang.lower.value import Value

Onnx = Call[OnnxBuilder]
_PLAIN = {"left_window_size": -1, "right_window_size": -1}


def _attention(call: Onnx) -> Value | None:
    """A mask of numbers is added, one of truth values admits; a row of which nothing is admitted is
    zero. Scores are capped before they are masked, which releases before 1.24 have the other way
    round.
    """
    q, k, v = (call.input(name) for name in "qkv")
    if call.has("kv_lengths") or any(call[name] != usual for name, usual in _PLAIN.items()):
        return None
    if q.dtype == "f64" or (call.has("bias") and call.has("mask")):
        return None
    if call["causal"] and (call["past"] != 0 or q.shape[2] != k.shape[2]):
        return None
    values = [q, k, v]
    others: list[Value] = []
    for name, place in (("bias", values), ("mask", others)):
        if call.has(name):
            value = call.input(name)
            full = (*q.shape[:3], k.shape[2])
            place.append(call.build.expand(value, full))
    options: dict[str, Any] = {"is_causal": int(call["causal"])}
    options |= {name: float(call[name]) for name in ("scale", "softcap") if name in call.node.attrs}
    return call.build.op("Attention", values, call.out.shape, *others, **options)


def _rms_norm(call: Onnx) -> Value | None:
    x = call.input("x")
    axes = call.axes("axes", x.rank)
    if not axes or not trailing(axes, x.rank) or x.dtype == "f64":
        return None  # f64 is normalised in f32
    scale = call.build.constant(np.ones(x.shape[axes[0] :]), x.dtype)
    scale = call.input("gamma") if call.has("gamma") else scale
    options = {"axis": call.axis_said("axes", x.rank), "epsilon": float(call["eps"])}
    return call.build.op("RMSNormalization", [x, scale], x.shape, **options)


def _rotary_embedding(call: Onnx) -> Value | None:
    """The angles are the same for all heads."""
    x, tables = call.input("x"), [call.input(name) for name in ("cos", "sin")]
    if x.rank != 4 or x.dtype == "f64":
        return None
    batch, _, length, size = x.shape
    pairs = tables[0].shape[-1]
    if size and not pairs:  # 0 elements that take part are all of them there
        return None
    given = []
    for value in tables:
        shape = (1,) * (4 - value.rank) + value.shape
        if shape[1] != 1:
            return None
        value = call.build.reshape(value, (shape[0], shape[2], pairs))
        given.append(call.build.expand(value, (batch, length, pairs)))
    options = {
        "interleaved": int(call["interleaved"]),
        "rotary_embedding_dim": 2 * pairs if 2 * pairs < size else 0,
        "num_heads": x.shape[1],
    }
    return call.build.op("RotaryEmbedding", [x, *given], x.shape, **options)


def _tensor_scatter(call: Onnx) -> Value:
    x, update = call.input("x"), call.input("update")
    start = [call.build.cast(call.input("start"), "i64")] if call.has("start") else []
    options = {"axis": int(call["axis"]), "mode": call["mode"]}
    return call.build.op("TensorScatter", [x, update], x.shape, *start, **options)


TRANSFORMERS: dict[str, Native] = {
    "attention": Native("Attention", _attention),
    "rms_norm": Native("RMSNormalization", _rms_norm),
    "rotary_embedding": Native("RotaryEmbedding", _rotary_embedding),
    "tensor_scatter": Native("TensorScatter", _tensor_scatter),
}
