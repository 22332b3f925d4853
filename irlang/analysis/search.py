"""The search for witnesses: patterns for all points at once, then a pursuit of each that is left.

Nothing here proves anything: what is found is an input to be shown, and what is not found stays
possible. The same seed finds the same, unless the time runs out first.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from irlang.analysis.confirm import Frameworks, Programs, Shown
from irlang.analysis.near import Beside, nearest
from irlang.analysis.patterns import CONSTANT, rounded, stored, tries
from irlang.analysis.probe import Place, Probe, probes
from irlang.analysis.pursue import Pursuit, Values
from irlang.analysis.steps import shaken
from irlang.analysis.subject import Subject
from irlang.analysis.trace import Seen, originates, trace
from irlang.diagnostics import InvalidInput
from irlang.graph import Graph, Node, cone
from irlang.interp.draws import generator, open_values
from irlang.interp.values import Array

_IDLE = 32, 256  # tries by patterns that bring nothing, before each point is pursued by itself:
_WORTH = 10_000_000  # so many that they make these elements, within the two ends
_FEW = 18  # of these for what is safe once an earlier call is mended
_SURE = 18  # of these that are made whatever they bring or take: constants, and a few mixtures
_BEFORE = 0.4  # of the patience, for those after: what is left is for the pursuits
_SLOW = 0.05  # of the patience, for one try of a model, from where on what is near varies alone
_NEAR_BY = 0.3  # of the patience, for each call
_ROUNDS = 4  # of patterns, should a framework not show what is met
_SHARE = 0.4  # of the time that they may take
_PATIENCE = 0.17  # of the time, without a new witness, after which the search ends
_POLE = 4  # times the time, and the starts, for a pole or an end as for a value that is large
_STARTS = 3  # tries from which one of these is pursued
_PLAINER = 0.025  # of the time, for making what is found plainer
_DRAWS = 3  # draws of what is left open for which a witness has to hold
_ATTEMPTS = 3  # pursuits of a pole, each from other starts, while there is time
_FIRST = 0.25  # of the patience, for the first: what is found soon comes before what is hard
_NEIGHBOURS = 8  # tries beside inputs that only the oracle breaks
_ASKED = 40  # tries of a framework alone, at last
_ROUNDED = 48  # and of numbers that rounding alone sets apart
_EDGES = 4  # inputs at the end of a domain beside which a framework is asked
_SPARE = 0.25  # of the time, over it, for a framework to close in on what the oracle has found
_DOUBTS = 2  # witnesses of the oracle that no framework shows before a framework is asked itself


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call at which something may go wrong.

    places: in its equations. follows: whether it is safe once an earlier call is mended; then it is
    pursued only where it has a pole of its own. behind: whether it is judged only then, being
    handed numbers of any size: chance is not given long.
    """

    node: Node
    places: tuple[Place, ...]
    follows: bool = False
    behind: bool = False


@dataclass(frozen=True, slots=True)
class Witness:
    """Inputs at which a call gives NaN or infinity although all its operands are finite.

    values: of the inputs that the call hangs on. shown: what a framework gave; None where the
    oracle alone has been asked, or was alone in it.
    """

    values: Values
    shown: Shown | None


@dataclass(slots=True)
class _Way:
    """What was tried for one thing to watch at a call. climbed: starts, to their ends. doubts:
    witnesses of the oracle that no framework showed.
    """

    climbed: int = 0
    doubts: int = 0


@dataclass(slots=True)
class Search:
    """A search over one graph. found: witnesses by the name of the call that goes wrong."""

    subject: Subject
    graph: Graph
    frameworks: Frameworks
    seed: int = 0
    found: dict[str, Witness] = field(default_factory=dict)
    _end: float = 0.0
    _patience: float = 0.0
    _last: float = 0.0  # when the last witness was found
    _spare: float = 0.0  # what is left of `_SPARE`
    _cold: bool = True  # whether nothing was computed yet
    _open: bool = False  # whether calls leave something open
    _ways: dict[tuple[str, str, str], _Way] = field(default_factory=dict)
    _leaves: dict[str, frozenset[str]] = field(default_factory=dict)  # what values hang on

    def __post_init__(self) -> None:
        self._open = bool(open_values(self.graph, 0, self.subject.catalog))
        for node in self.graph.nodes:
            hung = {self._leaves.get(value, frozenset((value,))) for value in node.operands()}
            on = next(iter(hung)) if len(hung) == 1 else frozenset[str]().union(*hung)
            self._leaves.update(dict.fromkeys(node.outputs, on))

    def clock(self) -> float:
        """Seconds of computing so far, whoever computed."""
        return self.frameworks.clock()

    def run(self, wanted: Sequence[Wanted], seconds: float) -> dict[str, Witness]:
        """Looks for inputs that break the calls; seconds: of computing, at most.

        It ends sooner where nothing new is found for a share of them.
        """
        self._look(wanted, seconds)
        self._ask([one for one in wanted if not (one.follows or one.behind)])
        return self.found

    def _look(self, wanted: Sequence[Wanted], seconds: float) -> None:
        """The same by what the definitions give."""
        start = self._last = self.clock()
        self._end, self._patience = start + seconds, _PATIENCE * seconds
        self._spare = _SPARE * seconds
        plainer = _PLAINER * seconds
        programs = Programs(self.subject, self.graph, self.frameworks)
        source = tries(self.subject.graph, self.seed)
        slight = {one.node.name for one in wanted if one.follows}
        behind = {one.node.name for one in wanted if one.behind}
        most = start + _SHARE * seconds

        def patterns(slight: Set[str], share: float, sure: int = 0) -> None:
            for _ in range(_ROUNDS):
                met = self._patterns(self._left(wanted), slight, source, most, share, sure)
                self._confirm(met, programs, self.clock() + plainer)
                if all(self.found[node.name].shown is not None for node, _ in met):
                    break

        patterns(slight, _BEFORE, _SURE)
        self._near_by(self._left(wanted), programs, plainer)
        open_ = self._left(wanted)
        watched = {one.node.name: self._watched(one) for one in wanted if one.node.name in open_}
        for attempt in range(_ATTEMPTS):
            left = [
                node
                for name, node in self._left(wanted).items()
                if not _is_large(watched[name]) or not (attempt or name in slight)
            ]
            left.sort(key=lambda node: _is_large(watched[node.name]))
            for number, node in enumerate(left):
                now, end = self.clock(), self._limit()
                if now >= end:
                    return
                weights = [1 if _is_large(watched[one.name]) else _POLE for one in left[number:]]
                share = (end - now) * weights[0] / sum(weights)
                until = now + (share if attempt else min(share, _FIRST * self._patience))
                self._pursue(node, watched[node.name], until, plainer, attempt)
        patterns(slight | behind, 1)  # where no step led anywhere, chance has the rest of the time

    def ask(self, wanted: Sequence[Wanted]) -> None:
        """Looks for inputs by a framework alone, where the definitions are finite for all."""
        self._ask(wanted)

    def _ask(self, wanted: Sequence[Wanted]) -> None:
        """Asks a framework alone, which may be finite where the definitions are and yet come to an
        end sooner: its logistic function is 0 where that is still a small number. For what is large
        the ends of ranges tell as much.
        """
        left = self._left(wanted)
        if not left:
            return
        graph = self._cone(left)
        if _idle(graph) < _ASKED:
            return
        programs = Programs(self.subject, graph, self.frameworks)
        large = all(_is_large(self._watched(one)) for one in wanted if one.node.name in left)
        count = _SURE if large else _ASKED
        starts = list(itertools.islice(tries(self.subject.graph, self.seed), count))
        if not large:
            starts += itertools.islice(rounded(self.subject.graph, self.seed), _ROUNDED)
        pairs = [(node, values) for node in left.values() for values in starts]
        for (node, values), shown in zip(pairs, programs.confirm(pairs), strict=True):
            before = self.found.get(node.name)
            if shown is not None and (before is None or before.shown is None):
                self.found[node.name] = self._witness(node, values, shown)

    def elsewhere(self) -> dict[str, Witness]:
        """What was found, with what other frameworks show where the first shows nothing: one may
        keep more digits between the calls of a model in half precision than another.
        """
        unshown = {name: one for name, one in self.found.items() if one.shown is None}
        if unshown and not self.frameworks.named:
            nodes = {node.name: node for node in self.graph.nodes}
            programs = Programs(self.subject, self.graph, self.frameworks)
            # a witness has no more than the call hangs on, and a program wants all inputs
            rest = next(tries(self.subject.graph, self.seed))
            pairs = [(nodes[name], {**rest, **one.values}) for name, one in unshown.items()]
            asked = programs.confirm(pairs, others=True)
            for (name, one), shown in zip(unshown.items(), asked, strict=True):
                self.found[name] = Witness(one.values, shown)
        return self.found

    def _limit(self) -> float:
        """When the search ends, unless something is found before."""
        return min(self._end, self._last + self._patience)

    def _left(self, wanted: Sequence[Wanted]) -> dict[str, Node]:
        """The calls for which nothing is shown yet."""
        nodes = {one.node.name: one.node for one in wanted}
        done = {name for name, witness in self.found.items() if witness.shown is not None}
        return {name: node for name, node in nodes.items() if name not in done}

    def _confirm(
        self, met: Sequence[tuple[Node, Values]], programs: Programs, deadline: float
    ) -> None:
        """Keeps what is met, plainer where that does the same."""
        shown = programs.confirm(met)
        plain = [
            (node, values if one is None else self._plainer(node, values, deadline))
            for (node, values), one in zip(met, shown, strict=True)
        ]
        pairs = zip(met, plain, strict=True)
        changed = [at for at, ((_, values), (_, other)) in enumerate(pairs) if other is not values]
        asked = programs.confirm([plain[at] for at in changed])
        again = dict(zip(changed, asked, strict=True))
        for at, ((node, values), one) in enumerate(zip(met, shown, strict=True)):
            then = again.get(at)
            best = (plain[at][1], then) if then is not None else (values, one)
            self.found[node.name] = self._witness(node, *best)
            if best[1] is not None:
                self._last = self.clock()

    # ---- patterns

    def _patterns(
        self,
        left: dict[str, Node],
        slight: Set[str],
        source: Iterator[Values],
        deadline: float,
        share: float,
        sure: int,
    ) -> list[tuple[Node, Values]]:
        """The next tries, until they have brought nothing for a while; slight: soon for these.

        share: of the patience that they may take, but for the first so many, sure, which are made
        as long as there is any time: they are few, and slow where the model or the machine is.
        """
        met: dict[str, tuple[Node, Values]] = {}
        graph = self._cone(left)
        idle, most = 0, _idle(graph)
        while left and idle < (most if left.keys() - slight else _FEW):
            end = min(deadline, self._last + share * self._patience) if idle > sure else self._end
            if idle and self.clock() >= end:
                break
            values = next(source)
            idle += 1
            before = self.clock()
            found = self._trace(graph, values)
            if self._cold:  # kernels were compiled, or loaded, which is no part of the search
                spent, self._cold = self.clock() - before, False
                self._end, self._last, deadline = (
                    moment + spent for moment in (self._end, self._last, deadline)
                )
            hits = [name for name, node in left.items() if found and self._breaks(node, found)]
            for name in hits:
                idle = 0
                met.setdefault(name, (left[name], values))
                if self._holds(graph, left[name], values):
                    met[name] = left.pop(name), values
            graph = self._cone(left) if hits else graph
        return list(met.values())

    def _near_by(self, left: Mapping[str, Node], programs: Programs, plainer: float) -> None:
        """Tries for calls of a model that takes long to compute: only inputs near a call vary."""
        began = self.clock()
        most = min(self._end, began + self._patience)
        for node in left.values():
            graph = self._cone({node.name: node})
            near = nearest(graph, self.subject.ranges, self._leaves)
            if not near or self.clock() >= most:
                continue
            beside = Beside(self.subject.graph, near, self.seed, _idle(graph), self.clock)
            pace = _SLOW * self._patience, _NEAR_BY * self._patience
            for values, found in beside.traces(partial(self._trace, graph), *pace):
                if found and self._breaks(node, found) and self._holds(graph, node, values):
                    self._confirm([(node, values)], programs, self.clock() + plainer)
                    break
        self._last = max(self._last, min(self._last + self.clock() - began, self.clock()))

    def _cone(self, nodes: Mapping[str, Node]) -> Graph:
        return cone(self.graph, [value for node in nodes.values() for value in node.outputs])

    def _trace(
        self, graph: Graph, values: Values, draw: int = 0, *, seen: Seen | None = None
    ) -> dict[str, Array]:
        """All values, or none where a precondition fails. seen: as of `trace`."""
        catalog = self.subject.catalog
        drawn = open_values(graph, draw, catalog)
        try:
            return trace(graph, {**values, **self.subject.fixed, **drawn}, catalog, seen)
        except InvalidInput:
            return {}

    def _breaks(self, node: Node, found: Mapping[str, Array]) -> bool:
        return originates(node, found, self.subject.endless) is not None

    def _holds(self, graph: Graph, node: Node, values: Values) -> bool:
        """Whether a call that goes wrong does so whatever else is drawn for what is left open, as
        far as is tried.
        """
        draws = range(1, _DRAWS if self._open else 1)
        traces = (self._trace(graph, values, draw) for draw in draws)
        return all(found and self._breaks(node, found) for found in traces)

    # ---- pursuit

    def _watched(self, one: Wanted) -> list[Probe]:
        """What to watch for a call: first what has a pole or an end, then how large results are."""
        catalog = self.subject.catalog
        found = [
            probe for place in one.places for probe in probes(self.graph, one.node, place, catalog)
        ]
        unique = {(probe.goal, probe.value if probe.own else id(probe)): probe for probe in found}
        return sorted(unique.values(), key=lambda probe: probe.goal == "large")

    def _pursue(
        self,
        node: Node,
        watched: Sequence[Probe],
        deadline: float,
        plainer: float,
        attempt: int,
    ) -> None:
        """Climbs from one try after the other, and looks between them, until it is confirmed."""
        # what the call hangs on is all that a framework has to compute
        programs = Programs(self.subject, self._cone({node.name: node}), self.frameworks)
        for number, probe in enumerate(watched):
            now = self.clock()
            weights = [1 if one.goal == "large" else _POLE for one in watched[number:]]
            until = now + (deadline - now) * weights[0] / sum(weights)
            way = self._ways.setdefault((node.name, probe.goal, probe.value), _Way())
            doubts = 0
            pursuit = Pursuit(self.subject, node, probe, until, clock=self.clock)
            for values in pursuit.hits(self._starts(node, probe, way.climbed)):
                (shown,) = programs.confirm([(node, values)])
                sure: Values | None = values
                if shown is None:
                    self.found.setdefault(node.name, self._witness(node, values, None))
                    sure = self._beside(node, probe, pursuit, programs)
                    if sure is None and not doubts:
                        sure = self._near(node, [values], programs)
                if sure is None:
                    doubts += 1
                    if doubts >= _DOUBTS:
                        break
                    continue
                self._confirm([(node, sure)], programs, self.clock() + plainer)
                return
            way.climbed += pursuit.climbed
            way.doubts += doubts
            edges = pursuit.near[-_EDGES:]
            at_end = self._near(node, edges, programs) if edges else None
            if at_end is not None:
                self._confirm([(node, at_end)], programs, self.clock() + plainer)
                return
            if not (attempt and way.doubts and probe.own):  # a framework takes time: not at first
                continue
            if self._by_framework(node, probe, deadline, programs):
                return

    def _near(self, node: Node, places: Sequence[Values], programs: Programs) -> Values | None:
        """Inputs beside those that the oracle breaks, or nearly, at which a framework breaks: it
        rounds in another order, so that the exact place is next to that.
        """
        numbers = generator(self.seed, "near")
        tries_ = [
            shaken(self.subject, values, numbers) for values in places for _ in range(_NEIGHBOURS)
        ]
        shown = programs.confirm([(node, one) for one in tries_])
        broken = [one for one, made in zip(tries_, shown, strict=True) if made is not None]
        graph = self._cone({node.name: node})
        both = (one for one in broken if self._breaks(node, self._trace(graph, one)))
        return next(both, broken[0] if broken else None)

    def _starts(self, node: Node, probe: Probe, first: int = 0) -> Iterator[Values]:
        """The tries from which one attempt climbs. first: how many earlier ones had."""
        wanted = {name for one in self._cone({node.name: node}).nodes for name in one.operands()}
        count = _STARTS * (1 if probe.goal == "large" else _POLE)
        source = tries(self.subject.graph, self.seed, wanted)
        return itertools.islice(source, first, first + count)

    def _beside(
        self, node: Node, probe: Probe, pursuit: Pursuit, programs: Programs
    ) -> Values | None:
        """Inputs at which a framework breaks, where the oracle has closed in on its own."""
        crossing, start = pursuit.crossing, self.clock()
        other = self._framework(node, probe, max(pursuit.deadline, start + self._spare), programs)
        if crossing is None or other is None:
            return None
        found = other.close_in(crossing)
        self._spare -= max(0.0, self.clock() - max(pursuit.deadline, start))
        return found

    def _framework(
        self, node: Node, probe: Probe, deadline: float, programs: Programs
    ) -> Pursuit | None:
        """A pursuit with a framework in the place of the oracle, whose rounding is another."""
        target = programs.first()
        if target is None:
            return None
        return Pursuit(
            self.subject, node, probe, deadline,
            lambda values: programs.values(target, [values])[0], self.clock,
        )  # fmt: skip

    def _by_framework(self, node: Node, probe: Probe, deadline: float, programs: Programs) -> bool:
        """The same by a framework alone."""
        pursuit = self._framework(node, probe, deadline, programs)
        if pursuit is None:
            return False
        for values in pursuit.hits(self._starts(node, probe)):
            (shown,) = programs.confirm([(node, values)])
            if shown is not None:
                self.found[node.name] = self._witness(node, values, shown)
                self._last = self.clock()
                return True
        return False

    # ---- what is found, made readable

    def _witness(self, node: Node, values: Values, shown: Shown | None) -> Witness:
        needed = self._leaves[node.outputs[0]]
        return Witness({n: array for n, array in values.items() if n in needed}, shown)

    def _plainer(self, node: Node, values: Values, deadline: float) -> Values:
        """The same trouble from plainer inputs: as many as can be are one number everywhere.

        Inputs that the call does not hang on become the number nearest to zero. Where nothing
        is plainer, or there is no time, the very same inputs.
        """
        if self.clock() > deadline:
            return values
        graph, needed = cone(self.graph, node.outputs), self._leaves[node.outputs[0]]
        numbers = generator(self.seed, "plainer")
        simple = values
        for name, (low, high) in self.subject.ranges.items():
            info = self.subject.graph.inputs[name].info
            uniform = values[name].size and np.all(values[name] == values[name].reshape(-1)[0])
            for pattern in CONSTANT if name not in needed or not uniform else ():
                made = stored(pattern(numbers, info.shape, (low, high)), info, (low, high))
                changed = {**simple, name: made}
                if name in needed:
                    if self.clock() > deadline:
                        return simple
                    found = self._trace(graph, changed)
                    if not (found and self._breaks(node, found)):
                        continue
                simple = changed
                break
        return simple


def _idle(graph: Graph) -> int:
    """How many tries may bring nothing: fewer for a larger graph."""
    elements = sum(math.prod(info.shape) for info in graph.values.values())
    return max(_IDLE[0], min(_IDLE[1], _WORTH // max(1, elements)))


def _is_large(watched: Sequence[Probe]) -> bool:
    """Whether there is nothing to watch but how large results are."""
    return all(probe.goal == "large" for probe in watched)
