"""Calls with whole numbers at the ends of 32 and 64 bits, and with real ones that are far from 0,
infinite or of the other sign: valid, small, and of one value.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from irlang.arithmetic import STANDARD
from irlang.catalog import builtin
from irlang.diagnostics import InvalidInput
from irlang.diff.apart import cases_apart
from irlang.diff.calls import Case
from irlang.diff.runner import Session
from irlang.gen.build import generate
from irlang.gen.draw import Limits
from irlang.gen.extreme import at_extreme, has_extreme
from irlang.gen.pattern import pattern
from irlang.graph import Graph
from irlang.interp import exact, reference
from irlang.interp.draws import completed, key
from irlang.interp.plain import load
from irlang.interp.program import given_ball, node_balls
from irlang.interp.values import inputs
from irlang.lower.lower import lower
from tests.lower_calls import case

COUNTED = sorted(
    op.name
    for op in builtin()
    if any(attr.type.name == "int" for attr in pattern(op).attrs.values())
)
SCALED = sorted(
    op.name
    for op in builtin()
    if any(attr.type.name == "real" for attr in pattern(op).attrs.values())
)


def _drawn(name: str, seed: int, elements: int = 32) -> Graph | None:
    graph = generate(builtin(), seed, apart=[name], limits=Limits(elements=elements)).graph
    return at_extreme(graph.nodes[0], builtin(), seed) if graph.nodes else None


@given(st.sampled_from(COUNTED), st.integers(0, 10**6))
@settings(max_examples=150, deadline=None)
def test_the_oracle_bears_them(name: str, seed: int) -> None:
    """Sums of what is near 2**63 are no wrapped ones, and nothing is read 2**63 elements on."""
    graph = _drawn(name, seed)
    assume(graph is not None)
    assert graph is not None
    node, values = graph.nodes[0], inputs(graph, seed)
    assert has_extreme(node)
    assert all(math.prod(graph.values[output].shape) <= 1024 for output in node.outputs)
    expansion = node.expansion(builtin())
    feeds = {formal: values[value] for formal, value in node.feeds().items()}
    feeds = completed(expansion, feeds)  # what is drawn is the same for all
    try:
        right = exact.evaluate(expansion, feeds, digits=30, limit=2_000_000)
    except InvalidInput as error:  # too much for it, or what is fed breaks a precondition
        assume(error.diagnostics[0].code != "run.work")
        with pytest.raises(InvalidInput):
            reference.evaluate(expansion, feeds)
        return
    found = reference.evaluate(expansion, feeds)
    infos = graph.values
    given_ = {n: given_ball(infos[n], load(infos[n], values[n]), STANDARD) for n in graph.inputs}
    for one in expansion.drawn:
        info, array = expansion.tensors[one.tensor], feeds[one.tensor]
        given_[key(node, one.tensor)] = given_ball(info, array, STANDARD)
    balls = node_balls(node, given_, builtin(), "f32", STANDARD)
    for formal, value in node.results().items():
        wanted = np.asarray(right[formal].numpy(), np.float64)
        got = np.asarray(found[formal], np.float64)
        ball = balls[value]
        # what float64 loses, where a number is 1e30, single precision loses, too
        known = np.broadcast_to(np.isfinite(ball.bound), wanted.shape)
        bound = np.broadcast_to(ball.bound, wanted.shape)[known]
        np.testing.assert_array_equal(np.isnan(got[known]), np.isnan(wanted[known]))
        with np.errstate(invalid="ignore"):
            off = np.abs(got[known] - wanted[known])
        close = off <= bound + 1e-12 + 1e-9 * np.abs(wanted[known])
        assert np.all(close | (got[known] == wanted[known]) | np.isnan(wanted[known]))
        with np.errstate(invalid="ignore"):
            off = np.abs(np.asarray(ball.value, np.float64) - wanted)
            assert np.all((off <= np.asarray(ball.bound) + 1e-12) | ~np.isfinite(wanted))


def test_what_is_too_large_between_equations_is_left_out() -> None:
    """Results are small, and what they are computed of has 2**63 steps or samples: such an end is
    passed over, and others of the call are drawn.
    """
    drawn = set()
    for name in ("differences", "matrix_power", "roi_align", "spectral_norm"):
        for seed in range(6):
            for node in generate(builtin(), seed, apart=[name]).graph.nodes:
                if at_extreme(node, builtin(), seed) is not None:
                    drawn.add(name)
    assert drawn == {"roi_align", "spectral_norm"}  # all ends of the other two are too large


def test_every_kind_of_end_is_drawn() -> None:
    drawn = {
        number
        for seed in range(120)
        if (graph := _drawn("roll", seed)) is not None
        for value in graph.nodes[0].attrs.values()
        for number in (value if isinstance(value, tuple) else (value,))
        if abs(number) >= 2**31 - 1
    }
    assert {2**31 - 1, 2**31, -(2**31), 2**32, 2**32 + 1, 2**63 - 1, -(2**63)} <= drawn


def test_every_kind_of_real_end_is_drawn() -> None:
    drawn = {
        graph.nodes[0].attrs["alpha"]
        for seed in range(80)
        if (graph := _drawn("leaky_relu", seed)) is not None
    }
    assert {-0.5, 2.5, 1e-30, -1e-30, 1e30, 3e38, -3e38, math.inf, -math.inf} <= drawn
    last = float(np.finfo(np.float32).max)
    assert {last, -last} <= drawn


def test_several_numbers_are_at_ends_at_once_and_results_have_elements() -> None:
    """A range of integers from end to end: TensorFlow 2.12 counts its elements in 32 bits."""
    drawn = [graph for seed in range(80) if (graph := _drawn("arange", seed)) is not None]
    ends = [
        sum(type(n) is int and abs(n) >= 2**31 - 1 for n in graph.nodes[0].attrs.values())
        for graph in drawn
    ]
    sizes = [graph.values[graph.nodes[0].outputs[0]].shape for graph in drawn]
    assert max(ends) >= 2
    assert sum(0 not in size for size in sizes) > len(sizes) / 2


def test_integers_that_real_attributes_make_are_at_the_ends_of_64_bits() -> None:
    """Where real numbers meet them they are at most what these hold exactly."""
    drawn: dict[str, set[float]] = {"arange": set(), "histogram": set()}
    for name, numbers in drawn.items():
        for seed in range(60):
            graph = _drawn(name, seed)
            attrs = {} if graph is None else graph.nodes[0].attrs
            numbers.update(v for n, v in attrs.items() if n != "bins" and type(v) is int)
    assert drawn["arange"] >= {2**63 - 1, -(2**63)}
    assert max(map(abs, drawn["histogram"])) in range(2**31, 2**53)


def test_narrow_formats_are_told_what_they_hold() -> None:
    for seed in range(60):
        limits = Limits(elements=32, reals=("f16",))
        graph = generate(builtin(), seed, apart=["elu"], limits=limits).graph
        found = at_extreme(graph.nodes[0], builtin(), seed)
        if found is not None:
            alpha = found.nodes[0].attrs["alpha"]
            assert alpha in (-0.5, 2.5, math.inf, -math.inf)


@given(st.sampled_from(SCALED), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_programs_are_written_with_them_or_it_is_said_that_they_cannot(
    name: str, seed: int
) -> None:
    """An order of infinity is no whole number, and has no fraction."""
    graph = _drawn(name, seed)
    assume(graph is not None)
    assert graph is not None
    for target in ("torch", "tf", "jax", "onnxruntime", "keras:torch", "mxnet", "tflite"):
        lowered = lower(graph, target, builtin(), {})
        assert lowered.unsupported or lowered.code


def test_what_makes_no_difference_is_not_drawn() -> None:
    """Padding by numbers is read where the word for it says so."""
    for seed in range(60):
        graph = _drawn("max_pool", seed)
        if graph is not None and graph.nodes[0].attrs.get("pad", "valid") == "valid":
            attrs = graph.nodes[0].attrs
            for name in ("before", "after"):
                value = attrs.get(name, 0)
                assert all(
                    abs(n) < 2**31 for n in (value if isinstance(value, tuple) else (value,))
                )


def test_they_stand_beside_calls_apart() -> None:
    made = [case for *_, case in cases_apart(builtin(), 5, 0, ("roll", "tanh", "trilu"), False, 3)]
    ends = [case for case in made if has_extreme(case.graph.nodes[0])]
    assert {case.graph.nodes[0].op.name for case in ends} == {"roll", "trilu"}
    assert all(len(case.graph.nodes) == 1 and not case.edge for case in ends)
    usual = [case for case in made if len(case.graph.nodes) == 3]
    assert len(usual) == 3
    assert not any(has_extreme(n) for case in usual for n in case.graph.nodes)


def test_a_target_may_say_that_a_number_does_not_fit() -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    cases = []
    for seed in range(80):
        graph = _drawn("avg_pool", seed, 256)
        if graph is not None:
            cases.append(Case(graph, inputs(graph, seed), {}, builtin()))
    with Session(["torch"]) as session:
        outcomes = session.compare(cases)
    said = [(v.verdict, v.message) for o in outcomes for v in o.verdicts["torch"]]
    assert any("overflow" in message for verdict, message in said if verdict == "unsupported")
    assert not any(verdict == "refused" for verdict, _ in said)


def test_nothing_is_as_long_even_where_it_is_empty() -> None:
    """No array has 2**63 - 1 rows of nothing, and a recurrence makes one for what it went along."""
    for name in ("matrix_power", "differences", "reshape", "cumsum"):
        for seed in range(40):
            limits = Limits(elements=32, empty=60)
            graph = generate(builtin(), seed, apart=[name], limits=limits).graph
            extreme = at_extreme(graph.nodes[0], builtin(), seed) if graph.nodes else None
            if extreme is None:
                continue
            infos = extreme.nodes[0].expansion(builtin()).tensors.values()
            assert all(size < 2**31 for info in infos for size in info.shape)


@pytest.mark.parametrize("past", [-(2**63), -(2**63) + 1, 2**63 - 2, 2**63 - 1])
def test_what_is_composed_is_not_blamed_for_integers_that_wrap_on_the_way(past: int) -> None:
    """No target has this one of its own; what its definition counts is counted for it."""
    made = case("x: f32[1]", f"alibi_bias(x; queries = 1, keys = 1, past = {past})")
    lowered = lower(made.graph, "torch", builtin(), {})
    if lowered.unsupported:
        assert "64 bits" in lowered.unsupported[0]
        return
    pytest.importorskip("torch", reason="torch is not installed")
    with Session(("torch",)) as session:
        whole = Case(made.graph, {"x": np.ones(1, np.float32)}, {}, builtin())
        (outcome,) = session.compare([whole])
    assert {v.verdict for v in outcome.verdicts["torch"]} == {"agrees"}


@pytest.mark.parametrize("shift", [2**63, 2**64 + 1, -(2**63) - 1, 2**63 - 1, 5])
def test_what_is_composed_is_not_blamed_for_integers_of_more_than_64_bits(shift: int) -> None:
    """ONNX has no operator for it: the definition's own places are counted out."""
    made = case("x: f32[3]", f"roll(x; shift = {shift})")
    lowered = lower(made.graph, "onnxruntime", builtin(), {})
    if lowered.unsupported:
        assert "64 bits" in lowered.unsupported[0]
        assert abs(shift) >= 2**63 - 2
        return
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    with Session(("onnxruntime",)) as session:
        whole = Case(made.graph, {"x": np.arange(3, dtype=np.float32)}, {}, builtin())
        (outcome,) = session.compare([whole])
    assert {v.verdict for v in outcome.verdicts["onnxruntime"]} == {"agrees"}
