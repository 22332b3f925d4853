"""Counts over the same indices, added up: of every element it is one of a few cases what counts.

Found and right, found and wrong, left out and right, left out and wrong: whichever of these an
element is, one of four counts has it, so that all four together are as many as there are elements.
Truth values and whole numbers of which there are few are tried one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

from irlang import equations as eq
from irlang.interp.assumptions import Facts
from irlang.interp.interval import NOTHING, Numbers, interval, join, number
from irlang.interp.mixed import Mixed
from irlang.interp.range_eval import Limits
from irlang.interp.unfolding import instance, settled
from irlang.scalar import SCALARS

_DEPTH = 8  # definitions that are looked into, one behind another
_COUNTS = 8  # that are added up
_CASES = 64
_VALUES = 4  # of a whole number
_FEW = 6  # whole numbers and truth values that are tried together


class Counting(Mixed):
    """An evaluator that knows what counts come to together."""

    def related(
        self, expr: eq.Apply, found: Numbers, args: list[Numbers], box: Limits, facts: Facts
    ) -> Numbers:
        """A result, given those of its arguments, less what relations between them exclude."""
        found = super().related(expr, found, args, box, facts)
        if expr.function != "+" or self._level or not found.low == 0 < found.high < math.inf:
            return found
        return self.aside(partial(self.by_cases, expr, found, box))

    def by_cases(self, expr: eq.Apply, found: Numbers, box: Limits) -> Numbers:
        """A sum of counts over the same indices, by what every element counts in all of them."""
        counts = list(self._counts(expr, box, _DEPTH))
        bodies = self._side_by_side(counts, box)
        if not bodies:
            return found
        inner = bodies[0][1]
        written = [self._written(body, inner, _DEPTH) for body, _ in bodies]
        made, size = NOTHING, 0.0
        for case in self._cases_of(written, inner):
            each = [self.value(body, inner, case) for body in written]
            if not all(one.finite and one.pieces and one.whole for one in each):
                return found
            ends = sum(int(one.low) for one in each), sum(int(one.high) for one in each)
            made = join(made, interval(*ends, whole=True))
            size = max(size, sum(one.magnitude for one in each))
        count = math.prod(inner[name][1] + 1 for name in inner.keys() - box.keys())
        if made.empty or count * size * self.own.row.unit > 0.5:
            return found  # real numbers would have been rounded
        made_of = float if self.kind(expr) == "real" else int
        low, high = (made_of(count * end) for end in (made.low, made.high))
        return self.cut(found, low, high, "what every element counts is known")

    def most_by_case(self, terms: Sequence[tuple[eq.Expr, float]], box: Limits) -> float:
        """No value of some truth values and whole numbers, each times a factor, is above this."""
        written = [self._written(body, box, _DEPTH) for body, _ in terms]
        most = -math.inf
        for case in self._cases_of(written, box):
            total = 0.0
            for body, (_, factor) in zip(written, terms, strict=True):
                one = self.value(body, box, case)
                if not (one.finite and one.pieces and one.whole):
                    return math.inf
                total += factor * (one.high if factor > 0 else one.low)
            most = max(most, total)
        return most if math.isfinite(most) else math.inf

    def _side_by_side(
        self, counts: list[eq.Reduce | None], box: Limits
    ) -> list[tuple[eq.Expr, Limits]]:
        """What some sums add up, each with the indices of the first and the box with these; nothing
        where they do not go over the same indices.
        """
        found: list[tuple[eq.Expr, Limits]] = []
        first = counts[0] if 2 <= len(counts) <= _COUNTS else None
        inner = None if first is None else self.inner_box(first, box)
        for one in counts:
            own = None if one is None else self.inner_box(one, box)
            if first is None or inner is None or one is None or own is None or one.body is None:
                return []
            if [own[name] for name, _ in one.binders] != [inner[name] for name, _ in first.binders]:
                return []
            pairs = zip(one.binders, first.binders, strict=True)
            renamed: dict[str, eq.Expr] = {own: eq.Index(new) for (own, _), (new, _) in pairs}
            found.append((settled(eq.substitute(one.body, renamed)), inner))
        return found

    def _counts(self, expr: eq.Expr, box: Limits, depth: int) -> Iterator[eq.Reduce | None]:
        """The sums that an expression adds up, each once; None for what is none."""
        term = self._defined(expr, box)
        if isinstance(term, eq.Reduce) and term.kind == "sum" and term.where is None:
            yield term
        elif depth and isinstance(term, eq.Read) and term != expr:
            yield from self._counts(term, box, depth - 1)
        elif depth and isinstance(term, eq.Apply) and term.function in ("+", "real"):
            for arg in term.args:
                yield from self._counts(arg, box, depth - 1)
        else:
            yield None

    def _defined(self, expr: eq.Expr, box: Limits) -> eq.Expr:
        """What an element is computed as, whole numbers, too; itself where that is not known."""
        if not isinstance(expr, eq.Read) or expr.default is not None:
            return expr
        known = self.meaning(expr, box) if self.infos[expr.tensor].kind != "int" else expr
        if known != expr:
            return known
        read, region = self.source(expr, box)
        term = region.term if region is not None else None
        term = term or self.tensors[read.tensor].written
        return read if term is None else instance(term, read)

    def _written(self, expr: eq.Expr, box: Limits, depth: int) -> eq.Expr:
        """An expression with the definitions of its whole numbers and truth values written out."""
        if isinstance(expr, eq.Read) and expr.default is None:
            term, kind = self._defined(expr, box), self.infos[expr.tensor].kind
            known = kind == "bool" or (kind == "int" and self.inside_type(expr.tensor))
            known = known or (isinstance(term, eq.Apply) and term.function == "real")
            if not depth or not known or term == expr or isinstance(term, eq.Reduce):
                return self.source(expr, box)[0]
            made = self._written(term, box, depth - 1)
            counted = kind == "int" and self.kind(term) == "bool"
            return eq.Apply("select", (made, eq.Const(1), eq.Const(0))) if counted else made
        if isinstance(expr, eq.Apply):
            return eq.rebuild(expr, lambda part: self._written(part, box, depth))
        return expr

    def _cases_of(self, bodies: list[eq.Expr], box: Limits) -> Iterator[dict[eq.Expr, Numbers]]:
        """What the truth values and whole numbers in some expressions may be together; nothing
        where these are too many, or stand beside others.
        """
        values: dict[eq.Expr, list[Numbers]] = {}
        waiting = list(bodies)
        while waiting and len(values) <= _FEW:
            part = waiting.pop()
            if isinstance(part, eq.Apply) and not self._is_case(part):
                waiting += part.args
            elif isinstance(part, (eq.Apply, eq.Read)):
                found = self.plainly(part, box)
                if not (found.whole and found.finite and found.high - found.low < _VALUES):
                    return
                ends = int(found.low), int(found.high)
                values[part] = [number(one) for one in range(ends[0], ends[1] + 1)]
            elif not isinstance(part, (eq.Const, eq.Size)):
                return
        if not waiting and math.prod(map(len, values.values())) <= _CASES:
            for case in product(*values.values()):
                yield dict(zip(values, case, strict=True))

    def _is_case(self, expr: eq.Apply) -> bool:
        """Whether a comparison is of real numbers: it holds or does not."""
        compares = SCALARS[expr.function].kind == "bool" and len(expr.args) == 2
        return compares and self.kind(expr.args[0]) == "real"
