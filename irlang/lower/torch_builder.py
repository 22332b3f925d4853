"""The primitives as PyTorch spells them."""

from __future__ import annotations

from collections.abc import Sequence

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

# Functions of one argument; those that are not listed have a rule of their own below.
_UNARY = {
    "abs": "torch.abs", "sign": "torch.sign", "floor": "torch.floor", "ceil": "torch.ceil",
    "round": "torch.round", "trunc": "torch.trunc", "sq": "torch.square", "sqrt": "torch.sqrt",
    "rsqrt": "torch.rsqrt", "exp": "torch.exp", "expm1": "torch.expm1", "log": "torch.log",
    "log1p": "torch.log1p", "sigmoid": "torch.sigmoid", "tanh": "torch.tanh", "erf": "torch.erf",
    "sin": "torch.sin", "cos": "torch.cos", "tan": "torch.tan", "asin": "torch.asin",
    "acos": "torch.acos", "atan": "torch.atan", "sinh": "torch.sinh", "cosh": "torch.cosh",
    "asinh": "torch.asinh", "acosh": "torch.acosh", "atanh": "torch.atanh",
    "isnan": "torch.isnan", "isinf": "torch.isinf", "not": "torch.logical_not",
    "bit_not": "torch.bitwise_not", "lgamma": "torch.lgamma", "erfc": "torch.erfc",
    "erfcx": "torch.special.erfcx", "erfinv": "torch.erfinv", "ndtri": "torch.special.ndtri",
    "i0e": "torch.special.i0e", "i1e": "torch.special.i1e",
    "k0e": "torch.special.scaled_modified_bessel_k0",
    "k1e": "torch.special.scaled_modified_bessel_k1",
}  # fmt: skip
_BINARY = {
    "max": "torch.maximum", "min": "torch.minimum", "//": "torch.floor_divide",
    "%": "torch.remainder", "pow": "torch.pow", "integer_power": "torch.pow",
    "bit_and": "torch.bitwise_and", "bit_or": "torch.bitwise_or", "bit_xor": "torch.bitwise_xor",
    "shift_left": "torch.bitwise_left_shift", "shift_right": "torch.bitwise_right_shift",
}  # fmt: skip
_BOOL = ("isnan", "isinf", "not")
_WIDE = frozenset({"erfcx", "ndtri", "k0e", "k1e", "polygamma"})  # without kernels of 16 bits
_FLAT = frozenset({"k0e", "k1e"})  # whose results are constants to autograd
_REDUCE = {
    "sum": "sum", "max": "amax", "min": "amin", "all": "all", "any": "any", "prod": "prod",
}  # fmt: skip
_SINGLY = ("prod", "all", "any")


class TorchBuilder(PythonBuilder):
    """Implements `irlang.lower.value.Builder`."""

    prefix = "torch"
    copied = "{}.clone()"
    detached = "{}.detach()"

    def tensor(self, value: Value) -> str:
        """A literal as a tensor."""
        return f"torch.tensor({value.text}, dtype={self.dtype(value.dtype)})"

    def array(self, array: Array, dtype: str) -> Value:
        """`torch.arange` or `torch.tensor`."""
        if is_range(array):
            step = int(array[1] - array[0])
            bounds = [int(array[0]), int(array[-1]) + 1, step]
            text = ", ".join(map(str, bounds if step > 1 else bounds[:2]))
            if text.startswith("0, ") and step == 1:
                text = text[3:]
            kind = "" if dtype == "i64" else f", dtype={self.dtype(dtype)}"
            return self.emit(f"torch.arange({text}{kind})", array.shape, dtype, hint="index")
        if array.size == 0:  # a list cannot say the sizes after a 0
            text = f"torch.zeros({shape_text(array.shape)}, dtype={self.dtype(dtype)})"
            return self.emit(text, array.shape, dtype, hint="constant")
        converted = array.astype(
            {"real": np.float64, "int": np.int64, "bool": bool}[DTYPES[dtype].kind]
        )
        text = f"torch.tensor({listed(converted)}, dtype={self.dtype(dtype)})"
        return self.emit(text, array.shape, dtype, hint="constant")

    def cast(self, value: Value, dtype: str) -> Value:
        """`.to`, which truncates and wraps."""
        if value.dtype == dtype:
            return value
        if value.literal is not None:
            return self.constant(np.asarray(value.literal), dtype)
        return self.emit(f"{self.inner(value)}.to({self.dtype(dtype)})", value.shape, dtype)

    def apply(self, function: str, args: Sequence[Value]) -> Value:
        """A scalar function."""
        found = self.infix(function, args)
        if found is not None:
            return found
        shape, dtype = broadcast(args), args[0].dtype
        if function in _WIDE and DTYPES[dtype].bits == 16:
            wide = self.apply(function, [self.cast(arg, "f32") for arg in args])
            return self.cast(wide, dtype)
        if function == "softplus":
            x = self.full(args[0])
            return self.emit(f"torch.logaddexp({x}, torch.zeros_like({x}))", shape, dtype)
        if function in ("max", "min"):
            for own, other in ((0, 1), (1, 0)):
                if args[other].literal is not None and args[own].literal is None:
                    end = {"max": "min", "min": "max"}[function]
                    text = f"torch.clamp({args[own].text}, {end}={args[other].text})"
                    return self.emit(text, shape, dtype)
        if function in _FLAT:
            self.blunt.add(function)
        if function == "//" and DTYPES[dtype].kind == "real":  # floor_divide has no derivative
            left, right = self.full(args[0]), args[1].text
            return self.emit(f'torch.div({left}, {right}, rounding_mode="floor")', shape, dtype)
        if function in _UNARY:
            result = "bool" if function in _BOOL else dtype
            return self.emit(f"{_UNARY[function]}({self.full(args[0])})", shape, result)
        if function in _BINARY:
            left = self.full(args[0]) if args[1].literal is not None else args[0].text
            if function not in ("pow", "%"):
                left = self.full(args[0])
            return self.emit(f"{_BINARY[function]}({left}, {args[1].text})", shape, dtype)
        if function == "polygamma":
            if args[0].literal is None:
                raise Unsupported("PyTorch's polygamma wants an order that is a constant")
            order = int(args[0].literal)
            if order == 1:  # PyTorch's own polygamma has ten digits there
                zeta = f"torch.special.zeta(2.0, {self.full(args[1])})"
                return self.emit(zeta, shape, dtype)
            return self.emit(f"torch.polygamma({order}, {self.full(args[1])})", shape, dtype)
        raise Unsupported(f"PyTorch has no function `{function}`")

    def where(self, condition: Value, yes: Value, no: Value) -> Value:
        """`torch.where`."""
        left = yes.text if no.literal is None else self.full(yes)
        right = no.text if yes.literal is None else self.full(no)
        if yes.literal is None and no.literal is not None and yes.dtype != "bool":
            left, right = yes.text, no.text
        text = f"torch.where({self.full(condition)}, {left}, {right})"
        return self.emit(text, broadcast((condition, yes, no)), yes.dtype)

    def reshape(self, value: Value, shape: tuple[int, ...]) -> Value:
        """`.reshape`."""
        return self._method(value, f"reshape({listing(shape)})", shape)

    def transpose(self, value: Value, axes: tuple[int, ...]) -> Value:
        """`.permute`."""
        shape = tuple(value.shape[axis] for axis in axes)
        return self._method(value, f"permute({listing(axes)})", shape)

    def expand(self, value: Value, shape: tuple[int, ...]) -> Value:
        """`.expand`, or `torch.full` of a number."""
        if value.shape == shape:
            return value
        if value.literal is not None:
            text = f"torch.full({shape_text(shape)}, {value.text}, dtype={self.dtype(value.dtype)})"
            return self.emit(text, shape, value.dtype)
        return self._method(value, f"expand({listing(shape)})", shape)

    def slice(self, value: Value, axis: int, start: int, stop: int, step: int) -> Value:
        """A subscript; PyTorch has no negative steps, so such an axis is flipped before."""
        length = value.shape[axis]
        count = len(range(start, stop, step))
        if step < 0:
            value = self._method(value, f"flip({axis})", value.shape)
            start, stop, step = length - 1 - start, length - 1 - stop, -step
            if (start, stop, step) == (0, length, 1):
                return value
        text = f"{start or ''}:{stop if stop < length else ''}{f':{step}' if step > 1 else ''}"
        shape = (*value.shape[:axis], count, *value.shape[axis + 1 :])
        return self.emit(f"{self.inner(value)}{sliced(axis, text)}", shape, value.dtype)

    def pick(self, value: Value, axis: int, index: int) -> Value:
        """A subscript."""
        shape = reduced(value.shape, (axis,))
        return self.emit(f"{self.inner(value)}{sliced(axis, str(index))}", shape, value.dtype)

    def take(self, value: Value, indices: Value, axis: int) -> Value:
        """`.index_select`."""
        shape = (*value.shape[:axis], *indices.shape, *value.shape[axis + 1 :])
        return self._method(value, f"index_select({axis}, {indices.text})", shape)

    def stack(self, values: Sequence[Value], axis: int) -> Value:
        """`torch.stack`."""
        shape = (*values[0].shape[:axis], len(values), *values[0].shape[axis:])
        text = f"torch.stack([{', '.join(map(self.full, values))}]{_dim(axis)})"
        return self.emit(text, shape, values[0].dtype)

    def concat(self, values: Sequence[Value], axis: int) -> Value:
        """`torch.cat`."""
        size = sum(value.shape[axis] for value in values)
        shape = (*values[0].shape[:axis], size, *values[0].shape[axis + 1 :])
        text = f"torch.cat([{', '.join(map(self.full, values))}]{_dim(axis)})"
        return self.emit(text, shape, values[0].dtype)

    def pad(self, value: Value, before: Sizes, after: Sizes, number: float) -> Value:
        """`F.pad`, which takes pairs from the last axis on."""
        pairs = list(zip(before, after, strict=True))
        while pairs and pairs[0] == (0, 0):
            pairs.pop(0)
        amounts = tuple(amount for pair in reversed(pairs) for amount in pair)
        fill = f", value={literal(number)}" if number else ""
        shape = enlarged(value.shape, before, after)
        return self.emit(f"F.pad({value.text}, {amounts}{fill})", shape, value.dtype)

    def reduce(self, kind: str, value: Value, axes: tuple[int, ...]) -> Value:
        """`.sum`, `.amax`, …; `prod`, and of older releases `all` and `any`, take one axis."""
        if not axes:
            return value
        if kind in _SINGLY:
            for axis in reversed(axes):
                text = f"{_REDUCE[kind]}({axis})"
                value = self._method(value, text, reduced(value.shape, (axis,)))
            return value
        text = f"{_REDUCE[kind]}({axes_text(axes)})"
        return self._method(value, text, reduced(value.shape, axes))

    def position(self, kind: str, value: Value, axis: int) -> Value:
        """`.argmax`; PyTorch gives the first among equals."""
        shape = reduced(value.shape, (axis,))
        return self.emit(f"{self._receiver(value)}.{kind}({axis})", shape, "i64")

    def einsum(self, spec: str, values: Sequence[Value]) -> Value:
        """`torch.einsum`."""
        text = f"torch.einsum({spec!r}, {', '.join(map(self.full, values))})"
        return self.emit(text.replace("'", '"'), einsum_shape(spec, values), values[0].dtype)

    def draw(self, law: str, params: Sequence[float], shape: tuple[int, ...], dtype: str) -> Value:
        """In place, into an empty tensor."""
        if law == "bernoulli":
            text = f"torch.rand({shape_text(shape)}) < {literal(params[0])}"
            return self.once(text, shape, "bool", "keep")
        if law not in ("uniform", "normal"):
            raise Unsupported(f"PyTorch draws nothing from the law `{law}`")
        numbers = ", ".join(map(literal, params))
        text = f"torch.empty({shape_text(shape)}, dtype={self.dtype(dtype)}).{law}_({numbers})"
        return self.once(text, shape, dtype, "noise")

    def _receiver(self, value: Value) -> str:
        return self.inner(value) if value.literal is None else self.tensor(value)

    def _method(self, value: Value, call: str, shape: tuple[int, ...]) -> Value:
        return self.emit(f"{self._receiver(value)}.{call}", shape, value.dtype)


def _dim(axis: int) -> str:
    return f", dim={axis}" if axis else ""
