"""Integers that int64 does not hold: those of u64 are Python's own, in arrays of objects.

So are numbers of a call near the ends of int64, which they would leave by what is added to them.
Everything else keeps whole numbers in int64. Slow, and right: both are rare.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from irlang import equations as eq
from irlang.dtypes import integer_range
from irlang.interp.exact_scalar import ON_INTEGERS, whole_or_least
from irlang.scalar import SCALARS

Array = np.ndarray[Any, np.dtype[Any]]
_KINDS = {"real": np.dtype(np.float64), "int": np.dtype(np.int64), "bool": np.dtype(np.bool_)}
_OBJECT = np.dtype(object)
_FAR = 2**62  # from which on sizes and indices, added to a number, may leave int64
_WHOLE = {name: np.frompyfunc(f, SCALARS[name].arity, 1) for name, f in ON_INTEGERS.items()}


def carrier(info: eq.TensorInfo) -> np.dtype[Any]:
    """What arrays of a tensor hold."""
    return _OBJECT if info.dtype == "u64" else _KINDS[info.kind]


def is_wide(value: Any) -> bool:
    """Whether a value is of Python's integers."""
    if type(value) is int:
        return not -_FAR < value < _FAR
    return getattr(value, "dtype", None) == _OBJECT


def number(value: Any) -> Any:
    """A number; one that is wide as an array, so that NumPy leaves it alone."""
    return np.array(value, dtype=object) if is_wide(value) else value


def apply(function: str, args: list[Any]) -> Any:
    """A scalar function of which some arguments are Python's integers."""
    row = SCALARS[function]
    if function in ("and", "or", "not"):
        return row.numpy(*(np.asarray(arg != 0, dtype=bool) for arg in args))
    floats = any(np.asarray(arg).dtype.kind == "f" for arg in args)
    if floats or row.kind == "real" or function not in _WHOLE:
        return row.numpy(*(np.asarray(arg, dtype=np.float64) for arg in args))
    return np.asarray(_WHOLE[function](*args), dtype=bool if row.kind == "bool" else object)


def wrapped(value: Any, info: eq.TensorInfo) -> Array:
    """Assignment to an integer type: reals are truncated, integers wrap."""
    array = np.asarray(value)
    if array.dtype.kind in "fO":  # objects may be NaN, of nothing
        array = np.asarray(np.frompyfunc(_truncated, 1, 1)(array), dtype=object)
    least, largest = integer_range(info.dtype)
    shifted = array.astype(object) - least
    found = np.asarray(shifted % (largest - least + 1) + least, dtype=object)
    return found.astype(carrier(info))


def _truncated(value: float) -> int:
    if isinstance(value, int):
        return value
    return int(value) if 2.0**63 <= value < 2.0**64 else whole_or_least(value)


def narrowed(value: Any) -> Any:
    """An array as NumPy's own type has it."""
    return value.astype(np.uint64) if is_wide(value) else value
