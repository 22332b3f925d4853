"""TensorFlow's operators of gradients, for losses that hold a gradient themselves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from irlang.dtypes import DTYPES
from irlang.importers.tf_node import Node, Result, Row, is_open
from irlang.importers.value import Unsupported, Value, integers

_SELU = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717  # scale and alpha


def _number(n: Node, value: Value, number: float, name: str) -> Value:
    """A number of the type of a value."""
    return n.const(np.full((), number, DTYPES[value.dtype].numpy), f"{n.outputs[0]}_{name}")


def _where(op: str, limit: float, else_: Callable[[Node, Value, Value], Value]) -> Row:
    """The gradient where what is given compares with a limit; else something of both."""

    def row(n: Node) -> Value:
        gradient, x = n.input(0), n.input(1)
        at = n.step("at", op, x, _number(n, x, limit, "limit"))
        return n.call("where", at, gradient, else_(n, gradient, x))

    return row


def _zero(n: Node, gradient: Value, x: Value) -> Value:  # noqa: ARG001 (as of the others)
    return _number(n, gradient, 0.0, "zero")


def _leaking(n: Node, gradient: Value, x: Value) -> Value:  # noqa: ARG001
    return n.step("leak", "multiply", gradient, n.real("alpha", 0.2))


def _of_elu(n: Node, gradient: Value, y: Value) -> Value:
    return n.step("below", "multiply", n.step("slope", "add", y, 1.0), gradient)


def _relu6(n: Node) -> Value:
    gradient, x = n.input(0), n.input(1)
    low = n.step("above", "greater", x, _number(n, x, 0.0, "low"))
    high = n.step("below", "less", x, _number(n, x, 6.0, "high"))
    return n.call("where", n.step("at", "logical_and", low, high), gradient, _zero(n, gradient, x))


def _selu(n: Node) -> Value:
    gradient, y = n.input(0), n.input(1)
    scale, alpha = _SELU
    at = n.step("at", "less", y, _number(n, y, 0.0, "limit"))
    slope = n.step("slope", "add", y, scale * alpha)
    below = n.step("below", "multiply", slope, gradient)
    return n.call("where", at, below, n.step("above", "multiply", gradient, scale))


def _sigmoid(n: Node) -> Value:
    y, gradient = n.input(0), n.input(1)
    slope = n.step("slope", "multiply", y, n.step("rest", "subtract", 1.0, y))
    return n.call("multiply", gradient, slope)


def _tanh(n: Node) -> Value:
    y, gradient = n.input(0), n.input(1)
    slope = n.step("slope", "subtract", 1.0, n.step("square", "square", y))
    return n.call("multiply", gradient, slope)


def _sqrt(n: Node) -> Value:
    y, gradient = n.input(0), n.input(1)
    return n.call("divide", n.step("half", "multiply", gradient, 0.5), y)


def _rsqrt(n: Node) -> Value:
    y, gradient = n.input(0), n.input(1)
    cube = n.step("cube", "multiply", n.step("square", "square", y), y)
    return n.call("multiply", n.step("half", "multiply", gradient, -0.5), cube)


def _reciprocal(n: Node) -> Value:
    y, gradient = n.input(0), n.input(1)
    square = n.step("square", "square", y)
    return n.call("multiply", n.step("less", "negate", gradient), square)


def _softplus(n: Node) -> Value:
    gradient, x = n.input(0), n.input(1)
    return n.call("multiply", gradient, n.step("slope", "sigmoid", x))


def _softsign(n: Node) -> Value:
    gradient, x = n.input(0), n.input(1)
    size = n.step("size", "add", n.step("abs", "abs", x), 1.0)
    return n.call("divide", gradient, n.step("square", "square", size))


def _bias(n: Node) -> Value:
    x = n.input(0)
    axes = [0, *range(2, x.rank)] if n.ahead else list(range(x.rank - 1))
    return n.call("reduce_sum", x, axes=axes)


def _broadcast(n: Node) -> Result:
    """The axes along which two shapes were broadcast, each of them."""
    shapes = [n.known_ints(place) for place in (0, 1)]
    rank = max(map(len, shapes))
    kind = n.input(0).dtype
    found: list[Value | None] = []
    for place, shape in enumerate(shapes):
        whole = [1] * (rank - len(shape)) + shape
        axes = [axis for axis, size in enumerate(whole) if not is_open(size) and size == 1]
        name = f"{n.outputs[0] or n.kind}_{place}"
        found.append(n.const(integers(axes).astype(DTYPES[kind].numpy), name))
    return found


def _offsets(n: Node) -> Result:
    """Where each of some tensors begins along the axis that they are put together along."""
    shapes = [n.known_ints(place) for place in range(1, len(n.x))]
    (axis,) = np.ravel(n.known_ints(0))
    sizes = [shape[axis] for shape in shapes]
    if any(map(is_open, sizes[:-1])):
        raise Unsupported("it adds up sizes that are left open")
    found: list[Value | None] = []
    for place, shape in enumerate(shapes):
        begin = np.zeros(len(shape), np.int32)
        begin[axis] = sum(sizes[:place])
        found.append(n.const(begin, f"{n.outputs[0] or n.kind}_{place}"))
    return found


ROWS: dict[str, Row] = {
    "ConcatOffset": _offsets,
    "ReluGrad": _where("greater", 0.0, _zero),
    "Relu6Grad": _relu6,
    "LeakyReluGrad": _where("greater", 0.0, _leaking),
    "EluGrad": _where("greater_equal", 0.0, _of_elu),
    "SeluGrad": _selu,
    "SigmoidGrad": _sigmoid,
    "TanhGrad": _tanh,
    "SqrtGrad": _sqrt,
    "RsqrtGrad": _rsqrt,
    "ReciprocalGrad": _reciprocal,
    "InvGrad": _reciprocal,
    "SoftplusGrad": _softplus,
    "SoftsignGrad": _softsign,
    "BiasAddGrad": _bias,
    "BroadcastGradientArgs": _broadcast,
}
