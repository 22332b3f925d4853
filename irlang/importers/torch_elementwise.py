"""Functions of elements: arithmetic, comparison, logic, activations.

A computation takes place in the element type that PyTorch computes in, which is that of the result,
or for comparisons the one that the operands are promoted to.
"""

from __future__ import annotations

from typing import Any

from irlang.importers.torch_call import FLOATS, Call, Rule, Value


def plain(value: Any) -> Any:
    """A number as an operand of arithmetic: a truth value counts as 0 or 1."""
    return int(value) if isinstance(value, bool) else value


def operands(c: Call, *names: str, dtype: str = "") -> list[Any]:
    """Arguments in the type of the result; a lone number as a constant if none is a tensor."""
    dtype = dtype or c.out
    found = [c.cast(plain(c.get(name)), dtype) for name in names]
    if not any(isinstance(item, Value) for item in found):
        found[0] = c.as_tensor(found[0], dtype)
    return found


def unary(op: str, **attrs: Any) -> Rule:
    """A function of `self`."""
    return lambda c: c(op, c.cast(c.tensor("self"), c.out), **attrs)


def binary(op: str, other: str = "other") -> Rule:
    """A function of `self` and another; of truth values as of 0 and 1."""

    def rule(c: Call) -> Value:
        work = "u8" if c.out == "bool" else c.out
        return c.cast(c(op, *operands(c, "self", other, dtype=work)), c.out)

    return rule


def compare(op: str) -> Rule:
    """A comparison of `self` and `other`, in the type that both are promoted to."""

    def rule(c: Call) -> Value:
        pair = [c.get("self"), c.get("other")]
        dtype = c.common(*pair)
        if dtype == "bool":
            dtype = "u8"
        pair = [c.cast(plain(item), dtype) for item in pair]
        return c(op, *pair)

    return rule


def _sum(op: str, first: str = "self", second: str = "other") -> Rule:
    """The sum self + alpha * other, or the difference; of truth values a sum is "or"."""

    def rule(c: Call) -> Value:
        a, b = operands(c, first, second)
        factor = plain(c.get("alpha", 1))
        if c.out == "bool":
            if not factor:
                b = c("logical_and", c.as_tensor(b, "bool"), c.as_tensor(False, "bool"))
            return c("logical_or", c.as_tensor(a, "bool"), c.as_tensor(b, "bool"))
        if factor != 1:
            b = c("multiply", b, factor) if isinstance(b, Value) else b * factor
        return c(op, a, b)

    return rule


def _product(c: Call) -> Value:
    a, b = operands(c, "self", "other")
    if c.out == "bool":
        return c("logical_and", c.as_tensor(a, "bool"), c.as_tensor(b, "bool"))
    return c("multiply", a, b)


def _quotient(c: Call) -> Value:
    mode = c.get("rounding_mode")
    a, b = operands(c, "self", "other")
    if mode == "floor":
        return c("floor_divide", a, b)
    quotient = c("divide", a, b)
    return c("trunc", quotient) if mode == "trunc" and c.out in FLOATS else quotient


def _remainder(sign: str) -> Rule:
    return lambda c: c("modulo", *operands(c, "self", "other"), sign_of=sign)


def _bounded(c: Call) -> Value:
    x = c.cast(c.tensor("self"), c.out)
    low, high = c.get("min"), c.get("max")
    if isinstance(low, Value) or isinstance(high, Value):
        if low is not None:
            x = c("maximum", x, c.cast(low, c.out))
        return c("minimum", x, c.cast(high, c.out)) if high is not None else x
    bounds = {"min": low, "max": high}
    return c("clip", x, **{k: plain(v) for k, v in bounds.items() if v is not None})


def _one_bound(op: str, name: str) -> Rule:
    return binary(op, name)


def choose(c: Call, condition: Value, a: Any, b: Any, dtype: str = "") -> Value:
    """`a` where the condition holds, `b` elsewhere; one of them is a tensor or a type is given."""
    if not isinstance(a, Value) and not isinstance(b, Value):
        a = c.as_tensor(a, dtype or c.out)
    return c("where", condition, a, b)


def _where(c: Call) -> Value:
    condition = c.cast(c.tensor("condition"), "bool")
    a, b = (c.cast(c.get(name), c.out) for name in ("self", "other"))
    if c.out == "bool":
        a, b = c.as_tensor(a, "bool"), c.as_tensor(b, "bool")
    return choose(c, condition, a, b)


def _masked_fill(c: Call) -> Value:
    x = c.tensor("self")
    value = c.get("value")
    value = c.as_tensor(value, x.dtype) if x.dtype == "bool" or isinstance(value, Value) else value
    return c("where", c.cast(c.tensor("mask"), "bool"), plain(value), x)


def _bits(logical: str, whole: str) -> Rule:
    def rule(c: Call) -> Value:
        a, b = operands(c, "self", "other")
        if c.out == "bool":
            return c(logical, c.as_tensor(a, "bool"), c.as_tensor(b, "bool"))
        return c(whole, a, b)

    return rule


def _shift(direction: str) -> Rule:
    return lambda c: c("bit_shift", *operands(c, "self", "other"), direction=direction)


def _logic(op: str) -> Rule:
    def rule(c: Call) -> Value:
        return c(op, *[truth(c, c.tensor(name)) for name in ("self", "other")])

    return rule


def truth(c: Call, x: Value) -> Value:
    """Whether elements are not zero."""
    return c.cast(x, "bool")


def _power(c: Call) -> Value:
    a, b = plain(c.get("self")), plain(c.get("exponent"))
    if c.out not in FLOATS:
        return _whole_power(c, a, b)
    a, b = c.cast(a, c.out), c.cast(b, c.out)
    if b == 2:
        return c("square", a)
    if b == 1:
        return c("identity", a)
    return c("power", a, b)


def _whole_power(c: Call, a: Any, b: Any) -> Value:
    a = c.cast(a, c.out)
    if isinstance(b, int) and isinstance(a, Value) and 0 <= b <= 64:
        if b == 0:
            return c.broadcast(c.param(1, (), c.out), a.shape)
        result = a
        for _ in range(b - 1):
            result = c("multiply", result, a)
        return result if b > 1 else c("identity", a)
    a, b = c.as_tensor(a, c.out), c.as_tensor(b, c.out)
    return c("power", a, b)


def _scaled_sum(op: str) -> Rule:
    """The sum self + value * (tensor1 op tensor2)."""

    def rule(c: Call) -> Value:
        x, a, b = operands(c, "self", "tensor1", "tensor2")
        value = plain(c.get("value", 1))
        if value != 1:
            a = c("multiply", a, value)
        return c("add", x, c(op, a, b))

    return rule


def _lerp(c: Call) -> Value:
    a, b, w = operands(c, "self", "end", "weight")
    return c("add", a, c("multiply", c("subtract", b, a), w))


def _round(c: Call) -> Value:
    x = c.tensor("self")
    decimals = c.whole("decimals", 0)
    if x.dtype not in FLOATS:
        return c("identity", x)
    if decimals == 0:
        return c("round", x)
    ten = 10.0 ** abs(decimals)
    there, back = ("multiply", "divide") if decimals > 0 else ("divide", "multiply")
    return c(back, c("round", c(there, x, ten)), ten)


def _whole_or(op: str) -> Rule:
    """Rounding (floor and its like), which leave integers as they are."""

    def rule(c: Call) -> Value:
        x = c.tensor("self")
        return c(op if x.dtype in FLOATS else "identity", x)

    return rule


def _test(op: str, of_integers: bool = False, **attrs: Any) -> Rule:
    """Tests (isnan and its like), decided for integers."""

    def rule(c: Call) -> Value:
        x = c.tensor("self")
        if x.dtype in FLOATS:
            return c(op, x, **attrs)
        return c.broadcast(c.param(of_integers, (), "bool"), x.shape)

    return rule


def _isfinite(c: Call) -> Value:
    x = c.tensor("self")
    if x.dtype not in FLOATS:
        return c.broadcast(c.param(True, (), "bool"), x.shape)
    return c("logical_not", c("logical_or", c("isnan", x), c("isinf", x)))


def _signbit(c: Call) -> Value:
    x = c.tensor("self")
    if x.dtype == "bool":
        return c.broadcast(c.param(False, (), "bool"), x.shape)
    return c("less", x, 0)


def _float_power(c: Call) -> Value:
    a, b = operands(c, "self", "exponent")
    return c("power", a, b)


# ---- activations


def _extreme(c: Call, op: str, logical: str) -> Value:
    a, b = operands(c, "self", "other")
    if c.out == "bool":
        return c(logical, c.as_tensor(a, "bool"), c.as_tensor(b, "bool"))
    return c(op, a, b)


ELEMENTWISE: dict[str, Rule] = {
    **{
        name: unary(name)
        for name in (
            *("exp", "expm1", "log", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh"),
            *("cosh", "tanh", "asinh", "acosh", "atanh", "sqrt", "rsqrt", "reciprocal", "erf"),
            *("sigmoid", "silu", "mish", "selu", "square"),
        )
    },
    "abs": unary("abs"),
    "neg": unary("negate"),
    "sign": lambda c: c("identity" if c.out == "bool" else "sign", c.tensor("self")),
    "sgn": lambda c: c("identity" if c.out == "bool" else "sign", c.tensor("self")),
    "positive": unary("identity"),
    "detach": unary("stop_gradient"),
    "special_expit": unary("sigmoid"),
    "floor": _whole_or("floor"),
    "ceil": _whole_or("ceil"),
    "trunc": _whole_or("trunc"),
    "fix": _whole_or("trunc"),
    "round": _round,
    "special_round": _round,
    "frac": lambda c: c("subtract", c.tensor("self"), c("trunc", c.tensor("self"))),
    "exp2": lambda c: c("power", 2, c.cast(c.tensor("self"), c.out)),
    "special_exp2": lambda c: c("power", 2, c.cast(c.tensor("self"), c.out)),
    # arithmetic
    "add": _sum("add"),
    "sub": _sum("subtract"),
    "rsub": _sum("subtract", "other", "self"),
    "mul": _product,
    "div": _quotient,
    "floor_divide": binary("floor_divide"),
    "remainder": _remainder("divisor"),
    "fmod": _remainder("dividend"),
    "pow": _power,
    "float_power": _float_power,
    "maximum": lambda c: _extreme(c, "maximum", "logical_or"),
    "minimum": lambda c: _extreme(c, "minimum", "logical_and"),
    "max.other": lambda c: _extreme(c, "maximum", "logical_or"),
    "min.other": lambda c: _extreme(c, "minimum", "logical_and"),
    "clamp": _bounded,
    "clamp_min": _one_bound("maximum", "min"),
    "clamp_max": _one_bound("minimum", "max"),
    "addcmul": _scaled_sum("multiply"),
    "addcdiv": _scaled_sum("divide"),
    "lerp": _lerp,
    "hypot": lambda c: c("sqrt", c("add", *[c("square", x) for x in operands(c, "self", "other")])),
    # comparison and logic
    "eq": compare("equal"),
    "ne": compare("not_equal"),
    "lt": compare("less"),
    "le": compare("less_equal"),
    "gt": compare("greater"),
    "ge": compare("greater_equal"),
    "isnan": _test("isnan"),
    "isinf": _test("isinf"),
    "isposinf": _test("isinf", negative=False),
    "isneginf": _test("isinf", positive=False),
    "isfinite": _isfinite,
    "isreal": lambda c: c.broadcast(c.param(True, (), "bool"), c.tensor("self").shape),
    "signbit": _signbit,
    "logical_and": _logic("logical_and"),
    "logical_or": _logic("logical_or"),
    "logical_xor": _logic("logical_xor"),
    "logical_not": lambda c: c("logical_not", truth(c, c.tensor("self"))),
    "bitwise_and": _bits("logical_and", "bit_and"),
    "bitwise_or": _bits("logical_or", "bit_or"),
    "bitwise_xor": _bits("logical_xor", "bit_xor"),
    "bitwise_not": lambda c: c("logical_not" if c.out == "bool" else "bit_not", c.tensor("self")),
    "bitwise_left_shift": _shift("left"),
    "bitwise_right_shift": _shift("right"),
    "__and__": _bits("logical_and", "bit_and"),
    "__or__": _bits("logical_or", "bit_or"),
    "__xor__": _bits("logical_xor", "bit_xor"),
    "__lshift__": _shift("left"),
    "__rshift__": _shift("right"),
    "where": _where,
    "masked_fill": _masked_fill,
    # activations
    "celu": lambda c: c("celu", c.tensor("self"), alpha=c.number("alpha", 1.0)),
    "gelu": lambda c: c("gelu", c.tensor("self"), approximate=c.get("approximate", "none")),
    "leaky_relu": lambda c: c(
        "leaky_relu", c.tensor("self"), alpha=c.number("negative_slope", 0.01)
    ),
    "hardsigmoid": lambda c: c("hard_sigmoid", c.tensor("self"), alpha=1 / 6),
    "log_sigmoid": lambda c: c("log_sigmoid", c.tensor("self")),
    "softshrink": lambda c: c("soft_shrink", c.tensor("self"), threshold=c.number("lambd", 0.5)),
    "glu": lambda c: c("glu", c.tensor("self"), axis=c.whole("dim", -1)),
}
