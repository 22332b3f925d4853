"""Faults of other kinds in PyTorch's functions are caught on programs as they are drawn.

`python -m tests.planted_kinds` measures all of them; docs/campaigns.md has the figures.
"""

from __future__ import annotations

import pytest

from irlang.diff.runner import Session
from tests.planted_kinds import FAULTS, measure, programs
from tests.planted_params import caught

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
        for name in CASES[::3]:
            kind = FAULTS[name]
            for case, _ in zip(programs(kind, session), range(_PROGRAMS), strict=False):
                assert not caught(session, case, "torch", kind.slope)
