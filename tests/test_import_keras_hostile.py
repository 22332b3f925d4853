"""Files that are no Keras models, or dangerous ones: a diagnostic, never a traceback."""

from __future__ import annotations

import io
import json
import os
import zipfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import keras
import numpy as np
import pytest
from keras import layers as L  # noqa: N812

from irlang.diagnostics import InvalidInput
from irlang.importers.keras_model import load


def saved(folder: Path) -> dict[str, bytes]:
    """The members of a small model's archive."""
    x = keras.Input((3,), name="x")
    model = keras.Model(x, L.ReLU(name="relu")(L.Dense(2, name="dense")(x)))
    model.save(folder / "whole.keras")
    with zipfile.ZipFile(folder / "whole.keras") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(folder: Path, members: dict[str, bytes]) -> Path:
    path = folder / "model.keras"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def refused(path: Path) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        load(path, "weights.safetensors")
    assert all(d.message for d in caught.value.diagnostics)
    return caught.value


def reconfigured(members: dict[str, bytes], edit: Callable[[Any], Any]) -> dict[str, bytes]:
    config = json.loads(members["config.json"])
    edit(config)
    return {**members, "config.json": json.dumps(config).encode()}


def rewritten(members: dict[str, bytes], edit: Callable[[Any], Any]) -> dict[str, bytes]:
    buffer = io.BytesIO(members["model.weights.h5"])
    with h5py.File(buffer, "r+") as file:
        edit(file)
    return {**members, "model.weights.h5": buffer.getvalue()}


def test_the_model_itself_is_read(tmp_path: Path) -> None:
    text = load(packed(tmp_path, saved(tmp_path)), None).text
    assert "relu = relu(dense)" in text


def test_layers_that_are_not_supported_are_listed_at_once(tmp_path: Path) -> None:
    x = keras.Input((4, 4, 3), name="x")
    y = L.AutoContrast(name="contrast")(x)
    y = L.Lambda(lambda z: z + 1, name="mine")(y)
    inner = keras.Sequential([keras.Input((4, 4, 3)), L.AutoContrast(name="again")], name="inner")
    y = L.LSTM(2, stateful=False, name="fine")(L.Reshape((4, 12))(inner(y)))
    keras.Model(x, y).save(tmp_path / "model.keras")
    found = refused(tmp_path / "model.keras").diagnostics
    assert [d.node for d in found] == ["contrast", "mine", "inner/again"]
    assert "AutoContrast" in found[0].message
    assert "histogram" in found[0].message
    assert "`op`" in found[1].help


def test_arguments_that_are_not_supported_are_listed_at_once(tmp_path: Path) -> None:
    x = keras.Input((4, 4, 3), name="x")
    y = L.Resizing(2, 2, interpolation="lanczos5", name="five")(x)
    z = L.Resizing(2, 2, interpolation="lanczos3", name="lanczos")(x)
    keras.Model(x, [L.Flatten()(y), z]).save(tmp_path / "model.keras")
    assert [d.node for d in refused(tmp_path / "model.keras").diagnostics] == ["five", "lanczos"]


@pytest.mark.parametrize(
    "content",
    [b"", b"PK\x03\x04", b"\x89HDF\r\n\x1a\n", b"\x89HDF\r\n\x1a\n" + b"\0" * 500, b"x" * 99],
)
def test_no_file_of_keras(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    path.write_bytes(content)
    assert refused(path).diagnostics[0].code == "file.keras"


def test_no_file_at_all(tmp_path: Path) -> None:
    assert refused(tmp_path / "none.keras").diagnostics[0].code == "file.read"


@pytest.mark.parametrize("missing", ["config.json", "metadata.json", "model.weights.h5"])
def test_a_missing_member(missing: str, tmp_path: Path) -> None:
    members = saved(tmp_path)
    del members[missing]
    assert missing in refused(packed(tmp_path, members)).diagnostics[0].message


@pytest.mark.parametrize("cut", [1, 10, 100, 500, 900])
def test_a_truncated_archive(cut: int, tmp_path: Path) -> None:
    whole = packed(tmp_path, saved(tmp_path)).read_bytes()
    path = tmp_path / "cut.keras"
    path.write_bytes(whole[: len(whole) * cut // 1000])
    refused(path)


def test_a_member_that_unpacks_to_far_more(tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("metadata.json", "{}")
        archive.writestr("config.json", b" " * (2**28 + 1))
    assert "says it has" in refused(path).diagnostics[0].message


@pytest.mark.parametrize(
    "content", [b"[", b"[]", b"{}", b'{"config": 3}', b"[" * 100_000, b"\xff", b'{"config": {}}']
)
def test_a_configuration_that_is_none(content: bytes, tmp_path: Path) -> None:
    refused(packed(tmp_path, {**saved(tmp_path), "config.json": content}))


EDITS: dict[str, Callable[[Any], Any]] = {
    "no layers": lambda c: c["config"].pop("layers"),
    "layers of another kind": lambda c: c["config"].update(layers=[3]),
    "no class": lambda c: c["config"]["layers"][1].pop("class_name"),
    "an unknown class": lambda c: c["config"]["layers"][1].update(class_name="os.system"),
    "a number for units": lambda c: c["config"]["layers"][1]["config"].update(units="2"),
    "far too many units": lambda c: c["config"]["layers"][1]["config"].update(units=10**12),
    "a negative size": lambda c: c["config"]["layers"][0]["config"].update(batch_shape=[None, -3]),
    "a size that is none": lambda c: c["config"]["layers"][0]["config"].update(batch_shape=["a"]),
    "a shape that is none": lambda c: c["config"]["layers"][0]["config"].update(batch_shape=3),
    "a type that is none": lambda c: c["config"]["layers"][0]["config"].update(dtype="object"),
    "a loop": lambda c: c["config"]["layers"][1].update(
        inbound_nodes=c["config"]["layers"][2]["inbound_nodes"]
    ),
    "an output of nothing": lambda c: c["config"].update(output_layers=[["none", 0, 0]]),
    "an output that is none": lambda c: c["config"].update(output_layers=[[3]]),
    "no outputs": lambda c: c["config"].update(output_layers=[]),
    "an input that is none": lambda c: c["config"].update(input_layers=[["none", 0, 0]]),
    "nodes of another kind": lambda c: c["config"]["layers"][1].update(inbound_nodes=[3]),
    "nodes that are none": lambda c: c["config"]["layers"][1].update(inbound_nodes=3),
    "arguments that are none": lambda c: c["config"]["layers"][1].update(
        inbound_nodes=[{"args": 3, "kwargs": 4}]
    ),
    "an activation of code": lambda c: c["config"]["layers"][1]["config"].update(
        activation={"class_name": "__lambda__", "config": {"value": "4wAAAA=="}}
    ),
    "a subclassed model": lambda c: c.update(class_name="Mine", config={"name": "mine"}),
    "a deep configuration": lambda c: c["config"]["layers"][1]["config"].update(
        activation=json.loads('{"a":' * 300 + "1" + "}" * 300)
    ),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
def test_a_configuration_that_is_wrong(edit: Callable[[Any], Any], tmp_path: Path) -> None:
    refused(packed(tmp_path, reconfigured(saved(tmp_path), edit)))


def replaced(file: Any, make: Callable[[Any], Any]) -> None:
    group = file["layers/dense/vars"]
    del group["0"]
    make(group)


WEIGHTS: dict[str, Callable[[Any], Any]] = {
    "a link out of the file": lambda g: g.__setitem__("0", h5py.ExternalLink("/etc/passwd", "/")),
    "a soft link": lambda g: g.__setitem__("0", h5py.SoftLink("/layers/dense/vars/1")),
    "numbers in another file": lambda g: g.create_dataset(
        "0", (3, 2), "f4", external=[("/etc/passwd", 0, 24)]
    ),
    "numbers that are not there": lambda g: g.create_dataset("0", (10**6, 10**6), "f4"),
    "text": lambda g: g.create_dataset("0", data=np.array([b"a", b"b"])),
    "objects": lambda g: g.create_dataset("0", data=["a", "b"], dtype=h5py.string_dtype()),
    "a group": lambda g: g.create_group("0"),
    "nothing": lambda _: None,
    "another shape": lambda g: g.create_dataset("0", data=np.zeros((2, 3), "f4")),
    "another rank": lambda g: g.create_dataset("0", data=np.float32(3)),
}


@pytest.mark.parametrize("make", WEIGHTS.values(), ids=WEIGHTS.keys())
def test_weights_that_are_wrong(make: Callable[[Any], Any], tmp_path: Path) -> None:
    members = rewritten(saved(tmp_path), lambda file: replaced(file, make))
    refused(packed(tmp_path, members))


def test_packed_weights_are_read(tmp_path: Path) -> None:
    def make(group: Any) -> None:
        group.create_dataset("0", data=np.eye(3, 2, dtype="f4"), compression="gzip")

    members = rewritten(saved(tmp_path), lambda file: replaced(file, make))
    assert "[[1.0, 0.0]" in load(packed(tmp_path, members), None).text


def test_a_damaged_weights_file(tmp_path: Path) -> None:
    members = saved(tmp_path)
    content = members["model.weights.h5"]
    refused(packed(tmp_path, {**members, "model.weights.h5": content[: len(content) // 3]}))


def test_weights_without_a_model(tmp_path: Path) -> None:
    path = tmp_path / "model.h5"
    with h5py.File(path, "w") as file:
        file.create_group("model_weights")
    assert "no model" in refused(path).diagnostics[0].message


def test_nothing_of_a_lambda_is_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    x = keras.Input((3,), name="x")
    keras.Model(x, L.Lambda(lambda z, p=str(mark): [open(p, "w"), z][1])(x)).save(  # noqa: PTH123, SIM115
        tmp_path / "model.keras"
    )
    mark.unlink(missing_ok=True)
    refused(tmp_path / "model.keras")
    assert not mark.exists()
