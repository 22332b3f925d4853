"""Wholes that are seen otherwise than by one divisor: few terms one by one, squares of parts,
numbers that are known, and means that are divided by their weights afterwards.

What is stacked from `p` and `1 - p` adds up to 1; of n numbers that add up to 1 the squares add up
to 1 / n at least (Cauchy and Schwarz), so that the inverse of their sum, how many of them count, is
n at most; the square of `sum(w * x) / d` is no more than `sum(w * x * x) / d` where d is no less
than the sum of the weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from irlang import equations as eq
from irlang.affine import Affine, affine
from irlang.equation_rules import linear
from irlang.interp.assumptions import Facts
from irlang.interp.constants import SLACK
from irlang.interp.elements import Sum
from irlang.interp.interpolated import Interpolated
from irlang.interp.interval import Numbers
from irlang.interp.lengths import Products
from irlang.interp.range_eval import Limits
from irlang.interp.ranked import at_rank
from irlang.interp.shares import is_sum
from irlang.interp.spans import plain_axes
from irlang.interp.unfolding import instance, settled

_NARROW = 8  # roundings between numbers that are one for all that they add up to
_DEPTH = 4  # expressions that are looked into, one inside another
_WRITTEN_OUT = 8  # definitions of elements of a polynomial, one behind another
_FEW = 8  # terms that are added up one by one


class Wholes(Interpolated):
    """An evaluator that knows more of what terms come to together."""

    def by_weights(self, expr: eq.Reduce, found: Numbers, box: Limits) -> Numbers:
        """The same of terms that are an element each and a number, as `p - 0.1`: so often that
        number, and what the elements come to.
        """
        found = super().by_weights(expr, found, box)
        inner = self.inner_box(expr, box)
        if inner is None or expr.body is None or expr.where is not None:
            return found
        names = [name for name, _ in expr.binders]
        made = self.sum_of(expr.body, inner, {})
        if len(made.factors) != 1 or not made.constant:
            return found
        ((atom, times),) = made.factors.items()
        numbers = self.interval(atom, inner, {})
        if not numbers.low >= 0 or not numbers.finite:
            return found
        count = math.prod(inner[name][1] + 1 for name in names)
        least = max(self._least_weight(atom, inner, names, _DEPTH), count * numbers.low)
        most = min(self._weight(atom, inner, names, _DEPTH), count * numbers.high)
        size = abs(times) * most + count * abs(made.constant)
        slack = self.own.changed_by(2 * count + 4 * _DEPTH) * size + count * made.error
        slack += 4 * count * self.own.least
        ends = sorted((times * least, times * most))
        low, high = (end + count * made.constant for end in ends)
        return self.cut(found, low - slack, high + slack, "parts of a whole are added up")

    def _weight(self, expr: eq.Expr, inner: Limits, names: Sequence[str], depth: int) -> float:
        """What the sizes of some terms add up to at most, rounding aside; infinite if unknown."""
        best = super()._weight(expr, inner, names, depth)
        if not depth or self.done():
            return best
        looks = self.looks(expr, inner)
        best = min(best, *(self._weight_of_rest(look, inner, names) for look in looks))
        known = self.of_known(expr, inner, names)
        best = best if known is None else min(best, known[1])
        return best if math.isfinite(best) else self._one_by_one(expr, inner, names)[1]

    def _weight_of_rest(self, look: eq.Expr, inner: Limits, names: Sequence[str]) -> float:
        """The same of numbers, each times what those before it have left of 1: a stick of which one
        piece after the other is broken off, light that is lost on its way.
        """
        if not isinstance(look, eq.Apply) or look.function != "*" or len(names) != 1:
            return math.inf
        count = inner[names[0]][1] + 1
        for part, left in (look.args, look.args[::-1]):
            rest, step = self.meaning(left, inner), affine(eq.Index(names[0]))
            run = self.run_of(rest.tensor) if isinstance(rest, eq.Read) else None
            if not isinstance(rest, eq.Read) or run is None or step is None:
                continue
            form = affine(rest.index[run.axis])
            gap = None if form is None else form.plus(step, -1)
            others = (at for axis, at in enumerate(rest.index) if axis != run.axis)
            if gap is None or not gap.known or any(names[0] in eq.indices(at) for at in others):
                continue
            if run.function != "*" or run.sign >= 0 or self.interval(part, inner, {}).low < 0:
                continue
            first = 1.0 if rest.default is None else self.plainly(rest.default, inner).magnitude
            most = max(first, self.tensors[rest.tensor].hull.magnitude)
            following = linear(step.plus(Affine({}, gap.constant + 1)))
            index = (*rest.index[: run.axis], following, *rest.index[run.axis + 1 :])
            kept = instance(run.term, eq.Read(rest.tensor, index))
            # what is broken off is no more than what was there before, less what is there then
            both = self.sum_of(part, inner, {}).plus(self.sum_of(kept, inner, {}))
            more = max(0.0, self.upper(both, inner, {}) + both.error - 1)
            return most * (1 + count * (more + 2 * self.own.row.unit)) + count * self.own.least
        return math.inf

    def _least_weight(
        self, expr: eq.Expr, inner: Limits, names: Sequence[str], depth: int
    ) -> float:
        """What some terms that are not negative add up to at least, rounding aside."""
        best = super()._least_weight(expr, inner, names, depth)
        base = self.square_of(expr, inner) if depth and not self.done() else None
        if base is not None:
            count = math.prod(inner[name][1] + 1 for name in names)
            best = max(best, self._least_weight(base, inner, names, depth - 1) ** 2 / count)
        if best > 0 or not depth or self.done():
            return best
        known = self.of_known(expr, inner, names)
        if known is not None:
            return known[0]
        return max(best, self._one_by_one(expr, inner, names)[0])

    def most_at_rank(self, look: eq.Expr, box: Limits) -> float:
        """What an element at a rank is at most, none of its kind being negative: those that are no
        less add up to no more than all, so that the second of parts of a whole is a half at most.
        """
        own = at_rank(look) if isinstance(look, eq.Reduce) else None
        inner = None if own is None else self.inner_box(own[0], box)
        if own is None or inner is None or own[0].body is None:
            return math.inf
        rank, rises = self.interval(own[2], box, {}), self._rises(own[0], own[1])
        if (
            not (rises and rank.finite and rank.pieces)
            or self.value(own[0].body, inner, {}).low < 0
        ):
            return math.inf
        (name,) = (name for name, _ in own[0].binders)  # there is an order of elements of one index
        last = inner[name][1]
        larger = rank.low if rises < 0 else last - rank.high
        every = self._weight(own[0].body, inner, [name], _DEPTH)
        return every * (1 + self.own.changed_by(2 * last + 4 * _DEPTH)) / (max(0.0, larger) + 1)

    def of_known(
        self, expr: eq.Expr, inner: Limits, names: Sequence[str]
    ) -> tuple[float, float] | None:
        """Between which numbers terms add up whose numbers are known, none of them negative, as
        the weights of a window that smoothes; they may all be one number.
        """
        count = math.prod(inner[name][1] + 1 for name in names)
        ends = self.interval(expr, inner, {})
        if ends.low < 0 or not ends.finite:
            return None
        if ends.high <= ends.low * (1 + _NARROW * self.own.row.unit):
            return count * ends.low * (1 - SLACK), count * ends.high * (1 + SLACK)
        for look in self.looks(expr, inner):
            axes = plain_axes(look) if isinstance(look, eq.Read) and not look.default else None
            known = self.tensors[look.tensor].known if isinstance(look, eq.Read) else None
            if axes is None or known is None:
                continue
            row = [axes[name] for name in names if name in axes]
            if any(inner[name][1] + 1 != known.array.shape[axis] for name, axis in axes.items()):
                continue
            apart = math.prod(inner[name][1] + 1 for name in names if name not in axes)
            least, most = known.total(row)
            return least * apart, most * apart
        return None

    def _one_by_one(
        self, expr: eq.Expr, inner: Limits, names: Sequence[str]
    ) -> tuple[float, float]:
        """Between which numbers a sum of a few elements lies, none of them negative, that are not
        made alike, as those that were stacked: by the polynomial that it is.
        """
        count = math.prod(inner[name][1] + 1 for name in names)
        read = self.copies(expr, inner)[-1]
        if not isinstance(read, eq.Read) or not 2 <= count <= _FEW:
            return 0.0, math.inf
        if len(self.tensors[read.tensor].regions) < 2 or self.interval(read, inner, {}).low < 0:
            return 0.0, math.inf
        places = product(*(range(inner[name][1] + 1) for name in names))
        terms = [
            settled(eq.substitute(read, {n: eq.Const(i) for n, i in zip(names, at, strict=True)}))
            for at in places
        ]
        total = terms[0]
        for term in terms[1:]:
            total = eq.Apply("+", (total, term))
        low, high = self.by_form(total, inner, {})
        return max(low, 0.0), high

    def _bounds(
        self, atom: eq.Expr, below: bool, rest: Sum, box: Limits, facts: Facts
    ) -> Iterator[Sum]:
        """Sums that are no larger (`below`), or no less, than an element."""
        yield from super()._bounds(atom, below, rest, box, facts)
        inner = None if below else self.square_of(self.meaning(atom, box), box)
        if inner is not None:
            yield from self._by_mean_of_divided(inner, rest, box)
        yield from self._by_extreme(atom, below, rest, box)

    def together(self, made: Sum, box: Limits, facts: Facts, left: int) -> float:
        """No value of a sum is above this, by the squares of several means in it, and the mean of
        all the squares, with the same weights.
        """
        best = super().together(made, box, facts, left)
        terms = made.factors.items()
        means = [(a, n) for a, n in terms if n > 0 and self.square_of(self.meaning(a, box), box)]
        for other, times in terms if len(means) > 1 else ():
            squares = self.of_products(other, box) if times < 0 else None
            if squares is None or squares.count * self.own.row.unit > 0.125:
                continue
            for weight, number in (squares.factors, squares.factors[::-1]):
                more = self._beyond_mean(means, -times, weight, number, squares, box)
                if math.isfinite(more):
                    own = {other, *(atom for atom, _ in means)}
                    rest = {atom: n for atom, n in terms if atom not in own}
                    end = self.upper(Sum(rest, made.constant), box, facts, left - 1)
                    best = min(best, end + more)
        return best

    def _beyond_mean(
        self,
        means: Sequence[tuple[eq.Expr, float]],
        times: float,
        weight: eq.Expr,
        number: eq.Expr,
        squares: Products,
        box: Limits,
    ) -> float:
        """By how much multiples of the squares of some means are more than so many times one mean
        of squares: each by its own term. Infinite where the weights are not the same.
        """
        inner, names = squares.inner, squares.names
        if self.interval(weight, inner, {}).low < 0:
            return math.inf
        total = self._weight(weight, inner, names, _DEPTH)
        total *= 1 + 4 * (squares.count + 2 * _DEPTH) * self.own.row.unit
        size = times * self.interval(number, inner, {}).magnitude
        if not math.isfinite(total + size):
            return math.inf
        looks, more = self.looks(weight, inner), times * self._lost(squares, box)
        gap: eq.Expr = eq.Apply("*", (eq.Const(times), number))
        for atom, factor in means:
            found = next(iter(self._squared_products(atom, box)), None)
            if found is None or [found[0].inner[n] for n in found[0].names] != [
                inner[n] for n in names
            ]:
                return math.inf
            sum_, scale = found
            pairs = zip(sum_.names, names, strict=True)
            renamed: dict[str, eq.Expr] = {one: eq.Index(new) for one, new in pairs}
            one, other = (settled(eq.substitute(part, renamed)) for part in sum_.factors)
            if not any(look in looks for look in self.looks(one, inner)):
                one, other = other, one
            if not any(look in looks for look in self.looks(one, inner)):
                return math.inf
            by = factor * scale**2
            square = eq.Apply("*", (eq.Const(by * total), eq.Apply("sq", (other,))))
            gap = eq.Apply("-", (gap, square))
            size += by * total * self.interval(eq.Apply("sq", (other,)), inner, {}).magnitude
            more += by * self._lost(sum_, box)
        form = self.form_of(gap, inner, {}, _WRITTEN_OUT)
        least = -math.inf if form is None else min(0.0, self.least_of(form, inner, {}))
        return more + total * (8 * (squares.count + 4) * self.own.row.unit * size - least)

    def _by_extreme(self, atom: eq.Expr, below: bool, rest: Sum, box: Limits) -> Iterator[Sum]:
        """The largest of some numbers, or the least, for a sum of all of them that are weighted by
        what adds up to a number: a mean lies between both.
        """
        term, scale = self.meaning(atom, box), 1.0
        if isinstance(term, eq.Apply) and term.function == "/":  # of a mean
            divisor = self.interval(term.args[1], box, {})
            if divisor.only is not None and divisor.finite and divisor.low >= 1:
                atom, scale = term.args[0], 1 / divisor.low
        elif not isinstance(term, eq.Reduce) or term.kind != "sum":
            return
        kind = "min" if below else "max"
        met = ((one, self.meaning(one, box)) for one in rest.factors)
        ends = [(one, its) for one, its in met if isinstance(its, eq.Reduce) and its.kind == kind]
        terms = self._summed(atom, box) if ends else None
        if terms is None:
            return
        body, inner = terms
        names = tuple(inner.keys() - box.keys())
        count = math.prod(inner[name][1] + 1 for name in names)
        if count * self.own.row.unit > 0.125:
            return
        for weight, numbers in self._weighed(body, inner):
            size = self.interval(numbers, inner, {}).magnitude
            if not math.isfinite(size):
                continue
            for other, its in ends:
                if not self._among_terms(numbers, its, inner, box):
                    continue
                least, most = self._ends_of_weight(weight, inner, names, count)
                if least > 0 and math.isfinite(most):
                    error = (most - least + 8 * (count + 4) * self.own.row.unit * most) * size
                    error += 4 * count * self.own.least
                    yield Sum({other: least * scale}, error=error * scale + self.own.least)

    def _weighed(self, body: eq.Expr, inner: Limits) -> Iterator[tuple[eq.Expr | None, eq.Expr]]:
        """Weights and numbers of which a term may be the product; the term itself, too."""
        yield None, body
        for look in self.looks(body, inner):
            if isinstance(look, eq.Apply) and look.function == "*":
                one, other = look.args
                yield from ((one, other), (other, one))

    def _ends_of_weight(
        self, weight: eq.Expr | None, inner: Limits, names: Sequence[str], count: int
    ) -> tuple[float, float]:
        """Between which numbers weights add up that are not negative, rounding aside."""
        if weight is None:
            return count, count
        if self.interval(weight, inner, {}).low < 0:
            return 0.0, math.inf
        least = self._least_weight(weight, inner, names, _DEPTH)
        return least, self._weight(weight, inner, names, _DEPTH) if least > 0 else math.inf

    def _among_terms(self, expr: eq.Expr, whole: eq.Reduce, inner: Limits, box: Limits) -> bool:
        """Whether an expression is a term of a reduction at all indices of a box."""
        own = self.inner_box(whole, box)
        return own is not None and whole.where is None and self._is_one_of(whole, expr, own, inner)

    def _by_mean_of_divided(self, base: eq.Expr, rest: Sum, box: Limits) -> Iterator[Sum]:
        """The weighted mean of the squares, for the square of a weighted mean: both are divided
        afterwards, by one number that is no less than the weights together.
        """
        mean = self.meaning(base, box)
        if not isinstance(mean, eq.Apply) or mean.function != "/":
            return
        top, bottom = mean.args
        divisor, sum_ = self.remembered(bottom, box, {}), self.of_products(top, box)
        if sum_ is None or divisor.low <= 0 or sum_.count * self.own.row.unit > 0.125:
            return
        looks = self.looks(bottom, box)
        for other in rest.factors:
            its = self.meaning(other, box)
            if not isinstance(its, eq.Apply) or its.function != "/":
                continue
            squares = self.of_products(its.args[0], box)
            if squares is None or not any(one in looks for one in self.looks(its.args[1], box)):
                continue
            for weight in self.weights_of_squares(sum_, squares):
                total = self._total(weight, top, box)
                if self.interval(weight, sum_.inner, {}).low < 0:
                    continue
                share = 0.0 if total is None else self.share(bottom, (total,), False, False, box)
                if not share:
                    continue
                size, reach = (self.interval(one, box, {}).magnitude for one in (other, base))
                error = 8 * (sum_.count + 4) * self.own.row.unit * size / share
                lost = 4 * sum_.count * self.own.least * (1 + 1 / divisor.low)
                error += lost * (1 + 2 * reach + 1 / share)
                if math.isfinite(error):
                    yield Sum({other: 1 / share}, error=error)

    def _total(self, weight: eq.Expr, sum_: eq.Expr, box: Limits) -> eq.Reduce | None:
        """The sum of the weights of a sum of products."""
        term = self.meaning(sum_, box)
        return replace(term, body=weight) if isinstance(term, eq.Reduce) and is_sum(term) else None
