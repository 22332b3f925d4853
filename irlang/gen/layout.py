"""Where in a tensor its edge values stand: crossed with those of other operands, or in scenes.

What goes element by element meets every pair of edges if one operand has them in turn and the next
has each for as long as that takes. What reduces, searches or normalises along axes, or slides along
them, meets them one line at a time: each line is a scene of its own, so that what is strange in one
hides nothing of the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from irlang import equations as eq

Array = np.ndarray[Any, np.dtype[Any]]
# Of the elements of a scene: one, some, or all are at edges; and how many different numbers these
# are (0: any).
_SHARES = (0.0, 0.0, 0.25, 1.0, 1.0)
_KINDS = (1, 1, 2, 0)
_NONE = 0.15  # of the scenes have no edges
_AT_END = 0.5  # of them have the one that is sure at an end, which is left of loops over blocks
_LEVEL = 0.5  # of the lines of a level tensor are of one number
_SWEPT = 0.75  # of the tensors of which axes are swept have their scenes along these


def is_pointwise(expansion: eq.Expansion) -> bool:
    """Whether every result depends on one element of each operand, found by its own indices."""
    parts = [part for equation in expansion.equations for part in eq.walk(equation.body)]
    return all(
        all(isinstance(place, (eq.Index, eq.Const, eq.Size)) for place in part.index)
        if isinstance(part, eq.Read)
        else not isinstance(part, (eq.Reduce, eq.Inside))
        for part in parts
    )


def crossed(shape: tuple[int, ...], numbers: Array, each: int, begin: int) -> Array:
    """A tensor of all `numbers` in turn, every one for `each` elements, from some place on."""
    places = (np.arange(int(np.prod(shape))) + begin) // each
    return numbers[places % len(numbers)].reshape(shape)


def swept(expansion: eq.Expansion) -> dict[str, frozenset[int]]:
    """The axes of every input along which a reduction goes: those of a line, or of a window."""
    found: dict[str, set[int]] = {name: set() for name in expansion.inputs}
    for equation in expansion.equations:
        outer = {name for name, _ in equation.binders}
        for part in eq.walk(equation.body):
            if isinstance(part, eq.Read) and part.tensor in found:
                for axis, place in enumerate(part.index):
                    if not eq.indices(place) <= outer:
                        found[part.tensor].add(axis)
    return {name: frozenset(axes) for name, axes in found.items()}


def scenes(
    array: Array,
    rows: Array,
    random: np.random.Generator,
    axes: frozenset[int] = frozenset(),
    level: bool = False,
) -> Array:
    """The tensor with lines along some of its axes, each with edges of its own.

    rows: the numbers of every palette, one a row; a line takes from one of them. axes: those of
    lines, mostly. level: whether they are in any case, and half of the lines, one at least, are of
    one number each.
    """
    if not array.ndim:
        return np.asarray(random.choice(rows.reshape(-1)), array.dtype)
    if axes and (level or random.random() < _SWEPT):
        along = np.array([axis in axes for axis in range(array.ndim)])
    else:
        along = random.random(array.ndim) < 0.5
        along[random.integers(array.ndim)] = True
    lines = tuple(1 if one else size for one, size in zip(along, array.shape, strict=True))
    inner = tuple(size if one else 1 for one, size in zip(along, array.shape, strict=True))
    flat = random.random(lines) < _LEVEL if level else np.zeros(lines, bool)
    flat.reshape(-1)[random.integers(flat.size) if level else 0] |= level
    where = random.random(array.shape) < random.choice(_SHARES, size=lines)
    inside = np.arange(int(np.prod(inner))).reshape(inner)  # the one that is sure
    sure = random.integers(inside.size, size=lines)
    ends = (inside.size - 1) * random.integers(2, size=lines)
    where |= inside == np.where(random.random(lines) < _AT_END, ends, sure)
    where &= random.random(lines) >= _NONE
    where |= flat
    width = rows.shape[1]
    kinds = np.where(flat, 1, random.choice(_KINDS, size=lines))
    several = np.where(kinds == 0, width, kinds)
    first = random.integers(width, size=lines)
    column = (first + random.integers(width, size=array.shape) % several) % width
    drawn = rows[random.integers(len(rows), size=lines), column]
    return np.where(where, drawn, array)
