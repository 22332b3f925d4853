"""How Keras 3 spells counts, ranks and moments: `keras.ops`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from irlang.lower.call import Native
from irlang.lower.keras_call import KERAS_3, Keras, positions
from irlang.lower.numpy_words import (
    average,
    correlation,
    map_coordinates,
    percentile,
    place_without_nan,
    running,
    saturating,
    search,
    spread,
    without_nan,
)
from irlang.lower.spelling import differences, invoke, of_rows, over_axes
from irlang.lower.value import Value


def _whole(call: Keras, text: str) -> Value:
    """A count, which backends give in one of two types."""
    return call.value(f'ops.cast({text}, "int64")')


def _count(call: Keras) -> Value | None:
    x = call.input("x")
    axes = call.axes_said("axes", x.rank) if x.rank else ()
    if not axes or call["keepdims"]:
        return None
    axis: Any = axes[0] if len(axes) == 1 else axes
    return _whole(call, invoke("ops.count_nonzero", x, axis=axis))


def _quantile(call: Keras) -> Value:
    x = call.input("x")
    options = {"axis": call.axis_said("axis", x.rank), "keepdims": call["keepdims"] or None}
    if call["q"] == 0.5 and call["interpolation"] == "linear":
        return call.value(invoke("ops.median", x, **options))
    options["method"] = f'"{call["interpolation"]}"'
    return call.value(invoke("ops.quantile", x, float(call["q"]), **options))


def _bucketize(call: Keras) -> Value | None:
    if not call["right"]:
        return None
    table = list(map(float, call["boundaries"]))
    return _whole(call, invoke("ops.digitize", call.input("x"), str(table)))


def _bincount(call: Keras) -> Value | None:
    if call.input("ids").rank != 1:
        return None
    ids = positions(call, "ids")
    return _whole(call, invoke("ops.bincount", ids, minlength=call["size"]))


def _weighed(call: Keras) -> Value | None:
    weights = call.input("weights")
    if call.input("ids").rank != 1 or weights.dtype != "f32":
        return None
    given = {"weights": weights, "minlength": call["size"]}
    return call.value(invoke("ops.bincount", positions(call, "ids"), **given))


def _histogram(call: Keras) -> Value | None:
    x = call.input("x")
    if call["outside"] != "dropped" or x.rank != 1:
        return None
    ends = (float(call["low"]), float(call["high"]))
    return _whole(call, f"{invoke('ops.histogram', x, bins=call['bins'], range=ends)}[0]")


def _trapezoid(call: Keras) -> Value:
    x = call.input("x")
    options = {"dx": float(call["dx"]), "axis": call.axis_said("axis", x.rank)}
    return call.value(invoke("ops.trapezoid", x, **options))


def _in_top_k(call: Keras) -> Value | None:
    x, labels = call.input("predictions"), positions(call, "labels")
    if x.dtype != "f32":
        return None
    return call.value(invoke("ops.in_top_k", labels, x, k=call["k"]))


# Which release had these first is not known; this one has them.
_LATE = (3, 15)

STATISTICS: dict[str, Native] = {
    "reduce_ptp": over_axes("ops.ptp", _LATE),
    "searchsorted": search("ops.searchsorted", KERAS_3),
    "nanquantile": replace(
        without_nan("ops.nanquantile", _LATE), others=(percentile("ops.nanpercentile", _LATE),)
    ),
    "nanargmax": place_without_nan("ops.nanargmax", _LATE),
    "nanargmin": place_without_nan("ops.nanargmin", _LATE),
    "map_coordinates": map_coordinates(
        "ops.image.map_coordinates", "fill_mode", "fill_value", KERAS_3
    ),
    "saturate_cast": saturating("ops.saturate_cast", KERAS_3),
    "nancumsum": running("ops.nancumsum", _LATE),
    "nancumprod": running("ops.nancumprod", _LATE),
    "correlate": correlation("ops.correlate", KERAS_3),
    "corrcoef": replace(of_rows("ops.corrcoef"), since=KERAS_3),
    "count_nonzero": Native("ops.count_nonzero", _count, since=KERAS_3),
    "reduce_nansum": over_axes("ops.nansum", KERAS_3),
    "reduce_nanmean": over_axes("ops.nanmean", KERAS_3),
    "reduce_nanprod": over_axes("ops.nanprod", KERAS_3),
    "reduce_nanvariance": spread("ops.nanvar", "", KERAS_3),
    "reduce_nanstd": spread("ops.nanstd", "", KERAS_3),
    "weighted_average": average("ops.average", KERAS_3),
    "reduce_nanmax": over_axes("ops.nanmax", KERAS_3),
    "reduce_nanmin": over_axes("ops.nanmin", KERAS_3),
    "quantile": Native(
        "ops.median, ops.quantile",
        _quantile,
        since=KERAS_3,
        others=(percentile("ops.percentile", _LATE),),
    ),
    "bucketize": Native("ops.digitize", _bucketize, since=KERAS_3),
    "bincount": Native("ops.bincount", _bincount, since=KERAS_3),
    "weighted_bincount": Native("ops.bincount", _weighed, since=KERAS_3),
    "histogram": Native("ops.histogram", _histogram, since=KERAS_3),
    "differences": replace(differences("ops.diff"), since=KERAS_3),
    "trapezoid": Native("ops.trapezoid", _trapezoid, since=KERAS_3),
    "in_top_k": Native("ops.in_top_k", _in_top_k, since=KERAS_3),
}
