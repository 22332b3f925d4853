"""How ONNX spells layers: convolutions, pools, normalisations, recurrences, losses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from irlang.equations import TensorInfo
from irlang.lower.call import Call, Native
from irlang.lower.legalise import Windows, is_whole, moved, trailing, windows
from irlang.lower.onnx_builder import OnnxBuilder
from irlang.lower.value import Value

Onnx = Call[OnnxBuilder]
_ANY_AXES = 20  # the opset since which ONNX Runtime normalises other tensors than images
_TRAINS = 14  # the opset since which statistics of a batch are an attribute of a normalisation
_COUNTED = 22  # the opset since which windows that begin in the padding after do not count
_MOST_SPACE = 3  # spatial axes


def _filled(call: Onnx, name: str, size: int, number: float, dtype: str) -> Value:
    """An optional vector, or as many equal numbers."""
    if call.has(name):
        return call.input(name)
    return call.build.constant(np.full(size, number), dtype)


# ---- products


def _dense(call: Onnx) -> Value:
    x, w = call.input("x"), call.input("w")
    if call.has("b") and x.rank == 2:
        return call.build.op("Gemm", [x, w, call.input("b")], call.out.shape)
    product = call.build.op("MatMul", [x, w], call.out.shape)
    return call.build.apply("+", [product, call.input("b")]) if call.has("b") else product


def _gemm(call: Onnx) -> Value | None:
    if call.out.dtype not in ("f32", "f64"):
        return None
    options: dict[str, Any] = {key: float(call[key]) for key in ("alpha", "beta") if call[key] != 1}
    options |= {
        key: 1 for key, name in (("transA", "transpose_a"), ("transB", "transpose_b")) if call[name]
    }
    values = [call.input(name) for name in ("a", "b", "c") if call.has(name)]
    return call.build.op("Gemm", values, call.out.shape, **options)


def _matmul(call: Onnx) -> Value:
    sides = []
    for name in ("a", "b"):
        value = call.input(name)
        if call[f"transpose_{name}"]:
            lead = tuple(range(value.rank - 2))
            value = call.build.transpose(value, (*lead, value.rank - 1, value.rank - 2))
        sides.append(value)
    return call.build.op("MatMul", sides, call.out.shape)


# ---- windows


def placed(call: Onnx, frame: Windows, *, dilated: bool = False) -> dict[str, Any]:
    """The attributes of a window; `SAME_UPPER` is the language's `same`.

    dilated: whether windows that are dilated are said to be automatically padded as well, as of
    pools; ONNX Runtime refuses such a convolution, of which there are many, so that padding is
    given in numbers, unless a refusal does no harm. So it is where a window is shorter than its
    stride: by ONNX's formula it is negative.
    """
    options: dict[str, Any] = {
        "kernel_shape": list(frame.window),
        "strides": list(frame.stride),
    }
    if "dilation" in call.node.attrs or set(frame.dilation) - {1}:
        options["dilations"] = list(frame.dilation)  # AveragePool has them since opset 19
    # a list of another length, as an invalid call has it, is handed on as it is
    span = frame.span if len(frame.dilation) == len(frame.window) else frame.window
    ends = zip(frame.out, frame.stride, span, frame.size, strict=False)
    reaches = all((o - 1) * s + k >= n for o, s, k, n in ends)
    lower = call["pad"] == "given" and _is_lower(frame, span)
    automatic = reaches and (call["pad"] == "same" or lower)
    if automatic and (dilated or set(frame.dilation) <= {1} or call.dares()):
        options["auto_pad"] = "SAME_LOWER" if lower else "SAME_UPPER"
    else:
        options["pads"] = [*frame.before, *frame.after]
    return options


def _is_lower(frame: Windows, span: Sequence[int]) -> bool:
    """Whether as many windows as fit an input divided by the stride need the padding that is given,
    the odd element before: `SAME_LOWER`. span: the extents of a window.
    """
    ends = zip(frame.size, frame.stride, span, frame.before, frame.after, strict=False)
    counts = tuple(-(-n // s) for n, s in zip(frame.size, frame.stride, strict=False))
    need = [(max(0, (-(-n // s) - 1) * s + k - n), lo, hi) for n, s, k, lo, hi in ends]
    odd = any(total % 2 for total, _, _ in need)
    halves = all((lo, hi) == (total - total // 2, total // 2) for total, lo, hi in need)
    return odd and halves and counts == frame.out


def _conv(call: Onnx) -> Value | None:
    frame = windows(call)
    if not 1 <= frame.rank <= _MOST_SPACE:
        return None
    values = [call.input(name) for name in ("x", "w", "b") if call.has(name)]
    options = placed(call, frame)
    if len(frame.window) != frame.rank:
        del options["kernel_shape"]  # which is that of the kernel: what is wrong is its rank alone
    return call.build.op("Conv", values, call.out.shape, group=call["groups"], **options)


def _depthwise(call: Onnx) -> Value | None:
    """A group for every channel, of which there has to be one."""
    frame = windows(call)
    if not 1 <= frame.rank <= _MOST_SPACE or not call["C"]:
        return None
    w = call.input("w")
    weight = call.build.reshape(w, (w.shape[0] * w.shape[1], 1, *w.shape[2:]))
    values = [call.input("x"), weight, *([call.input("b")] if call.has("b") else ())]
    options = placed(call, frame)
    return call.build.op("Conv", values, call.out.shape, group=call["C"], **options)


def _spread(call: Onnx) -> dict[str, Any]:
    """What ConvTranspose is told of its window; not its shape, where the kernel has another number
    of axes than the input.
    """
    shape = {"kernel_shape": list(call["K"])} if len(call["K"]) == len(call["S"]) else {}
    return {
        **shape,
        "strides": list(call["stride"]),
        "dilations": list(call["dilation"]),
        "group": call["groups"],
    }


def _to_a_size(call: Onnx) -> Value | None:
    """ConvTranspose that is told the size of its result, from which follows what is cut off: of an
    odd number the greater half at the beginning.
    """
    lo, out, whole = call["lo"], call["O"], call["full"]
    if not 1 <= len(call["S"]) <= _MOST_SPACE or any(call["output_padding"]):
        return None
    cut = [w - o for w, o in zip(whole, out, strict=True)]
    if any(total < 0 or low != total - total // 2 for low, total in zip(lo, cut, strict=True)):
        return None
    values = [call.input(name) for name in ("x", "w", "b") if call.has(name)]
    options = {**_spread(call), "output_shape": list(out)}
    return call.build.op("ConvTranspose", values, call.out.shape, **options)


def _transposed(call: Onnx) -> Value | None:
    if not 1 <= len(call["S"]) <= _MOST_SPACE:
        return None
    values = [call.input(name) for name in ("x", "w", "b") if call.has(name)]
    lo, out, extra = call["lo"], call["O"], list(call["output_padding"])
    options = _spread(call)
    whole = list(call["full"])
    if call["pad"] == "same":
        more = [max(0, o - w) for o, w in zip(out, whole, strict=True)]
        # A window shorter than a stride leaves positions to be added: where, ONNX says of one.
        if not any(more) or (max(more) == 1 and call.dares()):
            options["auto_pad"] = "SAME_UPPER"
            return call.build.op("ConvTranspose", values, call.out.shape, **options)
        extra = [e + m for e, m in zip(extra, more, strict=True)]
        whole = [w + m for w, m in zip(whole, more, strict=True)]
    steps = list(zip(extra, call["stride"], call["dilation"], strict=True))
    if any(e >= stride for e, stride, _ in steps if e):  # which ONNX Runtime refuses
        allowed = all(e < max(stride, dilation) for e, stride, dilation in steps if e)
        if not (allowed and call.dares()):
            return None
    after = [w - low - o for w, low, o in zip(whole, lo, out, strict=True)]
    options |= {"pads": [*lo, *after], "output_padding": extra}
    return call.build.op("ConvTranspose", values, call.out.shape, **options)


def _pool(op: str, **more: str) -> Native:
    """A pool; padding must be less than the window, which a dilated one allows to exceed: of that
    ONNX says nothing, and ONNX Runtime refuses it.
    """

    def rule(call: Onnx) -> Value | None:
        frame = windows(call)
        widest = map(max, frame.before, frame.after)
        beyond = any(amount >= k for amount, k in zip(widest, frame.window, strict=True))
        if beyond and not call.dares():
            return None
        if not 1 <= frame.rank <= _MOST_SPACE:
            return None
        if not counts_alike(call, frame, op):
            return None
        options = placed(call, frame, dilated=True)
        if "auto_pad" not in options:
            options["ceil_mode"] = int(call["ceil_mode"])
        for key, name in more.items():
            if not is_whole(call[name]):
                return None
            options[key] = int(call[name])
        return call.build.op(op, [call.input("x")], call.out.shape, **options)

    return Native(op, rule)


def counts_alike(call: Onnx, frame: Windows, op: str) -> bool:
    """Whether ONNX counts as many windows; until opset 22 one may begin in the padding after, and
    of LpPool later opsets say nothing else.
    """
    if call["pad"] == "same" or not call["ceil_mode"]:
        return True
    if call.build.runtime.opset >= _COUNTED and op != "LpPool":
        return True
    ends = zip(frame.size, frame.before, frame.after, frame.span, frame.stride, strict=True)
    counts = tuple(-(-(n + lo + hi - span) // step) + 1 for n, lo, hi, span, step in ends)
    return counts == frame.out


def _global(op: str) -> Native:
    def rule(call: Onnx) -> Value | None:
        x = call.input("x")
        if not 1 <= x.rank - 2 <= _MOST_SPACE:
            return None
        shape = (*x.shape[:2], *(1 for _ in x.shape[2:]))
        found = call.build.op(op, [x], shape)
        return found if call["keepdims"] else call.build.reshape(found, call.out.shape)

    return Native(op, rule)


def _global_norm(call: Onnx) -> Value | None:
    x, order = call.input("x"), call["p"]
    if not 1 <= x.rank - 2 <= _MOST_SPACE or not is_whole(order):
        return None
    return call.build.op("GlobalLpPool", [x], call.out.shape, p=int(order))


# ---- normalisation


def _mean_variance(call: Onnx) -> Value | None:
    x = call.input("x")
    if call["eps"] != 1e-9 or not x.rank:
        return None
    axes = list(call.axes_said("axes", x.rank))
    images = x.rank == 4 and {*call.axes("axes", x.rank)} in ({0, 2, 3}, {0, 1, 2, 3})
    if not axes:
        return None
    if call.build.runtime.opset < _ANY_AXES and not images and not call.dares():
        return None  # which elder releases refuse
    return call.build.op("MeanVarianceNormalization", [x], x.shape, axes=axes)


def _batch_norm(call: Onnx) -> Value | None:
    x = call.input("x")
    if x.rank < 2:
        return None
    axis, channels = call.axis("axis", x.rank), call["C"]
    inner = moved(call, x, axis, 1)
    values = [
        inner,
        _filled(call, "scale", channels, 1.0, x.dtype),
        _filled(call, "bias", channels, 0.0, x.dtype),
        call.input("mean"),
        call.input("var"),
    ]
    found = call.build.op("BatchNormalization", values, inner.shape, epsilon=float(call["eps"]))
    return moved(call, found, 1, axis)


def _batch_norm_train(call: Onnx) -> Any:
    """Of the statistics that it is given nothing is kept. They are tensors of their own: ONNX
    Runtime writes what comes out in their place, and a bias that is the same tensor would be lost.
    """
    x, channels = call.input("x"), call["C"]
    if x.rank < 2 or call.axis("axis", x.rank) != 1 or call["correction"]:
        return None
    runtime = call.build.runtime
    if runtime.opset < _TRAINS or runtime.carrier("BatchNormalization", x.dtype) != x.dtype:
        return None
    values = [
        x,
        _filled(call, "scale", channels, 1.0, x.dtype),
        _filled(call, "bias", channels, 0.0, x.dtype),
        call.build.constant(np.full(channels, 2.0), x.dtype),
        call.build.constant(np.full(channels, 3.0), x.dtype),
    ]
    options = {"epsilon": float(call["eps"]), "momentum": 0.0, "training_mode": 1}
    texts = [value.text for value in values]
    return call.build.node("BatchNormalization", texts, call.outputs, **options)


def _layer_norm(call: Onnx) -> Value | None:
    x = call.input("x")
    axes = call.axes("axes", x.rank)
    if not axes or not trailing(axes, x.rank) or call["eps_to"] != "variance":
        return None
    shape = x.shape[-len(axes) :]
    scale = (
        call.input("gamma") if call.has("gamma") else call.build.constant(np.ones(shape), x.dtype)
    )
    values = [x, scale, *([call.input("beta")] if call.has("beta") else ())]
    options = {"axis": call.axis_said("axes", x.rank), "epsilon": float(call["eps"])}
    return call.build.op("LayerNormalization", values, x.shape, **options)


def _per_channel(op: str, **more: str) -> Native:
    """Normalisation of channels that stand second, scaled and shifted."""

    def rule(call: Onnx) -> Value | None:
        x = call.input("x")
        if x.rank < 3:
            return None
        axis, channels = call.axis("axis", x.rank), call["C"]
        inner = moved(call, x, axis, 1)
        scale = _filled(call, "gamma", channels, 1.0, x.dtype)
        shift = _filled(call, "beta", channels, 0.0, x.dtype)
        options: dict[str, Any] = {key: call[name] for key, name in more.items()}
        options["epsilon"] = float(call["eps"])
        return moved(
            call, call.build.op(op, [inner, scale, shift], inner.shape, **options), 1, axis
        )

    return Native(op, rule)


def _local_response(call: Onnx) -> Value | None:
    x = call.input("x")
    numbers = {name: float(call[name]) for name in ("alpha", "beta", "bias")}
    if x.rank < 2 or call["before"] != (call["size"] - 1) // 2:
        return None
    without = numbers["alpha"] == 0 or numbers["beta"] == 0
    usual = x.rank == 4 and call["size"] % 2 == 1 and not without
    if not usual and not call.dares():  # ONNX Runtime refuses what ONNX allows
        return None
    return call.build.op("LRN", [x], x.shape, size=call["size"], **numbers)


# ---- recurrent layers

_ACTIVATIONS = {
    "tanh": "Tanh", "sigmoid": "Sigmoid", "relu": "Relu", "hard_sigmoid": "HardSigmoid",
    "softsign": "Softsign", "softplus": "Softplus", "elu": "Elu", "leaky_relu": "LeakyRelu",
    "thresholded_relu": "ThresholdedRelu", "scaled_tanh": "ScaledTanh", "affine": "Affine",
}  # fmt: skip
_WITH_ALPHA = ("Elu", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "Affine", "HardSigmoid")
_WITH_BETA = ("ScaledTanh", "Affine", "HardSigmoid")


def _recurrent(
    call: Onnx, op: str, prefixes: list[str], states: list[str], **more: Any
) -> list[Value] | None:
    """One layer in one direction, which ONNX gives an axis of its own.

    prefixes: of the attributes that say each activation.
    """
    kinds = [call["hidden" if at == "hidden_" else f"{at}activation"] for at in prefixes]
    if call.has("mask") or any(kind not in _ACTIVATIONS for kind in kinds):
        return None
    if call["clip"] == 0 and not call.dares():
        return None  # ONNX Runtime refuses it, and with it every program that has it
    build, dtype = call.build, call.build.runtime.carrier(op, call.out.dtype)
    x, w, r = (build.cast(call.input(name), dtype) for name in ("x", "w", "r"))
    hidden, features = r.shape[-1], w.shape[-1]
    gates = w.shape[0] if w.rank == 3 else 1
    if call["batch_first"]:
        x = build.transpose(x, (1, 0, 2))
    length, batch = x.shape[:2]

    def bias(name: str) -> Value:
        size = gates * hidden
        if not call.has(name):
            return build.constant(np.zeros((1, size)), dtype)
        return build.reshape(build.cast(call.input(name), dtype), (1, size))

    def state(name: str) -> str:
        if not call.has(name):
            return ""
        return build.reshape(build.cast(call.input(name), dtype), (1, batch, hidden)).text

    inputs = [
        x.text,
        build.reshape(w, (1, gates * hidden, features)).text,
        build.reshape(r, (1, gates * hidden, hidden)).text,
        build.concat([bias("b"), bias("rb")], 1).text,
        "",
    ]
    inputs += map(state, states)
    if call.has("p"):
        p = build.cast(call.input("p"), dtype)
        inputs.append(build.reshape(p, (1, 3 * hidden)).text)
    while not inputs[-1]:
        inputs.pop()
    types = [TensorInfo((length, 1, batch, hidden), dtype)]
    types += [TensorInfo((1, batch, hidden), dtype)] * len(states)
    options = {
        "hidden_size": hidden,
        "direction": "reverse" if call["reverse"] else "forward",
        "activations": [_ACTIVATIONS[kind] for kind in kinds],
        **more,
    }
    if call["clip"] != math.inf:
        options["clip"] = float(call["clip"])
    for name, takers in (("alpha", _WITH_ALPHA), ("beta", _WITH_BETA)):
        pairs = zip(prefixes, options["activations"], strict=True)
        found = [float(call[f"{at}{name}"]) for at, kind in pairs if kind in takers]
        if found:
            options[f"activation_{name}"] = found
    y, *last = build.node(op, inputs, types, **options)
    y = build.reshape(y, (length, batch, hidden))
    if call["batch_first"]:
        y = build.transpose(y, (1, 0, 2))
    values = [y, *(build.reshape(value, (batch, hidden)) for value in last)]
    return [build.cast(value, call.out.dtype) for value in values]


def _rnn(call: Onnx) -> list[Value] | None:
    return _recurrent(call, "RNN", [""], ["h0"])


def _gru(call: Onnx) -> list[Value] | None:
    after = int(call["reset_after"])
    return _recurrent(call, "GRU", ["recurrent_", ""], ["h0"], linear_before_reset=after)


def _lstm(call: Onnx) -> list[Value] | None:
    coupled = int(call["input_forget"])
    kinds = ["recurrent_", "", "hidden_"]
    return _recurrent(call, "LSTM", kinds, ["h0", "c0"], input_forget=coupled)


# ---- losses


def _of_classes(op: str, scores: str) -> Native:
    """ONNX wants the classes second."""

    def rule(call: Onnx) -> Value | None:
        x, labels = call.input(scores), call.input("labels")
        if x.rank < 2 or x.dtype not in ("f32", "f64"):
            return None
        inner = moved(call, x, call.axis("axis", x.rank), 1)
        ids = labels if labels.dtype in ("i32", "i64") else call.build.cast(labels, "i64")
        options: dict[str, Any] = {"reduction": call["reduction"]}
        if len(call["ignore_index"]) > 1 or call.node.attrs.get("label_smoothing"):
            return None
        if call["ignore_index"]:
            options["ignore_index"] = call["ignore_index"][0]
        given = [inner.text, ids.text, *([call.input("weight").text] if call.has("weight") else ())]
        return call.build.node(op, given, [call.out], **options)[0]

    return Native(op, rule)


LAYERS: dict[str, Native] = {
    "dense": Native("Gemm, MatMul", _dense),
    "matmul": Native("MatMul", _matmul),
    "gemm": Native("Gemm", _gemm),
    "conv": Native("Conv", _conv),
    "depthwise_conv": Native("Conv", _depthwise),
    "conv_transpose": Native(
        "ConvTranspose",
        _transposed,
        others=(Native("ConvTranspose of output_shape", _to_a_size),),
    ),
    "max_pool": _pool("MaxPool"),
    "avg_pool": _pool("AveragePool", count_include_pad="count_include_pad"),
    "lp_pool": _pool("LpPool", p="p"),
    "global_max_pool": _global("GlobalMaxPool"),
    "global_avg_pool": _global("GlobalAveragePool"),
    "global_lp_pool": Native("GlobalLpPool", _global_norm),
    "mean_variance_norm": Native("MeanVarianceNormalization", _mean_variance),
    "batch_norm": Native("BatchNormalization", _batch_norm),
    "batch_norm_train": Native("BatchNormalization", _batch_norm_train),
    "layer_norm": Native("LayerNormalization", _layer_norm),
    "instance_norm": _per_channel("InstanceNormalization"),
    "group_norm": _per_channel("GroupNormalization", num_groups="groups"),
    "local_response_norm": Native("LRN", _local_response),
    "simple_rnn": Native("RNN", _rnn),
    "gru": Native("GRU", _gru),
    "lstm": Native("LSTM", _lstm),
    "cross_entropy": _of_classes("SoftmaxCrossEntropyLoss", "logits"),
    "nll": _of_classes("NegativeLogLikelihoodLoss", "log_probs"),
}
