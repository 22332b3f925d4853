"""What no program can say is told as unsupported: numbers of more than 64 bits, and calls that
their definitions refuse, whose results have no shape to be held to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import irlang
from irlang.diff.calls import Case
from irlang.diff.runner import Session
from irlang.gen.judge import judge
from irlang.lower.expressions import _held
from irlang.lower.lower import lower
from irlang.lower.value import Unsupported

CALLS = (
    ("slice(x; begin = [0], end = [{}], axes = [2], step = [1])", 4),
    ("slice(x; begin = [-{}], end = [4], axes = [2], step = [1])", 4),
    ("max_pool(x; window = 1, stride = {})", 1),
    ("avg_pool(x; window = 1, stride = {})", 1),
)


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    with Session(["onnxruntime"]) as session:
        yield session


@pytest.mark.parametrize(("call", "length"), CALLS)
@pytest.mark.parametrize("number", [2**63 + 1, 2**64 + 3])
def test_numbers_beyond_64_bits_are_in_no_model_file(
    session: Session, call: str, length: int, number: int
) -> None:
    model = irlang.loads(
        f"nnir 1\nmodel m(x: f32[1, 1, 4]) -> y: f32[1, 1, {length}] "
        f"{{\n  y = {call.format(number)}\n}}"
    )
    made = lower(model.graph, "onnxruntime", model.catalog, {})
    if made.unsupported:
        assert "64 bits" in made.unsupported[0]
        return
    x = np.arange(4, dtype=np.float32).reshape(1, 1, 4)
    (outcome,) = session.compare([Case(model.graph, {"x": x}, {}, model.catalog)])
    assert [v.verdict for v in outcome.verdicts["onnxruntime"]] == ["agrees"]


@pytest.mark.parametrize("target", ["torch", "tf", "onnxruntime"])
def test_a_call_that_is_refused_has_no_shape_to_be_held_to(target: str) -> None:
    """A result of two elements is declared, and none is what is left of -2**63 of them."""
    model = irlang.loads(
        "nnir 1\nmodel m(x: i32[1, 1, 1, 4]) -> y: i32[1, 1, 1, 2] {\n  y, at = top_k(x; k = 2)\n}"
    )
    (node,) = model.graph.nodes
    types = {formal: model.graph.values[name] for formal, name in node.feeds().items()}
    attrs = {**node.attrs, "k": -(2**63)}
    instance = judge(node.op, types, attrs)
    assert instance is not None
    assert instance.faults
    broken = replace(instance, outputs=node.instance.outputs)
    graph = replace(model.graph, nodes=[replace(node, attrs=attrs, instance=broken)])
    made = lower(graph, target, model.catalog, {})
    assert all("-9223372036854775808" in reason for reason in made.unsupported)


@pytest.mark.parametrize("target", ["torch", "tf", "onnxruntime"])
@pytest.mark.parametrize(("low", "written"), [(-(2**63), False), (-(2**31), True)])
def test_what_grows_beyond_64_bits_by_what_is_fed_is_not_written(
    target: str, low: int, written: bool
) -> None:
    """`low - zero` is below all numbers of 64 bits where the zero point is above 0."""
    model = irlang.loads(
        "nnir 1\nmodel m(x: f32[], scale: f32[], zero: i64[]) -> y: f32[] "
        f"{{\n  y = fake_quantize(x, scale, zero; low = {low})\n}}"
    )
    made = lower(model.graph, target, model.catalog, {})
    assert (not made.unsupported) == written
    assert all("64 bits" in reason for reason in made.unsupported)


@pytest.mark.parametrize(("number", "written"), [("1e38", True), ("3e38", False)])
def test_a_number_that_is_finite_is_no_infinity_of_a_type(number: str, written: bool) -> None:
    """Of the gradient 2 * shrinkage * x is taken: PyTorch is not to be blamed for 6e38."""
    model = irlang.loads(
        f"""nnir 1
        model m(x: f32[2], g: f32[2]) -> y: f32[2] {{
          y, q, z = ftrl(x, g; shrinkage = {number})
        }}"""
    )
    for target in ("torch", "onnxruntime"):
        lowered = lower(model.graph, target, model.catalog, {})
        assert (lowered.unsupported == ()) == written
        assert written or lowered.unsupported[0].endswith("a number beyond f32")


@pytest.mark.parametrize("upper", ["true", "false"])
@pytest.mark.parametrize("number", [2**63 - 1, 2**63, 2**64, -(2**63) - 1])
def test_a_diagonal_beyond_64_bits_is_no_other(session: Session, number: int, upper: str) -> None:
    """Of 64 bits the first of these is -2**63, on the other side of all elements."""
    model = irlang.loads(
        f"""nnir 1
        model m(x: f32[1, 1]) -> y: f32[1, 1] {{
          y = trilu(x; k = {number}, upper = {upper})
        }}"""
    )
    made = lower(model.graph, "onnxruntime", model.catalog, {})
    assert bool(made.native) == (number == 2**63 - 1)
    fed = {"x": np.ones((1, 1), np.float32)}
    (outcome,) = session.compare([Case(model.graph, fed, {}, model.catalog)])
    assert [v.verdict for v in outcome.verdicts["onnxruntime"]] == ["agrees"]


def test_a_divisor_of_zero_counts_nothing() -> None:
    """A quotient of what is known when a program is written has none to be held to there."""
    far, none = np.array([2**62, 2**62]), np.array([0, 1])
    _held("//", [far, none])
    with pytest.raises(Unsupported, match="64 bits"):
        _held("//", [np.array([-(2**63)]), np.array([-1])])
