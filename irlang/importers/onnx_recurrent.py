"""ONNX's recurrent layers: a direction at a time, each a layer of the definitions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from irlang.importers.onnx_node import Node, Value
from irlang.importers.value import Unsupported

Row = Callable[[Node], Value | Sequence[Value | None]]
_GATES = {"simple_rnn": 1, "gru": 3, "lstm": 4}
# The attributes of the definition that say each activation, and what ONNX takes if nothing is said.
_PREFIXES = {
    "simple_rnn": ("",),
    "gru": ("recurrent_", ""),
    "lstm": ("recurrent_", "", "hidden_"),
}
_USUAL = {"": "Tanh", "recurrent_": "Sigmoid", "hidden_": "Tanh"}
_ACTIVATIONS = {
    "relu": "relu", "tanh": "tanh", "sigmoid": "sigmoid", "affine": "affine",
    "leakyrelu": "leaky_relu", "thresholdedrelu": "thresholded_relu",
    "scaledtanh": "scaled_tanh", "hardsigmoid": "hard_sigmoid", "elu": "elu",
    "softsign": "softsign", "softplus": "softplus",
}  # fmt: skip
_WITH_ALPHA = {"affine", "leakyrelu", "thresholdedrelu", "scaledtanh", "hardsigmoid", "elu"}
_WITH_BETA = {"affine", "scaledtanh", "hardsigmoid"}


def _activations(n: Node, op: str, directions: int) -> list[dict[str, Any]]:
    """Attributes of every direction; an alpha or beta goes to the next activation that has one."""
    prefixes = _PREFIXES[op]
    names = n.words("activations") or [_USUAL[p] for p in prefixes] * directions
    if len(names) != len(prefixes) * directions:
        raise Unsupported(f"{len(names)} activations, not {len(prefixes)} a direction")
    alphas, betas = n.reals("activation_alpha", []), n.reals("activation_beta", [])
    found: list[dict[str, Any]] = [{} for _ in range(directions)]
    for place, name in enumerate(names):
        attrs, prefix, kind = (
            found[place // len(prefixes)],
            prefixes[place % len(prefixes)],
            name.lower(),
        )
        if kind not in _ACTIVATIONS:
            raise Unsupported(f"the activation {name}")
        if prefix == "hidden_" or name != _USUAL[prefix]:
            attrs[f"{prefix}activation"] = _ACTIVATIONS[kind]
        if kind in _WITH_ALPHA and alphas:
            attrs[f"{prefix}alpha"] = alphas.pop(0)
        if kind in _WITH_BETA and betas:
            attrs[f"{prefix}beta"] = betas.pop(0)
    for attrs in found:
        same = attrs.get("hidden_activation") == attrs.get("activation", "tanh")
        if same and not {"alpha", "beta", "hidden_alpha", "hidden_beta"} & attrs.keys():
            del attrs["hidden_activation"]
    return found


def _part(n: Node, value: Value, way: int, suffix: str, axis: int = 0) -> Value:
    """The entry of a direction, without its axis."""
    if value.shape[axis] != 1:
        value = n.step(f"{suffix}_part", "slice", value, axes=[axis], begin=[way], end=[way + 1])
    return n.step(suffix, "squeeze", value, axes=[axis])


def _layer(op: str) -> Row:
    gates, states = _GATES[op], 2 if op == "lstm" else 1

    def row(n: Node) -> Sequence[Value | None]:
        x, w, r = n.input(0), n.input(1), n.input(2)
        n.ignore("hidden_size", "output_sequence")
        directions, hidden = w.shape[0], r.shape[2]
        word, batch_first = n.word("direction", "forward"), n.flag("layout")
        if directions != (2 if word == "bidirectional" else 1):
            raise Unsupported(f"{directions} directions, and the direction is {word}")
        common: dict[str, Any] = {"batch_first": True} if batch_first else {}
        clip = n.real("clip", math.inf)
        if clip != math.inf:
            common["clip"] = clip
        if op == "gru":
            common["reset_after"] = n.flag("linear_before_reset")
        if op == "lstm" and n.flag("input_forget"):
            common["input_forget"] = True
        masks = {}
        lengths = n.optional(4)
        if lengths is not None:
            size = x.shape[1 if batch_first else 0]
            flags = {"batch_first": True} if batch_first else {}
            masks["mask"] = n.step("mask", "sequence_mask", lengths, size=size, **flags)
            common["zero_output_for_mask"] = True
        found: list[list[Value]] = []
        for way, attrs in enumerate(_activations(n, op, directions)):
            tail = f"_{way}" if directions == 2 else ""
            if word == "reverse" or way == 1:
                attrs["reverse"] = True
            shape = [gates, hidden] if gates > 1 else [hidden]
            lead = shape if gates > 1 else [hidden]
            weights = [
                n.step(
                    f"{s}{tail}", "reshape", _part(n, v, way, f"{s}_all{tail}"), shape=[*lead, size]
                )
                for s, v, size in (("w", w, w.shape[2]), ("r", r, hidden))
            ]
            by_name = {**masks, **_biases(n, op, way, tail, shape)}
            for name, place in (("h0", 5), ("c0", 6))[:states]:
                start = n.optional(place)
                if start is not None:
                    by_name[name] = _part(n, start, way, f"{name}{tail}", 1 if batch_first else 0)
            peepholes = n.optional(7) if op == "lstm" else None
            if peepholes is not None:
                p = _part(n, peepholes, way, f"p_all{tail}")
                by_name["p"] = n.step(f"p{tail}", "reshape", p, shape=[3, hidden])
            names = [f"{part}{tail}" for part in ("steps", "last", "cell")[: states + 1]]
            attrs = {**common, **attrs}
            found.append(n.steps(names, op, x, *weights, by_name=by_name, **attrs))
        places = [2 if batch_first else 1, *[1 if batch_first else 0] * states]
        return [
            _together(n, [results[i] for results in found], axis, i) if n.wants(i) else None
            for i, axis in enumerate(places)
        ]

    return row


def _biases(n: Node, op: str, way: int, tail: str, shape: list[int]) -> dict[str, Value]:
    """ONNX has one bias for the products with x and one for those with h, side by side."""
    given = n.optional(3)
    if given is None:
        return {}
    both = _part(n, given, way, f"b_all{tail}")
    halves = n.steps([f"b_x{tail}", f"b_h{tail}"], "split", both, parts=2)
    b, rb = (
        n.step(f"{name}{tail}", "reshape", half, shape=shape)
        for name, half in zip(("b", "rb"), halves, strict=True)
    )
    if op == "gru":
        return {"b": b, "rb": rb}
    return {"b": n.step(f"bias{tail}", "add", b, rb)}


def _together(n: Node, parts: list[Value], axis: int, place: int) -> Value:
    """The results of all directions along an axis of their own."""
    if len(parts) == 1:
        return n.result(place, "expand_dims", parts[0], axes=[axis])
    return n.result(place, "stack", *parts, axis=axis)


ROWS: dict[str, Row] = {
    "RNN": _layer("simple_rnn"),
    "GRU": _layer("gru"),
    "LSTM": _layer("lstm"),
}
