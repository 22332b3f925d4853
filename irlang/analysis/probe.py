"""The operand of an unsafe point as a tensor of its own: what a search watches and differentiates.

A point names a scalar function (or `sum`, `prod`) in an equation of a call. Which way its operand
has to go for NaN or infinity follows from the table of scalar functions: beyond the end of a
domain, to zero for a divisor, and as far as can be where a value overflows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from irlang import equations as eq
from irlang.adjoint_graph import Pullback
from irlang.graph import Graph, Node, maker
from irlang.instance import Definitions
from irlang.interp.range import Range
from irlang.scalar import SCALARS

_MOST_ELEMENTS = 4_000_000
_EVEN = ("abs", "sq")  # what is 0 where its argument is, and never negative
_FAR = 1e6  # an argument that no exponential survives in any type but a few in f64


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the equations of a call that may go wrong. operand: where what decides lies."""

    tensor: str
    function: str
    operand: Range


@dataclass(frozen=True, slots=True)
class Probe:
    """Something to watch: the graph up to it, and the name of its value there.

    goal: what brings the trouble nearer: `low`, `high`, `zero`, or `large` of either sign. own:
    whether the value is one of the model's, so that a framework can be asked for it. edge: the end
    of the domain beyond which the value has to be, where it has one.
    """

    graph: Graph
    value: str
    goal: str
    own: bool = True
    edge: float = math.nan


def probes(graph: Graph, node: Node, place: Place, definitions: Definitions) -> Iterator[Probe]:
    """What to watch for a point: the operands that decide, then the size of the result itself."""
    expansion = node.expansion(definitions)
    for equation in expansion.equations:
        if equation.target != place.tensor:
            continue
        for operand, binders, (goal, edge) in _operands(equation.body, place, equation.binders):
            probed = _probed(graph, node, expansion, operand, binders, goal)
            if probed is not None:
                probed = replace(probed, edge=edge)
                yield probed
                yield from _crossings(graph, probed, definitions)
    own = replace(graph, nodes=_before(graph, node, inclusive=True))
    for value in node.outputs:
        if graph.values[value].kind == "real":
            yield Probe(own, value, "large")


def _crossings(graph: Graph, probe: Probe, definitions: Definitions) -> Iterator[Probe]:
    """Of a size or a square, what it is the size of: it is 0 where that changes its sign."""
    call = maker(graph, probe.value)
    if call is None or probe.goal not in ("low", "zero") or not probe.own:
        return
    formal = next(name for name, value in call.results().items() if value == probe.value)
    for equation in call.expansion(definitions).equations:
        body = equation.body
        if equation.target != formal or not isinstance(body, eq.Apply):
            continue
        part = body.args[0]
        signed = body.function in _EVEN and isinstance(part, eq.Read)
        if signed and part.tensor in call.feeds():  # type: ignore[union-attr]
            value = call.feeds()[part.tensor]  # type: ignore[union-attr]
            yield replace(probe, value=value, goal="zero", edge=math.nan)


Binders = tuple[tuple[str, eq.Expr], ...]
Goal = tuple[str, float]  # which way, and the end of the domain there, if there is one


def _operands(
    expr: eq.Expr, place: Place, binders: Binders
) -> Iterator[tuple[eq.Expr, Binders, Goal]]:
    """The operands of a function inside an expression, each with the indices that it hangs on."""
    if isinstance(expr, eq.Apply) and expr.function == place.function:
        for argument, goal in _goals(expr, place.operand):
            yield argument, binders, goal
    if isinstance(expr, eq.Reduce):
        binders = (*binders, *expr.binders)
    for part in eq.children(expr):
        yield from _operands(part, place, binders)


def _goals(expr: eq.Apply, within: Range) -> Iterator[tuple[eq.Expr, Goal]]:
    """Which way an argument of a scalar function has to go for its value not to be finite.

    within: where the argument lies; what is not there is not aimed at.
    """
    row = SCALARS[expr.function]
    if expr.function in ("/", "//", "%"):
        if within.low <= 0 <= within.high:
            yield expr.args[1], ("zero", math.nan)
        return
    if row.arity != 1 or row.kind != "real":
        return
    low, high = row.domain
    if np.isfinite(low) and within.low <= low:
        yield expr.args[0], ("low", low)
    if np.isfinite(high) and within.high >= high:
        yield expr.args[0], ("high", high)
    with np.errstate(all="ignore"):
        for far, goal in ((_FAR, "high"), (-_FAR, "low")):
            inside = low <= far <= high
            if inside and not np.isfinite(row.numpy(np.float64(far))):
                yield expr.args[0], (goal, math.nan)


def _probed(
    graph: Graph,
    node: Node,
    expansion: eq.Expansion,
    operand: eq.Expr,
    binders: Binders,
    goal: str,
) -> Probe | None:
    """The graph up to a call, with one more that gives the operand if it is no value by itself."""
    if isinstance(operand, eq.Read) and operand.tensor in node.feeds():
        before = replace(graph, nodes=_before(graph, node), loss=None)
        return Probe(before, node.feeds()[operand.tensor], goal)
    used = eq.indices(operand)
    kept = tuple((name, bound) for name, bound in binders if name in used)
    if not all(isinstance(bound, (eq.Const, eq.Size)) for _, bound in kept):
        return None  # bounds that hang on other indices: there is no tensor of that shape
    shape = tuple(int(bound.value) for _, bound in kept)  # type: ignore[union-attr]
    reals = [info.dtype for info in expansion.tensors.values() if info.kind == "real"]
    if not reals or not 0 < np.prod(shape, dtype=float) <= _MOST_ELEMENTS:
        return None
    info = eq.TensorInfo(shape, "f64")
    name = "operand"
    while name in expansion.tensors or name in graph.values:
        name += "_"
    made = eq.Expansion(
        expansion.inputs, (name,),
        (*expansion.equations, eq.Equation(name, kept, operand, info)),
        {**expansion.tensors, name: info}, expansion.checks, drawn=expansion.drawn,
    )  # fmt: skip
    call = Pullback(
        node.name, node.op, node.inputs, node.attrs, (name,), node.instance, node.span,
        equations=made, forward=node,
    )  # fmt: skip
    nodes = [*_before(graph, node), call]
    own = replace(graph, nodes=nodes, values={**graph.values, name: info}, loss=None)
    return Probe(own, name, goal, own=False)


def _before(graph: Graph, node: Node, *, inclusive: bool = False) -> list[Node]:
    """The calls that come before a call and that it hangs on."""
    place = next(at for at, one in enumerate(graph.nodes) if one is node)
    needed = set(node.operands())
    kept = [node] if inclusive else []
    for one in reversed(graph.nodes[:place]):
        if needed.intersection(one.outputs):
            kept.append(one)
            needed.update(one.operands())
    return kept[::-1]
