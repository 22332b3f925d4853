"""Where the statements of a model are checked: the names in sight, and what they stand for."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from irlang import ast
from irlang.diagnostics import Diagnostic, InvalidInput, Span, fail
from irlang.evaluate import Evaluator
from irlang.scope import CONSTANTS, Scope

evaluate = Evaluator()


@dataclass(slots=True)
class Frame:
    """A model's body, a block's, or one round of a repetition.

    names: sizes, constants and attributes. values: source name -> value of the graph, None where a
    fault hides it. hidden: names of numbers that a fault leaves unknown. choices: the words that
    attributes are given, each standing for itself. prefix: of the values made here.
    """

    names: dict[str, Any]
    choices: Mapping[str, str]
    values: dict[str, str | None] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    own: set[str] = field(default_factory=set)
    prefix: str = ""

    def number(self, node: ast.Expr) -> Any:
        """What an expression is worth. Raises `InvalidInput`: `model.…`, or without a diagnostic
        where the expression depends on what is reported already.
        """
        return self._evaluate(node, self.names)

    def setting(self, node: ast.Expr) -> Any:
        """`number`, or a word such as `same`: the value of an attribute, or of a `let`."""
        if isinstance(node, ast.Number):
            return node.value
        if isinstance(node, ast.Name) and node.id in self.choices and node.id not in self.names:
            return self.choices[node.id]
        return self._evaluate(node, {**self.choices, **self.names})

    def _evaluate(self, node: ast.Expr, names: dict[str, Any]) -> Any:
        if isinstance(node, ast.Number):
            return node.value
        try:
            if self.hidden:
                mentioned = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
                if mentioned & self.hidden:
                    raise InvalidInput
            return evaluate.known(node, Scope(names, {}, set()))
        except InvalidInput as error:
            raise InvalidInput(*(self._in_model(d) for d in error.diagnostics)) from None
        except RecursionError:
            raise fail("model.depth", "the expression nests too deeply", node.span) from None

    def _in_model(self, diagnostic: Diagnostic) -> Diagnostic:
        """A fault of an expression, in the words of models."""
        code = diagnostic.code.replace("definition.", "model.")
        if code != "model.name":
            return replace(diagnostic, code=code)
        name = diagnostic.message.split("`")[1]
        if name in self.values:
            message = f"`{name}` is a tensor; a number that is known beforehand is needed"
            return replace(diagnostic, code="model.number", message=message)
        return replace(diagnostic, code=code, help=self.near(name))

    def is_number(self, node: ast.Expr) -> bool:
        """Whether an operand is a number rather than a tensor."""
        if isinstance(node, ast.Name):
            known = node.id in self.names or node.id in CONSTANTS or node.id in self.hidden
            return known and node.id not in self.values
        return not isinstance(node, ast.Call)

    def near(self, name: str) -> str:
        """The help for a name that is not known."""
        return suggestion(name, (*self.values, *self.names))

    def taken(self, name: str) -> bool:
        """Whether a name has a meaning already that may not be replaced here."""
        return name in self.own or name in self.names or name in self.hidden


def suggestion(name: str, known: Iterable[str]) -> str:
    """`did you mean …?` with the names that look like `name`; empty if none does."""
    return meant(difflib.get_close_matches(name, list(known), n=3, cutoff=0.55))


def meant(near: Sequence[str]) -> str:
    """`did you mean …?` with these names; empty if there are none."""
    return f"did you mean {' or '.join(f'`{n}`' for n in near)}?" if near else ""


def at(error: InvalidInput, span: Span) -> InvalidInput:
    """The same faults at another place."""
    return InvalidInput(*(d.at(span) for d in error.diagnostics))
