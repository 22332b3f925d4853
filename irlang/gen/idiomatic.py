"""Idioms in a program: their calls, added whole or not at all, and pieces made of one alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from irlang import ast
from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.gen.calls import Calls
from irlang.gen.choice import Chooser
from irlang.gen.draft import Fixed, Value
from irlang.gen.draw import Limits, shape
from irlang.gen.effect import is_hollow, is_ordered
from irlang.gen.idiom import (
    GIVEN,
    Idiom,
    Key,
    Result,
    Step,
    along,
    fix,
    given_dtype,
    given_rank,
    is_call,
    is_key,
    is_new,
    operand_of,
    otherwise,
)
from irlang.gen.kit import Kit
from irlang.gen.mark import mark
from irlang.gen.pattern import Pattern, Slot
from irlang.graph import Graph, Node, Port

_IDIOM_TRIES = 3  # live values that an idiom is tried with
_IDIOM_NEW = 4  # new ones that it is tried with then
_ALL = 100
# Percent of idioms whose attributes have their defaults where nothing is said, and of exact pieces;
# and of those among them in which a call does nothing by that, such as a padding.
_EXACT_PLAIN, _HOLLOW = 80, 10
# Percent of idioms whose numbers have no axis, and of exact pieces: what is lost with a number are
# the axes that it has and nothing else.
_SCALARS, _EXACT_SCALARS = 75, 85
_TWINS = 80  # percent of calls of an idiom that are like an earlier one of the same operator
_INTEGERS = 20  # percent of the new values that idioms of whole numbers begin with
# Of pieces: percent of those of which one thing is otherwise, and that show a value from inside;
# and what their new tensors are, inputs or parameters (`Calls.given`).
_OTHERWISE, _SHOWN = 35, 20
_GIVEN = ((100, 0), (100, 15), (100, 15), (100, 50), (100, 100), (0, 50), (0, 0))
# Percent of pieces that are as a pass asks for them: one input, of 32 bits, all else parameters, of
# scales and places too, numbers without axes, nothing shown; and of those whose
# result another short idiom reads, as some passes leave what is a result.
_EXACT, _FOLLOWED = 50, 50
_SQUARE = 50  # percent of the values that a call reads twice whose axes are all as long
_SHORT = 2  # calls of such an idiom
_NOTHING = 1  # percent of empty axes of an idiom that cannot be made without any


class Idioms(Calls):
    """A graph that idioms are added to. exact: whether it is a piece as a pass asks for it."""

    def __init__(self, kit: Kit, chooser: Chooser, limits: Limits) -> None:
        super().__init__(kit, chooser, limits)
        self.exact = False
        real = {name for name, info in DTYPES.items() if info.kind == "real"} - {*limits.reals}
        self.idioms = kit.idioms_without(frozenset(real))

    def piece(self, steps: Idiom, beside: Sequence[Idiom] = ()) -> Graph:
        """An idiom of new values and nothing else, and others beside it of new values, too; one
        thing of each may be otherwise, and a value from inside a result.
        """
        chooser = self.chooser
        self.wanted = 0  # no room for what would adapt a tensor to a call
        self.exact = chooser.chance(_EXACT)
        self.given = (_ALL, 0) if self.exact else chooser.pick(_GIVEN)
        if self.exact:
            self.limits = replace(self.limits, reals=Limits().reals)
        for one in (steps, *beside):
            other = chooser.chance(_OTHERWISE)
            drawn = otherwise(one, chooser, self.ordered) if other else one
            done = self.idiom(drawn, []) or (other and self.idiom(one, [])) or self.of_nothing(one)
            if done and self.exact and chooser.chance(_FOLLOWED):
                short = [some for some in self.idioms if len(some) <= _SHORT and not is_call(some)]
                if short:  # none is of the operators of some campaigns
                    self.idiom(chooser.pick(short), [len(self.live) - 1], 0)
        self.finish()
        inner = [value.name for value in self.live if value.uses]
        if inner and not self.exact and chooser.chance(_SHOWN):
            shown = chooser.pick(inner)
            self.graph.outputs[shown] = shown
        return self.graph

    def of_nothing(self, steps: Idiom) -> bool:
        """Adds an idiom whose results may be empty, as some leave nothing of a tensor."""
        limits = self.limits
        self.limits = replace(limits, empty=limits.empty or _NOTHING)
        done = self.idiom(steps, [])
        self.limits = limits
        return done

    def idiom(self, steps: Idiom, order: list[int], new: int = _IDIOM_NEW) -> bool:
        """Adds all calls of an idiom, of a live value or of a new one; False where none fits.

        new: how many new values it is tried with.
        """
        begun: list[dict[Key, Value]] = [
            {GIVEN: self.live[position]} for position in order[:_IDIOM_TRIES]
        ]
        rank, dtype = given_rank(steps) or self.rank(steps), given_dtype(steps)
        for found in (*begun, *({} for _ in range(new))):
            plain = self.chooser.chance(_EXACT_PLAIN if self.exact else self.limits.plain)
            hollow = self.chooser.chance(_HOLLOW)
            scalars = self.chooser.chance(_EXACT_SCALARS if self.exact else _SCALARS)
            undo = mark(self.graph, self.live, self.by_name)
            fresh = not found
            if not fresh and not self.suits(found[GIVEN].info, given_rank(steps), dtype):
                continue
            if fresh and (rank or dtype or self.begins(steps[0])):
                found[GIVEN] = self.drawn(steps, rank, dtype)
            # What a call of a new value lacks is new as well.
            others = [] if fresh or self.exact else order
            wanted, done = self.wanted, True
            for at in range(len(steps)):
                self.wanted = wanted - (len(steps) - 1 - at)  # the rest of the idiom has its room
                meant = plain and (
                    hollow or not is_hollow(self.pattern_of(steps[at]), self.kit.catalog)
                )
                done = done and self.step(at, steps, found, others, meant, scalars)
            self.wanted = wanted
            if done:
                return True
            undo()
        return False

    @staticmethod
    def suits(info: TensorInfo, rank: int, dtype: str) -> bool:
        """Whether a value is what an idiom says that `x` is."""
        return dtype in ("", info.dtype) and rank in (0, len(info.shape))

    def step(
        self, at: int, steps: Idiom, found: dict[Key, Value], order: list[int], plain: bool,
        scalars: bool,
    ) -> bool:  # fmt: skip
        """Adds one call of an idiom; found: the results of those before it, and `GIVEN`.

        scalars: whether numbers have no axis, as passes of optimisers ask for; else some have.
        """
        made = self.pattern_of(steps[at])
        axes = 0 if scalars else self.chooser.between(1, 4)
        values, calls = len(self.graph.values), len(self.graph.nodes)
        step = self.met(at, steps, found)
        fixed = fix(step, made.slots, found, axes, plain=plain)
        twin = self.twin(at, steps, found) if self.chooser.chance(_TWINS) else None
        if fixed is not None and twin is not None:
            fixed = self.alike(fixed, made, twin)
        if fixed is not None:
            fixed = asked(fixed, step, made)
        # What it began with says how many axes there are: rows of a product are normalised, too.
        # But what has a number for each axis of an image has some.
        bare = True if (at or given_rank(steps)) and not made.by_axis else None
        if fixed is None or not self.call(made, order, 0, fixed, bare):
            return False
        self.forget(values, calls)
        node = self.graph.nodes[-1]
        found[at] = self.by_name[node.outputs[0]]
        for place, name in enumerate(node.outputs):
            found[Result(at, place)] = self.by_name[name]
        given = node.inputs.get(operand_of(steps[at], made.slots))
        if GIVEN not in found and isinstance(given, str):
            found[GIVEN] = Value(given, self.graph.values[given])
            self.by_name.setdefault(given, found[GIVEN])
        return True

    def pattern_of(self, step: Step) -> Pattern:
        """The operator of a call."""
        return self.kit.patterns[step.op]

    def ordered(self, step: Step) -> bool:
        """Whether a call gives another number where its operands change places."""
        return is_ordered(self.pattern_of(step), self.kit.catalog)

    def forget(self, values: int, calls: int) -> None:
        """Takes out the tensors that were made for a call that reads others in their place.

        values, calls: how many there were before it.
        """
        graph = self.graph
        read = {name for node in graph.nodes[calls:] for name in node.operands()}
        for name in [name for name in [*graph.values][values:] if name not in read]:
            if name in graph.inputs or name in graph.params:
                for table in (graph.inputs, graph.params, graph.values, self.by_name):
                    table.pop(name, None)

    def met(self, at: int, steps: Idiom, found: dict[Key, Value]) -> Step:
        """A call of an idiom, of which what is drawn is settled where the rest of the idiom is to
        meet it: a call that reads nothing else, and members of a family, are of the type of `x`;
        what is along an axis is so of what it meets.
        """
        step = steps[at]
        slots = self.kit.patterns[step.op].slots
        family = bool(slots) and slots[-1].item.family
        first = len(slots) - 1 if family else len(step.operands)
        lone = all(operand is None for operand in step.operands[:first])
        operands = list(step.operands)
        peers = [found[one].info for one in (*operands, GIVEN) if is_key(one) and one in found]
        for place, operand in enumerate(operands):
            if isinstance(operand, str) and peers:
                key = GIVEN - 1 - len(found)
                info = along(operand, peers[0])
                found[key] = self.fresh(slots[min(place, len(slots) - 1)], info)
                operands[place] = key
            if operand is None and GIVEN in found and (place >= first or (lone and place == 0)):
                key = GIVEN - 1 - len(found)
                found[key] = self.fresh(slots[min(place, len(slots) - 1)], found[GIVEN].info)
                operands[place] = key
        return replace(step, operands=tuple(operands))

    def twin(self, at: int, steps: Idiom, found: dict[Key, Value]) -> Node | None:
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
        """Whether a call needs to know `x`: a number has the type of what it stands beside, a
        family's members are not drawn one by one, and what reads it twice would read two tensors.
        """
        slots = self.kit.patterns[step.op].slots
        family = bool(slots and slots[0].item.family)
        twice = step.operands.count(GIVEN) > 1
        along_it = any(isinstance(o, str) for o in step.operands)
        return family or twice or bool(step.numbers) or along_it

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
        axes = rank or self.chooser.between(1, 4)
        both = steps[0].operands.count(GIVEN) > 1  # on either side, as in a product with itself
        sizes = shape(
            self.chooser, axes, replace(self.limits, alike=_SQUARE) if both else self.limits
        )
        numbers = [number for step in steps for number in step.numbers]
        whole = all(map(float.is_integer, numbers)) and self.chooser.chance(_INTEGERS)
        dtypes = (dtype,) if dtype else self.limits.ints if whole else self.limits.reals
        info = TensorInfo(sizes, self.chooser.pick(dtypes))
        name = self.free("x")
        self.graph.inputs[name] = Port(info, None)
        self.graph.values[name] = info
        self.by_name[name] = Value(name, info)
        return self.by_name[name]


def asked(fixed: Fixed, step: Step, made: Pattern) -> Fixed:
    """A call of which all is given that the idiom names, though it need not be: `_` says that it is
    there. Of a type that nothing else says it is what an attribute names, as a zero point is.
    """
    named = [
        slot
        for operand, slot in zip(step.operands, made.slots, strict=False)
        if is_new(operand) and slot.item.default is not None and slot.item.name not in fixed.inputs
    ]
    if not named:
        return fixed
    said = {s.variable for s in made.slots if s not in named and s.variable}
    types = [dtype for attr in made.attrs.values() if (dtype := dtype_of(attr, fixed.attrs))]
    dtypes = {
        slot.variable: dtype
        for slot in named
        for dtype in types[:1]
        if slot.variable and slot.variable not in said and dtype in slot.allowed
    }
    return replace(
        fixed, asked=frozenset(slot.item.name for slot in named), dtypes={**dtypes, **fixed.dtypes}
    )


def dtype_of(attr: ast.Attr, attrs: Mapping[str, Any]) -> str:
    """The element type that an attribute names, by default where it is not said; else empty."""
    if attr.type.name != "dtype":
        return ""
    usual = attr.default.id if isinstance(attr.default, ast.Name) else ""
    return str(attrs.get(attr.name, usual))
