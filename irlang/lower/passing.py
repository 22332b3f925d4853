"""Folders that are there as long as the process that made them, however it ends.

A process that is killed leaves its folder behind; whoever makes the next one sees from a lock,
which the system lets go of with the process, that nobody needs it any more.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

_LOCK = "in-use"
_locks: list[int] = []  # open for as long as the process is, and those that it forks


def folder(prefix: str) -> Path:
    """A new folder of this process and of the user alone; those that others have left are removed.

    Raises OSError where there can be none.
    """
    _sweep(prefix)
    path = Path(tempfile.mkdtemp(prefix=prefix))
    made = path / f"{_LOCK}-"
    lock = os.open(made, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    made.rename(path / _LOCK)  # it is there when it is locked, never before
    _locks.append(lock)
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def _sweep(prefix: str) -> None:
    for path in Path(tempfile.gettempdir()).glob(f"{prefix}*/{_LOCK}"):
        with contextlib.suppress(OSError):  # another user's, in use, or gone by now
            if path.parent.lstat().st_uid != os.getuid():
                continue
            lock = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path.parent, ignore_errors=True)
            finally:
                os.close(lock)
