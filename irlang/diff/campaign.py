"""A fuzzing campaign: generate, run everywhere, judge, and keep what disagrees.

Programs come in batches; a batch is a function of the campaign's seed and its number alone, so
that any program can be made again and a campaign resumed. Batches run in one process or several
(`jobs`), each with workers of its own.
"""

from __future__ import annotations

import datetime as dt
import functools
import gc
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from irlang.catalog import Catalog, builtin
from irlang.diagnostics import InvalidInput
from irlang.diff.apart import APART, Symptom, cases_apart, judge_apart, symptom_of
from irlang.diff.finding import Found, charge, find, find_accepted, find_gradient, write
from irlang.diff.invalid import judge_invalid
from irlang.diff.localise import culprits, localise
from irlang.diff.runner import Case, Session
from irlang.diff.spread import Spread
from irlang.diff.store import Store
from irlang.diff.suppress import known_as, read_known
from irlang.diff.verdict import FINDINGS, SEVERITY, Verdict, at_edge, gravest, reason_of
from irlang.diff.weighing import weighed
from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.gen.build import generate
from irlang.gen.coverage import Coverage, cell, features
from irlang.gen.draw import varied
from irlang.gen.edge import on_grid, with_edges
from irlang.gen.rare import SHARE, common
from irlang.graph import Graph, with_loss
from irlang.interp.balls import Ball
from irlang.interp.program import balls, precision
from irlang.interp.values import initial_values, inputs
from irlang.lower.profile import read_profile

BATCH = 32  # programs that go to a worker together
_ATTEMPTS = 8  # programs that are drawn for one that the oracle can judge
_WEAK = ("rounding", "unstable")
_SHARE = 3  # one in so many programs of weak verdict has its calls judged one by one
EDGE = 6  # one in so many programs has values at the edges of their types in its inputs
_PIECES = 4  # one in so many programs is made of idioms alone: an optimiser's passes fire there
_PIECE_CALLS = (4, 16)
_SPOILT = 12  # calls beside the programs of a batch that break a requirement
_LOSSES = 3  # one in so many programs has a number of its own as its loss, where it has one
_COARSE = 3  # one in so many programs with gradients has halves for numbers
_SAME = 2  # refusals for one reason that are looked into
_LOCALISED = 8  # disagreements of one batch that are looked into; the others are counted


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


@dataclass(slots=True)
class Tally:
    """Sums over finished batches.

    `targets` counts verdicts, `apart` those on calls apart, `invalid` what became of invalid calls,
    `covered` operators, pairs.
    """

    programs: int = 0
    valid: int = 0
    tried: int = 0
    seconds: float = 0.0
    targets: dict[str, Counter[str]] = field(default_factory=dict)
    apart: dict[str, Counter[str]] = field(default_factory=dict)
    invalid: dict[str, Counter[str]] = field(default_factory=dict)
    covered: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, batch: dict[str, Any]) -> None:
        """Adds the result of a batch."""
        self.programs += batch["programs"]
        self.valid += batch["valid"]
        self.tried += batch["tried"]
        for target, counts in batch["targets"].items():
            self.targets.setdefault(target, Counter()).update(counts)
        for target, counts in batch.get("apart", {}).items():
            self.apart.setdefault(target, Counter()).update(counts)
        for target, counts in batch.get("invalid", {}).items():
            self.invalid.setdefault(target, Counter()).update(counts)
        for kind, counts in batch["covered"].items():
            self.covered.setdefault(kind, Counter()).update(counts)


_SESSION: dict[tuple[tuple[str, ...], str], Session] = {}


def _session(targets: tuple[str, ...], profile: str) -> Session:
    """The workers of this process, started once."""
    key = targets, profile
    if key not in _SESSION:
        accepted = read_profile(Path(profile)) if profile else ()
        _SESSION[key] = Session(targets, accepted=accepted, thorough=False).__enter__()
        gc.freeze()  # the definitions stay; looking through them again takes a sixth of the time
    return _SESSION[key]


# What this process has localised already, and how many programs since then hold such a culprit.
# They are counted, and not all looked into again, so that a fault that is everywhere does not take
# all the time; yet the second is, the fourth and so on, as an operator may have several faults, and
# what is often at fault stands beside others.
_CULPRITS: Counter[tuple[str, str, str]] = Counter()


def _explained(case: Case, target: str, verdict: str) -> bool:
    names = {node.op.name for node in case.graph.nodes}
    held = [
        culprit
        for culprit in _CULPRITS
        if culprit[:2] == (target, verdict) and names.issuperset(culprit[2].split(" + "))
    ]
    _CULPRITS.update(held)
    return bool(held) and all(_CULPRITS[one] & (_CULPRITS[one] - 1) for one in held)


# How often a target has given a reason to refuse: an optimiser that breaks many programs in one way
# says the same of all of them, whichever operators are around.
_REFUSALS: Counter[tuple[str, str]] = Counter()


def _heard(target: str, verdicts: Sequence[Verdict]) -> bool:
    """Whether a target has refused so often for this reason as is looked into; counts it."""
    said = next((v.message for v in verdicts if v.verdict == "refused"), "")
    reason = target, reason_of(said)
    _REFUSALS[reason] += bool(said)
    return _REFUSALS[reason] > _SAME


# What is known of operators at the edges of their types, where a defect has its own kind of number.
_SYMPTOMS: set[Symptom] = set()


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
        if symptom not in _SYMPTOMS and len(found) < _LOCALISED:
            _SYMPTOMS.add(symptom)
            found.append(charge(session, case, seed, target, culprit))
    return amiss


def close_sessions() -> None:
    """Ends the workers of this process."""
    while _SESSION:
        _SESSION.popitem()[1].__exit__(None, None, None)


def run_batch(settings: Settings, number: int) -> tuple[dict[str, Any], list[Found]]:
    """One batch: its counts, and its disagreements localised."""
    catalog = builtin()
    session = _session(settings.targets, settings.profile)
    cases, numbers, tried = _drawn(settings, number, catalog)
    outcomes = session.compare([case for _, case in cases], grad=settings.grad, numbers=numbers)
    targets: dict[str, Counter[str]] = {name: Counter() for name in settings.targets}
    found: list[Found] = []
    valid = 0
    for (seed, case), outcome in zip(cases, outcomes, strict=True):
        valid += outcome.refusal is None
        for target, verdicts in outcome.verdicts.items():
            verdict = gravest([v.verdict for v in verdicts])
            if case.edge:
                verdict = at_edge(verdict)
            amiss = _at_edges(session, case, seed, target, found) if case.edge else []
            if amiss:
                verdict = gravest(amiss)
            elif verdict in FINDINGS:
                known = _explained(case, target, verdict) or _heard(target, verdicts)
                if len(found) < _LOCALISED and not known:
                    found.append(find(session, case, seed, target, outcome))
            elif verdict in _WEAK and seed % _SHARE == 0 and not case.edge:
                # Radii grow with depth until an output says little: judge the calls one by one.
                culprit = localise(session.only(target), case, target)
                if culprit is not None:
                    verdict = culprit.verdict.verdict
                    if len(found) < _LOCALISED and not _explained(case, target, verdict):
                        found.append(charge(session, case, seed, target, culprit))
                elif settings.grad:
                    pulled = find_gradient(session, case, seed, target)
                    if pulled is not None:
                        verdict = pulled.verdict.verdict
                        found.append(pulled)
            targets[target][verdict] += 1
    for one in found:
        _CULPRITS.setdefault((one.target, one.verdict.verdict, one.operator), 1)
    stand = list(
        cases_apart(catalog, settings.seed, number, settings.ops, settings.grad,
                    -(-len(cases) * APART // BATCH))
    )  # fmt: skip
    lone, apart = judge_apart(session, stand, _SYMPTOMS, settings.grad)
    found += lone
    invalid: dict[str, Counter[str]] = {}
    if not settings.grad:
        seeds = [seed for seed, _ in cases[:_SPOILT]]
        accepted, invalid = judge_invalid(session, catalog, seeds, settings.ops)
        found += [find_accepted(session, taken, seed) for seed, taken in accepted]
    covered = {
        "operators": Counter(n.op.name for _, c in cases for n in c.graph.nodes),
        "features": sum((features(c.graph) for _, c in cases), Counter()),
        "cells": Counter(
            _digest(target, *cell(node, case.graph))
            for (_, case), outcome in zip(cases, outcomes, strict=True)
            for target, verdicts in outcome.verdicts.items()
            if not all(v.verdict == "unsupported" for v in verdicts)
            for node in case.graph.nodes
        ),
    }
    result = {
        "programs": len(cases), "valid": valid, "tried": tried,
        "targets": {name: dict(counts) for name, counts in targets.items()},
        "apart": {name: dict(counts) for name, counts in apart.items()},
        "invalid": {name: dict(counts) for name, counts in invalid.items()},
        "covered": {name: dict(counts) for name, counts in covered.items()},
    }  # fmt: skip
    return result, found


def _drawn(
    settings: Settings, number: int, catalog: Catalog
) -> tuple[list[tuple[int, Case]], list[int], int]:
    """The programs of a batch with their seeds, their numbers, and how many were drawn for them."""
    coverage = Coverage()
    cases: list[tuple[int, Case]] = []
    numbers: list[int] = []
    left = BATCH if settings.programs is None else min(BATCH, settings.programs - number * BATCH)
    tried = 0
    for offset in range(left):
        for attempt in range(_ATTEMPTS):
            seed = program_seed(settings.seed, number * BATCH + offset, attempt)
            case = make_case(catalog, seed, settings.ops, coverage, settings.grad)
            tried += 1
            if case is not None:
                coverage.note(case.graph)
                cases.append((seed, case))
                numbers.append(number * BATCH + offset)
                break
    return cases, numbers, tried


def _digest(*parts: object) -> str:
    """A short name: batches are kept, and there are tens of thousands of different cells."""
    return f"{zlib.crc32(' '.join(map(str, parts)).encode()):08x}"


def program_seed(seed: int, number: int, attempt: int = 0) -> int:
    """The seed of a campaign's program."""
    return ((seed * 1_000_003 + number) * _ATTEMPTS + attempt) & (2**62 - 1)


def make_case(
    catalog: Catalog,
    seed: int,
    ops: tuple[str, ...] = (),
    coverage: Coverage | None = None,
    grad: bool = False,
) -> Case | None:
    """A generated program with values; None where the oracle could judge none of its outputs.

    ops: that it may call; if none are said, one program in some may call those that few have.
    grad: with a loss (`trainable`); one in `_COARSE` is fed with halves, which are often equal.

    That is where a precondition on values fails, an output is not finite, or all are unstable. One
    program in `EDGE` is fed with values at the edges of their types; there any output will do. One
    that makes NaN or infinity on its way to finite outputs is at the edges, too. One in `_PIECES`
    is made of what optimisers look for.
    """
    limits = varied(seed // _ATTEMPTS)
    if not ops and seed // _ATTEMPTS % SHARE:
        ops = common(catalog)
    how: dict[str, Any] = {"limits": limits, "coverage": coverage}
    if seed // _ATTEMPTS % _PIECES == 2:
        how.update(size=_PIECE_CALLS, pieces=100)
    graph = generate(catalog, seed, ops=ops or None, **how).graph
    if grad:
        graph, catalog = trainable(graph, catalog, seed)
    given = inputs(graph, seed)
    edge = not grad and seed // _ATTEMPTS % EDGE == 0
    if edge:
        given = with_edges(graph, given, seed)
    params = initial_values(graph, seed)
    if grad and seed // _ATTEMPTS % _COARSE == 1:
        given, params = on_grid(graph, given), on_grid(graph, params)
    case = Case(graph, given, params, catalog, edge=edge)
    try:
        case.balls = balls(graph, case.values, catalog, precision(graph))
    except InvalidInput:
        return None
    found = [case.balls[value] for value in graph.outputs.values()]
    finite = all(np.all(np.isfinite(np.asarray(ball.value, dtype=np.float64))) for ball in found)
    # what is fed with NaN or infinity inside the program is at the edge of its types as well
    if not grad:
        case.edge |= not all(_held(graph.values[n], b) for n, b in case.balls.items())
    known = any(not np.size(b.value) or np.any(np.isfinite(np.asarray(b.bound))) for b in found)
    return case if (finite or edge) and known else None


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
    real = dict.fromkeys(v for v in graph.outputs.values() if graph.values[v].kind == "real")
    if not real:
        return graph, catalog
    common = Counter(graph.values[value].dtype for value in real).most_common(1)[0][0]
    return weighed(graph, catalog, [v for v in real if graph.values[v].dtype == common])


class Campaign:
    """A campaign in its folder."""

    def __init__(self, folder: Path, settings: Settings | None) -> None:
        """Starts a campaign, or with no settings takes up the one that the folder holds."""
        self.folder = folder
        self.store = Store(folder, None if settings is None else asdict(settings))
        with self.store.reading():
            saved = self.store.settings
            saved.update(targets=tuple(saved["targets"]), ops=tuple(saved["ops"]))
            self.settings = settings or Settings(**saved)
            self.tally = Tally()
            self.findings: list[dict[str, Any]] = []
            self._reload()
        self.known = read_known(Path(self.settings.known)) if self.settings.known else []
        if self.settings.profile:
            read_profile(Path(self.settings.profile))  # at fault, it is said before anything runs
        self.suppressed: Counter[str] = Counter()
        self.lost: list[int] = []  # batches whose process was killed again and again

    def _reload(self) -> None:
        self.tally = Tally(targets={name: Counter() for name in self.settings.targets})
        for _, batch in self.store.batches():
            self.tally.add(batch)
        self.findings = self.store.findings()

    def run(self, progress: Callable[[Campaign], None], seconds: float | None = None) -> None:
        """Runs until the programs or the time are used up; `progress` is called after batches."""
        start = time.monotonic()
        limit = seconds if seconds is not None else self.settings.seconds
        before = self.tally.seconds

        def finished(number: int, batch: dict[str, Any], found: list[Found]) -> None:
            for one in found:
                self._keep(one)
            self.store.add_batch(number, batch)  # last: a batch that is there is there with all
            self.tally.add(batch)
            self.tally.seconds = before + time.monotonic() - start
            progress(self)

        numbers = self._numbers(start, limit)
        if self.settings.jobs <= 1:
            try:
                for number in numbers:
                    finished(number, *run_batch(self.settings, number))
            finally:
                close_sessions()
        else:
            spread = Spread(
                self.settings.jobs,
                functools.partial(run_batch, self.settings),
                lambda number, result: finished(number, *result),
            )
            spread.run(numbers)
            self.lost = spread.lost
        self._reload()  # with what other processes have done
        self.tally.seconds = before + time.monotonic() - start

    def _numbers(self, start: float, limit: float | None) -> Iterator[int]:
        """Batches that are still to be done, while there is time."""
        number = 0
        while self.settings.programs is None or number * BATCH < self.settings.programs:
            if limit is not None and time.monotonic() - start >= limit:
                return
            if self.store.claim(number):
                yield number
            number += 1

    def _keep(self, found: Found) -> None:
        """Records a finding unless one like it is there."""
        entry = known_as(found.identity(), self.known, dt.datetime.now(tz=dt.UTC).date())
        if entry is not None:
            self.suppressed[entry.reason] += 1
            return
        identity = self.store.reserve(found.signature)
        if identity is None:
            return
        described = write(found, self.folder / identity, identity)
        self.store.add_finding(identity, found.signature, described)
        self.findings.append(described)

    def close(self) -> None:
        """Leaves the campaign to other processes."""
        self.store.close()

    def report(self) -> dict[str, Any]:
        """The keys of `irlang fuzz --format json`."""
        catalog = builtin()
        used = self.tally.covered.get("operators", Counter())
        wanted = self.settings.ops or tuple(op.name for op in catalog)
        return {
            "programs": self.tally.programs,
            "valid": self.tally.valid,
            "tried": self.tally.tried,
            "seconds": round(self.tally.seconds, 3),
            "seed": self.settings.seed,
            "targets": {
                name: {v: counts[v] for v in SEVERITY if counts[v]}
                for name, counts in self.tally.targets.items()
            },
            "apart": {name: dict(counts) for name, counts in self.tally.apart.items()},
            "invalid": {name: dict(counts) for name, counts in self.tally.invalid.items()},
            "findings": self.findings,
            "known": dict(self.suppressed),
            "lost": sorted(self.lost),
            "coverage": {
                "operators": len([name for name in wanted if used[name]]),
                "of": len(wanted),
                "uses": dict(sorted(used.items())),
                "cells": len(self.tally.covered.get("cells", ())),
                "features": dict(sorted(self.tally.covered.get("features", Counter()).items())),
            },
        }
