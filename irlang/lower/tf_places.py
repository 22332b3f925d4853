"""How TensorFlow spells order, scattering and bits."""

from __future__ import annotations

import math

from irlang.dtypes import DTYPES, integer_range
from irlang.lower.call import Call, Native
from irlang.lower.labels import native
from irlang.lower.spelling import default, invoke, named, plain
from irlang.lower.tf_builder import TensorFlowBuilder
from irlang.lower.value import Value

Tf = Call[TensorFlowBuilder]
_MOST_AXES = 5  # of sequences


def _sort(call: Tf) -> list[Value] | None:
    x = call.input("x")
    if call["nans"] == "largest":
        return None
    direction = '"DESCENDING"' if call["descending"] else None
    options = {"axis": call.axis_said("axis", x.rank), "direction": direction}
    values = call.value(invoke("tf.sort", x, **options))
    places = invoke("tf.argsort", x, stable=True, **options)
    return [values, call.build.cast(Value(places, x.shape, "i32"), "i64")]


def _logcumsumexp(call: Tf) -> Value:
    x = call.input("x")
    options = {"axis": call.axis_said("axis", x.rank), "reverse": call["reverse"] or None}
    return call.value(invoke("tf.math.cumulative_logsumexp", x, **options))


def _indices(call: Tf) -> Value:
    ids = call.input("ids")
    return ids if ids.dtype in ("i32", "i64") else call.build.cast(ids, "i64")


def _scatter_nd(call: Tf) -> Value | None:
    function = {"none": "update", "add": "add", "max": "max", "min": "min"}.get(call["reduction"])
    if function is None or call["negative"] != "refused":
        return None
    if call.input("ids").rank < 2:  # a vector is taken for many positions of one index each
        return None
    if not call.input("x").rank:  # a scalar has no place for an index
        return None
    if call["reduction"] != "none" and call.out.dtype == "bool":
        return None
    values = call.input("x"), _indices(call), call.input("updates")
    return call.value(invoke(f"tf.tensor_scatter_nd_{function}", *values))


def _segment_reduce(call: Tf) -> Value | None:
    if call["reduction"] == "mean" and DTYPES[call.out.dtype].kind == "int":
        return None
    function = f"tf.math.unsorted_segment_{call['reduction']}"
    return call.value(invoke(function, call.input("x"), _indices(call), call["segments"]))


def _segments_in_order(call: Tf) -> Value | None:
    """By rows that are sorted by their segments first.

    A segment before the first is for rows that are in none; one after the last, of a row of zeros,
    makes that there is a result for each.
    """
    x, ids = call.input("x"), _indices(call)
    whole = call["reduction"] == "mean" and DTYPES[call.out.dtype].kind == "int"
    if whole or call["segments"] < 0:  # of which the function is not told
        return None
    build, beyond = call.build, call["segments"] + 1
    count, shape = x.shape[0], x.shape[1:]
    order = build.let(Value(invoke("tf.argsort", ids, stable=True), (count,), "i32"), "order")
    own = Value(invoke("tf.gather", ids, order), (count,), ids.dtype)
    last = f"tf.constant([{beyond}], {build.dtype(ids.dtype)})"
    text = f"tf.concat([tf.maximum({own.text}, -1) + 1, {last}], axis=0)"
    places = build.let(Value(text, (count + 1,), ids.dtype), "places")
    zeros = f"tf.zeros({[1, *shape]}, {build.dtype(x.dtype)})"
    rows = f"tf.concat([{invoke('tf.gather', x, order)}, {zeros}], axis=0)"
    found = invoke(f"tf.math.segment_{call['reduction']}", Value(rows, (), x.dtype), places)
    return call.value(f"{found}[1:-1]")


def _unravel(call: Tf) -> Value:
    """The sizes have the type of the positions."""
    ids = _indices(call)
    if math.prod(call["shape"]) > integer_range("i32")[1]:
        ids = call.build.cast(ids, "i64")
    shape = f"tf.constant({list(call['shape'])}, {call.build.dtype(ids.dtype)})"
    found = Value(invoke("tf.unravel_index", ids, shape), call.out.shape, ids.dtype)
    return call.build.cast(found, call.out.dtype)


def _sequence_mask(call: Tf) -> Value | None:
    lengths = call.input("lengths")
    if lengths.rank and not call["batch_first"]:
        return None
    return call.value(invoke("tf.sequence_mask", lengths, call["size"]))


def _frames(call: Tf) -> Value:
    return call.value(invoke("tf.signal.frame", call.input("x"), call["length"], call["step"]))


def _overlap_add(call: Tf) -> Value:
    return call.value(invoke("tf.signal.overlap_and_add", call.input("x"), call["step"]))


def _shift(call: Tf) -> Value | None:
    logical = call["logical"] and call["direction"] == "right"
    if (logical and not call.out.dtype.startswith("u")) or call["too_far"] != "open":
        return None
    function = f"tf.bitwise.{call['direction']}_shift"
    return call.value(invoke(function, *map(call.build.full, call.values.values())))


def _power(call: Tf) -> Value | None:
    a, b = (call.values[name] for name in "ab")
    if a.dtype != b.dtype:
        if (DTYPES[a.dtype].kind, DTYPES[b.dtype].kind) != ("real", "int"):
            return None
        b = call.build.cast(b, a.dtype)
    return call.value(invoke("tf.pow", call.build.full(a), call.build.full(b)))


def _reverse_sequence(call: Tf) -> Value | None:
    x = call.input("x")
    if x.rank > _MOST_AXES:
        return None
    options = {"seq_axis": call.axis("axis", x.rank), "batch_axis": call.axis("batch_axis", x.rank)}
    lengths = call.input("lengths")
    lengths = lengths if lengths.dtype in ("i32", "i64") else call.build.cast(lengths, "i64")
    return call.value(invoke("tf.reverse_sequence", x, lengths, **options))


def _cross(call: Tf) -> Value | None:
    a, b = call.input("a"), call.input("b")
    if call.axis("axis", a.rank) != a.rank - 1:
        return None
    return call.value(invoke("tf.linalg.cross", a, b))


def _trace(call: Tf) -> Value | None:
    x = call.input("x")
    if call.axes("axes", x.rank) != (x.rank - 2, x.rank - 1) or call["offset"]:
        return None
    return call.value(invoke("tf.linalg.trace", x))


def _meshgrid(call: Tf) -> list[Value]:
    listed = ", ".join(call.build.full(value) for value in call.family("xs"))
    text = invoke("tf.meshgrid", listed, indexing=f'"{call["indexing"]}"')
    return named(call, text)


def _matrix(function: str) -> Native:
    """Of square matrices, of types that libraries of linear algebra have."""

    def rule(call: Tf) -> Value | None:
        if call.out.dtype not in ("f32", "f64"):
            return None
        return call.value(invoke(function, call.input("x")))

    return Native(function, rule)


def _triangular(call: Tf) -> Value | None:
    if call["unit_diagonal"] or call.out.dtype not in ("f32", "f64"):
        return None
    lower = None if call["lower"] else False
    text = invoke("tf.linalg.triangular_solve", call.input("a"), call.input("b"), lower=lower)
    return call.value(text)


def _diagonal(call: Tf) -> Value | None:
    x = call.input("x")
    beyond = call.out.shape[-1] == 0  # where there is no such diagonal
    if call.axes("axes", x.rank) != (x.rank - 2, x.rank - 1) or beyond:
        return None
    return call.value(invoke("tf.linalg.diag_part", x, k=call["offset"] or None))


def _diagonals(call: Tf) -> Value | None:
    x = call.input("x")
    if call.axes("axes", x.rank + 1) != (x.rank - 1, x.rank):
        return None
    return call.value(invoke("tf.linalg.diag", x, k=call["offset"] or None))


PLACES: dict[str, Native] = {
    "cholesky": _matrix("tf.linalg.cholesky"),
    "determinant": _matrix("tf.linalg.det"),
    "inverse": _matrix("tf.linalg.inv"),
    "triangular_solve": Native("tf.linalg.triangular_solve", _triangular),
    "diagonal": Native("tf.linalg.diag_part", _diagonal),
    "diag_embed": Native("tf.linalg.diag", _diagonals),
    "isinf": default("tf.math.is_inf", negative=True, positive=True),
    "identity": plain("tf.identity"),
    "stop_gradient": plain("tf.stop_gradient"),
    "einsum": native("tf.einsum", repeats=True),
    "sort": Native("tf.sort, tf.argsort", _sort),
    "logcumsumexp": Native("tf.math.cumulative_logsumexp", _logcumsumexp),
    "scatter_nd": Native("tf.tensor_scatter_nd_update, …_add, …_max, …_min", _scatter_nd),
    "segment_reduce": Native(
        "tf.math.unsorted_segment_sum, …",
        _segment_reduce,
        others=(Native("tf.math.segment_sum, …", _segments_in_order, eager=True),),
    ),
    **{f"bit_{name}": plain(f"tf.bitwise.bitwise_{name}") for name in ("and", "or", "xor")},
    "bit_not": plain("tf.bitwise.invert"),
    "bit_shift": Native("tf.bitwise.left_shift, tf.bitwise.right_shift", _shift),
    "power": Native("tf.pow", _power),
    "isfinite": plain("tf.math.is_finite"),
    "unravel_index": Native("tf.unravel_index", _unravel),
    "sequence_mask": Native("tf.sequence_mask", _sequence_mask),
    "frames": Native("tf.signal.frame", _frames),
    "overlap_add": Native("tf.signal.overlap_and_add", _overlap_add),
    "reverse_sequence": Native("tf.reverse_sequence", _reverse_sequence),
    "cross": Native("tf.linalg.cross", _cross),
    "trace": Native("tf.linalg.trace", _trace),
    "meshgrid": Native("tf.meshgrid", _meshgrid),
}
