"""What targets are called in reports: as their maintainers know them."""

from __future__ import annotations

import pytest

from irlang.diagnostics import InvalidInput
from irlang.lower.called import CALLED, called
from irlang.lower.modes import KIN, ROWS
from irlang.lower.target import names


def test_every_target_has_a_name_of_its_own() -> None:
    known = {f"{row.name}{mode}" for row in ROWS.values() for mode in row.modes}
    assert CALLED.keys() == known | {row.name for row in ROWS.values() if row.about} | KIN.keys()
    assert len(set(CALLED.values())) == len(CALLED)
    for name in set(names()) & CALLED.keys():
        assert called(name, "9.8.7") == CALLED[name].format(" 9.8.7")


@pytest.mark.parametrize(
    ("target", "version", "wanted"),
    [
        ("tf:xla", "2.21.0", "TensorFlow 2.21.0, XLA"),
        ("keras:torch", "3.15.1", "Keras 3.15.1 on PyTorch"),
        ("onnx-reference", "1.23.2", "onnx.reference 1.23.2"),
        ("onnxruntime:plain", "", "ONNX Runtime, graph optimisation off"),
    ],
)
def test_a_mode_is_told_beside_the_framework(target: str, version: str, wanted: str) -> None:
    assert called(target, version) == wanted


def test_what_is_no_target_is_told() -> None:
    with pytest.raises(InvalidInput, match="there is no target `torhc`"):
        called("torhc")
