"""Functions of numbers that ONNX lacks, composed of those that it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from irlang.dtypes import DTYPES
from irlang.lower.value import Value, broadcast

if TYPE_CHECKING:
    from irlang.lower.onnx_builder import OnnxBuilder


def _differs(onnx: OnnxBuilder, a: Value, b: Value) -> Value:
    return onnx.apply("not", [onnx.apply("==", [a, b])])


def _square(onnx: OnnxBuilder, a: Value) -> Value:
    return onnx.apply("*", [a, a])


def _rsqrt(onnx: OnnxBuilder, a: Value) -> Value:
    return onnx.op("Reciprocal", [onnx.apply("sqrt", [a])], a.shape)


def _trunc(onnx: OnnxBuilder, a: Value) -> Value:
    """A zero keeps its sign: ONNX Runtime's `Where` takes that of its second tensor alone."""
    above = onnx.apply(">", [a, onnx.number(0, a)])
    return onnx.where(above, *(onnx.apply(name, [a]) for name in ("floor", "ceil")))


def _quotient(onnx: OnnxBuilder, a: Value, b: Value) -> Value:
    """Rounded toward minus infinity; `Div` of integers truncates."""
    if DTYPES[a.dtype].kind == "real":
        return onnx.apply("floor", [onnx.apply("/", [a, b])])
    rest = _remainder(onnx, a, b)
    known = onnx.held(b)
    if a.dtype.startswith("u") or (known is not None and bool((known > 0).all())):
        return onnx.apply("/", [onnx.apply("-", [a, rest]), b])
    zero, whole = onnx.number(0, a), onnx.apply("/", [a, b])  # `a - rest` may overflow
    signs = [onnx.apply("<", [value, zero]) for value in (a, b)]
    below = onnx.op("Xor", signs, broadcast([a, b]))
    less = onnx.apply("and", [_differs(onnx, rest, zero), below])
    return onnx.where(less, onnx.apply("-", [whole, onnx.number(1, whole)]), whole)


def _remainder(onnx: OnnxBuilder, a: Value, b: Value) -> Value:
    """With the sign of the divisor; for reals `Mod` has only that of the dividend."""
    shape = broadcast([a, b])
    if DTYPES[a.dtype].kind == "int":
        return onnx.op("Mod", [a, b], shape)
    rest = onnx.op("Mod", [a, b], shape, fmod=1)
    zero = onnx.number(0, a)
    signs = [onnx.apply("<", [value, zero]) for value in (rest, b)]
    wrong = onnx.apply("and", [_differs(onnx, rest, zero), onnx.op("Xor", signs, shape)])
    return onnx.where(wrong, onnx.apply("+", [rest, b]), rest)


def _expm1(onnx: OnnxBuilder, a: Value) -> Value:
    """tanh(a / 2) * (exp(a) + 1): no cancellation near zero."""
    half = onnx.apply("tanh", [onnx.apply("*", [a, onnx.number(0.5, a)])])
    return onnx.apply("*", [half, onnx.apply("+", [onnx.apply("exp", [a]), onnx.number(1, a)])])


def _log1p(onnx: OnnxBuilder, a: Value) -> Value:
    """log(u) * (a / (u - 1)) with u = 1 + a, which undoes the rounding of u (Kahan)."""
    one = onnx.number(1, a)
    u = onnx.apply("+", [a, one])
    log = onnx.apply("log", [u])
    scaled = onnx.apply("*", [log, onnx.apply("/", [a, onnx.apply("-", [u, one])])])
    tiny, huge = onnx.apply("==", [u, one]), onnx.apply("isinf", [a])
    return onnx.where(tiny, a, onnx.where(huge, log, scaled))


def _softplus(onnx: OnnxBuilder, a: Value) -> Value:
    """`Softplus`, or max(a, 0) + log1p(exp(-|a|)) where it has no kernel."""
    if a.dtype != "f64":
        return onnx.op("Softplus", [a], a.shape)
    small = onnx.apply("exp", [onnx.apply("neg", [onnx.apply("abs", [a])])])
    return onnx.apply("+", [onnx.apply("max", [a, onnx.number(0, a)]), _log1p(onnx, small)])


def _shift(onnx: OnnxBuilder, a: Value, b: Value, direction: str) -> Value:
    """`BitShift` is one of unsigned numbers."""
    wide = [onnx.cast(value, "u64") for value in (a, b)]
    moved = onnx.op("BitShift", wide, broadcast((a, b)), direction=direction)
    return onnx.cast(moved, a.dtype)


def _shift_left(onnx: OnnxBuilder, a: Value, b: Value) -> Value:
    return _shift(onnx, a, b, "LEFT")


def _shift_right(onnx: OnnxBuilder, a: Value, b: Value) -> Value:
    """What is below zero keeps its sign: the complement is moved, which is not below zero."""
    below = onnx.apply("<", [a, onnx.number(0, a)])
    turned = _shift(onnx, onnx.apply("bit_not", [a]), b, "RIGHT")
    return onnx.where(below, onnx.apply("bit_not", [turned]), _shift(onnx, a, b, "RIGHT"))


COMPOSED: Mapping[str, Callable[..., Value]] = {
    "!=": _differs, "sq": _square, "rsqrt": _rsqrt, "trunc": _trunc, "//": _quotient,
    "%": _remainder, "expm1": _expm1, "log1p": _log1p, "softplus": _softplus,
    "shift_left": _shift_left, "shift_right": _shift_right,
}  # fmt: skip
