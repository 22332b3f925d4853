"""TensorFlow's further words for places, order and whole numbers: kernels that change a tensor or a
variable in its place, that search, and that compute with tensors of a range.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from irlang.lower.call import Call, Native
from irlang.lower.channels import channels_last
from irlang.lower.selections import TF_ROOM
from irlang.lower.spelling import invoke
from irlang.lower.tf_builder import TensorFlowBuilder
from irlang.lower.tf_frames import PLANE, framed, listed, result
from irlang.lower.tf_words import NUMBERS, raw
from irlang.lower.value import Value

Tf = Call[TensorFlowBuilder]
_PLACES = ("i32", "i64")
_MOST_AXES = 7  # of kernels that assign to parts

# ---- in their place


def _inplace(call: Tf, kernel: str) -> Value | None:
    """Of rows of a copy; positions from the end, too, which is left out."""
    x, ids = call.input("x"), call.input("ids")
    done = {"InplaceAdd": "add", "InplaceUpdate": "none"}[kernel.rpartition(".")[2]]
    if call["reduction"] != done or not x.rank or call.axis("axis", x.rank) or ids.dtype != "i32":
        return None
    if x.dtype not in NUMBERS or not all(x.shape):
        return None
    copied = call.build.once(invoke("tf.raw_ops.DeepCopy", x=x), x.shape, x.dtype, "x")
    return call.value(invoke(kernel, x=copied, i=ids, v=call.input("updates")))


_CHANGES = {"none": "Update", "add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}


def _variable(call: Tf) -> Value:
    """A variable that holds x."""
    x = call.input("x")
    return call.build.once(f"tf.Variable({x.text})", x.shape, x.dtype, "held")


def _changed(call: Tf, kernel: str, served: bool) -> Value | None:
    """What a variable holds when rows of it, or slices, have been changed."""
    x, ids = call.input("x"), call.input("ids")
    suffix = _CHANGES[call["reduction"]]
    if not served or not x.rank or x.dtype not in NUMBERS or ids.dtype not in _PLACES:
        return None
    if call["negative"] != "refused":
        return None
    held = _variable(call)
    handle = {"ref" if kernel.endswith("Nd") else "resource": f"{held.text}.handle"}
    given = {**handle, "indices": ids, "updates": call.input("updates")}
    call.build.lines.append(invoke(f"{kernel}{suffix}", **given))
    return call.value(f"tf.convert_to_tensor({held.text})")


def _rows(call: Tf, kernel: str) -> Value | None:
    x = call.input("x")
    return _changed(call, kernel, bool(x.rank) and call.axis("axis", x.rank) == 0)


def _slices(call: Tf, kernel: str) -> Value | None:
    return _changed(call, kernel, call["reduction"] != "mul" and call.input("ids").rank > 1)


def _read(call: Tf, kernel: str) -> Value | None:
    """Rows of a variable, or slices."""
    x, ids = call.input("x"), call.input("ids")
    along = call.axis("axis", x.rank) if "axis" in call.node.instance.binding.scope.names else 0
    whole = not call.get("batch_dims", 0) and call.get("negative", "refused") == "refused"
    if not x.rank or along or not whole or x.dtype not in NUMBERS or ids.dtype not in _PLACES:
        return None
    held = _variable(call)
    dtype = call.build.dtype(x.dtype)
    return call.value(invoke(kernel, resource=f"{held.text}.handle", indices=ids, dtype=dtype))


def _part(call: Tf) -> dict[str, Any] | None:
    """Where a part of x begins and ends; None where there is no kernel."""
    x, update = call.input("x"), call.input("update")
    begin, step = call["begin"], call["step"]
    if not 1 <= x.rank <= _MOST_AXES or x.dtype not in (*NUMBERS, "bool", "f16"):
        return None
    if any(b < 0 for b in begin):  # which is counted from the end
        return None
    sizes = zip(begin, step, update.shape, strict=False)
    ends = [int(b + (n - 1) * s + 1 if n else b) for b, s, n in sizes]
    return {
        "begin": str([int(b) for b in begin]), "end": str(ends),
        "strides": str([int(s) for s in step]), "value": update,
    }  # fmt: skip


def _update(call: Tf, kernel: str) -> Value | None:
    part = _part(call)
    if part is None:
        return None
    return call.value(invoke(kernel, input=call.input("x"), **part))


def _assigned(call: Tf, kernel: str) -> Value | None:
    """What a variable holds when a part of it has been assigned to."""
    part = _part(call)
    if part is None:
        return None
    held = _variable(call)
    call.build.lines.append(invoke(kernel, ref=f"{held.text}.handle", **part))
    return call.value(f"tf.convert_to_tensor({held.text})")


# ---- order


def _search(call: Tf, kernel: str) -> Value | None:
    """Of rows of two axes; where one tensor has them, it is left to the kernel to see to both."""
    row, x = call.input("row"), call.input("x")
    if 2 not in (row.rank, x.rank) or row.dtype not in NUMBERS:
        return None
    if call["right"] != kernel.endswith("UpperBound"):
        return None
    return call.value(invoke(kernel, sorted_inputs=row, values=x, out_type="tf.int64"))


def _chosen(call: Tf, kernel: str) -> Value | None:
    """Boxes that are best, which are in no order of their own; the first of these kernels take all
    scores.
    """
    boxes, scores = call.input("boxes"), call.input("scores")
    if boxes.dtype != "f32" or call["center"]:
        return None
    if not kernel.endswith("V3") and call["score_threshold"] != -math.inf:
        return None
    limit = {"iou_threshold": float(call["iou_threshold"])}
    if kernel.endswith("V3"):
        limit["score_threshold"] = float(call["score_threshold"])
    text = invoke(kernel, boxes=boxes, scores=scores, max_output_size=call["size"], **limit)
    return TF_ROOM.room(call, f"tf.cast({text}, tf.int64)", filling=-1)


def _bias(call: Tf, kernel: str) -> Value | None:
    """Over all axes but the last, or the second of images."""
    x = call.input("x")
    axes = tuple(sorted(call.axes("axes", x.rank)))
    last = axes == tuple(range(x.rank - 1))
    second = x.rank == PLANE + 2 and axes == (0, 2, 3)
    if call["keepdims"] or x.rank < 2 or not (last or second) or x.dtype not in NUMBERS:
        return None
    return call.value(invoke(kernel, out_backprop=x, data_format='"NCHW"' if second else None))


def _set(call: Tf, kernel: str) -> Value | None:
    """Of the first of these kernels the diagonal in the middle."""
    x, diagonal = call.input("x"), call.input("diagonal")
    if x.dtype not in NUMBERS or (call["offset"] and not kernel.endswith("V2")):
        return None
    options = {"k": call["offset"]} if kernel.endswith("V2") else {}
    return call.value(invoke(kernel, input=x, diagonal=diagonal, **options))


# ---- whole numbers of a range: 0 is the zero point, and one is one


def _range(call: Tf, name: str, zero: str) -> tuple[str, dict[str, str]]:
    """A tensor of bytes as TensorFlow keeps them apart, and the ends of its range."""
    point = "tf.constant(0.0)"
    if call.has(zero):
        value = call.input(zero)
        one = call.build.reshape(value, ()) if value.shape == (1,) else value
        point = f"tf.cast({one.text}, tf.float32)"
    low = call.build.once(f"-{point}", (), "f32", "low").text
    return f"tf.bitcast({call.text(name)}, tf.quint8)", {"min": low, "max": f"{low} + 255.0"}


def _several(call: Tf, *zeros: str) -> bool:
    """Whether there is a zero point for every row or filter; a range is one."""
    given = [call.input(zero) for zero in zeros if call.has(zero)]
    return any(value.rank == 1 and value.shape[0] > 1 for value in given)


def _product(call: Tf, kernel: str) -> Value | None:
    if any(call.input(name).dtype != "u8" or call.input(name).rank != 2 for name in "ab"):
        return None
    if _several(call, "a_zero", "b_zero"):
        return None
    (a, first), (b, second) = _range(call, "a", "a_zero"), _range(call, "b", "b_zero")
    text = invoke(
        kernel, a=a, b=b, min_a=first["min"], max_a=first["max"], min_b=second["min"],
        max_b=second["max"],
    )  # fmt: skip
    return call.value(f"tf.bitcast({text}[0], tf.int32)")


def _convolution(call: Tf, kernel: str) -> Value | None:
    """Of images, padded alike or not at all."""
    x, w = call.input("x"), call.input("w")
    plain = x.rank == PLANE + 2 and call["groups"] == 1 and set(call["dilation"]) == {1}
    if x.dtype != "u8" or w.dtype != "u8" or not plain or call["pad"] == "given":
        return None
    if len(set(call["stride"])) != 1 or _several(call, "w_zero"):
        return None
    inner = channels_last(call, x)
    filters = call.build.transpose(w, (2, 3, 1, 0))
    (_, first), (_, second) = _range(call, "x", "x_zero"), _range(call, "w", "w_zero")
    text = invoke(
        kernel, input=f"tf.bitcast({inner.text}, tf.quint8)",
        filter=f"tf.bitcast({filters.text}, tf.quint8)",
        min_input=first["min"], max_input=first["max"], min_filter=second["min"],
        max_filter=second["max"], strides=listed((1, *call["stride"], 1)),
        padding=f'"{call["pad"].upper()}"',
    )  # fmt: skip
    return result(call, f"tf.bitcast({text}[0], tf.int32)", call.out.shape)


def _pool(call: Tf, kernel: str) -> Value | None:
    x = call.input("x")
    if x.dtype != "u8" or call.get("ceil_mode", False) or set(call["dilation"]) != {1}:
        return None
    if x.rank != PLANE + 2 or call["pad"] == "given":
        return None
    x, frame, padding = framed(call, x)
    text = invoke(
        kernel, input=f"tf.bitcast({channels_last(call, x).text}, tf.quint8)", min_input="0.0",
        max_input="255.0", ksize=listed((1, *frame.window, 1)),
        strides=listed((1, *frame.stride, 1)), padding=padding,
    )  # fmt: skip
    return result(call, f"tf.bitcast({text}[0], tf.uint8)", call.out.shape)


_KEPT = {"u8": "quint8", "i32": "qint32"}


def _reshape(call: Tf, kernel: str) -> Value | None:
    x = call.input("x")
    if x.dtype not in _KEPT:
        return None
    kept = f"tf.bitcast({x.text}, tf.{_KEPT[x.dtype]})"
    shape = str(list(call.out.shape)) if call.out.shape else "tf.constant([], tf.int32)"
    text = invoke(kernel, tensor=kept, shape=shape, input_min="0.0", input_max="255.0")
    return call.value(f"tf.bitcast({text}[0], {call.build.dtype(x.dtype)})")


def _concat(call: Tf, kernel: str) -> Value | None:
    values = call.family("xs")
    if len(values) < 2 or {v.dtype for v in values} - {"u8"}:
        return None
    kept = ", ".join(f"tf.bitcast({v.text}, tf.quint8)" for v in values)
    axis = call.axis_said("axis", values[0].rank)
    given = {"input_mins": str([0.0] * len(values)), "input_maxes": str([255.0] * len(values))}
    text = invoke(kernel, concat_dim=axis, values=f"[{kept}]", **given)
    return call.value(f"tf.bitcast({text}[0], tf.uint8)")


def _held(kernel: str, rule: Callable[[Tf, str], Any]) -> Native:
    """A kernel of variables, which programs run line by line have."""
    return raw(kernel, rule, eager=True, constant=("x", "ids", "updates"))


def _bytes(kernel: str, rule: Callable[[Tf, str], Any]) -> Native:
    """A kernel of tensors of a range, which no compiler has."""
    return replace(raw(kernel, rule, eager=True), narrow=True)


KERNELS: dict[str, Native | tuple[Native, ...]] = {
    "scatter_slices": (
        _held("InplaceUpdate", _inplace),
        _held("InplaceAdd", _inplace),
        _held("ResourceScatter", _rows),
    ),
    "scatter_nd": _held("ResourceScatterNd", _slices),
    "gather": _held("ResourceGather", _read),
    "gather_nd": _held("ResourceGatherNd", _read),
    "slice_update": (
        raw("TensorStridedSliceUpdate", _update),
        raw("ResourceStridedSliceAssign", _assigned, eager=True, constant=("x", "update")),
    ),
    "searchsorted": (raw("LowerBound", _search), raw("UpperBound", _search)),
    "non_max_suppression": (
        raw("NonMaxSuppressionV2", _chosen, eager=True),
        raw("NonMaxSuppressionV3", _chosen, eager=True),
    ),
    "reduce_sum": raw("BiasAddGrad", _bias),
    "set_diagonal": (raw("MatrixSetDiag", _set), raw("MatrixSetDiagV2", _set)),
    "matmul_integer": _bytes("QuantizedMatMul", _product),
    "conv_integer": _bytes("QuantizedConv2D", _convolution),
    "max_pool": _bytes("QuantizedMaxPool", _pool),
    "reshape": _bytes("QuantizedReshape", _reshape),
    "concat": _bytes("QuantizedConcat", _concat),
}
