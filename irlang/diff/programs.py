"""The programs of a campaign: a function of its seed and their number alone.

A program is drawn again until the oracle can judge it; with gradients it has a loss.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from irlang import ast
from irlang.catalog import Catalog
from irlang.diagnostics import InvalidInput
from irlang.diff.calls import Case
from irlang.diff.weighing import differentiated
from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.gen.anew import Balls, Values, anew
from irlang.gen.build import generate
from irlang.gen.coverage import Coverage
from irlang.gen.draw import varied
from irlang.gen.edge import on_grid, with_edges, with_edges_apart
from irlang.gen.layout import is_pointwise
from irlang.gen.lines import in_line
from irlang.gen.rare import SHARE, common
from irlang.graph import Graph, with_loss
from irlang.interp.balls import Ball
from irlang.interp.program import balls, precision
from irlang.interp.values import initial_values, inputs

Array = np.ndarray[Any, np.dtype[Any]]
BATCH = 32  # programs that go to a worker together
EDGE = 6  # one in so many programs has values at the edges of their types in its inputs
_ATTEMPTS = 8  # programs that are drawn for one that the oracle can judge
_OF_EACH = 2  # programs of a batch for each operator of a campaign that has but few
_PIECES = (1, 2)  # of every four programs those made of idioms alone: there passes fire
_PIECE_CALLS = (4, 16)
_LOSSES = 3  # one in so many programs has a number of its own as its loss, where it has one
_TURNS = 4  # of programs at edges, in two of which all that go by elements have them in pairs
_COARSE = 3  # one in so many programs with gradients has halves for numbers
_EXACT = 5  # and one in so many without: no order of a sum of a few products of these rounds anything


Able: TypeAlias = Callable[[Case], bool]
# What targets document to ask for beside a definition, by operator.
Asked: TypeAlias = Mapping[str, Sequence[ast.Require]]
_NOTHING: Asked = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Settings:
    """What a campaign is. programs: how many to run; seconds: for how long; either may be None."""

    targets: tuple[str, ...]
    seed: int
    programs: int | None = None
    seconds: float | None = None
    ops: tuple[str, ...] = ()
    grad: bool = False
    jobs: int = 1
    known: str = ""  # a file of findings that are known (`irlang.diff.suppress`)
    profile: str = ""  # one of what is accepted of targets (`irlang.lower.profile`)


def drawn(
    settings: Settings,
    number: int,
    catalog: Catalog,
    able: Able = lambda _: True,
    asked: Asked = _NOTHING,
) -> Iterator[tuple[int, int, Case | None]]:
    """All that is drawn for the programs of a batch, with the number of the program and the seed.

    Where nothing could be judged, and there is no case, another is drawn. able and asked: as of
    `make_case`.
    A campaign of few operators that is to last so long, and not to run so many, has few: its calls
    apart would have no turn again before chains of one operator have all been run.
    """
    coverage, count = Coverage(), planned(settings, number)
    if settings.programs is None and settings.ops:
        count = min(count, _OF_EACH * len(settings.ops))
    for place in range(number * BATCH, number * BATCH + count):
        for attempt in range(_ATTEMPTS):
            seed = program_seed(settings.seed, place, attempt)
            case = make_case(catalog, seed, settings.ops, coverage, settings.grad, able, asked)
            yield place, seed, case
            if case is not None:
                coverage.note(case.graph)
                break


def planned(settings: Settings, number: int) -> int:
    """How many programs a batch is to have."""
    return BATCH if settings.programs is None else min(BATCH, settings.programs - number * BATCH)


def program_seed(seed: int, number: int, attempt: int = 0) -> int:
    """The seed of a campaign's program."""
    return ((seed * 1_000_003 + number) * _ATTEMPTS + attempt) & (2**62 - 1)


def make_case(
    catalog: Catalog,
    seed: int,
    ops: tuple[str, ...] = (),
    coverage: Coverage | None = None,
    grad: bool = False,
    able: Able = lambda _: True,
    asked: Asked = _NOTHING,
) -> Case | None:
    """A generated program with values; None where the oracle could judge none of its outputs.

    ops: that it may call; if none are said, one program in some may call those that few have.
    grad: with a loss (`trainable`); one in `_COARSE` is fed with halves, which are often equal; one
    in `_EXACT` of those without gradients.
    able: whether any target can run a program; one that none can is not worth an oracle. asked:
    what lines of inputs and parameters are to keep to.

    That is where a precondition on values fails, an output is not finite, or all are unstable. One
    program in `EDGE` is fed with values at the edges of their types; there any output will do. One
    that makes NaN or infinity on its way to finite outputs is at the edges, too. Those
    in `_PIECES` are made of what optimisers look for.
    """
    limits = varied(seed // _ATTEMPTS)
    if not ops and seed // _ATTEMPTS % SHARE:
        ops = common(catalog)
    how: dict[str, Any] = {"limits": limits, "coverage": coverage}
    if seed // _ATTEMPTS % 4 in _PIECES:
        how.update(size=_PIECE_CALLS, pieces=100)
    graph = generate(catalog, seed, ops=ops or None, **how).graph
    return fed(graph, catalog, seed, grad, seed // _ATTEMPTS % EDGE == 0, able, asked)


def fed(
    graph: Graph,
    catalog: Catalog,
    seed: int,
    grad: bool,
    edge: bool,
    able: Able,
    asked: Asked = _NOTHING,
) -> Case | None:
    """A program with values; None where no target can run it or the oracle could judge nothing.

    edge: whether they are at the edges of their types; not so with gradients. For the others see
    `make_case`.
    """
    if grad:
        graph, catalog = trainable(graph, catalog, seed)
        edge = False
    given = inputs(graph, seed)
    params = initial_values(graph, seed)
    if edge:
        given, params = _edged(graph, given, params, catalog, seed)
    coarse = not edge and seed // _ATTEMPTS % (_COARSE if grad else _EXACT) == 1
    if coarse:
        given, params = on_grid(graph, given), on_grid(graph, params)
    drawn = {**given, **params}
    kept = in_line(graph, drawn, asked, catalog, seed)
    given, params = {name: kept[name] for name in given}, {name: kept[name] for name in params}
    case = Case(graph, given, params, catalog, edge=edge)
    if not able(case):
        return None
    arranged = [name for name, array in kept.items() if array is not drawn[name]]
    case = with_balls(case) if edge or coarse else informed(case, seed, arranged)
    if case.balls is None:
        return None
    found = [case.balls[value] for value in graph.outputs.values()]
    finite = all(np.all(np.isfinite(np.asarray(ball.value, dtype=np.float64))) for ball in found)
    # what is fed with NaN or infinity inside the program is at the edge of its types as well
    if not grad:
        case.edge |= not all(_held(graph.values[n], b) for n, b in case.balls.items())
    known = any(not np.size(b.value) or np.any(np.isfinite(np.asarray(b.bound))) for b in found)
    return case if (finite or edge) and known else None


def _edged(
    graph: Graph, given: Values, params: Values, catalog: Catalog, seed: int
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Inputs with values at the edges of their types, and parameters as they are.

    Where all calls go element by element edges meet one another in one program in two, in every
    second of these those of parameters too: what an optimiser takes out of a sum is another number
    where one factor is infinite and the other 0, which are hardly ever drawn for one place.
    """
    turn = seed // _ATTEMPTS % _TURNS
    if not turn % 2 or not all(is_pointwise(n.expansion(catalog)) for n in graph.nodes):
        return with_edges(graph, dict(given), seed), dict(params)
    both = {**given, **(params if turn == _TURNS - 1 else {})}
    kinds = {name: graph.values[name].kind for name in both}
    bound = [name for name, kind in kinds.items() if kind == "int"]
    met = tuple(name for name, kind in kinds.items() if kind != "bool")
    found = with_edges_apart(graph, both, seed, bound, crossing=[met])
    return {name: found[name] for name in given}, {n: found.get(n, a) for n, a in params.items()}


def with_balls(case: Case) -> Case:
    """A program with what the oracle says of every value, unless it breaks a precondition."""
    start = time.monotonic()
    try:
        found = balls(case.graph, case.values, case.catalog, precision(case.graph))
    except InvalidInput:
        return case
    return replace(case, balls=found, took=time.monotonic() - start)


def informed(case: Case, seed: int, spared: Collection[str] = ()) -> Case:
    """A program with values of which something is known (`irlang.gen.anew`), and what is.

    spared: names of inputs and parameters whose values stay.
    """
    graph, took = case.graph, 0.0

    def judge(values: Values) -> Balls | None:
        nonlocal took
        inputs = {name: values[name] for name in case.inputs}
        params = {name: values[name] for name in case.params}
        judged = with_balls(replace(case, inputs=inputs, params=params))
        took = max(took, judged.took)
        return judged.balls

    values, found = anew(graph, case.values, seed, judge, spared)
    inputs = {name: values[name] for name in case.inputs}
    params = {name: values[name] for name in case.params}
    known = None if found is None else {**found}
    return replace(case, inputs=inputs, params=params, balls=known, took=took)


def _held(info: TensorInfo, ball: Ball) -> bool:
    """Whether values are numbers that their type reaches."""
    if info.kind != "real":
        return True
    with np.errstate(invalid="ignore"):
        return bool(np.all(np.abs(ball.value) <= DTYPES[info.dtype].largest))


def trainable(graph: Graph, catalog: Catalog, seed: int) -> tuple[Graph, Catalog]:
    """A program with a loss, and the catalogue that it needs.

    Of one in `_LOSSES` programs it is one of its own numbers, which a loss function may have given;
    of the others it weighs all real results of a type, so that something flows back to every call.
    """
    if seed // _ATTEMPTS % _LOSSES == 0 and with_loss(graph).loss is not None:
        return with_loss(graph), catalog
    return differentiated(graph, catalog)
