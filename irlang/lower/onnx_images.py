"""How ONNX spells images, quantised layers and transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

from irlang.lower.call import Call, Native
from irlang.lower.legalise import windows
from irlang.lower.onnx_builder import OnnxBuilder
from irlang.lower.onnx_layers import counts_alike, placed
from irlang.lower.value import Value

Onnx = Call[OnnxBuilder]
_BYTES = ("u8", "i8")
_RENAMED = 20  # the opset that says some attributes otherwise


# ---- images


def _grid_sample(call: Onnx) -> Value | None:
    """Three spatial axes only without weights of third degree, and since opset 20."""
    x, grid, old = call.input("x"), call.input("grid"), call.build.runtime.opset < _RENAMED
    ranks = (4,) if old or call["mode"] == "cubic" else (4, 5)
    if x.rank not in ranks or grid.rank != x.rank or x.dtype != "f32" or 0 in x.shape:
        return None
    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(call["mode"]) if old else None
    options = {
        "mode": mode or call["mode"],
        "padding_mode": call["padding"],
        "align_corners": int(call["align_corners"]),
    }
    return call.build.node("GridSample", [x.text, grid.text], [call.out], **options)[0]


def _roi_align(call: Onnx) -> Value | None:
    x, rois, batch = (call.input(name) for name in ("x", "rois", "batch"))
    if x.rank != 4 or x.dtype not in ("f32", "f64") or 0 in call.out.shape:
        return None
    height, width = call["size"]
    options = {
        "mode": call["mode"],
        "output_height": height,
        "output_width": width,
        "sampling_ratio": call["sampling_ratio"],
        "spatial_scale": float(call["scale"]),
        "coordinate_transformation_mode": "half_pixel" if call["aligned"] else "output_half_pixel",
    }
    names = [x.text, rois.text, call.build.cast(batch, "i64").text]
    return call.build.node("RoiAlign", names, [call.out], **options)[0]


def _col2im(call: Onnx) -> Value | None:
    x = call.input("x")
    if x.dtype != "f32" or 0 in x.shape or not call["size"]:
        return None
    sizes = [call.build.integers(call[name]).text for name in ("size", "window")]
    options = {
        "strides": list(call["stride"]),
        "dilations": list(call["dilation"]),
        "pads": [*call["before"], *call["after"]],
    }
    return call.build.node("Col2Im", [x.text, *sizes], [call.out], **options)[0]


def _max_pool(call: Onnx) -> list[Value] | None:
    """Positions count the elements of the whole tensor."""
    x, frame = call.input("x"), windows(call)
    widest = map(max, frame.before, frame.after)
    if any(amount >= k for amount, k in zip(widest, frame.window, strict=True)):
        return None
    if not call["whole"] or not 1 <= frame.rank <= 3 or not counts_alike(call, frame, "MaxPool"):
        return None
    if x.dtype not in call.build.runtime.kernels.get("MaxPool", ()):
        return None
    options = {
        "ceil_mode": int(call["ceil_mode"]),
        "kernel_shape": list(frame.window),
        "strides": list(frame.stride),
        "dilations": list(frame.dilation),
        "pads": [*frame.before, *frame.after],
        "storage_order": int(call["order"] == "column"),
    }
    return call.build.node("MaxPool", [x.text], call.outputs, **options)


def _max_unpool(call: Onnx) -> Value | None:
    """By windows that lie beside one another up to the size that is asked for."""
    x, size = call.input("x"), call["size"]
    window = [n - count + 1 for n, count in zip(size, x.shape[2:], strict=True)]
    if not call["whole"] or not 1 <= len(size) <= 3 or x.dtype != "f32":
        return None
    if 0 in x.shape or min(window) < 1:
        return None
    call.build.runtime.carrier("MaxUnpool", x.dtype)
    places = call.build.cast(call.input("indices"), "i64")
    options = {"kernel_shape": window, "strides": [1] * len(window)}
    return call.build.node("MaxUnpool", [x.text, places.text], [call.out], **options)[0]


def _max_roi_pool(call: Onnx) -> Value | None:
    x, rois = call.input("x"), call.input("rois")
    if x.rank != 4 or x.dtype != "f32" or 0 in x.shape:
        return None
    options = {"pooled_shape": list(call["size"]), "spatial_scale": float(call["scale"])}
    return call.build.node("MaxRoiPool", [x.text, rois.text], [call.out], **options)[0]


def _affine_grid(call: Onnx) -> Value | None:
    """The size is one of images, whose number of channels does not matter. Where both corners are
    one element ONNX says nothing: releases put it at the first.
    """
    theta, size = call.input("theta"), call["size"]
    if call["align_corners"] and 1 in size:
        return None
    if len(size) not in (2, 3) or theta.dtype not in ("f32", "f64") or 0 in theta.shape:
        return None
    whole = call.build.integers([theta.shape[0], 1, *size])
    options = {"align_corners": int(call["align_corners"])}
    return call.build.node("AffineGrid", [theta.text, whole.text], [call.out], **options)[0]


def _deform_conv(call: Onnx) -> Value | None:
    """A bias before a mask."""
    x, w = call.input("x"), call.input("w")
    if x.rank != 4 or 0 in (*x.shape, *w.shape):
        return None
    build, options = call.build, {
        "kernel_shape": list(w.shape[2:]),
        "strides": list(call["stride"]),
        "dilations": list(call["dilation"]),
        "pads": [*call["before"], *call["after"]],
        "group": int(call["groups"]),
        "offset_group": int(call["offset_groups"]),
    }  # fmt: skip
    values = [x, w, call.input("offset")]
    if call.has("b") or call.has("mask"):
        none = build.constant(np.zeros(w.shape[0]), x.dtype)
        values.append(call.input("b") if call.has("b") else none)
    if call.has("mask"):
        values.append(call.input("mask"))
    return build.op("DeformConv", values, call.out.shape, **options)


# ---- small integers


def _scaled(
    call: Onnx, x: Value, real: str, small: str, also: tuple[str, ...] = ()
) -> dict[str, Any] | None:
    """The attributes of scales for all elements, for those of an axis, or for blocks; None where
    the opset has no such scales or types. real, small: what is quantised, and the integers. also:
    types of these beside the usual, for which there are no blocks.
    """
    scale, opset = call.input("scale"), call.build.runtime.opset
    wide = ("u16", "i16") if opset >= 21 else ()
    if small not in (*_BYTES, *wide, *also) or real not in ("f32", "f16" if opset >= 19 else "f32"):
        return None
    if call["block_size"] and scale.rank == x.rank and x.rank:
        options = {"axis": call.axis_said("axis", x.rank), "block_size": int(call["block_size"])}
        return options if opset >= 21 and 0 not in x.shape and small not in also else None
    if scale.rank == 0:
        return {}
    whole = scale.rank == 1 and scale.shape[0] != 1
    return {"axis": call.axis_said("axis", x.rank)} if whole else None


def _quantize(call: Onnx) -> Value | None:
    x, scale, to = call.input("x"), call.input("scale"), call.out.dtype
    options = _scaled(call, x, x.dtype, to)
    if options is None:
        return None
    given = [x.text, scale.text]
    if call.has("zero_point"):
        given.append(call.build.cast(call.input("zero_point"), to).text)
    else:  # it is written, as what quantises models does it: passes look for it
        given.append(call.build.constant(np.zeros(scale.shape), to).text)
    return call.build.node("QuantizeLinear", given, [call.out], **options)[0]


def _dequantize(call: Onnx) -> Value | None:
    """Of 32 bits, as biases are, without a zero point."""
    x, scale = call.input("x"), call.input("scale")
    bias = () if call.has("zero_point") else ("i32",)
    options = _scaled(call, x, scale.dtype, x.dtype, bias)
    if options is None:
        return None
    given = [x.text, scale.text]
    if call.has("zero_point"):
        given.append(call.input("zero_point").text)
    elif x.dtype in _BYTES and call.build.computes(x):  # the other half of a pair
        given.append(call.build.constant(np.zeros(scale.shape), x.dtype).text)
    return call.build.node("DequantizeLinear", given, [call.out], **options)[0]


def _dynamic_quantize(call: Onnx) -> list[Value] | None:
    x = call.input("x")
    if x.dtype != "f32" or call["to"] != "u8":
        return None
    return call.build.node("DynamicQuantizeLinear", [x.text], call.outputs)


def _matmul_integer(call: Onnx) -> Value | None:
    """A zero point of `a` for all rows only."""
    a, b = call.input("a"), call.input("b")
    if a.dtype not in _BYTES or b.dtype not in _BYTES or 0 in (*a.shape, *b.shape):
        return None
    if call.has("a_zero") and (call.input("a_zero").rank, call.input("a_zero").dtype) != (
        0,
        a.dtype,
    ):
        return None
    if call.has("b_zero") and call.input("b_zero").dtype != b.dtype:
        return None
    return call.build.node("MatMulInteger", _from_zeros(call, "a", "b"), [call.out])[0]


def _from_zeros(call: Onnx, a: str, b: str) -> list[str]:
    """Two integer operands, and their zero points as far as they are given."""
    given = [call.input(a).text, call.input(b).text]
    if call.has(f"{a}_zero") or call.has(f"{b}_zero"):
        zero = call.build.constant(np.zeros(()), call.input(a).dtype)
        given.append((call.input(f"{a}_zero") if call.has(f"{a}_zero") else zero).text)
    if call.has(f"{b}_zero"):
        given.append(call.input(f"{b}_zero").text)
    return given


def _alike(call: Onnx, *pairs: tuple[str, str]) -> bool:
    """Whether a zero point, where it is given, has the type of what it is of."""
    return all(not call.has(z) or call.input(z).dtype == call.input(x).dtype for x, z in pairs)


def _conv_integer(call: Onnx) -> Value | None:
    """One zero point of `w`: ONNX Runtime says that it does not support several yet."""
    x, w, frame = call.input("x"), call.input("w"), windows(call)
    if x.dtype not in _BYTES or w.dtype not in _BYTES or not 1 <= frame.rank <= 3:
        return None
    if 0 in (*x.shape, *w.shape) or not _alike(call, ("x", "x_zero"), ("w", "w_zero")):
        return None
    several = call.has("w_zero") and np.prod(call.input("w_zero").shape) != 1
    if several and not call.dares():
        return None
    options = {**placed(call, frame), "group": int(call["groups"])}
    given = _from_zeros(call, "x", "w")
    return call.build.node("ConvInteger", given, [call.out], **options)[0]


def _quantized(call: Onnx, x: str, w: str) -> bool:
    """Whether the types are those of a kernel: all of i8, or u8 with factors of either."""
    types = call.input(x).dtype, call.input(w).dtype, call.out.dtype
    scales = [call.input(f"{name}_scale").dtype for name in (x, w, "y")]
    zeros = _alike(call, (x, f"{x}_zero"), (w, f"{w}_zero"))
    zeros &= call.input("y_zero").dtype == call.out.dtype
    known = types in (("i8", "i8", "i8"), ("u8", "u8", "u8"), ("u8", "i8", "u8"))
    return zeros and known and scales == ["f32"] * 3


def _qlinear_conv(call: Onnx) -> Value | None:
    frame = windows(call)
    if not _quantized(call, "x", "w") or not 1 <= frame.rank <= 3:
        return None
    if 0 in (*call.input("x").shape, *call.input("w").shape):
        return None
    parts = ("", "_scale", "_zero")
    given = [call.input(f"{name}{part}").text for name in "xw" for part in parts]
    given += [call.input(name).text for name in ("y_scale", "y_zero", "bias") if call.has(name)]
    options = {**placed(call, frame), "group": int(call["groups"])}
    return call.build.node("QLinearConv", given, [call.out], **options)[0]


def _qlinear_matmul(call: Onnx) -> Value | None:
    """A scale for all of `a`."""
    a, b = call.input("a"), call.input("b")
    lone = call.input("a_scale").shape in ((), (1,))
    if not _quantized(call, "a", "b") or not lone or 0 in (*a.shape, *b.shape):
        return None
    parts = ("", "_scale", "_zero")
    given = [call.input(f"{name}{part}").text for name in "ab" for part in parts]
    given += [call.input(name).text for name in ("y_scale", "y_zero")]
    return call.build.node("QLinearMatMul", given, [call.out])[0]


# ---- signals


def _dft(call: Onnx) -> Value | None:
    """ONNX Runtime has no one-sided inverse, and no half of a complex spectrum."""
    x = call.input("x")
    if x.dtype not in ("f32", "f64") or 0 in x.shape:
        return None
    if call["onesided"] and (call["inverse"] or x.shape[-1] == 2):
        return None
    length = call.build.constant(call["N"], "i64")
    options = {"inverse": int(call["inverse"]), "onesided": int(call["onesided"])}
    names, at = [x.text, length.text], call.axis_said("axis", x.rank)
    if call.build.runtime.opset < _RENAMED:  # the axis was an attribute
        options["axis"] = at
    else:
        names.append(call.build.constant(np.asarray(at), "i64").text)
    return call.build.node("DFT", names, [call.out], **options)[0]


IMAGES: dict[str, Native] = {
    "grid_sample": Native("GridSample", _grid_sample),
    "roi_align": Native("RoiAlign", _roi_align),
    "col2im": Native("Col2Im", _col2im),
    "max_pool_with_argmax": Native("MaxPool", _max_pool),
    "max_unpool": Native("MaxUnpool", _max_unpool),
    "max_roi_pool": Native("MaxRoiPool", _max_roi_pool),
    "affine_grid": Native("AffineGrid", _affine_grid),
    "deform_conv": Native("DeformConv", _deform_conv),
    "conv_integer": Native("ConvInteger", _conv_integer),
    "qlinear_conv": Native("QLinearConv", _qlinear_conv),
    "qlinear_matmul": Native("QLinearMatMul", _qlinear_matmul),
    "quantize_linear": Native("QuantizeLinear", _quantize),
    "dequantize_linear": Native("DequantizeLinear", _dequantize),
    "dynamic_quantize_linear": Native("DynamicQuantizeLinear", _dynamic_quantize),
    "matmul_integer": Native("MatMulInteger", _matmul_integer),
    "dft": Native("DFT", _dft),
}
