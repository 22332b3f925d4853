"""What values a new tensor may take: what preconditions on values demand, and what keeps results
moderate.

A precondition such as `all(s.. < S..) 0 <= at(ids[s..]) < K` is tried on values: the longest run
for which it holds is the range. So it does not matter how the condition is written. Where it ties
several tensors, values of all are tried together, and the largest box gives a range for each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import combinations, product
from types import MappingProxyType
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.dtypes import DTYPES, integer_range
from irlang.equations import TensorInfo
from irlang.gen.choice import Chooser
from irlang.gen.pattern import Slot, pattern
from irlang.instance import Instance
from irlang.known import KNOWN

Range = tuple[float, float]
NO_NUMBERS: Mapping[str, float] = MappingProxyType({})
Points = np.ndarray[Any, np.dtype[np.bool_]]
_MOST = 64  # whose square bounds the integers that are tried, and how many of them
_MOST_LEFT = 4  # conditions of which any part is left
_MOST_POINTS = 2 * _MOST**2  # at which conditions are tried
_MOST_PLACES = 256  # of a condition that is not the same everywhere
_REAL_STEPS = (-3.0, -1.0, -0.9, -0.5, -0.1, 0.0, 0.1, 0.5, 0.9, 1.0, 3.0)
_MARGIN, _REACH = 0.1, 3.0  # distance from the end of a domain, and how far into an open one
_INPUTS: tuple[Range | None, ...] = (None, (-2.0, 2.0), (-4.0, 4.0), (0.0, 1.0))
_WIDE = 4  # where nothing bounds an integer
_KEPT = 4096  # conditions of which is known what meets them


def demands(
    instance: Instance, first: bool = False, numbers: Mapping[str, float] = NO_NUMBERS
) -> dict[str, Range] | None:
    """The range that every constrained input of a call must keep to, by formal name. Where an input
    has several as long (a label that is -1 or 1) it is the last of them, or the `first`. numbers:
    of inputs whose elements all are one that is known, which is tried alone.

    Conditions that share tensors are met together, by one range for each of these. Where no ranges
    do, those that set elements against one another may be left to what arranges them
    (`irlang.gen.lines`), as few as need be: places that ascend are not all the same. None where
    that does not help.
    """
    orders = pattern(instance.binding.op).orders
    own = [one for one, _ in instance.deferred if any(one is order for order in orders)]
    counts = range(len(own) + 1) if len(own) <= _MOST_LEFT else (0, 1, len(own))
    for left in (left for count in counts for left in combinations(own, count)):
        kept = [c for one, c in instance.deferred if not any(one is other for other in left)]
        found = _demands(instance, kept, first, numbers)
        if found is not None:
            return found
    return None


def _demands(
    instance: Instance, wanted: Sequence[eq.Expr], first: bool, numbers: Mapping[str, float]
) -> dict[str, Range] | None:
    """The same of some of the conditions."""
    found: dict[str, Range] = {}
    for names, conditions in _groups(wanted):
        infos = {name: info for name in names if (info := _info(instance, name)) is not None}
        if len(infos) < len(names):
            return None
        grids = tuple(
            (numbers[name],) if name in numbers else _candidates(conditions, info, len(names))
            for name, info in infos.items()
        )
        if math.prod(map(len, grids)) > _MOST_POINTS:
            return None
        dtypes = tuple(info.dtype for info in infos.values())
        box = _box(tuple(map(_bare, conditions)), tuple(names), grids, dtypes, first)
        if box is None:
            return None
        for name, grid, (start, stop) in zip(names, grids, box, strict=True):
            if start > 0 or stop < len(grid):  # else anything will do
                inner = grid[max(start, 1) : min(stop, len(grid) - 1)]
                if not inner:
                    return None
                found[name] = (inner[0], inner[-1])
    return found


@lru_cache(maxsize=_KEPT)
def _box(
    conditions: tuple[eq.Expr, ...],
    names: tuple[str, ...],
    grids: tuple[tuple[float, ...], ...],
    dtypes: tuple[str, ...],
    first: bool,
) -> tuple[tuple[int, int], ...] | None:
    """Of each grid the part from which every point meets all conditions. Calls of one operator ask
    for the same again and again. dtypes: a whole number counts as another than an equal real one.
    """
    del dtypes
    good = np.zeros([len(grid) for grid in grids], dtype=bool)
    for point in product(*map(range, good.shape)):
        elements = {n: grid[i] for n, grid, i in zip(names, grids, point, strict=True)}
        good[point] = all(_holds(condition, elements) for condition in conditions)
    box = _largest(good, first)
    return None if box is None else box[1]


def admitted(
    instance: Instance, within: Mapping[str, Range], wanted: Callable[[TensorInfo], Sequence[int]]
) -> dict[str, list[int]]:
    """Whole numbers that inputs may have outside of the ranges that are demanded of them: a divisor
    may be anything but 0, on both sides of it.

    within: those ranges. wanted: the numbers that are asked for. One is admitted that every element
    of an input may be by itself, whatever the others are, and those of other inputs in their range.
    """
    found: dict[str, list[int]] = {}
    for names, conditions in _groups([condition for _, condition in instance.deferred]):
        infos = {name: info for name in names if (info := _info(instance, name)) is not None}
        grids = {name: _candidates(conditions, info, len(names)) for name, info in infos.items()}
        if len(infos) < len(names) or math.prod(map(len, grids.values())) > _MOST_POINTS:
            continue
        for name in within.keys() & infos.keys():
            info = infos[name]
            if DTYPES[info.dtype].kind != "int" or not all(_each(c, name) for c in conditions):
                continue
            others = [
                [n for n in grids[other] if within[other][0] <= n <= within[other][1]]
                if other in within
                else grids[other]
                for other in names
                if other != name
            ]
            rest = [other for other in names if other != name]
            found[name] = [
                number
                for number in wanted(info)
                if all(
                    _holds(condition, {name: number, **dict(zip(rest, point, strict=True))})
                    for point in product(*others)
                    for condition in conditions
                )
            ]
    return found


def _each(condition: eq.Expr, name: str) -> bool:
    """Whether a condition is on every element of an input by itself."""
    reads = [p for p in eq.walk(condition) if isinstance(p, eq.Read) and _formal(p.tensor) == name]
    return len({(part.tensor, part.index) for part in reads}) <= 1


def _formal(tensor: str) -> str:
    """The input that a member of a family belongs to; other inputs are their own."""
    return tensor.partition("[")[0]


def _info(instance: Instance, name: str) -> TensorInfo | None:
    given = instance.binding.inputs.get(name)
    return next(iter(given), None) if isinstance(given, tuple) else given


def _groups(conditions: Sequence[eq.Expr]) -> list[tuple[list[str], list[eq.Expr]]]:
    """Conditions, those together that read the same inputs, with the names of these."""
    groups: list[tuple[list[str], list[eq.Expr]]] = []
    for condition in conditions:
        parts = [part for part in eq.walk(condition) if isinstance(part, eq.Read)]
        names = dict.fromkeys(_formal(part.tensor) for part in parts)
        together = [condition]
        apart = []
        for others, earlier in groups:
            if names.keys() & set(others):
                names.update(dict.fromkeys(others))
                together += earlier
            else:
                apart.append((others, earlier))
        groups = [*apart, (list(names), together)]
    return groups


def _candidates(conditions: Sequence[eq.Expr], info: TensorInfo, tied: int) -> tuple[float, ...]:
    """Values that are tried, rising; the first and the last stand for all that lie beyond.

    tied: how many tensors are tried together; the more, the fewer values of each.
    """
    kind = DTYPES[info.dtype].kind
    if kind == "real":
        return (-math.inf, *_REAL_STEPS, math.inf)
    if kind == "bool":
        return (0, 0, 1, 1)
    numbers = [
        int(part.value)
        for condition in conditions
        for part in eq.walk(condition)
        if isinstance(part, (eq.Const, eq.Size)) and abs(float(part.value)) <= _MOST**2
    ]
    least, most = integer_range(info.dtype)
    low = max(least, min([*numbers, -_WIDE]) - 1)
    high = min(most, max([*numbers, _WIDE]) + 1, low + _MOST**2)
    if tied == 1:
        return (least, *range(low, high + 1), most)
    near = {n + step for n in (*numbers, 0, -_WIDE, _WIDE) for step in (-1, 0, 1)}
    return (least, *sorted(n for n in near if low <= n <= high), most)


def _largest(good: Points, first: bool = False) -> tuple[int, tuple[tuple[int, int], ...]] | None:
    """The box of true points that holds most of them, as (start, stop) an axis, and how many.

    The last among equals, or of one axis the `first`; points that stand for all beyond count like
    others.
    """
    best: tuple[int, tuple[tuple[int, int], ...]] | None = None
    if good.ndim <= 1:
        start = 0
        for position in range(good.size + 1):
            if position < good.size and good.reshape(-1)[position]:
                continue
            if position > start and (best is None or position - start >= best[0] + first):
                best = position - start, ((start, position),) * good.ndim
            start = position + 1
        return best
    for start in range(len(good)):
        common = good[start]
        for position in range(start, len(good)):
            common = common & good[position]
            inner = _largest(common)
            if inner is None:
                break
            count = (position + 1 - start) * inner[0]
            if best is None or count >= best[0]:
                best = count, ((start, position + 1), *inner[1])
    return best


def _holds(node: eq.Expr, elements: Mapping[str, float]) -> bool:
    try:
        return bool(_value(node, elements, {}))
    except (ArithmeticError, ValueError, TypeError, KeyError):
        return False


def _value(node: eq.Expr, elements: Mapping[str, float], places: Mapping[str, int]) -> Any:
    """The value of a condition when every element that it reads of an input is that one."""
    match node:
        case eq.Const() | eq.Size():
            return node.value
        case eq.Index():
            return places[node.name]
        case eq.Read():
            return elements[_formal(node.tensor)]
        case eq.Apply():
            args = (_value(arg, elements, places) for arg in node.args)
            return KNOWN[node.function](*args)
        case eq.Reduce():
            if node.kind in ("all", "any") and node.body is not None:
                test = all if node.kind == "all" else any
                return test(
                    _value(node.body, elements, inner)
                    for inner in _places(node, elements, places)
                    if node.where is None or _value(node.where, elements, inner)
                )
            raise KeyError(node.kind)
        case _:
            raise KeyError(type(node).__name__)


def _places(
    node: eq.Reduce, elements: Mapping[str, float], places: Mapping[str, int]
) -> Iterator[Mapping[str, int]]:
    """The places that make a difference: all of an index that stands outside of reads, else one."""
    parts = [part for part in (node.where, node.body) if part is not None]
    used = set().union(*map(_outside, parts))
    sizes = [_value(bound, elements, places) for _, bound in node.binders]
    names = [name for name, _ in node.binders]
    if math.prod(n for name, n in zip(names, sizes, strict=True) if name in used) > _MOST_PLACES:
        raise KeyError(node.kind)
    axes = [range(n if name in used else min(n, 1)) for name, n in zip(names, sizes, strict=True)]
    for place in product(*axes):
        yield {**places, **dict(zip(names, place, strict=True))}


def _bare(node: eq.Expr) -> eq.Expr:
    """A condition without what makes no difference: of tensors of many sizes it is the same."""
    if isinstance(node, eq.Size):
        return eq.Const(node.value)
    node = eq.rebuild(node, _bare)
    if not isinstance(node, eq.Reduce):
        return node
    used = frozenset[str]().union(*map(_outside, filter(None, (node.where, node.body))))
    binders = tuple(
        (name, eq.Const(min(bound.value, 1)))
        if isinstance(bound, eq.Const) and name not in used
        else (name, bound)
        for name, bound in node.binders
    )
    return replace(node, binders=binders)


@lru_cache(maxsize=_KEPT)
def _outside(node: eq.Expr) -> frozenset[str]:
    """Indices that an expression mentions, but for those of an element that it reads."""
    if isinstance(node, eq.Index):
        return frozenset({node.name})
    inner = () if isinstance(node, eq.Read) else map(_outside, eq.children(node))
    return frozenset[str]().union(*inner)


def usual(slot: Slot, info: TensorInfo, weight: bool, chooser: Chooser) -> Range | None:
    """The range of a tensor that nothing constrains; None for the default of inputs."""
    kind = DTYPES[info.dtype].kind
    if kind == "bool":
        return None
    if kind == "int":
        return (
            (0.0, float(_WIDE))
            if integer_range(info.dtype)[0] == 0
            else (-float(_WIDE), float(_WIDE))
        )
    if slot.domain is not None:
        low, high = slot.domain
        return low + _MARGIN, high - _MARGIN if high < math.inf else low + _REACH
    if not weight:
        return chooser.pick(_INPUTS)
    bound = math.sqrt(3 / max(1, fan_in(slot, info)))
    bound = float(f"{bound:.2g}")
    return (-bound, bound)


def fan_in(slot: Slot, info: TensorInfo) -> int:
    """How many elements of a weight a sum takes: it keeps results near one in size."""
    if not slot.fan or slot.placed or slot.spreads or len(slot.rests) > 1:
        return 1
    dims = slot.item.type.dims
    wide = len(info.shape) - slot.fixed
    product, axis = 1, 0
    for position, dim in enumerate(dims):
        width = wide if dim.kind == "rest" else 1
        if position in slot.fan:
            product *= math.prod(info.shape[axis : axis + width])
        axis += width
    return product
