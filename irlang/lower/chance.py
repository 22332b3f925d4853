"""How the targets spell what is left to chance; what is not here draws by `Builder.draw`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irlang.dtypes import DTYPES, integer_range
from irlang.equations import TensorInfo
from irlang.lower.call import Call, Native
from irlang.lower.jax_builder import JaxBuilder
from irlang.lower.onnx_builder import OnnxBuilder
from irlang.lower.spelling import invoke
from irlang.lower.tf_builder import TensorFlowBuilder
from irlang.lower.torch_builder import TorchBuilder
from irlang.lower.value import Value

Torch = Call[TorchBuilder]
Tf = Call[TensorFlowBuilder]
Onnx = Call[OnnxBuilder]
Jax = Call[JaxBuilder]


def _channels(call: Call[Any]) -> int:
    """How many axes behind N and C are shared, where those are all; 0 otherwise."""
    rank = len(call["S"])
    return rank - 2 if rank > 2 and call["shared"] == tuple(range(2, rank)) else 0


def _torch_drop(call: Torch) -> Value | Sequence[Value] | None:
    x, options = call.input("x"), {"training": call["training"]}
    space = _channels(call)
    if call.wants("mask"):
        if call["shared"] or not call["training"]:
            return None
        both = call.build.once(
            invoke("torch.native_dropout", x, call["rate"], True), x.shape, x.dtype, "kept"
        )
        return [call.value(f"{both.text}[0]"), call.value(f"{both.text}[1]", 1)]
    if call["shared"] and space not in (1, 2, 3):
        return None
    name = f"F.dropout{space}d" if space else "F.dropout"
    return [call.value(invoke(name, x, call["rate"], **options))]


def _torch_alpha(call: Torch) -> Value | None:
    if call["shared"] and not _channels(call):
        return None
    name = "F.feature_alpha_dropout" if call["shared"] else "F.alpha_dropout"
    return call.value(invoke(name, call.input("x"), call["rate"], training=call["training"]))


def _tf_drop(call: Tf) -> Sequence[Value] | None:
    if call.wants("mask") or not call["training"] or call["rate"] == 1:
        return None
    x = call.input("x")
    if not all(-x.rank <= axis < x.rank for axis in call["shared_axes"]):
        return None  # a shape of the noise says none of these
    options = {"noise_shape": str(list(call["M"]))} if call["shared"] else {}
    return [call.value(invoke("tf.nn.dropout", x, call["rate"], **options))]


def _onnx_drop(call: Onnx) -> Sequence[Value] | None:
    x = call.input("x")
    if call["shared"] or call["rate"] == 1:
        return None
    kernel = call.build.runtime.carrier("Dropout", x.dtype)
    ratio = call.build.constant(np.asarray(float(call["rate"])), "f32")
    training = call.build.constant(np.asarray(call["training"]), "bool")
    y, mask = call.build.node(
        "Dropout",
        [call.build.cast(x, kernel).text, ratio.text, training.text],
        [TensorInfo(x.shape, kernel), TensorInfo(x.shape, "bool")],
    )
    return [call.build.cast(y, x.dtype), mask]


def law(name: str, *numbers: str) -> Callable[[Call[Any]], Value | None]:
    """A rule for numbers of a law: the builder's own word for it, if they are real ones."""

    def rule(call: Call[Any]) -> Value | None:
        if DTYPES[call.out.dtype].kind != "real":
            return None
        given = [float(call[one]) for one in numbers]
        drawn: Value = call.build.draw(name, given, tuple(call["shape"]), call.out.dtype)
        return drawn

    return rule


NORMAL, UNIFORM = law("normal", "mean", "stddev"), law("uniform", "low", "high")


def _torch_bernoulli(call: Torch) -> Value | None:
    p = call.input("p")
    if p.dtype != call.out.dtype:
        return None
    return call.build.once(invoke("torch.bernoulli", p), p.shape, p.dtype, "kept")


def _onnx_bernoulli(call: Onnx) -> Value | None:
    p = call.input("p")
    if p.dtype not in ("f32", "f64") or p.dtype != call.out.dtype:
        return None
    return call.build.node("Bernoulli", [p.text], [TensorInfo(p.shape, p.dtype)])[0]


# ---- truncated normal numbers, whole numbers, classes


def _two_off(call: Call[Any]) -> tuple[float, float, float, float]:
    """The mean, the deviation, and the ends of what is drawn."""
    mean, wide = float(call["mean"]), float(call["stddev"])
    return mean, wide, mean - 2 * wide, mean + 2 * wide


def _truncated(function: str) -> Callable[[Call[Any]], Value | None]:
    """Of a shape, a mean, a deviation and a type."""

    def rule(call: Call[Any]) -> Value | None:
        out = call.out
        if out.kind != "real":
            return None
        mean, wide, *_ = _two_off(call)
        dtype = call.build.dtype(out.dtype)
        text = invoke(function, str(list(call["shape"])), mean, wide, dtype=dtype)
        noise: Value = call.build.once(text, out.shape, out.dtype, "noise")
        return noise

    return rule


def _torch_truncated(call: Torch) -> Value | None:
    """It divides by the deviation."""
    out, numbers = call.out, _two_off(call)
    if not numbers[1]:
        return None
    empty = invoke("torch.empty", tuple(call["shape"]), dtype=call.build.dtype(out.dtype))
    text = invoke("torch.nn.init.trunc_normal_", empty, *numbers)
    return call.build.once(text, out.shape, out.dtype, "noise")


def _jax_truncated(call: Jax) -> Value | None:
    out = call.out
    if out.dtype not in ("f32", "f64"):
        return None
    mean, wide, *_ = _two_off(call)
    dtype = call.build.dtype(out.dtype)
    key, sizes = call.build.key(), tuple(call["shape"])
    noise = invoke("jax.random.truncated_normal", key, -2.0, 2.0, sizes, dtype)
    return call.build.once(f"{mean!r} + {wide!r} * {noise}", out.shape, out.dtype, "noise")


def _whole(
    function: str, size: str, dtypes: str = "i32 i64", low: str = "", high: str = ""
) -> Callable[[Call[Any]], Value | None]:
    """Of two ends, a shape and a type. size, low, high: the names of the arguments; no name of the
    ends where they come first.
    """

    def rule(call: Call[Any]) -> Value | None:
        out = call.out
        if out.dtype not in dtypes.split():
            return None
        ends = (int(call["low"]), int(call["high"]))
        named = {low: ends[0], high: ends[1]} if low else {}
        options = {size: str(list(call["shape"])), **named, "dtype": call.build.dtype(out.dtype)}
        text = invoke(function, *(() if low else ends), **options)
        drawn: Value = call.build.once(text, out.shape, out.dtype, "drawn")
        return drawn

    return rule


def _jax_whole(call: Jax) -> Value | None:
    out, ends = call.out, (int(call["low"]), int(call["high"]))
    if not all(integer_range("i64")[0] <= end <= integer_range(out.dtype)[1] for end in ends):
        return None
    dtype = call.build.dtype(out.dtype)
    text = invoke("jax.random.randint", call.build.key(), tuple(call["shape"]), *ends, dtype)
    return call.build.once(text, out.shape, out.dtype, "drawn")


def _torch_classes(call: Torch) -> Value | None:
    logits, out = call.input("logits"), call.out
    if not out.shape[1]:
        return None  # it takes no less than one
    shares = invoke("torch.softmax", logits, -1)
    text = invoke("torch.multinomial", shares, call["count"], replacement=True)
    return call.build.once(text, out.shape, out.dtype, "drawn")


def _classes(function: str, dtype: str) -> Callable[[Call[Any]], Value]:
    """Of logits, a number and a type."""

    def rule(call: Call[Any]) -> Value:
        out, given = call.out, {"dtype": dtype}
        text = invoke(function, call.input("logits"), call["count"], **given)
        drawn: Value = call.build.once(text, out.shape, out.dtype, "drawn")
        return drawn

    return rule


def _jax_classes(call: Jax) -> Value:
    logits, out = call.input("logits"), call.out
    rows = f"{call.build.full(logits)}[:, None, :]"
    text = invoke("jax.random.categorical", call.build.key(), rows, shape=out.shape)
    return call.build.cast(call.build.once(text, out.shape, "i64", "drawn"), out.dtype)


def _onnx_classes(call: Onnx) -> Value | None:
    logits, out = call.input("logits"), call.out
    if logits.dtype != "f32" or 0 in out.shape:
        return None
    numbers = {"sample_size": int(call["count"]), "dtype": 7}
    infos = [TensorInfo(out.shape, out.dtype)]
    return call.build.node("Multinomial", [logits.text], infos, **numbers)[0]


TORCH = {
    "bernoulli": Native("torch.bernoulli", _torch_bernoulli),
    "dropout": Native("F.dropout, F.dropout1d, F.dropout2d, F.dropout3d", _torch_drop),
    "alpha_dropout": Native("F.alpha_dropout, F.feature_alpha_dropout", _torch_alpha),
    "random_normal": Native("torch.Tensor.normal_", NORMAL),
    "random_uniform": Native("torch.Tensor.uniform_", UNIFORM),
    "truncated_normal": Native("torch.nn.init.trunc_normal_", _torch_truncated),
    "random_integers": Native(
        "torch.randint", _whole("torch.randint", "size", "u8 i8 i16 i32 i64")
    ),
    "random_categorical": Native("torch.multinomial", _torch_classes),
}
TF = {
    "dropout": Native("tf.nn.dropout", _tf_drop),
    "random_normal": Native("tf.random.normal", NORMAL),
    "random_uniform": Native("tf.random.uniform", UNIFORM),
    "truncated_normal": Native(
        "tf.random.truncated_normal", _truncated("tf.random.truncated_normal")
    ),
    "random_integers": Native(
        "tf.random.uniform",
        _whole("tf.random.uniform", "shape", low="minval", high="maxval"),
    ),
    "random_categorical": Native(
        "tf.random.categorical", _classes("tf.random.categorical", "tf.int64")
    ),
}
ONNX = {
    "dropout": Native("Dropout", _onnx_drop),
    "bernoulli": Native("Bernoulli", _onnx_bernoulli),
    "random_normal": Native("RandomNormal", NORMAL),
    "random_uniform": Native("RandomUniform", UNIFORM),
    "random_categorical": Native("Multinomial", _onnx_classes),
}
JAX = {
    "truncated_normal": Native("jax.random.truncated_normal", _jax_truncated),
    "random_integers": Native("jax.random.randint", _jax_whole),
    "random_categorical": Native("jax.random.categorical", _jax_classes),
}
KERAS = {
    "truncated_normal": Native(
        "keras.random.truncated_normal", _truncated("keras.random.truncated_normal"), since=(3, 0)
    ),
    "random_integers": Native(
        "keras.random.randint",
        _whole("keras.random.randint", "shape", low="minval", high="maxval"),
        since=(3, 0),
    ),
    "random_categorical": Native(
        "keras.random.categorical", _classes("keras.random.categorical", '"int64"'), since=(3, 0)
    ),
}
MX = {"random_integers": Native("mx.np.random.randint", _whole("mx.np.random.randint", "size"))}
