"""That the session or the system asks a process to end, as an interrupt."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# Seconds within which a process is asked to end once: `timeout` asks its child, and then the group
# that the child is in, and what is interrupted while it ends leaves its locks behind.
_MOMENT = 1.0


@contextmanager
def asked_to_end() -> Iterator[None]:
    """That the session or the system ends is an interrupt: what was done is written, or undone."""
    ends = [signal.SIGTERM, signal.SIGHUP]
    before = {one: signal.getsignal(one) for one in ends}
    asked = -_MOMENT

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        last, asked = asked, time.monotonic()
        if asked - last >= _MOMENT:
            signal.default_int_handler(number, frame)

    for one, handler in before.items():
        if handler == signal.SIG_DFL:  # under nohup it is ignored
            signal.signal(one, interrupt)
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
