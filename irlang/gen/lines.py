"""Values that keep to what is asked of whole lines of a tensor: by what a framework documents, that
they add up to 1; by a definition, that places ascend.

A range says which numbers one element may be (`irlang.gen.added.kept_to`), and nothing of several
together. Where values break such a condition, operands that it reads are arranged anew along one of
their axes, in a few ways, and the first that keeps to it is taken. Which one that is does not
matter here: the condition itself is asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from irlang import ast
from irlang.catalog import Catalog
from irlang.equations import TensorInfo
from irlang.gen.added import breaks, reads
from irlang.gen.pattern import pattern
from irlang.gen.ranges import Range
from irlang.gen.spoilt import alone, broken_by
from irlang.graph import Graph, Node
from irlang.instance import Instance
from irlang.interp.draws import generator
from irlang.interp.values import initial_values, inputs

Array = np.ndarray[Any, np.dtype[Any]]
_LEAST, _MOST = 0.05, 1.0  # what a share is made of: no edge of a type stands in the way of a sum
_ONE = "one"  # a 1 where the largest element is, beside zeros
_SHARES = "shares"  # of the sum of a line
_SIDE, _ROOM = 64, 1 << 16  # places along an axis, and in all, of which some are chosen


def in_line(
    graph: Graph,
    values: Mapping[str, Array],
    rows: Mapping[str, Sequence[ast.Require]],
    catalog: Catalog,
    seed: int,
) -> dict[str, Array]:
    """The values of inputs and parameters; those anew that a condition on lines speaks of, and that
    broke it.

    rows: the conditions by operator, beside those of definitions that set elements of one tensor
    against one another. What no arrangement meets stays as it is.
    """
    found = dict(values)
    for node in graph.nodes:
        for wanted in (*pattern(node.op).orders, *rows.get(node.op.name, ())):
            if reads(node.op, wanted) and breaks(node, wanted, found, catalog):
                found.update(_arranged(graph, node, wanted, found, catalog, seed))
    return found


def drawn(
    graph: Graph, catalog: Catalog, seed: int, given: Mapping[str, Array] | None = None
) -> tuple[dict[str, Array], dict[str, Array]]:
    """The values of inputs, given or drawn in the order that definitions want, and of parameters.

    Raises `run.*` where a given one is no input, or does not fit.
    """
    known = dict(given or {})
    values, params = inputs(graph, seed, known), initial_values(graph, seed)
    kept = in_line(graph, {**values, **params}, {}, catalog, seed)
    return {n: array if n in known else kept[n] for n, array in values.items()}, params


def can_be_in_line(
    op: ast.Op, attrs: Mapping[str, Any], instance: Instance, demanded: Mapping[str, Range],
    catalog: Catalog,
) -> bool:  # fmt: skip
    """Whether values of a call keep to what its definition wants in order: of three different rows
    there have to be three.
    """
    if not pattern(op).orders:
        return True
    given = {n: info for n, info in instance.binding.inputs.items() if info is not None}
    node = Node("y", op, {}, dict(attrs), ("y",), instance)
    graph = alone(node, given, attrs, instance, dict(demanded))
    return broken_by(graph, in_line(graph, inputs(graph, 0), {}, catalog, 0), catalog) is None


def _arranged(
    graph: Graph,
    node: Node,
    wanted: ast.Require,
    values: Mapping[str, Array],
    catalog: Catalog,
    seed: int,
) -> dict[str, Array]:
    """The first operand with which a call keeps to a condition, and to what its definition wants in
    order; none where there is none.
    """
    asked = [wanted, *(one for one in pattern(node.op).orders if one is not wanted)]
    spoken = {part.name for part in ast.walk(wanted.condition) if isinstance(part, ast.Read)}
    for formal, name in node.feeds().items():
        if formal not in spoken or name not in values:
            continue
        given = graph.inputs.get(name) or graph.params.get(name)
        within = given.within if given is not None else None
        for array in _arrangements(graph.values[name], values[name], within, seed):
            fed = {**values, name: array}
            if not any(breaks(node, one, fed, catalog) for one in asked):
                return {name: array}
    return {}


def _ascending(array: Array, within: Range | None, seed: int) -> Iterator[Array]:
    """Rows in their order, the same from one end of a range to the other, as where parts begin and
    the last one ends, and as many different ones in order that are in a range, or no larger than
    these where none is known.
    """
    rows = array.reshape(len(array), -1) if array.ndim else array.reshape(1, 1)
    ordered = rows[np.lexsort(rows.T[::-1])]
    yield ordered.reshape(array.shape)
    if within is not None and all(map(math.isfinite, within)):
        spread = ordered.copy()
        spread[-1], spread[0] = within[1], within[0]
        yield spread.reshape(array.shape)
    most = rows.max(axis=0) if within is None else np.full(rows.shape[1], within[1])
    sides = np.clip(most.astype(np.float64) + 1, 1, _SIDE).astype(np.int64)
    room = int(np.prod(sides.astype(object)))
    if len(rows) <= room <= _ROOM:
        chosen = generator(seed, "places").choice(room, len(rows), replace=False)
        places = np.stack(np.unravel_index(np.sort(chosen), tuple(sides)), axis=1)
        yield places.reshape(array.shape).astype(array.dtype)


def _arrangements(
    info: TensorInfo, array: Array, within: Range | None, seed: int
) -> Iterator[Array]:
    """A tensor whose lines along one axis are a single 1, or shares of a whole; of whole numbers
    those that ascend first.
    """
    if not array.size or info.kind == "bool":
        return
    if info.kind == "int":
        yield from _ascending(array, within, seed)
    ways = (_ONE, _SHARES) if generator(seed, "lines").integers(2) else (_SHARES, _ONE)
    axes = range(array.ndim)
    with np.errstate(all="ignore"):
        plain = np.nan_to_num(np.asarray(array, np.float64))
    for way, axis in product(ways if info.kind == "real" else (_ONE,), axes):
        if way == _ONE:
            places = np.argmax(plain, axis=axis, keepdims=True)
            lines = np.zeros(array.shape)
            np.put_along_axis(lines, places, 1.0, axis)
        else:
            parts = np.clip(np.abs(plain), _LEAST, _MOST)
            lines = parts / np.sum(parts, axis=axis, keepdims=True)
        yield lines.astype(array.dtype)
