"""Choices of TensorFlow 1 (`tf.cond`): which input of a `Merge` is of the branch that is taken.

`Switch` hands its input to one of two results, by a condition; what is computed from the first is
the branch for false. A node that reads no tensor of its branch is held there by a control input.

Both branches are computed here, and one of them is taken. So what a branch is handed that its
condition is about (`n` of `n > 0`) is replaced, where the branch is not taken, by a number that
the condition allows there: no branch computes what it would never be asked for.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping

from irlang.importers.tf_file import Attribute, NodeDef, dtype

SWITCHES = frozenset({"Switch", "RefSwitch"})
MERGES = frozenset({"Merge", "RefMerge"})
LOOPS = frozenset({"NextIteration", "RefNextIteration"})

Reference = tuple[str, int]

_COMPARED: Mapping[str, Callable[[float, float], bool]] = {
    "Greater": operator.gt, "GreaterEqual": operator.ge, "Less": operator.lt,
    "LessEqual": operator.le, "Equal": operator.eq, "NotEqual": operator.ne,
}  # fmt: skip
_BESIDE = (1, -1, 0)  # what is added to the number of a comparison


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


def allowed(
    nodes: Mapping[str, NodeDef],
    switch: NodeDef,
    taken: bool,
    number: Callable[[Reference], float | None],
) -> int | None:
    """A whole number that a branch may be handed by a switch, where its condition compares the same
    tensor with one that is known; None where it does not, and for numbers that are none.

    number: the value of a tensor, where that is one number and known.
    """
    data, condition = switch.inputs
    for test, side, holds in _comparisons(nodes, data, condition):
        known = number(test.inputs[1 - side])
        if known is None or known != int(known):
            continue
        for one in (int(known) + more for more in _BESIDE):
            pair = (one, known) if side == 0 else (known, one)
            if _COMPARED[test.op](*pair) == (taken == holds):
                return one
    return None


def compares(nodes: Mapping[str, NodeDef], condition: Reference, data: Reference) -> bool:
    """Whether a condition compares a tensor with another."""
    return any(True for _ in _comparisons(nodes, data, condition))


def _comparisons(
    nodes: Mapping[str, NodeDef], data: Reference, condition: Reference
) -> Iterator[tuple[NodeDef, int, bool]]:
    """The comparison that a condition is, the side of it on which a tensor is, and whether it is
    that comparison or its opposite.
    """
    test, holds = nodes.get(_condition(nodes, condition)[0]), True
    for _ in range(len(nodes)):
        if test is None or test.op != "LogicalNot" or not test.inputs:
            break
        test, holds = nodes.get(_condition(nodes, test.inputs[0])[0]), not holds
    if test is None or test.op not in _COMPARED or len(test.inputs) != 2:
        return
    own = _original(nodes, data)
    for side, source in enumerate(test.inputs):
        if _original(nodes, source) == own:
            yield test, side, holds


def _original(nodes: Mapping[str, NodeDef], source: Reference) -> Reference:
    """What a tensor has the numbers of: what it is a copy of, or whole numbers made real."""
    for _ in range(len(nodes)):
        source = _condition(nodes, source)
        node = nodes.get(source[0])
        if node is None or node.op != "Cast" or not node.inputs:
            break
        kind = node.attributes.get("SrcT", Attribute("type", 0))
        if not dtype(kind.value).startswith(("i", "u")):
            break
        source = node.inputs[0]
    return source
