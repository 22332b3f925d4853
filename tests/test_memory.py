"""Memory that is used again: never what somebody still reads, and never more than what is kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import irlang
from irlang.interp import memory
from irlang.interp.gradient import gradients

SIZES = st.sampled_from(((8192,), (96, 100), (3, 64, 64), (0, 5), (7,), (1 << 17,), (1 << 19,)))
KINDS = st.sampled_from((np.float64, np.int64, np.bool_))


@given(st.lists(st.tuples(SIZES, KINDS, st.integers(0, 4)), max_size=30))
def test_nothing_that_is_read_is_given_again(draws: list[tuple[Any, Any, int]]) -> None:
    """Every array holds what was written to it for as long as it, or a view of it, is there."""
    alive: list[tuple[np.ndarray, int]] = []
    for number, (shape, kind, forgotten) in enumerate(draws):
        array = memory.empty(shape, kind)
        assert array.shape == shape
        assert array.dtype == kind
        array[...] = number % 2 if kind is np.bool_ else number
        alive.append((array[..., ::2].T, number))
        del array
        del alive[:forgotten]
        for view, written in alive:
            assert (view == (written % 2 if view.dtype == np.bool_ else written)).all()
        assert memory.held() <= memory.MOST


def test_what_nobody_reads_is_used_again() -> None:
    array = memory.empty((300, 301), np.float64)
    place = array.ctypes.data
    del array
    again = memory.empty((301, 300), np.int64)  # as many bytes
    assert again.ctypes.data == place
    other = memory.empty((301, 300), np.int64)
    assert other.ctypes.data != place


def test_what_is_idle_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_shelf", {})
    monkeypatch.setattr(memory, "MOST", 1 << 20)
    busy = memory.empty((1 << 18,), np.uint8)
    for extra in range(40):
        memory.empty(((1 << 18) + extra,), np.uint8)
        assert memory.held() <= memory.MOST
    assert memory.held() > 1 << 19
    del busy


def test_gradients_that_are_kept_stay_as_they_are() -> None:
    """Those of one call are not written over by the next one's."""
    text = """nnir 1
model m(x: f64[64, 128], w: f64[128, 256]) -> y: f64[64, 256] {
  y = matmul(x, w)
}
"""
    model = irlang.loads(text)
    values = model.values()
    first = gradients(model.graph, values, model.catalog)
    copies = {name: array.copy() for name, array in first.items()}
    for scale in (2.0, 3.0):
        others = {name: array * scale for name, array in values.items()}
        second = gradients(model.graph, others, model.catalog)
        assert not np.array_equal(second["w"], copies["w"])
    for name, array in first.items():
        np.testing.assert_array_equal(array, copies[name])
