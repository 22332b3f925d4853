"""Axes along which a call goes slice by slice: there a result's slice hangs on the input's alone.

So it is along the axes of a batch, and along all axes of what goes element by element. What is open
in one slice of a result leaves the gradient of the others as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from irlang import equations as eq

Array = np.ndarray[Any, np.dtype[Any]]
Axes = tuple[int | None, ...]


def aligned(expansion: eq.Expansion, result: str) -> dict[str, Axes]:
    """For every input that the result reads: by the result's axis, the input's along which both
    have the same index wherever they meet; None where there is none.
    """
    key = f"{__name__} {result}"
    if key not in expansion.notes:
        expansion.notes[key] = _aligned(expansion, result)
    found: dict[str, Axes] = expansion.notes[key]
    return found


def _aligned(expansion: eq.Expansion, result: str) -> dict[str, Axes]:
    along = [_carriers(expansion, result, a) for a in range(len(_shape(expansion, result)))]
    read = _read(expansion, result)
    return {
        name: tuple(min(axes[name], default=None) for axes in along)
        for name in expansion.inputs
        if name in read
    }


def _shape(expansion: eq.Expansion, name: str) -> tuple[int, ...]:
    return expansion.tensors[name].shape


def _read(expansion: eq.Expansion, result: str) -> set[str]:
    """The result, and all tensors that it reads, by way of others too."""
    found = {result}
    while True:
        bodies = [e.body for e in expansion.equations if e.target in found]
        more = found.union(*map(eq.reads, bodies))
        if more == found:
            return found
        found = more


def _carriers(expansion: eq.Expansion, result: str, axis: int) -> dict[str, frozenset[int]]:
    """The axes of every tensor that carry the index of one of the result's axes, wherever it is
    read on the way to the result: the largest solution, from which what does not fit is taken.
    """
    size = _shape(expansion, result)[axis]
    found = {
        name: frozenset(k for k, n in enumerate(info.shape) if n == size)
        for name, info in expansion.tensors.items()
    }
    found[result] = frozenset((axis,))
    reached = _read(expansion, result)
    reads = [
        (e, [p for p in eq.walk(e.body) if isinstance(p, eq.Read)])
        for e in expansion.equations
        if e.target in reached
    ]
    changed = True
    while changed:
        changed = False
        for equation, parts in reads:
            carried = {equation.binders[k][0] for k in found[equation.target]}
            for part in parts:
                fit = frozenset(
                    k for k in found[part.tensor]
                    if isinstance(place := part.index[k], eq.Index) and place.name in carried
                )  # fmt: skip
                changed |= fit != found[part.tensor]
                found[part.tensor] = fit
    return found


def reached(mask: Array, axes: Axes, shape: tuple[int, ...]) -> Array:
    """Where an input of a shape may hang on those elements of a result that a mask is true of."""
    apart = tuple(k for k, own in enumerate(axes) if own is None)
    kept = [own for own in axes if own is not None]
    met = np.any(mask, axis=apart)
    met = np.transpose(met, np.argsort(kept))
    sizes = tuple(n if k in kept else 1 for k, n in enumerate(shape))
    return np.broadcast_to(met.reshape(sizes), shape)


def hanging(expansion: eq.Expansion, masks: Mapping[str, Array], name: str) -> Array:
    """Where an input may hang on what masks, by results, are true of."""
    shape = _shape(expansion, name)
    found = np.zeros(shape, dtype=bool)
    for result, mask in masks.items():
        axes = aligned(expansion, result).get(name)
        if axes is not None:
            found = found | reached(np.broadcast_to(mask, _shape(expansion, result)), axes, shape)
    return found
