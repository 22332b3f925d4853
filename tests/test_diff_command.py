"""What `irlang diff` says above its table."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from irlang.cli import status
from irlang.commands.cases import targets_for
from irlang.commands.diff import command
from irlang.diff.reduce_files import is_of_gradients
from irlang.lower.target import usual
from tests.targets import usable

STORED = "model m(x: f32[2]) -> y: f8e5m2[2] {\n  y = cast(x; to = f8e5m2)\n}\n"
SPECIAL = "model m(x: f32[2] in [1, 2]) -> y: f32[2] {\n  y = lgamma(x)\n}\n"
PLAIN = "model m(x: f32[2] in [1, 2]) -> y: f32[2] {\n  y = relu(x)\n}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (STORED, "nothing is compared with the oracle: no target can run it"),
        (
            SPECIAL,
            "the targets agree with the oracle, but for onnxruntime, which cannot run it",
        ),
        (PLAIN, "the targets agree with the oracle"),
    ],
)
def test_a_target_that_runs_nothing_does_not_agree(text: str, said: str, tmp_path: Path) -> None:
    for target in ("onnxruntime", "torch"):
        usable(target)
    (tmp_path / "m.nnir").write_text(f"nnir 1\n{text}", "utf-8")
    arguments = [str(tmp_path / "m.nnir"), "--targets", "onnxruntime,torch"]
    result = CliRunner().invoke(command, arguments, standalone_mode=False)
    first, _, rest = result.output.partition("\nverdict")
    assert " ".join(first.split()) == said
    assert rest


@pytest.mark.parametrize("asked", ["run", "diff", "localize", "reduce"])
def test_a_result_that_is_called_like_a_gradient_is_told(
    asked: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One of both would be lost."""
    file = tmp_path / "m.nnir"
    file.write_text(
        "nnir 1\n\nmodel m(x: f32[3]) -> d_x: f32[3] {\n  d_x = multiply(x, 10)\n"
        "  loss = reduce_sum(square(x))\n}\n"
    )
    targets = [] if asked == "run" else ["--targets", "torch"]
    assert status([asked, str(file), "--grad", *targets]) == 2
    assert "the result `d_x` has the name of the gradient by `x`" in capsys.readouterr().err
    assert status(["run", str(file)]) == 0


@pytest.mark.parametrize(("line", "own"), [
    ("# inaccurate: tf:graph, add + add", ["tf:graph"]),
    ("# refused: tf:graph, conv", ["tf:graph"]),
    ("# wrong: tf-of-nobody:graph, add", []),
    ("# about: one thing, and another", []),
    ("", []),
])  # fmt: skip
def test_a_finding_is_compared_on_the_target_that_it_is_of(
    line: str, own: list[str], tmp_path: Path
) -> None:
    (tmp_path / "finding.nnir").write_text(f"{line}\nnnir 1\n", "utf-8")
    found = targets_for(str(tmp_path), None)
    assert found == [*own, *usual()]
    assert targets_for(str(tmp_path / "finding.nnir"), None) == found
    assert targets_for(str(tmp_path), "torch") == ["torch"]


@pytest.mark.parametrize("asked", ["diff", "localize", "reduce"])
def test_a_finding_in_gradients_is_compared_with_them(
    asked: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its values agree: without its gradients nothing would be told of it."""
    usable("torch")
    text = "nnir 1\n\nmodel m(x: f32[3]) -> y: f32[3] {\n  y = relu(x)\n  loss = reduce_sum(y)\n}\n"
    (tmp_path / "finding.nnir").write_text(f"# wrong: torch, relu\n{text}")
    assert status([asked, str(tmp_path), "--targets", "torch", "--format", "json"]) == 0
    plain = capsys.readouterr().out
    first = "# wrong: torch, relu\n# seen in its gradients\n"
    (tmp_path / "finding.nnir").write_text(f"{first}{text}")
    assert is_of_gradients(tmp_path / "finding.nnir")
    assert status([asked, str(tmp_path), "--targets", "torch", "--format", "json"]) == 0
    told = capsys.readouterr().out
    assert ("d_x" in told or "gradient" in told) is (asked != "reduce")
    assert "d_x" not in plain
    assert '"gradient"' not in plain
    no_loss = first + text.replace("  loss = reduce_sum(y)\n", "")
    (tmp_path / "finding.nnir").write_text(no_loss)
    assert status([asked, str(tmp_path), "--targets", "torch"]) == 2
