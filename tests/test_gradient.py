"""Gradients of whole models, against automatic differentiation in float64 and by equations."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irlang.adjoint_graph import Pullback, gradient_graph, prepare
from irlang.api import loads
from irlang.arithmetic import STANDARD
from irlang.catalog import builtin
from irlang.diagnostics import InvalidInput
from irlang.graph import Graph
from irlang.interp import gradient, program, values, vector
from irlang.interp.ball import Ball
from irlang.interp.shape import check
from irlang.interp.tape import resumed
from irlang.parser import parse
from tests.lower_calls import case

LENET = """
model lenet(image: f64[2, 1, 12, 12], label: i64[2] in [0, 4]) -> probs: f64[2, 5] {
  param w1: f64[3, 1, 3, 3] in [-0.5, 0.5]
  param b1: f64[3] in [-0.1, 0.1]
  h1 = relu(conv(image, w1, b1; pad = same))
  p1 = max_pool(h1; window = 2, stride = 2)
  param w2: f64[4, 3, 3, 3] in [-0.4, 0.4]
  h2 = tanh(conv(p1, w2; stride = 2))
  f1 = flatten(h2)
  param w3: f64[16, 5] in [-0.4, 0.4]
  param b3: f64[5] = 0
  logits = dense(f1, w3, b3)
  probs = softmax(logits)
  loss = cross_entropy(logits, label)
}
"""
ENCODER = """
model encoder(x: f64[2, 5, 8]) -> y: f64[2, 5, 8] {
  param wq: f64[8, 2, 4]
  param wk: f64[8, 2, 4]
  param wv: f64[8, 2, 4]
  param wo: f64[2, 4, 8]
  param g: f64[8] = 1
  param b: f64[8] = 0
  a = multi_head_attention(x, x, x, wq, wk, wv, wo)
  h = layer_norm(add(x, a), g, b)
  param w1: f64[8, 16]
  param w2: f64[16, 8]
  f = dense(gelu(dense(h, w1)), w2)
  y = add(h, f)
}
"""
RECURRENT = """
model recurrent(x: f64[4, 2, 3]) -> y: f64[4, 2, 5] {
  param w: f64[4, 5, 3]
  param r: f64[4, 5, 5]
  param b: f64[4, 5]
  y, h, c = lstm(x, w, r, b; reverse = true)
}
"""


def graph_of(text: str) -> tuple[Graph, dict[str, Any]]:
    checked = check(parse("nnir 1\n" + text), builtin())
    assert not checked.diagnostics
    (graph,) = checked.graphs
    return graph, {**values.inputs(graph, 7), **values.initial_values(graph, 7)}


def torch_lenet(t: Any, v: dict[str, Any]) -> Any:
    f = t.nn.functional
    h1 = f.relu(f.conv2d(v["image"], v["w1"], v["b1"], padding=1))
    h2 = t.tanh(f.conv2d(f.max_pool2d(h1, 2), v["w2"], stride=2))
    logits = h2.flatten(1) @ v["w3"] + v["b3"]
    return f.cross_entropy(logits, v["label"])


def torch_encoder(t: Any, v: dict[str, Any]) -> Any:
    f = t.nn.functional
    q, k, u = (t.einsum("ble,ehd->bhld", v["x"], v[n]) for n in ("wq", "wk", "wv"))
    a = t.einsum("bhld,hdo->blo", f.scaled_dot_product_attention(q, k, u), v["wo"])
    h = f.layer_norm(v["x"] + a, (8,), v["g"], v["b"], 1e-5)
    return (h + f.gelu(h @ v["w1"]) @ v["w2"]).sum()


def torch_recurrent(t: Any, v: dict[str, Any]) -> Any:
    cell = t.nn.LSTM(3, 5, bias=True).double()
    order = [0, 2, 3, 1]  # input, forget, cell, output, as PyTorch has them
    flat = {
        "weight_ih_l0": v["w"][order].reshape(20, 3),
        "weight_hh_l0": v["r"][order].reshape(20, 5),
        "bias_ih_l0": v["b"][order].reshape(20),
        "bias_hh_l0": t.zeros(20, dtype=t.float64),
    }
    y, _ = t.func.functional_call(cell, flat, (v["x"].flip(0),))
    return y.sum()


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
@pytest.mark.parametrize(
    ("text", "same"),
    [(LENET, torch_lenet), (ENCODER, torch_encoder), (RECURRENT, torch_recurrent)],
    ids=["lenet", "encoder", "recurrent"],
)
def test_gradients_agree_with_automatic_differentiation(text: str, same: Any) -> None:
    import torch

    graph, given = graph_of(text)
    found = gradient.gradients(graph, given, builtin())
    balls = gradient.gradient_balls(graph, given, builtin())
    tensors = {name: torch.tensor(array) for name, array in given.items()}
    for name in found:
        tensors[name].requires_grad_()
    same(torch, tensors).backward()
    assert set(found) == {n for n in given if graph.values[n].kind == "real"}
    for name, array in found.items():
        other = tensors[name].grad.numpy()
        assert np.all(np.isfinite(balls[name].bound)), name
        assert np.all(np.abs(array - other) <= 2 * balls[name].bound), name
        assert np.all(np.abs(balls[name].value - other) <= balls[name].bound), name
        scaled = np.abs(other * (1 + 1e-4) - balls[name].value)
        assert np.any(scaled > balls[name].bound), f"a fault of one in 10000 in {name} goes unseen"


def test_every_evaluator_gives_the_same() -> None:
    graph, given = graph_of(LENET)
    one = gradient.gradients(graph, given, builtin())
    other = gradient.gradients(graph, given, builtin(), evaluate=vector.evaluate)
    balls = gradient.gradient_balls(graph, given, builtin())
    for name in one:  # both lie within the radius of rounding, or one of them is wrong
        for found in (one[name], other[name]):
            assert np.all(np.abs(found - balls[name].value) <= balls[name].bound)


DROPPED = """
model m(x: f64[4, 6] in [-1, 1]) -> y: f64[4, 6] {
  y = multiply(tanh(dropout(layer_norm(x))), softmax(x))
}
"""


@pytest.mark.parametrize("text", [LENET, ENCODER, RECURRENT, DROPPED])
def test_nothing_is_evaluated_twice_for_a_gradient(text: str) -> None:
    graph, given = graph_of(text)
    backward = gradient.prepare(graph, builtin())
    twice = []
    for step in backward.steps:
        forward = step.node.expansion(builtin())
        rest, kept = resumed(step, forward)
        own = {equation.target for equation in forward.equations}
        assert own.isdisjoint(equation.target for equation in rest.equations)
        assert own.issuperset(kept)
        twice += [equation for equation in step.expansion.equations if equation.target in own]
    assert twice or text == LENET  # there was something to save
    found = gradient.gradients(graph, given, builtin())
    anew = gradient.run(backward, program.run(graph, given, builtin()))
    for name, array in found.items():
        size = np.max(np.abs(anew[name]))
        np.testing.assert_allclose(array, anew[name], rtol=1e-12, atol=1e-13 * (1 + size))


def test_a_value_that_is_used_twice_adds_up() -> None:
    graph, given = graph_of("model m(x: f64[3]) -> y: f64[3] {\n y = add(multiply(x, x), x)\n}")
    found = gradient.gradients(graph, given, builtin())
    balls = gradient.gradient_balls(graph, given, builtin())
    for value in (found["x"], 2 * given["x"] + 1):
        assert np.all(np.abs(balls["x"].value - value) <= balls["x"].bound)


def test_what_cancels_in_one_call_may_be_added_to_what_another_gives() -> None:
    """1 - 1 to 1e-9: whoever adds them up in turn, from the left, has lost 1e-9."""
    graph, _ = graph_of("""model m(x: f32[4], c: f32[4]) -> loss: f32[] {
      y = differences(x; axis = 0)
      z = multiply(x, c)
      loss = add(reduce_sum(y; axes = 0), reduce_sum(z; axes = 0))
    }""")
    given = {"x": np.ones(4, np.float32), "c": np.full(4, 1e-9, np.float32)}
    ball = gradient.gradient_balls(graph, given, builtin())["x"]
    np.testing.assert_allclose(ball.value, given["c"] + np.array([-1.0, 0, 0, 1.0]), rtol=1e-12)
    in_turn = np.float32(1) + given["c"][1] - np.float32(1)
    assert in_turn == 0
    assert np.all(np.abs(ball.value[1:3] - in_turn) <= ball.bound[1:3])
    assert np.all(ball.bound[1:3] < 4e-7)


def test_what_two_products_give_is_rounded_once_more() -> None:
    """However many terms each of them adds up: those are not added to the other's one by one."""
    text = """model m(x: f32[64, 3], z: f32[64, 3]) -> loss: f32[] {{
      param w: f32[3, 2] in [-1, 1]
      {more}
      loss = add(reduce_sum(matmul(x, w)), reduce_sum(matmul(z, {other})))
    }}"""
    once, given = graph_of(text.format(more="", other="w"))
    apart, _ = graph_of(text.format(more="param v: f32[3, 2] in [-1, 1]", other="v"))
    found = gradient.gradient_balls(once, given, builtin())["w"]
    parts = gradient.gradient_balls(apart, {**given, "v": given["w"]}, builtin())
    bounds = [parts[name].bound for name in "wv"]
    sizes = [np.abs(parts[name].value) + parts[name].bound for name in "wv"]
    assert np.all(found.bound >= sum(bounds))
    assert np.all(found.bound <= sum(bounds) + 1.01 * 2.0**-24 * sum(sizes))


def test_what_the_result_does_not_depend_on_has_gradient_zero() -> None:
    text = "model m(x: f64[3], z: f64[2]) -> y: f64[3] {\n y = exp(x)\n u = exp(z)\n}"
    checked = check(parse("nnir 1\n" + text), builtin())
    (graph,) = checked.graphs
    given = {"x": np.ones(3), "z": np.ones(2)}
    assert gradient.gradients(graph, given, builtin())["z"].tolist() == [0.0, 0.0]
    assert gradient.gradient_balls(graph, given, builtin())["z"].value.tolist() == [0.0, 0.0]


def test_any_value_can_be_differentiated() -> None:
    graph, given = graph_of(LENET)
    found = program.run(graph, given, builtin())
    by = gradient.gradients(graph, given, builtin(), of="logits")
    assert by["b3"].tolist() == [2.0] * 5
    np.testing.assert_allclose(by["w3"], np.repeat(found["f1"].sum(0)[:, None], 5, axis=1))


def test_adjoints_are_made_once_for_a_graph() -> None:
    graph, given = graph_of(ENCODER)
    backward = gradient.prepare(graph, builtin())
    found = program.run(graph, given, builtin())
    one = gradient.run(backward, found)
    other = gradient.gradients(graph, given, builtin())
    assert all(np.array_equal(one[name], other[name]) for name in one)


TIED = """
model tied(x: f32[1, 1, 4, 4]) -> y: f32[1, 1, 2, 2] {
  y = max_pool(x; window = 2, stride = 2)
}
"""


def test_at_a_tie_every_allowed_gradient_is_enclosed() -> None:
    graph, _ = graph_of(TIED)
    x = np.zeros((1, 1, 4, 4), np.float32)
    x[0, 0, 2:, 2:] = [[1, 2], [3, 3]]
    x[0, 0, :2, 2:] = [[1, 2], [3, 4]]
    ball = gradient.gradient_balls(graph, {"x": x}, builtin())["x"]
    low, high = ball.value - ball.bound, ball.value + ball.bound
    assert np.all(low[0, 0, :2, :2] <= 0)  # all four are equal
    assert np.all(high[0, 0, :2, :2] >= 1)
    assert np.all(high[0, 0, 3, 2:] >= 1)  # two are equal, and the others are not in doubt
    assert np.all(low[0, 0, 3, 2:] <= 0)
    assert np.all(ball.value[0, 0, 2, 2:] + ball.bound[0, 0, 2, 2:] < 1e-6)
    assert ball.value[0, 0, :2, 2:].tolist() == [[0, 0], [0, 1]]
    assert np.all(ball.bound[0, 0, :2, 2:] < 1e-6)  # no tie, no doubt


TIES = {
    "max_pool(x; window = 4)": [[0, 3, 3, 1]],
    "adaptive_max_pool(x; size = 1)": [[0, 3, 3, 1]],
    "reduce_max(x; axes = [2])": [[0, 3, 3, 1]],
}


@pytest.mark.parametrize("call", TIES)
def test_at_a_tie_the_ball_is_the_hull_and_no_more(call: str) -> None:
    """Each of two equals has between none and all of what flows back, and none of it negated."""
    kind = "f32[1, 1]" if call.startswith("reduce") else "f32[1, 1, 1]"
    graph, given = graph_of(f"model m(x: f32[1, 1, 4]) -> y: {kind} {{\n y = {call}\n}}")
    given["x"] = np.array([TIES[call]], np.float32)
    ball = gradient.gradient_balls(graph, given, builtin())["x"]
    low, high = (ball.value - ball.bound)[0, 0], (ball.value + ball.bound)[0, 0]
    np.testing.assert_allclose(low, [0, 0, 0, 0], atol=1e-6)
    np.testing.assert_allclose(high, [0, 1, 1, 0], atol=1e-6)


ALONE = {
    "adaptive_max_pool(x; size = 2)": "",
    "adaptive_max_pool(x; size = 5)": "",
    "max_roi_pool(x, rois; size = 2)": "rois: f32[1, 3] = [[0, 1, 6]]",
    "max_pool(x; window = 3, stride = 2, pad = same)": "",
    "scatter_elements(x, at, u; axis = 2, reduction = max)": "at: i64[1, 1, 3] = [[[2, 2, 5]]]",
    "scatter_elements(x, at, u; axis = 2, reduction = min)": "at: i64[1, 1, 3] = [[[2, 2, 5]]]",
    "scatter_slices(x, at, u; axis = 2, reduction = max)": "at: i64[3] = [2, 2, 5]",
    "scatter_slices(x, at, u; axis = 2, reduction = min)": "at: i64[3] = [2, 2, 5]",
    "scatter_nd(x, at, u; reduction = max)": (
        "at: i64[1, 1, 3, 3] = [[[[0, 0, 2], [0, 0, 2], [0, 0, 5]]]]"
    ),
}


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("call", ALONE)
def test_where_nothing_ties_a_gradient_is_known(call: str, exact: bool) -> None:
    """The largest of some elements has all of what flows back, and no less of it, be they rounded
    or not.
    """
    second, given_too = (", u: f32[1, 1, 3]", ["u"]) if ", u" in call else ("", [])
    param = f"param {ALONE[call]}\n" if ALONE[call] else ""
    graph, given = graph_of(f"""
model m(x: f32[1, 1, 7]{second}) -> loss: f32[] {{
  {param}
  loss = reduce_sum({call if exact else call.replace("(x", "(multiply(x, 0.1)")})
}}""")
    given["x"] = np.array([[[3, 1, 4, 1.5, 5, 9, 2.5]]], np.float32)
    given |= dict.fromkeys(given_too, np.array([[[6, 0.5, 8.5]]], np.float32))
    found = gradient.gradient_balls(graph, given, builtin())
    for name in ("x", *given_too):
        assert np.max(found[name].bound) < 1e-5
        scale = 0.1 if name == "x" and not exact else 1
        assert set(np.round(found[name].value / scale, 5).flat) <= {0, 1, 2, 3}


KINKS = ["relu(x)", "abs(x)", "maximum(x, 0.0)", "hard_tanh(x; min = 0)"]


@pytest.mark.parametrize("call", KINKS)
def test_at_a_kink_every_allowed_gradient_is_enclosed(call: str) -> None:
    graph, given = graph_of(f"model m(x: f32[3]) -> y: f32[3] {{\n y = {call}\n}}")
    given["x"] = np.array([-0.5, 0.0, 0.5], np.float32)
    ball = gradient.gradient_balls(graph, given, builtin())["x"]
    low, high = ball.value - ball.bound, ball.value + ball.bound
    assert low[1] <= 0
    assert high[1] >= 1
    assert np.all(ball.bound[[0, 2]] < 1e-6)


def test_a_choice_is_no_kink_of_what_it_does_not_hang_on() -> None:
    """A sample at the border is inside: the image has all of what flows back, the border is a kink
    of the box alone. The slope of a line is one where its argument is 0.
    """
    graph, given = graph_of("""
model m(x: f32[1, 1, 1], boxes: f32[2, 2]) -> loss: f32[] {
  param batch: i64[2] = 0
  loss = reduce_sum(crop_and_resize(x, boxes, batch; size = 1, extrapolation = 7))
}
""")
    given |= {"x": np.ones((1, 1, 1), np.float32)}
    found = gradient.gradient_balls(graph, given, builtin())
    assert found["x"].value.tolist() == [[[2]]]
    assert np.all(found["x"].bound < 1e-6)
    graph, given = graph_of("model m(x: f32[2], s: f32[2]) -> y: f32[2] {\n y = prelu(x, s)\n}")
    given = {"x": np.array([0, -2], np.float32), "s": np.array([0.25, 0.25], np.float32)}
    found = gradient.gradient_balls(graph, given, builtin())
    assert found["s"].value.tolist() == [0, -2]
    assert np.all(found["s"].bound < 1e-6)
    assert found["x"].value[0] - found["x"].bound[0] <= 0.25
    assert found["x"].value[0] + found["x"].bound[0] >= 1


def test_where_a_call_leaves_its_result_open_its_gradient_is_open() -> None:
    """Of two updates of one place either may stay, so that either may have the gradient."""
    graph, given = graph_of("""
model m(x: f32[3], u: f32[2]) -> y: f32[3] {
  param ids: i64[2, 1] = [[1], [1]]
  y = scatter_nd(x, ids, u)
  loss = reduce_sum(y)
}
""")
    assert not np.isfinite(gradient.gradient_balls(graph, given, builtin())["u"].bound).any()
    given["ids"] = np.array([[1], [2]])
    balls = gradient.gradient_balls(graph, given, builtin())
    assert balls["u"].value.tolist() == [1.0, 1.0]
    assert balls["x"].value.tolist() == [1.0, 0.0, 0.0]
    assert np.isfinite(balls["u"].bound).all()


def test_what_is_open_in_one_slice_says_nothing_of_the_others() -> None:
    """A matrix of a batch has no root; a query sees nothing: the others have gradients."""
    graph, given = graph_of("""
model m(x: f32[2, 2, 2]) -> y: f32[2, 2, 2] {
  y = cholesky(x)
  loss = reduce_sum(y)
}
""")
    given["x"] = np.array([[[2, 0.5], [0.5, 1]], [[-1, 0], [0, 1]]], np.float32)
    found = gradient.gradient_balls(graph, given, builtin())["x"]
    assert np.all(found.bound[0] < 1e-5)
    assert np.all(np.isinf(found.bound[1]))
    graph, given = graph_of("""
model m(q: f32[1, 2, 2], k: f32[1, 3, 2], v: f32[1, 3, 2], mask: bool[1, 2, 3])
    -> y: f32[1, 2, 2] {
  y, w = additive_attention(q, k, v; mask = mask)
  loss = reduce_sum(y)
}
""")
    given["mask"] = np.array([[[True, True, False], [False, False, False]]])
    both = gradient.gradient_balls(graph, given, builtin())
    assert np.all(np.isfinite(both["q"].bound[0, 0]))
    assert np.all(np.isinf(both["q"].bound[0, 1]))
    assert np.all(np.isinf(both["k"].bound))


def test_nothing_is_known_of_zero_times_what_may_be_infinite() -> None:
    """The slope 0 of a line: a program multiplies by it what comes back from a root near a pole."""
    graph, given = graph_of("""
model m(x: f32[2], w: f32[2]) -> y: f32[2] {
  h = hard_sigmoid(x; alpha = 0, beta = 0.5)
  y = rsqrt(subtract(add(h, w), w))
}
""")
    given.update(x=np.zeros(2, np.float32), w=np.array([1e8, 1e8], np.float32))
    found = gradient.gradient_balls(graph, given, builtin())["x"]
    assert np.isfinite(found.value).all()
    assert np.isinf(found.bound).all()
    given["w"] = np.array([0, 1], np.float32)  # a pole is far then
    found = gradient.gradient_balls(graph, given, builtin())["x"]
    assert not np.any(found.value)
    assert not np.any(found.bound)


def test_a_mask_may_be_a_factor() -> None:
    """PyTorch multiplies what flows back to a minimum by where it is: NaN is then everywhere."""
    graph, given = graph_of("""
model m(x: f32[2], w: f32[]) -> y: f32[] {
  h = reduce_min(x)
  y = rsqrt(subtract(add(h, w), w))
}
""")
    given.update(x=np.array([0.5, 1], np.float32), w=np.array(1e8, np.float32))
    assert np.isinf(gradient.gradient_balls(graph, given, builtin())["x"].bound).all()
    given["w"] = np.array(0, np.float32)
    found = gradient.gradient_balls(graph, given, builtin())["x"]
    assert found.value[0] < 0 == found.value[1] == found.bound[1]
    assert np.isfinite(found.bound).all()


def test_nothing_is_known_of_what_flows_back_from_no_number() -> None:
    """The norm of zeros has no gradient; a choice may multiply that by zero, or drop it."""
    graph, given = graph_of(
        "model m(c: bool[3], x: f32[3], z: f32[3]) -> y: f32[], w: f32[3] {\n"
        "  y = reduce_l2(where(c, x, z); axes = 0)\n  w = negate(x)\n}\n"
    )
    given |= {"c": np.zeros(3, bool), "z": np.zeros(3, np.float32)}
    found = gradient.gradient_balls(graph, given, builtin(), of="y")
    assert np.all(np.isinf(found["x"].bound))
    found = gradient.gradient_balls(graph, given, builtin(), of="w")
    assert np.all(found["x"].bound == 0)


@pytest.mark.parametrize("ties", ["first", "even"])
def test_a_definition_says_which_gradient_is_meant_at_a_tie(ties: str) -> None:
    text = f"""op top(x: f64[N]) -> y: f64[] {{
  y[] = max(i < N) x[i]
  grad x ties {ties}
}}
model m(x: f64[4]) -> y: f64[] {{
  y = top(x)
}}"""
    checked = check(parse("nnir 1\n" + text), builtin())
    (graph,) = checked.graphs
    given = {"x": np.array([1.0, 3.0, 3.0, 2.0])}
    expected = {"first": [0, 1, 0, 0], "even": [0, 0.5, 0.5, 0]}[ties]
    assert gradient.gradients(graph, given, checked.catalog)["x"].tolist() == expected
    ball = gradient.gradient_balls(graph, given, checked.catalog)["x"]
    assert np.all(ball.bound < 1e-12)


def test_the_command_line_shows_a_gradient() -> None:
    from click.testing import CliRunner

    from irlang.commands.ops import command

    shown = CliRunner().invoke(command, ["dense", "--gradient"], standalone_mode=False)
    assert shown.exception is None
    head, _, text = shown.output.partition("\n\n")
    assert head.startswith("dense(x: f")
    assert "d_w[" in text
    assert "d_x[" in text
    refused = CliRunner().invoke(command, ["argmax", "--gradient"], standalone_mode=False)
    assert isinstance(refused.exception, InvalidInput)


def test_nothing_is_known_of_a_gradient_that_is_no_number() -> None:
    """Of x log x at 0: log 0, and 0 times a slope that is infinite."""
    text = (
        "nnir 1\nmodel m(x: f32[3]) -> loss: f32[] {\n  loss = reduce_sum(multiply(x, log(x)))\n}"
    )
    checked = check(parse(text, "m.nnir"), builtin())
    given = {"x": np.array([0, 1, 2], np.float32)}
    ball = gradient.gradient_balls(checked.graphs[0], given, builtin())["x"]
    assert np.isinf(ball.bound).tolist() == [True, False, False]


STOPPED = """
op held[T: float](x: T[N], w: T[N]) -> y: T[N] {
  h = stop_gradient(x)
  y[n] = h[n] * w[n] + x[n]
}

model m(x: f64[3] in [0.1, 2], w: f64[3]) -> y: f64[3] {
  l = log(x)
  y = multiply(held(x, w), stop_gradient(l))
}
"""


def test_nothing_flows_through_a_constant() -> None:
    """Neither inside a definition that uses it, nor to the calls before it."""
    checked = check(parse("nnir 1\n" + STOPPED), builtin())
    (graph,) = checked.graphs
    given = {"x": np.array([0.1, 0.5, 2.0]), "w": np.array([0.25, -1.0, 0.5])}
    log = np.log(given["x"])
    y = program.run(graph, given, checked.catalog)["y"]
    np.testing.assert_allclose(y, log * given["x"] * (given["w"] + 1), rtol=1e-14)
    found = gradient.gradients(graph, given, checked.catalog)
    balls = gradient.gradient_balls(graph, given, checked.catalog)
    for name, slope in (("x", log), ("w", given["x"] * log)):
        np.testing.assert_allclose(found[name], slope, rtol=1e-14)
        assert np.all(np.abs(balls[name].value - slope) <= 2 * balls[name].bound)
    assert "l" not in {step.node.name for step in prepare(graph, checked.catalog).steps}


@pytest.mark.parametrize("call", ["determinant(x)", "log_determinant(x)"])
@pytest.mark.parametrize(("rows", "scale"), [(2, 1), (3, 1), (4, 2)])
def test_a_gradient_by_elimination_is_one_of_a_determinant(
    call: str, rows: int, scale: float
) -> None:
    """It is off by what stands in its row and column: 14 of 3,840 logarithms of two rows, and 16 of
    1,920 determinants of four, were outside when only the polynomial's own rounding counted.
    """
    made = case(f"x: f32[64, {rows}, {rows}]", call)
    random = np.random.default_rng(0)
    shape = (64, rows, rows)
    outside = known = 0
    for _ in range(20):
        x = random.standard_normal(shape) * np.exp(scale * random.standard_normal(shape))
        given = {"x": x.astype(np.float32)}
        ball = gradient.gradient_balls(made.graph, given, made.catalog)["x"]
        got = np.linalg.inv(given["x"]).transpose(0, 2, 1)
        if call.startswith("d"):
            got *= np.linalg.det(given["x"])[:, None, None]
        assert got.dtype == np.float32
        bound = np.broadcast_to(ball.bound, shape)
        known += int(np.isfinite(bound).sum())
        outside += int((np.abs(got - ball.value) > bound).sum())
    assert not outside
    assert known > 0.9 * 20 * 64 * rows * rows


@pytest.mark.parametrize(
    ("declared", "call", "x"),
    [
        ("x: f32[2]", "reduce_max(x)", np.inf),
        ("x: f32[2]", "reduce_min(x)", -np.inf),
        ("x: f32[1, 1, 2]", "max_pool(x; window = 2)", -np.inf),
        ("x: f32[2], w: f32[2]", "maximum(x, w)", np.inf),
    ],
)
def test_equal_infinities_are_a_tie(declared: str, call: str, x: float) -> None:
    """Their difference is no number; the gradient may flow to either."""
    made = case(declared, call)
    given = {name: np.full_like(array, x) for name, array in made.inputs.items()}
    ball = gradient.gradient_balls(made.graph, given, made.catalog)["x"]
    for share in (0.0, 0.5, 1.0):
        assert np.all(np.abs(share - ball.value) <= ball.bound)
    given["x"] = np.full_like(given["x"], 1)  # no tie any more, or one of numbers
    ball = gradient.gradient_balls(made.graph, given, made.catalog)["x"]
    if "w" in given:
        assert not np.any(ball.value)
        assert not np.any(ball.bound)


@pytest.mark.parametrize(
    ("call", "x", "open_"),
    [
        ("logit(x)", [-1, 0.5], [True, False]),
        ("log(x)", [-1, 0.5], [True, False]),
        ("exp(x)", [100, 1], [True, False]),
        ("l2_loss(x)", [3e38, 1], [True, True]),
        ("l2_loss(x)", [3, 1], [False, False]),
    ],
)
def test_beside_what_is_no_number_of_the_type_a_gradient_is_open(
    call: str, x: list[float], open_: list[bool]
) -> None:
    """PyTorch has NaN outside logit's domain, and multiplies 3e38 by 2 to take the half of it."""
    made = case("x: f32[2]", call)
    given = {"x": np.array(x, np.float32)}
    ball = gradient.gradient_balls(made.graph, given, made.catalog)["x"]
    assert np.isinf(np.broadcast_to(ball.bound, 2)).tolist() == open_


def test_of_what_is_infinite_there_is_no_gradient() -> None:
    """The definition has a constant there; programs have what a very large number makes."""
    made = case(
        "x: f32[3, 2]",
        "endless(x)",
        definitions="""op endless[T: float](x: T[N, K]) -> y: T[N] {
  y[n < N] = if x[n, 0] < 0 then inf else sum(k < K) x[n, k]
}""",
    )
    given = {"x": np.array([[-1, 0], [1, 2], [-2, 1]], np.float32)}
    ball = gradient.gradient_balls(made.graph, given, made.catalog)["x"]
    unknown = np.isinf(np.broadcast_to(ball.bound, (3, 2)))
    assert unknown.tolist() == [[True, True], [False, False], [True, True]]
    assert np.all(np.asarray(ball.value)[1] == 1)


@pytest.mark.parametrize("weight", [np.inf, -np.inf])
def test_what_is_made_of_an_infinite_weight_is_open(weight: float) -> None:
    """By (1 - t) x + (1 + (p - 1) t) softplus(-x) it is infinite, by other sums no number."""
    made = case(
        "x: f32[2], t: f32[2], p: f32[2]", "binary_cross_entropy_logits(x, t; pos_weight = p)"
    )
    given = {"x": np.zeros(2), "t": np.ones(2), "p": np.array([weight, 1])}
    values = {name: array.astype(np.float32) for name, array in given.items()}
    assert np.isinf(program.balls(made.graph, values, made.catalog, "f32")["y"].bound).all()
    values["p"][0] = 2
    assert np.isfinite(program.balls(made.graph, values, made.catalog, "f32")["y"].bound).all()


@pytest.mark.parametrize(("function", "known"), [("sqrt", False), ("exp", True)])
def test_beside_no_number_a_factor_of_zero_that_is_folded_away_leaves_a_gradient_open(
    function: str, known: bool
) -> None:
    """Programs multiply by it, and from the root of 0 infinity flows back."""
    model = loads(
        "nnir 1\nmodel m(x: f32[3]) -> y: f32[3], loss: f32[] {\n"
        "  h = dropout(x; rate = 1.0, training = true)\n"
        f"  y = {function}(h)\n  loss = reduce_sum(y)\n}}\n"
    )
    given = {"x": np.ones(3, np.float32)}
    found = gradient.gradient_balls(model.graph, given, model.catalog)["x"]
    assert not np.any(found.value)
    assert np.all(np.isinf(found.bound)) != known
    assert np.any(found.bound) != known


@given(x=st.floats(0.5, 2, width=32), w=st.floats(-2, 2, width=32), d=st.floats(-2, 2, width=32))
def test_a_gradient_of_one_product_is_one_in_the_format_of_factors(
    x: float, w: float, d: float
) -> None:
    """The sum of one product, which the adjoint equations do not write as a sum."""
    model = loads(
        "nnir 1\nmodel m(x: f32[1, 1, 1], w: f32[1, 1, 1], d: f32[]) -> loss: f32[] {\n"
        "  y = conv(x, w)\n  s = reduce_sum(y)\n  loss = multiply(s, d)\n}\n"
    )
    values = {"x": np.full((1, 1, 1), x, np.float32), "w": np.full((1, 1, 1), w, np.float32)}
    values["d"] = np.array(d, np.float32)
    said = replace(STANDARD, factors="tf32")
    found = gradient.gradient_balls(model.graph, values, model.catalog, arithmetic=said)
    digits = np.array([x, w, d], np.float32).view(np.uint32)
    for given_ in (digits, digits + np.uint32(0x1000)):  # cut off, and to nearest
        by_x, by_w, flow = (given_ & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
        for name, got in (("x", by_w * flow), ("w", by_x * flow)):
            ball = found[name]
            assert abs(got - ball.value.item()) <= float(np.max(ball.bound)) + 1e-45


def _tf32(array: Any) -> Any:
    """To nearest, in the 11 digits that TF32 has."""
    digits = np.asarray(array, np.float32).view(np.uint32) + np.uint32(0x1000)
    return (digits & np.uint32(0xFFFFE000)).view(np.float32)


@given(st.integers(0, 2**32 - 1))
def test_several_factors_are_rounded_two_at_a_time(seed: int) -> None:
    """A gradient by the diagonal of a tensor too, whose equation is a sum of choices; judged by
    itself, a call allows what the gradient of the whole allows.
    """
    model = loads(
        "nnir 1\nmodel m(a: f32[3], b: f32[3], x: f32[2, 3, 3], d: f32[2]) -> loss: f32[] {\n"
        "  y = einsum(a, b, x; labels = [0, 0, 1, 0, 0])\n"
        "  z = multiply(y, d)\n  loss = reduce_sum(z)\n}\n"
    )
    rng = np.random.default_rng(seed)
    ports = model.graph.inputs.items()
    values = {n: rng.uniform(0.5, 2, p.info.shape).astype(np.float32) for n, p in ports}
    said = replace(STANDARD, factors="tf32")
    found = gradient.gradient_balls(model.graph, values, model.catalog, arithmetic=said)["x"]
    pair = _tf32(_tf32(values["a"]) * _tf32(values["b"]))
    got = np.zeros((2, 3, 3), np.float64)
    got[:, range(3), range(3)] = pair.astype(np.float64) * _tf32(values["d"])[:, None]
    assert np.all(np.abs(got - found.value) <= found.bound)
    whole = gradient_graph(prepare(model.graph, model.catalog, ties="any"))
    step = next(
        node
        for node in whole.graph.nodes
        if isinstance(node, Pullback) and node.forward and node.forward.op.name == "einsum"
    )
    formals = {
        formal: Ball(np.asarray(values.get(value, values["d"]), np.float64))
        for formal, value in step.feeds().items()
    }
    own = gradient.roughened(step, formals, model.catalog, "f32", said)
    (more,) = (own[value] for formal, value in step.results().items() if own[value].ndim == 3)
    assert np.all(np.abs(got - found.value) <= more + 1e-6)
    assert not gradient.roughened(step, formals, model.catalog, "f32", STANDARD)
