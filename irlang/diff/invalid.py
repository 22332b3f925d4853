"""Invalid programs: a target that runs one, and says nothing, has accepted it; one whose process
ends, or does not answer, has not refused it either. What is accepted is run a second time, in a
process that has run nothing else: refused there, it is `unconfirmed`, counted and not reported. Nor
is what it warns of: that is not taken without a word. Nothing is said of a call of whose inputs one
has no elements but that it must end no process.

A campaign runs spoilt calls (`irlang.gen.spoil`) beside its programs. That one is run tells only
something where the target is handed what is wrong (`irlang.diff.handed`). A process that ends is a
defect of the target whatever it was given; of one that says shapes only nothing else is told, as
inference is not there to say no.
"""

from __future__ import annotations

import contextlib
import functools
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from irlang.catalog import Catalog
from irlang.diff.calls import Case
from irlang.diff.handed import Programs, is_handed_over, is_telling
from irlang.diff.lost import is_early, plain_of, told_by
from irlang.diff.pace import PACE
from irlang.diff.rounds import Fruitless
from irlang.diff.runner import is_turn
from irlang.diff.verdict import FINDINGS, Verdict, is_run_first, only_shapes
from irlang.gen.changes import SetElements, is_huge, way_of
from irlang.gen.moves import Retype, SetAttr
from irlang.gen.smaller import smaller
from irlang.gen.spoil import Wanted, breakable, breaks, spoils
from irlang.gen.spoilt import Spoilt
from irlang.graph import Graph
from irlang.lower.lower import Lowered, spelt
from irlang.lower.manner import USUAL, Manner
from irlang.lower.narrows import narrower
from irlang.lower.pool import Limits, Program, Result, Worker, WorkerError
from irlang.scope import show

if TYPE_CHECKING:
    from irlang.diff.runner import Session
    from irlang.diff.seen import Symptom

Array = np.ndarray[Any, np.dtype[Any]]

_PATIENCE = Limits(seconds=2.0, memory=2 << 30)  # what a target may take to say no
_TRIALS = 24  # smaller calls that are tried for one that is accepted


# Faults that have ended this process's workers, and the ways: each costs two starts of a framework,
# and one that takes all of their time costs that.
_FATAL: set[tuple[str, str, str]] = set()
# Targets, and what they have not answered: numbers of a kind of one fault, or what is beyond all
# sizes of one operator. Others hang as well, and each takes all of its time.
_SILENT: set[tuple[str, str]] = set()
_ENDS = 3  # ways of one fault that may end a process, until it is passed over


@dataclass(frozen=True, slots=True)
class Accepted:
    """An invalid call that a target has run, or that has ended its process.

    fault: what is invalid. requirement: the name of what that breaks. given: what was changed to
    spoil it. got: the results. others: what other targets did, and words: in which they refused it.
    output: what a process that was lost had printed. repeated: whether it is so in a process that
    has run nothing else.
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
    spoiled = _spoiled(programs, usual, seeds, ops, first, session.fruitless)
    cases = [Case(one.graph, one.values(seed), {}, catalog, manner=manner) for seed, one in spoiled]
    said: list[dict[str, str]] = [{} for _ in spoiled]
    beside: list[dict[str, str]] = [{} for _ in spoiled]  # likewise of what was asked for a mode
    got: dict[tuple[int, str], Result] = {}
    sent: dict[str, list[_Sent]] = {}
    for target in session.targets:
        first_asked = _asked(session, programs, target, spoiled, cases, before)
        early = is_early(target, ops, first)
        sent[target], plainly, lost = _still_asked(
            session, programs, target, spoiled, cases, first_asked, early
        )
        for number, result in plainly.items():
            beside[number][session.plain[target]] = _plain(result)
            got.setdefault((number, session.plain[target]), result)
        for number, result in lost.items():
            said[number][target], got[number, target] = "refused", result
        counts[target].update(["refused"] * len(lost))
        if sent[target]:
            session.workers[target].hasty(_PATIENCE).send([asked.program for asked in sent[target]])
    for target in (target for target in session.targets if sent[target]):
        worker = session.workers[target]
        try:
            ran = worker.hasty(_PATIENCE).collect()
        except WorkerError:
            continue  # the campaign's own programs say so, with the worker's last words
        answered = zip(sent[target], ran, strict=True)
        heard = [(asked, r) for asked, r in answered if asked.direct or r.status == "crash"]
        for (asked, result), told in zip(heard, _judged(worker, heard), strict=True):
            said[asked.number][target] = told
            counts[target][told] += 1
            if result.status == "timeout":
                _SILENT.add((target, _silence(spoiled[asked.number][1])))
            got[asked.number, target] = result
            if result.status in ("crash", "timeout"):
                ended = spoiled[asked.number][1]
                _FATAL.add((target, ended.fault.code, _way(ended)))
    for number, (seed, whole) in enumerate(spoiled):
        if PACE.over():
            break
        for target in (t for t, told in said[number].items() if told in FINDINGS - {"refused"}):
            result, told = got[number, target], said[number][target]
            one, case = whole, cases[number]
            if told == "accepted":
                one, case, result = _least(session, programs, target, seed, one, case, result)
                case, result = _as_usual(session.workers[target], target, one, case, result)
            message = one.fault.message if told == "accepted" else result.error
            verdict = Verdict(next(iter(case.graph.outputs)), target, told, message=message)
            others = {t: v for t, v in (beside[number] | said[number]).items() if t != target}
            words = {t: got[number, t].error for t, v in others.items() if v == "refused"}
            taken = Accepted(
                case, target, verdict, one.fault.message, _requirement(one), _given(one),
                dict(result.outputs), others, words, str(result.detail.get("output", "")),
                told != "crash"
                or _crashes_again(session.workers[target], programs.own(target, one.graph), case),
            )  # fmt: skip
            symptom = _symptom(target, one, told)
            if told != "crash" or not any(known[:5] == symptom[:5] for known in before):
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
) -> list[tuple[int, Spoilt]]:
    """The spoilt calls of every seed, each made for one of the targets in turn, until the time is
    over.

    fruitless: the requirements of which nothing was found, for which all that is drawn was tried:
    there may be no call that breaks one of these alone; and the operators of which a target is
    handed no call, however often one is drawn.
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
        made = spoils(programs.catalog, seed, names, turn, able, tells, PACE.draw())
        if turn is not None:
            fruitless.had((target, turn[0]), bool(made) or turn[0] in able.ops)
            fruitless.had(key, any(breaks(one, turn) for one in made))
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
class _Sent:
    """A spoilt call that a target is asked for.

    number: which one. direct: whether something follows from its being run. huge: whether it asks
    for a number beyond all sizes. real: whether elements that are not whole numbers are the matter,
    of which a target may say by NaN that they have no value.
    """

    number: int
    program: Program
    direct: bool
    huge: bool
    real: bool = False


def _asked(
    session: Session,
    programs: Programs,
    target: str,
    spoiled: Sequence[tuple[int, Spoilt]],
    cases: Sequence[Case],
    before: set[Symptom],
) -> list[_Sent]:
    """Those of spoilt calls that a target is asked for: its share of what it has words for."""
    found = []
    for number, ((seed, one), case) in enumerate(zip(spoiled, cases, strict=True)):
        if not is_turn(seed, session.shares[target]) or _has_ended(target, one, before):
            continue
        if one.added and not _documents(target, one):
            continue  # the call is valid there
        lowered = programs.own(target, one.graph)
        if lowered is not None:
            program = Program(lowered.kind, lowered.code, case.inputs, lowered.params)
            valued = only_shapes(target) and not one.graph.nodes[0].instance.faults
            telling = not (is_run_first(target) or valued or one.hollow)
            telling = telling and _symptom(target, one, "accepted") not in before
            direct = telling and is_handed_over(one, lowered, target, programs)
            found.append(_Sent(number, program, direct, _is_huge(one), _is_real(one)))
    return found


def _still_asked(
    session: Session,
    programs: Programs,
    target: str,
    spoiled: Sequence[tuple[int, Spoilt]],
    cases: Sequence[Case],
    asked: list[_Sent],
    early: bool,
) -> tuple[list[_Sent], dict[int, Result], dict[int, Result]]:
    """What is left to ask a target when its framework has been asked in other modes; by number what
    came of calls plainly, and of those that need not be asked as they were refused sooner. early:
    whether what the framework takes plainly waits.
    """
    graphs = {one.number: spoiled[one.number][1].graph for one in asked}
    told = functools.partial(
        told_by, session=session, programs=programs, target=target, cases=cases
    )
    plainly = told(plain_of(session, target), graphs=graphs, limits=_PATIENCE)
    if plainly and (only_shapes(target) or early):
        asked = [one for one in asked if not _is_taken(plainly.get(one.number))]
    graphs = {one.number: graphs[one.number] for one in asked if one.direct}
    sooner = told(session.sooner[target], graphs=graphs, limits=_PATIENCE)
    lost = {n: result for n, result in sooner.items() if result.status == "refused"}
    return [one for one in asked if one.number not in lost], plainly, lost


def _is_taken(result: Result | None) -> bool:
    return result is not None and result.status == "ok"


def _is_huge(one: Spoilt) -> bool:
    return not isinstance(one.changed, SetElements) and is_huge(one.changed)


def _is_real(one: Spoilt) -> bool:
    """Whether elements of a tensor of reals were changed."""
    if not isinstance(one.changed, SetElements):
        return False
    return any(one.graph.values[name].kind == "real" for name, _ in one.changed.values)


def _symptom(target: str, one: Spoilt, told: str) -> Symptom:
    """What is known of an invalid call that was not refused: what it breaks, by what, and what came
    of it. One that is accepted in two axes may end a process in three; a target that broadcasts one
    axis of an input may read beyond the end of another.
    """
    operator, way = one.graph.nodes[0].op.name, _way(one) if told == "crash" else one.fault.size
    return target, told, operator, _requirement(one), " ".join(sorted(_given(one))), way


def _way(one: Spoilt) -> str:
    """In what ways that break one requirement differ, so that one may end a process where another
    is accepted: by the number of axes, and what kind of number it is.
    """
    ranks = [len(port.info.shape) for port in one.graph.inputs.values()]
    kind = way_of(one.changed)[2:] if isinstance(one.changed, SetAttr) else ()
    return " ".join(map(str, (*ranks, *kind)))


def _has_ended(target: str, one: Spoilt, before: set[Symptom]) -> bool:
    """Whether a spoilt call need not be run, as others that break the same have ended processes."""
    if (target, _silence(one)) in _SILENT:
        return True
    fatal = {way for name, code, way in _FATAL if (name, code) == (target, one.fault.code)}
    return _symptom(target, one, "crash") in before or _way(one) in fatal or len(fatal) >= _ENDS


def _silence(one: Spoilt) -> str:
    """What a spoilt call shares with others that a target takes as long over."""
    if _is_huge(one):
        return one.graph.nodes[0].op.name
    kind = way_of(one.changed)[2:] if isinstance(one.changed, SetAttr) else ()
    return " ".join(map(str, (one.fault.code, *kind)))


def _requirement(one: Spoilt) -> str:
    """The name of what a spoilt call breaks; `sizes` where that is what its signature says of the
    axes of an input, be it their sizes or their number.
    """
    name = one.fault.code.partition(".")[2]
    formal, _, which = name.partition(".")
    of_axes = isinstance(one.changed, Retype) and which in ("", "rank")
    return "sizes" if of_axes and formal in one.graph.nodes[0].inputs else name


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


_TOLD = {"ok": "accepted", "crash": "crash", "timeout": "timeout"}


def _judged(worker: Worker, heard: Sequence[tuple[_Sent, Result]]) -> list[str]:
    """What each result says; `accepted` of what is run twice without a word, else `unconfirmed`, or
    `warned`. What takes its time over a number beyond all sizes is `late`: it does as it was told.
    """
    told = [_told(asked, result) for asked, result in heard]
    places = [place for place, one in enumerate(told) if one == "accepted"]
    again = _run_again(worker, [heard[place][0].program for place in places])
    for place, result in zip(places, again, strict=True):
        if result is None or result.status != "ok":
            told[place] = "unconfirmed"
        else:
            told[place] = _told(heard[place][0], result)
    for place in (place for place, one in enumerate(told) if one == "timeout"):
        if heard[place][0].huge:
            told[place] = "late"
        elif _in_its_own_time(worker, heard[place][0].program) != "timeout":
            told[place] = "unconfirmed"
    return told


def _in_its_own_time(worker: Worker, program: Program) -> str:
    """What comes of a program that may take as long as any other, in a process of its own."""
    try:
        with worker.fresh() as alone:
            return alone.submit([program])[0].status
    except WorkerError:
        return ""


def _plain(result: Result) -> str:
    """What a result says that nothing is found by."""
    if result.status == "ok" and result.detail.get("warned"):
        return "warned"
    return _TOLD.get(result.status, "refused")


def _told(asked: _Sent, result: Result) -> str:
    if result.status == "ok":
        unsaid = asked.real and _says_nan(result)
        if unsaid or result.detail.get("warned"):
            return "warned"
    return _TOLD.get(result.status, "refused")


def _says_nan(result: Result) -> bool:
    return any(map(_has_nan, result.outputs.values()))


def _has_nan(array: Array) -> bool:
    return array.dtype.kind == "f" and bool(np.isnan(array).any())


def _run_again(worker: Worker, programs: Sequence[Program]) -> list[Result | None]:
    """The results in processes that have run nothing before; None where there is no process."""
    found: list[Result | None] = [None] * len(programs)
    spare = worker.spare() if programs else None
    if spare is not None:
        with contextlib.suppress(WorkerError):  # not every framework survives a fork
            found = list(spare.submit(programs))
    for place, result in enumerate(found):
        if result is None or result.status not in ("ok", "refused"):
            with contextlib.suppress(WorkerError), worker.fresh() as alone:
                found[place] = alone.submit([programs[place]])[0]
    return found


def _least(
    session: Session,
    programs: Programs,
    target: str,
    seed: int,
    one: Spoilt,
    case: Case,
    result: Result,
) -> tuple[Spoilt, Case, Result]:
    """A spoilt call that is accepted, as small as it still is, with what it is fed and gives.

    Where it gives numbers that look right, a smaller one does: NaN may pass for a refusal.
    """
    worker = session.workers[target].hasty(_PATIENCE)
    whole, last, trials = (one, case, result), None, 0
    while trials < _TRIALS:
        for other in smaller(one, case.catalog):
            lowered = programs.own(target, other.graph)
            if lowered is None or not is_handed_over(other, lowered, target, programs):
                continue
            fed = replace(case, graph=other.graph, inputs=other.values(seed))
            program = Program(lowered.kind, lowered.code, fed.inputs, lowered.params)
            asked = _Sent(0, program, True, _is_huge(other), _is_real(other))
            trials += 1
            try:
                (ran,) = worker.submit([program])
            except WorkerError:
                return whole
            if _told(asked, ran) == "accepted" and _says_nan(ran) <= _says_nan(result):
                one, case, result, last = other, fed, ran, program
                break
        else:
            break
    again = _run_again(session.workers[target], [] if last is None else [last])
    return (one, case, result) if all(r is not None and r.status == "ok" for r in again) else whole


def _as_usual(
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
    asked = _Sent(0, program, True, _is_huge(one), _is_real(one))
    (ran,) = _run_again(worker, [program])
    if ran is None or _told(asked, ran) != "accepted":
        return case, result
    return replace(case, manner=USUAL), ran


def _crashes_again(worker: Worker, lowered: Lowered | None, case: Case) -> bool:
    """Whether a spoilt call ends a process that has run nothing before, too."""
    assert lowered is not None  # it has been run
    (again,) = _run_again(
        worker, [Program(lowered.kind, lowered.code, case.inputs, lowered.params)]
    )
    return again is not None and again.status == "crash"


def _given(one: Spoilt) -> dict[str, str]:
    move = one.changed
    if isinstance(move, SetElements):
        return {name: show(value) for name, value in move.values}
    return {move.name: str(move.info) if isinstance(move, Retype) else show(move.value)}
