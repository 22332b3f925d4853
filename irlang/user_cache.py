"""Folders in the user's cache, for what costs time to find out and can be found out again."""

from __future__ import annotations

import os
import stat
from functools import cache
from pathlib import Path


@cache
def private(name: str) -> Path | None:
    """A folder that belongs to the user alone; None where there is none that can be trusted."""
    try:
        path = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "irlang", name)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
            return None
        path.chmod(0o700)
    except (OSError, RuntimeError):  # RuntimeError: there is no home
        return None
    return path if os.access(path, os.W_OK) else None
