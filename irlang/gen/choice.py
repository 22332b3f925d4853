"""The choices that make a program, drawn from a seed, recorded, and played again.

Every draw is one whole number below a bound. The recorded sequence is the program: it can be
replayed, cut and changed, whatever weights were in force when it was drawn.
"""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate
from typing import TypeVar

Item = TypeVar("Item")


class Chooser:
    """Draws; `trace` holds every number drawn so far.

    replay: numbers to give out before new ones are drawn; one that is too large for its place is
    taken modulo the bound, so that any sequence is a program.
    """

    __slots__ = ("_random", "_replay", "trace")

    def __init__(self, seed: int | str, replay: Sequence[int] = ()) -> None:
        self._random = random.Random(seed).random
        self._replay = tuple(replay)
        self.trace: list[int] = []

    def below(self, bound: int) -> int:
        """A number in [0, bound)."""
        position = len(self.trace)
        if position < len(self._replay):
            drawn = self._replay[position] % bound
        else:
            drawn = int(self._random() * bound)
        self.trace.append(drawn)
        return drawn

    def between(self, low: int, high: int) -> int:
        """A number in [low, high]; `low` where that is empty."""
        return low + self.below(high - low + 1) if high > low else low

    def pick(self, items: Sequence[Item]) -> Item:
        """One of `items`, which are not none."""
        return items[self.below(len(items))] if len(items) > 1 else items[0]

    def chance(self, percent: int) -> bool:
        """True in `percent` of 100 draws."""
        return self.below(100) < percent

    def weighted(self, weights: Sequence[float]) -> int:
        """A position, with a probability proportional to its weight; the position is recorded."""
        position = len(self.trace)
        if position < len(self._replay):
            return self.below(len(weights))
        sums = list(accumulate(weights))
        target = self._random() * sums[-1]
        drawn = min(bisect(sums, target), len(sums) - 1)
        self.trace.append(drawn)
        return drawn

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """All of `items` in some order."""
        rest = list(items)
        return [rest.pop(self.below(len(rest))) for _ in range(len(rest))]
