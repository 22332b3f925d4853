"""Layers of Keras around another layer, but for the two directions of recurrent ones."""

from __future__ import annotations

from collections.abc import Callable

from irlang.importers.keras_arguments import Uncovered
from irlang.importers.keras_call import Call, Value
from irlang.importers.keras_text import Config

_LAST_AXIS = frozenset({"Dense"})  # whatever comes before the last axis is a batch to them
_ASK = frozenset({"Softmax", "GlobalAveragePooling1D", "Attention", "AdditiveAttention"})


def _time_distributed(c: Call) -> list[str]:
    """The layer inside, on every step of every sample: steps and samples become one axis."""
    inner = c.a["layer"]
    if not isinstance(inner, Config):
        raise Uncovered(c.a.kind, "it has no layer inside")
    weights = c.weights.part(("layer",), 0)
    if inner.kind in _LAST_AXIS:
        found = c.sheet.apply(c.sheet, c.name, inner, [Value(c.x[0])], weights)
        return [item.name for item in found]
    if len(c.values) != 1:
        raise Uncovered(c.a.kind, "several inputs")
    flat_mask = _flat_mask(c, inner)
    batch, steps = c.shape()[:2]
    flat = c.write("x", "flatten", c.x[0], axis=0, end=1)
    found = c.sheet.apply(c.sheet, f"{c.name}_y", inner, [Value(flat, flat_mask)], weights)
    if len(found) != 1:
        raise Uncovered(c.a.kind, "several results")

    def stepped(suffix: str, value: str) -> str:
        return c.write(suffix, "reshape", value, shape=[batch, steps, *c.info(value).shape[1:]])

    if c.version == 2 and found[0].mask is not None:
        c.passed = [stepped("mask", found[0].mask)]
    elif c.version == 2 and flat_mask is not None and c.mask is not None:
        rest = list(range(2, len(c.info(c.mask).shape)))
        c.passed = [c.write("mask", "reduce_any", c.mask, axes=rest)]
    return [stepped("", c.sheet.last(found[0].name))]


def _flat_mask(c: Call, inner: Config) -> str | None:
    """The mask of the layer inside, where every step has more than one truth."""
    if c.mask is None:
        return None
    if len(c.info(c.mask).shape) > 2:
        return c.write("x_mask", "flatten", c.mask, axis=0, end=1)
    if inner.kind in _ASK or inner.kind.endswith(("RNN", "LSTM", "GRU")):
        raise Uncovered(c.a.kind, f"a mask of whole steps for {inner.kind} inside")
    return None


WRAPPERS: dict[str, Callable[[Call], list[str]]] = {"TimeDistributed": _time_distributed}
