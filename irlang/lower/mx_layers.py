"""How MXNet spells layers: products, windows, norms, chance and recurrence of `mx.npx`."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from irlang.lower.call import Call, Native
from irlang.lower.chance import NORMAL, UNIFORM
from irlang.lower.legalise import Windows, around, windows
from irlang.lower.mx_builder import MxBuilder
from irlang.lower.mx_losses import HUBER
from irlang.lower.spelling import invoke
from irlang.lower.value import Value

Mx = Call[MxBuilder]
_MOST_SPACE = 3
_WIDE = ("f32", "f64")


def _matmul(call: Mx) -> Value | None:
    """Of matrices, of a batch of them along one axis, and of more of them by one matrix."""
    a, b = call.input("a"), call.input("b")
    if a.dtype not in _WIDE:
        return None
    if a.rank > b.rank == 2 and not call["transpose_a"]:
        matrix = call.build.transpose(b, (1, 0)) if call["transpose_b"] else b
        return call.value(invoke("mx.np.dot", a, matrix))
    if a.rank != b.rank or a.rank not in (2, 3):
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


def _dense(call: Mx) -> Value | None:
    """The weight has its axes in the other order, and something in them."""
    x, w = call.input("x"), call.input("w")
    if not w.shape[1]:
        return None
    given = [x, call.build.transpose(w, (1, 0)), *([call.input("b")] if call.has("b") else [])]
    options = {"num_hidden": w.shape[1], "no_bias": not call.has("b"), "flatten": False}
    return call.value(invoke("mx.npx.fully_connected", *given, **options))


def framed(call: Mx, number: float = 0.0) -> tuple[Value, Windows]:
    """The input and its windows; padding that is not the same at both ends made part of it."""
    x, frame = call.input("x"), windows(call)
    return (x, frame) if frame.symmetric else around(call, x, frame, number)


def has_windows(frame: Windows) -> bool:
    """Whether MXNet has such windows: of three axes they are not spread."""
    return 1 <= frame.rank < _MOST_SPACE or (
        frame.rank == _MOST_SPACE and set(frame.dilation) == {1}
    )


def _conv(call: Mx) -> Value | None:
    x, frame = framed(call)
    if not has_windows(frame):
        return None
    given = [x, call.input("w"), *([call.input("b")] if call.has("b") else [])]
    options = {
        "kernel": frame.window, "stride": frame.stride or None, "dilate": frame.dilation or None,
        "pad": frame.before or None, "num_filter": call.out.shape[1], "num_group": call["groups"],
        "no_bias": not call.has("b"),
    }  # fmt: skip
    return call.value(invoke("mx.npx.convolution", *given, **options))


def _depthwise(call: Mx) -> Value | None:
    """A group for every channel, of which there has to be one."""
    x, frame = framed(call)
    w = call.input("w")
    if not has_windows(frame) or not w.shape[0]:
        return None
    flat = call.build.reshape(w, (w.shape[0] * w.shape[1], 1, *w.shape[2:]))
    given = [x, flat, *([call.input("b")] if call.has("b") else [])]
    options = {
        "kernel": frame.window, "stride": frame.stride or None, "dilate": frame.dilation or None,
        "pad": frame.before or None, "num_filter": flat.shape[0], "num_group": w.shape[0],
        "no_bias": not call.has("b"),
    }  # fmt: skip
    return call.value(invoke("mx.npx.convolution", *given, **options))


def _conv_transpose(call: Mx) -> Value | None:
    """Of one axis or two. Padding takes as much away at both ends; what the windows leave over is
    added behind.
    """
    rank, w = len(call["S"]), call.input("w")
    before = tuple(call["lo"])
    ends = zip(call["full"], call["O"], before, call["output_padding"], strict=False)
    after = [full - out - low for full, out, low, _ in ends]
    spread = rank == _MOST_SPACE and set(call["dilation"]) != {1}
    if (
        not 1 <= rank <= _MOST_SPACE
        or spread
        or not call.out.shape[1]
        or any(a > b for a, b in zip(after, before, strict=True))
    ):
        return None
    # What is cut off behind less than before is what `adj` adds there.
    adjacent = tuple(
        e + low - high for e, low, high in zip(call["output_padding"], before, after, strict=True)
    )
    if any(e and e >= s for e, s in zip(adjacent, call["stride"], strict=True)):
        return None
    given = [call.input("x"), w, *([call.input("b")] if call.has("b") else [])]
    options = {
        "kernel": tuple(call["K"]), "stride": tuple(call["stride"]) or None,
        "dilate": tuple(call["dilation"]) or None, "pad": before,
        "adj": adjacent if any(adjacent) else None, "num_filter": call.out.shape[1],
        "num_group": call["groups"], "no_bias": not call.has("b"),
    }  # fmt: skip
    return call.value(invoke("mx.npx.deconvolution", *given, **options))


def _full_counts(frame: Windows) -> bool:
    """Whether there are as many windows as MXNet's convention `full` has."""
    sizes = zip(frame.size, frame.before, frame.after, frame.window, frame.stride, strict=True)
    full = tuple(1 + -((-n - low - high + k) // step) for n, low, high, k, step in sizes)
    return frame.out == full


def _pool(kind: str) -> Native:
    def rule(call: Mx) -> Value | None:
        x, frame = call.input("x"), windows(call)
        plain_windows = 1 <= frame.rank <= _MOST_SPACE and set(frame.dilation) == {1}
        if not plain_windows or not frame.symmetric or call.out.kind != "real":
            return None
        if call["ceil_mode"] and not _full_counts(frame):
            return None
        options: dict[str, Any] = {
            "kernel": frame.window, "stride": frame.stride or None, "pad": frame.before or None,
            "pool_type": f'"{kind}"',
        }  # fmt: skip
        if call["ceil_mode"]:
            options["pooling_convention"] = '"full"'
        if kind == "avg":
            options["count_include_pad"] = bool(call["count_include_pad"])
        if kind == "lp":
            if call["p"] not in (1, 2, 3):
                return None
            options["p_value"] = int(call["p"])
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


def _or_full(call: Mx, name: str, number: float, size: int) -> Value:
    """A vector that MXNet wants in any case: of one number where none was given."""
    if call.has(name):
        return call.input(name)
    return call.build.expand(call.build.scalar(number, call.out.dtype), (size,))


def _layer_norm(call: Mx) -> Value | None:
    x = call.input("x")
    axes = call.axes_said("axes", x.rank)
    if len(axes) != 1 or call["eps_to"] != "variance":
        return None
    size = x.shape[call.axes("axes", x.rank)[0]]
    given = [x, _or_full(call, "gamma", 1.0, size), _or_full(call, "beta", 0.0, size)]
    return call.value(invoke("mx.npx.layer_norm", *given, axis=axes[0], eps=float(call["eps"])))


def _normalised(call: Mx, mean: Value, var: Value, **options: Any) -> str:
    """`mx.npx.batch_norm`, which takes any scale for 1 unless `fix_gamma` is said to be false."""
    x = call.input("x")
    size = x.shape[call.axis("axis", x.rank)]
    vectors = _or_full(call, "scale", 1.0, size), _or_full(call, "bias", 0.0, size), mean, var
    fixed = None if not call.has("scale") else False
    said = {"eps": float(call["eps"]), "axis": call.axis_said("axis", x.rank), "fix_gamma": fixed}
    return invoke("mx.npx.batch_norm", x, *vectors, **said, **options)


def _batch_norm(call: Mx) -> Value | None:
    x = call.input("x")
    if x.rank < 2 or x.dtype not in _WIDE:
        return None
    mean, var = call.input("mean"), call.input("var")
    return call.value(_normalised(call, mean, var, use_global_stats=True))


def _batch_norm_train(call: Mx) -> list[Value] | None:
    """MXNet normalises by the batch's own statistics while it trains."""
    x = call.input("x")
    if x.rank < 2 or x.dtype not in _WIDE or call.wants("mean") or call.wants("var"):
        return None
    size = x.shape[call.axis("axis", x.rank)]
    mean = call.build.expand(call.build.scalar(0.0, x.dtype), (size,))
    var = call.build.expand(call.build.scalar(1.0, x.dtype), (size,))
    name = call.build.names.fresh(call.node.outputs[0])
    call.build.lines.append("with mx.autograd.train_mode():")
    call.build.lines.append(f"    {name} = {_normalised(call, mean, var)}")
    return [Value(name, call.out.shape, call.out.dtype)]


def _embedding(call: Mx) -> Value:
    table = call.input("table")
    options = {"input_dim": table.shape[0], "output_dim": table.shape[1]}
    return call.value(invoke("mx.npx.embedding", call.input("ids"), table, **options))


def _softmax(function: str) -> Native:
    def rule(call: Mx) -> Value:
        x = call.input("x")
        return call.value(invoke(function, x, axis=call.axis_said("axis", x.rank)))

    return Native(function, rule)


# ---- losses, regions, chance


def _smooth_l1(call: Mx) -> Value | None:
    """Of a difference, of which MXNet's parameter is the root of the reciprocal of beta."""
    if not 0 < call["beta"] < math.inf or call["reduction"] != "none":
        return None
    root = float(call["beta"]) ** -0.5
    if Fraction(root) ** 2 * Fraction(call["beta"]) != 1:
        return None  # of which there is no more than a rounded one
    prediction, target = call.input("prediction"), call.input("target")
    build = call.build
    error = build.apply("-", [prediction, target])
    text = invoke("mx.npx.smooth_l1", error, scalar=root)
    return call.value(text)


def _roi_pool(call: Mx) -> Value | None:
    x, size = call.input("x"), call["size"]
    if x.rank != 4 or x.dtype not in _WIDE or not 0 <= call["scale"] <= 1:
        return None
    options = {"pooled_size": tuple(size), "spatial_scale": float(call["scale"])}
    return call.value(invoke("mx.npx.roi_pooling", x, call.input("rois"), **options))


def _sequence_mask(call: Mx) -> Value | None:
    """Of ones, those are left that lie inside."""
    lengths = call.input("lengths")
    if lengths.rank != 1:
        return None
    ones = call.build.expand(call.build.scalar(1.0, "f32"), call.out.shape)
    options = {"use_sequence_length": True, "axis": 1 if call["batch_first"] else 0}
    text = invoke("mx.npx.sequence_mask", ones, lengths, **options)
    return call.value(f"{text} != 0")


def _dropout(call: Mx) -> list[Value] | None:
    if call.wants("mask") or not call["training"] or call["rate"] == 1:
        return None
    x = call.input("x")
    axes = call.axes("shared_axes", x.rank) or None
    options = {"p": float(call["rate"]), "mode": '"always"', "axes": axes}
    return [call.build.once(invoke("mx.npx.dropout", x, **options), x.shape, x.dtype, "dropped")]


# ---- recurrence

# The gates of MXNet, in terms of the language's.
_GATES = {"lstm": (0, 2, 3, 1), "gru": (1, 0, 2)}


def _layer(call: Mx, mode: str, states: tuple[str, ...]) -> list[Value] | None:
    """One layer in one direction: all weights, then all biases, in one vector."""
    if call.has("mask") or call["clip"] != math.inf:
        return None
    build, x, r = call.build, call.input("x"), call.input("r")
    if x.dtype not in _WIDE:
        return None
    units, gates = r.shape[-1], _GATES.get(mode, ())
    x = build.transpose(x, (1, 0, 2)) if call["batch_first"] else x
    x = build.slice(x, 0, x.shape[0] - 1, -1, -1) if call["reverse"] else x

    def flat(name: str) -> Value:
        if name not in call.values:
            size = max(len(gates), 1) * units
            return build.expand(build.scalar(0.0, x.dtype), (size,))
        value = call.input(name)
        if gates:
            value = build.take(value, build.constant(np.array(gates), "i64"), 0)
        return build.reshape(value, (math.prod(value.shape),))

    parameters = build.concat([flat(name) for name in ("w", "r", "b", "rb")], 0)
    shape = (1, x.shape[1], units)
    zero = build.scalar(0.0, x.dtype)
    begun = [
        build.reshape(call.input(n), shape) if call.has(n) else build.expand(zero, shape)
        for n in states
    ]
    options = {
        "mode": f'"{mode}"', "state_size": units, "num_layers": 1, "state_outputs": True,
    }  # fmt: skip
    text = invoke("mx.npx.rnn", x, parameters, *begun, **options)
    names = build.several(text, *call.node.outputs)
    infos = zip(names[1:], call.outputs[1:], strict=True)
    last = [build.reshape(Value(n, shape, x.dtype), info.shape) for n, info in infos]
    y = Value(names[0], (*x.shape[:2], units), x.dtype)
    y = build.slice(y, 0, x.shape[0] - 1, -1, -1) if call["reverse"] else y
    return [build.transpose(y, (1, 0, 2)) if call["batch_first"] else y, *last]


def _lstm(call: Mx) -> list[Value] | None:
    usual = (call["activation"], call["recurrent_activation"], call["hidden"])
    if usual != ("tanh", "sigmoid", "tanh") or call["input_forget"] or call.has("p"):
        return None
    return _layer(call, "lstm", ("h0", "c0"))


def _gru(call: Mx) -> list[Value] | None:
    usual = (call["activation"], call["recurrent_activation"]) == ("tanh", "sigmoid")
    return _layer(call, "gru", ("h0",)) if usual and call["reset_after"] else None


def _simple(call: Mx) -> list[Value] | None:
    kind = call["activation"]
    return _layer(call, f"rnn_{kind}", ("h0",)) if kind in ("tanh", "relu") else None


LAYERS: dict[str, Native] = {
    "softmax": _softmax("mx.npx.softmax"),
    "log_softmax": _softmax("mx.npx.log_softmax"),
    "matmul": Native("mx.np.dot, mx.npx.batch_dot", _matmul),
    "dense": Native("mx.npx.fully_connected", _dense),
    "conv": Native("mx.npx.convolution", _conv),
    "depthwise_conv": Native("mx.npx.convolution", _depthwise),
    "conv_transpose": Native("mx.npx.deconvolution", _conv_transpose),
    "max_pool": _pool("max"),
    "avg_pool": _pool("avg"),
    "lp_pool": _pool("lp"),
    "global_max_pool": _global("max"),
    "global_avg_pool": _global("avg"),
    "layer_norm": Native("mx.npx.layer_norm", _layer_norm),
    "batch_norm": Native("mx.npx.batch_norm", _batch_norm, constant=("mean", "var")),
    "batch_norm_train": Native("mx.npx.batch_norm", _batch_norm_train),
    "embedding": Native("mx.npx.embedding", _embedding),
    "smooth_l1": Native("mx.npx.smooth_l1", _smooth_l1, others=(HUBER,)),
    "max_roi_pool": Native("mx.npx.roi_pooling", _roi_pool),
    "sequence_mask": Native("mx.npx.sequence_mask", _sequence_mask),
    "dropout": Native("mx.npx.dropout", _dropout),
    "random_normal": Native("mx.np.random.normal", NORMAL),
    "random_uniform": Native("mx.np.random.uniform", UNIFORM),
    "lstm": Native("mx.npx.rnn", _lstm),
    "gru": Native("mx.npx.rnn", _gru),
    "simple_rnn": Native("mx.npx.rnn", _simple),
}
