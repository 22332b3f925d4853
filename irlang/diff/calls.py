"""Calls judged one by one, each by what a target itself fed to it.

A call whose definition leaves values open is judged by what that ensures; the program behind it
follows from the target's own values, so that every call there is judged by those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from irlang.arithmetic import STANDARD, Arithmetic, half
from irlang.catalog import Catalog
from irlang.diagnostics import InvalidInput
from irlang.diff.refine import Refiner
from irlang.diff.verdict import (
    FINDINGS,
    Verdict,
    is_of_type,
    judge,
    only_shapes,
    softened,
    worst,
)
from irlang.equations import TensorInfo
from irlang.graph import Graph, Node, alone
from irlang.interp import ensured
from irlang.interp.balls import Ball
from irlang.interp.gradient import without
from irlang.interp.plain import load
from irlang.interp.program import (
    call_precision,
    carried,
    carried_ball,
    folded,
    folded_ball,
    given_ball,
    node_balls,
    precision,
)
from irlang.laws import ALARM
from irlang.lower.direct import is_direct
from irlang.lower.lower import lower
from irlang.lower.manner import USUAL, Manner

Array = np.ndarray[Any, np.dtype[Any]]
_NONE = np.zeros((), dtype=bool)


@dataclass(slots=True)
class Case:
    """A program with the values of its inputs and parameters, in their own types.

    balls: what the oracle says of every value, where that has been computed already, and took: the
    seconds that it needed. edge: whether values at the edges of their types were put into the
    inputs on purpose. manner: how targets write it.
    """

    graph: Graph
    inputs: dict[str, Array]
    params: dict[str, Array]
    catalog: Catalog
    balls: dict[str, Ball] | None = None
    edge: bool = False
    took: float = 0.0
    manner: Manner = USUAL

    @property
    def values(self) -> dict[str, Array]:
        """Everything that is given."""
        return {**self.inputs, **self.params}


def open_values(graph: Graph, catalog: Catalog) -> frozenset[str]:
    """The values that are not determined: results of what is left open, and what follows."""
    found: set[str] = set()
    for node in graph.nodes:
        if node.expansion(catalog).is_open or found.intersection(node.operands()):
            found.update(node.outputs)
    return frozenset(found)


def judge_call(
    case: Case,
    node: Node,
    fed: Mapping[str, Array],
    given: Mapping[str, Array],
    target: str,
    arithmetic: Arithmetic = STANDARD,
    unknown: Mapping[str, Array] | None = None,
    rougher: Callable[[], Mapping[str, Array]] | None = None,
) -> list[Verdict]:
    """Judges the results of one call, its operands being what the target had.

    arithmetic: the target's. unknown: by result, the elements of which nothing is known. rougher:
    gives, by result, what rounded factors add to the radius that its equations tell.
    """
    values = case.graph.values
    if not _are_declared(values, fed, target):
        return []  # what gave it has been judged: there is no oracle for what is another tensor
    loaded = {name: load(values[name], array) for name, array in fed.items()}
    open_ = node.expansion(case.catalog).is_open
    reals = [array for array in loaded.values() if array.dtype.kind == "f"]
    finite = all(np.all(np.isfinite(array)) for array in reals)
    # What is ensured of a call that leaves something open says of infinities what they become, and
    # nothing of NaN, which is equal to nothing.
    if open_ and any(np.any(np.isnan(array)) for array in reals):
        return []
    if not finite and not open_ and not case.edge:
        return []
    made = {name for other in case.graph.nodes for name in other.outputs}
    local = {name: given_ball(values[name], array, arithmetic) for name, array in loaded.items()}
    wider = [name for name in made.intersection(loaded) if carried(values[name], arithmetic)]
    local.update((name, carried_ball(values[name], loaded[name], arithmetic)) for name in wider)
    if arithmetic.folds:
        made = {n for n in made.intersection(loaded) if folded(n, case.graph, case.catalog)}
        local.update(
            (n, folded_ball(values[n], loaded[n], arithmetic)) for n in made.difference(wider)
        )
        wider += made
    if open_:
        return _judge_open(case, node, local, given, target, arithmetic)
    broken = broken_promises(case, node, local, given, target, arithmetic)
    if broken:
        return broken
    dtype, rounded = precision(case.graph), bool(rougher and arithmetic.factors)

    def judged_by(own: Arithmetic) -> dict[str, Ball]:
        found = node_balls(node, local, case.catalog, dtype, own)
        for name, more in rougher().items() if rounded and rougher else ():
            found[name] = replace(found[name], radius=found[name].bound + more)
        return {n: without(ball, (unknown or {}).get(n, _NONE)) for n, ball in found.items()}

    try:
        found = judged_by(arithmetic)
    except InvalidInput:
        return []  # what fed it has been judged: it is outside of what the definition is for
    verdicts = [
        judge(value, target, values[value], found[value], given[value])
        for value in node.outputs
        if value in given
    ]
    infos = {value: values[value] for value in node.outputs}
    verdicts = softened(verdicts, infos, given, lambda: judged_by(half(arithmetic)), case.edge)
    opened = any(np.any(mask) for mask in (unknown or {}).values())
    if opened or not finite or wider or rounded:  # of which the derivative does not know
        return verdicts
    return _closer(case, node, fed, given, target, arithmetic, verdicts, found)


def _closer(
    case: Case,
    node: Node,
    fed: Mapping[str, Array],
    given: Mapping[str, Array],
    target: str,
    arithmetic: Arithmetic,
    verdicts: list[Verdict],
    found: Mapping[str, Ball],
) -> list[Verdict]:
    """Verdicts on a call's results, looked at by its derivative where the target is strange."""
    graph = alone(node, case.graph.values, [v.name for v in verdicts])
    refiner = Refiner(graph, fed, case.catalog, thorough=False)
    return refiner.refined(verdicts, found, given, target, arithmetic)


def _are_declared(
    values: Mapping[str, TensorInfo], arrays: Mapping[str, Array], target: str
) -> bool:
    """Whether what a target has are tensors of the types and shapes that a program declares."""
    return all(
        array.shape == values[name].shape and is_of_type(values[name], array, target)
        for name, array in arrays.items()
    )


def broken_promises(
    case: Case,
    node: Node,
    fed: Mapping[str, Ball],
    given: Mapping[str, Array],
    target: str,
    arithmetic: Arithmetic = STANDARD,
) -> list[Verdict]:
    """Verdicts on results of a call that are not as its definition ensures of all of them, those of
    which it leaves open what they are among them. fed: its operands, as the target may have had
    them.
    """
    expansion = node.expansion(case.catalog)
    if not expansion.ensures or expansion.is_open or only_shapes(target):
        return []
    values = case.graph.values
    results = {formal: v for formal, v in node.results().items() if v in given}
    if not _are_declared(values, {v: given[v] for v in results.values()}, target):
        return []  # which is judged by itself
    clauses = _clauses(case, node, fed, results, given, arithmetic)
    broken = [clause for clause in clauses if not clause.holds]
    if broken and _may_be_at_odds(case, node, fed, target):
        return []
    told = {formal: one.message for one in reversed(broken) for formal in one.results}
    return [
        Verdict(results[formal], target, "wrong", message=message)
        for formal, message in told.items()
    ]


def _may_be_at_odds(case: Case, node: Node, fed: Mapping[str, Ball], target: str) -> bool:
    """Whether a call is composed of several operators of a target, which may have had an operand
    otherwise each: one that takes denormals for 0 finds no largest element that is equal to it.
    """
    if not any(np.any(ball.bound) for ball in fed.values()):
        return False
    own = alone(node, case.graph.values, node.outputs)
    lowered = lower(own, target, case.catalog, {}, manner=case.manner)
    return not is_direct(lowered, shaped=True)


def _clauses(
    case: Case,
    node: Node,
    fed: Mapping[str, Ball],
    named: Mapping[str, str],
    given: Mapping[str, Array],
    arithmetic: Arithmetic,
) -> list[ensured.Clause]:
    """What a definition ensures of a call, judged. named: the values that are its results, by the
    definition's names; given: what a target gave for them.
    """
    results = {f: load(case.graph.values[value], given[value]) for f, value in named.items()}
    feeds = {formal: fed[name] for formal, name in node.feeds().items()}
    expansion = node.expansion(case.catalog)
    dtype = call_precision(expansion, precision(case.graph))
    return ensured.judge(expansion, {**feeds, **results}, dtype, results, arithmetic)


def _judge_open(
    case: Case,
    node: Node,
    fed: Mapping[str, Ball],
    given: Mapping[str, Array],
    target: str,
    arithmetic: Arithmetic,
) -> list[Verdict]:
    values = case.graph.values
    named = {formal: value for formal, value in node.results().items() if value in given}
    shapes = [
        judge(value, target, values[value], Ball(given[value]), given[value])
        for value in named.values()
    ]
    if only_shapes(target) or any(v.verdict in FINDINGS for v in shapes):
        return shapes
    clauses = _clauses(case, node, fed, named, given, arithmetic)
    verdicts = []
    for formal, value in named.items():
        own = [clause for clause in clauses if formal in clause.results]
        broken = [clause for clause in own if not clause.holds]
        if broken:
            verdicts.append(Verdict(value, target, "wrong", message=broken[0].message))
        elif own:
            said = f"all {len(own)} ensured hold; a law is an alarm below {ALARM:.0e}"
            verdicts.append(Verdict(value, target, "agrees", message=said))
        else:
            said = f"`{node.op.name}` leaves it open, and ensures nothing of this result alone"
            verdicts.append(Verdict(value, target, "unstable", message=said))
    return verdicts


def judge_following(
    case: Case,
    graph: Graph,
    results: Mapping[str, Array],
    target: str,
    arithmetic: Arithmetic = STANDARD,
) -> dict[str, Verdict]:
    """A verdict for every value that is not determined, by its name.

    graph: whose outputs the results are. It is that of its call by itself, or else of the first
    call before it that is wrong.
    """
    undetermined = open_values(case.graph, case.catalog)
    given = dict(case.values)
    for name, value in graph.outputs.items():
        if name in results:
            given[value] = np.asarray(results[name])
    found: dict[str, Verdict] = {}
    for node in case.graph.nodes:
        if not undetermined.intersection(node.outputs):
            continue
        operands = list(dict.fromkeys(node.operands()))
        fed = {name: given[name] for name in operands if name in given}
        whole = len(fed) == len(operands)
        judged = judge_call(case, node, fed, given, target, arithmetic) if whole else []
        own = {v.name: v for v in judged}
        before = [found[n] for n in operands if n in found and found[n].verdict in FINDINGS]
        for value in node.outputs:
            verdict = own.get(value) or Verdict(value, target, "unstable")
            if before and verdict.verdict not in FINDINGS:
                first = worst(before)
                where = first.message if first.message.startswith("`") else _told(first)
                verdict = Verdict(value, target, first.verdict, message=where)
            found[value] = verdict
    return found


def _told(verdict: Verdict) -> str:
    said = verdict.message or f"{verdict.got!r} where {verdict.expected!r} is right"
    return f"`{verdict.name}` before it: {said}"


def renamed(verdict: Verdict, name: str) -> Verdict:
    """A verdict under the name of an output."""
    return replace(verdict, name=name)
