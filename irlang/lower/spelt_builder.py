"""The primitives that Python targets spell alike, but for the words: each has a table of them.

A word is a template. In it stand

- `{x}`, a tensor's text, and `{it}`, the same where `.` or `[` follows; `{xs}`, several of them;
- `{number}`, the text of a bare number; `{dtype}`, the target's name of a type;
- `{shape}`, sizes or axes as a tuple, `{sizes}`, as a list, and `{bare}`, as arguments;
- `{axis}`, and `{at}`, the same as an argument that is left out where the axis is the first;
- what a primitive has beside these: `{indices}`, `{spec}`, `{kind}`, `{pairs}`, …; of a range
  `{stepped}`, and `{bounds}`, which leaves out a step of 1.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from irlang.dtypes import DTYPES
from irlang.lower.python_builder import (
    PythonBuilder,
    axes_text,
    is_range,
    listed,
    listing,
    literal,
    shape_text,
    sliced,
)
from irlang.lower.value import (
    Array,
    Sizes,
    Unsupported,
    Value,
    broadcast,
    einsum_shape,
    enlarged,
    reduced,
)

_KINDS = {"real": np.float64, "int": np.int64, "bool": bool}


class SpeltBuilder(PythonBuilder, ABC):
    """Primitives by the words of a target.

    framework: its name for people. words: the templates, by primitive. One that is not there is a
    method of the subclass; without `flip`, subscripts may have negative steps; without `zeros`, a
    list can say all sizes. wide: the functions that are not there in 16 bits. at: the argument for
    an axis.
    """

    words: Mapping[str, str] = MappingProxyType({})
    wide: Collection[str] = ()
    framework = ""
    at = ", axis={}"

    def spell(self, word: str, values: Sequence[Value] = (), **fields: Any) -> str:
        """The text of a primitive of some tensors."""
        if values:
            fields["x"], fields["it"] = self.full(values[0]), self.receiver(values[0])
            fields["xs"] = ", ".join(map(self.full, values))
            fields["number"] = values[0].text
            fields.setdefault("dtype", self.dtype(values[0].dtype))
        if "shape" in fields:
            sizes = [int(size) for size in fields["shape"]]
            fields.update(shape=shape_text(sizes), sizes=sizes, bare=listing(sizes))
            fields["rank"] = len(sizes)
        if "axis" in fields:
            fields["at"] = self.at.format(fields["axis"]) if fields["axis"] else ""
        return self.words[word].format(**fields)

    def receiver(self, value: Value) -> str:
        """The text of `value` where a method or a subscript follows."""
        return self.inner(value) if value.literal is None else self.tensor(value)

    def widened(self, function: str, args: Sequence[Value]) -> Value | None:
        """A function of `wide` that is computed in f32 for a type of 16 bits; else None."""
        dtype = args[0].dtype
        if function not in self.wide or DTYPES[dtype].bits != 16:
            return None
        return self.cast(self.apply(function, [self.cast(arg, "f32") for arg in args]), dtype)

    # ---- hooks

    def movable(self, value: Value) -> Value:
        """A tensor of the same elements that can be cut, joined and turned."""
        return value

    def placed(self, text: str, shape: tuple[int, ...], dtype: str, axis: int) -> Value:
        """What comes of tensors that were cut or joined along an axis."""
        del axis
        return self.emit(text, shape, dtype)

    # ---- numbers

    def tensor(self, value: Value) -> str:
        """A literal as a tensor."""
        return self.words["tensor"].format(number=value.text, dtype=self.dtype(value.dtype))

    def array(self, array: Array, dtype: str) -> Value:
        """A range, or a list of the numbers; one that is empty cannot say the sizes after a 0."""
        if is_range(array):
            return self.emit(self.range(array, dtype), array.shape, dtype, hint="index")
        kind = self.dtype(dtype)
        if array.size == 0:
            text = self.spell("zeros", shape=array.shape, dtype=kind)
        else:
            whole = np.uint64 if dtype == "u64" else _KINDS[DTYPES[dtype].kind]
            text = self.spell("array", numbers=listed(array.astype(whole)), dtype=kind)
        return self.emit(text, array.shape, dtype, hint="constant")

    def range(self, array: Array, dtype: str) -> str:
        """The text of an arithmetic progression."""
        first, stop, step = int(array[0]), int(array[-1]) + 1, int(array[1] - array[0])
        stepped = f"{first}, {stop}, {step}"
        bounds = stepped if step > 1 else f"{first}, {stop}"
        return self.spell("range", bounds=bounds, stepped=stepped, dtype=self.dtype(dtype))

    def cast(self, value: Value, dtype: str) -> Value:
        """Truncates to integers, and wraps between them."""
        if value.dtype == dtype:
            return value
        if value.literal is not None:
            return self.constant(np.asarray(value.literal), dtype)
        return self.emit(self.spell("cast", [value], dtype=self.dtype(dtype)), value.shape, dtype)

    # ---- the same elements elsewhere

    def _moved(
        self,
        word: str,
        values: Sequence[Value],
        into: tuple[int, ...],
        along: int | None = None,
        **fields: Any,
    ) -> Value:
        """The elements of some tensors in a new shape. along: an axis that is cut or joined."""
        given = [self.movable(value) for value in values]
        text, dtype = self.spell(word, given, **fields), given[0].dtype
        if along is None:
            found = self.emit(text, into, dtype)
        else:
            found = self.placed(text, into, dtype, along)
        return self.cast(found, values[0].dtype)

    def reshape(self, value: Value, shape: tuple[int, ...]) -> Value:
        """Row-major."""
        return self._moved("reshape", [value], shape, shape=shape)

    def transpose(self, value: Value, axes: tuple[int, ...]) -> Value:
        """Axis `axes[i]` becomes axis i."""
        shape = tuple(value.shape[axis] for axis in axes)
        return self._moved("transpose", [value], shape, shape=axes)

    def expand(self, value: Value, shape: tuple[int, ...]) -> Value:
        """Broadcast, or filled with a number."""
        if value.shape == shape:
            return value
        word = "broadcast" if value.literal is None else "full"
        return self._moved(word, [value], shape, shape=shape)

    def slice(self, value: Value, axis: int, start: int, stop: int, step: int) -> Value:
        """A subscript; where there are no negative steps such an axis is flipped before."""
        length, count = value.shape[axis], len(range(start, stop, step))
        if step < 0 and "flip" in self.words:
            value = self._moved("flip", [value], value.shape, axis=axis)
            start, stop, step = length - 1 - start, length - 1 - stop, -step
            if (start, stop, step) == (0, length, 1):
                return value
        end = stop if 0 <= stop < length else ""
        text = f"{start or ''}:{end}{f':{step}' if step != 1 else ''}"
        shape = (*value.shape[:axis], count, *value.shape[axis + 1 :])
        given = self.movable(value)
        text = f"{self.receiver(given)}{sliced(axis, text)}"
        return self.cast(self.placed(text, shape, given.dtype, axis), value.dtype)

    def pick(self, value: Value, axis: int, index: int) -> Value:
        """A subscript."""
        given = self.movable(value)
        text = f"{self.receiver(given)}{sliced(axis, str(index))}"
        return self.cast(self.emit(text, reduced(value.shape, (axis,)), given.dtype), value.dtype)

    def take(self, value: Value, indices: Value, axis: int) -> Value:
        """At a vector of indices."""
        shape = (*value.shape[:axis], *indices.shape, *value.shape[axis + 1 :])
        return self._moved("take", [value], shape, axis, axis=axis, indices=indices.text)

    def stack(self, values: Sequence[Value], axis: int) -> Value:
        """Along a new axis."""
        shape = (*values[0].shape[:axis], len(values), *values[0].shape[axis:])
        return self._moved("stack", values, shape, axis, axis=axis)

    def concat(self, values: Sequence[Value], axis: int) -> Value:
        """Along an axis that is there."""
        size = sum(value.shape[axis] for value in values)
        shape = (*values[0].shape[:axis], size, *values[0].shape[axis + 1 :])
        return self._moved("concat", values, shape, axis, axis=axis)

    def pad(self, value: Value, before: Sizes, after: Sizes, number: float) -> Value:
        """A number around."""
        pairs = tuple(zip(before, after, strict=True))
        fields = {
            "pairs": pairs,
            "lists": [list(pair) for pair in pairs],
            "tuples": list(pairs),
            "fill": f", constant_values={literal(number)}" if number else "",
        }
        shape = enlarged(value.shape, before, after)
        return self.emit(self.spell("pad", [value], **fields), shape, value.dtype)

    # ---- several elements

    def where(self, condition: Value, yes: Value, no: Value) -> Value:
        """Element by element."""
        parts = (condition, yes, no)
        return self.emit(self.spell("where", parts), broadcast(parts), yes.dtype)

    def reduce(self, kind: str, value: Value, axes: tuple[int, ...]) -> Value:
        """Over some axes, which go."""
        if not axes:
            return value
        several = axes[0] if len(axes) == 1 else list(axes)
        text = self.spell("reduce", [value], kind=kind, axes=axes_text(axes), several=several)
        return self.emit(text, reduced(value.shape, axes), value.dtype)

    def position(self, kind: str, value: Value, axis: int) -> Value:
        """The first of those that are equal."""
        text = self.spell("position", [value], kind=kind, axis=axis)
        return self.emit(text, reduced(value.shape, (axis,)), "i64")

    def einsum(self, spec: str, values: Sequence[Value]) -> Value:
        """A sum of products."""
        text = self.spell("einsum", values, spec=spec)
        return self.emit(text, einsum_shape(spec, values), values[0].dtype)

    def draw(self, law: str, params: Sequence[float], shape: tuple[int, ...], dtype: str) -> Value:
        """By a law of the framework's; truth values by comparing what is uniform."""
        numbers = list(map(literal, params))
        if law == "bernoulli" and law in self.words:
            return self.once(self.spell(law, shape=shape, first=numbers[0]), shape, "bool", "keep")
        if law not in ("uniform", "normal"):
            raise Unsupported(f"{self.framework} draws nothing from the law `{law}`")
        text = self.spell(
            "law", law=law, shape=shape, numbers=", ".join(numbers), dtype=self.dtype(dtype)
        )
        return self.once(text, shape, dtype, "noise")
