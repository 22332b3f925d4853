"""MXNet's further words: operators of `mx.nd` for which `mx.np` or `mx.npx` have some, too."""

from __future__ import annotations

from collections.abc import Sequence

from irlang.lower.call import Call, Native
from irlang.lower.legalise import windows
from irlang.lower.mx_arrays import called, of_old, plain, reduction, row
from irlang.lower.mx_builder import MxBuilder
from irlang.lower.mx_layers import framed, has_windows
from irlang.lower.mx_reshape import RESHAPE
from irlang.lower.spelling import functions
from irlang.lower.value import Value

Mx = Call[MxBuilder]


def _matmul(call: Mx) -> Value | None:
    a, b = call.input("a"), call.input("b")
    if a.rank < 2 or a.shape[:-2] != b.shape[:-2] or 0 in (*a.shape, *b.shape):
        return None
    options = {name: call[name] or None for name in ("transpose_a", "transpose_b")}
    function = "dot" if a.rank == 2 else "linalg_gemm2"
    return call.value(called(function, a, b, **options))


def _roi_pool(call: Mx) -> Value | None:
    """Regions are no smaller than in the input."""
    x, rois = call.input("x"), call.input("rois")
    if x.rank != 4 or call["scale"] > 1 or 0 in (*x.shape, *rois.shape):
        return None
    options = {"pooled_size": tuple(call["size"]), "spatial_scale": float(call["scale"])}
    return call.value(called("ROIPooling", x, rois, **options))


def _equal_parts(call: Mx) -> Sequence[Value] | None:
    """Of which there are several, all of one size."""
    x = call.input("x")
    axis, shapes = call.axis("axis", x.rank), {info.shape for info in call.outputs}
    if len(shapes) != 1 or len(call.outputs) < 2 or 0 in x.shape:
        return None
    text = of_old("SliceChannel", x, num_outputs=len(call.outputs), axis=axis)
    names = call.build.several(text, *call.node.outputs)
    return [call.value(f"{name}.as_np_ndarray()", i) for i, name in enumerate(names)]


def _reverse(call: Mx) -> Value | None:
    x = call.input("x")
    axes = call.axes("axes", x.rank) if x.rank else ()
    return call.value(called("reverse", x, axis=tuple(axes))) if axes else None


def _binary(function: str, **only: str) -> Native:
    """Of two tensors of as many axes; `only` are attributes with the one value that it has."""

    def rule(call: Mx) -> Value | None:
        a, b = call.values["a"], call.values["b"]
        fits = all(call[name] == value for name, value in only.items())
        if not fits or a.rank != b.rank or not a.rank or a.dtype != b.dtype:
            return None
        if a.literal is not None or b.literal is not None or 0 in (*a.shape, *b.shape):
            return None
        return call.value(called(f"broadcast_{function}", a, b))

    return row(f"broadcast_{function}", rule)


def _along(function: str) -> Native:
    """Along an axis."""

    def rule(call: Mx) -> Value | None:
        x = call.input("x")
        if 0 in x.shape or not x.rank:
            return None
        return call.value(called(function, x, axis=call.axis_said("axis", x.rank)))

    return row(function, rule)


def _take(call: Mx) -> Value | None:
    """It is asked to refuse places that are not there, which it cuts to the end by itself."""
    x, ids = call.input("x"), call.input("ids")
    if call["negative"] != "refused" or 0 in x.shape or not ids.rank:
        return None
    axis = call.axis_said("axis", x.rank)
    return call.value(called("take", x, ids, axis=axis, mode='"raise"'))


def _slice_axis(call: Mx) -> Value | None:
    """Of neighbours along one axis."""
    x, axes = call.input("x"), call["axes"]
    if len(axes) != 1 or call["step"][0] != 1 or 0 in x.shape:
        return None
    first, count = int(call["first"][0]), call.out.shape[call.axes("axes", x.rank)[0]]
    if not count:
        return None
    axis = call.axes_said("axes", x.rank)[0]
    return call.value(called("slice_axis", x, axis=axis, begin=first, end=first + count))


def _exchange(call: Mx) -> Value | None:
    x, order = call.input("x"), tuple(call["order"])
    changed = [axis for axis, source in enumerate(order) if axis != source]
    if len(changed) != 2 or len(order) != x.rank or 0 in x.shape:
        return None
    return call.value(called("SwapAxis", x, dim1=changed[0], dim2=changed[1]))


def _elder(function: str, **attributes: str) -> Native:
    """Of the inputs in their order, none of which lacks axes or elements; lists have a number."""

    def rule(call: Mx) -> Value | None:
        values = [call.input(name) for name in call.values]
        options = {key: call[name] for key, name in attributes.items()}
        bare = any(0 in value.shape or not value.rank for value in values) or not call.out.shape
        if bare or () in options.values() or any(v.dtype != values[0].dtype for v in values):
            return None
        return call.value(called(function, *values, **options))

    return row(function, rule)


def _expand_dims(call: Mx) -> Value | None:
    x, axes = call.input("x"), tuple(call["axes"])
    if len(axes) != 1 or not x.rank or 0 in x.shape:
        return None
    return call.value(called("expand_dims", x, axis=axes[0]))


def _broadcast(call: Mx) -> Value | None:
    """To as many axes, none of which is empty."""
    x, shape = call.input("x"), tuple(call["shape"])
    if not x.rank or len(shape) != x.rank or 0 in (*x.shape, *shape):
        return None
    return call.value(called("broadcast_to", x, shape=shape))


def _activation(call: Mx) -> Value | None:
    """Along the last axis of rows, or the channels of images."""
    x = call.input("x")
    axis = call.axis("axis", x.rank) if x.rank else 0
    mode = {(2, 1): "instance", (4, 1): "channel"}.get((x.rank, axis))
    if mode is None or 0 in x.shape:
        return None
    return call.value(called("SoftmaxActivation", x, mode=f'"{mode}"'))


def _diagonal(call: Mx) -> Value | None:
    x = call.input("x")
    last = x.rank > 1 and call.axes("axes", x.rank) == (x.rank - 2, x.rank - 1)
    if not last or x.shape[-1] != x.shape[-2] or not all((*x.shape, *call.out.shape)):
        return None
    return call.value(called("linalg_extractdiag", x, offset=call["offset"]))


def _elder_conv(call: Mx) -> Value | None:
    """The convolution before the one that there is, of images."""
    x, frame = framed(call)
    if frame.rank != 2 or call.out.dtype != "f32" or not call.has("b"):
        return None
    if not has_windows(frame) or not all((*x.shape, *call.input("w").shape)):
        return None
    options = {
        "kernel": frame.window, "stride": frame.stride, "dilate": frame.dilation,
        "pad": frame.before, "num_filter": call.out.shape[1], "num_group": call["groups"],
    }  # fmt: skip
    given = x, call.input("w"), call.input("b")
    return call.value(called("Convolution_v1", *given, **options))


def _elder_pool(kind: str) -> Native:
    """The pool before the one that there is; its mean counts what is padded."""

    def rule(call: Mx) -> Value | None:
        x, frame = call.input("x"), windows(call)
        fits = frame.rank == 2 and set(frame.dilation) == {1} and frame.symmetric
        if not fits or call["ceil_mode"] or not all((*x.shape, *call.out.shape)):
            return None
        if kind == "avg" and frame.padded and not call["count_include_pad"]:
            return None
        options = {
            "kernel": frame.window, "stride": frame.stride, "pad": frame.before,
            "pool_type": f'"{kind}"',
        }  # fmt: skip
        return call.value(called("Pooling_v1", x, **options))

    return row("Pooling_v1", rule)


WORDS: dict[str, Native | tuple[Native, ...]] = {
    "reshape": RESHAPE,
    "slice": row("slice_axis", _slice_axis),
    "transpose": (row("SwapAxis", _exchange), _elder("transpose", axes="order")),
    "squeeze": _elder("squeeze", axis="axes"),
    "expand_dims": row("expand_dims", _expand_dims),
    "concat": _elder("concat", dim="axis"),
    "stack": _elder("stack", axis="axis"),
    "tile": _elder("tile", reps="repeats"),
    "repeat": _elder("repeat", repeats="repeats", axis="axis"),
    "broadcast_to": row("broadcast_to", _broadcast),
    "diagonal": row("linalg_extractdiag", _diagonal),
    "conv": row("Convolution_v1", _elder_conv),
    "max_pool": _elder_pool("max"),
    "avg_pool": _elder_pool("avg"),
    "max_roi_pool": row("ROIPooling", _roi_pool, constant=("rois",)),
    "reduce_sum": reduction("sum"),
    "reduce_mean": reduction("mean"),
    "reduce_prod": reduction("prod"),
    "reduce_max": reduction("max"),
    "reduce_min": reduction("min"),
    "reduce_l2": reduction("norm", single=True),
    "matmul": row("dot, mx.nd.linalg_gemm2", _matmul),
    **{
        name: _binary(function)
        for name, function in functions(
            "add subtract=sub multiply=mul divide=div maximum minimum power hypot"
        )
    },
    "modulo": _binary("mod", sign_of="divisor"),
    "softmax": (_along("softmax"), row("SoftmaxActivation", _activation)),
    "log_softmax": _along("log_softmax"),
    "gather": row("take", _take),
    "split": row("SliceChannel", _equal_parts),
    "reverse": row("reverse", _reverse),
    **{name: plain(function) for name, function in functions("cbrt trunc=fix square")},
}
