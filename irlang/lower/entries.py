"""Files of the user's that are a list of tables in TOML, `[[known]]` or `[[accept]]`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from irlang.diagnostics import fail

_MOST_BYTES = 1 << 20


def read_entries(path: Path, key: str, code: str, what: str) -> list[Any]:
    """The entries of a file, which has nothing but these; each is as it stands there, a table or
    not.

    key: what they are called. code, what: of a diagnostic, and what such a file is in words.
    Raises a diagnostic of that code.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)  # what has no size of its own may have no end
        if len(data) > _MOST_BYTES:
            raise fail(code, f"{path} is too large for {what}")
        content = tomllib.loads(data.decode("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise fail(code, f"{path} cannot be read: {error}") from None
    except (ValueError, RecursionError) as error:  # a number of too many digits is no decode error
        raise fail(code, f"{path} is no TOML: {error}") from None
    entries = content.pop(key, [])
    if content or not isinstance(entries, list):
        other = next(iter(content), key)
        raise fail(code, f"{path}: `{other}` is not [[{key}]]", help=f"write [[{key}]]")
    return entries
