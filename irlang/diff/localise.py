"""Which operator is to blame: the first whose result is wrong given the target's own inputs to it.

The program is run once more with every intermediate value as an output. Each call is then judged
alone: the oracle takes the numbers that the target itself fed it, and they are exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from irlang.diff.calls import Case, judge_call
from irlang.diff.runner import Session, expose
from irlang.diff.verdict import FINDINGS, Verdict, gravest
from irlang.graph import Graph, Node, Param, Port

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
    for node, judged, fed in call_by_call(session, case, target):
        worst = gravest([v.verdict for v in judged])
        if worst in FINDINGS:
            return Culprit(node, next(v for v in judged if v.verdict == worst), fed)
    return None


def call_by_call(session: Session, case: Case, target: str) -> Iterator[Judged]:
    """Every call judged by itself, given what the target itself fed it.

    Nothing where the target gives no values. This is how a program is judged whose radii have
    grown so wide on the way that its outputs have no verdict.
    """
    outcome = session.compare([case], exposed=True)[0]
    result = outcome.results.get(target)
    if result is None or result.status != "ok":
        return
    graph = expose(case.graph)
    given = dict(case.values)
    for name, value in graph.outputs.items():
        if name in result.outputs:
            given[value] = np.asarray(result.outputs[name])
    for node in case.graph.nodes:
        fed = {name: given[name] for name in node.operands() if name in given}
        if len(fed) == len(set(node.operands())):
            yield node, judge_call(case, node, fed, given, target), fed


def isolate(case: Case, culprit: Culprit) -> Case:
    """The culprit alone, as a program of one call, fed with what the target had."""
    node = culprit.node
    graph = Graph(f"{case.graph.name}_{_plain(node.name)}", folder=case.graph.folder)
    renamed = {name: _plain(name) for name in (*node.operands(), *node.outputs)}
    inputs: dict[str, Array] = {}
    params: dict[str, Array] = {}
    for name in dict.fromkeys(node.operands()):
        info = case.graph.values[name]
        graph.values[renamed[name]] = info
        param = case.graph.params.get(name)
        if param is not None and param.literal:
            graph.params[renamed[name]] = Param(info, None, param.initial, literal=True)
            params[renamed[name]] = culprit.fed[name]
        else:
            graph.inputs[renamed[name]] = Port(info)
            inputs[renamed[name]] = culprit.fed[name]
    operands = {
        formal: renamed[o] if isinstance(o, str) else tuple(renamed[m] for m in o)
        for formal, o in node.inputs.items()
    }
    outputs = tuple(renamed[name] for name in node.outputs)
    graph.nodes = [
        Node(
            renamed[node.name] if node.name in renamed else outputs[0],
            node.op,
            operands,
            node.attrs,
            outputs,
            node.instance,
        )
    ]
    used = case.graph.used()
    for name in node.outputs:
        graph.values[renamed[name]] = case.graph.values[name]
        if name in used:  # a result that nobody reads is not asked for
            graph.outputs[renamed[name]] = renamed[name]
    return Case(graph, inputs, params, case.catalog, edge=case.edge)


def _plain(name: str) -> str:
    return name.replace(".", "_")
