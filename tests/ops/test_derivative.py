"""What flows back through functions of elements, against PyTorch's own gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.compare import agrees, left_open, reals, shapes

few = settings(max_examples=25)
Array = np.ndarray[Any, Any]
Function = Callable[[Any], Any]
_AWAY = 0.125  # from where two sides meet, and from the end of a domain


def flown(function: Function, x: Array, g: Array) -> tuple[Array, Array]:
    """The result of a function, and what flows back of `g`."""
    leaf = torch.tensor(x, requires_grad=True)
    y = function(leaf)
    y.backward(torch.tensor(g))
    assert leaf.grad is not None
    return y.detach().numpy(), leaf.grad.numpy()


OF_RESULTS: dict[str, tuple[Function, float]] = {
    "tanh_gradient": (torch.tanh, -6),
    "sigmoid_gradient": (torch.sigmoid, -6),
    "sqrt_gradient": (torch.sqrt, _AWAY),
    "rsqrt_gradient": (torch.rsqrt, _AWAY),
    "reciprocal_gradient": (torch.reciprocal, _AWAY),
    "elu_gradient": (torch.nn.functional.elu, -6),
    "selu_gradient": (torch.nn.functional.selu, -6),
}
OF_ARGUMENTS: dict[str, tuple[Function, dict[str, float]]] = {
    "relu_gradient": (torch.nn.functional.relu, {}),
    "hard_tanh_gradient": (
        lambda x: torch.nn.functional.hardtanh(x, -2, 3),
        {"low": -2, "high": 3},
    ),
    "leaky_relu_gradient": (lambda x: torch.nn.functional.leaky_relu(x, 0.3), {"alpha": 0.3}),
    "softplus_gradient": (torch.nn.functional.softplus, {}),
    "softsign_gradient": (torch.nn.functional.softsign, {}),
}


@pytest.mark.parametrize("op", OF_RESULTS)
@given(data=st.data())
@few
def test_of_a_result(op: str, data: st.DataObject) -> None:
    function, low = OF_RESULTS[op]
    shape = data.draw(shapes())
    x, g = data.draw(reals(shape, low=low)), data.draw(reals(shape))
    x = np.where(np.abs(x) < _AWAY, _AWAY, x)
    y, wanted = flown(function, x, g)
    agrees(op, {"g": g, "y": y}, wanted, operations=16, magnitude=6000.0)


@pytest.mark.parametrize("op", OF_ARGUMENTS)
@given(data=st.data())
@few
def test_of_an_argument(op: str, data: st.DataObject) -> None:
    function, said = OF_ARGUMENTS[op]
    shape = data.draw(shapes())
    x, g = data.draw(reals(shape)), data.draw(reals(shape))
    _, wanted = flown(function, x, g)
    agrees(op, {"g": g, "x": x}, wanted, operations=16, magnitude=12.0, **said)


@pytest.mark.parametrize("op", ["softmax", "log_softmax"])
@given(data=st.data())
@few
def test_along_an_axis(op: str, data: st.DataObject) -> None:
    shape = data.draw(shapes(least=1, low=1))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x, g = data.draw(reals(shape)), data.draw(reals(shape))
    y, wanted = flown(lambda leaf: getattr(torch, op)(leaf, axis), x, g)
    agrees(f"{op}_gradient", {"g": g, "y": y}, wanted, operations=64, magnitude=40.0, axis=axis)


def test_where_two_sides_meet_it_is_open() -> None:
    ends = {"g": np.ones(3), "y": np.array([0.0, 1.0, np.nan])}
    for op in ("elu_gradient", "selu_gradient"):
        found = left_open(op, ends)
        assert found is not None
        assert found.tolist() == [True, False, True]
    g, x = np.array([np.inf, np.inf, 1.0, 1.0]), np.array([-1.0, 1.0, -1.0, np.nan])
    found = left_open("relu_gradient", {"g": g, "x": x})
    assert found is not None
    assert found.tolist() == [True, False, False, True]
