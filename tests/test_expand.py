"""What expansion makes of a definition's equations."""

import numpy as np

from irlang.catalog import builtin
from irlang.equations import TensorInfo
from irlang.expand import expand
from irlang.instance import instantiate
from irlang.interp import vector
from irlang.parser import parse

AHEAD = """
op ahead(x: f64[N]) -> y: f64[N] {
  a[i < N] = if i == 0 then 0 else 1 + b[i - 1]
  b[i < N] = 0 + c[i] + (a[i] ?? 0)
  c[i < N] = x[i]
  y[i] = b[i]
}
"""


def test_the_kind_of_an_equation_is_that_of_those_further_down_too() -> None:
    """`0 + c[i]` is real where `c` is, though `c` comes later."""
    (op,) = parse("nnir 1\n" + AHEAD).ops
    instance = instantiate(op, {"x": TensorInfo((3,), "f64")}, {})
    expansion = expand(instance, builtin())
    assert {expansion.tensors[name].kind for name in "abc"} == {"real"}
    found = vector.evaluate(expansion, {"x": np.array([0.25, 0.5, 0.75])})
    assert found["y"].tolist() == [0.25, 1.75, 3.5]
