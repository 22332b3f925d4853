"""The equations of one call with its numbers put in: what the definition says of this call alone.

Sizes and attributes become numbers, branches that they decide go, an index that has one value is
that value, a sum of one term is the term, and what is read inside a tensor in any case has no
value for outside, and what is outside in any case is that value. So a convolution without padding
has no `?? 0`, and one of groups = 1 no group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from irlang import equations as eq
from irlang.equation_rules import is_false, is_true, simplify, whole

_EMPTY: dict[str, eq.Scalar] = {"sum": 0, "prod": 1, "count": 0, "any": False, "all": True}
_SINGLE = frozenset({"sum", "prod", "max", "min", "any", "all", "the"})
_ROUNDS = 4  # of simplifying, each of which may decide more

Tensors = Mapping[str, eq.TensorInfo]
Bounds = Mapping[str, eq.Expr]


def for_call(expansion: eq.Expansion) -> eq.Expansion:
    """The expansion with its equations simplified for its sizes; values stay the same."""
    made = tuple(_equation(equation, expansion.tensors) for equation in expansion.equations)
    return replace(expansion, equations=made, notes={})


def _equation(equation: eq.Equation, tensors: Tensors) -> eq.Equation:
    binders = tuple((name, _numbers(bound)) for name, bound in equation.binders)
    body = eq.substitute(_numbers(equation.body), _fixed(binders))
    for _ in range(_ROUNDS):
        before = body
        body = _reduced(simplify(body, dict(binders), tensors, deep=True), dict(binders), tensors)
        if body == before:
            break
    return replace(equation, binders=binders, body=body)


def _numbers(expr: eq.Expr) -> eq.Expr:
    """The expression with a number for every label."""
    if isinstance(expr, eq.Size):
        return eq.Const(expr.value)
    return eq.rebuild(expr, _numbers)


def _fixed(binders: tuple[tuple[str, eq.Expr], ...]) -> dict[str, eq.Expr]:
    """Indices that have one value."""
    return {name: eq.Const(0) for name, bound in binders if whole(bound) == 1}


def _reduced(expr: eq.Expr, bounds: Bounds, tensors: Tensors) -> eq.Expr:
    """The expression without reductions of one term or none, and defaults that are not needed."""
    if isinstance(expr, eq.Reduce):
        return _reduction(expr, bounds, tensors)
    made = eq.rebuild(expr, lambda part: _reduced(part, bounds, tensors))
    if isinstance(made, eq.Read) and made.default is not None:
        inside = simplify(eq.Inside(made.tensor, made.index), bounds, tensors)
        if is_false(inside):  # as the step before the first is
            return made.default
        return eq.Read(made.tensor, made.index) if is_true(inside) else made
    if isinstance(made, eq.Apply) and made.function == "ceildiv":
        over, by = map(whole, made.args)
        if over is not None and by:
            return eq.Const(-(-over // by))
    return made


def _reduction(expr: eq.Reduce, bounds: Bounds, tensors: Tensors) -> eq.Expr:
    if expr.kind in _EMPTY and any(whole(bound) == 0 for _, bound in expr.binders):
        return eq.Const(_EMPTY[expr.kind])
    if expr.kind in ("argmax", "argmin"):
        fixed, binders = {}, expr.binders  # the index is the result
    else:
        fixed = _fixed(expr.binders)
        binders = tuple(pair for pair in expr.binders if pair[0] not in fixed)
    inner = {**bounds, **dict(binders)}
    where = body = None
    if expr.where is not None:
        where = _reduced(eq.substitute(expr.where, fixed), inner, tensors)
        where = None if is_true(where) else where
    if expr.body is not None:
        body = _reduced(eq.substitute(expr.body, fixed), inner, tensors)
    if not binders and where is None and body is not None and expr.kind in _SINGLE:
        return body
    if not binders:  # the language has no reduction without an index
        return eq.Reduce(expr.kind, expr.binders, where, body)
    return eq.Reduce(expr.kind, binders, where, body)
