"""Element types: names, classes, NumPy equivalents and unit roundoffs, in one table."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np


@dataclass(frozen=True, slots=True)
class DType:
    """One element type.

    kind: `real`, `int` or `bool`, what the equations see. unit: unit roundoff u (2**-p for p bits
    of significand), 0 for exact types. tiny: smallest positive normal number. bits: storage.
    """

    name: str
    kind: str
    numpy: np.dtype[np.generic]
    bits: int
    unit: float = 0.0
    tiny: float = 0.0
    largest: float = 0.0


def _float(name: str, numpy: object, bits: int, precision: int, emin: int, largest: float) -> DType:
    dtype: np.dtype[np.generic] = np.dtype(numpy)  # type: ignore[call-overload]
    return DType(name, "real", dtype, bits, 2.0**-precision, 2.0**emin, largest)


def _integer(name: str) -> DType:
    dtype = np.dtype({"i": "int", "u": "uint"}[name[0]] + name[1:])
    return DType(name, "int", dtype, int(name[1:]))


DTYPES: dict[str, DType] = {
    d.name: d
    for d in (
        _float("f16", np.float16, 16, 11, -14, 65504.0),
        _float("bf16", ml_dtypes.bfloat16, 16, 8, -126, (2 - 2.0**-7) * 2.0**127),
        _float("f32", np.float32, 32, 24, -126, float(np.finfo(np.float32).max)),
        _float("f64", np.float64, 64, 53, -1022, float(np.finfo(np.float64).max)),
        *map(_integer, ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")),
        DType("bool", "bool", np.dtype(bool), 8),
    )
}

# What a type variable of a definition may stand for.
CLASSES: dict[str, frozenset[str]] = {
    "float": frozenset(n for n, d in DTYPES.items() if d.kind == "real"),
    "int": frozenset(n for n, d in DTYPES.items() if d.kind == "int"),
    "number": frozenset(n for n, d in DTYPES.items() if d.kind != "bool"),
    "bool": frozenset({"bool"}),
    "any": frozenset(DTYPES),
}

# Types of attributes and of results that are named by class.
DEFAULT_OF_KIND = {"real": "f64", "int": "i64", "bool": "bool"}


def integer_range(name: str) -> tuple[int, int]:
    """The least and the largest value of an integer type."""
    info = np.iinfo(DTYPES[name].numpy)  # type: ignore[type-var]
    return int(info.min), int(info.max)
