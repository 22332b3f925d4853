"""Small faults in what TensorFlow and ONNX Runtime are told: whole programs catch them.

`python -m tests.planted_params` measures all of them; docs/campaigns.md has the figures.
"""

from __future__ import annotations

import pytest

from tests.planted_params import measure

_PROGRAMS = 3
CASES = [
    ("a weight is off by 1e-5", "dense"),
    ("a weight is off by 1e-5", "lstm"),
    ("the last term is not summed", "conv_transpose"),
    ("the bias is dropped", "batch_norm"),
    ("two gates are swapped", "gru"),
    ("a gradient is off by 1e-4", "conv"),
]


@pytest.mark.parametrize("target", ["tf", "onnxruntime"])
@pytest.mark.parametrize(("fault", "name"), CASES)
def test_a_small_fault_is_caught(fault: str, name: str, target: str) -> None:
    module = {"tf": "tensorflow"}.get(target, target)
    pytest.importorskip(module, reason=f"{target} is not installed")
    found, false = measure(fault, name, [target], _PROGRAMS)[target]
    assert len(found) >= _PROGRAMS - 1, "the others are those in which the fault moves no number"
    # one part in 1e5 of a term among thirty is less than their sum may be off
    assert sum(map(bool, found)) >= _PROGRAMS - 1, found
    assert false < _PROGRAMS, "what is caught without a fault says nothing of it"
