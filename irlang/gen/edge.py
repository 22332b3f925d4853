"""Values at the edges of a type: NaN, infinities, signed zeros, denormals, extremes, ties.

Where the arithmetic of a definition determines what becomes of them, frameworks are held to it
(IEEE 754-2019; what it leaves open, definitions mark `unspecified`). A program gets one palette, or
all of them mixed, in one element, in some or in all, so that what a NaN hides, another shows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from irlang.dtypes import DTYPES, integer_range
from irlang.graph import Graph

Array = np.ndarray[Any, np.dtype[Any]]
_SHARES = (0.0, 0.25, 1.0)  # of an input's elements, beyond the one that is sure
# Numbers as (factor, unit): 1, the type's least normal number, or its largest.
_PALETTES: tuple[tuple[tuple[float, str], ...], ...] = (
    ((np.nan, "one"),),
    ((np.inf, "one"), (-np.inf, "one")),
    ((0.0, "one"), (-0.0, "one")),
    ((0.25, "tiny"), (-0.25, "tiny"), (1.0, "tiny")),
    ((1.0, "largest"), (-1.0, "largest"), (0.5, "largest")),
    ((0.5, "one"), (-1.0, "one")),  # ties
    ((0.5, "one"), (1.5, "one"), (2.5, "one"), (-0.5, "one"), (-1.5, "one")),  # half-way
)
_MIXED = 0.25  # of the programs take from all palettes


def with_edges(graph: Graph, values: dict[str, Array], seed: int) -> dict[str, Array]:
    """The inputs of a program with some elements at an edge; a real input loses its range.

    values: of the inputs, in their own types; they are not changed. Integers stay inside the range
    that is declared for them, at its ends; those without one go to the ends of their type.
    """
    random = np.random.default_rng([seed & (2**63 - 1), 0xED6E])
    one = _PALETTES[random.integers(len(_PALETTES))]
    palette = sum(_PALETTES, ()) if random.random() < _MIXED else one
    found = {}
    for name, array in values.items():
        port = graph.inputs[name]
        if port.info.kind == "bool" or not array.size:
            found[name] = array
            continue
        if port.info.kind == "int":
            low, high = port.within or integer_range(port.info.dtype)
            numbers = np.array([int(low), int(high)]).astype(array.dtype)
        else:
            dtype = DTYPES[port.info.dtype]
            units = {"one": 1.0, "tiny": dtype.tiny, "largest": dtype.largest}
            numbers = np.array([factor * units[unit] for factor, unit in palette], array.dtype)
            graph.inputs[name] = replace(port, within=None)
        where = np.asarray(random.random(array.shape) < float(random.choice(_SHARES)))
        where.reshape(-1)[random.integers(array.size)] = True
        found[name] = np.where(where, random.choice(numbers, size=array.shape), array)
    return found


def on_grid(graph: Graph, values: dict[str, Array]) -> dict[str, Array]:
    """The drawn real numbers among inputs or parameters rounded to halves, as their ranges allow.

    So there are equals, zeros and whole numbers among them: ties, kinks and poles of functions.
    """
    found = {}
    for name, array in values.items():
        param = graph.params.get(name)
        place = param or graph.inputs[name]
        if place.info.kind != "real" or (param and (param.literal or param.initial is not None)):
            found[name] = array
            continue
        low, high = place.within or (-np.inf, np.inf)
        with np.errstate(over="ignore", invalid="ignore"):
            halves = np.round(array.astype(np.float64) * 2) / 2
        inside = (halves >= low) & (halves <= high)
        found[name] = np.where(inside, halves.astype(array.dtype), array)
    return found
