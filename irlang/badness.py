"""How far a condition is from holding, and what its message says with the actual numbers in it."""

from __future__ import annotations

import re
from typing import Any

from irlang import ast
from irlang.diagnostics import InvalidInput
from irlang.evaluate import Evaluator
from irlang.parser import parse_expr
from irlang.scope import Scope, is_residual, show

evaluate = Evaluator()


def interpolate(message: str, scope: Scope) -> str:
    """The message of a `require` with the actual numbers in place of `{expressions}`."""

    def value(match: re.Match[str]) -> str:
        try:
            found = evaluate(parse_expr(match.group(1)), scope)
        except InvalidInput:
            return match.group(1)
        return match.group(1) if is_residual(found) else show(found)

    return re.sub(r"\{([^{}]+)\}", value, message)


def badness(node: ast.Expr, scope: Scope) -> float:
    """How far a condition is from holding; 0 where it holds."""
    value = evaluate(node, scope)
    if value is True:
        return 0.0
    if isinstance(node, ast.Chain):
        operands = [evaluate(operand, scope) for operand in node.operands]
        return sum(_distance(op, operands[i], operands[i + 1]) for i, op in enumerate(node.ops))
    if isinstance(node, ast.Binary) and node.op == "and":
        return badness(node.left, scope) + badness(node.right, scope)
    if isinstance(node, ast.Binary) and node.op == "or":
        return min(badness(node.left, scope), badness(node.right, scope))
    if isinstance(node, ast.If):
        chosen = node.yes if evaluate(node.condition, scope) is True else node.no
        return badness(chosen, scope)
    if isinstance(node, ast.Reduce) and node.kind == "all" and node.body and len(node.binders) == 1:
        return sum(badness(node.body, inner) for inner in _each(node, scope))
    return 1.0


def _each(node: ast.Reduce, scope: Scope) -> list[Scope]:
    found = []
    bound = evaluate(node.binders[0].bound, scope)
    for i in range(bound if isinstance(bound, int) else 0):
        inner = scope.inner()
        inner.names[node.binders[0].name] = i
        if node.where is None or evaluate(node.where, inner) is True:
            found.append(inner)
    return found


def _distance(op: str, left: Any, right: Any) -> float:
    if isinstance(left, tuple) or isinstance(right, tuple):
        length = max(len(v) for v in (left, right) if isinstance(v, tuple))
        pairs = zip(
            *(v if isinstance(v, tuple) else (v,) * length for v in (left, right)), strict=False
        )
        return sum(_distance(op, a, b) for a, b in pairs)
    if isinstance(left, str) or isinstance(right, str):
        return float((left == right) != (op == "=="))
    gap = float(left) - float(right)
    strict = 1.0 if isinstance(left, int) and isinstance(right, int) else 1e-9
    return {
        "==": abs(gap),
        "!=": 0.0 if gap else 1.0,
        "<=": max(gap, 0.0),
        ">=": max(-gap, 0.0),
        "<": max(gap + strict, 0.0) if gap >= 0 else 0.0,
        ">": max(-gap + strict, 0.0) if gap <= 0 else 0.0,
    }[op]
