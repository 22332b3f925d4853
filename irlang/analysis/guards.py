"""Guards: edits of the text after which the analysis proves a call safe.

Nothing is proposed that was not tried: the edited text is checked and analysed anew, the call must
be safe there, and nothing else may have become unsafe.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Any

from irlang.analysis.rules import Rewriting, rewritings, rules, written
from irlang.analysis.subject import Subject, reread
from irlang.diagnostics import Edit
from irlang.dtypes import DTYPES
from irlang.edits import apply
from irlang.graph import Node
from irlang.interp.range import Analysis, Point, Step, analyse
from irlang.parser import parse

_MOST_COMPARED = 200  # calls between the first that an edit changes and the last
_MORE = 0.25  # seconds for the next call that is wrong by itself, once a guard is found
_MOST_MORE = 4.0  # seconds for all of those: calls that a model has by the dozen are mended alike
_MOST_ROUNDS = 20  # of guards that become possible when others are written


@dataclass(frozen=True, slots=True)
class Guard:
    """An edit of the text after which a call is safe.

    text: the call as it is then. why: what the edit does. owns: the names of the calls that it
    was made for, a call and its gradient. settles: the names of all that are safe with it and were
    not before: what followed from this call, too.
    """

    text: str
    why: str
    edits: tuple[Edit, ...]
    owns: frozenset[str]
    settles: frozenset[str]

    def as_json(self) -> dict[str, Any]:
        """As in `irlang analyze --format json`."""
        edits = [
            {"text": e.text, "line": e.span.line, "column": e.span.column,
             "end_line": e.span.end_line, "end_column": e.span.end_column}
            for e in self.edits
        ]  # fmt: skip
        return {"text": self.text, "why": self.why, "edits": edits}


def unsafe(points: Sequence[Point]) -> dict[str, Point]:
    """The first point that is not safe of every call that has one, by the call's name."""
    found: dict[str, Point] = {}
    for point in points:
        if point.status != "safe":
            found.setdefault(point.node, point)
    return found


def guards_of(
    subject: Subject, found: Analysis, *, gradient: bool, domain: str, deadline: float
) -> dict[str, Guard]:
    """A guard for every call that has a point which is not safe, where one is found in time.

    found: the model as it was judged: an edit changes none of the calls before it. Each guard is
    tried together with those before it, from the inputs on: what comes later may be safe only then.
    A call and its gradient share their guard. What goes wrong on the way back alone is tried behind
    that, from the results on, and mostly settled by then.
    """
    before = unsafe(found.points)
    unsafe_now = set(before)
    if not unsafe_now or not subject.text:
        return {}
    fitting = _fitting(subject, found)
    trial = _Trial(subject, before, found.steps, found.steps, gradient, domain)
    guards: dict[str, Guard] = {}
    accepted: tuple[Edit, ...] = ()
    prefix = subject.prefix
    calls: Set[str] = before.keys()  # of the text as it is by now
    # what is handed numbers of any size on the way back is judged when these are bounded
    follows = {n for n, point in before.items() if point.after and point.stage == "gradient"}
    extended = -math.inf
    for node in _in_order(subject, before):
        names = (node.name, prefix + node.name)
        by_itself = any(n in before and not before[n].after for n in names)
        until = max(deadline, min(extended, deadline + _MOST_MORE)) if by_itself else deadline
        # an edit may have changed the name of a call inside the same statement: it is not settled
        own = {
            n for n in names if n in unsafe_now or (n in before.keys() - calls and n not in guards)
        }
        # what mends a call and its gradient, else what mends the call
        ways = [(one, trial) for one in fitting.get(node.name, ())] if own - follows else []
        if gradient and node.name in own:
            ways += [(one, replace(trial, both=False)) for one, _ in ways]
        for one, by in ways:
            if time.process_time() > until:
                break
            proved = by.run(one, accepted, unsafe_now)
            if proved is None:
                continue
            # more time is for calls that have no way out yet, not for a wider one
            one, outcome, alone = _loosest(by, one, proved, accepted, unsafe_now, deadline)
            now = set(before) if alone else unsafe_now
            after = set(outcome.unsafe)
            renamed = {outcome.unsafe[n] for n in after if n not in now}
            gone = before.keys() & (now - after)
            mended = {n for n in own if n not in after or n in outcome.following}
            settles = mended.union(
                n for n in gone if n in outcome.calls or before[n].operator not in renamed
            )
            guard = Guard(one.text, one.rule.why, one.edits, _met(one, prefix), frozenset(settles))
            guards.update((name, guard) for name in settles if name not in guards)
            if not alone:
                unsafe_now, accepted = after, (*accepted, *one.edits)
                calls = outcome.calls.keys()
                trial = replace(trial, latest=outcome.steps)
            extended = time.process_time() + _MORE
            break
    return guards


def _in_order(subject: Subject, before: Mapping[str, Point]) -> list[Node]:
    """The calls that are not safe themselves, from the inputs on, then those whose gradients are
    not, from the results on. Last are those that are handed numbers of any size by an earlier one:
    most are safe once that one is.
    """
    nodes, prefix = subject.source.nodes, subject.prefix
    back = [n for n in reversed(nodes) if n.name not in before and prefix + n.name in before]
    forth = [n for n in nodes if n.name in before]
    return [*sorted(forth, key=lambda node: before[node.name].after != ""), *back]


def _met(one: Rewriting, prefix: str) -> frozenset[str]:
    """The names of the calls that a rewriting is about, and of their gradients."""
    return frozenset(name for call in one.met for name in (call.name, prefix + call.name))


Proved = tuple[Rewriting, "_Outcome", bool]  # alone: whether it was tried without earlier guards


def _loosest(
    trial: _Trial,
    tightest: Rewriting,
    proved: Proved,
    accepted: tuple[Edit, ...],
    unsafe_now: set[str],
    deadline: float,
) -> Proved:
    """Of a rewriting with bounds that are proved to do, that with the largest, by bisection."""
    low, high = 0, len(tightest.looser)  # how many steps do, and how many may
    while low < high and time.process_time() < deadline:
        middle = (low + high + 1) // 2
        more = trial.run(tightest.looser[middle - 1], accepted, unsafe_now)
        if more is None:
            high = middle - 1
        else:
            low, proved = middle, more
    return proved


@dataclass(frozen=True, slots=True)
class _Trial:
    """Rewritings tried on a model. before: what is not safe in it. first, latest: its calls as they
    were judged without guards, and with those that are accepted. both: whether the gradient of a
    call has to be safe too.
    """

    subject: Subject
    before: Mapping[str, Point]
    first: Sequence[Step]
    latest: Sequence[Step]
    gradient: bool
    domain: str
    both: bool = True

    def run(
        self, one: Rewriting, accepted: tuple[Edit, ...], unsafe_now: set[str]
    ) -> Proved | None:
        """What the analysis says with a rewriting; None where a call that it is about is not safe
        then, or something has become worse.
        """
        edits, now = (*accepted, *one.edits), unsafe_now
        alone = apply(self.subject.text, edits) is None  # it is about a part of the same call
        if alone:
            edits, now = one.edits, set(self.before)
        known = self.first if alone else self.latest
        outcome = _outcome(self.subject, edits, known, self.gradient, self.domain)
        if outcome is None or not _no_worse(self.subject, now, self.before, outcome):
            return None
        met = (
            _met(one, self.subject.prefix)
            if self.both
            else frozenset(call.name for call in one.met)
        )
        left = met & outcome.unsafe.keys() - outcome.following
        return None if left else (one, outcome, alone)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """A text analysed anew. unsafe, calls: the operators of calls, by their names. following: those
    on the way back that are not safe because they are handed numbers of any size. steps: the calls
    as they were judged.
    """

    unsafe: dict[str, str]
    calls: dict[str, str]
    following: frozenset[str]
    steps: Sequence[Step]


def _no_worse(
    subject: Subject, unsafe_now: set[str], before: Mapping[str, Point], outcome: _Outcome
) -> bool:
    """Whether what is not safe after an edit was there before it.

    What such a call is handed may be judged only when what comes before it is safe. A call that a
    guard brings in must be safe from the start; one inside the same statement may have another
    name, so that it is known by its operator.
    """
    prefix, there = subject.prefix, {node.name for node in subject.source.nodes}
    new = {n: op for n, op in outcome.unsafe.items() if n.removeprefix(prefix) not in there}
    gone = (before[n].operator for n in unsafe_now if n in before and n not in outcome.calls)
    return Counter(new.values()) <= Counter(gone)


def _fitting(subject: Subject, found: Analysis) -> dict[str, list[Rewriting]]:
    """The rewritings that a call takes part in, by its name, in the order of the rules."""
    graph = subject.source
    text = written(graph, parse(subject.text, subject.file))
    bad, prefix = unsafe(found.points), subject.prefix
    fitting: dict[str, list[Rewriting]] = {}
    for node in graph.nodes:
        real = [graph.values[name].dtype for name in (*node.operands(), *node.outputs)]
        dtype = next((d for d in real if DTYPES[d].kind == "real"), "f32")
        own = node.name in bad or prefix + node.name in bad
        for one in rewritings(node, text, DTYPES[dtype], found.values, own):
            for met in one.met:
                fitting.setdefault(met.name, []).append(one)
    places = {id(rule): number for number, rule in enumerate(rules())}
    for ones in fitting.values():
        ones.sort(key=lambda one: places[id(one.rule)])
    return fitting


def _outcome(
    subject: Subject, edits: Sequence[Edit], known: Sequence[Step], gradient: bool, domain: str
) -> _Outcome | None:
    """What the analysis says after some edits; None where these leave no valid text."""
    changed = apply(subject.text, edits)
    again = None if changed is None else reread(subject, changed)
    if again is None:
        return None
    found = analyse(
        again.graph, again.catalog, gradient=gradient, domain=domain, flush=again.flush, known=known
    )
    names = _as_before(subject.source.nodes, again.graph.nodes)
    calls = {names[node.name]: node.op.name for node in again.graph.nodes}
    prefix, its = subject.prefix, again.prefix
    calls |= {prefix + name: f"{op}_gradient" for name, op in calls.items()}
    names |= {its + new: prefix + old for new, old in names.items()}
    left = {names.get(name, name): point for name, point in unsafe(found.points).items()}
    following = {n for n, p in left.items() if p.after and p.stage == "gradient"}
    operators = {name: point.operator for name, point in left.items()}
    return _Outcome(operators, calls, frozenset(following), found.steps)


def _as_before(old: Sequence[Node], new: Sequence[Node]) -> dict[str, str]:
    """The names of calls after an edit, and those that the same calls had before it.

    A call inside a statement is named by its operator and a number, so that an edit may leave its
    name to another. One that was not there has a name that no call had.
    """
    names = {node.name: node.name for node in new}
    ops = [[(node.name, node.op.name) for node in nodes] for nodes in (old, new)]
    start = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*ops, strict=False)))
    behind = zip(*(list(reversed(one[start:])) for one in ops), strict=False)
    end = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], behind))
    left, right = old[start : len(old) - end], new[start : len(new) - end]
    if len(left) > _MOST_COMPARED:
        return names
    taken = {node.name for node in old}
    names |= {node.name: f"{node.name}'" for node in right if node.name in taken}
    same = SequenceMatcher(
        None, [node.op.name for node in left], [node.op.name for node in right], autojunk=False
    )
    for first, second, size in same.get_matching_blocks():
        names |= {right[second + at].name: left[first + at].name for at in range(size)}
    return names


def mend(
    subject: Subject,
    *,
    gradient: bool = False,
    domain: str = "relations",
    seconds: float = 60.0,
    only: Set[str] | None = None,
) -> tuple[Subject, list[Guard]]:
    """The model with guards in its text, until none is found that helps. only: the calls that are
    to be mended, where not all are.

    Gives also the guards, in the order in which they were written; their places are in the text as
    it was at the time.
    """
    deadline = time.process_time() + seconds
    used: list[Guard] = []
    for _ in range(_MOST_ROUNDS):
        found = analyse(
            subject.graph, subject.catalog, gradient=gradient, domain=domain, flush=subject.flush
        )
        guards = guards_of(subject, found, gradient=gradient, domain=domain, deadline=deadline)
        new: list[Guard] = []
        edits: tuple[Edit, ...] = ()
        wanted = [g for name, g in guards.items() if only is None or name in only]
        for guard in dict.fromkeys(wanted):
            if apply(subject.text, (*edits, *guard.edits)) is not None:
                new.append(guard)
                edits += guard.edits
        changed = apply(subject.text, edits)
        again = None if changed is None or not new else reread(subject, changed)
        if again is None:
            break
        subject = again
        used += new
    return subject, used
