"""Gradients of a program on a target: how they are asked for, and judged call by call.

A target that differentiates by itself is asked for its own gradients. One that does not runs the
adjoint equations of every call as an ordinary program. Either way each call of the gradient can be
judged alone: the oracle takes the values that the target itself had there, and what the target
itself says flows back to its results.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from irlang import ast
from irlang.adjoint_graph import (
    GradientGraph,
    Pullback,
    free_prefix,
    gradient_graph,
    prepare,
    split,
)
from irlang.arithmetic import STANDARD, Arithmetic
from irlang.catalog import builtin
from irlang.diff.calls import Array, Case, judge_call, open_values
from irlang.diff.flat import is_lost
from irlang.diff.kinks import pulled_held_to_slopes
from irlang.diff.totals import with_totals
from irlang.diff.verdict import Verdict
from irlang.diff.weighing import is_added
from irlang.dtypes import DTYPES
from irlang.graph import Graph, Node
from irlang.interp.balls import Ball
from irlang.interp.gradient import hanging, left_open, roughened
from irlang.interp.plain import load
from irlang.interp.program import node_balls, precision
from irlang.lower.lower import Lowered, lower
from irlang.lower.pool import Program, Result, Worker

Pulled = tuple[Pullback, list[Verdict], Case, dict[str, Array]]


@dataclass(frozen=True, slots=True)
class Asked:
    """A program, and the gradients that come among its results: what each is by.

    reason: why there are no gradients where they are asked for.
    """

    lowered: Lowered
    slopes: dict[str, str] = field(default_factory=dict)
    reason: str = ""

    def program(self, case: Case) -> Program:
        """What a worker is sent for a case."""
        made = self.lowered
        return Program(made.kind, made.code, case.inputs, made.params, made.gradients)

    def sort(self, result: Result) -> None:
        """Puts gradients that came among the results where gradients are; drops what is none."""
        for name in self.lowered.constant:
            result.gradients.pop(name, None)
        for output, name in self.slopes.items():
            if output in result.outputs:
                result.gradients[name] = result.outputs.pop(output)


def ask(graph: Graph, target: str, case: Case) -> Asked:
    """The program of a graph, with gradients of the loss if there is one: the target's own, or
    those of the adjoint equations.
    """
    lowered = lower(graph, target, case.catalog, case.params, grad=True, manner=case.manner)
    if graph.loss is None or lowered.unsupported or lowered.gradients:
        return Asked(lowered)
    backward = prepare(graph, case.catalog)
    whole = gradient_graph(backward)
    made = lower(whole.graph, target, case.catalog, case.params, manner=case.manner)
    if made.unsupported:
        return Asked(lowered, reason=made.unsupported[0])
    return Asked(made, {whole.cotangents[name]: name for name in backward.wanted})


def expose(graph: Graph) -> Graph:
    """The graph with every value that a call gives, and anything reads, as an output."""
    named = {value: name for name, value in graph.outputs.items()}
    used = graph.used()
    outputs = {named.get(v, v): v for node in graph.nodes for v in node.outputs if v in used}
    return replace(graph, outputs=outputs)


def with_loss_shown(graph: Graph) -> Graph:
    """The graph with its loss among its outputs."""
    if graph.loss is None or graph.loss in graph.outputs.values():
        return graph
    return replace(graph, outputs={**graph.outputs, graph.loss: graph.loss})


def _identity() -> ast.Op:
    op = builtin().op("identity")
    assert op is not None
    return op


def pulled_by_call(
    worker: Worker, case: Case, target: str, arithmetic: Arithmetic = STANDARD
) -> Iterator[Pulled]:
    """Every call of the gradient judged by itself, given what the target itself had there: the
    verdicts, the case that the call is one of, and what it was fed.

    Nothing where the target gives no gradients, or none but those of inputs and parameters; nor
    where the program leaves values open.
    """
    if case.graph.loss is None or open_values(case.graph, case.catalog):
        return  # what is drawn anew for the gradient is not what the values were drawn from
    graph, forks = split(case.graph, _identity())
    shown = expose(graph)
    lowered = lower(
        shown, target, case.catalog, case.params, grad=True, watched=True, manner=case.manner
    )
    if not lowered.gradients:
        graph, forks = case.graph, frozenset()
        shown = expose(gradient_graph(prepare(graph, case.catalog)).graph)
        lowered = lower(shown, target, case.catalog, case.params, manner=case.manner)
    elif not lowered.watched:
        return
    if lowered.unsupported:
        return
    worker.send([Asked(lowered).program(case)])
    (result,) = worker.collect()
    if result.status != "ok":
        return
    pulled = _Pulled(case, graph, forks, arithmetic)
    whole = pulled.whole("any")
    given = dict(case.values)
    given.update((value, np.asarray(result.outputs[n])) for n, value in shown.outputs.items())
    sources = {**{name: name for name in case.values}, **shown.outputs}
    for name, value in sources.items():
        known = name in result.gradients and value not in lowered.constant
        if known and value in whole.cotangents:
            given[whole.cotangents[value]] = result.gradients[name]
    judged = replace(case, graph=whole.graph, balls=None)
    own = lowered.native if lowered.gradients else ()
    for at, node in enumerate(whole.graph.nodes):
        if not isinstance(node, Pullback):
            continue
        if not node.inputs:  # one, or nothing, flows back
            number = float(node.forward is None and node.outputs[0] in whole.ones)
            info = whole.graph.values[node.outputs[0]]
            given.setdefault(node.outputs[0], np.full(info.shape, number, DTYPES[info.dtype].numpy))
        operands = list(dict.fromkeys(node.operands()))
        fed = {name: given[name] for name in operands if name in given}
        if len(fed) < len(operands):
            continue
        unknown: dict[str, Array] = {}
        rougher = None
        if node.forward is not None:
            if is_added(graph, node.forward):
                continue  # by a weight it is a value, which comes out otherwise without gradients
            if node.forward.expansion(case.catalog).is_open:
                continue
            unknown = _left_open(judged, node, node.forward, fed, given)
            rougher = partial(_roughened, judged, node, fed, arithmetic)
        verdicts = judge_call(judged, node, fed, given, target, arithmetic, unknown, rougher)
        verdicts = with_totals(verdicts, given, partial(pulled.call, at, fed))
        verdicts = pulled_held_to_slopes(judged, node, fed, given, arithmetic, own, verdicts)
        yield node, _held(verdicts, node, lowered), judged, fed


def _held(verdicts: list[Verdict], node: Pullback, lowered: Lowered) -> list[Verdict]:
    """The verdicts but for those at poles, and on what a call that is written by its definition has
    lost (see `without_arms`).
    """
    composed = node.forward is not None and node.forward.name not in lowered.native
    lost = bool(lowered.gradients) and composed
    return [v for v in verdicts if not _at_pole(v) and not (lost and is_lost(v))]


@dataclass(slots=True)
class _Pulled:
    """The gradient of a case in every way to choose at ties. forks: as of `gradient_graph`."""

    case: Case
    graph: Graph
    forks: frozenset[str]
    arithmetic: Arithmetic
    made: dict[str, GradientGraph] = field(default_factory=dict)

    def whole(self, ties: str) -> GradientGraph:
        """All calls of it."""
        if ties not in self.made:
            backward = prepare(self.graph, self.case.catalog, ties=ties)
            self.made[ties] = gradient_graph(backward, self.forks)
        return self.made[ties]

    def call(self, at: int, fed: Mapping[str, Array], ties: str) -> dict[str, Ball]:
        """What the call at a place gives, fed with numbers."""
        graph, dtype = self.whole(ties).graph, precision(self.case.graph)
        balls = {name: Ball(load(graph.values[name], array)) for name, array in fed.items()}
        return node_balls(graph.nodes[at], balls, self.case.catalog, dtype, self.arithmetic)


def _roughened(
    case: Case, node: Pullback, fed: Mapping[str, Array], arithmetic: Arithmetic
) -> dict[str, Array]:
    infos = case.graph.values
    balls = {f: Ball(load(infos[n], fed[n])) for f, n in node.feeds().items()}
    return roughened(node, balls, case.catalog, precision(case.graph), arithmetic)


def _at_pole(verdict: Verdict) -> bool:
    """Whether there is no gradient where it is judged (`irlang.interp.gradient.without_poles`)."""
    return verdict.expected is not None and not math.isfinite(verdict.expected)


def _left_open(
    case: Case,
    node: Pullback,
    forward: Node,
    fed: Mapping[str, Array],
    given: Mapping[str, Array],
) -> dict[str, Array]:
    """By gradient: where it may hang on what the call whose gradient it is leaves open, or on what
    that gives that is no finite number.
    """
    expansion = forward.expansion(case.catalog)
    balls = {f: Ball(load(case.graph.values[n], fed[n])) for f, n in forward.feeds().items()}
    masks = left_open(node.equations.inputs, expansion, balls)
    prefix = free_prefix(expansion.tensors)
    for formal, name in forward.results().items():
        if name in given and prefix + formal in node.equations.inputs:
            nothing = ~np.isfinite(load(case.graph.values[name], given[name]))
            masks[prefix + formal] = masks.get(prefix + formal, False) | nothing
    return {name: hanging(expansion, masks, formal) for formal, name in node.results().items()}
