"""TensorFlow's further words for products, windows, norms and losses."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from irlang.lower.call import Call, Native
from irlang.lower.channels import axis_back, axis_last, channels_last
from irlang.lower.legalise import Windows, all_are, groupable
from irlang.lower.spelling import invoke
from irlang.lower.tf_builder import TensorFlowBuilder
from irlang.lower.tf_frames import MOST_SPACE, PLANE, biased, framed, listed, result
from irlang.lower.tf_layers import Pool, avg_pool, max_pool, reduced, serves
from irlang.lower.tf_words import raw
from irlang.lower.value import Value

Tf = Call[TensorFlowBuilder]
_CONV = (2, 16)  # the release that has one kernel for all convolutions


# ---- products


def _xw_plus_b(call: Tf) -> Value | None:
    x, w = call.input("x"), call.input("w")
    if x.rank != 2 or not call.has("b"):
        return None
    return call.value(invoke("tf.compat.v1.nn.xw_plus_b", x, w, call.input("b")))


def _sparse(call: Tf, kernel: str) -> Value | None:
    """Which skips what is 0, of two matrices of single precision."""
    a, b = call.input("a"), call.input("b")
    if a.rank != 2 or b.rank != 2 or call.out.dtype != "f32":
        return None
    flags = {key: call[key] or None for key in ("transpose_a", "transpose_b")}
    return call.value(invoke(kernel, a=a, b=b, **flags, a_is_sparse=True))


def _batches(call: Tf, kernel: str) -> Value | None:
    """Of as many matrices; the last of these kernels is told the type, too."""
    a, b = call.input("a"), call.input("b")
    if a.rank < 3 or a.shape[:-2] != b.shape[:-2]:
        return None
    options: dict[str, Any] = {
        "adj_x": call["transpose_a"] or None,
        "adj_y": call["transpose_b"] or None,
    }
    if kernel.endswith("V3"):
        if call.out.dtype == "f16":
            return None  # of which it has no kernel
        options["Tout"] = call.build.dtype(call.out.dtype)
    return call.value(invoke(kernel, x=a, y=b, **options))


# ---- windows


def _steps(frame: Windows) -> dict[str, Any]:
    return {
        "strides": listed(frame.stride),
        "dilations": None if all_are(frame.dilation, 1) else listed(frame.dilation),
    }


def _kernel(call: Tf) -> Value:
    """Filters with their channels last."""
    w = call.input("w")
    return call.build.transpose(w, (*range(2, w.rank), 1, 0))


def _spread(call: Tf, frame: Windows) -> bool:
    """Whether there is no kernel on a processor."""
    grouped = call["groups"] != 1 and not groupable(call.build.release, frame.rank)
    both = not all_are(frame.dilation, 1) and (
        frame.rank == MOST_SPACE or not all_are(frame.stride, 1)
    )
    return both or grouped or not 1 <= frame.rank <= MOST_SPACE


def _convolution(call: Tf) -> Value | None:
    """The function of any number of axes."""
    x, frame, padding = framed(call, call.input("x"))
    if _spread(call, frame):
        return None
    given = {"padding": padding, **_steps(frame)}
    text = invoke("tf.nn.convolution", channels_last(call, x), _kernel(call), **given)
    return result(call, biased(call, text), call.out.shape)


def _atrous(call: Tf) -> Value | None:
    """Of images, with as many holes along both axes and without steps."""
    x, frame, padding = framed(call, call.input("x"))
    plain = frame.rank == PLANE and all_are(frame.stride, 1) and call["groups"] == 1
    if not plain or len(set(frame.dilation)) != 1:
        return None
    given = {"rate": frame.dilation[0], "padding": padding}
    text = invoke("tf.nn.atrous_conv2d", channels_last(call, x), _kernel(call), **given)
    return result(call, biased(call, text), call.out.shape)


def _any_conv(call: Tf, kernel: str) -> Value | None:
    """The kernel of images and volumes alike."""
    x, frame, padding = framed(call, call.input("x"))
    if _spread(call, frame) or frame.rank < PLANE or call["groups"] != 1:
        return None
    given: dict[str, Any] = {
        "strides": listed((1, *frame.stride, 1)), "padding": padding,
        "dilations": None if all_are(frame.dilation, 1) else listed((1, *frame.dilation, 1)),
    }  # fmt: skip
    text = invoke(kernel, input=channels_last(call, x), filter=_kernel(call), **given)
    return result(call, biased(call, text), call.out.shape)


def _depthwise(call: Tf, kernel: str) -> Value | None:
    x, frame, padding = framed(call, call.input("x"))
    w = call.input("w")
    one = frame.rank == PLANE and len(set(frame.stride)) == 1 and all_are(frame.dilation, 1)
    if not one or 0 in w.shape:
        return None
    given = {"strides": listed((1, *frame.stride, 1)), "padding": padding}
    filters = call.build.transpose(w, (2, 3, 0, 1))
    text = invoke(kernel, input=channels_last(call, x), filter=filters, **given)
    return result(call, biased(call, text), call.out.shape)


def _transposed(call: Tf, kernel: str) -> Value | None:
    """The gradient of a convolution of images, which is told the padding."""
    x, rank = call.input("x"), len(call["S"])
    if rank != PLANE or call["groups"] != 1 or not all_are(call["dilation"], 1):
        return None
    if call["pad"] == "same" or not call.build.pads:
        return None
    lo, whole, out = (tuple(call[name]) for name in ("lo", "full", "O"))
    hi = tuple(w - o - low for w, o, low in zip(whole, out, lo, strict=True))
    extra = zip(call["output_padding"], call["stride"], strict=True)
    if min(*lo, *hi) < 0 or any(more >= stride for more, stride in extra):
        return None
    n, c = call.out.shape[:2]
    pairs = [0, 0, *(end for pair in zip(lo, hi, strict=True) for end in pair), 0, 0]
    given: dict[str, Any] = {
        "input_sizes": listed((n, *out, c)), "filter": _kernel(call),
        "out_backprop": channels_last(call, x), "strides": listed((1, *call["stride"], 1)),
        "padding": '"EXPLICIT"' if any(pairs) else '"VALID"',
        "explicit_paddings": str(list(map(int, pairs))) if any(pairs) else None,
    }  # fmt: skip
    return result(call, biased(call, invoke(kernel, **given)), call.out.shape)


def _pooled(call: Tf, kind: str, x: Value, frame: Windows, padding: str) -> Value | None:
    """The function of any number of axes; it says that it leaves no gaps between windows."""
    if any(step > size for step, size in zip(frame.stride, frame.window, strict=True)):
        return None
    given = {"strides": listed(frame.stride), "padding": padding}
    inner = channels_last(call, x)
    text = invoke("tf.nn.pool", inner, listed(frame.window), f'"{kind.upper()}"', **given)
    return result(call, text, call.out.shape)


def _pooled_raw(call: Tf, kind: str, x: Value, frame: Windows, padding: str) -> Value | None:
    """The kernel of images whose windows are tensors."""
    if frame.rank != PLANE or not call.build.raw:
        return None
    window, stride = (listed((1, *sizes, 1)) for sizes in (frame.window, frame.stride))
    given = {"ksize": window, "strides": stride, "padding": padding}
    text = invoke(f"tf.raw_ops.{kind.title()}PoolV2", input=channels_last(call, x), **given)
    return result(call, text, call.out.shape)


def _pooled_with_places(
    call: Tf, kind: str, x: Value, frame: Windows, padding: str
) -> Value | None:
    """The kernel that says also where the maxima are."""
    if frame.rank != PLANE or not call.build.raw:
        return None
    if x.dtype not in ("f32", "f64", "f16", "bf16"):
        return None
    given = channels_last(call, x), listed(frame.window), listed(frame.stride), padding
    text = f"{invoke(f'tf.nn.{kind}_pool_with_argmax', *given)}[0]"
    return result(call, text, call.out.shape)


def _pool(spelling: str, rule: Callable[..., Value | None], pooled: Pool) -> Native:
    return Native(spelling, partial(rule, pooled=pooled))


# ---- norms


def _fused(call: Tf, kernel: str) -> Value | None:
    """Of images and, the last of these kernels, volumes."""
    x = call.input("x")
    ranks = (4, 5) if kernel.endswith("V3") else (4,)
    if call.build.sloped or not serves(call, x, *ranks):
        return None
    axis = call.axis("axis", x.rank)
    inner = axis_last(call, x, axis)
    names = {"scale": "scale", "offset": "bias", "mean": "mean", "variance": "var"}
    given: dict[str, Any] = {key: call.input(name) for key, name in names.items()}
    given |= {"epsilon": float(call["eps"]), "is_training": False}
    given["data_format"] = '"NDHWC"' if x.rank == 5 else None
    text = f"{invoke(kernel, x=inner, **given)}[0]"
    return axis_back(call, Value(text, inner.shape, x.dtype), axis)


def _fused_train(call: Tf, kernel: str) -> list[Value] | None:
    """Its variance is that of a sample, with any other only what is normalised is its own."""
    x = call.input("x")
    alone = not call.wants("mean") and not call.wants("var")
    if not serves(call, x, 4) or (call["correction"] != 1 and not alone):
        return None
    axis = call.axis("axis", x.rank)
    inner = axis_last(call, x, axis)
    nothing = "tf.constant([])"
    given = {
        "scale": call.input("scale"), "offset": call.input("bias"), "mean": nothing,
        "variance": nothing, "epsilon": float(call["eps"]),
    }  # fmt: skip
    text = invoke(kernel, x=inner, **given)
    if alone:
        return [axis_back(call, Value(f"{text}[0]", inner.shape, x.dtype), axis)]
    y, *names = call.build.several(f"{text}[:3]", *call.node.outputs)
    pairs = zip(names, call.outputs[1:], strict=True)
    given_back = [Value(name, info.shape, info.dtype) for name, info in pairs]
    return [axis_back(call, Value(y, inner.shape, x.dtype), axis), *given_back]


# ---- losses


def _cross_entropy(call: Tf, kernel: str) -> Value | None:
    x, labels = call.input("logits"), call.input("labels")
    if call.has("weight") or call["ignore_index"] or call["label_smoothing"]:
        return None
    if x.rank != 2 or call.axis("axis", 2) != 1 or labels.dtype not in ("i32", "i64"):
        return None
    return reduced(call, f"{invoke(kernel, features=x, labels=labels)}[0]")


def _categorical(call: Tf, kernel: str) -> Value | None:
    x, target = call.input("logits"), call.input("target")
    if call.has("weight") or call["label_smoothing"] or x.rank != 2 or call.axis("axis", 2) != 1:
        return None
    return reduced(call, f"{invoke(kernel, features=x, labels=target)}[0]")


WORDS: dict[str, Native | tuple[Native, ...]] = {
    "dense": Native("tf.compat.v1.nn.xw_plus_b", _xw_plus_b),
    "matmul": (
        raw("SparseMatMul", _sparse),
        raw("BatchMatMul", _batches),
        raw("BatchMatMulV3", _batches, (2, 5)),
    ),
    "conv": (
        Native("tf.nn.convolution", _convolution),
        Native("tf.nn.atrous_conv2d", _atrous),
        raw("Conv", _any_conv, _CONV),
    ),
    "depthwise_conv": raw("DepthwiseConv2dNative", _depthwise),
    "conv_transpose": raw("Conv2DBackpropInput", _transposed),
    "max_pool": (
        _pool("tf.nn.pool", max_pool, _pooled),
        _pool("tf.raw_ops.MaxPoolV2", max_pool, _pooled_raw),
        _pool("tf.nn.max_pool_with_argmax", max_pool, _pooled_with_places),
    ),
    "avg_pool": _pool("tf.nn.pool", avg_pool, _pooled),
    "batch_norm": (raw("FusedBatchNorm", _fused), raw("FusedBatchNormV3", _fused)),
    "batch_norm_train": raw("FusedBatchNormV3", _fused_train),
    "cross_entropy": raw("SparseSoftmaxCrossEntropyWithLogits", _cross_entropy),
    "categorical_cross_entropy": raw("SoftmaxCrossEntropyWithLogits", _categorical),
}
