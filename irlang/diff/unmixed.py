"""Edges one kind at a time: what stands beside the worst element of a call that is wrong.

A tensor that holds all edges shows one disagreement, that of its worst element. Whether others are
behind it is seen where one operand keeps the numbers of one kind alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from irlang.diff.calls import Case
from irlang.dtypes import DTYPES

Array = np.ndarray[Any, np.dtype[Any]]
_FAR = 100.0  # beyond which numbers are of a kind of their own


def unmixed(case: Case) -> Iterator[Case]:
    """The program, once for each kind of edge that one of its real tensors has beside others, with
    plain numbers in the places of those.
    """
    for name, array in case.values.items():
        if array.dtype.kind in "iub" or name not in case.graph.values:
            continue
        kinds = [where for where in _kinds(array, case.graph.values[name].dtype) if where.any()]
        if len(kinds) < 2:
            continue
        strange = np.logical_or.reduce(kinds)
        plain = array[~strange].reshape(-1)
        usual = plain[0] if plain.size else np.asarray(0.75, array.dtype)
        for where in kinds:
            kept = np.where(strange & ~where, usual, array)
            given = {n: kept if n == name else a for n, a in case.inputs.items()}
            params = {n: kept if n == name else a for n, a in case.params.items()}
            yield replace(case, inputs=given, params=params, balls=None)


def _kinds(array: Array, dtype: str) -> list[Array]:
    """Where the numbers of each kind of edge are."""
    values, tiny = array.astype(np.float64), DTYPES[dtype].tiny
    size = np.abs(values)
    far = np.isfinite(values) & (size > _FAR)
    return [
        np.isnan(values), values == np.inf, values == -np.inf, values == 0,
        (size > 0) & (size <= tiny), far & (values > 0), far & (values < 0),
    ]  # fmt: skip
