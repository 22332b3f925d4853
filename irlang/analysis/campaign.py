"""A campaign against the analysis itself: generated programs, run where it says that all is well.

Every program gets ranges drawn anew, is analysed, and is run with inputs at corners and at random,
every operation rounded to its type, since that is the arithmetic that is proved to be safe.
NaN or infinity that originates at a call none of whose points is called possible is a finding: the
proof is wrong. What is possible and reached, or only possible, is counted: that is the precision.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from traceback import format_exception
from typing import Any

import numpy as np

from irlang import ast
from irlang.adjoint_graph import gradient_graph, prepare
from irlang.analysis.patterns import tries
from irlang.analysis.subject import Ends, Subject, subject
from irlang.analysis.trace import origins, trace
from irlang.catalog import builtin
from irlang.diagnostics import InvalidInput
from irlang.dtypes import DTYPES
from irlang.gen.build import generate
from irlang.gen.draw import Limits
from irlang.graph import Graph, Param, Port
from irlang.graph_text import to_ast
from irlang.interp.draws import generator, open_values
from irlang.interp.range import Point, analyse
from irlang.interp.values import Array
from irlang.parser.printer import print_file

LIMITS = Limits(elements=120, length=6)
# Of eight programs, by their seeds: in half precision numbers overflow and vanish sooner.
_REALS = (*[("f32",)] * 5, ("f16",), ("bf16",), ("f32", "f16", "bf16", "f64"))
TRIES = 16  # inputs of every program
SIZES = (1, 10)  # calls of a program


@dataclass(frozen=True, slots=True)
class Finding:
    """A call that was called safe and went wrong. text: the program with its ranges.

    error: of a program at which the analysis itself broke; it has no call then.
    """

    seed: int
    node: str
    operator: str
    value: float
    text: str
    inputs: dict[str, Array]
    error: str = ""


@dataclass(slots=True)
class Tally:
    """Sums over programs. points: by their status, `reached` being possible and met."""

    programs: int = 0
    calls: int = 0
    points: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Adds what another has."""
        self.programs += other.programs
        self.calls += other.calls
        self.points.update(other.points)
        self.findings += other.findings

    def as_json(self) -> dict[str, Any]:
        """As in `irlang fuzz --analyze --format json`."""
        keys = ("seed", "node", "operator", "value", "error")
        return {
            "programs": self.programs, "calls": self.calls, "points": dict(self.points),
            "findings": [
                {key: str(getattr(one, key)) if key == "value" else getattr(one, key)
                 for key in keys}
                for one in self.findings
            ],
        }  # fmt: skip


def run_batch(
    seeds: Sequence[int], ops: tuple[str, ...], gradient: bool, domain: str = "relations"
) -> Tally:
    """The programs of some seeds, examined one by one."""
    tally = Tally()
    for seed in seeds:
        tally.add(examine(seed, ops, gradient, domain))
    return tally


def examine(
    seed: int, ops: tuple[str, ...] = (), gradient: bool = False, domain: str = "relations"
) -> Tally:
    """The program of a seed, analysed and run."""
    catalog = builtin()
    limits = replace(LIMITS, reals=_REALS[seed % len(_REALS)])
    graph = generate(catalog, seed, ops=ops or None, size=SIZES, limits=limits).graph
    made = subject(with_ranges(graph, seed), catalog, seed=seed)
    whole = made.graph
    try:
        if gradient:
            whole = gradient_graph(prepare(made.graph, catalog)).graph
        points = analyse(made.graph, catalog, gradient=gradient, domain=domain).points
    except Exception as error:  # noqa: BLE001 (what breaks the analysis is a finding, and no end)
        told = "".join(format_exception(error, limit=-3))
        broken = Finding(
            seed, "", "", float("nan"), print_file(ast.File((to_ast(graph),), 1)), {}, told
        )
        return Tally(1, findings=[broken])
    possible = {point.node for point in points if point.status == "possible"}
    tally = Tally(1, len(whole.nodes))
    met: set[str] = set()
    for values, found in _runs(made, whole, seed):
        for node, bad in origins(whole, found):
            if node.name not in possible | met:  # the first of its inputs tells enough
                wrong = found[bad][~np.isfinite(found[bad])][0]
                text = print_file(ast.File((to_ast(graph),), 1))
                tally.findings.append(
                    Finding(seed, node.name, node.op.name, float(wrong), text, values)
                )
            met.add(node.name)
    tally.points.update(_status(point, met) for point in points)
    return tally


def _status(point: Point, met: set[str]) -> str:
    return "reached" if point.status == "possible" and point.node in met else point.status


def _runs(
    made: Subject, whole: Graph, seed: int
) -> Iterator[tuple[dict[str, Array], dict[str, Array]]]:
    """Inputs, and every value for them, where the preconditions hold."""
    for number, values in enumerate(itertools.islice(tries(made.graph, seed), TRIES)):
        drawn = open_values(made.graph, seed + number, made.catalog)
        try:
            given = {**values, **made.fixed, **drawn}
            yield values, trace(whole, given, made.catalog, rounding=True)
        except InvalidInput:
            continue


def with_ranges(graph: Graph, seed: int) -> Graph:
    """The graph, with ranges drawn for what is real, its own among them."""
    numbers = generator(seed, "ranges")
    given: list[Port | Param] = [*graph.inputs.values(), *graph.params.values()]
    for one in given:
        if one.info.kind != "real" or (isinstance(one, Param) and one.literal):
            continue
        row = DTYPES[one.info.dtype]
        low, high = _ends(numbers, one.within, row.largest)
        one.within = float(row.numpy.type(low)), float(row.numpy.type(high))
        if isinstance(one, Param):
            one.initial = None
    return graph


def _ends(numbers: np.random.Generator, own: Ends | None, largest: float) -> Ends:
    """A range: its own, or one that is symmetric, on one side of zero, or away from it."""
    kind = numbers.integers(6)
    if own is not None and kind < 2:
        return own
    size = min(10.0 ** numbers.choice([0, 0, 1, 2, 3, 20]) * numbers.uniform(0.5, 2), largest / 2)
    return ((-size, size), (0.0, size), (-size, 0.0), (size / 2, size))[max(0, int(kind) - 2)]
