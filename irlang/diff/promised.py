"""Whether a target promises anything of what it disagrees on.

Where its documentation asks more of a call than the definition, what it gives for less is neither
right nor wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import numpy as np

from irlang import ast
from irlang.diff.calls import Case
from irlang.gen.added import breaks
from irlang.graph import Graph
from irlang.interp.balls import Ball
from irlang.lower.narrows import unpromised

_of_target = cache(unpromised)


def documented(targets: Iterable[str]) -> dict[str, tuple[ast.Require, ...]]:
    """By operator, all that the documentation of some targets asks for beside its definition."""
    found: dict[str, tuple[ast.Require, ...]] = {}
    for target in targets:
        for operator, rows in _of_target(target).items():
            known = found.get(operator, ())
            found[operator] = (*known, *(one for one in rows if one not in known))
    return found


def ruled_out(graph: Graph, case: Case, balls: Mapping[str, Ball], target: str) -> str:
    """What a target's documentation asks for that a call does not keep to; empty if all do.

    balls: of the values of the program, by which the operands of calls are judged.
    """
    rows = _of_target(target)
    called = [(node, one) for node in graph.nodes for one in rows.get(node.op.name, ())]
    if not called:
        return ""
    known: dict[str, np.ndarray[Any, Any]] = {n: np.asarray(b.value) for n, b in balls.items()}
    known.update(case.values)
    broken = (one for node, one in called if breaks(node, one, known, case.catalog))
    return _said(next(broken, None))


def _said(broken: ast.Require | None) -> str:
    return "" if broken is None else broken.message or broken.name
