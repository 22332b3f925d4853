"""How TensorFlow spells the functions of elements that NumPy and SciPy have."""

from __future__ import annotations

from dataclasses import replace

from irlang.lower.call import Call, Native
from irlang.lower.spelling import invoke, of_wide, plain
from irlang.lower.tf_builder import TensorFlowBuilder
from irlang.lower.value import Value

Tf = Call[TensorFlowBuilder]

_PLAIN = "atan2 divide_no_nan multiply_no_nan xlogy xlog1py xdivy"
# Without kernels of 16 bits, or of one of the two types.
_OF_WIDE = "lgamma digamma erfinv erfcinv ndtri"
_SPECIAL = "expint spence dawsn"


def _bessel(module: str, kind: str) -> Native:
    """Of two orders, the modified ones scaled or not; there are no kernels of 16 bits."""

    def rule(call: Tf) -> Value | None:
        if call.out.dtype not in ("f32", "f64"):
            return None
        order = {"zero": 0, "one": 1}[call["order"]]
        scaled = kind in "ik" and call["scaled"]
        function = f"{module}.bessel_{kind}{order}{'e' if scaled else ''}"
        return call.value(invoke(function, call.input("x")))

    return Native(f"{module}.bessel_{kind}0, …", rule)


def _fresnel(call: Tf) -> Value:
    function = {"sine": "fresnel_sin", "cosine": "fresnel_cos"}[call["of"]]
    return call.value(invoke(f"tf.math.special.{function}", call.input("x")))


def _polygamma(call: Tf) -> Value:
    """Its order is a tensor, too."""
    order = f"tf.constant({float(call['n'])}, {call.build.dtype(call.out.dtype)})"
    return call.value(invoke("tf.math.polygamma", order, call.input("x")))


NUMERIC: dict[str, Native] = {
    **{name: plain(f"tf.math.{name}") for name in _PLAIN.split()},
    **{name: of_wide(plain(f"tf.math.{name}")) for name in _OF_WIDE.split()},
    **{name: of_wide(plain(f"tf.math.special.{name}")) for name in _SPECIAL.split()},
    "gammainc": replace(of_wide(plain("tf.math.igamma")), constant=("a",)),
    "gammaincc": replace(of_wide(plain("tf.math.igammac")), constant=("a",)),
    "log_beta": of_wide(plain("tf.math.lbeta")),
    "zeta": replace(of_wide(plain("tf.math.zeta")), constant=("s",)),
    "fresnel": of_wide(Native("tf.math.special.fresnel_sin, fresnel_cos", _fresnel)),
    "bessel_j": _bessel("tf.math.special", "j"),
    "bessel_y": _bessel("tf.math.special", "y"),
    "polygamma": of_wide(Native("tf.math.polygamma", _polygamma)),
    "bessel_i": _bessel("tf.math.special", "i"),
    "bessel_k": _bessel("tf.math.special", "k"),
}
