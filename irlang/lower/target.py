"""The targets: what each is called, whether it is there, and what it is run by.

A target is a framework, `tf`, or one of its modes, `tf:xla`, or a version in an environment of its
own (`irlang.lower.added`), `tf-2.4` or `tf-2.4:xla`. Nothing here imports a framework; what is
installed is read from the metadata of packages.
"""

from __future__ import annotations

import difflib
import os
import platform
import re
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import metadata
from pathlib import Path

from irlang.diagnostics import InvalidInput, fail
from irlang.lower import pool
from irlang.lower.added import Added, added
from irlang.lower.modes import KIN, ROWS, Mode, Row

# A function, or an argument of one, that came later.
_LATER = r"module '\S+' has no attribute|got an unexpected keyword argument"


@dataclass(frozen=True, slots=True)
class Description:
    """What is known of a target here; `reason` says what is missing and how to get it.

    framework: whose programs it runs, a key of `ROWS`. mode: what stands behind the colon, or the
    name of one of `KIN`. release: the version's first numbers. usual: whether it is a framework in
    its usual mode, as compared where no target is named. kernels: see `irlang.lower.added`.
    says_no: see `Mode`. compiles: whether it takes its time over a program, however short. plain:
    the target that runs the same programs as they are; empty of one that does so itself, and where
    there is none. sooner: likewise the target that refuses the same in a part of its time.
    """

    name: str
    installed: bool
    version: str | None
    python: str
    reason: str
    about: str
    share: int
    framework: str
    mode: str
    usual: bool
    release: tuple[int, ...]
    kernels: Mapping[str, frozenset[str]] = field(repr=False)
    worker: pool.Target = field(repr=False)
    says_no: str = ""
    compiles: bool = False
    plain: str = ""
    sooner: str = ""

    def as_json(self) -> dict[str, object]:
        """As `irlang targets --format json` shows it."""
        keys = ("name", "installed", "version", "python", "reason", "about", "share")
        return {key: getattr(self, key) for key in keys}


@cache
def _version(packages: tuple[str, ...]) -> str | None:
    for package in packages:
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return None


def numbers(version: str | None) -> tuple[int, ...]:
    """The first numbers of a version: (2, 4, 0) of 2.4.0rc1."""
    found = re.match(r"\d+(\.\d+)*", version or "")
    return tuple(map(int, found[0].split("."))) if found else ()


def describe(name: str) -> Description:
    """One target. Raises `usage.target` where there is none of that name."""
    if name in KIN:
        framework, mode = KIN[name]
        return _described(name, ROWS[framework], name, mode, None)
    base, colon, behind = name.partition(":")
    own = None if base in ROWS else added(base)
    row = ROWS.get(own.framework if own else base)
    if own and row is not None and not colon:
        return describe_added(own)
    if row is not None and row.about and not colon:
        return _described(name, row, "", row.usual, None)
    if row is not None and colon + behind in row.modes:
        return _described(name, row, behind, row.modes[colon + behind], own)
    if own and row is not None and behind in inside(own.framework):
        return _described(name, row, behind, KIN[behind][1], own)
    known = names()
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    help_ = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(known)}"
    raise fail("usage.target", f"there is no target `{name}`", help=help_)


def unasked(named: Collection[str]) -> list[Description]:
    """Modes that only the releases before some have, as they hold a library that is one of its own
    since: of releases that are named as they are, where the mode is not named as well.
    """
    found = []
    for name in named:
        own = describe(name)
        if own.mode or not own.release:  # which is asked for as it is there, whatever it holds
            continue
        modes = [key for key, mode in ROWS[own.framework].modes.items() if mode.until]
        found += [describe(name + key) for key in modes if name + key not in named]
    return [one for one in found if one.installed]


def inside(framework: str) -> list[str]:
    """The targets that come with a framework and have a name of their own: modes of one that is
    added.
    """
    return [name for name, (own, mode) in KIN.items() if own == framework and not mode.packages]


def describe_added(own: Added) -> Description:
    """What is described as a target, whether or not it is remembered."""
    row = ROWS[own.framework]
    mode = row.modes.get(f":{own.mode}", row.usual)
    return _described(own.name, row, own.mode, replace(mode, about=own.about), own)


def _described(name: str, row: Row, key: str, mode: Mode, own: Added | None) -> Description:
    packages = mode.packages or row.packages
    version = own.version if own else _version(packages)
    missing = [packages[0]] if version is None else []
    missing += [package for package in row.needs if _version((package,)) is None]
    if mode.needs and own is None and _version(mode.needs) is None:
        missing.append(mode.needs[0])
    missing = list(dict.fromkeys(missing))
    reason = ""
    if mode.gpu and not _gpu():
        reason = "no GPU of NVIDIA is found here"
    elif missing:
        extra = mode.extra or row.extra
        verb = "is" if len(missing) == 1 else "are"
        how = mode.alone or f"pip install 'irlang[{extra}]'"
        reason = f"{' and '.join(missing)} {verb} not installed: {how}"
    elif own and not own.interpreter.exists():
        reason = f"{own.interpreter} is gone: irlang target remove {own.name}, and add it again"
    elif mode.until and numbers(version) >= mode.until:
        reason = f"{row.name} {version} has Keras 3, which is keras:tensorflow"
    elif mode.compiler and not _compiler():
        reason = "no C++ compiler is found: install g++ or clang++, or set CXX"
    worker = pool.Target(
        name, options=mode.options, patience=mode.patience, environment=mode.environment,
        framework=key if key in KIN else f"{row.name}:{key}" if key else row.name,
    )  # fmt: skip
    if own:
        worker = own.on(worker)
    return Description(
        name, not reason, version, own.python if own else platform.python_version(), reason,
        mode.about, mode.share, row.name, key, not key and own is None, numbers(version),
        own.kernels if own else {}, worker,
        _says_no(row, mode, own),
        mode.patience > 1 and not mode.piecewise, _beside(name, key, mode.plain),
        _beside(name, key, mode.sooner),
    )  # fmt: skip


def _says_no(row: Row, mode: Mode, own: Added | None) -> str:
    """What a target says, as a pattern, of what it does not support: an added release likewise of
    functions and arguments that came later.
    """
    if own and row.unasked and not own.kernels:
        return row.unasked
    later = own is not None and row.kind == "python"
    return "|".join(filter(None, [mode.says_no, _LATER if later else ""]))


def _beside(name: str, key: str, other: str | None) -> str:
    """Another mode of a target's framework, by what stands behind the framework's name."""
    base, _, behind = name.partition(":")
    return base + other if other is not None and behind == key else ""


def _gpu() -> bool:
    """Whether the driver of a GPU is there; the worker says whether the framework can use it."""
    return Path("/dev/nvidiactl").exists() or shutil.which("nvidia-smi") is not None


def _compiler() -> str | None:
    found = [os.environ.get("CXX", ""), "g++", "clang++", "c++"]
    return next((path for name in found if name and (path := shutil.which(name))), None)


def names() -> list[str]:
    """Every target's name: frameworks and their modes, kin, and what the user has added."""
    from irlang.lower.added import names as own

    found = []
    for row in ROWS.values():
        found += [row.name] if row.about else []
        found += [row.name + mode for mode in row.modes]
    return [*found, *KIN, *own()]


def targets() -> list[Description]:
    """Every target, installed or not; one whose record cannot be read is not."""
    return [_shown(name) for name in names()]


def _shown(name: str) -> Description:
    try:
        return describe(name)
    except InvalidInput as error:
        (said,) = error.diagnostics
        reason = f"{said.message}: {said.help}"
    nothing = pool.Target(name)
    return Description(name, False, None, "", reason, reason, 1, "", "", False, (), {}, nothing)


def usual() -> list[str]:
    """The installed frameworks that are quick, in their usual mode: what is compared where no
    target is named.
    """
    frameworks = [row.name for row in ROWS.values() if row.about and row.share == 1]
    return [target.name for target in map(describe, frameworks) if target.installed]


def require_installed(name: str) -> Description:
    """A target that can be used. Raises `usage.target` (not one) or `target.missing`."""
    found = describe(name)
    if not found.installed:
        raise fail(
            "target.missing", f"{name}: {found.reason}" if name not in ROWS else found.reason
        )
    return found
