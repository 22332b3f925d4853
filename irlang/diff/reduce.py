"""Makes a case that disagrees as small as possible, the disagreement staying what it is.

One driver takes proposals (`irlang.diff.reduce_moves`) in batches, runs them on the target beside
the oracle, keeps those that show the same symptom at a lower cost, merges them where they hold
together, and goes on until a whole round changes nothing. It is deterministic but for its limit of
time; a limit of trials is there for those who need the same result on every machine.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from irlang.diagnostics import InvalidInput
from irlang.diff.calls import Case
from irlang.diff.edits import Edit, apply, cost, made_of, typed
from irlang.diff.localise import localise
from irlang.diff.outcome import Outcome
from irlang.diff.pace import PACE
from irlang.diff.reduce_moves import PHASES, Proposals, structure
from irlang.diff.runner import Session
from irlang.diff.stages import gradient_by_calls
from irlang.diff.verdict import INCONSISTENT, at_edge, gravest
from irlang.graph import Graph, Initial

Array = np.ndarray[Any, np.dtype[Any]]
_BATCH = 16  # programs that are tried at once
_HANG = "timeout"
_LOST = frozenset({"crash", _HANG, "memory"})  # each trial that holds costs a process
_HANGS = 2  # programs that are tried at once where each that holds takes a program's whole time
HANG_SECONDS = 1.0  # after which a program hangs, while one is looked into that takes far longer
_LEAST, _LEAST_HANGS = 100, 8  # trials that a busy machine does not take from a reduction
_TRIAL_SECONDS = 2.0
_AT_ONCE = 0.25  # of the time that there is goes into trials of which all have to be waited for
_BUSIEST = 6  # times its limit of time that they may take
_LARGEST = 1 << 16  # elements that all results of a trial may have, where they had fewer before
_LITERAL = 64  # numbers of a parameter that are written into the text


@dataclass(frozen=True, slots=True)
class Symptom:
    """What must stay: the class of the gravest verdict, and what tells it from others of its class.

    detail: the words of a message without its numbers, or the kinds of numbers of an edge value.
    backward: whether it is one of a gradient.
    """

    verdict: str
    detail: str
    backward: bool = False


@dataclass(frozen=True, slots=True)
class Reduced:
    """The smallest case, its symptom, what was tried, and whether no edit was left that helps."""

    case: Case
    symptom: Symptom
    trials: int
    finished: bool


def symptom(case: Case, outcome: Outcome, target: str) -> Symptom:
    """The symptom that a case shows on a target."""
    verdicts = outcome.verdicts[target]
    worst = gravest([v.verdict for v in verdicts])
    one = next((v for v in verdicts if v.verdict == worst), None)
    grave = at_edge(worst) if case.edge else worst
    if one is None:
        return Symptom(grave, "")
    backward = one.stage == "backward"
    if one.message and grave != INCONSISTENT:
        return Symptom(grave, _words(one.message), backward)
    if grave in ("edge", "nonfinite", INCONSISTENT):
        kinds = f"{number_kind(one.expected)} not {number_kind(one.got)}"
        return Symptom(grave, kinds, backward)
    return Symptom(grave, "", backward)


def _words(message: str) -> str:
    """The first words of a message: names and numbers differ from program to program."""
    plain = message.rpartition("before it: ")[2]  # where it began is what counts
    plain = plain.rpartition("Status Message: ")[2]  # and not in front, which is always the same
    plain = re.sub(r"\S*/\S+|<[^<>\s]*>", " ", plain)  # files and the like
    plain = re.sub(r"`[^`]*`|'[^']*'|\"[^\"]*\"|\{\{.*?\}\}", " ", plain)
    return " ".join(re.findall(r"[A-Za-z]{3,}", plain)[:6])


def number_kind(number: float | None) -> str:
    """What kind of number it is, for telling symptoms apart."""
    if number is None:
        return "nothing"
    if math.isnan(number) or math.isinf(number):
        return str(number)
    return "finite" if number else "zero"


def number_kinds(expected: float | None, got: float | None) -> tuple[str, str]:
    """The kinds of what was expected and got, for telling defects apart: of a pair and its mirror
    image, as NaN instead of an infinity of either sign, the one that has infinity before its
    negative.
    """
    kinds = number_kind(expected), number_kind(got)
    first = next((kind for kind in kinds if "inf" in kind), "")
    if first != "-inf":
        return kinds
    mirror = {"inf": "-inf", "-inf": "inf"}
    return mirror.get(kinds[0], kinds[0]), mirror.get(kinds[1], kinds[1])


def reduce(
    session: Session,
    case: Case,
    target: str,
    *,
    culprit: str | None = None,
    grad: bool = False,
    seconds: float = 30.0,
    trials: int = 100_000,
    hangs: bool = False,
) -> Reduced | None:
    """The smallest case found that shows what `case` shows on a target; None if it shows nothing.

    culprit: the operator that is to blame, which stays so. seconds, trials: the limits. hangs:
    whether the case is known to hang, and need not take the whole of its time once more; nor does
    the smallest, which is for the caller to run again.
    """
    room = PACE.for_hang(seconds) if hangs else PACE.for_one(seconds)
    with PACE.looking():
        return _made_smaller(session, case, target, culprit, grad, room, trials, hangs)


def _made_smaller(
    session: Session,
    case: Case,
    target: str,
    culprit: str | None,
    grad: bool,
    seconds: float,
    trials: int,
    hangs: bool,
) -> Reduced | None:
    alone = session.only(target)
    first = alone.hurried(target, HANG_SECONDS) if hangs else alone
    outcome = first.compare([case], grad=grad)[0]
    seen, calls = symptom(case, outcome, target), False
    if not is_finding(seen) and grad:
        calls, seen = True, _by_calls(alone, case, target, culprit)
    if not is_finding(seen):
        return None
    apart = first if hangs and seen.verdict == _HANG else _apart(alone, case, target, seen, grad)
    valid = outcome.refusal is None
    if seen.verdict != _HANG:  # a trial that takes long is none that helps
        alone = alone.hasty(_TRIAL_SECONDS)
    tried = apart or alone
    tame = _is_finite(outcome)
    driver = _Driver(tried, target, seen, culprit, grad, valid, tame, seconds, trials, calls)
    made, finished = driver.run(case)
    if apart is not None and made is not case and not hangs:
        again = symptom(made, alone.compare([made], grad=grad)[0], target)
        if again != seen:  # it needs what a process of its own does not have
            driver = _Driver(alone, target, seen, culprit, grad, valid, tame, seconds, trials)
            made, finished = driver.run(case)
    return Reduced(written_out(made), seen, driver.trials, finished)


def _by_calls(session: Session, case: Case, target: str, culprit: str | None) -> Symptom:
    """The symptom of the first call whose gradient is wrong by itself, if it is the culprit's: the
    radius of the program's gradient may hide it.
    """
    start = gradient_by_calls(session.only(target), case, target).start
    if start is None or culprit not in (None, start.operator):
        return Symptom("agrees", "")
    return symptom(case, Outcome(verdicts={target: [start.verdict]}), target)


def _apart(session: Session, case: Case, target: str, seen: Symptom, grad: bool) -> Session | None:
    """Where programs that end their process are tried: forks, if the symptom shows itself there."""
    if seen.verdict not in _LOST:
        return None
    apart = session.apart(target, HANG_SECONDS if seen.verdict == _HANG else None)
    if apart is None:
        return None
    try:
        shown = symptom(case, apart.compare([case], grad=grad)[0], target)
    except InvalidInput:
        return None  # the framework does not start there
    return apart if shown == seen else None


def _is_finite(outcome: Outcome) -> bool:
    """Whether all values of a program are finite."""
    values = (np.asarray(ball.value) for ball in outcome.balls.values())
    return all(array.dtype.kind != "f" or np.isfinite(array).all() for array in values)


def is_finding(seen: Symptom) -> bool:
    """Whether a symptom is a disagreement."""
    from irlang.diff.verdict import FINDINGS

    return seen.verdict in FINDINGS


class _Driver:
    """Tries edits on one target."""

    def __init__(
        self,
        session: Session,
        target: str,
        wanted: Symptom,
        culprit: str | None,
        grad: bool,
        valid: bool,
        tame: bool,
        seconds: float,
        limit: int,
        calls: bool = False,
    ) -> None:
        self.session = session
        self.target = target
        self.wanted = wanted
        self.culprit = culprit
        self.grad = grad
        self.calls = calls  # whether only its calls, each judged by itself, show the symptom
        self.start = time.monotonic()
        self.seconds = seconds
        self.longest = PACE.for_one(_BUSIEST * seconds)
        self.limit = limit
        self.trials = 0
        forks = all(worker.apart for worker in session.workers.values())
        costly = wanted.verdict == _HANG or (wanted.verdict in _LOST and not forks)
        self.valid = valid  # a program that has no value may do what it likes
        self.tame = tame  # that a pole is on the way makes it another disagreement
        self.most = _HANGS if costly else _BATCH
        self.batch = self.most
        self.least = (_LEAST_HANGS if forks else 0) if costly else _LEAST
        self.failed: set[str] = set()

    def spent(self) -> bool:
        """Whether a limit is reached."""
        taken = time.monotonic() - self.start
        busy = self.trials < self.least and taken < self.longest
        return self.trials >= self.limit or (taken >= self.seconds and not busy)

    def run(self, case: Case) -> tuple[Case, bool]:
        """Phase after phase, until a round of them changes nothing."""
        case = self.as_usual(case)
        while not self.spent():
            before = cost(case)
            for proposals in PHASES:
                case = self.phase(case, proposals)
            if cost(case) == before:
                return case, not self.spent()
        return case, False

    def as_usual(self, case: Case) -> Case:
        """The case as it is usually written, where it shows the symptom so as well."""
        if not case.manner.turn or self.spent():
            return case
        usual = replace(case, manner=replace(case.manner, turn=0))
        return usual if self.holds([usual])[0] else case

    def phase(self, case: Case, proposals: Proposals) -> Case:
        """All edits of a kind, again and again while one helps."""
        while not self.spent():
            before = cost(case)
            held = self.held(case) if proposals is structure else {}
            edits = proposals(case)
            while not self.spent() and (some := self.some(case, edits, held)):
                case = self.best(case, some, held)
            if cost(case) == before:
                break
        return case

    def held(self, case: Case) -> Mapping[str, Array]:
        """What every value of the program is: on the target if it says so, else by the oracle."""
        from irlang.interp.program import run

        found: dict[str, Array] = {}
        try:
            found.update(typed(case.graph, run(case.graph, case.values, case.catalog)))
        except InvalidInput:
            found.update(case.values)
        if len(case.graph.nodes) > 1 and self.wanted.verdict not in _LOST:
            (result,) = self.session.ran([case], self.target)
            if result is not None and result.status == "ok":
                found.update({n: np.asarray(a) for n, a in result.outputs.items()
                              if n in found and a.shape == found[n].shape})  # fmt: skip
        return found

    def some(
        self, case: Case, edits: Iterator[Edit], held: Mapping[str, Array]
    ) -> list[tuple[Edit, Case]]:
        """The next edits that apply and make the case cheaper, with what they leave."""
        found: list[tuple[Edit, Case]] = []
        now = cost(case)
        # Without its step a range from end to end has 2**32 elements.
        most = max(_LARGEST, made_of(case.graph))
        seen: set[str] = set()
        for edit in islice(edits, 100_000):
            if self.spent():  # edits that come to nothing take their time, too
                break
            made = apply(case, edit, held)
            if made is None or not cost(made) < now or made_of(made.graph) > most:
                continue
            key = _key(made)
            if key in self.failed or key in seen:
                continue
            seen.add(key)
            found.append((edit, made))
            if len(found) == self.batch:
                break
        return found

    def best(self, case: Case, some: list[tuple[Edit, Case]], held: Mapping[str, Array]) -> Case:
        """The case after the edits of a batch that hold: all of them together where that holds."""
        held_up = [
            one for one, holds in zip(some, self.holds([c for _, c in some]), strict=True) if holds
        ]
        if not held_up:
            return case
        held_up.sort(key=lambda one: cost(one[1]))
        for count in (len(held_up), (len(held_up) + 1) // 2):
            if count < 2:
                break
            merged = held_up[0][1]
            for edit, _ in held_up[1:count]:
                made = apply(merged, edit, held)
                merged = made if made is not None and cost(made) < cost(merged) else merged
            if cost(merged) < cost(held_up[0][1]) and self.holds([merged])[0]:
                return merged
        return held_up[0][1]

    def holds(self, cases: Sequence[Case]) -> list[bool]:
        """Which cases show the symptom, and of those of several calls, blame the same operator."""
        start = time.monotonic()
        found = self._held_up(cases)
        self.trials += len(cases)
        each = (time.monotonic() - start) / len(cases)
        self.batch = max(1, min(self.most, int(self.seconds * _AT_ONCE / max(each, 1e-6))))
        return found

    def _held_up(self, cases: Sequence[Case]) -> list[bool]:
        found = []
        for case, outcome in zip(cases, self.session.compare(cases, grad=self.grad), strict=True):
            shown = symptom(case, outcome, self.target)
            if self.calls and outcome.refusal is None and not is_finding(shown):
                shown = _by_calls(self.session, case, self.target, self.culprit)
            good = shown == self.wanted
            good = good and (outcome.refusal is None) == self.valid
            good = good and (_is_finite(outcome) or not self.tame)
            if good and self.culprit is not None:
                good = self.blames(case)
            if not good:
                self.failed.add(_key(case))
            found.append(good)
        return found

    def blames(self, case: Case) -> bool:
        """Whether the culprit is the one that was charged; of a gradient, whether it is there."""
        if len(case.graph.nodes) == 1 or self.grad:
            return self.culprit in {node.op.name for node in case.graph.nodes}
        found = localise(self.session, case, self.target)
        return found is not None and found.node.op.name == self.culprit


def _key(case: Case) -> str:
    """What tells cases apart."""
    graph = case.graph
    calls = [(n.op.name, n.inputs, n.attrs, n.outputs) for n in graph.nodes]
    values = {n: (a.dtype.str, a.shape, a.tobytes()) for n, a in case.values.items()}
    given = [[(name, port.within) for name, port in graph.inputs.items()],
             [(name, param.within) for name, param in graph.params.items()]]  # fmt: skip
    return repr((calls, graph.outputs, values, given, case.manner))


def written_out(case: Case) -> Case:
    """The case with its parameters in its text, as far as they are short."""
    params = {}
    for name, param in case.graph.params.items():
        array = case.params[name]
        if param.initial is not None and param.initial.kind == "array":
            param = replace(param, initial=literal(array))
        params[name] = param
    graph: Graph = replace(case.graph, params=params)
    return replace(case, graph=graph)


def literal(array: Array) -> Initial:
    """An array as the language writes it: one number, or all, or an array if they are many."""
    # A number is itself by its bits: NaN is, and -0 is not 0.
    if array.size and array.tobytes() == array.reshape(-1)[:1].tobytes() * array.size:
        return Initial("constant", (_shown(array.flat[0]),))
    if 0 < array.size <= _LITERAL:
        return Initial("literal", _nested(array))
    return Initial("array", (array,))


def _shown(number: Any) -> Any:
    if number.dtype.kind in "iub":
        return number.item()
    value = float(str(number))  # the shortest text that is this number in its own type
    if not math.isfinite(value) or (value == 0 and math.copysign(1, value) < 0):
        return value
    return int(value) if value == int(value) else value


def _nested(array: Array) -> tuple[Any, ...]:
    return tuple(_nested(a) if a.ndim else _shown(a) for a in array)
