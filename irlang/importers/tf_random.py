"""TensorFlow's operators of chance. Their seeds are not modelled: what is drawn is left open."""

from __future__ import annotations

from irlang.importers.tf_node import Node, Row
from irlang.importers.value import Unsupported, Value


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


def _whole(n: Node) -> Value:
    """Integers from the first bound up to the second, which is left out."""
    n.ignore("seed", "seed2")
    shape = n.known_ints(0)
    low, high = (int(n.known_number(place)) for place in (len(n.given) - 2, len(n.given) - 1))
    n.pass_over()
    if not low < high:
        raise Unsupported(f"integers from {low} up to {high}, of which there are none")
    kind = n.input(len(n.given) - 1).dtype
    return n.call("random_integers", shape=shape, low=low, high=high, dtype=kind)


def _classes(n: Node) -> Value:
    """Of every row of logits as many as are asked for."""
    n.ignore("seed", "seed2")
    count = int(n.known_number(1))
    n.pass_over()
    drawn = n.step("drawn", "random_categorical", n.input(0), count=count)
    return n.call("cast", drawn, to=n.element_type("output_dtype", "i64"))


ROWS: dict[str, Row] = {
    "Multinomial": _classes,
    "StatelessMultinomial": _classes,
    "RandomUniform": _drawn("random_uniform"),
    "RandomStandardNormal": _drawn("random_normal"),
    "RandomUniformInt": _whole,
    "TruncatedNormal": _drawn("truncated_normal"),
    "StatelessRandomUniform": _drawn("random_uniform"),
    "StatelessRandomUniformV2": _drawn("random_uniform"),
    "StatelessRandomUniformInt": _whole,
    "StatelessRandomUniformIntV2": _whole,
    "StatelessRandomNormal": _drawn("random_normal"),
    "StatelessRandomNormalV2": _drawn("random_normal"),
    "StatelessTruncatedNormal": _drawn("truncated_normal"),
    "StatelessTruncatedNormalV2": _drawn("truncated_normal"),
}
