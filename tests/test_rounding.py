"""Radii hold: float32 evaluations in shuffled orders, and exact values, lie inside them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import irlang
from irlang import equations as eq
from irlang.adjoint import adjoint
from irlang.arithmetic import STANDARD, half
from irlang.catalog import builtin
from irlang.diagnostics import InvalidInput
from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.expand import expand
from irlang.gen.build import generate
from irlang.graph import Graph
from irlang.instance import instantiate
from irlang.interp import exact, reference, rounding, vector
from irlang.interp.ball_functions import BallFunctions
from irlang.interp.balls import Ball, Balls
from irlang.interp.draws import feeds
from irlang.interp.plain import load
from irlang.interp.program import balls, precision, run
from irlang.interp.values import initial_values, inputs
from tests.narrow import Narrow

CATALOG = builtin()
Array = Any


def _program(seed: int) -> tuple[Graph, dict[str, Array], dict[str, Ball]]:
    made = generate(CATALOG, seed, size=(1, 6))
    values = {**inputs(made.graph, seed), **initial_values(made.graph, seed)}
    try:
        return made.graph, values, balls(made.graph, values, CATALOG, precision(made.graph))
    except InvalidInput as error:
        pytest.skip(f"the drawn values violate a precondition: {error}")


def outside(ball: Ball, got: Array) -> Array:
    """Where what was computed is farther off than the radius allows."""
    value = np.asarray(ball.value, dtype=np.float64)
    radius = np.broadcast_to(np.asarray(ball.bound, dtype=np.float64), value.shape)
    got = np.asarray(got, dtype=np.float64).reshape(value.shape)
    with np.errstate(invalid="ignore"):
        near = np.abs(got - value) <= radius
    return ~(near | np.isinf(radius) | (got == value) | (np.isnan(got) & np.isnan(value)))


@pytest.mark.parametrize("seed", range(150))
def test_single_precision_in_any_order_stays_inside(seed: int) -> None:
    graph, values, found = _program(seed)
    single = Narrow(seed)
    computed: dict[str, Array] = {n: load(graph.values[n], v) for n, v in values.items()}
    for node in graph.nodes:
        expansion = node.expansion(CATALOG)
        tensors = vector.evaluate(expansion, feeds(node, expansion, computed), single)
        for formal, name in node.results().items():
            computed[name] = tensors[formal]
            assert not outside(found[name], tensors[formal]).any(), (node.op.name, name)


def test_the_reference_value_is_inside_at_double_precision() -> None:
    checked = 0
    for seed in range(60):
        graph, values, _ = _program(seed)
        plain = run(graph, values, CATALOG)
        for node in graph.nodes:
            expansion = node.expansion(CATALOG)
            if sum(np.prod(i.shape) for i in expansion.tensors.values()) > 300:
                continue
            given = feeds(node, expansion, plain)
            try:
                true = exact.evaluate(expansion, given, limit=100_000)
            except InvalidInput as error:
                if error.diagnostics[0].code == "run.work":
                    continue  # too slow for this test
                raise
            local = rounding.evaluate(expansion, {k: Ball(v) for k, v in given.items()}, "f64")
            for name in expansion.outputs:
                # one more roundoff: the exact value is itself read off as a float64
                ball = Ball(
                    local[name].value,
                    local[name].bound * (1 + 2**-50) + 2**-53 * np.abs(local[name].value),
                )
                assert not outside(ball, true[name].numpy()).any(), (node.op.name, name)
            checked += 1
    assert checked > 60


CASES: list[tuple[str, list[Ball], Callable[..., float]]] = [
    ("floor", [Ball(np.array([1.999]), np.array([0.01]))], lambda: 1.0),
    ("sqrt", [Ball(np.array([0.001]), np.array([0.01]))], lambda: np.inf),
    ("/", [Ball(np.array([1.0])), Ball(np.array([0.1]), np.array([0.2]))], lambda: np.inf),
    ("max", [Ball(np.array([1.0]), np.array([0.1])), Ball(np.array([5.0]))], lambda: 0.0),
]


@pytest.mark.parametrize(("function", "args", "least"), CASES, ids=[c[0] for c in CASES])
def test_a_radius_that_meets_an_edge_says_so(
    function: str, args: list[Ball], least: Callable[[], float]
) -> None:
    found = Balls("f32").apply(function, args)
    assert float(np.max(found.bound)) >= least()
    if function == "max":
        assert float(np.max(found.bound)) == 0.0


def test_a_comparison_within_the_radius_is_uncertain() -> None:
    domain = Balls("f32")
    a = Ball(np.array([1.0, 1.0, 2.0]), np.array([0.1, 0.0, 0.1]))
    b = Ball(np.array([1.05, 1.0, 1.0]))
    assert list(domain.apply("<", [a, b]).radius) == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("function", ["sign", "floor", "tanh"])
def test_of_what_may_be_no_number_nothing_is_known(function: str) -> None:
    """An overflow on the way may have made it infinite, and a difference of two such NaN."""
    unknown = Ball(np.array([1.0]), np.array([np.inf]))
    assert np.all(np.isinf(Balls("f16").apply(function, [unknown]).bound))


def test_a_choice_that_hangs_on_rounding_spans_both_branches() -> None:
    domain = Balls("f32")
    condition = Ball(np.array([True, True]), np.array([1.0, 0.0]))
    found = domain.select(condition, Ball(np.array([1.0, 1.0])), Ball(np.array([4.0, 4.0])))
    assert list(found.value - found.radius) == [1.0, 1.0]
    assert list(found.value + found.radius) == [4.0, 1.0]


@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (0, 0)])
@pytest.mark.parametrize("name", ["sort", "top_k", "hardmax", "take_along_axis"])
def test_what_has_no_elements_reads_and_chooses_nothing(name: str, shape: tuple[int, int]) -> None:
    op = CATALOG.op(name)
    assert op is not None
    infos = {"x": eq.TensorInfo(shape, "f32")}
    if name == "take_along_axis":
        infos["ids"] = eq.TensorInfo(shape, "i64")
    expansion = expand(instantiate(op, infos, {"k": 0} if name == "top_k" else {}), CATALOG)
    given = {key: Ball(load(info, np.zeros(shape))) for key, info in infos.items()}
    found = rounding.evaluate(expansion, given, "f32")
    for output in expansion.outputs:
        assert np.shape(found[output].value) == expansion.tensors[output].shape


def test_syntax_is_not_needed_to_run_balls() -> None:
    """The domain works on any equation, not only on those of the catalogue."""
    info = eq.TensorInfo((2,), "f32")
    body = eq.Apply("*", (eq.Read("x", (eq.Index("i"),)), eq.Const(3)))
    equation = eq.Equation("y", (("i", eq.Size("N", 2)),), body, info)
    expansion = eq.Expansion(("x",), ("y",), (equation,), {"x": info, "y": info})
    found = rounding.evaluate(expansion, {"x": Ball(np.array([1.0, -2.0]))}, "f32")["y"]
    assert list(found.value) == [3.0, -6.0]
    assert np.all(found.radius <= 2.0**-24 * 6.0 * 1.01)


def test_arithmetic_that_rounds_nothing() -> None:
    """Sums and products of small dyadic numbers, zeros, and powers of two, whatever the order."""
    domain = Balls("f32")
    third = np.float32(1 / 3).astype(np.float64)

    def radius(function: str, a: Any, b: Any) -> list[bool]:
        found = domain.apply(function, [Ball(np.array(a)), Ball(np.array(b))])
        return [bool(r) for r in np.broadcast_to(found.bound, np.shape(found.value))]

    assert radius("+", [0.5, 0.5, third, third, 2.0**20], [1.25, third, third, 0, 0.5]) == [
        False, True, True, False, True,
    ]  # fmt: skip
    assert radius("*", [1.5, third, third, third], [2.25, 4.0, 3.0, 0.0]) == [
        False, False, True, False,
    ]  # fmt: skip
    # a quotient by a number that is no power of two may be a product with its reciprocal
    assert radius("/", [6.0, third, third, third], [3.0, 4.0, 3.0, 1.0]) == [
        True, False, True, True,
    ]  # fmt: skip
    assert radius("*", [2.0**-126], [0.5]) == [True]  # below the least normal number


def test_what_may_be_unspecified_has_no_verdict() -> None:
    """At zero a slope that may be infinite may be read, or not."""
    balls = {"x": Ball(np.zeros(3)), "slope": Ball(np.ones(3), np.array([0.0, 0.1, np.inf]))}
    assert _evaluated("prelu", balls)["y"].bound.tolist() == [0.0, 0.0, np.inf]


@pytest.mark.parametrize("beta", [2.0, np.inf])
def test_an_infinite_multiple_of_what_is_not_there_may_be_no_number(beta: float) -> None:
    """ONNX says of Gemm that it computes as if C were 0 then."""
    one = Ball(np.ones((1, 1)))
    found = _evaluated("gemm", {"a": one, "b": one}, beta=beta)["y"]
    assert np.isinf(found.bound).item() == np.isinf(beta)


def test_what_a_step_adds_may_be_made_first() -> None:
    """Ftrl has z += g - s in MXNet and TensorFlow: -17 + 0.00017 is rounded."""
    x, g, z = np.float32(-1e-8), np.float32(-17), np.float32(17)
    numbers = {"x": x, "gradient": g, "linear": z}
    given = {name: Ball(np.array([n], np.float64)) for name, n in numbers.items()}
    found = _evaluated("ftrl", given, lr_power=-0.5)["new_linear"]
    made = z + (g - np.float32(17) / np.float32(0.001) * x)
    assert abs(made - found.value.item()) <= found.bound.item() < 1e-5


def test_values_between_which_nothing_is_read_may_be_anything() -> None:
    """Where a place is at an end, or its neighbours are numbers, no NaN elsewhere is read."""
    x = np.array([0.5, 1.0, 1.5, 2.5, 3.5, 4.0, 9.0])
    places, values = np.arange(1.0, 5.0), np.array([5.0, np.nan, 7.0, 8.0])
    balls = {"x": Ball(x), "places": Ball(places), "values": Ball(values)}
    found = _evaluated("interp", balls)["y"]
    known = np.isfinite(found.bound)
    assert known.tolist() == [True, True, False, False, True, True, True]
    assert np.asarray(found.value)[known].tolist() == [5.0, 5.0, 7.5, 8.0, 8.0]


@pytest.mark.parametrize("last", [0.0, -1.0, np.inf, np.nan])
def test_nothing_is_promised_of_a_matrix_without_a_root(last: float) -> None:
    """Of the whole matrix: where one pivot is not positive, libraries fill it with NaN."""
    pair = np.array([np.diag([1.0, last]), [[4.0, 2.0], [2.0, 5.0]]])
    roots = _evaluated("cholesky", {"x": Ball(pair)})["y"]
    assert np.isinf(roots.bound[0]).all()
    assert (roots.bound[1] < 1e-6).all()


@pytest.mark.parametrize("last", [np.inf, np.nan])
def test_a_fast_transform_spreads_what_is_not_finite(last: float) -> None:
    pair = np.array([[[1.0], [2.0], [last]], [[1.0], [2.0], [3.0]]])
    for name in ("dft", "stft"):
        attrs = {"length": 3, "step": 1} if name == "stft" else {}
        spectra = _evaluated(name, {"x": Ball(pair)}, **attrs)["y"]
        assert np.isinf(spectra.bound[0]).all()
        assert (spectra.bound[1] < 1e-3).all()


@pytest.mark.parametrize("length", [2, 5])
def test_a_denormal_sum_of_normal_numbers_may_be_flushed(length: int) -> None:
    """TensorFlow flushes it; a sum that is exactly zero stays that."""
    x = np.zeros((2, length))
    x[0, :2] = 3e-38, -2.0e-38
    y = _evaluated("reduce_sum", {"x": Ball(x)}, axes=(1,))["y"]
    assert abs(y.value[0]) <= y.radius[0] < 2.0 * length * 2.0**-126
    assert y.radius[1] == 0


def test_a_product_of_three_that_may_overflow_on_the_way_has_no_verdict() -> None:
    op = CATALOG.op("bilinear")
    assert op is not None
    arrays = {
        "a": np.array([[3e38, 3e38, np.nan], [1.0, 2.0, 3.0]]),
        "b": np.full((2, 2), 1e-3),
        "w": np.ones((1, 3, 2)),
    }
    infos = {name: eq.TensorInfo(array.shape, "f32") for name, array in arrays.items()}
    made = expand(instantiate(op, infos, {}), CATALOG)
    found = rounding.evaluate(made, {name: Ball(array) for name, array in arrays.items()}, "f32")
    assert np.all(np.isinf(found["y"].bound))


def test_an_order_that_is_in_doubt_leaves_the_elements_known() -> None:
    """Whichever of two close elements comes first, what stands there is close to both."""
    random = np.random.default_rng(1)
    x = random.permuted(np.tile([0.0, 1e-6, 1.0, 2.0, 3.0, 4.0, 4.0, 5.0], (6, 1)), axis=1)
    found = _evaluated("sort", {"x": Ball(x, np.full(x.shape, 1e-6))}, axis=1)
    assert np.isinf(found["at"].radius).any()
    assert np.all(found["y"].radius < 1.1)  # next to a doubtful pair, as far as its neighbour
    assert np.all(found["y"].radius[:, 3] < 2e-6)
    for _ in range(100):
        moved = np.sort(x + random.uniform(-1e-6, 1e-6, x.shape), axis=1)
        assert not outside(found["y"], moved).any()


@pytest.mark.parametrize("name", ["sort", "top_k"])
def test_a_tie_leaves_the_places_of_others_known(name: str) -> None:
    """Four numbers that rounding may put in any order stand between two and two that it does not
    reach: how many are less than one of the four is between 2 and 5, and neither 0 nor 7.
    """
    x = np.array([[0.0, 5.0, 0.0, -7.0, 0.0, 2.0, -1.0, 0.0]])
    attrs = {"k": 8, "largest": False} if name == "top_k" else {}
    found = _evaluated(name, {"x": Ball(x, np.full(x.shape, 1e-6))}, axis=1, **attrs)
    assert np.isinf(found["at"].radius).tolist() == [[r in range(2, 6) for r in range(8)]]
    assert np.all(found["y"].radius < 3e-6)
    at = np.asarray(found["at"].value)[0]
    assert [at[r] for r in (0, 1, 6, 7)] == [3, 6, 5, 1]


def test_the_largest_of_those_that_may_be_meant_is_no_less_than_what_surely_is() -> None:
    """The second of numbers of which two are close: it is not below one that is surely less."""
    x = np.array([0.0, 1e-7, -3.0, 9.0])
    for k, value, radius in ((1, -3.0, 2e-6), (2, 0.0, 3.1), (4, 9.0, 2e-6)):
        found = _evaluated("kth_value", {"x": Ball(x, np.full(4, 1e-6))}, k=k)
        assert abs(found["y"].value - value) < 2e-7
        assert found["y"].radius < radius
        random = np.random.default_rng(k)
        for _ in range(100):
            moved = np.sort(x + random.uniform(-1e-6, 1e-6, 4))[k - 1]
            assert not outside(found["y"], moved).any()


@pytest.mark.parametrize(
    ("name", "x", "known"),
    [
        ("log", -2.0, True),
        ("sqrt", -2.0, True),
        ("acosh", 0.5, True),
        ("atanh", -1.5, True),
        ("log", -0.005, False),  # which may be none below 0
        ("log", np.inf, True),
    ],
)
def test_of_what_is_surely_outside_of_a_domain_there_is_no_value(
    name: str, x: float, known: bool
) -> None:
    found = _evaluated(name, {"x": Ball(np.array([x, 2.0]), np.array([0.0 if x > 2 else 0.01, 0]))})
    assert (found["y"].bound[0] == 0) == known
    if x < 2:
        assert np.isnan(found["y"].value[0])


@pytest.mark.parametrize(
    ("x", "value"),
    [
        ([np.inf, 2.0, -3.0], -np.inf),
        ([np.nan, 0.0, 1.0], np.nan),
        ([0.0, 1e30, -np.inf, 1e30], np.nan),
        ([np.inf, 1e-20, 1e-20, 1e-20], None),  # 0 times infinity, in some order
        ([0.0, 1e30, 1e30], None),
    ],
)
def test_a_product_is_infinite_or_no_number_in_whatever_order(
    x: list[float], value: float | None
) -> None:
    found = _evaluated("reduce_prod", {"x": Ball(np.array([x]))}, axes=1)["y"]
    if value is None:
        assert np.all(np.isinf(found.bound))
    else:
        assert not np.any(found.bound)
        assert np.array_equal(found.value, [value], equal_nan=True)


def test_what_cannot_be_negative_has_a_root() -> None:
    """A mean of squares whose radius is larger than itself: its root is near zero, not unknown."""
    x = np.array([[1e-9, -2e-9, 1e-9], [1.0, 2.0, 3.0]])
    y = _evaluated("reduce_std", {"x": Ball(x, np.full(x.shape, 1e-3))}, axes=(1,))["y"]
    assert np.all(np.isfinite(y.radius))
    random = np.random.default_rng(2)
    for _ in range(100):
        moved = x + random.uniform(-1e-3, 1e-3, x.shape)
        assert not outside(y, np.std(moved, axis=1)).any()


@pytest.mark.parametrize("kernels", [False, True])
def test_what_a_recurrence_adds_up_may_be_added_up_in_any_order(
    kernels: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that flows back to the largest element so far: step by step, from the front, in pairs.

    The partial sums from the back are small here, those from the front are not.
    """
    if kernels:
        monkeypatch.setattr(rounding, "_NEST", 1)
        monkeypatch.setattr(rounding, "worth", lambda *_: True)
    op = CATALOG.op("cummax")
    assert op is not None
    length = 33
    made = adjoint(expand(instantiate(op, {"x": TensorInfo((length,), "f32")}, {}), CATALOG))
    x = np.array([-3.0, 5.0, *[0.0] * (length - 2)])
    random, farther = np.random.default_rng(0), 0
    for _ in range(40):
        flows = random.normal(size=length // 2).astype(np.float32).astype(np.float64)
        seed = np.array([0.5, *np.stack([flows, -flows], 1).ravel()])  # pairs cancel
        seed[1] += 2.0**-20
        found = rounding.evaluate(made, {"x": Ball(x), "d_y": Ball(seed)}, "f32")["d_x"]
        one_order = 0.0
        partial = 0.0
        for term in seed[:0:-1]:
            partial += float(term)
            one_order += 2.0**-24 * abs(partial)
        for order in [
            np.arange(1, length),
            *(random.permutation(length - 1) + 1 for _ in range(20)),
        ]:
            total = np.float32(0)
            for place in order:
                total = np.float32(total + np.float32(seed[place]))
            gap = abs(float(total) - math.fsum(seed[1:]))
            assert gap <= found.radius[1]
            farther += gap > one_order
        assert found.radius[1] < 1e-4
        assert not np.any(found.radius[2:])  # what nothing flows back to is exact
    assert farther  # so one order's bound is not enough


@pytest.mark.parametrize("kernels", [False, True])
def test_a_running_sum_that_cancels_may_be_added_up_in_another_order(
    kernels: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In pairs the second and the third are added first, which loses the third."""
    if kernels:
        monkeypatch.setattr(rounding, "_NEST", 1)
        monkeypatch.setattr(rounding, "worth", lambda *_: True)
    x = np.array([1e8, -1e8, 1.5, 1.25, 3.0, 5.0])
    y = _evaluated("cumsum", {"x": Ball(x)}, axis=0)["y"]
    lost = np.float32(1e8) + (np.float32(-1e8) + np.float32(1.5))
    assert abs(lost - y.value[2]) == 1.5
    assert not outside(y, np.array([*y.value[:2], lost, *y.value[3:]])).any()
    small = _evaluated("cumsum", {"x": Ball(x[2:])}, axis=0)["y"]
    assert not np.any(small.bound)


def test_whole_numbers_that_a_type_lacks_are_rounded() -> None:
    """257 is no bfloat16, 2049 no float16; programs hold them as the nearest ones."""
    for name, whole in (("bf16", 257), ("f16", 2049), ("f32", 2**24 + 1)):
        domain = Balls(name)
        given = Ball(np.array([whole, whole - 1, 3]))
        halves = Ball(np.array([0.5, 0.5, 0.5]))
        near = given.value.astype(domain.dtype.numpy)
        by = np.asarray(0.5).astype(domain.dtype.numpy)
        info = TensorInfo((3,), name)
        stored = domain.store(given, info, (3,))
        assert not outside(stored, near).any()
        assert outside(Ball(stored.value), near).any()
        assert list(np.asarray(stored.bound) > 0) == [True, False, False]
        for function, found in (("+", near + by), ("-", near - by), ("*", near * by)):
            ball = domain.apply(function, [given, halves])
            assert not outside(ball, found).any(), (name, function)
        assert not outside(domain.contract([given, halves], 0), (near * by).sum()).any()
        below = domain.apply("<", [given, Ball(np.array([whole - 0.5, 1e3, 1e3]))])
        assert below.bound[0] == 1
        assert below.bound[2] == 0
        # between whole numbers nothing is rounded
        assert domain.apply("+", [given, Ball(np.array([1]))]).radius is None
        assert domain.apply("<", [given, Ball(np.array([whole]))]).radius is None


def test_no_whole_number_is_rounded_when_it_is_squared() -> None:
    found = Balls("f32").apply("sq", [Ball(np.array([2**27 + 1, -3]))])
    assert found.value.tolist() == [(2**27 + 1) ** 2, 9]
    assert found.radius is None


def test_no_arithmetic_rounds_what_is_made_a_whole_number() -> None:
    for domain in (Balls("bf16"), Balls("f32", half(STANDARD))):
        made = domain.apply("int", [Ball(np.array([2.0**20 + 1.5, -3.5]), np.full(2, 0.25))])
        found = domain.apply("+", [made, Ball(np.array([1, 1]))])
        assert found.value.tolist() == [2**20 + 2, -2]
        assert not np.any(found.bound)


def test_a_whole_number_that_rounding_may_make_wrap_is_unstable() -> None:
    """Of 255.5 the rounding is 255 or 256, which a byte holds as 255 or as 0."""
    domain, byte = Balls("f32"), TensorInfo((5,), "u8")
    radius = np.full(5, 0.01)
    halves = Ball(np.array([255.5, 254.5, -0.5, 300.0, 300.25]), radius)
    rounded = domain.apply("round", [halves])
    for whole in (rounded, domain.apply("int", [rounded])):
        stored = domain.store(whole, byte, (5,))
        assert list(stored.bound) == [np.inf, 1, np.inf, 0, 0]
    truncated = domain.store(Ball(np.array([256.0, 255.0, 0.0, 300.0, 7.5]), radius), byte, (5,))
    assert list(truncated.bound) == [np.inf, 1, 0, 1, 0]
    clamp = [Ball(np.array(0.0)), Ball(np.array(255.0))]
    low = domain.apply("max", [rounded, clamp[0]])
    clamped = domain.store(domain.apply("min", [low, clamp[1]]), byte, (5,))
    assert list(np.asarray(clamped.bound)) == [0, 1, 1, 0, 0]


def _evaluated(name: str, given: dict[str, Ball], **attrs: Any) -> dict[str, Ball]:
    op = CATALOG.op(name)
    assert op is not None
    infos = {key: TensorInfo(np.shape(ball.value), "f32") for key, ball in given.items()}
    return rounding.evaluate(expand(instantiate(op, infos, attrs), CATALOG), given, "f32")


def test_what_is_rounded_may_be_as_large_as_its_ball() -> None:
    """Of two gradients that are each open at a tie the sum may be the largest of both, rounded."""
    balls = BallFunctions("f32")
    a, b = (Ball(np.array([n / 2]), np.array([n / 2])) for n in (1.1, 0.37))
    found = balls.apply("+", [a, b])
    largest = np.float64(np.float32(np.float32(1.1) + np.float32(0.37)))
    unit = 2.0**-24
    assert np.all(found.bound >= a.bound + b.bound + unit * 1.47)
    assert abs(largest - found.value[0]) <= found.bound[0] + unit * 1.47  # of the two constants


@pytest.mark.filterwarnings("error")
def test_a_radius_that_no_number_holds_is_infinite_and_warns_of_nothing() -> None:
    ball = Ball(np.zeros(2), np.array([np.finfo(np.float64).max, 1.0]))
    radius = rounding.oracle_error(ball, 2.0**-24)
    assert radius[0] == np.inf
    assert 1.0 < radius[1] < 1.0001


def test_nothing_is_known_of_what_is_made_of_whole_numbers_beyond_the_type() -> None:
    """A program in f16 has -inf for -2^63, and NaN for what that lies below -inf."""
    whole = Ball(np.array([-(2**63), 70_000, 3]))
    halves = Ball(np.array([-np.inf, 0.5, 0.5]))
    with np.errstate(all="ignore"):
        for function in ("+", "-", "*"):
            ball = Balls("f16").apply(function, [halves, whole])
            assert np.isinf(ball.bound).tolist() == [True, True, False]
            assert np.isfinite(Balls("f32").apply(function, [halves, whole]).bound).all()
        # an infinity in place of it is as far beyond what is finite
        for function, known in (("min", [1, 1, 1]), ("max", [0, 0, 1]), ("<", [0, 1, 1])):
            bound = np.broadcast_to(Balls("f16").apply(function, [halves, whole]).bound, 3)
            assert (bound == 0).tolist() == known
    assert whole.radius is None


@pytest.mark.parametrize("reduction", ["max", "min"])
def test_the_largest_of_some_whole_numbers_is_one_of_them(reduction: str) -> None:
    """No float holds 2^53 + 1; of a place that nothing is put at no largest is asked."""
    made = irlang.loads(f"""nnir 1
model m(x: i64[3], ids: i64[1], updates: i64[]) -> y: i64[3] {{
  y = scatter_nd(x, ids, updates; reduction = {reduction})
}}
""")
    number = (2**53 + 1) * (1 if reduction == "max" else -1)
    given = {"x": np.zeros(3, np.int64), "ids": np.array([1]), "updates": np.array(number)}
    wanted = [0, number, 0]
    assert balls(made.graph, given, made.catalog, "f32")["y"].value.tolist() == wanted
    for evaluate in (reference.evaluate, vector.evaluate):
        assert run(made.graph, given, made.catalog, evaluate)["y"].tolist() == wanted


@given(
    st.sampled_from(("f16", "bf16", "f32")),
    st.lists(st.tuples(*2 * [st.integers(-16, 16).map(lambda n: n / 16)]), min_size=1, max_size=8),
    st.sampled_from((1, 4, 11)),
)
def test_a_remainder_is_rounded_where_its_type_has_no_such_number(
    dtype: str, pairs: list[tuple[float, float]], room: int
) -> None:
    """-65503, of 1 by the most negative number of f16, is none: a divisor has been added to 1."""
    kind, largest = DTYPES[dtype].numpy, DTYPES[dtype].largest
    a = np.round([x * 2.0**room for x, _ in pairs]).astype(kind)
    b = np.array([np.round(y * largest) or 3.0 for _, y in pairs]).astype(kind)
    first = np.fmod(np.float64(a), np.float64(b)).astype(kind)  # which rounds nothing
    with np.errstate(all="ignore"):
        signs = (first != 0) & ((first < 0) != (b < 0))
        computed = np.float64(np.where(signs, first + b, first).astype(kind))
    balls = BallFunctions(dtype)
    for radius in (None, np.zeros(a.shape)):  # exact, both
        found = balls.apply("%", [Ball(np.float64(a), radius), Ball(np.float64(b), radius)])
        with np.errstate(invalid="ignore"):
            inside = np.abs(computed - found.value) <= found.bound
        assert (inside | (found.bound == np.inf)).all()


@pytest.mark.parametrize("radius", [None, 0.0])
def test_no_number_is_what_is_left_of_a_division_by_zero(radius: float | None) -> None:
    """A target that gives 0 there is wrong; of a divisor that is rounded nothing is known."""
    a, b = np.array([5.0, 0.0, np.inf, np.nan, 5.0]), np.array([0.0, 0.0, 2.0, 2.0, np.inf])
    balls = BallFunctions("f32")
    found = balls.apply("%", [Ball(a, radius), Ball(b, radius)])
    assert np.isnan(found.value).tolist() == [True] * 4 + [False]
    assert not found.bound[:4].any()
    rounded = balls.apply("%", [Ball(a, radius), Ball(b, np.full(5, 1e-9))])
    assert np.isnan(rounded.bound[:2]).all() or np.isinf(rounded.bound[:2]).all()
