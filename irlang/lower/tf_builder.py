"""The primitives as TensorFlow spells them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from irlang.dtypes import DTYPES
from irlang.lower.python_builder import PythonBuilder, is_range, listed, literal, shape_text, sliced
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
    "abs": "tf.abs", "sign": "tf.sign", "floor": "tf.floor", "ceil": "tf.math.ceil",
    "round": "tf.round", "sq": "tf.square", "sqrt": "tf.sqrt", "rsqrt": "tf.math.rsqrt",
    "exp": "tf.exp", "expm1": "tf.math.expm1", "log": "tf.math.log", "log1p": "tf.math.log1p",
    "sigmoid": "tf.sigmoid", "softplus": "tf.math.softplus", "tanh": "tf.tanh",
    "erf": "tf.math.erf", "sin": "tf.sin", "cos": "tf.cos", "tan": "tf.tan", "asin": "tf.asin",
    "acos": "tf.acos", "atan": "tf.atan", "sinh": "tf.sinh", "cosh": "tf.cosh",
    "asinh": "tf.asinh", "acosh": "tf.acosh", "atanh": "tf.atanh",
    "isnan": "tf.math.is_nan", "isinf": "tf.math.is_inf", "not": "tf.logical_not",
    "bit_not": "tf.bitwise.invert", "lgamma": "tf.math.lgamma", "erfc": "tf.math.erfc",
    "erfinv": "tf.math.erfinv", "ndtri": "tf.math.ndtri", "i0e": "tf.math.bessel_i0e",
    "i1e": "tf.math.bessel_i1e", "k0e": "tf.math.special.bessel_k0e",
    "k1e": "tf.math.special.bessel_k1e",
}  # fmt: skip
_BINARY = {
    "max": "tf.maximum", "min": "tf.minimum", "//": "tf.math.floordiv", "%": "tf.math.floormod",
    "pow": "tf.pow", "integer_power": "tf.pow", "polygamma": "tf.math.polygamma",
    "bit_and": "tf.bitwise.bitwise_and",
    "bit_or": "tf.bitwise.bitwise_or", "bit_xor": "tf.bitwise.bitwise_xor",
    "shift_left": "tf.bitwise.left_shift", "shift_right": "tf.bitwise.right_shift",
}  # fmt: skip
MOST_AXES = 8
MOST_SEARCHED = 7  # axes of a tensor in which a place is looked for
MOST_TURNS = 5  # runs of axes along which one operand, the other or neither is broadcast
_BOOL = ("isnan", "isinf", "not")
# without kernels of 16 bits, or of one of the two types
_WIDE = frozenset({"erfinv", "ndtri", "polygamma", "lgamma", "i0e", "i1e", "k0e", "k1e"})


class TensorFlowBuilder(PythonBuilder):
    """Implements `irlang.lower.value.Builder`."""

    prefix = "tf"
    copied = "tf.identity({})"
    detached = "tf.stop_gradient({})"
    # Of the layers that TensorFlow has as Keras's only.
    keras = "tf.keras"
    version = 2
    backend = "tensorflow"

    def tensor(self, value: Value) -> str:
        """A literal as a tensor."""
        return f"tf.constant({value.text}, {self.dtype(value.dtype)})"

    def array(self, array: Array, dtype: str) -> Value:
        """`tf.range` or `tf.constant`."""
        if is_range(array):
            step = int(array[1] - array[0])
            bounds = f"{int(array[0])}, {int(array[-1]) + 1}{f', {step}' if step > 1 else ''}"
            text = f"tf.range({bounds}, dtype={self.dtype(dtype)})"
            return self.emit(text, array.shape, dtype, hint="index")
        if array.size == 0:  # a list cannot say the sizes after a 0
            text = f"tf.zeros({shape_text(array.shape)}, {self.dtype(dtype)})"
            return self.emit(text, array.shape, dtype, hint="constant")
        kinds = {"real": np.float64, "int": np.int64, "bool": bool}
        numbers = listed(array.astype(kinds[DTYPES[dtype].kind]))
        text = f"tf.constant({numbers}, {self.dtype(dtype)})"
        return self.emit(text, array.shape, dtype, hint="constant")

    def cast(self, value: Value, dtype: str) -> Value:
        """`tf.cast`, which truncates and wraps."""
        if value.dtype == dtype:
            return value
        if value.literal is not None:
            return self.constant(np.asarray(value.literal), dtype)
        return self.emit(f"tf.cast({value.text}, {self.dtype(dtype)})", value.shape, dtype)

    def apply(self, function: str, args: Sequence[Value]) -> Value:
        """A scalar function."""
        if len(args) == 2 and turns(args[0].shape, args[1].shape) > MOST_TURNS:
            args = [self.expand(arg, broadcast(args)) for arg in args]
        found = self.infix(function, args)
        if found is not None:
            return found
        shape, dtype = broadcast(args), args[0].dtype
        if function in _WIDE and DTYPES[dtype].bits == 16:
            wide = self.apply(function, [self.cast(arg, "f32") for arg in args])
            return self.cast(wide, dtype)
        if function == "trunc":
            x = self.let(args[0], "v").text
            text = f"tf.floor(tf.maximum({x}, 0.0)) + tf.math.ceil(tf.minimum({x}, 0.0))"
            return self.emit(text, shape, dtype, atom=False)
        if function in _UNARY:
            result = "bool" if function in _BOOL else dtype
            return self.emit(f"{_UNARY[function]}({self.full(args[0])})", shape, result)
        if function in _BINARY:
            left, right = self.full(args[0]), args[1].text
            return self.emit(f"{_BINARY[function]}({left}, {right})", shape, dtype)
        raise Unsupported(f"TensorFlow has no function `{function}`")

    def where(self, condition: Value, yes: Value, no: Value) -> Value:
        """`tf.where`; of tensors of many axes that of vectors, with which numbers broadcast."""
        shape = broadcast((condition, yes, no))
        if len(shape) > MOST_AXES:
            parts = (condition, yes, no)
            if any(v.shape not in (shape, ()) for v in parts):
                raise Unsupported(f"TensorFlow does not broadcast {len(shape)} axes")
            flat = (math.prod(shape),)
            return self.reshape(
                self.where(*(self.reshape(v, flat) if v.shape else v for v in parts)), shape
            )
        text = f"tf.where({', '.join(map(self.full, (condition, yes, no)))})"
        return self.emit(text, shape, yes.dtype)

    def reshape(self, value: Value, shape: tuple[int, ...]) -> Value:
        """`tf.reshape`."""
        return self.emit(f"tf.reshape({self.full(value)}, {list(shape)})", shape, value.dtype)

    def transpose(self, value: Value, axes: tuple[int, ...]) -> Value:
        """`tf.transpose`."""
        shape = tuple(value.shape[axis] for axis in axes)
        return self.emit(f"tf.transpose({self.full(value)}, {list(axes)})", shape, value.dtype)

    def expand(self, value: Value, shape: tuple[int, ...]) -> Value:
        """`tf.broadcast_to`, or `tf.constant` of a number."""
        if value.shape == shape:
            return value
        if value.literal is None and turns(value.shape, shape) > MOST_TURNS:
            value = self.reshape(value, (1,) * (len(shape) - len(value.shape)) + value.shape)
            for axis, size in enumerate(shape):  # an axis at a time
                value = self.expand(value, (*value.shape[:axis], size, *value.shape[axis + 1 :]))
            return value
        if value.literal is not None:
            text = f"tf.constant({value.text}, {self.dtype(value.dtype)}, {list(shape)})"
        else:
            text = f"tf.broadcast_to({value.text}, {list(shape)})"
        return self.emit(text, shape, value.dtype)

    def slice(self, value: Value, axis: int, start: int, stop: int, step: int) -> Value:
        """A subscript."""
        length = value.shape[axis]
        count = len(range(start, stop, step))
        end = stop if 0 <= stop < length else ""
        text = f"{start or ''}:{end}{f':{step}' if step != 1 else ''}"
        shape = (*value.shape[:axis], count, *value.shape[axis + 1 :])
        return self.emit(f"{self._receiver(value)}{sliced(axis, text)}", shape, value.dtype)

    def pick(self, value: Value, axis: int, index: int) -> Value:
        """A subscript."""
        shape = reduced(value.shape, (axis,))
        return self.emit(f"{self._receiver(value)}{sliced(axis, str(index))}", shape, value.dtype)

    def take(self, value: Value, indices: Value, axis: int) -> Value:
        """`tf.gather`."""
        shape = (*value.shape[:axis], *indices.shape, *value.shape[axis + 1 :])
        text = f"tf.gather({self.full(value)}, {indices.text}{_axis(axis)})"
        return self.emit(text, shape, value.dtype)

    def stack(self, values: Sequence[Value], axis: int) -> Value:
        """`tf.stack`."""
        shape = (*values[0].shape[:axis], len(values), *values[0].shape[axis:])
        text = f"tf.stack([{', '.join(map(self.full, values))}]{_axis(axis)})"
        return self.emit(text, shape, values[0].dtype)

    def concat(self, values: Sequence[Value], axis: int) -> Value:
        """`tf.concat`."""
        size = sum(value.shape[axis] for value in values)
        shape = (*values[0].shape[:axis], size, *values[0].shape[axis + 1 :])
        text = f"tf.concat([{', '.join(map(self.full, values))}], axis={axis})"
        return self.emit(text, shape, values[0].dtype)

    def pad(self, value: Value, before: Sizes, after: Sizes, number: float) -> Value:
        """`tf.pad`."""
        pairs = [list(pair) for pair in zip(before, after, strict=True)]
        fill = f", constant_values={literal(number)}" if number else ""
        shape = enlarged(value.shape, before, after)
        return self.emit(f"tf.pad({value.text}, {pairs}{fill})", shape, value.dtype)

    def reduce(self, kind: str, value: Value, axes: tuple[int, ...]) -> Value:
        """`tf.reduce_sum`, `tf.reduce_max`, …"""
        if not axes:
            return value
        which = str(axes[0]) if len(axes) == 1 else str(list(axes))
        text = f"tf.reduce_{kind}({self.full(value)}, {which})"
        return self.emit(text, reduced(value.shape, axes), value.dtype)

    def position(self, kind: str, value: Value, axis: int) -> Value:
        """`tf.argmax`, which gives the first among equals on a processor."""
        if value.rank > MOST_SEARCHED:
            raise Unsupported(f"TensorFlow looks for places among {MOST_SEARCHED} axes at most")
        text = f"tf.{kind}({self.full(value)}, {axis})"
        return self.emit(text, reduced(value.shape, (axis,)), "i64")

    def einsum(self, spec: str, values: Sequence[Value]) -> Value:
        """`tf.einsum`."""
        text = f'tf.einsum("{spec}", {", ".join(map(self.full, values))})'
        return self.emit(text, einsum_shape(spec, values), values[0].dtype)

    def draw(self, law: str, params: Sequence[float], shape: tuple[int, ...], dtype: str) -> Value:
        """`tf.random.uniform` or `tf.random.normal`."""
        if law == "bernoulli":
            text = f"tf.random.uniform({list(shape)}) < {literal(params[0])}"
            return self.once(text, shape, "bool", "keep")
        if law not in ("uniform", "normal"):
            raise Unsupported(f"TensorFlow draws nothing from the law `{law}`")
        numbers = ", ".join(map(literal, params))
        text = f"tf.random.{law}({list(shape)}, {numbers}, {self.dtype(dtype)})"
        return self.once(text, shape, dtype, "noise")

    def _receiver(self, value: Value) -> str:
        return self.inner(value) if value.literal is None else self.tensor(value)


class LiteBuilder(TensorFlowBuilder):
    """For TensorFlow Lite, whose kernels do not compute in 16 bits."""

    lacks = dict.fromkeys(("f16", "bf16"), "TensorFlow Lite computes in 32 bits or more")


def _axis(axis: int) -> str:
    return f", axis={axis}" if axis else ""


def turns(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """How many runs of axes there are that broadcast alike, which is what TensorFlow counts."""
    rank = max(len(a), len(b))
    pairs = zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True)
    kinds = [(n == 1, m == 1) for n, m in pairs if n != 1 or m != 1]
    return sum(before != after for before, after in pairwise(kinds)) + bool(kinds)
