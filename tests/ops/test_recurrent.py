"""Recurrent layers against PyTorch and Keras, in float64."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.oracle import Array, Result, call

torch = pytest.importorskip("torch")
tf = pytest.importorskip("tensorflow")

KERAS_ACTIVATIONS = ("tanh", "sigmoid", "relu", "linear", "elu", "softplus", "softsign")


def values(rng: np.random.Generator, *shape: int) -> Array:
    return rng.uniform(-1, 1, shape)


class Sizes:
    """A layer's sizes and its random source, drawn."""

    def __init__(self, data: st.DataObject) -> None:
        self.rng = np.random.default_rng(data.draw(st.integers(0, 99)))
        self.steps, self.batch = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 2))
        self.features, self.units = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))

    def inputs(self, gates: int | None) -> dict[str, Array]:
        """x, w, r, b and h0, with an axis of gates in front of the weights if there is one."""
        lead = () if gates is None else (gates,)
        c, h = self.features, self.units
        return {
            "x": values(self.rng, self.steps, self.batch, c),
            "w": values(self.rng, *lead, h, c),
            "r": values(self.rng, *lead, h, h),
            "b": values(self.rng, *lead, h),
            "h0": values(self.rng, self.batch, h),
        }


def rows(weight: Array, order: tuple[int, ...]) -> Any:
    """The gates of a weight in another order, one below the other."""
    ordered = weight[list(order)]
    return torch.tensor(ordered.reshape(-1, *ordered.shape[2:]))


def in_torch(
    kind: Any, weights: dict[str, Any], x: Array, state: Any, reverse: bool, **attrs: Any
) -> tuple[Array, Any]:
    layer = kind(x.shape[-1], weights["weight_hh_l0"].shape[1], dtype=torch.float64, **attrs)
    layer.load_state_dict(weights)
    with torch.no_grad():
        y, last = layer(torch.tensor(x[::-1].copy() if reverse else x), state)
    out = y.numpy()
    return (out[::-1] if reverse else out), last


def in_keras(
    layer: Any, x: Array, weights: list[Array], state: list[Array], mask: Array | None
) -> list[Array]:
    """Sequence and states, time first, of a Keras layer that goes backwards or not."""
    layer.build((None, *x.transpose(1, 0, 2).shape[1:]))
    layer.set_weights(weights)
    mask_ = None if mask is None else tf.constant(mask.T)
    found = layer(tf.constant(x.transpose(1, 0, 2)), initial_state=state, mask=mask_)
    sequence = found[0].numpy().transpose(1, 0, 2)
    return [sequence[::-1] if layer.go_backwards else sequence, *(s.numpy() for s in found[1:])]


def stacked(weight: Array, order: tuple[int, ...]) -> Array:
    """A Keras kernel: [C, gates * H] from [gates, H, C]."""
    return np.concatenate([weight[q].T for q in order], axis=-1)


def check(result: dict[str, Result], *found: Any) -> None:
    for name, value in zip(result, found, strict=True):
        result[name].check(value)


@settings(max_examples=25)
@given(st.data())
def test_simple_rnn_is_that_of_torch(data: st.DataObject) -> None:
    sizes, reverse = Sizes(data), data.draw(st.booleans())
    inputs = sizes.inputs(None)
    activation = data.draw(st.sampled_from(("tanh", "relu")))
    weights = {
        "weight_ih_l0": torch.tensor(inputs["w"]), "weight_hh_l0": torch.tensor(inputs["r"]),
        "bias_ih_l0": torch.tensor(inputs["b"]), "bias_hh_l0": torch.zeros(sizes.units),
    }  # fmt: skip
    y, hn = in_torch(
        torch.nn.RNN, weights, inputs["x"], torch.tensor(inputs["h0"][None]), reverse,
        nonlinearity=activation,
    )  # fmt: skip
    check(call("simple_rnn", inputs, activation=activation, reverse=reverse), y, hn[0].numpy())


@settings(max_examples=25)
@given(st.data())
def test_gru_with_reset_after_is_that_of_torch(data: st.DataObject) -> None:
    sizes, reverse = Sizes(data), data.draw(st.booleans())
    inputs = sizes.inputs(3)
    inputs["rb"] = values(sizes.rng, 3, sizes.units)
    order = (1, 0, 2)
    weights = {
        "weight_ih_l0": rows(inputs["w"], order), "weight_hh_l0": rows(inputs["r"], order),
        "bias_ih_l0": rows(inputs["b"], order), "bias_hh_l0": rows(inputs["rb"], order),
    }  # fmt: skip
    y, hn = in_torch(torch.nn.GRU, weights, inputs["x"], torch.tensor(inputs["h0"][None]), reverse)
    check(call("gru", inputs, reset_after=True, reverse=reverse), y, hn[0].numpy())


@settings(max_examples=25)
@given(st.data())
def test_lstm_is_that_of_torch(data: st.DataObject) -> None:
    sizes, reverse = Sizes(data), data.draw(st.booleans())
    inputs = sizes.inputs(4)
    inputs["c0"] = values(sizes.rng, sizes.batch, sizes.units)
    order = (0, 2, 3, 1)
    weights = {
        "weight_ih_l0": rows(inputs["w"], order), "weight_hh_l0": rows(inputs["r"], order),
        "bias_ih_l0": rows(inputs["b"], order), "bias_hh_l0": torch.zeros(4 * sizes.units),
    }  # fmt: skip
    state = torch.tensor(inputs["h0"][None]), torch.tensor(inputs["c0"][None])
    y, (hn, cn) = in_torch(torch.nn.LSTM, weights, inputs["x"], state, reverse)
    check(call("lstm", inputs, reverse=reverse), y, hn[0].numpy(), cn[0].numpy())


def options(data: st.DataObject, sizes: Sizes) -> tuple[dict[str, Any], Array | None]:
    """Attributes by the names that Keras and the definitions share, and a mask or none."""
    chosen = {
        "activation": data.draw(st.sampled_from(KERAS_ACTIVATIONS)),
        "recurrent_activation": data.draw(st.sampled_from(KERAS_ACTIVATIONS)),
    }
    masked = data.draw(st.booleans())
    mask = sizes.rng.random((sizes.steps, sizes.batch)) < 0.5 if masked else None
    return chosen, mask


@settings(max_examples=25)
@given(st.data())
def test_simple_rnn_is_that_of_keras(data: st.DataObject) -> None:
    sizes, reverse = Sizes(data), data.draw(st.booleans())
    inputs = sizes.inputs(None)
    chosen, mask = options(data, sizes)
    del chosen["recurrent_activation"]
    layer = tf.keras.layers.SimpleRNN(
        sizes.units, return_sequences=True, return_state=True, go_backwards=reverse,
        dtype="float64", **chosen,
    )  # fmt: skip
    weights = [inputs["w"].T, inputs["r"].T, inputs["b"]]
    native = in_keras(layer, inputs["x"], weights, [inputs["h0"]], mask)
    given_ = inputs if mask is None else {**inputs, "mask": mask}
    check(call("simple_rnn", given_, reverse=reverse, **chosen), *native)


@settings(max_examples=40)
@given(st.data())
def test_gru_is_that_of_keras_with_either_reset(data: st.DataObject) -> None:
    sizes, reverse, after = Sizes(data), data.draw(st.booleans()), data.draw(st.booleans())
    inputs = sizes.inputs(3)
    chosen, mask = options(data, sizes)
    layer = tf.keras.layers.GRU(
        sizes.units, return_sequences=True, return_state=True, go_backwards=reverse,
        reset_after=after, dtype="float64", **chosen,
    )  # fmt: skip
    bias = inputs["b"].reshape(-1)
    if after:
        inputs["rb"] = values(sizes.rng, 3, sizes.units)
        bias = np.stack([bias, inputs["rb"].reshape(-1)])
    order = (0, 1, 2)
    weights = [stacked(inputs["w"], order), stacked(inputs["r"], order), bias]
    native = in_keras(layer, inputs["x"], weights, [inputs["h0"]], mask)
    given_ = inputs if mask is None else {**inputs, "mask": mask}
    check(call("gru", given_, reverse=reverse, reset_after=after, **chosen), *native)


@settings(max_examples=30)
@given(st.data())
def test_lstm_is_that_of_keras(data: st.DataObject) -> None:
    sizes, reverse = Sizes(data), data.draw(st.booleans())
    inputs = sizes.inputs(4)
    inputs["c0"] = values(sizes.rng, sizes.batch, sizes.units)
    chosen, mask = options(data, sizes)
    layer = tf.keras.layers.LSTM(
        sizes.units, return_sequences=True, return_state=True, go_backwards=reverse,
        dtype="float64", **chosen,
    )  # fmt: skip
    order = (0, 2, 3, 1)
    bias = inputs["b"][list(order)].reshape(-1)
    weights = [stacked(inputs["w"], order), stacked(inputs["r"], order), bias]
    native = in_keras(layer, inputs["x"], weights, [inputs["h0"], inputs["c0"]], mask)
    given_ = inputs if mask is None else {**inputs, "mask": mask}
    check(call("lstm", given_, reverse=reverse, **chosen), *native)


@pytest.mark.parametrize("name", ["simple_rnn", "gru", "lstm"])
def test_batch_first_is_a_transposition(name: str) -> None:
    rng = np.random.default_rng(3)
    lead = {"simple_rnn": (), "gru": (3,), "lstm": (4,)}[name]
    x, w, r = values(rng, 4, 2, 3), values(rng, *lead, 5, 3), values(rng, *lead, 5, 5)
    mask = rng.random((4, 2)) < 0.5
    first = call(name, {"x": x, "w": w, "r": r, "mask": mask}, reverse=True)
    turned = {"x": x.transpose(1, 0, 2), "w": w, "r": r, "mask": mask.T}
    second = call(name, turned, reverse=True, batch_first=True)
    np.testing.assert_array_equal(second["y"].value, first["y"].value.transpose(1, 0, 2))
    np.testing.assert_array_equal(second["hn"].value, first["hn"].value)


@pytest.mark.parametrize("name", ["simple_rnn", "gru", "lstm"])
def test_no_steps_leave_the_initial_state(name: str) -> None:
    lead = {"simple_rnn": (), "gru": (3,), "lstm": (4,)}[name]
    h0 = np.array([[0.25, -0.5]])
    w, r = np.ones((*lead, 2, 3)), np.ones((*lead, 2, 2))
    assert (
        call(name, {"x": np.ones((0, 1, 3)), "w": w, "r": r, "h0": h0})["hn"].value.tolist()
        == h0.tolist()
    )


def test_hard_sigmoid_gates_are_a_clipped_line() -> None:
    """Of slope 0.2, as ONNX's HardSigmoid: saturated here, so that the state is known."""
    x = np.array([[[4.0]], [[-4.0]]])
    w = np.ones((3, 1, 1))
    inputs = {"x": x, "w": w, "r": np.zeros((3, 1, 1)), "h0": np.array([[0.75]])}
    result = call("gru", inputs, recurrent_activation="hard_sigmoid", activation="linear")
    # update gate 1: the state stays; then 0: it becomes the candidate
    result["y"].check(np.array([[[0.75]], [[-4.0]]]))
    inputs["x"] = np.array([[[1.0]]])
    half = call("gru", inputs, recurrent_activation="hard_sigmoid", activation="linear")
    half["y"].check(np.array([[[0.7 * 0.75 + 0.3 * 1.0]]]))
