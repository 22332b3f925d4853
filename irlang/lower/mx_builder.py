"""The primitives as MXNet spells them: `mx.np` and `mx.npx`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from irlang.dtypes import DTYPES
from irlang.lower.python_builder import (
    axes_text,
)
from irlang.lower.spelt_builder import SpeltBuilder
from irlang.lower.value import (
    Sizes,
    Unsupported,
    Value,
    broadcast,
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
MOST_AXES = 5
_LACKED = ("bf16", "i16", "u16", "u32", "u64")
_WORDS = {
    "tensor": "mx.np.array({number}, dtype={dtype})",
    "zeros": "mx.np.zeros({shape}, dtype={dtype})",
    "range": "mx.np.arange({stepped}, dtype={dtype})",
    "array": "mx.np.array({numbers}, dtype={dtype})",
    "cast": "{it}.astype({dtype})",
    "reshape": "mx.np.reshape({x}, {shape})",
    "transpose": "mx.np.transpose({x}, {shape})",
    "full": "mx.np.full({shape}, {number}, dtype={dtype})",
    "broadcast": "mx.np.broadcast_to({x}, {shape})",
    "flip": "mx.np.flip({x}, {axis})",
    "take": 'mx.np.take({x}, {indices}, axis={axis}, mode="clip")',
    "stack": "mx.np.stack([{xs}], axis={axis})",
    "concat": "mx.np.concatenate([{xs}], axis={axis})",
    "position": 'mx.np.{kind}({x}, axis={axis}).astype("int64")',
    "einsum": 'mx.np.einsum("{spec}", {xs})',
    "law": "mx.np.random.{law}({numbers}, {shape}, dtype={dtype})",
}  # fmt: skip


class MxBuilder(SpeltBuilder):
    """Implements `irlang.lower.value.Builder`."""

    words: Mapping[str, str] = MappingProxyType(_WORDS)
    framework = "MXNet"
    copied = "shown({})"
    lacks: Mapping[str, str] = MappingProxyType({name: f"MXNet has no {name}" for name in _LACKED})

    def emit(
        self, text: str, shape: tuple[int, ...], dtype: str, *, atom: bool = True, hint: str = "v"
    ) -> Value:
        """An expression; of many axes MXNet has few."""
        if len(shape) > MOST_AXES:
            raise Unsupported(f"MXNet computes with {MOST_AXES} axes at most")
        return super().emit(text, shape, dtype, atom=atom, hint=hint)

    def detach(self, value: Value) -> Value:
        """A method of arrays."""
        return self.emit(f"{self.receiver(value)}.detach()", value.shape, value.dtype)

    def movable(self, value: Value) -> Value:
        """Truth values cannot be cut and joined: numbers instead."""
        return self.cast(value, "i32") if value.dtype == "bool" else value

    def cast(self, value: Value, dtype: str) -> Value:
        """`.astype`, but for truth values."""
        if dtype != "bool" or value.dtype == "bool" or value.literal is not None:
            return super().cast(value, dtype)
        return self.emit(f"{self.inner(value)} != 0", value.shape, dtype, atom=False)

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
        return super().position(kind, value, axis)
