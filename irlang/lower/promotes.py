"""The conversions that a framework's words make by themselves, as its documentation has it.

By framework, and by a word's spelling in its table: `wider`, where of two tensors of two types both
become the wider one; and the real type that whole numbers become. A program that is to be bold
leaves these to the framework.
"""

from __future__ import annotations

from collections.abc import Mapping

from irlang.dtypes import DTYPES
from irlang.lower.value import Value

WIDER = "wider"


def _rows(words: str, *made: str) -> dict[str, frozenset[str]]:
    return dict.fromkeys((word.strip() for word in words.split(";")), frozenset(made))


# mx.np.add and its like: "automatic type promotion", and f32 of the quotient of whole numbers;
# mx.np.mean, mx.np.var: f32 of whole numbers, mx.np.std: f64. Of functions that NumPy has, whose
# documentation says nothing of types, what NumPy gives; those that take reals alone say so.
_MXNET = {
    **_rows("a + b; a - b; a * b", WIDER),
    **_rows("a / b", WIDER, "f32"),
    **_rows("mx.np.mean; mx.np.var", "f32"),
    **_rows("mx.np.std", "f64"),
    **_rows(
        "mx.np.exp; mx.np.expm1; mx.np.log; mx.np.log1p; mx.np.log2; mx.np.tan; mx.np.tanh; "
        "mx.np.arccos; mx.np.arctan; mx.np.arcsinh; mx.np.arccosh; mx.np.arctanh; mx.np.cbrt; "
        "mx.np.radians; mx.np.degrees",
        "f32",
    ),
}  # fmt: skip
# PyTorch, tensor attributes: of two tensors of categories the higher one, and of one the wider;
# and the usual real type of what functions of reals are given.
_TORCH = {
    **_rows("a + b; a - b; a * b; torch.maximum; torch.minimum; torch.pow", WIDER),
    **_rows("torch.div", WIDER, "f32"),
    **_rows(
        "torch.rsqrt; torch.sqrt; torch.exp; torch.expm1; torch.log; torch.log1p; torch.sin; "
        "torch.cos; torch.tan; torch.asin; torch.acos; torch.atan; torch.sinh; torch.cosh; "
        "torch.asinh; torch.acosh; torch.atanh; torch.erf; torch.sigmoid; torch.tanh; torch.log2; "
        "torch.log10; torch.erfinv; torch.lgamma; torch.digamma; torch.rad2deg; torch.deg2rad; "
        "torch.reciprocal",
        "f32",
    ),
}  # fmt: skip
# JAX, type promotion semantics; of whole numbers alone what comes hangs on their bits.
_JAX = _rows("a + b; a - b; a * b; jnp.divide; jnp.maximum; jnp.minimum; jnp.power", WIDER)
# Keras promotes as JAX does, whatever its backend.
_KERAS = _rows(
    "ops.add, a + b; ops.subtract, a - b; ops.multiply, a * b; ops.divide, a / b; ops.maximum; "
    "ops.minimum; ops.power",
    WIDER,
)
PROMOTES: Mapping[str, Mapping[str, frozenset[str]]] = {
    "MXNet": _MXNET, "PyTorch": _TORCH, "JAX": _JAX, "Keras": _KERAS,
}  # fmt: skip


def unconverted(
    framework: str, spelling: str, values: Mapping[str, Value], before: Mapping[str, Value]
) -> dict[str, Value] | None:
    """The operands of a word, those as they were before a conversion that it makes by itself; None
    where there is none. before: what conversions were made of, by their texts.
    """
    made = PROMOTES.get(framework, {}).get(spelling, frozenset())
    if not made or not any(value.text in before for value in values.values()):
        return None
    kept = {name: before.get(value.text) for name, value in values.items()}
    types = {value.dtype for value in values.values()}
    whole = {n: v for n, v in kept.items() if v is not None and DTYPES[v.dtype].kind == "int"}
    if len(whole) == len(values) and types <= made:
        return whole
    if WIDER not in made or len(values) != 2 or len(types) != 1:
        return None
    if any(value.literal is not None or not value.rank for value in values.values()):
        return None  # numbers give way to tensors
    (dtype,) = types
    for name, value in kept.items():
        if value is not None and _is_narrower(value.dtype, dtype):
            return {**values, name: value}
    return None


def _is_narrower(dtype: str, other: str) -> bool:
    """Whether the other type is what comes of both."""
    narrow, wide = DTYPES[dtype], DTYPES[other]
    if wide.kind != "real" or narrow.kind == "bool":
        return False
    return narrow.kind == "int" or narrow.bits < wide.bits
