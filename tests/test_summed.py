"""The radius of a sum covers every order of its terms, and some order needs nearly all of it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from irlang.interp.balls import Ball, Balls

Array = np.ndarray[Any, np.dtype[Any]]

UNIT = 2.0**-24
DOMAIN = Balls("f32")
TERMS = st.lists(st.floats(-100, 100, width=32), min_size=2, max_size=24)


def _rounded(value: Fraction) -> Fraction:
    return Fraction(float(np.float32(float(value))))


def _in_order(
    terms: list[tuple[Fraction, Fraction]], random: np.random.Generator, *, fused: bool
) -> Fraction:
    """A sum of products in a random association, single precision, with or without fused steps."""
    left: list[tuple[Fraction, Fraction] | Fraction] = list(terms)

    def settled(item: tuple[Fraction, Fraction] | Fraction) -> Fraction:
        return item if isinstance(item, Fraction) else _rounded(item[0] * item[1])

    while len(left) > 1:
        first = left.pop(int(random.integers(len(left))))
        other = left.pop(int(random.integers(len(left))))
        if fused and isinstance(first, tuple):
            left.append(_rounded(first[0] * first[1] + settled(other)))
        else:
            left.append(_rounded(settled(first) + settled(other)))
    return settled(left[0])


@settings(max_examples=200, deadline=None)
@given(TERMS, st.integers(0, 1000))
def test_a_sum_in_any_association_is_within_its_radius(numbers: list[float], seed: int) -> None:
    found = DOMAIN.fold("sum", Ball(np.array(numbers)), (0,))
    exact = sum(map(Fraction, numbers))
    got = _in_order([(Fraction(n), Fraction(1)) for n in numbers], _random(seed), fused=False)
    assert abs(got - exact) <= Fraction(float(found.radius))


@settings(max_examples=200, deadline=None)
@given(TERMS, st.integers(0, 1000), st.booleans())
def test_a_sum_of_products_in_any_association_is_within_its_radius(
    numbers: list[float], seed: int, fused: bool
) -> None:
    random = _random(seed)
    other = random.standard_normal(len(numbers)).astype(np.float32).astype(np.float64)
    found = DOMAIN.contract([Ball(np.array(numbers)), Ball(other)], 0)
    pairs = [(Fraction(a), Fraction(float(b))) for a, b in zip(numbers, other, strict=True)]
    got = _in_order(pairs, random, fused=fused)
    assert abs(got - sum(a * b for a, b in pairs)) <= Fraction(float(found.radius))


@settings(max_examples=100, deadline=None)
@given(TERMS, TERMS, st.integers(0, 1000))
def test_what_is_added_to_a_sum_may_be_added_in_any_order_with_its_terms(
    numbers: list[float], more: list[float], seed: int
) -> None:
    first = DOMAIN.fold("sum", Ball(np.array(numbers)), (0,))
    second = DOMAIN.fold("sum", Ball(np.array(more)), (0,))
    found = DOMAIN.apply("+", [first, second])
    terms = [(Fraction(n), Fraction(1)) for n in numbers + more]
    got = _in_order(terms, _random(seed), fused=False)
    assert abs(got - sum(a for a, _ in terms)) <= Fraction(float(np.max(found.bound)))


def test_terms_of_either_sign_need_half_of_their_magnitudes() -> None:
    small = [UNIT * (1 - 2.0**-20)] * 40  # each of them is lost beside 1
    numbers = np.array([1.0, *small, -1.0])
    found = DOMAIN.fold("sum", Ball(numbers), (0,))
    total = np.float32(0)
    for number in numbers.astype(np.float32):
        total = np.float32(total + number)
    error = abs(float(total) - float(found.value))
    assert 0.95 * float(found.radius) < error <= float(found.radius)


def test_products_of_either_sign_need_half_of_their_magnitudes() -> None:
    a = np.resize([1.0, -1.0], 64)
    b = np.random.default_rng(0).uniform(1, 2, 64).astype(np.float32).astype(np.float64)
    sum_, sizes = abs(float(a @ b)), float(np.abs(a) @ np.abs(b))
    most = sizes * UNIT + 63 * UNIT * (sizes + sum_) / 2
    found = DOMAIN.contract([Ball(a), Ball(b)], 0)
    assert most <= float(found.radius) <= 1.001 * most


def _random(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)
