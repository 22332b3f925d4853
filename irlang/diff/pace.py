"""Until when this process may look into what it finds, and how long into each.

What is compared by then is judged; what is found is reduced as far as there is time, and what is
left of a batch is for `--resume`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

# Of the time that is left one program may take, and what hangs may to be made smaller; or so many
# seconds.
_PROGRAM, _LEAST = 1 / 16, 2.0
_ONE = 1 / 8  # of the time that is left may go into one finding: a short campaign has others
_WAITED = 1 / 4  # of all time: after that what hangs is counted and no more
_DRAWN, _SOON = 1 / 30, 1.0  # of the time that is left one draw may take, or so many seconds
_CLOSELY = 1 / 6  # of the time that has passed: after that what may be nothing has no closer look


@dataclass(slots=True)
class Pace:
    """until: on the monotonic clock, which all processes of a machine share; since: when that was
    said. looked: seconds that were spent on making findings smaller; closely: on closer looks;
    waited: on waiting for what had no answer, and hung: of these what is not `looked` as well.
    """

    until: float = math.inf
    since: float = -math.inf
    looked: float = 0.0
    closely: float = 0.0
    waited: float = 0.0
    hung: float = 0.0

    def start(self, until: float) -> None:
        """Begins what is to end by then."""
        self.until, self.since = until, time.monotonic()
        self.closely = self.waited = 0.0

    def left(self, seconds: float = math.inf) -> float:
        """So many seconds, or as many as are left."""
        return max(0.0, min(seconds, self.until - time.monotonic()))

    def for_one(self, seconds: float) -> float:
        """So many seconds, or as many as one finding may take of those that are left."""
        return min(seconds, _ONE * self.left())

    def for_hang(self, seconds: float) -> float:
        """So many seconds, or as many as what hangs may take of those that are left: each trial
        that holds is waited for, and tells no more than that.
        """
        return min(seconds, _PROGRAM * self.left())

    def wait(self, seconds: float) -> None:
        """Counts the time of a program that had no answer."""
        self.waited += seconds
        self.hung += seconds

    def affords_hang(self) -> bool:
        """Whether one more of what hangs is to be looked into, which takes a dozen waits: those of
        two convolutions had 48 of the 60 seconds of a campaign.
        """
        return self.waited <= _WAITED * (self.until - self.since)

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Counts what is done meanwhile as `looked`."""
        start, hung = time.monotonic(), self.hung
        try:
            yield
        finally:
            self.looked += time.monotonic() - start
            self.hung = hung

    def affords(self, seconds: float) -> bool:
        """Whether a closer look that may take so many seconds is to be had at what may be nothing.
        Those at findings are taken in any case, and count.

        Such looks take a hundred times as long as the oracle where calls are large: without an end
        those at one program of `grid_sample` had 23 seconds of a campaign of 60.
        """
        if self.until == math.inf:
            return True
        passed = time.monotonic() - self.since
        return seconds <= self.for_one(math.inf) and self.closely <= _CLOSELY * passed

    @contextmanager
    def looking_closely(self) -> Iterator[None]:
        """Counts what is done meanwhile as `closely`, once where one look is part of another."""
        start = time.monotonic() - self.closely
        try:
            yield
        finally:
            self.closely = time.monotonic() - start

    def for_program(self, seconds: float) -> float:
        """So many seconds, or as many as one program may take of those that are left: what hangs
        is not to take the whole of a short campaign.
        """
        return max(min(seconds, _PROGRAM * self.left()), min(seconds, _LEAST))

    def draw(self) -> Callable[[], bool]:
        """Whether what is drawn from now on has taken its part of the time that is left: where
        there is little of it, what can hardly be drawn is not to take it from all else.
        """
        until = time.monotonic() + max(_DRAWN * self.left(), _SOON)
        return lambda: time.monotonic() >= until

    def over(self) -> bool:
        """Whether there is no time left."""
        return self.left() == 0.0


PACE = Pace()  # of this process
