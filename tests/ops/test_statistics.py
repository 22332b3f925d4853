"""Counts, ranks and moments, against NumPy and PyTorch."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.compare import agrees, integers, left_open, reals, shapes

few = settings(max_examples=25)
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def over(data: st.DataObject, rank: int) -> tuple[int, ...]:
    """Some axes, none twice."""
    return tuple(data.draw(st.sets(st.integers(0, rank - 1), min_size=1)))


@given(data=st.data(), keepdims=st.booleans())
@few
def test_counts_and_sums_without_nan(data: st.DataObject, keepdims: bool) -> None:
    x = data.draw(reals(data.draw(shapes(least=1, low=1)), special=True))
    axes = over(data, x.ndim)
    options: dict[str, Any] = {"axis": axes, "keepdims": keepdims}
    rounded: dict[str, Any] = {"operations": 30, "magnitude": 6.0}
    asked: dict[str, Any] = {"axes": axes, "keepdims": keepdims}
    expected = np.asarray(np.count_nonzero(x, **options), np.int64)
    agrees("count_nonzero", {"x": x}, expected, **asked)
    agrees("reduce_nansum", {"x": x}, np.nansum(x, **options), **rounded, **asked)
    agrees("reduce_nanmean", {"x": x}, np.nanmean(x, **options), **rounded, **asked)
    finite = np.where(np.isinf(x), 1.5, x)
    with np.errstate(all="ignore"):
        agrees("reduce_nanprod", {"x": finite}, np.nanprod(finite, **options), **rounded, **asked)
        agrees(
            "reduce_nanvariance", {"x": finite}, np.nanvar(finite, **options), **rounded, **asked
        )
        agrees("reduce_nanstd", {"x": finite}, np.nanstd(finite, **options), **rounded, **asked)
        agrees("reduce_nanvariance", {"x": finite}, np.nanvar(finite, ddof=2, **options),
               correction=2, **rounded, **asked)  # fmt: skip
        agrees("reduce_nanstd", {"x": finite}, np.nanstd(finite, **options), operations=200,
               magnitude=6.0, **asked)  # fmt: skip
    agrees("reduce_nanmax", {"x": x}, np.nanmax(x, **options), **asked)
    agrees("reduce_nanmin", {"x": x}, np.nanmin(x, **options), **asked)


@given(data=st.data())
@few
def test_weighted_average(data: st.DataObject) -> None:
    x = data.draw(reals(data.draw(shapes(least=1, low=1))))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    weights = data.draw(reals((x.shape[axis],), 0.25, 2))
    expected = np.average(x, axis, weights)
    agrees("weighted_average", {"x": x, "weights": weights}, expected, operations=30, magnitude=6.0,
           axis=axis)  # fmt: skip


@given(
    data=st.data(),
    q=st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]),
    interpolation=st.sampled_from(["linear", "lower", "higher", "midpoint", "nearest"]),
    keepdims=st.booleans(),
)
@few
def test_quantile(data: st.DataObject, q: float, interpolation: Any, keepdims: bool) -> None:
    x = data.draw(reals(data.draw(shapes(least=1, low=1, high=5))))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    if interpolation == "nearest" and q * (x.shape[axis] - 1) % 1 == 0.5:
        return
    expected = np.quantile(x, q, axis, method=interpolation, keepdims=keepdims)
    agrees("quantile", {"x": x}, expected, operations=4, magnitude=6.0,
           q=q, axis=axis, interpolation=interpolation, keepdims=keepdims)  # fmt: skip


def test_quantiles_are_open_where_rounding_decides() -> None:
    x = np.arange(11.0)
    for options, expected in (
        ({"q": 0.3, "interpolation": "lower"}, True),  # 0.3 * 10 may be less than 3
        ({"q": 0.35, "interpolation": "lower"}, False),
        ({"q": 0.5, "interpolation": "lower"}, False),
        ({"q": 0.3}, False),
        ({"q": 0.25, "interpolation": "nearest"}, True),
    ):
        open_ = left_open("quantile", {"x": x}, **options)
        assert (open_ is not None and bool(open_)) == expected, options


def test_quantiles_are_open_between_infinities_that_differ() -> None:
    for x, q, expected in (
        ([-np.inf, 1.0, 2.0], 0.25, True),
        ([-np.inf, 1.0, 2.0], 0.0, False),  # that very element
        ([-np.inf, np.inf], 0.5, True),
        ([np.inf, np.inf], 0.5, False),
    ):
        open_ = left_open("quantile", {"x": np.array(x)}, q=q)
        assert (open_ is not None and bool(open_)) == expected, (x, q)


@given(data=st.data(), right=st.booleans())
@few
def test_bucketize(data: st.DataObject, right: bool) -> None:
    x = data.draw(reals(data.draw(shapes())))
    bounds = sorted(data.draw(st.sets(st.integers(-20, 20), min_size=1, max_size=5)))
    boundaries = tuple(bound / 4 for bound in bounds)
    table = torch.tensor(boundaries, dtype=torch.float64)
    expected = torch.bucketize(torch.from_numpy(x), table, right=right).numpy()
    agrees("bucketize", {"x": x}, expected, boundaries=boundaries, right=right)


@given(data=st.data(), size=st.integers(1, 6))
@few
def test_bincount_and_pairs(data: st.DataObject, size: int) -> None:
    count = data.draw(st.integers(0, 6))
    ids, others = (data.draw(integers((count,), np.int64, 0, size - 1)) for _ in range(2))
    agrees("bincount", {"ids": ids}, np.bincount(ids, minlength=size), size=size)
    rows = np.stack([np.bincount(row, minlength=size) for row in (ids, others)])
    agrees("bincount", {"ids": np.stack([ids, others])}, rows, size=size)
    pairs = np.zeros((size, size), np.int64)
    np.add.at(pairs, (ids, others), 1)
    agrees("confusion_matrix", {"labels": ids, "predictions": others}, pairs, classes=size)


@given(data=st.data(), bins=st.sampled_from([1, 2, 4, 8]))
@few
def test_histogram(data: st.DataObject, bins: int) -> None:
    x = data.draw(reals(data.draw(shapes())))
    steps = np.round(x * 8) / 8  # whose parts are the same in any order of evaluation
    expected = np.histogram(steps, bins, (-2.0, 2.0))[0]
    options: dict[str, Any] = {"bins": bins, "low": -2, "high": 2}
    agrees("histogram", {"x": steps}, expected, **options)
    clamped = np.histogram(np.clip(steps, -2.0, 2.0), bins, (-2.0, 2.0))[0]
    agrees("histogram", {"x": steps}, clamped, outside="clamped", **options)
    places = np.clip(np.digitize(steps, np.linspace(-2, 2, bins + 1)) - 1, 0, bins - 1)
    agrees("histogram_place", {"x": steps}, places.astype(np.int32), **options)


@given(data=st.data(), k=st.integers(1, 4))
@few
def test_in_top_k(data: st.DataObject, k: int) -> None:
    x = data.draw(reals((4, 3)))
    labels = data.draw(integers((4,), np.int32, -1, 3))
    own = np.take_along_axis(x, labels[:, None].astype(np.int64) % 3, 1)
    expected = ((x > own).sum(1) < k) & (labels >= 0) & (labels < 3)
    agrees("in_top_k", {"predictions": x, "labels": labels}, expected, k=k)


@given(data=st.data(), n=st.integers(0, 4))
@few
def test_differences_and_integrals(data: st.DataObject, n: int) -> None:
    x = data.draw(reals(data.draw(shapes(least=1, low=1, high=5))))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    agrees(
        "differences", {"x": x}, np.diff(x, n, axis), operations=16, magnitude=96.0, n=n, axis=axis
    )
    agrees("trapezoid", {"x": x}, np.trapezoid(x, dx=0.5, axis=axis), operations=8,
           magnitude=30.0, dx=0.5, axis=axis)  # fmt: skip
    whole = data.draw(integers((4,), np.int8, -128, 127))
    agrees("differences", {"x": whole}, np.diff(whole))


@given(data=st.data(), correction=st.integers(0, 1))
@few
def test_covariances(data: st.DataObject, correction: int) -> None:
    x = data.draw(reals((data.draw(st.integers(1, 3)), 4)))
    expected = np.cov(x, ddof=correction).reshape(len(x), len(x))
    agrees("cov", {"x": x}, expected, operations=16, magnitude=50.0, correction=correction)


@given(data=st.data())
@few
def test_correlations_polynomials_and_running_integrals(data: st.DataObject) -> None:
    x = data.draw(reals((3, 4), -2, 2)) + np.eye(3, 4)
    expected = np.corrcoef(x)
    if np.isfinite(expected).all() and x.std(1).min() > 0.1:
        agrees("corrcoef", {"x": x}, expected, operations=64, magnitude=400.0)
    p = data.draw(reals((data.draw(st.integers(0, 4)),), -2, 2))
    agrees("polyval", {"p": p, "x": x}, np.polyval(p, x), operations=16, magnitude=200.0)
    found = torch.cumulative_trapezoid(torch.from_numpy(x), dx=0.5).numpy()
    agrees("cumulative_trapezoid", {"x": x}, found, operations=8, magnitude=8.0, dx=0.5)
