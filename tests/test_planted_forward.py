"""Faults of one part in 10⁵, a term or a bias too few, swapped gates: whole programs catch them.

`python -m tests.planted_forward` measures all of them; docs/campaigns.md has the figures.
"""

from __future__ import annotations

import pytest

from irlang.diff.runner import Session
from tests.planted_forward import LAYERS, caught, measure, programs

pytest.importorskip("torch", reason="torch is not installed")

_PROGRAMS = 4
_SEEDS = range(200)
CASES = [
    ("a weight is off by 1e-5", "dense"),
    ("a weight is off by 1e-5", "depthwise_conv"),
    ("a weight is off by 1e-5", "lstm"),
    ("the last term is not summed", "conv"),
    ("the last term is not summed", "matmul"),
    ("the bias is dropped", "dense"),
    ("the bias is dropped", "batch_norm"),
    ("two gates are swapped", "gru"),
    ("two gates are swapped", "lstm"),
    ("a result is off by 1e-5", "softmax"),
    ("a result is off by 1e-5", "reduce_mean"),
]


@pytest.mark.parametrize(("fault", "name"), CASES)
def test_a_small_fault_is_caught(fault: str, name: str) -> None:
    layer = LAYERS[name]
    cases = list(programs(fault, layer, _SEEDS, _PROGRAMS))
    assert len(cases) == _PROGRAMS
    found = measure(fault, layer, cases)
    assert len(found) >= _PROGRAMS - 1, "the others are those in which the fault moves no number"
    assert sum(bool(how) for how in found) >= len(found) - 1, found


def test_nothing_is_caught_where_nothing_is_planted() -> None:
    with Session(["torch"]) as session:
        for fault, name in CASES[::3]:
            for case in programs(fault, LAYERS[name], _SEEDS, _PROGRAMS):
                assert not caught(session, case)
