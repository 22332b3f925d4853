"""What a definition says of one call: shorter, and the same."""

import numpy as np
import pytest

from irlang import equations as eq
from irlang.catalog import builtin
from irlang.equation_call import for_call
from irlang.equation_text import show
from irlang.gen.build import generate
from irlang.gen.lines import in_line
from irlang.interp import exact, reference
from irlang.interp.plain import load
from irlang.interp.program import run
from irlang.interp.values import initial_values, inputs
from tests.test_reduce import case_of

_MOST = 150  # elements of a call that is computed exactly
_TERMS = 3000  # terms of its sums
_ENOUGH = 60  # operators

CALLS = {
    "conv(x, w)": (
        "x: f32[1, 2, 5], w: f32[3, 2, 3]", "f32[1, 3, 3]",
        "y[n < 1, f < 3, o0 < 3] = sum(c < 2, k0 < 3) x[0, c, o0 + k0] * w[f, c, k0]",
    ),
    "conv(x, w; pad = same)": (
        "x: f32[1, 1, 5], w: f32[1, 1, 2]", "f32[1, 1, 5]",
        "y[n < 1, f < 1, o0 < 5] = sum(k0 < 2) (x[0, 0, o0 + k0] ?? 0) * w[0, 0, k0]",
    ),
    "max_pool(x; window = 1)": (
        "x: f32[1, 1, 2]", "f32[1, 1, 2]", "y[n < 1, c < 1, o0 < 2] = x[0, 0, o0]",
    ),
    "adaptive_avg_pool(x; size = 1)": (
        "x: f32[1, 1, 2]", "f32[1, 1, 1]",
        "y[n < 1, c < 1, o0 < 1] = (sum(k0 < 3 | k0 < 2) x[0, 0, k0]) / 2",
    ),
    "im2col(x; window = [2])": (
        "x: f32[1, 1, 5]", "f32[1, 2, 4]", "y[n < 1, f < 2, p < 4] = x[0, 0, p + f]",
    ),
    "cumsum(x; axis = 0, exclusive = true)": (  # before the first there is nothing
        "x: f32[1]", "f32[1]", "c[k < 1] = x[0]\ny[k < 1] = 0",
    ),
    "argmax(x; axis = 0, keepdims = false)": (
        "x: f32[1]", "i64[]", "y[] = argmax(k < 1) x[k]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_what_the_call_decides_is_left_out(call: str) -> None:
    given, result, said = CALLS[call]
    case = case_of(f"model m({given}) -> y: {result} {{\n  y = {call}\n}}")
    (node,) = case.graph.nodes
    assert show(for_call(node.expansion(case.catalog))).strip() == said


def test_values_stay_the_same() -> None:
    """Of calls of generated programs, computed exactly from both."""
    catalog, seen, fewer = builtin(), set[str](), 0
    for seed in range(60):
        if len(seen) > _ENOUGH:
            break
        graph = generate(catalog, seed).graph
        given = {**inputs(graph, seed), **initial_values(graph, seed)}
        values = run(graph, in_line(graph, given, {}, catalog, seed), catalog)
        for node in graph.nodes:
            expansion = node.expansion(catalog)
            sizes = [int(np.prod(info.shape)) for info in expansion.tensors.values()]
            if node.op.name in seen or expansion.is_open or sum(sizes) > _MOST:
                continue
            made = for_call(expansion)
            fed = {f: load(graph.values[n], values[n]) for f, n in node.feeds().items()}
            if _terms(expansion) > _TERMS:
                continue
            seen.add(node.op.name)
            one, other = (exact.evaluate(each, fed) for each in (expansion, made))
            for name in expansion.outputs:
                left, right = one[name].numpy(), other[name].numpy()
                assert np.array_equal(left, right, equal_nan=True), (node.op.name, show(made))
            fewer += len(show(made)) < len(show(expansion))
    assert len(seen) > _ENOUGH
    assert fewer > len(seen) // 2


def _terms(expansion: eq.Expansion) -> int:
    """How many terms the equations sum, about."""
    total = 0
    for equation in expansion.equations:
        terms = int(np.prod(equation.info.shape))
        for part in eq.walk(equation.body):
            if isinstance(part, eq.Reduce):
                terms *= max(1, int(np.prod([_bound(bound) for _, bound in part.binders])))
        total += terms
    return total


def _bound(expr: eq.Expr) -> float:
    return float(expr.value) if isinstance(expr, (eq.Const, eq.Size)) else 8.0


def test_a_count_of_all_there_is_has_a_value() -> None:
    """The condition of a count is gone where it holds of everything, as in a pool that pads not."""
    case = case_of(
        "model m(x: f32[1, 1, 6]) -> y: f32[1, 1, 3] {\n  y = avg_pool(x; window = [2])\n}"
    )
    node = case.graph.nodes[0]
    expansion = for_call(node.expansion(builtin()))
    values = inputs(case.graph, 3)
    fed = {formal: load(case.graph.values[o], values[o]) for formal, o in node.feeds().items()}
    got = reference.evaluate(expansion, fed)["y"]
    wanted = run(case.graph, values, builtin())[node.outputs[0]]
    np.testing.assert_allclose(got, wanted, rtol=1e-12)
