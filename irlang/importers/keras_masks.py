"""What becomes of masks, by the rules of TensorFlow 2.4.

A mask says which steps of a value count, bool[batch, step, ...]. `Masking` and `Embedding` make
one; a layer that supports masks hands it on, most others drop it without a word. Merging layers
combine those of their operands.
"""

from __future__ import annotations

from irlang.equations import TensorInfo
from irlang.importers.keras_call import Call

_HANDED_ON = frozenset(
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
    }
)
_ALL_OF = frozenset({"Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum"})
_SEQUENCES = frozenset({"RNN", "SimpleRNN", "GRU", "LSTM"})


def result_mask(c: Call) -> str | None:
    """The mask of the result of a layer that has been written."""
    if c.passed is not None:
        return c.passed
    given = [mask for mask in c.masks if mask is not None]
    if not given:
        return None
    if c.a.kind in _HANDED_ON or (c.a.kind in _SEQUENCES and c.a.flag("return_sequences")):
        return given[0]
    if c.a.kind in _ALL_OF:
        if len(given) == 1:
            return given[0]
        return c.write("mask", "reduce_all", c.write("masks", "stack", *given), axes=[0])
    if c.a.kind == "Concatenate":
        return _concatenated(c)
    return None


def _concatenated(c: Call) -> str:
    """Masks side by side as the operands are; whatever has none counts, element by element.

    The last axis of the joined masks is then taken together, whichever it is: so TensorFlow does.
    """
    parts = []
    for number, (x, mask) in enumerate(zip(c.x, c.masks, strict=True)):
        shape = c.info(x).shape
        if mask is None:
            info = TensorInfo(shape, "bool")
            parts.append(c.writer.param(f"{c.name}_all{number}", info, True))
        elif len(c.info(mask).shape) < len(shape):
            parts.append(c.write(f"mask{number}", "expand_dims", mask, axes=[-1]))
        else:
            parts.append(mask)
    joined = c.write("masks", "concat", *parts, axis=c.a.integer("axis"))
    return c.write("mask", "reduce_all", joined, axes=[-1])
