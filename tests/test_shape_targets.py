"""Targets that say shapes: what tracing and symbols infer, held against the definitions' shapes."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irlang.catalog import builtin
from irlang.diff import runner
from irlang.diff.calls import Case
from irlang.diff.finding import find_accepted
from irlang.diff.invalid import judge_invalid
from irlang.diff.localise import localise
from irlang.diff.report_folder import write
from irlang.diff.runner import Session
from irlang.diff.verdict import judge
from irlang.equations import TensorInfo
from irlang.graph import Graph
from irlang.interp.balls import Ball
from irlang.interp.shape import check
from irlang.lower.lower import Lowered, lower
from irlang.lower.target import describe
from irlang.parser import parse

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
X = np.arange(12, dtype=np.float32).reshape(1, 3, 4)
TEXT = """nnir 1
model m(x: f32[1, 3, 4]) -> y: f32[1, 4, 3] {
  z = tanh(x)
  t = transpose(z; perm = [0, 2, 1])
  y = relu(t)
}
"""
# A wrong shape, said where sizes are not known; and by a layer of Keras's own rule.
FAULTS = {
    "tf:shapes": """
import tensorflow as tf
if not hasattr(tf, "_planted"):
    tf._planted = tf.transpose
    def _transpose(x, perm=None):
        y = tf._planted(x, perm)
        if not tf.executing_eagerly() and x.shape.rank is None:
            y.set_shape([1, 4, 5])
        return y
    tf.transpose = _transpose
""",
    "torch:meta": """
import torch
if not hasattr(torch, "_planted"):
    torch._planted = torch.permute
    def _permute(x, order):
        y = torch._planted(x, order)
        return y.new_empty([1, 4, 5]) if y.device.type == "meta" else y
    torch.permute = _permute
""",
    "keras:shapes": """
import keras
def _shape(self, shape):
    return (shape[0], shape[2], 5)
keras.layers.Permute.compute_output_shape = _shape
""",
}


def case() -> Case:
    (graph,) = check(parse(TEXT), builtin()).graphs
    return Case(graph, {"x": X}, {}, builtin())


def planted(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    def faulty(graph: Graph, *args: Any, **options: Any) -> Lowered:
        made = lower(graph, *args, **options)
        assert isinstance(made.code, str)
        doc, quotes, rest = made.code[3:].partition('"""\n')
        return replace(made, code=f'"""{doc}{quotes}{fault}{rest}')

    monkeypatch.setattr(runner, "lower", faulty)


@pytest.mark.parametrize("target", list(FAULTS))
def test_a_shape_that_is_inferred_wrongly_is_found_in_its_operator(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if target.startswith("keras"):
        pytest.importorskip("keras", reason="Keras is not installed")
    with Session((target,)) as session:
        (right,) = session.compare([case()])[0].verdicts[target]
        assert right.verdict == "agrees"
        planted(monkeypatch, FAULTS[target])
        (wrong,) = session.compare([case()])[0].verdicts[target]
        assert wrong.verdict == "wrong"
        assert wrong.message == "shape [1, 4, 5], not [1, 4, 3]"
        culprit = localise(session, case(), target)
    assert culprit is not None
    assert culprit.node.op.name == "transpose"


def test_of_values_nothing_is_said() -> None:
    info, ball = TensorInfo((2,), "f32"), Ball(np.ones(2))
    got = np.zeros(2, np.float32)
    assert judge("y", "tf", info, ball, got).verdict == "wrong"
    assert judge("y", "tf:shapes", info, ball, got).verdict == "agrees"
    assert judge("y", "tf:shapes", info, ball, got[:1]).verdict == "wrong"
    assert judge("y", "tf:shapes", info, ball, got.astype(np.float64)).verdict == "wrong"
    assert judge("y", "torch:meta", info, ball, got).verdict == "agrees"


def test_a_check_that_the_meta_device_has_not_is_lost(tmp_path: Path) -> None:
    """PyTorch's kernels refuse a dilation of 0; on its meta device it has a shape."""
    with Session(("torch:meta",)) as session:
        found, counts = judge_invalid(session, builtin(), range(24), ops=("conv",))
        made = find_accepted(session, found[0][1], found[0][0])
    write(made, tmp_path, "f-001")
    text = (tmp_path / "issue.md").read_text("utf-8")
    assert "has the type float32 and shape" in text  # what is inferred, and no zeros in its place
    assert f"refuses it: `{made.words['torch'].splitlines()[0][:20]}" in text
    assert text.count("PyTorch " + made.version.split()[0]) >= 2  # with the mode and without it
    shown = [sys.executable, str(tmp_path / "show_torch_meta.py")]
    ran = subprocess.run(shown, capture_output=True, text=True, check=True)
    shape = list(made.got["result_y"].shape)
    assert ran.stdout.splitlines()[-1].split() == f"result_y got float32{shape}".split()
    assert counts["torch:meta"]["refused"] > 0
    assert found
    for _, one in found:
        assert one.words["torch"]
        assert one.verdict.verdict == "accepted"
        assert one.others["torch"] == "refused"
    assert {one.requirement for _, one in found} & {"dilation", "stride", "groups"}


def test_what_compiles_is_asked_for_what_is_not_refused_sooner() -> None:
    """What is refused without Inductor is refused with it, too, and is not compiled."""
    described = {"torch:compile": "torch:aot", "torch:aot": "", "tf:xla": ""}
    assert {name: describe(name).sooner for name in described} == described
    with Session(("torch:aot",)) as session:
        found, counts = judge_invalid(session, builtin(), range(8), ops=("softmax",))
        session.sooner = {"torch:aot": "torch"}
        again, fewer = judge_invalid(session, builtin(), range(8), ops=("softmax",))
    assert counts["torch:aot"]["refused"] > 0
    assert fewer["torch:aot"]["refused"] == counts["torch:aot"]["refused"]
    assert [one.requirement for _, one in again] == [one.requirement for _, one in found]
