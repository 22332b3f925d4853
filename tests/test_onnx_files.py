"""Model files: which opset they have, and the shapes that are inferred of them."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irlang.catalog import builtin
from irlang.diff.calls import Case
from irlang.diff.runner import Session
from irlang.diff.verdict import judge
from irlang.equations import TensorInfo
from irlang.graph import Graph
from irlang.interp.balls import Ball
from irlang.interp.program import balls, precision
from irlang.interp.shape import check
from irlang.interp.values import inputs
from irlang.lower.lower import Lowered, lower, write_program
from irlang.lower.onnx_kernels import OPSET
from irlang.lower.pool import Program, Worker
from irlang.lower.target import describe
from irlang.parser import parse
from tests.targets import usable

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
SHAPES = ["onnx:shapes", "onnxruntime:shapes"]


def graph(body: str, dtype: str = "f32") -> Graph:
    text = f"nnir 1\nmodel m(x: {dtype}[2, 6]) -> y: {dtype}[2, 6] {{ {body} }}"
    (found,) = check(parse(text), builtin()).graphs
    return found


def model(found: Graph, target: str) -> Any:
    lowered = lower(found, target, builtin(), {})
    assert isinstance(lowered.code, bytes)
    return onnx.load_from_string(lowered.code)


def opset(found: Graph) -> int:
    version: int = model(found, "onnxruntime").opset_import[0].version
    return version


def test_calls_that_feed_one_another_have_the_opset_that_optimisers_know() -> None:
    assert opset(graph("y = relu(tanh(x))")) == 18
    assert opset(graph("y = tanh(x)")) == OPSET  # the newest kernel
    assert opset(graph("y = relu(tanh(x))", "f64")) == OPSET  # old kernels lack types
    assert opset(graph("y = relu(gelu(x))")) == OPSET  # an operator is not taken apart for it


@pytest.mark.parametrize("target", SHAPES)
def test_inferred_shapes_agree_and_a_script_says_the_same(target: str, tmp_path: Path) -> None:
    usable(target)
    found = graph("z = transpose(x; perm = [1, 0])\n y = reshape(relu(z); shape = [2, 6])")
    given = inputs(found, 1)
    with Session([target]) as session:
        (outcome,) = session.compare([Case(found, given, {}, builtin())])
    assert [v.verdict for v in outcome.verdicts[target]] == ["agrees"]
    script = write_program(lower(found, target, builtin(), {}), tmp_path / "shown", given)
    values = runpy.run_path(str(script))
    assert values["value"].shape == (2, 6)
    assert not values["value"].any()


@pytest.mark.filterwarnings("ignore:Specified provider 'CUDAExecutionProvider'")
def test_a_script_for_a_gpu_does_not_go_on_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runtime itself would compute on the processor and say nothing."""
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    found = graph("y = tanh(x)")
    lowered = lower(found, "onnxruntime:cuda", builtin(), {})
    script = write_program(lowered, tmp_path / "shown", inputs(found, 1))
    with pytest.raises(SystemExit, match="cannot load its CUDA provider"):
        runpy.run_path(str(script))


@pytest.mark.parametrize("target", SHAPES)
def test_a_wrong_inference_is_seen(target: str) -> None:
    usable(target)
    lowered = lower(graph("y = tanh(x)"), target, builtin(), {})
    result = _run(target, lowered)
    right, wrong = TensorInfo((2, 6), "f32"), TensorInfo((2, 7), "f32")
    verdict = {
        info: judge("y", target, info, Ball(np.zeros(info.shape)), result).verdict
        for info in (right, wrong)
    }
    assert verdict == {right: "agrees", wrong: "wrong"}


def test_what_a_file_declares_is_not_what_is_inferred() -> None:
    lowered = lower(graph("y = tanh(x)"), "onnx:shapes", builtin(), {})
    assert isinstance(lowered.code, bytes)
    model = onnx.load_from_string(lowered.code)
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 9
    told = Lowered("onnx:shapes", "onnx", model.SerializeToString(), {}, ("x",), ("y",))
    assert _run("onnx:shapes", told).shape == (2, 6)


def _run(target: str, lowered: Lowered) -> np.ndarray[Any, np.dtype[Any]]:
    worker = Worker(describe(target).worker)
    worker.start()
    try:
        x = np.ones((2, 6), np.float32)
        worker.send([Program(lowered.kind, lowered.code, {"x": x}, lowered.params)])
        (result,) = worker.collect()
    finally:
        worker.close()
    assert result.status == "ok", result.error
    return np.asarray(result.outputs["y"])


def nodes(text: str) -> list[tuple[str, dict[str, Any]]]:
    (found,) = check(parse(text), builtin()).graphs
    lowered = lower(found, "onnxruntime", builtin(), {})
    assert isinstance(lowered.code, bytes)
    return [
        (node.op_type, {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute})
        for node in onnx.load_from_string(lowered.code).graph.node
    ]


@pytest.mark.parametrize(
    ("amounts", "lower_"),
    [
        ("before = [1, 1], after = [1, 0]", True),
        ("before = [1, 0], after = [1, 1]", False),  # the odd one behind
        ("before = [1, 1], after = [1, 1]", False),  # one window more
        ("before = [1, 1], after = [0, 0]", False),
    ],
)
def test_padding_with_the_odd_element_before_is_automatic(amounts: str, lower_: bool) -> None:
    body = f"y = max_pool(x; window = [3, 2], stride = 1, pad = given, {amounts})"
    text = "nnir 1\nmodel m(x: f32[1, 1, 5, 6]) -> y: f32[1, 1, O, P] { " + body + " }"
    pads = [int(c) for c in amounts if c.isdigit()]
    sizes = 5 + pads[0] + pads[2] - 2, 6 + pads[1] + pads[3] - 1
    text = text.replace("O, P", f"{sizes[0]}, {sizes[1]}")
    assert check(parse(text), builtin()).valid
    ((op, attributes),) = nodes(text)
    assert op == "MaxPool"
    assert (attributes.get("auto_pad") == b"SAME_LOWER") is lower_
    assert ("pads" in attributes) is not lower_


@pytest.mark.parametrize(
    ("call", "sizes", "said"),
    [
        ("max_pool(x; window = 2, stride = 1, dilation = 2, pad = same)", (2, 4), True),
        ("avg_pool(x; window = 2, stride = 1, dilation = 2, pad = same)", (2, 4), True),
        ("conv_transpose(x, w; stride = 2, pad = same)", (3, 8), True),
        ("conv_transpose(x, w; stride = 2, dilation = 3, pad = same)", (3, 8), True),
        # ONNX does not say where what a window leaves out is added, ...
        ("conv_transpose(x, w; stride = 5, pad = same)", (3, 20), False),
        # ... and its runtime refuses convolutions that are dilated and automatically padded.
        ("conv(x, v; dilation = 2, pad = same)", (3, 4), False),
    ],
)
def test_padding_that_is_the_same_is_automatic(
    call: str, sizes: tuple[int, int], said: bool
) -> None:
    ports = "x: f32[1, 2, 4], w: f32[2, 3, 4], v: f32[3, 2, 4]"
    text = f"nnir 1\nmodel m({ports}) -> y: f32[1, {sizes[0]}, {sizes[1]}] {{ y = {call} }}"
    ((_, attributes),) = nodes(text)
    assert (attributes.get("auto_pad") == b"SAME_UPPER") is said
    assert ("pads" in attributes) is not said


def test_an_input_may_be_a_result_under_its_own_name() -> None:
    text = "nnir 1\nmodel m(x: f32[2]) -> x: f32[2], y: f32[2] { y = relu(x) }"
    assert [op for op, _ in nodes(text)] == ["Relu"]
    (found,) = check(parse(text), builtin()).graphs
    with Session(["onnxruntime"]) as session:
        (outcome,) = session.compare([Case(found, inputs(found, 1), {}, builtin())])
    assert [v.verdict for v in outcome.verdicts["onnxruntime"]] == ["agrees", "agrees"]


def inputs_of(text: str) -> list[int]:
    """How many inputs every node has."""
    (found,) = check(parse(text), builtin()).graphs
    lowered = lower(found, "onnxruntime", builtin(), {})
    assert isinstance(lowered.code, bytes)
    return [len(node.input) for node in onnx.load_from_string(lowered.code).graph.node]


@pytest.mark.parametrize(
    ("call", "given", "noop"),
    [
        ("reduce_max(x)", 1, False),  # all axes, as ONNX has it where none are said
        ("reduce_max(x; axes = [0, 1])", 2, False),
        ("reduce_max(x; axes = [])", 1, True),
    ],
)
def test_axes_of_a_reduction_are_said_as_the_program_says_them(
    call: str, given: int, noop: bool
) -> None:
    shape = "2, 6" if noop else ""
    text = f"nnir 1\nmodel m(x: f32[2, 6]) -> y: f32[{shape}] {{ y = {call} }}"
    ((op, attributes),) = nodes(text)
    assert op == "ReduceMax"
    assert inputs_of(text) == [given]
    assert attributes.get("noop_with_empty_axes", 0) == noop


def test_the_length_of_no_axes_is_composed_as_onnx_does_not_say_whether_it_is_taken() -> None:
    text = "nnir 1\nmodel m(x: f32[2, 6]) -> y: f32[2, 6] { y = reduce_l1(x; axes = []) }"
    assert "ReduceL1" not in [op for op, _ in nodes(text)]


@pytest.mark.parametrize(
    ("op", "own"), [("max_pool", True), ("avg_pool", True), ("lp_pool", False)]
)
def test_windows_that_would_begin_in_the_padding_after(op: str, own: bool) -> None:
    """They do not count since opset 22, but for LpPool, of which that is not said."""
    call = f"{op}(x; window = 1, stride = 2, ceil_mode = true)"
    text = f"nnir 1\nmodel m(x: f32[1, 1, 2]) -> y: f32[1, 1, 1] {{ y = {call} }}"
    assert any(name.endswith("Pool") for name, _ in nodes(text)) == own


@pytest.mark.parametrize(
    ("given", "results", "call", "op"),
    [
        ("x: u8[4]", "y: i64[]", "y = argmax(x)", "ArgMax"),
        ("x: i8[4]", "y: i8[2], at: i64[2]", "y, at = top_k(x; k = 2)", "TopK"),
        (
            "x: i8[1, 1, 5]",
            "y: i8[1, 1, 3], at: i64[1, 1, 3]",
            "y, at = max_pool_with_argmax(x; window = 2, whole = true, ceil_mode = true)",
            "MaxPool",
        ),
        ("x: u8[1, 1, 2, 2]", "y: u8[1, 1, 3, 4]", "y = resize(x; size = [3, 4])", "Resize"),
        ("x: i32[1, 1, 2, 2]", "y: i32[1, 1, 4, 4]", "y = upsample(x)", "Resize"),
        (
            "x: i8[4], ids: i64[4] in [0, 3]",
            "y: i8[4]",
            "y = scatter_elements(x, ids, x; axis = 0, reduction = add)",
            "ScatterElements",
        ),
    ],
)
def test_integers_go_where_there_are_kernels_for_them(
    given: str, results: str, call: str, op: str
) -> None:
    text = f"nnir 1\nmodel m({given}) -> {results} {{ {call} }}"
    assert [name for name, _ in nodes(text)] == [op]
    (found,) = check(parse(text), builtin()).graphs
    with Session(["onnxruntime"]) as session:
        (outcome,) = session.compare([Case(found, inputs(found, 1), {}, builtin())])
    assert {v.verdict for v in outcome.verdicts["onnxruntime"]} == {"agrees"}


def test_a_pool_behind_another_call_has_the_opset_that_optimisers_know() -> None:
    """AveragePool has dilations since opset 19 alone: they are said where the program says them."""
    shapes = "x: f32[1, 1, 4, 4]) -> y: f32[1, 1, 3, 3]"
    texts = [
        f"nnir 1\nmodel m({shapes} {{ y = avg_pool(relu(x); window = 2, stride = 1{more}) }}"
        for more in ("", ", dilation = 1")
    ]
    plain, said = (check(parse(text), builtin()).graphs[0] for text in texts)
    assert (opset(plain), opset(said)) == (18, OPSET)
    (_, (_, attributes)) = nodes(texts[0])
    assert "dilations" not in attributes
    (_, (_, attributes)) = nodes(texts[1])
    assert attributes["dilations"] == [1, 1]


@pytest.mark.parametrize(
    ("given", "results", "call", "op", "attribute"),
    [
        (
            "x: f32[1, 1, 3, 4], g: f32[1, 2, 2, 2] in [-1.2, 1.2]",
            "y: f32[1, 1, 2, 2]",
            "grid_sample(x, g; mode = cubic)",
            "GridSample",
            ("mode", b"bicubic"),
        ),
        ("x: f32[2, 5, 1]", "y: f32[2, 5, 2]", "dft(x; axis = -2)", "DFT", ("axis", -2)),
    ],
)
def test_what_an_old_opset_says_otherwise_is_an_operator_of_its_own_there(
    given: str, results: str, call: str, op: str, attribute: tuple[str, Any]
) -> None:
    text = f"nnir 1\nmodel m({given}) -> {results} {{ z = {call}\n y = relu(z) }}"
    ((first, attributes), _) = nodes(text)
    assert first == op
    assert attributes[attribute[0]] == attribute[1]
    (found,) = check(parse(text), builtin()).graphs
    assert opset(found) == 18
    with Session(["onnxruntime"]) as session:
        (outcome,) = session.compare([Case(found, inputs(found, 1), {}, builtin())])
    assert [v.verdict for v in outcome.verdicts["onnxruntime"]] == ["agrees"]


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap"])
def test_what_a_padding_of_less_and_more_puts_there_is_open(mode: str) -> None:
    text = f"""nnir 1
    model m(x: f32[6]) -> y: f32[7] {{ y = pad(x; before = [-2], after = [3], mode = {mode}) }}"""
    (found,) = check(parse(text), builtin()).graphs
    known = balls(found, inputs(found, 1), builtin(), precision(found))["y"]
    assert list(np.isfinite(known.bound)) == [True] * 4 + [False] * 3


@pytest.mark.parametrize("call", ["softplus(x)", "softmax(x)", "relu(tanh(x))"])
def test_halves_are_handed_over_where_the_runtime_converts_them(call: str) -> None:
    """ONNX Runtime puts conversions around a kernel of f32 itself, which is under test, too."""
    found = graph(f"y = {call}", "f16")
    operators = [node.op_type for node in model(found, "onnxruntime").graph.node]
    assert "Cast" not in operators
    composed = [node.op_type for node in model(found, "onnx-reference").graph.node]
    assert composed.count("Cast") >= 2
    with Session(["onnxruntime"]) as session:
        (outcome,) = session.compare([Case(found, inputs(found, 1), {}, builtin())])
    assert {v.verdict for v in outcome.verdicts["onnxruntime"]} <= {"agrees", "rounding"}
