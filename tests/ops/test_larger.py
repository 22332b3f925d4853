"""Shapes beyond exact evaluation, where sums of products run as matrix products: oracle and torch.

Both are within the radius of rounding at float64, each on its side of the true value.
"""

from typing import Any

import numpy as np
import pytest

from irlang.catalog import builtin
from irlang.equations import TensorInfo
from irlang.expand import expand
from irlang.instance import instantiate
from irlang.interp import reference, rounding
from irlang.interp.balls import Ball
from irlang.interp.plain import load
from tests.ops.oracle import Array

torch = pytest.importorskip("torch")

F = torch.nn.functional


def oracle(name: str, inputs: dict[str, Array], **attrs: Any) -> tuple[Array, Array]:
    """The first result by the reference, and its radius."""
    definitions = builtin()
    op = definitions.op(name)
    assert op is not None
    infos = {key: TensorInfo(value.shape, "f64") for key, value in inputs.items()}
    instance = instantiate(op, infos, attrs)
    assert not instance.faults, instance.faults
    expansion = expand(instance, definitions)
    loaded = {key: Ball(load(infos[key], x)) for key, x in inputs.items()}
    first = expansion.outputs[0]
    ball = rounding.evaluate(expansion, loaded, "f64")[first]
    return reference.evaluate(expansion, inputs)[first], np.asarray(ball.bound)


def lstm(x: Any, w: Any, r: Any) -> Any:
    layer = torch.nn.LSTM(x.shape[2], w.shape[1], dtype=torch.float64, bias=False)
    order = [0, 2, 3, 1]
    layer.load_state_dict(
        {"weight_ih_l0": w[order].flatten(0, 1), "weight_hh_l0": r[order].flatten(0, 1)}
    )
    return layer(x)[0].detach()


def gru(x: Any, w: Any, r: Any) -> Any:
    layer = torch.nn.GRU(x.shape[2], w.shape[1], dtype=torch.float64, bias=False)
    order = [1, 0, 2]
    layer.load_state_dict(
        {"weight_ih_l0": w[order].flatten(0, 1), "weight_hh_l0": r[order].flatten(0, 1)}
    )
    return layer(x)[0].detach()


CASES: list[tuple[str, dict[str, tuple[int, ...]], dict[str, Any], Any]] = [
    ("dense", {"x": (33, 65), "w": (65, 17)}, {}, lambda x, w: x @ w),
    ("matmul", {"a": (3, 1, 33, 40), "b": (5, 40, 31)}, {}, lambda a, b: a @ b),
    (
        "matmul",
        {"a": (40, 33), "b": (5, 31, 40)},
        {"transpose_a": True, "transpose_b": True},
        lambda a, b: a.mT @ b.mT,
    ),
    (
        "conv",
        {"x": (2, 16, 19, 17), "w": (24, 16, 4, 3)},
        {"pad": "same"},
        lambda x, w: F.conv2d(F.pad(x, (1, 1, 1, 2)), w),
    ),
    (
        "conv",
        {"x": (2, 16, 19, 17), "w": (24, 4, 3, 3)},
        {"stride": (2, 3), "dilation": (2, 1), "groups": 4},
        lambda x, w: F.conv2d(x, w, stride=(2, 3), dilation=(2, 1), groups=4),
    ),
    (
        "conv",
        {"x": (2, 24, 65), "w": (24, 1, 5)},
        {"groups": 24, "pad": "same"},
        lambda x, w: F.conv1d(x, w, padding=2, groups=24),
    ),
    (
        "conv",
        {"x": (1, 4, 9, 10, 11), "w": (8, 4, 3, 3, 3)},
        {"stride": 4},
        lambda x, w: F.conv3d(x, w, stride=4),
    ),
    (
        "conv_transpose",
        {"x": (2, 16, 9, 11), "w": (16, 12, 3, 4)},
        {"stride": (2, 3), "dilation": (3, 1), "output_padding": (2, 1)},
        lambda x, w: F.conv_transpose2d(
            x, w, stride=(2, 3), dilation=(3, 1), output_padding=(2, 1)
        ),
    ),
    (
        "attention",
        {"q": (2, 8, 33, 16), "k": (2, 2, 33, 16), "v": (2, 2, 33, 24)},
        {"causal": True},
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True),
    ),
    (
        "max_pool",
        {"x": (2, 8, 33, 31)},
        {"window": 3, "stride": 2, "pad": "given", "before": 1, "after": 1, "ceil_mode": True},
        lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True),
    ),
    (
        "avg_pool",
        {"x": (2, 8, 33, 31)},
        {"window": (2, 4), "stride": 3, "ceil_mode": True},
        lambda x: F.avg_pool2d(x, (2, 4), 3, ceil_mode=True),
    ),
    (
        "layer_norm",
        {"x": (9, 33, 65)},
        {"axes": (1, 2)},
        lambda x: F.layer_norm(x, (33, 65)),
    ),
    ("group_norm", {"x": (3, 12, 33, 5)}, {"groups": 4}, lambda x: F.group_norm(x, 4)),
    ("softmax", {"x": (9, 65, 17)}, {"axis": 1}, lambda x: torch.softmax(x, 1)),
    ("lstm", {"x": (17, 5, 33), "w": (4, 31, 33), "r": (4, 31, 31)}, {}, lstm),
    ("gru", {"x": (17, 5, 33), "w": (3, 31, 33), "r": (3, 31, 31)}, {}, gru),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_the_oracle_and_torch_agree(
    case: tuple[str, dict[str, tuple[int, ...]], dict[str, Any], Any],
) -> None:
    name, shapes, attrs, native = case
    rng = np.random.default_rng(7)
    # weights small enough that a state fed back does not let the radius explode
    inputs = {key: rng.uniform(-1, 1, shape) / 4 for key, shape in shapes.items()}
    value, radius = oracle(name, inputs, **attrs)
    other = native(**{key: torch.tensor(x) for key, x in inputs.items()}).numpy()
    assert other.shape == value.shape
    assert radius.max() < 1e-9, "a radius so large tells nothing"
    assert (np.abs(other - value) <= 2 * radius).all(), np.abs(other - value).max()
