"""ONNX Runtime's own operators of quantised tensors: those of its domain `com.microsoft`.

Its passes make them of operators between DequantizeLinear and QuantizeLinear, and its tools write
them. All take a scale and a zero point for every tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irlang.equations import TensorInfo
from irlang.lower.call import Call, Native
from irlang.lower.legalise import windows
from irlang.lower.onnx_builder import OnnxBuilder
from irlang.lower.onnx_file import CONTRIBUTED
from irlang.lower.onnx_layers import placed
from irlang.lower.value import Value

Onnx = Call[OnnxBuilder]
Rule = Callable[[Onnx], Value | Sequence[Value] | None]
_BYTES = ("u8", "i8")
_MOST_SPACE = 3  # axes of pools


def word(op: str, rule: Rule, since: tuple[int, ...] = ()) -> Native:
    """A row of an operator; since: the first release that has it for processors."""

    def there(call: Onnx) -> Value | Sequence[Value] | None:
        return rule(call) if call.build.runtime.contributes(since) else None

    return Native(f"{CONTRIBUTED}.{op}", there)


def names(call: Onnx, given: Sequence[str]) -> list[str]:
    """The tensors of inputs in an order. A zero point that was left out is 0, as it is documented
    to be where it is not said; of some operators releases refuse to read that, or end.
    """
    absent = None if call.dares() else call.build.constant(np.asarray(0), call.out.dtype)
    found = []
    for name in given:
        value = call.input(name) if call.has(name) else absent
        found.append(value.text if value is not None else "")
    while not found[-1]:
        found.pop()
    return found


def _of_bytes(call: Onnx, scale: str = "y_scale") -> bool:
    """Whether the types are those of kernels."""
    return call.out.dtype in _BYTES and call.input(scale).dtype == "f32"


def _simple(op: str, *tensors: str, first: Sequence[str] = (), **attributes: str) -> Native:
    """One of tensors, each with its scale and its zero point, as has the result; attributes under
    the names there, as floats.
    """
    order = [f"{name}{part}" for name in (*tensors, "y") for part in ("", "_scale", "_zero")]
    order.remove("y")

    def rule(call: Onnx) -> Value | None:
        if not _of_bytes(call):
            return None
        options = {key: float(call[name]) for key, name in attributes.items()}
        given = names(call, [*first, *order])
        return call.build.contributed(op, given, [call.out], **options)[0]

    return word(op, rule)


_ONE = ("x", "x_scale", "x_zero", "y_scale", "y_zero")


def _softmax(call: Onnx) -> Value | None:
    x = call.input("x")
    if not _of_bytes(call):
        return None
    options = {"axis": call.axis_said("axis", x.rank), "opset": 13}
    return call.build.contributed("QLinearSoftmax", names(call, _ONE), [call.out], **options)[0]


def _where(call: Onnx) -> Value | None:
    order = ("condition", "a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "y_scale", "y_zero")
    if not _of_bytes(call):
        return None
    return call.build.contributed("QLinearWhere", names(call, order), [call.out])[0]


def _each(call: Onnx, name: str, count: int) -> list[Value]:
    """The numbers of a vector, one by one. (Of several of them by Gather ONNX Runtime 1.20 makes
    Splits of one name, and refuses what it has made.)
    """
    value = call.input(name)
    sizes = call.build.integers([1] * count)
    parts = [TensorInfo((1,), value.dtype)] * count
    return call.build.node("Split", [value.text, sizes.text], parts, axis=0)


def _concat(call: Onnx) -> Value | None:
    """Scales and zero points are numbers, one by one."""
    if not _of_bytes(call):
        return None
    parts = call.family("xs")
    given = [call.input("y_scale").text, call.input("y_zero").text]
    kinds = (_each(call, name, len(parts)) for name in ("scales", "zeros"))
    for row in zip(parts, *kinds, strict=True):
        given += [value.text for value in row]
    options = {"axis": call.axis_said("axis", parts[0].rank)}
    return call.build.contributed("QLinearConcat", given, [call.out], **options)[0]


def _turned(call: Onnx, op: str, shape: Sequence[int], **options: Any) -> Value:
    """A pool of channels that stand last, of an input whose channels are turned behind."""
    build, x = call.build, call.input("x")
    places = range(2, x.rank)
    inner = build.transpose(x, (0, *places, 1))
    given = [inner.text, *names(call, _ONE)[1:]]
    info = TensorInfo((shape[0], *shape[2:], shape[1]), call.out.dtype)
    found = build.contributed(op, given, [info], channels_last=1, **options)[0]
    return build.transpose(found, (0, x.rank - 1, *range(1, x.rank - 1)))


def _pool(last: bool) -> Rule:
    def rule(call: Onnx) -> Value | None:
        frame = windows(call)
        if not _of_bytes(call) or not 1 <= frame.rank <= _MOST_SPACE:
            return None
        options = placed(call, frame)
        options.pop("dilations", None)
        if "auto_pad" not in options:
            options["ceil_mode"] = int(call["ceil_mode"])
        options["count_include_pad"] = int(call["count_include_pad"])
        if last:
            return _turned(call, "QLinearAveragePool", call.out.shape, **options)
        given = names(call, _ONE)
        return call.build.contributed("QLinearAveragePool", given, [call.out], **options)[0]

    return rule


def _global(last: bool) -> Rule:
    def rule(call: Onnx) -> Value | None:
        if not _of_bytes(call) or call.input("x").rank < 3:
            return None
        op = "QLinearGlobalAveragePool"
        if last:
            return _turned(call, op, call.out.shape)
        given = names(call, _ONE)
        return call.build.contributed(op, given, [call.out], channels_last=0)[0]

    return rule


QUANTIZED: tuple[tuple[str, Native], ...] = (
    ("qlinear_add", _simple("QLinearAdd", "a", "b")),
    ("qlinear_multiply", _simple("QLinearMul", "a", "b")),
    ("qlinear_sigmoid", _simple("QLinearSigmoid", "x")),
    ("qlinear_leaky_relu", _simple("QLinearLeakyRelu", "x", alpha="alpha")),
    ("qlinear_softmax", word("QLinearSoftmax", _softmax)),
    ("qlinear_where", word("QLinearWhere", _where)),
    ("qlinear_concat", word("QLinearConcat", _concat)),
    ("qlinear_avg_pool", word("QLinearAveragePool", _pool(last=False))),
    ("qlinear_avg_pool", word("QLinearAveragePool", _pool(last=True))),
    ("qlinear_global_avg_pool", word("QLinearGlobalAveragePool", _global(last=False))),
    ("qlinear_global_avg_pool", word("QLinearGlobalAveragePool", _global(last=True))),
)
