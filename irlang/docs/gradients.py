"""The gradient of an operator as equations, for one call of it, or why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irlang import ast
from irlang.adjoint import adjoint
from irlang.catalog import Catalog
from irlang.diagnostics import fail
from irlang.docs.calls import calls
from irlang.equation_text import show, statements
from irlang.equations import Expansion
from irlang.graph import Graph, Node

_CALLS = 24  # among which the one that is easiest to read is chosen


@dataclass(frozen=True, slots=True)
class Gradient:
    """Equations of a gradient.

    call: the call that they belong to, with its types. outputs: their names, one for every input
    that has a gradient. text: the equations in the language; equations: the same as syntax.
    """

    call: str
    outputs: tuple[str, ...]
    text: str
    equations: tuple[ast.Equation, ...]


def gradient(op: ast.Op, catalog: Catalog, graphs: Sequence[Graph] = ()) -> Gradient:
    """The gradient of a call, one of `graphs`, or of its own finding without.

    Raises `usage.gradient`, with the reason, where there is none.
    """
    found: list[tuple[int, int, int, Node, Expansion]] = []
    for graph in graphs or calls(op, catalog, _CALLS):
        node = graph.nodes[0]
        expansion = node.expansion(catalog)
        if has_gradient(expansion):
            # what has about four axes and few attributes is the easiest to read
            rank = max(len(expansion.tensors[name].shape) for name in expansion.inputs)
            found.append((abs(rank - 4), len(node.attrs), len(found), node, expansion))
    if not found:
        raise fail("usage.gradient", f"`{op.name}` takes no real numbers to real numbers")
    *_, node, expansion = min(found)
    backward = adjoint(expansion)
    return Gradient(
        call_text(node, expansion),
        tuple(backward.outputs),
        show(backward),
        tuple(statements(backward)),
    )


def has_gradient(expansion: Expansion) -> bool:
    """Whether real numbers go in and come out."""
    real = {name for name, info in expansion.tensors.items() if info.kind == "real"}
    return bool(real.intersection(expansion.inputs) and real.intersection(expansion.outputs))


def call_text(node: Node, expansion: Expansion) -> str:
    """A call with the types of what it takes and gives."""
    inputs = ", ".join(f"{name}: {expansion.tensors[name]}" for name in expansion.inputs)
    outputs = ", ".join(f"{name}: {expansion.tensors[name]}" for name in expansion.outputs)
    attrs = ", ".join(f"{name} = {value}" for name, value in node.attrs.items())
    return f"{node.op.name}({inputs}{'; ' if attrs else ''}{attrs}) -> {outputs}"
