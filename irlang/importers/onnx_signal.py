"""ONNX's quantised layers, and its signals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irlang.importers.onnx_nn import window
from irlang.importers.onnx_node import Node, Value
from irlang.importers.value import Unsupported

Row = Callable[[Node], Value | Sequence[Value | None]]


# ---- small integers


def _placed(n: Node) -> dict[str, Any]:
    """Along what the scales lie."""
    axis, block = n.int("axis", 1), n.int("block_size", 0)
    return {
        **({"axis": axis} if n.input(1).rank else {}),
        **({"block_size": block} if block else {}),
    }


def _scales(n: Node) -> list[Value]:
    """Scales and zero points, of one shape: a vector of one may go with a number."""
    scale, zero = n.input(1), n.optional(2)
    if zero is None:
        return [scale]
    if zero.shape != scale.shape and zero.shape in ((), (1,)) and scale.shape in ((), (1,)):
        scale = n.step("scale", "reshape", scale, shape=list(zero.shape))
    return [scale, zero]


def _quantize(n: Node) -> Value:
    n.ignore("saturate")  # of types of eight bits with a point
    to = n.element_type("output_dtype", "u8")
    zero = n.optional(2)
    if n.has("precision") and n.element_type("precision") not in ("", n.input(1).dtype):
        raise Unsupported("a precision other than that of the scale")
    attrs = {**_placed(n), "to": to if zero is None else zero.dtype}
    return n.call("quantize_linear", n.input(0), *_scales(n), **attrs)


def _dequantize(n: Node) -> Value:
    scale = n.input(1)
    if n.element_type("output_dtype", scale.dtype) != scale.dtype:
        raise Unsupported("a type other than that of the scale")
    return n.call("dequantize_linear", n.input(0), *_scales(n), **_placed(n))


def _dynamic_quantize(n: Node) -> list[Value]:
    return n.calls(3, "dynamic_quantize_linear", n.input(0))


def _matmul_integer(n: Node) -> Value:
    named = {"a_zero": n.optional(2), "b_zero": n.optional(3)}
    by_name = {key: value for key, value in named.items() if value is not None}
    return n.call("matmul_integer", n.input(0), n.input(1), by_name=by_name)


def _number(n: Node, place: int, name: str) -> Value:
    """An input of one number, which may be a vector of one."""
    found = n.input(place)
    return found if found.rank == 0 else n.step(name, "reshape", found, shape=[])


def _qlinear_matmul(n: Node) -> Value:
    last = [_number(n, 6, "y_scale"), _number(n, 7, "y_zero")]
    first = [n.input(place) for place in range(6)]
    return n.call("qlinear_matmul", *first, *last, to=n.input(7).dtype)


def _windows(n: Node, weight: int) -> dict[str, Any]:
    n.ignore("kernel_shape")
    attrs = window(n, n.input(weight).shape[2:], n.input(0))
    if n.int("group", 1) != 1:
        attrs["groups"] = n.int("group")
    return attrs


def _conv_integer(n: Node) -> Value:
    by_name = {}
    if n.optional(2) is not None:
        by_name["x_zero"] = _number(n, 2, "x_zero")
    if n.optional(3) is not None:
        by_name["w_zero"] = n.input(3)
    return n.call("conv_integer", n.input(0), n.input(1), by_name=by_name, **_windows(n, 1))


def _qlinear_conv(n: Node) -> Value:
    bias = {} if n.optional(8) is None else {"bias": n.input(8)}
    given = [
        n.input(0), _number(n, 1, "x_scale"), _number(n, 2, "x_zero"), n.input(3), n.input(4),
        n.input(5), _number(n, 6, "y_scale"), _number(n, 7, "y_zero"),
    ]  # fmt: skip
    attrs = _windows(n, 3)
    return n.call("qlinear_conv", *given, by_name=bias, to=n.input(7).dtype, **attrs)


# ---- signals


def _dft(n: Node) -> Value:
    x = n.input(0)
    inverse, onesided = n.flag("inverse"), n.flag("onesided")
    axis = n.int("axis", 1) if n.version < 20 else -2
    if n.version >= 20 and n.optional(2) is not None:
        axis = int(n.known_number(2))
    attrs: dict[str, Any] = {"axis": axis}
    if n.optional(1) is not None:
        attrs["length"] = int(n.known_number(1))
    for name, flag in (("inverse", inverse), ("onesided", onesided)):
        if flag:
            attrs[name] = True
    return n.call("dft", x, **attrs)


def _stft(n: Node) -> Value:
    x, window_ = n.input(0), n.optional(2)
    if x.rank == 2:
        x = n.step("real", "expand_dims", x, axes=[2])
    length = x.shape[1] if window_ is None else window_.shape[0]
    if n.optional(3) is not None:
        length = int(n.known_number(3))
    attrs = {"length": length, "step": int(n.known_number(1)), "onesided": n.flag("onesided", True)}
    return n.call("stft", x, *([] if window_ is None else [window_]), **attrs)


def _window(*terms: float) -> Row:
    def row(n: Node) -> Value:
        attrs = {"size": int(n.known_number(0)), "terms": list(terms)}
        periodic, to = n.flag("periodic", True), n.element_type("output_datatype", "f32")
        return n.call("cosine_window", **attrs, periodic=periodic, to=to)

    return row


def _mel_weights(n: Node) -> Value:
    bins, length, rate = (int(n.known_number(place)) for place in range(3))
    low, high = (n.single(n.known_number(place)) for place in (3, 4))
    attrs = {"bins": bins, "dft_length": length, "sample_rate": rate, "low": low, "high": high}
    return n.call("mel_weight_matrix", **attrs, to=n.element_type("output_datatype", "f32"))


ROWS: dict[str, Row] = {
    "QuantizeLinear": _quantize,
    "DequantizeLinear": _dequantize,
    "DynamicQuantizeLinear": _dynamic_quantize,
    "MatMulInteger": _matmul_integer,
    "ConvInteger": _conv_integer,
    "QLinearMatMul": _qlinear_matmul,
    "QLinearConv": _qlinear_conv,
    "DFT": _dft,
    "STFT": _stft,
    "HannWindow": _window(0.5, 0.5),
    "HammingWindow": _window(25 / 46, 21 / 46),
    "BlackmanWindow": _window(0.42, 0.5, 0.08),
    "MelWeightMatrix": _mel_weights,
}
