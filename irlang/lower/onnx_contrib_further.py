"""ONNX Runtime's further words of its domain `com.microsoft`: for what ONNX has operators of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irlang.lower.call import Call, Native
from irlang.lower.legalise import windows
from irlang.lower.onnx_builder import OnnxBuilder
from irlang.lower.onnx_contrib_quantized import word
from irlang.lower.onnx_layers import placed
from irlang.lower.value import Value

Onnx = Call[OnnxBuilder]
_BYTES = ("u8", "i8")
_MOST_SPACE = 3  # axes of windows


def _unique(call: Onnx) -> Sequence[Value] | None:
    """As they come first, of a vector."""
    x, build = call.input("x"), call.build
    if x.dtype != "f32" or call["order"] != "first" or x.rank != 1:
        return None
    y, counts, places = call.outputs
    found, which, often = build.contributed("Unique", [x.text], [y, places, counts])
    rooms = []
    for value, info in ((found, y), (often, counts)):
        nothing = build.constant(np.zeros(info.shape), info.dtype)
        whole = build.concat([value, nothing], 0)
        rooms.append(build.slice(whole, 0, 0, info.shape[0], 1))
    return rooms[0], rooms[1], which


def _range(call: Onnx) -> Value | None:
    """Start, limit and step in the type of the result, which is to hold them."""
    to, bounds = call.out.dtype, [float(call[name]) for name in ("start", "stop", "step")]
    if to not in ("f32", "f64"):
        return None
    if to == "f32" and any(float(np.float32(bound)) != bound for bound in bounds):
        return None
    given = [call.build.constant(np.asarray(bound), to).text for bound in bounds]
    return call.build.contributed("Range", given, [call.out])[0]


def _lone(call: Onnx, small: str) -> bool:
    """Whether bytes have one scale for all, of single precision, and a zero point as it is."""
    scale = call.input("scale")
    zero = call.input("zero_point") if call.has("zero_point") else scale
    plain = scale.rank == 0 and zero.rank == 0 and not call["block_size"]
    return plain and scale.dtype == "f32" and small in _BYTES


def _quantized(call: Onnx) -> Value | None:
    to = call.out.dtype
    if call.input("x").dtype != "f32" or not _lone(call, to):
        return None
    nothing = call.build.constant(np.zeros(()), to)
    zero = call.build.cast(call.input("zero_point"), to) if call.has("zero_point") else nothing
    given = [call.input("x").text, call.input("scale").text, zero.text]
    return call.build.contributed("QuantizeLinear", given, [call.out])[0]


def _meant(call: Onnx) -> Value | None:
    x = call.input("x")
    if call.out.dtype != "f32" or not _lone(call, x.dtype):
        return None
    nothing = call.build.constant(np.zeros(()), x.dtype)
    zero = call.input("zero_point") if call.has("zero_point") else nothing
    given = [x.text, call.input("scale").text, zero.text]
    return call.build.contributed("DequantizeLinear", given, [call.out])[0]


def _gemm(call: Onnx) -> Value | None:
    """With an activation behind it, which leaves everything as it is."""
    if call.out.dtype != "f32":
        return None
    given = [call.input(name).text for name in ("a", "b", "c") if call.has(name)]
    options = {
        "transA": int(call["transpose_a"]), "transB": int(call["transpose_b"]),
        "alpha": float(call["alpha"]), "beta": float(call["beta"]),
        "activation": "LeakyRelu", "activation_alpha": 1.0,
    }  # fmt: skip
    return call.build.contributed("FusedGemm", given, [call.out], **options)[0]


def _masked(call: Onnx) -> Value | None:
    """With a mask that hides nothing."""
    x, frame, build = call.input("x"), windows(call), call.build
    if x.dtype != "f32" or not 1 <= frame.rank <= _MOST_SPACE or call["ceil_mode"]:
        return None
    if any(step != 1 for step in frame.dilation):
        return None
    mask = build.constant(np.ones(x.shape), "i32")
    options = placed(call, frame)
    options.pop("dilations", None)
    return build.contributed("MaxpoolWithMask", [x.text, mask.text], [call.out], **options)[0]


def _batches(call: Onnx) -> Value | None:
    """Of one batch axis, which comes second in the first operand, or in the other."""
    a, b = call.input("a"), call.input("b")
    if a.dtype != "f32" or not a.rank == b.rank == 3 or a.shape[0] != b.shape[0]:
        return None
    turned = call.build.transpose(a, (1, 0, 2))
    if call["transpose_a"]:
        turned = call.build.transpose(a, (2, 0, 1))
    options = {"transBatchA": 1, "transB": int(call["transpose_b"])}
    return call.build.contributed("FusedMatMul", [turned.text, b.text], [call.out], **options)[0]


FURTHER: tuple[tuple[str, Native], ...] = (
    ("unique", word("Unique", _unique)),
    ("arange", word("Range", _range)),
    ("quantize_linear", word("QuantizeLinear", _quantized)),
    ("dequantize_linear", word("DequantizeLinear", _meant)),
    ("gemm", word("FusedGemm", _gemm)),
    ("max_pool", word("MaxpoolWithMask", _masked)),
    ("matmul", word("FusedMatMul", _batches)),
)
