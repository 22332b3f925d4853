"""Values drawn anew where little can be said of what follows from the first ones.

A logarithm of negative numbers, a root of a matrix that has none, a row that a mask hides whole: of
evenly drawn values, results may mostly have no verdict. Then tensors are drawn from parts of their
ranges, some others at every turn, and what says most is kept. It does not matter why it does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from irlang.dtypes import DTYPES, integer_range
from irlang.equations import TensorInfo
from irlang.graph import Graph, Param, Port
from irlang.interp.ball import Ball
from irlang.interp.draws import generator
from irlang.interp.values import DEFAULT_RANGE, draw

Array = np.ndarray[Any, np.dtype[Any]]
Range = tuple[float, float]
Values = Mapping[str, Array]
Balls = Mapping[str, Ball]
Judge = Callable[[Values], Balls | None]
ENOUGH = 0.75  # of the elements that calls give are known: nothing is drawn anew
_TURNS = 4  # with eight one more program in 250 can be judged, and some take twice as long
_ALL = 2  # turns at which all tensors are drawn anew, in the same way
_NEAR, _FAR = 0.1, 0.9  # ends of what lies well inside of [0, 1]
_LESS = 0.125  # of a range: what an exponential or a long sum leaves finite
_MOST = 2**31  # integers of a range that are taken in turn
_SHOWN = 0.9  # of truth values are true, or false


def known(graph: Graph, balls: Balls) -> float:
    """The share of elements of which something is known, the mean over all results of calls."""
    shares = []
    for node in graph.nodes:
        for name in node.outputs:
            if name == graph.loss or not math.prod(graph.values[name].shape):
                continue
            ball = balls[name]
            with np.errstate(invalid="ignore"):
                told = np.isfinite(np.asarray(ball.bound)) & np.isfinite(
                    np.asarray(ball.value, np.float64)
                )
            shares.append(float(np.mean(told)))
    return float(np.mean(shares)) if shares else 1.0


def anew(
    graph: Graph, values: Values, seed: int, judge: Judge, spared: Collection[str] = ()
) -> tuple[Values, Balls | None]:
    """The values of inputs and parameters, or others of which more is known, and what is.

    judge: every value of the graph as a ball; None where a precondition on values fails. spared:
    names of those that stay.
    """
    balls = judge(values)
    best = -1.0 if balls is None else known(graph, balls)
    places = {n: p for n, p in _drawn(graph).items() if n in values and n not in spared}
    random = generator(seed, "anew")
    for turn in range(_TURNS if places else 0):
        if best >= ENOUGH:
            break
        changed = [name for name in places if turn < _ALL or random.random() < 0.5]
        changed = changed or [list(places)[random.integers(len(places))]]
        way = turn if turn < _ALL else None
        tried = {**values, **{name: _otherwise(places[name], random, way) for name in changed}}
        found = judge(tried)
        share = -1.0 if found is None else known(graph, found)
        if share > best:
            values, balls, best = tried, found, share
    return values, balls


def _drawn(graph: Graph) -> dict[str, Port | Param]:
    """The tensors whose values are drawn."""
    params = {name: param for name, param in graph.params.items() if param.initial is None}
    return {**graph.inputs, **params}


def _otherwise(place: Port | Param, random: np.random.Generator, way: int | None) -> Array:
    """Values of a tensor from a part of its range, or in another arrangement.

    way: which; None for any. The first is what suits most functions: well inside of [0, 1],
    mostly true, each integer in turn; the second, what is positive.
    """
    info, seed = place.info, int(random.integers(2**31))
    low, high = place.within or DEFAULT_RANGE[info.kind]
    if info.kind == "bool":
        share = 1 - _SHOWN if (random.integers(2) if way is None else way) else _SHOWN
        return (
            draw(info, (low, high), seed, "") if low == high else random.random(info.shape) < share
        )
    if info.kind == "int":
        return _whole(info, (low, high), random, seed, way)
    parts = [
        (max(low, _NEAR), min(high, _FAR)),
        (max(low, _NEAR * high), high),
        (low, min(high, _NEAR * low)),
        (max(low, _LESS * low), min(high, _LESS * high)),
        (low, high),
    ]
    part = parts[int(random.integers(len(parts))) if way is None else way]
    found = draw(info, part if part[0] < part[1] else (low, high), seed, "")
    square = len(info.shape) > 1 and info.shape[-1] == info.shape[-2] > 1
    dominated = random.integers(2) == 0 if way is None else way == 0
    return _dominated(found, low, high) if square and dominated else found


def _whole(
    info: TensorInfo, within: Range, random: np.random.Generator, seed: int, way: int | None
) -> Array:
    """Integers each in turn, of the upper or the lower half, or at one end; of those that the type
    has.
    """
    least, greatest = integer_range(info.dtype)
    low, high = math.ceil(max(within[0], least)), math.floor(min(within[1], greatest))
    middle = (low + high) // 2
    parts = [(low, high), (middle, high), (low, middle), (high, high), (low, low)]
    one = int(random.integers(len(parts))) if way is None else way
    if one or high - low >= _MOST:
        return draw(info, parts[one], seed, "")
    turns = low + (np.arange(math.prod(info.shape)) + random.integers(8)) % (high - low + 1)
    return turns.reshape(info.shape).astype(DTYPES[info.dtype].numpy)


def _dominated(array: Array, low: float, high: float) -> Array:
    """Matrices whose diagonal outweighs the rest, symmetric: they have inverses and roots."""
    size = array.shape[-1]
    rest = array.astype(np.float64) / (4 * size)
    rest = (rest + np.swapaxes(rest, -1, -2)) / 2
    most = max(abs(low), abs(high))
    diagonal = np.abs(np.diagonal(array, axis1=-2, axis2=-1)).astype(np.float64)
    found = np.where(np.eye(size, dtype=bool), _FAR * (diagonal[..., None] + most) / 2, rest)
    clipped: Array = np.clip(found, low, high).astype(array.dtype)
    return clipped
