"""Guards: edits that are proved, and what is said of them."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irlang.analysis import guards
from irlang.analysis.confirm import Frameworks
from irlang.analysis.guards import guards_of, mend
from irlang.analysis.rules import ANY, numbers, rules
from irlang.analysis.verdict import verdicts
from irlang.api import loads
from irlang.dtypes import DTYPES
from irlang.interp.range import analyse
from tests.analysed import judged, model, ready, run

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
        "sqrt(maximum(reduce_sum(square(x); axes = [1]), 1e-6))",
    "l = sqrt(reduce_sum(square(x); axes = [1]))":
        "sqrt(add(reduce_sum(square(x); axes = [1]), 1e-6))",
    "l = reduce_std(x; axes = [1])":
        "sqrt(maximum(reduce_variance(x; axes = [1]), 1e-6))",
    "l = reduce_std(x; axes = [1], correction = 1)":
        "sqrt(maximum(reduce_variance(x; axes = [1], correction = 1), 1e-6))",
    "l = reshape(reduce_std(x; keepdims = true); shape = [1])":
        "sqrt(maximum(reduce_variance(x; keepdims = true), 1e-6))",
    "l = normalize(x; axes = [1])": "l2_normalize(x; axes = [1], eps = 1e-6)",
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


def test_a_gradient_has_its_guard_where_a_value_has_the_name_of_another(
    frameworks: Frameworks,
) -> None:
    text = model("r = sqrt(a)\nd_a = multiply(2, r)", "a: f32[4] in [0, 1]", "d_a: f32[4]")
    found = judged(text, frameworks, gradient=True)
    assert found.subject.prefix == "dd_"
    (report,) = found.reports
    assert report.status == "reachable"
    assert report.node == "r"
    assert report.guard is not None
    assert report.guard.text == "sqrt(add(a, 1e-6))"
    assert "of the gradient by a" in str(found)


def test_a_call_inside_another_is_told_as_it_stands(frameworks: Frameworks) -> None:
    """Its value has a name that no reader of the text knows."""
    text = model(
        "y = negate(log(relu(x)))\nloss = reduce_sum(y)", "x: f32[4] in [-1, 1]", "y: f32[4]"
    )
    found = judged(text, frameworks, gradient=True)
    told = str(found)
    assert "at [0] of log(relu(x)), which is log(0)" in told
    assert "at [0] of the gradient by relu(x), where log(0) is differentiated" in told
    assert "y_" not in told
    assert [report.node for report in found.reports] == ["y_log", "y_log"]
    whole = found.subject.source.nodes[-1]
    assert found.subject.written(whole.name) == whole.name


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


def test_a_large_dividend_has_a_divisor_of_either_sign() -> None:
    inputs = "h: f32[3] in [-1e36, 1e36], v: f32[3] in [-4, 4]"
    text = model("y = divide(h, v)", inputs, "y: f32[3]")
    _, used = mend(ready(text))
    (guard,) = used
    divisor = "where(greater(abs(v), 1e-6), v, 1e-6)"
    assert guard.text == f"divide(clip(h; min = -2e32, max = 2e32), {divisor})"


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


def test_what_is_large_behind_a_defect_is_mended_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that little time goes into what is wrong by itself, of which each has its turn."""
    lines = "e = exp(x)\nh = matmul(e, w)\ny = log(sigmoid(h))\nz = divide(1.0, h)"
    text = model(lines, "x: f32[4, 4] in [-100, 100], w: f32[4, 4] in [-9, 9]",
        "y: f32[4, 4], z: f32[4, 4]")  # fmt: skip
    subject = ready(text)
    found = analyse(subject.graph, subject.catalog)
    assert [p.node for p in found.points if p.after and p.status != "safe"] == ["h"]
    clock = itertools.count()
    monkeypatch.setattr(guards, "_MORE", 10)
    monkeypatch.setattr("irlang.analysis.guards.time.process_time", lambda: next(clock))
    made = guards_of(subject, found, gradient=False, domain="relations", deadline=1)
    assert {"e", "y", "z"} <= made.keys()
