"""ONNX's reductions, positions of extremes, and running sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from irlang.importers.onnx_node import Node, Value
from irlang.importers.value import Unsupported

Row = Callable[[Node], Value | Sequence[Value | None]]


def _axes(n: Node, since: int) -> list[int]:
    """The axes that go. None given, or an empty list, means all of them, or none if told so."""
    given = n.ints("axes") if n.version < since else None
    if n.version >= since and n.optional(1) is not None:
        given = n.known_ints(1)
    none = n.flag("noop_with_empty_axes")
    return given or ([] if none else list(range(n.input(0).rank)))


def _reduce(op: str, since: int = 18) -> Row:
    """since: the version from which the axes are an input."""

    def row(n: Node) -> Value:
        x, attrs = n.input(0), {"axes": _axes(n, since), "keepdims": n.flag("keepdims", True)}
        if x.dtype == "bool":  # the larger of two truth values is whether either holds
            return n.call({"reduce_max": "reduce_any", "reduce_min": "reduce_all"}[op], x, **attrs)
        if x.info.kind == "int" and op in _REAL:
            real = n.step("real", "cast", x, to="f64")
            return n.call("cast", n.step("reduced", op, real, **attrs), to=x.dtype)
        return n.call(op, x, **attrs)

    return row


_REAL = {"reduce_logsumexp", "reduce_log_sum"}  # what is defined of reals alone


def _place(op: str) -> Row:
    def row(n: Node) -> Value:
        return n.call(
            op,
            n.input(0),
            axis=n.int("axis", 0),
            keepdims=n.flag("keepdims", True),
            select_last=n.flag("select_last_index"),
        )

    return row


def _running(op: str) -> Row:
    def row(n: Node) -> Value:
        attrs = {name: True for name in ("exclusive", "reverse") if n.flag(name)}
        return n.call(op, n.input(0), axis=n.known_number(1), **attrs)

    return row


def _top_k(n: Node) -> list[Value]:
    """Before version 10 the number of elements is an attribute."""
    k = n.int("k") if n.version < 10 else n.known_ints(1)[0]
    if k is None:
        raise Unsupported("`k` is missing")
    n.ignore("sorted")  # sorted is one of the orders that are allowed if it says no
    attrs = {"k": k, "axis": n.int("axis", -1)}
    if not n.flag("largest", True):
        attrs["largest"] = False
    return n.calls(2, "top_k", n.input(0), **attrs)


ROWS: dict[str, Row] = {
    "ReduceSum": _reduce("reduce_sum", 13),
    "ReduceMean": _reduce("reduce_mean"),
    "ReduceProd": _reduce("reduce_prod"),
    "ReduceMax": _reduce("reduce_max"),
    "ReduceMin": _reduce("reduce_min"),
    "ReduceL1": _reduce("reduce_l1"),
    "ReduceL2": _reduce("reduce_l2"),
    "ReduceSumSquare": _reduce("reduce_sum_square"),
    "ReduceLogSum": _reduce("reduce_log_sum"),
    "ReduceLogSumExp": _reduce("reduce_logsumexp"),
    "ArgMax": _place("argmax"),
    "ArgMin": _place("argmin"),
    "CumSum": _running("cumsum"),
    "CumProd": _running("cumprod"),
    "TopK": _top_k,
}
