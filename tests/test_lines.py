"""Values that keep to what is asked of whole lines of a tensor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irlang.catalog import builtin
from irlang.diagnostics import InvalidInput
from irlang.diff.apart import cases_apart
from irlang.diff.calls import Case
from irlang.diff.promised import documented, ruled_out
from irlang.gen.build import generate
from irlang.gen.lines import in_line
from irlang.interp.program import run
from irlang.interp.values import initial_values, inputs
from tests.lower_calls import case

_CALL = "categorical_cross_entropy(x, t; axis = {})"
_TYPES = "x: f32[3, 2], t: f32[3, 2]"


@pytest.mark.parametrize("axis", [0, 1])
def test_what_breaks_a_condition_on_lines_is_arranged_along_their_axis(axis: int) -> None:
    graph = case(_TYPES, _CALL.format(axis)).graph
    rows = documented(["tf"])
    drawn = np.array([[np.nan, -4.0], [np.inf, 0.3], [-2.0, 1e30]], np.float32)
    values = {"x": drawn, "t": drawn}
    lone = 0
    for seed in range(12):
        found = in_line(graph, values, rows, builtin(), seed)
        assert found["x"] is drawn  # nothing is said of it
        assert found["t"].dtype == np.float32
        assert np.all(found["t"] >= 0)
        np.testing.assert_allclose(found["t"].sum(axis=axis), 1, rtol=1e-6)
        assert found == in_line(graph, found, rows, builtin(), seed)  # it stays what it is
        lone += bool(np.all((found["t"] == 0) | (found["t"] == 1)))
    assert 0 < lone < 12  # a single 1 in every line, or shares


def test_values_that_no_condition_speaks_of_stay() -> None:
    graph = case(_TYPES, _CALL.format(1)).graph
    values = {name: np.full((3, 2), 7, np.float32) for name in ("x", "t")}
    assert in_line(graph, values, {}, builtin(), 0) == values
    assert in_line(graph, values, documented(["torch"]), builtin(), 0)["x"] is values["x"]


@pytest.mark.parametrize("grad", [False, True])
def test_most_calls_apart_keep_to_what_is_documented(grad: bool) -> None:
    """Of 175 of values 8 did before, and of 34 with gradients none."""
    name, asked = "categorical_cross_entropy", documented(["tf"])
    drawn = cases_apart(builtin(), 1, 0, [name], grad, 12, native=[name], asked=asked)
    made = [one for *_, one in drawn]
    judged = [one for one in made if one.balls is not None]
    kept = [one for one in judged if not ruled_out(one.graph, one, one.balls or {}, "tf")]
    assert len(kept) >= 0.6 * len(judged) > 0


@pytest.mark.parametrize("kind", ["divide", "multiply"])
def test_a_division_by_nothing_that_is_refused_on_purpose_has_no_verdict(kind: str) -> None:
    call = f"sparse_dense_arithmetic(i, v, d; rows = 1, columns = 1, kind = {kind})"
    graph = case("i: i64[1, 2] in [0, 0], v: f32[1], d: f32[1]", call).graph
    for divisor in (0.0, 2.0):
        given = {**inputs(graph, 0), "d": np.array([divisor], np.float32)}
        said = ruled_out(graph, Case(graph, given, {}, builtin()), {}, "tf")
        assert ("SparseDenseCwiseDiv" in said) == (kind == "divide" and divisor == 0)


_STITCHED = "v: f32[5], i: i64[5, 2] in [0, 3]", "sparse_to_dense(i, v; rows = 4, columns = 4)"
_SEGMENTS = (
    "x: f32[4, 2], i: i64[6] in [0, 3], s: i64[6] in [0, 2]",
    "sparse_segment_reduce(tanh(x), i, s; segments = 3)",
)


@pytest.mark.parametrize(("types", "call"), [_STITCHED, _SEGMENTS])
def test_what_a_definition_wants_in_order_is_put_in_order(types: str, call: str) -> None:
    one = case(types, call)
    broken = 0
    for seed in range(8):
        drawn = inputs(one.graph, seed)
        try:
            run(one.graph, drawn, builtin())
        except InvalidInput:
            broken += 1
        found = in_line(one.graph, drawn, {}, builtin(), seed)
        run(one.graph, found, builtin())  # raises where places do not ascend
        for name, port in one.graph.inputs.items():
            low, high = port.within or (-np.inf, np.inf)
            assert np.all((low <= found[name]) & (found[name] <= high))
            assert found[name].dtype == drawn[name].dtype
    assert broken > 4


@pytest.mark.parametrize("name", ["sparse_to_dense", "sparse_reduce", "sparse_softmax"])
def test_places_that_ascend_strictly_are_several(name: str) -> None:
    several = 0
    for seed in range(20):
        graph = generate(builtin(), seed, ops=[name]).graph
        drawn = {**inputs(graph, seed), **initial_values(graph, seed)}
        kept = in_line(graph, drawn, {}, builtin(), seed)
        own = {at for node in graph.nodes if node.op.name == name for at in node.feeds().values()}
        several += any(len(kept[at]) > 1 for at in own & kept.keys())
    assert several >= 10


def test_parts_begin_at_the_first_place_and_end_at_the_last() -> None:
    declared = "n: i64[3] in [0, 4], x: i32[4]"
    graph = case(declared, "ragged_bincount(n, x; size = 2)").graph
    drawn: dict[str, np.ndarray[Any, np.dtype[Any]]] = {
        "n": np.array([3, 2, 1], np.int64), "x": np.zeros(4, np.int32)
    }  # fmt: skip
    assert in_line(graph, drawn, {}, builtin(), 0)["n"].tolist() == [0, 2, 4]
