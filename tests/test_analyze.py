"""`irlang analyze`: verdicts on models whose truth is known, and witnesses that hold."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from irlang.analysis import search
from irlang.analysis.confirm import Frameworks
from irlang.analysis.guards import mend
from irlang.analysis.patterns import tries
from irlang.analysis.verdict import verdicts
from irlang.interp.range import analyse
from irlang.interp.values import Array
from tests.analysed import (
    BOXES,
    DIFFERENCE,
    ROOT_AT_ZERO,
    SMALL_EPSILON,
    assert_holds,
    by_call,
    judged,
    model,
    ready,
)

# Hostile models: what is written, and the calls that go wrong. A gradient's are called `d_…`.
SLICED = model(
    """low = negate(x)
    both = concat(x, low; axis = 1)
    half = slice(both; axes = [1], begin = [3], end = [6])
    y = log(add(half, 0.5))"""
)
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

    def alike(first: Iterator[dict[str, Array]], many: int) -> int:
        some = itertools.islice(first, many)
        return sum(bool(np.ptp(v["a"])) and np.array_equal(v["a"], v["b"]) for v in some)

    assert alike(tries(made.graph, 0), 100) >= 3
    assert alike(tries(made.graph, 0, {"a", "b"}), 12)  # a pursuit begins with it, too


def test_what_is_small_enough_for_the_slope_of_a_norm_is_tried(frameworks: Frameworks) -> None:
    """Where 1 / n and x / n**2 are numbers still, and x / n**3 is none."""
    for dtype in ("f32", "f16"):
        found = judged(
            f"""nnir 1
            model m(x: {dtype}[2, 8] in [-1, 1]) -> y: {dtype}[2, 8], loss: {dtype}[] {{
              n = sqrt(reduce_sum(square(x); axes = [1], keepdims = true))
              y = divide(x, n)
              loss = reduce_sum(y)
            }}""",
            frameworks, gradient=True,
        )  # fmt: skip
        slopes = [report for report in found.reports if report.point.operator == "sqrt_gradient"]
        assert [report.status for report in slopes] == ["reachable"]


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


def test_a_framework_whose_function_ends_sooner_is_asked_by_itself(frameworks: Frameworks) -> None:
    """The logistic function of -92 is a small number, and 0 where it is 1 / (1 + exp(92))."""
    body = """
        z = multiply(-23.0, reduce_sum(multiply(sin(x), cos(x)); axes = [0]))
        y = log(sigmoid(z))
    """
    found = judged(model(body, "x: f32[8] in [-1, 0.8]", "y: f32[]"), frameworks)
    (report,) = found.reports
    assert report.status == "reachable"
    assert report.witness is not None
    assert report.witness.shown is not None
    assert report.witness.shown.target == "onnxruntime"


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


def test_boxes_that_are_one_another_are_met_where_they_are_so_in_rounded_numbers(
    frameworks: Frameworks,
) -> None:
    """A box by its centre, a share of the image, and the logarithm of its size, on another one."""
    text = model(
        "d = add(square(subtract(sigmoid(p), c)), square(subtract(multiply(exp(s), a), b)))\n"
        "y = divide(1.0, d)",
        "p: f32[3] in [-3, 3], s: f32[3] in [-3, 3], a: f32[3] in [0.05, 1], "
        "b: f32[3] in [0.05, 1], c: f32[3] in [0.05, 1]",
        "y: f32[3]",
    )
    (report,) = judged(text, frameworks).reports
    assert report.status == "reachable"


# ---- DEBAR's example ----------------------------------------------------------------------------


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


def test_what_is_near_a_call_varies_alone(
    frameworks: Frameworks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind many steps the weights of a last layer are tried, and the steps taken once."""
    monkeypatch.setattr(search, "_SLOW", 0.0)
    monkeypatch.setattr(search.Search, "_patterns", lambda *_: [])
    monkeypatch.setattr(search.Search, "_pursue", lambda *_: None)
    steps = "\n".join(f"h{i + 1} = tanh(matmul(h{i}, w))" for i in range(9))
    text = model(
        f"h0 = identity(x)\n{steps}\np = softmax(add(matmul(h9, v), b); axis = 1)\ny = log(p)",
        "x: f32[2, 3] in [-1, 1], w: f32[3, 3] in [-2, 2], v: f32[3, 4] in [-60, 60], "
        "b: f32[4] in [-1, 1]",
        "y: f32[2, 4]",
    )
    (report,) = judged(text, frameworks).reports
    assert report.status == "reachable"
    assert report.witness is not None
    assert np.unique(report.witness.values["w"]).size == 1


def test_a_quotient_that_only_0_is_kept_from_overflows(frameworks: Frameworks) -> None:
    body = "y = divide(a, where(equal(b, 0), 1, b))"
    inputs = "a: f32[3] in [-9, 9], b: f32[3] in [-9, 9]"
    (report,) = judged(model(body, inputs, "y: f32[3]"), frameworks).reports
    assert report.status == "reachable"
