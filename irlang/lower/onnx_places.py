"""How ONNX spells order, scattering and bits."""

from __future__ import annotations

from dataclasses import replace

from irlang.lower.call import Call, Native
from irlang.lower.labels import native
from irlang.lower.onnx_builder import OnnxBuilder
from irlang.lower.onnx_ops import on_axis
from irlang.lower.value import Value

Onnx = Call[OnnxBuilder]
_HARDMAX = on_axis("Hardmax")
_POWERS = frozenset({"f32", "f64", "i32", "i64"})  # of one type by another
# What kernels that scatter add, multiply and compare.
_REDUCED = _POWERS | {"i8", "i16", "u8", "u16", "u32", "u64"}


def _sort(call: Onnx) -> list[Value] | None:
    """All elements as the best ones: equal ones keep their order there too."""
    x = call.input("x")
    if x.dtype not in call.build.runtime.kernels.get("TopK", ()) or call["nans"] == "largest":
        return None
    axis = call.axis_said("axis", x.rank)
    count = call.build.integers([x.shape[axis]])
    options = {"axis": axis, "largest": int(call["descending"]), "sorted": 1}
    return call.build.node("TopK", [x.text, count.text], call.outputs, **options)


def _scatter(op: str) -> Native:
    """Negative positions count from the end."""

    def rule(call: Onnx) -> Value | None:
        x, reduction = call.input("x"), call["reduction"]
        if not x.rank or (reduction != "none" and x.dtype not in _REDUCED):
            return None  # ONNX asks for one axis at least
        ids = call.build.cast(call.input("ids"), "i64")
        inputs = [x.text, ids.text, call.input("updates").text]
        options = {} if reduction == "none" else {"reduction": reduction}
        if op == "ScatterElements":
            options["axis"] = call.axis_said("axis", x.rank)
        return call.build.node(op, inputs, [call.out], **options)[0]

    return Native(op, rule)


def _shift(call: Onnx) -> Value | None:
    """What is moved beyond the type is gone, as by `numpy.left_shift` in ONNX's own evaluator."""
    if call.out.dtype not in ("u8", "u32", "u64"):
        return None
    direction = call["direction"].upper()
    values = list(call.values.values())
    return call.build.op("BitShift", values, call.out.shape, direction=direction)


def _power(call: Onnx) -> Value | None:
    a, b = (call.values[name] for name in "ab")
    if a.dtype == b.dtype:
        return call.build.op("Pow", [a, b], call.out.shape)
    if not {a.dtype, b.dtype} <= _POWERS:
        return None
    return call.build.node("Pow", [a.text, b.text], [call.out])[0]


def _bits(op: str) -> Native:
    def rule(call: Onnx) -> Value:
        return call.build.op(op, list(call.values.values()), call.out.shape)

    return Native(op, rule)


def _reverse_sequence(call: Onnx) -> Value | None:
    """The batch and the time are the first two axes, in either order."""
    x = call.input("x")
    axes = call.axis("axis", x.rank), call.axis("batch_axis", x.rank)
    if sorted(axes) != [0, 1] or x.dtype == "bf16":
        return None
    lengths = call.build.cast(call.input("lengths"), "i64")
    options = {"time_axis": axes[0], "batch_axis": axes[1]}
    return call.build.node("ReverseSequence", [x.text, lengths.text], [call.out], **options)[0]


def _tensordot(call: Onnx) -> Value | None:
    """The last axis of one with the last but one of the other, or its only one: a matrix and a
    vector, or two matrices, as `matmul` has no vectors.
    """
    a, b = call.input("a"), call.input("b")
    summed = call.axes("a_axes", a.rank), call.axes("b_axes", b.rank)
    joined = a.rank > 1 and b.rank > 2  # whose other axes come in another order
    if joined or summed != ((a.rank - 1,), (max(b.rank - 2, 0),)):
        return None
    return call.build.op("MatMul", [a, b], call.out.shape)


PLACES: dict[str, Native] = {
    # ONNX, Einsum: an ellipsis must indicate a fixed number of dimensions
    "einsum": native("Einsum", repeats=True, even=True),
    "tensordot": Native("MatMul", _tensordot),
    "sort": Native("TopK", _sort),
    "scatter_elements": _scatter("ScatterElements"),
    "scatter_nd": _scatter("ScatterND"),
    "hardmax": replace(
        _HARDMAX, rule=lambda call: _HARDMAX.rule(call) if call.out.dtype == "f32" else None
    ),
    "bit_and": _bits("BitwiseAnd"),
    "bit_or": _bits("BitwiseOr"),
    "bit_xor": _bits("BitwiseXor"),
    "bit_not": _bits("BitwiseNot"),
    "bit_shift": Native("BitShift", _shift),
    "power": Native("Pow", _power),
    "reverse_sequence": Native("ReverseSequence", _reverse_sequence),
}
