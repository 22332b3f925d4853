"""What rows of the mapping tables have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irlang.importers.onnx_node import Node, Value


def calls(op: str, **attrs: Any) -> Callable[[Node], Value]:
    """A row for an operator that has the same inputs, and no attributes."""

    def row(n: Node) -> Value:
        return n.call(op, *n.x, **attrs)

    return row


def real(op: str, **defaults: float) -> Callable[[Node], Value]:
    """A row for an operator of one input whose attributes are numbers of the same names."""

    def row(n: Node) -> Value:
        given = {name: n.real(name, default) for name, default in defaults.items()}
        return n.call(op, n.input(0), **given)

    return row


def axis_of(n: Node, default: int) -> int:
    """The attribute `axis`."""
    return int(n.int("axis", default))


def only_float(n: Node, x: Value) -> Value:
    """A tensor of real numbers, whatever it was."""
    return x if x.info.kind == "real" else n.step("real", "cast", x, to="f64")
