"""Findings that are known: a TOML file of patterns, so that a campaign tells what is new.

```toml
# upstream issue 1234, mended in the next release
[[known]]
target = "onnxruntime"        # glob patterns; what is not given matches all
operator = "max_pool"
verdict = "wrong"
signature = "* pad=same"
reason = "issue 1234"         # must be given
expires = 2027-03-01          # from that day on it is a finding again
```
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from irlang.diagnostics import fail
from irlang.lower.entries import read_entries

_PATTERNS = ("target", "operator", "verdict", "signature")


@dataclass(frozen=True, slots=True)
class Known:
    """A pattern: of the target, the operator, the verdict and the signature of a finding."""

    patterns: tuple[tuple[str, str], ...]
    reason: str
    expires: dt.date | None = None

    def covers(self, finding: Mapping[str, str], today: dt.date) -> bool:
        """Whether a finding is known on a day."""
        if self.expires is not None and today >= self.expires:
            return False
        return all(fnmatchcase(finding[key], pattern) for key, pattern in self.patterns)


def read_known(path: Path) -> list[Known]:
    """The patterns of a file. Raises `file.known`, with the entry that is at fault."""
    entries = read_entries(path, "known", "file.known", "a list of known findings")
    return [_entry(path, number, entry) for number, entry in enumerate(entries, 1)]


def _entry(path: Path, number: int, entry: Any) -> Known:
    where = f"{path}: entry {number}"
    if not isinstance(entry, dict):
        raise fail("file.known", f"{where} is no table")
    allowed = (*_PATTERNS, "reason", "expires")
    for key, value in entry.items():
        if key not in allowed:
            raise fail("file.known", f"{where} has `{key}`", help=f"it has {', '.join(allowed)}")
        kind = dt.date if key == "expires" else str
        if not isinstance(value, kind) or isinstance(value, dt.datetime):
            wanted = "a date, as 2027-03-01" if key == "expires" else "a text"
            raise fail("file.known", f"{where}: `{key}` must be {wanted}")
    if not entry.get("reason"):
        raise fail("file.known", f"{where} says no `reason`", help='as in reason = "issue 12"')
    patterns = tuple((key, entry[key]) for key in _PATTERNS if key in entry)
    if not patterns:
        raise fail("file.known", f"{where} would hide every finding", help="say which target")
    return Known(patterns, entry["reason"], entry.get("expires"))


def known_as(finding: Mapping[str, str], known: list[Known], today: dt.date) -> Known | None:
    """The first pattern that covers a finding."""
    return next((one for one in known if one.covers(finding, today)), None)
