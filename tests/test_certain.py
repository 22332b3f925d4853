"""What speaks of radii alone is no arithmetic of a target's, and none that a reader is shown."""

from __future__ import annotations

import numpy as np
import pytest

from irlang import equations as eq
from irlang.catalog import builtin
from irlang.certain import certain
from irlang.equation_text import show
from irlang.interp import reference
from irlang.lower.lower import lower
from tests.lower_calls import case

_GAMMA = "a: f32[], x: f32[]"  # without axes, of which targets are told by the definition
_CALLS = (
    (_GAMMA, "gammainc(a, x)"), (_GAMMA, "gammaincc(a, x)"),
    ("x: f32[2, 2]", "inverse(x)"), ("x: f32[2, 2]", "determinant(x)"),
    ("x: f32[3], z: f32[3]", "binary_cross_entropy_logits(x, z)"),
)  # fmt: skip


@pytest.mark.parametrize(("types", "call"), _CALLS)
@pytest.mark.parametrize("slopes", [False, True])
def test_a_number_less_itself_is_taken_out(types: str, call: str, slopes: bool) -> None:
    made = case(types, call)
    (node,) = made.graph.nodes
    whole = node.expansion(builtin())
    some = certain(whole, slopes)
    functions = [
        part.function
        for one in some.equations
        for part in eq.walk(one.body)
        if isinstance(part, eq.Apply)
    ]
    assert "about" not in functions
    assert slopes or "constant" not in functions
    fed = {formal: np.float64(made.inputs[name]) for formal, name in node.feeds().items()}
    values = [reference.evaluate(one, fed) for one in (whole, some)]
    for name in whole.outputs:
        assert np.array_equal(values[0][name], values[1][name], equal_nan=True)


def test_a_constant_stays_where_gradients_are_asked_for() -> None:
    (node,) = case(_GAMMA, "gammainc(a, x)").graph.nodes
    whole = node.expansion(builtin())
    assert show(certain(whole, slopes=False)).split("=")[1].strip() == "gammainc(a[], x[])"
    assert "gammainc(constant(a[]), x[])" in show(certain(whole, slopes=True))


@pytest.mark.parametrize("target", ["torch", "tf", "jax"])
def test_targets_are_told_nothing_of_radii(target: str) -> None:
    made = case(_GAMMA, "gammaincc(a, x)")
    code = lower(made.graph, target, builtin(), {}).code
    assert isinstance(code, str)
    assert "log" not in code
    assert "detach()" not in code.partition("def array")[0]
