"""Small valid calls of an operator, found by the generator: what is said of it is tried on them."""

from __future__ import annotations

from irlang import ast
from irlang.catalog import Catalog
from irlang.gen.build import generate
from irlang.gen.draw import Limits
from irlang.graph import Graph

# Recurrences are written out step by step, and how a call is lowered hardly depends on its sizes.
_SMALL = Limits(length=9, alike=0)


def calls(op: ast.Op, catalog: Catalog, count: int, limits: Limits = _SMALL) -> list[Graph]:
    """At most `count` models of one call each, always the same."""
    made = (generate(catalog, n, ops=[op.name], size=(1, 1), limits=limits) for n in range(count))
    return [
        program.graph
        for program in made
        if len(program.graph.nodes) == 1 and program.graph.nodes[0].op is op
    ]
