"""The scalar functions as text that numba compiles: one template for integers, one for reals.

`{0}` and `{1}` stand for argument texts, each used once. What needs more than an expression is a
helper; its text goes into the kernel's own file, so that a kernel on disk depends on nothing else.
"""

from __future__ import annotations

from irlang.interp.kernel_elementary import HELPERS as ELEMENTARY

_INFIX = {name: f"({{0}} {name} {{1}})" for name in ("+", "-", "*")}
COMPARE = {name: f"({{0}} {name} {{1}})" for name in ("<", "<=", ">", ">=", "==", "!=")}

ON_INTEGERS: dict[str, str] = {
    **_INFIX,
    **COMPARE,
    "//": "whole_quotient({0}, {1})",
    "%": "whole_remainder({0}, {1})",
    "ceildiv": "(-whole_quotient(-{0}, {1}))",
    "neg": "(-{0})",
    "max": "max({0}, {1})",
    "min": "min({0}, {1})",
    "abs": "abs({0})",
    "sign": "whole_sign({0})",
    "sq": "whole_square({0})",
    "bit_and": "({0} & {1})",
    "bit_or": "({0} | {1})",
    "bit_xor": "({0} ^ {1})",
    "bit_not": "(~{0})",
    "shift_left": "({0} << min(max({1}, 0), 63))",
    "shift_right": "({0} >> min(max({1}, 0), 63))",
    "integer_power": "whole_power({0}, {1})",
    **dict.fromkeys(("int", "floor", "ceil", "round", "trunc"), "{0}"),
}

ON_REALS: dict[str, str] = {
    **_INFIX,
    **COMPARE,
    "/": "({0} / {1})",
    "//": "quotient({0}, {1})",
    "%": "remainder({0}, {1})",
    "ceildiv": "(-quotient(-{0}, {1}))",
    "neg": "(-{0})",
    "isnan": "math.isnan({0})",
    "isinf": "math.isinf({0})",
    "real": "{0}",
    **dict.fromkeys(("about", "constant", "approximate"), "{0}"),
    "int": "to_integer({0})",
    "max": "largest({0}, {1})",
    "min": "smallest({0}, {1})",
    "abs": "abs({0})",
    "sign": "sign({0})",
    "floor": "np.floor({0})",
    "ceil": "np.ceil({0})",
    "round": "np.rint({0})",
    "trunc": "np.trunc({0})",
    "rounded": "rounded({0}, {1}, {2})",
    "sq": "square({0})",
    "sqrt": "math.sqrt({0})",
    "rsqrt": "(1.0 / math.sqrt({0}))",
    "pow": "math.pow({0}, {1})",
    "sigmoid": "sigmoid({0})",
    "softplus": "softplus({0})",
    "logaddexp": "logaddexp({0}, {1})",
    **{name: f"{name}_of({{0}})" for name in ("exp", "expm1", "tanh", "erf")},
    **{
        name: f"math.{name}({{0}})"
        for name in (
            "log", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh",
            "acosh", "atanh", "erfc", "lgamma",
        )
    },
}  # fmt: skip

# Functions that can be compiled; the others are evaluated by NumPy.
COMPILED = frozenset({*ON_INTEGERS, *ON_REALS, "select", "and", "or", "not"})

HELPERS: dict[str, str] = {
    **ELEMENTARY,
    "whole_quotient": "def whole_quotient(a, b):\n    return a // b if b != 0 else 0\n",
    "whole_remainder": "def whole_remainder(a, b):\n    return a % b if b != 0 else 0\n",
    "whole_sign": "def whole_sign(a):\n    return 1 if a > 0 else (-1 if a < 0 else 0)\n",
    "whole_power": (
        "def whole_power(a, b):\n"
        "    result, base, rest = np.int64(1 if b >= 0 else 0), np.int64(a), b\n"
        "    while rest > 0:\n"
        "        if rest & 1:\n"
        "            result *= base\n"
        "        base *= base\n"
        "        rest >>= 1\n"
        "    return result\n"
    ),
    "whole_square": "def whole_square(a):\n    return a * a\n",
    "quotient": (
        "def quotient(a, b):\n"
        "    if b == 0.0:\n"
        "        return a / b\n"
        "    rest = np.fmod(a, b)\n"
        "    result = (a - rest) / b\n"
        "    if rest != 0.0 and (rest < 0.0) != (b < 0.0):\n"
        "        result -= 1.0\n"
        "    if math.isnan(result):\n"
        "        return result\n"
        "    floor = np.floor(result)\n"
        "    return floor + 1.0 if result - floor > 0.5 else floor\n"
    ),
    "remainder": (
        "def remainder(a, b):\n"
        "    rest = np.fmod(a, b)\n"
        "    if rest != 0.0 and (rest < 0.0) != (b < 0.0):\n"
        "        rest += b\n"
        "    return rest\n"
    ),
    "to_integer": (
        "def to_integer(a):\n"
        "    if -9223372036854775808.0 <= a < 9223372036854775808.0:\n"
        "        return np.int64(a)\n"
        "    return np.int64(-9223372036854775808)\n"
    ),
    "largest": "def largest(a, b):\n    return a if a >= b or a != a else b\n",
    "smallest": "def smallest(a, b):\n    return a if a <= b or a != a else b\n",
    "rounded": (
        "def rounded(a, digits, finest):\n"
        "    if not math.isfinite(a):\n"
        "        return a\n"
        "    unit = max(math.ldexp(1.0, math.frexp(a)[1] - int(digits)), finest)\n"
        "    return np.rint(a / unit) * unit\n"
    ),
    "sign": (
        "def sign(a):\n"
        "    return 1.0 if a > 0.0 else (-1.0 if a < 0.0 else (0.0 if a == 0.0 else a))\n"
    ),
    "plus": "def plus(a, b):\n    return a + b\n",
    "square": "def square(a):\n    return a * a\n",
    "softplus": (
        "def softplus(a):\n"
        "    if a > 0.0:\n"
        "        return a + math.log1p(exp_of(-a))\n"
        "    return math.log1p(exp_of(a))\n"
    ),
    "logaddexp": (
        "def logaddexp(a, b):\n"
        "    if a == b:\n"
        "        return a + 0.6931471805599453\n"
        "    return (a if a > b else b) + math.log1p(exp_of(-abs(a - b)))\n"
    ),
}

# What a compiler may do with a helper: in a polynomial products and sums may be fused, which is
# less rounding and half of the work; the terms of a sum may be added up in any order.
MATHEMATICS: dict[str, str] = {**dict.fromkeys(ELEMENTARY, '{"contract"}'), "plus": '{"reassoc"}'}
