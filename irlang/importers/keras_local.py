"""LocallyConnected1D and 2D of Keras 2, whose kernels lie in one of three ways.

What `implementation` says: 1 has the kernel of a position as one row; 2 has a factor for every
element of the input and of the result, of which those outside the windows do not count; 3 has only
those that count, by the element of the result, then that of the input.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from irlang.importers.keras_activations import activated
from irlang.importers.keras_arguments import Uncovered
from irlang.importers.keras_call import Call
from irlang.importers.writer import Array


@dataclass(frozen=True, slots=True)
class Windows:
    """Where the windows of a layer lie. ahead: Keras itself has channels first."""

    size: tuple[int, ...]
    channels: int
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    filters: int
    same: bool
    ahead: bool

    @property
    def out(self) -> tuple[int, ...]:
        """The size of the result; 0 where no window fits."""
        sizes = zip(self.size, self.kernel, self.stride, strict=True)
        if self.same:
            return tuple(-(-n // s) for n, _, s in sizes)
        return tuple(max(0, (n - k) // s + 1) for n, k, s in sizes)

    @property
    def before(self) -> list[int]:
        """How far the first window begins before the input: Keras takes its middle, rounded up."""
        return [k // 2 if self.same else 0 for k in self.kernel]

    @property
    def attributes(self) -> dict[str, Any]:
        """Stride and padding of the definition."""
        attrs: dict[str, Any] = {"stride": list(self.stride)}
        if not self.same:
            return attrs
        ends = zip(self.out, self.stride, self.kernel, self.before, self.size, strict=True)
        after = [max(0, (o - 1) * s + k - b - n) for o, s, k, b, n in ends]
        return {**attrs, "pad": "given", "before": self.before, "after": after}

    def places(self) -> Iterator[tuple[int, tuple[int, ...], tuple[slice, ...], tuple[slice, ...]]]:
        """Number and place of every position, its part of the input, and that of the kernel."""
        for number, at in enumerate(itertools.product(*map(range, self.out))):
            begin = [o * s - b for o, s, b in zip(at, self.stride, self.before, strict=True)]
            spans = list(zip(begin, self.kernel, self.size, strict=True))
            seen = tuple(slice(max(0, b), max(0, min(n, b + k))) for b, k, n in spans)
            used = tuple(slice(s.start - b, s.stop - b) for s, b in zip(seen, begin, strict=True))
            yield number, at, seen, used

    @property
    def kernels(self) -> Array:
        """A kernel of zeros for every position, as the definition has them."""
        return np.zeros((math.prod(self.out), self.filters, self.channels, *self.kernel))


def _rows(at: Windows) -> tuple[list[int | None], Callable[[Array], Array]]:
    """A row has the places of the window, then the channels, or the channels first."""
    rank, window = len(at.kernel), math.prod(at.kernel)

    def arrange(w: Array) -> Array:
        if at.ahead:
            split = w.reshape(len(w), at.channels, *at.kernel, at.filters)
            return split.transpose(0, rank + 2, *range(1, rank + 2))
        split = w.reshape(len(w), *at.kernel, at.channels, at.filters)
        return split.transpose(0, rank + 2, rank + 1, *range(1, rank + 1))

    return [None, window * at.channels, at.filters], arrange


def _all_pairs(at: Windows) -> tuple[list[int | None], Callable[[Array], Array]]:
    """Factors of all pairs: (inputs.., channels, results.., filters), or channels first."""
    rank = len(at.kernel)
    shape = [*at.size, at.channels, *at.out, at.filters]
    if at.ahead:
        shape = [at.channels, *at.size, at.filters, *at.out]

    def arrange(w: Array) -> Array:
        if at.ahead:
            order = (*range(1, rank + 1), 0, *range(rank + 2, 2 * rank + 2), rank + 1)
            w = w.transpose(order)
        found = at.kernels
        for number, place, seen, used in at.places():
            read: Any = (*seen, slice(None), *place)  # window.., channels, filters
            kept: Any = (number, ..., *used)
            found[kept] = w[read].transpose(rank + 1, rank, *range(rank))
        return found

    return list(shape), arrange


def _listed(at: Windows) -> tuple[list[int | None], Callable[[Array], Array]]:
    """Factors of the pairs that count, in the order of the result's elements, then the input's."""
    rank = len(at.kernel)
    widths = [tuple(max(0, s.stop - s.start) for s in used) for *_, used in at.places()]
    count = sum(math.prod(width) for width in widths) * at.channels * at.filters

    def arrange(w: Array) -> Array:
        found, done = at.kernels, 0
        places = list(zip(at.places(), widths, strict=True))
        filters = range(at.filters)
        pairs = (
            ((item, f) for f in filters for item in places)
            if at.ahead
            else ((item, f) for item in places for f in filters)
        )
        for ((number, _, _, used), width), f in pairs:
            many = math.prod(width) * at.channels
            part = w[done : done + many]
            done += many
            if at.ahead:
                window = part.reshape(at.channels, *width)
            else:
                window = part.reshape(*width, at.channels).transpose(rank, *range(rank))
            kept: Any = (number, f, slice(None), *used)
            found[kept] = window
        return found

    return [count], arrange


_KERNELS = {1: _rows, 2: _all_pairs, 3: _listed}


def _local(rank: int) -> Callable[[Call], str]:
    def write(c: Call) -> str:
        filters, kernel = c.a.integer("filters"), c.a.ints("kernel_size", rank)
        stride, implementation = c.a.ints("strides", rank), c.a.integer("implementation")
        same = c.a.choice("padding", "valid", "same") == "same"
        if implementation not in _KERNELS or (same and implementation == 1):
            raise Uncovered(c.a.kind, f"`implementation` is {implementation}, which Keras refuses")
        ahead = c.channels_first if c.a.given.get("data_format") else False
        x = c.first(rank)
        channels, *size = c.info(x).shape[1:]
        if len(size) != rank or min([*kernel, *stride], default=1) < 1:
            # what the definition will say, of any kernel
            w = c.param("w", 0.0, [1, filters, channels, *kernel])
            return c.write("", "locally_connected", x, w, stride=stride)
        at = Windows(tuple(size), channels, tuple(kernel), tuple(stride), filters, same, ahead)
        shape, arrange = _KERNELS[implementation](at)
        operands = [c.weight("w", 0, shape, arrange)]
        if c.a.flag("use_bias"):

            def biased(b: Array) -> Array:
                # with channels first, Keras takes the numbers for filters, then positions
                return b.reshape(filters, -1).T if ahead else b.reshape(-1, filters)

            operands.append(c.weight("b", 1, [*[None] * rank, filters], biased))
        op, attrs = "locally_connected", at.attributes
        return activated(c, lambda suffix: c.last(c.write(suffix, op, x, *operands, **attrs)))

    return write


LOCAL: dict[str, Callable[[Call], str]] = {
    f"LocallyConnected{rank}D": _local(rank) for rank in (1, 2)
}
