"""Evaluation in a narrow type, as some program might do it: what radii must cover."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.dtypes import DTYPES
from irlang.interp.plain import Plain

Array = Any


class Narrow(Plain):
    """Every operation rounds to a type; sums are added up in an order of the seed's.

    The seed also says whether terms are added one after another or as a tree, whether products are
    rounded before they are added, and whether denormal results are flushed. It shares nothing with
    the domain of balls but the order in which equations are evaluated.
    """

    any_order = True

    def __init__(self, seed: int, dtype: str = "f32") -> None:
        self.random = np.random.default_rng(seed)
        self.dtype = DTYPES[dtype]
        self.flushes, self.fuses, self.halves = self.random.random(3) < 0.5

    def rounded(self, value: Array) -> Array:
        """A real number as the type has it, whole numbers and truth values as they are."""
        array = np.asarray(value)
        if array.dtype.kind != "f":
            return value
        with np.errstate(over="ignore", invalid="ignore"):
            found = array.astype(self.dtype.numpy).astype(np.float64)
        if self.flushes:
            found = np.where(np.abs(found) < self.dtype.tiny, np.copysign(0.0, found), found)
        return found

    def number(self, value: eq.Scalar) -> Array:
        if isinstance(value, (bool, int)):
            return value
        return self.rounded(np.float64(float(value)))

    def apply(self, function: str, args: list[Array]) -> Array:
        rounded = [self.rounded(a) if isinstance(a, np.ndarray) else a for a in args]
        return self.rounded(super().apply(function, rounded))

    def sum(self, terms: list[Array]) -> Array:
        """A few terms; with whole numbers among them, as they are written."""
        if all(np.asarray(term).dtype.kind == "f" for term in terms):
            return self.added(terms)
        total = terms[0]
        for term in terms[1:]:
            total = self.apply("+", [total, term])
        return total

    def fold(self, kind: str, value: Array, axes: tuple[int, ...]) -> Array:
        given = np.asarray(value)
        if kind not in ("sum", "prod") or not axes or given.dtype.kind != "f" or not given.size:
            return self.rounded(super().fold(kind, value, axes))
        terms = self._terms(self.rounded(given), axes[0])
        if kind == "sum":
            return self.added(terms)
        product = terms[0]
        for term in terms[1:]:
            product = self.rounded(product * term)
        return product

    def contract(self, factors: list[Array], rank: int) -> Array:
        arrays = [np.asarray(self.rounded(factor)) for factor in factors]
        if all(array.dtype.kind in "ib" for array in arrays):
            return super().contract(factors, rank)
        arrays = [arrays[place] for place in self.random.permutation(len(arrays))]
        fused = self.fuses and len(arrays) > 1
        product = np.asarray(1.0)
        for place, array in enumerate(arrays):
            product = product * array
            if not (fused and place == len(arrays) - 1):
                product = self.rounded(product)
        product = np.asarray(product, dtype=np.float64)
        product = product.reshape((1,) * (rank - np.ndim(product)) + np.shape(product))
        if np.ndim(product) == rank:
            return self.rounded(product)
        if not product.size:
            return super().fold("sum", product, tuple(range(rank, np.ndim(product))))
        terms = self._terms(product, rank)
        if not fused:
            return self.added(terms)
        total = self.rounded(terms[0])
        for term in terms[1:]:  # float64 holds a product of two such numbers
            total = self.rounded(total + term)
        return total

    def store(self, value: Array, info: eq.TensorInfo, shape: tuple[int, ...]) -> Array:
        stored = super().store(value, info, shape)
        return self.rounded(stored) if info.kind == "real" else stored

    def _terms(self, array: Array, rank: int) -> list[Array]:
        flat = array.reshape((*array.shape[:rank], math.prod(array.shape[rank:])))
        return [flat[..., place] for place in self.random.permutation(flat.shape[-1])]

    def added(self, terms: Sequence[Array]) -> Array:
        """Their sum in some order."""
        left = [np.asarray(self.rounded(term)) for term in terms]
        left = [left[place] for place in self.random.permutation(len(left))]
        while len(left) > 1:
            first = int(self.random.integers(len(left) - 1)) if self.halves else 0
            with np.errstate(over="ignore", invalid="ignore"):
                left[first : first + 2] = [self.rounded(left[first] + left[first + 1])]
        return left[0]
