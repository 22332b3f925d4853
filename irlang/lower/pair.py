"""Two processes side by side for a target that takes its time: of every batch each runs half.

What compiles takes seconds over a program, on one core, and whoever compares it waits.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

from irlang.lower.launch import Limits, Target
from irlang.lower.message import Program, Result
from irlang.lower.pool import Worker


class Pair(Worker):
    """A worker whose batches are run by its own process and by that of a second worker.

    Those that it makes of itself (`spare`, `hasty`, `fresh`) have one process each.
    """

    def __init__(self, target: Target, limits: Limits) -> None:
        super().__init__(target, limits)
        self._second = Worker(target, limits)
        self._halved: deque[bool] = deque()  # of batches not collected yet: whether it runs some

    def send(self, programs: Sequence[Program], seconds: float = math.inf) -> None:
        """As of a worker: every other program goes to the second."""
        super().send(programs[::2], seconds)
        self._halved.append(len(programs) > 1)
        if len(programs) > 1:
            self._second.send(programs[1::2], seconds)

    def collect(self) -> list[Result]:
        """As of a worker."""
        results = super().collect()
        if self._halved.popleft():
            for place, result in enumerate(self._second.collect()):
                results.insert(2 * place + 1, result)
        return results

    def forget(self) -> None:
        """As of a worker."""
        super().forget()
        self._second.forget()
        self._halved.clear()

    def close(self) -> None:
        """As of a worker."""
        self._second.close()
        super().close()
