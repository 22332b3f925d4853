"""TensorFlow's operators of chance. Their seeds are not modelled: what is drawn is left open."""

from __future__ import annotations

from irlang.importers.tf_node import Node, Row
from irlang.importers.value import Value


def _drawn(op: str) -> Row:
    """A tensor of a shape; further inputs of the stateless operators are their seeds."""

    def row(n: Node) -> Value:
        n.ignore("seed", "seed2")
        n.pass_over()
        return n.call(op, shape=n.known_ints(0), dtype=n.element_type("dtype", "f32"))

    return row


ROWS: dict[str, Row] = {
    "RandomUniform": _drawn("random_uniform"),
    "RandomStandardNormal": _drawn("random_normal"),
    "StatelessRandomUniform": _drawn("random_uniform"),
    "StatelessRandomUniformV2": _drawn("random_uniform"),
    "StatelessRandomNormal": _drawn("random_normal"),
    "StatelessRandomNormalV2": _drawn("random_normal"),
}
