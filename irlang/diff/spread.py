"""Numbered work spread over processes, of which any may be killed, or stopped, at any moment.

One that is stopped while this one runs is killed after a while. A process that is killed takes the
pool with it. The others start again; what they were at is run again, but not for ever: work that
ends its process every time is left out.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import queue
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")
_ATTEMPTS = 3  # times that work is begun whose process is killed
_STOPPED = 20  # looks at a process that is stopped
_LOOK = 0.5  # seconds between looks at whether the process that gives the work is still there


@contextlib.contextmanager
def processes(jobs: int, address: str = "") -> Iterator[ProcessPoolExecutor]:
    """Processes that end with this one, and at once where what they are for is given up.

    address: where they may `tell` something while they work.
    """
    before = {child.pid for child in multiprocessing.active_children()}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, _begin, (os.getpid(), address)) as pool:
        try:
            yield pool
        except BaseException:
            for child in multiprocessing.active_children():
                if child.pid not in before:
                    child.terminate()
            raise


def submit(pool: ProcessPoolExecutor, work: Callable[..., Result], *args: Any) -> Future[Result]:
    """Hands over work; a process that is started for it is never interrupted by the terminal."""
    old = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        return pool.submit(work, *args)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)


_parent: list[Connection[Any, Any]] = []  # of a process that works for another


def tell(said: object) -> None:
    """Tells the process that gave the work; it has heard it before it has the work's result."""
    for connection in _parent:
        connection.send(said)
        connection.recv()


def _connected(address: str) -> Connection[Any, Any]:
    return Client(address, authkey=multiprocessing.current_process().authkey)


def _begin(parent: int, address: str) -> None:
    """What a process does first: it leaves ^C to its parent, and watches that there is one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if address:
        _parent.append(_connected(address))

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK)
        os._exit(1)  # its own workers end with it

    threading.Thread(target=watch, daemon=True).start()


class _Ear:
    """Hears what processes `tell`. A process that is killed while it speaks has said nothing."""

    def __init__(self) -> None:
        self._listener = Listener(authkey=multiprocessing.current_process().authkey)
        self.address = str(self._listener.address)
        self._heard: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._closing = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while not self._closing:
            try:
                connection = self._listener.accept()
            except (AuthenticationError, EOFError, OSError):
                continue  # it was killed, or is none of ours
            threading.Thread(target=self._hear, args=(connection,), daemon=True).start()

    def _hear(self, connection: Connection[Any, Any]) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                self._heard.put(connection.recv())
                connection.send(None)

    def heard(self) -> Iterator[Any]:
        """What was said since the last time."""
        with contextlib.suppress(queue.Empty):
            while True:
                yield self._heard.get_nowait()

    def close(self) -> None:
        """Hears no more."""
        self._closing = True
        with contextlib.suppress(OSError):
            _connected(self.address).close()  # which wakes who waits for one
        self._listener.close()


class Spread(Generic[Result]):
    """Runs `work` of numbers in `jobs` processes; `finished` is called here, as results come.

    work: a function that can be sent to another process. heard: called here with what that one
    `tell`s; look: again and again meanwhile. lost: the numbers that were left out.
    """

    def __init__(
        self,
        jobs: int,
        work: Callable[[int], Result],
        finished: Callable[[int, Result], None],
        heard: Callable[[Any], None] = lambda _: None,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        self.jobs = jobs
        self.work = work
        self.finished = finished
        self.heard = heard
        self.look = look
        self._ear = _Ear()
        self.lost: list[int] = []
        self._open: dict[int, None] = {}  # begun and not done, in order
        self._running: dict[Future[Result], int] = {}
        self._stopped: dict[int, int] = {}  # processes, and for how many looks they have been

    def run(self, numbers: Iterator[int]) -> None:
        """All the numbers, one more than there are processes under way."""
        try:
            self._run(numbers)
        finally:
            self._ear.close()

    def _run(self, numbers: Iterator[int]) -> None:
        attempts: Counter[int] = Counter()
        while True:
            again, self._running = list(self._open), {}
            try:
                with processes(self.jobs, self._ear.address) as pool:
                    for number in itertools.chain(again, numbers):
                        self._open[number] = None
                        self._running[submit(pool, self.work, number)] = number
                        self._collect(self.jobs)
                    self._collect(0)
            except BrokenProcessPool:
                self._take_in([f for f in self._running if f.exception() is None])
                attempts.update(list(self._open))
                self.lost += [n for n in self._open if attempts[n] >= _ATTEMPTS]
                self._open = {n: None for n in self._open if attempts[n] < _ATTEMPTS}
            else:
                return

    def _collect(self, most: int) -> None:
        """What is done, until so many are left."""
        while len(self._running) > most:
            done, _ = wait(self._running, _LOOK, return_when=FIRST_COMPLETED)
            for said in self._ear.heard():
                self.heard(said)
            self.look()
            self._end_stopped()
            self._take_in(done)

    def _take_in(self, done: Iterable[Future[Result]]) -> None:
        """Results that are there. Raises `BrokenProcessPool` at one whose process was killed."""
        for future in done:
            number = self._running.pop(future)
            result = future.result()
            del self._open[number]
            self.finished(number, result)

    def _end_stopped(self) -> None:
        """Kills a process that somebody has stopped and nobody lets go on; its work is begun again.

        Where a terminal stops all of them, this one does not look, and they go on together.
        """
        pids = [child.pid for child in multiprocessing.active_children() if child.pid is not None]
        self._stopped = {p: self._stopped.get(p, 0) + 1 for p in pids if _is_stopped(p)}
        for pid, looks in self._stopped.items():
            if looks >= _STOPPED:
                os.kill(pid, signal.SIGKILL)


def _is_stopped(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
    except OSError:
        return False  # it is gone, or the system does not tell
    return state[:1] == ["T"]
