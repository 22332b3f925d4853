"""Polynomials of a few elements: no value is below their bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irlang import equations as eq
from irlang.interp.polynomials import Element, Form, Monomial, Over, Ranges, least

ELEMENTS: list[Element] = [eq.Read("a", ()), eq.Read("b", ()), Over(eq.Read("c", ()))]
FACTORS = st.floats(-4, 4, allow_nan=False).map(lambda value: round(value, 3))
ENDS = st.tuples(FACTORS, FACTORS).map(lambda ends: (min(ends), max(ends)))


def monomials(degree: int, *, squares: bool) -> list[Monomial]:
    found: list[Monomial] = [(), *((one,) for one in ELEMENTS)]
    for at, one in enumerate(ELEMENTS):
        found += [(one, other) for other in ELEMENTS[at + (not squares) :]]
    return [monomial for monomial in found if len(monomial) <= degree]


def values(form: Form, ranges: Ranges, seed: int) -> list[float]:
    numbers = np.random.default_rng(seed)
    found: list[float] = []
    for _ in range(50):
        at = {
            one: numbers.choice([low, high, numbers.uniform(low, high)])
            for one, (low, high) in ranges.items()
        }
        found.append(
            math.fsum(factor * math.prod(at[x] for x in m) for m, factor in form.terms.items())
        )
    return found


@settings(max_examples=200, deadline=None)
@given(st.data(), st.booleans(), st.integers(0, 2**32))
def test_no_value_is_below_the_bound(data: st.DataObject, squares: bool, seed: int) -> None:
    terms = {one: data.draw(FACTORS) for one in monomials(2, squares=squares)}
    ranges: Ranges = {one: data.draw(ENDS) for one in ELEMENTS}
    form = Form(terms, 0.0)
    bound = least(form, ranges, 0.0)
    assert min(values(form, ranges, seed)) >= bound - 1e-9
    if not squares:  # it is met
        corners = values(form, {one: (low, low) for one, (low, _) in ranges.items()}, seed)
        assert bound <= corners[0] + 1e-9


@settings(max_examples=100, deadline=None)
@given(st.lists(FACTORS, min_size=3, max_size=3), ENDS)
def test_a_square_is_no_less_than_0(factors: list[float], ends: tuple[float, float]) -> None:
    linear = Form({(one,): factor for one, factor in zip(ELEMENTS, factors, strict=True)}, 0.0)
    square = linear.times(linear)
    ranges: Ranges = dict.fromkeys(square.elements(), ends)
    bound = least(square, ranges, 0.0)
    assert -1e-6 <= bound <= min(values(square, ranges, 0)) + 1e-6


def test_products_of_forms_are_of_their_values() -> None:
    a, b, _ = ELEMENTS
    one = Form({(a,): 2.0, (): 1.0}, 0.0)
    other = Form({(b,): -1.0, (a,): 3.0}, 0.0)
    at: dict[Element, float] = {a: 0.5, b: -2.0}

    def value(form: Form) -> float:
        return math.fsum(f * math.prod(at[x] for x in m) for m, f in form.terms.items())

    assert value(one.times(other)) == pytest.approx(value(one) * value(other))
    assert value(one.plus(other, -2.0)) == pytest.approx(value(one) - 2 * value(other))
