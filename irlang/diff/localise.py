"""Which operator is to blame: the first whose result is wrong given the target's own inputs to it.

The program is run once more with every intermediate value as an output. Each call is then judged
alone: the oracle takes the numbers that the target itself fed it, and they are exact. Where
exposing the intermediate values makes the disagreement vanish, operators were fused: `fused` finds
the fewest values that must stay hidden, and the calls that meet there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from irlang.diagnostics import NOWHERE, InvalidInput
from irlang.diff.calls import Case, judge_call
from irlang.diff.runner import Session, expose
from irlang.diff.verdict import FINDINGS, Verdict, finding_of
from irlang.dtypes import DTYPES
from irlang.graph import Graph, Node, Param, Port
from irlang.interp.program import run
from irlang.lower.pool import Result

Array = np.ndarray[Any, np.dtype[Any]]
Judged = tuple[Node, list[Verdict], dict[str, Array]]


@dataclass(frozen=True, slots=True)
class Culprit:
    """A call that is wrong by itself: what it was fed, and the judgement of its results."""

    node: Node
    verdict: Verdict
    fed: dict[str, Array]


def localise(session: Session, case: Case, target: str) -> Culprit | None:
    """The first culprit on a target; None where exposing the intermediates makes it vanish."""
    return next(culprits(session, case, target), None)


def culprits(session: Session, case: Case, target: str) -> Iterator[Culprit]:
    """All calls that are wrong by themselves on a target, in the order of the program."""
    for node, judged, fed in call_by_call(session, case, target):
        amiss = finding_of(judged)
        if amiss is not None:
            found = Culprit(node, amiss, fed)
            if _borne_out(session, case, target, found):
                yield found


def _borne_out(session: Session, case: Case, target: str, culprit: Culprit) -> bool:
    """Whether the call is wrong as a program too, or its result is in the whole one.

    An optimiser that moves a factor from one call to the next shows the value between them and
    does not use it: that the second call does not follow from it proves nothing.
    """
    alone = session.only(target)
    one = alone.compare([isolate(case, culprit)])[0].verdicts[target]
    if any(v.verdict in FINDINGS for v in one):
        return True
    names = {n for n, value in expose(case.graph).outputs.items() if value == culprit.verdict.name}
    whole = alone.compare([case], exposed=True)[0].verdicts[target]
    return any(v.name in names and v.verdict in FINDINGS and not v.estimated for v in whole)


@dataclass(frozen=True, slots=True)
class Fusion:
    """Calls that are wrong together and right apart.

    hidden: the values between them; with any one of these as a result, the program is right.
    """

    hidden: tuple[str, ...]
    nodes: tuple[Node, ...]
    verdict: Verdict


def fused(session: Session, case: Case, target: str) -> Fusion | None:
    """The fewest values that hide a disagreement; None where some call is wrong by itself.

    Every value that can be a result without the disagreement going becomes one.
    """
    alone = session.only(target)
    between = {
        value: name for name, value in expose(case.graph).outputs.items()
        if value not in case.graph.outputs.values()
    }  # fmt: skip

    def stays(shown: list[list[str]]) -> list[Verdict | None]:
        cases = [replace(case, graph=_showing(case.graph, [between[v] for v in vs], vs))
                 for vs in shown]  # fmt: skip
        return [
            finding_of([v for v in outcome.verdicts[target] if v.name in case.graph.outputs])
            for outcome in alone.compare(cases)
        ]

    first, whole = stays([[], list(between)])
    if first is None or whole is not None:
        return None
    singly = [v for v, s in zip(between, stays([[v] for v in between]), strict=True) if s]
    shown: list[str] = singly if stays([singly])[0] else []
    for value in between:
        if value not in shown and stays([[*shown, value]])[0]:
            shown.append(value)
    hidden = tuple(value for value in between if value not in shown)
    nodes = tuple(n for n in case.graph.nodes if set(hidden) & {*n.outputs, *n.operands()})
    return Fusion(hidden, nodes, first)


def misshapen(session: Session, case: Case, target: str) -> Culprit | None:
    """The first call of a program that is refused whose result has another shape than it should by
    itself, fed with what is right: what reads it is refused for that.
    """
    try:
        right = run(case.graph, case.values, case.catalog)
    except InvalidInput:
        return None
    calls = []
    for node in case.graph.nodes:
        names = tuple(node.operands())
        kinds = {name: DTYPES[case.graph.values[name].dtype].numpy for name in names}
        fed = {name: np.asarray(right[name]).astype(kinds[name]) for name in names}
        calls.append(Culprit(node, Verdict(node.name, target, "unstable"), fed))
    told = session.compare([isolate(case, one) for one in calls])
    for one, outcome in zip(calls, told, strict=True):
        amiss = finding_of(outcome.verdicts[target])
        if amiss is not None and amiss.message.startswith("shape "):
            return replace(one, verdict=amiss)
    return None


def _showing(graph: Graph, names: list[str], values: list[str]) -> Graph:
    return replace(graph, outputs={**graph.outputs, **dict(zip(names, values, strict=True))})


def call_by_call(session: Session, case: Case, target: str) -> Iterator[Judged]:
    """Every call judged by itself, given what the target itself fed it.

    Nothing where the target gives no values. This is how a program is judged whose radii have
    grown so wide on the way that its outputs have no verdict.
    """
    (result,) = session.ran([case], target)
    if result is not None and result.status == "ok":
        yield from judged_by_call(session, case, target, result)


def judged_by_call(session: Session, case: Case, target: str, result: Result) -> Iterator[Judged]:
    """Every call judged by itself, of a program that has run with all its values shown."""
    graph = expose(case.graph)
    given = dict(case.values)
    for name, value in graph.outputs.items():
        if name in result.outputs:
            given[value] = np.asarray(result.outputs[name])
    for node in case.graph.nodes:
        fed = {name: given[name] for name in node.operands() if name in given}
        if len(fed) == len(set(node.operands())):
            own = session.arithmetic[target]
            judged = judge_call(case, node, fed, given, target, own)
            if session.plain[target] and finding_of(judged) is None:
                judged = _beside_plain(session, case, target, node, fed, given) or judged
            yield node, judged, fed


def _beside_plain(
    session: Session,
    case: Case,
    target: str,
    node: Node,
    fed: dict[str, Array],
    given: Mapping[str, Array],
) -> list[Verdict]:
    """What a target gives for a call beside what its framework gives plainly, fed the same, where
    the definition leaves that open (`irlang.diff.plainly`); nothing where that says nothing.
    """
    if not node.expansion(case.catalog).unspecified:
        return []
    one = isolate(case, Culprit(node, Verdict(node.name, target, "unstable"), fed))
    names = {plain_name(value): value for value in node.outputs if value in given}
    result = Result("ok", {name: given[value] for name, value in names.items()}, {}, "", {}, 0.0)
    found = session.only(target).beside_plain(one, target, result)
    return [replace(v, name=names[v.name]) for v in found if v.verdict in FINDINGS]


def isolate(case: Case, culprit: Culprit, fixed: bool = False) -> Case:
    """The culprit alone, as a program of one call, fed with what the target had.

    fixed: parameters stay what they are, which may be constants of the target, and are not inputs.
    """
    node = culprit.node
    graph = Graph(f"{case.graph.name}_{plain_name(node.name)}", folder=case.graph.folder)
    renamed = {name: plain_name(name) for name in (*node.operands(), *node.outputs)}
    inputs: dict[str, Array] = {}
    params: dict[str, Array] = {}
    for name in dict.fromkeys(node.operands()):
        info = case.graph.values[name]
        graph.values[renamed[name]] = info
        param = case.graph.params.get(name)
        if param is not None and (fixed or param.literal):
            graph.params[renamed[name]] = (
                Param(info, None, param.initial, literal=True) if param.literal else param
            )
            params[renamed[name]] = culprit.fed[name]
        else:
            graph.inputs[renamed[name]] = Port(info)
            inputs[renamed[name]] = culprit.fed[name]
    operands = {
        formal: renamed[o] if isinstance(o, str) else tuple(renamed[m] for m in o)
        for formal, o in node.inputs.items()
    }
    outputs = tuple(renamed[name] for name in node.outputs)
    name = renamed.get(node.name, outputs[0])
    graph.nodes = [replace(node, name=name, inputs=operands, outputs=outputs, span=NOWHERE)]
    used = case.graph.used()
    for name in node.outputs:
        graph.values[renamed[name]] = case.graph.values[name]
        if name in used:  # a result that nobody reads is not asked for
            graph.outputs[renamed[name]] = renamed[name]
    return Case(graph, inputs, params, case.catalog, edge=case.edge, manner=case.manner)


def plain_name(name: str) -> str:
    """A value's name where it is an input of its own."""
    return name.replace(".", "_")
