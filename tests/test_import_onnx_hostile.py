"""ONNX files as untrusted input: every fault is a diagnostic, and nothing is allocated for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from irlang.diagnostics import InvalidInput
from irlang.importers import onnx_model
from tests.onnx_models import FLOAT, INT64, model, node, value


def codes(made: Any, folder: Path) -> list[str]:
    """The codes of what is wrong with a model, or with the bytes of a file."""
    path = folder / "m.onnx"
    path.write_bytes(made if isinstance(made, bytes) else made.SerializeToString())
    with pytest.raises(InvalidInput) as caught:
        onnx_model.load(path, "m.safetensors")
    for diagnostic in caught.value.diagnostics:
        assert diagnostic.message
    return [diagnostic.code for diagnostic in caught.value.diagnostics]


def relu(**parameters: Any) -> Any:
    """A sound model, to be damaged."""
    return model([node("Relu", "x", "y")], [value("x", 2, 3)], ["y"], parameters)


def with_parameter(change: Callable[[Any], None]) -> Any:
    """A model with a damaged parameter of four numbers."""
    made = model(
        [node("Add", "x w", "y")], [value("x", 4)], ["y"], {"w": np.arange(4, dtype=np.float32)}
    )
    change(made.graph.initializer[0])
    return made


def test_a_sound_model_is_read(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(relu().SerializeToString())
    assert "y = relu(x)" in onnx_model.load(path, "m.safetensors").text


@pytest.mark.parametrize("data", [b"", b"\x00", b"onnx", b"\xff" * 100, b"\x08\x0a"])
def test_bytes_that_are_no_model(data: bytes, tmp_path: Path) -> None:
    assert codes(data, tmp_path) == ["file.onnx"]


def test_every_truncation_is_refused_or_read(tmp_path: Path) -> None:
    whole = with_parameter(lambda _: None).SerializeToString()
    read = 0
    for length in range(len(whole)):
        path = tmp_path / "m.onnx"
        path.write_bytes(whole[:length])
        try:
            onnx_model.load(path, "m.safetensors")
        except InvalidInput:
            continue
        read += 1
    assert read < len(whole) / 4


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damaged_bytes_are_refused_or_read(data: st.DataObject) -> None:
    """Neither a traceback, nor time, nor memory."""
    good = bytearray(
        model(
            [
                node("Conv", "x w", "c", pads=[1, 1, 1, 1], strides=[2, 2]),
                node("Shape", "c", "s"),
                node("Slice", "s a b", "head"),
                node("Concat", "head rest", "shape", axis=0),
                node("Reshape", "c shape", "r"),
                node("Softmax", "r", "y", axis=1),
            ],
            [value("x", "N", 1, 4, 4)],
            ["y"],
            {
                "w": np.ones((2, 1, 3, 3), np.float32),
                "a": np.array([0]),
                "b": np.array([1]),
                "rest": np.array([-1]),
            },
        ).SerializeToString()
    )
    for _ in range(data.draw(st.integers(1, 4))):
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    from irlang.importers import onnx_file

    try:
        onnx_model.translate(onnx_file.message(bytes(good), "m"), None, "m.safetensors")
    except InvalidInput:
        return


# ---- graphs


def test_a_circle_and_nodes_out_of_order(tmp_path: Path) -> None:
    circle = [node("Add", "x b", "a"), node("Relu", "a", "b")]
    assert codes(model(circle, [value("x", 2)], ["b"]), tmp_path) == ["file.order"]


def test_what_is_read_and_not_there(tmp_path: Path) -> None:
    made = model([node("Add", "x w", "y")], [value("x", 2)], ["y", "z"])
    assert codes(made, tmp_path) == ["file.missing", "file.missing"]


def test_names_that_are_given_twice(tmp_path: Path) -> None:
    twice = [node("Relu", "x", "y"), node("Neg", "x", "y")]
    assert codes(model(twice, [value("x", 2)], ["y"]), tmp_path) == ["file.duplicate"]
    made = relu()
    made.graph.input.append(value("x", 2, 3))
    assert "y = relu(x)" in onnx_model.translate(made, None, "d").text  # ONNX's older files do so


def test_every_fault_is_said_at_once(tmp_path: Path) -> None:
    nodes = [
        node("Loop", "n c", "l", body=relu().graph),
        node("NoSuchOperator", "x", "a"),
        node("Relu", "a", "b"),
        node("Conv", "x w", "d"),
        node("Unique", "x", "e"),
    ]
    inputs = [value("x", 1, 3, 8, 8), value("w", 4, 2, 3, 3)]
    inputs += [value("n", kind=INT64), value("c", kind=TensorProto.BOOL)]
    found = codes(model(nodes, inputs, ["b", "d"]), tmp_path)
    assert found == ["import.operator"] * 2 + ["conv.channels"] + ["import.operator"]


def test_inputs_and_attributes_that_do_not_fit(tmp_path: Path) -> None:
    x = [value("x", 2, 3)]
    for bad in (
        node("Relu", "", "y"),
        node("Relu", "x x", "y"),
        node("Concat", "x x", "y"),
        node("Conv", "x x x x", "y"),
        node("Transpose", "x", "y", perm=[0, 5]),
        node("Transpose", "x", "y", perm=1),
        node("Softmax", "x", "y", axis=7),
        node("LeakyRelu", "x", "y", alpha="much"),
        node("LeakyRelu", "x", "y", beta=1.0),
        node("Split", "x", "a b c", axis=9, num_outputs=3),
        node("MaxPool", "x", "y", kernel_shape=[2, 2, 2]),
    ):
        made = model([bad], x, [bad.output[0]])
        assert len(codes(made, tmp_path)) == 1, bad


def test_functions_that_use_themselves_or_explode(tmp_path: Path) -> None:
    def function(name: str, *body: Any) -> Any:
        sets = [helper.make_opsetid("", 20), helper.make_opsetid("local", 1)]
        return helper.make_function("local", name, ["a"], ["b"], list(body), sets)

    def use(name: str, a: str, b: str) -> Any:
        return helper.make_node(name, [a], [b], domain="local")

    itself = function("f", use("f", "a", "b"))
    made = model([use("f", "x", "y")], [value("x", 2)], ["y"], functions=[itself])
    assert codes(made, tmp_path) == ["file.onnx"]
    layers = [function("f0", node("Relu", "a", "b"))]
    layers += [
        function(f"f{i}", use(f"f{i - 1}", "a", "c"), use(f"f{i - 1}", "c", "b"))
        for i in range(1, 25)
    ]
    made = model([use("f24", "x", "y")], [value("x", 2)], ["y"], functions=layers)
    assert codes(made, tmp_path) == ["file.onnx"]


def test_operator_sets(tmp_path: Path) -> None:
    assert codes(model([node("Relu", "x", "y")], [value("x", 2)], ["y"], opset=999), tmp_path) == [
        "file.opset"
    ]
    made = relu()
    del made.opset_import[:]
    assert codes(made, tmp_path) == ["file.onnx"]


def test_long_chains_of_constants_do_not_exhaust_the_stack(tmp_path: Path) -> None:
    chain = [node("Add", f"c{i} one", f"c{i + 1}") for i in range(3000)]
    nodes = [*chain, node("Mul", "x c3000", "y")]
    numbers = {"one": np.ones(1, np.float32), "c0": np.zeros(1, np.float32)}
    path = tmp_path / "m.onnx"
    path.write_bytes(model(nodes, [value("x", 2)], ["y"], numbers).SerializeToString())
    assert "multiply(x" in onnx_model.load(path, "m.safetensors").text


# ---- types and names


def test_sizes_that_no_tensor_has(tmp_path: Path) -> None:
    for sizes in ([2**62, 4], [-1, 4], [2**40, 2**40], [1] * 65):
        made = model([node("Relu", "x", "y")], [value("x", *sizes)], ["y"])
        assert codes(made, tmp_path) == ["file.shape"]

        def change(tensor: Any, sizes: list[int] = sizes) -> None:
            tensor.dims[:] = sizes

        assert codes(with_parameter(change), tmp_path) == ["file.shape"]


def test_constants_that_would_fill_the_memory(tmp_path: Path) -> None:
    numbers = {"a": np.array(0), "b": np.array(2**60), "c": np.array(1)}
    made = model([node("Range", "a b c", "y")], [], ["y"], numbers)
    assert codes(made, tmp_path) == ["import.operator"]
    made = model([node("ConstantOfShape", "s", "y")], [], ["y"], {"s": np.array([2**40, 2**40])})
    assert codes(made, tmp_path)
    made = model([node("Tile", "x r", "y")], [value("x", 2)], ["y"], {"r": np.array([2**61])})
    assert "tile" in onnx_model.translate(made, None, "d").text  # for the checker to refuse


@pytest.mark.parametrize("number", [0, 8, 14, 15, 24, 99])
def test_element_types_that_irlang_has_not(number: int, tmp_path: Path) -> None:
    made = model([node("Relu", "x", "y")], [value("x", 2, kind=number)], ["y"])
    assert codes(made, tmp_path) == ["import.input"]

    def change(tensor: Any) -> None:
        tensor.data_type = number

    assert codes(with_parameter(change), tmp_path) == ["import.type"]


def test_an_input_that_is_a_result_of_a_type_that_irlang_has_not(tmp_path: Path) -> None:
    """It is given on by a call of its own, which refuses the type: a diagnostic, no traceback."""
    x = helper.make_tensor_value_info("x", TensorProto.UINT4, [2])
    y = helper.make_tensor_value_info("y", TensorProto.UINT4, [2])
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [x], [y])
    file = tmp_path / "m.onnx"
    file.write_bytes(helper.make_model(graph).SerializeToString())
    with pytest.raises(InvalidInput, match="u4"):
        onnx_model.load(file, "parameters")


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    made = relu().SerializeToString().replace(b"Relu", b"Re\xff\xfe")
    assert codes(made, tmp_path) == ["file.onnx"]
    made = relu()
    made.graph.node[0].output[0] = "weird\n# name\x1b[31m\u202e"
    made.graph.output[0].name = "weird\n# name\x1b[31m\u202e"
    text = onnx_model.translate(made, None, "d").text
    assert text.isascii() or "\u202e" not in text
    assert "\x1b" not in text


# ---- the numbers of a tensor


def test_numbers_that_do_not_fit_the_shape(tmp_path: Path) -> None:
    def shorter(tensor: Any) -> None:
        tensor.raw_data = tensor.raw_data[:-1]

    def longer(tensor: Any) -> None:
        tensor.raw_data += b"\0" * 4

    def typed(tensor: Any) -> None:
        tensor.ClearField("raw_data")
        tensor.float_data[:] = [1.0]

    def nothing(tensor: Any) -> None:
        tensor.ClearField("raw_data")

    for change in (shorter, longer, typed, nothing):
        assert codes(with_parameter(change), tmp_path) == ["file.tensor"]


def external(**said: str) -> Any:
    """A model whose parameter lies in another file."""

    def change(tensor: Any) -> None:
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, text in said.items():
            entry = tensor.external_data.add()
            entry.key, entry.value = key, text

    return with_parameter(change)


def test_data_beside_the_model(tmp_path: Path) -> None:
    numbers = np.array([9, 1, 2, 3, 4], np.float32)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "w.bin").write_bytes(numbers.tobytes())
    path = tmp_path / "m.onnx"
    path.write_bytes(external(location="sub/w.bin", offset="4", length="16").SerializeToString())
    made = onnx_model.load(path, "m.safetensors")
    assert "param w: f32[4] = [1.0, 2.0, 3.0, 4.0]" in made.text


def test_data_outside_the_folder(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (outside / "w.bin").write_bytes(bytes(16))
    (inside / "link").symlink_to(outside / "w.bin")
    (inside / "folder").symlink_to(outside)
    (inside / "circle").symlink_to(inside / "circle")
    for location in (
        "../out/w.bin",
        str(outside / "w.bin"),
        "link",
        "folder/w.bin",
        "circle",
        "C:\\w.bin",
        "\\\\host\\share",
        "..\\w.bin",
        "a\0b",
        "x" * 5000,
        "",
        ".",
        "missing.bin",
    ):
        assert codes(external(location=location), inside) == ["file.external"], location


def test_data_of_the_wrong_length(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(16))
    for said in (
        {"offset": "1"},
        {"offset": "-4"},
        {"offset": "99999999999999999999999"},
        {"length": "15"},
        {"length": "17"},
        {"length": "sixteen"},
        {"offset": "4", "length": "16"},
    ):
        assert codes(external(location="w.bin", **said), tmp_path) == ["file.external"], said


def test_constants_inside_a_graph_cannot_lie_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(16))
    tensor = external(location="w.bin").graph.initializer[0]
    made = model([node("Constant", "", "y", value=tensor)], [value("x", 1, kind=FLOAT)], ["y"])
    assert codes(made, tmp_path) == ["file.external"]
