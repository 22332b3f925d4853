"""The domain of balls in which nothing is known of what hangs on an open decision.

Evaluated here, an element has a finite radius only where the equations, while their operands stay
in their balls, always take the same branches: there they are a continuous function of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.interp.ball import Ball
from irlang.interp.balls import Balls
from irlang.scalar import SCALARS

_JUMPS = frozenset({"floor", "ceil", "round", "trunc", "sign", "int", "rounded", "//", "ceildiv"})
_ORDERS = frozenset({"<", "<=", ">", ">=", "==", "!="})
_PLACES = frozenset({"argmax", "argmin", "the", "count", "any", "all"})
# Functions that are smooth in all arguments, and have no derivative by some, which these are.
_UNSLOPED = {
    name: tuple(at for at, slope in enumerate(row.derivative) if not slope)
    for name, row in SCALARS.items()
    if "" in row.derivative and any(row.derivative) and name not in _JUMPS | {"select"}
}
_TOLD = _JUMPS | _ORDERS | _UNSLOPED.keys() | {"%", "isnan", "isinf"}


def decides(expression: eq.Expr) -> bool:
    """Whether an expression has anything in it that may jump, as a step, a comparison or a place
    may, or of whose slope nothing is known.
    """
    return any(
        (isinstance(part, eq.Apply) and part.function in _TOLD)
        or (isinstance(part, eq.Reduce) and part.kind in _PLACES)
        for part in eq.walk(expression)
    )


class Decisive(Balls):
    """Balls, without the jumps between branches that rounding may choose."""

    def select(self, condition: Ball, yes: Ball, no: Ball) -> Ball:
        """A choice; nothing is known where it is open."""
        return _unknown(super().select(condition, yes, no), np.asarray(condition.bound) > 0)

    def apply(self, function: str, args: list[Ball]) -> Ball:
        """A scalar function; nothing is known where a step is open, nor where an argument is not
        exact by which there is no derivative.
        """
        found = super().apply(function, args)
        if function in _JUMPS:
            return _unknown(found, np.asarray(found.bound) > 0)
        for at in _UNSLOPED.get(function, ()):
            found = _unknown(found, np.asarray(args[at].bound) > 0)
        if function == "%":
            return _unknown(found, np.asarray(super().apply("//", args).bound) > 0)
        return found

    def pick(self, ball: Ball, at: Any, certain: Ball) -> Ball:
        """The elements at positions; nothing is known where another may be meant."""
        doubt = np.any(np.asarray(certain.bound) > 0, axis=-1) if np.ndim(certain.bound) else False
        return _unknown(super().pick(ball, at, certain), doubt)


def _unknown(found: Ball, where: Any) -> Ball:
    if not np.any(where) or np.asarray(found.value).dtype.kind == "b":
        return found
    found.radius = np.where(where, np.inf, found.bound)
    found.ends = None
    return found
