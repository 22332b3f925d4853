"""Whose turn it is: operators, or pieces, in rounds of which each has an order of its own."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
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


@dataclass(slots=True)
class Fruitless:
    """Which turns have given nothing, though all was tried: each waits longer every time.

    After one such turn another is passed over, after the second in a row three, then seven.
    """

    _times: Counter[Hashable] = field(default_factory=Counter)
    _wait: Counter[Hashable] = field(default_factory=Counter)

    def is_due(self, item: Hashable) -> bool:
        """Whether an item has this turn of its own."""
        waits = self._wait[item] > 0
        self._wait[item] -= waits
        return not waits

    def had(self, item: Hashable, anything: bool) -> None:
        """An item has had a turn, and whether that gave anything."""
        self._times[item] = 0 if anything else self._times[item] + 1
        self._wait[item] = 2 ** self._times[item] - 1


@dataclass(slots=True)
class Rarest:
    """Which functions of a target's have had few turns, of those that an operator is written by.

    A kernel that takes four axes of one type, or tells of nothing by default, is handed one call in
    a hundred: one that has had less than half as many as another of its operator is looked for.
    Where none was found the operator's next turns are as any, longer every time.
    """

    _turns: dict[Hashable, Counter[str]] = field(default_factory=dict)
    _sought: Fruitless = field(default_factory=Fruitless)

    def is_due(self, operator: Hashable) -> bool:
        """Whether there is something to be looked for, as another function has had a turn."""
        return bool(self._turns.get(operator)) and self._sought.is_due(operator)

    def is_rare(self, operator: Hashable, function: str) -> bool:
        """Whether a function has had less than half as many turns as another."""
        turns = self._turns.get(operator, Counter())
        return 2 * turns[function] < max(turns.values(), default=1)

    def had(self, operator: Hashable, function: str, looked: bool) -> None:
        """A function has had a turn of an operator; looked: whether a rare one was looked for."""
        if looked:
            self._sought.had(operator, self.is_rare(operator, function))
        self._turns.setdefault(operator, Counter())[function] += 1
