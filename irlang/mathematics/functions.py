"""Functions that mathematics writes in its own way: `e^x`, `√x`, `⌈a / b⌉`, `|x|`, …"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from irlang import ast
from irlang.mathematics.form import (
    Big,
    Cases,
    Fence,
    Form,
    Fraction,
    Number,
    Root,
    Script,
    Sign,
    Symbol,
    Words,
    inside,
    listed,
    row,
    width,
)
from irlang.mathematics.notation import (
    ATOM,
    COMPARISON,
    FACTOR,
    PRODUCT,
    SUM,
    Made,
    fenced,
    infix,
)

_WIDEST_EXPONENT = 24


class Builder(Protocol):
    """What makes forms of expressions (`irlang.mathematics.build`)."""

    def made(self, node: ast.Expr) -> Made:
        """A form, and how tightly it holds together."""

    def form(self, node: ast.Expr, level: int = 0) -> Form:
        """A form, in parentheses where it holds together less tightly than `level`."""

    def operand(self, node: ast.Expr, level: int, *, last: bool = True) -> Form:
        """A part of an operation."""


Special = Callable[[Builder, tuple[ast.Expr, ...]], Made]


def _between(left: str, right: str) -> Special:
    return lambda build, args: (fenced(build.form(args[0]), left, right), ATOM)


def _exp(build: Builder, args: tuple[ast.Expr, ...]) -> Made:
    exponent = build.form(args[0])
    tall = any(isinstance(part, (Cases, Big, Fence)) for part in inside(exponent))
    if tall or width(exponent) > _WIDEST_EXPONENT:
        return row(Symbol("exp"), fenced(exponent)), ATOM
    return Script(Symbol("e"), sup=exponent), FACTOR


def _expm1(build: Builder, args: tuple[ast.Expr, ...]) -> Made:
    return row(_exp(build, args)[0], infix("−"), Number("1")), SUM


def _log1p(build: Builder, args: tuple[ast.Expr, ...]) -> Made:
    return row(
        Symbol("ln"), fenced(row(Number("1"), infix("+"), build.operand(args[0], PRODUCT)))
    ), ATOM


def _softplus(build: Builder, args: tuple[ast.Expr, ...]) -> Made:
    return row(Symbol("ln"), fenced(row(Number("1"), infix("+"), _exp(build, args)[0]))), ATOM


def _log_of_sum(build: Builder, args: tuple[ast.Expr, ...]) -> Made:
    first, second = (_exp(build, (arg,))[0] for arg in args)
    return row(Symbol("ln"), fenced(row(first, infix("+"), second))), ATOM


def _power(build: Builder, args: tuple[ast.Expr, ...]) -> Made:
    return Script(build.operand(args[0], ATOM, last=False), sup=build.form(args[1])), FACTOR


def _square(build: Builder, args: tuple[ast.Expr, ...]) -> Made:
    return Script(build.operand(args[0], ATOM, last=False), sup=Number("2")), FACTOR


def _root(build: Builder, args: tuple[ast.Expr, ...]) -> Made:
    return Root(build.form(args[0])), ATOM


def _inverse_root(build: Builder, args: tuple[ast.Expr, ...]) -> Made:
    return Fraction(Number("1"), Root(build.form(args[0]))), FACTOR


def _ceiling_of_quotient(build: Builder, args: tuple[ast.Expr, ...]) -> Made:
    return fenced(Fraction(build.form(args[0]), build.form(args[1])), "⌈", "⌉"), ATOM


def _is_nan(build: Builder, args: tuple[ast.Expr, ...]) -> Made:
    return row(build.operand(args[0], SUM), Words(" is NaN")), COMPARISON


def _is_infinite(build: Builder, args: tuple[ast.Expr, ...]) -> Made:
    absolute = fenced(build.form(args[0]), "|", "|")
    return row(absolute, infix("=", "relation"), Symbol("∞")), COMPARISON


def _is_integral(build: Builder, args: tuple[ast.Expr, ...]) -> Made:
    return row(build.form(args[0]), Words(" holds integers")), COMPARISON


def _extreme(word: str) -> Special:
    return lambda build, args: (row(Symbol(word), fenced(build.form(args[0]))), ATOM)


def _product_of_sizes(build: Builder, args: tuple[ast.Expr, ...]) -> Made:
    """`size(S)`: the product of a list."""
    return row(Sign("∏", "prefix"), build.form(args[0], ATOM)), FACTOR


def _first_integers(build: Builder, args: tuple[ast.Expr, ...]) -> Made:
    last = row(build.operand(args[0], SUM, last=False), infix("−"), Number("1"))
    return fenced(listed([Number("0"), Symbol("…"), last])), ATOM


def _unchanged(build: Builder, args: tuple[ast.Expr, ...]) -> Made:
    """A conversion to real numbers, which changes no value."""
    return build.made(args[0])


SPECIAL: dict[str, Special] = {
    "abs": _between("|", "|"),
    "floor": _between("⌊", "⌋"),
    "ceil": _between("⌈", "⌉"),
    "ceildiv": _ceiling_of_quotient,
    "exp": _exp,
    "expm1": _expm1,
    "log1p": _log1p,
    "softplus": _softplus,
    "logaddexp": _log_of_sum,
    "pow": _power,
    "sq": _square,
    "sqrt": _root,
    "rsqrt": _inverse_root,
    "isnan": _is_nan,
    "isinf": _is_infinite,
    "integral": _is_integral,
    "lowest": _extreme("least"),
    "largest": _extreme("greatest"),
    "size": _product_of_sizes,
    "range": _first_integers,
    "real": _unchanged,
}
