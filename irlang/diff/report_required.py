"""What an invalid call breaks, in the words of whoever rules it out."""

from __future__ import annotations

from dataclasses import replace

from irlang import ast
from irlang.gen.spoilt import OPEN, RULED_OUT
from irlang.graph import Node
from irlang.parser.printer import print_file


def required(node: Node, message: str, requirement: str) -> list[str]:
    """The requirement of a definition that a call breaks, or else what rules it out."""
    if message.startswith(RULED_OUT):
        documented = message.removeprefix(RULED_OUT)
        return [
            "The framework's own documentation rules the call out:",
            "", f"> {documented}", "", "It should be refused with a message.",
        ]  # fmt: skip
    if message == OPEN:
        return ["The call is valid, whatever value it has there: it must end no process."]
    short = replace(node.op, body=_about_requirement(node.op, requirement), doc="", comments=())
    text = print_file(ast.File((short,), 1)).partition("\n\n")[2].strip()
    says = "requires" if short.body else "begins"
    return [
        f"The call is invalid: {message}. The definition of `{node.op.name}` {says}:",
        "", "```", text, "```", "",
        "It should be refused with a message: the definition gives it no value.",
    ]  # fmt: skip


def _about_requirement(op: ast.Op, name: str) -> tuple[ast.Statement, ...]:
    """The requirement of a name, after the names that it uses; nothing where it is the signature's,
    which says it by one name for several sizes.
    """
    named: set[str] = set()
    kept: list[ast.Statement] = []
    for statement in reversed(op.body):
        broken = isinstance(statement, ast.Require) and statement.name == name
        if broken or (isinstance(statement, ast.Let) and statement.name in named):
            kept.insert(0, statement)
            parts = list(ast.walk(statement))
            named |= {part.id for part in parts if isinstance(part, ast.Name)}
            named |= {part.name for part in parts if isinstance(part, ast.Read)}
            named |= {part.function for part in parts if isinstance(part, ast.Call)}
    return tuple(kept)
