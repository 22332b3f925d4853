"""How TensorFlow spells operators on whole numbers of a range, whose ends are tensors beside them:
kernels of types that it keeps apart. They give their range, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from irlang.lower.call import Call, Native
from irlang.lower.channels import channels_first, channels_last
from irlang.lower.spelling import invoke
from irlang.lower.tf_builder import TensorFlowBuilder
from irlang.lower.tf_frames import PLANE, listed
from irlang.lower.tf_words import raw
from irlang.lower.value import Value

Tf = Call[TensorFlowBuilder]
_KEPT = {"u8": "quint8", "i32": "qint32"}


def _kept(call: Tf, name: str) -> str | None:
    """An input as TensorFlow keeps it apart from plain integers."""
    value = call.input(name)
    kind = _KEPT.get(value.dtype)
    return None if kind is None else f"tf.bitcast({value.text}, tf.{kind})"


def _given(call: Tf, text: str) -> list[Value]:
    """A result and the ends of its range; whole numbers as plain ones."""
    names = call.build.several(text, *call.node.outputs)
    found = []
    for name, info in zip(names, call.outputs, strict=True):
        back = f"tf.bitcast({name}, {call.build.dtype(info.dtype)})"
        found.append(Value(back if info.kind == "int" else name, info.shape, info.dtype))
    return found


def _row(kernel: str, rule: Callable[[Tf, str], Any]) -> Native:
    """A kernel that no compiler has, of types that others do not take."""
    return replace(raw(kernel, rule, eager=True), narrow=True)


def _ranged(kernel: str, inputs: dict[str, str], ends: dict[str, str], **options: str) -> Native:
    """A kernel that is given whole numbers and ends, each under a name of its own, and options."""

    def rule(call: Tf, kernel: str) -> list[Value] | None:
        kept = {key: _kept(call, name) for key, name in inputs.items()}
        own = {key: call.input(name) for key, name in ends.items()}
        if None in kept.values() or any(end.dtype != "f32" for end in own.values()):
            return None
        return _given(call, invoke(kernel, **kept, **own, **options))

    return _row(kernel, rule)


_ENDS = {"min_features": "low", "max_features": "high"}


def _relu(most: float) -> Native:
    kernel = "QuantizedRelu" if most == math.inf else "QuantizedRelu6"
    row = _ranged(kernel, {"features": "x"}, _ENDS)

    def rule(call: Tf) -> Value | Sequence[Value] | None:
        return row.rule(call) if call["most"] == most else None

    return replace(row, rule=rule)


def _pool(call: Tf, kernel: str) -> list[Value] | None:
    x, low, high = (call.input(name) for name in ("x", "low", "high"))
    if x.rank != PLANE + 2 or low.dtype != "f32":
        return None
    if kernel.endswith("AvgPool") != (call["kind"] == "mean"):
        return None
    given: dict[str, Any] = {
        "input": f"tf.bitcast({channels_last(call, x).text}, tf.quint8)",
        "min_input": low, "max_input": high, "ksize": listed((1, *call["window"], 1)),
        "strides": listed((1, *call["stride"], 1)), "padding": f'"{call["pad"].upper()}"',
    }  # fmt: skip
    names = call.build.several(invoke(kernel, **given), *call.node.outputs)
    n, c, *space = call.out.shape
    inner = Value(f"tf.bitcast({names[0]}, tf.uint8)", (n, *space, c), "u8")
    ends = [Value(name, (), low.dtype) for name in names[1:]]
    return [channels_first(call, inner), *ends]


def _reshape(call: Tf, kernel: str) -> list[Value] | None:
    kept, low = _kept(call, "x"), call.input("low")
    if kept is None or low.dtype != "f32":
        return None
    shape = f"tf.constant({listed(call['shape'])}, tf.int32)"
    given = {"tensor": kept, "shape": shape, "input_min": low, "input_max": call.input("high")}
    return _given(call, invoke(kernel, **given))


def _range(call: Tf, kernel: str) -> list[Value] | None:
    low = call.input("low")
    if low.dtype != "f32":
        return None
    given = {"input_min": low, "input_max": call.input("high")}
    names = call.build.several(invoke(kernel, input=_kept(call, "x"), **given), *call.node.outputs)
    return [Value(name, (), low.dtype) for name in names]


def _multiply(call: Tf, kernel: str) -> list[Value] | None:
    a, b = call.input("a"), call.input("b")
    ends = {f"{end}_{to}": call.input(f"{of}_{way}") for of, to in zip("ab", "xy", strict=True)
            for end, way in (("min", "low"), ("max", "high"))}  # fmt: skip
    # of tensors of one shape, of a number, or of a row
    least = min(a.shape, b.shape, key=len)
    if not (a.shape == b.shape or len(least) <= 1) or ends["min_x"].dtype != "f32":
        return None
    text = invoke(kernel, x=_kept(call, "a"), y=_kept(call, "b"), **ends)
    return _given(call, text)


_BIAS = {"min_input": "low", "max_input": "high", "min_bias": "b_low", "max_bias": "b_high"}
_REQUANTIZE = {
    "input_min": "low", "input_max": "high", "requested_output_min": "wanted_low",
    "requested_output_max": "wanted_high",
}  # fmt: skip

RANGED: dict[str, Native] = {
    "ranged_relu": _relu(math.inf),
    "ranged_multiply": _row("QuantizedMul", _multiply),
    "ranged_bias_add": _ranged(
        "QuantizedBiasAdd", {"input": "x", "bias": "b"}, _BIAS, out_type="tf.qint32"
    ),
    "ranged_pool": _row("QuantizedMaxPool", _pool),
    "ranged_reshape": _row("QuantizedReshape", _reshape),
    "requantization_range": _row("RequantizationRange", _range),
    "requantize": _ranged("Requantize", {"input": "x"}, _REQUANTIZE, out_type="tf.quint8"),
}
RANGED_WORDS: dict[str, Native] = {
    "ranged_relu": _relu(6.0),
    "ranged_pool": _row("QuantizedAvgPool", _pool),
}
