"""What is known at the call, computed: arithmetic on sizes and attributes, and lists of them.

Exact: integers stay integers and their quotients are fractions, so that no meaning inherits a
rounding from here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from irlang.dtypes import DTYPES, DType, integer_range

Value = Any
_LARGEST_DENOMINATOR = 1 << 31
_LARGEST_POWER = 4096  # bits of an integer power, so that a text cannot ask for a huge number


def _divide(a: Value, b: Value) -> Value:
    if b == 0:
        raise ZeroDivisionError
    if isinstance(a, (int, Fraction)) and isinstance(b, (int, Fraction)):
        quotient = Fraction(a, b) if isinstance(a, int) and isinstance(b, int) else Fraction(a) / b
        return quotient.numerator if quotient.denominator == 1 else quotient
    return a / b


def _power(a: Value, b: Value) -> Value:
    if isinstance(a, int) and isinstance(b, int):
        if b >= 0 and a.bit_length() * b <= _LARGEST_POWER:
            return a**b
    elif isinstance(a, Fraction) and isinstance(b, int) and abs(b) < 64:
        return a**b
    return float(a) ** float(b)


KNOWN: dict[str, Callable[..., Value]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divide,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "neg": lambda a: -a,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "not": lambda a: not a,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "max": max,
    "min": min,
    "abs": abs,
    "sq": lambda a: a * a,
    "sign": lambda a: (a > 0) - (a < 0),
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "int": math.trunc,
    "round": round,
    "real": lambda a: a,
    "ceildiv": lambda a, b: -(-a // b),
    "pow": _power,
    "select": lambda c, a, b: a if c else b,
}

# The value of a reduction over nothing.
EMPTY: dict[str, Any] = {
    "sum": 0, "count": 0, "prod": 1, "max": -math.inf, "min": math.inf, "all": True, "any": False,
}  # fmt: skip


def _rank(value: Value) -> int:
    return len(value.sizes) if hasattr(value, "sizes") else len(value)


def _find(values: tuple[Value, ...], wanted: Value) -> int:
    return values.index(wanted)


def _size(value: Value) -> int:
    return math.prod(value if isinstance(value, tuple) else value.shape)


def _given(value: Value) -> bool:
    """Whether an optional input was given: one that was not stands for its default."""
    return getattr(value, "constant", None) is None


def _is_integer(dtype: Value) -> bool:
    return DTYPES[dtype].kind == "int"


def _limit(dtype: Value, which: int) -> Value:
    """The least or the largest value of an element type: for `lowest(T)` and `largest(T)`."""
    row = DTYPES[dtype]
    if row.kind == "real":
        return (-row.largest, row.largest)[which]
    return integer_range(dtype)[which] if row.kind == "int" else which


def _fraction(value: Value) -> Value:
    """A number as a fraction, so that arithmetic is exact; nearer than double precision tells."""
    return Fraction(value).limit_denominator(_LARGEST_DENOMINATOR)


def _denominator(*values: Value) -> Value:
    """The least common denominator of numbers, integers and fractions."""
    return math.lcm(*(Fraction(value).denominator for value in values))


def _overflow(row: DType) -> float:
    """The least number that is infinite once it is rounded: half a step above the largest."""
    step = 2.0 ** (math.frexp(row.largest)[1] + round(math.log2(row.unit)))
    return row.largest + step / 2 if row.bits < 64 else math.inf


LONGEST = 4096  # a list: axes and members of a family are few; anything longer is a mistake


def _range(n: Value) -> Value:
    """The whole numbers below one that is as small as the length of a list has to be."""
    if n > LONGEST:
        raise ValueError
    return tuple(range(n))


BUILTINS: dict[str, Callable[..., Value]] = {
    "rank": _rank,
    "size": _size,
    "given": _given,
    "range": _range,
    "find": _find,
    "join": lambda *lists: tuple(item for part in lists for item in part),
    "sorted": lambda values: tuple(sorted(values)),
    "integral": _is_integer,
    "lowest": lambda dtype: _limit(dtype, 0),
    "largest": lambda dtype: _limit(dtype, 1),
    "fraction": _fraction,
    "denominator": _denominator,
    "bits": lambda dtype: DTYPES[dtype].bits,
    "floating": lambda dtype: DTYPES[dtype].kind == "real",
    "overflow": lambda dtype: _overflow(DTYPES[dtype]),
    "coarse": lambda dtype: DTYPES[dtype].stored and DTYPES[dtype].kind == "real",
    "infinite": lambda dtype: DTYPES[dtype].infinite,
    "digits": lambda dtype: round(-math.log2(DTYPES[dtype].unit)),
    "finest": lambda dtype: 2 * DTYPES[dtype].unit * DTYPES[dtype].tiny,
    "smallest": lambda dtype: DTYPES[dtype].tiny,
    "strides": lambda sizes: tuple(math.prod(sizes[d + 1 :]) for d in range(len(sizes))),
}

# Functions written in the language itself, for every definition.
PRELUDE: dict[str, tuple[tuple[str, ...], str]] = {
    "clamp": (("t", "low", "high"), "max(low, min(t, high))"),
}
