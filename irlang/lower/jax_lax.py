"""JAX's further words of `jax.lax` for elements and along axes: what its functions after NumPy are
made of.

They broadcast nothing but single numbers, convert nothing, and are told every axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from irlang.lower.call import Call, Native
from irlang.lower.jax_builder import JaxBuilder
from irlang.lower.legalise import is_whole
from irlang.lower.spelling import functions, invoke, named
from irlang.lower.value import Value

Jax = Call[JaxBuilder]
_WIDE = ("f32", "f64")


def word(function: str, rule: Callable[[Jax, str], Value | Sequence[Value] | None]) -> Native:
    """A rule that is told its function, which stands in `jax.lax`."""
    name = f"jax.lax.{function}"
    return Native(name, lambda call: rule(call, name))


# ---- elements


def _alike(function: str, *more: str, only: tuple[str, ...] = (), **attributes: str) -> Native:
    """Of tensors of the result's shape. more: arguments behind; only: types that it has."""

    def rule(call: Jax, name: str) -> Value | None:
        values = [call.build.solid(value) for value in call.values.values()]
        lacking = bool(only) and call.out.dtype not in only
        if lacking or any(value.shape != call.out.shape for value in values):
            return None
        options = {key: call[given] for key, given in attributes.items()}
        return call.value(invoke(name, *values, *more, **options))

    return word(function, rule)


def _power(call: Jax, name: str) -> Value | None:
    """Of one type, whose exponent is no number that is known."""
    a, b = call.values["a"], call.values["b"]
    if a.dtype != b.dtype or a.shape != b.shape or call.out.kind != "real":
        return None
    return call.value(invoke(name, call.build.solid(a), call.build.solid(b)))


def _integer_power(call: Jax, name: str) -> Value | None:
    exponent = call.values["b"].literal if call.has("b") else 2
    base = call.input("a" if call.has("a") else "x")
    if exponent is None or not is_whole(float(exponent)) or abs(exponent) > _MOST_POWER:
        return None
    if (call.out.kind != "real" and exponent < 0) or base.dtype != call.out.dtype:
        return None
    return call.value(invoke(name, base, int(exponent)))


def _remainder(call: Jax, name: str) -> Value | None:
    a, b = (call.build.solid(value) for value in call.values.values())
    if call["sign_of"] != "dividend" or not a.shape == b.shape == call.out.shape:
        return None
    return call.value(invoke(name, a, b))


def _quotient(call: Jax, name: str) -> Value | None:
    """Of reals: of whole numbers what it gives where there is none is its own."""
    a, b = (call.build.solid(value) for value in call.values.values())
    if call.out.kind != "real" or not a.shape == b.shape == call.out.shape:
        return None
    return call.value(invoke(name, a, b))


def _clamp(call: Jax, name: str) -> Value | None:
    low, high, x = float(call["low"]), float(call["high"]), call.input("x")
    if call.out.kind != "real" or not x.rank:
        return None
    dtype = call.build.dtype(x.dtype)
    ends = (invoke("jnp.array", end, dtype) for end in (low, high))
    return call.value(invoke(name, next(ends), x, next(ends)))


def _select(call: Jax, name: str) -> Value | None:
    condition, a, b = (call.build.solid(value) for value in call.values.values())
    if not condition.shape == a.shape == b.shape:
        return None
    given = (b, a) if name.endswith("_n") else (a, b)
    return call.value(invoke(name, condition, *given))


def _converted(call: Jax, name: str) -> Value:
    return call.value(invoke(name, call.input("x"), call.build.dtype(call.out.dtype)))


def _shifted(call: Jax, name: str) -> Value | None:
    a, b = (call.build.solid(value) for value in call.values.values())
    left = name.endswith("left")
    if call["too_far"] != "open" or left != (call["direction"] == "left"):
        return None
    if (call["logical"] and not left) or not a.shape == b.shape == call.out.shape:
        return None
    return call.value(invoke(name, a, b))


def _rounded(call: Jax, name: str) -> Value:
    kind = "jax.lax.RoundingMethod.TO_NEAREST_EVEN"
    return call.value(invoke(name, call.input("x"), kind))


_MOST_POWER = 64
_UNARY = (
    "negate=neg abs sign square floor ceil sqrt exp expm1 log log1p sin cos tan asin acos atan "
    "sinh cosh tanh asinh acosh atanh exp2 cbrt isfinite=is_finite sigmoid=logistic digamma lgamma "
    "bit_not=bitwise_not logical_not=bitwise_not reciprocal"
)
_BINARY = (
    "add subtract=sub multiply=mul maximum=max minimum=min atan2 logical_and=bitwise_and "
    "logical_or=bitwise_or logical_xor=bitwise_xor bit_and=bitwise_and bit_or=bitwise_or "
    "bit_xor=bitwise_xor equal=eq not_equal=ne less=lt less_equal=le greater=gt greater_equal=ge"
)


# ---- reductions


def _reduced(call: Jax, name: str) -> Value | None:
    x = call.input("x")
    axes = call.axes("axes", x.rank) if x.rank else ()
    if not axes:
        return None
    shape = tuple(size for axis, size in enumerate(x.shape) if axis not in axes)
    found = Value(invoke(name, x, axes), shape, x.dtype)
    return call.build.reshape(found, call.out.shape)


def _folded(function: str, start: str) -> Callable[[Jax, str], Value | None]:
    """By a function of two, from a number on."""

    def rule(call: Jax, name: str) -> Value | None:
        x = call.input("x")
        axes = call.axes("axes", x.rank) if x.rank else ()
        if not axes or (call.out.kind != "real" and "inf" in start):
            return None
        shape = tuple(size for axis, size in enumerate(x.shape) if axis not in axes)
        first = invoke("jnp.array", start, call.build.dtype(x.dtype))
        found = Value(invoke(name, x, first, f"jax.lax.{function}", axes), shape, x.dtype)
        return call.build.reshape(found, call.out.shape)

    return rule


def _scanned(function: str) -> Callable[[Jax, str], Value | list[Value] | None]:
    """By an associative function, in pairs."""

    def rule(call: Jax, name: str) -> Value | list[Value] | None:
        x = call.input("x")
        if call.get("exclusive", False) or call.wants("at"):
            return None
        options = {"axis": call.axis("axis", x.rank), "reverse": call["reverse"] or None}
        found = call.value(invoke(name, function, x, **options))
        return [found] if len(call.outputs) > 1 else found

    return rule


def _position(call: Jax, name: str) -> Value | None:
    x = call.input("x")
    if call["select_last"] or x.dtype == "bool" or not x.rank:
        return None
    axis = call.axis("axis", x.rank)
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    found = Value(invoke(name, x, axis, call.build.dtype("i64")), shape, "i64")
    return call.build.reshape(found, call.out.shape)


# ---- order


def _numbered(call: Jax, x: Value, axis: int) -> str:
    dtype = call.build.dtype("i64")
    return invoke("jax.lax.broadcasted_iota", dtype, tuple(x.shape), axis)


def _sorted(call: Jax, name: str) -> list[Value] | None:
    """Keys and, beside them, where they were."""
    x = call.input("x")
    if call["descending"] or not x.rank:
        return None
    axis = call.axis("axis", x.rank)
    places = _numbered(call, x, axis)
    if name.endswith("key_val"):
        return named(call, invoke(name, x, places, dimension=axis))
    stable = None if call["stable"] else False
    options = {"dimension": axis, "is_stable": stable, "num_keys": 1}
    return named(call, invoke(name, (x, places), **options))


WORDS: dict[str, tuple[Native, ...]] = {
    **{name: (_alike(function),) for name, function in functions(f"{_UNARY} {_BINARY}")},
    "round": (word("round", _rounded),),
    "power": (word("pow", _power), word("integer_pow", _integer_power)),
    "square": (_alike("square"), word("integer_pow", _integer_power)),
    "modulo": (word("rem", _remainder),),
    "divide": (word("div", _quotient),),
    "clip": (word("clamp", _clamp),),
    "where": (word("select", _select), word("select_n", _select)),
    "cast": (word("convert_element_type", _converted),),
    "bit_shift": (
        word("shift_left", _shifted),
        word("shift_right_arithmetic", _shifted),
    ),
    "gammainc": (_alike("igamma", only=_WIDE),),
    "gammaincc": (_alike("igammac", only=_WIDE),),
    "reduce_sum": (word("reduce_sum", _reduced), word("reduce", _folded("add", "0"))),
    "reduce_prod": (word("reduce_prod", _reduced), word("reduce", _folded("mul", "1"))),
    "reduce_max": (word("reduce_max", _reduced), word("reduce", _folded("max", "-jnp.inf"))),
    "reduce_min": (word("reduce_min", _reduced), word("reduce", _folded("min", "jnp.inf"))),
    "reduce_all": (word("reduce_and", _reduced),),
    "reduce_any": (word("reduce_or", _reduced),),
    "cumsum": (word("associative_scan", _scanned("jnp.add")),),
    "cumprod": (word("associative_scan", _scanned("jnp.multiply")),),
    "cummax": (word("associative_scan", _scanned("jnp.maximum")),),
    "cummin": (word("associative_scan", _scanned("jnp.minimum")),),
    "logcumsumexp": (word("associative_scan", _scanned("jnp.logaddexp")),),
    "argmax": (word("argmax", _position),),
    "argmin": (word("argmin", _position),),
    "sort": (word("sort", _sorted), word("sort_key_val", _sorted)),
}
