"""Products of elements: how large they may be, and those of their factors.

`u * v` of numbers with a known sum is largest where they are equal; twice a product is no more than
the squares of its factors, its root no more than their mean; the square of a mean is no more than
the mean of the squares. What is a factor of two products cancels where one is divided by the other;
a root is larger than a number whose square is less.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from irlang import equations as eq
from irlang.interp.assumptions import Facts
from irlang.interp.elements import Looks, Sum, has_default
from irlang.interp.interval import Numbers
from irlang.interp.pooled import Pooled
from irlang.interp.range_eval import Limits
from irlang.interp.unfolding import settled

_OPENED = 6  # sums that are taken apart, to see a multiple of another in one
_FACTORS = 3  # products that are looked into, one inside another
_CANCELLED = 8  # factors of two products of which those are left out that stand in both
_TOP = float.fromhex("0x1.fffffffffffffp+1023")


class Squares(Pooled):
    """An evaluator that knows what squares are to products."""

    _bases: dict[tuple[eq.Expr, int, bool], tuple[eq.Expr | None, Limits]]

    def forget(self) -> None:
        """Tensors have become others: squares are looked for anew."""
        super().forget()
        self._bases = {}

    def _factors(
        self, expr: eq.Expr, box: Limits, depth: int, through: Collection[str] = ("*",)
    ) -> tuple[int, list[eq.Expr]]:
        """The factors of a product, and a sign before it. through: what is opened as a product."""
        term = self.meaning(expr, box) if depth else expr
        if isinstance(term, eq.Apply) and term.function == "neg":
            sign, found = self._factors(term.args[0], box, depth - 1, through)
            return -sign, found
        if isinstance(term, eq.Apply) and term.function in through:
            opened = (self._factors(arg, box, depth - 1, through) for arg in term.args)
            signs, parts = zip(*opened, strict=True)
            return math.prod(signs), [one for part in parts for one in part]
        return 1, [expr]

    def _same(self, expr: eq.Apply, box: Limits) -> bool:
        """Whether both arguments are one number: copies of one element, or computed alike."""
        one, other = (self.looks(arg, box) for arg in expr.args)
        return any(look in other for look in one)

    def by_factors(self, expr: eq.Apply, found: Numbers, box: Limits) -> Numbers:
        """A quotient of two products with factors that stand in both: that of the others."""
        tops, bottoms = (self._factors(arg, box, _FACTORS) for arg in expr.args)
        if len(bottoms[1]) < 2 or len(tops[1]) + len(bottoms[1]) > _CANCELLED:
            return found
        left = list(bottoms[1])
        kept = []
        for factor in tops[1]:
            looks = self.looks(factor, box)
            twin = next((o for o in left if any(a in looks for a in self.looks(o, box))), None)
            kept += [factor] if twin is None else []
            left = [one for one in left if one is not twin]
        if len(kept) == len(tops[1]):
            return found
        every = [self.interval(one, box, {}) for one in (*tops[1], *bottoms[1])]
        # no product of some of them, in whatever order, is lost as a denormal number
        if any(not one.finite or one.empty or one.holds(0.0) for one in every):
            return found
        sizes = [min(abs(one.low), abs(one.high), 1.0) for one in every]
        if math.prod(sizes) * self.own.row.unit < self.own.least:
            return found
        made = self._over(kept, left, tops[0] * bottoms[0], box)
        slack = 2 * (len(every) + 2) * self.own.row.unit
        low, high = (end - slack * abs(end) for end in (made[0], -made[1]))
        return self.cut(found, low, -high, "both are multiples of one number")

    def _over(
        self, tops: Sequence[eq.Expr], bottoms: Sequence[eq.Expr], sign: int, box: Limits
    ) -> tuple[float, float]:
        """Between which numbers a product lies that is divided by another, neither holding 0."""
        low = high = float(sign)
        factors = [(one, False) for one in tops] + [(one, True) for one in bottoms]
        for one, below in factors:
            ends = self.interval(one, box, {})
            pair = (1 / ends.low, 1 / ends.high) if below else (ends.low, ends.high)
            corners = [a * b for a in (low, high) for b in pair]
            low, high = min(corners), max(corners)
        return low, high

    def beside_root(self, expr: eq.Apply, found: Numbers, box: Limits) -> Numbers:
        """A root and another number, by its square: sqrt(s) + t is no less than the quotient of
        s - t^2 and sqrt(s) + |t|.
        """
        for one, other in (expr.args, expr.args[::-1])[: 1 + (expr.function == "+")]:
            under = self.root_of(self.meaning(one, box), box)
            if under is None:
                continue
            size, reach = self.interval(one, box, {}), self.interval(other, box, {})
            if not (size.finite and reach.finite) or size.empty or reach.empty:
                continue
            gap = self.anew(eq.Apply("-", (under, eq.Apply("sq", (other,)))), box)
            if gap.low > 0:
                least = gap.low / (size.magnitude + reach.magnitude)
                least -= 4 * self.own.row.unit * (size.magnitude + least)
                return self.cut(found, least, math.inf, "a root is larger than a number")
        return found

    def parabola(self, expr: eq.Apply, found: Numbers, box: Limits, facts: Facts) -> Numbers:
        """A product of two numbers whose sum, or difference, is known."""
        terms = (self.meaning(arg, box) for arg in expr.args)
        if not any(isinstance(term, eq.Apply) and term.function in ("+", "-") for term in terms):
            return found
        one, other = (self.sum_of(arg, box, facts) for arg in expr.args)
        for sign in (1.0, -1.0):
            total = one.plus(other, sign)
            if total.factors or total.error > abs(total.constant):
                continue
            # u v = u (s - u), or u (u - s): the vertex is at s / 2
            ends = self.value(expr.args[0], box, facts)
            if not (ends.finite and ends.pieces):
                continue
            at = [ends.low, ends.high]
            if ends.low < total.constant / 2 < ends.high:
                at.append(total.constant / 2)
            values = [sign * u * (total.constant - u) for u in at]
            slack = 2 * total.error * ends.magnitude + self.own.least
            slack += 2 * self.own.row.unit * max(map(abs, values))
            least, largest = min(values) - slack, max(values) + slack
            return self.cut(found, least, largest, "the sum of two factors is known")
        return found

    def of_parts(self, expr: eq.Apply, found: Numbers, box: Limits, facts: Facts) -> Numbers:
        """A product of two parts of one whole: no more than if both were half of it."""
        if not 0 <= found.low < 0.25 < found.high:
            return found
        one, other = (self.part_of(arg, box) for arg in expr.args)
        if one is None or other is None or one.whole != other.whole:
            return found
        sum_ = self.whole(expr.args[0], box).plus(self.whole(expr.args[1], box))
        if len(sum_.factors) != 2:
            return found
        most = self.upper(sum_, box, facts)
        end = most * most / 4 * (1 + 4 * self.own.row.unit)
        return self.cut(found, -math.inf, end + self.own.least, "two parts share one whole")

    def likeness(self, expr: eq.Apply, found: Numbers, box: Limits, facts: Facts) -> Numbers:
        """A product of two numbers of which one is a multiple of the other but for rounding."""
        terms = [self.meaning(arg, box) for arg in expr.args]
        if not all(isinstance(term, eq.Apply) and term.function in ("+", "-") for term in terms):
            return found
        for one, other in (expr.args, expr.args[::-1]):
            size = self.interval(one, box, facts)
            like = self._multiple(other, one, box, facts) if size.finite else None
            if like is None:
                continue
            # v = t u + r, so that u v = t u^2 + u r
            times, apart = like
            end = size.magnitude * apart * (1 + 4 * self.own.row.unit) + self.own.least
            if math.isfinite(end):
                ends = (-end, math.inf) if times > 0 else (-math.inf, end)
                return self.cut(found, *ends, "one factor is a multiple of the other")
        return found

    def _multiple(
        self, expr: eq.Expr, base: eq.Expr, box: Limits, facts: Facts
    ) -> tuple[float, float] | None:
        """What times a sum an expression is, and how far it may be from that."""
        base = self.copies(base, box)[-1]
        parts = self.sum_of(base, box, facts, 1)
        if len(parts.factors) < 2:
            return None
        made = Sum({self.copies(expr, box)[-1]: 1.0})
        for _ in range(_OPENED):
            kept = {*parts.factors, base}
            atom = next((one for one in made.factors if one not in kept), None)
            if atom is None:
                break
            opened = self.sum_of(atom, box, facts, 1)
            if atom in opened.factors:
                return None
            rest = {one: factor for one, factor in made.factors.items() if one != atom}
            made = Sum(rest, made.constant, made.error).plus(opened, made.factors[atom])
        largest = max(parts.factors, key=lambda one: abs(parts.factors[one]))
        times = made.factors.get(largest, 0.0) / parts.factors[largest]
        left = made.plus(parts, -times).plus(Sum({base: 1.0}), -made.factors.get(base, 0.0))
        apart = abs(left.constant) + left.error
        for element, factor in left.factors.items():
            apart += abs(factor) * self.remembered(element, box, facts).magnitude
        return times + made.factors.get(base, 0.0), apart

    def _bounds(
        self, atom: eq.Expr, below: bool, rest: Sum, box: Limits, facts: Facts
    ) -> Iterator[Sum]:
        """Sums that are no larger (`below`), or no less, than an element."""
        yield from super()._bounds(atom, below, rest, box, facts)
        term = self.meaning(atom, box)
        if isinstance(term, eq.Apply) and term.function == "*" and not self._same(term, box):
            yield from self._by_squares(term, below, rest, box)
        if not below:
            yield from self._by_mean_of_squares(term, rest, box)
            yield from self._by_middle(term, box)

    def _times_square(self, term: eq.Expr, box: Limits) -> tuple[eq.Expr, float] | None:
        """What an expression is the square of, or how many times that it is, if more than none."""
        inner = self.square_of(term, box)
        if inner is not None or not isinstance(term, eq.Apply) or term.function != "*":
            return None if inner is None else (inner, 1.0)
        for one, other in (term.args, term.args[::-1]):
            often = self.value(one, box, {}).only
            inner = self.square_of(self.meaning(other, box), box) if often else None
            if inner is not None and often is not None and often > 0:
                return inner, float(often)
        return None

    def _by_squares(self, term: eq.Apply, below: bool, rest: Sum, box: Limits) -> Iterator[Sum]:
        """Half the squares of two factors, or of what they are multiples of, where these are
        elements of `rest`; as often as the other factors are large.
        """
        _, factors = self._factors(term, box, _FACTORS)
        sizes = [self.interval(factor, box, {}).magnitude for factor in factors]
        if not math.isfinite(math.prod(max(size, 1.0) for size in sizes)):
            return
        met = [self._square_among(rest, factor, box) for factor in factors]
        for (own, one), (its, other) in combinations(enumerate(met), 2):
            if one is None or other is None:
                continue
            apart = math.prod(size for at, size in enumerate(sizes) if at not in (own, its))
            times = apart * abs(one[1] * other[1])
            error = 2 * apart * (one[2] * sizes[its] + other[2] * sizes[own])
            size = sum(self.interval(square, box, {}).magnitude for square, _, _ in (one, other))
            error += len(factors) * self.own.row.unit * size * max(times, 1.0)
            error += len(factors) * self.own.least * math.prod(max(size, 1.0) for size in sizes)
            half = -0.5 * times if below else 0.5 * times
            if math.isfinite(error):
                yield Sum({one[0]: half}, error=error).plus(Sum({other[0]: 1.0}), half)

    def _square_among(
        self, rest: Sum, expr: eq.Expr, box: Limits
    ) -> tuple[eq.Expr, float, float] | None:
        """An element of a sum that is the square of an expression, or of what that is a multiple
        of: with the factor, and how far the expression may be from the multiple.
        """
        ways = [(expr, 1.0, 0.0)]
        made = self.sum_of(expr, box, {})
        if len(made.factors) == 1 and not made.constant:
            ways += [(element, scale, made.error) for element, scale in made.factors.items()]
        for element, scale, off in ways:
            looks = self.looks(element, box)
            for other in rest.factors:
                if self._is_square(other, looks, box):
                    return other, scale, off
        return None

    def _by_middle(self, term: eq.Expr, box: Limits) -> Iterator[Sum]:
        """The mean of two numbers, for the root of their product."""
        under = self.root_of(term, box)
        inner = None if under is None else self.meaning(under, box)
        if not isinstance(inner, eq.Apply) or inner.function != "*":
            return
        sizes = [self.interval(factor, box, {}) for factor in inner.args]
        if all(size.low >= 0 and size.finite for size in sizes):
            error = 4 * self.own.row.unit * sum(size.magnitude for size in sizes)
            error += math.sqrt(self.own.least)  # of a product that is rounded to a denormal number
            one, other = (self.whole(factor, box) for factor in inner.args)
            yield Sum({}, error=error).plus(one, 0.5).plus(other, 0.5)

    def square_of(self, expr: eq.Expr, box: Limits) -> eq.Expr | None:
        """What an expression is the square of."""
        key = expr, id(box), self.stepping
        found = self._bases.get(key)
        if found is None:  # what the id is of is kept too, so that it stays its own
            found = self._bases[key] = self._square_of(expr, box), box
        return found[0]

    def _square_of(self, expr: eq.Expr, box: Limits) -> eq.Expr | None:
        """The same, found anew."""
        for look in self.looks(expr, box):
            if has_default(look):
                return self._square_inside(look, box)
            if not isinstance(look, eq.Apply):
                continue
            if look.function == "sq" or (look.function == "*" and self._same(look, box)):
                return look.args[0]
            if look.function == "pow" and self.value(look.args[1], box, {}).only == 2:
                return look.args[0]
        return None

    def _square_inside(self, read: eq.Read, box: Limits) -> eq.Expr | None:
        """The same of an element of a tensor of squares, and of the 0 that is read beside it."""
        inside = replace(read, default=None)
        term = self.meaning(inside, box)
        base = None if term == inside else self.square_of(term, box)
        if not isinstance(base, eq.Read) or base.default is not None or not _is_zero(read.default):
            return None
        same = self.infos[base.tensor].shape == self.infos[read.tensor].shape
        return replace(base, default=read.default) if same and base.index == read.index else None

    def root_of(self, look: eq.Expr, box: Limits) -> eq.Expr | None:
        """What an expression is the square root of, as it stands."""
        if not isinstance(look, eq.Apply):
            return None
        halved = look.function == "pow" and self.value(look.args[1], box, {}).only == 0.5
        return look.args[0] if halved or look.function == "sqrt" else None

    def divisor_of(self, factor: eq.Expr, box: Limits) -> eq.Expr | None:
        """What an expression is the reciprocal of."""
        look = self.meaning(factor, box)
        if not isinstance(look, eq.Apply):
            return None
        if look.function == "/" and self.value(look.args[0], box, {}).only == 1:
            return look.args[1]
        power = look.function == "pow" and self.value(look.args[1], box, {}).only == -0.5
        return eq.Apply("sqrt", look.args[:1]) if power or look.function == "rsqrt" else None

    def _is_square(self, expr: eq.Expr, looks: Looks, box: Limits) -> bool:
        inner = self.square_of(expr, box)
        return inner is not None and any(one in looks for one in self.looks(inner, box))

    def _by_mean_of_squares(self, term: eq.Expr, rest: Sum, box: Limits) -> Iterator[Sum]:
        """The mean of the squares, for the square of a mean; as often as both are multiples."""
        square = self._times_square(term, box)
        mean = None if square is None else self._mean(square[0], box)
        if square is None or mean is None:
            return
        for other in rest.factors:
            of_squares = self._mean(other, box)
            if of_squares is None or of_squares[1] != mean[1]:
                continue
            (body, count, own, scale), (squares, _, its, times) = mean, of_squares
            base = self.square_of(squares, its)
            if base is None or times <= 0:
                continue
            renamed: dict[str, eq.Expr] = {a: eq.Index(b) for a, b in zip(own, its, strict=False)}
            looks = [settled(eq.substitute(one, renamed)) for one in self.looks(body, own)]
            if any(one in looks for one in self.looks(base, its)):
                ratio = scale * scale / times * square[1]
                size = ratio * self.interval(other, box, {}).magnitude
                largest = scale * self.value(body, own, {}).magnitude
                rounding = (4 * count + 12) * self.own.row.unit
                error = rounding * max(size, largest * largest * square[1])
                lost = 4 * self.own.least * (max(1.0, ratio * count) + 2 * largest)
                lost *= max(1.0, square[1])
                if math.isfinite(error):
                    yield Sum({other: ratio}, error=error + lost)
                    if rounding < 1:  # of a mean that is smaller rounding takes less, too
                        yield Sum({other: ratio * (1 + rounding)}, error=lost)

    def _count_of_terms(self, reduce: eq.Reduce, inner: Limits, box: Limits) -> int:
        """How many terms of a sum there are at most that are no 0 read beside a tensor."""
        body = reduce.body
        if body is not None and has_default(body) and _is_zero(body.default):
            where = eq.Inside(body.tensor, body.index)
            most = self.interval(eq.Reduce("count", reduce.binders, where, None), box, {})
            if most.finite and most.high >= 1:
                return int(most.high)
        return math.prod(inner[name][1] + 1 for name, _ in reduce.binders)

    def _mean(self, expr: eq.Expr, box: Limits) -> tuple[eq.Expr, int, Limits, float] | None:
        """The terms of a mean, how many they are, the box with their indices at the end, and what
        times the mean an expression is: the sum itself is as many times it.
        """
        for look in self.looks(expr, box):
            pairs: list[tuple[eq.Expr, eq.Expr | None]] = [(look, None)]
            if isinstance(look, eq.Apply) and look.function in ("/", "*"):
                pairs = [(look.args[0], look.args[1]), (look.args[1], look.args[0])]
                pairs = pairs[: 1 + (look.function == "*")]
            for total, times in pairs:
                reduce = self.meaning(total, box)
                if not isinstance(reduce, eq.Reduce) or reduce.kind != "sum":
                    continue
                inner = self.inner_box(reduce, box)
                if inner is None or reduce.where is not None or reduce.body is None:
                    continue
                count = self._count_of_terms(reduce, inner, box)
                share = 1.0 if times is None else self.value(times, box, {}).only
                if not share:
                    continue
                divided = isinstance(look, eq.Apply) and look.function == "/"
                near = count / share if divided else share * count
                near = 1.0 if abs(near - 1) <= 2 * self.own.row.unit else near
                return reduce.body, count, inner, near
        return None


def _is_zero(expr: eq.Expr | None) -> bool:
    return isinstance(expr, (eq.Const, eq.Size)) and float(expr.value) == 0
