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
