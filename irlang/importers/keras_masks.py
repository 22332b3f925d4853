"""What becomes of masks, by the rules of TensorFlow 2.4 and of Keras 3.

A mask says which steps of a value count, bool[batch, step, ...]. `Masking` and `Embedding` make
one; a layer that supports masks hands it on, most others drop it without a word. Merging layers
combine those of their operands.
"""

from __future__ import annotations

from irlang.equations import TensorInfo
from irlang.importers.keras_call import Call

_ALWAYS = frozenset(
    {
        "Activation",
        "ActivityRegularization",
        "AlphaDropout",
        "BatchNormalization",
        "Dense",
        "Dropout",
        "ELU",
        "GaussianDropout",
        "GaussianNoise",
        "LayerNormalization",
        "LeakyReLU",
        "PReLU",
        "Softmax",
        "SpatialDropout1D",
        "SpatialDropout2D",
        "SpatialDropout3D",
        "ThresholdedReLU",
        "TimeDistributed",
        "Attention",
        "AdditiveAttention",
    }
)
_HANDED_ON = {
    2: _ALWAYS,
    3: _ALWAYS
    | {
        *("ReLU", "Identity", "GroupNormalization", "UnitNormalization", "MultiHeadAttention"),
        "GroupedQueryAttention",
    },
}
_ALL_OF = frozenset({"Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum"})
_SEQUENCES = frozenset(
    {"RNN", "SimpleRNN", "GRU", "LSTM", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D"}
)


def result_masks(c: Call, results: int) -> list[str | None]:
    """The masks of the results of a layer that has been written."""
    if c.passed is not None:
        return [*c.passed, *[None] * (results - len(c.passed))]
    rest: list[str | None] = [None] * (results - 1)
    return [_first_mask(c), *rest]


def _first_mask(c: Call) -> str | None:
    given = [mask for mask in c.masks if mask is not None]
    if c.a.kind in _ALL_OF:
        return _merged(c, given)
    if c.a.kind == "Concatenate":
        return _concatenated(c) if given else None
    if c.a.kind in _SEQUENCES:
        return c.mask if c.a.flag("return_sequences") else None
    handed = c.a.kind in _HANDED_ON[c.version]
    if not handed or not c.values:
        return None
    called = c.arguments.get("mask")
    return c.masks[0] if called is None or isinstance(called, (list, tuple)) else c.mask


def _merged(c: Call, given: list[str]) -> str | None:
    """Keras 2 joins those that are there by `and`; Keras 3 joins by `or`, if none is missing."""
    if not given or (c.version == 3 and len(given) < len(c.masks)):
        return None
    if len(given) == 1:
        return given[0]
    stacked = c.write("masks", "stack", *given)
    return c.write("mask", "reduce_any" if c.version == 3 else "reduce_all", stacked, axes=[0])


def _concatenated(c: Call) -> str:
    """Masks side by side as the operands are; whatever has none counts, element by element.

    The last axis of the joined masks is then taken together, whichever it is: all of it in
    TensorFlow 2.4, any of it in Keras 3, which widens a mask to its operand first.
    """
    parts = []
    for number, mask in enumerate(c.masks):
        shape = c.shape(number)
        if mask is None:
            info = TensorInfo(tuple(shape), "bool")
            parts.append(c.writer.param(f"{c.name}_all{number}", info, True))
        elif len(c.info(mask).shape) < len(shape):
            wide = c.write(f"mask{number}", "expand_dims", mask, axes=[-1])
            if c.version == 3:
                wide = c.write(f"wide{number}", "broadcast_to", wide, shape=shape)
            parts.append(wide)
        else:
            parts.append(mask)
    joined = c.write("masks", "concat", *parts, axis=c.a.integer("axis"))
    return c.write("mask", "reduce_any" if c.version == 3 else "reduce_all", joined, axes=[-1])
