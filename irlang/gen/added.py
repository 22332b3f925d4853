"""Conditions that are no part of a definition: what a framework's documentation adds to one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from irlang import ast
from irlang.catalog import Catalog
from irlang.dtypes import DTYPES
from irlang.gen.judge import judge
from irlang.gen.pattern import pattern
from irlang.gen.ranges import demands
from irlang.gen.spoilt import RULED_OUT, alone, broken_by, holds
from irlang.graph import Graph, Node

Array = np.ndarray[Any, np.dtype[Any]]


def is_added(op: ast.Op, wanted: ast.Require) -> bool:
    """Whether a requirement is none of a definition's own."""
    return not any(wanted is one for one in op.body)


def reads(op: ast.Op, wanted: ast.Require) -> bool:
    """Whether a requirement is on elements of inputs."""
    formals = {slot.item.name for slot in pattern(op).slots}
    read = (part.name for part in ast.walk(wanted.condition) if isinstance(part, ast.Read))
    return not formals.isdisjoint(read)


_extended: dict[tuple[int, int], tuple[ast.Op, ast.Require, ast.Op, ast.Require]] = {}


def extended(op: ast.Op, wanted: ast.Require) -> tuple[ast.Op, ast.Require]:
    """A definition with one more requirement, and that; made once."""
    known = _extended.get((id(op), id(wanted)))
    if known is None or known[0] is not op or known[1] is not wanted:
        own = replace(wanted, message=f"{RULED_OUT}{wanted.message}")
        known = op, wanted, replace(op, body=(*op.body, own)), own
        _extended[id(op), id(wanted)] = known
    return known[2:]


def kept_to(
    graph: Graph, rows: Mapping[str, Sequence[ast.Require]], first: bool
) -> tuple[Graph, frozenset[str]]:
    """A program of which inputs and parameters are in the ranges that such conditions demand, and
    their names: a call that breaks one says nothing of a framework that documents it.

    rows: the conditions by operator. Those that no ranges meet are left out. first: as of
    `demands`.
    """
    inputs, params = dict(graph.inputs), dict(graph.params)
    names: set[str] = set()
    for node in graph.nodes:
        for wanted in rows.get(node.op.name, ()):
            for name, within in _demanded(node, wanted, first).items():
                places: dict[str, Any] = inputs if name in inputs else params
                if name in places:
                    places[name] = replace(places[name], within=within)
                    names.add(name)
    return (replace(graph, inputs=inputs, params=params) if names else graph), frozenset(names)


def _demanded(node: Node, wanted: ast.Require, first: bool) -> dict[str, tuple[float, float]]:
    """The ranges of a call's operands, by their names, in which a condition is kept."""
    if not reads(node.op, wanted):
        return {}
    given = {n: info for n, info in node.instance.binding.inputs.items() if info is not None}
    op, _ = extended(node.op, wanted)
    instance = judge(op, given, node.attrs)
    ranges = None if instance is None or instance.faults else demands(instance, first)
    before = demands(node.instance) or {}
    fed = node.feeds()
    return {
        fed[formal]: within
        for formal, within in (ranges or {}).items()
        if formal in fed and before.get(formal) != within
    }


def breaks(node: Node, wanted: ast.Require, values: Mapping[str, Array], catalog: Catalog) -> bool:
    """Whether a valid call breaks a condition that is no part of its definition.

    values: of its operands, by their names; without that of one that the condition reads nothing is
    broken, and others are zeros.
    """
    if not reads(node.op, wanted):
        return not holds(wanted, node.instance)
    given = {n: info for n, info in node.instance.binding.inputs.items() if info is not None}
    op, own = extended(node.op, wanted)
    instance = judge(op, given, node.attrs)
    if instance is None or instance.faults:
        return instance is not None
    graph = alone(replace(node, op=op, instance=instance), given, node.attrs, instance, {})
    fed = dict(zip(graph.nodes[0].operands(), node.operands(), strict=True))
    spoken = {part.name for part in ast.walk(wanted.condition) if isinstance(part, ast.Read)}
    if any(name not in values for formal, name in node.feeds().items() if formal in spoken):
        return False
    infos = {name: port.info for name, port in graph.inputs.items()}
    known = {n: np.zeros(info.shape, DTYPES[info.dtype].numpy) for n, info in infos.items()}
    known.update((name, values[own]) for name, own in fed.items() if own in values)
    why = broken_by(graph, known, catalog)
    return why is not None and why.code == f"{op.name}.{own.name}"
