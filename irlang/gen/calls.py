"""Calls of a program: drawn, judged by the definition, mended, and added to the graph."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from irlang import ast
from irlang.equations import TensorInfo
from irlang.gen.adapt import Adapters
from irlang.gen.choice import Chooser
from irlang.gen.draft import NOTHING, Draft, Fixed, Nested, Number, Source, Value
from irlang.gen.draw import Limits
from irlang.gen.judge import judge, score, types
from irlang.gen.kit import Kit
from irlang.gen.lines import can_be_in_line
from irlang.gen.pattern import Pattern, Slot, pattern
from irlang.gen.profile import profile
from irlang.gen.ranges import Range, demands, usual
from irlang.gen.reach import reach
from irlang.gen.repair import repair
from irlang.gen.solve import solve
from irlang.graph import Graph, Initial, Node, Operand, Param, Port
from irlang.instance import Instance

_DRAFTS = 4  # of one call, before it is repaired: to draw again is cheaper
_RESULTS = 4  # results beside those that keep a call from being dead
_BARE = 8  # percent of calls whose tensors may have no axes where any number may be
_WILD = 4  # percent of inputs with a restricted domain that take a computed value all the same
# Percent of new real tensors that are inputs and not parameters: where there is no input yet, and
# else.
_INPUTS = (100, 15)
_LEFT = 25  # percent of calls of whose lists of numbers one says that a number is what is left
_LONE = 30  # percent of calls with no live operand that are taken all the same
_ALL = 100


class Calls:
    """A graph that calls are added to.

    live: what later calls may read. wanted: how many calls there are to be. given: percent of new
    real tensors that are inputs and not parameters, where there is no input yet, and else.
    """

    def __init__(self, kit: Kit, chooser: Chooser, limits: Limits) -> None:
        self.kit = kit
        self.chooser = chooser
        self.limits = limits
        self.graph = Graph("")
        self.live: list[Value] = []
        self.by_name: dict[str, Value] = {}
        self.wanted = 0
        self.repaired = 0
        self.given = _INPUTS
        self.sole: set[str] = set()  # calls whose first result alone is shown

    def call(
        self,
        made: Pattern,
        order: list[int],
        eager: int,
        fixed: Fixed = NOTHING,
        bare: bool | None = None,
    ) -> bool:
        """Adds a call of an operator; False where that does not succeed.

        bare: whether its tensors may have no axes where any number may be; drawn where not said.
        """
        draft: Draft | None = None
        instance: Instance | None = None
        weights = profile(made)
        # Once for all drafts, of which those without axes are the likeliest to be valid.
        bare = self.chooser.chance(_BARE) if bare is None else bare
        for _ in range(_DRAFTS):
            drawn = solve(
                made, self.chooser, self.limits, self.live, order, weights, eager, fixed, bare
            )
            if drawn is None:
                continue
            lone = not any(isinstance(s, str) for s in _sources(drawn))
            if lone and self.live and order and not self.chooser.chance(_LONE):
                return False
            draft, instance = drawn, judge(made.op, types(drawn, self.by_name), drawn.attrs)
            if score(instance) == 0:
                break
        if draft is None:
            return False
        if score(instance) > 0:
            mended = repair(draft, instance, self.by_name, self.limits, self.adapters())
            if mended is None:
                return False
            draft, instance = mended
            if _calls(draft) > max(1, self.wanted - len(self.graph.nodes)):
                return False
            self.repaired += 1
        if instance is None or not self.fits(draft, instance):
            return False
        if self.chooser.chance(_LEFT):
            draft, instance = self.left_open(draft, instance)
        numbers = {n: one.value for n, one in draft.inputs.items() if isinstance(one, Number)}
        demanded = demands(instance, numbers=numbers)
        if demanded is None or not _numbers_keep_to(draft, demanded):
            return False
        if not can_be_in_line(made.op, draft.attrs, instance, demanded, self.kit.catalog):
            return False
        self.add(made, draft, instance, demanded, bool(fixed.inputs))
        return True

    def left_open(self, draft: Draft, instance: Instance) -> tuple[Draft, Instance]:
        """The call with -1 for one number of a list, where that says the same; else as it is."""
        lists = [name for name, value in draft.attrs.items() if _is_list(value)]
        if not lists:
            return draft, instance
        name = self.chooser.pick(lists)
        value = draft.attrs[name]
        place = self.chooser.below(len(value))
        if value[place] < 0:
            return draft, instance
        attrs = {**draft.attrs, name: (*value[:place], -1, *value[place + 1 :])}
        other = judge(draft.op, types(draft, self.by_name), attrs)
        if other is None or score(other) or other.outputs != instance.outputs:
            return draft, instance
        return replace(draft, attrs=attrs), other

    def fits(self, draft: Draft, instance: Instance) -> bool:
        """Whether all results and new tensors are within the limits, and something in them, if that
        must be.
        """
        if instance.outputs is None:
            return False
        least = 0 if self.limits.empty else 1
        new = [source for source in _sources(draft) if isinstance(source, TensorInfo)]
        for info in (*(info for _, info in instance.outputs), *new):
            if (
                not least <= math.prod(info.shape) <= 2 * self.limits.elements
                or len(info.shape) > self.limits.rank + 1
            ):
                return False
        return True

    def add(
        self,
        made: Pattern,
        draft: Draft,
        instance: Instance,
        demanded: dict[str, Range],
        wild: bool = False,
    ) -> str:
        """The call as a node of the graph, after its new tensors; gives its first result.

        wild: whether computed values are read as they are, whatever the domain of the operator.
        """
        number = len(self.graph.nodes) + 1
        inputs: dict[str, Operand] = {}
        for slot in made.slots:
            name = slot.item.name
            source = draft.inputs.get(name)
            if source is None:
                continue
            within = demanded.get(name)
            if name in made.ordered and within is not None and isinstance(source, str):
                source = self.by_name[source].info  # places that are computed are in no order
            if isinstance(source, tuple):
                inputs[name] = tuple(
                    self.operand(slot, member, f"{name}{number}_{position}", within, wild)
                    for position, member in enumerate(source)
                )
            else:
                inputs[name] = self.operand(slot, source, f"{name}{number}", within, wild)
        return self.node(made.op, inputs, draft, instance)

    def operand(
        self, slot: Slot, source: Source, name: str, within: Range | None, wild: bool = False
    ) -> str:
        """The value that an input reads, made if there is none."""
        if isinstance(source, Nested):
            source = self.add(pattern(source.draft.op), source.draft, source.instance, {})
        if isinstance(source, Number):
            name = self.free("number")
            initial = Initial("constant", (source.value,))
            literal = not source.info.shape
            self.graph.params[name] = Param(source.info, initial=initial, literal=literal)
            self.graph.values[name] = source.info
            return name
        if isinstance(source, str):
            info = self.by_name[source].info
            # Where a range is needed that a value does not keep to, a new tensor takes its place.
            if within is None or self.keeps_to(source, within):
                if slot.domain is None or info.kind != "real" or wild:
                    return source
                if self.chooser.chance(_WILD):
                    return source
                tamed = self.tamed(source, info, slot.domain)
                if tamed is not None:
                    return tamed
        else:
            info = source
        name = self.free(name)
        share = self.given[bool(self.graph.inputs)]
        real = info.kind == "real" or not share  # no input but the first: places are parameters too
        weight = real and share < _ALL and not self.chooser.chance(share)
        bounds = within or usual(slot, info, weight, self.chooser)
        if weight:
            self.graph.params[name] = Param(info, bounds)
        else:
            self.graph.inputs[name] = Port(info, bounds)
        self.graph.values[name] = info
        return name

    def keeps_to(self, source: str, within: Range) -> bool:
        """Whether a computed value is inside a range, whatever the program is fed with."""
        found = reach(self.graph, source, self.kit.catalog)
        return found is not None and within[0] <= found[0] and found[1] <= within[1]

    def adapters(self) -> Adapters | None:
        """What may stand before an input of the next call; None where there is no room."""
        return self.kit.adapters if len(self.graph.nodes) + 2 <= self.wanted else None

    def tamed(self, source: str, info: TensorInfo, domain: Range) -> str | None:
        """A value inside a domain that is computed from another, if there is room for the call."""
        tamers = self.kit.tamers.inside(domain)
        if not tamers or len(self.graph.nodes) + 1 >= self.wanted:
            return None
        made = self.chooser.pick(tamers)
        formal = next(slot.item.name for slot in made.slots if slot.item.default is None)
        instance = judge(made.op, {formal: info}, {})
        if instance is None or score(instance) > 0:
            return None
        return self.node(made.op, {formal: source}, Draft(made.op), instance)

    def node(self, op: ast.Op, inputs: dict[str, Operand], draft: Draft, instance: Instance) -> str:
        """Appends a node and its results."""
        graph = self.graph
        base = f"{op.name}{len(graph.nodes) + 1}"
        results = instance.outputs or ()
        outputs = tuple(
            self.free(base if len(results) == 1 else f"{base}_{name.replace('.', '_')}")
            for name, _ in results
        )
        node = Node(outputs[0], op, inputs, draft.attrs, outputs, instance)
        graph.nodes.append(node)
        for operand in node.operands():
            value = self.by_name.get(operand)
            if value is not None:
                value.uses += 1
        for name, (_, info) in zip(outputs, results, strict=True):
            graph.values[name] = info
            value = Value(name, info, op.name)
            self.live.append(value)
            self.by_name[name] = value
        return outputs[0]

    def free(self, name: str) -> str:
        """`name`, with a number if it is taken."""
        candidate, count = name, 1
        while candidate in self.graph.values:
            count += 1
            candidate = f"{name}_{count}"
        return candidate

    def finish(self) -> None:
        """Results: of every call that would be dead otherwise one, and a few more."""
        graph = self.graph
        extra = _RESULTS
        for node in graph.nodes:
            loose = [name for name in node.outputs if self.by_name[name].uses == 0]
            dead = len(loose) == len(node.outputs)
            for position, name in enumerate(loose):
                if not (dead and position == 0):
                    if extra == 0 or node.name in self.sole:
                        continue
                    extra -= 1
                graph.outputs[name] = name


def _is_list(value: Any) -> bool:
    """Whether an attribute is a list of whole numbers."""
    return isinstance(value, tuple) and bool(value) and all(type(n) is int for n in value)


def _calls(draft: Draft) -> int:
    """How many calls a draft is, with those that adapt its inputs."""
    return 1 + sum(_calls(one.draft) for one in _sources(draft) if isinstance(one, Nested))


def _numbers_keep_to(draft: Draft, demanded: Mapping[str, Range]) -> bool:
    """Whether numbers that are members of a family are in the range that is demanded of it."""
    for name, (low, high) in demanded.items():
        source = draft.inputs.get(name)
        sources = source if isinstance(source, tuple) else ()
        if not all(low <= one.value <= high for one in sources if isinstance(one, Number)):
            return False
    return True


def _sources(draft: Draft) -> Iterator[Source]:
    for source in draft.inputs.values():
        yield from source if isinstance(source, tuple) else (source,)
