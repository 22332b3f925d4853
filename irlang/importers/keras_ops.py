"""Functions of `keras.ops` in saved functional models, as calls of the definitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irlang.equations import TensorInfo
from irlang.importers.keras_call import Sheet, Value, element
from irlang.importers.keras_node import Node, Write
from irlang.importers.keras_ops_shapes import MOVING
from irlang.importers.keras_ops_windows import WINDOWS
from irlang.importers.keras_text import Config
from irlang.importers.labels import Malformed, labels_of


def _unary(op: str, **attrs: Any) -> Write:
    return lambda n: n.write(op, n.real(n.x()), **attrs)


def _exact(op: str) -> Write:
    """A function of integers too."""
    return lambda n: n.write(op, n.x())


def _binary(op: str, real: bool = False) -> Write:
    def write(n: Node) -> str:
        operands = [n.operand(item, number) for number, item in enumerate(n.args[:2])]
        operands = n.alike(operands)
        if real:
            operands = [n.real(item) if isinstance(item, str) else item for item in operands]
        return n.write(op, *operands)

    return write


def _logical(op: str) -> Write:
    return lambda n: n.write(op, *(n.cast(n.x(i), "bool") for i in range(len(n.args[:2]))))


def _reduce(op: str, real: bool = False) -> Write:
    def write(n: Node) -> str:
        x = n.real(n.x()) if real else n.x()
        keep: dict[str, Any] = {"keepdims": True} if n.get("keepdims", False) else {}
        if n.get("initial", None) is not None or n.get("where", None) is not None:
            raise n.uncovered("`initial` or `where` is given")
        return n.write(op, x, axes=n.axes(x), **keep)

    return write


def _place(op: str) -> Write:
    """Where the largest or smallest is, as Keras counts: in int32."""

    def write(n: Node) -> str:
        x, axis = n.x(), n.get("axis", None)
        if axis is None:
            x, axis = n.write("reshape", x, suffix="flat", shape=[-1]), 0
        keep = {"keepdims": True} if n.get("keepdims", False) else {}
        return n.write("cast", n.write(op, x, suffix="place", axis=axis, **keep), to="i32")

    return write


def _where(n: Node) -> str:
    condition = n.cast(n.x(0), "bool")
    a, b = n.alike([n.operand(item, number + 1) for number, item in enumerate(n.args[1:3])])
    return n.write("where", condition, a, b)


def _clip(n: Node) -> str:
    low, high = n.get("x_min"), n.get("x_max")
    if not isinstance(low, (int, float)) or not isinstance(high, (int, float)):
        raise n.uncovered("a bound is no number")
    return n.write("clip", n.x(), min=low, max=high)


def _one_hot(n: Node) -> str:
    to = element(n.get("dtype", "float32") or "float32")
    return n.write("one_hot", n.x(), depth=n.get("num_classes"), axis=n.get("axis", -1), to=to)


def _normalize(n: Node) -> str:
    eps = n.get("epsilon", None)
    x = n.real(n.x())
    order = float(n.get("order", 2))
    return n.write("normalize", x, axes=n.axes(x), p=order, eps=1e-7 if eps is None else eps)


def _matmul(n: Node) -> str:
    a, b = n.alike([n.x(0), n.x(1)])
    a, b = n.real(a), n.real(b)
    if min(n.rank(a), n.rank(b)) < 2:
        raise n.uncovered("a product with a vector")
    return n.write("matmul", a, b)


def _einsum(n: Node) -> str:
    operands = n.alike([n.x(number) for number in range(len(n.args))])
    try:
        labels, output = labels_of(str(n.get("subscripts")), [n.rank(item) for item in operands])
    except Malformed as reason:
        raise n.uncovered(str(reason)) from None
    return n.write("einsum", *operands, labels=labels, output=output)


def _softmax(op: str) -> Write:
    def write(n: Node) -> str:
        axis = n.get("axis", -1)
        if not isinstance(axis, int):
            raise n.uncovered(f"`axis` is {axis!r}")
        return n.write(op, n.real(n.x()), axis=axis)

    return write


def _slope(n: Node) -> str:
    return n.write("leaky_relu", n.x(), alpha=float(np.float32(n.get("negative_slope", 0.2))))


def _cumulative(op: str) -> Write:
    def write(n: Node) -> str:
        x, axis = n.x(), n.get("axis", None)
        if n.get("dtype", None) is not None:
            raise n.uncovered("`dtype` is given")
        if axis is None:
            x, axis = n.write("reshape", x, suffix="flat", shape=[-1]), 0
        return n.write(op, x, axis=axis)

    return write


def _scaled(base: float) -> Write:
    """A logarithm to another base."""
    return lambda n: n.write("divide", n.write("log", n.real(n.x()), suffix="log"), base)


def _threshold(n: Node) -> str:
    above = n.write("greater", n.x(), float(n.get("threshold")), suffix="above")
    return n.write("where", above, n.x(), float(n.get("default_value")))


def _like(value: float) -> Write:
    """A tensor of one number, of the shape of another."""

    def write(n: Node) -> str:
        x = n.x()
        given = n.get("dtype", None)
        dtype = n.info(x).dtype if given is None else element(given)
        info = TensorInfo((), dtype)
        number = bool(value) if dtype == "bool" else value
        filled = n.writer.param(f"{n.name}_value", info, number)
        return n.write("broadcast_to", filled, shape=list(n.info(x).shape))

    return write


OPERATIONS: dict[str, Write] = {
    **MOVING,
    **WINDOWS,
    **{
        kind: _unary(op)
        for kind, op in {
            "Sqrt": "sqrt",
            "Exp": "exp",
            "Log": "log",
            "Log1p": "log1p",
            "Expm1": "expm1",
            "Sin": "sin",
            "Cos": "cos",
            "Tan": "tan",
            "Arcsin": "asin",
            "Arccos": "acos",
            "Arctan": "atan",
            "Sinh": "sinh",
            "Cosh": "cosh",
            "Tanh": "tanh",
            "Arcsinh": "asinh",
            "Arccosh": "acosh",
            "Arctanh": "atanh",
            "Reciprocal": "reciprocal",
            "Rsqrt": "rsqrt",
            "Erf": "erf",
            "Floor": "floor",
            "Ceil": "ceil",
            "Trunc": "trunc",
            "Isnan": "isnan",
            "Isinf": "isinf",
            "Sigmoid": "sigmoid",
            "Relu": "relu",
            "Softplus": "softplus",
            "Softsign": "softsign",
            "Silu": "silu",
            "LogSigmoid": "log_sigmoid",
            "Selu": "selu",
            "HardTanh": "hard_tanh",
            "TanhShrink": "tanh_shrink",
            "HardSilu": "hard_swish",
            "SparsePlus": "sparse_plus",
            "Mish": "mish",
        }.items()
    },
    "Relu6": _unary("relu", max_value=6),
    "HardSigmoid": _unary("hard_sigmoid", alpha=1 / 6),
    "SparseSigmoid": _unary("hard_sigmoid", alpha=0.5),
    **{kind: _exact("abs") for kind in ("Absolute", "Abs", "Fabs")},
    "Negative": _exact("negate"),
    "Sign": _exact("sign"),
    "Square": _exact("square"),
    "StopGradient": _exact("stop_gradient"),
    **dict.fromkeys(("Copy", "ConvertToTensor"), _exact("identity")),
    "Log2": _scaled(float(np.log(2))),
    "Log10": _scaled(float(np.log(10))),
    "Add": _binary("add"),
    "Subtract": _binary("subtract"),
    "Multiply": _binary("multiply"),
    "Divide": _binary("divide", real=True),
    "TrueDivide": _binary("divide", real=True),
    "FloorDivide": _binary("floor_divide"),
    "Mod": _binary("modulo"),
    "Power": _binary("power"),
    "Maximum": _binary("maximum"),
    "Minimum": _binary("minimum"),
    "Equal": _binary("equal"),
    "NotEqual": _binary("not_equal"),
    "Less": _binary("less"),
    "LessEqual": _binary("less_equal"),
    "Greater": _binary("greater"),
    "GreaterEqual": _binary("greater_equal"),
    "LogicalAnd": _logical("logical_and"),
    "LogicalOr": _logical("logical_or"),
    "LogicalXor": _logical("logical_xor"),
    "LogicalNot": lambda n: n.write("logical_not", n.cast(n.x(), "bool")),
    "Sum": _reduce("reduce_sum"),
    "Mean": _reduce("reduce_mean", real=True),
    "Prod": _reduce("reduce_prod"),
    **dict.fromkeys(("Max", "Amax"), _reduce("reduce_max")),
    **dict.fromkeys(("Min", "Amin"), _reduce("reduce_min")),
    "Var": _reduce("reduce_variance", real=True),
    "Std": _reduce("reduce_std", real=True),
    "All": _reduce("reduce_all"),
    "Any": _reduce("reduce_any"),
    "Logsumexp": _reduce("reduce_logsumexp", real=True),
    "Argmax": _place("argmax"),
    "Argmin": _place("argmin"),
    "Cumsum": _cumulative("cumsum"),
    "Cumprod": _cumulative("cumprod"),
    "Where": _where,
    "Clip": _clip,
    "Cast": lambda n: n.write("cast", n.x(), to=element(n.get("dtype"))),
    "ZerosLike": _like(0),
    "OnesLike": _like(1),
    "OneHot": _one_hot,
    "Matmul": _matmul,
    "Einsum": _einsum,
    "Normalize": _normalize,
    "Softmax": _softmax("softmax"),
    "LogSoftmax": _softmax("log_softmax"),
    "Sparsemax": _softmax("sparsemax"),
    "Glu": _softmax("glu"),
    "LeakyRelu": _slope,
    "Elu": lambda n: n.write("elu", n.x(), alpha=float(n.get("alpha", 1.0))),
    "Celu": lambda n: n.write("celu", n.x(), alpha=float(n.get("alpha", 1.0))),
    "Gelu": lambda n: n.write(
        "gelu", n.x(), approximate="tanh" if n.get("approximate", True) else "none"
    ),
    "Squareplus": lambda n: n.write("squareplus", n.x(), b=float(n.get("b", 4))),
    "SoftShrink": lambda n: n.write("soft_shrink", n.x(), threshold=float(n.get("threshold", 0.5))),
    "HardShrink": lambda n: n.write("hard_shrink", n.x(), threshold=float(n.get("threshold", 0.5))),
    "Threshold": _threshold,
}


def write_operation(
    sheet: Sheet, name: str, config: Config, args: Sequence[Any], kwargs: dict[str, Any]
) -> list[Value]:
    """Writes a function; what it gives. Raises `Uncovered` for what has no translation."""
    results = OPERATIONS[config.kind](Node(sheet, name, config, args, kwargs))
    names = [results] if isinstance(results, str) else results
    return [Value(found) for found in names]
