"""What of a TensorFlow graph is read: a graph of training also holds gradients, updates of
variables, summaries and files, and does not say what its results are.

Results are the nodes that depend on an input or a variable and that nothing goes on to use but
gradients and summaries; and what variables become by an input, like the centres of classes that
are moved towards it, though not by gradients. What leads to a result is read; the rest is not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from irlang.importers.tf_cond import SWITCHES
from irlang.importers.tf_file import NodeDef

INPUTS = frozenset({"Placeholder", "PlaceholderV2", "IteratorGetNext"})
VARIABLES = frozenset({"Variable", "VariableV2", "VarHandleOp"})
ASSIGNMENTS = frozenset({"Assign", "AssignVariableOp"})

# What changes a state, or writes or reads one.
_STATE = re.compile(
    r"(Assign.*|.*Apply[A-Z].*|Save.*|Restore.*|Scatter(Add|Sub|Mul|Div|Min|Max|Update|NdUpdate|"
    r"NdAdd|NdSub)|ResourceScatter.*|.*ShardedFilename|MergeV2Checkpoints|WriteFile|Queue.*|"
    r"Is.*Initialized.*|VarIsInitialized.*|DestroyResourceOp|Stage|CountUpTo|ResourceCountUpTo)"
)
# What shows values, or has none.
_SHOWN = re.compile(r"(.*Summary.*|NoOp|Assert|PrintV2|LogMatchingDeadNodes|Abort)")
_SHOWN_OR_STATE = re.compile(f"{_SHOWN.pattern}|{_STATE.pattern}")
_BACKWARD = re.compile(r"(^|/)gradients(_\d+)?(/|$)")
# What is no result by itself, for it computes nothing.
_PASSED = frozenset(
    {"Identity", "StopGradient", "Const", "PlaceholderWithDefault", "ReadVariableOp"}
)


# What hangs on the shape of its input alone.
_OF_SHAPES = frozenset({"Shape", "ShapeN", "Rank", "Size", "ZerosLike", "OnesLike"})


def results(nodes: Sequence[NodeDef], *, beside: bool = True) -> list[str]:
    """The names of the nodes that are results, in their order.

    beside: also what variables become, and what hangs on variables alone, like a penalty that
    nothing adds to a loss; where the graph has no input, these are all that there are.
    """
    by_name = {node.name: node for node in nodes}
    kinds = INPUTS | VARIABLES if beside else INPUTS
    if not any(node.op in INPUTS for node in nodes):
        kinds = VARIABLES
    users: dict[str, list[NodeDef]] = {}
    for node in nodes:
        for name, _ in node.inputs:
            users.setdefault(name, []).append(node)

    def dependent(is_start: Callable[[NodeDef], bool]) -> set[str]:
        return _dependent([node.name for node in nodes if is_start(node)], by_name, users)

    fed = dependent(lambda node: node.op in kinds)
    kept = dependent(lambda node: node.op in INPUTS) - dependent(_backward) if beside else ()
    found = []
    for node in nodes:
        if node.name not in fed or _unread(node) or _passes(node, by_name):
            continue
        ends = _SHOWN_OR_STATE if node.name in kept else _SHOWN
        if all(ends.fullmatch(user.op) or _backward(user) for user in users.get(node.name, ())):
            found.append(node.name)
    return found


def live(by_name: Mapping[str, NodeDef], wanted: Sequence[str]) -> set[str]:
    """The names of the nodes that the wanted ones are computed from."""
    found: set[str] = set()
    waiting = list(wanted)
    while waiting:
        name = waiting.pop()
        if name not in found and name in by_name:
            found.add(name)
            waiting += [source for source, _ in by_name[name].inputs]
    return found


def _dependent(
    starts: Sequence[str], by_name: Mapping[str, NodeDef], users: Mapping[str, Sequence[NodeDef]]
) -> set[str]:
    """The nodes that depend on one of some nodes by its numbers, and these themselves."""
    found: set[str] = set()
    waiting = list(starts)
    while waiting:
        name = waiting.pop()
        if name not in found and by_name[name].op not in _OF_SHAPES:
            found.add(name)
            waiting += [user.name for user in users.get(name, ())]
    return found


def _unread(node: NodeDef) -> bool:
    """Whether a node is there for something else than its value."""
    state = _STATE.fullmatch(node.op) or _SHOWN.fullmatch(node.op)
    return bool(state) or _backward(node) or node.op in INPUTS | VARIABLES


def _backward(node: NodeDef) -> bool:
    return node.op.endswith("Grad") or bool(_BACKWARD.search(node.name))


def _passes(node: NodeDef, by_name: Mapping[str, NodeDef]) -> bool:
    """Whether a node hands on an input or a variable as it is, or stands for a branch."""
    seen = set()
    while node.op in _PASSED and node.inputs and node.name not in seen:
        seen.add(node.name)
        source = by_name.get(node.inputs[0][0])
        if source is None:
            return False
        node = source
    return node.op in INPUTS | VARIABLES | SWITCHES or node.op == "Const"
