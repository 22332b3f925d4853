"""Calls that stand apart: every operator in turn by itself, fed with values at the edges.

In a program of many calls a NaN hides what comes behind it, and an operator waits long for its
turn at an edge. Beside the programs of a batch there are a few small ones whose calls do not read
one another; they take all operators that a target has of its own, then the whole catalogue, and so
on. What is wrong there is wrong in one call (`irlang.diff.suspects`).

With gradients the values are finite: zeros, ties, kinks, and numbers far from zero; in some rounds
also those whose products overflow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from irlang import ast
from irlang.catalog import Catalog
from irlang.diff.calls import Case
from irlang.diff.idle import has_idle, is_idle
from irlang.diff.localise import Culprit, isolate
from irlang.diff.pace import PACE
from irlang.diff.programs import Able, informed, with_balls
from irlang.diff.rounds import Fruitless, Rounds
from irlang.diff.verdict import Verdict
from irlang.diff.weighing import differentiated
from irlang.gen.added import kept_to
from irlang.gen.build import generate
from irlang.gen.draw import LONG, Limits
from irlang.gen.edge import Kinds, whole_edges, with_edges_apart
from irlang.gen.extreme import at_extreme
from irlang.gen.layout import is_pointwise, swept
from irlang.gen.lines import in_line
from irlang.gen.pattern import has_slopes, pattern
from irlang.gen.ranges import admitted, demands
from irlang.graph import Graph, Node
from irlang.interp.values import initial_values, inputs

APART = 84  # such programs beside a batch
CALLS = 3  # of each
COMPILED = 12  # of each where all targets compile: that takes hardly longer for more calls
_DRAWN = 3  # calls that are drawn of an operator by itself for one that can be run
_MISSED = 2  # times that none was, after which the operator has no more of this turn
_IDLE = 2  # times in a row that an operator did nothing at all, after which it is let be
_FURTHER = 48  # where the seeds of the second and the third differ: a bit above all counts
_SMOOTH = 3  # with gradients, all but one round of so many are of what has finite results
_TURNS = 6  # of feeding a program: all operands at edges, then one of each call without a value
_ALIKE = 6  # of so many programs one has parameters at the edges of its inputs
_CROSSED = 4  # of so many others all but one have all pairs of edges in calls that go by elements
# What tensors may be in a round of the catalogue, and in those after it: wide enough for what
# goes by vectors, and for what is left of them; in most rounds wide enough for all pairs of edges
# where they may have any shape; in one of many axes, and in two of long ones; in two, of integers
# where there may be any numbers. Every second pair of rounds mixes all kinds of edges. They are odd
# in number, so that rounds of what a target has of its own and of the whole catalogue take turns
# with each of them.
_ROUNDS = (
    Limits(elements=256, many=256),
    Limits(elements=256, empty=30),
    Limits(elements=256, many=256, ints=("i64", "i32", "u8", "i8", "i16"), whole=True),
    Limits(
        elements=2048, length=LONG, many=256, reals=("f64",), ints=("i32", "u8", "i8", "i64", "i16")
    ),
    Limits(elements=256, many=256, reals=("f16",)),
    Limits(elements=256, rank=7, deep=60),
    Limits(elements=256, many=256, reals=("bf16",), ints=("i32", "u8", "i8", "i64", "i16")),
    Limits(elements=2048, length=LONG),
    Limits(elements=256, ints=("i32", "i64", "u8", "i8", "i16"), empty=10, whole=True),
)
# Rounds after which few calls are as they are when nothing is said: those have all been met.
_PLAIN, _ODD = 8, 20
_UNASKED = 4  # one in so many rounds does not keep to what targets ask for beside a definition
Own: TypeAlias = Callable[[Graph], bool]
Asked: TypeAlias = Mapping[str, Sequence[ast.Require]]
_SEEDS = 2**40  # where their seeds start, beyond those of a campaign's programs


def cases_apart(
    catalog: Catalog,
    seed: int,
    batch: int,
    ops: Sequence[str],
    grad: bool,
    count: int = APART,
    able: Able = lambda _: True,
    native: Collection[str] = (),
    own: Own = lambda _: True,
    each: int = APART,
    calls: int = CALLS,
    asked: Asked = MappingProxyType({}),
    dares: Able = lambda _: False,
    ends: int = 0,
) -> Iterator[tuple[int, int, Case]]:
    """The number, the seed and the program of each of the `count` that stand beside a batch.

    able: whether any target can run a program. Of one that none can, the calls are taken one by
    one, and so are those that could not be drawn, or that the oracle has no value for; an operator
    of which there is none then waits, longer every time. native: the operators that a target has of
    its own; own: whether one has such an operator as it is called in a program of one call. each:
    how many stand beside any batch. calls: of each program. asked: see `case_apart`. dares: whether
    a program has forms that targets may refuse: such a call has its turn in these as well, by
    itself. ends: the round of the catalogue from which on calls have, by themselves, numbers at an
    end among their attributes.
    """
    names = list(ops) or catalog.names()
    if grad and not ops:  # what has no derivative by anything says nothing of one
        names = [op.name for op in catalog if has_slopes(op)]
    rounds = Rounds(names, [name for name in names if name in native], seed)
    fruitless = Fruitless()  # operators of which no call is there to be run
    idle: Counter[str] = Counter()  # times that all calls of one did nothing

    def preferred(graph: Graph) -> bool:
        return graph.nodes[0].op.name not in native or own(graph)

    for number in range(batch * each, batch * each + count):
        if PACE.over():
            return
        turns = [rounds.turn(number * calls + i) for i in range(calls)]
        called, around = [name for name, _ in turns], rounds.of(number, calls)
        due = {name for name in dict.fromkeys(called) if fruitless.is_due(name)}
        called = [name for name in called if name in due]
        if not called:
            continue
        start = (seed * 1_000_003 + _SEEDS + number) & (2**62 - 1)
        aside: list[Case] = []
        case = case_apart(catalog, start, called, grad, around, preferred, aside, asked, ops)
        made = [case] if case is not None and able(case) else []
        missed: Counter[str] = Counter()
        met = {node.op.name for one in made for node in one.graph.nodes}
        for name in set_aside(called, made):
            again = name in met  # there is a call, which does nothing
            if missed[name] == _MISSED or (again and idle[name] == _IDLE):
                continue
            drawn = (
                case_apart(
                    catalog, start ^ (turn << _FURTHER), [name], grad, around, preferred,
                    asked=asked, ops=ops, odd=again,
                )
                for turn in range(_DRAWN)
            )  # fmt: skip
            fit = (one for one in drawn if one is not None and able(one))
            one = next((one for one in fit if not again or not has_idle(one)), None)
            idle[name] = idle[name] + 1 if again and one is None else 0
            missed[name] += one is None
            made += [] if one is None else [one]
        made += [one for one in aside if able(one)]
        met = {node.op.name for one in made for node in one.graph.nodes}
        for name in due:
            fruitless.had(name, name in met)
        made += list(_daring(made, dares))
        if not grad and around >= ends:
            ends_of = _at_extremes(made, catalog, start, preferred, asked)
            made += [one for one in ends_of if able(one)]
        yield from ((number, start, one) for one in made)


def _daring(made: Sequence[Case], dares: Able) -> Iterator[Case]:
    """The calls of some programs that have forms which targets may refuse, each by itself."""
    for case in filter(dares, made):
        called = [node for node in case.graph.nodes if case.graph.loss not in node.outputs]
        for _, one in taken_apart(case, called):
            if dares(one):
                yield replace(one, manner=replace(one.manner, bold=True))


def _at_extremes(
    made: Sequence[Case], catalog: Catalog, seed: int, own: Own, asked: Asked
) -> Iterator[Case]:
    """The calls of some programs once more, each by itself, with a number at an end among their
    attributes, where one is valid there; fed with usual numbers, so that it alone is odd. Where
    NaN comes of that, a definition's formula has met what it was not written for.
    """
    for node in [node for case in made for node in case.graph.nodes]:
        graph = at_extreme(node, catalog, seed, own)
        if graph is None:
            continue
        graph, _ = kept_to(graph, asked, bool(seed % 2))
        given = in_line(graph, inputs(graph, seed), asked, catalog, seed)
        case = with_balls(Case(graph, given, {}, catalog))
        balls = [(case.balls or {}).get(name) for name in graph.nodes[0].outputs]
        if not any(ball is None or np.any(ball.value != ball.value) for ball in balls):
            yield case


def set_aside(called: Sequence[str], made: Sequence[Case]) -> list[str]:
    """The operators of which some programs say nothing, or hardly anything."""
    told = {
        node.op.name
        for case in made
        for node in case.graph.nodes
        if _is_known(case, node) and not is_idle(case, node)
    }
    return [name for name in called if name not in told]


def case_apart(
    catalog: Catalog,
    seed: int,
    names: Sequence[str],
    grad: bool,
    around: int = 0,
    own: Own = lambda _: True,
    aside: list[Case] | None = None,
    asked: Asked = MappingProxyType({}),
    ops: Sequence[str] = (),
    odd: bool = False,
) -> Case | None:
    """A program that calls each operator once; None where it has no call or no value.

    around: how often the whole catalogue has had its turn before. own: calls of which it is true
    are preferred. aside: calls that the edges leave without a value are added, each by itself: they
    must end no process. Where edges in all operands of a call leave it without a value, as
    infinities that cancel do, or break a precondition, as a scale below 0 does, one operand alone
    is at edges. asked: what targets document to ask for beside a definition, by operator; most
    calls keep to it, as others say nothing of these targets. ops: the only operators of a campaign
    that has not all of them, so that no other definition need be read. odd: whether no call is as
    it is when nothing is said.
    """
    limits = _ROUNDS[around % len(_ROUNDS)]
    if odd or around >= _PLAIN:
        limits = replace(limits, plain=0 if odd else _ODD)
    if grad:  # integers have no slopes
        limits = replace(limits, whole=False)
    graph = generate(
        catalog, seed, ops=ops or None, apart=names, preferred=own, limits=limits
    ).graph
    asked = asked if around % _UNASKED else {}
    graph, within = kept_to(graph, asked, bool(seed % 2))
    if grad:
        graph, catalog = differentiated(graph, catalog)
    if not graph.nodes or (grad and graph.loss is None):
        return None
    smooth = grad and around % _SMOOTH != _SMOOTH - 1
    kinds: Kinds = "smooth" if smooth else "finite" if grad else "all"
    mixed = around // 2 % 2 == 0  # of all, and of those that a target has
    kept: dict[str, int] = {}  # by call: which of its operands alone is at edges
    base = Case(graph, inputs(graph, seed), initial_values(graph, seed), catalog)
    case = None
    for turn in range(_TURNS):
        if turn == 1:  # more than edges may be at fault
            base = informed(base, seed, _weights(graph))
        case = _at_edges(base, seed ^ (turn << _FURTHER), kinds, mixed, kept, within, asked)
        called = [node for node in graph.nodes if graph.loss not in node.outputs]
        unknown = [node for node in called if case is None or not _is_known(case, node, smooth)]
        if not unknown:
            break
        if turn == 0 and aside is not None and case is not None and not grad:
            aside += [one for _, one in taken_apart(case, unknown)]
        kept |= {node.name: kept.get(node.name, -1) + 1 for node in unknown}
    if case is None or (smooth and unknown):
        return None
    return case if len(unknown) < len(called) else None


def _at_edges(
    base: Case,
    seed: int,
    kinds: Kinds,
    mixed: bool,
    kept: Mapping[str, int],
    within: frozenset[str],
    asked: Asked,
) -> Case | None:
    """A program fed with edges; None where it breaks a precondition on values.

    base: with the other values. kept and asked: see `case_apart`. within: what keeps to its range.
    Several edges together have no value more often than one.
    """
    graph, catalog = base.graph, base.catalog
    graph = replace(graph, inputs=dict(graph.inputs), params=dict(graph.params))
    given, params = dict(base.inputs), dict(base.params)
    weights = _weights(graph)  # what flows back: nothing is learned where it is zero
    spared = set(weights)
    for node in graph.nodes:
        operands = list(dict.fromkeys(node.operands()))
        at = kept.get(node.name)
        if at is not None:
            spared.update(operands[:at] + operands[at + 1 :])
    drawn = {name: a for name, a in {**given, **params}.items() if name not in spared}
    # Together, mostly: by themselves the first input and the first parameter have equal edges in
    # equal places, which are ties and poles; but then no NaN stands beside a number.
    of_inputs = {name: array for name, array in drawn.items() if name in graph.inputs}
    bound = within | _bound(graph, kinds == "smooth")
    alike = seed % _ALIKE == 0
    crossing = [] if alike or not seed // _ALIKE % _CROSSED else _pointwise(graph, catalog)
    along = _swept(graph, catalog)
    edged = with_edges_apart(
        graph, of_inputs if alike else drawn, seed, bound, kinds, mixed, crossing, along,
        _admitted(graph),
    )  # fmt: skip
    if alike:
        rest = {name: array for name, array in drawn.items() if name in graph.params}
        edged = {**edged, **with_edges_apart(graph, rest, seed, bound, kinds, mixed)}
    given |= {name: edged[name] for name in given if name in edged}
    params = {name: edged.get(name, array) for name, array in params.items()}
    fed = in_line(graph, {**given, **params}, asked, catalog, seed)
    given = {name: fed[name] for name in given}
    params = {name: fed[name] for name in params}
    case = with_balls(Case(graph, given, params, catalog, edge=kinds != "smooth"))
    return case if case.balls is not None else None


def _pointwise(graph: Graph, catalog: Catalog) -> list[tuple[str, ...]]:
    """The operands of the calls that go element by element."""
    return [tuple(node.operands()) for node in graph.nodes if is_pointwise(node.expansion(catalog))]


def _swept(graph: Graph, catalog: Catalog) -> dict[str, frozenset[int]]:
    """The axes of operands along which reductions of their calls go."""
    found: dict[str, frozenset[int]] = {}
    for node in graph.nodes:
        axes = swept(node.expansion(catalog))
        found |= {name: axes[formal] for formal, name in node.feeds().items() if axes.get(formal)}
    return found


def _is_known(case: Case, node: Node, finite: bool = False) -> bool:
    """Whether something can be said of a call's results; finite: whether all are finite, without
    which there is no gradient to speak of.
    """
    found = [(case.balls or {})[name] for name in node.outputs]
    if finite and not all(np.all(np.isfinite(np.asarray(b.value, np.float64))) for b in found):
        return False
    return any(not np.size(b.value) or np.any(np.isfinite(np.asarray(b.bound))) for b in found)


def _bound(graph: Graph, grad: bool) -> frozenset[str]:
    """The tensors whose ranges a precondition demands; for smooth gradients a function's domain."""
    found: set[str] = set()
    for node in graph.nodes:
        wanted = set(demands(node.instance) or ())
        if grad:
            wanted |= {s.item.name for s in pattern(node.op).slots if s.domain is not None}
        for formal in wanted & node.inputs.keys():
            operand = node.inputs[formal]
            found.update((operand,) if isinstance(operand, str) else operand)
    return frozenset(found)


def _admitted(graph: Graph) -> dict[str, list[int]]:
    """Whole numbers at edges that tensors may be beside the ranges that are demanded of them."""
    found: dict[str, list[int]] = {}
    for node in graph.nodes:
        within = demands(node.instance) or {}
        numbers = admitted(node.instance, within, whole_edges) if within else {}
        given = node.feeds()
        found |= {given[formal]: some for formal, some in numbers.items() if formal in given}
    return found


def _weights(graph: Graph) -> frozenset[str]:
    """What the loss reads, if there is one: the results, and their weights."""
    reads = (node.operands() for node in graph.nodes if graph.loss in node.outputs)
    return frozenset(name for operands in reads for name in operands)


def taken_apart(
    case: Case, nodes: Sequence[Node], fixed: bool = False
) -> Iterator[tuple[Node, Case]]:
    """Each of some calls as a program of its own, with the values that it has there; fixed: see
    `isolate`.
    """
    grad = case.graph.loss is not None
    for node in nodes:
        fed = {name: case.values[name] for name in node.operands()}
        alone = isolate(case, Culprit(node, Verdict(node.name, "", "agrees"), fed), fixed)
        if grad:
            graph, catalog = differentiated(alone.graph, case.catalog)
            if graph.loss is None:
                continue
            weights = {n: a for n, a in inputs(graph, 0).items() if n not in alone.inputs}
            alone = replace(alone, graph=graph, catalog=catalog, inputs={**alone.inputs, **weights})
        yield node, alone
