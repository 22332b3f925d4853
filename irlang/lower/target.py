"""The targets: a table of what each is called, what it needs, and whether it is there.

Nothing here imports a framework; what is installed is read from the metadata of packages.
"""

from __future__ import annotations

import difflib
import platform
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from typing import Literal

from irlang.diagnostics import fail
from irlang.lower import pool


@dataclass(frozen=True, slots=True)
class Row:
    """A target.

    packages: distributions that hold the framework, any of which will do. extra: irlang's extra
    that installs it. needs: distributions that lowering itself needs.
    """

    name: str
    packages: tuple[str, ...]
    extra: str
    kind: Literal["python", "onnx"]
    needs: tuple[str, ...] = ()


ROWS = {
    row.name: row
    for row in (
        Row("torch", ("torch", "torch-cpu"), "torch", "python"),
        Row("tf", ("tensorflow", "tensorflow-cpu", "tensorflow-macos"), "tf", "python"),
        Row("onnxruntime", ("onnxruntime", "onnxruntime-gpu"), "onnx", "onnx", needs=("onnx",)),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Description:
    """What is known of a target here; `reason` says what is missing and how to get it."""

    name: str
    installed: bool
    version: str | None
    python: str
    reason: str
    worker: pool.Target = field(repr=False)

    def as_json(self) -> dict[str, object]:
        """As `irlang targets --format json` shows it."""
        return {
            "name": self.name,
            "installed": self.installed,
            "version": self.version,
            "python": self.python,
            "reason": self.reason,
        }


@cache
def _version(packages: tuple[str, ...]) -> str | None:
    for package in packages:
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return None


def describe(name: str) -> Description:
    """One target. Raises `usage.target` where there is none of that name."""
    row = ROWS.get(name)
    if row is None:
        near = difflib.get_close_matches(name, ROWS, n=1, cutoff=0.4)
        known = ", ".join(ROWS)
        help_ = f"did you mean `{near[0]}`?" if near else f"there are {known}"
        raise fail("usage.target", f"there is no target `{name}`", help=help_)
    version = _version(row.packages)
    missing = [row.packages[0]] if version is None else []
    missing += [package for package in row.needs if _version((package,)) is None]
    reason = ""
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        reason = f"{' and '.join(missing)} {verb} not installed: pip install 'irlang[{row.extra}]'"
    return Description(
        name, not missing, version, platform.python_version(), reason, pool.Target(name)
    )


def targets() -> list[Description]:
    """Every target, installed or not."""
    return [describe(name) for name in ROWS]


def require_installed(name: str) -> Description:
    """A target that can be used. Raises `usage.target` (not one) or `target.missing`."""
    found = describe(name)
    if not found.installed:
        raise fail("target.missing", found.reason)
    return found


def spellings(operator: str) -> dict[str, str]:
    """How each target spells a built-in operator; "from its definition" where it has none."""
    from irlang.lower.lower import tables

    return {
        target: table[operator].spelling if operator in table else "from its definition"
        for target, table in tables().items()
    }
