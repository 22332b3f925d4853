"""Where in training a target leaves the oracle: forward, loss or backward, and at which call.

Calls are judged one by one in the order in which they are computed, each by what the target itself
had there (`irlang.diff.localise`, `irlang.diff.gradients`). What comes first is to blame.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from irlang.diff.calls import Case
from irlang.diff.gradients import pulled_by_call
from irlang.diff.isolate_gradient import isolate_gradient
from irlang.diff.localise import call_by_call
from irlang.diff.runner import Session
from irlang.diff.verdict import FINDINGS, Verdict, gravest, worst
from irlang.graph import Node


@dataclass(frozen=True, slots=True)
class Start:
    """The call at which a disagreement starts.

    node: that of the model, whose gradient it may be; None where what flows back to a value from
    several calls is added up. verdict: the gravest on what it gives, with its stage. alone: of a
    gradient, the call as a program with a loss of its own, where there is one.
    """

    node: Node | None
    verdict: Verdict
    alone: Case | None = None

    @property
    def operator(self) -> str:
        """The operator's name."""
        return self.node.op.name if self.node is not None else "sum of gradients"

    def as_json(self) -> dict[str, Any]:
        """As in `irlang diff --grad --format json`, under `starts`."""
        return {
            "target": self.verdict.target, "stage": self.verdict.stage, "operator": self.operator,
            "call": self.node.name if self.node is not None else None,
            "result": self.verdict.name, "verdict": self.verdict.verdict,
        }  # fmt: skip


@dataclass(slots=True)
class Calls:
    """All calls of a program judged by themselves on a target.

    forward, backward: how many were. found: the verdicts on results that do not agree. start: the
    first call that has one.
    """

    forward: int = 0
    backward: int = 0
    found: list[Verdict] = field(default_factory=list)
    start: Start | None = None

    def note(
        self,
        node: Node | None,
        stage: str,
        verdicts: list[Verdict],
        alone: Callable[[], Case | None] | None = None,
    ) -> None:
        """Takes down the verdicts on the results of one call; `alone` makes a program of it."""
        amiss = [replace(v, stage=stage) for v in verdicts if v.verdict in FINDINGS]
        if amiss and self.start is None:
            self.start = Start(node, worst(amiss), None if alone is None else alone())
        self.found += amiss


def by_calls(session: Session, case: Case, target: str, grad: bool) -> Calls:
    """Judges every call alone, and with `grad` every call of the gradient too."""
    calls = Calls()
    for node, verdicts, _ in call_by_call(session, case, target):
        calls.forward += 1
        calls.note(node, "loss" if case.graph.loss in node.outputs else "forward", verdicts)
    if grad:
        judge_gradients(session, case, target, calls)
    return calls


def blamed_gradient(session: Session, case: Case, target: str) -> tuple[Start | None, Case]:
    """The first call whose gradient is wrong by itself, and the least program that shows it: the
    call with a loss of its own, or the case that was given.
    """
    only = session.only(target)
    start = gradient_by_calls(only, case, target).start
    if start is None or start.alone is None:
        return start, case
    found = only.compare([start.alone], grad=True)[0].verdicts[target]
    shown = [v for v in found if v.verdict == gravest([v.verdict for v in found])]
    if any(v.verdict in FINDINGS and v.stage == "backward" for v in shown):
        return start, start.alone
    again = gradient_by_calls(only, start.alone, target).start  # which the sum's rounding may hide
    shows = again is not None and again.verdict.verdict == start.verdict.verdict
    return start, start.alone if shows else case


def gradient_by_calls(session: Session, case: Case, target: str) -> Calls:
    """The calls of the gradient, judged by themselves."""
    calls = Calls()
    judge_gradients(session, case, target, calls)
    return calls


def judge_gradients(session: Session, case: Case, target: str, calls: Calls) -> None:
    """Judges every call of the gradient alone, and takes that down."""
    own = session.arithmetic[target]
    for pulled, verdicts, whole, fed in pulled_by_call(session.workers[target], case, target, own):
        calls.backward += pulled.forward is not None
        alone = partial(isolate_gradient, whole, pulled, fed) if pulled.forward else None
        calls.note(pulled.forward, "backward", verdicts, alone)
