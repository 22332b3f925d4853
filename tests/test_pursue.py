"""Zeros that inputs are closed in on: between neighbours, and where another run rounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irlang.analysis.probe import Place, probes
from irlang.analysis.pursue import Pursuit
from irlang.analysis.subject import Subject
from irlang.interp.range import Range, analyse
from irlang.interp.values import Array
from tests.analysed import model, ready

PLAIN = "y = divide(1, subtract(reduce_sum(x; axes = 0), {number}))"


def pursued(made: Subject, goal: str, run: Any = None) -> Pursuit:
    """A pursuit of what the last call divides by, or takes the logarithm or the root of."""
    node = made.graph.nodes[-1]
    point = next(p for p in analyse(made.graph, made.catalog).points if p.node == node.name)
    place = Place(point.tensor, point.function, Range(-1.0, 1.0))
    probe = next(one for one in probes(made.graph, node, place, made.catalog) if one.goal == goal)
    return Pursuit(made, node, probe, math.inf, run)


def summed(count: int, number: float) -> Subject:
    body = PLAIN.format(number=repr(number))
    return ready(model(body, f"x: f32[{count}] in [0, 1]", "y: f32[]"))


@given(st.integers(300, 2000), st.floats(1.9, 1.99))
def test_a_sum_of_equal_numbers_is_met_with_some_of_them_moved(count: int, number: float) -> None:
    """All moved at once, it goes past what it is held against by many roundings."""
    made = summed(count, float(np.float32(number)))
    (hit,) = pursued(made, "zero").hits([{"x": np.zeros(count, np.float32)}])
    assert np.float32(math.fsum(hit["x"])) == np.float32(number)


def added(numbers: Array) -> np.float32:
    return np.float32(math.fsum(numbers) * (1 + 2.0**-20))


@given(st.integers(300, 2000), st.floats(1.9, 1.99))
def test_another_run_closes_in_beside_the_place(count: int, number: float) -> None:
    """One whose sums are some roundings larger does not show what is met in exact numbers."""
    number = float(np.float32(number))
    made = summed(count, number)
    first = pursued(made, "zero")
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

    other = pursued(made, "zero", larger)
    assert first.crossing is not None
    beside = other.close_in(first.crossing)
    assert beside is not None
    assert added(beside["x"]) == np.float32(number)
    assert looks < 40


def looks(body: str, goal: str) -> int:
    """How many inputs are tried beside the first start of a pursuit of a logarithm or a root."""
    pursuit = pursued(ready(model(body, "x: f32[3] in [-10, 10]", "y: f32[3]")), goal)
    count = 0
    look = pursuit.look

    def counted(values: Mapping[str, Any]) -> Any:
        nonlocal count
        count += 1
        return look(values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pursuit, "look", lambda _, values: counted(values))
        assert list(pursuit.hits([{"x": np.array([9.7, -8.3, 2.9], np.float32)}])) == []
    return count


def test_only_what_rounding_decides_is_shaken() -> None:
    """A small probability is near the end of the logarithm's domain, and no nearer elsewhere; nor
    is what is 0 wherever one looks. What two roundings have left of a difference is.
    """
    left = "subtract(add(exp(x), multiply(x, 3)), multiply(x, 3))"
    lacks = f"reduce_max(abs(subtract({left}, exp(x))); axes = 0, keepdims = true)"
    assert looks(f"y = sqrt(broadcast_to({lacks}; shape = [3]))", "low") > 40
    assert looks("y = log(softmax(x; axis = 0))", "low") < 25
    assert looks("y = sqrt(square(subtract(x, x)))", "low") < 25


TOUCHES = {
    "a determinant of what is longer than 1": (
        "n = multiply(reduce_sum(square(x); axes = 1), reduce_sum(square(z); axes = 1))\n"
        "t = multiply(2.0, reduce_sum(multiply(x, z); axes = 1))\n"
        "y = {}(add(add(1.0, t), n))"
    ),
    "a square of a difference, expanded": (
        "a = reduce_sum(x; axes = 1)\nb = reduce_sum(z; axes = 1)\n"
        "y = {}(add(subtract(square(a), multiply(2.0, multiply(a, b))), square(b)))"
    ),
}  # fmt: skip


@pytest.mark.parametrize("function", ["log", "reciprocal"])
@pytest.mark.parametrize("body", TOUCHES.values(), ids=TOUCHES)
def test_an_end_that_is_met_and_not_passed_is_stepped_to(body: str, function: str) -> None:
    """There is no other sign to close in on, and a step along a slope alone is too far or short."""
    inputs = "x: f32[4, 3] in [-1.7, 1.9], z: f32[4, 3] in [-1.7, 1.9]"
    made = ready(model(body.format(function), inputs, "y: f32[4]"))
    own = pursued(made, "zero" if function == "reciprocal" else "low")
    numbers = np.random.default_rng(1)
    starts = [
        {name: numbers.uniform(-1.7, 1.9, (4, 3)).astype(np.float32) for name in "xz"}
        for _ in range(8)
    ]
    assert next(own.hits(starts), None) is not None
