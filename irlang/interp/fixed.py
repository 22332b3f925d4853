"""Numbers that follow from constants, as the indices do that a converter computes inside a model.

Whole numbers, and what is computed of them without rounding, are the same in every order of
evaluation: a call of such numbers alone is evaluated once, and its results are known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from irlang import equations as eq
from irlang.diagnostics import InvalidInput
from irlang.dtypes import DTYPES
from irlang.graph import Graph, Node
from irlang.instance import Definitions
from irlang.interp import reference
from irlang.interp.declared import known_array, known_tensor
from irlang.interp.regions import Tensor
from irlang.interp.values import Array
from irlang.scalar import SCALARS

_MOST = 256  # elements of a constant that is looked at
_WORK = 10_000  # scalar steps of a call that is evaluated
# What may make of two small numbers one that is not.
_GROWING = frozenset({"*", "integer_power", "shift_left"})


class Fixed:
    """The values of a graph that are known, as far as one has come."""

    def __init__(
        self, graph: Graph, definitions: Definitions, ranges: Mapping[str, tuple[float, float]]
    ) -> None:
        self._graph, self._definitions = graph, definitions
        self._arrays: dict[str, Array] = {}
        for name, param in graph.params.items():
            array = known_array(graph, name, param, ranges) if _is_small(param.info) else None
            if array is not None and _is_whole(array, param.info):
                self._arrays[name] = array

    def results(self, node: Node, domain: str) -> dict[str, Tensor]:
        """What the results of a call are; nothing where that does not follow from constants."""
        values = self._graph.values
        operands = [*node.operands()]
        if not operands or not all(name in self._arrays for name in operands):
            return {}
        expansion = node.expansion(self._definitions)
        if expansion.is_open or sum(map(reference.steps_of, expansion.equations)) > _WORK:
            return {}
        if not all(_is_exact(e, expansion.tensors) for e in expansion.equations):
            return {}
        fed = {formal: self._arrays[name] for formal, name in node.feeds().items()}
        try:
            found = reference.evaluate(expansion, fed)
        except InvalidInput:  # it is refused when it is run
            return {}
        if not all(_is_whole(found[e.target], e.info) for e in expansion.equations):
            return {}
        made = {name: found[formal] for formal, name in node.results().items()}
        self._arrays.update(made)
        return {name: known_tensor(values[name], array, domain) for name, array in made.items()}


def _is_small(info: eq.TensorInfo) -> bool:
    return math.prod(info.shape) <= _MOST


def _is_whole(array: Array, info: eq.TensorInfo) -> bool:
    """Whether these are whole numbers that stay what they are among a few others of their type."""
    if info.kind != "real":
        return True
    numbers = np.asarray(array, np.float64)
    small = np.abs(numbers) <= 0.25 / DTYPES[info.dtype].unit / _MOST
    return bool(np.all(small & (np.rint(numbers) == numbers)))


def _is_exact(equation: eq.Equation, types: Mapping[str, eq.TensorInfo]) -> bool:
    """Whether nothing in an equation is rounded, its operands being small whole numbers."""
    parts = [*eq.walk(equation.body)]
    functions = {part.function for part in parts if isinstance(part, eq.Apply)}
    read = [types[part.tensor].kind for part in parts if isinstance(part, eq.Read)]
    if any(SCALARS[name].ulps for name in functions if name in SCALARS):
        return False
    if "real" not in (equation.info.kind, *read, *functions):
        return True
    whole = all(float(p.value).is_integer() for p in parts if isinstance(p, eq.Const))
    adds = any(isinstance(p, eq.Reduce) and p.kind in ("sum", "prod") for p in parts)
    return whole and not adds and not functions & _GROWING
