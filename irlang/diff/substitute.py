"""Which operator is to blame, by substitution: one program that runs across several targets.

Every call is bound to a target of its own, or to the oracle, rounded to the types of the program;
calls run one by one through the workers, values being carried in between. One binding at a time is
replaced, in reverse topological order, and the calls are ranked by how much the results change.
Then the culprit is verified: it alone replaced makes the disagreement vanish, it alone kept makes
it stay. What a definition leaves open, as the mask of a dropout, and what follows from it, is
another number on every target, and is not compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from irlang.adjoint_graph import Pullback
from irlang.diagnostics import InvalidInput, fail
from irlang.diff.calls import Case, open_values
from irlang.diff.edits import typed
from irlang.diff.localise import Culprit, isolate
from irlang.diff.runner import Session, program
from irlang.diff.substitute_gradient import differentiated, owner, pulled
from irlang.diff.verdict import FINDINGS, Verdict, gravest, judge
from irlang.graph import Node
from irlang.interp.balls import Ball
from irlang.interp.program import balls, precision, run
from irlang.lower.lower import lower

Array = np.ndarray[Any, np.dtype[Any]]
ORACLE = "oracle"
Binding = Mapping[str, str]  # the target of every call, by the call's first result


@dataclass(frozen=True, slots=True)
class Change:
    """What replacing one call does: the mean absolute change of the results, and their verdict.

    slope: the mean absolute change of the gradients by parameters and inputs, if they are compared.
    """

    node: Node
    change: float
    verdict: str
    slope: float = 0.0


@dataclass(slots=True)
class Substitution:
    """The table, the largest change first, and what verification said.

    whole: the verdict of the program run call by call on the target. vanishes, stays: whether the
    culprit alone replaced makes it vanish, and alone kept makes it stay; None without a culprit.
    """

    target: str
    whole: str
    table: list[Change] = field(default_factory=list)
    culprit: Node | None = None
    vanishes: bool | None = None
    stays: bool | None = None


def substitute(session: Session, case: Case, target: str, grad: bool = False) -> Substitution:
    """Replaces the calls of a target one at a time by the oracle, with `grad` in the gradient too.

    Raises `InvalidInput` where a precondition on values fails.
    """
    calls, results_of = case.graph.nodes, list(case.graph.outputs.values())
    if grad and case.graph.loss is not None:
        results_of.append(case.graph.loss)
        case = differentiated(session, case, target)
    open_ = open_values(case.graph, case.catalog)
    slopes = [v for v in case.graph.outputs.values() if v not in (*results_of, *open_)]
    results_of = [v for v in results_of if v not in open_]
    first = [node.outputs[0] for node in calls]
    own = dict.fromkeys(first, target)
    bindings: list[Binding] = [own]
    bindings += [{**own, name: ORACLE} for name in reversed(first)]
    whole, *replaced = across(session, case, bindings)
    found = Substitution(target, verdict_of(case, whole, target))
    for node, results in zip(reversed(calls), replaced, strict=True):
        verdict = verdict_of(case, results, target)
        change, slope = (_apart(names, whole, results) for names in (results_of, slopes))
        found.table.append(Change(node, change, verdict, slope))
    found.table.sort(key=lambda row: (row.verdict in FINDINGS, -max(row.change, row.slope)))
    if found.whole not in FINDINGS:
        return found
    found.culprit = found.table[0].node
    name = found.culprit.outputs[0]
    (kept,) = across(session, case, [{n: target if n == name else ORACLE for n in first}])
    found.vanishes = found.table[0].verdict not in FINDINGS
    found.stays = verdict_of(case, kept, target) in FINDINGS
    return found


def across(
    session: Session, case: Case, bindings: Sequence[Binding]
) -> list[dict[str, Array] | str]:
    """The values of a program for every binding, or the verdict of the call that gave none.

    Calls of equal operands on one target run once.
    """
    states: list[dict[str, Array] | str] = [dict(case.values) for _ in bindings]
    for node in case.graph.nodes:
        call = owner(node)
        name = None if call is None else call.outputs[0]
        work: dict[tuple[str, bytes], list[int]] = {}
        for number, state in enumerate(states):
            if not isinstance(state, str):
                fed = b"".join(np.ascontiguousarray(state[v]).tobytes() for v in node.operands())
                to = ORACLE if name is None else bindings[number][name]
                work.setdefault((to, fed), []).append(number)
        by_target: dict[str, list[list[int]]] = {}
        for (target, _), numbers in work.items():
            by_target.setdefault(target, []).append(numbers)
        for target, groups in by_target.items():
            fed_with = [states[numbers[0]] for numbers in groups]
            for numbers, results in zip(
                groups, _run(session, case, target, node, fed_with), strict=True
            ):
                for number in numbers:
                    state = states[number]
                    if isinstance(results, str) or isinstance(state, str):
                        states[number] = results if isinstance(results, str) else state
                    else:
                        states[number] = {
                            **state, **dict(zip(node.outputs, results, strict=True))
                        }  # fmt: skip
    return states


def _call(case: Case, node: Node, state: dict[str, Array] | str) -> Case:
    assert not isinstance(state, str)
    fed = {name: state[name] for name in node.operands()}
    alone = isolate(case, Culprit(node, Verdict(node.outputs[0], "", "agrees"), fed))
    # every result is asked for: a later call, or nobody, reads it
    made = alone.graph.nodes[0].outputs
    alone.graph.outputs = {name: name for name in made}
    return alone


def _run(
    session: Session, case: Case, target: str, node: Node, states: list[dict[str, Array] | str]
) -> list[list[Array] | str]:
    """The results of a call on a target for every state, in the order of the definition."""
    if isinstance(node, Pullback) and target != ORACLE:
        given = [state for state in states if not isinstance(state, str)]
        flowing = pulled(session, case, target, node, given)
        if flowing is not None:
            return flowing
    cases = [_call(case, node, state) for state in states]
    if target == ORACLE:
        return [_by_oracle(case) for case in cases]
    worker = session.workers[target]
    lowered = [lower(c.graph, target, c.catalog, c.params, manner=c.manner) for c in cases]
    able = [n for n, made in enumerate(lowered) if not made.unsupported]
    found: list[list[Array] | str] = ["unsupported"] * len(cases)
    results = worker.submit([program(lowered[n], cases[n]) for n in able])
    for number, result in zip(able, results, strict=True):
        values = cases[number].graph.outputs
        if result.status == "ok":
            arrays = [result.outputs[name] for name in values]
            shapes = [cases[number].graph.values[v].shape for v in values.values()]
            found[number] = arrays if [a.shape for a in arrays] == shapes else "wrong"
        else:
            found[number] = result.status
    return found


def _by_oracle(case: Case) -> list[Array] | str:
    try:
        values = typed(case.graph, run(case.graph, case.values, case.catalog))
    except InvalidInput:
        return "unstable"
    return [values[name] for name in case.graph.outputs]


def mixed(session: Session, case: Case, binding: Binding, grad: bool = False) -> list[Verdict]:
    """The verdicts on the results of a program that runs across targets, and on its gradients.

    By the arithmetic of those targets: an element may be as far off as the coarsest allows. Raises
    `usage.grad` where gradients of a model without a loss are asked for, and `InvalidInput` where
    a precondition on values fails.
    """
    if grad and case.graph.loss is None:
        raise fail("usage.grad", "the model has no loss", help="leave --grad out")
    kinds = sorted({to for to in binding.values() if to != ORACLE}) or [session.targets[0]]
    made = [_known(session, case, target, grad) for target in kinds]
    whole = made[0]
    for other in made[1:]:
        assert whole.balls is not None
        assert other.balls is not None
        whole.balls = {n: max(b, other.balls[n], key=_reach) for n, b in whole.balls.items()}
    (values,) = across(session, whole, [binding])
    outputs = whole.graph.outputs
    if isinstance(values, str):
        told = "a call gives no value where it is bound to"
        return [Verdict(name, "mixed", values, message=told) for name in outputs]
    assert whole.balls is not None
    return [
        judge(name, "mixed", whole.graph.values[value], whole.balls[value], values[value])
        for name, value in outputs.items()
    ]


def _known(session: Session, case: Case, target: str, grad: bool) -> Case:
    """The case with what the oracle says of its results in the arithmetic of a target."""
    if grad:
        return differentiated(session, case, target)
    own = session.arithmetic[target]
    graph = case.graph
    found = balls(graph, case.values, case.catalog, precision(graph), own)
    return replace(case, balls=found)


def _reach(ball: Ball) -> float:
    """The sum of the radii: which of two balls of one value is the wider."""
    return float(np.sum(np.asarray(ball.bound, dtype=np.float64)))


def verdict_of(case: Case, values: dict[str, Array] | str, target: str) -> str:
    """The gravest verdict on the results of a program that are determined."""
    if isinstance(values, str):
        return values
    if case.balls is None:
        case.balls = balls(case.graph, case.values, case.catalog, precision(case.graph))
    open_ = open_values(case.graph, case.catalog)
    found = [
        judge(name, target, case.graph.values[value], case.balls[value], values[value]).verdict
        for name, value in case.graph.outputs.items()
        if value not in open_
    ]
    return gravest(found)


def _apart(
    names: Sequence[str], one: dict[str, Array] | str, other: dict[str, Array] | str
) -> float:
    """The mean absolute difference of values; NaN on one side alone is infinitely far."""
    if isinstance(one, str) or isinstance(other, str):
        return 0.0 if one is other or one == other else float("inf")
    differences = []
    for value in names:
        a, b = (np.asarray(side[value]).astype(np.float64) for side in (one, other))
        with np.errstate(invalid="ignore"):
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            apart = np.where(same, 0.0, np.abs(a - b))
        differences.append(np.where(np.isnan(apart), np.inf, apart).reshape(-1))
    flat = np.concatenate(differences) if differences else np.zeros(0)
    return float(flat.mean()) if flat.size else 0.0


def bound(case: Case, session: Session, texts: Sequence[str], target: str) -> Binding:
    """The binding that `NAME=TARGET` texts say; the other calls are the target's."""
    names = {n: node.outputs[0] for node in case.graph.nodes for n in (node.name, *node.outputs)}
    found = {node.outputs[0]: target for node in case.graph.nodes}
    for text in texts:
        name, _, to = text.partition("=")
        if name not in names:
            raise fail(
                "usage.bind", f"there is no call `{name}`", help=f"there are {', '.join(names)}"
            )
        if to != ORACLE and to not in session.workers:
            raise fail("usage.bind", f"`{to}` is none of the targets", help=f"--targets …,{to}")
        found[names[name]] = to
    return found
