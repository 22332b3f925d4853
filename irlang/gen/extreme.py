"""Valid calls with a whole number at the ends of 32 or 64 bits: a slice up to 2**63 - 1, a diagonal
2**31 off, a stride that leaves one window.

Frameworks count in such numbers, add to them and cut them off. A definition's own requirements say
what is valid; what takes no more memory and work than other calls is drawn.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from irlang import ast
from irlang import equations as eq
from irlang.catalog import Catalog
from irlang.gen.judge import judge
from irlang.gen.pattern import pattern
from irlang.gen.ranges import demands
from irlang.gen.spoilt import alone
from irlang.graph import Graph, Node

# Those that 32 bits hold last, and first do not; that are 0 and 1 in 32 bits; and the last of 64.
_ENDS = (2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32, 2**32 + 1, 2**63 - 1, -(2**63))
_TRIED = 24  # calls that are judged for one
_ELEMENTS = 1024  # of a result
_WORK = 1 << 20  # elements that its equations range over
NARROWEST = 2**31 - 1  # from which on a number may be more than a framework's own integers hold


def at_extreme(
    node: Node, catalog: Catalog, seed: int, preferred: Callable[[Graph], bool] = lambda _: True
) -> Graph | None:
    """The program of a call that is as a given one, but for one whole number among its attributes;
    None where none that was tried is valid, makes a difference and is preferred.
    """
    given = {name: info for name, info in node.instance.binding.inputs.items() if info is not None}
    for attrs in _candidates(node, random.Random(seed)):
        instance = judge(node.op, given, attrs)
        if instance is None or instance.faults:
            continue
        if any(_elements(info) > _ELEMENTS for _, info in instance.outputs or ()):
            continue
        demanded = demands(instance)
        if demanded is None:
            continue
        own = replace(node, attrs=attrs, instance=instance)
        expansion = own.expansion(catalog)
        if _work(expansion) > _WORK or expansion.equations == node.expansion(catalog).equations:
            continue
        graph = alone(own, given, attrs, instance, demanded)
        if preferred(graph):
            return graph
    return None


def _candidates(node: Node, chance: random.Random) -> Iterator[dict[str, Any]]:
    """Attributes of which one number is at an end, some of all there are."""
    names = node.instance.binding.scope.names
    found: list[dict[str, Any]] = []
    for attr in pattern(node.op).attrs.values():
        current = node.attrs.get(attr.name, names.get(attr.name))
        if attr.type.name != "int":
            continue
        for end in _ENDS:
            if type(current) is int:
                found.append({**node.attrs, attr.name: end})
            elif isinstance(current, tuple) and current:
                place = chance.randrange(len(current))
                some = (*current[:place], end, *current[place + 1 :])
                found.append({**node.attrs, attr.name: some})
    chance.shuffle(found)
    yield from found[:_TRIED]


def _work(expansion: eq.Expansion) -> int:
    """How many elements equations range over, of each and of what it reduces."""
    return sum(_elements(one.info) * _ranged(one.body) for one in expansion.equations)


def _elements(info: eq.TensorInfo) -> int:
    """Of a tensor, its axes of none left out: no array has 2**63 - 1 rows of nothing either."""
    return math.prod(max(size, 1) for size in info.shape)


def _ranged(expr: eq.Expr) -> int:
    own = 1
    if isinstance(expr, eq.Reduce):
        for _, bound in expr.binders:
            own *= max(int(bound.value), 1) if isinstance(bound, (eq.Const, eq.Size)) else 1
    return own * max(map(_ranged, eq.children(expr)), default=1)


def has_extreme(node: Node) -> bool:
    """Whether a call is told a whole number that a framework's own integers may not hold."""
    return any(
        type(number) is int and abs(number) >= NARROWEST
        for name, value in node.attrs.items()
        for number in (value if isinstance(value, tuple) else (value,))
        if _is_whole(node.op, name)
    )


def _is_whole(op: ast.Op, name: str) -> bool:
    return pattern(op).attrs[name].type.name == "int"
