"""From a checked model to a program of a target: node by node, the target's own operator first.

An operator that the target's table spells is native; one that it does not, a user's own among
them, is lowered from its definition. What neither can spell is named with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from irlang import ast
from irlang.catalog import Catalog, builtin
from irlang.diagnostics import InvalidInput
from irlang.dtypes import DTYPES
from irlang.graph import Graph, Node
from irlang.lower.call import Call, Native
from irlang.lower.generic import lower_expansion
from irlang.lower.value import Builder, Unsupported, Value


@dataclass(slots=True)
class Body:
    """What the nodes of a graph became: a value for every name, and what could not be spelt.

    native: the nodes for which the target's own operator was used.
    """

    values: dict[str, Value]
    unsupported: dict[str, str] = field(default_factory=dict)
    native: list[str] = field(default_factory=list)


def spell(
    graph: Graph,
    builder: Builder,
    table: Mapping[str, Native],
    catalog: Catalog,
    values: dict[str, Value],
    *,
    native: bool = True,
    shuns: frozenset[str] = frozenset(),
) -> Body:
    """Spells every node; `values` holds inputs and parameters, and gets the results.

    native: whether the target's own operators are used at all. shuns: element types that it has
    few operators for, so that definitions are lowered instead, which compute in wider ones.
    """
    body = Body(values)
    used = frozenset(graph.used())
    for node in graph.nodes:
        try:
            _computed(graph, node)
            narrow = any(values[name].dtype in shuns for name in node.operands())
            own_table = table if native and not narrow else {}
            results, own = _spell(node, builder, own_table, catalog, values, used)
        except Unsupported as reason:
            body.unsupported[node.name] = f"{node.op.name}: {reason}"
            results, own = {}, False
        except InvalidInput as error:
            body.unsupported[node.name] = f"{node.op.name}: {error}"
            results, own = {}, False
        if own:
            body.native.append(node.name)
        for formal, name in node.results().items():
            info = graph.values[name]
            given = results.get(formal)
            if given is None:  # so that later nodes are judged too
                values[name] = Value("unsupported", info.shape, info.dtype)
            else:
                assert (given.shape, given.dtype) == (info.shape, info.dtype), (node, given, info)
                values[name] = builder.result(given, name)
    return body


def _computed(graph: Graph, node: Node) -> None:
    """Raises `Unsupported` for element types that numbers are only kept in."""
    for name in (*node.operands(), *node.outputs):
        dtype = graph.values[name].dtype
        if DTYPES[dtype].stored:
            raise Unsupported(f"numbers are kept, not computed with, in {dtype}")


def _spell(
    node: Node,
    builder: Builder,
    table: Mapping[str, Native],
    catalog: Catalog,
    values: Mapping[str, Value],
    used: frozenset[str],
) -> tuple[dict[str, Value], bool]:
    feeds = {formal: values[name] for formal, name in node.feeds().items()}
    row = table.get(node.op.name) if _is_builtin(node.op) else None
    if row is not None and _is_ordinary(node, values):
        try:
            wanted = frozenset(f for f, name in node.results().items() if name in used)
            spelt = row.rule(Call(node, builder, feeds, wanted))
        except Unsupported:
            spelt = None  # no kernel for this type: the definition's may have
        if spelt is not None:
            found = [spelt] if isinstance(spelt, Value) else list(spelt)
            assert used.isdisjoint(node.outputs[len(found) :]), (node, found)
            return dict(zip(node.results(), found, strict=False)), True
    expansion = node.expansion(catalog)
    return lower_expansion(builder, expansion, feeds, node.name, node.results()), False


def _is_builtin(op: ast.Op) -> bool:
    """Whether a definition is irlang's own: tables know those, not a user's of the same name."""
    own = builtin().op(op.name)
    return own is op or own == op


def _is_ordinary(node: Node, values: Mapping[str, Value]) -> bool:
    """Whether tensors have elements and axes: else frameworks' operators have no common opinion."""
    operands = [values[name].shape for name in node.operands()]
    results = [info.shape for _, info in node.instance.outputs or ()]
    return any(operands) and not any(0 in shape for shape in [*operands, *results])
