"""Faults of other kinds in PyTorch's functions are caught on programs as they are drawn.

`python -m tests.planted_kinds` measures all of them; docs/campaigns.md has the figures.
"""

from __future__ import annotations

import pytest

import irlang
from irlang.diff.calls import Case
from irlang.diff.found import Found
from irlang.diff.judgement import judge_program
from irlang.diff.outcome import is_strange
from irlang.diff.programs import Settings
from irlang.diff.runner import Session
from irlang.interp.values import initial_values, inputs
from irlang.lower.lower import lower
from tests.planted_kinds import FAULTS, lowered_by, measure, planted, programs
from tests.planted_more import MORE
from tests.planted_params import caught
from tests.planted_paths import PATHS
from tests.planted_steps import STEPS
from tests.planted_steps import caught as step_caught
from tests.planted_steps import measure as measured_steps

pytest.importorskip("torch", reason="torch is not installed")

_PROGRAMS = 3
# Faults that change every result by more than sums of a few hundred terms may be off.
CASES = (
    "a bias dropped for one channel", "the variance of a sample", "a mean that counts the padding",
    "tanh for erf", "a sixth of four digits", "channels of a block in another order",
    "to the second factor", "a softmax without its sum",
)  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_fault_is_caught(name: str) -> None:
    found = [how for _, how in measure(FAULTS[name], _PROGRAMS)]
    assert len(found) == _PROGRAMS
    assert all(found), found


def test_nothing_is_caught_where_nothing_is_planted() -> None:
    with Session(["torch"]) as session:
        for name in CASES[::4]:  # not gelu: on some processors PyTorch's is off by itself
            kind = FAULTS[name]
            for case, _ in zip(programs(kind, session), range(_PROGRAMS), strict=False):
                assert not caught(session, case, "torch", kind.slope)


_DEEP = """nnir 1
op weighted_sum[T: float](y0: T[S0..], c0: T[S0..]) -> loss: T[] {
  loss[] = sum(s.. < S0..) y0[s..] * c0[s..]
}
model m(x: f32[22, 15, 1] in [-2, 2], a: f32[1, 15, 1] in [0, 1], c: f32[22, 15, 1] in [-1, 1])
    -> loss: f32[] {
  param gamma: f32[1] in [1, 1.5]
  h = instance_norm(x, gamma; axis = 2)
  s = add(a, add(h, multiply(h, h)))
  loss = weighted_sum(multiply(s, s), c)
}
"""


def test_a_slope_that_rounding_explains_is_looked_into_where_targets_are_nearer() -> None:
    """It agrees with the oracle, but is 1,600 roundings of the largest off, as none mostly is."""
    made = irlang.loads(_DEEP)
    graph = made.graph
    case = Case(graph, inputs(graph, 0), initial_values(graph, 0), made.catalog)
    kind = MORE["to the instance norm"]
    settings = Settings(("torch",), 0, 1, grad=True)
    for faulty in (False, True):
        with Session(["torch"]) as session, lowered_by(planted(kind) if faulty else lower):
            outcome = session.compare([case], grad=True)[0]
            verdicts = outcome.verdicts["torch"]
            assert {v.verdict for v in verdicts} <= {"agrees", "rounding"}
            assert is_strange(graph, outcome, verdicts) is faulty
            found: list[Found] = []
            judge_program(session, settings, (1, case, outcome), "torch", verdicts, found, 0.0)
            assert [one.operator for one in found] == ["instance_norm"] * faulty


_STEPS = ("no look ahead", "a decay that is decoupled", "a second beta off by 1e-4")


@pytest.mark.parametrize("name", _STEPS)
def test_a_fault_of_an_optimizer_is_caught(name: str) -> None:
    assert all(measured_steps(name, 1))
    with Session(["torch"]) as session:
        assert not step_caught(STEPS[name].settings, 0, session)


_MORE_CASES = (
    "eps left out of rms_norm", "padding at the other side", "a dilation ignored in one axis",
    "places of the next largest", "another axis of the same size", "a mean over the batch alone",
    "a row that is asked for twice counts once", "a variance that is constant", "to the values",
)  # fmt: skip


@pytest.mark.parametrize("name", _MORE_CASES)
def test_another_fault_is_caught(name: str) -> None:
    found = [how for _, how in measure(MORE[name], 4)]
    assert len(found) == 4
    assert any(found), found


_PATH_CASES = (
    "what broadcasts gets the mean", "parts in another order on the way back", "mean for bias",
    "late to the product", "the last block of a sum",
)  # fmt: skip


@pytest.mark.parametrize("name", _PATH_CASES)
def test_a_fault_of_a_way_or_an_end_is_caught(name: str) -> None:
    found = [how for _, how in measure(PATHS[name], 1)]
    assert len(found) == 1
    assert all(found), found
