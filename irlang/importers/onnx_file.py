"""ONNX files: their protobuf message and the tensors in it, as untrusted input.

Nothing is allocated before the bytes for it are known to be there; external data lies in regular
files inside the model's folder, wherever links lead.
"""

from __future__ import annotations

import math
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np

from irlang.diagnostics import InvalidInput, fail
from irlang.dtypes import DTYPES, integer_range
from irlang.equations import TensorInfo
from irlang.importers.value import Unsupported, check_shape
from irlang.importers.writer import Array

_LARGEST_FILE = 2**31 - 1  # bytes; protobuf has no longer messages

# Element types by their number in `TensorProto.DataType`, and the typed field that may hold them.
_TYPES: dict[int, tuple[str, str]] = {
    1: ("f32", "float_data"), 2: ("u8", "int32_data"), 3: ("i8", "int32_data"),
    4: ("u16", "int32_data"), 5: ("i16", "int32_data"), 6: ("i32", "int32_data"),
    7: ("i64", "int64_data"), 9: ("bool", "int32_data"), 10: ("f16", "int32_data"),
    11: ("f64", "double_data"), 12: ("u32", "uint64_data"), 13: ("u64", "uint64_data"),
    16: ("bf16", "int32_data"), 17: ("f8e4m3fn", "int32_data"), 18: ("f8e4m3fnuz", "int32_data"),
    19: ("f8e5m2", "int32_data"), 20: ("f8e5m2fnuz", "int32_data"), 21: ("u4", "int32_data"),
    22: ("i4", "int32_data"), 23: ("f4e2m1", "int32_data"), 25: ("u2", "int32_data"),
    26: ("i2", "int32_data"),
}  # fmt: skip
_FOREIGN = {
    8: "string", 14: "complex64", 15: "complex128", 24: "float8e8m0",
}  # fmt: skip


def library() -> Any:
    """The package `onnx`; raises `InvalidInput` where it is not installed."""
    try:
        import onnx
    except ImportError:
        raise fail(
            "usage.onnx",
            "ONNX files are read by the package `onnx`, which is not installed",
            help="install irlang with the extra `onnx`",
        ) from None
    return onnx


def read(path: Path) -> Any:
    """The message of a file. Raises `InvalidInput` where it is none."""
    try:
        size = path.stat().st_size
        if size > _LARGEST_FILE:
            raise fail("file.onnx", f"{path} has {size} bytes; an ONNX message has less than 2^31")
        return message(path.read_bytes(), str(path))
    except OSError as error:
        raise fail("file.read", f"{path} cannot be read: {error.strerror}") from None


def message(data: bytes, shown: str) -> Any:
    """The model that bytes say. Raises `InvalidInput` where they say none."""
    onnx = library()
    from google.protobuf.message import DecodeError

    try:
        model = onnx.ModelProto.FromString(data)
    except (DecodeError, RuntimeError):
        raise malformed(shown, "it is no protobuf message of a model") from None
    if not model.HasField("graph") or not model.opset_import:
        raise malformed(shown, "it holds no graph, or does not say its operator sets")
    if not _texts(model):
        raise malformed(shown, "a name in it is not UTF-8")
    return model


def _texts(part: Any) -> bool:
    """Whether every name of a message is a text; protobuf hands others out as bytes."""
    for field, found in part.ListFields():
        if field.type not in (field.TYPE_STRING, field.TYPE_MESSAGE):
            continue
        alone = isinstance(found, (str, bytes)) or hasattr(found, "ListFields")
        for item in [found] if alone else found:
            if isinstance(item, bytes) or not (isinstance(item, str) or _texts(item)):
                return False
    return True


def malformed(shown: str, why: str) -> InvalidInput:
    """The refusal of a file as a whole."""
    return fail("file.onnx", f"{shown} is not an ONNX model: {why}")


# ---- types


def dtype(number: int) -> str:
    """The name of an element type. Raises `Unsupported` for those that irlang does not have."""
    if number in _TYPES:
        return _TYPES[number][0]
    raise Unsupported(f"the element type {_FOREIGN.get(number, f'number {number}')}")


def number_of(name: str) -> int:
    """The number of an element type."""
    return next(number for number, (known, _) in _TYPES.items() if known == name)


# ---- tensors


def tensor(proto: Any, folder: Path | None, what: str) -> Array:
    """The values of a `TensorProto`, in their own type.

    folder: where external data may lie; None where there may be none. Raises `InvalidInput` for
    contents that do not fit the declared type and shape, `Unsupported` for other element types.
    """
    name = dtype(proto.data_type)
    shape = tuple(proto.dims)
    check_shape(shape, what)
    info = TensorInfo(shape, name)
    if proto.HasField("segment"):
        raise Unsupported("a tensor in segments")
    if proto.data_location == 1:
        data = _external(proto, folder, info, what)
    elif proto.HasField("raw_data"):
        data = proto.raw_data
    else:
        return _typed(proto, info, what)
    if len(data) != _bytes(info):
        raise fail(
            "file.tensor", f"{what} is {info}, {_bytes(info)} bytes; there are {len(data)} bytes"
        )
    if DTYPES[name].stored:
        return _small(np.frombuffer(data, np.uint8), info)
    array = np.frombuffer(data, DTYPES[name].numpy.newbyteorder("<")).reshape(shape)
    if info.kind == "bool":
        return np.asarray(np.frombuffer(data, np.uint8).reshape(shape) != 0)
    return array.astype(DTYPES[name].numpy, copy=False)


def _bytes(info: TensorInfo) -> int:
    """Numbers of less than 8 bits share bytes."""
    return -(-math.prod(info.shape) * DTYPES[info.dtype].bits // 8)


def _small(data: Array, info: TensorInfo) -> Array:
    """Numbers of at most 8 bits: the first of a byte is in its lowest bits."""
    row, count = DTYPES[info.dtype], math.prod(info.shape)
    each = data.reshape(-1, 1) >> np.arange(0, 8, row.bits, dtype=np.uint8)
    codes = (each & (2**row.bits - 1)).reshape(-1)[:count].astype(np.uint8)
    if row.kind == "real":
        return np.asarray(codes.view(row.numpy).reshape(info.shape))
    least, _ = integer_range(info.dtype)
    whole = codes.astype(np.int64)
    signed = whole - 2**row.bits * (whole > 2 ** (row.bits - 1) - 1) if least else whole
    return np.asarray(signed.astype(row.numpy).reshape(info.shape))


def _typed(proto: Any, info: TensorInfo, what: str) -> Array:
    """The values in one of the typed fields."""
    field = _TYPES[proto.data_type][1]
    items = getattr(proto, field)
    count = math.prod(info.shape)
    if DTYPES[info.dtype].stored and len(items) == _bytes(info):
        return _small(np.array(items, np.int64).astype(np.uint8), info)
    if len(items) != count:
        raise fail("file.tensor", f"{what} is {info}; `{field}` has {len(items)} numbers")
    wide = {"int32_data": np.int64, "uint64_data": np.uint64, "int64_data": np.int64}
    numbers = np.array(items, wide.get(field, np.float64))
    if info.dtype in ("f16", "bf16"):  # their bits
        array = numbers.astype(np.uint16).view(DTYPES[info.dtype].numpy)
    else:
        with np.errstate(over="ignore"):
            array = numbers.astype(DTYPES[info.dtype].numpy)
    return array.reshape(info.shape)


def _external(proto: Any, folder: Path | None, info: TensorInfo, what: str) -> Any:
    """The bytes of a tensor that lie in another file."""
    said = {entry.key: entry.value for entry in proto.external_data}
    location = said.get("location", "")
    if folder is None:
        raise fail("file.external", f"{what} may not lie in another file")
    if not location or _leaves(location):
        raise fail("file.external", f'{what} lies in "{location[:80]}", out of its folder')
    root = folder.resolve()
    try:
        path = (root / location).resolve()
        inside = path.is_relative_to(root)
        size = path.stat().st_size if inside and path.is_file() else None
    except (OSError, RuntimeError, ValueError):
        raise fail("file.external", f'"{location[:80]}" is no name of a file') from None
    if not inside:
        raise fail("file.external", f'{what} lies in "{location[:80]}", out of its folder')
    if size is None:
        raise fail("file.external", f'there is no file "{location[:80]}" beside the model')
    offset, length = (_count(said.get(key), what) for key in ("offset", "length"))
    start, needed = offset or 0, _bytes(info)
    if length is not None and length != needed:
        raise fail("file.external", f"{what} is {info}, {needed} bytes; its length is {length}")
    if start + needed > size:
        message = (
            f'{what} needs bytes {start} to {start + needed} of "{location}", which has {size}'
        )
        raise fail("file.external", message)
    try:
        return np.fromfile(path, np.uint8, count=needed, offset=start)
    except OSError as error:
        raise fail("file.external", f'"{location}" cannot be read: {error.strerror}') from None


def _leaves(location: str) -> bool:
    """Whether a path is absolute or goes up, on any system."""
    paths = (PurePosixPath(location), PureWindowsPath(location))
    return any(p.is_absolute() or p.drive or ".." in p.parts for p in paths) or "\0" in location


def _count(text: str | None, what: str) -> int | None:
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise fail("file.external", f"{what}: {text[:40]!r} is no number of bytes")
    return int(text)
