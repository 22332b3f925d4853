"""Opens what Keras saves: `.keras` archives, and the `.h5` files of Keras 2.

The file comes from outside. Nothing in it is run or unpickled; members are read by their names and
never unpacked; sizes are held against what is stored before anything is allocated; links that lead
out of a weights file are refused. Keras is not needed, only `h5py`.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from irlang.diagnostics import InvalidInput, fail
from irlang.importers.keras_weights import Listed, Weights
from irlang.importers.writer import Array

_LARGEST_TEXT = 2**28  # bytes of a configuration
_LARGEST_WEIGHTS = 2**37  # bytes of a weights file
_PACKED = 1040  # no deflated byte stands for more
_WEIGHTS = "model.weights.h5"


@dataclass(frozen=True, slots=True)
class Saved:
    """A saved model. config: `class_name` and `config`, as saved; version: of Keras, 2 or 3."""

    config: dict[str, Any]
    version: int
    made_by: str
    weights: Weights


def malformed(what: str) -> InvalidInput:
    """The exception for a file that is not what Keras writes."""
    return fail(
        "file.keras",
        f"the file is not a saved Keras model: {what}",
        help="save it again with model.save('name.keras')",
    )


def read(path: Path) -> Saved:
    """A saved model; raises `InvalidInput` where the file is none."""
    try:
        with path.open("rb") as stream:
            start = stream.read(8)
            stream.seek(0)
            if start == b"\x89HDF\r\n\x1a\n":
                return _legacy(_opened(stream))
            if not zipfile.is_zipfile(stream):
                raise malformed("it is neither an archive nor an HDF5 file")
            stream.seek(0)
            with zipfile.ZipFile(stream) as archive:
                return _archive(archive)
    except OSError as error:
        raise fail("file.read", f"{path} cannot be read: {error.strerror or error}") from None
    except (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, EOFError) as error:
        raise malformed(str(error)) from None


def _archive(archive: zipfile.ZipFile) -> Saved:
    metadata = _json(_member(archive, "metadata.json", _LARGEST_TEXT))
    config = _json(_member(archive, "config.json", _LARGEST_TEXT))
    made_by = str(metadata.get("keras_version", "3")) if isinstance(metadata, dict) else "3"
    if _WEIGHTS not in archive.namelist():
        raise malformed(f"it has no {_WEIGHTS}")
    file = _opened(io.BytesIO(_member(archive, _WEIGHTS, _LARGEST_WEIGHTS)))
    return Saved(_model(config), 2 if made_by.startswith("2.") else 3, made_by, Tree(file))


def _member(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    """The bytes of a member, no more than it says, and no more than its packed bytes can mean."""
    try:
        info = archive.getinfo(name)
    except KeyError:
        raise malformed(f"it has no {name}") from None
    if info.file_size > limit or info.file_size > max(1, info.compress_size) * _PACKED:
        raise malformed(f"{name} says it has {info.file_size} bytes")
    with archive.open(info) as stream:
        content = stream.read(info.file_size + 1)
    if len(content) != info.file_size:
        raise malformed(f"{name} has not the {info.file_size} bytes that it says")
    return content


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise malformed(f"its configuration is no JSON ({type(error).__name__})") from None


def _model(config: Any) -> dict[str, Any]:
    if not isinstance(config, dict) or not isinstance(config.get("config"), dict):
        raise malformed("its configuration is that of no model")
    return config


# ---- HDF5


def library() -> Any:
    """The package `h5py`; raises `InvalidInput` where it is not installed."""
    try:
        import h5py
    except ImportError:
        raise fail(
            "usage.keras",
            "the weights of Keras models are read by the package `h5py`, which is not installed",
            help="install irlang with the extra `keras`",
        ) from None
    return h5py


def _opened(stream: Any) -> Any:
    """A weights file. What is not in memory is read whole: the file may not change meanwhile."""
    h5py = library()
    content = stream if isinstance(stream, io.BytesIO) else io.BytesIO(stream.read())
    try:
        return h5py.File(content, "r")
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise malformed(f"its weights are no HDF5 file ({error})") from None


def _item(group: Any, name: str) -> Any:
    """A member of a group that lies in the file itself; None where there is none."""
    h5py = library()
    try:
        if name not in group:
            return None
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            raise malformed(f"`{name}` in its weights is a link")
        return group[name]
    except (OSError, RuntimeError, KeyError, ValueError) as error:
        raise malformed(f"`{name}` in its weights cannot be read ({error})") from None


def _array(dataset: Any) -> Array:
    """The numbers of a dataset, which must be stored in the file."""
    name = dataset.name
    if dataset.external or dataset.is_virtual:
        raise malformed(f"`{name}` in its weights lies outside of the file")
    if dataset.dtype.kind not in "fiub" or dataset.dtype.hasobject:
        raise malformed(f"`{name}` in its weights is not numeric")
    there = dataset.id.get_storage_size()
    packed = dataset.compression is not None
    if dataset.nbytes > there * (_PACKED if packed else 1):
        raise malformed(f"`{name}` in its weights says {dataset.nbytes} bytes and has {there}")
    try:
        return np.asarray(dataset[()])
    except (OSError, RuntimeError, ValueError) as error:
        raise malformed(f"`{name}` in its weights cannot be read ({error})") from None


class Tree(Weights):
    """Weights as Keras 3 saves them: `vars/0`, … of a layer, and the layers inside by name."""

    def __init__(self, group: Any) -> None:
        super().__init__()
        self.group = group
        self.arrays: dict[int, Array | None] = {}
        self.parts: dict[tuple[str, ...], Weights] = {}

    def get(self, position: int) -> Array | None:
        """A weight, if there is one."""
        if position not in self.arrays:
            found = self._place(("vars", str(position)))
            stored = found is not None and hasattr(found, "nbytes")
            self.arrays[position] = _array(found) if stored else None
        return self.arrays[position]

    def part(self, names: tuple[str, ...], _: int = 0, __: int | None = None) -> Weights:
        """The weights of a layer inside, by the first of these names that there is."""
        if names not in self.parts:
            groups = (self._place(tuple(name.split("/"))) for name in names)
            found = next((group for group in groups if hasattr(group, "keys")), None)
            self.parts[names] = Listed({}) if found is None else Tree(found)
        return self.parts[names]

    def _place(self, path: Sequence[str]) -> Any:
        place = self.group
        for name in path:
            place = _item(place, name) if hasattr(place, "keys") else None
        return place

    def __len__(self) -> int:
        """How many the layer itself has."""
        group = self._place(("vars",))
        return len(group) if hasattr(group, "keys") else 0


class Named(Weights):
    """Weights as Keras 2 saves them: a list for every layer of the model, by the layer's name."""

    def __init__(self, group: Any) -> None:
        super().__init__()
        self.group = group
        self.parts: dict[str, Weights] = {}

    def get(self, _: int) -> Array | None:
        """A model has no weights of its own."""
        return None

    def layer(self, path: Sequence[str]) -> Weights:
        """The weights of a layer, by the names of the models around it and its own."""
        key = "/".join(path)
        if key not in self.parts:
            items = [array for name, array in self._items(path[0]) if _inside(name, path[1:])]
            self.parts[key] = Listed(dict(enumerate(items)))
        return self.parts[key]

    def _items(self, layer: str) -> Iterator[tuple[str, Array]]:
        group = _item(self.group, layer)
        if not hasattr(group, "keys"):
            return
        for raw in group.attrs.get("weight_names", ()):
            name = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
            place = group
            for part in name.split("/"):
                place = _item(place, part) if hasattr(place, "keys") else None
            if not hasattr(place, "nbytes"):
                raise malformed(f"the weight `{name}` is not there")
            yield name, _array(place)

    def __len__(self) -> int:
        """None of its own."""
        return 0


def _inside(name: str, path: Sequence[str]) -> bool:
    """Whether the name of a weight has those of the layers around it."""
    return set(path) <= set(name.split("/"))


def _legacy(file: Any) -> Saved:
    """An `.h5` file with the configuration of the model in an attribute."""
    given = file.attrs.get("model_config")
    if given is None:
        raise fail(
            "file.keras",
            "the file has weights, but no model",
            help="save the model, not its weights alone: model.save('name.keras')",
        )
    content = given if isinstance(given, bytes) else str(given).encode()
    made_by = file.attrs.get("keras_version", "2")
    made_by = made_by.decode("utf-8", "replace") if isinstance(made_by, bytes) else str(made_by)
    group = _item(file, "model_weights")
    if not hasattr(group, "keys"):
        raise malformed("it has no weights")
    version = 3 if made_by.startswith("3") else 2
    return Saved(_model(_json(content)), version, made_by, Named(group))
