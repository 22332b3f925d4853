"""One contribution to a cotangent: from `x[f(i)]` under conditions, times factors, to `d_x[s]`.

What is left of the sum is written so that evaluators run it as a product of tensors: a condition
that an index lies inside a tensor becomes `?? 0` where that tensor is read, and other conditions go
into the factor that has their indices. Where that might turn 0 times infinity up, the whole product
is chosen instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from irlang import equations as eq
from irlang.adjoint_solve import Condition, Solver
from irlang.affine import bounds_of, surely_inside
from irlang.equation_rules import apply, whole

_FEWER = 4  # times fewer elements in an inner sum than in what it is made of
_LARGEST = 1 << 26  # elements of an inner sum
_POLYNOMIAL = frozenset({"+", "-", "*", "neg", "real"})


@dataclass(frozen=True, slots=True)
class Term:
    """`d_x[index] += product of factors` for all values of the binders that satisfy conditions."""

    binders: tuple[tuple[str, int], ...]
    conditions: tuple[eq.Expr, ...]
    index: tuple[eq.Expr, ...]
    factors: tuple[eq.Expr, ...]


class Names(Protocol):
    """What makes new names, and knows the tensors."""

    tensors: dict[str, eq.TensorInfo]

    def fresh(self, name: str) -> str:
        """An index name that nothing else has."""

    def refreshed(self, expr: eq.Expr) -> eq.Expr:
        """A copy whose reductions have index names of their own."""

    def define(
        self, base: str, body: eq.Expr, binders: Sequence[tuple[str, int]], dtype: str
    ) -> eq.Read:
        """A helper equation over some of the indices in scope; what reads it there."""

    def spread(self, tensor: str, axis: int, step: int) -> str:
        """A tensor with `step - 1` zeros between the elements of `tensor` along an axis."""


def contribution(term: Term, targets: dict[str, int], names: Names) -> eq.Expr | None:
    """The term as an expression over the indices `targets`; None where it is zero."""
    renamed = {name: names.fresh(name) for name, _ in term.binders}
    change: dict[str, eq.Expr] = {old: eq.Index(new) for old, new in renamed.items()}

    def own(expr: eq.Expr) -> eq.Expr:
        return eq.substitute(names.refreshed(expr), change)

    solver = Solver(
        targets,
        {renamed[name]: extent for name, extent in term.binders},
        [(own(part), eq.Index(name)) for part, name in zip(term.index, targets, strict=True)],
        [own(part) for part in term.conditions],
        names.tensors,
        names.fresh,
    )
    solver.run()
    if solver.empty:
        return None
    factors: list[eq.Expr] = []
    for factor in term.factors:
        solved = eq.substitute(own(factor), solver.values)
        factors += flat(solver.tidy(solved, deep=True))
    return _written(solver, _merged(factors), names)


def flat(expr: eq.Expr) -> list[eq.Expr]:
    """The factors of a product."""
    if isinstance(expr, eq.Apply) and expr.function == "*":
        return [factor for arg in expr.args for factor in flat(arg)]
    if isinstance(expr, eq.Apply) and expr.function == "neg":
        return [eq.Const(-1), *flat(expr.args[0])]
    return [expr]


def _merged(factors: list[eq.Expr]) -> list[eq.Expr]:
    """The factors with signs and whole numbers as one in front."""
    number = 1
    rest: list[eq.Expr] = []
    for factor in factors:
        if isinstance(factor, eq.Const) and isinstance(factor.value, int):
            number *= int(factor.value)
        else:
            rest.append(factor)
    return [eq.Const(number), *rest] if number != 1 else rest


def _written(solver: Solver, factors: list[eq.Expr], names: Names) -> eq.Expr:
    bounds: dict[str, eq.Expr] = {
        n: eq.Const(e) for n, e in {**solver.outer, **solver.binders}.items()
    }
    binders: tuple[tuple[str, eq.Expr], ...] = ()
    writer = _Writer(bounds, names)
    ordered = sorted(solver.conditions, key=lambda c: c.kind == "holds")  # bounds guard reads
    if solver.binders:
        held = frozenset[str]().union(*(eq.indices(c.expr) for c in ordered))
        factors, binders = writer.parted(factors, solver.binders, held)
    kept, conditions = writer.folded(factors, ordered, summed=bool(binders))
    outside = [
        condition
        for condition in reversed(conditions)
        if condition.kind == "bound" or not writer.placed(kept, condition, summed=bool(binders))
    ]
    body: eq.Expr = product(kept)
    for condition in outside:
        body = apply("select", solver.tidy(condition.expression(), deep=True), body, eq.Const(0))
    return eq.Reduce("sum", binders, None, body) if binders else body


def product(factors: Sequence[eq.Expr]) -> eq.Expr:
    """The product of factors, 1 of none."""
    if not factors:
        return eq.Const(1)
    *rest, last = factors
    if rest and rest[0] == eq.Const(-1):
        return apply("neg", product(factors[1:]))
    return apply("*", product(rest), last) if rest else last


class _Writer:
    """Puts conditions where they cost least. bounds: of every index of the contribution."""

    def __init__(self, bounds: dict[str, eq.Expr], names: Names) -> None:
        self.bounds = bounds
        self.names = names
        self.tensors = names.tensors

    def folded(
        self, factors: list[eq.Expr], conditions: list[Condition], *, summed: bool
    ) -> tuple[list[eq.Expr], list[Condition]]:
        """Bounds as `?? 0` of reads, if every bound can be and nothing else minds."""
        limits = [c for c in conditions if c.kind == "bound"]
        others = [c for c in conditions if c.kind != "bound"]
        if not limits:
            return list(factors), conditions
        changed = list(factors)
        for limit in limits:
            place = next(
                (p for p, f in enumerate(changed) if self._host(f, limit) is not None), None
            )
            if place is None:
                return list(factors), conditions
            host = changed[place]
            assert isinstance(host, eq.Read)
            changed[place] = eq.Read(host.tensor, host.index, eq.Const(0))
        if not all(tame(factor) for factor in changed):
            return list(factors), conditions
        if summed and len(changed) > 1:
            others = [c for c in others if not self._spread(changed, c)]
        kept = [c.replaced(self._safe) for c in others]
        return [self._safe(factor) for factor in changed], kept

    def parted(
        self, factors: list[eq.Expr], binders: Mapping[str, int], held: frozenset[str]
    ) -> tuple[list[eq.Expr], tuple[tuple[str, eq.Expr], ...]]:
        """A sum in two steps, where the first makes a much smaller tensor than the factors are.

        `sum(f, k) d[f, s - k] * w[f, c, k]` is `sum(k) p[s - k, c, k]`, where
        `p[u, c, k] = sum(f) d[f, u] * w[f, c, k]`: with few c, that reads far less. held: indices
        of the conditions, which stay outside of both sums.
        """
        every = tuple((name, eq.Const(extent)) for name, extent in binders.items())
        if len(factors) != 2:
            return factors, every
        for moving, fixed in (factors, factors[::-1]):
            if not isinstance(moving, eq.Read) or moving.default not in (None, eq.Const(0)):
                continue
            read = self._inner_sum(moving, fixed, binders, held)
            if read is not None:
                left = eq.indices(read)
                return [read], tuple(pair for pair in every if pair[0] in left)
        return factors, every

    def _inner_sum(
        self, moving: eq.Read, fixed: eq.Expr, binders: Mapping[str, int], held: frozenset[str]
    ) -> eq.Read | None:
        shape = self.tensors[moving.tensor].shape
        used = eq.indices(fixed)
        others = [part for part in moving.index if not isinstance(part, eq.Index)]
        computed = frozenset[str]().union(*map(eq.indices, others))
        names = [part.name if isinstance(part, eq.Index) else "" for part in moving.index]
        summed = [n for n in names if n in binders and n in used]
        rest = [n for n in binders if n not in summed]
        free = [n for n in self.bounds if n in used and n not in binders]
        extents = {n: whole(bound) or 0 for n, bound in self.bounds.items()}
        if (
            not (summed and rest)
            or held.intersection(summed)
            or not isinstance(fixed, eq.Read)
            or self._safe(fixed) != fixed
            or len(summed) < len([n for n in names if n in used])
            or any(names.count(n) > 1 or extents[n] != shape[names.index(n)] for n in summed)
            or computed.intersection(summed)
            or not {*rest} <= used | eq.indices(moving)
            or _FEWER * math.prod(extents[n] for n in free) > math.prod(extents[n] for n in summed)
        ):
            return None
        places = [axis for axis, name in enumerate(names) if name not in summed]
        index = {axis: self.names.fresh(f"u{axis}") for axis in places}
        inner = [n for n in rest if n in used]
        own = [(index[axis], shape[axis]) for axis in places]
        own += [(n, extents[n]) for n in (*free, *inner)]
        size = math.prod(extent for _, extent in own)
        work = size * math.prod(extents[n] for n in summed)
        if size > _LARGEST or work > math.prod(extents.values()):
            return None
        there = tuple(
            eq.Index(index[axis]) if axis in index else part
            for axis, part in enumerate(moving.index)
        )
        body = apply("*", eq.Read(moving.tensor, there), fixed)
        total = eq.Reduce("sum", tuple((n, eq.Const(extents[n])) for n in summed), None, body)
        made = self.names.define(moving.tensor, total, own, self.tensors[moving.tensor].dtype)
        back = (*(moving.index[axis] for axis in places), *made.index[len(places) :])
        return eq.Read(made.tensor, back, moving.default)

    def _host(self, factor: eq.Expr, limit: Condition) -> int | None:
        """The axis along which a factor reads at the bounded index, within its bounds."""
        if not isinstance(factor, eq.Read) or factor.default not in (None, eq.Const(0)):
            return None
        shape = self.tensors[factor.tensor].shape
        for axis, (part, extent) in enumerate(zip(factor.index, shape, strict=True)):
            if part == limit.expr and extent <= limit.number:
                return axis
        return None

    def _spread(self, factors: list[eq.Expr], condition: Condition) -> bool:
        """`q divides e`, where a factor reads at `e // q`, is a read at `e` between zeros."""
        if condition.kind != "divides":
            return False
        quotient = apply("//", condition.expr, eq.Const(condition.number))
        for place, factor in enumerate(factors):
            if not isinstance(factor, eq.Read) or factor.default != eq.Const(0):
                continue
            if quotient in factor.index and not eq.reads(condition.expr):
                axis = factor.index.index(quotient)
                tensor = self.names.spread(factor.tensor, axis, condition.number)
                index = tuple(
                    condition.expr if a == axis else p for a, p in enumerate(factor.index)
                )
                factors[place] = eq.Read(tensor, index, factor.default)
                return True
        return False

    def placed(self, factors: list[eq.Expr], condition: Condition, *, summed: bool) -> bool:
        """Chooses between a factor and 0 instead of between the product and 0, if that will do."""
        if not summed or len(factors) < 2 or not all(map(self._sound, factors)):
            return False
        needed = eq.indices(condition.expr)
        for place, factor in enumerate(factors):
            if needed <= eq.indices(factor):
                factors[place] = apply("select", condition.expression(), factor, eq.Const(0))
                return True
        return False

    def _sound(self, expr: eq.Expr) -> bool:
        """Whether an expression is tame, and cannot fail where it is not wanted."""
        return tame(expr) and self._safe(expr) == expr

    def _safe(self, expr: eq.Expr) -> eq.Expr:
        return safe(expr, self.bounds, self.tensors)


def tame(expr: eq.Expr) -> bool:
    """Whether an expression is a polynomial of elements: finite where they are."""
    if isinstance(expr, eq.Read):
        return expr.default is None or tame(expr.default)
    if isinstance(expr, eq.Apply) and expr.function == "select":
        return tame(expr.args[1]) and tame(expr.args[2])
    if isinstance(expr, eq.Apply):
        return expr.function in _POLYNOMIAL and all(map(tame, expr.args))
    return isinstance(expr, (eq.Const, eq.Size, eq.Index))


def safe(
    expr: eq.Expr, bounds: Mapping[str, eq.Expr], tensors: Mapping[str, eq.TensorInfo]
) -> eq.Expr:
    """An expression whose reads cannot fail; what they give outside is of no account."""
    bounds = {**bounds, **bounds_of(expr)}

    def change(part: eq.Expr) -> eq.Expr:
        part = eq.rebuild(part, change)
        if not isinstance(part, eq.Read) or part.default is not None:
            return part
        inside = surely_inside(part, bounds, tensors)
        return part if inside else eq.Read(part.tensor, part.index, eq.Const(0))

    return change(expr)
