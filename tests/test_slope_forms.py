"""Slopes in the forms that frameworks compute them by: each is a right one, every step of it being
rounded correctly, so that it lies inside of the radius of the definition's own form.
"""

# ruff: noqa: ARG005  (a form reads the operand, its value, or both)

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import irlang
from irlang.interp.gradient import gradient_balls
from irlang.interp.program import balls, precision

Array = np.ndarray
_COUNT = 512
_ONE, _HALF = np.float32(1), np.float32(0.5)


def _rounded(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A function of f32 that is rounded correctly, but for what is next to a tie."""
    return lambda x: function(x.astype(np.float64)).astype(np.float32)


_cos, _exp, _root = _rounded(np.cos), _rounded(np.exp), _rounded(lambda x: 1 / np.sqrt(x))
_erf = _rounded(np.vectorize(math.erf))

# By operator: between which numbers, and slopes from its operand and its value. Those of `asinh`
# and `acosh` by the value lose digits far from 0, and are held to those at ordinary numbers alone.
_FORMS: tuple[tuple[str, float, float, Callable[[Array, Array], Array]], ...] = (
    ("tan", -1.5, 1.5, lambda x, y: (_ONE / _cos(x)) * (_ONE / _cos(x))),
    ("tan", -1.5, 1.5, lambda x, y: _ONE + y * y),
    ("tanh", -6, 6, lambda x, y: _ONE - y * y),
    ("tanh", -6, 6, lambda x, y: (_ONE + y) * (_ONE - y)),
    ("sigmoid", -9, 9, lambda x, y: (_ONE - y) * y),
    ("asin", -0.99, 0.99, lambda x, y: _ONE / np.sqrt(_ONE - x * x)),
    ("asin", -0.99, 0.99, lambda x, y: _root(_ONE - x * x)),
    ("atan", -9, 9, lambda x, y: _ONE / (_ONE + x * x)),
    ("asinh", -9, 9, lambda x, y: _root(x * x + _ONE)),
    ("asinh", -9, 9, lambda x, y: _ONE / _rounded(np.cosh)(y)),
    ("acosh", 1.01, 9, lambda x, y: _root((x - _ONE) * (x + _ONE))),
    ("acosh", 1.01, 9, lambda x, y: _ONE / _rounded(np.sinh)(y)),
    ("atanh", -0.99, 0.99, lambda x, y: _ONE / (_ONE - x * x)),
    ("atanh", -0.99, 0.99, lambda x, y: (_ONE / (_ONE + x)) * (_ONE / (_ONE - x))),
    ("expm1", -9, 9, lambda x, y: _exp(x)),
    ("expm1", -9, 9, lambda x, y: y + _ONE),
    ("rsqrt", 0.01, 9, lambda x, y: -_HALF * (y * y * y)),
    ("rsqrt", 0.01, 9, lambda x, y: (-_HALF / x) * y),
    ("sqrt", 0.01, 9, lambda x, y: _HALF * _root(x)),
    ("reciprocal", 0.1, 9, lambda x, y: -(y * y)),
    ("softplus", -9, 9, lambda x, y: _exp(x) / (_exp(x) + _ONE)),
    ("log_sigmoid", -9, 9, lambda x, y: _ONE / (_exp(x) + _ONE)),
    ("softsign", -9, 9, lambda x, y: _ONE / ((_ONE + abs(x)) * (_ONE + abs(x)))),
    ("gelu", -6, 6, lambda x, y: _HALF * (_ONE + _erf(x * np.float32(0.5**0.5)))
        + x * _exp(-_HALF * x * x) * np.float32((2 * math.pi) ** -0.5)),
)  # fmt: skip


@pytest.mark.parametrize(("name", "low", "high", "form"), _FORMS)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_slope_in_another_form_is_inside_of_the_radius(
    name: str, low: float, high: float, form: Callable[[Array, Array], Array], seed: int
) -> None:
    model = irlang.loads(
        f"nnir 1\nmodel m(x: f32[{_COUNT}]) -> loss: f32[] {{\n"
        f"  y = {name}(x)\n  loss = reduce_sum(y)\n}}"
    )
    graph, catalog = model.graph, model.catalog
    x = np.random.default_rng(seed).uniform(low, high, _COUNT).astype(np.float32)
    found = balls(graph, {"x": x}, catalog, precision(graph))
    slope = gradient_balls(graph, {"x": x}, catalog, found)["x"]
    (value,) = graph.nodes[0].outputs
    got = form(x, np.asarray(found[value].value, dtype=np.float32))
    assert got.dtype == np.float32
    assert np.all(np.abs(got.astype(np.float64) - slope.value) <= slope.bound)
