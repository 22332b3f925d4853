"""Gradients of targets: judged call by call, a fault charged to the stage and call it starts in.

What a framework might get wrong is planted into the text that its worker runs: a hook on the
result of an operator, or an edit of what reads it, stands in for a defect of its gradient.
"""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from ast import literal_eval
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from irlang.adjoint_graph import prepare
from irlang.catalog import builtin
from irlang.commands.cases import load_case
from irlang.commands.diff import command as diff
from irlang.diff import gradients, runner
from irlang.diff.apart import case_apart
from irlang.diff.finding import find, find_gradient
from irlang.diff.programs import trainable, with_balls
from irlang.diff.reduce_files import save, to_text
from irlang.diff.reduce_names import short
from irlang.diff.report_folder import write
from irlang.diff.runner import Case, Session
from irlang.diff.stages import by_calls
from irlang.diff.verdict import FINDINGS, judge
from irlang.diff.weighing import weighed
from irlang.interp.gradient import gradients as gradients_of
from irlang.interp.shape import check
from irlang.interp.values import initial_values, inputs
from irlang.lower.lower import Lowered, lower
from irlang.lower.manner import Manner
from irlang.parser import parse
from tests.planted import FAULTS, planted
from tests.targets import usable

pytest.importorskip("torch", reason="torch is not installed")
from tests.gradient_cases import NETWORK, drawn_case


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with Session(["torch"]) as made:
        yield made


SQUARE = """
model m(x: f32[4, 4] in [-1, 1]) -> y: f32[4, 4] {
  param b: f32[4] in [-1, 1]
  h = add(x, b)
  y = multiply(h, tanh(h))
  loss = reduce_sum(y)
}"""
GATES = """
model m(x: f32[4, 2, 3] in [-1, 1]) -> y: f32[4, 2, 5] {
  param w: f32[4, 5, 3] in [-1, 1]
  param r: f32[4, 5, 5] in [-1, 1]
  y, h, c = lstm(x, w, r)
  q = square(y)
  loss = reduce_sum(q)
}"""


def _hook(variable: str, slope: str) -> tuple[str, str]:
    """After the line that makes a variable: what flows back to it is something else."""
    after = f"{variable}.requires_grad and {variable}.register_hook(lambda g: {slope})"
    return rf"\n    {variable} = [^\n]*", rf"\g<0>\n    {after}"


def _only(expression: str) -> str:
    """An expression's gradient without its value."""
    return f"(lambda t: t - t.detach())({expression})"


# The model, the operator to blame, and the edit (a pattern and its replacement) of its text.
PLANTED: dict[str, tuple[str, str, tuple[str, str]]] = {
    "a factor in a convolution": (NETWORK, "conv", _hook("h", "g * (1 + 1e-4)")),
    "a factor in a pool whose windows differ": (
        NETWORK.replace("max_pool(a; window = 2, stride = 2)", "adaptive_max_pool(a; size = 3)"),
        "adaptive_max_pool",
        _hook("p", "g * (1 - 1e-4)"),  # less than all, as a tie would allow
    ),
    "a factor in a loss": (NETWORK, "cross_entropy", _hook("loss", "g * (1 + 1e-4)")),
    "a factor in a product": (NETWORK, "dense", _hook("logits", "g * (1 - 1e-4)")),
    "of another function": (
        NETWORK,
        "tanh",
        (r"torch\.tanh\((\w+)\)", r"torch.tanh(\1).detach() + " + _only(r"\1")),
    ),
    "of the least in a window": (
        NETWORK,
        "max_pool",
        (
            r"F\.max_pool2d\((\w+), \(2, 2\)\)",
            r"F.max_pool2d(\1, (2, 2)).detach() + " + _only(r"-F.max_pool2d(-\1, (2, 2))"),
        ),
    ),
    "a dropped term": (SQUARE, "multiply", (r"= (\w+) \* ", r"= \1.detach() * ")),
    "a bias summed over the wrong axis": (
        SQUARE,
        "add",
        (r"= (\w+) \+ (\w+)", r"= \1 + \2.detach() + " + _only(r"\2[:, None]")),
    ),
    "swapped gates": (
        GATES,
        "lstm",
        _hook("w_gates", "g.reshape(4, 5, 3)[[1, 0, 2, 3]].reshape(20, 3)"),
    ),
}


def test_gradients_are_judged_by_the_values_that_they_were_computed_from(
    session: Session,
) -> None:
    """PyTorch has another kernel for a product of matrices where a factor is differentiated by: the
    gradient by a weight of the sum is the product, bit for bit, as it is there.
    """
    text = """
    model m(x: f32[5, 1, 5] in [-1, 1], w: f32[1, 5, 1] in [-1, 1], c: f32[5, 1, 1]) -> s: f32[] {
      s = reduce_sum(multiply(matmul(x, w), c))
    }
    """
    case = drawn_case(text)
    for seed in range(4):
        random = np.random.default_rng(seed)
        drawn = {n: np.asarray(random.normal(size=a.shape), "f4") for n, a in case.inputs.items()}
        again = dataclasses.replace(case, inputs=drawn)
        again = dataclasses.replace(again, graph=dataclasses.replace(case.graph, loss="s"))
        calls = by_calls(session, again, "torch", grad=True)
        assert calls.backward == 3
        assert not calls.found


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_charged_to_its_gradient(
    name: str, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, culprit, (before, after) = PLANTED[name]
    case = drawn_case(text)
    right = session.compare([case], grad=True)[0].verdicts["torch"]
    assert not {v.verdict for v in right} & FINDINGS, right
    assert by_calls(session, case, "torch", grad=True).start is None
    edited = []

    def faulty(*args: Any, **options: Any) -> Lowered:
        made = lower(*args, **options)
        code, count = re.subn(before, after, str(made.code))
        edited.append(count)
        return dataclasses.replace(made, code=code)

    monkeypatch.setattr(gradients, "lower", faulty)
    outcome = session.compare([case], grad=True)[0]
    calls = by_calls(session, case, "torch", grad=True)
    assert edited == [1, 1]
    found = [v for v in outcome.verdicts["torch"] if v.verdict != "agrees"]
    assert found, "where the radii of all together leave it open, each call is judged by itself"
    assert {v.stage for v in found} == {"backward"}
    assert calls.start is not None
    assert calls.start.verdict.stage == "backward"
    assert calls.start.operator == culprit


POOLED = """
model m(x: f32[1, 1, 4, 4]) -> y: f32[1, 1, 2, 2] {
  h = multiply(x, 2.0)
  y = max_pool(h; window = 2, stride = 2)
  loss = reduce_sum(square(y))
}"""


@pytest.mark.parametrize(
    "name", [name for name, fault in FAULTS.items() if name.startswith("at a tie") and fault.grad]
)
def test_what_a_window_of_equals_may_have(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A share of what flows back is in the hull of the one-sided gradients; twice that is not."""
    tied = np.array([[1, 1, 2, 3], [0, 1, 3, 3], [4, 1, 2, 2], [1, 0, 2, 2]], np.float32)
    case = drawn_case(POOLED, x=tied[None, None])
    for module in (gradients, runner):
        monkeypatch.setattr(module, "lower", planted(FAULTS[name]))
    with Session(["torch"]) as own:  # the fault stays in its worker
        start = by_calls(own, case, "torch", grad=True).start
        verdicts = own.compare([case], grad=True)[0].verdicts["torch"]
    assert (start.operator if start else None) == (None if FAULTS[name].harmless else "max_pool")
    assert bool({v.verdict for v in verdicts} & FINDINGS) is not FAULTS[name].harmless


TIED = """op top(x: f32[N, M]) -> y: f32[N] {
  y[i] = max(j < M) x[i, j]
  grad x ties RULE
}
model m(x: f32[2, 3]) -> y: f32[2] {
  h = multiply(x, 2.0)
  y = top(h)
  loss = reduce_sum(y)
}"""


@pytest.mark.parametrize(("rule", "start"), [("even", None), ("any", None), ("first", "top")])
def test_a_tie_that_is_split_otherwise_than_the_definition_says(
    rule: str, start: str | None, session: Session
) -> None:
    """PyTorch's amax shares evenly among equals."""
    tied = np.array([[1, 2, 2], [3, 3, 3]], np.float32)
    case = drawn_case(TIED.replace("RULE", rule), x=tied)
    calls = by_calls(session, case, "torch", grad=True)
    assert (calls.start.operator if calls.start else None) == start
    verdicts = session.compare([case], grad=True)[0].verdicts["torch"]
    assert bool({v.verdict for v in verdicts} & FINDINGS) == (start is not None)


@pytest.mark.parametrize("target", ["mxnet-1.6", "keras-theano", "keras:torch", "keras:jax", "jax"])
def test_gradients_of_calls_are_judged_where_the_target_can_show_them(target: str) -> None:
    usable(target)
    text = """model m(x: f32[2, 3] in [0.5, 2], y: f32[3] in [0.5, 2]) -> k: f32[2, 3] {
  h = tanh(multiply(x, y))
  k = exp(negate(h))
  loss = reduce_sum(multiply(k, h); axes = [0, 1])
}
"""
    case = drawn_case(text)
    with Session((target,)) as session:
        calls = by_calls(session, case, target, grad=True)
        assert calls.start is None
        assert calls.backward == 6


@pytest.mark.parametrize("target", ["torch", "tf", "keras:tensorflow"])
def test_what_flows_back_to_a_constant_is_not_asked_for(target: str) -> None:
    """Of no rows a padding is a constant, which TensorFlow's tape does not know of: what it gives
    for it is no gradient, and no 0 either.
    """
    usable(target)
    case = drawn_case("""model m(x: f32[0, 2], y: f32[1, 3]) -> z: f32[2, 3] {
  p = pad(x; before = [1, 0], after = [0, 0], value = 2)
  q = multiply(p, 3)
  z = matmul(q, y; transpose_a = true)
  loss = reduce_sum(z)
}
""")
    with Session((target,)) as session:
        calls = by_calls(session, case, target, grad=True)
        assert calls.start is None
        assert calls.backward > 0


def test_the_sum_that_is_added_is_no_call_of_the_target_on_the_way_back() -> None:
    """By its weights it is the value itself, which PyTorch computes otherwise where it
    differentiates: it folds the axes of a product then, and other sums are rounded.
    """
    usable("torch")
    text = (
        "nnir 1\nmodel m(x: f32[5, 1], b: f32[2, 5, 2]) -> y: f32[2, 1, 2] "
        "{ y = matmul(x, b; transpose_a = true) }"
    )
    graph, catalog = weighed(check(parse(text, "m"), builtin()).graphs[0], builtin(), ["y"])
    rng = np.random.default_rng(0)
    fed = {n: rng.normal(size=graph.values[n].shape).astype(np.float32) for n in graph.inputs}
    with Session(["torch"]) as session:
        found = gradients.pulled_by_call(
            session.workers["torch"], Case(graph, fed, {}, catalog), "torch"
        )
        judged = [pulled.forward.op.name for pulled, *_ in found if pulled.forward]
    assert judged == ["matmul"]


def test_a_gradient_that_mxnet_has_wrong_is_blamed_on_its_call() -> None:
    """MXNet 1.6 forgets an axis of size 1 in the gradient of einsum; what is behind it is right."""
    usable("mxnet-1.6")
    text = """model m(x: f32[1, 1], y: f32[1, 1, 2], z: f32[1]) -> k: f32[1, 1, 2, 1] {
  h = einsum(x, y, z; labels = [0, 1, 2, 0, 3, 4])
  k = tanh(exp(h))
  loss = reduce_sum(multiply(k, k); axes = [0, 1, 2, 3])
}
"""
    pair = np.array([[[0.25, 0.75]]], "f4")
    given = {"x": np.ones((1, 1), "f4"), "y": pair, "z": np.ones(1, "f4")}
    case = drawn_case(text, **given)
    with Session(("mxnet-1.6",)) as session:
        start = by_calls(session, case, "mxnet-1.6", grad=True).start
        assert start is not None
        assert (start.verdict.stage, start.operator) == ("backward", "einsum")
        assert start.alone is not None


def test_a_fault_in_a_value_is_not_charged_to_its_gradient(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = drawn_case(NETWORK)

    def faulty(*args: Any, **options: Any) -> Lowered:
        made = lower(*args, **options)
        code = re.sub(r"torch\.tanh\((\w+)\)", r"(torch.tanh(\1) * 1.001)", str(made.code))
        return dataclasses.replace(made, code=code)

    monkeypatch.setattr(gradients, "lower", faulty)
    monkeypatch.setattr(runner, "lower", faulty)
    calls = by_calls(session, case, "torch", grad=True)
    assert calls.start is not None
    assert (calls.start.verdict.stage, calls.start.operator) == ("forward", "tanh")


NORM = """
model m(x: f32[4, 3, 5] in [-1, 1], mean: f32[3] in [-1, 1], var: f32[3] in [1, 2])
    -> y: f32[4, 3, 5] {
  param s: f32[3] in [0.5, 1.5]
  m = tanh(mean)
  y = batch_norm(x, s, s, m, var; axis = 1)
  loss = reduce_mean(multiply(y, y))
}"""


def test_a_finding_names_the_operator_whose_gradient_it_is(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = drawn_case(SQUARE)

    def faulty(*args: Any, **options: Any) -> Lowered:
        made = lower(*args, **options)
        return dataclasses.replace(made, code=re.sub(*_DROPPED, str(made.code)))

    monkeypatch.setattr(gradients, "lower", faulty)
    outcome = session.compare([case], grad=True)[0]
    found = find_gradient(session, case, 0, "torch")
    assert found is not None
    assert (found.operator, found.verdict.stage) == ("multiply", "backward")
    assert find(session, case, 0, "torch", outcome).operator == "multiply"
    assert "backward" in found.signature


def test_a_gradient_is_reduced_to_its_call(
    session: Session, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What flows back to it becomes the weights of a sum; a script shows the gradient alone."""
    text, culprit, (before, after) = PLANTED["of another function"]

    def faulty(*args: Any, **options: Any) -> Lowered:
        made = lower(*args, **options)
        return dataclasses.replace(made, code=re.sub(before, after, str(made.code)))

    for module in (gradients, runner):
        monkeypatch.setattr(module, "lower", faulty)
    found = find_gradient(session, drawn_case(text), 0, "torch")
    assert found is not None
    assert found.operator == culprit
    calls = [node.op.name for node in found.reduced.graph.nodes]
    assert calls == [culprit, "weighted_sum"]
    assert sum(array.size for array in found.reduced.values.values()) <= 4
    write(found, tmp_path, "f-001")
    again = load_case(str(tmp_path / "finding.nnir"), (), (), None, 0)
    assert [node.op.name for node in again.graph.nodes] == calls
    shown = subprocess.run(
        [sys.executable, tmp_path / "show_torch.py"], capture_output=True, text=True, check=True
    ).stdout
    name = found.verdict.name
    (expected,) = re.findall(rf"^{name} expected (.*)$", shown, re.MULTILINE)
    (got,) = re.findall(rf"^{name} got +(.*)$", shown, re.MULTILINE)
    assert abs(np.asarray(literal_eval(expected)) - np.asarray(literal_eval(got))).max() > 1e-4
    issue = (tmp_path / "issue.md").read_text("utf-8")
    assert "From these follows its gradient, `d_y` being what flows back" in issue


SEVERAL = """
model m(x: f32[3] in [-1, 1]) -> a: f32[3], b: f32[2, 3], n: bool[3] {
  a = tanh(x)
  b = stack(a, x; axis = 0)
  n = less(a, x)
}"""


def test_a_campaign_weighs_all_results_as_a_loss(session: Session) -> None:
    """Something flows back to every call; as text it needs a definition of its own."""
    bare = drawn_case(SEVERAL)
    graph, catalog = trainable(bare.graph, bare.catalog, 1)
    assert graph.loss is not None
    weights = list(graph.inputs)[1:]
    assert [graph.values[name].shape for name in weights] == [(3,), (2, 3)]
    case = Case(graph, inputs(graph, 3), {}, catalog)
    assert {s.node.op.name for s in prepare(graph, catalog).steps} >= {"tanh", "stack"}
    verdicts = session.compare([case], grad=True)[0].verdicts["torch"]
    assert {v.verdict for v in verdicts} <= {"agrees", "rounding"}
    given = {name: case.inputs[name].astype(np.float64) for name in ("x", *weights)}
    found = gradients_of(graph, case.values, catalog)
    slope = 1 - np.tanh(given["x"]) ** 2
    first, second = (given[name] for name in weights)
    expected = slope * (first + second[0]) + second[1]
    np.testing.assert_allclose(found["x"], expected, atol=1e-6)
    again = check(parse(to_text(short(case).graph, catalog), "again.nnir"), builtin())
    assert not again.diagnostics
    assert [node.op.name for node in again.graphs[0].nodes][-1] == "weighted_sum"


def test_what_is_differentiated_is_so_in_the_text_of_a_program(tmp_path: Path) -> None:
    """Whatever it was called, beside a value that the language would take for it."""
    bare = drawn_case(SQUARE)
    graph, catalog = trainable(dataclasses.replace(bare.graph, loss=None), bare.catalog, 8)
    assert graph.loss != "loss"
    case = Case(graph, inputs(graph, 3), initial_values(graph, 3), catalog)
    save(case, tmp_path / "finding.nnir")
    again = load_case(str(tmp_path), (), (), None, seed=3)
    for one in (case, again):
        assert one.graph.loss is not None
    own, read = (gradients_of(c.graph, c.values, c.catalog) for c in (case, again))
    for was, now in zip(own.values(), read.values(), strict=True):
        np.testing.assert_array_equal(was, now)


def test_one_campaign_program_in_three_keeps_a_loss_of_its_own() -> None:
    case = drawn_case(SQUARE)
    bare = dataclasses.replace(case.graph, loss=None, outputs={"y": "y", "loss": "loss"})
    own = [trainable(bare, case.catalog, seed * 8)[0].loss for seed in range(3)]
    assert own == ["loss", "weighted_sum", "weighted_sum"]


def test_what_is_stored_in_eight_bits_is_no_part_of_a_loss() -> None:
    both = "model m(x: f32[2]) -> a: f8e5m2[2], b: f8e5m2[2], y: f32[2] {\n"
    both += "  a = cast(x; to = f8e5m2)\n  b = cast(x; to = f8e5m2)\n  y = relu(x)\n}\n"
    graph, _ = trainable(drawn_case(both).graph, builtin(), 1)
    assert graph.loss is not None
    assert graph.nodes[-1].inputs["y0"] == "y"
    assert graph.values[graph.loss].dtype == "f32"
    one = "model m(x: f32[]) -> a: f8e5m2[] {\n  a = cast(x; to = f8e5m2)\n}\n"
    assert [trainable(drawn_case(one).graph, builtin(), seed)[0].loss for seed in (0, 1)] == [
        None
    ] * 2


def test_what_a_target_does_not_differentiate_by_is_said(session: Session) -> None:
    """PyTorch has no derivative by running statistics; all else is compared."""
    verdicts = session.compare([drawn_case(NORM)], grad=True)[0].verdicts["torch"]
    found = {v.name: v.verdict for v in verdicts}
    assert found.pop("d_mean") == found.pop("d_var") == "unsupported"
    assert set(found) == {"y", "loss", "d_x", "d_s"}
    assert set(found.values()) <= {"agrees", "rounding"}


def test_what_was_given_before_a_gradient_was_refused_is_judged_as_ever(session: Session) -> None:
    """PyTorch adds the mean, times the scale, to a bias first, which its own arithmetic allows; and
    refuses the gradient of a normalisation that has a bias and no scale.
    """
    case = drawn_case("""
model m(x: f32[6, 6, 4], b: f32[6], w: f32[6, 6, 4]) -> y: f32[6, 6, 4] {
  y = group_norm(x; beta = b, groups = 3)
  loss = reduce_sum(multiply(y, w))
}""")
    for seed in (2, 9, 10):
        x = np.random.default_rng(seed).normal(size=(6, 6, 4)).astype(np.float32)
        fed = {"x": x, "b": np.full(6, 89.07, np.float32), "w": np.ones((6, 6, 4), np.float32)}
        made = dataclasses.replace(case, inputs=fed, balls=None)
        (outcome,) = session.compare([made], grad=True)
        verdicts, balls = outcome.verdicts["torch"], with_balls(made).balls
        assert {v.verdict for v in verdicts if v.stage == "backward"} == {"refused"}
        assert {v.verdict for v in verdicts if v.stage != "backward"} <= {"agrees", "rounding"}
        assert balls is not None
        got = outcome.results["torch"].outputs["y"]
        plain = judge("y", "torch", made.graph.values["y"], balls["y"], got)
        assert plain.verdict == "inaccurate"  # in any order of evaluation, but not in its own


def test_a_word_without_derivatives_is_not_differentiated() -> None:
    """A variable is made of x: nothing flows back to that, whichever word has its turn."""
    text = """
model m(x: f32[3, 1], ids: i64[2, 1], u: f32[2, 1]) -> y: f32[3, 1] {
  y = scatter_nd(x, ids, u)
  loss = reduce_sum(y)
}"""
    (graph,) = check(parse(f"nnir 1\n{text}"), builtin()).graphs
    said = {}
    for turn in range(12):
        made = lower(graph, "tf", builtin(), {}, grad=True, manner=Manner(turn=turn))
        assert isinstance(made.code, str)
        assert ("ResourceScatterNd" in made.code) == ({"x", "u"} <= made.constant.keys())
        said[bool(made.constant)] = turn
    assert len(said) == 2  # of each kind there is one


@pytest.mark.parametrize(("x", "judged"), [(-1.0, False), (0.5, True)])
def test_there_is_no_slope_where_a_result_is_infinite(
    session: Session, x: float, judged: bool
) -> None:
    """The definition has -inf below 0, and 0 for the slope of that; PyTorch has NaN."""
    case = drawn_case("model m(x: f32[2]) -> y: f32[2] {\n  y = entr(x)\n  loss = reduce_sum(y)\n}")
    made = dataclasses.replace(
        case, inputs={"x": np.array([x, 0.25], np.float32)}, balls=None, edge=True
    )
    verdicts = session.compare([made], grad=True)[0].verdicts["torch"]
    (slope,) = [v for v in verdicts if v.name == "d_x"]
    assert (slope.verdict in ("agrees", "rounding")) == judged
    assert slope.verdict not in FINDINGS
    assert not by_calls(session, made, "torch", grad=True).found


def test_what_has_no_slope_needs_no_derivative(session: Session) -> None:
    """PyTorch has no derivative of floor_divide, which is 0 by the definition."""
    case = drawn_case("""
model m(x: f32[3] in [1, 2], y: f32[3] in [3, 4]) -> z: f32[3] {
  z = floor_divide(y, x)
  loss = reduce_sum(multiply(z, x))
}""")
    verdicts = session.compare([case], grad=True)[0].verdicts["torch"]
    assert {v.name for v in verdicts} == {"z", "loss", "d_x", "d_y"}
    assert {v.verdict for v in verdicts} == {"agrees"}


@pytest.mark.parametrize(
    ("call", "missing"),
    [
        ("bessel_k(x)", {"d_x"}),
        ("binary_cross_entropy_logits(x, y, w)", {"d_w"}),
        ("binary_cross_entropy_logits(x, y; pos_weight = w)", {"d_w"}),
        ("binary_cross_entropy(x, y, w; eps = 0, floor = -100)", {"d_w"}),
    ],
)
def test_what_autograd_takes_for_a_constant_is_said(
    call: str, missing: set[str], session: Session
) -> None:
    case = drawn_case(f"""
model m(x: f32[3] in [0.2, 0.7], y: f32[3] in [0.2, 0.7], w: f32[3] in [0.2, 0.7]) -> z: f32[] {{
  h = {call}
  z = reduce_sum(h)
  loss = square(z)
}}""")
    verdicts = session.compare([case], grad=True)[0].verdicts["torch"]
    assert {v.name for v in verdicts if v.verdict == "unsupported"} == missing
    assert not {v.verdict for v in verdicts} & FINDINGS


@pytest.mark.parametrize("target", ["torch", "tf"])
def test_a_value_that_is_held_constant_as_one_operand_flows_as_another(target: str) -> None:
    case = drawn_case("""
model m(x: f32[3] in [0.5, 2]) -> y: f32[3] {
  y = gammainc(x, x)
  loss = reduce_sum(y)
}""")
    with Session((target,), thorough=False) as one:
        found = {v.name: v.verdict for v in one.compare([case], grad=True)[0].verdicts[target]}
    assert found.keys() == {"y", "loss", "d_x"}
    assert set(found.values()) <= {"agrees", "rounding"}


def test_one_triangle_of_a_symmetric_matrix_is_read_and_both_have_gradients() -> None:
    """JAX reads the mean of both; what flows back to an element is shared with its mirror image."""
    case = drawn_case("""
model m(x: f32[2, 3, 3] in [-0.2, 0.2], w: f32[2, 3, 3] in [1, 2]) -> y: f32[2, 3, 3] {
  e = eye(; rows = 3)
  h = add(x, e)
  y = cholesky(h)
  c = multiply(w, y)
  loss = reduce_sum(c)
}""")
    with Session(("torch", "tf", "jax", "keras:jax"), thorough=False) as session:
        for target, verdicts in session.compare([case], grad=True)[0].verdicts.items():
            found = {v.name: v.verdict for v in verdicts}
            assert found["y"] == found["d_x"] == "agrees", (target, verdicts)


@pytest.mark.parametrize("pos_weight", [1, 0.5, 3])
@pytest.mark.parametrize("logit", [1e-9, -1e-9, 1e-4, 0.7, -20])
def test_a_difference_of_logarithms_is_a_gradient_too(
    logit: float, pos_weight: float, session: Session
) -> None:
    """PyTorch has log_sigmoid(-x) - pos_weight * log_sigmoid(x) by the target, which cancels."""
    case = drawn_case(f"""
model m(t: f32[1] in [0, 1]) -> y: f32[] {{
  param x: f32[1] = {logit}
  param p: f32[1] = {pos_weight}
  y = binary_cross_entropy_logits(x, t; pos_weight = p)
  loss = square(y)
}}""")
    verdicts = session.compare([case], grad=True)[0].verdicts["torch"]
    assert {v.name for v in verdicts} >= {"d_t"}
    assert not {v.verdict for v in verdicts} & FINDINGS


@pytest.mark.parametrize("more", ["", "; pos_weight = p"])
@pytest.mark.parametrize("logit", [-20, -3, 4, 12, 20, 40])
def test_a_sigmoid_less_the_target_is_a_gradient_too(
    logit: float, more: str, session: Session
) -> None:
    """So PyTorch computes it by the logits, which leaves no digit of what is nearly 0."""
    case = drawn_case(f"""
model m(x: f32[1] in [-40, 40]) -> y: f32[] {{
  param t: f32[1] = 1
  {"param p: f32[1] = 3" if more else ""}
  y = binary_cross_entropy_logits(x, t{more})
  loss = reduce_sum(y)
}}""")
    case.inputs["x"] = np.array([logit], np.float32)
    verdicts = session.compare([case], grad=True)[0].verdicts["torch"]
    assert not {v.verdict for v in verdicts} & FINDINGS


def test_what_is_drawn_anew_is_not_held_to_what_was_drawn_before(session: Session) -> None:
    case = drawn_case("""
model m(x: f32[64] in [1, 2]) -> y: f32[64] {
  h = dropout(x; rate = 0.5, training = true)
  y = square(h)
  loss = reduce_sum(y)
}""")
    calls = by_calls(session, case, "torch", grad=True)
    assert (calls.start, calls.forward, calls.backward) == (None, 3, 0)


def test_what_is_drawn_is_followed_where_there_are_no_gradients(session: Session) -> None:
    """PyTorch has no gradient of this group_norm; its own draws are followed all the same."""
    case = drawn_case("""
model m(x: f32[64] in [1, 2], z: f32[1, 2, 3], beta: f32[2]) -> y: f32[64] {
  h = dropout(x; rate = 0.5, training = true)
  y = square(h)
  n = group_norm(z; beta = beta, groups = 1)
  loss = add(reduce_sum(y), reduce_sum(n))
}""")
    verdicts = session.compare([case], grad=True)[0].verdicts["torch"]
    values = {v.name: v.verdict for v in verdicts if v.stage != "backward"}
    assert set(values.values()) <= {"agrees", "rounding", "unstable"}, verdicts


def test_the_command_says_in_which_stage_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "m.nnir"
    model.write_text(f"nnir 1\n{SQUARE}\n")

    def faulty(*args: Any, **options: Any) -> Lowered:
        made = lower(*args, **options)
        return dataclasses.replace(made, code=re.sub(*_DROPPED, str(made.code)))

    arguments = [str(model), "--targets", "torch", "--grad"]
    right = CliRunner().invoke(diff, [*arguments, "--format", "json"], standalone_mode=False)
    assert json.loads(right.output)["starts"] == []
    monkeypatch.setattr(gradients, "lower", faulty)
    wrong = CliRunner().invoke(diff, arguments, standalone_mode=False)
    assert "it starts in the backward stage, at multiply (`y`)" in wrong.output
    told = CliRunner().invoke(diff, [*arguments, "--format", "json"], standalone_mode=False)
    (start,) = json.loads(told.output)["starts"]
    assert (start["stage"], start["operator"], start["call"]) == ("backward", "multiply", "y")


_DROPPED = PLANTED["a dropped term"][2]


def test_what_a_graph_has_no_gradient_of_is_no_refusal() -> None:
    """TensorFlow says it in other words in a graph than where it runs operator by operator."""
    pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    case = case_apart(builtin(), 3, ["adjust_contrast"], True)
    assert case is not None
    with Session(["tf", "tf:graph"]) as session:
        (outcome,) = session.compare([case], grad=True)
    for verdicts in outcome.verdicts.values():
        told = {v.name: v.verdict for v in verdicts if v.name.startswith("d_x")}
        assert set(told.values()) == {"unsupported"}


_REFUSED = """
class Refused(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.tanh(x)

    @staticmethod
    def backward(ctx, g):
        raise RuntimeError("what is needed was changed in its place")
"""


def test_a_gradient_that_is_refused_is_charged_to_the_call_that_is_by_itself(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What reads its result is no part of it, nor what else the loss weighs."""
    text = """nnir 1
    model m(x: f32[3] in [1, 2], a: f32[2, 2] in [-1, 1]) -> y: f32[2, 2], z: f32[3] {
      v = tanh(multiply(x, x))
      y = matmul(a, reshape(slice(concat(v, x; axis = 0); end = [4]); shape = [2, 2]))
      z = square(x)
    }
    """

    def refusing(*args: Any, **options: Any) -> Lowered:
        made = lower(*args, **options)
        code = str(made.code).replace("torch.tanh(", "Refused.apply(")
        head, mark, tail = code.partition("\n\n\nINPUTS")
        return dataclasses.replace(made, code=f"{head}\n{_REFUSED}{mark}{tail}")

    monkeypatch.setattr(gradients, "lower", refusing)
    (graph,) = check(parse(text, "m"), builtin()).graphs
    graph, catalog = trainable(graph, builtin(), 8)
    case = Case(graph, inputs(graph, 1), initial_values(graph, 1), catalog)
    (outcome,) = session.compare([case], grad=True)
    found = find(session, case, 1, "torch", outcome)
    assert (found.verdict.verdict, found.operator) == ("refused", "tanh")
    assert [node.op.name for node in found.reduced.graph.nodes] == ["tanh", "weighted_sum"]
    assert len(found.reduced.graph.inputs) == 2
