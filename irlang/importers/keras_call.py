"""A layer that is being written: what it is given, and how its calls and parameters are named.

Keras puts channels last, the definitions put them first: a layer of images or sequences becomes a
call between two transpositions. Weights keep their values and are rearranged once, here. A weight
that Keras would not accept is written as it is, under the type that it should have, for the
checker to refuse. Every value that a layer makes carries the layer's name first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irlang.equations import TensorInfo
from irlang.importers.keras_arguments import Arguments, Uncovered
from irlang.importers.keras_text import Layer
from irlang.importers.writer import Array, Writer

FLOAT = "f64"
_LARGEST = 2**24  # elements of a weight that a layer may ask for
_ACTIVATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "relu": ("relu", {}),
    "sigmoid": ("sigmoid", {}),
    "tanh": ("tanh", {}),
    "softmax": ("softmax", {}),
    "elu": ("elu", {}),
    "selu": ("selu", {}),
    "softplus": ("softplus", {}),
    "softsign": ("softsign", {}),
    "exponential": ("exp", {}),
    "hard_sigmoid": ("hard_sigmoid", {}),
    "swish": ("silu", {}),
}


class Call:
    """A layer that is being written: its operands, arguments, weights and the masks it is given.

    x: names of the operands. masks: of each, a name or None. weights: by position.
    """

    def __init__(
        self,
        writer: Writer,
        layer: Layer,
        x: list[str],
        masks: list[str | None],
        weights: dict[int, Any],
    ) -> None:
        self.writer = writer
        self.name = layer.name
        self.config = layer.config
        self.a = Arguments(layer.config)
        self.x = x
        self.masks = masks
        self.weights = weights
        self.passed: str | None = None  # the mask of the result, where the layer makes one itself

    def write(self, suffix: str, op: str, *operands: Any, **attrs: Any) -> str:
        """A call for this layer; the layer's result has no suffix."""
        wanted = f"{self.name}_{suffix}" if suffix else self.name
        return self.writer.call([wanted], op, *operands, **attrs)[0]

    def info(self, value: str) -> TensorInfo:
        """The type of a value."""
        return self.writer.types[value]

    @property
    def mask(self) -> str | None:
        """The mask of a layer with one operand."""
        return self.masks[0]

    def weight(
        self,
        suffix: str,
        position: int,
        shape: Sequence[int | None],
        arrange: Callable[[Array], Array],
    ) -> str:
        """A weight as a parameter.

        shape: what Keras has there; None is whatever is given. arrange: into the definition's.
        """
        if position not in self.weights:
            raise Uncovered(self.a.kind, "its weights are not given")
        try:
            array = np.array(self.weights[position], dtype=np.float64)
        except (ValueError, TypeError, OverflowError):
            raise Uncovered(self.a.kind, "a weight is no tensor of numbers") from None
        wanted = list(shape)
        if array.ndim == len(shape):
            wanted = [n if s is None else s for s, n in zip(shape, array.shape, strict=True)]
        full = [1 if size is None else size for size in wanted]
        if min(full, default=1) < 0 or math.prod(full) > _LARGEST:
            raise Uncovered(self.a.kind, f"a weight of shape {full}")
        wanted_name = f"{self.name}_{suffix}"
        if list(array.shape) == full:
            arranged = arrange(array)
            return self.writer.param(wanted_name, TensorInfo(arranged.shape, FLOAT), arranged)
        declared = arrange(np.broadcast_to(np.float64(0), tuple(full))).shape
        return self.writer.param(wanted_name, TensorInfo(declared, FLOAT), array)

    def vector(self, suffix: str, position: int, size: int | None) -> list[str]:
        """A bias as an operand, in a list; an empty one where the layer has none."""
        return [self.weight(suffix, position, [size], same)] if self.a.flag("use_bias") else []

    def first(self, rank: int) -> str:
        """The operand with its channels first."""
        if self.a.given.get("data_format") == "channels_first":
            raise Uncovered(self.a.kind, "data_format is 'channels_first'")
        return self.write("x", "transpose", self.x[0], perm=[0, rank + 1, *range(1, rank + 1)])

    def last(self, value: str, rank: int) -> str:
        """A result with its channels last again, after the layer's activation."""
        perm = [0, *range(2, rank + 2), 1]
        return self.activated(lambda suffix: self.write(suffix, "transpose", value, perm=perm))

    def activated(self, write: Callable[[str], str]) -> str:
        """The layer's result; `write` writes what the activation is applied to."""
        wanted = self.a["activation"] if "activation" in self.a.defaults else None
        if wanted in (None, "linear"):
            return write("")
        return self.activation(wanted, write("z"))

    def activation(self, wanted: Any, value: str) -> str:
        """An activation by name."""
        if wanted == "linear":
            return self.write("", "identity", value)
        if not isinstance(wanted, str) or wanted not in _ACTIVATIONS:
            raise Uncovered(self.a.kind, f"the activation {wanted!r}")
        op, attrs = _ACTIVATIONS[wanted]
        return self.write("", op, value, **attrs)


def same(array: Array) -> Array:
    """No rearrangement."""
    return array
