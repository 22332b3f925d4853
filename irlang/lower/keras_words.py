"""Keras 3's further words: functions beside layers, and layers beside functions.

They compute the same by other code: a layer infers shapes of its own, casts and broadcasts itself,
and a function is told along which axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from irlang.lower.call import Native
from irlang.lower.channels import channels_first, channels_last
from irlang.lower.keras_call import KERAS_3, Keras, layer, quoted, sizes, three, weighted
from irlang.lower.keras_frames import alike, either_steps, framed, laid, layout, result, steps_of
from irlang.lower.keras_ops import MOST_AXES, activations, reduction
from irlang.lower.keras_windows import deconvolved
from irlang.lower.legalise import spatial
from irlang.lower.spelling import exchanged, invoke, joined_as_numpy, plain
from irlang.lower.value import Value

_PLANE = 2  # axes of an image


def _word(spelling: str, rule: Callable[[Keras], Any], since: tuple[int, ...] = KERAS_3) -> Native:
    return Native(spelling, rule, since=since)


# ---- elements


def _layered(kind: str) -> Native:
    """A layer of several tensors, which are of one shape, as it is documented."""

    def rule(call: Keras) -> Value | None:
        values = [call.build.solid(value) for value in call.values.values()]
        one = len({value.shape for value in values}) == 1 and values[0].rank > 0
        return call.value(layer(call, kind, *values)) if one and call.out.kind == "real" else None

    return _word(f"keras.layers.{kind}", rule)


def _relu(call: Keras) -> Value | None:
    shape = float(call["max_value"]), float(call["negative_slope"]), float(call["threshold"])
    function = {(math.inf, 0.0, 0.0): "ops.relu", (6.0, 0.0, 0.0): "ops.relu6"}.get(shape)
    return None if function is None else call.value(invoke(function, call.input("x")))


def _softmax(call: Keras) -> Value | None:
    x = call.input("x")
    if x.rank > MOST_AXES:
        return None
    return call.value(invoke("ops.softmax", x, axis=call.axis_said("axis", x.rank)))


def _repeat_each(call: Keras) -> Value:
    x, numbers = call.input("x"), list(call["repeats"])
    return call.value(invoke("ops.repeat", x, numbers, axis=call.axis_said("axis", x.rank)))


def _threshold(call: Keras) -> Value:
    return call.value(invoke("ops.threshold", call.input("x"), float(call["theta"]), 0.0))


_ELEMENTS: dict[str, Native] = {
    # those but mish, of which there is no function among the operations
    **{name: row for name, row in activations("ops").items() if name != "mish"},
    "add": _layered("Add"),
    "subtract": _layered("Subtract"),
    "multiply": _layered("Multiply"),
    "maximum": _layered("Maximum"),
    "minimum": _layered("Minimum"),
    "relu": _word("ops.relu", _relu),
    "leaky_relu": three(plain("ops.leaky_relu", negative_slope="alpha")),
    "elu": three(plain("ops.elu", alpha="alpha")),
    "thresholded_relu": _word("ops.threshold", _threshold),
    "softmax": _word("ops.softmax", _softmax),
    "reduce_max": reduction("ops.amax"),
    "reduce_min": reduction("ops.amin"),
}


# ---- moments


def _moment(place: int, **only: Any) -> Native:
    """One of the two moments, which are computed together."""

    def rule(call: Keras) -> Value | None:
        x = call.input("x")
        axes = call.axes_said("axes", x.rank) if x.rank else ()
        if not axes or call.out.kind != "real":
            return None
        if any(call[name] != value for name, value in only.items()):
            return None
        text = invoke("ops.moments", x, axes=axes, keepdims=call["keepdims"] or None)
        return call.value(f"{text}[{place}]")

    return _word("ops.moments", rule)


# ---- shapes


def _reshape(call: Keras) -> Value:
    return call.value(invoke("ops.reshape", call.input("x"), tuple(call["shape"])))


def _flatten(call: Keras) -> Value:
    return call.build.reshape(call.input("x"), call.out.shape)


def _concat(call: Keras) -> Value:
    values = call.family("xs")
    listed = ", ".join(map(call.build.full, values))
    return call.value(f"ops.concatenate([{listed}], {call.axis_said('axis', values[0].rank)})")


def _crop(call: Keras) -> Value:
    begin = tuple(map(int, call["before"]))
    return call.value(invoke("ops.slice", call.input("x"), begin, call.out.shape))


def _upsample(call: Keras) -> Value | None:
    x = call.input("x")
    if x.rank != _PLANE + 2 or x.dtype != "f32":
        return None
    n, c, *space = call.out.shape
    options = {"interpolation": quoted("nearest"), "data_format": quoted("channels_last")}
    text = invoke("keras.ops.image.resize", channels_last(call, x), tuple(space), **options)
    return channels_first(call, Value(text, (n, *space, c), x.dtype))


def _resize(call: Keras) -> Value | None:
    x = call.input("x")
    if x.rank != _PLANE + 2 or x.dtype != "f32" or not spatial(call, x):
        return None
    usual = call["mode"] == "linear" and call["coord"] == "half_pixel"
    if not usual or call["antialias"] or call["exclude_outside"]:
        return None
    n, c, *space = call.out.shape
    options = {"interpolation": quoted("bilinear"), "data_format": quoted("channels_last")}
    inner = channels_last(call, x)
    text = layer(call, "Resizing", inner, height=space[0], width=space[1], **options)
    return channels_first(call, Value(text, (n, *space, c), x.dtype))


# ---- products


def _with_bias(call: Keras, text: str, first: bool) -> str:
    """With the bias, behind a function that takes none."""
    if not call.has("b"):
        return text
    b = call.input("b")
    if first:
        b = call.build.reshape(b, (b.shape[0], *[1] * (len(call.out.shape) - 2)))
    return invoke("ops.add", text, b)


def _windowed(call: Keras, text: str) -> Value:
    return result(call, _with_bias(call, text, bool(layout(call))), call.out.shape)


def _conv(call: Keras) -> Value | None:
    x, frame, padding = framed(call)
    steps, w = either_steps(frame), call.input("w")
    if not 1 <= frame.rank <= 3 or steps is None:
        return None
    kernel = call.build.transpose(w, (*range(2, w.rank), 1, 0))
    options = {"padding": padding, **steps, **layout(call)}
    return _windowed(call, invoke("ops.conv", laid(call, x), kernel, **options))


def _conv_transpose(call: Keras) -> Value | None:
    def function(call: Keras, kernel: Value, options: Mapping[str, Any]) -> str:
        text = invoke("ops.conv_transpose", laid(call, call.input("x")), kernel, **options)
        return _with_bias(call, text, bool(layout(call)))

    return deconvolved(call, function)


def _patches(call: Keras) -> Value | None:
    """All channels of a place of the window before the next place's."""
    x, window = call.input("x"), tuple(call["window"])
    if x.dtype != "f32" or len(window) != _PLANE or any((*call["before"], *call["after"])):
        return None
    steps = {
        "strides": sizes(call["stride"]),
        "dilation_rate": sizes(call["dilation"]),
        "padding": quoted("valid"),
        "data_format": quoted("channels_last"),
    }
    inner = channels_last(call, x)
    n, c, count = x.shape[0], x.shape[1], math.prod(window)
    found = invoke("ops.image.extract_patches", inner, sizes(window), **steps)
    flat = call.build.reshape(
        Value(found, (n, *call["O"], count * c), x.dtype), (n, math.prod(call["O"]), count, c)
    )
    turned = call.build.transpose(flat, (0, 3, 2, 1))
    return call.build.reshape(turned, call.out.shape)


def _depthwise(call: Keras) -> Value | None:
    x, frame, padding = framed(call)
    if not 1 <= frame.rank <= _PLANE or not alike(frame.stride):
        return None
    w = call.input("w")
    kernel = call.build.transpose(w, (*range(2, w.rank), 0, 1))
    options = {"padding": padding, **steps_of(frame), **layout(call)}
    return _windowed(call, invoke("ops.depthwise_conv", laid(call, x), kernel, **options))


def _separable(call: Keras) -> Value | None:
    x, frame, padding = framed(call)
    if not 1 <= frame.rank <= _PLANE or not alike(frame.stride):
        return None
    w, p = call.input("w"), call.input("p")
    kernel = call.build.transpose(w, (*range(2, w.rank), 0, 1))
    turned = call.build.transpose(p, (1, 0))
    point = call.build.reshape(turned, (*[1] * frame.rank, *turned.shape))
    options = {"padding": padding, **steps_of(frame), **layout(call)}
    return _windowed(call, invoke("ops.separable_conv", laid(call, x), kernel, point, **options))


def _dense(call: Keras) -> Value | None:
    """A layer that is told of its product by an equation."""
    x, w = call.input("x"), call.input("w")
    if x.rank < 2:
        return None
    options: dict[str, Any] = {"output_shape": w.shape[1]}
    options |= {"bias_axes": quoted("y")} if call.has("b") else {}
    weights = [w, *([call.input("b")] if call.has("b") else [])]
    equation = quoted("...x,xy->...y")
    return call.value(weighted(call, "EinsumDense", weights, x, equation=equation, **options))


def _dense_by_function(call: Keras) -> Value:
    text = invoke("ops.dot", call.input("x"), call.input("w"))
    return call.value(_with_bias(call, text, first=False))


def _matmul(call: Keras) -> Value | None:
    """A layer that takes samples of matrices, of which it is told what is contracted."""
    a, b = call.input("a"), call.input("b")
    if a.rank != 3 or b.rank != 3 or a.shape[0] != b.shape[0]:
        return None
    axes = (1 if call["transpose_a"] else 2, 2 if call["transpose_b"] else 1)
    return call.value(layer(call, "Dot", a, b, axes=axes))


# ---- norms


def _batch_norm(call: Keras) -> Value:
    x = call.input("x")
    given = [call.input(name) for name in ("mean", "var")]
    options = {
        "axis": call.axis_said("axis", x.rank),
        "offset": call.input("bias") if call.has("bias") else None,
        "scale": call.input("scale") if call.has("scale") else None,
        "epsilon": float(call["eps"]),
    }
    return call.value(invoke("ops.batch_normalization", x, *given, **options))


def _layer_norm(call: Keras) -> Value | None:
    x = call.input("x")
    said = call.axes_said("axes", x.rank)
    if call["eps_to"] != "variance" or not said or list(said) != sorted(said):
        return None
    if list(call.axes("axes", x.rank)) != sorted(call.axes("axes", x.rank)):
        return None
    options = {
        "gamma": call.input("gamma") if call.has("gamma") else None,
        "beta": call.input("beta") if call.has("beta") else None,
        "axis": said[0] if len(said) == 1 else str(list(said)),
        "epsilon": float(call["eps"]),
    }
    return call.value(invoke("ops.layer_normalization", x, **options))


def _rms_norm(call: Keras) -> Value | None:
    """Without a scale, too."""
    x = call.input("x")
    axes = call.axes_said("axes", x.rank)
    if not axes or (len(axes) > 1 and call.has("gamma")):
        return None
    options = {
        "scale": call.input("gamma") if call.has("gamma") else None,
        "axis": axes[0] if len(axes) == 1 else axes,
        "epsilon": float(call["eps"]),
    }
    return call.value(invoke("ops.rms_normalization", x, **options))


def _instance_norm(call: Keras) -> Value:
    """Groups of one channel, which Keras is told by a number below 0."""
    x = call.input("x")
    weights = [call.input(name) for name in ("gamma", "beta") if call.has(name)]
    options: dict[str, Any] = {
        "axis": call.axis_said("axis", x.rank), "epsilon": float(call["eps"]),
        "scale": None if call.has("gamma") else False,
        "center": None if call.has("beta") else False,
    }  # fmt: skip
    return call.value(weighted(call, "GroupNormalization", weights, x, groups=-1, **options))


def _normalize(call: Keras) -> Value | None:
    x = call.input("x")
    axes = call.axes_said("axes", x.rank)
    several = len(axes) > 1 and call["p"] != 2  # of which it takes the norm of matrices
    if not axes or several or call["p"] not in (1, 2, 3) or call["eps"] <= 0:
        return None
    axis = axes[0] if len(axes) == 1 else axes
    options = {"axis": axis, "order": int(call["p"]), "epsilon": float(call["eps"])}
    return call.value(invoke("ops.normalize", x, **options))


# ---- counts


def _bucketize(call: Keras) -> Value | None:
    """By a search, on either side; or by a layer, which has one of them."""
    x, table = call.input("x"), list(map(float, call["boundaries"]))
    if x.rank < 1 or x.dtype != "f32" or not table:
        return None
    side = quoted("right" if call["right"] else "left")
    listed = invoke("ops.array", str(table), call.build.dtype(x.dtype))
    flat = call.build.reshape(x, (math.prod(x.shape),))
    found = f'ops.cast({invoke("ops.searchsorted", listed, flat, side=side)}, "int64")'
    return call.build.reshape(Value(found, flat.shape, "i64"), x.shape)


def _discretized(call: Keras) -> Value | None:
    x, table = call.input("x"), list(map(float, call["boundaries"]))
    if x.rank < 1 or x.dtype != "f32" or not call["right"] or not table:
        return None
    made = invoke("keras.layers.Discretization", bin_boundaries=str(table))
    return call.value(f'ops.cast({made}({x.text}), "int64")')


WORDS: dict[str, Native | tuple[Native, ...]] = {
    **_ELEMENTS,
    "reduce_mean": _moment(0),
    "reduce_variance": _moment(1, correction=0),
    "reshape": _word("ops.reshape", _reshape),
    "flatten": _word("ops.reshape", _flatten),
    "transpose": three(exchanged("ops.swapaxes", "ops.moveaxis")),
    "concat": (three(joined_as_numpy("ops")), _word("ops.concatenate", _concat)),
    "crop": _word("ops.slice", _crop),
    "repeat_each": _word("ops.repeat", _repeat_each),
    "upsample": _word("keras.ops.image.resize", _upsample),
    "resize": _word("keras.layers.Resizing", _resize),
    "conv": _word("keras.ops.conv", _conv),
    "conv_transpose": _word("keras.ops.conv_transpose", _conv_transpose),
    "im2col": _word("keras.ops.image.extract_patches", _patches),
    "depthwise_conv": _word("keras.ops.depthwise_conv", _depthwise),
    "separable_conv": _word("keras.ops.separable_conv", _separable),
    "dense": (
        _word("keras.layers.EinsumDense", _dense),
        _word("ops.dot", _dense_by_function),
    ),
    "matmul": _word("keras.layers.Dot", _matmul),
    "batch_norm": _word("keras.ops.batch_normalization", _batch_norm),
    "layer_norm": _word("keras.ops.layer_normalization", _layer_norm, (3, 11)),
    "rms_norm": _word("keras.ops.rms_normalization", _rms_norm, (3, 9)),
    "instance_norm": _word("keras.layers.GroupNormalization", _instance_norm),
    "normalize": _word("keras.ops.normalize", _normalize),
    "bucketize": (
        _word("ops.searchsorted", _bucketize),
        _word("keras.layers.Discretization", _discretized),
    ),
}
