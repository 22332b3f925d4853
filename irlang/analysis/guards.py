"""Guards: edits of the text after which the analysis proves a call safe.

Nothing is proposed that was not tried: the edited text is checked and analysed anew, the call must
be safe there, and nothing else may have become unsafe.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from irlang.adjoint_graph import PREFIX
from irlang.analysis.rules import Rewriting, rewritings, rules, written
from irlang.analysis.subject import Subject, reread
from irlang.diagnostics import Edit
from irlang.dtypes import DTYPES
from irlang.edits import apply
from irlang.interp.range import Analysis, Point, analyse
from irlang.parser import parse


@dataclass(frozen=True, slots=True)
class Guard:
    """An edit of the text after which a call is safe.

    text: the call as it is then. why: what the edit does. settles: the names of all points' calls
    that are safe with it and were not before: what followed from this call, too.
    """

    text: str
    why: str
    edits: tuple[Edit, ...]
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
    subject: Subject,
    found: Analysis,
    *,
    gradient: bool,
    domain: str,
    deadline: float,
    first: bool = False,
) -> dict[str, Guard]:
    """A guard for every call that has a point which is not safe, where one is found in time.

    first: whether one is enough. A call and its gradient share their guard.
    """
    before = unsafe(found.points)
    if not before or not subject.text:
        return {}
    fitting = _fitting(subject, found)
    guards: dict[str, Guard] = {}
    tried: dict[tuple[Edit, ...], frozenset[str]] = {}
    for node in subject.source.nodes:
        own = {name for name in before if name in (node.name, PREFIX + node.name)}
        for one in fitting.get(node.name, ()) if own else ():
            if time.monotonic() > deadline:
                return guards
            if one.edits not in tried:
                tried[one.edits] = _settled(subject, one.edits, set(before), gradient, domain)
            if own <= tried[one.edits]:
                guard = Guard(one.text, one.rule.why, one.edits, tried[one.edits])
                guards.update(dict.fromkeys(own, guard))
                break
        if first and guards:
            break
    return guards


def _fitting(subject: Subject, found: Analysis) -> dict[str, list[Rewriting]]:
    """The rewritings that a call takes part in, by its name, in the order of the rules."""
    graph = subject.source
    text = written(graph, parse(subject.text, subject.file))
    fitting: dict[str, list[Rewriting]] = {}
    for node in graph.nodes:
        real = [graph.values[name].dtype for name in (*node.operands(), *node.outputs)]
        dtype = next((d for d in real if DTYPES[d].kind == "real"), "f32")
        for one in rewritings(node, text, DTYPES[dtype], found.values):
            for met in one.met:
                fitting.setdefault(met.name, []).append(one)
    places = {id(rule): number for number, rule in enumerate(rules())}
    for ones in fitting.values():
        ones.sort(key=lambda one: places[id(one.rule)])
    return fitting


def _settled(
    subject: Subject,
    edits: Sequence[Edit],
    before: set[str],
    gradient: bool,
    domain: str,
) -> frozenset[str]:
    """What is safe after the edits and was not before; nothing if anything else is worse."""
    changed = apply(subject.text, edits)
    again = None if changed is None else reread(subject, changed)
    if again is None:
        return frozenset()
    points = analyse(again.graph, again.catalog, gradient=gradient, domain=domain).points
    after = unsafe(points).keys()
    return frozenset() if after - before else frozenset(before - after)


def mend(
    subject: Subject, *, gradient: bool = False, domain: str = "relations", seconds: float = 60.0
) -> tuple[Subject, list[Guard]]:
    """The model with one guard after the other in its text, until none is found that helps.

    Gives also the guards, in the order in which they were written; their places are in the text as
    it was at the time.
    """
    deadline = time.monotonic() + seconds
    used: list[Guard] = []
    while True:
        found = analyse(subject.graph, subject.catalog, gradient=gradient, domain=domain)
        guards = guards_of(
            subject, found, gradient=gradient, domain=domain, deadline=deadline, first=True
        )
        if not guards:
            return subject, used
        guard = next(iter(guards.values()))
        changed = apply(subject.text, guard.edits)
        again = None if changed is None else reread(subject, changed)
        assert again is not None  # it was tried
        subject = again
        used.append(guard)
