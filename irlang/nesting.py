"""Calls inside the calls of a definition: `r = softmax(scale(a))` uses two definitions whole.

Such a statement is taken apart into one a call, the innermost first. A value in between is named
`r.0`, which no name of a text can be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from irlang import ast
from irlang.instance import Definitions


def unnested(
    body: tuple[ast.Statement, ...], definitions: Definitions
) -> tuple[ast.Statement, ...]:
    """The statements of a definition, every one with a single use of another definition."""
    if not any(isinstance(statement, ast.Assign) for statement in body):
        return body
    found: list[ast.Statement] = []
    for statement in body:
        if isinstance(statement, ast.Assign):
            found += _apart(statement, definitions)
        else:
            found.append(statement)
    return tuple(found)


def whole_calls(call: ast.Call, definitions: Definitions) -> Iterator[ast.Call]:
    """The calls that stand where the definition that is called takes a tensor."""
    op = definitions.op(call.function)
    inputs = {item.name for item in op.inputs} if op else set()
    for node in (*call.args, *(node for key, node in call.attrs if key in inputs)):
        if isinstance(node, ast.Call):
            yield node


def _apart(statement: ast.Assign, definitions: Definitions) -> Iterator[ast.Assign]:
    call = statement.value
    names: dict[int, ast.Name] = {}
    for inner in whole_calls(call, definitions):
        name = f"{statement.targets[0]}.{len(names)}"
        names[id(inner)] = ast.Name(name, span=inner.span)
        yield from _apart(ast.Assign((name,), inner, span=inner.span), definitions)
    if names:
        args = tuple(names.get(id(node), node) for node in call.args)
        attrs = tuple((key, names.get(id(node), node)) for key, node in call.attrs)
        statement = replace(statement, value=replace(call, args=args, attrs=attrs))
    yield statement
