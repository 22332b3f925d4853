"""Which calls are wrong in a program whose calls stand apart (`irlang.diff.apart`).

What is wrong there is wrong in one call: those that a verdict speaks of are suspects, and each is
run as a program of its own. Of a call that is wrong other kinds of edges are tried, as the worst
element says nothing of what else there is.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from irlang.diff.apart import taken_apart
from irlang.diff.calls import Case
from irlang.diff.finding import find
from irlang.diff.found import Found
from irlang.diff.outcome import Outcome
from irlang.diff.pace import PACE
from irlang.diff.reduce import HANG_SECONDS
from irlang.diff.runner import Session
from irlang.diff.seen import Seen, symptom_of
from irlang.diff.unfold import is_composed
from irlang.diff.unmixed import unmixed
from irlang.diff.verdict import FINDINGS, Verdict, at_edge, finding_of, gravest
from irlang.graph import Node, differentiated, is_gradient

_KINDS = 16  # variants of a call that is wrong, each with edges of one kind in an operand
_WAITED = ("timeout", "memory")  # what each variant of a call would take its seconds for once more
_MOST = 12  # symptoms of one batch that are looked into


def suspects(case: Case, verdicts: Sequence[Verdict]) -> list[Node]:
    """The calls of a program of calls apart that its verdicts speak against.

    All, where something is said of the program as a whole, or nothing, as it cannot be run.
    """
    called = [node for node in case.graph.nodes if case.graph.loss not in node.outputs]
    if gravest([v.verdict for v in verdicts]) == "unsupported":
        return called if len(called) > 1 else []
    amiss = [v for v in verdicts if v.verdict in FINDINGS]
    if any(v.index is None and not is_gradient(v.name) for v in amiss):
        return called
    named = {case.graph.outputs.get(v.name, differentiated(v.name)) for v in amiss}
    return [node for node in called if named & {*node.outputs, *node.operands()}]


def wrong_calls(
    session: Session, case: Case, target: str, outcome: Outcome
) -> list[tuple[Case, Outcome, str, Verdict]]:
    """The calls of a program that are wrong by themselves: each as a program, with its outcome,
    its operator and the gravest verdict.
    """
    nodes = suspects(case, outcome.verdicts[target])
    return _wrong(_each(session, case, target, nodes, outcome), target)


def _each(
    session: Session, case: Case, target: str, nodes: Sequence[Node], outcome: Outcome
) -> list[tuple[Node, Case, Outcome]]:
    """Some calls, each as a program that was run. outcome: of the program that they are of, which
    is that of its only call; where that hangs, its calls need not take all of its time again.

    What is right with all that it reads among its inputs is run with its parameters, too: what a
    target folds and merges are constants.
    """
    if len(case.graph.nodes) == len(nodes) == 1 and not case.params:
        return [(nodes[0], case, outcome)]
    pairs = list(taken_apart(case, nodes))
    grad = case.graph.loss is not None
    alone = session.only(target)
    if any(verdict.verdict == "timeout" for verdict in outcome.verdicts[target]):
        alone = alone.hurried(target, HANG_SECONDS)
    found = alone.compare([one for _, one in pairs], grad=grad) if pairs else []
    ran = [(node, one, own) for (node, one), own in zip(pairs, found, strict=True)]
    right = [] if grad else [node for node, _, own in ran if not finding_of(own.verdicts[target])]
    weighed = [node for node in right if case.params.keys() & set(node.operands())]
    fixed = list(taken_apart(case, weighed, fixed=True))
    again = alone.compare([one for _, one in fixed]) if fixed else []
    ran += [(node, one, own) for (node, one), own in zip(fixed, again, strict=True)]
    return ran


def _wrong(
    ran: Sequence[tuple[Node, Case, Outcome]], target: str
) -> list[tuple[Case, Outcome, str, Verdict]]:
    """Those of some calls that are wrong, as of `wrong_calls`."""
    shown = []
    for node, one, own in ran:
        amiss = finding_of(own.verdicts[target])
        if amiss is not None:
            shown.append((one, own, node.op.name, amiss))
    return shown


def judge_apart(
    session: Session,
    made: Sequence[tuple[int, int, Case]],
    seen: Seen,
    grad: bool,
) -> tuple[list[Found], dict[str, Counter[str]]]:
    """Runs programs of calls apart; gives what is wrong in them, and counts verdicts by target.

    made: see `cases_apart`. seen: what is not looked into again; what is new is added.
    """
    found: list[Found] = []
    counts = {target: Counter[str]() for target in session.targets}
    cases = [case for _, _, case in made]
    outcomes = session.compare(cases, grad=grad, numbers=[number for number, _, _ in made])
    for (_, seed, case), outcome in zip(made, outcomes, strict=True):
        if PACE.over():
            break
        for target, verdicts in outcome.verdicts.items():
            verdict = gravest([v.verdict for v in verdicts])
            if verdict not in (*FINDINGS, "unsupported"):
                counts[target][verdict] += 1
                continue
            ran = _each(session, case, target, suspects(case, verdicts), outcome)
            if verdict == "unsupported" and ran:  # one call of which there is no word hides all
                verdict = gravest([v.verdict for *_, own in ran for v in own.verdicts[target]])
            counts[target][at_edge(verdict) if case.edge else verdict] += 1
            for one, own, operator, worst in _wrong(ran, target):
                # that it hangs is waited for once, not for each kind of edge
                hangs = worst.verdict == "timeout"
                if hangs and not PACE.affords_hang():
                    continue
                asks = functools.partial(_asks_behind, seen, found, target, operator)
                shown = _shown(session, (one, own, worst), target, grad, asks)
                for alone, judged, its in shown:
                    composed = not grad and is_composed(alone, target)
                    symptom = symptom_of(target, operator, its, case.edge, composed)
                    if seen.knows(symptom) or len(found) >= _MOST or PACE.over():
                        continue
                    if seen.heard(target, judged.verdicts[target]):
                        seen.symptoms.add(symptom)
                        continue
                    told = find(session, alone, seed, target, judged)
                    # It was hurried: nobody has waited for it since, or it has answered.
                    if hangs and not (told.tried and (told.repeated or judged is outcome)):
                        continue
                    found.append(told)
                    if told.repeated:  # what was there once hides nothing
                        seen.symptoms.add(symptom)
    return found, counts


def _asks_behind(seen: Seen, found: Sequence[Found], target: str, operator: str) -> bool:
    """Whether what else is wrong in a call of an operator is to be looked for."""
    return len(found) < _MOST and not PACE.over() and seen.looks_behind(target, operator)


def _shown(
    session: Session,
    wrong: tuple[Case, Outcome, Verdict],
    target: str,
    grad: bool,
    asks: Callable[[], bool],
) -> Iterator[tuple[Case, Outcome, Verdict]]:
    """A call that is wrong, and then what else is wrong in it, if somebody asks.

    What is known comes first: there may be no time for it after the rest.
    """
    yield wrong
    case, outcome, worst = wrong
    if worst.verdict not in _WAITED and asks():
        yield from _behind(session, case, target, grad, outcome.took)


def _behind(
    session: Session, case: Case, target: str, grad: bool, took: float
) -> list[tuple[Case, Outcome, Verdict]]:
    """What else is wrong in a call: where one operand has edges of one kind alone.

    Of as many kinds as there is time for, if that has an end. took: the seconds that the oracle
    needed for the call.
    """
    room = PACE.for_one(math.inf)
    kinds = _KINDS if room == math.inf else min(_KINDS, int(room / max(took, 1e-6)))
    fewer = list(islice(unmixed(case), kinds))
    if not fewer:
        return []
    shown = []
    outcomes = session.only(target).compare(fewer, grad=grad, first=True)
    for one, outcome in zip(fewer, outcomes, strict=True):
        amiss = finding_of(outcome.verdicts[target])
        if amiss is not None and outcome.refusal is None:
            shown.append((one, outcome, amiss))
    return shown
