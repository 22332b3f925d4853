"""What a process shows once and no other: it is kept, says so, and stands behind all the rest."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from irlang.commands.fuzz import command as fuzz
from irlang.commands.report import command as report
from irlang.diff import gradients, runner, substitute
from irlang.diff.finding import find
from irlang.diff.found import Found
from irlang.diff.report_folder import write
from irlang.diff.runner import Session
from irlang.lower.lower import Lowered
from tests.planted import Fault, planted
from tests.test_reduce import case_of

pytest.importorskip("torch", reason="torch is not installed")

_AGED = 24  # programs after which a process is spoilt: more than one that is fresh is asked for
_TEXT = (
    "model m(x: f32[4]) -> y: f32[4] {\n  a = add(x, 1.0)\n  y = tanh(a)\n  loss = reduce_sum(y)\n}"
)
_WRONG = """
torch._ran = getattr(torch, "_ran", 0) + 1
if not hasattr(torch, "_right"):
    torch._right = torch.tanh
def _tanh(x, **options):
    return torch._right(x, **options) * (1.5 if torch._ran > AGED else 1.0)
torch.tanh = _tanh
"""


def _plant(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """A tanh that is wrong once a process has run so many programs."""
    fault = Fault(("tanh",), "tanh", _WRONG.replace("AGED", str(after)))
    for module in (runner, gradients, substitute):
        monkeypatch.setattr(module, "lower", planted(fault))


@pytest.fixture
def session() -> Iterator[Session]:
    with Session(["torch"]) as made:
        yield made


def _found(session: Session, grad: bool) -> Found:
    case = case_of(_TEXT)
    for _ in range(_AGED):
        outcome = session.compare([case], grad=grad)[0]
    return find(session, case, 1, "torch", outcome)


@pytest.mark.parametrize("grad", [False, True], ids=["forward", "backward"])
@pytest.mark.parametrize("after", [0, _AGED - 1], ids=["always", "once"])
def test_a_finding_says_whether_it_was_repeated(
    session: Session, after: int, grad: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _plant(monkeypatch, after)
    found = _found(session, grad)
    assert found.operator == "tanh"
    assert found.repeated == (after == 0)
    assert found.signature.endswith(" once") == (after > 0)
    assert not found.identity()["signature"].endswith(" once")  # known is known
    described = write(found, tmp_path, "f-001")
    assert described["repeated"] == found.repeated
    assert described["title"].endswith(" (not repeated)") == (after > 0)
    told = (tmp_path / "issue.md").read_text("utf-8")
    assert ("It was not repeated" in told) == (after > 0)
    first = (tmp_path / "finding.nnir").read_text("utf-8").partition("\n")[0]
    assert first.endswith(", not repeated") == (after > 0)


def test_a_campaign_keeps_it_behind_the_rest(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _plant(monkeypatch, _AGED - 1)
    arguments = ["--targets", "torch", "--ops", "tanh,cos", "--programs", "8", "--seed", "3"]
    out = ["--jobs", "1", "--out", str(tmp_path / "c")]
    ran = CliRunner().invoke(fuzz, [*arguments, *out, "--format", "json"], standalone_mode=False)
    once = [one for one in json.loads(ran.stdout)["findings"] if one["operator"] == "tanh"]
    assert once
    assert not any(one["repeated"] for one in once)
    page = tmp_path / "page.html"
    shown = CliRunner().invoke(report, [str(tmp_path / "c"), "-o", str(page)])
    assert shown.exit_code in (0, 1), shown.output
    assert f"{once[0]['verdict']} (not repeated)" in page.read_text("utf-8")


def test_what_is_refused_of_a_gradient_alone_is_shown_with_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A target without gradients of its own runs the adjoint equations as a program, which has no
    stages. Its finding has to be of that program: the one without gradients is not refused.
    """
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    right: Callable[..., Lowered] = vars(gradients)["lower"]

    def broken(*args: Any, **options: Any) -> Lowered:
        made = right(*args, **options)
        if not isinstance(made.code, bytes) or options.get("grad"):
            return made
        model = onnx.load_model_from_string(made.code)
        model.graph.node[0].domain = "unknown"
        model.opset_import.add(domain="unknown", version=1)
        return replace(made, code=model.SerializeToString())

    monkeypatch.setattr(gradients, "lower", broken)
    case = case_of(_TEXT)
    with Session(["onnxruntime"]) as own:
        assert own.compare([case])[0].verdicts["onnxruntime"][0].verdict == "agrees"
        outcome = own.compare([case], grad=True)[0]
        found = find(own, case, 1, "onnxruntime", outcome)
    assert (found.verdict.verdict, found.verdict.stage) == ("refused", "backward")
    assert found.repeated
    assert len(found.reduced.graph.nodes) < len(case.graph.nodes)
    write(found, tmp_path, "f-001")
    shown = onnx.load_model(str(tmp_path / "show_onnxruntime.onnx"))
    assert shown.graph.node[0].domain == "unknown"
