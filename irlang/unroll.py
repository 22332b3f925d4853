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
    """The reduction of terms that are written out, each with its condition."""
    kind, span = node.kind, node.span
    if kind == "the":
        return _the(node, terms)
    function = _FUNCTIONS.get(kind)
    if function is None:
        raise fail("definition.unroll", f"`{kind}` does not range over axes", span)
    neutral = EMPTY[kind]
    result: Value = None
    for where, term in terms:
        if where is not True:
            term = eq.Apply(
                "select", (lift(where, "", span), _lifted(term, span), eq.Const(neutral))
            )
        if result is None:
            result = term
        elif isinstance(result, Labelled) and isinstance(term, Labelled):
            result = Labelled(
                KNOWN[function](result.value, term.value), f"{function}({result.text}, {term.text})"
            )
        else:
            result = eq.Apply(function, (_lifted(result, span), _lifted(term, span)))
    if result is None:
        return neutral
    return result.value if isinstance(result, Labelled) else result


def _the(node: ast.Reduce, terms: list[tuple[Value, Value]]) -> Value:
    if not terms:
        raise fail("definition.the", "no value satisfies the condition of `the`", node.span)
    *earlier, (_, result) = terms
    for where, term in reversed(earlier):
        if where is True:
            result = term
        else:
            span = node.span
            result = eq.Apply(
                "select", (lift(where, "", span), _lifted(term, span), _lifted(result, span))
            )
    return result.value if isinstance(result, Labelled) else result
