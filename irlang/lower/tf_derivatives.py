"""How TensorFlow spells what flows back through functions of elements and layers of images: kernels
of gradients, called by themselves.
"""

from __future__ import annotations

import math
from itertools import accumulate, pairwise
from typing import Any

from irlang.lower.call import Call, Native
from irlang.lower.channels import axis_back, axis_last, channels_last
from irlang.lower.legalise import all_are
from irlang.lower.spelling import invoke
from irlang.lower.tf_backward import COORDINATES, kernel
from irlang.lower.tf_builder import TensorFlowBuilder
from irlang.lower.tf_images import first
from irlang.lower.value import Value

Tf = Call[TensorFlowBuilder]
_WIDE = ("f32", "f64")
_HALVES = ("f16", "f32", "f64")
_PLANE = 4  # axes of a batch of images

# ---- elements: kernels of the result y, and of the argument x


def _alike(g: Value, x: Value) -> bool:
    """Whether there is a kernel. Another shape of as many elements is no fault to it."""
    reshaped = g.shape != x.shape and math.prod(g.shape) == math.prod(x.shape)
    return g.dtype in _HALVES and not reshaped


def _of_result(name: str, *others: str) -> Native:
    def rule(call: Tf, name: str) -> Value | None:
        g, y = call.input("g"), call.input("y")
        return call.value(invoke(name, y=y, dy=g)) if _alike(g, y) else None

    return kernel(name, rule, others=others)


def _relu6(call: Tf, name: str) -> Value | None:
    return _features(call, name) if (call["low"], call["high"]) == (0, 6) else None


def _features(call: Tf, name: str, other: str = "x", **options: Any) -> Value | None:
    g, x = call.input("g"), call.input(other)
    key = "features" if other == "x" else "outputs"
    given = {"gradients": g, key: x, **options}
    return call.value(invoke(name, **given)) if _alike(g, x) else None


def _leaky(call: Tf, name: str) -> Value | None:
    return _features(call, name, alpha=float(call["alpha"]))


def _elu(call: Tf, name: str) -> Value | None:
    return _features(call, name, "y") if call["alpha"] == 1 else None


def _selu(call: Tf, name: str) -> Value | None:
    """Of f64 the product of its two constants is another."""
    own = not call.says("alpha") and not call.says("gamma") and call.out.dtype != "f64"
    return _features(call, name, "y") if own else None


# ---- windows


def _windows(call: Tf) -> dict[str, str]:
    """How windows move, and over what padding."""
    return {"strides": str([1, *call["stride"], 1]), "padding": f'"{call["pad"].upper()}"'}


def _plain(call: Tf, rank: int, dtype: str) -> bool:
    """Whether there is a kernel on a processor, which spreads no window."""
    return rank in (2, 3) and dtype in _WIDE and all_are(call["dilation"], 1)


def _input(call: Tf, name: str) -> Value | None:
    g, w = call.input("g"), call.input("w")
    rank = g.rank - 2
    if not _plain(call, rank, g.dtype) or call["groups"] != 1 or name.endswith("V2") != (rank == 3):
        return None
    n, c, *space = call.out.shape
    given = {
        "input_sizes": str([n, *space, c]),
        "filter": call.build.transpose(w, (*range(2, w.rank), 1, 0)),
        "out_backprop": channels_last(call, g),
        **_windows(call),
    }
    return first(call, invoke(name, **given))


def _channelwise(call: Tf, dtype: str) -> bool:
    """Whether every channel of images has filters of its own, at one stride."""
    return _plain(call, len(call["stride"]), dtype) and len(call["stride"]) == 2 and (
        call["G"] == 1 < call["groups"] and len(set(call["stride"])) == 1
    )  # fmt: skip


def _depthwise_input(call: Tf, name: str) -> Value | None:
    g, w = call.input("g"), call.input("w")
    if not _channelwise(call, g.dtype) or not all(w.shape):
        return None
    n, c, *space = call.out.shape
    own = call.build.reshape(w, (c, w.shape[0] // c, *w.shape[2:]))
    given = {
        "input_sizes": str([n, *space, c]),
        "filter": call.build.transpose(own, (2, 3, 0, 1)),
        "out_backprop": channels_last(call, g),
        **_windows(call),
    }
    return first(call, invoke(name, **given))


def _depthwise_weights(call: Tf, name: str) -> Value | None:
    x, g = call.input("x"), call.input("g")
    if not _channelwise(call, x.dtype) or not all(call.out.shape):
        return None
    filters, c, *sizes = call.out.shape[0], x.shape[1], *call.out.shape[2:]
    shape = (*sizes, c, filters // c)
    given = {
        "input": channels_last(call, x),
        "filter_sizes": str(list(shape)),
        "out_backprop": channels_last(call, g),
        **_windows(call),
    }
    found = call.build.transpose(Value(invoke(name, **given), shape, x.dtype), (2, 3, 0, 1))
    return call.build.reshape(found, call.out.shape)


def _indices(call: Tf, name: str) -> Value | None:
    """A place is that in an image whose channels are last; of the input its size is of matter."""
    g, indices = call.input("g"), call.build.cast(call.input("indices"), "i64")
    if g.rank != _PLANE or g.dtype not in _WIDE:
        return None
    n, c, *space = call.out.shape
    channels = f"tf.range({c}, dtype=tf.int64)"
    places = f"{channels_last(call, indices).text} * {c} + {channels}"
    given = {
        "input": f"tf.zeros({[n, *space, c]}, {call.build.dtype(g.dtype)})",
        "grad": channels_last(call, g),
        "argmax": places,
        "ksize": str([1, *call["window"], 1]),
        "strides": str([1, *call["stride"], 1]),
        "padding": '"VALID"',
    }
    return first(call, invoke(name, **given))


def _dilation(call: Tf, name: str) -> list[Value] | None:
    """Two kernels, which are given the same."""
    x, w = call.input("x"), call.input("w")
    if x.rank != _PLANE or x.dtype not in _WIDE:
        return None
    given = {
        "input": channels_last(call, x),
        "filter": call.build.transpose(w, (1, 2, 0)),
        "out_backprop": channels_last(call, call.input("g")),
        "rates": str([1, *call["dilation"], 1]),
        **_windows(call),
    }
    sizes = (*w.shape[1:], w.shape[0])
    weights = Value(invoke(f"{name}Filter", **given), sizes, w.dtype)
    return [
        first(call, invoke(f"{name}Input", **given)),
        call.build.transpose(weights, (2, 0, 1)),
    ]


def _fractional(call: Tf, name: str) -> Value | None:
    """The kernel is handed the maxima, too, and where windows begin."""
    x, g = call.input("x"), call.input("g")
    if g.dtype not in _WIDE or not all(x.shape):
        return None
    inner = channels_last(call, x)
    more = int(call["overlapping"])
    starts = [[0, *accumulate(call[key])] for key in ("rows", "columns")]
    lines = [
        ", ".join(
            f"tf.reduce_max({inner.text}[:, {top}:{bottom + more}, {left}:{right + more}], "
            "axis=[1, 2], keepdims=True)"
            for left, right in pairwise(starts[1])
        )
        for top, bottom in pairwise(starts[0])
    ]
    rows = ", ".join(f"tf.concat([{line}], 2)" for line in lines)
    given = {
        "orig_input": inner,
        "orig_output": f"tf.concat([{rows}], 1)",
        "out_backprop": channels_last(call, g),
        "row_pooling_sequence": str(starts[0]),
        "col_pooling_sequence": str(starts[1]),
        "overlapping": call["overlapping"] or None,
    }
    return first(call, invoke(name, **given))


# ---- images


def _local_response(call: Tf, name: str) -> Value | None:
    """The kernel is handed the result, too."""
    x, g = call.input("x"), call.input("g")
    if x.rank != _PLANE or x.dtype not in ("f32", "f16"):
        return None
    inner = channels_last(call, x)
    radius = call["size"] // 2
    options = {"bias": call["bias"], "alpha": call["alpha"] / call["size"], "beta": call["beta"]}
    given = {
        "input_grads": channels_last(call, g),
        "input_image": inner,
        "output_image": invoke("tf.nn.local_response_normalization", inner, radius, **options),
        "depth_radius": radius,
        **options,
    }
    return first(call, invoke(name, **given))


def _mirror(call: Tf, name: str) -> Value | None:
    g = call.input("g")
    if call["mode"] == "edge" or g.dtype not in _WIDE or not 1 <= g.rank <= 5:
        return None
    pairs = [list(map(int, pair)) for pair in zip(call["before"], call["after"], strict=True)]
    mode = f'"{call["mode"].upper()}"'
    return call.value(invoke(name, input=g, paddings=str(pairs), mode=mode))


def _batch_norm(call: Tf, name: str) -> list[Value] | None:
    x, g = call.input("x"), call.input("g")
    if x.rank != _PLANE or x.dtype != "f32":
        return None
    axis = call.axis("axis", x.rank)
    inner, back = (axis_last(call, value, axis) for value in (x, g))
    given = {
        "y_backprop": back, "x": inner, "scale": call.input("scale"),
        "reserve_space_1": call.input("mean"), "reserve_space_2": call.input("var"),
        "reserve_space_3": "tf.constant([])" if name.endswith("V3") else None,
        "epsilon": float(call["eps"]), "is_training": bool(call["train"]),
    }  # fmt: skip
    y, *names = call.build.several(f"{invoke(name, **given)}[:3]", *call.node.outputs)
    others = [Value(n, i.shape, i.dtype) for n, i in zip(names, call.outputs[1:], strict=True)]
    return [axis_back(call, Value(y, inner.shape, x.dtype), axis), *others]


def _nearest(call: Tf, name: str) -> Value | None:
    g = call.input("g")
    if g.rank != _PLANE or g.dtype not in _HALVES:
        return None
    given = {"grads": channels_last(call, g), "size": str(list(call["size"]))}
    return first(call, invoke(name, **given, **COORDINATES[call["coord"]]))


def _boxes(call: Tf, name: str) -> Value | None:
    g, boxes, batch = (call.input(one) for one in ("g", "boxes", "batch"))
    if g.rank != _PLANE or g.dtype != "f32":
        return None
    n, c, *space = call.out.shape
    given = {
        "grads": channels_last(call, g),
        "boxes": boxes,
        "box_ind": call.build.cast(batch, "i32"),
        "image_size": str([n, *space, c]),
        "T": "tf.float32",
        "method": '"bilinear"' if call["mode"] == "linear" else '"nearest"',
    }
    return first(call, invoke(name, **given))


DERIVATIVES: dict[str, Native] = {
    "tanh_gradient": _of_result("TanhGrad"),
    "sigmoid_gradient": _of_result("SigmoidGrad"),
    "sqrt_gradient": _of_result("SqrtGrad"),
    "rsqrt_gradient": _of_result("RsqrtGrad"),
    "reciprocal_gradient": _of_result("ReciprocalGrad", "InvGrad"),
    "relu_gradient": kernel("ReluGrad", _features),
    "hard_tanh_gradient": kernel("Relu6Grad", _relu6),
    "leaky_relu_gradient": kernel("LeakyReluGrad", _leaky),
    "elu_gradient": kernel("EluGrad", _elu),
    "selu_gradient": kernel("SeluGrad", _selu),
    "softplus_gradient": kernel("SoftplusGrad", _features),
    "softsign_gradient": kernel("SoftsignGrad", _features),
    "conv_input_gradient": kernel("Conv2DBackpropInput", _input, others=("Conv3DBackpropInputV2",)),
    "max_pool_indices_gradient": kernel("MaxPoolGradWithArgmax", _indices, ("g",)),
    "grey_dilation_gradient": kernel("Dilation2DBackprop", _dilation, ("g", "x", "w")),
    "fractional_max_pool_gradient": kernel("FractionalMaxPoolGrad", _fractional, ("g", "x")),
    "local_response_norm_gradient": kernel("LRNGrad", _local_response, ("g", "x")),
    "pad_gradient": kernel("MirrorPadGrad", _mirror),
    "batch_norm_gradient": kernel(
        "FusedBatchNormGradV3",
        _batch_norm,
        ("g", "x", "scale", "mean", "var"),
        others=("FusedBatchNormGradV2", "FusedBatchNormGrad"),
    ),
    "crop_and_resize_gradient": kernel("CropAndResizeGradImage", _boxes, ("g", "boxes")),
    "resize_nearest_gradient": kernel("ResizeNearestNeighborGrad", _nearest, ("g",)),
}
DERIVATIVE_WORDS: dict[str, Native] = {
    "conv_input_gradient": kernel("DepthwiseConv2dNativeBackpropInput", _depthwise_input),
    "conv_weight_gradient": kernel("DepthwiseConv2dNativeBackpropFilter", _depthwise_weights),
}
