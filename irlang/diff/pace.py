"""Until when this process may look into what it finds, and how long into each.

What is compared by then is judged; what is found is reduced as far as there is time, and what is
left of a batch is for `--resume`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_PROGRAM, _LEAST = 1 / 16, 4.0  # of the time that is left one program may take, or so many seconds
_ONE = 1 / 8  # of the time that is left may go into one finding: a short campaign has others


@dataclass(slots=True)
class Pace:
    """until: on the monotonic clock, which all processes of a machine share. looked: seconds that
    were spent on making findings smaller.
    """

    until: float = math.inf
    looked: float = 0.0

    def left(self, seconds: float = math.inf) -> float:
        """So many seconds, or as many as are left."""
        return max(0.0, min(seconds, self.until - time.monotonic()))

    def for_one(self, seconds: float) -> float:
        """So many seconds, or as many as one finding may take of those that are left."""
        return min(seconds, _ONE * self.left())

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Counts what is done meanwhile as `looked`."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.looked += time.monotonic() - start

    def for_program(self, seconds: float) -> float:
        """So many seconds, or as many as one program may take of those that are left: what hangs
        is not to take the whole of a short campaign.
        """
        return max(min(seconds, _PROGRAM * self.left()), min(seconds, _LEAST))

    def over(self) -> bool:
        """Whether there is no time left."""
        return self.left() == 0.0


PACE = Pace()  # of this process
