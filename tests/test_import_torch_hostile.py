"""`.pt2` files that are not what they say: every fault is a diagnostic, and nothing is executed."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from irlang.diagnostics import InvalidInput
from irlang.importers import torch_import
from irlang.parser import parse

CPU = {"type": "cpu", "index": None}
Files = dict[str, bytes]


def meta(shape: list[int], dtype: int = 7, strides: list[int] | None = None) -> dict[str, Any]:
    """The type of a tensor, as the format writes it."""
    steps, step = [], 1
    for size in reversed(shape):
        steps.append(step)
        step *= size
    return {
        "dtype": dtype,
        "sizes": [{"as_int": n} for n in shape],
        "requires_grad": False,
        "device": CPU,
        "strides": [{"as_int": n} for n in (steps[::-1] if strides is None else strides)],
        "storage_offset": {"as_int": 0},
        "layout": 7,
    }


def tensor(name: str) -> dict[str, Any]:
    return {"as_tensor": {"name": name}}


def program() -> dict[str, Any]:
    """Y = x + w, by hand."""
    node = {
        "target": "torch.ops.aten.add.Tensor",
        "inputs": [
            {"name": "self", "arg": tensor("x"), "kind": 1},
            {"name": "other", "arg": tensor("p_w"), "kind": 1},
        ],
        "outputs": [tensor("add")],
        "metadata": {},
        "name": "add",
    }
    graph = {
        "inputs": [tensor("p_w"), tensor("x")],
        "outputs": [tensor("add")],
        "nodes": [node],
        "tensor_values": {name: meta([2, 3]) for name in ("p_w", "x", "add")},
        "sym_int_values": {},
        "sym_bool_values": {},
    }
    parameter = {"arg": {"name": "p_w"}, "parameter_name": "w"}
    signature = {
        "input_specs": [{"parameter": parameter}, {"user_input": {"arg": tensor("x")}}],
        "output_specs": [{"user_output": {"arg": tensor("add")}}],
    }
    return {
        "graph_module": {"graph": graph, "signature": signature},
        "schema_version": {"major": 8, "minor": 20},
    }


def weights(path: str = "weight_0", **changes: Any) -> dict[str, Any]:
    """The table of weights."""
    entry = {"path_name": path, "is_param": True, "use_pickle": False, "tensor_meta": meta([2, 3])}
    return {"config": {"w": {**entry, **changes}}}


def archive(
    graph: Any = None, table: Any = None, payload: bytes = struct.pack("<6f", *range(6))
) -> Files:
    """The members of an archive."""
    return {
        "m/archive_format": b"pt2",
        "m/byteorder": b"little",
        "m/models/model.json": json.dumps(program() if graph is None else graph).encode(),
        "m/data/weights/model_weights_config.json": json.dumps(table or weights()).encode(),
        "m/data/weights/weight_0": payload,
    }


def packed(files: Files) -> io.BytesIO:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as target:
        for name, data in files.items():
            target.writestr(name, data)
    stream.seek(0)
    return stream


def told(stream: Any) -> str:
    """The diagnostics of a file that must be refused."""
    with pytest.raises(InvalidInput) as caught:
        torch_import.load(stream, data=None)
    assert all(d.code.startswith(("torch.", "file.", "run.")) for d in caught.value.diagnostics)
    return "; ".join(f"{d.code}: {d.message}" for d in caught.value.diagnostics)


def test_the_archive_by_hand_is_read() -> None:
    text = torch_import.load(packed(archive()), data=None).text
    assert "add = add(x, w)" in text
    assert "[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]" in text


@pytest.mark.parametrize("data", [b"", b"PK", b"not a zip at all" * 40, pickle.dumps([1, 2])])
def test_no_zip(data: bytes) -> None:
    assert "file.torch" in told(io.BytesIO(data))


def test_cut_short() -> None:
    whole = packed(archive()).getvalue()
    for size in range(0, len(whole), 97):
        assert told(io.BytesIO(whole[:size]))


def test_a_zip_of_torch_save_is_no_program() -> None:
    assert "pickles" in _help(packed({"m/data.pkl": pickle.dumps(1), "m/version": b"3"}))


def _help(stream: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        torch_import.load(stream)
    return caught.value.diagnostics[0].help


class Trap:
    """Unpickling it leaves a mark."""

    def __reduce__(self) -> Any:
        return (pytest.fail, ("it was unpickled",))


def test_pickles_are_not_read() -> None:
    found = told(packed(archive(table=weights(use_pickle=True), payload=pickle.dumps(Trap()))))
    assert "pickled" in found


@pytest.mark.parametrize(
    "path", ["../weight_0", "/etc/passwd", "../../../../etc/passwd", "", "a\0"]
)
def test_paths_are_names_of_members_only(path: str) -> None:
    assert "missing" in told(packed(archive(table=weights(path))))


def _of(shape: list[int], **changes: Any) -> Any:
    table = weights(tensor_meta={**meta(shape), **changes})
    graph = program()
    graph["graph_module"]["graph"]["tensor_values"]["p_w"] = meta(shape)
    return packed(archive(graph, table))


@pytest.mark.parametrize(
    ("stream", "word"),
    [
        (lambda: _of([10**9, 10**9]), "GiB"),
        (lambda: _of([10**6, 10]), "reaches beyond"),
        (lambda: _of([10**6, 10], strides=[{"as_int": 0}] * 2), "repeats"),
        (lambda: _of([2, 4]), "reaches beyond"),
        (lambda: _of([2, 3], strides=[{"as_int": -1}, {"as_int": 1}]), "negative"),
        (lambda: _of([2, 3], strides=[{"as_int": 1}]), "strides"),
        (lambda: _of([2, 3], storage_offset={"as_int": 3}), "reaches beyond"),
        (lambda: _of([2, 3], storage_offset={"as_int": -3}), "negative"),
        (lambda: _of([-2, 3]), "negative"),
        (lambda: _of([2, 3], sizes=[{"as_int": 2**70}, {"as_int": 3}]), "integer"),
        (lambda: _of([2, 3], dtype=99), "element type"),
        (lambda: packed(archive(payload=b"123")), "reaches beyond"),
    ],
)
def test_sizes_are_checked_before_anything_is_read(stream: Callable[[], Any], word: str) -> None:
    assert word in told(stream())


def test_a_bomb_is_not_unpacked() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as target:
        for name, data in archive().items():
            target.writestr(name, data)
        target.writestr("m/data/weights/weight_1", bytes(2**26))
    stream.seek(0)
    assert "add(" in torch_import.load(stream, data=None).text  # what nothing names is not read


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b"null", b"[" * 100_000, b'{"graph_module": 1}', b"\xff\xfe", b"9" * 9999],
)
def test_no_program(text: bytes) -> None:
    assert "file.torch" in told(packed({**archive(), "m/models/model.json": text}))


def _places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    )
    for key, value in items:
        found += _places(value, (*path, key))
    return found


@pytest.mark.parametrize(
    "wrong", [None, [], {}, "text", -1, 2**80, 1.5, True, [[]], {"as_int": {}}]
)
def test_any_wrong_value_anywhere_is_a_diagnostic(wrong: Any) -> None:
    """Every value of the program and of the table of weights, one after another, is replaced."""
    for which in ("program", "weights"):
        right = program() if which == "program" else weights()
        for path in _places(right):
            tree = copy.deepcopy(right)
            place = tree
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = wrong
            files = archive(tree) if which == "program" else archive(table=tree)
            with contextlib.suppress(InvalidInput):  # anything else is a traceback
                torch_import.load(packed(files), data=None)
            place.pop(path[-1])
            files = archive(tree) if which == "program" else archive(table=tree)
            with contextlib.suppress(InvalidInput):  # anything else is a traceback
                torch_import.load(packed(files), data=None)


@pytest.mark.parametrize(
    "written",
    [
        "__import__('os').system('true')",
        "2**2**2**2**2**99",
        "+".join(["s0"] * 5000),
        "(" * 500 + "s0" + ")" * 500,
        "lambda: 0",
        "s0 // 0",
        "Symbol('a b', x=(1).__class__)",
        "Max()",
    ],
)
def test_expressions_of_sizes_are_not_evaluated(written: str) -> None:
    graph = program()
    sizes = graph["graph_module"]["graph"]["tensor_values"]["x"]["sizes"]
    sizes[0] = {"as_expr": {"expr_str": written, "hint": {"as_int": 2}}}
    assert told(packed(archive(graph)))


def test_names_from_outside_stay_names() -> None:
    graph = program()
    bad = 'x"\n}\nmodel evil(a: f32[1]) -> a: f32[1] {\n#'
    raw = json.dumps(graph).replace('"x"', json.dumps(bad))
    text = torch_import.load(packed(archive(json.loads(raw)))).text
    assert [model.name for model in parse(text, "").models] == ["imported"]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert "file.torch" in told(tmp_path / "none.pt2")
