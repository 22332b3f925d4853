"""Gradients at ties, held against what all that are allowed have in common: their sum.

Of equal elements, any may have what flows back to their largest, or they may share it. Each element
of a gradient is then anything from nothing to all of it; but together they have all of it once, and
a framework that gives every one of them the whole is wrong, though each element is allowed.

What is the same of all allowed gradients is found by two of them, that choose differently wherever
there is a choice (`ties` of `irlang.adjoint`): where both have the same sum, that hangs on no
choice. Where a function has a kink, as relu has at 0, their sums differ, and nothing is said;
nor is it of a sum that kinks allow which are chosen apart from one another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from irlang.diff.verdict import Verdict
from irlang.interp.balls import Ball

Array = np.ndarray[Any, np.dtype[Any]]
Choose = Callable[[str], Mapping[str, Ball]]  # gradients by a way to choose, by their names
_WIDE = "rounding"  # the verdict on a gradient of which much is allowed


def with_totals(found: list[Verdict], got: Mapping[str, Array], choose: Choose) -> list[Verdict]:
    """Verdicts on gradients; `wrong` where much is allowed of each element, but not such a sum.

    got: what a target gave, by the names that verdicts have. choose gives all that is allowed for
    `any`, and is called only where there may be a choice.
    """
    wide = [v.name for v in found if v.verdict == _WIDE and v.name in got]
    if not wide:
        return found
    told = dict(_wrong(wide, got, choose))
    return [
        Verdict(v.name, v.target, "wrong", message=told[v.name]) if v.name in told else v
        for v in found
    ]


def _wrong(names: list[str], got: Mapping[str, Array], choose: Choose) -> Iterator[tuple[str, str]]:
    """The gradients whose sum is none that is allowed, and what to say of them."""
    every, first = choose("any"), choose("first")
    chosen = [n for n in names if n in first and np.any(first[n].bound < every[n].bound)]
    others, shared = (choose("others"), choose("shared")) if chosen else ({}, {})
    for name in chosen:
        one, other = _total(first[name]), _total(others[name])
        off = one[1] + other[1]
        with np.errstate(over="ignore", invalid="ignore"):  # of infinite ones the sum is none
            sum_ = float(np.sum(got[name], dtype=np.float64))
            same, far = abs(one[0] - other[0]) <= off, abs(sum_ - one[0]) > 2 * off
        if np.isfinite(off) and same and far and _beyond(sum_, *_total(shared[name])):
            said = f"the gradient adds up to {sum_:.8g}, not to {one[0]:.8g}"
            yield name, f"{said}, whatever is chosen at ties"


def _beyond(number: float, value: float, radius: float) -> bool:
    """Whether a number is none that a ball holds."""
    return math.isfinite(radius) and abs(number - value) > 2 * radius


def _total(ball: Ball) -> tuple[float, float]:
    """The sum of the elements, and how far it may be off."""
    shape = np.shape(ball.value)
    with np.errstate(over="ignore", invalid="ignore"):
        parts = ball.value, np.broadcast_to(ball.bound, shape)
        value, radius = (float(np.sum(part, dtype=np.float64)) for part in parts)
    return value, radius
