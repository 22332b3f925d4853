"""Runs programs on several targets beside the oracle and judges every output.

A `Session` keeps one worker per target; their processes start once. `compare` lowers a batch,
sends it to all targets, computes the oracle while they work, and judges what comes back.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Self

import numpy as np

from irlang.arithmetic import STANDARD, Arithmetic, half
from irlang.catalog import Catalog
from irlang.diagnostics import InvalidInput, fail
from irlang.diff.calls import Case as Case
from irlang.diff.calls import judge_following, open_values, renamed
from irlang.diff.flat import with_flat
from irlang.diff.gradients import Asked, ask, with_loss_shown
from irlang.diff.gradients import expose as expose
from irlang.diff.promised import ruled_out
from irlang.diff.refine import Refiner
from irlang.diff.verdict import FINDINGS, Verdict, judge, softened
from irlang.gen.extreme import has_extreme
from irlang.graph import Graph, Node
from irlang.interp.balls import Ball
from irlang.interp.program import balls, precision
from irlang.lower.lower import Lowered, lower
from irlang.lower.pool import Limits, Program, Result, Worker, WorkerError
from irlang.lower.profile import Accepted, arithmetic
from irlang.lower.target import require_installed

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(slots=True)
class Outcome:
    """What became of a case: the oracle's balls and one list of verdicts for every target.

    balls: every value's, in standard arithmetic. refusal: why the oracle itself has no value (a
    precondition on values fails).
    """

    balls: dict[str, Ball] = field(default_factory=dict)
    verdicts: dict[str, list[Verdict]] = field(default_factory=dict)
    slopes: dict[str, Ball] = field(default_factory=dict)
    results: dict[str, Result] = field(default_factory=dict)
    refusal: InvalidInput | None = None
    closer: Refiner | None = None


class Session:
    """Workers for a set of targets.

    accepted: of whose arithmetic, by a profile of the user's (`irlang.lower.profile`). thorough:
    as of a `Refiner`.
    """

    def __init__(
        self,
        targets: Sequence[str],
        limits: Limits | None = None,
        accepted: Sequence[Accepted] = (),
        thorough: bool = True,
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
        least = min(d.share for d in descriptions.values())
        # A slow target gets one in so many of the programs of a campaign.
        self.shares = {name: d.share // least for name, d in descriptions.items()}
        self._last: dict[str, tuple[list[Node], Catalog, Any, Lowered]] = {}
        self.workers = {
            name: Worker(d.worker, limits or Limits()) for name, d in descriptions.items()
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
        for worker in self.workers.values():
            worker.close()

    def only(self, target: str) -> Session:
        """The same workers, one target alone; not to be closed by itself."""
        alone = self.among((target,))
        alone.shares = {target: 1}
        return alone

    def among(self, targets: Sequence[str]) -> Session:
        """The same workers, some of the targets; not to be closed by itself."""
        some = Session.__new__(Session)
        some.targets = tuple(targets)
        some.workers = {target: self.workers[target] for target in targets}
        some.arithmetic = {target: self.arithmetic[target] for target in targets}
        some.shares = {target: self.shares[target] for target in targets}
        some.says_no = self.says_no
        some._last = self._last
        some.thorough = self.thorough
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
            if spare is not None and spare.hello():
                some.workers[target] = spare
        except WorkerError:
            pass  # not every framework survives a fork
        return some

    def afresh(self, target: str) -> Session:
        """A target alone, in a process that has run nothing yet; to be closed (`with`)."""
        alone = self.only(target)
        alone.workers = {target: self.workers[target].fresh()}
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
    ) -> list[Outcome]:
        """Judges every output of every case; with `exposed`, every intermediate value too.

        numbers: of the cases in a campaign, by which targets get their share of them; without
        these, all targets run all cases.

        Where something is left open, all intermediate values are asked for in any case: what
        follows is judged by them.
        """
        try:
            return self._compared(cases, exposed, grad, numbers)
        except BaseException:  # what a target still has to say is no answer to the next call
            for worker in self.workers.values():
                worker.forget()
            raise

    def _compared(
        self, cases: Sequence[Case], exposed: bool, grad: bool, numbers: Sequence[int] | None
    ) -> list[Outcome]:
        shown = [with_loss_shown(case.graph) if grad else case.graph for case in cases]
        judged = [expose(graph) if exposed else graph for graph in shown]
        undetermined = [open_values(case.graph, case.catalog) for case in cases]
        graphs = [
            expose(case.graph) if values else graph
            for case, graph, values in zip(cases, judged, undetermined, strict=True)
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
                    outcomes[number].verdicts[target] = _same(
                        graph, target, "unsupported", asked.lowered.unsupported[0]
                    )
                    continue
                programs.append(asked.program(case))
                sent[target].append((number, asked))
            worker.send(programs)
        for case, graph, outcome in zip(cases, graphs, outcomes, strict=True):
            try:
                outcome.balls = case.balls or _balls(case, graph, STANDARD)
                if grad:
                    outcome.slopes = _slopes(case, graph, STANDARD, outcome.balls)
            except InvalidInput as error:
                outcome.refusal = error
        for target, worker in self.workers.items():
            try:
                results = worker.collect()
            except WorkerError as error:
                raise _unusable(target, error) from None
            for (number, asked), result in zip(sent[target], results, strict=True):
                asked.sort(result)
                outcomes[number].results[target] = result
                found = self._judged(judged[number], target, cases[number], outcomes[number])
                found += not_differentiated(asked, target, outcomes[number])
                found = staged(judged[number], found)
                if undetermined[number] and result.outputs:  # be there gradients or not
                    following = judge_following(
                        cases[number], graphs[number], result.outputs, target,
                        self.arithmetic[target],
                    )  # fmt: skip
                    found = _with_open(judged[number], found, following)
                outcomes[number].verdicts[target] = found
        return outcomes

    def can_run(self, case: Case) -> bool:
        """Whether a program of a case can be written for any of the targets."""
        return any(
            not self._lowered(case.graph, target, case).unsupported for target in self.targets
        )

    def has_own(self, graph: Graph, catalog: Catalog) -> bool:
        """Whether any of the targets has operators of its own for all calls of a program that has
        no parameters.
        """
        return any(
            not lower(graph, target, catalog, {}, whole=False).unsupported
            for target in self.targets
        )

    def _lowered(self, graph: Graph, target: str, case: Case) -> Lowered:
        """The program of a case; the last one's where the two differ in their inputs' values alone.

        So do most that are tried while a case is made smaller.
        """
        if graph.params:
            return lower(graph, target, case.catalog, case.params)
        infos = [(name, port.info) for name, port in graph.inputs.items()]
        key = graph.name, graph.doc, infos, list(graph.outputs.items()), graph.loss
        last = self._last.get(target)
        if last is None or last[0] is not graph.nodes or last[1] is not case.catalog:
            last = None
        if last is None or last[2] != key:
            made = lower(graph, target, case.catalog, case.params)
            last = self._last[target] = graph.nodes, case.catalog, key, made
        return last[3]

    def ran(self, cases: Sequence[Case], target: str) -> list[Result | None]:
        """What a target gives for every value of some programs, with no judgement of it.

        None of a program that it cannot run.
        """
        worker = self.workers[target]
        made = [lower(expose(c.graph), target, c.catalog, c.params) for c in cases]
        able = [(a, case) for a, case in zip(made, cases, strict=True) if not a.unsupported]
        worker.send([program(lowered, case) for lowered, case in able])
        try:
            results = iter(worker.collect())
        except WorkerError as error:
            raise _unusable(target, error) from None
        return [None if lowered.unsupported else next(results) for lowered in made]

    def _judged(self, graph: Graph, target: str, case: Case, outcome: Outcome) -> list[Verdict]:
        """Verdicts on what a target gave, in its own arithmetic where that makes a difference."""
        result, own = outcome.results[target], self.arithmetic[target]
        said = self.says_no[target]
        if result.status == "refused" and said and re.search(said, result.error):
            return _same(graph, target, "unsupported", _reason(result))
        apart = result.detail.get("stage") in ("contract", "gradient")
        if result.status == "refused" and not apart and _unpromised(case, graph, outcome.balls):
            return _same(graph, target, "unstable", _reason(result))
        if result.status == "refused" and not apart and any(map(has_extreme, graph.nodes)):
            return _same(graph, target, "unsupported", _reason(result))  # it counts in fewer bits
        found = verdicts(graph, target, outcome, result)
        if outcome.refusal is not None or result.status != "ok":
            return found
        amiss = any(v.index is not None and v.verdict in FINDINGS for v in found)
        if outcome.closer is None:
            outcome.closer = Refiner(graph, case.values, case.catalog, self.thorough)
        if own.narrower or (amiss and own != STANDARD):
            outcome = replace(outcome, balls=_balls(case, graph, own))
            if outcome.slopes:
                outcome.slopes = _slopes(case, graph, own, outcome.balls)
            found = verdicts(graph, target, outcome, result)
        shown = {name: graph.values[value] for name, value in graph.outputs.items()}
        outputs = {name: result.outputs[name] for name in shown if name in result.outputs}
        slopes = {f"d_{name}": graph.values[name] for name in outcome.slopes}
        pulled = {f"d_{name}": slope for name, slope in result.gradients.items()}

        def coarse() -> dict[str, Ball]:
            balls = _balls(case, graph, half(own))
            rough = _slopes(case, graph, half(own), balls) if slopes else {}
            return {
                **{f"d_{name}": ball for name, ball in rough.items()},
                **{name: balls[value] for name, value in graph.outputs.items()},
            }

        found = softened(found, {**slopes, **shown}, {**pulled, **outputs}, coarse)
        if slopes:
            found = with_flat(
                graph, case, outcome.balls, outcome.slopes, outputs, result.gradients, found
            )
        found = self._closer(found, graph, target, case, outcome, outputs)
        if any(v.verdict in FINDINGS for v in found):
            said = ruled_out(graph, case, outcome.balls, target)
            return _same(graph, target, "unsupported", said) if said else found
        return found

    def _closer(
        self,
        found: list[Verdict],
        graph: Graph,
        target: str,
        case: Case,
        outcome: Outcome,
        outputs: dict[str, Array],
    ) -> list[Verdict]:
        """The verdicts, looked at more closely where they say little."""
        if open_values(graph, case.catalog):
            return found
        assert outcome.closer is not None
        return outcome.closer.refined(
            found, outcome.balls, outputs, target, self.arithmetic[target]
        )


_FROM = r"\S*worker\.py:\d+:\d+: "
_TRACED = re.compile(rf"{_FROM}note: called from\n.*\n *\^\n?")
_AT = re.compile(rf"{_FROM}(error: .*\n).*\n *\^\n?")


def _unusable(target: str, error: WorkerError) -> InvalidInput:
    return fail("usage.target", f"{target} cannot be used: {error}", help=error.output[-500:])


def _unpromised(case: Case, graph: Graph, balls: dict[str, Ball]) -> bool:
    """Whether a call was fed with what its definition leaves open: it may say so, and stop."""
    return any(
        bool(np.any(np.isinf(balls[name].bound)))
        for node in graph.nodes
        if node.expansion(case.catalog).unspecified
        for name in node.outputs
        if name in balls
    )


def is_turn(number: int, share: int) -> bool:
    """Whether a program of a campaign is the one of `share` that a slow target gets.

    Which of so many in a row is as good as drawn: kinds of programs come in turns as well, and one
    that always fell on another number would never meet the target.
    """
    around, place = divmod(number, share)
    return place == zlib.crc32(f"{around} {share}".encode()) % share


def _balls(case: Case, graph: Graph, own: Arithmetic) -> dict[str, Ball]:
    return balls(graph, case.values, case.catalog, precision(graph), own)


def _slopes(case: Case, graph: Graph, own: Arithmetic, found: dict[str, Ball]) -> dict[str, Ball]:
    from irlang.interp.gradient import gradient_balls

    return gradient_balls(graph, case.values, case.catalog, found, arithmetic=own)


def program(lowered: Lowered, case: Case, grad: bool = False) -> Program:
    """What a worker is sent for a case."""
    return Program(lowered.kind, lowered.code, case.inputs, lowered.params, grad)


def _with_open(graph: Graph, found: list[Verdict], following: dict[str, Verdict]) -> list[Verdict]:
    """The verdicts of a program's outputs, those on what is not determined in their place."""
    replaced = []
    for verdict in found:
        value = graph.outputs.get(verdict.name)
        if value in following:
            verdict = renamed(following[value], verdict.name)
        elif verdict.name not in graph.outputs:
            told = "the gradient hangs on what is left open"
            verdict = Verdict(verdict.name, verdict.target, "unstable", message=told)
        replaced.append(verdict)
    return replaced


def _same(graph: Graph, target: str, verdict: str, message: str) -> list[Verdict]:
    return [Verdict(name, target, verdict, message=message) for name in graph.outputs]


_LOST = {"crash": "crash", "timeout": "timeout", "memory": "memory"}


# What frameworks say of an operator that they have no gradient of.
_NO_SLOPE = re.compile(
    r"derivative for|not differentiable|_backward\S* not implemented|gradient registry has no"
    r"|No gradient defined for"
    r"|[Gg]radients for .* are not supported"
)


def verdicts(graph: Graph, target: str, outcome: Outcome, result: Result) -> list[Verdict]:
    """Judges what a target gave; an oracle that refuses makes a target's value `accepted`."""
    if result.status in _LOST:
        return _same(graph, target, _LOST[result.status], _reason(result))
    if outcome.refusal is not None:
        message = outcome.refusal.diagnostics[0].message
        return _same(
            graph, target, "refused" if result.status == "refused" else "unstable", message
        )
    if result.status == "refused":
        if result.detail.get("stage") == "contract":
            raise fail(
                "lower.contract", f"{target}: the emitted program is at fault: {result.error}"
            )
        if result.detail.get("stage") != "gradient":
            return _same(graph, target, "refused", _reason(result))
    found = []
    for name, value in graph.outputs.items():
        info = graph.values[value]
        if name not in result.outputs:
            found.append(Verdict(name, target, "wrong", message="the program gives no such result"))
        else:
            found.append(judge(name, target, info, outcome.balls[value], result.outputs[name]))
    for name, ball in outcome.slopes.items():
        if result.status == "refused":
            grave = "unsupported" if _NO_SLOPE.search(result.error) else "refused"
            found.append(Verdict(f"d_{name}", target, grave, message=_reason(result)))
        elif name in result.gradients:
            slope = result.gradients[name]
            found.append(judge(f"d_{name}", target, graph.values[name], ball, slope))
    return found


def not_differentiated(asked: Asked, target: str, outcome: Outcome) -> list[Verdict]:
    """A verdict for every gradient that is asked for and that the target cannot give."""
    constant = asked.lowered.constant
    reasons = {name: f"`{op}` has no derivative by it there" for name, op in constant.items()}
    if asked.reason:
        reasons = dict.fromkeys(outcome.slopes, asked.reason)
    return [
        Verdict(f"d_{name}", target, "unsupported", message=reasons[name])
        for name in outcome.slopes
        if name in reasons
    ]


def staged(graph: Graph, found: list[Verdict]) -> list[Verdict]:
    """Verdicts with the stage of training that each is of."""
    stages = {name: "loss" if v == graph.loss else "forward" for name, v in graph.outputs.items()}
    return [replace(v, stage=stages.get(v.name, "backward")) for v in found]


def _reason(result: Result) -> str:
    """What a target says, without the places in the worker that a compiler traces it back to."""
    said = _TRACED.sub("", _AT.sub(r"\1", result.error))
    signal = result.detail.get("signal")
    return f"{signal}: {said}" if signal and signal not in said else said
