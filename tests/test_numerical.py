"""`tests.conformance.numerical` on graphs made here: what it counts, well and badly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conformance.numerical import main, measure, run

RANGES = [("x:0", [-50, 50], [4, 3]), ("w:0", [-10, 10], [3, 2])]


def graph(folder: Path, name: str, low: float | None) -> str:
    """log(softmax(x w)), clipped from `low` on, with names as TensorFlow gives them."""
    import onnx
    from onnx import TensorProto, helper

    nodes = [
        helper.make_node("MatMul", ["x:0", "w:0"], ["MatMul:0"], name="MatMul"),
        helper.make_node("Softmax", ["MatMul:0"], ["Softmax:0"], name="Softmax", axis=-1),
        helper.make_node("Exp", ["Softmax:0"], ["Exp:0"], name="Exp"),
    ]
    source, constants = "Softmax:0", []
    if low is not None:
        constants = [helper.make_tensor("low", TensorProto.FLOAT, [], [low])]
        nodes.append(helper.make_node("Max", ["Softmax:0", "low"], ["Max:0"], name="Max"))
        source = "Max:0"
    nodes.append(helper.make_node("Log", [source], ["loss/Log:0"], name="loss/Log"))
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, _, s in RANGES]
    results = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4, 2])
               for n in ("loss/Log:0", "Exp:0")]  # fmt: skip
    made = helper.make_model(
        helper.make_graph(nodes, "g", inputs, results, constants),
        opset_imports=[helper.make_opsetid("", 13)],
    )
    made.ir_version = 8
    onnx.save(made, folder / f"{name}.onnx")
    return f"{name}.onnx"


def side(folder: Path, name: str, low: float | None, **said: Any) -> None:
    """A graph and its side file."""
    given = [
        {"name": n, "shape": shape, "dtype": "float32", "range": ends} for n, ends, shape in RANGES
    ]
    about = {
        "id": name, "kind": "original", "onnx": graph(folder, name, low), "inputs": given[:1],
        "parameters": given[1:], "defects": [], "risk_nodes": [], **said,
    }  # fmt: skip
    (folder / "json").mkdir(exist_ok=True)
    (folder / "json" / f"{name}.json").write_text(json.dumps(about))


LOG = [{"node": "loss/Log"}]


def test_a_defect_is_reported_and_its_twin_is_not(tmp_path: Path) -> None:
    side(tmp_path, "1", None, defects=LOG, risk_nodes=[{"node": "Exp", "label": "safe"}])
    side(tmp_path, "1.fix", 1e-6, kind="twin")
    score = measure(tmp_path)
    assert (score.confirmed, score.reported, score.witnessed) == (1, 1, 1)
    assert score.missed == score.false_alarms == score.failures == score.unwitnessed == []
    assert set(score.seconds) == {"1", "1.fix"}


def test_what_is_missed_and_what_is_a_false_alarm_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    side(tmp_path, "1", 1e-6, defects=LOG)  # there is none
    side(tmp_path, "2", None, kind="twin")  # it is not mended
    side(tmp_path, "3", None, risk_nodes=[{"node": "loss/Log", "label": "safe"}])  # it is not
    (tmp_path / "3.onnx").rename(tmp_path / "3.gone")
    side(tmp_path, "4", None, risk_nodes=[{"node": "loss/Log", "label": "safe"}])
    assert main([str(tmp_path), "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["missed"] == ["1: loss/Log"]
    assert found["false_alarms"] == ["2: loss/Log (reachable)", "4: loss/Log (reachable)"]
    assert [line.partition(":")[0] for line in found["failures"]] == ["3"]


def test_a_witness_is_replayed_on_the_original(tmp_path: Path) -> None:
    path = tmp_path / graph(tmp_path, "g", None)
    apart = np.array([[10, -10], [10, -10], [10, -10]], np.float32)
    feeds = {"x:0": np.full((4, 3), 50, np.float32), "w:0": apart}
    assert run(path, "loss/Log", feeds) == ""
    assert "is finite" in run(path, "Exp", feeds)
    feeds["x:0"] = np.full((4, 3), np.nan, np.float32)
    assert "an operand is not finite" in run(path, "loss/Log", feeds)
    assert "no such node" in run(path, "Lag", feeds)
