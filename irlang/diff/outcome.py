"""What became of a program on its targets, and the verdicts on what they gave."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from irlang.adjoint_graph import leaves_choice, prepare
from irlang.arithmetic import STANDARD, Arithmetic, half
from irlang.diagnostics import InvalidInput, fail
from irlang.diff.calls import Case, broken_promises, open_values, renamed
from irlang.diff.flat import with_flat
from irlang.diff.gradients import Asked
from irlang.diff.lone import is_given
from irlang.diff.pace import PACE
from irlang.diff.promised import ruled_out
from irlang.diff.refine import STRANGE, Refiner, largest
from irlang.diff.refine_slopes import SlopeRefiner
from irlang.diff.spilled import with_spilled
from irlang.diff.totals import with_totals
from irlang.diff.verdict import FINDINGS, Verdict, judge, softened
from irlang.dtypes import DTYPES
from irlang.gen.extreme import has_extreme
from irlang.graph import Graph, differentiated, gradient_by
from irlang.interp.balls import Ball
from irlang.interp.plain import load
from irlang.interp.program import balls, given_ball, precision
from irlang.lower.pool import Result

Array = np.ndarray[Any, np.dtype[Any]]

_LOST = frozenset({"crash", "timeout", "memory"})
# What frameworks say of an operator that they have no gradient of.
_NO_SLOPE = re.compile(
    r"derivative for|not differentiable|_backward\S* not implemented|gradient registry has no"
    r"|No gradient defined for"
    r"|[Gg]radients for .* are not supported"
)
# The places in Python, of the worker and of the framework, that a compiler traces an error back to.
_FROM = r"(?:\S*\.py|<program>):\d+:\d+: "
_LINE = r"(?:.*\n *\^\n?)?"  # of the source, and what of it; older releases do not show it
_TRACED = re.compile(rf"{_FROM}note: called from\n?{_LINE}")
_AT = re.compile(rf"{_FROM}(error: .*\n?){_LINE}")

_CLOSER = 8  # times as long as the oracle needs for a program, a closer look at it takes


@dataclass(slots=True)
class Outcome:
    """What became of a case: the oracle's balls and one list of verdicts for every target.

    balls: every value's, in standard arithmetic; took: the seconds that the oracle needed for them.
    refusal: why the oracle itself has no value (a precondition on values fails). plainly: by
    target, what values are where their definitions leave them open, of one that is `inconsistent`
    (`irlang.diff.plainly`).
    """

    balls: dict[str, Ball] = field(default_factory=dict)
    verdicts: dict[str, list[Verdict]] = field(default_factory=dict)
    slopes: dict[str, Ball] = field(default_factory=dict)
    results: dict[str, Result] = field(default_factory=dict)
    refusal: InvalidInput | None = None
    closer: Refiner | None = None
    steeper: SlopeRefiner | None = None
    took: float = 0.0
    plainly: dict[str, dict[str, Ball]] = field(default_factory=dict)


def judged(
    graph: Graph,
    target: str,
    case: Case,
    outcome: Outcome,
    own: Arithmetic,
    *,
    says_no: str,
    thorough: bool,
    first: bool = False,
) -> list[Verdict]:
    """Verdicts on what a target gave, in its own arithmetic where that makes a difference.

    own: that arithmetic. says_no: what it says (a pattern) of what it does not support. thorough:
    as of a `Refiner`. first: whether nothing is known of the case that is reason to look closer.
    """
    result = outcome.results[target]
    excused = _excused(graph, case, outcome, target, says_no)
    if excused:
        return same(graph, target, excused, _reason(result))
    found = verdicts(graph, target, outcome, result)
    if outcome.refusal is not None:
        return found
    if result.status != "ok":
        return _without_gradients(found, graph, case, outcome, own, says_no, thorough)
    amiss = any(v.index is not None and v.verdict in FINDINGS for v in found)
    if outcome.closer is None:
        outcome.closer = Refiner(graph, case.values, case.catalog, thorough, sketched=not thorough)
        outcome.steeper = SlopeRefiner(graph, case.values, case.catalog, thorough)
    if own.narrower or (amiss and own != STANDARD):
        outcome = replace(outcome, balls=balls_of(case, graph, own))
        if outcome.slopes:
            outcome.slopes = slopes_of(case, graph, own, outcome.balls)
        found = verdicts(graph, target, outcome, result)
    found = _looked_at(found, graph, target, case, outcome, own, first)
    found = _with_promises(found, graph, target, case, result, own)
    if outcome.slopes:
        found = _totalled(found, graph, case, outcome, result, own)
    if any(v.verdict in FINDINGS for v in found):
        said = ruled_out(graph, case, outcome.balls, target)
        return same(graph, target, "unsupported", said) if said else found
    return found


def _without_gradients(
    found: list[Verdict],
    graph: Graph,
    case: Case,
    outcome: Outcome,
    own: Arithmetic,
    says_no: str,
    thorough: bool,
) -> list[Verdict]:
    """The verdicts on a target that has refused: on the values that it gave before it refused to
    differentiate they are those on a program of which no gradient is asked.
    """
    target = found[0].target if found else ""
    result = outcome.results.get(target)
    if result is None or not result.outputs or not outcome.slopes:
        return found
    gave = replace(result, status="ok", error="", detail={}, gradients={})
    values = Outcome(balls=outcome.balls, results={target: gave}, took=outcome.took)
    said = judged(graph, target, case, values, own, says_no=says_no, thorough=thorough)
    by_name = {verdict.name: verdict for verdict in said}
    return [by_name.get(verdict.name, verdict) for verdict in found]


def _excused(graph: Graph, case: Case, outcome: Outcome, target: str, says_no: str) -> str:
    """The verdict on a refusal that is held against no target; empty if it is."""
    result = outcome.results[target]
    if result.status != "refused":
        return ""
    if case.manner.bold or (says_no and re.search(says_no, result.error)):
        return "unsupported"
    if result.detail.get("stage") in ("contract", "gradient"):
        return ""
    if ruled_out(graph, case, outcome.balls, target):
        return "unsupported"
    if _unpromised(case, graph, outcome.balls):
        return "unstable"
    # what says that a number does not fit counts in fewer bits
    return "unsupported" if any(map(has_extreme, graph.nodes)) else ""


def _looked_at(
    found: list[Verdict],
    graph: Graph,
    target: str,
    case: Case,
    outcome: Outcome,
    own: Arithmetic,
    first: bool,
) -> list[Verdict]:
    """The verdicts, looked at more closely where they say much, and where they say little."""
    result = outcome.results[target]
    shown = {name: graph.values[value] for name, value in graph.outputs.items()}
    outputs = {name: result.outputs[name] for name in shown if name in result.outputs}
    slopes = {gradient_by(name): graph.values[name] for name in outcome.slopes}
    pulled = {gradient_by(name): slope for name, slope in result.gradients.items()}

    def coarse() -> dict[str, Ball]:
        balls = balls_of(case, graph, half(own))
        rough = slopes_of(case, graph, half(own), balls) if slopes else {}
        return _told(graph, balls, rough)

    got = {**pulled, **outputs}
    found = softened(found, {**slopes, **shown}, got, coarse, case.edge)
    if slopes:
        found = with_flat(
            graph, case, outcome.balls, outcome.slopes, outputs, result.gradients, found
        )
    known = _told(graph, outcome.balls, outcome.slopes)
    found = with_spilled(graph, case, target, known, got, found)
    may_last = _CLOSER * outcome.took
    room = PACE.affords(may_last) if first else PACE.for_one(math.inf) >= may_last
    if open_values(graph, case.catalog) or not room:
        return found
    assert outcome.closer is not None
    assert outcome.steeper is not None
    with PACE.looking_closely():
        found = outcome.closer.refined(found, outcome.balls, outputs, target, own)
        return outcome.steeper.refined(
            found, outcome.balls, outcome.slopes, result.gradients, target, own
        )


def _with_promises(
    found: list[Verdict],
    graph: Graph,
    target: str,
    case: Case,
    result: Result,
    own: Arithmetic,
) -> list[Verdict]:
    """The verdicts, with what results of calls on what is given are not, whatever they may be."""
    shown = {value: name for name, value in graph.outputs.items() if name in result.outputs}
    told: dict[str, Verdict] = {}
    for node in graph.nodes:
        if node.expansion(case.catalog).ensures and is_given(node, case):
            arrays = {n: load(graph.values[n], case.values[n]) for n in node.operands()}
            fed = {n: given_ball(graph.values[n], array, own) for n, array in arrays.items()}
            given = {v: result.outputs[shown[v]] for v in node.outputs if v in shown}
            broken = broken_promises(replace(case, graph=graph), node, fed, given, target, own)
            told.update((shown[one.name], one) for one in broken)
    return [
        renamed(told[v.name], v.name) if v.name in told and v.verdict not in FINDINGS else v
        for v in found
    ]


def _totalled(
    found: list[Verdict],
    graph: Graph,
    case: Case,
    outcome: Outcome,
    result: Result,
    own: Arithmetic,
) -> list[Verdict]:
    """The verdicts, with what gradients at ties add up to."""
    pulled = {gradient_by(name): slope for name, slope in result.gradients.items()}

    def choose(ties: str) -> dict[str, Ball]:
        sure = ties == "any" or not leaves_choice(prepare(graph, case.catalog, ties="any"))
        made = outcome.slopes if sure else slopes_of(case, graph, own, outcome.balls, ties)
        return {gradient_by(name): ball for name, ball in made.items()}

    return with_totals(found, pulled, choose)


def _told(graph: Graph, balls: Mapping[str, Ball], slopes: Mapping[str, Ball]) -> dict[str, Ball]:
    """The balls of what is judged, by the names that verdicts have."""
    gradients = {gradient_by(name): ball for name, ball in slopes.items()}
    return gradients | {name: balls[value] for name, value in graph.outputs.items()}


def _unpromised(case: Case, graph: Graph, balls: dict[str, Ball]) -> bool:
    """Whether a call was fed with what its definition leaves open: it may say so, and stop."""
    return any(
        bool(np.any(np.isinf(balls[name].bound)))
        for node in graph.nodes
        if node.expansion(case.catalog).unspecified
        for name in node.outputs
        if name in balls
    )


def is_strange(graph: Graph, outcome: Outcome, verdicts: Sequence[Verdict]) -> bool:
    """Whether a result or a gradient is farther off than those of targets mostly are, though what
    rounding may do all the way to it explains that.
    """
    for verdict in verdicts:
        backward = verdict.stage == "backward"
        name = differentiated(verdict.name) if backward else graph.outputs.get(verdict.name)
        ball = (outcome.slopes if backward else outcome.balls).get(name or "")
        if ball is None or name is None or verdict.max_error is None:
            continue
        info = graph.values[name]
        if info.kind == "real":
            reason = STRANGE * DTYPES[info.dtype].unit * largest(ball.value)
            if verdict.max_error > reason > 0:
                return True
    return False


def balls_of(case: Case, graph: Graph, own: Arithmetic) -> dict[str, Ball]:
    """The ball of every value of a program, in some arithmetic."""
    return balls(graph, case.values, case.catalog, precision(graph), own)


def slopes_of(
    case: Case, graph: Graph, own: Arithmetic, found: dict[str, Ball], ties: str = "any"
) -> dict[str, Ball]:
    """The balls of the gradients of a program's loss; found: those of its values. ties: as of
    `gradient_balls`.
    """
    from irlang.interp.gradient import gradient_balls

    return gradient_balls(graph, case.values, case.catalog, found, arithmetic=own, ties=ties)


def with_open(graph: Graph, found: list[Verdict], following: dict[str, Verdict]) -> list[Verdict]:
    """The verdicts of a program's outputs, those on what is not determined in their place."""
    replaced = []
    for verdict in found:
        value = graph.outputs.get(verdict.name)
        if value in following:
            verdict = renamed(following[value], verdict.name)
        elif verdict.name not in graph.outputs:
            told = "the gradient hangs on what is left open"
            verdict = Verdict(verdict.name, verdict.target, "unstable", message=told)
        replaced.append(verdict)
    return replaced


def same(graph: Graph, target: str, verdict: str, message: str) -> list[Verdict]:
    """One verdict on all results."""
    return [Verdict(name, target, verdict, message=message) for name in graph.outputs]


def verdicts(graph: Graph, target: str, outcome: Outcome, result: Result) -> list[Verdict]:
    """Judges what a target gave; an oracle that refuses makes a target's value `accepted`."""
    if result.status in _LOST:
        return same(graph, target, result.status, _reason(result))
    if outcome.refusal is not None:
        message = outcome.refusal.diagnostics[0].message
        return same(graph, target, "refused" if result.status == "refused" else "unstable", message)
    if result.status == "refused":
        if result.detail.get("stage") == "contract":
            raise fail(
                "lower.contract", f"{target}: the emitted program is at fault: {result.error}"
            )
        if result.detail.get("stage") != "gradient":
            return same(graph, target, "refused", _reason(result))
    found = []
    for name, value in graph.outputs.items():
        info = graph.values[value]
        if name not in result.outputs:
            found.append(Verdict(name, target, "wrong", message="the program gives no such result"))
        else:
            found.append(judge(name, target, info, outcome.balls[value], result.outputs[name]))
    for name, ball in outcome.slopes.items():
        if result.status == "refused":
            grave = "unsupported" if _NO_SLOPE.search(result.error) else "refused"
            found.append(Verdict(gradient_by(name), target, grave, message=_reason(result)))
        elif name in result.gradients:
            slope = result.gradients[name]
            found.append(judge(gradient_by(name), target, graph.values[name], ball, slope))
    return found


def not_differentiated(asked: Asked, target: str, outcome: Outcome) -> list[Verdict]:
    """A verdict for every gradient that is asked for and that the target cannot give."""
    constant = asked.lowered.constant
    reasons = {name: f"`{op}` has no derivative by it there" for name, op in constant.items()}
    if asked.reason:
        reasons = dict.fromkeys(outcome.slopes, asked.reason)
    return [
        Verdict(gradient_by(name), target, "unsupported", message=reasons[name])
        for name in outcome.slopes
        if name in reasons
    ]


def staged(graph: Graph, found: list[Verdict]) -> list[Verdict]:
    """Verdicts with the stage of training that each is of."""
    stages = {name: "loss" if v == graph.loss else "forward" for name, v in graph.outputs.items()}
    return [replace(v, stage=stages.get(v.name, "backward")) for v in found]


def _reason(result: Result) -> str:
    """What a target says, without the places in the worker that a compiler traces it back to."""
    said = _TRACED.sub("", _AT.sub(r"\1", result.error))
    signal = result.detail.get("signal")
    return f"{signal}: {said}" if signal and signal not in said else said
