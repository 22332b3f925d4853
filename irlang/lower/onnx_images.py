"""How ONNX spells images, quantised layers and transforms."""

from __future__ import annotations

import numpy as np

from irlang.lower.call import Call, Native
from irlang.lower.legalise import windows
from irlang.lower.onnx_builder import OnnxBuilder
from irlang.lower.value import Value

Onnx = Call[OnnxBuilder]
_BYTES = ("u8", "i8")


# ---- images


def _grid_sample(call: Onnx) -> Value | None:
    """Three spatial axes only without weights of third degree."""
    x, grid = call.input("x"), call.input("grid")
    ranks = (4,) if call["mode"] == "cubic" else (4, 5)
    if x.rank not in ranks or grid.rank != x.rank or x.dtype != "f32" or 0 in x.shape:
        return None
    options = {
        "mode": call["mode"],
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
    if not call["whole"] or call["ceil_mode"] or not 1 <= frame.rank <= 3 or x.dtype != "f32":
        return None
    options = {
        "kernel_shape": list(frame.window),
        "strides": list(frame.stride),
        "dilations": list(frame.dilation),
        "pads": [*frame.before, *frame.after],
        "storage_order": int(call["order"] == "column"),
    }
    return call.build.node("MaxPool", [x.text], call.outputs, **options)


# ---- small integers


def _quantize(call: Onnx) -> Value | None:
    """ONNX Runtime has a number for all, or one for each element of an axis."""
    x, scale, to = call.input("x"), call.input("scale"), call.out.dtype
    whole = scale.rank == 0 or (scale.rank == 1 and scale.shape[0] != 1)
    if not whole or call["block_size"] or x.dtype != "f32" or to not in _BYTES:
        return None
    given = [x.text, scale.text]
    if call.has("zero_point"):
        given.append(call.build.cast(call.input("zero_point"), to).text)
    elif to != "u8":
        given.append(call.build.constant(np.zeros(scale.shape), to).text)
    options = {"axis": call.axis("axis", x.rank)} if scale.rank else {}
    return call.build.node("QuantizeLinear", given, [call.out], **options)[0]


def _dequantize(call: Onnx) -> Value | None:
    x, scale = call.input("x"), call.input("scale")
    whole = scale.rank == 0 or (scale.rank == 1 and scale.shape[0] != 1)
    if not whole or call["block_size"] or scale.dtype != "f32" or x.dtype not in _BYTES:
        return None
    given = [x.text, scale.text]
    if call.has("zero_point"):
        given.append(call.input("zero_point").text)
    options = {"axis": call.axis("axis", x.rank)} if scale.rank else {}
    return call.build.node("DequantizeLinear", given, [call.out], **options)[0]


def _dynamic_quantize(call: Onnx) -> list[Value] | None:
    x = call.input("x")
    if x.dtype != "f32" or call["to"] != "u8":
        return None
    return call.build.node("DynamicQuantizeLinear", [x.text], call.outputs)


def _matmul_integer(call: Onnx) -> Value | None:
    """A zero point of `a` for all rows only."""
    a, b = call.input("a"), call.input("b")
    if a.dtype not in _BYTES or b.dtype not in _BYTES or (a.rank, b.rank) != (2, 2):
        return None
    if call.has("a_zero") and (call.input("a_zero").rank, call.input("a_zero").dtype) != (
        0,
        a.dtype,
    ):
        return None
    if call.has("b_zero") and call.input("b_zero").dtype != b.dtype:
        return None
    given = [a.text, b.text]
    if call.has("a_zero") or call.has("b_zero"):
        zero = call.build.constant(np.zeros(()), a.dtype)
        given.append((call.input("a_zero") if call.has("a_zero") else zero).text)
    if call.has("b_zero"):
        given.append(call.input("b_zero").text)
    return call.build.node("MatMulInteger", given, [call.out])[0]


# ---- signals


def _dft(call: Onnx) -> Value | None:
    """ONNX Runtime has no one-sided inverse, and no half of a complex spectrum."""
    x = call.input("x")
    if x.dtype not in ("f32", "f64") or 0 in x.shape:
        return None
    if call["onesided"] and (call["inverse"] or x.shape[-1] == 2):
        return None
    length = call.build.constant(np.asarray(call["N"]), "i64")
    axis = call.build.constant(np.asarray(call.axis("axis", x.rank)), "i64")
    options = {"inverse": int(call["inverse"]), "onesided": int(call["onesided"])}
    names = [x.text, length.text, axis.text]
    return call.build.node("DFT", names, [call.out], **options)[0]


IMAGES: dict[str, Native] = {
    "grid_sample": Native("GridSample", _grid_sample),
    "roi_align": Native("RoiAlign", _roi_align),
    "col2im": Native("Col2Im", _col2im),
    "max_pool_with_argmax": Native("MaxPool", _max_pool),
    "quantize_linear": Native("QuantizeLinear", _quantize),
    "dequantize_linear": Native("DequantizeLinear", _dequantize),
    "dynamic_quantize_linear": Native("DynamicQuantizeLinear", _dynamic_quantize),
    "matmul_integer": Native("MatMulInteger", _matmul_integer),
    "dft": Native("DFT", _dft),
}
