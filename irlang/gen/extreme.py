"""Valid calls with a number at an end among their attributes: a slice up to 2**63 - 1, a diagonal
2**31 off, a stride that leaves one window; a bound that is infinite, a slope below 0.

Frameworks count in whole numbers, add to them and cut them off; of real ones they form products and
reciprocals before they are used. A definition's own requirements say what is valid; what takes
no more memory and work than other calls is drawn.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from irlang import ast
from irlang import equations as eq
from irlang.catalog import Catalog
from irlang.dtypes import integer_range
from irlang.gen.judge import judge
from irlang.gen.pattern import pattern
from irlang.gen.ranges import demands
from irlang.gen.spoilt import alone
from irlang.graph import Graph, Node

# Those that 32 bits hold last, and first do not; that are 0 and 1 in 32 bits; and the last of 64.
_ENDS = (2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32, 2**32 + 1, 2**63 - 1, -(2**63))
# Of the other sign, larger than what is usual, and what no sum comes to; and what 16 bits do not
# hold, so far from 0, or so near to it, that squares and sums overflow, or are lost, and the last
# numbers of f32, which whoever reads a text may take for infinite.
_ODD = (-0.5, 2.5, math.inf, -math.inf)
_LAST = float(np.finfo(np.float32).max)
_FAR = (1e-30, -1e-30, 1e30, 3e38, -3e38, _LAST, -_LAST)
_NARROW = ("f16", "bf16")
_EXACT = 2**53  # up to which whole numbers are real ones as they are
_SEVERAL = 3  # to so many comes one of several: a range from end to end
_TRIED = 24  # ends that are tried for one call
_ELEMENTS = 1024  # of a result
_WORK = 1 << 20  # elements that its equations range over
_End: TypeAlias = tuple[str, bool]  # the name of an attribute, and whether it is the one below 0
NARROWEST = 2**31 - 1  # from which on a number may be more than a framework's own integers hold


def at_extreme(
    node: Node, catalog: Catalog, seed: int, preferred: Callable[[Graph], bool] = lambda _: True
) -> Graph | None:
    """The program of a call that is as a given one, but for a number among its attributes, or
    several; None where none that was tried is valid, makes a difference and is preferred. One that
    has results without elements is given where there is no other.
    """
    spare = None
    given = {name: info for name, info in node.instance.binding.inputs.items() if info is not None}
    usual = node.expansion(catalog).equations
    idle: set[_End] = set()  # of which nothing hangs on the number, as the call is
    for ends, attrs in _candidates(node, random.Random(seed)):
        if idle.issuperset(ends):
            continue
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
        if expansion.equations == usual:
            idle.update(ends)
            continue
        if _work(expansion) > _WORK:
            continue
        graph = alone(own, given, attrs, instance, demanded)
        if not preferred(graph):
            continue
        if all(0 not in info.shape for _, info in instance.outputs or ()):
            return graph
        spare = spare or graph
    return spare


def _candidates(
    node: Node, chance: random.Random
) -> Iterator[tuple[tuple[_End, ...], dict[str, Any]]]:
    """Attributes of which one number is at an end, or several are, and at which, some of all there
    are: first whole numbers or real ones, where there are both.
    """
    kinds: dict[str, list[tuple[_End, Any]]] = {"int": [], "real": []}
    for attr in pattern(node.op).attrs.values():
        for end in _ends(node, attr):
            changed = _changed(node, attr.name, end, chance)
            if changed is not None:
                kind = "int" if end in _ENDS else attr.type.name
                kinds[kind].append(((attr.name, end < 0), changed))
    for name in chance.sample(sorted(kinds), len(kinds)):
        chance.shuffle(kinds[name])
        ends = kinds[name][:_TRIED]
        several = [chance.choices(kinds[name], k=chance.randint(2, 3)) for _ in ends[::_SEVERAL]]
        lone = [[one] for one in ends]
        for some in chance.choice(([*lone, *several], [*several, *lone])):
            yield _together(node, *some)


def _together(node: Node, *ends: tuple[_End, Any]) -> tuple[tuple[_End, ...], dict[str, Any]]:
    """Some attributes as they are with numbers at ends, the last of one attribute counts."""
    changed = {name: value for (name, _), value in ends}
    return tuple(end for end, _ in ends), {**node.attrs, **changed}


def _changed(node: Node, name: str, end: float, chance: random.Random) -> Any:
    """An attribute of which one number is at an end; None where it is already, or has none."""
    value = node.attrs.get(name, node.instance.binding.scope.names.get(name))
    if value == end:
        return None
    if isinstance(value, tuple) and value:
        place = chance.randrange(len(value))
        return (*value[:place], end, *value[place + 1 :])
    return end if isinstance(value, (int, float)) else None


def _ends(node: Node, attr: ast.Attr) -> tuple[float, ...]:
    """The ends of an attribute's type; in a call of narrow formats those that they hold, and of
    real ones that make integers those of integers which these hold.
    """
    if attr.type.name == "int":
        return _ENDS
    if attr.type.name != "real":
        return ()
    infos = [info for _, info in node.instance.outputs or ()]
    whole = infos and all(info.kind == "int" for info in infos)
    if whole:
        ranges = [integer_range(info.dtype) for info in infos]
        if any(info.kind == "real" for info in _given(node)):  # which they meet
            ranges.append((-_EXACT, _EXACT))
        return tuple(end for end in _ENDS if all(low <= end <= high for low, high in ranges))
    return _ODD if any(info.dtype in _NARROW for info in infos) else (*_ODD, *_FAR)


def _given(node: Node) -> Iterator[eq.TensorInfo]:
    """What the inputs of a call are, of families all of their members."""
    for info in node.instance.binding.inputs.values():
        if info is not None:
            yield from info if isinstance(info, tuple) else (info,)


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
    """Whether a call is told a number that a framework may say no to, though it is valid: a whole
    one that its own integers may not hold, or a real one at an end.
    """
    attrs = pattern(node.op).attrs
    return any(
        _is_extreme(number, attrs[name].type.name)
        for name, value in node.attrs.items()
        for number in (value if isinstance(value, tuple) else (value,))
    )


def _is_extreme(number: Any, kind: str) -> bool:
    if type(number) is int and kind in ("int", "real"):
        return abs(number) >= NARROWEST
    return kind == "real" and number in (*_ODD, *_FAR)
