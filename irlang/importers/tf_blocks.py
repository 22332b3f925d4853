"""TensorFlow's operators that make channels, or batches, of blocks of positions, and back."""

from __future__ import annotations

import math

from irlang.importers.tf_node import Node, Row
from irlang.importers.value import Unsupported, Value


def _depth(op: str) -> Row:
    """Blocks of pixels; their places come before the channels in both orders."""

    def row(n: Node) -> Value:
        size = n.int("block_size")
        if n.ahead:
            return n.call(op, n.input(0), block_size=size)
        return n.last(n.call(op, n.first(n.input(0)), block_size=size))

    return row


def _batches(op: str, names: tuple[str, str], *, square: bool = False) -> Row:
    """Blocks of positions become batches, or back; the axes after the blocks stay together.

    square: whether the blocks are those of images, and one attribute is both their sizes.
    """

    def row(n: Node) -> Value:
        x = n.input(0)
        block = [n.int("block_size")] * 2 if square else n.known_ints(1)
        pairs, rank = n.known_ints(1 if square else 2), len(block)
        rest = x.rank - 1 - rank
        if rest < 0 or len(pairs) != 2 * rank:
            raise Unsupported(f"blocks of {block} in {x.info}")
        attrs = {"block_size": block, names[0]: pairs[::2], names[1]: pairs[1::2]}
        if rest == 1 and rank >= 1:
            return n.last(n.call(op, n.first(x), **attrs))
        sizes = list(x.shape)
        flat = [*sizes[: 1 + rank], math.prod(sizes[1 + rank :])]
        y = n.step("one", "reshape", x, shape=flat)
        perm = [0, 1 + rank, *range(1, 1 + rank)]
        y = n.step("moved", op, n.step("first", "transpose", y, perm=perm), **attrs)
        y = n.step("last", "transpose", y, perm=[0, *range(2, 2 + rank), 1])
        return n.call("reshape", y, shape=[*y.shape[: 1 + rank], *sizes[1 + rank :]])

    return row


ROWS: dict[str, Row] = {
    "DepthToSpace": _depth("depth_to_space"),
    "SpaceToDepth": _depth("space_to_depth"),
    "SpaceToBatchND": _batches("space_to_batch", ("before", "after")),
    "BatchToSpaceND": _batches("batch_to_space", ("before", "after")),
    "SpaceToBatch": _batches("space_to_batch", ("before", "after"), square=True),
    "BatchToSpace": _batches("batch_to_space", ("before", "after"), square=True),
}
