"""Witnesses run by an installed framework, every value between shown.

What counts is what the framework itself had: the call gives NaN or infinity there, all that it was
fed is finite, and the definition, computed from the very same operands, is not finite either, or
would not be in the type that it is computed in.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

import numpy as np

from irlang.analysis.element import fed
from irlang.analysis.subject import Subject
from irlang.analysis.trace import is_finite, originates, results
from irlang.diagnostics import InvalidInput
from irlang.graph import Graph, Node, cone
from irlang.interp.draws import open_values
from irlang.interp.plain import load
from irlang.interp.stepwise import evaluated
from irlang.interp.values import Array
from irlang.lower.lower import Lowered, lower
from irlang.lower.pool import Limits, Program, Result, Worker, WorkerError
from irlang.lower.target import require_installed, usual

_MOMENT = 0.01  # seconds that tell nothing of how busy a machine is
_DRAWS = 5  # runs of a model that draws numbers
_ORDER = ("onnxruntime", "torch", "tf")  # the one that starts soonest first


@dataclass(frozen=True, slots=True)
class Shown:
    """What a framework gave. value: what is not finite there; index: where the first of it is. fed:
    the operands of that element, where it is computed from one element of each.
    """

    target: str
    version: str
    result: str
    index: tuple[int, ...]
    value: float
    fed: tuple[float, ...] | None = None


def _default_targets() -> tuple[str, ...]:
    """The installed frameworks, the one that starts soonest first."""
    return tuple(sorted(usual(), key=lambda n: _ORDER.index(n) if n in _ORDER else len(_ORDER)))


@dataclass(slots=True)
class Frameworks:
    """Workers for the targets, which start when they are first needed and serve many analyses.

    named: whether the targets were named, so that each of them is to be asked. spent: seconds that
    they have computed.
    """

    targets: Sequence[str] = field(default_factory=_default_targets)
    named: bool = False
    limits: Limits = field(default_factory=Limits)
    spent: float = 0.0
    _workers: dict[str, Worker] = field(default_factory=dict)
    _since: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def clock(self) -> float:
        """Seconds of computing, by this process and by the frameworks that it waits for.

        Those of a framework count half, and less on a machine that is in use: there it waits for a
        processor as long as this process does.
        """
        computed, now, spent = self._since
        own, waited = time.process_time() - computed, self.spent - spent
        passed = time.monotonic() - now - waited
        share = min(1.0, own / passed) if passed > _MOMENT else 1.0
        return computed + own + 0.5 * share * waited

    def restart(self) -> None:
        """From here on the clock sees how busy the machine is."""
        self._since = time.process_time(), time.monotonic(), self.spent

    def run(self, name: str, programs: Sequence[Program]) -> list[Result]:
        """What a target gives for some programs; nothing where it cannot be started."""
        worker = self.worker(name)
        try:
            worker.hello()  # it may still be starting, which is no part of the search
            start = time.monotonic()
            answers = worker.submit(programs)
        except WorkerError:
            return []
        self.spent += time.monotonic() - start
        return answers

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for worker in self._workers.values():
            worker.close()

    def start(self) -> None:
        """Lets the first begin to start; it does not wait."""
        for name in self.targets[:1]:
            self.worker(name).start()

    def worker(self, name: str) -> Worker:
        """The worker of a target."""
        if name not in self._workers:
            self._workers[name] = Worker(require_installed(name).worker, self.limits)
        return self._workers[name]


@dataclass(slots=True)
class Programs:
    """The programs of one graph for the targets, each made when it is first asked for."""

    subject: Subject
    graph: Graph
    frameworks: Frameworks
    _lowered: dict[str, Lowered] = field(default_factory=dict)

    def lowered(self, target: str) -> Lowered:
        """The program that shows every value of the graph."""
        if target not in self._lowered:
            self._lowered[target] = lower(
                shown(self.graph), target, self.subject.catalog, self.subject.fixed
            )
        return self._lowered[target]

    def confirm(
        self, wanted: Sequence[tuple[Node, Mapping[str, Array]]], *, others: bool = False
    ) -> list[Shown | None]:
        """For every call and the inputs that should break it: what a framework gives there.

        The first that can run the graph is asked, or all that were named, until one shows it;
        `others` asks those behind the first. Where the model draws numbers, it is asked a few
        times.
        """
        if not wanted:
            return []  # for which no program need be written
        if not others and self.first() is None:
            return [self._alone(node, values) for node, values in wanted]
        found: list[Shown | None] = [None] * len(wanted)
        times = _DRAWS if open_values(self.graph, 0, self.subject.catalog) else 1
        able = (t for t in self.frameworks.targets if not self.lowered(t).unsupported)
        ends = (1, None) if others else (0, None if self.frameworks.named else 1)
        for target in itertools.islice(able, *ends):
            for _ in range(times):
                left = [number for number, one in enumerate(found) if one is None]
                # inputs that break many calls are run once for all of them
                apart = {id(wanted[number][1]): wanted[number][1] for number in left}
                made = self.values(target, list(apart.values())) if left else []
                had = dict(zip(apart, made, strict=True))
                for number in left:
                    node, values = wanted[number]
                    found[number] = self._judge(node, had[id(values)], target)
        return found

    def _alone(self, node: Node, values: Mapping[str, Array]) -> Shown | None:
        """A call with what it hangs on alone, where no framework can run the whole graph."""
        part = cone(self.graph, node.outputs)
        if len(part.nodes) == len(self.graph.nodes):
            return None
        return Programs(self.subject, part, self.frameworks).confirm([(node, values)])[0]

    def values(self, target: str, tries: Sequence[Mapping[str, Array]]) -> list[dict[str, Array]]:
        """Every value as a framework has it, for some inputs; what it does not give is missing."""
        made = self.lowered(target)
        names = shown(self.graph).outputs
        programs = [Program(made.kind, made.code, dict(given), made.params) for given in tries]
        answers = self.frameworks.run(target, programs)
        if not answers:
            return [{} for _ in tries]  # a target that cannot be started confirms nothing
        found = []
        for given, answer in zip(tries, answers, strict=True):
            own = {names[n]: np.asarray(a) for n, a in answer.outputs.items()}
            found.append({**given, **self.subject.fixed, **own})
        return found

    def first(self) -> str | None:
        """The first target that can run the graph."""
        able = (t for t in self.frameworks.targets if not self.lowered(t).unsupported)
        return next(able, None)

    def _judge(self, node: Node, given: Mapping[str, Array], target: str) -> Shown | None:
        if not all(name in given for name in node.operands()):
            return None
        bad = originates(node, given, self.subject.endless)
        if bad is None:
            return None
        loaded = {n: load(self.graph.values[n], given[n]) for n in node.operands()}
        if not self._breaks(node, loaded):
            return None  # the framework's own doing
        numbers = np.asarray(given[bad]).astype(np.float64)
        given_endless = not all(is_finite(given[name]) for name in node.operands())
        wrong = np.isnan(numbers) if given_endless else ~np.isfinite(numbers)
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        version = self.frameworks.worker(target).hello().version
        own_operands = fed(node, bad, at, loaded, self.subject.catalog)
        return Shown(target, version, bad, at, float(numbers[at]), own_operands)

    def _breaks(self, node: Node, given: Mapping[str, Array]) -> bool:
        """Whether the definition is not finite either: its value, or that of its operations, each
        rounded to its type, one of which may overflow though what is made of it would be finite.
        """
        catalog, endless = self.subject.catalog, self.subject.endless
        try:
            own = results(node, given, self.graph, catalog)
            if originates(node, {**given, **own}, endless) is not None:
                return True
            own = evaluated(node, given, catalog)
            return originates(node, {**given, **own}, endless) is not None
        except InvalidInput:
            return False


def shown(graph: Graph) -> Graph:
    """The graph with every value that a call gives, and anything reads, among its results."""
    read = {name for node in graph.nodes for name in node.operands()} | {*graph.outputs.values()}
    outputs: dict[str, str] = {}
    for node in graph.nodes:
        own = [value for value in node.outputs if value in read] or node.outputs[:1]
        outputs.update((value, value) for value in own)
    return replace(graph, outputs=outputs)
