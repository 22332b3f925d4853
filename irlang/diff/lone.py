"""Calls that stand alone in a program: what is wrong there is theirs."""

from __future__ import annotations

from irlang.diff.calls import Case
from irlang.diff.weighing import but_the_sum
from irlang.graph import Graph, Node, alone
from irlang.lower.lower import Lowered, lower


def reader(graph: Graph, name: str) -> Node | None:
    """The one call that reads a given tensor, where the loss is a sum of what it gives."""
    called = but_the_sum(graph)
    readers = [node for node in called if name in node.operands()]
    if len(readers) != 1 or len(called) == len(graph.nodes):
        return None
    (node,) = readers
    further = any(set(node.outputs) & set(other.operands()) for other in called)
    return None if further else node


def is_given(node: Node, case: Case) -> bool:
    """Whether a call reads nothing that another gives, and that has an error of its own."""
    return set(node.operands()) <= set(case.values)


def own_program(graph: Graph, node: Node, target: str, case: Case) -> Lowered | None:
    """A call alone on a target; None where the target has no operator of its own for it."""
    one = alone(node, graph.values, node.outputs)
    lowered = lower(one, target, case.catalog, {}, whole=False)
    return None if lowered.unsupported else lowered
