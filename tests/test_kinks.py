"""A gradient at a kink lies between the slopes beside it, whatever the cases of a definition add up
to there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irlang.diff.kinks import SLOPES
from irlang.diff.runner import Session
from irlang.diff.stages import by_calls
from irlang.diff.verdict import FINDINGS
from tests.gradient_cases import drawn_case
from tests.planted import Fault, planted
from tests.planted_kinds import lowered_by
from tests.test_flat import _told as judged

# Calls by their types, what they are fed, and the slopes on either side by the first operand.
KINKS: list[tuple[str, str, list[float], float, float]] = [
    ("x: f32[1]", "elu(x)", [0], 1, 1),
    ("x: f32[1]", "elu(x; alpha = 3)", [0], 1, 3),
    ("x: f32[1]", "celu(x; alpha = 3)", [0], 1, 1),
    ("x: f32[1]", "selu(x)", [0], 1.050701, 1.758099),
    ("x: f32[1]", "leaky_relu(x)", [0], 0.01, 1),
    ("x: f32[1]", "leaky_relu(x; alpha = 2)", [0], 1, 2),
    ("x: f32[1]", "relu(x)", [0], 0, 1),
    ("x: f32[1]", "abs(x)", [0], -1, 1),
    ("x: f32[1]", "hard_swish(x)", [3], 1, 1.5),
    ("x: f32[1], s: f32[1]", "prelu(x, s)", [0, 0.5], 0.5, 1),
    ("a: f32[1], b: f32[1]", "log_add_exp(a, b)", [2, 2], 0.5, 0.5),
    ("a: f32[1], b: f32[1]", "maximum(a, b)", [2, 2], 0, 1),
    ("a: f32[1], b: f32[1]", "hypot(a, b)", [0, 0], -1, 1),
    ("x: f64[1]", "elu(x)", [0], 1, 1),
    ("x: f16[1]", "celu(x)", [0], 1, 1),
]


def _verdict(types: str, call: str, fed: list[float], slope: float) -> Any:
    """The verdict on a gradient by the first operand of a call."""
    names = [part.split(":")[0].strip() for part in types.split(",")]
    values: dict[str, Any] = {name: [number] for name, number in zip(names, fed, strict=True)}
    right = judged(types, call, names[0], **values)
    return judged(types, call, names[0], off=slope - (right.got or 0.0), **values)


@pytest.mark.parametrize(("types", "call", "fed", "low", "high"), KINKS)
def test_a_gradient_at_a_kink_lies_between_the_slopes_beside(
    types: str, call: str, fed: list[float], low: float, high: float
) -> None:
    for share in (0.0, 0.3, 1.0):
        found = _verdict(types, call, fed, low + share * (high - low))
        assert found.verdict not in FINDINGS, (share, found)
    for slope in (low - 0.3, high + 0.3):
        assert _verdict(types, call, fed, slope).verdict == "wrong", slope


def test_nothing_is_said_of_what_bounds_an_operand_outside_of_what_is_differentiated() -> None:
    types = "p: f32[1], t: f32[1], var: f32[1]"
    call = "gaussian_nll(p, t, var; reduction = none)"
    assert judged(types, call, "var", p=[1], t=[2], var=[1e-6]).verdict not in FINDINGS


# On the way back exponential linear units are told another slope at 0, where it is 1.
_FAULT = Fault(
    ("elu",),
    "elu",
    """
class _Slope(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clone()
    @staticmethod
    def backward(ctx, g):
        return torch.where(ctx.saved_tensors[0] == 0, SLOPE * g, g)
if not hasattr(torch, "_planted"):
    torch._planted = F.elu
    F.elu = lambda x, *args, **options: torch._planted(_Slope.apply(x), *args, **options)
""",
    grad=True,
)


@pytest.mark.parametrize(("slope", "caught"), [(1.9, True), (0.2, True), (1.0, False)])
def test_a_slope_beside_is_asked_for_inside_of_a_program(slope: float, caught: bool) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    text = """model m(x: f32[3]) -> y: f32[3] {
  h = multiply(x, 2.0)
  g = elu(h)
  y = tanh(g)
  loss = reduce_sum(y)
}
"""
    case = drawn_case(text, x=np.array([-1, 0, 1], np.float32))
    fault = Fault(_FAULT.ops, _FAULT.culprit, _FAULT.code.replace("SLOPE", str(slope)), grad=True)
    with Session(["torch"]) as session, lowered_by(planted(fault)):
        start = by_calls(session, case, "torch", grad=True).start
    assert (start is not None) == caught
    if start is not None:
        assert (start.verdict.stage, start.operator) == ("backward", "elu")
        assert start.verdict.message.startswith(SLOPES)
