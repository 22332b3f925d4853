"""How PyTorch spells what quantising leaves of a tensor, and losses of sequences of labels."""

from __future__ import annotations

from irlang.lower.call import Call, Native
from irlang.lower.spelling import invoke
from irlang.lower.torch_builder import TorchBuilder
from irlang.lower.value import Value

Torch = Call[TorchBuilder]


def _fake_quantize(call: Torch) -> Value | None:
    x, scale = call.input("x"), call.input("scale")
    if x.dtype != "f32":
        return None
    zero = call.build.cast(call.input("zero_point"), "i32") if call.has("zero_point") else None
    zeros = f"torch.zeros({list(scale.shape)}, dtype=torch.int32)"
    given = [x, scale, zero.text if zero is not None else zeros]
    ends = [call["low"], call["high"]]
    if not scale.rank:
        return call.value(invoke("torch.fake_quantize_per_tensor_affine", *given, *ends))
    axis = call.axis("axis", x.rank)
    return call.value(invoke("torch.fake_quantize_per_channel_affine", *given, axis, *ends))


def _quantize(call: Torch) -> Value | None:
    """Without zero points: PyTorch rounds what these are added to, which moves ties to another."""
    x, scale = call.input("x"), call.input("scale")
    kind = {"u8": "torch.quint8", "i8": "torch.qint8"}.get(call["to"])
    if kind is None or x.dtype != "f32" or call["block_size"] or call.has("zero_point"):
        return None
    if not scale.rank:
        # a number beside a scale that is differentiated is no signature
        zero = "torch.zeros((), dtype=torch.int32)"
        return call.value(f"{invoke('torch.quantize_per_tensor', x, scale, zero, kind)}.int_repr()")
    if scale.shape == (1,):
        return None  # one number for all, whatever the axis
    given = (x, scale, f"torch.zeros({list(scale.shape)})", call.axis("axis", x.rank), kind)
    return call.value(f"{invoke('torch.quantize_per_channel', *given)}.int_repr()")


def _ctc(call: Torch) -> Value | None:
    if call.out.dtype not in ("f32", "f64"):
        return None
    names = ("labels", "input_lengths", "target_lengths")
    places = [call.build.cast(call.input(name), "i64") for name in names]
    return call.value(
        invoke(
            "F.ctc_loss", call.input("log_probs"), *places, blank=call["blank"],
            reduction=f'"{call["reduction"]}"', zero_infinity=call["zero_infinity"] or None,
        )
    )  # fmt: skip


QUANTIZATION: dict[str, Native] = {
    "fake_quantize": Native(
        "torch.fake_quantize_per_tensor_affine, torch.fake_quantize_per_channel_affine",
        _fake_quantize,
        constant=("x", "scale"),  # another stands in the place of the gradient
    ),
    "quantize_linear": Native("torch.quantize_per_tensor, torch.quantize_per_channel", _quantize),
    # Its gradient is that of a softmax before it.
    "ctc": Native("F.ctc_loss", _ctc, constant=("log_probs",)),
}
