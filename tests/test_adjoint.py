"""Gradients of every definition against difference quotients, and what adjoints are like."""

from __future__ import annotations

import itertools
import zlib
from typing import Any

import numpy as np
import pytest

from irlang import equations as eq
from irlang.adjoint import adjoint
from irlang.catalog import builtin
from irlang.equation_text import definition, show
from irlang.expand import expand
from irlang.instance import instantiate
from irlang.interp import rounding, vector
from irlang.interp.balls import Ball
from irlang.interp.draws import completed
from irlang.interp.plain import load
from irlang.interp.schedule import Recurrence, schedule
from irlang.parser import parse
from irlang.parser.printer import print_statement
from tests.difference_quotients import (
    LINES,
    backward_of,
    call,
    case,
    checked,
    first,
    quotient,
    variants,
)

TWICE = (
    "dense", "conv", "softmax", "gelu", "lstm", "cumsum", "layer_norm", "max_pool", "power",
    "reshape", "concat", "log_softmax",
)  # fmt: skip
# By which no difference quotients are what flows back: an input, or all, is held constant. Of the
# others of these functions tests/ops/test_special.py has the gradients.
HELD = (
    "stop_gradient", "fake_quantize_range", "quantize_and_dequantize",
    "gammainc", "gammaincc", "zeta", "poisson_density",
)  # fmt: skip
_EACH = 10  # of so many others one is differentiated twice as well


@pytest.mark.parametrize("line", LINES)
def test_gradients_are_difference_quotients(line: str) -> None:
    checked(first(line))
    rng = np.random.default_rng(zlib.crc32(line.encode()) + 1)
    for _, expansion in itertools.islice(variants(line), 1, None):
        checked(quotient(expansion, case(line)[2], rng), rounded=False)


def test_every_differentiable_definition_has_a_case() -> None:
    """Real results of real inputs; every enum choice fits at least one of its cases."""
    covered = {line.split()[0] for line in LINES}
    tried: dict[tuple[str, str], set[Any]] = {}
    for line in LINES:
        for chosen, _ in variants(line):
            for attribute, choice in chosen.items():
                tried.setdefault((line.split()[0], attribute), set()).add(choice)
    for op in builtin():
        real = {name for name, among in op.dtypes if among in ("float", "number", "any")}
        sources = any(i.type.dtype in real for i in op.inputs)
        if not sources or not any(o.type.dtype in real for o in op.outputs):
            continue
        if op.name in HELD:
            continue
        assert op.name in covered
        for attr in op.attrs:
            if attr.type.kind == "enum" and (op.name, attr.name) in tried:
                assert tried[op.name, attr.name] == set(attr.type.choices), (op.name, attr.name)


@pytest.mark.parametrize(
    "line", [c for n, c in enumerate(LINES) if c.split()[0] in TWICE or n % _EACH == 3]
)
def test_second_derivatives_follow_by_applying_it_twice(line: str) -> None:
    rng = np.random.default_rng(zlib.crc32(line.encode()) + 2)
    checked(quotient(*backward_of(first(line), "d_", "first"), rng), prefix="dd_")


@pytest.mark.parametrize("line", [c for c in LINES if c.startswith(("reduce_m", "max_pool"))])
def test_equal_shares_are_an_allowed_gradient_too(line: str) -> None:
    _, _, values, _ = case(line)
    rng = np.random.default_rng(zlib.crc32(line.encode()) + 3)
    for _, expansion in variants(line):
        checked(quotient(expansion, values, rng), ties="even")


@pytest.mark.parametrize("line", LINES)
def test_away_from_ties_nothing_is_left_open(line: str) -> None:
    """Written to be open at ties, a gradient is the same elsewhere, and its radius is finite."""
    one = first(line)
    if adjoint(one.expansion, ties="any") != adjoint(one.expansion, ties="first"):
        checked(one, ties="any")


@pytest.mark.parametrize(
    ("ties", "expected"), [("first", [0.0, 1.0, 0.0, 0.0]), ("even", [0.0, 0.5, 0.0, 0.5])]
)
def test_which_gradient_is_given_at_a_tie(ties: str, expected: list[float]) -> None:
    x = np.array([1.0, 2.0, -1.0, 2.0])
    backward = adjoint(call("reduce_max", {"x": eq.TensorInfo((4,), "f64")}), ties=ties)
    gradient = vector.evaluate(backward, {"x": x, "d_y": np.array(1.0)})["d_x"]
    assert gradient.tolist() == expected


def test_a_product_with_zeros_has_its_true_gradient() -> None:
    backward = adjoint(call("reduce_prod", {"x": eq.TensorInfo((3,), "f64")}))
    given = {"x": np.array([2.0, 0.0, 3.0]), "d_y": np.array(1.0)}
    assert vector.evaluate(backward, given)["d_x"].tolist() == [0.0, 6.0, 0.0]


@pytest.mark.parametrize("rows", [[[0.0]], [[1.0, 2.0], [2.0, 4.0]]])
def test_the_gradient_of_a_singular_determinant_is_its_adjugate(rows: list[list[float]]) -> None:
    """What is read by `constant`, or compared, alone takes no part: it is infinite there."""
    x = np.array(rows)
    backward = adjoint(call("determinant", {"x": eq.TensorInfo(x.shape, "f64")}))
    assert not [e.target for e in backward.equations if e.target in ("d_spread", "d_rows")]
    gradient = vector.evaluate(backward, {"x": x, "d_y": np.array(1.0)})["d_x"]
    adjugate = [[1.0]] if len(rows) == 1 else [[x[1, 1], -x[0, 1]], [-x[1, 0], x[0, 0]]]
    assert gradient.tolist() == np.transpose(adjugate).tolist()


def test_only_what_is_wanted_is_computed() -> None:
    types = {"x": eq.TensorInfo((2, 3), "f64"), "w": eq.TensorInfo((3, 4), "f64")}
    backward = adjoint(call("dense", types), wanted=["w"])
    assert backward.outputs == ("d_w",)
    assert [e.target for e in backward.equations] == ["d_w"]


def test_the_gradient_of_a_convolution_is_a_sum_of_products_without_filters() -> None:
    types = {"x": eq.TensorInfo((2, 4, 9, 9), "f64"), "w": eq.TensorInfo((6, 2, 3, 3), "f64")}
    attributes = {"groups": 2, "stride": (2, 1), "pad": "same"}
    backward = adjoint(call("conv", types, attributes))
    for equation in backward.equations:
        if equation.target in backward.outputs:
            assert isinstance(equation.body, eq.Reduce)
            assert equation.body.where is None
            assert isinstance(equation.body.body, eq.Apply)
            assert equation.body.body.function == "*"
            assert all(isinstance(factor, eq.Read) for factor in equation.body.body.args)


def test_the_adjoint_of_a_recurrence_runs_backward() -> None:
    backward = adjoint(call("cumsum", {"x": eq.TensorInfo((5,), "f64")}))
    steps = [s for s in schedule(backward.equations) if isinstance(s, Recurrence)]
    assert [step.descending for step in steps] == [True]


def test_a_second_adjoint_needs_another_prefix() -> None:
    backward = adjoint(call("exp", {"x": eq.TensorInfo((5,), "f64")}))
    with pytest.raises(ValueError, match="prefix"):
        adjoint(backward)


def test_an_empty_tensor_has_a_gradient() -> None:
    for name in ("reduce_max", "reduce_sum", "softmax", "cumsum"):
        expansion = call(name, {"x": eq.TensorInfo((0,), "f64")})
        weights = {f"d_{n}": np.ones(expansion.tensors[n].shape) for n in expansion.outputs}
        found = vector.evaluate(adjoint(expansion), {"x": np.ones(0), **weights})
        assert found["d_x"].shape == (0,)


# ---- as text ----------------------------------------------------------------------------------


@pytest.mark.parametrize("line", LINES)
def test_a_gradient_is_a_definition_of_the_language(line: str) -> None:
    """Printed, parsed and expanded again, it has the same values."""
    _, _, values, _ = case(line)
    rng = np.random.default_rng(zlib.crc32(line.encode()) + 4)
    _, expansion = next(variants(line))
    backward = adjoint(expansion)
    text = "nnir 1\n" + print_statement(definition(backward, "gradient"))
    (op,) = parse(text).ops
    read = (*backward.inputs, *(one.tensor for one in backward.drawn))
    names = dict(zip(read, (i.name for i in op.inputs), strict=True))
    instance = instantiate(op, {names[n]: backward.tensors[n] for n in read}, {})
    assert not instance.faults
    again = expand(instance, builtin())
    given = {n: a for n, a in values.items() if n in backward.inputs}
    for name in backward.inputs:
        if name not in given:
            given[name] = rng.uniform(-1, 1, backward.tensors[name].shape)
    given = completed(backward, given)
    one = vector.evaluate(backward, given)
    other = vector.evaluate(again, {names[n]: array for n, array in given.items()})
    loaded = {n: Ball(load(backward.tensors[n], array)) for n, array in given.items()}
    balls = rounding.evaluate(backward, loaded, "f64")
    for before, after in zip(backward.outputs, again.outputs, strict=True):
        # the two differ in the order of additions, and in nothing else
        assert np.all(np.abs(one[before] - other[after]) <= 2 * balls[before].bound)


def test_the_text_of_a_gradient() -> None:
    types = {"x": eq.TensorInfo((2, 3), "f32"), "w": eq.TensorInfo((3, 4), "f32")}
    assert show(adjoint(call("dense", types))) == (
        "d_x[s0 < 2, c < 3] = sum(f < 4) d_y[s0, f] * w[c, f]\n"
        "d_w[c < 3, f < 4] = sum(s0 < 2) d_y[s0, f] * x[s0, c]\n"
    )


def test_a_sum_over_many_filters_comes_before_one_over_the_kernel() -> None:
    """One input channel and eight filters: summed over the filters first, and correctly."""
    types = {"x": eq.TensorInfo((1, 1, 7), "f64"), "w": eq.TensorInfo((8, 1, 3), "f64")}
    for stride in (1, 2):
        expansion = call("conv", types, {"stride": (stride,), "pad": "same"})
        rng = np.random.default_rng(stride)
        values = {n: rng.uniform(-1, 1, expansion.tensors[n].shape) for n in expansion.inputs}
        one = quotient(expansion, values, rng)
        checked(one)
        backward, _ = backward_of(one, "d_", "first")
        shapes = [
            e.info.shape
            for e in backward.equations
            if isinstance(e.body, eq.Reduce) and [b for _, b in e.body.binders] == [eq.Const(8)]
        ]
        assert shapes == [(1, 7 if stride == 1 else 4, 1, 3)]
