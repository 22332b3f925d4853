"""Calls computed in their element types: every operation is rounded, by NumPy.

This is the arithmetic that ranges and their proofs speak of (`irlang.interp.range`). It shares no
code with their sets of numbers, so that it can be held against them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.certain import of_values
from irlang.dtypes import DTYPES
from irlang.graph import Node
from irlang.instance import Definitions
from irlang.interp import vector
from irlang.interp.draws import feeds
from irlang.interp.plain import Plain
from irlang.interp.values import Array

_FOLDED = frozenset({"sum", "prod"})


class Rounded(Plain):
    """Plain numbers, every real result rounded to an element type."""

    def __init__(self, dtype: str) -> None:
        self.type = DTYPES[dtype].numpy

    def _near(self, value: Any) -> Any:
        array = np.asarray(value)
        if array.dtype != np.float64:
            return value
        return array.astype(self.type).astype(np.float64)

    def number(self, value: eq.Scalar) -> Any:
        """A number of the text."""
        return self._near(super().number(value))

    def apply(self, function: str, args: list[Any]) -> Any:
        """A scalar function, rounded once."""
        return self._near(super().apply(function, args))

    def fold(self, kind: str, value: Any, axes: tuple[int, ...]) -> Any:
        """A reduction whose every step is rounded."""
        if kind in _FOLDED and np.asarray(value).dtype == np.float64:
            return self._steps(kind, np.asarray(value), axes)
        return super().fold(kind, value, axes)

    def _steps(self, kind: str, value: Array, axes: tuple[int, ...]) -> Array:
        kept = tuple(axis for axis in range(value.ndim) if axis not in axes)
        shape = tuple(value.shape[axis] for axis in kept)
        flat = value.transpose(*kept, *axes).reshape(
            *shape, math.prod(value.shape[a] for a in axes)
        )
        total = np.full(shape, 0.0 if kind == "sum" else 1.0)
        for place in range(flat.shape[-1]):
            part = flat[..., place]
            total = self._near(total + part if kind == "sum" else total * part)
        return total

    def contract(self, factors: list[Any], rank: int) -> Any:
        """The sum of products, every product and sum rounded."""
        arrays = np.broadcast_arrays(*map(np.asarray, factors))
        if any(array.dtype != np.float64 for array in arrays):
            return super().contract(factors, rank)
        product = self._near(arrays[0])
        for array in arrays[1:]:
            product = self._near(product * array)
        return self._steps("sum", product, tuple(range(rank, product.ndim)))


def evaluated(node: Node, found: Mapping[str, Array], definitions: Definitions) -> dict[str, Array]:
    """The results of a call, every operation rounded to the coarsest type that it reads."""
    expansion = of_values(node.expansion(definitions))
    domain = Rounded(precision(expansion))
    given = feeds(node, expansion, found)
    with np.errstate(all="ignore"):
        tensors = vector.evaluate(expansion, given, domain)
    results = {}
    for formal, name in node.results().items():
        info, array = expansion.tensors[formal], np.asarray(tensors[formal])
        if info.kind == "real" and not DTYPES[info.dtype].stored:
            with np.errstate(all="ignore"):
                array = array.astype(DTYPES[info.dtype].numpy).astype(np.float64)
        results[name] = array
    return results


def precision(expansion: eq.Expansion) -> str:
    """The coarsest floating-point type that a call reads; else that of its results."""
    for names in (expansion.inputs, expansion.outputs):
        rows = [DTYPES[expansion.tensors[name].dtype] for name in names]
        reals = [row for row in rows if row.kind == "real" and not row.stored]
        if reals:
            return max(reals, key=lambda row: row.unit).name
    return "f32"
