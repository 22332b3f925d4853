"""Sums of products by BLAS: the radius is the one that NumPy gives, and covers single precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irlang import equations as eq
from irlang.catalog import builtin
from irlang.equations import TensorInfo
from irlang.expand import expand
from irlang.instance import instantiate
from irlang.interp import contraction, reference, rounding
from irlang.interp.ball_products import applies, product_ball
from irlang.interp.balls import Ball, Balls
from irlang.interp.vector import Vector

Array = np.ndarray[Any, Any]
CATALOG = builtin()


def expansion(name: str, inputs: dict[str, Array], dtype: str, **attrs: Any) -> eq.Expansion:
    op = CATALOG.op(name)
    assert op is not None
    infos = {key: TensorInfo(value.shape, dtype) for key, value in inputs.items()}
    return expand(instantiate(op, infos, attrs), CATALOG)


def both_ways(made: eq.Expansion, balls: dict[str, Ball], dtype: str) -> tuple[Ball, Ball]:
    """The last equation's first product, by BLAS and by NumPy."""
    walk = Vector(Balls(dtype), dict(balls), dict(made.tensors))
    found, _ = contraction.find(made.equations[-1], made.tensors)
    assert len(found) == 1
    assert applies(found[0])
    fast = product_ball(found[0], walk.domain, walk.tensors, walk.equation)
    bare = eq.Equation(
        "p",
        made.equations[-1].binders,
        next(p for p in eq.walk(made.equations[-1].body) if isinstance(p, eq.Reduce)),
        made.equations[-1].info,
    )
    slow = walk.equation(bare)
    return fast, slow


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    dtype=st.sampled_from(["f16", "bf16", "f32", "f64"]),
    radii=st.sampled_from([(False, False), (True, False), (False, True), (True, True)]),
    scale=st.sampled_from([1e-30, 1e-6, 1.0, 1e4]),
    size=st.sampled_from([(1, 3, 2), (7, 64, 5), (3, 200, 9)]),
)
def test_the_radius_is_that_of_numpy(
    seed: int, dtype: str, radii: tuple[bool, bool], scale: float, size: tuple[int, int, int]
) -> None:
    random = np.random.default_rng(seed)
    n, c, f = size
    arrays = {"x": random.standard_normal((n, c)) * scale, "w": random.standard_normal((c, f))}
    balls = {
        name: Ball(array, np.abs(array) * random.uniform(0, 1e-3) if own else None)
        for (name, array), own in zip(arrays.items(), radii, strict=True)
    }
    fast, slow = both_ways(expansion("dense", arrays, dtype), balls, dtype)
    assert np.all(np.abs(fast.value - slow.value) <= slow.bound)
    low, high = np.asarray(slow.bound) * (1 - 1e-9), np.asarray(slow.bound) * 1.01
    # what single precision adds below its least normal number shows only beside nothing else
    floor = c * 2.0**-126 * (4 + 4 * float(np.max(np.abs(arrays["x"]))))
    assert np.all(fast.bound >= low)
    assert np.all(fast.bound <= high + floor)


@pytest.mark.parametrize(("stride", "dilation", "pad"), [(1, 1, 1), (2, 1, 1), (1, 2, 2)])
def test_a_convolution_in_single_precision_lies_inside(
    stride: int, dilation: int, pad: int
) -> None:
    random = np.random.default_rng(5)
    shapes = {"x": (2, 8, 14, 14), "w": (16, 8, 3, 3), "b": (16,)}
    single = {name: random.standard_normal(s).astype(np.float32) for name, s in shapes.items()}
    arrays = {name: array.astype(np.float64) for name, array in single.items()}
    attrs = {"stride": stride, "dilation": dilation, "pad": "given", "before": pad, "after": pad}
    made = expansion("conv", arrays, "f32", **attrs)
    balls = rounding.evaluate(made, {name: Ball(array) for name, array in arrays.items()}, "f32")
    ball = balls["y"]
    np.testing.assert_array_equal(ball.value, reference.evaluate(made, arrays)["y"])
    # one tap of the kernel after another in a shuffled order, every product and sum in float32
    padded = np.pad(single["x"], ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    total = np.zeros(ball.value.shape, np.float32)
    for tap in random.permutation(8 * 3 * 3):
        c, k, m = np.unravel_index(tap, (8, 3, 3))
        rows, columns = (
            dilation * int(start) + stride * np.arange(size)
            for start, size in zip((k, m), total.shape[2:], strict=True)
        )
        part = padded[:, c][:, rows][:, :, columns]
        total += single["w"][:, c, k, m][:, None, None] * part[:, None]
    error = np.abs(total + single["b"][:, None, None] - ball.value)
    assert np.all(error <= ball.bound)
    assert np.max(error) > 0


def test_a_sum_too_long_for_its_type_says_nothing() -> None:
    """Of bfloat16, 256 roundings may be as large as the sum."""
    one, other = np.ones((2, 300)), np.ones((300, 3))
    made = expansion("matmul", {"a": one, "b": other}, "bf16")
    balls = {"a": Ball(one, np.full(one.shape, 2.0**-9)), "b": Ball(other)}
    with np.errstate(invalid="ignore"):
        fast, plain = both_ways(made, balls, "bf16")
    for ball in (fast, plain):
        assert not np.isfinite(np.asarray(ball.radius)).any()


@pytest.mark.parametrize("side", ["x", "w"])
def test_of_a_factor_that_is_open_nothing_is_known(side: str) -> None:
    random = np.random.default_rng(3)
    arrays = {"x": random.standard_normal((6, 40)), "w": random.standard_normal((40, 5))}
    arrays["x"][2] = 0.0  # zero times what may be infinite
    balls = {n: Ball(a, np.full(a.shape, np.inf if n == side else 1e-3)) for n, a in arrays.items()}
    with np.errstate(invalid="ignore"):
        fast, slow = both_ways(expansion("dense", arrays, "f32"), balls, "f32")
    np.testing.assert_allclose(fast.value, slow.value, rtol=1e-12)
    for ball in (fast, slow):
        assert not np.isfinite(np.asarray(ball.radius)).any()
    balls[side].radius[0, 0] = 0.0  # all but one
    with np.errstate(invalid="ignore"):
        fast, slow = both_ways(expansion("dense", arrays, "f32"), balls, "f32")
    np.testing.assert_array_equal(np.isfinite(fast.bound), np.isfinite(slow.bound))


def test_what_is_no_number_for_sure_stays_so_beside_what_is_open() -> None:
    """A NaN in the other factor decides, whatever it is multiplied by."""
    arrays = {"x": np.ones((2, 3)), "w": np.ones((3, 2))}
    arrays["w"][:, 1] = np.nan
    balls = {"x": Ball(arrays["x"], np.full((2, 3), np.inf)), "w": Ball(arrays["w"])}
    with np.errstate(invalid="ignore"):
        fast, slow = both_ways(expansion("dense", arrays, "f32"), balls, "f32")
    for ball in (fast, slow):
        np.testing.assert_array_equal(ball.bound, [[np.inf, 0.0]] * 2)


def test_a_convolution_of_what_is_open_is_known_in_its_padding() -> None:
    arrays = {"x": np.ones((1, 1, 1, 1)), "w": np.ones((1, 1, 3, 3))}
    attrs = {"pad": "given", "before": 3, "after": 3}
    made = expansion("conv", arrays, "f32", **attrs)
    balls = {"x": Ball(arrays["x"], np.full((1, 1, 1, 1), np.inf)), "w": Ball(arrays["w"])}
    fast, slow = both_ways(made, balls, "f32")
    np.testing.assert_array_equal(np.isfinite(fast.bound), np.isfinite(slow.bound))
    assert np.isfinite(fast.bound).any()
    assert not np.isfinite(fast.bound).all()
