"""The primitives as Theano spells them, for Keras 2 on it.

Theano broadcasts axes that it knows to be of size 1, not those that happen to be: what a slice or
a layer leaves of size 1 is said to be so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from irlang.dtypes import DTYPES
from irlang.lower.python_builder import PythonBuilder, axes_text, is_range, listed, literal, sliced
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
    "abs": "abs_", "sign": "sgn", "floor": "floor", "ceil": "ceil", "trunc": "trunc",
    "sq": "sqr", "sqrt": "sqrt", "exp": "exp", "expm1": "expm1", "log": "log",
    "log1p": "log1p", "sigmoid": "nnet.sigmoid", "softplus": "nnet.softplus", "tanh": "tanh",
    "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "lgamma": "gammaln", "sin": "sin",
    "cos": "cos", "tan": "tan", "asin": "arcsin", "acos": "arccos", "atan": "arctan",
    "sinh": "sinh", "cosh": "cosh", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
    "isnan": "isnan", "isinf": "isinf", "not": "invert", "bit_not": "invert",
}  # fmt: skip
_BINARY = {
    "max": "maximum", "min": "minimum", "//": "int_div", "%": "mod", "pow": "pow",
    "integer_power": "pow", "==": "eq", "!=": "neq", "bit_and": "and_", "bit_or": "or_",
    "bit_xor": "xor",
}  # fmt: skip
_BOOL = ("isnan", "isinf", "not", "==", "!=")
_OTHERS = ("f64", "f16", "bf16", "u16", "u32", "u64")


class TheanoBuilder(PythonBuilder):
    """Implements `irlang.lower.value.Builder`, with what the table of Keras asks for."""

    copied = "T.tensor_copy({})"
    detached = "theano.gradient.disconnected_grad({})"
    lacks: Mapping[str, str] = MappingProxyType(
        dict.fromkeys(_OTHERS, "Keras 2 computes in f32 on Theano")
    )
    keras = "keras"
    version = 2
    backend = "theano"

    def dtype(self, name: str) -> str:
        """A string."""
        return f'"{DTYPES[name].numpy.name}"'

    def tensor(self, value: Value) -> str:
        """A literal as a tensor."""
        return f"T.constant({value.text}, dtype={self.dtype(value.dtype)})"

    def array(self, array: Array, dtype: str) -> Value:
        """`T.constant`."""
        if is_range(array):
            step = int(array[1] - array[0])
            bounds = f"{int(array[0])}, {int(array[-1]) + 1}, {step}"
            text = f"T.arange({bounds}, dtype={self.dtype(dtype)})"
            return self.emit(text, array.shape, dtype, hint="index")
        kinds = {"real": np.float64, "int": np.int64, "bool": bool}
        numbers = listed(array.astype(kinds[DTYPES[dtype].kind]))
        text = f"T.constant(np.array({numbers}, {self.dtype(dtype)}))"
        return self.emit(text, array.shape, dtype, hint="constant")

    def result(self, value: Value, name: str) -> Value:
        """Axes of size 1 are said to be so, whatever made them."""
        if 1 in value.shape and not value.text.isidentifier() and value.literal is None:
            pattern = tuple(size == 1 for size in value.shape)
            text = f"T.patternbroadcast({value.text}, {pattern})"
            value = Value(text, value.shape, value.dtype)
        return super().result(value, name)

    def cast(self, value: Value, dtype: str) -> Value:
        """`T.cast`."""
        if value.dtype == dtype:
            return value
        if value.literal is not None:
            return self.constant(np.asarray(value.literal), dtype)
        return self.emit(f"T.cast({value.text}, {self.dtype(dtype)})", value.shape, dtype)

    def apply(self, function: str, args: Sequence[Value]) -> Value:
        """A scalar function."""
        shape, dtype = broadcast(args), args[0].dtype
        args = [Value(self.full(arg), arg.shape, arg.dtype, arg.atom) for arg in args]
        texts = [arg.text for arg in args]
        if function == "round":
            return self.emit(f'T.round({texts[0]}, mode="half_to_even")', shape, dtype)
        if function == "rsqrt":
            return self.emit(f"1.0 / T.sqrt({texts[0]})", shape, dtype, atom=False)
        for table in (_UNARY, _BINARY):
            if function in table:
                result = "bool" if function in _BOOL else dtype
                return self.emit(f"T.{table[function]}({', '.join(texts)})", shape, result)
        found = self.infix(function, args)
        if found is None:
            raise Unsupported(f"Theano has no function `{function}`")
        return found

    def where(self, condition: Value, yes: Value, no: Value) -> Value:
        """`T.switch`."""
        text = f"T.switch({', '.join(map(self.full, (condition, yes, no)))})"
        return self.emit(text, broadcast((condition, yes, no)), yes.dtype)

    def reshape(self, value: Value, shape: tuple[int, ...]) -> Value:
        """`T.reshape`."""
        text = f"T.reshape({self.full(value)}, {list(shape)}, ndim={len(shape)})"
        return self.emit(text, shape, value.dtype)

    def transpose(self, value: Value, axes: tuple[int, ...]) -> Value:
        """`.dimshuffle`."""
        shape = tuple(value.shape[axis] for axis in axes)
        text = f"{self._receiver(value)}.dimshuffle({list(axes)})"
        return self.emit(text, shape, value.dtype)

    def expand(self, value: Value, shape: tuple[int, ...]) -> Value:
        """`T.alloc`."""
        if value.shape == shape:
            return value
        sizes = "".join(f", {size}" for size in shape)
        return self.emit(f"T.alloc({self.full(value)}{sizes})", shape, value.dtype)

    def slice(self, value: Value, axis: int, start: int, stop: int, step: int) -> Value:
        """A subscript."""
        length = value.shape[axis]
        count = len(range(start, stop, step))
        end = stop if 0 <= stop < length else ""
        text = f"{start or ''}:{end}{f':{step}' if step != 1 else ''}"
        shape = (*value.shape[:axis], count, *value.shape[axis + 1 :])
        whole = f"{self._receiver(value)}{sliced(axis, text)}"
        return self._said(Value(whole, shape, value.dtype), axis)

    def pick(self, value: Value, axis: int, index: int) -> Value:
        """A subscript."""
        shape = reduced(value.shape, (axis,))
        return self.emit(f"{self._receiver(value)}{sliced(axis, str(index))}", shape, value.dtype)

    def take(self, value: Value, indices: Value, axis: int) -> Value:
        """`T.take`."""
        shape = (*value.shape[:axis], *indices.shape, *value.shape[axis + 1 :])
        text = f"T.take({self.full(value)}, {indices.text}, axis={axis})"
        return self._said(Value(text, shape, value.dtype), axis)

    def stack(self, values: Sequence[Value], axis: int) -> Value:
        """`T.stack`."""
        shape = (*values[0].shape[:axis], len(values), *values[0].shape[axis:])
        text = f"T.stack([{', '.join(map(self.full, values))}], axis={axis})"
        return self._said(Value(text, shape, values[0].dtype), axis)

    def concat(self, values: Sequence[Value], axis: int) -> Value:
        """`T.concatenate`."""
        size = sum(value.shape[axis] for value in values)
        shape = (*values[0].shape[:axis], size, *values[0].shape[axis + 1 :])
        text = f"T.concatenate([{', '.join(map(self.full, values))}], axis={axis})"
        return self._said(Value(text, shape, values[0].dtype), axis)

    def pad(self, value: Value, before: Sizes, after: Sizes, number: float) -> Value:
        """A part of a tensor of that number is set."""
        shape = enlarged(value.shape, before, after)
        fill = self.expand(self.scalar(number, value.dtype), shape)
        pairs = zip(before, value.shape, strict=True)
        inside = ", ".join(f"{low}:{low + size}" for low, size in pairs)
        text = f"T.set_subtensor({fill.text}[{inside}], {self.full(value)})"
        return self.emit(text, shape, value.dtype)

    def reduce(self, kind: str, value: Value, axes: tuple[int, ...]) -> Value:
        """`T.sum`, `T.max`, …"""
        if not axes:
            return value
        text = f"T.{kind}({self.full(value)}, axis={axes_text(axes)})"
        return self.emit(text, reduced(value.shape, axes), value.dtype)

    def position(self, kind: str, value: Value, axis: int) -> Value:
        """`T.argmax`."""
        text = f"T.{kind}({self.full(value)}, axis={axis})"
        return self.emit(text, reduced(value.shape, (axis,)), "i64")

    def einsum(self, spec: str, values: Sequence[Value]) -> Value:
        """A product over all letters, and a sum over those that go."""
        terms, _, result = spec.partition("->")
        letters = list(dict.fromkeys(terms.replace(",", "")))
        factors = []
        for term, value in zip(terms.split(","), values, strict=True):
            if len(set(term)) < len(term):
                raise Unsupported("Theano has no sum over a diagonal")
            order = [term.index(letter) if letter in term else "x" for letter in letters]
            factors.append(f"{self._receiver(value)}.dimshuffle({order})")
        gone = [place for place, letter in enumerate(letters) if letter not in result]
        kept = [letter for letter in letters if letter in result]
        product = " * ".join(factors)
        text = f"T.sum({product}, axis={gone})" if gone else f"({product})"
        order = [kept.index(letter) for letter in result]
        text = text if order == sorted(order) else f"{text}.dimshuffle({order})"
        return self.emit(text, einsum_shape(spec, values), values[0].dtype)

    def draw(self, law: str, params: Sequence[float], shape: tuple[int, ...], dtype: str) -> Value:
        """`keras.backend.random_uniform` or `random_normal`."""
        if law not in ("uniform", "normal"):
            raise Unsupported(f"Keras draws nothing from the law `{law}`")
        numbers = ", ".join(map(literal, params))
        text = f"K.random_{law}({tuple(shape)}, {numbers}, dtype={self.dtype(dtype)})"
        return self.once(text, shape, dtype, "noise")

    def _receiver(self, value: Value) -> str:
        return self.inner(value) if value.literal is None else self.tensor(value)

    def _said(self, value: Value, axis: int) -> Value:
        """A value one of whose axes may have become one of size 1."""
        text = value.text
        if value.shape[axis] == 1:
            text = f"T.addbroadcast({text}, {axis})"
        return self.emit(text, value.shape, value.dtype)
