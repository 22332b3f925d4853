"""Processes that have imported a framework and run nothing: templates, of which workers are forked.

An import takes seconds of the processor, a fork milliseconds. A template serves the workers of this
process, and of those that `adopt` its folder. It keeps one thread, and starts nothing; what a
program does to its process is the fork's own.

Where a framework does not bear it (`irlang.lower.launch.is_alone`), or the template does not start,
there is None, and a worker is started as a process of its own: that says what is wrong.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import hashlib
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

from irlang.lower import passing
from irlang.lower.launch import Limits, Target, is_alone, options, template

_IDLE = 3  # templates that are kept when they have no worker
_WAITING = 128  # workers that may have asked before they are forked
_PATIENCE = 10.0  # seconds that it may take to end a worker
_TICK = 0.05  # seconds between looks at whether the worker is still wanted
_MESSAGE = 1 << 12  # bytes of an answer
# What changes from one process to another, and decides nothing of a framework.
_PASSING = {"_", "COLUMNS", "LINES", "OLDPWD", "PWD", "PYTEST_CURRENT_TEST", "SHLVL"}
_LONGEST = 100  # characters of a socket's path, of which systems take 107 and less


class Forked:
    """A worker that a template has forked (a `irlang.lower.process.Child`)."""

    def __init__(
        self,
        pid: int,
        streams: tuple[IO[bytes], IO[bytes], IO[bytes]],
        connection: socket.socket,
        path: Path,
    ) -> None:
        self.pid = pid
        self.streams = streams
        self._connection = connection
        self._path = path  # of the template's socket
        self._code: int | None = None

    def wait(self, seconds: float = 0.0) -> int | None:
        """As of a `Child`."""
        if self._code is None:
            self._connection.settimeout(seconds)
            with contextlib.suppress(BlockingIOError, TimeoutError):
                self._code = self._heard()
        return self._code

    def _heard(self) -> int:
        try:
            said = self._connection.recv(_MESSAGE)
        except ConnectionError:
            said = b""
        # A template that is gone has taken its forks with it.
        code = json.loads(said)["code"] if said else -9
        self._connection.close()
        return int(code)

    def stack(self) -> None:
        """As of a `Child`."""
        self._say(b"stack")

    def kill(self) -> int:
        """As of a `Child`."""
        if self._code is None:
            self._say(b"end")
            self.wait(_PATIENCE)
        if self._code is None:  # the template itself is stopped, or hangs: nobody need ask it again
            self._path.unlink(missing_ok=True)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self._connection.close()
            self._code = -signal.SIGKILL
        return self._code

    def _say(self, word: bytes) -> None:
        if self._code is None:
            with contextlib.suppress(OSError):  # its end is heard of
                self._connection.send(word)


@dataclass(slots=True)
class _Template:
    """A template of this process, and how many of its workers are in use."""

    process: subprocess.Popen[bytes]
    users: int = 0


_templates: OrderedDict[str, _Template] = OrderedDict()
_lock = threading.Lock()
_adopted: list[Path] = []


@cache
def _folder(owner: int) -> Path:  # noqa: ARG001 (a fork of this process has another)
    """Where the sockets are; nobody else can reach them."""
    return passing.folder("irlang-")


def _name(target: Target) -> str:
    """What templates are told apart by: all that decides what is imported, and how."""
    line, variables = template(target, 0.0, 0)
    told = json.dumps([line, sorted(v for v in variables.items() if v[0] not in _PASSING)])
    return hashlib.sha256(told.encode("utf-8", "surrogateescape")).hexdigest()[:20]


def adopt(folder: str) -> None:
    """Forks from the templates of another process, whose `sharing` gave the folder."""
    if folder and Path(folder) not in _adopted:
        _adopted.append(Path(folder))


@contextmanager
def sharing(targets: Sequence[Target], limits: Limits) -> Iterator[str]:
    """Templates of targets that other processes may `adopt` by the folder that is given."""
    names = [name for name in (use(target, limits) for target in targets) if name]
    try:
        yield str(_folder(os.getpid())) if names else ""
    finally:
        for name in names:
            leave(name)


def use(target: Target, limits: Limits) -> str:
    """The name of a target's template, started if there is none; empty where there can be none.

    It stays until it is left as often as it was used, and a while longer.
    """
    if is_alone(target):
        return ""
    name = _name(target)
    with _lock:
        if any((folder / name).exists() for folder in _adopted):
            return name
        own = _templates.get(name)
        if own is None:
            path = _folder(os.getpid()) / name
            if len(str(path)) > _LONGEST:
                return ""
            try:
                _templates[name] = own = _Template(_started(target, limits, path))
            except OSError:
                return ""  # no such interpreter: whoever starts a process of its own is told
        own.users += 1
    return name


def _started(target: Target, limits: Limits, path: Path) -> subprocess.Popen[bytes]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(str(path))
        listening.listen(_WAITING)
        line, variables = template(target, limits.start_seconds, listening.fileno())
        return subprocess.Popen(
            line,
            stdin=subprocess.PIPE,  # at its end the template ends
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=variables,
            pass_fds=(listening.fileno(),),
            start_new_session=True,
        )


def leave(name: str) -> None:
    """A worker of the template is not used any more."""
    with _lock:
        if name not in _templates:
            return  # another process's
        _templates[name].users -= 1
        _templates.move_to_end(name)
        idle = [key for key, one in _templates.items() if one.users <= 0]
        for key in idle[:-_IDLE]:
            _end(key)


def _end(name: str) -> None:
    one = _templates.pop(name)
    (_folder(os.getpid()) / name).unlink(missing_ok=True)
    assert one.process.stdin is not None
    one.process.stdin.close()
    one.process.kill()
    one.process.wait()


@atexit.register
def _end_all() -> None:
    with _lock:
        for name in [n for n in _templates if (_folder(os.getpid()) / n).exists()]:
            _end(name)


def fork(
    name: str, target: Target, limits: Limits, apart: bool, closing: threading.Event
) -> Forked | None:
    """A worker forked from a template; None where that gives none, or `closing` is set meanwhile.

    Its first fork waits until the framework is imported.
    """
    folders = [*_adopted, _folder(os.getpid())]
    path = next((folder / name for folder in folders if (folder / name).exists()), None)
    if path is None:
        return None
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    reads, writes = zip(*(os.pipe() for _ in range(3)), strict=True)
    # What it reads, answers to, and prints to.
    theirs, ours = (reads[0], *writes[1:]), (writes[0], *reads[1:])
    told = json.dumps(options(target, limits, apart)).encode("ascii")
    pid = 0
    try:
        connection.connect(str(path))
        rights = array.array("i", theirs)
        connection.sendmsg([told], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        pid = _answered(connection, limits.start_seconds, closing)
    except (OSError, ValueError):
        path.unlink(missing_ok=True)  # it has ended, or never started: nobody need ask again
    finally:
        for number in theirs:
            os.close(number)
        if not pid:
            connection.close()
            for number in ours:
                os.close(number)
    if not pid:
        return None
    streams: Any = tuple(
        os.fdopen(number, mode, 0) for number, mode in zip(ours, ("wb", "rb", "rb"), strict=True)
    )
    return Forked(pid, streams, connection, path)


def _answered(connection: socket.socket, seconds: float, closing: threading.Event) -> int:
    """The pid; 0 where it is not wanted any more. Raises OSError or ValueError where none comes."""
    until = time.monotonic() + seconds
    connection.settimeout(_TICK)
    while time.monotonic() < until:
        if closing.is_set():
            return 0
        with contextlib.suppress(TimeoutError):
            return int(json.loads(connection.recv(_MESSAGE))["pid"])
    raise TimeoutError
