"""What the branches of a choice are handed that its condition is about.

Both branches are computed here, and one of them is taken. So what a branch is handed that its
condition is about (`n` of `n > 0`) is replaced, where the branch is not taken, by a number that
the condition allows there: no branch computes what it would never be asked for.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

_T = TypeVar("_T")  # what a tensor is called by

_COMPARED: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le,
    "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_BESIDE = (1, -1, 0)  # what is added to the number of a comparison
_NEXT_TO = (1, 0, -1)  # the same where that is no whole number: one like 1e-6 keeps from 0, too
_FAR = 64  # copies of one another


@dataclass(frozen=True, slots=True)
class Step(Generic[_T]):
    """How a tensor is computed. op: a comparison, `not`, `copy`, or `Cast` of whole numbers."""

    op: str
    inputs: tuple[_T, ...]


Told = Callable[[_T], Step[_T] | None]  # how a tensor is computed


def allowed(
    told: Told[_T],
    condition: _T,
    data: _T,
    taken: bool,
    number: Callable[[_T], float | None],
) -> float | None:
    """A number that a branch may be handed, where the condition compares what it is handed with one
    that is known; None where it does not, and for numbers that are none.

    taken: whether the branch is that for true. number: the value of a tensor, where that is one
    number and known.
    """
    for test, side, holds in _comparisons(told, condition, data):
        known = number(test.inputs[1 - side])
        if known is None or not math.isfinite(known):
            continue
        for one in (known + more for more in (_BESIDE if known == int(known) else _NEXT_TO)):
            pair = (one, known) if side == 0 else (known, one)
            if _COMPARED[test.op](*pair) == (taken == holds):
                return one
    return None


def compares(told: Told[_T], condition: _T, data: _T) -> bool:
    """Whether a condition compares a tensor with another."""
    return any(True for _ in _comparisons(told, condition, data))


def _comparisons(told: Told[_T], condition: _T, data: _T) -> Iterator[tuple[Step[_T], int, bool]]:
    """The comparison that a condition is, the side of it on which a tensor is, and whether it is
    that comparison or its opposite.
    """
    test, holds = told(_original(told, condition, ("copy",))), True
    for _ in range(_FAR):
        if test is None or test.op != "not":
            break
        test, holds = told(_original(told, test.inputs[0], ("copy",))), not holds
    if test is None or test.op not in _COMPARED or len(test.inputs) != 2:
        return
    own = _original(told, data)
    for side, source in enumerate(test.inputs):
        if _original(told, source) == own:
            yield test, side, holds


def _original(told: Told[_T], source: _T, seen: tuple[str, ...] = ("copy", "Cast")) -> _T:
    """What a tensor has the numbers of: what it is a copy of, or whole numbers made real."""
    for _ in range(_FAR):
        step = told(source)
        if step is None or step.op not in seen:
            break
        source = step.inputs[0]
    return source
