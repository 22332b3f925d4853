"""Kernels on disk: compiled once on a machine, loaded in about ten milliseconds afterwards.

A kernel's file is named by the digest of its text and of whatever else decides the machine code.
The folder belongs to the user alone (mode 0700), and a file is compared with the text that it
should have before it is imported: what somebody else may have written is never run.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import irlang
from irlang.user_cache import private

Kernel = Callable[..., None]

_loaded: dict[str, Kernel] = {}


@cache
def folder() -> Path:
    """The folder of the kernels: in the user's cache, or for this process if that is no good."""
    kept = private("kernels")
    if kept is not None:
        return kept
    own = Path(tempfile.mkdtemp(prefix="irlang-kernels-"))
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    return own


@cache
def _surroundings() -> str:
    """What besides a kernel's text decides its machine code; found without importing numba."""
    packages = [f"{name} {version(name)}" for name in ("numba", "llvmlite", "numpy")]
    return "\n".join([irlang.__version__, *packages, sys.version, platform.machine(), _processor()])


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor()
    return "\n".join(dict.fromkeys(x for x in lines if x.startswith(("model name", "flags"))))


def _name(text: str) -> str:
    return "k" + hashlib.sha256(f"{_surroundings()}\n{text}".encode()).hexdigest()


def loaded(text: str) -> bool:
    """Whether a kernel can be called at once."""
    return text in _loaded


def held() -> int:
    """How many kernels can be called at once."""
    return len(_loaded)


def ready(text: str) -> bool:
    """Whether a kernel has been compiled on this machine before."""
    return text in _loaded or (folder() / f"{_name(text)}.done").exists()


def load(text: str) -> Kernel:
    """The function `kernel` of a module's text, compiled now if it never was.

    Processes may do so at the same time: each file appears whole, by renaming.
    """
    if text in _loaded:
        return _loaded[text]
    name = _name(text)
    path = folder() / f"{name}.py"
    if not _holds(path, text):
        _write(path, text)
    module_name = f"irlang_kernel_{name}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # where numba's cache looks for the helpers
    spec.loader.exec_module(module)
    kernel: Any = module.kernel
    _write(folder() / f"{name}.done", "")
    _loaded[text] = kernel
    return _loaded[text]


def _holds(path: Path, text: str) -> bool:
    try:
        return path.read_text("utf-8") == text
    except OSError:
        return False


def _write(path: Path, text: str) -> None:
    if _holds(path, text):
        return
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(text)
    Path(temporary).replace(path)
