"""Diagonals and products of whole tensors, against NumPy, PyTorch and TensorFlow."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.compare import agrees, integers, reals, shapes

few = settings(max_examples=30)


def two_axes(data: st.DataObject, rank: int) -> tuple[int, ...]:
    one, other = data.draw(st.permutations(range(rank)))[:2]
    return tuple(axis - rank if data.draw(st.booleans()) else axis for axis in (one, other))


@given(data=st.data())
@few
def test_diagonal_and_trace(data: st.DataObject) -> None:
    x = data.draw(reals(data.draw(shapes(least=2))))
    axes, offset = two_axes(data, x.ndim), data.draw(st.integers(-4, 4))
    expected = np.diagonal(x, offset, *axes)
    agrees("diagonal", {"x": x}, expected, axes=axes, offset=offset)
    agrees("trace", {"x": x}, expected.sum(-1), operations=4, magnitude=18.0,
           axes=axes, offset=offset)  # fmt: skip
    whole = data.draw(integers((3, 2), np.int8, -128, 127))
    agrees("trace", {"x": whole}, np.trace(whole, dtype=np.int8), axes=(0, 1))


@given(data=st.data())
@few
def test_diag_embed(data: st.DataObject) -> None:
    x = data.draw(reals(data.draw(shapes(least=1))))
    axes, offset = two_axes(data, x.ndim + 1), data.draw(st.integers(-2, 2))
    expected = torch.diag_embed(torch.from_numpy(x), offset, *axes).numpy()
    agrees("diag_embed", {"x": x}, expected, axes=axes, offset=offset)
    agrees("diag_embed", {"x": x > 0}, expected > 0, axes=axes, offset=offset)


@given(data=st.data())
@few
def test_kron(data: st.DataObject) -> None:
    a = data.draw(reals(data.draw(shapes(most=2))))
    b = data.draw(reals(data.draw(shapes(least=a.ndim, most=a.ndim))))
    agrees("kron", {"a": a, "b": b}, torch.kron(*map(torch.from_numpy, (a, b))).numpy())


@given(data=st.data())
@few
def test_cross(data: st.DataObject) -> None:
    shape = list(data.draw(shapes(least=1)))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    shape[axis] = 3
    a, b = (data.draw(reals(tuple(shape))) for _ in range(2))
    expected = torch.linalg.cross(*map(torch.from_numpy, (a, b)), dim=axis).numpy()
    agrees("cross", {"a": a, "b": b}, expected, operations=3, magnitude=72.0, axis=axis)


@given(data=st.data(), indexing=st.sampled_from(["ij", "xy"]))
@few
def test_meshgrid(data: st.DataObject, indexing: Any) -> None:
    sizes = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    xs = tuple(np.arange(1.0, n + 1) for n in sizes)
    agrees("meshgrid", {"xs": xs}, list(np.meshgrid(*xs, indexing=indexing)), indexing=indexing)


@given(data=st.data())
@few
def test_reverse_sequence(data: st.DataObject) -> None:
    tf = pytest.importorskip("tensorflow")
    x = data.draw(reals(data.draw(shapes(least=2, low=1))))
    axis, batch_axis = two_axes(data, x.ndim)
    lengths = data.draw(integers((x.shape[batch_axis],), np.int64, 0, x.shape[axis]))
    places = axis % x.ndim, batch_axis % x.ndim
    expected = tf.reverse_sequence(x, lengths, seq_axis=places[0], batch_axis=places[1]).numpy()
    inputs = {"x": x, "lengths": lengths}
    agrees("reverse_sequence", inputs, expected, axis=axis, batch_axis=batch_axis)


@given(data=st.data())
@few
def test_systems_of_three_diagonals(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 5))
    rows, b = data.draw(reals((2, 3, size))), data.draw(reals((2, size, 2)))
    rows[:, 1] += np.where(rows[:, 1] < 0, -16.0, 16.0)  # far from singular
    matrix = np.zeros((2, size, size))
    for i in range(size):
        matrix[:, i, i] = rows[:, 1, i]
        if i:
            matrix[:, i - 1, i], matrix[:, i, i - 1] = rows[:, 0, i - 1], rows[:, 2, i]
    agrees("tridiagonal_solve", {"diagonals": rows, "b": b}, np.linalg.solve(matrix, b),
           operations=256, magnitude=4.0)  # fmt: skip


@given(data=st.data(), lower=st.booleans())
@few
def test_triangular_systems_of_bands(data: st.DataObject, lower: bool) -> None:
    size, count = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 5))
    bands, b = data.draw(reals((count, size))), data.draw(reals((size, 2)))
    middle = 0 if lower else count - 1
    bands[middle] += np.where(bands[middle] < 0, -16.0, 16.0)
    matrix = np.zeros((size, size))
    for d in range(min(count, size)):
        for i in range(size - d):
            if lower:
                matrix[i + d, i] = bands[d, i + d]
            else:
                matrix[i, i + d] = bands[count - 1 - d, i]
    agrees("banded_triangular_solve", {"bands": bands, "b": b}, np.linalg.solve(matrix, b),
           operations=256, magnitude=4.0, lower=lower)  # fmt: skip
