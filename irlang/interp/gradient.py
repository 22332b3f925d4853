"""Gradients of whole models: reverse accumulation over the calls of a graph.

Every call has its adjoint equations (`irlang.adjoint`), which the other meanings evaluate: in
float64, or as balls. What is differentiated is the loss; where a model has none, the sum of all
elements of all its real results.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.adjoint_graph import Backward, Pullback, free_prefix
from irlang.adjoint_graph import prepare as prepare
from irlang.arithmetic import STANDARD, Arithmetic
from irlang.dtypes import DTYPES
from irlang.equation_rules import apply, factors_of, terms_of
from irlang.graph import Graph
from irlang.instance import Definitions
from irlang.interp import aligned, program, reference, rounding, vector
from irlang.interp.ball import Ball, gamma, magnitude
from irlang.interp.draws import feeds
from irlang.interp.tape import Tape

Array = np.ndarray[Any, np.dtype[Any]]
_SIZE = "size"


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
    tape = Tape(backward, definitions, evaluate)
    found = program.run(graph, values, definitions, tape.record)
    return run(backward, found, evaluate, tape=tape)


def run(
    backward: Backward,
    found: Mapping[str, Array],
    evaluate: program.Evaluate = reference.evaluate,
    start: Array | None = None,
    tape: Tape | None = None,
) -> dict[str, Array]:
    """The gradients, given every value of the graph as `irlang.interp.program.run` gives them.

    start: what flows back to what is differentiated; without it one to each of its elements.
    tape: what was taken down when the values were found; what is not there is evaluated anew.
    """
    values = backward.graph.values
    parts: dict[str, list[Array]] = {
        n: [np.ones(values[n].shape) if start is None else start] for n in backward.seeds
    }
    for step in backward.steps:
        cotangents = {
            formal: _sum(parts.get(name, ()), values[name]) for formal, name in step.seeds.items()
        }
        given = feeds(step.node, step.expansion, found)
        rest, known = (step.expansion, {}) if tape is None else tape.rest(step)
        tensors = evaluate(rest, {**given, **known, **cotangents})
        for output, name in step.gradients.items():
            parts.setdefault(name, []).append(tensors[output])
    return {name: _sum(parts.get(name, ()), values[name]) for name in backward.wanted}


def _sum(parts: Sequence[Array], info: eq.TensorInfo) -> Array:
    """The sum of what has flown back to a value; a zero of its shape where nothing has."""
    if len(parts) == 1:
        return parts[0]
    total = np.zeros(info.shape)
    with np.errstate(invalid="ignore"):
        for part in parts:
            total += part
    return total


def gradient_balls(
    graph: Graph,
    values: Mapping[str, Array],
    definitions: Definitions,
    found: Mapping[str, Ball] | None = None,
    of: str | None = None,
    arithmetic: Arithmetic = STANDARD,
    opened: set[str] | None = None,
    ties: str = "any",
) -> dict[str, Ball]:
    """The gradient by every real input and parameter, with its radius at the graph's precision.

    At a kink or a tie, a ball encloses every gradient that the definitions allow.
    found: every value of the graph as a ball, where they are known already (`program.balls`).
    opened: the values are added, to elements of which flows back what is open for another reason
    than that rounding is known too badly. ties: as of `prepare`; one of the allowed gradients in
    the place of all.
    """
    dtype = program.precision(graph)
    if found is None:
        found = program.balls(graph, values, definitions, dtype, arithmetic)
    backward = prepare(graph, definitions, of, ties=ties)
    infos = graph.values
    parts: dict[str, list[Ball]] = {n: [Ball(np.ones(infos[n].shape))] for n in backward.seeds}
    ways = Counter(name for step in backward.steps for name in step.gradients.values())
    for step in backward.steps:
        cotangents = {
            formal: _ball_sum(parts.get(name, ()), infos[name])
            for formal, name in step.seeds.items()
        }
        given = feeds(step.node, step.expansion, found, Ball)
        own = program.call_precision(step.expansion, dtype)
        tensors = rounding.evaluate(step.expansion, {**given, **cotangents}, own, arithmetic)
        forward = step.node.expansion(definitions)
        # of what flows back from no number, as where a root is differentiated at 0, a program may
        # multiply some by zero and choose others
        unknown = left_open(step.seeds, forward, given)
        for formal, ball in cotangents.items():
            unknown[formal] = unknown.get(formal, False) | ~np.isfinite(ball.value)
        infinite = {formal: np.isinf(ball.bound) for formal, ball in cotangents.items()}
        rougher = _roughness(forward, own, arithmetic)
        for output, name in step.gradients.items():
            ball = tensors[output]
            ball = replace(
                ball, radius=program.stored(ball.value, ball.radius, step.expansion, output)
            )
            open_ = hanging(forward, unknown, output)
            ball = without(ball, open_)
            if rougher:
                size = _magnitude(step.expansion, output, tensors, own)
                ball = replace(ball, radius=ball.bound + rougher * size)
            # There is a factor 0, or another element was chosen; a program that multiplies by the
            # factor, or by a mask, makes NaN of what is not finite.
            ball = without(ball, hanging(forward, infinite, output) & (np.asarray(ball.value) == 0))
            for formal, seed in step.seeds.items():
                for mask in (
                    _beside(ball, found[seed], infos[seed], given),
                    endless(forward, formal, found[seed], infos[seed], output),
                ):
                    ball, open_ = without(ball, mask), open_ | mask
            if opened is not None and np.any(open_):
                opened.add(name)
            ball = replace(ball, terms=1, magnitude=None, running=None)
            if ways[name] > 1 and (apart := _terms_apart(step.expansion, output)) is not None:
                size = _magnitude(step.expansion, output, tensors, own)
                terms = len(terms_of(apart.equations[0].body))
                ball = replace(ball, terms=terms, magnitude=size)
            parts.setdefault(name, []).append(ball)
    slopes = {n: _ball_sum(parts.get(n, ()), infos[n]) for n in backward.wanted}
    # the oracle's own error has come all the way, too
    least = DTYPES[program.finest(graph, dtype)].unit
    return {
        name: without_poles(Ball(ball.value, rounding.oracle_error(ball, least)))
        for name, ball in slopes.items()
    }


def _beside(ball: Ball, result: Ball, info: eq.TensorInfo, given: Mapping[str, Ball]) -> Array:
    """Where nothing is known of a gradient, as the result itself is no number, or overflows, or is
    infinite though what it is made of is not.

    Outside a domain there is no derivative, be the result NaN or said to be infinite there, and
    what overflows on the way to a result may do so on the way back. Of a result of the same shape
    that is said element by element. given: the operands; what goes on as a line does has its slope
    at infinities, too.
    """
    magnitude, shape = np.abs(np.asarray(result.value)), np.shape(ball.value)
    if info.kind != "real" or magnitude.shape != shape:
        return np.zeros(shape, dtype=bool)
    with np.errstate(invalid="ignore"):
        over = magnitude > DTYPES[info.dtype].largest
    if over.any():
        over &= np.isinf(result.bound) | ~_beside_infinity(given, shape)
    return np.asarray(np.isnan(magnitude) | over)


def _beside_infinity(given: Mapping[str, Ball], shape: tuple[int, ...]) -> Array:
    """Where, in a result of a shape, one of the operands that spread to it is infinite."""
    found = np.zeros(shape, dtype=bool)
    for operand in given.values():
        infinite = np.isinf(np.asarray(operand.value, np.float64))
        if len(infinite.shape) <= len(shape) and all(
            one in (1, size) for one, size in zip(infinite.shape[::-1], shape[::-1], strict=False)
        ):
            found |= infinite
    return found


def endless(
    expansion: eq.Expansion, cotangent: str, result: Ball, info: eq.TensorInfo, gradient: str
) -> Array:
    """Where a gradient is of elements that make nothing but infinite ones of a result, by overflow
    or not: there is no derivative. What flows back to others says so by itself.

    cotangent, gradient: their names in the adjoint equations of the expansion.
    """
    prefix = free_prefix(expansion.tensors)
    name, given = cotangent.removeprefix(prefix), gradient.removeprefix(prefix)
    shape = expansion.tensors[given].shape
    axes = aligned.aligned(expansion, name).get(given)
    size = np.abs(np.asarray(result.value, dtype=np.float64))
    if info.kind != "real" or axes is None or not size.size or size.shape == shape:
        return np.zeros(shape, dtype=bool)
    with np.errstate(invalid="ignore"):
        finite = ~(size > DTYPES[info.dtype].largest)
    return ~aligned.reached(finite, axes, shape)


def without(ball: Ball, mask: Array) -> Ball:
    """A ball of which nothing is known where a mask is true."""
    return replace(ball, radius=np.where(mask, np.inf, ball.bound)) if np.any(mask) else ball


def without_poles(ball: Ball) -> Ball:
    """A gradient of which nothing is known where it is no finite number: there is none there, as
    by the exponent of a power of 0, and programs give some finite number for it.
    """
    poles = ~np.isfinite(ball.value)
    return replace(ball, radius=np.where(poles, np.inf, ball.bound)) if np.any(poles) else ball


def left_open(
    seeds: Collection[str], expansion: eq.Expansion, given: Mapping[str, Ball]
) -> dict[str, Array]:
    """By cotangent: of which elements of a result, from which it flows back, nothing is promised.

    seeds: the inputs of its adjoint equations that are cotangents. given: its own inputs.
    """
    prefix = free_prefix(expansion.tensors)
    masks = [m for m in expansion.unspecified if prefix + m.target in seeds]
    found: dict[str, Array] = {}
    if masks:
        tensors = vector.evaluate(expansion, {name: ball.value for name, ball in given.items()})
        infos = expansion.tensors
        with np.errstate(all="ignore"):
            for mask in masks:
                name = prefix + mask.target
                told = np.asarray(vector.evaluate_equation(mask, tensors, infos), dtype=bool)
                found[name] = found.get(name, False) | told
    return found


def hanging(expansion: eq.Expansion, masks: Mapping[str, Array], gradient: str) -> Array:
    """Where a gradient may hang on those elements of cotangents that masks are true of.

    gradient: its name in the adjoint equations of the expansion, as those of the masks are.
    """
    prefix = free_prefix(expansion.tensors)
    told = {n.removeprefix(prefix): mask for n, mask in masks.items() if np.any(mask)}
    own = gradient.removeprefix(prefix)
    found = aligned.hanging(expansion, told, own)
    if told and not any(own in eq.reads(equation.body) for equation in expansion.equations):
        return np.ones_like(found)  # a factor of 0 is folded away, by which programs multiply
    return found


def roughened(
    step: Pullback,
    given: Mapping[str, Ball],
    definitions: Definitions,
    dtype: str,
    arithmetic: Arithmetic,
) -> dict[str, Array]:
    """What rounded factors add to the radius of every gradient of a call, by its value name.

    given: what its equations read, by formal name. dtype: as of `program.balls`.
    """
    if step.forward is None:
        return {}
    own = program.call_precision(step.equations, dtype)
    rougher = _roughness(step.forward.expansion(definitions), own, arithmetic)
    if not rougher:
        return {}
    tensors = rounding.evaluate(step.equations, given, own, arithmetic)
    return {
        name: rougher * _magnitude(step.equations, formal, tensors, own)
        for formal, name in step.results().items()
    }


def _roughness(forward: eq.Expansion, dtype: str, arithmetic: Arithmetic) -> float:
    """How much of its size a gradient may be off as the factors of a sum of products are rounded.

    What is left on the way back of a sum with a single term is a product in its equations, but not
    for those who multiply matrices.
    """
    if not arithmetic.factors:
        return 0.0
    parts = (part for equation in forward.equations for part in eq.walk(equation.body))
    sums = (part.body for part in parts if isinstance(part, eq.Reduce) and part.kind == "sum")
    factors = max((len(factors_of(body)) for body in sums if body is not None), default=1)
    return arithmetic.rougher(1, factors, DTYPES[dtype].unit) if factors > 1 else 0.0


def _magnitude(
    expansion: eq.Expansion, output: str, tensors: Mapping[str, Ball], dtype: str
) -> Array:
    """What the sizes of the terms of a gradient add up to, where its sum is written out."""
    apart = _terms_apart(expansion, output)
    if apart is None:
        found = tensors[output]
    else:
        given = {name: tensors[name] for name in apart.inputs}
        found = rounding.evaluate(apart, given, dtype)[_SIZE]
    return np.asarray(np.abs(found.value) + found.bound)


def _terms_apart(expansion: eq.Expansion, name: str) -> eq.Expansion | None:
    """The sum of the magnitudes of the terms of a tensor that is a sum which is written out."""
    key = f"{__name__}.{name}"
    if key not in expansion.notes:
        expansion.notes[key] = None
        equation = next((e for e in expansion.equations if e.target == name), None)
        terms = [] if equation is None else terms_of(equation.body)
        if equation is not None and len(terms) > 1 and name not in eq.reads(equation.body):
            body = functools.reduce(partial(apply, "+"), (apply("abs", term) for term in terms))
            used = tuple(sorted(eq.reads(equation.body)))
            tensors = {tensor: expansion.tensors[tensor] for tensor in used}
            expansion.notes[key] = eq.Expansion(
                inputs=used, outputs=(_SIZE,), tensors={**tensors, _SIZE: equation.info},
                equations=(replace(equation, target=_SIZE, body=body),),
            )  # fmt: skip
    found: eq.Expansion | None = expansion.notes[key]
    return found


def _ball_sum(parts: Sequence[Ball], info: eq.TensorInfo) -> Ball:
    """The sum of balls in any order and association.

    Those of a call that gives several numbers to one place may be added to what other calls give
    there one by one, though they cancel each other.
    """
    if len(parts) == 1:
        return parts[0]
    total = _sum([part.value for part in parts], info)
    if not parts:
        return Ball(total)
    unit = DTYPES[info.dtype].unit
    growth = gamma(sum(part.terms for part in parts) - 1, unit)
    radius = sum(part.bound + growth * magnitude(part) for part in parts)
    return Ball(total, np.broadcast_to(np.asarray(radius), info.shape))
