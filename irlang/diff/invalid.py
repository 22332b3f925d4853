"""Invalid programs: a target that runs one, and says nothing, has accepted it; one whose process
ends, or does not answer, has not refused it either. What is accepted is run a second time, in a
process that has run nothing else: refused there, it is `unconfirmed`, counted and not reported. Nor
is what it warns of: that is not taken without a word. Nothing is said of a call of whose inputs one
has no elements but that it must end no process.

A campaign runs spoilt calls (`irlang.gen.spoil`) beside its programs. That one is run tells only
something where it reaches a target's own operator as it is (`irlang.lower.direct`) and where the
target does not document its requirement to be wider (`irlang.lower.admits`). A process that ends is
a defect of the target whatever it was given; of one that says shapes only nothing else is told, as
inference is not there to say no.
"""

from __future__ import annotations

import contextlib
import functools
import random
import resource
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from irlang.catalog import Catalog
from irlang.diagnostics import InvalidInput
from irlang.diff.calls import Case
from irlang.diff.verdict import FINDINGS, Verdict, only_shapes
from irlang.gen.changes import SetElements
from irlang.gen.moves import Retype, SetAttr
from irlang.gen.spoil import Spoilt, Wanted, breakable, spoils
from irlang.graph import Graph
from irlang.lower.admits import admitted
from irlang.lower.direct import is_direct, lists, numbers, says
from irlang.lower.lower import Lowered, lower, spelt
from irlang.lower.narrows import narrower
from irlang.lower.pool import Program, Result, Worker, WorkerError
from irlang.scope import show

if TYPE_CHECKING:
    from irlang.diff.runner import Session
    from irlang.diff.seen import Symptom

Array = np.ndarray[Any, np.dtype[Any]]

# What a rule for valid calls may raise on an invalid one, which says nothing of the target.
_LOST = (
    ArithmeticError, AssertionError, InvalidInput, LookupError, MemoryError, TypeError, ValueError,
)  # fmt: skip
_ROOM = 1 << 30  # bytes that one may take
_PAGES = Path("/proc/self/statm")  # the memory of this process, in pages, first


# Faults that have ended this process's workers: each costs two starts of a framework, and one that
# takes all of their time costs that.
_FATAL: set[tuple[str, str]] = set()


@dataclass(frozen=True, slots=True)
class Accepted:
    """An invalid call that a target has run, or that has ended its process.

    fault: what is invalid. requirement: the name of what that breaks. given: what was changed to
    spoil it. got: the results. others: what other targets did.
    """

    case: Case
    target: str
    verdict: Verdict
    fault: str
    requirement: str
    given: dict[str, str]
    got: dict[str, Array]
    others: dict[str, str]


def judge_invalid(
    session: Session,
    catalog: Catalog,
    seeds: Sequence[int],
    ops: Sequence[str],
    first: int | None = None,
    before: set[Symptom] | None = None,
) -> tuple[list[tuple[int, Accepted]], dict[str, Counter[str]]]:
    """Runs the spoilt calls of every seed; gives what was not refused, and counts by target.

    ops: that may be called; if none are said, those that a target has operators of its own for.
    first: of a campaign's spoilt calls, the number of these; what they break has its turn then,
    each requirement of each operator before one comes again. Without it, it is drawn. before: what
    has been accepted before is not run again; what is new is added.
    """
    before = set() if before is None else before
    found: list[tuple[int, Accepted]] = []
    counts = {target: Counter[str]() for target in session.targets}
    targets = [target for target in session.targets if session.shares[target] == 1]
    known = {op.name for op in catalog}
    own = {target: sorted(known & spelt(target)) for target in targets}
    spoiled: list[tuple[int, Spoilt]] = []
    for number, seed in enumerate(seeds):
        target = targets[(seed if first is None else first + number) % len(targets)]
        names = ops or own[target]
        turn = None
        if first is not None:
            turn = _turn(catalog, names, target, (first + number) // len(targets))
        able, tells = (functools.partial(f, target, catalog) for f in (_has, _tells))
        spoiled += [(seed, one) for one in spoils(catalog, seed, names, turn, able, tells)]
    cases = [Case(one.graph, one.values(seed), {}, catalog) for seed, one in spoiled]
    said: list[dict[str, str]] = [{} for _ in spoiled]
    got: dict[tuple[int, str], Result] = {}
    for target in targets:  # what compiles says the same as what it compiles
        worker = session.workers[target]
        programs, sent = [], []
        for number, ((_, one), case) in enumerate(zip(spoiled, cases, strict=True)):
            if _accepted(target, one) in before or (one.added and not _documents(target, one)):
                continue  # in the second case the call is valid there
            lowered = _lowered(one.graph, target, catalog)
            if lowered is not None and (target, one.fault.code) not in _FATAL:
                programs.append(Program(lowered.kind, lowered.code, case.inputs, lowered.params))
                telling = not only_shapes(target) and not one.hollow
                direct = telling and _is_handed_over(one, lowered, target, catalog)
                sent.append((number, direct))
        worker.send(programs)
        try:
            ran = worker.collect()
        except WorkerError:
            continue  # the campaign's own programs say so, with the worker's last words
        heard = [
            (number, program, result)
            for (number, direct), program, result in zip(sent, programs, ran, strict=True)
            if direct or result.status == "crash"
        ]
        verdicts = _judged(worker, [p for _, p, _ in heard], [r for *_, r in heard])
        for (number, _, result), told in zip(heard, verdicts, strict=True):
            said[number][target] = told
            counts[target][told] += 1
            got[number, target] = result
            if result.status in ("crash", "timeout"):
                _FATAL.add((target, spoiled[number][1].fault.code))
    for number, ((seed, one), case) in enumerate(zip(spoiled, cases, strict=True)):
        for target in (t for t, told in said[number].items() if told in FINDINGS - {"refused"}):
            result, told = got[number, target], said[number][target]
            message = one.fault.message if told == "accepted" else result.error
            verdict = Verdict(next(iter(case.graph.outputs)), target, told, message=message)
            others = {t: v for t, v in said[number].items() if t != target}
            taken = Accepted(
                case, target, verdict, one.fault.message, _requirement(one), _given(one),
                dict(result.outputs), others,
            )  # fmt: skip
            found.append((seed, taken))
            before.add(_accepted(target, one))
    return found, counts


def _has(target: str, catalog: Catalog, graph: Graph) -> bool:
    """Whether a target has an operator of its own for every call."""
    return _lowered(graph, target, catalog) is not None


def _tells(target: str, catalog: Catalog, one: Spoilt) -> bool:
    """Whether something is learnt from what a target makes of a spoilt call."""
    lowered = _lowered(one.graph, target, catalog)
    if lowered is None:
        return False
    return one.hollow or only_shapes(target) or _is_handed_over(one, lowered, target, catalog)


def _accepted(target: str, one: Spoilt) -> Symptom:
    """What is known of an invalid call that is accepted: what it breaks, and by what."""
    operator = one.graph.nodes[0].op.name
    return target, "accepted", operator, _requirement(one), " ".join(sorted(_given(one))), ""


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

    Requirements that a definition names come before whatever else its signature says: of what they
    rule out targets accept more (four in five of what was accepted, in half of the turns).
    """
    plan = breakable(catalog, ops, narrower(target))
    around, place = divmod(position, len(plan))
    shuffled = random.Random(f"invalid {around}").sample(plan, len(plan))
    return sorted(shuffled, key=lambda wanted: wanted[1] is None)[place]


def _documents(target: str, one: Spoilt) -> bool:
    """Whether the target's documentation has the requirement that a call breaks."""
    operator, _, name = one.fault.code.partition(".")
    return any(statement.name == name for statement in narrower(target).get(operator, ()))


_TOLD = {"ok": "accepted", "crash": "crash", "timeout": "timeout"}


def _judged(worker: Worker, programs: Sequence[Program], results: Sequence[Result]) -> list[str]:
    """What each result says; `accepted` of what is run twice without a word, else `unconfirmed`, or
    `warned`.
    """
    told = [_told(result) for result in results]
    places = [place for place, one in enumerate(told) if one == "accepted"]
    again = _run_again(worker, [programs[place] for place in places])
    for place, result in zip(places, again, strict=True):
        if result is None or result.status != "ok":
            told[place] = "unconfirmed"
        else:
            told[place] = _told(result)
    return told


def _told(result: Result) -> str:
    if result.status == "ok" and result.detail.get("warned"):
        return "warned"
    return _TOLD.get(result.status, "refused")


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


def _is_handed_over(one: Spoilt, lowered: Lowered, target: str, catalog: Catalog) -> bool:
    """Whether the program of a spoilt call says something of the target by being run."""
    changed = isinstance(one.changed, SetAttr)
    if not is_direct(lowered, shaped=changed):
        return False
    if admitted(target, one.graph.nodes[0].op.name, one.fault.code):
        return False
    if isinstance(one.changed, SetAttr):
        value = one.changed.value
        if not _numbers(value) <= numbers(lowered):
            return False  # what is computed from it is given instead
        if isinstance(value, tuple) and len(value) < 2:
            python = isinstance(lowered.code, str)
            if value not in lists(lowered) or (python and value):
                return False  # one number is one for all axes, and none is none given
    text = says(lowered)
    others = (_lowered(graph, target, catalog) for graph in one.beside)
    return all(other is None or says(other) != text for other in others)


def _lowered(graph: Graph, target: str, catalog: Catalog) -> Lowered | None:
    try:
        with _room():
            lowered = lower(graph, target, catalog, {}, hollow=True)
    except _LOST:
        return None
    return lowered if lowered.native and not lowered.unsupported else None


@contextlib.contextmanager
def _room() -> Iterator[None]:
    """So much memory more, and `MemoryError` beyond: a rule may repeat a text as often as a number
    says that is no size at all.
    """
    if not _PAGES.exists():  # only Linux tells
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    taken = int(_PAGES.read_text("ascii").split()[0]) * resource.getpagesize()
    known = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min([taken + _ROOM, *known]), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _numbers(value: Any) -> frozenset[float]:
    """The numbers of an attribute, in single precision."""
    several = value if isinstance(value, tuple) else (value,)
    return frozenset(float(np.float32(n)) for n in several if isinstance(n, (int, float)))


def _given(one: Spoilt) -> dict[str, str]:
    move = one.changed
    if isinstance(move, SetElements):
        return {name: show(value) for name, value in move.values}
    return {move.name: str(move.info) if isinstance(move, Retype) else show(move.value)}
