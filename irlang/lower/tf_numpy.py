"""How TensorFlow spells what it has in the words of NumPy alone (`tf.experimental.numpy`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from irlang.lower.call import Call, Native
from irlang.lower.spelling import invoke, over_axes, plain
from irlang.lower.tf_builder import TensorFlowBuilder
from irlang.lower.value import Value

Tf = Call[TensorFlowBuilder]
_MODULE = "tf.experimental.numpy"
_SINCE = (2, 5)  # before, results were arrays of its own

_PLAIN = "hypot heaviside signbit exp2 log2 log10 cbrt sinc deg2rad rad2deg gcd lcm kron trunc=fix"


def _log_add_exp(call: Tf) -> Value:
    function = {"e": "logaddexp", "two": "logaddexp2"}[call["base"]]
    return call.value(invoke(f"{_MODULE}.{function}", *call.values.values()))


def _outer(call: Tf) -> Value | None:
    a, b = call.input("a"), call.input("b")
    return call.value(invoke(f"{_MODULE}.outer", a, b)) if a.rank == b.rank == 1 else None


def _rot90(call: Tf) -> Value:
    x = call.input("x")
    axes = call.axes_said("axes", x.rank)
    return call.value(invoke(f"{_MODULE}.rot90", x, k=call["k"], axes=axes))


def _diff(call: Tf) -> Value:
    x = call.input("x")
    axis = call.axis_said("axis", x.rank)
    return call.value(invoke(f"{_MODULE}.diff", x, n=call["n"], axis=axis))


def _own(row: Native) -> Native:
    """A row for the types that NumPy has."""

    def rule(call: Tf) -> Value | Sequence[Value] | None:
        given = (value.dtype for value in call.values.values())
        return None if "bf16" in given else row.rule(call)

    return replace(row, rule=rule, since=_SINCE)


NUMPY: dict[str, Native] = {
    **{
        name: _own(plain(f"{_MODULE}.{function or name}"))
        for name, _, function in (item.partition("=") for item in _PLAIN.split())
    },
    "log_add_exp": _own(Native(f"{_MODULE}.logaddexp, logaddexp2", _log_add_exp)),
    "isclose": _own(plain(f"{_MODULE}.isclose", rtol="rtol", atol="atol", equal_nan="equal_nan")),
    "vander": _own(plain(f"{_MODULE}.vander", N="columns", increasing="increasing")),
    "outer": _own(Native(f"{_MODULE}.outer", _outer)),
    "rot90": _own(Native(f"{_MODULE}.rot90", _rot90)),
    "differences": _own(Native(f"{_MODULE}.diff", _diff)),
    "reduce_nansum": _own(over_axes(f"{_MODULE}.nansum")),
    "reduce_nanmean": _own(over_axes(f"{_MODULE}.nanmean")),
}
