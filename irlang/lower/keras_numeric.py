"""How Keras 3 spells the functions of elements that NumPy has: `keras.ops`."""

from __future__ import annotations

import math

from irlang.lower.call import Native
from irlang.lower.keras_call import KERAS_3, Keras, three
from irlang.lower.spelling import functions, invoke, log_add_exp, of_wide, plain
from irlang.lower.value import Value


def _nan_to_num(call: Keras) -> Value:
    ends = {key: call[key] if math.isfinite(call[key]) else None for key in ("posinf", "neginf")}
    return call.value(invoke("ops.nan_to_num", call.input("x"), nan=call["nan"], **ends))


def _bessel_i(call: Keras) -> Value | None:
    if call["order"] != "zero" or call["scaled"]:
        return None
    return call.value(invoke("ops.i0", call.input("x")))


_PLAIN = (
    "atan2=arctan2 hypot fmax fmin heaviside ldexp signbit exp2 log2 log10 cbrt sinc deg2rad "
    "rad2deg divide_no_nan"
)

NUMERIC: dict[str, Native] = {
    **{name: three(plain(f"ops.{function}")) for name, function in functions(_PLAIN)},
    "erfinv": three(of_wide(plain("ops.erfinv"))),
    "bessel_i": three(of_wide(Native("ops.i0", _bessel_i))),
    "gcd": three(plain("ops.gcd")),
    "round_to": three(plain("ops.round", decimals="decimals")),
    "lcm": three(plain("ops.lcm")),
    "log_add_exp": three(log_add_exp("ops")),
    "isin": three(plain("ops.isin", invert="invert")),
    "isclose": three(plain("ops.isclose", rtol="rtol", atol="atol", equal_nan="equal_nan")),
    "nan_to_num": Native("ops.nan_to_num", _nan_to_num, since=KERAS_3),
}
