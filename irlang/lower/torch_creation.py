"""How PyTorch spells tensors that are made of numbers alone."""

from __future__ import annotations

from irlang.dtypes import DTYPES
from irlang.lower.call import Call, Native
from irlang.lower.legalise import is_whole
from irlang.lower.spelling import invoke
from irlang.lower.torch_builder import TorchBuilder
from irlang.lower.value import Value

Torch = Call[TorchBuilder]


def _type(call: Torch) -> str:
    return call.build.dtype(call.out.dtype)


def _eye(call: Torch) -> Value | None:
    if call["k"]:
        return None
    return call.value(invoke("torch.eye", call["rows"], call["columns"], dtype=_type(call)))


def _full(call: Torch) -> Value | None:
    if DTYPES[call.out.dtype].kind != "real":
        return None
    return call.value(
        invoke("torch.full", tuple(call["shape"]), float(call["value"]), dtype=_type(call))
    )


def _arange(call: Torch) -> Value | None:
    """Of whole numbers, of which it is sure how many there are."""
    ends = [call[name] for name in ("start", "stop", "step")]
    if not all(map(is_whole, ends)) or call.out.shape == (0,):
        return None
    return call.value(invoke("torch.arange", *map(int, ends), dtype=_type(call)))


def _linspace(call: Torch) -> Value:
    ends = float(call["start"]), float(call["stop"])
    return call.value(invoke("torch.linspace", *ends, call["count"], dtype=_type(call)))


def _logspace(call: Torch) -> Value:
    ends = float(call["start"]), float(call["stop"])
    options = {"base": float(call["base"]), "dtype": _type(call)}
    return call.value(invoke("torch.logspace", *ends, call["count"], **options))


_WINDOWS = {
    (0.5, 0.5): "torch.hann_window",
    (0.54, 0.46): "torch.hamming_window",
    (0.42, 0.5, 0.08): "torch.blackman_window",
}


def _cosine_window(call: Torch) -> Value | None:
    function = _WINDOWS.get(tuple(map(float, call["terms"])))
    if function is None:
        return None
    periodic = None if call["periodic"] else False
    return call.value(invoke(function, call["size"], periodic=periodic, dtype=_type(call)))


def _bartlett(call: Torch) -> Value:
    options = {"periodic": call["periodic"], "dtype": _type(call)}
    return call.value(invoke("torch.bartlett_window", call["size"], **options))


def _kaiser(call: Torch) -> Value:
    options = {"periodic": call["periodic"], "beta": float(call["beta"]), "dtype": _type(call)}
    return call.value(invoke("torch.kaiser_window", call["size"], **options))


CREATION: dict[str, Native] = {
    "cosine_window": Native(
        "torch.hann_window, torch.hamming_window, torch.blackman_window", _cosine_window
    ),
    "eye": Native("torch.eye", _eye),
    "full": Native("torch.full", _full),
    "arange": Native("torch.arange", _arange),
    "linspace": Native("torch.linspace", _linspace),
    "logspace": Native("torch.logspace", _logspace),
    "bartlett_window": Native("torch.bartlett_window", _bartlett),
    "kaiser_window": Native("torch.kaiser_window", _kaiser),
}
