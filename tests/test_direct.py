"""What a program is named after, and written as."""

from __future__ import annotations

import pytest

from irlang.catalog import builtin
from irlang.lower.direct import named, numbers, reads, shortens, signs
from irlang.lower.lower import lower
from tests.lower_calls import case


@pytest.mark.parametrize(
    ("types", "call", "target", "name", "written"),
    [
        ("x: f32[2]", "alibi_bias(x; queries = 1, keys = 2)", "torch", ["*"], ["*"]),
        ("x: i64[], z: i64[]", "modulo(x, z)", "mxnet", ["%"], ["%"]),
        ("x: f32[2]", "tanh(x)", "torch", ["tanh"], []),
        ("x: f32[2], z: f32[2]", "add(x, z)", "onnxruntime", ["Add"], []),
    ],
)
def test_arithmetic_is_named_by_its_signs(
    types: str, call: str, target: str, name: list[str], written: list[str]
) -> None:
    if target == "onnxruntime":
        pytest.importorskip("onnx", reason="onnx is not installed")
    lowered = lower(case(types, call).graph, target, builtin(), {})
    assert named(lowered) == name
    assert signs(lowered) == written


@pytest.mark.parametrize(
    ("types", "call", "target", "shorter"),
    [
        ("x: f32[1, 1, 2, 2], b: f32[1, 4], z: i64[1]", "crop_and_resize(x, b, z; size = [2, 2])",
         "tf", True),
        ("x: f32[1, 1, 2, 2], b: f32[1, 4], z: i32[1]", "crop_and_resize(x, b, z; size = [2, 2])",
         "tf", False),
        ("x: f32[3, 2], z: i64[2]", "embedding(x, z)", "torch", False),
        ("x: f32[3, 2], z: i32[2]", "embedding(x, z)", "torch", False),
        ("x: i64[2]", "cast(x; to = i32)", "onnxruntime", True),
        ("x: i32[2]", "cast(x; to = i64)", "onnxruntime", False),
    ],
)  # fmt: skip
def test_integers_converted_to_fewer_bits_are_noticed(
    types: str, call: str, target: str, shorter: bool
) -> None:
    if target != "torch":
        pytest.importorskip("onnx" if target == "onnxruntime" else "tensorflow")
    assert shortens(lower(case(types, call).graph, target, builtin(), {})) == shorter


def test_the_size_of_a_negative_number_is_not_handed_over() -> None:
    text = "softmax(x; axis = -2)"
    lowered = lower(case("x: f32[2, 3]", text).graph, "torch", builtin(), {})
    assert "-2" in str(lowered.code)
    assert -2.0 in numbers(lowered)
    assert 2.0 not in numbers(lowered)


@pytest.mark.parametrize(("operand", "taken"), [("x", True), ("g", True), ("v", False)])
def test_what_no_operator_takes_is_noticed(operand: str, taken: bool) -> None:
    """A velocity without momentum is a result as it is."""
    pytest.importorskip("tensorflow")
    made = case("x: f32[3], g: f32[3], v: f32[3]", "sgd(x, g, v)")
    lowered = lower(made.graph, "tf", builtin(), {})
    assert reads(lowered, operand) == taken
    assert named(lowered) in (["SGD"], ["ResourceApplyGradientDescent"])
