"""Radii by the derivative hold where balls from call to call say nothing, and are no wider."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irlang
from irlang.catalog import builtin
from irlang.diagnostics import InvalidInput
from irlang.gen.build import generate
from irlang.graph import Graph
from irlang.interp import first_order, vector
from irlang.interp.draws import feeds
from irlang.interp.first_order import FirstOrder
from irlang.interp.flows import TooLongError
from irlang.interp.plain import load
from irlang.interp.program import balls, precision, run
from irlang.interp.shape import check
from irlang.interp.values import initial_values, inputs
from irlang.parser import parse
from tests.narrow import Narrow

CATALOG = builtin()
Array = Any


def single(graph: Graph, values: dict[str, Array], seed: int) -> dict[str, Array]:
    """All values in float32, sums in a shuffled order."""
    domain = Narrow(seed)
    found: dict[str, Array] = {n: load(graph.values[n], v) for n, v in values.items()}
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            expansion = node.expansion(CATALOG)
            tensors = vector.evaluate(expansion, feeds(node, expansion, found), domain)
            found.update({name: tensors[formal] for formal, name in node.results().items()})
    return found


def model(text: str) -> tuple[Graph, dict[str, Array]]:
    made = irlang.loads(f"nnir 1\n{text}")
    return made.graph, made.values()


def outside(bound: Array, right: Array, got: Array) -> Array:
    with np.errstate(invalid="ignore"):
        near = np.abs(got - right) <= bound
    return ~(near | np.isinf(bound) | (got == right) | (np.isnan(got) & np.isnan(right)))


@pytest.mark.parametrize("estimates", [False, True])
@pytest.mark.parametrize("seed", range(24))
def test_programs_in_single_precision_stay_inside(seed: int, estimates: bool) -> None:
    graph = generate(CATALOG, 10_000 + seed, size=(3, 10)).graph
    elements = sum(np.prod(info.shape) for info in graph.values.values())
    if elements > 4000 or any(node.expansion(CATALOG).is_open for node in graph.nodes):
        pytest.skip("large, or something is left open")
    if any(info.kind == "real" and info.dtype != "f32" for info in graph.values.values()):
        pytest.skip("a call makes numbers of another type, which are not computed in f32")
    values = {**inputs(graph, seed), **initial_values(graph, seed)}
    try:
        known = balls(graph, values, CATALOG, precision(graph))
    except InvalidInput as error:
        pytest.skip(f"the drawn values violate a precondition: {error}")
    order = FirstOrder(graph, values, CATALOG, precision(graph), estimates=estimates)
    computed = single(graph, values, seed)
    for value in graph.outputs.values():
        if graph.values[value].kind != "real" or not np.size(known[value].value):
            continue
        right = np.asarray(known[value].value).reshape(-1)
        places = np.random.default_rng(seed).permutation(right.size)[:32]
        bound = order.radius(value, places)
        got = np.asarray(computed[value]).reshape(-1)[places]
        assert not outside(bound, right[places], got).any(), value


STACK = """
model m(x: f32[4, 8] in [-1, 1]) -> y: f32[4, 8] {
  param w: f32[8, 8] = normal(0, 0.5)
  for i < 6 { x = layer_norm(relu(dense(x, w))) }
  y = softmax(x)
}
"""


@pytest.mark.parametrize("estimates", [False, True])
def test_many_normalisations_keep_a_small_radius(estimates: bool) -> None:
    graph, values = model(STACK)
    known = balls(graph, values, CATALOG, "f32")["y"]
    assert np.median(known.bound) > 1e-3  # balls from call to call
    bound = FirstOrder(graph, values, CATALOG, "f32", estimates=estimates).radius(
        "y", np.arange(32)
    )
    assert np.all(bound < 1e-4)
    right = np.asarray(known.value).reshape(-1)
    for seed in range(20):
        got = single(graph, values, seed)["y"].reshape(-1)
        assert not outside(bound, right, got).any()
    # a fault of one part in ten thousand in a weight of a layer in the middle
    scaled = {name: array.copy() for name, array in values.items()}
    scaled["w"][3, 3] *= 1 + 1e-3
    assert outside(bound, right, single(graph, scaled, 0)["y"].reshape(-1)).any()


def test_it_is_the_sum_over_all_roundings_that_the_derivative_carries_on() -> None:
    """Three products with matrices: |C B| and |C| times what each before does, all by hand."""
    graph, values = model(
        """
        model m(x: f32[1, 6] in [-1, 1]) -> y: f32[1, 6] {
          param a: f32[6, 6] = normal(0, 1)
          param b: f32[6, 6] = normal(0, 1)
          param c: f32[6, 6] = normal(0, 1)
          y = matmul(matmul(matmul(x, a), b), c)
        }
        """
    )
    order = FirstOrder(graph, values, CATALOG, "f32")
    bound = order.radius("y", np.arange(6))
    a, b, c = (values[n].astype(np.float64) for n in "abc")
    x = values["x"].astype(np.float64)

    def own(u: Array, m: Array) -> Array:
        """Six products are rounded, and five sums of some of them: those of one sign at most."""
        sizes = np.abs(u) @ np.abs(m)
        found: Array = 2.0**-24 * (sizes + 5 * (sizes + np.abs(u @ m)) / 2)
        return found

    first, second, third = (own(u, m) for u, m in ((x, a), (x @ a, b), (x @ a @ b, c)))
    expected = first @ np.abs(b @ c) + second @ np.abs(c) + third
    assert np.all(bound >= 0.99 * expected[0])
    assert np.all(bound <= 1.1 * expected[0])


@pytest.mark.parametrize("estimates", [False, True])
def test_what_hangs_on_a_decision_is_cut_there(estimates: bool) -> None:
    """And so is what hangs on a decision about it."""
    graph, values = model(
        """
        model m(x: f32[3] in [0, 4], z: f32[3] in [0, 1]) -> y: f32[3], t: f32[3] {
          r = sqrt(x)
          f = multiply(floor(multiply(r, r)), 0.5)
          y = add(f, layer_norm(z))
          t = thresholded_relu(f; theta = 1.2)
        }
        """
    )
    values["x"] = np.array([3.0, 2.5, 2.0], np.float32)  # the root's square may be below or above
    order = FirstOrder(graph, values, CATALOG, "f32", estimates=estimates)
    bound = order.radius("y", np.arange(3))
    assert bound[0] >= 0.5
    assert bound[2] >= 0.5
    assert bound[1] < 1e-5
    bound = order.radius("t", np.arange(3))
    assert bound[0] >= 1.5
    assert bound[1] < 1e-30 or estimates


def test_a_kink_counts_with_either_slope() -> None:
    """What is zero in exact arithmetic is not in another: the slope there is not that of one side.

    The second element is far below zero, and nothing comes through.
    """
    graph, values = model(
        """
        model m(x: f32[2] in [0, 4], z: f32[2] in [0, 4]) -> y: f32[2] {
          r = sqrt(x)
          y = multiply(relu(subtract(multiply(r, r), z)), 1000)
        }
        """
    )
    values["x"], values["z"] = np.array([6.0, 2.0], np.float32), np.array([6.0, 3.5], np.float32)
    for estimates in (False, True):
        order = FirstOrder(graph, values, CATALOG, "f32", estimates=estimates)
        bound = order.radius("y", np.arange(2))
        root = np.sqrt(np.float32(6))
        assert bound[0] >= 1000 * (float(np.float32(root * root)) - 6) > 0
        assert bound[1] < 1e-30


LSTM = """
model m(x: f32[12, 1, 4] in [-1, 1]) -> y: f32[12, 1, 4] {
  param w: f32[4, 4, 4] = normal(0, 0.8)
  param r: f32[4, 4, 4] = normal(0, 0.8)
  h = lstm(x, w, r)
  y = lstm(h, w, r)
}
"""


@pytest.mark.parametrize("estimates", [False, True])
def test_a_recurrence_is_carried_through_step_by_step(estimates: bool) -> None:
    graph, values = model(LSTM)
    known = balls(graph, values, CATALOG, "f32")["y"]
    places = np.arange(1, 48, 3)
    right = np.asarray(known.value).reshape(-1)[places]
    order = FirstOrder(graph, values, CATALOG, "f32", estimates=estimates)
    bound = order.radius("y", places)
    assert np.median(bound) < 0.2 * np.median(np.asarray(known.bound).reshape(-1)[places])
    for seed in range(10):
        got = single(graph, values, seed)["y"].reshape(-1)[places]
        assert not outside(bound, right, got).any()


def test_a_sum_that_a_recurrence_makes_has_any_order() -> None:
    """The partial sums from the front are small, those from the back are not."""
    graph, values = model(
        """
        model m(x: f32[64] in [-1, 1]) -> y: f32[64] {
          y = multiply(cumsum(exp(x)), 2)
        }
        """
    )
    right = run(graph, values, CATALOG)["y"]
    bound = FirstOrder(graph, values, CATALOG, "f32").radius("y", np.arange(64))
    terms = np.exp(values["x"].astype(np.float32))
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(64)
        total = np.float32(0)
        for place in order:
            total = np.float32(total + terms[place])
        assert abs(2 * float(total) - right[-1]) <= bound[-1]


def test_what_is_left_open_has_no_radius() -> None:
    graph, values = model(
        """
        model m(q: f32[1, 1, 2, 4] in [-1, 1], seen: bool[1, 1, 2, 2]) -> y: f32[1, 1, 2, 4] {
          y = multiply(attention(q, q, q; mask = seen), 2)
        }
        """
    )
    for masked in (False, True):
        values["seen"] = np.array([[[[True, True], [not masked, not masked]]]])
        bound = FirstOrder(graph, values, CATALOG, "f32").radius("y", np.arange(8))
        assert np.all(np.isinf(bound[4:]) == masked)


@pytest.mark.parametrize("estimates", [False, True])
def test_a_truth_that_rounding_decides_leaves_what_reads_it_open(estimates: bool) -> None:
    graph, values = model(
        """
        model m(x: f32[2] in [0, 4], z: f32[2] in [0, 4]) -> y: f32[2] {
          r = sqrt(x)
          y = where(not_equal(multiply(r, r), z), relu(z), sigmoid(z))
        }
        """
    )
    values["x"], values["z"] = np.array([6.0, 2.0], np.float32), np.array([6.0, 3.5], np.float32)
    bound = FirstOrder(graph, values, CATALOG, "f32", estimates=estimates).radius("y", np.arange(2))
    assert bound[0] >= 5
    assert bound[1] < 1e-5


@pytest.mark.parametrize("estimates", [False, True])
def test_what_may_reach_a_pole_has_no_radius(estimates: bool) -> None:
    """A derivative at a few points within reach of a number says nothing of a pole between them.

    The logarithm of a number that is surely below 0 has no value, which is known without estimates.
    """
    graph, values = model(
        """
        model m(x: f32[4], c: f32[4], z: f32[4]) -> y: f32[4] {
          y = add(reciprocal(subtract(multiply(x, c), z)), log(add(multiply(z, c), x)))
        }
        """
    )
    values["x"] = np.array([1.1, 1.1, 1.1, -1.1], np.float32)
    values["c"] = np.array([1.3, 1.3, 1.3, 1.3], np.float32)
    third = np.float32(1.1) * np.float32(1.3)  # rounded: the difference may come out as zero
    values["z"] = np.array([1, third, -2, np.float32(1.1) / np.float32(1.3)], np.float32)
    bound = FirstOrder(graph, values, CATALOG, "f32", estimates=estimates).radius("y", np.arange(4))
    assert list(np.isinf(bound)) == [False, True, estimates, True]
    assert bound[0] < 1e-4


def test_a_pole_in_reach_is_that_of_its_row() -> None:
    """There a quotient may be infinite, and zero times it NaN; other rows have their radius."""
    graph, values = model(
        """
        model m(x: f32[3, 2], w: f32[2, 2]) -> y: f32[3, 2] {
          y = matmul(divide(x, subtract(multiply(x, x), 2.0)), w)
        }
        """
    )
    values["x"] = np.array([[1, 2], [np.sqrt(2), 1], [3, 4]], np.float32)
    values["w"] = np.array([[1, 0], [1, 1]], np.float32)
    bound = FirstOrder(graph, values, CATALOG, "f32").radius("y", np.arange(6))
    assert list(np.isinf(bound)) == [False, False, True, True, False, False]


@pytest.mark.parametrize("estimates", [False, True])
def test_zero_by_what_may_be_flushed_to_zero_is_unknown(estimates: bool) -> None:
    graph, values = model("model m(a: f32[2], b: f32[2]) -> y: f32[2] { y = divide(a, b) }")
    values["a"], values["b"] = np.zeros(2, np.float32), np.array([-3e-39, 3e-3], np.float32)
    order = FirstOrder(graph, values, CATALOG, "f32", estimates=estimates)
    assert list(np.isinf(order.radius("y", np.arange(2)))) == [True, False]


@pytest.mark.filterwarnings("error")
def test_tensors_without_elements_have_a_radius_without_a_word() -> None:
    graph, values = model(
        "model m(x: f32[0, 3], u: f32[4]) -> y: f32[0, 2], z: f32[4] {\n"
        "  param w: f32[3, 2] = normal(0, 1)\n  y = softmax(matmul(tanh(x), w); axis = 1)\n"
        "  z = softmax(tanh(u))\n}"
    )
    order = FirstOrder(graph, values, CATALOG, "f32", estimates=True)
    assert order.radius("y", np.zeros(0, np.int64)).shape == (0,)
    assert (order.radius("z", np.arange(4)) > 0).all()


def test_nothing_is_estimated_where_balls_say_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of more than 4,096 elements: by an estimate a softmax may reach its pole."""
    graph, values = model("""
model m(q: f32[8, 4, 2], k: f32[8, 3, 1], wq: f32[2, 9, 1], wk: f32[1, 9, 1], wv: f32[1, 9, 2],
    wo: f32[9, 2, 1]) -> y: f32[8, 4, 1] {
  y = multi_head_attention(q, k, k, wq, wk, wv, wo)
}
""")
    order = FirstOrder(graph, values, CATALOG, "f32")
    assert order.size > 4096
    assert not order.estimates
    bound = order.radius("y", np.arange(32))
    largest = np.abs(run(graph, values, CATALOG)["y"]).max()
    assert np.all(bound < 200 * 2.0**-24 * largest)
    for seed in range(4):
        got = single(graph, values, seed)["y"].reshape(-1)
        assert not outside(bound, run(graph, values, CATALOG)["y"].reshape(-1), got).any()
    deep, given = model(STACK.replace("i < 6", "i < 8"))
    assert not FirstOrder(deep, given, CATALOG, "f32").estimates
    monkeypatch.setattr(first_order, "_SMALL", 0)
    monkeypatch.setattr(first_order, "_STEPS", 1 << 12)  # of too many elements
    estimated = FirstOrder(deep, given, CATALOG, "f32")
    assert estimated.estimates
    bound = estimated.radius("y", np.arange(32))
    same = FirstOrder(deep, given, CATALOG, "f32", estimates=True)
    assert np.array_equal(bound, same.radius("y", np.arange(32)))


def test_a_sum_ends_with_its_time() -> None:
    graph = check(parse(_CHAIN, "chain.nnir"), CATALOG).graphs[0]
    values = {**inputs(graph, 1), **initial_values(graph, 1)}
    asked: list[int] = []

    def left() -> float:
        asked.append(1)
        return 6.0 - len(asked)

    order = FirstOrder(graph, values, CATALOG, "f32", estimates=False, left=left)
    assert len(asked) == 4  # once for each of the calls
    with pytest.raises(TooLongError):
        order.radius("d", np.arange(2))
    with pytest.raises(TooLongError):
        FirstOrder(graph, values, CATALOG, "f32", left=lambda: 0.0)


_CHAIN = """nnir 1
model chain(x: f32[2]) -> d: f32[2] {
  a = exp(x)
  b = tanh(a)
  c = sin(b)
  d = exp(c)
}
"""


@pytest.mark.parametrize(
    "call", ["zeta(subtract(add(x, w), w), q)", "gammainc(subtract(add(x, w), w), q)"]
)
def test_where_no_derivative_is_known_the_radius_is_that_of_balls(call: str) -> None:
    """What is off in their first argument is not carried on by a slope that nobody wrote."""
    model = irlang.loads(
        "nnir 1\nmodel m(x: f32[40] in [1.5, 3], w: f32[40] in [1e3, 2e3], q: f32[40] in [0.5, 2])"
        f" -> y: f32[40] {{\n  y = {call}\n}}"
    )
    values = inputs(model.graph, 1)
    order = FirstOrder(model.graph, values, model.catalog, "f32")
    (name,) = model.graph.outputs.values()
    found = balls(model.graph, values, model.catalog, "f32")[name]
    places = np.arange(40)
    assert (order.radius(name, places) >= 0.5 * np.asarray(found.bound)).all()
    for seed in range(4):
        got = single(model.graph, values, seed)[name]
        assert not outside(order.radius(name, places), order.value(name), got).any()
