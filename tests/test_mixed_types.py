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


def test_the_oracles_own_error_is_that_of_the_calls_before() -> None:
    """Beside f64 it is as large as what a program does, elsewhere it is none to speak of."""
    graph, _ = model(
        "model m(s: f32[3], d: f64[3]) -> s2: f32[3], d2: f64[3], c: f32[3] {\n"
        "  s2 = multiply(s, s)\n  d2 = multiply(d, d)\n  c = cast(d2; to = f32)\n}"
    )
    s = np.array([0.1, 0.2, 0.3], np.float32)
    found = balls(graph, {"s": s, "d": s.astype(np.float64) / 3}, CATALOG, "f32")
    radii = {name: found[name].bound / found[name].value for name in ("s2", "d2", "c")}
    assert np.all(radii["s2"] < 1.001 * 2.0**-24)
    assert np.all((radii["d2"] >= 2.0**-52) & (radii["d2"] < 1.001 * 2.0**-52))
    assert np.all((radii["c"] > 2.0**-24) & (radii["c"] <= 2.0**-22))


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


def test_what_flows_back_through_a_cast_is_rounded_to_the_narrow_type() -> None:
    graph, _ = model(
        "model m(x: f32[3], c: f64[3]) -> loss: f64[] {\n"
        "  loss = reduce_sum(multiply(cast(x; to = f64), c))\n}"
    )
    given = {"x": np.ones(3, np.float32), "c": np.array([0.1, 0.5, 1e-50])}
    ball = gradient_balls(graph, given, CATALOG)["x"]
    error = np.abs(given["c"].astype(np.float32).astype(np.float64) - ball.value)
    assert np.all(error <= np.broadcast_to(ball.bound, 3))
    assert np.all(np.broadcast_to(ball.bound, 3) < 2.0**-23)
