"""What works for an operator: every meaning and every target, tried on small calls of it.

A meaning either works on all calls, does not apply (with the reason), or fails; nothing is said by
name. Reference, exact and rounding are tried together: they work if their values agree within the
radius.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irlang import ast
from irlang.adjoint import adjoint
from irlang.catalog import Catalog
from irlang.diagnostics import InvalidInput
from irlang.docs.calls import calls
from irlang.docs.gradients import has_gradient
from irlang.docs.lowering import Lowering, lowerings
from irlang.gen.draw import Limits
from irlang.gen.lines import drawn
from irlang.graph import Graph
from irlang.interp import ensured, exact, reference, rounding
from irlang.interp.balls import Ball
from irlang.interp.draws import open_values
from irlang.interp.plain import load
from irlang.interp.program import run
from irlang.lower.lower import tables
from irlang.mathematics import latex
from irlang.mathematics.definition import mathematics

MEANINGS = ("shape", "reference", "exact", "rounding", "ensure", "gradient", "generator", "docs")
_CALLS = 6  # that are lowered
_EVALUATED = 3  # of them, that are evaluated in every meaning
_LIMITS = Limits(elements=48, length=5, alike=0)
_WORK = 20_000  # of the exact evaluator, for one call

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Cell:
    """One meaning. mark: `+` works, `-` does not apply, `!` fails; reason of the last two."""

    mark: str
    reason: str = ""


WORKS = Cell("+")


@dataclass(slots=True)
class Row:
    """One operator. calls: how many were tried. types: classes of its element types."""

    name: str
    calls: int
    types: str
    meanings: dict[str, Cell] = field(default_factory=dict)
    targets: dict[str, Lowering] = field(default_factory=dict)

    @property
    def faults(self) -> list[str]:
        """The meanings that fail."""
        return [name for name, cell in self.meanings.items() if cell.mark == "!"]

    def remarks(self) -> list[str]:
        """Reasons, where something does not work."""
        found = [f"{name}: {cell.reason}" for name, cell in self.meanings.items() if cell.reason]
        for target, way in self.targets.items():
            found += [f"{target}: {reason}" for reason in sorted(way.refused)]
        return found

    def as_json(self) -> dict[str, Any]:
        """As `irlang ops --coverage --format json` shows it."""
        return {
            "name": self.name,
            "calls": self.calls,
            "types": self.types,
            "meanings": {
                name: {"works": {"+": True, "-": None, "!": False}[cell.mark],
                       "reason": cell.reason or None}
                for name, cell in self.meanings.items()
            },
            "targets": {target: way.as_json() for target, way in self.targets.items()},
        }  # fmt: skip


def cover(op: ast.Op, catalog: Catalog, count: int = _CALLS) -> Row:
    """The row of an operator, by so many calls of it."""
    graphs: list[Graph] = []
    drawn = _tried(lambda: graphs.extend(calls(op, catalog, count, _LIMITS)))
    types = " ".join(f"{variable}:{kind}" for variable, kind in op.dtypes)
    row = Row(op.name, len(graphs), types)
    row.meanings = dict.fromkeys(MEANINGS, WORKS)
    row.meanings["docs"] = _tried(lambda: _document(op))
    if not graphs:
        row.meanings["generator"] = drawn if drawn.reason else Cell("!", "no call could be drawn")
    evaluated = 0
    for graph in graphs:
        if evaluated == _EVALUATED:
            break
        evaluated += _evaluate(graph, catalog, row)
    if graphs and not evaluated:
        row.meanings["exact"] = Cell("!", "no call was small enough, or all were refused")
    if graphs:
        row.meanings["gradient"] = _gradient(graphs, catalog)
        row.meanings["ensure"] = _ensured(graphs, catalog)
    row.targets = {target: Lowering(target, "") for target in tables()}
    lowered = _tried(lambda: row.targets.update(_by_target(op, catalog, graphs)))
    if lowered.reason:
        for way in row.targets.values():
            way.refused[lowered.reason] += 1
    return row


def _ensured(graphs: Sequence[Graph], catalog: Catalog) -> Cell:
    """Whether what is drawn where values are left open is what the definition ensures."""
    judged = 0
    for graph in graphs:
        node = graph.nodes[0]
        expansion = node.expansion(catalog)
        if not expansion.is_open:
            continue
        values = {**_drawn(graph, catalog), **open_values(graph, 0, catalog)}
        found = run(graph, values, catalog)
        feeds = {formal: found[name] for formal, name in node.feeds().items()}
        results = {formal: found[name] for formal, name in node.results().items()}
        for clause in ensured.judge(expansion, {**feeds, **results}, "f64", results):
            if not clause.holds:
                return Cell("!", clause.message)
            judged += 1
    return WORKS if judged else Cell("-", "every value is determined")


def _by_target(op: ast.Op, catalog: Catalog, graphs: Sequence[Graph]) -> dict[str, Lowering]:
    return {way.target: way for way in lowerings(op, catalog, graphs)}


def _tried(action: Callable[[], object]) -> Cell:
    """Whether something works. Whatever it raises is what the table is there to show."""
    try:
        action()
    except Exception as error:  # noqa: BLE001
        return Cell("!", f"{type(error).__name__}: {' '.join(str(error).split())[:120]}")
    return WORKS


def _document(op: ast.Op) -> None:
    if not op.doc:
        raise ValueError("the definition says nothing of itself")
    latex.displays(mathematics(op))


def _drawn(graph: Graph, catalog: Catalog) -> Values:
    """The inputs and parameters, in the order that definitions want."""
    values, params = drawn(graph, catalog, 0)
    return {**values, **params}


def _evaluate(graph: Graph, catalog: Catalog, row: Row) -> bool:
    """Tries a call in the meanings that give values; False where its values were refused."""
    node = graph.nodes[0]
    if node.instance.outputs is None:
        row.meanings["shape"] = Cell("!", "a valid call has no types")
        return False
    expansion = node.expansion(catalog)
    given = _drawn(graph, catalog)
    feeds = {formal: given[name] for formal, name in node.feeds().items()}
    results: dict[str, Values] = {}
    meanings: dict[str, Callable[[], Values]] = {
        "exact": lambda: exact.evaluate(expansion, feeds, limit=_WORK),
        "reference": lambda: reference.evaluate(expansion, feeds),
        "rounding": lambda: rounding.evaluate(
            expansion,
            {name: Ball(np.asarray(load(expansion.tensors[name], feeds[name]))) for name in feeds},
            "f64",
        ),
    }
    for name, evaluate in meanings.items():
        try:
            results[name] = evaluate()
        except InvalidInput as error:
            if _is_refusal(error, catalog):
                return False
            row.meanings[name] = Cell("!", str(error))
            return True
        except Exception as error:  # noqa: BLE001
            row.meanings[name] = Cell("!", f"{type(error).__name__}: {error}")
            return True
    for output in expansion.outputs:
        ball = results["rounding"][output]
        found = (results["reference"][output], results["exact"][output].numpy())
        if not _agree(*found, ball.bound):
            row.meanings["reference"] = Cell("!", f"`{output}` is not what `exact` gives")
    return True


def _is_refusal(error: InvalidInput, catalog: Catalog) -> bool:
    """Whether drawn values violate a precondition, or the call is too much work to try."""
    return all(
        fault.code == "run.work" or catalog.op(fault.code.partition(".")[0]) is not None
        for fault in error.diagnostics
    )


def _agree(value: Any, true: Any, bound: Any) -> bool:
    """Whether a value lies within the radius of the true one, whose own rounding is added."""
    value, true = (np.asarray(array, dtype=np.float64) for array in (value, true))
    radius = np.broadcast_to(np.asarray(bound), value.shape) + np.finfo(np.float64).eps * abs(true)
    same = (value == true) | (np.isnan(value) & np.isnan(true)) | np.isinf(radius)
    with np.errstate(invalid="ignore"):
        return bool(np.all(same | (np.abs(value - true) <= radius)))


def _gradient(graphs: Sequence[Graph], catalog: Catalog) -> Cell:
    """Whether calls that take real numbers to real numbers have their equations."""
    expansions = (graph.nodes[0].expansion(catalog) for graph in graphs)
    smooth = [expansion for expansion in expansions if has_gradient(expansion)][:_EVALUATED]
    if not smooth:
        return Cell("-", "no real numbers go in and come out")
    cells = [_tried(lambda e=expansion: adjoint(e)) for expansion in smooth]  # type: ignore[misc]
    return next((cell for cell in cells if cell.reason), WORKS)
