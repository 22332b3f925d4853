"""`irlang lower` and `irlang targets`: what they write runs with the framework and NumPy alone."""

from __future__ import annotations

import importlib.metadata as metadata
import json
from pathlib import Path

import numpy as np
import pytest

from irlang.cli import status
from irlang.diagnostics import InvalidInput
from irlang.lower import target as targets
from irlang.lower.target import names, require_installed
from tests.scripts import ran
from tests.test_lower_text import SMALL


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "small.nnir"
    path.write_text(SMALL, "utf-8")
    return path


@pytest.mark.parametrize("target", ["torch", "tf"])
def test_a_python_program_stands_alone(model: Path, target: str) -> None:
    pytest.importorskip({"tf": "tensorflow"}.get(target, target))
    assert status(["lower", str(model), "--to", target]) == 0
    program = model.with_name(f"small_{target}.py")
    assert "irlang" not in program.read_text("utf-8")
    inputs = model.with_name("inputs.npz")
    np.savez(inputs, image=np.ones((2, 3, 8, 8), np.float32), label=np.zeros(2, np.int32))
    result = ran(target, program, inputs)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("probs float32 (2, 5)\n")


def test_a_model_file_stands_alone(model: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    out = model.with_name("mine.onnx")
    assert status(["lower", str(model), "--to", "onnxruntime", "-o", str(out)]) == 0
    session = onnxruntime.InferenceSession(str(out), providers=["CPUExecutionProvider"])
    given = {"image": np.ones((2, 3, 8, 8), np.float32)}
    (probs,) = session.run(["probs"], {**given, "label": np.zeros(2, np.int32)})
    assert probs.shape == (2, 5)


@pytest.mark.parametrize("unread", ["(x: f32[2], w: i2[2])", "(x: f32[2], w: u4[3])"])
@pytest.mark.parametrize("target", ["onnxruntime", "torch", "tf"])
def test_what_nothing_reads_is_given_to_a_program_too(
    target: str, unread: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip({"onnxruntime": "onnx", "tf": "tensorflow"}.get(target, target))
    for text in (
        f"nnir 1\nmodel m{unread} -> y: f32[2] {{ y = relu(x) }}\n",
        "nnir 1\nmodel m(x: f32[2]) -> y: f32[2] { param w: i2[2] = 1 y = relu(x) }\n",
    ):
        path = tmp_path / "m.nnir"
        path.write_text(text, "utf-8")
        assert status(["lower", str(path), "--to", target]) == 1
        said = capsys.readouterr().err
        assert "lower.unsupported" in said
        assert "w: numbers are kept, not computed with, in " in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "torhc"], "did you mean `torch`?"),
        (["--to", "torch", "-o", "x.onnx"], "must end in .py"),
        (["--to", "torch", "-o", "absent/x.py"], "cannot be written"),
    ],
)
def test_wrong_usage_is_a_line(
    model: Path,
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(model.parent)
    assert status(["lower", str(model), *arguments]) in (1, 2)
    assert message in capsys.readouterr().err


def test_targets_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["targets", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [entry["name"] for entry in found] == names()
    assert all(
        list(entry) == ["name", "installed", "version", "python", "reason", "about", "share"]
        for entry in found
    )


def test_a_missing_framework_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", absent)
    targets._version.cache_clear()
    try:
        reasons = [entry.reason for entry in targets.targets()]
        assert "torch is not installed: pip install 'irlang[torch]'" in reasons
        with pytest.raises(InvalidInput, match=r"target\.missing"):
            require_installed("tf")
    finally:
        monkeypatch.undo()
        targets._version.cache_clear()


def test_a_refusal_is_told_once_and_says_what_the_target_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "wide.nnir"
    file.write_text(
        "nnir 1\nmodel m(x: f64[1, 64, 224, 224]) -> y: f64[1, 64, 224, 224] {\n"
        "  param w: f64[64, 64, 3, 3] = normal(0, 0.1)\n"
        "  a = conv(x, w; pad = same)\n  y = conv(a, w; pad = same)\n}\n"
    )
    assert status(["lower", str(file), "--to", "onnxruntime"]) == 1
    told = capsys.readouterr().err
    assert told.count("ONNX Runtime has no f64 kernel of Conv") == 1
    assert "its definition would take a tensor of" in told
