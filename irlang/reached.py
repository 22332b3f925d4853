"""Which tensors of a call its results are made of.

What a definition computes for one choice of its attributes or types alone is left over for the
others, and so is what nobody takes of a definition that is used inside. No meaning has to see it.
"""

from __future__ import annotations

from collections.abc import Iterable

from irlang import equations as eq


def reached(equations: Iterable[eq.Equation], asked: Iterable[str]) -> set[str]:
    """The tensors that are asked for, and what leads to them.

    equations: masks of what is left open among them, which are read where their target is.
    """
    sources: dict[str, set[str]] = {}
    for equation in equations:
        parts = (equation.body, *(bound for _, bound in equation.binders))
        sources.setdefault(equation.target, set()).update(*map(tensors, parts))
    todo, found = list(asked), set[str]()
    while todo:
        target = todo.pop()
        if target not in found:
            found.add(target)
            todo += sources.get(target, ())
    return found


def tensors(expr: eq.Expr) -> set[str]:
    """The names of the tensors that are read, or asked whether a place lies inside."""
    return {part.tensor for part in eq.walk(expr) if isinstance(part, (eq.Read, eq.Inside))}
