"""TensorFlow graphs (`GraphDef`): their nodes, attributes and tensors, as untrusted input.

What is known of the messages are the numbers of their fields (tensorflow/core/framework/*.proto).
Nothing is allocated for a tensor before it is known that the bytes are there, or that all of its
elements are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from irlang.diagnostics import InvalidInput, fail
from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.importers import protobuf
from irlang.importers.protobuf import Malformed, fields, integer, integers, text, view
from irlang.importers.value import Unsupported, check_shape
from irlang.importers.writer import Array

_LARGEST_FILE = 2**31 - 1  # bytes; protobuf has no longer messages
_MOST_NODES = 1_000_000
_MOST_FILLED = 1 << 24  # elements of a tensor that gives some of its elements only

# Element types by their number in `DataType`, and the field of `TensorProto` that may hold them.
_TYPES: dict[int, tuple[str, int]] = {
    1: ("f32", 5), 2: ("f64", 6), 3: ("i32", 7), 4: ("u8", 7), 5: ("i16", 7), 6: ("i8", 7),
    9: ("i64", 10), 10: ("bool", 11), 14: ("bf16", 13), 17: ("u16", 7), 19: ("f16", 13),
    22: ("u32", 16), 23: ("u64", 17),
}  # fmt: skip
_FOREIGN = {
    7: "string", 8: "complex64", 11: "qint8", 12: "quint8", 13: "qint32", 15: "qint16",
    16: "quint16", 18: "complex128", 20: "resource", 21: "variant", 24: "float8_e5m2",
    25: "float8_e4m3fn", 29: "int4", 30: "uint4",
}  # fmt: skip
_REFERENCE = 100  # what the number of the type of a reference has more
_REALS = {5: "<f4", 6: "<f8"}


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of a node. kind: the field that has it, as `AttrValue` names it.

    A shape is a tuple whose open sizes are None, or None where even the rank is open. Tensors and
    functions are left as bytes. A list is that of the one kind of elements that it has.
    """

    kind: str
    value: Any


@dataclass(slots=True)
class NodeDef:
    """A node. inputs: of tensors, as (node, number of its result). after: of control alone."""

    name: str
    op: str
    inputs: list[tuple[str, int]] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    attributes: dict[str, Attribute] = field(default_factory=dict)


def contents(path: Path) -> bytes:
    """The bytes of a file. Raises `InvalidInput` where it cannot be a graph."""
    try:
        size = path.stat().st_size
        if size > _LARGEST_FILE:
            raise fail("file.tf", f"{path} has {size} bytes; a graph has less than 2^31")
        return path.read_bytes()
    except OSError as error:
        raise fail("file.read", f"{path} cannot be read: {error.strerror}") from None


def message(data: bytes, shown: str) -> list[NodeDef]:
    """The nodes that bytes say. Raises `InvalidInput` where they say none."""
    try:
        found = list(fields(graph_of(data)))
        nodes = [node_of(view(value)) for number, _, value in found if number == 1]
    except Malformed as error:
        raise malformed(shown, str(error)) from None
    if not nodes:
        raise malformed(shown, "it holds no node")
    if len(nodes) > _MOST_NODES:
        raise malformed(shown, f"it has more than {_MOST_NODES} nodes")
    return nodes


def graph_of(data: bytes) -> memoryview:
    """The graph of a file: all of it, or the first that a SavedModel holds."""
    whole = memoryview(data)
    found = list(fields(whole))
    if not any(number == 1 and kind == protobuf.VARINT for number, kind, _ in found):
        return whole
    parts = (part for n, _, item in found if n == 2 for part in fields(view(item)))
    return next((view(graph) for number, _, graph in parts if number == 2), memoryview(b""))


def malformed(shown: str, why: str, help_: str = "") -> InvalidInput:
    """The refusal of a file as a whole."""
    return fail("file.tf", f"{shown} is not a TensorFlow graph: {why}", help=help_)


# ---- nodes


def node_of(data: memoryview) -> NodeDef:
    """A node. Raises `Malformed` where there is none."""
    found = NodeDef("", "")
    for number, _, value in fields(data):
        if number == 1:
            found.name = text(value)
        elif number == 2:
            found.op = text(value)
        elif number == 3:
            _input(found, text(value))
        elif number == 5:
            name, attribute = _entry(view(value))
            found.attributes[name] = attribute
    if not found.name or not found.op:
        raise Malformed("a node has no name, or no operator")
    return found


def _input(node: NodeDef, said: str) -> None:
    """`^name` is of control; `name:1` is the second result of a node."""
    if said.startswith("^"):
        node.after.append(said[1:])
        return
    node.inputs.append(reference(said))


def reference(said: str) -> tuple[str, int]:
    """A node and which of its results. Raises `Malformed` for what is none."""
    name, colon, place = said.rpartition(":")
    if not colon:
        name, place = said, "0"
    if not (place.isascii() and place.isdigit() and len(place) <= 6):
        raise Malformed(f"{said[:40]!r} is no input of a node")
    return name, int(place)


def _entry(data: memoryview) -> tuple[str, Attribute]:
    """An entry of the map of attributes."""
    name, attribute = "", Attribute("none", None)
    for number, _, value in fields(data):
        if number == 1:
            name = text(value)
        elif number == 2:
            attribute = _attribute(view(value))
    return name, attribute


def _attribute(data: memoryview) -> Attribute:
    found = Attribute("none", None)
    for number, kind, value in fields(data):
        if number == 1:
            found = _list(view(value))
        elif number in _SINGLE:
            name, decode = _SINGLE[number]
            items = decode(kind, value)
            if not len(items):
                raise Malformed(f"an attribute of kind {name} is empty")
            found = Attribute(name, items[-1])
    return found


def _list(data: memoryview) -> Attribute:
    """A list, of the kind of its elements; an empty one is of any kind."""
    name = ""
    items: list[Any] = []
    for number, kind, value in fields(data):
        if number in _SINGLE:
            own, decode = _SINGLE[number]
            if name and own != name:
                raise Malformed("an attribute lists elements of two kinds")
            name = own
            items += decode(kind, value)
    return Attribute(f"list {name}".strip(), items)


def shape_of(data: memoryview) -> tuple[int | None, ...] | None:
    """A shape; open sizes, and an open rank, are None."""
    sizes: list[int | None] = []
    for number, _, value in fields(data):
        if number == 3 and integer(value):
            return None
        if number == 2:
            size = 0
            for inner, _, item in fields(view(value)):
                size = integer(item) if inner == 1 else size
            sizes.append(None if size < 0 else size)
    return tuple(sizes)


_SINGLE: dict[int, tuple[str, Callable[[int, Any], Sequence[Any]]]] = {
    2: ("s", lambda _, value: [bytes(view(value))]),
    3: ("i", integers),
    4: ("f", lambda kind, value: protobuf.reals(kind, value, "<f4").tolist()),
    5: ("b", lambda kind, value: [bool(item) for item in integers(kind, value)]),
    6: ("type", integers),
    7: ("shape", lambda _, value: [shape_of(view(value))]),
    8: ("tensor", lambda _, value: [view(value)]),
    10: ("func", lambda _, value: [view(value)]),
}


# ---- types and tensors


def dtype(number: int) -> str:
    """The name of an element type. Raises `Unsupported` for those that irlang does not have."""
    number = number - _REFERENCE if number > _REFERENCE else number
    if number in _TYPES:
        return _TYPES[number][0]
    raise Unsupported(f"the element type {_FOREIGN.get(number, f'number {number}')}")


def tensor(data: memoryview, what: str) -> tuple[Array | float, TensorInfo]:
    """The elements of a `TensorProto` and its type; one number where all are the same and many.

    A tensor that gives fewer elements than it has ends in copies of the last, or of 0. Raises
    `InvalidInput` for contents that do not fit the type, `Unsupported` for other element types.
    """
    try:
        return _tensor(data, what)
    except Malformed as error:
        raise fail("file.tensor", f"{what}: {error}") from None


def _tensor(data: memoryview, what: str) -> tuple[Array | float, TensorInfo]:
    found = list(fields(data))
    number = next((integer(value) for n, _, value in found if n == 1), 0)
    sizes = next((shape_of(view(value)) for n, _, value in found if n == 2), ())
    if sizes is None or None in sizes:
        raise fail("file.shape", f"{what} has a shape that is not fixed")
    shape = tuple(size for size in sizes if size is not None)
    check_shape(shape, what)
    info = TensorInfo(shape, dtype(number))
    content = next((view(value) for n, _, value in found if n == 4 and len(view(value))), None)
    if content is not None:
        return _dense(content, info, what), info
    _, place = _TYPES[number - _REFERENCE if number > _REFERENCE else number]
    return _typed(
        [(kind, value) for n, kind, value in found if n == place], place, info, what
    ), info


def _dense(content: memoryview, info: TensorInfo, what: str) -> Array:
    """The elements as their bytes."""
    row = DTYPES[info.dtype]
    needed = math.prod(info.shape) * row.numpy.itemsize
    if len(content) != needed:
        message = f"{what} is {info}, {needed} bytes; there are {len(content)} bytes"
        raise fail("file.tensor", message)
    if info.kind == "bool":
        return np.asarray(np.frombuffer(content, np.uint8).reshape(info.shape) != 0)
    array = np.frombuffer(content, row.numpy.newbyteorder("<")).reshape(info.shape)
    return array.astype(row.numpy, copy=False)


def _typed(given: list[tuple[int, Any]], place: int, info: TensorInfo, what: str) -> Array | float:
    """The elements in the field of their type."""
    count = math.prod(info.shape)
    if place in _REALS:
        parts = [protobuf.reals(kind, value, _REALS[place]) for kind, value in given]
        numbers: Any = np.concatenate(parts) if parts else np.zeros(0)
    else:
        whole = [item for kind, value in given for item in integers(kind, value)]
        wide = np.uint64 if info.dtype == "u64" else np.int64
        numbers = np.array([item % 2**64 for item in whole] if wide is np.uint64 else whole, wide)
    if len(numbers) > max(count, 1):
        raise fail("file.tensor", f"{what} is {info}; it gives {len(numbers)} numbers")
    if info.dtype in ("f16", "bf16"):  # their bits
        array = numbers.astype(np.uint16).view(DTYPES[info.dtype].numpy)
    else:
        array = numbers.astype(DTYPES[info.dtype].numpy)
    if len(array) == count:
        return np.asarray(array.reshape(info.shape))
    if len(array) <= 1 and count > _FEW:
        if not len(array):
            return 0
        return float(str(array[0])) if info.kind == "real" else int(array[0])
    if count > _MOST_FILLED:
        raise fail("file.tensor", f"{what} is {info}; it gives {len(array)} of {count} numbers")
    last = array[-1] if len(array) else 0
    filled = np.full(count, last, DTYPES[info.dtype].numpy)
    filled[: len(array)] = array[:count]
    return filled.reshape(info.shape)


_FEW = 1 << 12  # elements that are written out though all are the same
