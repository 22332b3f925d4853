"""Outputs of which balls say little are judged by the derivative, at their farthest elements."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from irlang.arithmetic import STANDARD
from irlang.diff import judgement, refine, runner
from irlang.diff.calls import judge_call
from irlang.diff.pace import PACE
from irlang.diff.programs import with_balls
from irlang.diff.refine import ELEMENTS, Refiner
from irlang.diff.runner import Case, Session
from irlang.diff.verdict import FINDINGS, Verdict, judge, of_values, only_estimated
from irlang.interp import first_order
from irlang.interp.balls import Ball
from irlang.interp.first_order import FirstOrder
from irlang.interp.program import balls
from irlang.lower.lower import Lowered, lower
from tests.test_first_order import CATALOG, STACK, model, single

Array = Any
# as deep as it takes for balls to say nothing
GRAPH, VALUES = model(STACK.replace("i < 6", "i < 8"))


@pytest.fixture(scope="module")
def known() -> dict[str, Ball]:
    return balls(GRAPH, VALUES, CATALOG, "f32")


@pytest.fixture(scope="module")
def computed() -> Array:
    return single(GRAPH, VALUES, 3)["y"].astype(np.float32)


REFINER = Refiner(GRAPH, VALUES, CATALOG)  # of which a program is looked through once


def judged(known: dict[str, Ball], got: Array, thorough: bool = True) -> tuple[Verdict, Verdict]:
    """By balls, and by the derivative where these say little."""
    before = judge("y", "target", GRAPH.values["y"], known["y"], got)
    REFINER.thorough = thorough
    (after,) = REFINER.refined([before], known, {"y": got}, "target", STANDARD)
    return before, after


def test_a_right_result_has_a_verdict_with_a_small_radius(
    known: dict[str, Ball], computed: Array
) -> None:
    before, after = judged(known, computed)
    assert before.verdict == "unstable"
    assert after.verdict in ("agrees", "rounding")
    assert after.radius is not None
    assert after.radius < 1e-2
    assert after.message == f"first order, {ELEMENTS} of 32 elements"


@pytest.mark.parametrize("thorough", [False, True])
def test_a_wrong_element_is_found(known: dict[str, Ball], computed: Array, thorough: bool) -> None:
    got = computed.copy()
    got[2, 5] += 0.02
    before, after = judged(known, got, thorough)
    assert before.verdict == "unstable"
    assert after.verdict in FINDINGS
    assert after.index == (2, 5)


def test_what_is_no_number_is_found(known: dict[str, Ball], computed: Array) -> None:
    got = computed.copy()
    got[1, 1] = np.nan
    assert judged(known, got)[1].verdict in FINDINGS


def test_a_campaign_looks_closer_only_where_a_target_is_strange(
    known: dict[str, Ball], computed: Array
) -> None:
    before, after = judged(known, computed, thorough=False)
    assert after == before


def test_an_estimate_says_that_it_is_one(
    known: dict[str, Ball], computed: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    got = computed.copy()
    got[2, 5] += 0.02
    before = judge("y", "target", GRAPH.values["y"], known["y"], got)
    with monkeypatch.context() as patched:
        patched.setattr(first_order, "_MIDDLING", 0)  # a large program, for that matter
        patched.setattr(refine, "_PROVED", 0)
        (after,) = Refiner(GRAPH, VALUES, CATALOG).refined(
            [before], known, {"y": got}, "target", STANDARD
        )
    assert after.verdict in FINDINGS
    assert after.message == "by an estimate"
    assert only_estimated([before, after])
    assert not only_estimated([after, replace(after, estimated=False)])
    assert not only_estimated([before])
    assert not judged(known, got)[1].estimated  # in a program of its size it is a proof


def test_what_an_estimate_says_is_proved_in_a_program_that_is_not_large(
    known: dict[str, Ball], computed: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An estimate that is far too small makes no finding."""
    monkeypatch.setattr(first_order, "_MIDDLING", 0)
    radius = FirstOrder.radius

    def small(order: FirstOrder, name: str, elements: Array) -> Array:
        found: Array = radius(order, name, elements) * (1e-6 if order.estimates else 1.0)
        return found

    monkeypatch.setattr(FirstOrder, "radius", small)
    before = judge("y", "target", GRAPH.values["y"], known["y"], computed)
    (after,) = Refiner(GRAPH, VALUES, CATALOG).refined(
        [before], known, {"y": computed}, "target", STANDARD
    )
    assert after.verdict not in FINDINGS
    monkeypatch.setattr(refine, "_PROVED", 0)
    (after,) = Refiner(GRAPH, VALUES, CATALOG).refined(
        [before], known, {"y": computed}, "target", STANDARD
    )
    assert after.verdict in FINDINGS
    assert after.estimated


def test_what_an_estimate_speaks_against_is_proved_by_a_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    inputs = {name: VALUES[name] for name in GRAPH.inputs}
    case = Case(GRAPH, inputs, {name: VALUES[name] for name in GRAPH.params}, CATALOG)

    def faulty(*args: Any, **options: Any) -> Lowered:
        made = lower(*args, **options)
        wrong = re.sub(r"(F\.layer_norm\(.*\))", r"1.01 * \1", str(made.code))
        return replace(made, code=wrong)

    with Session(["torch"]) as session:
        assert not judgement._proved(session, case, "torch")
        monkeypatch.setattr(runner, "lower", faulty)
        assert judgement._proved(session, case, "torch")


def test_the_sign_of_a_zero_is_no_finding() -> None:
    """PyTorch's prelu of 0 is -0 where the slope is negative; each call is right by itself."""
    pytest.importorskip("torch", reason="torch is not installed")
    text = "model m(x: f32[2], s: f32[]) -> y: f32[2] {\n  y = reciprocal(prelu(x, s))\n}"
    graph, _ = model(text)
    given = {"x": np.array([0, 1], np.float32), "s": np.array(-1, np.float32)}
    case = Case(graph, given, {}, CATALOG)
    with Session(["torch"]) as session:
        (verdict,) = session.compare([case])[0].verdicts["torch"]
        assert verdict.verdict in FINDINGS
        assert of_values([verdict])
        assert not of_values([replace(verdict, stage="backward")])
        assert not of_values([replace(verdict, verdict="refused")])
        assert not judgement._proved(session, case, "torch")


@pytest.mark.parametrize("thorough", [True, False])
def test_what_an_elimination_has_a_hundred_roundings_off_is_found(thorough: bool) -> None:
    """Balls allow twenty times what the derivative does, and yet half of the digits."""
    graph, values = model(
        """
        model m(a: f32[2, 2] in [-1, 1], b: f32[2, 3] in [-1, 1]) -> y: f32[2, 3] {
          y = solve(a, b)
        }
        """
    )
    values["a"] = np.array([[0.5, 0.75], [-0.75, 1.0]], np.float32)
    values["b"] = np.array([[0.3, -0.7, 0.9], [0.6, 0.2, -0.4]], np.float32)
    known = balls(graph, values, CATALOG, "f32")
    refiner = Refiner(graph, values, CATALOG, thorough)

    def found(a: Array) -> tuple[str, str]:
        got = np.linalg.solve(a.astype(np.float64), values["b"]).astype(np.float32)
        before = judge("y", "target", graph.values["y"], known["y"], got)
        (after,) = refiner.refined([before], known, {"y": got}, "target", STANDARD)
        return before.verdict, after.verdict

    assert found(values["a"]) == ("agrees", "agrees")
    scaled = values["a"].astype(np.float64)
    scaled[0, 0] *= 1 + 1e-5
    assert found(scaled) == ("agrees", "inaccurate")


def test_a_call_by_itself_is_looked_at_by_its_derivative_too() -> None:
    graph, values = model(
        """
        model m(a: f32[2, 2] in [-1, 1], b: f32[2, 1] in [-1, 1]) -> y: f32[2, 1] {
          s = add(b, b)
          y = solve(a, s)
        }
        """
    )
    values["a"] = np.array([[0.5, 0.75], [-0.75, 1.0]], np.float32)
    case = Case(graph, values, {}, CATALOG)
    node = graph.nodes[1]
    fed = {"a": values["a"], "s": np.array([[0.9], [-0.4]], np.float32)}

    def found(a: Array) -> str:
        got = np.linalg.solve(a.astype(np.float64), fed["s"]).astype(np.float32)
        (verdict,) = judge_call(case, node, fed, {"y": got}, "target")
        return verdict.verdict

    assert found(values["a"]) == "agrees"
    scaled = values["a"].astype(np.float64)
    scaled[0, 0] *= 1 + 1e-5
    assert found(scaled) == "inaccurate"


@pytest.mark.parametrize("thorough", [True, False])
@pytest.mark.parametrize("got", [1.0, -0.5])
def test_where_a_choice_is_in_doubt_either_is_right(got: float, thorough: bool) -> None:
    """The ball lies around the middle of the two, and the derivative's value is one of them."""
    graph, values = model(
        """
        model m(x: f32[1] in [0, 2]) -> y: f32[1] {
          y = where(less(multiply(x, 0.1), 0.1), 1.0, -0.5)
        }
        """
    )
    values["x"] = np.ones(1, np.float32)
    known = balls(graph, values, CATALOG, "f32")
    result = np.full(1, got, np.float32)
    before = judge("y", "target", graph.values["y"], known["y"], result)
    assert before.verdict not in FINDINGS
    refiner = Refiner(graph, values, CATALOG, thorough)
    (after,) = refiner.refined([before], known, {"y": result}, "target", STANDARD)
    assert after.verdict not in FINDINGS


def test_a_campaign_asks_for_an_estimate_first_and_where_it_has_none_for_the_sum(
    known: dict[str, Ball], computed: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An estimate says nothing of what may reach a pole, which the sum may know to be far off."""
    radius, asked = FirstOrder.radius, []

    def told(order: FirstOrder, name: str, elements: Array) -> Array:
        asked.append((order.estimates, len(elements)))
        found: Array = radius(order, name, elements)
        return np.where(np.arange(len(elements)) < 3, np.inf, found) if order.estimates else found

    monkeypatch.setattr(FirstOrder, "radius", told)
    refiner = Refiner(GRAPH, VALUES, CATALOG, sketched=True)
    before = judge("y", "target", GRAPH.values["y"], known["y"], computed)
    (after,) = refiner.refined([before], known, {"y": computed}, "target", STANDARD)
    assert after.verdict in ("agrees", "rounding")
    assert asked == [(True, ELEMENTS), (False, 3)]


def test_no_closer_look_is_taken_that_the_time_is_too_short_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It takes several times as long as the oracle needed for the program."""
    pytest.importorskip("torch", reason="torch is not installed")
    asked: list[str] = []

    def refined(self: Refiner, found: list[Verdict], *_: Any) -> list[Verdict]:
        asked.append(self.graph.name)
        return found

    monkeypatch.setattr(Refiner, "refined", refined)
    graph, values = model("model m(x: f32[2]) -> y: f32[2] {\n  y = tanh(x)\n}")
    case = with_balls(Case(graph, values, {}, CATALOG))
    assert case.took > 0.0
    with Session(["torch"]) as session, monkeypatch.context() as short:
        short.setattr(PACE, "until", time.monotonic() + 600.0)
        session.compare([replace(case, took=60.0)])
        assert not asked
        session.compare([replace(case, took=0.1)])
        assert asked == ["m"]
