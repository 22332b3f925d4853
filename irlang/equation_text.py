"""Flat equations as text of the language: what a call means, or its gradient, for people to read.

Index names are shortened to what tells them apart within one equation. Sizes are printed as they
were written in the definition, or, in a definition of its own, as numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from fractions import Fraction

from irlang import ast
from irlang import equations as eq
from irlang.diagnostics import InvalidInput
from irlang.parser import parse_expr
from irlang.parser.printer import print_statement
from irlang.scalar import SCALARS

_BINARY = frozenset({"+", "-", "*", "/", "//", "%", "and", "or"})
_COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})


def show(expansion: eq.Expansion) -> str:
    """The equations, one after another, in the order in which they are given."""
    return "\n".join(map(print_statement, statements(expansion))) + "\n"


def statements(expansion: eq.Expansion) -> list[ast.Equation]:
    """The equations as syntax, with names that the language has."""
    writer = _Writer(lambda name: name.replace("'", "_"), numbers=False)
    return [writer.equation(equation) for equation in expansion.equations]


def definition(expansion: eq.Expansion, name: str) -> ast.Op:
    """A definition with these equations, for the sizes of this call only; names are made plain.

    What is left open is an input of it.
    """
    plain = _plain(expansion.tensors)
    writer = _Writer(plain.__getitem__, numbers=True)

    given = (*expansion.inputs, *(draw.tensor for draw in expansion.drawn))

    def typed(tensor: str) -> ast.TensorType:
        info = expansion.tensors[tensor]
        dims = tuple(ast.Dim("size", ast.Number(extent)) for extent in info.shape)
        return ast.TensorType(info.dtype, dims)

    return ast.Op(
        name,
        (),
        tuple(ast.Input(plain[tensor], typed(tensor)) for tensor in given),
        (),
        tuple(ast.Output(plain[tensor], typed(tensor)) for tensor in expansion.outputs),
        tuple(writer.equation(equation) for equation in expansion.equations),
    )


def _plain(tensors: Iterable[str]) -> dict[str, str]:
    """Names that the language has, all different."""
    found: dict[str, str] = {}
    for tensor in tensors:
        base = candidate = re.sub(r"\W+", "_", tensor).strip("_")
        count = 1
        while candidate in found.values():
            count += 1
            candidate = f"{base}_{count}"
        found[tensor] = candidate
    return found


class _Writer:
    """Equations as syntax trees. name: what a tensor is called; numbers: print no labels."""

    def __init__(self, name: Callable[[str], str], *, numbers: bool) -> None:
        self.name = name
        self.numbers = numbers
        self.indices: dict[str, str] = {}

    def equation(self, equation: eq.Equation) -> ast.Equation:
        """An equation; every index has its bound on the left side."""
        bodies = [part for part in eq.walk(equation.body) if isinstance(part, eq.Reduce)]
        names = [n for n, _ in equation.binders] + [n for b in bodies for n, _ in b.binders]
        self.indices = _short(names)
        left = tuple(
            ast.Index(self.indices[name], self.expr(bound)) for name, bound in equation.binders
        )
        return ast.Equation(self.name(equation.target), left, self.expr(equation.body))

    def expr(self, expr: eq.Expr) -> ast.Expr:
        """An expression."""
        match expr:
            case eq.Const():
                return _number(expr.value)
            case eq.Size():
                return self._size(expr)
            case eq.Index():
                return ast.Name(self.indices[expr.name])
            case eq.Read():
                default = None if expr.default is None else self.expr(expr.default)
                return ast.Read(self.name(expr.tensor), self._each(expr.index), None, default)
            case eq.Inside():
                return ast.Call(
                    "inside", (ast.Read(self.name(expr.tensor), self._each(expr.index)),)
                )
            case eq.Apply():
                return self._apply(expr)
            case eq.Reduce():
                return ast.Reduce(
                    expr.kind,
                    tuple(ast.Binder(self.indices[n], self.expr(b)) for n, b in expr.binders),
                    None if expr.where is None else self.expr(expr.where),
                    None if expr.body is None else self.expr(expr.body),
                )

    def _each(self, parts: Iterable[eq.Expr]) -> tuple[ast.Expr, ...]:
        return tuple(map(self.expr, parts))

    def _size(self, expr: eq.Size) -> ast.Expr:
        """A number of the call: its label, where that is an expression of the language."""
        if not self.numbers:
            try:
                return parse_expr(expr.label)
            except InvalidInput:
                return _number(expr.value)
        return _number(expr.value)

    def _apply(self, expr: eq.Apply) -> ast.Expr:
        args = self._each(expr.args)
        if expr.function == "and":
            chain = _chained(args[0], args[1])
            return chain or ast.Binary("and", *args)
        if expr.function in _BINARY:
            return ast.Binary(expr.function, *args)
        if expr.function in _COMPARISONS:
            return ast.Chain(args, (expr.function,))
        if expr.function in ("neg", "not"):
            return ast.Unary("-" if expr.function == "neg" else "not", args[0])
        if expr.function == "select":
            return ast.If(*args)
        assert not SCALARS[expr.function].symbol
        return ast.Call(expr.function, args)


def _chained(left: ast.Expr, right: ast.Expr) -> ast.Chain | None:
    """`0 <= i and i < n` as `0 <= i < n`."""
    if not (isinstance(left, ast.Chain) and isinstance(right, ast.Chain)):
        return None
    if left.operands[-1] != right.operands[0] or {*left.ops, *right.ops} - {"<", "<="}:
        return None
    return ast.Chain((*left.operands, *right.operands[1:]), (*left.ops, *right.ops))


def _number(value: eq.Scalar) -> ast.Expr:
    if isinstance(value, bool):
        return ast.Name("true" if value else "false")
    if isinstance(value, Fraction):
        return ast.Binary("/", _number(value.numerator), _number(value.denominator))
    if math.isnan(value):
        return ast.Name("nan")
    if value < 0:
        return ast.Unary("-", _number(-value))
    return ast.Name("inf") if math.isinf(value) else ast.Number(value)


def _short(names: Iterable[str]) -> dict[str, str]:
    """Short names for indices: `s.0_12` is `s0`, or `s`, where no other index is called so."""
    found: dict[str, str] = {}
    for name in names:
        head, _, axis = name.split("_")[0].partition(".")
        base = candidate = re.sub(r"\W+", "", head) + axis
        count = 1
        while candidate in found.values():
            count += 1
            candidate = f"{base}_{count}"
        found[name] = candidate
    return found
