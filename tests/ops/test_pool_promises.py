"""What pools ensure of windows with NaN beside numbers, whose largest is left open: it is
an element of the window, or NaN, and a place is one of the input.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import irlang
from irlang.diff.calls import Case, broken_promises
from irlang.interp.balls import Ball
from irlang.interp.plain import load

NAN = float("nan")
_POOLS = {
    "max_pool": ("max_pool(x; window = 2, stride = 2)", "f32[1, 1, 2]"),
    "global_max_pool": ("global_max_pool(x; keepdims = true)", "f32[1, 1, 1]"),
    "adaptive_max_pool": ("adaptive_max_pool(x; size = 2)", "f32[1, 1, 2]"),
}
NUMBERS = st.sampled_from([NAN, -np.inf, -3.0, 0.0, 2.0, np.inf])


def broken(text: str, x: list[float], **got: list[float]) -> list[str]:
    """The messages of what is not as ensured of results of a call."""
    model = irlang.loads(f"nnir 1\nmodel m(x: f32[1, 1, 4]) -> {text}")
    fed = {"x": np.array([[x]], np.float32)}
    case = Case(model.graph, fed, {}, model.catalog)
    values = model.graph.values
    given_ = {
        value: np.array([[got[name]]], np.int64 if values[value].dtype == "i64" else np.float32)
        for name, value in model.graph.outputs.items()
    }
    (node,) = model.graph.nodes
    balls = {"x": Ball(load(values["x"], fed["x"]))}
    return [v.message for v in broken_promises(case, node, balls, given_, "torch")]


@pytest.mark.parametrize("pool", _POOLS)
@given(x=st.lists(NUMBERS, min_size=4, max_size=4), pick=st.integers(0, 3), nan=st.booleans())
def test_any_element_of_a_window_may_be_given(
    pool: str, x: list[float], pick: int, nan: bool
) -> None:
    call, shape = _POOLS[pool]
    windows = [x] if pool == "global_max_pool" else [x[:2], x[2:]]
    y = [NAN if nan else window[pick % len(window)] for window in windows]
    assert not broken(f"y: {shape} {{\n  y = {call}\n}}", x, y=y)


@pytest.mark.parametrize("pool", _POOLS)
@pytest.mark.parametrize("other", [-np.inf, float(np.finfo(np.float32).min), 7.0])
def test_nothing_else_may(pool: str, other: float) -> None:
    call, shape = _POOLS[pool]
    y = [other] if pool == "global_max_pool" else [1.0, other]
    (message,) = broken(f"y: {shape} {{\n  y = {call}\n}}", [1.0, NAN, NAN, -2.0], y=y)
    assert "none of its elements" in message


@pytest.mark.parametrize(("place", "holds"), [(0, True), (3, True), (-1, False), (4, False)])
def test_a_place_is_inside(place: int, holds: bool) -> None:
    text = (
        "y: f32[1, 1, 2], i: i64[1, 1, 2] "
        "{\n  y, i = max_pool_with_argmax(x; window = 2, stride = 2)\n}"
    )
    found = broken(text, [NAN, 1.0, 2.0, 3.0], y=[1.0, 3.0], i=[place, 3])
    assert (not found) == holds
