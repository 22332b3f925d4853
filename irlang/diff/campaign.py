"""A fuzzing campaign: generate, run everywhere, judge, and keep what disagrees.

Programs come in batches (`irlang.diff.batch`); a batch is a function of the campaign's seed and its
number alone, so that any program can be made again and a campaign resumed. Batches run in one
process or several (`jobs`), each with workers of its own.
"""

from __future__ import annotations

import datetime as dt
import math
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from irlang.catalog import builtin
from irlang.diagnostics import fail
from irlang.diff.batch import close_sessions
from irlang.diff.found import Found
from irlang.diff.guard import Fault, run_guarded, write_guarded
from irlang.diff.pace import PACE
from irlang.diff.programs import BATCH
from irlang.diff.programs import Settings as Settings
from irlang.diff.seen import SEEN, Known
from irlang.diff.spread import Spread, tell
from irlang.diff.store import Store
from irlang.diff.suppress import known_as, read_known
from irlang.diff.tally import Tally
from irlang.diff.verdict import SEVERITY
from irlang.lower.pool import Limits
from irlang.lower.profile import read_profile
from irlang.lower.target import describe
from irlang.lower.template import adopt, sharing

# What a reader is told of a finding beside its verdict.
_TOLD = ("target", "operator", "attributes", "elements", "title", "inputs", "repeated")
FAULTS = "faults.txt"  # in a campaign's folder: what irlang itself did wrong


@dataclass(slots=True)
class _Work:
    """A batch as another process runs it: no process looks into what another has.

    It is sent with every batch, with what is known by then. until: see `irlang.diff.pace`.
    templates: of whose its workers are forked (`irlang.lower.template`).
    """

    settings: Settings
    until: float
    templates: str
    known: Known = (frozenset(), frozenset())

    def __call__(self, number: int) -> tuple[dict[str, Any] | Fault, Known]:
        """The batch of a number, and what this process knows after it. Findings are told."""
        PACE.start(self.until)
        adopt(self.templates)
        SEEN.learn(self.known)
        return run_guarded(self.settings, number, tell), SEEN.known()


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
        # Batches, and findings by name, that ended in a fault of irlang's own.
        self.faults: list[int | str] = []
        self.interrupted = False

    def _reload(self) -> None:
        self.tally = Tally(targets={name: Counter() for name in self.settings.targets})
        for _, batch in self.store.batches():
            self.tally.add(batch)
        self.findings = self.store.findings()

    def run(self, progress: Callable[[Campaign], None], seconds: float | None = None) -> None:
        """Runs until the programs or the time are used up; `progress` is called again and again.

        An interrupt ends it at once; what is recorded stays, and the rest is for `--resume`.
        """
        start = time.monotonic()
        limit = seconds if seconds is not None else self.settings.seconds
        until = math.inf if limit is None else start + limit
        before = self.tally.seconds

        def look() -> None:
            self.tally.seconds = before + time.monotonic() - start
            progress(self)

        def found(one: Found) -> None:
            self._keep(one)
            look()

        def finished(number: int, batch: dict[str, Any] | Fault) -> None:
            if isinstance(batch, Fault):
                self._write_down(batch)
                return
            self.store.add_batch(number, batch)  # last: a batch that is there is there with all
            self.tally.add(batch)
            look()

        try:
            if self.settings.jobs <= 1:
                self._alone(until, finished, found)
            else:
                self._spread(until, finished, found, look)
        except KeyboardInterrupt:
            self.interrupted = True
        with self.store.reading():
            self._reload()  # with what other processes have done
        self.tally.seconds = before + time.monotonic() - start

    def _alone(
        self,
        until: float,
        finished: Callable[[int, dict[str, Any] | Fault], None],
        found: Callable[[Found], None],
    ) -> None:
        """Runs batches in this process."""
        PACE.start(until)
        SEEN.clear()
        try:
            for number in self._numbers(until):
                finished(number, run_guarded(self.settings, number, found))
        finally:
            PACE.start(math.inf)
            close_sessions()

    def _spread(
        self,
        until: float,
        finished: Callable[[int, dict[str, Any] | Fault], None],
        found: Callable[[Found], None],
        look: Callable[[], None],
    ) -> None:
        """Runs batches in as many processes as there are jobs."""
        targets = [describe(name).worker for name in self.settings.targets]
        with sharing(targets, Limits()) as templates:
            work = _Work(self.settings, until, templates)

            def done(number: int, result: tuple[dict[str, Any] | Fault, Known]) -> None:
                batch, known = result
                work.known = work.known[0] | known[0], work.known[1] | known[1]
                finished(number, batch)

            spread = Spread(self.settings.jobs, work, done, found, look)
            spread.run(self._numbers(until))
            self.lost = spread.lost

    def _numbers(self, until: float) -> Iterator[int]:
        """Batches that are still to be done, while there is time."""
        number = 0
        while self.settings.programs is None or number * BATCH < self.settings.programs:
            if time.monotonic() >= until:
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
        described = write_guarded(found, self.folder / identity)
        if isinstance(described, Fault):
            self._write_down(described)
            return
        alike = next((one for one in self.findings if _tells_the_same(described, one)), None)
        if alike is not None and _is_graver(described, alike):
            self.store.forget(alike["id"])
            self.findings.remove(alike)
            shutil.rmtree(self.folder / alike["id"])
        elif alike is not None:
            shutil.rmtree(self.folder / identity)
            return
        self.store.add_finding(identity, found.signature, described)
        self.findings.append(described)

    def _write_down(self, fault: Fault) -> None:
        """Keeps what a fault says, beside those before it. Raises `file.campaign`."""
        self.faults.append(fault.number)
        path = self.folder / FAULTS
        try:
            with path.open("a", encoding="utf-8") as file:
                kind = "batch" if isinstance(fault.number, int) else "finding"
                file.write(f"{kind} {fault.number} of seed {self.settings.seed}\n{fault.text}\n")
        except OSError as error:
            raise fail("file.campaign", f"{path} cannot be written: {error.strerror}") from None

    def close(self) -> None:
        """Leaves the campaign to other processes."""
        self.store.close()

    def report(self) -> dict[str, Any]:
        """The keys of `irlang fuzz --format json`."""
        catalog = builtin()
        used = self.tally.covered.get("operators", Counter())
        wanted = self.settings.ops or tuple(catalog.names())
        return {
            "programs": self.tally.programs,
            "valid": self.tally.valid,
            "tried": self.tally.tried,
            "aside": self.tally.aside,
            "seconds": round(self.tally.seconds, 3),
            "seed": self.settings.seed,
            "targets": {
                name: {v: counts[v] for v in SEVERITY if counts[v]}
                for name, counts in self.tally.targets.items()
            },
            "apart": {name: dict(counts) for name, counts in self.tally.apart.items()},
            "pieces": {name: dict(counts) for name, counts in self.tally.pieces.items()},
            "invalid": {name: dict(counts) for name, counts in self.tally.invalid.items()},
            "findings": self.findings,
            "known": dict(self.suppressed),
            "lost": sorted(self.lost),
            "faults": list(self.faults),
            "coverage": {
                "operators": len([name for name in wanted if used[name]]),
                "of": len(wanted),
                "uses": dict(sorted(used.items())),
                "cells": len(self.tally.covered.get("cells", ())),
                "features": dict(sorted(self.tally.covered.get("features", Counter()).items())),
            },
        }


def _tells_the_same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two findings differ in their verdicts alone: what was met at the edges of types may
    be reduced to a program that is as wrong by usual values, or by none.
    """
    return all(one[key] == other[key] for key in _TOLD)


def _is_graver(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return SEVERITY.index(one["verdict"]) > SEVERITY.index(other["verdict"])
