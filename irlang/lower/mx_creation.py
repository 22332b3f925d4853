"""How MXNet spells tensors that are made of numbers alone."""

from __future__ import annotations

from irlang.lower.call import Call, Native
from irlang.lower.legalise import is_whole
from irlang.lower.mx_builder import MxBuilder
from irlang.lower.numpy_words import logspace
from irlang.lower.spelling import invoke
from irlang.lower.value import Value

Mx = Call[MxBuilder]


def _eye(call: Mx) -> Value | None:
    if call.out.kind == "bool":
        return None
    sizes = call["rows"], call["columns"]
    dtype = call.build.dtype(call.out.dtype)
    return call.value(invoke("mx.np.eye", *sizes, k=call["k"] or None, dtype=dtype))


def _full(call: Mx) -> Value | None:
    if call.out.kind != "real":
        return None
    dtype = call.build.dtype(call.out.dtype)
    return call.value(invoke("mx.np.full", tuple(call["shape"]), float(call["value"]), dtype=dtype))


def _arange(call: Mx) -> Value | None:
    """Of whole numbers, of which it is sure how many there are."""
    ends = [call[name] for name in ("start", "stop", "step")]
    if not all(map(is_whole, ends)):
        return None
    dtype = call.build.dtype(call.out.dtype)
    return call.value(invoke("mx.np.arange", *map(int, ends), dtype=dtype))


def _linspace(call: Mx) -> Value:
    ends = float(call["start"]), float(call["stop"])
    dtype = call.build.dtype(call.out.dtype)
    return call.value(invoke("mx.np.linspace", *ends, call["count"], dtype=dtype))


_WINDOWS = {
    (0.5, 0.5): "mx.np.hanning", (0.54, 0.46): "mx.np.hamming",
    (0.42, 0.5, 0.08): "mx.np.blackman",
}  # fmt: skip


def _cosine_window(call: Mx) -> Value | None:
    """Windows that end where they begin."""
    function = _WINDOWS.get(tuple(map(float, call["terms"])))
    if function is None or call["periodic"] or call.out.dtype not in ("f32", "f64"):
        return None
    return call.value(invoke(function, call["size"], dtype=call.build.dtype(call.out.dtype)))


CREATION: dict[str, Native] = {
    "eye": Native("mx.np.eye", _eye),
    "full": Native("mx.np.full", _full),
    "arange": Native("mx.np.arange", _arange),
    "linspace": Native("mx.np.linspace", _linspace),
    "logspace": logspace("mx.np.logspace"),
    "cosine_window": Native("mx.np.hanning, hamming, blackman", _cosine_window),
}
