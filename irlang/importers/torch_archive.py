"""Opens a `.pt2` archive: a zip with the exported program as JSON and the raw bytes of tensors.

The layout is what `torch.export.save` of PyTorch 2.13 writes (`torch/export/pt2_archive`). The file
comes from outside: nothing is unpickled, members are read into memory by name and never unpacked,
and every size is held against the archive's own before anything is allocated.
"""

from __future__ import annotations

import json
import math
import os
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import ml_dtypes
import numpy as np

from irlang.diagnostics import InvalidInput, fail

Array = np.ndarray[Any, np.dtype[Any]]
_LARGEST_TEXT = 2**29  # bytes of JSON
_LARGEST_RANK = 64
_SHARE = 0.5  # of the machine's memory that an archive's tensors may take

# Numbers that the format has for element types (schema.ScalarType), and irlang's names. Those
# without a name here (complex, float8) have no place in the language.
DTYPES = {
    1: "u8", 2: "i8", 3: "i16", 4: "i32", 5: "i64", 6: "f16", 7: "f32", 8: "f64", 12: "bool",
    13: "bf16", 28: "u16", 34: "u32", 35: "u64",
}  # fmt: skip
_NUMPY: dict[str, np.dtype[Any]] = {
    "bool": np.dtype(bool),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    **{
        name: np.dtype(f"<{name[0]}{int(name[1:]) // 8}")
        for name in DTYPES.values()
        if name[0] in "iuf"
    },
}  # fmt: skip


def malformed(what: str) -> InvalidInput:
    """The exception for an archive whose content is not of the format."""
    return fail(
        "file.torch",
        f"the archive is malformed: {what}",
        help="export it again with torch.export.save of PyTorch 2.13",
    )


@dataclass(frozen=True, slots=True)
class Stored:
    """Where the elements of a tensor lie: a member of the archive, a type, a strided view of it."""

    member: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


class Archive:
    """An open archive. program: the parsed JSON. tensors: where each weight and constant lies."""

    def __init__(self, source: Path | IO[bytes]) -> None:
        try:
            self._zip = zipfile.ZipFile(source)
            self._members = {info.filename: info for info in self._zip.infolist()}
        except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise fail(
                "file.torch", f"this is no .pt2 archive: {error}", help="see torch.export.save"
            ) from None
        roots = {name.split("/")[0] for name in self._members}
        found = [root for root in sorted(roots) if f"{root}/archive_format" in self._members]
        if len(found) != 1:
            raise fail(
                "file.torch",
                "this zip is no .pt2 archive: it has no member `archive_format`",
                help="save it with torch.export.save; files of torch.save hold pickles",
            )
        self._root = found[0]
        if self._bytes("archive_format", 16).strip() != b"pt2":
            raise malformed("its format is not `pt2`")
        if f"{self._root}/byteorder" in self._members:
            order = self._bytes("byteorder", 16).strip()
            if order != b"little":
                raise malformed("its tensors are not little-endian")
        models = sorted(
            name
            for name in self._members
            if name.startswith(f"{self._root}/models/") and name.endswith(".json")
        )
        if len(models) != 1:
            raise malformed(f"it holds {len(models)} programs; one is expected")
        stem = models[0].rsplit("/", 1)[1].removesuffix(".json")
        self.program = self._json(models[0].removeprefix(f"{self._root}/"))
        self.tensors: dict[str, Stored] = {}
        self.refused: dict[str, str] = {}
        for folder, kind in (("weights", "weights"), ("constants", "constants")):
            path = f"data/{folder}/{stem}_{kind}_config.json"
            if f"{self._root}/{path}" in self._members:
                self._payload(self._json(path), f"data/{folder}/")

    def _member(self, path: str) -> zipfile.ZipInfo:
        info = self._members.get(f"{self._root}/{path}")
        if info is None:
            raise malformed(f"`{path[:80]}` is missing")
        return info

    def _bytes(self, path: str, limit: int) -> bytes:
        info = self._member(path)
        if info.file_size > limit:
            raise malformed(f"`{path[:80]}` has {info.file_size} bytes")
        try:
            with self._zip.open(info) as stream:
                data = stream.read(info.file_size + 1)
        except (OSError, zipfile.BadZipFile, zlib.error, RuntimeError, EOFError, ValueError) as e:
            raise malformed(f"`{path[:80]}` cannot be read: {e}") from None
        except NotImplementedError:
            raise malformed(f"`{path[:80]}` is compressed in an unknown way") from None
        if len(data) != info.file_size:
            raise malformed(f"`{path[:80]}` is not as long as it says")
        return data

    def _json(self, path: str) -> Any:
        try:
            return json.loads(self._bytes(path, _LARGEST_TEXT))
        except (ValueError, RecursionError, MemoryError):
            raise malformed(f"`{path[:80]}` is not JSON") from None

    def _payload(self, raw: Any, folder: str) -> None:
        """Reads a table of tensors."""
        for name, entry in mapping(mapping(raw, "a table of tensors").get("config"), "it").items():
            entry = mapping(entry, f"tensor `{name}`")
            path = text(entry.get("path_name"), f"tensor `{name}`")
            if entry.get("use_pickle"):
                self.refused[name] = "it is pickled, and pickles are not read"
                continue
            meta = entry.get("tensor_meta")
            if meta is None:
                self.refused[name] = "it is an object, not a tensor"
                continue
            meta = mapping(meta, f"tensor `{name}`")
            dtype = DTYPES.get(whole(meta.get("dtype"), f"tensor `{name}`"))
            if dtype is None:
                self.refused[name] = "its element type has no place in irlang"
                continue
            self._member(folder + path)
            self.tensors[name] = Stored(
                folder + path,
                dtype,
                sizes(meta.get("sizes"), f"tensor `{name}`"),
                sizes(meta.get("strides"), f"tensor `{name}`"),
                size(meta.get("storage_offset"), f"tensor `{name}`"),
            )

    def require_memory(self) -> None:
        """Raises where the tensors do not fit into memory, before any is allocated."""
        needed = sum(8 * math.prod(item.shape) for item in self.tensors.values())
        available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if needed > _SHARE * available:
            raise fail("run.memory", f"the tensors need {needed / 2**30:.1f} GiB")

    def tensor(self, name: str) -> Array:
        """The elements of a weight or constant, in the type's own NumPy type."""
        if name in self.refused:
            raise malformed(f"tensor `{name[:80]}` cannot be read: {self.refused[name]}")
        if name not in self.tensors:
            raise malformed(f"there is no tensor `{name[:80]}`")
        item = self.tensors[name]
        dtype = _NUMPY[item.dtype]
        if len(item.shape) != len(item.strides) or len(item.shape) > _LARGEST_RANK:
            raise malformed(f"tensor `{name[:80]}` has {len(item.strides)} strides")
        count = math.prod(item.shape)
        if count == 0:
            return np.zeros(item.shape, dtype)
        info = self._member(item.member)
        reach = item.offset + sum(
            (n - 1) * s for n, s in zip(item.shape, item.strides, strict=True)
        )
        if (reach + 1) * dtype.itemsize > info.file_size or info.file_size % dtype.itemsize:
            raise malformed(f"tensor `{name[:80]}` reaches beyond its {info.file_size} bytes")
        if count * dtype.itemsize > 2**40 or count > 8 * max(info.file_size, 2**20):
            # a stride of 0 repeats elements: as many as this no model has
            raise malformed(f"tensor `{name[:80]}` repeats its elements {count} times")
        flat = np.frombuffer(self._bytes(item.member, info.file_size), dtype)
        view = np.lib.stride_tricks.as_strided(
            flat[item.offset :],
            item.shape,
            tuple(s * dtype.itemsize for s in item.strides),
            writeable=False,
        )
        return np.array(view, dtype=dtype.newbyteorder("="))


# ---- what JSON may hold


def mapping(raw: Any, what: str) -> Mapping[str, Any]:
    """`raw`, which must be an object."""
    if not isinstance(raw, dict):
        raise malformed(f"{what[:80]} is no object")
    return raw


def listed(raw: Any, what: str) -> list[Any]:
    """`raw`, which must be a list."""
    if not isinstance(raw, list):
        raise malformed(f"{what[:80]} is no list")
    return raw


def text(raw: Any, what: str) -> str:
    """`raw`, which must be a text."""
    if not isinstance(raw, str):
        raise malformed(f"{what[:80]} is no text")
    return raw


def whole(raw: Any, what: str) -> int:
    """`raw`, which must be an integer of 64 bits."""
    if isinstance(raw, bool) or not isinstance(raw, int) or not -(2**63) <= raw < 2**63:
        raise malformed(f"{what[:80]} is no integer")
    return raw


def size(raw: Any, what: str) -> int:
    """A size that is written as a number."""
    found = whole(mapping(raw, what).get("as_int"), what)
    if found < 0:
        raise malformed(f"{what[:80]} has a negative size")
    return found


def sizes(raw: Any, what: str) -> tuple[int, ...]:
    """Sizes that are written as numbers."""
    return tuple(size(item, what) for item in listed(raw, what))
