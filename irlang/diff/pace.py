"""Until when this process may look into what it finds.

What is compared by then is judged; what is found is reduced as far as there is time, and what is
left of a batch is for `--resume`.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass


@dataclass(slots=True)
class Pace:
    """until: on the monotonic clock, which all processes of a machine share."""

    until: float = math.inf

    def left(self, seconds: float = math.inf) -> float:
        """So many seconds, or as many as are left."""
        return max(0.0, min(seconds, self.until - time.monotonic()))

    def over(self) -> bool:
        """Whether there is no time left."""
        return self.left() == 0.0


PACE = Pace()  # of this process
