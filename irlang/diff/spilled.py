"""Results within the range of their type that are lost beyond it on the way.

The slope of the inverse hyperbolic sine squares what it is given, as the equations say it: of 1e20
in f32 nothing is known then, for whoever follows them overflows (`irlang.interp.overflow`). But the
slope is 1e-20, and an operator of the target's own was to give that. If it gives something else,
its formula loses what the type could hold: it is `inaccurate`, never `wrong`. A slope that the type
has no room for is not asked for, be what it is multiplied with as small as it may.

That is asked of functions alone, which go element by element: that the sum of a mean overflows is
what everybody has settled for, be it of elements or of several tensors, or of what flows back to a
number that many elements read. And of values at the edges of their types: elsewhere what overflows,
as squares in f16 do, mostly is settled for, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from irlang.arithmetic import Arithmetic
from irlang.diff.calls import Case
from irlang.diff.lone import is_given, own_program, reader
from irlang.diff.verdict import FINDINGS, Verdict, judge
from irlang.diff.weighing import weights
from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.gen.layout import is_pointwise
from irlang.graph import Graph, Node, differentiated, maker
from irlang.interp.balls import Ball
from irlang.interp.gradient import gradient_balls, without
from irlang.interp.program import balls, precision
from irlang.lower.direct import is_direct
from irlang.lower.lower import differentiates

Array = np.ndarray[Any, np.dtype[Any]]
ON_THE_WAY = "overflows on the way"
FAR = Arithmetic(far=True)


def with_spilled(
    graph: Graph,
    case: Case,
    target: str,
    known: Mapping[str, Ball],
    got: Mapping[str, Any],
    found: list[Verdict],
) -> list[Verdict]:
    """The verdicts on a target; `inaccurate` of a result of which nothing was known but for the
    range of its type, and that is another than it is in a type of the same digits that has room.

    known: balls. got: what the target gave, both by the names of results and `d_` of what gradients
    are by.
    """
    if not case.edge:
        return found
    doubtful = {v.name for v in found if v.verdict not in FINDINGS}
    open_ = {
        name: ~np.isfinite(np.broadcast_to(known[name].bound, np.shape(array)))
        for name, array in got.items()
        if name in doubtful and name in known
    }
    told = {v.name: v for v in _spilled(graph, case, target, open_, got)}
    return [told.get(verdict.name, verdict) for verdict in found]


def _spilled(
    graph: Graph, case: Case, target: str, open_: Mapping[str, Array], got: Mapping[str, Any]
) -> Iterator[Verdict]:
    own = sorted(n for n, mask in open_.items() if mask.any() and _is_own(graph, case, target, n))
    if not own:
        return
    values = within(balls(graph, case.values, case.catalog, precision(graph), FAR), graph)
    slopes = {}
    if any(name not in graph.outputs for name in own):
        ones = {w: Ball(np.ones(graph.values[w].shape)) for w in weights(graph).values()}
        weighed, alone = (
            gradient_balls(graph, case.values, case.catalog, {**values, **some}, arithmetic=FAR)
            for some in ({}, ones)
        )
        slopes = within(weighed, graph)
        for name, ball in alone.items():
            most = DTYPES[graph.values[name].dtype].largest
            slopes[name] = without(slopes[name], ~(np.abs(np.asarray(ball.value)) <= most))
    for name in own:
        value = graph.outputs.get(name)
        if value and _keeps_more(graph, values, value):
            continue
        info = graph.values[value or differentiated(name)]
        ball = values[value] if value else slopes[differentiated(name)]
        verdict = judge(name, target, info, _halved(ball, open_[name], info), got[name])
        if verdict.verdict in FINDINGS:
            yield replace(verdict, verdict="inaccurate", message=ON_THE_WAY)


def _keeps_more(graph: Graph, values: Mapping[str, Ball], value: str) -> bool:
    """Whether the call of a result has another one that its type has no room for, as an optimizer's
    sum of squares: what follows is made of that as it is kept.
    """
    node = maker(graph, value)
    others = (name for name in node.outputs if name != value) if node is not None else ()
    return any(np.isinf(values[name].bound).any() for name in others if name in values)


def within(found: Mapping[str, Ball], graph: Graph) -> dict[str, Ball]:
    """Balls of a graph's values of which nothing is known where a type has no room for them."""
    made = {}
    for name, ball in found.items():
        info = graph.values[name]
        if info.kind == "real":
            with np.errstate(invalid="ignore", over="ignore"):
                size = np.abs(np.asarray(ball.value, np.float64)) + ball.bound
            ball = without(ball, ~(size <= DTYPES[info.dtype].largest))
        made[name] = ball
    return made


def _halved(ball: Ball, mask: Array, info: TensorInfo) -> Ball:
    """A ball with half of the digits, as formulas that lose some have, where a mask is true; of the
    rest nothing is known.
    """
    value = np.broadcast_to(np.asarray(ball.value, np.float64), info.shape)
    bound = ball.bound + np.sqrt(DTYPES[info.dtype].unit) * np.abs(value)
    return Ball(value, np.where(mask, bound, np.inf))


def _call(graph: Graph, case: Case, name: str) -> Node | None:
    """The function that a result is of, or that a gradient comes through; None where that is more
    than one call of a function.
    """
    value = graph.outputs.get(name)
    node = reader(graph, differentiated(name)) if value is None else maker(graph, value)
    if node is None or not is_given(node, case):
        return None
    if any(isinstance(value, tuple) for value in node.inputs.values()):
        return None
    if value is None and adds_up(graph, node, differentiated(name)):
        return None
    return node if is_pointwise(node.expansion(case.catalog)) else None


def adds_up(graph: Graph, node: Node, name: str) -> bool:
    """Whether what flows back through a function to an operand is a sum, as an element of it is
    read by several elements of a result.
    """
    size = math.prod(graph.values[name].shape)
    return any(size < math.prod(graph.values[output].shape) for output in node.outputs)


def _is_own(graph: Graph, case: Case, target: str, name: str) -> bool:
    """Whether a target does the function by one operator of its own, and differentiates that."""
    node = _call(graph, case, name)
    if node is None or (name not in graph.outputs and not differentiates(target)):
        return False
    lowered = own_program(graph, node, target, case)
    return lowered is not None and is_direct(lowered, shaped=True)
