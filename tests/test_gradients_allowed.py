"""Gradients on several frameworks: which differences are allowed, and what is wrong with others."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import numpy as np
import pytest

from irlang.diff.flat import BY_ARMS
from irlang.diff.runner import Session
from irlang.diff.stages import by_calls
from irlang.diff.verdict import FINDINGS

pytest.importorskip("torch", reason="torch is not installed")
from tests.gradient_cases import NETWORK, drawn_case


def _model(head: str, call: str) -> str:
    return f"model m({head}) -> y: f32[] {{\n y = reduce_sum({call})\n loss = multiply(y, 2.0)\n}}"


# Where frameworks differ, rightly: what is drawn for x, and a call.
KNOWN = {
    "relu at 0": ("f32[3]", "relu(x)", [-1, 0, 1]),
    "abs at 0": ("f32[3]", "abs(x)", [-1, 0, 1]),
    "pow at 0": ("f32[4]", "power(x, 2.0)", [-1, 0, 1, 2]),
    "pow at 0 by its exponent": ("f32[3]", "power(2.0, x)", [-1, 0, 1]),
    "the product of all with a zero": ("f32[4]", "reduce_prod(x; axes = [0])", [2, 0, 3, 4]),
    "equals in a window": ("f32[1, 1, 4]", "max_pool(x; window = 2, stride = 2)", [[[1, 1, 2, 3]]]),
    "equals of all": ("f32[4]", "reduce_max(x; axes = [0])", [1, 3, 3, 2]),
    "both operands equal": ("f32[3]", "maximum(x, 1.0)", [0, 1, 2]),
    "the ends of a clip": ("f32[4]", "clip(x; min = -1, max = 1)", [-1, 0, 1, 2]),
}


TARGETS = [
    name
    for name, module in (("torch", "torch"), ("tf", "tensorflow"), ("onnxruntime", "onnxruntime"))
    if importlib.util.find_spec(module)
]


@pytest.fixture(scope="module")
def everywhere() -> Iterator[Session]:
    with Session(TARGETS) as made:
        yield made


@pytest.mark.parametrize("name", KNOWN)
def test_known_differences_are_allowed(name: str, everywhere: Session) -> None:
    kind, call, value = KNOWN[name]
    case = drawn_case(_model(f"x: {kind}", call), x=np.array(value, np.float32))
    for target, verdicts in everywhere.compare([case], grad=True)[0].verdicts.items():
        assert not {v.verdict for v in verdicts} & FINDINGS, (target, verdicts)
        calls = by_calls(everywhere, case, target, grad=True)
        assert calls.start is None, (target, calls.start)
        assert calls.backward == 3, "the call, the sum and the product have gradients"


def test_a_gradient_that_a_framework_has_wrong(everywhere: Session) -> None:
    """TensorFlow divides by what is accumulated, which is 0 (its source says so itself)."""
    case = drawn_case(
        _model("x: f32[5]", "cumprod(x; axis = 0)"), x=np.array([2, 0, 3, 0, 4], "f4")
    )
    for target, verdicts in everywhere.compare([case], grad=True)[0].verdicts.items():
        start = by_calls(everywhere, case, target, grad=True).start
        if target == "tf":
            assert start is not None
            assert (start.verdict.stage, start.operator) == ("backward", "cumprod")
        else:
            assert start is None, (target, start)
        assert (start is not None) == bool({v.verdict for v in verdicts} & FINDINGS)


@pytest.mark.parametrize(
    "call", ["top_k(x; k = 2, stable = false, nans = largest)", "sort(x; stable = false)"]
)
def test_any_of_equals_may_be_the_one_that_is_chosen(call: str, everywhere: Session) -> None:
    """PyTorch takes the third of four zeros as the largest; a definition that keeps their order
    called its gradient wrong.
    """
    size = 2 if call.startswith("top_k") else 5
    text = f"""model m(x: f32[5], w: f32[{size}]) -> y: f32[{size}] {{
  y, at = {call}
  loss = reduce_sum(multiply(y, w); axes = 0)
}}
"""
    weights = np.arange(1, size + 1, dtype=np.float32)
    case = drawn_case(text, x=np.array([0, 0, 0, 0, -1], np.float32), w=weights)
    for target, verdicts in everywhere.compare([case], grad=True)[0].verdicts.items():
        assert not {v.verdict for v in verdicts} & FINDINGS, (target, verdicts)
    apart = drawn_case(text, x=np.array([1, 3, 0, 2, -1], np.float32), w=weights)
    for verdicts in everywhere.compare([apart], grad=True)[0].verdicts.values():
        told = {v.name: v for v in verdicts}
        assert told["d_x"].verdict in ("agrees", "unsupported")
        assert (told["d_x"].radius or 0) < 1e-5


def test_a_gradient_of_half_of_the_digits_is_inaccurate(everywhere: Session) -> None:
    """Some have exp(x) - 1 in selu, which is 0 near 0; by its weight that is the gradient."""
    text = """model m(x: f32[1], w: f32[1]) -> h: f32[1] {
  h = selu(x)
  loss = reduce_sum(multiply(h, w); axes = [0])
}
"""
    case = drawn_case(text, x=np.array([-1e-8], np.float32), w=np.zeros(1, np.float32))
    found = everywhere.compare([case], grad=True)[0].verdicts
    for target, verdicts in found.items():
        told = {v.name: v.verdict for v in verdicts}
        assert told["d_w"] == ("agrees" if target == "torch" else "inaccurate"), target


def test_a_target_without_gradients_runs_the_adjoints(everywhere: Session) -> None:
    case = drawn_case(NETWORK)
    outcome = everywhere.compare([case], grad=True)[0]
    for target, verdicts in outcome.verdicts.items():
        stages = {v.name: v.stage for v in verdicts}
        assert stages == {
            "logits": "forward", "loss": "loss", "d_x": "backward", "d_w": "backward",
            "d_b": "backward", "d_v": "backward",
        }, target  # fmt: skip
        assert {v.verdict for v in verdicts} <= {"agrees", "rounding"}, (target, verdicts)
        assert by_calls(everywhere, case, target, grad=True).backward == 6
    first, *others = (outcome.results[target].gradients for target in outcome.verdicts)
    for other in others:
        for name, array in first.items():
            np.testing.assert_allclose(other[name], array, rtol=1e-4, atol=1e-6)


def test_behind_what_is_infinite_throughout_the_gradient_is_open(everywhere: Session) -> None:
    """No alignment has so few steps: the loss is infinite, and no target has a slope to show."""
    case = drawn_case("""
model m(x: f32[1, 1, 3] in [-1, 1]) -> y: f32[1] {
  param labels: i64[1, 2] = [[1, 2]]
  param steps: i64[1] = 1
  param length: i64[1] = 2
  y = ctc_logits(x, labels, steps, length)
  loss = reduce_sum(y)
}""")
    for target, verdicts in everywhere.compare([case], grad=True)[0].verdicts.items():
        found = {v.name: v.verdict for v in verdicts}
        assert found["d_x"] in ("unstable", "unsupported"), (target, found)


ROOT = """
op root[T: float](x: T[S..]; by: real = 0) -> y: T[S..] {
  q[s.. < S..] = by * sq(x[s..])
  y[s..] = sqrt(q[s..]) + x[s..]
}"""


@pytest.mark.parametrize("call", ["root(x)", "rmsprop(x, x; rho = 1)"])
def test_a_factor_zero_makes_no_number_of_what_is_infinite(call: str, everywhere: Session) -> None:
    """The root of 0 has an infinite slope: 0 times that is nothing that a program must not show."""
    case = drawn_case(f"""{ROOT}
model m(x: f32[2] in [1, 2]) -> y: f32[2] {{
  y = {call}
  loss = reduce_sum(y)
}}""")
    for target, verdicts in everywhere.compare([case], grad=True)[0].verdicts.items():
        found = {v.name: v.verdict for v in verdicts}
        assert found["d_x"] in ("unstable", "unsupported"), (target, found)


# Calls that a target has no operator for: of a branch that is not taken no slope may come through.
SHELTERED = {
    "log_ndtr(x)": [-20, -1, 0, 8],
    "poisson(exp(x), max0(x); full = true, log_input = false, reduction = none)": [0, 0.5, 1, 3],
    "safe(x)": [-1, 0, 4, 9],
    "masked(x)": [-1, 0, 4, 9],
    "bounded(x)": [0, 0.5, 1, 3],
}


OWN = """
op max0[T: float](x: T[S..]) -> y: T[S..] {
  y[s..] = max(x[s..], 0)
}
op bounded[T: float](x: T[S..]; low: real = -100) -> y: T[S..] {
  y[s..] = min(max(log(x[s..]), low), 50)
}
op safe[T: float](x: T[S..]) -> y: T[S..] {
  y[s..] = if x[s..] > 1 then log(x[s..]) / sqrt(x[s..]) else x[s..]
}
op masked[T: float](x: T[N]) -> y: T[N] {
  y[n] = sum(m < N | x[m] > 1) sqrt(x[m] - 1) * x[n]
}"""


@pytest.mark.parametrize("call", SHELTERED)
def test_a_branch_that_is_not_taken_has_no_slope(call: str, everywhere: Session) -> None:
    text = f"{OWN}\nmodel m(x: f32[4]) -> y: f32[4] {{\n  y = {call}\n  loss = reduce_sum(y)\n}}"
    case = drawn_case(text, x=np.array(SHELTERED[call], np.float32))
    compared = 0
    for target, verdicts in everywhere.compare([case], grad=True)[0].verdicts.items():
        if (target, call.partition("(")[0]) == ("torch", "poisson"):
            # F.poisson_nll_loss itself, by its target where that is 0, and then through `max0`,
            # which is written by its definition: of the loss alone it is told, below.
            assert [v.message for v in verdicts if v.name == "d_x"] == [BY_ARMS]
            continue
        if (target, call) == ("torch", "log_ndtr(x)"):
            slopes = [v for v in verdicts if v.verdict == "inaccurate"]
            assert [v.name for v in slopes] == ["d_x"]  # exp(-x ** 2 / 2 - y) / sqrt(2 pi), at -20
            compared += 1
            continue
        assert {v.verdict for v in verdicts} <= {"agrees", "rounding", "unsupported"}, verdicts
        compared += "d_x" in {v.name for v in verdicts if v.verdict != "unsupported"}
    assert compared


def test_a_loss_that_has_no_slope_by_its_target_is_told_by_itself(everywhere: Session) -> None:
    case = drawn_case(
        """
model m(x: f32[2] in [1, 2], t: f32[2]) -> y: f32[2] {
  y = poisson(x, t; full = true, log_input = false, reduction = none)
  loss = reduce_sum(y)
}""",
        t=np.array([0, 3], np.float32),
    )
    verdicts = everywhere.compare([case], grad=True)[0].verdicts["torch"]
    assert {v.name for v in verdicts if v.verdict == "nonfinite"} == {"d_t"}


def test_the_remainder_that_tensorflow_does_not_differentiate_is_composed(
    everywhere: Session,
) -> None:
    case = drawn_case("""
model m(x: f32[3] in [5, 6], z: f32[3] in [1, 2]) -> y: f32[3] {
  y = modulo(x, z; sign_of = dividend)
  loss = reduce_sum(multiply(y, z))
}""")
    for verdicts in everywhere.compare([case], grad=True)[0].verdicts.values():
        assert {v.verdict for v in verdicts} <= {"agrees", "rounding"}, verdicts


def test_a_bound_may_stand_outside_of_what_is_differentiated(everywhere: Session) -> None:
    """gaussian_nll says so of its variance: PyTorch's passes below eps, the others' do not."""
    case = drawn_case(
        """
model m(p: f32[3], t: f32[3], v: f32[3] in [0, 2]) -> loss: f32[] {
  loss = gaussian_nll(p, t, v; eps = 0.5, reduction = sum)
}""",
        v=np.array([0.1, 0.5, 1.5], np.float32),
    )
    outcome = everywhere.compare([case], grad=True)[0]
    for verdicts in outcome.verdicts.values():
        assert {v.verdict for v in verdicts} <= {"agrees", "rounding"}, verdicts
    assert (outcome.slopes["v"].bound > 1e-3).tolist() == [True, False, False]


def test_what_flows_back_may_be_added_up_in_any_order(everywhere: Session) -> None:
    """Three uses of a value whose gradients cancel: another order is off by more than one ulp."""
    case = drawn_case("""
model m(x: f32[99] in [1, 2], a: f32[99] in [1, 2], b: f32[99] in [1, 2], c: f32[99] in [-3, -2])
    -> y: f32[] {
  h = sqrt(x)
  u = multiply(h, a)
  v = multiply(h, b)
  w = multiply(h, c)
  y = reduce_sum(add_n(u, v, w))
  loss = square(y)
}""")
    for target in everywhere.targets:
        assert by_calls(everywhere, case, target, grad=True).start is None


@pytest.mark.skipif("tf" not in TARGETS, reason="TensorFlow is not installed")
def test_a_value_that_is_a_number_of_the_program_has_no_gradient_there(
    everywhere: Session,
) -> None:
    """Above the matrix there is no diagonal: its trace is written as 0, which no tape follows."""
    case = drawn_case("""
model m(x: f32[2, 2] in [1, 2], z: f32[] in [1, 2]) -> y: f32[] {
  t = trace(x; offset = 5)
  y = multiply(t, z)
  loss = add(y, z)
}""")
    assert by_calls(everywhere, case, "tf", grad=True).start is None
