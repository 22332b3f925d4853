"""Which edits may make a case smaller, the largest first, in the order that they are tried.

Proposals are made from the graph and the definitions alone. Many do not apply or do not help; that
is for the driver (`irlang.diff.reduce`) to find out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import combinations

from irlang import ast
from irlang.diff.calls import Case
from irlang.diff.edits import (
    ROUNDER,
    Attribute,
    Both,
    Edit,
    Fed,
    Forward,
    Keep,
    Numbers,
    Omit,
    Resize,
    Results,
    Squeeze,
    Unbound,
)
from irlang.diff.edits_shapes import axes, operands
from irlang.gen.moves import default_value
from irlang.graph import Graph, Node

_MOST_PAIRS = 80  # pairs of axes that are cut together on trial
_ALL_SHORT = (1, 2, 3, 4, 8)  # that axes are at most, where all are cut
_MOST_SINGLE = 64  # elements of a tensor that become rounder one by one

Proposals = Callable[[Case], Iterator[Edit]]


def structure(case: Case) -> Iterator[Edit]:
    """Fewer calls, results and operands."""
    graph = case.graph
    names = [node.outputs[0] for node in graph.nodes]
    if len(names) > 1:
        yield from (Keep((name,)) for name in names)
        yield from (Keep(pair) for pair in _adjacent(graph))
        half = len(names) // 2
        yield from (Keep(tuple(part)) for part in (names[:half], names[half:]) if len(part) > 1)
        for name in names:
            yield Keep(tuple(n for n in names if n != name))
    if len(graph.outputs) > 1:
        yield from (Results((name,)) for name in graph.outputs)
        for name in graph.outputs:
            yield Results(tuple(n for n in graph.outputs if n != name))
    for node in graph.nodes:
        for operand in dict.fromkeys(node.operands()):
            yield Forward(node.outputs[0], operand)
        yield from _omissions(node)


def _adjacent(graph: Graph) -> Iterator[tuple[str, str]]:
    """Pairs of calls of which one reads the other."""
    maker = {value: node.outputs[0] for node in graph.nodes for value in node.outputs}
    for node in graph.nodes:
        for value in dict.fromkeys(node.operands()):
            if value in maker:
                yield maker[value], node.outputs[0]


def _omissions(node: Node) -> Iterator[Edit]:
    for item in node.op.inputs:
        operand = node.inputs.get(item.name)
        if isinstance(operand, tuple) and len(operand) > 1:
            for member in range(len(operand)):
                yield Omit(node.outputs[0], item.name, member)
        elif operand is not None and item.default is not None:
            yield Omit(node.outputs[0], item.name)


def attributes(case: Case) -> Iterator[Edit]:
    """Attributes left out, or nearer to their defaults and to small numbers."""
    for node in case.graph.nodes:
        declared = {attr.name: attr for attr in node.op.attrs}
        for name in node.attrs:
            yield Attribute(node.outputs[0], name, None)
        for name, value in node.attrs.items():
            for other in dict.fromkeys(_simpler(declared[name], value)):
                if other != value or type(other) is not type(value):
                    yield Attribute(node.outputs[0], name, other)


def _simpler(attr: ast.Attr, value: object) -> Iterator[object]:
    default = default_value(attr)
    if default is not None:
        yield default
    if attr.type.kind == "enum":
        yield from attr.type.choices[: attr.type.choices.index(str(value))]
    elif isinstance(value, tuple):
        if value and len(set(value)) == 1:
            yield value[0]
        for axis, number in enumerate(value):
            for n in _smaller(number):
                yield (*value[:axis], n, *value[axis + 1 :])
        if attr.type.dims is None:
            yield from (value[:i] + value[i + 1 :] for i in range(len(value)))
    else:
        yield from _smaller(value)


def _smaller(value: object) -> Iterator[object]:
    if isinstance(value, bool):
        if value:
            yield False
    elif isinstance(value, int):
        yield from (n for n in (0, 1, 2, value // 2, value - 1) if abs(n) < abs(value))
        if value < 0:
            yield -value
    elif isinstance(value, float) or hasattr(value, "denominator"):
        number = float(value)  # type: ignore[arg-type]
        yield from (n for n in (0.0, 1.0, 0.5, 2.0) if n != number)
        if math.isfinite(number):
            yield from (float(f"{number:.{digits}g}") for digits in (1, 2))


def at_once(case: Case) -> Iterator[Edit]:
    """All axes short at once: a few cheap trials that save many of a large program."""
    named = {
        (value, axis)
        for node in case.graph.nodes
        for value, item, scope in operands(node)
        for axis, entry in enumerate(axes(item.type.dims, case.graph.values[value], scope) or ())
        if value in case.values and entry.name is not None
    }  # the others follow
    for most in _ALL_SHORT:
        cuts = [(v, a, most) for v, a in sorted(named) if case.values[v].shape[a] > most]
        if cuts:
            yield Resize(tuple(cuts))


def sizes(case: Case) -> Iterator[Edit]:
    """Axes that are shorter."""
    free = [(n, a, size) for n, array in case.values.items() for a, size in enumerate(array.shape)]
    long = [entry for entry in free if entry[2] > 1]
    for value, axis, size in long:
        for less in dict.fromkeys((1, 2, size // 2, size - 1)):
            if 1 <= less < size:
                yield Resize(((value, axis, less),))
                yield Resize(((value, axis, less),), at=0)
    for one, other in _some(long):
        for (v, a, n), (w, b, m) in ((one, other), (other, one)):
            if n % m == 0:
                for less in dict.fromkeys((1, m // 2, m - 1)):
                    if 1 <= less < m:
                        yield Resize(((v, a, n // m * less), (w, b, less)))
                if n // m > 1:
                    yield Resize(((v, a, m),))
    yield from _within(long)
    yield from _windows(case, long)
    for value, axis, _ in long:
        yield Resize(((value, axis, 0),))


def _within(long: list[tuple[str, int, int]]) -> Iterator[Edit]:
    """Halves, quarters and so on of an axis go, wherever they begin; at last single elements."""
    for value, axis, size in long:
        many = size // 2
        while many and size // many <= _MOST_SINGLE:
            for at in range(0, size, many):
                yield Resize(((value, axis, max(size - many, at)),), at)
            many //= 2


def _windows(case: Case, long: list[tuple[str, int, int]]) -> Iterator[Edit]:
    """A number of an attribute and an axis that it goes along, both shorter by as much."""
    for node in case.graph.nodes:
        for name, value in node.attrs.items():
            numbers = value if isinstance(value, tuple) else (value,)
            for place, number in enumerate(numbers):
                if type(number) is not int or number <= 1:
                    continue
                for less in dict.fromkeys((2, number // 2, number - 1)):
                    other = (*numbers[:place], less, *numbers[place + 1 :])
                    given = other if isinstance(value, tuple) else less
                    change = Attribute(node.outputs[0], name, given)
                    for v, a, n in long:
                        cut = n - (number - less)
                        if less < number and cut >= 1:
                            yield Both(change, Resize(((v, a, cut),)))
                            yield Both(change, Resize(((v, a, cut),), at=0))


def _some(
    long: list[tuple[str, int, int]],
) -> list[tuple[tuple[str, int, int], tuple[str, int, int]]]:
    return list(combinations(long, 2))[:_MOST_PAIRS]


def ranks(case: Case) -> Iterator[Edit]:
    """Fewer axes: one of size 1, with one of every other list of axes where that is needed."""
    short = [
        (n, a) for n, array in case.values.items() for a, s in enumerate(array.shape) if s == 1
    ]
    yield from (Squeeze((entry,)) for entry in short)
    for node in case.graph.nodes:
        yield from _together(node, case)
    pairs = [(x, y) for x, y in combinations(short, 2) if x[0] != y[0]]
    yield from (Squeeze(pair) for pair in pairs[:_MOST_PAIRS])


def _together(node: Node, case: Case) -> Iterator[Edit]:
    """The axes at one place of all lists of axes of a call."""
    found: dict[int, dict[str, tuple[str, int]]] = {}
    for value, item, scope in operands(node):
        info = case.graph.values[value]
        for axis, entry in enumerate(axes(item.type.dims, info, scope) or ()):
            if value in case.values and entry.name and entry.index is not None:
                found.setdefault(entry.index, {}).setdefault(entry.name, (value, axis))
    for entries in found.values():
        if len(entries) > 1:
            yield Squeeze(tuple(entries.values()))


def numbers(case: Case) -> Iterator[Edit]:
    """Rounder elements: all of a tensor at once, halves of it, one by one.

    A number by itself becomes 1 before it becomes 0.
    """
    given = sorted(case.values.items(), key=lambda entry: -entry[1].size)
    for name, array in given:
        first = () if array.ndim else ("one",)
        ways = dict.fromkeys((*first, *ROUNDER))
        yield from (Numbers(name, 0, array.size, how) for how in ways if array.size)
    for how in ROUNDER:
        for name, array in given:
            half = array.size // 2
            if half:
                yield Numbers(name, 0, half, how)
                yield Numbers(name, half, array.size, how)
            if 1 < array.size <= _MOST_SINGLE:
                yield from (Numbers(name, i, i + 1, how) for i in range(array.size))


def declared(case: Case) -> Iterator[Edit]:
    """Inputs in the place of parameters, and no ranges."""
    yield from (Fed(name) for name in case.graph.params)
    yield from (Unbound(name) for name in case.values)


PHASES: tuple[Proposals, ...] = (at_once, structure, sizes, attributes, ranks, declared, numbers)
