"""ConvLSTM1D, 2D and 3D of Keras."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irlang.importers.keras_arguments import Uncovered
from irlang.importers.keras_call import Call, Value
from irlang.importers.keras_products import steps
from irlang.importers.keras_recurrent import activations
from irlang.importers.writer import Array

_GATES = [0, 3, 1, 2]  # which of Keras's gates are the definition's, in its order


def _conv_lstm(rank: int) -> Callable[[Call], list[str]]:
    def write(c: Call) -> list[str]:
        if c.a.flag("stateful"):
            raise Uncovered(c.a.kind, "`stateful` is true")
        filters, kernel = c.a.integer("filters"), c.a.ints("kernel_size", rank)

        def gated(array: Array) -> Array:
            """(places.., inputs, gates * filters) as (gate, filters, inputs, places..)."""
            split = array.reshape(*array.shape[:-1], 4, filters)
            order = (rank + 1, rank + 2, rank, *range(rank))
            return split.transpose(order)[_GATES]

        own = c.weights.part(("cell",), 0)
        w = c.weight("w", 0, [*kernel, None, 4 * filters], gated, own)
        r = c.weight("r", 1, [*kernel, filters, 4 * filters], gated, own)
        extra: dict[str, str] = {}
        if c.a.flag("use_bias"):
            extra["b"] = c.weight(
                "b", 2, [4 * filters], lambda b: b.reshape(4, filters)[_GATES], own
            )
        ahead = c.a.given.get("data_format") is not None and c.channels_first
        extra |= _begin(c, ahead)
        if c.mask is not None:
            if len(c.info(c.mask).shape) > 2:
                raise Uncovered(c.a.kind, "a mask of places, not of steps")
            extra["mask"] = c.mask
        attrs: dict[str, Any] = {"batch_first": True, **steps(c, rank)}
        attrs |= activations(c.version, c.a, "LSTM")
        if c.version == 2 and "recurrent_activation" not in c.a.given:
            attrs["recurrent_activation"] = "hard_sigmoid"
        backwards, sequences = c.a.flag("go_backwards"), c.a.flag("return_sequences")
        if backwards:
            attrs["reverse"] = True
        zero = c.a.flag("zero_output_for_mask") and c.mask is not None
        if zero:
            attrs["zero_output_for_mask"] = True
        x = c.x[0]
        if not ahead:
            x = c.write("x", "transpose", x, perm=[0, 1, rank + 2, *range(2, rank + 2)])
        y, last, cell = c.several(["y", "h" if sequences else "", "c"], "conv_lstm", x, w, r,
                                  by_name=extra, **attrs)  # fmt: skip
        if not ahead:
            c.sheet.moved |= {last, cell}
        if sequences:
            result = _sequence(c, y, rank, ahead, backwards)
        elif c.mask is not None and (zero or "h0" in extra):
            result = _last_output(c, y, ahead, backwards)
        else:
            result = last
        return [result, *([last, cell] if c.a.flag("return_state") else [])]

    return write


def _begin(c: Call, ahead: bool) -> dict[str, str]:
    """The states to begin with, channels first."""
    given = c.arguments.get("initial_state") or c.values[1:]
    if not all(isinstance(item, Value) for item in given):
        raise Uncovered(c.a.kind, "its initial state is no tensor")
    names = [c.sheet.last(v.name) if ahead else c.sheet.first(v.name) for v in given]
    return dict(zip(("h0", "c0"), names, strict=False))


def _last_output(c: Call, y: str, ahead: bool, backwards: bool) -> str:
    """What the last step gives, which is not the state where it is masked."""
    end = {"end": [1]} if backwards else {}
    step = c.write("step", "slice", y, axes=[1], begin=[0 if backwards else -1], **end)
    output = c.write("output", "squeeze", step, axes=[1])
    if not ahead:
        c.sheet.moved.add(output)
    return output


def _sequence(c: Call, y: str, rank: int, ahead: bool, backwards: bool) -> str:
    """All outputs in Keras's order of steps and axes."""
    if backwards:
        y = c.write("" if ahead else "steps", "reverse", y, axes=[1])
    if ahead:
        return y
    return c.write("", "transpose", y, perm=[0, 1, *range(3, rank + 3), 2])


CONV_LSTM: dict[str, Callable[[Call], list[str]]] = {
    f"ConvLSTM{rank}D": _conv_lstm(rank) for rank in (1, 2, 3)
}
