"""Moves that may mend a call, read off a fault: which attribute or tensor takes part, and which
numbers stand in the condition that fails.

Moves are data. Nothing here knows whether a move helps; `irlang.gen.repair` tries them, and
`irlang.gen.suggest` shows them in the user's text.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from numbers import Real
from typing import Any

from irlang import ast
from irlang.diagnostics import InvalidInput
from irlang.dtypes import CLASSES, DTYPES
from irlang.equations import TensorInfo
from irlang.evaluate import Evaluator
from irlang.gen.draw import default_number, divisors
from irlang.gen.pattern import Slot, pattern
from irlang.instance import Instance
from irlang.scope import Scope, show
from irlang.signature import Binding, Fault, Given

evaluate = Evaluator()
_MOST_NUMBER = 4096  # larger numbers of a condition suggest nothing


@dataclass(frozen=True, slots=True)
class SetAttr:
    """An attribute is given another value."""

    name: str
    value: Any

    def __str__(self) -> str:
        return f"set {self.name} = {show(self.value)}"


@dataclass(frozen=True, slots=True)
class Retype:
    """An input (or member of a family) gets another type."""

    name: str
    member: int | None
    info: TensorInfo

    def __str__(self) -> str:
        return f"make {self.name} {self.info}"


Move = SetAttr | Retype


def moves(instance: Instance, attrs: dict[str, Any], fault: Fault) -> Iterator[Move]:
    """Moves for a fault, the least change of the likeliest culprit first."""
    binding = instance.binding
    numbers, lists = mentioned(binding, fault)
    declared = pattern(binding.op).attrs
    slots = {slot.item.name: slot for slot in pattern(binding.op).slots}
    queues: list[Iterator[Move]] = []
    for source in dict.fromkeys(fault.sources):
        if source in declared:
            current = attrs.get(source, binding.scope.names.get(source))
            queues.append(_settings(declared[source], current, numbers, lists))
        elif source in slots:
            given = binding.inputs.get(source)
            members = given if isinstance(given, tuple) else (given,)
            for number, info in enumerate(members):
                if info is not None:
                    member = number if isinstance(given, tuple) else None
                    types = input_types(slots[source], info, binding, numbers, lists)
                    queues.append(map(functools.partial(Retype, source, member), types))
    while queues:  # each culprit in turn
        for queue in list(queues):
            move = next(queue, None)
            if move is None:
                queues.remove(queue)
            else:
                yield move


def _settings(
    attr: ast.Attr, current: Any, numbers: list[int], lists: list[tuple[int, ...]]
) -> Iterator[Move]:
    default = default_value(attr)
    if default is not None:
        yield SetAttr(attr.name, default)
    for value in attribute_values(attr, current, numbers, lists):
        if value != current or type(value) is not type(current):
            yield SetAttr(attr.name, value)


def default_value(attr: ast.Attr) -> Any:
    """The default of an attribute where it is written as a value; None where it is computed."""
    if isinstance(attr.default, ast.Name):
        flags = {"true": True, "false": False}
        named = attr.type.kind == "enum" or attr.type.name == "dtype"
        return attr.default.id if named else flags.get(attr.default.id)
    return default_number(attr)


def mentioned(binding: Binding, fault: Fault) -> tuple[list[int], list[tuple[int, ...]]]:
    """The whole numbers that a failing condition compares or mentions, and the lists of them."""
    numbers: dict[int, None] = {}
    lists: dict[tuple[int, ...], None] = {}
    name = fault.code.partition(".")[2]
    for statement in binding.op.body:
        if isinstance(statement, ast.Require) and statement.name == name:
            for part in ast.walk(statement.condition):
                _note(part, binding.scope, numbers, lists)
    for source in fault.sources:
        given = binding.inputs.get(source)
        for info in given if isinstance(given, tuple) else (given,):
            if info is not None:
                lists.setdefault(info.shape)
                numbers.update(dict.fromkeys(info.shape))
    for value in binding.scope.names.values():
        if type(value) is int:
            numbers.setdefault(value)
        elif type(value) is tuple and value and all(type(v) is int for v in value):
            lists.setdefault(value)
    return [n for n in numbers if abs(n) <= _MOST_NUMBER], list(lists)


_VALUED = (ast.Name, ast.Number, ast.Unary, ast.Binary, ast.Call, ast.Read, ast.If)


def _note(
    part: ast.Node, scope: Scope, numbers: dict[int, None], lists: dict[tuple[int, ...], None]
) -> None:
    if not isinstance(part, _VALUED):
        return
    try:
        value = evaluate(part, scope)
    except (InvalidInput, ArithmeticError):
        return  # mentions an index: it has no one value
    if isinstance(value, Fraction):
        numbers.update(dict.fromkeys((int(value), int(value) + 1)))
    elif type(value) is int:
        numbers.setdefault(value)
    elif type(value) is tuple and all(type(v) is int for v in value):
        lists.setdefault(value)
        numbers.update(dict.fromkeys(value))


def near(current: Any, numbers: list[int]) -> list[int]:
    """Whole numbers to try in place of `current`, nearest first: those of the condition, one more
    and less, their divisors and quotients.
    """
    found: dict[int, None] = {}
    for n in numbers:
        found.update(dict.fromkeys((n, n - 1, n + 1)))
        if 1 < n <= 512:
            found.update(dict.fromkeys(divisors(n)))
        if type(current) is int and current:
            found.update(dict.fromkeys((n // current, n * current)))
    found.update(dict.fromkeys((0, 1, -1)))
    if type(current) is int:
        found.update(dict.fromkeys((current + 1, current - 1, -current)))
        found.pop(current, None)
        return sorted(found, key=lambda n: (abs(n - current), -n))
    return sorted(found, key=abs)


def attribute_values(
    attr: ast.Attr, current: Any, numbers: list[int], lists: list[tuple[int, ...]]
) -> Iterator[Any]:
    """Values of an attribute's type that are worth trying."""
    kind = attr.type
    if kind.kind == "enum":
        yield from kind.choices
    elif kind.name == "dtype":
        yield from sorted(CLASSES["any"])
    elif kind.name == "bool":
        yield from (True, False) if kind.kind == "scalar" else ()
    elif kind.kind == "scalar" and kind.name == "int":
        yield from near(current, numbers)
    elif kind.name == "real":
        now = current if isinstance(current, (int, float)) else 1.0
        yield from dict.fromkeys(
            (0.5, 1.0, 0.1, -now, 0.0, 2.0, *map(float, sorted(numbers, key=abs)))
        )
    elif kind.kind == "vector":
        yield from _vectors(current, numbers, lists)


def _vectors(
    current: Any, numbers: list[int], lists: list[tuple[int, ...]]
) -> Iterator[tuple[int, ...]]:
    now = current if isinstance(current, tuple) else (current,)
    if any(isinstance(n, bool) or not isinstance(n, Real) for n in now):
        now = ()  # a list in the list, or a text: there is nothing to move from
    few = [n for n in near(now[0] if now else None, numbers) if abs(n) <= 64][:12]
    if len(now) > 1:
        yield from ((n,) * len(now) for n in few[:3])
    for axis, value in enumerate(now):
        for n in dict.fromkeys((value - 1, value + 1, *few)):
            if n != value:
                yield (*now[:axis], n, *now[axis + 1 :])
    if len(now) > 1:
        yield from ((n,) * len(now) for n in few[3:])
    for sizes in lists:
        yield sizes
        yield tuple(range(len(sizes)))
        for axis in range(len(sizes)):
            yield sizes[:axis] + sizes[axis + 1 :]
            yield (*sizes[:axis], 1, *sizes[axis:])
    if len(now) > 1:
        yield from (now[:-1], now[1:], tuple(sorted(set(now))))
    if now:
        yield (*now, now[-1])
        yield (*now, 1)


def input_types(
    slot: Slot, info: TensorInfo, binding: Binding, numbers: list[int], lists: list[tuple[int, ...]]
) -> Iterator[TensorInfo]:
    """Types that an input could have instead: another element type, size or number of axes."""
    if (
        slot.variable
        and slot.variable in binding.dtypes
        and info.dtype != binding.dtypes[slot.variable]
    ):
        yield replace(info, dtype=binding.dtypes[slot.variable])
    if info.dtype not in slot.allowed:
        same = [d for d in DTYPES if d in slot.allowed]
        yield from (replace(info, dtype=d) for d in same)
    shape = info.shape
    for sizes in sorted(lists, key=lambda sizes: len(sizes) != len(shape)):
        if sizes != shape and all(n >= 0 for n in sizes):
            yield replace(info, shape=sizes)
    sizes_ = [n for n in near(None, numbers) if n >= 1]
    nearest = [_by_distance({*sizes_} - {size}, size) for size in shape]
    for round_ in itertools.zip_longest(*nearest):  # the nearest size of every axis comes first
        for axis, n in enumerate(round_):
            if n is not None:
                yield replace(info, shape=(*shape[:axis], n, *shape[axis + 1 :]))
    for axis in range(len(shape)):
        yield replace(info, shape=shape[:axis] + shape[axis + 1 :])
    for axis in range(len(shape) + 1):
        yield replace(info, shape=(*shape[:axis], 1, *shape[axis:]))


def _by_distance(numbers: set[int], size: int) -> list[int]:
    return sorted(numbers, key=lambda n: (abs(n - size), n))


def moved(
    given: dict[str, Given], attrs: dict[str, Any], move: Move
) -> tuple[dict[str, Given], dict[str, Any]]:
    """The types and attributes of a call after a move."""
    if isinstance(move, SetAttr):
        return given, {**attrs, move.name: move.value}
    old = given[move.name]
    if move.member is None or not isinstance(old, tuple):
        return {**given, move.name: move.info}, attrs
    return {**given, move.name: (*old[: move.member], move.info, *old[move.member + 1 :])}, attrs


def change(given: dict[str, Given], attrs: dict[str, Any], move: Move) -> float:
    """How much a move changes: by how far numbers move, more for what was not written before."""
    if isinstance(move, SetAttr):
        if move.name not in attrs:
            return 2 + abs(move.value) if isinstance(move.value, (int, float)) else 4
        return _apart(attrs[move.name], move.value)
    old = given[move.name]
    info = old[move.member or 0] if isinstance(old, tuple) else old
    if info is None or info.dtype != move.info.dtype:
        return 3
    return 1 + _apart(info.shape, move.info.shape)


def _apart(old: Any, new: Any) -> float:
    if isinstance(old, tuple) and isinstance(new, tuple):
        if len(old) != len(new):
            return 20 * abs(len(old) - len(new))
        return sum(map(_apart, old, new))
    if isinstance(old, (int, float)) and isinstance(new, (int, float)):
        return abs(old - new)
    return 1 if old != new else 0
