"""Whole programs let go of a tensor as soon as its last reader has run."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irlang
from irlang.interp import program, reference, rounding

TEXT = """nnir 1
model chain(x: f32[40, 50] in [-1, 1], w: f32[50, 50] in [-1, 1]) -> y: f32[40, 50] {
  a = tanh(x)
  b = dense(a, w)
  c = softmax(b)
  d = add(c, a)
  e = relu(d)
  y = layer_norm(e)
}
"""


def alive(monkeypatch: pytest.MonkeyPatch, module: Any, run: Callable[[], object]) -> list[int]:
    """How many results of earlier calls are still there when each call has been evaluated."""
    made: list[weakref.ref[Any]] = []
    counts: list[int] = []
    evaluate = module.evaluate

    def watched(expansion: Any, *args: Any, **more: Any) -> Any:
        counts.append(sum(ref() is not None for ref in made))
        found = evaluate(expansion, *args, **more)
        results = (found[name] for name in expansion.outputs)
        made.extend(weakref.ref(getattr(result, "value", result)) for result in results)
        return found

    monkeypatch.setattr(module, "evaluate", watched)
    run()
    return counts


@pytest.mark.parametrize("radii", [False, True])
@pytest.mark.parametrize("keep", [False, True])
def test_what_nobody_reads_any_more_is_freed(
    radii: bool, keep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = irlang.loads(TEXT)
    values = model.values()
    wanted = None if keep else {"y"}

    def run() -> object:
        if radii:
            return program.balls(model.graph, values, model.catalog, "f32", keep=wanted)
        return program.run(model.graph, values, model.catalog, reference.evaluate, keep=wanted)

    counts = alive(monkeypatch, rounding if radii else reference, run)
    # before each call: nothing, a, (a, b), (a, c), d, e
    assert counts == ([0, 1, 2, 3, 4, 5] if keep else [0, 1, 2, 2, 1, 1])


def test_what_is_kept_is_the_same() -> None:
    model = irlang.loads(TEXT)
    values = model.values()
    every = program.balls(model.graph, values, model.catalog, "f32")
    some = program.balls(model.graph, values, model.catalog, "f32", keep={"y", "c"})
    assert some.keys() - {"x", "w"} == {"y", "c"}
    for name in ("y", "c"):
        np.testing.assert_array_equal(some[name].value, every[name].value)
        np.testing.assert_array_equal(some[name].radius, every[name].radius)
