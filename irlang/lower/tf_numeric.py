"""How TensorFlow spells the functions of elements that NumPy and SciPy have."""

from __future__ import annotations

from irlang.lower.call import Call, Native
from irlang.lower.spelling import invoke, plain
from irlang.lower.tf_builder import TensorFlowBuilder
from irlang.lower.value import Value

Tf = Call[TensorFlowBuilder]

_PLAIN = "atan2 divide_no_nan multiply_no_nan xlogy xlog1py"


def _bessel(module: str, kind: str) -> Native:
    """Of two orders, scaled or not; there are no kernels of 16 bits."""

    def rule(call: Tf) -> Value | None:
        if call.out.dtype not in ("f32", "f64"):
            return None
        order = {"zero": 0, "one": 1}[call["order"]]
        function = f"{module}.bessel_{kind}{order}{'e' if call['scaled'] else ''}"
        return call.value(invoke(function, call.input("x")))

    return Native(f"{module}.bessel_{kind}0, …", rule)


NUMERIC: dict[str, Native] = {
    **{name: plain(f"tf.math.{name}") for name in _PLAIN.split()},
    "bessel_i": _bessel("tf.math.special", "i"),
    "bessel_k": _bessel("tf.math.special", "k"),
}
