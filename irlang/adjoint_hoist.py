"""What a backward recurrence need not compute step by step.

Factors that read no member of their group are forward quantities: a gate's derivative is known for
all steps before the first one is taken. They become equations of their own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from irlang import equations as eq
from irlang.adjoint_forward import Workspace
from irlang.adjoint_terms import flat, product, safe, tame
from irlang.equation_rules import apply, whole

_LARGEST = 1 << 22  # elements of a factor that is laid out anew


def hoisted(
    equations: Sequence[eq.Equation], work: Workspace, backward: Iterable[str]
) -> tuple[eq.Equation, ...]:
    """The equations, with costly factors taken out of those of `backward` that are recurrences."""
    groups = _groups(equations)
    chosen = set(backward)
    found: list[eq.Equation] = []
    for equation in equations:
        group = groups[equation.target]
        if equation.target in chosen and equation.target in group:
            before = set(work.equations)
            body = _lifted(equation, equation.body, group, work)
            found += [work.equations[name] for name in work.equations if name not in before]
            equation = eq.Equation(equation.target, equation.binders, body, equation.info)
        found.append(equation)
    return tuple(found)


def _groups(equations: Sequence[eq.Equation]) -> dict[str, frozenset[str]]:
    """For every target, those that it needs and that need it."""
    needs = {e.target: eq.reads(e.body) for e in equations}
    reach: dict[str, set[str]] = {}
    for target in needs:
        pending, seen = list(needs[target]), set[str]()
        while pending:
            name = pending.pop()
            if name in needs and name not in seen:
                seen.add(name)
                pending += needs[name]
        reach[target] = seen
    return {
        target: frozenset(name for name in seen if target in reach[name])
        for target, seen in reach.items()
    }


def _lifted(
    equation: eq.Equation, expr: eq.Expr, group: frozenset[str], work: Workspace
) -> eq.Expr:
    if not eq.reads(expr) & group:
        return expr
    if isinstance(expr, eq.Reduce) and expr.kind == "sum" and expr.where is None:
        return _arranged(equation, expr, group, work)
    if not isinstance(expr, eq.Apply):
        return expr
    if expr.function == "*":
        factors = flat(expr)
        own = [f for f in factors if not eq.reads(f) & group]
        if not all(map(tame, own)):
            rest = [_lifted(equation, f, group, work) for f in factors if eq.reads(f) & group]
            return apply("*", product(rest), _defined(equation, product(own), (), work))
    if expr.function == "select":
        condition, *arms = expr.args
        return apply("select", condition, *(_lifted(equation, a, group, work) for a in arms))
    return eq.rebuild(expr, lambda part: _lifted(equation, part, group, work))


def _arranged(
    equation: eq.Equation, expr: eq.Reduce, group: frozenset[str], work: Workspace
) -> eq.Expr:
    """A sum of products whose constant factor lies in the order in which every step reads it."""
    extents = [(name, whole(bound)) for name, bound in expr.binders]
    inner = [(name, extent) for name, extent in extents if extent is not None]
    if expr.body is None or len(inner) < len(extents):
        return expr
    factors = flat(expr.body)
    own = [f for f in factors if not eq.reads(f) & group]
    rest = [f for f in factors if eq.reads(f) & group]
    if not own or not rest:
        return expr
    value = product(own)
    used = eq.indices(value)
    binders = [*_binders(equation, used), *((n, e) for n, e in inner if n in used)]
    order = tuple(eq.Index(name) for name, _ in binders)
    ready = isinstance(value, eq.Read) and value.index == order
    if ready or math.prod(extent for _, extent in binders) > _LARGEST:
        return expr
    body = apply("*", product(rest), _defined(equation, value, inner, work))
    return eq.Reduce(expr.kind, expr.binders, None, body)


def _binders(equation: eq.Equation, used: frozenset[str]) -> list[tuple[str, int]]:
    pairs = zip((name for name, _ in equation.binders), equation.info.shape, strict=True)
    return [(name, extent) for name, extent in pairs if name in used]


def _defined(
    equation: eq.Equation, value: eq.Expr, inner: Sequence[tuple[str, int]], work: Workspace
) -> eq.Expr:
    """A tensor of the values, over the indices of the equation and then `inner`."""
    used = eq.indices(value)
    binders = [*_binders(equation, used), *((n, e) for n, e in inner if n in used)]
    bounds = {name: eq.Const(extent) for name, extent in binders}
    body = safe(work.refreshed(value), bounds, work.tensors)
    return work.define(equation.target, body, binders, equation.info.dtype)
