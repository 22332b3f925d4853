"""The primitives as Theano spells them, for Keras 2 on it.

Theano broadcasts axes that it knows to be of size 1, not those that happen to be: what a slice or
a layer leaves of size 1 is said to be so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from irlang.lower.spelt_builder import SpeltBuilder
from irlang.lower.value import (
    Sizes,
    Unsupported,
    Value,
    broadcast,
    einsum_shape,
    enlarged,
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
_WORDS = {
    "tensor": "T.constant({number}, dtype={dtype})",
    "range": "T.arange({stepped}, dtype={dtype})",
    "array": "T.constant(np.array({numbers}, {dtype}))",
    "zeros": "T.constant(np.zeros({shape}, {dtype}))",
    "cast": "T.cast({x}, {dtype})",
    "reshape": "T.reshape({x}, {sizes}, ndim={rank})",
    "transpose": "{it}.dimshuffle({sizes})",
    "full": "T.alloc({x}, {bare})",
    "broadcast": "T.alloc({x}, {bare})",
    "take": "T.take({x}, {indices}, axis={axis})",
    "stack": "T.stack([{xs}], axis={axis})",
    "concat": "T.concatenate([{xs}], axis={axis})",
    "where": "T.switch({xs})",
    "reduce": "T.{kind}({x}, axis={axes})",
    "position": "T.{kind}({x}, axis={axis})",
    "law": "K.random_{law}({shape}, {numbers}, dtype={dtype})",
}  # fmt: skip


class TheanoBuilder(SpeltBuilder):
    """Implements `irlang.lower.value.Builder`, with what the table of Keras asks for."""

    words: Mapping[str, str] = MappingProxyType(_WORDS)
    framework = "Theano"
    copied = "T.tensor_copy({})"
    detached = "theano.gradient.disconnected_grad({})"
    lacks: Mapping[str, str] = MappingProxyType(
        dict.fromkeys(_OTHERS, "Keras 2 computes in f32 on Theano")
    )
    keras = "keras"
    version = 2
    backend = "theano"

    def result(self, value: Value, name: str) -> Value:
        """Axes of size 1 are said to be so, whatever made them."""
        if 1 in value.shape and not value.text.isidentifier() and value.literal is None:
            pattern = tuple(size == 1 for size in value.shape)
            text = f"T.patternbroadcast({value.text}, {pattern})"
            value = Value(text, value.shape, value.dtype)
        return super().result(value, name)

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

    def pad(self, value: Value, before: Sizes, after: Sizes, number: float) -> Value:
        """A part of a tensor of that number is set."""
        shape = enlarged(value.shape, before, after)
        fill = self.expand(self.scalar(number, value.dtype), shape)
        pairs = zip(before, value.shape, strict=True)
        inside = ", ".join(f"{low}:{low + size}" for low, size in pairs)
        text = f"T.set_subtensor({fill.text}[{inside}], {self.full(value)})"
        return self.emit(text, shape, value.dtype)

    def einsum(self, spec: str, values: Sequence[Value]) -> Value:
        """A product over all letters, and a sum over those that go."""
        terms, _, result = spec.partition("->")
        letters = list(dict.fromkeys(terms.replace(",", "")))
        factors = []
        for term, value in zip(terms.split(","), values, strict=True):
            if len(set(term)) < len(term):
                raise Unsupported("Theano has no sum over a diagonal")
            order = [term.index(letter) if letter in term else "x" for letter in letters]
            factors.append(f"{self.receiver(value)}.dimshuffle({order})")
        gone = [place for place, letter in enumerate(letters) if letter not in result]
        kept = [letter for letter in letters if letter in result]
        product = " * ".join(factors)
        text = f"T.sum({product}, axis={gone})" if gone else f"({product})"
        order = [kept.index(letter) for letter in result]
        text = text if order == sorted(order) else f"{text}.dimshuffle({order})"
        return self.emit(text, einsum_shape(spec, values), values[0].dtype)

    def placed(self, text: str, shape: tuple[int, ...], dtype: str, axis: int) -> Value:
        """An axis may have become one of size 1."""
        said = f"T.addbroadcast({text}, {axis})" if shape[axis] == 1 else text
        return self.emit(said, shape, dtype)
