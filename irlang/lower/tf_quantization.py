"""How TensorFlow spells what quantising leaves of a tensor, and losses of sequences of labels."""

from __future__ import annotations

from irlang.lower.call import Call, Native
from irlang.lower.spelling import invoke, labelled_sequences, named
from irlang.lower.tf_builder import TensorFlowBuilder
from irlang.lower.value import Value

Tf = Call[TensorFlowBuilder]


def _ctc(call: Tf) -> Value | None:
    found = labelled_sequences(call)
    if found is None:
        return None
    return call.value(invoke("tf.nn.ctc_loss", *found, blank_index=call["blank"]))


def _fake_quantize(call: Tf) -> Value | None:
    x, ends = call.input("x"), [call.input("low"), call.input("high")]
    if x.dtype != "f32":
        return None
    function = "tf.quantization.fake_quant_with_min_max_vars"
    function += "_per_channel" * bool(ends[0].rank)
    options = {"num_bits": call["bits"], "narrow_range": call["narrow"] or None}
    return call.value(invoke(function, x, *ends, **options))


def _fake_quantize_gradient(call: Tf) -> list[Value] | None:
    values = [call.input(name) for name in ("g", "x", "low", "high")]
    if values[0].dtype != "f32":
        return None
    channels = "_per_channel" * bool(values[2].rank)
    function = f"tf.quantization.fake_quant_with_min_max_vars{channels}_gradient"
    options = {"num_bits": call["bits"], "narrow_range": call["narrow"] or None}
    return named(call, invoke(function, *values, **options))


_ROUNDINGS = {"even": None, "up": '"HALF_UP"'}


def _quantize_and_dequantize(call: Tf) -> Value | None:
    x = call.input("x")
    if x.dtype not in ("f32", "f64"):
        return None
    zero = f"tf.zeros([], {call.build.dtype(x.dtype)})"
    ends = [call.text(name, zero) for name in ("low", "high")]
    options = {
        "signed_input": call["signed"],
        "num_bits": call["bits"],
        "range_given": call.has("low"),
        "round_mode": _ROUNDINGS[call["rounding"]],
        "narrow_range": call["narrow"] or None,
        "axis": call["axis"] if call["sliced"] else None,
    }
    function = "tf.quantization.quantize_and_dequantize_v2"
    if not call.has("low") and call["sliced"]:
        ends = [f"tf.zeros({list(call['R'])}, {call.build.dtype(x.dtype)})"] * 2
    return call.value(invoke(function, x, *ends, **options))


_MODES = {"combined": None, "scaled": '"SCALED"'}
_QUANTISED = ("i8", "u8", "i16", "u16", "i32")


def _dequantize(call: Tf, mode: str | None = None) -> Value | None:
    """The type of the integers is one of those that TensorFlow keeps apart."""
    x, ends = call.input("x"), [call.input("low"), call.input("high")]
    if x.dtype not in _QUANTISED or call.out.dtype != "f32":
        return None
    kept = invoke("tf.bitcast", x, f"tf.q{call.build.dtype(x.dtype).removeprefix('tf.')}")
    options = {
        "mode": mode or _MODES[call["mode"]],
        "axis": call["axis"] if call["sliced"] else None,
        "narrow_range": call["narrow"] or None,
    }
    return call.value(invoke("tf.quantization.dequantize", kept, *ends, **options))


def _dequantize_first(call: Tf) -> Value | None:
    """The mode that counts from the lowest integer, of a range for all."""
    fits = call["mode"] == "combined" and not call["sliced"] and not call["narrow"]
    return _dequantize(call, '"MIN_FIRST"') if fits else None


QUANTIZATION: dict[str, Native] = {
    "ctc_logits": Native("tf.nn.ctc_loss", _ctc),
    "fake_quantize_range": Native(
        "tf.quantization.fake_quant_with_min_max_vars, and per_channel", _fake_quantize
    ),
    "fake_quantize_range_gradient": Native(
        "tf.quantization.fake_quant_with_min_max_vars_gradient, and per_channel",
        _fake_quantize_gradient,
        constant=("g", "x", "low", "high"),
    ),
    "quantize_and_dequantize": Native(
        "tf.quantization.quantize_and_dequantize_v2",
        _quantize_and_dequantize,
        constant=("low", "high"),
    ),
    "dequantize_range": Native(
        "tf.quantization.dequantize",
        _dequantize,
        constant=("low", "high"),
        others=(
            Native(
                "tf.quantization.dequantize",
                _dequantize_first,
                constant=("low", "high"),
                narrow=True,
            ),
        ),
        narrow=True,
    ),
}
