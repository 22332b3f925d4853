"""What a program is named after, and written as."""

from __future__ import annotations

import pytest

from irlang.catalog import builtin
from irlang.lower.direct import named, signs
from irlang.lower.lower import lower
from tests.lower_calls import case


@pytest.mark.parametrize(
    ("types", "call", "target", "name", "written"),
    [
        ("x: f32[2]", "alibi_bias(x; queries = 1, keys = 2)", "torch", ["*"], ["*"]),
        ("x: i64[], z: i64[]", "modulo(x, z)", "mxnet-1.6", ["%"], ["%"]),
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
