"""How TensorFlow spells images and blocks, channels last."""

from __future__ import annotations

from irlang.lower.call import Call, Native
from irlang.lower.legalise import channels_first, channels_last
from irlang.lower.spelling import invoke
from irlang.lower.tf_builder import TensorFlowBuilder
from irlang.lower.value import Value

Tf = Call[TensorFlowBuilder]


def first(call: Tf, text: str) -> Value:
    """A result with its channels put second."""
    n, c, *space = call.out.shape
    return channels_first(call, Value(text, (n, *space, c), call.out.dtype))


def _crop_and_resize(call: Tf) -> Value | None:
    x, boxes, batch = (call.input(name) for name in ("x", "boxes", "batch"))
    if x.rank != 4 or x.dtype != "f32":
        return None
    method = "bilinear" if call["mode"] == "linear" else "nearest"
    text = invoke(
        "tf.image.crop_and_resize",
        channels_last(call, x),
        boxes,
        call.build.cast(batch, "i32"),
        str(list(call["size"])),
        method=f'"{method}"',
        extrapolation_value=float(call["extrapolation"]),
    )
    return first(call, text)


def _blocks(function: str, amounts: str) -> Native:
    def rule(call: Tf) -> Value | None:
        x, sizes = call.input("x"), tuple(call["block_size"])
        if x.rank != 4 or x.dtype == "bool":
            return None
        pairs = [list(pair) for pair in zip(call["before"], call["after"], strict=True)]
        options = {"block_shape": str(list(sizes)), amounts: str(pairs)}
        return first(call, invoke(function, channels_last(call, x), **options))

    return Native(function, rule)


IMAGES: dict[str, Native] = {
    "crop_and_resize": Native("tf.image.crop_and_resize", _crop_and_resize),
    "space_to_batch": _blocks("tf.space_to_batch", "paddings"),
    "batch_to_space": _blocks("tf.batch_to_space", "crops"),
}
