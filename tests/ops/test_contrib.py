"""ONNX Runtime's own operators of quantised tensors, against NumPy in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.compare import Array, all_left_open, booleans, integers, results, shapes

few = settings(max_examples=25, deadline=None)
ENDS = {"u8": (0, 255), "i8": (-128, 127)}
NUMPY: dict[str, Any] = {"u8": np.uint8, "i8": np.int8}


def drawn(data: st.DataObject, kind: str, shape: tuple[int, ...]) -> Array:
    return data.draw(integers(shape, NUMPY[kind], *ENDS[kind]))


def scale(data: st.DataObject) -> Array:
    return np.array(data.draw(st.integers(1, 999)) / 4096)


def meant(q: Array, zero: Array, step: Array) -> Array:
    return (q.astype(np.float64) - float(zero)) * float(step)


def judged(op: str, inputs: Any, reals: Array, kind: str, **attrs: Any) -> None:
    """Holds results to `reals` quantised; what is between two integers, or nearly, may
    be either.
    """
    zero = float(inputs.get("y_zero", 0))
    steps = reals / float(inputs["y_scale"])
    low, high = ENDS[kind]
    right = np.clip(np.rint(steps) + zero, low, high)
    sure = np.abs(steps - np.floor(steps) - 0.5) > 1e-9 * (1 + np.abs(steps))
    for found in results(op, inputs, **attrs).values():
        assert found[0].shape == right.shape
        assert np.array_equal(found[0][sure], right[sure])
        assert (np.abs(found[0] - right) <= 1).all()
    open_ = all_left_open(op, inputs, **attrs)
    assert not open_ or not open_[0][sure].any()


KINDS = st.sampled_from(["u8", "i8"])


@given(data=st.data(), kind=KINDS, name=st.sampled_from(["add", "multiply"]))
@few
def test_arithmetic(data: st.DataObject, kind: str, name: str) -> None:
    shape = data.draw(shapes(1))
    a, b = drawn(data, kind, shape), drawn(data, kind, shape[1:])
    p, q, z = (drawn(data, kind, ()) for _ in range(3))
    s, t, r = (scale(data) for _ in range(3))
    inputs = {
        "a": a, "b": b, "a_scale": s, "b_scale": t, "y_scale": r,
        "a_zero": p, "b_zero": q, "y_zero": z,
    }  # fmt: skip
    operate = np.add if name == "add" else np.multiply
    judged(f"qlinear_{name}", inputs, operate(meant(a, p, s), meant(b, q, t)), kind)


def _leaky(x: Array) -> Array:
    return np.where(x < 0, 0.25 * x, x)


def _softmax(x: Array) -> Array:
    e = np.exp(x - x.max(1, keepdims=True, initial=-np.inf))
    return np.asarray(e / e.sum(1, keepdims=True))


FUNCTIONS: dict[str, tuple[Callable[[Array], Array], dict[str, Any]]] = {
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), {}),
    "leaky_relu": (_leaky, {"alpha": 0.25}),
    "softmax": (_softmax, {"axis": 1}),
}


@given(data=st.data(), kind=KINDS, name=st.sampled_from(sorted(FUNCTIONS)))
@few
def test_functions(data: st.DataObject, kind: str, name: str) -> None:
    function, attrs = FUNCTIONS[name]
    x, p, z = drawn(data, kind, data.draw(shapes(2))), drawn(data, kind, ()), drawn(data, kind, ())
    s, r = scale(data), scale(data)
    inputs = {"x": x, "x_scale": s, "y_scale": r, "x_zero": p, "y_zero": z}
    judged(f"qlinear_{name}", inputs, function(meant(x, p, s)), kind, **attrs)


@given(data=st.data(), kind=KINDS)
@few
def test_choice_and_joining(data: st.DataObject, kind: str) -> None:
    shape = data.draw(shapes(1))
    a, b = drawn(data, kind, shape), drawn(data, kind, shape)
    c = data.draw(booleans(shape))
    p, q, z = (drawn(data, kind, ()) for _ in range(3))
    s, t, r = (scale(data) for _ in range(3))
    left, right = meant(a, p, s), meant(b, q, t)
    inputs: dict[str, Any] = {
        "condition": c, "a": a, "b": b, "a_scale": s, "b_scale": t, "y_scale": r,
        "a_zero": p, "b_zero": q, "y_zero": z,
    }  # fmt: skip
    judged("qlinear_where", inputs, np.where(c, left, right), kind)
    inputs = {
        "y_scale": r, "y_zero": z, "scales": np.stack([s, t]), "zeros": np.stack([p, q]),
        "xs": (a, b),
    }  # fmt: skip
    judged("qlinear_concat", inputs, np.concatenate([left, right]), kind, axis=0)


@given(data=st.data(), kind=KINDS, counts=st.booleans(), ceil=st.booleans())
@few
def test_means(data: st.DataObject, kind: str, counts: bool, ceil: bool) -> None:
    n, c, length = 1, 2, data.draw(st.integers(2, 7))
    x, p, z = drawn(data, kind, (n, c, length)), drawn(data, kind, ()), drawn(data, kind, ())
    s, r = scale(data), scale(data)
    inputs = {"x": x, "x_scale": s, "y_scale": r, "x_zero": p, "y_zero": z}
    reals = meant(x, p, s)
    judged("qlinear_global_avg_pool", inputs, reals.mean(2, keepdims=True), kind)
    window, stride = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    before, after = (data.draw(st.integers(0, window - 1)) for _ in range(2))
    end = before + length + after
    starts = list(range(0, end - window + 1, stride))
    if ceil and starts and starts[-1] + window < end and starts[-1] + stride < before + length:
        starts.append(starts[-1] + stride)
    means = []
    for start in starts:
        places = range(start - before, min(start + window, end) - before)
        inside = [i for i in places if 0 <= i < length]
        many = len(places) if counts else len(inside)
        means.append(reals[..., inside].sum(-1) / many)
    attrs = {
        "window": window, "stride": stride, "pad": "given", "before": before, "after": after,
        "ceil_mode": ceil, "count_include_pad": counts,
    }  # fmt: skip
    if starts and all(any(0 <= i - before < length for i in range(b, b + window)) for b in starts):
        judged("qlinear_avg_pool", inputs, np.stack(means, -1), kind, **attrs)


def test_the_middle_between_two_integers_is_open() -> None:
    one, half = np.array(1.0), np.array(0.5)
    x = np.array([1, 2, 3], np.uint8)
    inputs = {"a": x, "b": x, "a_scale": half, "b_scale": one, "y_scale": one}
    (open_,) = all_left_open("qlinear_add", inputs)
    assert open_.tolist() == [True, False, True]
    (open_,) = all_left_open("qlinear_add", {**inputs, "b_scale": np.array(np.inf)})
    assert open_.all()
