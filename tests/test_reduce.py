"""The reducer: what its edits leave, and that a known minimum is reached from a large program."""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from irlang.catalog import builtin
from irlang.commands.cases import load_case
from irlang.diff import outcome as outcome_of
from irlang.diff import runner
from irlang.diff.edits import (
    ROUNDER,
    Attribute,
    Edit,
    Fed,
    Forward,
    Keep,
    Numbers,
    Omit,
    Resize,
    Results,
    Squeeze,
    Unbound,
    apply,
    cost,
    made_of,
)
from irlang.diff.edits_settle import settled, with_values
from irlang.diff.finding import _classed, charge, find
from irlang.diff.localise import fused, localise
from irlang.diff.outcome import Outcome
from irlang.diff.pace import PACE
from irlang.diff.reduce import Reduced, Symptom, _Driver, reduce, symptom, written_out
from irlang.diff.reduce_files import load_beside, save, to_text
from irlang.diff.reduce_moves import PHASES, at_once, numbers
from irlang.diff.runner import Case, Session
from irlang.diff.verdict import FINDINGS, Verdict
from irlang.graph import Initial
from irlang.interp.program import run
from irlang.interp.shape import check
from irlang.interp.values import initial_values, inputs
from irlang.lower import template
from irlang.lower.lower import Lowered, lower
from irlang.lower.pool import Limits, Result, Worker
from irlang.parser import parse


def case_of(text: str, seed: int = 3) -> Case:
    """A case of the text of a model."""
    checked = check(parse(f"nnir 1\n{text}", "reduced.nnir"), builtin())
    assert not checked.diagnostics, checked.diagnostics
    graph = checked.graphs[0]
    return Case(graph, inputs(graph, seed), initial_values(graph, seed), checked.catalog)


@pytest.mark.parametrize(
    ("text", "expected", "said"),
    [
        ("model m() -> y: f32[2] { y = linspace(; count = 2) }", 1.0, "wrong"),
        ("model m() -> y: f32[2] { y = linspace(; count = 2) }", None, "wrong"),
        ("model m() -> y: f32[2] { y = linspace(; stop = inf, count = 2) }", np.inf, "edge"),
        ("model m(x: f32[2]) -> y: f32[2] { y = relu(x) }", 1.0, "edge"),
    ],
)
def test_what_is_given_nothing_is_at_no_edge(text: str, expected: float | None, said: str) -> None:
    """It stood beside calls that are: the same finding had come twice, once of each class."""
    case = dataclasses.replace(case_of(text), edge=True)
    verdict = Verdict("y", "torch", "wrong", expected=expected)
    assert _classed(case, verdict).verdict == said


MIXED = """
model m(x: f32[2, 4, 6, 6], s: f32[2, 4, 6, 6]) -> y: f32[2, 6, 6, 6], z: f32[2, 4, 6, 6] {
  param w: f32[6, 4, 3, 3]
  param b: f32[6]
  a = relu(x)
  z = add(a, s)
  h = conv(z, w, b; dilation = 2, pad = same)
  y = tanh(h)
}"""
LAYER = """
model m(x: f32[5, 2, 3]) -> y: f32[5, 2, 4] {
  param w: f32[4, 4, 3]
  param r: f32[4, 4, 4]
  y, h, c = lstm(x, w, r)
}"""

# The edit, and the types that it leaves: of inputs and parameters, then of results.
EDITS: dict[str, tuple[str, Edit, dict[str, tuple[int, ...]], tuple[str, ...]]] = {
    "one call": (
        MIXED, Keep(("h",)),
        {"z": (2, 4, 6, 6), "w": (6, 4, 3, 3), "b": (6,)}, ("conv",),
    ),
    "one result": (MIXED, Results(("z",)), {"x": (2, 4, 6, 6), "s": (2, 4, 6, 6)}, ("relu", "add")),
    "a call is passed by": (
        MIXED, Forward("a", "x"),
        {"x": (2, 4, 6, 6), "s": (2, 4, 6, 6), "w": (6, 4, 3, 3), "b": (6,)},
        ("add", "conv", "tanh"),
    ),
    "no bias": (
        MIXED, Omit("h", "b"),
        {"x": (2, 4, 6, 6), "s": (2, 4, 6, 6), "w": (6, 4, 3, 3)}, ("relu", "add", "conv", "tanh"),
    ),
    "fewer channels, everywhere": (
        MIXED, Resize((("x", 1, 1),)),
        {"x": (2, 1, 6, 6), "s": (2, 1, 6, 6), "w": (6, 1, 3, 3), "b": (6,)},
        ("relu", "add", "conv", "tanh"),
    ),
    "elements in between": (
        MIXED, Resize((("x", 2, 2),), at=1),
        {"x": (2, 4, 2, 6), "s": (2, 4, 2, 6), "w": (6, 4, 3, 3), "b": (6,)},
        ("relu", "add", "conv", "tanh"),
    ),
    "an input in the place of a parameter": (
        LAYER, Fed("w"), {"x": (5, 2, 3), "w": (4, 4, 3), "r": (4, 4, 4)}, ("lstm",),
    ),
    "sizes that follow from others": (
        LAYER, Resize((("r", 2, 2),)), {"x": (5, 2, 3), "w": (4, 2, 3), "r": (4, 2, 2)}, ("lstm",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_leaves_a_valid_program(name: str) -> None:
    text, edit, given, calls = EDITS[name]
    case = case_of(text)
    held = {n: a.astype(np.float32) for n, a in run(case.graph, case.values, case.catalog).items()}
    made = apply(case, edit, held)
    assert made is not None
    assert {n: a.shape for n, a in made.values.items()} == given
    assert tuple(n.op.name for n in made.graph.nodes) == calls
    assert cost(made) < cost(case)
    again = case_of(to_text(made.graph, made.catalog).removeprefix("nnir 1\n"))
    assert again.graph.values == made.graph.values


@pytest.mark.parametrize(
    ("text", "smallest"),
    [
        (MIXED, {"x": (1, 1, 1, 1), "s": (1, 1, 1, 1), "w": (1, 1, 1, 1), "b": (1,)}),
        (LAYER, {"x": (1, 1, 1), "w": (4, 1, 1), "r": (4, 1, 1)}),
    ],
)
def test_all_axes_may_go_at_once(text: str, smallest: dict[str, tuple[int, ...]]) -> None:
    """Those that no call binds stay as its definition has them: an LSTM has four gates."""
    case = case_of(text)
    made = [apply(case, edit, {}) for edit in at_once(case)]
    left = [one for one in made if one is not None]
    assert {n: a.shape for n, a in left[0].values.items()} == smallest
    assert len(left) > 2
    assert sorted(map(cost, left)) == [cost(one) for one in left]


def test_elements_go_from_anywhere() -> None:
    """Also from the middle: what stands at both ends may be what is wrong together."""
    case = case_of("model m(x: f32[9]) -> y: f32[] { y = reduce_sum(x) }")
    case.inputs["x"] = np.arange(9, dtype=np.float32)
    left: dict[int | None, list[float]] = {}
    for at in (None, 0, 3, 8):
        made = apply(case, Resize((("x", 0, 4),), at), {})
        assert made is not None
        left[at] = made.inputs["x"].tolist()
    assert left == {None: [0, 1, 2, 3], 0: [5, 6, 7, 8], 3: [0, 1, 2, 8], 8: [0, 1, 2, 3]}


def test_ranges_go_from_what_is_given() -> None:
    text = "model m(x: f32[2] in [0, 1]) -> y: f32[2] {\n  param w: f32[2] in [1, 2]\n"
    case = case_of(f"{text}  y = add(x, w)\n}}")
    for name in ("x", "w"):
        made = apply(case, Unbound(name), {})
        assert made is not None
        case = made
    assert apply(case, Unbound("w"), {}) is None
    assert "in [" not in to_text(case.graph, case.catalog)


def test_axes_go_from_all_that_share_them() -> None:
    case = case_of("""
model m(x: f32[1, 2, 1, 4]) -> y: f32[1, 2, 1, 4] {
  param w: f32[2, 2, 1, 3]
  y = conv(x, w; pad = same, dilation = [1, 2])
}""")
    made = apply(case, Squeeze((("x", 2), ("w", 2))), {})
    assert made is not None
    assert {n: a.shape for n, a in made.values.items()} == {"x": (1, 2, 4), "w": (2, 2, 3)}
    assert made.graph.nodes[0].attrs["dilation"] == (2,)
    soft = case_of("model m(x: f32[2, 1, 3]) -> y: f32[2, 1, 3] {\n  y = softmax(x; axis = 2)\n}")
    made = apply(soft, Squeeze((("x", 1),)), {})
    assert made is not None
    assert made.graph.nodes[0].attrs["axis"] == 1


def test_a_number_by_itself_becomes_one_before_it_becomes_zero() -> None:
    """It may be a scale, and nobody believes a report about a division by 0."""
    case = case_of("model m(x: f32[3], s: f32[]) -> y: f32[3] { y = divide(x, s) }")
    case.inputs.update(x=np.full(3, 0.7, np.float32), s=np.array(0.3, np.float32))
    for name, number in (("s", 1), ("x", 0)):
        edits = (edit for edit in numbers(case) if isinstance(edit, Numbers) and edit.value == name)
        made = next(one for e in edits if (one := apply(case, e, {})) and cost(one) < cost(case))
        assert np.all(made.inputs[name] == number)
        case = made


def test_what_does_not_apply_is_refused() -> None:
    case = case_of(MIXED)
    for edit in (
        Keep(("a", "z", "h", "y")), Forward("h", "z"), Omit("h", "w"), Resize((("x", 0, 2),)),
        Resize((("gone", 0, 1),)), Squeeze((("x", 0),)), Attribute("gone", "pad", None),
        Numbers("gone", 0, 1, "zero"),
    ):  # fmt: skip
        assert apply(case, edit, {}) is None, edit


def test_numbers_become_rounder_within_their_range() -> None:
    case = case_of("model m(x: f32[4] in [0.5, 1]) -> y: f32[4] {\n  y = exp(x)\n}")
    assert apply(case, Numbers("x", 0, 4, "zero"), {}) is None
    made = apply(case, Numbers("x", 1, 3, "one"), {})
    assert made is not None
    assert made.inputs["x"][1:3].tolist() == [1, 1]
    assert np.array_equal(made.inputs["x"][[0, 3]], case.inputs["x"][[0, 3]])


def test_a_case_is_kept_in_two_files(tmp_path: Path) -> None:
    case = case_of("""
model m(x: f32[2, 3], k: i64[2] in [0, 5], h: bf16[3]) -> y: f32[2, 3] {
  param w: f32[3, 3] = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
  a = dense(x, w)
  z = cast(h; to = f32)
  j = cast(k; to = f32)
  y = add(a, multiply(z, reduce_sum(j)))
}""")
    save(case, tmp_path / "c.nnir", ("wrong: nobody",))
    assert (tmp_path / "c.nnir").read_text().startswith("# wrong: nobody\n")
    found = load_beside(tmp_path / "c.nnir")
    assert found.keys() == case.inputs.keys()
    for name, array in case.inputs.items():
        assert array.dtype == found[name].dtype
        assert np.array_equal(array, found[name])


@pytest.mark.parametrize(
    ("shape", "numbers"),
    [
        ("[]", np.nan),
        ("[]", -0.0),
        ("[1, 1]", [[np.nan]]),
        ("[2]", [np.nan] * 2),
        ("[2]", [0.0, -0.0]),
    ],
)
def test_parameters_are_written_out_bit_for_bit(
    shape: str, numbers: float | list[Any], tmp_path: Path
) -> None:
    body = f"param p: f32{shape} y = relu(x) z = relu(p)"
    case = case_of(f"model m(x: f32[2]) -> y: f32[2], z: f32{shape} {{ {body} }}")
    held = np.array(numbers, np.float32)
    param = case.graph.params["p"]
    initial = dataclasses.replace(param, initial=Initial("array", (held,)))
    graph = dataclasses.replace(case.graph, params={"p": initial})
    made = written_out(dataclasses.replace(case, graph=graph, params={"p": held}))
    save(made, tmp_path / "finding.nnir")
    again = load_case(str(tmp_path / "finding.nnir"), (), (), None, 0)
    assert again.params["p"].tobytes() == held.tobytes()


def test_inputs_are_kept_under_the_names_that_the_text_has(tmp_path: Path) -> None:
    """Those of a generated program and of an imported one need be no identifiers."""
    case = case_of("model m(a: f32[2], b: f32[2]) -> y: f32[2] {\n  y = subtract(a, b)\n}")
    graph = case.graph
    names = {"a": "x.0", "b": "x_0", "y": "y.0"}
    case = dataclasses.replace(
        case,
        graph=dataclasses.replace(
            graph,
            inputs={names[n]: port for n, port in graph.inputs.items()},
            values={names[n]: info for n, info in graph.values.items()},
            outputs={"y.0": "y.0"},
            nodes=[
                dataclasses.replace(
                    node,
                    outputs=("y.0",),
                    inputs={n: names[str(v)] for n, v in node.inputs.items()},
                )
                for node in graph.nodes
            ],
        ),
        inputs={names[n]: array for n, array in case.inputs.items()},
    )
    save(case, tmp_path / "finding.nnir")
    again = load_case(str(tmp_path), (), (), None, seed=7)
    for was, now in zip(case.inputs.values(), again.inputs.values(), strict=True):
        np.testing.assert_array_equal(was, now)


def test_numbers_outside_a_declared_range_are_read_again(tmp_path: Path) -> None:
    case = case_of("""model m(a: i32[2] in [1, 6], b: i32[2] in [1, 6]) -> y: i32[2] {
  y = divide(a, b)
}""")
    least = np.array([-(2**31), 4], np.int32)
    save(dataclasses.replace(case, inputs={**case.inputs, "a": least}), tmp_path / "finding.nnir")
    again = load_case(str(tmp_path), (), (), None, seed=7)
    assert again.inputs["a"].tolist() == least.tolist()
    assert [port.within for port in again.graph.inputs.values()] == [None, (1, 6)]


def test_a_program_of_a_loss_alone_is_read_again(tmp_path: Path) -> None:
    case = case_of(
        "model m(x: f32[2]) -> y: f32[2] {\n  y = tanh(x)\n"
        "  loss = reduce_sum(y; axes = [0], keepdims = false)\n}"
    )
    bare = dataclasses.replace(case, graph=dataclasses.replace(case.graph, outputs={}))
    save(bare, tmp_path / "c.nnir")
    again = check(parse((tmp_path / "c.nnir").read_text(), "c.nnir"), builtin())
    assert not again.diagnostics
    assert again.graphs[0].loss is not None


# ---- with a target

Edited = Any


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    pytest.importorskip("torch", reason="torch is not installed")
    with Session(["torch"]) as made:
        yield made


def plant(monkeypatch: pytest.MonkeyPatch, pattern: str, fault: str) -> None:
    """What a framework gets wrong, as an edit of the text that its worker runs."""

    def faulty(*args: Any, **options: Any) -> Lowered:
        made = lower(*args, **options)
        if isinstance(made.code, bytes):
            return made
        return dataclasses.replace(made, code=re.sub(pattern, fault, made.code))

    monkeypatch.setattr(runner, "lower", faulty)


def _reduced(session: Session, case: Case, **options: Any) -> Reduced:
    made = reduce(session, case, "torch", **options)
    assert made is not None
    assert made.finished
    return made


DEEP = """
model m(x: f32[2, 4, 9, 9]) -> y: f32[2, 6, 9, 9], z: f32[2, 4, 9, 9] {
  param w: f32[6, 4, 3, 3]
  param b: f32[6]
  a = relu(x)
  z = tanh(a)
  h = conv(z, w, b; dilation = 2, pad = same)
  y = sigmoid(h)
}"""
WIDE = r"dilation=\(2, 2\)"


def test_a_known_minimum_is_reached(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, WIDE, "dilation=(1, 1)")
    first = _reduced(session, case_of(DEEP), culprit="conv")
    second = _reduced(session, case_of(DEEP), culprit="conv")
    texts = [to_text(one.case.graph, one.case.catalog) for one in (first, second)]
    assert texts[0] == texts[1]
    (node,) = first.case.graph.nodes
    assert node.op.name == "conv"
    assert first.symptom.verdict == "wrong"
    # one element that is read, and one weight that ought to read outside the input
    assert first.case.values.keys() == {"z", "w"}
    assert sum(a.size for a in first.case.values.values()) == 3
    assert set(np.concatenate([a.ravel() for a in first.case.values.values()])) == {0, 1}


FUSABLE = """
model m(x: f32[2, 3], s: f32[3]) -> y: f32[2, 3] {
  a = tanh(x)
  b = exp(a)
  c = add(b, s)
  d = negate(c)
  e = sigmoid(d)
  y = multiply(e, 2.0)
}"""
# fires on an addition whose result is not asked for, and then negated
PAIR = (
    r"(?s)(\w+) = (\w+ \+ \w+)( +#[^\n]*)\n( +\w+ = )torch\.neg\(\1\)"
    r"(?=(?:(?!return [^\n]*\b\1\b).)*$)"
)


def test_what_stands_at_both_ends_is_left_alone(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch, r"torch\.neg\((\w+)\)", r"(torch.neg(\1) + (\1[0] * \1[-1] == 15))")
    text = "model m(x: f32[9] in [0, 9]) -> y: f32[9] {\n  param w: f32[9] in [0, 9]\n"
    case = case_of(f"{text}  y = negate(add(x, w))\n}}")
    case.inputs["x"] = np.array([3, 1, 2, 1, 2, 1, 2, 1, 5], np.float32)
    case.params["w"] = np.zeros(9, np.float32)
    made = _reduced(session, case)
    assert [array.size for array in made.case.values.values()] == [2]
    assert not made.case.graph.params
    assert "in [" not in to_text(made.case.graph, made.case.catalog)


def test_a_fusion_is_localised_and_reduced(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = case_of(FUSABLE)
    plant(monkeypatch, PAIR, r"\1 = \2\3\n\4torch.abs(\1)")
    assert localise(session, case, "torch") is None
    found = fused(session, case, "torch")
    assert found is not None
    assert found.hidden == ("c",)
    assert [node.op.name for node in found.nodes] == ["add", "negate"]
    made = _reduced(session, case)
    assert [node.op.name for node in made.case.graph.nodes] == ["add", "negate"]
    assert sum(a.size for a in made.case.values.values()) <= 2


def test_a_number_is_not_made_a_pole(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sigmoid behind a reciprocal is off; of 0, whose reciprocal is infinite, it is as well."""
    hidden = r"(?s)(reciprocal\(.*?sigmoid\((\w+)\))(?=(?:(?!return [^\n]*\b\2\b).)*$)"
    plant(monkeypatch, hidden, r"\1 + 0.25")
    case = case_of("model m(x: f32[4] in [2, 3]) -> y: f32[4] {\n  y = sigmoid(reciprocal(x))\n}")
    made = _reduced(session, case)
    assert [node.op.name for node in made.case.graph.nodes] == ["reciprocal", "sigmoid"]
    assert made.case.values["x"].tolist() == [1]


def test_the_limits_hold(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, WIDE, "dilation=(1, 1)")
    made = reduce(session, case_of(DEEP), "torch", trials=20)
    assert made is not None
    assert not made.finished
    assert made.trials <= 20 + 2 * 16
    assert cost(made.case) < cost(case_of(DEEP))


def test_what_agrees_is_not_reduced(session: Session) -> None:
    assert reduce(session, case_of(DEEP), "torch") is None


def test_a_refusal_stays_the_refusal_that_it_is(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch, r"torch\.sigmoid\(", "torch.sigmoid(*[], bad=")
    made = _reduced(session, case_of(DEEP))
    assert [node.op.name for node in made.case.graph.nodes] == ["sigmoid"]
    assert made.symptom.verdict == "refused"


def test_a_refusal_is_told_from_another_by_what_is_said_of_the_node() -> None:
    """In front of that a runtime says the same of all."""
    front = (
        "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Non-zero status code returned while running "
    )
    node = "{} node. Name:'n' Status Message: "

    def shown(name: str, said: str) -> Symptom:
        message = front + node.format(name) + said
        verdict = Verdict("y", "onnxruntime", "refused", message=message)
        return symptom(case_of(DEEP), Outcome(verdicts={"onnxruntime": [verdict]}), "onnxruntime")

    fused = shown("SkipLayerNormalization", "gamma is expected to have 1 dimension, got 2")
    small = shown("LayerNormalization", "Size of X.shape[axis:] must be larger than 1, got 1")
    assert fused != small
    assert fused == shown("SkipLayerNormalization", "gamma is expected to have 1 dimension, got 3")


@pytest.mark.parametrize(
    ("end", "verdict"),
    [("ctypes.string_at(0)", "crash"), ("os.kill(os.getpid(), 6)", "crash"),
     ("time.sleep(600)", "timeout")],
)  # fmt: skip
def test_what_ends_a_process_is_reduced_to_one_call(
    monkeypatch: pytest.MonkeyPatch, end: str, verdict: str
) -> None:
    """In forks: a trial costs no import of the framework, and a hang not the whole of its time."""
    pytest.importorskip("torch", reason="torch is not installed")
    fault = f"(__import__('{end.partition('.')[0]}').{end.partition('.')[2]}) or torch.sigmoid("
    fault = fault.replace("os.getpid()", "__import__('os').getpid()")
    monkeypatch.setattr("irlang.diff.reduce.HANG_SECONDS", 1.0)
    with Session(["torch"], Limits(seconds=4.0)) as session:
        plant(monkeypatch, r"torch\.sigmoid\(", fault)
        made = reduce(session, case_of(DEEP), "torch", seconds=30.0)
        assert made is not None
        assert made.symptom.verdict == verdict
        assert [node.op.name for node in made.case.graph.nodes] == ["sigmoid"]
        assert sum(a.size for a in made.case.values.values()) == 1
        spares = session.workers["torch"]._others
    assert len(spares) == 1
    assert all(not thread.is_alive() for spare in spares.values() if (thread := spare._thread))


def test_a_hang_takes_the_whole_time_of_a_program_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """When it is met: what looks into it, and what runs it again at last, waits far shorter."""
    pytest.importorskip("torch", reason="torch is not installed")
    plant(monkeypatch, r"torch\.sigmoid\(", "__import__('time').sleep(600) or torch.sigmoid(")
    monkeypatch.setattr("irlang.diff.finding._LATE", 2.0)
    waited: list[float] = []
    ran = Worker._run

    def watched(worker: Worker, *jobs: Any) -> list[Result]:
        results = ran(worker, *jobs)
        waited.extend(worker.limits.seconds for one in results if one.status == "timeout")
        return results

    monkeypatch.setattr(Worker, "_run", watched)
    with Session(["torch"], Limits(seconds=4.0)) as session:
        case = case_of(DEEP)
        outcome = session.compare([case])[0]
        found = find(session, case, 1, "torch", outcome)
    assert [seconds for seconds in waited if seconds >= 2.0] == [4.0, 2.0]
    assert found.operator == "sigmoid"
    assert (found.verdict.verdict, found.repeated) == ("timeout", True)
    assert found.verdict.message == "no answer within 2 s"
    assert sum(a.size for a in found.reduced.values.values()) == 1


def test_a_trial_that_hangs_is_given_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has no answer is not what is being made smaller."""
    pytest.importorskip("torch", reason="torch is not installed")
    fault = r"(1 - torch.sigmoid(\1) if \1.numel() > 2 else __import__('time').sleep(600))"
    plant(monkeypatch, r"torch\.sigmoid\((\w+)\)", fault)
    monkeypatch.setattr("irlang.diff.reduce._TRIAL_SECONDS", 0.5)
    case = case_of("model m(x: f32[4]) -> y: f32[4] {\n  y = sigmoid(x)\n}")
    start = time.monotonic()
    with Session(["torch"]) as session:
        made = _reduced(session, case, seconds=3.0)
    assert sum(a.size for a in made.case.values.values()) == 3
    assert time.monotonic() - start < 20.0, "one hang alone would have taken as long"


def test_a_finding_takes_a_part_of_the_time_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be the machine busy or not, and edits that come to nothing included."""
    pytest.importorskip("torch", reason="torch is not installed")
    slow = "(__import__('time').sleep(0.2) or 1 - torch.sigmoid("
    plant(monkeypatch, r"torch\.sigmoid\((\w+)\)", slow + r"\1))")
    with Session(["torch"]) as session:
        session.versions()
        start = time.monotonic()
        with monkeypatch.context() as short:
            short.setattr(PACE, "until", start + 8.0)
            made = reduce(session, case_of(DEEP), "torch", seconds=60.0)
        taken = time.monotonic() - start
    assert made is not None
    assert not made.finished
    assert taken < 6.0
    assert PACE.looked >= 1.0


def test_what_is_slow_and_no_more_is_told_as_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is late when it is met, and gives its answer wherever it is run again at last."""
    pytest.importorskip("torch", reason="torch is not installed")
    plant(monkeypatch, r"torch\.sigmoid\(", "__import__('time').sleep(1.0) or torch.sigmoid(")
    monkeypatch.setattr("irlang.diff.reduce.HANG_SECONDS", 0.5)
    monkeypatch.setattr("irlang.diff.finding._LATE", 20.0)  # a busy machine is no hang
    case = case_of("model m(x: f32[2]) -> y: f32[2] {\n  y = sigmoid(x)\n}")
    late = Result("timeout", {}, {}, "no answer within 20 s", {}, 20.0)
    with Session(["torch"]) as session:
        outcome = session.compare([case])[0]
        verdicts = {"torch": outcome_of.verdicts(case.graph, "torch", outcome, late)}
        found = find(session, case, 1, "torch", dataclasses.replace(outcome, verdicts=verdicts))
    assert (found.verdict.verdict, found.repeated) == ("timeout", False)


def test_a_crash_that_a_fork_does_not_show_is_reduced_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It needs a process that forks nothing: here by its parent's name, so there is no template."""
    monkeypatch.setattr(template, "use", lambda *_: "")
    parent = "open('/proc/%d/cmdline' % __import__('os').getppid()).read()"
    fault = f"('lower/worker.py' in {parent} or __import__('os').abort()) and torch.sigmoid("
    plant(monkeypatch, r"torch\.sigmoid\(", fault)
    case = case_of("model m(x: f32[2]) -> y: f32[2] {\n  a = tanh(x)\n  y = sigmoid(a)\n}")
    with Session(["torch"]) as session:
        made = reduce(session, case, "torch", trials=6)
    assert made is not None
    assert made.symptom.verdict == "crash"
    assert [node.op.name for node in made.case.graph.nodes] == ["sigmoid"]


def test_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    from irlang.commands.reduce import command

    path, out = tmp_path / "deep.nnir", tmp_path / "small.nnir"
    path.write_text(f"nnir 1\n{DEEP}\n")
    arguments = [str(path), "--targets", "torch"]
    good = CliRunner().invoke(command, arguments, standalone_mode=False)
    assert good.return_value == 0
    assert "agree" in good.output
    plant(monkeypatch, WIDE, "dilation=(1, 1)")
    bad = CliRunner().invoke(command, [*arguments, "-o", str(out)], standalone_mode=False)
    assert bad.return_value == 1
    assert out.read_text().startswith("# wrong: torch, conv\n")
    again = CliRunner().invoke(command, [str(out), "--targets", "torch"], standalone_mode=False)
    assert again.return_value == 1
    assert "conv" in again.output


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_the_ends_of_integers_have_fewer_digits_inside_their_type(dtype: str) -> None:
    ends = np.iinfo(dtype)
    array = np.array([ends.min, ends.max, 37], dtype)
    for how, rounder in ROUNDER.items():
        found = rounder(array)
        assert found.dtype == array.dtype, how
        assert np.all((found >= ends.min) & (found <= ends.max)), how
    assert ROUNDER["one digit"](array)[2] == 40


def test_what_a_call_reads_twice_is_cut_in_both_places() -> None:
    """A product of x with itself, of which a column is gone: nothing but one row fits it."""
    case = case_of("model m(x: f32[2, 2]) -> y: f32[2, 2] { y = matmul(x, x) }")
    cut = with_values(case, {"x": case.values["x"][:, :1]})
    made = settled(cut, cut.graph.nodes)
    assert made is not None
    assert made.values["x"].shape == (1, 1)
    assert made.graph.values["y"].shape == (1, 1)
    assert run(made.graph, made.values, made.catalog)["y"].shape == (1, 1)


def test_a_finding_has_among_its_results_the_value_that_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Beside what is computed of it, and by what it is computed of alone, nothing is wrong."""
    pytest.importorskip("torch", reason="torch is not installed")
    plant(
        monkeypatch,
        r"torch\.tanh\((\w+)\)(?=[\s\S]*torch\.exp\()",
        r"(torch.tanh(\1) + 0.01)",
    )
    case = case_of(
        "model m(x: f32[2]) -> y: f32[2] {\n  a = tanh(x)\n  b = exp(a)\n  y = multiply(b, 0)\n}"
    )
    with Session(["torch"]) as session:
        culprit = localise(session, case, "torch")
        assert culprit is not None
        found = charge(session, case, 1, "torch", culprit)
        verdict = found.verdict
        assert verdict.verdict in FINDINGS
        assert verdict.name in found.reduced.graph.outputs
        assert found.got[verdict.name][verdict.index] == verdict.got
        again = session.compare([found.reduced])[0].verdicts["torch"]
    assert any(v.verdict in FINDINGS and v.name == verdict.name for v in again)


def test_a_trial_has_no_results_that_fill_the_memory() -> None:
    """Without its step a range from end to end has 2**31 elements, which the oracle would make."""
    case = case_of("""
model m(x: i64[2]) -> y: i64[2] {
  r = arange(; start = -2147483648, stop = 1, step = 2147483647)
  y = add(x, r)
}""")
    with Session(["onnx-reference"]) as session:
        wanted = Symptom("wrong", "")
        driver = _Driver(session, "onnx-reference", wanted, None, False, True, False, 60.0, 9)
        driver.batch = 1000
        held = dict(case.values)
        tried = [made for phase in PHASES for _, made in driver.some(case, phase(case), held)]
    assert any(len(one.graph.nodes) == 1 for one in tried)
    assert all(made_of(one.graph) < 100 for one in tried)
