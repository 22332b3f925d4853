"""How PyTorch spells the functions of elements that NumPy has, too."""

from __future__ import annotations

import math
from dataclasses import replace

from irlang.lower.call import Call, Native
from irlang.lower.spelling import functions, invoke, log_add_exp, of_wide, plain
from irlang.lower.torch_builder import TorchBuilder
from irlang.lower.value import Value

Torch = Call[TorchBuilder]


def _nan_to_num(call: Torch) -> Value:
    ends = {key: call[key] if math.isfinite(call[key]) else None for key in ("posinf", "neginf")}
    return call.value(invoke("torch.nan_to_num", call.input("x"), nan=call["nan"], **ends))


_BESSEL = {("zero", False): "0", ("zero", True): "0e", ("one", False): "1", ("one", True): "1e"}


def _bessel_i(call: Torch) -> Value:
    function = f"torch.special.i{_BESSEL[call['order'], call['scaled']]}"
    return call.value(invoke(function, call.input("x")))


def _bessel_k(call: Torch) -> Value | None:
    """Its results are constants to autograd; there are no kernels of 16 bits."""
    if call.out.dtype not in ("f32", "f64"):
        return None
    scaled = "scaled_" if call["scaled"] else ""
    function = f"torch.special.{scaled}modified_bessel_k{_BESSEL[call['order'], False]}"
    return call.value(invoke(function, call.input("x")))


def _bessel(kind: str) -> Native:
    """The first kind or the second: `j` or `y`."""

    def rule(call: Torch) -> Value | None:
        if call.out.dtype not in ("f32", "f64"):
            return None
        function = f"torch.special.bessel_{kind}{_BESSEL[call['order'], False]}"
        return call.value(invoke(function, call.input("x")))

    return Native(f"torch.special.bessel_{kind}0, bessel_{kind}1", rule, constant=("x",))


def _polynomial(call: Torch) -> Value | None:
    """Its results are constants to autograd; there are no kernels of 16 bits."""
    if call.out.dtype not in ("f32", "f64"):
        return None
    function = ("shifted_" if call["shifted"] else "") + call["family"].replace("_", "_polynomial_")
    return call.value(invoke(f"torch.special.{function}", call.input("x"), call["n"]))


_PLAIN = (
    "atan2 hypot fmax fmin copysign ldexp xlogy xlog1py=special.xlog1py lerp signbit frac exp2 "
    "log2 log10 sinc entr=special.entr deg2rad rad2deg"
)


def _polygamma(call: Torch) -> Value:
    return call.value(invoke("torch.polygamma", call["n"], call.input("x")))


NUMERIC: dict[str, Native] = {
    **{name: plain(f"torch.{function}") for name, function in functions(_PLAIN)},
    "gcd": plain("torch.gcd"),
    "round_to": plain("torch.round", decimals="decimals"),
    "lcm": plain("torch.lcm"),
    "log_add_exp": log_add_exp("torch"),
    "bessel_i": Native("torch.special.i0, i0e, i1, i1e", _bessel_i),
    "bessel_k": Native("torch.special.modified_bessel_k0, …", _bessel_k, constant=("x",)),
    "orthogonal_polynomial": Native(
        "torch.special.chebyshev_polynomial_t, …", _polynomial, constant=("x",)
    ),
    **{
        name: replace(of_wide(plain(f"torch.special.{name}")), constant=("a",))
        for name in ("gammainc", "gammaincc")
    },
    "zeta": replace(of_wide(plain("torch.special.zeta")), constant=("s",)),
    "bessel_j": _bessel("j"),
    "bessel_y": _bessel("y"),
    "heaviside": replace(plain("torch.heaviside"), constant=("x", "at_zero")),
    "isin": plain("torch.isin", invert="invert"),
    "isclose": plain("torch.isclose", rtol="rtol", atol="atol", equal_nan="equal_nan"),
    "addcmul": plain("torch.addcmul", value="value"),
    "addcdiv": plain("torch.addcdiv", value="value"),
    "nan_to_num": Native("torch.nan_to_num", _nan_to_num),
    "logit": plain("torch.logit", eps="eps"),
    "multigammaln": of_wide(plain("torch.mvlgamma", p="d")),
    "polygamma": of_wide(Native("torch.polygamma", _polygamma)),
    **{name: of_wide(plain(f"torch.special.{name}")) for name in ("erfcx", "ndtri", "log_ndtr")},
}
