"""ONNX's control flow as text: choices, loops and scans, against ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.numpy_helper import from_array

from irlang.api import loads
from irlang.interp.range import analyse
from tests.onnx_models import BOOL, FLOAT, INT64, Array, model, node, value
from tests.test_import_onnx import refused, same_as_onnxruntime, text

RNG = np.random.default_rng(11)
X = RNG.normal(size=(3, 4)).astype(np.float32)


def graph(nodes: list[Any], inputs: list[Any], outputs: list[Any], **numbers: Array) -> Any:
    """A graph inside a node."""
    return helper.make_graph(
        nodes,
        "inside",
        inputs,
        outputs,
        [from_array(array, name) for name, array in numbers.items()],
    )


def result(name: str, kind: int = FLOAT) -> Any:
    """A result of which only the name and the element type are said."""
    return helper.make_tensor_value_info(name, kind, None)


# ---- choices


def choice(yes: list[Any], no: list[Any]) -> Any:
    branches = {
        "then_branch": graph(yes, [], [result("r")]),
        "else_branch": graph(no, [], [result("r")]),
    }
    nodes = [node("If", "c", "chosen", **branches), node("Neg", "chosen", "y")]
    return model(nodes, [value("x", 3, 4), value("c", kind=BOOL)], ["y"])


@pytest.mark.parametrize("truth", [True, False])
def test_a_choice_that_is_not_known_is_one_of_two_values(truth: bool, tmp_path: Path) -> None:
    made = choice([node("Exp", "x", "r")], [node("Abs", "x", "a"), node("Sqrt", "a", "r")])
    same_as_onnxruntime(made, {"x": X, "c": np.array(truth)}, tmp_path)
    assert "where(c, " in text(made)


@pytest.mark.parametrize(
    ("test", "least"),
    [
        ("Greater", 0),
        ("Equal", 0),
        ("Not LessOrEqual", 0),
        ("Greater", 0.5),
        ("GreaterOrEqual", 0.5),
    ],
)
@pytest.mark.parametrize("count", [0, 3])
def test_a_branch_is_handed_what_its_condition_allows(
    test: str, least: float, count: int, tmp_path: Path
) -> None:
    """A mean of as many as there are is asked for only where there are some."""
    ways = [node("Div", "x f", "r")], [node("Abs", "x", "r")]
    names = ("else_branch", "then_branch") if test == "Equal" else ("then_branch", "else_branch")
    inside = (graph(way, [], [result("r")]) for way in ways)
    nodes = [
        node("Cast", "n", "f", to=TensorProto.FLOAT),
        node(test.split()[-1], "f zero", "t"),
        node("Not" if "Not" in test else "Identity", "t", "c"),
        node("If", "c", "y", **dict(zip(names, inside, strict=True))),
    ]
    numbers = {"zero": np.full((), least, np.float32)}
    made = model(nodes, [value("x", 3, 4), value("n", kind=INT64)], ["y"], numbers)
    same_as_onnxruntime(made, {"x": X, "n": np.array(count)}, tmp_path)
    found = loads(text(made))
    points = analyse(found.graph, found.catalog, ranges={"n": (0.0, 12.0)}).points
    assert [point.status for point in points if point.function == "/"] == ["safe"]


def test_branches_of_different_shapes_need_a_known_choice() -> None:
    made = choice([node("Exp", "x", "r")], [node("ReduceSum", "x", "r")])
    assert "its branches give f32[3, 4] and f32[1, 1]" in refused(made)
    assert "exp(x)" in text(made, constants={"c": np.array(True)})


# ---- loops


def loop(body: Any, outputs: str, trips: int | None = 3, condition: bool | None = True) -> Any:
    """A loop over a state `s`, which begins as `x`; `w` is there for all its steps."""
    numbers: dict[str, Array] = {"w": RNG.normal(size=(4, 4)).astype(np.float32) / 4}
    if trips is not None:
        numbers["trips"] = np.array(trips)
    if condition is not None:
        numbers["start"] = np.array(condition)
    inputs = f"{'trips' if trips is not None else '_'} {'start' if condition is not None else '_'}"
    nodes = [node("Loop", f"{inputs} x", outputs, body=body, name="loop")]
    return model(nodes, [value("x", 3, 4)], outputs.split(), numbers)


def step(*more: Any, on: Any | None = None) -> Any:
    """S = tanh(s @ w + number), which is collected, too."""
    nodes = [
        node("MatMul", "s w", "m"),
        node("Cast", "number", "n", to=TensorProto.FLOAT),
        node("Add", "m n", "a"),
        node("Tanh", "a", "s2"),
        node("ReduceMax", "s2", "top", keepdims=0),
        on or node("Identity", "goes", "on"),
        *more,
    ]
    inputs = [value("number", kind=INT64), value("goes", kind=BOOL), result("s")]
    return graph(nodes, inputs, [result("on", BOOL), result("s2"), result("top")], two=np.array(1))


def test_a_loop_is_written_once_for_every_step(tmp_path: Path) -> None:
    made = loop(step(), "last tops")
    same_as_onnxruntime(made, {"x": X}, tmp_path)
    assert text(made).count("matmul(") == 3


def test_a_loop_ends_with_its_condition(tmp_path: Path) -> None:
    made = loop(step(on=node("Less", "number two", "on")), "last tops", trips=9)
    same_as_onnxruntime(made, {"x": X}, tmp_path)
    assert text(made).count("matmul(") == 2
    endless = loop(step(on=node("Less", "number two", "on")), "last tops", trips=None)
    assert text(endless).count("matmul(") == 2


def test_a_choice_in_a_loop_by_the_number_of_the_step(tmp_path: Path) -> None:
    branches = {
        "then_branch": graph([node("Sin", "s2", "r")], [], [result("r")]),
        "else_branch": graph([node("Mul", "s2 x", "r")], [], [result("r")]),
    }
    body = step(node("Equal", "number two", "second"), node("If", "second", "s3", **branches))
    del body.output[1]
    body.output.insert(1, result("s3"))
    same_as_onnxruntime(loop(body, "last tops"), {"x": X}, tmp_path)


def test_loops_that_are_refused() -> None:
    assert "more than 256 steps" in refused(loop(step(), "last tops", trips=1000))
    assert "more than 256 steps" in refused(loop(step(), "last tops", trips=None))
    assert "no steps" in refused(loop(step(), "last tops", trips=0))
    assert "identity(x)" in text(loop(step(), "last", trips=0)), "the state is as it was"
    hangs = step(node("Less", "top wide", "on"), on=node("Constant", "", "wide", value_float=0.5))
    assert "whether it goes on hangs on values" in refused(loop(hangs, "last tops"))
    many = step(*(node("Neg", "s", f"n{number}") for number in range(1000)))
    assert "more than 200000 nodes" in refused(loop(many, "last tops", trips=250))
    inside = node("Loop", "trips start s", "t", body=step(), name="inner")
    del inside.attribute[0].g.output[2]
    deep = step(inside)
    made = loop(deep, "last tops", trips=200)
    assert "4096 of all loops" in refused(made)


# ---- scans


def test_a_scan_has_a_step_for_every_element(tmp_path: Path) -> None:
    body = graph(
        [node("Add", "s e", "s2"), node("Mul", "s2 f", "p"), node("Neg", "p", "q")],
        [value("s", 4), value("e", 4), value("f", 4)],
        [value("s2", 4), value("p", 4), value("q", 4)],
    )
    scan = node(
        "Scan", "start x z", "last all back", body=body, num_scan_inputs=2, name="scan",
        scan_input_axes=[0, 1], scan_input_directions=[0, 1], scan_output_axes=[0, 1],
        scan_output_directions=[1, 0],
    )  # fmt: skip
    made = model(
        [scan],
        [value("x", 3, 4), value("z", 4, 3)],
        ["last", "all", "back"],
        {"start": np.ones(4, np.float32)},
    )
    same_as_onnxruntime(made, {"x": X, "z": RNG.normal(size=(4, 3)).astype(np.float32)}, tmp_path)


def test_a_scan_over_an_open_size_is_refused() -> None:
    body = graph([node("Add", "s e", "s2")], [value("s", 4), value("e", 4)], [value("s2", 4)])
    scan = node("Scan", "start x", "last", body=body, num_scan_inputs=1)
    made = model([scan], [value("x", "n", 4)], ["last"], {"start": np.ones(4, np.float32)})
    assert "how many steps" in refused(made)
    assert text(made, bind={"n": 2}).count("add(") == 2
