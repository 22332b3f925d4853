"""Short names for a reduced program: `x` what it is fed, `w` its parameters, `y` its results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from irlang.diff.calls import Case
from irlang.graph import LOSS, Operand


def short(case: Case) -> Case:
    """The case under names that say what a value is, and not where it came from."""
    graph = case.graph
    literals = [name for name, param in graph.params.items() if param.literal]
    results = list(dict.fromkeys(graph.outputs.values()))
    given = {value for node in graph.nodes for value in node.outputs}
    names = {
        **_numbered("x", graph.inputs),
        **_numbered("w", (n for n in graph.params if n not in literals)),
        **_numbered("y", (n for n in results if n in given)),
    }
    if graph.loss is not None:
        names[graph.loss] = LOSS
    names.update(_numbered("h", (v for n in graph.nodes for v in n.outputs if v not in names)))
    names.update(_numbered("number", literals))

    def operand(value: Operand) -> Operand:
        return tuple(names[v] for v in value) if isinstance(value, tuple) else names[value]

    nodes = [
        replace(
            node,
            name=names.get(node.name, names[node.outputs[0]]),
            inputs={formal: operand(value) for formal, value in node.inputs.items()},
            outputs=tuple(names[value] for value in node.outputs),
        )
        for node in graph.nodes
    ]
    renamed = replace(
        graph, name="reduced", doc="", nodes=nodes,
        inputs={names[n]: port for n, port in graph.inputs.items()},
        params={names[n]: param for n, param in graph.params.items()},
        outputs={names[v]: names[v] for v in results},
        values={names[n]: info for n, info in graph.values.items() if n in names},
        loss=None if graph.loss is None else names[graph.loss],
    )  # fmt: skip
    return replace(
        case, graph=renamed, balls=None,
        inputs={names[n]: array for n, array in case.inputs.items()},
        params={names[n]: array for n, array in case.params.items()},
    )  # fmt: skip


def _numbered(stem: str, names: Iterable[str]) -> dict[str, str]:
    """One name is the stem alone; several are numbered."""
    listed = list(names)
    if len(listed) == 1:
        return {listed[0]: stem}
    return {name: f"{stem}{number}" for number, name in enumerate(listed, 1)}
