"""ONNX's operators that read, or write, at positions which are elements of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from irlang.importers.onnx_node import Node, Value

Row = Callable[[Node], Value | Sequence[Value | None]]


def _gather(n: Node) -> Value:
    return n.call("gather", n.input(0), n.input(1), axis=n.int("axis", 0), negative="from_end")


def _gather_elements(n: Node) -> Value:
    x, ids, axis = n.input(0), n.input(1), n.int("axis", 0)
    return n.call("take_along_axis", x, ids, axis=axis, negative="from_end")


def _one_hot(n: Node) -> Value:
    """`values` are the number elsewhere and the number at the position."""
    ids = n.input(0)
    if ids.info.kind == "real":
        ids = n.step("ids", "cast", ids, to="i64")
    off, on = n.known(2).reshape(-1).tolist()
    depth = n.known_ints(1)[0]
    attrs = {"depth": depth, "axis": n.int("axis", -1), "on": on, "off": off}
    return n.call("one_hot", ids, **attrs, negative="from_end", to=n.input(2).dtype)


ROWS: dict[str, Row] = {
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "OneHot": _one_hot,
}
