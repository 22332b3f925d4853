"""What leaves the range of its type: known by itself, unknown wherever it is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irlang import equations as eq
from irlang.catalog import builtin
from irlang.diagnostics import InvalidInput
from irlang.diff.verdict import judge
from irlang.dtypes import DTYPES
from irlang.graph import Node
from irlang.interp import exact, rounding
from irlang.interp.balls import Ball, Balls
from irlang.interp.draws import feeds
from irlang.interp.plain import load
from irlang.interp.program import balls, call_precision, node_balls
from irlang.interp.shape import check
from irlang.parser import parse
from tests.lower_calls import Case, calls, case

NAN, INF = math.nan, math.inf
# What overflows by itself, in squares, in sums, in exponentials, or in none of these.
HUGE = {
    "f64": (1e308, -1e308, 9e307, 5e9, 1e200, -1e200, 1e160, 710.0, -800.0, 1e-200),
    "f32": (3e38, -3e38, 1e25, -1e25, 5e9, 1000.0, 100.0, -1e4, 1e-30),
}
TAME = (1.0, 0.0, -2.0, 3.0)


def _drawn(made: Case, dtype: str, seed: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    found = {}
    for name, array in {**made.inputs, **made.params}.items():
        info = made.graph.values[name]
        if info.kind == "real" and array.size:
            where = random.random(array.shape) < random.choice([0.2, 0.6, 1.0])
            numbers = random.choice((*HUGE[dtype], *TAME), size=array.shape)
            array = np.where(where, numbers, array).astype(array.dtype)
        found[name] = load(info, array)
    return found


def _wrong(ball: Ball, true: Sequence[Any], largest: float) -> list[tuple[Any, float, float]]:
    """Elements of which something is said that is not so: the true number, value and radius."""
    value = np.ravel(ball.value)
    radius = np.ravel(np.broadcast_to(np.asarray(ball.bound, np.float64), np.shape(ball.value)))
    beyond = np.zeros(value.shape, bool) if ball.beyond is None else np.ravel(ball.beyond)
    found = []
    for number, got, reach, over in zip(true, value, radius, beyond, strict=True):
        if over:
            right = abs(number) > largest and (number > 0) == (got > 0)
        elif not math.isfinite(reach):
            continue
        elif mpmath.isnan(number):
            right = math.isnan(got)
        elif mpmath.isinf(number):
            right = got == float(number)
        else:
            own = mpmath.mpf(2) ** -52 * abs(number) + mpmath.mpf(float(reach)) * 2.0**-20
            right = bool(abs(number - mpmath.mpf(float(got))) <= reach + own)
        if not right:
            found.append((number, float(got), float(reach)))
    return found


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("part", range(8))
def test_nothing_is_said_of_huge_numbers_that_is_not_so(dtype: str, part: int) -> None:
    """Held to arithmetic in which nothing overflows."""
    held = 0
    for declared, call in calls()[part::8]:
        made = case(declared, call, dtype)
        (node,) = made.graph.nodes
        expansion = node.expansion(made.catalog)
        if expansion.is_open:
            continue
        given = feeds(node, expansion, _drawn(made, dtype, part))
        try:
            balls = rounding.evaluate(
                expansion, {n: Ball(a) for n, a in given.items()}, call_precision(expansion, dtype)
            )
            true = exact.evaluate(expansion, given, limit=10_000)
        except InvalidInput:  # a precondition on values, or too much work
            continue
        for name, info in ((name, expansion.tensors[name]) for name in expansion.outputs):
            if info.kind == "real":
                largest = DTYPES[info.dtype].largest
                assert not _wrong(balls[name], true[name].values, largest), call
                held += int(np.isfinite(np.asarray(balls[name].bound)).sum())
    assert held > 100


@pytest.mark.parametrize(
    ("declared", "call", "x"),
    [
        ("x: f64[3], t: f64[3]", "cross(x, t)", {"x": [9e307, 1, 1], "t": [1, 1, 5e9]}),
        ("x: f64[2]", "reduce_l2(x)", {"x": [1e308, 1]}),
        ("x: f64[2]", "normalize(x)", {"x": [1e308, 1]}),
        (
            "x: f64[2, 2], t: f64[2, 1]",
            "triangular_solve(x, t)",
            {"x": [[1, 0], [1e308, 1e300]], "t": [[1e10], [1]]},
        ),
        # elimination adds 1.5e308 to itself
        (
            "x: f64[2, 2], t: f64[2, 1]",
            "solve(x, t)",
            {"x": [[2, -1], [-1, 1]], "t": [[1.5e308], [0]]},
        ),
        ("x: f64[1]", "sinc(x)", {"x": [1e308]}),
        ("x: f64[1]", "softplus(x; beta = 2)", {"x": [1e308]}),
    ],
)
def test_an_overflow_on_the_way_says_nothing(
    declared: str, call: str, x: dict[str, list[Any]]
) -> None:
    made = case(declared, call, "f64")
    made.inputs.update({name: np.array(array, np.float64) for name, array in x.items()})
    (ball,) = made.oracle().values()
    assert np.isinf(ball.bound).any()
    known = np.isfinite(ball.value)
    assert np.all(np.isinf(np.broadcast_to(ball.bound, np.shape(ball.value))) | known)


CALLS = [
    ("multiply(x, x)", 1e200, INF),
    ("multiply(x, negate(x))", 1e200, -INF),
    ("exp(x)", 1000.0, INF),
    ("sinh(x)", -1000.0, -INF),
    ("square(x)", -1e300, INF),
    ("power(x, x)", 1e10, INF),
]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize(("call", "x", "value"), CALLS)
def test_one_operation_that_overflows_is_infinite(
    dtype: str, call: str, x: float, value: float
) -> None:
    x = math.copysign(min(abs(x), 1e30), x) if dtype == "f32" else x
    made = case("x: f32[1]", call, dtype)
    made.inputs["x"] = np.array([x], DTYPES[dtype].numpy)
    ball = list(made.oracle().values())[-1]
    assert np.isinf(ball.bound).all()  # whoever reads it may have fused it
    info = eq.TensorInfo((1,), dtype)
    for got, verdict in ((value, "agrees"), (NAN, "nonfinite"), (1e30, "nonfinite")):
        assert judge("y", "t", info, ball, np.array([got], DTYPES[dtype].numpy)).verdict == verdict


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize(("call", "x", "value"), CALLS)
def test_what_reads_an_overflow_is_unknown(dtype: str, call: str, x: float, value: float) -> None:
    x = math.copysign(min(abs(x), 1e30), x) if dtype == "f32" else x
    made = case("x: f32[1]", f"subtract({call}, x)", dtype)
    made.inputs["x"] = np.array([x], DTYPES[dtype].numpy)
    ball = list(made.oracle().values())[-1]
    for got in (value, NAN, 1.0):
        found = judge(
            "y", "t", eq.TensorInfo((1,), dtype), ball, np.array([got], DTYPES[dtype].numpy)
        )
        assert found.verdict == "unstable"


@pytest.mark.parametrize(
    ("call", "x", "value"),
    [
        ("log(x)", 0.0, -INF),
        ("reciprocal(x)", 0.0, INF),
        ("lgamma(x)", -3.0, INF),
        ("atanh(x)", 1.0, INF),
        ("rsqrt(x)", 0.0, INF),
    ],
)
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_a_pole_is_no_overflow(dtype: str, call: str, x: float, value: float) -> None:
    made = case("x: f32[1]", call, dtype)
    made.inputs["x"] = np.array([x], DTYPES[dtype].numpy)
    (ball,) = made.oracle().values()
    assert not np.any(ball.bound)
    assert np.ravel(ball.value).tolist() == [value]


@pytest.mark.parametrize("call", ["exp(x)", "cosh(x)", "multiply(x, x)", "log(x)", "squareplus(x)"])
def test_kernels_say_the_same(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = case("x: f64[4096]", call, "f64")
    (node,) = made.graph.nodes
    x = np.resize(np.array([1e200, -800.0, 0.0, 1.5, 1e308, INF, NAN]), 4096)

    def told(node: Node) -> Ball:
        (ball,) = node_balls(node, {"x": Ball(x)}, made.catalog, "f64").values()
        return ball

    plain = told(node)
    monkeypatch.setattr(rounding, "_NEST", 0)
    compiled = told(node)
    assert np.array_equal(plain.value[:7], compiled.value[:7], equal_nan=True)
    assert np.isinf(plain.bound).tolist() == np.isinf(compiled.bound).tolist()


def test_zero_has_no_inverse_but_infinity() -> None:
    made = case("x: f64[2], n: f64[2]", "power(x, n)", "f64")
    made.inputs.update(x=np.array([0.0, 1e-300]), n=np.array([-2.0, -2.0]))
    (ball,) = made.oracle().values()
    assert np.ravel(ball.value).tolist() == [INF, INF]
    assert np.isinf(ball.bound).tolist() == [False, True]  # the second is an overflow


def test_whether_a_doubtful_place_is_outside_is_in_doubt() -> None:
    """A corner, times the size less one: that overflows, but a program may multiply elsewhere."""
    declared = "x: f64[1, 1, 4, 4], r: f64[1, 4], b: i32[1] in [0, 0]"
    call = "crop_and_resize(x, r, b; size = [2, 1], mode = nearest, extrapolation = 2)"
    made = case(declared, call, "f64")
    made.inputs["r"] = np.array([[0.25, 0.9, 9e307, 1e-200]])
    (ball,) = made.oracle().values()
    assert np.isinf(ball.bound).any()
    domain = Balls("f64")
    places = [Ball(np.array([5, 5, 1]), np.array([2.0, 3.0, 0.0]))]
    told = domain.within(np.array([False, False, True]), places, (4,))
    assert np.asarray(told.bound).tolist() == [1.0, 1.0, 0.0]
    told = domain.within(np.array([False, False, True]), places, (3,))
    assert np.asarray(told.bound).tolist() == [0.0, 1.0, 0.0]


_LARGE = st.builds(lambda n: float(np.float32(n * 2.0**120)), st.integers(-255, 255))
_FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False) | _LARGE
BIASED = "model m(x: f32[1, 2], w: f32[2, 1], b: f32[1]) -> y: f32[1, 1] { y = dense(x, w, b) }"


@given(
    finite=_FLOATS,
    bias=_FLOATS,
    infinite=st.sampled_from([np.inf, -np.inf]),
)
def test_an_infinite_term_is_the_sum_unless_the_others_and_the_bias_overflow_first(
    finite: float, bias: float, infinite: float
) -> None:
    graph = check(parse(BIASED), builtin()).graphs[0]
    values = {
        "x": np.array([[finite, infinite]], np.float32),
        "w": np.ones((2, 1), np.float32),
        "b": np.array([bias], np.float32),
    }
    found = balls(graph, values, builtin(), "f32")["y"]
    with np.errstate(over="ignore", invalid="ignore"):
        before = np.float32(finite) + np.float32(bias)
        orders = {str(before + np.float32(infinite)), str(np.float32(infinite))}
    known = np.isfinite(np.asarray(found.bound)).all()
    if len(orders) > 1:
        assert not known
    if abs(finite) + abs(bias) < 1e38:
        assert known
        assert np.asarray(found.value).item() == infinite


def test_an_infinity_leaves_what_is_not_made_of_it_as_it_is() -> None:
    """A sum of products of three may overflow on its way, but not by what it does not read."""
    weights = Ball(np.array([[[0.25, 0.75]]]), np.array([[[1e-8, 1e-8]]]))
    x = Ball(np.array([[[np.inf, 1.0]], [[2.0, 1.0]]]))
    with np.errstate(invalid="ignore"):
        found = Balls("f32").contract([x, weights, weights], 2)
    assert np.isinf(found.value[0])
    assert found.bound[1] < 1e-6
