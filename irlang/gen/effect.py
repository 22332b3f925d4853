"""What a call does to sample numbers, which a definition's text does not say at a glance.

A padding by nothing, a slice of all and a clip without bounds are calls whose defaults change
nothing; a difference with its operands in the other order is another number, a sum is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from irlang.catalog import Catalog
from irlang.diagnostics import InvalidInput
from irlang.equations import TensorInfo
from irlang.expand import expand
from irlang.gen.judge import judge
from irlang.gen.pattern import Pattern
from irlang.interp import reference

Array = np.ndarray[Any, np.dtype[Any]]
_DTYPE = "f32"
_SHAPES = ((1, 2, 3), (2, 3))  # of a sample
_STEP = 0.37  # from one of its numbers to the next, on both sides of 0

_kept: dict[tuple[str, int, int], tuple[Pattern, Catalog, bool]] = {}


def is_hollow(made: Pattern, catalog: Catalog) -> bool:
    """Whether a call of an operator gives its operand as it is where no attribute is said."""
    return _known("hollow", made, catalog, _changes_nothing)


def is_ordered(made: Pattern, catalog: Catalog) -> bool:
    """Whether another number comes out where two operands change places."""
    return _known("ordered", made, catalog, _takes_sides)


def _known(
    what: str, made: Pattern, catalog: Catalog, asked: Callable[[Pattern, Catalog], bool]
) -> bool:
    """What is asked of an operator, once."""
    key = what, id(made), id(catalog)
    if key not in _kept:
        _kept[key] = made, catalog, asked(made, catalog)
    return _kept[key][-1]


def _takes_sides(made: Pattern, catalog: Catalog) -> bool:
    pair = [slot.item.name for slot in made.slots[:2]]
    if len(pair) < 2:
        return False
    sample = _sample(_SHAPES[-1])
    other = sample[::-1, ::-1].copy()
    one, swapped = (
        _result(made, catalog, dict(zip(pair, side, strict=True)))
        for side in ((sample, other), (other, sample))
    )
    if one is None or swapped is None:
        return False
    return not np.array_equal(one, swapped, equal_nan=True)


def _changes_nothing(made: Pattern, catalog: Catalog) -> bool:
    if not made.slots or not made.attrs:
        return False
    for sample in map(_sample, _SHAPES):
        result = _result(made, catalog, {made.slots[0].item.name: sample})
        if result is not None:
            return np.array_equal(result, sample)
    return False


def _sample(shape: tuple[int, ...]) -> Array:
    """Numbers that all differ, some of them below 0."""
    count = int(np.prod(shape))
    return (np.arange(count).reshape(shape) - count // 2) * _STEP


def _result(made: Pattern, catalog: Catalog, given: Mapping[str, Array]) -> Array | None:
    """What a call of samples gives; None where it is invalid, needs more or has several results."""
    if not made.slots or made.slots[0].item.family:
        return None
    infos = {name: TensorInfo(value.shape, _DTYPE) for name, value in given.items()}
    instance = judge(made.op, infos, {})
    if instance is None or instance.faults or len(instance.outputs or ()) != 1:
        return None
    expansion = expand(instance, catalog)
    if expansion.is_open:
        return None
    try:
        found = reference.evaluate(expansion, given)
    except InvalidInput:
        return None
    return np.asarray(found[expansion.outputs[0]])
