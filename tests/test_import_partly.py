"""Models of which a part has no translation: what is left of them, and what is said of it."""

import json
from pathlib import Path
from typing import Any

import pytest

import irlang
from irlang.cli import status
from irlang.diagnostics import InvalidInput
from irlang.importers.files import read

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
helper = onnx.helper


def detector(kind: str = "NonMaxSuppression") -> Any:
    """A logarithm of the scores beside boxes of which some are chosen, and what comes of them."""
    nodes = [
        helper.make_node("Log", ["scores"], ["logs"], "log"),
        helper.make_node("Mul", ["scores", "scores"], ["squares"], "mul"),
        helper.make_node(kind, ["boxes", "squares"], ["chosen"], "choose"),
        helper.make_node("Cast", ["chosen"], ["real"], "cast", to=1),
        helper.make_node("Sqrt", ["real"], ["roots"], "sqrt"),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "detector",
        [value("scores", 1, [1, 2, 5]), value("boxes", 1, [1, 5, 4])],
        [value("roots", 1, None), value("logs", 1, None)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "detector.onnx"
    onnx.save(detector(), path)
    return path


def test_what_has_no_translation_is_refused_unless_it_may_be_left_out(file: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(file, "parameters")
    assert [d.code for d in caught.value.diagnostics] == ["import.operator"]
    made = read(file, "parameters", partly=True)
    assert [(d.severity, d.node) for d in made.left_out] == [("warning", "choose")]
    assert made.left_out[0].help.startswith("3 nodes are left out")
    model = irlang.loads(made.text)
    # the square is read by what is not there alone: it is a result now, and so is the logarithm
    assert {node.op.name for node in model.graph.nodes} == {"log", "multiply"}
    assert sorted(model.graph.outputs) == ["logs", "squares"]


def test_the_rest_is_analysed(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["analyze", str(file), "--format", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [report["node"] for report in told["reports"]] == ["log"]
    assert [one["node"] for one in told["left_out"]] == ["choose"]
    assert status(["analyze", str(file)]) == 1
    shown = capsys.readouterr().out
    assert "warning[import.operator]: NonMaxSuppression `choose`" in shown
    ranges = file.with_name("ranges.json")
    ranges.write_text('{"scores": [0.1, 1], "boxes": [0, 1]}')
    assert status(["analyze", str(file), "--ranges", str(ranges)]) == 1, "a part was not looked at"
    assert "no NaN or infinity can arise in what could be read" in capsys.readouterr().out


def test_the_rest_is_analysed_in_python(file: Path) -> None:
    found = irlang.analyze(file)
    assert [report.node for report in found.reports] == ["log"]
    assert [d.node for d in found.subject.left_out] == ["choose"]


def test_import_leaves_out_where_it_is_asked_to(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(["import", str(file)]) != 0
    assert not file.with_suffix(".nnir").exists()
    capsys.readouterr()
    assert status(["import", str(file), "--partly"]) == 0
    assert "3 nodes are left out" in capsys.readouterr().out
    assert status(["check", str(file.with_suffix(".nnir"))]) == 0
    capsys.readouterr()
    assert status(["import", str(file), "--partly", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [d["severity"] for d in told["diagnostics"]] == ["warning"]


def test_what_is_wrong_is_never_left_out(tmp_path: Path) -> None:
    model = detector()
    model.graph.node[1].input[1] = "nobody"
    path = tmp_path / "wrong.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(InvalidInput) as caught:
        read(path, "parameters", partly=True)
    assert "file.missing" in [d.code for d in caught.value.diagnostics]


def test_a_model_of_which_nothing_is_left_is_refused(tmp_path: Path) -> None:
    model = detector()
    del model.graph.node[:2], model.graph.output[1:]
    model.graph.node[0].input[1] = "scores"
    path = tmp_path / "nothing.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(InvalidInput) as caught:
        read(path, "parameters", partly=True)
    assert {d.severity for d in caught.value.diagnostics} == {"error"}


def test_an_open_size_stays_open(tmp_path: Path) -> None:
    model = detector()
    for value in model.graph.input:
        value.type.tensor_type.shape.dim[0].dim_param = "N"
    path = tmp_path / "open.onnx"
    path.write_bytes(model.SerializeToString())
    assert "scores: f32[N, 2, 5]" in read(path, "parameters", partly=True).text


def test_of_a_tensorflow_graph(tmp_path: Path) -> None:
    tf = pytest.importorskip("tensorflow", reason="tensorflow is not installed")
    graph = tf.Graph()
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [3], "x")
        root = tf.sqrt(x, name="root")
        tf.math.log(tf.math.betainc(x, root, x), name="logarithm")
    path = tmp_path / "graph.pb"
    path.write_bytes(graph.as_graph_def().SerializeToString())
    made = read(path, "parameters", partly=True)
    assert [d.node for d in made.left_out] == ["Betainc"]
    assert made.left_out[0].help.startswith("2 nodes are left out")
    assert list(irlang.loads(made.text).graph.outputs) == ["root"]
