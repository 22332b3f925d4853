"""Sums of products over labelled axes, against NumPy and PyTorch, and their gradients."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from irlang.adjoint import adjoint
from irlang.importers.labels import Malformed, labels_of
from irlang.interp import reference
from tests.ops.compare import agrees, expansion, feeds, integers, reals


@given(data=st.data())
@settings(max_examples=60)
def test_einsum(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    label = st.integers(0, len(sizes) - 1)
    terms = data.draw(st.lists(st.lists(label, max_size=3), min_size=1, max_size=4))
    used = sorted({name for term in terms for name in term})
    output = data.draw(st.permutations(used))[: data.draw(st.integers(0, len(used)))]
    shapes = [tuple(sizes[name] for name in term) for term in terms]
    xs = tuple(data.draw(reals(shape, -2, 2)) for shape in shapes)
    operands: list[Any] = [part for pair in zip(xs, terms, strict=True) for part in pair]
    expected = np.einsum(*operands, output)
    labels = tuple(name for term in terms for name in term)
    attrs = {"labels": labels, "output": tuple(output)}
    agrees("einsum", {"xs": xs}, expected, operations=100, magnitude=16.0 * 81, **attrs)


@given(data=st.data())
@settings(max_examples=20)
def test_without_output_the_labels_that_stand_once(data: st.DataObject) -> None:
    labels = tuple(data.draw(st.lists(st.integers(0, 3), min_size=2, max_size=4)))
    cut = data.draw(st.integers(0, len(labels)))
    terms = labels[:cut], labels[cut:]
    xs = tuple(data.draw(integers((2,) * len(t), np.int32, -9, 9)) for t in terms)
    spec = ",".join("".join(map("abcd".__getitem__, term)) for term in terms)
    agrees("einsum", {"xs": xs}, np.einsum(spec, *xs), labels=labels)


def test_an_axis_of_size_one_serves_all_of_its_label() -> None:
    xs = np.arange(2.0).reshape(2, 1), np.arange(12.0).reshape(3, 4)
    expected = torch.einsum("ij,jk->ik", *map(torch.from_numpy, xs)).numpy()
    agrees("einsum", {"xs": xs}, expected, operations=4, magnitude=40.0, labels=(0, 1, 1, 2))


@pytest.mark.parametrize(
    ("spec", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 3)]),
        ("ii->i", [(3, 3)]),
        ("iij->j", [(2, 2, 3)]),
        ("ij,ik,jk->", [(2, 3), (2, 4), (3, 4)]),
        ("bhqd,bhkd->bhqk", [(2, 2, 3, 4), (2, 2, 5, 4)]),
        ("bhqd,bhkd->bhqk", [(2, 4, 24, 16), (2, 4, 24, 16)]),
    ],
)
def test_gradients_are_torchs(spec: str, shapes: list[tuple[int, ...]]) -> None:
    rng = np.random.default_rng(5)
    xs = tuple(rng.uniform(-1, 1, shape) for shape in shapes)
    before, after = spec.split("->")
    labels = tuple(ord(letter) for letter in before if letter != ",")
    made = expansion("einsum", {"xs": xs}, labels=labels, output=tuple(map(ord, after)))
    tensors = [torch.from_numpy(x).requires_grad_() for x in xs]
    result = torch.einsum(spec, *tensors)
    seed = rng.uniform(-1, 1, result.shape)
    result.backward(torch.from_numpy(seed))
    backward = adjoint(made)
    found = reference.evaluate(backward, {**feeds({"xs": xs}), "d_y": seed})
    sizes = dict(zip(before.replace(",", ""), [n for s in shapes for n in s], strict=True))
    terms = math.prod(sizes.values())  # of a sum, at most, each at most 1 in size
    for name, tensor in zip(backward.outputs, tensors, strict=True):
        assert tensor.grad is not None
        assert np.abs(found[name] - tensor.grad.numpy()).max() <= 2 * terms * 2.0**-52


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij , jk", [(2, 3), (3, 4)]),
        ("...ij,...jk->...ik", [(5, 2, 3), (1, 3, 4)]),
        ("...ij,...jk->...ik", [(2, 3), (6, 5, 3, 4)]),
        ("i...->...", [(2, 3, 4)]),
        ("ba", [(2, 3)]),
        ("...a,b...", [(2, 3), (4, 2)]),
        ("ii", [(3, 3)]),
        (",", [(), ()]),
    ],
)
def test_labels_of_an_equation(equation: str, shapes: list[tuple[int, ...]]) -> None:
    rng = np.random.default_rng(3)
    xs = tuple(rng.integers(-3, 4, shape).astype(np.float64) for shape in shapes)
    labels, output = labels_of(equation, [x.ndim for x in xs])
    attrs = {"labels": tuple(labels), "output": tuple(output)}
    agrees("einsum", {"xs": xs}, np.einsum(equation, *xs), operations=9, magnitude=99.0, **attrs)


@pytest.mark.parametrize(
    ("equation", "ranks"),
    [
        ("ij->i", [1]),
        ("ij->k", [2]),
        ("ij,jk", [2]),
        ("i1->i", [2]),
        ("ij->ii", [2]),
        ("i->i", [2]),
    ],
)
def test_an_equation_that_does_not_fit_is_refused(equation: str, ranks: list[int]) -> None:
    with pytest.raises(Malformed):
        labels_of(equation, ranks)
