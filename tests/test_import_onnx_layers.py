"""ONNX's recurrent layers and attention, imported: what onnxruntime gives, within the radius."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

import irlang
from tests.onnx_models import Array, model, node, value
from tests.test_import_onnx import RNG, refused, same_as_onnxruntime, text

STEPS, BATCH, FEATURES, UNITS = 4, 3, 2, 3
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def layer(kind: str, given: str, directions: int = 1, **attributes: Any) -> tuple[Any, Any]:
    """A model of one layer and what it is fed. given: the inputs after the weights."""
    width = GATES[kind] * UNITS
    shapes = {
        "w": (directions, width, FEATURES), "r": (directions, width, UNITS),
        "b": (directions, 2 * width), "h": (directions, BATCH, UNITS),
        "c": (directions, BATCH, UNITS), "p": (directions, 3 * UNITS),
    }  # fmt: skip
    names = given.split()
    parameters = {
        name: RNG.uniform(-0.5, 0.5, shape).astype(np.float32)
        for name, shape in shapes.items()
        if name in ("w", "r", *names)
    }
    if "n" in names:
        parameters["n"] = np.array([2, 4, 1], dtype=np.int32)
    outputs = ["y", "y_h", "y_c"] if kind == "LSTM" else ["y", "y_h"]
    made = model(
        [node(kind, f"x w r {given}", " ".join(outputs), hidden_size=UNITS, **attributes)],
        [value("x", STEPS, BATCH, FEATURES)],
        outputs,
        parameters,
        opset=14,
    )
    return made, {"x": RNG.uniform(-1, 1, (STEPS, BATCH, FEATURES)).astype(np.float32)}


# Activations that onnxruntime computes as well as any: its sigmoid and tanh are approximations.
TWO = {"direction": "bidirectional", "directions": 2}
LAYERS: list[tuple[str, str, dict[str, Any]]] = [
    ("RNN", "", {"activations": ["Relu"]}),
    ("RNN", "b n h", {**TWO, "activations": ["Relu", "LeakyRelu"], "activation_alpha": [0.25]}),
    ("RNN", "b _ h", {"direction": "reverse", "activations": ["Affine"], "clip": 0.25,
                      "activation_alpha": [0.5], "activation_beta": [0.125]}),
    ("GRU", "b n", {**TWO, "activations": ["HardSigmoid", "Softsign"] * 2,
                    "linear_before_reset": 1}),
    ("GRU", "b _ h", {"activations": ["HardSigmoid", "Relu"], "activation_alpha": [0.25],
                      "activation_beta": [0.375]}),
    ("LSTM", "b n h c p", {**TWO, "activations": ["HardSigmoid", "Softsign", "Softsign"] * 2}),
    ("LSTM", "_ _ _ _ p", {"activations": ["HardSigmoid", "Softsign", "Relu"], "input_forget": 1}),
    ("LSTM", "b", {"activations": ["HardSigmoid", "Relu", "HardSigmoid"], "clip": 0.5,
                   "activation_alpha": [0.25, 0.5], "activation_beta": [0.5, 0.25]}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "given", "attributes"), LAYERS)
def test_layers_are_those_of_onnxruntime(
    kind: str, given: str, attributes: dict[str, Any], tmp_path: Path
) -> None:
    made, feeds = layer(kind, given, **attributes)
    same_as_onnxruntime(made, feeds, tmp_path)


def test_batch_first_is_a_transposition(tmp_path: Path) -> None:
    """`layout` 1, which onnxruntime refuses: the same layer, its axes in another order."""
    first, feeds = layer("GRU", "b n h", directions=2, direction="bidirectional")
    second = type(first)()
    second.CopyFrom(first)
    second.graph.node[0].attribute.append(helper.make_attribute("layout", 1))
    del second.graph.input[:]
    second.graph.input.append(value("x", BATCH, STEPS, FEATURES))
    for tensor in second.graph.initializer:
        if tensor.name == "h":
            turned = np.frombuffer(tensor.raw_data, np.float32).reshape(2, BATCH, UNITS)
            tensor.raw_data = turned.transpose(1, 0, 2).tobytes()
            tensor.dims[:] = [BATCH, 2, UNITS]
    found = []
    for name, made in (("first", first), ("second", second)):
        path = tmp_path / f"{name}.onnx"
        path.write_bytes(made.SerializeToString())
        x = feeds["x"] if name == "first" else feeds["x"].transpose(1, 0, 2)
        found.append(list(irlang.import_model(path, {}).run({"x": x}).values()))
    (y, h), (y_turned, h_turned) = found
    np.testing.assert_array_equal(y_turned, y.transpose(2, 0, 1, 3))
    np.testing.assert_array_equal(h_turned, h.transpose(1, 0, 2))


def test_what_a_layer_lacks_is_said() -> None:
    assert "the activation Cube" in refused(layer("RNN", "", activations=["Cube"])[0])
    assert "2 activations, not 1" in refused(layer("RNN", "", activations=["Tanh", "Tanh"])[0])
    wrong = layer("GRU", "", direction="bidirectional")[0]
    assert "1 directions, and the direction is bidirectional" in refused(wrong)


def test_layers_keep_the_names_of_what_is_usual() -> None:
    shown = text(layer("LSTM", "b")[0])
    assert "activation" not in shown
    assert "lstm(x" in shown


# ---- attention


def attention(inputs: dict[str, Array], given: str, **attributes: Any) -> tuple[Any, Any]:
    kinds = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in inputs.items()}
    values = [value(name, *array.shape, kind=kinds[name]) for name, array in inputs.items()]
    made = model([node("Attention", given, "y", **attributes)], values, ["y"], opset=23)
    return made, inputs


def floats(*shape: int) -> Array:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


@pytest.mark.parametrize("causal", [0, 1])
def test_attention_is_that_of_onnxruntime(causal: int, tmp_path: Path) -> None:
    q, k, v = floats(2, 4, 3, 4), floats(2, 2, 3, 4), floats(2, 2, 3, 5)
    given = {"q": q, "k": k, "v": v}
    same_as_onnxruntime(*attention(given, "q k v", is_causal=causal), tmp_path)
    packed = {"q": floats(2, 3, 8), "k": floats(2, 3, 4), "v": floats(2, 3, 6)}
    heads = {"q_num_heads": 4, "kv_num_heads": 2}
    same_as_onnxruntime(*attention(packed, "q k v", is_causal=causal, **heads), tmp_path)
    mask = np.tril(np.ones((3, 3), dtype=np.bool_))
    same_as_onnxruntime(*attention({**given, "m": mask}, "q k v m", scale=0.25), tmp_path)
    assert "masked_rows" not in text(attention(given, "q k v", is_causal=1)[0])


def test_float_masks_are_added(tmp_path: Path) -> None:
    inputs = {"q": floats(1, 2, 3, 4), "k": floats(1, 2, 5, 4), "v": floats(1, 2, 5, 2)}
    inputs["m"] = floats(3, 5)
    same_as_onnxruntime(*attention(inputs, "q k v m", softcap=2.0), tmp_path)
