"""Proofs: what is evaluated aside, to bound a value that is being evaluated.

A proof says nothing to the listener, remembers what it has evaluated, and shares an amount of work
with all others of the same call, so that no call takes long however much there is to be tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from irlang import equations as eq
from irlang.interp.assumptions import Facts
from irlang.interp.interval import Numbers, meet
from irlang.interp.range_eval import Evaluator, Limits, shadows

_LOOKED_AT = 32  # sums in the course of one proof
_LEVELS = 1  # proofs inside one another
_WORK = 8000  # expressions that the proofs of one call may evaluate

Known = Sequence[tuple[eq.Expr, Numbers]]
# a value, how many expressions were evaluated for it, and what it hangs on, kept for the ids
Evaluated = tuple[Numbers, int, Limits, Facts]
_T = TypeVar("_T")
_TOP = float.fromhex("0x1.fffffffffffffp+1023")


class Proofs(Evaluator):
    """An evaluator that can evaluate aside."""

    _equal: tuple[eq.Expr, eq.Expr] | None = None  # elements that are one number, in a proof
    _left = 0  # sums that the proof under way may still look at
    _work = 0  # expressions that were evaluated for proofs
    _anew = False
    _memory: dict[Any, tuple[Numbers, Limits, Facts]]
    _proved: dict[Any, Any]  # in the course of a proof: values by proofs inside it, and more
    _plain: dict[Any, Evaluated]  # by intervals alone
    _values: dict[Any, tuple[Numbers, Limits, Facts]]  # of `anew`, with what it hangs on

    def value(self, expr: eq.Expr, box: Limits, facts: Facts) -> Numbers:
        """What an expression may be at the indices of a box, where the facts hold."""
        if not self._level:
            return super().value(expr, box, facts)
        self._work += 1
        if self.note is not None or isinstance(expr, (eq.Const, eq.Size, eq.Index)):
            return super().value(expr, box, facts)
        known = self._plain if self._level > _LEVELS else self._proved
        key = self.here(expr, box, facts)
        found = known.get(key)
        if found is not None:
            self._work += found[1]
            return found[0]
        before = self._work
        made = super().value(expr, box, facts)
        if not made.news:  # the places of operations are those of this expression, not of its like
            # proofs inside are remembered in any case; without, it costs what it is made of
            cost = self._work - before if self._level > _LEVELS else 0
            known[key] = made, cost, box, facts
        return made

    def forget(self) -> None:
        """Tensors have become others: expressions are evaluated anew."""
        super().forget()
        self._plain = {}

    def done(self) -> bool:
        """Whether nothing more is to be proved."""
        return self._level > _LEVELS or self._work > _WORK

    @property
    def left(self) -> int:
        """How many expressions more proofs may evaluate."""
        return _WORK - self._work

    @left.setter
    def left(self, work: int) -> None:
        self._work = _WORK - work

    def _reduce(self, expr: eq.Reduce, box: Limits, facts: Facts) -> Numbers:
        """A reduction; where its indices have the names of others around, nothing is taken for
        another element inside, as which that is hangs on these.
        """
        before = self._equal
        if before is not None and shadows(expr, box):
            self._equal = None
        try:
            return super()._reduce(expr, box, facts)
        finally:
            self._equal = before

    def aside(
        self,
        proof: Callable[[], _T],
        known: Known = (),
        box: Limits | None = None,
        facts: Facts | None = None,
    ) -> _T:
        """Evaluates without a word to the listener. known: values of expressions, in a box."""
        if not self._level:
            self._memory, self._proved = {}, {}
        if box is not None and facts is not None:
            for expr, numbers in known:
                self._memory.setdefault(self.here(expr, box, facts), (numbers, box, facts))
        note, self.note = self.note, None
        left, self._left = self._left, _LOOKED_AT >> (2 * self._level)
        self._level += 1
        try:
            return proof()
        finally:
            self.note, self._left = note, left
            self._level -= 1

    def here(self, expr: Any, box: Limits, facts: Facts) -> Any:
        """What a value is remembered by, in the case under way; the box and the facts have to be
        kept with it, so that their ids stay their own.
        """
        return expr, id(box), id(facts) if facts else 0, self._equal

    def anew(self, expr: eq.Expr, box: Limits, facts: Facts | None = None) -> Numbers:
        """A value inside a proof, by proofs of its own: not inside one that is evaluated so."""
        facts = facts or {}
        key = expr, id(box), id(facts) if facts else 0
        found = self._values.get(key)
        if found is not None:
            return found[0]
        if self._anew:
            return self.value(expr, box, facts)
        kept = self._level, self._left, self._memory, self._proved, self._equal, self.note
        reasons = list(self.reasons)
        self._level, self._equal, self.note, self._anew = 0, None, None, True
        try:
            made = self.value(expr, box, facts)
        finally:
            self._level, self._left, self._memory, self._proved, self._equal, self.note = kept
            self.reasons[:] = reasons
            self._anew = False
        self._values[key] = made, box, facts
        return made

    @contextmanager
    def taken_as(self, one: eq.Expr, other: eq.Expr) -> Iterator[None]:
        """Two elements are one number, in a case of a proof; what held outside it holds after it.

        What is remembered inside is remembered for this case only.
        """
        before, self._equal = self._equal, (one, other)
        try:
            yield
        finally:
            self._equal = before

    def because(self, why: str) -> None:
        """Keeps a reason, but for those inside a proof."""
        if not self._level:
            self.reasons.append(why)

    def cut(self, found: Numbers, low: float, high: float, why: str) -> Numbers:
        """A set less what lies outside two proved ends, and why."""
        allowed = Numbers(((max(low, -_TOP), min(high, _TOP)),))
        if low > high:
            return found
        cut = meet(found, allowed)
        if cut.pieces != found.pieces:
            self.because(why)
        above = cut.above and high > self.own.largest
        below = cut.below and low < -self.own.largest
        cut = replace(cut, above=above, below=below)
        return cut if not cut.finite else replace(cut, origins=frozenset())

    def interval(self, expr: eq.Expr, box: Limits, facts: Facts) -> Numbers:
        """A value by intervals alone, if nothing better is there."""
        found = self._memory.get(self.here(expr, box, facts))
        if found is not None:
            return found[0]
        return self._unproved(expr, box, facts)

    def plainly(self, expr: eq.Expr, box: Limits) -> Numbers:
        """What an expression may be by the values of elements alone."""
        return self._unproved(expr, box, {})

    def _unproved(self, expr: eq.Expr, box: Limits, facts: Facts) -> Numbers:
        level, self._level = self._level, _LEVELS + 1
        try:
            return self.value(expr, box, facts)
        finally:
            self._level = level

    def remembered(self, atom: eq.Expr, box: Limits, facts: Facts) -> Numbers:
        """The value of an element, computed once in a proof."""
        key = self.here(atom, box, facts)
        found = self._memory.get(key)
        if found is None:  # what the ids are of is kept too, so that they stay its own
            found = self._memory[key] = (self.value(atom, box, facts), box, facts)
        return found[0]
