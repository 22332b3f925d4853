"""How MXNet spells operators: `mx.np` where NumPy has them, `mx.npx` for those of networks."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

from irlang.lower.call import Call, Native
from irlang.lower.labels import native
from irlang.lower.legalise import Windows, around, windows
from irlang.lower.mx_builder import MxBuilder
from irlang.lower.spelling import invoke, plain
from irlang.lower.value import Value

Mx = Call[MxBuilder]
_MOST_SPACE = 3
_WIDE = ("f32", "f64")


def _signed(sign: str) -> Native:
    def rule(call: Mx) -> Value:
        return call.value(f" {sign} ".join(map(call.build.inner, call.values.values())))

    return Native(f"a {sign} b", rule)


def _divide(call: Mx) -> Value | None:
    if call.out.kind == "int":
        return None
    return call.value(" / ".join(map(call.build.inner, call.values.values())))


def _leaky(kind: str, attribute: str) -> Native:
    def rule(call: Mx) -> Value:
        slope = float(call[attribute])
        return call.value(
            invoke("mx.npx.leaky_relu", call.input("x"), act_type=f'"{kind}"', slope=slope)
        )

    return Native("mx.npx.leaky_relu", rule)


def _relu(call: Mx) -> Value | None:
    usual = (call["max_value"], call["negative_slope"], call["threshold"]) == (math.inf, 0, 0)
    return call.value(invoke("mx.npx.relu", call.input("x"))) if usual else None


def _gelu(call: Mx) -> Value | None:
    if call["approximate"] != "none":
        return None
    return call.value(invoke("mx.npx.leaky_relu", call.input("x"), act_type='"gelu"'))


def _clip(call: Mx) -> Value | None:
    low, high = call["min"], call["max"]
    if math.inf in (-low, high) or low > high:
        return None
    return call.value(invoke("mx.np.clip", call.input("x"), low, high))


def _reduction(function: str, **only: Any) -> Native:
    def rule(call: Mx) -> Value | None:
        x = call.input("x")
        if any(call[name] != value for name, value in only.items()) or call.out.kind != "real":
            return None
        axes = call.axes("axes", x.rank) if x.rank else ()
        if not axes:
            return None
        return call.value(invoke(function, x, axis=axes, keepdims=call["keepdims"] or None))

    return Native(function, rule)


def _position(function: str) -> Native:
    def rule(call: Mx) -> Value | None:
        x = call.input("x")
        if call["select_last"] or call["keepdims"] or not x.dtype.startswith("f"):
            return None
        text = invoke(function, x, axis=call.axis("axis", x.rank))
        return call.value(f'{text}.astype("int64")')

    return Native(function, rule)


def _cumsum(call: Mx) -> Value | None:
    x = call.input("x")
    if call["exclusive"] or call["reverse"] or call.out.kind != "real":
        return None
    return call.value(invoke("mx.np.cumsum", x, axis=call.axis("axis", x.rank)))


def _norm(call: Mx) -> Value | None:
    x = call.input("x")
    axes = call.axes("axes", x.rank) if x.rank else ()
    if not 1 <= len(axes) <= 2 or x.dtype not in _WIDE:
        return None
    axis: Any = axes[0] if len(axes) == 1 else axes
    order = None if len(axes) == 1 else '"fro"'
    keep = call["keepdims"] or None
    return call.value(invoke("mx.np.linalg.norm", x, ord=order, axis=axis, keepdims=keep))


def _modulo(call: Mx) -> Value | None:
    values = [call.build.full(value) for value in call.values.values()]
    own = call["sign_of"] == "divisor" and call.out.dtype in _WIDE
    return call.value(invoke("mx.np.mod", *values)) if own else None


def _power(call: Mx) -> Value | None:
    if call.out.dtype not in _WIDE or {v.dtype for v in call.values.values()} - {*_WIDE}:
        return None
    return call.value(invoke("mx.np.power", *map(call.build.full, call.values.values())))


def _activation(kind: str, **only: Any) -> Native:
    def rule(call: Mx) -> Value | None:
        if any(float(call[name]) != float(number) for name, number in only.items()):
            return None
        return call.value(invoke("mx.npx.activation", call.input("x"), act_type=f'"{kind}"'))

    return Native("mx.npx.activation", rule)


def _selu(call: Mx) -> Value | None:
    if (float(call["alpha"]), float(call["gamma"])) != (1.6732632423543772, 1.0507009873554805):
        return None
    return call.value(invoke("mx.npx.leaky_relu", call.input("x"), act_type='"selu"'))


# ---- shapes


def _reshape(call: Mx) -> Value:
    return call.build.reshape(call.input("x"), call.out.shape)


def _transpose(call: Mx) -> Value:
    return call.build.transpose(call.input("x"), tuple(call["order"]))


def _squeeze(call: Mx) -> Value | None:
    axes = call.axes("axes", call.input("x").rank)
    return call.value(invoke("mx.np.squeeze", call.input("x"), axis=axes)) if axes else None


def _expand_dims(call: Mx) -> Value | None:
    axes = call["axes"]
    if len(axes) != 1:
        return None
    return call.value(invoke("mx.np.expand_dims", call.input("x"), axes[0]))


def _joined(function: str, rank: int) -> Native:
    def rule(call: Mx) -> Value:
        values = call.family("xs")
        axis = call.axis("axis", values[0].rank + rank)
        listed = ", ".join(map(call.build.full, values))
        return call.value(f"{function}([{listed}], axis={axis})")

    return Native(function, rule)


def _tile(call: Mx) -> Value:
    return call.value(invoke("mx.np.tile", call.input("x"), tuple(call["repeats"])))


def _repeat(call: Mx) -> Value:
    x = call.input("x")
    return call.value(invoke("mx.np.repeat", x, call["repeats"], axis=call.axis("axis", x.rank)))


def _flip(call: Mx) -> Value | None:
    x = call.input("x")
    axes = call.axes("axes", x.rank)
    return call.value(invoke("mx.np.flip", x, axis=axes)) if axes else None


def _roll(call: Mx) -> Value | None:
    x = call.input("x")
    axes = call.axes("axes", x.rank)
    if not axes:
        return None
    return call.value(invoke("mx.np.roll", x, tuple(call["shift"]), axis=axes))


def _split(call: Mx) -> list[Value]:
    x = call.input("x")
    axis = call.axis("axis", x.rank)
    ends = tuple(accumulate(info.shape[axis] for info in call.outputs))[:-1]
    names = [call.build.names.fresh(name) for name in call.node.outputs]
    text = invoke("mx.np.split", x, str(list(ends)), axis=axis)
    call.build.lines.append(f"{', '.join(names)}{',' * (len(names) == 1)} = {text}")
    return [Value(n, info.shape, info.dtype) for n, info in zip(names, call.outputs, strict=True)]


def _lower(call: Mx) -> Value | None:
    x = call.input("x")
    if call["upper"] or x.dtype not in _WIDE:
        return None
    return call.value(invoke("mx.np.tril", x, call["k"]))


def _broadcast(call: Mx) -> Value:
    return call.value(invoke("mx.np.broadcast_to", call.input("x"), call.out.shape))


def _trace(call: Mx) -> Value | None:
    x = call.input("x")
    axes = call.axes("axes", x.rank)
    if x.dtype not in _WIDE:
        return None
    text = invoke("mx.np.trace", x, offset=call["offset"], axis1=axes[0], axis2=axes[1])
    return call.value(text)


def _take(call: Mx) -> Value | None:
    x, ids = call.input("x"), call.input("ids")
    if call["negative"] != "refused":
        return None
    options = {"axis": call.axis("axis", x.rank), "mode": '"clip"'}
    return call.value(invoke("mx.np.take", x, ids, **options))


def _one_hot(call: Mx) -> Value | None:
    ids = call.input("ids")
    last = call["axis"] in (-1, ids.rank) and call["negative"] == "off"
    if not last or call.out.dtype not in _WIDE:
        return None
    options = {"on_value": float(call["on"]), "off_value": float(call["off"])}
    dtype = call.build.dtype(call.out.dtype)
    return call.value(invoke("mx.npx.one_hot", ids, call["depth"], dtype=dtype, **options))


# ---- layers


def _matmul(call: Mx) -> Value | None:
    """Of matrices, and of a batch of them along one axis."""
    a, b = call.input("a"), call.input("b")
    if a.dtype not in _WIDE or a.rank != b.rank or a.rank not in (2, 3):
        return None
    if a.rank == 3:
        if a.shape[0] != b.shape[0]:
            return None
        options = {name: call[name] or None for name in ("transpose_a", "transpose_b")}
        return call.value(invoke("mx.npx.batch_dot", a, b, **options))
    sides = [
        call.build.transpose(value, (1, 0)) if call[f"transpose_{name}"] else value
        for name, value in (("a", a), ("b", b))
    ]
    return call.value(invoke("mx.np.dot", *sides))


def _dense(call: Mx) -> Value:
    """The weight has its axes in the other order."""
    x, w = call.input("x"), call.input("w")
    given = [x, call.build.transpose(w, (1, 0)), *([call.input("b")] if call.has("b") else [])]
    options = {"num_hidden": w.shape[1], "no_bias": not call.has("b"), "flatten": False}
    return call.value(invoke("mx.npx.fully_connected", *given, **options))


def _framed(call: Mx, number: float = 0.0) -> tuple[Value, Windows]:
    """The input and its windows; padding that is not the same at both ends made part of it."""
    x, frame = call.input("x"), windows(call)
    return (x, frame) if frame.symmetric else around(call, x, frame, number)


def _conv(call: Mx) -> Value | None:
    x, frame = _framed(call)
    if not 1 <= frame.rank <= _MOST_SPACE:
        return None
    given = [x, call.input("w"), *([call.input("b")] if call.has("b") else [])]
    options = {
        "kernel": frame.window, "stride": frame.stride, "dilate": frame.dilation,
        "pad": frame.before, "num_filter": call.out.shape[1], "num_group": call["groups"],
        "no_bias": not call.has("b"),
    }  # fmt: skip
    return call.value(invoke("mx.npx.convolution", *given, **options))


def _pool(kind: str) -> Native:
    def rule(call: Mx) -> Value | None:
        x, frame = call.input("x"), windows(call)
        plain_windows = 1 <= frame.rank <= _MOST_SPACE and set(frame.dilation) == {1}
        if not plain_windows or not frame.symmetric or call["ceil_mode"]:
            return None
        if x.dtype not in ("f32", "f64"):
            return None
        options: dict[str, Any] = {
            "kernel": frame.window, "stride": frame.stride, "pad": frame.before,
            "pool_type": f'"{kind}"',
        }  # fmt: skip
        if kind == "avg":
            options["count_include_pad"] = bool(call["count_include_pad"])
        return call.value(invoke("mx.npx.pooling", x, **options))

    return Native("mx.npx.pooling", rule)


def _global(kind: str) -> Native:
    def rule(call: Mx) -> Value | None:
        x = call.input("x")
        if not 1 <= x.rank - 2 <= _MOST_SPACE or not call["keepdims"] or x.dtype == "f16":
            return None
        kernel = (1,) * (x.rank - 2)
        options: dict[str, Any] = {"kernel": kernel, "global_pool": True, "pool_type": f'"{kind}"'}
        return call.value(invoke("mx.npx.pooling", x, **options))

    return Native("mx.npx.pooling", rule)


def _layer_norm(call: Mx) -> Value | None:
    x = call.input("x")
    axes = call.axes("axes", x.rank)
    scaled = call.has("gamma") and call.has("beta")
    if len(axes) != 1 or call["eps_to"] != "variance" or not scaled:
        return None
    given = [x, call.input("gamma"), call.input("beta")]
    return call.value(invoke("mx.npx.layer_norm", *given, axis=axes[0], eps=float(call["eps"])))


def _batch_norm(call: Mx) -> Value | None:
    x = call.input("x")
    names = ("scale", "bias", "mean", "var")
    if not all(map(call.has, names)) or call["eps"] < 1e-5 or x.rank < 2:
        return None
    options = {
        "eps": float(call["eps"]), "axis": call.axis("axis", x.rank), "fix_gamma": False,
        "use_global_stats": True,
    }  # fmt: skip
    return call.value(invoke("mx.npx.batch_norm", x, *map(call.input, names), **options))


def _embedding(call: Mx) -> Value:
    table = call.input("table")
    options = {"input_dim": table.shape[0], "output_dim": table.shape[1]}
    return call.value(invoke("mx.npx.embedding", call.input("ids"), table, **options))


def _softmax(function: str) -> Native:
    def rule(call: Mx) -> Value:
        x = call.input("x")
        return call.value(invoke(function, x, axis=call.axis("axis", x.rank)))

    return Native(function, rule)


_FUNCTIONS = (
    "negate=negative abs sign square reciprocal floor ceil trunc sqrt exp expm1 log log1p sin cos "
    "tan asin=arcsin acos=arccos atan=arctan sinh cosh tanh asinh=arcsinh acosh=arccosh "
    "atanh=arctanh maximum minimum equal not_equal less less_equal greater greater_equal"
)

TABLE: dict[str, Native] = {
    **{
        name: plain(f"mx.np.{function or name}")
        for name, _, function in (item.partition("=") for item in _FUNCTIONS.split())
    },
    "add": _signed("+"),
    "subtract": _signed("-"),
    "multiply": _signed("*"),
    "divide": Native("a / b", _divide),
    "relu": Native("mx.npx.relu", _relu),
    "leaky_relu": _leaky("leaky", "alpha"),
    "elu": _leaky("elu", "alpha"),
    "gelu": Native("mx.npx.leaky_relu", _gelu),
    "sigmoid": plain("mx.npx.sigmoid"),
    "clip": Native("mx.np.clip", _clip),
    "softmax": _softmax("mx.npx.softmax"),
    "log_softmax": _softmax("mx.npx.log_softmax"),
    "reduce_sum": _reduction("mx.np.sum"),
    "reduce_mean": _reduction("mx.np.mean"),
    "reduce_prod": _reduction("mx.np.prod"),
    "reduce_max": _reduction("mx.np.max"),
    "reduce_min": _reduction("mx.np.min"),
    "reduce_variance": _reduction("mx.np.var", correction=0),
    "reduce_std": _reduction("mx.np.std", correction=0),
    "reduce_l2": Native("mx.np.linalg.norm", _norm),
    "modulo": Native("mx.np.mod", _modulo),
    "power": Native("mx.np.power", _power),
    "softplus": _activation("softrelu", beta=1),
    "softsign": _activation("softsign"),
    "selu": Native("mx.npx.leaky_relu", _selu),
    "argmax": _position("mx.np.argmax"),
    "argmin": _position("mx.np.argmin"),
    "cumsum": Native("mx.np.cumsum", _cumsum),
    "einsum": native("mx.np.einsum", repeats=True),
    "reshape": Native("mx.np.reshape", _reshape),
    "flatten": Native("mx.np.reshape", _reshape),
    "transpose": Native("mx.np.transpose", _transpose),
    "squeeze": Native("mx.np.squeeze", _squeeze),
    "expand_dims": Native("mx.np.expand_dims", _expand_dims),
    "concat": _joined("mx.np.concatenate", 0),
    "stack": _joined("mx.np.stack", 1),
    "tile": Native("mx.np.tile", _tile),
    "repeat": Native("mx.np.repeat", _repeat),
    "reverse": Native("mx.np.flip", _flip),
    "roll": Native("mx.np.roll", _roll),
    "split": Native("mx.np.split", _split),
    "trilu": Native("mx.np.tril", _lower),
    "broadcast_to": Native("mx.np.broadcast_to", _broadcast),
    "trace": Native("mx.np.trace", _trace),
    "gather": Native("mx.np.take", _take),
    "one_hot": Native("mx.npx.one_hot", _one_hot),
    "matmul": Native("mx.np.dot, mx.npx.batch_dot", _matmul),
    "dense": Native("mx.npx.fully_connected", _dense),
    "conv": Native("mx.npx.convolution", _conv),
    "max_pool": _pool("max"),
    "avg_pool": _pool("avg"),
    "global_max_pool": _global("max"),
    "global_avg_pool": _global("avg"),
    "layer_norm": Native("mx.npx.layer_norm", _layer_norm),
    "batch_norm": Native("mx.npx.batch_norm", _batch_norm),
    "embedding": Native("mx.npx.embedding", _embedding),
}
