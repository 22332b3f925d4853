"""Whole models: the reference value, and value with radius, of every tensor of a graph."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.arithmetic import STANDARD, Arithmetic
from irlang.diagnostics import InvalidInput
from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.graph import Graph, Node
from irlang.instance import Definitions
from irlang.interp import reference, rounding
from irlang.interp.balls import Ball, gamma
from irlang.interp.draws import feeds
from irlang.interp.plain import load

Array = np.ndarray[Any, np.dtype[Any]]
Evaluate = Callable[[Any, Mapping[str, Any]], dict[str, Any]]


def run(
    graph: Graph,
    values: Mapping[str, Array],
    definitions: Definitions,
    evaluate: Evaluate = reference.evaluate,
    keep: Collection[str] | None = None,
) -> dict[str, Array]:
    """Every value of the graph in float64, int64 and bool; reals are never rounded in between.

    values: of all inputs and parameters, in their own types, and of what is left open as
    `draws.open_values` gives it (drawn with seed 0 where it is not there). Raises `InvalidInput`,
    placed at the call, where a precondition on values fails. keep: the values that are wanted, all
    if None; the others are dropped when their last reader has run.
    """
    found = _loaded(graph, values)
    dropped = last_reads(graph, keep) if keep is not None else {}
    for number, node in enumerate(graph.nodes):
        expansion = node.expansion(definitions)
        try:
            tensors = evaluate(expansion, feeds(node, expansion, found))
        except InvalidInput as error:
            raise _placed(error, node) from None
        for formal, name in node.results().items():
            found[name] = tensors[formal]
        del tensors  # a call's own operands are among them
        for name in dropped.get(number, ()):
            del found[name]
    return found


def last_reads(graph: Graph, keep: Collection[str]) -> dict[int, list[str]]:
    """By the number of a node, the values that nobody reads after it, but for those to be kept."""
    last: dict[str, int] = {}
    for number, node in enumerate(graph.nodes):
        last.update(dict.fromkeys((*node.outputs, *node.operands()), number))
    found: dict[int, list[str]] = {}
    for name, number in last.items():
        if name not in keep:
            found.setdefault(number, []).append(name)
    return found


def _first_reads(graph: Graph, names: Collection[str]) -> dict[int, list[str]]:
    """By the number of a node, which of the values it reads first; by that of none, the unread."""
    first: dict[str, int] = {}
    for number, node in enumerate(graph.nodes):
        for name in node.operands():
            first.setdefault(name, number)
    found: dict[int, list[str]] = {}
    for name in names:
        found.setdefault(first.get(name, len(graph.nodes)), []).append(name)
    return found


def _loaded(graph: Graph, values: Mapping[str, Array]) -> dict[str, Array]:
    """Values as the evaluators take them; what is left open has no place in the graph."""
    return {
        name: load(graph.values[name], array) if name in graph.values else array
        for name, array in values.items()
    }


def balls(
    graph: Graph,
    values: Mapping[str, Array],
    definitions: Definitions,
    dtype: str,
    arithmetic: Arithmetic = STANDARD,
    keep: Collection[str] | None = None,
    instead: Mapping[str, Ball] = MappingProxyType({}),
) -> dict[str, Ball]:
    """Every value with its radius, propagated through the whole program.

    dtype: the precision of calls that have no floating-point type of their own.
    The oracle's own error is added once, at the end: it goes through the program as any other.
    keep: the values that are wanted, as in `run`. instead: what values are where a definition
    leaves them open, which by itself says nothing of them. Raises `InvalidInput`, placed at the
    call, where a precondition on values fails.
    """

    def given(name: str) -> Ball:
        return given_ball(graph.values[name], load(graph.values[name], values[name]), arithmetic)

    # those that are given are turned into double precision where they are first read: of a large
    # model, most have been dropped again by then
    waiting = [name for name in values if name in graph.values]
    found = {name: Ball(array) for name, array in values.items() if name not in graph.values}
    dropped = last_reads(graph, keep) if keep is not None else {}
    units: dict[str, float] = {}  # the least of those that have gone into a value
    first = _first_reads(graph, waiting)
    for number, node in enumerate(graph.nodes):
        found.update((name, given(name)) for name in first.pop(number, ()))
        results = _results(node, found, definitions, dtype, arithmetic, instead)
        own = DTYPES[call_precision(node.expansion(definitions), dtype)].unit
        least = min((units[n] for n in node.operands() if n in units), default=own)
        units.update(dict.fromkeys(results, min(least, own)))
        found.update(results)
        for name in dropped.get(number, ()):
            del found[name]
    found.update((name, given(name)) for names in first.values() for name in names)
    return {n: _judged(b, units.get(n, 1.0)) for n, b in found.items()}


def _judged(ball: Ball, unit: float) -> Ball:
    """A ball with the oracle's own error; unit: see `rounding.oracle_error`."""
    return Ball(ball.value, rounding.oracle_error(ball, unit), beyond=ball.beyond)


def given_ball(info: TensorInfo, array: Array, arithmetic: Arithmetic = STANDARD) -> Ball:
    """A tensor that is given, exact but for denormal numbers, which a target may flush to zero.

    One that takes them for zero in comparisons alone may give any of several in the place of
    another. array: as `load` gives it.
    """
    ball = Ball(array)
    if info.kind == "real" and arithmetic.flush:
        tiny = DTYPES[info.dtype].tiny
        small = np.abs(array) < tiny
        if small.any() and (flushed := small & (ball.value != 0)).any():
            ball.radius = np.where(flushed, np.abs(ball.value) + tiny, 0.0)
    return ball


def carried(info: TensorInfo, arithmetic: Arithmetic) -> bool:
    """Whether what a call gives may have more digits where it is read than where it is shown."""
    return arithmetic.carries and info.kind == "real" and _unit(info.dtype) > _unit("f32")


def _unit(dtype: str) -> float:
    return DTYPES[dtype].unit


_FOLDED = 2  # roundings of what is multiplied and divided by a scale


def folded(name: str, graph: Graph, definitions: Definitions) -> bool:
    """Whether a value is made by a multiplication or a division last, or is one rearranged."""
    node = next((one for one in graph.nodes if name in one.outputs), None)
    if node is None or graph.values[name].kind != "real":
        return False
    expansion = node.expansion(definitions)
    formal = next(formal for formal, value in node.results().items() if value == name)
    bodies = [one.body for one in expansion.equations if one.target == formal]
    if any(isinstance(body, eq.Apply) and body.function in ("*", "/") for body in bodies):
        return True
    given = node.feeds()
    read = [body.tensor for body in bodies if isinstance(body, eq.Read)]
    return any(folded(given[one], graph, definitions) for one in read if one in given)


def folded_ball(info: TensorInfo, array: Array, arithmetic: Arithmetic) -> Ball:
    """A tensor that is `folded`, as one knows it who was shown it.

    array: as `load` gives it.
    """
    ball, size = given_ball(info, array, arithmetic), np.abs(array)
    off = np.where(np.isfinite(size), gamma(_FOLDED, _unit(info.dtype)) * size, 0.0)
    return Ball(ball.value, off + ball.bound)


def carried_ball(info: TensorInfo, array: Array, arithmetic: Arithmetic) -> Ball:
    """A tensor that is `carried`, as one knows it who was shown it: rounded once to its type.

    array: as `load` gives it.
    """
    ball, row, size = given_ball(info, array, arithmetic), DTYPES[info.dtype], np.abs(array)
    half = np.where(np.isnan(size), 0.0, row.unit * np.maximum(size, row.tiny))
    return Ball(ball.value, half if ball.radius is None else np.maximum(half, ball.radius))


def node_balls(
    node: Node,
    found: Mapping[str, Ball],
    definitions: Definitions,
    dtype: str,
    arithmetic: Arithmetic = STANDARD,
) -> dict[str, Ball]:
    """The results of one call as balls, by value name, given its operands as balls.

    dtype: as in `balls`.
    """
    results = _results(node, found, definitions, dtype, arithmetic)
    unit = DTYPES[call_precision(node.expansion(definitions), dtype)].unit
    return {n: _judged(b, unit) for n, b in results.items()}


def _results(
    node: Node,
    found: Mapping[str, Ball],
    definitions: Definitions,
    dtype: str,
    arithmetic: Arithmetic,
    instead: Mapping[str, Ball] = MappingProxyType({}),
) -> dict[str, Ball]:
    """The results of one call, by value name, without the oracle's own error."""
    expansion = node.expansion(definitions)
    open_ = {f: instead[name] for f, name in node.results().items() if name in instead}
    try:
        given = feeds(node, expansion, found, Ball)
        own = call_precision(expansion, dtype)
        tensors = rounding.evaluate(expansion, given, own, arithmetic, open_)
    except InvalidInput as error:
        raise _placed(error, node) from None
    results = {}
    for formal, name in node.results().items():
        ball = tensors[formal]
        radius = stored(ball.value, ball.radius, expansion, formal, arithmetic)
        results[name] = Ball(
            ball.value, radius, least=ball.least, beyond=ball.beyond, signless=ball.signless
        )
        if arithmetic.distributes:  # calls may be fused
            results[name].terms, results[name].magnitude = ball.terms, ball.magnitude
            # a fusion that leaves the range where the calls do not is a defect, unlike its rounding
            results[name].unrounded = ball.unrounded
    return results


def stored(
    value: Any, radius: Any, expansion: eq.Expansion, formal: str, arithmetic: Arithmetic = STANDARD
) -> Any:
    """The radius of a result, rounded once more where its type is coarser than its operands', or
    where what it adds up may have been added up with what other calls add.
    """
    row = DTYPES[expansion.tensors[formal].dtype]
    reals = [DTYPES[expansion.tensors[name].dtype] for name in expansion.inputs]
    finest = min((item.unit for item in reals if item.kind == "real"), default=row.unit)
    elsewhere = arithmetic.reorders and _adds(expansion)
    if row.kind != "real" or not (finest < row.unit or elsewhere):
        return radius
    number = np.asarray(value, dtype=np.float64)
    with np.errstate(all="ignore"):
        slack = 0.0 if radius is None else radius
        own = row.unit * (np.abs(number) + slack + row.tiny)
        if not elsewhere:  # what the type has is not rounded
            normal = (np.abs(number) >= row.tiny) | (number == 0)
            held = number.astype(row.numpy).astype(np.float64) == number
            own = np.where(held & normal & (np.asarray(slack) == 0), 0.0, own)
        return np.where(np.isfinite(own), own, 0.0) + slack


def _adds(expansion: eq.Expansion) -> bool:
    """Whether a call adds, or takes away."""
    parts = (part for e in expansion.equations for part in eq.walk(e.body))
    return any(isinstance(part, eq.Apply) and part.function in ("+", "-") for part in parts)


def precision(graph: Graph) -> str:
    """The coarsest floating-point type of a program: that of calls which have none of their own."""
    return max(reals(graph.values.values()), key=lambda name: DTYPES[name].unit, default="f32")


def finest(graph: Graph, default: str) -> str:
    """The finest floating-point type of a program: of all, the oracle is the least ahead of it."""
    return min(reals(graph.values.values()), key=lambda name: DTYPES[name].unit, default=default)


def call_precision(expansion: eq.Expansion, default: str) -> str:
    """The coarsest floating-point type among a call's operands and results: it rounds to that.

    Types differ in range as well as in digits, so that none stands for those of other calls.
    """
    infos = (expansion.tensors[name] for name in (*expansion.inputs, *expansion.outputs))
    return max(reals(infos), key=lambda name: DTYPES[name].unit, default=default)


def reals(infos: Iterable[TensorInfo]) -> set[str]:
    """The floating-point types among those of tensors that numbers are computed in."""
    found = {info.dtype for info in infos if info.kind == "real"}
    return {name for name in found if not DTYPES[name].stored}


def _placed(error: InvalidInput, node: Node) -> InvalidInput:
    return InvalidInput(
        *(d if d.span.line else d.at(node.span, node.name) for d in error.diagnostics)
    )
