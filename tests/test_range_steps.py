"""Long recurrences: bounds that hold of every step, and are worth something."""

from __future__ import annotations

import pytest

import irlang.interp.range_call
import irlang.interp.range_steps
from irlang.catalog import builtin
from irlang.gen.draw import Limits
from tests.soundness import programs, violations
from tests.test_range import analysed, possible

X = "x: f32[300, 3] in [-2, 1]"
SCAN = """op scan[T: float](x: T[L, N], a: T[L, N] = 0.5) -> y: T[L, N] {{
  {body}
}}
model m({inputs}) -> y: f32[300, 3] {{ y = {call} }}"""


def scan(body: str, inputs: str = X, call: str = "scan(x)") -> str:
    return SCAN.format(body=body, inputs=inputs, call=call)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        pytest.param(scan("y[t, n] = 0.9 * (y[t - 1, n] ?? 0) + 0.1 * x[t, n]"), -2.1, 1.1,
                     id="moving average"),
        pytest.param(
            scan(
                "y[t, n] = (1 - a[t, n]) * (y[t - 1, n] ?? 0) + a[t, n] * x[t, n]",
                X + ", a: f32[300, 3] in [0, 1]", "scan(x, a)",
            ), -2.01, 1.01, id="moving average of weights that are read",
        ),
        pytest.param(scan("y[t, n] = (y[t - 1, n] ?? 0) + x[t, n]"), -630, 320, id="sum"),
        pytest.param(scan("y[t, n] = (y[t + 1, n] ?? 0) + x[t, n]"), -630, 320, id="sum backwards"),
        pytest.param(scan("y[t, n] = 0.5 * (y[t - 1, n] ?? 0) + x[t, n]"), -4.01, 2.01,
                     id="geometric sum"),
        pytest.param(scan("y[t, n] = max(y[t - 1, n] ?? -inf, x[t, n])"), -2, 1, id="maximum"),
        pytest.param(scan("y[t, n] = clamp((y[t - 1, n] ?? 0) + x[t, n], -3, 3)"), -3, 3,
                     id="clamped"),
        pytest.param(
            scan("""let p(t, n) = h[t - 1, n] ?? -inf
              m[t < L, n < N] = max(p(t, n), x[t, n])
              h[t < L, n < N] = m[t, n] + log(exp(p(t, n) - m[t, n]) + exp(x[t, n] - m[t, n]))
              y[t, n] = h[t, n]"""), -2.001, 220, id="logarithm of a sum of exponentials",
        ),
    ],
)  # fmt: skip
def test_every_step_is_bounded(text: str, low: float, high: float) -> None:
    found = analysed(text)
    assert not possible(found)
    assert low <= found.values["y"].low
    assert found.values["y"].high <= high


def test_states_of_recurrent_cells_are_bounded() -> None:
    text = """model m(x: f32[100, 2, 4] in [-1, 1]) -> y: f32[100, 2, 3], z: f32[100, 2, 3] {
      param w: f32[4, 3, 4] in [-1, 1]
      param r: f32[4, 3, 3] in [-1, 1]
      y, hn, cn = lstm(x, w, r)
      param u: f32[3, 3, 4] in [-1, 1]
      param v: f32[3, 3, 3] in [-1, 1]
      z, zn = gru(x, u, v)
    }"""
    values = analysed(text).values
    assert values["y"].high <= 1
    assert values["cn"].high <= 125  # it rises by 1 at most in every step
    assert -1.002 <= values["z"].low <= values["z"].high <= 1.002


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize(
    "name", ["cumsum", "cumprod", "cummax", "simple_rnn", "gru", "lstm", "linear_attention", "ctc"]
)
def test_concrete_steps_are_inside(
    name: str, gradient: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Short recurrences, taken as if they were long."""
    monkeypatch.setattr(irlang.interp.range_call, "_STEPS", 1)
    monkeypatch.setattr(irlang.interp.range_steps, "_FIRST", 1)
    catalog = builtin()
    for graph, seed in programs(catalog, name, 1, Limits(elements=60, length=6)):
        assert not violations(graph, catalog, seed, gradient=gradient, count=4)[0]
