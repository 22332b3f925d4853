"""What irlang calls the operators of TensorFlow: one row each.

A row is given a `Node` and returns its result, or a list of them. See `irlang.importers.tf_node`
for what a node offers, and `irlang.importers.tf_left_out` for what has no row for good.
"""

from __future__ import annotations

from irlang.importers import (
    tf_blocks,
    tf_elementwise,
    tf_gradients,
    tf_indexing,
    tf_matrices,
    tf_nn,
    tf_random,
    tf_reduce,
    tf_segments,
    tf_shape,
    tf_windows,
)
from irlang.importers.tf_node import Row

ROWS: dict[str, Row] = {
    **tf_elementwise.ROWS,
    **tf_shape.ROWS,
    **tf_blocks.ROWS,
    **tf_indexing.ROWS,
    **tf_matrices.ROWS,
    **tf_segments.ROWS,
    **tf_reduce.ROWS,
    **tf_windows.ROWS,
    **tf_nn.ROWS,
    **tf_random.ROWS,
    **tf_gradients.ROWS,
}
