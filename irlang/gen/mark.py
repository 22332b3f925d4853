"""A place in the making of a program to which it can be taken back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irlang.gen.draft import Value
from irlang.graph import Graph


def mark(
    graph: Graph, live: list[Value], by_name: dict[str, Value]
) -> Callable[[], Callable[[], None]]:
    """What takes out of a program all that is added to it from now on; it gives what puts that
    back, as long as nothing else was added.
    """
    tables: tuple[dict[str, Any], ...] = (graph.inputs, graph.params, graph.values, by_name)
    sizes = [len(table) for table in tables]
    nodes, values = len(graph.nodes), len(live)
    uses = [(value, value.uses) for value in by_name.values()]

    def undo() -> Callable[[], None]:
        taken = [
            dict(list(table.items())[size:]) for table, size in zip(tables, sizes, strict=True)
        ]
        calls, results = graph.nodes[nodes:], live[values:]
        used = [(value, value.uses) for value in by_name.values()]
        for table, rows in zip(tables, taken, strict=True):
            for name in rows:
                del table[name]
        del graph.nodes[nodes:]
        del live[values:]
        _count(uses)

        def redo() -> None:
            for table, rows in zip(tables, taken, strict=True):
                table.update(rows)
            graph.nodes.extend(calls)
            live.extend(results)
            _count(used)

        return redo

    return undo


def _count(uses: list[tuple[Value, int]]) -> None:
    for value, count in uses:
        value.uses = count
