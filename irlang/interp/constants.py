"""The numbers of a tensor that are known, and how long their rows and matrices are.

Golub and Van Loan, Matrix Computations, section 2.3: no matrix makes a vector longer by more than
its largest singular value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

SLACK = 1e-9  # of what is computed here in double precision, singular values by LAPACK
_LEAST = float(np.finfo(np.float64).tiny)  # of a square: what is less may have become 0
_MOST = 1 << 25  # numbers of which squares are taken: each takes eight bytes, twice
_LARGEST = 1024  # rows or columns of a matrix whose singular values are computed

Array = Any


@dataclass(slots=True, eq=False)
class Known:
    """The numbers of a tensor, and what has been found of matrices of them."""

    array: Array
    _found: dict[Any, float] = field(default_factory=dict)

    def spectral(self, batch: Sequence[int], rows: Sequence[int], columns: Sequence[int]) -> float:
        """No less than the largest singular value of the matrices along two groups of axes."""
        key = tuple(batch), tuple(rows), tuple(columns)
        if key not in self._found:
            self._found[key] = max(map(_spectral, self._matrices(*key)), default=0.0)
        return self._found[key]

    def row(self, axes: Sequence[int]) -> float:
        """The length of the longest row along some axes."""
        key = tuple(axes)
        if self.array.size > _MOST:
            return _by_largest(self.array, math.prod(self.array.shape[axis] for axis in axes))
        if key not in self._found:
            squares = np.sum(np.square(self.array, dtype=np.float64) + _LEAST, axis=key)
            self._found[key] = math.sqrt(float(np.max(squares, initial=0.0)) * (1 + SLACK))
        return self._found[key]

    def total(self, axes: Sequence[int]) -> tuple[float, float]:
        """Between which numbers the sums along some axes lie, of numbers that are not negative."""
        sums = np.sum(self.array, axis=tuple(axes), dtype=np.float64)
        return float(sums.min()) * (1 - SLACK), float(sums.max()) * (1 + SLACK)

    def _matrices(self, batch: Sequence[int], rows: Sequence[int], columns: Sequence[int]) -> Array:
        shape = self.array.shape
        sizes = [math.prod(shape[axis] for axis in group) for group in (batch, rows, columns)]
        return np.transpose(self.array, (*batch, *rows, *columns)).reshape(sizes)


def _by_largest(array: Array, count: int) -> float:
    """The length of so many numbers that are no larger than those of an array."""
    return math.sqrt(count) * max(-float(array.min()), float(array.max())) * (1 + SLACK)


def _spectral(matrix: Array) -> float:
    if matrix.size > _MOST:
        return _by_largest(matrix, matrix.size)
    wide = np.asarray(matrix, np.float64)
    if wide.shape[0] > wide.shape[1]:
        wide = wide.T
    squares = float(np.sum(np.square(wide) + _LEAST))
    if not math.isfinite(squares) or not 1 < len(wide) <= _LARGEST:
        return math.sqrt(squares) * (1 + SLACK)
    largest = float(np.linalg.eigvalsh(wide @ wide.T)[-1])
    return math.sqrt(max(largest, 0.0) + SLACK * squares + wide.size * _LEAST)
