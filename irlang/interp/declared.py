"""What the text of a model says of its inputs and parameters, as tensors of sets of numbers.

Where it says nothing, inputs are taken to lie in `INPUTS` and parameters in `PARAMETERS`: numbers
that data and trained weights do reach.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.dtypes import DTYPES, integer_range
from irlang.graph import Graph, Param, Port
from irlang.interp.arithmetic import Arithmetic
from irlang.interp.constants import Known
from irlang.interp.interval import Numbers, interval
from irlang.interp.regions import Region, Tensor, merged, whole
from irlang.interp.unfolding import own_index
from irlang.interp.values import DEFAULT_RANGE, Array, initial_values
from irlang.laws import LAWS

INPUTS = (-50.0, 50.0)
PARAMETERS = (-10.0, 10.0)
_SMALL = 16  # elements of a constant that are told apart


def given_tensor(
    graph: Graph,
    name: str,
    given: Port | Param,
    ranges: Mapping[str, tuple[float, float]],
    domain: str,
) -> Tensor:
    """What an input or a parameter may be.

    Its declared range; else that of `ranges`; else, of a parameter, its value, or what its
    initialiser gives; else the default. Raises `InvalidInput` where data cannot be read.
    """
    info = given.info
    within = given.within or ranges.get(name)
    if within is None and isinstance(given, Param) and given.initial is not None:
        array = known_array(graph, name, given, ranges)
        if array is not None:
            made = known_tensor(info, array, domain)
            made.known = Known(array) if info.kind == "real" and made.hull.finite else None
            return made
        within = LAWS[given.initial.kind].support(*map(float, given.initial.args))
    if within is None:
        within = DEFAULT_RANGE[info.kind]
        if info.kind == "real":
            within = PARAMETERS if isinstance(given, Param) else INPUTS
    return whole(info, numbers_within(info, within))


def known_array(
    graph: Graph, name: str, param: Param, ranges: Mapping[str, tuple[float, float]]
) -> Array | None:
    """The value of a parameter of which no range is declared; None where a law draws it. Raises
    `InvalidInput` where data cannot be read.
    """
    if param.within or name in ranges or param.initial is None or param.initial.kind in LAWS:
        return None
    return initial_values(Graph(graph.name, params={name: param}, folder=graph.folder), 0)[name]


def numbers_within(info: eq.TensorInfo, within: tuple[float, float]) -> Numbers:
    """The numbers of a type between two ends."""
    low, high = within
    if info.kind == "real":
        return inside(Arithmetic(info.dtype), low, high)
    least, greatest = (0, 1) if info.kind == "bool" else integer_range(info.dtype)
    return interval(max(low, least), min(high, greatest), whole=True)


def inside(own: Arithmetic, low: float, high: float) -> Numbers:
    """The numbers of a type from `low` to `high`: ends that it does not have are no members, unless
    there are no others: 0.1 to 0.1 is what the type has for 0.1.
    """
    nearest = ends = own.nearest(low), own.nearest(high)
    if ends[0] < low:
        ends = (float(np.nextafter(_typed(own, ends[0]), _typed(own, np.inf))), ends[1])
    if ends[1] > high:
        ends = (ends[0], float(np.nextafter(_typed(own, ends[1]), _typed(own, -np.inf))))
    if ends[0] > ends[1] and low <= high:
        ends = nearest
    return interval(max(ends[0], -own.largest), min(ends[1], own.largest))


def _typed(own: Arithmetic, value: float) -> Any:
    return np.asarray(value).astype(own.row.numpy)


def known_tensor(info: eq.TensorInfo, array: Any, domain: str) -> Tensor:
    """A tensor whose numbers are known: one region, or one for every element where they are few."""
    values = np.asarray(array)
    if values.size == 0:
        return whole(info, interval(1, 0))
    by_place = _by_indices(values) if domain != "tensor" else None
    if domain != "tensor" and by_place is None and 1 < values.size <= _SMALL:
        regions, counting = [], _counting(values)
        for at in np.ndindex(values.shape):
            box = tuple((i, i + 1) for i in at)
            regions.append(Region(box, summary(info, values[at]), counting))
        made = merged(info, regions)
        made.body = counting
        return made
    return whole(info, summary(info, values), by_place or _counting(values))


def _counting(values: Any) -> eq.Expr | None:
    """An index of the elements of a constant of whole numbers that counts along it."""
    if values.dtype.kind not in "iu":
        return None
    for axis, size in enumerate(values.shape):
        if size > 1 and np.array_equal(values, np.indices(values.shape)[axis]):
            return eq.Index(own_index(axis))
    return None


def _by_indices(values: Any) -> eq.Expr | None:
    """What tells the elements of a constant matrix that is a diagonal or a triangle: its indices.

    None for others, and for one that is the same everywhere.
    """
    if values.ndim < 2 or min(values.shape[-2:]) < 2 or values.dtype.kind not in "bf":
        return None
    row, column = np.indices(values.shape[-2:])
    for function, holds in (("==", row == column), ("<=", column <= row), ("<", column < row)):
        inside, outside = values[..., holds], values[..., ~holds]
        one, other = inside.flat[0], outside.flat[0]
        if one != other and np.all(inside == one) and np.all(outside == other):
            names = (own_index(values.ndim - 1), own_index(values.ndim - 2))
            condition = eq.Apply(function, tuple(map(eq.Index, names)))
            return eq.Apply("select", (condition, *(eq.Const(v.item()) for v in (one, other))))
    return None


def summary(info: eq.TensorInfo, values: Any) -> Numbers:
    """The least set around some numbers: negative ones, zero and positive ones apart."""
    kind = DTYPES[info.dtype].kind
    array = np.asarray(values)
    if kind != "real":
        wide = array.astype(object if array.dtype == np.uint64 else np.int64)
        return interval(int(wide.min()), int(wide.max()), whole=True)
    array = array.astype(np.float64)
    finite = array[np.isfinite(array)]
    parts = [finite[finite < 0], finite[finite == 0], finite[finite > 0]]
    return Numbers(
        tuple((float(part.min()), float(part.max())) for part in parts if part.size),
        bool(np.isnan(array).any()),
        bool((array == -np.inf).any()),
        bool((array == np.inf).any()),
        bool((finite == np.rint(finite)).all()),
    )
