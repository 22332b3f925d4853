"""ONNX's operators of order, scattering and bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from irlang.dtypes import DTYPES
from irlang.importers.labels import Malformed, labels_of
from irlang.importers.onnx_node import Node, Value
from irlang.importers.onnx_rows import axis_of, calls
from irlang.importers.value import Unsupported

Row = Callable[[Node], Value | Sequence[Value | None]]


def _scatter_elements(n: Node) -> Value:
    attrs = {"axis": axis_of(n, 0), "reduction": n.word("reduction", "none")}
    return n.call("scatter_elements", *n.x, negative="from_end", **attrs)


def _scatter_nd(n: Node) -> Value:
    return n.call("scatter_nd", *n.x, reduction=n.word("reduction", "none"), negative="from_end")


def _gather_nd(n: Node) -> Value:
    return n.call("gather_nd", *n.x, batch_dims=n.int("batch_dims", 0), negative="from_end")


def _tensor_scatter(n: Node) -> Value:
    attrs = {"axis": axis_of(n, -2), "mode": n.word("mode", "linear")}
    start = n.optional(2)
    given = [n.input(0), n.input(1), *([] if start is None else [start])]
    return n.call("tensor_scatter", *given, **attrs)


def _reverse_sequence(n: Node) -> Value:
    attrs = {"axis": n.int("time_axis", 0), "batch_axis": n.int("batch_axis", 1)}
    return n.call("reverse_sequence", *n.x, **attrs)


def _hardmax(n: Node) -> Value:
    """Before version 13 over all axes from one on."""
    x = n.input(0)
    if n.version >= 13:
        return n.call("hardmax", x, axis=axis_of(n, -1))
    axis = axis_of(n, 1) % max(x.rank, 1)
    if axis == x.rank - 1:
        return n.call("hardmax", x, axis=axis)
    flat = n.step("flat", "flatten", x, axis=axis)
    return n.call("reshape", n.step("top", "hardmax", flat), shape=list(x.shape))


def _einsum(n: Node) -> Value:
    try:
        labels, output = labels_of(n.word("equation"), [value.rank for value in n.x])
    except Malformed as reason:
        raise Unsupported(str(reason)) from None
    return n.call("einsum", *n.x, labels=labels, output=output)


def _bit_shift(n: Node) -> Value:
    more = {"too_far": "filled"} if n.version >= 28 else {}
    return n.call("bit_shift", *n.x, direction=n.word("direction").lower(), **more)


def _bit_cast(n: Node) -> Value:
    """The same bits as another integer of as many: the integer wraps."""
    x, to = n.input(0), n.element_type("to")
    own, other = DTYPES[x.dtype], DTYPES[to]
    if x.dtype == to:
        return x
    if (own.kind, other.kind) != ("int", "int") or own.bits != other.bits:
        raise Unsupported("the bits of numbers that are not integers of one width")
    return n.call("cast", x, to=to)


ROWS: dict[str, Row] = {
    "ScatterElements": _scatter_elements,
    "Scatter": _scatter_elements,
    "ScatterND": _scatter_nd,
    "GatherND": _gather_nd,
    "TensorScatter": _tensor_scatter,
    "ReverseSequence": _reverse_sequence,
    "Hardmax": _hardmax,
    "Einsum": _einsum,
    "BitShift": _bit_shift,
    "BitCast": _bit_cast,
    "BitwiseAnd": calls("bit_and"),
    "BitwiseOr": calls("bit_or"),
    "BitwiseXor": calls("bit_xor"),
    "BitwiseNot": calls("bit_not"),
}
