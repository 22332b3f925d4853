"""How PyTorch spells counts, ranks and moments."""

from __future__ import annotations

from irlang.lower.call import Call, Native
from irlang.lower.spelling import differences, invoke, of_rows, over_axes
from irlang.lower.torch_builder import TorchBuilder
from irlang.lower.value import Value

Torch = Call[TorchBuilder]
_WIDE = ("f32", "f64")


def _count(call: Torch) -> Value | None:
    x = call.input("x")
    axes = call.axes("axes", x.rank) if x.rank else ()
    if not axes:
        return None
    text = invoke("torch.count_nonzero", x, call.axes_said("axes", x.rank))
    shape = tuple(size for axis, size in enumerate(x.shape) if axis not in axes)
    found = Value(text, shape, "i64")
    return call.build.reshape(found, call.out.shape) if call["keepdims"] else found


def _quantile(call: Torch) -> Value | None:
    """Of a share of 1 / 2 the element below is `torch.median`, too, and in every type."""
    x = call.input("x")
    axis, keep = call.axis_said("axis", x.rank), call["keepdims"] or None
    if call["q"] == 0.5 and call["interpolation"] == "lower":
        return call.value(f"{invoke('torch.median', x, dim=axis, keepdim=keep)}.values")
    if x.dtype not in _WIDE:
        return None
    kind = None if call["interpolation"] == "linear" else f'"{call["interpolation"]}"'
    options = {"dim": axis, "keepdim": keep, "interpolation": kind}
    return call.value(invoke("torch.quantile", x, float(call["q"]), **options))


def among(function: str, after: bool = False) -> Native:
    """The place of each element among sorted numbers; after: whether it is told after these."""

    def rule(call: Torch) -> Value:
        x = call.input("x")
        numbers, dtype = list(map(float, call["boundaries"])), call.build.dtype(x.dtype)
        table = call.build.spell("array", numbers=numbers, dtype=dtype)
        given = (table, x) if after else (x, table)
        return call.value(invoke(function, *given, right=call["right"] or None))

    return Native(function, rule)


def _bincount(call: Torch) -> Value | None:
    ids = call.input("ids")
    if ids.dtype in ("u16", "u32", "u64") or ids.rank != 1:
        return None
    return call.value(invoke("torch.bincount", ids, minlength=call["size"]))


def _weighed(call: Torch) -> Value | None:
    ids, weights = call.input("ids"), call.input("weights")
    if ids.dtype in ("u16", "u32", "u64") or ids.rank != 1 or weights.dtype not in _WIDE:
        return None
    return call.value(invoke("torch.bincount", ids, weights, call["size"]))


def _histogram(call: Torch) -> Value | None:
    x = call.input("x")
    if call["outside"] != "dropped" or x.dtype not in _WIDE:
        return None
    options = {"bins": call["bins"], "min": float(call["low"]), "max": float(call["high"])}
    counted = Value(invoke("torch.histc", x, **options), call.out.shape, x.dtype)
    return call.build.cast(counted, call.out.dtype)


def _trapezoids(function: str) -> Native:
    def rule(call: Torch) -> Value:
        x = call.input("x")
        options = {"dx": float(call["dx"]), "dim": call.axis_said("axis", x.rank)}
        return call.value(invoke(function, x, **options))

    return Native(function, rule)


def _nanquantile(call: Torch) -> Value | None:
    """Of a share of 1 / 2 the element below is `torch.nanmedian`, too, and in every type."""
    x = call.input("x")
    axis, keep = call.axis_said("axis", x.rank), call["keepdims"] or None
    if call["q"] == 0.5 and call["interpolation"] == "lower":
        return call.value(f"{invoke('torch.nanmedian', x, dim=axis, keepdim=keep)}.values")
    if x.dtype not in _WIDE:
        return None
    kind = None if call["interpolation"] == "linear" else f'"{call["interpolation"]}"'
    options = {"dim": axis, "keepdim": keep, "interpolation": kind}
    return call.value(invoke("torch.nanquantile", x, float(call["q"]), **options))


def _searchsorted(call: Torch) -> Value:
    row, x = call.input("row"), call.input("x")
    return call.value(invoke("torch.searchsorted", row, x, right=call["right"] or None))


def _gradient(call: Torch) -> Value:
    x = call.input("x")
    options = {"spacing": float(call["spacing"]), "dim": call.axis_said("axis", x.rank)}
    options["edge_order"] = call["edge_order"]
    return call.value(f"{invoke('torch.gradient', x, **options)}[0]")


STATISTICS: dict[str, Native] = {
    "nanquantile": Native("torch.nanquantile, torch.nanmedian", _nanquantile),
    "searchsorted": Native("torch.searchsorted", _searchsorted),
    "central_differences": Native("torch.gradient", _gradient),
    "count_nonzero": Native("torch.count_nonzero", _count),
    "reduce_nansum": over_axes("torch.nansum", axis="dim", keepdims="keepdim"),
    "reduce_nanmean": over_axes("torch.nanmean", axis="dim", keepdims="keepdim"),
    "quantile": Native("torch.quantile, torch.median", _quantile),
    "bucketize": among("torch.bucketize"),
    "bincount": Native("torch.bincount", _bincount),
    "weighted_bincount": Native("torch.bincount", _weighed),
    "histogram": Native("torch.histc", _histogram),
    "differences": differences("torch.diff", axis="dim"),
    "trapezoid": _trapezoids("torch.trapezoid"),
    "cumulative_trapezoid": _trapezoids("torch.cumulative_trapezoid"),
    "cov": of_rows("torch.cov", correction="correction"),
    "corrcoef": of_rows("torch.corrcoef"),
}
