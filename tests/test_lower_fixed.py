"""Programs whose parameters are constants of what is compiled: a converted model has its weights in
it, and optimisers look at constants alone.
"""

from __future__ import annotations

import numpy as np
import pytest

from irlang.catalog import builtin
from irlang.diff.calls import Case
from irlang.diff.runner import Session
from irlang.diff.suspects import wrong_calls
from irlang.interp.program import balls, precision
from irlang.interp.shape import check
from irlang.interp.values import initial_values, inputs
from irlang.lower.lower import Lowered, lower
from irlang.lower.manner import Manner
from irlang.lower.pool import Program, Worker
from irlang.lower.target import describe
from irlang.parser import parse
from tests.targets import usable

_MODEL = """nnir 1
model m(x: f32[2, 3]) -> y: f32[2, 2], z: bf16[2] {
  param w: f32[3, 2] in [-1, 1]
  param b: f32[2] in [-1, 1]
  param c: bf16[2] = 0.5
  y = dense(x, w, b)
  z = negate(c)
}
"""
_TARGETS = ("tf:graph", "tf:xla", "jax:jit", "tflite")


def _lowered(text: str, target: str, turn: int, grad: bool = False) -> Lowered:
    graph = check(parse(text, "model.nnir"), builtin()).graphs[0]
    params = initial_values(graph, 1)
    return lower(graph, target, builtin(), params, grad=grad, manner=Manner(turn=turn))


@pytest.mark.parametrize("target", _TARGETS)
def test_parameters_are_constants_in_one_manner_and_arguments_in_the_other(target: str) -> None:
    text = _MODEL.replace("z: bf16[2]", "z: f32[2]").replace("c: bf16", "c: f32")
    fixed, given = (_lowered(text, target, turn) for turn in (1, 0))
    assert "def fixed(*values)" in str(fixed.code)
    assert "def fixed(*values)" not in str(given.code)
    assert fixed.turned
    assert not given.turned


@pytest.mark.parametrize("target", _TARGETS)
def test_a_number_along_axes_is_written_where_it_stands(target: str) -> None:
    """Passes that look for a number lose the axes that it has, where it is a constant."""
    text = """nnir 1
    model m(x: f32[3]) -> y: f32[1, 3] {
      param e: f32[1, 1] = 2
      param w: f32[3] in [0, 1]
      y = add(power(x, e), w)
    }
    """
    written, given = (_lowered(text, target, turn) for turn in (2, 0))
    assert set(written.params) == {"w"}
    assert written.turned
    assert set(given.params) == {"e", "w"}
    assert not given.turned


def test_what_a_number_along_axes_makes_wrong_is_seen_where_it_is_written() -> None:
    """Grappler makes a square of a power, which has fewer axes than the exponent."""
    usable("tf:graph")
    text = "nnir 1\nmodel m(x: f32[3]) -> y: f32[1, 3] { param e: f32[1, 1] = 2\n"
    text += " y = negate(power(x, e))\n}\n"
    given = inputs(check(parse(text, "model.nnir"), builtin()).graphs[0], 1)
    lowered = [_lowered(text, "tf:graph", turn) for turn in (2, 0)]
    programs = [Program(one.kind, one.code, given, one.params) for one in lowered]
    with Worker(describe("tf:graph").worker) as worker:
        written, as_argument = worker.submit(programs)
    assert written.outputs["y"].shape == (3,)
    assert as_argument.outputs["y"].shape == (1, 3)


@pytest.mark.parametrize("target", _TARGETS)
def test_what_has_no_parameters_has_none_as_constants(target: str) -> None:
    text = "nnir 1\nmodel m(x: f32[2]) -> y: f32[2] { y = abs(x) }\n"
    assert "def fixed" not in str(_lowered(text, target, 1).code)


def test_what_is_put_together_of_constants_is_within_the_radius() -> None:
    """Scales and products go into the weights of what follows, or of what stands in front."""
    usable("tflite")
    text = """nnir 1
    model m(x: f32[2, 3, 4] in [-1, 1]) -> y: f32[2, 5, 4] {
      param a: f32[3, 1] in [-2, 2]
      param w: f32[5, 3, 1] in [-1, 1]
      param b: f32[5] in [-1, 1]
      param c: f32[5, 1] in [-2, 2]
      param d: f32[5, 1] in [-2, 2]
      y = add(multiply(conv(multiply(x, a), w, b), c), d)
    }
    """
    (graph,) = check(parse(text, "model.nnir"), builtin()).graphs
    cases = [
        Case(
            graph,
            inputs(graph, seed),
            initial_values(graph, seed),
            builtin(),
            manner=Manner(turn=1),
        )
        for seed in range(20)
    ]
    with Session(["tflite", "tf:graph"]) as session:
        outcomes = session.compare(cases)
    found = [v for one in outcomes for told in one.verdicts.values() for v in told]
    assert {one.verdict for one in found} <= {"agrees", "rounding"}


def test_gradients_are_by_parameters() -> None:
    """Of a constant there is none."""
    text = "nnir 1\nmodel m(x: f32[2]) -> y: f32[2] { param w: f32[2] = 1\n y = multiply(x, w)\n"
    lowered = _lowered(f"{text} loss = reduce_sum(y) }}\n", "tf:graph", 1, grad=True)
    assert "def fixed" not in str(lowered.code)
    assert not lowered.turned


@pytest.mark.parametrize("target", ["tf:graph", "jax:jit"])
def test_they_are_computed_as_arguments_are(target: str) -> None:
    usable(target)
    graph = check(parse(_MODEL, "model.nnir"), builtin()).graphs[0]
    params, given = initial_values(graph, 1), inputs(graph, 1)
    lowered = _lowered(_MODEL, target, 1)
    with Worker(describe(target).worker) as worker:
        (result,) = worker.submit([Program(lowered.kind, lowered.code, given, lowered.params)])
    assert result.status == "ok", result.error
    wanted = balls(graph, {**params, **given}, builtin(), precision(graph))
    assert wanted is not None
    for name, value in graph.outputs.items():
        got = np.asarray(result.outputs[name], np.float64)
        assert np.all(np.abs(got - wanted[value].value) <= wanted[value].bound + 1e-6)


def test_what_a_constant_makes_wrong_is_shown_with_it() -> None:
    """TensorFlow Lite's converter takes away a maximum with a constant that is infinite."""
    usable("tflite")
    text = "nnir 1\nmodel m(x: f32[2]) -> y: f32[2] { param w: f32[2] = inf\n y = maximum(x, w) }\n"
    graph = check(parse(text, "model.nnir"), builtin()).graphs[0]
    given = {"x": np.array([1, 2], np.float32)}
    manner = Manner(turn=1)
    case = Case(graph, given, initial_values(graph, 1), builtin(), edge=True, manner=manner)
    with Session(["tflite"]) as session:
        (outcome,) = session.compare([case])
        ((shown, _, operator, amiss),) = wrong_calls(session, case, "tflite", outcome)
    assert (operator, amiss.verdict) == ("maximum", "nonfinite")
    assert list(shown.graph.params) == ["w"]
    assert list(shown.graph.inputs) == ["x"]


def test_a_kernel_whose_gradient_passes_is_not_differentiated() -> None:
    """What is beyond the range has none in `tf.quantization.quantize_and_dequantize_v2` alone."""
    text = """nnir 1
    model m(x: f32[2], a: f32[], b: f32[]) -> y: f32[2] {
      y = quantize_and_dequantize(x, a, b)
      loss = reduce_sum(y)
    }
    """
    words = [
        [str(_lowered(text, "tf:graph", turn, grad).code) for turn in range(12)]
        for grad in (False, True)
    ]
    assert any("raw_ops.QuantizeAndDequantizeV" in code for code in words[0])
    assert not any("raw_ops.QuantizeAndDequantizeV" in code for code in words[1])
    assert all("quantize_and_dequantize_v2" in code for code in words[1])
