"""Kinds (`real`, `int`, `bool`) of expressions: of syntax, and of equations."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from irlang import ast
from irlang import equations as eq
from irlang.scalar import SCALARS
from irlang.scope import CONSTANTS, FamilyRef, Macro, Scope, TensorRef

_ORDER = {"bool": 0, "int": 1, "real": 2}
_EXAMPLE: dict[str | None, Any] = {"bool": True, "int": 0, "real": 0.5}
_REDUCTIONS = {"count": "int", "argmax": "int", "argmin": "int", "all": "bool", "any": "bool"}


def join(*kinds: str | None) -> str | None:
    """The wider kind; None is unknown and gives way."""
    present = [k for k in kinds if k is not None]
    return max(present, key=_ORDER.__getitem__) if present else None


def kind_of_value(value: Any) -> str | None:
    """The kind of a value of `irlang.evaluate`."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    if isinstance(value, (float, Fraction)):
        return "real"
    if isinstance(value, tuple):
        return join(*map(kind_of_value, value))
    if isinstance(value, TensorRef):
        return value.kind
    if isinstance(value, FamilyRef):
        return value.members[0].kind if value.members else None
    if isinstance(value, eq.Index):
        return "int"
    return None


def kind_of(node: ast.Expr, scope: Scope) -> str | None:
    """The kind of an expression of a definition; None where it only reads what is not known yet."""
    match node:
        case ast.Number():
            return kind_of_value(node.value)
        case ast.Name():
            return kind_of_value(scope.names.get(node.id, CONSTANTS.get(node.id)))
        case ast.Read():
            found = kind_of_value(scope.names.get(node.name))
            return join(found, kind_of(node.default, scope)) if node.default else found
        case ast.Unary():
            return "bool" if node.op == "not" else kind_of(node.operand, scope)
        case ast.Chain():
            return "bool"
        case ast.Binary():
            if node.op in ("and", "or", "in"):
                return "bool"
            if node.op == "/":
                return "real"
            return join(kind_of(node.left, scope), kind_of(node.right, scope), "int")
        case ast.If():
            return join(kind_of(node.yes, scope), kind_of(node.no, scope))
        case ast.Match():
            return _kind_of_match(node, scope)
        case ast.Reduce():
            return _kind_of_reduce(node, scope)
        case ast.Call():
            return _kind_of_call(node, scope)
        case _:
            return None


def _kind_of_match(node: ast.Match, scope: Scope) -> str | None:
    subject = scope.names.get(node.subject)
    arms = [arm for choice, arm in node.arms if choice == subject]
    return join(*(kind_of(arm, scope) for arm in arms or [a for _, a in node.arms]))


def _kind_of_reduce(node: ast.Reduce, scope: Scope) -> str | None:
    if node.kind in _REDUCTIONS:
        return _REDUCTIONS[node.kind]
    inner = scope.inner()
    for binder in node.binders:
        inner.names[binder.name] = 0
    return kind_of(node.body, inner) if node.body else "int"


def _kind_of_call(node: ast.Call, scope: Scope) -> str | None:
    macro = scope.names.get(node.function)
    if isinstance(macro, Macro):
        inner = macro.scope.inner()
        for param, arg in zip(macro.params, node.args, strict=False):
            inner.names[param] = _EXAMPLE.get(kind_of(arg, scope))
        return kind_of(macro.body, inner)
    if node.function == "inside":
        return "bool"
    row = SCALARS.get(node.function)
    if row is not None and row.kind != "same":
        return row.kind
    return join(*(kind_of(arg, scope) for arg in node.args))


def kind(expr: eq.Expr, tensors: Mapping[str, eq.TensorInfo]) -> str:
    """The kind of an equation expression."""
    match expr:
        case eq.Const() | eq.Size():
            return kind_of_value(expr.value) or "int"
        case eq.Index():
            return "int"
        case eq.Inside():
            return "bool"
        case eq.Read():
            own = tensors[expr.tensor].kind
            return own if expr.default is None else join(own, kind(expr.default, tensors)) or own
        case eq.Reduce():
            if expr.kind in _REDUCTIONS:
                return _REDUCTIONS[expr.kind]
            found = kind(expr.body, tensors) if expr.body is not None else "int"
            return "int" if found == "bool" and expr.kind in ("sum", "prod") else found
        case eq.Apply():
            row = SCALARS[expr.function]
            if row.kind != "same":
                return row.kind
            args = expr.args[1:] if expr.function == "select" else expr.args
            found = join(*(kind(arg, tensors) for arg in args)) or "real"
            return "int" if found == "bool" and expr.function in ("+", "-", "*", "neg") else found
