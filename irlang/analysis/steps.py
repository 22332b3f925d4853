"""Inputs beside others: a few roundings away, or so far along their slopes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from irlang.analysis.patterns import stored
from irlang.analysis.subject import Subject
from irlang.dtypes import DTYPES
from irlang.interp.values import Array

_MOVED, _STEPS = 0.7, 3  # share of the inputs that are moved, and by how many roundings at most

Values = dict[str, Array]


def shaken(subject: Subject, values: Values, numbers: np.random.Generator) -> Values:
    """Inputs moved by a few roundings of their own types, inside their ranges."""
    moved = dict(values)
    for name, (low, high) in subject.ranges.items():
        info = subject.graph.inputs[name].info
        if info.kind == "real" and name in values and numbers.random() < _MOVED:
            unit = DTYPES[info.dtype].unit
            steps = numbers.integers(-_STEPS, _STEPS + 1, values[name].shape)
            array = values[name].astype(np.float64) * (1 + unit * steps)
            moved[name] = stored(array, info, (low, high))
    return moved


def stepped(subject: Subject, values: Values, slopes: Mapping[str, Array], times: float) -> Values:
    """Inputs so many of their slopes further, inside their ranges; those whose slopes are not
    finite stay.
    """
    moved = dict(values)
    for name, slope in slopes.items():
        if name in values and slope.any() and np.isfinite(slope).all():
            ends = subject.ranges[name]
            aim = np.clip(values[name].astype(np.float64) + times * slope, *ends)
            moved[name] = stored(aim, subject.graph.inputs[name].info, ends)
    return moved
