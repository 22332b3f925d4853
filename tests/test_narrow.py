"""Radii hold in every type: what programs compute in any order, fused and flushed, lies inside.

`tests.narrow` evaluates; balls are what they are held against, call by call.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import irlang
from irlang import equations as eq
from irlang.adjoint import adjoint
from irlang.catalog import builtin
from irlang.diagnostics import InvalidInput
from irlang.dtypes import DTYPES
from irlang.gen.build import generate
from irlang.gen.draw import Limits
from irlang.graph import Port
from irlang.interp import program, rounding, vector
from irlang.interp.balls import Ball
from irlang.interp.draws import feeds
from irlang.interp.plain import load
from irlang.interp.values import initial_values, inputs
from tests.narrow import Narrow
from tests.test_rounding import outside

CATALOG = builtin()
TYPES = ("f32", "f16", "bf16")
Array = Any


def _typed(values: Array, dtype: str) -> Array:
    """Numbers of a type, none of them denormal, which some targets take for zero."""
    row = DTYPES[dtype]
    values = np.clip(np.asarray(values, np.float64), -row.largest, row.largest)
    return np.where(np.abs(values) < row.tiny, 0.0, values).astype(row.numpy)


def _stored(drawn: Array, dtype: str) -> Array:
    """What a definition leaves open, as a tensor of the type has it."""
    return _typed(drawn, dtype).astype(np.float64) if drawn.dtype.kind == "f" else drawn


def _others(random: np.random.Generator, port: Port, drawn: Array) -> Array:
    """Numbers of which sums cancel, overflow and vanish, in the range that is declared."""
    if port.info.kind != "real":
        return drawn
    values, shape = np.asarray(drawn, np.float64), np.shape(drawn)
    match random.integers(5):
        case 1:
            values = random.integers(-3, 4, shape) * 2.0 ** random.integers(-3, 12, shape)
        case 2:
            values = values * 2.0 ** random.integers(-12, 12, shape)
        case 3:
            least = DTYPES[port.info.dtype].tiny
            values = random.integers(-9, 9, shape) * least * 2.0 ** random.integers(0, 9, shape)
        case 4:
            values = np.rint(values * 4)
    if port.within is not None:
        values = np.clip(values, float(port.within[0]), float(port.within[1]))
    return _typed(values, port.info.dtype)


def _held(expansion: eq.Expansion, values: dict[str, Array], dtype: str, seed: int) -> int:
    """How many elements some evaluations have shown to lie inside their balls."""
    try:
        found = rounding.evaluate(expansion, {k: Ball(v) for k, v in values.items()}, dtype)
        computed = [
            vector.evaluate(expansion, dict(values), Narrow(turn, dtype))
            for turn in range(seed, seed + 3)
        ]
    except InvalidInput:  # the numbers do not meet a precondition
        return 0
    judged = 0
    for name in expansion.outputs:
        for tensors in computed:
            beyond = outside(found[name], tensors[name])
            assert not beyond.any(), (name, dtype, seed, np.argwhere(beyond)[0])
            judged += beyond.size
    return judged


@pytest.mark.parametrize(
    ("name", "dtype"),  # for the time that it takes, two of the three
    [
        (op.name, dtype)
        for number, op in enumerate(CATALOG)
        for place, dtype in enumerate(TYPES)
        if (number + place) % 3
    ],
)
def test_every_definition_and_its_gradient_in_any_order(name: str, dtype: str) -> None:
    seed = zlib.crc32(f"{name} {dtype}".encode())
    random = np.random.default_rng(seed)
    limits = Limits(elements=200, length=9, reals=(dtype,))
    graph = generate(CATALOG, seed, ops=[name], size=(1, 1), limits=limits).graph
    values: dict[str, Array] = {**inputs(graph, seed), **initial_values(graph, seed)}
    for key, port in graph.inputs.items():
        values[key] = _others(random, port, values[key])
    loaded = {key: load(graph.values[key], value) for key, value in values.items()}
    for node in graph.nodes:
        expansion = node.expansion(CATALOG)
        fed = feeds(node, expansion, loaded, lambda drawn: _stored(drawn, dtype))
        _held(expansion, fed, dtype, seed)
        back = adjoint(expansion)
        for cotangent in back.inputs:
            if cotangent not in fed:
                shape = back.tensors[cotangent].shape
                drawn = random.integers(-3, 4, shape) * 2.0 ** random.integers(-2, 14, shape)
                fed[cotangent] = _typed(drawn, dtype).astype(np.float64)
        _held(back, fed, dtype, seed)


@st.composite
def _summands(draw: st.DrawFn) -> tuple[str, list[Array], int]:
    """A type, and rows of numbers with one of which others may cancel."""
    dtype = draw(st.sampled_from(TYPES))
    row, seed = DTYPES[dtype], draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    count = draw(st.integers(2, 6))
    digits = round(-np.log2(row.unit))
    last = draw(st.sampled_from([np.log2(row.tiny), -digits, 0, np.log2(row.largest) - 3]))
    powers = 2.0 ** (
        last + random.integers(0, draw(st.sampled_from([1, 4, digits + 4])), (count, 64))
    )
    with np.errstate(over="ignore"):
        terms = random.integers(-4, 5, (count, 64)) * powers
    terms *= 1 + random.integers(0, 2, (count, 64)) * row.unit * 2
    for place in range(draw(st.integers(0, count // 2))):
        terms[place] = -terms[-1 - place]
    return dtype, list(_typed(terms, dtype)), seed


@given(_summands())
def test_sums_in_any_order(drawn: tuple[str, list[Array], int]) -> None:
    """Written out, along an axis, and step by step: all orders of the same terms."""
    dtype, terms, seed = drawn
    count, width = len(terms), len(terms[0])
    names = [f"x{place}" for place in range(count)]
    taken = ", ".join(f"{name}: {dtype}[{width}]" for name in names)
    text = (
        f"nnir 1\nmodel m({taken}) -> a: {dtype}[{width}] {{\n"
        f"  a = add_n({', '.join(names)})\n"
        f"  s = stack({', '.join(names)}; axis = 0)\n"
        "  b = reduce_sum(s; axes = 0)\n  c = cumsum(s; axis = 0)\n}"
    )
    graph = irlang.loads(text).graph
    keep = ("a", "b", "c")
    given_values = dict(zip(names, terms, strict=True))
    found = program.balls(graph, given_values, CATALOG, dtype, keep=keep)
    wide = [term.astype(np.float64) for term in terms]
    for turn in range(seed, seed + 6):
        narrow = Narrow(turn, dtype)
        prefixes = np.stack([narrow.added(wide[: end + 1]) for end in range(count)])
        for name, got in (("a", prefixes[-1]), ("b", prefixes[-1]), ("c", prefixes)):
            beyond = outside(found[name], got)
            assert not beyond.any(), (name, np.argwhere(beyond)[0])
