"""A number that is handed on as a list: of none of it, or of two.

What a framework reads from a tensor, as a diagonal's place or a number of classes, may be a tensor
of another form than it looks for. Rules compute with the number as with any other; where they hand
it on as it is, what is handed on is the list.
"""

from __future__ import annotations

from typing import Any

Number = int | float


class _Listed:
    """What the two kinds have in common; `times`: how long the list is."""

    times: int

    @property
    def numbers(self) -> tuple[Number, ...]:
        """The list, of plain numbers."""
        return (self._plain(),) * self.times

    def _plain(self) -> Number:
        raise NotImplementedError

    def __bool__(self) -> bool:
        return True  # it is said, though it may be 0

    def __repr__(self) -> str:
        return repr(list(self.numbers))

    __str__ = __repr__

    def __format__(self, how: str) -> str:
        return repr(self)


class ListedInt(_Listed, int):
    """A whole number as a list."""

    def _plain(self) -> int:
        return int.__int__(self)


class ListedReal(_Listed, float):
    """A real number as a list."""

    def _plain(self) -> float:
        return float.__float__(self)


def listed(number: Number, times: int) -> ListedInt | ListedReal:
    """A number as a list of so many of it."""
    made = ListedInt(number) if isinstance(number, int) else ListedReal(number)
    made.times = times
    return made


def is_listed(value: Any) -> bool:
    """Whether a value is a number that is handed on as a list."""
    return isinstance(value, _Listed)


def plain(value: Any) -> Any:
    """A value as it is handed on: the list of a number that is handed on as one."""
    return value.numbers if isinstance(value, _Listed) else value


def handed(number: Number) -> tuple[Number, ...]:
    """The numbers that a number is handed on as: itself, or those of its list."""
    return number.numbers if isinstance(number, _Listed) else (number,)
