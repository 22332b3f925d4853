"""How TensorFlow spells tensors that are made of numbers alone."""

from __future__ import annotations

from irlang.dtypes import DTYPES
from irlang.lower.call import Call, Native
from irlang.lower.legalise import is_whole
from irlang.lower.numpy_words import window
from irlang.lower.spelling import invoke
from irlang.lower.tf_builder import TensorFlowBuilder
from irlang.lower.value import Value

Tf = Call[TensorFlowBuilder]


def _type(call: Tf) -> str:
    return call.build.dtype(call.out.dtype)


def _eye(call: Tf) -> Value | None:
    if call["k"]:
        return None
    return call.value(invoke("tf.eye", call["rows"], call["columns"], dtype=_type(call)))


def _full(call: Tf) -> Value | None:
    if DTYPES[call.out.dtype].kind != "real":
        return None
    number = invoke("tf.constant", float(call["value"]), _type(call))
    return call.value(invoke("tf.fill", str(list(call["shape"])), number))


def _arange(call: Tf) -> Value | None:
    """Of whole numbers, of which it is sure how many there are, in types with kernels."""
    ends = [call[name] for name in ("start", "stop", "step")]
    known = call.out.dtype in ("f32", "f64", "i32", "i64")
    if not known or not all(map(is_whole, ends)) or call.out.shape == (0,):
        return None
    exact = float if DTYPES[call.out.dtype].kind == "real" else int
    return call.value(invoke("tf.range", *map(exact, ends), dtype=_type(call)))


def _linspace(call: Tf) -> Value | None:
    """In the types that there are kernels for."""
    if call.out.dtype not in ("f32", "f64"):
        return None
    ends = (invoke("tf.constant", float(call[name]), _type(call)) for name in ("start", "stop"))
    return call.value(invoke("tf.linspace", *ends, call["count"]))


_WINDOWS: dict[tuple[float, ...], str] = {
    (0.5, 0.5): "tf.signal.hann_window",
    (0.54, 0.46): "tf.signal.hamming_window",
}


def _cosine_window(call: Tf) -> Value | None:
    function = _WINDOWS.get(tuple(map(float, call["terms"])))
    if function is None or DTYPES[call.out.dtype].kind != "real":
        return None
    periodic = None if call["periodic"] else False
    return call.value(invoke(function, call["size"], periodic=periodic, dtype=_type(call)))


CREATION: dict[str, Native] = {
    "cosine_window": Native("tf.signal.hann_window, tf.signal.hamming_window", _cosine_window),
    "eye": Native("tf.eye", _eye),
    "full": Native("tf.fill", _full),
    "arange": Native("tf.range", _arange),
    "linspace": Native("tf.linspace", _linspace),
    "kaiser_window": window("tf.signal.kaiser_window", beta="beta"),
}
