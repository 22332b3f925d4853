"""The sign of a zero: open where the order of evaluation, or what a sum starts from, decides."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irlang.arithmetic import STANDARD
from irlang.interp.program import balls, precision
from tests.lower_calls import case

F32 = np.float32
ZEROS = st.lists(st.sampled_from([0.0, -0.0]), min_size=1, max_size=4)
SMALL = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0])
PRODUCTS = st.lists(st.tuples(SMALL, SMALL), min_size=1, max_size=3)


def _sums(terms: list[float]) -> set[float]:
    """Which signs a sum has that is zero, in every order, from its first term or from 0."""
    found = set()
    for order in itertools.permutations(terms):
        for start in ([], [0.0]):
            total, *rest = map(F32, [*start, *order])
            for term in rest:
                total = total + term
            if total == 0:
                found.add(float(np.copysign(F32(1), total)))
    return found


def _sign(declared: str, call: str, operands: dict[str, Any]) -> tuple[float, bool]:
    """The sign of a result by copysign, and whether it is open."""
    made = case(f"{declared}, one: f32[]", f"copysign(one, {call})", "f32")
    made.inputs.update({name: np.array(value, F32) for name, value in operands.items()})
    values = {**made.inputs, "one": np.array(1, F32)}
    found = balls(made.graph, values, made.catalog, precision(made.graph), STANDARD)["y"]
    return float(np.max(found.value)), bool(np.max(found.bound) > 0)


@given(terms=ZEROS)
def test_a_sum_of_zeros_is_open_only_where_its_start_decides(terms: list[float]) -> None:
    sign, open_ = _sign(f"x: f32[{len(terms)}]", "reduce_sum(x)", {"x": terms})
    possible = _sums(terms)
    assert open_ == (len(possible) == 2)
    assert open_ or possible == {sign}


@given(pairs=PRODUCTS)
def test_a_sum_of_products_is_open_where_its_start_decides(
    pairs: list[tuple[float, float]],
) -> None:
    left, right = (list(numbers) for numbers in zip(*pairs, strict=True))
    possible = _sums([a * b for a, b in pairs])
    if not possible:  # it is no zero
        return
    declared = f"a: f32[1, {len(left)}], b: f32[{len(left)}, 1]"
    operands = {"a": [left], "b": [[number] for number in right]}
    sign, open_ = _sign(declared, "matmul(a, b)", operands)
    assert open_ or possible == {sign}


@pytest.mark.parametrize("size", [1, 4096])
@pytest.mark.parametrize(
    ("call", "there"), [("exp(x)", -1), ("sigmoid(x)", -1), ("softplus(x)", -1), ("erfc(x)", 1)]
)
def test_a_limit_of_zero_is_exact_and_what_is_near_it_is_not(
    call: str, there: int, size: int
) -> None:
    """The first is exp(-inf) of IEEE 754-2019, 9.2.1; what underflows may be flushed, or not."""
    made = case(f"x: f64[{size}]", call, "f64")
    for far, exact in ((np.inf, True), (600.0, False)):
        made.inputs["x"] = np.full(size, there * far)
        found = balls(made.graph, made.inputs, made.catalog, precision(made.graph), STANDARD)["y"]
        assert np.all(found.value < 1e-250)
        assert np.all((np.broadcast_to(found.bound, size) == 0) == exact)
