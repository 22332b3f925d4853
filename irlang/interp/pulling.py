"""Adjoint equations for many cotangents at once: rows of a Jacobian.

Every equation that something flows back through gets one more index, in front, that says which of
the cotangents is meant; what does not depend on them is computed once.
"""

from __future__ import annotations

from dataclasses import replace

from irlang import equations as eq
from irlang.adjoint import adjoint

PREFIX = "flow~"  # no tensor of a gradient, which may be an expansion itself, is called so


def pulled(
    expansion: eq.Expansion,
    wanted: tuple[str, ...],
    seeds: tuple[str, ...],
    rows: int,
    ties: str,
) -> eq.Expansion:
    """The adjoint equations of an expansion, for `rows` cotangents at once.

    Inputs: those of the expansion, and for every seed `y` what flows back to it, `PREFIX` and its
    name, of the shape of `y` with an axis of `rows` in front. Outputs: what flows back to every
    wanted tensor, in their order, of such a shape. ties: see `irlang.adjoint.adjoint`.
    """
    key = f"{__name__} {wanted} {seeds} {rows} {ties}"
    if key not in expansion.notes:
        one = adjoint(expansion, wanted, seeds, ties=ties, prefix=PREFIX, stopping=False)
        expansion.notes[key] = _repeated(one, {PREFIX + name for name in seeds}, rows)
    found: eq.Expansion = expansion.notes[key]
    return found


def _repeated(expansion: eq.Expansion, seeds: set[str], rows: int) -> eq.Expansion:
    """The same for every row of its seeds, which are linear in it."""
    flowing = seeds | set(expansion.outputs)  # one that nothing flows to is zero for every row
    grown = True
    while grown:
        more = {e.target for e in expansion.equations if flowing & _tensors(e.body)} - flowing
        grown = bool(more)
        flowing |= more
    size = eq.Size("rows", rows)
    tensors = {
        name: eq.TensorInfo((rows, *info.shape), info.dtype) if name in flowing else info
        for name, info in expansion.tensors.items()
    }
    equations = []
    for e in expansion.equations:
        if e.target in flowing:
            row = f"row@{e.target}"
            body = _with_row(e.body, flowing, eq.Index(row))
            e = replace(e, binders=((row, size), *e.binders), body=body, info=tensors[e.target])
        equations.append(e)
    return replace(expansion, equations=tuple(equations), tensors=tensors, notes={})


def _tensors(expr: eq.Expr) -> set[str]:
    return {part.tensor for part in eq.walk(expr) if isinstance(part, (eq.Read, eq.Inside))}


def _with_row(expr: eq.Expr, flowing: set[str], row: eq.Index) -> eq.Expr:
    expr = eq.rebuild(expr, lambda part: _with_row(part, flowing, row))
    if isinstance(expr, (eq.Read, eq.Inside)) and expr.tensor in flowing:
        return replace(expr, index=(row, *expr.index))
    return expr
