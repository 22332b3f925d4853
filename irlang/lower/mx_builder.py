"""The primitives as MXNet spells them: `mx.np` and `mx.npx`."""

from __future__ import annotations

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
from irlang.lower.value import (
    Array,
    Sizes,
    Unsupported,
    Value,
    broadcast,
    einsum_shape,
    reduced,
)

_UNARY = {
    "abs": "np.abs", "sign": "np.sign", "floor": "np.floor", "ceil": "np.ceil",
    "trunc": "np.trunc", "sq": "np.square", "sqrt": "np.sqrt", "exp": "np.exp",
    "expm1": "np.expm1", "log": "np.log", "log1p": "np.log1p", "sigmoid": "npx.sigmoid",
    "tanh": "np.tanh", "sin": "np.sin", "cos": "np.cos", "tan": "np.tan", "asin": "np.arcsin",
    "acos": "np.arccos", "atan": "np.arctan", "sinh": "np.sinh", "cosh": "np.cosh",
    "asinh": "np.arcsinh", "acosh": "np.arccosh", "atanh": "np.arctanh",
}  # fmt: skip
_BINARY = {"max": "np.maximum", "min": "np.minimum", "pow": "np.power"}
_COMPARING = ("<", "<=", ">", ">=", "==", "!=")
_MOST_AXES = 5
_LACKED = ("bf16", "i16", "u16", "u32", "u64")


class MxBuilder(PythonBuilder):
    """Implements `irlang.lower.value.Builder`."""

    copied = "{}.copy()"
    detached = "mx.npx.stop_gradient({})"
    lacks: Mapping[str, str] = MappingProxyType({name: f"MXNet has no {name}" for name in _LACKED})

    def emit(
        self, text: str, shape: tuple[int, ...], dtype: str, *, atom: bool = True, hint: str = "v"
    ) -> Value:
        """An expression; of many axes MXNet has few."""
        if len(shape) > _MOST_AXES:
            raise Unsupported(f"MXNet computes with {_MOST_AXES} axes at most")
        return super().emit(text, shape, dtype, atom=atom, hint=hint)

    def _numbers(self, value: Value) -> Value:
        """A tensor that can be cut and joined; truth values cannot."""
        return self.cast(value, "i32") if value.dtype == "bool" else value

    def dtype(self, name: str) -> str:
        """A string."""
        return f'"{DTYPES[name].numpy.name}"'

    def tensor(self, value: Value) -> str:
        """A literal as a tensor."""
        return f"mx.np.array({value.text}, dtype={self.dtype(value.dtype)})"

    def array(self, array: Array, dtype: str) -> Value:
        """`mx.np.arange` or `mx.np.array`."""
        if is_range(array):
            step = int(array[1] - array[0])
            bounds = f"{int(array[0])}, {int(array[-1]) + 1}, {step}"
            text = f"mx.np.arange({bounds}, dtype={self.dtype(dtype)})"
            return self.emit(text, array.shape, dtype, hint="index")
        if array.size == 0:  # a list cannot say the sizes after a 0
            text = f"mx.np.zeros({shape_text(array.shape)}, dtype={self.dtype(dtype)})"
            return self.emit(text, array.shape, dtype, hint="constant")
        kinds = {"real": np.float64, "int": np.int64, "bool": bool}
        numbers = listed(array.astype(kinds[DTYPES[dtype].kind]))
        text = f"mx.np.array({numbers}, dtype={self.dtype(dtype)})"
        return self.emit(text, array.shape, dtype, hint="constant")

    def cast(self, value: Value, dtype: str) -> Value:
        """`.astype`."""
        if value.dtype == dtype:
            return value
        if value.literal is not None:
            return self.constant(np.asarray(value.literal), dtype)
        text = f"{self.inner(value)}.astype({self.dtype(dtype)})"
        if dtype == "bool":
            text = f"{self.inner(value)} != 0"
        return self.emit(text, value.shape, dtype, atom=dtype != "bool")

    def apply(self, function: str, args: Sequence[Value]) -> Value:
        """A scalar function."""
        shape, dtype = broadcast(args), args[0].dtype
        if function in ("and", "or", "not"):
            return self._logic(function, args)
        if function in _COMPARING and dtype == "bool":
            return self.apply(function, [self.cast(arg, "i32") for arg in args])
        x = self.inner(args[0]) if args[0].literal is None else self.tensor(args[0])
        if function == "isnan":
            return self.emit(f"{x} != {x}", shape, "bool", atom=False)
        if function == "isinf":
            return self.emit(f"mx.np.abs({x}) == np.inf", shape, "bool", atom=False)
        if function == "rsqrt":
            return self.emit(f"1 / mx.np.sqrt({x})", shape, dtype, atom=False)
        if function == "softplus":
            return self.emit(f'mx.npx.activation({x}, act_type="softrelu")', shape, dtype)
        if function == "%":
            return self.emit(f"{x} % {self.inner(args[1])}", shape, dtype, atom=False)
        found = self.infix(function, args)
        if found is not None:
            return found
        if function in _UNARY:
            return self.emit(f"mx.{_UNARY[function]}({self.full(args[0])})", shape, dtype)
        if function in _BINARY:
            text = f"mx.{_BINARY[function]}({self.full(args[0])}, {args[1].text})"
            return self.emit(text, shape, dtype)
        raise Unsupported(f"MXNet has no function `{function}`")

    def _logic(self, function: str, args: Sequence[Value]) -> Value:
        """Of numbers: there is no other."""
        shape = broadcast(args)
        parts = [self.inner(self.cast(self.solid(arg), "i32")) for arg in args]
        if function == "not":
            return self.emit(f"{parts[0]} == 0", shape, "bool", atom=False)
        sign = {"and": "*", "or": "+"}[function]
        return self.emit(f"({f' {sign} '.join(parts)}) != 0", shape, "bool", atom=False)

    def where(self, condition: Value, yes: Value, no: Value) -> Value:
        """`where`, of the program's own, for tensors of one shape."""
        shape = broadcast((condition, yes, no))
        if yes.dtype == "bool":
            raise Unsupported("MXNet chooses between numbers only")
        parts = [self.cast(self.solid(condition), "f32"), yes, no]
        texts = [self.full(self.expand(part, shape)) for part in parts]
        return self.emit(f"where({', '.join(texts)})", shape, yes.dtype)

    def reshape(self, value: Value, shape: tuple[int, ...]) -> Value:
        """`mx.np.reshape`."""
        if value.dtype == "bool":
            return self.cast(self.reshape(self._numbers(value), shape), "bool")
        text = f"mx.np.reshape({self.full(value)}, {shape_text(shape)})"
        return self.emit(text, shape, value.dtype)

    def transpose(self, value: Value, axes: tuple[int, ...]) -> Value:
        """`mx.np.transpose`."""
        if value.dtype == "bool":
            return self.cast(self.transpose(self._numbers(value), axes), "bool")
        shape = tuple(value.shape[axis] for axis in axes)
        text = f"mx.np.transpose({self.full(value)}, {shape_text(axes)})"
        return self.emit(text, shape, value.dtype)

    def expand(self, value: Value, shape: tuple[int, ...]) -> Value:
        """`mx.np.broadcast_to`, or `mx.np.full` of a number."""
        if value.shape == shape:
            return value
        if value.dtype == "bool":
            return self.cast(self.expand(self._numbers(value), shape), "bool")
        if value.literal is not None:
            kind = self.dtype(value.dtype)
            text = f"mx.np.full({shape_text(shape)}, {value.text}, dtype={kind})"
        else:
            text = f"mx.np.broadcast_to({value.text}, {shape_text(shape)})"
        return self.emit(text, shape, value.dtype)

    def slice(self, value: Value, axis: int, start: int, stop: int, step: int) -> Value:
        """A subscript; an axis that is run through backwards is flipped before."""
        if value.dtype == "bool":
            return self.cast(self.slice(self._numbers(value), axis, start, stop, step), "bool")
        length = value.shape[axis]
        count = len(range(start, stop, step))
        if step < 0:
            value = self.emit(f"mx.np.flip({self.full(value)}, {axis})", value.shape, value.dtype)
            start, stop, step = length - 1 - start, length - 1 - stop, -step
            if (start, stop, step) == (0, length, 1):
                return value
        end = stop if stop < length else ""
        text = f"{start or ''}:{end}{f':{step}' if step > 1 else ''}"
        shape = (*value.shape[:axis], count, *value.shape[axis + 1 :])
        return self.emit(f"{self._receiver(value)}{sliced(axis, text)}", shape, value.dtype)

    def pick(self, value: Value, axis: int, index: int) -> Value:
        """A subscript."""
        if value.dtype == "bool":
            return self.cast(self.pick(self._numbers(value), axis, index), "bool")
        shape = reduced(value.shape, (axis,))
        return self.emit(f"{self._receiver(value)}{sliced(axis, str(index))}", shape, value.dtype)

    def take(self, value: Value, indices: Value, axis: int) -> Value:
        """`mx.np.take`."""
        if value.dtype == "bool":
            return self.cast(self.take(self._numbers(value), indices, axis), "bool")
        shape = (*value.shape[:axis], *indices.shape, *value.shape[axis + 1 :])
        text = f'mx.np.take({self.full(value)}, {indices.text}, axis={axis}, mode="clip")'
        return self.emit(text, shape, value.dtype)

    def stack(self, values: Sequence[Value], axis: int) -> Value:
        """`mx.np.stack`."""
        if values[0].dtype == "bool":
            return self.cast(self.stack([self._numbers(value) for value in values], axis), "bool")
        shape = (*values[0].shape[:axis], len(values), *values[0].shape[axis:])
        text = f"mx.np.stack([{', '.join(map(self.full, values))}], axis={axis})"
        return self.emit(text, shape, values[0].dtype)

    def concat(self, values: Sequence[Value], axis: int) -> Value:
        """`mx.np.concatenate`."""
        if values[0].dtype == "bool":
            return self.cast(self.concat([self._numbers(value) for value in values], axis), "bool")
        size = sum(value.shape[axis] for value in values)
        shape = (*values[0].shape[:axis], size, *values[0].shape[axis + 1 :])
        text = f"mx.np.concatenate([{', '.join(map(self.full, values))}], axis={axis})"
        return self.emit(text, shape, values[0].dtype)

    def pad(self, value: Value, before: Sizes, after: Sizes, number: float) -> Value:
        """Tensors of that number at both ends, axis by axis."""
        fill = self.scalar(number, value.dtype)
        for axis, (low, high) in enumerate(zip(before, after, strict=True)):
            shape = value.shape
            ends = [(*shape[:axis], size, *shape[axis + 1 :]) for size in (low, high)]
            first, last = (self.expand(fill, end) if end[axis] else None for end in ends)
            parts = [part for part in (first, value, last) if part is not None]
            value = self.concat(parts, axis) if len(parts) > 1 else value
        return value

    def reduce(self, kind: str, value: Value, axes: tuple[int, ...]) -> Value:
        """`mx.np.sum`, `mx.np.max`, …; of truth values that of numbers."""
        if not axes:
            return value
        shape = reduced(value.shape, axes)
        if kind in ("all", "any"):
            which = {"all": "min", "any": "max"}[kind]
            inner = self.cast(value, "f32")
            text = f"mx.np.{which}({self.full(inner)}, axis={axes_text(axes)}) != 0"
            return self.emit(text, shape, "bool", atom=False)
        if kind in ("max", "min") and DTYPES[value.dtype].kind == "int":
            raise Unsupported("MXNet finds the extremes of reals only")
        text = f"mx.np.{kind}({self.full(value)}, axis={axes_text(axes)})"
        if value.dtype in ("i8", "u8", "i32"):  # which are widened
            text = f"{text}.astype({self.dtype(value.dtype)})"
        return self.emit(text, shape, value.dtype)

    def position(self, kind: str, value: Value, axis: int) -> Value:
        """`mx.np.argmax`."""
        if DTYPES[value.dtype].kind != "real":
            raise Unsupported("MXNet finds the extremes of reals only")
        text = f'mx.np.{kind}({self.full(value)}, axis={axis}).astype("int64")'
        return self.emit(text, reduced(value.shape, (axis,)), "i64")

    def einsum(self, spec: str, values: Sequence[Value]) -> Value:
        """`mx.np.einsum`."""
        text = f'mx.np.einsum("{spec}", {", ".join(map(self.full, values))})'
        return self.emit(text, einsum_shape(spec, values), values[0].dtype)

    def draw(self, law: str, params: Sequence[float], shape: tuple[int, ...], dtype: str) -> Value:
        """`mx.np.random`."""
        if law not in ("uniform", "normal"):
            raise Unsupported(f"MXNet draws nothing from the law `{law}`")
        numbers = ", ".join(map(literal, params))
        kind = f"dtype={self.dtype(dtype)}"
        text = f"mx.np.random.{law}({numbers}, {shape_text(shape)}, {kind})"
        return self.once(text, shape, dtype, "noise")

    def _receiver(self, value: Value) -> str:
        return self.inner(value) if value.literal is None else self.tensor(value)
