"""Choices of TensorFlow 1 (`tf.cond`): which input of a `Merge` is of the branch that is taken.

`Switch` hands its input to one of two results, by a condition; what is computed from the first is
the branch for false. A node that reads no tensor of its branch is held there by a control input.
"""

from __future__ import annotations

from collections.abc import Mapping

from irlang.importers.handed import Step
from irlang.importers.tf_file import Attribute, NodeDef, dtype

SWITCHES = frozenset({"Switch", "RefSwitch"})
MERGES = frozenset({"Merge", "RefMerge"})
LOOPS = frozenset({"NextIteration", "RefNextIteration"})

Reference = tuple[str, int]

_CALLED = {
    "Greater": ">", "GreaterEqual": ">=", "Less": "<", "LessEqual": "<=", "Equal": "==",
    "NotEqual": "!=", "LogicalNot": "not", "Identity": "copy",
}  # fmt: skip


def branches(
    nodes: Mapping[str, NodeDef], merge: NodeDef
) -> tuple[Reference, Reference, Reference] | None:
    """The condition of a choice, and what it gives where it is true and where it is false.

    None where the two inputs are not of the two branches of one condition.
    """
    if len(merge.inputs) != 2:
        return None
    first, second = (_ports(nodes, source) for source in merge.inputs)
    for condition in first:
        if len(first[condition]) == 1 and first[condition] | second.get(condition, set()) == {0, 1}:
            if len(second[condition]) != 1:
                continue
            one, other = merge.inputs
            return (condition, one, other) if 1 in first[condition] else (condition, other, one)
    return None


def _ports(nodes: Mapping[str, NodeDef], start: Reference) -> dict[Reference, set[int]]:
    """The conditions that a value hangs on, each with the results of its switches."""
    found: dict[Reference, set[int]] = {}
    waiting, seen = [start], {start}
    while waiting:
        name, place = waiting.pop()
        node = nodes.get(name)
        if node is None:
            continue
        if node.op in SWITCHES and len(node.inputs) == 2:
            found.setdefault(_condition(nodes, node.inputs[1]), set()).add(place)
        more = [*node.inputs, *((source, 0) for source in node.after)]
        waiting += [source for source in more if source not in seen]
        seen.update(more)
    return found


def _condition(nodes: Mapping[str, NodeDef], source: Reference) -> Reference:
    """What a condition is a copy of."""
    for _ in range(len(nodes)):
        node = nodes.get(source[0])
        if node is None or node.op != "Identity" or not node.inputs:
            break
        source = node.inputs[0]
    return source


def told(nodes: Mapping[str, NodeDef], source: Reference) -> Step[Reference] | None:
    """How a tensor is computed, as far as choices ask."""
    node = nodes.get(source[0])
    if node is None or not node.inputs:
        return None
    kind = node.attributes.get("SrcT", Attribute("type", 0)) if node.op == "Cast" else None
    whole = kind is not None and dtype(kind.value).startswith(("i", "u"))
    return Step("Cast" if whole else _CALLED.get(node.op, ""), tuple(node.inputs))
