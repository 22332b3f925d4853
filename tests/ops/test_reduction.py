"""Reductions, running sums, positions of extremes and top-k, against NumPy and PyTorch."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.compare import Array, agrees, booleans, integers, left_open, reals, shapes

few = settings(max_examples=25)
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
Function = Callable[..., Any]


def logsumexp(x: Array, axis: tuple[int, ...], keepdims: bool) -> Any:
    return np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))


# Function of NumPy, and the size of the numbers that are rounded on the way.
REAL: dict[str, tuple[Function, Function | int]] = {
    "reduce_sum": (np.sum, lambda x: np.abs(x).sum()),
    "reduce_mean": (np.mean, lambda x: np.abs(x).sum()),
    "reduce_prod": (np.prod, 0),
    "reduce_max": (lambda x, **k: np.max(x, initial=-np.inf, **k), 0),
    "reduce_min": (lambda x, **k: np.min(x, initial=np.inf, **k), 0),
    "reduce_l1": (lambda x, **k: np.sum(np.abs(x), **k), 0),
    "reduce_l2": (lambda x, **k: np.sqrt(np.sum(x * x, **k)), 0),
    "reduce_sum_square": (lambda x, **k: np.sum(x * x, **k), 0),
    "reduce_logsumexp": (logsumexp, 1),
}


def draw_axes(data: st.DataObject, rank: int) -> tuple[int, ...]:
    """Some axes in any order, from either end."""
    order = data.draw(st.permutations(range(rank)))
    chosen = order[: data.draw(st.integers(0, rank))]
    return tuple(axis - rank * data.draw(st.integers(0, 1)) for axis in chosen)


def draw_options(data: st.DataObject, rank: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Attributes of a definition, and NumPy's arguments for them."""
    keepdims = data.draw(st.booleans())
    if data.draw(st.booleans()):
        return {"keepdims": keepdims}, {"keepdims": keepdims, "axis": tuple(range(rank))}
    axes = draw_axes(data, rank)
    return {"keepdims": keepdims, "axes": axes}, {"keepdims": keepdims, "axis": axes}


@pytest.mark.parametrize("op", REAL)
@given(data=st.data())
@settings(max_examples=50)
def test_over_axes(op: str, data: st.DataObject) -> None:
    function, scale = REAL[op]
    x = data.draw(reals(data.draw(shapes())))
    attrs, options = draw_options(data, x.ndim)
    size = scale(x) if callable(scale) else scale
    agrees(op, {"x": x}, function(x, **options), operations=x.size + 4, magnitude=size, **attrs)


@pytest.mark.parametrize("correction", [0, 1, 5])
@given(data=st.data())
@few
def test_variance(correction: int, data: st.DataObject) -> None:
    x = data.draw(reals(data.draw(shapes())))
    attrs, options = draw_options(data, x.ndim)
    attrs["correction"] = correction
    expected = np.var(x, ddof=correction, **options)
    count = np.size(x) / max(np.size(expected), 1)
    if count and not count - correction > 0:  # NumPy divides by zero there too, quietly
        assert not np.isfinite(expected).any()
    rounded: dict[str, Any] = {"operations": 3 * x.size + 3}
    rounded["magnitude"] = np.abs(x).max(initial=0) ** 2
    agrees("reduce_variance", {"x": x}, expected, **rounded, **attrs)
    # A root of v with error e is off by sqrt(v + e) - sqrt(v): what is left of v must not be noise.
    spread = x + np.arange(x.size).reshape(x.shape) * 16.0
    right = np.std(spread, ddof=correction, **options)
    if np.min(right, initial=1) >= 1:
        rounded["magnitude"] = np.abs(spread).max(initial=0) ** 2
        agrees("reduce_std", {"x": spread}, right, **rounded, **attrs)


@pytest.mark.parametrize("op", ["reduce_sum", "reduce_prod", "reduce_l1", "reduce_sum_square"])
@given(data=st.data())
@few
def test_integers_wrap(op: str, data: st.DataObject) -> None:
    x = data.draw(integers(data.draw(shapes()), np.int64, -(2**63) + 1, 2**63 - 1))
    attrs, options = draw_options(data, x.ndim)
    agrees(op, {"x": x}, REAL[op][0](x, **options), **attrs)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8])
@given(data=st.data())
@few
def test_norms_of_integers_are_truncated(dtype: Any, data: st.DataObject) -> None:
    """What is free is where TensorFlow, ONNX's own evaluator and ONNX Runtime 1.20 square in the
    type, and ONNX Runtime 1.31 does not.
    """
    most = np.iinfo(dtype).max
    sizes = [9, 4096, math.isqrt(int(most)) + 2]
    high = min(data.draw(st.sampled_from(sizes)), int(most))
    x = data.draw(integers((3, 2), dtype, 0 if dtype is np.uint8 else -high, high))
    squares = [sum(int(v) ** 2 for v in row) for row in x]
    roots = [math.isqrt(total) for total in squares]
    free = [
        total > most or (total > 2**24 and root**2 != total)
        for total, root in zip(squares, roots, strict=True)
    ]
    mask = left_open("reduce_l2", {"x": x}, axes=(1,))
    assert mask is not None
    assert mask.tolist() == free
    known = ~mask
    if known.any():
        agrees("reduce_l2", {"x": x[known]}, np.array(roots)[known].astype(dtype), axes=(1,))


@given(data=st.data())
@few
def test_extremes_of_integers(data: st.DataObject) -> None:
    x = data.draw(integers(data.draw(shapes(low=1)), np.int64, -(2**63), 2**63 - 1))
    attrs, options = draw_options(data, x.ndim)
    agrees("reduce_max", {"x": x}, np.max(x, **options), **attrs)
    agrees("reduce_min", {"x": x}, np.min(x, **options), **attrs)


@given(data=st.data())
@few
def test_all_and_any(data: st.DataObject) -> None:
    x = data.draw(booleans(data.draw(shapes())))
    attrs, options = draw_options(data, x.ndim)
    agrees("reduce_all", {"x": x}, np.all(x, **options), **attrs)
    agrees("reduce_any", {"x": x}, np.any(x, **options), **attrs)


@pytest.mark.parametrize("op", ["reduce_max", "reduce_min", "reduce_sum", "reduce_logsumexp"])
def test_nan_and_infinity(op: str) -> None:
    rows = np.array([[1, np.nan, np.inf], [1, 2, np.inf], [1, -np.inf, 2], [-np.inf] * 3])
    name = {"reduce_max": "amax", "reduce_min": "amin"}.get(op, op.removeprefix("reduce_"))
    expected = getattr(torch, name)(torch.from_numpy(rows), dim=1).numpy()
    agrees(op, {"x": rows}, expected, operations=6, axes=(1,))


def test_logsumexp_does_not_overflow() -> None:
    x = np.array([[1000.0, 1000.0], [-1000.0, -1000.0]])
    expected = np.array([1000 + np.log(2), -1000 + np.log(2)])
    agrees("reduce_logsumexp", {"x": x}, expected, operations=3, axes=(-1,))


# ---- positions


def position(x: Array, axis: int, best: Function, keepdims: bool, last: bool) -> Any:
    """NumPy's argmax and argmin, from the end if the last of equals is wanted."""
    if last:
        return x.shape[axis] - 1 - best(np.flip(x, axis), axis=axis, keepdims=keepdims)
    return best(x, axis=axis, keepdims=keepdims)


@pytest.mark.parametrize(("op", "best"), [("argmax", np.argmax), ("argmin", np.argmin)])
@given(data=st.data())
@settings(max_examples=60)
def test_positions_of_extremes(op: str, best: Function, data: st.DataObject) -> None:
    shape = list(data.draw(shapes(least=1)))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    shape[axis] = data.draw(st.integers(1, 4))
    x = data.draw(reals(tuple(shape), -1, 1, special=True))
    attrs: dict[str, Any] = {"axis": axis, "keepdims": data.draw(st.booleans())}
    last = data.draw(st.booleans())
    expected = position(x, best=best, last=last, **attrs)
    agrees(op, {"x": x}, expected, select_last=last, **attrs)


# ---- running


def running(x: Array, axis: int, ufunc: Any, exclusive: bool, reverse: bool) -> Array:
    """NumPy's accumulate; `exclusive` puts the neutral element first."""
    x = np.flip(x, axis) if reverse else x
    if exclusive:
        neutral = np.full_like(np.take(x, [], axis=axis), ufunc.identity)
        first = np.full_like(np.take(x, range(min(1, x.shape[axis])), axis=axis), ufunc.identity)
        rest = np.take(x, range(max(0, x.shape[axis] - 1)), axis=axis)
        x = np.concatenate([neutral, first, rest], axis=axis)
    y = ufunc.accumulate(x, axis=axis, dtype=x.dtype)
    return np.flip(y, axis) if reverse else y


@pytest.mark.parametrize(("op", "ufunc"), [("cumsum", np.add), ("cumprod", np.multiply)])
@given(data=st.data())
@settings(max_examples=60)
def test_running(op: str, ufunc: Any, data: st.DataObject) -> None:
    shape = data.draw(shapes(least=1))
    attrs: dict[str, Any] = {
        "axis": data.draw(st.integers(-len(shape), len(shape) - 1)),
        "exclusive": data.draw(st.booleans()),
        "reverse": data.draw(st.booleans()),
    }
    x = data.draw(reals(shape))
    expected = running(x, ufunc=ufunc, **attrs)
    scale = np.abs(x).sum() if op == "cumsum" else 0
    agrees(op, {"x": x}, expected, operations=4, magnitude=scale, **attrs)
    whole = data.draw(integers(shape, np.int8, -128, 127))
    agrees(op, {"x": whole}, running(whole, ufunc=ufunc, **attrs), **attrs)
