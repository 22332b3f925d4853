"""What evaluating a call forwards leaves for its gradient: tensors that need no second evaluation.

The adjoint equations of a call begin with its own, as far as derivatives read them. With a tape,
what those define is an input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.adjoint_graph import Backward, Step
from irlang.graph import Graph
from irlang.instance import Definitions

Array = np.ndarray[Any, np.dtype[Any]]
Evaluate = Callable[[Any, Mapping[str, Any]], dict[str, Any]]


class Tape:
    """Takes down, while a graph is evaluated, what the steps backwards read of it.

    The calls are evaluated one by one, in the order of the graph.
    """

    def __init__(self, backward: Backward, definitions: Definitions, evaluate: Evaluate) -> None:
        graph: Graph = backward.graph
        numbers = {id(node): number for number, node in enumerate(graph.nodes)}
        self._steps = {
            numbers[id(step.node)]: resumed(step, step.node.expansion(definitions))
            for step in backward.steps
            if id(step.node) in numbers
        }
        self._numbers = numbers
        self._evaluate = evaluate
        self._count = 0
        self._kept: dict[int, dict[str, Array]] = {}

    def record(self, expansion: eq.Expansion, inputs: Mapping[str, Any]) -> dict[str, Array]:
        """Evaluates the next call."""
        tensors = self._evaluate(expansion, inputs)
        step = self._steps.get(self._count)
        if step is not None:
            self._kept[self._count] = {name: tensors[name] for name in step[1]}
        self._count += 1
        return tensors

    def rest(self, step: Step) -> tuple[eq.Expansion, dict[str, Array]]:
        """What is left to evaluate of a step, and its inputs that are on the tape, taken off it."""
        number = self._numbers.get(id(step.node))
        if number is None or number not in self._kept:
            return step.expansion, {}
        return self._steps[number][0], self._kept.pop(number)


def resumed(step: Step, forward: eq.Expansion) -> tuple[eq.Expansion, tuple[str, ...]]:
    """A step's equations without those that its call has evaluated, and which of these they read.

    Its checks have been passed by then.
    """
    whole = step.expansion
    made = {e.target for e in forward.equations if whole.tensors.get(e.target) == e.info}
    by_target = {e.target: e for e in whole.equations if e.target not in made}
    needed: set[str] = set()
    waiting = list(whole.outputs)
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            if name in by_target:
                waiting += eq.reads(by_target[name].body)
    kept = tuple(sorted(needed & made))
    key = f"{__name__}.rest"
    if key not in whole.notes:
        given = (*whole.inputs, *(one.tensor for one in whole.drawn))
        names = needed | set(given)
        whole.notes[key] = replace(
            whole,
            inputs=(*whole.inputs, *kept),
            equations=tuple(
                e for e in whole.equations if e.target in needed and e.target in by_target
            ),
            tensors={n: info for n, info in whole.tensors.items() if n in names},
            checks=(),
            notes={},
        )
    found: eq.Expansion = whole.notes[key]
    return found, kept
