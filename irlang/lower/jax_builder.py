"""The primitives as JAX spells them: NumPy's functions, and those of `jax.lax`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from irlang.dtypes import DTYPES
from irlang.lower.python_builder import (
    axes_text,
    literal,
    shape_text,
)
from irlang.lower.spelt_builder import SpeltBuilder
from irlang.lower.value import (
    Unsupported,
    Value,
    broadcast,
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
    "erfcx": "jax.scipy.special.erfcx", "expint": "jax.scipy.special.expi",
    "spence": "jax.scipy.special.spence", "dawson": "jax.scipy.special.dawsn",
}  # fmt: skip
_BINARY = {
    "gammainc": "jax.scipy.special.gammainc", "gammaincc": "jax.scipy.special.gammaincc",
    "zeta": "jax.scipy.special.zeta",
    "max": "jnp.maximum", "min": "jnp.minimum", "//": "jnp.floor_divide", "%": "jnp.remainder",
    "pow": "jnp.power", "integer_power": "jnp.power", "bit_and": "jnp.bitwise_and",
    "bit_or": "jnp.bitwise_or", "bit_xor": "jnp.bitwise_xor", "shift_left": "jnp.left_shift",
    "shift_right": "jnp.right_shift",
}  # fmt: skip
_BOOL = ("isnan", "isinf", "not")
# which are not there in 16 bits
_WIDE = frozenset({"ndtri", "polygamma", "erfcx", "expint", "spence", "dawson"})
_WIDE |= {"fresnel_sin", "fresnel_cos", "gammainc", "gammaincc", "zeta"}
_FRESNEL = {"fresnel_sin": 0, "fresnel_cos": 1}  # places among the results of one function
_WORDS = {
    "tensor": "jnp.array({number}, {dtype})",
    "zeros": "jnp.zeros({shape}, {dtype})",
    "range": "jnp.arange({bounds}, dtype={dtype})",
    "array": "jnp.array({numbers}, {dtype})",
    "cast": "{it}.astype({dtype})",
    "reshape": "{it}.reshape({shape})",
    "transpose": "{it}.transpose({shape})",
    "full": "jnp.full({shape}, {number}, {dtype})",
    "broadcast": "jnp.broadcast_to({x}, {shape})",
    "take": "jnp.take({x}, {indices}, axis={axis})",
    "stack": "jnp.stack([{xs}]{at})",
    "concat": "jnp.concatenate([{xs}]{at})",
    "pad": "jnp.pad({x}, {pairs}{fill})",
    "position": "jnp.{kind}({x}, {axis})",
    "einsum": 'jnp.einsum("{spec}", {xs})',
}  # fmt: skip


class JaxBuilder(SpeltBuilder):
    """Implements `irlang.lower.value.Builder`."""

    words: Mapping[str, str] = MappingProxyType(_WORDS)
    wide = _WIDE
    framework = "JAX"
    prefix = "jnp"
    detached = "jax.lax.stop_gradient({})"
    apart = SpeltBuilder.tapped

    def dtype(self, name: str) -> str:
        """`jnp.float32`, …; `bool` has an underscore, as it once had in NumPy."""
        return "jnp.bool_" if name == "bool" else super().dtype(name)

    def apply(self, function: str, args: Sequence[Value]) -> Value:
        """A scalar function."""
        found = self.infix(function, args) or self.widened(function, args)
        if found is not None:
            return found
        shape, dtype = broadcast(args), args[0].dtype
        if function in _UNARY:
            result = "bool" if function in _BOOL else dtype
            return self.emit(f"{_UNARY[function]}({self.full(args[0])})", shape, result)
        if function in _FRESNEL:
            text = f"jax.scipy.special.fresnel({self.full(args[0])})[{_FRESNEL[function]}]"
            return self.emit(text, shape, dtype)
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

    def reduce(self, kind: str, value: Value, axes: tuple[int, ...]) -> Value:
        """`jnp.sum`, `jnp.max`, …; sums of short integers would be in long ones."""
        if not axes:
            return value
        short = kind in ("sum", "prod") and DTYPES[value.dtype].kind == "int"
        dtype = f", dtype={self.dtype(value.dtype)}" if short and value.dtype != "i64" else ""
        text = f"jnp.{kind}({self.full(value)}, {axes_text(axes)}{dtype})"
        return self.emit(text, reduced(value.shape, axes), value.dtype)

    def key(self) -> str:
        """What a function of `jax.random` draws by: another one each time."""
        return self.once("jax.random.key(np.random.randint(1 << 31))", (), "u32", "key").text

    def draw(self, law: str, params: Sequence[float], shape: tuple[int, ...], dtype: str) -> Value:
        """`jax.random`, with a key that NumPy draws when the function is called, or traced."""
        if law not in ("bernoulli", "uniform", "normal"):
            raise Unsupported(f"JAX draws nothing from the law `{law}`")
        key = self.key()
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
