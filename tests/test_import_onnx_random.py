"""ONNX models with operators of chance: imported, and held to what ONNX Runtime draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irlang.catalog import builtin
from irlang.diff.calls import Case, judge_following
from irlang.importers.onnx_model import translate
from irlang.interp.shape import check
from irlang.parser import parse

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

FLOAT, DOUBLE, BOOL = 1, 11, 9
SHAPE = [16, 30]


def _model(op: str, inputs: list[str], attributes: dict[str, Any], outputs: list[str]) -> Any:
    from onnx import helper, numpy_helper

    held = [
        numpy_helper.from_array(np.array(0.3, np.float32), "ratio"),
        numpy_helper.from_array(np.array(True), "training"),
    ]
    types = {"y": attributes.get("dtype", FLOAT), "mask": BOOL}
    graph = helper.make_graph(
        [helper.make_node(op, inputs, outputs, **attributes)],
        "chance",
        [helper.make_tensor_value_info("x", FLOAT, SHAPE)],
        [helper.make_tensor_value_info(name, types[name], SHAPE) for name in outputs],
        [item for item in held if item.name in inputs],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


MODELS: dict[str, tuple[str, list[str], dict[str, Any], list[str]]] = {
    "Dropout": ("Dropout", ["x", "ratio", "training"], {}, ["y"]),
    "Dropout with its mask": ("Dropout", ["x", "ratio", "training"], {"seed": 3}, ["y", "mask"]),
    "Dropout of a half": ("Dropout", ["x", "", "training"], {}, ["y"]),
    "RandomNormal": ("RandomNormal", [], {"shape": SHAPE, "mean": 2.0, "scale": 0.25}, ["y"]),
    "RandomNormalLike": ("RandomNormalLike", ["x"], {"scale": 3.0, "dtype": DOUBLE}, ["y"]),
    "RandomUniform": ("RandomUniform", [], {"shape": SHAPE, "low": -2.0}, ["y"]),
    "RandomUniformLike": ("RandomUniformLike", ["x"], {"high": 4.0, "seed": 1.0}, ["y"]),
    "Bernoulli": ("Bernoulli", ["x"], {"dtype": DOUBLE}, ["y"]),
}


@pytest.mark.parametrize("kind", [6, 7])
def test_classes_that_the_runtime_draws_are_ensured(kind: int) -> None:
    """ONNX Runtime has it as of opset 7. kind: i32, and i64."""
    import onnxruntime
    from onnx import helper

    graph = helper.make_graph(
        [helper.make_node("Multinomial", ["x"], ["y"], sample_size=50, dtype=kind)],
        "chance",
        [helper.make_tensor_value_info("x", FLOAT, [2, 3])],
        [helper.make_tensor_value_info("y", kind, [2, 50])],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    checked = check(parse(translate(made, None, "weights.safetensors").text), builtin())
    assert checked.valid, checked.diagnostics
    (read,) = checked.graphs
    x = np.array([[0, 1, -5], [2, 0, 0]], np.float32)
    session = onnxruntime.InferenceSession(
        made.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (drawn,) = session.run(["y"], {"x": x})
    assert read.nodes[0].op.name == "random_categorical"
    case = Case(read, dict.fromkeys(read.inputs, x), {}, checked.catalog)
    names = [read.nodes[0].outputs[0], read.outputs["y"]]
    given = {name: drawn.astype(np.int64 if name == names[0] else drawn.dtype) for name in names}
    found = judge_following(case, read, given, "onnxruntime")
    # what is made of what is drawn hangs on it
    assert {found[name].verdict for name in names} == {"agrees" if kind == 7 else "unstable"}


@pytest.mark.parametrize("name", MODELS)
def test_what_the_runtime_draws_is_ensured(name: str) -> None:
    import onnxruntime

    made = _model(*MODELS[name])
    text = translate(made, None, "weights.safetensors").text
    checked = check(parse(text), builtin())
    assert checked.valid, (text, checked.diagnostics)
    (graph,) = checked.graphs
    x = np.random.default_rng(0).random(SHAPE, dtype=np.float32)
    session = onnxruntime.InferenceSession(
        made.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [item.name for item in session.get_outputs()]
    given = {"x": x}
    results = dict(zip(names, session.run(names, given), strict=True))
    case = Case(graph, {n: given[n] for n in graph.inputs}, {}, checked.catalog)
    found = judge_following(case, graph, results, "onnxruntime")
    assert {graph.outputs[n] for n in names} <= found.keys()
    assert {v.verdict for v in found.values() if v.name in graph.outputs.values()} == {"agrees"}
