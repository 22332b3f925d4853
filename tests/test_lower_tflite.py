"""Models of TensorFlow Lite: what goes in and what comes out."""

from __future__ import annotations

import numpy as np
import pytest

from irlang.lower.pool import Worker
from irlang.lower.target import describe
from tests.targets import usable
from tests.test_lower_text import lowered

_MODELS = (
    # An input that nothing reads, a result that is an input, and one that stands there twice.
    """model m(x: f32[2, 3], i: i64[2] in [0, 1]) -> y: f32[2, 3], x: f32[2, 3], z: f32[2, 3] {
  y = abs(x)
  z = abs(x)
}""",
    # Results of several types, in another order than their computation.
    """model m(x: f32[2, 3], i: i64[2] in [0, 1]) -> z: f32[2], n: i64[2], y: f32[2, 3] {
  y = negate(x)
  z = gather(reduce_max(y; axes = [1]), i)
  n = gather(i, i)
}""",
    # Nothing goes in.
    "model m() -> y: f32[2, 2] { y = eye(; rows = 2) }",
)


@pytest.mark.parametrize("target", ["tflite", "tf-2.12:tflite", "tf-2.4:tflite"])
@pytest.mark.parametrize("model", _MODELS)
def test_every_result_is_there_under_its_name(model: str, target: str) -> None:
    usable(target)
    _, program, wanted = lowered(f"nnir 1\n{model}\n", target)
    with Worker(describe(target).worker) as worker:
        (result,) = worker.submit([program])
    assert result.status == "ok", result.error
    assert list(result.outputs) == list(wanted)
    for name, ball in wanted.items():
        np.testing.assert_array_equal(result.outputs[name], ball.value)


def test_the_converter_does_not_go_by_way_of_a_disk() -> None:
    """A third of the time is spent so; TensorFlow saves a module where it is given one."""
    usable("tflite")
    found, _, _ = lowered("nnir 1\nmodel m(x: f32[2]) -> y: f32[2] { y = abs(x) }\n", "tflite")
    assert "from_concrete_functions([traced])" in str(found.code)
