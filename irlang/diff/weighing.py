"""A loss for what has none: the sum of all elements of some values, each with a weight.

The weights are inputs. They are what flows back to the values, so that every gradient can be asked
for, and a call's gradient by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from irlang import ast
from irlang.catalog import Catalog
from irlang.dtypes import CLASSES
from irlang.equations import TensorInfo
from irlang.graph import Graph, Node, Port
from irlang.instance import instantiate
from irlang.parser import parse

_NAME = "weighted_sum"


def differentiated(graph: Graph, catalog: Catalog) -> tuple[Graph, Catalog]:
    """The graph with such a loss of all its results of the commonest type that sums are computed
    in, and the catalogue that defines it; both as they are where there are none.
    """
    results = dict.fromkeys(graph.outputs.values())
    types = Counter(d for v in results if (d := graph.values[v].dtype) in CLASSES["float"])
    if not types:
        return graph, catalog
    ((common, _),) = types.most_common(1)
    return weighed(graph, catalog, [v for v in results if graph.values[v].dtype == common])


def weighed(graph: Graph, catalog: Catalog, names: Sequence[str]) -> tuple[Graph, Catalog]:
    """The graph with such a loss of values of one type, and the catalogue that defines it.

    The weights are its last inputs, in the order of the values.
    """
    infos = [graph.values[name] for name in names]
    file = _definition(infos)
    (op,) = file.ops
    loss = _free(_NAME, graph)
    made = replace(
        graph, inputs=dict(graph.inputs), values=dict(graph.values), outputs=dict(graph.outputs)
    )
    operands: dict[str, str] = {}
    for number, (name, info) in enumerate(zip(names, infos, strict=True)):
        weight = _free(f"{loss}.{number}", graph)
        made.inputs[weight] = Port(info, within=(-1.0, 1.0))
        made.values[weight] = info
        operands |= {f"y{number}": name, f"c{number}": weight}
    instance = instantiate(op, {formal: made.values[v] for formal, v in operands.items()}, {})
    assert not instance.faults
    made.values[loss] = TensorInfo((), infos[0].dtype)
    made.nodes = [*graph.nodes, Node(loss, op, dict(operands), {}, (loss,), instance)]
    made.outputs[loss] = made.loss = loss
    return made, catalog.with_file(file)


def but_the_sum(graph: Graph) -> list[Node]:
    """The calls of a graph; where there are others, without such a loss, which is no part of what a
    framework is asked for.
    """
    return [n for n in graph.nodes if not is_added(graph, n)] or graph.nodes


def is_added(graph: Graph, node: Node) -> bool:
    """Whether a call is such a loss of a graph."""
    return node.op.name == _NAME and graph.loss in node.outputs


def bare(graph: Graph) -> Graph:
    """The graph without such a loss, and without its weights."""
    kept = [node for node in graph.nodes if not is_added(graph, node)]
    if len(kept) == len(graph.nodes):
        return graph
    idle = set(weights(graph).values())
    return replace(
        graph,
        nodes=kept,
        inputs={name: port for name, port in graph.inputs.items() if name not in idle},
        outputs={name: value for name, value in graph.outputs.items() if value != graph.loss},
        loss=None,
    )


def weights(graph: Graph) -> dict[str, str]:
    """The weight of each value in such a loss of a graph; nothing where it has another."""
    (loss,) = (node for node in graph.nodes if graph.loss in node.outputs)
    if loss.op.name != _NAME:
        return {}
    given = loss.feeds()
    return {given[f"y{number}"]: given[f"c{number}"] for number in range(len(given) // 2)}


def _free(name: str, graph: Graph) -> str:
    while name in graph.values or name in graph.outputs:
        name += "_"
    return name


def _definition(infos: Sequence[TensorInfo]) -> ast.File:
    inputs = [f"y{i}: T[S{i}..], c{i}: T[S{i}..]" for i in range(len(infos))]
    sums = [f"(sum(s.. < S{i}..) y{i}[s..] * c{i}[s..])" for i in range(len(infos))]
    head = f"op {_NAME}[T: float]({', '.join(inputs)}) -> loss: T[]"
    doc = '"""What is differentiated: the sum of all elements, each with its weight."""'
    return parse(f"nnir 1\n{doc}\n{head} {{\n  loss[] = {' + '.join(sums)}\n}}\n")
