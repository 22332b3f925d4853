"""Runs programs on several targets beside the oracle and judges every output.

A `Session` keeps one worker per target; their processes start once. `compare` lowers a batch,
sends it to all targets, computes the oracle while they work, and judges what comes back.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Self

from irlang.arithmetic import STANDARD
from irlang.catalog import Catalog
from irlang.diagnostics import InvalidInput, fail
from irlang.diff.calls import Case as Case
from irlang.diff.calls import judge_following, open_values
from irlang.diff.flat import without_arms
from irlang.diff.gradients import Asked, ask, with_loss_shown
from irlang.diff.gradients import expose as expose
from irlang.diff.outcome import (
    Outcome,
    balls_of,
    judged,
    not_differentiated,
    same,
    slopes_of,
    staged,
    with_open,
)
from irlang.diff.pace import PACE
from irlang.diff.plainly import Judged, compare_plainly, excuse
from irlang.diff.rounds import Fruitless, Rarest
from irlang.diff.verdict import Verdict, only_shapes
from irlang.graph import Graph, Node
from irlang.interp.values import initial_values
from irlang.lower.launch import on_gpu
from irlang.lower.lower import Lowered, lower
from irlang.lower.manner import Manner
from irlang.lower.modes import ROWS
from irlang.lower.pair import Pair
from irlang.lower.pool import Limits, Program, Result, Worker, WorkerError
from irlang.lower.profile import Accepted, arithmetic
from irlang.lower.target import Description, describe, require_installed

_SECONDS = 3  # times as long as others a target may take that compiles for seconds


class Session:
    """Workers for a set of targets.

    accepted: of whose arithmetic, by a profile of the user's (`irlang.lower.profile`). thorough:
    as of a `Refiner`. side_by_side: whether targets that take their time have two processes each.
    `compiles` says of each target whether it takes its time over a program, however short.
    """

    def __init__(
        self,
        targets: Sequence[str],
        limits: Limits | None = None,
        accepted: Sequence[Accepted] = (),
        thorough: bool = True,
        side_by_side: bool = False,
    ) -> None:
        if not targets:
            raise fail(
                "usage.targets", "no target is named", help="as in --targets torch,onnxruntime"
            )
        self.targets = tuple(dict.fromkeys(targets))
        self.thorough = thorough
        descriptions = {name: require_installed(name) for name in self.targets}
        self.arithmetic = {n: arithmetic(d, accepted) for n, d in descriptions.items()}
        self.says_no = {n: d.says_no for n, d in descriptions.items()}
        self.compiles = {n: d.compiles for n, d in descriptions.items()}
        self.plain = {n: d.plain for n, d in descriptions.items()}
        self.sooner = {n: d.sooner for n, d in descriptions.items()}
        self._limits = limits or Limits()
        self._beside: dict[str, Worker] = {}  # of targets that nobody asked for
        least = min(d.share for d in descriptions.values())
        # A slow target gets one in so many of the programs of a campaign.
        self.shares = {name: d.share // least for name, d in descriptions.items()}
        self._last: dict[str, tuple[list[Node], Catalog, Any, Lowered]] = {}
        self.fruitless = Fruitless()  # requirements that could not be broken
        self.rarest = Rarest()  # functions of which few calls were spoilt
        self.seconds = math.inf  # that a program may take, where that is less than by the limits
        self.workers = {
            name: (Pair if side_by_side and _takes_time(d) else Worker)(d.worker, self._limits)
            for name, d in descriptions.items()
        }

    def __enter__(self) -> Self:
        for worker in self.workers.values():
            worker.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for worker in (*self.workers.values(), *self._beside.values()):
            worker.close()

    def only(self, target: str) -> Session:
        """The same workers, one target alone; not to be closed by itself."""
        alone = self.among((target,))
        alone.shares = {target: 1}
        return alone

    def plainly(self, target: str) -> Session:
        """A target's framework without the target's mode, which has one (`plain`), as a session of
        it alone; not to be closed by itself.
        """
        known = describe(self.plain[target])
        alone = self.only(target)
        alone.targets = (known.name,)
        alone.workers = {known.name: self._run_by(known, target)}
        alone.arithmetic = {known.name: self.arithmetic[target]}
        alone.shares, alone.compiles = {known.name: 1}, {known.name: known.compiles}
        alone.says_no = {known.name: known.says_no}
        alone.plain, alone.sooner = {known.name: known.plain}, {known.name: known.sooner}
        alone._last = {}
        return alone

    def slow(self) -> bool:
        """Whether all targets take seconds over a program, however short."""
        return all(map(self.takes_seconds, self.targets))

    def takes_seconds(self, target: str) -> bool:
        """Whether a target takes seconds over a program, however short."""
        return self.compiles[target] and self.workers[target].target.patience >= _SECONDS

    def among(self, targets: Sequence[str]) -> Session:
        """The same workers, some of the targets; not to be closed by itself."""
        some = Session.__new__(Session)
        some.targets = tuple(targets)
        some.workers = {target: self.workers[target] for target in targets}
        some.arithmetic = {target: self.arithmetic[target] for target in targets}
        some.shares = {target: self.shares[target] for target in targets}
        some.says_no = self.says_no
        some.plain, some.sooner = self.plain, self.sooner
        some._limits, some._beside = self._limits, self._beside
        some.compiles = {target: self.compiles[target] for target in targets}
        some._last = self._last
        some.thorough = self.thorough
        some.seconds = self.seconds
        some.fruitless = self.fruitless
        some.rarest = self.rarest
        return some

    def apart(self, target: str, seconds: float | None = None) -> Session | None:
        """A target alone, each program in a process of its own; None where that cannot be.

        A program that ends its process costs little there. seconds: that one may take. Not to be
        closed by itself.
        """
        spare = self.workers[target].spare(seconds)
        if spare is None:
            return None
        alone = self.only(target)
        alone.workers = {target: spare}
        return alone

    def hurried(self, target: str, seconds: float) -> Session:
        """The same targets, programs of one in processes of their own, each for so many seconds:
        what is known to hang need not take the whole of its time again. As it is where that
        framework does not fork. Not to be closed by itself.
        """
        spare = self.workers[target].spare(seconds)
        some = self.among(self.targets)
        try:
            if spare is not None:
                spare.hello()
                some.workers[target] = spare
        except WorkerError:
            pass  # not every framework survives a fork
        return some

    def hasty(self, seconds: float) -> Session:
        """The same workers, which give up a program after so many seconds, before the target's
        patience; not to be closed by itself.
        """
        some = self.among(self.targets)
        some.seconds = seconds
        return some

    def afresh(self, target: str) -> Session:
        """A target alone, in a process that has run nothing yet; to be closed (`with`)."""
        alone = self.only(target)
        alone.workers = {target: self.workers[target].fresh()}
        alone._beside = {}
        return alone

    def versions(self, *, whole: bool = False) -> dict[str, str]:
        """The version of every target's framework; waits until all have started.

        whole: those of its Python and NumPy too, in brackets.
        """
        found = {}
        for name, worker in self.workers.items():
            try:
                said = worker.hello()
                below = f" (Python {said.python}, NumPy {said.numpy})" if whole else ""
                found[name] = said.version + below
            except WorkerError as error:
                message = f"{name} does not start: {error}"
                raise fail("usage.target", message, help=error.output[-500:]) from None
        return found

    def compare(
        self,
        cases: Sequence[Case],
        exposed: bool = False,
        grad: bool = False,
        numbers: Sequence[int] | None = None,
        first: bool = False,
    ) -> list[Outcome]:
        """Judges every output of every case; with `exposed`, every intermediate value too.

        numbers: of the cases in a campaign, by which targets get their share of them; without
        these, all targets run all cases. first: whether nothing is known of the cases that is
        reason to look closer, as nothing is of a campaign's: such looks have a share of its time.

        Where something is left open, all intermediate values are asked for in any case: what
        follows is judged by them.
        """
        try:
            first = first or numbers is not None
            return self._compared(cases, exposed, grad, numbers, first)
        except BaseException:  # what a target still has to say is no answer to the next call
            for worker in (*self.workers.values(), *self._beside.values()):
                worker.forget()
            raise

    def _compared(
        self,
        cases: Sequence[Case],
        exposed: bool,
        grad: bool,
        numbers: Sequence[int] | None,
        first: bool,
    ) -> list[Outcome]:
        shown = [with_loss_shown(case.graph) if grad else case.graph for case in cases]
        watched = [expose(graph) if exposed else graph for graph in shown]
        undetermined = [open_values(case.graph, case.catalog) for case in cases]
        graphs = [
            expose(case.graph) if values else graph
            for case, graph, values in zip(cases, watched, undetermined, strict=True)
        ]
        outcomes = [Outcome() for _ in cases]
        sent: dict[str, list[tuple[int, Asked]]] = {}
        for target, worker in self.workers.items():
            programs = []
            sent[target] = []
            for number, (case, graph) in enumerate(zip(cases, graphs, strict=True)):
                if numbers is not None and not is_turn(numbers[number], self.shares[target]):
                    continue
                if grad:
                    asked = ask(graph, target, case)
                else:
                    asked = Asked(self._lowered(graph, target, case))
                if asked.lowered.unsupported:
                    outcomes[number].verdicts[target] = same(
                        graph, target, "unsupported", asked.lowered.unsupported[0]
                    )
                    continue
                programs.append(asked.program(case))
                sent[target].append((number, asked))
            worker.send(programs, self.seconds)
        for case, graph, outcome in zip(cases, graphs, outcomes, strict=True):
            start = time.monotonic()
            try:
                outcome.balls = case.balls or balls_of(case, graph, STANDARD)
                outcome.took = case.took or time.monotonic() - start
                if grad:
                    outcome.slopes = slopes_of(case, graph, STANDARD, outcome.balls)
            except InvalidInput as error:
                outcome.refusal = error
        for target, worker in self.workers.items():
            try:
                results = worker.collect()
            except WorkerError as error:
                raise _unusable(target, error) from None
            PACE.wait(_waited(results))
            for (number, asked), result in zip(sent[target], results, strict=True):
                asked.sort(result)
                outcomes[number].results[target] = result
                found = judged(
                    watched[number], target, cases[number], outcomes[number],
                    self.arithmetic[target], says_no=self.says_no[target], thorough=self.thorough,
                    first=first,
                )  # fmt: skip
                if asked.lowered.gradients:
                    found = without_arms(watched[number], asked.lowered.native, found)
                found += not_differentiated(asked, target, outcomes[number])
                found = staged(watched[number], found)
                if undetermined[number] and result.outputs:  # be there gradients or not
                    following = judge_following(
                        cases[number], graphs[number], result.outputs, target,
                        self.arithmetic[target],
                    )  # fmt: skip
                    found = with_open(watched[number], found, following)
                outcomes[number].verdicts[target] = found
        for target in self.workers:
            some = [Judged(cases[n], watched[n], outcomes[n]) for n, _ in sent[target]]
            self._compare_plainly(target, some)
        return outcomes

    def beside_plain(self, case: Case, target: str, result: Result) -> list[Verdict]:
        """Verdicts on what a target gave for a case, by what its framework gives plainly and by
        nothing else: `unstable` where that says nothing.
        """
        outcome = Outcome(results={target: result})
        outcome.verdicts[target] = same(case.graph, target, "unstable", "")
        try:
            outcome.balls = balls_of(case, case.graph, self.arithmetic[target])
        except InvalidInput as error:
            outcome.refusal = error
        self._compare_plainly(target, [Judged(case, case.graph, outcome)])
        return outcome.verdicts[target]

    def _compare_plainly(self, target: str, some: list[Judged]) -> None:
        if self.plain[target]:
            says_no = describe(self.plain[target]).says_no
            excuse(target, self.plain[target], some, says_no, partial(self.ran_plainly, target))
        if self.plain[target] and not only_shapes(target):
            own, ran = self.arithmetic[target], partial(self.ran_plainly, target)
            compare_plainly(target, self.plain[target], some, own, ran)

    def ran_plainly(
        self, target: str, programs: list[Program], limits: Limits | None = None
    ) -> list[Result]:
        """What a target's framework gives without the target's mode. limits: of programs that may
        end a process or hang: they have one of their own.
        """
        return self.ran_as(self.plain[target], target, programs, limits)

    def ran_as(
        self, mode: str, target: str, programs: list[Program], limits: Limits | None = None
    ) -> list[Result]:
        """What a target's framework gives in another mode: that is its own process where programs
        say how they are run, and one beside it where the process has been told.
        """
        known = describe(mode)
        worker = self._run_by(known, target)
        worker = worker if limits is None else worker.hasty(limits)
        worker.send(programs, self.seconds)
        try:
            return worker.collect()
        except WorkerError as error:
            raise _unusable(mode, error) from None

    def _run_by(self, known: Description, target: str) -> Worker:
        """The process that runs programs of another mode of a target's framework."""
        if ROWS[known.framework].kind == "python":
            return self.workers[target]
        other = self.workers.get(known.name) or self._beside.get(known.name)
        return other or self._beside.setdefault(known.name, Worker(known.worker, self._limits))

    def can_run(self, case: Case) -> bool:
        """Whether a program of a case can be written for any of the targets."""
        return any(
            not self._lowered(case.graph, target, case).unsupported for target in self.targets
        )

    def dares(self, case: Case) -> bool:
        """Whether a program of a case is handed to any of the targets in a form that it may refuse,
        where refusals are held against none.
        """
        bold = replace(case, manner=replace(case.manner, bold=True))
        return any(self._lowered(case.graph, target, bold).dared for target in self.targets)

    def turned(self, case: Case, turn: int) -> Case:
        """A case as any of the targets writes it at a turn; as it is where none writes it otherwise
        then.
        """
        if not turn:
            return case
        other = replace(case, manner=replace(case.manner, turn=turn))
        lowered = (self._lowered(case.graph, target, other) for target in self.targets)
        return other if any(one.turned for one in lowered) else case

    def has_own(self, graph: Graph, catalog: Catalog) -> bool:
        """Whether any of the targets has operators of its own for all calls of a program, the
        parameters of which are numbers that are written in it.
        """
        written, manner = initial_values(graph, 0), Manner(bold=True)
        return any(
            not lower(graph, target, catalog, written, whole=False, manner=manner).unsupported
            for target in self.targets
        )

    def _lowered(self, graph: Graph, target: str, case: Case) -> Lowered:
        """The program of a case; the last one's where the two differ in their inputs' values alone.

        So do most that are tried while a case is made smaller.
        """
        if graph.params:
            return lower(graph, target, case.catalog, case.params, manner=case.manner)
        infos = [(name, port.info) for name, port in graph.inputs.items()]
        key = graph.name, graph.doc, infos, list(graph.outputs.items()), graph.loss, case.manner
        last = self._last.get(target)
        if last is None or last[0] is not graph.nodes or last[1] is not case.catalog:
            last = None
        if last is None or last[2] != key:
            made = lower(graph, target, case.catalog, case.params, manner=case.manner)
            last = self._last[target] = graph.nodes, case.catalog, key, made
        return last[3]

    def ran(self, cases: Sequence[Case], target: str) -> list[Result | None]:
        """What a target gives for every value of some programs, with no judgement of it.

        None of a program that it cannot run.
        """
        worker = self.workers[target]
        made = [lower(expose(c.graph), target, c.catalog, c.params, manner=c.manner) for c in cases]
        able = [(a, case) for a, case in zip(made, cases, strict=True) if not a.unsupported]
        worker.send([program(lowered, case) for lowered, case in able], self.seconds)
        try:
            results = iter(worker.collect())
        except WorkerError as error:
            raise _unusable(target, error) from None
        return [None if lowered.unsupported else next(results) for lowered in made]


def _takes_time(target: Description) -> bool:
    """Whether a target is waited for, on one core; several processes would share one GPU."""
    return target.share > 1 and not on_gpu(target.worker)


def _unusable(target: str, error: WorkerError) -> InvalidInput:
    return fail("usage.target", f"{target} cannot be used: {error}", help=error.output[-500:])


def _waited(results: Sequence[Result]) -> float:
    """The seconds of programs that had no answer."""
    return sum(result.seconds for result in results if result.status == "timeout")


def is_turn(number: int, share: int) -> bool:
    """Whether a program of a campaign is the one of `share` that a slow target gets.

    Which of so many in a row is as good as drawn: kinds of programs come in turns as well, and one
    that always fell on another number would never meet the target.
    """
    around, place = divmod(number, share)
    return place == zlib.crc32(f"{around} {share}".encode()) % share


def program(lowered: Lowered, case: Case, grad: bool = False) -> Program:
    """What a worker is sent for a case."""
    return Program(lowered.kind, lowered.code, case.inputs, lowered.params, grad)
