"""Gradients of which balls say little are judged by the derivative of the gradient's program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irlang.adjoint_graph import gradient_graph, prepare
from irlang.arithmetic import STANDARD
from irlang.diagnostics import InvalidInput
from irlang.diff.programs import trainable
from irlang.diff.refine_slopes import SlopeRefiner
from irlang.diff.verdict import FINDINGS, Verdict, judge
from irlang.gen.build import generate
from irlang.graph import Graph
from irlang.interp.first_order import FirstOrder
from irlang.interp.gradient import gradient_balls, gradients
from irlang.interp.program import balls, precision
from irlang.interp.running import accumulates, goes_on
from irlang.interp.units import units
from irlang.interp.values import initial_values, inputs
from tests.test_first_order import CATALOG, model, outside, single

Array = Any
RECURRENT = {
    "lstm": "y, h, c = lstm(x, w, r)",
    "gru": "y, h = gru(x, w, r)",
    "simple_rnn": "y, h = simple_rnn(x, w, r)",
}
GATES = {"lstm": "4, ", "gru": "3, ", "simple_rnn": ""}


def recurrent(name: str, steps: int) -> tuple[Graph, dict[str, Array]]:
    gates = GATES[name]
    return model(
        f"""
        model m(x: f32[{steps}, 2, 4] in [-1, 1]) -> y: f32[{steps}, 2, 8] {{
          param w: f32[{gates}8, 4] in [-0.5, 0.5]
          param r: f32[{gates}8, 8] in [-0.5, 0.5]
          {RECURRENT[name]}
          loss = reduce_mean(square(y))
        }}
        """
    )


def judged(
    graph: Graph, values: dict[str, Array], got: dict[str, Array], thorough: bool = True
) -> dict[str, tuple[Verdict, Verdict]]:
    """By balls, and by the derivative where these say little."""
    known = balls(graph, values, CATALOG, precision(graph))
    slopes = gradient_balls(graph, values, CATALOG, known)
    before = [judge(f"d_{n}", "target", graph.values[n], slopes[n], got[n]) for n in got]
    refiner = SlopeRefiner(graph, values, CATALOG, thorough)
    after = refiner.refined(before, known, slopes, got, "target", STANDARD)
    return {b.name: (b, a) for b, a in zip(before, after, strict=True)}


@pytest.mark.parametrize(
    ("name", "thorough"), [*((name, True) for name in RECURRENT), (next(iter(RECURRENT)), False)]
)
def test_a_gradient_of_a_recurrence_that_is_scaled_is_found(name: str, thorough: bool) -> None:
    graph, values = recurrent(name, 10)
    right = {n: g.astype(np.float32) for n, g in gradients(graph, values, CATALOG).items()}
    found = judged(graph, values, right, thorough)
    assert not any(after.verdict in FINDINGS for _, after in found.values())
    scaled = {n: g * np.float32(1 + 1e-4) for n, g in right.items()}
    found = judged(graph, values, scaled, thorough)
    assert found["d_x"][0].verdict not in FINDINGS  # by balls
    assert all(after.verdict == "inaccurate" for _, after in found.values())


@pytest.mark.parametrize("name", RECURRENT)
def test_gradients_in_single_precision_stay_inside(name: str) -> None:
    _stays_inside(*recurrent(name, 6), seeds=range(4))


@pytest.mark.parametrize("seed", range(24))
def test_gradients_of_programs_in_single_precision_stay_inside(seed: int) -> None:
    graph = generate(CATALOG, 20_000 + seed, size=(2, 6)).graph
    elements = sum(np.prod(info.shape) for info in graph.values.values())
    if elements > 2000 or any(node.expansion(CATALOG).is_open for node in graph.nodes):
        pytest.skip("large, or something is left open")
    graph, _ = trainable(graph, CATALOG, seed)
    if graph.loss is None:
        pytest.skip("nothing in it is real")
    values = {**inputs(graph, seed), **initial_values(graph, seed)}
    try:
        balls(graph, values, CATALOG, precision(graph))
    except InvalidInput as error:
        pytest.skip(f"the drawn values violate a precondition: {error}")
    _stays_inside(graph, values, seeds=range(seed, seed + 2))


def _stays_inside(graph: Graph, values: dict[str, Array], seeds: range) -> None:
    whole = gradient_graph(prepare(graph, CATALOG, ties="any"))
    slopes = gradient_balls(graph, values, CATALOG)
    order = FirstOrder(whole.graph, values, CATALOG, precision(graph))
    for seed in seeds:
        computed = single(whole.graph, values, seed)
        for name, ball in slopes.items():
            value = whole.cotangents[name]
            known = np.isfinite(np.broadcast_to(ball.bound, np.shape(ball.value)))
            places = np.flatnonzero(known)[:32]
            right = np.asarray(ball.value).reshape(-1)[places]
            got = np.asarray(computed[value]).reshape(-1)[places]
            bound = order.radius(value, places)
            right = np.where(np.isfinite(bound), order.value(value).reshape(-1)[places], right)
            assert not outside(bound, right, got).any(), name


def test_what_is_open_beside_an_overflow_stays_open() -> None:
    """A program may find the length and its slope in another way, or not at all."""
    graph, values = model(
        """
        model m(x: f32[3] in [0, 1]) -> y: f32[3] {
          y = exp(multiply(x, 200))
          loss = reduce_sum(multiply(tanh(y), 0.5))
        }
        """
    )
    values["x"] = np.array([0.9, 0.001, 0.002], np.float32)
    known = balls(graph, values, CATALOG, "f32")
    opened: set[str] = set()
    slopes = gradient_balls(graph, values, CATALOG, known, opened=opened)
    assert opened
    got = {"x": np.array([7.0, *slopes["x"].value[1:]], np.float32)}
    ((before, after),) = judged(graph, values, got).values()
    assert before.verdict not in FINDINGS
    assert after.verdict not in FINDINGS
    # what is known beside it is judged
    got["x"][2] *= np.float32(1.01)
    ((_, after),) = judged(graph, values, got).values()
    assert after.verdict in FINDINGS
    assert after.index == (2,)


def test_rounding_alone_opens_nothing() -> None:
    graph, values = recurrent("lstm", 4)
    opened: set[str] = set()
    gradient_balls(graph, values, CATALOG, opened=opened)
    assert not opened


def test_a_sum_of_one_step_does_not_go_on() -> None:
    """The gradient of a recurrence writes the products of a step down before it adds to them."""
    graph, _ = recurrent("lstm", 4)
    whole = gradient_graph(prepare(graph, CATALOG)).graph
    groups = [u.piece.group for u in units(whole, CATALOG) if u.piece.group is not None]
    assert any(accumulates(group.equations) for group in groups)
    assert not any(goes_on(group.equations) for group in groups)
    graph, _ = model("model m(x: f32[9]) -> y: f32[9] { y = cumsum(x) }")
    groups = [u.piece.group for u in units(graph, CATALOG) if u.piece.group is not None]
    assert any(goes_on(group.equations) for group in groups)


def test_a_tie_has_any_gradient_that_is_allowed() -> None:
    graph, values = model(
        """
        model m(x: f32[4]) -> y: f32[] {
          y = reduce_max(x)
          loss = multiply(y, 1)
        }
        """
    )
    values["x"] = np.array([1, 2, 2, 0], np.float32)
    for got in ([0, 1, 0, 0], [0, 0, 1, 0], [0, 0.5, 0.5, 0]):
        ((_, after),) = judged(graph, values, {"x": np.array(got, np.float32)}).values()
        assert after.verdict not in FINDINGS


def test_an_adjoint_that_is_too_deep_leaves_verdicts_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def deep(*_: Any) -> None:
        raise RecursionError

    graph, values = recurrent("simple_rnn", 10)
    got = {
        n: (g * (1 + 1e-4)).astype(np.float32) for n, g in gradients(graph, values, CATALOG).items()
    }
    assert any(after != before for before, after in judged(graph, values, got).values())
    monkeypatch.setattr(FirstOrder, "__init__", deep)
    assert all(after == before for before, after in judged(graph, values, got).values())
