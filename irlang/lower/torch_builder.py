"""The primitives as PyTorch spells them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from irlang.dtypes import DTYPES
from irlang.lower.python_builder import (
    literal,
)
from irlang.lower.spelt_builder import SpeltBuilder
from irlang.lower.value import (
    Array,
    Sizes,
    Unsupported,
    Value,
    broadcast,
    enlarged,
)

_COUNTED = 2.0**24  # up to which all formats of 32 bits hold every whole number

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
    "j0": "torch.special.bessel_j0", "j1": "torch.special.bessel_j1",
    "y0": "torch.special.bessel_y0", "y1": "torch.special.bessel_y1",
}  # fmt: skip
_BINARY = {
    "max": "torch.maximum", "min": "torch.minimum", "//": "torch.floor_divide",
    "%": "torch.remainder", "pow": "torch.pow", "integer_power": "torch.pow",
    "bit_and": "torch.bitwise_and", "bit_or": "torch.bitwise_or", "bit_xor": "torch.bitwise_xor",
    "shift_left": "torch.bitwise_left_shift", "shift_right": "torch.bitwise_right_shift",
}  # fmt: skip
_BOOL = ("isnan", "isinf", "not")
_OF_TENSORS = frozenset({"gammainc", "gammaincc", "zeta"})  # which take no numbers
_FLAT = frozenset({"k0e", "k1e", "j0", "j1", "y0", "y1"})  # whose results are constants to autograd
_WIDE = (
    frozenset({"erfcx", "ndtri", "polygamma"}) | _FLAT | _OF_TENSORS
)  # without kernels of 16 bits
_REDUCE = {"max": "amax", "min": "amin"}
_SINGLY = ("prod", "all", "any")
_WORDS = {
    "tensor": "torch.tensor({number}, dtype={dtype})",
    "zeros": "torch.zeros({shape}, dtype={dtype})",
    "array": "torch.tensor({numbers}, dtype={dtype})",
    "cast": "{it}.to({dtype})",
    "reshape": "{it}.reshape({bare})",
    "transpose": "{it}.permute({bare})",
    "full": "torch.full({shape}, {number}, dtype={dtype})",
    "broadcast": "{it}.expand({bare})",
    "flip": "{it}.flip({axis})",
    "take": "{it}.index_select({axis}, {indices})",
    "stack": "torch.stack([{xs}]{at})",
    "concat": "torch.cat([{xs}]{at})",
    "reduce": "{it}.{kind}({axes})",
    "position": "{it}.{kind}({axis})",
    "einsum": 'torch.einsum("{spec}", {xs})',
    "bernoulli": "torch.rand({shape}) < {first}",
    "law": "torch.empty({shape}, dtype={dtype}).{law}_({numbers})",
}  # fmt: skip


class TorchBuilder(SpeltBuilder):
    """Implements `irlang.lower.value.Builder`."""

    words: Mapping[str, str] = MappingProxyType(_WORDS)
    wide = _WIDE
    framework = "PyTorch"
    at = ", dim={}"
    prefix = "torch"
    copied = "{}.clone()"
    detached = "{}.detach()"

    def lay(self, value: Value) -> bool:
        """Channels last (`torch.channels_last` of images), and matrices by columns."""
        axis, name = int(value.rank > 2), value.text
        if value.rank < 2 or min(value.shape[axis], math.prod(value.shape[axis + 1 :])) < 2:
            return False
        self.lines.append(f"{name} = {name}.movedim({axis}, -1).contiguous().movedim(-1, {axis})")
        return True

    def apply(self, function: str, args: Sequence[Value]) -> Value:
        """A scalar function."""
        found = self.infix(function, args) or self.widened(function, args)
        if found is not None:
            return found
        shape, dtype = broadcast(args), args[0].dtype
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
        if function in _OF_TENSORS:
            both = ", ".join(map(self.full, args))
            return self.emit(f"torch.special.{function}({both})", shape, dtype)
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

    def beside(self, value: Value) -> str:
        """An operand, of which a whole number beside a tensor is written as one, as people do.

        The tensor's type is that of the result either way, but compilers know `x * 0` from
        `x * 0.0`, and `x**2` from `x**2.0`.
        """
        number = value.literal
        if not isinstance(number, float) or not number.is_integer() or abs(number) > _COUNTED:
            return self.inner(value)
        if number < 0 or math.copysign(1, number) < 0:  # -0 is no whole number's
            return self.inner(value)
        return str(int(number))

    def where(self, condition: Value, yes: Value, no: Value) -> Value:
        """`torch.where`."""
        left = yes.text if no.literal is None else self.full(yes)
        right = no.text if yes.literal is None else self.full(no)
        if yes.literal is None and no.literal is not None and yes.dtype != "bool":
            left, right = yes.text, no.text
        text = f"torch.where({self.full(condition)}, {left}, {right})"
        return self.emit(text, broadcast((condition, yes, no)), yes.dtype)

    def pad(self, value: Value, before: Sizes, after: Sizes, number: float) -> Value:
        """`F.pad`, which takes pairs from the last axis on."""
        pairs = list(zip(before, after, strict=True))
        while pairs and pairs[0] == (0, 0):
            pairs.pop(0)
        amounts = tuple(amount for pair in reversed(pairs) for amount in pair)
        fill = f", value={literal(number)}" if number else ""
        shape = enlarged(value.shape, before, after)
        return self.emit(f"F.pad({value.text}, {amounts}{fill})", shape, value.dtype)

    def range(self, array: Array, dtype: str) -> str:
        """`torch.arange`, which begins with 0 and counts in 64 bits unless it is said."""
        first, stop, step = int(array[0]), int(array[-1]) + 1, int(array[1] - array[0])
        bounds = [first, stop, step] if step > 1 else [first, stop] if first else [stop]
        kind = [] if dtype == "i64" else [f"dtype={self.dtype(dtype)}"]
        return f"torch.arange({', '.join([*map(str, bounds), *kind])})"

    def reduce(self, kind: str, value: Value, axes: tuple[int, ...]) -> Value:
        """`.sum`, `.amax`, …; `prod`, and of older releases `all` and `any`, take one axis."""
        for axis in reversed(axes) if kind in _SINGLY else ():
            value = super().reduce(kind, value, (axis,))
        return value if kind in _SINGLY else super().reduce(_REDUCE.get(kind, kind), value, axes)
