"""What casts between floating-point types add to radii, and leave of gradients."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import irlang
from irlang.interp.balls import Ball
from irlang.interp.gradient import gradient_balls
from irlang.interp.program import balls, precision, stored

_WIDTHS = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}
_TYPES = tuple(_WIDTHS)


def _nearest(value: float, digits: int) -> float:
    """The nearest number of so many binary digits, of any exponent."""
    part, exponent = np.frexp(value)
    return float(np.ldexp(np.rint(np.ldexp(part, digits)), exponent - digits))


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        (a, b)
        for a in _TYPES
        for b in _TYPES
        if _WIDTHS[b] < _WIDTHS[a] and (a, b) != ("f16", "bf16")
    ],
)
@given(st.floats(-2, 2), st.floats(0, 2))
def test_a_number_anywhere_in_a_ball_is_rounded_to_the_type_of_the_result(
    wide: str, narrow: str, value: float, radius: float
) -> None:
    model = irlang.loads(
        f"nnir 1\nmodel m(x: {wide}[]) -> y: {narrow}[] {{\n  y = cast(x; to = {narrow})\n}}"
    )
    (node,) = model.graph.nodes
    found = stored(value, radius, node.expansion(model.catalog), "y")
    for end in (value - radius, value + radius):
        got = _nearest(end, _WIDTHS[narrow])
        assert abs(got - value) <= float(found) * (1 + 1e-12) + 2.0**-50


@pytest.mark.parametrize(
    ("narrow", "largest", "exact", "other"),
    [("f16", 65504.0, 1.5, 1.1), ("bf16", 2.0**127, -0.375, 3.3)],
)
def test_what_a_type_has_is_not_rounded_beside_what_it_has_not(
    narrow: str, largest: float, exact: float, other: float
) -> None:
    model = irlang.loads(
        f"nnir 1\nmodel m(x: f32[4]) -> y: {narrow}[4] {{\n  y = cast(x; to = {narrow})\n}}"
    )
    values = {"x": np.array([largest, exact, 0.0, other], np.float32)}
    found = balls(model.graph, values, model.catalog, precision(model.graph))["y"]
    assert (np.asarray(found.bound) == 0).tolist() == [True, True, True, False]
    assert found.value.tolist()[:3] == [largest, exact, 0.0]


@pytest.mark.parametrize("target", _TYPES)
@pytest.mark.parametrize("source", _TYPES)
def test_no_number_is_near_the_bounds_of_a_type_because_its_distance_overflows(
    source: str, target: str
) -> None:
    """Of f16, 65520 less 1 is no number: yet 1 is below it, and its slope is known."""
    model = irlang.loads(
        f"nnir 1\nmodel m(x: {source}[4]) -> y: {target}[4] {{\n  y = cast(x; to = {target})\n}}"
    )
    values = {"x": np.array([1.0, -1.0, 0.5, 30000.0])}
    found = balls(model.graph, values, model.catalog, precision(model.graph))
    slope: Ball = gradient_balls(model.graph, values, model.catalog, found)["x"]
    assert np.array_equal(np.broadcast_to(slope.value, (4,)), np.ones(4))
    assert np.all(slope.bound <= 2.0**-7)
