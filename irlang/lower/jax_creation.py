"""How JAX spells tensors that are made of numbers alone."""

from __future__ import annotations

from irlang.dtypes import DTYPES
from irlang.lower.call import Call, Native
from irlang.lower.jax_builder import JaxBuilder
from irlang.lower.legalise import is_whole
from irlang.lower.numpy_words import geomspace, logspace, window
from irlang.lower.spelling import invoke
from irlang.lower.value import Value

Jax = Call[JaxBuilder]


def _type(call: Jax) -> str:
    return call.build.dtype(call.out.dtype)


def _eye(call: Jax) -> Value:
    sizes = call["rows"], call["columns"]
    return call.value(invoke("jnp.eye", *sizes, k=call["k"] or None, dtype=_type(call)))


def _full(call: Jax) -> Value | None:
    if DTYPES[call.out.dtype].kind != "real":
        return None
    return call.value(
        invoke("jnp.full", tuple(call["shape"]), float(call["value"]), dtype=_type(call))
    )


def _arange(call: Jax) -> Value | None:
    """Of whole numbers, of which it is sure how many there are."""
    ends = [call[name] for name in ("start", "stop", "step")]
    if not all(map(is_whole, ends)):
        return None
    return call.value(invoke("jnp.arange", *map(int, ends), dtype=_type(call)))


def _linspace(call: Jax) -> Value:
    ends = float(call["start"]), float(call["stop"])
    return call.value(invoke("jnp.linspace", *ends, call["count"], dtype=_type(call)))


_WINDOWS = {
    (0.5, 0.5): "jnp.hanning",
    (0.54, 0.46): "jnp.hamming",
    (0.42, 0.5, 0.08): "jnp.blackman",
}


def _cosine_window(call: Jax) -> Value | None:
    """Windows that end where they begin, in the type that is usual with 64 bits."""
    function = _WINDOWS.get(tuple(map(float, call["terms"])))
    if function is None or call["periodic"] or call.out.dtype != "f64":
        return None
    return call.value(invoke(function, call["size"]))


CREATION: dict[str, Native] = {
    "cosine_window": Native("jnp.hanning, jnp.hamming, jnp.blackman", _cosine_window),
    "eye": Native("jnp.eye", _eye),
    "full": Native("jnp.full", _full),
    "arange": Native("jnp.arange", _arange),
    "linspace": Native("jnp.linspace", _linspace),
    "logspace": logspace("jnp.logspace"),
    "geomspace": geomspace("jnp.geomspace"),
    "bartlett_window": window("jnp.bartlett", "f64"),
    "kaiser_window": window("jnp.kaiser", "f64", beta="beta"),
}
