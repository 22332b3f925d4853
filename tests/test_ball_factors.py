"""Products of several factors in any order, and other arithmetic that only seems exact, or is."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irlang.arithmetic import STANDARD, Arithmetic
from irlang.interp import rounding
from irlang.interp.ball import Ball
from irlang.interp.balls import Balls
from irlang.interp.program import balls, precision
from tests.lower_calls import Case, case

F32 = np.float32
DISTRIBUTES = replace(STANDARD, distributes=True)
TF32 = replace(STANDARD, factors="tf32")
# every order of magnitude, numbers that are exact to multiply, powers of two, zero, what is none
NUMBERS = st.one_of(
    st.sampled_from([0.0, 1.0, 2.0, 0.5, 3.0, -5.25, math.inf, math.nan, 3e38, -2e30, 1e-30]),
    st.floats(width=32),
    st.integers(-4096, 4096).map(float),
)


def _orders(numbers: list[float]) -> list[Any]:
    """The product in f32, in every order and association of some factors."""
    if len(numbers) == 1:
        return [F32(numbers[0])]
    found = []
    places = range(len(numbers))
    for size in range(1, len(numbers) // 2 + 1):
        for chosen in itertools.combinations(places, size):
            left = _orders([numbers[n] for n in chosen])
            right = _orders([numbers[n] for n in places if n not in chosen])
            found += [a * b for a in left for b in right]
    return found


def _written(numbers: list[float], arithmetic: Arithmetic) -> Ball:
    """The ball of the product from left to right."""
    domain = Balls("f32", arithmetic)
    found = Ball(np.array([numbers[0]]))
    for number in numbers[1:]:
        found = domain.apply("*", [found, Ball(np.array([number]))])
    return found


def _results(made: Case, arithmetic: Arithmetic = STANDARD) -> list[Ball]:
    values = {**made.inputs, **made.params}
    found = balls(made.graph, values, made.catalog, precision(made.graph), arithmetic)
    return [found[name] for name in made.graph.outputs.values()]


@given(st.lists(NUMBERS, min_size=2, max_size=4))
def test_every_order_of_a_product_is_inside_its_radius(numbers: list[float]) -> None:
    with np.errstate(all="ignore"):
        ball = _written([float(F32(number)) for number in numbers], STANDARD)
        value, radius = ball.value.item(), np.asarray(ball.bound).reshape(-1)[0]
        for got in map(float, _orders(numbers)):
            inside = got == value or (math.isnan(got) and math.isnan(value))
            assert inside or radius == math.inf or abs(got - value) <= radius, got


def test_what_one_order_does_not_round_another_does() -> None:
    numbers = [3.5, 5.25, 0.3, 0.7]
    far = max(abs(float(got) - math.prod(numbers)) for got in _orders(numbers))
    product = "multiply(multiply(a, b), multiply(c, d))"
    made = case("a: f32[1], b: f32[1], c: f32[1], d: f32[1]", product, "f32")
    made.inputs.update(zip("abcd", (np.array([n], F32) for n in numbers), strict=True))
    alone, fused = (float(_results(made, one)[-1].bound[0]) for one in (STANDARD, DISTRIBUTES))
    assert alone == pytest.approx(2 * 2.0**-24 * math.prod(numbers), rel=1e-3)
    assert fused == pytest.approx(3 * 2.0**-24 * math.prod(numbers), rel=1e-3)
    assert far <= fused


@pytest.mark.parametrize(
    ("declared", "call", "given"),
    [
        # 0 * 3e38 * 2 is zero or no number
        ("x: f32[1], a: f32[1], b: f32[1]", "addcmul(x, a, b; value = 0.0)", [1, 3e38, 2]),
        # scaled before it is divided, by a tensor of its own
        (
            "x: f32[1, 1], s: f32[1], m: f32[1], v: f32[1]",
            "batch_norm(x, s; mean = m, var = v)",
            [-2.5e38, 1.7, 0, 2],
        ),
        # an infinite scale, of the difference or of both
        (
            "x: f32[1, 1], s: f32[1], m: f32[1], v: f32[1]",
            "batch_norm(x, s; mean = m, var = v)",
            [-0.05, math.inf, -1, 0],
        ),
    ],
)
def test_nothing_is_known_where_another_order_leaves_the_range(
    declared: str, call: str, given: list[float]
) -> None:
    made = case(declared, call, "f32")
    for (name, array), number in zip(list(made.inputs.items()), given, strict=True):
        made.inputs[name] = np.full_like(array, number)
    (ball,) = _results(made)
    assert np.isinf(ball.bound).all()


def test_kernels_leave_products_that_may_leave_the_range_to_numpy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rounding, "_NEST", 0)
    made = case("x: f32[8], a: f32[8], b: f32[8]", "addcmul(x, a, b; value = 0.001)", "f32")
    made.inputs.update(x=np.ones(8, F32), a=np.full(8, 3e38, F32), b=np.full(8, 2, F32))
    (ball,) = _results(made)
    assert np.isinf(ball.bound).all()


def test_what_the_format_of_factors_has_no_number_for_is_infinite_there() -> None:
    """The largest number of f32 is rounded to infinity in TF32, and is no number times zero."""
    made = case("x: f32[2, 2], w: f32[2, 2]", "matmul(x, w)", "f32")
    most = np.finfo(F32).max
    made.inputs.update(x=np.array([[0, 1], [0, 0]], F32), w=np.array([[most, 0], [1, 1]], F32))
    (full,), (tf32,) = (_results(made, one) for one in (STANDARD, TF32))
    assert np.isfinite(full.bound).all()
    assert np.isinf(tf32.bound).tolist() == [[True, False], [True, False]]


@given(x=st.floats(0.5, 2, width=32), w=st.floats(-2, 2, width=32))
def test_a_factor_may_be_cut_off_to_tf32(x: float, w: float) -> None:
    made = case("x: f32[1, 1], w: f32[1, 1]", "matmul(x, w)", "f32")
    made.inputs.update(x=np.array([[x]], F32), w=np.array([[w]], F32))
    (ball,) = _results(made, TF32)
    digits = np.array([x, w], F32).view(np.uint32)
    for rounded in (digits, digits + np.uint32(0x1000)):  # towards zero, and to nearest
        one, other = (rounded & np.uint32(0xFFFFE000)).view(F32).astype(np.float64)
        assert abs(one * other - ball.value.item()) <= float(np.max(ball.bound))


def test_what_stands_beside_an_infinity_may_overflow_the_other_way() -> None:
    made = case("x: f32[4]", "cumsum(x)", "f32")
    made.inputs["x"] = np.array([math.inf, 0, -3e38, -3e38], F32)
    (ball,) = _results(made)
    assert ball.value.tolist() == [math.inf] * 4
    assert np.isinf(ball.bound).tolist() == [False, False, False, True]


def test_of_equal_numbers_nothing_is_left_for_sure() -> None:
    """But for denormal ones, of which a target may take one for zero and not the other."""
    made = case("x: f32[3], t: f32[3]", "subtract(x, t)", "f32")
    made.inputs.update(x=np.array([0.1, 0.3, 1e-39], F32), t=np.array([0.1, 0.3, 1e-39], F32))
    (ball,) = _results(made)
    assert (ball.bound == 0).tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("labels", "b", "known"),
    [
        ("[0, 1]", [1e-38, 2e-38], False),  # (3e38 + 3e38) * 3e-38
        ("[0, 0]", [1e-38, 2e-38], True),
        ("[0, 1]", [0, 0], False),
    ],
)
def test_a_factor_that_is_summed_by_itself_may_overflow_there(
    labels: str, b: list[float], known: bool
) -> None:
    made = case("a: f32[2], b: f32[2]", f"einsum(a, b; labels = {labels}, output = [])", "f32")
    made.inputs.update(a=np.full(2, 3e38, F32), b=np.array(b, F32))
    (ball,) = _results(made)
    assert np.isfinite(ball.bound).all() == known


@pytest.mark.parametrize("size", [2, 300])
def test_a_factor_may_be_summed_first_along_what_is_its_own(size: int) -> None:
    """`ab,bc->a`: the second is summed over c; of `ab,bc->ac` nothing is summed but products."""
    a = np.full((2, size), 1e-3 / size, F32)
    b = np.full((size, size), 6e38 / size, F32)
    for output, known in (("[0]", False), ("[0, 2]", True)):
        call = f"einsum(a, b; labels = [0, 1, 1, 2], output = {output})"
        made = case(f"a: f32[2, {size}], b: f32[{size}, {size}]", call, "f32")
        made.inputs.update(a=a, b=b)
        (ball,) = _results(made)
        assert np.isfinite(ball.value).all()
        assert np.isfinite(ball.bound).all() == known


def _within(numbers: list[float]) -> Ball:
    """The ball of a product, which every order of multiplying them lies in."""
    ball = _written(numbers, STANDARD)
    exact = math.prod(map(Fraction, numbers))
    off = max(abs(Fraction(float(one)) - exact) for one in _orders(numbers))
    assert off <= Fraction(float(np.ravel(ball.bound)[0])), numbers
    return ball


@given(st.integers(1, 60), st.integers(1, 60), st.integers(2**20, 2**24))
def test_whole_numbers_round_twice_where_their_product_has_too_many_digits(
    a: int, b: int, c: int
) -> None:
    """The first two have a product that is exact; with one of them the third may be rounded."""
    _within([float(a), float(b), float(c)])


@given(
    st.lists(st.integers(-31, 31), min_size=2, max_size=2),
    st.lists(st.integers(-2, 2), min_size=1, max_size=2),
    st.randoms(use_true_random=False),
)
def test_powers_of_two_among_whole_numbers_round_nothing(
    whole: list[int], powers: list[int], order: random.Random
) -> None:
    numbers = [*map(float, whole), *(2.0**power for power in powers)]
    order.shuffle(numbers)
    assert np.ravel(_within(numbers).bound) == [0.0]


def test_a_product_that_is_too_large_to_be_looked_through_has_a_radius() -> None:
    domain = Balls("f32", STANDARD)
    many = Ball(np.full(70_000, 3.0))
    found = domain.apply("*", [domain.apply("*", [many, Ball(np.array([5.0]))]), many])
    assert np.isfinite(found.bound).all()
