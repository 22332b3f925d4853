"""What an interval alone cannot exclude, looked at piece by piece.

Where an element stands in an expression twice, its interval counts as two that know nothing of one
another: cos(x)^2 + sin(x)^2 may be 0, x * x - x + 1 negative, x * exp(x) as small as x. Where that
would give NaN or infinity, the range of the element is halved until no piece does, or until one is
small that does; of a product until its ends are known well.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product

from irlang import equations as eq
from irlang.interp.assumptions import Facts
from irlang.interp.diagonals import Diagonals
from irlang.interp.interval import Numbers, hull, join, number
from irlang.interp.range_eval import Limits
from irlang.interp.unfolding import small

_WRITTEN = 6  # definitions by which an expression is written out, at most
_ATOMS = 2  # elements whose ranges are halved
_HALVINGS = 20  # of one piece
_PROVED = 4  # halvings, after which proofs are tried again: they take much longer than intervals
_LOOKED_AT = 600  # pieces of one expression
_BOUNDING = 160  # pieces by which the ends of a product are found
_SOON = 12  # and by which there has to be something that its interval did not say
_LITTLE = 15 / 16  # of what that says, the pieces saying no more than that
_WORK = 20000  # expressions that all pieces of a call may evaluate
_WHY = "no piece of the range of {names} gives one"

Piece = tuple[tuple[Numbers, ...], int]  # where the elements lie, and how often that was halved


class Splits(Diagonals):
    """An evaluator that looks at the pieces of a range before it says that something may happen."""

    _spent = 0  # expressions that pieces have evaluated

    def related(
        self, expr: eq.Apply, found: Numbers, args: list[Numbers], box: Limits, facts: Facts
    ) -> Numbers:
        """A result, less what neither relations nor a look at pieces of ranges leave."""
        found = super().related(expr, found, args, box, facts)
        if self._level or self._spent > _WORK:
            return found
        if self.kind(expr) != "real" or not all(arg.finite for arg in args):
            return found
        if found.finite:
            wide = expr.function == "*" and found.magnitude > 1.0 and not self._same(expr, box)
            return self.aside(partial(self._bounded, expr, found, box, facts)) if wide else found
        return self.aside(partial(self._by_pieces, expr, found, box, facts))

    def _by_pieces(self, expr: eq.Apply, found: Numbers, box: Limits, facts: Facts) -> Numbers:
        """The join of what all pieces give, where that is finite; else what was found."""
        body = self.unfolded(expr, box, _WRITTEN)
        atoms = self._atoms(body, box, facts) if small(body) else []
        if not atoms:
            return found
        before, self._work = self._work, 0  # they have an account of their own
        made = self._join_of_pieces(body, atoms, box, facts)
        self._spent += self._work
        self._work = before
        if made is None:
            return found
        names = ", ".join(sorted({_called(atom) for atom, _ in atoms}))
        self.reasons.append(_WHY.format(names=names))
        return replace(made, origins=frozenset())

    def _bounded(self, expr: eq.Apply, found: Numbers, box: Limits, facts: Facts) -> Numbers:
        """A product less what no piece of the range of an element gives that stands in it twice:
        x * exp(x) of negative numbers is small wherever x is.
        """
        for one, other in (expr.args, expr.args[::-1]):
            atom = self.copies(one, box)[-1]
            body = self._made_of(other, atom, box)
            if body is None or not isinstance(atom, eq.Read):
                continue
            before, self._work = self._work, 0  # they have an account of their own
            own = eq.Apply("*", (atom, body))
            numbers = hull(self.value(atom, box, facts))
            ends = self._ends_of_pieces(own, atom, numbers, found, box, facts)
            self._spent += self._work
            self._work = before
            return self.cut(found, *ends, f"no piece of the range of {_called(atom)} gives more")
        return found

    def _made_of(self, expr: eq.Expr, atom: eq.Expr, box: Limits) -> eq.Expr | None:
        """An expression written out as far as an element stands in it; None where it does not."""
        for depth in range(_WRITTEN):
            body = self.unfolded(expr, box, depth)
            if atom in eq.parts(body):
                return body if depth and small(body) else None
        return None

    def _ends_of_pieces(
        self,
        body: eq.Expr,
        atom: eq.Read,
        numbers: Numbers,
        found: Numbers,
        box: Limits,
        facts: Facts,
    ) -> tuple[float, float]:
        """Between which numbers an expression lies, by pieces: the one that reaches furthest is
        halved again and again, as long as that says more than what was found without, and at that
        end alone of which it does.
        """
        pieces: list[tuple[Numbers, Numbers]] = []  # of the element, and what comes of it
        left, both = [numbers], True
        for turn in range(_BOUNDING):
            for part in left:
                value = self._unproved(body, box, {**facts, atom: part})
                if not (value.finite and value.pieces):
                    return -math.inf, math.inf
                pieces.append((part, value))
            reach = min(value.low for _, value in pieces), max(value.high for _, value in pieces)
            if turn == _SOON:
                if reach[1] - reach[0] >= _LITTLE * (found.high - found.low):
                    break
                told = reach[0] > _LITTLE * found.low, reach[1] < _LITTLE * found.high
                both = told[0] == told[1]
            upper = turn % 2 > 0 if both else told[1]
            furthest = max(pieces, key=lambda one: one[1].high if upper else -one[1].low)
            left = [part for (part,) in _halves((furthest[0],))]
            if len(left) < 2 or turn == _BOUNDING - 1:
                break
            pieces.remove(furthest)
        return min(value.low for _, value in pieces), max(value.high for _, value in pieces)

    def _atoms(self, body: eq.Expr, box: Limits, facts: Facts) -> list[tuple[eq.Read, Numbers]]:
        """The elements that stand in an expression more than once, the most frequent first."""
        counts = Counter(part for part in eq.walk(body) if isinstance(part, eq.Read))
        found = []
        for atom, count in counts.most_common():
            if count < 2 or atom.default is not None or not eq.indices(atom) <= box.keys():
                continue
            numbers = self.value(atom, box, facts)
            if self.kind(atom) == "real" and numbers.finite and numbers.low < numbers.high:
                found.append((atom, hull(numbers)))
        return found[:_ATOMS]

    def _join_of_pieces(
        self, body: eq.Expr, atoms: list[tuple[eq.Read, Numbers]], box: Limits, facts: Facts
    ) -> Numbers | None:
        """What all pieces give; None where one of them is not finite when nothing is left to do."""

        def known(piece: Sequence[Numbers]) -> Facts:
            own = zip(atoms, piece, strict=True)
            return {**facts, **{atom: numbers for (atom, _), numbers in own}}

        def is_finite(piece: Sequence[Numbers], proofs: bool = True) -> bool:
            there = known(piece)
            made = self._unproved(body, box, there)
            return made.finite or (proofs and self.value(body, box, there).finite)

        ranges = tuple(numbers for _, numbers in atoms)
        # what an end of a range gives, or 0, every piece gives that has it
        ends = product(*(map(number, {one.low, one.high, *_zero_in(one)}) for one in ranges))
        if not all(is_finite(corner) for corner in ends):
            return None
        made: list[Sequence[Numbers]] = []
        left: list[Piece] = [(ranges, 0)]
        for _ in range(_LOOKED_AT):
            if not left:  # proofs say more of the pieces than that they are finite
                return join(*(self.value(body, box, known(piece)) for piece in made))
            piece, halved = left.pop()
            if is_finite(piece, halved % _PROVED == 0):
                made.append(piece)
                continue
            if halved == _HALVINGS or self._spent + self._work > _WORK:
                return None
            left += [(part, halved + 1) for part in _halves(piece)]
        return None


def _called(atom: eq.Read) -> str:
    """The name of a tensor, without the number of the call that it is inside of."""
    number, _, name = atom.tensor.partition(".")
    return name if number.isdigit() else atom.tensor


def _zero_in(numbers: Numbers) -> tuple[float, ...]:
    return (0.0,) if numbers.low < 0 < numbers.high else ()


def _halves(piece: tuple[Numbers, ...]) -> list[tuple[Numbers, ...]]:
    """Two pieces, the widest range being halved."""
    widest = max(range(len(piece)), key=lambda at: piece[at].high - piece[at].low)
    numbers = piece[widest]
    low, high = numbers.low, numbers.high
    middle = low + 0.5 * (high - low) if math.isfinite(high - low) else 0.5 * low + 0.5 * high
    if numbers.whole:
        ends = (low, float(math.floor(middle))), (float(math.floor(middle)) + 1, high)
    else:
        ends = (low, middle), (middle, high)
    return [
        (*piece[:widest], replace(numbers, pieces=(one,)), *piece[widest + 1 :])
        for one in ends
        if one[0] <= one[1]
    ]
