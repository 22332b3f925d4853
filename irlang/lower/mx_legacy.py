"""How MXNet spells layers, images, matrices and places that `mx.np` and `mx.npx` have no word for:
by the operators of `mx.nd`. They are handed tensors without elements, too, which some do not bear.
"""

from __future__ import annotations

import math
from typing import Any

from irlang.lower.call import Call, Native
from irlang.lower.keras_call import quoted
from irlang.lower.mx_arrays import WIDE, called, of_old
from irlang.lower.mx_builder import MxBuilder
from irlang.lower.spelling import invoke
from irlang.lower.value import Value

Mx = Call[MxBuilder]


def _called(call: Mx, function: str, *inputs: Value, **options: Any) -> str:
    """What a function of `mx.nd` gives of tensors, or of numbers, as an array of `mx.np`."""
    return called(function, *map(call.build.receiver, inputs), **options)


def _one(call: Mx, function: str, *inputs: Value, **options: Any) -> Value | None:
    """One result; None of what is not of 32 or 64 bits."""
    if inputs[0].dtype not in WIDE:
        return None
    return _shaped(call, _called(call, function, *inputs, **options))


def _shaped(call: Mx, text: str, number: int = 0) -> Value:
    """A result; what has no axes `mx.nd` gives one."""
    shape = call.outputs[number].shape
    return call.value(text if shape else invoke("mx.np.reshape", text, "()"), number)


def _plain(function: str) -> Native:
    """Of one input, and no attributes."""
    return Native(f"mx.nd.{function}", lambda call: _one(call, function, call.input("x")))


def _hard_sigmoid(call: Mx) -> Value | None:
    slope = {name: float(call[name]) for name in ("alpha", "beta")}
    return _one(call, "hard_sigmoid", call.input("x"), **slope)


def _instance_norm(call: Mx) -> Value | None:
    """Channels come second; scale and shift are asked for, and all is of one type."""
    x, dtype = call.input("x"), call.out.dtype
    if x.rank < 3 or call.axis("axis", x.rank) != 1 or dtype != "f32":
        return None
    build, shape = call.build, (x.shape[1],)
    gamma, beta = (
        call.input(name) if call.has(name) else build.expand(build.scalar(number, dtype), shape)
        for name, number in (("gamma", 1.0), ("beta", 0.0))
    )
    return _one(call, "InstanceNorm", x, gamma, beta, eps=float(call["eps"]))


def _response(call: Mx) -> Value | None:
    """As many neighbours before as behind, and no more than there are channels."""
    x, size = call.input("x"), call["size"]
    if x.rank != 4 or size % 2 == 0 or call["before"] != size // 2 or size > x.shape[1]:
        return None
    options = {"alpha": float(call["alpha"]), "beta": float(call["beta"])}
    return _one(call, "LRN", x, nsize=size, knorm=float(call["bias"]), **options)


def _blocks(function: str) -> Native:
    def rule(call: Mx) -> Value | None:
        x = call.input("x")
        if call["mode"] != "dcr" or 0 in x.shape:  # which it refuses
            return None
        return _one(call, function, x, block_size=call["block_size"])

    return Native(f"mx.nd.{function}", rule)


def _upsample(call: Mx) -> Value | None:
    """By one number along both axes."""
    x, scales = call.input("x"), set(call["scale"])
    if x.rank != 4 or len(scales) != 1:
        return None
    return _one(call, "UpSampling", x, scale=scales.pop(), sample_type=quoted("nearest"))


def _pad(call: Mx) -> Value | None:
    """Of images and volumes, none of samples and channels."""
    x, modes = call.input("x"), ("constant", "edge", "reflect")
    ends = tuple(zip(call["before"], call["after"], strict=True))
    if x.rank not in (4, 5) or call["mode"] not in modes or any(map(any, ends[:2])):
        return None
    value = {"constant_value": float(call["value"])} if call["mode"] == "constant" else {}
    width = sum(ends, ())
    return _one(call, "pad", x, mode=quoted(call["mode"]), pad_width=width, **value)


def _grid_sample(call: Mx) -> Value | None:
    """Of images, where coordinates lie second."""
    x, grid = call.input("x"), call.input("grid")
    usual = call["mode"] == "linear" and call["padding"] == "zeros" and call["align_corners"]
    if x.rank != 4 or grid.rank != 4 or not usual:
        return None
    return _one(call, "BilinearSampler", x, call.build.transpose(grid, (0, 3, 1, 2)))


def _affine_grid(call: Mx) -> Value | None:
    theta, size = call.input("theta"), tuple(call["size"])
    if len(size) != 2 or not call["align_corners"] or theta.dtype not in WIDE:
        return None
    if theta.rank != 3:
        return None
    build, n = call.build, theta.shape[0]
    flat = build.reshape(theta, (n, math.prod(theta.shape[1:])))
    text = _called(call, "GridGenerator", flat, transform_type=quoted("affine"), target_shape=size)
    made = build.emit(text, (n, 2, *size), theta.dtype)
    return build.transpose(made, (0, 2, 3, 1))


def _adaptive(call: Mx) -> Value | None:
    x = call.input("x")
    if x.rank != 4:
        return None
    return _one(call, "contrib.AdaptiveAvgPooling2D", x, output_size=tuple(call["size"]))


def _roi_align(call: Mx) -> Value | None:
    """The image of a region stands before its corners; below 1 is as many samples as fit."""
    x, rois = call.input("x"), call.input("rois")
    if x.rank != 4 or call["aligned"] or call["mode"] != "avg" or call["sampling_ratio"] < 1:
        return None
    build, batch = call.build, call.input("batch")
    if rois.rank != 2 or batch.rank != 1 or not 0 <= call["scale"] <= 1:
        return None
    image = build.reshape(build.cast(batch, rois.dtype), (batch.shape[0], 1))
    return _one(
        call, "contrib.ROIAlign", x, build.concat([image, rois], 1),
        pooled_size=tuple(call["size"]), spatial_scale=float(call["scale"]),
        sample_ratio=call["sampling_ratio"],
    )  # fmt: skip


def _gather_nd(call: Mx) -> Value | None:
    """Places lie along the first axis."""
    x, ids = call.input("x"), call.input("ids")
    if call["batch_dims"] or call["negative"] != "refused" or ids.rank < 2:
        return None
    turned = call.build.transpose(ids, (ids.rank - 1, *range(ids.rank - 1)))
    return _one(call, "gather_nd", x, turned)


def _log_determinant(call: Mx) -> list[Value] | None:
    x = call.input("x")
    if x.dtype not in WIDE:
        return None
    text = of_old("linalg_slogdet", call.build.receiver(x))
    both = call.build.once(text, (), x.dtype, "both").text
    return [_shaped(call, f"{both}[{n}].as_np_ndarray()", n) for n in range(len(call.outputs))]


def _triangular(call: Mx) -> Value | None:
    if call["unit_diagonal"]:
        return None
    return _one(call, "linalg_trsm", call.input("a"), call.input("b"), lower=call["lower"])


def _nansum(function: str) -> Native:
    """Along axes that are named; none are all."""

    def rule(call: Mx) -> Value | None:
        x = call.input("x")
        if x.rank and not call["axes"]:
            return None
        axes = {"axis": call.axes_said("axes", x.rank)} if call.says("axes") else {}
        return _one(call, function, x, **axes, keepdims=call["keepdims"] or None)

    return Native(f"mx.nd.{function}", rule)


def _reverse_sequence(call: Mx) -> Value | None:
    """Steps come first, then samples; lengths are of the type of the sequences."""
    x = call.input("x")
    if x.rank < 2 or call.axis("axis", x.rank) or call.axis("batch_axis", x.rank) != 1:
        return None
    lengths = call.build.cast(call.input("lengths"), x.dtype)
    return _one(call, "SequenceReverse", x, lengths, use_sequence_length=True)


def _unravel(call: Mx) -> Value | None:
    ids = call.input("ids")
    if ids.dtype not in ("i32", "i64"):
        return None
    return call.value(_called(call, "unravel_index", ids, shape=tuple(call["shape"])))


LEGACY: dict[str, Native] = {
    "hard_sigmoid": Native("mx.nd.hard_sigmoid", _hard_sigmoid),
    "instance_norm": Native("mx.nd.InstanceNorm", _instance_norm),
    "local_response_norm": Native("mx.nd.LRN", _response),
    "space_to_depth": _blocks("space_to_depth"),
    "depth_to_space": _blocks("depth_to_space"),
    "upsample": Native("mx.nd.UpSampling", _upsample),
    "pad": Native("mx.nd.pad", _pad),
    "grid_sample": Native("mx.nd.BilinearSampler", _grid_sample),
    "affine_grid": Native("mx.nd.GridGenerator", _affine_grid),
    "adaptive_avg_pool": Native("mx.nd.contrib.AdaptiveAvgPooling2D", _adaptive),
    "roi_align": Native("mx.nd.contrib.ROIAlign", _roi_align, constant=("rois",)),
    "gather_nd": Native("mx.nd.gather_nd", _gather_nd),
    "cholesky": _plain("linalg_potrf"),
    "determinant": _plain("linalg_det"),
    "inverse": _plain("linalg_inverse"),
    "log_determinant": Native("mx.nd.linalg_slogdet", _log_determinant),
    "triangular_solve": Native("mx.nd.linalg_trsm", _triangular),
    "reduce_nansum": _nansum("nansum"),
    "reduce_nanprod": _nansum("nanprod"),
    "reverse_sequence": Native("mx.nd.SequenceReverse", _reverse_sequence),
    "unravel_index": Native("mx.nd.unravel_index", _unravel),
}
