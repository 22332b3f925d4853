"""Reductions over axes and members of a family, written out term by term at the call.

Such a range is structure: the bodies differ (`xs[0]` and `xs[1]` have shapes of their own), so that
no loop can stand for them.
"""

from __future__ import annotations

from dataclasses import dataclass

from irlang import ast
from irlang import equations as eq
from irlang.diagnostics import Span, fail
from irlang.known import EMPTY, KNOWN, LONGEST
from irlang.scope import FamilyRef, Macro, Scope, TensorRef, Value, is_residual, lift, mentioned

LIMIT = LONGEST
_TERMS = 32  # that are written one inside the other; more of them in groups of so many
_FUNCTIONS = {
    "sum": "+", "count": "+", "prod": "*", "max": "max", "min": "min", "all": "and", "any": "or",
}  # fmt: skip


@dataclass(slots=True)
class Labelled:
    """A known value on its way through an unrolled reduction, with its source text."""

    value: Value
    text: str


def _lifted(term: Value, span: Span) -> eq.Expr:
    return lift(term.value, term.text, span) if isinstance(term, Labelled) else lift(term, "", span)


def is_written_out(node: ast.Reduce, bound: ast.Expr, scope: Scope) -> bool:
    """Ranges over axes and members are structure; ranges over known values are arithmetic."""
    if isinstance(bound, ast.Arity) or (isinstance(bound, ast.Call) and bound.function == "rank"):
        return True
    own = node.binders[0].name
    for name in mentioned(node):
        value = scope.names.get(name)
        if name != own and (isinstance(value, (TensorRef, FamilyRef, Macro)) or is_residual(value)):
            return False
    return True


def combine(node: ast.Reduce, terms: list[tuple[Value, Value]]) -> Value:
    """The reduction of terms that are written out, each with its condition.

    Of very many, groups are reduced before what comes of them is: one expression inside another
    for each term would be deeper than what walks through expressions can follow.
    """
    if node.kind != "the" and node.kind not in _FUNCTIONS:
        raise fail("definition.unroll", f"`{node.kind}` does not range over axes", node.span)
    if not terms:
        if node.kind == "the":
            raise fail("definition.the", "no value satisfies the condition of `the`", node.span)
        return EMPTY[node.kind]
    reduced = _chosen if node.kind == "the" else _joined
    while len(terms) > _TERMS:
        groups = [terms[start : start + _TERMS] for start in range(0, len(terms), _TERMS)]
        terms = [reduced(node, group) for group in groups]
    _, result = reduced(node, terms)
    return result.value if isinstance(result, Labelled) else result


def _joined(node: ast.Reduce, terms: list[tuple[Value, Value]]) -> tuple[Value, Value]:
    """Some terms by the function of their reduction, which holds wherever they are."""
    function, span = _FUNCTIONS[node.kind], node.span
    neutral = eq.Const(EMPTY[node.kind])
    result: Value = None
    for where, term in terms:
        if where is not True:
            term = eq.Apply("select", (lift(where, "", span), _lifted(term, span), neutral))
        if result is None:
            result = term
        elif isinstance(result, Labelled) and isinstance(term, Labelled):
            result = Labelled(
                KNOWN[function](result.value, term.value), f"{function}({result.text}, {term.text})"
            )
        else:
            result = eq.Apply(function, (_lifted(result, span), _lifted(term, span)))
    return True, result


def _chosen(node: ast.Reduce, terms: list[tuple[Value, Value]]) -> tuple[Value, Value]:
    """The first of some terms whose condition holds, and whether one of these does."""
    span = node.span
    *earlier, (holds, result) = terms
    for where, term in reversed(earlier):
        if where is True:
            holds, result = True, term
            continue
        if holds is not True:
            holds = eq.Apply("or", (lift(where, "", span), lift(holds, "", span)))
        result = eq.Apply(
            "select", (lift(where, "", span), _lifted(term, span), _lifted(result, span))
        )
    return holds, result
