"""Invalid programs: a target that runs one, and says nothing, has accepted it; one whose process
ends, or does not answer, has not refused it either (`irlang.diff.answers`). What it warns of is not
taken without a word. Nothing is said of a call of whose inputs one has no elements but that it must
end no process.

A campaign runs spoilt calls (`irlang.gen.spoil`) beside its programs. That one is run tells only
something where the target is handed what is wrong (`irlang.diff.handed`). A process that ends is a
defect of the target whatever it was given; of one that says shapes only nothing else is told, as
inference is not there to say no.
"""

from __future__ import annotations

import functools
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from irlang.catalog import Catalog
from irlang.diff.answers import (
    PATIENCE,
    Sent,
    crashes_again,
    is_beyond,
    is_of_reals,
    plain_word,
    words_of,
)
from irlang.diff.breach import (
    given_of,
    has_ended,
    is_told,
    remember,
    requirement_of,
    subject_of,
    symptom_of_breach,
)  # fmt: skip
from irlang.diff.calls import Case
from irlang.diff.handed import Programs, functions_of, is_handed_over, is_telling
from irlang.diff.least import as_usual, least
from irlang.diff.lost import is_early, plain_of, told_by
from irlang.diff.pace import PACE
from irlang.diff.rounds import Fruitless, Rarest
from irlang.diff.runner import is_turn
from irlang.diff.verdict import FINDINGS, Verdict, is_run_first, only_shapes
from irlang.gen.fed import fed
from irlang.gen.spoil import Wanted, breakable, breaks, spoils
from irlang.gen.spoilt import Spoilt
from irlang.graph import Graph
from irlang.lower.lower import spelt
from irlang.lower.manner import USUAL, Manner
from irlang.lower.narrows import narrower
from irlang.lower.pool import Program, Result, WorkerError

if TYPE_CHECKING:
    from irlang.diff.runner import Session
    from irlang.diff.seen import Symptom

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Accepted:
    """An invalid call that a target has run, or that has ended its process.

    fault: what is invalid. requirement: the name of what that breaks. given: what was changed to
    spoil it. got: the results. others: what other targets did, and words: in which they refused it.
    output: what a process that was lost had printed. repeated: whether it is so in a process that
    has run nothing else. functions: of the target that have ended the process. subject: the input
    whose axes are not what the signature says.
    """

    case: Case
    target: str
    verdict: Verdict
    fault: str
    requirement: str
    given: dict[str, str]
    got: dict[str, Array]
    others: dict[str, str]
    words: dict[str, str]
    output: str = ""
    repeated: bool = True
    functions: str = ""
    subject: str = ""


def judge_invalid(
    session: Session,
    catalog: Catalog,
    seeds: Sequence[int],
    ops: Sequence[str],
    first: int | None = None,
    before: set[Symptom] | None = None,
    manner: Manner = USUAL,
) -> tuple[list[tuple[int, Accepted]], dict[str, Counter[str]]]:
    """Runs the spoilt calls of every seed; gives what was not refused, and counts by target.

    ops: that may be called; if none are said, those that a target has operators of its own for.
    first: of a campaign's spoilt calls, the number of these; what they break has its turn then,
    each requirement of each operator before one comes again. Without it, it is drawn. before: what
    has ended a process before is not run again, and of what has been accepted it is asked no more
    than to end none; what is new is added. manner: in which targets write them.

    The calls are made for the fastest targets. A slow one is asked for its share of them: what
    infers shapes, or compiles, may take what is refused elsewhere, or end its process. What its
    framework takes without it is nothing that it has lost, and waits until every requirement has
    had its turn: to take a call is to compile it, several times.
    """
    before = set() if before is None else before
    found: list[tuple[int, Accepted]] = []
    counts = {target: Counter[str]() for target in session.targets}
    programs = Programs(catalog, manner)
    usual = [target for target in session.targets if session.shares[target] == 1]
    spoiled = _spoiled(
        programs, usual, seeds, ops, first, session.fruitless, session.rarest
    )  # fmt: skip
    cases = [Case(one.graph, fed(one, catalog), {}, catalog, manner=manner) for _, one in spoiled]
    said: list[dict[str, str]] = [{} for _ in spoiled]
    beside: list[dict[str, str]] = [{} for _ in spoiled]  # likewise of what was asked for a mode
    got: dict[tuple[int, str], Result] = {}
    sent: dict[str, list[Sent]] = {}
    for target in session.targets:
        first_asked = _asked(session, programs, target, spoiled, cases, before)
        early = is_early(target, ops, first)
        sent[target], plainly, lost = _still_asked(
            session, programs, target, spoiled, cases, first_asked, early
        )
        for number, result in plainly.items():
            beside[number][session.plain[target]] = plain_word(result)
            got.setdefault((number, session.plain[target]), result)
        for number, result in lost.items():
            said[number][target], got[number, target] = "refused", result
        counts[target].update(["refused"] * len(lost))
        if sent[target]:
            session.workers[target].hasty(PATIENCE).send([asked.program for asked in sent[target]])
    for target in (target for target in session.targets if sent[target]):
        worker = session.workers[target]
        try:
            ran = worker.hasty(PATIENCE).collect()
        except WorkerError:
            continue  # the campaign's own programs say so, with the worker's last words
        answered = zip(sent[target], ran, strict=True)
        heard = [(asked, r) for asked, r in answered if asked.direct or r.status == "crash"]
        for (asked, result), told in zip(heard, words_of(worker, heard), strict=True):
            said[asked.number][target] = told
            counts[target][told] += 1
            got[asked.number, target] = result
            if result.status in ("crash", "timeout"):
                one = spoiled[asked.number][1]
                remember(target, one, result.status, functions_of(programs, target, one.graph))
    for number, (seed, whole) in enumerate(spoiled):
        if PACE.over():
            break
        for target in (t for t, told in said[number].items() if told in FINDINGS - {"refused"}):
            result, told = got[number, target], said[number][target]
            one, case = whole, cases[number]
            own = programs.own(target, one.graph) if told == "crash" else None
            functions = functions_of(programs, target, one.graph) if told == "crash" else ""
            symptom = symptom_of_breach(target, one, told, functions)
            if told == "crash" and is_told(symptom, before):
                before.add(symptom)
                continue
            repeated = told != "crash" or crashes_again(session.workers[target], own, case)
            if told != "timeout" and repeated:
                one, case, result = least(session, programs, target, one, case, result)
                case, result = as_usual(session.workers[target], target, one, case, result)
            message = one.fault.message if told == "accepted" else result.error
            verdict = Verdict(next(iter(case.graph.outputs)), target, told, message=message)
            others = {t: v for t, v in (beside[number] | said[number]).items() if t != target}
            words = {t: got[number, t].error for t, v in others.items() if v == "refused"}
            taken = Accepted(
                case, target, verdict, one.fault.message, requirement_of(one), given_of(one),
                dict(result.outputs), others, words, str(result.detail.get("output", "")),
                repeated, functions, subject_of(one),
            )  # fmt: skip
            found.append((seed, taken))
            before.add(symptom)
    return found, counts


def _spoiled(
    programs: Programs,
    targets: Sequence[str],
    seeds: Sequence[int],
    ops: Sequence[str],
    first: int | None,
    fruitless: Fruitless,
    rarest: Rarest,
) -> list[tuple[int, Spoilt]]:
    """The spoilt calls of every seed, each made for one of the targets in turn, until the time is
    over.

    fruitless: the requirements of which nothing was found, for which all that is drawn was tried:
    there may be no call that breaks one of these alone; and the operators of which a target is
    handed no call, however often one is drawn. rarest: the functions of which few calls were.
    """
    known = set(programs.catalog.names())
    own = {target: sorted(known & spelt(target)) for target in targets}
    found: list[tuple[int, Spoilt]] = []
    for number, seed in enumerate(seeds):
        if PACE.over():
            break
        target = targets[(seed if first is None else first + number) % len(targets)]
        names, turn = ops or own[target], None
        if first is not None:
            turn = _turn(programs.catalog, names, target, (first + number) // len(targets))
            key = target, turn[0], turn[1].name if turn[1] is not None else ""
            if not (fruitless.is_due((target, turn[0])) and fruitless.is_due(key)):
                continue
        able = _Handed(programs, target)
        tells = functools.partial(is_telling, programs, target)
        sought = _Sought(programs, target, rarest, turn[0]) if turn is not None else None
        looks = sought is not None and rarest.is_due((target, sought.operator))
        made = spoils(
            programs.catalog, seed, names, turn, able, tells, PACE.draw(), sought if looks else None
        )  # fmt: skip
        if turn is not None:
            fruitless.had((target, turn[0]), bool(made) or turn[0] in able.ops)
            fruitless.had(key, any(breaks(one, turn) for one in made))
            if made:
                function = functions_of(programs, target, made[0].graph)
                rarest.had((target, turn[0]), function, looks)
        found += [(seed, one) for one in made]
    return found


@dataclass(frozen=True, slots=True)
class _Handed:
    """Whether a target is handed a call. ops: the operators of which it is handed any."""

    programs: Programs
    target: str
    ops: set[str] = field(default_factory=set)

    def __call__(self, graph: Graph) -> bool:
        known = self.programs.has(self.target, graph)
        if known:
            self.ops.update(node.op.name for node in graph.nodes)
        return known


@dataclass(frozen=True, slots=True)
class _Sought:
    """Whether a target is handed a call by a function that has had few of its operator."""

    programs: Programs
    target: str
    rarest: Rarest
    operator: str

    def __call__(self, graph: Graph) -> bool:
        function = functions_of(self.programs, self.target, graph)
        return bool(function) and self.rarest.is_rare((self.target, self.operator), function)


def _asked(
    session: Session,
    programs: Programs,
    target: str,
    spoiled: Sequence[tuple[int, Spoilt]],
    cases: Sequence[Case],
    before: set[Symptom],
) -> list[Sent]:
    """Those of spoilt calls that a target is asked for: its share of what it has words for."""
    found = []
    for number, ((seed, one), case) in enumerate(zip(spoiled, cases, strict=True)):
        if not is_turn(seed, session.shares[target]):
            continue
        if has_ended(target, one, before, functions_of(programs, target, one.graph)):
            continue
        if one.added and not _documents(target, one):
            continue  # the call is valid there
        lowered = programs.own(target, one.graph)
        if lowered is not None:
            program = Program(lowered.kind, lowered.code, case.inputs, lowered.params)
            valued = only_shapes(target) and not one.graph.nodes[0].instance.faults
            telling = not (is_run_first(target) or valued or one.hollow)
            telling = telling and symptom_of_breach(target, one, "accepted") not in before
            direct = telling and is_handed_over(one, lowered, target, programs)
            found.append(Sent(number, program, direct, is_beyond(one), is_of_reals(one)))
    return found


def _still_asked(
    session: Session,
    programs: Programs,
    target: str,
    spoiled: Sequence[tuple[int, Spoilt]],
    cases: Sequence[Case],
    asked: list[Sent],
    early: bool,
) -> tuple[list[Sent], dict[int, Result], dict[int, Result]]:
    """What is left to ask a target when its framework has been asked in other modes; by number what
    came of calls plainly, and of those that need not be asked as they were refused sooner. early:
    whether what the framework takes plainly waits.
    """
    graphs = {one.number: spoiled[one.number][1].graph for one in asked}
    told = functools.partial(
        told_by, session=session, programs=programs, target=target, cases=cases
    )
    plainly = told(plain_of(session, target), graphs=graphs, limits=PATIENCE)
    if plainly and (only_shapes(target) or early):
        asked = [one for one in asked if not _is_taken(plainly.get(one.number))]
    graphs = {one.number: graphs[one.number] for one in asked if one.direct}
    sooner = told(session.sooner[target], graphs=graphs, limits=PATIENCE)
    lost = {n: result for n, result in sooner.items() if result.status == "refused"}
    return [one for one in asked if one.number not in lost], plainly, lost


def _is_taken(result: Result | None) -> bool:
    return result is not None and result.status == "ok"


def _turn(catalog: Catalog, ops: Sequence[str], target: str, position: int) -> Wanted:
    """What the spoilt call of a position breaks: all there is, in a new order every round.

    Requirements that a definition names come twice as fast as whatever else its signature says, as
    targets accept more of what they rule out (four in five, in half of the turns).
    """
    plan = breakable(catalog, ops, narrower(target))
    around, place = divmod(position, len(plan))
    shuffled = random.Random(f"invalid {around}").sample(plan, len(plan))
    named = [wanted for wanted in shuffled if wanted[1] is not None]
    rest = [wanted for wanted in shuffled if wanted[1] is None]
    turns = [
        *((2 * n, one) for n, one in enumerate(named)),
        *((4 * n + 3, one) for n, one in enumerate(rest)),
    ]
    return sorted(turns, key=lambda turn: turn[0])[place][1]


def _documents(target: str, one: Spoilt) -> bool:
    """Whether the target's documentation has the requirement that a call breaks."""
    operator, _, name = one.fault.code.partition(".")
    return any(statement.name == name for statement in narrower(target).get(operator, ()))
