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
Ports = dict[Reference, set[int]]  # results of switches, by their condition

_CALLED = {
    "Greater": ">", "GreaterEqual": ">=", "Less": "<", "LessEqual": "<=", "Equal": "==",
    "NotEqual": "!=", "LogicalNot": "not", "Identity": "copy",
}  # fmt: skip


class Choices:
    """The choices of a graph: what is behind one is taken, whatever its own condition was."""

    def __init__(self, nodes: Mapping[str, NodeDef]) -> None:
        self._nodes = nodes
        self._behind: dict[str, Ports | None] = {}  # by the name of a merge; None under way

    def branches(self, merge: NodeDef) -> tuple[Reference, Reference, Reference] | None:
        """The condition of a choice, and what it gives where it is true and where it is false.

        None where the two inputs are not of the two branches of one condition.
        """
        if len(merge.inputs) != 2:
            return None
        first, second = (self._ports(source) for source in merge.inputs)
        one, other = merge.inputs
        for condition, ports in first.items():
            if len(ports) == len(second.get(condition, ())) == 1 and ports != second[condition]:
                return (condition, one, other) if 1 in ports else (condition, other, one)
        return None

    def _ports(self, *starts: Reference) -> Ports:
        """The conditions that values hang on, each with the results of its switches."""
        found: Ports = {}
        waiting, seen = [*starts], {*starts}
        while waiting:
            name, place = waiting.pop()
            node = self._nodes.get(name)
            if node is None:
                continue
            if node.op in SWITCHES and len(node.inputs) == 2:
                found.setdefault(_condition(self._nodes, node.inputs[1]), set()).add(place)
            behind = self._open(node) if node.op in MERGES else None
            if behind is not None:
                for condition, ports in behind.items():
                    found.setdefault(condition, set()).update(ports)
                continue
            more = [*node.inputs, *((source, 0) for source in node.after)]
            waiting += [source for source in more if source not in seen]
            seen.update(more)
        return found

    def _open(self, merge: NodeDef) -> Ports | None:
        """What both branches of a choice hang on beside its own condition, by which the same may be
        asked again behind it; None of what is no choice of two.
        """
        if merge.name not in self._behind:
            self._behind[merge.name] = None
            chosen = self.branches(merge)
            if chosen is not None:
                ports = self._ports(*merge.inputs)
                del ports[chosen[0]]
                self._behind[merge.name] = ports
        return self._behind[merge.name]


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
