"""Masks, cells, convolutions and ONNX's options of recurrent layers against other libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irlang.lower.lower import lower
from irlang.lower.pool import Program, Target, Worker
from tests.lower_calls import case, disagreement
from tests.ops.compare import agrees
from tests.ops.oracle import Array, call
from tests.ops.test_recurrent import Sizes, check, rows, stacked, values

torch = pytest.importorskip("torch")
tf = pytest.importorskip("tensorflow")


# ---- lengths and masks


@settings(max_examples=20)
@given(st.data())
def test_lengths_are_those_of_packed_sequences(data: st.DataObject) -> None:
    """Both directions: the second begins at the last step of every sequence."""
    sizes = Sizes(data)
    lengths = sizes.rng.integers(1, sizes.steps + 1, sizes.batch)
    lengths[0] = sizes.steps  # PyTorch pads to the longest
    inputs = sizes.inputs(3)
    inputs["rb"] = values(sizes.rng, 3, sizes.units)
    mask = np.arange(sizes.steps)[:, None] < lengths
    agrees("sequence_mask", {"lengths": lengths}, mask, size=sizes.steps)
    agrees("sequence_mask", {"lengths": lengths}, mask.T, size=sizes.steps, batch_first=True)
    layer = torch.nn.GRU(sizes.features, sizes.units, bidirectional=True, dtype=torch.float64)
    order = (1, 0, 2)
    weights = {
        "weight_ih_l0": rows(inputs["w"], order), "weight_hh_l0": rows(inputs["r"], order),
        "bias_ih_l0": rows(inputs["b"], order), "bias_hh_l0": rows(inputs["rb"], order),
    }  # fmt: skip
    layer.load_state_dict({**weights, **{f"{name}_reverse": w for name, w in weights.items()}})
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        torch.tensor(inputs["x"]), torch.tensor(lengths), enforce_sorted=False
    )
    start = torch.tensor(np.stack([inputs["h0"]] * 2))
    with torch.no_grad():
        y, last = layer(packed, start)
    y, _ = torch.nn.utils.rnn.pad_packed_sequence(y)
    for way, reverse in enumerate((False, True)):
        found = call("gru", {**inputs, "mask": mask}, reverse=reverse, zero_output_for_mask=True)
        part = slice(way * sizes.units, (way + 1) * sizes.units)
        check(found, y.numpy()[..., part].copy(), last[way].numpy())


@settings(max_examples=20)
@given(st.data())
def test_keras_zeroes_what_is_masked(data: st.DataObject) -> None:
    sizes = Sizes(data)
    inputs = sizes.inputs(4)
    mask = sizes.rng.random((sizes.steps, sizes.batch)) < data.draw(st.sampled_from((0.0, 0.5)))
    layer = tf.keras.layers.RNN(
        tf.keras.layers.LSTMCell(sizes.units, dtype="float64"), return_sequences=True,
        zero_output_for_mask=True, dtype="float64",
    )  # fmt: skip
    x = inputs["x"].transpose(1, 0, 2)
    layer.build(x.shape)
    order = (0, 2, 3, 1)
    bias = inputs["b"][list(order)].reshape(-1)
    layer.set_weights([stacked(inputs["w"], order), stacked(inputs["r"], order), bias])
    inputs["c0"] = values(sizes.rng, sizes.batch, sizes.units)
    start = [tf.constant(inputs[name]) for name in ("h0", "c0")]
    y = layer(tf.constant(x), initial_state=start, mask=tf.constant(mask.T)).numpy()
    found = call("lstm", {**inputs, "mask": mask}, zero_output_for_mask=True)
    found["y"].check(y.transpose(1, 0, 2))


# ---- cells


@settings(max_examples=20)
@given(st.data())
def test_cells_are_those_of_torch(data: st.DataObject) -> None:
    sizes = Sizes(data)
    for name, gates, order in (
        ("simple_rnn", None, ()), ("gru", 3, (1, 0, 2)), ("lstm", 4, (0, 2, 3, 1)),
    ):  # fmt: skip
        inputs = sizes.inputs(gates)
        inputs["x"] = inputs["x"][0]
        inputs["h"] = inputs.pop("h0")
        kind = {"simple_rnn": "RNNCell", "gru": "GRUCell", "lstm": "LSTMCell"}[name]
        cell = getattr(torch.nn, kind)(sizes.features, sizes.units, dtype=torch.float64)

        def turned(array: Array, order: tuple[int, ...] = order) -> Any:
            return rows(array, order) if order else torch.tensor(array)

        other = np.zeros_like(inputs["b"])
        if name == "gru":
            other = inputs["rb"] = values(sizes.rng, 3, sizes.units)
        cell.load_state_dict(
            {
                "weight_ih": turned(inputs["w"]),
                "weight_hh": turned(inputs["r"]),
                "bias_ih": turned(inputs["b"]),
                "bias_hh": turned(other),
            }
        )
        state: Any = torch.tensor(inputs["h"])
        if name == "lstm":
            inputs["c"] = values(sizes.rng, sizes.batch, sizes.units)
            state = (state, torch.tensor(inputs["c"]))
        with torch.no_grad():
            found = cell(torch.tensor(inputs["x"]), state)
        results = found if isinstance(found, tuple) else (found,)
        check(call(f"{name}_cell", inputs), *(value.numpy() for value in results))


@settings(max_examples=15)
@given(st.data())
def test_gru_cell_is_that_of_keras(data: st.DataObject) -> None:
    sizes, after = Sizes(data), data.draw(st.booleans())
    inputs = sizes.inputs(3)
    x, h = inputs.pop("x")[0], inputs.pop("h0")
    cell = tf.keras.layers.GRUCell(
        sizes.units, activation="relu", recurrent_activation="softsign", reset_after=after,
        dtype="float64",
    )  # fmt: skip
    cell.build(x.shape)
    bias = inputs["b"].reshape(-1)
    if after:
        inputs["rb"] = values(sizes.rng, 3, sizes.units)
        bias = np.stack([bias, inputs["rb"].reshape(-1)])
    order = (0, 1, 2)
    cell.set_weights([stacked(inputs["w"], order), stacked(inputs["r"], order), bias])
    y, _ = cell(tf.constant(x), [tf.constant(h)])
    chosen = {"activation": "relu", "recurrent_activation": "softsign", "reset_after": after}
    call("gru_cell", {**inputs, "x": x, "h": h}, **chosen)["y"].check(y.numpy())


# ---- convolutions


@settings(max_examples=25)
@given(st.data())
def test_conv_lstm_is_that_of_keras(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    rank = data.draw(st.integers(1, 3))
    steps, batch, c, f = (data.draw(st.integers(1, 2)) for _ in range(4))
    space = [data.draw(st.integers(2, 4)) for _ in range(rank)]
    kernel = [data.draw(st.integers(1, 2)) for _ in range(rank)]
    stride, dilation = data.draw(st.sampled_from(((1, 1), (2, 1), (1, 2))))
    pad = data.draw(st.sampled_from(("valid", "same")))
    if dilation == 2 and pad == "valid":
        kernel = [min(k, (n + 1) // 2) for k, n in zip(kernel, space, strict=True)]
    if dilation == 2 and rank == 3:
        dilation = 1  # TensorFlow has no kernel
    backwards, masked = data.draw(st.booleans()), data.draw(st.booleans())
    kind = getattr(tf.keras.layers, f"ConvLSTM{rank}D")
    layer = kind(
        f, tuple(kernel), strides=stride, dilation_rate=dilation, padding=pad,
        return_sequences=True, return_state=True, go_backwards=backwards,
        recurrent_activation="sigmoid", data_format="channels_last", dtype="float64",
    )  # fmt: skip
    x = values(rng, batch, steps, *space, c)
    w, r, b = values(rng, *kernel, c, 4, f), values(rng, *kernel, f, 4, f), values(rng, 4, f)
    layer.build(x.shape)
    layer.set_weights([a.reshape(*a.shape[:-2], 4 * f) for a in (w, r)] + [b.reshape(-1)])
    mask = rng.random((batch, steps)) < 0.6 if masked else None
    found = layer(tf.constant(x), mask=None if mask is None else tf.constant(mask))
    order = [0, 3, 1, 2]  # of i, f, c, o
    turn = (rank + 1, rank + 2, rank, *range(rank))
    inputs = {
        "x": np.moveaxis(x, -1, 2), "b": b[order],
        "w": w.transpose(turn)[order], "r": r.transpose(turn)[order],
    }  # fmt: skip
    if mask is not None:
        inputs["mask"] = mask
    result = call(
        "conv_lstm", inputs, stride=stride, dilation=dilation, pad=pad, reverse=backwards,
        batch_first=True,
    )  # fmt: skip
    y = np.moveaxis(found[0].numpy(), -1, 2)
    states = [np.moveaxis(state.numpy(), -1, 1) for state in found[1:]]
    check(result, y[:, ::-1] if backwards else y, *states)


def test_conv_lstm_goes_on_from_given_states() -> None:
    """Two steps at once are two steps one after the other."""
    rng = np.random.default_rng(5)
    x, w = values(rng, 2, 1, 2, 4, 3), values(rng, 4, 3, 2, 2, 2)
    r = values(rng, 4, 3, 3, 3, 2)
    whole = call("conv_lstm", {"x": x, "w": w, "r": r})
    first = call("conv_lstm", {"x": x[:1], "w": w, "r": r})
    start = {"h0": first["hn"].value, "c0": first["cn"].value}
    second = call("conv_lstm", {"x": x[1:], "w": w, "r": r, **start})
    second["hn"].check(whole["hn"].value)
    second["cn"].check(whole["cn"].value)


# ---- ONNX's options, with activations that ONNX Runtime computes as well as any

_OPTIONS = """
simple_rnn: clip = 0.5, activation = relu
simple_rnn: activation = affine, alpha = 0.5, beta = 0.25
simple_rnn: activation = leaky_relu, alpha = 0.3, reverse = true
simple_rnn: activation = thresholded_relu, alpha = 0.4
gru: recurrent_activation = hard_sigmoid, activation = softsign, clip = 0.75
gru: recurrent_activation = hard_sigmoid, recurrent_alpha = 0.3, activation = affine, beta = 0.1
gru: recurrent_activation = hard_sigmoid, recurrent_beta = 0.4, reset_after = false, clip = 0.6
lstm: recurrent_activation = hard_sigmoid, activation = relu, clip = 0.6
lstm: recurrent_activation = hard_sigmoid, activation = softsign, hidden_activation = elu
lstm: recurrent_activation = softsign, hidden_activation = hard_sigmoid, hidden_alpha = 0.25
lstm: p = p, recurrent_activation = hard_sigmoid, activation = softsign, input_forget = true
lstm: p = p, recurrent_activation = hard_sigmoid, activation = leaky_relu, reverse = true
"""
_GATES = {"simple_rnn": "", "gru": "3, ", "lstm": "4, "}


def test_onnx_options_are_those_of_onnx_runtime() -> None:
    pytest.importorskip("onnxruntime")
    programs, cases = [], []
    for line in _OPTIONS.strip().splitlines():
        name, _, attrs = line.partition(": ")
        weights = (
            f"{w}: f32[{_GATES[name]}5{last}]"
            for w, last in (("w", ", 3"), ("r", ", 5"), ("b", ""))
        )
        declared = ", ".join(("x: f32[3, 2, 3]", *weights))
        declared += ", p: f32[3, 5]" if "p = p" in attrs else ""
        one = case(declared, f"{name}(x, w, r, b; {attrs})")
        lowered = lower(one.graph, "onnxruntime", one.catalog, one.params)
        assert lowered.native, attrs
        cases.append(one)
        programs.append(Program(lowered.kind, lowered.code, one.inputs, lowered.params))
    with Worker(Target("onnxruntime")) as worker:
        results = worker.submit(programs)
    for one, result in zip(cases, results, strict=True):
        assert result.status == "ok", (one.call, result.error)
        for name, ball in one.oracle().items():
            found = disagreement(result.outputs[name], ball, one.graph.values[name].dtype)
            assert found is None, (one.call, name, found)
