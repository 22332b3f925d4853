"""Lookups by integer positions, against NumPy and PyTorch."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from irlang.diagnostics import InvalidInput
from tests.ops.compare import MEANINGS, Array, agrees, expansion, integers, shapes

few = settings(max_examples=40)


def numbered(shape: Any) -> Array:
    return np.arange(1, int(np.prod(shape)) + 1).reshape(shape)


@given(data=st.data())
@few
def test_embedding(data: st.DataObject) -> None:
    table = numbered(data.draw(shapes(least=2, most=2, low=1))) / 8
    ids = data.draw(integers(data.draw(shapes()), np.int32, 0, len(table) - 1))
    expected = torch.nn.functional.embedding(torch.from_numpy(ids), torch.from_numpy(table))
    agrees("embedding", {"table": table, "ids": ids}, expected.numpy())


@given(data=st.data())
@few
def test_gather(data: st.DataObject) -> None:
    x = numbered(data.draw(shapes(least=1, low=1)))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    size = x.shape[axis]
    ids = data.draw(integers(data.draw(shapes(most=2)), np.int64, -size, size - 1))
    inputs = {"x": x, "ids": ids}
    agrees("gather", inputs, np.take(x, ids, axis), axis=axis, negative="from_end")
    inputs["ids"] = ids % size
    agrees("gather", inputs, np.take(x, ids, axis), axis=axis)


@given(data=st.data())
@few
def test_take_along_axis(data: st.DataObject) -> None:
    x = numbered(data.draw(shapes(least=1, low=1)))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    size = x.shape[axis]
    shape = list(x.shape)
    shape[axis] = data.draw(st.integers(0, 3))
    ids = data.draw(integers(tuple(shape), np.int64, -size, size - 1))
    inputs = {"x": x, "ids": ids}
    expected = np.take_along_axis(x, ids, axis)
    agrees("take_along_axis", inputs, expected, axis=axis, negative="from_end")
    inputs["ids"] = ids % size
    expected = torch.gather(torch.from_numpy(x), axis, torch.from_numpy(ids % size)).numpy()
    agrees("take_along_axis", inputs, expected, axis=axis)


@given(data=st.data())
@few
def test_gather_nd(data: st.DataObject) -> None:
    x = numbered(data.draw(shapes(least=1, low=1)))
    depth = data.draw(st.integers(0, x.ndim))
    shape = data.draw(shapes(most=2))
    columns = [data.draw(integers(shape, np.int64, -n, n - 1)) for n in x.shape[:depth]]
    ids = np.stack(columns, -1) if columns else np.zeros((*shape, 0), np.int64)
    expected = x[tuple(columns)] if columns else np.broadcast_to(x, (*shape, *x.shape))
    agrees("gather_nd", {"x": x, "ids": ids}, expected, negative="from_end")
    positive = ids % np.array(x.shape[:depth], np.int64)
    agrees("gather_nd", {"x": x, "ids": positive}, expected)


@given(data=st.data())
@few
def test_gather_nd_in_batches(data: st.DataObject) -> None:
    tf = pytest.importorskip("tensorflow")
    x = numbered(data.draw(shapes(least=1, low=1)))
    batch = data.draw(st.integers(0, x.ndim - 1))
    depth = data.draw(st.integers(1, x.ndim - batch))
    shape = (*x.shape[:batch], *data.draw(shapes(most=1)))
    columns = [data.draw(integers(shape, np.int64, 0, n - 1)) for n in x.shape[batch:][:depth]]
    ids = np.stack(columns, -1)
    expected = tf.gather_nd(x, ids, batch_dims=batch).numpy()
    agrees("gather_nd", {"x": x, "ids": ids}, expected, batch_dims=batch)


@given(data=st.data())
@few
def test_one_hot(data: st.DataObject) -> None:
    ids = data.draw(integers(data.draw(shapes(most=2)), np.int64, -4, 4))
    depth = data.draw(st.integers(0, 3))
    axis = data.draw(st.integers(-ids.ndim - 1, ids.ndim))
    for negative, places in (("off", ids), ("from_end", np.where(ids < 0, ids + depth, ids))):
        hot = np.moveaxis(places[..., None] == np.arange(depth), -1, axis)
        attrs: dict[str, Any] = {"depth": depth, "axis": axis, "negative": negative}
        agrees("one_hot", {"ids": ids}, np.where(hot, 1.0, 0.0), **attrs)
        agrees("one_hot", {"ids": ids}, np.where(hot, 5, -2), on=5, off=-2, to="i32", **attrs)
        agrees("one_hot", {"ids": ids}, hot, to="bool", **attrs)


@given(st.data())
def test_unravel_index(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 4), max_size=4))
    ids = data.draw(integers((data.draw(st.integers(0, 5)),), np.int64, 0, math.prod(shape) - 1))
    axes = np.unravel_index(ids, shape) if shape else ()  # of no axes NumPy takes one position
    expected = np.stack(axes) if axes else np.zeros((0, len(ids)), np.int64)
    agrees("unravel_index", {"ids": ids}, expected, shape=tuple(shape))


@pytest.mark.parametrize("meaning", MEANINGS)
@pytest.mark.parametrize("position", [-3, 2, 2**40])
def test_a_position_outside_is_refused(meaning: str, position: int) -> None:
    inputs = {"x": np.ones((2, 2)), "ids": np.array([[0], [position]])}
    for op in ("gather", "take_along_axis", "gather_nd"):
        for negative in ("refused", "from_end"):
            with pytest.raises(InvalidInput, match=f"{op}.in_range"):
                MEANINGS[meaning](expansion(op, inputs, negative=negative), inputs)
