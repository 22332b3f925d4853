"""The operators of PyTorch that have a translation, by name; a few by name and overload."""

from __future__ import annotations

from irlang.importers.torch_activations import ACTIVATIONS
from irlang.importers.torch_call import Rule
from irlang.importers.torch_constants import CONSTANTS
from irlang.importers.torch_elementwise import ELEMENTWISE
from irlang.importers.torch_functions import FUNCTIONS
from irlang.importers.torch_indexing import INDEXING
from irlang.importers.torch_layers import LAYERS
from irlang.importers.torch_linear import LINEAR
from irlang.importers.torch_losses import LOSSES
from irlang.importers.torch_matrices import MATRICES
from irlang.importers.torch_pieces import PIECES
from irlang.importers.torch_pooling import POOLING
from irlang.importers.torch_products import PRODUCTS
from irlang.importers.torch_recurrent import RECURRENT
from irlang.importers.torch_reductions import REDUCTIONS
from irlang.importers.torch_shapes import SHAPES
from irlang.importers.torch_signals import SIGNALS
from irlang.importers.torch_special import SPECIAL
from irlang.importers.torch_statistics import STATISTICS

RULES: dict[str, Rule] = {
    **ELEMENTWISE,
    **SHAPES,
    **PIECES,
    **REDUCTIONS,
    **STATISTICS,
    **SPECIAL,
    **SIGNALS,
    **INDEXING,
    **LAYERS,
    **PRODUCTS,
    **RECURRENT,
    **LOSSES,
    **POOLING,
    **MATRICES,
    **LINEAR,
    **FUNCTIONS,
    **CONSTANTS,
    **ACTIVATIONS,
}

# Other names of the same.
RULES |= {
    new: RULES[old]
    for new, old in (
        *(("absolute", "abs"), ("negative", "neg"), ("arcsin", "asin"), ("arccos", "acos")),
        *(("arctan", "atan"), ("arcsinh", "asinh"), ("arccosh", "acosh"), ("arctanh", "atanh")),
        *(("arctan2", "atan2"), ("multiply", "mul"), ("divide", "div"), ("true_divide", "div")),
        *(("subtract", "sub"), ("clip", "clamp"), ("greater", "gt"), ("greater_equal", "ge")),
        *(("less", "lt"), ("less_equal", "le"), ("not_equal", "ne"), ("special_xlogy", "xlogy")),
        *(("special_expm1", "expm1"), ("special_log1p", "log1p"), ("special_erf", "erf")),
    )
}

# Copies of what else would be views.
RULES |= {
    f"{name}_copy": RULES[name]
    for name in (
        *("alias", "detach", "expand", "permute", "squeeze", "unsqueeze", "transpose", "t", "view"),
        *("slice", "select", "narrow", "unbind", "split", "split_with_sizes", "diagonal", "unfold"),
        *("lift_fresh", "as_strided"),
    )
}

# What says nothing of values: checks that the exporter writes down.
IGNORED = frozenset(
    {
        *("_assert_tensor_metadata", "_assert_scalar", "_assert_async", "sym_constrain_range"),
        *("sym_constrain_range_for_size", "_functional_assert_async", "_functional_assert_scalar"),
    }
)
