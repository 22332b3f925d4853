"""TensorFlow's further words: kernels that a public function stands in front of, which checks what
they are given or makes it of something else, as graphs of any age call them.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from irlang.lower.call import Call, Native
from irlang.lower.channels import channels_last
from irlang.lower.legalise import Windows, all_are, filling
from irlang.lower.selections import TF_ROOM
from irlang.lower.spelling import invoke, labelled_sequences, named
from irlang.lower.tf_builder import TensorFlowBuilder
from irlang.lower.tf_frames import PLANE, listed, result
from irlang.lower.tf_images import first
from irlang.lower.tf_layers import avg_pool, max_pool
from irlang.lower.tf_words import NUMBERS, is_bias, raw
from irlang.lower.value import Value

Tf = Call[TensorFlowBuilder]
_WIDE = ("f32", "f64")
_PLACES = ("i32", "i64")
_VOLUME = 3


def _colours(name: str, constant: tuple[str, ...] = (), **given: str) -> Native:
    """A kernel of images, which have three axes, that is given an input and an attribute."""

    def rule(call: Tf, name: str) -> Value | None:
        told = {key: call.input(n) if call.has(n) else call[n] for key, n in given.items()}
        own = call.out.dtype == "f32" and len(call.out.shape) >= _VOLUME
        return call.value(invoke(name, **told)) if own else None

    return raw(name, rule, constant=constant)


# ---- numbers and order


def _mod(call: Tf, name: str) -> Value | None:
    values = [Value(call.build.full(v), v.shape, v.dtype) for v in call.values.values()]
    lacking = call.build.sloped or call["sign_of"] == "divisor" or call.out.dtype not in NUMBERS
    return None if lacking else call.value(invoke(name, x=values[0], y=values[1]))


def _bias(call: Tf, name: str) -> Value | None:
    """Of a number for each place along the last axis, in this order alone."""
    x, b = call.values.values()
    return call.value(invoke(name, value=x, bias=b)) if is_bias(call, x, b) else None


def _parts(call: Tf, name: str) -> list[Value] | None:
    """Of parts that are alike, by their number."""
    x = call.input("x")
    axis = call.axis_said("axis", x.rank)
    if len({info.shape for info in call.outputs}) > 1:
        return None
    return named(call, invoke(name, axis=axis, value=x, num_split=len(call.outputs)))


def _placed(call: Tf, name: str) -> Value | None:
    """Among zeros, as a gradient puts what flows back to a part."""
    x, before = call.input("x"), [int(number) for number in call["before"]]
    below = any(number < 0 for number in (*before, *call["after"]))
    if call["mode"] != "constant" or below or filling(call) or not 1 <= x.rank <= 7:
        return None
    if call.out.dtype not in NUMBERS:
        return None
    ends = [first + size for first, size in zip(before, x.shape, strict=False)]
    given = {"shape": listed(call.out.shape), "begin": listed(tuple(before))}
    given |= {"end": listed(tuple(ends)), "strides": listed((1,) * x.rank)}
    return call.value(invoke(name, **given, dy=x))


def _diagonals(call: Tf, name: str) -> Value | None:
    """Of matrices in batches that are the same."""
    bands, b = call.input("diagonals"), call.input("b")
    if bands.rank != b.rank or call.out.dtype not in _WIDE:
        return None
    return call.value(invoke(name, diagonals=bands, rhs=b))


def _banded(call: Tf, name: str) -> Value | None:
    bands, b = call.input("bands"), call.input("b")
    if bands.rank != b.rank or call.out.dtype not in _WIDE:
        return None
    return call.value(invoke(name, matrix=bands, rhs=b, lower=call["lower"]))


# ---- windows


def _pooled(call: Tf, kind: str, x: Value, frame: Windows, padding: str) -> Value | None:
    """Kernels of images and volumes."""
    if frame.rank not in (PLANE, _VOLUME) or not call.build.raw:
        return None
    volume = frame.rank == _VOLUME
    function = f"tf.raw_ops.{kind.title()}Pool{'3D' * volume}"
    given: dict[str, Any] = {
        "value" if kind == "avg" and not volume else "input": channels_last(call, x),
        "ksize": listed((1, *frame.window, 1)),
        "strides": listed((1, *frame.stride, 1)),
        "padding": padding,
    }
    return result(call, invoke(function, **given), call.out.shape)


def _volumes(call: Tf, name: str) -> Value | None:
    """Of volumes, the channels of an element together; what is around them is made part of them."""
    x = call.input("x")
    if x.rank != _VOLUME + 2 or x.dtype not in NUMBERS or not all_are(call["dilation"], 1):
        return None
    (n, c), window = x.shape[:2], tuple(call["window"])
    before, after = ((0, 0, *call[key]) for key in ("before", "after"))
    padded = call.build.pad(x, before, after, 0.0) if any(before) or any(after) else x
    given = {"ksizes": listed((1, *window, 1)), "strides": listed((1, *call["stride"], 1))}
    text = invoke(name, input=channels_last(call, padded), **given, padding='"VALID"')
    elements = math.prod(window)
    last = Value(text, (n, *call["O"], elements * c), x.dtype)
    flat = call.build.reshape(last, (n, call.out.shape[2], elements, c))
    return call.build.reshape(call.build.transpose(flat, (0, 3, 2, 1)), call.out.shape)


def _max_gradient(call: Tf, name: str) -> Value | None:
    """The kernels whose windows are tensors, of images; they are handed the maxima, too."""
    x = call.input("x")
    if x.rank != PLANE + 2 or x.dtype != "f32":
        return None
    inner = call.build.let(channels_last(call, x), "inner")
    window, stride = tuple(call["window"]), tuple(call["stride"])
    padding = f'"{call["pad"].upper()}"'
    given = {
        "orig_input": inner,
        "orig_output": invoke("tf.nn.max_pool2d", inner, window, stride, padding),
        "grad": channels_last(call, call.input("g")),
        "ksize": listed((1, *window, 1)),
        "strides": listed((1, *stride, 1)),
        "padding": padding,
    }
    return first(call, invoke(name, **given))


# ---- matrices of which some elements are said


def _shape(call: Tf, columns: int) -> str:
    return str([call["rows"], columns])


def _sparse_product(call: Tf, name: str) -> Value | None:
    b = call.input("b")
    if b.dtype not in _WIDE:
        return None
    given = {"a_indices": call.input("ids"), "a_values": call.input("values")}
    return call.value(invoke(name, **given, a_shape=_shape(call, b.shape[0]), b=b))


def _sparse_sum(call: Tf, name: str) -> Value | None:
    """Parts of a tensor that are single elements."""
    x, ids = call.input("x"), call.input("ids")
    if call["reduction"] != "add" or call["negative"] != "refused" or ids.dtype not in _PLACES:
        return None
    if ids.rank != 2 or not x.rank or ids.shape[1] != x.rank or x.dtype not in NUMBERS:
        return None
    given = {"a_indices": ids, "a_values": call.input("updates")}
    shape = f"tf.constant({list(x.shape)}, {call.build.dtype(ids.dtype)})"
    return call.value(invoke(name, **given, a_shape=shape, b=x))


def _sparse_dense(call: Tf, name: str) -> Value | None:
    if call.out.dtype not in (*_WIDE, *_PLACES):
        return None
    number = int(call["value"]) if call.out.kind == "int" else float(call["value"])
    if number != call["value"]:
        return None
    given = {"sparse_indices": call.input("ids"), "sparse_values": call.input("values")}
    shape = f"tf.constant({_shape(call, call['columns'])}, tf.int64)"
    filling = f"tf.constant({number}, {call.build.dtype(call.out.dtype)})"
    return call.value(invoke(name, **given, output_shape=shape, default_value=filling))


def _sparse_reduced(call: Tf, name: str) -> Value | None:
    if call.out.dtype not in _WIDE or not name.endswith(call["reduction"].title()):
        return None
    given = {"input_indices": call.input("ids"), "input_values": call.input("values")}
    shape = _shape(call, call["columns"])
    return call.value(invoke(name, **given, input_shape=shape, reduction_axes="[1]"))


def _sparse_softmax(call: Tf, name: str) -> Value | None:
    if call.out.dtype not in _WIDE:
        return None
    given = {"sp_indices": call.input("ids"), "sp_values": call.input("values")}
    return call.value(invoke(name, **given, sp_shape=_shape(call, call["columns"])))


_SEGMENTS = {"Sum": "sum", "Mean": "mean", "SqrtN": "sqrt_n"}


def _sparse_segments(call: Tf, name: str) -> Value | None:
    """As long as the last segment says, filled up."""
    x, ids, segment = (call.input(key) for key in ("x", "ids", "segment"))
    if _SEGMENTS[name.rpartition("Segment")[2]] != call["reduction"]:
        return None
    if x.dtype not in _WIDE or ids.dtype not in _PLACES or call["segments"] < 0:
        return None
    found = invoke(name, data=x, indices=ids, segment_ids=segment)
    return TF_ROOM.room(call, found)


def _stitch(call: Tf, name: str) -> Value:
    """Where a place is said once, as which of several counts is left open."""
    values = call.build.cast(call.input("ids"), "i32"), call.input("x")
    return call.value(invoke(name, indices=f"[{values[0].text}]", data=f"[{values[1].text}]"))


# ---- steps of a range


def _quantized(call: Tf, name: str) -> Value | None:
    """Of a range for all or for each element of an axis, which the first kernel does not say.

    What flows back passes as if nothing were done, which TensorFlow documents of what stood before
    `tf.quantization.quantize_and_dequantize_v2`: beyond a given range there is another gradient.
    """
    x = call.input("x")
    passing = call.build.sloped and call.has("low")
    if x.dtype not in _WIDE or not name.endswith(("V2", "V3")) or passing:
        return None
    third = name.endswith("V3")
    if third and call["rounding"] != "even":
        return None
    dtype = call.build.dtype(x.dtype)
    sizes = list(call["R"]) if call["sliced"] and not call.has("low") else []
    ends = [call.text(end, f"tf.zeros({sizes}, {dtype})") for end in ("low", "high")]
    options = {
        "signed_input": call["signed"],
        "num_bits": call["bits"],
        "range_given": call.has("low"),
        "round_mode": None if third or call["rounding"] == "even" else '"HALF_UP"',
        "narrow_range": call["narrow"] or None,
        "axis": call["axis"] if call["sliced"] else None,
    }
    return call.value(invoke(name, input=x, input_min=ends[0], input_max=ends[1], **options))


def _literal_range(call: Tf) -> dict[str, Any] | None:
    """A range of two numbers that are known, as attributes."""
    ends = [call.values[end].literal for end in ("low", "high")]
    if call.out.dtype != "f32" or any(end is None for end in ends):
        return None
    low, high = (float(str(end)) for end in ends)
    return {
        "min": low, "max": high, "num_bits": call["bits"], "narrow_range": call["narrow"] or None
    }  # fmt: skip


def _fake(call: Tf, name: str) -> Value | None:
    options = _literal_range(call)
    return None if options is None else call.value(invoke(name, inputs=call.input("x"), **options))


# ---- sequences


def _ctc(call: Tf, name: str) -> Value | None:
    """Of labels that are said by their places, where the last class is the blank one."""
    found = labelled_sequences(call)
    if found is None or call["blank"] != call.input("logits").shape[-1] - 1:
        return None
    labels, logits, lengths, steps = found
    many = labels.shape[-1] if labels.shape else 0
    places = call.build.once(f"tf.where(tf.sequence_mask({lengths.text}, {many}))", (), "i64", "at")
    given = {
        "inputs": logits, "labels_indices": places,
        "labels_values": invoke("tf.gather_nd", labels, places), "sequence_length": steps,
    }  # fmt: skip
    return call.value(f"{invoke(name, **given)}[0]")


def _pool(name: str, rule: Any) -> Native:
    return Native(name, partial(rule, pooled=_pooled))


RAW: dict[str, Native | tuple[Native, ...]] = {
    "modulo": raw("Mod", _mod),
    "add": raw("BiasAddV1", _bias),
    "split": raw("Split", _parts),
    "pad": raw("StridedSliceGrad", _placed),
    "tridiagonal_solve": raw("TridiagonalSolve", _diagonals),
    "banded_triangular_solve": raw("BandedTriangularSolve", _banded),
    "adjust_contrast": _colours("AdjustContrastv2", images="x", contrast_factor="factor"),
    "adjust_saturation": _colours("AdjustSaturation", ("x",), images="x", scale="factor"),
    "adjust_hue": _colours("AdjustHue", ("x",), images="x", delta="delta"),
    "max_pool": _pool("tf.raw_ops.MaxPool, tf.raw_ops.MaxPool3D", max_pool),
    "avg_pool": _pool("tf.raw_ops.AvgPool, tf.raw_ops.AvgPool3D", avg_pool),
    "im2col": raw("ExtractVolumePatches", _volumes),
    "max_pool_gradient": raw("MaxPoolGradV2", _max_gradient, constant=("x",)),
    "max_pool_tangent": raw("MaxPoolGradGradV2", _max_gradient, constant=("x",)),
    "sparse_matmul": raw("SparseTensorDenseMatMul", _sparse_product),
    "scatter_nd": raw("SparseTensorDenseAdd", _sparse_sum),
    "sparse_to_dense": raw("SparseToDense", _sparse_dense),
    "sparse_reduce": (
        raw("SparseReduceSum", _sparse_reduced, constant=("values",)),
        raw("SparseReduceMax", _sparse_reduced, constant=("values",)),
    ),
    "sparse_softmax": raw("SparseSoftmax", _sparse_softmax),
    "sparse_segment_reduce": (
        raw("SparseSegmentSum", _sparse_segments, eager=True),
        raw("SparseSegmentMean", _sparse_segments, eager=True),
        raw("SparseSegmentSqrtN", _sparse_segments, eager=True),
    ),
    "dynamic_stitch": raw("ParallelDynamicStitch", _stitch),
    "quantize_and_dequantize": (
        raw("QuantizeAndDequantizeV2", _quantized, constant=("low", "high")),
        raw("QuantizeAndDequantizeV3", _quantized, constant=("low", "high")),
    ),
    "fake_quantize_range": raw("FakeQuantWithMinMaxArgs", _fake),
    "ctc_logits": raw("CTCLoss", _ctc),
}
