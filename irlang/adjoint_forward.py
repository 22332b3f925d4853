"""Forward equations made ready for an adjoint, and the names that it makes.

No reduction stays inside another expression: each becomes an equation of its own over the indices
that it has, so that its value is computed once and its cotangent is a tensor. Where it stood in a
branch that keeps it from reading outside a tensor, it stays guarded by that branch's condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from irlang import equations as eq
from irlang.affine import bounds_of, interval, surely_inside
from irlang.diagnostics import fail
from irlang.dtypes import DEFAULT_OF_KIND
from irlang.equation_rules import apply, is_number, negation
from irlang.kinds import kind
from irlang.scalar import SCALARS


@dataclass(frozen=True, slots=True)
class Context:
    """Where an expression stands: the indices bound around it, what holds there, and the factors
    that what flows to it has.
    """

    binders: tuple[tuple[str, int], ...]
    conditions: tuple[eq.Expr, ...] = ()
    factors: tuple[eq.Expr, ...] = ()

    def under(self, *conditions: eq.Expr) -> Context:
        """The same place, with more that holds there."""
        return Context(self.binders, (*self.conditions, *conditions), self.factors)

    def times(self, *factors: eq.Expr) -> Context:
        """The same place, with more factors."""
        return Context(self.binders, self.conditions, (*self.factors, *factors))

    @property
    def extents(self) -> dict[str, eq.Expr]:
        """The bound of every index."""
        return {name: eq.Const(extent) for name, extent in self.binders}


class Workspace:
    """Equations by target, to which helpers are added; every name is used once."""

    def __init__(self, expansion: eq.Expansion) -> None:
        self.tensors = dict(expansion.tensors)
        self.equations = {e.target: e for e in expansion.equations}
        self._used = {name for e in expansion.equations for name in _names(e)}
        self._spreads: dict[tuple[str, int, int], str] = {}

    def fresh(self, name: str) -> str:
        """An index name that nothing else has."""
        base = name.split("_")[0]
        candidate, count = base, 1
        while candidate in self._used:
            count += 1
            candidate = f"{base}_{count}"
        self._used.add(candidate)
        return candidate

    def helper(self, base: str, info: eq.TensorInfo) -> str:
        """A tensor name that nothing else has."""
        count = 1
        while f"{base}'{count}" in self.tensors:
            count += 1
        name = f"{base}'{count}"
        self.tensors[name] = info
        return name

    def define(
        self, base: str, body: eq.Expr, binders: Sequence[tuple[str, int]], dtype: str
    ) -> eq.Read:
        """A helper equation over some of the indices in scope; what reads it there."""
        info = eq.TensorInfo(tuple(extent for _, extent in binders), dtype)
        name = self.helper(base, info)
        renamed = {index: self.fresh(index) for index, _ in binders}
        body = eq.substitute(body, {old: eq.Index(new) for old, new in renamed.items()})
        left = tuple((renamed[index], eq.Const(extent)) for index, extent in binders)
        self.equations[name] = eq.Equation(name, left, body, info)
        return eq.Read(name, tuple(eq.Index(index) for index, _ in binders))

    def spread(self, tensor: str, axis: int, step: int) -> str:
        """A tensor with `step - 1` zeros between the elements of `tensor` along an axis."""
        key = tensor, axis, step
        if key not in self._spreads:
            old = self.tensors[tensor]
            extents = list(old.shape)
            extents[axis] = max((extents[axis] - 1) * step + 1, 0)
            names = [self.fresh(f"u{a}") for a in range(len(extents))]
            index: list[eq.Expr] = [eq.Index(name) for name in names]
            own = index[axis]
            index[axis] = apply("//", own, eq.Const(step))
            whole = apply("==", apply("%", own, eq.Const(step)), eq.Const(0))
            body = apply("select", whole, eq.Read(tensor, tuple(index)), eq.Const(0))
            info = eq.TensorInfo(tuple(extents), old.dtype)
            name = self.helper(tensor, info)
            left = tuple((n, eq.Const(e)) for n, e in zip(names, extents, strict=True))
            self.equations[name] = eq.Equation(name, left, body, info)
            self._spreads[key] = name
        return self._spreads[key]

    def refreshed(self, expr: eq.Expr) -> eq.Expr:
        """A copy whose reductions have index names of their own."""
        bound = {name: self.fresh(name) for name in bounds_of(expr)}
        return renamed(expr, bound) if bound else expr

    # ---- forward equations, parted so that no reduction stands inside another expression

    def parted(self, equation: eq.Equation) -> eq.Equation:
        """The equation with the reductions inside it as equations of their own."""
        context = Context(
            tuple(zip((n for n, _ in equation.binders), equation.info.shape, strict=True))
        )
        dtype = equation.info.dtype

        def shell(expr: eq.Expr, context: Context) -> eq.Expr:
            """A choice between reductions, or a reduction, may stay where it is."""
            if _absent(expr):
                return shell(expr.args[1], context)
            if isinstance(expr, eq.Apply) and expr.function == "select":
                condition, yes, no = expr.args
                return apply(
                    "select", condition, shell(yes, context.under(condition)),
                    shell(no, context.under(negation(condition))),
                )  # fmt: skip
            if isinstance(expr, eq.Reduce) and expr.body is not None:
                inner = self.inside(expr, context)
                return eq.Reduce(expr.kind, expr.binders, expr.where, lifted(expr.body, inner))
            return lifted(expr, context)

        def lifted(expr: eq.Expr, context: Context) -> eq.Expr:
            if isinstance(expr, eq.Reduce) and kind(expr, self.tensors) != "bool":
                return self.moved(expr, context, equation.target, dtype)
            if isinstance(expr, eq.Apply) and expr.function == "select":
                condition, yes, no = expr.args
                return apply(
                    "select", condition, lifted(yes, context.under(condition)),
                    lifted(no, context.under(negation(condition))),
                )  # fmt: skip
            if isinstance(expr, eq.Read) and expr.default is not None:
                outside = negation(eq.Inside(expr.tensor, expr.index))
                return eq.Read(
                    expr.tensor, expr.index, lifted(expr.default, context.under(outside))
                )
            if _absent(expr):
                return lifted(expr.args[1], context)
            if isinstance(expr, eq.Apply) and SCALARS[expr.function].kind != "bool":
                return eq.rebuild(expr, lambda part: lifted(part, context))
            return expr

        return eq.Equation(
            equation.target, equation.binders, shell(equation.body, context), equation.info
        )

    def moved(self, expr: eq.Reduce, context: Context, base: str, dtype: str) -> eq.Expr:
        """A reduction as an equation of its own; what reads it."""
        found = kind(expr, self.tensors)
        guard = () if self.harmless(expr, context) else context.conditions
        used = eq.indices(expr).union(*map(eq.indices, guard))
        body: eq.Expr = expr
        for condition in reversed(guard):
            body = apply("select", self.refreshed(condition), body, eq.Const(0))
        own = (
            dtype
            if found == "real" and self.tensors[base].kind == "real"
            else DEFAULT_OF_KIND[found]
        )
        return self.define(base, body, [b for b in context.binders if b[0] in used], own)

    def harmless(self, expr: eq.Expr, context: Context) -> bool:
        """Whether an expression can be evaluated where its value is not wanted."""
        bounds = {**context.extents, **bounds_of(expr)}
        for part in eq.walk(expr):
            if isinstance(part, eq.Read) and part.default is None:
                if not surely_inside(part, bounds, self.tensors):
                    return False
            elif isinstance(part, eq.Reduce) and part.kind in ("the", "argmax", "argmin"):
                return False
        return True

    def inside(self, expr: eq.Reduce, context: Context) -> Context:
        """The context of a reduction's body; bounds that are not known become conditions."""
        binders = list(context.binders)
        conditions: list[eq.Expr] = []
        for name, bound in expr.binders:
            if isinstance(bound, (eq.Const, eq.Size)):
                binders.append((name, max(int(bound.value), 0)))
                continue
            bounds = {n: eq.Const(e) for n, e in binders}
            reach = interval(bound, bounds, self.tensors)
            if reach is None:
                raise fail(
                    "gradient.bound",
                    f"no gradient: the range of `{name}` depends on the values of elements",
                )
            binders.append((name, max(int(reach[1]), 0)))
            conditions.append(apply("<", eq.Index(name), bound))
        if expr.where is not None:
            conditions.append(expr.where)
        return Context(tuple(binders), (*context.conditions, *conditions), context.factors)


def _absent(expr: eq.Expr) -> TypeGuard[eq.Apply]:
    """Whether an expression adds to an optional input that was not given."""
    return isinstance(expr, eq.Apply) and expr.function == "+" and is_number(expr.args[0], 0)


def _names(equation: eq.Equation) -> list[str]:
    return [*(name for name, _ in equation.binders), *bounds_of(equation.body)]


def renamed(expr: eq.Expr, names: dict[str, str]) -> eq.Expr:
    """An expression with other names for indices, bound ones among them."""
    if isinstance(expr, eq.Index):
        return eq.Index(names.get(expr.name, expr.name))
    expr = eq.rebuild(expr, lambda part: renamed(part, names))
    if isinstance(expr, eq.Reduce):
        binders = tuple((names.get(name, name), bound) for name, bound in expr.binders)
        return eq.Reduce(expr.kind, binders, expr.where, expr.body)
    return expr


# ---- which tensors take part ------------------------------------------------------------------

_WHOLE = ("bool", "int")


def stops(expr: eq.Expr, stopping: bool = True) -> bool:
    """Whether an expression is one through which no gradient flows; without `stopping`, no error
    of what is inside of it.
    """
    own = expr.function if isinstance(expr, eq.Apply) else ""
    return own == "approximate" or (stopping and own == "constant")


def _passing(expr: eq.Expr, stopping: bool = True) -> frozenset[str]:
    """The tensors that are read where a gradient flows: not in what is compared or counted; without
    `stopping`, those whose errors are passed on.
    """
    whole = stopping and isinstance(expr, eq.Apply) and SCALARS[expr.function].kind in _WHOLE
    if whole or stops(expr, stopping):
        return frozenset()
    own = {expr.tensor} if isinstance(expr, eq.Read) else set()
    return frozenset(own.union(*(_passing(part, stopping) for part in eq.children(expr))))


def reaching(
    sources: Iterable[str],
    equations: Iterable[eq.Equation],
    tensors: Mapping[str, eq.TensorInfo],
    *,
    stopping: bool = False,
) -> set[str]:
    """The real tensors that one of `sources` disturbs; `stopping`: not by way of `constant`."""
    found = set(sources)
    real = (e for e in equations if e.target not in found and tensors[e.target].kind == "real")
    left = {e.target: _passing(e.body, stopping) for e in real}
    while new := {target for target, needs in left.items() if needs & found}:
        found |= new
        for target in new:
            del left[target]
    return found


def reading(
    targets: Iterable[str], equations: Mapping[str, eq.Equation], *, stopping: bool = False
) -> tuple[str, ...]:
    """All tensors that `targets` depend on, and themselves: each after those that it reads.
    `stopping`: those to which something flows from them.

    Recurrences apart: there it comes after those that were not met before it.
    """
    read = _passing if stopping else eq.reads
    found: dict[str, None] = {}
    met: set[str] = set()
    pending = [(name, False) for name in reversed(tuple(targets))]
    while pending:
        name, known = pending.pop()
        if known:
            found[name] = None
        elif name not in met:
            met.add(name)
            pending.append((name, True))
            if name in equations:
                needs = sorted(read(equations[name].body))
                pending += [(need, False) for need in needs if need not in met]
    return tuple(found)


def cleaned(
    outputs: Sequence[str],
    equations: dict[str, eq.Equation],
    tensors: dict[str, eq.TensorInfo],
) -> tuple[eq.Equation, ...]:
    """What the outputs need, without equations that only copy a tensor."""
    copies: dict[str, str] = {}
    for equation in equations.values():
        body = equation.body
        names = tuple(eq.Index(name) for name, _ in equation.binders)
        copied = (
            isinstance(body, eq.Read) and body.index == names and equation.target not in outputs
        )
        if copied and isinstance(body, eq.Read) and tensors[body.tensor] == equation.info:
            copies[equation.target] = body.tensor

    def source(name: str) -> str:
        while name in copies:
            name = copies[name]
        return name

    def redirected(expr: eq.Expr) -> eq.Expr:
        expr = eq.rebuild(expr, redirected)
        if isinstance(expr, eq.Read) and expr.tensor in copies:
            return eq.Read(source(expr.tensor), expr.index, expr.default)
        if isinstance(expr, eq.Inside) and expr.tensor in copies:
            return eq.Inside(source(expr.tensor), expr.index)
        return expr

    kept = {
        e.target: eq.Equation(e.target, e.binders, redirected(e.body), e.info)
        for e in equations.values()
        if e.target not in copies
    }
    return tuple(kept[name] for name in reading(outputs, kept) if name in kept)
