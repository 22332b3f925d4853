"""Functions of elements that are made up of several: what the catalogue has no single call for."""

from __future__ import annotations

import math

from irlang.dtypes import DTYPES
from irlang.importers.torch_call import FLOATS, Call, Rule, Value
from irlang.importers.torch_elementwise import binary, choose, operands


def _log_base(base: int) -> Rule:
    return lambda c: c("divide", c("log", c.cast(c.tensor("self"), c.out)), math.log(base))


def _scaled(factor: float) -> Rule:
    return lambda c: c("multiply", c.cast(c.tensor("self"), c.out), factor)


def _product_or_zero(function: str) -> Rule:
    """The product self * f(other), 0 where self is 0, NaN where other is (xlogy and its like)."""

    def rule(c: Call) -> Value:
        a, b = operands(c, "self", "other")
        b = c.as_tensor(b, c.out)
        whole = c("multiply", a, c(function, b))
        zero = c("equal", c.as_tensor(a, c.out), 0)
        return choose(c, c("isnan", b), math.nan, c("where", zero, 0, whole))

    return rule


def _logaddexp(base: float) -> Rule:
    def rule(c: Call) -> Value:
        a, b = operands(c, "self", "other")
        if base != math.e:
            a, b = (c("multiply", item, math.log(base)) for item in (a, b))
        gap = c("softplus", c("negate", c("abs", c("subtract", a, b))))
        total = c("add", c("maximum", a, b), gap)
        same = c("logical_and", c("isinf", a), c("equal", a, b))
        total = c("where", same, a, total)
        return c("divide", total, math.log(base)) if base != math.e else total

    return rule


def _either(op: str) -> Rule:
    """The larger or smaller of two; where one is NaN, the other."""

    def rule(c: Call) -> Value:
        if c.out not in FLOATS:
            whole: Value = binary(op)(c)
            return whole
        a, b = operands(c, "self", "other")
        found = c(op, a, b)
        return c("where", c("isnan", a), b, c("where", c("isnan", b), a, found))

    return rule


def _nan_to_num(c: Call) -> Value:
    x = c.cast(c.tensor("self"), c.out)
    if c.out not in FLOATS:
        return c("identity", x)
    largest = DTYPES[c.out].largest
    high = c.get("posinf")
    low = c.get("neginf")
    y = c("where", c("isnan", x), c.get("nan") or 0.0, x)
    y = c("where", c("isinf", x, negative=False), largest if high is None else high, y)
    return c("where", c("isinf", x, positive=False), -largest if low is None else low, y)


def _copysign(c: Call) -> Value:
    a, b = operands(c, "self", "other")
    if not isinstance(b, Value):
        size = c("abs", a)
        return c("negate", size) if math.copysign(1, b) < 0 else size
    size = c("abs", c.as_tensor(a, c.out))
    return c("where", c("less", b, 0), c("negate", size), size)


def _heaviside(c: Call) -> Value:
    work = "u8" if c.out == "bool" else c.out
    x, v = operands(c, "self", "values", dtype=work)
    step = c("where", c("less", x, 0), c.param(0, (), work), 1)
    step = c("where", c("equal", x, 0), v, step)
    return c("where", c("isnan", x), x, step) if c.out in FLOATS else c.cast(step, c.out)


def _isclose(c: Call) -> Value:
    dtype = c.common(c.get("self"), c.get("other"))
    work = dtype if dtype in FLOATS else "f64"
    a, b = (c.cast(c.get(name), work) for name in ("self", "other"))
    bound = c("add", c("multiply", c("abs", b), c.number("rtol", 1e-5)), c.number("atol", 1e-8))
    near = c("less_equal", c("abs", c("subtract", a, b)), bound)
    finite = c("logical_not", c("isinf", b))
    same = c("logical_or", c("equal", a, b), c("logical_and", near, finite))
    if c.flag("equal_nan"):
        same = c("logical_or", same, c("logical_and", c("isnan", a), c("isnan", b)))
    return same


def _atan2(c: Call) -> Value:
    y, x = operands(c, "self", "other")
    y, x = c.as_tensor(y, c.out), c.as_tensor(x, c.out)
    angle = c("atan", c("divide", y, x))
    turn = c("where", c("less", y, 0), c("subtract", angle, math.pi), c("add", angle, math.pi))
    upright = c("multiply", c("sign", y), math.pi / 2)
    beside = c("where", c("less", x, 0), turn, upright)
    return c("where", c("greater", x, 0), angle, beside)


def _sinc(c: Call) -> Value:
    x = c.cast(c.tensor("self"), c.out)
    t = c("multiply", x, math.pi)
    return choose(c, c("equal", x, 0), 1, c("divide", c("sin", t), t))


def _angle(c: Call) -> Value:
    x = c.cast(c.tensor("self"), c.out)
    found = choose(c, c("less", x, 0), math.pi, c.param(0.0, (), c.out))
    return c("where", c("isnan", x), x, found)


def _logit(c: Call) -> Value:
    x = c.cast(c.tensor("self"), c.out)
    eps = c.get("eps")
    if eps is not None:
        x = c("clip", x, min=eps, max=1 - eps)
    return c("log", c("divide", x, c("subtract", 1, x)))


def _entropy(c: Call) -> Value:
    x = c.cast(c.tensor("self"), c.out)
    inner = choose(c, c("equal", x, 0), 0, c("negate", c("multiply", x, c("log", x))))
    low = choose(c, c("less", x, 0), -math.inf, inner)
    return c("where", c("isnan", x), x, low)


def _ldexp(c: Call) -> Value:
    a, b = operands(c, "self", "other")
    two = c.param(2.0, (), c.out)
    return c("multiply", a, c("power", two, b))


FUNCTIONS: dict[str, Rule] = {
    "log2": _log_base(2),
    "log10": _log_base(10),
    "deg2rad": _scaled(math.pi / 180),
    "rad2deg": _scaled(180 / math.pi),
    "sinc": _sinc,
    "special_sinc": _sinc,
    "logit": _logit,
    "special_logit": _logit,
    "special_entr": _entropy,
    "angle": _angle,
    "nan_to_num": _nan_to_num,
    "fmax": _either("maximum"),
    "fmin": _either("minimum"),
    "atan2": _atan2,
    "copysign": _copysign,
    "heaviside": _heaviside,
    "ldexp": _ldexp,
    "xlogy": _product_or_zero("log"),
    "special_xlog1py": _product_or_zero("log1p"),
    "logaddexp": _logaddexp(math.e),
    "logaddexp2": _logaddexp(2),
    "isclose": _isclose,
}
