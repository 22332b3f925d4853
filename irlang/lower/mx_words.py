"""MXNet's further words: operators of `mx.nd` for which `mx.np` or `mx.npx` have some, too."""

from __future__ import annotations

from collections.abc import Sequence

from irlang.lower.call import Call, Native
from irlang.lower.mx_arrays import called, of_old, plain, reduction, row
from irlang.lower.mx_builder import MxBuilder
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


WORDS: dict[str, Native] = {
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
    "softmax": _along("softmax"),
    "log_softmax": _along("log_softmax"),
    "gather": row("take", _take),
    "split": row("SliceChannel", _equal_parts),
    "reverse": row("reverse", _reverse),
    **{name: plain(function) for name, function in functions("cbrt trunc=fix square")},
}
