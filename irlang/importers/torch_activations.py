"""Activations."""

from __future__ import annotations

from irlang.importers.torch_call import FLOATS, Call, Rule, Uncovered, Value
from irlang.importers.torch_elementwise import plain


def _relu(c: Call) -> Value:
    x = c.tensor("self")
    return c("relu", x) if x.dtype in FLOATS else c("maximum", x, 0)


def _relu6(c: Call) -> Value:
    x = c.tensor("self")
    return c("relu", x, max_value=6) if x.dtype in FLOATS else c("clip", x, min=0, max=6)


def _elu(c: Call) -> Value:
    x = c.tensor("self")
    alpha, scale, inner = (c.number(n, 1.0) for n in ("alpha", "scale", "input_scale"))
    if scale == 1 and inner == 1:
        return c("elu", x, alpha=alpha)
    low = c("multiply", c("expm1", c("multiply", c("minimum", x, 0), inner)), alpha)
    return c("multiply", c("add", c("maximum", x, 0), low), scale)


def _hardtanh(c: Call) -> Value:
    x = c.tensor("self")
    low, high = c.number("min_val", -1.0), c.number("max_val", 1.0)
    if x.dtype in FLOATS:
        return c("hard_tanh", x, min=low, max=high)
    return c("clip", x, min=low, max=high)


def _softplus(c: Call) -> Value:
    """Beyond `threshold` it is the identity, as PyTorch has it."""
    x = c.tensor("self")
    beta, threshold = plain(c.get("beta", 1)), plain(c.get("threshold", 20))
    scaled = x if beta == 1 else c("multiply", x, beta)
    return c("where", c("greater", scaled, threshold), x, c("softplus", x, beta=beta))


def _threshold(c: Call) -> Value:
    x = c.tensor("self")
    value = c.number("value")
    beyond = c("greater", x, c.number("threshold"))
    return c("where", beyond, x, value)


def _prelu(c: Call) -> Value:
    x, slope = c.tensor("self"), c.tensor("weight")
    if x.rank >= 2 and slope.shape not in ((), (1,)):
        slope = c.reshape(slope, [*slope.shape, *[1] * (x.rank - 2)])
    elif slope.rank > x.rank:
        slope = c.reshape(slope, [])
    return c("prelu", x, slope)


def _hardshrink(c: Call) -> Value:
    x, bound = c.tensor("self"), c.number("lambd", 0.5)
    if bound >= 0:
        return c("hard_shrink", x, threshold=bound)
    inside = c("logical_and", c("greater_equal", x, bound), c("less_equal", x, -bound))
    return c("where", inside, 0, x)


def _hardswish(c: Call) -> Value:
    """As PyTorch computes it: the division is the last step, and rounds beyond the line too."""
    x = c.tensor("self")
    line = c("clip", c("add", x, 3), min=0, max=6)
    return c("divide", c("multiply", x, line), 6)


def _rrelu(c: Call) -> Value:
    low, high = c.number("lower", 0.125), c.number("upper", 1 / 3)
    if c.flag("training") and low != high:
        raise Uncovered("it is random in training")
    return c("leaky_relu", c.tensor("self"), alpha=(low + high) / 2)


ACTIVATIONS: dict[str, Rule] = {
    "relu": _relu,
    "relu6": _relu6,
    "elu": _elu,
    "rrelu": _rrelu,
    "prelu": _prelu,
    "hardtanh": _hardtanh,
    "hardswish": _hardswish,
    "softplus": _softplus,
    "hardshrink": _hardshrink,
    "threshold": _threshold,
}
