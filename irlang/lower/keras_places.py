"""How Keras 3 spells indexing, order, matrices, scattering and segments: `keras.ops`."""

from __future__ import annotations

from dataclasses import replace

from irlang.dtypes import DTYPES
from irlang.lower.call import Native
from irlang.lower.keras_call import KERAS_3, Keras, positions
from irlang.lower.legalise import replaced
from irlang.lower.spelling import default, invoke, labelled_sequences, named, of_vectors, plain
from irlang.lower.value import Value


def _matrix(function: str) -> Native:
    """Of square matrices, of types that libraries of linear algebra have."""

    def rule(call: Keras) -> Value | None:
        if call.out.dtype not in ("f32", "f64"):
            return None
        return call.value(invoke(function, call.input("x")))

    return Native(function, rule, since=KERAS_3)


def _cholesky(call: Keras) -> Value | None:
    """Backends differ in what they read of a matrix: the lower triangle stands in both.

    What is added is a constant: gradients flow as they do for a symmetric matrix.
    """
    if call.out.dtype not in ("f32", "f64"):
        return None
    x = call.build.solid(call.input("x"))
    mirrored = f"ops.swapaxes(ops.tril({x.text}, -1), -1, -2)"
    text = f"ops.tril({x.text}) + {mirrored} - {call.build.inner(x)}"
    rest = call.build.detach(Value(text, x.shape, x.dtype, atom=False))
    return call.value(f"ops.cholesky({x.text} + {rest.text})")


def _triangular(call: Keras) -> Value | None:
    if call["unit_diagonal"] or call.out.dtype not in ("f32", "f64"):
        return None
    lower = True if call["lower"] else None
    return call.value(invoke("ops.solve_triangular", call.input("a"), call.input("b"), lower=lower))


def _along(function: str) -> Native:
    """Along a diagonal of two axes."""

    def rule(call: Keras) -> Value | None:
        x = call.input("x")
        axes = call.axes("axes", x.rank)
        if len(axes) != 2 or axes[0] > axes[1] or x.dtype == "bool":
            return None
        if function == "ops.trace" and call.out.kind == "int":  # which some of them widen
            return None
        first, second = call.axes_said("axes", x.rank)
        options = {"offset": call["offset"] or None, "axis1": first, "axis2": second}
        return call.value(invoke(function, x, **options))

    return Native(function, rule, since=KERAS_3)


def _cross(call: Keras) -> Value | None:
    a = call.input("a")
    if call.out.kind == "int":
        return None
    return call.value(invoke("ops.cross", a, call.input("b"), axis=call.axis_said("axis", a.rank)))


def _modulo(call: Keras) -> Value | None:
    if call["sign_of"] != "divisor" or call.out.kind == "int":
        return None
    return call.value(invoke("ops.mod", *map(call.build.full, call.values.values())))


def _power(call: Keras) -> Value | None:
    values = list(call.values.values())
    if {DTYPES[value.dtype].kind for value in values} != {"real"}:
        return None
    if len({value.dtype for value in values}) > 1:
        return None
    return call.value(invoke("ops.power", *map(call.build.full, values)))


def _ctc(call: Keras) -> Value | None:
    found = labelled_sequences(call)
    if found is None:
        return None
    labels, logits, lengths, steps = found
    samples = call.build.transpose(logits, (1, 0, 2))
    text = invoke("ops.ctc_loss", labels, samples, lengths, steps, mask_index=call["blank"])
    return call.value(text)


def _segments(call: Keras) -> Value | None:
    if call["reduction"] not in ("sum", "max") or call.out.kind == "int":
        return None
    function = f"ops.segment_{call['reduction']}"
    ids = positions(call, "ids")
    return call.value(invoke(function, call.input("x"), ids, num_segments=call["segments"]))


def _scatter(call: Keras) -> Value | None:
    usual = (call["reduction"], call["negative"]) == ("none", "refused")
    documented = call.input("ids").shape[1:] == (call.input("x").rank,)  # a list of elements
    if not usual or not documented or call.out.kind != "real":
        return None
    ids = call.build.cast(call.input("ids"), "i64")
    return call.value(invoke("ops.scatter_update", call.input("x"), ids, call.input("updates")))


def _meshgrid(call: Keras) -> list[Value] | None:
    values = call.family("xs")
    if any(value.rank != 1 for value in values):
        return None
    listed = ", ".join(map(call.build.full, values))
    text = invoke("ops.meshgrid", listed, indexing=f'"{call["indexing"]}"')
    return named(call, text)


def _gather(call: Keras) -> Value | None:
    if call["negative"] != "refused":
        return None
    x = call.input("x")
    return call.value(invoke("ops.take", x, call.input("ids"), axis=call.axis_said("axis", x.rank)))


def _take_along(call: Keras) -> Value | None:
    x = call.input("x")
    if call["negative"] != "refused":
        return None
    axis = call.axis_said("axis", x.rank)
    ids = call.build.cast(call.input("ids"), "i64")
    return call.value(invoke("ops.take_along_axis", x, ids, axis=axis))


def _one_hot(call: Keras) -> Value | None:
    ids = call.input("ids")
    usual = (call["on"], call["off"], call["negative"]) == (1, 0, "off")
    if not usual or call.out.kind != "real" or call.build.backend == "torch":
        return None  # which refuses what is out of range
    axis = call.axis_said("axis", ids.rank + 1)
    dtype = call.build.dtype(call.out.dtype)
    return call.value(invoke("ops.one_hot", ids, call["depth"], axis=axis, dtype=dtype))


def _sort(call: Keras) -> list[Value] | None:
    """PyTorch keeps the order of equal ones only where it is asked to; the others always do."""
    x = call.input("x")
    if call["nans"] == "largest" or call["descending"]:
        return None
    if call["stable"] and call.build.backend == "torch":
        return None
    axis = call.axis_said("axis", x.rank)
    return [
        call.value(invoke("ops.sort", x, axis=axis)),
        call.value(f'ops.cast({invoke("ops.argsort", x, axis=axis)}, "int64")', 1),
    ]


def _shift(call: Keras) -> Value | None:
    """Of signed numbers the sign is kept."""
    far = call["too_far"] != "open"
    if far or (call["direction"] == "right" and call["logical"] and call.out.dtype[0] != "u"):
        return None
    function = f"ops.{call['direction']}_shift"
    return call.value(invoke(function, *map(call.build.full, call.values.values())))


def _slice(call: Keras) -> Value | None:
    """Of neighbouring elements: from where, and how many."""
    x = call.input("x")
    if any(step != 1 for step in call["step"]):
        return None
    begin = [0] * x.rank
    for axis, first in zip(call.axes("axes", x.rank), call["first"], strict=True):
        begin[axis] = first
    return call.value(invoke("ops.slice", x, tuple(begin), call.out.shape))


def _slice_update(call: Keras) -> Value | None:
    """Of neighbours that fit; of others each backend does what it does."""
    begin = replaced(call)
    if not begin:  # a tensor without axes has no neighbours
        return None
    return call.value(invoke("ops.slice_update", call.input("x"), begin, call.input("update")))


PLACES: dict[str, Native] = {
    "stop_gradient": replace(plain("ops.stop_gradient"), since=KERAS_3),
    "bit_shift": Native("ops.left_shift, ops.right_shift", _shift, since=KERAS_3),
    "slice": Native("ops.slice", _slice, since=KERAS_3),
    "slice_update": Native("ops.slice_update", _slice_update, since=KERAS_3),
    "gather": Native("ops.take", _gather, since=KERAS_3),
    "take_along_axis": Native("ops.take_along_axis", _take_along, since=KERAS_3),
    "one_hot": Native("ops.one_hot", _one_hot, since=KERAS_3),
    "sort": Native("ops.sort, ops.argsort", _sort, since=KERAS_3),
    "cholesky": Native("ops.cholesky", _cholesky, since=KERAS_3),
    "determinant": _matrix("ops.det"),
    "inverse": _matrix("ops.inv"),
    "triangular_solve": Native("ops.solve_triangular", _triangular, since=KERAS_3),
    "diagonal": _along("ops.diagonal"),
    "trace": _along("ops.trace"),
    "cross": Native("ops.cross", _cross, since=KERAS_3),
    "outer": replace(of_vectors("ops.outer"), since=KERAS_3),
    "modulo": Native("ops.mod", _modulo, since=KERAS_3),
    "power": Native("ops.power", _power, since=KERAS_3),
    "isinf": Native(
        "ops.isinf", default("ops.isinf", negative=True, positive=True).rule, since=KERAS_3
    ),
    "ctc_logits": Native("ops.ctc_loss", _ctc, since=KERAS_3),
    "segment_reduce": Native("ops.segment_sum, ops.segment_max", _segments, since=KERAS_3),
    "scatter_nd": Native("ops.scatter_update", _scatter, since=KERAS_3),
    "meshgrid": Native("ops.meshgrid", _meshgrid, since=KERAS_3),
}
