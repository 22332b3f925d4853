"""`irlang analyze` as a command: JSON, SARIF, `--fix`, and what is refused."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from safetensors.numpy import save_file

import irlang
from irlang.analysis.confirm import Frameworks
from irlang.analysis.guards import mend
from irlang.commands.fmt import format_text
from irlang.diagnostics import InvalidInput
from irlang.interp.range import analyse
from tests.analysed import (
    BOXES,
    DIFFERENCE,
    SMALL_EPSILON,
    judged,
    model,
    onnx_file,
    ready,
    run,
)


def test_json_has_what_programs_read(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "m.nnir"
    path.write_text(DIFFERENCE)
    out = tmp_path / "out"
    code, said, _ = run(str(path), "--format", "json", "--out", str(out), capsys=capsys)
    found = json.loads(said)
    assert code == 1
    (report,) = found["reports"]
    assert report["node"] == "y"
    assert report["operator"] == "divide"
    assert report["stage"] == "forward"
    assert report["status"] == "reachable"
    assert report["range"] == [-1, 1]
    assert report["file"] == str(path)
    assert report["line"] == 5
    assert report["guard"]["text"] == "divide(1, where(greater(abs(d), 1e-6), d, 1e-6))"
    inputs = {
        name: np.broadcast_to(np.array(one["values"], np.float32), one["shape"])
        for name, one in report["witness"]["inputs"].items()
    }
    difference = inputs["a"] - inputs["b"]
    assert (difference == 0).any()
    files = report["witness"]["files"]
    np.testing.assert_array_equal(np.load(out / "forward-y" / "a.npy"), inputs["a"])
    printed = subprocess.run(
        [sys.executable, files[0]], capture_output=True, text=True, check=True, timeout=120
    ).stdout
    assert "inf" in printed


def test_the_sizes_that_were_analysed_are_said(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "m.nnir"
    path.write_text(DIFFERENCE.replace("f32[3]", "f32[N]"))
    _, said, _ = run(str(path), "--bind", "N=4", capsys=capsys)
    assert "Analysed for N = 4." in said
    _, said, _ = run(str(path), "--format", "json", capsys=capsys)
    assert list(json.loads(said)["sizes"]) == ["N"]


def test_inputs_that_are_refused_are_left_out_which_is_said(tmp_path: Path, capsys: Any) -> None:
    """A position outside an axis gives no number at all: the ranges may hold some."""
    path = tmp_path / "m.nnir"
    body = "g = gather(x, i)\ny = log(g)"
    for last, refused in ((3, False), (5, True)):
        path.write_text(model(body, f"x: f32[4] in [1, 2], i: i32[3] in [0, {last}]", "y: f32[3]"))
        code, said, _ = run(str(path), capsys=capsys)
        assert code == 0
        told = "Left out are inputs that g refuses: a position is outside an axis of size 4"
        assert (told in said) == refused
        found = json.loads(run(str(path), "--format", "json", capsys=capsys)[1])
        assert [one["code"] for one in found["granted"]] == ["gather.in_range"] * refused


def test_what_only_numbers_of_few_digits_meet_is_found(tmp_path: Path, capsys: Any) -> None:
    """1 less some numbers is 0 where all of them are exact, and passes by 0 elsewhere."""
    path = tmp_path / "m.nnir"
    path.write_text(
        """op left[T: float](x: T[L, N]) -> y: T[L, N] {
  y[t, n] = (y[t - 1, n] ?? 1) - x[t, n]
}
model m(x: f32[40, 3] in [0, 0.1]) -> z: f32[40, 3] {
  z = reciprocal(left(x))
}
"""
    )
    code, said, _ = run(str(path), capsys=capsys)
    assert code == 1
    assert "error[analyze.reachable]" in said


def test_what_may_be_any_number_is_called_so(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "m.nnir"
    body = "a = exp(x)\nb = subtract(a, exp(z))\ny = log(b)"
    path.write_text(model(body, "x: f32[4] in [-99, 99], z: f32[4] in [-99, 99]", "y: f32[4]"))
    _, said, _ = run(str(path), "--time", "0.1", capsys=capsys)
    assert "what reaches `log` is any number of f32: the function is not defined below 0" in said


def test_what_a_definition_leaves_open_is_said(tmp_path: Path, capsys: Any) -> None:
    """A real number that is too large for an integer type becomes no NaN, but any integer."""
    path = tmp_path / "m.nnir"
    for last, left_open in ((1e9, False), (1e12, True)):
        text = model("y = cast(x; to = i32)", f"x: f32[4] in [0, {last:g}]", "y: i32[4]")
        path.write_text(text)
        code, said, _ = run(str(path), capsys=capsys)
        assert code == 0
        assert (
            "Some numbers in reach of y are too large for the integers there" in said
        ) == left_open
        found = json.loads(run(str(path), "--format", "json", capsys=capsys)[1])
        assert found["left_open"] == ["y"] * left_open


def test_numbers_below_the_smallest_normal_one_may_become_0(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "m.nnir"
    path.write_text(model("y = log(multiply(x, 1e-20))", "x: f32[4] in [1e-19, 1]", "y: f32[4]"))
    assert run(str(path), capsys=capsys)[0] == 0
    code, said, _ = run(str(path), "--flush", capsys=capsys)
    assert code == 1
    assert "`log`" in said
    assert irlang.analyze(path, flush=True).reports
    assert not irlang.analyze(path).reports
    assert run(str(path), "--flush", "--fix", capsys=capsys)[0] == 0


def _has_denormal_probabilities() -> bool:
    """Whether ONNX Runtime has numbers below the smallest normal one in its softmax, as it has by
    the kernels for AVX-512.
    """
    made = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 13]>
        m (float[1, 2] x) => (float[1, 2] y) { y = Softmax<axis = 1>(x) }"""
    )
    session = onnxruntime.InferenceSession(made.SerializeToString())
    (found,) = session.run(None, {"x": np.array([[50, -50]], np.float32)})
    return bool(found[0, 1] > 0)


def test_what_a_framework_makes_0_of_a_number_next_to_it_is_told(
    tmp_path: Path, capsys: Any
) -> None:
    """A probability of 4e-44, for which ONNX Runtime has 0, where it has; a number of 1e-39, which
    it keeps.
    """
    path = tmp_path / "m.nnir"
    path.write_text(
        model(
            "y = log(softmax(x; axis = 1))\nz = log(multiply(w, 1e-20))",
            "x: f32[2, 3] in [-50, 50], w: f32[4] in [1e-19, 1]", "y: f32[2, 3], z: f32[4]",
        )
    )  # fmt: skip
    code, said, _ = run(str(path), "--format", "json", "--targets", "onnxruntime", capsys=capsys)
    if _has_denormal_probabilities():
        assert (code, json.loads(said)["reports"]) == (0, [])
        return
    (report,) = json.loads(said)["reports"]
    assert (code, report["call"], report["status"]) == (1, "y", "reachable")
    assert report["witness"]["operands"] == [0.0]
    assert json.loads(said)["safe"] == 3
    assert run(str(path), "--fix", "--targets", "onnxruntime", capsys=capsys)[0] == 0
    assert "y = log_softmax(x; axis = 1)" in path.read_text()
    assert "z = log(multiply(w, 1e-20))" in path.read_text()


def test_what_a_library_loses_is_told(tmp_path: Path, capsys: Any) -> None:
    """The logistic function of -40 is 4e-18, for which ONNX Runtime has 0."""
    path = tmp_path / "m.nnir"
    body = "s = sigmoid(x)\ny = log(s)\nz = log(maximum(s, 1e-9))"
    path.write_text(model(body, "x: f32[4] in [-40, 5]", "y: f32[4], z: f32[4]"))
    _, said, _ = run(str(path), "--format", "json", "--targets", "onnxruntime", capsys=capsys)
    (report,) = json.loads(said)["reports"]
    assert (report["call"], report["status"]) == ("y", "reachable")
    assert report["witness"]["operands"] == [0.0]
    assert report["guard"]["text"] == "log_sigmoid(x)"
    path.write_text(model(body, "x: f64[4] in [-40, 5]", "y: f64[4], z: f64[4]"))
    assert run(str(path), "--targets", "onnxruntime", capsys=capsys)[0] == 0


def test_a_range_may_be_of_what_is_left_out(tmp_path: Path) -> None:
    """An input that nothing reads, or only what has no translation; others are told."""
    path = tmp_path / "m.onnx"
    made = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 13, "other" : 1]>
        m (float[3] x, float[3] unread, float[3] w) => (float[3] y, float[3] z)
        { y = Log(x)  z = other.Strange(w) }"""
    )
    onnx.save(made, path)
    given = {"x": (1.0, 2.0), "unread": (0.0, 1.0), "w": (0.0, 1.0)}
    assert irlang.analyze(path, given).reports == ()
    assert irlang.analyze(path, {**given, "v": (0.0, 1.0)}).subject.unmet == ("v",)
    with pytest.raises(InvalidInput) as caught:
        irlang.analyze(path, {"v": (0.0, 1.0)})
    (diagnostic,) = caught.value.diagnostics
    assert "`v`, which is no input or parameter" in diagnostic.message


def test_a_safe_model_is_told_so_and_leaves_with_0(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "m.nnir"
    path.write_text(BOXES)
    code, said, _ = run(str(path), capsys=capsys)
    assert code == 0
    assert "no NaN or infinity can arise" in said
    code, said, _ = run(str(path), "--format", "json", capsys=capsys)
    assert code == 0
    assert json.loads(said)["reports"] == []
    assert json.loads(said)["safe"] == 1
    (proved,) = json.loads(said)["proved"]
    assert (proved["node"], proved["function"]) == ("weight", "/")
    assert proved["range"] == pytest.approx([4, 16], rel=1e-6)
    assert proved["reasons"][0] == "the divisor is between 4 and 16"


def test_what_is_not_finite_to_begin_with_is_said(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "m.nnir"
    save_file({"w": np.array([1, np.nan], np.float32)}, tmp_path / "w.safetensors")
    body = 'param w: f32[2] = data("w.safetensors", "w")\ny = add(x, w)'
    path.write_text(model(body, "x: f32[2] in [0, 1]", "y: f32[2]"))
    code, said, _ = run(str(path), capsys=capsys)
    assert code == 0
    assert "no NaN or infinity can arise out of finite numbers" in said
    assert "NaN or infinity is in the value of w" in said
    assert json.loads(run(str(path), "--format", "json", capsys=capsys)[1])["nonfinite"] == ["w"]


def test_a_model_without_calls_has_a_gradient(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "m.nnir"
    path.write_text("model m(x: f32[3] in [0, 1]) -> x: f32[3] {\n}\n")
    code, said, _ = run(str(path), "--gradient", capsys=capsys)
    assert (code, said.startswith(f"{path}: no NaN or infinity can arise")) == (0, True)


_ROOT = "model m(x: f32[3] in [0, 1]) -> {0}: f32[3] {{\n  {0} = sqrt(x)\n{1}}}\n"


def test_a_text_with_a_loss_has_its_gradient_analysed(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "m.nnir"
    path.write_text(_ROOT.format("r", "  loss = reduce_sum(r)\n"))
    code, said, _ = run(str(path), capsys=capsys)
    assert (code, "the gradient of `sqrt`" in said) == (1, True)
    code, said, _ = run(str(path), "--no-gradient", capsys=capsys)
    assert (code, "Gradients were not analysed" in said) == (0, True)
    path.write_text(_ROOT.format("r", ""))
    assert run(str(path), capsys=capsys)[0] == 0
    assert run(str(path), "--gradient", capsys=capsys)[0] == 1


def test_what_another_system_calls_a_loss_states_nothing() -> None:
    made = ready(_ROOT.format("r", "  loss = reduce_sum(r)\n"))
    assert made.trains
    assert not replace(made, names={"loss": "the/loss:0"}).trains


def test_a_time_that_is_no_number_is_refused(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "m.nnir"
    path.write_text(BOXES)
    code, _, said = run(str(path), "--time", "nan", capsys=capsys)
    assert (code, "nan is no number" in said) == (2, True)


def test_fix_writes_what_was_proved(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "m.nnir"
    body = "# a remark\ny = log(softmax(x; axis = 1))"
    path.write_text(model(body, "x: f32[2, 3] in [-300, 300]"))
    code, said, _ = run(str(path), "--fix", capsys=capsys)
    assert code == 0
    assert "fixed line 5: log_softmax(x; axis = 1)" in said
    assert "# a remark" in path.read_text()
    assert "y = log_softmax(x; axis = 1)" in path.read_text()


def test_fix_keeps_the_layout_and_the_ends_of_lines(tmp_path: Path, capsys: Any) -> None:
    long = "y = log(reduce_sum(exp(x); axes = 1, keepdims = true))"
    text = model(long, "x: f32[2, 3] in [-300, 300]", "y: f32[2, 1]")
    path = tmp_path / "m.nnir"
    path.write_bytes(text.replace("\n", "\r\n").encode())
    assert run(str(path), "--fix", capsys=capsys)[0] == 0
    written = path.read_bytes()
    assert written.count(b"\r\n") == written.count(b"\n")
    now = written.decode().replace("\r\n", "\n")
    assert now != text
    assert format_text(now) == now


def test_sarif_carries_place_and_fix(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "m.nnir"
    path.write_text(DIFFERENCE)
    code, said, _ = run(str(path), "--format", "sarif", capsys=capsys)
    (result,) = json.loads(said)["runs"][0]["results"]
    assert code == 1
    assert result["ruleId"] == "analyze.reachable"
    assert result["level"] == "error"
    assert result["fixes"]
    assert result["locations"][0]["logicalLocations"] == [{"name": "y"}]
    assert "it may be 0\nwith a, b = " in result["message"]["text"]  # the reason and the input
    (rule,) = json.loads(said)["runs"][0]["tool"]["driver"]["rules"]
    assert rule["defaultConfiguration"] == {"level": "error"}
    assert "NaN or infinity" in rule["shortDescription"]["text"]


def test_sarif_of_two_statements_edits_one_file(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "m.nnir"
    body = "p = softmax(x; axis = 1)\ny = log(p)"
    path.write_text(model(body, "x: f32[2, 3] in [-300, 300]"))
    _, said, _ = run(str(path), "--format", "sarif", capsys=capsys)
    (result,) = json.loads(said)["runs"][0]["results"]
    (change,) = result["fixes"][0]["artifactChanges"]
    assert change["artifactLocation"]["uri"].endswith("m.nnir")
    assert len(change["replacements"]) == 2


def test_sarif_of_an_imported_model_names_its_node_and_no_line(tmp_path: Path, capsys: Any) -> None:
    onnx = pytest.importorskip("onnx")
    tensors = [
        onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2]) for n in ("x", "y")
    ]
    node = onnx.helper.make_node("Log", ["x"], ["y"], name="cost/Log")
    graph = onnx.helper.make_graph([node], "g", tensors[:1], tensors[1:])
    path = tmp_path / "m.onnx"
    opset = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=9), path)
    _, said, _ = run(str(path), "--format", "sarif", capsys=capsys)
    (result,) = json.loads(said)["runs"][0]["results"]
    (place,) = result["locations"]
    assert place["logicalLocations"] == [{"name": "cost/Log"}]
    assert "region" not in place["physicalLocation"]
    assert "fixes" not in result  # no text that could be edited
    _, told, _ = run(str(path), capsys=capsys)
    assert f"Lines are those of the text that `irlang import {path}` writes." in told
    assert "irlang analyze --fix on that text makes" in told


@pytest.mark.parametrize("body", ["y = log(x)", "y = identity(x)", "p = sqrt(x)\ny = log(p)"])
def test_sarif_has_what_its_schema_requires(body: str, tmp_path: Path, capsys: Any) -> None:
    """The required properties, the enumerations and the least numbers of SARIF 2.1.0 (OASIS)."""
    path = tmp_path / "m.nnir"
    path.write_text(model(body), encoding="utf-8")
    _, said, _ = run(str(path), "--format", "sarif", capsys=capsys)
    log = json.loads(said)
    assert log["version"] == "2.1.0"
    (entry,) = log["runs"]
    driver = entry["tool"]["driver"]
    assert driver["name"]
    assert entry["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
    rules = driver["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules)
    for rule in rules:
        assert rule["shortDescription"]["text"]
        assert rule["defaultConfiguration"]["level"] in ("none", "note", "warning", "error")
    for result in entry["results"]:
        assert result["message"]["text"]
        assert result["level"] in ("none", "note", "warning", "error")
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        for place in result["locations"]:
            _sound_region(place["physicalLocation"])
        for fix in result.get("fixes", ()):
            assert fix["artifactChanges"]
            for change in fix["artifactChanges"]:
                assert change["replacements"]
                for one in change["replacements"]:
                    _sound_region({**change, "region": one["deletedRegion"]})
                    assert isinstance(one["insertedContent"]["text"], str)


def _sound_region(place: Any) -> None:
    uri, region = place["artifactLocation"]["uri"], place["region"]
    assert " " not in uri
    assert region["startLine"] >= 1
    assert region["startColumn"] >= 1
    start = region["startLine"], region["startColumn"]
    assert (region.get("endLine", start[0]), region["endColumn"]) >= start


def test_a_number_that_its_type_does_not_have_is_named(frameworks: Frameworks) -> None:
    text = model(f"p = identity(x)\ny = {SMALL_EPSILON}")
    found = judged(text.replace("f32", "f16"), frameworks)
    assert "1e-08 is 0 in f16" in str(found)
    again = judged(text.replace("add(p, 1e-8)", "p"), frameworks)
    assert again.reports
    assert "is 0 in" not in str(again)


def test_what_has_no_bound_has_none_as_a_mean() -> None:
    """A thousandth of a number of any size may be of any size."""
    text = model("a = exp(x)\nb = multiply(a, 1e-3)\ny = square(b)", "x: f32[3] in [-10, 100]",
        "y: f32[3]")  # fmt: skip
    subject = ready(text)
    points = analyse(subject.graph, subject.catalog).points
    assert [(p.node, p.after) for p in points if p.status != "safe"] == [("a", ""), ("y", "b")]


def test_what_is_unbounded_because_of_another_call_follows_from_it(frameworks: Frameworks) -> None:
    """The sum of what may be of any size is no second defect."""
    text = model(
        "a = exp(x)\nb = multiply(a, 0.5)\ny = reduce_sum(b; axes = [1])",
        "x: f32[2, 3] in [-10, 100]", "y: f32[2]",
    )  # fmt: skip
    found = judged(text, frameworks)
    reports = {report.call: (report.status, report.because) for report in found.reports}
    assert reports == {"a": ("reachable", ""), "y": ("possible", "a")}
    assert str(found).count("analyze.") == 1
    assert "is changed: y. Run the analysis again then." in str(found)


def test_ways_out_are_not_tried_where_an_analysis_takes_long(
    frameworks: Frameworks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("irlang.analysis.verdict._MOST", -1.0)
    found = judged(DIFFERENCE, frameworks)
    assert [report.guard for report in found.reports] == [None]
    assert "No ways out were tried" in str(found)
    assert mend(found.subject)[1]


def test_the_same_seed_finds_the_same(frameworks: Frameworks) -> None:
    first, second = (judged(DIFFERENCE, frameworks, seed=5) for _ in range(2))
    (a,), (b,) = first.reports, second.reports
    assert a.witness is not None
    assert b.witness is not None
    for name, array in a.witness.values.items():
        np.testing.assert_array_equal(array, b.witness.values[name])


WRONG_RANGES = {
    "not json": ("{", "file.ranges"),
    "no names": ("[1, 2]", "file.ranges"),
    "no pair": ('{"a": 3}', "file.ranges"),
    "the wrong way round": ('{"a": [2, 1]}', "file.ranges"),
    "text": ('{"a": ["0", "1"]}', "file.ranges"),
    "not a number": ('{"a": [NaN, 1]}', "file.ranges"),
    "an integer beyond every float": (f'{{"a": [0, {"9" * 400}]}}', "file.ranges"),
    "a name that is there twice": ('{"a": [0, 1], "a": [2, 3]}', "file.ranges"),
    "beyond the type": ('{"a": [1e39, 1e40]}', "usage.range"),
    "a name that is not there": ('{"c": [0, 1]}', "usage.range"),
}


def test_ranges_of_what_is_not_there_are_told(tmp_path: Path, capsys: Any) -> None:
    path, ranges = tmp_path / "m.nnir", tmp_path / "ranges.json"
    path.write_text(DIFFERENCE)
    ranges.write_text('{"a": [2, 3], "c": [0, 1]}')
    left, said, _ = run(str(path), "--ranges", str(ranges), "--time", "0", capsys=capsys)
    assert left in (0, 1)
    assert "A range is given for what is no input or parameter: c." in said


@pytest.mark.parametrize("name", WRONG_RANGES)
def test_ranges_that_are_none_are_refused(name: str, tmp_path: Path, capsys: Any) -> None:
    text, code = WRONG_RANGES[name]
    path, ranges = tmp_path / "m.nnir", tmp_path / "ranges.json"
    path.write_text(DIFFERENCE)
    ranges.write_text(text)
    left, _, said = run(str(path), "--ranges", str(ranges), capsys=capsys)
    assert left == 2
    assert f"error[{code}]" in said


def test_fix_of_what_is_no_text_is_refused(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "m.onnx"
    shutil.copy(onnx_file(tmp_path), path)
    left, _, said = run(str(path), "--fix", capsys=capsys)
    assert left == 2
    assert "irlang import" in said
