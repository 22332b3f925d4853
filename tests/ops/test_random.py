"""What frameworks draw, judged by what the definitions ensure; their seeds are their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from irlang.catalog import builtin
from irlang.diff.calls import Case, judge_call
from irlang.interp.shape import check
from irlang.parser import parse

torch = pytest.importorskip("torch")
tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

Array = np.ndarray[Any, Any]
SEEDS = 6


def _torch(function: str, **options: Any) -> Callable[[Array], Any]:
    apply = getattr(torch.nn.functional, function)
    return lambda x: apply(torch.from_numpy(x), training=True, **options).numpy()


def _layer(name: str, *arguments: Any, **options: Any) -> Callable[[Array], Any]:
    layer = getattr(keras.layers, name)(*arguments, **options)
    return lambda x: np.asarray(layer(x, training=True))


FLAT, IMAGE, VOLUME, LINE = (40, 30), (16, 24, 5, 4), (8, 24, 3, 2, 3), (16, 30, 7)

# A call of x, the shape of x, and what computes it.
CALLS: dict[str, tuple[str, tuple[int, ...], Callable[[Array], Any]]] = {
    "F.dropout": ("dropout(x; rate = 0.3, training = true)", FLAT, _torch("dropout", p=0.3)),
    "F.dropout1d": (
        "dropout(x; rate = 0.3, training = true, shared_axes = 2)",
        LINE,
        _torch("dropout1d", p=0.3),
    ),
    "F.dropout2d": (
        "dropout(x; rate = 0.3, training = true, shared_axes = [2, 3])",
        IMAGE,
        _torch("dropout2d", p=0.3),
    ),
    "F.dropout3d": (
        "dropout(x; rate = 0.3, training = true, shared_axes = [2, 3, 4])",
        VOLUME,
        _torch("dropout3d", p=0.3),
    ),
    "F.alpha_dropout": (
        "alpha_dropout(x; rate = 0.2, training = true)",
        FLAT,
        _torch("alpha_dropout", p=0.2),
    ),
    "F.feature_alpha_dropout": (
        "alpha_dropout(x; rate = 0.2, training = true, shared_axes = [2, 3])",
        IMAGE,
        _torch("feature_alpha_dropout", p=0.2),
    ),
    "torch.bernoulli": (
        "bernoulli(x)",
        FLAT,
        lambda x: torch.bernoulli(torch.from_numpy(x)).numpy(),
    ),
    "torch.normal": (
        "random_normal(; shape = [40, 30], mean = 1, stddev = 0.5)",
        FLAT,
        lambda _: torch.normal(1.0, 0.5, FLAT).numpy(),
    ),
    "torch.rand": (
        "random_uniform(; shape = [40, 30])",
        FLAT,
        lambda _: torch.rand(FLAT).numpy(),
    ),
    "tf.nn.dropout": (
        "dropout(x; rate = 0.9, training = true, shared_axes = 0)",
        (3, 400),
        lambda x: tf.nn.dropout(x, 0.9, noise_shape=[1, 400]).numpy(),
    ),
    "tf.random.uniform": (
        "random_uniform(; shape = [40, 30], low = -3, high = 5)",
        FLAT,
        lambda _: tf.random.uniform(FLAT, -3, 5).numpy(),
    ),
    "Dropout": ("dropout(x; rate = 0.6, training = true)", FLAT, _layer("Dropout", 0.6)),
    "SpatialDropout1D": (
        "dropout(x; rate = 0.3, training = true, shared_axes = 1)",
        LINE,
        _layer("SpatialDropout1D", 0.3),
    ),
    "SpatialDropout2D": (
        "dropout(x; rate = 0.3, training = true, shared_axes = [1, 2])",
        IMAGE,
        _layer("SpatialDropout2D", 0.3, data_format="channels_last"),
    ),
    "SpatialDropout3D": (
        "dropout(x; rate = 0.3, training = true, shared_axes = [1, 2, 3])",
        VOLUME,
        _layer("SpatialDropout3D", 0.3, data_format="channels_last"),
    ),
    "AlphaDropout": (
        "alpha_dropout(x; rate = 0.4, training = true)",
        FLAT,
        _layer("AlphaDropout", 0.4),
    ),
    "GaussianDropout": (
        "gaussian_dropout(x; rate = 0.4, training = true)",
        FLAT,
        _layer("GaussianDropout", 0.4),
    ),
    "GaussianNoise": (
        "gaussian_noise(x; stddev = 0.4, training = true)",
        FLAT,
        _layer("GaussianNoise", 0.4),
    ),
}


def verdict(name: str, seed: int) -> str:
    """What is said of a framework's result for one drawn x."""
    call, shape, compute = CALLS[name]
    sizes = ", ".join(map(str, shape))
    text = f"nnir 1\nmodel m(x: f32[{sizes}]) -> y: f32[{sizes}] {{\n  y = {call}\n}}\n"
    checked = check(parse(text), builtin())
    assert checked.valid, checked.diagnostics
    (graph,) = checked.graphs
    x = np.random.default_rng(seed).random(shape, dtype=np.float32)
    made = Case(graph, {"x": x}, {}, checked.catalog)
    node = graph.nodes[-1]
    fed = dict.fromkeys(node.operands(), x)
    (found,) = judge_call(made, node, fed, {"x": x, "y": compute(x)}, name)
    return f"{found.verdict} {found.message}"


@pytest.mark.parametrize("name", CALLS)
def test_frameworks_draw_what_is_ensured(name: str) -> None:
    for seed in range(SEEDS):
        assert verdict(name, seed).startswith("agrees")


def test_a_spatial_mask_is_not_a_plain_one() -> None:
    """The clauses tell apart what the frameworks themselves tell apart."""
    call, shape, _ = CALLS["F.dropout2d"]
    CALLS["wrong"] = (call, shape, _torch("dropout", p=0.3))
    try:
        assert verdict("wrong", 0).startswith("wrong dropout.shared")
    finally:
        del CALLS["wrong"]
