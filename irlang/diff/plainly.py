"""What a framework does plainly, where a definition leaves open what is right.

Of the Heaviside function of NaN no definition says anything: whatever a framework gives is right.
But a mode that compiles a program, or optimises it, is to give what the same framework gives
without. So the program is run as it is, too, and what that gives stands where the definition is
silent; the oracle goes on from there. What the mode gives else is `inconsistent`.

The two may round otherwise. Of reals half of the digits are compared, so that what is told is of
another kind: NaN beside a number, an infinity, another side of a jump. Where it hangs on rounding
whether anything is open, nothing is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from irlang.arithmetic import Arithmetic
from irlang.catalog import Catalog
from irlang.diagnostics import InvalidInput
from irlang.diff.calls import Case, open_values
from irlang.diff.gradients import expose
from irlang.diff.outcome import Outcome
from irlang.diff.promised import ruled_out
from irlang.diff.verdict import FINDINGS, INCONSISTENT, Verdict, judge
from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.graph import Graph
from irlang.interp.balls import Ball
from irlang.interp.plain import load
from irlang.interp.program import balls, precision
from irlang.lower.direct import operators
from irlang.lower.lower import lower
from irlang.lower.pool import Program, Result

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Judged:
    """A case with what became of it. graph: whose results the verdicts are of."""

    case: Case
    graph: Graph
    outcome: Outcome


def compare_plainly(
    target: str,
    plain: str,
    judged: Sequence[Judged],
    own: Arithmetic,
    ran: Callable[[list[Program]], list[Result]],
) -> None:
    """Verdicts on a target anew, where nothing was known of what it gave but what it gives plainly.

    plain: that target, and ran: what runs its programs. own: the arithmetic of the first.
    """
    asked = []
    for one in judged:
        if _is_silent(one, target):
            case = one.case
            graph = expose(case.graph)
            lowered, other = (
                lower(graph, name, case.catalog, case.params, manner=case.manner)
                for name in (plain, target)
            )
            # a mode that lacks an operator composes it of others, which may do as they like
            if not lowered.unsupported and operators(lowered) == operators(other):
                program = Program(lowered.kind, lowered.code, case.inputs, lowered.params)
                asked.append((one, graph, program))
    results = ran([program for *_, program in asked]) if asked else []
    for (one, graph, _), result in zip(asked, results, strict=True):
        known = _filled(one.case, graph, plain, result, own)
        if known is None:
            continue
        found = [_again(v, one, known, plain) for v in one.outcome.verdicts[target]]
        new = found != one.outcome.verdicts[target]
        if new and not ruled_out(one.graph, one.case, one.outcome.balls, target):
            one.outcome.verdicts[target] = found
            one.outcome.plainly[target] = known


def excuse(
    target: str,
    plain: str,
    judged: Sequence[Judged],
    says_no: str,
    ran: Callable[[list[Program]], list[Result]],
) -> None:
    """What a mode refuses is `unsupported` where its framework says without the mode that it has no
    kernel for that (`says_no`, a pattern): it may say so in other words than the mode, whose words
    would be held against it.

    plain, ran: as of `compare_plainly`.
    """
    asked = []
    for one in judged if says_no else ():
        if all(v.verdict == "refused" for v in one.outcome.verdicts[target]):
            case = one.case
            lowered = lower(one.graph, plain, case.catalog, case.params, manner=case.manner)
            if not lowered.unsupported:
                program = Program(lowered.kind, lowered.code, case.inputs, lowered.params)
                asked.append((one, program))
    results = ran([program for _, program in asked]) if asked else []
    for (one, _), result in zip(asked, results, strict=True):
        if result.status == "refused" and re.search(says_no, result.error):
            one.outcome.verdicts[target] = [
                replace(v, verdict="unsupported") for v in one.outcome.verdicts[target]
            ]


def leaves_open(graph: Graph, catalog: Catalog) -> bool:
    """Whether a definition may leave results of a program open, while none is drawn by chance."""
    some = any(node.expansion(catalog).unspecified for node in graph.nodes)
    return some and not open_values(graph, catalog)


def _is_silent(one: Judged, target: str) -> bool:
    """Whether a definition may be why nothing is known of some of what a target gave."""
    case, outcome = one.case, one.outcome
    result = outcome.results.get(target)
    if outcome.refusal is not None or result is None or result.status != "ok":
        return False
    if not leaves_open(case.graph, case.catalog):
        return False
    values = [one.graph.outputs.get(v.name) for v in outcome.verdicts[target] if _is_free(v)]
    return any(value is not None and _open(outcome.balls[value]).any() for value in values)


def _is_free(verdict: Verdict) -> bool:
    return verdict.verdict not in (*FINDINGS, "unsupported")


def _open(ball: Ball) -> Array:
    return ~np.isfinite(np.asarray(ball.bound, np.float64))


def _filled(
    case: Case, graph: Graph, plain: str, result: Result, own: Arithmetic
) -> dict[str, Ball] | None:
    """Every value, where definitions leave it open as a framework has it plainly.

    None where that gives nothing, or something that is wrong: what follows from that is no measure
    of anything.
    """
    if result.status != "ok" or not graph.outputs.keys() <= result.outputs.keys():
        return None
    given = {value: result.outputs[name] for name, value in graph.outputs.items()}
    if any(np.shape(array) != graph.values[name].shape for name, array in given.items()):
        return None
    instead = {name: _rough(graph.values[name], array) for name, array in given.items()}
    try:
        dtype = precision(graph)
        known = balls(graph, case.values, case.catalog, dtype, own, instead=instead)
    except InvalidInput:
        return None  # what it has there breaks a requirement of what comes next
    found = (judge(n, plain, graph.values[n], known[n], array) for n, array in given.items())
    return None if any(v.verdict in FINDINGS for v in found) else known


def _rough(info: TensorInfo, array: Any) -> Ball:
    """What a framework gave, by half of its digits."""
    value = load(info, np.asarray(array))
    if info.kind != "real":
        return Ball(value)
    row, size = DTYPES[info.dtype], np.abs(value)
    return Ball(value, np.where(np.isfinite(size), np.sqrt(row.unit) * size + row.tiny, 0.0))


def _again(verdict: Verdict, one: Judged, known: Mapping[str, Ball], plain: str) -> Verdict:
    """The verdict on a result, where nothing was known of it but what the framework has there."""
    value = one.graph.outputs.get(verdict.name)
    if value is None or not _is_free(verdict):
        return verdict
    was, ball = one.outcome.balls[value], known[value]
    info = one.graph.values[value]
    bound = np.where(np.broadcast_to(_open(was), info.shape), ball.bound, np.inf)
    got = one.outcome.results[verdict.target].outputs[verdict.name]
    found = judge(verdict.name, verdict.target, info, Ball(ball.value, bound), got)
    if found.verdict not in FINDINGS:
        return verdict
    said = f"the definition leaves it open, and {plain} gives {found.expected!r}"
    return replace(found, verdict=INCONSISTENT, stage=verdict.stage, message=said)
