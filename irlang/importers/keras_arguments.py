"""What the arguments of Keras's layers are called, in order, and what they are unless given.

Signatures as documented for tf.keras of TensorFlow 2.4. What only matters to training, and how a
variable is initialised (a program's weights are given), is left out and passed over.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import Any

from irlang.importers.keras_text import Config

_LAST = "activation=None, use_bias=True"
_CONV = (
    "filters, kernel_size, strides=1, padding='valid', data_format=None, dilation_rate=1, "
    f"groups=1, {_LAST}"
)
_TRANSPOSE = (
    "filters, kernel_size, strides=1, padding='valid', output_padding=None, data_format=None, "
    f"dilation_rate=1, {_LAST}"
)
_DEPTHWISE = (
    "kernel_size, strides=1, padding='valid', depth_multiplier=1, data_format=None, "
    f"dilation_rate=1, {_LAST}"
)
_SEPARABLE = (
    "filters, kernel_size, strides=1, padding='valid', data_format=None, dilation_rate=1, "
    f"depth_multiplier=1, {_LAST}"
)
_LOCAL = (
    f"filters, kernel_size, strides=1, padding='valid', data_format=None, {_LAST}, implementation=1"
)
_POOL = "pool_size=2, strides=None, padding='valid', data_format=None"
_GLOBAL = "data_format=None, keepdims=False"
_LOOP = (
    "return_sequences=False, return_state=False, go_backwards=False, stateful=False, "
    "unroll=False, time_major=False"
)
_CELLS = {
    "SimpleRNN": "units, activation='tanh', use_bias=True, dropout=0, recurrent_dropout=0",
    "GRU": (
        "units, activation='tanh', recurrent_activation='sigmoid', use_bias=True, dropout=0, "
        "recurrent_dropout=0, reset_after=True, implementation=2"
    ),
    "LSTM": (
        "units, activation='tanh', recurrent_activation='sigmoid', use_bias=True, dropout=0, "
        "recurrent_dropout=0, implementation=2"
    ),
}
_RANKED = {
    **{f"Conv{rank}D": _CONV for rank in (1, 2, 3)},
    **{f"Conv{rank}DTranspose": _TRANSPOSE for rank in (1, 2, 3)},
    **{f"SeparableConv{rank}D": _SEPARABLE for rank in (1, 2)},
    **{f"LocallyConnected{rank}D": _LOCAL for rank in (1, 2)},
    **{f"{name}{rank}D": _POOL for name in ("MaxPooling", "AveragePooling") for rank in (1, 2, 3)},
    **{f"Global{name}Pooling{rank}D": _GLOBAL for name in ("Max", "Average") for rank in (1, 2, 3)},
    **{f"ZeroPadding{rank}D": "padding=1, data_format=None" for rank in (1, 2, 3)},
    **{f"Cropping{rank}D": "cropping=1, data_format=None" for rank in (1, 3)},
    "Cropping2D": "cropping=0, data_format=None",
    **{f"SpatialDropout{rank}D": "rate, data_format=None" for rank in (1, 2, 3)},
}
SIGNATURES = {
    **_RANKED,
    **{f"{name}Cell": signature for name, signature in _CELLS.items()},
    **{name: f"{signature}, {_LOOP}" for name, signature in _CELLS.items()},
    **dict.fromkeys(("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum"), ""),
    "RNN": f"cell, {_LOOP}",
    "Concatenate": "axis=-1",
    "Dot": "axes, normalize=False",
    "Dense": f"units, {_LAST}",
    "DepthwiseConv2D": _DEPTHWISE,
    "Embedding": "input_dim, output_dim, mask_zero=False, input_length=None",
    "Masking": "mask_value=0",
    "UpSampling1D": "size=2",
    "UpSampling2D": "size=2, data_format=None, interpolation='nearest'",
    "UpSampling3D": "size=2, data_format=None",
    "Reshape": "target_shape",
    "Flatten": "data_format=None",
    "Permute": "dims",
    "RepeatVector": "n",
    "BatchNormalization": "axis=-1, momentum=0.99, epsilon=1e-3, center=True, scale=True",
    "LayerNormalization": "axis=-1, epsilon=1e-3, center=True, scale=True",
    "Activation": "activation",
    "ReLU": "max_value=None, negative_slope=0, threshold=0",
    "LeakyReLU": "alpha=0.3",
    "PReLU": "shared_axes=None",
    "ELU": "alpha=1",
    "ThresholdedReLU": "theta=1",
    "Softmax": "axis=-1",
    "Dropout": "rate, noise_shape=None, seed=None",
    "AlphaDropout": "rate, noise_shape=None, seed=None",
    "GaussianDropout": "rate",
    "GaussianNoise": "stddev",
    "ActivityRegularization": "l1=0, l2=0",
}
# Of no meaning to what a program computes when it does not train.
_PASSED = re.compile(
    r"\w+_(initializer|regularizer|constraint)|name|trainable|(batch_)?input_shape|input_dim|"
    r"momentum|seed|noise_shape|rate|stddev|(recurrent_)?dropout|l1|l2|implementation|unroll|"
    r"input_length"
)


class Uncovered(Exception):
    """A kind of layer, or an argument of one, that is not translated."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(f"{kind}: {reason}")
        self.kind = kind
        self.reason = reason


def canonical(kind: str) -> str:
    """One name for the classes that have several."""
    if match := re.fullmatch(r"(Global)?(Max|Avg|Average)Pool(?:ing)?([123]D)", kind):
        family = "Max" if match[2] == "Max" else "Average"
        return f"{match[1] or ''}{family}Pooling{match[3]}"
    return {"Convolution1D": "Conv1D", "Convolution2D": "Conv2D", "Convolution3D": "Conv3D"}.get(
        kind, kind
    )


class Arguments:
    """The arguments of a layer by name; knows which of them have been asked for."""

    def __init__(self, config: Config) -> None:
        self.kind = canonical(config.kind)
        if self.kind not in SIGNATURES:
            raise Uncovered(config.kind, "this kind of layer is not translated")
        self.defaults = _signature(SIGNATURES[self.kind])
        names = list(self.defaults)
        if len(config.args) > len(names):
            raise Uncovered(config.kind, "more arguments than are known")
        self.given = {**dict(zip(names, config.args, strict=False)), **config.kwargs}
        self._open = {
            name
            for name in self.given
            if name not in names or self.given[name] != self.defaults[name]
        }

    def __getitem__(self, name: str) -> Any:
        """The value of an argument; raises `Uncovered` where a needed one is missing."""
        self._open.discard(name)
        value = self.given.get(name, self.defaults[name])
        if value is UNSET:
            raise Uncovered(self.kind, f"the argument `{name}` is needed")
        return value

    def integer(self, name: str) -> int:
        """An argument that is a whole number."""
        value = self[name]
        if not isinstance(value, int):
            raise Uncovered(self.kind, f"`{name}` is {value!r}")
        return value

    def real(self, name: str) -> float:
        """An argument that is a number."""
        value = self[name]
        if not isinstance(value, (int, float)):
            raise Uncovered(self.kind, f"`{name}` is {value!r}")
        return value

    def flag(self, name: str) -> bool:
        """An argument that is true or false."""
        return bool(self[name])

    def ints(self, name: str, rank: int = 1) -> list[int]:
        """An argument that has one number an axis, or one for all."""
        value = self[name]
        items = list(value) if isinstance(value, (list, tuple)) else [value] * rank
        if not all(isinstance(item, int) for item in items):
            raise Uncovered(self.kind, f"`{name}` is {value!r}")
        return items

    def pairs(self, name: str, rank: int) -> list[tuple[int, int]]:
        """An argument that has a number before and one after an axis: (1, 2), ((1, 2), (3, 4)), …

        One number serves all; for several axes a flat list has one number an axis.
        """
        value = self[name]
        if isinstance(value, int):
            return [(value, value)] * rank
        items = list(value) if isinstance(value, (list, tuple)) else []
        if rank == 1 and len(items) == 2 and all(isinstance(item, int) for item in items):
            return [(items[0], items[1])]
        found: list[tuple[int, int]] = []
        for item in items:
            pair = (item, item) if isinstance(item, int) else item
            if not isinstance(pair, tuple) or list(map(type, pair)) != [int, int]:
                raise Uncovered(self.kind, f"`{name}` is {value!r}")
            found.append((pair[0], pair[1]))
        return found

    def choice(self, name: str, *known: str) -> str:
        """An argument that is one of a few words."""
        value = self[name]
        if value not in known:
            raise Uncovered(self.kind, f"`{name}` is {value!r}")
        return str(value)

    def finish(self) -> None:
        """Raises `Uncovered` where an argument says something that nobody asked for."""
        for name in sorted(self._open):
            neutral = _PASSED.fullmatch(name) is not None
            if name == "data_format":
                neutral = self.given[name] == "channels_last"
            if not neutral:
                raise Uncovered(self.kind, f"the argument `{name}` is {self.given[name]!r}")


UNSET = object()


@cache
def _signature(text: str) -> dict[str, Any]:
    tree = ast.parse(f"lambda {text}: 0", mode="eval").body
    assert isinstance(tree, ast.Lambda)
    names = [item.arg for item in tree.args.args]
    values = [ast.literal_eval(item) for item in tree.args.defaults]
    return dict(zip(names, [UNSET] * (len(names) - len(values)) + values, strict=True))
