"""What generated programs have met: operators with their types, attributes and ranks, and pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from irlang import ast
from irlang.graph import Graph, Node

Cell = tuple[str, str, str, int]


def attribute_class(op: ast.Op, attrs: dict[str, Any]) -> str:
    """The discrete part of a call's attributes.

    The choice of an enum, a flag or an element type counts by value; a number only by whether
    it was given.
    """
    parts = []
    for attr in op.attrs:
        if attr.name not in attrs:
            continue
        value = attrs[attr.name]
        named = isinstance(value, (bool, str))
        parts.append(f"{attr.name}={str(value).lower()}" if named else attr.name)
    return ",".join(parts)


class Coverage:
    """Counts; steers `irlang.gen.build.generate` towards what they lack.

    operators: calls by name. cells: by operator, element type of the first input, attribute
    class and rank of the first input. pairs: by producer and consumer.
    """

    def __init__(self) -> None:
        self.operators: Counter[str] = Counter()
        self.cells: Counter[Cell] = Counter()
        self.pairs: Counter[tuple[str, str]] = Counter()

    def note(self, graph: Graph) -> None:
        """Counts the calls of a program."""
        producers = {value: node.op.name for node in graph.nodes for value in node.outputs}
        for node in graph.nodes:
            self.operators[node.op.name] += 1
            self.cells[cell(node, graph)] += 1
            for operand in node.operands():
                if operand in producers:
                    self.pairs[producers[operand], node.op.name] += 1

    def weights(self, names: Iterable[str]) -> list[float]:
        """How much each operator is wanted: the less it was used, the more."""
        if not self.operators:
            return [1.0 for _ in names]
        used = self.operators.get
        return [1.0 / (1 + used(name, 0)) ** 2 for name in names]

    def summary(self) -> dict[str, Any]:
        """For reports: how many different ones were met, and how often each operator."""
        return {
            "operators": dict(sorted(self.operators.items())),
            "cells": len(self.cells),
            "pairs": len(self.pairs),
        }


def cell(node: Node, graph: Graph) -> Cell:
    """What a call counts as."""
    first = next(node.operands(), None)
    info = None if first is None else graph.values[first]
    dtype, rank = ("", 0) if info is None else (info.dtype, len(info.shape))
    return node.op.name, dtype, attribute_class(node.op, node.attrs), rank


def features(graph: Graph) -> Counter[str]:
    """How many calls of a program have what is often wrong: axes of no or one element, no axis,
    attributes that count from the end, strides beyond their window, other types than f32.
    """
    found: Counter[str] = Counter(calls=len(graph.nodes))
    for node in graph.nodes:
        infos = [graph.values[name] for name in (*node.operands(), *node.outputs)]
        found["empty axis"] += any(0 in info.shape for info in infos)
        found["axis of size 1"] += any(1 in info.shape for info in infos)
        found["no axis"] += any(not info.shape for info in infos)
        found.update({info.dtype for info in infos})
        numbers = {name: _least(value) for name, value in node.attrs.items()}
        found["negative axis"] += any(
            least is not None and least < 0 and ("axis" in name or "axes" in name)
            for name, least in numbers.items()
        )
        stride = node.instance.binding.scope.names.get("stride")
        found["stride beyond window"] += isinstance(stride, tuple) and any(
            step > size for step, size in zip(stride, _windows(node), strict=False)
        )
    return +found


def _least(value: Any) -> int | None:
    numbers = value if isinstance(value, tuple) else (value,)
    return min((n for n in numbers if type(n) is int), default=None)


def _windows(node: Node) -> tuple[int, ...]:
    """The sizes of a call's window: the attribute of that name, or the axes `K` of a kernel."""
    names = node.instance.binding.scope.names
    window = names.get("window", names.get("K"))
    return window if isinstance(window, tuple) else ()
