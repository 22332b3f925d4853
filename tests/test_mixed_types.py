"""Programs of several floating-point types: each call rounds to its own, in digits and range."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from irlang.catalog import builtin
from irlang.interp.first_order import FirstOrder
from irlang.interp.gradient import gradient_balls
from irlang.interp.program import balls, precision
from tests.test_first_order import model

CATALOG = builtin()
MIXED = """
model m(h: f16[3], b: bf16[3], s: f32[3]) -> h2: f16[3], b2: f16[3], s2: f32[3] {
  h2 = multiply(h, h)
  b2 = cast(b; to = f16)
  s2 = multiply(s, s)
}
"""


def _given() -> dict[str, np.ndarray]:
    return {
        "h": np.array([1e-4, 2e-4, 1.001], np.float16),
        "b": np.array([1e-7, 1e-5, 1.5], ml_dtypes.bfloat16),
        "s": np.array([0.1, 0.2, 0.3], np.float32),
    }


def test_what_f16_cannot_hold_is_lost_beside_bf16_as_well() -> None:
    """bf16 has the fewest digits and the range of f32: it does not say what f16 flushes to 0."""
    graph, _ = model(MIXED)
    given = _given()
    dtype = precision(graph)
    first = FirstOrder(graph, given, CATALOG, dtype)
    found = balls(graph, given, CATALOG, dtype)
    for name, got in (("h2", given["h"] * given["h"]), ("b2", given["b"].astype(np.float16))):
        flushed = np.where(np.abs(got) < 2.0**-14, 0, got)
        rows = first.radius(name, np.arange(3))
        for computed in (got, flushed):
            error = np.abs(computed.astype(np.float64) - found[name].value)
            assert np.all(error <= np.broadcast_to(found[name].bound, 3))
            assert np.all(error <= rows)


def test_f32_is_judged_as_f32_beside_coarser_types() -> None:
    graph, _ = model(MIXED)
    found = balls(graph, _given(), CATALOG, precision(graph))["s2"]
    assert np.all(found.bound <= 2.0**-23 * found.value)
    assert np.all(found.bound >= 2.0**-24 * found.value)


def test_a_gradient_of_f64_counts_the_oracles_own_error_once() -> None:
    """As wide after eight calls as after one, but for what each of them rounds itself."""
    given = {"x0": np.array(1.1), "c": np.array(0.9)}
    radii = []
    for depth in (1, 8):
        calls = "\n".join(f"  x{i + 1} = multiply(x{i}, c)" for i in range(depth))
        calls += f"\n  loss = identity(x{depth})"
        graph, _ = model(f"model m(x0: f64[], c: f64[]) -> loss: f64[] {{\n{calls}\n}}")
        ball = gradient_balls(graph, given, CATALOG)["x0"]
        radii.append(float(ball.bound / np.abs(ball.value)))
    assert radii[1] <= 16 * radii[0]
