"""Numbers as a report writes them: as many digits as their type tells apart, and no more.

A float32 is written as the shortest text that is the same float32, so that a right result does not
look wrong; what is expected has two digits more than that, so that it differs from what is got.
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from irlang.graph import Graph, differentiated

Array = np.ndarray[Any, np.dtype[Any]]
_DIGITS = {"bf16": 5, "f16": 6, "f32": 10}  # that tell a real from its neighbours, and one more
_TYPES: dict[str, Any] = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32}


def dtype_of(graph: Graph, name: str) -> str:
    """The type of a result, or of the gradient `d_…` by an input or a parameter."""
    value = graph.outputs.get(name, name)
    info = graph.values.get(value) or graph.values.get(differentiated(name))
    return info.dtype if info is not None else ""


def got(value: float, dtype: str) -> str:
    """A number that a target gave."""
    if dtype == "bool":
        return _plain(bool(value))
    if dtype in _TYPES and math.isfinite(value):
        with np.errstate(over="ignore"):
            return _plain(float(str(_TYPES[dtype](value))))
    return _plain(value)


def expected(value: float, dtype: str) -> str:
    """A number that is right, rounded to what a target of that type could come near."""
    if dtype == "bool":
        return _plain(bool(value))
    if dtype in _DIGITS and math.isfinite(value):
        return _plain(float(f"{value:.{_DIGITS[dtype]}g}"))
    return _plain(value)


def all_got(array: Array, dtype: str) -> str:
    """The elements that a target gave, as nested lists."""
    return _nested(np.asarray(array), dtype, got)


def all_expected(array: Array, dtype: str) -> str:
    """The elements that are right, as nested lists."""
    return _nested(np.asarray(array), dtype, expected)


def _nested(array: Array, dtype: str, write: Any) -> str:
    if array.ndim:
        return f"[{', '.join(_nested(part, dtype, write) for part in array)}]"
    number = array[()].item() if array.dtype.kind in "biuf" else float(array[()])
    return write(number, dtype) if isinstance(number, float) else _plain(number)


def _plain(number: Any) -> str:
    if isinstance(number, bool):
        return str(number).lower()
    if not isinstance(number, float):
        return str(number)
    if math.isfinite(number) and number == int(number) and abs(number) < 1e16:
        return "-0" if number == 0 and math.copysign(1, number) < 0 else str(int(number))
    return repr(number)
