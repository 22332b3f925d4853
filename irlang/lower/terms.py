"""What the generic lowering computes with: numbers that it knows, expressions of the program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from irlang.dtypes import DTYPES
from irlang.lower.value import Array, Unsupported, Value

Axes = tuple[str, ...]
_KIND_OF_NUMPY = {"b": "bool", "i": "int", "u": "int", "f": "real"}


@dataclass(frozen=True, slots=True)
class Known:
    """Numbers that are known when the program is emitted: int64, float64 or bool."""

    array: Array
    axes: Axes = ()

    @property
    def kind(self) -> str:
        """`real`, `int` or `bool`."""
        return _KIND_OF_NUMPY[self.array.dtype.kind]


@dataclass(frozen=True, slots=True)
class Traced:
    """An expression of the program; `axes` names its axes, in the order of the context."""

    value: Value
    axes: Axes = ()

    @property
    def kind(self) -> str:
        """`real`, `int` or `bool`."""
        return DTYPES[self.value.dtype].kind


Term = Known | Traced


def number(value: Any) -> Known:
    """A number as a term; an integer beyond 64 bits is a real."""
    if isinstance(value, Fraction):
        value = float(value)
    if isinstance(value, bool):
        return Known(np.asarray(value))
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        value = float(value)
    return Known(np.asarray(value, dtype=np.int64 if isinstance(value, int) else np.float64))


def signed(terms: Sequence[Term]) -> None:
    """Raises `Unsupported` for numbers that 64 bits with a sign, which is what there is, lack."""
    if any(isinstance(term, Traced) and term.value.dtype == "u64" for term in terms):
        raise Unsupported("whole numbers are computed in 64 bits with a sign, which u64 exceeds")
