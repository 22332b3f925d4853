"""A disagreement as a finding: its culprit, and the smallest program that shows it.

`irlang.diff.report_folder` writes it out.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from irlang.diagnostics import InvalidInput
from irlang.diff.apart import taken_apart
from irlang.diff.flat import told
from irlang.diff.found import Found
from irlang.diff.invalid import Accepted
from irlang.diff.localise import Culprit, isolate, localise, misshapen
from irlang.diff.outcome import Outcome
from irlang.diff.pace import PACE
from irlang.diff.reduce import HANG_SECONDS, reduce, symptom, written_out
from irlang.diff.reduce_names import short
from irlang.diff.repeat import is_repeated
from irlang.diff.runner import Case, Session, expose
from irlang.diff.stages import blamed_gradient, gradient_by_calls
from irlang.diff.unfold import (
    called,
    is_composed,
    unfolded,
    unfolded_gradient,
    unfolded_with_loss,
)
from irlang.diff.verdict import (
    FINDINGS,
    INCONSISTENT,
    Verdict,
    at_edge,
    finding_of,
    gravest,
    only_shapes,
    worst,
)
from irlang.diff.weighing import but_the_sum
from irlang.dtypes import DTYPES
from irlang.graph import Node, gradient_by
from irlang.interp.program import run
from irlang.lower.pool import Late
from irlang.lower.target import describe
from irlang.scope import show

SECONDS = 5.0  # that the reduction of one finding may take
TRIALS = 800  # programs that it may run
_SLOWER = 4  # times as long for a gradient, of which every trial makes the adjoints anew
_OF_VALUES = frozenset({"wrong", "inaccurate", "nonfinite", "edge", INCONSISTENT})
_LASTING = _OF_VALUES | {"refused"}  # after which a process goes on
_HANG = "timeout"
_WITHOUT_VALUES = frozenset({"refused", "crash", _HANG, "memory"})
_LATE = 5.0  # seconds after which the smallest program of one that hung has no answer either
_NAMED = 12  # calls whose names together say what is wrong: a fusion takes a dozen at most


def find(session: Session, case: Case, seed: int, target: str, outcome: Outcome) -> Found:
    """Looks into a disagreement: localises it where the target gives values, and reduces it.

    Where the time ends meanwhile it is told as it was met.
    """
    try:
        return _looked_into(session, case, seed, target, outcome)
    except Late:
        return _as_met(session, case, seed, target, outcome)


def _as_met(session: Session, case: Case, seed: int, target: str, outcome: Outcome) -> Found:
    """A disagreement of which nothing more was run: not made smaller, and seen once."""
    verdict = worst(outcome.verdicts[target])
    made = _told(session, case, written_out(case), seed, target, verdict, outcome)
    return replace(made, repeated=False, tried=False)


def _looked_into(session: Session, case: Case, seed: int, target: str, outcome: Outcome) -> Found:
    verdict = worst(outcome.verdicts[target])
    if _is_of_gradient(session, case, target, outcome):
        verdict = replace(verdict, stage="backward")
    if verdict.stage == "backward":
        found = find_gradient(session, case, seed, target)
        if found is not None:
            return found
        refused = _refused_alone(session, case, target, outcome)
        if refused is not None:
            node, first = refused
            made = _reduced(session, case, first, seed, target, node, verdict)
            return _tried_again(session, made)
    if verdict.verdict in _OF_VALUES:  # of a gradient, by what it is of
        culprit = localise(session.only(target), case, target)
        if culprit is not None:
            return charge(session, case, seed, target, culprit)
    made = _reduced(session, case, case, seed, target, None, verdict)
    before = misshapen(session.only(target), made.reduced, target) if _is_refusal(made) else None
    if before is not None:
        return replace(charge(session, made.reduced, seed, target, before), whole=case)
    return _tried_again(session, _in_parts(session, made))


def _refused_alone(
    session: Session, case: Case, target: str, outcome: Outcome
) -> tuple[Node, Case] | None:
    """Of a program whose gradient is refused the last call whose own is, in the same words, as a
    program of its own; None where there is none, or no other call, and of a target that takes its
    time over each.
    """
    calls = but_the_sum(case.graph)
    reason = symptom(case, outcome, target)
    if reason.verdict != "refused" or len(calls) < 2 or describe(target).compiles:
        return None
    try:
        known = run(case.graph, case.values, case.catalog)
    except InvalidInput:
        return None
    infos = case.graph.values
    fed = {n: np.asarray(a, DTYPES[infos[n].dtype].numpy) for n, a in known.items()}
    whole = replace(case, inputs={**fed, **case.inputs})
    alone = list(taken_apart(whole, calls[::-1]))
    outcomes = session.only(target).compare([one for _, one in alone], grad=True)
    for (node, one), shown in zip(alone, outcomes, strict=True):
        if replace(symptom(one, shown, target), backward=reason.backward) == reason:
            return node, one
    return None


def _is_refusal(found: Found) -> bool:
    """Whether a program of several calls is refused as it is, and not its gradient."""
    several = len(found.reduced.graph.nodes) > 1
    return several and found.verdict.verdict == "refused" and found.verdict.stage != "backward"


def _is_of_gradient(session: Session, case: Case, target: str, outcome: Outcome) -> bool:
    """Whether a program without results has them where no gradients are asked for: then these are
    what is refused, or ends the process, though no stage of it could be told.
    """
    verdicts = outcome.verdicts[target]
    if not outcome.slopes or gravest([v.verdict for v in verdicts]) not in _WITHOUT_VALUES:
        return False
    alone = session.only(target)
    if gravest([v.verdict for v in verdicts]) == _HANG:
        alone = alone.hurried(target, HANG_SECONDS)
    forward = alone.compare([case])[0].verdicts[target]
    return gravest([v.verdict for v in forward]) not in FINDINGS


def find_gradient(session: Session, case: Case, seed: int, target: str) -> Found | None:
    """The finding of the first call whose gradient is wrong by itself; None where none is."""
    start, first = blamed_gradient(session, case, target)
    if start is None:
        return None
    made = _reduced(session, case, first, seed, target, start.node, start.verdict)
    return _tried_again(session, _in_parts(session, made))


def find_accepted(session: Session, accepted: Accepted, seed: int) -> Found:
    """The finding of an invalid call that is not refused: it is small already."""
    versions = session.versions(whole=True)
    case, target = accepted.case, accepted.target
    return Found(
        seed, target, accepted.verdict, case.graph.nodes[0].op.name, accepted.given,
        session.workers[target].hello().version, case, case, others=accepted.others,
        words=accepted.words,
        versions=versions, got=accepted.got, fault=accepted.fault,
        requirement=accepted.requirement, subject=accepted.subject, output=accepted.output,
        repeated=accepted.repeated,
        functions=accepted.functions,
    )  # fmt: skip


def charge(session: Session, case: Case, seed: int, target: str, culprit: Culprit) -> Found:
    """The finding of a call that is wrong by what it was fed, reduced from that call where it still
    is. Where it is not, what stands around it has to do with it, and is named with it.
    """
    alone = isolate(case, culprit)
    again = session.only(target).compare([alone])[0].verdicts[target]
    shows = gravest([v.verdict for v in again]) in FINDINGS
    start = alone if shows else case
    blamed, verdict = culprit.node, culprit.verdict
    made = _reduced(session, case, start, seed, target, blamed, verdict, alone=shows)
    return _tried_again(session, _in_parts(session, made))


def _tried_again(session: Session, found: Found) -> Found:
    """The finding, with what came of running it in a process that has run nothing else."""
    if found.verdict.verdict == _HANG and found.repeated:
        return found
    grad = found.verdict.stage == "backward"
    return replace(found, repeated=is_repeated(session, found.reduced, found.target, grad))


def _in_parts(session: Session, found: Found) -> Found:
    """Of a call that a target composes, or whose gradient it does, the finding of the operator that
    is wrong in there, if that one is the target's own; else the finding as it is.
    """
    parts = _parts(found)
    if parts is None:
        return _differentiated_in_parts(session, found)
    target = found.target
    culprit = localise(session.only(target), parts, target)
    if culprit is None or culprit.node.op.name == found.operator:
        return found
    alone, node = isolate(parts, culprit), culprit.node
    made = _reduced(session, found.whole, alone, found.seed, target, node, culprit.verdict)
    own = len(made.reduced.graph.nodes) == 1 and not is_composed(made.reduced, target)
    return replace(made, within=found) if own else found


def _differentiated_in_parts(session: Session, found: Found) -> Found:
    """The same of a gradient that a target finds by itself: the finding of the operator among those
    that it composes the call of whose gradient is wrong, if the program that shows it calls nothing
    that the call is not written as; else the finding as it is.
    """
    case, target = found.reduced, found.target
    if found.verdict.verdict not in _OF_VALUES or found.verdict.stage != "backward":
        return found
    parts = unfolded_with_loss(case, target)
    start, first = blamed_gradient(session, parts, target) if parts is not None else (None, case)
    if start is None or start.node is None or start.operator == found.operator:
        return found
    made = _reduced(session, found.whole, first, found.seed, target, start.node, start.verdict)
    own = called(made.reduced, target) <= called(case, target)
    return replace(made, within=found) if own else found


def _parts(found: Found) -> Case | None:
    """The operators that a target computes a call, or its gradient, by; None where it has one for
    it, or the finding is of no values or of several calls.
    """
    case, target = found.reduced, found.target
    if found.verdict.verdict not in _OF_VALUES or len(but_the_sum(case.graph)) > 1:
        return None
    if found.verdict.stage == "backward":
        return unfolded_gradient(case, target)
    alone = len(case.graph.nodes) == 1 and is_composed(case, target)
    return unfolded(case, target) if alone else None


def _reduced(
    session: Session,
    whole: Case,
    start: Case,
    seed: int,
    target: str,
    culprit: Node | None,
    verdict: Verdict,
    *,
    alone: bool = True,
) -> Found:
    """The finding, reduced. alone: whether the culprit shows it by itself, and is named alone."""
    name = culprit.op.name if culprit is not None else None
    grad, hangs = verdict.stage == "backward", verdict.verdict == _HANG
    made = reduce(
        session, start, target, culprit=name, grad=grad, hangs=hangs,
        seconds=SECONDS * (_SLOWER if grad else 1), trials=TRIALS,
    )  # fmt: skip
    session = session.hurried(target, PACE.for_program(_LATE)) if hangs else session
    reduced = made.case if made is not None else written_out(start)
    renamed = short(reduced)
    outcome = session.compare([renamed], grad=grad)[0]
    again = worst(outcome.verdicts[target])
    if made is not None and symptom(renamed, outcome, target) != made.symptom:
        outcome = session.compare([reduced], grad=grad)[0]  # the names make a difference
        again = worst(outcome.verdicts[target])
    else:
        reduced = renamed
    if again.verdict not in FINDINGS and (made is not None or not grad):
        reduced, outcome, again = _shown(session, reduced, target, grad, outcome)
    verdict = again if again.verdict in FINDINGS else verdict
    if grad and verdict.verdict in _WITHOUT_VALUES:
        verdict = replace(verdict, stage="backward")
    found = _told(session, whole, reduced, seed, target, verdict, outcome, name if alone else None)
    trials = made.trials if made is not None else 0
    return replace(found, trials=trials, repeated=not hangs or again.verdict == _HANG)


def _told(
    session: Session,
    whole: Case,
    reduced: Case,
    seed: int,
    target: str,
    verdict: Verdict,
    outcome: Outcome,
    blamed: str | None = None,
) -> Found:
    """The finding of what came of a program. blamed: the operator that is named alone."""
    nodes = but_the_sum(reduced.graph)
    names = " + ".join(node.op.name for node in nodes) if len(nodes) <= _NAMED else "program"
    attributed = [n for n in nodes if blamed is None or n.op.name == blamed] or nodes
    result = outcome.results.get(target)
    others = {t: gravest([v.verdict for v in found]) for t, found in outcome.verdicts.items()
              if t != target}  # fmt: skip
    known, plain = outcome.balls, ""
    if verdict.verdict == INCONSISTENT:
        known, plain = outcome.plainly.get(target, known), session.plain[target]
        others[plain] = "agrees"
    elif verdict.verdict in _LASTING:
        others = _plainly(session, reduced, target, verdict, others)
    return Found(
        seed, target, _classed(whole, verdict), blamed or names,
        _attributes(attributed), session.workers[target].hello().version, reduced, whole,
        0,
        others,
        session.versions(whole=True),
        {n: known[v] for n, v in reduced.graph.outputs.items() if v in known}
        | {gradient_by(n): told(ball, verdict) if gradient_by(n) == verdict.name else ball
           for n, ball in outcome.slopes.items()},
        {**result.outputs, **{gradient_by(n): a for n, a in result.gradients.items()}}
        if result is not None
        else {},
        output=str(result.detail.get("output", "")) if result is not None else "", plain=plain,
    )  # fmt: skip


def _plainly(
    session: Session, reduced: Case, target: str, verdict: Verdict, others: dict[str, str]
) -> dict[str, str]:
    """What other targets make of a program, the framework of a mode without that among them."""
    plain = session.plain[target]
    if not plain or plain in others:
        return others
    grad = verdict.stage == "backward"
    try:
        told = session.plainly(target).compare([reduced], grad=grad)[0].verdicts[plain]
    except Late:
        return others
    return {**others, plain: gravest([v.verdict for v in told])}


def is_plainly_so(session: Session, found: Found) -> bool:
    """Whether what is found of a target that says shapes alone is so without that mode as well,
    and is told of the framework that is asked, too: the mode has lost nothing.
    """
    plain = session.plain[found.target]
    if not only_shapes(found.target) or plain not in session.targets:
        return False
    told = found.others.get(plain, "")
    return at_edge(told) == at_edge(found.verdict.verdict)


def _shown(
    session: Session, case: Case, target: str, grad: bool, outcome: Outcome
) -> tuple[Case, Outcome, Verdict]:
    """A program of which a call alone is wrong, its radius hiding that from its results: with what
    that call gives among these, where it shows there; its outcome, and the verdict on the call.
    """
    if grad:
        start = gradient_by_calls(session.only(target), case, target).start
        return case, outcome, start.verdict if start else worst(outcome.verdicts[target])
    watched = replace(case, graph=expose(case.graph))
    shown = session.compare([watched])[0]
    amiss = finding_of(shown.verdicts[target])
    if amiss is not None:
        return watched, shown, amiss
    return case, outcome, worst(outcome.verdicts[target])


def _attributes(nodes: list[Node]) -> dict[str, str]:
    """Attributes as they are written; of several calls with the operator's name before them."""
    if len(nodes) == 1:
        return {key: show(value) for key, value in nodes[0].attrs.items()}
    return {f"{n.op.name}.{key}": show(value) for n in nodes for key, value in n.attrs.items()}


def _classed(case: Case, verdict: Verdict) -> Verdict:
    """A verdict as that of an edge, if its program is at one: what is given nothing is not, unless
    an infinity or NaN comes about inside. (It stood beside calls that are, and is one finding with
    the same one that did not.)
    """
    expected = verdict.expected
    inside = expected is not None and not math.isfinite(expected)
    at_one = case.edge and (bool(case.values) or inside)
    return replace(verdict, verdict=at_edge(verdict.verdict)) if at_one else verdict
