"""Zeros that inputs are closed in on: between neighbours, and where another run rounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from irlang.analysis.probe import Place, probes
from irlang.analysis.pursue import Pursuit
from irlang.analysis.subject import Subject, subject
from irlang.api import loads
from irlang.interp.range import Range, analyse
from irlang.interp.values import Array

PLAIN = "y = divide(1, subtract(reduce_sum(x; axes = 0), {number}))"


def pursued(made: Subject, run: Any = None) -> Pursuit:
    """A pursuit of the last call's divisor."""
    node = made.graph.nodes[-1]
    point = next(p for p in analyse(made.graph, made.catalog).points if p.node == node.name)
    place = Place(point.tensor, point.function, Range(-1.0, 1.0))
    probe = next(p for p in probes(made.graph, node, place, made.catalog) if p.goal == "zero")
    return Pursuit(made, node, probe, math.inf, run)


def ready(count: int, number: float) -> Subject:
    body = PLAIN.format(number=repr(number))
    text = f"nnir 1\n\nmodel m(x: f32[{count}] in [0, 1]) -> y: f32[] {{\n  {body}\n}}\n"
    model = loads(text)
    return subject(model.graph, model.catalog)


@given(st.integers(300, 2000), st.floats(1.9, 1.99))
def test_a_sum_of_equal_numbers_is_met_with_some_of_them_moved(count: int, number: float) -> None:
    """All moved at once, it goes past what it is held against by many roundings."""
    made = ready(count, float(np.float32(number)))
    (hit,) = pursued(made).hits([{"x": np.zeros(count, np.float32)}])
    assert np.float32(math.fsum(hit["x"])) == np.float32(number)


def added(numbers: Array) -> np.float32:
    return np.float32(math.fsum(numbers) * (1 + 2.0**-20))


@given(st.integers(300, 2000), st.floats(1.9, 1.99))
def test_another_run_closes_in_beside_the_place(count: int, number: float) -> None:
    """One whose sums are some roundings larger does not show what is met in exact numbers."""
    number = float(np.float32(number))
    made = ready(count, number)
    first = pursued(made)
    assert next(first.hits([{"x": np.zeros(count, np.float32)}]), None) is not None
    looks = 0

    def larger(values: Mapping[str, Array]) -> dict[str, Array]:
        nonlocal looks
        looks += 1
        total = added(values["x"])
        left = np.float32(total - np.float32(number))
        names = [node.outputs[0] for node in made.graph.nodes]
        with np.errstate(divide="ignore"):
            own = map(np.asarray, (total, left, np.float32(1) / left))
        return {**values, **dict(zip(names, own, strict=True)), **made.fixed}

    other = pursued(made, larger)
    assert first.crossing is not None
    beside = other.close_in(first.crossing)
    assert beside is not None
    assert added(beside["x"]) == np.float32(number)
    assert looks < 40
