"""Protocol buffer messages as their fields: a reader of the wire format that needs no package.

It descends only where it is asked to, so that no nesting makes it recurse, and hands out views of
the bytes that are there: nothing is copied or allocated for a length that a message merely claims.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

Field = tuple[int, int, Any]  # number, kind, an integer or the bytes
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_FIXED = {FIXED64: 8, FIXED32: 4}
_LONGEST = 10  # bytes of an integer
_MASK = 2**64 - 1


class Malformed(ValueError):
    """Bytes that are no message."""


def fields(data: memoryview) -> Iterator[Field]:
    """The fields of a message, in their order. Raises `Malformed` where there are none."""
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        if number == 0:
            raise Malformed("a field has the number 0")
        if kind == VARINT:
            value, at = _varint(data, at)
            yield number, kind, value
            continue
        if kind == BYTES:
            length, at = _varint(data, at)
        elif kind in _FIXED:
            length = _FIXED[kind]
        else:
            raise Malformed(f"a field is of kind {kind}")
        if length > end - at:
            raise Malformed(f"a field has {length} bytes, and {end - at} are left")
        yield number, kind, data[at : at + length]
        at += length


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """An integer of seven bits a byte, and where it ends."""
    value = 0
    for place in range(_LONGEST):
        if at + place >= len(data):
            raise Malformed("an integer is cut off")
        byte = data[at + place]
        value |= (byte & 127) << (7 * place)
        if byte < 128:
            return value & _MASK, at + place + 1
    raise Malformed(f"an integer has more than {_LONGEST} bytes")


def signed(value: int) -> int:
    """An integer of 64 bits in two's complement."""
    return value - 2**64 if value >= 2**63 else value


def text(value: Any) -> str:
    """A text. Raises `Malformed` where the bytes are not UTF-8."""
    try:
        return bytes(view(value)).decode("utf-8")
    except UnicodeDecodeError:
        raise Malformed("a text in it is not UTF-8") from None


def view(value: Any) -> memoryview:
    """The bytes of a field. Raises `Malformed` for an integer."""
    if not isinstance(value, memoryview):
        raise Malformed("a field that must be bytes is an integer")
    return value


def integer(value: Any) -> int:
    """The integer of a field. Raises `Malformed` for bytes."""
    if not isinstance(value, int):
        raise Malformed("a field that must be an integer is bytes")
    return signed(value)


def real(value: Any) -> float:
    """A number of four or eight bytes."""
    data = view(value)
    if len(data) not in (4, 8):
        raise Malformed("a number has neither four nor eight bytes")
    found: float = struct.unpack("<f" if len(data) == 4 else "<d", data)[0]
    return found


def integers(kind: int, value: Any) -> list[int]:
    """The integers of a repeated field: one of them, or packed as bytes."""
    if kind == VARINT:
        return [integer(value)]
    data, at, found = view(value), 0, []
    while at < len(data):
        item, at = _varint(data, at)
        found.append(signed(item))
    return found


def reals(kind: int, value: Any, dtype: str) -> np.ndarray[Any, np.dtype[Any]]:
    """The numbers of a repeated field of type `<f4` or `<f8`: one of them, or packed as bytes."""
    data = view(value)
    width = np.dtype(dtype).itemsize
    if len(data) % width or (kind != BYTES and len(data) != width):
        raise Malformed(f"numbers of {width} bytes do not fill {len(data)}")
    return np.frombuffer(data, dtype)
