"""How Keras spells recurrent layers: samples first, gates in an order of its own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from irlang.lower.call import Native
from irlang.lower.keras_call import KERAS_3, Keras, made, quoted, weighted
from irlang.lower.value import Value

# Where the gates of Keras stand in the definitions.
_GATES = {"LSTM": [0, 2, 3, 1], "GRU": [0, 1, 2]}
# Words of every Keras for activations, those of Keras 2 in TensorFlow, and those of Keras 3 alone.
_WORDS = {
    name: name
    for name in ("linear", "exponential", "tanh", "sigmoid", "relu", "elu", "selu", "softplus",
                 "softsign")
}  # fmt: skip
_IN_TENSORFLOW = {**_WORDS, "silu": "swish", "gelu": "gelu"}
_IN_KERAS_3 = {**_WORDS, **{name: name for name in ("silu", "gelu", "mish", "relu6")}}


def _words(call: Keras) -> dict[str, str]:
    if call.build.version == 3:
        return _IN_KERAS_3
    return _WORDS if call.build.backend == "theano" else _IN_TENSORFLOW


def _activations(call: Keras, kind: str) -> dict[str, Any] | None:
    """The activations as arguments; None where Keras has not these, or other numbers in them."""
    found: dict[str, Any] = {}
    words = _words(call)
    pairs = [("activation", "alpha", "beta", "tanh")]
    if kind in _GATES:
        pairs.append(("recurrent_activation", "recurrent_alpha", "recurrent_beta", "sigmoid"))
    for name, alpha, beta, usual in pairs:
        word = call[name]
        slope = 1 / 6 if call.build.version == 3 else 0.2
        given = float(call.get(alpha, 0.2 if word == "hard_sigmoid" else 1))
        if word == "hard_sigmoid" and (given, float(call.get(beta, 0.5))) == (slope, 0.5):
            found[name] = quoted(word)
        elif word not in words or (word == "elu" and given != 1):  # no other reads a number
            return None
        elif word != usual or call.build.version == 2:
            found[name] = quoted(words[word])
    return found


def _ordered(call: Keras, value: Value, kind: str) -> Value:
    """Gates, which come first, in the order of Keras."""
    order = _GATES[kind]
    if order == sorted(order):
        return value
    return call.build.take(value, call.build.constant(np.array(order), "i64"), 0)


def _kernel(call: Keras, name: str, kind: str) -> Value:
    """[gate, unit, input] as [input, gates and units]; without gates [input, unit]."""
    w = call.input(name)
    if kind not in _GATES:
        return call.build.transpose(w, (1, 0))
    turned = call.build.transpose(_ordered(call, w, kind), (2, 0, 1))
    return call.build.reshape(turned, (w.shape[2], w.shape[0] * w.shape[1]))


def _bias(call: Keras, name: str, kind: str) -> Value | None:
    if not call.has(name):
        return None
    b = call.input(name)
    return b if kind not in _GATES else call.build.reshape(
        _ordered(call, b, kind), (b.shape[0] * b.shape[1],)
    )  # fmt: skip


def _weights(call: Keras, kind: str) -> tuple[list[Value], bool]:
    """The weights in Keras's arrangement, and whether a bias is among them."""
    found = [_kernel(call, "w", kind), _kernel(call, "r", kind)]
    b = _bias(call, "b", kind)
    if kind != "GRU":
        return [*found, b] if b is not None else found, b is not None
    rb = _bias(call, "rb", kind)
    if b is None and rb is None:
        return found, False
    zero = call.build.expand(call.build.scalar(0.0, call.out.dtype), (found[0].shape[1],))
    b, rb = b or zero, rb or zero
    if call["reset_after"]:
        return [*found, call.build.stack([b, rb], 0)], True
    return [*found, call.build.apply("+", [b, rb])], True


def _states(call: Keras, names: tuple[str, ...], shape: tuple[int, ...]) -> str:
    """The states to begin with, as a list in the text; empty where none is given."""
    if not any(call.has(name) for name in names):
        return ""
    zero = call.build.scalar(0.0, call.out.dtype)
    values = [
        call.input(name) if call.has(name) else call.build.expand(zero, shape) for name in names
    ]
    return ", ".join(value.text for value in values)


def _begun(call: Keras) -> dict[str, Any]:
    """The usual first values of a recurrent kernel, which are orthogonal, need a wider type."""
    return {"recurrent_initializer": quoted("zeros")} if call.out.dtype == "bf16" else {}


def _unusual(call: Keras, kind: str) -> bool:
    """Whether the call has what Keras lacks."""
    if call["clip"] != math.inf:
        return True
    if kind != "LSTM":
        return False
    alike = call["hidden"] == call["activation"] and (
        call["hidden"] != "elu" or call["hidden_alpha"] == call["alpha"]
    )
    return call.has("p") or call["input_forget"] or not alike


def _recurrent(kind: str, names: tuple[str, ...], wrapped: bool = False) -> Native:
    """wrapped: a cell, in the layer that goes through sequences of any cell."""

    def rule(call: Keras) -> list[Value] | None:
        activations = _activations(call, kind)
        if activations is None or _unusual(call, kind):
            return None
        if call["zero_output_for_mask"] and call.build.version == 2:
            return None
        on_theano = call.build.backend == "theano"
        if on_theano and (call.has("mask") or any(map(call.has, names))):
            return None
        build, x, first = call.build, call.input("x"), call["batch_first"]
        weights, has_bias = _weights(call, kind)
        inner = x if first else build.transpose(x, (1, 0, 2))
        n, length, _ = inner.shape
        units = call.outputs[1].shape[1]
        cell = {**activations, "use_bias": None if has_bias else False}
        if kind == "GRU" and (not call["reset_after"] or call.build.version == 2):
            cell["reset_after"] = call["reset_after"]
        cell |= _begun(call)
        options: dict[str, Any] = {
            "return_sequences": True, "return_state": True,
            "go_backwards": call["reverse"] or None,
        }  # fmt: skip
        if on_theano and length > 1:  # it says itself that it unrolls no single step
            options["unroll"] = True
        extra = []
        if call["zero_output_for_mask"]:
            options["zero_output_for_mask"] = True
        if call.has("mask"):
            mask = call.input("mask")
            mask = mask if first else build.transpose(mask, (1, 0))
            extra.append(f"mask={mask.text}")
        states = _states(call, names, (n, units))
        if states:
            extra.append(f"initial_state=[{states}]")
        if wrapped:
            options["cell"] = made(call, f"{kind}Cell", units=units, **cell)
        else:
            options = {"units": units, **cell, **options}
        name = "RNN" if wrapped else kind
        text = weighted(call, name, weights, inner, called=", ".join(extra), **options)
        results = build.several(text, *call.node.outputs)
        y = Value(results[0], (n, length, units), call.out.dtype)
        if call["reverse"]:
            y = build.slice(y, 1, length - 1, -1, -1)
        y = y if first else build.transpose(y, (1, 0, 2))
        pairs = zip(results[1:], call.outputs[1:], strict=True)
        return [y, *(Value(name, info.shape, info.dtype) for name, info in pairs)]

    if wrapped:
        return Native(f"keras.layers.RNN of {kind}Cell", rule, since=KERAS_3)
    other = _recurrent(kind, names, wrapped=True)
    return Native(f"keras.layers.{kind}", rule, others=(other,))


def _image_kernel(call: Keras, name: str) -> Value:
    """[gate, filter, channel, space] as [space, channel, gates and filters]."""
    w = call.input(name)
    gates, filters, channels, *space = w.shape
    turned = call.build.transpose(_ordered(call, w, "LSTM"), (*range(3, w.rank), 2, 0, 1))
    return call.build.reshape(turned, (*space, channels, gates * filters))


def _conv_lstm(call: Keras) -> list[Value] | None:
    """Samples first, channels last; what goes round is as large as what is read."""
    build, x, first, rank = call.build, call.input("x"), call["batch_first"], len(call["S"])
    activations = _activations(call, "LSTM")
    alike = tuple(call["K"]) == tuple(call["M"])
    if activations is None or not alike:
        return None
    if build.backend == "theano":
        return None  # which compiles such a loop for a minute
    least, most = (1, 3) if build.version == 3 else (2, 2)
    steps = set(call["stride"]) == {1} or set(call["dilation"]) == {1}
    unlike = call["pad"] == "given" or call["zero_output_for_mask"] or not steps
    if not least <= rank <= most or unlike:
        return None
    weights = [_image_kernel(call, "w"), _image_kernel(call, "r")]
    bias = _bias(call, "b", "LSTM")
    options = {
        **activations, "padding": quoted("same") if call["pad"] == "same" else None,
        "strides": None if set(call["stride"]) == {1} else tuple(call["stride"]),
        "dilation_rate": None if set(call["dilation"]) == {1} else tuple(call["dilation"]),
        "use_bias": None if bias is not None else False, "return_sequences": True,
        "return_state": True, "go_backwards": call["reverse"] or None, **_begun(call),
    }  # fmt: skip
    space = tuple(range(3, x.rank))
    inner = build.transpose(x, (0, 1, *space, 2) if first else (1, 0, *space, 2))
    extra = []
    if call.has("mask"):
        mask = call.input("mask")
        extra.append(f"mask={(mask if first else build.transpose(mask, (1, 0))).text}")
    n, filters, *out = call.outputs[1].shape
    if call.has("h0") or call.has("c0"):
        zero = build.scalar(0.0, call.out.dtype)
        begun = [
            build.transpose(call.input(name), (0, *range(2, rank + 2), 1))
            if call.has(name) else build.expand(zero, (n, *out, filters))
            for name in ("h0", "c0")
        ]  # fmt: skip
        extra.append(f"initial_state=[{', '.join(value.text for value in begun)}]")
    text = weighted(
        call, f"ConvLSTM{rank}D", [*weights, *([] if bias is None else [bias])], inner,
        called=", ".join(extra), filters=filters, kernel_size=tuple(call["K"]), **options,
    )  # fmt: skip
    results = build.several(text, *call.node.outputs)
    y = Value(results[0], (n, x.shape[1 if first else 0], *out, filters), call.out.dtype)
    if call["reverse"]:
        y = build.slice(y, 1, y.shape[1] - 1, -1, -1)
    turned = range(2, rank + 2)
    y = build.transpose(y, (0, 1, rank + 2, *turned) if first else (1, 0, rank + 2, *turned))
    last = [Value(name, (n, *out, filters), y.dtype) for name in results[1:]]
    return [y, *(build.transpose(value, (0, rank + 1, *range(1, rank + 1))) for value in last)]


def _cell(kind: str, names: tuple[str, ...]) -> Native:
    def rule(call: Keras) -> list[Value] | None:
        activations = _activations(call, kind)
        if activations is None or (kind == "GRU" and not call["reset_after"]):
            return None
        build, x = call.build, call.input("x")
        weights, has_bias = _weights(call, kind)
        n, units = call.out.shape
        zero = build.expand(build.scalar(0.0, call.out.dtype), (n, units)).text
        states = _states(call, names, (n, units)) or ", ".join([zero] * len(names))
        options = {**activations, "use_bias": None if has_bias else False, **_begun(call)}
        text = weighted(call, f"{kind}Cell", weights, x, f"[{states}]", units=units, **options)
        both = build.once(f"{text}[1]", (), call.out.dtype, "states").text
        infos = enumerate(call.outputs)
        return [Value(f"{both}[{place}]", info.shape, info.dtype) for place, info in infos]

    return Native(f"keras.layers.{kind}Cell", rule, since=KERAS_3)


RECURRENT: dict[str, Native] = {
    "simple_rnn": _recurrent("SimpleRNN", ("h0",)),
    "gru": _recurrent("GRU", ("h0",)),
    "lstm": _recurrent("LSTM", ("h0", "c0")),
    "conv_lstm": Native("keras.layers.ConvLSTM{1,2,3}D", _conv_lstm),
    "lstm_cell": _cell("LSTM", ("h", "c")),
    "gru_cell": _cell("GRU", ("h",)),
    "simple_rnn_cell": _cell("SimpleRNN", ("h",)),
}
