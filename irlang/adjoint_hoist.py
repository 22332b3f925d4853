"""What a backward recurrence need not compute step by step.

Factors that read no member of their group are forward quantities: a gate's derivative is known for
all steps before the first one is taken. They become equations of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from irlang import equations as eq
from irlang.adjoint_forward import Workspace
from irlang.adjoint_terms import flat, product, safe, tame
from irlang.equation_rules import apply


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
    if not isinstance(expr, eq.Apply) or not eq.reads(expr) & group:
        return expr
    if expr.function == "*":
        factors = flat(expr)
        own = [f for f in factors if not eq.reads(f) & group]
        if not all(map(tame, own)):
            rest = [_lifted(equation, f, group, work) for f in factors if eq.reads(f) & group]
            return apply("*", product(rest), _defined(equation, product(own), work))
    if expr.function == "select":
        condition, *arms = expr.args
        return apply("select", condition, *(_lifted(equation, a, group, work) for a in arms))
    return eq.rebuild(expr, lambda part: _lifted(equation, part, group, work))


def _defined(equation: eq.Equation, value: eq.Expr, work: Workspace) -> eq.Expr:
    pairs = zip((name for name, _ in equation.binders), equation.info.shape, strict=True)
    used = eq.indices(value)
    binders = [(name, extent) for name, extent in pairs if name in used]
    bounds = {name: eq.Const(extent) for name, extent in binders}
    body = safe(work.refreshed(value), bounds, work.tensors)
    return work.define(equation.target, body, binders, equation.info.dtype)
