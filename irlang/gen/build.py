"""Programs: valid networks drawn from a seed, operator by operator.

A program is a chain with skips, a graph of cells, or something between, with idioms in it
(`irlang.gen.idiom`). Every call is solved backwards from the definition's signature
(`irlang.gen.solve`), judged by the definition itself, mended where it does not fit
(`irlang.gen.repair`), and given up where that does not help (`irlang.gen.calls`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from irlang import ast
from irlang.catalog import Catalog
from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.gen.calls import Calls
from irlang.gen.choice import Chooser
from irlang.gen.coverage import Coverage
from irlang.gen.draft import Fixed, Value
from irlang.gen.draw import Limits, shape
from irlang.gen.idiom import GIVEN, Idiom, Step, fix, given_dtype, operand_of, otherwise
from irlang.gen.kit import Kit, kit_of
from irlang.gen.mark import mark
from irlang.gen.pattern import Pattern, Slot
from irlang.graph import Graph, Node, Port
from irlang.graph_text import to_ast
from irlang.parser.printer import print_file

_ATTEMPTS = 60  # calls that may fail in a row before a program ends early
_EAGER, _JOINED = 60, 95  # percent of inputs after the first that look for a computed value
_IDIOM_TRIES = 3  # live values that an idiom is tried with
_IDIOM_NEW = 4  # new ones that it is tried with then
_APART_TRIES = 16  # calls of an operator that is to be called apart, one of which is preferred
_APART_DRAWS = 48  # that are drawn for them, as some operators' mostly do not fit
# Of these, before integers of all widths are drawn, before the usual real numbers are, by turns
# with the usual integers (of labels and places some frameworks have no others), and before nothing
# is given that need not be.
_OWN_INTS, _OWN_REALS, _OWN_LEAN = 2, 10, 12
_WIDTHS = ("u8", "i8", "i32", "i64", "i16")  # the first is the likeliest
_SAID = 60  # percent of these that have attributes of an idiom or none, where there is an idiom
_IDIOMS = 10  # percent of choices that are an idiom and not an operator
_ALL = 100
_PLAIN = 50  # percent of idioms whose attributes have their defaults where nothing is said
_ALL_SAID = 40  # percent of other calls apart whose attributes are all drawn: few are odd together
_SCALARS = 75  # percent of idioms whose numbers have no axis
_TWINS = 80  # percent of calls of an idiom that are like an earlier one of the same operator
_INTEGERS = 20  # percent of the new values that idioms of whole numbers begin with
# Of pieces: percent of those of which one thing is otherwise, and that show a value from inside;
# and what their new tensors are, inputs or parameters (`Calls.given`).
_OTHERWISE, _SHOWN = 35, 20
_GIVEN = ((100, 0), (100, 15), (100, 15), (100, 50), (100, 100), (0, 50))


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
    preferred: Callable[[Graph], bool] = lambda _: True,
    pieces: int = _IDIOMS,
    piece: Idiom = (),
) -> Program:
    """The program of a seed.

    ops: names of the operators that may be used (all). size: least and most calls. coverage:
    what is preferred is what it lacks; the program then depends on it as well as on the seed.
    replay: choices to follow instead of drawing. apart: operators that are called instead, once
    each, none reading another's results; preferred: whether one is taken as it is, or another is
    drawn first, given as a program of its own. pieces: percent of choices that are an idiom.
    piece: an idiom that is the whole program, which has no call where that cannot be drawn.
    """
    kit = kit_of(catalog, None if ops is None else frozenset(ops))
    builder = _Builder(kit, Chooser(seed, replay), limits or Limits(), coverage or Coverage())
    if piece:
        graph = builder.piece(piece)
    else:
        graph = builder.side_by_side(apart, preferred) if apart else builder.run(size, pieces)
    graph.name = f"generated_{seed}"
    model = to_ast(graph)
    text = print_file(ast.File((model,), 1))
    return Program(
        graph, model, text, seed, builder.chooser.trace, builder.repaired, builder.rejected
    )


def _lone(graph: Graph) -> Graph:
    """The last call of a graph as a program of its own, read from its inputs."""
    node = graph.nodes[-1]
    operands = dict.fromkeys(node.operands())
    return Graph(
        graph.name,
        inputs={name: Port(graph.values[name], None) for name in operands},
        nodes=[node],
        outputs={name: name for name in node.outputs},
        values={name: graph.values[name] for name in (*operands, *node.outputs)},
    )


class _Builder(Calls):
    def __init__(self, kit: Kit, chooser: Chooser, limits: Limits, coverage: Coverage) -> None:
        super().__init__(kit, chooser, limits)
        self.made = kit.made
        self.joiners = [p for p in kit.made if p.joins]
        self.cell = 0
        self.cell_calls = self.cell_values = 0  # at the start of the cell
        self.coverage = coverage
        self.rejected = 0
        self.weights = coverage.weights(p.op.name for p in kit.made)
        real = {name for name, info in DTYPES.items() if info.kind == "real"} - {*limits.reals}
        self.idioms = kit.idioms_without(frozenset(real))
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

    def side_by_side(self, names: Sequence[str], preferred: Callable[[Graph], bool]) -> Graph:
        """A call of each operator, of new tensors only; those that cannot be drawn are left out.

        Where none of several calls is preferred, the last is taken.
        """
        self.wanted = 0  # no room for what would adapt a tensor to a call
        usual = self.limits
        for name in names:
            tries = drawn = 0
            put_back: Callable[[], None] | None = None
            while tries < _APART_DRAWS and drawn < _APART_TRIES:
                wide = tries >= _OWN_INTS and (tries < _OWN_REALS or tries % 2 == 1)
                self.limits = replace(
                    usual,
                    ints=_WIDTHS if wide else usual.ints,
                    reals=usual.reals if tries < _OWN_REALS else Limits().reals,
                )
                fixed = self.known(name)
                lean = tries >= _OWN_LEAN
                undo = mark(self.graph, self.live, self.by_name)
                tries += 1
                fixed = replace(
                    fixed, plain=fixed.plain or lean, said=fixed.said and not lean, lean=lean
                )
                if not self.call(self.kit.patterns[name], [], 0, fixed):
                    continue
                drawn += 1
                if preferred(_lone(self.graph)):
                    break
                put_back = undo()
            else:
                if put_back is not None:
                    put_back()
            self.limits = usual
        self.finish()
        return self.graph

    def known(self, name: str) -> Fixed:
        """Attributes that an idiom of one call says of an operator, or none; the others may be
        their defaults: frameworks have many operators for such attributes alone.
        """
        said = [one[0].attrs for one in self.idioms if len(one) == 1 and one[0].op == name]
        attrs = self.chooser.pick([{}, *said]) if said and self.chooser.chance(_SAID) else {}
        plain = self.chooser.chance(_PLAIN)
        return Fixed(
            attrs=dict(attrs), plain=plain, said=not plain and self.chooser.chance(_ALL_SAID)
        )

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

    def piece(self, steps: Idiom) -> Graph:
        """An idiom of new values and nothing else; one thing of it may be otherwise, and a value
        from inside a result.
        """
        chooser = self.chooser
        self.wanted = 0  # no room for what would adapt a tensor to a call
        self.given = chooser.pick(_GIVEN)
        drawn = otherwise(steps, chooser) if chooser.chance(_OTHERWISE) else steps
        if not self.idiom(drawn, []) and drawn is not steps:
            self.idiom(steps, [])
        self.finish()
        inner = [value.name for value in self.live if value.uses]
        if inner and chooser.chance(_SHOWN):
            shown = chooser.pick(inner)
            self.graph.outputs[shown] = shown
        return self.graph

    def idiom(self, steps: Idiom, order: list[int]) -> bool:
        """Adds all calls of an idiom, of a live value or of a new one; False where none fits."""
        begun: list[dict[int, Value]] = [
            {GIVEN: self.live[position]} for position in order[:_IDIOM_TRIES]
        ]
        for found in (*begun, *({} for _ in range(_IDIOM_NEW))):
            plain = self.chooser.chance(_PLAIN)
            scalars = self.chooser.chance(_SCALARS)
            undo = mark(self.graph, self.live, self.by_name)
            new = not found
            rank, dtype = self.rank(steps), given_dtype(steps)
            if not new and dtype not in ("", found[GIVEN].info.dtype):
                continue
            if new and (rank or dtype or self.begins(steps[0])):
                found[GIVEN] = self.drawn(steps, rank, dtype)
            # What a call of a new value lacks is new as well.
            others = [] if new else order
            wanted, done = self.wanted, True
            for at in range(len(steps)):
                self.wanted = wanted - (len(steps) - 1 - at)  # the rest of the idiom has its room
                done = done and self.step(at, steps, found, others, plain, scalars)
            self.wanted = wanted
            if done:
                return True
            undo()
        return False

    def step(
        self, at: int, steps: Idiom, found: dict[int, Value], order: list[int], plain: bool,
        scalars: bool,
    ) -> bool:  # fmt: skip
        """Adds one call of an idiom; found: the results of those before it, and `GIVEN`.

        scalars: whether numbers have no axis, as passes of optimisers ask for; else some have.
        """
        made = self.kit.patterns[steps[at].op]
        axes = 0 if scalars else self.chooser.between(0, 4)
        step = self.met(at, steps, found)
        fixed = fix(step, made.slots, found, axes, plain=plain)
        twin = self.twin(at, steps, found) if self.chooser.chance(_TWINS) else None
        if fixed is not None and twin is not None:
            fixed = self.alike(fixed, made, twin)
        # What it began with says how many axes there are: rows of a product are normalised, too.
        # But what has a number for each axis of an image has some.
        bare = True if at and not made.by_axis else None
        if fixed is None or not self.call(made, order, 0, fixed, bare):
            return False
        node = self.graph.nodes[-1]
        found[at] = self.by_name[node.outputs[0]]
        given = node.inputs.get(operand_of(steps[at], made.slots))
        if GIVEN not in found and isinstance(given, str):
            found[GIVEN] = Value(given, self.graph.values[given])
            self.by_name.setdefault(given, found[GIVEN])
        return True

    def met(self, at: int, steps: Idiom, found: dict[int, Value]) -> Step:
        """A call of an idiom, of which what is drawn is settled where the rest of the idiom is to
        meet it: a call that reads nothing else, and members of a family, are of the type of `x`.
        """
        step = steps[at]
        slots = self.kit.patterns[step.op].slots
        family = bool(slots) and slots[-1].item.family
        first = len(slots) - 1 if family else len(step.operands)
        lone = all(operand is None for operand in step.operands[:first])
        operands = list(step.operands)
        for place, operand in enumerate(operands):
            if operand is None and GIVEN in found and (place >= first or (lone and place == 0)):
                key = GIVEN - 1 - len(found)
                found[key] = self.fresh(slots[min(place, len(slots) - 1)], found[GIVEN].info)
                operands[place] = key
        return replace(step, operands=tuple(operands))

    def twin(self, at: int, steps: Idiom, found: dict[int, Value]) -> Node | None:
        """The node of an earlier call of the same operator, with the same attributes said."""
        said = [(one.op, one.attrs, len(one.operands)) for one in steps[: at + 1]]
        before = next((found[i] for i in range(at) if said[i] == said[at]), None)
        nodes = {node.outputs[0]: node for node in self.graph.nodes}
        return nodes[before.name] if before is not None else None

    def alike(self, fixed: Fixed, made: Pattern, twin: Node) -> Fixed:
        """A call with the attributes of another, and new tensors of the types of that one's."""
        inputs = dict(fixed.inputs)
        for slot in made.slots:
            operand = twin.inputs.get(slot.item.name)
            if slot.item.name not in inputs and isinstance(operand, str):
                inputs[slot.item.name] = self.fresh(slot, self.graph.values[operand])
        return replace(fixed, inputs=inputs, attrs={**twin.attrs, **fixed.attrs}, plain=True)

    def fresh(self, slot: Slot, info: TensorInfo) -> Value:
        """A new tensor as a value."""
        name = self.operand(slot, info, "z", None)
        self.by_name[name] = Value(name, info)
        return self.by_name[name]

    def begins(self, step: Step) -> bool:
        """Whether a call needs to know `x`: a number has the type of what it stands beside, and a
        family's members are not drawn one by one.
        """
        slots = self.kit.patterns[step.op].slots
        family = bool(slots and slots[0].item.family)
        return family or bool(step.numbers)

    def rank(self, steps: Idiom) -> int | None:
        """How many axes `x` has if a call behind the first one has so many numbers, one for each,
        and those between do not change that.
        """
        ranks = [self.kit.patterns[step.op].rank(step.attrs) for step in steps[1:]]
        return next((rank for rank in ranks if rank is not None), None)

    def drawn(self, steps: Idiom, rank: int | None, dtype: str) -> Value:
        """A new input of the type that is told, if any is; else of real numbers, or of integers
        where those of the idiom are whole.
        """
        sizes = shape(self.chooser, rank or self.chooser.between(1, 4), self.limits)
        numbers = [number for step in steps for number in step.numbers]
        whole = all(map(float.is_integer, numbers)) and self.chooser.chance(_INTEGERS)
        dtypes = (dtype,) if dtype else self.limits.ints if whole else self.limits.reals
        info = TensorInfo(sizes, self.chooser.pick(dtypes))
        name = self.free("x")
        self.graph.inputs[name] = Port(info, None)
        self.graph.values[name] = info
        self.by_name[name] = Value(name, info)
        return self.by_name[name]
