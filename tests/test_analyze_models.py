"""`irlang analyze` of models of other systems, and what is told of them."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irlang
from irlang.analysis.confirm import Frameworks
from irlang.analysis.guards import mend
from irlang.analysis.report import conclusion, diagnostics, number
from irlang.analysis.report_json import tensor
from irlang.analysis.rules import numbers
from irlang.analysis.subject import subject
from irlang.analysis.trace import trace
from irlang.api import loads
from irlang.cli import status
from irlang.diagnostics import InvalidInput
from irlang.dtypes import DTYPES
from irlang.graph import Graph
from irlang.interp.range import analyse
from irlang.lower.pool import Program, Result
from tests.analysed import (
    BOXES,
    ROOT_AT_ZERO,
    by_call,
    judged,
    model,
    onnx_file,
    ready,
    run,
)


def test_an_onnx_file_keeps_its_names(tmp_path: Path, capsys: Any) -> None:
    path, ranges = onnx_file(tmp_path), tmp_path / "ranges.json"
    ranges.write_text(json.dumps({"in:0": [-300, 300]}))
    _, said, _ = run(str(path), "--ranges", str(ranges), "--format", "json", capsys=capsys)
    (report,) = json.loads(said)["reports"]
    assert report["node"] == "net/Log"
    assert report["status"] == "reachable"
    assert list(report["witness"]["inputs"]) == ["in:0"]
    assert report["file"] == str(path)
    assert report["range"][0] == 0


@pytest.mark.parametrize("name", ["in", "in:0"])
def test_the_first_result_of_a_node_may_be_called_by_its_place(name: str) -> None:
    text = "nnir 1\nmodel m(x: f32[2]) -> y: f32[2] {\n  y = exp(x)\n}\n"
    model = loads(text)
    for original in ("in", "in:0"):
        made = subject(
            model.graph, model.catalog, ranges={name: (0, 3)}, text=text, names={"x": original}
        )
        assert made.ranges == {"x": (0, 3)}


def test_the_text_of_an_import_keeps_them_too(tmp_path: Path, capsys: Any) -> None:
    path, ranges = onnx_file(tmp_path), tmp_path / "ranges.json"
    ranges.write_text(json.dumps({"in:0": [-300, 300]}))
    assert status(["import", str(path)]) == 0
    capsys.readouterr()
    text = str(path.with_suffix(".nnir"))
    _, said, _ = run(text, "--ranges", str(ranges), "--format", "json", capsys=capsys)
    (report,) = json.loads(said)["reports"]
    assert report["node"] == "net/Log"
    assert list(report["witness"]["inputs"]) == ["in:0"]
    assert report["file"] == text


def test_a_range_of_what_nothing_reads_is_no_mistake(tmp_path: Path, capsys: Any) -> None:
    """A file of ranges names all parameters of a model, those of unread branches too."""
    import onnx

    path, ranges = onnx_file(tmp_path), tmp_path / "ranges.json"
    model = onnx.load(path)
    unread = onnx.helper.make_tensor_value_info("unread", onnx.TensorProto.FLOAT, [2])
    model.graph.input.append(unread)
    onnx.save(model, path)
    ranges.write_text(json.dumps({"in:0": [0, 1], "unread": [0, 1]}))
    code, said, _ = run(str(path), "--ranges", str(ranges), capsys=capsys)
    assert (code, "no NaN or infinity can arise" in said) == (0, True)
    ranges.write_text(json.dumps({"in:0": [0, 1], "unsaid": [0, 1]}))
    code, said, _ = run(str(path), "--ranges", str(ranges), capsys=capsys)
    assert (code, "no input or parameter: unsaid." in said) == (0, True)
    ranges.write_text(json.dumps({"unsaid": [0, 1]}))
    assert run(str(path), "--ranges", str(ranges), capsys=capsys)[0] == 2


def test_a_call_whose_name_says_nothing_of_its_value_keeps_it_in_text(
    tmp_path: Path, capsys: Any
) -> None:
    """Nodes of ONNX are named apart from their results, by anything."""
    path, ranges = onnx_file(tmp_path, "/stage.1/Log 7", ("x", "y")), tmp_path / "ranges.json"
    ranges.write_text(json.dumps({"x": [-300, 300]}))
    assert status(["import", str(path)]) == 0
    text = path.with_suffix(".nnir")
    assert "y = log(p_0)  # of /stage.1/Log 7" in text.read_text("utf-8")
    capsys.readouterr()
    _, said, _ = run(str(text), "--ranges", str(ranges), "--format", "json", capsys=capsys)
    (report,) = json.loads(said)["reports"]
    assert report["node"] == "/stage.1/Log 7"


def test_the_interface_gives_objects_that_show_themselves(tmp_path: Path) -> None:
    path = onnx_file(tmp_path)
    found = irlang.analyze(path, {"in:0": (-300, 300)})
    (report,) = found.reports
    assert (report.node, report.status) == ("net/Log", "reachable")
    assert report.witness is not None
    assert "error[analyze.reachable]: net/Log: `log` gives -infinity" in str(found)
    assert irlang.loads(BOXES).analyze().reports == ()
    with pytest.raises(InvalidInput, match="which is no input or parameter"):
        irlang.analyze(path, {"nobody": (0, 1)})


def test_a_tensor_of_many_numbers_is_written_as_bytes() -> None:
    array = np.random.default_rng(0).normal(size=(200, 100)).astype(np.float32)
    told = tensor(array)
    assert told["values"] is None
    back = np.frombuffer(base64.b64decode(told["base64"]), "<f4").reshape(told["shape"])
    np.testing.assert_array_equal(back, array)
    columns = np.broadcast_to(array[:1], array.shape)
    assert np.shape(tensor(columns)["values"]) == (1, 100)


def test_a_range_that_holds_no_number_of_its_type_is_refused() -> None:
    text = model("y = gather(x, n; axis = 0)", "x: f32[3], n: i32[3] in [0, 2]", "y: f32[3]")
    with pytest.raises(InvalidInput, match="holds no i32"):
        ready(text, {"n": (0.2, 0.8)})


def test_numbers_of_guards_follow_from_the_type() -> None:
    for name in ("f16", "bf16", "f32", "f64"):
        found = numbers(DTYPES[name])
        one = DTYPES[name].numpy.type(found["one"])
        assert float(one) < 1
        assert math.exp(found["large"]) < DTYPES[name].largest
        assert 1 + found["small"] != 1


OVERLAP = """nnir 1

model overlap(p: f32[2, 16] in [0, 1], t: f32[2, 16] in [0, 1]) -> loss: f32[] {
  both = reduce_sum(multiply(p, t); axes = 1)
  either = subtract(add(reduce_sum(p; axes = 1), reduce_sum(t; axes = 1)), both)
  share = divide(both, add(either, 0.02))
  l = log(share)
  loss = negate(reduce_mean(l))
}
"""


def test_what_goes_wrong_on_the_way_back_is_mended_where_it_begins(
    frameworks: Frameworks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers of any size that flow back from a logarithm of 0 are no reason to bound the rest."""
    for name in ("_FEWEST_OF_GRADIENTS", "_MOST"):  # however slow the machine is
        monkeypatch.setattr(f"irlang.analysis.verdict.{name}", 60.0)
    found = by_call(judged(OVERLAP, frameworks, gradient=True))
    assert {"l", "d_l", "d_share"} <= found.keys()
    assert {r.guard.text for r in found.values() if r.guard} == {"log(maximum(share, 1e-6))"}
    made, used = mend(ready(OVERLAP), gradient=True)
    assert [guard.text for guard in used] == ["log(maximum(share, 1e-6))"]
    after = analyse(made.graph, made.catalog, gradient=True)
    assert all(point.status == "safe" for point in after.points)


def test_what_goes_wrong_in_a_gradient_is_told_of_the_gradient(frameworks: Frameworks) -> None:
    """A root has no divisor; its slope has one. `d_x` is no name of the text."""
    found = judged(ROOT_AT_ZERO, frameworks, gradient=True)
    told = str(found)
    assert "in the gradient, the divisor is between 0 and 1: it may be 0" in told
    assert re.search(r"gives infinity at \[\d, \d\] of the gradient by x", told)


def test_a_way_out_is_said_once_of_a_call_and_its_gradient(frameworks: Frameworks) -> None:
    found = judged(
        model("y = log(x)", "x: f32[4] in [0, 1]", "y: f32[4]"), frameworks, gradient=True
    )
    call, back = diagnostics(found)
    assert found.reports[0].guard == found.reports[1].guard
    assert call.help.startswith("write log(maximum(x, 1e-6))")
    assert back.help == "the change above settles this, too"
    assert back.edits == call.edits
    # programs read every one by itself
    call, back = diagnostics(found, all_of_them=True)
    assert back.help == call.help


@pytest.mark.parametrize(
    ("body", "gradient", "told"),
    [
        ("y = divide(x, subtract(x, x))", False, "at y[0], which is divide(0, 0)"),
        ("y = log(maximum(x, 0))", False, "which is log(0)"),
        ("y = sqrt(abs(x))", True, "where sqrt(0) is differentiated"),
        ("y = divide(1, reduce_sum(x; axes = [0], keepdims = true))", False, "divide(1, 0)"),
    ],
)
def test_what_the_call_is_given_there_is_told(
    body: str, gradient: bool, told: str, frameworks: Frameworks
) -> None:
    shape = "1" if "reduce" in body else "4"
    found = judged(
        model(body, "x: f32[4] in [-1, 1]", f"y: f32[{shape}]"), frameworks, gradient=gradient
    )
    assert told in str(found)


def test_what_overflows_inside_a_call_has_a_witness(frameworks: Frameworks) -> None:
    """The loss is a finite number by its definition, which no framework computes in f32."""
    text = model(
        "y = dice(p, t)", "p: f32[4] in [0, 1e20], t: f32[4] in [0, 1e20]", "y: f32[]"
    )  # fmt: skip
    report = by_call(judged(text, frameworks))["y"]
    assert report.status == "reachable"
    assert report.witness is not None
    assert report.witness.shown is not None
    assert np.isinf(report.witness.shown.value)
    assert report.guard is not None


def test_of_a_reduction_no_single_element_is_told(frameworks: Frameworks) -> None:
    text = model("y = reduce_sum(square(x))", "x: f16[4] in [-200, 200]", "y: f16[]")
    report = judged(text, frameworks).reports[-1]
    assert report.witness
    assert report.witness.shown
    assert report.witness.shown.fed is None


def test_an_imported_model_is_told_how_ranges_are_given(frameworks: Frameworks) -> None:
    found = judged(model("y = log(x)", "x: f32[4]", "y: f32[4]"), frameworks)
    assert "Write `in [low, high]` behind the type" in "\n".join(conclusion(found))
    assert '--ranges FILE.json with {"x": [-1, 1]}' in "\n".join(conclusion(found, imported=True))


@pytest.mark.parametrize(
    ("body", "inputs", "gradient", "written"),
    [
        ("y = power(x, -2)", "x: f32[4] in [-3, 3]", False, "where(greater(abs(x), 1e-6), x"),
        ("y = power(x, -0.5)", "x: f32[4] in [0, 3]", False, "power(maximum(x, 1e-6), -0.5)"),
        ("y = log(x)", "x: f16[4] in [0, 1]", False, "log(maximum(x, 0.0001))"),
        ("y = log(x)", "x: bf16[4] in [0, 1]", False, "log(maximum(x, 1e-6))"),
        ("y = divide(100, x)", "x: f16[4] in [0, 1]", False, "maximum(x, 0.01)"),
        ("y = log1p(negate(x))", "x: f16[4] in [0, 1]", False, "-0.999)"),
        ("y = log(add(softmax(x), 1e-9))", "x: f16[4] in [-30, 30]", False, "log_softmax(x)"),
        ("y = log(add(sigmoid(x), 1e-9))", "x: f16[4] in [-30, 30]", False, "log_sigmoid(x)"),
        ("y = atan2(x, x)", "x: f32[4] in [-1, 1]", True, "atan2(x, where(greater(abs(x), 1e-6)"),
    ],
)
def test_a_guard_changes_no_more_than_it_has_to(
    body: str, inputs: str, gradient: bool, written: str
) -> None:
    result = inputs.partition(" in ")[0].replace("x:", "y:")
    new, used = mend(ready(model(body, inputs, result)), gradient=gradient)
    assert len(used) == 1
    assert written in new.text
    found = analyse(new.graph, new.catalog, gradient=gradient)
    assert all(point.status == "safe" for point in found.points)


def test_both_logarithms_of_a_probability_are_mended_by_its_score(frameworks: Frameworks) -> None:
    """The name of the first call in a statement becomes that of the second when that is edited."""
    text = model("p = sigmoid(x)\ny = add(log(p), log(subtract(1, p)))", "x: f32[3] in [-200, 200]",
        "y: f32[3]")  # fmt: skip
    found = judged(text, frameworks)
    guards = [report.guard.text for report in found.reports if report.guard]
    assert guards == ["log_sigmoid(x)", "log_sigmoid(negate(x))"]
    assert [guard.text for guard in mend(found.subject)[1]] == guards


def test_what_the_first_framework_keeps_more_digits_of_another_shows() -> None:
    """On a processor, ONNX Runtime computes all of this in f32, where 1.0001 - p is not 0."""
    body = "p = sigmoid(x)\ny = log(subtract(1.0001, p))"
    text = model(f"{body}\nz = multiply(y, t)", "x: f16[6] in [-9, 9], t: f16[6] in [0, 1]",
        "y: f16[6], z: f16[6]")  # fmt: skip
    with Frameworks(("onnxruntime", "torch")) as made:
        [report] = judged(text, made).reports  # the call does not hang on `t`, the program does
    assert report.status == "reachable"
    assert report.witness
    assert report.witness.shown
    assert report.witness.shown.target == "torch"


def test_what_no_framework_shows_is_counted_as_what_the_definitions_do() -> None:
    """An input that is shown is not said to be none."""
    text = model("y = log(x)\nz = exp(multiply(x, 1e-9))", result="y: f32[2, 3], z: f32[2, 3]")
    [line, *_] = conclusion(judged(text, Frameworks(())))
    assert "arises at 1 place by the definitions, and in no framework that was asked" in line
    assert "neither an input" not in line


def test_what_many_calls_are_given_is_computed_once(
    frameworks: Frameworks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One try that breaks many calls is one computation of the model, unless something is open."""
    lines = "\n".join(f"y{i} = log(multiply(x, {i + 1}.5))" for i in range(12))
    results = ", ".join(f"y{i}: f32[3]" for i in range(12))
    computed: list[int] = []

    def counted(graph: Graph, *rest: Any) -> dict[str, np.ndarray[Any, Any]]:
        computed.append(len(graph.nodes))
        return trace(graph, *rest)

    monkeypatch.setattr("irlang.analysis.search.trace", counted)
    found = judged(model(lines, "x: f32[3] in [0, 1]", results), frameworks).reports
    assert [report.status for report in found] == ["reachable"] * 12
    assert sum(size > 2 for size in computed) <= 8  # of all calls at once, not of one alone


def test_a_framework_runs_what_breaks_many_calls_once(
    frameworks: Frameworks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs the whole model for each input, also where a chain of calls fails at one."""
    lines = "\n".join(
        f"y{i} = log({f'z{i - 1}' if i else 'x'})\nz{i} = exp(y{i})" for i in range(20)
    )
    results = ", ".join(f"y{i}: f32[3]" for i in range(20))
    ran: list[int] = []
    run = Frameworks.run

    def counted(self: Frameworks, name: str, programs: Sequence[Program]) -> list[Result]:
        ran.append(len(programs))
        return run(self, name, programs)

    monkeypatch.setattr(Frameworks, "run", counted)
    found = judged(model(lines, "x: f32[3] in [0, 1]", results), frameworks).reports
    assert [report.status for report in found] == ["reachable"] * 20
    assert sum(ran) <= 20


@pytest.mark.parametrize(
    ("dtype", "body", "told"),
    [
        ("f16", "y = log(add(x, 1e-9))", "1e-09 is 0 in f16"),
        ("f16", "y = layer_norm(x; axes = [1], eps = 1e-12)", "1e-12 is 0 in f16"),
        (
            "f16",
            "p = clip(x; min = 0, max = 0.9999)\ny = log(subtract(1, p))",
            "0.9999 is 1 in f16",
        ),
        ("bf16", "y = log(subtract(1.001, x))", "1.001 is 1 in bf16"),
        ("f32", "y = log(subtract(1.001, multiply(2, x)))", ""),
        ("f16", "y = log(add(subtract(x, 0.5), 1e-6))", ""),
    ],
)
def test_what_becomes_of_a_number_in_its_type_is_told(
    dtype: str, body: str, told: str, frameworks: Frameworks
) -> None:
    text = model(body, f"x: {dtype}[2, 3] in [0, 1]", f"y: {dtype}[2, 3]")
    found = judged(text, frameworks, seconds=0.2)
    assert found.reports
    assert told in str(found)
    assert (" is 0 in " in str(found) or " is 1 in " in str(found)) == bool(told)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (
            "d = add(subtract(1e-8, reduce_min(x)), reduce_max(x))\ny = divide(x, d)",
            "1e-08 is lost beside 20: there the numbers of f32 are 1.9e-06 apart",
        ),
        ("y = divide(x, sqrt(add(subtract(x, 20), 20)))", ""),
        ("y = divide(x, add(relu(x), 0))", ""),
    ],
)
def test_a_small_number_that_is_lost_where_it_goes_wrong_is_told(
    body: str, told: str, frameworks: Frameworks
) -> None:
    found = judged(model(body, "x: f32[3] in [20, 30]", "y: f32[3]"), frameworks, seconds=0.5)
    assert told in str(found)
    assert ("is lost beside" in str(found)) == bool(told)


def test_a_divisor_that_rounding_alone_makes_negative_starts_at_a_small_number(
    frameworks: Frameworks,
) -> None:
    body = """
        q = reduce_mean(sigmoid(x); axes = [0])
        y = log(divide(0.95, subtract(1, q)))
    """
    found = judged(model(body, "x: f32[9, 4] in [-90, 90]", "y: f32[4]"), frameworks)
    (report,) = (one for one in found.reports if not one.because)
    assert report.status == "reachable"
    assert report.guard
    assert report.guard.text == "divide(0.95, maximum(subtract(1, q), 1e-6))"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (-1.0, "-1"),
        (float(np.nextafter(np.float32(-1), np.float32(-2))), "-1.00000012"),
        (float(np.nextafter(np.float32(1), np.float32(0))), "0.99999994"),
        (0.0, "0"),
        (-5.960464477539063e-08, "-5.96046e-08"),
        (float(np.finfo(np.float32).max), "3.40282e+38"),
        (200.0000152587890625, "200.000015"),
        (1 / 3, "0.333333"),
    ],
)
def test_what_lies_beside_a_whole_number_is_not_told_as_that(value: float, told: str) -> None:
    """`acos` is defined for -1, and not for what is told as that when it is cut."""
    assert number(value) == told
