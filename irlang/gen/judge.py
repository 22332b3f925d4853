"""Drafts judged: `instantiate`, remembered for calls of equal types and attributes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from irlang import ast
from irlang.diagnostics import InvalidInput
from irlang.equations import TensorInfo
from irlang.gen.draft import Draft, Nested, Number, Source, Value
from irlang.instance import Instance, instantiate
from irlang.signature import Given

_MOST = 4096  # remembered calls; each holds its scope and, once used, its equations
Key = tuple[Any, ...]
_seen: dict[Key, tuple[ast.Op, Instance | None]] = {}


def judge(op: ast.Op, inputs: Mapping[str, Given], attrs: Mapping[str, Any]) -> Instance | None:
    """The call as `instantiate` sees it; None where the definition's body has no value for it.

    The same object is given for equal calls, so it must not be changed.
    """
    key = (id(op), tuple(inputs.items()), tuple(attrs.items()))
    found = _seen.get(key)
    if found is not None and found[0] is op:
        return found[1]
    if len(_seen) >= _MOST:
        _seen.clear()
    try:
        instance: Instance | None = instantiate(op, inputs, attrs)
    except InvalidInput:
        instance = None
    _seen[key] = (op, instance)
    return instance


def types(draft: Draft, live: Mapping[str, Value]) -> dict[str, Given]:
    """The types of a draft's inputs by formal name."""

    def info(source: Source) -> TensorInfo:
        if isinstance(source, str):
            return live[source].info
        return source.info if isinstance(source, (Nested, Number)) else source

    return {
        name: tuple(map(info, source)) if isinstance(source, tuple) else info(source)
        for name, source in draft.inputs.items()
    }


def score(instance: Instance | None) -> float:
    """How far a call is from valid: 0 where it is. A fault that hides others counts most."""
    if instance is None:
        return math.inf
    hidden = 1e6 if instance.outputs is None and not instance.binding.complete else 0.0
    return hidden + sum(fault.badness for fault in instance.faults)
