"""How TensorFlow spells images and blocks, channels last."""

from __future__ import annotations

from irlang.lower.call import Call, Native
from irlang.lower.channels import channels_first, channels_last
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


# ---- images as they are: of four axes the second has rows, the third columns


def _ends(call: Tf) -> list[tuple[int, int]] | None:
    """How much is before and after along rows and columns; None of another axis or rank."""
    pairs = list(zip(call["before"], call["after"], strict=True))
    if call.input("x").rank != 4 or any(pairs[0]) or any(pairs[3]):
        return None
    return pairs[1:3]


def _pad(call: Tf) -> Value | None:
    x, ends = call.input("x"), _ends(call)
    if ends is None or call["mode"] != "constant" or call["value"] or x.dtype == "bool":
        return None
    if min(min(pair) for pair in ends) < 0:  # which is documented to be refused
        return None
    (top, _), (left, _) = ends
    sizes = call.out.shape[1:3]
    return call.value(invoke("tf.image.pad_to_bounding_box", x, top, left, *sizes))


def _crop(call: Tf) -> Value | None:
    x, ends = call.input("x"), _ends(call)
    if ends is None or x.dtype == "bool":
        return None
    (top, _), (left, _) = ends
    sizes = call.out.shape[1:3]
    return call.value(invoke("tf.image.crop_to_bounding_box", x, top, left, *sizes))


def _middle(call: Tf) -> Value | None:
    x = call.input("x")
    axes, size = call.axes("axes", x.rank), tuple(call["size"])
    if x.rank != 4 or axes != (1, 2) or x.dtype == "bool":
        return None
    return call.value(invoke("tf.image.resize_with_crop_or_pad", x, *size))


_FLIPS = {(1,): "flip_up_down", (2,): "flip_left_right"}


def _flip(call: Tf) -> Value | None:
    x = call.input("x")
    axes = call.axes("axes", x.rank) if x.rank else ()
    if x.rank != 4 or axes not in _FLIPS or x.dtype == "bool":
        return None
    return call.value(invoke(f"tf.image.{_FLIPS[axes]}", x))


def _turn(call: Tf) -> Value | None:
    x = call.input("x")
    if x.rank != 4 or call.axes("axes", 4) != (1, 2) or x.dtype == "bool":
        return None
    return call.value(invoke("tf.image.rot90", x, k=call["k"]))


def _exchange(call: Tf) -> Value | None:
    x = call.input("x")
    if tuple(call["order"]) != (0, 2, 1, 3) or x.dtype == "bool":
        return None
    return call.value(invoke("tf.image.transpose", x))


IMAGE_WORDS: dict[str, Native] = {
    "pad": Native("tf.image.pad_to_bounding_box", _pad),
    "crop": Native("tf.image.crop_to_bounding_box", _crop),
    "center_crop_pad": Native("tf.image.resize_with_crop_or_pad", _middle),
    "reverse": Native("tf.image.flip_left_right, tf.image.flip_up_down", _flip),
    "rot90": Native("tf.image.rot90", _turn),
    "transpose": Native("tf.image.transpose", _exchange),
}
IMAGES: dict[str, Native] = {
    "crop_and_resize": Native("tf.image.crop_and_resize", _crop_and_resize),
    "space_to_batch": _blocks("tf.space_to_batch", "paddings"),
    "batch_to_space": _blocks("tf.batch_to_space", "crops"),
}
