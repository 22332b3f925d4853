"""Numbered work spread over processes, of which any may be killed at any moment.

A process that is killed takes the pool with it. The others start again; what they were at is run
again, but not for ever: work that ends its process every time is left out.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")
_ATTEMPTS = 3  # times that work is begun whose process is killed
_LOOK = 0.5  # seconds between looks at whether the process that gives the work is still there


@contextlib.contextmanager
def processes(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that end with this one, and at once where what they are for is given up."""
    before = {child.pid for child in multiprocessing.active_children()}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, _begin, (os.getpid(),)) as pool:
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


def _begin(parent: int) -> None:
    """What a process does first: it leaves ^C to its parent, and watches that there is one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK)
        os._exit(1)  # its own workers end with it

    threading.Thread(target=watch, daemon=True).start()


class Spread(Generic[Result]):
    """Runs `work` of numbers in `jobs` processes; `finished` is called here, as results come.

    work: a function that can be sent to another process. lost: the numbers that were left out.
    """

    def __init__(
        self, jobs: int, work: Callable[[int], Result], finished: Callable[[int, Result], None]
    ) -> None:
        self.jobs = jobs
        self.work = work
        self.finished = finished
        self.lost: list[int] = []
        self._open: dict[int, None] = {}  # begun and not done, in order
        self._running: dict[Future[Result], int] = {}

    def run(self, numbers: Iterator[int]) -> None:
        """All the numbers, one more than there are processes under way."""
        attempts: Counter[int] = Counter()
        while True:
            again, self._running = list(self._open), {}
            try:
                with processes(self.jobs) as pool:
                    for number in itertools.chain(again, numbers):
                        self._open[number] = None
                        self._running[submit(pool, self.work, number)] = number
                        self._collect(self.jobs)
                    self._collect(0)
            except BrokenProcessPool:
                attempts.update(list(self._open))
                self.lost += [n for n in self._open if attempts[n] >= _ATTEMPTS]
                self._open = {n: None for n in self._open if attempts[n] < _ATTEMPTS}
            else:
                return

    def _collect(self, most: int) -> None:
        """What is done, until so many are left."""
        while len(self._running) > most:
            done, _ = wait(self._running, return_when=FIRST_COMPLETED)
            for future in done:
                number = self._running.pop(future)
                result = future.result()
                del self._open[number]
                self.finished(number, result)
