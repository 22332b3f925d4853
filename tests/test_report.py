"""What a campaign hands over: a folder for every finding, a list of what is known, one page."""

from __future__ import annotations

import datetime as dt
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from irlang import ast
from irlang.catalog import builtin
from irlang.commands.report import command as report_command
from irlang.diagnostics import InvalidInput
from irlang.diff.finding import find
from irlang.diff.found import Found
from irlang.diff.outcome import _reason
from irlang.diff.reduce_files import packed
from irlang.diff.report_folder import write
from irlang.diff.report_issue import _quoted, issue
from irlang.diff.report_page import page
from irlang.diff.report_required import required
from irlang.diff.report_script import script
from irlang.diff.report_why import explain
from irlang.diff.report_words import first_words, last_words
from irlang.diff.runner import Session
from irlang.diff.suppress import known_as, read_known
from irlang.diff.verdict import Verdict, reason_of
from irlang.interp import exact, reference
from irlang.interp.balls import Ball
from irlang.lower.lower import lower
from irlang.lower.manner import USUAL, Manner
from irlang.lower.pool import Result
from irlang.lower.profile import read_profile
from irlang.lower.target import targets as all_targets
from irlang.parser import parse
from tests.scripts import ran
from tests.targets import usable
from tests.test_reduce import DEEP, FUSABLE, PAIR, WIDE, case_of, plant

# ---- why


WHY: dict[str, tuple[str, dict[str, Any], tuple[int, ...], list[str]]] = {
    "conv": (
        ("model m(x: f32[1, 1, 3]) -> y: f32[1, 1, 2] {\n"
        "  param w: f32[1, 1, 2] = [[[2, -1]]]\n  y = conv(x, w)\n}"),
        {"x": [[[1, 2, 3]]], "w": [[[2, -1]]]}, (0, 0, 1),
        [
            (
                "y[0, 0, 1]\n    = 0 + (x[0, 0, 1] * w[0, 0, 0] + x[0, 0, 2] * w[0, 0, 1])"
                "\n    = 0 + (2 * 2 + 3 * (-1))\n    = 1"
            )
        ],
    ),
    "max_pool": (
        ("model m(x: f32[1, 1, 3]) -> y: f32[1, 1, 3] {\n"
        "  y = max_pool(x; window = 2, pad = same, stride = 1)\n}"),
        {"x": [[[1, 2, 3]]]}, (0, 0, 2),
        ["y[0, 0, 2] = max(x[0, 0, 2], -inf) = max(3, -inf) = 3"],
    ),
    "reduce_sum": (  # what its type cannot hold
        "model m(x: i32[2]) -> y: i32[] {\n  y = reduce_sum(x)\n}",
        {"x": [2147483647, 1]}, (),
        ["y[] = x[0] + x[1] = 2147483647 + 1 = 2147483648 = -2147483648 modulo 2^32"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WHY)
def test_an_element_is_derived(name: str) -> None:
    text, given, index, lines = WHY[name]
    case = case_of(text)
    expansion = case.graph.nodes[0].expansion(case.catalog)
    kinds = {n: np.float64 if i.kind == "real" else np.int64 for n, i in expansion.tensors.items()}
    found = exact.evaluate(expansion, {n: np.array(a, kinds[n]) for n, a in given.items()})
    tensors = {n: value.numpy() for n, value in found.items()}
    assert explain(expansion, tensors, "y", index) == lines


def test_a_zero_has_its_sign_where_an_element_is_derived() -> None:
    case = case_of("model m(a: f32[], b: f32[]) -> y: f32[] {\n  y = copysign(a, b)\n}")
    expansion = case.graph.nodes[0].expansion(case.catalog)
    for zero, right in ((0.0, "abs(a[]) = abs(1) = 1"), (-0.0, "-abs(a[]) = -abs(1) = -1")):
        fed = {"a": np.array(1.0), "b": np.array(zero)}
        tensors = {**fed, **reference.evaluate(expansion, fed)}
        assert explain(expansion, tensors, "y", ()) == [f"y[] = {right}"]


# ---- what is known


def _known(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "known.toml"
    path.write_text(text, "utf-8")
    return path


FINDING = {"target": "tf", "operator": "conv", "verdict": "wrong", "signature": "tf wrong conv k"}
TODAY = dt.date(2026, 5, 1)


@pytest.mark.parametrize(
    ("entry", "covered"),
    [
        ('target = "tf"', True),
        ('target = "t*"\noperator = "conv"', True),
        ('target = "torch"', False),
        ('signature = "tf wrong conv*"', True),
        ('target = "tf"\nexpires = 2026-05-01', False),
        ('target = "tf"\nexpires = 2026-05-02', True),
    ],
)
def test_a_known_finding_is_covered_until_it_expires(
    entry: str, covered: bool, tmp_path: Path
) -> None:
    text = f'# a remark\n[[known]]\n{entry}\nreason = "issue 1"\n'
    known = read_known(_known(tmp_path, text))
    assert (known_as(FINDING, known, TODAY) is not None) is covered


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[known]]\n", "says no `reason`"),
        ('[[known]]\nreason = "x"\n', "would hide every finding"),
        ('[[known]]\ntarget = 1\nreason = "x"\n', "must be a text"),
        ('[[known]]\ntarget = "tf"\nreason = "x"\nexpires = "soon"\n', "must be a date"),
        ('[[known]]\nwhat = "tf"\n', "has `what`"),
        ("known = 3\n", "not [[known]]"),
        ("[[known\n", "no TOML"),
        ("known = " + "[" * 50_000, "no TOML"),
    ],
)
def test_a_list_that_is_at_fault_is_refused(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_known(_known(tmp_path, text))
    assert said in caught.value.diagnostics[0].message


@pytest.mark.parametrize("read", [read_known, read_profile])
def test_a_list_without_an_end_is_refused(read: Callable[[Path], object]) -> None:
    endless = Path("/dev/zero")
    if not endless.exists():
        pytest.skip("there is no such device")
    with pytest.raises(InvalidInput, match="too large"):
        read(endless)


# ---- the folder of a finding


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    with Session(["torch", "onnxruntime"]) as made:
        yield made


def _found(session: Session, text: str) -> Found:
    case = case_of(text)
    return find(session, case, 1, "torch", session.compare([case])[0])


def test_a_finding_is_a_folder_that_needs_no_irlang(
    session: Session, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plant(monkeypatch, WIDE, "dilation=(1, 1)")
    found = _found(session, DEEP)
    assert found.signature == "torch wrong conv dilation pad=same"
    assert found.others == {"onnxruntime": "agrees"}
    described = write(found, tmp_path, "f-001")
    assert described["elements"] == 3
    names = {path.name for path in tmp_path.iterdir()}
    assert names >= {"finding.nnir", "finding.safetensors", "issue.md", "program.nnir"}
    assert (tmp_path / "finding.nnir").read_text().startswith("# wrong: torch, conv\n")
    for target in ("torch", "onnxruntime"):
        script = tmp_path / f"show_{target}.py"
        text = script.read_text()
        assert "irlang" not in text
        assert target != "onnxruntime" or "# Opset: ai.onnx" in text
        assert target != "onnxruntime" or "= Conv <" in text
        # the model of ONNX Runtime is inside, so that the script stands alone
        alone = tmp_path / "alone" / script.name
        alone.parent.mkdir(exist_ok=True)
        alone.write_text(text)
        result = ran(target, alone)
        assert result.returncode == 0, result.stderr
        assert "y expected [[[[0]]]]" in result.stdout
        assert "def " not in text
        assert "numpy" in result.stdout
    issue = (tmp_path / "issue.md").read_text()
    title = "conv2d (conv, dilation = 2, pad = same) gives 1 for y[0, 0, 0, 0], not 0"
    assert issue.startswith(f"# PyTorch {found.version}: {title}\n")
    assert "- ONNX Runtime 1." in issue
    assert "agrees with the definition" in issue
    assert re.search(r"y\[0, 0, 0, 0\] = 0 \* w\[0, 0, 0, 0\] \+ 0 \* w\[0, 0, [01, ]+\]", issue)
    # an element of the whole program, where the reduced one has fewer axes, is not derived
    elsewhere = replace(found, verdict=replace(found.verdict, index=(9, 1, 5)))
    write(elsewhere, tmp_path / "elsewhere", "f-002")
    assert "For this element" in issue
    assert "For this element" not in (tmp_path / "elsewhere" / "issue.md").read_text()


NARROW = """
model m(x: bf16[1], w: bf16[2]) -> y: bf16[1], w2: bf16[2] {
  y = negate(x)
  w2 = identity(w)
}"""
TARGETS = ["torch", "tf", "jax", "onnx-reference", "onnxruntime", "openvino"]


def test_what_is_left_open_is_named_and_not_taken_for_what_is_right(
    session: Session, tmp_path: Path
) -> None:
    """ONNX Runtime takes the probability of 1 for that of 0."""
    case = case_of("model m(p: f32[4] in [0, 1]) -> y: f32[4] {\n  y = bernoulli(p)\n}")
    case.inputs["p"] = np.array([0, 0, 0, 0.5], np.float32)
    outcome = session.only("onnxruntime").compare([case])[0]
    if all(v.verdict == "agrees" for v in outcome.verdicts["onnxruntime"]):
        pytest.skip("this release draws from the right law")
    write(find(session, case, 1, "onnxruntime", outcome), tmp_path, "f-001")
    text = (tmp_path / "issue.md").read_text()
    assert "`u` is left open: its elements are drawn from uniform(0, 1)." in text
    assert "- `y` has the shape" in text
    assert "- `y` is `" not in text


@pytest.mark.parametrize(
    ("target", "dtype"), [*((t, "bf16") for t in TARGETS), ("torch", "f16"), ("onnxruntime", "f32")]
)
def test_scripts_write_numbers_as_numbers(target: str, dtype: str, tmp_path: Path) -> None:
    """Whatever their type: bfloat16 is no number of NumPy's, and a float32 has its own digits."""
    described = usable(target)
    case = case_of(NARROW.replace("bf16", dtype))
    number = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32}[dtype]
    case.inputs.update(x=np.array([0.1], number), w=np.array([np.inf, -1.5], number))
    lowered = lower(case.graph, target, case.catalog, case.params)
    if lowered.unsupported:
        pytest.skip(lowered.unsupported[0])
    wanted = {"y": "[-0.1]", "w2": "[inf, -1.5]"}
    path = tmp_path / "show.py"
    narrow = ["x", "w", "y", "w2"] if dtype == "bf16" else []
    path.write_text(script(lowered, case.inputs, wanted, "about", "finding.safetensors", narrow))
    result = ran(target, path, python=described.worker.python)
    if "NOT_IMPLEMENTED" in result.stderr:
        pytest.skip("there is no kernel of that type")
    assert result.returncode == 0, result.stderr
    assert f"y got      [{'-0.100097656' if dtype == 'bf16' else '-0.1'}]" in result.stdout
    assert "w2 got      [ inf, -1.5]" in result.stdout


STRAIGHT = """
model m(x: f32[2, 3], n: i64[0]) -> y: f32[2, 2], z: i64[0], s: f32[] {
  param w: f32[3, 2] = [[1, -2.5], [0, 0.5], [3, 1]]
  y = relu(matmul(x, w))
  z = negate(n)
  s = reduce_sum(x)
}"""
EAGER = ["torch", "tf", "jax", "keras:tensorflow", "keras:torch", "keras:jax"]


@pytest.mark.parametrize("target", EAGER)
def test_scripts_of_eager_targets_are_what_somebody_would_type(target: str, tmp_path: Path) -> None:
    for text in _told(target, tmp_path):
        assert "def " not in text


@pytest.mark.parametrize("target", ["torch:vmap", "tf:vmap", "jax:vmap"])
def test_scripts_of_samples_side_by_side_say_how_many_there_are(
    target: str, tmp_path: Path
) -> None:
    for text in _told(target, tmp_path):
        assert "INPUTS" not in text
        assert "    count = 2\n" in text
        assert "batched(m, [x, n, w])" in text


@pytest.mark.parametrize("target", ["torch:export", "tf:graph", "tf:xla", "jax:jit"])
@pytest.mark.parametrize("turn", [0, 1])
def test_scripts_of_modes_keep_what_is_compiled_a_function(
    target: str, turn: int, tmp_path: Path
) -> None:
    for text in _told(target, tmp_path, Manner(turn=turn)):
        assert "INPUTS" not in text
        assert "def m(x, n, w):\n" in text
        assert "Takes" not in text
        fixed = turn == 1 and target != "torch:export"
        assert ("def fixed(x, n):\n    return m(x, n, w)\n" in text) is fixed


def test_a_script_hands_the_model_to_what_converts_it(tmp_path: Path) -> None:
    usable("tflite")
    case = case_of("model m(x: f32[2]) -> y: f32[2] { y = negate(x) }")
    case.inputs.update(x=np.array([1, -2], np.float32))
    lowered = lower(case.graph, "tflite", case.catalog, case.params)
    text = script(lowered, case.inputs, {}, "about", "finding.safetensors")
    assert "y, = converted(m, [x])" in text
    path = tmp_path / "show.py"
    path.write_text(text)
    result = ran("tflite", path)
    assert result.returncode == 0, result.stderr
    assert "y got      [-1.,  2.]" in result.stdout


def _told(target: str, folder: Path, manner: Manner = USUAL) -> Iterator[str]:
    """The scripts of a program on a target: of its results' elements, and of their types."""
    described = usable(target)
    case = case_of(STRAIGHT)
    lowered = lower(case.graph, target, case.catalog, case.params, manner=manner)
    if lowered.unsupported:
        case = case_of(STRAIGHT.replace("  z = negate(n)\n", "  z = identity(n)\n"))
        lowered = lower(case.graph, target, case.catalog, case.params, manner=manner)
    assert not lowered.unsupported
    case.inputs.update(x=np.array([[1, 2, 3], [-4, 5, 0.5]], np.float32))
    for typed in (False, True):
        text = script(lowered, case.inputs, {"s": "7.5"}, "about", "finding.safetensors", (), typed)
        yield text
        path = folder / "show.py"
        path.write_text(text)
        result = ran(target, path, python=described.worker.python)
        assert result.returncode == 0, result.stderr
        said = result.stdout.splitlines()
        assert said[0].startswith("python ")
        assert "numpy" in said[0]
        if typed:
            assert said[1] == "y got      float32[2, 2]"
        else:
            got = "".join(said[1:3]).replace(" ", "")
            assert got == "ygot[[10.,1.5],[0.,13.]]"
        assert said[-3:] == [
            f"z got      {'int64[0]' if typed else '[]'}",
            "s expected 7.5",
            f"s got      {'float32[]' if typed else '7.5'}",
        ]


KERAS = {"keras:torch": "torch", "keras:jax": "jax"}


@pytest.mark.parametrize("target", [*KERAS, "keras-theano", "jax", "mxnet-1.6"])
@pytest.mark.parametrize("beside", [False, True])
def test_scripts_with_functions_set_what_comes_before_a_framework(
    target: str, beside: bool, tmp_path: Path
) -> None:
    """Such as the backend of Keras, which is chosen when it is imported."""
    described = usable(target)
    size = 128 if beside else 2
    case = case_of(
        f"model m(x: f32[{size}] in [1, 2]) -> y: f32[{size}] {{\n"
        "  y = exp(x)\n  loss = reduce_sum(y; axes = 0)\n}"
    )
    lowered = lower(case.graph, target, case.catalog, case.params, grad=True)
    if beside:
        (tmp_path / "finding.safetensors").write_bytes(packed(case.inputs, {"x": "f32"}))
    path = tmp_path / "show.py"
    text = script(lowered, case.inputs, {}, "about", "finding.safetensors")
    told = '\nprint("backend", keras.config.backend())\n' if target in KERAS else ""
    path.write_text(text + told)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("KERAS", "THEANO"))}
    result = subprocess.run(
        [described.worker.python, path], capture_output=True, text=True, check=False,
        env={**environment, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "d_x got" in result.stdout
    if (backend := KERAS.get(target)) is not None:
        assert f"backend {backend}" in result.stdout


SLOPED = """
model m(x: f32[2], n: i64[3], unused: f32[1]) -> loss: f32[] {
  param table: f32[3, 2] = [[1, -2.5], [0, 0.5], [3, 1]]
  loss = reduce_sum(multiply(square(x), gather(table, n; axis = 0)))
}"""


@pytest.mark.parametrize("framework", ["torch", "tf", "mxnet", "jax"])
def test_gradients_are_written_as_somebody_would(framework: str, tmp_path: Path) -> None:
    """By rows of a table, by what is squared, and by what the loss does not depend on."""
    there = (t for t in all_targets() if t.framework == framework and t.installed)
    target = next((t for t in there if t.mode == ""), None)
    case = case_of(SLOPED)
    case.inputs.update(x=np.array([1, 2], np.float32), n=np.array([2, 0, 2]))
    case.graph.loss = case.graph.outputs["loss"]
    lowered = lower(case.graph, framework, case.catalog, case.params, grad=True)
    text = script(lowered, case.inputs, {"d_x": "[14, -2]"}, "about", "finding.safetensors")
    assert text.count("def ") == (framework == "jax")  # which differentiates functions
    path = tmp_path / "show.py"
    path.write_text(text)
    compile(text, path, "exec")
    if target is None:
        pytest.skip(f"{framework} is not installed: its script is written, and not run")
    result = ran(framework, path, python=target.worker.python)
    assert result.returncode == 0, result.stderr
    said = [line.replace(" ", "") for line in result.stdout.splitlines()]
    assert said[said.index("d_xexpected[14,-2]") + 1] == "d_xgot[14.,-2.]"
    assert "d_unusedgot[0.]" in said
    assert "".join(said[-3:]) == "d_tablegot[[1.,4.],[0.,0.],[2.,8.]]"


def test_whole_numbers_keep_all_their_digits(
    session: Session, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plant(monkeypatch, r"torch\.neg\((\w+)\)", r"(-\1 + (\1 > 2**60))")
    case = case_of("model m(x: i64[1]) -> y: i64[1] { y = negate(x) }")
    case.inputs.update(x=np.array([2**62]))
    found = find(session, case, 1, "torch", session.compare([case])[0])
    write(found, tmp_path, "f-001")
    issue = (tmp_path / "issue.md").read_text()
    number = int(found.reduced.inputs["x"][0])
    assert f"gives {1 - number} for y[0], not {-number}\n" in issue
    assert f"`y[0]` is `{-number}`" in issue
    assert f"`{1 - number}`, off by `1`" in issue


def test_an_element_that_a_smaller_program_has_not_is_left_out(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch, r"torch\.neg\((\w+)\)", r"(-\1 + 1)")
    case = case_of("model m(x: f32[1]) -> y: f32[1] { y = negate(x) }")
    case.inputs.update(x=np.array([2], np.float32))
    found = find(session, case, 1, "torch", session.compare([case])[0])
    assert "For this element:" in issue(found, "", "")
    elsewhere = replace(found, verdict=replace(found.verdict, index=(26,)))
    assert "For this element:" not in issue(elsewhere, "", "")


def test_operators_that_are_wrong_together_are_named_together(
    session: Session, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plant(monkeypatch, PAIR, r"\1 = \2\3\n\4torch.abs(\1)")
    found = _found(session, FUSABLE)
    assert found.operator == "add + negate"
    write(found, tmp_path, "f-001")
    text = (tmp_path / "issue.md").read_text()
    assert "fed with the same numbers, is right" in text
    program = text.rpartition("```\nnnir 1\n")[2]
    for node in found.reduced.graph.nodes:  # each definition beside its own call
        call = re.search(rf"^ +(.* = {node.op.name}\(.*\))$", program, re.MULTILINE)
        assert call is not None
        assert f"The definition of `{node.op.name}` says of `{call[1]}`:" in text
    handed = found.reduced.graph.nodes[0].outputs[0]
    assert re.search(rf"In between:\n\n- `{handed}` is `.*`\n", text)


def test_a_truth_is_told_as_one(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not as a number."""
    plant(monkeypatch, r"torch\.logical_not\((\w+)\)", r"\1")
    found = _found(session, "model m(x: bool[3]) -> y: bool[3] {\n  y = logical_not(x)\n}")
    assert re.search(r"gives (true for y, not false|false for y, not true)$",
                     issue(found, "", "").splitlines()[0])  # fmt: skip
    assert "off by" not in issue(found, "", "")


def test_a_call_that_is_wrong_in_its_program_alone_is_named_with_what_stands_there(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("irlang.diff.finding.SECONDS", 60.0)
    beside = PAIR.partition("(?=")[0]  # whether or not the sum is a result
    plant(monkeypatch, beside, r"\1 = \2\3\n\4torch.abs(\1)")
    found = _found(session, FUSABLE)
    assert found.operator == "add + negate"
    assert [node.op.name for node in found.reduced.graph.nodes] == ["add", "negate"]


# fires where five calls follow one another of which only the last is asked for
CHAIN = (
    r"(?s)(\w+) = torch\.tanh\((\w+)\)([^\n]*\n +)(\w+) = torch\.exp\(\1\)([^\n]*\n +)"
    r"(\w+) = torch\.sin\(\4\)([^\n]*\n +)(\w+) = torch\.cos\(\6\)([^\n]*\n +)"
    r"(\w+) = torch\.{last}\(\8\)(?=(?:(?!return [^\n]*\b(?:\1|\4|\6|\8)\b).)*$)"
)
CHAINED = (
    r"\1 = torch.tanh(\2)\3\4 = torch.exp(\1)\5\6 = torch.sin(\4)\7\8 = torch.cos(\6)\9\g<10> = "
)


@pytest.mark.parametrize("wrong", ["1 + torch.abs(\\8)", "[\\8][1]"])
def test_a_fusion_of_many_calls_is_named_by_all_of_them(
    session: Session, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wrong: str
) -> None:
    monkeypatch.setattr("irlang.diff.finding.SECONDS", 60.0)  # however busy the machine is
    signatures = set()
    for last in ("atan", "sinh"):
        with monkeypatch.context() as patch:
            plant(patch, CHAIN.replace("{last}", last), CHAINED + wrong)
            calls = ["negate", "tanh", "exp", "sin", "cos", last, "relu"]
            body = "\n".join(f"  v{n + 1} = {call}(v{n})" for n, call in enumerate(calls))
            head = "model m(v0: f32[2, 3]) -> v7: f32[2, 3]"
            found = _found(session, f"{head} {{\n{body}\n}}")
        assert found.operator == f"tanh + exp + sin + cos + {last}"
        signatures.add(found.signature)
    assert len(signatures) == 2
    write(found, tmp_path, "f-001")
    issue = (tmp_path / "issue.md").read_text()
    assert f"tanh + exp + sin + cos + {last}" in issue.splitlines()[0]
    fused = "fed with the same numbers, is right" in issue
    assert fused == (found.verdict.verdict != "refused")


# ---- the page of a campaign


class _Page(HTMLParser):
    """Whether tags are closed in order, and what the page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "br", "path", "rect"):
            self.open.append(tag)
        self.fetched += [value or "" for name, value in attrs if name == "src"]
        self.fetched += [tag] if tag in ("script", "link", "iframe") else []
        self.links += [value or "" for name, value in attrs if name == "href"]

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("path", "rect"):
            assert self.open.pop() == tag


def test_a_campaign_is_one_page(
    session: Session, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plant(monkeypatch, WIDE, "dilation=(1, 1)")
    found = _found(session, DEEP)
    described = write(found, tmp_path / "f-001", "f-001")
    report = {
        "programs": 10, "seconds": 4.0, "seed": 7, "findings": [described],
        "known": {"<issue 1>": 2}, "targets": {"torch": {"agrees": 9, "wrong": 1}},
        "coverage": {"operators": 1, "of": 3, "uses": {"conv": 4}},
    }  # fmt: skip
    text = page(tmp_path, report, {"torch": "2.13"})
    reader = _Page()
    reader.feed(text)
    assert reader.open == []
    assert reader.fetched == []
    for link in reader.links:
        assert link.startswith("#") or (tmp_path / link).is_file(), link
    away = tmp_path / "away"  # it may be written elsewhere
    away.mkdir()
    reader = _Page()
    reader.feed(page(tmp_path, report, {"torch": "2.13"}, away))
    assert all(link.startswith("#") or (away / link).is_file() for link in reader.links)
    assert "&lt;issue 1&gt;" in text
    assert text.count('<rect class="culprit"') == 1
    assert re.search(r"f32\[1, 1, (1, 2|2, 1)\]", text)
    assert '<td class="number bad">1</td>' in text
    assert str(tmp_path) not in text


def test_the_command_needs_a_campaign(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        CliRunner().invoke(report_command, [str(tmp_path)], standalone_mode=False,
                           catch_exceptions=False)  # fmt: skip
    assert "holds no campaign" in caught.value.diagnostics[0].message


_CODE = "[ONNXRuntimeError] : 1 : FAIL : "
_NODE = f"{_CODE}Non-zero status code returned while running A node. Name:'' Status Message: "
_PLACE = "/src/core/helper.h:91 onnxruntime::R::R(const S&, bool) a == b was false. "
_FROM = "Exception from src/inference/core.cpp:117:\nException from src/plugin.cpp:54:\n"
_TF = "{{function_node __wrapped__MirrorPad_device_/job:localhost/device:CPU:0}} "
SAID = {
    (
        "backend='aot_eager_decomp_partition' raised:\nRuntimeError: Expected weight of size 4, but"
        " got [1]\n\nSet TORCHDYNAMO_VERBOSE=1 for the internal stack trace"
    ): "Expected weight of size 4, but got [1]",
    f"{_NODE}Unexpected mode of 3": "Unexpected mode of 3",
    f"{_NODE}{_PLACE}The input cannot be reshaped. {{2}}": "The input cannot be reshaped",
    f"{_NODE}/src/gemm.h:59 ort::Gemm::Gemm(const S&, bool) M_ >= 0 && K_ > f(0) was false. ": (
        "M_ >= 0 && K_ > f(0) was false"
    ),
    f"{_NODE}/src/gemm.h:59 std::vector<int> ort::Size(const S&) const K_ > 0 was false. ": (
        "K_ > 0 was false"
    ),
    f"{_TF}paddings must be less: 0, 0 not less [Op:MirrorPad]": "paddings must be less",
    f"{_CODE}Invalid model. Node input 'h' is not there.": (
        "Invalid model. Node input 'h' is not there"
    ),
    f"{_CODE}Exception during initialization: {_PLACE}Invalid size": "Invalid size",
    "[05:36:47] include/mxnet/./tuple.h:220: Check failed: i >= 0 && i < ndim(): index = -1 must be"
    " in range [0, 1)\nStack trace:\n  [bt] (0) /lib/libmxnet.so(+0x307d3b) [0x7ff37cf07d3b]": (
        "i >= 0 && i < ndim(): index = -1 must be in range [0, 1)"
    ),
    "[05:37:32] src/nn/deconvolution.cc:105: only 1D or 2D is supported\nStack trace:\n  [bt]": (
        "only 1D or 2D is supported"
    ),
    "killed by SIGFPE": "killed by SIGFPE",
    f"{_FROM}[LSTMCellDecomposition] END: node: opset4::LSTMCell (f32[1,1]) CALLBACK HAS THROWN: "
    f"{_FROM}Unsupported activation function": "Unsupported activation function",
    f"{_FROM}Check 'i < size()' failed at src/core/reshape.hpp:310:\nWhile validating node 'Reshape"
    " r (x[0]:f32[0]) -> (f32[1,0,1])' with friendly_name 'r':\nShape inference input shapes "
    "{[0],[3]}\n'0' dimension is out of range": "'0' dimension is out of range",
    "": "",
    "a" * 200: f"{'a' * 100} …",
}


@pytest.mark.parametrize("message", SAID)
def test_a_title_has_the_reason_and_not_what_stands_around_it(message: str) -> None:
    assert first_words(message, 100) == SAID[message]


def test_reasons_are_told_apart_behind_the_places_that_they_come_from() -> None:
    """Some say more of these than are read of a reason."""
    places = "".join(f"Exception from src/part/of/plugin/file_{n}.cpp:54:\n" for n in "abcdefgh")
    said = [reason_of(f"{places}{reason}") for reason in ("no such kernel", "of another shape")]
    assert said == ["such kernel", "another shape"]


REQUIRED = {
    ("max_pool", "halo"): {"K", "span"},
    ("max_pool", "stride"): set[str](),
    ("attention", "sizes"): set[str](),
}


@pytest.mark.parametrize(("name", "broken"), REQUIRED)
def test_an_issue_shows_the_requirement_that_is_broken_and_what_it_reads(
    name: str, broken: str
) -> None:
    """Of an invalid call nobody has to look for the line that it breaks."""
    op = builtin().op(name)
    assert op is not None
    case = case_of("model m(x: f32[1, 1, 4]) -> y: f32[1, 1, 4] {\n  y = identity(x)\n}")
    lines = required(replace(case.graph.nodes[0], op=op), "it is so", broken)
    text = "\n".join(lines)
    assert "it is so" in lines[0]
    shown = parse("nnir 1\n" + text.split("```")[1], "issue.md").items[0]
    assert isinstance(shown, ast.Op)
    assert shown.inputs == op.inputs
    requires = [s.name for s in shown.body if isinstance(s, ast.Require)]
    assert requires == [broken] * (broken != "sizes")
    assert {s.name for s in shown.body if isinstance(s, ast.Let)} == REQUIRED[name, broken]


def test_where_a_framework_is_installed_is_nobodys_business() -> None:
    said = "  [bt] (0) /home/me/env/lib/python3.11/site-packages/mxnet/libmxnet.so(+0x307d3b) and "
    quoted = " ".join(_quoted(said + 'File "/home/me/my env/lib/site-packages/tf.py", line 3'))
    assert "me" not in quoted.split()
    assert "…/site-packages/mxnet/libmxnet.so(+0x307d3b)" in quoted
    assert "/src/a.cc:3" in " ".join(_quoted("/src/a.cc:3"))


@given(st.text())
def test_whatever_a_framework_says_has_a_reason_on_one_line(message: str) -> None:
    said = first_words(message, 100)
    assert len(said) <= 102
    assert len(said.splitlines()) <= 1


@given(st.text(alphabet="`ab \n<"))
def test_what_a_framework_says_stays_between_its_marks(message: str) -> None:
    first, *lines, last = _quoted(message)
    assert first == last
    assert set(first) == {"`"}
    assert not any(first in line for line in lines)


def test_last_words_end_where_the_stack_begins() -> None:
    printed = "terminate called\nFatal Python error: Aborted\n\nCurrent thread 0x1 (most recent)"
    assert last_words(printed) == "terminate called"
    assert last_words("a " * 1000).startswith("… a a")
    glog = (
        "F0000 a.cc:3] Check failed: 1 == 0\n*** Check failure stack trace: ***\n    @ 0x1 main()"
    )
    assert last_words(glog) == "F0000 a.cc:3] Check failed: 1 == 0"


@pytest.mark.parametrize(
    "place", ["/home/a/irlang/lower/worker.py:991:1", "/usr/lib/tensorflow/eager/function.py:696:1"]
)
def test_what_a_compiler_traces_back_in_python_is_left_out(place: str) -> None:
    """TensorFlow Lite's converter says where in Python an operator came from."""
    error = (
        f"{place}: error: 'tfl.batch_matmul' op failed\n    main(sys.argv[1:])\n^\n"
        f"{place}: note: called from\n    main(sys.argv[1:])\n^\n<unknown>:0: note: here"
    )
    said = _reason(Result("refused", {}, {}, error, {}, 0.0))
    assert said == "error: 'tfl.batch_matmul' op failed\n<unknown>:0: note: here"
    bare = (
        f"{place}: error: it failed\n{place}: note: called from\n<program>:2:0: note: called from"
    )
    assert _reason(Result("refused", {}, {}, bare, {}, 0.0)).strip() == "error: it failed"


def test_what_is_long_is_told_in_words_and_sums_without_what_is_0() -> None:
    """Of a cubic resize the equations are three screens, and most terms are 0 whatever is read."""
    text = """model m(x: f32[1, 1, 2, 1] in [-1, 1]) -> y: f32[1, 1, 3, 1] {
      y = resize(x; size = [3, 1], mode = cubic, cubic_coeff = -0.5, exclude_outside = true)
    }"""
    case = case_of(text)
    case.inputs["x"] = np.array([[[[1], [2]]]], np.float32)
    verdict = Verdict("y", "torch", "wrong", 1.0, 1e-6, (0, 0, 2, 0), 2.06, 3.0)
    ball = Ball(np.full((1, 1, 3, 1), 2.06))
    told = issue(
        Found(0, "torch", verdict, "resize", {}, "", case, case, expected={"y": ball}),
        "",
        "show.py",
    )
    why = told.partition("## Expected")[2].partition("## Actual")[0]
    assert "> Another size along `axes`" in why
    assert "sum(" not in why
    assert len(why.splitlines()) < 40
    assert "+ 0 +" not in why
    assert "x[0, 0, 1, 0]" in why
