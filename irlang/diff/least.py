"""An invalid call that a target takes or dies of, as small as that still is, and in usual words."""

from __future__ import annotations

import time
from dataclasses import replace

from irlang.diff.answers import PATIENCE, Sent, is_beyond, is_of_reals, run_again, says_nan, word_of
from irlang.diff.calls import Case
from irlang.diff.handed import Programs, is_handed_over
from irlang.diff.pace import PACE
from irlang.diff.runner import Session
from irlang.gen.fed import fed
from irlang.gen.smaller import smaller
from irlang.gen.spoilt import Spoilt
from irlang.lower.manner import USUAL
from irlang.lower.pool import Program, Result, Worker, WorkerError

_TRIALS, _SECONDS = 24, 2.0  # smaller calls that are tried for one, and for how long at most


def least(
    session: Session,
    programs: Programs,
    target: str,
    one: Spoilt,
    case: Case,
    result: Result,
) -> tuple[Spoilt, Case, Result]:
    """A spoilt call that is accepted or ends a process, as small as that still is, with what it is
    fed and gives.

    Where it gives numbers that look right, a smaller one does: NaN may pass for a refusal. What
    ends a process ends it likewise.
    """
    worker = session.workers[target].hasty(PATIENCE)
    whole, last, trials = (one, case, result), None, 0
    until = time.monotonic() + PACE.for_one(_SECONDS)
    while trials < _TRIALS and time.monotonic() < until:
        for other in smaller(one, case.catalog):
            if time.monotonic() >= until:
                break
            lowered = programs.own(target, other.graph)
            if lowered is None or not is_handed_over(other, lowered, target, programs):
                continue
            given = replace(case, graph=other.graph, inputs=fed(other, case.catalog))
            program = Program(lowered.kind, lowered.code, given.inputs, lowered.params)
            asked = Sent(0, program, True, is_beyond(other), is_of_reals(other))
            trials += 1
            try:
                (ran,) = worker.submit([program])
            except WorkerError:
                return whole
            if _does_as(asked, ran, result):
                one, case, result, last = other, given, ran, program
                break
        else:
            break
    again = run_again(session.workers[target], [] if last is None else [last])
    steady = all(r is not None and r.status == result.status for r in again)
    return (one, case, result) if steady else whole


def as_usual(
    worker: Worker, target: str, one: Spoilt, case: Case, result: Result
) -> tuple[Case, Result]:
    """A spoilt call as it is usually written, where the target does the same of it in that form."""
    if not case.manner.turn:
        return case, result
    programs = Programs(case.catalog)
    lowered = programs.own(target, one.graph)
    if lowered is None or not is_handed_over(one, lowered, target, programs):
        return case, result
    program = Program(lowered.kind, lowered.code, case.inputs, lowered.params)
    asked = Sent(0, program, True, is_beyond(one), is_of_reals(one))
    (ran,) = run_again(worker, [program])
    if ran is None or not _does_as(asked, ran, result):
        return case, result
    return replace(case, manner=USUAL), ran


def _does_as(asked: Sent, ran: Result, result: Result) -> bool:
    """Whether a target does of one call as it did of another."""
    if result.status != "ok":
        return ran.status == result.status and ran.error == result.error
    return word_of(asked, ran) == "accepted" and says_nan(ran) <= says_nan(result)
