"""The primitives as TensorFlow spells them."""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

from irlang.lower.spelt_builder import SpeltBuilder
from irlang.lower.value import (
    Unsupported,
    Value,
    broadcast,
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
    "k1e": "tf.math.special.bessel_k1e", "j0": "tf.math.special.bessel_j0",
    "j1": "tf.math.special.bessel_j1", "y0": "tf.math.special.bessel_y0",
    "y1": "tf.math.special.bessel_y1", "spence": "tf.math.special.spence",
    "dawson": "tf.math.special.dawsn", "fresnel_sin": "tf.math.special.fresnel_sin",
    "fresnel_cos": "tf.math.special.fresnel_cos",
}  # fmt: skip
_BINARY = {
    "gammainc": "tf.math.igamma", "gammaincc": "tf.math.igammac", "zeta": "tf.math.zeta",
    "max": "tf.maximum", "min": "tf.minimum", "//": "tf.math.floordiv", "%": "tf.math.floormod",
    "pow": "tf.pow", "integer_power": "tf.pow", "polygamma": "tf.math.polygamma",
    "bit_and": "tf.bitwise.bitwise_and",
    "bit_or": "tf.bitwise.bitwise_or", "bit_xor": "tf.bitwise.bitwise_xor",
    "shift_left": "tf.bitwise.left_shift", "shift_right": "tf.bitwise.right_shift",
}  # fmt: skip
_EQUAL = {"==": "tf.equal", "!=": "tf.not_equal"}
MOST_AXES = 8
MOST_SEARCHED = 7  # axes of a tensor in which a place is looked for
MOST_TURNS = 5  # runs of axes along which one operand, the other or neither is broadcast
_BOOL = ("isnan", "isinf", "not")
# without kernels of 16 bits, or of one of the two types
_WIDE = frozenset({"erfinv", "ndtri", "polygamma", "lgamma", "i0e", "i1e", "k0e", "k1e"})
_WIDE |= {"j0", "j1", "y0", "y1", "spence", "dawson", "fresnel_sin", "fresnel_cos"}
_WIDE |= {"gammainc", "gammaincc", "zeta"}
_WORDS = {
    "tensor": "tf.constant({number}, {dtype})",
    "zeros": "tf.zeros({shape}, {dtype})",
    "range": "tf.range({bounds}, dtype={dtype})",
    "array": "tf.constant({numbers}, {dtype})",
    "cast": "tf.cast({x}, {dtype})",
    "reshape": "tf.reshape({x}, {sizes})",
    "transpose": "tf.transpose({x}, {sizes})",
    "full": "tf.constant({number}, {dtype}, {sizes})",
    "broadcast": "tf.broadcast_to({x}, {sizes})",
    "take": "tf.gather({x}, {indices}{at})",
    "stack": "tf.stack([{xs}]{at})",
    "concat": "tf.concat([{xs}], axis={axis})",
    "pad": "tf.pad({x}, {lists}{fill})",
    "where": "tf.where({xs})",
    "reduce": "tf.reduce_{kind}({x}, {several})",
    "position": "tf.{kind}({x}, {axis})",
    "einsum": 'tf.einsum("{spec}", {xs})',
    "bernoulli": "tf.random.uniform({sizes}) < {first}",
    "law": "tf.random.{law}({sizes}, {numbers}, {dtype})",
}  # fmt: skip


class LimitedBuilder(SpeltBuilder, ABC):
    """What TensorFlow computes, by its own words or Keras's, which takes few axes.

    backend: what does compute; only TensorFlow has the limits.
    """

    backend = "tensorflow"

    def turned(self, args: Sequence[Value]) -> Sequence[Value]:
        """Two operands, spread out if they turn too often."""
        if self.backend != "tensorflow" or len(args) != 2:
            return args
        many = turns(args[0].shape, args[1].shape) > MOST_TURNS
        return [self.expand(arg, broadcast(args)) for arg in args] if many else args

    def expand(self, value: Value, shape: tuple[int, ...]) -> Value:
        """An axis at a time, if they turn too often."""
        limited = self.backend == "tensorflow" and value.literal is None
        if value.shape == shape or not limited or turns(value.shape, shape) <= MOST_TURNS:
            return super().expand(value, shape)
        value = self.reshape(value, (1,) * (len(shape) - len(value.shape)) + value.shape)
        for axis, size in enumerate(shape):
            value = self.expand(value, (*value.shape[:axis], size, *value.shape[axis + 1 :]))
        return value

    def position(self, kind: str, value: Value, axis: int) -> Value:
        """The first among equals, at least on a processor."""
        if self.backend == "tensorflow" and value.rank > MOST_SEARCHED:
            raise Unsupported(f"TensorFlow looks for places among {MOST_SEARCHED} axes at most")
        return super().position(kind, value, axis)


class TensorFlowBuilder(LimitedBuilder):
    """Implements `irlang.lower.value.Builder`."""

    words: Mapping[str, str] = MappingProxyType(_WORDS)
    wide = _WIDE
    framework = "TensorFlow"
    prefix = "tf"
    copied = "tf.identity({})"
    detached = "tf.stop_gradient({})"
    # Of the layers that TensorFlow has as Keras's only.
    keras = "tf.keras"
    version = 2
    pads = True  # whether convolutions take a padding as it is given
    raw = True  # whether there are all kernels, also those that no function calls

    def apply(self, function: str, args: Sequence[Value]) -> Value:
        """A scalar function."""
        args = self.turned(args)
        shape, dtype = broadcast(args), args[0].dtype
        if function in _EQUAL:  # by `==` tensors that do not broadcast are not equal in a graph
            left, right = self.full(args[0]), args[1].text
            return self.emit(f"{_EQUAL[function]}({left}, {right})", shape, "bool")
        found = self.infix(function, args) or self.widened(function, args)
        if found is not None:
            return found
        if function == "trunc":
            x = self.let(args[0], "v").text
            text = f"tf.where({x} < 0.0, tf.math.ceil({x}), tf.floor({x}))"
            return self.emit(text, shape, dtype)
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
        return super().where(condition, yes, no)


class LiteBuilder(TensorFlowBuilder):
    """For TensorFlow Lite, whose kernels do not compute in 16 bits."""

    lacks = dict.fromkeys(("f16", "bf16"), "TensorFlow Lite computes in 32 bits or more")
    pads = False
    raw = False


def turns(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """How many runs of axes there are that broadcast alike, which is what TensorFlow counts."""
    rank = max(len(a), len(b))
    pairs = zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True)
    kinds = [(n == 1, m == 1) for n, m in pairs if n != 1 or m != 1]
    return sum(before != after for before, after in pairwise(kinds)) + bool(kinds)
