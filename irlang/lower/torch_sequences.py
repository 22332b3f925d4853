"""How PyTorch spells recurrent layers, attention and losses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from irlang.lower.call import Call, Native
from irlang.lower.legalise import moved
from irlang.lower.spelling import invoke
from irlang.lower.torch_builder import TorchBuilder
from irlang.lower.value import Value

Torch = Call[TorchBuilder]


# ---- recurrent layers


_GATES = {"lstm": (0, 2, 3, 1), "gru": (1, 0, 2)}  # PyTorch's order, in terms of the language's


def _stacked(call: Torch, gates: tuple[int, ...], name: str) -> Value:
    """Weights with all gates in one axis, in PyTorch's order."""
    build, value = call.build, call.input(name)
    if not gates:
        return value
    order = build.array(_vector(gates), "i64")
    flat = (len(gates) * value.shape[1], *value.shape[2:])
    return build.let(build.reshape(build.take(value, order, 0), flat), f"{name}_gates")


def _weights(call: Torch, gates: tuple[int, ...]) -> list[str]:
    """Those for what comes in and for what goes round, and both biases."""
    size = max(len(gates), 1) * call.input("r").shape[-1]
    zeros = f"torch.zeros({size}, dtype={call.build.dtype(call.out.dtype)})"
    weights = [_stacked(call, gates, name).text for name in ("w", "r")]
    biases = (_stacked(call, gates, name).text if call.has(name) else zeros for name in ("b", "rb"))
    return [*weights, *biases]


def _layer(call: Torch, function: str, gates: tuple[int, ...], states: list[str]) -> list[Value]:
    """One layer in one direction."""
    build, x, r = call.build, call.input("x"), call.input("r")
    hidden = r.shape[-1]
    time = 1 if call["batch_first"] else 0

    def state(name: str) -> str:
        batch = x.shape[1 - time]
        if not call.has(name):
            return f"torch.zeros(1, {batch}, {hidden}, dtype={build.dtype(x.dtype)})"
        return build.reshape(call.input(name), (1, batch, hidden)).text

    weights = _weights(call, gates)
    start = [state(name) for name in states]
    given = f"({', '.join(start)})" if len(start) > 1 else start[0]
    source = build.inner(x) + (f".flip({time})" if call["reverse"] else "")
    # in training, without which cuDNN has no gradients; nothing is dropped
    text = (
        f"torch.{function}({source}, {given}, [{', '.join(weights)}], True, 1, 0.0, True, False, "
        f"{bool(call['batch_first'])})"
    )
    names = build.several(text, *call.node.outputs)
    results = [Value(names[0], call.out.shape, x.dtype)]
    if call["reverse"]:
        build.lines.append(f"{names[0]} = {names[0]}.flip({time})")
    for name, info in zip(names[1:], call.outputs[1:], strict=True):
        build.lines.append(f"{name} = {name}[0]")
        results.append(Value(name, info.shape, info.dtype))
    return results


def _vector(numbers: tuple[int, ...]) -> Any:
    import numpy as np

    return np.asarray(numbers, dtype=np.int64)


def _usual(call: Torch, **activations: str) -> bool:
    """Whether a layer has the activations that PyTorch's has, and nothing that PyTorch lacks."""
    if call.has("mask") or call.has("p") or call.get("clip", math.inf) != math.inf:
        return False
    return all(call[name] == kind for name, kind in activations.items())


def _lstm(call: Torch) -> list[Value] | None:
    if not _usual(call, activation="tanh", recurrent_activation="sigmoid", hidden="tanh"):
        return None
    if call["input_forget"]:
        return None
    return _layer(call, "lstm", _GATES["lstm"], ["h0", "c0"])


def _gru(call: Torch) -> list[Value] | None:
    if not _usual(call, activation="tanh", recurrent_activation="sigmoid"):
        return None
    return _layer(call, "gru", _GATES["gru"], ["h0"]) if call["reset_after"] else None


def _rnn(call: Torch) -> list[Value] | None:
    kind = call["activation"]
    if kind not in ("tanh", "relu") or not _usual(call):
        return None
    return _layer(call, f"rnn_{kind}", (), ["h0"])


def _cell(function: str, kind: str, *states: str) -> Native:
    """One step, of all samples; `kind` has the gates."""
    gates = _GATES.get(kind, ())

    def rule(call: Torch) -> list[Value] | None:
        usual = {"activation": "tanh", "recurrent_activation": "sigmoid"} if gates else {}
        if not _usual(call, **usual) or (kind == "gru" and not call["reset_after"]):
            return None
        name = function
        if not gates:
            if call["activation"] not in ("tanh", "relu"):
                return None
            name = function.format(call["activation"])
        zeros = f"torch.zeros({call.out.shape}, dtype={call.build.dtype(call.out.dtype)})"
        start = [call.text(state, zeros) for state in states]
        given = f"({', '.join(start)})" if len(start) > 1 else start[0]
        text = invoke(name, call.input("x"), given, *_weights(call, gates))
        if len(call.outputs) == 1:
            return [call.value(text)]
        results = [call.build.names.fresh(name) for name in call.node.outputs]
        call.build.lines.append(f"{', '.join(results)} = {text}")
        pairs = zip(results, call.outputs, strict=True)
        return [Value(name, info.shape, info.dtype) for name, info in pairs]

    return Native(function.format("{tanh,relu}"), rule)


# ---- attention and losses


_PLAIN = {"left_window_size": -1, "right_window_size": -1, "softcap": 0, "masked_rows": "open"}


def _attention(call: Torch) -> Value | None:
    mask = None
    if call.has("kv_lengths") or any(call[name] != usual for name, usual in _PLAIN.items()):
        return None
    if call["causal"] and call["past"] != 0:
        return None
    if (call.has("bias") and call.has("mask")) or (
        call["causal"] and (call.has("bias") or call.has("mask"))
    ):
        return None
    for name in ("bias", "mask"):
        if call.has(name):
            mask = call.input(name)
    if mask is not None and mask.rank < 2:
        mask = call.build.reshape(mask, ((1,) * (2 - mask.rank)) + mask.shape)
    options: dict[str, Any] = {"attn_mask": mask, "is_causal": call["causal"] or None}
    options["scale"] = call["scale"] if "scale" in call.node.attrs else None
    options["enable_gqa"] = True if call["H"] != call["G"] else None
    values = [call.input(name) for name in ("q", "k", "v")]
    return call.value(invoke("F.scaled_dot_product_attention", *values, **options))


_BY_NAME = ("weight", "pos_weight")


def loss(function: str, **attributes: str) -> Native:
    """Attributes by PyTorch's names for them; `label_smoothing` must be 0 where there is one."""

    def rule(call: Torch) -> Value | None:
        if call.node.attrs.get("label_smoothing"):
            return None
        options = {key: call[name] for key, name in attributes.items()}
        options |= {name: call.input(name) for name in _BY_NAME if call.has(name)}
        reduction = None if call["reduction"] == "mean" else f'"{call["reduction"]}"'
        given = (name for name in call.values if name not in _BY_NAME)
        return call.value(invoke(function, *map(call.input, given), **options, reduction=reduction))

    return Native(function, rule)


def _gaussian(call: Torch) -> Value:
    """PyTorch takes no variance that broadcasts along several axes, or along the first ones."""
    values = [call.input(name) for name in ("prediction", "target")]
    var = call.build.expand(call.input("var"), values[0].shape)
    reduction = None if call["reduction"] == "mean" else f'"{call["reduction"]}"'
    options = {"full": call["full"], "eps": call["eps"], "reduction": reduction}
    return call.value(invoke("F.gaussian_nll_loss", *values, var, **options))


def _of_classes(function: str, scores: str, target: str, **attributes: str) -> Native:
    """PyTorch wants the classes second, or first of one axis."""

    def rule(call: Torch) -> Value | None:
        x, labels = call.input(scores), call.input(target)
        axis = call.axis("axis", x.rank)
        place = 1 if x.rank > 1 else 0
        if labels.rank == x.rank:
            labels = moved(call, labels, axis, place)
        else:
            labels = call.build.cast(labels, "i64")
        options = {key: call[name] or None for key, name in attributes.items()}
        options["weight"] = call.input("weight") if call.has("weight") else None
        ignored = call["ignore_index"] if labels.dtype == "i64" else ()
        if len(ignored) > 1:
            return None
        options["ignore_index"] = ignored[0] if ignored else None
        reduction = None if call["reduction"] == "mean" else f'"{call["reduction"]}"'
        values = (moved(call, x, axis, place), labels)
        return call.value(invoke(function, *values, **options, reduction=reduction))

    return Native(function, rule, constant=("weight",))


def _of_rows(function: str, **attributes: str) -> Native:
    """A loss of the rows of matrices."""
    row = loss(function, **attributes)

    def rule(call: Torch) -> Value | None:
        x = call.input(next(iter(call.values)))
        if x.rank != 2 or x.dtype not in ("f32", "f64"):
            return None  # no kernel
        labels = call.values.get("labels")
        if labels is not None and labels.dtype != "i64":
            return None
        found = row.rule(call)
        return found if isinstance(found, Value) else None

    return Native(function, rule, constant=("weight",))


def _categorical(call: Torch) -> Value | None:
    options = {"label_smoothing": "label_smoothing"}
    found = _of_classes("F.cross_entropy", "logits", "target", **options).rule(call)
    return found if isinstance(found, Value) else None


def _binary(call: Torch) -> Value | None:
    if (float(call["eps"]), float(call["floor"])) != (0.0, -100.0):
        return None
    row = loss("F.binary_cross_entropy")
    found = row.rule(call)
    return found if isinstance(found, Value) else None


def _poisson(call: Torch) -> Value:
    reduction = None if call["reduction"] == "mean" else f'"{call["reduction"]}"'
    options = {"log_input": call["log_input"], "full": call["full"] or None}
    options |= {"eps": call["eps"], "reduction": reduction}
    return call.value(
        invoke("F.poisson_nll_loss", *map(call.build.solid, call.values.values()), **options)
    )


def _cosine(call: Torch) -> Value | None:
    x = call.input("a")
    if x.rank > 2 or float(call["eps"]) != 1e-12 or x.dtype not in ("f32", "f64"):
        return None
    found = loss("F.cosine_embedding_loss", margin="margin").rule(call)
    return found if isinstance(found, Value) else None


_TRIPLET = _of_rows("F.triplet_margin_loss", margin="margin", p="p", eps="eps", swap="swap")


def _triplet(call: Torch) -> Value | Sequence[Value] | None:
    refused = float(call["margin"]) == 0  # by PyTorch
    return None if refused and not call.dares() else _TRIPLET.rule(call)


SEQUENCES: dict[str, Native] = {
    "simple_rnn": Native("torch.rnn_tanh, torch.rnn_relu", _rnn),
    "gru": Native("torch.gru", _gru),
    "lstm": Native("torch.lstm", _lstm),
    "simple_rnn_cell": _cell("torch.rnn_{}_cell", "", "h"),
    "gru_cell": _cell("torch.gru_cell", "gru", "h"),
    "lstm_cell": _cell("torch.lstm_cell", "lstm", "h", "c"),
    "attention": Native("F.scaled_dot_product_attention", _attention),
    "mse": loss("F.mse_loss"),
    "mae": loss("F.l1_loss"),
    "huber": loss("F.huber_loss", delta="delta"),
    "smooth_l1": loss("F.smooth_l1_loss", beta="beta"),
    "gaussian_nll": Native("F.gaussian_nll_loss", _gaussian),
    "cosine_embedding": Native("F.cosine_embedding_loss", _cosine),
    "margin_ranking": loss("F.margin_ranking_loss", margin="margin"),
    "hinge_embedding": loss("F.hinge_embedding_loss", margin="margin"),
    "soft_margin": replace(loss("F.soft_margin_loss"), constant=("target",)),
    "triplet_margin": Native("F.triplet_margin_loss", _triplet),
    "multi_margin": _of_rows("F.multi_margin_loss", p="p", margin="margin"),
    "multilabel_margin": _of_rows("F.multilabel_margin_loss"),
    "kl_div": loss("F.kl_div", log_target="log_target"),
    "cross_entropy": _of_classes(
        "F.cross_entropy", "logits", "labels", label_smoothing="label_smoothing"
    ),
    "nll": _of_classes("F.nll_loss", "log_probs", "labels"),
    "categorical_cross_entropy": Native("F.cross_entropy", _categorical),
    "binary_cross_entropy": Native("F.binary_cross_entropy", _binary, constant=("weight",)),
    "binary_cross_entropy_logits": replace(
        loss("F.binary_cross_entropy_with_logits"), constant=("weight", "pos_weight")
    ),
    "poisson": Native("F.poisson_nll_loss", _poisson),
}
