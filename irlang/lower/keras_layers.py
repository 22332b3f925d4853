"""How Keras spells layers of products, norms, attention and chance."""

from __future__ import annotations

import math
from typing import Any

from irlang.lower.call import Native
from irlang.lower.chance import NORMAL, UNIFORM
from irlang.lower.keras_call import KERAS_3, Keras, bias, layer, weighted
from irlang.lower.legalise import is_whole
from irlang.lower.spelling import invoke
from irlang.lower.value import Value


def _dense(call: Keras) -> Value | None:
    x, w = call.input("x"), call.input("w")
    if x.rank < 2:
        return None
    no_bias = None if call.has("b") else False
    text = weighted(call, "Dense", [w, *bias(call)], x, units=w.shape[1], use_bias=no_bias)
    return call.value(text)


def _embedding(call: Keras) -> Value | None:
    table, ids = call.input("table"), call.input("ids")
    if table.dtype not in ("f32", "f64", "f16", "bf16") or ids.rank < 1:
        return None
    options: dict[str, Any] = {"input_dim": table.shape[0], "output_dim": table.shape[1]}
    return call.value(weighted(call, "Embedding", [table], ids, **options))


def _matmul(call: Keras) -> Value:
    a, b = call.input("a"), call.input("b")
    for name, flag in (("a", "transpose_a"), ("b", "transpose_b")):
        if call[flag]:
            value = call.input(name)
            order = (*range(value.rank - 2), value.rank - 1, value.rank - 2)
            turned = call.build.transpose(value, order)
            a, b = (turned, b) if name == "a" else (a, turned)
    return call.value(invoke("ops.matmul", a, b))


def _dot(call: Keras) -> Value | None:
    a, b = call.input("a"), call.input("b")
    bound = 1e-7 if call.build.backend == "theano" else 1e-12  # of a sum of squares
    if call["normalize"] and call["eps"] != bound:
        return None
    options: dict[str, Any] = {"axes": tuple(call["axes"]), "normalize": call["normalize"] or None}
    return call.value(layer(call, "Dot", a, b, **options))


# ---- norms


def _scales(call: Keras, scale: str, shift: str) -> tuple[list[Value], dict[str, Any]]:
    """What scales and shifts, and the arguments that say what of it there is."""
    weights = [call.input(name) for name in (scale, shift) if call.has(name)]
    flags = {
        "scale": None if call.has(scale) else False,
        "center": None if call.has(shift) else False,
    }
    return weights, flags


def _batch_norm(call: Keras) -> Value | None:
    x = call.input("x")
    if call.build.backend == "theano" and call["eps"] <= 1e-5:
        return None  # it wants more
    weights, flags = _scales(call, "scale", "bias")
    weights += [call.input("mean"), call.input("var")]
    return call.value(
        weighted(
            call, "BatchNormalization", weights, x, axis=call.axis_said("axis", x.rank),
            epsilon=float(call["eps"]), **flags, called="training=False",
        )
    )  # fmt: skip


def _batch_norm_train(call: Keras) -> list[Value] | None:
    x = call.input("x")
    if call.wants("mean") or call.wants("var"):
        return None
    weights, flags = _scales(call, "scale", "bias")
    axis = call.axis_said("axis", x.rank)
    zeros = call.build.expand(call.build.scalar(0.0, x.dtype), (x.shape[axis],))
    text = weighted(
        call, "BatchNormalization", [*weights, zeros, zeros], x, axis=axis,
        epsilon=float(call["eps"]), **flags, called="training=True",
    )  # fmt: skip
    return [call.value(text)]


def _layer_norm(call: Keras) -> Value | None:
    x = call.input("x")
    axes = call.axes("axes", x.rank)
    if call["eps_to"] != "variance" or list(axes) != sorted(axes) or not axes:
        return None
    weights, flags = _scales(call, "gamma", "beta")
    said = call.axes_said("axes", x.rank)
    if list(said) != sorted(said):
        said = axes  # Keras sorts what it is told, and its weights are in that order
    axis = str(list(said)) if len(said) > 1 else said[0]
    options: dict[str, Any] = {"axis": axis, "epsilon": float(call["eps"])}
    return call.value(weighted(call, "LayerNormalization", weights, x, **options, **flags))


def _group_norm(call: Keras) -> Value:
    x = call.input("x")
    weights, flags = _scales(call, "gamma", "beta")
    options: dict[str, Any] = {
        "axis": call.axis_said("axis", x.rank),
        "epsilon": float(call["eps"]),
    }
    name = "GroupNormalization"
    return call.value(weighted(call, name, weights, x, groups=call["groups"], **options, **flags))


def _rms_norm(call: Keras) -> Value | None:
    x = call.input("x")
    axes = call.axes_said("axes", x.rank)
    if len(axes) != 1 or not call.has("gamma"):
        return None
    options: dict[str, Any] = {"axis": axes[0], "epsilon": float(call["eps"])}
    return call.value(weighted(call, "RMSNormalization", [call.input("gamma")], x, **options))


def _l2_normalize(call: Keras) -> Value | None:
    """The layer of Keras 2 bounds the squares; `ops.normalize` the norm."""
    x = call.input("x")
    axes = call.axes_said("axes", x.rank)
    if not axes:
        return None
    axis = axes[0] if len(axes) == 1 else str(list(axes))
    if call.build.version == 2:
        whole = call["eps"] == 1e-12
        return call.value(layer(call, "UnitNormalization", x, axis=axis)) if whole else None
    if call["eps"] <= 0:
        return None
    bound = math.sqrt(call["eps"])
    return call.value(invoke("ops.normalize", x, axis=axis, order=2, epsilon=bound))


def _normalize(call: Keras) -> Value | None:
    x = call.input("x")
    axes = call.axes_said("axes", x.rank)
    if len(axes) != 1 or not is_whole(call["p"]) or call["eps"] <= 0:
        return None
    if (call["p"], call["eps"]) == (2, 1e-12):
        return call.value(layer(call, "UnitNormalization", x, axis=axes[0]))
    order = int(call["p"])
    text = invoke("ops.normalize", x, axis=axes[0], order=order, epsilon=float(call["eps"]))
    return call.value(text)


# ---- attention


def _multi_head(call: Keras) -> Value | None:
    """One mask of samples, queries and keys for all heads; the scale is the usual one."""
    wq, wk, wv, wo = (call.input(name) for name in ("wq", "wk", "wv", "wo"))
    biases = [call.has(name) for name in ("bq", "bk", "bv", "bo")]
    usual = abs(float(call["scale"]) * wq.shape[2] ** 0.5 - 1) < 1e-12
    heads, groups = wq.shape[1], wk.shape[1]
    if any(biases) != all(biases) or not usual or heads != groups:
        return None
    q, k, v = (call.input(name) for name in ("q", "k", "v"))
    options = {
        "num_heads": heads, "key_dim": wq.shape[2], "value_dim": wv.shape[2],
        "output_shape": wo.shape[2], "use_bias": None if all(biases) else False,
    }  # fmt: skip
    weights = [wq, wk, wv, wo]
    if all(biases):
        pairs = ((wq, "bq"), (wk, "bk"), (wv, "bv"), (wo, "bo"))
        weights = [value for w, b in pairs for value in (w, call.input(b))]
    extra = ["use_causal_mask=True"] if call["causal"] else []
    if call.has("mask"):
        mask = call.input("mask")
        shape = (1,) * (4 - mask.rank) + mask.shape
        if shape[1] != 1:
            return None
        mask = call.build.reshape(mask, (shape[0], *shape[2:]))
        whole = (q.shape[0], q.shape[1], k.shape[1])
        extra.append(f"attention_mask={call.build.expand(mask, whole).text}")
    name = call.build.names.fresh(f"{call.node.name}_layer")
    made = invoke(f"{call.build.keras}.layers.MultiHeadAttention", **_typed(call, options))
    call.build.lines.append(f"{name} = {made}")
    call.build.lines.append(f"{name}.build({q.text}.shape, {v.text}.shape, {k.text}.shape)")
    listed = ", ".join(weight.text for weight in weights)
    more = "".join(f", {item}" for item in extra)
    return call.value(f"applied({name}, [{listed}], {q.text}, {v.text}, {k.text}{more})")


def _typed(call: Keras, options: dict[str, Any]) -> dict[str, Any]:
    if call.out.dtype == "f32":
        return options
    return {**options, "dtype": call.build.dtype(call.out.dtype)}


# ---- chance


def _dropout(call: Keras) -> list[Value] | None:
    training = bool(call["training"])
    if call.wants("mask") or (training and call["rate"] == 1):
        return None
    x = call.input("x")
    if not all(-x.rank <= axis < x.rank for axis in call["shared_axes"]):
        return None  # a shape of the noise says none of these
    options = {"noise_shape": tuple(call["M"])} if call["shared"] else {}
    rate = float(call["rate"])
    text = layer(call, "Dropout", x, called=f"training={training}", rate=rate, **options)
    return [call.value(text)]


def _noise(kind: str, argument: str) -> Native:
    """Noise of training: a tensor without shared axes."""

    def rule(call: Keras) -> Value | None:
        amount = float(call[argument])
        if call.get("shared", []):
            return None
        called = f"training={bool(call['training'])}"
        text = layer(call, kind, call.input("x"), called=called, **{argument: amount})
        return call.value(text)

    return Native(f"keras.layers.{kind}", rule, since=KERAS_3)


LAYERS: dict[str, Native] = {
    "dense": Native("keras.layers.Dense", _dense),
    "embedding": Native("keras.layers.Embedding", _embedding),
    "matmul": Native("ops.matmul", _matmul, since=KERAS_3),
    "dot": Native("keras.layers.Dot", _dot),
    "batch_norm": Native("keras.layers.BatchNormalization", _batch_norm),
    "batch_norm_train": Native("keras.layers.BatchNormalization", _batch_norm_train, since=KERAS_3),
    "layer_norm": Native("keras.layers.LayerNormalization", _layer_norm, since=KERAS_3),
    "group_norm": Native("keras.layers.GroupNormalization", _group_norm, since=KERAS_3),
    "rms_norm": Native("keras.layers.RMSNormalization", _rms_norm, since=(3, 9)),
    "l2_normalize": Native("ops.normalize", _l2_normalize, since=KERAS_3),
    "normalize": Native("keras.layers.UnitNormalization, ops.normalize", _normalize, since=KERAS_3),
    "multi_head_attention": Native("keras.layers.MultiHeadAttention", _multi_head, since=KERAS_3),
    "dropout": Native("keras.layers.Dropout", _dropout),
    "random_normal": Native("keras.random.normal", NORMAL),
    "random_uniform": Native("keras.random.uniform", UNIFORM),
    "gaussian_noise": _noise("GaussianNoise", "stddev"),
    "gaussian_dropout": _noise("GaussianDropout", "rate"),
    "alpha_dropout": _noise("AlphaDropout", "rate"),
}
