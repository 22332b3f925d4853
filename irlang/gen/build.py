"""Programs: valid networks drawn from a seed, operator by operator.

A program is a chain with skips, a graph of cells, or something between, with idioms in it
(`irlang.gen.idiom`). Every call is solved
backwards from the definition's signature (`irlang.gen.solve`), judged by the definition itself,
mended where it does not fit (`irlang.gen.repair`), and given up where that does not help.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from irlang import ast
from irlang.catalog import Catalog, builtin
from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.gen.adapt import Adapters
from irlang.gen.choice import Chooser
from irlang.gen.coverage import Coverage
from irlang.gen.draft import NOTHING, Draft, Fixed, Nested, Number, Source, Value
from irlang.gen.draw import Limits, shape
from irlang.gen.idiom import GIVEN, Idiom, fix, idioms, operand_of
from irlang.gen.judge import judge, score, types
from irlang.gen.mark import mark
from irlang.gen.pattern import Pattern, Slot, pattern
from irlang.gen.profile import profile
from irlang.gen.ranges import Range, demands, usual
from irlang.gen.repair import repair
from irlang.gen.solve import solve
from irlang.gen.tame import Tamers
from irlang.graph import Graph, Initial, Node, Operand, Param, Port
from irlang.graph_text import to_ast
from irlang.instance import Instance
from irlang.parser.printer import print_file

_ATTEMPTS = 60  # calls that may fail in a row before a program ends early
_DRAFTS = 4  # of one call, before it is repaired: to draw again is cheaper
_RESULTS = 4  # results beside those that keep a call from being dead
_WILD = 4  # percent of inputs with a restricted domain that take a computed value all the same
_INPUTS = 15  # percent of new real tensors, beside the first, that are inputs and not parameters
_EAGER, _JOINED = 60, 95  # percent of inputs after the first that look for a computed value
_LONE = 30  # percent of calls with no live operand that are taken all the same
_IDIOM_TRIES = 3  # live values that an idiom is tried with
_IDIOM_NEW = 4  # new ones that it is tried with then
_APART_TRIES = 4  # calls of an operator that is to be called apart
_SAID = 60  # percent of these that have attributes of an idiom, where there is one
_IDIOMS = 10  # percent of choices that are an idiom and not an operator
_ALL = 100
_PLAIN = 50  # percent of idioms whose attributes have their defaults where nothing is said
_SCALARS = 80  # percent of the numbers in idioms that have no axis
_INTEGERS = 20  # percent of the new values that idioms of whole numbers begin with


@dataclass(slots=True)
class Program:
    """A generated network.

    text: the `.nnir` file. choices: replay them to get the same program whatever coverage was in
    force. repaired: how many calls needed a repair; rejected: how many were given up.
    """

    graph: Graph
    model: ast.Model
    text: str
    seed: int
    choices: list[int]
    repaired: int = 0
    rejected: int = 0


def generate(
    catalog: Catalog,
    seed: int,
    *,
    ops: Iterable[str] | None = None,
    size: tuple[int, int] = (3, 30),
    limits: Limits | None = None,
    coverage: Coverage | None = None,
    replay: Sequence[int] = (),
    apart: Sequence[str] = (),
    pieces: int = _IDIOMS,
) -> Program:
    """The program of a seed.

    ops: names of the operators that may be used (all). size: least and most calls. coverage:
    what is preferred is what it lacks; the program then depends on it as well as on the seed.
    replay: choices to follow instead of drawing. apart: operators that are called instead, once
    each, none reading another's results. pieces: percent of choices that are an idiom.
    """
    kit = _kit(catalog, None if ops is None else frozenset(ops))
    builder = _Builder(kit, Chooser(seed, replay), limits or Limits(), coverage or Coverage())
    graph = builder.side_by_side(apart) if apart else builder.run(size, pieces)
    graph.name = f"generated_{seed}"
    model = to_ast(graph)
    text = print_file(ast.File((model,), 1))
    return Program(
        graph, model, text, seed, builder.chooser.trace, builder.repaired, builder.rejected
    )


@dataclass(slots=True)
class _Kit:
    """What programs are made of: the same for all programs of a catalogue."""

    catalog: Catalog
    made: list[Pattern]
    adapters: Adapters
    tamers: Tamers
    patterns: dict[str, Pattern]
    idioms: tuple[Idiom, ...]


_kits: dict[tuple[int, frozenset[str] | None], _Kit] = {}


def _kit(catalog: Catalog, ops: frozenset[str] | None) -> _Kit:
    key = (id(catalog), ops)
    kit = _kits.get(key)
    if kit is None or kit.catalog is not catalog:
        made = [p for p in map(pattern, catalog) if ops is None or p.op.name in ops]
        if not made:
            raise ValueError("none of the operators can be generated")
        patterns = {one.op.name: one for one in made}
        known = idioms([name for name, one in patterns.items() if one.op is builtin().op(name)])
        kit = _kits[key] = _Kit(
            catalog, made, Adapters(made), Tamers(made, catalog), patterns, known
        )
    return kit


class _Builder:
    def __init__(self, kit: _Kit, chooser: Chooser, limits: Limits, coverage: Coverage) -> None:
        self.kit = kit
        self.made = kit.made
        self.joiners = [p for p in kit.made if p.joins]
        self.wanted = self.cell = 0
        self.cell_calls = self.cell_values = 0  # at the start of the cell
        self.chooser = chooser
        self.limits = limits
        self.coverage = coverage
        self.graph = Graph("")
        self.live: list[Value] = []
        self.by_name: dict[str, Value] = {}
        self.repaired = 0
        self.rejected = 0
        self.weights = coverage.weights(p.op.name for p in kit.made)
        real = {name for name, info in DTYPES.items() if info.kind == "real"} - {*limits.reals}
        self.idioms = [one for one in kit.idioms if not any(step.names(real) for step in one)]
        self.joiner_weights = coverage.weights(p.op.name for p in self.joiners)

    def run(self, size: tuple[int, int], pieces: int) -> Graph:
        """Calls until there are as many as were drawn."""
        chooser = self.chooser
        # The lesser of two: radii grow with depth, so that short programs say more about each call.
        self.wanted = min(chooser.between(*size), chooser.between(*size))
        self.cell = chooser.pick((0, 0, 3, 5))  # calls a cell; 0 is a chain
        skips = chooser.pick((5, 20, 40))  # percent of calls that reach back
        joins = chooser.pick((5, 15, 30))  # percent that bring two branches together
        failures = 0
        while len(self.graph.nodes) < self.wanted and failures < _ATTEMPTS:
            if self.cell and len(self.graph.nodes) - self.cell_calls >= self.cell:
                self.cell_calls, self.cell_values = len(self.graph.nodes), len(self.live)
            if self.idioms and (self.live or pieces == _ALL) and chooser.chance(pieces):
                # All alike: the operators of the longest ones are those that are met most.
                steps = chooser.pick(self.idioms)
                done = len(steps) <= self.wanted - len(self.graph.nodes) and self.idiom(
                    steps, self.order(self.kit.patterns[steps[0].op], skips)
                )
                failures += not done
                continue
            branches = self.branches() if chooser.chance(joins) else []
            if branches:
                made = self.joiners[chooser.weighted(self.joiner_weights)]
                done = self.call(made, branches, _JOINED)
            else:
                made = self.made[chooser.weighted(self.weights)]
                done = self.call(made, self.order(made, skips), _EAGER)
            failures = 0 if done else failures + 1
            self.rejected += not done
        self.finish()
        return self.graph

    def side_by_side(self, names: Sequence[str]) -> Graph:
        """A call of each operator, of new tensors only; those that cannot be drawn are left out."""
        self.wanted = 0  # no room for what would adapt a tensor to a call
        for name in names:
            for _ in range(_APART_TRIES):
                if self.call(self.kit.patterns[name], [], 0, self.known(name)):
                    break
        self.finish()
        return self.graph

    def known(self, name: str) -> Fixed:
        """Attributes that an idiom of one call says of an operator, or none; the others may be
        their defaults: frameworks have many operators for such attributes alone.
        """
        said = [one[0].attrs for one in self.idioms if len(one) == 1 and one[0].op == name]
        attrs = self.chooser.pick(said) if said and self.chooser.chance(_SAID) else {}
        return Fixed(attrs=dict(attrs), plain=self.chooser.chance(_PLAIN))

    # ---- which operand

    def order(self, made: Pattern, skips: int) -> list[int]:
        """Positions of live values, those to be read first in front.

        In a chain the newest comes first; in a cell, values of the cell (and the two before it)
        that nothing reads yet. Pairs of producer and consumer that were not met are preferred.
        """
        live = self.live
        if not live:
            return []
        newest = len(live) - 1
        chooser = self.chooser
        if not self.cell and not chooser.chance(skips):
            return list(range(newest, -1, -1))
        pairs = self.coverage.pairs
        name = made.op.name
        first = max(0, min(self.cell_values - 2, newest)) if self.cell else 0
        weights = [
            (4.0 if value.uses == 0 else 1.0) / (1 + pairs.get((value.producer, name), 0))
            for value in live[first:]
        ]
        chosen = first + chooser.weighted(weights)
        loose = [i for i in range(newest, -1, -1) if live[i].uses == 0 and i != chosen]
        used = [i for i in range(newest, -1, -1) if live[i].uses and i != chosen]
        return [chosen, *loose, *used]

    def branches(self) -> list[int]:
        """Positions of live values of one type, the newest first, and then all others.

        The type is that of several values of which something is still to be read; empty if there
        is none.
        """
        groups: dict[TensorInfo, list[int]] = {}
        for position in range(len(self.live) - 1, -1, -1):
            groups.setdefault(self.live[position].info, []).append(position)
        several = [
            group
            for group in groups.values()
            if len(group) > 1 and any(self.live[i].uses == 0 for i in group)
        ]
        if not several or not self.joiners:
            return []
        group = self.chooser.pick(several)
        loose = [i for i in group if self.live[i].uses == 0]
        front = [*loose, *(i for i in group if self.live[i].uses)]
        return [*front, *(i for i in range(len(self.live)) if i not in group)]

    # ---- an idiom

    def idiom(self, steps: Idiom, order: list[int]) -> bool:
        """Adds all calls of an idiom, of a live value or of a new one; False where none fits."""
        begun: list[dict[int, Value]] = [
            {GIVEN: self.live[position]} for position in order[:_IDIOM_TRIES]
        ]
        for found in (*begun, *({} for _ in range(_IDIOM_NEW))):
            plain = self.chooser.chance(_PLAIN)
            undo = mark(self.graph, self.live, self.by_name)
            new = not found
            if new and any(isinstance(operand, float) for operand in steps[0].operands):
                found[GIVEN] = self.drawn(steps)  # a number has the type of what it stands beside
            # What a call of a new value lacks is new as well.
            others = [] if new else order
            if all(self.step(at, steps, found, others, plain) for at in range(len(steps))):
                return True
            undo()
        return False

    def step(
        self, at: int, steps: Idiom, found: dict[int, Value], order: list[int], plain: bool
    ) -> bool:
        """Adds one call of an idiom; found: the results of those before it, and `GIVEN`."""
        made = self.kit.patterns[steps[at].op]
        axes = 0 if self.chooser.chance(_SCALARS) else self.chooser.between(1, 4)
        fixed = fix(steps[at], made.slots, found, axes, plain=plain)
        if fixed is None or not self.call(made, order, 0, fixed):
            return False
        node = self.graph.nodes[-1]
        found[at] = self.by_name[node.outputs[0]]
        given = node.inputs.get(operand_of(steps[at], made.slots))
        if GIVEN not in found and isinstance(given, str):
            found[GIVEN] = Value(given, self.graph.values[given])
            self.by_name.setdefault(given, found[GIVEN])
        return True

    def drawn(self, steps: Idiom) -> Value:
        """A new input of real numbers, or of integers where those of the idiom are whole."""
        sizes = shape(self.chooser, self.chooser.between(1, 4), self.limits)
        numbers = [o for step in steps for o in step.operands if isinstance(o, float)]
        whole = all(map(float.is_integer, numbers)) and self.chooser.chance(_INTEGERS)
        info = TensorInfo(
            sizes, self.chooser.pick(self.limits.ints if whole else self.limits.reals)
        )
        name = self.free("x")
        self.graph.inputs[name] = Port(info, None)
        self.graph.values[name] = info
        self.by_name[name] = Value(name, info)
        return self.by_name[name]

    # ---- one call

    def call(self, made: Pattern, order: list[int], eager: int, fixed: Fixed = NOTHING) -> bool:
        """Adds a call of an operator; False where that does not succeed."""
        draft: Draft | None = None
        instance: Instance | None = None
        weights = profile(made)
        for _ in range(_DRAFTS):
            drawn = solve(made, self.chooser, self.limits, self.live, order, weights, eager, fixed)
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
            self.repaired += 1
        if instance is None or not self.fits(instance):
            return False
        demanded = demands(instance)
        if demanded is None:
            return False
        self.add(made, draft, instance, demanded, bool(fixed.inputs))
        return True

    def fits(self, instance: Instance) -> bool:
        """Whether all results are within the limits, and something in them, if that must be."""
        if instance.outputs is None:
            return False
        least = 0 if self.limits.empty else 1
        for _, info in instance.outputs:
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
            # Computed values have no range: where one is needed, a new tensor takes their place.
            if within is None:
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
        real = info.kind == "real"
        weight = real and bool(self.graph.inputs) and not self.chooser.chance(_INPUTS)
        bounds = within or usual(slot, info, weight, self.chooser)
        if weight:
            self.graph.params[name] = Param(info, bounds)
        else:
            self.graph.inputs[name] = Port(info, bounds)
        self.graph.values[name] = info
        return name

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
                    if extra == 0:
                        continue
                    extra -= 1
                graph.outputs[name] = name


def _sources(draft: Draft) -> Iterator[Source]:
    for source in draft.inputs.values():
        yield from source if isinstance(source, tuple) else (source,)
