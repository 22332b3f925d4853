"""ONNX's operators of chance. Their seeds are not modelled: what is drawn is left open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irlang.importers.onnx_node import Node, Value


def _drawn(n: Node, shape: Sequence[Any], default: str, op: str, names: dict[str, str]) -> Value:
    """A tensor drawn from a law. names: ONNX's names of the law's numbers by irlang's."""
    n.ignore("seed")
    numbers = {"mean": 0.0, "scale": 1.0, "low": 0.0, "high": 1.0}
    attrs = {own: n.real(name, numbers[name]) for own, name in names.items()}
    return n.call(op, shape=shape, dtype=n.element_type("dtype", default), **attrs)


_NORMAL = {"mean": "mean", "stddev": "scale"}
_UNIFORM = {"low": "low", "high": "high"}


def _normal(n: Node) -> Value:
    return _drawn(n, n.ints("shape"), "f32", "random_normal", _NORMAL)


def _normal_like(n: Node) -> Value:
    return _drawn(n, list(n.input(0).shape), n.input(0).dtype, "random_normal", _NORMAL)


def _uniform(n: Node) -> Value:
    return _drawn(n, n.ints("shape"), "f32", "random_uniform", _UNIFORM)


def _uniform_like(n: Node) -> Value:
    return _drawn(n, list(n.input(0).shape), n.input(0).dtype, "random_uniform", _UNIFORM)


def _bernoulli(n: Node) -> Value:
    n.ignore("seed")
    return n.call("bernoulli", n.input(0), dtype=n.element_type("dtype", n.input(0).dtype))


def _classes(n: Node) -> Value:
    n.ignore("seed")
    kind, count = n.element_type("dtype", "i32"), n.int("sample_size", 1)
    if kind == "i64":
        return n.call("random_categorical", n.input(0), count=count)
    return n.call("cast", n.step("drawn", "random_categorical", n.input(0), count=count), to=kind)


ROWS = {
    "RandomNormal": _normal,
    "RandomNormalLike": _normal_like,
    "RandomUniform": _uniform,
    "RandomUniformLike": _uniform_like,
    "Bernoulli": _bernoulli,
    "Multinomial": _classes,
}
