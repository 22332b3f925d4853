"""How ONNX spells transforms of signals, matrices, and tensors made of attributes alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from irlang.dtypes import integer_range
from irlang.lower.call import Call, Native
from irlang.lower.legalise import is_whole
from irlang.lower.onnx_builder import OnnxBuilder
from irlang.lower.onnx_file import code_of
from irlang.lower.value import Value

Onnx = Call[OnnxBuilder]
_REALS = ("f32", "f64")
# The coefficients by which ONNX names a window, those of its specification.
_WINDOWS = {
    (0.5, 0.5): "HannWindow",
    (25 / 46, 21 / 46): "HammingWindow",
    (0.42, 0.5, 0.08): "BlackmanWindow",
}
# What ONNX Runtime makes tensors of: an operator without inputs has no carrier.
_MADE = {
    "EyeLike": ("f32", "f64", "i32", "i64", "u64"),
    "Range": ("f32", "f64", "i16", "i32", "i64"),
}


def _scalar(call: Onnx, number: float, dtype: str) -> Value:
    return call.build.constant(np.asarray(number), dtype)


def _single(*numbers: float) -> bool:
    """Whether numbers are those of f32, which an operator takes them in."""
    return all(float(np.float32(number)) == number for number in numbers)


# ---- made of attributes


def _eye(call: Onnx) -> Value | None:
    """Of the shape of a tensor, whose elements do not matter."""
    if call.out.dtype not in _MADE["EyeLike"]:
        return None
    like = call.build.constant(np.zeros(call.out.shape), call.out.dtype)
    options = {"k": int(call["k"]), "dtype": code_of(call.out.dtype)}
    return call.build.node("EyeLike", [like.text], [call.out], **options)[0]


def _range(call: Onnx) -> Value | None:
    """Start, limit and step in the type of the result, which is to hold them."""
    to = call.out.dtype
    bounds = [float(call[name]) for name in ("start", "stop", "step")]
    if to not in _MADE["Range"]:
        return None
    if to.startswith("i"):
        least, most = integer_range(to)
        held = all(is_whole(one) and least <= one <= most for one in bounds)
    else:
        held = to == "f64" or _single(*bounds)
    if not held:
        return None
    given = [_scalar(call, number, to).text for number in bounds]
    return call.build.node("Range", given, [call.out])[0]


def _window(call: Onnx) -> Value | None:
    op = _WINDOWS.get(tuple(float(term) for term in call["terms"]))
    if op is None or call.out.dtype not in _REALS:
        return None
    options = {"periodic": int(call["periodic"]), "output_datatype": code_of(call.out.dtype)}
    size = _scalar(call, call["size"], "i64")
    return call.build.node(op, [size.text], [call.out], **options)[0]


def _mel(call: Onnx) -> Value | None:
    edges = [float(call[name]) for name in ("low", "high")]
    if call.out.dtype not in _REALS or not _single(*edges):
        return None
    given = [_scalar(call, call[n], "i64") for n in ("bins", "dft_length", "sample_rate")]
    given += [_scalar(call, edge, "f32") for edge in edges]
    options = {"output_datatype": code_of(call.out.dtype)}
    names = [value.text for value in given]
    return call.build.node("MelWeightMatrix", names, [call.out], **options)[0]


# ---- transforms


def _stft(call: Onnx) -> Value | None:
    """Half of a spectrum is that of a real signal; frames are as long as the window."""
    x = call.input("x")
    if x.dtype not in _REALS or 0 in x.shape or call["fft_length"] != call["length"]:
        return None
    if call["onesided"] and x.shape[-1] == 2:
        return None
    step, length = (_scalar(call, call[name], "i64").text for name in ("step", "length"))
    window = call.input("window").text if call.has("window") else ""
    options = {"onesided": int(call["onesided"])}
    return call.build.node("STFT", [x.text, step, window, length], [call.out], **options)[0]


def _determinant(call: Onnx) -> Value | None:
    x = call.input("x")
    if x.dtype != "f32" or 0 in x.shape[-2:]:
        return None
    return call.build.op("Det", [x], call.out.shape)


def _normalize(call: Onnx) -> Value | None:
    """Zeros stay zeros: that is a bound below all numbers of the type."""
    x = call.input("x")
    axes = call.axes("axes", x.rank) if x.rank else ()
    least = {"f32": 2.0**-149, "f64": math.ulp(0.0)}.get(x.dtype, 0.0)
    if len(axes) != 1 or call["p"] not in (1, 2) or not 0 < call["eps"] <= least:
        return None
    options: dict[str, Any] = {"axis": axes[0], "p": int(call["p"])}
    return call.build.op("LpNormalization", [x], x.shape, **options)


# ---- the same elements


def _identity(call: Onnx) -> Value:
    return call.build.op("Identity", [call.input("x")], call.out.shape)


def _flatten(call: Onnx) -> Value:
    """Two axes, at a place between the others; else it is another shape."""
    x, first, last = call.input("x"), int(call["first"]), int(call["last"])
    if (first, last) == (1, x.rank - 1):
        return call.build.op("Flatten", [x], call.out.shape, axis=first)
    if (first, last) == (0, x.rank - 2):
        return call.build.op("Flatten", [x], call.out.shape, axis=x.rank - 1)
    return call.build.reshape(x, call.out.shape)


def _center_crop_pad(call: Onnx) -> Value | None:
    """A function of slices and paddings."""
    x = call.input("x")
    axes: Sequence[int] = call.axes_said("axes", x.rank)
    if not axes or x.dtype not in call.build.runtime.kernels.get("Pad", ()):
        return None
    size = call.build.integers(call["size"])
    options = {"axes": list(axes)}
    return call.build.node("CenterCropPad", [x.text, size.text], [call.out], **options)[0]


SIGNALS: dict[str, Native] = {
    "eye": Native("EyeLike", _eye),
    "arange": Native("Range", _range),
    "cosine_window": Native("HannWindow, HammingWindow, BlackmanWindow", _window),
    "mel_weight_matrix": Native("MelWeightMatrix", _mel),
    "stft": Native("STFT", _stft),
    "determinant": Native("Det", _determinant),
    "normalize": Native("LpNormalization", _normalize),
    "identity": Native("Identity", _identity),
    "flatten": Native("Flatten, Reshape", _flatten),
    "center_crop_pad": Native("CenterCropPad", _center_crop_pad),
}
