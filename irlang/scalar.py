"""The scalar functions: the leaves of every definition, one row each.

A row says what the function is (kind of its result, NumPy and mpmath value), its derivative *in
the language itself* (one text per argument, over the argument names `a`, `b`, `c`; `y` is the
value), where it is defined, its monotone pieces, and its allowance: how far a correct
implementation may be off, in units in the last place of the result.
"""

from __future__ import annotations

import math
import operator

import mpmath
import numpy as np

from irlang import scalar_images
from irlang import scalar_values as values
from irlang.scalar_row import Scalar
from irlang.scalar_special import SPECIAL_ROWS

_INF = math.inf
_ROWS = (
    # arithmetic: rounded correctly everywhere, so that the rounding is all the allowance; but a
    # quotient may be the product with a reciprocal (Grappler's constant folding of TensorFlow,
    # PyTorch's CUDA kernel for a scalar divisor, ONNX Runtime's softmax)
    Scalar("+", 2, "same", values.arithmetic("add"), lambda a, b: a + b, ("1", "1"), symbol=True),
    Scalar(
        "-", 2, "same", values.arithmetic("subtract"), lambda a, b: a - b, ("1", "-1"), symbol=True
    ),
    Scalar(
        "*", 2, "same", values.arithmetic("multiply"), lambda a, b: a * b, ("b", "a"), symbol=True
    ),
    Scalar(
        "/",
        2,
        "real",
        values.ufunc("true_divide"),
        values.exact_divide,
        ("1 / b", "-y / b"),
        ulps=1,
        symbol=True,
        poles=values.zero_divisor,
    ),
    Scalar(
        "//",
        2,
        "same",
        values.floor_divide,
        lambda a, b: mpmath.floor(values.exact_divide(a, b)),
        ("", ""),
        symbol=True,
        poles=values.zero_divisor,
    ),
    Scalar(
        "%",
        2,
        "same",
        values.remainder,
        lambda a, b: a - b * mpmath.floor(values.exact_divide(a, b)),
        ("1", "-floor(a / b)"),
        symbol=True,
    ),
    # what its argument is, as far as rounding lets it be known: a tie stays open (`irlang.adjoint`)
    Scalar("about", 1, "real", values.ufunc("positive"), lambda a: a, ("1",), monotone=()),
    # its argument, through which no gradient flows; what an error of it does is 1 all the same
    Scalar("constant", 1, "same", np.asarray, lambda a: a, ("1",), monotone=()),
    # its first argument, or any other number, as the second is: what is made of it depends on it no
    # more than rounding does. It is off by nothing, and nothing flows through it (a preconditioner)
    Scalar("approximate", 2, "same", lambda a, b: np.asarray(a), lambda a, b: a, ("", "")),  # noqa: ARG005
    Scalar(
        "neg",
        1,
        "same",
        values.arithmetic("negative"),
        lambda a: -a,
        ("-1",),
        monotone=(),
        symbol=True,
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
    Scalar("int", 1, "int", values.whole, values.exact_trunc, ("",), monotone=()),
    # order; NaN is passed on (IEEE 754-2019 `maximum` and `minimum`)
    Scalar(
        "max",
        2,
        "same",
        np.maximum,
        values.nan_max,
        ("if a >= b then 1 else 0", "if b > a then 1 else 0"),
    ),
    Scalar(
        "min",
        2,
        "same",
        np.minimum,
        values.nan_min,
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
        values.ufunc("floor"),
        lambda a: mpmath.floor(a) if values.finite(a) else a,
        ("",),
        monotone=(),
        near=(-1.0, 0.0),
    ),
    Scalar(
        "ceil",
        1,
        "same",
        values.ufunc("ceil"),
        lambda a: mpmath.ceil(a) if values.finite(a) else a,
        ("",),
        monotone=(),
        near=(0.0, 1.0),
    ),
    Scalar(
        "round",
        1,
        "same",
        values.ufunc("rint"),
        lambda a: values.round_even(a) if values.finite(a) else a,
        ("",),
        monotone=(),
        near=(-0.5, 0.5),
    ),
    # the nearest number of so many binary digits that is a multiple of a power of two, ties to even
    Scalar(
        "rounded",
        3,
        "real",
        values.rounded,
        values.exact_rounded,
        ("1", "", ""),
        image=scalar_images.rounded,
    ),
    Scalar(
        "trunc",
        1,
        "same",
        values.ufunc("trunc"),
        values.exact_trunc,
        ("",),
        monotone=(),
        near=(-1.0, 1.0),
    ),
    Scalar(
        "ceildiv",
        2,
        "same",
        values.ceildiv,
        lambda a, b: mpmath.ceil(values.exact_divide(a, b)),
        ("", ""),
        poles=values.zero_divisor,
    ),
    # integers as bits, two's complement; shifts by 0 to 63 places
    Scalar("bit_and", 2, "same", np.bitwise_and, operator.and_, ("", "")),
    Scalar("bit_or", 2, "same", np.bitwise_or, operator.or_, ("", "")),
    Scalar("bit_xor", 2, "same", np.bitwise_xor, operator.xor, ("", "")),
    Scalar("bit_not", 1, "same", np.invert, operator.invert, ("",)),
    Scalar(
        "shift_left",
        2,
        "same",
        lambda a, b: np.left_shift(a, values.places(b)),
        lambda a, b: a << min(max(b, 0), 63),
        ("", ""),
    ),
    Scalar(
        "shift_right",
        2,
        "same",
        lambda a, b: np.right_shift(a, values.places(b)),
        lambda a, b: a >> min(max(b, 0), 63),
        ("", ""),
    ),
    # powers
    Scalar("integer_power", 2, "same", values.integer_power, values.wrapped_power, ("", "")),
    Scalar("sq", 1, "same", np.square, lambda a: a * a, ("2 * a",), monotone=(0.0,), ulps=0.5),
    Scalar(
        "sqrt",
        1,
        "real",
        values.ufunc("sqrt"),
        values.guarded(mpmath.sqrt, lambda a: a >= 0),
        ("0.5 / y",),
        domain=(0.0, _INF),
        monotone=(),
        ulps=1,
    ),
    Scalar(
        "rsqrt",
        1,
        "real",
        values.rsqrt,
        values.guarded(values.exact_rsqrt, lambda a: a >= 0),
        ("-0.5 * y / a",),
        domain=(0.0, _INF),
        monotone=(),
        ulps=4,
    ),
    Scalar(
        "pow",
        2,
        "real",
        # np.power takes a square root where one exponent of 0.5 serves all: NaN at -inf, and -0
        values.ufunc("float_power"),
        values.exact_pow,
        ("b * pow(a, b - 1)", "y * log(a)"),
        ulps=16,
        poles=lambda a, b: (np.asarray(a) == 0) & (np.asarray(b) < 0),
    ),
    # exponentials and logarithms
    Scalar(
        "exp",
        1,
        "real",
        values.ufunc("exp"),
        mpmath.exp,
        ("y",),
        monotone=(),
        ulps=4,
        near=(1.0, _INF),
    ),
    Scalar(
        "expm1",
        1,
        "real",
        values.ufunc("expm1"),
        mpmath.expm1,
        ("y + 1",),
        monotone=(),
        ulps=8,
        near=(0.0, _INF),
    ),
    Scalar(
        "log",
        1,
        "real",
        values.ufunc("log"),
        values.guarded(values.exact_log, lambda a: a >= 0),
        ("1 / a",),
        domain=(0.0, _INF),
        monotone=(),
        ulps=4,
        near=(-_INF, -1.0),
    ),
    Scalar(
        "log1p",
        1,
        "real",
        values.ufunc("log1p"),
        values.guarded(values.exact_log1p, lambda a: a >= -1),
        ("1 / (1 + a)",),
        domain=(-1.0, _INF),
        monotone=(),
        ulps=8,
        near=(-_INF, 0.0),
    ),
    Scalar(
        "sigmoid",
        1,
        "real",
        values.sigmoid,
        values.sigmoid_exact,
        ("y * (1 - y)",),
        monotone=(),
        ulps=8,
        lost=2.0**-22,  # ONNX Runtime adds 0.5 to a quotient: 0 is its value from -15.79 down
    ),
    Scalar(
        "softplus",
        1,
        "real",
        lambda a: values.ufunc("logaddexp")(a, 0.0),
        values.exact_softplus,
        ("sigmoid(a)",),
        monotone=(),
        ulps=8,
        near=(0.0, _INF),
    ),
    # log(exp(a) + exp(b)): what both arguments rise by it rises by, too. The larger one and the
    # logarithm of 1 and an exponential: half a place of the sum, and of 1 half a one for 1 + exp,
    # 2 for exp and 5.5 for the logarithm, be it that of 1 + x. Together no more than 2 places of
    # what is larger than 6, and than 12 of 1
    Scalar(
        "logaddexp",
        2,
        "real",
        values.ufunc("logaddexp"),
        values.exact_logaddexp,
        ("if a == b then 0.5 else sigmoid(a - b)", "if a == b then 0.5 else sigmoid(b - a)"),
        ulps=2,
        least=6.0,
    ),
    Scalar(
        "tanh", 1, "real", values.ufunc("tanh"), mpmath.tanh, ("1 - y * y",), monotone=(), ulps=8
    ),
    Scalar(
        "erf",
        1,
        "real",
        values.erf,
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
        values.ufunc("sin"),
        values.guarded(mpmath.sin, values.finite),
        ("cos(a)",),
        ulps=4,
        image=scalar_images.sine,
        circle="cos",
    ),
    Scalar(
        "cos",
        1,
        "real",
        values.ufunc("cos"),
        values.guarded(mpmath.cos, values.finite),
        ("-sin(a)",),
        ulps=4,
        image=scalar_images.cosine,
        circle="sin",
    ),
    Scalar(
        "tan",
        1,
        "real",
        values.ufunc("tan"),
        values.guarded(mpmath.tan, values.finite),
        # 1 + y * y, and as far off as 1 / cos(a) ** 2 (TensorFlow's TanGrad), which has poles
        ("cos(a) * cos(a) + sin(a) * sin(a) + y * y",),
        ulps=8,
        steepest=values.steepest_tan,
        image=scalar_images.tangent,
    ),
    Scalar(
        "asin",
        1,
        "real",
        values.ufunc("arcsin"),
        values.guarded(mpmath.asin, lambda a: abs(a) <= 1),
        ("1 / sqrt(1 - a * a)",),
        domain=(-1.0, 1.0),
        monotone=(),
        ulps=8,
    ),
    Scalar(
        "acos",
        1,
        "real",
        values.ufunc("arccos"),
        values.guarded(mpmath.acos, lambda a: abs(a) <= 1),
        ("-1 / sqrt(1 - a * a)",),
        domain=(-1.0, 1.0),
        monotone=(),
        ulps=8,
    ),
    Scalar(
        "atan",
        1,
        "real",
        values.ufunc("arctan"),
        mpmath.atan,
        ("1 / (1 + a * a)",),
        monotone=(),
        ulps=8,
    ),
    Scalar("sinh", 1, "real", values.ufunc("sinh"), mpmath.sinh, ("cosh(a)",), monotone=(), ulps=8),
    Scalar(
        "cosh", 1, "real", values.ufunc("cosh"), mpmath.cosh, ("sinh(a)",), monotone=(0.0,), ulps=8
    ),
    Scalar(
        "asinh",
        1,
        "real",
        values.ufunc("arcsinh"),
        mpmath.asinh,
        ("1 / sqrt(a * a + 1)",),
        monotone=(),
        ulps=8,
    ),
    Scalar(
        "acosh",
        1,
        "real",
        values.ufunc("arccosh"),
        values.guarded(mpmath.acosh, lambda a: a >= 1),
        ("1 / sqrt(a * a - 1)",),
        domain=(1.0, _INF),
        monotone=(),
        ulps=8,
    ),
    Scalar(
        "atanh",
        1,
        "real",
        values.ufunc("arctanh"),
        values.guarded(values.atanh, lambda a: abs(a) <= 1),
        ("1 / (1 - a * a)",),
        domain=(-1.0, 1.0),
        monotone=(),
        ulps=8,
    ),
    *SPECIAL_ROWS,
)

SCALARS: dict[str, Scalar] = {row.name: row for row in _ROWS}

# Functions of integers alone.
WHOLE = frozenset(
    {"bit_and", "bit_or", "bit_xor", "bit_not", "shift_left", "shift_right", "integer_power"}
)

# Functions that few libraries have.
SPECIAL = frozenset(row.name for row in SPECIAL_ROWS)

# Functions that are written in terms of the rows above wherever they occur.
VARIADIC = frozenset({"max", "min"})
