"""ONNX's control flow: the graphs inside nodes, written out.

A choice that is known when the model is read is made; of another both branches are written, and the
condition says which of their values it is. A loop is written once for every step: how often it runs
must be known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from irlang.dtypes import DTYPES
from irlang.importers.handed import Step, allowed
from irlang.importers.onnx_node import Node
from irlang.importers.onnx_schema import Scope
from irlang.importers.sizes import is_open
from irlang.importers.value import Unsupported, Value, integers

if TYPE_CHECKING:
    from irlang.importers.onnx_graph import Walk

MOST_STEPS = 256
MOST_IN_ALL = 4096  # steps of all loops, those inside one another included


class Lost(Exception):
    """Something inside is missing, because of what was reported before."""


class Control:
    """A node that holds graphs, and what is written of it. made: what it becomes."""

    def __init__(self, walk: Walk, node: Any, scope: Scope, made: Node, place: str) -> None:
        self._walk, self._node, self._scope = walk, node, scope
        self._made, self._place = made, place

    def write(self) -> list[Value | None]:
        """The results. Raises `Unsupported`, and `Lost` where something inside is missing."""
        rule = _RULES.get(self._made.kind)
        if rule is None:
            raise Unsupported("it holds a graph of its own")
        return rule(self)

    def _graph(self, name: str) -> Any:
        self._made.ignore(name)
        found = next((item.g for item in self._node.attribute if item.name == name), None)
        if found is None:
            raise Unsupported(f"its attribute `{name}` is missing")
        return found

    def _inside(self, graph: Any, prefix: str, given: Sequence[Value]) -> list[Value]:
        """Writes a graph once; its own values have names that begin with `prefix`."""
        walk, scope = self._walk, self._scope
        own = [item.name for item in (*graph.initializer, *graph.input)]
        own += [name for node in graph.node for name in node.output if name]
        names = {**scope.names, **{name: f"{prefix}{name}" for name in own}}
        inner = Scope(scope.versions, names, scope.prefix, scope.attributes)
        if len(graph.input) != len(given):
            raise Unsupported(f"a graph of {len(graph.input)} inputs is given {len(given)}")
        for item, value in zip(graph.input, given, strict=True):
            walk.values[names[item.name]] = value
        walk.initialisers(graph, inner)
        walk.nodes(graph.node, inner)
        found = [walk.values.get(inner.outer(item.name)) for item in graph.output]
        if any(not isinstance(value, Value) for value in found):
            raise Lost
        walk.writer.owner = self._place
        return [value for value in found if isinstance(value, Value)]

    # ---- a choice

    def choose(self) -> list[Value | None]:
        """One of two graphs."""
        condition = self._made.input(0)
        known = condition.known()
        names = ["then_branch", "else_branch"]
        if known is not None and known.size == 1:
            names = names[:1] if known.reshape(-1)[0] else names[1:]
        branches = {name: self._graph(name) for name in names}
        self._made.ignore("then_branch", "else_branch")
        if len(branches) > 1 and condition.rank:
            condition = self._made.step("condition", "reshape", condition, shape=[])
        found = [self._branch(name, graph, condition) for name, graph in branches.items()]
        if len(found) == 1:
            return list(found[0])
        results: list[Value | None] = []
        for place, (yes, no) in enumerate(zip(*found, strict=True)):
            if yes.info != no.info:
                self._walk.needed |= condition.sources
                raise Unsupported(f"its branches give {yes.info} and {no.info}")
            wanted = self._made.wants(place)
            results.append(
                self._made.result(place, "where", condition, yes, no) if wanted else None
            )
        return results

    def _branch(self, name: str, graph: Any, condition: Value) -> list[Value]:
        """Writes one of the graphs: what its condition is about has another value where the graph
        is not taken.
        """
        values = self._walk.values
        handed = {} if condition.known() is not None else self._handed(name, graph, condition)
        before = {one: values[one] for one in handed}
        values.update(handed)
        try:
            return self._inside(graph, f"{self._place}/{name}/", ())
        finally:
            values.update(before)

    def _handed(self, name: str, graph: Any, condition: Value) -> dict[str, Value]:
        """What a graph reads that its condition is about, as it is handed it."""
        taken = name == "then_branch"
        makers = {one: node for node in self._walk.model.graph.node for one in node.output}
        own = {one for node in graph.node for one in node.output}
        read = {
            self._scope.outer(one) for node in graph.node for one in node.input if one not in own
        }
        values = {one: self._walk.values.get(one) for one in sorted(read)}
        found: dict[str, Value] = {}
        for one, value in values.items():
            if not isinstance(value, Value) or value.info.kind == "bool":
                continue
            test = self._scope.outer(self._node.input[0])
            spare = allowed(partial(self._told, makers), test, one, taken, self._number)
            if spare is not None:
                number = np.full((), spare, DTYPES[value.dtype].numpy)
                other = self._made.const(number, f"{self._place}/{name}/{one}_spare")
                pair = (value, other) if taken else (other, value)
                suffix = f"{name}_{len(found)}"
                found[one] = self._made.step(suffix, "where", condition, *pair)
        return found

    def _told(self, makers: Mapping[str, Any], name: str) -> Step[str] | None:
        """How a tensor is computed, as far as choices ask."""
        node = makers.get(name)
        if node is None or not node.input:
            return None
        given = self._walk.values.get(node.input[0])
        real = not isinstance(given, Value) or given.info.kind != "int"
        op = "" if node.op_type == "Cast" and real else _TOLD.get(node.op_type, "")
        return Step(op, tuple(node.input))

    def _number(self, name: str) -> float | None:
        """The value of a tensor, where that is one number and known."""
        value = self._walk.values.get(name)
        return value.number() if isinstance(value, Value) else None

    # ---- loops

    def _step(self, count: int) -> None:
        self._walk.steps += 1
        if count >= MOST_STEPS or self._walk.steps > MOST_IN_ALL:
            raise Unsupported(f"more than {MOST_STEPS} steps, or {MOST_IN_ALL} of all loops")

    def _goes_on(self, condition: Value | None) -> bool:
        if condition is None:
            return True
        known = condition.known()
        if known is None or known.size != 1:
            self._walk.needed |= condition.sources
            raise Unsupported("whether it goes on hangs on values that are not known")
        return bool(known.reshape(-1)[0])

    def loop(self) -> list[Value | None]:
        """So many steps, as long as a condition holds; what a step gives is collected."""
        graph = self._graph("body")
        limit = self._made.optional(0)
        most = None if limit is None else self._made.known_number(0)
        if is_open(most):
            raise Unsupported("how often it runs hangs on a size that is left open")
        if most is not None:
            self._walk.require_room(min(most, MOST_STEPS) * len(graph.node))
        condition = self._made.optional(1)
        carried = [self._made.input(place) for place in range(2, len(self._made.given))]
        steps: list[list[Value]] = []
        while (most is None or len(steps) < most) and self._goes_on(condition):
            self._step(len(steps))
            prefix = f"{self._place}/{len(steps)}/"
            number = self._made.const(integers([len(steps)]).reshape(()), f"{prefix}number")
            held = condition
            if held is None:
                held = self._made.const(integers([1]).reshape(()).astype(bool), f"{prefix}goes_on")
            found = self._inside(graph, prefix, [number, held, *carried])
            condition, carried = found[0], found[1 : 1 + len(carried)]
            steps.append(found[1 + len(carried) :])
        return [*carried, *self._collected(len(carried), steps, len(graph.output) - 1)]

    def scan(self) -> list[Value | None]:
        """A step for every element along axes of some inputs."""
        if self._made.version < 9:
            raise Unsupported("of operator set 8, which has batches of sequences")
        graph, count = self._graph("body"), self._made.int("num_scan_inputs")
        values = [self._made.input(place) for place in range(len(self._made.given))]
        if not 1 <= count <= len(values):
            raise Unsupported(f"{count} of {len(values)} inputs are sequences")
        carried, sequences = values[:-count], values[-count:]
        axes = self._made.ints("scan_input_axes", [0] * count)
        backwards = self._made.ints("scan_input_directions", [0] * count)
        lengths = {value.shape[axis] for value, axis in zip(sequences, axes, strict=True)}
        if len(lengths) != 1 or any(map(is_open, lengths)):
            raise Unsupported("how many steps it has is not known, or not the same for all inputs")
        length, steps = lengths.pop(), []
        self._walk.require_room(min(length, MOST_STEPS) * len(graph.node))
        for number in range(length):
            self._step(number)
            elements = []
            for place, (value, axis, back) in enumerate(
                zip(sequences, axes, backwards, strict=True)
            ):
                at = length - 1 - number if back else number
                name = f"{number}_element_{place}"
                begin, end = {"begin": [at]}, {"end": [at + 1]}
                part = self._made.step(f"{name}_kept", "slice", value, axes=[axis], **begin, **end)
                elements.append(self._made.step(name, "squeeze", part, axes=[axis]))
            found = self._inside(graph, f"{self._place}/{number}/", [*carried, *elements])
            carried = found[: len(carried)]
            steps.append(found[len(carried) :])
        rest = len(graph.output) - len(carried)
        directions = self._made.ints("scan_output_directions", [0] * rest)
        into = self._made.ints("scan_output_axes", [0] * rest)
        return [*carried, *self._collected(len(carried), steps, rest, into, directions)]

    def _collected(
        self,
        first: int,
        steps: Sequence[Sequence[Value]],
        results: int,
        axes: Sequence[int] = (),
        backwards: Sequence[int] = (),
    ) -> list[Value | None]:
        """What the steps give beside what they hand on. first: the number of the first of these."""
        count = results if axes else results - first
        found: list[Value | None] = []
        for place in range(count):
            if not self._made.wants(first + place):
                found.append(None)
                continue
            if not steps:
                raise Unsupported("no steps, so that nothing says the shape of what they give")
            parts = [step[place] for step in steps]
            if backwards and backwards[place]:
                parts.reverse()
            axis = axes[place] if axes else 0
            found.append(self._made.result(first + place, "stack", *parts, axis=axis))
        return found


_TOLD = {
    "Greater": ">", "GreaterOrEqual": ">=", "Less": "<", "LessOrEqual": "<=", "Equal": "==",
    "Not": "not", "Identity": "copy", "Cast": "Cast",
}  # fmt: skip
_RULES: dict[str, Callable[[Control], list[Value | None]]] = {
    "If": Control.choose,
    "Loop": Control.loop,
    "Scan": Control.scan,
}
