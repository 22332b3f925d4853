"""The search for witnesses: patterns for all points at once, then a pursuit of each that is left.

Nothing here proves anything: what is found is an input to be shown, and what is not found stays
possible. The same seed finds the same, unless the time runs out first.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from irlang.analysis.confirm import Frameworks, Programs, Shown
from irlang.analysis.patterns import CONSTANT, stored, tries
from irlang.analysis.probe import Probe, probes
from irlang.analysis.pursue import Pursuit, Values
from irlang.analysis.subject import Subject
from irlang.analysis.trace import cone, originates, trace
from irlang.diagnostics import InvalidInput
from irlang.graph import Graph, Node
from irlang.interp.draws import generator, open_values
from irlang.interp.values import Array

_AT_ONCE = 96  # tries by patterns before each point is pursued by itself
_SHARE = 0.4  # of the time that they may take
_STARTS = 24  # tries from which a point is pursued
_PLAINER = 0.25  # of the time, for making what is found plainer
_DRAWS = 3  # draws of what is left open for which a witness has to hold
_DOUBTS = 2  # witnesses of the oracle that no framework shows before a framework is asked itself


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call at which something may go wrong. places: in its equations, as (tensor, function)."""

    node: Node
    places: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Witness:
    """Inputs at which a call gives NaN or infinity although all its operands are finite.

    values: of the inputs that the call hangs on. shown: what a framework gave; None where the
    oracle alone has been asked, or was alone in it.
    """

    values: Values
    shown: Shown | None


@dataclass(slots=True)
class Search:
    """A search over one graph. found: witnesses by the name of the call that goes wrong."""

    subject: Subject
    graph: Graph
    frameworks: Frameworks
    seed: int = 0
    found: dict[str, Witness] = field(default_factory=dict)

    def run(self, wanted: Sequence[Wanted], seconds: float) -> dict[str, Witness]:
        """Looks for inputs that break the calls, as long as there is time."""
        start = time.monotonic()
        programs = Programs(self.subject, self.graph, self.frameworks)
        met = self._patterns(wanted, start + _SHARE * seconds)
        plainer = time.monotonic() + _PLAINER * seconds
        met = [(node, self._plainer(node, values, plainer)) for node, values in met]
        for (node, values), shown in zip(met, programs.confirm(met), strict=True):
            self.found[node.name] = self._witness(node, values, shown)
        left = [one for one in wanted if not self._done(one)]
        for number, one in enumerate(left):
            now = time.monotonic()
            self._pursue(one, now + (start + seconds - now) / (len(left) - number), programs)
        return self.found

    def _done(self, one: Wanted) -> bool:
        witness = self.found.get(one.node.name)
        return witness is not None and witness.shown is not None

    # ---- patterns

    def _patterns(self, wanted: Sequence[Wanted], deadline: float) -> list[tuple[Node, Values]]:
        left = {one.node.name: one.node for one in wanted}
        met: dict[str, tuple[Node, Values]] = {}
        graph = self._cone(left)
        for number, values in enumerate(tries(self.subject.graph, self.seed)):
            if not left or number >= _AT_ONCE or (number and time.monotonic() > deadline):
                break
            found = self._trace(graph, values)
            hits = [name for name, node in left.items() if found and originates(node, found)]
            for name in hits:
                met.setdefault(name, (left[name], values))
                if self._holds(graph, left[name], values):
                    met[name] = left.pop(name), values
            graph = self._cone(left) if hits else graph
        return list(met.values())

    def _cone(self, nodes: Mapping[str, Node]) -> Graph:
        return cone(self.graph, [value for node in nodes.values() for value in node.outputs])

    def _trace(self, graph: Graph, values: Values, draw: int = 0) -> dict[str, Array]:
        """All values, or none where a precondition fails."""
        catalog = self.subject.catalog
        drawn = open_values(graph, draw, catalog)
        try:
            return trace(graph, {**values, **self.subject.fixed, **drawn}, catalog)
        except InvalidInput:
            return {}

    def _holds(self, graph: Graph, node: Node, values: Values) -> bool:
        """Whether a call goes wrong whatever is drawn for what is left open, as far as is tried."""
        draws = range(_DRAWS if open_values(graph, 0, self.subject.catalog) else 1)
        traces = (self._trace(graph, values, draw) for draw in draws)
        return all(found and originates(node, found) for found in traces)

    # ---- pursuit

    def _pursue(self, one: Wanted, deadline: float, programs: Programs) -> None:
        """Climbs from one try after the other, and looks between them, until it is confirmed."""
        catalog = self.subject.catalog
        watched = [
            probe
            for tensor, function in one.places
            for probe in probes(self.graph, one.node, tensor, function, catalog)
        ]
        for number, probe in enumerate(watched):
            now = time.monotonic()
            until = now + (deadline - now) / (len(watched) - number)
            doubts = 0
            for values in self._hits(one.node, probe, until):
                (shown,) = programs.confirm([(one.node, values)])
                if shown is None:
                    self.found.setdefault(one.node.name, self._witness(one.node, values, None))
                    doubts += 1
                    if doubts >= _DOUBTS:
                        break
                    continue
                plain = self._plainer(one.node, values, time.monotonic() + _PLAINER * (until - now))
                (again,) = programs.confirm([(one.node, plain)])
                best = (plain, again) if again else (values, shown)
                self.found[one.node.name] = self._witness(one.node, *best)
                return
            if doubts and probe.own and self._by_framework(one.node, probe, until, programs):
                return

    def _hits(self, node: Node, probe: Probe, deadline: float) -> Iterator[Values]:
        pursuit = Pursuit(self.subject, node, probe, deadline)
        return pursuit.hits(itertools.islice(tries(self.subject.graph, self.seed), _STARTS))

    def _by_framework(self, node: Node, probe: Probe, deadline: float, programs: Programs) -> bool:
        """The same with a framework in the place of the oracle, whose rounding is another."""
        target = programs.first()
        if target is None:
            return False
        own = Programs(self.subject, self._cone({node.name: node}), self.frameworks)
        pursuit = Pursuit(
            self.subject, node, probe, deadline, lambda values: own.values(target, [values])[0]
        )
        starts = itertools.islice(tries(self.subject.graph, self.seed), _STARTS)
        for values in pursuit.hits(starts):
            (shown,) = programs.confirm([(node, values)])
            if shown is not None:
                self.found[node.name] = self._witness(node, values, shown)
                return True
        return False

    # ---- what is found, made readable

    def _witness(self, node: Node, values: Values, shown: Shown | None) -> Witness:
        needed = {name for one in self._cone({node.name: node}).nodes for name in one.operands()}
        return Witness({n: array for n, array in values.items() if n in needed}, shown)

    def _plainer(self, node: Node, values: Values, deadline: float) -> Values:
        """The same trouble from plainer inputs: as many as can be are one number everywhere.

        Inputs that the call does not hang on become the number nearest to zero.
        """
        graph = cone(self.graph, node.outputs)
        needed = {name for one in graph.nodes for name in one.operands()}
        numbers = generator(self.seed, "plainer")
        simple = dict(values)
        for name, (low, high) in self.subject.ranges.items():
            info = self.subject.graph.inputs[name].info
            uniform = values[name].size and np.all(values[name] == values[name].reshape(-1)[0])
            for pattern in CONSTANT if name not in needed or not uniform else ():
                made = stored(pattern(numbers, info.shape, (low, high)), info, (low, high))
                changed = {**simple, name: made}
                if name in needed:
                    if time.monotonic() > deadline:
                        return simple
                    if not self._holds(graph, node, changed):
                        continue
                simple = changed
                break
        return simple
