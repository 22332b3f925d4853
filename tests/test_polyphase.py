"""Sums parted by remainders, against the same sums walked by NumPy and against PyTorch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irlang
from irlang import equations as eq
from irlang.adjoint_graph import prepare
from irlang.equation_rules import whole as whole_of
from irlang.interp import polyphase, reference, vector
from irlang.interp.gradient import gradients

Array = np.ndarray[Any, np.dtype[Any]]


def _assembled(found: polyphase.Phases, whole: eq.Equation, tensors: dict[str, Array]) -> Array:
    infos = {n: eq.TensorInfo(a.shape, "f64") for n, a in tensors.items()}
    array = np.zeros(whole.info.shape)
    for place, part in found.parts:
        array[place] = vector.evaluate_equation(part, tensors, infos)
    return array


def _expansions(text: str) -> list[eq.Expansion]:
    model = irlang.loads(text)
    steps = prepare(model.graph, model.catalog).steps
    calls = [node.expansion(model.catalog) for node in model.graph.nodes]
    return [*calls, *(step.expansion for step in steps)]


SIZES = st.integers(1, 4)


@st.composite
def _convolutions(draw: st.DrawFn) -> str:
    """A convolution, or a transposed one, of one or two axes."""
    axes = draw(st.integers(1, 2))
    numbers = [
        [draw(SIZES), draw(SIZES), draw(st.integers(1, 2)), draw(st.integers(0, 2))]
        for _ in range(axes)
    ]
    kernel, stride, dilation, pad = (list(column) for column in zip(*numbers, strict=True))
    spans = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    least = [max(1, s - 2 * p) for s, p in zip(spans, pad, strict=True)]
    size = [n + draw(st.integers(0, 5)) for n in least]
    name = draw(st.sampled_from(["conv", "conv_transpose"]))
    zipped = list(zip(size, spans, stride, pad, strict=True))
    if name == "conv":
        out = [(n + 2 * p - s) // t + 1 for n, s, t, p in zipped]
        filters, made = 4, 4
    else:
        pad = [min(p, ((n - 1) * t + s - 1) // 2) for n, s, t, p in zipped]
        out = [(n - 1) * t + s - 2 * p for (n, s, t, _), p in zip(zipped, pad, strict=True)]
        filters, made = 2, 2
    shape = ", ".join
    given_, made_ = (shape(map(str, part)) for part in (size, out))
    return (
        f"nnir 1\nmodel m(x: f64[2, {2 if name == 'conv_transpose' else 4}, {given_}],"
        f" w: f64[{filters}, {2 if name == 'conv' else 1}, {shape(map(str, kernel))}])"
        f" -> y: f64[2, {made}, {made_}] {{\n"
        f"  y = {name}(x, w; stride = {stride}, dilation = {dilation}, groups = 2,"
        f" pad = given, before = {pad}, after = {pad})\n}}"
    )


@settings(max_examples=150)
@given(_convolutions(), st.integers(0, 2**32 - 1), st.booleans())
def test_parts_are_the_sum(text: str, seed: int, infinite: bool) -> None:
    numbers = np.random.default_rng(seed)
    for expansion in _expansions(text):
        spreads = polyphase.spreads(expansion.equations, expansion.tensors)
        shapes = {n: expansion.tensors[n].shape for n in expansion.inputs}
        inputs = {n: numbers.standard_normal(shape) for n, shape in shapes.items()}
        if infinite:
            inputs["w"][(0,) * inputs["w"].ndim] = np.inf
        tensors = vector.evaluate(expansion, inputs)
        for equation in expansion.equations:
            found = polyphase.phases(equation, expansion.tensors, spreads)
            if found is not None and found.applies(tensors):
                np.testing.assert_allclose(
                    _assembled(found, equation, tensors), tensors[equation.target],
                    rtol=1e-12, atol=1e-12,
                )  # fmt: skip


def _strided(stride: int, kernel: int) -> eq.Expansion:
    out = (16 - kernel) // stride + 1
    text = (
        f"nnir 1\nmodel m(x: f64[1, 8, 16, 16], w: f64[8, 8, {kernel}, {kernel}])"
        f" -> y: f64[1, 8, {out}, {out}] {{\n  y = conv(x, w; stride = {stride})\n}}"
    )
    return _expansions(text)[1]


@pytest.mark.parametrize(("stride", "kernel"), [(2, 3), (2, 1), (3, 4)])
def test_a_strided_convolution_flows_back_in_as_many_products_as_there_are_forwards(
    stride: int, kernel: int
) -> None:
    expansion = _strided(stride, kernel)
    spreads = polyphase.spreads(expansion.equations, expansion.tensors)
    equation = next(e for e in expansion.equations if e.target == "d_x")
    found = polyphase.phases(equation, expansion.tensors, spreads)
    assert found is not None
    work = [
        math.prod([*part.info.shape, *(whole_of(size) or 0 for _, size in one.binders)])
        for _, part in found.parts
        for one in eq.walk(part.body)
        if isinstance(one, eq.Reduce)
    ]
    forwards = 8 * 8 * (16 * kernel / stride) ** 2
    assert 0 < sum(work) <= 1.2 * forwards


def test_zeros_times_infinity_are_not_left_out() -> None:
    """A gradient by an infinite weight is NaN where the sum has a zero for it."""
    expansion = _strided(2, 3)
    numbers = np.random.default_rng(0)
    inputs = {n: numbers.standard_normal(expansion.tensors[n].shape) for n in expansion.inputs}
    inputs["w"][0, 0, 1, 1] = np.inf
    fast, slow = reference.evaluate(expansion, inputs), vector.evaluate(expansion, inputs)
    assert np.isnan(slow["d_x"]).any()
    np.testing.assert_allclose(fast["d_x"], slow["d_x"], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_strided_convolutions_against_pytorch(axes: int) -> None:
    torch = pytest.importorskip("torch")
    functional = torch.nn.functional
    numbers = np.random.default_rng(axes)
    size, spatial = {1: 200, 2: 21, 3: 9}[axes], ", ".join
    out = (size + 2 - 3) // 2 + 1
    for name, made in (("conv", out), ("conv_transpose", (size - 1) * 2 + 3 - 2)):
        text = (
            f"nnir 1\nmodel m(x: f64[2, 8, {spatial([str(size)] * axes)}],"
            f" w: f64[8, 8, {spatial(['3'] * axes)}])"
            f" -> y: f64[2, 8, {spatial([str(made)] * axes)}] {{\n"
            f"  y = {name}(x, w; stride = 2, pad = given, before = 1, after = 1)\n}}"
        )
        model = irlang.loads(text)
        x = numbers.standard_normal((2, 8) + (size,) * axes)
        w = numbers.standard_normal((8, 8) + (3,) * axes)
        own = gradients(model.graph, {"x": x, "w": w}, model.catalog)
        tensors = torch.tensor(x, requires_grad=True), torch.tensor(w, requires_grad=True)
        y = getattr(functional, f"{name}{axes}d")(*tensors, stride=2, padding=1)
        y.sum().backward()
        forward = model.run({"x": x, "w": w})["y"]
        np.testing.assert_allclose(forward, y.detach().numpy(), rtol=1e-10, atol=1e-10)
        for mine, theirs in zip(("x", "w"), tensors, strict=True):
            np.testing.assert_allclose(own[mine], theirs.grad.numpy(), rtol=1e-10, atol=1e-10)
