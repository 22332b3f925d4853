"""What relations between elements say of a result: sums of elements in which some cancel, and
reductions that bound what they reduce.

From a few general facts follows what one knows of networks: a maximum is no less than any of its
elements and equals one, so that x - max(x) is 0 at most and the sum of exp(x - max(x)) is 1 at
least; a sum of terms that are not negative is no less than any of them, in every order of
summation, so that e / sum(e) is 1 at most; (c + o) - (c - o) is 2 o but for rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import TypeVar

from irlang import equations as eq
from irlang.interp.assumptions import Facts, assume
from irlang.interp.interval import Numbers, join, meet
from irlang.interp.range_eval import Evaluator, Limits
from irlang.interp.unfolding import (
    inner_box,
    instance,
    match,
    settled,
    small,
    source,
    within,
)

_DEPTH = 6  # definitions that are looked into, one behind another
_ATOMS = 8  # elements of a sum
_UNFOLDED = 4  # definitions that a term of a reduction is written out by, at most
_REPLACED = 3  # elements replaced by what bounds them
_LOOKED_AT = 48  # sums in the course of one proof
_LEVELS = 1  # proofs inside one another
_WORK = 8000  # expressions that the proofs of one call may evaluate
_NO_LESS = "the divisor is no less than the dividend"
_T = TypeVar("_T")
_TOP = float.fromhex("0x1.fffffffffffffp+1023")


@dataclass(frozen=True, slots=True)
class Sum:
    """`constant + sum of factor * element`, but for an error of rounding."""

    factors: Mapping[eq.Expr, float]
    constant: float = 0.0
    error: float = 0.0

    def plus(self, other: Sum, times: float = 1.0) -> Sum:
        """`self + times * other`."""
        merged = dict(self.factors)
        for atom, factor in other.factors.items():
            merged[atom] = merged.get(atom, 0.0) + times * factor
        constant = self.constant + times * other.constant
        error = self.error + abs(times) * other.error
        if constant not in (self.constant, times * other.constant) or abs(times) != 1:
            error += _SLACK * abs(constant)
        return Sum({a: f for a, f in merged.items() if f}, constant, error)


_SLACK = 2.0**-50  # of the arithmetic of coefficients, in double precision


class Relations(Evaluator):
    """An evaluator that uses relations between elements, as far as regions have terms."""

    _equal: tuple[eq.Expr, eq.Expr] | None = None  # elements that are one number, in a proof
    _level = 0
    _left = 0  # sums that the proof under way may still look at
    _work = 0  # expressions that were evaluated for proofs

    def value(self, expr: eq.Expr, box: Limits, facts: Facts) -> Numbers:
        """What an expression may be at the indices of a box, where the facts hold."""
        self._work += self._level > 0
        return super().value(expr, box, facts)

    def _done(self) -> bool:
        """Whether nothing more is to be proved."""
        return self._level > _LEVELS or self._work > _WORK

    # ---- what improves on the interval of a function

    def related(self, expr: eq.Apply, found: Numbers, box: Limits, facts: Facts) -> Numbers:
        """A sum or a quotient, less what relations between its operands exclude."""
        if self._done() or self.kind(expr) != "real":
            return found
        if expr.function in ("+", "-"):
            ends = self._aside(lambda: self._sum_ends(expr, box, facts))
            return found if ends is None else self._cut(found, *ends, "elements cancel in a sum")
        if expr.function == "*" and found.low < 0 and self._same(expr, box):
            args = [self.value(expr.args[0], box, facts)]
            self._because("a number times itself is not negative")
            return meet(found, self.own.apply("sq", args, "real")[0])
        if expr.function == "/":
            return self._aside(lambda: self._quotient(expr, found, box, facts))
        return found

    def _same(self, expr: eq.Apply, box: Limits) -> bool:
        """Whether both arguments are one number."""
        one, other = (self._copies(arg, box) for arg in expr.args)
        return any(look in other for look in one)

    def known(self, expr: eq.Expr, found: Numbers, box: Limits, facts: Facts) -> Numbers:
        """A value, less what the facts exclude for it or for what it is a copy of."""
        found = super().known(expr, found, box, facts)
        if isinstance(expr, eq.Read) and expr.default is None:
            read = source(expr, box, self.tensors)[0]
            if read in facts:
                found = meet(found, facts[read])
        return found

    def summed(self, expr: eq.Reduce, found: Numbers, box: Limits, facts: Facts) -> Numbers:
        """A maximum, or a sum of terms of one sign, is no less than a term that is met."""
        if self._done() or expr.kind not in ("sum", "max") or expr.where is not None:
            return found
        if self.kind(expr) != "real" or expr.body is None or found.low >= 1.0:
            return found
        if expr.kind == "sum" and (not found.pieces or found.pieces[0][0] < 0):
            return found
        least = self._aside(lambda: self._attained(expr, box, facts))
        if least is None:
            return found
        why = f"a term, that at the maximum, is {least:.6g} at least"
        return self._cut(found, least, math.inf, why)

    def _aside(self, proof: Callable[[], _T]) -> _T:
        """Evaluates without a word to the listener."""
        note, self.note = self.note, None
        left, self._left = self._left, _LOOKED_AT >> (2 * self._level)
        self._level += 1
        try:
            return proof()
        finally:
            self.note, self._left = note, left
            self._level -= 1

    def _because(self, why: str) -> None:
        if not self._level:
            self.reasons.append(why)

    def _cut(self, found: Numbers, low: float, high: float, why: str) -> Numbers:
        """A set less what lies outside two proved ends, and why."""
        allowed = Numbers(((max(low, -_TOP), min(high, _TOP)),))
        if low > high:
            return found
        cut = meet(found, allowed)
        if cut.pieces != found.pieces:
            self._because(why)
        above = cut.above and high > self.own.largest
        below = cut.below and low < -self.own.largest
        cut = replace(cut, above=above, below=below)
        return cut if not cut.finite else replace(cut, origins=frozenset())

    # ---- sums of elements

    def sum_of(self, expr: eq.Expr, box: Limits, facts: Facts, depth: int = _DEPTH) -> Sum:
        """An expression as a sum of elements; of one, itself, where it is nothing better."""
        if self._equal is not None and expr == self._equal[0]:
            return Sum({self._equal[1]: 1.0})
        if isinstance(expr, (eq.Const, eq.Size)):
            return Sum({}, self.own.nearest(float(expr.value)))
        if isinstance(expr, eq.Read) and expr.default is None:
            return self._element(expr, box, facts, depth)
        if isinstance(expr, eq.Apply):
            made = self._combined(expr, box, facts, depth)
            if made is not None and len(made.factors) <= _ATOMS:
                return made
        return Sum({expr: 1.0})

    def _element(self, expr: eq.Read, box: Limits, facts: Facts, depth: int) -> Sum:
        read, region = source(expr, box, self.tensors)
        if self._equal is not None and read == self._equal[0]:
            return Sum({self._equal[1]: 1.0})
        if region is None:
            return Sum({read: 1.0})
        only = region.numbers.only
        if only is not None:
            return Sum({}, float(only))
        term = region.term
        if depth and isinstance(term, eq.Apply) and self._as_here(read.tensor):
            made = self._combined(instance(term, read), box, facts, depth - 1)
            # a reduction inside is known by its bounds only: the element as a whole is better
            if made is not None and len(made.factors) <= _ATOMS and all(map(_plain, made.factors)):
                return made
        return Sum({read: 1.0})

    def _as_here(self, tensor: str) -> bool:
        """Whether a tensor was computed in the type of this call."""
        return self.infos[tensor].dtype in (self.own.row.name, "bool")

    def _combined(self, expr: eq.Expr, box: Limits, facts: Facts, depth: int) -> Sum | None:
        """Sums, differences and multiples; None of anything else."""
        if not isinstance(expr, eq.Apply) or self.kind(expr) != "real":
            return None
        function = expr.function
        if function in ("neg", "real", "about"):
            return Sum({}).plus(
                self.sum_of(expr.args[0], box, facts, depth), -1.0 if function == "neg" else 1.0
            )
        if function not in ("+", "-", "*", "/"):
            return None
        left, right = expr.args
        if function in ("+", "-"):
            made = self.sum_of(left, box, facts, depth).plus(
                self.sum_of(right, box, facts, depth), 1.0 if function == "+" else -1.0
            )
        else:
            one, other = self.sum_of(left, box, facts, depth), self.sum_of(right, box, facts, depth)
            if function == "*" and other.factors:
                one, other = other, one
            if other.factors or other.error or not other.constant:
                return None
            times = other.constant if function == "*" else 1 / other.constant
            made = Sum({}).plus(one, times)
        size = self._interval(expr, box, facts)
        if not size.finite:
            return None
        unit = self.own.row.unit * size.magnitude + self.own.least
        return replace(made, error=made.error + unit)

    def _interval(self, expr: eq.Expr, box: Limits, facts: Facts) -> Numbers:
        """A value by intervals alone."""
        level, self._level = self._level, _LEVELS + 1
        try:
            return self.value(expr, box, facts)
        finally:
            self._level = level

    def _sum_ends(self, expr: eq.Apply, box: Limits, facts: Facts) -> tuple[float, float] | None:
        """Between which numbers a sum lies by what cancels in it; None where nothing does."""
        # as it stands: the difference of two elements is rounded once, so it is on the side of 0
        # where the exact one is
        one, other = (self._whole(arg, box) for arg in expr.args)
        made = one.plus(other, 1.0 if expr.function == "+" else -1.0)
        low = -self.upper(Sum({}).plus(made, -1.0), box, facts)
        high = self.upper(made, box, facts)
        low, high = self.own.outward(low, high, 0.5)
        # with the definitions of its elements, the rounding of all steps added up
        made_ = self._combined(expr, box, facts, _DEPTH)
        if made_ is not None and len(made_.factors) <= _ATOMS:
            low = max(low, -self.upper(Sum({}).plus(made_, -1.0), box, facts) - made_.error)
            high = min(high, self.upper(made_, box, facts) + made_.error)
        return low, high

    def upper(self, made: Sum, box: Limits, facts: Facts, left: int = _REPLACED) -> float:
        """No value of a sum is above this, rounding errors aside."""
        ends = [made.constant]
        for atom, factor in made.factors.items():
            numbers = self.value(atom, box, facts)
            end = numbers.high if factor > 0 else numbers.low
            if numbers.empty or not math.isfinite(end):
                ends = [math.inf]
                break
            product = factor * end
            ends.append(product if abs(factor) == 1 else math.nextafter(product, math.inf))
        best = _total(ends)
        self._left -= 1
        if not left or self._left < 0 or self._work > _WORK or not made.factors:
            return best
        for atom, factor in made.factors.items():
            rest = Sum({a: f for a, f in made.factors.items() if a != atom}, made.constant)
            for bound in self._bounds(atom, factor < 0, rest, box, facts):
                replaced = rest.plus(bound, factor)
                if len(replaced.factors) <= len(made.factors):
                    error = abs(factor) * bound.error
                    best = min(best, self.upper(replaced, box, facts, left - 1) + error)
        return best

    # ---- what bounds an element

    def meaning(self, atom: eq.Expr, box: Limits) -> eq.Expr:
        """What an element is computed as; itself where that is not known."""
        if isinstance(atom, eq.Read) and atom.default is None:
            read, region = source(atom, box, self.tensors)
            term = self.tensors[read.tensor].body if region is None else region.term
            if term is not None and self._as_here(read.tensor):
                return instance(term, read)
            return read
        return atom

    def _bounds(
        self, atom: eq.Expr, below: bool, rest: Sum, box: Limits, facts: Facts
    ) -> Iterator[Sum]:
        """Sums that are no larger (`below`), or no less, than an element."""
        term = self.meaning(atom, box)
        if isinstance(term, eq.Apply):
            yield from self._bounds_of_apply(term, below, box, facts)
        elif isinstance(term, eq.Reduce):
            yield from self._bounds_of_reduction(term, below, rest, box)

    def _bounds_of_apply(
        self, term: eq.Apply, below: bool, box: Limits, facts: Facts
    ) -> Iterator[Sum]:
        if term.function == ("max" if below else "min"):
            for arg in term.args:
                yield self._whole(arg, box)
        elif term.function == "abs" and below:
            inner = self._whole(term.args[0], box)
            yield inner
            yield Sum({}).plus(inner, -1.0)
        elif term.function == "+":  # rounding is monotone: adding what is not negative lowers none
            for one, other in (term.args, term.args[::-1]):
                added = self.value(other, box, {})
                if added.finite and (added.low >= 0 if below else added.high <= 0):
                    yield self._whole(one, box)
        elif term.function == "select":
            ends = [self.sum_of(arg, box, facts) for arg in term.args[1:]]
            for least, most in (ends, ends[::-1]):
                gap = least.plus(most, -1.0) if below else most.plus(least, -1.0)
                if self.upper(gap, box, facts, 0) + gap.error <= 0:
                    yield least

    def _bounds_of_reduction(
        self, term: eq.Reduce, below: bool, rest: Sum, box: Limits
    ) -> Iterator[Sum]:
        """Terms of a maximum, or of a sum where none is negative, that are elements of `rest`."""
        inner = inner_box(term, box)
        if inner is None or term.where is not None or term.body is None:
            return
        if term.kind == "sum":
            if not below or self.value(term.body, inner, {}).low < 0:
                return
        elif term.kind != ("max" if below else "min"):
            return
        free = {name: inner[name] for name, _ in term.binders}
        patterns = self._looks(term.body, inner)
        first: dict[str, eq.Expr] = {name: eq.Const(0) for name in free}
        yield self._whole(settled(eq.substitute(term.body, first)), box)
        for other in rest.factors:
            for pattern, target in product(patterns, self._looks(other, box)):
                found: dict[str, eq.Expr] = {}
                if match(pattern, target, free, found) and within(found, free, box):
                    yield Sum({other: 1.0})

    def _looks(self, expr: eq.Expr, box: Limits) -> list[eq.Expr]:
        """An element, what it is a copy of, and what that is computed as."""
        found = [*self._copies(expr, box), self.meaning(expr, box)]
        return [one for at, one in enumerate(found) if one not in found[:at]]

    def _copies(self, expr: eq.Expr, box: Limits) -> tuple[eq.Expr, ...]:
        """An element, and what it is a copy of."""
        if isinstance(expr, eq.Read) and expr.default is None:
            return expr, source(expr, box, self.tensors)[0]
        return (expr,)

    # ---- quotients and reductions

    def _quotient(self, expr: eq.Apply, found: Numbers, box: Limits, facts: Facts) -> Numbers:
        """A quotient by what is no less than the dividend is 1 at most."""
        top, bottom = (self._whole(arg, box) for arg in expr.args)
        divisor = self.value(expr.args[1], box, facts)
        chosen = self.meaning(expr.args[1], box)
        if isinstance(chosen, eq.Apply) and chosen.function == "select" and not found.finite:
            found = self._by_case(expr.args[0], chosen, found, box, facts)
        if not found.finite and self._same(expr, box):
            found = self._cut(found, 1.0, 1.0, "a number is divided by itself")
        if divisor.low <= 0:
            return found
        high = low = math.inf
        if self.upper(top.plus(bottom, -1.0), box, facts) <= 0:
            high = 1.0
        dividend = self.value(expr.args[0], box, facts)
        if dividend.low >= 0:
            low = 0.0
        elif high == 1.0:
            mirrored = Sum({}).plus(top, -1.0).plus(bottom, -1.0)
            low = 1.0 if self.upper(mirrored, box, facts) <= 0 else math.inf
        return found if high > 1.0 else self._cut(found, -low, high, _NO_LESS)

    def _by_case(
        self, top: eq.Expr, chosen: eq.Apply, found: Numbers, box: Limits, facts: Facts
    ) -> Numbers:
        """A quotient by one of two divisors: each with what its condition says of the dividend."""
        arms = []
        for which, arm in ((True, chosen.args[1]), (False, chosen.args[2])):
            known = assume(self, chosen.args[0], which, box, facts)
            if known is not None:
                arms.append(self.value(eq.Apply("/", (top, arm)), box, known))
        made = join(*arms)
        return made if made.finite else found

    def _whole(self, expr: eq.Expr, box: Limits) -> Sum:
        """An expression as one element, with no rounding."""
        if isinstance(expr, (eq.Const, eq.Size)):
            return Sum({}, self.own.nearest(float(expr.value)))
        if self._equal is not None and self._equal[0] in self._copies(expr, box):
            return Sum({self._equal[1]: 1.0})
        return Sum({expr: 1.0})

    def _attained(self, expr: eq.Reduce, box: Limits, facts: Facts) -> float | None:
        """A number that some term of a reduction reaches: that at the index of a maximum."""
        inner = inner_box(expr, box)
        if inner is None or expr.body is None:
            return None
        names = [name for name, _ in expr.binders]
        found = [
            self._reached(self.unfolded(expr.body, inner, depth), inner, names, facts)
            for depth in range(_UNFOLDED)
        ]
        return max((one for one in found if one is not None), default=None)

    def _reached(
        self, body: eq.Expr, inner: Limits, names: list[str], facts: Facts
    ) -> float | None:
        """The same of a body that is written out so far."""
        best: float | None = None
        if not small(body):
            return None
        for atom in set(eq.walk(body)):
            largest = self.meaning(atom, inner) if isinstance(atom, eq.Read) else atom
            if not isinstance(largest, eq.Reduce) or largest.kind != "max":
                continue
            if eq.indices(largest) & set(names) or largest.where is not None:
                continue
            for equal in self._choices(largest, body, inner, names):
                self._equal = (equal, settled(atom))
                try:
                    numbers = self.value(body, inner, facts)
                finally:
                    self._equal = None
                if numbers.pieces and not (numbers.below or numbers.nan):
                    best = numbers.low if best is None else max(best, numbers.low)
        return best

    def _choices(
        self, largest: eq.Reduce, body: eq.Expr, inner: Limits, names: list[str]
    ) -> Iterator[eq.Expr]:
        """Elements in a body of which one equals the maximum, as the reduction goes over them."""
        own = inner_box(largest, inner)
        if own is None or largest.body is None:
            return
        free = {name: own[name] for name, _ in largest.binders}
        for atom in set(eq.walk(body)):
            if not isinstance(atom, eq.Read) or not eq.indices(atom) & set(names):
                continue
            target = source(atom, inner, self.tensors)[0]
            looks = product(self._looks(largest.body, own), self._looks(atom, inner))
            if any(self._goes_over(a, b, free, inner, names) for a, b in looks):
                yield target

    def _goes_over(
        self, pattern: eq.Expr, target: eq.Expr, free: Limits, inner: Limits, names: list[str]
    ) -> bool:
        """Whether an element is the pattern at all values of its free indices, each met once."""
        found: dict[str, eq.Expr] = {}
        if not match(pattern, target, free, found) or len(found) < len(free):
            return False
        taken = [value.name for value in found.values() if isinstance(value, eq.Index)]
        return len(set(taken)) == len(free) and all(
            name in names and inner[name] == free[index]
            for index, name in zip(found, taken, strict=False)
        )

    def unfolded(self, expr: eq.Expr, box: Limits, depth: int) -> eq.Expr:
        """An expression with the definitions of its elements written out, reductions excepted."""
        if isinstance(expr, eq.Read) and expr.default is None:
            read, region = source(expr, box, self.tensors)
            if not depth or not self._as_here(read.tensor):
                return read
            term = self.tensors[read.tensor].body if region is None else region.term
            if isinstance(term, eq.Apply) and small(term):
                return self.unfolded(instance(term, read), box, depth - 1)
            return read
        if isinstance(expr, eq.Apply):
            return eq.rebuild(expr, lambda part: self.unfolded(part, box, depth))
        return expr


def _total(ends: list[float]) -> float:
    """A sum, no less than the exact one."""
    if any(abs(end) > 1e290 for end in ends):  # only the sum of very large numbers overflows
        return math.inf
    total = math.fsum(ends)
    return math.nextafter(total, math.inf) if len(ends) > 2 else total


def _plain(expr: eq.Expr) -> bool:
    return not any(isinstance(part, eq.Reduce) for part in eq.walk(expr))
