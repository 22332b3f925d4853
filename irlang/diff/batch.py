"""One batch of a campaign: its programs run everywhere and are judged, and beside them calls apart,
pieces and spoilt calls.

A batch runs in one process, whose workers and whose memory of what it has looked into it keeps.
"""

from __future__ import annotations

import gc
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from math import ceil
from pathlib import Path
from typing import Any, TypeAlias

from irlang.catalog import Catalog, builtin
from irlang.diff.apart import APART, cases_apart, judge_apart
from irlang.diff.finding import Found, charge, find, find_accepted, find_gradient
from irlang.diff.invalid import judge_invalid
from irlang.diff.localise import culprits, fused, localise
from irlang.diff.pace import PACE
from irlang.diff.pieces import PIECES, pieces
from irlang.diff.programs import BATCH, Settings, drawn, planned, program_seed
from irlang.diff.runner import Case, Outcome, Session
from irlang.diff.seen import Seen, symptom_of
from irlang.diff.verdict import FINDINGS, Verdict, at_edge, gravest, of_values, only_estimated
from irlang.gen.coverage import cell, features
from irlang.graph import Graph
from irlang.lower.lower import spelt
from irlang.lower.profile import read_profile

SEEN = Seen()  # by this process
_WEAK = ("rounding", "unstable")
_SHARE = 3  # one in so many programs of weak verdict has its calls judged one by one
_SPOILT = 64  # requirements that are broken beside the programs of a batch
_SPOILT_AT_ONCE = 16  # of them, whose findings are there before others are spoilt
_PIECES_AT_ONCE = 32  # pieces, whose findings are there before others are drawn
_COVERED = 0.5  # of the calls of a piece that a known fault of several must be to explain it
_AT_ONCE = 12  # programs of calls apart, whose findings are there before others are drawn
_FEWER = 8  # of each, to begin with: a slow target has found something before a fast one has all
_LOCALISED = 8  # disagreements of one batch that are looked into; the others are counted

Run: TypeAlias = tuple[Case, Outcome]

_SESSION: dict[tuple[tuple[str, ...], str], Session] = {}


def _session(targets: tuple[str, ...], profile: str) -> Session:
    """The workers of this process, started once."""
    key = targets, profile
    if key not in _SESSION:
        accepted = read_profile(Path(profile)) if profile else ()
        _SESSION[key] = Session(targets, accepted=accepted, thorough=False).__enter__()
        gc.freeze()  # the definitions stay; looking through them again takes a sixth of the time
    return _SESSION[key]


def close_sessions() -> None:
    """Ends the workers of this process."""
    while _SESSION:
        _SESSION.popitem()[1].__exit__(None, None, None)


def run_batch(
    settings: Settings, number: int, told: Callable[[Found], None] = lambda _: None
) -> tuple[dict[str, Any], list[Found]]:
    """One batch: its counts, and its disagreements localised.

    What finds most in a second comes first: calls apart, pieces and spoilt calls, some of each in
    turn, as slow targets may not come to the end of one; then programs. told: called with each
    finding as soon as it is there. Where the time is over (`irlang.diff.pace`), what has not begun
    is left out, and the batch is `cut`.
    """
    catalog = builtin()
    session = _session(settings.targets, settings.profile)
    found: list[Found] = []

    def keep(more: Sequence[Found]) -> None:
        for one in more:
            found.append(one)
            told(one)

    count = planned(settings, number)
    apart = {name: Counter[str]() for name in settings.targets}
    stand = cases_apart(
        catalog, settings.seed, number, settings.ops, settings.grad,
        -(-count * APART // BATCH), session.can_run,
        frozenset().union(*map(spelt, settings.targets)),
        partial(session.has_own, catalog=catalog),
    )  # fmt: skip
    small = pieces(settings, number, catalog, session.can_run, -(-count * PIECES // BATCH))
    first = number * _SPOILT + settings.seed
    end = first if settings.grad else first - (-count * _SPOILT // BATCH)
    spoilt = iter(range(first, end))
    alone: list[Graph] = []
    judged: list[Run] = []
    fired = {name: Counter[str]() for name in settings.targets}
    invalid: dict[str, Counter[str]] = {}

    def call(share: float) -> bool:
        some = list(islice(stand, ceil(_AT_ONCE * share)))
        alone.extend(case.graph for *_, case in some)
        lone, counts = judge_apart(session, some, SEEN, settings.grad)
        for name, more in counts.items():
            apart[name] += more
        keep(lone)
        return bool(some)

    def fire(share: float) -> bool:
        some = list(islice(small, ceil(_PIECES_AT_ONCE * share)))
        judged.extend(_judged_all(session, settings, some, fired, keep, _COVERED))
        return bool(some)

    def spoil(share: float) -> bool:
        turns = list(islice(spoilt, ceil(_SPOILT_AT_ONCE * share)))
        if not turns:
            return False
        seeds = [program_seed(settings.seed, one) for one in turns]
        accepted, counts = judge_invalid(
            session, catalog, seeds, settings.ops, turns[0], SEEN.symptoms
        )
        for name, more in counts.items():
            invalid[name] = invalid.get(name, Counter()) + more
        keep([find_accepted(session, taken, seed) for seed, taken in accepted])
        return True

    kinds: list[Callable[[float], bool]] = [call, fire, spoil]
    share = 1 / _FEWER
    while kinds and not PACE.over():
        kinds = [kind for kind in kinds if not PACE.over() and kind(share)]
        share = min(1.0, 2 * share)
    targets = {name: Counter[str]() for name in settings.targets}
    programs: list[Run] = []
    cut, tried = PACE.over(), 0
    if not cut:
        cases, tried = drawn(settings, number, catalog, session.can_run)
        programs = _judged_all(session, settings, cases, targets, keep)
        cut = len(programs) < len(cases)
    judged += programs
    called = [_known(graph, catalog) for graph in (*alone, *(c.graph for c, _ in judged))]
    covered = {
        "operators": Counter(n.op.name for graph in called for n in graph.nodes),
        "features": sum(map(features, called), Counter()),
        "cells": Counter(
            _digest(target, *cell(node, case.graph))
            for case, outcome in judged
            for target, verdicts in outcome.verdicts.items()
            if not all(v.verdict == "unsupported" for v in verdicts)
            for node in case.graph.nodes
        ),
    }
    result = {
        "programs": len(programs), "tried": tried,
        "valid": sum(outcome.refusal is None for _, outcome in programs),
        "targets": {name: dict(counts) for name, counts in targets.items()},
        "apart": {name: dict(counts) for name, counts in apart.items()},
        "pieces": {name: dict(counts) for name, counts in fired.items()},
        "invalid": {name: dict(counts) for name, counts in invalid.items()},
        "covered": {name: dict(counts) for name, counts in covered.items()},
        "cut": cut,
    }  # fmt: skip
    return result, found


def _judged_all(
    session: Session,
    settings: Settings,
    cases: Sequence[tuple[int, int, Case]],
    counts: Mapping[str, Counter[str]],
    keep: Callable[[Sequence[Found]], None],
    share: float = 0.0,
) -> list[Run]:
    """Runs programs, given with their numbers and seeds; gives those that were judged in time.

    counts: of verdicts, by target; they are counted. keep: called with what is found. share: see
    `Seen.explains`.
    """
    found: list[Found] = []
    judged: list[Run] = []
    outcomes = session.compare(
        [case for *_, case in cases], grad=settings.grad, numbers=[number for number, *_ in cases]
    )
    for (_, seed, case), outcome in zip(cases, outcomes, strict=True):
        if PACE.over():
            break
        before = len(found)
        for target, verdicts in outcome.verdicts.items():
            verdict = _judged(
                session, settings, (seed, case, outcome), target, verdicts, found, share
            )
            counts[target][verdict] += 1
        judged.append((case, outcome))
        keep(found[before:])
    return judged


def _known(graph: Graph, catalog: Catalog) -> Graph:
    """A graph with its calls of the catalogue alone: not of what makes a loss of its results."""
    nodes = [node for node in graph.nodes if catalog.op(node.op.name) is not None]
    return replace(graph, nodes=nodes)


def _judged(
    session: Session,
    settings: Settings,
    ran: tuple[int, Case, Outcome],
    target: str,
    verdicts: list[Verdict],
    found: list[Found],
    share: float,
) -> str:
    """The verdict on a program with its seed, on a target. What is found is added.

    share: see `Seen.explains`.
    """
    seed, case, outcome = ran
    verdict = gravest([v.verdict for v in verdicts])
    if case.edge:
        verdict = at_edge(verdict)
    amiss = _at_edges(session, case, seed, target, found) if case.edge else []
    if amiss:
        return gravest(amiss)
    if only_estimated(verdicts) and not _proved(session, case, target):
        return "unstable"
    if verdict in FINDINGS:
        if (
            len(found) < _LOCALISED
            and not SEEN.explains(case.graph, target, verdict, share)
            and not SEEN.heard(target, verdicts)
        ):
            if of_values(verdicts) and not _proved(session, case, target):
                return "unstable"
            found.append(find(session, case, seed, target, outcome))
            SEEN.note(found[-1])
    elif verdict in _WEAK and seed % _SHARE == 0 and not case.edge:
        # Radii grow with depth until an output says little: judge the calls one by one.
        culprit = localise(session.only(target), case, target)
        if culprit is not None:
            verdict = culprit.verdict.verdict
            if len(found) < _LOCALISED and not SEEN.explains(case.graph, target, verdict, share):
                found.append(charge(session, case, seed, target, culprit))
                SEEN.note(found[-1])
        elif settings.grad:
            pulled = find_gradient(session, case, seed, target)
            if pulled is not None:
                verdict = pulled.verdict.verdict
                found.append(pulled)
                SEEN.note(pulled)
    return verdict


def _proved(session: Session, case: Case, target: str) -> bool:
    """Whether a program whose values disagree has a call that is wrong by itself, or calls that are
    wrong together.

    Where every call is right by what it was fed, and no fusion is in play, so is the whole: what
    speaks against it is an estimate that is too small, or the sign of a zero, which has no verdict
    of its own and is infinitely much behind a quotient. A target that cannot show what is in
    between is taken at its results.
    """
    alone = session.only(target)
    if localise(alone, case, target) is not None or fused(session, case, target) is not None:
        return True
    shown = alone.compare([case], exposed=True)[0].results.get(target)
    return shown is None or shown.status != "ok"


def _at_edges(
    session: Session, case: Case, seed: int, target: str, found: list[Found]
) -> list[str]:
    """The verdicts on all calls that are wrong by themselves: a NaN hides all that it meets, and
    one defect another. Those that are new are added to what was found.
    """
    amiss = []
    for culprit in culprits(session.only(target), case, target):
        amiss.append(at_edge(culprit.verdict.verdict))
        symptom = symptom_of(target, culprit.node.op.name, culprit.verdict)
        if symptom not in SEEN.symptoms and len(found) < _LOCALISED:
            found.append(charge(session, case, seed, target, culprit))
            if found[-1].repeated:  # what was there once hides nothing
                SEEN.symptoms.add(symptom)
    return amiss


def _digest(*parts: object) -> str:
    """A short name: batches are kept, and there are tens of thousands of different cells."""
    return f"{zlib.crc32(' '.join(map(str, parts)).encode()):08x}"
