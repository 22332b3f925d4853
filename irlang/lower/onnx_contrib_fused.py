"""ONNX Runtime's own operators that are several of ONNX's as one, and others that ONNX has words
for: those of its domain `com.microsoft` that language models and quantised ones are made of.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irlang.equations import TensorInfo
from irlang.lower.call import Call, Native
from irlang.lower.legalise import windows
from irlang.lower.onnx_builder import OnnxBuilder
from irlang.lower.onnx_contrib_quantized import Rule, word
from irlang.lower.onnx_layers import placed
from irlang.lower.value import Value

Onnx = Call[OnnxBuilder]
_BYTES = ("u8", "i8")
_MOST_SPACE = 3  # axes of windows


def _given(call: Onnx, order: Sequence[str]) -> list[str]:
    """The tensors of inputs in an order; nothing for those that were left out, but at the end."""
    found = [call.input(name).text if call.has(name) else "" for name in order]
    while not found[-1]:
        found.pop()
    return found


def _plain(op: str, *order: str, **attributes: str) -> Native:
    """One of inputs in an order, all of whose results are told; attributes as floats."""

    def rule(call: Onnx) -> list[Value] | None:
        if call.out.dtype != "f32":
            return None
        options = {key: float(call[name]) for key, name in attributes.items()}
        return call.build.contributed(op, _given(call, order), call.outputs, **options)

    return word(op, rule)


# ---- norms and embeddings


def _skipped(op: str, *order: str) -> Rule:
    """Of several results the last is the sum; those between are of training. The second tensor is
    as large as the first in releases before 1.17.
    """

    def rule(call: Onnx) -> list[Value] | None:
        lone = call["Z"] != call["B"] and not call.build.runtime.contributes((1, 17))
        if call.out.dtype != "f32" or lone:
            return None
        norm, total = call.outputs
        row = TensorInfo((*norm.shape[:2], 1), "f32")
        types = [norm, row, row, total] if call.wants("total") else [norm]
        options = {"epsilon": float(call["eps"])}
        found = call.build.contributed(op, _given(call, order), types, **options)
        return [found[0], found[-1]]

    return rule


def _embed(call: Onnx) -> Value | None:
    """The hidden size is to be known before the file is run, and 0 is one that is not."""
    if call.out.dtype != "f32" or not call.out.shape[2] or call.build.loose:
        return None
    given = [call.build.cast(call.input(name), "i32").text for name in ("ids", "segments")]
    given += _given(call, ("words", "places", "kinds", "gamma", "beta"))
    types = [call.out, TensorInfo(call.out.shape[:1], "i32")]
    options = {"epsilon": float(call["eps"])}
    return call.build.contributed("EmbedLayerNormalization", given, types, **options)[0]


# ---- attention


def _packed(call: Onnx) -> Value | None:
    if call.out.dtype != "f32" or 0 in (*call.input("x").shape, *call.out.shape):
        return None
    build, width = call.build, call.input("w").shape[1]
    zeros = build.constant(np.zeros(width), "f32")
    bias = call.input("bias") if call.has("bias") else zeros
    given = [call.input("x").text, call.input("w").text, bias.text]
    if call.has("mask"):
        given.append(build.cast(call.input("mask"), "i32").text)
    options = {
        "num_heads": call["heads"], "unidirectional": int(call["causal"]),
        "mask_filter_value": float(call["filter"]),
    }  # fmt: skip
    return build.contributed("Attention", given, [call.out], **options)[0]


def _quantized(call: Onnx) -> Value | None:
    """Of the mask, which stands between, nothing is said. `w_zero` is as long as `w_scale`."""
    if call.out.dtype != "f32" or 0 in (*call.input("x").shape, *call.out.shape):
        return None
    if call.has("w_zero") and call.input("w_zero").shape != call.input("w_scale").shape:
        return None
    given = [call.input(name).text for name in ("x", "w", "bias", "x_scale", "w_scale")]
    given += ["", call.text("x_zero", ""), call.text("w_zero", "")]
    while not given[-1]:
        given.pop()
    options = {"num_heads": call["heads"], "unidirectional": int(call["causal"])}
    return call.build.contributed("QAttention", given, [call.out], **options)[0]


def _grouped(call: Onnx) -> Value | None:
    """A position looks at those up to its own; all samples are as long."""
    q, k, v = (call.input(name) for name in "qkv")
    build, (batch, heads, length, size) = call.build, q.shape
    if q.dtype != "f32" or not call["causal"] or length != k.shape[2] or v.shape != k.shape:
        return None
    if any(map(call.has, ("mask", "bias", "kv_lengths"))) or 0 in (*q.shape, *k.shape):
        return None
    usual = {"left_window_size": -1, "right_window_size": -1, "past": 0, "softcap": 0}
    if any(call[name] != value for name, value in usual.items()) or size % 8:
        return None  # heads are of multiples of 8 elements

    def beside(x: Value) -> Value:
        turned = build.transpose(x, (0, 2, 1, 3))
        return build.reshape(turned, (batch, length, x.shape[1] * size))

    lengths = build.constant(np.full(batch, length - 1), "i32")
    total = build.constant(np.asarray(length), "i32")
    inputs = [beside(x).text for x in (q, k, v)]
    kept = TensorInfo(k.shape, "f32")
    made = build.contributed(
        "GroupQueryAttention", [*inputs, "", "", lengths.text, total.text],
        [TensorInfo((batch, length, heads * size), "f32"), kept, kept],
        num_heads=heads, kv_num_heads=k.shape[1], scale=float(call["scale"]),
    )[0]  # fmt: skip
    split = build.reshape(made, (batch, length, heads, size))
    return build.transpose(split, (0, 2, 1, 3))


def _ngrams(call: Onnx) -> Value | None:
    if call.out.dtype != "f32":
        return None
    given = _given(call, ("ids", "scores"))
    return call.build.contributed("NGramRepeatBlock", given, [call.out], ngram_size=call["size"])[0]


# ---- products


def _quick_gelu(call: Onnx) -> Value | None:
    x = call.input("x")
    if x.dtype != "f32":
        return None
    return call.build.contributed("QuickGelu", [x.text], [call.out], alpha=float(call["alpha"]))[0]


def _transposed(call: Onnx) -> Value | None:
    """The name that it had before other products were fused."""
    a, b = call.input("a"), call.input("b")
    if a.dtype != "f32" or min(a.rank, b.rank) < 2:
        return None
    turned = {"transA": int(call["transpose_a"]), "transB": int(call["transpose_b"])}
    return call.build.contributed("TransposeMatMul", [a.text, b.text], [call.out], **turned)[0]


def _wide_integers(call: Onnx) -> Value | None:
    a, b = call.input("a"), call.input("b")
    if {a.dtype, b.dtype} != {"i16"} or call.has("a_zero") or call.has("b_zero"):
        return None
    return call.build.contributed("MatMulInteger16", [a.text, b.text], [call.out])[0]


def _factors(call: Onnx, a: str = "") -> bool:
    """Whether the types are those of kernels: u8 by either, i8 by i8; zero points as what they are
    of.

    a: the type of the first factor, where it is not an input of the call's.
    """
    types = a or call.input("a").dtype, call.input("b").dtype
    zeros = [("a", "a_zero")] * (not a) + [("b", "b_zero")]
    alike = all(not call.has(z) or call.input(z).dtype == call.input(x).dtype for x, z in zeros)
    return alike and types in (("u8", "u8"), ("u8", "i8"), ("i8", "i8"))


def _to_float(call: Onnx) -> Value | None:
    """`b_zero` is as long as `b_scale`."""
    if call.out.dtype != "f32" or not _factors(call) or 0 in call.input("a").shape:
        return None
    if call.has("b_zero") and call.input("b_zero").shape != call.input("b_scale").shape:
        return None
    order = ("a", "b", "a_scale", "b_scale", "a_zero", "b_zero", "bias")
    given = _given(call, order)
    return call.build.contributed("MatMulIntegerToFloat", given, [call.out])[0]


def _dynamic(call: Onnx) -> Value | None:
    if call.out.dtype != "f32" or not _factors(call, "u8") or 0 in call.input("a").shape:
        return None
    if call.has("b_zero") and call.input("b_zero").shape != call.input("b_scale").shape:
        return None
    given = _given(call, ("a", "b", "b_scale", "b_zero", "bias"))
    return call.build.contributed("DynamicQuantizeMatMul", given, [call.out])[0]


def _quantized_gemm(call: Onnx) -> Value | None:
    kinds = [call.input(name).dtype for name in ("a_scale", "b_scale", "y_scale")]
    same = call.input("a").dtype == call.out.dtype == call.input("y_zero").dtype
    if set(kinds) != {"f32"} or not same or not _factors(call) or 0 in call.input("a").shape:
        return None
    order = (
        "a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "c", "y_scale", "y_zero",
    )  # fmt: skip
    options = {"transA": int(call["transpose_a"]), "transB": int(call["transpose_b"])}
    given, alpha = _given(call, order), float(call["alpha"])
    return call.build.contributed("QGemm", given, [call.out], alpha=alpha, **options)[0]


_MATRICES = (1, 23)  # the release whose kernel takes scales in rows and columns
_BYTES_SINCE = (1, 23)  # the release that has a kernel of 8 bits


def _of_bits(call: Onnx) -> Value | None:
    """Scales and zero points were told in a row at first, and 4 bits alone."""
    build, x, w = call.build, call.input("x"), call.input("w")
    whole = call["bits"] == 8 and build.runtime.contributes(_BYTES_SINCE)
    known = call["bits"] == 4 or whole
    if call.out.dtype != "f32" or not known or 0 in (*x.shape, *w.shape):
        return None
    if call.has("bias") and not build.runtime.contributes((1, 20)):
        return None
    if call.has("bias") and build.loose and not call.dares():
        return None  # inference of 1.31 refuses one whose size is not known
    scales = call.input("scales")
    zeros = call.input("zeros") if call.has("zeros") else None
    if {w.dtype, zeros.dtype if zeros else "u8"} != {"u8"}:
        return None
    if not build.runtime.contributes(_MATRICES):
        scales = build.reshape(scales, (int(np.prod(scales.shape)),))
        zeros = zeros and build.reshape(zeros, (int(np.prod(zeros.shape)),))
    given = [x.text, w.text, scales.text, zeros.text if zeros else "", "", call.text("bias", "")]
    while not given[-1]:
        given.pop()
    options = {"K": x.shape[-1], "N": w.shape[0], "bits": call["bits"]}
    options["block_size"] = call["block_size"]
    return build.contributed("MatMulNBits", given, [call.out], **options)[0]


# ---- windows


def _nhwc_max_pool(call: Onnx) -> Value | None:
    build, x, frame = call.build, call.input("x"), windows(call)
    if x.dtype not in _BYTES or not 1 <= frame.rank <= _MOST_SPACE:
        return None
    options = placed(call, frame)
    if "auto_pad" not in options:
        options["ceil_mode"] = int(call["ceil_mode"])
    inner = build.transpose(x, (0, *range(2, x.rank), 1))
    shape = call.out.shape
    info = TensorInfo((shape[0], *shape[2:], shape[1]), x.dtype)
    found = build.contributed("NhwcMaxPool", [inner.text], [info], **options)[0]
    return build.transpose(found, (0, x.rank - 1, *range(1, x.rank - 1)))


def _conv_transpose(call: Onnx) -> Value | None:
    """Paddings are a tensor."""
    lo, out, whole = call["lo"], call["O"], call["full"]
    if call.out.dtype != "f32" or not 1 <= len(call["S"]) <= _MOST_SPACE or call["pad"] == "same":
        return None
    extra = list(call["output_padding"])
    steps = zip(extra, call["stride"], call["dilation"], strict=True)
    if any(e >= max(stride, dilation) for e, stride, dilation in steps if e):
        return None
    after = [w - low - o for w, low, o in zip(whole, lo, out, strict=True)]
    pads = call.build.integers([*lo, *after])
    order = [call.input("x").text, call.input("w").text, pads.text]
    order += [call.input("b").text] if call.has("b") else []
    options = {
        "kernel_shape": list(call["K"]), "strides": list(call["stride"]),
        "dilations": list(call["dilation"]), "group": call["groups"], "output_padding": extra,
    }  # fmt: skip
    return call.build.contributed("ConvTransposeWithDynamicPads", order, [call.out], **options)[0]


FUSED: tuple[tuple[str, Native], ...] = (
    ("bias_gelu", _plain("BiasGelu", "x", "b")),
    (
        "skip_layer_norm",
        word(
            "SkipLayerNormalization",
            _skipped("SkipLayerNormalization", "x", "skip", "gamma", "beta", "bias"),
        ),
    ),
    (
        "skip_rms_norm",
        word(
            "SkipSimplifiedLayerNormalization",
            _skipped("SkipSimplifiedLayerNormalization", "x", "skip", "gamma", "bias"),
            (1, 17),
        ),
    ),
    ("embed_layer_norm", word("EmbedLayerNormalization", _embed)),
    ("packed_attention", word("Attention", _packed)),
    ("quantized_attention", word("QAttention", _quantized)),
    ("attention", word("GroupQueryAttention", _grouped, (1, 20))),
    ("ngram_repeat_block", word("NGramRepeatBlock", _ngrams)),
    ("silu", word("QuickGelu", _quick_gelu)),
    ("matmul", word("TransposeMatMul", _transposed)),
    ("matmul_integer", word("MatMulInteger16", _wide_integers)),
    ("matmul_integer_to_float", word("MatMulIntegerToFloat", _to_float)),
    ("dynamic_quantize_matmul", word("DynamicQuantizeMatMul", _dynamic)),
    ("qlinear_gemm", word("QGemm", _quantized_gemm)),
    ("matmul_nbits", word("MatMulNBits", _of_bits, (1, 17))),
    ("max_pool", word("NhwcMaxPool", _nhwc_max_pool)),
    ("conv_transpose", word("ConvTransposeWithDynamicPads", _conv_transpose)),
)
