"""Sums that a recurrence makes step by step: what bounds them in any order of their terms.

Step by step each partial sum is rounded once, and one order has other partial sums than another.
So the elements of such a tensor remember of how many terms they are, and how large these are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from irlang import equations as eq

_KEPT = frozenset({"+", "-", "neg", "real", "select"})  # what makes sums of sums


@dataclass(frozen=True, slots=True)
class Running:
    """For every element: how many finite terms, the sum of their magnitudes, the sum of all radii,
    and how many terms are none that all orders add up exactly (`ball.coarse`) while small.

    Arrays that broadcast to one shape.
    """

    count: Any
    total: Any
    slack: Any
    rough: Any

    def plus(self, other: Running) -> Running:
        """The terms of both."""
        return self.beside(other, lambda a, b: a + b)

    def changed(self, change: Callable[[Any], Any]) -> Running:
        """The same with its arrays rearranged."""
        return Running(*map(change, _parts(self)))

    def beside(self, other: Running, change: Callable[[Any, Any], Any]) -> Running:
        """What a change makes of the arrays of two."""
        return Running(*(change(a, b) for a, b in _pairs(self, other)))

    def assign(self, where: tuple[Any, ...], value: Running) -> None:
        """Fills a part of the arrays."""
        for own, new in _pairs(self, value):
            own[where] = new

    def radius(self, value: Any, growth: Callable[[Any], Any], reach: float, lost: float) -> Any:
        """What no order of the terms is farther off than, and what no partial sum exceeds.

        No partial sum is larger than all terms above zero together, or all below; of one with an
        infinity in it, those of the others are meant. growth: as
        `ball.gamma` of a number of roundings; reach: as of `ball.coarse`; lost: what an addition
        loses of a number below the normal ones.
        """
        exact = (self.rough == 0) & (self.total < reach)
        most = (self.total + np.fmin(np.abs(value), self.total) + self.slack) / 2
        added = np.maximum(self.count - 1, 0)
        rounded = growth(added) * most + added * np.minimum(lost, self.total)
        rounded = np.where(exact, 0.0, rounded)
        return self.slack + rounded, most + rounded


def chosen(condition: Any, doubtful: Any, yes: Running, no: Running, apart: Any) -> Running:
    """That of one of two numbers; where that is in doubt, of either, and as far off as both."""
    either = [np.maximum(a, b) for a, b in _pairs(yes, no)]
    certain = [np.where(condition, a, b) for a, b in _pairs(yes, no)]
    found = Running(*(np.where(doubtful, a, b) for a, b in zip(either, certain, strict=True)))
    return replace(found, slack=np.where(doubtful, found.slack + apart, found.slack))


def _parts(terms: Running) -> tuple[Any, ...]:
    return terms.count, terms.total, terms.slack, terms.rough


def _pairs(a: Running, b: Running) -> list[tuple[Any, Any]]:
    return list(zip(_parts(a), _parts(b), strict=True))


def accumulates(equations: Iterable[eq.Equation]) -> bool:
    """Whether a recurrence makes numbers of which some are its own with a term."""
    return any(added for _, reached in _sums(equations) for _, added in reached)


def goes_on(equations: Iterable[eq.Equation]) -> bool:
    """Whether some of these numbers are earlier ones of the same with a term: sums that are as long
    as the recurrence. What a step adds to a sum of products of its own is none.
    """
    sums = {target: set(reached) for target, reached in _sums(equations)}
    return any(
        added and target in _closure(member, sums)
        for target, reached in sums.items()
        for member, added in reached
    )


def _sums(
    equations: Iterable[eq.Equation],
) -> Iterator[tuple[str, Iterator[tuple[str, bool]]]]:
    """The tensors of a group: which of them a number of each may be, and whether with a term."""
    group = tuple(equations)
    members = frozenset(equation.target for equation in group)
    for equation in group:
        if equation.info.kind == "real":
            yield equation.target, _reached(equation.body, members, added=False)


def _closure(member: str, sums: Mapping[str, set[tuple[str, bool]]]) -> set[str]:
    """A tensor, and all that its numbers may be, with or without terms."""
    found, open_ = {member}, [member]
    while open_:
        more = {name for name, _ in sums.get(open_.pop(), ())} - found
        found |= more
        open_ += more
    return found


def _reached(expr: eq.Expr, members: frozenset[str], *, added: bool) -> Iterator[tuple[str, bool]]:
    if isinstance(expr, eq.Read):
        if expr.default is not None:
            yield from _reached(expr.default, members, added=added)
        if expr.tensor in members:
            yield expr.tensor, added
    elif isinstance(expr, eq.Apply) and expr.function in _KEPT:
        added = added or expr.function in ("+", "-")
        for arg in expr.args[1:] if expr.function == "select" else expr.args:
            yield from _reached(arg, members, added=added)
