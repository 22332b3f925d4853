"""Concrete evaluations held to the ranges of `irlang.interp.range`: what lies outside is a fault.

    python -m tests.soundness --programs 2000 [--seed 0] [--size 1 6] [--gradient] [--domain tensor]
    python -m tests.soundness --each 4 [--gradient]    # programs of one call, of every definition

Programs are the generator's, with ranges drawn anew for what is real; their values are corners,
zeros and random numbers inside these. Every operation is rounded to the element type by NumPy,
which shares no code with the sets of numbers of the analysis. What is checked of every call whose
real operands are finite: its results lie in their range and in that of their region, and none is
NaN or Inf unless a point of the call is called possible.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from irlang.adjoint_graph import Pullback, gradient_graph, prepare
from irlang.catalog import Catalog, builtin
from irlang.diagnostics import InvalidInput
from irlang.dtypes import DTYPES
from irlang.gen.build import generate
from irlang.gen.draw import Limits
from irlang.graph import Graph, Node, Param, Port
from irlang.interp.draws import open_values
from irlang.interp.plain import load
from irlang.interp.range import Analysis, Range, analyse
from irlang.interp.stepwise import evaluated
from irlang.interp.values import initial_values, inputs

Array = np.ndarray[Any, np.dtype[Any]]
LIMITS = Limits(elements=60, length=5)
VALUES = 8  # of every program
_ALIKE = 5  # of so many values one set is drawn alike for all inputs
_TRIES = 40  # seeds for a program of a definition


@dataclass(frozen=True)
class Fault:
    """A value outside its range. what: in words."""

    node: str
    operator: str
    value: str
    what: str


def ranges(graph: Graph, seed: int) -> Graph:
    """The graph with ranges drawn for its real inputs and parameters, in place of its own."""
    numbers = np.random.default_rng([11, seed])
    given: Iterator[Port | Param] = iter([*graph.inputs.values(), *graph.params.values()])
    for one in given:
        if one.info.kind == "real":
            row = DTYPES[one.info.dtype]
            low, high = _ends(numbers, one.within, row.largest)
            # as numbers of the type: between others there may be none
            one.within = float(row.numpy.type(low)), float(row.numpy.type(high))
            if isinstance(one, Param):
                one.initial = None
    return graph


def _ends(
    numbers: np.random.Generator, own: tuple[float, float] | None, largest: float
) -> tuple[float, float]:
    """Two ends: narrow or wide, with zero inside, at an end, or outside; or the generator's own."""
    kind = int(numbers.integers(0, 8))
    if own is not None and kind < 2:
        return own
    size = min(10.0 ** numbers.uniform(-4, 4 if kind < 6 else 38), largest / 4)
    if kind == 2:
        return -size, size
    if kind == 3:
        return 0.0, size
    if kind == 4:
        return -size, 0.0
    centre = float(numbers.normal() * size)
    width = size * float(numbers.choice([0.0, 0.01, 0.5, 1.0]))
    return centre - width, centre + width


def samples(graph: Graph, seed: int, count: int = VALUES) -> Iterator[dict[str, Array]]:
    """Values of all inputs and parameters inside their ranges."""
    plain = {**inputs(graph, seed), **initial_values(graph, seed)}
    given: dict[str, Port | Param] = {**graph.inputs, **graph.params}
    for number in range(count):
        numbers = np.random.default_rng([seed, number])
        found = dict(plain)
        for name, one in given.items():
            if number % _ALIKE == _ALIKE - 1:  # what cancels: all that have one range are the same
                numbers = np.random.default_rng([seed, number])
            if one.info.kind == "real" and one.within is not None:
                found[name] = _drawn(numbers, one, number)
        yield found


def _drawn(numbers: np.random.Generator, one: Port | Param, number: int) -> Array:
    """All at an end, some at each, near zero, all the same, evenly drawn, or along rows or columns
    the same but for a few roundings.
    """
    assert one.within is not None
    shape, kind = one.info.shape, DTYPES[one.info.dtype].numpy
    low, high = (_inner(end, kind, up) for end, up in zip(one.within, (True, False), strict=True))
    if low > high:  # what one number is that the type does not have
        low = high = float(kind.type(one.within[0]))
    choice = number if number < 3 else int(numbers.integers(0, 9))
    zero = min(max(low, 0.0), high)
    even = numbers.uniform(size=shape)
    spread = low * (1 - even) + high * even
    shaken = 1 + DTYPES[one.info.dtype].unit * numbers.integers(-2, 3, size=shape)
    with np.errstate(over="ignore"):
        array: Any = [
            np.full(shape, low),
            np.full(shape, high),
            spread,
            np.where(even < 0.5, low, high),
            np.full(shape, zero),
            np.where(even < 0.3, zero, np.where(even < 0.6, low, high)),
            zero + (spread - zero) * 10.0 ** -numbers.uniform(0, 8, size=shape),
            _alike_along(spread, -1) * shaken,
            _alike_along(spread, 0) * shaken,
        ][choice].astype(kind)
    return np.asarray(np.clip(array, kind.type(low), kind.type(high)))


def _alike_along(array: Array, axis: int) -> Array:
    """The first slice of an array along an axis, in place of all of them."""
    if 0 in array.shape or not array.ndim:
        return array
    return np.broadcast_to(array.take([0], axis=axis), array.shape)


def _inner(end: float, kind: np.dtype[Any], up: bool) -> float:
    """The number of a type that is nearest to an end of a range, on the inner side."""
    number = kind.type(end)
    if (float(number) < end) if up else (float(number) > end):
        number = np.nextafter(number, kind.type(math.inf if up else -math.inf))
    return float(number)


def programs(
    catalog: Catalog, name: str, count: int, limits: Limits = LIMITS
) -> Iterator[tuple[Graph, int]]:
    """Programs of one call of a definition, with ranges drawn for them, and their seeds."""
    for seed in range(_TRIES):
        graph = generate(catalog, seed, ops=(name,), size=(1, 1), limits=limits).graph
        if graph.nodes and count > 0:
            count -= 1
            yield ranges(graph, seed), seed


def violations(
    graph: Graph,
    catalog: Catalog,
    seed: int,
    *,
    gradient: bool = False,
    domain: str = "relations",
    count: int = VALUES,
) -> tuple[list[Fault], Analysis, int]:
    """What concrete values show that the ranges do not hold, and how many calls were compared.

    count: of the values that are tried.
    """
    analysis = analyse(graph, catalog, gradient=gradient, domain=domain)
    whole = gradient_graph(prepare(graph, catalog)).graph if gradient else graph
    possible = {point.node for point in analysis.points if point.status == "possible"}
    faults: dict[tuple[str, str], Fault] = {}
    compared = 0
    for number, given in enumerate(samples(graph, seed, count)):
        found = {name: load(graph.values[name], array) for name, array in given.items()}
        for name in whole.values:  # what every gradient starts from
            if name.startswith("d_") and name not in found and not _made(whole, name):
                found[name] = np.ones(whole.values[name].shape)
        found |= {
            name: np.asarray(array)
            for name, array in open_values(graph, seed + number, catalog).items()
        }
        for node in whole.nodes:
            try:
                results = evaluated(node, found, catalog)
            except InvalidInput:
                break  # a precondition does not hold: nothing is promised
            found.update(results)
            operands = [*node.operands(), *_forward(node)]
            if all(_finite(found[name]) for name in operands):
                compared += 1
                for fault in _outside(node, results, analysis, node.name in possible):
                    faults.setdefault((fault.node, fault.what[:12]), fault)
    return list(faults.values()), analysis, compared


def _forward(node: Node) -> tuple[str, ...]:
    """The results of the call whose adjoint this is: what went wrong there is no news here."""
    return node.forward.outputs if isinstance(node, Pullback) and node.forward else ()


def _made(graph: Graph, name: str) -> bool:
    return any(name in node.outputs for node in graph.nodes)


def _finite(array: Array) -> bool:
    return array.dtype != np.float64 or bool(np.isfinite(array).all())


def _outside(
    node: Node, results: Mapping[str, Array], analysis: Analysis, possible: bool
) -> Iterator[Fault]:
    """What of the results of a call is not as the analysis has it."""
    for name, array in results.items():
        if array.dtype == object:
            continue
        told = analysis.values[name]
        if not _finite(array) and not possible and not _may(told, array):
            shown = array[~np.isfinite(array)][0]
            yield Fault(node.name, node.op.name, name, f"{shown} where no point is possible")
        yield from _apart(node, name, array, told, "the range")
        for box, one in analysis.regions[name]:
            part = array[tuple(slice(*ends) for ends in box)]
            yield from _apart(node, name, part, one, f"region {box}")


def _may(told: Range, array: Array) -> bool:
    """Whether a range says that what is not finite may be."""
    return (
        (told.nan or not np.isnan(array).any())
        and (told.high == math.inf or not (array == math.inf).any())
        and (told.low == -math.inf or not (array == -math.inf).any())
    )


def _apart(node: Node, name: str, array: Array, told: Range, where: str) -> Iterator[Fault]:
    numbers = array[np.isfinite(array)] if array.dtype == np.float64 else array.astype(np.float64)
    out = (numbers < told.low) | (numbers > told.high)
    if out.any():
        what = (
            f"{where} is [{told.low:.9g}, {told.high:.9g}], and {numbers[out][0]:.9g} was computed"
        )
        yield Fault(node.name, node.op.name, name, what)


def _wanted(catalog: Catalog, said: argparse.Namespace) -> Iterator[tuple[Graph, int]]:
    if said.each:
        for op in catalog:
            yield from programs(catalog, op.name, said.each)
        return
    for seed in range(said.seed, said.seed + said.programs):
        graph = generate(catalog, seed, size=tuple(said.size), limits=LIMITS).graph
        yield ranges(graph, seed), seed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--each", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--size", type=int, nargs=2, default=(1, 6))
    parser.add_argument("--gradient", action="store_true")
    parser.add_argument("--domain", default="relations")
    parser.add_argument("--seconds", type=float, default=math.inf)
    said = parser.parse_args()
    catalog = builtin()
    start, calls, bad, done, slow = time.monotonic(), 0, 0, 0, 0.0
    for graph, seed in _wanted(catalog, said):
        before = time.monotonic()
        if before - start > said.seconds:
            break
        ops = " ".join(node.op.name for node in graph.nodes)
        try:
            faults, _, compared = violations(
                graph, catalog, seed, gradient=said.gradient, domain=said.domain
            )
        except InvalidInput as error:
            print(f"seed {seed} ({ops}): refused: {error}", flush=True)
            continue
        done, calls = done + 1, calls + compared
        slow = max(slow, time.monotonic() - before)
        bad += len(faults)
        for fault in faults:
            print(
                f"seed {seed} ({ops}): {fault.operator} `{fault.value}`: {fault.what}", flush=True
            )
    spent = time.monotonic() - start
    print(
        f"{done} programs, {calls} calls compared, {bad} faults; {spent:.0f} s, "
        f"the slowest program {slow:.1f} s"
    )


if __name__ == "__main__":
    main()
