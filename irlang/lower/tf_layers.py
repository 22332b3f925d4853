"""How TensorFlow spells layers. Its convolutions and pools take channels last on a processor."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from irlang.dtypes import DTYPES, integer_range
from irlang.lower.call import Call, Native
from irlang.lower.channels import axis_back, axis_last, channels_last
from irlang.lower.keras_windows import WINDOWS as KERAS_WINDOWS
from irlang.lower.legalise import Windows, all_are, groupable, windows
from irlang.lower.spelling import invoke, plain
from irlang.lower.tf_builder import TensorFlowBuilder
from irlang.lower.tf_frames import (
    MOST_SPACE,
    PLANE,
    biased,
    framed,
    is_plane,
    listed,
    number_or_list,
    poolable,
    result,
    surrounded,
)
from irlang.lower.value import Value

Tf = Call[TensorFlowBuilder]


def _dense(call: Tf) -> Value | None:
    x, w = call.input("x"), call.input("w")
    if x.rank < 2:
        return None
    # tf.matmul writes beside its result where four axes meet two (TensorFlow issue 117700)
    text = invoke("tf.matmul", x, w) if x.rank < 4 else invoke("tf.tensordot", x, w, "1")
    return call.value(biased(call, text))


def _matmul(call: Tf) -> Value:
    options = {key: call[key] or None for key in ("transpose_a", "transpose_b")}
    a, b = (
        call.build.expand(x, (*call.out.shape[:-2], *x.shape[-2:]))
        if len(call.out.shape) > 3 and x.shape[:-2] != call.out.shape[:-2]  # see `_dense`
        else x
        for x in (call.input("a"), call.input("b"))
    )
    return call.value(invoke("tf.matmul", a, b, **options))


# ---- windows


def _conv(call: Tf) -> Value | None:
    x, frame, padding = framed(call, call.input("x"), told=True)
    rank = frame.rank
    if not 1 <= rank <= MOST_SPACE:
        return None
    # TensorFlow has one or the other, on a processor with three axes one alone
    spread = not all_are(frame.dilation, 1) and (rank == 3 or not all_are(frame.stride, 1))
    grouped = call["groups"] != 1 and not groupable(call.build.release, rank)
    if (spread or grouped) and not call.dares():
        return None
    weight = call.build.transpose(call.input("w"), (*range(2, 2 + rank), 1, 0))
    stride, dilation = frame.stride, frame.dilation
    if rank == 3:
        stride, dilation = (1, *stride, 1), (1, *dilation, 1)
    text = invoke(
        f"tf.nn.conv{rank}d",
        channels_last(call, x),
        weight,
        number_or_list(stride),
        padding,
        dilations=None if all_are(dilation, 1) else number_or_list(dilation),
    )
    return result(call, biased(call, text), call.out.shape)


def _transposed(call: Tf) -> Value | None:
    """`SAME`, or all of it, from which `given` padding is cut."""
    x, rank = call.input("x"), len(call["S"])
    if not 1 <= rank <= MOST_SPACE or call["groups"] != 1 or not all_are(call["dilation"], 1):
        return None
    if call["pad"] != "same" and any(
        extra >= stride
        for extra, stride in zip(call["output_padding"], call["stride"], strict=True)
    ):
        return None
    whole = tuple(call["O"] if call["pad"] == "same" else call["full"])
    n, c = call.out.shape[:2]
    weight = call.build.transpose(call.input("w"), (*range(2, 2 + rank), 1, 0))
    text = invoke(
        f"tf.nn.conv{rank}d_transpose",
        channels_last(call, x),
        weight,
        listed((n, *whole, c)),
        number_or_list(call["stride"]),
        padding='"SAME"' if call["pad"] == "same" else '"VALID"',
    )
    value = result(call, biased(call, text), (n, c, *whole))
    if call["pad"] == "given":
        for axis, (low, size) in enumerate(zip(call["lo"], call["O"], strict=True)):
            if (low, size) != (0, whole[axis]):
                value = call.build.slice(value, 2 + axis, low, low + size, 1)
    return value


def _depthwise(call: Tf) -> Value | None:
    """Of a filter that has elements, as TensorFlow asks."""
    x, frame, padding = framed(call, call.input("x"), told=True)
    if frame.rank != PLANE or 0 in call.input("w").shape:
        return None
    if not is_plane(frame) and not call.dares():
        return None
    weight = call.build.transpose(call.input("w"), (2, 3, 0, 1))
    text = invoke(
        "tf.nn.depthwise_conv2d",
        channels_last(call, x),
        weight,
        listed((1, *frame.stride, 1)),
        padding,
        dilations=None if all_are(frame.dilation, 1) else listed(frame.dilation),
    )
    return result(call, biased(call, text), call.out.shape)


def _separable(call: Tf) -> Value | None:
    x, frame, padding = framed(call, call.input("x"))
    if not is_plane(frame):
        return None
    p = call.input("p")
    weight = call.build.transpose(call.input("w"), (2, 3, 0, 1))
    point = call.build.reshape(call.build.transpose(p, (1, 0)), (1, 1, p.shape[1], p.shape[0]))
    text = invoke(
        "tf.nn.separable_conv2d",
        channels_last(call, x),
        weight,
        point,
        listed((1, *frame.stride, 1)),
        padding,
        dilations=None if all_are(frame.dilation, 1) else listed(frame.dilation),
    )
    return result(call, biased(call, text), call.out.shape)


# Of a kind of pool: what is called on an input, its windows and the word for the padding.
Pool = Callable[[Tf, str, Value, Windows, str], Value | None]


def pooled_by_rank(call: Tf, kind: str, x: Value, frame: Windows, padding: str) -> Value:
    """A pool by the function of its number of axes."""
    window, stride = number_or_list(frame.window), number_or_list(frame.stride)
    function = f"tf.nn.{kind}_pool{frame.rank}d"
    text = invoke(function, channels_last(call, x), window, stride, padding)
    return result(call, text, call.out.shape)


def max_pool(call: Tf, pooled: Pool = pooled_by_rank) -> Value | None:
    """A maximum, around whose input are the least numbers."""
    x, frame = call.input("x"), windows(call)
    if not poolable(frame, x.dtype):
        return None
    padding = '"SAME"'
    if call["pad"] != "same":
        whole = DTYPES[x.dtype].kind == "int"
        least = integer_range(x.dtype)[0] if whole else -math.inf
        x, frame = surrounded(call, x, frame.reaching(), least)
        padding = '"VALID"'
    return pooled(call, "max", x, frame, padding)


def avg_pool(call: Tf, pooled: Pool = pooled_by_rank) -> Value | None:
    """TensorFlow counts the elements inside only."""
    x, frame = call.input("x"), windows(call)
    if not poolable(frame, x.dtype):
        return None
    padding = '"SAME"'
    if call["pad"] != "same" or call["count_include_pad"]:
        if frame.padded and not call["count_include_pad"]:
            return None
        reaching = frame.reaching()
        if reaching != replace(frame, after=reaching.after) or reaching.after != tuple(
            max(have, 0) for have in frame.after
        ):
            return None  # a last window over less than the padding has
        x, frame = surrounded(call, x, frame)
        padding = '"VALID"'
    return pooled(call, "avg", x, frame, padding)


def _with_places(call: Tf) -> list[Value] | None:
    """TensorFlow's places count channels too, which stand last."""
    x, frame = call.input("x"), windows(call)
    if frame.rank != PLANE or not poolable(frame, x.dtype):
        return None
    if call["order"] != "row" or call["whole"]:
        return None
    if call["pad"] != "same" and (frame.padded or call["ceil_mode"]):
        return None
    window, stride = number_or_list(frame.window), number_or_list(frame.stride)
    padding = '"SAME"' if call["pad"] == "same" else '"VALID"'
    text = invoke("tf.nn.max_pool_with_argmax", channels_last(call, x), window, stride, padding)
    largest, where = call.build.several(text, "pooled", "places")
    pooled = result(call, largest, call.out.shape)
    if not call.wants("indices"):
        return [pooled]
    places = result(call, f"({where} // {x.shape[1]})", call.out.shape)
    return [pooled, Value(places.text, places.shape, "i64")]


def _global(function: str) -> Native:
    def rule(call: Tf) -> Value:
        x = call.input("x")
        axes = listed(tuple(range(2, x.rank)))
        return call.value(invoke(function, x, axis=axes, keepdims=call["keepdims"] or None))

    return Native(function, rule)


# ---- normalisation


_LEAST_EPSILON = 1.001e-5  # what is less, the fused kernel takes for this


def fuses(call: Tf, x: Value, *ranks: int) -> bool:
    """Whether Keras would take the fused kernel, which optimisers look for, were it there for
    tensors of these ranks.
    """
    return serves(call, x, *ranks) and call["eps"] > _LEAST_EPSILON


def serves(call: Tf, x: Value, *ranks: int) -> bool:
    """Whether the fused kernel can be given the call, as of tensors of these ranks."""
    return call.has("scale") and call.has("bias") and x.rank in ranks and x.dtype == "f32"


def _fused_batch_norm(call: Tf) -> Value | None:
    x = call.input("x")
    if call.build.sloped or not fuses(call, x, 4):
        return None
    axis = call.axis("axis", x.rank)
    inner = axis_last(call, x, axis)
    given = [call.text(name) for name in ("scale", "bias", "mean", "var")]
    options = {"epsilon": float(call["eps"]), "is_training": False}
    text = invoke("tf.compat.v1.nn.fused_batch_norm", inner, *given, **options)
    return axis_back(call, Value(f"{text}[0]", inner.shape, x.dtype), axis)


def _batch_norm(call: Tf) -> Value:
    x = call.input("x")
    axis = call.axis("axis", x.rank)
    inner = axis_last(call, x, axis)
    given = [call.text(name) for name in ("mean", "var", "bias", "scale")]
    text = invoke("tf.nn.batch_normalization", inner, *given, call["eps"])
    return axis_back(call, Value(text, inner.shape, x.dtype), axis)


def _batch_norm_train(call: Tf) -> list[Value] | None:
    x = call.input("x")
    if call["correction"] != 0 or x.rank < 2:
        return None
    axis = call.axis("axis", x.rank)
    inner = axis_last(call, x, axis)
    text = invoke("tf.nn.moments", inner, listed(tuple(range(x.rank - 1))))
    names = call.build.several(text, *call.node.outputs[1:])
    given = [*names, call.text("bias"), call.text("scale")]
    text = invoke("tf.nn.batch_normalization", inner, *given, call["eps"])
    y = axis_back(call, Value(text, inner.shape, x.dtype), axis)
    pairs = zip(names, call.outputs[1:], strict=True)
    return [y, *(Value(name, info.shape, info.dtype) for name, info in pairs)]


def _l2_normalize(call: Tf) -> Value:
    x = call.input("x")
    axes = listed(call.axes_said("axes", x.rank))
    return call.value(invoke("tf.math.l2_normalize", x, axis=axes, epsilon=call["eps"]))


def _clip_by_norm(call: Tf) -> Value:
    x = call.input("x")
    axes = listed(call.axes_said("axes", x.rank))
    return call.value(invoke("tf.clip_by_norm", x, call["limit"], axes=axes))


def _local_response(call: Tf) -> Value | None:
    x = call.input("x")
    centred = call["size"] % 2 == 1 and call["before"] == call["size"] // 2
    if not centred or x.rank != 4 or x.dtype not in ("f32", "f16"):
        return None
    options = {"bias": call["bias"], "alpha": call["alpha"] / call["size"], "beta": call["beta"]}
    text = invoke(
        "tf.nn.local_response_normalization", channels_last(call, x), call["size"] // 2, **options
    )
    return result(call, text, call.out.shape)


# ---- losses


_REDUCTIONS = {"mean": "tf.reduce_mean", "sum": "tf.reduce_sum"}


def reduced(call: Tf, text: str) -> Value:
    """What a loss of elements comes to."""
    reduction = call["reduction"]
    return call.value(text if reduction == "none" else invoke(_REDUCTIONS[reduction], text))


def _cross_entropy(call: Tf) -> Value | None:
    if call.has("weight") or call["ignore_index"] or call["label_smoothing"]:
        return None
    x, labels = call.input("logits"), call.input("labels")
    x = axis_last(call, x, call.axis("axis", x.rank))
    labels = labels if labels.dtype in ("i32", "i64") else call.build.cast(labels, "i64")
    function = "tf.nn.sparse_softmax_cross_entropy_with_logits"
    return reduced(call, invoke(function, labels=labels, logits=x))


def _categorical(call: Tf) -> Value | None:
    x, target = call.input("logits"), call.input("target")
    if call["label_smoothing"] != 0 or call.has("weight"):
        return None
    function, axis = "tf.nn.softmax_cross_entropy_with_logits", call.axis_said("axis", x.rank)
    return reduced(call, invoke(function, labels=target, logits=x, axis=axis))


def _binary(call: Tf) -> Value | None:
    if call["label_smoothing"] != 0 or call.has("weight"):
        return None
    given = {"labels": call.input("target"), "logits": call.input("logits")}
    function = "tf.nn.sigmoid_cross_entropy_with_logits"
    if call.has("pos_weight"):
        function, given["pos_weight"] = (
            "tf.nn.weighted_cross_entropy_with_logits", call.input("pos_weight"),
        )  # fmt: skip
    text = invoke(function, **given)
    return reduced(call, text)


def _poisson(call: Tf) -> Value | None:
    if not call["log_input"]:
        return None
    given = {"targets": call.input("target"), "log_input": call.input("prediction")}
    full = call["full"] or None
    return reduced(call, invoke("tf.nn.log_poisson_loss", **given, compute_full_loss=full))


def _mse(call: Tf) -> Value:
    values = [call.input(name) for name in ("prediction", "target")]
    return reduced(call, invoke("tf.math.squared_difference", *values))


def _mae(call: Tf) -> Value:
    left, right = (call.build.inner(call.input(name)) for name in ("prediction", "target"))
    return reduced(call, f"tf.abs({left} - {right})")


_MOST_AXES = 5  # that the kernel of softmax takes


def _softmax(call: Tf) -> Value:
    x = call.input("x")
    if x.rank <= _MOST_AXES:
        return call.value(invoke("tf.nn.softmax", x, axis=call.axis_said("axis", x.rank)))
    axis = call.axis("axis", x.rank)
    around = (math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :]))
    found = invoke("tf.nn.softmax", call.build.reshape(x, around), axis=1)
    return call.build.reshape(Value(found, around, x.dtype), x.shape)


LAYERS: dict[str, Native] = {
    "dense": Native("tf.matmul", _dense),
    "matmul": Native("tf.matmul", _matmul),
    "conv": Native("tf.nn.conv{1,2,3}d", _conv),
    "conv_transpose": Native("tf.nn.conv{1,2,3}d_transpose", _transposed),
    "depthwise_conv": Native("tf.nn.depthwise_conv2d", _depthwise),
    "separable_conv": Native("tf.nn.separable_conv2d", _separable),
    "max_pool": Native("tf.nn.max_pool{1,2,3}d", max_pool),
    "avg_pool": Native("tf.nn.avg_pool{1,2,3}d", avg_pool),
    "max_pool_with_argmax": Native("tf.nn.max_pool_with_argmax", _with_places),
    "global_max_pool": _global("tf.reduce_max"),
    "global_avg_pool": _global("tf.reduce_mean"),
    "batch_norm": Native(
        "tf.compat.v1.nn.fused_batch_norm",
        _fused_batch_norm,
        others=(Native("tf.nn.batch_normalization", _batch_norm),),
    ),
    "batch_norm_train": Native("tf.nn.moments, tf.nn.batch_normalization", _batch_norm_train),
    "l2_normalize": Native("tf.math.l2_normalize", _l2_normalize),
    "clip_by_norm": Native("tf.clip_by_norm", _clip_by_norm),
    "local_response_norm": Native("tf.nn.local_response_normalization", _local_response),
    "softmax": Native("tf.nn.softmax", _softmax),
    "log_softmax": plain("tf.nn.log_softmax", axis="axis"),
    "cross_entropy": Native("tf.nn.sparse_softmax_cross_entropy_with_logits", _cross_entropy),
    "categorical_cross_entropy": Native("tf.nn.softmax_cross_entropy_with_logits", _categorical),
    "poisson": Native("tf.nn.log_poisson_loss", _poisson),
    "binary_cross_entropy_logits": Native("tf.nn.sigmoid_cross_entropy_with_logits", _binary),
    "mse": Native("tf.math.squared_difference", _mse),
    "mae": Native("tf.abs", _mae),
    "crop": KERAS_WINDOWS["crop"],
}
