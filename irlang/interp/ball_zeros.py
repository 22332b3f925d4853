"""Zeros of which the sign is open.

IEEE 754 gives every zero a sign, and division, square roots and `atan2` tell them apart. Where the
order of evaluation, or what a sum starts from, decides about the sign, either is right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irlang.interp.ball import Ball


def either_zero(value: Any, doubtful: Any) -> Any:
    """Where a zero of real numbers may have either sign; None where none may."""
    zero = (np.asarray(value).dtype.kind == "f") & (np.asarray(value) == 0) & doubtful
    return zero if np.any(zero) else None


def extreme_zero(ball: Ball, value: Any, axes: tuple[int, ...]) -> Any:
    """Where the largest or the least of some numbers is a zero, and there are zeros of either sign
    among them.
    """
    given = np.asarray(ball.value)
    zeros = given == 0
    if given.dtype.kind != "f" or not np.any(zeros):
        return None
    below = np.signbit(given)
    either = [np.any(zeros & (signs | _open(ball)), axis=axes) for signs in (below, ~below)]
    return either_zero(value, either[0] & either[1])


def sum_of_zeros(ball: Ball, value: Any, axes: tuple[int, ...]) -> Any:
    """Where all that is added up is -0: the sum is -0, but 0 where it starts from there."""
    given = np.asarray(ball.value)
    if given.dtype.kind != "f" or not given.size or not np.any(np.asarray(value) == 0):
        return None
    return either_zero(value, np.all((given == 0) & (np.signbit(given) | _open(ball)), axis=axes))


def sum_of_zero_products(
    factors: Sequence[Ball], value: Any, total: Any, added: Callable[[list[Any]], Any]
) -> Any:
    """The same of a sum of products.

    total: the sum of their sizes. added: adds up products of arrays of the shapes of the factors.
    """
    zeros = (np.asarray(value) == 0) & (np.asarray(total) == 0)
    if not np.any(zeros) or not all(np.size(factor.value) for factor in factors):
        return None
    if any(factor.signless is not None for factor in factors):
        return either_zero(value, zeros)
    if not any(np.any(np.signbit(factor.value)) for factor in factors):
        return None
    signs = [np.copysign(1.0, factor.value) for factor in factors]
    return either_zero(value, zeros & (added(signs) == -added([np.abs(one) for one in signs])))


def _open(ball: Ball) -> Any:
    return np.False_ if ball.signless is None else ball.signless
