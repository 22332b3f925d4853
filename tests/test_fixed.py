"""What follows from constants is known, where no order of evaluation gives anything else."""

from __future__ import annotations

import irlang
from irlang.catalog import builtin
from irlang.interp.range import analyse


def ends(body: str, constants: str) -> tuple[float, float]:
    """Between which numbers the result lies."""
    head = "nnir 1\nmodel m(x: f32[3]) -> y: f32[3], z: f32[3]"
    text = f"{head} {{\n{constants}\n{body}\nz = abs(x)\n}}\n"
    found = analyse(irlang.loads(text).graph, builtin()).values["y"]
    return found.low, found.high


def test_whole_numbers_are_known_through_conversions() -> None:
    """As a converter writes indices: the smaller of two as numbers in f32, and back."""
    body = """
        a = cast(minimum(cast(multiply(k, 5); to = f32), 7.0); to = i64)
        y = cast(where(less(a, 6), subtract(a, 20), a); to = f32)"""
    assert ends(body, "param k: i64[3] = [0, 1, 2]") == (-20.0, 7.0)
    body = body.replace("y = cast", "b = cast").replace("to = f32)", "to = f32)", 1)
    one = f"{body}\ny = reciprocal(add(b, 10.0))"  # of -10, -5 and 17: none of these is 0
    low, high = ends(one, "param k: i64[3] = [0, 1, 2]")
    assert low < -0.0999
    assert 0.0588 < high < 0.0589


def test_what_a_model_may_be_given_is_not_known() -> None:
    body = "y = cast(multiply(k, 5); to = f32)"
    assert ends(body, "param k: i64[3] in [0, 2] = [0, 1, 1]") == (0.0, 10.0)
    assert ends(body, "param k: i64[3] = [0, 1, 1]") == (0.0, 5.0)
