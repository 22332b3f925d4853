"""How the targets spell what is left to chance; what is not here draws by `Builder.draw`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.lower.call import Call, Native
from irlang.lower.onnx_builder import OnnxBuilder
from irlang.lower.spelling import invoke
from irlang.lower.tf_builder import TensorFlowBuilder
from irlang.lower.torch_builder import TorchBuilder
from irlang.lower.value import Value

Torch = Call[TorchBuilder]
Tf = Call[TensorFlowBuilder]
Onnx = Call[OnnxBuilder]


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


TORCH = {
    "bernoulli": Native("torch.bernoulli", _torch_bernoulli),
    "dropout": Native("F.dropout, F.dropout1d, F.dropout2d, F.dropout3d", _torch_drop),
    "alpha_dropout": Native("F.alpha_dropout, F.feature_alpha_dropout", _torch_alpha),
    "random_normal": Native("torch.Tensor.normal_", NORMAL),
    "random_uniform": Native("torch.Tensor.uniform_", UNIFORM),
}
TF = {
    "dropout": Native("tf.nn.dropout", _tf_drop),
    "random_normal": Native("tf.random.normal", NORMAL),
    "random_uniform": Native("tf.random.uniform", UNIFORM),
}
ONNX = {
    "dropout": Native("Dropout", _onnx_drop),
    "bernoulli": Native("Bernoulli", _onnx_bernoulli),
    "random_normal": Native("RandomNormal", NORMAL),
    "random_uniform": Native("RandomUniform", UNIFORM),
}
