"""The primitives as Keras 3 spells them: `keras.ops`, which every one of its backends has."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from irlang.dtypes import DTYPES
from irlang.lower.python_builder import (
    PythonBuilder,
    axes_text,
    is_range,
    listed,
    literal,
    shape_text,
    sliced,
)
from irlang.lower.tf_builder import MOST_AXES, MOST_SEARCHED, MOST_TURNS, turns
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

_UNARY = {
    "abs": "abs", "sign": "sign", "floor": "floor", "ceil": "ceil", "round": "round",
    "trunc": "trunc", "sq": "square", "sqrt": "sqrt", "rsqrt": "rsqrt", "exp": "exp",
    "expm1": "expm1", "log": "log", "log1p": "log1p", "sigmoid": "sigmoid",
    "softplus": "softplus", "tanh": "tanh", "erf": "erf", "sin": "sin", "cos": "cos",
    "tan": "tan", "asin": "arcsin", "acos": "arccos", "atan": "arctan", "sinh": "sinh",
    "cosh": "cosh", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
    "isnan": "isnan", "isinf": "isinf", "not": "logical_not", "bit_not": "bitwise_not",
    "erfinv": "erfinv", "erfc": "erfc",
}  # fmt: skip
_BINARY = {
    "max": "maximum", "min": "minimum", "pow": "power", "integer_power": "power",
    "bit_and": "bitwise_and", "bit_or": "bitwise_or", "bit_xor": "bitwise_xor",
    "shift_left": "left_shift", "shift_right": "right_shift",
}  # fmt: skip
_EQUAL = {"==": "equal", "!=": "not_equal"}
_BOOL = ("isnan", "isinf", "not")
_NO_DOUBLE: Mapping[str, str] = {"f64": "Keras computes f64 in f32 on this backend"}


class KerasBuilder(PythonBuilder):
    """Implements `irlang.lower.value.Builder`.

    keras: the module that has the layers. version: 2 or 3, whose words differ. backend: what it
    computes with.
    """

    copied = "ops.copy({})"
    detached = "ops.stop_gradient({})"
    keras = "keras"
    version = 3
    backend = "tensorflow"

    def dtype(self, name: str) -> str:
        """A string."""
        return f'"{DTYPES[name].numpy.name}"'

    def tensor(self, value: Value) -> str:
        """A literal as a tensor."""
        return f"ops.array({value.text}, {self.dtype(value.dtype)})"

    def array(self, array: Array, dtype: str) -> Value:
        """`ops.arange` or `ops.array`."""
        if is_range(array):
            step = int(array[1] - array[0])
            bounds = f"{int(array[0])}, {int(array[-1]) + 1}{f', {step}' if step > 1 else ''}"
            text = f"ops.arange({bounds}, dtype={self.dtype(dtype)})"
            return self.emit(text, array.shape, dtype, hint="index")
        if array.size == 0:  # a list cannot say the sizes after a 0
            text = f"ops.zeros({shape_text(array.shape)}, {self.dtype(dtype)})"
            return self.emit(text, array.shape, dtype, hint="constant")
        kinds = {"real": np.float64, "int": np.int64, "bool": bool}
        numbers = listed(array.astype(kinds[DTYPES[dtype].kind]))
        text = f"ops.array({numbers}, {self.dtype(dtype)})"
        return self.emit(text, array.shape, dtype, hint="constant")

    def cast(self, value: Value, dtype: str) -> Value:
        """`ops.cast`."""
        if value.dtype == dtype:
            return value
        if value.literal is not None:
            return self.constant(np.asarray(value.literal), dtype)
        return self.emit(f"ops.cast({value.text}, {self.dtype(dtype)})", value.shape, dtype)

    def apply(self, function: str, args: Sequence[Value]) -> Value:
        """A scalar function."""
        turned = turns(*(arg.shape for arg in args)) if len(args) == 2 else 0
        if self.backend == "tensorflow" and turned > MOST_TURNS:
            args = [self.expand(arg, broadcast(args)) for arg in args]
        shape, dtype = broadcast(args), args[0].dtype
        if function in _EQUAL:  # symbols compare by `==` whether they are the same
            left, right = self.full(args[0]), args[1].text
            return self.emit(f"ops.{_EQUAL[function]}({left}, {right})", shape, "bool")
        found = self.infix(function, args)
        if found is not None:
            return found
        if function in _UNARY:
            result = "bool" if function in _BOOL else dtype
            return self.emit(f"ops.{_UNARY[function]}({self.full(args[0])})", shape, result)
        if function in ("//", "%"):  # `ops.floor_divide` makes i32 of i64 on some backends
            left, right = self._receiver(args[0]), self.inner(args[1])
            return self.emit(f"{left} {function} {right}", shape, dtype, atom=False)
        if function in _BINARY:
            left = self.full(args[0])
            return self.emit(f"ops.{_BINARY[function]}({left}, {args[1].text})", shape, dtype)
        raise Unsupported(f"Keras has no function `{function}`")

    def where(self, condition: Value, yes: Value, no: Value) -> Value:
        """`ops.where`; TensorFlow's broadcasts few axes, and is asked for vectors."""
        shape, parts = broadcast((condition, yes, no)), (condition, yes, no)
        if self.backend == "tensorflow" and len(shape) > MOST_AXES:
            whole = [self.expand(self.solid(part), shape) for part in parts]
            flat = [self.reshape(part, (math.prod(shape),)) for part in whole]
            return self.reshape(self.where(*flat), shape)
        text = f"ops.where({', '.join(map(self.full, (condition, yes, no)))})"
        return self.emit(text, shape, yes.dtype)

    def reshape(self, value: Value, shape: tuple[int, ...]) -> Value:
        """`ops.reshape`."""
        text = f"ops.reshape({self.full(value)}, {shape_text(shape)})"
        return self.emit(text, shape, value.dtype)

    def transpose(self, value: Value, axes: tuple[int, ...]) -> Value:
        """`ops.transpose`."""
        shape = tuple(value.shape[axis] for axis in axes)
        text = f"ops.transpose({self.full(value)}, {shape_text(axes)})"
        return self.emit(text, shape, value.dtype)

    def expand(self, value: Value, shape: tuple[int, ...]) -> Value:
        """`ops.broadcast_to`, or `ops.full` of a number."""
        if value.shape == shape:
            return value
        steps = turns(value.shape, shape) if self.backend == "tensorflow" else 0
        if value.literal is None and steps > MOST_TURNS:
            value = self.reshape(value, (1,) * (len(shape) - len(value.shape)) + value.shape)
            for axis, size in enumerate(shape):  # an axis at a time
                value = self.expand(value, (*value.shape[:axis], size, *value.shape[axis + 1 :]))
            return value
        if value.literal is not None:
            text = f"ops.full({shape_text(shape)}, {value.text}, {self.dtype(value.dtype)})"
        else:
            text = f"ops.broadcast_to({value.text}, {shape_text(shape)})"
        return self.emit(text, shape, value.dtype)

    def slice(self, value: Value, axis: int, start: int, stop: int, step: int) -> Value:
        """A subscript; not all backends have negative steps, so such an axis is flipped before."""
        length = value.shape[axis]
        count = len(range(start, stop, step))
        if step < 0:
            value = self.emit(f"ops.flip({self.full(value)}, {axis})", value.shape, value.dtype)
            start, stop, step = length - 1 - start, length - 1 - stop, -step
            if (start, stop, step) == (0, length, 1):
                return value
        end = stop if stop < length else ""
        text = f"{start or ''}:{end}{f':{step}' if step > 1 else ''}"
        shape = (*value.shape[:axis], count, *value.shape[axis + 1 :])
        return self.emit(f"{self._receiver(value)}{sliced(axis, text)}", shape, value.dtype)

    def pick(self, value: Value, axis: int, index: int) -> Value:
        """A subscript."""
        shape = reduced(value.shape, (axis,))
        return self.emit(f"{self._receiver(value)}{sliced(axis, str(index))}", shape, value.dtype)

    def take(self, value: Value, indices: Value, axis: int) -> Value:
        """`ops.take`."""
        shape = (*value.shape[:axis], *indices.shape, *value.shape[axis + 1 :])
        text = f"ops.take({self.full(value)}, {indices.text}, axis={axis})"
        return self.emit(text, shape, value.dtype)

    def stack(self, values: Sequence[Value], axis: int) -> Value:
        """`ops.stack`."""
        shape = (*values[0].shape[:axis], len(values), *values[0].shape[axis:])
        text = f"ops.stack([{', '.join(map(self.full, values))}], {axis})"
        return self.emit(text, shape, values[0].dtype)

    def concat(self, values: Sequence[Value], axis: int) -> Value:
        """`ops.concatenate`."""
        size = sum(value.shape[axis] for value in values)
        shape = (*values[0].shape[:axis], size, *values[0].shape[axis + 1 :])
        text = f"ops.concatenate([{', '.join(map(self.full, values))}], {axis})"
        return self.emit(text, shape, values[0].dtype)

    def pad(self, value: Value, before: Sizes, after: Sizes, number: float) -> Value:
        """`ops.pad`."""
        pairs = [tuple(pair) for pair in zip(before, after, strict=True)]
        fill = f", constant_values={literal(number)}" if number else ""
        shape = enlarged(value.shape, before, after)
        return self.emit(f"ops.pad({value.text}, {pairs}{fill})", shape, value.dtype)

    def reduce(self, kind: str, value: Value, axes: tuple[int, ...]) -> Value:
        """`ops.sum`, `ops.max`, …"""
        if not axes:
            return value
        text = f"ops.{kind}({self.full(value)}, {axes_text(axes)})"
        return self.emit(text, reduced(value.shape, axes), value.dtype)

    def position(self, kind: str, value: Value, axis: int) -> Value:
        """`ops.argmax`, which counts in 32 bits."""
        if self.backend == "tensorflow" and value.rank > MOST_SEARCHED:
            raise Unsupported(f"TensorFlow looks for places among {MOST_SEARCHED} axes at most")
        text = f'ops.cast(ops.{kind}({self.full(value)}, {axis}), "int64")'
        return self.emit(text, reduced(value.shape, (axis,)), "i64")

    def einsum(self, spec: str, values: Sequence[Value]) -> Value:
        """`ops.einsum`."""
        text = f'ops.einsum("{spec}", {", ".join(map(self.full, values))})'
        return self.emit(text, einsum_shape(spec, values), values[0].dtype)

    def draw(self, law: str, params: Sequence[float], shape: tuple[int, ...], dtype: str) -> Value:
        """`keras.random`."""
        if law == "bernoulli":
            text = f"keras.random.uniform({shape_text(shape)}) < {literal(params[0])}"
            return self.once(text, shape, "bool", "keep")
        if law not in ("uniform", "normal"):
            raise Unsupported(f"Keras draws nothing from the law `{law}`")
        numbers = ", ".join(map(literal, params))
        text = f"keras.random.{law}({shape_text(shape)}, {numbers}, {self.dtype(dtype)})"
        return self.once(text, shape, dtype, "noise")

    def _receiver(self, value: Value) -> str:
        return self.inner(value) if value.literal is None else self.tensor(value)


class JaxKerasBuilder(KerasBuilder):
    """The same program; some functions of Keras are other ones on this backend."""

    backend = "jax"
    lacks = _NO_DOUBLE


class TorchKerasBuilder(KerasBuilder):
    """The same program; some functions of Keras are other ones on this backend."""

    backend = "torch"
    lacks = MappingProxyType(
        dict.fromkeys(("u16", "u32", "u64"), "Keras has no such integers on this backend")
        | dict(_NO_DOUBLE)
    )
