"""Which values of an input the functions of a definition are defined for: its domain.

A function or a divisor that reads an input directly says it at once; where results stand between
(a mean of squares under a root), the inputs that it is a sum or a product of are kept positive.
Non-goal: a proof, which the numerical analysis gives; here values are drawn.
"""

from __future__ import annotations

import math
from functools import cache

from irlang import ast
from irlang.parser import parse_expr
from irlang.scalar import SCALARS

Interval = tuple[float, float]
_DIVISOR = (0.0, math.inf)  # a divisor keeps to one side of zero
_BETWEEN = frozenset({"max", "min", "real", "sum", "prod", "the"})  # positive where these are


def domain(op: ast.Op, item: ast.Input) -> Interval | None:
    """The open interval of values for which the functions that read an input are defined."""
    low, high = -math.inf, math.inf
    positive = _Positive(op)
    for expression in (*positive.equations.values(), *positive.lets.values()):
        for part in ast.walk(expression):
            args: list[tuple[ast.Expr, Interval | None]] = []
            if isinstance(part, ast.Call):
                args = [(arg, _tame(part.function, i)) for i, arg in enumerate(part.args[:3])]
            elif isinstance(part, ast.Binary) and part.op in ("/", "//", "%"):
                args = [(part.right, _DIVISOR)]
            for arg, bounds in args:
                if bounds and (
                    _shifted(arg) == item.name
                    or (bounds is not _DIVISOR and bounds[0] == 0 and item.name in positive(arg))
                ):
                    low, high = max(low, bounds[0]), min(high, bounds[1])
    return (low, high) if low < high and low > -math.inf else None


@cache
def _tame(function: str, position: int) -> Interval | None:
    """The open interval of arguments for which a function is defined; None where all will do.

    A function of several arguments says so through its derivative: `y * log(a)` wants a > 0.
    """
    row = SCALARS.get(function)
    if row is None:
        return None
    low, high = row.domain
    if row.arity > 1:
        argument = "abc"[position]
        for text in filter(None, row.derivative):
            for part in ast.walk(parse_expr(text)):
                if isinstance(part, ast.Call) and part.args == (ast.Name(argument),):
                    low = max(low, SCALARS[part.function].domain[0])
    return None if low == -math.inf else (low, high)


def _shifted(node: ast.Expr) -> str:
    """The tensor whose element an expression is, but for a term without elements (an epsilon)."""
    if isinstance(node, ast.Binary) and node.op == "+" and not isinstance(node.right, ast.Read):
        node = node.left
    return node.name if isinstance(node, ast.Read) else ""


class _Positive:
    """Which inputs must be positive for an expression to be so, as far as that is plain to see."""

    def __init__(self, op: ast.Op) -> None:
        self.equations = {s.name: s.value for s in op.body if isinstance(s, ast.Equation)}
        self.lets = {s.name: s.value for s in op.body if isinstance(s, ast.Let)}
        self.names = {item.name for item in op.inputs}
        self._found: dict[str, frozenset[str]] = {}

    def __call__(self, node: ast.Expr) -> frozenset[str]:
        """Their names; none behind a function, which is taken to give what is positive."""
        match node:
            case ast.Read() if node.name in self.names:
                return frozenset({node.name})
            case ast.Read() if node.name in self.equations:
                return self.named(node.name, self.equations[node.name])
            case ast.Binary() if node.op == "+":
                return self(node.left) | self(node.right)
            case ast.Binary() if node.op in ("*", "/"):
                same = node.left == node.right  # a square
                return frozenset() if same else self(node.left) | self(node.right)
            case ast.If():
                return self(node.yes) | self(node.no)
            case ast.Match():
                return frozenset().union(*(self(arm) for _, arm in node.arms))
            case ast.Reduce() if node.kind in _BETWEEN and node.body is not None:
                return self(node.body)
            case ast.Call() if node.function in _BETWEEN:
                return frozenset().union(*map(self, node.args))
            case ast.Call() if node.function in self.lets:
                return self.named(node.function, self.lets[node.function])
            case _:
                return frozenset()

    def named(self, name: str, value: ast.Expr) -> frozenset[str]:
        """Those of a result or a function of the definition."""
        if name not in self._found:
            self._found[name] = frozenset()  # while it is looked for: a recurrence reads itself
            self._found[name] = self(value)
        return self._found[name]
