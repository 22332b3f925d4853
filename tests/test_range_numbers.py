"""Scalar functions over sets of numbers contain what machines compute on their members."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irlang.dtypes import DTYPES
from irlang.interp.arithmetic import Arithmetic
from irlang.interp.interval import Numbers, interval, join, meet, number
from irlang.interp.reductions import Part, reduced, total
from irlang.scalar import SCALARS, WHOLE

REALS = sorted(
    name
    for name, row in SCALARS.items()
    if row.kind in ("real", "same") and name not in {*WHOLE, "select", "rounded", "polygamma"}
)
_SAMPLES = 7


def ends(dtype: str) -> st.SearchStrategy[float]:
    """Numbers of a type, small ones and large ones."""
    numpy = DTYPES[dtype].numpy
    sizes = (
        st.floats(-4, 4, width=16)
        | st.floats(-400, 400, width=16)
        | st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e-7, -1e-7, 6e4, -6e4])
    )
    return sizes.map(lambda value: float(np.asarray(value).astype(numpy)) + 0.0)


def members(low: float, high: float, dtype: str, seed: int) -> Any:
    """Some numbers of a type between two of its numbers, the ends among them."""
    drawn = np.random.default_rng(seed).uniform(low, high, _SAMPLES)
    typed = np.concatenate(([low, high], drawn)).astype(DTYPES[dtype].numpy).astype(np.float64)
    return np.clip(typed, low, high)


def computed(function: str, args: tuple[Any, ...], dtype: str) -> Any:
    """Each result rounded to the type."""
    with np.errstate(all="ignore"):
        values = np.asarray(SCALARS[function].numpy(*args), dtype=np.float64)
        return values.astype(DTYPES[dtype].numpy).astype(np.float64)


@pytest.mark.parametrize("function", REALS)
@settings(max_examples=20, deadline=None)
@given(data=st.data(), dtype=st.sampled_from(["f16", "bf16", "f32", "f64"]))
def test_functions_of_intervals(function: str, dtype: str, data: st.DataObject) -> None:
    row = SCALARS[function]
    pairs = [sorted((data.draw(ends(dtype)), data.draw(ends(dtype)))) for _ in range(row.arity)]
    args = [interval(low, high) for low, high in pairs]
    with np.errstate(all="ignore"):
        found, originates = Arithmetic(dtype).apply(function, args, "real")
    points = [members(low, high, dtype, at) for at, (low, high) in enumerate(pairs)]
    grids = np.meshgrid(*points)
    for value in np.unique(computed(function, tuple(grids), dtype)):
        assert _holds(found, value), (value, found)
        assert originates or np.isfinite(value)


def _holds(found: Numbers, value: float) -> bool:
    if math.isnan(value):
        return found.nan
    if math.isinf(value):
        return found.above if value > 0 else found.below
    return any(low <= value <= high for low, high in found.pieces)


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(ends("f16"), min_size=1, max_size=40),
    order=st.randoms(use_true_random=False),
)
def test_sums_in_any_order(values: list[float], order: Any) -> None:
    own = Arithmetic("f16")
    body = interval(min(values), max(values))
    with np.errstate(over="ignore"):
        found = total([Part(body, len(values), len(values), number(0))], "real", own)
    order.shuffle(values)
    with np.errstate(all="ignore"):
        added = np.float16(values[0])
        for value in values[1:]:
            added = np.float16(added + np.float16(value))
    assert _holds(found, float(added))


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.floats(0, 1, width=16), min_size=2, max_size=40),
    ends_=st.tuples(st.integers(-40, 40), st.integers(-40, 40)).map(sorted),
    order=st.randoms(use_true_random=False),
)
def test_ends_that_add_up_are_those_of_a_sum_in_any_order(
    values: list[float], ends_: list[int], order: Any
) -> None:
    """40 numbers of at most 10 are at most 400, however often rounding comes between."""
    own, (low, high) = Arithmetic("f16"), (end / 4 for end in ends_)
    count = len(values)
    found = total([Part(interval(low, high), count, count, number(0))], "real", own)
    assert (found.low, found.high) == (count * low, count * high)
    terms = [np.float16(low + value * (high - low)) for value in values]
    while len(terms) > 1:  # any two are added next
        order.shuffle(terms)
        terms = [np.float16(terms[0] + terms[1]), *terms[2:]]
    assert _holds(found, float(terms[0]))


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.floats(-1, 1, width=16), min_size=3, max_size=40),
    order=st.randoms(use_true_random=False),
)
def test_products_of_small_factors_in_any_order(values: list[float], order: Any) -> None:
    own = Arithmetic("f16")
    parts = [Part(interval(min(values), max(values)), len(values), len(values), number(0))]
    found, originates = reduced("prod", parts, "real", own, None)
    assert found.magnitude <= 1
    assert not originates
    order.shuffle(values)
    made = np.float16(values[0])
    for value in values[1:]:
        made = np.float16(made * np.float16(value))
    assert _holds(found, float(made))


pieces = st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 4)), max_size=4)


@given(one=pieces, other=pieces, at=st.integers(-12, 12))
def test_sets_join_and_meet(one: list[Any], other: list[Any], at: int) -> None:
    a = join(*(interval(low, low + width) for low, width in one))
    b = join(*(interval(low, low + width) for low, width in other))
    assert join(a, b).holds(at) or not (a.holds(at) or b.holds(at))
    if a.holds(at) and b.holds(at):
        assert meet(a, b).holds(at)
    if a.holds(at) and -3 <= at <= 3:
        assert a.between(-3, 3).holds(at)


@pytest.mark.filterwarnings("ignore:overflow")
def test_a_quotient_beside_zero_overflows() -> None:
    own = Arithmetic("f32")
    found, originates = own.apply("/", [number(1.0), interval(0.0, 1.0)], "real")
    assert originates
    assert (found.above, found.nan) == (True, False)
    found, _ = own.apply("/", [interval(0.0, 1.0), interval(0.0, 1.0)], "real")
    assert found.nan
    found, originates = own.apply("/", [number(1.0), interval(1e-30, 1.0)], "real")
    assert not originates


def test_flushed_numbers_are_met() -> None:
    tiny = interval(1e-40, 1.0)
    assert Arithmetic("f32").apply("*", [tiny, number(0.5)], "real")[0].low > 0
    assert Arithmetic("f32", flush=True).apply("*", [tiny, number(0.5)], "real")[0].low == 0
