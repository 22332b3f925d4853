"""Parts of a program that read nothing of one another.

Pieces are put together where a target takes as long over one call as over ten. What is wrong with
one of them is no matter of the others: each is looked into by itself, so that no defect hides
another, and nothing has to be made smaller first to see which it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from irlang.diff.calls import Case
from irlang.diff.edits import Keep, apply
from irlang.diff.verdict import FINDINGS, Verdict
from irlang.graph import Graph, Node

_WHOLE = ("timeout", "memory")  # of which each part would cost as much once more


def amiss(case: Case, verdicts: Sequence[Verdict]) -> list[Case]:
    """The parts of a program of several some of whose results are amiss, as programs; none where
    there is one part alone.
    """
    parts = strands(case.graph)
    if len(parts) < 2 or any(one.verdict in _WHOLE for one in verdicts):
        return []
    named = {one.name for one in verdicts if one.verdict in FINDINGS}
    blamed = {case.graph.outputs.get(name, name) for name in named}
    made = (
        apply(case, Keep(tuple(node.outputs[0] for node in part)), {})
        for part in parts
        if any(blamed.intersection(node.outputs) for node in part)
    )
    return [one for one in made if one is not None]


def strands(graph: Graph) -> list[list[Node]]:
    """The calls of a graph, in order, those together that a tensor connects."""
    parts: list[tuple[set[str], list[Node]]] = []
    for node in graph.nodes:
        values, nodes = {*node.operands(), *node.outputs}, [node]
        for part in [part for part in parts if part[0] & values]:
            parts.remove(part)
            values, nodes = values | part[0], part[1] + nodes
        parts.append((values, nodes))
    order = {node.name: place for place, node in enumerate(graph.nodes)}
    found = [sorted(nodes, key=lambda node: order[node.name]) for _, nodes in parts]
    return sorted(found, key=lambda nodes: order[nodes[0].name])
