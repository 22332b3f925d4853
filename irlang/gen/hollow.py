"""Calls that a target may answer as it will, but that must end no process.

They ask for what no memory holds, for elements of an axis of nothing, have a number of which the
definition says nothing, or a fault beside tensors without elements. What a kernel would refuse
elsewhere it may never look at there, or look at when it is too late.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace

from irlang import ast
from irlang.catalog import Catalog
from irlang.equations import TensorInfo
from irlang.gen.changes import (
    Resize,
    SetElements,
    beyond,
    changed,
    emptied,
    is_long,
    sizes_of,
)  # fmt: skip
from irlang.gen.fed import fed
from irlang.gen.judge import judge
from irlang.gen.moves import Move, Retype, SetAttr, moved
from irlang.gen.pattern import pattern
from irlang.gen.spoilt import OPEN, Spoilt, alone, broken_by, spoilt_call
from irlang.graph import Node
from irlang.instance import Instance
from irlang.listed import listed
from irlang.signature import Fault, Given

_OPEN = (math.nan, math.inf, -math.inf, 3e38)  # numbers of which a definition may say nothing
_NOWHERE = 2**55  # elements that no memory holds
_MUCH = "a number beyond all sizes"
_LONG = "a list of more numbers than tensors have axes"


def without_elements(
    node: Node, given: dict[str, Given], chance: random.Random
) -> list[tuple[Node, dict[str, Given]]]:
    """The call with a size of 0, of one input or of all that have it, where it is valid so; first
    where most inputs have no elements: nothing else tells their ranks then.
    """
    moves: list[Move | Resize] = [*emptied(node), *(Resize(name, 0) for name in sizes_of(node))]
    found: list[tuple[Node, dict[str, Given]]] = []
    for move in chance.sample(moves, len(moves)):
        types, attrs = changed(node, given, move)
        instance = judge(node.op, types, attrs)
        if instance is not None and not instance.faults and _hollow_ones(types):
            found.append((replace(node, attrs=attrs, instance=instance), types))
    return sorted(found, key=lambda one: -_hollow_ones(one[1]))


def _hollow_ones(types: dict[str, Given]) -> int:
    infos = (given if isinstance(given, tuple) else (given,) for given in types.values())
    return sum(info is not None and 0 in info.shape for several in infos for info in several)


def beyond_all(
    node: Node,
    given: dict[str, Given],
    demanded: dict[str, tuple[float, float]],
    chance: random.Random,
) -> Iterator[Spoilt]:
    """The call with a result that no memory holds, or with such a number beside an empty input, or
    with a list that is longer than any tensor has axes.
    """
    valid = alone(node, given, node.attrs, node.instance, demanded)
    for moves in beyond(node, chance):
        types, attrs = dict(given), dict(node.attrs)
        for move in moves:
            types, attrs = moved(types, attrs, move)
        instance = judge(node.op, types, attrs)
        if instance is None:
            continue
        sizes = [math.prod(info.shape) for _, info in instance.outputs or ()]
        long = is_long(moves[0])
        much = not instance.faults and max(sizes, default=0) >= _NOWHERE
        if len(moves) == 1 and not (long or much):
            continue
        kind, said = ("long", _LONG) if long else ("beyond", _MUCH)
        fault = Fault(f"{node.op.name}.{kind}", said, 1.0, tuple(m.name for m in moves))
        faulty = Instance(replace(instance.binding, faults=[fault]), instance.outputs)
        made = spoilt_call(node, valid, demanded, moves[0], faulty, types, attrs)
        yield replace(made, hollow=len(moves) > 1 or long)


def number_unsaid(
    node: Node,
    given: dict[str, Given],
    demanded: dict[str, tuple[float, float]],
    chance: random.Random,
) -> Iterator[Spoilt]:
    """The call with a number that definitions often say nothing about: it must end no process."""
    for formal, info in given.items():
        if isinstance(info, TensorInfo) and info.kind == "real" and 0 not in info.shape:
            values = ((formal, chance.choice(_OPEN)),)
            graph = alone(node, given, node.attrs, node.instance, demanded)
            fault = Fault(f"{node.op.name}.number", OPEN, 1.0, (formal,))
            yield Spoilt(graph, (), fault, SetElements(values), hollow=True)


def number_listed(
    node: Node,
    given: dict[str, Given],
    demanded: dict[str, tuple[float, float]],
    chance: random.Random,
) -> Iterator[Spoilt]:
    """The call with one of its numbers as a list, of none of it or of two: what a framework reads
    from a tensor may be of another form than it looks for. It must end no process.
    """
    declared, names = pattern(node.op).attrs, node.instance.binding.scope.names
    numbers = [name for name, attr in declared.items() if attr.type.kind == "scalar"]
    valid = alone(node, given, node.attrs, node.instance, demanded)
    for name in chance.sample(numbers, len(numbers)):
        if type(names.get(name)) not in (int, float):
            continue
        for times in (0, 2):
            value = listed(names[name], times)
            binding = node.instance.binding
            scope = replace(binding.scope, names={**names, name: value})
            message = f"`{name}` is {value}; it must be one number"
            fault = Fault(f"{node.op.name}.form", message, 1.0, (name,))
            faulty = Instance(replace(binding, scope=scope, faults=[fault]), node.instance.outputs)
            graph = alone(node, given, {**node.attrs, name: value}, faulty, demanded)
            yield Spoilt(graph, (valid,), fault, SetAttr(name, value), hollow=True)


def of_nothing(
    node: Node,
    given: dict[str, Given],
    demanded: dict[str, tuple[float, float]],
    wanted: ast.Require,
    catalog: Catalog,
) -> Iterator[Spoilt]:
    """The call with an axis of nothing, of which elements are asked for all the same."""
    code = f"{node.op.name}.{wanted.name}"
    for formal, info in given.items():
        if not isinstance(info, TensorInfo) or 0 in info.shape:
            continue
        for axis in range(len(info.shape)):
            shape = (*info.shape[:axis], 0, *info.shape[axis + 1 :])
            move = Retype(formal, None, replace(info, shape=shape))
            types, attrs = moved(dict(given), dict(node.attrs), move)
            instance = judge(node.op, types, attrs)
            if instance is None or instance.faults or not instance.outputs:
                continue
            if any(0 in result.shape for _, result in instance.outputs):
                continue
            graph = alone(node, types, attrs, instance, demanded)
            made = Spoilt(graph, (), Fault(code, "", 1.0, (formal,)), move)
            why = broken_by(graph, fed(made, catalog), catalog)
            if why is not None and why.code == code:
                yield replace(made, fault=replace(made.fault, message=why.message))
