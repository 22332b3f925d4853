"""TensorFlow's layers: products, convolutions, pooling, normalisation, losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irlang.importers.labels import Malformed, labels_of
from irlang.importers.tf_node import Node, Result, Row
from irlang.importers.value import Unsupported, Value

# ---- products


def _matmul(n: Node) -> Value:
    n.ignore("grad_a", "grad_b")
    return _product(n, n.flag("transpose_a"), n.flag("transpose_b"))


def _batch_matmul(n: Node) -> Value:
    n.ignore("grad_x", "grad_y")
    return _product(n, n.flag("adj_x"), n.flag("adj_y"))


def _product(n: Node, flip_a: bool, flip_b: bool) -> Value:
    names = (("transpose_a", flip_a), ("transpose_b", flip_b))
    return n.call("matmul", n.input(0), n.input(1), **{name: True for name, is_ in names if is_})


def _einsum(n: Node) -> Value:
    try:
        labels, output = labels_of(n.word("equation"), [value.rank for value in n.x])
    except Malformed as reason:
        raise Unsupported(str(reason)) from None
    return n.call("einsum", *n.x, labels=labels, output=output)


def _bias(n: Node) -> Value:
    """One number a channel, which is the last axis unless channels are first."""
    x, b = n.input(0), n.input(1)
    inner = None if n.ahead else n.moved()
    if inner is not None:
        return n.last(inner.call("add", *inner.x))
    if n.ahead and x.rank > 2:
        b = n.step("channels", "expand_dims", b, axes=list(range(1, x.rank - 1)))
    return n.call("add", x, b)


# ---- windows


def _space(n: Node, items: Sequence[int], what: str) -> list[int]:
    """The numbers of the spatial axes; those of batches and channels must be 1."""
    if len(items) < 3:
        raise Unsupported(f"{what} {list(items)}")
    space, rest = (items[2:], items[:2]) if n.ahead else (items[1:-1], [items[0], items[-1]])
    if list(rest) != [1, 1]:
        raise Unsupported(f"{what} {list(items)}, along batches or channels")
    return list(space)


def _window(n: Node, rank: int) -> dict[str, Any]:
    """Stride, dilation and padding of a window as attributes."""
    stride = _space(n, n.ints("strides"), "strides")
    dilation = _space(n, n.ints("dilations", [1] * (rank + 2)), "dilations")
    padding, pads = n.word("padding"), n.ints("explicit_paddings", [])
    attrs: dict[str, Any] = {"stride": stride}
    if any(d != 1 for d in dilation):
        attrs["dilation"] = dilation
    if padding == "SAME":
        attrs["pad"] = "same"
    elif padding == "EXPLICIT":
        if len(pads) != 2 * rank + 4:
            raise Unsupported(f"{len(pads)} numbers of padding")
        pairs = pads[4:] if n.ahead else pads[2:-2]
        attrs.update(pad="given", before=pairs[::2], after=pairs[1::2])
    elif padding != "VALID":
        raise Unsupported(f"padding is {padding}")
    return attrs


def _in_order(n: Node, x: Value) -> Value:
    return x if n.ahead else n.first(x)


def _out_of_order(n: Node, y: Value) -> Value:
    return y if n.ahead else n.last(y)


def _conv(n: Node) -> Value:
    """The kernel has its places first, then the channels it reads, then those it makes."""
    n.ignore("use_cudnn_on_gpu")
    x, w = _in_order(n, n.input(0)), n.input(1)
    rank = w.rank - 2
    attrs = _window(n, rank)
    if x.rank != w.rank or rank < 1:
        raise Unsupported(f"a kernel of {w.rank} axes for {x.rank}")
    groups = x.shape[1] // max(w.shape[-2], 1)
    if groups > 1:
        attrs["groups"] = groups
    kernel = n.turned(w, [rank + 1, rank, *range(rank)], "kernel")
    return _out_of_order(n, n.call("conv", x, kernel, **attrs))


def _depthwise(n: Node) -> Value:
    x, w = _in_order(n, n.input(0)), n.input(1)
    attrs = _window(n, 2)
    kernel = n.turned(w, [2, 3, 0, 1], "kernel")
    return _out_of_order(n, n.call("depthwise_conv", x, kernel, **attrs))


def _conv_back(n: Node) -> Value:
    """The gradient of a convolution by its input, which is a transposed convolution."""
    n.ignore("use_cudnn_on_gpu")
    sizes, w, x = n.known_ints(0), n.input(1), _in_order(n, n.input(2))
    rank = w.rank - 2
    attrs = _window(n, rank)
    if len(sizes) != rank + 2 or x.rank != w.rank:
        raise Unsupported(f"a result of {sizes} by a kernel of {w.info}")
    space = sizes[2:] if n.ahead else sizes[1:-1]
    stride, dilation = attrs["stride"], attrs.get("dilation", [1] * rank)
    before, after, extra = [], [], []
    for d, target in enumerate(space):
        span = (w.shape[d] - 1) * dilation[d] + 1
        whole = stride[d] * (x.shape[2 + d] - 1) + span
        low = 0
        if attrs.get("pad") == "same":
            low = max(0, (x.shape[2 + d] - 1) * stride[d] + span - target) // 2
        elif "before" in attrs:
            low = attrs["before"][d]
        before.append(low)
        after.append(max(0, whole - low - target))
        extra.append(max(0, target + low - whole))
    attrs.pop("pad", None)
    if any(before) or any(after):
        attrs.update(pad="given", before=before, after=after)
    if any(extra):
        attrs["output_padding"] = extra
    kernel = n.turned(w, [rank + 1, rank, *range(rank)], "kernel")
    return _out_of_order(n, n.call("conv_transpose", x, kernel, **attrs))


def _pool(op: str) -> Row:
    def row(n: Node) -> Value:
        x, window = _in_order(n, n.input(0)), _space(n, n.ints("ksize"), "ksize")
        return _out_of_order(n, n.call(op, x, window=window, **_window(n, len(window))))

    return row


def _pool_known(n: Node) -> Value:
    """Window and strides are inputs."""
    x = _in_order(n, n.input(0))
    window, stride = (_space(n, n.known_ints(place), "windows") for place in (1, 2))
    pads = {"VALID": {}, "SAME": {"pad": "same"}}.get(n.word("padding"))
    if pads is None:
        raise Unsupported(f"padding is {n.word('padding')}")
    return _out_of_order(n, n.call("max_pool", x, window=window, stride=stride, **pads))


# ---- normalisation


def _batch_norm(n: Node) -> Result:
    """By given statistics; in training by those of the batch."""
    training, eps = n.flag("is_training", True), n.real("epsilon", 1e-4)
    n.ignore("exponential_avg_factor")
    x, scale, bias, mean, var = n.x
    axis = 1 if n.ahead else -1
    if any(n.wants(place) for place in range(3 if training else 1, len(n.outputs))):
        raise Unsupported("a result that is there for the gradient alone")
    if not training:
        if x in n.twins and not n.ahead:
            y = n.call("batch_norm", n.twins[x], scale, bias, mean, var, eps=eps)
            return [n.last(y)]
        return n.call("batch_norm", x, scale, bias, mean, var, eps=eps, axis=axis)
    if n.wants(1) or n.wants(2):
        if n.real("exponential_avg_factor", 1.0) != 1:
            raise Unsupported("statistics that are mixed with those before")
        return n.calls(3, "batch_norm_train", x, scale, bias, eps=eps, axis=axis, correction=1)
    return n.steps(["", "mean", "var"], "batch_norm_train", x, scale, bias, eps=eps, axis=axis)[:1]


def _local_response(n: Node) -> Value:
    radius = n.int("depth_radius", 5)
    size = 2 * radius + 1
    attrs = {"bias": n.real("bias", 1.0), "beta": n.real("beta", 0.5)}
    x = n.first(n.input(0))
    alpha = n.real("alpha", 1.0) * size  # the definition divides by the number of neighbours
    return n.last(n.call("local_response_norm", x, size=size, alpha=alpha, **attrs))


def _softmax(op: str) -> Row:
    def row(n: Node) -> Value:
        return n.call(op, n.input(0))

    return row


# ---- losses


def _half_squares(n: Node) -> Value:
    """Half the sum of the squares."""
    x = n.input(0)
    total = n.step("squares", "reduce_sum_square", x, axes=list(range(x.rank)))
    return n.call("multiply", total, 0.5)


def _cross_entropy(op: str) -> Row:
    """Of logits; the second result is the slope: the probabilities less those of the labels."""

    def row(n: Node) -> Result:
        logits, labels = n.input(0), n.input(1)
        loss = n.call(op, logits, labels, reduction="none") if n.wants(0) else None
        if not n.wants(1):
            return [loss]
        probs = n.step("probs", "softmax", logits)
        if labels.rank < logits.rank:
            hot = {"depth": logits.shape[-1], "axis": -1, "to": logits.dtype}
            labels = n.step("labels", "one_hot", labels, **hot)
        slope = n.result(1, "subtract", probs, labels)
        return [loss, slope]

    return row


ROWS: dict[str, Row] = {
    "MatMul": _matmul,
    "BatchMatMul": _batch_matmul,
    "BatchMatMulV2": _batch_matmul,
    "BatchMatMulV3": _batch_matmul,
    "Einsum": _einsum,
    "BiasAdd": _bias,
    "BiasAddV1": _bias,
    "Conv2D": _conv,
    "Conv3D": _conv,
    "DepthwiseConv2dNative": _depthwise,
    "Conv2DBackpropInput": _conv_back,
    "Conv3DBackpropInputV2": _conv_back,
    "MaxPool": _pool("max_pool"),
    "MaxPoolV2": _pool_known,
    "AvgPool": _pool("avg_pool"),
    "MaxPool3D": _pool("max_pool"),
    "AvgPool3D": _pool("avg_pool"),
    "FusedBatchNorm": _batch_norm,
    "FusedBatchNormV2": _batch_norm,
    "FusedBatchNormV3": _batch_norm,
    "LRN": _local_response,
    "Softmax": _softmax("softmax"),
    "LogSoftmax": _softmax("log_softmax"),
    "L2Loss": _half_squares,
    "SoftmaxCrossEntropyWithLogits": _cross_entropy("categorical_cross_entropy"),
    "SparseSoftmaxCrossEntropyWithLogits": _cross_entropy("cross_entropy"),
}
