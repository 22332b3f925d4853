"""All steps of a long recurrence at once: what its tensors may be, whichever step it is.

What holds of the first steps, and of a step whenever it holds of those before, holds of all. A few
steps are taken one by one; then ends are guessed that might hold, and proved: because a step from
within leads to within, or because no step rises by more than a number above what it reads. Where no
guess can be proved the ends go to the next of a few numbers (widening). What a step makes of proved
ends is proved too, and often less (narrowing). Cousot and Cousot 1977.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from irlang import equations as eq
from irlang.interp.arithmetic import stored
from irlang.interp.interval import Numbers, hull, join
from irlang.interp.range_eval import Evaluator, Limits
from irlang.interp.regions import Tensor, whole
from irlang.interp.sums import Sums
from irlang.interp.unfolding import own_index

_FIRST = 8  # steps taken one by one
_SHORT = 8_000  # expressions that may be evaluated to take all steps one by one
_WIDENINGS = 12  # rounds of thresholds before an end goes as far as its type
_NARROWINGS = 16
_NEAR, _FAR = (
    (2.0**-10, 0.125),
    (1.0, 7.0, 63.0, 1023.0),
)  # shares of the size that ends are moved by
_PROOFS = 800  # expressions that proofs may evaluate for one of these
_RISES = 3  # guesses of how far steps rise

Hulls = dict[str, Numbers]


@dataclass(frozen=True, slots=True)
class Step:
    """One equation of a recurrence. name: of its tensor. box: all indices. later: without those of
    the steps that are taken one by one. earlier: what it reads of its own tensor at earlier steps,
    element by element. term: what an element is, where that is worth knowing.
    """

    name: str
    equation: eq.Equation
    body: eq.Expr
    box: Limits
    later: Limits
    earlier: tuple[eq.Read, ...]
    term: eq.Expr | None

    def tensor(self, numbers: Numbers) -> Tensor:
        """Its tensor, if all elements are in a set."""
        return whole(self.equation.info, numbers, self.term)


class Steps:
    """A recurrence of so many steps. descending: whether the last index comes first."""

    def __init__(
        self, walk: Evaluator, tensors: dict[str, Tensor], length: int, descending: bool
    ) -> None:
        self.walk = walk
        self.tensors = tensors
        self.length = length
        self.descending = descending
        self.steps: list[Step] = []

    def add(
        self, name: str, equation: eq.Equation, body: eq.Expr, box: Limits, axis: int, term: bool
    ) -> None:
        """One more equation, in their order inside a step, with the axis along which it advances.

        term: whether what an element is computed as is worth knowing.
        """
        low, high = box[own_index(axis)]
        later = (
            (low, max(high - _FIRST, low)) if self.descending else (min(low + _FIRST, high), high)
        )
        self.steps.append(
            Step(
                name, equation, body, box, {**box, own_index(axis): later}, _earlier(body, name),
                body if term and not isinstance(body, eq.Read) else None,
            )
        )  # fmt: skip

    def run(self) -> None:
        """Puts between what all steps lie into the tensors; tells the listener nothing."""
        note, self.walk.note = self.walk.note, None
        try:
            self._settle()
        finally:
            self.walk.note = note

    def _settle(self) -> None:
        size = sum(1 for step in self.steps for _ in eq.walk(step.body))
        if self._rounds(_FIRST):
            return
        first = self.first = self._hulls()
        if self._narrowed(self._proved(first)):
            return
        self._put(first)
        if self._rounds(max(0, min(_SHORT // size, self.length) - _FIRST)):
            return
        self._narrowed(self._widened())

    # ---- rounds

    def _hulls(self) -> Hulls:
        return {step.name: self.tensors[step.name].hull for step in self.steps}

    def _put(self, hulls: Hulls) -> None:
        for step in self.steps:
            self.tensors[step.name] = step.tensor(hulls[step.name])

    def _value(self, step: Step, box: Limits) -> Numbers:
        """What an equation gives in a box, of what the tensors hold."""
        self.walk.forget()
        with self.proofs():
            value = self.walk.value(step.body, box, {})
        return stored(value, step.equation.info.dtype, self.walk.own)

    @contextmanager
    def proofs(self, last: bool = False) -> Iterator[None]:
        """Gives the proofs of an evaluation their part of what those of all may cost.

        last: whether it is the one that tells what goes wrong.
        """
        if last:
            self.left = 4 * _PROOFS * len(self.steps)
        if not isinstance(self.walk, Sums):
            yield
            return
        given = self.walk.left = self.left if last else min(_PROOFS, self.left)
        yield
        self.left -= given - max(self.walk.left, 0)

    def _rounds(self, count: int) -> bool:
        """A step more for every round; whether these were all, or nothing was new."""
        taken = 0
        while taken < count:
            taken += 1
            before = self._second = self._hulls()
            for step in self.steps:
                joined = join(before[step.name], self._value(step, step.box))
                self.tensors[step.name] = step.tensor(joined)
            if self._hulls() == before:
                return True
        self.taken += taken
        return self.taken > self.length

    taken = 0  # steps so far
    left = 6 * _PROOFS
    first: Hulls  # what the first of them give
    _second: Hulls  # what all but the last give

    def _after(self, hulls: Hulls) -> Hulls:
        """What the first steps give, and any later one makes of what those before may be."""
        self._put(hulls)
        return {
            step.name: join(self.first[step.name], self._value(step, step.later))
            for step in self.steps
        }

    # ---- guesses

    def _proved(self, first: Hulls) -> Hulls | None:
        """A guess that holds of all steps, the narrow ones first."""
        self._put(first)
        self._rounds(2)
        second, last = self._second, self._hulls()
        limit = {name: _limit(first[name], second[name], last[name]) for name in first}
        near = [self._moved(first, last, share) for share in _NEAR]
        near.insert(1, {name: self._between(last[name], *limit[name]) for name in limit})
        proved = next((guess for guess in near if self._holds(guess)), None)
        if proved is not None and _extent(proved) <= 1.25 * _extent(first):
            return proved
        risen = self._risen(first, last)
        if proved is not None and risen is not None:
            return min(proved, risen, key=_extent)
        far = (self._moved(first, last, share) for share in _FAR)
        return proved or risen or next((guess for guess in far if self._holds(guess)), None)

    def _holds(self, guess: Hulls) -> bool:
        """Whether a step from within leads to within."""
        return all(_covers(guess[name], numbers) for name, numbers in self._after(guess).items())

    def _moved(self, first: Hulls, last: Hulls, share: float) -> Hulls:
        """The ends that move, by a share of the size further out."""
        return {name: self._wider(first[name], last[name], share) for name in first}

    def _wider(self, first: Numbers, last: Numbers, share: float) -> Numbers:
        if first == last or not (first.pieces and last.pieces):
            return last
        by = share * max(last.magnitude, self.walk.own.row.tiny)
        low, high = last.pieces[0][0], last.pieces[-1][1]
        return self._between(
            last,
            low - by if low < first.pieces[0][0] else low,
            high + by if high > first.pieces[-1][1] else high,
        )

    def _between(self, numbers: Numbers, low: float, high: float) -> Numbers:
        """A set with all numbers of its type between two ends."""
        if numbers.whole:
            low, high = math.floor(low), math.ceil(high)
        largest = self.walk.own.largest
        return replace(hull(numbers), pieces=((max(low, -largest), min(high, largest)),))

    def _risen(self, first: Hulls, last: Hulls) -> Hulls | None:
        """The ends after all steps, none of which rises by more above what it reads.

        last: the ends after two steps more than those of `first`.
        """
        if not isinstance(self.walk, Sums) or not all(n.finite for n in first.values()):
            return None
        guess = {name: self._extended(first[name], last[name]) for name in first}
        for _ in range(_RISES):
            guess = self._completed(guess, last)
            ends = {
                step.name: self._rise(self.walk, step, first, guess)
                if step.earlier
                else guess[step.name]
                for step in self.steps
            }
            if not all(numbers.finite for numbers in ends.values()):
                return None
            made = self._after(guess)
            if all(
                _covers(guess[step.name], (ends if step.earlier else made)[step.name])
                for step in self.steps
            ):
                return ends
            guess = self._moved(first, ends, 0.25)
        return None

    def _completed(self, guess: Hulls, last: Hulls) -> Hulls:
        """The guess, with what follows from it for tensors that do not rise by themselves."""
        self._put({s.name: guess[s.name] if s.earlier else last[s.name] for s in self.steps})
        for _ in range(2):
            for step in self.steps:
                if not step.earlier:
                    made = join(last[step.name], self._value(step, step.later))
                    self.tensors[step.name] = step.tensor(made)
        return self._hulls()

    def _extended(self, first: Numbers, last: Numbers) -> Numbers:
        """Where ends come to that go on as they did in two steps, and beyond."""
        if not (first.pieces and last.pieces):
            return last
        times = 0.625 * self.length
        low, high = last.pieces[0][0], last.pieces[-1][1]
        return self._between(
            last,
            low + times * (low - first.pieces[0][0]) - 2.0**-10 * abs(low),
            high + times * (high - first.pieces[-1][1]) + 2.0**-10 * abs(high),
        )

    def _rise(self, walk: Sums, step: Step, first: Hulls, guess: Hulls) -> Numbers:
        """Ends after all steps, if all lies within a guess before the last of them."""
        numbers = first[step.name]
        if not step.earlier or not numbers.pieces:
            return numbers
        self._put(guess)
        walk.forget()
        if not all(walk.value(read, step.later, {}).finite for read in step.earlier):
            return replace(numbers, above=True, below=True)
        ends = []
        for end, up in ((numbers.low, False), (numbers.high, True)):
            away = 1.0 if up else -1.0
            near = 2.0**-10 * max(abs(end), self.walk.own.row.tiny)  # what is slow to settle
            best = math.inf
            for start in (end, self.walk.own.nearest(end + away * near)):
                walk.left = 8 * _PROOFS
                with_start: list[eq.Expr] = [*step.earlier, eq.Const(start)]
                by = max(walk.rise(step.body, with_start, up, step.later), 0.0)
                best = min(best, away * (start - end) + self.length * by * (1 + 1e-9))
                if best <= near:
                    break
            ends.append(end + away * best)
        if not all(map(math.isfinite, ends)):
            return replace(numbers, above=True, below=True)
        return self._between(numbers, *ends)

    # ---- widening and narrowing

    def _widened(self) -> Hulls | None:
        """Ends that still move go to the next of a few numbers, at last to the largest."""
        own = self.walk.own
        for count in range(_WIDENINGS * len(self.steps) + 2):
            before = self._hulls()
            made = self._after(before)
            if all(_covers(before[name], made[name]) for name in made):
                return before
            self._put(
                {name: _thrown(before[name], made[name], own.largest, count) for name in made}
            )
        return None

    def _narrowed(self, proved: Hulls | None) -> bool:
        """What steps make of proved ends, as long as it is less; whether something was proved."""
        if proved is None:
            return False
        for _ in range(_NARROWINGS):
            made = self._after(proved)
            if not all(_covers(proved[name], made[name]) for name in made):
                break  # proved by how far steps rise: nothing is known of a step alone
            if _extent(made) > _extent(proved) - 2.0**-10 * abs(_extent(proved)):
                break
            proved = made
        self._put(proved)
        return True


def _earlier(body: eq.Expr, name: str) -> tuple[eq.Read, ...]:
    """The elements of a tensor that a body reads, but for those that a reduction goes over."""
    bound = {
        index for part in eq.walk(body) if isinstance(part, eq.Reduce) for index, _ in part.binders
    }
    reads = (part for part in eq.walk(body) if isinstance(part, eq.Read) and part.tensor == name)
    return tuple(dict.fromkeys(read for read in reads if not bound & eq.indices(read)))


def _covers(outer: Numbers, inner: Numbers) -> bool:
    """Whether a set holds all of another."""
    if (inner.nan and not outer.nan) or (inner.below and not outer.below):
        return False
    if (inner.above and not outer.above) or not inner.origins <= outer.origins:
        return False
    return all(any(a <= low and high <= b for a, b in outer.pieces) for low, high in inner.pieces)


def _extent(hulls: Hulls) -> float:
    """How much all sets hold."""
    return sum(min(n.pieces[-1][1] - n.pieces[0][0], 1e300) for n in hulls.values() if n.pieces)


def _limit(one: Numbers, two: Numbers, three: Numbers) -> tuple[float, float]:
    """Where ends come to that move by a constant ratio less in every step, and a little beyond."""
    if not (one.pieces and three.pieces):
        return three.low, three.high
    ends = []
    for sign, at in ((-1, (0, 0)), (1, (-1, 1))):
        a, b, c = (sign * each.pieces[at[0]][at[1]] for each in (one, two, three))
        ratio = (c - b) / (b - a) if b > a else 0.0
        rest = (c - b) * ratio / (1 - ratio) if 0 < ratio < 1 else 0.0
        ends.append(sign * (c + 1.0625 * rest + 2.0**-12 * abs(c) * (c > a)))
    return ends[0], ends[1]


def _thrown(old: Numbers, new: Numbers, largest: float, count: int) -> Numbers:
    """The ends that still move, at the next of a few numbers."""
    made = join(old, new)
    if not made.pieces or not old.pieces:
        return made
    steps: Sequence[float] = (0.0, 1.0, 2.0**10, 2.0**30, largest)
    if count > _WIDENINGS:
        steps = (largest,)
    low, high = made.pieces[0][0], made.pieces[-1][1]
    if low < old.pieces[0][0]:
        low = -next((step for step in steps if -step <= low), largest)
    if high > old.pieces[-1][1]:
        high = next((step for step in steps if step >= high), largest)
    return replace(made, pieces=((low, high),))
