"""How JAX spells the functions of elements that NumPy and SciPy have."""

from __future__ import annotations

import math
from dataclasses import replace

from irlang.dtypes import DTYPES
from irlang.lower.call import Call, Native
from irlang.lower.jax_builder import JaxBuilder
from irlang.lower.spelling import default, functions, invoke, log_add_exp, plain
from irlang.lower.value import Value

Jax = Call[JaxBuilder]


def _of_wide(row: Native) -> Native:
    """A function that is not there in 16 bits."""
    return Native(
        row.spelling, lambda call: row.rule(call) if DTYPES[call.out.dtype].bits > 16 else None
    )


def _log_beta(call: Jax) -> Value | None:
    """Of two numbers."""
    x = call.input("x")
    pair = [f"{call.text('x')}[..., {k}]" for k in range(2)]
    return call.value(invoke("jax.scipy.special.betaln", *pair)) if x.shape[-1] == 2 else None


def _nan_to_num(call: Jax) -> Value:
    ends = {key: call[key] if math.isfinite(call[key]) else None for key in ("posinf", "neginf")}
    return call.value(invoke("jnp.nan_to_num", call.input("x"), nan=call["nan"], **ends))


def _bessel(call: Jax) -> Value | None:
    if call.out.dtype not in ("f32", "f64"):
        return None
    order = {"zero": 0, "one": 1}[call["order"]]
    function = f"jax.scipy.special.i{order}{'e' if call['scaled'] else ''}"
    return call.value(invoke(function, call.input("x")))


def _fresnel(call: Jax) -> Value:
    place = {"sine": 0, "cosine": 1}[call["of"]]
    return call.value(f"{invoke('jax.scipy.special.fresnel', call.input('x'))}[{place}]")


def _polygamma(call: Jax) -> Value:
    return call.value(invoke("jax.scipy.special.polygamma", call["n"], call.input("x")))


_PLAIN = (
    "atan2=arctan2 hypot fmax fmin heaviside copysign ldexp signbit exp2 log2 log10 cbrt sinc "
    "deg2rad rad2deg"
)

NUMERIC: dict[str, Native] = {
    **{name: plain(f"jnp.{function}") for name, function in functions(_PLAIN)},
    "gcd": plain("jnp.gcd"),
    "round_to": plain("jnp.round", decimals="decimals"),
    "lcm": plain("jnp.lcm"),
    "polyval": plain("jnp.polyval"),
    "log_add_exp": log_add_exp("jnp"),
    "isin": plain("jnp.isin", invert="invert"),
    "isclose": plain("jnp.isclose", rtol="rtol", atol="atol", equal_nan="equal_nan"),
    "nan_to_num": Native("jnp.nan_to_num", _nan_to_num),
    "bessel_i": Native("jax.scipy.special.i0, i0e, i1, i1e", _bessel),
    **{
        name: _of_wide(plain(f"jax.scipy.special.{function}"))
        for name, function in functions("expint=expi exp1 spence dawsn")
    },
    **{
        name: replace(_of_wide(plain(f"jax.scipy.special.{name}")), constant=("a",))
        for name in ("gammainc", "gammaincc")
    },
    "zeta": replace(_of_wide(plain("jax.scipy.special.zeta")), constant=("s",)),
    "fresnel": _of_wide(Native("jax.scipy.special.fresnel", _fresnel)),
    "multigammaln": _of_wide(plain("jax.scipy.special.multigammaln", d="d")),
    "polygamma": _of_wide(Native("jax.scipy.special.polygamma", _polygamma)),
    "log_beta": _of_wide(Native("jax.scipy.special.betaln", _log_beta)),
    "xlogy": plain("jax.scipy.special.xlogy"),
    "xlog1py": plain("jax.scipy.special.xlog1py"),
    "entr": plain("jax.scipy.special.entr"),
    "logit": default("jax.scipy.special.logit", eps=-1),
}
