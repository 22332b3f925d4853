"""NaN for a gradient of which the equations say nothing: wrong where the call has slopes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irlang.catalog import builtin
from irlang.diff.calls import Case
from irlang.diff.finding import find
from irlang.diff.flat import told, with_flat
from irlang.diff.kinks import SLOPES
from irlang.diff.report_folder import write
from irlang.diff.runner import Session
from irlang.diff.stages import by_calls
from irlang.diff.verdict import FINDINGS, Verdict, judge
from irlang.diff.weighing import differentiated
from irlang.dtypes import DTYPES
from irlang.interp.gradient import gradient_balls
from irlang.interp.program import balls, precision
from tests.lower_calls import case


def _told(
    types: str,
    call: str,
    by: str,
    target: str = "torch",
    off: float = 0.0,
    ones: int = 0,
    **values: Any,
) -> Verdict:
    """The verdict on a target that says NaN wherever nothing is known of a gradient, and elsewhere
    what is right and `off` more; with so many axes of size 1 behind its own.
    """
    made = case(types, call)
    graph, catalog = differentiated(made.graph, builtin())
    fed = {n: np.asarray(a, graph.values[n].dtype.replace("f", "float")) for n, a in values.items()}
    weights = graph.inputs.keys() - fed.keys()
    kind = DTYPES[graph.values[by].dtype].numpy
    fed |= {n: np.ones(graph.values[n].shape, kind) for n in weights}
    found = balls(graph, fed, catalog, precision(graph))
    slopes = gradient_balls(graph, fed, catalog, found)
    ball, info = slopes[by], graph.values[by]
    bound = np.broadcast_to(ball.bound, info.shape)
    got = np.where(np.isfinite(bound), ball.value + off, np.nan).astype(kind)
    got = np.asarray(got).reshape((*got.shape, *(1,) * ones))
    results = {n: np.asarray(found[v].value, kind) for n, v in graph.outputs.items()}
    verdicts = [judge(f"d_{by}", target, info, ball, got)]
    shown = Case(graph, fed, {}, catalog)
    (verdict,) = with_flat(graph, shown, found, slopes, results, {by: got}, verdicts)
    if verdict.verdict == "nonfinite":
        assert np.asarray(told(ball, verdict).value)[verdict.index] == verdict.expected
    return verdict


@pytest.mark.parametrize(
    ("types", "call", "by", "values"),
    [
        ("x: f32[3]", "reduce_l2(x)", "x", {"x": [0, 0, 0]}),
        ("x: f32[3]", "reduce_std(x)", "x", {"x": [5, 5, 5]}),
        ("x: f32[2, 2]", "reduce_l2(x; axes = 1)", "x", {"x": [[3, 4], [0, 0]]}),
        ("a: f32[2], b: f32[2]", "power(a, b)", "a", {"a": [2, 0], "b": [2, 0]}),
        ("x: f32[2], z: f32[2]", "xlogy(x, z)", "z", {"x": [1, 0], "z": [2, 0]}),
    ],
)
def test_no_number_where_a_function_has_slopes(
    types: str, call: str, by: str, values: dict[str, Any]
) -> None:
    verdict = _told(types, call, by, **values)
    assert verdict.verdict == "nonfinite"
    assert verdict.message.startswith(SLOPES)
    assert np.isfinite(verdict.expected or 0.0)


@pytest.mark.parametrize(
    ("types", "call", "by", "values"),
    [
        ("x: f32[2]", "sqrt(x)", "x", {"x": [4, 0]}),  # a pole
        ("x: f32[2]", "sqrt(x)", "x", {"x": [4, -1]}),  # no value
        ("x: f32[2]", "log(x)", "x", {"x": [0, 0]}),
        ("x: f32[2]", "asin(x)", "x", {"x": [0, 1]}),
        ("x: f32[2], z: f32[2]", "xlogy(x, z)", "x", {"x": [1, 0], "z": [2, 0]}),
        # by the exponent of a base below 0 there are whole numbers alone, however large they are
        ("a: f32[1], b: f32[1]", "power(a, b)", "b", {"a": [-1], "b": [-3e38]}),
        ("a: f32[1], b: f32[1]", "power(a, b)", "b", {"a": [-1], "b": [2]}),
        ("a: f32[1], b: f32[1]", "power(a, b)", "b", {"a": [0], "b": [0]}),  # a jump
        (  # fed by another call
            "x: f32[2], z: f32[2]",
            "xlogy(abs(x), z)",
            "z",
            {"x": [1, 0], "z": [2, 0]},
        ),
    ],
)
def test_nothing_is_said_of_poles_jumps_and_ends(
    types: str, call: str, by: str, values: dict[str, Any]
) -> None:
    assert _told(types, call, by, **values).verdict != "nonfinite"


@pytest.mark.parametrize("off", [0.5, -1.0, 1.0])
def test_any_slope_at_a_kink_is_right(off: float) -> None:
    """Between those on either side, of which the definition says 0; not beside them."""
    types, call = "a: f32[1], b: f32[1]", "hypot(a, b)"
    assert _told(types, call, "a", off=off, a=[0], b=[0]).verdict == "rounding"
    assert _told(types, call, "a", off=3 * off, a=[0], b=[0]).verdict == "wrong"
    assert _told(types, call, "a", off=off, a=[1], b=[0]).verdict == "wrong"


def test_where_there_is_one_slope_no_other_is_right() -> None:
    """TensorFlow says 0 of x log(z) at x = 0."""
    types, call = "x: f32[1], z: f32[1]", "xlogy(x, z)"
    assert _told(types, call, "x", off=-np.log(2), x=[0], z=[2]).verdict == "wrong"


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_an_angle_at_the_origin_has_no_slope(zero: float) -> None:
    """Nothing is said of what frameworks have there: 0 (PyTorch), or NaN (JAX, TensorFlow)."""
    types, call = "a: f32[1], b: f32[1]", "atan2(a, b)"
    for by in ("a", "b"):
        for off in (0.0, 1.0, np.nan):
            for other in (0.0, -0.0):
                told = _told(types, call, by, off=off, a=[zero], b=[other])
                assert told.verdict == "unstable", (by, off, other)
    assert _told(types, call, "a", off=-1.0, a=[zero], b=[1.0]).verdict == "wrong"


@given(st.lists(st.integers(-9, 9), min_size=2, max_size=4), st.booleans())
def test_a_length_has_slopes_everywhere(numbers: list[int], zero: bool) -> None:
    x = np.array(numbers) * (0.0 if zero else 0.125)
    verdict = _told(f"x: f32[{len(x)}]", "reduce_l2(x)", "x", x=x)
    assert (verdict.verdict == "nonfinite") == (not x.any())
    if not x.any():
        assert abs(verdict.expected or 0.0) <= 1.0


@given(st.integers(2, 6), st.floats(1.0, 2.0**15, width=16), st.sampled_from(["f16", "f32"]))
def test_nothing_is_said_where_a_number_on_the_way_is_too_large(
    degree: int, x: float, dtype: str
) -> None:
    """Of a polynomial without coefficients: 0 times what overflows is no number, and 0 is right."""
    types, call = f"c: {dtype}[{degree + 1}], x: {dtype}[1]", "polyval(c, x)"
    verdict = _told(types, call, "x", "tf", c=[0.0] * (degree + 1), x=[x])
    known = degree * math.log2(max(x, degree)) < (15 if dtype == "f16" else 127)
    assert verdict.verdict == "agrees" if known else verdict.verdict in ("agrees", "unstable")


def test_what_a_target_composes_is_its_parts() -> None:
    """A square and a root by themselves have the gradient that the chain rule gives."""
    assert _told("x: f32[]", "reduce_l2(x)", "x", "tf", x=0.0).verdict != "nonfinite"
    assert _told("x: f32[1]", "reduce_l2(x)", "x", "tf", x=[0.0]).verdict == "nonfinite"


def test_what_is_handed_the_adjoint_equations_is_not_held_to_more() -> None:
    x = [0.0, 0.0]
    assert _told("x: f32[2]", "reduce_l2(x)", "x", "onnxruntime", x=x).verdict != "nonfinite"


def test_a_session_says_so_and_its_report(tmp_path: Path) -> None:
    pytest.importorskip("jax", reason="jax is not installed")
    made = case("x: f32[3]", "reduce_l2(x)")
    graph, catalog = differentiated(made.graph, builtin())
    fed = {n: np.ones(graph.values[n].shape, np.float32) for n in graph.inputs}
    fed["x"] = np.zeros(3, np.float32)
    with Session(["jax", "torch"]) as session:
        case_ = Case(graph, fed, {}, catalog)
        (outcome,) = session.compare([case_], grad=True)
        of = {t: next(v for v in vs if v.name == "d_x") for t, vs in outcome.verdicts.items()}
        assert of["jax"].verdict == "nonfinite"
        assert of["jax"].stage == "backward"
        assert of["torch"].verdict not in ("nonfinite", "wrong")
        found = find(session, case_, 1, "jax", outcome)
    assert found.operator == "reduce_l2"
    entry = write(found, tmp_path, "f-001")
    assert "gives nan for d_" in entry["title"]
    told_of = (tmp_path / "issue.md").read_text()
    assert SLOPES in told_of
    assert "= nan" not in told_of  # as the chain rule would have it
    assert "expected `[0]`" in told_of


def test_a_gradient_of_another_shape_is_told_as_that() -> None:
    values = [[1, 2], [3, 4], [5, 6]]
    assert _told("x: f32[3, 2]", "square(x)", "x", x=values).verdict == "agrees"
    assert _told("x: f32[3, 2]", "square(x)", "x", ones=1, x=values).verdict == "wrong"


@pytest.mark.parametrize(
    ("types", "call", "by", "fed", "told"),
    [
        # of which PyTorch has none: where the last place is passed, the slope between two is no arm
        ("x: f32[], p: f32[1], v: f32[1]", "interp(x, p, v)", "v",
         {"x": 3e38, "p": [0], "v": [0]}, False),
        ("a: f32[1], b: f32[1]", "hypot(a, b)", "a", {"a": [0], "b": [0]}, True),
    ],
)  # fmt: skip
def test_arms_that_are_not_taken_are_held_against_nobody(
    types: str, call: str, by: str, fed: dict[str, Any], told: bool
) -> None:
    graph, catalog = differentiated(case(types, call).graph, builtin())
    values = {n: np.asarray(a, np.float32) for n, a in fed.items()}
    rest = graph.inputs.keys() - values.keys()
    values |= {n: np.ones(graph.values[n].shape, np.float32) for n in rest}
    one = Case(graph, values, {}, catalog, edge=True)
    with Session(("torch",)) as session:
        (outcome,) = session.compare([one], grad=True)
        assert np.isnan(outcome.results["torch"].gradients[by]).any()  # it is NaN all the same
        (verdict,) = [v for v in outcome.verdicts["torch"] if v.name == f"d_{by}"]
        assert (verdict.verdict in FINDINGS) == told
        assert bool(by_calls(session, one, "torch", grad=True).found) == told
