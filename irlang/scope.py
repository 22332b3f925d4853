"""Names and values of a definition while it is evaluated, and how values enter equations.

A value is

- a Python number, bool or string (`Fraction` for a quotient of integers),
- a tuple: the sizes of `S..`, an attribute with one number an axis, the indices of `s..`,
- an `irlang.equations` expression: it depends on indices or on elements of tensors,
- a `Macro` (`let f(a) = …`), a `TensorRef` or a `FamilyRef`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from irlang import ast
from irlang import equations as eq
from irlang.diagnostics import InvalidInput, Span, fail
from irlang.parser.printer import print_expr

Value = Any
RESIDUAL = (eq.Const, eq.Size, eq.Index, eq.Read, eq.Inside, eq.Apply, eq.Reduce)
RESIDUAL_KINDS = frozenset(RESIDUAL)  # none of them has subclasses
CONSTANTS: dict[str, Value] = {
    "true": True, "false": False, "inf": math.inf, "nan": math.nan, "pi": math.pi, "e_": math.e,
}  # fmt: skip


class Unbound(InvalidInput):
    """A name has no value (yet): a default may refer to a size that is bound later."""


@dataclass(slots=True)
class Macro:
    """`let f(a, b) = body`, with the scope that it sees."""

    params: tuple[str, ...]
    body: ast.Expr
    scope: Scope


@dataclass(slots=True)
class TensorRef:
    """A tensor in scope.

    placement: actual axis of every declared axis, in declared order; sizes: the declared size of
    every declared axis; an axis whose actual size is 1 and whose declared size is not is
    broadcast, and the first `len(sizes) - rank` declared axes are absent. constant: the default
    of an input that was not given. kind: of its elements.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    kind: str
    placement: tuple[int, ...]
    sizes: tuple[int, ...]
    broadcast: bool = False
    constant: eq.Expr | None = None


@dataclass(slots=True)
class FamilyRef:
    """The members of a variadic input or output."""

    members: tuple[TensorRef, ...]


@dataclass(slots=True)
class Scope:
    """Names and their values; `labels` are source texts of values known only inside a macro."""

    names: dict[str, Value]
    labels: dict[str, str]
    used: set[str]  # index names already taken in this expansion

    def inner(self) -> Scope:
        """A scope for new names, over this one."""
        return Scope(dict(self.names), dict(self.labels), self.used)

    def fresh(self, name: str) -> str:
        """An index name that no other binder of the expansion has."""
        candidate, count = name, 1
        while candidate in self.used:
            count += 1
            candidate = f"{name}_{count}"
        self.used.add(candidate)
        return candidate


def is_residual(value: Value) -> bool:
    """Whether a value is an equation expression, or a tuple that holds one."""
    kind = type(value)
    if kind is tuple:
        return any(map(is_residual, value))
    return kind in RESIDUAL_KINDS


def plain(value: Value) -> Value:
    """A truth value that is known, as such: the default of an input that was not given is one."""
    return value.value if isinstance(value, eq.Const) and isinstance(value.value, bool) else value


def lift(value: Value, label: str, span: Span) -> eq.Expr:
    """A scalar value as an equation expression."""
    if isinstance(value, RESIDUAL):
        return value
    if isinstance(value, (bool, int, float, Fraction)):
        if isinstance(value, bool) or label in ("", str(value)) or _is_number(label):
            return eq.Const(value)
        return eq.Size(label, value)
    raise fail("definition.value", f"`{label}` is not a number here", span)


def _is_number(text: str) -> bool:
    return text.lstrip("-").replace(".", "", 1).replace("e-", "", 1).isdigit() or text in CONSTANTS


def label(node: ast.Expr, scope: Scope) -> str:
    """The source text of a known value, with macro parameters replaced by what they stand for."""
    if isinstance(node, ast.Name):
        return scope.labels.get(node.id, node.id)
    if isinstance(node, ast.Read) and len(node.index) == 1:
        position = node.index[0]
        if not isinstance(position, (ast.Rest, ast.Each)):
            return f"{label(ast.Name(node.name), scope)}[{label(position, scope)}]"
    text, mentioned = _printed(node)
    used = mentioned & scope.labels.keys()
    return (
        text
        if not used
        else f"{text} where {', '.join(f'{n} = {scope.labels[n]}' for n in sorted(used))}"
    )


# What is read off an expression of a definition does not change, and is wanted for every call.
_texts: dict[int, tuple[ast.Node, str, frozenset[str]]] = {}
_names: dict[int, tuple[ast.Node, tuple[str, ...]]] = {}


def _printed(node: ast.Expr) -> tuple[str, frozenset[str]]:
    """The text of an expression, and the names in it."""
    found = _texts.get(id(node))
    if found is None or found[0] is not node:
        names = frozenset(n.id for n in ast.walk(node) if isinstance(n, ast.Name))
        found = _texts[id(node)] = (node, print_expr(node), names)
    return found[1], found[2]


def mentioned(node: ast.Node) -> tuple[str, ...]:
    """The names of values, tensors, rests and macros in an expression."""
    found = _names.get(id(node))
    if found is None or found[0] is not node:
        names: dict[str, None] = {}
        for part in ast.walk(node):
            match part:
                case ast.Name() | ast.Rest():
                    names[part.id] = None
                case ast.Read():
                    names[part.name] = None
                case ast.Call():
                    names[part.function] = None
        found = _names[id(node)] = (node, tuple(names))
    return found[1]


def show(value: Any) -> str:
    """A known value as a message shows it."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(show, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    return str(value)
