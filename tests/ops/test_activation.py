"""Activations against PyTorch in float64, or NumPy where Keras alone has the general form."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.compare import Array, agrees, reals, shapes

few = settings(max_examples=25)
Torch = Callable[[torch.Tensor], torch.Tensor]

# Operator, attributes, PyTorch's function, roundings, size of the numbers rounded on the way.
CASES: list[tuple[str, dict[str, Any], Torch, int, float]] = [
    ("relu", {}, F.relu, 1, 0),
    ("relu", {"max_value": 6}, F.relu6, 1, 0),
    ("relu", {"negative_slope": 0.3}, lambda x: F.leaky_relu(x, 0.3), 1, 0),
    ("leaky_relu", {}, F.leaky_relu, 1, 0),
    ("leaky_relu", {"alpha": 1.5}, lambda x: F.leaky_relu(x, 1.5), 1, 0),
    ("leaky_relu", {"alpha": -0.5}, lambda x: F.leaky_relu(x, -0.5), 1, 0),
    ("thresholded_relu", {}, lambda x: F.threshold(x, 1, 0), 1, 0),
    ("thresholded_relu", {"theta": -0.5}, lambda x: F.threshold(x, -0.5, 0), 1, 0),
    ("elu", {}, F.elu, 2, 0),
    ("elu", {"alpha": 0.5}, lambda x: F.elu(x, 0.5), 2, 0),
    ("selu", {}, F.selu, 3, 0),
    ("celu", {}, F.celu, 3, 0),
    ("celu", {"alpha": 2.5}, lambda x: F.celu(x, 2.5), 3, 0),
    ("gelu", {}, F.gelu, 5, 3),
    ("gelu", {"approximate": "tanh"}, lambda x: F.gelu(x, approximate="tanh"), 9, 3),
    ("sigmoid", {}, torch.sigmoid, 3, 0),
    ("silu", {}, F.silu, 4, 0),
    ("silu", {"alpha": 1.702}, lambda x: x * torch.sigmoid(1.702 * x), 9, 0),
    ("mish", {}, F.mish, 9, 0),
    ("softplus", {}, lambda x: F.softplus(x, threshold=50), 5, 0),
    ("softplus", {"beta": 2.5}, lambda x: F.softplus(x, beta=2.5, threshold=50), 20, 0),
    ("softsign", {}, F.softsign, 3, 0),
    ("hard_sigmoid", {"alpha": 1 / 6}, F.hardsigmoid, 4, 1),
    ("hard_sigmoid", {}, lambda x: torch.clamp(0.2 * x + 0.5, 0, 1), 4, 1),
    ("hard_swish", {}, F.hardswish, 5, 6),
    ("hard_tanh", {}, F.hardtanh, 1, 0),
    ("hard_tanh", {"min": -2, "max": 0.5}, lambda x: F.hardtanh(x, -2, 0.5), 1, 0),
    ("hard_tanh", {"min": 1, "max": 1}, lambda x: torch.clamp(x, 1, 1), 1, 0),
    ("log_sigmoid", {}, F.logsigmoid, 5, 0),
    ("tanh_shrink", {}, F.tanhshrink, 2, 6),
    ("soft_shrink", {}, F.softshrink, 1, 6),
    ("soft_shrink", {"threshold": 0}, lambda x: F.softshrink(x, 0), 1, 6),
    ("soft_shrink", {"threshold": 1.25}, lambda x: F.softshrink(x, 1.25), 1, 6),
    ("hard_shrink", {}, F.hardshrink, 1, 0),
    ("hard_shrink", {"threshold": 0}, lambda x: F.hardshrink(x, 0), 1, 0),
    ("hard_shrink", {"threshold": -1}, lambda x: F.hardshrink(x, -1), 1, 0),
    ("squareplus", {}, lambda x: (x + torch.hypot(x, torch.tensor(2.0))) / 2, 5, 12),
    ("squareplus", {"b": 0}, F.relu, 5, 12),
    ("sparse_plus", {}, lambda x: torch.clamp(x + 1, 0, 2) ** 2 / 4 + F.relu(x - 1), 5, 12),
]


@pytest.mark.parametrize(
    ("op", "attrs", "function", "operations", "scale"),
    CASES,
    ids=[f"{op}({','.join(map(str, attrs.values()))})" for op, attrs, *_ in CASES],
)
@given(data=st.data())
@few
def test_as_in_torch(
    op: str,
    attrs: dict[str, Any],
    function: Torch,
    operations: int,
    scale: float,
    data: st.DataObject,
) -> None:
    x = data.draw(reals(data.draw(shapes())))
    expected = function(torch.from_numpy(x)).numpy()
    agrees(op, {"x": x}, expected, operations=operations, magnitude=scale, **attrs)


def keras_relu(x: Array, max_value: float, negative_slope: float, threshold: float) -> Array:
    """The three pieces, one after another."""
    pieces = [x >= max_value, x >= threshold]
    return np.select(pieces, [np.full_like(x, max_value), x], negative_slope * (x - threshold))


@given(data=st.data())
@settings(max_examples=100)
def test_relu_in_three_pieces(data: st.DataObject) -> None:
    x = data.draw(reals(data.draw(shapes())))
    quarters = st.integers(0, 12).map(lambda n: n / 4)
    threshold = data.draw(quarters)
    attrs = {
        "threshold": threshold,
        "max_value": threshold + data.draw(quarters),
        "negative_slope": data.draw(quarters),
    }
    agrees("relu", {"x": x}, keras_relu(x, **attrs), operations=2, magnitude=12, **attrs)


@given(data=st.data())
@few
def test_prelu_slopes_broadcast(data: st.DataObject) -> None:
    shape = data.draw(shapes(least=2, low=1))
    x = data.draw(reals(shape))
    channels = data.draw(reals(shape[1]))
    slope = channels.reshape(-1, *(1,) * (len(shape) - 2))
    expected = F.prelu(torch.from_numpy(x), torch.from_numpy(channels)).numpy()
    agrees("prelu", {"x": x, "slope": slope}, expected)


@given(data=st.data())
@few
def test_glu(data: st.DataObject) -> None:
    shape = list(data.draw(shapes(least=1)))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    shape[axis] = 2 * data.draw(st.integers(1, 2))
    x = data.draw(reals(tuple(shape)))
    expected = F.glu(torch.from_numpy(x), axis).numpy()
    agrees("glu", {"x": x}, expected, operations=4, axis=axis)


@given(data=st.data())
@few
def test_sparsemax(data: st.DataObject) -> None:
    shape = data.draw(shapes(least=1, low=1))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = data.draw(reals(shape))
    # by the sorted numbers: as many stay as the sums of the largest of them allow
    down = -np.sort(-np.moveaxis(x, axis, -1), axis=-1)
    sums = np.cumsum(down, axis=-1) - 1
    many = np.arange(1, down.shape[-1] + 1)
    support = (down * many > sums).sum(axis=-1, keepdims=True)
    lost = np.moveaxis(np.take_along_axis(sums, support - 1, axis=-1) / support, -1, axis)
    operations = 4 * shape[axis]
    expected = np.maximum(x - lost, 0)
    agrees("sparsemax", {"x": x}, expected, operations=operations, magnitude=24, axis=axis)


@pytest.mark.parametrize("op", ["relu", "leaky_relu", "elu", "softplus", "sigmoid", "hard_tanh"])
def test_nan_and_infinity_pass_as_in_torch(op: str) -> None:
    function = {"softplus": F.softplus, "sigmoid": torch.sigmoid, "hard_tanh": F.hardtanh}.get(op)
    function = function or getattr(F, op)
    x = np.array([np.nan, np.inf, -np.inf])
    agrees(op, {"x": x}, function(torch.from_numpy(x)).numpy())
