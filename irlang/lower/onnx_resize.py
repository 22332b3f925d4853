"""How ONNX spells what has another size: by sizes or by scales, along some axes, of a part.

ONNX asks for a tensor of a size or for a scale, and what is made of the one is another computation
than what is made of the other: a program's words are kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from irlang.equations import TensorInfo
from irlang.lower.call import Call, Native
from irlang.lower.onnx_builder import OnnxBuilder
from irlang.lower.onnx_kernels import AXES_NAMED
from irlang.lower.value import Value

Onnx = Call[OnnxBuilder]
_LEFT_OUT = 13  # the opset since which a list that is not given is left out
_MOVED = ("i8", "i32", "u8")  # beside reals of f32, where elements are only moved
# What asks for the size of the result, which a scale may leave between two whole numbers: ONNX's
# text and its own evaluator differ there.
_OF_SIZES = frozenset({"align_corners", "pytorch_half_pixel", "tf_crop_and_resize"})


def _resize(call: Onnx) -> Value | None:
    x, coord = call.input("x"), call["coord"]
    axes, lengths = call.axes("axes", x.rank), list(call["S"])
    options = _options(call, axes, x.rank)
    if options is None or not axes or 0 in x.shape:
        return None
    if 0 in call.out.shape and min(call["scale"], default=0) >= 0:
        return None
    roi = [*call["roi_begin"], *call["roi_end"]] if coord == "tf_crop_and_resize" else []
    scales = _scales(call, lengths)
    if scales == [] or not all(map(_is_exact, roi)):
        return None
    whole = all(
        (scale * n).denominator == 1 for scale, n in zip(scales or [], lengths, strict=False)
    )
    if coord in _OF_SIZES and (not whole or call["aspect"] != "stretch"):
        return None
    named = "axes" in call.node.attrs or call["aspect"] != "stretch"
    named &= call.build.runtime.opset >= AXES_NAMED
    if named:
        options["axes"] = list(call.axes_said("axes", x.rank))
    if call["aspect"] != "stretch":
        options["keep_aspect_ratio_policy"] = call["aspect"]

    def along(numbers: Sequence[Any], others: Sequence[Any]) -> list[Any]:
        """Numbers of the axes that are resized, for all axes unless these are named."""
        found = list(others)
        for axis, number in zip(axes, numbers, strict=True):
            found[axis] = number
        return list(numbers) if named else found

    if roi:
        count = len(axes)
        roi = along(roi[:count], [0.0] * x.rank) + along(roi[count:], [1.0] * x.rank)
    if scales is not None:
        return _resized(call, x, roi, scales=along(scales, [1] * x.rank), **options)
    return _resized(call, x, roi, sizes=along(list(call["size"]), x.shape), **options)


def _options(call: Onnx, axes: Sequence[int], rank: int) -> dict[str, Any] | None:
    """The attributes but for axes; None where ONNX Runtime, or ONNX, has no such resampling."""
    mode, coord = call["mode"], call["coord"]
    if not _reached(mode, axes, rank) or coord == "tf_half_pixel_for_nn":
        return None
    options: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": coord}
    if mode == "nearest":
        options["nearest_mode"] = call["rounding"]
    elif mode == "cubic":
        options["cubic_coeff_a"] = float(call["cubic_coeff"])
    if coord == "tf_crop_and_resize":
        options["extrapolation_value"] = float(call["extrapolation"])
    if call["antialias"]:
        # Between corners ONNX widens the weights by the quotient of the sizes, not by the step.
        if not call["exclude_outside"] or coord in ("align_corners", "tf_crop_and_resize"):
            return None
        options |= {"antialias": 1, "exclude_outside": 1}
    elif call["exclude_outside"] and mode == "linear":
        return None
    elif mode == "cubic":
        options["exclude_outside"] = int(call["exclude_outside"])
    return options


def _reached(mode: str, axes: Sequence[int], rank: int) -> bool:
    """Whether ONNX Runtime resizes these axes: of images, channels first or last, of volumes."""
    within = {
        "nearest": [range(rank)],
        "linear": {
            2: [range(2)], 3: [range(3)], 4: [range(2, 4), range(1, 3)], 5: [range(2, 5)]
        }.get(rank, []),
        "cubic": {2: [range(2)], 4: [range(2, 4)]}.get(rank, []),
    }[mode]  # fmt: skip
    return any(set(axes) <= set(one) for one in within)


def _scales(call: Onnx, lengths: Sequence[int]) -> list[Fraction] | None:
    """The scale of every axis, if any is given; none (`[]`) where ONNX's f32 does not hold them,
    or where another size is asked for.
    """
    if not any(call["scale"]) or call["aspect"] != "stretch":
        return [] if any(call["scale"]) else None
    found = []
    for scale, size, length in zip(call["scale"], call["size"], lengths, strict=True):
        one = Fraction(scale) if scale else Fraction(size, max(length, 1))
        if not _is_exact(one) or (scale >= 0 and math.floor(one * length) != size):
            return []  # one below 0 is for the target to refuse
        found.append(one)
    return found


def _is_exact(number: float | Fraction) -> bool:
    return Fraction(float(np.float32(float(number)))) == Fraction(number)


def _resized(
    call: Onnx,
    x: Value,
    roi: Sequence[float] = (),
    scales: Sequence[Any] = (),
    sizes: Sequence[int] = (),
    **options: Any,
) -> Value | None:
    """Integers, which are only moved, where they have a kernel."""
    build = call.build
    carried = build.cast(x, "f32") if x.dtype in ("f16", "bf16") else x
    moves = options["mode"] == "nearest" and carried.dtype in _MOVED
    if carried.dtype != "f32" and not moves:
        return None
    inputs = [carried.text]
    for numbers in (roi, scales):  # until opset 13 a list is empty, and not left out
        left_out = not numbers and build.runtime.opset >= _LEFT_OUT
        given = np.array([float(one) for one in numbers])
        inputs.append("" if left_out else build.constant(given, "f32").text)
    if not scales:
        inputs.append(build.integers(sizes).text)
    info = TensorInfo(call.out.shape, carried.dtype)
    return build.cast(build.node("Resize", inputs, [info], **options)[0], x.dtype)


def _upsample(call: Onnx) -> Value | None:
    return _resized(
        call,
        call.input("x"),
        scales=[1, 1, *call["scale"]],
        mode="nearest",
        nearest_mode="floor",
        coordinate_transformation_mode="asymmetric",
    )


RESIZED: dict[str, Native] = {
    "upsample": Native("Resize", _upsample),
    "resize": Native("Resize", _resize),
}
