"""How PyTorch spells layers: products, convolutions, pools and normalisations."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from irlang.dtypes import DTYPES
from irlang.lower.call import Call, Native
from irlang.lower.legalise import Windows, all_are, around, moved, trailing, windows
from irlang.lower.spelling import invoke, of_vectors, plain
from irlang.lower.torch_builder import TorchBuilder
from irlang.lower.value import Value

Torch = Call[TorchBuilder]
_MOST_SPACE = 3  # spatial axes
_HALVES = ("f16", "bf16")
_WIDE = ("f32", "f64")


# ---- products


def _dense(call: Torch) -> Value:
    weight = f"{call.build.inner(call.input('w'))}.T"
    bias = [call.input("b")] if call.has("b") else []
    return call.value(invoke("F.linear", call.input("x"), weight, *bias))


def _gemm(call: Torch) -> Value | None:
    if not call.has("c") or call.out.dtype not in ("f32", "f64"):
        return None
    sides = []
    for name in ("a", "b"):
        text = call.build.inner(call.input(name))
        sides.append(f"{text}.T" if call[f"transpose_{name}"] else text)
    options = {key: None if call[key] == 1 else call[key] for key in ("beta", "alpha")}
    return call.value(invoke("torch.addmm", call.input("c"), *sides, **options))


def _matmul(call: Torch) -> Value:
    sides = []
    for name in ("a", "b"):
        text = call.build.inner(call.input(name))
        sides.append(f"{text}.mT" if call[f"transpose_{name}"] else text)
    return call.value(invoke("torch.matmul", *sides))


def _bilinear(call: Torch) -> Value | None:
    inputs = [call.input(name) for name in ("a", "b", "w", "c") if call.has(name)]
    return call.value(invoke("F.bilinear", *inputs)) if inputs[0].rank > 1 else None


def _determinant(call: Torch) -> Value | None:
    x = call.input("x")
    return call.value(invoke("torch.linalg.det", x)) if x.dtype in _WIDE else None


def _triangular(call: Torch) -> Value | None:
    a, b = call.input("a"), call.input("b")
    if a.dtype not in _WIDE:
        return None
    options = {"upper": not call["lower"], "unitriangular": call["unit_diagonal"] or None}
    return call.value(invoke("torch.linalg.solve_triangular", a, b, **options))


# ---- convolutions


def _convolve(call: Torch, x: Value, weight: Value, groups: int, bias: bool) -> Value | None:
    frame = windows(call)
    if not 1 <= frame.rank <= _MOST_SPACE:
        return None
    padding: Any = None
    if frame.padded and call["pad"] == "same" and all_are(frame.stride, 1):
        padding = '"same"'
    elif frame.padded and frame.symmetric:
        padding = frame.before
    else:
        x, frame = around(call, x, frame)
    text = invoke(
        f"F.conv{frame.rank}d",
        x,
        weight,
        *([call.input("b")] if bias else ()),
        stride=None if all_are(frame.stride, 1) else frame.stride,
        padding=padding,
        dilation=None if all_are(frame.dilation, 1) else frame.dilation,
        groups=None if groups == 1 else groups,
    )
    return call.value(text)


def _conv(call: Torch) -> Value | None:
    return _convolve(call, call.input("x"), call.input("w"), call["groups"], call.has("b"))


def _filters(call: Torch) -> Value:
    """The weight of a depthwise convolution as that of a grouped one."""
    weight = call.input("w")
    return call.build.reshape(weight, (weight.shape[0] * weight.shape[1], 1, *weight.shape[2:]))


def _depthwise(call: Torch) -> Value | None:
    """A group for every channel, of which there has to be one."""
    if not call["C"]:
        return None
    return _convolve(call, call.input("x"), _filters(call), call["C"], call.has("b"))


def _transposed(call: Torch) -> Value | None:
    """As PyTorch crops it, where it can, else the whole and its middle."""
    x, size, lo, out = call.input("x"), call["S"], call["lo"], call["O"]
    stride, dilation, span = call["stride"], call["dilation"], call["span"]
    rank = len(size)
    if not 1 <= rank <= _MOST_SPACE:
        return None
    whole = [(n - 1) * s + k for n, s, k in zip(size, stride, span, strict=False)]
    extra = [o - (w - 2 * low) for o, w, low in zip(out, whole, lo, strict=True)]
    limits = [max(pair) for pair in zip(stride, dilation, strict=True)]
    if call["pad"] == "given" and tuple(call["before"]) == tuple(call["after"]):
        extra = list(call["output_padding"])  # as it is said, which is what is left
        direct = True
    else:
        direct = all(0 <= e < limit for e, limit in zip(extra, limits, strict=True))
    padding = tuple(lo) if direct and any(lo) else None
    if not direct:
        extra = [max(0, low + o - w) for low, o, w in zip(lo, out, whole, strict=True)]
        if any(e >= limit for e, limit in zip(extra, limits, strict=True)):
            return None
    text = invoke(
        f"F.conv_transpose{rank}d",
        x,
        call.input("w"),
        *([call.input("b")] if call.has("b") else ()),
        stride=None if all_are(stride, 1) else tuple(stride),
        padding=padding,
        output_padding=tuple(extra) if any(extra) else None,
        groups=None if call["groups"] == 1 else call["groups"],
        dilation=None if all_are(dilation, 1) else tuple(dilation),
    )
    if direct:
        return call.value(text)
    full = tuple(w + e for w, e in zip(whole, extra, strict=True))
    value = call.build.let(Value(text, (*call.out.shape[:2], *full), call.out.dtype), "v")
    for axis, (low, o) in enumerate(zip(lo, out, strict=True)):
        if (low, o) != (0, full[axis]):
            value = call.build.slice(value, 2 + axis, low, low + o, 1)
    return value


# ---- pools


def _fits_half(frame: Windows) -> bool:
    """PyTorch pads at most half a window; what is as much as a whole one is for it to refuse."""
    halves = zip(frame.before, frame.window, frame.span, strict=True)
    return frame.symmetric and all(2 * low <= window or low >= span for low, window, span in halves)


def pooled(x: Value, frame: Windows, ceil: bool, **more: Any) -> str:
    """The call of a function that takes maxima."""
    return invoke(
        f"F.max_pool{frame.rank}d",
        x,
        frame.window,
        stride=None if frame.stride == frame.window else frame.stride,
        padding=frame.before if frame.padded else None,
        dilation=None if all_are(frame.dilation, 1) else frame.dilation,
        ceil_mode=ceil or None,
        **more,
    )


def _pooled(call: Torch, x: Value, frame: Windows, ceil: bool) -> Value:
    return call.value(pooled(x, frame, ceil))


def max_pool(
    call: Torch, given: Callable[[Torch, Value, Windows, bool], Value] = _pooled
) -> Value | None:
    """A maximum, which is `given` on an input and its windows."""
    x, frame = call.input("x"), windows(call)
    if not 1 <= frame.rank <= _MOST_SPACE or DTYPES[x.dtype].kind != "real":
        return None
    ceil = bool(call["ceil_mode"]) and call["pad"] != "same"
    if not _fits_half(frame):
        x, frame = around(call, x, frame.reaching(), -math.inf)
        ceil = False
    return given(call, x, frame, ceil)


def _avg_pool(call: Torch) -> Value | None:
    x, frame = call.input("x"), windows(call)
    counts = bool(call["count_include_pad"])
    if not 1 <= frame.rank <= _MOST_SPACE or not all_are(frame.dilation, 1):
        return None
    if frame.rank == _MOST_SPACE and x.dtype in _HALVES:
        return None  # there is no kernel
    small = any(size < own for size, own in zip(x.shape[2:], frame.window, strict=True))
    if frame.rank == _MOST_SPACE and small:
        return None  # avg_pool3d does not count the padding
    ceil = bool(call["ceil_mode"]) and call["pad"] != "same"
    if not _fits_half(frame):
        if not counts or ceil:
            return None
        x, frame = around(call, x, frame)
    text = invoke(
        f"F.avg_pool{frame.rank}d",
        x,
        frame.window,
        stride=None if frame.stride == frame.window else frame.stride,
        padding=frame.before if frame.padded else None,
        ceil_mode=ceil or None,
        count_include_pad=None if counts or not (frame.padded or ceil) else False,
    )
    return call.value(text)


def _lp_pool(call: Torch) -> Value | None:
    """For even orders: PyTorch leaves the sign to odd powers."""
    frame, order = windows(call), float(call["p"])
    plain_ = not frame.padded and all_are(frame.dilation, 1) and not call["ceil_mode"]
    if not 1 <= frame.rank <= _MOST_SPACE or not plain_ or order % 2:
        return None
    if frame.rank == _MOST_SPACE and call.out.dtype in _HALVES:
        return None  # there is no kernel
    stride: Any = None if frame.stride == frame.window else frame.stride
    window: Any = frame.window
    if frame.rank == 1:  # where it takes no tuples
        window, stride = window[0], stride and stride[0]
    text = invoke(f"F.lp_pool{frame.rank}d", call.input("x"), order, window, stride=stride)
    return call.value(text)


def _global(kind: str, reduction: str) -> Native:
    def rule(call: Torch) -> Value | None:
        x = call.input("x")
        space = x.rank - 2
        if not 1 <= space <= _MOST_SPACE:
            return None
        if call["keepdims"]:
            return call.value(invoke(f"F.adaptive_{kind}_pool{space}d", x, 1))
        return call.value(invoke(reduction, x, dim=tuple(range(2, x.rank))))

    return Native(f"F.adaptive_{kind}_pool{{1,2,3}}d, {reduction}", rule)


# ---- normalisation


def _at_channels(call: Torch, axis: int, text: Any) -> Value:
    """The text of a function that wants the channels second, over `x` moved there and back."""
    x = call.input("x")
    inner = moved(call, x, axis, 1)
    found = text(inner)
    return moved(call, Value(found, inner.shape, x.dtype), 1, axis)


def _batch_norm(call: Torch) -> Value | None:
    x = call.input("x")
    if x.rank < 2:
        return None
    given = [call.text(name) for name in ("mean", "var", "scale", "bias")]
    eps = call["eps"]
    return _at_channels(
        call,
        call.axis("axis", x.rank),
        lambda inner: invoke("F.batch_norm", inner, *given, eps=eps),
    )


def _batch_norm_train(call: Torch) -> list[Value] | None:
    x = call.input("x")
    refused = call["n"] < 2 or float(call["eps"]) == 0
    if x.rank < 2 or (refused and not call.dares()):  # which PyTorch refuses
        return None
    axis, eps = call.axis("axis", x.rank), call["eps"]
    given = [None, None, call.text("scale"), call.text("bias")]
    y = _at_channels(
        call, axis, lambda inner: invoke("F.batch_norm", inner, *given, training=True, eps=eps)
    )
    axes = tuple(i for i in range(x.rank) if i != axis)
    mean = call.value(invoke("torch.mean", x, dim=axes), 1)
    var = call.value(invoke("torch.var", x, dim=axes, correction=call["correction"]), 2)
    return [y, mean, var]


def _within_root(call: Torch) -> bool:
    """Whether `eps` is added below the root, where the definition leaves it open."""
    return bool(call.node.instance.binding.scope.names.get("eps_to") != "deviation")


def _over_last(function: str, *weights: str) -> Native:
    def rule(call: Torch) -> Value | None:
        x = call.input("x")
        axes = call.axes("axes", x.rank)
        if not axes or not trailing(axes, x.rank) or not _within_root(call):
            return None
        shape = x.shape[-len(axes) :]
        given = [call.text(name) for name in weights]
        return call.value(invoke(function, x, shape, *given, eps=call["eps"]))

    return Native(function, rule)


def _group_norm(call: Torch) -> Value | None:
    x = call.input("x")
    if call["n"] < 2 and not call.dares():  # which PyTorch refuses
        return None
    groups, eps = call["groups"], call["eps"]
    given = [call.text("gamma"), call.text("beta")]
    return _at_channels(
        call,
        call.axis("axis", x.rank),
        lambda inner: invoke("F.group_norm", inner, groups, *given, eps=eps),
    )


def _instance_norm(call: Torch) -> Value | None:
    x, eps = call.input("x"), call["eps"]
    if x.rank < 3 or call["n"] < 2:
        return None
    given = {
        key: call.input(name) if call.has(name) else None
        for key, name in (("weight", "gamma"), ("bias", "beta"))
    }
    return _at_channels(
        call,
        call.axis("axis", x.rank),
        lambda inner: invoke("F.instance_norm", inner, **given, eps=eps),
    )


def _normalize(call: Torch) -> Value | None:
    x = call.input("x")
    axes = call.axes_said("axes", x.rank)
    if len(axes) != 1:
        return None
    return call.value(invoke("F.normalize", x, p=call["p"], dim=axes[0], eps=call["eps"]))


def _local_response(call: Torch) -> Value | None:
    """Of an even number PyTorch takes one more before."""
    x = call.input("x")
    if call["before"] != call["size"] // 2 or x.rank < 3 or (x.rank > 3 and x.dtype in _HALVES):
        return None
    options = {"alpha": call["alpha"], "beta": call["beta"], "k": call["bias"]}
    return call.value(invoke("F.local_response_norm", x, call["size"], **options))


LAYERS: dict[str, Native] = {
    "dense": Native("F.linear", _dense),
    "matmul": Native("torch.matmul", _matmul),
    "gemm": Native("torch.addmm", _gemm),
    "outer": of_vectors("torch.outer"),
    "bilinear": Native("F.bilinear", _bilinear),
    "determinant": Native("torch.linalg.det", _determinant),
    "triangular_solve": Native("torch.linalg.solve_triangular", _triangular),
    "conv": Native("F.conv{1,2,3}d", _conv),
    "depthwise_conv": Native("F.conv{1,2,3}d, grouped", _depthwise),
    "conv_transpose": Native("F.conv_transpose{1,2,3}d", _transposed),
    "max_pool": Native("F.max_pool{1,2,3}d", max_pool),
    "avg_pool": Native("F.avg_pool{1,2,3}d", _avg_pool),
    "lp_pool": Native("F.lp_pool{1,2,3}d", _lp_pool),
    "global_max_pool": _global("max", "torch.amax"),
    "global_avg_pool": _global("avg", "torch.mean"),
    "batch_norm": Native("F.batch_norm", _batch_norm, constant=("mean", "var")),
    "batch_norm_train": Native("F.batch_norm", _batch_norm_train),
    "layer_norm": _over_last("F.layer_norm", "gamma", "beta"),
    "rms_norm": replace(_over_last("F.rms_norm", "gamma"), since=(2, 4)),
    "group_norm": Native("F.group_norm", _group_norm),
    "instance_norm": Native("F.instance_norm", _instance_norm),
    "normalize": Native("F.normalize", _normalize),
    "local_response_norm": Native("F.local_response_norm", _local_response),
    "softmax": plain("torch.softmax", dim="axis"),
    "log_softmax": plain("torch.log_softmax", dim="axis"),
}
