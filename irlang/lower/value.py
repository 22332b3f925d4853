"""What an emitted program computes with, and the primitives that each target spells.

A `Value` is an expression of the program with the shape and element type that it will have. All
shapes are known when a program is emitted, so no primitive ever asks for one at run time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Literal = int | float | bool
Sizes = Sequence[int]


class Unsupported(Exception):
    """A call that the target cannot spell; `str` is the reason, one line."""


@dataclass(frozen=True, slots=True)
class Value:
    """An expression: its text (in a model file: a value's name), shape and element type.

    atom: binds tighter than any operator. literal: the number, where it is one written inline.
    """

    text: str
    shape: tuple[int, ...]
    dtype: str
    atom: bool = True
    literal: Literal | None = None

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)


class Builder(Protocol):
    """The primitives: NumPy's meaning under NumPy's names, shapes known, types never implicit.

    Element-wise ones broadcast; their operands have one element type. Each raises `Unsupported`
    where the target has no such thing for the element type.

    bold: whether forms are handed on that targets may refuse; dared: whether there was one.
    """

    bold: bool
    dared: bool

    def constant(self, array: Array, dtype: str) -> Value:
        """An array that is known now; inline where it is a single number."""

    def let(self, value: Value, hint: str) -> Value:
        """`value` under a name of its own."""

    def result(self, value: Value, name: str) -> Value:
        """`value` as a node's result, under a name like the source's."""

    def solid(self, value: Value) -> Value:
        """`value`, as a tensor where it is a number written inline."""

    def detach(self, value: Value) -> Value:
        """`value` as a constant, by which nothing is differentiated."""

    def cast(self, value: Value, dtype: str) -> Value:
        """Conversion: truncates to integers, wraps between them, `!= 0` to bool."""

    def apply(self, function: str, args: Sequence[Value]) -> Value:
        """A scalar function of `irlang.scalar`; comparisons and logic give bool."""

    def where(self, condition: Value, yes: Value, no: Value) -> Value:
        """Element by element."""

    def reshape(self, value: Value, shape: tuple[int, ...]) -> Value:
        """Row-major."""

    def transpose(self, value: Value, axes: tuple[int, ...]) -> Value:
        """Axis `axes[i]` of `value` becomes axis i."""

    def expand(self, value: Value, shape: tuple[int, ...]) -> Value:
        """Broadcast to `shape`."""

    def slice(self, value: Value, axis: int, start: int, stop: int, step: int) -> Value:
        """Elements start, start + step, … before stop; a negative step ends with stop -1."""

    def pick(self, value: Value, axis: int, index: int) -> Value:
        """The elements at one index of `axis`, which vanishes."""

    def take(self, value: Value, indices: Value, axis: int) -> Value:
        """Along `axis` at a vector of i64 indices, all of them inside."""

    def stack(self, values: Sequence[Value], axis: int) -> Value:
        """Along a new axis."""

    def concat(self, values: Sequence[Value], axis: int) -> Value:
        """Along an axis that is there."""

    def pad(self, value: Value, before: Sizes, after: Sizes, number: float) -> Value:
        """`number` around `value`: so many elements before and after, for every axis."""

    def reduce(self, kind: str, value: Value, axes: tuple[int, ...]) -> Value:
        """sum, prod, max, min, all, any; the axes vanish and are not empty."""

    def position(self, kind: str, value: Value, axis: int) -> Value:
        """Argmax or argmin, the first among equals, i64; the axis vanishes."""

    def einsum(self, spec: str, values: Sequence[Value]) -> Value:
        """Sum of products with explicit output."""

    def draw(self, law: str, params: Sequence[float], shape: tuple[int, ...], dtype: str) -> Value:
        """Independent values of a law of `irlang.laws`; new ones for every call."""


def broadcast(values: Sequence[Value]) -> tuple[int, ...]:
    """The shape of an element-wise result."""
    return np.broadcast_shapes(*(value.shape for value in values))


def einsum_shape(spec: str, values: Sequence[Value]) -> tuple[int, ...]:
    """The shape that an einsum gives: of an axis of size 1 that serves longer ones, their size. An
    equation that does not fit the values, as of a call at fault, gives one all the same. The axes
    of an ellipsis go together from the last on. Where no result is said, it has what stands once.
    """
    terms, said, result = spec.partition("->")
    if not said:
        result = "".join(sorted(mark for mark in set(terms) - {","} if terms.count(mark) == 1))
    pairs = list(zip(terms.split(","), values, strict=True))
    unnamed = [value.rank - len(term) + 3 for term, value in pairs if "..." in term]
    places = "".join(
        chr(ord("\u0100") + place) for place in reversed(range(max(unnamed, default=0)))
    )
    sizes: dict[str, int] = {}
    for term, value in pairs:
        extra = max(0, value.rank - len(term) + 3)
        named = term.replace("...", places[len(places) - extra :])
        for letter, size in zip(named, value.shape, strict=False):
            sizes[letter] = size if sizes.get(letter, 1) == 1 else sizes[letter]
    return tuple(sizes.get(letter, 1) for letter in result.replace("...", places))


def reduced(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """A shape without some of its axes."""
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def enlarged(shape: Sequence[int], before: Sizes, after: Sizes) -> tuple[int, ...]:
    """A shape with padding."""
    return tuple(map(sum, zip(before, shape, after, strict=True)))
