"""The verbs of the command line, one a module; see `irlang.cli`."""

from __future__ import annotations

from collections.abc import Iterable

from irlang.diagnostics import Diagnostic

_UNUSABLE = ("file.", "usage.", "target.missing", "target.broken")


def exit_status(diagnostics: Iterable[Diagnostic]) -> int:
    """0 where nothing is wrong, 1 for a fault in the input, 2 for input that cannot be read."""
    found = list(diagnostics)
    if any(diagnostic.code.startswith(_UNUSABLE) for diagnostic in found):
        return 2
    return int(any(diagnostic.severity == "error" for diagnostic in found))
