"""Convolution, pooling, normalisation, attention, resizing, embedding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from irlang.importers.torch_call import FLOATS, Call, Rule, Uncovered, Value
from irlang.importers.torch_products import matmul
from irlang.importers.torch_shapes import padded, swapped


def pads(x: Sequence[int]) -> dict[str, Any]:
    """Padding that is the same on both sides."""
    return {"pad": "given", "before": list(x), "after": list(x)} if any(x) else {}


def spread(name: str, values: Sequence[int]) -> dict[str, Any]:
    """A stride or dilation, left out where it is 1."""
    return {name: list(values)} if any(n != 1 for n in values) else {}


def batched(c: Call, x: Value, rank: int, make: Any) -> Any:
    """A layer of samples, called on one that may have no axis of samples."""
    if x.rank == rank + 2:
        return make(x)
    found = make(c("expand_dims", x, axes=[0]))
    if isinstance(found, list):
        return [c("squeeze", item, axes=[0]) for item in found]
    return c("squeeze", found, axes=[0])


def convolve(c: Call, transposed: bool, output: Sequence[int] = ()) -> Any:
    """conv1d to conv3d, their transposed forms, and `convolution`."""
    x, w = (c.tensor(name) for name in ("input", "weight"))
    if x.dtype not in FLOATS:
        raise Uncovered("a convolution of integers")
    rank = w.rank - 2
    stride = c.numbers("stride", [1], rank)
    dilation = c.numbers("dilation", [1], rank)
    attrs: dict[str, Any] = {**spread("stride", stride), **spread("dilation", dilation)}
    groups = c.whole("groups", 1)
    if groups != 1:
        attrs["groups"] = groups
    padding = c.get("padding", [0])
    if padding == "same":
        need = [d * (int(k) - 1) for d, k in zip(dilation, w.shape[2:], strict=True)]
        attrs |= {
            "pad": "given",
            "before": [n // 2 for n in need],
            "after": [n - n // 2 for n in need],
        }
    elif padding != "valid":
        attrs |= pads(c.numbers("padding", [0], rank))
    more = [int(n) for n in output] or [int(n) for n in c.numbers("output_padding", [0], rank)]
    operands = [w, *([c.tensor("bias")] if c.has("bias") else [])]
    if not transposed:
        return batched(c, x, rank, lambda v: c("conv", v, *operands, **attrs))
    if any(more):
        attrs["output_padding"] = more
    return batched(c, x, rank, lambda v: c("conv_transpose", v, *operands, **attrs))


# ---- pooling


# ---- normalisation


def _named(c: Call, **names: str) -> dict[str, Value]:
    """Optional inputs that are given."""
    return {key: c.tensor(name) for key, name in names.items() if c.has(name)}


def _layer_norm(c: Call) -> Any:
    x = c.tensor("input")
    count = len(c.numbers("normalized_shape"))
    axes = list(range(x.rank - count, x.rank))
    eps = c.number("eps", 1e-5)
    by_name = _named(c, gamma="weight", beta="bias")
    y = c("layer_norm", x, by_name=by_name, axes=axes, eps=eps)
    if "native" not in c.node.target:
        return y
    mean, spread_ = _moments(c, x, axes, eps)
    return [y, mean, spread_]


def _moments(
    c: Call, x: Value, axes: list[int], eps: float, keep: bool = True
) -> tuple[Value, Value]:
    mean = c("reduce_mean", x, axes=axes, keepdims=keep)
    variance = c("reduce_variance", x, axes=axes, keepdims=keep)
    return mean, c("rsqrt", c("add", variance, eps))


def _rms_norm(c: Call) -> Value:
    x = c.tensor("input")
    count = len(c.numbers("normalized_shape"))
    eps = c.get("eps")
    if eps is None:
        eps = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "f64": 2.0**-52}[x.dtype]
    by_name = _named(c, gamma="weight")
    axes = list(range(x.rank - count, x.rank))
    return c("rms_norm", x, by_name=by_name, axes=axes, eps=eps)


def _group_norm(c: Call) -> Any:
    x = c.tensor("input")
    native = "native" in c.node.target
    groups = c.whole("group" if native else "num_groups")
    eps = c.number("eps", 1e-5)
    if math.prod(x.shape) == 0:
        raise Uncovered("nothing to normalise")
    by_name = _named(c, gamma="weight", beta="bias")
    y = c("group_norm", x, by_name=by_name, groups=groups, eps=eps)
    if not native:
        return y
    split = c.reshape(x, [x.shape[0], groups, math.prod(x.shape[1:]) // groups])
    return [y, *_moments(c, split, [2], eps, keep=False)]


def _channels(x: Value) -> list[int]:
    return [d for d in range(x.rank) if d != 1]


def _batch_norm(c: Call) -> Any:
    x = c.tensor("input")
    if 0 in x.shape:
        raise Uncovered("nothing to normalise")
    eps = c.number("eps", 1e-5)
    by_name = _named(c, scale="weight", bias="bias")
    kind = c.node.target.split(".")[1]
    trains = c.flag("training") if "training" in c.node.args else kind == "_batch_norm_with_update"
    if not trains:
        by_name |= {"mean": c.tensor("running_mean"), "var": c.tensor("running_var")}
        y = c("batch_norm", x, by_name=by_name, eps=eps)
        nothing = c.param(0, (0,), c.out)
        return [y, nothing, nothing, nothing][: len(c.node.results)]
    y, mean, variance = c.several("batch_norm_train", x, by_name=by_name, eps=eps)
    if c.has("running_mean") and kind != "_native_batch_norm_legit_functional":
        _update(c, x, mean, variance)
    if len(c.node.results) == 1:
        return y
    found = [y, mean, c("rsqrt", c("add", variance, eps))]
    return [*found, c.param(0, (0,), "u8")][: len(c.node.results)]


def _update(c: Call, x: Value, mean: Value, variance: Value) -> None:
    """The running statistics, which training changes in place."""
    momentum = c.number("momentum", 0.1)
    count = math.prod(x.shape) // x.shape[1]
    unbiased = c("multiply", variance, count / (count - 1)) if count > 1 else variance
    for name, fresh in (("running_mean", mean), ("running_var", unbiased)):
        old = c.tensor(name)
        c.extra[name] = c("add", c("multiply", old, 1 - momentum), c("multiply", fresh, momentum))


def _instance_norm(c: Call) -> Value:
    x = c.tensor("input")
    eps = c.number("eps", 1e-5)
    if not c.flag("use_input_stats"):
        by_name = _named(c, scale="weight", bias="bias")
        by_name |= {"mean": c.tensor("running_mean"), "var": c.tensor("running_var")}
        return c("batch_norm", x, by_name=by_name, eps=eps)
    if c.has("running_mean"):
        axes = list(range(2, x.rank))
        mean = c("reduce_mean", x, axes=[0, *axes])
        variance = c("reduce_variance", x, axes=axes, correction=1)
        variance = c("reduce_mean", variance, axes=[0])
        momentum = c.number("momentum", 0.1)
        for name, fresh in (("running_mean", mean), ("running_var", variance)):
            old = c("multiply", c.tensor(name), 1 - momentum)
            c.extra[name] = c("add", old, c("multiply", fresh, momentum))
    by_name = _named(c, gamma="weight", beta="bias")
    return c("instance_norm", x, by_name=by_name, eps=eps)


def _softmax(op: str) -> Rule:
    def rule(c: Call) -> Value:
        x = c.cast(c.tensor("self"), c.out)
        if x.rank == 0:
            return c.reshape(c(op, c.reshape(x, [1]), axis=0), [])
        return c(op, x, axis=c.axis("dim", x.rank))

    return rule


def _safe_softmax(c: Call) -> Any:
    """0 where all are -inf."""
    y = _softmax("softmax")(c)
    x = c.cast(c.tensor("self"), c.out)
    if x.rank == 0:
        return y
    top = c("reduce_max", x, axes=[c.axis("dim", x.rank)], keepdims=True)
    return c("where", c("equal", top, -math.inf), 0, y)


# ---- attention


def _attention(c: Call) -> Value:
    q, k, v = (c.tensor(name) for name in ("query", "key", "value"))
    if c.number("dropout_p", 0.0):
        raise Uncovered("dropout is random")
    attrs: dict[str, Any] = {}
    if c.flag("is_causal"):
        attrs["causal"] = True
    if c.has("scale"):
        attrs["scale"] = c.number("scale")
    by_name: dict[str, Value] = {}
    if c.has("attn_mask"):
        mask = c.tensor("attn_mask")
        by_name["mask" if mask.dtype == "bool" else "bias"] = mask
    lead = c.result().shape[:-2]
    grouped = c.flag("enable_gqa")
    if q.rank != 4 or (not grouped and {q.shape[:-2], k.shape[:-2], v.shape[:-2]} != {lead}):
        return _attention_by_products(c, q, k, v, by_name)
    return c("attention", q, k, v, by_name=by_name, **attrs)


def _attention_by_products(
    c: Call, q: Value, k: Value, v: Value, by_name: dict[str, Value]
) -> Value:
    """The same where the axes before the last two are not samples and heads."""
    scale = c.number("scale") if c.has("scale") else max(int(q.shape[-1]), 1) ** -0.5
    scores = matmul(c, c("multiply", q, scale), swapped(c, k, k.rank - 2, k.rank - 1))
    if c.flag("is_causal"):
        rows, columns = (int(n) for n in scores.shape[-2:])
        scores = c("where", c.param(np.tri(rows, columns, dtype=bool)), scores, -math.inf)
    if "mask" in by_name:
        scores = c("where", by_name["mask"], scores, -math.inf)
    if "bias" in by_name:
        scores = c("add", scores, by_name["bias"])
    return matmul(c, c("softmax", scores), v)


# ---- resizing


def _resize(mode: str, **fixed: Any) -> Rule:
    """A scale that is given is the one that coordinates follow from, else the quotient of sizes."""

    def rule(c: Call) -> Value:
        x = c.tensor("input" if "input" in c.node.args else "self")
        rank = x.rank - 2
        attrs: dict[str, Any] = {"mode": mode, **fixed, "size": list(c.result().shape[2:])}
        scales = c.get("scale_factors")
        if scales is None:
            names = ("scales",) if rank == 1 else ("scales_d", "scales_h", "scales_w")[-rank:]
            scales = [c.get(name) for name in names]
        if c.flag("align_corners"):
            attrs["coord"] = "align_corners"
        elif all(isinstance(scale, float) for scale in scales) and scales:
            attrs["scale"] = list(scales)
        return c("resize", x, **attrs)

    return rule


_GRID_MODES = ("linear", "nearest", "cubic")
_GRID_PADS = ("zeros", "border", "reflection")


def _grid_sample(c: Call) -> Value:
    mode, padding = c.whole("interpolation_mode"), c.whole("padding_mode")
    return c(
        "grid_sample",
        c.tensor("input"),
        c.tensor("grid"),
        mode=_GRID_MODES[mode],
        padding=_GRID_PADS[padding],
        align_corners=c.flag("align_corners"),
    )


def _embedding(c: Call) -> Value:
    return c("embedding", c.tensor("weight"), c.tensor("indices"))


def _dropout(c: Call) -> Any:
    if (c.flag("train", True) or c.flag("training")) and c.number("p", 0.5):
        raise Uncovered("dropout is random: call model.eval() before the export")
    x = c.tensor("input")
    ones = c.param(True, x.shape, "bool")
    return x if len(c.node.results) == 1 else [x, ones]


def _one_hot(c: Call) -> Value:
    ids = c.tensor("self")
    depth = c.result().shape[-1]
    return c("one_hot", ids, depth=depth, to="i64")


def _unfold_images(c: Call) -> Value:
    """Windows as columns: channels and places of the window first, positions last."""
    x = c.tensor("self")
    lone = x.rank == 3
    x = c("expand_dims", x, axes=[0]) if lone else x
    kernel, dilation = c.numbers("kernel_size", None, 2), c.numbers("dilation", [1], 2)
    padding, stride = c.numbers("padding", [0], 2), c.numbers("stride", [1], 2)
    if any(padding):
        x = padded(c, x, [padding[1], padding[1], padding[0], padding[0]], "constant", 0)
    sizes = [int(n) for n in x.shape[2:]]
    counts = [
        (n - d * (k - 1) - 1) // s + 1
        for n, d, k, s in zip(sizes, dilation, kernel, stride, strict=True)
    ]
    rows, columns = (
        dilation[d] * np.arange(kernel[d])[:, None] + stride[d] * np.arange(counts[d])[None, :]
        for d in range(2)
    )
    places = rows[:, None, :, None] * sizes[1] + columns[None, :, None, :]
    flat = c.reshape(x, [*x.shape[:2], sizes[0] * sizes[1]])
    table = places.reshape(math.prod(kernel), math.prod(counts)).astype(np.int64)
    taken = c("gather", flat, c.param(table), axis=2)
    return c.reshape(taken, c.result().shape)


LAYERS: dict[str, Rule] = {
    **{f"conv{d}d": lambda c: convolve(c, False) for d in (1, 2, 3)},
    **{f"conv_transpose{d}d": lambda c: convolve(c, True) for d in (1, 2, 3)},
    "convolution": lambda c: convolve(
        c, c.flag("transposed"), c.numbers("output_padding") if c.flag("transposed") else ()
    ),
    "layer_norm": _layer_norm,
    "native_layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "group_norm": _group_norm,
    "native_group_norm": _group_norm,
    **dict.fromkeys(
        (
            *("batch_norm", "native_batch_norm", "_native_batch_norm_legit"),
            *("_native_batch_norm_legit_no_training", "_batch_norm_with_update"),
        ),
        _batch_norm,
    ),
    "instance_norm": _instance_norm,
    "softmax": _softmax("softmax"),
    "_softmax": _softmax("softmax"),
    "log_softmax": _softmax("log_softmax"),
    "_log_softmax": _softmax("log_softmax"),
    "special_softmax": _softmax("softmax"),
    "special_log_softmax": _softmax("log_softmax"),
    "_safe_softmax": _safe_softmax,
    "scaled_dot_product_attention": _attention,
    **{
        f"upsample_nearest{d}d": _resize("nearest", coord="asymmetric", rounding="floor")
        for d in (1, 2, 3)
    },
    **{
        f"_upsample_nearest_exact{d}d": _resize("nearest", rounding="round_prefer_ceil")
        for d in (1, 2, 3)
    },
    "upsample_linear1d": _resize("linear"),
    "upsample_bilinear2d": _resize("linear"),
    "upsample_trilinear3d": _resize("linear"),
    "upsample_bicubic2d": _resize("cubic"),
    **dict.fromkeys(("grid_sampler", "grid_sampler_2d", "grid_sampler_3d"), _grid_sample),
    "affine_grid_generator": lambda c: c(
        "affine_grid",
        c.tensor("theta"),
        size=c.numbers("size"),
        align_corners=c.flag("align_corners"),
    ),
    "embedding": _embedding,
    **dict.fromkeys(
        (
            *("dropout", "native_dropout", "feature_dropout", "alpha_dropout"),
            "feature_alpha_dropout",
        ),
        _dropout,
    ),
    "one_hot": _one_hot,
    "im2col": _unfold_images,
}  # fmt: skip
