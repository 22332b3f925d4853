"""What a framework does plainly is what a mode of it is to do where a definition is silent."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irlang.arithmetic import STANDARD
from irlang.catalog import builtin
from irlang.diff.calls import Case
from irlang.diff.finding import find, is_plainly_so
from irlang.diff.localise import localise
from irlang.diff.outcome import Outcome, verdicts
from irlang.diff.plainly import Judged, compare_plainly, excuse, leaves_open
from irlang.diff.report_folder import write
from irlang.diff.runner import Session, expose
from irlang.diff.verdict import FINDINGS, Verdict
from irlang.dtypes import DTYPES
from irlang.interp.program import balls, precision
from irlang.interp.shape import check
from irlang.lower.pool import Program, Result
from irlang.lower.target import describe, names
from irlang.parser import parse
from tests.targets import usable

NAN, INF = np.nan, np.inf


def _case(model: str, **values: Any) -> Case:
    """A program with the values of its inputs."""
    graph = check(parse(f"nnir 1\nmodel m{model}\n", "model.nnir"), builtin()).graphs[0]
    fed = {n: np.asarray(a, DTYPES[graph.values[n].dtype].numpy) for n, a in values.items()}
    return Case(graph, fed, {}, builtin(), edge=True)


def _result(case: Case, values: dict[str, Any]) -> Result:
    graph = expose(case.graph)
    kinds = {name: DTYPES[graph.values[v].dtype].numpy for name, v in graph.outputs.items()}
    outputs = {n: np.asarray(a, kinds[n]) for n, a in values.items()}
    return Result("ok", outputs, {}, "", {}, 0.0)


def _against(case: Case, plain: dict[str, Any] | None, got: dict[str, Any]) -> list[Verdict]:
    """The verdicts on what tf:xla gave, where TensorFlow plainly gives something; None: where
    nothing is to be asked of it.
    """
    known = balls(case.graph, case.values, case.catalog, precision(case.graph))
    result = _result(case, got)
    outcome = Outcome(balls=known, results={"tf:xla": result})
    outcome.verdicts["tf:xla"] = verdicts(case.graph, "tf:xla", outcome, result)
    asked: list[Program] = []

    def ran(programs: list[Program]) -> list[Result]:
        asked.extend(programs)
        return [_result(case, plain or {})] * len(programs)

    compare_plainly("tf:xla", "tf", [Judged(case, case.graph, outcome)], STANDARD, ran)
    assert len(asked) == (plain is not None)
    return outcome.verdicts["tf:xla"]


_STEP = "(x: f32[3], h: f32[3]) -> y: f32[3] { y = heaviside(x, h) }"
_AT = {"x": [NAN, 0, 2], "h": [7, 0.5, 7]}


def test_what_is_left_open_is_as_it_is_plainly() -> None:
    case = _case(_STEP, **_AT)
    (found,) = _against(case, {"y": [0, 0.5, 1]}, {"y": [NAN, 0.5, 1]})
    assert (found.verdict, found.index, found.expected) == ("inconsistent", (0,), 0)
    assert np.isnan(found.got or 0)
    assert found.stage == "forward"
    assert found.message == "the definition leaves it open, and tf gives 0.0"


@pytest.mark.parametrize("value", [NAN, 0.0, 1.0, INF])
def test_any_value_is_right_that_is_given_plainly(value: float) -> None:
    case = _case(_STEP, **_AT)
    (found,) = _against(case, {"y": [value, 0.5, 1]}, {"y": [value, 0.5, 1]})
    assert found.verdict == "agrees"


def test_half_of_the_digits_are_compared() -> None:
    case = _case(_STEP, **_AT)
    near, far = 3 * (1 + 1e-5), 3 * (1 + 1e-3)
    assert _against(case, {"y": [3, 0.5, 1]}, {"y": [near, 0.5, 1]})[0].verdict == "agrees"
    assert _against(case, {"y": [3, 0.5, 1]}, {"y": [far, 0.5, 1]})[0].verdict == "inconsistent"


def test_what_is_added_up_in_another_order_is_no_other_choice() -> None:
    """A scale that is no number leaves all open; what order does to a sum is no choice."""
    case = _case(
        """(g: f32[3, 1], x: f32[3, 1], s: f32[1]) -> y: f32[1] {
          d, e, y = batch_norm_gradient(g, x, s, s, s)
        }""",
        g=[[1], [-3e38], [3e38]], x=[[0], [0], [0]], s=[NAN],
    )  # fmt: skip
    plain = {"y": [0.0]}
    assert _against(case, plain, {"y": [1]})[0].verdict not in FINDINGS
    assert _against(case, plain, {"y": [2e38]})[0].verdict == "inconsistent"
    small = replace(case, inputs={**case.inputs, "g": np.array([[1], [-3], [3]], np.float32)})
    near = {"y": [1]}
    assert _against(small, near, {"y": [1 + 1e-7]})[0].verdict not in FINDINGS
    assert _against(small, near, {"y": [NAN]})[0].verdict == "inconsistent"


def test_a_finding_by_the_definition_stays_one() -> None:
    case = _case(_STEP, **_AT)
    (found,) = _against(case, None, {"y": [NAN, 0.5, 3]})
    assert (found.verdict, found.index) == ("wrong", (2,))


def test_what_is_plainly_wrong_is_no_measure() -> None:
    case = _case(_STEP, **_AT)
    (found,) = _against(case, {"y": [0, 0.5, 3]}, {"y": [NAN, 0.5, 1]})
    assert found.verdict == "agrees"


def test_nothing_is_asked_where_definitions_determine_everything() -> None:
    for x in ([1, 0, 2], [-1, INF, 2]):
        (found,) = _against(_case(_STEP, x=x, h=[7, 0.5, 7]), None, {"y": np.heaviside(x, 0.5)})
        assert found.verdict == "agrees"
    case = _case("(x: f32[2]) -> y: f32[2] { y = exp(x) }", x=[NAN, 0])
    assert not leaves_open(case.graph, case.catalog)


def test_the_oracle_goes_on_from_there() -> None:
    case = _case(
        "(x: f32[3], h: f32[3]) -> z: f32[3] {\n s = heaviside(x, h)\n z = multiply(s, h)\n}", **_AT
    )
    plain = {"s": [1, 0.5, 1], "z": [7, 0.25, 7]}
    assert _against(case, plain, {"z": [7, 0.25, 7]})[0].verdict == "agrees"
    (found,) = _against(case, plain, {"z": [0, 0.25, 7]})
    assert (found.verdict, found.index, found.expected) == ("inconsistent", (0,), 7)


def test_nothing_is_open_for_certain_where_rounding_decides() -> None:
    """A variance of 0 or not: of its root's reciprocal nobody knows whether it is infinite."""
    model = """(x: f32[3], h: f32[3]) -> y: f32[3] {
      t = multiply(x, x)
      u = subtract(t, h)
      v = log(u)
      y = heaviside(v, h)
    }"""
    x = np.float32(1.1)
    case = _case(model, x=[x, 1, 3], h=[x * x, 5, 1])
    v = [np.log(1e-9), NAN, np.log(8)]
    y = [0, 0, 1]
    plain = {"t": [x * x, 1, 9], "u": [1e-9, -4, 8], "v": v, "y": y}
    (found,) = _against(case, plain, {"y": [NAN, NAN, 1]})
    assert (found.verdict, found.index) == ("inconsistent", (1,))


def test_whole_numbers_are_compared_as_they_are() -> None:
    case = _case("(x: f32[2]) -> y: i32[2] { y = cast(x; to = i32) }", x=[NAN, 5])
    assert _against(case, {"y": [-(2**31), 5]}, {"y": [0, 5]})[0].verdict == "inconsistent"
    assert _against(case, {"y": [0, 5]}, {"y": [0, 5]})[0].verdict == "agrees"


def test_modes_that_make_something_of_a_program_have_a_plain_one() -> None:
    found = {name: describe(name).plain for name in names() if describe(name).plain}
    usual = {n: p for n, p in found.items() if n.split(":")[0] in ("torch", "tf", "jax")}
    assert usual == {
        "torch:compile": "torch", "torch:aot": "torch", "torch:export": "torch",
        "torch:meta": "torch", "torch:vmap": "torch", "torch:forward": "torch", "tf:vmap": "tf",
        "jax:vmap": "jax", "jax:forward": "jax", "tf:graph": "tf", "tf:xla": "tf",
        "jax:jit": "jax", "torch:triton": "torch:cuda",
    }  # fmt: skip
    assert found["onnxruntime"] == "onnxruntime:plain"
    assert not any(describe(plain).plain for plain in found.values())


def test_a_mode_is_measured_by_its_framework(tmp_path: Path) -> None:
    """XLA makes the largest of what is too large for an i32, TensorFlow the least (both say so)."""
    usable("tf:xla")
    case = _case(
        """(x: f32[2], c: i32[2]) -> z: i32[2], w: f32[2] {
          w = negate(x)
          y = cast(x; to = i32)
          z = minimum(y, c)
        }""",
        x=[3e9, 5], c=[7, 7],
    )  # fmt: skip
    with Session(["tf:xla"]) as session:
        (outcome,) = session.compare([case])
        found = {v.name: v for v in outcome.verdicts["tf:xla"]}
        assert (found["z"].verdict, found["z"].got) == ("inconsistent", 7)
        assert found["z"].expected == -(2**31)
        assert found["w"].verdict == "agrees"
        culprit = localise(session, case, "tf:xla")
        assert culprit is not None
        assert (culprit.node.op.name, culprit.verdict.name) == ("cast", "y")
        told = find(session, case, 1, "tf:xla", outcome)
    assert (told.operator, told.verdict.verdict, told.plain) == ("cast", "inconsistent", "tf")
    assert told.repeated
    entry = write(told, tmp_path, "f-001")
    assert entry["title"].endswith("gives 2147483647 for y, where TensorFlow gives -2147483648")
    assert entry["others"] == {"tf": "agrees"}
    assert (tmp_path / "show_tf.py").exists()
    text = (tmp_path / "issue.md").read_text("utf-8")
    assert "The definition leaves it open" in text
    assert "gives what is expected here" in text
    assert "without this mode" not in text
    assert "Prints what TensorFlow gives" in (tmp_path / "show_tf_xla.py").read_text("utf-8")


_ROWS = """(x: f32[2, 3, {n}]) -> y: f32[2, 3, {m}] {{
  y = upsample(x)
}}"""


def test_what_a_mode_refuses_in_other_words_than_its_framework_is_held_against_neither() -> None:
    """PyTorch says that it upsamples nothing that is empty; without values a check fails."""
    case = _case(_ROWS.format(n=0, m=0), x=np.zeros((2, 3, 0)))
    with Session(("torch:meta",)) as session:
        (outcome,) = session.compare([case])
        (refused,) = outcome.verdicts["torch:meta"]
        assert refused.verdict == "unsupported"
        assert outcome.results["torch:meta"].status == "refused"
        assert not re.search(session.says_no["torch:meta"], outcome.results["torch:meta"].error)
        (right,) = session.compare([_case(_ROWS.format(n=1, m=2), x=np.ones((2, 3, 1)))])
    assert [v.verdict for v in right.verdicts["torch:meta"]] == ["agrees"]


def _answered(told: Result, programs: list[Program]) -> list[Result]:
    return [told] * len(programs)


def test_a_refusal_that_the_framework_has_not_is_held_against_a_mode() -> None:
    case = _case("(x: f32[2]) -> y: f32[2] {\n  y = relu(x)\n}", x=[1, 2])
    refused = Result("refused", {}, {}, "no", {}, 0.0)
    for told, verdict in (
        (_result(case, {"y": [1, 2]}), "refused"),
        (refused, "unsupported"),
        (replace(refused, error="something else"), "refused"),
        (replace(refused, status="crash"), "refused"),
    ):
        outcome = Outcome(results={"torch:meta": refused})
        outcome.verdicts["torch:meta"] = [Verdict("y", "torch:meta", "refused")]
        judged = [Judged(case, case.graph, outcome)]
        excuse("torch:meta", "torch", judged, "^no$", partial(_answered, told))
        assert [v.verdict for v in outcome.verdicts["torch:meta"]] == [verdict]


@pytest.mark.parametrize("target", ["torch:meta", "torch:aot"])
def test_what_is_so_without_a_mode_is_said_to_be(target: str, tmp_path: Path) -> None:
    """A convolution over no channels gives none in PyTorch, whatever the mode."""
    text = "(x: f32[1, 0, 1], w: f32[1, 0, 1]) -> y: f32[1, 1, 1] {\n  y = conv(x, w)\n}"
    case = _case(text, x=np.zeros((1, 0, 1)), w=np.zeros((1, 0, 1)))
    with Session(("torch", target)) as session:
        (outcome,) = session.compare([case])
        met = find(session.only(target), case, 1, target, outcome)
        assert met.others == {"torch": "wrong"}
        assert is_plainly_so(session, met) == (target == "torch:meta")
        assert not is_plainly_so(session.only(target), met)  # nobody else tells it
        of_torch = find(session, case, 1, "torch", outcome)
        assert not is_plainly_so(session, of_torch)
    entry = write(met, tmp_path, "f-001")
    assert bool(entry["got"]) == (target == "torch:aot")
    assert (tmp_path / "show_torch.py").exists()
    assert entry["others"] == {"torch": "wrong"}
    text = (tmp_path / "issue.md").read_text("utf-8")
    assert "does the same without this mode, which has not made it." in text
    assert text.count("gives another result") == 2


def test_a_call_that_reads_another_shape_is_not_what_is_refused() -> None:
    """What a convolution over no channels gives in PyTorch has none, and does not broadcast."""
    text = """(x: f32[1, 0, 1], w: f32[2, 0, 1], c: f32[1, 2, 1]) -> y: f32[1, 2, 1] {
      h = conv(x, w)
      z = multiply(h, c)
      y = tanh(z)
    }"""
    case = _case(text, x=np.zeros((1, 0, 1)), w=np.zeros((2, 0, 1)), c=np.ones((1, 2, 1)))
    with Session(("torch",)) as session:
        (outcome,) = session.compare([case])
        assert {v.verdict for v in outcome.verdicts["torch"]} == {"refused"}
        met = find(session, case, 1, "torch", outcome)
    assert (met.operator, met.whole) == ("conv", case)
    assert met.verdict.message.startswith("shape ")


def test_a_runtime_is_measured_by_one_beside_it() -> None:
    """Its process has been told to optimise, unlike that of a framework whose programs say so."""
    usable("onnxruntime")
    case = _case("(x: f32[2]) -> y: i32[2] { y = cast(x; to = i32) }", x=[NAN, 5])
    for targets, beside in (
        (["onnxruntime"], {"onnxruntime:plain"}),
        (["onnxruntime", "onnxruntime:plain"], set()),
    ):
        with Session(targets) as session:
            (outcome,) = session.compare([case])
            assert session._beside.keys() == beside
        assert {v.verdict for found in outcome.verdicts.values() for v in found} == {"agrees"}
