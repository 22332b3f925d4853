"""The modes of frameworks as targets: each runs what `irlang lower` writes for it."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from irlang.catalog import builtin
from irlang.cli import status
from irlang.diagnostics import InvalidInput
from irlang.diff.runner import Case, Session, is_turn
from irlang.gen.build import generate
from irlang.interp.shape import check
from irlang.interp.values import initial_values, inputs
from irlang.lower import target as targets
from irlang.lower.lower import lower
from irlang.lower.modes import ROWS
from irlang.lower.pool import Target, Worker, WorkerError
from irlang.lower.target import describe, names, require_installed, usual
from irlang.parser import parse
from tests.scripts import ran
from tests.targets import usable
from tests.test_lower_text import SMALL

MODES = [name for name in names() if ":" in name or name not in ROWS]
# What of a program's text says in which mode it is run.
SAID = {
    "torch:compile": "@torch.compile\ndef small(",
    "jax:jit": "@jax.jit\ndef small(",
    "tflite": "tf.lite.Interpreter(model_content=converter.convert(), num_threads=1)",
    "torch:export": "torch.export.export(Model(), values).module()(*values)",
    "tf:graph": "@tf.function(autograph=False)\ndef small(",
    "tf:xla": "@tf.function(autograph=False, jit_compile=True)\ndef small(",
}


# Keras 3.15 adds a bias along another axis where channels come first (docs/findings.md).
DEFECTS = {"keras:tensorflow": ("d_b",)}


def small() -> Case:
    checked = check(parse(SMALL, "model.nnir"), builtin())
    graph = checked.graphs[0]
    return Case(graph, inputs(graph, 1), initial_values(graph, 1), checked.catalog)


@pytest.mark.parametrize("target", MODES)
def test_a_mode_agrees_with_the_oracle(target: str) -> None:
    usable(target)
    python = ROWS[describe(target).framework].kind == "python"
    with Session([target]) as session:
        # The same program again, as where it is made smaller by its numbers alone.
        first = small()
        again = replace(first, inputs=inputs(first.graph, 2))
        outcomes = session.compare([first, again], grad=python)
    for outcome in outcomes:
        found = {v.name: v for v in outcome.verdicts[target]}
        assert set(found) >= {"probs"} | ({"d_image", "d_w", "d_b", "d_k"} if python else set())
        sound = {name: v for name, v in found.items() if name not in DEFECTS.get(target, ())}
        assert {v.verdict for v in sound.values()} <= {"agrees", "rounding"}, sound


@pytest.mark.parametrize("target", SAID)
def test_a_programs_text_shows_its_mode(target: str) -> None:
    case = small()
    found = lower(case.graph, target, case.catalog, case.params, grad=True)
    assert isinstance(found.code, str)
    assert SAID[target] in found.code
    assert found.target == target


@pytest.mark.parametrize("target", [name for name in SAID if name != "torch:compile"])
def test_a_program_of_a_mode_stands_alone(target: str, tmp_path: Path) -> None:
    usable(target)
    model = tmp_path / "small.nnir"
    model.write_text(SMALL, "utf-8")
    assert status(["lower", str(model), "--to", target]) == 0
    program = tmp_path / f"small_{target.replace(':', '_')}.py"
    given = tmp_path / "inputs.npz"
    np.savez(given, image=np.ones((2, 3, 8, 8), np.float32), label=np.zeros(2, np.int32))
    result = ran(target, program, given)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("probs float32 (2, 5)\n")


@pytest.mark.parametrize(
    ("target", "said"),
    [("onnxruntime:plain", "ORT_DISABLE_ALL"), ("onnx-reference", "ReferenceEvaluator")],
)
def test_the_script_of_a_model_file_shows_the_mode(target: str, said: str, tmp_path: Path) -> None:
    from irlang.lower.lower import write_program

    usable(target)
    case = small()
    found = lower(case.graph, target, case.catalog, case.params)
    script = write_program(found, tmp_path / "program", case.inputs)
    assert said in script.read_text("utf-8")
    result = ran(target, script)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("probs float32 (2, 5)\n")


def test_slow_modes_run_a_share_of_a_campaign() -> None:
    usable("tf:graph")
    share = describe("tf:graph").share
    assert share > 1
    with Session(["onnx-reference", "tf:graph"]) as session:
        cases = [small()] * (2 * share)
        outcomes = session.compare(cases, numbers=range(2 * share))
        assert all("onnx-reference" in outcome.verdicts for outcome in outcomes)
        ran = ["tf:graph" in outcome.verdicts for outcome in outcomes]
        assert sum(ran[:share]) == sum(ran[share:]) == 1
        again = session.compare(cases, numbers=range(2 * share))
        assert ["tf:graph" in outcome.verdicts for outcome in again] == ran
    # Alone it has nobody to wait for.
    assert Session(["tf:graph"]).shares == {"tf:graph": 1}


@pytest.mark.parametrize("share", [2, 4, 8, 16, 32])
def test_slow_modes_get_programs_of_every_kind(share: int) -> None:
    """Kinds of programs come in turns of 3, 4, 6, …: each has its share of those that are run."""
    due = [number for number in range(6000) if is_turn(number, share)]
    assert abs(len(due) - 6000 // share) <= 1
    for turn in (2, 3, 4, 6, 12):
        kinds = Counter(number % turn for number in due)
        assert min(kinds[kind] for kind in range(turn)) * turn * 2 > len(due)


def test_targets_tell_modes_apart(capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["targets", "--format", "json"]) == 0
    found = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert found["tf:xla"]["version"] == found["tf"]["version"]
    assert len({entry["about"] for entry in found.values()}) == len(found)
    assert all(found[name]["share"] == 1 for name in usual())


def test_a_mode_that_there_is_not() -> None:
    with pytest.raises(InvalidInput, match="no target `tf:xlaa`") as caught:
        describe("tf:xlaa")
    assert caught.value.diagnostics[0].help == "did you mean `tf:xla`?"
    with pytest.raises(InvalidInput, match="no target `onnxruntime:xla`"):
        describe("onnxruntime:xla")


def test_without_a_compiler_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    usable("torch")
    monkeypatch.setattr(targets, "_compiler", lambda: None)
    assert not describe("torch:compile").installed
    with pytest.raises(InvalidInput, match=r"torch:compile: no C\+\+ compiler is found"):
        require_installed("torch:compile")
    assert describe("torch").installed


@pytest.mark.parametrize(
    "target",
    [
        "torch:cuda", "torch:triton", "torch:tf32", "tf:gpu", "tf:tf32", "jax:gpu", "jax:tf32",
        "onnxruntime:cuda",
    ],
)  # fmt: skip
def test_without_a_gpu_the_reason_is_told(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "_gpu", lambda: False)
    found = describe(target)
    assert (found.installed, found.reason) == (False, "no GPU of NVIDIA is found here")


@pytest.mark.parametrize("target", ["torch:cuda", "torch:triton", "onnxruntime:cuda"])
def test_a_framework_that_finds_no_gpu_says_so(target: str) -> None:
    """It does not compute on the processor in its place."""
    usable(target.partition(":")[0])
    with (
        Worker(Target(target, environment={"CUDA_VISIBLE_DEVICES": ""})) as worker,
        pytest.raises(WorkerError, match="finds no GPU"),
    ):
        worker.hello()


def test_programs_for_a_gpu_say_so() -> None:
    case = small()
    full = "torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = "
    said = {
        "torch:cuda": f'torch.set_default_device("cuda")\n{full}False\n',
        "torch:tf32": f"{full}True\n",
        "torch:triton": f'torch.set_default_device("cuda")\n{full}False\n',
        "jax:gpu": '"cuda")\njax.config.update("jax_default_matmul_precision", "highest")\n',
        "jax:tf32": '"jax_default_matmul_precision", "tensorfloat32")\n',
        "tf:gpu": "\ntf.config.experimental.enable_tensor_float_32_execution(False)\n",
        "tf:tf32": "enable_tensor_float_32_execution(True)\n",
    }
    for target, text in said.items():
        assert text in str(lower(case.graph, target, case.catalog, case.params).code)


CONSTANTS = """nnir 1

model m(x: f32[1, 4, 2, 1], k: i64[4], w: f32[4, 1, 1]) -> y: f32[1, 1, 4, 2], b: i64[1, 4, 2, 1],
    c: i64[4], h: f32[2, 4, 1], z: f32[3] {
  y = depth_to_space(x; block_size = 2)
  b = bucketize(x; boundaries = [0.5, 2.0])
  c = bit_count(k)
  v = reshape(x; shape = [2, 4, 1])
  h, last, cell = lstm(v, w, w)
  z = full(; shape = [3], value = 2.5)
}
"""


def test_a_compiled_program_makes_its_constants_on_the_gpu() -> None:
    """There some take no notice of the default device (PyTorch 2.11)."""
    checked = check(parse(CONSTANTS, "model.nnir"), builtin())
    code = str(lower(checked.graphs[0], "torch:triton", checked.catalog, {}).code)
    function = ast.parse(code[code.index("@torch.compile") : code.index("def tensor")])
    made = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
    makers = {"torch.tensor", "torch.arange", "torch.zeros", "torch.full"}
    told = {ast.unparse(n.func): [k.arg for k in n.keywords] for n in made}
    assert makers <= told.keys()
    assert all(("device" in told[name]) == (name in makers) for name in told)


@pytest.mark.parametrize("target", ["tf", "tf:graph", "tf:keras", "keras:tensorflow"])
def test_what_tensorflow_has_no_kernel_for_is_unsupported(target: str) -> None:
    said = "Could not find device for node: {{node Acos}} = Acos[T=DT_HALF]\nAll kernels"
    assert re.search(describe(target).says_no, said)
    assert re.search(describe(target).says_no, "No registered 'EuclideanNorm' OpKernel for XLA")
    assert not re.search(describe(target).says_no, "Input dims must be <= 5 and >=1")


@pytest.mark.parametrize(
    ("target", "said", "known"),
    [
        ("torch", "tensor with optional 0 dim batch size for input, but got: [4, 0, 9]", True),
        ("torch", "tensor with optional 0 dim batch size for input, but got: [4, 10, 9]", False),
        ("torch", "weight to be at least 6 at dimension 0, but got weight of size [0, 1, 3]", True),
        ("torch", "weight to be at least 6 at dimension 0, but got weight of size [3, 1]", False),
        ("torch", "select(): index 0 out of range for tensor of size [0] at dimension 0", False),
        ("torch:export", "optional 0 dim size, but got: torch.Size([3, 0, 1, 1])", True),
        ("torch:export", "Could not guard on data-dependent expression Eq(u0, 1)", True),
        ("torch:export", "could not find kernel for aten.int_repr.default at dispatch key", True),
        ("torch:export", "tensor does not have a device", False),
        ("torch:vmap", "Only per-tensor quantization is supported in 'cat'!", True),
        ("tf:vmap", 'Input "filter" of op "Conv2D" expected to be loop invariant.', True),
        ("tf", 'Input "filter" of op "Conv2D" expected to be loop invariant.', False),
        ("torch", "Only per-tensor quantization is supported in 'cat'!", False),
        ("keras:torch", "all elements of input should be between 0 and 1", True),
        ("keras:torch", "value cannot be converted to type int32 without overflow", True),
        ("tf", "filter must not have zero elements (i.e. all dimensions must be non-zero)", True),
        ("tf", "Current CPU implementations do not yet support dilation rates above 1", True),
    ],
)
def test_what_takes_no_empty_tensor_by_its_own_words_is_unsupported(
    target: str, said: str, known: bool
) -> None:
    assert bool(re.search(describe(target).says_no, f"expected {said}")) == known


@pytest.mark.parametrize("target", ["jax", "jax:jit", "keras:jax"])
def test_an_element_type_that_jax_does_not_accept_is_unsupported(target: str) -> None:
    said = "iota does not accept dtype bool. Accepted dtypes are subtypes of integer"
    assert re.search(describe(target).says_no, said)
    assert not re.search(describe(target).says_no or "$^", "iota dimension must be between 0 and 1")


def test_an_export_that_names_an_operator_and_nothing_else_is_unsupported() -> None:
    says_no = describe("torch:export").says_no
    assert re.search(says_no, "aten.equal.default")
    assert not re.search(says_no, "aten.equal.default got another shape")


def test_what_tensorflow_lite_says_of_no_elements_is_unsupported() -> None:
    for said in (
        "Indices and updates specified for empty input for '{{node Scatter}}'",
        "Depth of filter must not be 0 for '{{node conv1d}}'",
        "error: 'arith.constant' op requires zero operands",
    ):
        assert re.search(describe("tflite").says_no, said)
    assert not re.search(describe("tflite").says_no, "'tfl.atan2' op requires the same type")


@pytest.mark.parametrize(
    ("target", "compiles"),
    [
        ("torch", False),
        ("torch:compile", True),
        ("tf:xla", True),
        ("jax:jit", True),
        ("jax", False),
    ],
)
def test_more_calls_take_hardly_longer_where_a_program_is_compiled_whole(
    target: str, compiles: bool
) -> None:
    assert describe(target).compiles == compiles  # JAX by itself compiles every operation
    usable(target)
    session = Session([target])
    assert session.slow() == session.takes_seconds(target) == compiles


_CONVERTED = (
    ast.If, ast.IfExp, ast.For, ast.While, ast.BoolOp, ast.Eq, ast.NotEq, ast.Not, ast.Assert,
    ast.Break, ast.Continue,
)  # fmt: skip


@pytest.mark.parametrize("seed", range(24))
def test_a_traced_function_has_nothing_that_autograph_would_convert(seed: int) -> None:
    """So it need not look: what is traced is the same without."""
    usable("tf:graph")
    catalog = builtin()
    graph = generate(catalog, seed).graph
    lowered = lower(graph, "tf:graph", catalog, initial_values(graph, seed))
    if lowered.unsupported:
        pytest.skip(lowered.unsupported[0])
    traced = [
        node
        for node in ast.parse(str(lowered.code)).body
        if isinstance(node, ast.FunctionDef) and node.decorator_list
    ]
    (function,) = traced
    found = [ast.dump(node) for node in ast.walk(function) if isinstance(node, _CONVERTED)]
    assert not found
