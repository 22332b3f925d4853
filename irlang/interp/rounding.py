"""The fourth meaning: equations evaluated over balls (`irlang.interp.balls`), value and radius.

Sums of many products go to BLAS (`ball_products`), all else to vectorised NumPy (`vector`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.arithmetic import STANDARD, Arithmetic
from irlang.dtypes import DTYPES
from irlang.interp import contraction, wide
from irlang.interp.ball_products import applies, product_ball
from irlang.interp.balls import Ball, Balls
from irlang.interp.draws import draw
from irlang.interp.schedule import Recurrence, Step, schedule
from irlang.interp.vector import Vector, inner, run_ready
from irlang.interp.views import Frame

_PRODUCT = 1 << 15  # multiplications from which on BLAS is worth its preparation


class _Plan:
    """What evaluations of one expansion share: the order, and the products in each equation."""

    def __init__(self, expansion: eq.Expansion) -> None:
        self.steps: tuple[Step, ...] = schedule(expansion.equations)
        self.found = {
            step.target: _products(step, expansion.tensors)
            for step in self.steps
            if isinstance(step, eq.Equation)
        }


def _products(
    equation: eq.Equation, tensors: Mapping[str, eq.TensorInfo]
) -> tuple[tuple[contraction.Contraction, ...], eq.Equation]:
    """The products in an equation; none are looked for where it is too small to have any."""
    if math.prod(equation.info.shape) * inner(equation.body) < _PRODUCT:
        return (), equation
    return contraction.find(equation, tensors)


def evaluate(
    expansion: eq.Expansion,
    inputs: Mapping[str, Ball],
    dtype: str,
    arithmetic: Arithmetic = STANDARD,
) -> dict[str, Ball]:
    """Every tensor of an expansion as a ball, at the precision of `dtype`.

    inputs: balls over arrays as `vector.load` gives them. Raises `InvalidInput` where a
    precondition on values fails; one that rounding leaves undecided is judged by the values alone.
    """
    domain = Balls(dtype, arithmetic)
    tensors = {name: _widened(ball, expansion.tensors[name]) for name, ball in inputs.items()}
    for one in expansion.drawn:
        if one.tensor not in tensors:
            tensors[one.tensor] = Ball(draw(one, expansion.tensors[one.tensor], 0, one.tensor))
    walk = Vector(domain, tensors, dict(expansion.tensors))
    plan = expansion.notes.get(__name__)
    if not isinstance(plan, _Plan):
        plan = expansion.notes[__name__] = _Plan(expansion)
    pending = list(expansion.checks)
    with np.errstate(all="ignore"):
        run_ready(walk, pending)
        for step in plan.steps:
            if isinstance(step, Recurrence):
                walk.recurrence(step)
            else:
                tensors[step.target] = _equation(walk, step, *plan.found[step.target])
        run_ready(walk, pending)
        for mask in expansion.unspecified:
            _unspecify(walk, mask)
    found = {name: tensors[name] for name in expansion.tensors}
    for ball in found.values():
        ball.value = wide.narrowed(ball.value)
    return found


def _widened(ball: Ball, info: eq.TensorInfo) -> Ball:
    return replace(ball, value=wide.wrapped(ball.value, info)) if info.dtype == "u64" else ball


def _equation(
    walk: Vector,
    equation: eq.Equation,
    products: tuple[contraction.Contraction, ...],
    rest: eq.Equation,
) -> Ball:
    ready = products and all(p.work >= _PRODUCT and applies(p, walk.tensors) for p in products)
    if not ready:
        return walk.equation(equation)  # type: ignore[no-any-return]
    infos = dict(walk.infos)
    for product in products:
        ball = product_ball(product, walk.domain, walk.tensors, walk.equation)
        walk.tensors[product.target] = ball
        infos[product.target] = product.info
    walk.infos = infos
    return walk.equation(rest)  # type: ignore[no-any-return]


def _unspecify(walk: Vector, mask: eq.Equation) -> None:
    """No verdict where the definition leaves the value open."""
    if 0 in mask.info.shape:
        return
    frame = Frame(
        {name: axis for axis, (name, _) in enumerate(mask.binders)},
        [(0, n) for n in mask.info.shape],
    )
    open_ = np.broadcast_to(np.asarray(walk(mask.body, frame).value, dtype=bool), mask.info.shape)
    ball = walk.tensors[mask.target]
    ball.radius = np.where(open_, np.inf, ball.bound)


def oracle_error(ball: Ball, dtype: str) -> Any:
    """The radius with the oracle's own rounding, done in float64, added to it."""
    if ball.radius is None:
        return None
    return np.asarray(ball.radius * (1 + 2.0**-53 / DTYPES[dtype].unit))
