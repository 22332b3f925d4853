"""Layers of Keras (TensorFlow 2.4) without recurrence, each as calls of the definitions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from irlang.equations import TensorInfo
from irlang.importers.keras_arguments import Uncovered
from irlang.importers.keras_call import FLOAT, Call, same
from irlang.importers.writer import Array

# ---- products, convolutions


def _dense(c: Call) -> str:
    units = c.a.integer("units")
    operands = [c.weight("w", 0, [None, units], same), *c.vector("b", 1, units)]
    return c.activated(lambda suffix: c.write(suffix, "dense", c.x[0], *operands))


def _padding(c: Call) -> str:
    return c.a.choice("padding", "valid", "same")


def _steps(c: Call, rank: int) -> dict[str, Any]:
    return {
        "stride": c.a.ints("strides", rank),
        "dilation": c.a.ints("dilation_rate", rank),
        "pad": _padding(c),
    }


def _kernel_last(rank: int, *channels: int) -> Callable[[Array], Array]:
    """Channel axes, by their place after the spatial ones, before them."""
    order = [*(rank + place for place in channels), *range(rank)]
    return lambda array: array.transpose(order)


def _conv(rank: int) -> Callable[[Call], str]:
    def write(c: Call) -> str:
        filters, kernel = c.a.integer("filters"), c.a.ints("kernel_size", rank)
        attrs = _steps(c, rank)
        groups = c.a.integer("groups")
        if groups != 1:
            attrs["groups"] = groups
        x = c.first(rank)
        w = c.weight("w", 0, [*kernel, None, filters], _kernel_last(rank, 1, 0))
        return c.last(c.write("y", "conv", x, w, *c.vector("b", 1, filters), **attrs), rank)

    return write


def _conv_transpose(rank: int) -> Callable[[Call], str]:
    def write(c: Call) -> str:
        filters, kernel = c.a.integer("filters"), c.a.ints("kernel_size", rank)
        attrs = _steps(c, rank)
        # Where windows leave gaps, Keras's `valid` result goes on to the next window's beginning.
        span = [(k - 1) * d + 1 for k, d in zip(kernel, attrs["dilation"], strict=False)]
        spare = [max(0, s - n) for s, n in zip(attrs["stride"], span, strict=False)]
        if attrs["pad"] == "valid" and any(spare):
            attrs["output_padding"] = spare
        x = c.first(rank)
        w = c.weight("w", 0, [*kernel, filters, None], _kernel_last(rank, 1, 0))
        b = c.vector("b", 1, filters)
        return c.last(c.write("y", "conv_transpose", x, w, *b, **attrs), rank)

    return write


def _depthwise(rank: int) -> Callable[[Call], str]:
    def write(c: Call) -> str:
        kernel = c.a.ints("kernel_size", rank)
        attrs = _steps(c, rank)
        shape = [*kernel, None, c.a.integer("depth_multiplier")]
        x = c.first(rank)
        w = c.weight("w", 0, shape, _kernel_last(rank, 0, 1))
        b = c.vector("b", 1, None)
        return c.last(c.write("y", "depthwise_conv", x, w, *b, **attrs), rank)

    return write


def _separable(rank: int) -> Callable[[Call], str]:
    def write(c: Call) -> str:
        filters, kernel = c.a.integer("filters"), c.a.ints("kernel_size", rank)
        attrs = _steps(c, rank)
        x = c.first(rank)
        shape = [*kernel, None, c.a.integer("depth_multiplier")]
        w = c.weight("w", 0, shape, _kernel_last(rank, 0, 1))
        p = c.weight("p", 1, [*[1] * rank, None, filters], lambda p: p[(0,) * rank].T)
        b = c.vector("b", 2, filters)
        return c.last(c.write("y", "separable_conv", x, w, p, *b, **attrs), rank)

    return write


def _local(rank: int) -> Callable[[Call], str]:
    def write(c: Call) -> str:
        filters, kernel = c.a.integer("filters"), c.a.ints("kernel_size", rank)
        attrs = {"stride": c.a.ints("strides", rank), "pad": _padding(c)}
        x = c.first(rank)
        # Keras has the kernel of a position as one row: its places, then the channels.
        window = max(1, math.prod(kernel))
        row = window * c.info(x).shape[1]
        order = [0, rank + 2, rank + 1, *range(1, rank + 1)]
        w = c.weight(
            "w",
            0,
            [None, row, filters],
            lambda w: w.reshape(-1, *kernel, row // window, filters).transpose(order),
        )
        b = []
        if c.a.flag("use_bias"):
            shape = [*[None] * rank, filters]
            b = [c.weight("b", 1, shape, lambda b: b.reshape(-1, filters))]
        return c.last(c.write("y", "locally_connected", x, w, *b, **attrs), rank)

    return write


# ---- windows and edges


def _pool(op: str, rank: int) -> Callable[[Call], str]:
    def write(c: Call) -> str:
        attrs: dict[str, Any] = {"window": c.a.ints("pool_size", rank)}
        if c.a["strides"] is not None:
            attrs["stride"] = c.a.ints("strides", rank)
        attrs["pad"] = _padding(c)
        return c.last(c.write("y", op, c.first(rank), **attrs), rank)

    return write


def _global_pool(op: str, rank: int) -> Callable[[Call], str]:
    def write(c: Call) -> str:
        return c.write("", op, c.first(rank))

    return write


def _global_average_1d(c: Call) -> str:
    """The mean of the steps that are not masked."""
    if c.mask is None:
        return _global_pool("global_avg_pool", 1)(c)
    kept = c.write("kept", "cast", c.mask, to=FLOAT)
    weight = c.write("weight", "expand_dims", kept, axes=[2])
    masked = c.write("masked", "multiply", c.x[0], weight)
    total = c.write("total", "reduce_sum", masked, axes=[1])
    return c.write("", "divide", total, c.write("steps", "reduce_sum", weight, axes=[1]))


def _upsample(rank: int) -> Callable[[Call], str]:
    def write(c: Call) -> str:
        scale = c.a.ints("size", rank)
        x = c.first(rank)
        if rank == 2 and c.a.choice("interpolation", "nearest", "bilinear") == "bilinear":
            size = [n * s for n, s in zip(c.info(x).shape[2:], scale, strict=False)]
            # TensorFlow's kernel computes in single precision, whatever it is given
            single = c.write("single", "cast", x, to="f32")
            resized = c.write("resized", "resize_linear", single, size=size)
            return c.last(c.write("y", "cast", resized, to=FLOAT), rank)
        return c.last(c.write("y", "upsample", x, scale=scale), rank)

    return write


def _edges(op: str, argument: str, rank: int) -> Callable[[Call], str]:
    def write(c: Call) -> str:
        pairs = [(0, 0), *c.a.pairs(argument, rank), (0, 0)]
        before, after = [p[0] for p in pairs], [p[1] for p in pairs]
        return c.write("", op, c.x[0], before=before, after=after)

    return write


# ---- shape


def _reshape(c: Call) -> str:
    batch = c.info(c.x[0]).shape[0]
    return c.write("", "reshape", c.x[0], shape=[batch, *c.a.ints("target_shape")])


def _permute(c: Call) -> str:
    return c.write("", "transpose", c.x[0], perm=[0, *c.a.ints("dims")])


def _concatenate(c: Call) -> str:
    return c.write("", "concat", *c.x, axis=c.a.integer("axis"))


def _merge(op: str) -> Callable[[Call], str]:
    def write(c: Call) -> str:
        rank = max(len(c.info(x).shape) for x in c.x)
        operands = []
        for number, x in enumerate(c.x):
            missing = rank - len(c.info(x).shape)
            if missing:  # Keras keeps the batch first and widens behind it
                axes = list(range(1, missing + 1))
                x = c.write(f"x{number}", "expand_dims", x, axes=axes)
            operands.append(x)
        return c.write("", op, *operands)

    return write


def _dot(c: Call) -> str:
    attrs: dict[str, Any] = {"axes": c.a.ints("axes", 2)}
    if c.a.flag("normalize"):
        attrs["normalize"] = True
    return c.write("", "dot", *c.x, **attrs)


# ---- element-wise and normalising


def _leaky_slope(slope: float) -> float:
    """TensorFlow keeps the slope of its leaky ReLU kernel in single precision."""
    return float(np.float32(slope))


def _relu(c: Call) -> str:
    attrs: dict[str, Any] = {}
    leaky = c.a["max_value"] is None
    if not leaky:
        attrs["max_value"] = c.a.real("max_value")
    slope, threshold = c.a.real("negative_slope"), c.a.real("threshold")
    if slope:
        leaky = leaky and not threshold
        attrs["negative_slope"] = _leaky_slope(slope) if leaky else slope
    if threshold:
        attrs["threshold"] = threshold
    return c.write("", "relu", c.x[0], **attrs)


def _leaky_relu(c: Call) -> str:
    return c.write("", "leaky_relu", c.x[0], alpha=_leaky_slope(c.a.real("alpha")))


def _prelu(c: Call) -> str:
    shape = list(c.info(c.x[0]).shape[1:])
    shared = c.a.ints("shared_axes") if c.a["shared_axes"] is not None else []
    for axis in shared:
        if not 1 <= axis <= len(shape):
            raise Uncovered(c.a.kind, f"`shared_axes` is {shared}")
        shape[axis - 1] = 1
    slope = c.weight("slope", 0, shape, same)
    return c.write("", "prelu", c.x[0], slope)


def _elu(c: Call) -> str:
    return c.write("", "elu", c.x[0], alpha=c.a.real("alpha"))


def _thresholded(c: Call) -> str:
    return c.write("", "thresholded_relu", c.x[0], theta=c.a.real("theta"))


def _softmax(c: Call) -> str:
    axes = c.a.ints("axis")
    if len(axes) != 1:
        raise Uncovered(c.a.kind, f"`axis` is {axes}")
    x = c.x[0]
    if c.mask is not None:  # -1e9 where masked; the mask broadcasts from the last axis on
        dropped = c.write("dropped", "cast", c.write("hidden", "logical_not", c.mask), to=FLOAT)
        x = c.write("x", "add", x, c.write("shift", "multiply", dropped, -1e9))
    return c.write("", "softmax", x, axis=axes[0])


def _statistics(c: Call, names: dict[str, float], sizes: list[int | None]) -> dict[str, str]:
    """Weights in Keras's order; what a layer starts from where no weight is given at all."""
    found = {}
    for position, (name, start) in enumerate(names.items()):
        if c.weights:
            found[name] = c.weight(name, position, sizes, same)
        else:
            info = TensorInfo(tuple(size or 1 for size in sizes), FLOAT)
            found[name] = c.writer.param(f"{c.name}_{name}", info, start)
    return found


def _sizes(c: Call, axes: list[int]) -> list[int | None]:
    """The sizes of axes; None where there is no such axis, which the definition will refuse."""
    shape = c.info(c.x[0]).shape
    return [shape[axis] if -len(shape) <= axis < len(shape) else None for axis in axes]


def _batch_norm(c: Call) -> str:
    axes = c.a.ints("axis")
    if len(axes) != 1:
        raise Uncovered(c.a.kind, f"`axis` is {c.a['axis']!r}")
    names = {"scale": 1.0} if c.a.flag("scale") else {}
    names |= {"bias": 0.0} if c.a.flag("center") else {}
    w = _statistics(c, {**names, "mean": 0.0, "var": 1.0}, _sizes(c, axes))
    return c.write("", "batch_norm", c.x[0], by_name=w, axis=axes[0], eps=c.a.real("epsilon"))


def _layer_norm(c: Call) -> str:
    axes = c.a.ints("axis")
    names = {"gamma": 1.0} if c.a.flag("scale") else {}
    names |= {"beta": 0.0} if c.a.flag("center") else {}
    w = _statistics(c, names, _sizes(c, axes)) if c.weights else {}
    return c.write("", "layer_norm", c.x[0], by_name=w, axes=axes, eps=c.a.real("epsilon"))


def _plain(op: str) -> Callable[[Call], str]:
    return lambda c: c.write("", op, c.x[0])


def _activation(c: Call) -> str:
    return c.activation(c.a["activation"], c.x[0])


def _masking(c: Call) -> str:
    """Steps of which all elements are `mask_value` are masked, and become 0."""
    used = c.write("used", "not_equal", c.x[0], c.a.real("mask_value"))
    c.passed = c.write("mask", "reduce_any", used, axes=[-1])
    factor = c.write("kept", "expand_dims", c.write("real", "cast", c.passed, to=FLOAT), axes=[-1])
    return c.write("", "multiply", c.x[0], factor)


def _embedding(c: Call) -> str:
    if c.a.flag("mask_zero"):
        c.passed = c.write("mask", "not_equal", c.x[0], 0.0)
    table = c.weight("table", 0, [c.a.integer("input_dim"), c.a.integer("output_dim")], same)
    return c.write("", "embedding", table, c.write("ids", "cast", c.x[0], to="i32"))


Write = Callable[[Call], str]
LAYERS: dict[str, Write] = {
    "Dense": _dense,
    "DepthwiseConv2D": _depthwise(2),
    **{f"Conv{rank}D": _conv(rank) for rank in (1, 2, 3)},
    **{f"Conv{rank}DTranspose": _conv_transpose(rank) for rank in (1, 2, 3)},
    **{f"SeparableConv{rank}D": _separable(rank) for rank in (1, 2)},
    **{f"LocallyConnected{rank}D": _local(rank) for rank in (1, 2)},
    **{f"MaxPooling{rank}D": _pool("max_pool", rank) for rank in (1, 2, 3)},
    **{f"AveragePooling{rank}D": _pool("avg_pool", rank) for rank in (1, 2, 3)},
    **{f"GlobalMaxPooling{rank}D": _global_pool("global_max_pool", rank) for rank in (1, 2, 3)},
    **{f"GlobalAveragePooling{rank}D": _global_pool("global_avg_pool", rank) for rank in (2, 3)},
    "GlobalAveragePooling1D": _global_average_1d,
    **{f"UpSampling{rank}D": _upsample(rank) for rank in (1, 2, 3)},
    **{f"ZeroPadding{rank}D": _edges("pad", "padding", rank) for rank in (1, 2, 3)},
    **{f"Cropping{rank}D": _edges("crop", "cropping", rank) for rank in (1, 2, 3)},
    "Reshape": _reshape,
    "Flatten": _plain("flatten"),
    "Permute": _permute,
    "RepeatVector": lambda c: c.write("", "repeat_vector", c.x[0], n=c.a.integer("n")),
    "Concatenate": _concatenate,
    "Add": _merge("add_n"),
    "Subtract": _merge("subtract"),
    "Multiply": _merge("multiply_n"),
    "Average": _merge("average_n"),
    "Maximum": _merge("maximum_n"),
    "Minimum": _merge("minimum_n"),
    "Dot": _dot,
    "ReLU": _relu,
    "LeakyReLU": _leaky_relu,
    "PReLU": _prelu,
    "ELU": _elu,
    "ThresholdedReLU": _thresholded,
    "Softmax": _softmax,
    "Activation": _activation,
    "BatchNormalization": _batch_norm,
    "LayerNormalization": _layer_norm,
    "Masking": _masking,
    "Embedding": _embedding,
    **dict.fromkeys(
        ("Dropout", "AlphaDropout", "GaussianDropout", "GaussianNoise", "ActivityRegularization"),
        _plain("identity"),
    ),
    **{f"SpatialDropout{rank}D": _plain("identity") for rank in (1, 2, 3)},
}
