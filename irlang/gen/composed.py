"""Idioms that nobody wrote: a few calls drawn from some operators, wired as expressions are.

What an optimiser folds, moves or factors out is a pattern of two to four calls: of one value that
is read twice, with a number in a place, of the same call in two places. A list of such patterns has
those that somebody thought of; of the operators that a campaign is about there are so few of all
others that a draw meets them.

Takes the patterns of operators; gives steps as `irlang.gen.idiom` has them. Non-goal: calls that
fit; what does not is not added.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from irlang.gen.choice import Chooser
from irlang.gen.idiom import GIVEN, Idiom, Operand, Step
from irlang.gen.pattern import Pattern, Slot

_REALS = frozenset({"f32"})
_CALLS = (2, 2, 3, 3, 4)
_NUMBERS = (0.0, 1.0, -1.0, 2.0, 3.0, 0.5)
# Percent of first operands that are the latest result; of second operands that are a number, a new
# tensor, and else something that is there; and of calls whose two operands are exchanged.
_LATEST, _NUMBER, _NEW, _EXCHANGED = 70, 35, 15, 30
_TRIES = 8  # operators that are tried for a call


@dataclass(frozen=True, slots=True)
class _Term:
    """What a call may read: an earlier step or `GIVEN`, and what types it may have."""

    operand: int
    dtypes: frozenset[str]


def composable(made: Iterable[Pattern]) -> list[Pattern]:
    """The operators that expressions are composed of: of one result, of one or two tensors."""
    return [one for one in made if len(one.op.outputs) == 1 and 0 < len(_required(one)) < 3]


def composed(made: Sequence[Pattern], chooser: Chooser) -> Idiom:
    """A few calls of these operators, of which each reads another, or `x`; not one, where none of
    them takes numbers such as `x`.
    """
    steps: list[Step] = []
    terms = [_Term(GIVEN, _REALS)]
    unread: list[_Term] = []
    for _ in range(chooser.pick(_CALLS)):
        for _ in range(_TRIES):
            one = chooser.pick(made)
            read = _operands(one, terms, unread, chooser)
            if read is not None:
                break
        else:
            break
        steps.append(Step(one.op.name, read, {}))
        unread = [term for term in unread if term.operand not in read]
        terms.append(_Term(len(steps) - 1, _result(one, terms, read)))
        unread.append(terms[-1])
    return tuple(steps)


def _required(made: Pattern) -> list[Slot]:
    """The tensors that a call must be given; none where there may be any number of them."""
    slots = [slot for slot in made.slots if slot.item.default is None]
    return [] if any(slot.item.family for slot in slots) else slots


def _operands(
    made: Pattern, terms: Sequence[_Term], unread: Sequence[_Term], chooser: Chooser
) -> tuple[Operand, ...] | None:
    """What a call reads; None where nothing that is there is of a type that it takes."""
    first, *others = _required(made)
    fit = [term for term in terms if term.dtypes & first.allowed]
    if not fit:
        return None
    latest = fit[-1] is terms[-1] and chooser.chance(_LATEST)
    source = fit[-1] if latest else chooser.pick(fit)
    if not others:
        return (source.operand,)
    second: Operand = None
    if others[0].spreads and chooser.chance(_NUMBER):
        second = chooser.pick(_NUMBERS)
    elif not chooser.chance(_NEW):
        left = [term for term in unread if term is not source]
        fit = [term for term in left or terms if term.dtypes & others[0].allowed]
        second = chooser.pick(fit).operand if fit else None
    read = (source.operand, second)
    return read[::-1] if first.spreads and chooser.chance(_EXCHANGED) else read


def _result(made: Pattern, terms: Sequence[_Term], read: tuple[Operand, ...]) -> frozenset[str]:
    """The types that the result of a call may have: that of what it reads, or one of its own."""
    dtype = made.op.outputs[0].type.dtype
    if dtype == made.slots[0].variable:
        known = {term.operand: term.dtypes for term in terms}
        sources = [known[one] for one in read if type(one) is int]
        return frozenset.intersection(*sources) & made.slots[0].allowed
    return frozenset({dtype}) | next(
        (slot.allowed for slot in made.slots if slot.variable == dtype), frozenset()
    )
