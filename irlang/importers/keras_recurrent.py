"""Recurrent layers of Keras (TensorFlow 2.4): SimpleRNN, GRU, LSTM, and `RNN` over their cells."""

from __future__ import annotations

from typing import Any

from irlang.importers.keras_arguments import Arguments, Uncovered
from irlang.importers.keras_call import Call
from irlang.importers.keras_text import Config
from irlang.importers.writer import Array

_ACTIVATIONS = (
    "tanh", "sigmoid", "relu", "linear", "hard_sigmoid", "elu", "softplus", "softsign",
)  # fmt: skip


def recurrent(c: Call) -> str:
    """A recurrent layer, or `RNN` over a cell: both have the cell's weights."""
    cell = c.a
    if c.a.kind == "RNN":
        config = c.a["cell"]
        if not isinstance(config, Config):
            raise Uncovered(c.a.kind, "several cells, one after another")
        cell = Arguments(config)
    kind = cell.kind.removesuffix("Cell")
    if kind not in _GATES:
        raise Uncovered(cell.kind, "not a cell that is translated")
    if c.a.flag("return_state") or c.a.flag("time_major") or c.a.flag("stateful"):
        raise Uncovered(c.a.kind, "return_state, time_major or stateful is true")
    op, _ = _GATES[kind]
    attrs: dict[str, Any] = {"batch_first": True}
    for name in ("activation", "recurrent_activation"):
        if name in cell.defaults:
            attrs[name] = "linear" if cell[name] is None else cell.choice(name, *_ACTIVATIONS)
    if kind == "GRU":
        attrs["reset_after"] = cell.flag("reset_after")
    operands, extra = _weights(c, cell, kind)
    if cell is not c.a:
        cell.finish()
    if c.mask is not None:
        extra["mask"] = c.mask
    backwards = c.a.flag("go_backwards")
    if backwards:
        attrs["reverse"] = True
    if not c.a.flag("return_sequences"):
        names = [f"{c.name}_y", c.name]
        return c.writer.call(names, op, c.x[0], *operands, by_name=extra, **attrs)[1]
    if not backwards:
        return c.write("", op, c.x[0], *operands, by_name=extra, **attrs)
    forwards = c.write("y", op, c.x[0], *operands, by_name=extra, **attrs)
    return c.write("", "reverse", forwards, axes=[1])


def _weights(c: Call, cell: Arguments, kind: str) -> tuple[list[str], dict[str, str]]:
    """The kernels, and the biases by the definition's names."""
    gates, units = _GATES[kind][1], cell.integer("units")
    count = max(1, len(gates))
    width = count * units

    def gated(array: Array) -> Array:
        """(inputs, gates * units) as (gate, units, inputs), or without gates (units, inputs)."""
        split = array.reshape(len(array), count, units).transpose(1, 2, 0)
        return split[gates] if gates else split[0]

    def biased(array: Array) -> Array:
        return array.reshape(count, units)[gates] if gates else array

    w = c.weight("w", 0, [None, width], gated)
    r = c.weight("r", 1, [units, width], gated)
    if not cell.flag("use_bias"):
        return [w, r], {}
    if kind != "GRU" or not cell.flag("reset_after"):
        return [w, r], {"b": c.weight("b", 2, [width], biased)}
    return [w, r], {
        "b": c.weight("b", 2, [2, width], lambda both: biased(both[0])),
        "rb": c.weight("rb", 2, [2, width], lambda both: biased(both[1])),
    }


# The operator, and which of Keras's gates are the definition's, in its order.
_GATES: dict[str, tuple[str, list[int]]] = {
    "SimpleRNN": ("simple_rnn", []),
    "GRU": ("gru", [0, 1, 2]),
    "LSTM": ("lstm", [0, 3, 1, 2]),
}

RECURRENT = dict.fromkeys(("RNN", *_GATES), recurrent)
