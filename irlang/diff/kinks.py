"""Gradients at kinks and ties, held to the slopes beside them.

Where a definition tells its cases apart by what rounding may turn, as `max(x, 0) +
expm1(min(x, 0))` does at 0, its adjoint equations allow any part of every case: from 0 to 2, where
1 is on either side. A framework may take what is between the slopes beside. Of a function that goes
element by element these are asked for: its operands are moved a little in all ways in which they
may lie to one another, and the hull of what the equations say there, with its radii, is what is
allowed (the generalised gradient; Clarke, Optimization and Nonsmooth Analysis, theorem 2.5.1).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from irlang.adjoint_graph import Pullback
from irlang.arithmetic import Arithmetic
from irlang.diagnostics import InvalidInput
from irlang.diff.calls import Case
from irlang.diff.verdict import FINDINGS, Verdict
from irlang.diff.weighing import weighed, weights
from irlang.dtypes import DTYPES
from irlang.gen.layout import is_pointwise
from irlang.graph import Graph, Node, alone, differentiated
from irlang.interp import program
from irlang.interp.ball import Ball
from irlang.interp.gradient import gradient_balls
from irlang.interp.plain import load

Array = np.ndarray[Any, np.dtype[Any]]
Slope = Callable[[Mapping[str, Array]], Ball]  # of operands that are moved
SLOPES = "the slopes on either side are"
_OPERANDS = 2  # real ones, of which all ways to move are tried
_STEP = 2.0**-8  # of half of the digits of an element that is less than 1, or else of 1
_APART = 2.0**-10  # of that is what the other operand moves


def said_little(ball: Ball, got: Array, dtype: str) -> Array:
    """Where a gradient has less than half of its digits in its ball, and is a number."""
    bound = np.broadcast_to(ball.bound, got.shape)
    wide = bound > _half(dtype) * (np.abs(np.asarray(ball.value)) + bound)
    return np.asarray(np.isfinite(bound) & wide & np.isfinite(got))


def _half(dtype: str) -> float:
    """What is left of a number by half of the digits."""
    return math.sqrt(DTYPES[dtype].unit)


def is_finite(node: Node, values: Mapping[str, Array]) -> bool:
    """Whether all that a call is fed with are finite numbers: of a weight that is infinite, and of
    what it is multiplied with, nobody asks for slopes.
    """
    reals = (np.asarray(values[name]) for name in node.operands())
    return all(np.isfinite(array).all() for array in reals if array.dtype.kind not in "iub")


def held_to_slopes(
    graph: Graph, case: Case, node: Node, wide: Array, verdict: Verdict, got: Array
) -> Verdict:
    """The verdict; `wrong` where a gradient, though its ball has it, is beyond the slopes beside.

    node: the one call that reads what the gradient is by. wide: where its ball says little.
    """
    name, weight = differentiated(verdict.name), weights(graph)
    shown = [value for value in node.outputs if value in weight]
    if not shown or not _is_held(case, node):
        return verdict
    one, catalog = weighed(alone(node, graph.values, shown), case.catalog, shown)
    fed = {n: case.values[n] for n in node.operands()}
    fed |= {own: case.values[weight[value]] for value, own in weights(one).items()}
    dtype = program.precision(one)

    def slope(moved: Mapping[str, Array]) -> Ball:
        values = {**fed, **moved}
        found = program.balls(one, values, catalog, dtype)
        return gradient_balls(one, values, catalog, found)[name]

    half = _half(graph.values[name].dtype)
    return _compared(_between(node, fed, half, slope), half, wide, verdict, got)


def pulled_held_to_slopes(
    case: Case,
    node: Pullback,
    fed: Mapping[str, Array],
    given: Mapping[str, Array],
    arithmetic: Arithmetic,
    native: Collection[str],
    verdicts: list[Verdict],
) -> list[Verdict]:
    """The same of a call of a gradient, by what it was fed.

    case: of which it is a call. native: the calls for which the target, which differentiates, has
    an operator of its own.
    """
    forward = node.forward
    if forward is None or forward.name not in native or not is_finite(node, fed):
        return verdicts
    if not _is_held(case, forward):
        return verdicts
    infos, dtype = case.graph.values, program.precision(case.graph)

    def slopes(moved: Mapping[str, Array]) -> Mapping[str, Ball]:
        values = {n: Ball(load(infos[n], array)) for n, array in {**fed, **moved}.items()}
        return program.node_balls(node, values, case.catalog, dtype, arithmetic)

    def slope(of: str, moved: Mapping[str, Array]) -> Ball:
        return slopes(moved)[of]

    here, held = slopes({}), []
    for verdict in verdicts:
        name = verdict.name
        if verdict.verdict not in FINDINGS and name in given and name in node.outputs:
            got = np.asarray(given[name])
            half = _half(infos[name].dtype)
            wide = said_little(here[name], got, infos[name].dtype)
            if wide.any():
                ends = _between(forward, fed, half, partial(slope, name))
                verdict = _compared(ends, half, wide, verdict, got)
        held.append(verdict)
    return held


def _is_held(case: Case, node: Node) -> bool:
    """Whether slopes beside say all: of a function that goes element by element, the definition of
    which does not let what bounds an operand count or not (`grad … ties beyond`).
    """
    expansion = node.expansion(case.catalog)
    return not expansion.bounded and is_pointwise(expansion)


def _compared(
    ends: tuple[Array, Array] | None, half: float, wide: Array, verdict: Verdict, got: Array
) -> Verdict:
    """The verdict on a gradient that is to lie between ends, but for half of its digits."""
    if ends is None:
        return verdict
    low, high = ends
    with np.errstate(invalid="ignore"):
        actual = got.astype(np.float64)
        slack = half * np.maximum(np.abs(low), np.abs(high))
        beyond = np.maximum(low - actual, actual - high) - slack
        beyond = np.where(wide & ~np.isnan(beyond), beyond, -np.inf)
    index = tuple(map(int, np.unravel_index(int(np.argmax(beyond)), beyond.shape)))
    if not beyond[index] > 0:
        return verdict
    below, above, own = float(low[index]), float(high[index]), float(actual[index])
    middle, radius = (below + above) / 2, (above - below) / 2
    return replace(
        verdict, verdict="wrong", max_error=abs(own - middle), radius=radius, index=index,
        expected=middle, got=own, message=f"{SLOPES} {below:.5g} and {above:.5g}",
    )  # fmt: skip


def _between(
    node: Node, fed: Mapping[str, Array], half: float, slope: Slope
) -> tuple[Array, Array] | None:
    """What a gradient of a call lies between beside the point; None where that is not known: of too
    many operands, or where nothing beside has a value.
    """
    arrays = {n: np.asarray(fed[n]) for n in node.operands()}
    real = {n: array for n, array in arrays.items() if array.dtype.kind not in "iub"}
    if len(real) > _OPERANDS:
        return None
    low: Array | None = None
    high: Array | None = None
    for moved in _beside({n: a.astype(np.float64) for n, a in real.items()}, _STEP * half):
        try:
            ball = slope(moved)
        except InvalidInput:  # there is no value
            continue
        with np.errstate(invalid="ignore"):
            below, above = ball.value - ball.bound, ball.value + ball.bound
        low = below if low is None else np.minimum(low, below)
        high = above if high is None else np.maximum(high, above)
    return None if low is None or high is None else (np.asarray(low), np.asarray(high))


def _beside(values: Mapping[str, Array], step: float) -> Iterator[dict[str, Array]]:
    """Operands moved a little, each up or down, and the one far less than the other."""
    for order in itertools.permutations(values):
        for signs in itertools.product((-1.0, 1.0), repeat=len(order)):
            moved = {}
            for place, (name, sign) in enumerate(zip(order, signs, strict=True)):
                size = np.abs(values[name])
                unit = np.where(size == 0, 1.0, np.minimum(size, 1.0))
                moved[name] = values[name] + sign * step * _APART**place * unit
            yield moved
