"""How many terms the equations of a definition have once its functions are written out.

A function that uses another twice, which uses another twice, and so on, is a short text and an
equation that no memory holds; it is refused before anything writes it out.
"""

from __future__ import annotations

from irlang import ast
from irlang.diagnostics import Diagnostic

_MOST_NESTED = 48  # functions inside one another
_MOST_TERMS = 200_000  # of a statement

Weight = dict[str, int]  # terms of an expression: under "", and how often each parameter stands


def oversize(op: ast.Op) -> list[Diagnostic]:
    """Functions that use themselves (`definition.depth`), and statements that would be too long
    (`definition.size`).
    """
    terms = _Terms(op)
    for statement in op.body:
        own = isinstance(statement, ast.Let) and statement.name in terms.functions
        weight = terms.function(statement.name, 0) if own else terms.weight(statement, (), 0)  # type: ignore[attr-defined]
        if sum(weight.values()) > _MOST_TERMS and not terms.found:
            message = f"more than {_MOST_TERMS} terms once its functions are written out"
            terms.report("definition.size", message, statement)
    return terms.found


class _Terms:
    """Weights of the functions of a definition, each computed once."""

    def __init__(self, op: ast.Op) -> None:
        self.op = op
        self.functions = {s.name: s for s in op.body if isinstance(s, ast.Let) and s.params}
        self.found: list[Diagnostic] = []
        self._weights: dict[str, Weight] = {}

    def report(self, code: str, message: str, node: ast.Node) -> None:
        """Records a fault."""
        self.found.append(Diagnostic(code, message, node.span, node=self.op.name))

    def weight(self, node: ast.Node, params: tuple[str, ...], depth: int) -> Weight:
        """The terms of an expression, inside a function with these parameters."""
        if isinstance(node, ast.Name) and node.id in params:
            return {node.id: 1}
        total: Weight = {"": 1}
        called = node.function if isinstance(node, ast.Call) else ""
        function = self.functions.get(called)
        own = self.function(called, depth) if function else {}
        total[""] += own.get("", 0)
        for number, child in enumerate(ast.children(node)):
            param = function.params[number] if function and number < len(function.params) else ""
            times = own.get(param, 0) if param else 1
            for name, count in self.weight(child, params, depth).items():
                total[name] = min(total.get(name, 0) + times * count, 10 * _MOST_TERMS)
        return total

    def function(self, name: str, depth: int) -> Weight:
        """The terms of a function's body."""
        if name not in self._weights:
            self._weights[name] = {"": 1}  # stands for one that is at fault
            function = self.functions[name]
            if name in self._uses(function):
                self.report("definition.depth", f"`{name}` uses itself", function)
            elif depth >= _MOST_NESTED:
                message = "too many functions inside one another"
                self.report("definition.depth", message, function)
            else:
                self._weights[name] = self.weight(function.value, function.params, depth + 1)
        return self._weights[name]

    def _uses(self, function: ast.Let) -> set[str]:
        """The functions that one uses, itself or by others."""
        found: set[str] = set()
        stack = [function]
        while stack:
            for part in ast.walk(stack.pop().value):
                name = part.function if isinstance(part, ast.Call) else ""
                if name in self.functions and name not in found:
                    found.add(name)
                    stack.append(self.functions[name])
        return found
