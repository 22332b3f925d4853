"""Why a place is safe or not, in words for whoever wrote the model."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from irlang.interp.arithmetic import Arithmetic
from irlang.interp.interval import Numbers
from irlang.scalar import SCALARS
from irlang.scalar_row import Scalar

_BESIDE = 2.0**-10  # from a number at which a function may be infinite
# How the operands of what may become too large are told, and what comes of them.
_TERMS = {
    "sum": ("the numbers that are added up are", "sum"),
    "+": ("the numbers that are added are", "sum"),
    "-": ("the numbers that are subtracted are", "difference"),
    "prod": ("the numbers that are multiplied are", "product"),
    "*": ("the numbers that are multiplied are", "product"),
}
STARVED = "the proofs about this call were cut short: there is much in it to be tried"


def span(value: Numbers, own: Arithmetic | None = None, digits: int = 6) -> str:
    """The ends of a set, as text. own: of the type whose largest numbers need no digits."""
    if value.empty:
        return "nothing"
    if value.only is not None:
        return f"{value.only:.6g} always"
    if own is not None and -value.low >= own.largest <= value.high:
        return f"any number of {own.row.name}"
    low, high = (f"{end + 0.0:.{digits}g}" for end in (value.low, value.high))  # -0 is no news
    return f"between {low} and {high}"


def safe(function: str, operand: Numbers, args: Sequence[Numbers] = ()) -> str:
    """Why an operation stays finite."""
    if function == "pow" and args:
        return _power(args)
    return f"{decisive(function)} is {span(operand)}"


def decisive(function: str) -> str:
    """What decides whether an operation is finite, in words."""
    return {"/": "the divisor", "sq": "what is squared"}.get(function, f"what reaches `{function}`")


def _power(args: Sequence[Numbers], own: Arithmetic | None = None) -> str:
    base, exponent = args
    return f"the base of the power is {span(base, own)}, the exponent {span(exponent, own)}"


def possible(function: str, operand: Numbers, own: Arithmetic, args: Sequence[Numbers] = ()) -> str:
    """Why an operation may leave the finite numbers. args: each of its arguments."""
    most = _most(own)
    if function == "pow" and args:
        base, exponent = args
        whole = exponent.only is not None and float(exponent.only).is_integer()
        if base.low < 0 and not whole:
            why = "a negative base has no power unless the exponent is a whole number"
        elif base.holds(0.0) and exponent.low < 0:
            why = "0 to a negative power is infinite"
        else:
            why = f"the result may be beyond {most}"
        return f"{_power(args, own)}: {why}"
    row = SCALARS.get(function)
    if function == "/":
        if operand.holds(0.0):
            return f"the divisor is {span(operand, own)}: it may be 0"
        least = min(abs(end) for piece in operand.pieces for end in piece)
        return f"the divisor may be as small as {least:.3g}: the quotient may be beyond {most}"
    if function == "inf":
        return "an infinite number of the definition may be left in the result"
    if function == "index":
        return f"an index read from data is {span(operand)}: it may lie outside the tensor"
    if row is not None and row.arity == 1:
        return _of_function(row, operand, own)
    if function not in _TERMS:
        what = f"the operands of `{function}` are {span(operand, own)}"
        return f"{what}: for some of these it is infinite, or no number"
    terms, result = _TERMS[function]
    if operand.below or operand.above:
        why = "0 times an infinity" if function == "*" else "an infinity less an infinity"
        return f"{terms} {span(operand)}, the infinite ends included: {why} is NaN"
    return f"{terms} {span(operand, own)}: the {result} may be beyond {most}"


def _of_function(row: Scalar, operand: Numbers, own: Arithmetic) -> str:
    """By the domain and the poles of a function of one argument."""
    low, high = row.domain
    shown = span(operand, own)
    if any(end and f"{end:.6g}" == f"{limit:.6g}" != f"{end:.9g}"
           for end, limit in ((operand.low, low), (operand.high, high))):  # fmt: skip
        shown = span(operand, own, 9)  # it is beyond by rounding only
    reach = f"{decisive(row.name)} is {shown}"
    if operand.low < low or operand.high > high:
        sides = (f"below {low:g}", operand.low < low), (f"above {high:g}", operand.high > high)
        where = " or ".join(side for side, beyond in sides if beyond)
        return f"{reach}: the function is not defined {where}"
    pole = _pole(row, operand)
    if pole is not None:
        return f"{reach}: the function is infinite at {pole:g}"
    return f"{reach}: the result may be beyond {_most(own)}"


def _most(own: Arithmetic) -> str:
    """The largest number of a type, in words."""
    return f"{own.row.largest:.5g}, the largest number of {own.row.name}"


def _pole(row: Scalar, operand: Numbers) -> float | None:
    """Where a function of one argument is infinite among what reaches it."""
    with np.errstate(all="ignore"):
        whole = math.floor(operand.high) if math.isfinite(operand.high) else 0.0
        for end in (*row.domain, *(row.monotone or ()), 0.0, whole):
            met = math.isfinite(end) and operand.holds(end)
            if met and math.isinf(float(row.numpy(np.float64(end)))):
                beside = (float(row.numpy(np.float64(end + by))) for by in (-_BESIDE, _BESIDE))
                if any(map(math.isfinite, beside)):  # else it is too large all around
                    return end
    return None


def is_overflow(function: str, operand: Numbers) -> bool:
    """Whether what may go wrong is that a result is too large: no pole, and inside the domain."""
    row = SCALARS.get(function)
    if function == "/":
        return not operand.holds(0.0)
    if function in ("inf", "index"):
        return False
    if row is None or row.arity != 1:
        return True
    low, high = row.domain
    return operand.low >= low and operand.high <= high and _pole(row, operand) is None
