"""The primitives as JAX spells them: NumPy's functions, and those of `jax.lax`."""

from __future__ import annotations

from collections.abc import Sequence

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
    "abs": "jnp.abs", "sign": "jnp.sign", "floor": "jnp.floor", "ceil": "jnp.ceil",
    "round": "jnp.round", "trunc": "jnp.trunc", "sq": "jnp.square", "sqrt": "jnp.sqrt",
    "rsqrt": "jax.lax.rsqrt", "exp": "jnp.exp", "expm1": "jnp.expm1", "log": "jnp.log",
    "log1p": "jnp.log1p", "sigmoid": "jax.nn.sigmoid", "softplus": "jax.nn.softplus",
    "tanh": "jnp.tanh", "erf": "jax.lax.erf", "sin": "jnp.sin", "cos": "jnp.cos",
    "tan": "jnp.tan", "asin": "jnp.arcsin", "acos": "jnp.arccos", "atan": "jnp.arctan",
    "sinh": "jnp.sinh", "cosh": "jnp.cosh", "asinh": "jnp.arcsinh", "acosh": "jnp.arccosh",
    "atanh": "jnp.arctanh", "isnan": "jnp.isnan", "isinf": "jnp.isinf",
    "not": "jnp.logical_not", "bit_not": "jnp.bitwise_not", "lgamma": "jax.lax.lgamma",
    "erfc": "jax.lax.erfc", "erfinv": "jax.lax.erf_inv", "i0e": "jax.lax.bessel_i0e",
    "i1e": "jax.lax.bessel_i1e", "ndtri": "jax.scipy.special.ndtri",
    "erfcx": "jax.scipy.special.erfcx",
}  # fmt: skip
_BINARY = {
    "max": "jnp.maximum", "min": "jnp.minimum", "//": "jnp.floor_divide", "%": "jnp.remainder",
    "pow": "jnp.power", "integer_power": "jnp.power", "bit_and": "jnp.bitwise_and",
    "bit_or": "jnp.bitwise_or", "bit_xor": "jnp.bitwise_xor", "shift_left": "jnp.left_shift",
    "shift_right": "jnp.right_shift",
}  # fmt: skip
_BOOL = ("isnan", "isinf", "not")
_WIDE = frozenset({"ndtri", "polygamma", "erfcx"})  # which are not there in 16 bits


class JaxBuilder(PythonBuilder):
    """Implements `irlang.lower.value.Builder`."""

    prefix = "jnp"
    copied = "jnp.array({})"
    detached = "jax.lax.stop_gradient({})"

    def dtype(self, name: str) -> str:
        """`jnp.float32`, …; `bool` has an underscore, as it once had in NumPy."""
        return "jnp.bool_" if name == "bool" else super().dtype(name)

    def tensor(self, value: Value) -> str:
        """A literal as an array."""
        return f"jnp.array({value.text}, {self.dtype(value.dtype)})"

    def array(self, array: Array, dtype: str) -> Value:
        """`jnp.arange` or `jnp.array`."""
        if is_range(array):
            step = int(array[1] - array[0])
            bounds = [int(array[0]), int(array[-1]) + 1, step]
            text = ", ".join(map(str, bounds if step > 1 else bounds[:2]))
            kind = f"dtype={self.dtype(dtype)}"
            return self.emit(f"jnp.arange({text}, {kind})", array.shape, dtype, hint="index")
        if array.size == 0:  # a list cannot say the sizes after a 0
            text = f"jnp.zeros({shape_text(array.shape)}, {self.dtype(dtype)})"
            return self.emit(text, array.shape, dtype, hint="constant")
        kinds = {"real": np.float64, "int": np.int64, "bool": bool}
        if dtype == "u64":
            kinds["int"] = np.uint64
        numbers = listed(array.astype(kinds[DTYPES[dtype].kind]))
        text = f"jnp.array({numbers}, {self.dtype(dtype)})"
        return self.emit(text, array.shape, dtype, hint="constant")

    def cast(self, value: Value, dtype: str) -> Value:
        """`.astype`, which truncates and, between integers, wraps."""
        if value.dtype == dtype:
            return value
        if value.literal is not None:
            return self.constant(np.asarray(value.literal), dtype)
        text = f"{self.inner(value)}.astype({self.dtype(dtype)})"
        return self.emit(text, value.shape, dtype)

    def apply(self, function: str, args: Sequence[Value]) -> Value:
        """A scalar function."""
        found = self.infix(function, args)
        if found is not None:
            return found
        shape, dtype = broadcast(args), args[0].dtype
        if function in _WIDE and DTYPES[dtype].bits == 16:
            wide = self.apply(function, [self.cast(arg, "f32") for arg in args])
            return self.cast(wide, dtype)
        if function in _UNARY:
            result = "bool" if function in _BOOL else dtype
            return self.emit(f"{_UNARY[function]}({self.full(args[0])})", shape, result)
        if function == "polygamma":
            order = self.cast(args[0], "i64").text  # which is one in spite of its type
            text = f"jax.scipy.special.polygamma({order}, {self.full(args[1])})"
            return self.emit(text, shape, args[1].dtype)
        if function in _BINARY:
            # A bare number beside an array has the array's type; two have Python's.
            left, right = (self.full(arg) if arg.shape == shape else arg.text for arg in args)
            return self.emit(f"{_BINARY[function]}({left}, {right})", shape, dtype)
        raise Unsupported(f"JAX has no function `{function}`")

    def where(self, condition: Value, yes: Value, no: Value) -> Value:
        """`jnp.where`."""
        shape = broadcast((condition, yes, no))
        left = yes.text if no.literal is None else self.full(yes)
        text = f"jnp.where({self.full(condition)}, {left}, {no.text})"
        return self.emit(text, shape, yes.dtype)

    def reshape(self, value: Value, shape: tuple[int, ...]) -> Value:
        """`.reshape`."""
        return self._method(value, f"reshape({shape_text(shape)})", shape)

    def transpose(self, value: Value, axes: tuple[int, ...]) -> Value:
        """`.transpose`."""
        shape = tuple(value.shape[axis] for axis in axes)
        return self._method(value, f"transpose({shape_text(axes)})", shape)

    def expand(self, value: Value, shape: tuple[int, ...]) -> Value:
        """`jnp.broadcast_to`, or `jnp.full` of a number."""
        if value.shape == shape:
            return value
        if value.literal is not None:
            text = f"jnp.full({shape_text(shape)}, {value.text}, {self.dtype(value.dtype)})"
        else:
            text = f"jnp.broadcast_to({value.text}, {shape_text(shape)})"
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
        """`jnp.take`."""
        shape = (*value.shape[:axis], *indices.shape, *value.shape[axis + 1 :])
        text = f"jnp.take({self.full(value)}, {indices.text}, axis={axis})"
        return self.emit(text, shape, value.dtype)

    def stack(self, values: Sequence[Value], axis: int) -> Value:
        """`jnp.stack`."""
        shape = (*values[0].shape[:axis], len(values), *values[0].shape[axis:])
        text = f"jnp.stack([{', '.join(map(self.full, values))}]{_axis(axis)})"
        return self.emit(text, shape, values[0].dtype)

    def concat(self, values: Sequence[Value], axis: int) -> Value:
        """`jnp.concatenate`."""
        size = sum(value.shape[axis] for value in values)
        shape = (*values[0].shape[:axis], size, *values[0].shape[axis + 1 :])
        text = f"jnp.concatenate([{', '.join(map(self.full, values))}]{_axis(axis)})"
        return self.emit(text, shape, values[0].dtype)

    def pad(self, value: Value, before: Sizes, after: Sizes, number: float) -> Value:
        """`jnp.pad`."""
        pairs = tuple(zip(before, after, strict=True))
        fill = f", constant_values={literal(number)}" if number else ""
        shape = enlarged(value.shape, before, after)
        return self.emit(f"jnp.pad({value.text}, {pairs}{fill})", shape, value.dtype)

    def reduce(self, kind: str, value: Value, axes: tuple[int, ...]) -> Value:
        """`jnp.sum`, `jnp.max`, …; sums of short integers would be in long ones."""
        if not axes:
            return value
        short = kind in ("sum", "prod") and DTYPES[value.dtype].kind == "int"
        dtype = f", dtype={self.dtype(value.dtype)}" if short and value.dtype != "i64" else ""
        text = f"jnp.{kind}({self.full(value)}, {axes_text(axes)}{dtype})"
        return self.emit(text, reduced(value.shape, axes), value.dtype)

    def position(self, kind: str, value: Value, axis: int) -> Value:
        """`jnp.argmax`, which gives the first among equals."""
        text = f"jnp.{kind}({self.full(value)}, {axis})"
        return self.emit(text, reduced(value.shape, (axis,)), "i64")

    def einsum(self, spec: str, values: Sequence[Value]) -> Value:
        """`jnp.einsum`."""
        text = f'jnp.einsum("{spec}", {", ".join(map(self.full, values))})'
        return self.emit(text, einsum_shape(spec, values), values[0].dtype)

    def draw(self, law: str, params: Sequence[float], shape: tuple[int, ...], dtype: str) -> Value:
        """`jax.random`, with a key that NumPy draws when the function is called, or traced."""
        if law not in ("bernoulli", "uniform", "normal"):
            raise Unsupported(f"JAX draws nothing from the law `{law}`")
        key = self.once("jax.random.key(np.random.randint(1 << 31))", (), "u32", "key").text
        size, first = shape_text(shape), literal(params[0])
        if law == "bernoulli":
            return self.once(f"jax.random.bernoulli({key}, {first}, {size})", shape, "bool", "keep")
        if law == "uniform":
            last = literal(params[1])
            text = f"jax.random.uniform({key}, {size}, {self.dtype(dtype)}, {first}, {last})"
        else:
            noise = f"jax.random.normal({key}, {size}, {self.dtype(dtype)})"
            text = f"{first} + {literal(params[1])} * {noise}"
        return self.once(text, shape, dtype, "noise")

    def _receiver(self, value: Value) -> str:
        return self.inner(value) if value.literal is None else self.tensor(value)

    def _method(self, value: Value, call: str, shape: tuple[int, ...]) -> Value:
        return self.emit(f"{self._receiver(value)}.{call}", shape, value.dtype)


def _axis(axis: int) -> str:
    return f", axis={axis}" if axis else ""
