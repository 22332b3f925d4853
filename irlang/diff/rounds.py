"""Whose turn it is: operators, or pieces, in rounds of which each has an order of its own."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Rounds(Generic[Item]):
    """Operators in turn, or pieces: first those that a target has of its own, then all, again and
    again.

    What has to be composed from its definition says little that those do not which it is composed
    of. Every round has an order of its own.
    """

    names: Sequence[Item]
    native: Sequence[Item]
    seed: int

    def turn(self, position: int) -> tuple[Item, int]:
        """What has its turn, and the number of its round."""
        first, all_ = len(self.native), len(self.names)
        pair, place = divmod(position, first + all_)
        rest, names = (place, self.native) if place < first else (place - first, self.names)
        around = 2 * pair + (place >= first) if first else pair
        shuffled = random.Random(f"apart {self.seed} {around}").sample(names, len(names))
        return shuffled[rest], around

    def of(self, number: int, count: int) -> int:
        """The round of the first of `count` turns that are taken together, as many before it.

        Where as many take more than a round, each time is a round of its own: else some were never
        the first of them, and what belongs to these would never be.
        """
        first, all_ = len(self.native), len(self.names)
        around = (first + all_) / 2 if first else all_
        return number if count > around else self.turn(number * count)[1]
