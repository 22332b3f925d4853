"""What is taken of the largest of some elements: the element that equals it is looked at by itself.

A maximum is one of its elements, whichever that is: where it is taken from all of them, one of the
differences is 0, so that a sum of exponentials of them is 1 at least.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import TypeGuard

from irlang import equations as eq
from irlang.interp.assumptions import Facts
from irlang.interp.interval import NOTHING, number
from irlang.interp.range_eval import Limits, outside, shadows
from irlang.interp.resultants import Resultants
from irlang.interp.unfolding import instance, pinned, settled, small

_FEW = 16  # elements that are tried one by one
_EXTREMES = ("max", "min")
_DEEP = 6  # maxima inside one another
_SUMS = 6  # terms of a sum, and sums in it, that are looked into
UNFOLDED = 4  # definitions that a term of a reduction is written out by, at most
FURTHER = 6  # the same where no extreme has been met in it yet: `exp(-(x - min(x)) * b)`


class Extremes(Resultants):
    """An evaluator that looks at the cases of which element a maximum or minimum is."""

    def beside_any(self, expr: eq.Apply, box: Limits) -> tuple[float, float]:
        """Between which numbers a difference lies of which one side is the largest or the least of
        some elements: by that of any of them, whatever index it has.
        """
        low, high = -math.inf, math.inf
        for side, arg in enumerate(expr.args):
            term = self.chosen(self.meaning(arg, box), box)
            inner = None if term is None else self.inner_box(term, box)
            if term is None or inner is None or term.body is None or term.kind not in _EXTREMES:
                continue
            pair = (term.body, expr.args[1]) if side == 0 else (expr.args[0], term.body)
            made = self.anew(eq.Apply("-", pair), inner)
            if (term.kind == "max") == (side == 1):
                low = max(low, made.low)
            else:
                high = min(high, made.high)
        return low, high

    def _attained(self, expr: eq.Reduce, box: Limits, facts: Facts) -> float | None:
        """A number that some term of a reduction reaches: that at the index of an extreme."""
        inner = self.inner_box(expr, box)
        if inner is None or expr.body is None or (self._equal and shadows(expr, box)):
            return None
        names, facts = [name for name, _ in expr.binders], outside(expr, box, facts)
        best: float | None = None
        bodies = list[eq.Expr]()
        for depth, body in enumerate(self._written_out(expr.body, inner, FURTHER)):
            if depth >= UNFOLDED and best is not None:
                break
            bodies.append(body)
            found = self._reached(body, inner, names, facts)
            best = found if best is None or (found is not None and found > best) else best
            if best is not None and best >= 1.0:
                break  # as it is an exponential of 0; written out further it says the same
        if best is None or best <= 0:
            for body in self._beside_ranks(expr.body, bodies, inner, names):
                found = self._reached(body, inner, names, facts)
                best = found if best is None or (found is not None and found > best) else best
        return best

    def _beside_ranks(
        self, expr: eq.Expr, bodies: Sequence[eq.Expr], inner: Limits, names: list[str]
    ) -> Iterator[eq.Expr]:
        """An expression written out but for the elements that are compared with one at a rank among
        them. bodies: the same, written out ever further.
        """
        reads = dict.fromkeys(
            part
            for body in bodies
            for part in eq.walk(body)
            if isinstance(part, eq.Read) and eq.indices(part) <= inner.keys()
        )
        for atom in reads:
            own = self.one_of(self.meaning(atom, inner), inner)
            ranked = own is not None and self.chosen(self.meaning(atom, inner), inner) is None
            if own is None or not ranked:
                continue
            sorted_ = [one for body in bodies for one in self._choices(own, body, inner, names)]
            if sorted_:
                yield self.unfolded(expr, inner, FURTHER, frozenset((atom, *sorted_)))

    def _reached(
        self, body: eq.Expr, inner: Limits, names: list[str], facts: Facts
    ) -> float | None:
        """The same of a body that is written out so far."""
        best: float | None = None
        for atom in dict.fromkeys(eq.walk(body)):
            if not eq.indices(atom) <= inner.keys():
                continue  # it hangs on an index that is bound further in
            term = self.meaning(atom, inner) if isinstance(atom, eq.Read) else atom
            if self._equal is not None and _same_element(atom, self._equal[1], inner):
                term = self.meaning(self._equal[0], inner)  # in this case it is that
            largest = self.one_of(term, inner)
            if largest is None or eq.indices(term) & set(names):
                continue
            deep = self.nested(largest, inner)
            choices = [
                one
                for look in (largest, deep)
                if look is not None
                for one in self._choices(look, body, inner, names)
            ]
            cases = [(equal, settled(atom), facts) for equal in dict.fromkeys(choices)]
            if self.chosen(term, inner) is None:  # one at a rank, and the largest is no less
                top = eq.Reduce("max", largest.binders, None, largest.body)
                known = self.anew(top, inner) if cases else NOTHING
                cases += [(equal, top, {**facts, equal: known}) for equal, _, _ in cases]
            for equal, other, known_here in cases:
                with self.taken_as(equal, other):
                    numbers = self.value(body, inner, known_here)
                if numbers.pieces and not numbers.below:
                    best = numbers.low if best is None else max(best, numbers.low)
        return best

    def _choices(
        self, largest: eq.Reduce, body: eq.Expr, inner: Limits, names: list[str]
    ) -> Iterator[eq.Expr]:
        """Elements in a body of which one equals the extreme, as the reduction goes over them."""
        own = self.inner_box(largest, inner)
        if own is None or largest.body is None:
            return
        met = {name: inner[name] for name in names}
        for atom in dict.fromkeys(eq.walk(body)):
            if not isinstance(atom, eq.Read) or not eq.indices(atom) & set(names):
                continue
            if not eq.indices(atom) <= inner.keys():
                continue
            if self.among(self.looks(atom, inner), self.looks(largest.body, own), met, own):
                yield self.source(atom, inner)[0]

    def _of_larger(self, expr: eq.Apply, known: float, box: Limits, facts: Facts) -> float:
        """What a sum is at least, whichever of some elements is the larger that it is taken of;
        anything less where that is no more than what is known already.
        """
        best = -math.inf
        met: set[tuple[eq.Expr, int]] = set()
        in_sums = list(self._in_sums(expr, box))
        for body in self._written_out(expr, box):
            for atom in dict.fromkeys((*eq.walk(body), *in_sums)):
                if not eq.indices(atom) <= box.keys():
                    continue  # it hangs on an index that is bound further in
                larger = self.meaning(atom, box) if isinstance(atom, eq.Read) else atom
                for args in self._one_is(larger, box):
                    own = [self.started(arg, box) for arg in args]
                    if (atom, len(own)) not in met:
                        met.add((atom, len(own)))
                        kept = frozenset([atom, *(self.copies(one, box)[-1] for one in own)])
                        near = self._written_to(expr, settled(atom), box, UNFOLDED)
                        for far in (near, self.unfolded(expr, box, UNFOLDED, kept)):
                            if far not in (None, body) and small(far) and best < 1.0:
                                least = self._least_by_case(far, atom, own, known, box, facts)
                                best = max(best, least)
                    if best <= 0:
                        best = max(best, self._least_by_case(body, atom, own, known, box, facts))
            if best > 0:
                break  # written out further it says the same
        return best

    def _in_sums(self, expr: eq.Apply, box: Limits) -> Iterator[eq.Expr]:
        """The larger of two that stands in two sums that are added: of two rows of exponentials,
        both less the larger of their maxima, that is met in none of the terms but in theirs.
        """
        terms, met = [self.meaning(arg, box) for arg in expr.args], dict[eq.Expr, int]()
        for term in terms:
            if isinstance(term, eq.Apply) and term.function == "+" and len(terms) < _SUMS:
                terms += [self.meaning(arg, box) for arg in term.args]
            inner = self.inner_box(term, box) if isinstance(term, eq.Reduce) else None
            if inner is None or not isinstance(term, eq.Reduce) or term.body is None:
                continue
            looks = self._written_out(term.body, inner) if term.kind == "sum" else ()
            for atom in {part for look in looks for part in eq.walk(look)}:
                if isinstance(atom, eq.Read) and eq.indices(atom) <= box.keys():
                    met[atom] = met.get(atom, 0) + 1
        for atom in sorted((atom for atom, sums in met.items() if sums > 1), key=repr):
            larger = self.meaning(atom, box)
            if isinstance(larger, eq.Apply) and larger.function in _EXTREMES:
                yield atom

    def _written_to(self, expr: eq.Expr, atom: eq.Expr, box: Limits, depth: int) -> eq.Expr | None:
        """An expression with only those definitions written out that lead to an element; None where
        none of them does.
        """
        if isinstance(expr, eq.Apply):
            parts = [self._written_to(arg, atom, box, depth) for arg in expr.args]
            if not any(parts):
                return None
            return eq.Apply(
                expr.function, tuple(p or a for p, a in zip(parts, expr.args, strict=True))
            )
        if not isinstance(expr, eq.Read) or expr.default is not None:
            return None
        read, region = self.source(expr, box)
        if read == atom or not depth or not self.as_here(read.tensor):
            return atom if read == atom else None
        term = self.tensors[read.tensor].body if region is None else region.term
        if not isinstance(term, eq.Apply) or not small(term):
            return None
        return self._written_to(instance(term, read), atom, box, depth - 1)

    def _least_by_case(
        self,
        body: eq.Expr,
        atom: eq.Expr,
        own: Sequence[eq.Expr],
        least_known: float,
        box: Limits,
        facts: Facts,
    ) -> float:
        """What an expression is at least, an element in it being one of some others."""
        lows = []
        for one in own:
            known = dict(facts)
            only = self.remembered(one, box, facts).only
            if only is not None:
                known[atom] = number(only)
            element = self.copies(one, box)[-1]
            with self.taken_as(element, settled(atom)):
                least = self._of_terms(body, frozenset([element, one, atom]), box, known)
                lows.append(least if least >= 1.0 else self._least(body, box, known))
            if lows[-1] <= max(0.0, least_known):
                break
        return min(lows, default=-math.inf)

    def _of_terms(
        self, body: eq.Expr, news: frozenset[eq.Expr], box: Limits, facts: Facts
    ) -> float:
        """What a sum of terms that are not negative is at least by one of them in which all of its
        elements are known to be one number: in any order it is no less. Otherwise nothing.
        """
        terms, found = [body], -math.inf
        for term in terms:
            if isinstance(term, eq.Apply) and term.function == "+":
                terms += term.args
            elif self.interval(term, box, facts).low < 0:
                return -math.inf
            elif self._all_known(term, news, box):
                found = max(found, self.value(term, box, facts).low)
        return found

    def _all_known(self, term: eq.Expr, known: frozenset[eq.Expr], box: Limits) -> bool:
        """Whether the elements of an expression are some that are known, or constants."""
        reads = {part for part in eq.walk(term) if isinstance(part, eq.Read)}
        return all(self._is_constant(read, box) for read in reads - known)

    def _least(self, body: eq.Expr, box: Limits, facts: Facts) -> float:
        """What an expression is at least, in a case; of a sum, also by what its terms reach."""
        found = self.value(body, box, facts).low
        if found >= 1.0 or not isinstance(body, eq.Apply) or body.function != "+":
            return found
        terms: list[eq.Expr] = [body]
        for part in terms:
            term = self.meaning(part, box)
            if isinstance(term, eq.Apply) and term.function == "+" and len(terms) < _SUMS:
                terms += term.args
            elif self.interval(part, box, facts).low < 0:
                return found  # in any order a sum of what is not negative is no less than a term
        for term in (self.meaning(part, box) for part in terms):
            if isinstance(term, eq.Reduce) and term.kind == "sum" and term.where is None:
                found = max(found, self._attained(term, box, facts) or found)
        return found

    def _one_is(self, larger: eq.Expr, box: Limits) -> Iterator[list[eq.Expr]]:
        """The elements of which one is the larger or lesser of two, or an extreme of a few: those
        of the extremes inside it, and these as they stand.
        """
        if isinstance(larger, eq.Apply) and larger.function in ("max", "min"):
            leaves = list(self.leaves(larger, box, _DEEP))
            yield leaves
            if len(leaves) > len(larger.args):
                yield list(larger.args)
            return
        term = self.chosen(larger, box)
        inner = None if term is None else self.inner_box(term, box)
        if term is None or term.body is None or inner is None:
            return
        names = [name for name, _ in term.binders]
        if math.prod(inner[name][1] + 1 for name in names) <= _FEW:
            yield [
                settled(eq.substitute(term.body, dict(zip(names, map(eq.Const, at), strict=True))))
                for at in product(*(range(inner[name][1] + 1) for name in names))
            ]

    def _written_out(self, expr: eq.Expr, box: Limits, most: int = UNFOLDED) -> Iterator[eq.Expr]:
        """An expression with ever more definitions of its elements written out, while it is small
        and that changes it.
        """
        last: eq.Expr | None = None
        for depth in range(most):
            body = self.unfolded(expr, box, depth)
            if body == last or not small(body):
                return
            yield body
            last = body

    def unfolded(
        self,
        expr: eq.Expr,
        box: Limits,
        depth: int,
        kept: frozenset[eq.Expr] = frozenset(),
        truths: bool = True,
    ) -> eq.Expr:
        """An expression with the definitions of its elements written out, reductions excepted.

        kept: elements that stay as they are; to find these, opposites and multiples are looked
        through as well. truths: whether conditions that count as numbers are written out, too.
        """
        if isinstance(expr, eq.Read) and expr.default is None:
            read, region = self.source(expr, box)
            if not depth or not self.as_here(read.tensor) or read in kept or expr in kept:
                return read
            term = self.tensors[read.tensor].body if region is None else region.term
            if isinstance(term, eq.Apply) and small(term):
                left = depth - (not kept or self._is_news(term, box))
                return self.unfolded(instance(term, read), box, left, kept, truths)
            return read
        if isinstance(expr, eq.Apply):
            if not truths and is_truth(expr, self.kind):
                depth = 0
            return eq.rebuild(expr, lambda part: self.unfolded(part, box, depth, kept, truths))
        return expr

    def _is_news(self, term: eq.Apply, box: Limits) -> bool:
        """Whether a definition tells more than the opposite of an element, or a number times it, or
        with it.
        """
        if term.function in ("+", "-", "*", "/"):
            return not any(self._is_constant(arg, box) for arg in term.args)
        return term.function != "neg"

    def _is_constant(self, expr: eq.Expr, box: Limits) -> bool:
        """Whether an expression is one number, by itself or as an element of a tensor."""
        if isinstance(expr, eq.Read) and expr.default is None:
            region = self.source(expr, box)[1]
            return region is not None and region.numbers.only is not None
        return isinstance(expr, (eq.Const, eq.Size))


def is_truth(part: eq.Expr, kind: Callable[[eq.Expr], str]) -> TypeGuard[eq.Apply]:
    """Whether an expression is a condition that counts as 0 or 1."""
    real = isinstance(part, eq.Apply) and part.function == "real"
    return real and isinstance(part, eq.Apply) and kind(part.args[0]) == "bool"


def _same_element(one: eq.Expr, other: eq.Expr, box: Limits) -> bool:
    """Whether two elements are one, the indices that are a single number being that."""
    return pinned(one, box) == pinned(other, box)
