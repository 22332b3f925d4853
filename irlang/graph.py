"""A checked model as a flat list of operator calls: what is run, lowered and generated.

Blocks are inlined, repetitions unrolled, nested calls named, sizes and attributes known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from irlang import ast
from irlang.diagnostics import NOWHERE, Span
from irlang.dtypes import CLASSES
from irlang.equations import Expansion, TensorInfo
from irlang.expand import expand
from irlang.instance import Definitions, Instance

Operand = str | tuple[str, ...]
LOSS = "loss"  # the name of what is differentiated, in a model's text
_GRADIENT = "d_"


def gradient_by(name: str) -> str:
    """What the gradient by an input or a parameter is called among results."""
    return _GRADIENT + name


def is_gradient(name: str) -> bool:
    """Whether a result is called as a gradient is."""
    return name.startswith(_GRADIENT)


def differentiated(name: str) -> str:
    """The input or parameter that a gradient is by; the name of another result as it is."""
    return name.removeprefix(_GRADIENT)


@dataclass(slots=True)
class Port:
    """An input of a model: its type and the values that it may take (both ends included)."""

    info: TensorInfo
    within: tuple[float, float] | None = None
    span: Span = NOWHERE


@dataclass(slots=True)
class Initial:
    """Where a parameter's value comes from.

    kind: `constant` (args: the number), `literal` (args: nested tuples), `uniform` (low, high),
    `normal` (mean, standard deviation), `data` (file, key), `array` (an array, of a model that has
    no files). seed: of a random one, None where it follows the seed of the run.
    """

    kind: str
    args: tuple[Any, ...] = ()
    seed: int | None = None


@dataclass(slots=True)
class Param:
    """A parameter, or a number that stands in a call (`literal` true)."""

    info: TensorInfo
    within: tuple[float, float] | None = None
    initial: Initial | None = None
    span: Span = NOWHERE
    literal: bool = False


@dataclass(slots=True)
class Node:
    """A call. inputs: by the definition's names; outputs: value names, one for every result."""

    name: str
    op: ast.Op
    inputs: dict[str, Operand]
    attrs: dict[str, Any]
    outputs: tuple[str, ...]
    instance: Instance
    span: Span = NOWHERE

    def operands(self) -> Iterator[str]:
        """The names of the values that are read, in order."""
        for operand in self.inputs.values():
            yield from (operand,) if isinstance(operand, str) else operand

    def expansion(self, definitions: Definitions) -> Expansion:
        """The equations of the call, which its instance remembers."""
        return expand(self.instance, definitions)

    def feeds(self) -> dict[str, str]:
        """The name of a value for every input of the expansion (`xs[0]` for a family's first)."""
        found: dict[str, str] = {}
        for formal, operand in self.inputs.items():
            if isinstance(operand, str):
                found[formal] = operand
            else:
                found.update({f"{formal}[{i}]": value for i, value in enumerate(operand)})
        return found

    def results(self) -> dict[str, str]:
        """The value name of every output of the expansion."""
        names = [name for name, _ in self.instance.outputs or ()]
        return dict(zip(names, self.outputs, strict=True))


@dataclass(slots=True)
class Graph:
    """A model. `values` types every value by name; `outputs` maps a result's name to its value."""

    name: str
    inputs: dict[str, Port] = field(default_factory=dict)
    params: dict[str, Param] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    outputs: dict[str, str] = field(default_factory=dict)
    values: dict[str, TensorInfo] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    folder: str = "."
    loss: str | None = None
    doc: str = ""

    def operators(self) -> set[str]:
        """The names of the operators that are called."""
        return {node.op.name for node in self.nodes}

    def used(self) -> set[str]:
        """The values that a call reads or that are results."""
        found = {name for node in self.nodes for name in node.operands()}
        found.update(self.outputs.values())
        if self.loss is not None:
            found.add(self.loss)
        return found


def maker(graph: Graph, value: str) -> Node | None:
    """The call that gives a value, if one does."""
    return next((node for node in graph.nodes if value in node.outputs), None)


def alone(node: Node, values: Mapping[str, TensorInfo], outputs: Iterable[str]) -> Graph:
    """A call of a model with these values by itself: what it reads are inputs. outputs: those of
    its results that are the graph's.
    """
    inputs = {name: Port(values[name]) for name in node.operands()}
    results = {name: name for name in outputs}
    named = {*inputs, *results}
    return Graph(
        "call",
        inputs=inputs,
        nodes=[node],
        outputs=results,
        values={name: info for name, info in values.items() if name in named},
    )


def cone(graph: Graph, wanted: Collection[str]) -> Graph:
    """The graph with no calls but those that the wanted values hang on."""
    needed = set(wanted)
    nodes: list[Node] = []
    for node in reversed(graph.nodes):
        if needed.intersection(node.outputs):
            nodes.append(node)
            needed.update(node.operands())
    return replace(graph, nodes=nodes[::-1])


def with_loss(graph: Graph) -> Graph:
    """The graph with its last real number that a call gives named `loss`, so that it has gradients.

    The graph itself where it has a loss already, or no such value.
    """
    if graph.loss is not None:
        return graph
    for node in reversed(graph.nodes):
        for value in node.outputs:
            info = graph.values[value]
            if info.shape == () and info.dtype in CLASSES["float"]:
                return _renamed(graph, value, LOSS)
    return graph


def _renamed(graph: Graph, old: str, new: str) -> Graph:
    def name(value: str) -> str:
        return new if value == old else value

    def operand(value: Operand) -> Operand:
        return name(value) if isinstance(value, str) else tuple(map(name, value))

    nodes = [
        replace(
            node,
            name=name(node.name),
            inputs={formal: operand(value) for formal, value in node.inputs.items()},
            outputs=tuple(map(name, node.outputs)),
        )
        for node in graph.nodes
    ]
    outputs = {name(result): name(value) for result, value in graph.outputs.items()}
    values = {name(value): info for value, info in graph.values.items()}
    return replace(graph, nodes=nodes, outputs=outputs, values=values, loss=new)
