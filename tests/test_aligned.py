"""Slices of a result that hang on the same slices of an input alone: held to the values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irlang.catalog import builtin
from irlang.diagnostics import InvalidInput
from irlang.expand import expand
from irlang.instance import instantiate
from irlang.interp import vector
from irlang.interp.aligned import aligned, hanging
from irlang.interp.draws import feeds
from tests.lower_calls import calls, every_case
from tests.ops.compare import info


def axes_of(op: str, result: str, attrs: dict[str, Any], **inputs: Any) -> dict[str, Any]:
    definition = builtin().op(op)
    assert definition is not None
    instance = instantiate(definition, {n: info(a) for n, a in inputs.items()}, attrs)
    return aligned(expand(instance, builtin()), result)


def test_axes_of_a_batch_are_aligned_and_those_that_are_summed_are_not() -> None:
    x, w = np.zeros((2, 3, 4), np.float32), np.zeros((4, 5), np.float32)
    assert axes_of("dense", "y", {}, x=x, w=w) == {"x": (0, 1, None), "w": (None, None, 1)}
    square = np.zeros((4, 4), np.float32)
    assert axes_of("transpose", "y", {"perm": (1, 0)}, x=square) == {"x": (1, 0)}
    assert axes_of("cumsum", "y", {"axis": 0}, x=square) == {"x": (None, 1)}
    assert axes_of("cholesky", "y", {}, x=np.zeros((4, 3, 3), np.float32)) == {"x": (0, None, None)}


def test_what_is_read_at_a_place_that_another_tensor_says_is_not_aligned() -> None:
    ids = np.zeros((3, 2), np.int64)
    found = axes_of("gather", "y", {"axis": 0}, x=np.zeros((3, 2), np.float32), ids=ids)
    assert found == {"x": (None, None, 1), "ids": (0, 1, None)}


@pytest.mark.parametrize("place", range(len(calls())), ids=[call for _, call in calls()])
def test_another_slice_has_no_say(place: int) -> None:
    """An element of an input is changed: what may hang on it, and only that, is another value."""
    case = every_case("f32")[place]
    (node,) = case.graph.nodes
    expansion = node.expansion(case.catalog)
    if expansion.is_open:
        pytest.skip("its values are any that its definition allows")
    given = feeds(node, expansion, {**case.inputs, **case.params})
    before = vector.evaluate(expansion, given)
    random = np.random.default_rng(3)
    for name in expansion.inputs:
        array = np.array(given[name])
        if not array.size:
            continue
        at = tuple(int(random.integers(n)) for n in array.shape)
        for other in np.unique(array)[[0, -1]] if array.dtype.kind in "iu" else (0.25, 1.5):
            changed = array.copy()
            changed[at] = not array[at] if array.dtype.kind == "b" else other
            try:
                after = vector.evaluate(expansion, {**given, name: changed})
            except InvalidInput:
                continue
            for result in expansion.outputs:
                masks = {
                    result: np.array(
                        (before[result] != after[result])
                        & ~((before[result] != before[result]) & (after[result] != after[result]))
                    )
                }
                if masks[result].any():
                    assert hanging(expansion, masks, name)[at]
