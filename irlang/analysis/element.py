"""What one element of a result was computed from, for calls that take one element of each operand.

Which element that is stands in the equations: an operand is read at the result's own indices.
"""

from __future__ import annotations

from collections.abc import Mapping

from irlang import equations as eq
from irlang.adjoint_graph import Pullback
from irlang.graph import Node
from irlang.instance import Definitions
from irlang.interp.values import Array

_Place = tuple[int, ...]


def fed(
    node: Node, result: str, at: _Place, values: Mapping[str, Array], definitions: Definitions
) -> tuple[float, ...] | None:
    """The operands of an element of a result, in their order; None where it hangs on more.

    result: the name of a value that the call gives; at: the element. Of the adjoint of a call it
    is the operands of that call.
    """
    own = node.forward if isinstance(node, Pullback) else node
    formal = next((name for name, value in node.results().items() if value == result), None)
    if own is None or formal is None:
        return None
    equations = {one.target: one for one in node.expansion(definitions).equations}
    read: dict[str, _Place] = {}
    if not _single(formal, at, equations, read):
        return None
    feeds = node.feeds()
    if not own.feeds() or not own.feeds().keys() <= read.keys() & feeds.keys():
        return None
    return tuple(float(values[feeds[name]][read[name]]) for name in own.feeds())


def _single(
    tensor: str, at: _Place, equations: Mapping[str, eq.Equation], read: dict[str, _Place]
) -> bool:
    """Whether an element hangs on one element at most of every tensor; these are noted."""
    if read.setdefault(tensor, at) != at:
        return False
    if tensor not in equations:
        return True
    binders = equations[tensor].binders
    indices = dict(zip((name for name, _ in binders), at, strict=True))
    for part in eq.walk(equations[tensor].body):
        if isinstance(part, (eq.Reduce, eq.Inside)):
            return False
        if isinstance(part, eq.Read):
            place = _place(part, indices)
            if place is None or not _single(part.tensor, place, equations, read):
                return False
    return True


def _place(read: eq.Read, indices: Mapping[str, int]) -> _Place | None:
    """Where a tensor is read, if that is at numbers and at indices of the result."""
    found = []
    for index in read.index:
        if isinstance(index, eq.Index) and index.name in indices:
            found.append(indices[index.name])
        elif isinstance(index, eq.Const):
            found.append(int(index.value))
        else:
            return None
    return tuple(found)
