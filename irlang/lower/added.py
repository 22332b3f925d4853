"""The targets that the user has added: each a folder of the user's data with an environment in it.

`target.json` in that folder says what it is; without that file a folder is none (an unfinished
one). `irlang.lower.install` makes them.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from irlang.diagnostics import fail
from irlang.lower.launch import Target

NAME = re.compile(r"[a-z][a-z0-9]*([.-][a-z0-9]+)*")
_FILE = "target.json"
_MOST_BYTES = 1 << 22


@dataclass(frozen=True, slots=True)
class Added:
    """A target that the user has added.

    framework: whose programs it runs, as in `irlang.lower.modes.ROWS`; mode: and in which of its
    modes, where it has to be said. version: the framework's, python: the interpreter's.
    requirements: what was asked of pip. kernels: of ONNX Runtime, the element types of every
    operator that its processor has, at the opset that it is given.
    """

    name: str
    framework: str
    version: str
    python: str
    requirements: tuple[str, ...]
    mode: str = ""
    kernels: Mapping[str, frozenset[str]] = dataclasses.field(default_factory=dict)

    @property
    def about(self) -> str:
        """What it is."""
        framework = f"{self.framework}:{self.mode}" if self.mode else self.framework
        return f"{framework} {self.version}, an environment of Python {self.python}"

    @property
    def interpreter(self) -> Path:
        """That of its environment."""
        return interpreter(folder(self.name))

    def on(self, target: Target) -> Target:
        """`target`, run by this one's interpreter."""
        return dataclasses.replace(target, python=str(self.interpreter))


def interpreter(place: Path) -> Path:
    """The interpreter of the environment in a target's folder."""
    return place / "env" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def home() -> Path:
    """Where the user's targets are."""
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data, "irlang", "targets")


def folder(name: str) -> Path:
    """The folder of a target. Raises `usage.target` where `name` cannot be one's name."""
    if not NAME.fullmatch(name) or len(name) > 60:
        raise fail(
            "usage.target",
            f"`{name}` cannot be a target's name",
            help="lower-case letters and digits, with hyphens or dots between, as in ort-1.17",
        )
    return home() / name


def names() -> list[str]:
    """The names of all that were added."""
    try:
        return sorted(
            p.parent.name for p in home().glob(f"*/{_FILE}") if NAME.fullmatch(p.parent.name)
        )
    except OSError:
        return []


def added(name: str) -> Added | None:
    """What was added under a name. Raises `target.broken` where its record cannot be read."""
    path = home() / name / _FILE
    if not NAME.fullmatch(name) or not path.exists():
        return None
    try:
        written = path.stat()
        return _record(path, (written.st_mtime_ns, written.st_ino, written.st_size))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise fail(
            "target.broken",
            f"what is recorded of the target `{name}` cannot be read",
            help=f"irlang target remove {name}, and add it again",
        ) from None


@lru_cache(maxsize=256)
def _record(path: Path, _written: tuple[int, int, int]) -> Added:
    """The record in a file, as it was written once: every program of a campaign asks for it, and
    reading the kernels of ONNX Runtime anew took a tenth of the campaign.
    """
    with path.open("rb") as file:
        text = file.read(_MOST_BYTES + 1)
    if len(text) > _MOST_BYTES:
        raise ValueError(path)
    name, record = path.parent.name, json.loads(text)
    framework, version, python = (record[key] for key in ("framework", "version", "python"))
    if not all(isinstance(text, str) for text in (framework, version, python)):
        raise TypeError(name)
    kernels = {op: frozenset(types) for op, types in record["kernels"].items()}
    asked, mode = tuple(map(str, record["requirements"])), str(record.get("mode", ""))
    return Added(name, framework, version, python, asked, mode, kernels)


def remember(target: Added) -> None:
    """Writes the record, whole or not at all."""
    record = dataclasses.asdict(target)
    record["kernels"] = {op: sorted(types) for op, types in sorted(target.kernels.items())}
    path = folder(target.name) / _FILE
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    unfinished.replace(path)


def remove(name: str) -> None:
    """Deletes a target and its environment. Raises `usage.target` where there is none."""
    place = folder(name)
    if not place.is_dir() or place.is_symlink():
        there = ", ".join(names())
        raise fail(
            "usage.target",
            f"no target `{name}` was added",
            help=f"there are {there}" if there else "`irlang target add` adds one",
        )
    (place / _FILE).unlink(missing_ok=True)  # first: what is left half deleted is none
    shutil.rmtree(place)
