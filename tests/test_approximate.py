"""`approximate(x)` may be any number near x: what is made of it does not depend on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import irlang
from irlang import equations as eq
from irlang.certain import of_values
from irlang.interp.gradient import gradient_balls
from irlang.interp.program import balls
from irlang.interp.values import Array
from irlang.scalar import SCALARS

MODEL = """
nnir 1

model m(x: f64[2, {n}, {n}] in [-1, 1], b: f64[2, {n}, 1])
    -> y: f64[2, {n}, {n}], d: f64[2], z: f64[2, {n}, 1] {{
  y = inverse(x)
  d = determinant(x)
  z = solve(x, b)
}}
"""


def disturbed(seed: int) -> Any:
    """The row of `approximate`, its number off by a millionth of it: another one each time."""
    random = np.random.default_rng(seed)
    return replace(
        SCALARS["approximate"],
        numpy=lambda a, b: (  # noqa: ARG005
            a * (1 + 1e-6 * random.uniform(-1, 1, np.shape(a)))
            if np.asarray(a).dtype.kind == "f"
            else a
        ),
    )


@settings(max_examples=20)
@given(st.integers(4, 9), st.integers(0, 2**32 - 1))
def test_what_is_made_of_a_number_nearby_depends_on_it_no_more_than_rounding_does(
    n: int, seed: int
) -> None:
    model = irlang.loads(MODEL.format(n=n))
    random = np.random.default_rng(seed)
    values = {"x": random.uniform(-1, 1, (2, n, n)), "b": random.uniform(-1, 1, (2, n, 1))}
    own = balls(model.graph, values, model.catalog, "f64")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SCALARS, "approximate", disturbed(seed))
        other = balls(model.graph, values, model.catalog, "f64")
    assert any(np.any(own[name].value != other[name].value) for name in "ydz")
    for name in "ydz":
        apart = np.abs(own[name].value - other[name].value)
        assert np.all(apart <= own[name].bound + other[name].bound)


@settings(max_examples=20)
@given(st.integers(4, 9), st.integers(0, 2**32 - 1))
def test_no_gradient_flows_through_it_and_none_is_missing(n: int, seed: int) -> None:
    """The gradient of the sum of an inverse Y is -Y' 1 Y', that of a determinant d Y'."""
    text = "nnir 1\nmodel m(x: f32[{n}, {n}]) -> y: f32[{out}] {{\n  y = {op}(x)\n}}\n"
    x = np.random.default_rng(seed).uniform(-1, 1, (n, n)).astype(np.float32)
    inverse = np.linalg.inv(x.astype(np.float64))
    ones = np.ones((n, n))
    for op, out, right in (
        ("inverse", f"{n}, {n}", -inverse.T @ ones @ inverse.T),
        ("determinant", "", np.linalg.det(x.astype(np.float64)) * inverse.T),
    ):
        model = irlang.loads(text.format(n=n, op=op, out=out))
        found = gradient_balls(model.graph, {"x": x}, model.catalog)["x"]
        assert np.all(np.abs(found.value - right) <= found.bound)


@pytest.mark.parametrize("n", [4, 9, 16])
def test_of_larger_matrices_too_ten_bits_are_known(n: int) -> None:
    """The polynomial of the matrix itself knew nothing of nine rows."""
    x = np.eye(n) + np.random.default_rng(n).uniform(-1, 1, (n, n)) / n
    b = np.ones((n, 1))
    text = MODEL.replace("f64[2, ", "f32[").replace("f64[2]", "f32[]").format(n=n)
    model = irlang.loads(text)
    known = balls(model.graph, {"x": x, "b": b}, model.catalog, "f32")
    for name in "ydz":
        assert np.all(known[name].bound < 2**-10 * np.abs(known[name].value).max())


def eliminated(x: Array) -> tuple[Array, np.floating[Any]]:
    """The inverse and the determinant in float32 by Gauss's elimination, pivots by columns."""
    n = len(x)
    both = np.concatenate([x, np.eye(n, dtype=np.float32)], axis=1)
    determinant: np.floating[Any] = np.float32(1)
    for k in range(n):
        best = k + int(np.argmax(np.abs(both[k:, k])))
        if best != k:
            both[[k, best]] = both[[best, k]]
            determinant = -determinant
        determinant *= both[k, k]
        both[k + 1 :] -= both[k + 1 :, k : k + 1] / both[k, k] * both[k]
    for k in reversed(range(n)):
        both[k] /= both[k, k]
        both[:k] -= both[:k, k : k + 1] * both[k]
    return both[:, n:], determinant


KINDS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "normal": lambda random, n: random.normal(size=(n, n)),
    "above zero": lambda random, n: random.uniform(0, 1, (n, n)),
    "whole": lambda random, n: random.integers(-4, 5, (n, n)).astype(np.float64),
    "rows of other sizes": lambda random, n: (
        random.normal(size=(n, n)) * 10.0 ** random.integers(-3, 4, (n, 1))
    ),
    "columns of other sizes": lambda random, n: (
        random.normal(size=(n, n)) * 10.0 ** random.integers(-3, 4, n)
    ),
    "nearly of a lower rank": lambda random, n: (
        random.normal(size=(n, n)) * 10.0 ** -np.linspace(0, 3, n) @ random.normal(size=(n, n))
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20)
@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_what_programs_find_by_elimination_lies_within(kind: str, n: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    x = KINDS[kind](random, n).astype(np.float32)
    assume(np.linalg.matrix_rank(x.astype(np.float64)) == n)
    model = irlang.loads(MODEL.replace("f64[2, ", "f32[").replace("f64[2]", "f32[]").format(n=n))
    b = random.normal(size=(n, 1)).astype(np.float32)
    known = balls(model.graph, {"x": x, "b": b}, model.catalog, "f32")
    inverse, determinant = eliminated(x)
    for name, got in (
        *(("y", made) for made in (inverse, np.linalg.inv(x))),
        *(("d", made) for made in (determinant, np.linalg.det(x))),
        *(("z", made) for made in (inverse @ b, np.linalg.solve(x, b))),
    ):
        radius = known[name].bound
        assert np.all((np.abs(got - known[name].value) <= radius) | np.isinf(radius)), name


@pytest.mark.parametrize("n", [4, 6])
@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_proofs_may_have_its_second_argument_for_it(n: int, seed: int) -> None:
    model = irlang.loads(MODEL.format(n=n))
    random = np.random.default_rng(seed)
    values = {"x": random.uniform(-1, 1, (2, n, n)), "b": random.uniform(-1, 1, (2, n, 1))}
    own = balls(model.graph, values, model.catalog, "f64")
    with pytest.MonkeyPatch.context() as patch:
        row = replace(SCALARS["approximate"], numpy=lambda a, b: b + 0 * a)
        patch.setitem(SCALARS, "approximate", row)
        other = balls(model.graph, values, model.catalog, "f64")
    for name in "yd":
        apart = np.abs(own[name].value - other[name].value)
        assert np.all(apart <= own[name].bound + other[name].bound)
    for node in model.graph.nodes:
        used = (
            part
            for e in of_values(node.expansion(model.catalog)).equations
            for part in eq.walk(e.body)
        )
        assert not any(isinstance(p, eq.Apply) and p.function == "approximate" for p in used)
