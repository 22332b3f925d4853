"""How long whole tensors are: no value is longer, and deep networks are bounded by it."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

import irlang.interp.constants as constants
from irlang import equations as eq
from irlang.analysis.trace import trace
from irlang.api import load
from irlang.catalog import builtin
from irlang.dtypes import DTYPES
from irlang.graph import Graph
from irlang.interp import lengths, norms
from irlang.interp.constants import Known
from irlang.interp.range import analyse
from irlang.interp.range_call import Call
from irlang.interp.spans import repeated, span
from irlang.interp.values import initial_values, inputs
from tests.test_range import possible

_SHAPES = st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 3))


@given(shape=_SHAPES, seed=st.integers(0, 99), scale=st.sampled_from([1e-20, 1.0, 1e15]))
def test_no_matrix_makes_longer_than_its_norm(
    shape: tuple[int, int, int], seed: int, scale: float
) -> None:
    numbers = (np.random.default_rng(seed).normal(0, scale, shape)).astype(np.float32)
    known = Known(numbers)
    exact = np.asarray(numbers, np.float64)
    norm = np.linalg.norm(exact.reshape(shape[0], -1), 2)
    assert norm <= known.spectral([], [0], [1, 2]) <= norm * 1.001
    batched = max(np.linalg.norm(exact[:, :, at], 2) for at in range(shape[2]))
    assert batched <= known.spectral([2], [1], [0]) <= batched * 1.001
    rows = np.sqrt(np.sum(exact**2, axis=1)).max()
    assert rows <= known.row([1]) <= rows * 1.001


@given(shape=_SHAPES, seed=st.integers(0, 99))
def test_numbers_whose_squares_are_nothing_have_a_length(
    shape: tuple[int, int, int], seed: int
) -> None:
    numbers = np.random.default_rng(seed).normal(0, 1e-170, shape)
    known, norm = Known(numbers), np.linalg.norm(numbers.reshape(shape[0], -1) * 1e170, 2) / 1e170
    assert norm <= known.spectral([], [0], [1, 2])
    assert np.sqrt(np.sum((numbers * 1e170) ** 2, axis=1)).max() / 1e170 <= known.row([1])


def test_of_very_many_numbers_the_largest_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = np.random.default_rng(0).normal(0, 1, (6, 5, 2)).astype(np.float32)
    norm, row = Known(numbers).spectral([], [0], [1, 2]), Known(numbers).row([1])
    monkeypatch.setattr(constants, "_MOST", 10)
    largest = np.abs(numbers).max()
    assert norm <= Known(numbers).spectral([], [0], [1, 2]) <= 1.001 * largest * math.sqrt(60)
    assert row <= Known(numbers).row([1]) <= 1.001 * largest * math.sqrt(5)


_FORM = st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.integers(-3, 3))


@given(forms=st.lists(_FORM, min_size=1, max_size=3), sizes=st.tuples(*[st.integers(1, 5)] * 3))
def test_no_element_is_read_more_often(
    forms: list[tuple[int, ...]], sizes: tuple[int, ...]
) -> None:
    names = ("i", "j", "k")

    def index(form: tuple[int, ...]) -> eq.Expr:
        terms = [
            eq.Apply("*", (eq.Const(c), eq.Index(n))) for c, n in zip(form, names, strict=True)
        ]
        return eq.Apply("+", (eq.Apply("+", (terms[0], terms[1])), terms[2]))

    read = eq.Read("x", tuple(map(index, forms)))
    times = repeated(read, {n: (0, size - 1) for n, size in zip(names, sizes, strict=True)}, names)
    places: dict[Any, int] = {}
    for at in itertools.product(*map(range, sizes)):
        place = tuple(int(np.dot(form, at)) for form in forms)
        places[place] = places.get(place, 0) + 1
    assert times is not None
    assert max(places.values()) <= times


_LAYERS = st.lists(
    st.sampled_from(
        [
            "conv({x}, w; pad = same)",
            "conv({x}, w; stride = 2, pad = same)",
            "conv({x}, v; groups = 2, dilation = 2, pad = same)",
            "relu({x})",
            "negate({x})",
            "add({x}, {x})",
            "multiply({x}, k)",
            "divide({x}, e)",
            "subtract({x}, k)",
            "max_pool({x}; window = 3, stride = 2, pad = same)",
            "avg_pool({x}; window = 2, pad = same)",
            "batch_norm({x}, c, c, d, d)",
            "transpose(matmul(transpose({x}; perm = [0, 2, 3, 1]), m); perm = [0, 3, 1, 2])",
        ]
    ),
    min_size=1,
    max_size=5,
)


_PARAMS = {"w": (4, 4, 3, 3), "v": (4, 2, 2, 1), "m": (4, 4), "c": (4,), "d": (4,)}
_PARAMS |= {"k": (4, 1, 1), "e": (4, 1, 1)}


def _model(folder: Path, layers: list[str], seed: int, dtype: str) -> Graph:
    """Layers one after the other, whose parameters are numbers in a file."""
    numbers = np.random.default_rng(seed)
    kind = DTYPES[dtype].numpy
    made = {name: numbers.normal(0, 1, shape).astype(kind) for name, shape in _PARAMS.items()}
    made |= {name: (0.5 + np.abs(made[name])).astype(kind) for name in "de"}
    save_file(made, folder / "weights.safetensors")
    lines = [
        f'param {name}: {dtype}{list(shape)} = data("weights.safetensors", "{name}")'
        for name, shape in _PARAMS.items()
    ]
    lines += [f"x{at + 1} = {layer.format(x=f'x{at}')}" for at, layer in enumerate(layers)]
    lines.append(f"y = reduce_sum(x{len(layers)})")
    body = "".join(f"  {line}\n" for line in lines)
    file = folder / "model.nnir"
    file.write_text(
        f"nnir 1\nmodel m(x0: {dtype}[2, 4, 5, 6] in [-3, 2]) -> y: {dtype}[] {{\n{body}}}\n"
    )
    return load(file).graph


@settings(max_examples=60, deadline=None)
@given(layers=_LAYERS, seed=st.integers(0, 99), dtype=st.sampled_from(["f32", "f16"]))
def test_nothing_is_longer_than_its_span(layers: list[str], seed: int, dtype: str) -> None:
    spans: dict[str, float] = {}
    leave = Call.leave

    def noted(self: Call) -> None:
        for formal in self.expansion.outputs:
            spans[self.names[formal]] = span(self.tensors[self.names[formal]])
        leave(self)

    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(Call, "leave", noted)
        patched.setattr(norms, "_ROOT", 0.0)
        graph = _model(Path(folder), layers, seed, dtype)
        found = analyse(graph, builtin())
        values = {**inputs(graph, seed), **initial_values(graph, seed)}
    with np.errstate(all="ignore"):
        met = trace(graph, values, builtin())
    for name, most in spans.items():
        array = np.asarray(met[name], np.float64)
        if math.isfinite(most):
            assert np.linalg.norm(array) <= most
        ends = found.values[name]
        assert np.all((array >= ends.low) & (array <= ends.high))


def test_a_deep_network_of_known_weights_is_proved_to_be_finite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the sizes of a row add up to 51, the largest singular value is 16
    weights = np.random.default_rng(0).normal(0, 1, (64, 64)).astype(np.float32)
    save_file({"w": weights}, tmp_path / "weights.safetensors")
    layers = "".join(f"  x{at + 1} = relu(matmul(x{at}, w))\n" for at in range(24))
    (tmp_path / "deep.nnir").write_text(
        "nnir 1\nmodel m(x0: f32[2, 64] in [-1, 1]) -> x24: f32[2, 64] {\n"
        f'  param w: f32[64, 64] = data("weights.safetensors", "w")\n{layers}}}\n'
    )
    graph = load(tmp_path / "deep.nnir").graph
    assert not possible(analyse(graph, builtin()))
    monkeypatch.setattr(lengths, "span", lambda _: math.inf)
    assert possible(analyse(graph, builtin()))
