"""What explains findings of many operators at once, so that one cause is one finding.

A target that keeps whole numbers of 64 bits in 32 (`irlang.lower.profile.is_short`) is wrong in
every operator that reads or gives a number that does not fit. A reduction makes numbers small where
that leaves the finding as it is: where one is left that does not fit, the finding hangs on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from irlang.diff.verdict import Verdict, at_edge
from irlang.lower.profile import is_finite, is_short

SHORTENED = "whole numbers of 64 bits in 32"
FINITE = "the largest number in the place of infinity"
LONG = "more axes than arrays have"
_LEAST, _MOST = -(2**31), 2**31 - 1
_LARGEST = float(np.finfo(np.float32).max)


def cause(target: str, verdict: Verdict, numbers: Iterable[Any], requirement: str = "") -> str:
    """The cause, in words; empty where nothing but the operator explains the finding.

    numbers: all that the smallest program is fed with, and what is right. requirement: what an
    invalid one breaks. A process that ends by so many axes as nothing has ends by what holds or
    hands over such a tensor, whichever operator gave it.
    """
    if requirement == "long":
        return LONG
    if at_edge(verdict.verdict) != "edge" or verdict.stage == "backward" or verdict.got is None:
        return ""
    if abs(verdict.got) == _LARGEST and verdict.expected in (math.inf, -math.inf):
        return FINITE if is_finite(target) else ""
    if not _LEAST <= verdict.got <= _MOST or not is_short(target):
        return ""  # what is kept in 32 bits gives no more
    return SHORTENED if any(map(_is_long, numbers)) else ""


def _is_long(numbers: Any) -> bool:
    array = np.asarray(numbers)
    return array.dtype == np.int64 and bool(((array < _LEAST) | (array > _MOST)).any())
