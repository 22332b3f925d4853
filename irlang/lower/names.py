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
    return "".join(c if c == "\n" or c.isprintable() else f"\\x{ord(c):02x}" if ord(c) < 256 else f"\\u{ord(c):04x}" if ord(c) < 65536 else f"\\U{ord(c):08x}" for c in shown)  # fmt: skip


def comment(text: str) -> str:
    """`text` as a comment on one line."""
    return "".join(c if c.isprintable() else " " for c in text)
