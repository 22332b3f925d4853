"""What NumPy has by one name: ranges, norms, searches, slopes, correlations; cosine transforms."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.compare import agrees, integers, left_open, reals, shapes


def whole(shape: Any) -> st.SearchStrategy[Any]:
    """Small integers."""
    return integers(shape, np.int64, -5, 5)


few = settings(max_examples=25)
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@given(data=st.data(), keepdims=st.booleans())
@few
def test_ranges(data: st.DataObject, keepdims: bool) -> None:
    shape = data.draw(shapes(least=1, low=1))
    axes = tuple(data.draw(st.sets(st.integers(0, len(shape) - 1), min_size=1)))
    for x in (data.draw(reals(shape, special=True)), data.draw(whole(shape))):
        expected = np.ptp(x, axis=axes, keepdims=keepdims)
        agrees("reduce_ptp", {"x": x}, expected, axes=axes, keepdims=keepdims)


@given(data=st.data(), p=st.sampled_from([0, 0.5, 1, 1.5, 2, 3, np.inf, -np.inf, -1, -2]))
@few
def test_norms_of_any_order(data: st.DataObject, p: float) -> None:
    x = data.draw(reals(data.draw(shapes(least=1, low=1))))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    expected = np.linalg.norm(x, p, axis)
    agrees("reduce_lp", {"x": x}, expected, operations=64, magnitude=np.abs(x).max(), axes=(axis,),
           p=float(p))  # fmt: skip


@given(data=st.data(), right=st.booleans())
@few
def test_places_among_rows(data: st.DataObject, right: bool) -> None:
    rows, width, count = (data.draw(st.integers(0, 4)) for _ in range(3))
    for kind in (reals, whole):
        row = np.sort(data.draw(kind((rows, width))))
        x = data.draw(kind((rows, count)))
        x[:, : min(count, width)] = row[:, : min(count, width)]
        side = "right" if right else "left"
        expected = [np.searchsorted(r, v, side) for r, v in zip(row, x, strict=True)]
        wanted = np.array(expected, np.int64).reshape(rows, count)
        agrees("searchsorted", {"row": row, "x": x}, wanted, right=right)


def test_a_place_of_nan_is_open() -> None:
    row, x = np.array([[1.0, 2.0, 2.0]]), np.array([[2.0, np.nan]])
    found = left_open("searchsorted", {"row": row, "x": x})
    assert found is not None
    assert found.tolist() == [[False, True]]


@given(
    data=st.data(),
    q=st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]),
    interpolation=st.sampled_from(["linear", "lower", "higher", "midpoint"]),
    keepdims=st.booleans(),
)
@few
def test_quantiles_without_nan(
    data: st.DataObject, q: float, interpolation: Any, keepdims: bool
) -> None:
    x = data.draw(reals(data.draw(shapes(least=1, low=1))))
    x = np.where(data.draw(reals(x.shape)) > 0.5, np.nan, x)
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    expected = np.nanquantile(x, q, axis, method=interpolation, keepdims=keepdims)
    agrees("nanquantile", {"x": x}, expected, operations=6, magnitude=4.0, axis=axis, q=q,
           interpolation=interpolation, keepdims=keepdims)  # fmt: skip
    if interpolation == "lower" and q == 0.5:
        median = torch.nanmedian(torch.tensor(x), axis, keepdim=keepdims).values.numpy()
        agrees("nanquantile", {"x": x}, median, axis=axis, interpolation="lower", keepdims=keepdims)


@given(data=st.data(), order=st.sampled_from([1, 2]), spacing=st.sampled_from([1, 0.5, -3]))
@few
def test_slopes(data: st.DataObject, order: Any, spacing: float) -> None:
    shape = list(data.draw(shapes(least=1, low=1)))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    shape[axis] += order
    x = data.draw(reals(tuple(shape)))
    expected = np.gradient(x, spacing, axis=axis, edge_order=order)
    agrees("gradient", {"x": x}, expected, operations=8, magnitude=4 * np.abs(x).max(), axis=axis,
           edge_order=order, spacing=spacing)  # fmt: skip


@given(data=st.data())
@few
def test_running_sums_and_products_without_nan(data: st.DataObject) -> None:
    x = data.draw(reals(data.draw(shapes(least=1))))
    x = np.where(data.draw(reals(x.shape)) > 1, np.nan, x)
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    agrees("nancumsum", {"x": x}, np.nancumsum(x, axis), operations=8, magnitude=20.0, axis=axis)
    agrees("nancumprod", {"x": x}, np.nancumprod(x, axis), operations=8, axis=axis)
    ends = np.array([1.0, np.nan, np.inf, np.nan, 2.0])
    agrees("nancumsum", {"x": ends}, np.nancumsum(ends))
    agrees("nancumprod", {"x": -ends}, np.nancumprod(-ends))


@given(data=st.data(), mode=st.sampled_from(["valid", "same", "full"]))
@few
def test_correlations(data: st.DataObject, mode: Any) -> None:
    a, b = (data.draw(reals((data.draw(st.integers(1, 6)),))) for _ in range(2))
    expected = np.correlate(a, b, mode)
    agrees("correlate", {"a": a, "b": b}, expected, operations=16, magnitude=16.0, mode=mode)


def _cosines(kind: int, n: int) -> Any:
    """The matrices that are written in the documentation of scipy.fft.dct."""
    k, i = np.arange(n)[:, None], np.arange(n)[None, :]
    if kind == 1:
        found = 2 * np.cos(np.pi * k * i / (n - 1))
        found[:, 0], found[:, -1] = 1, (-1.0) ** np.arange(n)
        return found
    if kind == 2:
        return 2 * np.cos(np.pi * k * (2 * i + 1) / (2 * n))
    if kind == 3:
        found = 2 * np.cos(np.pi * i * (2 * k + 1) / (2 * n))
        found[:, 0] = 1
        return found
    return 2 * np.cos(np.pi * (2 * k + 1) * (2 * i + 1) / (4 * n))


@given(data=st.data(), kind=st.sampled_from([1, 2, 3, 4]), size=st.integers(2, 9))
@few
def test_cosine_transforms(data: st.DataObject, kind: int, size: int) -> None:
    x = data.draw(reals((2, size)))
    terms: dict[str, Any] = {"operations": 64, "magnitude": 2.0 * size * np.abs(x).max()}
    matrix = _cosines(kind, size)
    agrees("dct", {"x": x}, x @ matrix.T, type=kind, **terms)
    back = np.linalg.solve(matrix, x.T).T
    agrees("dct", {"x": x}, back, type=kind, inverse=True, operations=4096, magnitude=20.0)
    if kind > 1:
        even = matrix.copy()
        if kind == 2:
            even[0] /= np.sqrt(2)
        elif kind == 3:
            even[:, 0] *= np.sqrt(2)
        even /= np.sqrt(2 * size)
        assert np.abs(even @ even.T - np.eye(size)).max() < 1e-13
        agrees("dct", {"x": x}, x @ even.T, type=kind, ortho=True, **terms)
        agrees("dct", {"x": x}, x @ even, type=kind, ortho=True, inverse=True, **terms)


@given(start=st.integers(1, 90), stop=st.integers(1, 90), count=st.integers(0, 9),
       sign=st.sampled_from([-1, 1]))  # fmt: skip
@few
def test_numbers_as_many_times_as_large(start: int, stop: int, count: int, sign: int) -> None:
    ends = sign * start / 8, sign * stop / 8
    expected = np.geomspace(*ends, count)
    agrees("geomspace", {}, expected, operations=64, magnitude=12.0, start=ends[0], stop=ends[1],
           count=count, to="f64")  # fmt: skip


@given(data=st.data())
@few
def test_a_diagonal_is_replaced(data: st.DataObject) -> None:
    rows, columns = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 5))
    offset = data.draw(st.integers(1 - rows, columns - 1))
    x = data.draw(reals((2, rows, columns)))
    size = len(np.diagonal(x[0], offset))
    diagonal = data.draw(reals((2, size)))
    scattered = torch.diagonal_scatter(
        torch.tensor(x), torch.tensor(diagonal), offset, dim1=-2, dim2=-1
    )
    agrees("set_diagonal", {"x": x, "diagonal": diagonal}, scattered.numpy(), offset=offset)


@given(data=st.data())
@few
def test_inner_products_of_rows(data: st.DataObject) -> None:
    shared = data.draw(st.integers(0, 3))
    for kind in (reals, whole):
        a = data.draw(kind((*data.draw(shapes(most=2)), shared)))
        b = data.draw(kind((*data.draw(shapes(most=2)), shared)))
        agrees("inner", {"a": a, "b": b}, np.inner(a, b), operations=8, magnitude=16.0)
