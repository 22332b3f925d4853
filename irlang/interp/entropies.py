"""Logarithms weighted by parts of a whole: what entropies are at most, and how far laws are apart.

The entropy of a law over n places is log(n) at most. How far it is from another law (Kullback and
Leibler) is not negative, nor is how far both are from their mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import TypeGuard

from irlang import equations as eq
from irlang.interp.assumptions import Facts
from irlang.interp.elements import Sum
from irlang.interp.interval import Numbers
from irlang.interp.range_eval import Limits
from irlang.interp.sums import ATOMS
from irlang.interp.twins import Twins, of_differences
from irlang.interp.unfolding import settled
from irlang.interp.weights import Average
from irlang.scalar import SCALARS

_FAR_OFF = 0.125  # of a whole, which rounding may have made wrong
_DEPTH = 4  # expressions that are looked into, one inside another
_NORMAL = 0.5  # a sum that is so large hangs on no number that its type hardly has
_TWO = 2  # terms of a difference
_OF_ENDS = ("max", "min")


class Entropies(Twins):
    """An evaluator that knows what sums of logarithms of parts are at least."""

    def _bounds(
        self, atom: eq.Expr, below: bool, rest: Sum, box: Limits, facts: Facts
    ) -> Iterator[Sum]:
        """Sums that are no larger (`below`), or no less, than an element: the logarithm of a sum
        is no less than an exponent in it.
        """
        yield from super()._bounds(atom, below, rest, box, facts)
        term = self.meaning(atom, box) if below else atom
        if not below or not isinstance(term, eq.Apply) or term.function != "log":
            return
        whole = self.meaning(term.args[0], box)
        ends = self.interval(term.args[0], box, {})
        if not isinstance(whole, eq.Apply) or whole.function != "+" or ends.low < self.own.row.tiny:
            return
        if ends.finite and all(self.interval(one, box, {}).low >= 0 for one in whole.args):
            error = 16 * self.own.row.unit * (1 + self.interval(atom, box, {}).magnitude)
            for one in whole.args:
                part = self.meaning(one, box)
                if isinstance(part, eq.Apply) and part.function == "exp":
                    yield self.whole(part.args[0], box).plus(Sum({}, error=error))

    def by_weights(self, expr: eq.Reduce, found: Numbers, box: Limits) -> Numbers:
        """A sum of terms of which parts of a whole are factors, less what is beyond the others."""
        found = super().by_weights(expr, found, box)
        inner = self.inner_box(expr, box)
        if found.low >= 0 or inner is None or expr.body is None or expr.where is not None:
            return found
        return self._of_logarithms(expr.body, found, inner, [name for name, _ in expr.binders])

    def _of_logarithms(
        self, body: eq.Expr, found: Numbers, inner: Limits, names: Sequence[str]
    ) -> Numbers:
        """A sum of parts times their logarithms, or times how much these are above others: as
        log(z) is no less than 1 - 1/z, p (log(p) - b) is no less than p - exp(b).
        """
        for weight, other, off in self._held_against(body, inner):
            least = self._least_held(weight, other, off, inner, names)
            found = self.cut(found, least, math.inf, "parts of two wholes are compared")
        return found

    def _least_held(
        self,
        weight: eq.Expr,
        other: eq.Expr | None,
        off: float,
        inner: Limits,
        names: Sequence[str],
    ) -> float:
        """What such a sum is at least, rounding included; -inf where that is not known."""
        count = math.prod(inner[name][1] + 1 for name in names)
        if count * self.own.row.unit > _FAR_OFF:
            return -math.inf
        least = self._least_weight(weight, inner, names, _DEPTH)
        most = max(self._weight(weight, inner, names, _DEPTH), 1.0)
        if not math.isfinite(most):
            return -math.inf
        if other is None:  # against a law by which all are as likely
            beside = math.log(most / count)
            low = (least if beside > -1 else most) * (1 + beside) - most
            size = 1.0 - beside
        else:
            low = least - self._weight_of_exponential(other, inner, names)
            size = 1.0 + math.log(count) + self.interval(other, inner, {}).magnitude
        if not (math.isfinite(low) and math.isfinite(size)):
            return -math.inf
        # of products, each with a part and a logarithm, and of their sum; of the parts, and
        # of the exponentials, which are as far off as the numbers that they are taken of
        slack = (self.own.changed_by(2 * count + 20) * (size + 1.0) + off) * most
        return low - slack - 4 * count * math.sqrt(self.own.least)

    def together(self, made: Sum, box: Limits, facts: Facts, left: int) -> float:
        """No value of a sum is above this, by two sums of logarithms, weighted by parts of a whole,
        of which one is taken away from the other.
        """
        best = super().together(made, box, facts, left)
        for (one, less), (other, more) in permutations(made.factors.items(), _TWO):
            if not less == -more < 0 or not all(self._not_positive(a, box) for a in (one, other)):
                continue
            gap = self._between_laws(one, other, box)
            if math.isfinite(gap):
                rest = {a: f for a, f in made.factors.items() if a not in (one, other)}
                end = self.upper(Sum(rest, made.constant), box, facts, left - 1)
                best = min(best, more * gap + end)
        return best

    def _not_positive(self, expr: eq.Expr, box: Limits) -> bool:
        """Whether an element is a sum of products that are not positive, as of parts and their
        logarithms.
        """
        return self.of_products(expr, box) is not None and self.interval(expr, box, {}).high <= 0

    def _between_laws(self, one: eq.Expr, other: eq.Expr, box: Limits) -> float:
        """By how much one sum of products is more than another at most, whose second factors are
        logarithms of what the first are, and of others; infinite where they are not.
        """
        sums = [self.of_products(expr, box) for expr in (one, other)]
        first, second = sums
        if first is None or second is None:
            return math.inf
        if [first.inner[n] for n in first.names] != [second.inner[n] for n in second.names]:
            return math.inf
        pairs = zip(second.names, first.names, strict=True)
        renamed: dict[str, eq.Expr] = {name: eq.Index(new) for name, new in pairs}
        factors = [settled(eq.substitute(part, renamed)) for part in second.factors]
        for weight, own in (first.factors, first.factors[::-1]):
            for its_weight, its in (factors, factors[::-1]):
                looks = self.looks(weight, first.inner)
                if not any(look in looks for look in self.looks(its_weight, first.inner)):
                    continue
                product = eq.Apply("*", (weight, eq.Apply("-", (own, its))))
                for held in self._held_against(product, first.inner):
                    least = self._least_held(*held, first.inner, first.names)
                    sizes = (self.interval(each, first.inner, {}).magnitude for each in (own, its))
                    most = max(self._weight(weight, first.inner, first.names, _DEPTH), 1.0)
                    lost = 2 * (first.count + 4) * self.own.row.unit * most * sum(sizes)
                    if math.isfinite(least):
                        return lost - least
        return math.inf

    def of_two(self, average: Average, box: Limits) -> float:
        """What two parts of one whole, each times its logarithm, or that of a little more, add up
        to at least: as both do that are half of it.
        """
        one, other, total, error = average
        for weight, factor in (one, other):
            if self.interval(weight, box, {}).low < 0:
                return -math.inf
            if not self._is_logarithm(factor, weight, box):
                return -math.inf
        least = min(end * math.log(end / 2) for end in (total - error, total + error) if end > 0)
        slack = 4 * (_TWO + 16) * self.own.row.unit * (abs(least) + total) + error
        return least - slack - 8 * math.sqrt(self.own.least)

    def _held_against(
        self, body: eq.Expr, inner: Limits
    ) -> Iterator[tuple[eq.Expr, eq.Expr | None, float]]:
        """A number by which its own logarithm is multiplied, what that is held against, and how far
        off their difference may be.
        """
        for look in self.looks(body, inner):
            if not isinstance(look, eq.Apply) or look.function != "*":
                continue
            for weight, factor in (look.args, look.args[::-1]):
                if self.interval(weight, inner, {}).low < 0:
                    continue
                if self._is_logarithm(factor, weight, inner):
                    yield weight, None, 0.0
                term = self._difference(self.meaning(factor, inner), inner)
                if not isinstance(term, eq.Apply) or term.function not in ("+", "-"):
                    continue
                if term.function == "-" and self._is_logarithm(term.args[0], weight, inner):
                    yield weight, term.args[1], 0.0
                else:
                    yield from self._held_apart(weight, factor, inner)
                    yield from self._held_against_pair(weight, factor, inner)

    def _held_apart(
        self, weight: eq.Expr, factor: eq.Expr, inner: Limits
    ) -> Iterator[tuple[eq.Expr, eq.Expr | None, float]]:
        """The same where both logarithms are taken apart: that of `exp(a) / s` is `a - log(s)`."""
        part, made = self.meaning(weight, inner), self.sum_of(factor, inner, {})
        whole = part.args[1] if _is_of(part, "/") else None
        top = self.meaning(part.args[0], inner) if _is_of(part, "/") else part
        if not _is_of(top, "exp") or len(made.factors) > ATOMS:
            return
        terms = {atom: self.meaning(atom, inner) for atom in made.factors}
        taken = {atom: term.args[0] for atom, term in terms.items() if _is_of(term, "log")}
        rest = made.plus(self.sum_of(top.args[0], inner, {}), -1.0)
        if whole is not None:
            rest = rest.plus(self._logarithm_among(taken, whole, inner))
        rest = self.without_twins(rest, inner)
        if not rest.factors and not rest.constant:
            yield weight, None, rest.error
        if list(rest.factors.values()) == [-1] and not rest.constant:
            yield weight, next(iter(rest.factors)), rest.error
        # what is left is the logarithm of the other sum less one number, or a difference
        for logarithm in taken:
            ends = {one: times for one, times in rest.factors.items() if one != logarithm}
            above = [one for one, times in ends.items() if times == -1]
            below = [one for one, times in ends.items() if times == 1]
            known = rest.factors.get(logarithm) == 1 and not rest.constant
            if known and len(above) == 1 and len(below) < _TWO and len(ends) == len(above + below):
                number = eq.Apply("-", (above[0], below[0])) if below else above[0]
                yield weight, eq.Apply("-", (number, logarithm)), rest.error

    def _held_against_pair(
        self, weight: eq.Expr, factor: eq.Expr, inner: Limits
    ) -> Iterator[tuple[eq.Expr, eq.Expr | None, float]]:
        """The same against two laws, the logarithms of both taken away one by one."""
        made = self.sum_of(factor, inner, {})
        if len(made.factors) != 1 + _TWO or made.constant:
            return
        own = [one for one, n in made.factors.items() if n == 1]
        others = [one for one, n in made.factors.items() if n == -1]
        terms = [self.meaning(one, inner) for one in others]
        logs = [term.args[0] for term in terms if _is_of(term, "log")]
        if len(own) != 1 or len(logs) != _TWO or not self._is_logarithm(own[0], weight, inner):
            return
        size = sum(self.interval(one, inner, {}).magnitude for one in others)
        lost = 2 * (SCALARS["log"].ulps + 2) * self.own.row.unit * (size + _TWO)
        if math.isfinite(lost):
            yield weight, eq.Apply("log", (eq.Apply("*", tuple(logs)),)), made.error + lost

    def _logarithm_among(
        self, taken: Mapping[eq.Expr, eq.Expr], whole: eq.Expr, inner: Limits
    ) -> Sum:
        """The logarithm of a number, which is one of some elements; nothing if it is none. taken:
        the elements, and what they are logarithms of.
        """
        its = {*self.copies(whole, inner)}
        for atom, of in taken.items():
            if its & {*self.copies(of, inner)}:
                return Sum({atom: 1.0})
        if self.interval(whole, inner, {}).low < _NORMAL:
            return Sum({})
        look = self.written(whole, inner)
        for atom, of in taken.items():
            if of_differences(look) and look == self.written(of, inner):
                count = math.prod(int(bound.value) for _, bound in look.binders if _is_known(bound))
                lost = 4 * (count + SCALARS["exp"].ulps + 8) * self.own.row.unit
                return Sum({atom: 1.0}, error=lost)  # both are rounded on their own
        return Sum({})

    def _difference(self, term: eq.Expr, inner: Limits) -> eq.Expr:
        """The logarithm of a quotient as the difference of two; all else as it is."""
        if not isinstance(term, eq.Apply) or term.function != "log":
            return term
        ratio = self.meaning(term.args[0], inner)
        if not isinstance(ratio, eq.Apply) or ratio.function != "/":
            return term
        one, other = (self.interval(arg, inner, {}) for arg in ratio.args)
        if not (one.finite and other.finite) or min(one.low, other.low) <= 0:
            return term
        if one.low / other.high < self.own.row.tiny or one.high / other.low > self.own.largest:
            return term  # the quotient may have lost digits
        return eq.Apply("-", tuple(eq.Apply("log", (arg,)) for arg in ratio.args))

    def _is_logarithm(self, expr: eq.Expr, part: eq.Expr, inner: Limits) -> bool:
        """Whether an expression is the logarithm of a part, or of a little more than it."""
        term, looks = self.meaning(part, inner), self.looks(part, inner)
        if isinstance(term, eq.Apply) and term.function == "exp":
            exponents = self.looks(term.args[0], inner)
            if any(one in exponents for one in self.looks(expr, inner)):
                return True
        ways = (one for one, _ in self._logarithms(expr, inner))
        return any(one in looks for way in ways for one in self.looks(way, inner))

    def _logarithms(self, expr: eq.Expr, inner: Limits) -> Iterator[tuple[eq.Expr, float]]:
        """What an expression is the logarithm of, and so much more at most."""
        own = self.meaning(expr, inner)
        if _is_of(own, "log"):
            yield from self._hardly_less(own.args[0], inner, _DEPTH)

    def _hardly_less(
        self, expr: eq.Expr, inner: Limits, depth: int
    ) -> Iterator[tuple[eq.Expr, float]]:
        """What an expression is no less than, and so much more at most: what something was added
        to, or was kept from going below a number, or above what it never comes to.
        """
        yield expr, 0.0
        taken = self.meaning(expr, inner)
        if not depth or not isinstance(taken, eq.Apply) or taken.function not in ("+", *_OF_ENDS):
            return
        for one, other in (taken.args, taken.args[::-1]):
            ends = self.interval(other, inner, {})
            if taken.function == "min":
                kept, more = self.interval(one, inner, {}).high <= ends.low, 0.0
            else:
                kept, more = ends.low >= 0 and ends.finite, ends.high
            for far, its in self._hardly_less(one, inner, depth - 1) if kept else ():
                yield far, its + more

    def _weight_of_exponential(self, expr: eq.Expr, inner: Limits, names: Sequence[str]) -> float:
        """What the exponentials of some numbers add up to at most, as these are logarithms."""
        count = math.prod(inner[name][1] + 1 for name in names)
        weights = [self._weight(eq.Apply("exp", (expr,)), inner, names, _DEPTH)]
        for one, more in self._logarithms(expr, inner):
            weights.append(self._weight(one, inner, names, _DEPTH) + count * more)
        return min(weights)


def _is_known(bound: eq.Expr) -> TypeGuard[eq.Const]:
    return isinstance(bound, eq.Const)


def _is_of(expr: eq.Expr, function: str) -> TypeGuard[eq.Apply]:
    return isinstance(expr, eq.Apply) and expr.function == function
