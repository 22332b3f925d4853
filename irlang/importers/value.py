"""Tensors of a graph that is read: what is known of them, and when they are written.

Where everything that a tensor is made of is known it can be folded, by the definitions themselves:
what an attribute needs is then there, and only what the model still computes is written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irlang.diagnostics import fail
from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.expand import expand
from irlang.importers.sizes import Dim
from irlang.importers.writer import Array, Writer
from irlang.instance import Instance
from irlang.interp import exact, reference

_FOLDED = 1 << 16  # elements of a tensor that is folded
_LARGEST = 2**62  # elements
_AXES = 64


class Unsupported(Exception):
    """Something that another system can say and irlang cannot, or not yet.

    sources: inputs of the model whose values would have to be known.
    """

    def __init__(self, reason: str, sources: frozenset[str] = frozenset()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.sources = sources


def check_shape(shape: tuple[int, ...], what: str) -> None:
    """Raises `InvalidInput` for sizes that no tensor can have."""
    if any(size < 0 for size in shape):
        raise fail("file.shape", f"{what} has a negative size in {list(shape)}")
    if math.prod(max(size, 1) for size in shape) > _LARGEST or len(shape) > _AXES:
        raise fail("file.shape", f"{what} of shape {list(shape)} is too large for any machine")


@dataclass(eq=False, slots=True)
class Value:
    """A tensor of the model.

    fold: computes it, where all that it is made of is known. write: puts it into the text and gives
    its name there, when it is first needed. sources: the inputs of the model that it depends on.
    origin: what the model calls a parameter. depth: of the calls that are neither folded nor
    written yet. rounded: whether it hangs on reals that are computed, which runtimes round.
    """

    info: TensorInfo
    write: Callable[[], str]
    fold: Callable[[], Array] | None = None
    sources: frozenset[str] = frozenset()
    name: str = ""
    origin: str = ""
    depth: int = 0
    rounded: bool = False
    _known: Array | None = field(default=None, repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes, some of which may be open."""
        return self.info.shape

    @property
    def dtype(self) -> str:
        """The element type."""
        return self.info.dtype

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.info.shape)

    def known(self) -> Array | None:
        """The values (Python integers where sizes are open), or None."""
        if self._known is None and self.fold is not None:
            self._known = self.fold()
        return self._known

    def number(self) -> float | None:
        """Its only number, where it has one alone and that is known."""
        known = self.known()
        return float(known.reshape(-1)[0]) if known is not None and known.size == 1 else None

    def text(self) -> str:
        """Its name in the text, where it is written before."""
        if not self.name:
            self.name = self.write()
        return self.name


Operand = Value | float


def constant(writer: Writer, array: Any, wanted: str, info: TensorInfo | None = None) -> Value:
    """A tensor that is known; see `Node.const`."""
    if info is None:
        array = np.asarray(array)
        names = {row.numpy: name for name, row in DTYPES.items()}
        info = TensorInfo(array.shape, names.get(array.dtype, "i64"))
    value = Value(info, lambda: writer.param(wanted, info, array), origin=wanted)
    if isinstance(array, np.ndarray):
        value.fold = lambda: array
    elif math.prod(info.shape) <= _FOLDED and not any(isinstance(s, Dim) for s in info.shape):
        value.fold = lambda: np.full(info.shape, array, DTYPES[info.dtype].numpy)
    return value


def integers(items: Sequence[int]) -> Array:
    """Whole numbers as an array, of Python integers where sizes are open."""
    still = any(isinstance(item, Dim) for item in items)
    found = np.empty(len(items), object if still else np.int64)
    found[:] = items
    return found


def foldable(values: Sequence[Value], results: Sequence[TensorInfo]) -> bool:
    """Whether a call can be folded: all is known, small, and of sizes that are not open."""
    infos = [*(value.info for value in values), *results]
    small = all(math.prod(info.shape) <= _FOLDED for info in infos)
    still = any(isinstance(size, Dim) for info in infos for size in info.shape)
    return small and not still and all(value.fold is not None for value in values)


def feeds_of(
    instance: Instance,
    operands: Sequence[Operand],
    extra: Mapping[str, Value],
    infos: Sequence[TensorInfo],
) -> dict[str, Callable[[], Array]]:
    """What the equations of a call are given, by name."""

    def lazy(operand: Operand, info: TensorInfo) -> Callable[[], Array]:
        if isinstance(operand, Value):
            return lambda: _there(operand.known())
        return lambda: np.full(info.shape, operand, DTYPES[info.dtype].numpy)

    found: dict[str, Callable[[], Array]] = {k: lazy(v, v.info) for k, v in extra.items()}
    for place, formal in enumerate(instance.binding.op.inputs):
        if formal.family:
            for i, operand in enumerate(operands[place:]):
                found[f"{formal.name}[{i}]"] = lazy(operand, infos[place + i])
        elif place < len(operands):
            found[formal.name] = lazy(operands[place], infos[place])
    return found


def _there(array: Array | None) -> Array:
    assert array is not None  # only what is known is folded
    return array


class Fold:
    """The results of a call on known values, by its definition."""

    def __init__(
        self, instance: Instance, feeds: Mapping[str, Callable[[], Array]], writer: Writer
    ) -> None:
        self.instance = instance
        self.feeds = feeds
        self.writer = writer
        self.found: dict[str, Array] = {}

    def __call__(self, formal: str) -> Array:
        """A result by its formal name, rounded to its type."""
        if not self.found:
            feeds = {name: feed() for name, feed in self.feeds.items()}
            expansion = expand(self.instance, self.writer.catalog)
            outputs = dict(self.instance.outputs or ())
            whole = all(info.kind != "real" for info in outputs.values())
            still = any(array.dtype == object for array in feeds.values())
            if whole and still:
                tensors = exact.evaluate(expansion, feeds)
                for name, info in outputs.items():
                    items = tensors[name].values
                    array = np.array(items, bool) if info.kind == "bool" else integers(items)
                    self.found[name] = array.reshape(info.shape)
            else:
                plain = {
                    name: array.astype(np.int64) if array.dtype == object else array
                    for name, array in feeds.items()
                }
                arrays = reference.evaluate(expansion, plain)
                with np.errstate(over="ignore"):
                    for name, info in outputs.items():
                        self.found[name] = arrays[name].astype(DTYPES[info.dtype].numpy)
        return self.found[formal]
