"""Names of a `.nnir` file as names of an emitted program.

The one place where text of a file becomes an identifier. What comes out is ASCII letters, digits
and underscores, no keyword, no builtin, nothing that the program already uses, and each only once.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable

_OTHER = re.compile(r"[^A-Za-z0-9_]+")
_RESERVED = frozenset((*keyword.kwlist, *keyword.softkwlist, *dir(builtins)))


class Names:
    """Hands out identifiers; `taken` are those that the program has for itself."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {*_RESERVED, *taken}

    def fresh(self, wanted: str) -> str:
        """An identifier that looks like `wanted`."""
        base = _OTHER.sub("_", wanted).strip("_") or "v"
        if not base[0].isalpha():
            base = f"v{base}"
        name, number = base, 1
        if name in self._taken and name in _RESERVED:
            base = name = f"{base}_"
        while name in self._taken:
            number += 1
            name = f"{base}{'' if base.endswith('_') else '_'}{number}"
        self._taken.add(name)
        return name


def docstring(text: str) -> str:
    """`text` as the inside of a triple-quoted string, whatever it holds."""
    shown = text.replace("\\", "\\\\").replace('"', '\\"')
    return "".join(c if c == "\n" or c.isprintable() else _escape(ord(c)) for c in shown)


def _escape(code: int) -> str:
    width = 2 if code < 0x100 else 4 if code < 0x10000 else 8
    return f"\\{'xu'[width > 2] if width < 8 else 'U'}{code:0{width}x}"


def comment(text: str) -> str:
    """`text` as a comment on one line."""
    return "".join(c if c.isprintable() else " " for c in text)
