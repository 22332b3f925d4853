"""How PyTorch spells the functions of elements that NumPy has, too."""

from __future__ import annotations

import math
from dataclasses import replace

from irlang.lower.call import Call, Native
from irlang.lower.spelling import invoke, plain
from irlang.lower.torch_builder import TorchBuilder
from irlang.lower.value import Value

Torch = Call[TorchBuilder]


def _logaddexp(call: Torch) -> Value:
    function = {"e": "torch.logaddexp", "two": "torch.logaddexp2"}[call["base"]]
    return call.value(invoke(function, *map(call.build.full, call.values.values())))


def _nan_to_num(call: Torch) -> Value:
    ends = {key: call[key] if math.isfinite(call[key]) else None for key in ("posinf", "neginf")}
    return call.value(invoke("torch.nan_to_num", call.input("x"), nan=call["nan"], **ends))


_PLAIN = (
    "atan2 hypot fmax fmin copysign ldexp xlogy xlog1py=special.xlog1py lerp signbit frac exp2 "
    "log2 log10 sinc entr=special.entr deg2rad rad2deg"
)

NUMERIC: dict[str, Native] = {
    **{
        name: plain(f"torch.{function or name}")
        for name, _, function in (item.partition("=") for item in _PLAIN.split())
    },
    "log_add_exp": Native("torch.logaddexp, torch.logaddexp2", _logaddexp),
    "heaviside": replace(plain("torch.heaviside"), constant=("x", "at_zero")),
    "isclose": plain("torch.isclose", rtol="rtol", atol="atol", equal_nan="equal_nan"),
    "addcmul": plain("torch.addcmul", value="value"),
    "addcdiv": plain("torch.addcdiv", value="value"),
    "nan_to_num": Native("torch.nan_to_num", _nan_to_num),
    "logit": plain("torch.logit", eps="eps"),
}
