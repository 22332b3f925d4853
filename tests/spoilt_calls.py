"""What tests of spoilt calls share."""

from __future__ import annotations

from irlang import ast
from irlang.catalog import builtin
from irlang.gen.spoil import NOTHING, breakable
from irlang.graph import Graph
from irlang.graph_text import to_ast
from irlang.lower.narrows import narrower
from irlang.parser.printer import print_file

SEEDS = range(60)


def text_of(graph: Graph) -> str:
    """The text of a model."""
    return print_file(ast.File((to_ast(graph),), 1))


def wanted_of(name: str, requirement: str, target: str = "") -> tuple[str, ast.Require | None]:
    """An operator and one of its requirements, or of a target's, as what is to be broken."""
    plan = breakable(builtin(), (name,), narrower(target) if target else NOTHING)
    return next(one for one in plan if one[1] is not None and one[1].name == requirement)
