"""Tries in which little varies, for models that take long to compute: the weights and the bias of a
last layer, behind many layers or steps.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from irlang.analysis.patterns import HIGH, ZERO, tries
from irlang.analysis.trace import Seen
from irlang.graph import Graph
from irlang.interp.values import Array

_SHARE = 0.25  # of the calls, at most, hang on an input that is near

Values = dict[str, Array]


def nearest(
    graph: Graph, inputs: Collection[str], leaves: Mapping[str, frozenset[str]]
) -> set[str]:
    """The inputs on which fewest calls hang; none where these are more than a share of the calls.

    leaves: what the values of the graph hang on.
    """
    hung = dict.fromkeys(inputs, 0)
    for node in graph.nodes:
        for name in leaves[node.outputs[0]]:
            if name in hung:
                hung[name] += 1
    fewest = min((count for count in hung.values() if count), default=0)
    most = min(fewest + 1, _SHARE * len(graph.nodes))
    return {name for name, count in hung.items() if 0 < count <= most}


@dataclass(frozen=True, slots=True)
class Beside:
    """Tries of the inputs that are near, among others that are what is largest in their ranges, or
    next to zero: what hangs on these is computed once.

    most: so many of them.
    """

    graph: Graph
    near: set[str]
    seed: int
    most: int
    clock: Callable[[], float]

    def traces(
        self, trace: Callable[..., Mapping[str, Array]], slow: float, seconds: float
    ) -> Iterator[tuple[Values, Mapping[str, Array]]]:
        """What is tried, and what comes of it; nothing where one try takes less than is slow.

        seconds: for the tries among others that stay, at most.
        """
        for rest in (HIGH, ZERO):
            seen: Seen = {}
            source = itertools.islice(tries(self.graph, self.seed, self.near, rest), self.most)
            start = self.clock()
            trace(next(source), seen=seen)
            if self.clock() - start < slow:
                return
            end = self.clock() + seconds
            for values in source:
                yield values, trace(values, seen=seen)
                if self.clock() >= end:
                    break
