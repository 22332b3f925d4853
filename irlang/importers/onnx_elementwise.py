"""ONNX's operators that work element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from irlang.dtypes import DTYPES
from irlang.importers.onnx_node import Node, Value
from irlang.importers.onnx_rows import calls, real
from irlang.importers.writer import Array

Row = Callable[[Node], Value | Sequence[Value | None]]


def _of_two(op: str) -> Row:
    """Arithmetic of two tensors. Before version 7 they broadcast when told so, from an axis on."""

    def row(n: Node) -> Value:
        a, b = n.input(0), n.input(1)
        if n.version < 7:
            n.ignore("consumed_inputs")
            if n.flag("broadcast"):
                axis = n.int("axis", a.rank - b.rank)
                trailing = a.rank - (axis % max(a.rank, 1)) - b.rank
                if trailing > 0:
                    places = list(range(b.rank, b.rank + trailing))
                    b = n.step("spread", "expand_dims", b, axes=places)
        return n.call(op, a, b)

    return row


def _several(op: str) -> Row:
    """Arithmetic of any number of tensors."""

    def row(n: Node) -> Value:
        return n.call(op, *n.x)

    return row


def _power(n: Node) -> Value:
    """The result has the type of the base, whatever the exponent's."""
    n.ignore("axis", "broadcast")
    return n.call("power", n.input(0), n.input(1))


def _modulo(n: Node) -> Value:
    sign = "dividend" if n.flag("fmod") else "divisor"
    return n.call("modulo", n.input(0), n.input(1), sign_of=sign)


def _clip(n: Node) -> Value:
    """Bounds are attributes before version 11 and inputs since; then NaN bounds and bounds that
    are computed are possible.
    """
    x = n.input(0)
    if n.version < 11:
        n.ignore("consumed_inputs")
        return n.call("clip", x, min=n.real("min", -np.inf), max=n.real("max", np.inf))
    low, high = n.optional(1), n.optional(2)
    known = [None if bound is None else bound.known() for bound in (low, high)]
    fixed = all(
        b is None or (k is not None and k.size == 1)
        for b, k in zip((low, high), known, strict=True)
    )
    if fixed:
        attrs = {
            name: k.reshape(-1).tolist()[0]
            for name, k in zip(("min", "max"), known, strict=True)
            if k is not None
        }
        return n.call("clip", x, **attrs)
    if low is not None:
        x = n.step("low", "maximum", x, low) if high is not None else n.call("maximum", x, low)
    return x if high is None else n.call("minimum", x, high)


def _cast(n: Node) -> Value:
    n.ignore("round_mode")
    return _to(n, n.input(0), n.element_type("to"))


def _cast_like(n: Node) -> Value:
    n.ignore("round_mode")
    return _to(n, n.input(0), n.input(1).dtype)


def _to(n: Node, x: Value, to: str) -> Value:
    saturate = n.flag("saturate", True)
    more = {} if saturate or not DTYPES[to].stored else {"saturate": False}
    return x if x.dtype == to else n.call("cast", x, to=to, **more)


def _where(n: Node) -> Value:
    return n.call("where", *n.x)


def _is_inf(n: Node) -> Value:
    return n.call(
        "isinf",
        n.input(0),
        negative=n.flag("detect_negative", True),
        positive=n.flag("detect_positive", True),
    )


def _gelu(n: Node) -> Value:
    return n.call("gelu", n.input(0), approximate=n.word("approximate", "none"))


def _shrink(n: Node) -> Value:
    """Towards zero by `bias` outside [-lambd, lambd], 0 inside."""
    x, bias, lambd = n.input(0), n.real("bias", 0.0), n.real("lambd", 0.5)
    if x.info.kind == "real" and bias == lambd >= 0:
        return n.call("soft_shrink", x, threshold=lambd)
    if x.info.kind == "real" and bias == 0 and lambd >= 0:
        return n.call("hard_shrink", x, threshold=lambd)
    below = n.step("below", "less", x, n.const(_as(x, -lambd), "low"))
    above = n.step("above", "greater", x, n.const(_as(x, lambd), "high"))
    up = n.step("up", "add", x, n.const(_as(x, bias), "bias"))
    down = n.step("down", "subtract", x, n.const(_as(x, bias), "bias"))
    zero = n.const(_as(x, 0), "zero")
    return n.call("where", below, up, n.step("rest", "where", above, down, zero))


def _as(x: Value, number: float) -> Array:
    """A number as a tensor of the type of `x`."""
    return np.asarray(number).astype(DTYPES[x.dtype].numpy)


def _prelu(n: Node) -> Value:
    """The slope broadcasts to x; before version 7 it may be one number a channel."""
    x, slope = n.input(0), n.input(1)
    if n.version < 7:
        n.ignore("consumed_inputs")
        if slope.rank == 1 and slope.shape != (1,) and x.rank > 2:
            slope = n.step("slope", "expand_dims", slope, axes=list(range(1, x.rank - 1)))
    return n.call("prelu", x, slope)


def _identity(n: Node) -> Value:
    return n.input(0)


def _relu(n: Node) -> Value:
    n.ignore("consumed_inputs")
    x = n.input(0)
    if x.info.kind == "int":
        return n.call("clip", x, min=0)
    return n.call("relu", x)


def _thresholded(n: Node) -> Value:
    return n.call("thresholded_relu", n.input(0), theta=n.real("alpha", 1.0))


def _swish(n: Node) -> Value:
    return n.call("silu", n.input(0), alpha=n.real("alpha", 1.0))


def _rounded(op: str) -> Row:
    def row(n: Node) -> Value:
        n.ignore("consumed_inputs")
        return n.call(op, n.input(0))

    return row


_SAME = {
    "And": "logical_and", "Or": "logical_or", "Xor": "logical_xor", "Equal": "equal",
    "Less": "less", "Greater": "greater", "Add": "add", "Sub": "subtract", "Mul": "multiply",
    "Div": "divide",
}  # fmt: skip
_PLAIN = {
    "Abs": "abs", "Neg": "negate", "Sign": "sign", "Reciprocal": "reciprocal", "Floor": "floor",
    "Ceil": "ceil", "Round": "round", "Sqrt": "sqrt", "Exp": "exp", "Log": "log", "Sin": "sin",
    "Cos": "cos", "Tan": "tan", "Asin": "asin", "Acos": "acos", "Atan": "atan", "Sinh": "sinh",
    "Cosh": "cosh", "Tanh": "tanh", "Asinh": "asinh", "Acosh": "acosh", "Atanh": "atanh",
    "Erf": "erf", "Sigmoid": "sigmoid", "Softsign": "softsign", "Mish": "mish",
    "Softplus": "softplus", "Det": "determinant",
}  # fmt: skip


def _hard_swish(n: Node) -> Value:
    """ONNX's function of it has a sixth of single precision, in double precision as well."""
    alpha = {"alpha": n.single(float(np.float32(1 / 6)))} if n.input(0).dtype == "f64" else {}
    return n.call("hard_swish", n.input(0), **alpha)


ROWS: dict[str, Row] = {
    **{name: _of_two(op) for name, op in _SAME.items()},
    **{name: _rounded(op) for name, op in _PLAIN.items()},
    "LessOrEqual": calls("less_equal"),
    "GreaterOrEqual": calls("greater_equal"),
    "Not": calls("logical_not"),
    "IsNaN": calls("isnan"),
    "IsInf": _is_inf,
    "Max": _several("maximum_n"),
    "Min": _several("minimum_n"),
    "Sum": _several("add_n"),
    "Mean": _several("average_n"),
    "Pow": _power,
    "Mod": _modulo,
    "Clip": _clip,
    "Cast": _cast,
    "CastLike": _cast_like,
    "Where": _where,
    "Identity": _identity,
    "Relu": _relu,
    "LeakyRelu": real("leaky_relu", alpha=0.01),
    "PRelu": _prelu,
    "ThresholdedRelu": _thresholded,
    "Elu": real("elu", alpha=1.0),
    "Selu": real("selu", alpha=1.67326319217681884765625, gamma=1.05070102214813232421875),
    "Celu": real("celu", alpha=1.0),
    "Gelu": _gelu,
    "Swish": _swish,
    "HardSigmoid": real("hard_sigmoid", alpha=0.2, beta=0.5),
    "HardSwish": _hard_swish,
    "Shrink": _shrink,
}
