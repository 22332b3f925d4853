"""The scalar functions: the leaves of every definition, one row each.

A row says what the function is (kind of its result, NumPy and mpmath value), its derivative *in
the language itself* (one text per argument, over the argument names `a`, `b`, `c`; `y` is the
value), where it is defined, its monotone pieces, and its allowance: how far a correct
implementation may be off, in units in the last place of the result.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

from irlang import scalar_images, special

Array = Any


@dataclass(frozen=True, slots=True)
class Scalar:
    """One function.

    kind: `real`, `bool`, `int`, or `same` (that of the arguments). numpy: over arrays, by the
    rules of IEEE 754. exact: over mpmath numbers. derivative: texts, empty where it is zero almost
    everywhere. domain: interval where it is defined (others give NaN). monotone: breakpoints
    between which it is monotone, None for a function of several arguments. ulps: the allowance.
    least: the size whose last place counts where a value is smaller, for functions whose zeros no
    program hits. steepest: of a function that is neither, the largest slope over an interval.
    image: of a function that is not monotone, an interval around its values on intervals.
    near: of a function whose value stays close to its argument, least and largest difference.
    symbol: how it is printed where it is an operator.
    """

    name: str
    arity: int
    kind: str
    numpy: Callable[..., Array]
    exact: Callable[..., Any]
    derivative: tuple[str, ...] = ()
    domain: tuple[float, float] = (-math.inf, math.inf)
    monotone: tuple[float, ...] | None = None
    ulps: float = 0.0
    symbol: bool = False
    least: float = 0.0
    steepest: Callable[[Array, Array], Array] | None = None
    image: Callable[..., tuple[float, float] | None] | None = None
    near: tuple[float, float] | None = None


def _sigmoid(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.where(
            x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x)))
        )


def _sigmoid_exact(x: Any) -> Any:
    return 1 / (1 + mpmath.exp(-x))


_ERF = np.frompyfunc(math.erf, 1, 1)


def _erf(x: Array) -> Array:
    return np.asarray(_ERF(np.asarray(x, dtype=np.float64)), dtype=np.float64)


def _floor_divide(a: Array, b: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.floor_divide(a, b)


def _remainder(a: Array, b: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.remainder(a, b)


def _round_even(x: Any) -> Any:
    return mpmath.nint(x)


def _exact_pow(a: Any, b: Any) -> Any:
    if mpmath.isnan(a) or mpmath.isnan(b):
        return mpmath.mpf(1) if b == 0 or a == 1 else mpmath.nan
    if b == 0 or a == 1:
        return mpmath.mpf(1)
    if a == 0 and b < 0:
        return mpmath.inf
    if a < 0 and not mpmath.isint(b) and mpmath.isfinite(a) and mpmath.isfinite(b):
        return mpmath.nan
    return mpmath.power(a, b)


def _guarded(
    function: Callable[[Any], Any], defined: Callable[[Any], bool]
) -> Callable[[Any], Any]:
    """NaN outside the domain, where mpmath would give a complex number or raise."""

    def value(x: Any) -> Any:
        return function(x) if not mpmath.isnan(x) and defined(x) else mpmath.nan

    return value


def _ceildiv(a: Array, b: Array) -> Array:
    return -_floor_divide(-a, b)


def _nan_max(*args: Any) -> Any:
    return mpmath.nan if any(mpmath.isnan(a) for a in args) else max(args)


def _nan_min(*args: Any) -> Any:
    return mpmath.nan if any(mpmath.isnan(a) for a in args) else min(args)


def _exact_divide(a: Any, b: Any) -> Any:
    if b == 0:
        return mpmath.nan if a == 0 or mpmath.isnan(a) else mpmath.inf * mpmath.sign(a)
    return mpmath.mpf(a) / b


def _exact_log(x: Any) -> Any:
    return mpmath.log(x) if x > 0 else mpmath.ninf


def _exact_log1p(x: Any) -> Any:
    return mpmath.log1p(x) if x > -1 else mpmath.ninf


def _atanh(x: Any) -> Any:
    return mpmath.inf * mpmath.sign(x) if abs(x) == 1 else mpmath.atanh(x)


def _finite(x: Any) -> bool:
    return bool(mpmath.isfinite(x))


def _exact_trunc(x: Any) -> Any:
    return mpmath.sign(x) * mpmath.floor(abs(x)) if _finite(x) else x


def _exact_softplus(x: Any) -> Any:
    return x if x == mpmath.inf else mpmath.log1p(mpmath.exp(-abs(x))) + max(x, 0)


def _exact_rsqrt(x: Any) -> Any:
    return mpmath.inf if x == 0 else 1 / mpmath.sqrt(x)


def _whole(x: Array) -> Array:
    array = np.asarray(x)
    return np.trunc(array) if array.dtype.kind == "f" else array.astype(np.int64)


def _rounded(a: Array, digits: Array, finest: Array) -> Array:
    a = np.asarray(a, dtype=np.float64)
    with np.errstate(all="ignore"):
        unit = np.maximum(
            np.ldexp(1.0, np.frexp(a)[1] - np.asarray(digits, dtype=np.int32)), finest
        )
        return np.where(np.isfinite(a), np.rint(a / unit) * unit, a)


def _exact_rounded(a: Any, digits: Any, finest: Any) -> Any:
    if not mpmath.isfinite(a):
        return a
    unit = max(mpmath.ldexp(1, mpmath.frexp(a)[1] - int(digits)), finest)
    return mpmath.nint(a / unit) * unit


def _places(b: Array) -> Array:
    """A number of bit positions that every processor can shift by."""
    return np.minimum(np.maximum(b, 0), 63)


def _wrapped_power(a: Any, b: Any) -> int:
    """A to the power b in 64 bits with a sign; 0 for a negative b."""
    return (pow(int(a), int(b), 2**64) + 2**63) % 2**64 - 2**63 if b >= 0 else 0


_WRAPPED_POWER = np.frompyfunc(_wrapped_power, 2, 1)


def _integer_power(a: Array, b: Array) -> Array:
    wide = object in (np.asarray(a).dtype, np.asarray(b).dtype)
    found = np.asarray(_WRAPPED_POWER(a, b))
    return found if wide else found.astype(np.int64)


def _rsqrt(x: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return 1.0 / np.sqrt(x)


def _ufunc(name: str) -> Callable[..., Array]:
    function = getattr(np, name)

    def value(*args: Array) -> Array:
        with np.errstate(all="ignore"):
            return function(*args)

    return value


def _arithmetic(name: str) -> Callable[..., Array]:
    """Arithmetic, where truth values count as 0 and 1 (NumPy adds them by `or`)."""
    function = _ufunc(name)

    def value(*args: Array) -> Array:
        return function(*(np.asarray(a, np.int64) if _is_truth(a) else a for a in args))

    return value


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool) or getattr(value, "dtype", None) == np.bool_


def _steepest_tan(low: Array, high: Array) -> Array:
    """Infinite over a pole."""
    at_low, at_high = np.tan(low), np.tan(high)
    steepest = 1.0 + np.maximum(np.abs(at_low), np.abs(at_high)) ** 2
    return np.where((at_low > at_high) | (high - low > 2.0), np.inf, steepest)


_INF = math.inf
_ROWS = (
    # arithmetic: rounded correctly everywhere, so that the rounding is all the allowance; but a
    # quotient may be the product with a reciprocal (Grappler's constant folding of TensorFlow,
    # PyTorch's CUDA kernel for a scalar divisor, ONNX Runtime's softmax)
    Scalar("+", 2, "same", _arithmetic("add"), lambda a, b: a + b, ("1", "1"), symbol=True),
    Scalar("-", 2, "same", _arithmetic("subtract"), lambda a, b: a - b, ("1", "-1"), symbol=True),
    Scalar("*", 2, "same", _arithmetic("multiply"), lambda a, b: a * b, ("b", "a"), symbol=True),
    Scalar(
        "/",
        2,
        "real",
        _ufunc("true_divide"),
        _exact_divide,
        ("1 / b", "-y / b"),
        ulps=1,
        symbol=True,
    ),
    Scalar(
        "//",
        2,
        "same",
        _floor_divide,
        lambda a, b: mpmath.floor(_exact_divide(a, b)),
        ("", ""),
        symbol=True,
    ),
    Scalar(
        "%",
        2,
        "same",
        _remainder,
        lambda a, b: a - b * mpmath.floor(_exact_divide(a, b)),
        ("1", "-floor(a / b)"),
        symbol=True,
    ),
    # what its argument is, as far as rounding lets it be known: a tie stays open (`irlang.adjoint`)
    Scalar("about", 1, "real", _ufunc("positive"), lambda a: a, ("1",), monotone=(), symbol=True),
    Scalar(
        "neg", 1, "same", _arithmetic("negative"), lambda a: -a, ("-1",), monotone=(), symbol=True
    ),
    # comparison and logic
    Scalar("<", 2, "bool", np.less, lambda a, b: a < b, symbol=True),
    Scalar("<=", 2, "bool", np.less_equal, lambda a, b: a <= b, symbol=True),
    Scalar(">", 2, "bool", np.greater, lambda a, b: a > b, symbol=True),
    Scalar(">=", 2, "bool", np.greater_equal, lambda a, b: a >= b, symbol=True),
    Scalar("==", 2, "bool", np.equal, lambda a, b: a == b, symbol=True),
    Scalar("!=", 2, "bool", np.not_equal, lambda a, b: a != b, symbol=True),
    Scalar("and", 2, "bool", np.logical_and, lambda a, b: bool(a) and bool(b), symbol=True),
    Scalar("or", 2, "bool", np.logical_or, lambda a, b: bool(a) or bool(b), symbol=True),
    Scalar("not", 1, "bool", np.logical_not, lambda a: not a, symbol=True),
    Scalar(
        "select",
        3,
        "same",
        np.where,
        lambda c, a, b: a if c else b,
        ("", "if a then 1 else 0", "if a then 0 else 1"),
    ),
    Scalar("isnan", 1, "bool", np.isnan, lambda a: bool(mpmath.isnan(a))),
    Scalar("isinf", 1, "bool", np.isinf, lambda a: bool(mpmath.isinf(a))),
    # conversions between kinds (an assignment converts too)
    Scalar(
        "real",
        1,
        "real",
        lambda a: np.asarray(a, dtype=np.float64),
        mpmath.mpf,
        ("1",),
        monotone=(),
    ),
    Scalar("int", 1, "int", _whole, _exact_trunc, ("",), monotone=()),
    # order; NaN is passed on (IEEE 754-2019 `maximum` and `minimum`)
    Scalar(
        "max",
        2,
        "same",
        np.maximum,
        _nan_max,
        ("if a >= b then 1 else 0", "if b > a then 1 else 0"),
    ),
    Scalar(
        "min",
        2,
        "same",
        np.minimum,
        _nan_min,
        ("if a <= b then 1 else 0", "if b < a then 1 else 0"),
    ),
    Scalar("abs", 1, "same", np.abs, abs, ("sign(a)",), monotone=(0.0,)),
    Scalar(
        "sign",
        1,
        "same",
        np.sign,
        lambda a: a if mpmath.isnan(a) else mpmath.sign(a),
        ("",),
        monotone=(),
    ),
    Scalar(
        "floor",
        1,
        "same",
        _ufunc("floor"),
        lambda a: mpmath.floor(a) if _finite(a) else a,
        ("",),
        monotone=(),
        near=(-1.0, 0.0),
    ),
    Scalar(
        "ceil",
        1,
        "same",
        _ufunc("ceil"),
        lambda a: mpmath.ceil(a) if _finite(a) else a,
        ("",),
        monotone=(),
        near=(0.0, 1.0),
    ),
    Scalar(
        "round",
        1,
        "same",
        _ufunc("rint"),
        lambda a: _round_even(a) if _finite(a) else a,
        ("",),
        monotone=(),
        near=(-0.5, 0.5),
    ),
    # the nearest number of so many binary digits that is a multiple of a power of two, ties to even
    Scalar(
        "rounded",
        3,
        "real",
        _rounded,
        _exact_rounded,
        ("1", "", ""),
        image=scalar_images.rounded,
    ),
    Scalar(
        "trunc",
        1,
        "same",
        _ufunc("trunc"),
        _exact_trunc,
        ("",),
        monotone=(),
        near=(-1.0, 1.0),
    ),
    Scalar("ceildiv", 2, "same", _ceildiv, lambda a, b: mpmath.ceil(_exact_divide(a, b)), ("", "")),
    # integers as bits, two's complement; shifts by 0 to 63 places
    Scalar("bit_and", 2, "same", np.bitwise_and, operator.and_, ("", "")),
    Scalar("bit_or", 2, "same", np.bitwise_or, operator.or_, ("", "")),
    Scalar("bit_xor", 2, "same", np.bitwise_xor, operator.xor, ("", "")),
    Scalar("bit_not", 1, "same", np.invert, operator.invert, ("",)),
    Scalar(
        "shift_left",
        2,
        "same",
        lambda a, b: np.left_shift(a, _places(b)),
        lambda a, b: a << min(max(b, 0), 63),
        ("", ""),
    ),
    Scalar(
        "shift_right",
        2,
        "same",
        lambda a, b: np.right_shift(a, _places(b)),
        lambda a, b: a >> min(max(b, 0), 63),
        ("", ""),
    ),
    # powers
    Scalar("integer_power", 2, "same", _integer_power, _wrapped_power, ("", "")),
    Scalar("sq", 1, "same", np.square, lambda a: a * a, ("2 * a",), monotone=(0.0,), ulps=0.5),
    Scalar(
        "sqrt",
        1,
        "real",
        _ufunc("sqrt"),
        _guarded(mpmath.sqrt, lambda a: a >= 0),
        ("0.5 / y",),
        domain=(0.0, _INF),
        monotone=(),
        ulps=1,
    ),
    Scalar(
        "rsqrt",
        1,
        "real",
        _rsqrt,
        _guarded(_exact_rsqrt, lambda a: a >= 0),
        ("-0.5 * y / a",),
        domain=(0.0, _INF),
        monotone=(),
        ulps=4,
    ),
    Scalar(
        "pow",
        2,
        "real",
        lambda a, b: _ufunc("power")(np.asarray(a, dtype=np.float64), b),
        _exact_pow,
        ("b * pow(a, b - 1)", "y * log(a)"),
        ulps=16,
    ),
    # exponentials and logarithms
    Scalar("exp", 1, "real", _ufunc("exp"), mpmath.exp, ("y",), monotone=(), ulps=4),
    Scalar("expm1", 1, "real", _ufunc("expm1"), mpmath.expm1, ("y + 1",), monotone=(), ulps=8),
    Scalar(
        "log",
        1,
        "real",
        _ufunc("log"),
        _guarded(_exact_log, lambda a: a >= 0),
        ("1 / a",),
        domain=(0.0, _INF),
        monotone=(),
        ulps=4,
    ),
    Scalar(
        "log1p",
        1,
        "real",
        _ufunc("log1p"),
        _guarded(_exact_log1p, lambda a: a >= -1),
        ("1 / (1 + a)",),
        domain=(-1.0, _INF),
        monotone=(),
        ulps=8,
    ),
    Scalar("sigmoid", 1, "real", _sigmoid, _sigmoid_exact, ("y * (1 - y)",), monotone=(), ulps=8),
    Scalar(
        "softplus",
        1,
        "real",
        lambda a: _ufunc("logaddexp")(a, 0.0),
        _exact_softplus,
        ("sigmoid(a)",),
        monotone=(),
        ulps=8,
    ),
    Scalar("tanh", 1, "real", _ufunc("tanh"), mpmath.tanh, ("1 - y * y",), monotone=(), ulps=8),
    Scalar(
        "erf",
        1,
        "real",
        _erf,
        mpmath.erf,
        ("1.1283791670955126 * exp(-a * a)",),
        monotone=(),
        ulps=8,
    ),
    # trigonometric and hyperbolic
    Scalar(
        "sin",
        1,
        "real",
        _ufunc("sin"),
        _guarded(mpmath.sin, _finite),
        ("cos(a)",),
        ulps=4,
        image=scalar_images.sine,
    ),
    Scalar(
        "cos",
        1,
        "real",
        _ufunc("cos"),
        _guarded(mpmath.cos, _finite),
        ("-sin(a)",),
        ulps=4,
        image=scalar_images.cosine,
    ),
    Scalar(
        "tan",
        1,
        "real",
        _ufunc("tan"),
        _guarded(mpmath.tan, _finite),
        ("1 + y * y",),
        ulps=8,
        steepest=_steepest_tan,
        image=scalar_images.tangent,
    ),
    Scalar(
        "asin",
        1,
        "real",
        _ufunc("arcsin"),
        _guarded(mpmath.asin, lambda a: abs(a) <= 1),
        ("1 / sqrt(1 - a * a)",),
        domain=(-1.0, 1.0),
        monotone=(),
        ulps=8,
    ),
    Scalar(
        "acos",
        1,
        "real",
        _ufunc("arccos"),
        _guarded(mpmath.acos, lambda a: abs(a) <= 1),
        ("-1 / sqrt(1 - a * a)",),
        domain=(-1.0, 1.0),
        monotone=(),
        ulps=8,
    ),
    Scalar(
        "atan", 1, "real", _ufunc("arctan"), mpmath.atan, ("1 / (1 + a * a)",), monotone=(), ulps=8
    ),
    Scalar("sinh", 1, "real", _ufunc("sinh"), mpmath.sinh, ("cosh(a)",), monotone=(), ulps=8),
    Scalar("cosh", 1, "real", _ufunc("cosh"), mpmath.cosh, ("sinh(a)",), monotone=(0.0,), ulps=8),
    Scalar(
        "asinh",
        1,
        "real",
        _ufunc("arcsinh"),
        mpmath.asinh,
        ("1 / sqrt(a * a + 1)",),
        monotone=(),
        ulps=8,
    ),
    Scalar(
        "acosh",
        1,
        "real",
        _ufunc("arccosh"),
        _guarded(mpmath.acosh, lambda a: a >= 1),
        ("1 / sqrt(a * a - 1)",),
        domain=(1.0, _INF),
        monotone=(),
        ulps=8,
    ),
    Scalar(
        "atanh",
        1,
        "real",
        _ufunc("arctanh"),
        _guarded(_atanh, lambda a: abs(a) <= 1),
        ("1 / (1 - a * a)",),
        domain=(-1.0, 1.0),
        monotone=(),
        ulps=8,
    ),
    # special functions; Bessel functions are scaled, by exp(-|a|) and exp(a)
    Scalar(
        "lgamma",
        1,
        "real",
        special.lgamma,
        special.lgamma_exact,
        ("polygamma(0, a)",),
        ulps=8,
        least=1.0,
        steepest=lambda low, high: special.steepest_polygamma(-1, low, high),
        image=scalar_images.log_gamma,
    ),
    # the derivative of digamma, as often as the first argument says
    Scalar(
        "polygamma",
        2,
        "real",
        special.polygamma,
        special.polygamma_exact,
        ("", "polygamma(a + 1, b)"),
        ulps=16,
        least=1.0,
        image=scalar_images.polygamma,
    ),
    Scalar(
        "erfc",
        1,
        "real",
        special.erfc,
        special.erfc_exact,
        ("-1.1283791670955126 * exp(-a * a)",),
        monotone=(),
        ulps=8,
    ),
    Scalar(
        "erfcx",
        1,
        "real",
        special.erfcx,
        special.erfcx_exact,
        ("2 * a * y - 1.1283791670955126",),
        monotone=(),
        ulps=8,
    ),
    Scalar(
        "erfinv",
        1,
        "real",
        special.erfinv,
        special.erfinv_exact,
        ("0.886226925452758 * exp(y * y)",),
        domain=(-1.0, 1.0),
        monotone=(),
        ulps=16,
    ),
    # the inverse of the normal distribution function
    Scalar(
        "ndtri",
        1,
        "real",
        special.ndtri,
        special.ndtri_exact,
        ("2.5066282746310002 * exp(y * y / 2)",),
        domain=(0.0, 1.0),
        monotone=(),
        ulps=16,
    ),
    Scalar(
        "i0e",
        1,
        "real",
        lambda a: special.bessel_i(0, a),
        lambda a: special.bessel_i_exact(0, a),
        ("i1e(a) - sign(a) * y",),
        monotone=(0.0,),
        ulps=16,
    ),
    Scalar(
        "i1e",
        1,
        "real",
        lambda a: special.bessel_i(1, a),
        lambda a: special.bessel_i_exact(1, a),
        ("if a == 0 then 0.5 else i0e(a) - y * (sign(a) + 1 / a)",),
        monotone=(-special.LARGEST_I1E, special.LARGEST_I1E),
        ulps=16,
    ),
    Scalar(
        "k0e",
        1,
        "real",
        lambda a: special.bessel_k(0, a),
        lambda a: special.bessel_k_exact(0, a),
        ("y - k1e(a)",),
        domain=(0.0, _INF),
        monotone=(),
        ulps=32,
    ),
    Scalar(
        "k1e",
        1,
        "real",
        lambda a: special.bessel_k(1, a),
        lambda a: special.bessel_k_exact(1, a),
        ("y - k0e(a) - y / a",),
        domain=(0.0, _INF),
        monotone=(),
        ulps=32,
    ),
)

SCALARS: dict[str, Scalar] = {row.name: row for row in _ROWS}

# Functions of integers alone.
WHOLE = frozenset(
    {"bit_and", "bit_or", "bit_xor", "bit_not", "shift_left", "shift_right", "integer_power"}
)

# Functions that few libraries have.
SPECIAL = frozenset(
    {"polygamma", "lgamma", "erfc", "erfcx", "erfinv", "ndtri", "i0e", "i1e", "k0e", "k1e"}
)

# Functions that are written in terms of the rows above wherever they occur.
VARIADIC = frozenset({"max", "min"})
