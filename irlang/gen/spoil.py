"""Calls that break one requirement: what a target should refuse.

Takes a valid call of a generated program and changes one thing after the other
(`irlang.gen.changes`), until the definition has exactly one fault to find; or elements of inputs,
where the requirement is on values.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from irlang import ast
from irlang.catalog import Catalog
from irlang.diagnostics import InvalidInput
from irlang.dtypes import integer_range
from irlang.equations import TensorInfo
from irlang.gen.build import generate
from irlang.gen.changes import Resize, SetElements, beyond, changed, changes, empties, way_of
from irlang.gen.draw import Limits
from irlang.gen.edge import on_grid
from irlang.gen.judge import judge
from irlang.gen.moves import Move, SetAttr, evaluate, moved
from irlang.gen.pattern import pattern
from irlang.gen.ranges import demands
from irlang.graph import Graph, Node, Operand, Port
from irlang.instance import Instance
from irlang.interp.program import run
from irlang.interp.values import inputs
from irlang.signature import Fault, Given, involved

Array = np.ndarray[Any, np.dtype[Any]]

_SMALL = Limits(elements=48, length=5)
_OPERATORS = 4  # that are tried for one that can be spoilt
_DRAWN = 12  # calls that are made for one requirement to be broken
_TRIED = 3  # of them that are tried, if there is anything that can be changed
_WAYS = 6  # of breaking one requirement of one call
_FURTHER = 24  # changes that are tried for one more
_CHANGES = 120  # that are tried in all, first of what the requirement is about
_MISSES = 12  # spoilt calls of one call that tell nothing
_BEYOND = 4  # calls with a number beyond all sizes, beside those that break what else there is
_NOWHERE = 2**55  # elements that no memory holds
_MUCH = "a number beyond all sizes"
RULED_OUT = "the framework's own documentation rules it out: "
NOTHING: Mapping[str, Sequence[ast.Require]] = {}


@dataclass(frozen=True, slots=True)
class Spoilt:
    """A program of one call, read from its inputs, that breaks one requirement.

    changed: the attribute or input that was changed, and what it is now. beside: programs that
    differ from it in an attribute that the requirement is about; a target that is given the same
    text for one of them is not given that attribute. added: whether the requirement is not the
    definition's own, but one that was added to it. hollow: whether an input was made to have no
    elements, of which frameworks say less than of others: it must end no process, that is all.
    """

    graph: Graph
    beside: tuple[Graph, ...]
    fault: Fault
    changed: Move | SetElements | Resize
    added: bool = False
    hollow: bool = False

    def values(self, seed: int) -> dict[str, Array]:
        """The inputs of a seed."""
        found = on_grid(self.graph, inputs(self.graph, seed))  # round numbers, as nothing else
        if isinstance(self.changed, SetElements):
            for name, value in self.changed.values:
                found[name].flat[0] = value
        return found


Wanted = tuple[str, ast.Require | None]
Able: TypeAlias = Callable[[Graph], bool]
Tells: TypeAlias = Callable[[Spoilt], bool]  # whether there is something to be learnt from a call


def breakable(
    catalog: Catalog, ops: Sequence[str], added: Mapping[str, Sequence[ast.Require]] = NOTHING
) -> list[Wanted]:
    """What calls of some operators can be made to break: each of their requirements by itself, and
    once for every operator whatever else its signature says.

    added: further conditions, by operator, which are requirements of it too.
    """
    found: list[Wanted] = []
    for name in ops:
        op = catalog.op(name)
        assert op is not None
        found += [(name, one) for one in (*_requirements(op), *added.get(name, ()))]
        found.append((name, None))
    return found


def _requirements(op: ast.Op) -> list[ast.Require]:
    return [statement for statement in op.body if isinstance(statement, ast.Require)]


def spoilt(
    catalog: Catalog, seed: int, ops: Sequence[str] = (), wanted: Wanted | None = None
) -> Spoilt | None:
    """The first of the spoilt calls of a seed (`spoils`), if there are any."""
    return next(iter(spoils(catalog, seed, ops, wanted)), None)


def spoils(
    catalog: Catalog,
    seed: int,
    ops: Sequence[str] = (),
    wanted: Wanted | None = None,
    able: Able = lambda _: True,
    tells: Tells = lambda _: True,
) -> list[Spoilt]:
    """The spoilt calls of a seed, ways to break one requirement of one call; empty where no change
    that was tried breaks exactly one.

    The requirement is drawn, as most changes break the few that speak of ranks, or it is the one
    that is wanted; where none of some calls of the operator can be made to break it, another is
    taken. What is not told apart by its name is whatever else there is to break. able: only such
    valid calls are spoilt. tells: spoilt calls of which it is false are passed over.
    """
    chance = random.Random(seed)
    names = list(ops) or [op.name for op in catalog]
    for number in range(_OPERATORS):
        if wanted is None or number:
            op = catalog.op(chance.choice(names))
            assert op is not None
            named = _requirements(op)
            require = chance.choice(named) if named else None
        else:
            op, require = catalog.op(wanted[0]), wanted[1]
            assert op is not None
        first = (seed * _OPERATORS + number) * _DRAWN
        found = _of_operator(op, require, first, chance, catalog, able, tells)
        if found:
            return found
    return []


def _of_operator(
    op: ast.Op,
    wanted: ast.Require | None,
    seed: int,
    chance: random.Random,
    catalog: Catalog,
    able: Able,
    tells: Tells,
) -> list[Spoilt]:
    found: list[Spoilt] = []
    tried = 0

    def counted(graph: Graph) -> bool:
        nonlocal tried
        fits = able(graph)
        tried += fits
        return fits

    for attempt in range(_DRAWN):
        if tried == _TRIED:
            break
        # Calls apart have defaults by half: what has many attributes is a target's own then.
        called = {"apart": [op.name]} if attempt % 2 else {"ops": [op.name], "size": (1, 1)}
        program = generate(catalog, seed + attempt, limits=_SMALL, **called)
        if program.graph.nodes and _is_open(program.graph.nodes[-1], wanted):
            made = _spoil(program.graph.nodes[-1], wanted, chance, catalog, counted, tells)
            found = made or found
            if made and (wanted is None or made[0].fault.code == _code(op, wanted)):
                break
    return found


def _is_open(node: Node, wanted: ast.Require | None) -> bool:
    """Whether values may break a requirement that is on values: of reals there are no quotients of
    integers, and most calls are of reals.
    """
    if wanted is None or any(statement is wanted for statement, _ in node.instance.deferred):
        return True
    formals = {slot.item.name for slot in pattern(node.op).slots}
    read = (part.name for part in ast.walk(wanted.condition) if isinstance(part, ast.Read))
    return formals.isdisjoint(read)


def _code(op: ast.Op, wanted: ast.Require) -> str:
    return f"{op.name}.{wanted.name}"


def _spoil(
    node: Node,
    wanted: ast.Require | None,
    chance: random.Random,
    catalog: Catalog,
    able: Able,
    tells: Tells,
) -> list[Spoilt]:
    """The call with one fault: of what is wanted, in several ways, or else of any requirement."""
    binding = node.instance.binding
    given: dict[str, Given] = {n: info for n, info in binding.inputs.items() if info is not None}
    demanded = demands(node.instance)
    if demanded is None:
        return []
    valid = _alone(node, given, node.attrs, node.instance, demanded)
    if not able(valid):
        return []
    if any(statement is wanted for statement, _ in node.instance.deferred):
        assert wanted is not None
        made = _of_values(node, given, demanded, wanted, catalog)
        return [] if made is None or not tells(made) else [made]
    added = wanted is not None and not any(wanted is one for one in node.op.body)
    if added and not _holds(wanted, node.instance):
        return []
    code = "" if wanted is None else _code(node.op, wanted)
    about = set(involved(binding, wanted.condition)) if wanted is not None else set()
    candidates = changes(node, chance)
    if added:
        candidates += [Resize(name, 0) for name in _sizes(node, wanted)]
    candidates.sort(key=lambda move: move.name not in about)
    ways: dict[tuple[Any, ...], Spoilt] = {}
    rest: list[Spoilt] = []
    last, misses = len(candidates), 0
    for number, move in enumerate(candidates[:_CHANGES]):
        if len(ways) == _WAYS or number > last or misses == _MISSES:
            break
        way = way_of(move)
        if wanted is not None and way in ways:
            continue
        types, attrs = changed(node, given, move)
        instance = _faulty(node.op, types, attrs, wanted if added else None, move.name)
        if instance is None:
            continue
        broken = instance.faults[0].code
        as_wanted = code in ("", broken)
        if wanted is None:
            way = broken, move.name
        if way in ways or (not as_wanted and (ways or rest)):
            continue
        # Results may have no type by now; a program says no more of them than that they are there.
        # What is added may be that there is something.
        hollow = empties(move)
        empty = hollow or (added and broken == code)
        if not _present(types, instance.outputs or node.instance.outputs or (), empty):
            continue
        made = _spoilt(node, valid, demanded, move, instance, types, attrs)
        made = replace(made, added=added and broken == code, hollow=hollow)
        if not tells(made):
            misses += 1
            continue
        if as_wanted:
            ways[way] = made
            last = min(last, number + _FURTHER)
        else:
            rest.append(made)
    found = list(ways.values()) or rest
    return found if wanted is not None else [*found, *_beyond(node, given, valid, demanded, chance)]


def _beyond(
    node: Node,
    given: dict[str, Given],
    valid: Graph,
    demanded: dict[str, tuple[float, float]],
    chance: random.Random,
) -> Iterator[Spoilt]:
    """The call with a result that no memory holds, or with such a number beside an empty input."""
    for moves in islice(beyond(node, chance), _BEYOND):
        types, attrs = dict(given), dict(node.attrs)
        for move in moves:
            types, attrs = moved(types, attrs, move)
        instance = judge(node.op, types, attrs)
        if instance is None:
            continue
        sizes = [math.prod(info.shape) for _, info in instance.outputs or ()]
        if len(moves) == 1 and (instance.faults or max(sizes, default=0) < _NOWHERE):
            continue
        fault = Fault(f"{node.op.name}.beyond", _MUCH, 1.0, tuple(m.name for m in moves))
        faulty = Instance(replace(instance.binding, faults=[fault]), instance.outputs)
        made = _spoilt(node, valid, demanded, moves[0], faulty, types, attrs)
        yield replace(made, hollow=True)


def _faulty(
    op: ast.Op,
    types: Mapping[str, Given],
    attrs: Mapping[str, Any],
    added: ast.Require | None,
    touched: str,
) -> Instance | None:
    """A call, if it has exactly one fault; added: a condition that is one more requirement.

    touched: the name of what was changed. A fault of a default that speaks of it is the same one: a
    stride is as long as its window, where nothing else is said.
    """
    instance = judge(op, types, attrs)
    if instance is not None and added is not None and not instance.faults:
        instance = _broken(added, instance)
    if instance is None or not instance.faults:
        return None
    first, *rest = instance.faults
    if not rest:
        return instance
    following = {
        attr.name
        for attr in pattern(op).attrs.values()
        if attr.name not in attrs and attr.default is not None and _names(attr.default, touched)
    }
    if touched not in first.sources or not all(following & set(one.sources) for one in rest):
        return None
    return Instance(replace(instance.binding, faults=[first]), instance.outputs)


def _names(node: ast.Expr, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))


def _sizes(node: Node, wanted: ast.Require | None) -> list[str]:
    """The sizes that a condition speaks of."""
    assert wanted is not None
    named = {part.id for part in ast.walk(wanted.condition) if isinstance(part, ast.Name)}
    return sorted(named & set(node.instance.binding.origins))


def _holds(wanted: ast.Require | None, instance: Instance) -> bool:
    """Whether a condition that is no part of the definition holds of a call."""
    assert wanted is not None
    try:
        return evaluate(wanted.condition, instance.binding.scope) is True
    except InvalidInput:
        return False


def _broken(wanted: ast.Require | None, instance: Instance) -> Instance:
    """A valid call, with the fault of breaking a condition that is no part of the definition."""
    assert wanted is not None
    binding = instance.binding
    if _holds(wanted, instance):
        return instance
    sources = tuple(involved(binding, wanted.condition))
    code = f"{binding.op.name}.{wanted.name}"
    fault = Fault(code, f"{RULED_OUT}{wanted.message}", 1.0, sources)
    return Instance(replace(binding, faults=[fault]), instance.outputs)


def _of_values(
    node: Node,
    given: dict[str, Given],
    demanded: dict[str, tuple[float, float]],
    wanted: ast.Require,
    catalog: Catalog,
) -> Spoilt | None:
    """The call with an element of an input, or of two, just outside of what is required."""
    about = dict.fromkeys(involved(node.instance.binding, wanted.condition))
    tried: dict[str, list[float]] = {}
    for formal in about:
        info = given.get(formal)
        if not isinstance(info, TensorInfo) or 0 in info.shape or info.kind == "bool":
            continue
        low, high = demanded.get(formal, (0, 0))
        if info.kind == "real":
            tried[formal] = [n for n in (high + 1, low - 1, 0.0, -1.0) if math.isfinite(n)]
            continue
        least, greatest = integer_range(info.dtype)
        several = (int(high) + 1, int(low) - 1, 0, -1, least, greatest)
        tried[formal] = [n for n in several if least <= n <= greatest]
    lone = [((formal, n),) for formal, numbers in tried.items() for n in numbers]
    pairs = [
        ((one, n), (other, m))
        for one, other in itertools.combinations(tried, 2)
        for n in tried[one]
        for m in tried[other]
    ]
    code = _code(node.op, wanted)
    for values in (*lone, *pairs):
        graph = _alone(node, given, node.attrs, node.instance, demanded)
        fault = Fault(code, "", 1.0, tuple(name for name, _ in values))
        made = Spoilt(graph, (), fault, SetElements(values))
        try:
            run(graph, made.values(0), catalog)
        except InvalidInput as error:
            first = error.diagnostics[0]
            if first.code == code:
                return replace(made, fault=replace(fault, message=first.message))
    return None


def _spoilt(
    node: Node,
    valid: Graph,
    demanded: dict[str, tuple[float, float]],
    move: Move | Resize,
    instance: Instance,
    types: dict[str, Given],
    attrs: dict[str, Any],
) -> Spoilt:
    fault = instance.faults[0]
    outputs = instance.outputs or node.instance.outputs or ()
    graph = _alone(node, types, attrs, _named(instance, node.instance, outputs), demanded)
    others = []
    if isinstance(move, SetAttr):
        others.append(valid)
    for other in _less(attrs, fault.sources):
        without = judge(node.op, types, other)
        if without is not None:
            plain = _named(without, node.instance, without.outputs or outputs)
            others.append(_alone(node, types, other, plain, demanded))
    return Spoilt(graph, tuple(others), fault, move)


def _named(
    instance: Instance, valid: Instance, outputs: Sequence[tuple[str, TensorInfo]]
) -> Instance:
    """A faulty call in which whatever the fault leaves without a value has that of the valid call.

    So a target's rule finds all the names that it asks for, and hands over what is invalid.
    """
    binding = instance.binding
    names = {**valid.binding.scope.names, **binding.scope.names}
    scope = replace(binding.scope, names=names)
    return Instance(replace(binding, scope=scope), tuple(outputs))


def _less(attrs: Mapping[str, Any], names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The attributes without one of `names`, or without one of its numbers."""
    for name in dict.fromkeys(names):
        value = attrs.get(name)
        if name in attrs:
            yield {key: kept for key, kept in attrs.items() if key != name}
        if isinstance(value, tuple):
            for place in range(len(value)):
                yield {**attrs, name: value[:place] + value[place + 1 :]}


def _present(
    types: dict[str, Given], outputs: Sequence[tuple[str, TensorInfo]], empty: bool
) -> bool:
    """Whether there is something in every tensor, unless they may be empty, and not too much."""
    infos = [info for _, info in outputs]
    for given in types.values():
        infos += given if isinstance(given, tuple) else [given] if given is not None else []
    least = 0 if empty else 1
    return all(least <= math.prod(info.shape) <= 4 * _SMALL.elements for info in infos)


def _alone(
    node: Node,
    types: Mapping[str, Given],
    attrs: Mapping[str, Any],
    instance: Instance,
    demanded: dict[str, tuple[float, float]],
) -> Graph:
    graph = Graph("spoilt")
    operands: dict[str, Operand] = {}

    def port(name: str, info: TensorInfo, formal: str) -> str:
        graph.inputs[name] = Port(info, demanded.get(formal))
        graph.values[name] = info
        return name

    for formal, given in types.items():
        if isinstance(given, tuple):
            members = enumerate(given, 1)
            operands[formal] = tuple(port(f"{formal}{n}", info, formal) for n, info in members)
        elif given is not None:
            operands[formal] = port(formal, given, formal)
    outputs = tuple(f"result_{name.replace('.', '_')}" for name, _ in instance.outputs or ())
    for name, (_, info) in zip(outputs, instance.outputs or (), strict=True):
        graph.values[name] = info
    graph.outputs[outputs[0]] = outputs[0]  # targets have operators without the further ones
    graph.nodes.append(Node(outputs[0], node.op, operands, dict(attrs), outputs, instance))
    return graph
