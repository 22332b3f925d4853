"""TensorFlow's reductions, positions of extremes, running sums, and sorting."""

from __future__ import annotations

from typing import Any

from irlang.dtypes import DTYPES
from irlang.importers.tf_node import Node, Result, Row
from irlang.importers.value import Unsupported, Value

_WHOLE = {"reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_any", "reduce_all"}


def _reduce(op: str) -> Row:
    """The axes are the second input: one number, or several, or none."""

    def row(n: Node) -> Value:
        x = n.input(0)
        attrs: dict[str, Any] = {"axes": n.known_ints(1)}
        if n.flag("keep_dims", n.flag("keepdims")):
            attrs["keepdims"] = True
        if x.info.kind == "int" and op not in _WHOLE:
            real = n.step("real", "cast", x, to="f64")
            return n.call("cast", n.step("reduced", op, real, **attrs), to=x.dtype)
        return n.call(op, x, **attrs)

    return row


def _place(op: str) -> Row:
    def row(n: Node) -> Value:
        axis, kind = n.known_number(1), n.element_type("output_type", "i64")
        if kind == "i64":
            return n.call(op, n.input(0), axis=axis)
        return n.call("cast", n.step("place", op, n.input(0), axis=axis), to=kind)

    return row


def _running(op: str) -> Row:
    def row(n: Node) -> Value:
        attrs = {name: True for name in ("exclusive", "reverse") if n.flag(name)}
        return n.call(op, n.input(0), axis=n.known_number(1), **attrs)

    return row


def _largest(n: Node) -> Result:
    """The positions are of 32 bits unless said."""
    attrs: dict[str, Any] = {"k": n.known_number(1)}
    if not n.flag("sorted", True):
        attrs["sorted"] = False
    kind = n.element_type("index_type", "i32")
    if kind == "i64":
        return n.calls(2, "top_k", n.input(0), **attrs)
    best, at = n.steps(["", "wide"], "top_k", n.input(0), **attrs)
    return [best, n.result(1, "cast", at, to=kind) if n.wants(1) else None]


def _in_order(n: Node) -> Value:
    """The element of the last axis that has so many before it when they ascend, or descend."""
    x, place = n.input(0), n.known_number(1)
    last = x.shape[-1] if x.rank else 0
    if not 0 <= place < last:
        raise Unsupported(f"element {place} of {x.info}")
    return n.call("kth_value", x, k=last - place if n.flag("reverse") else place + 1)


def _among_largest(n: Node) -> Value:
    """Whether the logit of a label is one of the k largest; k is an attribute before version 2."""
    logits, labels = n.input(0), n.input(1)
    k = n.known_number(2) if n.kind == "InTopKV2" else n.int("k")
    if logits.rank != 2:
        raise Unsupported(f"of {logits.info}")
    wanted = n.step("wanted", "expand_dims", labels, axes=[1])
    own = n.step("own", "take_along_axis", logits, wanted, axis=1)
    larger = n.step("larger", "greater", logits, own)
    number = n.step("number", "cast", larger, to="i64")
    rank = n.step("rank", "reduce_sum", number, axes=[1])
    limit = n.const(DTYPES["i64"].numpy.type(k).reshape(()), f"{n.outputs[0]}_k")
    return n.call("less", rank, limit)


ROWS: dict[str, Row] = {
    "Sum": _reduce("reduce_sum"),
    "Mean": _reduce("reduce_mean"),
    "Prod": _reduce("reduce_prod"),
    "Max": _reduce("reduce_max"),
    "Min": _reduce("reduce_min"),
    "All": _reduce("reduce_all"),
    "Any": _reduce("reduce_any"),
    "EuclideanNorm": _reduce("reduce_l2"),
    "ArgMax": _place("argmax"),
    "ArgMin": _place("argmin"),
    "Cumsum": _running("cumsum"),
    "Cumprod": _running("cumprod"),
    "TopKV2": _largest,
    "NthElement": _in_order,
    "InTopK": _among_largest,
    "InTopKV2": _among_largest,
}
