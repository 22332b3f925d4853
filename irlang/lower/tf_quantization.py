"""How TensorFlow spells what quantising leaves of a tensor, and losses of sequences of labels."""

from __future__ import annotations

from irlang.lower.call import Call, Native
from irlang.lower.spelling import invoke, labelled_sequences
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


QUANTIZATION: dict[str, Native] = {
    "ctc_logits": Native("tf.nn.ctc_loss", _ctc),
    "fake_quantize_range": Native(
        "tf.quantization.fake_quant_with_min_max_vars, and per_channel", _fake_quantize
    ),
}
