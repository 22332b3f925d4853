"""How TensorFlow spells rows of different lengths, places in tensors of another shape, outlines of
boxes, and what is read off sequences of classes.
"""

from __future__ import annotations

from dataclasses import replace

from irlang.lower.call import Call, Native
from irlang.lower.selections import TF_ROOM
from irlang.lower.spelling import invoke
from irlang.lower.tf_builder import TensorFlowBuilder
from irlang.lower.tf_words import NUMBERS, raw, word
from irlang.lower.value import Value

Tf = Call[TensorFlowBuilder]
_WIDE = ("f32", "f64")


def _counts(call: Tf, kernel: str) -> Value | None:
    x = call.input("x")
    if x.dtype not in ("i32", "i64"):
        return None
    size = f"tf.constant({call['size']}, {call.build.dtype(x.dtype)})"
    given = {"splits": call.input("splits"), "values": x, "size": size}
    return call.value(invoke(kernel, **given, weights="tf.constant([], tf.int64)"))


def _dense(call: Tf, kernel: str) -> Value | None:
    x, splits = call.input("x"), call.input("splits")
    if x.dtype not in NUMBERS or not float(call["value"]).is_integer():
        return None  # infinities and NaN among them
    rows = splits.shape[0] - 1 if splits.shape else 0
    given = {
        "shape": f"tf.constant({[rows, call['columns']]}, tf.int64)",
        "values": x,
        "default_value": f"tf.constant({int(call['value'])}, {call.build.dtype(x.dtype)})",
        "row_partition_tensors": f"[{splits.text}]",
        "row_partition_types": '["ROW_SPLITS"]',
    }
    return call.value(invoke(kernel, **given))


def _places(call: Tf, kernel: str) -> Value:
    shapes = {
        key: f"tf.constant({list(call[name])}, tf.int64)"
        for key, name in (("input_shape", "shape"), ("new_shape", "new"))
    }
    return call.value(f"{invoke(kernel, input_indices=call.input('ids'), **shapes)}[0]")


def _outlines(call: Tf, function: str) -> Value | None:
    x, boxes, colors = (call.input(name) for name in ("x", "boxes", "colors"))
    if x.dtype != "f32":
        return None
    return call.value(invoke(function, x, boxes, colors))


def _within(call: Tf, kernel: str) -> list[Value] | None:
    g, low = call.input("g"), call.input("low")
    if g.dtype not in _WIDE:
        return None
    given = {"gradients": g, "input": call.input("x"), "input_min": low}
    axis = call.axis("axis", g.rank) if low.rank else None  # -1 stands for none
    names = call.build.several(
        invoke(kernel, **given, input_max=call.input("high"), axis=axis), *call.node.outputs
    )
    pairs = zip(names, call.outputs, strict=True)
    return [Value(name, info.shape, info.dtype) for name, info in pairs]


def _greedy(call: Tf, function: str) -> list[Value] | None:
    logits, lengths = call.input("logits"), call.input("lengths")
    if logits.dtype not in _WIDE:
        return None
    count = call.out.shape[0]
    found, total = call.build.several(invoke(function, logits, lengths), "found", "total")
    text = f"tf.sparse.to_dense({found}[0], default_value=-1)"
    return [
        TF_ROOM.room(call, text, 0, -1, axis=1),
        call.build.reshape(Value(total, (count, 1), logits.dtype), (count,)),
    ]


def _eager(row: Native) -> Native:
    """As long as the data make it."""
    return replace(row, eager=True, constant=("logits",))


ROWS: dict[str, Native] = {
    "ragged_bincount": raw("RaggedBincount", _counts),
    "ragged_to_dense": raw("RaggedTensorToTensor", _dense),
    "sparse_reshape": raw("SparseReshape", _places),
    "draw_bounding_boxes": word("tf.image.draw_bounding_boxes", _outlines),
    "quantize_and_dequantize_gradient": raw(
        "QuantizeAndDequantizeV4Grad", _within, constant=("g", "x", "low", "high")
    ),
    "ctc_greedy": _eager(word("tf.nn.ctc_greedy_decoder", _greedy)),
}
