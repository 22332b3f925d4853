"""Calls that do nothing: a window of one element, a bound beyond all numbers, a padding of nothing.

Nobody is wrong about what gives its operand as it is, whatever else is right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from irlang.diff.calls import Case
from irlang.gen.pattern import pattern
from irlang.graph import Node


def is_idle(case: Case, node: Node) -> bool:
    """Whether a call that is told attributes, or could be, gives an operand as it is.

    The case has its balls.
    """
    result = node.outputs[0]
    if not pattern(node.op).attrs or result not in (case.balls or {}):
        return False
    info, made = case.graph.values[result], _value(case, result)
    return any(
        case.graph.values[name] == info
        and np.size(made) > 1
        and np.array_equal(_value(case, name), made, equal_nan=info.kind == "real")
        for name in node.operands()
        if name in case.values or name in (case.balls or {})
    )


def has_idle(case: Case) -> bool:
    """Whether any call of a program does nothing."""
    return any(is_idle(case, node) for node in case.graph.nodes)


def _value(case: Case, name: str) -> Any:
    balls: Mapping[str, Any] = case.balls or {}
    array = np.asarray(balls[name].value if name in balls else case.values[name])
    return array.astype(np.float64) if case.graph.values[name].kind == "real" else array
