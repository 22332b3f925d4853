"""Sorting, selection and running extremes, against NumPy and PyTorch."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from irlang.interp import rounding
from irlang.interp.balls import Ball
from tests.ops.compare import Array, agrees, expansion, integers, left_open, reals, shapes

few = settings(max_examples=30)


def drawn(data: st.DataObject, special: bool = True) -> tuple[Array, int]:
    """Numbers with ties, an axis."""
    shape = data.draw(shapes(least=1, high=4))
    if data.draw(st.booleans()):
        x = data.draw(integers(shape, data.draw(st.sampled_from([np.int8, np.int64])), -2, 2))
    else:
        x = data.draw(reals(shape, special=special))
    return x, data.draw(st.integers(-x.ndim, x.ndim - 1))


@given(data=st.data(), descending=st.booleans())
@few
def test_sort(data: st.DataObject, descending: bool) -> None:
    x, axis = drawn(data)
    found = torch.sort(torch.from_numpy(x), dim=axis, descending=descending, stable=True)
    expected = [found.values.numpy(), found.indices.numpy()]
    agrees("sort", {"x": x}, expected, axis=axis, descending=descending)
    if not descending:
        assert np.array_equal(expected[0], np.sort(x, axis), equal_nan=True)
        np.testing.assert_array_equal(expected[1], np.argsort(x, axis, kind="stable"))


def test_the_order_of_equals_is_open_where_it_need_not_be_stable() -> None:
    x = np.array([2.0, 1.0, 2.0, np.nan, 0.0, np.nan])
    open_ = left_open("sort", {"x": x}, stable=False, nans="largest")
    assert open_ is not None
    np.testing.assert_array_equal(open_, [False, False, True, True, True, True])


def test_the_order_is_open_where_an_element_is_nan() -> None:
    x = np.array([[2.0, np.nan, 1.0], [3.0, 1.0, 2.0]])
    made = expansion("sort", {"x": x})
    balls = rounding.evaluate(made, {"x": Ball(x)}, "f64")
    for name in made.outputs:
        radius = np.broadcast_to(balls[name].bound, x.shape)
        np.testing.assert_array_equal(np.isinf(radius).all(-1), [True, False])
        assert not radius[1].any()


@given(data=st.data(), largest=st.booleans())
@few
def test_top_k(data: st.DataObject, largest: bool) -> None:
    x, axis = drawn(data)
    k = data.draw(st.integers(0, x.shape[axis]))
    found = torch.sort(torch.from_numpy(x), dim=axis, descending=largest, stable=True)
    values, places = (t.narrow(axis, 0, k).numpy() for t in (found.values, found.indices))
    agrees("top_k", {"x": x}, [values, places], axis=axis, k=k, largest=largest)
    top = torch.topk(torch.from_numpy(x), k, dim=axis, largest=largest).values.numpy()
    assert np.array_equal(top, values, equal_nan=True)


@given(data=st.data(), keepdims=st.booleans())
@few
def test_kth_value(data: st.DataObject, keepdims: bool) -> None:
    x, axis = drawn(data, special=False)
    if not x.shape[axis] or not x.size:
        return
    k = data.draw(st.integers(1, x.shape[axis]))
    values = torch.kthvalue(torch.from_numpy(x), k, dim=axis, keepdim=keepdims).values.numpy()
    places = np.take(np.argsort(x, axis, kind="stable"), [k - 1], axis)
    places = places if keepdims else places.squeeze(axis)
    agrees("kth_value", {"x": x}, [values, places], axis=axis, k=k, keepdims=keepdims)


@given(data=st.data())
@few
def test_hardmax(data: st.DataObject) -> None:
    x = data.draw(reals(data.draw(shapes(least=1)), special=True))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    expected = np.zeros(x.shape)
    if x.size:
        np.put_along_axis(expected, np.argmax(x, axis, keepdims=True), 1.0, axis)
    agrees("hardmax", {"x": x}, expected, axis=axis)


@pytest.mark.parametrize("name", ["cummax", "cummin"])
@given(data=st.data(), reverse=st.booleans())
@few
def test_running_extremes(name: str, data: st.DataObject, reverse: bool) -> None:
    x, axis = drawn(data)
    tensor = torch.from_numpy(x).flip(axis) if reverse else torch.from_numpy(x)
    found = getattr(torch, name)(tensor, dim=axis)
    values, places = found.values, found.indices
    if reverse:
        values, places = values.flip(axis), x.shape[axis] - 1 - places.flip(axis)
    agrees(name, {"x": x}, [values.numpy(), places.numpy()], axis=axis, reverse=reverse)


@given(data=st.data(), reverse=st.booleans())
@few
def test_logcumsumexp(data: st.DataObject, reverse: bool) -> None:
    x = data.draw(reals(data.draw(shapes(least=1)), low=-30, high=30))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    tensor = torch.from_numpy(x).flip(axis) if reverse else torch.from_numpy(x)
    found = torch.logcumsumexp(tensor, dim=axis)
    expected = (found.flip(axis) if reverse else found).numpy()
    attrs: dict[str, Any] = {"axis": axis, "reverse": reverse}
    agrees("logcumsumexp", {"x": x}, expected, operations=16, magnitude=30.0, **attrs)
