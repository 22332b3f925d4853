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


def test_what_no_result_is_made_of_is_no_equation() -> None:
    """Roots of integers are taken otherwise. What is left open of `p.y` is so of nothing if `p` is
    not taken.
    """
    catalog = builtin()
    norm = catalog.op("reduce_l2")
    assert norm is not None
    for dtype, targets in (("f32", ["y"]), ("i32", ["squares", "near", "y"])):
        made = instantiate(norm, {"x": TensorInfo((2, 3), dtype)}, {"axes": (1,)})
        found = expand(made, catalog)
        assert [equation.target for equation in found.equations] == targets
        assert set(found.tensors) == {"x", *targets}
        assert len(found.unspecified) == (dtype == "i32")
    text = "op either(x: f32[N]; taken: bool) -> y: f32[N] {\n  p = asin(x)\n  q = acos(x)\n"
    (op,) = parse(f"nnir 1\n{text}  y[i] = if taken then p[i] else q[i]\n}}\n").ops
    for taken, name in ((True, "p.y"), (False, "q.y")):
        made = instantiate(op, {"x": TensorInfo((3,), "f32")}, {"taken": taken})
        assert [one.target for one in expand(made, catalog).equations] == [name, "y"]
