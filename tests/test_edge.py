"""Programs that are fed with values at the edges of their types."""

from __future__ import annotations

import numpy as np
import pytest

import irlang
from irlang.arithmetic import STANDARD, Arithmetic, half
from irlang.catalog import builtin
from irlang.diff.calls import Case, judge_call
from irlang.diff.programs import EDGE, fed, make_case, program_seed
from irlang.diff.promised import ruled_out
from irlang.diff.runner import Session
from irlang.diff.verdict import at_edge, judge
from irlang.diff.weighing import differentiated
from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.expand import expand
from irlang.gen.build import generate
from irlang.gen.edge import Kinds, with_edges, with_edges_apart
from irlang.graph import Graph, Port
from irlang.instance import instantiate
from irlang.interp import program, rounding
from irlang.interp.balls import Ball
from irlang.interp.first_order import FirstOrder
from irlang.interp.gradient import gradient_balls
from irlang.interp.program import balls, given_ball
from irlang.interp.values import initial_values, inputs
from irlang.scalar import SCALARS
from tests import lower_calls
from tests.lower_calls import case


def test_edges_are_reached_and_integers_stay_in_range() -> None:
    seen: set[str] = set()
    for seed in range(120):
        graph = generate(builtin(), seed, size=(1, 4)).graph
        ports = dict(graph.inputs)
        plain = inputs(graph, seed)
        found = with_edges(graph, plain, seed)
        assert found.keys() == plain.keys()
        for name, array in found.items():
            assert array.dtype == plain[name].dtype
            assert array.shape == plain[name].shape
            info = ports[name].info
            if info.kind == "int" and ports[name].within is not None:
                low, high = ports[name].within  # type: ignore[misc]
                assert np.all((array >= low) & (array <= high))
            if info.kind == "real" and array.size:
                assert graph.inputs[name].within is None  # what is there may be anything
                values = array.astype(np.float64)
                seen |= {"nan"} if np.isnan(values).any() else set()
                seen |= {"inf"} if np.isinf(values).any() else set()
                seen |= {"-0"} if (np.signbit(values) & (values == 0)).any() else set()
    assert seen == {"nan", "inf", "-0"}


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_an_exponential_overflows_where_half_of_it_does_not(dtype: str) -> None:
    """So do those inside of a hyperbolic sine, or of a Bessel function, whose value is finite."""
    model = irlang.loads(f"nnir 1\nmodel m(x: {dtype}[64]) -> y: {dtype}[64] {{ y = sinh(x) }}\n")
    graph, largest = model.graph, DTYPES[dtype].largest
    values = {"x": np.zeros(64, DTYPES[dtype].numpy)}
    met = 0
    for seed in range(300):
        found = with_edges_apart(graph, values, seed)["x"].astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            met += bool(((np.exp(found) > largest) & (np.sinh(found) < largest)).any())
    assert met > 3


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_what_a_search_begins_with_stands_beside_what_is_nearest_to_it(sign: float) -> None:
    """The largest of -inf and the least finite number is the second, wherever it is."""
    graph, infinity = Graph("m"), sign * np.inf
    graph.inputs["x"] = Port(graph.values.setdefault("x", TensorInfo((3, 4), "f32")), (-1.0, 1.0))
    largest = sign * float(np.finfo(np.float32).max)
    met = 0
    for seed in range(400):
        plain = {"x": np.zeros((3, 4), np.float32)}
        rows = with_edges_apart(graph, plain, seed, mixed=bool(seed % 2))["x"]
        met += any(set(row.tolist()) == {infinity, largest} for row in rows)
    assert met >= 12


def test_the_share_of_such_programs_is_the_stated_one() -> None:
    seeds = [program_seed(7, number) for number in range(60)]
    cases = [make_case(builtin(), seed, ("tanh", "relu")) for seed in seeds]
    made = [(seed, case) for seed, case in zip(seeds, cases, strict=True) if case is not None]
    assert all(case.edge == (seed // 8 % EDGE == 0) for seed, case in made)
    assert {case.edge for _, case in made} == {True, False}


@pytest.mark.parametrize(
    ("expected", "got", "verdict"),
    [
        (np.nan, np.nan, "agrees"),
        (np.nan, 0.0, "edge"),
        (np.inf, np.float32(3.4e38), "edge"),
        (0.0, np.nan, "edge"),
        (1.0, 2.0, "edge"),
    ],
)
def test_a_disagreement_there_has_a_class_of_its_own(
    expected: float, got: float, verdict: str
) -> None:
    info = TensorInfo((1,), "f32")
    port = Port(info)
    judged = judge("y", "t", port.info, Ball(np.array([expected])), np.array([got], np.float32))
    assert at_edge(judged.verdict) == verdict


NAN, INF = np.nan, np.inf
LEAST, MOST = -(2**63), 2**63 - 1


@pytest.mark.parametrize(
    ("declared", "call", "x", "open_"),
    [
        ("x: f32[2, 3]", "argmax(x)", [[1, NAN, 2], [1, INF, 2]], [True, False]),
        ("x: f32[2, 3]", "argmin(x)", [[1, NAN, 2], [1, -INF, 2]], [True, False]),
        ("x: f32[2, 2]", "hardmax(x)", [[1, NAN], [1, 2]], [[True] * 2, [False] * 2]),
        ("x: f32[1, 1, 4]", "max_pool(x; window = 2)", [[[NAN, 1, 2, INF]]], [[[True, False]]]),
        ("x: f32[1, 1, 4]", "max_pool(x; window = 2)", [[[NAN, NAN, 2, INF]]], [[[False, False]]]),
        ("x: f32[1, 2, 2]", "global_max_pool(x)", [[[NAN, 1], [2, 1]]], [[True, False]]),
        ("x: f32[1, 2, 2]", "global_max_pool(x)", [[[NAN, NAN], [2, 1]]], [[False, False]]),
        (
            "x: f32[1, 1, 4]",
            "adaptive_max_pool(x; size = 2)",
            [[[NAN, 1, 2, INF]]],
            [[[True, False]]],
        ),
        (
            "x: f32[1, 1, 4]",
            "adaptive_max_pool(x; size = 2)",
            [[[NAN, NAN, 2, INF]]],
            [[[False, False]]],
        ),
        ("x: f32[2, 3]", "reduce_max(x; axes = 1)", [[1, NAN, 2], [1, INF, 2]], [False, False]),
        ("x: u8[2, 2]", "reduce_prod(x; axes = 1)", [[16, 16], [15, 17]], [True, False]),
        ("x: i64[3]", "power(x, x)", [3, 15, 16], [False, False, True]),
        ("x: i64[2, 2]", "reduce_mean(x; axes = 1)", [[MOST, 1], [LEAST, MOST]], [True, False]),
    ],
)
def test_what_no_specification_says_is_open(
    declared: str, call: str, x: list[object], open_: list[object]
) -> None:
    made = case(declared, call)
    made.inputs["x"] = np.array(x, made.inputs["x"].dtype)
    (ball,) = made.oracle().values()
    found = np.isinf(np.broadcast_to(ball.bound, np.shape(ball.value)))
    assert found.tolist() == open_


@pytest.mark.parametrize(
    ("call", "open_"),
    [
        ("one_hot(x; depth = 2, off = -1, to = u8)", True),
        ("one_hot(x; depth = 2, on = 256, to = u8)", True),
        ("one_hot(x; depth = 2, on = 255.9, off = -0.9, to = u8)", False),
        ("one_hot(x; depth = 2, off = -1, to = i8)", False),
        ("full(; shape = [2], value = 300, to = u8)", True),
        ("full(; shape = [2], value = -128, to = i8)", False),
        ("arange(; start = -2, stop = 0, to = u8)", True),
        ("arange(; start = 126, stop = 128, to = i8)", False),
    ],
)
def test_a_number_beyond_a_type_of_integers_is_open(call: str, open_: bool) -> None:
    """JAX has 0 for -1 in u8, others 255."""
    made = case("x: i64[1]", call)
    made.inputs["x"] = np.zeros(1, np.int64)
    (ball,) = made.oracle().values()
    assert bool(np.isinf(np.broadcast_to(ball.bound, np.shape(ball.value))).any()) == open_


def test_the_place_of_a_nan_is_open_where_another_is_in_order() -> None:
    made = case("x: f32[2, 3]", "kth_value(x; k = 3)")
    made.inputs["x"] = np.array([[1, NAN, 2], [3, 1, 2]], np.float32)
    _, at = made.oracle().values()
    assert np.isinf(at.bound).tolist() == [True, False]


def test_denormal_numbers_may_be_equal_to_one_another() -> None:
    """A target that compares them as zeros gives any of several as the largest."""
    info = TensorInfo((3,), "f32")
    x = np.array([-1e-39, 1e-39, -2e-38])  # the last one is a normal number
    op = builtin().op("reduce_max")
    assert op is not None
    expansion = expand(instantiate(op, {"x": info}, {}), builtin())
    for own, allowed in ((STANDARD, True), (Arithmetic(flush=False), False)):
        found = rounding.evaluate(expansion, {"x": given_ball(info, x, own)}, "f32", own)
        (ball,) = (found[name] for name in expansion.outputs)
        for other in (-1e-39, 0.0):
            assert (abs(other - ball.value) <= ball.bound) == allowed
        assert not abs(-2e-38 - ball.value) <= ball.bound


def test_one_exponent_for_all_is_an_exponent_like_others() -> None:
    """IEEE 754-2019, 9.2.1: pow(-inf, y) is +inf and pow(-0, y) is +0 for y > 0, no odd integer."""
    base = np.array([-np.inf, -0.0, np.inf, 0.25])
    one = SCALARS["pow"].numpy(base, np.float64(0.5))
    several = SCALARS["pow"].numpy(base, np.full(4, 0.5))
    assert one.tolist() == several.tolist() == [np.inf, 0.0, np.inf, 0.5]
    assert not np.signbit(one[1])


@pytest.mark.parametrize(("a", "b"), [(0.0, NAN), (NAN, 0.0), (1.0, NAN), (NAN, NAN)])
def test_a_hypotenuse_beside_nan_is_nan(a: float, b: float) -> None:
    """But for an infinite one, which is infinite whatever the other is."""
    made = lower_calls.case("a: f32[1], b: f32[1]", "hypot(a, b)")
    for one, other, right in ((a, b, NAN), (np.inf, b, np.inf), (a, -np.inf, np.inf)):
        fed = {"a": np.full(1, one, np.float32), "b": np.full(1, other, np.float32)}
        (value,) = (program.run(made.graph, fed, builtin())[n] for n in made.graph.outputs.values())
        assert np.array_equal(value, [right], equal_nan=True)


@pytest.mark.parametrize("size", [2, 4096])  # the second is computed by a compiled kernel
@pytest.mark.parametrize(
    ("call", "x", "value"),
    [
        ("gelu(x)", INF, INF),  # 0.5 * x is infinite, and 1 + erf(x) surely not zero
        ("selu(x)", INF, INF),
        ("hard_tanh(x)", NAN, NAN),
        ("tanh_shrink(x)", NAN, NAN),
        ("softsign(x)", NAN, NAN),
        ("mish(x)", INF, INF),
        ("reduce_logsumexp(x)", -INF, -INF),  # not log of what may be flushed to 0, or not
        ("logcumsumexp(x)", -INF, -INF),
    ],
)
def test_what_is_surely_infinite_or_no_number_stays_known(
    call: str, x: float, value: float, size: int
) -> None:
    made = case(f"x: f32[{size}]", call)
    made.inputs["x"] = np.full(size, x, np.float32)
    (ball,) = made.oracle().values()
    assert np.array_equal(np.broadcast_to(ball.value, size), np.full(size, value), equal_nan=True)
    assert not np.any(np.isinf(ball.bound) | np.isnan(ball.bound))


@pytest.mark.parametrize(
    ("call", "x"),
    [(f"{name}(x)", NAN) for name in ("sign", "floor", "ceil", "round", "trunc")]
    + [("exp2(x)", x) for x in (NAN, INF, -INF)],
)
def test_what_is_exact_is_known_beside_what_is_not(call: str, x: float) -> None:
    """A denormal number may be flushed to zero, so that the step of it is not known."""
    made = case("x: f32[3]", call)
    made.inputs["x"] = np.array([x, 1e-40, 0.3], np.float32)
    (ball,) = made.oracle().values()
    value, bound = np.broadcast_to(ball.value, 3), np.broadcast_to(ball.bound, 3)
    assert np.isnan(value[0]) == np.isnan(x)
    assert not np.isinf(bound[0])


@pytest.mark.parametrize(
    ("call", "x", "open_"),
    [
        ("soft_shrink(x)", [NAN, 1.0], [True, False]),
        ("hard_shrink(x)", [NAN, 1.0], [True, False]),
        ("thresholded_relu(x)", [NAN, 1.0], [True, False]),
        ("softmax(x)", [0.0, INF], [True, False]),
        ("log_softmax(x)", [0.0, INF], [True, False]),
        ("softmax(x)", [0.0, NAN], [False, False]),
        ("softmax(x)", [0.0, -INF], [False, False]),
    ],
)
def test_where_formulas_of_the_field_differ_there_is_no_verdict(
    call: str, x: list[float], open_: list[bool]
) -> None:
    made = case("x: f32[2]", call)
    made.inputs["x"] = np.array(x, np.float32)
    (ball,) = made.oracle().values()
    assert np.isinf(np.broadcast_to(ball.bound, 2)).tolist() == open_


def test_a_mean_of_nothing_is_nan_where_that_is_documented() -> None:
    """NumPy, PyTorch and TensorFlow have it; ONNX says that it is undefined."""
    made = case("x: f32[2, 0]", "reduce_mean(x; axes = [1])")
    made.inputs["x"] = np.zeros((2, 0), np.float32)
    found = made.oracle()
    (ball,) = found.values()
    assert np.isnan(np.broadcast_to(ball.value, 2)).all()
    assert not np.broadcast_to(ball.bound, 2).any()
    whole = Case(made.graph, made.inputs, made.params, made.catalog)
    for target, promises in (("torch", True), ("tf", True), ("onnxruntime", False)):
        assert (ruled_out(made.graph, whole, found, target) == "") == promises


def test_elimination_may_subtract_infinities() -> None:
    made = case("a: f32[2, 2], b: f32[2, 2]", "solve(a, b)")
    made.inputs["a"] = np.array([[2, 1], [1, 1]], np.float32)
    made.inputs["b"] = np.array([[1, INF], [1, 1]], np.float32)
    (ball,) = made.oracle().values()
    assert np.isinf(np.broadcast_to(ball.bound, (2, 2))).tolist() == [[False, True], [False, True]]


def test_an_element_that_overflows_may_be_subtracted_from_the_others() -> None:
    """Elimination takes 0 times the second element, which is infinite in f32, from the first.

    What is promised holds of any order of elimination, whose sums may be some times as large.
    """
    made = case("a: f32[2, 2], b: f32[2, 1]", "solve(a, b)")
    made.inputs["a"] = np.array([[1, 0], [-1, 1]], np.float32)
    for b, open_ in ((3e38, True), (5e37, False)):
        made.inputs["b"] = np.full((2, 1), b, np.float32)
        made._oracle = None
        (ball,) = made.oracle().values()
        assert np.isinf(np.ravel(ball.bound)).tolist() == [open_, open_]


@pytest.mark.parametrize(
    ("q", "k", "open_"), [(INF, -1, True), (NAN, 1, False), (1, NAN, False), (1, 2, False)]
)
def test_scores_of_minus_infinity_alone_may_count_as_none(q: float, k: float, open_: bool) -> None:
    """PyTorch gives zero, others NaN."""
    for call in ("attention(q, k, v)", "attention_scores(q, k)"):
        made = case("q: f32[1, 1, 1, 1], k: f32[1, 1, 2, 1], v: f32[1, 1, 2, 1]", call)
        made.inputs["q"] = np.full((1, 1, 1, 1), q, np.float32)
        made.inputs["k"] = np.full((1, 1, 2, 1), k, np.float32)
        (ball,) = made.oracle().values()
        assert np.isinf(ball.bound).all() == np.isinf(ball.bound).any() == open_


@pytest.mark.parametrize("size", [2, 4096])
@pytest.mark.parametrize("call", ["gelu(x)", "tanh_shrink(x)"])
def test_an_infinity_times_what_may_be_zero_is_unknown(call: str, size: int) -> None:
    made = case(f"x: f32[{size}]", call)
    made.inputs["x"] = np.full(size, -INF if call.startswith("gelu") else INF, np.float32)
    (ball,) = made.oracle().values()
    open_ = np.broadcast_to(np.isinf(ball.bound), size)
    assert open_.all() if call.startswith("gelu") else not open_.any()


@pytest.mark.parametrize("call", ["kth_value(x; k = 1)", "kth_value(x; k = 2)"])
def test_any_of_several_equals_may_be_the_one_that_a_gradient_flows_to(call: str) -> None:
    made = case("x: f32[3]", call)
    graph, catalog = differentiated(made.graph, builtin())
    weights = {name: np.ones((), np.float32) for name in graph.inputs if name != "x"}
    values = {"x": np.array([1, 2, 1], np.float32), **weights}
    ball = gradient_balls(graph, values, catalog)["x"]
    for flow in ([1, 0, 0], [0, 0, 1], [0.5, 0, 0.5]):
        assert np.all(np.abs(np.array(flow) - ball.value) <= ball.bound)
    assert not np.all(np.abs(np.array([0, 1, 0]) - ball.value) <= ball.bound)


@pytest.mark.parametrize(
    ("declared", "call", "given", "value"),
    [
        ("x: f32[3]", "reduce_sum(x)", {"x": [NAN, 1, 2]}, NAN),
        ("x: f32[3]", "reduce_mean(x)", {"x": [INF, 1, 2]}, INF),
        ("x: f32[3]", "reduce_mean(x)", {"x": [INF, -INF, 2]}, NAN),
        ("x: f32[2], t: f32[2]", "mse(x, t)", {"x": [NAN, 1], "t": [1, 2]}, NAN),
        ("x: f32[2], w: f32[2, 1]", "dense(x, w)", {"x": [INF, 1], "w": [[-1], [2]]}, -INF),
        ("x: f32[2], w: f32[2, 1]", "dense(x, w)", {"x": [1, 1], "w": [[NAN], [2]]}, NAN),
        (
            "x: f32[2], w: f32[2, 1], b: f32[1]",
            "dense(x, w, b)",
            {"x": [INF, 1], "w": [[1], [2]], "b": [-3]},
            INF,
        ),
    ],
)
def test_a_sum_that_is_surely_infinite_or_no_number_is_known(
    declared: str, call: str, given: dict[str, list[float]], value: float
) -> None:
    made = case(declared, call)
    made.inputs.update({n: np.array(a, np.float32) for n, a in given.items()})
    for ball in made.oracle().values():
        assert np.array_equal(np.ravel(ball.value), [value], equal_nan=True)
        assert not np.any(ball.bound)


@pytest.mark.parametrize("strange", [INF, NAN])
def test_of_what_meets_a_zero_nothing_is_known(strange: float) -> None:
    """A convolution may leave out its padding, or multiply it by the weight."""
    made = case("x: f32[1, 1, 2], w: f32[1, 1, 2]", "conv(x, w; pad = given, before = 1)")
    made.inputs |= {
        "x": np.array([[[1, 2]]], np.float32),
        "w": np.array([[[strange, 1]]], np.float32),
    }
    (ball,) = made.oracle().values()
    assert np.isinf(np.ravel(ball.bound)).tolist() == [True, False]


def test_what_may_overflow_the_other_way_first_says_nothing_of_a_sum() -> None:
    largest = np.finfo(np.float32).max
    made = case("x: f32[40]", "reduce_sum(x)")
    made.inputs["x"] = np.array([INF, *[-largest] * 39], np.float32)
    (ball,) = made.oracle().values()
    assert np.all(np.isinf(ball.bound))


def test_the_largest_of_some_integers_keeps_all_their_digits() -> None:
    made = case(
        "x: i64[3], ids: i64[3] in [0, 1]", "segment_reduce(x, ids; segments = 2, reduction = max)"
    )
    made.inputs["x"] = np.array([MOST, 3, MOST - 1])
    made.inputs["ids"] = np.array([0, 0, 1])
    (ball,) = made.oracle().values()
    assert np.asarray(ball.value).tolist() == [MOST, MOST - 1]
    assert not np.any(ball.bound)


@pytest.mark.parametrize(
    "call", ["attention(q, k, v; mask = m)", "attention_scores(q, k; mask = m)"]
)
def test_what_may_not_be_looked_at_may_be_added_to_minus_infinity(call: str) -> None:
    """PyTorch and ONNX add -inf to the product, others choose it in the product's place."""
    made = case("q: f32[1, 1, 1, 1], k: f32[1, 1, 3, 1], v: f32[1, 1, 3, 1], m: bool[3]", call)
    made.inputs |= {
        "q": np.full((1, 1, 1, 1), 1e30, np.float32),
        "m": np.array([True, False, True]),
    }
    for masked, open_ in ((INF, True), (NAN, True), (1e30, True), (-INF, False), (-2, False)):
        made.inputs["k"] = np.array([0, masked, 0], np.float32).reshape(1, 1, 3, 1)
        made._oracle = None
        (ball,) = made.oracle().values()
        assert np.isinf(ball.bound).all() == np.isinf(ball.bound).any() == open_, masked


@pytest.mark.parametrize(
    ("declared", "call", "given", "open_"),
    [
        (
            "x: f32[2], w: f32[1, 2, 2]",
            "einsum(x, w; labels = [0, 1, 2, 3], output = [3, 1])",
            {"x": [0, -INF], "w": [0, 1, 0, -0.009]},
            True,
        ),
        (
            "x: f32[1, 3], w: f32[0, 3, 0]",
            "einsum(x, w; labels = [0, 1, 2, 1, 2])",
            {"x": [0, 0, NAN]},
            True,
        ),
        (
            "x: f32[1, 3], w: f32[3, 2]",
            "einsum(x, w; labels = [0, 1, 1, 2])",
            {"x": [0, 1, INF], "w": [1, 1, 1, 1, 1, -1]},
            False,
        ),
    ],
)
def test_factors_may_be_added_up_before_they_are_multiplied(
    declared: str, call: str, given: dict[str, list[float]], open_: bool
) -> None:
    """PyTorch and TensorFlow sum what only one factor varies along by itself."""
    made = case(declared, call)
    for name, array in given.items():
        made.inputs[name] = np.array(array, np.float32).reshape(made.inputs[name].shape)
    (ball,) = made.oracle().values()
    assert np.isinf(ball.bound).all() == np.isinf(ball.bound).any() == open_


def test_some_tensors_have_equals_all_along_an_axis() -> None:
    """A row of nothing but -inf, a channel of one number: what is reduced is nothing else there."""
    graph = Graph("m", inputs={"x": Port(TensorInfo((4, 6), "f32"))})
    found = 0
    for seed in range(200):
        x = with_edges_apart(graph, {"x": np.linspace(0.1, 0.9, 24).reshape(4, 6)}, seed)["x"]
        rows = [line for line in (*x, *x.T) if np.all(line == line[0])]
        found += any(row[0] != 0 for row in rows)
    assert found > 20


@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_nothing_is_said_of_a_label_that_is_the_blank(reduction: str) -> None:
    """PyTorch's documentation rules it out; a label that does not count may be anything."""
    made = case(
        "x: f32[4, 3, 3], labels: i64[3, 2], steps: i64[3], lengths: i64[3]",
        f"ctc(x, labels, steps, lengths; reduction = {reduction})",
    )
    made.inputs["labels"] = np.array([[1, 2], [1, 0], [1, 0]])
    made.inputs["steps"] = np.array([4, 4, 4])
    made.inputs["lengths"] = np.array([2, 2, 1])
    (ball,) = made.oracle().values()
    open_ = np.isinf(ball.bound).tolist()
    assert open_ == ([False, True, False] if reduction == "none" else True)


def test_no_integer_stands_for_nan() -> None:
    made = case("x: f32[3], scale: f32[]", "fake_quantize(x, scale)")
    made.inputs |= {"x": np.array([NAN, 1, INF], np.float32), "scale": np.array(1, np.float32)}
    (ball,) = made.oracle().values()
    assert np.isinf(np.broadcast_to(ball.bound, 3)).tolist() == [True, False, False]


@pytest.mark.parametrize(("far", "open_"), [(INF, True), (NAN, True), (1e30, False)])
def test_what_lies_outside_an_image_may_be_a_factor_of_zero(far: float, open_: bool) -> None:
    call = "roi_align(x, rois, at; size = 1, sampling_ratio = 1)"
    made = case("x: f32[1, 1, 1, 2], rois: f32[1, 4], at: i64[1]", call)
    made.inputs["x"] = np.array([far, 0], np.float32).reshape(1, 1, 1, 2)
    made.inputs |= {"rois": np.full((1, 4), 5, np.float32), "at": np.array([0])}
    (ball,) = made.oracle().values()
    assert bool(np.isinf(ball.bound).all()) == open_


def test_an_infinite_scale_may_multiply_what_is_subtracted() -> None:
    made = case("x: f32[1, 2, 2], scale: f32[2]", "batch_norm_train(x, scale)")
    made.inputs["x"] = np.array([[[1, 0], [1, 0]]], np.float32)
    made.inputs["scale"] = np.array([1, INF], np.float32)
    ball, *_ = made.oracle().values()
    assert np.isinf(np.broadcast_to(ball.bound, (1, 2, 2)))[0, :, 0].tolist() == [False, True]


@pytest.mark.parametrize("name", ["ctc", "ctc_logits"])
@pytest.mark.parametrize("strange", [NAN, INF])
def test_no_logarithm_of_a_probability_is_infinite_or_no_number(name: str, strange: float) -> None:
    """A class that no alignment meets, or a step that does not count, may have anything."""
    options = "; reduction = none" if name == "ctc" else ""
    made = case(
        "x: f32[2, 4, 3], labels: i64[4, 1], steps: i64[4], lengths: i64[4]",
        f"{name}(x, labels, steps, lengths{options})",
    )
    x = np.zeros((2, 4, 3), np.float32)
    x[0, 1, 1] = x[1, 2, 1] = x[0, 3, 2] = strange
    made.inputs |= {"x": x, "labels": np.ones((4, 1), np.int64), "lengths": np.ones(4, np.int64)}
    made.inputs["steps"] = np.array([2, 2, 1, 2])
    (ball,) = made.oracle().values()
    assert np.isinf(ball.bound).tolist() == [False, True, False, name == "ctc_logits"]


@pytest.mark.parametrize(
    ("logit", "target", "open_"),
    [(INF, 0, True), (-INF, 1, True), (2, INF, True), (-1e4, -INF, True), (-1e4, 1, False)],
)
@pytest.mark.parametrize("reduction", ["none", "sum"])
def test_formulas_of_one_loss_differ_at_infinity(
    logit: float, target: float, open_: bool, reduction: str
) -> None:
    """PyTorch's and TensorFlow's, both documented: of (inf, 0) one is inf, the other NaN."""
    call = f"binary_cross_entropy_logits(x, t; reduction = {reduction})"
    made = case("x: f32[2], t: f32[2]", call)
    made.inputs["x"] = np.array([logit, 1], np.float32)
    made.inputs["t"] = np.array([target, 1], np.float32)
    (ball,) = made.oracle().values()
    found = np.isinf(ball.bound).tolist()
    assert found == ([open_, False] if reduction == "none" else open_)


def test_counts_made_of_reals_are_exact_with_half_of_the_digits() -> None:
    """A window of which corners are computed is known, so that -inf is no rounding of its least."""
    made = case("x: f32[1, 1, 2, 2], rois: f32[1, 5]", "max_roi_pool(x, rois; size = 1)")
    made.inputs["x"] = np.full((1, 1, 2, 2), -INF, np.float32)
    made.inputs["rois"] = np.array([[0, 0, 0, 1, 1]], np.float32)
    found = balls(made.graph, made.inputs, made.catalog, "f32", half(STANDARD))
    (name,) = made.graph.outputs.values()
    assert not np.any(found[name].bound)


@pytest.mark.parametrize(
    ("call", "open_"),
    [
        ("signbit(trunc(t))", [True, False, True]),
        ("reciprocal(negate(round(t)))", [True, False, True]),
        ("copysign(add(x, 2), reverse(multiply(round(t), 3); axes = 0))", [True, False, True]),
        ("copysign(x, modulo(x, 0.25))", [False, True, False]),
        ("equal(trunc(t), 0)", [False] * 3),
        ("add(trunc(t), 1)", [False] * 3),
    ],
)
def test_a_zero_that_rounding_may_leave_on_either_side_has_no_sign(
    call: str, open_: list[bool]
) -> None:
    kind = "bool" if call.startswith(("signbit", "equal")) else "f32"
    made = irlang.loads(f"""nnir 1
model m(x: f32[3]) -> y: {kind}[3] {{
  t = subtract(add(x, 1), 1)
  y = {call}
}}""")
    values = {"x": np.array([-1e-9, -0.25, 1e-9], np.float32)}
    values |= initial_values(made.graph, 0)
    found = balls(made.graph, values, made.catalog, "f32")["y"]
    wide = np.broadcast_to(np.asarray(found.bound) > 1e-6, 3)
    assert wide.tolist() == open_
    if kind == "bool":
        return
    closer = FirstOrder(made.graph, values, made.catalog, "f32")
    assert (closer.radius("y", np.arange(3)) > 1e-6).tolist() == open_


@pytest.mark.parametrize(
    ("target", "module"), [("tf", "tensorflow"), ("onnxruntime", "onnxruntime")]
)
def test_what_truncates_keeps_the_sign_of_a_zero(target: str, module: str) -> None:
    """Both have no operator for it."""
    pytest.importorskip(module, reason=f"{target} is not installed")
    made = irlang.loads("nnir 1\nmodel m(x: f32[5]) -> y: f32[5] { y = reciprocal(trunc(x)) }")
    x = np.array([-0.25, 0.25, -0.0, -1.5, NAN], np.float32)
    with Session([target]) as session:
        (outcome,) = session.compare([Case(made.graph, {"x": x}, {}, made.catalog)])
    assert outcome.verdicts[target][0].verdict == "agrees"


@pytest.mark.parametrize(("edge", "expected"), [(True, "nonfinite"), (False, "inaccurate")])
def test_an_overflow_is_no_loss_of_digits_at_an_edge(edge: bool, expected: str) -> None:
    """A formula that squares may overflow on its way: so much is excused of usual values alone."""
    made = irlang.loads("nnir 1\nmodel m(x: f32[8]) -> y: f32[] {\n  y = reduce_variance(x)\n}")
    x = np.zeros(8, np.float32)
    x[2] = 1.9e19
    with np.errstate(over="ignore"):
        got = np.mean(x * x) - np.square(np.mean(x))
    given = Case(made.graph, {"x": x}, {}, made.catalog, edge=edge)
    (node,) = made.graph.nodes
    (verdict,) = judge_call(given, node, {"x": x}, {"y": got}, "numpy")
    assert np.isinf(got)
    assert verdict.verdict == expected


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize(
    ("a", "b"),
    [(INF, INF), (-INF, INF), (INF, -INF), (0.0, -0.0), (-0.0, -1.0), (1.0, 0.0), (1e-20, -1.0)],
)
def test_angles_that_are_well_known_are_rounded_as_others_are(
    dtype: str, a: float, b: float
) -> None:
    """The last place of an angle is no implementation's duty, be it that of a diagonal."""
    made = irlang.loads(
        f"nnir 1\nmodel m(a: {dtype}[1], b: {dtype}[1]) -> y: {dtype}[1] {{ y = atan2(a, b) }}"
    )
    kind = np.dtype("f4" if dtype == "f32" else "f8")
    fed = {"a": np.array([a], kind), "b": np.array([b], kind)}
    case, (node,) = Case(made.graph, fed, {}, made.catalog, edge=True), made.graph.nodes
    right = np.arctan2(np.array([a]), np.array([b])).astype(kind)
    for got, expected in (
        (np.nextafter(right, kind.type(0)), "agrees"),
        (right, "agrees"),
        (right * kind.type(1 + 40 * np.finfo(kind).eps), "inaccurate"),
    ):
        (verdict,) = judge_call(case, node, fed, {"y": got.astype(kind)}, "numpy")
        assert verdict.verdict == expected


def test_edges_of_several_inputs_meet_where_all_calls_go_by_elements() -> None:
    """Infinity times a, plus infinity times b, is NaN where a and b differ in sign, and infinite
    where they were added up before: a place needs three numbers.
    """
    ports = "a: f32[7, 29], b: f32[7, 29], x: f32[7, 29]"
    graph = case(ports, "add(multiply(x, a), multiply(x, b))").graph
    met = 0
    for number in range(8):
        made = fed(graph, builtin(), number * 8, False, True, lambda _: True)
        assert made is not None
        a, b, x = (made.inputs[name] for name in "abx")
        with np.errstate(all="ignore"):
            apart, whole = x * a + x * b, x * (a + b)
        met += bool(np.any(np.isnan(apart) & np.isinf(whole)))
    assert met >= 4


def test_a_third_operand_is_at_edges_in_many_places() -> None:
    graph = case("a: f32[200], b: f32[200], x: f32[200]", "addcmul(x, a, b)").graph
    values = {name: np.zeros(200, np.float32) for name in graph.inputs}
    found = with_edges_apart(graph, values, 3, crossing=[tuple(graph.inputs)])
    for array in found.values():
        assert len(np.unique(array)) >= 12  # NaN is one


@pytest.mark.parametrize("kinds", ["all", "finite"])
def test_numbers_whose_squares_overflow_meet_usual_ones(kinds: Kinds) -> None:
    """Where quotients of the two, or their logarithms, do not: a slope of atan2 at 1e20 and 2."""
    graph = case("a: f32[16, 16], b: f32[16, 16]", "atan2(a, b)").graph
    values = {name: np.zeros((16, 16), np.float32) for name in graph.inputs}
    found = with_edges_apart(graph, values, 3, kinds=kinds, crossing=[tuple(graph.inputs)])
    pairs = set(zip(found["a"].ravel().tolist(), found["b"].ravel().tolist(), strict=True))
    wide, narrow = (float(np.float32(number)) for number in (1e20, 1e-20))
    assert {(wide, 2.0), (2.0, wide), (narrow, 1.0), (wide, narrow)} <= pairs
