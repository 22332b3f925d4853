"""A layer that is being written: what it is given, and how its calls and parameters are named.

Keras puts channels last, the definitions put them first. A layer of images or sequences therefore
leaves its result with channels first (`Sheet.moved`), and the layers after it take it so where they
can; a transposition is written where somebody needs the other order. Weights keep their values and
are rearranged once, here. A weight that Keras would not accept is written as it is, under the type
that it should have, for the checker to refuse. Every value that a layer makes carries the layer's
name first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.importers.keras_arguments import UNSET, Arguments, Uncovered, signature
from irlang.importers.keras_signatures import CALL, CALLS
from irlang.importers.keras_text import Config
from irlang.importers.keras_weights import Weights
from irlang.importers.writer import Array, Writer

_LARGEST = 2**24  # elements of a weight that a layer asks for and is not given


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor of Keras. name: of the value that has its elements; mask: of its mask, if any."""

    name: str
    mask: str | None = None


@dataclass(slots=True)
class Sheet:
    """The model that is being written.

    version: 2 or 3, whose rules apply where the two of Keras differ. moved: values whose channels
    are first though Keras has them last. twins: of a value, the same in the other order. shared:
    parameters that are there already, by layer and weight. apply: writes a layer inside another.
    """

    writer: Writer
    version: int
    apply: Callable[..., list[Value]]
    moved: set[str] = field(default_factory=set)
    twins: dict[str, str] = field(default_factory=dict)
    shared: dict[tuple[int, str], str] = field(default_factory=dict)

    def last(self, name: str) -> str:
        """A value in Keras's own order."""
        return self._turned(name, "last") if name in self.moved else name

    def first(self, name: str) -> str:
        """A value with its channels, which Keras has last, first."""
        if name in self.moved or len(self.writer.types[name].shape) < 3:
            return name
        return self._turned(name, "first")

    def _turned(self, name: str, order: str) -> str:
        if name not in self.twins:
            rank = len(self.writer.types[name].shape)
            first = [0, rank - 1, *range(1, rank - 1)]
            perm = first if order == "first" else [0, *range(2, rank), 1]
            twin = self.writer.call([f"{name}_{order}"], "transpose", name, perm=perm)[0]
            self.twins[name], self.twins[twin] = twin, name
            if order == "first":
                self.moved.add(twin)
        return self.twins[name]


class Call:
    """A layer that is being written: its operands, arguments and weights.

    values: what it is called on. arguments: what else, by the names of the layer's `call`.
    """

    def __init__(
        self,
        sheet: Sheet,
        name: str,
        config: Config,
        values: Sequence[Value],
        weights: Weights,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        self.sheet = sheet
        self.writer = sheet.writer
        self.version = sheet.version
        self.name = name
        self.config = config
        self.a = Arguments(config)
        self.values = list(values)
        self.weights = weights
        self.passed: list[str | None] | None = None  # masks of the results, if the layer says so
        self.arguments = _called(self.a.kind, args, kwargs or {})
        self.dtype = policy(config) or _widest(self)

    def adapt(self) -> None:
        """Operands that are reals of another type become those that the layer computes in."""
        if policy(self.config) is None or DTYPES[self.dtype].kind != "real":
            return
        self.values = [self._adapted(value) for value in self.values]

    def _adapted(self, value: Value) -> Value:
        info = self.info(value.name)
        if info.kind != "real" or info.dtype == self.dtype:
            return value
        cast = self.write(f"as_{self.dtype}", "cast", value.name, to=self.dtype)
        if value.name in self.sheet.moved:
            self.sheet.moved.add(cast)
        return Value(cast, value.mask)

    def tensor(self, value: Any, what: str) -> str:
        """A tensor that the layer is called with, in Keras's order and the layer's type."""
        if not isinstance(value, Value):
            raise Uncovered(self.a.kind, f"{what} is no tensor")
        return self.sheet.last(self._adapted(value).name)

    @property
    def x(self) -> list[str]:
        """The operands, in Keras's order."""
        return [self.sheet.last(value.name) for value in self.values]

    @property
    def masks(self) -> list[str | None]:
        """The masks of the operands."""
        return [value.mask for value in self.values]

    @property
    def mask(self) -> str | None:
        """The mask of a layer with one operand: the one it is called with, or its operand's."""
        given = self.arguments.get("mask")
        if given is None:
            return self.values[0].mask
        if not isinstance(given, Value):
            raise Uncovered(self.a.kind, "it is called with a mask that is no tensor")
        return self.sheet.last(given.name)

    def write(self, suffix: str, op: str, *operands: Any, **attrs: Any) -> str:
        """A call for this layer; the layer's result has no suffix."""
        return self.several([suffix], op, *operands, **attrs)[0]

    def several(self, suffixes: Sequence[str], op: str, *operands: Any, **attrs: Any) -> list[str]:
        """A call with several results."""
        wanted = [f"{self.name}_{suffix}" if suffix else self.name for suffix in suffixes]
        return self.writer.call(wanted, op, *operands, **attrs)

    def info(self, value: str) -> TensorInfo:
        """The type of a value."""
        return self.writer.types[value]

    def shape(self, number: int = 0) -> list[int]:
        """The shape of an operand in Keras's order."""
        name = self.values[number].name
        shape = list(self.info(name).shape)
        return [shape[0], *shape[2:], shape[1]] if name in self.sheet.moved else shape

    def weight(
        self,
        suffix: str,
        position: int,
        shape: Sequence[int | None],
        arrange: Callable[[Array], Array],
        weights: Weights | None = None,
    ) -> str:
        """A weight as a parameter.

        shape: what Keras has there; None is whatever is given. arrange: into the definition's.
        """
        weights = self.weights if weights is None else weights
        key = (weights.owner, f"{suffix} {position}")
        if key in self.sheet.shared:
            return self.sheet.shared[key]
        try:
            array = weights.get(position)
        except ValueError:
            raise Uncovered(self.a.kind, "a weight is no tensor of numbers") from None
        if array is None:
            raise Uncovered(self.a.kind, "its weights are not given")
        wanted = list(shape)
        if array.ndim == len(shape):
            wanted = [n if s is None else s for s, n in zip(shape, array.shape, strict=True)]
        full = [1 if size is None else int(size) for size in wanted]
        if list(array.shape) == full:
            try:
                arranged = arrange(array)
            except ValueError:  # a number of elements that some other argument does not allow
                raise Uncovered(self.a.kind, f"a weight of shape {full}") from None
            found = self.param(suffix, arranged)
        else:
            if min(full, default=1) < 0 or math.prod(full) > _LARGEST:
                raise Uncovered(self.a.kind, f"a weight of shape {full}")
            declared = arrange(np.broadcast_to(np.float64(0), tuple(full))).shape
            info = TensorInfo(declared, self.dtype)
            found = self.writer.param(f"{self.name}_{suffix}", info, array)
        self.sheet.shared[key] = found
        return found

    def param(self, suffix: str, value: Array | float, shape: Sequence[int] | None = None) -> str:
        """A parameter of this layer; `shape` where the value is a number."""
        if isinstance(value, np.ndarray):
            value = stored(value, self.dtype)
            shape = value.shape
        info = TensorInfo(tuple(shape or ()), self.dtype)
        return self.writer.param(f"{self.name}_{suffix}", info, value)

    def vector(self, suffix: str, position: int, size: int | None) -> list[str]:
        """A bias as an operand, in a list; an empty one where the layer has none."""
        return [self.weight(suffix, position, [size], same)] if self.a.flag("use_bias") else []

    # ---- order of axes

    @property
    def channels_first(self) -> bool:
        """Whether Keras itself has channels first here."""
        return self.a.choice("data_format", "channels_last", "channels_first") == "channels_first"

    def first(self, rank: int) -> str:
        """The operand with its channels first; `rank` is the number of the other axes."""
        if len(self.shape()) != rank + 2:  # which a definition will say
            return self.write("x", "transpose", self.x[0], perm=[0, rank + 1, *range(1, rank + 1)])
        if self._own_first():
            return self.x[0]
        return self.sheet.first(self.values[0].name)

    def last(self, name: str) -> str:
        """A result whose channels are first, as the layer's result."""
        if not self._own_first():
            self.sheet.moved.add(name)
        return name

    def _own_first(self) -> bool:
        return self.a.given.get("data_format") is not None and self.channels_first

    def held(self, number: int = 0) -> str:
        """An operand in whatever order it is there."""
        return self.values[number].name

    def keep(self, name: str) -> str:
        """A result in the order of the first operand."""
        if self.values[0].name in self.sheet.moved:
            self.sheet.moved.add(name)
        return name

    def axis(self, axis: int) -> int:
        """Where an axis of the first operand is as it is held; one that is not there stays."""
        rank = len(self.shape())
        if self.values[0].name not in self.sheet.moved or not -rank <= axis < rank:
            return axis
        axis %= rank
        return 0 if axis == 0 else 1 if axis == rank - 1 else axis + 1


# Layers that compute something else in training than elsewhere.
_DRAWS = frozenset(
    {
        *("Dropout", "AlphaDropout", "GaussianDropout", "GaussianNoise", "BatchNormalization"),
        *("SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D", "SpectralNormalization"),
        *("MultiHeadAttention", "GroupedQueryAttention", "Attention", "AdditiveAttention"),
        *("RNN", "SimpleRNN", "GRU", "LSTM", "Bidirectional", "TimeDistributed"),
        *("ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D", "SimpleRNNCell", "GRUCell", "LSTMCell"),
    }
)


def _called(kind: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """What a layer is called with beside its operands, by name."""
    names = list(signature(CALLS.get(kind, CALL)))[1:]
    if len(args) > len(names) or not kwargs.keys() <= set(names):
        raise Uncovered(kind, "it is called with arguments that are not known")
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    defaults = signature(CALLS.get(kind, CALL))
    given = {name: value for name, value in given.items() if value != defaults[name]}
    if given.pop("training", None) not in (None, False) and kind in _DRAWS:
        raise Uncovered(kind, "it is called for training")
    return {name: value for name, value in given.items() if value is not UNSET}


def policy(config: Config) -> str | None:
    """The element type that a layer computes in, if it says so."""
    given = config.kwargs.get("dtype")
    if isinstance(given, Config):
        if given.kind not in ("DTypePolicy", "Policy"):
            raise Uncovered(config.kind, f"its dtype policy is {given.kind}")
        given = given.kwargs.get("name")
    if given is None:
        return None
    name = str(given).removeprefix("mixed_")
    if name not in _DTYPES:
        raise Uncovered(config.kind, f"its dtype is {given!r}")
    return _DTYPES[name]


def _widest(c: Call) -> str:
    """The element type of the operands, where a layer does not say its own."""
    infos = [c.info(value.name) for value in c.values]
    return next((info.dtype for info in infos if info.kind == "real"), "f64")


_DTYPES = {
    **{f"float{bits}": f"f{bits}" for bits in (16, 32, 64)},
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
    "bfloat16": "bf16",
    "bool": "bool",
}


def element(name: Any) -> str:
    """An element type by the name that Keras has for it; raises `Uncovered` for another."""
    if name not in _DTYPES:
        raise Uncovered("Input", f"its dtype is {name!r}")
    return _DTYPES[name]


def stored(array: Array, dtype: str) -> Array:
    """Values in the precision in which they are used."""
    return np.asarray(array, dtype=DTYPES[dtype].numpy)


def same(array: Array) -> Array:
    """No rearrangement."""
    return array
