"""The domain of balls for what is linear in numbers that are exact, as adjoint equations are.

Where such a number is 0 nothing flows, whatever the slope: of an element beside it that has no
derivative (a quotient by what may be 0) nothing comes either.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from irlang.interp.ball import Ball
from irlang.interp.balls import Balls
from irlang.interp.plain import contract


class Linear(Balls):
    """Balls, where 0 times anything is 0, and 0 by anything."""

    def apply(self, function: str, args: list[Ball]) -> Ball:
        """A scalar function."""
        found = super().apply(function, args)
        if function not in ("*", "/"):
            return found
        zero = _zero(args[0]) if function == "/" else _zero(args[0]) | _zero(args[1])
        if not np.any(zero):
            return found
        value = np.where(zero, 0, found.value)
        return Ball(value, np.where(zero, 0.0, found.bound), least=found.least)

    def contract(self, factors: list[Ball], rank: int) -> Ball:
        """The sum over all axes from `rank` on of the product of the factors."""
        wild = [~np.isfinite(f.value) | ~np.isfinite(np.asarray(f.bound)) for f in factors]
        if not any(map(np.any, wild)):
            return super().contract(factors, rank)
        tame = [
            replace(f, value=np.where(w, 0.0, f.value), radius=np.where(w, 0.0, f.bound))
            for f, w in zip(factors, wild, strict=True)
        ]
        found = super().contract(tame, rank)
        flows = [1.0 * ~_zero(f) for f in factors]
        lost = np.zeros((), bool)
        for at, unknown in enumerate(wild):
            met = [unknown * f if i == at else f for i, f in enumerate(flows)]
            lost = lost | (contract(met, rank) > 0)
        return replace(found, radius=np.where(lost, np.inf, found.bound))


def _zero(ball: Ball) -> Any:
    return (np.asarray(ball.value) == 0) & (np.asarray(ball.bound) == 0)
