"""Witnesses as files: inputs, and a program that shows the trouble without irlang."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from irlang.adjoint_graph import gradient_graph, prepare
from irlang.analysis.confirm import shown
from irlang.analysis.verdict import Report, Verdicts
from irlang.diagnostics import fail
from irlang.graph import Graph, cone
from irlang.lower.lower import lower, write_program


def written(found: Verdicts, folder: Path) -> dict[str, list[str]]:
    """Writes every witness that a framework has confirmed into a folder; paths by point's call.

    The first path is a program that prints the operands and the result of the call, the others are
    the inputs, one `.npy` each. Raises `usage.out` where that is not possible.
    """
    graphs: dict[str, Graph] = {"forward": found.subject.graph}
    paths: dict[str, list[str]] = {}
    taken: set[str] = set()
    for report in found.reports:
        if report.witness is None or report.witness.shown is None:
            continue
        stage = report.point.stage
        if stage not in graphs:
            backward = prepare(found.subject.graph, found.subject.catalog)
            graphs[stage] = gradient_graph(backward).graph
        own = folder / _free(f"{stage}-{report.call}", taken)
        try:
            own.mkdir(parents=True, exist_ok=True)
            paths[report.point.node] = _one(report, found, graphs[stage], own)
        except OSError as error:
            raise fail("usage.out", f"{own} cannot be written: {error.strerror}") from None
    return paths


def _one(report: Report, found: Verdicts, graph: Graph, folder: Path) -> list[str]:
    """Writes one witness: the graph up to the call, its operands and results among the results."""
    subject, witness = found.subject, report.witness
    assert witness is not None
    assert witness.shown is not None
    node = next(one for one in graph.nodes if one.name == report.point.node)
    part = cone(graph, node.outputs)
    needed = {name for one in part.nodes for name in one.operands()}
    part = replace(
        part,
        inputs={name: port for name, port in part.inputs.items() if name in needed},
        params={name: param for name, param in part.params.items() if name in needed},
    )
    near = {*node.operands(), *node.outputs}
    part = replace(part, outputs={n: v for n, v in shown(part).outputs.items() if v in near})
    made = lower(part, witness.shown.target, subject.catalog, subject.fixed)
    program = write_program(made, folder / "witness", witness.values)
    paths = [str(program)]
    for name, array in witness.values.items():
        path = folder / f"{_plain(subject.called(name))}.npy"
        np.save(path, array, allow_pickle=False)
        paths.append(str(path))
    return paths


def _free(wanted: str, taken: set[str]) -> str:
    """A name for a folder that no other witness has."""
    base = found = _plain(wanted)
    count = 1
    while found in taken:
        count += 1
        found = f"{base}-{count}"
    taken.add(found)
    return found


def _plain(name: str) -> str:
    """A name of a file that is a name everywhere."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("._")[:100] or "value"
