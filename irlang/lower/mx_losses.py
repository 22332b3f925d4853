"""How MXNet spells losses: `mx.gluon.loss`, a mean over all axes but the first in most."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from irlang.lower.call import Call, Native
from irlang.lower.keras_call import quoted
from irlang.lower.mx_builder import MxBuilder
from irlang.lower.spelling import invoke
from irlang.lower.value import Value

Mx = Call[MxBuilder]
# Of a call: the arguments; None where MXNet has not these attributes.
Options = Callable[[Mx], Mapping[str, Any] | None]
_WIDE = ("f32", "f64")


def _loss(call: Mx, kind: str, values: list[Value | str], *, new: bool, **options: Any) -> str:
    """The text of a loss. new: whether it takes arrays of `mx.np`; others compute with those of
    `mx.nd` alone, and refuse, as blocks, to give anything while there are arrays of `mx.np`.
    values: tensors, and texts of what is none.
    """
    made = invoke(f"mx.gluon.loss.{kind}", **options)
    there = "" if new else ".as_nd_ndarray()"
    given = ", ".join(
        value if isinstance(value, str) else f"{call.build.receiver(value)}{there}"
        for value in values
    )
    return f"{made}({given})" if new else f"{made}.hybrid_forward(mx.nd, {given}).as_np_ndarray()"


def _reduced(call: Mx, text: str) -> Value:
    """What a loss gives, of samples, in one number where that is asked for."""
    reduction = call["reduction"]
    return call.value(text if reduction == "none" else invoke(f"mx.np.{reduction}", text))


def _elements(
    kind: str, options: Options, prediction: str = "prediction", *, new: bool = False
) -> Native:
    """A loss of elements: each is a sample of its own, unless all of them are averaged."""

    def rule(call: Mx) -> Value | None:
        given, build = options(call), call.build
        x, target = call.input(prediction), call.input("target")
        if given is None or x.dtype not in _WIDE or not all(x.shape):
            return None
        weights = [call.values.get(name) for name in ("weight", "pos_weight")]
        if any(weight is not None for weight in weights) and not new:
            return None
        values = [x, target, *(w and build.expand(build.solid(w), x.shape) for w in weights)]
        reduction = call["reduction"]
        if reduction != "mean" or not x.rank:
            flat = (math.prod(x.shape), 1)
            values = [value and build.reshape(value, flat) for value in values]
        said: list[Value | str] = ["None" if value is None else value for value in values]
        while said[-1] == "None":
            said.pop()
        text = _loss(call, kind, said, new=new, **given)
        if reduction == "none" or not x.rank:
            return call.value(f"{text}.reshape({x.shape})")
        return _reduced(call, text)

    return Native(f"mx.gluon.loss.{kind}", rule)


def _classes(target: str) -> Callable[[Mx], Value | None]:
    """The cross-entropy along an axis of samples, which come first; a mean of their means."""

    def rule(call: Mx) -> Value | None:
        x = call.input("logits")
        axis = call.axis("axis", x.rank)
        if call["label_smoothing"] or call.has("weight") or call.get("ignore_index", ()):
            return None
        if not axis or x.rank < 2 or x.dtype not in _WIDE or not all(x.shape):
            return None
        if x.rank > 2 and call["reduction"] != "mean":
            return None
        options = {"axis": call["axis"], "sparse_label": None if target == "labels" else False}
        text = _loss(call, "SoftmaxCrossEntropyLoss", [x, call.input(target)], new=True, **options)
        return _reduced(call, text)

    return rule


def _poisson(call: Mx) -> Value | None:
    x = call.input("prediction")
    if call["reduction"] != "mean" or x.dtype not in _WIDE or not x.rank or not all(x.shape):
        return None
    options = {"from_logits": bool(call["log_input"]), "compute_full": bool(call["full"]) or None}
    values: list[Value | str] = [x, call.input("target"), f"epsilon={float(call['eps'])}"]
    return call.value(f"{_loss(call, 'PoissonNLLLoss', values, new=False, **options)}.reshape(())")


def _ctc(call: Mx) -> Value | None:
    """The blank is the last class."""
    x, build = call.input("logits"), call.build
    names = ("labels", "input_lengths", "target_lengths")
    if call["blank"] not in (-1, x.shape[2] - 1) or x.dtype != "f32" or not all(x.shape):
        return None
    labels, *lengths = (build.cast(call.input(name), "f32") for name in names)
    if not all(labels.shape):
        return None
    values: list[Value | str] = [x, labels, *lengths]
    layouts = {"layout": quoted("TNC"), "label_layout": quoted("NT")}
    return call.value(_loss(call, "CTCLoss", values, new=False, **layouts))


def _logits(call: Mx) -> Mapping[str, Any] | None:
    return None if call["label_smoothing"] else {}


def _sided(call: Mx) -> Mapping[str, Any] | None:
    return None if call["convert_binary"] else {}


def _huber(call: Mx) -> Mapping[str, Any] | None:
    return {"rho": float(call["beta"])} if call["beta"] else None


HUBER = _elements("HuberLoss", _huber)
LOSSES: dict[str, Native] = {
    "mse": _elements("L2Loss", lambda _: {"weight": 2.0}, new=True),
    "mae": _elements("L1Loss", lambda _: {}, new=True),
    "binary_cross_entropy_logits": _elements(
        "SigmoidBinaryCrossEntropyLoss", _logits, "logits", new=True
    ),
    "hinge": _elements("HingeLoss", _sided),
    "squared_hinge": _elements("SquaredHingeLoss", _sided),
    "poisson": Native("mx.gluon.loss.PoissonNLLLoss", _poisson),
    "cross_entropy": Native("mx.gluon.loss.SoftmaxCrossEntropyLoss", _classes("labels")),
    "categorical_cross_entropy": Native(
        "mx.gluon.loss.SoftmaxCrossEntropyLoss", _classes("target")
    ),
    "ctc_logits": Native("mx.gluon.loss.CTCLoss", _ctc),
}
