"""Layers of Keras that normalise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irlang.importers.keras_arguments import Uncovered
from irlang.importers.keras_call import Call, same
from irlang.importers.keras_text import Config
from irlang.importers.writer import Array


def _statistics(
    c: Call,
    names: dict[str, float],
    sizes: list[int | None],
    arrange: Callable[[Array], Array] = same,
) -> dict[str, str]:
    """Weights in Keras's order; what a layer starts from where no weight is given at all."""
    found = {}
    for position, (name, start) in enumerate(names.items()):
        if len(c.weights):
            found[name] = c.weight(name, position, sizes, arrange)
        else:
            found[name] = c.param(name, start, [size or 1 for size in sizes])
    return found


def _sizes(c: Call, axes: list[int]) -> list[int | None]:
    """The sizes of axes; None where there is no such axis, which the definition will refuse."""
    shape = c.shape()
    return [shape[axis] if -len(shape) <= axis < len(shape) else None for axis in axes]


def _wanted(c: Call, scale: str = "scale", bias: str = "bias") -> dict[str, float]:
    names = {scale: 1.0} if c.a.flag("scale") else {}
    return names | ({bias: 0.0} if c.a.flag("center") else {})


def _batch_norm(c: Call) -> str:
    axes = c.a.ints("axis")
    names = {**_wanted(c), "mean": 0.0, "var": 1.0}
    if len(axes) != 1:
        return _batch_norm_of_axes(c, axes, names)
    w = _statistics(c, names, _sizes(c, axes))
    attrs = {"axis": c.axis(axes[0])} if c.axis(axes[0]) != 1 else {}
    eps = c.a.real("epsilon")
    return c.keep(c.write("", "batch_norm", c.held(), by_name=w, **attrs, eps=eps))


def _batch_norm_of_axes(c: Call, axes: list[int], names: dict[str, float]) -> str:
    """Statistics for every place along several axes, which the definition has for one."""
    rank = len(c.shape())
    if None in _sizes(c, axes):  # which a definition will say
        return c.write("", "reduce_mean", c.x[0], axes=axes)
    kept = {axis % rank for axis in axes}
    wide: list[int | None] = [c.shape()[d] if d in kept else 1 for d in range(rank)]
    w = _statistics(c, names, wide)
    root = c.write("root", "rsqrt", c.write("shifted", "add", w["var"], c.a.real("epsilon")))
    x = c.write("centred", "subtract", c.x[0], w["mean"])
    if "scale" in w:
        root = c.write("factor", "multiply", root, w["scale"])
    if "bias" not in w:
        return c.write("", "multiply", x, root)
    return c.write("", "add", c.write("scaled", "multiply", x, root), w["bias"])


def _layer_norm(c: Call) -> str:
    axes, eps = c.a.ints("axis"), c.a.real("epsilon")
    names = _wanted(c, "gamma", "beta")
    sizes, rank = _sizes(c, axes), len(c.shape())
    if None in sizes:  # which the definition will say
        return c.write("", "layer_norm", c.x[0], axes=axes, eps=eps)
    if c.a.flag("rms_scaling"):
        return _rms_scaled(c, axes, eps)
    axes = sorted(axes, key=lambda axis: axis % rank)
    # TensorFlow 2.4 takes the weights of axes named out of order as if they were in order
    ordered = [size or 1 for size in _sizes(c, axes)]
    w = _statistics(c, names, sizes, lambda w: w.reshape(ordered)) if len(c.weights) else {}
    places = [c.axis(axis) for axis in axes]
    return c.keep(c.write("", "layer_norm", c.held(), by_name=w, axes=places, eps=eps))


def _rms_scaled(c: Call, axes: list[int], eps: float) -> str:
    """Divided by the standard deviation and scaled: no mean is taken away, nothing added."""
    sizes = _sizes(c, axes)
    gamma = _statistics(c, {"gamma": 1.0}, sizes)["gamma"]
    x = c.x[0]
    rank = len(c.shape())
    spread = c.write("variance", "reduce_variance", x, axes=axes, keepdims=True)
    root = c.write("root", "rsqrt", c.write("shifted", "add", spread, eps))
    wide = [1] * rank
    for axis, size in zip(axes, sizes, strict=True):
        wide[axis] = size or 1
    gamma = c.write("wide", "reshape", gamma, shape=wide)
    return c.write("", "multiply", c.write("scaled", "multiply", x, root), gamma)


def _group_norm(c: Call) -> str:
    axis = c.a.integer("axis")
    size = _sizes(c, [axis])
    groups = c.a.integer("groups")
    groups = (size[0] or 1) if groups == -1 else groups
    w = _statistics(c, _wanted(c, "gamma", "beta"), size)
    place, eps = c.axis(axis), c.a.real("epsilon")
    attrs: dict[str, Any] = {"groups": groups, "axis": place, "eps": eps}
    return c.keep(c.write("", "group_norm", c.held(), by_name=w, **attrs))


def _rms_norm(c: Call) -> str:
    axes = c.a.ints("axis")
    w = _statistics(c, {"gamma": 1.0}, _sizes(c, axes))
    places = [c.axis(axis) for axis in axes]
    eps = c.a.real("epsilon")
    return c.keep(c.write("", "rms_norm", c.held(), by_name=w, axes=places, eps=eps))


def _unit_norm(c: Call) -> str:
    places = [c.axis(axis) for axis in c.a.ints("axis")]
    return c.keep(c.write("", "normalize", c.held(), axes=places, eps=1e-12))


def _normalization(c: Call) -> str:
    """(x - mean) / sqrt(variance), or back, by numbers that the layer was given or has learnt."""
    x, rank = c.x[0], len(c.shape())
    axis = c.a["axis"]
    axes = [] if axis is None else sorted(a % rank for a in c.a.ints("axis"))
    wide = [c.shape()[d] if d in axes else 1 for d in range(rank)]
    if c.a["mean"] is not None:
        # numbers that Keras is given become single precision before anything else
        given = [np.array(c.a[name], dtype=np.float32) for name in ("mean", "variance")]
    else:
        learnt = [c.weights.get(position) for position in (0, 1)]
        given = [array for array in learnt if array is not None]
    if len(given) != 2:
        raise Uncovered(c.a.kind, "its mean and variance are not given")
    mean, variance = (
        np.broadcast_to(_aligned(a, axes, rank), wide).astype(np.float64) for a in given
    )
    # Keras divides by at least its epsilon, which is 1e-7
    spread = np.maximum(np.sqrt(variance), 1e-7)
    centre = c.param("mean", np.ascontiguousarray(mean))
    scale = c.param("std", np.ascontiguousarray(spread))
    if c.info(x).kind != "real":
        x = c.write("x", "cast", x, to=c.dtype)
    if c.a.flag("invert"):
        return c.write("", "add", centre, c.write("scaled", "multiply", x, scale))
    return c.write("", "divide", c.write("centred", "subtract", x, centre), scale)


def _aligned(array: Any, axes: list[int], rank: int) -> Any:
    """Numbers for some axes, the last of them first, as a tensor of `rank` axes."""
    shape = [1] * rank
    for size, axis in zip(reversed(array.shape), reversed(axes), strict=False):
        shape[axis] = size
    return array.reshape(shape)


def _spectral_norm(c: Call) -> str:
    """The kernel of the layer inside is normalised in training already."""
    inner = c.a["layer"]
    if not isinstance(inner, Config):
        raise Uncovered(c.a.kind, "it has no layer inside")
    weights = c.weights.part(("layer",), 0)
    return c.sheet.apply(c.sheet, c.name, inner, c.values, weights)[0].name


def _layer_scale(c: Call) -> str:
    """A factor for every channel."""
    gamma = c.weight("gamma", 0, [c.a.integer("projection_dim")], same)
    return c.write("", "multiply", c.x[0], gamma)


NORMS: dict[str, Callable[[Call], str]] = {
    "BatchNormalization": _batch_norm,
    "LayerNormalization": _layer_norm,
    "GroupNormalization": _group_norm,
    "RMSNormalization": _rms_norm,
    "UnitNormalization": _unit_norm,
    "Normalization": _normalization,
    "SpectralNormalization": _spectral_norm,
    "LayerScale": _layer_scale,
}
