"""Pieces that stand apart: every idiom in turn, as a program of its own.

A pass of an optimiser fires on a few calls, and is wrong for some of their shapes, types and
numbers. Whole programs meet each idiom too seldom for that. Beside every batch of them there are
many pieces, which are small and quick, so that every idiom has its turn again and again; first
those of which a target has all operators. Of a third of them one thing is otherwise than a pass
expects (`irlang.gen.idiom.otherwise`). Between them are some that nobody wrote down
(`irlang.gen.composed`): one in two of a campaign that names its operators, which few idioms are of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType

from irlang.catalog import Catalog
from irlang.diff.calls import Case
from irlang.diff.idle import has_idle
from irlang.diff.programs import Able, Asked, Settings, fed, with_balls
from irlang.diff.rounds import Rounds
from irlang.gen.added import kept_to
from irlang.gen.build import generate
from irlang.gen.choice import Chooser
from irlang.gen.composed import composable, composed
from irlang.gen.converted import converted
from irlang.gen.draw import LONG, Limits
from irlang.gen.idiom import is_call
from irlang.gen.kit import kit_of
from irlang.interp.values import inputs
from irlang.lower.lower import promoting, spelt
from irlang.lower.manner import Manner
from irlang.lower.modes import ROWS
from irlang.lower.target import describe

_PIECES = 192  # beside a batch
_OF_FILES = 2  # times as many where a target is given a file: all that it holds is optimised
_EDGE = 3  # one in so many has values at the edges of their types
_WIDE = 1  # times that such a one is drawn for pairs of edges to have room, before it need not
_LONG = 6  # calls: for every so many an idiom has a turn more, as more of it may be otherwise
_SEEDS = 2**41  # where their seeds start, beyond those of calls apart
TOGETHER = 6  # in one program where all targets compile: that takes hardly longer for more calls
_OFTEN, _SELDOM = 2, 8  # one in so many is composed, where operators are named, and where not
# One in so many is a call that targets convert operands of, where operators are named, and not.
_OFTEN_CONVERTED, _SELDOM_CONVERTED = 4, 16
_DRAWN = 3  # times that one is drawn which the oracle has no value for, or in which a call is idle
# Small lengths are equal more often: then what is reduced or moved along another axis fits as well.
_LIMITS = (
    Limits(elements=256, length=2),
    Limits(elements=256, length=3),
    Limits(elements=256, length=4),
    Limits(elements=256, length=9),
    Limits(elements=2048, length=LONG),
    Limits(length=LONG),
    Limits(elements=256, length=4, empty=40),
    Limits(elements=256, length=9, reals=("f64",)),
    Limits(elements=256, length=9, reals=("f16",)),
    Limits(elements=256, length=9, reals=("bf16",)),
    Limits(elements=256, length=4, ints=("i32", "u8", "i8", "i64", "i16")),
)


def beside(targets: Sequence[str]) -> int:
    """How many pieces there are beside a batch of a campaign of some targets."""
    files = any(ROWS[describe(target).framework].kind == "onnx" for target in targets)
    return _PIECES * (_OF_FILES if files else 1)


def pieces(
    settings: Settings, batch: int, catalog: Catalog, able: Able, count: int | None = None,
    together: int = 1, asked: Asked = MappingProxyType({}), dares: Able = lambda _: False,
) -> Iterator[tuple[int, int, Case]]:  # fmt: skip
    """The number, the seed and the program of each of the pieces beside a batch.

    able: whether any target can run a program. count: how many have their turn, if not all.
    together: how many are one program. asked: as of `make_case`. dares: whether a program has
    forms that targets may refuse.
    """
    each = beside(settings.targets)
    ops = settings.ops or None
    kit = kit_of(catalog, frozenset(ops) if ops else None)
    idioms = [one for one in kit.idioms if not is_call(one) for _ in range(1 + len(one) // _LONG)]
    own = frozenset().union(*map(spelt, settings.targets))
    native = [one for one in idioms if own.issuperset(step.op for step in one)]
    rounds = Rounds(idioms, native, settings.seed)
    free = composable(kit.made)
    free = [one for one in free if one.op.name in own] or free
    every = (_OFTEN if ops else _SELDOM) if free else 0
    converts = [] if settings.grad else map(promoting, settings.targets)
    promoted = sorted(frozenset().union(*converts).intersection(kit.patterns))
    rate = _OFTEN_CONVERTED if ops else _SELDOM_CONVERTED
    last = batch * each + (each if count is None else count)
    for number in range(batch * each, last if idioms or free or promoted else 0):
        if promoted and (number % rate == 0 or not (idioms or free)):
            name = promoted[number // rate % len(promoted)]
            seed = (settings.seed * 1_000_003 + _SEEDS + number * _DRAWN) & (2**62 - 1)
            one = _converted(name, seed, catalog, asked, dares)
            if one is not None:
                yield number, seed, one
                continue
        turns = [number * together + i for i in range(together)]
        free_turn = every and (not idioms or number % every == every - 1)
        around = 0
        if not free_turn:
            before = number // every if every else 0  # so many were composed
            (idiom, around), *others = (rounds.turn(turn - before * together) for turn in turns)
            beside_it = [other for other, _ in others]
        kept: tuple[int, Case] | None = None
        for again in range(_DRAWN):
            seed = (settings.seed * 1_000_003 + _SEEDS + number * _DRAWN + again) & (2**62 - 1)
            if free_turn:
                made = [composed(free, Chooser(f"{seed} {turn}")) for turn in turns]
                # some are of no call, of operators of which few take numbers such as a piece has
                idiom, *beside_it = [one for one in made if one] or [()]
            edge = (number + around) % _EDGE == 0
            limits = Chooser(f"piece {seed}").pick(_LIMITS)
            if edge and again < _WIDE:
                limits = replace(limits, elements=256, many=256)
            graph = generate(
                catalog, seed, ops=ops, limits=limits, piece=idiom, beside=beside_it
            ).graph
            case = (
                fed(graph, catalog, seed, settings.grad, edge, able, asked) if graph.nodes else None
            )
            if case is not None:
                kept = seed, case
                if case.edge or not has_idle(case):
                    break
        if kept is not None:
            yield number, *kept


def _converted(name: str, seed: int, catalog: Catalog, asked: Asked, dares: Able) -> Case | None:
    """A call on numbers of other types, which a target converts by itself."""
    limits = Chooser(f"piece {seed}").pick(_LIMITS)
    for node in generate(catalog, seed, ops=[name], apart=[name], limits=limits).graph.nodes:
        graph = converted(node, catalog, seed)
        if graph is None:
            continue
        graph, _ = kept_to(graph, asked, bool(seed % 2))
        case = Case(graph, inputs(graph, seed), {}, catalog, manner=Manner(bold=True))
        if dares(case):
            return with_balls(case)
    return None
