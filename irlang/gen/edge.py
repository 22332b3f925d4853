"""Values at the edges of a type: NaN, infinities, signed zeros, denormals, extremes, ties.

Where the arithmetic of a definition determines what becomes of them, frameworks are held to it
(IEEE 754-2019; what it leaves open, definitions mark `unspecified`). A program gets one palette, or
all of them mixed, in one element, in some or in all, so that what a NaN hides, another shows. Calls
that stand apart hide nothing from each other: there every tensor has a palette of its own.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np

from irlang.dtypes import DTYPES, integer_range
from irlang.equations import TensorInfo
from irlang.gen.layout import crossed, scenes
from irlang.graph import Graph, Param, Port

Array = np.ndarray[Any, np.dtype[Any]]
Palette = tuple[tuple[float, str], ...]
Kinds: TypeAlias = Literal["all", "finite", "smooth"]
_SHARES = (0.0, 0.25, 1.0)  # of an input's elements, beyond the one that is sure
# Numbers as (factor, unit): 1, the type's least normal number, its largest, or what is so large
# that its exponential is beyond the largest, and half of that is not (as in a hyperbolic sine).
_ZEROS: Palette = ((0.0, "one"), (-0.0, "one"))
_LARGEST: Palette = ((1.0, "largest"), (-1.0, "largest"), (0.5, "largest"))
_TIES: Palette = ((0.5, "one"), (-1.0, "one"))
_HALVES: Palette = ((0.5, "one"), (1.5, "one"), (2.5, "one"), (-0.5, "one"), (-1.5, "one"))
# Where exponentials overflow, and where functions change from one formula to another.
_FAR: Palette = (
    *((sign * n, "one") for n in (6.0, 17.0, 30.0, 95.0, 1e4) for sign in (1, -1)),
    *((sign, "exp") for sign in (1.0, -1.0)),
)
# Where what is subtracted from 1, or added to it, is lost; and where squares, then sums, overflow.
_NEAR: Palette = tuple((s * n, "one") for n in (0.1, 1e-2, 1e-3, 1e-5, 1e-8) for s in (1, -1))
_HUGE: Palette = tuple((s * n, "one") for n in (1e6, 1e10, 1e19, 1e30, 6e36) for s in (1, -1))
_ENDS: Palette = ((0.0, "one"), (1.0, "one"), (-1.0, "one"))  # of domains, kinks, poles
# On one side: nothing is nearer to 0. A search for the largest of the first finds the finite one.
_SIDES: tuple[Palette, ...] = (
    ((-np.inf, "one"), (-1.0, "largest")),
    ((np.inf, "one"), (1.0, "largest")),
)
_PALETTES: tuple[Palette, ...] = (
    ((np.nan, "one"),),
    ((np.inf, "one"), (-np.inf, "one")),
    _ZEROS,
    ((0.25, "tiny"), (-0.25, "tiny"), (1.0, "tiny")),
    _LARGEST,
    _TIES,
    _HALVES,
    _FAR,
    _NEAR,
    _HUGE,
    _ENDS,
    *_SIDES,
)
_SMOOTH = (
    _ZEROS,
    _TIES,
    _HALVES,
    _FAR,
    _NEAR,
    _ENDS,
)  # where derivatives are numbers of which much is known
# What a mask puts among scores: nothing flows back there, though a difference of two is no number.
_MASKED: Palette = ((-np.inf, "one"), (1.0, "one"))
# Where what saturates, or goes on as a line does, has a slope at its very end.
_ENDLESS: Palette = ((np.inf, "one"), (1.0, "one"))
_FINITE = (*_SMOOTH, _LARGEST, _HUGE, _MASKED, _ENDLESS)
# What is met in every pair where two operands of a call have them, and of gradients those of it
# that are finite, or small.
_CROSSED: Palette = (
    *((np.nan, "one"), (np.inf, "one"), (-np.inf, "one"), (1.0, "largest"), (-1.0, "largest")),
    *((0.0, "one"), (-0.0, "one"), (1.0, "one"), (-1.0, "one"), (0.5, "one"), (-2.5, "one")),
    *((2.0, "one"), (0.25, "tiny"), (-0.25, "tiny")),
    *((1e20, "one"), (1e-20, "one")),  # whose squares overflow, or are lost, and quotients are not
)
_CROSSED_OF: Mapping[Kinds, Palette] = {
    "all": _CROSSED,
    "finite": _CROSSED[3:],
    "smooth": _CROSSED[5:12],
}
_MIXED = 0.25  # of the programs take from all palettes
# Of the tensors of calls apart that are not crossed so many are made of scenes, and of those along
# whose axes a reduction goes.
_SCENES, _SWEPT = 0.5, 0.75
# Of those of gradients so many have lines of one number: what a softmax, a norm or a search for the
# largest has in a line of equals, where its slope is a quotient of zeros or is shared.
_LEVEL = 0.4
_LINES = 0.4  # of the tensors have lines of equal numbers
_STARTS = 0.5  # of these, where there are infinities, of what a reduction begins with
_ONE_LINE = 0.3  # of these are a single one: what goes over all axes has nothing else in it
# What a sum, a product, a search for the largest or the smallest begins with, and what ends them.
_UNITS: Palette = (
    *((-np.inf, "one"), (np.inf, "one"), (np.nan, "one"), (0.0, "one"), (1.0, "one")),
    *((-1.0, "largest"), (1.0, "largest")),
)
# What scenes take from beside the palettes.
_STARTING: tuple[Palette, ...] = (
    *(_UNITS,) * 4,
    *_SIDES,
    *_SIDES,
    *(((np.nan, "one"),),) * 4,
    *(((np.inf, "one"),), ((-np.inf, "one"),)) * 2,
)
# Integers at which functions of these are at an edge, beside the range's ends; and the first that
# floating-point types, in which some are computed, do not hold, or that are cut to fewer bits.
_WHOLE = (0, 1, -1, 2, 3)
_WIDE = tuple(s * n for n in (2**24 + 1, 2**31, 2**32 + 1, 2**53 + 1) for s in (1, -1))
_MOST_PAIRS = 2**62  # of edges that are counted: no tensor has as many elements
# Exponents: two to their power leaves the integers, or f32, or does not as yet; and as far as bits
# may be moved.
_POWERS = (31, 63, 64, 150, -150)


def with_edges(graph: Graph, values: dict[str, Array], seed: int) -> dict[str, Array]:
    """The inputs of a program with some elements at an edge; a real input loses its range.

    values: of the inputs, in their own types; they are not changed. Integers stay inside the range
    that is declared for them, at its ends; those without one go to the ends of their type.
    """
    random = np.random.default_rng([seed & (2**63 - 1), 0xED6E])
    one = _PALETTES[random.integers(len(_PALETTES))]
    palette = sum(_PALETTES, ()) if random.random() < _MIXED else one
    bound = {name for name, port in graph.inputs.items() if port.info.kind == "int"}
    return _with(graph, values, random, (palette,), bound)


def with_edges_apart(
    graph: Graph,
    values: Mapping[str, Array],
    seed: int,
    bound: Collection[str] = (),
    kinds: Kinds = "all",
    mixed: bool = False,
    crossing: Collection[tuple[str, ...]] = (),
    along: Mapping[str, frozenset[int]] = MappingProxyType({}),
    admitted: Mapping[str, Sequence[int]] = MappingProxyType({}),
) -> dict[str, Array]:
    """Drawn inputs or parameters with some elements at an edge, each tensor from one palette.

    values: as of `with_edges`. bound: names of tensors that keep to their ranges, whose ends then
    are edges too; other integers go to the ends of their type. kinds: for gradients those of
    finite numbers and of masks, or of smooth ones. mixed: from all palettes in every tensor, each
    as often: an operator that goes element by element is at all edges at once, in many pairs.
    crossing: operands of calls that do, whose edges are to meet one another in all pairs. along:
    axes that reductions go along, by tensor. admitted: whole numbers that some of what is bound may
    be beside its range.
    A constant that the program writes stays.
    """
    random = np.random.default_rng([seed & (2**63 - 1), 0xA9A2])
    drawn = {name: array for name, array in values.items() if not _written(graph, name)}
    palettes = {"all": _PALETTES, "finite": _FINITE, "smooth": _SMOOTH}[kinds]
    if mixed:
        most = max(map(len, palettes))
        palettes = (tuple(one[n % len(one)] for one in palettes for n in range(most)),)
    apart = {name: array for name, array in drawn.items() if array.size}
    every = (*_CROSSED_OF[kinds], *sum(palettes, ()))
    found: dict[str, Array] = {}
    for operands in crossing:
        lone = sum(name in apart for name in set(operands)) == 1
        palette = tuple(dict.fromkeys(every)) if lone else _CROSSED_OF[kinds]
        found |= _crossed(graph, apart, random, palette, bound, operands, admitted)
    for name, array in apart.items():
        axes = along.get(name, frozenset())
        share = _SWEPT if axes else _SCENES
        if name not in found and name not in bound and random.random() < share:
            some = (*palettes, *(_STARTING if kinds == "all" else ()))
            level = bool(axes) and kinds != "all" and random.random() < _LEVEL
            found |= _in_scenes(graph, name, array, random, some, axes, level)
    rest = {name: array for name, array in drawn.items() if name not in found}
    return {**values, **found, **_with(graph, rest, random, palettes, bound, admitted)}


def _crossed(
    graph: Graph,
    values: Mapping[str, Array],
    random: np.random.Generator,
    palette: Palette,
    bound: Collection[str],
    operands: tuple[str, ...],
    admitted: Mapping[str, Sequence[int]],
) -> dict[str, Array]:
    """The operands of a call at all edges in turn, each for as long as the one before needs; where
    that is more than half of the elements, at any edge in any place.
    """
    found: dict[str, Array] = {}
    each = 1
    for name in dict.fromkeys(operands):
        place = _place(graph, name)
        if name not in values or place.info.kind == "bool":
            continue
        numbers = _numbers(place.info, palette, place.within, name in bound)
        numbers = _beside(numbers, admitted.get(name, ()))
        if not len(numbers):
            continue
        if name not in bound or name in admitted:
            _widen(graph, name, place)
        begin = int(random.integers(min(each * len(numbers), _MOST_PAIRS)))
        shape = values[name].shape
        some = 2 * each <= values[name].size
        found[name] = (
            crossed(shape, numbers, each, begin) if some else random.choice(numbers, shape)
        )
        each *= len(numbers)
    return found


def _in_scenes(
    graph: Graph,
    name: str,
    array: Array,
    random: np.random.Generator,
    palettes: tuple[Palette, ...],
    axes: frozenset[int],
    level: bool,
) -> dict[str, Array]:
    """A tensor with edges that differ from line to line; none of what has no such numbers.

    level: as of `scenes`.
    """
    place = _place(graph, name)
    if place.info.kind == "bool":
        return {}
    most = max(map(len, palettes)) if place.info.kind == "real" else 1
    even = [tuple(one[n % len(one)] for n in range(most)) for one in palettes]
    rows = [_numbers(place.info, one, place.within, False) for one in even]
    _widen(graph, name, place)
    return {name: scenes(array, np.stack(rows), random, axes, level)}


def _place(graph: Graph, name: str) -> Port | Param:
    """Where a given tensor comes from."""
    return graph.params[name] if name in graph.params else graph.inputs[name]


def _written(graph: Graph, name: str) -> bool:
    param = graph.params.get(name)
    return param is not None and (param.literal or param.initial is not None)


def _with(
    graph: Graph,
    values: Mapping[str, Array],
    random: np.random.Generator,
    palettes: tuple[Palette, ...],
    bound: Collection[str],
    admitted: Mapping[str, Sequence[int]] = MappingProxyType({}),
) -> dict[str, Array]:
    found = {}
    for name, array in values.items():
        place = _place(graph, name)
        info, within = place.info, place.within
        if info.kind == "bool" or not array.size:
            found[name] = array
            continue
        palette = palettes[int(random.integers(len(palettes)))]
        numbers = _numbers(info, palette, within, name in bound)
        numbers = _beside(numbers, admitted.get(name, ()))
        if name not in bound or name in admitted:
            _widen(graph, name, place)
        where = np.asarray(random.random(array.shape) < float(random.choice(_SHARES)))
        where.reshape(-1)[random.integers(array.size)] = True
        if random.random() < _LINES:
            starts = any(_UNITS[0] in one for one in palettes) and random.random() < _STARTS
            beside = starts and random.random() < 0.5
            if starts:
                chosen = _SIDES[random.integers(len(_SIDES))] if beside else _UNITS
                numbers = _numbers(info, chosen, within, name in bound)
            found[name] = _in_lines(array, numbers, random, beside)
        else:
            found[name] = np.where(where, random.choice(numbers, size=array.shape), array)
    return found


def _in_lines(
    array: Array, numbers: Array, random: np.random.Generator, beside: bool = False
) -> Array:
    """Equal edges all along some of the axes, in a half of these lines: what is reduced or
    normalised, sought or chosen from has nothing else in it then. beside: edges beside one another.
    """
    along = random.random(array.ndim) < (1.0 if random.random() < _ONE_LINE else 0.5)
    if array.ndim:
        along[random.integers(array.ndim)] = True
    lines = tuple(1 if one else size for one, size in zip(along, array.shape, strict=True))
    where = random.random(lines) < 0.5
    where.reshape(-1)[random.integers(where.size)] = True
    return np.where(where, random.choice(numbers, size=array.shape if beside else lines), array)


def _numbers(
    info: TensorInfo, palette: Palette, within: tuple[float, float] | None, bound: bool
) -> Array:
    """The numbers of a palette in a type, or of integers; what is bound stays inside its range."""
    dtype = DTYPES[info.dtype]
    if info.kind == "int":
        ends = within if bound and within is not None else integer_range(info.dtype)
        low, high = map(int, ends)
        inner = [n for n in (*_WHOLE, *_WIDE, *_POWERS, *_wrapping(info.dtype)) if low < n < high]
        return np.array([low, high, *inner], dtype=object).astype(dtype.numpy)
    units = {
        "one": 1.0,
        "tiny": dtype.tiny,
        "largest": dtype.largest,
        "exp": np.log(dtype.largest) + np.log(2) / 2,
    }
    most = dtype.largest
    wanted = np.array([factor * units[unit] for factor, unit in palette])
    reached = np.where(np.isfinite(wanted), np.clip(wanted, -most, most), wanted)
    numbers = reached.astype(dtype.numpy)
    if not bound or within is None:
        return numbers
    wide = numbers.astype(np.float64)
    last = np.array([end for end in within if np.isfinite(end)], dtype.numpy)
    return np.concatenate([numbers[(wide >= within[0]) & (wide <= within[1])], last])


def _beside(numbers: Array, more: Sequence[int]) -> Array:
    """Whole numbers, and others beside them."""
    return np.unique([*numbers.tolist(), *more]).astype(numbers.dtype) if len(more) else numbers


def whole_edges(info: TensorInfo) -> list[int]:
    """Whole numbers at which functions of a type of integers are at an edge."""
    low, high = map(int, integer_range(info.dtype))
    inner = (*_WHOLE, -2, -3, *_WIDE, *_POWERS, *_wrapping(info.dtype))
    return [low, high, *(n for n in inner if low < n < high)]


def _wrapping(dtype: str) -> tuple[int, int]:
    """The first numbers whose square a type does not hold, so that it is below 0, or none: what
    takes a square for one that is not is wrong there alone.
    """
    first = math.isqrt(int(integer_range(dtype)[1])) + 1
    return first, -first


def _widen(graph: Graph, name: str, place: Port | Param) -> None:
    """What is there may be anything now."""
    if isinstance(place, Param):
        graph.params[name] = replace(place, within=None)
    else:
        graph.inputs[name] = replace(place, within=None)


def on_grid(graph: Graph, values: dict[str, Array]) -> dict[str, Array]:
    """The drawn real numbers among inputs or parameters rounded to halves, as their ranges allow.

    So there are equals, zeros and whole numbers among them: ties, kinks and poles of functions.
    """
    found = {}
    for name, array in values.items():
        param = graph.params.get(name)
        place = param or graph.inputs[name]
        if place.info.kind != "real" or _written(graph, name):
            found[name] = array
            continue
        low, high = place.within or (-np.inf, np.inf)
        with np.errstate(over="ignore", invalid="ignore"):
            halves = np.round(array.astype(np.float64) * 2) / 2
        inside = (halves >= low) & (halves <= high)
        found[name] = np.where(inside, halves.astype(array.dtype), array)
    return found
