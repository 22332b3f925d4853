"""What becomes of one program of a campaign on one target: its verdict, and what it has shown.

A program whose results disagree is taken apart as far as that says more: into parts that have
nothing to do with one another, and at the edges of types into its calls. One whose results agree,
though too little can be said of them, has its calls judged by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from irlang.diff.finding import charge, find, find_gradient
from irlang.diff.found import Found
from irlang.diff.localise import culprits, fused, localise
from irlang.diff.outcome import Outcome, is_strange
from irlang.diff.pace import PACE
from irlang.diff.programs import Settings
from irlang.diff.runner import Case, Session
from irlang.diff.seen import SEEN, symptom_of
from irlang.diff.strands import amiss
from irlang.diff.verdict import FINDINGS, Verdict, at_edge, gravest, of_values, only_estimated

_HANG = "timeout"
_WEAK = ("rounding", "unstable")
_SHARE = 3  # one in so many programs of weak verdict has its calls judged one by one
_LOCALISED = 8  # disagreements of one batch that are looked into; the others are counted


def judge_program(
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
    if verdict in FINDINGS:
        apart = [
            judge_program(session, settings, (seed, part, outcome), target, own, found, share)
            for part, outcome, own in _parts(session, settings, case, target, verdicts)
        ]
        if FINDINGS.intersection(apart):
            return gravest(apart)
    by_call = case.edge and verdict != _HANG  # it would hang once more
    # What compiles for seconds is not asked for all values in between where nothing is amiss: its
    # calls have turns by themselves, and are others together.
    by_call &= verdict in FINDINGS or not session.takes_seconds(target)
    wrong = _at_edges(session, case, seed, target, found) if by_call else []
    if wrong:
        return gravest(wrong)
    if only_estimated(verdicts) and not _proved(session, case, target):
        return "unstable"
    if verdict in FINDINGS:
        if (
            len(found) < _LOCALISED
            and (verdict != _HANG or PACE.affords_hang())
            and (
                SEEN.unheard(target, verdicts)
                or not SEEN.explains(case.graph, target, verdict, share, together=by_call)
            )
            and not SEEN.heard(target, verdicts)
        ):
            if of_values(verdicts) and not _proved(session, case, target):
                return "unstable"
            found.append(find(session, case, seed, target, outcome))
            SEEN.note(found[-1])
    elif not case.edge and (
        is_strange(case.graph, outcome, verdicts)
        or (verdict in _WEAK and seed % _SHARE == 0 and PACE.affords(outcome.took))
    ):
        # Radii grow with depth until an output says little: judge the calls one by one.
        with PACE.looking_closely():
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


def _parts(
    session: Session, settings: Settings, case: Case, target: str, verdicts: Sequence[Verdict]
) -> Iterator[tuple[Case, Outcome, list[Verdict]]]:
    """The parts of a program that have nothing to do with one another and are amiss, each by
    itself, until the time is over.
    """
    alone = session.only(target)
    for part in amiss(case, verdicts):
        if PACE.over():
            return
        (outcome,) = alone.compare([part], grad=settings.grad)
        yield part, outcome, outcome.verdicts[target]


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
    told = []
    for culprit in culprits(session.only(target), case, target):
        told.append(at_edge(culprit.verdict.verdict))
        symptom = symptom_of(target, culprit.node.op.name, culprit.verdict, case.edge)
        if not SEEN.knows(symptom) and len(found) < _LOCALISED:
            found.append(charge(session, case, seed, target, culprit))
            if found[-1].repeated:  # what was there once hides nothing
                SEEN.symptoms.add(symptom)
    return told
