"""What a framework's documentation asks of a call beyond its definition: no verdict without it."""

from __future__ import annotations

import numpy as np
import pytest

from irlang.catalog import builtin
from irlang.diff.calls import Case
from irlang.diff.programs import with_balls
from irlang.diff.promised import ruled_out
from irlang.diff.runner import Session
from irlang.diff.weighing import differentiated
from tests.lower_calls import case
from tests.targets import usable

_LOSS = "categorical_cross_entropy(x, t)"
_TYPES = "x: f32[2, 3], t: f32[2, 3]"
_EVEN = np.full((2, 3), 1 / 3, np.float32)


def _said(types: str, call: str, target: str, **values: np.ndarray) -> str:
    made = case(types, call)
    fed = {name: np.asarray(array, np.float32) for name, array in values.items()}
    whole = with_balls(Case(made.graph, fed, {}, builtin()))
    assert whole.balls is not None
    return ruled_out(made.graph, whole, whole.balls, target)


@pytest.mark.parametrize("target", ["tf", "tf-2.4", "keras:tensorflow"])
def test_labels_that_are_no_distribution_leave_tensorflow_free(target: str) -> None:
    usable(target)
    x = np.zeros((2, 3))
    half = _EVEN * np.array([[1.0], [0.5]], np.float32)
    assert "label" in _said(_TYPES, _LOSS, target, x=x, t=half)
    assert not _said(_TYPES, _LOSS, target, x=x, t=_EVEN)
    assert not _said(_TYPES, _LOSS, "torch", x=x, t=half)


def test_what_is_ruled_out_in_between_is_seen_too() -> None:
    call = "categorical_cross_entropy(x, {})"
    x = np.zeros((2, 3))
    assert _said(_TYPES, call.format("add(t, t)"), "tf", x=x, t=_EVEN)
    assert not _said(_TYPES, call.format("softmax(add(t, t))"), "tf", x=x, t=_EVEN)


def test_a_condition_on_attributes_alone_is_looked_at() -> None:
    x = np.ones(3)
    assert _said("x: f32[3]", "leaky_relu(x; alpha = -1)", "keras:tensorflow", x=x)
    assert not _said("x: f32[3]", "leaky_relu(x; alpha = 1)", "keras:tensorflow", x=x)


@pytest.mark.parametrize(("share", "verdict"), [(1.0, "agrees"), (0.5, "unsupported")])
def test_there_is_no_verdict_on_what_is_documented_to_be_incorrect(
    share: float, verdict: str
) -> None:
    pytest.importorskip("tensorflow", reason="tensorflow is not installed")
    made = case(_TYPES, _LOSS)
    graph, catalog = differentiated(made.graph, builtin())
    values = {name: np.ones((), np.float32) for name in graph.inputs}
    values.update(x=np.zeros((2, 3), np.float32), t=_EVEN * np.float32(share))
    with Session(("tf",)) as session:
        (outcome,) = session.compare([Case(graph, values, {}, catalog)], grad=True)
    assert {v.verdict for v in outcome.verdicts["tf"]} == {verdict}


@pytest.mark.parametrize(("target", "free"), [("tf", True), ("tf:xla", True), ("torch", False)])
def test_tensorflow_promises_nothing_of_two_zeros_and_of_far_shifts(
    target: str, free: bool
) -> None:
    """PyTorch documents the first to be NaN."""
    zeros = {"a": np.zeros(2), "x": np.array([0, 1])}
    assert bool(_said("a: f32[2], x: f32[2]", "gammainc(a, x)", target, **zeros)) == free
    below = {"a": -np.ones(2), "x": np.zeros(2)}
    assert bool(_said("a: f32[2], x: f32[2]", "gammainc(a, x)", target, **below)) == free
    assert not _said("a: f32[2], x: f32[2]", "gammainc(a, x)", target, a=np.ones(2), x=np.zeros(2))
    made = case("a: i32[1], b: i32[1]", "bit_shift(a, b)")
    for by in (-1, 31, 32):
        fed = {"a": np.ones(1, np.int32), "b": np.full(1, by, np.int32)}
        whole = with_balls(Case(made.graph, fed, {}, builtin()))
        assert whole.balls is not None
        said = ruled_out(made.graph, whole, whole.balls, target)
        assert bool(said) == (free and by != 31)


@pytest.mark.parametrize(("second", "free"), [(2, True), (1, False)])
def test_pytorch_promises_nothing_of_repeated_places(second: int, free: bool) -> None:
    made = case("x: f32[1, 1, 1, 2], i: i64[1, 1, 1, 2]", "max_unpool(x, i; size = [2, 2])")
    fed = {"x": np.ones((1, 1, 1, 2), np.float32), "i": np.array([[[[2, second]]]])}
    whole = with_balls(Case(made.graph, fed, {}, builtin()))
    assert whole.balls is not None
    assert bool(ruled_out(made.graph, whole, whole.balls, "torch")) == free
    assert not ruled_out(made.graph, whole, whole.balls, "onnxruntime")


@pytest.mark.parametrize(("size", "mode", "free"), [(0, "reflect", True), (0, "symmetric", False)])
def test_tensorflow_mirrors_nothing_of_an_axis_without_elements(
    size: int, mode: str, free: bool
) -> None:
    x = np.zeros((2, size))
    said = _said(f"x: f32[2, {size}]", f"pad(x; before = 0, mode = {mode})", "tf", x=x)
    assert bool(said) == free


@pytest.mark.parametrize(("axis", "free"), [(0, False), (1, True)])
def test_keras_as_numpy_has_no_largest_of_no_elements(axis: int, free: bool) -> None:
    x = np.zeros((2, 0))
    call = f"reduce_max(x; axes = {axis})"
    assert bool(_said("x: f32[2, 0]", call, "keras:tensorflow", x=x)) == free
    assert not _said("x: f32[2, 0]", call, "tf", x=x)
