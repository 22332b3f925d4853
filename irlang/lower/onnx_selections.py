"""How ONNX spells what the data decide how much of there is: filled up, and cut off."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irlang.equations import TensorInfo
from irlang.lower.call import Call, Native
from irlang.lower.onnx_builder import OnnxBuilder
from irlang.lower.value import Value

Onnx = Call[OnnxBuilder]
_COUNTED = frozenset({"bool", "f32", "i32", "i64", "u8"})  # whose elements NonZero has a kernel for
_TOLD_APART = frozenset({"f32", "f64", "i8", "i64"})  # and Unique


def _room(call: Onnx, found: Value, number: int = 0, filling: float = 0, axis: int = 0) -> Value:
    """The result of a number, of the first that were found, and fillings."""
    build, info = call.build, call.outputs[number]
    fillings = build.constant(np.full(info.shape, filling), info.dtype)
    whole = build.concat([found, fillings], axis)
    return build.slice(whole, axis, 0, info.shape[axis], 1)


def _nonzero(call: Onnx) -> Value | None:
    x = call.input("x")
    if x.dtype not in _COUNTED or not x.rank:
        return None
    size = call["size"]
    (found,) = call.build.node("NonZero", [x.text], [TensorInfo((x.rank, size), "i64")])
    return _room(call, call.build.transpose(found, (1, 0)), filling=-1)


def _compress(call: Onnx) -> Value | None:
    x = call.input("x")
    if x.dtype == "bf16":
        return None
    axis = call.axis_said("axis", x.rank)
    names = [x.text, call.input("keep").text]
    (found,) = call.build.node("Compress", names, [call.out], axis=axis)
    return _room(call, found, axis=call.axis("axis", x.rank))


def _unique(call: Onnx) -> Sequence[Value] | None:
    x = call.input("x")
    if x.dtype not in _TOLD_APART:
        return None
    y, counts, places = call.outputs
    kinds = [y, TensorInfo(x.shape, "i64"), places, counts]  # the second says where each is first
    options = {"sorted": int(call["order"] == "sorted")}
    found, _, which, often = call.build.node("Unique", [x.text], kinds, **options)
    return _room(call, found), _room(call, often, 1), which


def _boxes(call: Onnx) -> Value | None:
    boxes, scores = call.input("boxes"), call.input("scores")
    if boxes.dtype != "f32":
        return None
    build, count, size = call.build, boxes.shape[0], call["size"]
    inputs = [
        build.reshape(boxes, (1, count, 4)),
        build.reshape(scores, (1, 1, count)),
        build.integers([size]),
        build.constant(np.array([call["iou_threshold"]]), "f32"),
        build.constant(np.array([call["score_threshold"]]), "f32"),
    ]
    options = {"center_point_box": int(call["center"])}
    names = [value.text for value in inputs]
    (rows,) = build.node("NonMaxSuppression", names, [TensorInfo((size, 3), "i64")], **options)
    column = build.slice(rows, 1, 2, 3, 1)
    flat = build.op("Squeeze", [column], (size,), build.integers([1]))
    return _room(call, flat, filling=-1)


SELECTIONS: dict[str, Native] = {
    "nonzero": Native("NonZero", _nonzero),
    "compress": Native("Compress", _compress),
    "unique": Native("Unique", _unique),
    "non_max_suppression": Native("NonMaxSuppression", _boxes),
}
