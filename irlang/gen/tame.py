"""Calls that bring any values into the domain of a function: found by evaluating the catalogue.

A definition of one input is tried on numbers around zero; if every result lies inside an interval,
it tames its input for functions that are defined there (a logarithm, a divisor).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irlang.catalog import Catalog
from irlang.diagnostics import InvalidInput
from irlang.equations import TensorInfo
from irlang.expand import expand
from irlang.gen.judge import judge, score
from irlang.gen.pattern import Pattern
from irlang.gen.ranges import Range
from irlang.interp import vector

_SAMPLES = 33
_REACH = 8.0


class Tamers:
    """The definitions of a catalogue by the interval that their results lie in."""

    def __init__(self, made: Sequence[Pattern], catalog: Catalog) -> None:
        self._ranges = [(p, r) for p in made if (r := _range(p, catalog)) is not None]
        self._inside: dict[Range, list[Pattern]] = {}

    def inside(self, domain: Range) -> list[Pattern]:
        """The definitions whose results lie in the open interval `domain`."""
        found = self._inside.get(domain)
        if found is None:
            low, high = domain
            found = [p for p, (least, most) in self._ranges if low < least and most < high]
            self._inside[domain] = found
        return found


def _range(made: Pattern, catalog: Catalog) -> Range | None:
    """The least and the greatest result of a definition that keeps shape and type."""
    required = [slot for slot in made.slots if slot.item.default is None]
    if len(required) != 1 or required[0].item.family or required[0].placed:
        return None
    if "f32" not in required[0].allowed or any(a.default is None for a in made.attrs.values()):
        return None
    info = TensorInfo((_SAMPLES,), "f32")
    formal = required[0].item.name
    instance = judge(made.op, {formal: info}, {})
    if instance is None or score(instance) > 0 or instance.deferred:
        return None
    if [kind for _, kind in instance.outputs or ()] != [info]:
        return None
    try:
        samples = np.linspace(-_REACH, _REACH, _SAMPLES)
        results = vector.evaluate(expand(instance, catalog), {formal: samples})
    except InvalidInput:
        return None
    values = results[made.op.outputs[0].name]
    if not np.isfinite(values).all() or values.min() == values.max():
        return None
    return float(values.min()), float(values.max())
