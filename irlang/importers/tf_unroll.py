"""Loops and lists of tensors in a TensorFlow graph: what a walk does there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np

from irlang.dtypes import DTYPES
from irlang.importers.tf_file import Attribute, NodeDef
from irlang.importers.tf_loops import (
    LISTS,
    MOST_IN_ALL,
    MOST_STEPS,
    List,
    conjuncts,
    frames,
    unknown,
)
from irlang.importers.tf_node import Node, Twins
from irlang.importers.tf_table import ROWS
from irlang.importers.value import Unsupported, Value, constant
from irlang.importers.writer import Writer


class Broken:
    """A value that is not there, because of something reported before."""


Reference = tuple[str, int]  # a node, and which of its results
Found = Value | List | Broken


class Unrolling(ABC):
    """What a walk does at a loop, and at a list of tensors."""

    writer: Writer
    live: set[str]
    values: dict[Reference, Found]
    _twins: Twins

    def __init__(self, nodes: Sequence[NodeDef]) -> None:
        self.by_name = {node.name: node for node in nodes}
        self._frames = frames(self.by_name)
        self._inside = {name for frame in self._frames.values() for name in frame.changing}
        self._steps = 0  # of loops, so far

    @abstractmethod
    def _reach(self, node: NodeDef) -> None:
        """Writes a node, and before it those that it is computed from."""

    @abstractmethod
    def _read(self, node: NodeDef, source: Reference) -> Found:
        """What a node reads."""

    def _left_over(self, name: str) -> bool:
        """Whether a node hands on what a loop ends with, or stands inside it."""
        node = self.by_name[name]
        while node.op == "Identity" and node.inputs and node.inputs[0][0] in self.by_name:
            name = node.inputs[0][0]
            if name == node.name:
                break
            node = self.by_name[name]
        return name in self._frames or name in self._inside

    def _loop(self, node: NodeDef) -> None:
        """A loop, step by step, of which a node is an exit.

        Where something beside a condition that is known ends it too, like the lengths of sequences,
        the steps behind that leave everything as it is.
        """
        frame = self._frames[node.name]
        variables = [v for v in frame.variables if v.merge in self.live]
        now = {v.merge: self._read_from(v.start) for v in variables}
        ends = dict(now)  # what the loop ends with
        going: Value | None = None  # whether it does not end before; None where that is known
        for _ in range(MOST_STEPS + 1):
            for name in frame.changing:
                for reference in [(name, place) for place in range(2)]:
                    self.values.pop(reference, None)
            self.values.update({(v.merge, 0): now[v.merge] for v in variables})
            more, going = self._goes_on(node, frame.condition, going)
            if not more:
                break
            self._steps += 1
            if self._steps > MOST_IN_ALL:
                raise Unsupported(f"all loops together have more than {MOST_IN_ALL} steps")
            for variable in variables:
                for name in variable.switches:
                    self.values[name, 0] = self.values[name, 1] = now[variable.merge]
            now = {v.merge: self._read_from((v.again, 0)) for v in variables}
            kept = {name: self._kept(node, going, now[name], ends[name]) for name in now}
            ends = dict(kept)
            # what counts the steps goes on to do so
            now = {n: v if _is_known(v) else kept[n] for n, v in now.items()}
        else:
            raise Unsupported(f"the loop has more than {MOST_STEPS} steps")
        for variable in variables:
            self.values.update({(name, 0): ends[variable.merge] for name in variable.exits})

    def _goes_on(
        self, node: NodeDef, condition: str, going: Value | None
    ) -> tuple[bool, Value | None]:
        """Whether a loop has a step more, and under which condition that is not known."""
        told = False
        for source in conjuncts(self.by_name, (condition, 0)):
            value = self._read_from(source)
            known = value.known() if isinstance(value, Value) else None
            if known is not None and known.size == 1 and known.dtype != object:
                told = True
                if not known.reshape(-1)[0]:
                    return False, going
            elif isinstance(value, Value):
                going = (
                    value if going is None else self._write(node.name, "LogicalAnd", [going, value])
                )
            else:
                raise Unsupported(unknown("the number of the loop's steps"))
        if not told:
            raise Unsupported(unknown("the number of the loop's steps"))
        return True, going

    def _kept(self, node: NodeDef, going: Value | None, new: Found, old: Found) -> Found:
        """A variable behind a step that may not be taken."""
        if going is None or new is old or isinstance(new, Broken) or isinstance(old, Broken):
            return new
        if isinstance(new, Value) and isinstance(old, Value):
            return self._write(node.name, "SelectV2", [going, new, old])
        if not (isinstance(new, List) and isinstance(old, List)):
            raise Unsupported("a variable of the loop is a list in some steps only")
        elements = dict(new.elements)
        for place, value in new.elements.items():
            if value is not old.elements.get(place):
                zero = constant(
                    self.writer, np.zeros((), DTYPES[value.dtype].numpy), f"{node.name}_zero"
                )
                before = old.elements.get(place, zero)  # as a list that is not written to
                elements[place] = self._write(node.name, "SelectV2", [going, value, before])
        return List(new.size, elements)

    def _write(self, name: str, op: str, given: Sequence[Value]) -> Value:
        """A call that no node of the graph stands for."""
        self.writer.owner = name
        made = Node(self.writer, op, given, [name], {}, self._twins)
        found = ROWS[op](made)
        assert isinstance(found, Value)
        return found

    def _read_from(self, source: Reference) -> Found:
        """A result of a node, which is written if it is not there yet."""
        node = self.by_name[source[0]]
        self._reach(node)
        return self._read(node, source)

    def _list(self, node: NodeDef) -> None:
        """A node that makes, reads or writes a list of tensors."""
        given = [self._read(node, source) for source in node.inputs]
        values = [value for value in given if not isinstance(value, Broken)]
        if len(values) < len(given):
            return

        def write(
            op: str, given: Sequence[Value], attributes: Mapping[str, Attribute], count: int
        ) -> list[Value]:
            if not op:
                return [constant(self.writer, np.int32(attributes["value"].value), node.name)]
            names = [f"{node.name}:{place}" if place else node.name for place in range(count)]
            self.writer.owner = node.name
            made = Node(self.writer, op, given, names, attributes, self._twins)
            found = ROWS[op](made)
            made.finish()
            several = [found] if isinstance(found, Value) else list(found)
            return [value for value in several if value is not None]

        for place, value in LISTS[node.op](values, write).items():
            self.values[node.name, place] = value


def _is_known(value: Found) -> bool:
    return isinstance(value, Value) and value.known() is not None
