"""One worker process as its supervisor sees it: frames in and out, what it prints, its memory.

`Process.wait` is the one place where time passes. It moves bytes in both directions at once, so
that neither side can block the other, and says what happened next. It decides nothing: what an
event means for the program that was running is `irlang.lower.pool`'s business.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from typing import IO, Literal, Protocol, TypeAlias

from irlang.lower import worker as wire
from irlang.lower.message import plain

Event: TypeAlias = Literal["frame", "exit", "garbage", "stray", "timeout", "memory", "closed"]

_OUTPUT_KEPT = 16000  # characters of what it printed: its stacks come behind its last words
_LEAST_FRAME = 1 << 28  # bytes that any process may answer with
_TICK = 0.02  # seconds between two looks at the memory of a working process


class Child(Protocol):
    """A process that was started or forked, and what of it is held here.

    streams: to its standard input, from its answers and from what it prints, unbuffered.
    """

    pid: int
    streams: tuple[IO[bytes], IO[bytes], IO[bytes]]

    def wait(self, seconds: float = 0.0) -> int | None:
        """Its exit code, negative for a signal; None where it has not ended within that time."""

    def stack(self) -> None:
        """Makes it print where it is."""

    def kill(self) -> int:
        """Ends it and its children; its exit code."""


class Started:
    """A process of a command.

    Raises
    ------
    OSError
        The command cannot be executed.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._popen = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=environment,
            start_new_session=True,  # a group to end with it, out of reach of the terminal's ^C
        )
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        assert self._popen.stderr is not None
        self.streams = (self._popen.stdin, self._popen.stdout, self._popen.stderr)
        self.pid = self._popen.pid

    def wait(self, seconds: float = 0.0) -> int | None:
        """As of a `Child`."""
        if seconds:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.wait(seconds)
        return self._popen.poll()

    def stack(self) -> None:
        """As of a `Child`."""
        self._popen.send_signal(signal.SIGUSR1)

    def kill(self) -> int:
        """As of a `Child`."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._popen.pid, signal.SIGKILL)
        return self._popen.wait()


class Process:
    """A worker process and its pipes. To be used by one thread.

    `quiet_since` is when it was last given something to do or heard of, on the monotonic clock;
    `outbox` what it has not been sent yet; `frames` how many it has sent; `peak` the most resident
    bytes that were seen.
    """

    def __init__(self, child: Child, memory_limit: int) -> None:
        self._child = child
        self._streams = child.streams
        self._input, self._answers, self._errors = (stream.fileno() for stream in self._streams)
        self._selector = selectors.DefaultSelector()
        for stream in self._streams:
            os.set_blocking(stream.fileno(), False)
        self._selector.register(self._answers, selectors.EVENT_READ)
        self._selector.register(self._errors, selectors.EVENT_READ)
        self._inbox = bytearray()
        self._printed = bytearray()
        self._memory_limit = memory_limit
        self._measured = 0.0
        self.outbox = memoryview(b"")
        self.frames = 0
        self.peak = 0
        self.quiet_since = time.monotonic()
        self._worked_before = 0.0

    def running(self) -> bool:
        """Whether the process has not ended."""
        return self._child.wait() is None

    def post(self, frame: bytes) -> None:
        """Begin to send `frame`; `wait` goes on with it."""
        self.outbox = memoryview(frame)
        self._selector.register(self._input, selectors.EVENT_WRITE)
        self._listen_from_now()

    def _listen_from_now(self) -> None:
        self.quiet_since = time.monotonic()
        self._worked_before = wire.processor_seconds(str(self._child.pid))

    def wait(self, seconds: float, closing: threading.Event) -> tuple[Event, bytearray]:
        """Wait for a frame, or for what ends the process's use, `closing` among it.

        It is a timeout when the process has been quiet for `seconds`; on a busy machine, when it
        had the processor for so long, or waits for something else than that and the disk.
        """
        nothing = bytearray()
        rest = 0.0  # between two looks at what is late: they take a core from what it waits for
        while True:
            try:
                size = wire.frame_size(self._inbox)
            except wire.WireError:
                return "garbage", nothing
            if size is not None and size > max(self._memory_limit, _LEAST_FRAME):
                return "garbage", nothing  # it could not hold that itself
            if size is not None and size <= len(self._inbox):
                frame = self._inbox[:size]
                del self._inbox[:size]
                self.frames += 1
                self._listen_from_now()
                return "frame", frame
            if closing.is_set():
                return "closed", nothing
            left = self.quiet_since + seconds - time.monotonic()
            ended = not self.running()
            # What was said in time counts, also when this thread is late to hear it.
            heard = self._exchange(0.0 if ended else max(rest, min(_TICK, left)))
            if heard is None or (ended and not heard):
                return "exit", nothing
            if left <= 0 and not heard and not self._starved(seconds, -left):
                return "timeout", nothing
            rest = _TICK if left <= 0 else 0.0
            if self._resident() > self._memory_limit:
                return "memory", nothing

    def _starved(self, seconds: float, beyond: float) -> bool:
        """Whether a process that is late had too little of the processor to be in time."""
        pid = str(self._child.pid)
        worked = wire.processor_seconds(pid) - self._worked_before
        return wire.starved(pid, worked, seconds, beyond)

    def _exchange(self, seconds: float) -> bool | None:
        """Move what can be moved: whether an answer was heard, None at the end of the answers."""
        heard = False
        for key, _ in self._selector.select(seconds):
            if key.fd == self._input:
                self._write()
            elif key.fd == self._errors:
                self._read_errors()
            elif data := os.read(self._answers, 1 << 20):
                self._inbox += data
                heard = True
            else:
                return None
        return heard

    def _write(self) -> None:
        # A process that has ended does not read; where answers are read, its end is noticed.
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            self.outbox = self.outbox[os.write(self._input, self.outbox) :]
            if self.outbox:
                return
        self._selector.unregister(self._input)

    def _read_errors(self) -> bool:
        try:
            data = os.read(self._errors, 1 << 16)
        except BlockingIOError:
            return False
        if not data:
            self._selector.unregister(self._errors)
            return False
        self._printed += data
        del self._printed[: -4 * _OUTPUT_KEPT]  # a character has up to four bytes
        return True

    def _resident(self) -> int:
        now = time.monotonic()
        if now - self._measured < _TICK:
            return 0
        self._measured = now
        resident = wire.resident_bytes(str(self._child.pid))
        self.peak = max(self.peak, resident)
        return resident

    def dump_stack(self) -> None:
        """Ask a process that hangs where it is, and give it a moment to print that."""
        self._child.stack()
        until = time.monotonic() + 0.2
        while time.monotonic() < until and self._exchange(_TICK) is not None:
            continue

    def printed(self) -> str:
        """The last that it printed since it was asked before."""
        while self._errors in self._selector.get_map() and self._read_errors():
            continue
        text = plain(self._printed.decode("utf-8", "replace"))[-_OUTPUT_KEPT:]
        self._printed.clear()
        return text

    def end(self, grace: float = 0.0) -> int:
        """End the process and its children; its exit code, negative for a signal.

        For `grace` seconds it may end by itself.
        """
        self._child.wait(grace)
        return self._child.kill()

    def release(self) -> str:
        """Close the pipes of a process that was ended; the last that it printed."""
        text = self.printed()
        self._selector.close()
        for stream in self._streams:
            stream.close()
        return text
