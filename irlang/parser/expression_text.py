"""Expressions to text: one line with marks where it may break.

Parentheses are printed where the grammar needs them, and around two operands that are misread
without: `x[i] ?? 0`, and a reduction with more behind it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from irlang import ast
from irlang.parser.layout import ALL, END, FILL, NONE, SOFT, flat

# How tightly an expression holds together: the nonterminals of the grammar, loosest first.
EXPR, OR, AND, NOT, COMPARISON, ARITH, PRODUCT, FACTOR, UNARY, ATOM = range(10)

# Binary operators: their own level, and those that their operands need at least.
_BINARY = {
    "or": (OR, OR, AND),
    "and": (AND, AND, NOT),
    "in": (COMPARISON, ARITH, ARITH),
    "+": (ARITH, ARITH, PRODUCT),
    "-": (ARITH, ARITH, PRODUCT),
    "*": (FACTOR, FACTOR, UNARY),
    "/": (FACTOR, FACTOR, UNARY),
    "//": (FACTOR, FACTOR, UNARY),
    "%": (FACTOR, FACTOR, UNARY),
}
_QUANTIFIERS = ("all", "any")
_REDUCERS = ("sum", "prod", "max", "min", "argmax", "argmin", "the")
_ZEROS = "000000.0"  # more are easier counted for the reader
# What makes the scanner see a reduction where a call is meant.
_LIKE_BINDER = re.compile(r"[a-z_]\w*\s*(\.\.)?\s*<")

Printed = tuple[str, int]


def expr(node: ast.Expr, level: int = EXPR) -> str:
    """`node` where the grammar wants at least `level`, with marks."""
    text, own = _PRINTERS[type(node)](node)
    return text if own >= level else f"({text})"


def _operand(node: ast.Expr, level: int, *, last: bool = True) -> str:
    """As `_expr`, with the parentheses that the grammar can spare and a reader cannot."""
    if type(node) is ast.Read and node.default is not None:
        return f"({expr(node)})"
    if not last and _ends_in_reduction(node):
        return f"({expr(node)})"
    return expr(node, level)


def _ends_in_reduction(node: ast.Expr) -> bool:
    """Whether what follows `node` looks as if it belonged to the body of a reduction."""
    while True:
        match node:
            case ast.Binary():
                node = node.right
            case ast.Unary():
                node = node.operand
            case ast.Reduce():
                return node.body is not None
            case _:
                return False


def print_number(value: int | float) -> str:
    """A short text that reads back as the same number: `1e-5`, `0.1`, `3`, `2.0`, `5e11`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    text = repr(float(value))
    if text.endswith(_ZEROS):  # below 1e16, so that 16 digits say it
        text = re.sub(r"\.?0*e", "e", f"{value:.15e}")
    if "e" not in text:
        return text
    digits, exponent = text.split("e")
    return f"{digits}e{int(exponent)}"


def _number(node: ast.Number) -> Printed:
    text = print_number(node.value)
    return text, UNARY if text.startswith("-") else ATOM


def _text(node: ast.Text) -> Printed:
    return f'"{node.value}"', ATOM


def _name(node: ast.Name) -> Printed:
    return node.id, ATOM


def _unary(node: ast.Unary) -> Printed:
    if node.op == "not":
        return f"not {expr(node.operand, NOT)}", NOT
    operand = node.operand
    if _is_reduction(operand):
        return f"-{expr(operand)}", PRODUCT
    return f"-{_operand(operand, UNARY)}", UNARY


def _binary(node: ast.Binary) -> Printed:
    own, left, right = _BINARY[node.op]
    # A chain of one level is one group, so that its lines are indented alike.
    parts: list[str] = []
    while True:
        operand = node.right
        if own == FACTOR and not parts and _is_reduction(operand):
            own = PRODUCT
            text = expr(operand)
        else:
            text = _operand(operand, right, last=not parts)
        parts.append(f"{SOFT}{node.op} {text}")
        following = node.left
        if (
            type(following) is not ast.Binary
            or own == COMPARISON
            or _BINARY[following.op] != _BINARY[node.op]
            or (right == UNARY and _is_reduction(following.right))
        ):
            break
        node = following
    parts.append(_operand(node.left, left, last=False))
    return f"{FILL}{''.join(reversed(parts))}{END}", own


def _is_reduction(node: ast.Expr) -> bool:
    return type(node) is ast.Reduce and node.kind in _REDUCERS


def _chain(node: ast.Chain) -> Printed:
    final = len(node.ops) - 1
    parts = [_operand(node.operands[0], ARITH, last=False)]
    for position, op in enumerate(node.ops):
        operand = _operand(node.operands[position + 1], ARITH, last=position == final)
        parts.append(f"{SOFT}{op} {operand}")
    return f"{FILL}{''.join(parts)}{END}", COMPARISON


def _if(node: ast.If) -> Printed:
    condition, yes, no = expr(node.condition), expr(node.yes), expr(node.no)
    return f"{ALL}if {condition}{SOFT}then {yes}{SOFT}else {no}{END}", EXPR


def _match(node: ast.Match) -> Printed:
    arms = f",{SOFT}".join(f"{choice}: {expr(value)}" for choice, value in node.arms)
    return f"match {node.subject} {{{ALL}{SOFT}{arms}{END} }}", ATOM


def _call(node: ast.Call) -> Printed:
    args = [expr(arg) for arg in node.args]
    if args and node.function in (*_REDUCERS, *_QUANTIFIERS) and _LIKE_BINDER.match(flat(args[0])):
        args[0] = f"({args[0]})"
    inside = f",{SOFT}".join(args)
    if node.attrs:
        attrs = f",{SOFT}".join(f"{name} = {expr(value)}" for name, value in node.attrs)
        inside += f";{SOFT}{attrs}" if args else f"; {attrs}"
    return f"{node.function}({FILL}{NONE if inside else ''}{inside}{END})", ATOM


def _subscript(node: ast.Subscript) -> str:
    if type(node) is ast.Rest:
        return f"{node.id}.."
    if type(node) is ast.Each:
        return f"({expr(node.body)}).."
    return expr(node, ARITH)  # type: ignore[arg-type]


def _read(node: ast.Read) -> Printed:
    index = ", ".join([_subscript(part) for part in node.index])
    member = "" if node.member is None else f"[{_subscript(node.member)}]"
    default = "" if node.default is None else f"{SOFT}?? {expr(node.default, UNARY)}"
    text = f"{node.name}{member}[{index}]{default}"
    return (f"{FILL}{text}{END}" if default else text), ATOM


def _binder(node: ast.Binder) -> str:
    if node.rest:
        return f"{node.name}.. < {expr(node.bound)}.."
    return f"{node.name} < {expr(node.bound, ARITH)}"


def _reduce(node: ast.Reduce) -> Printed:
    binders = ", ".join([_binder(binder) for binder in node.binders])
    where = "" if node.where is None else f" | {expr(node.where)}"
    head = f"{node.kind}({binders}{where})"
    if node.body is None:
        return head, ATOM
    if node.kind in _QUANTIFIERS:
        return f"{FILL}{head}{SOFT}{expr(node.body)}{END}", EXPR
    return f"{FILL}{head}{SOFT}{expr(node.body, PRODUCT)}{END}", PRODUCT


def _arity(node: ast.Arity) -> Printed:
    return f"#{node.name}", ATOM


def _list(node: ast.ListOf) -> Printed:
    items = f",{SOFT}".join([expr(item) for item in node.items])
    return f"[{FILL}{items}{END}]", ATOM


def _comprehension(node: ast.Comprehension) -> Printed:
    condition = "" if node.condition is None else f"{SOFT}if {expr(node.condition)}"
    return f"[{FILL}{expr(node.body)}{SOFT}for {_binder(node.binder)}{condition}{END}]", ATOM


_PRINTERS: dict[type, Callable[[Any], Printed]] = {
    ast.Number: _number,
    ast.Text: _text,
    ast.Name: _name,
    ast.Unary: _unary,
    ast.Binary: _binary,
    ast.Chain: _chain,
    ast.If: _if,
    ast.Match: _match,
    ast.Call: _call,
    ast.Read: _read,
    ast.Reduce: _reduce,
    ast.Arity: _arity,
    ast.ListOf: _list,
    ast.Comprehension: _comprehension,
}
