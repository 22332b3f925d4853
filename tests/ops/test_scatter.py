"""Elements put at positions that tensors say, against PyTorch, TensorFlow and NumPy loops."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from irlang.diagnostics import InvalidInput
from tests.ops.compare import MEANINGS, Array, agrees, expansion, integers, left_open, reals, shapes

few = settings(max_examples=30)
TORCH = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}
FOLD = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


@given(data=st.data(), reduction=st.sampled_from(sorted(TORCH)))
@few
def test_scatter_elements_reduced(data: st.DataObject, reduction: str) -> None:
    x = data.draw(reals(data.draw(shapes(least=1, low=1))))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    shape = [data.draw(st.integers(0, n)) for n in x.shape]
    shape[axis] = data.draw(st.integers(0, 5))
    updates = data.draw(reals(tuple(shape)))
    ids = data.draw(integers(tuple(shape), np.int64, -x.shape[axis], x.shape[axis] - 1))
    positive = torch.from_numpy(ids % x.shape[axis])
    tensors = torch.from_numpy(x), torch.from_numpy(updates)
    expected = tensors[0].scatter_reduce(axis, positive, tensors[1], TORCH[reduction]).numpy()
    inputs = {"x": x, "ids": ids, "updates": updates}
    agrees("scatter_elements", inputs, expected, operations=8, magnitude=6.0**6,
           axis=axis, reduction=reduction, negative="from_end")  # fmt: skip


@given(data=st.data())
@few
def test_scatter_elements_puts_one_of_several(data: st.DataObject) -> None:
    """Where a place is met once, torch agrees; where more often, no verdict is given."""
    x = data.draw(integers(data.draw(shapes(least=1, low=1)), np.int32, -9, 9))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    shape = list(x.shape)
    shape[axis] = data.draw(st.integers(0, 3))
    ids = data.draw(integers(tuple(shape), np.int64, 0, x.shape[axis] - 1))
    updates = data.draw(integers(tuple(shape), np.int32, 10, 99))
    inputs = {"x": x, "ids": ids, "updates": updates}
    met = np.zeros(x.shape, np.int64)
    for place in np.ndindex(*shape):
        target = list(place)
        target[axis] = ids[place]
        met[tuple(target)] += 1
    open_ = left_open("scatter_elements", inputs, axis=axis)
    assert open_ is not None
    np.testing.assert_array_equal(open_, met > 1)
    wanted = torch.from_numpy(x).scatter(axis, torch.from_numpy(ids), torch.from_numpy(updates))
    for meaning in MEANINGS.values():
        got = meaning(expansion("scatter_elements", inputs, axis=axis), inputs)["y"]
        np.testing.assert_array_equal(got[met < 2], wanted.numpy()[met < 2])
        np.testing.assert_array_equal(got >= 10, met > 0)


def _scattered(x: Array, ids: Array, updates: Array, reduction: str) -> Array:
    result = x.copy()
    for place in np.ndindex(*ids.shape[:-1]):
        at = tuple(ids[place])
        new = updates[place]
        result[at] = new if reduction == "none" else FOLD[reduction](result[at], new)
    return result


@given(data=st.data(), reduction=st.sampled_from(["none", *sorted(FOLD)]))
@few
def test_scatter_nd(data: st.DataObject, reduction: str) -> None:
    x = data.draw(reals(data.draw(shapes(least=1, low=1))))
    depth = data.draw(st.integers(0, x.ndim))
    lead = data.draw(shapes(most=2, high=2))
    columns = [data.draw(integers(lead, np.int64, -n, n - 1)) for n in x.shape[:depth]]
    ids = np.stack(columns, -1) if columns else np.zeros((*lead, 0), np.int64)
    updates = data.draw(reals((*lead, *x.shape[depth:])))
    inputs = {"x": x, "ids": ids, "updates": updates}
    attrs: dict[str, Any] = {"reduction": reduction, "negative": "from_end"}
    if reduction == "none":
        open_ = left_open("scatter_nd", inputs, **attrs)
        if open_ is not None and open_.any():
            return
    expected = _scattered(x, ids, updates, reduction)
    agrees("scatter_nd", inputs, expected, operations=8, magnitude=6.0**6, **attrs)


def test_scatter_nd_is_tensorflows() -> None:
    tf = pytest.importorskip("tensorflow")
    x = np.arange(12, dtype=np.int32).reshape(4, 3)
    ids = np.array([[1], [3], [1]], np.int32)
    updates = np.arange(100, 109, dtype=np.int32).reshape(3, 3)
    inputs = {"x": x, "ids": ids, "updates": updates}
    for reduction in ("add", "max", "min"):
        function = getattr(tf, f"tensor_scatter_nd_{reduction}")
        agrees("scatter_nd", inputs, function(x, ids, updates).numpy(), reduction=reduction)
    single = {"x": x, "ids": ids[:2], "updates": updates[:2]}
    wanted = tf.tensor_scatter_nd_update(x, ids[:2], updates[:2]).numpy()
    agrees("scatter_nd", single, wanted)


@given(data=st.data(), reduction=st.sampled_from(sorted(TORCH)))
@few
def test_scatter_slices(data: st.DataObject, reduction: str) -> None:
    x = data.draw(reals(data.draw(shapes(least=1, low=1))))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    count = data.draw(st.integers(0, 4))
    shape = list(x.shape)
    shape[axis] = count
    updates = data.draw(reals(tuple(shape)))
    ids = data.draw(integers((count,), np.int32, 0, x.shape[axis] - 1))
    expected = np.moveaxis(x.copy(), axis, 0)
    for row, new in zip(ids, np.moveaxis(updates, axis, 0), strict=True):
        expected[row] = FOLD[reduction](expected[row], new)
    inputs = {"x": x, "ids": ids, "updates": updates}
    wanted = np.moveaxis(expected, 0, axis)
    agrees("scatter_slices", inputs, wanted, operations=8, magnitude=6.0**5,
           axis=axis, reduction=reduction)  # fmt: skip
    if reduction == "add":
        tensors = (torch.from_numpy(x), torch.from_numpy(ids), torch.from_numpy(updates))
        added = torch.index_add(tensors[0], axis, *tensors[1:]).numpy()
        assert np.abs(wanted - added).max(initial=0) <= 5 * 30 * 2.0**-52  # five terms of size 6


def test_scatter_slices_copies() -> None:
    x, updates = np.zeros((5, 2)), np.arange(1.0, 7.0).reshape(3, 2)
    ids = np.array([4, 0, -3], np.int64)
    expected = torch.index_copy(
        torch.from_numpy(x), 0, torch.tensor([4, 0, 2]), torch.from_numpy(updates)
    )
    inputs = {"x": x, "ids": ids, "updates": updates}
    agrees("scatter_slices", inputs, expected.numpy(), negative="from_end")


@given(data=st.data(), reduction=st.sampled_from(["sum", "prod", "mean", "max", "min"]))
@few
def test_segment_reduce(data: st.DataObject, reduction: str) -> None:
    tf = pytest.importorskip("tensorflow")
    x = data.draw(reals(data.draw(shapes(least=1, low=1))))
    segments = data.draw(st.integers(1, 4))
    ids = data.draw(integers(x.shape[:1], np.int32, -1, segments - 1))
    inputs = {"x": x, "ids": ids}
    attrs: dict[str, Any] = {"segments": segments, "reduction": reduction}
    function = getattr(tf.math, f"unsorted_segment_{reduction}")
    expected = function(x, ids, segments).numpy()
    open_ = left_open("segment_reduce", inputs, **attrs)
    if open_ is None or not open_.any():
        agrees("segment_reduce", inputs, expected, operations=8, magnitude=6.0**3, **attrs)
    else:
        absent = [g not in ids for g in range(segments)]
        np.testing.assert_array_equal(open_.reshape(segments, -1).all(-1), absent)


@given(data=st.data(), mode=st.sampled_from(["linear", "circular"]))
@few
def test_tensor_scatter(data: st.DataObject, mode: str) -> None:
    x = data.draw(reals(data.draw(shapes(least=2, low=1, high=4))))
    axis = data.draw(st.integers(1, x.ndim - 1))
    length = data.draw(st.integers(0, x.shape[axis]))
    shape = list(x.shape)
    shape[axis] = length
    update = data.draw(reals(tuple(shape)))
    most = x.shape[axis] if mode == "circular" else x.shape[axis] - length
    start = data.draw(integers(x.shape[:1], np.int64, 0, most))
    expected = x.copy()
    for n, first in enumerate(start):
        rows = (first + np.arange(length)) % x.shape[axis]
        np.moveaxis(expected[n], axis - 1, 0)[rows] = np.moveaxis(update[n], axis - 1, 0)
    inputs = {"x": x, "update": update, "start": start}
    agrees("tensor_scatter", inputs, expected, axis=axis, mode=mode)
    agrees("tensor_scatter", inputs, expected, axis=axis - x.ndim, mode=mode)


@pytest.mark.parametrize("meaning", MEANINGS)
@pytest.mark.parametrize("position", [-3, 2, 2**40])
def test_a_position_outside_is_refused(meaning: str, position: int) -> None:
    inputs = {"x": np.ones((2, 2)), "ids": np.array([[0], [position]]), "updates": np.ones((2, 1))}
    for op, given_ in (
        ("scatter_elements", inputs),
        ("scatter_nd", {**inputs, "updates": np.ones((2, 2))}),
        ("scatter_slices", {**inputs, "ids": np.array([0, position]), "updates": np.ones((2, 2))}),
    ):
        for negative in ("refused", "from_end"):
            with pytest.raises(InvalidInput, match=f"{op}.in_range"):
                MEANINGS[meaning](expansion(op, given_, negative=negative), given_)


@given(data=st.data())
@settings(max_examples=40)
def test_a_part_is_replaced_as_numpy_assigns(data: st.DataObject) -> None:
    shape = data.draw(shapes(least=1, low=1, high=5))
    begin, step, count = [], [], []
    for size in shape:
        begin.append(data.draw(st.integers(0, size)))
        step.append(data.draw(st.integers(1, 3)))
        count.append(data.draw(st.integers(0, -(-(size - begin[-1]) // step[-1]))))
    x, update = data.draw(reals(shape)), data.draw(reals(tuple(count)))
    wanted = x.copy()
    part = tuple(slice(b, b + (n - 1) * s + 1 if n else b, s)
                 for b, s, n in zip(begin, step, count, strict=True))  # fmt: skip
    wanted[part] = update
    agrees("slice_update", {"x": x, "update": update}, wanted, begin=tuple(begin), step=tuple(step))
