"""Sums of numbers that are weighted by the parts of a whole: no more than the largest number.

What attention gives lies among what it looks at, a mixture of probabilities is one itself, and the
roots of the products of two laws, each no more than the mean of both, add up to 1 at most. The
square of a weighted mean is no more than the weighted mean of the squares.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from irlang import equations as eq
from irlang.interp.assumptions import Facts
from irlang.interp.elements import Sum
from irlang.interp.holdings import Holdings
from irlang.interp.interval import Numbers
from irlang.interp.lengths import Products
from irlang.interp.parts import tell_apart
from irlang.interp.range_eval import Limits
from irlang.interp.ranked import at_rank
from irlang.interp.runs import along
from irlang.interp.unfolding import own_index, settled

# a weight and a number, another weight and its number, what the weights add up to, and how sure
Average = tuple[tuple[eq.Expr, eq.Expr], tuple[eq.Expr, eq.Expr], float, float]

_DEPTH = 4  # expressions that are looked into, one inside another
_OF_TERMS = frozenset({"+", "-", "neg", "abs", "min", "max"})  # no larger than all together
_OF_PARTS = 4  # roundings of a part and of its product, beside those of the sums
_FACTORS = 3  # products that are looked into, one inside another


class Weights(Holdings):
    """An evaluator that knows what weighted numbers add up to."""

    def by_weights(self, expr: eq.Reduce, found: Numbers, box: Limits) -> Numbers:
        """A sum of terms of which parts of a whole are factors, less what is beyond the others."""
        inner = self.inner_box(expr, box)
        if inner is None or expr.body is None or expr.where is not None:
            return found
        names = [name for name, _ in expr.binders]
        count = math.prod(inner[name][1] + 1 for name in names)
        if count * self.own.row.unit > 0.125:
            return found
        end = self._weight(expr.body, inner, names, _DEPTH)
        end = end * (1 + self.own.changed_by(2 * count + 4 * _DEPTH))
        end += 4 * count * math.sqrt(self.own.least)  # of what is rounded to a denormal number
        end = min(end, self._most_of_parts(expr.body, inner, names))
        if end < found.magnitude:
            found = self.cut(found, -end, end, "numbers are weighted by parts of a whole")
        if found.low < 0:
            return self._among(expr.body, found, inner, names)
        if not 0 <= found.low < end:
            return found
        least = self._least_weight(expr.body, inner, names, _DEPTH)
        least *= 1 - self.own.changed_by(2 * count + 4 * _DEPTH)
        least -= 4 * count * math.sqrt(self.own.least)
        if least > 0 and self.part_of(expr.body, inner) is not None:
            every = self._least_weight(expr.body, inner, names, 1)
            rounding = 1 - self.own.changed_by(_OF_PARTS + 2 * count)
            least = max(least, every * rounding - count * self.own.least)
        return self.cut(found, least, math.inf, "all parts of a whole are added up")

    def _most_of_parts(self, body: eq.Expr, inner: Limits, names: Sequence[str]) -> float:
        """What parts of a whole, or what is no more than these, add up to at most. Whatever else is
        in the whole makes it no smaller as it is rounded, so that the terms alone count.
        """
        count = math.prod(inner[name][1] + 1 for name in names)
        ways = [body]
        for look in self.looks(body, inner):
            least = isinstance(look, eq.Apply) and look.function == "min"
            if isinstance(look, eq.Apply) and least and self.interval(look, inner, {}).low >= 0:
                ways += look.args
        every = min(self._weight_of_part(one, inner, names) for one in ways)
        return every * (1 + self.own.changed_by(_OF_PARTS + 2 * count)) + count * self.own.least

    def _among(self, body: eq.Expr, found: Numbers, inner: Limits, names: Sequence[str]) -> Numbers:
        """A sum of numbers that are weighted by parts of a whole: it is no further beside 0 than
        they are, on either side, and among them if all parts are there.
        """
        count = math.prod(inner[name][1] + 1 for name in names)
        for look in self.looks(body, inner):
            if not isinstance(look, eq.Apply) or look.function != "*":
                continue
            for weight, number in (look.args, look.args[::-1]):
                ends = self.interval(number, inner, {})
                if self.interval(weight, inner, {}).low < 0 or not ends.finite or ends.empty:
                    continue
                most = self._weight(weight, inner, names, _DEPTH)
                if not math.isfinite(most):
                    continue
                least = self._least_weight(weight, inner, names, _DEPTH)
                own = _OF_PARTS if self.part_of(weight, inner) is not None else 4 * _DEPTH
                slack = self.own.changed_by(2 * count + own) * most * ends.magnitude
                slack += 4 * count * (ends.magnitude + 1) * self.own.least
                low = ends.low * (most if ends.low < 0 else least) - slack
                high = ends.high * (least if ends.high < 0 else most) + slack
                found = self.cut(found, low, high, "a mean of numbers lies among them")
        return found

    def total_of_run(self, tensor: str) -> Numbers | None:
        """What the last of sums so far may be, by the parts of wholes that are added up: none of
        those before it is more. None where that is not known.
        """
        run, shape = self.run_of(tensor), self.tensors[tensor].info.shape
        if run is None or run.function != "+" or run.sign < 0 or run.start != 0:
            return None
        own = [own_index(axis) for axis in range(len(shape))]
        name = f"{own[run.axis]} met"
        read = eq.Read(tensor, tuple(map(eq.Index, own)))
        term = along(run.term, read, run.axis, name)
        whole = eq.Reduce("sum", ((name, eq.Const(shape[run.axis])),), None, term)
        box = {one: (0, shape[axis] - 1) for axis, one in enumerate(own) if axis != run.axis}
        found = self.tensors[tensor].hull
        return self.aside(lambda: self.by_weights(whole, found, self.one_box(box)))

    def _bounds(
        self, atom: eq.Expr, below: bool, rest: Sum, box: Limits, facts: Facts
    ) -> Iterator[Sum]:
        """Sums that are no larger (`below`), or no less, than an element."""
        yield from super()._bounds(atom, below, rest, box, facts)
        for sum_, scale in () if below else self._squared_products(atom, box):
            for other in rest.factors:
                squares = self.of_products(other, box)
                ways = () if squares is None else self._with_more(squares)
                for made, more in ways:
                    least, times = self._mean_of_squares(sum_, made)
                    if not math.isfinite(times):
                        continue
                    size = self.interval(other, box, {}).magnitude * max(times, 1.0)
                    error = self.own.changed_by(4 * sum_.count + 12) * size + self._lost(sum_, box)
                    apart = times * least * more * (1 - self.own.changed_by(2 * sum_.count + 4))
                    if math.isfinite(error):
                        yield Sum({other: scale**2 * times}, -(scale**2) * apart, scale**2 * error)

    def _with_more(self, squares: Products) -> Iterator[tuple[Products, float]]:
        """A sum of products, and of those of one of two terms that a factor adds up, where the
        other is not negative: with the least that this is.
        """
        yield squares, 0.0
        for at, factor in enumerate(squares.factors):
            term = self.meaning(factor, squares.inner)
            if not isinstance(term, eq.Apply) or term.function != "+":
                continue
            for one, other in (term.args, term.args[::-1]):
                more = self.interval(other, squares.inner, {})
                if more.finite and more.pieces and more.low >= 0:
                    kept = squares.factors[1 - at]
                    pair = (kept, one) if at else (one, kept)
                    yield replace(squares, factors=pair), more.low

    def _mean_of_squares(self, sum_: Products, squares: Products) -> tuple[float, float]:
        """What the weights of a sum of numbers add up to, at least and at most, by which another
        weighs their squares: as often as the most is the square of the first no more than the
        second. Infinite for others.
        """
        own = sum_.inner
        for weight in self.weights_of_squares(sum_, squares):
            part = self.part_of(weight, own)
            names = [] if part is None else [n.name for n in part.at if isinstance(n, eq.Index)]
            known = part is not None and not part.off and part.count == sum_.count
            if known and sorted(names) == sorted(sum_.names):
                every = self._least_weight(weight, own, sum_.names, 1)
                return every * (1 - self.own.changed_by(_OF_PARTS)), 1.0
            total = self.of_known(weight, own, sum_.names)
            if total is not None and total[0] >= 0:
                return total
        return 0.0, math.inf

    def of_known(
        self, expr: eq.Expr, inner: Limits, names: Sequence[str]
    ) -> tuple[float, float] | None:
        """Between which numbers terms add up whose numbers are known, none of them negative."""
        raise NotImplementedError

    def weights_of_squares(self, sum_: Products, squares: Products) -> Iterator[eq.Expr]:
        """Factors of a sum of products by which another sum weighs the squares of the others."""
        own, its = sum_.inner, squares.inner
        if [own[n] for n in sum_.names] != [its[n] for n in squares.names]:
            return
        pairs = zip(squares.names, sum_.names, strict=True)
        renamed: dict[str, eq.Expr] = {one: eq.Index(other) for one, other in pairs}
        made = [settled(eq.substitute(one, renamed)) for one in squares.factors]
        sign, met = self._flattened(made, own)
        for weight, number in (sum_.factors, sum_.factors[::-1]):
            twice = self._flattened([number], own)[1] * 2
            if sign > 0 and self._alike([weight, *twice], met, own):
                yield weight

    def _flattened(self, factors: Sequence[eq.Expr], box: Limits) -> tuple[int, list[eq.Expr]]:
        """The factors of a product, a square being two of them, and the sign before it."""
        sign, found = 1, list[eq.Expr]()
        for factor in factors:
            base = self.square_of(factor, box)
            if base is not None:
                found += self._flattened([base], box)[1] * 2
                continue
            turn, parts = self._factors(factor, box, _FACTORS)
            sign *= turn
            for part in parts:
                inner = self.square_of(part, box)
                found += [part] if inner is None else self._flattened([inner], box)[1] * 2
        return sign, found

    def _alike(self, ones: Sequence[eq.Expr], others: Sequence[eq.Expr], box: Limits) -> bool:
        """Whether two products have the same factors."""
        left = [self.looks(other, box) for other in others]
        for one in ones:
            looks = self.looks(one, box)
            twin = next((its for its in left if any(look in its for look in looks)), None)
            if twin is None:
                return False
            left.remove(twin)
        return not left

    def _weight(self, expr: eq.Expr, inner: Limits, names: Sequence[str], depth: int) -> float:
        """What the sizes of some terms add up to at most, rounding aside; infinite if unknown."""
        best = math.inf
        if not depth or self.done():
            return best
        parts = self._weight_of_part(expr, inner, names)
        if math.isfinite(parts):
            return parts
        for look in self.looks(expr, inner):
            if isinstance(look, eq.Reduce):
                best = min(best, self._weight_of_sum(look, inner, names, depth))
                best = min(best, self._weight_of_ranks(look, inner, names, depth))
            if not isinstance(look, eq.Apply):
                continue
            best = min(best, self._weight_of_place(look, inner, names))
            if look.function in _OF_TERMS:
                weights = [self._weight(one, inner, names, depth - 1) for one in look.args]
                best = min(best, sum(weights) * (1 + 2 * self.own.row.unit))
                if look.function == "min" and self.interval(look, inner, {}).low >= 0:
                    best = min(best, *weights)
            for u, v, total, error in self._mixtures(look, inner, names, depth):
                weights = [self._weight(one, inner, names, depth - 1) for one in (u, v)]
                best = min(best, max(weights) * (total + error) * (1 + 8 * self.own.row.unit))
            if look.function == "*" and len(names) > 1:
                best = min(best, self._weight_of_pairs(look, inner, names, depth))
            for one, times in self._weighted(look, inner):
                best = min(best, self._weight(one, inner, names, depth - 1) * times)
            for pair in self._means(look, inner):
                both = [self._weight(one, inner, names, depth - 1) for one in pair]
                best = min(best, sum(both) / 2)
        return best

    def _weight_of_part(self, expr: eq.Expr, inner: Limits, names: Sequence[str]) -> float:
        """The same of parts of a whole, none of which is met twice."""
        part = self.part_of(expr, inner)
        taken = {n for one in part.at for n in eq.indices(one) & set(names)} if part else set()
        if part is None or not tell_apart(taken, part.at, inner):
            return math.inf
        apart = (inner[name][1] + 1 for name in names if name not in taken)
        return math.prod(apart) * (1 + part.count * part.off)

    def _least_weight(
        self, expr: eq.Expr, inner: Limits, names: Sequence[str], depth: int
    ) -> float:
        """What some terms that are not negative add up to at least, rounding aside, as all parts of
        wholes are among them.
        """
        best = 0.0
        if not depth or self.done():
            return best
        part = self.part_of(expr, inner)
        if part is not None and not part.more:
            taken = {name for one in part.at for name in eq.indices(one)}
            every = taken <= set(names) and tell_apart(taken, part.at, inner)
            if every and math.prod(inner[name][1] + 1 for name in taken) == part.count:
                apart = (inner[name][1] + 1 for name in names if name not in taken)
                return math.prod(apart) * max(0.0, 1 - part.count * part.off)
        for look in self.looks(expr, inner):
            if isinstance(look, eq.Reduce):
                further = self.inner_box(look, inner)
                if look.kind == "sum" and look.where is None and look.body and further:
                    added = [*names, *(name for name, _ in look.binders)]
                    count = math.prod(further[name][1] + 1 for name, _ in look.binders)
                    least = self._least_weight(look.body, further, added, depth - 1)
                    best = max(best, least * (1 - 2 * count * self.own.row.unit))
            elif isinstance(look, eq.Apply):
                best = max(best, self._least_of_apply(look, inner, names, depth))
        return best

    def _least_of_apply(
        self, look: eq.Apply, inner: Limits, names: Sequence[str], depth: int
    ) -> float:
        """The same of a function of terms."""
        if self.interval(look, inner, {}).low < 0:
            return 0.0
        best = 0.0
        for name, place, rest in self._at_one(look, inner, names):
            others = [other for other in names if other != name]
            if name not in eq.indices(rest):
                best = max(best, self._least_weight(rest, inner, others, depth - 1))
            there = self.anew(settled(eq.substitute(rest, {name: place})), inner)
            if there.low > 0:
                best = max(best, there.low * math.prod(inner[other][1] + 1 for other in others))
        for quotient, often in self._of_sum(look, inner) if look.function == "/" else ():
            every = self._least_weight(quotient, inner, names, depth - 1) * often
            best = max(best, every * (1 - 4 * self.own.row.unit))
        if look.function in ("*", "/"):
            pairs = (look.args, look.args[::-1]) if look.function == "*" else (look.args,)
            for one, other in pairs:
                times = self.interval(other, inner, {})
                if times.low > 0 and times.finite:
                    by = times.low if look.function == "*" else 1 / times.high
                    best = max(best, self._least_weight(one, inner, names, depth - 1) * by)
        elif look.function in ("+", "max") and all(
            self.interval(one, inner, {}).low >= 0 for one in look.args
        ):
            least = [self._least_weight(one, inner, names, depth - 1) for one in look.args]
            best = sum(least) if look.function == "+" else max(least)
        for u, v, total, error in self._mixtures(look, inner, names, depth):
            both = [self._least_weight(one, inner, names, depth - 1) for one in (u, v)]
            best = max(best, min(both) * (total - error))
        return best

    def _at_one(
        self, look: eq.Apply, inner: Limits, names: Sequence[str]
    ) -> Iterator[tuple[str, eq.Expr, eq.Expr]]:
        """Indices along which one term counts for sure, as it or a factor is 0 at all others, which
        that is, and what the factor is multiplied by.
        """
        pairs = (look.args, look.args[::-1]) if look.function == "*" else ((look, eq.Const(1.0)),)
        for one, rest in pairs:
            for name in names:
                place = self.place_of_one(one, name, inner)
                ends = None if place is None else self.interval(place, inner, {})
                if place is None or ends is None or not ends.finite:
                    continue
                if 0 <= ends.low <= ends.high <= inner[name][1]:
                    yield name, place, rest

    def _mixtures(
        self, look: eq.Apply, inner: Limits, names: Sequence[str], depth: int
    ) -> Iterator[tuple[eq.Expr, eq.Expr, float, float]]:
        """The numbers of an average whose weights are the same for all terms, what they add up to,
        and how sure that is.
        """
        if depth < _DEPTH or look.function != "+":
            return
        for (a, u), (b, v), total, error in self._averages(look, inner, {}):
            if not (eq.indices(a) | eq.indices(b)) & set(names):
                yield u, v, total, error

    def _averages(
        self, expr: eq.Apply, box: Limits, facts: Facts, least: float = 0.0
    ) -> Iterator[Average]:
        """Weights and numbers of averages, what the weights add up to, and how sure that is."""
        raise NotImplementedError

    def _weight_of_pairs(
        self, look: eq.Apply, inner: Limits, names: Sequence[str], depth: int
    ) -> float:
        """The same of products of which each factor goes over indices of its own: of one law for
        some, and one for the others.
        """
        taken = [eq.indices(one) & set(names) for one in look.args]
        if taken[0] & taken[1] or not all(taken):
            return math.inf
        apart = [inner[name][1] + 1 for name in names if name not in taken[0] | taken[1]]
        most = float(math.prod(apart))
        for one, own in zip(look.args, taken, strict=True):
            most *= self._weight(one, inner, [name for name in names if name in own], depth - 1)
        return most

    def _weight_of_sum(
        self, look: eq.Reduce, inner: Limits, names: Sequence[str], depth: int
    ) -> float:
        """The same of terms that are sums over other indices, as means over a batch are."""
        further = self.inner_box(look, inner)
        if look.kind != "sum" or look.where is not None or look.body is None or further is None:
            return math.inf
        added = [name for name, _ in look.binders]
        count = math.prod(further[name][1] + 1 for name in added)
        rounding = 1 + 2 * count * self.own.row.unit
        each = self._weight(look.body, further, names, depth - 1)
        if each > 0 and count > 1:  # parts that differ in these indices, too, are other parts
            every = self._weight(look.body, further, [*names, *added], depth - 1)
            return min(each * count, every) * rounding
        return each * count * rounding

    def _weight_of_ranks(
        self, look: eq.Reduce, inner: Limits, names: Sequence[str], depth: int
    ) -> float:
        """The same of elements at several ranks, of which no two are one."""
        own = at_rank(look)
        further = None if own is None else self.inner_box(own[0], inner)
        if own is None or further is None or own[0].body is None:
            return math.inf
        term, place, rank = own
        taken = eq.indices(rank) & set(names)
        if not taken or taken & (eq.indices(place) | eq.indices(term)):
            return math.inf
        if not tell_apart(taken, (rank,), inner):
            return math.inf
        others = [name for name in names if name not in taken]
        others += [name for name, _ in term.binders]
        return self._weight(own[0].body, further, others, depth - 1)

    def _weight_of_place(self, look: eq.Apply, inner: Limits, names: Sequence[str]) -> float:
        """The same of terms that are 0 but where an index is one number."""
        if look.function != "select" or not _is_zero(look.args[2]):
            return math.inf
        condition = look.args[0]
        if not isinstance(condition, eq.Apply) or condition.function != "==":
            return math.inf
        for one, other in (condition.args, condition.args[::-1]):
            index = one.name if isinstance(one, eq.Index) else ""
            if index in names and index not in eq.indices(other):
                apart = math.prod(inner[name][1] + 1 for name in names if name != index)
                size = self.interval(look.args[1], inner, {})
                return size.magnitude * apart if size.finite else math.inf
        return math.inf

    def _weighted(self, look: eq.Apply, inner: Limits) -> Iterator[tuple[eq.Expr, float]]:
        """Expressions that a result is a multiple of, and what times them it is at most."""
        pairs = [look.args, look.args[::-1]] if look.function == "*" else []
        base = self.square_of(look, inner)
        if base is not None:
            pairs = [(base, base)]
        for one, other in pairs:
            size = self.interval(other, inner, {})
            if size.finite:
                yield one, size.magnitude
        if look.function == "/":
            for quotient, times in self._of_sum(look, inner):
                yield quotient, times * (1 + 4 * self.own.row.unit)
            top, divisor = self.meaning(look.args[0], inner), self.interval(look.args[1], inner, {})
            if not divisor.finite or divisor.low <= 0:
                return
            yield look.args[0], 1 / divisor.low
            for one, other in (
                (top.args, top.args[::-1])
                if isinstance(top, eq.Apply) and top.function == "*"
                else ()
            ):
                size = self.interval(other, inner, {})
                # so large that what a product loses as a denormal number is nothing beside it
                lost = self.own.least / (divisor.low * self.own.row.unit)
                if size.finite and size.magnitude >= lost:
                    yield eq.Apply("/", (one, look.args[1])), size.magnitude

    def _of_sum(self, look: eq.Apply, inner: Limits) -> Iterator[tuple[eq.Expr, float]]:
        """A quotient by a mean as one by a sum, and how many times that it is."""
        divisor = self.meaning(look.args[1], inner)
        if not isinstance(divisor, eq.Apply) or divisor.function not in ("/", "*"):
            return
        pairs = (divisor.args, divisor.args[::-1])[: 1 + (divisor.function == "*")]
        for total, often in pairs:
            by = self.value(often, inner, {}).only
            if by is not None and by > 0:
                times = float(by) if divisor.function == "/" else 1 / by
                yield eq.Apply("/", (look.args[0], total)), times

    def _means(self, look: eq.Apply, inner: Limits) -> Iterator[tuple[eq.Expr, ...]]:
        """Two expressions of which a result is no more than the mean: it is the root of their
        product, or the product of their roots.
        """
        under = self.root_of(look, inner)
        roots = [self.root_of(self.meaning(one, inner), inner) for one in look.args]
        product = None if under is None else self.meaning(under, inner)
        if isinstance(product, eq.Apply) and product.function == "*":
            yield product.args
        elif look.function == "*" and roots[0] is not None and roots[1] is not None:
            yield roots[0], roots[1]


def _is_zero(expr: eq.Expr) -> bool:
    return isinstance(expr, (eq.Const, eq.Size)) and float(expr.value) == 0
