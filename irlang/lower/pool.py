"""The supervisor of worker processes: batches of programs in, one `Result` per program out.

What a framework does to its process (crash, hang, leak, print to the wrong place) is a result of
the program that was running and of no other: the process is replaced and the batch goes on.

A `Worker` owns a thread, and the thread owns the process. So several targets work at the same
time, beside the caller: `Worker.send` to each of them, then `Worker.collect` from each.

Non-goals: deciding what a result means, spreading one target over several processes, and
containing a program that is hostile (emitted programs are our own).
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import math
import os
import queue
import threading
import time
import weakref
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, Self

from irlang.lower import template
from irlang.lower import worker as wire
from irlang.lower.launch import Limits, Target, command, environment, on_gpu
from irlang.lower.message import (
    Hello,
    Packed,
    Program,
    Result,
    Status,
    batch,
    pack,
    read_answer,
    read_hello,
)
from irlang.lower.process import Child, Event, Process, Started

__all__ = [
    "Hello", "Late", "Limits", "Program", "Result", "Status", "Target", "Worker", "WorkerError",
]  # fmt: skip

_USUAL = Limits()
_GRACE = 10.0  # seconds beyond a program's that a process has to end what it forked for that
_HASTY = 2.0  # seconds that programs have at least where others of their batch have hung
# Seconds after the end of the time that a program may go on for, and all that is to come after it.
_RUNNING, _LAST = 6.0, 2.0
_START_ATTEMPTS = 3  # a machine short of memory may kill a process that would start later


class WorkerError(Exception):
    """A target that cannot be used: not installed, not starting, or closed.

    ``str`` is one line; `output` is the last output of the process, if there was one.
    """

    def __init__(self, message: str, output: str = "") -> None:
        super().__init__(message)
        self.output = output


class Late(Exception):
    """The time of all work is over (`Limits.until`), and there is no answer. Not to be asked again:
    what was sent may still run until the worker is closed.
    """


@dataclasses.dataclass
class _Job:
    programs: deque[Packed]
    together: bool  # a process that runs programs apart runs these one after another
    future: Future[list[Result]]
    seconds: float  # that one of them may take


class Worker:
    """Runs batches of programs on one target, one after another, whatever becomes of its process.

    The process starts with `start` or the first batch and serves until `close`, which also comes
    at the end of a ``with`` block and at the exit of the interpreter. Not to be shared between
    threads, nor used after a fork.

    With `apart`, every program is run by a process that is forked from one that has run nothing: a
    program that ends its process costs milliseconds, not another import of the framework.
    """

    def __init__(self, target: Target, limits: Limits = _USUAL, *, apart: bool = False) -> None:
        self.target = target
        self.limits = dataclasses.replace(limits, seconds=limits.seconds * target.patience)
        self.apart = apart
        self._usual = limits
        self._asked = range(0)  # the numbers of what was sent last
        self._seconds = self.limits.seconds  # that a program of the job under way may take
        self._most = math.inf  # that one of any may, since one of an earlier job has hung
        self._others: dict[tuple[Limits, bool], Worker] = {}  # by these, and whether apart
        self._process: Process | None = None
        self._hello: Future[Hello] = Future()
        self._unusable: WorkerError | None = None
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._sent: deque[Future[list[Result]]] = deque()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._owner = os.getpid()
        self._template = ""  # the name of the one that it uses

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Begin to start the process, unless it has begun; it does not wait."""
        if self._closing.is_set():
            raise WorkerError(f"{self.target.name}: the worker is closed")
        if self._thread is None:
            name = f"irlang worker {self.target.name}"
            self._thread = threading.Thread(target=self._supervise, name=name, daemon=True)
            _open_workers.add(self)
            self._thread.start()

    def hello(self) -> Hello:
        """What the framework said at its first start, which is waited for.

        Raises
        ------
        WorkerError
            The target cannot be used; the message says why.
        """
        self.start()
        return self._hello.result()

    def send(self, programs: Sequence[Program], seconds: float = math.inf) -> None:
        """Queue a batch; it does not wait. Arrays are copied before it returns.

        seconds: that a program may take, before the target's patience, where that is less than
        elsewhere.

        Raises
        ------
        WorkerError
            The worker is closed.
        irlang.lower.worker.WireError
            An array has a dtype that cannot be sent.
        """
        self._queue([pack(program) for program in programs], together=False, seconds=seconds)

    def _queue(
        self, programs: Sequence[Packed], *, together: bool, seconds: float = math.inf
    ) -> None:
        self.start()
        most = min(self.limits.seconds, seconds * self.target.patience)
        job = _Job(deque(programs), together, Future(), most)
        self._sent.append(job.future)
        self._jobs.put(job)

    def collect(self) -> list[Result]:
        """The results of the oldest batch not collected yet, in the order of its programs.

        Raises
        ------
        WorkerError
            The target could not be started, or was closed meanwhile.
        Late
            The time of all work is over.
        """
        if not self._sent:
            raise WorkerError(f"{self.target.name}: no batch was sent")
        job, until = self._sent.popleft(), self.limits.until
        if until == math.inf:
            return job.result()
        try:
            last = until + min(self.limits.seconds, _RUNNING) + _LAST
            return job.result(max(0.0, last - time.monotonic()))
        except TimeoutError:
            if job.done():
                raise  # it is the work that has failed
            raise Late(f"{self.target.name}: no answer in time") from None

    def _is_over(self) -> bool:
        return time.monotonic() >= self.limits.until

    def forget(self) -> None:
        """Give up the batches that are not collected yet; they may still run, before later ones."""
        self._sent.clear()

    def submit(self, programs: Sequence[Program]) -> list[Result]:
        """`send`, then `collect`; no other batch may be waiting to be collected."""
        if self._sent:
            raise WorkerError(f"{self.target.name}: an earlier batch was not collected")
        self.send(programs)
        return self.collect()

    def spare(self, seconds: float | None = None) -> Worker | None:
        """A worker of the same target that runs programs apart; None where it cannot fork.

        seconds: that a program may take, before the target's patience; as here, by default. It is
        made when it is first asked for, and closed with this one.
        """
        able = hasattr(os, "fork") and not on_gpu(self.target) and not self._closing.is_set()
        if self.apart or not able:
            return None  # the driver of a GPU does not survive a fork
        usual = self._usual
        limits = usual if seconds is None else dataclasses.replace(usual, seconds=seconds)
        return self._other(limits, apart=True)

    def hasty(self, limits: Limits) -> Worker:
        """A worker of the same target with a process of its own, in which a program may take no
        more than this, before the target's patience; made and closed as `spare` is.
        """
        return self._other(limits, apart=False)

    def _other(self, limits: Limits, *, apart: bool) -> Worker:
        usual = self._usual
        seconds, memory = min(limits.seconds, usual.seconds), min(limits.memory, usual.memory)
        limits = dataclasses.replace(usual, seconds=seconds, memory=memory)
        if (limits, apart) not in self._others:
            self._others[limits, apart] = Worker(self.target, limits, apart=apart)
        return self._others[limits, apart]

    def fresh(self) -> Worker:
        """A worker of the same target and limits, with a process of its own; not started."""
        return Worker(self.target, self._usual)

    def close(self) -> None:
        """End the process, also one that is at work, and wait until it is gone."""
        if os.getpid() != self._owner:
            return
        self._closing.set()
        for other in list(self._others.values()):
            other.close()
        self._jobs.put(None)
        if self._thread is not None:
            self._thread.join()
        if self._template:
            template.leave(self._template)
            self._template = ""
        _open_workers.discard(self)

    # Everything below runs in the worker's thread.

    def _supervise(self) -> None:
        try:
            self._live_process()
        except Exception as error:  # noqa: BLE001 (raised again by `hello`)
            self._hello.set_exception(error)
        while (job := self._jobs.get()) is not None:
            try:
                self._seconds = min(job.seconds, self._most)
                job.future.set_result(self._run(job.programs, job.together))
            except Exception as error:  # noqa: BLE001 (raised again by `collect`)
                job.future.set_exception(error)
        self._drop()

    def _live_process(self) -> Process:
        """The process, started if there is none."""
        if self._process is not None and self._process.running():
            return self._process
        self._drop()
        for attempt in range(_START_ATTEMPTS):
            if self._unusable is not None:
                break
            try:
                return self._start_process()
            except WorkerError as error:
                if attempt == _START_ATTEMPTS - 1:
                    self._unusable = error
        assert self._unusable is not None
        raise self._unusable

    def _start_process(self) -> Process:
        name = self.target.name
        process = Process(self._child(), self.limits.memory)
        self._process = process
        event, frame = process.wait(self.limits.start_seconds, self._closing)
        if event == "frame":
            try:
                hello = read_hello(frame)
            except wire.WireError as cause:
                self._drop()
                raise WorkerError(f"{name}: the worker did not start: {cause}") from cause
            if "error" in hello:
                self._drop()
                self._unusable = WorkerError(f"{name}: {hello['error']}: {hello['message']}")
                raise self._unusable
            if not self._hello.done():
                fields = [field.name for field in dataclasses.fields(Hello)]
                self._hello.set_result(Hello(**{field: hello[field] for field in fields}))
            return process
        error, detail = self._end_process(process, event, self.limits.start_seconds)
        failure = WorkerError(f"{name}: the worker did not start: {error}", detail["output"])
        if event == "closed":
            self._unusable = failure
        raise failure

    def _child(self) -> Child:
        """Forked from a process that has imported the framework, or started where none has."""
        if not self._template:
            self._template = template.use(self.target, self.limits)
        if self._template:
            forked = template.fork(
                self._template, self.target, self.limits, self.apart, self._closing
            )
            if forked is not None:
                return forked
        try:
            line = command(self.target, self.limits, self.apart)
            return Started(line, environment(self.target))
        except OSError as cause:
            told = f"{self.target.name}: {self.target.python}: {cause.strerror}"
            self._unusable = WorkerError(told)
            raise self._unusable from cause

    def _drop(self) -> None:
        if self._process is not None:
            self._process.end()
            self._process.release()
            self._process = None

    def _run(self, pending: deque[Packed], together: bool) -> list[Result]:
        results: list[Result] = []
        unheard = strays = 0
        while pending:
            if self._closing.is_set():
                raise WorkerError(f"{self.target.name}: the worker is closed")
            process = self._live_process()
            waiting = [pending[0]] if self.apart and not together else list(pending)
            self._ask(process, waiting)
            left = deque(waiting)
            event = self._collect_answers(process, left, results)
            for _ in range(len(waiting) - len(left)):
                pending.popleft()
            if event == "frame" and not left and process.outbox:
                self._drop()  # all is answered, and was not even sent
            if event == "stray" and strays < _START_ATTEMPTS:  # what is left is not at fault
                strays += len(left) == len(waiting)
                self._drop()
                continue
            if event in ("frame", "closed"):
                continue
            # A process that ended before it had the whole batch was not running any of it.
            unheard = unheard + 1 if process.outbox else 0
            seconds = time.monotonic() - process.quiet_since
            error, detail = self._end_process(process, event, self._seconds)
            if 0 < unheard < _START_ATTEMPTS:
                continue
            status: Status = event if event in ("timeout", "memory") else "crash"
            lost = Result(status, {}, {}, error, detail, seconds)
            if status == "timeout":  # else a batch of what hangs has the whole of a campaign
                least = min(self._seconds, _HASTY * self.target.patience)
                self._seconds = max(self._seconds / 2, least)
                if self.limits.until < math.inf:  # a short campaign waits for the first alone
                    self._most = _HASTY * self.target.patience
            before = waiting[: len(waiting) - len(left)]
            victim = pending.popleft()
            if status == "crash" and before:
                self._blame(victim, lost, before, results)
            else:
                results.append(lost)
        return results

    def _blame(
        self, victim: Packed, lost: Result, before: list[Packed], results: list[Result]
    ) -> None:
        """Whose doing the crash of a program is that others ran `before`; adds its result.

        Alone in a process it may end that as well: then it is its own doing. Else the others are
        halved until one remains that ends it: that one's result is the crash, in place of what it
        gave. Where no single one does, or there is no time, the crash stays where it was seen.
        """
        if self._is_over():
            results.append(lost)
            return
        own = self._alone([victim])
        if own.status == "crash":
            results.append(lost)
            return
        suspects = before
        while len(suspects) > 1 and not self._is_over():
            half = len(suspects) // 2
            found = [s for s in (suspects[:half], suspects[half:])
                     if self._alone([*s, victim]).status == "crash"]  # fmt: skip
            if not found:
                break
            suspects = found[0]
        if len(suspects) > 1 or self._alone([*suspects, victim]).status != "crash":
            told = f"{lost.error}; not when it runs alone"
            results.append(dataclasses.replace(lost, error=told))
            return
        place = (
            len(results)
            - len(before)
            + next(n for n, one in enumerate(before) if one is suspects[0])
        )
        told = f"a program that follows it in the process does not survive: {lost.error}"
        results[place] = dataclasses.replace(lost, error=told)
        results.append(own)

    def _alone(self, programs: list[Packed]) -> Result:
        """The result of the last of some programs, which a fresh process runs."""
        spare = self.spare()
        if spare is not None:
            with contextlib.suppress(WorkerError):  # not every framework survives a fork
                spare._queue(programs, together=True)
                last = spare.collect()[-1]
                if last.status in ("ok", "refused", "crash"):
                    return last
        self._drop()
        process = self._live_process()
        self._ask(process, programs)
        left, results = deque(programs), list[Result]()
        event = self._collect_answers(process, left, results)
        if event == "frame" and results:
            return results[-1]
        seconds = time.monotonic() - process.quiet_since
        error, detail = self._end_process(process, event, self._seconds)
        status: Status = event if event in ("timeout", "memory") else "crash"
        return Result(status, {}, {}, error, detail, seconds)

    def _ask(self, process: Process, programs: Sequence[Packed]) -> None:
        self._asked = range(self._asked.stop, self._asked.stop + len(programs))
        process.post(batch(programs, self._asked.start))

    def _collect_answers(
        self, process: Process, pending: deque[Packed], results: list[Result]
    ) -> Event:
        """Move programs that are answered from `pending` to `results`; what stopped that.

        A process that a program forked answers for the second time, that program first: this is
        its fault, and no answer out of turn counts.
        """
        first = len(results)
        while pending:
            event, frame = process.wait(self._patience(), self._closing)
            if event != "frame":
                return event
            try:
                answer, result = read_answer(frame)
            except wire.WireError:
                return "garbage"
            number = answer.get("number")
            if number != self._asked[len(results) - first]:
                if isinstance(number, int) and number in self._asked[: len(results) - first]:
                    told, detail = wire.cause_of_end("stray", 0, self._seconds, self.limits.memory)
                    place = first + self._asked.index(number)
                    results[place] = Result("crash", {}, {}, told, detail, results[place].seconds)
                return "stray"
            if self.apart and result.status not in ("ok", "refused"):
                result.detail["output"] = process.printed()
            results.append(result)
            pending.popleft()
            if pending and time.monotonic() >= self.limits.until + _LAST:
                self._drop()
                raise Late(f"{self.target.name}: no time for those after it")
            if answer["retire"]:
                self._drop()
                break
        return "frame"

    def _patience(self) -> float:
        """How long a process may be quiet; one that runs programs apart watches over them."""
        return self._seconds + (_GRACE if self.apart else 0.0)

    def _end_process(
        self, process: Process, event: Event, seconds: float
    ) -> tuple[str, dict[str, Any]]:
        """End the process after `event`: the cause in one line, and the details of a result."""
        detail: dict[str, Any] = {}
        if event == "timeout":
            process.dump_stack()
        # At the end of its answers a process is about to end: how, is what it is to be asked.
        code = process.end(grace=5.0 if event == "exit" else 0.0)
        error, told = wire.cause_of_end(event, code, seconds, self.limits.memory)
        detail.update(told)
        detail["output"] = process.release()
        detail["programs_before"] = max(0, process.frames - 1)  # the first was its greeting
        detail["peak"] = process.peak
        self._process = None
        return error, detail


_open_workers: weakref.WeakSet[Worker] = weakref.WeakSet()


@atexit.register
def _close_workers() -> None:
    for worker in list(_open_workers):
        worker.close()
