"""Gradients of whole models: reverse accumulation over the calls of a graph.

Every call has its adjoint equations (`irlang.adjoint`), which the other meanings evaluate: in
float64, or as balls. What is differentiated is the loss; where a model has none, the sum of all
elements of all its real results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irlang import ast
from irlang import equations as eq
from irlang.adjoint import adjoint
from irlang.dtypes import DTYPES
from irlang.graph import Graph, Node
from irlang.instance import Definitions
from irlang.interp import program, reference, rounding, vector
from irlang.interp.balls import Ball
from irlang.interp.draws import feeds

Array = np.ndarray[Any, np.dtype[Any]]
_PREFIX = "d_"


@dataclass(frozen=True, slots=True)
class Step:
    """The adjoint of one call.

    seeds: the value whose cotangent is given, for every input that is one; gradients: the value
    that every output adds to.
    """

    node: Node
    expansion: eq.Expansion
    seeds: dict[str, str]
    gradients: dict[str, str]


@dataclass(frozen=True, slots=True)
class Backward:
    """All that it takes to differentiate a graph, made once: steps in the order of evaluation.

    seeds: the values that are summed up to be differentiated; wanted: real inputs and parameters.
    """

    graph: Graph
    steps: tuple[Step, ...]
    seeds: tuple[str, ...]
    wanted: tuple[str, ...]


def prepare(
    graph: Graph, definitions: Definitions, of: str | None = None, ties: str = "first"
) -> Backward:
    """The adjoint equations of every call that lies between a parameter or input and `of`.

    of: the name of a value (the loss unless said). ties: see `irlang.adjoint.adjoint`; that of
    definitions which do not say `grad x ties first` or `even` themselves.
    """
    real = {name for name, info in graph.values.items() if info.kind == "real"}
    of = of or graph.loss
    roots = (of,) if of else tuple(graph.outputs.values())
    seeds = tuple(dict.fromkeys(name for name in roots if name in real))
    given = (*graph.inputs, *(n for n, param in graph.params.items() if not param.literal))
    wanted = tuple(name for name in given if name in real)
    active = set(wanted)
    for node in graph.nodes:
        if active.intersection(node.operands()):
            active.update(name for name in node.outputs if name in real)
    flowing = set(seeds)
    steps = []
    for node in reversed(graph.nodes):
        outputs = {f: v for f, v in node.results().items() if v in flowing and v in active}
        sources = {f: v for f, v in node.feeds().items() if v in active}
        if not outputs or not sources:
            continue
        own = {s.ties for s in node.op.body if isinstance(s, ast.Grad)} - {"any"}
        backward = _adjoint(
            node.expansion(definitions), tuple(sources), tuple(outputs), min(own, default=ties)
        )
        flowing.update(sources.values())
        steps.append(
            Step(
                node,
                backward,
                {_PREFIX + formal: value for formal, value in outputs.items()},
                dict(zip(backward.outputs, sources.values(), strict=True)),
            )
        )
    return Backward(graph, tuple(steps), seeds, wanted)


def _adjoint(
    expansion: eq.Expansion, wanted: tuple[str, ...], seeds: tuple[str, ...], ties: str
) -> eq.Expansion:
    """The adjoint equations of a call, which its expansion remembers."""
    key = f"{__name__} {wanted} {seeds} {ties}"
    if key not in expansion.notes:
        expansion.notes[key] = adjoint(expansion, wanted, seeds, ties=ties)
    found: eq.Expansion = expansion.notes[key]
    return found


def gradients(
    graph: Graph,
    values: Mapping[str, Array],
    definitions: Definitions,
    of: str | None = None,
    evaluate: program.Evaluate = reference.evaluate,
) -> dict[str, Array]:
    """The gradient by every real input and parameter, float64, of the shape of each.

    values: of all inputs and parameters, in their own types. of: see `prepare`. Raises
    `InvalidInput` where a precondition on values fails.
    """
    backward = prepare(graph, definitions, of)
    return run(backward, program.run(graph, values, definitions, evaluate), evaluate)


def run(
    backward: Backward,
    found: Mapping[str, Array],
    evaluate: program.Evaluate = reference.evaluate,
) -> dict[str, Array]:
    """The gradients, given every value of the graph as `irlang.interp.program.run` gives them."""
    values = backward.graph.values
    parts: dict[str, list[Array]] = {n: [np.ones(values[n].shape)] for n in backward.seeds}
    for step in backward.steps:
        cotangents = {
            formal: _sum(parts.get(name, ()), values[name]) for formal, name in step.seeds.items()
        }
        given = feeds(step.node, step.expansion, found)
        tensors = evaluate(step.expansion, {**given, **cotangents})
        for output, name in step.gradients.items():
            parts.setdefault(name, []).append(tensors[output])
    return {name: _sum(parts.get(name, ()), values[name]) for name in backward.wanted}


def _sum(parts: Sequence[Array], info: eq.TensorInfo) -> Array:
    """The sum of what has flown back to a value; a zero of its shape where nothing has."""
    if len(parts) == 1:
        return parts[0]
    total = np.zeros(info.shape)
    for part in parts:
        total += part
    return total


def gradient_balls(
    graph: Graph,
    values: Mapping[str, Array],
    definitions: Definitions,
    found: Mapping[str, Ball] | None = None,
    of: str | None = None,
) -> dict[str, Ball]:
    """The gradient by every real input and parameter, with its radius at the graph's precision.

    At a kink or a tie, a ball encloses every gradient that the definitions allow.
    found: every value of the graph as a ball, where they are known already (`program.balls`).
    """
    dtype = program.precision(graph)
    if found is None:
        found = program.balls(graph, values, definitions, dtype)
    backward = prepare(graph, definitions, of, ties="any")
    infos = graph.values
    parts: dict[str, list[Ball]] = {n: [Ball(np.ones(infos[n].shape))] for n in backward.seeds}
    for step in backward.steps:
        cotangents = {
            formal: _ball_sum(parts.get(name, ()), infos[name], dtype)
            for formal, name in step.seeds.items()
        }
        given = feeds(step.node, step.expansion, found, Ball)
        tensors = rounding.evaluate(step.expansion, {**given, **cotangents}, dtype)
        unknown = _left_open(step, step.node.expansion(definitions), given)
        for output, name in step.gradients.items():
            ball = tensors[output]
            ball = Ball(ball.value, rounding.oracle_error(ball, dtype))
            if unknown:
                ball.radius = np.full(infos[name].shape, np.inf)
            parts.setdefault(name, []).append(ball)
    return {name: _ball_sum(parts.get(name, ()), infos[name], dtype) for name in backward.wanted}


def _left_open(step: Step, expansion: eq.Expansion, given: Mapping[str, Ball]) -> bool:
    """Whether a call leaves an element open that something flows back from; then so is to where."""
    masks = [m for m in expansion.unspecified if _PREFIX + m.target in step.seeds]
    if not masks:
        return False
    tensors = vector.evaluate(expansion, {name: ball.value for name, ball in given.items()})
    infos = expansion.tensors
    with np.errstate(all="ignore"):
        return any(bool(vector.evaluate_equation(m, tensors, infos).any()) for m in masks)


def _ball_sum(parts: Sequence[Ball], info: eq.TensorInfo, dtype: str) -> Ball:
    """The sum of balls in any order and association."""
    if len(parts) == 1:
        return parts[0]
    total = _sum([part.value for part in parts], info)
    if not parts:
        return Ball(total)
    unit = DTYPES[dtype].unit
    roundings = (len(parts) - 1) * unit / (1 - (len(parts) - 1) * unit)
    radius = sum(part.bound + roundings * (np.abs(part.value) + part.bound) for part in parts)
    return Ball(total, np.broadcast_to(np.asarray(radius), info.shape))
