"""Steps of optimizers on targets: each judged by the parameters and gradients the target had."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from irlang.catalog import builtin
from irlang.cli import status
from irlang.commands.diff import command as diff
from irlang.diagnostics import InvalidInput
from irlang.diff import runner, training
from irlang.diff.runner import Case, Session
from irlang.diff.verdict import FINDINGS
from irlang.equations import TensorInfo
from irlang.interp.shape import check
from irlang.interp.values import initial_values, inputs
from irlang.lower.lower import Lowered, lower
from irlang.parser import parse
from tests.targets import usable

pytest.importorskip("torch", reason="torch is not installed")

MODEL = """nnir 1
model m(x: f32[5, 3] in [-1, 1], label: i64[5] in [0, 3]) -> logits: f32[5, 4] {
  param w: f32[3, 4] in [-1, 1]
  param b: f32[4] in [-1, 1]
  logits = tanh(dense(x, w, b))
  loss = cross_entropy(logits, label)
}
"""
STEPS = 3
TARGETS = [
    name
    for name, module in (("torch", "torch"), ("tf", "tensorflow"), ("onnxruntime", "onnxruntime"))
    if importlib.util.find_spec(module)
]


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with Session(TARGETS) as made:
        yield made


def _case() -> Case:
    checked = check(parse(MODEL, "m.nnir"), builtin())
    graph = checked.graphs[0]
    return Case(graph, inputs(graph, 3), initial_values(graph, 3), checked.catalog)


def _train(session: Session, target: str, text: str) -> list[Any]:
    case = _case()
    made = training.optimizer(text, case.catalog)
    outcome = session.only(target).compare([case], grad=True)[0]
    return training.train(session, case, target, made, STEPS, outcome)


# What PyTorch has of its own, and what it runs by the definition.
OWN = [
    "sgd", "sgd(momentum = 0.9, nesterov = true)", "sgd(momentum = 0.9, dampening = 0.5)",
    "sgd(lr = 0.1, weight_decay = 0.1)", "adam", "adam(lr = 0.1, amsgrad = true)",
    "adam(weight_decay = 0.1, decoupled = true)", "rmsprop",
    "rmsprop(centered = true, momentum = 0.5)", "adagrad(lr_decay = 0.1)", "adadelta(rho = 0.8)",
    "adamax(beta_1 = 0.8)", "nadam(momentum_decay = 0.1)", "radam(beta_2 = 0.7)",
    "nadam(weight_decay = 0.1, decoupled = true)", "rprop(grows = 1.5)",
]  # fmt: skip
DEFINED = [
    "adam(eps_to = raw)",
    "sgd(velocity_of = steps, momentum = 0.9)",
    "adamax(eps_to = largest)",
    "lion",
    "signum(momentum = 0.5)",
    "lamb",
    "ftrl(l1 = 0.01)",
]


@pytest.mark.parametrize("text", [*OWN, *DEFINED])
def test_steps_agree(text: str, session: Session) -> None:
    found = _train(session, "torch", text)
    assert not [v for v in found if v.verdict in FINDINGS]
    names = [v.name for v in found if v.stage == "step"]
    kept = training.optimizer(text, builtin()).kept
    assert len(names) == STEPS * 2 * (1 + len(kept))
    assert {"w after 1", "b after 3", *(f"w.{own} after 2" for own in kept)} <= set(names)
    assert {v.name for v in found if v.stage == "backward"} == {
        f"d_{name} at {number}" for name in "xwb" for number in (2, 3)
    }


KERAS = [
    "sgd(momentum = 0.9, velocity_of = steps, nesterov = true)",
    "sgd(weight_decay = 0.1, decoupled = true)", "rmsprop(eps_to = square, eps = 1e-7)",
    "rmsprop(eps_to = square, momentum = 0.5, centered = true, velocity_of = steps)",
    "adagrad(eps_to = square, eps = 1e-7)", "adadelta", "adam(eps_to = raw)",
    "adam(eps_to = raw, amsgrad = true, lr = 0.1)", "adamax(eps_to = largest)",
    "nadam(momentum_decay = 1)", "lion", "lamb(weight_decay = 0.1, decoupled = true)",
    "ftrl(l1 = 0.01, beta = 1)",
]  # fmt: skip


@pytest.mark.skipif("tf" not in TARGETS, reason="TensorFlow is not installed")
@pytest.mark.parametrize("text", KERAS)
def test_steps_of_keras_agree(text: str, session: Session) -> None:
    found = _train(session, "tf", text)
    assert len([v for v in found if v.stage == "step"]) >= STEPS * 2
    assert not [v for v in found if v.verdict in FINDINGS]


def _lowered(text: str, target: str, step: int) -> str:
    made = training.optimizer(text, builtin())
    graph = training.step_graph(made, [TensorInfo((3,), "f32")], step, builtin())
    return str(lower(graph, target, builtin(), initial_values(graph, 0)).code)


@pytest.mark.parametrize("text", [*OWN, *DEFINED])
@pytest.mark.parametrize("step", [1, 4])
def test_a_framework_takes_steps_of_its_own(text: str, step: int) -> None:
    assert ("torch.optim." in _lowered(text, "torch", step)) == (text in OWN)
    compiled = _lowered(text, "torch:compile", step)
    assert "torch.optim." not in compiled, "an object is no part of a program that is compiled"


@pytest.mark.skipif("tf" not in TARGETS, reason="TensorFlow is not installed")
def test_keras_takes_steps_of_its_own() -> None:
    for text in KERAS:
        assert "tf.keras.optimizers." in _lowered(text, "tf", 2), text
        assert "tf.keras.optimizers." not in _lowered(text, "tf:graph", 2), text
    assert "tf.keras.optimizers." not in _lowered("adam", "tf", 2), "eps is added elsewhere"


@pytest.mark.parametrize("target", ["keras:torch", "torch", "tf"])
@pytest.mark.parametrize("text", ["sgd(y, g)", "adam(y, g; eps_to = raw)", "lamb(y, g)"])
def test_a_step_leaves_what_it_was_fed_as_it_is(target: str, text: str) -> None:
    """A variable of Keras shares its memory with the tensor that it was made of, on PyTorch."""
    usable(target)
    op = builtin().op(text.partition("(")[0])
    assert op is not None
    first, second = ("".join(f", {a}{i}" for i in range(1, len(op.outputs))) for a in "ab")
    model = f"""nnir 1
    model m(x: f32[2], g: f32[2]) -> y: f32[2], z: f32[2], w: f32[2] {{
      y{first} = {text.replace("(y", "(x")}
      z{second} = {text}
      w = add(x, g)
    }}"""
    (graph,) = check(parse(model), builtin()).graphs
    fed = {"x": np.array([1, 2], np.float32), "g": np.array([3, -1], np.float32)}
    with Session((target,)) as alone:
        (outcome,) = alone.compare([Case(graph, fed, {}, builtin())])
    assert {v.verdict for v in outcome.verdicts[target]} <= {"agrees", "rounding"}


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_takes_steps(target: str, session: Session) -> None:
    found = _train(session, target, "adam(lr = 0.1)")
    assert {v.stage for v in found} == {"forward", "loss", "backward", "step"}
    assert {v.verdict for v in found} <= {"agrees", "rounding"}


# A fault in PyTorch's text, and the optimizer that has it.
PLANTED = {
    "another decay": ("adam", r"0\.999\)", "0.998)"),
    "the rate": ("sgd(momentum = 0.9)", r"lr=0\.0099\d*", "lr=0.010001"),
    "a momentum that is forgotten": (
        "sgd(momentum = 0.9)",
        r'"momentum_buffer": (\w+)',
        r'"momentum_buffer": \1 * 0',
    ),
    "a step too many": ("adam(lr = 0.1)", r'"step": torch\.tensor\(1\.0', r"\g<0> + 1"),
    "the other mean": (
        "adam",
        r'"exp_avg": (\w+), "exp_avg_sq": (\w+)',
        r'"exp_avg": \2, "exp_avg_sq": \1',
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_charged_to_the_step(
    name: str, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, before, after = PLANTED[name]
    edited = []

    def faulty(*args: Any, **options: Any) -> Lowered:
        made = lower(*args, **options)
        code, count = re.subn(before, after, str(made.code))
        edited.append(count)
        return dataclasses.replace(made, code=code)

    monkeypatch.setattr(runner, "lower", faulty)
    found = [v for v in _train(session, "torch", text) if v.verdict in FINDINGS]
    assert sum(edited)
    assert found
    assert {v.stage for v in found} == {"step"}


def test_an_optimizer_of_the_user(session: Session) -> None:
    """Any definition that takes a parameter and its gradient."""
    checked = check(
        parse(
            """nnir 1
op signs(x: f32[S..], gradient: f32[S..], trace: f32[S..] = 0; lr: real = 0.125)
    -> y: f32[S..], new_trace: f32[S..] {
  t[s.. < S..] = 0.5 * trace[s..] + gradient[s..]
  new_trace[s..] = t[s..]
  y[s..] = x[s..] - lr * sign(t[s..])
}
model m(x: f32[3] in [-1, 1]) -> y: f32[3] {
  param w: f32[3] in [1, 2]
  y = multiply(x, w)
  loss = reduce_sum(y)
}
""",
            "m.nnir",
        ),
        builtin(),
    )
    assert not checked.diagnostics
    graph = checked.graphs[0]
    given = {"x": np.array([0.5, -0.5, 0.25], np.float32)}
    case = Case(graph, given, initial_values(graph, 3), checked.catalog)
    made = training.optimizer("signs(lr = 0.25)", checked.catalog)
    assert made.kept == ("trace",)
    for target in TARGETS:
        outcome = session.only(target).compare([case], grad=True)[0]
        found = training.train(session, case, target, made, 2, outcome)
        assert {v.verdict for v in found} <= {"agrees", "rounding"}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("adamm", "usage.optimizer"), ("conv", "usage.optimizer"), ("add", "usage.optimizer"),
        ("adam(", "usage.optimizer"), ("adam(lrr = 1)", "model.attribute"), ("", "usage.optimizer"),
    ],
)  # fmt: skip
def test_what_is_no_optimizer(text: str, code: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        training.optimizer(text, builtin())
    assert raised.value.diagnostics[0].code == code


def test_the_command_takes_steps(tmp_path: Path) -> None:
    model = tmp_path / "m.nnir"
    model.write_text(MODEL)
    arguments = [str(model), "--targets", "torch", "--optimizer", "sgd(lr = 0.1)", "--steps", "2"]
    told = CliRunner().invoke(diff, [*arguments, "--format", "json"], standalone_mode=False)
    outputs = json.loads(told.output)["outputs"]
    assert {v["stage"] for v in outputs} == {"forward", "loss", "backward", "step"}
    shown = CliRunner().invoke(diff, arguments, standalone_mode=False)
    assert "results of steps of sgd(lr = 0.1), all agree" in shown.output


TRAINING = Path(__file__).parents[1] / "docs" / "training.md"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
NUMBERS = re.compile(r"[-+]?\d+(\.\d+)?(e-?\d+)?|\[[\d, ]*\]")


def _words(text: str) -> list[list[str]]:
    """Lines without what differs from machine to machine: errors, radii, places."""
    return [NUMBERS.sub("", line).split() for line in text.strip().splitlines()]


@pytest.mark.skipif(len(TARGETS) < 3, reason="a framework is not installed")
def test_the_transcript_is_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = TRAINING.read_text("utf-8")
    (model,) = re.findall(r"^```nnir title=(\S+)\n(.*?)^```$", whole, re.MULTILINE | re.DOTALL)
    (tmp_path / model[0]).write_text(model[1], "utf-8")
    monkeypatch.chdir(tmp_path)
    compared = 0
    for text in BLOCK.findall(whole):
        for command, shown in COMMAND.findall(text):
            program, *arguments = shlex.split(command)
            assert program == "irlang"
            status(arguments)
            printed = capsys.readouterr()
            lines = "".join(
                f"{line.rstrip()}\n" for line in (printed.out + printed.err).splitlines()
            )
            if os.environ.get("IRLANG_REWRITE"):
                whole = whole.replace(f"$ {command}\n{shown}", f"$ {command}\n{lines}")
            else:
                assert _words(lines) == _words(shown), command
            compared += 1
    assert compared >= 2
    if os.environ.get("IRLANG_REWRITE"):
        TRAINING.write_text(whole, "utf-8")
