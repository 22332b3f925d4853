"""Where numbers leave the range of the type that they are computed in.

A result that is infinite though its operands are finite is an overflow, unless the function has a
pole there. A program may scale first, fuse a multiplication with an addition, associate otherwise,
or overflow earlier: of such a result nothing is known, nor of what is made of it. By itself it is
known all the same: whoever does the one operation of exact numbers, and shows the result, gives an
infinity (IEEE 754-2019, 7.4). `Ball.beyond` says where that is so.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.interp.ball import Ball
from irlang.scalar_row import Scalar


def exceeding(row: Scalar, args: list[Ball], value: Any, limit: float) -> tuple[Any, Any]:
    """Where a function of finite numbers is surely beyond `limit`, and where it has overflowed.

    The first for exact arguments, as in `Ball.beyond`; None for both where nothing is too large.
    """
    found = np.asarray(value)
    if found.dtype.kind != "f":
        return None, None
    with np.errstate(invalid="ignore", over="ignore"):
        large = np.abs(found) > limit
        if not large.any():
            return None, None
        for arg in args:
            large = large & np.isfinite(np.asarray(arg.value, np.float64))
        if row.poles is not None:
            large = large & ~row.poles(*(arg.value for arg in args))
        elif row.arity == 1:
            large = large & ~np.isin(args[0].value, [e for e in row.domain if np.isfinite(e)])
    if not large.any():
        return None, None
    sure = large
    for arg in args:
        if arg.radius is not None:
            sure = sure & (np.asarray(arg.radius) == 0)
    return sure, large & np.isinf(found)


def alone(body: eq.Expr) -> bool:
    """Whether the body of an equation is one operation of what it reads, or none."""
    if isinstance(body, eq.Apply):
        return all(isinstance(arg, (eq.Read, eq.Const, eq.Size)) for arg in body.args)
    return isinstance(body, eq.Read)


def shown(ball: Ball) -> tuple[Any, Any]:
    """The value and the radius of a ball that is judged by itself, and read by nobody."""
    if ball.beyond is None:
        return ball.value, ball.bound
    return (
        np.where(ball.beyond, np.copysign(np.inf, ball.value), ball.value),
        np.where(ball.beyond, 0.0, ball.bound),
    )
