"""One batch of a campaign: its programs run everywhere and are judged, and beside them calls apart,
pieces and spoilt calls.

A batch runs in one process, whose workers and whose memory of what it has looked into it keeps.
"""

from __future__ import annotations

import math
import os
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from math import ceil
from pathlib import Path
from typing import Any, TypeAlias

from irlang.catalog import Catalog, builtin
from irlang.diff.apart import APART, CALLS, COMPILED, cases_apart
from irlang.diff.finding import find_accepted, is_plainly_so
from irlang.diff.found import Found
from irlang.diff.invalid import judge_invalid
from irlang.diff.judgement import judge_program
from irlang.diff.outcome import Outcome
from irlang.diff.pace import PACE
from irlang.diff.pieces import TOGETHER, beside, pieces
from irlang.diff.programs import BATCH, Settings, drawn, planned, program_seed
from irlang.diff.promised import documented
from irlang.diff.runner import Case, Session
from irlang.diff.seen import SEEN
from irlang.diff.suspects import judge_apart
from irlang.garbage import keep
from irlang.gen.coverage import cell, features
from irlang.gen.spoil import breakable
from irlang.graph import Graph
from irlang.lower.lower import differentiates, spelt
from irlang.lower.manner import Manner
from irlang.lower.narrows import narrower
from irlang.lower.pool import Late, Limits
from irlang.lower.profile import read_profile

_SPOILT = 64  # requirements that are broken beside the programs of a batch
_TURNS = 4  # of one of them, where a campaign has but few operators
# Of calls apart a campaign without gradients has one in so many more with them; of spoilt calls
# one with gradients has one in so many.
_SLOPED, _QUARTER = 2, 4
_SPOILT_AT_ONCE = 16  # of them, whose findings are there before others are spoilt
_PIECES_AT_ONCE = 32  # pieces, whose findings are there before others are drawn
_COVERED = 0.5  # of the calls of a piece that a known fault of several must be to explain it
_AT_ONCE = 12  # programs of calls apart, whose findings are there before others are drawn
_RUN_AT_ONCE = 2  # programs
_TURN = 1 / 20  # of the time that is left one turn may take
_SHORT = 0.01  # seconds that count as none
# Of each, to begin with: a slow target has found something before a fast one has all.
_FEWER = 1 / 8
_FEWEST = 1 / 16  # in any turn, and to begin with where all targets take seconds over a program
_USUAL, _WAYS = 3, 11  # one in so many programs is written in one of so many other ways

Run: TypeAlias = tuple[Case, Outcome]

_SESSION: dict[tuple[tuple[str, ...], str], Session] = {}


def _session(targets: tuple[str, ...], profile: str, jobs: int) -> Session:
    """The workers of this process, started once.

    jobs: how many processes like this one there are; where there are cores beyond these, slow
    targets have them.
    """
    key = targets, profile
    if key not in _SESSION:
        accepted = read_profile(Path(profile)) if profile else ()
        limits = Limits(PACE.for_program(Limits.seconds), until=PACE.until)
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        _SESSION[key] = Session(
            targets, limits, accepted, thorough=False, side_by_side=cores >= 2 * jobs
        ).__enter__()
        keep()  # the definitions stay; looking through them again takes a sixth of the time
    return _SESSION[key]


def close_sessions() -> None:
    """Ends the workers of this process."""
    while _SESSION:
        _SESSION.popitem()[1].__exit__(None, None, None)


def run_batch(
    settings: Settings, number: int, told: Callable[[Found], None] = lambda _: None
) -> tuple[dict[str, Any], list[Found]]:
    """One batch: its counts, and its disagreements localised.

    Calls apart, pieces, spoilt calls and programs have their turns, as slow targets may not come to
    the end of one; those that find most in a second have the most of a turn. told: called with
    each finding as soon as it is there. Where the time is over (`irlang.diff.pace`), what has not
    begun is left out, what is running has the time of one program left, and the batch is `cut`.
    """
    batch = _Batch(settings, number, told)
    try:
        _take_turns(batch)
    except Late:
        batch.cut = True
    return batch.result(), batch.found


@dataclass(slots=True)
class _Turns:
    """The turns of one kind of a batch: each is twice as many as the one before, or as many as a
    short campaign has the time for.

    take: has a turn of so much of a whole one; False where there is nothing left. weight: what part
    of the time is the kind's. taken: seconds, without those in which findings were made smaller; of
    what hangs as many as a turn may have, or the kind that meets it would wait for all others.
    """

    take: Callable[[float], bool]
    weight: float
    share: float = _FEWER
    taken: float = 0.0

    def next(self) -> bool:
        """Has the next turn; False where there was nothing left."""
        start, looked, hung = time.monotonic(), PACE.looked, PACE.hung
        more = self.take(self.share)
        took = time.monotonic() - start - (PACE.looked - looked)
        waited, room = min(took, PACE.hung - hung), _TURN * PACE.left()
        self.taken += took - max(0.0, waited - room)
        # What hangs, or compiles, would have half of a short campaign in one turn.
        self.share *= min(2.0, room / max(took, _SHORT))
        self.share = min(1.0, max(self.share, _FEWEST))
        return more


def _take_turns(batch: _Batch) -> None:
    """All that a batch has, until the time is over: one kind after another.

    Where the time has an end, each kind has one turn, and from then on that one which is farthest
    behind its part of it: what takes long is not to take it from what finds more.
    """
    takes: list[tuple[Callable[[float], bool], float]] = [
        (batch.call, 4), (batch.fire, 3), (batch.spoil, 3), (batch.slope, 1), (batch.run, 2)
    ]  # fmt: skip
    kinds = [_Turns(take, weight, batch.first) for take, weight in takes]
    kinds = [kind for kind in kinds if PACE.over() or kind.next()]
    for kind in kinds:  # in the first turns frameworks start
        kind.taken = 0.0
    while kinds and not PACE.over():
        if PACE.until == math.inf:
            kinds = [kind for kind in kinds if kind.next()]
            continue
        behind = min(kinds, key=lambda kind: kind.taken / kind.weight)
        if not behind.next():
            kinds.remove(behind)
    batch.cut |= bool(kinds)


class _Batch:
    """What one batch draws, and what came of it by now.

    first: the share of its first turns. cut: whether some of it was left out.
    """

    def __init__(self, settings: Settings, number: int, told: Callable[[Found], None]) -> None:
        self._settings, self._number, self._told = settings, number, told
        self._catalog = catalog = builtin()
        self._session = session = _session(settings.targets, settings.profile, settings.jobs)
        self.first = _FEWEST if session.slow() else _FEWER
        count = planned(settings, number)
        own = partial(session.has_own, catalog=catalog)
        spelled = frozenset().union(*map(spelt, settings.targets))
        # What compiles takes as long for one call as for many: those that are to be alone wait
        # until the whole catalogue has had its turn.
        calls, ends = (COMPILED, 1) if all(session.compiles.values()) else (CALLS, 0)
        asked = documented(settings.targets)
        self._apart = cases_apart(
            catalog, settings.seed, number, settings.ops, settings.grad,
            -(-count * APART // BATCH), session.can_run, spelled, own, calls=calls,
            asked=asked, dares=session.dares, ends=ends,
        )  # fmt: skip
        share = -(-count * beside(settings.targets) // BATCH)
        # What differentiates by itself is asked for some gradients in any campaign.
        slopes = [] if settings.grad else [t for t in settings.targets if differentiates(t)]
        self._sloped = session.among(slopes)
        each = APART // _SLOPED if slopes else 0
        self._gradients = cases_apart(
            catalog, settings.seed, number, settings.ops, True, -(-count * each // BATCH),
            self._sloped.can_run, frozenset().union(*map(spelt, slopes)),
            partial(self._sloped.has_own, catalog=catalog), each, calls=calls,
            asked=documented(slopes),
        )  # fmt: skip
        self._pieces = pieces(
            settings, number, catalog, session.can_run, share, TOGETHER if session.slow() else 1,
            asked, session.dares,
        )  # fmt: skip
        first = number * _SPOILT // (_QUARTER if settings.grad else 1) + settings.seed
        spoilt = -(-count * _spoilt(settings, catalog) // BATCH)
        # a batch of few operators spoils a few times alone: the next goes on in other words
        self._spoilt, self._spoils = iter(range(first, first + spoilt)), number
        self._drawn = drawn(settings, number, catalog, session.can_run, asked)
        self._localised: list[Found] = []  # of programs
        self.found: list[Found] = []
        self.cut = False
        self._alone: list[Graph] = []
        self._judged: list[Run] = []
        self._programs = self._tried = self._valid = 0
        self._counts: dict[str, dict[str, Counter[str]]] = {
            kind: {name: Counter() for name in settings.targets}
            for kind in ("targets", "apart", "pieces")
        }
        self._counts["invalid"] = {}  # of targets that were handed any

    def call(self, share: float) -> bool:
        """Some programs of calls apart; False where there are no more. share: of those at once."""
        return self._call(self._session, self._apart, ceil(_AT_ONCE * share), self._settings.grad)

    def slope(self, share: float) -> bool:
        """The same with gradients, in a campaign that asks for none elsewhere."""
        return self._call(self._sloped, self._gradients, ceil(_AT_ONCE * share / _SLOPED), True)

    def _call(
        self, session: Session, made: Iterator[tuple[int, int, Case]], count: int, grad: bool
    ) -> bool:
        some = [_in_turn(session, one) for one in islice(made, count)]
        self._alone += [case.graph for *_, case in some]
        found, counts = judge_apart(session, some, SEEN, grad)
        self._count("apart", counts)
        self._keep(found)
        return bool(some)

    def fire(self, share: float) -> bool:
        """The same of pieces."""
        more = islice(self._pieces, ceil(_PIECES_AT_ONCE * share))
        some = [_in_turn(self._session, one) for one in more]
        self._judge(some, "pieces", [], _COVERED)
        return bool(some)

    def spoil(self, share: float) -> bool:
        """The same of spoilt calls."""
        turns = list(islice(self._spoilt, ceil(_SPOILT_AT_ONCE * share)))
        if turns:
            settings, session = self._settings, self._session
            seeds = [program_seed(settings.seed, one) for one in turns]
            manner = Manner(turn=_words(self._spoils))
            self._spoils += 1
            accepted, counts = judge_invalid(
                session, self._catalog, seeds, settings.ops, turns[0], SEEN.symptoms, manner
            )
            self._count("invalid", counts)
            self._keep([find_accepted(session, taken, seed) for seed, taken in accepted])
        return bool(turns)

    def run(self, share: float) -> bool:
        """The same of programs, or of what is drawn in vain: it takes no less time."""
        cases: list[tuple[int, int, Case]] = []
        count, tried = ceil(_RUN_AT_ONCE * share), 0
        for number, seed, case in islice(self._drawn, 2 * count):
            tried += 1
            if case is not None:
                cases.append(_in_turn(self._session, (number, seed, case)))
            if len(cases) == count:
                break
        self._tried += tried
        judged = self._judge(cases, "targets", self._localised) if cases else []
        self._programs += len(judged)
        self._valid += sum(outcome.refusal is None for _, outcome in judged)
        self.cut |= len(judged) < len(cases)
        return bool(tried)

    def _keep(self, more: Sequence[Found]) -> None:
        for one in more:
            if not is_plainly_so(self._session, one):
                self.found.append(one)
                self._told(one)

    def _count(self, kind: str, counts: Mapping[str, Counter[str]]) -> None:
        known = self._counts[kind]
        for name, more in counts.items():
            known[name] = known.get(name, Counter()) + more

    def _judge(
        self,
        cases: Sequence[tuple[int, int, Case]],
        kind: str,
        localised: list[Found],
        share: float = 0.0,
    ) -> list[Run]:
        """Runs programs of a kind, and gives those that were judged.

        localised: what others of the kind have shown; it is added to. share: see `Seen.explains`.
        """
        counts, judged = self._counts[kind], []
        outcomes = self._session.compare(
            [case for *_, case in cases], grad=self._settings.grad,
            numbers=[number for number, *_ in cases],
        )  # fmt: skip
        for (_, seed, case), outcome in zip(cases, outcomes, strict=True):
            if PACE.over():
                break
            before, ran = len(localised), (seed, case, outcome)
            for target, verdicts in outcome.verdicts.items():
                verdict = judge_program(
                    self._session, self._settings, ran, target, verdicts, localised, share
                )
                counts[target][verdict] += 1
            judged.append((case, outcome))
            self._keep(localised[before:])
        self._judged += judged
        return judged

    def result(self) -> dict[str, Any]:
        """The counts, as a campaign keeps them."""
        graphs = (*self._alone, *(case.graph for case, _ in self._judged))
        called = [_known(graph, self._catalog) for graph in graphs]
        covered = {
            "operators": Counter(n.op.name for graph in called for n in graph.nodes),
            "features": sum(map(features, called), Counter()),
            "cells": Counter(
                _digest(target, *cell(node, case.graph))
                for case, outcome in self._judged
                for target, verdicts in outcome.verdicts.items()
                if not all(v.verdict == "unsupported" for v in verdicts)
                for node in case.graph.nodes
            ),
        }
        counted = {
            kind: {name: dict(counts) for name, counts in by_target.items()}
            for kind, by_target in {**self._counts, "covered": covered}.items()
        }
        return {
            "programs": self._programs, "tried": self._tried, "valid": self._valid,
            **counted, "cut": self.cut,
        }  # fmt: skip


def _in_turn(session: Session, made: tuple[int, int, Case]) -> tuple[int, int, Case]:
    """A program, which by its number may be written otherwise than is usual."""
    number, seed, case = made
    return number, seed, session.turned(case, _turn(number))


def _turn(number: int) -> int:
    """In which of their ways targets write what has this number (`irlang.lower.manner`)."""
    turns, rest = divmod(number, _USUAL)
    return 1 + turns % _WAYS if rest == _USUAL - 1 else 0


def _words(number: int) -> int:
    """The same of spoilt calls: every second time in other words, of rules of their own."""
    return 2 + number // 2 % (_WAYS - 1) if number % 2 else 0


def _spoilt(settings: Settings, catalog: Catalog) -> int:
    """How many requirements are broken beside the programs of a whole batch: of few operators each
    a few times, or as often as the time that is theirs allows.
    """
    most = _SPOILT // (_QUARTER if settings.grad else 1)
    if not settings.ops or PACE.until < math.inf:
        return most
    plans = (breakable(catalog, settings.ops, narrower(name)) for name in settings.targets)
    return min(most, _TURNS * sum(map(len, plans)))


def _known(graph: Graph, catalog: Catalog) -> Graph:
    """A graph with its calls of the catalogue alone: not of what makes a loss of its results."""
    nodes = [node for node in graph.nodes if catalog.op(node.op.name) is not None]
    return replace(graph, nodes=nodes)


def _digest(*parts: object) -> str:
    """A short name: batches are kept, and there are tens of thousands of different cells."""
    return f"{zlib.crc32(' '.join(map(str, parts)).encode()):08x}"
