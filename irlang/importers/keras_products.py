"""Layers of Keras that multiply by a kernel: dense, convolution, embedding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irlang.importers.keras_activations import activated
from irlang.importers.keras_arguments import Uncovered
from irlang.importers.keras_call import Call, element, same
from irlang.importers.labels import Malformed, labels_of
from irlang.importers.writer import Array


def _dense(c: Call) -> str:
    units = c.a.integer("units")
    operands = [c.weight("w", 0, [None, units], same), *c.vector("b", 1, units)]
    return activated(c, lambda suffix: c.write(suffix, "dense", c.x[0], *operands))


def _einsum_dense(c: Call) -> str:
    """A kernel by an equation, whose dots stand for axes that only the input has."""
    equation = str(c.a["equation"])
    _ = c.a["output_shape"]
    array = c.weights.get(0)
    if array is None:
        raise Uncovered(c.a.kind, "its weights are not given")
    w = c.weight("w", 0, list(array.shape), same)
    try:
        ranks = [len(c.writer.types[name].shape) for name in (c.x[0], w)]
        labels, output = labels_of(equation, ranks)
    except Malformed as reason:
        raise Uncovered(c.a.kind, str(reason)) from None
    attrs = {"labels": labels, "output": output}
    add = c.a["bias_axes"] is not None
    if not add:
        return activated(c, lambda suffix: c.write(suffix, "einsum", c.x[0], w, **attrs))
    bias = c.weights.get(1)
    if bias is None:
        raise Uncovered(c.a.kind, "its weights are not given")
    b = c.weight("b", 1, list(bias.shape), same)
    product = c.write("product", "einsum", c.x[0], w, **attrs)
    return activated(c, lambda suffix: c.write(suffix, "add", product, b))


def padding(c: Call, rank: int, kernel: Sequence[int], dilation: Sequence[int]) -> dict[str, Any]:
    """The attributes of a convolution's padding; `causal` puts all of it before."""
    kind = c.a.choice("padding", "valid", "same", *(["causal"] if rank == 1 else []))
    if kind != "causal":
        return {"pad": kind}
    before = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
    return {"pad": "given", "before": before}


def steps(c: Call, rank: int) -> dict[str, Any]:
    """Stride, dilation and padding of a convolution; those that say nothing are left out."""
    kernel = c.a.ints("kernel_size", rank)
    stride, dilation = c.a.ints("strides", rank), c.a.ints("dilation_rate", rank)
    attrs: dict[str, Any] = {}
    if stride != [1] * rank:
        attrs["stride"] = stride
    if dilation != [1] * rank:
        attrs["dilation"] = dilation
    pad = padding(c, rank, kernel, dilation)
    return attrs if pad["pad"] == "valid" else {**attrs, **pad}


def kernel_last(rank: int, *channels: int) -> Callable[[Array], Array]:
    """Channel axes, by their place after the spatial ones, before them."""
    order = [*(rank + place for place in channels), *range(rank)]
    return lambda array: array.transpose(order)


def _convolved(c: Call, op: str, rank: int, *weights: str, **attrs: Any) -> str:
    x = c.first(rank)
    return activated(c, lambda suffix: c.last(c.write(suffix, op, x, *weights, **attrs)))


def _conv(rank: int) -> Callable[[Call], str]:
    def write(c: Call) -> str:
        filters, kernel = c.a.integer("filters"), c.a.ints("kernel_size", rank)
        attrs = steps(c, rank)
        groups = c.a.integer("groups")
        if groups != 1:
            attrs["groups"] = groups
        w = c.weight("w", 0, [*kernel, None, filters], kernel_last(rank, 1, 0))
        return _convolved(c, "conv", rank, w, *c.vector("b", 1, filters), **attrs)

    return write


def _conv_transpose(rank: int) -> Callable[[Call], str]:
    def write(c: Call) -> str:
        filters, kernel = c.a.integer("filters"), c.a.ints("kernel_size", rank)
        attrs = steps(c, rank)
        stride, dilation = c.a.ints("strides", rank), c.a.ints("dilation_rate", rank)
        if c.version == 2 and rank == 3:  # which TensorFlow 2.4 passes over
            dilation = [1] * rank
            attrs.pop("dilation", None)
        span = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=False)]
        if c.a["output_padding"] is not None:
            size = c.info(c.first(rank)).shape[2:]
            attrs |= _cut(size, stride, span, c.a.ints("output_padding", rank), attrs)
        elif "pad" not in attrs:
            # Where windows leave gaps, Keras's result goes on to the next window's beginning.
            spare = [max(0, s - n) for s, n in zip(stride, span, strict=False)]
            attrs |= {"output_padding": spare} if any(spare) else {}
        w = c.weight("w", 0, [*kernel, filters, None], kernel_last(rank, 1, 0))
        return _convolved(c, "conv_transpose", rank, w, *c.vector("b", 1, filters), **attrs)

    return write


def _cut(
    size: Sequence[int],
    stride: Sequence[int],
    span: Sequence[int],
    extra: Sequence[int],
    attrs: dict[str, Any],
) -> dict[str, Any]:
    """Where Keras cuts a transposed convolution whose `output_padding` is given.

    The size of the result is that of Keras's documentation; where it begins is TensorFlow's: the
    result is what a convolution with this padding would have as its input.
    """
    half = [k // 2 if attrs.get("pad") == "same" else 0 for k in span]
    length = [
        (n - 1) * s + k - 2 * p + e
        for n, s, k, p, e in zip(size, stride, span, half, extra, strict=True)
    ]
    if attrs.get("pad") == "same":
        lo = [
            max(0, (n - 1) * s + k - o) // 2
            for n, s, k, o in zip(size, stride, span, length, strict=True)
        ]
    else:
        lo = [0] * len(size)
    over = [
        (n - 1) * s + k - p - o
        for n, s, k, p, o in zip(size, stride, span, lo, length, strict=True)
    ]
    return {
        "pad": "given",
        "before": lo,
        "after": [max(0, item) for item in over],
        "output_padding": [max(0, -item) for item in over],
    }


def _depthwise(rank: int) -> Callable[[Call], str]:
    def write(c: Call) -> str:
        kernel = c.a.ints("kernel_size", rank)
        shape = [*kernel, None, c.a.integer("depth_multiplier")]
        w = c.weight("w", 0, shape, kernel_last(rank, 0, 1))
        b = c.vector("b", 1, None)
        return _convolved(c, "depthwise_conv", rank, w, *b, **steps(c, rank))

    return write


def _separable(rank: int) -> Callable[[Call], str]:
    def write(c: Call) -> str:
        filters, kernel = c.a.integer("filters"), c.a.ints("kernel_size", rank)
        shape = [*kernel, None, c.a.integer("depth_multiplier")]
        w = c.weight("w", 0, shape, kernel_last(rank, 0, 1))
        p = c.weight("p", 1, [*[1] * rank, None, filters], lambda p: p[(0,) * rank].T)
        b = c.vector("b", 2, filters)
        return _convolved(c, "separable_conv", rank, w, p, *b, **steps(c, rank))

    return write


def _reversible(c: Call) -> str:
    """An embedding, or its reverse: the product with its table, or with one of its own."""
    if not c.arguments.get("reverse"):
        for name in ("tie_weights", "reverse_dtype", "logit_soft_cap"):
            _ = c.a[name]
        return _embedding(c)
    sizes = [c.a.integer("input_dim"), c.a.integer("output_dim")]
    _ = c.a["mask_zero"]
    x, dtype = c.x[0], c.a["reverse_dtype"]
    if c.a.flag("tie_weights"):
        table = c.weight("table", 0, sizes, same)
    else:
        table = c.weight("reverse", 1, sizes[::-1], same)
    if dtype is not None:
        x = c.write("x", "cast", x, to=element(dtype))
        table = c.write("cast", "cast", table, to=element(dtype))
    turned = {"transpose_b": True} if c.a.flag("tie_weights") else {}
    cap = c.a["logit_soft_cap"]
    logits = c.write("" if cap is None else "logits", "matmul", x, table, **turned)
    if cap is None:
        return logits
    part = c.write("tanh", "tanh", c.write("part", "divide", logits, c.a.real("logit_soft_cap")))
    return c.write("", "multiply", part, c.a.real("logit_soft_cap"))


def _embedding(c: Call) -> str:
    if c.a.flag("mask_zero"):
        zero = 0.0 if c.info(c.x[0]).kind == "real" else 0
        c.passed = [c.write("mask", "not_equal", c.x[0], zero)]
    table = c.weight("table", 0, [c.a.integer("input_dim"), c.a.integer("output_dim")], same)
    ids = c.x[0]
    if c.info(ids).kind != "int":
        ids = c.write("ids", "cast", ids, to="i32")
    return c.write("", "embedding", table, ids)


PRODUCTS: dict[str, Callable[[Call], str]] = {
    "Dense": _dense,
    "EinsumDense": _einsum_dense,
    "Embedding": _embedding,
    "ReversibleEmbedding": _reversible,
    **{f"Conv{rank}D": _conv(rank) for rank in (1, 2, 3)},
    **{f"Conv{rank}DTranspose": _conv_transpose(rank) for rank in (1, 2, 3)},
    **{f"DepthwiseConv{rank}D": _depthwise(rank) for rank in (1, 2)},
    **{f"SeparableConv{rank}D": _separable(rank) for rank in (1, 2)},
}
