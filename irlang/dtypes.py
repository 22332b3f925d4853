"""Element types: names, classes, NumPy equivalents and unit roundoffs, in one table."""

from __future__ import annotations

from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np


@dataclass(frozen=True, slots=True)
class DType:
    """One element type.

    kind: `real`, `int` or `bool`, what the equations see. unit: unit roundoff u (2**-p for p bits
    of significand), 0 for exact types. tiny: smallest positive normal number. bits: storage.
    stored: whether numbers are only kept in it, and computed with in others. infinite: whether a
    real type has infinities.
    """

    name: str
    kind: str
    numpy: np.dtype[np.generic]
    bits: int
    unit: float = 0.0
    tiny: float = 0.0
    largest: float = 0.0
    stored: bool = False
    infinite: bool = True


def _float(name: str, numpy: object, bits: int, precision: int, emin: int, largest: float) -> DType:
    dtype: np.dtype[np.generic] = np.dtype(numpy)  # type: ignore[call-overload]
    return DType(name, "real", dtype, bits, 2.0**-precision, 2.0**emin, largest)


def _small(name: str, numpy: object, precision: int, emin: int, largest: float) -> DType:
    """A type of 4 or 8 bits; of the larger ones only e5m2 has infinities."""
    found = _float(name, numpy, int(name[1]), precision, emin, largest)
    return replace(found, stored=True, infinite=name == "f8e5m2")


def _integer(name: str) -> DType:
    text, bits = {"i": "int", "u": "uint"}[name[0]] + name[1:], int(name[1:])
    small = bits < 8
    return DType(
        name, "int", np.dtype(getattr(ml_dtypes, text) if small else text), bits, stored=small
    )


DTYPES: dict[str, DType] = {
    d.name: d
    for d in (
        _float("f16", np.float16, 16, 11, -14, 65504.0),
        _float("bf16", ml_dtypes.bfloat16, 16, 8, -126, (2 - 2.0**-7) * 2.0**127),
        _float("f32", np.float32, 32, 24, -126, float(np.finfo(np.float32).max)),
        _float("f64", np.float64, 64, 53, -1022, float(np.finfo(np.float64).max)),
        *map(_integer, ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")),
        DType("bool", "bool", np.dtype(bool), 8),
        _small("f8e4m3fn", ml_dtypes.float8_e4m3fn, 4, -6, 448.0),
        _small("f8e4m3fnuz", ml_dtypes.float8_e4m3fnuz, 4, -7, 240.0),
        _small("f8e5m2", ml_dtypes.float8_e5m2, 3, -14, 57344.0),
        _small("f8e5m2fnuz", ml_dtypes.float8_e5m2fnuz, 3, -15, 57344.0),
        _small("f4e2m1", ml_dtypes.float4_e2m1fn, 2, 0, 6.0),
        *map(_integer, ("i2", "i4", "u2", "u4")),
    )
}

# What a type variable of a definition may stand for.
CLASSES: dict[str, frozenset[str]] = {
    "float": frozenset(n for n, d in DTYPES.items() if d.kind == "real" and not d.stored),
    "int": frozenset(n for n, d in DTYPES.items() if d.kind == "int" and not d.stored),
    "number": frozenset(n for n, d in DTYPES.items() if d.kind != "bool" and not d.stored),
    "bool": frozenset({"bool"}),
    "any": frozenset(n for n, d in DTYPES.items() if not d.stored),
    "stored": frozenset(DTYPES),
    "numeral": frozenset(n for n, d in DTYPES.items() if d.kind != "bool"),
}

# Types of attributes and of results that are named by class.
DEFAULT_OF_KIND = {"real": "f64", "int": "i64", "bool": "bool"}


def holds(info: str, number: float) -> bool:
    """Whether a number is within the range of an integer type; other types take any."""
    if DTYPES[info].kind != "int":
        return True
    low, high = integer_range(info)
    return low <= number <= high


def integer_range(name: str) -> tuple[int, int]:
    """The least and the largest value of an integer type."""
    bits = DTYPES[name].bits
    return (0, 2**bits - 1) if name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
