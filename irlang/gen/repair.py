"""A call that does not fit, mended move by move; badness falls with every move that is kept.

Takes a draft and how it was judged; gives a draft that fits, or None. An input that is computed
keeps its value: an adapter is put before it (`irlang.gen.adapt`), or, where there is none, a new
tensor takes its place. Non-goal: replacing the operator, which the caller does by drawing again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from irlang.gen.adapt import Adapters
from irlang.gen.draft import Draft, Source, Value
from irlang.gen.draw import Limits
from irlang.gen.judge import judge, score, types
from irlang.gen.moves import Move, Retype, SetAttr, change, moved, moves
from irlang.instance import Instance
from irlang.signature import Given

_ROUNDS = 4
_TRIALS = 12  # moves that are judged in a round


@dataclass(slots=True)
class Course:
    """A repair: the moves that were kept, the badness before each and at the end, and the call."""

    given: dict[str, Given]
    attrs: dict[str, Any]
    instance: Instance | None
    kept: list[Move] = field(default_factory=list)
    badness: list[float] = field(default_factory=list)

    @property
    def fits(self) -> bool:
        """Whether the call is valid now."""
        return self.instance is not None and score(self.instance) == 0


def mend(
    op_instance: Instance,
    values: dict[str, Any],
    allowed: Callable[[Move], bool],
    rounds: int = _ROUNDS,
    trials: int = _TRIALS,
    price: Callable[[Move], float] | None = None,
) -> Course:
    """In every round a move that lowers badness is kept; none is ever taken back.

    allowed: which moves may be made at all. trials: how many are judged in a round. price: what
    a move costs; with it, the best of a round is kept (the cheapest among equals), not the first
    that helps.
    """
    op = op_instance.binding.op
    course = Course(dict(op_instance.binding.inputs), dict(values), op_instance)
    course.badness.append(score(op_instance))
    for _ in range(rounds):
        if course.instance is None or course.fits:
            break
        found = (
            move
            for fault in course.instance.faults
            for move in moves(course.instance, course.attrs, fault)
            if allowed(move)
        )
        best: tuple[float, float, Move, Instance | None] | None = None
        for move in islice(found, trials):
            given, attrs = moved(course.given, course.attrs, move)
            instance = judge(op, given, attrs)
            badness = score(instance)
            if badness >= course.badness[-1]:
                continue
            cost = change(course.given, course.attrs, move) + price(move) if price else 0.0
            if best is None or (badness, cost) < best[:2]:
                best = (badness, cost, move, instance)
            if price is None:
                break
        if best is None:
            break
        badness, _, move, course.instance = best
        course.given, course.attrs = moved(course.given, course.attrs, move)
        course.kept.append(move)
        course.badness.append(badness)
    return course


def repair(
    draft: Draft,
    instance: Instance | None,
    live: Mapping[str, Value],
    limits: Limits,
    adapters: Adapters | None,
) -> tuple[Draft, Instance] | None:
    """The draft after a repair that succeeds."""
    if instance is None:
        return None

    def allowed(move: Move) -> bool:
        return isinstance(move, SetAttr) or math.prod(move.info.shape) <= limits.elements

    course = mend(instance, draft.attrs, allowed)
    if not course.fits or course.instance is None:
        return None
    inputs = dict(draft.inputs)
    for move in course.kept:
        if isinstance(move, Retype):
            inputs[move.name] = _replaced(inputs[move.name], move, live, adapters)
    mended = Draft(draft.op, inputs, course.attrs, draft.recipes)
    final = judge(draft.op, types(mended, live), course.attrs)
    return (mended, final) if final is not None and score(final) == 0 else None


def _replaced(
    source: Source | tuple[Source, ...],
    move: Retype,
    live: Mapping[str, Value],
    adapters: Adapters | None,
) -> Source | tuple[Source, ...]:
    """An input of the type that a move wants."""
    if isinstance(source, tuple):
        member = move.member or 0
        return (*source[:member], _one(source[member], move, live, adapters), *source[member + 1 :])
    return _one(source, move, live, adapters)


def _one(
    source: Source, move: Retype, live: Mapping[str, Value], adapters: Adapters | None
) -> Source:
    if isinstance(source, str) and adapters is not None:
        nested = adapters.adapt(source, live[source].info, move.info)
        if nested is not None:
            return nested
    return move.info
