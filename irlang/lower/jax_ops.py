"""How JAX spells operators on elements and along axes."""

from __future__ import annotations

import math
from typing import Any

from irlang.dtypes import DTYPES
from irlang.lower.call import Call, Native
from irlang.lower.jax_builder import JaxBuilder
from irlang.lower.labels import native
from irlang.lower.legalise import is_whole
from irlang.lower.spelling import default, functions, invoke, plain, powered
from irlang.lower.value import Value

Jax = Call[JaxBuilder]


def _signed(sign: str) -> Native:
    def rule(call: Jax) -> Value:
        return call.value(f" {sign} ".join(map(call.build.inner, call.values.values())))

    return Native(f"a {sign} b", rule)


def _chain(function: str) -> Native:
    """A function of two, over any number."""

    def rule(call: Jax) -> Value:
        text, *rest = [value.text for value in call.family("xs")]
        for other in rest:
            text = f"{function}({text}, {other})"
        return call.value(text)

    return Native(function, rule)


def two(call: Jax, text: str, second: str) -> list[Value]:
    """A call that gives values and, in another type, where they were."""
    values, where = call.build.several(text, "v", "v")
    places = Value(where, call.outputs[1].shape, second)
    return [Value(values, call.out.shape, call.out.dtype), call.build.cast(places, "i64")]


def whole(info: Any) -> bool:
    """Whether elements are integers."""
    return DTYPES[info.dtype].kind == "int"


def _of_wide(function: str) -> Native:
    """A function that is not there in 16 bits."""
    row = plain(function)
    return Native(
        function, lambda call: row.rule(call) if DTYPES[call.out.dtype].bits > 16 else None
    )


def _divide(call: Jax) -> Value | None:
    if whole(call.out):
        return None  # `jnp.divide` is that of reals
    return call.value(invoke("jnp.divide", *map(call.build.full, call.values.values())))


def _modulo(call: Jax) -> Value:
    function = {"divisor": "jnp.remainder", "dividend": "jnp.fmod"}[call["sign_of"]]
    return call.value(invoke(function, *map(call.build.full, call.values.values())))


def _clip(call: Jax) -> Value | None:
    low, high = call["low"], call["high"]
    bounds = {"min": None if low == -math.inf else low, "max": None if high == math.inf else high}
    if bounds == {"min": None, "max": None}:
        return None
    return call.value(invoke("jnp.clip", call.input("x"), **bounds))


def _isinf(call: Jax) -> Value | None:
    functions = {(True, True): "isinf", (False, True): "isposinf", (True, False): "isneginf"}
    function = functions.get((call["negative"], call["positive"]))
    return None if function is None else call.value(invoke(f"jnp.{function}", call.input("x")))


def _cast(call: Jax) -> Value:
    x = call.build.inner(call.input("x"))
    return call.value(f"{x}.astype({call.build.dtype(call.out.dtype)})")


def _shift(call: Jax) -> Value | None:
    if call["too_far"] != "open":
        return None
    logical = call["logical"] and call["direction"] == "right"
    if logical and not call.out.dtype.startswith("u"):
        values = [call.build.full(value) for value in call.values.values()]
        if values[0] and any(value.shape != call.out.shape for value in call.values.values()):
            return None  # `jax.lax` does not broadcast
        return call.value(invoke("jax.lax.shift_right_logical", *values))
    function = f"jnp.{call['direction']}_shift"
    return call.value(invoke(function, *map(call.build.full, call.values.values())))


# ---- activations


def _relu(call: Jax) -> Value | None:
    shape = float(call["max_value"]), float(call["negative_slope"]), float(call["threshold"])
    function = {(math.inf, 0.0, 0.0): "jax.nn.relu", (6.0, 0.0, 0.0): "jax.nn.relu6"}.get(shape)
    return None if function is None else call.value(invoke(function, call.input("x")))


def _gelu(call: Jax) -> Value:
    return call.value(
        invoke("jax.nn.gelu", call.input("x"), approximate=call["approximate"] == "tanh")
    )


def _softmax(function: str) -> Native:
    return plain(function, axis="axis")


# ---- reductions


def _axes(call: Jax) -> Any:
    """The axes as an argument, or nothing where none is meant: that would be all."""
    x = call.input("x")
    axes = call.axes_said("axes", x.rank) if x.rank else ()
    return (axes[0] if len(axes) == 1 else axes) if axes else None


def _said(call: Jax, axes: Any) -> Any:
    """The axes, where the program says them; without any it is all."""
    return axes if call.says("axes") else None


def _reduction(function: str, **more: str) -> Native:
    """more: attributes by the names of the function's arguments."""

    def rule(call: Jax) -> Value | None:
        axes = _axes(call)
        if axes is None:
            return None
        options: dict[str, Any] = {key: call[name] for key, name in more.items()}
        options["keepdims"] = call["keepdims"] or None
        return call.value(invoke(function, call.input("x"), axis=_said(call, axes), **options))

    return Native(function, rule)


def _typed(function: str) -> Native:
    """Sums and products, which of short integers would be in long ones."""

    def rule(call: Jax) -> Value | None:
        axes = _axes(call)
        if axes is None:
            return None
        dtype = call.build.dtype(call.out.dtype) if whole(call.out) else None
        options = {"dtype": dtype, "keepdims": call["keepdims"] or None}
        return call.value(invoke(function, call.input("x"), axis=_said(call, axes), **options))

    return Native(function, rule)


def _of_reals(row: Native) -> Native:
    """The same, for reals only."""
    return Native(row.spelling, lambda call: None if whole(call.out) else row.rule(call))


def _spread(function: str) -> Native:
    """Variance and deviation, where the divisor is positive."""

    def rule(call: Jax) -> Value | None:
        axes, x = _axes(call), call.input("x")
        if axes is None:
            return None
        count = math.prod(x.shape[axis] for axis in call.axes_said("axes", x.rank))
        if count <= call["correction"]:
            return None
        options = {"ddof": call["correction"] or None, "keepdims": call["keepdims"] or None}
        return call.value(invoke(function, x, axis=_said(call, axes), **options))

    return Native(function, rule)


def _norm(order: int) -> Native:
    def rule(call: Jax) -> Value | None:
        axes = _axes(call)
        if axes is None or whole(call.out):
            return None
        options = {"ord": order, "axis": axes, "keepdims": call["keepdims"] or None}
        return call.value(invoke("jnp.linalg.vector_norm", call.input("x"), **options))

    return Native("jnp.linalg.vector_norm", rule)


def _norm_of_any(call: Jax) -> Value | None:
    axes, p = _axes(call), call["p"]
    if axes is None:
        return None
    options = {"ord": int(p) if is_whole(p) else float(p), "axis": axes}
    options["keepdims"] = call["keepdims"] or None
    return call.value(invoke("jnp.linalg.vector_norm", call.input("x"), **options))


def _position(function: str) -> Native:
    def rule(call: Jax) -> Value | None:
        x = call.input("x")
        if call["select_last"] or x.dtype == "bool":
            return None
        keep = call["keepdims"] or None
        return call.value(invoke(function, x, axis=call.axis_said("axis", x.rank), keepdims=keep))

    return Native(function, rule)


def _scan(function: str) -> Native:
    """Axes are counted from the first in `jax.lax`."""

    def rule(call: Jax) -> Value | None:
        x = call.input("x")
        if call.node.attrs.get("exclusive"):
            return None
        reverse = call["reverse"] or None
        return call.value(invoke(function, x, axis=call.axis("axis", x.rank), reverse=reverse))

    return Native(function, rule)


def _extreme_so_far(function: str) -> Native:
    """JAX gives no places."""

    def rule(call: Jax) -> list[Value] | None:
        x = call.input("x")
        if call.wants("at"):
            return None
        reverse = call["reverse"] or None
        text = invoke(function, x, axis=call.axis("axis", x.rank), reverse=reverse)
        return [call.value(text)]

    return Native(function, rule)


# ---- order


def _sort(call: Jax) -> list[Value]:
    """NaN comes last; of a falling order first."""
    x = call.input("x")
    options = {"axis": call.axis_said("axis", x.rank), "descending": call["descending"] or None}
    places = call.value(invoke("jnp.argsort", x, **options), 1)
    return [call.value(invoke("jnp.sort", x, **options)), places]


def _top_k(call: Jax) -> list[Value] | None:
    x = call.input("x")
    if not call["largest"] or call["nans"] != "open" or x.dtype == "bool":
        return None
    last = call.axis("axis", x.rank) == x.rank - 1
    given = {"axis": None if last else call.axis_said("axis", x.rank)}
    return two(call, invoke("jax.lax.top_k", x, call["k"], **given), "i32")


_FUNCTIONS = (
    "negate=negative abs sign square reciprocal floor ceil round trunc sqrt exp expm1 log log1p "
    "sin cos tan asin=arcsin acos=arccos atan=arctan sinh cosh tanh asinh=arcsinh acosh=arccosh "
    "atanh=arctanh isnan isfinite logical_not maximum minimum floor_divide equal not_equal less "
    "less_equal greater greater_equal logical_and logical_or logical_xor where bit_and=bitwise_and "
    "bit_or=bitwise_or bit_xor=bitwise_xor bit_not=bitwise_not"
)

ELEMENTS: dict[str, Native] = {
    **{name: plain(f"jnp.{function}") for name, function in functions(_FUNCTIONS)},
    "rsqrt": plain("jax.lax.rsqrt"),
    "erf": plain("jax.lax.erf"),
    "erfc": plain("jax.lax.erfc"),
    "erfinv": plain("jax.lax.erf_inv"),
    "lgamma": plain("jax.scipy.special.gammaln"),
    "digamma": plain("jax.scipy.special.digamma"),
    "erfcx": plain("jax.scipy.special.erfcx"),
    **{name: _of_wide(f"jax.scipy.special.{name}") for name in ("ndtr", "log_ndtr", "ndtri")},
    "add": _signed("+"),
    "subtract": _signed("-"),
    "multiply": _signed("*"),
    "add_n": _signed("+"),
    "multiply_n": _signed("*"),
    "maximum_n": _chain("jnp.maximum"),
    "minimum_n": _chain("jnp.minimum"),
    "divide": Native("jnp.divide", _divide),
    "modulo": Native("jnp.remainder, jnp.fmod", _modulo),
    "power": powered("jnp.power"),
    "clip": Native("jnp.clip", _clip),
    "isinf": Native("jnp.isinf, jnp.isposinf, jnp.isneginf", _isinf),
    "cast": Native("Array.astype", _cast),
    "bit_shift": Native("jnp.left_shift, jnp.right_shift", _shift),
    "bit_count": plain("jax.lax.population_count"),
    "sigmoid": plain("jax.nn.sigmoid"),
    "relu": Native("jax.nn.relu, jax.nn.relu6", _relu),
    "leaky_relu": plain("jax.nn.leaky_relu", negative_slope="alpha"),
    "elu": plain("jax.nn.elu", alpha="alpha"),
    "selu": default("jax.nn.selu", alpha=1.6732632423543772, gamma=1.0507009873554805),
    "celu": plain("jax.nn.celu", alpha="alpha"),
    "gelu": Native("jax.nn.gelu", _gelu),
    "silu": default("jax.nn.silu", alpha=1),
    "mish": plain("jax.nn.mish"),
    "softplus": default("jax.nn.softplus", beta=1),
    "softsign": plain("jax.nn.soft_sign"),
    "hard_sigmoid": default("jax.nn.hard_sigmoid", alpha=1 / 6, beta=0.5),
    "hard_swish": default("jax.nn.hard_swish", alpha=1 / 6, beta=0.5),
    "hard_tanh": default("jax.nn.hard_tanh", min=-1, max=1),
    "log_sigmoid": plain("jax.nn.log_sigmoid"),
    "squareplus": plain("jax.nn.squareplus", b="b"),
    "sparse_plus": plain("jax.nn.sparse_plus"),
    "glu": plain("jax.nn.glu", axis="axis"),
    "softmax": _softmax("jax.nn.softmax"),
    "log_softmax": _softmax("jax.nn.log_softmax"),
    "reduce_sum": _typed("jnp.sum"),
    "reduce_prod": _typed("jnp.prod"),
    "reduce_mean": _of_reals(_reduction("jnp.mean")),
    "reduce_max": _reduction("jnp.max"),
    "reduce_min": _reduction("jnp.min"),
    "reduce_all": _reduction("jnp.all"),
    "reduce_any": _reduction("jnp.any"),
    "reduce_variance": _spread("jnp.var"),
    "reduce_std": _spread("jnp.std"),
    "reduce_logsumexp": _reduction("jax.nn.logsumexp"),
    "reduce_l1": _norm(1),
    "reduce_l2": _norm(2),
    "reduce_lp": Native("jnp.linalg.vector_norm", _norm_of_any),
    "argmax": _position("jnp.argmax"),
    "argmin": _position("jnp.argmin"),
    "cumsum": _scan("jax.lax.cumsum"),
    "cumprod": _scan("jax.lax.cumprod"),
    "logcumsumexp": _scan("jax.lax.cumlogsumexp"),
    "cummax": _extreme_so_far("jax.lax.cummax"),
    "cummin": _extreme_so_far("jax.lax.cummin"),
    "sort": Native("jnp.sort, jnp.argsort", _sort),
    "top_k": Native("jax.lax.top_k", _top_k),
    "einsum": native("jnp.einsum", repeats=True),
}
