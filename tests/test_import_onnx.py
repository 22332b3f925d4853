"""ONNX models as text: sizes that stay open, names, versions of operators, what is folded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import irlang
from irlang.catalog import builtin
from irlang.cli import status
from irlang.diagnostics import InvalidInput
from irlang.importers.onnx_model import translate
from irlang.importers.sizes import Dim
from irlang.interp.program import balls, precision
from irlang.interp.shape import check
from irlang.parser import parse
from tests.onnx_models import FLOAT, INT64, Array, model, node, value

RNG = np.random.default_rng(7)


def text(made: Any, **options: Any) -> str:
    """A model's text, without the lines around it."""
    return translate(made, None, "w.safetensors", **options).text


def refused(made: Any, **options: Any) -> str:
    """Why a model is refused."""
    with pytest.raises(InvalidInput) as caught:
        translate(made, None, "w.safetensors", **options)
    return str(caught.value)


def same_as_onnxruntime(made: Any, feeds: dict[str, Array], folder: Path, **bind: int) -> None:
    """The import's results are onnxruntime's, within the radius of rounding."""
    path = folder / "m.onnx"
    onnx.save(made, path)
    ours = irlang.import_model(path, bind)
    graph = ours.graph
    names = dict(zip(feeds, graph.inputs, strict=True))
    values = ours.values({names[name]: array for name, array in feeds.items()})
    found = balls(graph, values, builtin(), precision(graph))
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    theirs = session.run(None, feeds)
    for output, want in zip(graph.outputs.values(), theirs, strict=True):
        ball = found[output]
        assert ball.value.shape == want.shape
        radius = np.broadcast_to(ball.bound, want.shape)
        assert np.isfinite(radius).all()
        assert (np.abs(ball.value - want) <= radius).all()


# ---- sizes


def test_open_sizes_are_names_of_the_signature() -> None:
    made = model(
        [
            node("Shape", "x", "s"),
            node("Gather", "s zero", "n", axis=0),
            node("Gather", "s two", "w", axis=0),
            node("Mul", "w three", "wide"),
            node("Unsqueeze", "n ax", "n1"),
            node("Unsqueeze", "wide ax", "w1"),
            node("Concat", "n1 w1", "shape", axis=0),
            node("Reshape", "x shape", "y"),
        ],
        [value("x", "batch", 3, "width")],
        ["y"],
        {
            "zero": np.array(0),
            "two": np.array(2),
            "three": np.array(3),
            "ax": np.array([0]),
        },
    )
    found = text(made)
    assert "x: f32[batch, 3, width]" in found
    assert "y: f32[batch, 3 * width]" in found
    assert "y = reshape(x; shape = [batch, 3 * width])" in found
    assert found.count("=") == 2  # nothing else is left
    for sizes in ({"batch": 1, "width": 1}, {"batch": 4, "width": 6}):
        assert not check(parse(found), builtin(), sizes).diagnostics


def test_sizes_can_be_bound_when_a_model_is_read() -> None:
    made = model([node("Relu", "x", "y")], [value("x", "n", None)], ["y"])
    assert "x: f32[n, x_1]" in text(made)
    assert "x: f32[5, x_1]" in text(made, bind={"n": 5})
    assert "usage.bind" in refused(made, bind={"m": 5})


def test_a_model_for_one_size_says_which_may_be_bound() -> None:
    made = model(
        [node("Reshape", "x s", "y")], [value("x", "n", 4)], ["y"], {"s": np.array([2, 2, 2])}
    )
    with pytest.raises(InvalidInput) as caught:
        translate(made, None, "w")
    assert caught.value.diagnostics[0].code == "reshape.elements"
    assert "--bind n=4" in caught.value.diagnostics[0].help
    assert "reshape(x; shape = [2, 2, 2])" in text(made, bind={"n": 2})


def test_a_decision_on_an_open_size_is_refused() -> None:
    """The size decides which of two constants is added: no text is right for all sizes."""
    made = model(
        [
            node("Shape", "x", "s"),
            node("Greater", "s limit", "large"),
            node("Where", "large a b", "c"),
            node("Cast", "c", "f", to=FLOAT),
            node("Add", "x f", "y"),
        ],
        [value("x", "n")],
        ["y"],
        {"limit": np.array([10]), "a": np.array([1]), "b": np.array([2])},
    )
    assert "import.sizes" in refused(made)
    assert "param c: i64[1] = 2" in text(made, bind={"n": 3})


def test_axes_of_size_1_are_not_guessed() -> None:
    made = model([node("Squeeze", "x", "y")], [value("x", 1, "n")], ["y"])
    assert "may be 1" in refused(made)
    assert "axes = [0]" in text(made, bind={"n": 3})


def test_slices_that_go_backwards_from_before_the_tensor(tmp_path: Path) -> None:
    x = RNG.normal(size=(5, 3)).astype(np.float32)
    for begin, end in (([-6, 3], [-4, -9]), ([9, -9], [-9, -9]), ([-1, 1], [-3, -(2**62)])):
        numbers = {"b": np.array(begin), "e": np.array(end), "s": np.array([-1, -2])}
        numbers["a"] = np.array([1, 0])
        made = model([node("Slice", "x b e a s", "y")], [value("x", 5, 3)], ["y"], numbers)
        made.ir_version = 9
        same_as_onnxruntime(made, {"x": x}, tmp_path)


def test_a_range_over_an_open_size() -> None:
    made = model(
        [
            node("Shape", "x", "s", start=1, end=2),
            node("Squeeze", "s", "n"),
            node("Range", "zero n one", "places"),
            node("Cast", "places", "f", to=FLOAT),
            node("Add", "x f", "y"),
        ],
        [value("x", 2, "n")],
        ["y"],
        {"zero": np.array(0), "one": np.array(1)},
    )
    found = irlang.loads(text(made), {"n": 4})
    x = np.zeros((2, 4), np.float32)
    np.testing.assert_array_equal(found.run({"x": x})["y"], [[0, 1, 2, 3]] * 2)


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("m", [1, 3])
def test_open_numbers_are_what_their_texts_say(n: int, m: int) -> None:
    for example in ((7, 11), (64, 128)):
        a, b = Dim.symbol("N", example[0]), Dim.symbol("M", example[1])
        for made, right in (
            (2 * a + b - 3, 2 * n + m - 3),
            ((a + 1) // 2 * 4, (n + 1) // 2 * 4),
            (-(-a // 2), -(-n // 2)),
            ((a * b * 12) // (3 * a), 4 * m),
            (5 - a % 3, 5 - n % 3),
            ((a + b) * (a - b), (n + m) * (n - m)),
            (-(a // 2) - 1, -(n // 2) - 1),
            (a**3 // a, n * n),
            (1000 // (a + 1), 1000 // (n + 1)),
            ((2 * a + 2) // (a + 1) + b, 2 + m),
        ):
            assert eval(str(made), {"N": n, "M": m}) == right, made  # noqa: S307
            assert eval(str(made), {"N": example[0], "M": example[1]}) == int(made)  # noqa: S307


def test_open_sizes_of_one_model_are_not_those_of_another() -> None:
    """Calls that are equal for the example are not the same call."""
    made = {
        name: model([node("Relu", "x", "y")], [value("x", name, 4)], ["y"]) for name in ("n", "m")
    }
    for name, each in made.items():
        assert f"y: f32[{name}, 4]" in text(each)


# ---- names and parameters


def test_names_are_kept(tmp_path: Path) -> None:
    weight = RNG.normal(size=(4, 3)).astype(np.float32)
    made = model(
        [node("MatMul", "in::0 encoder.0.w", "/a/b"), node("Relu", "/a/b", "out-put")],
        [value("in::0", 2, 4)],
        ["out-put"],
        {"encoder.0.w": weight, "unused": weight},
    )
    path = tmp_path / "m.onnx"
    onnx.save(made, path)
    assert status(["import", str(path)]) == 0
    found = (tmp_path / "m.nnir").read_text()
    assert "Its own names: in_0 is in::0; out_put is out-put." in found
    assert 'param encoder_0_w: f32[4, 3] = data("m.safetensors", "encoder.0.w")' in found
    assert "a_b = matmul(in_0, encoder_0_w)  # /a/b" in found
    assert "out_put = relu(a_b)  # out-put" in found
    assert "unused" not in found
    loaded = irlang.load(tmp_path / "m.nnir")
    x = RNG.normal(size=(2, 4)).astype(np.float32)
    expected = np.maximum(x.astype(np.float64) @ weight.astype(np.float64), 0)
    np.testing.assert_allclose(loaded.run({"in_0": x})["out_put"], expected, rtol=1e-6, atol=1e-6)


def test_results_that_are_inputs_parameters_or_the_same() -> None:
    made = model(
        [node("Identity", "x", "a"), node("Neg", "x", "b"), node("Identity", "b", "c")],
        [value("x", 2)],
        ["x", "a", "b", "c", "w"],
        {"w": np.arange(2, dtype=np.float32)},
    )
    found = translate(made, None, "w.safetensors")
    assert len(set(found.outputs)) == 5
    model_ = irlang.loads(found.text)
    results = model_.run({"x": np.array([1, 2], np.float32)})
    want = [[1, 2], [1, 2], [-1, -2], [-1, -2], [0, 1]]
    assert [results[name].tolist() for name in found.outputs] == want


@pytest.mark.parametrize("name", ["f16", "bf16", "f32", "f64", "i8", "u8", "i16", "u16", "i32"])
def test_parameters_of_every_type(name: str) -> None:
    from irlang.dtypes import DTYPES
    from irlang.importers.onnx_file import number_of, tensor

    array = np.array([-2.5, 0, 1, 3.75, 100, 7, 8, 9, 10]).astype(DTYPES[name].numpy)
    raw = helper.make_tensor("w", number_of(name), array.shape, array.tobytes(), raw=True)
    np.testing.assert_array_equal(tensor(raw, None, "w"), array)
    numbers = array.astype(np.float64).tolist()
    typed = helper.make_tensor("w", number_of(name), array.shape, numbers)
    np.testing.assert_array_equal(tensor(typed, None, "w"), array)


def test_inputs_that_must_be_known_can_be_fixed() -> None:
    made = model([node("Reshape", "x s", "y")], [value("x", 6), value("s", 2, kind=INT64)], ["y"])
    assert "depends on `s`" in refused(made)
    found = text(made, constants={"s": np.array([2, -1])})
    assert "reshape(x; shape = [2, -1])" in found
    assert "s:" not in found


# ---- versions of operators


def test_softmax_before_version_13_counts_axes_as_one(tmp_path: Path) -> None:
    x = RNG.normal(size=(2, 3, 4)).astype(np.float32)
    for opset in (11, 13):
        made = model([node("Softmax", "x", "y", axis=1)], [value("x", 2, 3, 4)], ["y"], opset=opset)
        made.ir_version = 6
        same_as_onnxruntime(made, {"x": x}, tmp_path)


def test_attributes_that_became_inputs(tmp_path: Path) -> None:
    x = RNG.normal(size=(1, 3, 4)).astype(np.float32)
    axes = {"a": np.array([0])}
    pads = {"p": np.array([0, 1, 0, 0, 0, 2])}
    cases: list[tuple[int, Any, dict[str, Array]]] = [
        (9, node("Squeeze", "x", "y", axes=[0]), {}),
        (13, node("Squeeze", "x a", "y"), axes),
        (9, node("Unsqueeze", "x", "y", axes=[0]), {}),
        (13, node("Unsqueeze", "x a", "y"), axes),
        (9, node("ReduceSum", "x", "y", axes=[0], keepdims=0), {}),
        (13, node("ReduceSum", "x a", "y", keepdims=0), axes),
        (11, node("ReduceMax", "x", "y", axes=[0]), {}),
        (18, node("ReduceMax", "x a", "y"), axes),
        (9, node("Slice", "x", "y", starts=[1], ends=[9], axes=[1]), {}),
        (13, node("Slice", "x b e c", "y"), {
            "b": np.array([-1]), "e": np.array([-(2**62)]), "c": np.array([1]),
        } | {}),
        (9, node("Pad", "x", "y", pads=[0, 1, 0, 0, 0, 2], value=1.5), {}),
        (13, node("Pad", "x p", "y", mode="edge"), pads),
        (10, node("Clip", "x", "y", min=-0.5), {}),
        (13, node("Clip", "x _ h", "y"), {"h": np.array(0.5, np.float32)}),
        (9, node("Split", "x", "y z", axis=1, split=[1, 2]), {}),
        (13, node("Split", "x s", "y z", axis=1), {"s": np.array([1, 2])}),
        (18, node("Split", "x", "y z", axis=2, num_outputs=2), {}),
        (9, node("TopK", "x", "y z", axis=1, k=2), {}),
        (11, node("TopK", "x k", "y z", axis=1, largest=0), {"k": np.array([2])}),
        (9, node("Dropout", "x", "y", ratio=0.5), {}),
    ]  # fmt: skip
    for opset, tested, parameters in cases:
        made = model([tested], [value("x", 1, 3, 4)], list(tested.output), parameters, opset)
        made.ir_version = 6
        same_as_onnxruntime(made, {"x": x}, tmp_path)


def test_automatic_padding(tmp_path: Path) -> None:
    x = RNG.normal(size=(1, 2, 7, 6)).astype(np.float32)
    w = RNG.normal(size=(2, 2, 3, 2)).astype(np.float32)
    for auto in ("SAME_UPPER", "SAME_LOWER", "VALID"):
        for strides in ([1, 1], [2, 2]):
            attrs = {"auto_pad": auto, "strides": strides}
            for tested in (
                node("Conv", "x w", "y", **attrs),
                node("ConvTranspose", "x w", "y", **attrs),
                node("MaxPool", "x", "y", kernel_shape=[3, 2], **attrs),
                node("AveragePool", "x", "y", kernel_shape=[3, 2], **attrs),
            ):
                made = model([tested], [value("x", 1, 2, 7, 6)], ["y"], {"w": w})
                made.ir_version = 9
                same_as_onnxruntime(made, {"x": x}, tmp_path)


# ---- functions and choices


def test_functions_are_written_out() -> None:
    body = [
        helper.make_node("Mul", ["a", "a"], ["square"]),
        helper.make_node("LeakyRelu", ["square"], ["b"]),
    ]
    body[1].attribute.add(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    function = helper.make_function(
        "local", "f", ["a"], ["b"], body, [helper.make_opsetid("", 20)], ["slope"]
    )
    calls = [
        helper.make_node("f", ["x"], ["y"], domain="local", slope=0.25, name="first"),
        helper.make_node("f", ["y"], ["z"], domain="local", name="second"),
    ]
    found = text(model(calls, [value("x", 2)], ["z"], functions=[function]))
    assert "first_square = multiply(x, x)" in found
    assert "y = leaky_relu(first_square; alpha = 0.25)" in found
    assert "z = leaky_relu(second_square; alpha = 0.01)" in found


def test_a_known_choice_is_made() -> None:
    def branch(kind: str) -> Any:
        return helper.make_graph(
            [node(kind, "x", "inner")], kind, [], [helper.make_empty_tensor_value_info("inner")]
        )

    def made(inputs: list[Any], parameters: dict[str, Array]) -> Any:
        choice = node("If", "c", "y", then_branch=branch("Exp"), else_branch=branch("Neg"))
        return model([choice], [value("x", 2), *inputs], ["y"], parameters)

    assert "exp(x)" in text(made([], {"c": np.array(True)}))
    assert "negate(x)" in text(made([], {"c": np.array(False)}))
    unknown = made([value("c", kind=TensorProto.BOOL)], {})
    assert "exp(x)" in text(unknown, constants={"c": np.array(True)})


# ---- the command


def test_the_command_tells_what_it_wrote(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(model([node("Relu", "x", "y")], [value("x", "n", 2)], ["y"]), path)
    out = tmp_path / "other.nnir"
    assert status(["import", str(path), "-o", str(out), "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["model"] == str(out)
    assert told["parameters"] is None
    assert told["inputs"] == {"x": "f32[n, 2]"}
    assert irlang.load(out, {"n": 3}).graph.outputs == {"y": "y"}


def test_verbs_take_models_of_other_systems(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "net.onnx"
    numbers = {"w": np.arange(12, dtype=np.float32).reshape(4, 3)}
    onnx.save(model([node("MatMul", "x w", "y")], [value("x", "n", 4)], ["y"], numbers), path)
    np.save(tmp_path / "x.npy", np.ones((2, 4), np.float32))
    given = ["--input", f"x={tmp_path / 'x.npy'}", "--format", "json"]
    for bind in ([], ["--bind", "n=2"]):
        assert status(["run", str(path), *given, *bind]) == 0
        found = json.loads(capsys.readouterr().out)["outputs"]["y"]
        assert found["values"] == [[18, 22, 26]] * 2
    assert status(["run", str(path), "--bind", "m=2"]) == 2
    assert status(["lower", str(path), "--to", "torch", "-o", str(tmp_path / "net.py")]) == 0
    assert "torch" in (tmp_path / "net.py").read_text()


@pytest.mark.parametrize(
    ("name", "content", "exit_"),
    [
        ("missing.onnx", None, 2),
        ("empty.onnx", b"", 2),
        ("text.onnx", b"model", 2),
        ("model.pb", b"", 2),
    ],
)
def test_what_cannot_be_read(
    name: str, content: bytes | None, exit_: int, tmp_path: Path, capsys: Any
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    assert status(["import", str(path)]) == exit_
    assert "error" in capsys.readouterr().err
    assert status(["import", str(path), "--format", "json"]) == exit_
    assert json.loads(capsys.readouterr().out)["diagnostics"]


def test_what_is_not_supported_is_listed_at_once(tmp_path: Path, capsys: Any) -> None:
    nodes = [
        node("NonZero", "x", "a", name="places"),
        node("NoSuchOperator", "x", "b", name="strange"),
    ]
    path = tmp_path / "m.onnx"
    path.write_bytes(model(nodes, [value("x", 2)], ["a", "b"]).SerializeToString())
    assert status(["import", str(path)]) == 1
    said = capsys.readouterr().err
    assert "NonZero `places`" in said
    assert "NoSuchOperator `strange`" in said
    assert not (tmp_path / "m.nnir").exists()


def test_the_documented_text_is_what_is_written(tmp_path: Path) -> None:
    made = model(
        [node("MatMul", "x layer.w", "/layer/MatMul"), node("Add", "/layer/MatMul layer.b", "y")],
        [value("x", "batch", 4)],
        ["y"],
        {
            "layer.w": RNG.normal(size=(4, 3)).astype(np.float32),
            "layer.b": np.array([0.1, 0.2, 0.3], np.float32),
        },
    )
    onnx.save(made, tmp_path / "net.onnx")
    assert status(["import", str(tmp_path / "net.onnx")]) == 0
    written = (tmp_path / "net.nnir").read_text("utf-8").removeprefix("nnir 1\n\n")
    document = Path(__file__).parents[1] / "docs" / "import.md"
    assert f"```nnir\n{written}```" in document.read_text("utf-8")


# ---- what a generator of graphs found


def test_positions_may_be_fewer_than_elements_along_every_axis(tmp_path: Path) -> None:
    x = RNG.normal(size=(3, 4, 5)).astype(np.float32)
    ids = {"i": RNG.integers(-4, 4, size=(2, 6, 3))}
    made = model([node("GatherElements", "x i", "y", axis=1)], [value("x", 3, 4, 5)], ["y"], ids)
    same_as_onnxruntime(made, {"x": x}, tmp_path)


def test_positions_that_share_axes(tmp_path: Path) -> None:
    x = RNG.normal(size=(2, 3, 4)).astype(np.float32)
    ids = {"i": RNG.integers(-3, 3, size=(2, 5, 1))}
    tested = node("GatherND", "x i", "y", batch_dims=1)
    same_as_onnxruntime(model([tested], [value("x", 2, 3, 4)], ["y"], ids), {"x": x}, tmp_path)


@pytest.mark.parametrize("shape", [(2, 0, 4), (0, 4), (2, 0)])
def test_parameters_without_elements(shape: tuple[int, ...], tmp_path: Path) -> None:
    x = RNG.normal(size=(*shape[:-1], 4)).astype(np.float32)
    made = model(
        [node("Concat", "x w", "y", axis=-1)], [value("x", *x.shape)], ["y"],
        {"w": np.zeros(shape, np.float32)},
    )  # fmt: skip
    same_as_onnxruntime(made, {"x": x}, tmp_path)


def test_defaults_are_of_single_precision_in_double_precision_too(tmp_path: Path) -> None:
    x = RNG.normal(size=(2, 3, 4))
    numbers = {name: RNG.uniform(0.5, 2, size=3) for name in "sbmv"}
    tested = node("BatchNormalization", "x s b m v", "y")
    made = model([tested], [value("x", 2, 3, 4, kind=TensorProto.DOUBLE)], ["y"], numbers)
    same_as_onnxruntime(made, {"x": x}, tmp_path)
    made = model([node("HardSwish", "x", "y")], [value("x", 2, kind=TensorProto.DOUBLE)], ["y"])
    assert f"alpha = {float(np.float32(1 / 6))}" in text(made)


def test_whole_numbers_that_hang_on_rounding_are_computed_by_whoever_runs_them() -> None:
    made = model(
        [node("Mul", "a b", "p"), node("Cast", "p", "q", to=INT64), node("Add", "x q", "y")],
        [value("x", 2, kind=INT64)],
        ["y"],
        {"a": np.array([0.3, 0.7], np.float32), "b": np.array([10, 10], np.float32)},
    )
    assert "cast(p; to = i64)" in text(made)
