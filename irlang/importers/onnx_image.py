"""ONNX's images: resampling, regions, deformable windows, columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irlang.importers.onnx_nn import window
from irlang.importers.onnx_node import Node, Value
from irlang.importers.sizes import Dim
from irlang.importers.value import Unsupported

Row = Callable[[Node], Value | Sequence[Value | None]]

_ASPECTS = ("stretch", "not_larger", "not_smaller")


# ---- another size


def _given(n: Node, place: int) -> list[Any] | None:
    """The numbers of an input; None where it is left out, or empty."""
    if n.optional(place) is None:
        return None
    return n.known(place).reshape(-1).tolist() or None


def _resize(n: Node) -> Value:
    x = n.input(0)
    attrs: dict[str, Any] = {"mode": _mode(n)}
    if n.version < 11:
        roi, scales, sizes = None, _given(n, 1), None
        attrs.update(coord="asymmetric", rounding="floor")
    else:
        roi, scales, sizes = (_given(n, place) for place in (1, 2, 3))
        _numbers(n, attrs)
    aspect = n.word("keep_aspect_ratio_policy", "stretch")
    if aspect not in _ASPECTS:
        raise Unsupported(f"the policy {aspect}")
    if sizes is not None and aspect != "stretch":
        attrs["aspect"] = aspect
    axes = [axis % x.rank for axis in n.ints("axes", list(range(x.rank)))]
    return _resized(n, axes, scales, sizes, roi, attrs)


def _numbers(n: Node, attrs: dict[str, Any]) -> None:
    """The attributes of `Resize` from version 11 on, those that are not the definition's own."""
    attrs["coord"] = n.word("coordinate_transformation_mode", "half_pixel")
    rounding = n.word("nearest_mode", "round_prefer_floor")
    coefficient, extrapolation = n.real("cubic_coeff_a", -0.75), n.real("extrapolation_value", 0.0)
    if attrs["mode"] == "nearest":
        attrs["rounding"] = rounding
    if attrs["mode"] == "cubic":
        attrs["cubic_coeff"] = coefficient
    if attrs["coord"] == "tf_crop_and_resize":
        attrs["extrapolation"] = extrapolation
    for name in ("antialias", "exclude_outside"):
        if n.flag(name):
            attrs[name] = True


def _mode(n: Node) -> str:
    mode = n.word("mode", "nearest")
    found = {"bilinear": "linear", "linear": "linear", "nearest": "nearest", "cubic": "cubic"}
    if mode not in found:
        raise Unsupported(f"the mode {mode}")
    if found[mode] != "nearest" and n.input(0).info.kind != "real":
        raise Unsupported(f"mode {mode} on {n.input(0).dtype}: how it rounds is not said")
    return found[mode]


def _resized(
    n: Node,
    axes: list[int],
    scales: list[Any] | None,
    sizes: list[Any] | None,
    roi: list[Any] | None,
    attrs: dict[str, Any],
) -> Value:
    """Along the axes that change: all spatial ones where no other does."""
    x = n.input(0)
    given = sizes if sizes is not None else scales
    if given is None or len(given) != len(axes):
        raise Unsupported("neither scales nor sizes fit the axes")
    plan: dict[int, tuple[Any, float, tuple[float, float]]] = {}
    cut = attrs.get("coord") == "tf_crop_and_resize" and roi is not None
    for place, axis in enumerate(axes):
        part = (0.0, 1.0)
        if cut and roi is not None:
            part = (n.single(roi[place]), n.single(roi[len(axes) + place]))
        size, scale = _size(n, x.shape[axis], given[place], sizes is None)
        if (size, scale, part) != (x.shape[axis], 0, (0.0, 1.0)):
            plan[axis] = (size, scale, part)
    if not plan:
        return x
    space = list(range(2, x.rank))
    if attrs.get("aspect"):
        plan = {axis: (size, 0, (0.0, 1.0)) for axis, size in zip(axes, given, strict=True)}
    elif set(plan) <= set(space):
        plan = {axis: plan.get(axis, (x.shape[axis], 0, (0.0, 1.0))) for axis in space}
    order = sorted(plan)
    attrs["size"] = [plan[axis][0] for axis in order]
    if any(plan[axis][1] for axis in order):
        attrs["scale"] = [plan[axis][1] for axis in order]
    if cut:
        attrs["roi_begin"] = [plan[axis][2][0] for axis in order]
        attrs["roi_end"] = [plan[axis][2][1] for axis in order]
    if order != space:
        attrs["axes"] = order
    return n.call("resize", x, **attrs)


def _size(n: Node, length: Any, given: Any, scaled: bool) -> tuple[Any, float]:
    """A size, and the scale where that is not the quotient of the sizes."""
    if not scaled:
        return (given if isinstance(given, Dim) else int(given)), 0
    scale = float(given)
    if isinstance(length, Dim):
        if scale != int(scale):
            raise Unsupported(f"a scale of {scale} on a size that is left open")
        return length * int(scale), 0
    size = math.floor(np.float32(length) * np.float32(scale))  # as ONNX infers shapes
    return size, 0 if size == length * scale else n.single(scale)


def _upsample(n: Node) -> Value:
    """Resize of before version 10."""
    attrs: dict[str, Any] = {"mode": _mode(n), "coord": "asymmetric", "rounding": "floor"}
    scales = n.reals("scales") if n.version < 9 else _given(n, 1)
    return _resized(n, list(range(n.input(0).rank)), scales, None, None, attrs)


def _center_crop_pad(n: Node) -> Value:
    x = n.input(0)
    axes = n.ints("axes")
    attrs = {} if axes is None else {"axes": axes}
    return n.call("center_crop_pad", x, size=n.known_ints(1), **attrs)


# ---- other places


def _grid_sample(n: Node) -> Value:
    names = {"bilinear": "linear", "bicubic": "cubic"}
    mode = n.word("mode", "linear")
    attrs = {"mode": names.get(mode, mode), "padding": n.word("padding_mode", "zeros")}
    return n.call("grid_sample", *n.x, **attrs, align_corners=n.flag("align_corners"))


def _affine_grid(n: Node) -> Value:
    size = n.known_ints(1)[2:]
    return n.call("affine_grid", n.input(0), size=size, align_corners=n.flag("align_corners"))


def _roi_align(n: Node) -> Value:
    """Before version 16 pixels are not centred at halves."""
    ratio = n.int("sampling_ratio", 0)
    if ratio < 1:
        raise Unsupported("sampling_ratio 0: the number of samples depends on the regions")
    default = "half_pixel" if n.version >= 16 else "output_half_pixel"
    aligned = n.word("coordinate_transformation_mode", default) == "half_pixel"
    return n.call(
        "roi_align",
        *n.x,
        size=[n.int("output_height", 1), n.int("output_width", 1)],
        sampling_ratio=ratio,
        scale=n.real("spatial_scale", 1.0),
        aligned=aligned,
        mode=n.word("mode", "avg"),
    )


def _max_roi_pool(n: Node) -> Value:
    attrs = {"size": n.ints("pooled_shape"), "scale": n.real("spatial_scale", 1.0)}
    return n.call("max_roi_pool", *n.x, **attrs)


def _max_unpool(n: Node) -> Value:
    """Positions are those of the size that the window says; a larger result has zeros after it."""
    x, kernel = n.input(0), n.ints("kernel_shape")
    rank = x.rank - 2
    stride, pads = n.ints("strides", [1] * rank), n.ints("pads", [0] * (2 * rank))
    size = [
        (length - 1) * stride[d] + kernel[d] - pads[d] - pads[rank + d]
        for d, length in enumerate(x.shape[2:])
    ]
    wanted = size if n.optional(2) is None else n.known_ints(2)[-rank:]
    if wanted == size:
        return n.call("max_unpool", x, n.input(1), size=size, whole=True)
    inner = n.step("inner", "max_unpool", x, n.input(1), size=size, whole=True)
    after = [0, 0, *(w - s for w, s in zip(wanted, size, strict=True))]
    return n.call("pad", inner, after=after)


def _columns(n: Node) -> Value:
    size, kernel = n.known_ints(1), n.known_ints(2)
    rank = len(size)
    attrs: dict[str, Any] = {"size": size, "window": kernel}
    steps = {"stride": n.ints("strides"), "dilation": n.ints("dilations")}
    attrs.update((name, items) for name, items in steps.items() if items is not None)
    pads = n.ints("pads")
    if pads is not None:
        attrs.update(before=pads[:rank], after=pads[rank:])
    return n.call("col2im", n.input(0), **attrs)


def _deform_conv(n: Node) -> Value:
    x, w, offset = n.input(0), n.input(1), n.input(2)
    n.ignore("kernel_shape")
    attrs = window(n, w.shape[2:], x)
    attrs.pop("pad", None)
    for key, name in (("groups", "group"), ("offset_groups", "offset_group")):
        if n.int(name, 1) != 1:
            attrs[key] = n.int(name)
    named = {"b": n.optional(3), "mask": n.optional(4)}
    by_name = {key: value for key, value in named.items() if value is not None}
    return n.call("deform_conv", x, w, offset, by_name=by_name, **attrs)


def _causal_conv(n: Node) -> list[Value]:
    named = {"b": n.optional(2), "past": n.optional(3)}
    by_name = {key: value for key, value in named.items() if value is not None}
    activation = n.word("activation", "none")
    if activation not in ("none", "silu", "swish"):
        raise Unsupported(f"the activation {activation}")
    attrs = {} if activation == "none" else {"activation": "silu"}
    return n.calls(2, "causal_conv", n.input(0), n.input(1), by_name=by_name, **attrs)


ROWS: dict[str, Row] = {
    "Resize": _resize,
    "Upsample": _upsample,
    "CenterCropPad": _center_crop_pad,
    "GridSample": _grid_sample,
    "AffineGrid": _affine_grid,
    "RoiAlign": _roi_align,
    "MaxRoiPool": _max_roi_pool,
    "MaxUnpool": _max_unpool,
    "Col2Im": _columns,
    "DeformConv": _deform_conv,
    "CausalConvWithState": _causal_conv,
}
