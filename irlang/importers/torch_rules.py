"""The operators of PyTorch that have a translation, by name; a few by name and overload."""

from __future__ import annotations

from irlang.importers.torch_call import Rule
from irlang.importers.torch_elementwise import ELEMENTWISE
from irlang.importers.torch_indexing import INDEXING
from irlang.importers.torch_layers import LAYERS
from irlang.importers.torch_losses import LOSSES
from irlang.importers.torch_products import PRODUCTS
from irlang.importers.torch_recurrent import RECURRENT
from irlang.importers.torch_reductions import REDUCTIONS
from irlang.importers.torch_shapes import SHAPES

RULES: dict[str, Rule] = {
    **ELEMENTWISE,
    **SHAPES,
    **REDUCTIONS,
    **INDEXING,
    **LAYERS,
    **PRODUCTS,
    **RECURRENT,
    **LOSSES,
}

# What says nothing of values: checks that the exporter writes down.
IGNORED = frozenset(
    {
        *("_assert_tensor_metadata", "_assert_scalar", "_assert_async", "sym_constrain_range"),
        *("sym_constrain_range_for_size", "_functional_assert_async", "_functional_assert_scalar"),
    }
)
