"""What NumPy has by one name: ranges, norms, searches, slopes, correlations; cosine transforms, and
places between elements.
"""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from irlang.adjoint import adjoint
from tests.ops.compare import (
    agrees,
    all_left_open,
    exactly,
    expansion,
    integers,
    left_open,
    reals,
    shapes,
)


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
        side: Any = "right" if right else "left"
        expected = [np.searchsorted(r, v, side) for r, v in zip(row, x, strict=True)]
        wanted = np.array(expected, np.int64).reshape(rows, count)
        agrees("searchsorted", {"row": row, "x": x}, wanted, right=right)


def test_a_place_of_nan_is_open() -> None:
    row, x = np.array([[1.0, 2.0, 2.0]]), np.array([[2.0, np.nan]])
    found = left_open("searchsorted", {"row": row, "x": x})
    assert found is not None
    assert found.tolist() == [[False, True]]


def test_a_place_in_a_row_that_does_not_ascend_is_open() -> None:
    row, x = np.array([[1.0, 2.0, 2.0], [1.0, 0.0, 3.0]]), np.array([[2.0], [2.0]])
    found = left_open("searchsorted", {"row": row, "x": x})
    assert found is not None
    assert found.tolist() == [[False], [True]]


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
    agrees("central_differences", {"x": x}, expected, operations=8,
           magnitude=4 * np.abs(x).max(), axis=axis,
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


def _extended(x: Any, mode: str, beyond: int) -> Any:
    """The input with `beyond` more elements at all sides, by NumPy's own words for them."""
    words: dict[str, Any] = {
        "nearest": "edge",
        "wrap": "wrap",
        "mirror": "reflect",
        "reflect": "symmetric",
    }
    if mode == "constant":
        return np.pad(x, beyond, constant_values=0.75)
    return np.pad(x, beyond, mode=words[mode])


@given(data=st.data(), mode=st.sampled_from(["constant", "nearest", "wrap", "mirror", "reflect"]))
@few
def test_elements_at_coordinates(data: st.DataObject, mode: Any) -> None:
    shape = data.draw(shapes(least=1, most=2, low=1, high=4))
    x = data.draw(reals(shape))
    eighths = data.draw(integers((len(shape), 3), np.int64, -72, 72))
    coordinates = eighths / 8
    wide = _extended(x, mode, 12)
    for order in (0, 1):
        options = {"order": order, "mode": mode, "value": 0.75}
        if order == 0:
            coordinates = np.where(coordinates % 1 == 0.5, coordinates + 0.125, coordinates)
            places = np.round(coordinates).astype(int) + 12
            expected = wide[tuple(places)]
        else:
            low = np.floor(coordinates).astype(int)
            part = coordinates - low
            expected = np.zeros(3)
            for corner in np.ndindex(*(2,) * len(shape)):
                index = tuple(low[d] + corner[d] + 12 for d in range(len(shape)))
                weights = [part[d] if corner[d] else 1 - part[d] for d in range(len(shape))]
                expected = expected + wide[index] * np.prod(weights, 0)
        agrees("map_coordinates", {"x": x, "coordinates": coordinates}, expected, operations=16,
               magnitude=6.0, **options)  # fmt: skip


def test_the_middle_of_two_is_open() -> None:
    coordinates = np.array([[0.5, 1.0, 1e10]])
    inputs = {"x": np.array([1.0, 2.0]), "coordinates": coordinates}
    found = left_open("map_coordinates", inputs, order=0)
    assert found is not None
    assert found.tolist() == [True, False, True]


def test_numbers_are_held_in_range() -> None:
    x = np.array([-np.inf, -129.5, -128.5, -1.9, 3.7, 127.9, 128.0, 1e30, np.inf])
    expected = np.array([-128, -128, -128, -1, 3, 127, 127, 127, 127], np.int8)
    agrees("saturate_cast", {"x": x}, expected, to="i8")
    ends = np.array([-3e9, 3e9, -np.inf, np.inf])
    agrees("saturate_cast", {"x": ends}, np.array([-(2**31), 2**31 - 1] * 2, np.int32), to="i32")
    most = float(np.finfo(np.float32).max)
    held = np.array([-most, most], np.float32)
    agrees("saturate_cast", {"x": np.array([-1e39, 1e300])}, held, to="f32")
    found = all_left_open("saturate_cast", {"x": np.array([1.0, np.nan, np.inf])}, to="i8")
    assert np.any(found, axis=0).tolist() == [False, True, False]


@given(data=st.data(), keepdims=st.booleans())
@few
def test_norms_of_matrices(data: st.DataObject, keepdims: bool) -> None:
    x = data.draw(reals((2, data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3)))))
    orders: dict[str, Any] = {
        "frobenius": "fro", "columns": 1, "rows": np.inf, "least_column": -1, "least_row": -np.inf,
    }  # fmt: skip
    for name, order in orders.items():
        expected = np.linalg.norm(x, order, (-2, -1), keepdims)
        agrees("matrix_norm", {"x": x}, expected, operations=20, order=name, keepdims=keepdims)


@given(data=st.data(), keepdims=st.booleans())
@few
def test_places_without_nan(data: st.DataObject, keepdims: bool) -> None:
    x = data.draw(reals(data.draw(shapes(least=1, low=1))))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    nan = data.draw(reals(x.shape)) > 0.5
    nan &= ~nan.all(axis, keepdims=True)
    x = np.where(nan, np.nan, x)
    for name, numpy in (("nanargmax", np.nanargmax), ("nanargmin", np.nanargmin)):
        expected = np.asarray(numpy(x, axis, keepdims=keepdims), np.int64)
        agrees(name, {"x": x}, expected, axis=axis, keepdims=keepdims)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_gamma_functions_of_matrices(d: int) -> None:
    x = np.array([0.7, 1.0, 2.5, 11.25]) + (d - 1) / 2
    expected = torch.mvlgamma(torch.tensor(x), d).numpy()
    agrees("multigammaln", {"x": x}, expected, operations=64, magnitude=40.0, d=d)
    found = left_open("multigammaln", {"x": np.array([(d - 1) / 2, 20.0])}, d=d)
    assert found is not None
    assert found.tolist() == [True, False]


@given(data=st.data(), mode=st.sampled_from(["constant", "nearest", "wrap", "reflect"]))
@few
def test_images_that_are_moved(data: st.DataObject, mode: Any) -> None:
    rows, columns = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    x = data.draw(reals((1, 2, rows, columns)))
    # quarters, so that places are exact
    moved = data.draw(integers((1, 6), np.int64, -9, 9)) / 4
    a, b = moved[0, :3], moved[0, 3:6]
    r, c = np.indices((rows, columns))
    places = np.array([b[0] * c + b[1] * r + b[2], a[0] * c + a[1] * r + a[2]])
    wide = [_extended(one, mode, 24) for one in x[0]]
    low = np.floor(places).astype(int)
    part = places - low
    expected = np.zeros_like(x)
    for i, j in np.ndindex(2, 2):
        weight = (part[0] if i else 1 - part[0]) * (part[1] if j else 1 - part[1])
        for n, one in enumerate(wide):
            expected[0, n] += weight * one[low[0] + i + 24, low[1] + j + 24]
    agrees("affine_transform", {"x": x, "transform": moved}, expected, operations=32,
           magnitude=6.0, mode=mode, value=0.75)  # fmt: skip


@given(data=st.data(), window=st.tuples(*[st.sampled_from([1, 3, 5])] * 2))
@few
def test_blurred_images(data: st.DataObject, window: Any) -> None:
    x = data.draw(reals((1, 2, data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4)))))
    sigma = (0.5, 1.75)
    expected = x.copy()
    for axis, (size, deviation) in enumerate(zip(window, sigma, strict=True)):
        places = np.arange(size) - size // 2
        weights = np.exp(-0.5 * (places / deviation) ** 2)
        weights /= weights.sum()
        turned = np.moveaxis(expected, axis + 2, -1)
        rows = [np.convolve(one, weights, "full") for one in turned.reshape(-1, turned.shape[-1])]
        cut = np.array(rows)[:, size // 2 : size // 2 + turned.shape[-1]]
        expected = np.moveaxis(cut.reshape(turned.shape), -1, axis + 2)
    agrees("gaussian_blur", {"x": x}, expected, operations=64, magnitude=6.0, window=window,
           sigma=sigma)  # fmt: skip
    even = left_open("gaussian_blur", {"x": x}, window=(2, 3))
    assert even is not None
    assert even.all()


@given(data=st.data())
@few
def test_functions_between_places(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 6))
    places = np.cumsum(np.abs(data.draw(reals((count,)))) + 0.125) - 3
    values = data.draw(reals((count,)))
    x = np.concatenate([data.draw(reals((4,), -6, 9)), places, [np.inf, -np.inf, np.nan]])
    x = x[: len(x) - (count == 1)]  # of one place NumPy gives the value for NaN
    inputs = {"x": x, "places": places, "values": values}
    agrees("interp", inputs, np.interp(x, places, values), operations=64, magnitude=400.0)


def test_gradients_between_places() -> None:
    inputs = {"x": np.array([1.5, -1.0]), "places": np.array([0.0, 1.0, 3.0])}
    inputs["values"] = np.array([5.0, 2.0, 4.0])
    backward = adjoint(expansion("interp", inputs), ["x", "places", "values"])
    found = exactly(backward, {**inputs, "d_y": np.array([1.0, 1.0])})
    # a quarter of the way from (1, 2) to (3, 4), and left of all
    assert found["d_x"].tolist() == [1.0, 0.0]
    assert found["d_places"].tolist() == [0.0, -0.75, -0.25]
    assert found["d_values"].tolist() == [1.0, 0.75, 0.25]


def test_places_that_do_not_ascend_say_nothing() -> None:
    x, values = np.array([0.5]), np.array([1.0, 2.0])
    for places, left in (([0.0, 1.0], False), ([1.0, 1.0], True), ([0.0, np.inf], True)):
        found = left_open("interp", {"x": x, "places": np.array(places), "values": values})
        assert found is not None
        assert found.tolist() == [left]


@given(data=st.data())
@few
def test_products_with_three_diagonals(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 5))
    rows, b = data.draw(reals((2, 3, n))), data.draw(reals((2, n, 3)))
    whole = np.zeros((2, n, n))
    for i in range(n):
        for k, j in enumerate((i + 1, i, i - 1)):
            if 0 <= j < n:
                whole[:, i, j] = rows[:, k, i]
    inputs = {"diagonals": rows, "b": b}
    agrees("tridiagonal_matmul", inputs, whole @ b, operations=8, magnitude=40.0)
