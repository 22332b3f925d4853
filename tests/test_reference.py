"""The reference on generated calls, however it computes them: inside the radius."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irlang
from irlang import equations as eq
from irlang.catalog import builtin
from irlang.diagnostics import InvalidInput
from irlang.dtypes import DTYPES
from irlang.gen.build import generate
from irlang.interp import contraction, kernel_cache, reference, rounding
from irlang.interp.balls import Ball
from irlang.interp.draws import feeds as drawn_feeds
from irlang.interp.plain import Plain, load
from irlang.interp.program import balls, run
from irlang.interp.shape import check
from irlang.interp.values import initial_values, inputs
from irlang.parser import parse

CATALOG = builtin()
PROGRAMS = 184
KERNELS = 40  # distinct ones: each takes a seventh of a second to compile


def calls(seed: int) -> Iterator[tuple[str, eq.Expansion, dict[str, Any]]]:
    """The calls of a generated program, with what they are given."""
    graph = generate(CATALOG, seed, size=(1, 6)).graph
    values = {**inputs(graph, seed), **initial_values(graph, seed)}
    try:
        plain = run(graph, values, CATALOG)
    except InvalidInput:
        return  # the drawn values violate a precondition
    for node in graph.nodes:
        expansion = node.expansion(CATALOG)
        yield node.op.name, expansion, drawn_feeds(node, expansion, plain)


def hold(name: str, expansion: eq.Expansion, feeds: dict[str, Any]) -> None:
    got = reference.evaluate(expansion, feeds)
    given = {k: Ball(load(expansion.tensors[k], v)) for k, v in feeds.items()}
    balls = rounding.evaluate(expansion, given, "f64")
    for output in expansion.outputs:
        value = np.asarray(balls[output].value, dtype=np.float64)
        radius = np.broadcast_to(np.asarray(balls[output].bound, dtype=np.float64), value.shape)
        ours = got[output].astype(np.float64)
        assert ours.shape == value.shape
        with np.errstate(invalid="ignore"):
            # both values are within a radius of the true one
            near = np.abs(ours - value) <= 2 * radius
        same = (ours == value) | (np.isnan(ours) & np.isnan(value))
        assert (near | same | np.isinf(radius)).all(), (name, output)


def test_products_of_matrices_wherever_there_are_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "SMALL", 0)
    for name in ("COMPILE", "LOAD"):
        monkeypatch.setattr(reference, name, 2**60)
    monkeypatch.setattr(reference, "_PRODUCT", 0)
    monkeypatch.setattr(contraction.Contraction, "narrow", False)
    seen: Counter[str] = Counter()
    for seed in range(PROGRAMS):
        for name, expansion, feeds in calls(seed):
            hold(name, expansion, feeds)
            seen[name] += 1
    assert len(seen) > len(CATALOG) // 2


def test_pieces_are_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elementwise equations are evaluated piece by piece so that the cache has what they need."""
    monkeypatch.setattr(reference, "SMALL", 2**60)  # by NumPy alone
    cut = 0
    for seed in range(40):
        for name, expansion, feeds in calls(seed):
            whole = reference.evaluate(expansion, feeds)
            with monkeypatch.context() as patched:
                patched.setattr(Plain, "cached", 3)
                pieces = reference.evaluate(expansion, feeds)
            cut += any(a.size > 3 for a in whole.values())
            for tensor, array in whole.items():
                np.testing.assert_array_equal(pieces[tensor], array, f"{name} {tensor}")
                np.testing.assert_array_equal(np.signbit(pieces[tensor]), np.signbit(array))
    assert cut > 50


def test_kernels_of_generated_calls(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    kernel_cache.folder.cache_clear()
    monkeypatch.setattr(reference, "SMALL", 0)
    for name in ("COMPILE", "LOAD", "IMPORT"):
        monkeypatch.setattr(reference, name, 0)
    monkeypatch.setattr(reference, "_PRODUCT", 2**60)
    seen: Counter[str] = Counter()
    before = len(kernel_cache._loaded)
    seed = 0
    while len(kernel_cache._loaded) - before < KERNELS:
        for name, expansion, feeds in calls(seed):
            if not seen[name]:
                hold(name, expansion, feeds)
                seen[name] += 1
        seed += 1
    kernel_cache.folder.cache_clear()
    assert len(seen) > KERNELS // 4


_PLACES = """
nnir 1
op greatest[T: number](x: T[N], m: bool[N]) -> at: i64[] { at[] = argmax(i < N | m[i]) x[i] }
op least[T: number](x: T[N], m: bool[N]) -> at: i64[] { at[] = argmin(i < N | m[i]) x[i] }
model places(x: TYPE[N], m: bool[N]) -> high: i64[], low: i64[] {
  high = greatest(x, m)
  low = least(x, m)
}
"""
_CHOICES: dict[str, list[Any]] = {
    "f32": [-np.inf, np.inf, np.nan, 0.0, 1.5],
    "i64": [-(2**63), 2**63 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 0],
    "u64": [0, 2**64 - 1, 2**53 + 1, 2**63, 2**63 + 1],
    "i8": [-128, 127, 0, 1],
}


@pytest.mark.parametrize("dtype", _CHOICES)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_the_place_of_an_extreme_among_those_of_a_filter(dtype: str, data: st.DataObject) -> None:
    """What is left out has no say, however large whole numbers are, or where all are infinite."""
    drawn = st.tuples(st.sampled_from(_CHOICES[dtype]), st.booleans())
    pairs = data.draw(st.lists(drawn, min_size=1, max_size=6))
    model = irlang.loads(_PLACES.replace("TYPE", dtype), bind={"N": len(pairs)})
    graph, catalog = model.graph, model.catalog
    values = {
        "x": np.array([x for x, _ in pairs], DTYPES[dtype].numpy),
        "m": np.array([m for _, m in pairs]),
    }
    asked = [i for i, (_, m) in enumerate(pairs) if m]
    if not asked:
        with pytest.raises(InvalidInput, match="nothing"):
            run(graph, values, catalog)
        return
    strange = [i for i in asked if pairs[i][0] != pairs[i][0]]
    places = strange[:1] or [max(asked, key=lambda i: pairs[i][0])]
    places += strange[:1] or [min(asked, key=lambda i: pairs[i][0])]
    found, around = run(graph, values, catalog), balls(graph, values, catalog, "f32")
    for name, place in zip(("high", "low"), places, strict=True):
        assert found[name] == place
        assert (around[name].value, around[name].bound) == (place, 0)


@pytest.mark.parametrize(
    "call",
    [
        "matrix_diagonals(x; lower = 0, upper = 0, value = 1.0)",
        "diagonals_matrix(x; lower = 0, upper = 0, rows = 1, columns = 1, value = 1.0)",
        "sparse_to_dense(ids, flat; rows = 1, columns = 1, value = 1.0)",
        "ragged_to_dense(splits, flat; columns = 1, value = 1.0)",
    ],
)
def test_a_whole_number_beside_a_filling_keeps_its_digits(call: str) -> None:
    """A filling is any real number; beside integers it is one of them."""
    text = (
        "nnir 1\nmodel m(x: i64[1, 1], flat: i64[1], ids: i64[1, 2], splits: i64[2])"
        f" -> y: i64[1, 1] {{ y = {call} }}\n"
    )
    number = -(2**53) - 1
    fed = {"x": [[number]], "flat": [number], "ids": [[0, 0]], "splits": [0, 1]}
    graph = check(parse(text, "m"), builtin()).graphs[0]
    found = run(graph, {key: np.asarray(value, np.int64) for key, value in fed.items()}, builtin())
    assert found["y"].tolist() == [[number]]


def test_how_many_whole_numbers_there_are_is_counted_in_whole_numbers() -> None:
    text = (
        "nnir 1\nmodel m() -> y: i64[2] "
        "{ y = arange(; start = -9223372036854775808, stop = 0, step = 9223372036854775807) }\n"
    )
    graph = check(parse(text, "m"), builtin()).graphs[0]
    assert run(graph, {}, builtin())["y"].tolist() == [-(2**63), -1]
