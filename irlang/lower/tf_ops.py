"""How TensorFlow spells operators on elements, shapes and axes."""

from __future__ import annotations

import math
from typing import Any

from irlang.dtypes import DTYPES
from irlang.lower.call import Call, Native
from irlang.lower.channels import channels_first, channels_last
from irlang.lower.legalise import filling, parts, spatial
from irlang.lower.spelling import default, functions, invoke, named, plain, reshaped
from irlang.lower.subscript import subscript
from irlang.lower.tf_builder import TensorFlowBuilder
from irlang.lower.value import Value

Tf = Call[TensorFlowBuilder]


def _signed(sign: str) -> Native:
    def rule(call: Tf) -> Value:
        return call.value(f" {sign} ".join(map(call.build.inner, call.values.values())))

    return Native(f"a {sign} b", rule)


def _chain(function: str) -> Native:
    def rule(call: Tf) -> Value:
        text, *rest = [value.text for value in call.family("xs")]
        for other in rest:
            text = f"{function}({text}, {other})"
        return call.value(text)

    return Native(function, rule)


def _divide(call: Tf) -> Value:
    whole = DTYPES[call.out.dtype].kind == "int"
    function = "tf.truncatediv" if whole else "tf.divide"
    return call.value(invoke(function, *map(call.build.full, call.values.values())))


def _modulo(call: Tf) -> Value | None:
    lacking = call.build.sloped or call.out.dtype in ("f16", "bf16")
    if lacking and call["sign_of"] == "dividend":
        return None  # there is no gradient, or no kernel
    function = {"divisor": "tf.math.floormod", "dividend": "tf.truncatemod"}[call["sign_of"]]
    return call.value(invoke(function, *map(call.build.full, call.values.values())))


def _clip(call: Tf) -> Value | None:
    low, high, x = call["low"], call["high"], call.input("x")
    if low == -math.inf and high == math.inf:
        return None
    if high == math.inf:
        return call.value(invoke("tf.maximum", x, low))
    if low == -math.inf:
        return call.value(invoke("tf.minimum", x, high))
    return call.value(invoke("tf.clip_by_value", x, low, high)) if low <= high else None


def _cast(call: Tf) -> Value:
    return call.value(invoke("tf.cast", call.input("x"), call.build.dtype(call.out.dtype)))


def _add_n(call: Tf) -> Value:
    values = call.family("xs")
    if all(value.shape == call.out.shape for value in values):
        return call.value(f"tf.add_n([{', '.join(map(call.build.full, values))}])")
    return _signed("+").rule(call)  # type: ignore[return-value]


def _relu(call: Tf) -> Value | None:
    shape = float(call["max_value"]), float(call["negative_slope"]), float(call["threshold"])
    function = {(math.inf, 0.0, 0.0): "tf.nn.relu", (6.0, 0.0, 0.0): "tf.nn.relu6"}.get(shape)
    return None if function is None else call.value(invoke(function, call.input("x")))


def _gelu(call: Tf) -> Value:
    approximate = call["approximate"] == "tanh"
    return call.value(invoke("tf.nn.gelu", call.input("x"), approximate=approximate or None))


# ---- reductions


def _reduction(function: str, **only: Any) -> Native:
    """Over the axes; `only` are attributes with the one value that the function has."""

    def rule(call: Tf) -> Value | None:
        x = call.input("x")
        if any(call[name] != value for name, value in only.items()):
            return None
        axes = call.axes_said("axes", x.rank) if x.rank else ()
        keep = call["keepdims"] or None
        which = str(list(axes)) if call.says("axes") or not axes else None
        return call.value(invoke(function, x, axis=which, keepdims=keep))

    return Native(function, rule)


def _position(function: str) -> Native:
    def rule(call: Tf) -> Value | None:
        x = call.input("x")
        if call["select_last"] or x.dtype == "bool":
            return None
        axis = call.axis_said("axis", x.rank)
        text = invoke(function, x, axis=axis)
        return call.value(invoke("tf.expand_dims", text, axis) if call["keepdims"] else text)

    return Native(function, rule)


def _scan(function: str) -> Native:
    def rule(call: Tf) -> Value:
        x = call.input("x")
        options = {"exclusive": call["exclusive"] or None, "reverse": call["reverse"] or None}
        return call.value(invoke(function, x, axis=call.axis_said("axis", x.rank), **options))

    return Native(function, rule)


def _top_k(call: Tf) -> list[Value] | None:
    x = call.input("x")
    first = call["largest"] and call["nans"] == "open"
    if not first or call.axis("axis", x.rank) != x.rank - 1:
        return None
    values, places = call.build.several(invoke("tf.math.top_k", x, call["k"]), "v", "v")
    found = Value(places, call.outputs[1].shape, "i32")
    return [Value(values, call.out.shape, x.dtype), call.build.cast(found, "i64")]


# ---- indexing


def _gather(call: Tf) -> Value | None:
    if call["negative"] != "refused":
        return None
    x, axis = call.input("x"), call.axis_said("axis", call.input("x").rank)
    return call.value(invoke("tf.gather", x, call.input("ids"), axis=axis or None))


def _take_along(call: Tf) -> Value | None:
    x = call.input("x")
    axis = call.axis("axis", x.rank)
    if call["negative"] != "refused" or axis != x.rank - 1:
        return None
    return call.value(invoke("tf.gather", x, call.input("ids"), axis=axis, batch_dims=axis))


def _gather_nd(call: Tf) -> Value | None:
    if call["negative"] != "refused" or not call.input("x").rank or call.input("ids").rank < 2:
        return None  # the gradient takes a vector for many positions of one index each
    options = {"batch_dims": call["batch_dims"] or None}
    return call.value(invoke("tf.gather_nd", call.input("x"), call.input("ids"), **options))


def _one_hot(call: Tf) -> Value | None:
    ids = call.input("ids")
    if call["negative"] != "off" or DTYPES[call.out.dtype].kind != "real":
        return None
    last = call["axis"] == -1  # the only axis that may be counted from the last
    options = {
        "on_value": float(call["on"]),
        "off_value": float(call["off"]),
        "axis": -1 if last else call.axis("axis", ids.rank + 1),
        "dtype": call.build.dtype(call.out.dtype),
    }
    return call.value(invoke("tf.one_hot", ids, call["depth"], **options))


# ---- shapes


def _flatten(call: Tf) -> Value:
    return call.value(invoke("tf.reshape", call.input("x"), str(list(call.out.shape))))


def _squeeze(call: Tf) -> Value | None:
    axes = call.axes_said("axes", call.input("x").rank)
    if not axes:
        return None
    which = str(list(axes)) if call.says("axes") else None
    return call.value(invoke("tf.squeeze", call.input("x"), axis=which))


def _expand_dims(call: Tf) -> Value | None:
    axes = call["axes"]
    return (
        call.value(invoke("tf.expand_dims", call.input("x"), axes[0])) if len(axes) == 1 else None
    )


def _transpose(call: Tf) -> Value:
    order = [str(list(call["order"]))] if call.says("perm") else []
    return call.value(invoke("tf.transpose", call.input("x"), *order))


def _joined(function: str, rank: int) -> Native:
    def rule(call: Tf) -> Value:
        values = call.family("xs")
        axis = call.axis_said("axis", values[0].rank + rank)
        listed = ", ".join(map(call.build.full, values))
        return call.value(f"{function}([{listed}], axis={axis})")

    return Native(function, rule)


def _split(call: Tf) -> list[Value]:
    x = call.input("x")
    axis = call.axis_said("axis", x.rank)
    text = invoke("tf.split", x, str(parts(call, x)), axis=axis)
    return named(call, text)


_MIRRORED = 5  # axes that the kernel of MirrorPad takes


def _pad(call: Tf) -> Value | None:
    x, mode = call.input("x"), call["mode"]
    pairs = [list(pair) for pair in zip(call["before"], call["after"], strict=True)]
    spelt = {"constant": None, "reflect": '"REFLECT"', "symmetric": '"SYMMETRIC"'}
    if mode != "constant" and x.rank > _MIRRORED:
        return None
    if mode not in spelt or any(amount < 0 for pair in pairs for amount in pair):
        return None
    fill = (filling(call) or None) if mode == "constant" and x.dtype != "bool" else None
    if x.dtype == "bool" and call["fill"]:
        return None
    return call.value(invoke("tf.pad", x, str(pairs), mode=spelt[mode], constant_values=fill))


def _repeat(call: Tf) -> Value:
    x = call.input("x")
    return call.value(invoke("tf.repeat", x, call["repeats"], axis=call.axis_said("axis", x.rank)))


def _repeat_each(call: Tf) -> Value:
    x, numbers = call.input("x"), list(call["repeats"])
    return call.value(invoke("tf.repeat", x, numbers, axis=call.axis_said("axis", x.rank)))


def _tile(call: Tf) -> Value:
    return call.value(invoke("tf.tile", call.input("x"), str(list(call["repeats"]))))


def _flip(call: Tf) -> Value:
    x = call.input("x")
    return call.value(invoke("tf.reverse", x, str(list(call.axes_said("axes", x.rank)))))


def _roll(call: Tf) -> Value | None:
    x = call.input("x")
    axes = call.axes_said("axes", x.rank)
    if not axes:
        return None
    return call.value(invoke("tf.roll", x, str(list(call["shift"])), axis=str(list(axes))))


def _broadcast(call: Tf) -> Value:
    return call.value(invoke("tf.broadcast_to", call.input("x"), str(list(call.out.shape))))


def _trilu(call: Tf) -> Value | None:
    """`band_part` keeps the diagonal always, so the triangle must hold it."""
    k, (rows, columns) = call["k"], call.out.shape[-2:]
    if call["upper"] and k <= 0:
        return call.value(invoke("tf.linalg.band_part", call.input("x"), min(-k, rows), -1))
    if not call["upper"] and k >= 0:
        return call.value(invoke("tf.linalg.band_part", call.input("x"), -1, min(k, columns)))
    return None


def _blocks(function: str) -> Native:
    def rule(call: Tf) -> Value | None:
        if call["mode"] != "dcr" or call["block_size"] == 1:
            return None
        x = channels_last(call, call.input("x"))
        n, c, *space = call.out.shape
        text = invoke(function, x, call["block_size"])
        return channels_first(call, Value(text, (n, *space, c), x.dtype))

    return Native(function, rule)


def _resize(call: Tf) -> Value | None:
    """Its cubic weights are from a table, unless it antialiases."""
    x, coord, antialias = call.input("x"), call["coord"], call["antialias"]
    if x.rank != 4 or x.dtype != "f32" or not spatial(call, x):
        return None
    if call["exclude_outside"] != antialias:
        return None
    if call["mode"] == "nearest":
        taken = (("half_pixel", "round_prefer_ceil"), ("tf_half_pixel_for_nn", "floor"))
        method = "nearest" if (coord, call["rounding"]) in taken else None
    elif call["mode"] == "linear":
        method = "bilinear" if coord == "half_pixel" else None
    else:
        own = coord == "half_pixel" and antialias and call["cubic_coeff"] == -0.5
        method = "bicubic" if own else None
    if method is None:
        return None
    inner = channels_last(call, x)
    n, c, *space = call.out.shape
    options = {"method": f'"{method}"', "antialias": antialias or None}
    text = invoke("tf.image.resize", inner, str(space), **options)
    return channels_first(call, Value(text, (n, *space, c), x.dtype))


_FUNCTIONS = (
    "negate=negative abs sign square reciprocal=math.reciprocal floor ceil=math.ceil round sqrt "
    "rsqrt=math.rsqrt exp expm1=math.expm1 log=math.log log1p=math.log1p sin cos tan asin acos "
    "atan sinh cosh tanh asinh acosh atanh erf=math.erf isnan=math.is_nan logical_not sigmoid "
    "maximum minimum floor_divide=math.floordiv equal not_equal less less_equal greater "
    "squared_difference=math.squared_difference greater_equal logical_and logical_or "
    "logical_xor=math.logical_xor where softsign=nn.softsign log_sigmoid=math.log_sigmoid "
    "erfc=math.erfc"
)

ELEMENTS: dict[str, Native] = {
    **{name: plain(f"tf.{function}") for name, function in functions(_FUNCTIONS)},
    "add": _signed("+"),
    "subtract": _signed("-"),
    "multiply": _signed("*"),
    "add_n": Native("tf.add_n", _add_n),
    "multiply_n": _signed("*"),
    "maximum_n": _chain("tf.maximum"),
    "minimum_n": _chain("tf.minimum"),
    "divide": Native("tf.divide, tf.truncatediv", _divide),
    "modulo": Native("tf.math.floormod, tf.truncatemod", _modulo),
    "clip": Native("tf.clip_by_value", _clip),
    "cast": Native("tf.cast", _cast),
    "relu": Native("tf.nn.relu, tf.nn.relu6", _relu),
    "leaky_relu": plain("tf.nn.leaky_relu", alpha="alpha"),
    "elu": default("tf.nn.elu", alpha=1),
    "selu": default("tf.nn.selu", alpha=1.6732632423543772, gamma=1.0507009873554805),
    "gelu": Native("tf.nn.gelu", _gelu),
    "silu": default("tf.nn.silu", alpha=1),
    "softplus": default("tf.math.softplus", beta=1),
    "reduce_sum": _reduction("tf.reduce_sum"),
    "reduce_mean": _reduction("tf.reduce_mean"),
    "reduce_prod": _reduction("tf.reduce_prod"),
    "reduce_max": _reduction("tf.reduce_max"),
    "reduce_min": _reduction("tf.reduce_min"),
    "reduce_all": _reduction("tf.reduce_all"),
    "reduce_any": _reduction("tf.reduce_any"),
    "reduce_variance": _reduction("tf.math.reduce_variance", correction=0),
    "reduce_std": _reduction("tf.math.reduce_std", correction=0),
    "reduce_logsumexp": _reduction("tf.reduce_logsumexp"),
    "reduce_l2": _reduction("tf.math.reduce_euclidean_norm"),
    "argmax": _position("tf.argmax"),
    "argmin": _position("tf.argmin"),
    "cumsum": _scan("tf.cumsum"),
    "cumprod": _scan("tf.math.cumprod"),
    "top_k": Native("tf.math.top_k", _top_k),
    "embedding": plain("tf.nn.embedding_lookup"),
    "gather": Native("tf.gather", _gather),
    "take_along_axis": Native("tf.gather", _take_along),
    "gather_nd": Native("tf.gather_nd", _gather_nd),
    "one_hot": Native("tf.one_hot", _one_hot),
    "reshape": reshaped("tf.reshape", lambda shape: str(list(shape))),
    "flatten": Native("tf.reshape", _flatten),
    "squeeze": Native("tf.squeeze", _squeeze),
    "expand_dims": Native("tf.expand_dims", _expand_dims),
    "transpose": Native("tf.transpose", _transpose),
    "concat": _joined("tf.concat", 0),
    "stack": _joined("tf.stack", 1),
    "split": Native("tf.split", _split),
    "pad": Native("tf.pad", _pad),
    "repeat": Native("tf.repeat", _repeat),
    "repeat_each": Native("tf.repeat", _repeat_each),
    "tile": Native("tf.tile", _tile),
    "reverse": Native("tf.reverse", _flip),
    "roll": Native("tf.roll", _roll),
    "slice": subscript(),
    "broadcast_to": Native("tf.broadcast_to", _broadcast),
    "trilu": Native("tf.linalg.band_part", _trilu),
    "space_to_depth": _blocks("tf.nn.space_to_depth"),
    "depth_to_space": _blocks("tf.nn.depth_to_space"),
    "resize": Native("tf.image.resize", _resize),
}
