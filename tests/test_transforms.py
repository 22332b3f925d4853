"""Two samples at once, and gradients in forward mode: what a framework makes of a program that it
transforms is held to the same definitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from irlang.catalog import builtin
from irlang.diff import runner
from irlang.diff.calls import Case
from irlang.diff.runner import Session
from irlang.diff.verdict import FINDINGS
from irlang.interp.shape import check
from irlang.interp.values import initial_values, inputs
from irlang.lower.lower import Lowered, lower
from irlang.lower.target import describe
from irlang.parser import parse

_MODEL = """nnir 1
model m(x: f32[3, 4] in [-1, 1], k: i64[3] in [0, 3]) -> y: f32[3, 5], top: f32[3, 2] {
  param w: f32[4, 5] in [-1, 1]
  param v: f32[5, 2] in [-1, 1]
  h = dense(x, w)
  s = softmax(h; axis = 1)
  y = cumsum(multiply(s, tanh(h)); axis = 0)
  p, at = top_k(dense(relu(h), v); k = 2, axis = 1)
  top = add(p, expand_dims(gather(reduce_sum(h; axes = [1]), k; axis = 0); axes = [1]))
  loss = reduce_sum(multiply(y, y); axes = [0, 1])
}
"""
_BATCHES = ["torch:vmap", "tf:vmap", "jax:vmap"]
_COLUMNS = ["torch:forward", "jax:forward"]


def _installed(target: str) -> None:
    known = describe(target)
    if not known.installed:
        pytest.skip(known.reason)


def _case(text: str, values: Mapping[str, Any] | None = None) -> Case:
    graph = check(parse(text, "m"), builtin()).graphs[0]
    return Case(graph, inputs(graph, 0, values), initial_values(graph, 0), builtin())


def _summed(given: str, call: str, of: str = "y") -> str:
    """A model of one call whose loss is the sum of its result, or of what is made of that."""
    _, info = given.split(" in ")[0].split(": ")
    axes = list(range(info.count(",") + 1))
    return (
        f"nnir 1\nmodel m({given}) -> y: {info} {{\n"
        f"  y = {call}\n  loss = reduce_sum({of}; axes = {axes})\n}}\n"
    )


def _verdicts(case: Case, target: str) -> dict[str, str]:
    with Session([target]) as session:
        (outcome,) = session.compare([case], grad=case.graph.loss is not None)
    assert outcome.results[target].status == "ok", outcome.results[target].error
    return {v.name: v.verdict for v in outcome.verdicts[target]}


@pytest.mark.parametrize("target", [*_BATCHES, *_COLUMNS])
def test_values_and_gradients_are_those_of_the_program(target: str) -> None:
    _installed(target)
    found = _verdicts(_case(_MODEL), target)
    assert {"y", "top", "d_x", "d_w"} <= {*found}
    assert {*found.values()} <= {"agrees", "rounding"}, found


@pytest.mark.parametrize("target", _BATCHES)
def test_the_other_sample_is_another(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is mixed up between both would show: taken for each other, they do."""
    _installed(target)

    def taken(*args: Any, **options: Any) -> Lowered:
        made = lower(*args, **options)
        assert isinstance(made.code, str)
        assert "[value[1] for value in found]" in made.code
        return replace(made, code=made.code.replace("[value[1] for", "[value[0] for"))

    monkeypatch.setattr(runner, "lower", taken)
    case = _case(_MODEL.replace("  loss = reduce_sum(multiply(y, y); axes = [0, 1])\n", ""))
    assert {*_verdicts(case, target).values()} == {"wrong"}


@pytest.mark.parametrize("target", _BATCHES)
def test_a_program_without_inputs_is_batched_by_its_parameters(target: str) -> None:
    _installed(target)
    text = "nnir 1\nmodel m() -> y: f32[3] {\n  param w: f32[3] in [-1, 1]\n  y = tanh(w)\n}\n"
    assert _verdicts(_case(text), target) == {"y": "agrees"}
    text = "nnir 1\nmodel m() -> y: i64[3] {\n  y = arange(; start = 1, stop = 4)\n}\n"
    assert _verdicts(_case(text), target) == {"y": "agrees"}


def test_a_sample_that_is_refused_is_not_the_programs_fault() -> None:
    """The numbers of a matrix in other places are none of a matrix that has a Cholesky factor."""
    _installed("torch:vmap")
    text = "nnir 1\nmodel m(a: f32[2, 2] in [-9, 9]) -> y: f32[2, 2] {\n  y = cholesky(a)\n}\n"
    case = _case(text, {"a": np.asarray([[4, 1], [1, 9]], np.float32)})
    assert _verdicts(case, "torch:vmap") == {"y": "agrees"}


@pytest.mark.parametrize("target", _COLUMNS)
def test_an_infinite_slope_says_nothing_of_others(target: str) -> None:
    """0 times infinity is NaN in forward mode, for every element beside."""
    _installed(target)
    text = _summed("x: f32[3] in [0, 4]", "sqrt(x)")
    case = _case(text, {"x": np.asarray([0, 1, 4], np.float32)})
    assert not {*_verdicts(case, target).values()} & FINDINGS


@pytest.mark.parametrize("target", _COLUMNS)
def test_gradients_have_the_type_of_what_they_are_by(target: str) -> None:
    """A column of a loss in f64 is in f64."""
    _installed(target)
    text = _summed("x: f32[3] in [0, 4]", "tanh(x)", "cast(y; to = f64)")
    assert _verdicts(_case(text), target)["d_x"] in ("agrees", "rounding")


def test_a_gradient_that_is_shared_by_two_triangles_is_not_asked_of_forward_mode() -> None:
    _installed("torch:forward")
    text = _summed("a: f32[2, 2] in [-9, 9]", "cholesky(a)")
    case = _case(text, {"a": np.asarray([[4, 1], [1, 9]], np.float32)})
    for target in ("torch", "torch:forward"):
        assert _verdicts(case, target)["d_a"] in ("agrees", "rounding")


def test_forward_mode_is_not_asked_for_a_normalisation_by_another_mean() -> None:
    """It computes the mean and the variance of x anew, where it differentiates."""
    _installed("torch:forward")
    text = """nnir 1
    model m(g: f32[1, 1], x: f32[1, 1], s: f32[1], mean: f32[1], var: f32[1]) -> y: f32[1, 1] {
      y, d, e = batch_norm_gradient(g, x, s, mean, var; train = true)
    }"""
    one, none = np.ones(1, np.float32), np.zeros(1, np.float32)
    given = {"g": one[None], "x": none[None], "s": one, "mean": one, "var": none}
    for target in ("torch", "torch:forward"):
        assert _verdicts(_case(text, given), target)["y"] == "agrees"


def test_a_gradient_that_forward_mode_alone_loses_is_found() -> None:
    """PyTorch 2.13.0 takes the derivative of logcumsumexp by the largest of all its numbers, beside
    which those before it are lost.
    """
    _installed("torch:forward")
    text = _summed("x: f32[3] in [-400, 400]", "logcumsumexp(x; axis = 0)")
    case = _case(text, {"x": np.asarray([0, 1, 300], np.float32)})
    assert _verdicts(case, "torch:forward")["d_x"] == "wrong"
    assert _verdicts(case, "torch")["d_x"] == "agrees"


def test_what_reverse_mode_alone_refuses_is_not_told_of_forward_mode() -> None:
    """`torch.vander` has a rule for forward mode, and none that works backwards."""
    _installed("torch:forward")
    case = _case(
        "nnir 1\nmodel m(x: f32[2]) -> y: f32[2, 2] "
        "{ y = vander(x; columns = 2) loss = reduce_sum(y; axes = [0, 1]) }",
        {"x": np.array([2, 3], np.float32)},
    )
    assert _verdicts(case, "torch:forward")["d_x"] == "agrees"
    with Session(["torch"]) as session:
        (outcome,) = session.compare([case], grad=True)
    assert outcome.results["torch"].status == "refused"


def test_zeros_that_pytorch_does_not_store_are_gradients_as_others() -> None:
    """The sign of a determinant has slopes of 0, which forward mode does not write out."""
    _installed("torch:forward")
    case = _case(
        "nnir 1\nmodel m(x: f32[1, 1]) -> y: f32[] "
        "{ y, h = log_determinant(x) loss = reduce_sum(y; axes = []) }",
        {"x": np.array([[2]], np.float32)},
    )
    assert _verdicts(case, "torch:forward")["d_x"] == "agrees"


@pytest.mark.parametrize("target", ["torch", "torch:forward"])
def test_a_scale_that_is_differentiated_is_quantised_by(target: str) -> None:
    """PyTorch takes it for a number only where nothing is differentiated by it."""
    _installed(target)
    case = _case(
        "nnir 1\nmodel m(x: f32[2], s: f32[]) -> q: u8[2], y: f32[2] "
        "{ q = quantize_linear(x, s; to = u8) y = multiply(x, s) "
        "loss = reduce_sum(y; axes = [0]) }",
        {"x": np.array([2, 3], np.float32), "s": np.array(0.5, np.float32)},
    )
    assert set(_verdicts(case, target).values()) <= {"agrees", "rounding"}
