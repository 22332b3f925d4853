"""TensorFlow's operators of chance. Their seeds are not modelled: what is drawn is left open."""

from __future__ import annotations

import math

import numpy as np

from irlang.dtypes import DTYPES
from irlang.importers.tf_node import Node, Row
from irlang.importers.value import Unsupported, Value

_WIDEST = 2.0  # standard deviations: what lies beyond is drawn again


def _settings(n: Node) -> tuple[list[int], str]:
    """Shape and element type; further inputs of the stateless operators are their seeds."""
    n.ignore("seed", "seed2")
    n.pass_over()
    return n.known_ints(0), n.element_type("dtype", "f32")


def _drawn(op: str) -> Row:
    """A tensor of a shape."""

    def row(n: Node) -> Value:
        shape, kind = _settings(n)
        return n.call(op, shape=shape, dtype=kind)

    return row


def _truncated(n: Node) -> Value:
    """Normal numbers of two standard deviations at most: those of a part of the distribution are
    what its inverse makes of as large a part of all.
    """
    shape, kind = _settings(n)
    part = math.erf(_WIDEST / math.sqrt(2.0))
    share = n.step("share", "random_uniform", shape=shape, low=-part, high=part, dtype=kind)
    number = n.step("number", "multiply", n.step("inverse", "erfinv", share), math.sqrt(2.0))
    return n.call("clip", number, min=-_WIDEST, max=_WIDEST)  # where a share was rounded up


def _whole(n: Node) -> Value:
    """Integers from the first bound up to the second, which is left out."""
    n.ignore("seed", "seed2")
    shape = n.known_ints(0)
    low, high = (int(n.known_number(place)) for place in (len(n.given) - 2, len(n.given) - 1))
    n.pass_over()
    if not low < high:
        raise Unsupported(f"integers from {low} up to {high}, of which there are none")
    kind = n.input(len(n.given) - 1).dtype
    share = n.step("share", "random_uniform", shape=shape, low=0.0, high=float(high - low),
                   dtype="f64")  # fmt: skip
    places = n.step("places", "cast", n.step("floor", "floor", share), to=kind)
    last, first = (
        n.const(np.full((), number, DTYPES[kind].numpy), f"{n.outputs[0]}_{name}")
        for number, name in ((high - low - 1, "last"), (low, "first"))
    )
    below = n.step("below", "minimum", places, last)  # where a share was rounded up
    return n.call("add", below, first)


ROWS: dict[str, Row] = {
    "RandomUniform": _drawn("random_uniform"),
    "RandomStandardNormal": _drawn("random_normal"),
    "RandomUniformInt": _whole,
    "TruncatedNormal": _truncated,
    "StatelessRandomUniform": _drawn("random_uniform"),
    "StatelessRandomUniformV2": _drawn("random_uniform"),
    "StatelessRandomUniformInt": _whole,
    "StatelessRandomUniformIntV2": _whole,
    "StatelessRandomNormal": _drawn("random_normal"),
    "StatelessRandomNormalV2": _drawn("random_normal"),
    "StatelessTruncatedNormal": _truncated,
    "StatelessTruncatedNormalV2": _truncated,
}
