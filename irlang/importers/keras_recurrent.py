"""Recurrent layers of Keras: SimpleRNN, GRU, LSTM, `RNN` over their cells, in two directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irlang.importers.keras_activations import activation_name
from irlang.importers.keras_arguments import Arguments, Uncovered
from irlang.importers.keras_call import Call, Value
from irlang.importers.keras_names import snake_case, unique
from irlang.importers.keras_steps import Loop, stepwise
from irlang.importers.keras_text import Config
from irlang.importers.keras_weights import Weights
from irlang.importers.writer import Array

# The operator, which of Keras's gates are the definition's in its order, and the states.
_GATES: dict[str, tuple[str, list[int], tuple[str, ...]]] = {
    "SimpleRNN": ("simple_rnn", [], ("h0",)),
    "GRU": ("gru", [0, 1, 2], ("h0",)),
    "LSTM": ("lstm", [0, 3, 1, 2], ("h0", "c0")),
}
_WORDS = {"swish": "silu"}
_ACTIVATIONS = (
    "tanh", "sigmoid", "hard_sigmoid", "linear", "relu", "elu", "selu", "leaky_relu", "relu6",
    "softplus", "softsign", "exponential", "silu", "gelu", "mish",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Run:
    """What a pass over the steps gives: all outputs in the order of the steps, the last, states."""

    steps: str
    last: str
    states: list[str]


def recurrent(c: Call) -> list[str]:
    """A recurrent layer, or `RNN` over cells."""
    values, states = _split(c)
    sequences, state = c.a.flag("return_sequences"), c.a.flag("return_state")
    backwards = c.a.flag("go_backwards")
    direct = sequences and not backwards
    weights = c.weights.part(("cell",), 0)
    ends = ("" if direct else "y", "last" if sequences else "")
    run = _run(c, c.a, weights, values[0], c.mask, states, ends)
    result = run.steps if direct else run.last
    if sequences and backwards:
        result = c.write("", "reverse", run.steps, axes=[1])
    return [result, *(run.states if state else [])]


def _split(c: Call) -> tuple[list[str], list[str]]:
    """The sequence, and the states to begin with: called with, or listed after the sequence."""
    given = c.arguments.get("initial_state")
    if given is None:
        return c.x[:1], c.x[1:]
    items = given if isinstance(given, (list, tuple)) else [given]
    return c.x[:1], [c.tensor(item, "its initial state") for item in items]


def _run(
    c: Call,
    loop: Arguments,
    weights: Weights,
    x: str,
    mask: str | None,
    states: Sequence[str],
    ends: tuple[str, str],
) -> Run:
    """One pass through the steps. ends: the suffixes of the sequence and of the last output."""
    if loop.flag("stateful"):
        raise Uncovered(loop.kind, "`stateful` is true")
    batch_first = not ("time_major" in loop.defaults and loop.flag("time_major"))
    if mask is not None and not batch_first:
        raise Uncovered(loop.kind, "a mask where time comes first")
    attrs: dict[str, Any] = {"batch_first": True} if batch_first else {}
    reverse = loop.flag("go_backwards")
    if reverse:
        attrs["reverse"] = True
    zero = loop.flag("zero_output_for_mask") and mask is not None
    if zero:
        attrs["zero_output_for_mask"] = True
    sequences, state = loop.flag("return_sequences"), loop.flag("return_state")
    cells = _cells(loop, weights)
    final: list[str] = []
    y = last = x
    left = list(states)
    for number, (cell, own) in enumerate(cells):
        inner = number < len(cells) - 1
        kind = cell.kind.removesuffix("Cell")
        op, _, names = _GATES[kind]
        tag = f"{number}_" if len(cells) > 1 else ""
        begin, left = left[: len(names)], left[len(names) :]
        if not _defined(c, cell):
            steps = Loop(1 if batch_first else 0, reverse, mask, zero)
            y, *after = stepwise(c, cell, tag, own, y, begin, steps)
            final, last = [*final, *after], after[0]
            continue
        operands, extra = _weights(c, cell, kind, own, tag)
        extra |= dict(zip(names, begin, strict=False))
        if mask is not None:
            extra["mask"] = mask
        wanted = [f"{number}_y", f"{number}_h"] if inner else list(ends)
        wanted += [f"{wanted[1] or 'last'}_c"] if len(names) > 1 else []
        if not state:
            wanted = wanted[:1] if inner or sequences else wanted[:2]
        more = {**attrs, **activations(c.version, cell, kind)}
        y, *after = c.several(wanted, op, y, *operands, by_name=extra, **more)
        final += after
        last = after[0] if after else y
    if mask is not None and (zero or states) and not sequences:
        place = 0 if reverse else -1
        axis = 1 if batch_first else 0
        end = {} if place else {"end": [1]}
        one = c.write(f"{ends[1]}_step", "slice", y, axes=[axis], begin=[place], **end)
        last = c.write(f"{ends[1]}_output" if ends[1] else "output", "squeeze", one, axes=[axis])
    return Run(y, last, final)


def _cells(loop: Arguments, weights: Weights) -> list[tuple[Arguments, Weights]]:
    """The cells of a layer, one after another, each with its weights."""
    if loop.kind in _GATES:
        return [(loop, weights)]
    given = loop["cell"]
    if isinstance(given, Config) and given.kind == "StackedRNNCells":
        given = Arguments(given)["cells"]
    if isinstance(given, Config):
        return [(_cell(given), weights)]
    if not isinstance(given, (list, tuple)) or not given:
        raise Uncovered(loop.kind, f"`cell` is {given!r}")
    cells = [_cell(item) for item in given]
    names = unique([snake_case(item.kind) for item in given])
    found, first = [], 0
    for cell, name in zip(cells, names, strict=True):
        count = 3 if cell.flag("use_bias") else 2
        found.append((cell, weights.part((f"cells/{name}",), first, count)))
        first += count
    return found


def _cell(config: Any) -> Arguments:
    if not isinstance(config, Config) or config.kind.removesuffix("Cell") not in _GATES:
        kind = config.kind if isinstance(config, Config) else "RNN"
        raise Uncovered(kind, "not a cell that is translated")
    return Arguments(config)


def _defined(c: Call, cell: Arguments) -> bool:
    """Whether the definition of the cell has its activations."""
    names = [name for name in ("activation", "recurrent_activation") if name in cell.defaults]
    wanted = [activation_name(cell[name]) for name in names]
    if c.version == 2 and c.dtype == "f64" and "gelu" in wanted:
        return False  # its root of 2 is single there
    return all(isinstance(w, str) and _WORDS.get(w, w) in _ACTIVATIONS for w in wanted)


def activations(version: int, cell: Arguments, kind: str) -> dict[str, Any]:
    """The activations of a cell as attributes; those that are the definition's own are left out."""
    attrs: dict[str, Any] = {}
    for name in ("activation", "recurrent_activation"):
        if name not in cell.defaults:
            continue
        wanted = activation_name(cell[name])
        wanted = _WORDS.get(wanted, wanted) if isinstance(wanted, str) else wanted
        if wanted not in _ACTIVATIONS:
            raise Uncovered(cell.kind, f"`{name}` is {wanted!r}")
        attrs[name] = wanted
        alpha = "recurrent_alpha" if name.startswith("recurrent") else "alpha"
        if wanted == "hard_sigmoid" and version == 3:
            attrs[alpha] = 1 / 6
        if wanted == "leaky_relu":
            attrs[alpha] = float(np.float32(0.2))
    if kind == "GRU":
        attrs["reset_after"] = cell.flag("reset_after")
    if "activation" in attrs and attrs["activation"] == "tanh":
        del attrs["activation"]
    if attrs.get("recurrent_activation") == "sigmoid":
        del attrs["recurrent_activation"]
    if attrs.get("reset_after") is True:
        del attrs["reset_after"]
    return attrs


def _weights(
    c: Call, cell: Arguments, kind: str, weights: Weights, tag: str
) -> tuple[list[str], dict[str, str]]:
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

    w = c.weight(f"{tag}w", 0, [None, width], gated, weights)
    r = c.weight(f"{tag}r", 1, [units, width], gated, weights)
    if not cell.flag("use_bias"):
        return [w, r], {}
    if kind != "GRU" or not cell.flag("reset_after"):
        return [w, r], {"b": c.weight(f"{tag}b", 2, [width], biased, weights)}
    return [w, r], {
        "b": c.weight(f"{tag}b", 2, [2, width], lambda both: biased(both[0]), weights),
        "rb": c.weight(f"{tag}rb", 2, [2, width], lambda both: biased(both[1]), weights),
    }


# ---- two directions, and one step


def bidirectional(c: Call) -> list[str]:
    """A layer in both directions, and their outputs merged step by step."""
    layers = _directions(c)
    loops = [Arguments(layer) for layer in layers]
    sequences, state = loops[0].flag("return_sequences"), loops[0].flag("return_state")
    values, states = _split(c)
    half = len(states) // 2
    begin = [states[:half], states[half:]]
    each = len(c.weights) // 2
    outputs, ends = [], []
    for number, (name, loop) in enumerate(zip(("forward", "backward"), loops, strict=True)):
        weights = c.weights.part((f"{name}_layer",), number * each, each)
        if loop.kind.startswith("ConvLSTM"):
            found = _convolving(c, layers[number], name, begin[number], weights)
            outputs.append(found[0])
            ends += found[1:]
            continue
        if loop.kind not in ("RNN", *_GATES):
            raise Uncovered(c.a.kind, f"{loop.kind} inside")
        loop.given["zero_output_for_mask"] = sequences
        inner = weights.part(("cell",), 0)
        suffixes = (name, f"{name}_last")
        run = _run(c, loop, inner, values[0], c.mask, begin[number], suffixes)
        outputs.append(run.steps if sequences else run.last)
        ends += run.states if state else []
        loop.finish()
    mask = c.mask if sequences else None
    mode = c.a["merge_mode"]
    if mode is None:
        c.passed = [mask, mask, *[None] * len(ends)]
        return [*outputs, *ends]
    merge: dict[str, Callable[[], str]] = {
        "concat": lambda: c.write("", "concat", *outputs, axis=-1),
        "sum": lambda: c.write("", "add", *outputs),
        "mul": lambda: c.write("", "multiply", *outputs),
        "ave": lambda: c.write("", "average_n", *outputs),
    }
    c.passed = [mask, *[None] * len(ends)]
    return [merge[c.a.choice("merge_mode", *merge)](), *ends]


def _convolving(
    c: Call, layer: Config, name: str, begin: Sequence[str], weights: Weights
) -> list[str]:
    """One direction of convolutional layers: its output in the order of the steps, and states."""
    loop = Arguments(layer)
    values = [Value(c.x[0], c.mask), *map(Value, begin)]
    config = layer
    if c.version == 3:
        zero = {"zero_output_for_mask": loop.flag("return_sequences")}
        config = Config(layer.kind, layer.args, {**layer.kwargs, **zero})
    found = [
        c.sheet.last(item.name)
        for item in c.sheet.apply(c.sheet, f"{c.name}_{name}", config, values, weights)
    ]
    if loop.flag("go_backwards") and loop.flag("return_sequences"):
        found[0] = c.write(f"{name}_steps", "reverse", found[0], axes=[1])
    return found


def _directions(c: Call) -> list[Config]:
    """The layer forwards, and the one backwards: its own, or the same the other way round."""
    layer, other = c.a["layer"], c.a["backward_layer"]
    _ = c.a["weights"]
    if not isinstance(layer, Config) or not isinstance(other, (Config, type(None))):
        raise Uncovered(c.a.kind, "it has no layer inside")
    if other is None:
        backwards = not Arguments(layer).flag("go_backwards")
        if layer.args[7:] or not backwards:
            raise Uncovered(c.a.kind, "the layer inside says its direction")
        other = Config(layer.kind, layer.args, {**layer.kwargs, "go_backwards": True})
    if Arguments(layer).flag("go_backwards") or not Arguments(other).flag("go_backwards"):
        raise Uncovered(c.a.kind, "the layer forwards goes backwards")
    return [layer, other]


def cell_step(c: Call) -> list[str]:
    """A cell on its own: one step from given states."""
    states = c.arguments.get("states")
    items = states if isinstance(states, (list, tuple)) else [states]
    kind = c.a.kind.removesuffix("Cell")
    op, _, names = _GATES[kind]
    operands, extra = _weights(c, c.a, kind, c.weights, "")
    found = [c.tensor(item, "its state") for item in items]
    extra |= dict(zip(names, found, strict=False))
    x = c.write("x", "expand_dims", c.x[0], axes=[0])
    wanted = ["y", "", *(["c"] if len(names) > 1 else [])]
    attrs = activations(c.version, c.a, kind)
    _, *after = c.several(wanted, op, x, *operands, by_name=extra, **attrs)
    return [after[0], *after]


RECURRENT: dict[str, Callable[[Call], list[str]]] = {
    **dict.fromkeys(("RNN", *_GATES), recurrent),
    "Bidirectional": bidirectional,
    **{f"{name}Cell": cell_step for name in _GATES},
}
