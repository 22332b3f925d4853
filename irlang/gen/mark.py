"""A place in the making of a program to which it can be taken back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irlang.gen.draft import Value
from irlang.graph import Graph


def mark(graph: Graph, live: list[Value], by_name: dict[str, Value]) -> Callable[[], None]:
    """What takes out of a program all that is added to it from now on."""
    tables: tuple[dict[str, Any], ...] = (graph.inputs, graph.params, graph.values, by_name)
    sizes = [len(table) for table in tables]
    nodes, values = len(graph.nodes), len(live)
    uses = [(value, value.uses) for value in by_name.values()]

    def undo() -> None:
        for table, size in zip(tables, sizes, strict=True):
            for name in list(table)[size:]:
                del table[name]
        del graph.nodes[nodes:]
        del live[values:]
        for value, count in uses:
            value.uses = count

    return undo
