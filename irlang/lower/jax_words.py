"""JAX's further words after NumPy and SciPy, which come by the same numbers another way."""

from __future__ import annotations

import math
from typing import Any

from irlang.lower.call import Call, Native
from irlang.lower.jax_builder import JaxBuilder
from irlang.lower.legalise import Windows, windows
from irlang.lower.spelling import default, exchanged, invoke, joined_as_numpy, of_wide, plain
from irlang.lower.value import Value

Jax = Call[JaxBuilder]
_WIDE = ("f32", "f64")


# ---- elements


def _pair(function: str, place: int, **only: Any) -> Native:
    """One of two results; only: attributes as the function has them."""

    def rule(call: Jax) -> Value | None:
        if any(call[name] != value for name, value in only.items()):
            return None
        values = [call.build.full(value) for value in call.values.values()]
        return call.value(f"{invoke(function, *values)}[{place}]")

    return Native(function, rule)


def _bit_count(call: Jax) -> Value | None:
    """Of the absolute value, as it is documented."""
    if not call.out.dtype.startswith("u"):
        return None
    found = invoke("jnp.bitwise_count", call.input("x"))
    return call.value(f"{found}.astype({call.build.dtype(call.out.dtype)})")


def _float_power(call: Jax) -> Value | None:
    """In 64 bits, whatever it is given."""
    a, b = call.values["a"], call.values["b"]
    if call.out.dtype != "f64" or a.dtype != "f64":
        return None
    return call.value(invoke("jnp.float_power", call.build.full(a), call.build.full(b)))


def _softplus(call: Jax) -> Value | None:
    x = call.input("x")
    return call.value(invoke("jnp.logaddexp", x, 0.0)) if call["beta"] == 1 else None


# ---- along axes


def _axis(function: str) -> Native:
    return plain(function, axis="axis")


def _log_sum(call: Jax) -> Value | None:
    x = call.input("x")
    axes = call.axes_said("axes", x.rank) if x.rank else ()
    if not axes:
        return None
    options = {"axis": axes[0] if len(axes) == 1 else axes, "keepdims": call["keepdims"] or None}
    return call.value(invoke("jax.scipy.special.logsumexp", x, **options))


def _running(function: str) -> Native:
    """Along an axis, in the order that it has."""

    def rule(call: Jax) -> Value | None:
        x = call.input("x")
        if call["exclusive"] or call["reverse"]:
            return None
        dtype = call.build.dtype(x.dtype) if call.out.kind == "int" else None
        return call.value(invoke(function, x, axis=call.axis_said("axis", x.rank), dtype=dtype))

    return Native(function, rule)


def _spread(function: str) -> Native:
    """With a correction, under the name that arrays of all libraries have for it."""

    def rule(call: Jax) -> Value | None:
        x = call.input("x")
        axes = call.axes_said("axes", x.rank) if x.rank else ()
        if not axes or math.prod(x.shape[axis] for axis in axes) <= call["correction"]:
            return None
        options = {"axis": axes, "correction": call["correction"], "keepdims": call["keepdims"]}
        return call.value(invoke(function, x, **options))

    return Native(function, rule)


def _median(call: Jax) -> Value | None:
    x = call.input("x")
    if call["q"] != 0.5 or call["interpolation"] != "linear":
        return None
    options = {"axis": call.axis_said("axis", x.rank), "keepdims": call["keepdims"] or None}
    return call.value(invoke("jnp.median", x, **options))


def _kth(call: Jax) -> list[Value]:
    """What a partition has at a place, and where it was."""
    x, k = call.input("x"), call["k"] - 1
    axis = call.axis("axis", x.rank)
    picked = f"[{':, ' * axis}{f'{k}:{k + 1}' if call['keepdims'] else k}]"
    found = []
    for number, function in enumerate(("jnp.partition", "jnp.argpartition")):
        text = f"{invoke(function, x, k, axis=axis)}{picked}"
        found.append(f"{text}.astype({call.build.dtype('i64')})" if number else text)
    return [call.value(text, number) for number, text in enumerate(found)]


def _neighbours(call: Jax) -> Value | None:
    x = call.input("x")
    if x.rank != 1 or call["n"] != 1 or not x.shape[0]:
        return None
    return call.value(invoke("jnp.ediff1d", x))


def _convolved(function: str) -> Native:
    """With what is turned round."""

    def rule(call: Jax) -> Value | None:
        a, b = call.input("a"), call.input("b")
        if call["mode"] != "full" and b.shape[0] > a.shape[0]:
            return None
        return call.value(
            invoke(function, a, f"{call.build.inner(b)}[::-1]", mode=f'"{call["mode"]}"')
        )

    return Native(function, rule)


def _searched(method: str) -> Native:
    """By a method that is told."""

    def rule(call: Jax) -> Value | None:
        row, x = call.input("row"), call.input("x")
        if row.rank != 1:
            return None
        side = '"right"' if call["right"] else '"left"'
        text = invoke("jnp.searchsorted", row, x, side=side, method=f'"{method}"')
        return call.build.cast(Value(text, call.out.shape, "i32"), "i64")

    return Native(f"jnp.searchsorted, {method}", rule)


def _placed(method: str) -> Native:
    """Among boundaries, by a method that is told."""

    def rule(call: Jax) -> Value:
        x = call.input("x")
        table = f"jnp.array({list(map(float, call['boundaries']))}, {call.build.dtype(x.dtype)})"
        side = '"right"' if call["right"] else '"left"'
        text = invoke("jnp.searchsorted", table, x, side=side, method=f'"{method}"')
        return call.build.cast(Value(text, x.shape, "i32"), "i64")

    return Native(f"jnp.searchsorted, {method}", rule)


def _among(method: str) -> Native:
    def rule(call: Jax) -> Value:
        options = {"invert": call["invert"] or None, "method": f'"{method}"'}
        return call.value(invoke("jnp.isin", call.input("x"), call.input("values"), **options))

    return Native(f"jnp.isin, {method}", rule)


# ---- shapes and diagonals


def _as_matrix(more: int) -> Native:
    def rule(call: Jax) -> Value | None:
        x = call.input("x")
        if x.rank + more != 2 or call.axes("axes", 2) != (0, 1):
            return None
        return call.value(invoke("jnp.diag", x, call["offset"]))

    return Native("jnp.diag", rule)


def _triangle(call: Jax) -> Value | None:
    """Where a triangle of truths holds."""
    x, k = call.input("x"), call["k"]
    m, n = x.shape[-2:]
    text = invoke("jnp.tri", m, n, k - 1 if call["upper"] else k, "bool")
    zero = invoke("jnp.zeros", (), call.build.dtype(x.dtype))
    given = (zero, x) if call["upper"] else (x, zero)
    return call.value(invoke("jnp.where", text, *given))


def _identity(call: Jax) -> Value | None:
    if call["rows"] != call["columns"] or call["k"]:
        return None
    return call.value(invoke("jnp.identity", call["rows"], call.build.dtype(call.out.dtype)))


# ---- products and systems of equations


def _plain_matmul(function: str) -> Native:
    def rule(call: Jax) -> Value | None:
        a, b = call.input("a"), call.input("b")
        if call["transpose_a"] or call["transpose_b"] or a.rank != 2 or b.rank != 2:
            return None
        return call.value(invoke(function, a, b))

    return Native(function, rule)


def _rows_by_matrix(call: Jax) -> Value:
    """Each a vector."""
    text = invoke("jnp.vecmat", call.input("x"), call.input("w"))
    return call.value(f"{text} + {call.build.inner(call.input('b'))}" if call.has("b") else text)


def _vector_product(function: str) -> Native:
    def rule(call: Jax) -> Value | None:
        a, b = call.input("a"), call.input("b")
        known = call.out.kind == "real" and a.rank == b.rank == 1
        return call.value(invoke(function, a, b)) if known else None

    return Native(function, rule)


def _cholesky(call: Jax) -> Value:
    """Of the triangle that is told, alone."""
    text = invoke("jax.lax.linalg.cholesky", call.input("x"), symmetrize_input=False)
    return call.value(text)


def _by_factors(call: Jax) -> Value | None:
    a, b = call.input("a"), call.input("b")
    if a.rank != 2 or b.rank != 2 or 0 in (*a.shape, *b.shape):
        return None
    factors = invoke("jax.scipy.linalg.lu_factor", a)
    return call.value(invoke("jax.scipy.linalg.lu_solve", factors, b))


def _of_matrix(function: str) -> Native:
    """Of one matrix alone."""

    def rule(call: Jax) -> Value | None:
        values = [call.build.solid(value) for value in call.values.values()]
        if values[0].rank != 2 or 0 in values[0].shape:
            return None
        return call.value(invoke(function, *values))

    return of_wide(Native(function, rule))


def _triangular(call: Jax) -> Value | None:
    a, b = call.input("a"), call.input("b")
    if a.rank != b.rank or 0 in (*a.shape, *b.shape):
        return None
    options = {"lower": call["lower"], "unit_diagonal": call["unit_diagonal"] or None}
    return call.value(invoke("jax.scipy.linalg.solve_triangular", a, b, **options))


# ---- windows


def _pairs(frame: Windows) -> str:
    return str(list(zip(frame.before, frame.after, strict=True)))


_LAST = {1: ("NHC", "HIO", "NHC"), 2: ("NHWC", "HWIO", "NHWC"), 3: ("NDHWC", "DHWIO", "NDHWC")}


def _conv_last(call: Jax) -> Value | None:
    """With the channels last."""
    x, w, frame = call.input("x"), call.input("w"), windows(call)
    if not 1 <= frame.rank <= 3:
        return None
    build, (n, f, *space) = call.build, call.out.shape
    inner = build.transpose(x, (0, *range(2, x.rank), 1))
    kernel = build.transpose(w, (*range(2, w.rank), 1, 0))
    axes = ", ".join(f'"{names}"' for names in _LAST[frame.rank])
    text = invoke(
        "jax.lax.conv_general_dilated", inner, kernel, frame.stride, _pairs(frame),
        rhs_dilation=frame.dilation, dimension_numbers=f"({axes})",
        feature_group_count=None if call["groups"] == 1 else call["groups"],
    )  # fmt: skip
    if call.has("b"):
        text = f"{text} + {build.inner(call.input('b'))}"
    found = Value(text, (n, *space, f), x.dtype, atom=not call.has("b"))
    last = build.let(found, "last")
    return build.transpose(last, (0, last.rank - 1, *range(1, last.rank - 1)))


def _patches(call: Jax) -> Value | None:
    x = call.input("x")
    if call.out.kind != "real" or not 3 <= x.rank <= 5 or not x.shape[1]:
        return None
    pairs = list(zip(map(int, call["before"]), map(int, call["after"]), strict=True))
    text = invoke(
        "jax.lax.conv_general_dilated_patches", x, tuple(call["window"]), tuple(call["stride"]),
        str(pairs), rhs_dilation=tuple(call["dilation"]),
    )  # fmt: skip
    n, rows, _ = call.out.shape
    found = Value(text, (n, rows, *call["O"]), x.dtype)
    return call.build.reshape(found, call.out.shape)


def _local(call: Jax) -> Value | None:
    """A kernel for every place, whose elements stand in one axis."""
    x, w, frame = call.input("x"), call.input("w"), windows(call)
    if not 1 <= frame.rank <= 2 or 0 in (*call.out.shape, *w.shape):
        return None
    (_, filters, *inner), space = w.shape, call.out.shape[2:]
    flat = call.build.reshape(w, (*space, filters, math.prod(inner)))
    order = (frame.rank, frame.rank + 1, *range(frame.rank))
    kernel = call.build.transpose(flat, order)
    text = invoke(
        "jax.lax.conv_general_dilated_local", x, kernel, frame.stride, _pairs(frame),
        filter_shape=tuple(w.shape[3:]),
    )  # fmt: skip
    if not call.has("b"):
        return call.value(text)
    b = call.build.reshape(call.input("b"), (*space, filters))
    bias = call.build.transpose(b, (frame.rank, *range(frame.rank)))
    return call.value(f"{text} + {call.build.inner(bias)}")


WORDS: dict[str, Native | tuple[Native, ...]] = {
    "sigmoid": plain("jax.scipy.special.expit"),
    **{name: plain(f"jax.scipy.special.{name}") for name in ("erf", "erfc", "erfinv")},
    "softmax": _axis("jax.scipy.special.softmax"),
    "log_softmax": _axis("jax.scipy.special.log_softmax"),
    "tanh": plain("jax.nn.tanh"),
    "silu": default("jax.nn.swish", alpha=1),
    "hard_swish": default("jax.nn.hard_silu", alpha=1 / 6, beta=0.5),
    "softplus": Native("jnp.logaddexp", _softplus),
    "trunc": _pair("jnp.modf", 1),
    "frac": _pair("jnp.modf", 0),
    "round": plain("jnp.rint"),
    "abs": plain("jnp.absolute"),
    "floor_divide": _pair("jnp.divmod", 0),
    "modulo": _pair("jnp.divmod", 1, sign_of="divisor"),
    "power": Native("jnp.float_power", _float_power),
    "bit_count": Native("jnp.bitwise_count", _bit_count),
    "deg2rad": plain("jnp.radians"),
    "rad2deg": plain("jnp.degrees"),
    "reduce_logsumexp": Native("jax.scipy.special.logsumexp", _log_sum),
    "reduce_variance": _spread("jnp.var"),
    "reduce_std": _spread("jnp.std"),
    "cumsum": _running("jnp.cumsum"),
    "cumprod": _running("jnp.cumprod"),
    "quantile": Native("jnp.median", _median),
    "kth_value": Native("jnp.partition, jnp.argpartition", _kth),
    "differences": Native("jnp.ediff1d", _neighbours),
    "correlate": _convolved("jnp.convolve"),
    "searchsorted": (_searched("sort"), _searched("compare_all"), _searched("scan_unrolled")),
    "bucketize": (_placed("scan"), _placed("sort"), _placed("compare_all")),
    "isin": (_among("sort"), _among("compare_all"), _among("binary_search")),
    "transpose": exchanged("jnp.swapaxes", "jnp.moveaxis"),
    "concat": joined_as_numpy("jnp"),
    "diagonal": _as_matrix(0),
    "diag_embed": _as_matrix(1),
    "trilu": Native("jnp.tri", _triangle),
    "eye": Native("jnp.identity", _identity),
    "matmul": _plain_matmul("jnp.dot"),
    "dense": Native("jnp.vecmat", _rows_by_matrix),
    "inner": (_vector_product("jnp.vdot"), _vector_product("jnp.vecdot")),
    "cholesky": of_wide(Native("jax.lax.linalg.cholesky", _cholesky)),
    "inverse": _of_matrix("jax.scipy.linalg.inv"),
    "solve": (
        _of_matrix("jax.scipy.linalg.solve"),
        of_wide(Native("jax.scipy.linalg.lu_solve", _by_factors)),
    ),
    "determinant": _of_matrix("jax.scipy.linalg.det"),
    "triangular_solve": of_wide(Native("jax.scipy.linalg.solve_triangular", _triangular)),
    "conv": Native("jax.lax.conv_general_dilated, channels last", _conv_last),
    "im2col": Native("jax.lax.conv_general_dilated_patches", _patches),
    "locally_connected": Native("jax.lax.conv_general_dilated_local", _local),
}
