"""Files of the user: read with limits, written whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from irlang.diagnostics import NOWHERE, Span, fail

# A network of a million statements; beyond, it is some other kind of file.
LARGEST = 64 * 1024 * 1024


def read_source(path: str | Path) -> str:
    """The text of a .nnir file, with line feeds alone and without a byte-order mark.

    Raises `InvalidInput` with a code `file.…` where there is no such text.
    """
    return decode(read_bytes(path), str(path))


def read_bytes(path: str | Path) -> bytes:
    """What is stored in a file; raises `InvalidInput` if it cannot be read or is too large."""
    name = str(path)
    place = Span(name, 0, 0, 0, 0)
    try:
        with Path(path).open("rb") as file:
            too_large = os.fstat(file.fileno()).st_size > LARGEST
            data = b"" if too_large else file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise fail("file.unreadable", f"cannot read {name}: {reason or error}", place) from None
    if too_large or len(data) > LARGEST:
        raise fail("file.size", f"{name} is larger than {LARGEST >> 20} MiB", place)
    return data


def decode(data: bytes, name: str) -> str:
    """The text that `data` is; `name` is the file's, for the diagnostic."""
    place = Span(name, 0, 0, 0, 0)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise fail("file.encoding", f"{name} is UTF-16, not UTF-8", place)
    if b"\0" in data:
        raise fail("file.binary", f"{name} is no text: it has a NUL byte", place)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # `error.object` is without the byte-order mark.
        before = error.object[: error.start].decode("utf-8", "replace")
        line = before.count("\n") + 1
        column = len(before) - before.rfind("\n")
        byte = error.object[error.start]
        raise fail(
            "file.encoding",
            f"{name} is not UTF-8: byte 0x{byte:02x} at line {line}, column {column}",
            Span(name, line, column, line, column + 1),
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def write_source(path: str | Path, text: str) -> None:
    """Replace a file's text so that a reader, or a crash, sees the old or the new one.

    A symbolic link stays one; permissions stay as they were. Raises `InvalidInput` on failure.
    """
    target = Path(path)
    name = ""
    try:
        target = target.resolve()
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o644
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.")
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode)
        Path(name).replace(target)
    except OSError as error:
        if name:
            Path(name).unlink(missing_ok=True)
        message = f"cannot write {path}: {error.strerror or error}"
        raise fail("file.unwritable", message, NOWHERE._replace(file=str(path))) from None
