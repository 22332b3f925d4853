"""Functions that overflow on the way to what their type can hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irlang.catalog import builtin
from irlang.diff.calls import Case
from irlang.diff.finding import find
from irlang.diff.kinks import SLOPES
from irlang.diff.programs import with_balls
from irlang.diff.report_folder import write
from irlang.diff.runner import Session
from irlang.diff.spilled import ON_THE_WAY, with_spilled
from irlang.diff.verdict import Verdict, judge
from irlang.diff.weighing import differentiated
from irlang.interp.gradient import gradient_balls
from irlang.interp.program import balls, precision
from tests.lower_calls import case
from tests.targets import usable

# Whose squares f32 cannot hold.
_LARGE = st.floats(2.0**65, 2.0**120, width=32) | st.floats(-(2.0**120), -(2.0**65), width=32)


def _case(types: str, call: str, edge: bool = True, **values: Any) -> Case:
    """A call fed with values, and a loss that adds up what it gives."""
    graph, catalog = differentiated(case(types, call).graph, builtin())
    fed = {n: np.asarray(a, graph.values[n].dtype.replace("f", "float")) for n, a in values.items()}
    rest = graph.inputs.keys() - fed.keys()
    fed |= {n: np.ones(graph.values[n].shape, np.float32) for n in rest}
    return with_balls(Case(graph, fed, {}, catalog, edge=edge))


def _told(one: Case, by: str, got: float) -> Verdict:
    """The verdict on a target that gives one number as the gradient."""
    graph = one.graph
    found = balls(graph, one.values, one.catalog, precision(graph))
    ball = gradient_balls(graph, one.values, one.catalog, found)[by]
    array = np.full(graph.values[by].shape, got, np.float32)
    verdict = judge(f"d_{by}", "torch", graph.values[by], ball, array)
    known, given_ = {f"d_{by}": ball}, {f"d_{by}": array}
    (told,) = with_spilled(graph, one, "torch", known, given_, [verdict])
    return told


@given(_LARGE)
def test_a_slope_that_squares_what_it_is_given_is_asked_for(x: float) -> None:
    one = _case("x: f32[1]", "asinh(x)", x=[x])
    assert _told(one, "x", 1 / abs(x)).verdict == "unstable"
    assert _told(one, "x", 1 / abs(x) * (1 + 1e-5)).verdict == "unstable"  # by another formula
    for lost in (0.0, np.inf, np.nan):
        told = _told(one, "x", lost)
        assert (told.verdict, told.message) == ("inaccurate", ON_THE_WAY)
        assert told.expected == pytest.approx(1 / abs(x))


@given(_LARGE)
def test_what_the_type_cannot_hold_is_not(x: float) -> None:
    assert _told(_case("x: f32[1]", "square(square(x))", x=[x]), "x", np.nan).verdict == "unstable"
    one = _case("x: f32[1]", "expm1(x)", x=[90])
    one.values[next(name for name in one.graph.inputs if name != "x")][:] = 0
    assert _told(one, "x", np.nan).verdict == "unstable"  # as the result itself is infinite
    one = _case("x: f32[1], z: f32[1]", "power(x, z)", x=[x], z=[3])
    assert _told(one, "x", np.nan).verdict == "unstable"
    one = _case("x: f32[1], z: f32[1]", "xdivy(x, z)", x=[x], z=[1e-20])
    one.values[next(name for name in one.graph.inputs if name not in "xz")][:] = 0
    assert _told(one, "z", np.nan).verdict == "unstable"  # as the slope itself, x / 1e-40, is


def test_it_is_asked_of_functions_at_edges_alone() -> None:
    spread = _case("x: f32[2]", "reduce_std(x)", x=[3e38, 3e38])
    assert _told(spread, "x", np.nan).verdict == "unstable"
    ordinary = _case("x: f32[1]", "asinh(x)", edge=False, x=[1e20])
    assert _told(ordinary, "x", 0.0).verdict == "unstable"


def test_what_flows_back_to_a_number_of_many_elements_is_a_sum() -> None:
    """Slopes whose formula squares 1e20: one by itself, and two that are added up."""
    for size, verdict in ((1, "inaccurate"), (2, "unstable")):
        one = _case(f"x: f32[{size}], z: f32[1]", "hypot(x, z)", x=[3e20] * size, z=[1e20])
        assert _told(one, "x", np.nan).verdict == "inaccurate"
        assert _told(one, "z", np.nan).verdict == verdict


@pytest.mark.parametrize("target", ["torch", "jax"])
def test_what_the_squares_of_a_framework_lose_is_reported(target: str, tmp_path: Path) -> None:
    one = _case("x: f32[2]", "asinh(x)", x=[1e20, 2])
    usable(target)
    with Session((target,)) as session:
        (outcome,) = session.compare([one], grad=True)
        found = find(session, one, 1, target, outcome)
    assert (found.verdict.verdict, found.operator) == ("inaccurate", "asinh")
    write(found, tmp_path, "f-001")
    said = (tmp_path / "issue.md").read_text("utf-8")
    assert "numbers on the way to it are not" in said
    assert "1e-20" in said


def test_what_is_lost_on_the_way_to_an_exact_number_is_said_as_well(tmp_path: Path) -> None:
    """Of weight 0 the slope is 0, in which 2 x = 6e38 times erfcx(x) = 2e-39 is a part."""
    usable("torch")
    one = _case("x: f32[2]", "erfcx(x)", x=[-np.inf, 3e38])
    one.values[next(name for name in one.graph.inputs if name != "x")][:] = 0
    with Session(("torch",)) as session:
        (outcome,) = session.compare([one], grad=True)
        found = find(session, one, 1, "torch", outcome)
    assert (found.verdict.expected, found.verdict.message) == (0.0, ON_THE_WAY)
    write(found, tmp_path, "f-001")
    said = (tmp_path / "issue.md").read_text("utf-8")
    assert "It is exact, and within the range of float32; numbers on the way to it are not." in said


@pytest.mark.parametrize("target", ["torch", "tf", "jax"])
def test_a_slope_that_is_no_number_is_reported(target: str) -> None:
    """The cube of 1e20 is beyond f32, and its slope times what tanh leaves no number."""
    one = _case("x: f32[2]", "gelu(x; approximate = tanh)", x=[1e20, 2])
    usable(target)
    with Session((target,)) as session:
        (outcome,) = session.compare([one], grad=True)
    (told,) = (v for v in outcome.verdicts[target] if v.name == "d_x")
    assert told.verdict == "inaccurate"
    assert told.message.startswith(SLOPES)


@pytest.mark.parametrize(
    ("call", "fed", "got", "said"),
    [
        # the sum of squares is kept, and infinite: what is divided by its root is 0
        ("adagrad(x, g; lr = r)", {"x": 0, "g": 6e36, "r": 1}, 0.0, False),
        # nothing that is kept is large
        ("adadelta(x, g; step_square = s, lr = r, rho = 0)",
         {"x": 3e38, "g": -1, "s": 2, "r": -3e38}, -np.inf, True),
    ],
)  # fmt: skip
def test_what_a_call_keeps_is_not_on_the_way(
    call: str, fed: dict[str, float], got: float, said: bool
) -> None:
    usable("tf")
    types = ", ".join(f"{name}: f32[{'' if name == 'r' else 1}]" for name in fed)
    graph = case(types, call).graph
    values = {n: np.full(graph.values[n].shape, a, np.float32) for n, a in fed.items()}
    one = Case(graph, values, {}, builtin(), edge=True)
    (name, value), *_ = graph.outputs.items()
    ball = balls(graph, values, builtin(), precision(graph))[value]
    array = np.full(1, got, np.float32)
    verdict = judge(name, "tf", graph.values[value], ball, array)
    assert verdict.verdict == "unstable"
    (told,) = with_spilled(graph, one, "tf", {name: ball}, {name: array}, [verdict])
    assert (told.message == ON_THE_WAY) == said


@pytest.mark.parametrize(
    ("call", "fed"),
    [
        ("add_n(x, z, w)", (-3e38, -3e38, 3e38)),  # from the left it is infinite on the way
        ("average_n(x, z)", (-3e38, -3e38)),
    ],
)
def test_sums_of_several_tensors_are_no_functions(call: str, fed: tuple[float, ...]) -> None:
    usable("onnxruntime")
    names = ("x", "z", "w")[: len(fed)]
    graph = case(", ".join(f"{name}: f32[1]" for name in names), call).graph
    values = {n: np.full(1, a, np.float32) for n, a in zip(names, fed, strict=True)}
    one = Case(graph, values, {}, builtin(), edge=True)
    ((name, value),) = graph.outputs.items()
    ball = balls(graph, values, builtin(), precision(graph))[value]
    array = np.full(1, -np.inf, np.float32)
    verdict = judge(name, "onnxruntime", graph.values[value], ball, array)
    known, got = {name: ball}, {name: array}
    assert with_spilled(graph, one, "onnxruntime", known, got, [verdict]) == [verdict]
