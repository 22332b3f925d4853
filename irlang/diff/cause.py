"""What explains findings of many operators at once, so that one cause is one finding.

A target that keeps whole numbers of 64 bits in 32 (`irlang.lower.profile.is_short`) is wrong in
every operator that reads or gives a number that does not fit. A reduction makes numbers small where
that leaves the finding as it is: where one is left that does not fit, the finding hangs on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from irlang.diff.verdict import at_edge
from irlang.lower.profile import is_short

if TYPE_CHECKING:
    from irlang.diff.finding import Found

SHORTENED = "whole numbers of 64 bits in 32"
_LEAST, _MOST = -(2**31), 2**31 - 1


def cause(found: Found) -> str:
    """The cause, in words; empty where nothing but the operator explains the finding."""
    v = found.verdict
    if at_edge(v.verdict) != "edge" or v.stage == "backward" or v.got is None:
        return ""
    if not _LEAST <= v.got <= _MOST or not is_short(found.target):
        return ""  # what is kept in 32 bits gives no more
    return SHORTENED if any(map(_is_long, _numbers(found))) else ""


def _numbers(found: Found) -> Iterable[Any]:
    """All that the smallest program is fed with, and what is right."""
    yield from found.reduced.values.values()
    yield from (ball.value for ball in found.expected.values())


def _is_long(numbers: Any) -> bool:
    array = np.asarray(numbers)
    return array.dtype == np.int64 and bool(((array < _LEAST) | (array > _MOST)).any())
