"""How Keras 3 spells tensors that are made of numbers alone: `keras.ops`."""

from __future__ import annotations

from irlang.lower.call import Native
from irlang.lower.keras_call import KERAS_3, Keras
from irlang.lower.legalise import is_whole
from irlang.lower.numpy_words import geomspace, logspace, window
from irlang.lower.spelling import invoke
from irlang.lower.value import Value


def _eye(call: Keras) -> Value | None:
    if call.out.kind != "real":
        return None
    sizes, dtype = (call["rows"], call["columns"]), call.build.dtype(call.out.dtype)
    return call.value(invoke("ops.eye", *sizes, k=call["k"], dtype=dtype))


def _full(call: Keras) -> Value | None:
    if call.out.kind != "real":
        return None
    dtype = call.build.dtype(call.out.dtype)
    return call.value(invoke("ops.full", tuple(call["shape"]), float(call["value"]), dtype=dtype))


def _arange(call: Keras) -> Value | None:
    """Of whole numbers, of which it is sure how many there are."""
    ends = [call[name] for name in ("start", "stop", "step")]
    if not all(map(is_whole, ends)) or call.out.kind == "bool":
        return None
    dtype = call.build.dtype(call.out.dtype)
    return call.value(invoke("ops.arange", *map(int, ends), dtype=dtype))


def _linspace(call: Keras) -> Value | None:
    if call["count"] < 1:
        return None
    ends, dtype = (float(call["start"]), float(call["stop"])), call.build.dtype(call.out.dtype)
    return call.value(invoke("ops.linspace", *ends, num=call["count"], dtype=dtype))


_HANDED = {
    (0.5, 0.5): "ops.hanning",
    (0.54, 0.46): "ops.hamming",
    (0.42, 0.5, 0.08): "ops.blackman",
}


def _cosine_window(call: Keras) -> Value | None:
    """Windows that end where they begin, in the type that is usual."""
    function = _HANDED.get(tuple(map(float, call["terms"])))
    if function is None or call["periodic"] or call.out.dtype != "f32":
        return None
    return call.value(invoke(function, call["size"]))


CREATION: dict[str, Native] = {
    "arange": Native("ops.arange", _arange, since=KERAS_3),
    "cosine_window": Native(
        "ops.hanning, ops.hamming, ops.blackman", _cosine_window, since=KERAS_3
    ),
    "eye": Native("ops.eye", _eye, since=KERAS_3),
    "full": Native("ops.full", _full, since=KERAS_3),
    "linspace": Native("ops.linspace", _linspace, since=KERAS_3),
    "logspace": logspace("ops.logspace", KERAS_3),
    "geomspace": geomspace("ops.geomspace", (3, 15)),
    "bartlett_window": window("ops.bartlett", "f32", (3, 11)),
    "kaiser_window": window("ops.kaiser", "f32", (3, 11), beta="beta"),
}
