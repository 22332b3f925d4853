"""TensorFlow's operators that work element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

from irlang.dtypes import DTYPES
from irlang.importers.tf_node import Node, Result, Row, calls, elementwise
from irlang.importers.value import Unsupported, Value

_SAME = {
    # two inputs
    "Add": "add", "AddV2": "add", "Sub": "subtract", "Mul": "multiply", "RealDiv": "divide",
    "Div": "divide", "TruncateDiv": "divide", "FloorDiv": "floor_divide", "FloorMod": "modulo",
    "Pow": "power", "Igamma": "gammainc", "Igammac": "gammaincc", "Zeta": "zeta",
    "Atan2": "atan2", "Maximum": "maximum", "Minimum": "minimum",
    "SquaredDifference": "squared_difference",
    "Greater": "greater", "GreaterEqual": "greater_equal", "Less": "less",
    "LessEqual": "less_equal", "LogicalAnd": "logical_and", "LogicalOr": "logical_or",
    "BitwiseAnd": "bit_and", "BitwiseOr": "bit_or", "BitwiseXor": "bit_xor",
    # one input
    "Neg": "negate", "Abs": "abs", "Sign": "sign", "Square": "square", "Sqrt": "sqrt",
    "Rsqrt": "rsqrt", "Exp": "exp", "Expm1": "expm1", "Log": "log", "Log1p": "log1p",
    "Reciprocal": "reciprocal", "Inv": "reciprocal", "Floor": "floor", "Ceil": "ceil",
    "Round": "round", "Rint": "round", "Sin": "sin", "Cos": "cos", "Tan": "tan", "Asin": "asin",
    "Acos": "acos", "Atan": "atan", "Sinh": "sinh", "Cosh": "cosh", "Tanh": "tanh",
    "Asinh": "asinh", "Acosh": "acosh", "Atanh": "atanh", "Erf": "erf", "Erfc": "erfc",
    "Erfinv": "erfinv", "Ndtri": "ndtri", "Lgamma": "lgamma", "Digamma": "digamma",
    "Sigmoid": "sigmoid", "Relu": "relu", "Elu": "elu", "Selu": "selu", "Softplus": "softplus",
    "Softsign": "softsign", "IsNan": "isnan", "IsInf": "isinf", "IsFinite": "isfinite",
    "LogicalNot": "logical_not", "Invert": "bit_not", "Expint": "expint", "Spence": "spence",
    "Dawsn": "dawsn",
    # any number
    "AddN": "add_n",
}  # fmt: skip


_BESSEL = {
    f"Bessel{kind.upper()}{digit}{'e' if scaled else ''}": (
        f"bessel_{kind}",
        {"order": order} | ({"scaled": scaled} if kind in "ik" else {}),
    )
    for kind in "ikjy"
    for digit, order in (("0", "zero"), ("1", "one"))
    for scaled in ((False, True) if kind in "ik" else (False,))
}


def _with(op: str, **attrs: Any) -> Row:
    return lambda n: n.call(op, n.input(0), **attrs)


def _equal(op: str) -> Row:
    def row(n: Node) -> Value:
        if not n.flag("incompatible_shape_error", True):
            raise Unsupported("shapes that do not fit count as different")
        return n.call(op, n.input(0), n.input(1))

    return row


def _near(n: Node) -> Value:
    apart = n.step("apart", "abs", n.step("difference", "subtract", n.input(0), n.input(1)))
    limit = np.full((), n.real("tolerance", 1e-5), DTYPES[apart.dtype].numpy)
    return n.call("less", apart, n.const(limit, f"{n.outputs[0]}_tolerance"))


def _bucket(n: Node) -> Value:
    """How many of the bounds an element has reached."""
    x = n.input(0)
    if x.info.kind == "int":
        x = n.step("real", "cast", x, to="f64")
    bounds = [float(str(np.float32(bound))) for bound in n.reals("boundaries")]
    return n.call("cast", n.step("place", "bucketize", x, boundaries=bounds, right=True), to="i32")


def _fake_quantized(n: Node) -> Value:
    """By bounds that are attributes, or inputs: one, or one for each element of the last axis."""
    attrs = {"bits": n.int("num_bits", 8), "narrow": n.flag("narrow_range")}
    if n.kind != "FakeQuantWithMinMaxArgs":
        return n.call("fake_quantize_range", *n.x, **attrs)
    ends = {"min": n.real("min", -6.0), "max": n.real("max", 6.0)}
    low, high = (
        n.const(np.full((), number, np.float32), f"{n.outputs[0]}_{name}")
        for name, number in ends.items()
    )
    return n.call("fake_quantize_range", n.input(0), low, high, **attrs)


_ROUNDINGS = {"HALF_TO_EVEN": "even", "HALF_UP": "up"}


def _quantized_and_back(n: Node) -> Value:
    """By a scale alone, of the range that is given, or of the elements'."""
    x, given = n.input(0), n.flag("range_given", n.kind == "QuantizeAndDequantizeV3")
    axis, mode = n.int("axis", -1), n.word("round_mode", "HALF_TO_EVEN")
    if mode not in _ROUNDINGS:
        raise Unsupported(f"the rounding {mode}")
    attrs = {
        "bits": n.known_number(3) if n.kind == "QuantizeAndDequantizeV3" else n.int("num_bits", 8),
        "signed": n.flag("signed_input", True),
        "narrow": n.flag("narrow_range"),
        "rounding": _ROUNDINGS[mode],
        **({} if axis == -1 else {"sliced": True, "axis": axis}),
    }
    ends = [n.input(1), n.input(2)]
    return n.call("quantize_and_dequantize", x, *(ends if given else []), **attrs)


def _truncated_mod(n: Node) -> Value:
    return n.call("modulo", n.input(0), n.input(1), sign_of="dividend")


def _where_zero(n: Node, factor: Value, other: Value, number: int) -> Value:
    """Another number in place of an operand where a factor is zero: nothing infinite is made."""
    zero, instead = (
        n.const(np.full((), value, DTYPES[kind].numpy), f"{n.outputs[0]}_{name}")
        for value, kind, name in ((0, factor.dtype, "zero"), (number, other.dtype, "instead"))
    )
    return n.step("guarded", "where", n.step("at", "equal", factor, zero), instead, other)


def _divided_or_zero(n: Node) -> Value:
    """X / y, and 0 where y is 0."""
    x, y = n.input(0), n.input(1)
    return n.call("divide", _where_zero(n, y, x, 0), _where_zero(n, y, y, 1))


def _times_or_zero(n: Node) -> Value:
    """X * y, and 0 where y is 0 whatever x is."""
    x, y = n.input(0), n.input(1)
    return n.call("multiply", _where_zero(n, y, x, 0), y)


def _over_or_zero(n: Node) -> Value:
    """X / y, and 0 where x is 0 whatever y is."""
    x, y = n.input(0), n.input(1)
    return n.call("divide", x, _where_zero(n, x, y, 1))


def _times_log(op: str, instead: int) -> Row:
    """X times the logarithm of y, and 0 where x is 0 whatever y is."""

    def row(n: Node) -> Value:
        x, y = n.input(0), n.input(1)
        return n.call("multiply", x, n.step("log", op, _where_zero(n, x, y, instead)))

    return row


def _relu6(n: Node) -> Value:
    return n.call("clip", n.input(0), min=0, max=6)


def _leaky(n: Node) -> Value:
    return n.call("leaky_relu", n.input(0), alpha=n.real("alpha", 0.2))


def _cast(n: Node) -> Value:
    if n.flag("Truncate"):
        raise Unsupported("numbers whose last digits are dropped")
    x, to = n.input(0), n.element_type("DstT")
    return x if x.dtype == to else n.call("cast", x, to=to)


def _bounded(n: Node) -> Value:
    """max(min(t, high), low), by bounds that may be tensors."""
    x = n.step("high", "minimum", n.input(0), n.input(2))
    return n.call("maximum", x, n.input(1))


def _select(n: Node) -> Value:
    """A condition of one axis is for whole rows."""
    condition, a, b = n.x
    if condition.rank == 1 and a.rank > 1:
        axes = list(range(1, a.rank))
        condition = n.step("rows", "expand_dims", condition, axes=axes)
    return n.call("where", condition, a, b)


def _identity(n: Node) -> Value:
    """Numbers as they are, whatever else happens on the way."""
    n.ignore("message", "shape", "first_n", "summarize")
    n.pass_over()  # what is printed, or checked
    return n.input(0)


def _accumulated(n: Node) -> Value:
    n.ignore("shape")
    return n.call("add_n", *n.x)


def _identities(n: Node) -> Result:
    return n.x


ROWS: dict[str, Row] = {
    **{name: elementwise(calls(op)) for name, op in _SAME.items()},
    **{name: elementwise(_with(op, **attrs)) for name, (op, attrs) in _BESSEL.items()},
    "FresnelSin": elementwise(_with("fresnel", of="sine")),
    "FresnelCos": elementwise(_with("fresnel", of="cosine")),
    "Equal": _equal("equal"),
    "NotEqual": _equal("not_equal"),
    "AccumulateNV2": elementwise(_accumulated),
    "Mod": elementwise(_truncated_mod),
    "TruncateMod": elementwise(_truncated_mod),
    "DivNoNan": _divided_or_zero,
    "MulNoNan": _times_or_zero,
    "Xdivy": _over_or_zero,
    "Xlogy": _times_log("log", 1),
    "Xlog1py": _times_log("log1p", 0),
    "Relu6": elementwise(_relu6),
    "LeakyRelu": elementwise(_leaky),
    "Cast": elementwise(_cast),
    "ClipByValue": elementwise(_bounded),
    "Select": _select,
    "SelectV2": calls("where"),
    "Identity": _identity,
    "IdentityN": _identities,
    "Snapshot": _identity,
    "StopGradient": calls("stop_gradient"),
    "PreventGradient": _identity,
    "CheckNumerics": _identity,
    "CheckNumericsV2": _identity,
    "EnsureShape": _identity,
    "Print": _identity,
    "GuaranteeConst": _identity,
    "DeepCopy": _identity,
    "ApproximateEqual": _near,
    "Bucketize": _bucket,
    "FakeQuantWithMinMaxArgs": _fake_quantized,
    "FakeQuantWithMinMaxVars": _fake_quantized,
    "FakeQuantWithMinMaxVarsPerChannel": _fake_quantized,
    **dict.fromkeys([f"QuantizeAndDequantizeV{v}" for v in (2, 3, 4)], _quantized_and_back),
    "ReadVariableOp": _identity,
    "PlaceholderWithDefault": _identity,
}
