"""`irlang analyze`: verdicts on models whose truth is known, witnesses and guards that hold."""

from __future__ import annotations

import base64
import itertools
import json
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import irlang
from irlang.analysis.confirm import Frameworks
from irlang.analysis.guards import mend
from irlang.analysis.patterns import tries
from irlang.analysis.probe import Place, probes
from irlang.analysis.pursue import Pursuit
from irlang.analysis.report import conclusion, diagnostics
from irlang.analysis.report_json import tensor
from irlang.analysis.rules import ANY, numbers, rules
from irlang.analysis.subject import Subject, subject
from irlang.analysis.trace import trace
from irlang.analysis.verdict import Report, Verdicts, verdicts
from irlang.api import loads
from irlang.cli import status
from irlang.commands.fmt import format_text
from irlang.diagnostics import InvalidInput
from irlang.dtypes import DTYPES
from irlang.graph import Graph
from irlang.interp.range import Range, analyse
from irlang.lower.pool import Program, Result

ROOT = Path(__file__).parents[1]
Ranges = Mapping[str, tuple[float, float]]


@pytest.fixture(scope="module")
def frameworks() -> Iterator[Frameworks]:
    with Frameworks(("onnxruntime",)) as made:
        yield made


def ready(text: str, ranges: Ranges | None = None) -> Subject:
    model = loads(text, file="model.nnir")
    return subject(model.graph, model.catalog, ranges=ranges, file="model.nnir", text=text)


def judged(text: str, made: Frameworks, ranges: Ranges | None = None, **options: Any) -> Verdicts:
    return verdicts(ready(text, ranges), made, **options)


def by_call(found: Verdicts) -> dict[str, Report]:
    return {report.point.node: report for report in found.reports}


def model(body: str, inputs: str = "x: f32[2, 3] in [0, 1]", result: str = "y: f32[2, 3]") -> str:
    lines = "\n".join(f"  {line.strip()}" for line in body.strip().splitlines())
    return f"nnir 1\n\nmodel m({inputs}) -> {result} {{\n{lines}\n}}\n"


# Hostile models: what is written, and the calls that go wrong. A gradient's are called `d_…`.
DIFFERENCE = model(
    "d = subtract(a, b)\ny = divide(1, d)", "a: f32[3] in [0, 1], b: f32[3] in [0, 1]", "y: f32[3]"
)
SLICED = model(
    """low = negate(x)
    both = concat(x, low; axis = 1)
    half = slice(both; axes = [1], begin = [3], end = [6])
    y = log(add(half, 0.5))"""
)
ROOT_AT_ZERO = model("y = sqrt(x)\nloss = reduce_sum(y)")
SMALL_EPSILON = "log(add(p, 1e-8))"
HOSTILE = {
    "a divisor that is a difference": (DIFFERENCE, {"y"}),
    "the same, apart": (DIFFERENCE.replace("a: f32[3] in [0, 1]", "a: f32[3] in [2, 3]"), set()),
    "a logarithm behind a slice of a join": (SLICED, {"y"}),
    "the other half": (SLICED.replace("[3], end = [6]", "[0], end = [3]"), set()),
    "an epsilon that f32 has": (model(f"p = identity(x)\ny = {SMALL_EPSILON}"), set()),
    "an epsilon that f16 rounds to 0": (
        model(f"p = identity(x)\ny = {SMALL_EPSILON}").replace("f32", "f16"), {"y"},
    ),
    "a softmax that underflows": (
        model("y = log(softmax(multiply(x, 200); axis = 1))"), {"y"},
    ),
    "one that cannot": (model("y = log(softmax(multiply(x, 20); axis = 1))"), set()),
    "the size of what changes its sign": (
        model("d = add(multiply(x, w), 0.3)\ny = log(abs(d))",
              "x: f32[4] in [-3, 3], w: f32[4] in [-2, 2]", "y: f32[4]"), {"y"},
    ),
    "a mask that may leave nothing": (
        model("y = softmax(where(greater(x, 0.5), x, -inf); axis = 1)"), {"y"},
    ),
    "one that is finite": (
        model("y = softmax(where(greater(x, 0.5), x, -1e9); axis = 1)"), set(),
    ),
    "a mask that f16 makes infinite": (
        model("y = multiply(x, -1e5)").replace("f32", "f16"), {"y"},
    ),
    "a reciprocal of what only is not 0": (
        model("scale = divide(x, 127)\ny = reciprocal(where(equal(scale, 0), 1, scale))"), {"y"},
    ),
    "a power of a negative number": (
        model("y = power(x, 0.5)", "x: f32[2, 3] in [-1, 1]"), {"y"},
    ),
    "an exponential that overflows": (
        model("y = exp(x)", "x: f32[2, 3] in [0, 100]"), {"y"},
    ),
    "a product that overflows": (
        model("y = multiply(x, x)", "x: f32[2, 3] in [0, 1e20]"), {"y"},
    ),
    "a sum that overflows": (
        model("y = reduce_sum(x; axes = 0)", "x: f32[9] in [0, 3e38]", "y: f32[]"), {"y"},
    ),
    "a user's own operator": (
        "nnir 1\n\nop gap[T: float](a: T[N], b: T[N]) -> y: T[N] {\n"
        "  s[n < N] = a[n] * a[n] - b[n] * b[n]\n  y[n] = 1 / s[n]\n}\n"
        + DIFFERENCE.removeprefix("nnir 1\n").replace("divide(1, d)", "gap(a, b)"), {"y"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_what_goes_wrong_is_reached_and_nothing_else_is_reported(
    name: str, frameworks: Frameworks
) -> None:
    text, wrong = HOSTILE[name]
    found = judged(text, frameworks)
    assert {report.call: report.status for report in found.reports} == dict.fromkeys(
        wrong, "reachable"
    )
    for report in found.reports:
        assert_holds(report, found.subject)


def assert_holds(report: Report, made: Subject) -> None:
    """The witness lies in its ranges, and the definitions alone give what is not finite there."""
    assert report.witness is not None
    assert report.witness.shown is not None
    first = next(tries(made.graph, 0))
    values = {**first, **report.witness.values}
    for name, array in report.witness.values.items():
        low, high = made.ranges[name]
        assert low <= float(array.min())
        assert float(array.max()) <= high
        assert array.dtype == DTYPES[made.graph.inputs[name].info.dtype].numpy
    found = trace(made.graph, {**values, **made.fixed}, made.catalog)
    node = next(one for one in made.graph.nodes if one.name == report.point.node)
    finite = all(np.isfinite(found[name]).all() for name in node.operands())
    wrong = (lambda array: ~np.isfinite(array)) if finite else np.isnan
    assert any(wrong(found[name]).any() for name in node.outputs)
    # an operand may be infinite where the model says so: a mask, or a number too large for its type
    assert finite or not any(np.isnan(found[name]).any() for name in node.operands())


def test_a_framework_that_rounds_past_the_place_is_met_beside_it(frameworks: Frameworks) -> None:
    """The oracle's zero of a sum is not the framework's, which adds in single precision."""
    text = model(
        "d = add(tanh(matmul(x, w)), 0.3)\ny = log(abs(d))",
        "x: f32[4, 6] in [-3, 3], w: f32[6, 1] in [-2, 2]", "y: f32[4, 1]",
    )  # fmt: skip
    (report,) = judged(text, frameworks, seconds=5).reports
    assert report.status == "reachable"


def test_inputs_that_are_equal_are_tried() -> None:
    made = ready(
        "nnir 1\nmodel m(a: f32[2, 3], b: f32[2, 3]) -> y: f32[2, 3] {\n  y = add(a, b)\n}\n"
    )
    first = list(itertools.islice(tries(made.graph, 0), 100))
    alike = [one for one in first if np.ptp(one["a"]) and np.array_equal(one["a"], one["b"])]
    assert len(alike) >= 3
    assert any(one is first[10] for one in alike)  # a pursuit begins with it, too


def test_what_a_framework_alone_brings_out_of_a_domain_is_met(frameworks: Frameworks) -> None:
    """What two laws have in common is 1 where they are one: a little more in some order."""
    found = judged(
        """nnir 1
        model m(x: f32[4, 5] in [-50, 50], z: f32[4, 5] in [-50, 50]) -> y: f32[4] {
          both = reduce_sum(sqrt(multiply(softmax(x), softmax(z))); axes = 1)
          y = sqrt(subtract(1.0, both))
        }""",
        frameworks,
    )
    assert by_call(found)["y"].status == "reachable"


def test_what_rounding_alone_brings_out_of_a_domain_is_met(frameworks: Frameworks) -> None:
    """2 (w j - k i) of a quaternion of length 1 is 1 at most, and a little more in f32."""
    text = model(
        """n = sqrt(add(reduce_sum(square(q); axes = [1], keepdims = true), 1e-12))
        w, i, j, k = split(divide(q, n); axis = 1, parts = 4)
        y = asin(multiply(2, subtract(multiply(w, j), multiply(k, i))))""",
        "q: f32[3, 4] in [-1, 1]", "y: f32[3, 1]",
    )  # fmt: skip
    found = judged(text, frameworks)
    assert [(r.call, r.status) for r in found.reports] == [("y", "reachable")]
    assert_holds(found.reports[0], found.subject)


def test_nothing_flows_back_to_a_constant(frameworks: Frameworks) -> None:
    """As importers write x ** 2: what its exponent should be is not asked without a range."""
    text = """model m(x: f32[3] in [-1, 1]) -> y: f32[3] {
      param two: f32[]%s = 2.0
      y = power(x, two)
    }"""
    assert judged(text % "", frameworks, gradient=True).reports == ()
    found = judged(text % " in [1, 3]", frameworks, gradient=True)
    assert {(r.call, r.point.stage) for r in found.reports} >= {("y", "gradient")}


def test_a_root_is_safe_and_its_gradient_is_not(frameworks: Frameworks) -> None:
    assert judged(ROOT_AT_ZERO, frameworks).reports == ()
    (report,) = judged(ROOT_AT_ZERO, frameworks, gradient=True).reports
    assert (report.call, report.point.stage, report.status) == ("y", "gradient", "reachable")
    assert report.witness is not None
    assert any((array == 0).any() for array in report.witness.values.values())
    assert report.guard is not None
    fixed, used = mend(ready(ROOT_AT_ZERO), gradient=True)
    assert [guard.text for guard in used] == [report.guard.text]
    assert verdicts(fixed, frameworks, gradient=True).reports == ()


# ---- DEBAR's example ----------------------------------------------------------------------------

BOXES = (ROOT / "examples" / "boxes.nnir").read_text("utf-8")


def test_boxes_have_an_area_and_no_alarm(frameworks: Frameworks) -> None:
    found = judged(BOXES, frameworks)
    assert found.reports == ()
    assert [point.function for point in found.safe] == ["/"]
    area = analyse(found.subject.graph, found.subject.catalog).values["area"]
    assert area.low == pytest.approx(4, rel=1e-5)
    assert area.high == pytest.approx(16, rel=1e-5)


def test_one_interval_a_tensor_is_not_enough_for_boxes(frameworks: Frameworks) -> None:
    (report,) = judged(BOXES, frameworks, domain="tensor", seconds=1).reports
    assert (report.call, report.status) == ("weight", "possible")


def test_boxes_whose_offsets_reach_zero_have_a_witness(frameworks: Frameworks) -> None:
    found = judged(BOXES, frameworks, {"offset": (0, 2)})
    (report,) = found.reports
    assert (report.call, report.status) == ("weight", "reachable")
    assert_holds(report, found.subject)


# ---- guards -------------------------------------------------------------------------------------

GUARDED = {
    "l = log(softmax(x; axis = 1))": "log_softmax(x; axis = 1)",
    "p = softmax(x; axis = 1)\nl = log(p)": "log_softmax(x; axis = 1)",
    "e = exp(x)\nl = divide(e, reduce_sum(e; axes = [1], keepdims = true))": "softmax(x; axis = 1)",
    "p = softmax(add(x, x); axis = 1)\nl = log(p)": "log_softmax(add(x, x); axis = 1)",
    "l = log(x)": "log(maximum(x, 1e-6))",
    "l = sqrt(x)": "sqrt(maximum(x, 1e-6))",
    "l = divide(1, square(x))": "divide(1, maximum(square(x), 1e-6))",
    "l = divide(x, x)": "divide(x, where(greater(abs(x), 1e-6), x, 1e-6))",
    "l = reciprocal(x)": "reciprocal(where(greater(abs(x), 1e-6), x, 1e-6))",
    "l = exp(x)": "exp(minimum(x, 79))",
    "l = log(subtract(1, sigmoid(x)))": "log_sigmoid(negate(x))",
    "l = log1p(exp(x))": "softplus(x)",
    "l = log(add(1, exp(x)))": "softplus(x)",
    "l = log(cosh(x))": "subtract(add(abs(x), softplus(multiply(-2, abs(x)))), 0.6931472)",
    "l = divide(1, add(1, exp(negate(x))))": "sigmoid(x)",
    "l = power(x, 0.5)": "power(maximum(x, 1e-6), 0.5)",
    "l = power(2, x)": "power(2, clip(x; min = -100, max = 100))",
    "h = multiply(x, 1e20)\nl = square(h)": "square(clip(h; min = -1e19, max = 1e19))",
    "h = multiply(abs(x), 1e36)\nl = reduce_sum(h; axes = [0], keepdims = true)":
        "reduce_sum(minimum(h, 1e38); axes = [0], keepdims = true)",
    "l = l2_normalize(x; axes = [1], eps = 0)": "l2_normalize(x; axes = [1], eps = 1e-6)",
    "l = erfinv(multiply(x, 0.004))":
        "erfinv(clip(multiply(x, 0.004); min = -0.999999, max = 0.999999))",
}  # fmt: skip
# Ways out of gradients that are infinite.
SLOPES = {
    "l = reduce_l2(x; axes = [1])":
        "sqrt(maximum(reduce_sum(square(x); axes = [1], keepdims = false), 1e-6))",
    "l = sqrt(reduce_sum(square(x); axes = [1]))":
        "sqrt(add(reduce_sum(square(x); axes = [1]), 1e-6))",
    "l = reduce_std(x; axes = [1])":
        "sqrt(maximum(reduce_variance(x; axes = [1], keepdims = false, correction = 0), 1e-6))",
    "l = acos(multiply(x, 0.1))": "acos(clip(multiply(x, 0.1); min = -0.999999, max = 0.999999))",
}  # fmt: skip


def test_a_guard_inside_another_is_written_in_its_turn(frameworks: Frameworks) -> None:
    text = model("y = negate(log(negate(log(x))))")
    assert {r.guard.text for r in judged(text, frameworks).reports if r.guard} == {
        "log(maximum(x, 1e-6))", "log(maximum(negate(log(x)), 1e-6))",
    }  # fmt: skip
    fixed, used = mend(ready(text))
    assert len(used) == 2
    assert "log(maximum(negate(log(maximum(x, 1e-6))), 1e-6))" in fixed.text
    assert judged(fixed.text, frameworks).reports == ()


@pytest.mark.parametrize("body", GUARDED)
def test_the_guard_is_the_plainest_that_is_proved(body: str, frameworks: Frameworks) -> None:
    text = model(f"{body}\ny = add(l, x)", "x: f32[2, 3] in [-300, 300]")
    found = judged(text, frameworks)
    assert {report.guard.text for report in found.reports if report.guard} == {GUARDED[body]}
    fixed, used = mend(found.subject)
    assert [guard.text for guard in used] == [GUARDED[body]]
    assert GUARDED[body] in fixed.text
    assert verdicts(fixed, frameworks).reports == ()


@pytest.mark.parametrize("body", SLOPES)
def test_a_slope_that_is_infinite_has_a_guard(body: str, frameworks: Frameworks) -> None:
    text = model(f"{body}\ny = add(x, 1)\nloss = reduce_sum(l)", "x: f32[2, 3] in [-10, 10]")
    found = judged(text, frameworks, gradient=True)
    assert {report.status for report in found.reports} >= {"reachable"}
    assert {report.guard and report.guard.text for report in found.reports} == {SLOPES[body]}
    fixed, _ = mend(found.subject, gradient=True)
    assert verdicts(fixed, frameworks, gradient=True).reports == ()


@pytest.mark.parametrize("call", ["divide(x, sqrt(add(v, %s)))", "multiply(x, rsqrt(add(v, %s)))"])
def test_a_small_number_that_its_type_loses_is_made_larger(
    call: str, frameworks: Frameworks
) -> None:
    """Not another beside it: 1e-8 is 0 in f16."""
    text = model(
        f"v = reduce_mean(square(x); axes = [1], keepdims = true)\ny = {call % '1e-8'}",
        "x: f16[2, 8] in [-3, 3]", "y: f16[2, 8]",
    )  # fmt: skip
    fixed, _ = mend(ready(text))
    assert "1e-8" not in fixed.text
    assert judged(fixed.text, frameworks).reports == ()


def test_the_bound_of_a_guard_is_the_largest_that_is_proved() -> None:
    """In f16 a sum of 64 products of numbers up to 20 stays below 65504; up to 50 it does not."""
    text = model("y = dense(x, w)", "x: f16[2, 64] in [-100, 100], w: f16[64, 3] in [-100, 100]",
                 "y: f16[2, 3]")  # fmt: skip
    fixed, used = mend(ready(text))
    (guard,) = used
    assert guard.text == "dense(clip(x; min = -20, max = 20), clip(w; min = -20, max = 20))"
    wider = ready(fixed.text.replace("20", "50"))
    assert any(p.status != "safe" for p in analyse(wider.graph, wider.catalog).points)


@pytest.mark.parametrize(("dtype", "far"), [("f32", "-1e16"), ("f16", "-10000")])
def test_a_row_that_is_masked_as_a_whole(dtype: str, far: str, frameworks: Frameworks) -> None:
    text = model("y = softmax(where(m, s, -inf); axis = 1)",
                 f"s: {dtype}[4, 6] in [-50, 50], m: bool[4, 6]", f"y: {dtype}[4, 6]")  # fmt: skip
    (report,) = judged(text, frameworks).reports
    assert report.guard is not None
    assert report.guard.text == f"softmax(maximum(where(m, s, -inf), {far}); axis = 1)"
    assert "\n" not in report.guard.why
    fixed, _ = mend(ready(text))
    assert verdicts(fixed, frameworks).reports == ()


def test_what_a_mask_becomes_is_told(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "m.nnir"
    path.write_text(
        "nnir 1\nmodel m(s: f32[4, 6] in [-50, 50], m: bool[4, 6]) -> y: f32[4, 6] {\n"
        "  param none: f32[] = -inf\n  y = softmax(where(m, s, none); axis = 1)\n}\n"
    )
    code, said, _ = run(str(path), capsys=capsys)
    assert code == 1
    assert "-infinity is in the value of none, as in a mask" in said
    assert "is not reported" not in said


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.why)
def test_a_guard_changes_nothing_where_nothing_is_wrong(rule: Any) -> None:
    """Before and after agree on harmless numbers, to what the guard's own small number does."""
    from irlang.parser.printer import print_expr

    small = {name: repr(value) for name, value in numbers(DTYPES["f32"]).items()}
    settings = {"axis": "1", "axes": "[1]", "keepdims": "false", "correction": "0", **small}
    settings |= {"most": "10", "sign_of": "divisor"}
    lets = "\n".join(f"let {name} = {settings[name]}" for name in rule.settings)
    ends = {name: within for name, within in rule.within.items() if math.isfinite(within[1])}
    inputs = ", ".join(
        f"{name}: f32[2, 3] in {list(ends.get(name, (0.1, 0.9)))}" for name in sorted(rule.tensors)
    )
    sides = f"before = {print_expr(rule.before)}\nafter = {print_expr(rule.after)}"
    if rule.before.function == "acosh":
        inputs = inputs.replace("[0.1, 0.9]", "[1.1, 1.9]")
    if rule.before.function == ANY:  # an operator of one operand, with that attribute if any
        sides = sides.replace("call(", "l2_normalize(")
    body = "\n".join(f"  {line}" for line in f"{lets}\n{sides}".strip().splitlines())
    text = f"nnir 1\n\nmodel m({inputs}) -> before: f32[2, 3], after: f32[2, 3] {{\n{body}\n}}\n"
    if "keepdims" in rule.settings:
        text = text.replace("before: f32[2, 3], after: f32[2, 3]", "before: f32[2], after: f32[2]")
    results = loads(text).run(seed=3)
    after, before = results["after"], results["before"]
    if "has no weight" in rule.why:  # another number, of which no exponential is left either
        after, before = np.exp(after), np.exp(before)
    np.testing.assert_allclose(after, before, rtol=2e-4)


# ---- the command --------------------------------------------------------------------------------


def run(*arguments: str, capsys: Any) -> tuple[int, str, str]:
    code = status(["analyze", *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


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
    assert "it may be 0\nwith a = " in result["message"]["text"]  # the reason and the input
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


# ---- models of another system -------------------------------------------------------------------


def onnx_file(
    folder: Path, log: str = "net/Log", ends: tuple[str, str] = ("in:0", "net/Log:0")
) -> Path:
    """log(softmax(x)) with names that the language does not have, written by ONNX itself."""
    import onnx
    from onnx import TensorProto, helper

    nodes = [
        helper.make_node("Softmax", ends[:1], ["p:0"], name="net/Softmax", axis=-1),
        helper.make_node("Log", ["p:0"], ends[1:], name=log),
    ]
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in ends]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    made.ir_version = 8
    path = folder / "made.onnx"
    onnx.save(made, path)
    return path


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
    frameworks: Frameworks,
) -> None:
    """Numbers of any size that flow back from a logarithm of 0 are no reason to bound the rest."""
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
        ("y = log(add(softmax(x), 1e-9))", "x: f16[4] in [-30, 30]", False, "log_softmax(x;"),
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
    text = model(body, "x: f16[6] in [-9, 9]", "y: f16[6]")
    with Frameworks(("onnxruntime", "torch")) as made:
        [report] = judged(text, made).reports
    assert report.status == "reachable"
    assert report.witness
    assert report.witness.shown
    assert report.witness.shown.target == "torch"


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


def looks(body: str, goal: str) -> int:
    """How many inputs are tried beside the first start of a pursuit of a logarithm or a root."""
    made = ready(model(body, "x: f32[3] in [-10, 10]", "y: f32[3]"))
    node = made.graph.nodes[-1]
    point = next(p for p in analyse(made.graph, made.catalog).points if p.node == node.name)
    place = Place(point.tensor, point.function, Range(-1.0, 1.0))
    probe = next(one for one in probes(made.graph, node, place, made.catalog) if one.goal == goal)
    pursuit = Pursuit(made, node, probe, math.inf)
    count = 0
    look = pursuit.look

    def counted(values: Mapping[str, Any]) -> Any:
        nonlocal count
        count += 1
        return look(values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pursuit, "look", lambda _, values: counted(values))
        assert list(pursuit.hits([{"x": np.array([9.7, -8.3, 2.9], np.float32)}])) == []
    return count


def test_only_what_rounding_decides_is_shaken() -> None:
    """A small probability is near the end of the logarithm's domain, and no nearer elsewhere; nor
    is what is 0 wherever one looks. What two roundings have left of a difference is.
    """
    left = "subtract(add(exp(x), multiply(x, 3)), multiply(x, 3))"
    lacks = f"reduce_max(abs(subtract({left}, exp(x))); axes = 0, keepdims = true)"
    assert looks(f"y = sqrt(broadcast_to({lacks}; shape = [3]))", "low") > 40
    assert looks("y = log(softmax(x; axis = 0))", "low") < 25
    assert looks("y = sqrt(square(subtract(x, x)))", "low") < 25
