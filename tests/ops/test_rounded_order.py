"""What stands where is known of numbers that have been rounded, where they are far enough apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irlang
from irlang.interp.program import balls

# A call on `h`, the types of its results, and how NumPy has the first of these.
CALLS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "sort(h)": ("y: f32[6], at: i64[6]", np.sort),
    "sort(h; stable = false, descending = true)": (
        "y: f32[6], at: i64[6]", lambda h: np.sort(h)[::-1],
    ),
    "top_k(h; k = 3)": ("y: f32[3], at: i64[3]", lambda h: np.sort(h)[:2:-1]),
    "top_k(h; k = 3, stable = false)": ("y: f32[3], at: i64[3]", lambda h: np.sort(h)[:2:-1]),
    "kth_value(h; k = 2)": ("y: f32[], at: i64[]", lambda h: np.sort(h)[1]),
    "quantile(h)": ("y: f32[]", np.median),
    "quantile(h; q = 0.25, interpolation = lower)": ("y: f32[]", lambda h: np.sort(h)[1]),
    "unique(h; size = 6)": ("y: f32[6], counts: i64[6], at: i64[6]", np.unique),
    "unique(h; size = 6, order = first)": ("y: f32[6], counts: i64[6], at: i64[6]", np.copy),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
@given(order=st.permutations(range(6)), scale=st.sampled_from([0.1, 0.3]))
@settings(max_examples=10)
def test_places_are_known(call: str, order: list[int], scale: float) -> None:
    results, expected = CALLS[call]
    names = [result.partition(":")[0] for result in results.split(", ")]
    made = irlang.loads(
        f"nnir 1\nmodel m(x: f32[6]) -> {results} {{\n"
        f"  h = tanh(x)\n  {', '.join(names)} = {call}\n}}\n"
    )
    x = np.array(order, np.float32) * np.float32(scale) - 0.25
    found = balls(made.graph, {"x": x}, made.catalog, "f32")
    assert np.any(found["h"].bound > 0)
    right: Any = expected(np.asarray(found["h"].value))
    np.testing.assert_allclose(found["y"].value, right, rtol=0, atol=1e-12)
    assert np.all(found["y"].bound < 1e-6)
    for name in names[1:]:
        assert not np.any(found[name].bound)


def test_which_boxes_are_kept_is_known() -> None:
    made = irlang.loads(
        "nnir 1\nmodel m(b: f32[3, 4], s: f32[3]) -> at: i64[3] {\n"
        "  at = non_max_suppression(b, tanh(s); size = 3)\n}\n"
    )
    boxes = np.array([[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3]], np.float32)
    given_ = {"b": boxes, "s": np.array([0.2, 0.9, 0.5], np.float32)}
    found = balls(made.graph, given_, made.catalog, "f32")["at"]
    assert np.asarray(found.value).tolist() == [1, 2, -1]
    assert not np.any(found.bound)


def test_two_that_rounding_may_exchange_are_open() -> None:
    made = irlang.loads(
        "nnir 1\nmodel m(x: f32[3]) -> y: f32[3], at: i64[3] {\n  y, at = sort(tanh(x))\n}\n"
    )
    x = np.array([0.5, np.nextafter(np.float32(0.5), np.float32(1)), 0.1], np.float32)
    found = balls(made.graph, {"x": x}, made.catalog, "f32")
    assert np.all(np.isinf(np.broadcast_to(found["at"].bound, (3,))[1:]))
