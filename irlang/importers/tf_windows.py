"""TensorFlow's operators that show the windows of an image, or where in one something is."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from irlang.dtypes import DTYPES
from irlang.importers.tf_node import Node, Result, Row
from irlang.importers.value import Unsupported, Value


def _space(items: Sequence[int]) -> list[int]:
    """The numbers of the spatial axes; those of batches and channels must be 1."""
    if len(items) < 3 or items[0] != 1 or items[-1] != 1:
        raise Unsupported(f"windows of {list(items)}, along batches or channels")
    return list(items[1:-1])


def _patches(n: Node) -> Value:
    """The windows of every place, one after the other in the last axis: places of a window before
    channels. What lies outside the image is 0.
    """
    window, stride = _space(n.ints("ksizes")), _space(n.ints("strides"))
    dilation = _space(n.ints("rates", [1] * (len(window) + 2)))
    x = n.first(n.input(0))
    batch, channels, *sizes = x.shape
    before, after, places = [], [], []
    same = n.word("padding") == "SAME"
    for size, k, s, d in zip(sizes, window, stride, dilation, strict=True):
        span = (k - 1) * d + 1
        count = -(-size // s) if same else (size - span) // s + 1
        need = max(0, (count - 1) * s + span - size) if same else 0
        before.append(need // 2)
        after.append(need - need // 2)
        places.append(count)
    attrs = {"window": window, "stride": stride, "dilation": dilation}
    columns = n.step("columns", "im2col", x, **attrs, before=before, after=after)
    shape = [batch, channels, math.prod(window), *places]
    parts = n.step("parts", "reshape", columns, shape=shape)
    perm = [0, *range(3, 3 + len(places)), 2, 1]
    ordered = n.step("ordered", "transpose", parts, perm=perm)
    return n.call("reshape", ordered, shape=[batch, *places, math.prod(window) * channels])


def _largest(n: Node) -> Result:
    """The largest element of every window, and its place in the image: channels count first."""
    x = n.first(n.input(0))
    pads = {"VALID": "valid", "SAME": "same"}.get(n.word("padding"))
    if pads is None:
        raise Unsupported(f"padding is {n.word('padding')}")
    attrs = {"window": _space(n.ints("ksize")), "stride": _space(n.ints("strides")), "pad": pads}
    whole, kind = n.flag("include_batch_in_index"), n.element_type("Targmax", "i64")
    if not n.wants(1):
        return [n.last(n.step("", "max_pool", x, **attrs))]
    y, at = n.steps(["", "place"], "max_pool_with_argmax", x, **attrs)
    batch, channels, *sizes = x.shape

    def counted(count: int, unit: int, name: str, axis: int) -> Value:
        shape = [count if d == axis else 1 for d in range(x.rank)]
        numbers = (np.arange(count) * unit).reshape(shape).astype(DTYPES["i64"].numpy)
        return n.const(numbers, f"{n.outputs[1]}_{name}")

    at = n.step("pixel", "multiply", at, channels)
    at = n.step("element", "add", at, counted(channels, 1, "channels", 1))
    if whole:
        image = math.prod(sizes) * channels
        at = n.step("of_all", "add", at, counted(batch, image, "images", 0))
    perm = [0, *range(2, x.rank), 1]
    if kind == "i64":
        return [n.last(y), n.result(1, "transpose", at, perm=perm)]
    moved = n.step("moved", "transpose", at, perm=perm)
    return [n.last(y), n.result(1, "cast", moved, to=kind)]


def _crops(n: Node) -> Value:
    """Parts of images at one size; images of integers are taken for reals."""
    x, boxes, batch, size = n.first(n.input(0)), n.input(1), n.input(2), n.known_ints(3)
    mode = {"bilinear": "linear", "nearest": "nearest"}.get(n.word("method", "bilinear"))
    if mode is None:
        raise Unsupported(f"the method {n.word('method')}")
    if x.dtype != "f32":
        x = n.step("real", "cast", x, to="f32")
    outside = n.real("extrapolation_value", 0.0)
    attrs = {"size": size, "mode": mode, "extrapolation": outside}
    return n.last(n.call("crop_and_resize", x, boxes, batch, **attrs))


def _contrast(n: Node) -> Value:
    """Every channel moved away from its mean over the image."""
    x, factor = n.input(0), n.input(1)
    mean = n.step("mean", "reduce_mean", x, axes=[x.rank - 3, x.rank - 2], keepdims=True)
    away = n.step("away", "multiply", n.step("rest", "subtract", x, mean), factor)
    return n.call("add", away, mean)


ROWS: dict[str, Row] = {
    "ExtractImagePatches": _patches,
    "ExtractVolumePatches": _patches,
    "MaxPoolWithArgmax": _largest,
    "CropAndResize": _crops,
    "AdjustContrastv2": _contrast,
}
