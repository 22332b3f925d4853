"""Layers of Keras that pool, pad, resample, reshape and merge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irlang.importers.keras_activations import plain
from irlang.importers.keras_call import Call

# ---- windows


def _pool(op: str, rank: int) -> Callable[[Call], str]:
    def write(c: Call) -> str:
        attrs: dict[str, Any] = {"window": c.a.ints("pool_size", rank)}
        if c.a["strides"] is not None and c.a.ints("strides", rank) != attrs["window"]:
            attrs["stride"] = c.a.ints("strides", rank)
        if c.a.choice("padding", "valid", "same") == "same":
            attrs["pad"] = "same"
        return c.last(c.write("", op, c.first(rank), **attrs))

    return write


def _global_pool(op: str, rank: int) -> Callable[[Call], str]:
    def write(c: Call) -> str:
        if not c.a.flag("keepdims"):
            return c.write("", op, c.first(rank))
        return c.last(c.write("", op, c.first(rank), keepdims=True))

    return write


def _adaptive_pool(op: str, rank: int) -> Callable[[Call], str]:
    def write(c: Call) -> str:
        return c.last(c.write("", op, c.first(rank), size=c.a.ints("output_size", rank)))

    return write


def _global_average_1d(c: Call) -> str:
    """The mean of the steps that are not masked; Keras 2 multiplies the others by zero."""
    if c.mask is None:
        return _global_pool("global_avg_pool", 1)(c)
    axis = 2 if c.a.given.get("data_format") is not None and c.channels_first else 1
    counted = c.write("counted", "expand_dims", c.mask, axes=[3 - axis])
    weight = c.write("weight", "cast", counted, to=c.dtype)
    if c.version == 3:
        masked = c.write("masked", "where", counted, c.x[0], 0.0)
    else:
        masked = c.write("masked", "multiply", c.x[0], weight)
    keep = {"keepdims": True} if c.a.flag("keepdims") else {}
    total = c.write("total", "reduce_sum", masked, axes=[axis], **keep)
    many = c.write("steps", "reduce_sum", weight, axes=[axis], **keep)
    return c.write("", "divide", total, many)


def _edges(op: str, argument: str, rank: int) -> Callable[[Call], str]:
    def write(c: Call) -> str:
        finish: Callable[[str], str]
        pairs = c.a.pairs(argument, rank)
        if c.a.given.get("data_format") is not None and c.channels_first:
            x, pairs, finish = c.x[0], [(0, 0), (0, 0), *pairs], c.last
        elif c.held() in c.sheet.moved:
            x, pairs, finish = c.held(), [(0, 0), (0, 0), *pairs], c.keep
        else:
            x, pairs, finish = c.x[0], [(0, 0), *pairs, (0, 0)], str
        before, after = [p[0] for p in pairs], [p[1] for p in pairs]
        return finish(c.write("", op, x, before=before, after=after))

    return write


# ---- shape


def _reshape(c: Call) -> str:
    target = c.a.ints("target_shape")
    if c.info(c.x[0]).shape[1:] == tuple(target):
        return c.write("", "identity", c.x[0])
    return c.write("", "reshape", c.x[0], shape=[c.shape()[0], *target])


def _flatten(c: Call) -> str:
    x = c.x[0]
    rank = len(c.shape())
    if rank == 1:
        return c.write("", "expand_dims", x, axes=[1])
    if c.a.given.get("data_format") is not None and c.channels_first and rank > 2:
        x = c.write("x", "transpose", x, perm=[0, *range(2, rank), 1])
    return c.write("", "flatten", x)


def _permute(c: Call) -> str:
    return c.write("", "transpose", c.x[0], perm=[0, *c.a.ints("dims")])


def _dropout_of_channels(rank: int) -> Callable[[Call], str]:
    def write(c: Call) -> str:
        _ = c.a["rate"], c.a["data_format"]
        if len(c.shape()) != rank + 2:  # which a definition will say
            return c.write("", "transpose", c.x[0], perm=list(range(rank + 2)))
        return c.keep(c.write("", "identity", c.held()))

    return write


# ---- merging


def together(c: Call) -> list[str]:
    """The operands in one order, in the one that is there if it is the same for all."""
    held = [value.name for value in c.values]
    if all(name in c.sheet.moved for name in held):
        return held
    ranks = {len(c.info(name).shape) for name in held}
    if len(ranks) == 1 and c.values[0].name in c.sheet.moved:
        return [c.sheet.first(name) for name in held]
    return c.x


def kept(c: Call, result: str, operands: list[str]) -> str:
    """A merged result in the order of its operands."""
    if operands and all(name in c.sheet.moved for name in operands):
        c.sheet.moved.add(result)
    return result


def _concatenate(c: Call) -> str:
    operands = together(c)
    axis = c.a.integer("axis")
    if operands and operands[0] in c.sheet.moved:
        axis = c.axis(axis)
    return kept(c, c.write("", "concat", *operands, axis=axis), operands)


def _merge(op: str) -> Callable[[Call], str]:
    def write(c: Call) -> str:
        ranks = [len(c.info(value.name).shape) for value in c.values]
        rank = max(ranks)
        if min(ranks) == rank:
            operands = together(c)
            return kept(c, c.write("", op, *operands), operands)
        operands = []
        for number, x in enumerate(c.x):
            missing = rank - ranks[number]
            if missing:  # Keras keeps the batch first and widens behind it
                axes = list(range(1, missing + 1))
                x = c.write(f"x{number}", "expand_dims", x, axes=axes)
            operands.append(x)
        return c.write("", op, *operands)

    return write


def _multiply(c: Call) -> str:
    """In Keras 3 a masked step is a factor of 1, and 0 where it is masked in all operands."""
    masks = [mask for mask in c.masks if mask is not None]
    if c.version == 2 or not masks:
        return _merge("multiply_n")(c)
    factors, seen = [], []
    for number, (x, mask) in enumerate(zip(c.x, c.masks, strict=True)):
        if mask is not None:
            seen.append(c.write(f"seen{number}", "expand_dims", mask, axes=[-1]))
            x = c.write(f"factor{number}", "where", seen[-1], x, 1.0)
        factors.append(x)
    if len(seen) < len(factors):
        return c.write("", "multiply_n", *factors)
    any_ = seen[0]
    for number, one in enumerate(seen[1:]):
        any_ = c.write(f"either{number}", "logical_or", any_, one)
    return c.write("", "where", any_, c.write("product", "multiply_n", *factors), 0.0)


def _dot(c: Call) -> str:
    attrs: dict[str, Any] = {"axes": c.a.ints("axes", 2)}
    if c.a.flag("normalize"):
        attrs["normalize"] = True
    return c.write("", "dot", *c.x, **attrs)


def _masking(c: Call) -> str:
    """Steps of which all elements are `mask_value` are masked, and become 0."""
    used = c.write("used", "not_equal", c.x[0], c.a.real("mask_value"))
    passed = c.write("mask", "reduce_any", used, axes=[-1])
    c.passed = [passed]
    if c.version == 3:
        factor = c.write("kept", "expand_dims", passed, axes=[-1])
        return c.write("", "where", factor, c.x[0], 0.0)
    real = c.write("real", "cast", passed, to=c.dtype)
    factor = c.write("kept", "expand_dims", real, axes=[-1])
    return c.write("", "multiply", c.x[0], factor)


def _rescaling(c: Call) -> str:
    """Scaled and shifted, by numbers or by one for every channel."""
    operands: list[Any] = []
    x = c.held()
    for name in ("scale", "offset"):
        value = c.a[name]
        if isinstance(value, (list, tuple)):
            x = c.x[0]
            operands.append(c.param(name, np.array(value, dtype=np.float64)))
        else:
            operands.append(c.a.real(name))
    if c.info(x).kind != "real":
        x = c.write("x", "cast", x, to=c.dtype)
    scaled = c.write("scaled", "multiply", x, operands[0])
    result = c.write("", "add", scaled, operands[1])
    return c.keep(result) if x == c.held() else result


SHAPES: dict[str, Callable[[Call], str]] = {
    **{f"MaxPooling{rank}D": _pool("max_pool", rank) for rank in (1, 2, 3)},
    **{f"AveragePooling{rank}D": _pool("avg_pool", rank) for rank in (1, 2, 3)},
    **{f"AdaptiveMaxPooling{r}D": _adaptive_pool("adaptive_max_pool", r) for r in (1, 2, 3)},
    **{f"AdaptiveAveragePooling{r}D": _adaptive_pool("adaptive_avg_pool", r) for r in (1, 2, 3)},
    **{f"GlobalMaxPooling{rank}D": _global_pool("global_max_pool", rank) for rank in (1, 2, 3)},
    **{f"GlobalAveragePooling{rank}D": _global_pool("global_avg_pool", rank) for rank in (2, 3)},
    "GlobalAveragePooling1D": _global_average_1d,
    **{f"ZeroPadding{rank}D": _edges("pad", "padding", rank) for rank in (1, 2, 3)},
    **{f"Cropping{rank}D": _edges("crop", "cropping", rank) for rank in (1, 2, 3)},
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Permute": _permute,
    "RepeatVector": lambda c: c.write("", "repeat_vector", c.x[0], n=c.a.integer("n")),
    "Concatenate": _concatenate,
    "Add": _merge("add_n"),
    "Subtract": _merge("subtract"),
    "Multiply": _multiply,
    "Average": _merge("average_n"),
    "Maximum": _merge("maximum_n"),
    "Minimum": _merge("minimum_n"),
    "Dot": _dot,
    "Masking": _masking,
    "Rescaling": _rescaling,
    **dict.fromkeys(
        (
            *("Dropout", "AlphaDropout", "GaussianDropout", "GaussianNoise", "Identity"),
            *("StochasticDepth", "ActivityRegularization"),
        ),
        plain("identity"),
    ),
    **{f"SpatialDropout{rank}D": _dropout_of_channels(rank) for rank in (1, 2, 3)},
}
