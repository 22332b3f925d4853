"""How JAX spells counts, ranks and moments."""

from __future__ import annotations

from dataclasses import replace

from irlang.lower.call import Call, Native
from irlang.lower.jax_builder import JaxBuilder
from irlang.lower.numpy_words import (
    average,
    correlation,
    map_coordinates,
    percentile,
    place_without_nan,
    running,
    search,
    spread,
    without_nan,
)
from irlang.lower.spelling import differences, invoke, of_rows, over_axes, plain
from irlang.lower.value import Value

Jax = Call[JaxBuilder]


def _quantile(call: Jax) -> Value:
    x = call.input("x")
    options = {"axis": call.axis_said("axis", x.rank), "keepdims": call["keepdims"] or None}
    options["method"] = f'"{call["interpolation"]}"'
    return call.value(invoke("jnp.quantile", x, float(call["q"]), **options))


def _bucketize(call: Jax) -> Value:
    x = call.input("x")
    table = f"jnp.array({list(map(float, call['boundaries']))}, {call.build.dtype(x.dtype)})"
    found = Value(invoke("jnp.digitize", x, table, right=not call["right"]), x.shape, "i32")
    return call.build.cast(found, "i64")


def _bincount(call: Jax) -> Value | None:
    ids = call.input("ids")
    if ids.rank != 1:
        return None
    found = invoke("jnp.bincount", ids, length=call["size"])
    return call.build.cast(Value(found, call.out.shape, "i32"), "i64")


def _weighed(call: Jax) -> Value | None:
    ids, weights = call.input("ids"), call.input("weights")
    if ids.rank != 1 or weights.dtype not in ("f32", "f64"):
        return None
    return call.value(invoke("jnp.bincount", ids, weights, length=call["size"]))


def _histogram(call: Jax) -> Value | None:
    if call["outside"] != "dropped":
        return None
    x, ends = call.input("x"), (float(call["low"]), float(call["high"]))
    found = f"{invoke('jnp.histogram', x, bins=call['bins'], range=ends)}[0]"
    return call.build.cast(Value(found, call.out.shape, x.dtype), "i64")


def _trapezoid(call: Jax) -> Value:
    x = call.input("x")
    options = {"dx": float(call["dx"]), "axis": call.axis_said("axis", x.rank)}
    return call.value(invoke("jnp.trapezoid", x, **options))


def _gradient(call: Jax) -> Value | None:
    """With ends of the first order."""
    x = call.input("x")
    if call["edge_order"] != 1:
        return None
    axis = call.axis_said("axis", x.rank)
    return call.value(invoke("jnp.gradient", x, float(call["spacing"]), axis=axis))


STATISTICS: dict[str, Native] = {
    "reduce_ptp": over_axes("jnp.ptp"),
    "searchsorted": search("jnp.searchsorted"),
    "nanquantile": replace(
        without_nan("jnp.nanquantile"), others=(percentile("jnp.nanpercentile"),)
    ),
    "central_differences": Native("jnp.gradient", _gradient),
    "nanargmax": place_without_nan("jnp.nanargmax"),
    "nanargmin": place_without_nan("jnp.nanargmin"),
    "map_coordinates": map_coordinates("jax.scipy.ndimage.map_coordinates", "mode", "cval"),
    "interp": plain("jnp.interp"),
    "nancumsum": running("jnp.nancumsum"),
    "nancumprod": running("jnp.nancumprod"),
    "correlate": correlation("jnp.correlate"),
    "count_nonzero": over_axes("jnp.count_nonzero"),
    "reduce_nansum": over_axes("jnp.nansum"),
    "reduce_nanmean": over_axes("jnp.nanmean"),
    "reduce_nanprod": over_axes("jnp.nanprod"),
    "reduce_nanvariance": spread("jnp.nanvar", "ddof"),
    "reduce_nanstd": spread("jnp.nanstd", "ddof"),
    "weighted_average": average("jnp.average"),
    "reduce_nanmax": over_axes("jnp.nanmax"),
    "reduce_nanmin": over_axes("jnp.nanmin"),
    "quantile": Native("jnp.quantile", _quantile, others=(percentile("jnp.percentile"),)),
    "bucketize": Native("jnp.digitize", _bucketize),
    "bincount": Native("jnp.bincount", _bincount),
    "weighted_bincount": Native("jnp.bincount", _weighed),
    "histogram": Native("jnp.histogram", _histogram),
    "differences": differences("jnp.diff"),
    "trapezoid": Native("jnp.trapezoid", _trapezoid),
    "cov": of_rows("jnp.cov", ddof="correction"),
    "corrcoef": of_rows("jnp.corrcoef"),
}
