"""Inputs worth trying first: corners of the ranges, patterns of corners, numbers of many sizes.

What makes a network overflow, cancel or saturate is rarely an input drawn evenly: it is a tensor
that is at an end of its range, or zero, everywhere or along rows and columns, beside others that
are small. A `Pattern` makes one tensor; a try is a pattern for each input.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping

import numpy as np

from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.graph import Graph
from irlang.interp.draws import generator
from irlang.interp.values import Array
from irlang.laws import even

_FINE = 3  # binary digits of the middle of a range

Ends = tuple[float, float]
Numbers = np.random.Generator
Pattern = Callable[[Numbers, tuple[int, ...], Ends], Array]


def _nearest_zero(ends: Ends) -> float:
    return min(max(0.0, ends[0]), ends[1])


def _middle(ends: Ends) -> float:
    """About the middle, with few binary digits: what is equal in exact numbers stays so."""
    with np.errstate(all="ignore"):
        number = 0.5 * ends[0] + 0.5 * ends[1]
        step = 2.0 ** (int(np.frexp(ends[1] - ends[0])[1]) - _FINE)
        rounded = float(np.rint(number / step) * step) if 0 < step < np.inf else number
    return rounded if ends[0] <= rounded <= ends[1] else number


def _constant(number: Callable[[Ends], float]) -> Pattern:
    return lambda numbers, shape, ends: np.full(shape, number(ends))  # noqa: ARG005


def _power(exponent: int) -> Pattern:
    """A power of two everywhere."""
    return _constant(lambda ends: min(max(2.0**exponent, ends[0]), ends[1]))


def _ends(*axes: int) -> Pattern:
    """One of the two ends, chosen anew along some axes only; along all, if none is named."""

    def made(numbers: Numbers, shape: tuple[int, ...], ends: Ends) -> Array:
        kept = {axis % len(shape) for axis in axes} if axes and shape else range(len(shape))
        coins = [size if axis in kept else 1 for axis, size in enumerate(shape)]
        chosen = np.where(numbers.random(coins) < 0.5, *ends)
        return np.broadcast_to(chosen, shape)

    return made


def _even(numbers: Numbers, shape: tuple[int, ...], ends: Ends) -> Array:
    found: Array = even(numbers, *ends, shape)
    return found


def _one_size(numbers: Numbers, shape: tuple[int, ...], ends: Ends) -> Array:
    """Even numbers, made small together."""
    centre = _nearest_zero(ends)
    shrunk: Array = centre + (_even(numbers, shape, ends) - centre) * 10.0 ** -numbers.uniform(0, 5)
    return shrunk


def _many_sizes(numbers: Numbers, shape: tuple[int, ...], ends: Ends) -> Array:
    """Numbers each of a size of its own."""
    centre = _nearest_zero(ends)
    return centre + (_even(numbers, shape, ends) - centre) * 10.0 ** -numbers.uniform(0, 8, shape)


def _nearly_constant(numbers: Numbers, shape: tuple[int, ...], ends: Ends) -> Array:
    """One number, but for what the last places hold: what cancels leaves rounding alone."""
    centre = even(numbers, *ends)
    unit = 2.0 ** -int(numbers.choice([10, 23]))  # of f16 and of f32
    nearly: Array = centre * (1 + unit * numbers.integers(-3, 4, shape))
    return nearly


def _in_line(numbers: Numbers, shape: tuple[int, ...], ends: Ends) -> Array:
    """Rows along one direction: what they span has no area, and their matrix no inverse."""
    along = max(len(shape) - 2, 0)
    ends_ = [1 if axis == along else size for axis, size in enumerate(shape)]
    shares = [size if axis == along else 1 for axis, size in enumerate(shape)]
    start, end = even(numbers, *ends, (2, *ends_))
    line: Array = start + numbers.random(shares) * (end - start)
    return line


def _one_number(numbers: Numbers, shape: tuple[int, ...], ends: Ends) -> Array:
    """One number everywhere, or one for every place along the first or the last axis.

    With few binary digits what is added up and taken away is exact, so that it meets 0 and 1; with
    all of them the mean of equal numbers may be another.
    """
    first, last = (*shape[:1], *[1] * (len(shape) - 1)), shape[-1:]
    made = _even(numbers, ((), first, last)[int(numbers.integers(3))], ends)
    size = int(np.frexp(max(map(abs, ends)))[1])
    step = 2.0 ** (size - int(numbers.integers(1, 6)))
    kept = made if numbers.random() < 0.25 else np.rint(made / step) * step
    return np.broadcast_to(kept, shape)


def _equal_along(numbers: Numbers, shape: tuple[int, ...], ends: Ends) -> Array:
    """Equal numbers along one axis, others elsewhere, with all of their digits: the mean of equal
    numbers may be rounded to another, so that it is above the largest of them.
    """
    axis = int(numbers.integers(len(shape))) if shape else 0
    made = _even(numbers, tuple(1 if at == axis else size for at, size in enumerate(shape)), ends)
    return np.broadcast_to(made, shape)


def _spike(numbers: Numbers, shape: tuple[int, ...], ends: Ends) -> Array:
    """Zero but for one element."""
    made = np.full(shape, _nearest_zero(ends))
    if made.size:
        made.reshape(-1)[numbers.integers(made.size)] = ends[int(numbers.integers(2))]
    return made


_LOW = _constant(lambda ends: ends[0])
HIGH = _constant(lambda ends: ends[1])
ZERO = _constant(_nearest_zero)
_MIDDLE = _constant(_middle)
_ONE = _constant(lambda ends: min(max(1.0, ends[0]), ends[1]))
CONSTANT = (ZERO, HIGH, _LOW, _ONE, _MIDDLE)
# What is not 0, and has a reciprocal that overflows, by itself or once it is divided: of f16, f32;
# and whose square is still not 0, where the quotient of it and of its square is divided once more.
TINY = (_power(-17), _power(-124), _power(-129), _power(-11), _power(-68))
_VARIED = (
    _ends(),
    _ends(-1),
    _ends(0),
    _even,
    _one_size,
    _many_sizes,
    _spike,
    _nearly_constant,
)
# Some tries are plain on purpose: what few causes reach is found by few differences.
_PLAIN: tuple[tuple[Pattern, ...], ...] = (CONSTANT, CONSTANT + _VARIED, _VARIED)
_CHOICES = (
    *_PLAIN, (*CONSTANT, *_VARIED[3:6]),
    *_PLAIN, (ZERO, _ONE, _in_line, _in_line),
    *_PLAIN, (ZERO, _one_number, _one_number),
    (HIGH, *TINY),  # a divisor that is not 0, and what it is too small for
)  # fmt: skip
# Where rounding alone decides: numbers with all of their digits that would cancel without it.
_ROUNDED = (_equal_along, _equal_along, _nearly_constant)
_ALIKE = 7  # of so many tries one has inputs that are equal to others, if some are alike
_FIRST_ALIKE = 2


def stored(array: Array, info: TensorInfo, ends: Ends) -> Array:
    """Numbers in the type of a tensor and inside its range; both ends are numbers of the type."""
    dtype = DTYPES[info.dtype].numpy
    if info.kind == "real":
        return np.clip(array, *ends).astype(dtype)
    whole = np.clip(np.rint(array), *ends)
    return whole.astype(np.int64 if info.kind == "int" else bool).astype(dtype)


def tries(
    graph: Graph, seed: int, wanted: Collection[str] | None = None, rest: Pattern = ZERO
) -> Iterator[dict[str, Array]]:
    """Values for all inputs, without end: constants, then mixtures, always the same for a seed.
    Constants that are tiny are few causes' only: they come one by one between the first mixtures.

    wanted: the inputs that matter; rest: what the others are, in all tries the same. Steps are
    taken from these tries, which lead nowhere from where all is as good as 0.
    """
    ranges = {name: port.within for name, port in graph.inputs.items() if port.within is not None}
    plain: dict[str, Array] = {}
    if wanted is not None:
        others = {name: ends for name, ends in ranges.items() if name not in wanted}
        plain = _one(graph, others, dict.fromkeys(others, rest), generator(seed, "plain"))
        ranges = {name: ends for name, ends in ranges.items() if name in wanted}

    def constants(patterns: Collection[Pattern]) -> Iterator[dict[str, Array]]:
        for pattern in patterns:
            made = _one(graph, ranges, dict.fromkeys(ranges, pattern), generator(seed, "constant"))
            yield {**plain, **made}

    yield from constants(CONSTANT)
    tiny = constants(TINY if wanted is None else ())
    infos = [graph.inputs[name].info for name in ranges]
    some_alike = len(set(infos)) < len(infos)
    for number in itertools.count():
        numbers = generator(seed, f"try {number}")
        alike = some_alike and number % _ALIKE == _FIRST_ALIKE
        choices = _VARIED if alike else _CHOICES[number % len(_CHOICES)]
        chosen = {name: choices[int(numbers.integers(len(choices)))] for name in ranges}
        made = _one(graph, ranges, chosen, numbers)
        yield {**plain, **(_alike(graph, ranges, made, numbers) if alike else made)}
        if number % 2:
            yield from itertools.islice(tiny, 1)


def rounded(graph: Graph, seed: int) -> Iterator[dict[str, Array]]:
    """Values for all inputs, without end, which a framework may round in another order than the
    definitions do: numbers that are equal along an axis, or nearly equal.
    """
    ranges = {name: port.within for name, port in graph.inputs.items() if port.within is not None}
    for number in itertools.count():
        numbers = generator(seed, f"rounded {number}")
        chosen = {name: _ROUNDED[int(numbers.integers(len(_ROUNDED)))] for name in ranges}
        yield _one(graph, ranges, chosen, numbers)


def _one(
    graph: Graph, ranges: Mapping[str, Ends], chosen: Mapping[str, Pattern], numbers: Numbers
) -> dict[str, Array]:
    found = {}
    for name, pattern in chosen.items():
        info = graph.inputs[name].info
        found[name] = stored(pattern(numbers, info.shape, ranges[name]), info, ranges[name])
    return found


def _alike(
    graph: Graph, ranges: Mapping[str, Ends], made: Mapping[str, Array], numbers: Numbers
) -> dict[str, Array]:
    """Inputs of one shape and type become equal, or opposite, by chance: what is a distance is 0
    then, and what says how much two have in common is 1.
    """
    first: dict[TensorInfo, Array] = {}
    found = dict(made)
    for name, array in made.items():
        info = graph.inputs[name].info
        other = first.setdefault(info, array)
        if other is not array and numbers.random() < 0.75:
            sign = -1 if info.kind == "real" and numbers.random() < 0.25 else 1
            found[name] = stored(sign * other, info, ranges[name])
    return found
