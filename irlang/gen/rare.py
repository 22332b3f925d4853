"""Operators that few frameworks have, so that most programs do without them.

A program with one such call cannot be run at all by a target that lacks the function.
"""

from __future__ import annotations

from irlang import ast
from irlang.catalog import Catalog
from irlang.scalar import SPECIAL

SHARE = 4  # one program in so many may call them

_common: dict[int, tuple[Catalog, tuple[str, ...]]] = {}


def common(catalog: Catalog) -> tuple[str, ...]:
    """The operators whose definitions use no function of `SPECIAL`, by themselves or by others."""
    known = _common.get(id(catalog))
    if known is None or known[0] is not catalog:
        calls = {
            op.name: {node.function for node in ast.walk(op) if isinstance(node, ast.Call)}
            for op in catalog
        }
        rare: set[str] = set()
        while True:
            found = {name for name, called in calls.items() if called & (SPECIAL | rare)}
            if found == rare:
                break
            rare = found
        known = _common[id(catalog)] = catalog, tuple(name for name in calls if name not in rare)
    return known[1]
