"""Localising in two ways: by a call's own inputs, and by substitution across targets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import irlang
from irlang.catalog import builtin
from irlang.cli import status
from irlang.commands.localize import command
from irlang.diff import gradients, runner, substitute_gradient
from irlang.diff import substitute as module
from irlang.diff.localise import call_by_call, localise
from irlang.diff.runner import Session
from irlang.diff.substitute import ORACLE, across, substitute, verdict_of
from irlang.diff.substitute_gradient import differentiated
from irlang.diff.weighing import but_the_sum, weighed
from irlang.interp.gradient import gradients as gradients_of
from irlang.interp.program import run
from irlang.lower.lower import Lowered, lower
from tests.test_gradients import PLANTED
from tests.test_reduce import DEEP, FUSABLE, PAIR, WIDE, case_of, plant


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    with Session(["torch", "onnxruntime"]) as made:
        yield made


def plant_everywhere(monkeypatch: pytest.MonkeyPatch, pattern: str, fault: str) -> None:
    """A fault in whole programs and in single calls."""
    from irlang.diff import runner

    plant(monkeypatch, pattern, fault)
    monkeypatch.setattr(module, "lower", vars(runner)["lower"])


def test_a_program_runs_across_targets(session: Session) -> None:
    case = case_of(DEEP)
    names = [node.outputs[0] for node in case.graph.nodes]
    mixed = {**dict.fromkeys(names, "torch"), "h": "onnxruntime", "z": ORACLE}
    (values,) = across(session, case, [mixed])
    assert not isinstance(values, str)
    assert values["y"].dtype == np.float32
    assert verdict_of(case, values, "mixed") == "agrees"
    exact = run(case.graph, case.values, case.catalog)
    assert np.allclose(values["y"], exact["y"], atol=1e-4)


def test_the_culprit_ranks_first_and_is_verified(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant_everywhere(monkeypatch, WIDE, "dilation=(1, 1)")
    found = substitute(session, case_of(DEEP), "torch")
    assert found.whole == "wrong"
    assert found.culprit is not None
    assert found.culprit.op.name == "conv"
    assert (found.vanishes, found.stays) == (True, True)
    assert found.table[0].node is found.culprit
    assert {row.verdict for row in found.table[1:]} == {"wrong"}
    assert found.table[0].change > 1e-3 > max(row.change for row in found.table[1:])


def test_what_is_left_open_is_no_disagreement(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mask that differs from the oracle's changes more than any fault does."""
    beside = DEEP.replace(") -> ", ", n: f32[40]) -> e: f32[40], ").replace(
        "{", "{\n  e = multiply(100.0, dropout(n; training = true))", 1
    )
    for text in (beside, DEEP):
        assert substitute(session, case_of(text), "torch").whole in ("agrees", "rounding")
    plant_everywhere(monkeypatch, WIDE, "dilation=(1, 1)")
    found = substitute(session, case_of(beside), "torch")
    assert found.culprit is not None
    assert found.culprit.op.name == "conv"
    assert (found.vanishes, found.stays) == (True, True)


def test_what_is_wrong_only_together_has_no_culprit(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant_everywhere(monkeypatch, PAIR, r"\1 = \2\3\n\4torch.abs(\1)")
    found = substitute(session, case_of(FUSABLE), "torch")
    assert found.whole == "agrees"
    assert found.culprit is None


def test_a_value_that_an_optimiser_has_bypassed_accuses_nobody(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ONNX Runtime moves the divisor into the product: the quotient is shown, and not used.

    Its profile says so; whatever else is bypassed is not borne out.
    """
    case = case_of("""
model m(x: f32[32, 1]) -> h: f32[32, 1], y: f32[32, 3] {
  param t: f32[1, 3] = [[1.1, 1.7, 0.3]]
  h = divide(x, 1.3)
  y = matmul(h, t)
}
""")
    told = {True: ["agrees", "agrees"], False: ["agrees", "inaccurate"]}
    own = session.arithmetic["onnxruntime"]
    for folds, expected in told.items():
        said = replace(own, folds=folds)
        monkeypatch.setitem(session.arithmetic, "onnxruntime", said)
        judged = [v for _, vs, _ in call_by_call(session, case, "onnxruntime") for v in vs]
        assert [v.verdict for v in judged] == expected
        assert localise(session, case, "onnxruntime") is None


def _localize(path: Path, *arguments: str) -> Any:
    options = [str(path), "--targets", "torch,onnxruntime", *arguments]
    return CliRunner().invoke(command, options, standalone_mode=False, catch_exceptions=False)


def test_the_command_argues(
    session: Session,  # noqa: ARG001 -- both targets are there
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    path = tmp_path / "deep.nnir"
    # (ONNX Runtime's sigmoid is outside its radius, rightly reported)
    path.write_text(f"nnir 1\n{DEEP.replace('sigmoid', 'relu')}\n")
    good = _localize(path)
    assert good.return_value == 0
    assert "torch agrees with the oracle" in good.output
    plant_everywhere(monkeypatch, WIDE, "dilation=(1, 1)")
    bad = _localize(path)
    assert bad.return_value == 1
    assert "wrong: torch, operator `h` (conv), line 8" in bad.output
    assert "replacing `h` alone removes it; keeping `h` alone keeps it" in bad.output
    assert "both ways agree" in bad.output
    assert "onnxruntime agrees with the oracle" in bad.output
    told = json.loads(_localize(path, "--format", "json").output)["targets"]
    assert [(one["target"], one["verdict"]) for one in told] == [
        ("torch", "wrong"), ("onnxruntime", "agrees"),
    ]  # fmt: skip
    assert told[0]["agree"] is True
    path.write_text("nnir 1\nmodel m(x: f32[2]) -> y: f32[2] { y = negate(x) }\n")
    plant_everywhere(monkeypatch, r"torch\.neg\((\w+)\)", r"__import__('os').abort()")
    assert "crash: torch, operator `y` (negate), line 2\n" in _localize(path).output  # it alone
    path.write_text(f"nnir 1\n{DEEP.replace('sigmoid', 'relu')}\n")
    plant_everywhere(monkeypatch, WIDE, "dilation=(1, 1)")
    elsewhere = _localize(path, "--bind", "h=onnxruntime")
    assert elsewhere.return_value == 0
    assert "h on onnxruntime" in elsewhere.output


def test_the_command_says_what_is_fused(
    session: Session,  # noqa: ARG001
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    path = tmp_path / "fusable.nnir"
    path.write_text(f"nnir 1\n{FUSABLE}\n")
    plant_everywhere(monkeypatch, PAIR, r"\1 = \2\3\n\4torch.abs(\1)")
    bad = _localize(path)
    assert bad.return_value == 1
    assert "wrong: torch, add + negate" in bad.output
    assert "exposing any of `c` makes it vanish" in bad.output
    assert "no single operator is to blame" in bad.output


def plant_gradient(monkeypatch: pytest.MonkeyPatch, name: str) -> tuple[str, str]:
    """A fault in the gradient of an operator, wherever PyTorch runs it; the model and its name."""
    text, culprit, (before, after) = PLANTED[name]

    def faulty(*args: Any, **options: Any) -> Lowered:
        made = lower(*args, **options)
        return replace(made, code=re.sub(before, after, str(made.code)))

    for one in (gradients, runner, module, substitute_gradient):
        monkeypatch.setattr(one, "lower", faulty)
    return text, culprit


FAULTS = ["a factor in a convolution", "a factor in a loss", "of another function", "swapped gates"]


@pytest.mark.parametrize("name", FAULTS)
def test_a_gradient_at_fault_ranks_first_and_is_verified(
    name: str, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, culprit = plant_gradient(monkeypatch, name)
    found = substitute(session, case_of(text), "torch", grad=True)
    assert found.whole in ("wrong", "inaccurate")
    assert found.culprit is not None
    assert found.culprit.op.name == culprit
    assert (found.vanishes, found.stays) == (True, True)
    assert found.table[0].slope > 20 * max(row.slope for row in found.table[1:])


@pytest.mark.parametrize("target", ["torch", "onnxruntime"])
def test_a_gradient_runs_across_targets(target: str, session: Session) -> None:
    """PyTorch differentiates each call by itself, ONNX Runtime runs its adjoint equations."""
    case = case_of(PLANTED["of another function"][0])
    found = substitute(session, case, target, grad=True)
    assert found.whole in ("agrees", "rounding")
    assert found.culprit is None
    assert [row.node.op.name for row in found.table if row.slope > 1e-6] == []
    assert {row.node.name for row in found.table} == {node.name for node in case.graph.nodes}
    both = differentiated(session, case, target)
    names = [node.outputs[0] for node in case.graph.nodes]
    other = {"torch": "onnxruntime", "onnxruntime": "torch"}[target]
    (values,) = across(session, both, [{n: (target, other)[i % 2] for i, n in enumerate(names)}])
    assert verdict_of(both, values, "mixed") in ("agrees", "rounding")
    assert not isinstance(values, str)
    exact = gradients_of(case.graph, case.values, case.catalog)
    for name, array in exact.items():
        assert np.allclose(values[f"d_{name}"], array, atol=1e-4)


def _of_gradients(path: Path, text: str) -> Any:
    path.write_text(f"nnir 1\n{text}\n")
    options = [str(path), "--targets", "torch", "--grad"]
    return CliRunner().invoke(command, options, standalone_mode=False, catch_exceptions=False)


def test_the_command_names_the_gradient_at_fault(
    session: Session,  # noqa: ARG001
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    text, _ = plant_gradient(monkeypatch, "of another function")
    bad = _of_gradients(tmp_path / "network.nnir", text)
    assert bad.return_value == 1
    assert "torch agrees with the oracle in its values, and not in its gradients" in bad.output
    assert "gradient: wrong, starts at tanh (`" in bad.output
    assert "mean change  of gradients" in bad.output
    assert "replacing `a` alone removes it; keeping `a` alone keeps it" in bad.output
    assert "both ways agree" in bad.output


def test_a_gradient_is_bound_call_by_call(
    session: Session,  # noqa: ARG001
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """The gradient of a call runs where the call does."""
    text, culprit = plant_gradient(monkeypatch, "of another function")
    path = tmp_path / "network.nnir"
    path.write_text(f"nnir 1\n{text}\n")
    calls = {node.op.name: node.outputs[0] for node in case_of(text).graph.nodes}
    other = next(name for op, name in calls.items() if op != culprit)
    for call, elsewhere, good in (
        (calls[culprit], "oracle", True),
        (other, "oracle", False),
    ):
        options = [str(path), "--targets", "torch", "--grad", "--format", "json"]
        bad = CliRunner().invoke(
            command, [*options, "--bind", f"{call}={elsewhere}"], standalone_mode=False,
            catch_exceptions=False,
        )  # fmt: skip
        said = json.loads(bad.output)
        slopes = [one for one in said["results"] if one["name"].startswith("d_")]
        assert slopes
        assert bad.return_value == (0 if good else 1), bad.output
        assert all(one["verdict"] in ("agrees", "rounding") for one in slopes) == good
        assert {one["verdict"] for one in said["results"] if one not in slopes} <= {
            "agrees", "rounding",
        }  # fmt: skip


def test_a_fault_inside_the_radius_of_the_whole_is_still_seen_in_the_table(
    session: Session,  # noqa: ARG001
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    text, _ = plant_gradient(monkeypatch, "a factor in a convolution")
    bad = _of_gradients(tmp_path / "network.nnir", text)
    assert bad.return_value == 1
    assert "gradient: inaccurate, starts at conv" in bad.output
    assert "the change is inside the radius of the results" in bad.output
    assert bad.output.partition("of gradients  then\n")[2].lstrip().startswith("h (conv)")


def test_the_sum_that_is_differentiated_is_no_culprit() -> None:
    """Findings are not named after the loss that irlang adds, unless there is nothing else."""
    graph = irlang.loads("model m(x: f32[2]) -> y: f32[2] { y = relu(x) }").graph
    (relu,) = graph.nodes
    made, catalog = weighed(graph, builtin(), ["y"])
    assert [node.op.name for node in made.nodes] == ["relu", "weighted_sum"]
    assert but_the_sum(made) == [relu]
    alone, _ = weighed(replace(graph, nodes=[]), catalog, ["y"])
    assert len(but_the_sum(alone)) == 1
    assert but_the_sum(graph) == [relu]


@pytest.mark.parametrize("verb", ["diff", "localize", "reduce"])
def test_gradients_of_a_model_without_a_loss_are_not_said_to_agree(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "m.nnir"
    file.write_text("nnir 1\nmodel m(x: f32[2]) -> y: f32[2] {\n  y = tanh(x)\n}\n")
    assert status([verb, str(file), "--targets", "onnx-reference", "--grad"]) == 2
    assert "the model has no loss, so that there are no gradients" in capsys.readouterr().err
