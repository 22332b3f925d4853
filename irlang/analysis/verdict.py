"""The verdict on every call: safe, reachable with a witness, or possible."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from irlang import equations as eq
from irlang.adjoint_graph import Pullback, gradient_graph, prepare
from irlang.analysis.confirm import Frameworks
from irlang.analysis.guards import Guard, guards_of
from irlang.analysis.probe import Place
from irlang.analysis.search import Search, Wanted, Witness
from irlang.analysis.subject import Subject
from irlang.diagnostics import NOWHERE, Span
from irlang.dtypes import DTYPES
from irlang.graph import Graph, Node
from irlang.interp.range import Analysis, Granted, Point, analyse
from irlang.scalar import SCALARS

SECONDS = 4.5  # for all witnesses of a model, unless something else is said
# Seconds in which guards are tried: so many times what the analysis took, each being one more.
_GUARDS, _FEWEST, _FEWEST_OF_GRADIENTS, _MOST = 2.5, 0.4, 3.0, 4.0
_ONE = 1.5  # and what one trial may take, as many times; none is begun that would not be over


@dataclass(frozen=True, slots=True)
class Report:
    """A call at which NaN or infinity may originate.

    point: the first of its places that are not safe. node: what it was called in the model that
    was imported. call: its name in the text. witness: inputs that reach it; its `shown` is what a
    framework gave, without which the verdict stays `possible`. guard: an edit that makes it safe.
    because: the call before it whose guard makes this one safe too, or whose results may be of any
    size, so that this one can be judged only when that one is mended.
    """

    point: Point
    node: str
    call: str
    span: Span = NOWHERE
    witness: Witness | None = None
    guard: Guard | None = None
    because: str = ""

    @property
    def status(self) -> str:
        """`reachable` or `possible`."""
        shown = self.witness is not None and self.witness.shown is not None
        return "reachable" if shown else "possible"


@dataclass(frozen=True, slots=True)
class Verdicts:
    """All that is said of a model.

    safe: the points that were proved safe. granted: what calls require of numbers and are taken to
    have. left_open: the calls of which a definition leaves open which integers some numbers become.
    tried: whether guards were, for which a model has to be analysed anew; not where that takes too
    long. gradient: whether the gradients were analysed.
    """

    subject: Subject
    reports: tuple[Report, ...]
    safe: tuple[Point, ...]
    seconds: float
    tried: bool = True
    granted: tuple[Granted, ...] = ()
    left_open: tuple[str, ...] = ()
    gradient: bool = False

    def __str__(self) -> str:
        """As `irlang analyze` shows it."""
        from irlang.analysis.report import conclusion, diagnostics
        from irlang.render import text_of

        shown = diagnostics(self)
        sources = {self.subject.file: self.subject.text}
        return f"{text_of(shown, sources)}\n" * bool(shown) + "\n".join(conclusion(self))


@dataclass(frozen=True, slots=True)
class _Flushed:
    """A model whose denormal numbers may be 0. points: those that are not safe for that reason."""

    subject: Subject
    found: Analysis
    points: tuple[Point, ...]


def verdicts(
    subject: Subject,
    frameworks: Frameworks,
    *,
    gradient: bool = False,
    domain: str = "relations",
    seconds: float = SECONDS,
    seed: int = 0,
) -> Verdicts:
    """Analyses a model, and looks for a witness for every point that is not proved safe.

    gradient: whether the gradient is analysed as well (of the loss, or else of the sum of all
    results). domain: one of `irlang.interp.range.DOMAINS`. seconds: for the search, at most.
    """
    start, computed = time.monotonic(), time.process_time()
    found = analyse(
        subject.graph, subject.catalog, gradient=gradient, domain=domain, flush=subject.flush
    )
    subject = replace(subject, endless=found.endless)
    points = found.points
    near = _next_to_zero(subject, found, gradient, domain)
    lost = frozenset(point.node for point in near.points) if near else frozenset[str]()
    if near:
        points = tuple(p for p in points if p.node not in lost) + near.points
    whole = subject.graph
    if gradient:
        whole = gradient_graph(prepare(subject.graph, subject.catalog)).graph
    reports = _reports(subject, whole, points)
    tried = True
    if reports:
        frameworks.start()
        now = time.process_time()
        took = now - computed
        fewest = _FEWEST_OF_GRADIENTS if gradient else _FEWEST
        most = min(max(fewest, _GUARDS * took), _MOST)
        guards: dict[str, Guard] = {}
        tried = _ONE * took <= _MOST
        if tried and len(lost) < len(reports):
            guards = guards_of(
                subject, found, gradient=gradient, domain=domain, deadline=now + most
            )
        reports = _witnessed(
            subject, whole, points, reports, guards, frameworks, lost, seconds, seed
        )
        reports = [r for r in reports if r.status == "reachable" or r.point.node not in lost]
        broken = lost & {report.point.node for report in reports}
        if near and broken:
            subject = near.subject
            if tried:
                deadline = time.process_time() + most
                more = guards_of(
                    subject, near.found, gradient=gradient, domain=domain, deadline=deadline
                )
                guards |= {name: guard for name, guard in more.items() if name in broken}
        reports = _with_guards(reports, guards, whole)
    named = {report.point.node for report in reports}
    safe = tuple(p for p in found.points if p.status == "safe" and p.node not in named & lost)
    took_all = time.monotonic() - start
    return Verdicts(
        subject, tuple(reports), safe, took_all, tried, found.granted, found.left_open, gradient
    )


def _next_to_zero(
    subject: Subject, found: Analysis, gradient: bool, domain: str
) -> _Flushed | None:
    """What is not safe where frameworks have 0 for a number below the smallest normal one, or for
    a value of a function that their libraries lose; None where nothing that decides comes so near
    to 0, or all is safe.
    """
    tiny = max((DTYPES[info.dtype].tiny for info in subject.graph.values.values()), default=0.0)
    tiny = max(tiny, _lost(subject, found))
    near = any(0 < p.operand.low < tiny or -tiny < p.operand.high < 0 for p in found.points)
    if subject.flush or not near:
        return None
    subject = replace(subject, flush=True)
    flushed = analyse(subject.graph, subject.catalog, gradient=gradient, domain=domain, flush=True)
    known = {point.node for point in found.points if point.status != "safe"}
    points = tuple(p for p in flushed.points if p.status != "safe" and p.node not in known)
    return _Flushed(subject, flushed, points) if points else None


def _lost(subject: Subject, found: Analysis) -> float:
    """The size below which a library may give 0 for what a call gives, which is not 0."""
    small = [
        (node, size)
        for node in subject.graph.nodes
        if (size := min(found.values[name].low for name in node.outputs)) > 0
    ]
    lost = (
        (SCALARS[part.function].lost, size)
        for node, size in small
        for equation in node.expansion(subject.catalog).equations
        for part in eq.walk(equation.body)
        if isinstance(part, eq.Apply)
    )
    return max((most for most, size in lost if size < most), default=0.0)


def _with_guards(
    reports: Sequence[Report], guards: Mapping[str, Guard], graph: Graph
) -> list[Report]:
    """The reports with their guards; those that nothing reaches under what they follow from."""
    found: list[Report] = []
    makers = {value: node for node in graph.nodes for value in node.outputs}
    for report in reports:
        name = report.point.node
        because = ""
        if report.status == "possible":
            before = (r for r in found if r.guard and name in r.guard.settles and not r.because)
            because = next((r.call for r in before if r.point.node != name), "")
            if not because and report.point.after:
                because = _behind(report.point.after, {r.point.node: r for r in found}, makers)
        found.append(replace(report, guard=guards.get(name), because=because))
    return found


def _behind(value: str, reports: Mapping[str, Report], makers: Mapping[str, Node]) -> str:
    """The nearest call on which a value hangs that is reported."""
    waiting, seen = [value], set[int]()
    while waiting:
        node = makers.get(waiting.pop(0))
        if node is None or id(node) in seen:
            continue
        if node.name in reports:
            return reports[node.name].call
        seen.add(id(node))
        waiting += node.operands()
    return ""


def _reports(subject: Subject, graph: Graph, points: Sequence[Point]) -> list[Report]:
    """One report for every call that has a point which is not safe."""
    nodes = {node.name: node for node in graph.nodes}
    found: dict[str, Report] = {}
    for point in points:
        if point.status != "safe" and point.node not in found:
            node = nodes[point.node]
            own = node.forward if isinstance(node, Pullback) and node.forward else node
            span = own.span._replace(file=own.span.file or subject.file)
            found[point.node] = Report(point, subject.called(own.name), own.name, span)
    return [found[name] for name in nodes if name in found]


def _witnessed(
    subject: Subject,
    graph: Graph,
    points: Sequence[Point],
    reports: list[Report],
    guards: Mapping[str, Guard],
    frameworks: Frameworks,
    lost: Set[str],
    seconds: float,
    seed: int,
) -> list[Report]:
    """The reports with what the search finds: first of the forward stage, which is the smaller.

    lost: the calls that only what a framework makes 0 can break.
    """
    nodes: dict[str, Node] = {node.name: node for node in graph.nodes}
    places: dict[str, dict[Place, None]] = {}
    for point in points:
        if point.status != "safe":
            place = Place(point.tensor, point.function, point.operand)
            places.setdefault(point.node, {})[place] = None
    follow = {name for name, guard in guards.items() if name not in guard.owns}
    own = {point.node for point in points if point.status != "safe" and not point.after}
    found: dict[str, Witness] = {}
    left = seconds
    frameworks.restart()
    for stage, whole in (("forward", subject.graph), ("gradient", graph)):
        wanted = [
            Wanted(nodes[name], tuple(there), name in follow, name not in own)
            for name, there in places.items()
            if isinstance(nodes[name], Pullback) == (stage == "gradient")
        ]
        if wanted:
            start = frameworks.clock()
            search = Search(subject, whole, frameworks, seed)
            search.run([one for one in wanted if one.node.name not in lost], left)
            search.ask([one for one in wanted if one.node.name in lost])
            found.update(search.elsewhere())
            left = max(0.0, left - (frameworks.clock() - start))
    return [replace(report, witness=found.get(report.point.node)) for report in reports]
