"""Gradients where a function has slopes on either side, and the equations say little.

Where adjoint equations multiply an infinity by 0, as those of the root of a sum of squares do at 0,
they say nothing of a gradient. The definition does: where its results change by no more than in
proportion to a step of an element, whichever way the step goes and however small it is, there are
slopes, and what a framework takes for the gradient lies between them. NaN does not.

Where they say nothing because a number on the way is beyond the range of its type, as x³ is of 95
in f16 though its coefficient is 0, nothing is said here either (docs/rounding.md); but NaN of a
function at the edges of a type is `inaccurate` then (`irlang.diff.spilled`).

Where the two slopes differ, as those of a length at 0 do, the function has a kink, and a framework
may take any slope between them: what the adjoint equations say there follows from how the
definition tells its cases apart. A number that is outside of both is as wrong as before; of a
function that goes element by element it is, though the equations allow it (`irlang.diff.kinks`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from irlang.adjoint_graph import free_prefix
from irlang.diagnostics import InvalidInput
from irlang.diff.calls import Case
from irlang.diff.kinks import SLOPES, held_to_slopes, is_finite, said_little
from irlang.diff.lone import is_given, own_program, reader
from irlang.diff.spilled import FAR, adds_up, within
from irlang.diff.verdict import FINDINGS, Verdict
from irlang.diff.weighing import weights
from irlang.dtypes import DTYPES
from irlang.gen.layout import is_pointwise
from irlang.graph import Graph, Node, differentiated, is_gradient
from irlang.interp import program
from irlang.interp.balls import Ball
from irlang.interp.gradient import gradient_balls, hanging
from irlang.lower.lower import differentiates

Array = np.ndarray[Any, np.dtype[Any]]
AT_KINKS = "between the slopes on either side"
BY_ARMS = "through a call that is written by its definition"
_OF_NUMBERS = frozenset({"wrong", "inaccurate", "edge"})
_TRIED = 6  # elements of a gradient whose slopes are looked for
_STEPS = (2.0**-8, 2.0**-13, 2.0**-18)  # of an element that is less than 1, or else of 1
_FAR = 2.0**20  # beyond it whole numbers are all that some types have
_STEADY = 1.1  # times what the slope of the largest step may be, that of the least is
_LOST = 2.0**-50 * 1e3  # of a result: what of a difference is rounding, times how much it may be


def with_flat(
    graph: Graph,
    case: Case,
    balls: Mapping[str, Ball],
    slopes: Mapping[str, Ball],
    results: Mapping[str, Array],
    gradients: Mapping[str, Array],
    found: list[Verdict],
) -> list[Verdict]:
    """The verdicts; `nonfinite` of a gradient that is NaN where nothing was known of it, but that
    its call has slopes there: of a call for which the target has an operator of its own. What a
    root and a square are composed to has the gradient that these two have.

    balls, slopes: of the values and the gradients. results, gradients: the target's, by the names
    of outputs and of what they are by.
    """
    given = {graph.outputs[name]: np.asarray(array) for name, array in results.items()}
    judged = []
    for verdict in found:
        name = differentiated(verdict.name)
        known = name in slopes and name in gradients
        got = np.asarray(gradients[name] if known else ())
        if not known or got.shape != case.values[name].shape:  # it says that it has another shape
            pass
        elif verdict.verdict in _OF_NUMBERS:
            if _is_at_kinks(graph, case, slopes[name], name, got):
                verdict = replace(verdict, verdict="unstable", message=AT_KINKS)
        elif verdict.verdict not in FINDINGS:
            open_ = ~np.isfinite(np.broadcast_to(slopes[name].bound, got.shape))
            if np.any(open_ & np.isnan(got)):
                verdict = _judged(graph, case, balls, given, verdict, open_ & np.isnan(got))
            else:
                wide = said_little(slopes[name], got, graph.values[name].dtype)
                node = _own(graph, case, name, verdict.target) if wide.any() else None
                if node is not None and is_finite(node, case.values):
                    verdict = held_to_slopes(graph, case, node, wide, verdict, got)
        judged.append(verdict)
    return judged


def without_arms(graph: Graph, native: Collection[str], found: list[Verdict]) -> list[Verdict]:
    """The verdicts; `unstable` of a gradient that is NaN where it comes through a call that is
    written by its definition. A choice hands 0 to the arm that it does not take, and what is
    infinite there makes NaN of it: that is how the call is written, and no operator is wrong.

    native: the calls for which the target, which differentiates, has an operator of its own.
    """
    composed = {n for node in graph.nodes if node.name not in native for n in node.operands()}
    return [
        Verdict(v.name, v.target, "unstable", message=BY_ARMS, stage=v.stage)
        if v.verdict in FINDINGS and is_lost(v) and differentiated(v.name) in composed
        else v
        for v in found
    ]


def is_lost(verdict: Verdict) -> bool:
    """Whether a gradient that is a number is none."""
    if verdict.expected is None or verdict.got is None:
        return False
    backward = verdict.stage == "backward" or is_gradient(verdict.name)
    return backward and math.isfinite(verdict.expected) and math.isnan(verdict.got)


def _judged(
    graph: Graph,
    case: Case,
    balls: Mapping[str, Ball],
    given: Mapping[str, Array],
    verdict: Verdict,
    nothing: Array,
) -> Verdict:
    """The verdict on a gradient that is NaN where nothing is known of it."""
    name = differentiated(verdict.name)
    node = _own(graph, case, name, verdict.target)
    if node is None or not is_finite(node, case.values):
        return verdict
    is_function = case.edge and is_pointwise(node.expansion(case.catalog))
    is_function = is_function and not adds_up(graph, node, name)
    near = nothing & ~_beside_nothing(graph, case, node, balls, given, name)
    if not is_function and not near.any():
        return verdict  # whatever there is in a larger range, which takes as long as all of this
    dtype = program.precision(graph)
    far = program.balls(graph, case.values, case.catalog, dtype, FAR)
    slopes = gradient_balls(graph, case.values, case.catalog, far, arithmetic=FAR)
    # nor would anything be known, were there larger numbers
    in_any_range = ~np.isfinite(np.broadcast_to(slopes[name].bound, nothing.shape))
    ways = [("nonfinite", near & in_any_range, False)]
    if is_function:
        beside = _beside_nothing(graph, case, node, within(far, graph), given, name)
        ways.append(("inaccurate", nothing & ~in_any_range & ~beside, True))
    for kind, mask, wide in ways:
        for index, low, high in _with_slopes(graph, case, node, name, mask, wide):
            return Verdict(
                verdict.name, verdict.target, kind, None, None, index, (low + high) / 2, np.nan,
                f"{SLOPES} {low:.6g} and {high:.6g}", "backward",
            )  # fmt: skip
    return verdict


def _is_at_kinks(graph: Graph, case: Case, ball: Ball, name: str, got: Array) -> bool:
    """Whether all elements that are off lie between the slopes on either side, which differ."""
    node = _call(graph, case, name)
    if node is None or not np.isfinite(got).all():
        return False
    off = np.abs(got.astype(np.float64) - ball.value) > ball.bound
    places = np.argwhere(off)
    if not 0 < len(places) <= _TRIED:
        return False
    for place in places:
        index = tuple(map(int, place))
        sides = _sides(graph, case, node, name, index)
        if sides is None or not sides[0] < sides[1]:
            return False
        middle, half = sum(sides) / 2, (sides[1] - sides[0]) / 2
        if abs(float(got[index]) - middle) > half * (1 + DTYPES[graph.values[name].dtype].unit):
            return False
    return True


def told(ball: Ball, verdict: Verdict) -> Ball:
    """The gradient that a verdict is on, with what it says of the element that it names."""
    if not verdict.message.startswith(SLOPES):
        return ball
    value = np.array(ball.value, np.float64)
    value[verdict.index] = verdict.expected
    return replace(ball, value=value)


def _call(graph: Graph, case: Case, name: str) -> Node | None:
    """The call that reads a tensor, and inputs and parameters alone; None where it leaves values
    open.
    """
    node = reader(graph, name)
    if node is None or not is_given(node, case) or node.expansion(case.catalog).is_open:
        return None
    return node


def _own(graph: Graph, case: Case, name: str, target: str) -> Node | None:
    """The call that reads a tensor, where the target has an operator of its own for it and
    differentiates that.
    """
    node = _call(graph, case, name)
    if node is None:
        return None
    # what cannot give gradients is handed the adjoint equations
    if not differentiates(target) or own_program(graph, node, target, case) is None:
        return None
    return node if len(_formals(node, name)) == 1 else None


def _formals(node: Node, name: str) -> list[str]:
    return [formal for formal, value in node.feeds().items() if value == name]


def _beside_nothing(
    graph: Graph,
    case: Case,
    node: Node,
    balls: Mapping[str, Ball],
    given: Mapping[str, Array],
    name: str,
) -> Array:
    """Of which elements there hangs a result of a call that is no number, or is not known: of such
    there is no difference.
    """
    expansion = node.expansion(case.catalog)
    prefix = free_prefix(expansion.tensors)
    nothing = {
        prefix + formal: _unknown(balls[value], given.get(value))
        for formal, value in node.results().items()
    }
    (formal,) = _formals(node, name)
    found = hanging(expansion, nothing, prefix + formal)
    return np.broadcast_to(np.asarray(found), graph.values[name].shape)


def _with_slopes(
    graph: Graph, case: Case, node: Node, name: str, mask: Array, wide: bool
) -> Iterator[tuple[tuple[int, ...], float, float]]:
    """Of elements that a mask is true of, those by which a call has slopes, with these."""
    places = np.argwhere(mask)
    for place in places[:: max(1, -(-len(places) // _TRIED))]:
        index = tuple(map(int, place))
        sides = _sides(graph, case, node, name, index, wide)
        if sides is not None:
            yield index, *sides


def _unknown(ball: Ball, got: Array | None) -> Array:
    value = np.asarray(ball.value, np.float64)
    unknown = ~np.isfinite(value) | ~np.isfinite(np.broadcast_to(ball.bound, value.shape))
    return np.asarray(unknown if got is None else unknown | ~np.isfinite(got.astype(np.float64)))


def _sides(
    graph: Graph, case: Case, node: Node, name: str, index: tuple[int, ...], wide: bool = False
) -> tuple[float, float] | None:
    """The slopes of what a call gives, weighed as in the loss, by an element of a tensor, from
    below and from above; None where there is none. wide: whether a step from a large element is
    one in proportion.
    """
    array = np.asarray(case.values[name], np.float64)
    size = float(abs(array[index]))
    if not size < np.inf or (size > _FAR and not wide):
        return None
    unit = size if size > _FAR else min(size, 1.0) or 1.0
    base = _results(graph, case, node, {})
    steepest, slopes = [], []
    for step in _STEPS:
        pair = []
        for side in (-step * unit, step * unit):
            moved = array.copy()
            moved[index] += side
            after = _results(graph, case, node, {name: moved})
            pair.append(None if base is None or after is None else _quotients(base, after, side))
        if any(one is None for one in pair):
            return None
        steepest.append(max(_largest(one) for one in pair if one is not None))
        slopes = [_weighed(graph, case, one) for one in pair if one is not None]
    first, *_, last = steepest
    limit = np.sqrt(DTYPES[graph.values[name].dtype].largest)
    if not max(steepest) <= limit or last > _STEADY * first + _LOST:
        return None
    return min(slopes), max(slopes)


def _results(
    graph: Graph, case: Case, node: Node, moved: Mapping[str, Array]
) -> dict[str, Array] | None:
    """The real results of a call; None where it has none, as a precondition on values fails."""
    alone = replace(graph, nodes=[node], outputs={}, loss=None)
    values = {**{operand: case.values[operand] for operand in node.operands()}, **moved}
    try:
        found = program.run(alone, values, case.catalog)
    except InvalidInput:
        return None
    return {n: found[n] for n in node.outputs if graph.values[n].kind == "real"}


def _quotients(
    base: Mapping[str, Array], after: Mapping[str, Array], step: float
) -> dict[str, Array] | None:
    """By how much results differ, by the step; None where differences are lost to rounding.

    What is no number before and after has not changed; what is one only once has no slope.
    """
    found = {}
    for name, value in base.items():
        old, new = np.asarray(value), np.asarray(after[name])
        with np.errstate(invalid="ignore", over="ignore"):
            quotient = np.where(old == new, 0.0, (new - old) / step)
        quotient[np.isnan(old) & np.isnan(new)] = 0.0
        quotient[np.isnan(quotient)] = np.inf
        size = np.max(np.abs(old[np.isfinite(old) & (quotient != 0)]), initial=0.0)
        if size * _LOST > abs(step) * max(1.0, _largest({name: quotient})):
            return None
        found[name] = quotient
    return found


def _largest(quotients: Mapping[str, Array]) -> float:
    return max((float(np.max(np.abs(q), initial=0.0)) for q in quotients.values()), default=0.0)


def _weighed(graph: Graph, case: Case, quotients: Mapping[str, Array]) -> float:
    """The slope of the loss, a sum in which every element of a result has a weight."""
    weight = weights(graph)
    with np.errstate(invalid="ignore"):
        return float(
            sum(np.sum(q * case.values[weight[n]]) for n, q in quotients.items() if n in weight)
        )
