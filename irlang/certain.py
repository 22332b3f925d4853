"""Equations without what speaks of radii alone: what a target is told, and what a reader is shown.

`x - about(x)` is 0, and as far off as x is: a definition says by it how far off libraries may be.
Written out it would be arithmetic of nobody's, and infinity less itself where x overflows.
"""

from __future__ import annotations

from dataclasses import replace

from irlang import equations as eq
from irlang.reached import reached
from irlang.reached import tensors as tensors_of

_NEUTRAL = {"+": 0, "*": 1}


def certain(expansion: eq.Expansion, slopes: bool, simple: bool = False) -> eq.Expansion:
    """The equations of an expansion with every `about` taken out, and `x - about(x)` as the 0 that
    it is; the expansion itself where it says nothing of either. slopes: whether gradients are asked
    for; if not, `constant(x)` is x as well. simple: `approximate(x, a)` is a, as a reader or a
    proof may have it, and not x, as a program has to.
    """
    bodies = [_plain(one.body, slopes, simple) for one in expansion.equations]
    pairs = list(zip(expansion.equations, bodies, strict=True))
    if all(body is one.body for one, body in pairs):
        return expansion
    return replace(expansion, equations=tuple(replace(e, body=b) for e, b in pairs), notes={})


def of_values(expansion: eq.Expansion) -> eq.Expansion:
    """An expansion without what speaks of radii alone, as the quotient that says how far off a
    determinant is: of values that is 0.
    """
    key = f"{__name__} values"
    if key not in expansion.notes:
        made = certain(expansion, slopes=False, simple=True)
        if made is not expansion:
            read = (tensors_of(check.condition) for check in made.checks)
            masks = (mask.target for mask in made.unspecified)
            kept = reached(
                (*made.equations, *made.unspecified), {*made.outputs, *masks}.union(*read)
            )
            equations = tuple(one for one in made.equations if one.target in kept)
            made = replace(made, equations=equations)
        expansion.notes[key] = made
    found: eq.Expansion = expansion.notes[key]
    return found


def _plain(expr: eq.Expr, slopes: bool, simple: bool) -> eq.Expr:
    if isinstance(expr, eq.Apply) and expr.function == "-":
        whole, part = expr.args
        if part == eq.Apply("about", (whole,)):
            return eq.Const(0)
    if simple and isinstance(expr, eq.Apply) and expr.function == "approximate":
        return _plain(expr.args[1], slopes, simple)
    found = eq.rebuild(expr, lambda part: _plain(part, slopes, simple))
    return found if found is expr and not _is_mark(expr) else _folded(found, slopes)


def _is_mark(expr: eq.Expr) -> bool:
    return isinstance(expr, eq.Apply) and expr.function in ("about", "constant")


def _folded(expr: eq.Expr, slopes: bool) -> eq.Expr:
    """What is left of an expression once something inside of it has become a number."""
    if not isinstance(expr, eq.Apply):
        return expr
    first, *rest = expr.args
    if expr.function == "about" or (
        expr.function == "constant" and (not slopes or isinstance(first, eq.Const))
    ):
        return first
    if expr.function == "select" and rest[0] == rest[1]:
        return rest[0]
    if expr.function in _NEUTRAL and rest[0] == eq.Const(_NEUTRAL[expr.function]):
        return first
    return expr
