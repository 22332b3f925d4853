"""How TensorFlow spells counts and ranks."""

from __future__ import annotations

import math

import numpy as np

from irlang.dtypes import DTYPES
from irlang.lower.call import Call, Native
from irlang.lower.spelling import invoke, plain
from irlang.lower.tf_builder import TensorFlowBuilder
from irlang.lower.value import Value

Tf = Call[TensorFlowBuilder]


def _count(call: Tf) -> Value:
    x = call.input("x")
    axes = call.axes_said("axes", x.rank) if x.rank else ()
    options = {"axis": str(list(axes)), "keepdims": call["keepdims"] or None}
    return call.value(invoke("tf.math.count_nonzero", x, **options))


def _bucketize(call: Tf) -> Value | None:
    x = call.input("x")
    if x.dtype not in ("f32", "f64"):
        return None
    table = call.build.array(np.array(call["boundaries"], np.float64), x.dtype)
    side = '"right"' if call["right"] else '"left"'
    flat = call.build.reshape(x, (math.prod(x.shape),))
    places = Value(
        invoke("tf.searchsorted", table, flat, side=side, out_type="tf.int64"), flat.shape, "i64"
    )
    return call.build.reshape(places, x.shape)


def _bincount(call: Tf) -> Value | None:
    ids = call.input("ids")
    if DTYPES[ids.dtype].bits > 32 or ids.dtype == "u32" or ids.rank > 2:
        return None
    size = call["size"]
    options = {"minlength": size, "maxlength": size, "dtype": "tf.int64"}
    if ids.rank == 2:
        options["axis"] = -1
    return call.value(invoke("tf.math.bincount", call.build.cast(ids, "i32"), **options))


def _weighed(call: Tf) -> Value | None:
    ids, weights = call.input("ids"), call.input("weights")
    if DTYPES[ids.dtype].bits > 32 or ids.dtype == "u32" or weights.dtype not in ("f32", "f64"):
        return None
    if ids.rank not in (1, 2):
        return None
    size = call["size"]
    options = {"weights": weights, "minlength": size, "maxlength": size}
    options |= {"axis": -1} if ids.rank == 2 else {}
    return call.value(invoke("tf.math.bincount", call.build.cast(ids, "i32"), **options))


def _histogram(call: Tf) -> Value | None:
    x = call.input("x")
    if call["outside"] != "clamped" or x.dtype not in ("f32", "f64"):
        return None
    ends = str([float(call["low"]), float(call["high"])])
    options = {"nbins": call["bins"], "dtype": "tf.int64"}
    return call.value(invoke("tf.histogram_fixed_width", x, ends, **options))


def _confusion(call: Tf) -> Value:
    values = (call.build.cast(call.input(name), "i64") for name in ("labels", "predictions"))
    options = {"num_classes": call["classes"], "dtype": "tf.int64"}
    return call.value(invoke("tf.math.confusion_matrix", *values, **options))


def _in_top_k(call: Tf) -> Value | None:
    x, labels = call.input("predictions"), call.input("labels")
    if x.dtype != "f32":
        return None
    labels = labels if labels.dtype in ("i32", "i64") else call.build.cast(labels, "i64")
    return call.value(invoke("tf.math.in_top_k", labels, x, call["k"]))


def _polyval(call: Tf) -> Value:
    """The coefficients are tensors in a list."""
    listed = f"list({invoke('tf.unstack', call.input('p'))})"
    return call.value(invoke("tf.math.polyval", listed, call.input("x")))


def _searchsorted(call: Tf) -> Value | None:
    """It has no kernels of some types, and asks for as many axes of both."""
    row, x = call.input("row"), call.input("x")
    if row.dtype not in ("f32", "f64", "i32", "i64") or not row.rank:
        return None
    side = '"right"' if call["right"] else '"left"'
    return call.value(invoke("tf.searchsorted", row, x, side=side, out_type="tf.int64"))


def _histogram_place(call: Tf) -> Value | None:
    x = call.input("x")
    if x.dtype not in ("f32", "f64"):
        return None
    ends = f"tf.constant({[float(call['low']), float(call['high'])]}, {call.build.dtype(x.dtype)})"
    return call.value(invoke("tf.histogram_fixed_width_bins", x, ends, nbins=call["bins"]))


STATISTICS: dict[str, Native] = {
    "searchsorted": Native("tf.searchsorted", _searchsorted),
    "polyval": Native("tf.math.polyval", _polyval),
    "zero_fraction": plain("tf.math.zero_fraction"),
    "count_nonzero": Native("tf.math.count_nonzero", _count),
    "bucketize": Native("tf.searchsorted", _bucketize),
    "bincount": Native("tf.math.bincount", _bincount),
    "weighted_bincount": Native("tf.math.bincount", _weighed),
    "histogram": Native("tf.histogram_fixed_width", _histogram),
    "histogram_place": Native("tf.histogram_fixed_width_bins", _histogram_place),
    "confusion_matrix": Native("tf.math.confusion_matrix", _confusion),
    "in_top_k": Native("tf.math.in_top_k", _in_top_k),
}
