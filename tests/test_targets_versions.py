"""Versions of frameworks as targets: environments of their own, and programs as they read them."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from irlang.catalog import builtin
from irlang.cli import status
from irlang.diagnostics import InvalidInput
from irlang.interp.shape import check
from irlang.interp.values import initial_values
from irlang.lower import install
from irlang.lower.added import Added, added, folder, interpreter, names, remember
from irlang.lower.admits import admitted
from irlang.lower.lower import Lowered, lower
from irlang.lower.onnx_kernels import read_registry, runtime
from irlang.lower.target import describe, unasked
from irlang.lower.target import names as target_names
from irlang.parser import parse

OLD = Added("ort-1.15", "onnxruntime", "1.15.0", "3.11.7", ("onnxruntime==1.15.0",))
# ONNX Runtime 1.17 divides by the whole window where it reaches past the padding.
POOL = """nnir 1
model pool(x: f32[1, 1, 5] in [1, 2]) -> y: f32[1, 1, 3] {
  y = avg_pool(x; window = 3, stride = 2, ceil_mode = true, count_include_pad = true,
               pad = given, before = 1, after = 0)
}
"""


@pytest.fixture(autouse=True)
def data(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("data")
    monkeypatch.setenv("XDG_DATA_HOME", str(home))
    return home


def pretend(target: Added) -> None:
    """A record with an interpreter: this one."""
    own = interpreter(folder(target.name))
    own.parent.mkdir(parents=True)
    own.symlink_to(sys.executable)
    remember(target)


def small(text: str, target: str) -> Lowered:
    checked = check(parse(text, "m"), builtin())
    graph = checked.graphs[0]
    return lower(graph, target, checked.catalog, initial_values(graph, 0))


def test_what_is_remembered_is_listed_with_its_modes(capsys: pytest.CaptureFixture[str]) -> None:
    pretend(dataclasses.replace(OLD, kernels={"Add": frozenset({"f32"})}))
    assert added("ort-1.15") == dataclasses.replace(OLD, kernels={"Add": frozenset({"f32"})})
    assert status(["targets", "--format", "json"]) == 0
    found = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert found["ort-1.15"]["version"] == "1.15.0"
    plain = describe("ort-1.15:plain")
    assert plain.worker.python == str(interpreter(folder("ort-1.15")))
    assert plain.worker.options == {"graph_optimization": "off"}
    assert not plain.usual
    with pytest.raises(InvalidInput, match=r"no target `ort-1\.15:xla`"):
        describe("ort-1.15:xla")


@pytest.mark.parametrize(
    ("version", "opset", "ir"),
    [
        ("1.15.0", 18, 8),
        ("1.17.0", 20, 9),
        ("1.20.1", 21, 10),
        ("1.23.2", 23, 11),
        ("1.31.1", 26, 13),
    ],
)
def test_model_files_are_as_old_as_their_reader(version: str, opset: int, ir: int) -> None:
    onnx = pytest.importorskip("onnx")
    pretend(dataclasses.replace(OLD, version=version))
    text = "nnir 1\nmodel m(x: f32[4]) -> y: f32[4] { y = gelu(x) }\n"
    found = small(text, "ort-1.15")
    assert not found.unsupported
    model = onnx.load_from_string(found.code)
    onnx.checker.check_model(model, full_check=True)
    assert (model.opset_import[0].version, model.ir_version) == (opset, ir)
    # Opset 20 brought Gelu; before, it is lowered from its definition.
    assert bool(found.native) == (opset >= 20)


def test_what_only_an_older_opset_has_kernels_for_is_written_in_that() -> None:
    onnx = pytest.importorskip("onnx")
    pretend(dataclasses.replace(OLD, name="ort-1.31", version="1.31.1"))
    drawn = "nnir 1\nmodel m() -> y: f32[4] { y = random_normal(; shape = [4]) }\n"
    scaled = "nnir 1\nmodel m(x: f32[2, 4]) -> y: f32[2, 4] { y = rms_norm(x) }\n"
    for text, opset, op in ((drawn, 21, "RandomNormal"), (scaled, 26, "RMSNormalization")):
        model = onnx.load_from_string(small(text, "ort-1.31").code)
        assert model.opset_import[0].version == opset
        assert op in {node.op_type for node in model.graph.node}


def test_a_kernel_that_a_release_lacks_is_not_used() -> None:
    pytest.importorskip("onnx")
    text = "nnir 1\nmodel m(x: f32[4]) -> y: f32[4] { y = relu(x) }\n"
    kernels = {"Relu": {"f64"}, "Max": {"f32"}, "Cast": {"f32"}}
    pretend(dataclasses.replace(OLD, kernels={op: frozenset(t) for op, t in kernels.items()}))
    found = small(text, "ort-1.15")
    assert not found.unsupported
    assert not found.native
    assert small(text, "onnxruntime").native


def test_a_release_that_takes_no_bfloat16_is_not_given_any() -> None:
    pytest.importorskip("onnx")
    text = "nnir 1\nmodel m(x: bf16[4]) -> y: bf16[4] { y = reshape(x; shape = [2, 2]) }\n"
    text = text.replace("y: bf16[4]", "y: bf16[2, 2]")
    pretend(dataclasses.replace(OLD, version="1.19.2"))
    assert "no bfloat16" in small(text, "ort-1.15").unsupported[0]
    pretend(dataclasses.replace(OLD, name="ort-1.20", version="1.20.1"))
    assert not small(text, "ort-1.20").unsupported


def test_what_a_release_says_it_has_no_kernel_for_is_no_refusal_unless_it_was_asked() -> None:
    pretend(OLD)
    message = (
        "[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : Could not find an implementation for IsNaN"
    )
    assert re.search(describe("ort-1.15").says_no, message)
    assert not re.search(describe("ort-1.15").says_no, "Failed to find kernel for FusedMatMul(1)")
    asked = dataclasses.replace(OLD, name="ort-asked", kernels={"IsNaN": frozenset({"f32"})})
    pretend(asked)
    assert not describe("ort-asked").says_no


def test_the_registry_is_read_at_the_opset_that_is_written() -> None:
    registry = [
        ["Gelu", 20, 99, {"T": ["tensor(float)"]}],
        ["Relu", 14, 99, {"T": ["tensor(float)", "tensor(string)"]}],
        ["Relu", 14, 99, {"T": ["tensor(double)"]}],
        ["Relu", 6, 13, {"T": ["tensor(int8)"]}],
    ]
    assert read_registry(registry, (1, 15, 0)) == {"Relu": {"f32", "f64"}}
    assert read_registry(registry, (1, 17, 0))["Gelu"] == {"f32"}


def test_what_a_release_expands_it_has() -> None:
    """ONNX says what these are made of: a release without kernels of them runs that, and where it
    has kernels of f32 halves are converted for these.
    """
    told = {"Relu": frozenset({"f32", "f64"})}
    found = runtime((1, 20, 1), told).kernels
    assert found["Mish"] == found["GroupNormalization"] == {"f32", "f16"}
    assert found["Relu"] == {"f32", "f64", "f16"}
    assert found["DeformConv"] == found["Erf"] == frozenset()


def test_xla_is_asked_for_in_the_words_of_the_release() -> None:
    pretend(Added("tf-2.4", "tf", "2.4.0", "3.8.18", ("tensorflow-cpu==2.4.0",)))
    text = "nnir 1\nmodel m(x: f32[4]) -> y: f32[4] { y = relu(x) }\n"
    assert "@tf.function(autograph=False, experimental_compile=True)\n" in str(
        small(text, "tf-2.4:xla").code
    )
    for target in ("tf-2.4:xla", "tf-2.4"):  # XLA clamps, which TensorFlow's documentation does not
        assert not admitted(target, "gather", "gather.in_range")


def test_what_came_later_is_unsupported_by_a_release_that_was_added() -> None:
    pretend(Added("tf-2.4", "tf", "2.4.0", "3.8.18", ("tensorflow-cpu==2.4.0",)))
    later = "AttributeError: module 'tensorflow._api.v2.math' has no attribute 'approx_max_k'"
    for name, said in (("tf-2.4", True), ("tf-2.4:graph", True), ("tf", False)):
        assert bool(re.search(describe(name).says_no, later)) == said
    assert re.search(describe("tf-2.4").says_no, "No OpKernel was registered")


def test_a_library_that_a_release_holds_besides_is_named_where_it_is_not_asked() -> None:
    pretend(Added("tf-2.4", "tf", "2.4.0", "3.8.18", ("tensorflow-cpu==2.4.0",)))
    pretend(Added("tf-2.21", "tf", "2.21.0", "3.11.7", ("tensorflow-cpu==2.21.0",)))
    assert [one.name for one in unasked(["tf-2.4", "tf-2.21"])] == ["tf-2.4:keras"]
    assert not unasked(["tf-2.4", "tf-2.4:keras", "tf-2.21", "tf-2.21:xla"])
    assert not unasked(["tf-2.4:graph"])


def test_the_tensorflow_lite_of_a_release_is_a_mode_of_it() -> None:
    pretend(Added("tf-2.4", "tf", "2.4.0", "3.8.18", ("tensorflow-cpu==2.4.0",)))
    found = describe("tf-2.4:tflite")
    assert (found.version, found.share, found.worker.framework) == ("2.4.0", 4, "tflite")
    assert found.worker.python != describe("tflite").worker.python
    assert "def converted(" in str(small(LAYERS, "tf-2.4:tflite").code)
    pretend(OLD)
    for name in ("ort-1.15:tflite", "ort-1.15:onnx-reference", "tf-2.4:onnx-reference"):
        with pytest.raises(InvalidInput, match="there is no target"):
            describe(name)


LAYERS = """nnir 1
model m(x: f32[2, 3, 5, 5], w: f32[4, 3, 3, 3]) -> y: f32[2, 4, 3, 3] {
  y = relu(conv(x, w); negative_slope = 0.1, max_value = 2)
}
"""


def test_keras_2_is_written_in_the_words_of_its_release() -> None:
    pretend(Added("tf-2.4", "tf", "2.4.0", "3.8.18", ("tensorflow-cpu==2.4.0",)))
    inside = str(small(LAYERS, "tf-2.4:keras").code)
    assert "tf.keras.layers.Conv2D(filters=4, kernel_size=(3, 3), use_bias=False)" in inside
    assert "layer.submodules" in inside
    pretend(Added("keras-2.12", "keras", "2.12.0", "3.11.7", ("keras==2.12.0",), "tensorflow"))
    assert small(LAYERS, "keras-2.12").code == inside
    pretend(Added("old", "keras", "2.3.1", "3.8.18", ("keras==2.3.1",), "theano"))
    assert describe("old").worker.environment["KERAS_BACKEND"] == "theano"
    code = str(small(LAYERS, "old").code)
    assert "y_conv_layer = keras.layers.Conv2D(" in code
    assert "keras.layers.ReLU(negative_slope=0.1, max_value=2.0)" in code
    assert "theano.clone(result, places)" in code
    assert "keras.StatelessScope" in str(small(LAYERS, "keras:tensorflow").code)


def test_keras_inside_tensorflow_has_the_layers_of_its_release() -> None:
    def native(call: str, target: str) -> bool:
        types = "x: f32[2, 4, 6, 6], w: f32[4, 1, 1, 1]) -> y: f32[2, 4, 6, 6]"
        text = f"nnir 1\nmodel m({types} {{ y = {call} }}\n"
        found = small(text, target)
        return bool(found.native) and "tf.keras.layers" in str(found.code)

    pretend(Added("tf-2.4", "tf", "2.4.0", "3.8.18", ("tensorflow-cpu==2.4.0",)))
    assert native("depthwise_conv(x, w)", "tf-2.4:keras")
    assert native("layer_norm(x; axes = 1)", "tf-2.4:keras")
    assert not native("group_norm(x; groups = 2)", "tf-2.4:keras")
    assert not native("layer_norm(x; axes = 1)", "tf-2.4")
    pretend(Added("tf-2.12", "tf", "2.12.0", "3.11.7", ("tensorflow-cpu==2.12.0",)))
    assert native("group_norm(x; groups = 2)", "tf-2.12:keras")
    pretend(Added("old", "keras", "2.3.1", "3.8.18", ("keras==2.3.1",), "theano"))
    assert "LayerNormalization" not in str(small(LAYERS, "old").code)


def test_convolutions_in_groups_are_composed_where_a_release_has_no_kernel() -> None:
    """TensorFlow 2.4 refuses all of them along one axis or two, and with them the whole program."""
    text = (
        "nnir 1\nmodel m(x: f32[1, 4, 5, 5], w: f32[2, {}, 3, 3]) -> y: f32[1, 2, 3, 3] "
        "{{ y = conv(x, w; groups = {}) }}\n"
    )
    pretend(Added("tf-2.4", "tf", "2.4.0", "3.8.18", ("tensorflow-cpu==2.4.0",)))
    pretend(Added("tf-2.12", "tf", "2.12.0", "3.11.7", ("tensorflow-cpu==2.12.0",)))
    for target, own in (
        ("tf-2.4", "tf.nn.conv2d("), ("tf-2.4:keras", "layers.Conv2D("),
        ("tf-2.12", "tf.nn.conv2d("), ("tf-2.12:keras", "layers.Conv2D("),
    ):  # fmt: skip
        assert own in str(small(text.format(4, 1), target).code)
        grouped = str(small(text.format(2, 2), target).code)
        assert (own in grouped) == target.startswith("tf-2.12")


def test_classes_of_more_than_a_matrix_are_composed_on_theano() -> None:
    """Its softmax of logits is one of matrices."""
    pretend(Added("old", "keras", "2.3.1", "3.8.18", ("keras==2.3.1",), "theano"))
    text = "nnir 1\nmodel m(x: f32[{0}], t: f32[{0}]) -> y: f32[] {{ y = {1}(x, t) }}\n"
    for call, most in (("categorical_cross_entropy", 2), ("categorical_cross_entropy_probs", 3)):
        for rank in (2, 3):
            code = str(small(text.format(", ".join("2" * rank), call), "old").code)
            assert ("CategoricalCrossentropy" in code) == (rank <= most)


def test_keras_2_on_theano_computes_in_single_precision() -> None:
    pretend(Added("old", "keras", "2.3.1", "3.8.18", ("keras==2.3.1",), "theano"))
    found = small("nnir 1\nmodel m(x: f64[4]) -> y: f64[4] { y = relu(x) }\n", "old")
    assert found.unsupported == ("relu: Keras 2 computes in f32 on Theano",)


@pytest.mark.parametrize(
    ("requirements", "found"),
    [
        (["keras==2.3.1", "Theano==1.0.5", "numpy==1.23.5"], ("keras", "theano")),
        (["tensorflow==2.12.0", "keras==2.12.0"], ("keras", "tensorflow")),
        (["keras==3.5.0", "torch==2.5.0"], ("keras", "torch")),
        (["tensorflow-cpu==2.4.0"], ("tf", "")),
        (["mxnet==1.6.0", "numpy==1.23.5"], ("mxnet", "")),
    ],
)
def test_a_framework_is_told_by_what_is_asked_of_pip(
    requirements: list[str], found: tuple[str, str]
) -> None:
    assert install.framework_of(requirements) == found


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["add", "../x", "--pip", "torch"], "cannot be a target's name"),
        (["add", "torch", "--pip", "torch"], "`torch` is a target already"),
        (["add", "mine", "--pip", "numpy"], "none of the requirements is a framework"),
        (["add", "mine", "--pip", "torch", "--", "--index-url=x"], "an option of pip"),
        (["add", "mine", "--pip", "torch", "--python", "2.9"], "Python 2.9 is not found"),
        (["add", "mine", "--pip", "torch", "--python", "no-such"], "no-such is no interpreter"),
        (["add", "mine", "--pip", "keras==3.5.0"], "keras computes with another"),
        (["remove", "mine"], "no target `mine` was added"),
        (["remove", "../../x"], "cannot be a target's name"),
    ],
)
def test_wrong_usage_is_a_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(["target", *arguments]) in (1, 2)
    assert message in capsys.readouterr().err
    assert names() == []


def test_removed_is_gone(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pretend(OLD)
    assert status(["target", "add", "ort-1.15", "--pip", "onnxruntime"]) in (1, 2)
    assert "was added before" in capsys.readouterr().err
    assert status(["target", "remove", "ort-1.15"]) == 0
    assert not list(data.glob("irlang/targets/*"))
    with pytest.raises(InvalidInput, match=r"no target `ort-1\.15`"):
        describe("ort-1.15")


NO_RECORDS = ["", "[]", "{}", '{"framework": 1}', "\x00", '{"kernels": []}', "[" * 100_000]


@pytest.mark.parametrize("text", NO_RECORDS, ids=[text[:8] for text in NO_RECORDS])
def test_a_record_that_is_not_one(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It is said where the target is asked for, and costs nothing elsewhere."""
    pretend(OLD)
    (folder("ort-1.15") / "target.json").write_text(text, "utf-8")
    with pytest.raises(InvalidInput, match=r"target\.broken"):
        describe("ort-1.15")
    assert status(["targets"]) == 0
    said = capsys.readouterr().out
    assert "ort-1.15" in said
    assert "irlang target remove ort-1.15" in said
    assert len(said.splitlines()) == len(target_names())


def test_a_record_without_an_end_is_none() -> None:
    if not Path("/dev/zero").exists():
        pytest.skip("there is no such device")
    pretend(OLD)
    record = folder("ort-1.15") / "target.json"
    record.unlink()
    record.symlink_to("/dev/zero")
    with pytest.raises(InvalidInput, match=r"target\.broken"):
        describe("ort-1.15")


def test_an_environment_that_is_gone_is_told() -> None:
    pretend(OLD)
    interpreter(folder("ort-1.15")).unlink()
    found = describe("ort-1.15")
    assert not found.installed
    assert "irlang target remove ort-1.15" in found.reason


def test_interpreters_are_found_among_pyenvs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    for version in ("3.98.2", "3.98.10", "3.9.1"):
        path = tmp_path / "versions" / version / "bin" / "python"
        path.parent.mkdir(parents=True)
        path.write_text(f"#!/bin/sh\necho {version}\n", "utf-8")
        path.chmod(0o755)
    assert install.find_python("3.98").parent.parent.name == "3.98.10"
    assert install.find_python("3.98.2").parent.parent.name == "3.98.2"
    with pytest.raises(InvalidInput) as caught:
        install.find_python("3.97")
    assert caught.value.diagnostics[0].help == "pyenv has 3.9.1, 3.98.2, 3.98.10"


def test_a_failure_leaves_nothing_behind(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["target", "add", "mine", "--pip", "onnxruntime==0.0.0.1"]
    assert status(arguments) in (1, 2)
    told = capsys.readouterr().err
    assert "pip install onnxruntime==0.0.0.1: status 1" in told
    assert not list(data.glob("irlang/targets/*"))


@pytest.fixture(scope="module")
def old_runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ONNX Runtime 1.17.0 as a target, in a folder of data; made once."""
    home = tmp_path_factory.mktemp("old")
    pytest.importorskip("onnxruntime")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(home))
        try:
            install.add("ort-1.17", ["onnxruntime==1.17.0"], None, print)
        except InvalidInput as error:
            if error.diagnostics[0].code != "target.pip":
                raise
            pytest.skip(f"pip cannot install it here: {error.diagnostics[0].help}")
    return home


@pytest.mark.slow
def test_an_old_runtime_differs_from_the_current_one(
    old_runtime: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(old_runtime))
    found = describe("ort-1.17")
    assert (found.version, found.release) == ("1.17.0", (1, 17, 0))
    assert "f32" in found.kernels["Relu"]
    model = tmp_path / "pool.nnir"
    model.write_text(POOL, "utf-8")
    targets = "onnxruntime,ort-1.17,ort-1.17:plain"
    assert status(["diff", str(model), "--targets", targets, "--format", "json"]) == 1
    outputs = json.loads(capsys.readouterr().out)["outputs"]
    assert {one["target"]: one["verdict"] for one in outputs} == {
        "onnxruntime": "agrees",
        "ort-1.17": "wrong",
        "ort-1.17:plain": "wrong",
    }


_MADE = """import sys
from pathlib import Path
place = Path(sys.argv[-1])
(place / "bin").mkdir(parents=True)
(place / "begun").write_text("")
import time
time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_installation_that_is_interrupted_is_no_obstacle(
    number: signal.Signals, data: Path, tmp_path: Path
) -> None:
    """Its commands end with it, or are waited for; what was left is cleared by the next one."""
    base = tmp_path / "python"
    base.write_text(f'#!/bin/sh\nexec {sys.executable} {tmp_path / "made.py"} "$@"\n')
    base.chmod(0o755)
    (tmp_path / "made.py").write_text(_MADE)
    line = [sys.executable, "-m", "irlang.cli", "target", "add", "x", "--pip", "onnxruntime"]
    ignored = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's `&` ignores it
    process = subprocess.Popen([*line, "--python", str(base)], stderr=subprocess.PIPE, text=True)
    signal.signal(signal.SIGINT, ignored)
    begun = data / "irlang" / "targets" / "x" / "env" / "begun"
    until = time.monotonic() + 60
    while not begun.exists() and time.monotonic() < until:
        time.sleep(0.05)
    other = subprocess.run(line, capture_output=True, text=True, check=False)
    assert other.returncode == 2
    assert "another process adds `x` just now" in other.stderr
    assert begun.exists()
    process.send_signal(number)
    process.communicate()
    assert process.returncode == (-number if number == signal.SIGKILL else 130)
    assert begun.exists() == (number == signal.SIGKILL)
    assert "x" not in names()
    if number == signal.SIGKILL:  # as its command still runs
        with pytest.raises(InvalidInput, match="another process adds"):
            install.add("x", ["onnxruntime"], str(base), lambda _: None)
    running = _running(str(begun.parent))
    assert len(running) == (number == signal.SIGKILL)
    for one in running:
        os.kill(one, signal.SIGKILL)
    (tmp_path / "made.py").write_text("raise SystemExit('no room')")
    for _ in range(2):
        with pytest.raises(InvalidInput, match="venv: status 1") as caught:
            _again(base)
        assert caught.value.diagnostics[0].help == "no room"
    assert not begun.parent.parent.exists()


def _again(base: Path) -> None:
    until = time.monotonic() + 10
    while True:
        try:
            install.add("x", ["onnxruntime"], str(base), lambda _: None)
        except InvalidInput as error:
            if "another process" not in str(error) or time.monotonic() > until:
                raise
        time.sleep(0.05)


def _running(word: str) -> list[int]:
    """The processes whose command line has a word."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if word.encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found
