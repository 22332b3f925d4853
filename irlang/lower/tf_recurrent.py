"""How TensorFlow spells recurrent layers: by kernels that compute a step, or all of them, whole.

Keras composes its layers of products; these kernels stand in `tf.raw_ops` alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from irlang.lower.call import Call, Native
from irlang.lower.spelling import invoke
from irlang.lower.tf_builder import TensorFlowBuilder
from irlang.lower.value import Value

Tf = Call[TensorFlowBuilder]
_STEP = (0, 3, 2, 1)  # the gates of an LSTM, in terms of the language's
_LATER = (0, 2, 3, 1)  # of the second kernel of all steps
_PEEPHOLES = {"wci": 0, "wcf": 2, "wco": 1}


def _usual(call: Tf) -> bool:
    usual = (call["activation"], call["recurrent_activation"]) == ("tanh", "sigmoid")
    return usual and call.out.dtype == "f32" and 0 not in call.input("w").shape


def _kernel(call: Tf, gates: Sequence[int]) -> Value:
    """[gate, unit, input], of what comes in and of what goes round, as [input, gates and units]."""
    build, found = call.build, []
    for name in ("w", "r"):
        order = build.array(np.asarray(gates, np.int64), "i64")
        chosen = build.transpose(build.take(call.input(name), order, 0), (2, 0, 1))
        size = chosen.shape[0], len(gates) * chosen.shape[2]
        found.append(build.let(build.reshape(chosen, size), f"{name}_gates"))
    rows = sum(value.shape[0] for value in found)
    text = f"tf.concat([{', '.join(value.text for value in found)}], 0)"
    return build.let(Value(text, (rows, found[0].shape[1]), call.out.dtype), "kernel")


def _bias(call: Tf, gates: Sequence[int], *names: str) -> Value:
    """What is added to all gates, 0 where nothing is."""
    build, units = call.build, call.input("r").shape[-1]
    order = build.array(np.asarray(gates, np.int64), "i64")
    given = [build.take(call.input(name), order, 0) for name in names if call.has(name)]
    if not given:
        return build.expand(build.scalar(0.0, call.out.dtype), (len(gates) * units,))
    whole = given[0] if len(given) == 1 else build.apply("+", given)
    return build.reshape(whole, (len(gates) * units,))


def _state(call: Tf, name: str, shape: tuple[int, ...]) -> Value:
    if call.has(name):
        return call.input(name)
    return call.build.expand(call.build.scalar(0.0, call.out.dtype), shape)


def _peepholes(call: Tf, units: int) -> dict[str, Value]:
    """From the cell to the gates, 0 where there are none."""
    build = call.build
    zero = build.expand(build.scalar(0.0, call.out.dtype), (units,))
    if not call.has("p"):
        return dict.fromkeys(_PEEPHOLES, zero)
    p = call.input("p")
    return {
        name: build.reshape(build.slice(p, 0, at, at + 1, 1), (units,))
        for name, at in _PEEPHOLES.items()
    }


def _results(call: Tf, text: str, kept: dict[int, str], count: int) -> dict[int, str]:
    """The names of those of so many results that are read."""
    names = {at: call.build.names.fresh(name) for at, name in kept.items()}
    listed = ", ".join(names.get(at, "_") for at in range(count))
    call.build.lines.append(f"{listed} = {text}")
    return names


def _lstm_cell(call: Tf) -> list[Value] | None:
    """Of which there is no derivative."""
    if not _usual(call) or call.build.sloped:
        return None
    shape = call.out.shape
    given: dict[str, Any] = {
        "x": call.input("x"), "cs_prev": _state(call, "c", shape),
        "h_prev": _state(call, "h", shape), "w": _kernel(call, _STEP),
        **_peepholes(call, shape[1]), "b": _bias(call, _STEP, "b"),
        "forget_bias": 0.0, "cell_clip": -1.0,
    }  # fmt: skip
    outputs = call.node.outputs
    kept = {6: outputs[0], 1: outputs[1] if len(outputs) > 1 else "c"}
    names = _results(call, invoke("tf.raw_ops.LSTMBlockCell", **given), kept, 7)
    return [call.value(names[6]), Value(names[1], shape, call.out.dtype)]


def _gru_cell(call: Tf) -> Value | None:
    """Of which there is no derivative; what is reset is what goes round."""
    if not _usual(call) or call["reset_after"] or call.build.sloped:
        return None
    given = {
        "x": call.input("x"), "h_prev": _state(call, "h", call.out.shape),
        "w_ru": _kernel(call, (1, 0)), "w_c": _kernel(call, (2,)),
        "b_ru": _bias(call, (1, 0), "b", "rb"), "b_c": _bias(call, (2,), "b", "rb"),
    }  # fmt: skip
    return call.value(f"{invoke('tf.raw_ops.GRUBlockCell', **given)}[3]")


def _lstm(call: Tf, kernel: str) -> list[Value] | None:
    """All steps of all samples, time first."""
    gates = _LATER if kernel.endswith("V2") else _STEP
    build, x = call.build, call.input("x")
    plain = call["clip"] == math.inf and not call["input_forget"] and not call.has("mask")
    if not _usual(call) or not plain or call["hidden"] != "tanh" or 0 in x.shape:
        return None
    inner = build.transpose(x, (1, 0, 2)) if call["batch_first"] else x
    length, n, _ = inner.shape
    if call["reverse"]:
        inner = build.slice(inner, 0, length - 1, -1, -1)
    units = call.input("r").shape[-1]
    given: dict[str, Any] = {
        "seq_len_max": f"tf.constant({length}, tf.int64)", "x": inner,
        "cs_prev": _state(call, "c0", (n, units)), "h_prev": _state(call, "h0", (n, units)),
        "w": _kernel(call, gates), **_peepholes(call, units), "b": _bias(call, gates, "b"),
        "use_peephole": True if call.has("p") else None,
    }  # fmt: skip
    if gates is _STEP:
        given |= {"forget_bias": 0.0, "cell_clip": -1.0}
    names = _results(call, invoke(kernel, **given), {1: "cs", 6: "h"}, 7)
    y = Value(names[6], (length, n, units), x.dtype)
    last = [Value(f"{names[at]}[-1]", (n, units), x.dtype) for at in (6, 1)]
    if call["reverse"]:
        y = build.slice(y, 0, length - 1, -1, -1)
    return [build.transpose(y, (1, 0, 2)) if call["batch_first"] else y, *last]


def _steps(kernel: str) -> Native:
    name = f"tf.raw_ops.{kernel}"
    return Native(name, lambda call: _lstm(call, name), eager=True)


# Neither XLA nor TensorFlow Lite has them.
RECURRENT: dict[str, Native] = {
    "lstm": replace(_steps("BlockLSTM"), others=(_steps("BlockLSTMV2"),)),
    "lstm_cell": Native("tf.raw_ops.LSTMBlockCell", _lstm_cell, eager=True),
    "gru_cell": Native("tf.raw_ops.GRUBlockCell", _gru_cell, eager=True),
}
