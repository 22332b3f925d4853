"""The primitives as Keras 3 spells them: `keras.ops`, which every one of its backends has."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from irlang.lower.tf_builder import MOST_AXES, LimitedBuilder
from irlang.lower.value import (
    Unsupported,
    Value,
    broadcast,
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
_WORDS = {
    "tensor": "ops.array({number}, {dtype})",
    "zeros": "ops.zeros({shape}, {dtype})",
    "range": "ops.arange({bounds}, dtype={dtype})",
    "array": "ops.array({numbers}, {dtype})",
    "cast": "ops.cast({x}, {dtype})",
    "reshape": "ops.reshape({x}, {shape})",
    "transpose": "ops.transpose({x}, {shape})",
    "full": "ops.full({shape}, {number}, {dtype})",
    "broadcast": "ops.broadcast_to({x}, {shape})",
    "flip": "ops.flip({x}, {axis})",
    "take": "ops.take({x}, {indices}, axis={axis})",
    "stack": "ops.stack([{xs}], {axis})",
    "concat": "ops.concatenate([{xs}], {axis})",
    "pad": "ops.pad({x}, {tuples}{fill})",
    "where": "ops.where({xs})",
    "reduce": "ops.{kind}({x}, {axes})",
    "position": 'ops.cast(ops.{kind}({x}, {axis}), "int64")',
    "einsum": 'ops.einsum("{spec}", {xs})',
    "bernoulli": "keras.random.uniform({shape}) < {first}",
    "law": "keras.random.{law}({shape}, {numbers}, {dtype})",
}  # fmt: skip


class KerasBuilder(LimitedBuilder):
    """Implements `irlang.lower.value.Builder`.

    keras: the module that has the layers. version: 2 or 3, whose words differ. backend: what it
    computes with.
    """

    words: Mapping[str, str] = MappingProxyType(_WORDS)
    framework = "Keras"
    copied = "ops.copy({})"
    detached = "ops.stop_gradient({})"
    keras = "keras"
    version = 3

    def apply(self, function: str, args: Sequence[Value]) -> Value:
        """A scalar function."""
        args = self.turned(args)
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
            left, right = self.receiver(args[0]), self.inner(args[1])
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
        return super().where(condition, yes, no)


class JaxKerasBuilder(KerasBuilder):
    """The same program; some functions of Keras are other ones on this backend."""

    backend = "jax"
    lacks = _NO_DOUBLE
    apart = KerasBuilder.tapped


class TorchKerasBuilder(KerasBuilder):
    """The same program; some functions of Keras are other ones on this backend."""

    backend = "torch"
    lacks = MappingProxyType(
        dict.fromkeys(("u16", "u32", "u64"), "Keras has no such integers on this backend")
        | dict(_NO_DOUBLE)
    )
