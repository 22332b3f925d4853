"""How TensorFlow spells what it has in the words of NumPy alone (`tf.experimental.numpy`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from irlang.lower.call import Call, Native
from irlang.lower.numpy_words import average, geomspace, inner, logspace
from irlang.lower.spelling import (
    differences,
    functions,
    log_add_exp,
    of_vectors,
    over_axes,
    plain,
    turned,
)
from irlang.lower.tf_builder import TensorFlowBuilder
from irlang.lower.value import Value

Tf = Call[TensorFlowBuilder]
_MODULE = "tf.experimental.numpy"
_SINCE = (2, 5)  # before, results were arrays of its own

_PLAIN = "hypot heaviside signbit exp2 log2 log10 cbrt sinc deg2rad rad2deg gcd lcm kron trunc=fix"


def _own(row: Native) -> Native:
    """A row for the types that NumPy has."""

    def rule(call: Tf) -> Value | Sequence[Value] | None:
        types = {call.out.dtype, *(value.dtype for value in call.values.values())}
        return None if "bf16" in types else row.rule(call)

    return replace(row, rule=rule, since=_SINCE)


NUMPY: dict[str, Native] = {
    **{name: _own(plain(f"{_MODULE}.{function}")) for name, function in functions(_PLAIN)},
    "log_add_exp": _own(log_add_exp(_MODULE)),
    "isclose": _own(plain(f"{_MODULE}.isclose", rtol="rtol", atol="atol", equal_nan="equal_nan")),
    "vander": _own(plain(f"{_MODULE}.vander", N="columns", increasing="increasing")),
    "outer": _own(of_vectors(f"{_MODULE}.outer")),
    "rot90": _own(turned(f"{_MODULE}.rot90")),
    "differences": _own(differences(f"{_MODULE}.diff")),
    "reduce_nansum": _own(over_axes(f"{_MODULE}.nansum")),
    "reduce_nanmean": _own(over_axes(f"{_MODULE}.nanmean")),
    "reduce_nanprod": _own(over_axes(f"{_MODULE}.nanprod")),
    "weighted_average": _own(average(f"{_MODULE}.average")),
    "geomspace": _own(geomspace(f"{_MODULE}.geomspace")),
    "inner": _own(inner(f"{_MODULE}.inner")),
    "reduce_ptp": _own(over_axes(f"{_MODULE}.ptp")),
    # Beside NumPy 2 it gives f64 where the ends are plain numbers, whatever the type that is said:
    # calls that read it are refused. So they are numbers of the type; plain ones have their turns.
    "logspace": replace(
        _own(logspace(f"{_MODULE}.logspace", typed="tf.constant")),
        others=(_own(logspace(f"{_MODULE}.logspace")),),
    ),
}
