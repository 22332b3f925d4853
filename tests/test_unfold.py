"""A defect in what a target composes is charged to the operator of the target's that has it."""

from __future__ import annotations

import numpy as np
import pytest

from irlang.api import loads
from irlang.diff.calls import Case
from irlang.diff.finding import find, find_gradient
from irlang.diff.report_issue import issue
from irlang.diff.runner import Session
from irlang.diff.seen import Seen
from irlang.diff.unfold import (
    called,
    is_composed,
    unfolded,
    unfolded_gradient,
    unfolded_with_loss,
)
from irlang.diff.weighing import bare, weighed
from irlang.interp.gradient import gradients
from irlang.interp.program import run
from tests.targets import usable

LOWEST = np.iinfo(np.int64).min


def _case(text: str, **inputs: object) -> Case:
    model = loads(text)
    given = {
        n: np.asarray(a, model.graph.inputs[n].info.dtype.replace("i", "int").replace("f", "float"))
        for n, a in inputs.items()
    }
    return Case(model.graph, given, {}, model.catalog)


SEGMENTS = """
model m(x: i64[4], ids: i64[4]) -> y: i64[2] { y = segment_reduce(x, ids; segments = 2) }
"""
SCORES = "model m(x: f32[2, 5]) -> y: f32[2, 5] { y = sparsemax(x) }"


@pytest.mark.parametrize("target", ["onnxruntime", "torch"])
@pytest.mark.parametrize(
    ("text", "inputs"),
    [
        (SEGMENTS, {"x": [1, 2, 3, 4], "ids": [0, 0, 1, 1]}),
        (SCORES, {"x": [[0.1, 0.2, 0.7, -1, 0], [3, 1, 2, 0, 0]]}),
    ],
)
def test_the_parts_of_a_call_give_what_it_gives(
    text: str, inputs: dict[str, object], target: str
) -> None:
    case = _case(text, **inputs)
    parts = unfolded(case, target)
    assert parts is not None
    assert len(parts.graph.nodes) > 1
    whole, again = (run(c.graph, c.values, c.catalog) for c in (case, parts))
    np.testing.assert_allclose(
        [whole[v] for v in case.graph.outputs.values()],
        [again[v] for v in parts.graph.outputs.values()],
        rtol=1e-6,  # the parts are rounded one by one
    )


def test_what_a_target_has_is_not_composed() -> None:
    case = _case("model m(x: f32[3]) -> y: f32[3] { y = relu(x) }", x=[1, 2, 3])
    assert not is_composed(case, "onnxruntime")
    assert unfolded(case, "onnxruntime") is None


def test_a_sum_of_whole_numbers_is_blamed_and_not_who_uses_it() -> None:
    """ONNX Runtime adds 64-bit whole numbers in another type (docs/findings.md)."""
    case = _case(SEGMENTS, x=[LOWEST, LOWEST, LOWEST + 7, 0], ids=[0, 0, 0, 1])
    case.edge = True
    with Session(["onnxruntime"]) as session:
        outcome = session.compare([case])[0]
        found = find(session, case, 1, "onnxruntime", outcome)
    assert found.operator == "reduce_sum"
    assert found.within is not None
    assert found.within.operator == "segment_reduce"
    assert not is_composed(found.reduced, "onnxruntime")
    assert "It was met in `segment_reduce`" in issue(found, "", "")
    assert "`Where` and `ReduceSum` for ONNX Runtime" in issue(found.within, "", "")
    seen = Seen()
    seen.note(found)
    assert seen.explains(case.graph, "onnxruntime", found.verdict.verdict) is False  # the second
    assert seen.explains(case.graph, "onnxruntime", found.verdict.verdict)


@pytest.mark.parametrize("operator", ["softplus", "log_sigmoid"])
def test_a_gradient_is_charged_to_what_computes_it(operator: str) -> None:
    """ONNX Runtime's Sigmoid gives 0 where it is 1e-13 (docs/findings.md); gradients that are
    written with it are wrong by it, and are no findings of their own.
    """
    text = f"model m(x: f32[2]) -> loss: f32[] {{ loss = reduce_sum({operator}(x)) }}"
    case = _case(text, x=[-30.0 if operator == "softplus" else 30.0, 0.5])
    case.graph.loss = case.graph.outputs["loss"]
    with Session(["onnxruntime", "torch"]) as session:
        found = find_gradient(session, case, 1, "onnxruntime")
    assert found is not None
    assert found.operator == "sigmoid"
    assert found.verdict.stage != "backward"
    assert found.within is not None
    assert found.within.operator == operator
    assert f"It was met in the gradient of `{operator}`" in issue(found, "", "")
    assert unfolded_gradient(case, "torch") is None  # which differentiates by itself


PADDED = """
model m(x: f32[1, 2, 3]) -> y: f32[3, 4, 3] { y = pad(x; before = [1, 1, 0], after = [1, 1, 0]) }
"""
PRODUCT = "model m(a: f16[2, 1], b: f16[1, 1, 1]) -> y: f16[1, 2, 1] { y = matmul(a, b) }"


def _weighed(text: str, *also: str) -> Case:
    """With a sum of the result as the loss, and of other values; all numbers are of no one else."""
    model = loads(text)
    graph, catalog = weighed(model.graph, model.catalog, ["y", *also])
    rng = np.random.default_rng(3)
    kinds = {"f32": np.float32, "f16": np.float16}
    given = {
        name: rng.normal(size=port.info.shape).astype(kinds[port.info.dtype])
        for name, port in graph.inputs.items()
    }
    return Case(graph, given, {}, catalog)


@pytest.mark.parametrize("text", [PADDED, PRODUCT])
def test_the_parts_have_the_gradient_of_the_call(text: str) -> None:
    case = _weighed(text)
    parts = unfolded_with_loss(case, "torch")
    assert parts is not None
    whole, again = (gradients(c.graph, c.values, c.catalog) for c in (case, parts))
    own = set(bare(case.graph).inputs)
    assert own == set(bare(parts.graph).inputs)
    for name in own:
        np.testing.assert_allclose(whole[name], again[name], rtol=1e-12)
    assert unfolded_with_loss(case, "onnxruntime") is None  # whose gradients are written out


def test_a_loss_that_adds_up_an_input_has_no_parts() -> None:
    """When a program was made smaller, an input had come in the place of what is weighed."""
    assert unfolded_with_loss(_weighed(PADDED, "x"), "torch") is None


def test_a_gradient_is_charged_to_the_operator_that_is_called() -> None:
    """MXNet 1.6 sums products where it has no `matmul`, and forgets an axis of size 1 in the
    gradient of that (docs/findings.md).
    """
    usable("mxnet-1.6")
    case = _weighed(PRODUCT)
    with Session(["mxnet-1.6"]) as session:
        found = find_gradient(session, case, 1, "mxnet-1.6")
    assert found is not None
    assert found.operator == "einsum"
    assert found.within is not None
    assert found.within.operator == "matmul"
    assert called(found.reduced, "mxnet-1.6") == {"einsum"}
    assert "It was met in the gradient of `matmul`" in issue(found, "", "")
