"""Formulas of losses, distances, norms and products that the field takes for the same: as in
`test_alternatives`, of functions of several operands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from tests.test_alternatives import F, verdict

Array = Any
Fed = dict[str, Array]
ALLOWED = {"agrees", "rounding", "inaccurate"}


def _normal(*shapes: tuple[str, tuple[int, ...]]) -> Callable[[np.random.Generator], Fed]:
    """Normal numbers of some size around some number."""

    def drawn(random: np.random.Generator) -> Fed:
        size, center = 10.0 ** random.uniform(-2, 2), random.choice((0.0, 1.0, 3.0))
        return {n: (size * (center + random.standard_normal(s))).astype(F) for n, s in shapes}

    return drawn


def _even(low: float, high: float, *shapes: tuple[str, tuple[int, ...]]) -> Any:
    return lambda random: {n: random.uniform(low, high, s).astype(F) for n, s in shapes}


def _near(random: np.random.Generator) -> Fed:
    """Rows that are next to each other."""
    a = random.standard_normal((4, 7)).astype(F)
    apart = 10.0 ** random.uniform(-5, -1) * random.standard_normal(a.shape)
    return {"a": a, "b": (a + apart).astype(F)}


def _labelled(random: np.random.Generator) -> Fed:
    return {
        "logits": (8 * random.standard_normal((5, 7))).astype(F),
        "labels": random.integers(0, 7, 5),
    }


def _shares(random: np.random.Generator) -> Fed:
    return {n: random.dirichlet(np.ones(6), 4).astype(F) for n in ("probs", "target")}


def _softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _online(q: Array, k: Array, v: Array) -> Array:
    """Attention over two keys at a time, the largest so far being taken away."""
    shape = (*q.shape[:-1], 1)
    most, total, out = np.full(shape, -np.inf, F), np.zeros(shape, F), np.zeros_like(q)
    for j in range(0, k.shape[2], 2):
        scores = q @ k[:, :, j : j + 2].swapaxes(2, 3) * F(q.shape[-1] ** -0.5)
        larger = np.maximum(most, scores.max(-1, keepdims=True))
        e, old = np.exp(scores - larger), np.exp(most - larger)
        total, out = total * old + e.sum(-1, keepdims=True), out * old + e @ v[:, :, j : j + 2]
        most = larger
    return out / total


def _sigmoid(x: Array) -> Array:
    return F(1) / (F(1) + np.exp(-x))


_PAIR = ("prediction", (4, 9)), ("target", (4, 9))
_ROWS = ("a", (4, 7)), ("b", (4, 7))
_NONE = {"reduction": "none"}

FORMULAS: dict[str, tuple[str, Any, Mapping[str, Any], Callable[..., Array]]] = {
    "cross-entropy, log of softmax": ("cross_entropy", _labelled, _NONE,
        lambda logits, labels: -np.log(_softmax(logits)[np.arange(5), labels])),
    "cross-entropy unshifted": ("cross_entropy", _labelled, {},
        lambda logits, labels: np.mean(
            np.log(np.exp(logits).sum(-1)) - logits[np.arange(5), labels], dtype=F)),
    "binary cross-entropy of sigmoid": ("binary_cross_entropy_logits",
        lambda random: {"logits": (4 * random.standard_normal((4, 6))).astype(F),
                        "target": random.integers(0, 2, (4, 6)).astype(F)}, _NONE,
        lambda logits, target: -(target * np.log(_sigmoid(logits))
                                 + (1 - target) * np.log(1 - _sigmoid(logits)))),
    "divergence by two logarithms": ("kl_divergence", _shares, _NONE,
        lambda probs, target: (target * (np.log(target) - np.log(probs))).sum(-1)),
    "cosine by one root": ("cosine_similarity", _normal(*_PAIR), _NONE,
        lambda prediction, target: -(prediction * target).sum(-1)
            / np.sqrt((prediction**2).sum(-1) * (target**2).sum(-1))),
    "squared error written out": ("mse", _normal(*_PAIR), {},
        lambda prediction, target: np.mean(prediction**2, dtype=F)
            - F(2) * np.mean(prediction * target, dtype=F) + np.mean(target**2, dtype=F)),
    "log of cosh": ("log_cosh", _even(-3, 3, *_PAIR), _NONE,
        lambda prediction, target: np.log(np.cosh(prediction - target))),
    "huber by what is less than delta": ("huber", _normal(*_PAIR), _NONE | {"delta": 1.5},
        lambda prediction, target: (lambda a, q: q * (a - F(0.5) * q))(
            np.abs(prediction - target), np.minimum(np.abs(prediction - target), F(1.5)))),
    "logarithms of a quotient": ("msle", _even(0, 9, *_PAIR), _NONE,
        lambda prediction, target: np.log((1 + prediction) / (1 + target)) ** 2),
    "tversky by sums": ("tversky", _even(0.01, 0.99, *_PAIR), {"alpha": 0.5, "beta": 0.5},
        lambda prediction, target: F(1) - (prediction * target).sum()
            / (F(0.5) * target.sum() + F(0.5) * prediction.sum() + F(1e-7))),
    "distances of near rows by products": ("cdist", _near, {},
        lambda a, b: np.sqrt(np.maximum(
            (a * a).sum(-1)[:, None] + (b * b).sum(-1) - F(2) * (a @ b.T), 0))),
    "distances by squares": ("pairwise_distance", _normal(*_ROWS), {},
        lambda a, b: np.sqrt(np.maximum(
            (a * a).sum(-1) + (b * b).sum(-1) - F(2) * (a * b).sum(-1), 0))),
    "a length by squares": ("hypot", _normal(*_ROWS), {}, lambda a, b: np.sqrt(a * a + b * b)),
    "a power by exp and log": ("power", _even(0.5, 9, *_ROWS), {},
        lambda a, b: np.exp(b * np.log(a))),
    "a remainder by a reciprocal": ("modulo", _even(0.5, 50, *_ROWS), {},
        lambda a, b: a - np.floor(a * (F(1) / b)) * b),
    "covariance in one pass": ("cov", _normal(("x", (4, 30))), {},
        lambda x: (x @ x.T - F(30) * np.outer(x.mean(1), x.mean(1))) / F(29)),
    "a running sum from the end": ("cumsum", _normal(("x", (3, 32))), {"axis": 1},
        lambda x: x.sum(1, keepdims=True) - np.concatenate(
            [np.cumsum(x[:, ::-1], 1, dtype=F)[:, ::-1][:, 1:], np.zeros((3, 1), F)], 1)),
    "a product by logarithms": ("reduce_prod", _even(0.5, 2, ("x", (3, 20))), {"axes": 1},
        lambda x: np.exp(np.log(x).sum(1))),
    "attention, online": ("attention",
        _even(-2, 2, *((n, (1, 2, 6, 4)) for n in "qkv")), {}, _online),
    "a determinant by elimination": ("determinant", _even(-1, 1, ("x", (2, 4, 4))), {},
        lambda x: np.linalg.det(x)),  # noqa: PLW0108 (by name)
    "a system by an inverse": ("solve", _even(-1, 1, ("a", (2, 4, 4)), ("b", (2, 4, 2))), {},
        lambda a, b: np.linalg.inv(a) @ b),
    "luma and what is left": ("rgb_to_yuv", _even(0, 1, ("x", (4, 3))), {},
        lambda x: (lambda y: np.stack(
            [y, (x[:, 2] - y) * F(0.492), (x[:, 0] - y) * F(0.877)], -1))(
            x @ np.array([0.299, 0.587, 0.114], F))),
    "a cosine transform by a matrix": ("dct", _normal(("x", (3, 8))), {},
        lambda x: F(2) * x @ np.cos(
            F(math.pi) * np.arange(8) * (2 * np.arange(8)[:, None] + 1) / 16).astype(F)),
}  # fmt: skip


@pytest.mark.parametrize("key", FORMULAS)
def test_another_formula_is_not_wrong(key: str) -> None:
    name, drawn, attrs, formula = FORMULAS[key]
    for seed in range(30):
        arrays = drawn(np.random.default_rng(seed))
        with np.errstate(all="ignore"):
            got = np.asarray(formula(**arrays), F)
        assert verdict(name, arrays, got, attrs) in ALLOWED, seed
        wrong = got + F(0.05) * np.abs(got).max() + F(1e-3)  # so that not all is allowed
        assert verdict(name, arrays, wrong, attrs) != "agrees", seed
