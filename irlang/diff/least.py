"""An invalid call that a target takes, as small as it still does, and as it is usually written."""

from __future__ import annotations

from dataclasses import replace

from irlang.diff.answers import PATIENCE, Sent, is_beyond, is_of_reals, run_again, says_nan, word_of
from irlang.diff.calls import Case
from irlang.diff.handed import Programs, is_handed_over
from irlang.diff.runner import Session
from irlang.gen.fed import fed
from irlang.gen.smaller import smaller
from irlang.gen.spoilt import Spoilt
from irlang.lower.manner import USUAL
from irlang.lower.pool import Program, Result, Worker, WorkerError

_TRIALS = 24  # smaller calls that are tried for one that is accepted


def least(
    session: Session,
    programs: Programs,
    target: str,
    one: Spoilt,
    case: Case,
    result: Result,
) -> tuple[Spoilt, Case, Result]:
    """A spoilt call that is accepted, as small as it still is, with what it is fed and gives.

    Where it gives numbers that look right, a smaller one does: NaN may pass for a refusal.
    """
    worker = session.workers[target].hasty(PATIENCE)
    whole, last, trials = (one, case, result), None, 0
    while trials < _TRIALS:
        for other in smaller(one, case.catalog):
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
            if word_of(asked, ran) == "accepted" and says_nan(ran) <= says_nan(result):
                one, case, result, last = other, given, ran, program
                break
        else:
            break
    again = run_again(session.workers[target], [] if last is None else [last])
    return (one, case, result) if all(r is not None and r.status == "ok" for r in again) else whole


def as_usual(
    worker: Worker, target: str, one: Spoilt, case: Case, result: Result
) -> tuple[Case, Result]:
    """A spoilt call that is accepted as it is usually written, where it is in that form, too."""
    if not case.manner.turn:
        return case, result
    programs = Programs(case.catalog)
    lowered = programs.own(target, one.graph)
    if lowered is None or not is_handed_over(one, lowered, target, programs):
        return case, result
    program = Program(lowered.kind, lowered.code, case.inputs, lowered.params)
    asked = Sent(0, program, True, is_beyond(one), is_of_reals(one))
    (ran,) = run_again(worker, [program])
    if ran is None or word_of(asked, ran) != "accepted":
        return case, result
    return replace(case, manner=USUAL), ran
