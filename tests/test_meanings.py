"""Every definition: reference and exact agree within the radius of double-precision rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irlang.catalog import builtin
from irlang.diagnostics import InvalidInput
from irlang.gen.build import generate
from irlang.gen.draw import Limits
from irlang.graph import Graph
from irlang.interp import exact, reference, rounding
from irlang.interp.balls import Ball
from irlang.interp.values import initial_values, inputs

CATALOG = builtin()
NAMES = sorted(op.name for op in CATALOG)
CALLS = 4  # of each definition, over shapes, attributes and values
SEEDS = 60  # that may be tried for them
LIMITS = Limits(elements=200, length=9)


def _values(graph: Graph, seed: int) -> dict[str, Any]:
    return {**inputs(graph, seed), **initial_values(graph, seed)}


@pytest.mark.parametrize("name", NAMES)
def test_reference_and_exact_agree(name: str) -> None:
    done = 0
    for seed in range(SEEDS):
        graph = generate(CATALOG, seed, ops=(name,), size=(1, 1), limits=LIMITS).graph
        if not graph.nodes:
            continue
        node = graph.nodes[-1]
        expansion = node.expansion(CATALOG)
        if sum(int(np.prod(info.shape)) for info in expansion.tensors.values()) > 600:
            continue
        values = _values(graph, seed)
        feeds = {
            formal: values[source] for formal, source in node.feeds().items() if source in values
        }
        if len(feeds) < len(expansion.inputs):
            continue  # fed by another call
        try:
            true = exact.evaluate(expansion, feeds, limit=200_000)
        except InvalidInput as error:
            refused = {d.code for d in error.diagnostics}
            if refused == {"run.work"}:
                continue
            with pytest.raises(InvalidInput) as caught:
                reference.evaluate(expansion, feeds)
            assert {d.code for d in caught.value.diagnostics} & refused
            done += 1
            continue
        found = reference.evaluate(expansion, feeds)
        balls = rounding.evaluate(
            expansion, {k: Ball(np.asarray(v)) for k, v in _loaded(expansion, feeds).items()}, "f64"
        )
        for result in expansion.outputs:
            _inside(found[result], true[result].numpy(), balls[result])
        done += 1
        if done == CALLS:
            break
    assert done >= 1, "no call of this definition could be compared"


def _loaded(expansion: Any, feeds: dict[str, Any]) -> dict[str, Any]:
    from irlang.interp.plain import load

    return {name: load(expansion.tensors[name], value) for name, value in feeds.items()}


def _inside(value: Any, true: Any, ball: Ball) -> None:
    value = np.asarray(value, dtype=np.float64)
    true = np.asarray(true, dtype=np.float64)
    # both the value and the exact one read off as float64 are rounded
    radius = np.broadcast_to(np.asarray(ball.bound), value.shape) + 2.0**-52 * np.abs(true)
    same = (value == true) | (np.isnan(value) & np.isnan(true)) | np.isinf(radius)
    with np.errstate(invalid="ignore"):
        assert np.all(same | (np.abs(value - true) <= radius))
