"""Operators a user might write: found at fault, computed, differentiated and lowered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irlang
from irlang.api import check, loads
from irlang.diagnostics import InvalidInput

NESTED = """nnir 1
op scale[T: float](x: T[S..]; by: real = 2) -> y: T[S..] {
  y[s..] = x[s..] * by
}

op attend[T: float](q: T[L, D], k: T[M, D], v: T[M, E]) -> y: T[L, E] {
  s[i < L, j < M] = sum(d < D) q[i, d] * k[j, d]
  o = matmul(softmax(scale(s; by = 1 / D); axis = -1), scale(v))
  y[i, e] = o[i, e]
}

model m(q: f32[3, 4], k: f32[5, 4], v: f32[5, 2]) -> y: f32[3, 2], loss: f32[] {
  y = attend(q, k, v)
  loss = mse(y, 0.25)
}
"""


def _same(found: Any, expected: Any) -> None:
    """Equal once both are rounded to float32, where the last bit may fall either way."""
    np.testing.assert_array_max_ulp(found, np.asarray(expected, dtype=np.float32), maxulp=1)


def _codes(text: str) -> list[tuple[str, int, str]]:
    return [(d.code, d.span.line, d.message) for d in check(text)]


def test_a_definition_may_nest_the_definitions_it_uses() -> None:
    model = loads(NESTED.replace("mse(y, 0.25)", "reduce_sum(square(y); axes = [0, 1])"))
    given = {name: value.astype(np.float64) for name, value in model.values().items()}
    scores = np.exp(given["q"] @ given["k"].T / 4)
    expected = scores / scores.sum(1, keepdims=True) @ (2 * given["v"])
    _same(model.run()["y"], expected)
    assert {v.verdict for v in model.diff(["torch"])} <= {"agrees", "rounding"}


def test_what_is_nested_is_checked_as_well() -> None:
    wrong = NESTED.replace("softmax(scale(s; by = 1 / D)", "softmax(scal(s; by = 1 / D)")
    assert _codes(wrong)[0][:2] == ("definition.op", 8)


def test_a_broken_definition_leaves_no_parameter_unused() -> None:
    text = """nnir 1
op f[T: float](x: T[N], w: T[N]) -> y: T[N] {
  y[n] = x[n] * w[q]
}

model m(x: f32[3]) -> y: f32[3] {
  param w: f32[3]
  y = f(x, w)
}
"""
    assert _codes(text) == [("definition.name", 3, "`q` is not defined")]


def test_an_index_is_bound_once() -> None:
    text = """nnir 1
op diagonal[T: float](x: T[N]) -> y: T[N, N] {
  y[n, n] = x[n]
}
"""
    assert _codes(text) == [("definition.duplicate", 3, "the index `n` is bound twice")]


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        (
            "x: T[N, S, S..]",
            "`S..` is the sizes of any number of axes; `S` is the size of one axis",
        ),
        ("x: T[N, S..], z: T[S, N]", "`S` is the size of one axis; `S` is the sizes of any"),
        ("x: T[N, C], z: T[C, x]", "`x` is the size of one axis; `x` is a tensor"),
        ("x: T[N, T]", "`T` is the size of one axis; `T` is an element type"),
        (
            "x: T[by..]; by: int = 2",
            "`by..` is the sizes of any number of axes; `by` is the size of",
        ),
        ("x: T[N, by]; by: int[1] = 2", "`by` is the size of one axis; `by` is the sizes of any"),
        ("x: T[N, by]; by: {a, b} = a", "`by` is the size of one axis; `by` is a word"),
    ],
)
def test_a_name_stands_for_one_thing_in_the_types(declared: str, told: str) -> None:
    text = f"""nnir 1
op f[T: float]({declared}) -> y: T[] {{
  y[] = 0
}}

model m(x: f32[2, 3], z: f32[3, 2]) -> y: f32[] {{
  y = f(x{", z" if "z:" in declared else ""})
}}
"""
    ((code, line, message),) = _codes(text)
    assert (code, line) == ("definition.axes", 2)
    assert told in message


def test_a_size_that_is_no_number_is_told() -> None:
    text = """nnir 1
op f[T: float](x: T["a"]) -> y: T[] {
  y[] = 0
}

model m(x: f32[3]) -> y: f32[] {
  y = f(x)
}
"""
    ((code, _, message),) = _codes(text)
    assert (code, message) == ("definition.size", "a size is a, not an integer")


def test_equations_in_a_circle_are_found_without_running_them() -> None:
    text = """nnir 1
op f[T: float](x: T[N]) -> y: T[N] {
  a[n < N] = b[n]
  b[n < N] = a[n] + x[n]
  y[n] = a[n]
}

model m(x: f32[3]) -> y: f32[3] {
  y = f(x)
}
"""
    ((code, line, _),) = _codes(text)
    assert (code, line) == ("definition.recurrence", 9)


def test_a_message_names_the_element_that_only_a_run_knows() -> None:
    text = """nnir 1
op log_of[T: float](x: T[N]) -> y: T[N] {
  require positive: all(n < N) x[n] > 0 else "{x[0]} or another of {N} is not positive"
  y[n] = log(x[n])
}

model m(x: f32[3] in [-1, -0.5]) -> y: f32[3] {
  y = log_of(x)
}
"""
    with pytest.raises(InvalidInput) as refused:
        irlang.loads(text).run()
    (found,) = refused.value.diagnostics
    assert found.code == "log_of.positive"
    assert found.message == "x[0] or another of 3 is not positive"


@pytest.mark.parametrize("target", ["torch", "tf"])
def test_an_empty_result_keeps_its_shape(target: str) -> None:
    text = """nnir 1
op center[T: float](x: T[L, A]) -> y: T[L, A] {
  m[a < A] = (sum(l < L) x[l, a]) / max(L, 1)
  y[l, a] = x[l, a] - m[a]
}

model m(x: f32[0, 4]) -> y: f32[0, 4] {
  y = center(x)
}
"""
    model = loads(text)
    assert model.run()["y"].shape == (0, 4)
    assert [(v.verdict, v.message) for v in model.diff([target])] == [("agrees", "")]


def test_a_function_of_numbers_is_a_number() -> None:
    text = """nnir 1
op scale[T: float](x: T[N]; by: real = 1 / sqrt(N)) -> y: T[N] {
  y[n] = x[n] * by
}

op half[T: float](x: T[N]) -> y: T[M] {
  let M = floor(sqrt(N))
  z = scale(x; by = exp(1) / sqrt(N))
  y[m] = z[m]
}

model m(x: f32[9]) -> y: f32[9], z: f32[9], h: f32[3] {
  y = scale(x; by = 1 / sqrt(3))
  z = scale(x)
  h = half(x)
}
"""
    model = loads(text)
    x = model.values()["x"].astype(np.float64)
    found = model.run({"x": x.astype(np.float32)})
    _same(found["y"], x / np.sqrt(3))
    _same(found["z"], x / 3)
    _same(found["h"], x[:3] * np.e / 3)


def test_a_root_of_less_than_nothing_is_no_number() -> None:
    text = """nnir 1
op scale[T: float](x: T[N]; by: real) -> y: T[N] {
  y[n] = x[n] * by
}

model m(x: f32[9]) -> y: f32[9] {
  y = scale(x; by = sqrt(-1))
}
"""
    ((code, line, _),) = _codes(text)
    assert (code, line) == ("model.static", 7)


@pytest.mark.parametrize("length", ["axes", "-1", "N / 2", "1000000000000"])
def test_the_length_of_an_attribute_is_a_number(length: str) -> None:
    text = f"""nnir 1
op scale[T: float](x: T[N]; axes: int[] = [0], by: int[{length}] = 2) -> y: T[N] {{
  y[n] = x[n] * by[0]
}}

model m(x: f32[3]) -> y: f32[3] {{
  y = scale(x)
}}
"""
    ((code, line, message),) = _codes(text)
    assert (code, line) == ("definition.size", 7)
    assert message.startswith("the length of `by` is ")


def test_a_sum_that_a_reduction_does_not_reach_is_said() -> None:
    text = """nnir 1
op dilate[T: float](x: T[N], k: T[K]) -> y: T[N] {
  y[n] = max(j < K) (x[n + j] ?? 0) + k[j]
}
"""
    (found,) = check(text)
    assert (found.code, found.message) == ("definition.name", "`j` is not defined")
    assert found.help == "the body of a reduction ends at the next `+` or `-`, save in parentheses"


# ---- functions beside the definitions

SHARED = """nnir 1
let bent(v, kind, slope) = match kind { plain: v, leaky: if v < 0 then steep(slope) * v else v }
let steep(slope) = 2 * slope
let usual(kind) = match kind { plain: 1, leaky: 0.25 }

op bend[T: float](x: T[N]; kind: {plain, leaky} = leaky, slope: real = usual(kind)) -> y: T[N] {
  y[n] = bent(x[n], kind, slope)
}

op bend_back[T: float](x: T[N], b: T[N] = 0; kind: {plain, leaky} = plain) -> y: T[N] {
  let steep(v) = -v
  y[n] = if given(b) then steep(x[n]) + b[n] else steep(x[n])
}

model m(x: f32[3] in [-1, 1]) -> y: f32[3], z: f32[3] {
  y = bend(x)
  z = bend_back(x; b = x)
}
"""


def test_definitions_of_a_file_share_functions() -> None:
    x = np.array([-0.5, 0.0, 0.75], dtype=np.float32)
    found = loads(SHARED).run({"x": x})
    _same(found["y"], [-0.25, 0.0, 0.75])
    _same(found["z"], [0.0, 0.0, 0.0])  # a function of the definition's own comes first
    text = SHARED.replace("y = bend(x)", "y = bend(x; slope = 1)")
    _same(loads(text).run({"x": x})["y"], [-1.0, 0.0, 0.75])


@pytest.mark.parametrize(
    ("old", "new", "code", "line"),
    [
        ("2 * slope", "2 * x", "definition.name", 3),
        ("2 * slope", "steep(slope)", "definition.depth", 3),
        ("steep(slope) * v", "steep(slope, v)", "definition.arguments", 2),
        ("  y[n] = bent(x", "  let steep(v) = -v\n  y[n] = bent(x", "definition.duplicate", 7),
        ("let usual(kind)", "let bent(kind)", "model.duplicate", 4),
    ],
)
def test_a_fault_of_a_shared_function_is_told_once(
    old: str, new: str, code: str, line: int
) -> None:
    assert (code, line) in [(c, at) for c, at, _ in _codes(SHARED.replace(old, new, 1))]
    assert [c for c, _, _ in _codes(SHARED.replace(old, new, 1))].count(code) == 1
