"""TensorFlow graphs as untrusted input: every fault is a diagnostic, nothing is allocated for it.

The messages are built by TensorFlow's own classes, then damaged.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

import irlang
from irlang.diagnostics import InvalidInput
from irlang.importers import protobuf, tf_file, tf_functions, tf_model

V1 = tf.compat.v1


def sound() -> Any:
    """A graph, to be damaged."""
    graph = tf.Graph()
    with graph.as_default():
        x = V1.placeholder(tf.float32, [2, 4, 4, 1], name="x")
        w = tf.constant(np.arange(8, dtype=np.float32).reshape(2, 2, 1, 2), name="w")
        y = tf.nn.conv2d(x, w, strides=1, padding="SAME", name="c")
        y = tf.reshape(y, [2, -1], name="r")[:, 1:5]
        tf.nn.softmax(y, name="y")
    return graph.as_graph_def()


def codes(made: Any, folder: Path) -> list[str]:
    """The codes of what is wrong with a graph, or with the bytes of a file."""
    path = folder / "m.pb"
    path.write_bytes(made if isinstance(made, bytes) else made.SerializeToString())
    with pytest.raises(InvalidInput) as caught:
        tf_model.load(path, "m.safetensors")
    for diagnostic in caught.value.diagnostics:
        assert diagnostic.message
    return [diagnostic.code for diagnostic in caught.value.diagnostics]


def damaged(name: str, change: Callable[[Any], None]) -> Any:
    """The graph with a change of one of its nodes."""
    made = sound()
    change(next(node for node in made.node if node.name == name))
    return made


def test_a_sound_graph_is_read(tmp_path: Path) -> None:
    path = tmp_path / "m.pb"
    path.write_bytes(sound().SerializeToString())
    assert "y = softmax(strided_slice)" in tf_model.load(path, "m.safetensors").text


@pytest.mark.parametrize("data", [b"", b"\x00", b"tf", b"\xff" * 100, b"\x0a\x0a", b"\x0a\x00"])
def test_bytes_that_are_no_graph(data: bytes, tmp_path: Path) -> None:
    assert codes(data, tmp_path) == ["file.tf"]


def test_a_saved_model_is_read_as_its_graph(tmp_path: Path) -> None:
    from tensorflow.core.protobuf import saved_model_pb2

    saved = saved_model_pb2.SavedModel(saved_model_schema_version=1)
    assert codes(saved.SerializeToString(), tmp_path) == ["file.tf"]  # it holds none
    saved.meta_graphs.add().graph_def.CopyFrom(with_function(lambda _: None))
    path = tmp_path / "m.pb"
    path.write_bytes(saved.SerializeToString())
    assert "exp(x)" in tf_model.load(path, "d").text


def test_every_truncation_is_refused_or_read(tmp_path: Path) -> None:
    whole = sound().SerializeToString()
    read = 0
    for length in range(0, len(whole), 7):
        path = tmp_path / "m.pb"
        path.write_bytes(whole[:length])
        try:
            tf_model.load(path, "m.safetensors")
        except InvalidInput:
            continue
        read += 1
    assert read < len(whole) / 28


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damaged_bytes_are_refused_or_read(data: st.DataObject) -> None:
    """Neither a traceback, nor time, nor memory."""
    good = bytearray(sound().SerializeToString())
    for _ in range(data.draw(st.integers(1, 4))):
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    try:
        tf_model.translate(tf_file.message(bytes(good), "m"), "m", "m.safetensors")
    except InvalidInput:
        return


@given(st.binary(max_size=200))
def test_the_wire_reader_reads_or_refuses(data: bytes) -> None:
    try:
        total = sum(
            len(value)
            for _, _, value in protobuf.fields(memoryview(data))
            if type(value) is not int
        )
    except protobuf.Malformed:
        return
    assert total <= len(data)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=8), st.lists(st.floats(width=32)))
def test_the_wire_reader_agrees_with_protobuf(whole: list[int], real: list[float]) -> None:
    """Packed numbers, as TensorFlow's own classes write them."""
    made = tf.compat.v1.AttrValue()
    made.list.i.extend(whole)
    made.list.f.extend(real)
    (_, _, inner), *_ = [
        *protobuf.fields(memoryview(made.SerializeToString())),
        (0, 2, memoryview(b"")),
    ]
    found = {n: (kind, value) for n, kind, value in protobuf.fields(inner)}
    if whole:
        assert protobuf.integers(*found[3]) == whole
    if real:
        np.testing.assert_array_equal(protobuf.reals(*found[4], "<f4"), np.array(real, np.float32))


# ---- graphs


def test_a_circle(tmp_path: Path) -> None:
    def change(node: Any) -> None:
        node.input[0] = "y"

    assert codes(damaged("c", change), tmp_path) == ["file.circle"]
    made = sound()
    loop = made.node.add(name="a", op="Add")
    loop.input.extend(["x", "b"])
    other = made.node.add(name="b", op="Relu")
    other.input.append("a")
    end = made.node.add(name="end", op="Neg")
    end.input.append("a")
    assert codes(made, tmp_path) == ["file.circle"]
    with pytest.raises(InvalidInput) as caught:
        tf_model.load(tmp_path / "m.pb", "d")
    assert "`a` from `b` from `a`" in caught.value.diagnostics[0].message


def test_what_is_read_and_not_there(tmp_path: Path) -> None:
    def missing(node: Any) -> None:
        node.input[1] = "nothing"

    def beyond(node: Any) -> None:
        node.input[1] = "w:3"

    def unreadable(node: Any) -> None:
        node.input[1] = "w:-1"

    def first(node: Any) -> None:
        node.input[0] = "nothing"

    def of_input(node: Any) -> None:
        node.input[0] = "x:3"

    for change in (missing, beyond, first, of_input):
        assert codes(damaged("c", change), tmp_path) == ["file.missing"]
    assert codes(damaged("c", unreadable), tmp_path) == ["file.tf"]


def test_names_that_are_given_twice(tmp_path: Path) -> None:
    made = sound()
    last = made.node[-1]
    made.node.add().CopyFrom(last)
    assert codes(made, tmp_path) == ["file.duplicate"]


def test_a_graph_without_results(tmp_path: Path) -> None:
    made = sound()
    del made.node[1:]
    assert codes(made, tmp_path) == ["file.tf"]


def test_every_fault_is_said_at_once(tmp_path: Path) -> None:
    made = sound()
    for name, op in (("a", "While"), ("b", "NoSuchOperator"), ("d", "Softmax")):
        made.node.add(name=name, op=op).input.append("x" if name != "d" else "b")
    wide = made.node.add(name="e", op="Softmax")
    wide.input.extend(["x", "x"])
    assert codes(made, tmp_path) == ["import.operator"] * 3


def test_attributes_that_do_not_fit(tmp_path: Path) -> None:
    def none(node: Any) -> None:
        node.attr.clear()

    def kind(node: Any) -> None:
        node.attr["strides"].i = 3

    def few(node: Any) -> None:
        del node.attr["strides"].list.i[1:]

    def batches(node: Any) -> None:
        node.attr["strides"].list.i[0] = 2

    def padding(node: Any) -> None:
        node.attr["padding"].s = b"\xff\xfe"

    def more(node: Any) -> None:
        node.attr["new_thing"].b = True

    for change in (none, kind, few, batches, padding, more):
        assert codes(damaged("c", change), tmp_path) == ["import.operator"], change
    assert codes(damaged("w", none), tmp_path) == ["import.operator"]


def test_long_chains_do_not_exhaust_the_stack(tmp_path: Path) -> None:
    made = sound()
    for i in range(1200):
        node = made.node.add(name=f"n{i}", op="Neg")
        node.input.append(f"n{i + 1}" if i < 1199 else "x")
    first = made.node.add(name="c0", op="Const")
    first.attr["value"].tensor.dtype = 1
    first.attr["value"].tensor.float_val.append(2.0)
    for i in range(1200):
        made.node.add(name=f"c{i + 1}", op="Neg").input.append(f"c{i}")
    end = made.node.add(name="end", op="Mul")
    end.input.extend(["c1200", "x"])
    path = tmp_path / "m.pb"
    path.write_bytes(made.SerializeToString())
    text = tf_model.load(path, "d").text
    assert "n0 = negate(n1)" in text
    assert "end = multiply(" in text


# ---- types, sizes, numbers


def test_sizes_that_no_tensor_has(tmp_path: Path) -> None:
    for sizes in ([2**62, 4], [2**40, 2**40], [1] * 65):

        def change(node: Any, sizes: list[int] = sizes) -> None:
            del node.attr["shape"].shape.dim[:]
            for size in sizes:
                node.attr["shape"].shape.dim.add(size=size)

        assert codes(damaged("x", change), tmp_path) == ["file.shape"]

        def number(node: Any, sizes: list[int] = sizes) -> None:
            del node.attr["value"].tensor.tensor_shape.dim[:]
            for size in sizes:
                node.attr["value"].tensor.tensor_shape.dim.add(size=size)

        assert codes(damaged("w", number), tmp_path) == ["file.shape"]


def test_constants_that_would_fill_the_memory(tmp_path: Path) -> None:
    def two(node: Any) -> None:
        tensor = node.attr["value"].tensor
        tensor.ClearField("tensor_content")
        tensor.float_val.extend([1.0, 2.0])
        tensor.tensor_shape.dim[0].size = 2**40

    def alike(node: Any) -> None:
        two(node)
        del node.attr["value"].tensor.float_val[1:]

    assert codes(damaged("w", two), tmp_path) == ["file.tensor"]
    path = tmp_path / "m.pb"  # one number for all of them is a number in the text
    path.write_bytes(damaged("w", alike).SerializeToString())
    made = tf_model.load(path, "d")
    assert "param w: f32[1099511627776, 2, 1, 2] = 1.0" in made.text
    with pytest.raises(InvalidInput):
        irlang.loads(made.text)
    made = sound()
    for name, value in (("s", 0), ("l", 2**31 - 1), ("d", 1)):
        node = made.node.add(name=name, op="Const")
        node.attr["dtype"].type = 3
        node.attr["value"].tensor.dtype = 3
        node.attr["value"].tensor.int_val.append(value)
    made.node.add(name="range", op="Range").input.extend(["s", "l", "d"])
    made.node.add(name="sum", op="Tile").input.extend(["x", "range"])
    assert codes(made, tmp_path) == ["import.operator"]


@pytest.mark.parametrize("number", [0, 7, 8, 20, 21, 99, 1000])
def test_element_types_that_irlang_has_not(number: int, tmp_path: Path) -> None:
    def change(node: Any) -> None:
        node.attr["dtype"].type = number

    assert codes(damaged("x", change), tmp_path) == ["import.operator"]

    def constant(node: Any) -> None:
        node.attr["value"].tensor.dtype = number

    assert codes(damaged("w", constant), tmp_path) == ["import.operator"]


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    made = sound().SerializeToString().replace(b"Softmax", b"Soft\xff\xfe\xfd")
    assert codes(made, tmp_path) == ["file.tf"]
    weird = sound()
    weird.node[-1].name = "weird\n# name\x1b[31m\u202e"
    text = tf_model.translate(tf_file.message(weird.SerializeToString(), "m"), "m", "d").text
    assert "\u202e" not in text
    assert "\x1b" not in text


def test_numbers_that_do_not_fit_the_shape(tmp_path: Path) -> None:
    def shorter(node: Any) -> None:
        tensor = node.attr["value"].tensor
        tensor.tensor_content = tensor.tensor_content[:-1]

    def longer(node: Any) -> None:
        node.attr["value"].tensor.tensor_content += b"\0" * 4

    def many(node: Any) -> None:
        node.attr["value"].tensor.ClearField("tensor_content")
        node.attr["value"].tensor.float_val.extend([1.0] * 9)

    for change in (shorter, longer, many):
        assert codes(damaged("w", change), tmp_path) == ["file.tensor"]


def test_fewer_numbers_end_in_copies_of_the_last(tmp_path: Path) -> None:
    def change(node: Any) -> None:
        node.attr["value"].tensor.ClearField("tensor_content")
        node.attr["value"].tensor.float_val.extend([1.0, 2.0])

    path = tmp_path / "m.pb"
    path.write_bytes(damaged("w", change).SerializeToString())
    made = tf_model.load(path, "d")
    assert "[[[[1.0, 2.0], [2.0, 2.0]]], [[[2.0, 2.0], [2.0, 2.0]]]]" in " ".join(made.text.split())


def with_function(change: Callable[[Any], None]) -> Any:
    """A graph that calls a function, damaged."""
    graph = tf.Graph()
    with graph.as_default():
        body = tf.function(lambda v: tf.exp(v) + 1.0)
        tf.multiply(body(V1.placeholder(tf.float32, [2], name="x")), 2.0, name="y")
    made = graph.as_graph_def()
    change(made)
    return made


def call(made: Any) -> Any:
    return next(node for node in made.node if "PartitionedCall" in node.op)


def test_a_function_that_is_not_there_is_named(tmp_path: Path) -> None:
    def change(made: Any) -> None:
        call(made).attr["f"].func.name = "elsewhere"

    assert codes(with_function(change), tmp_path) == ["import.operator"]


def test_a_function_that_calls_itself_is_refused(tmp_path: Path) -> None:
    def change(made: Any) -> None:
        function = made.library.function[0]
        inner = function.node_def.add()
        inner.CopyFrom(call(made))
        inner.name = "again"
        inner.input[:] = [function.signature.input_arg[0].name]
        function.ret[function.signature.output_arg[0].name] = "again:output:0"

    assert codes(with_function(change), tmp_path) == ["import.operator"]


def test_functions_that_double_do_not_fill_the_memory(tmp_path: Path) -> None:
    def change(made: Any) -> None:
        first = made.library.function[0]
        name = first.signature.name
        for level in range(30):
            made.library.function.add().CopyFrom(first)
            function = made.library.function[-1]
            function.signature.name = f"level_{level}"
            del function.node_def[:]
            argument = function.signature.input_arg[0].name
            for number in range(2):
                inner = function.node_def.add()
                inner.CopyFrom(call(made))
                inner.name = f"half_{number}"
                inner.attr["f"].func.name = name
                inner.input[:] = [f"half_{number - 1}:output:0" if number else argument]
            function.ret[function.signature.output_arg[0].name] = "half_1:output:0"
            name = f"level_{level}"
        call(made).attr["f"].func.name = name

    assert codes(with_function(change), tmp_path) == ["file.tf"]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_damaged_functions_are_refused_or_read(data: st.DataObject) -> None:
    whole = bytearray(with_function(lambda _: None).SerializeToString(deterministic=True))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(InvalidInput):
        tf_model.translate(tf_functions.message(bytes(whole), "m.pb"), "m", "d")
