"""A disagreement as a finding: its culprit, a small program that shows it, and a report.

What is written is enough without irlang: the reduced program's text, the values that it is fed
(safetensors), the target's own script or model, and a Markdown text ready to file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from irlang import ast
from irlang.diagnostics import InvalidInput
from irlang.diff.localise import Culprit, isolate, localise
from irlang.diff.runner import Case, Outcome, Session
from irlang.diff.verdict import FINDINGS, Verdict, at_edge, gravest
from irlang.graph import Graph
from irlang.graph_text import to_ast
from irlang.lower.lower import lower, write_program
from irlang.parser.printer import print_file
from irlang.scope import show


@dataclass(slots=True)
class Found:
    """One disagreement.

    operator: the culprit's, or that of a program which could not be localised as `program`.
    reduced: the smallest case that still shows it. signature: what makes two findings one.
    """

    seed: int
    target: str
    verdict: Verdict
    operator: str
    attributes: dict[str, str]
    version: str
    reduced: Case
    whole: Case

    @property
    def signature(self) -> str:
        """Culprit, verdict, target and the attributes that are not numbers.

        Of an edge value also what kind of number was expected, and what was got.
        """
        choices = sorted(f"{k}={v}" for k, v in self.attributes.items() if v.isidentifier())
        if self.verdict.verdict == "edge":
            choices.append(f"{_sort(self.verdict.expected)} not {_sort(self.verdict.got)}")
        return " ".join([self.target, self.verdict.verdict, self.operator, *choices])


def find(session: Session, case: Case, seed: int, target: str, outcome: Outcome) -> Found:
    """Looks into a disagreement: localises it, and isolates the culprit if that still shows it."""
    verdict = _worst(outcome.verdicts[target])
    alone = session.only(target)
    culprit = None
    if verdict.verdict in ("wrong", "inaccurate", "nonfinite"):
        culprit = localise(alone, case, target)
    verdict = _classed(case, verdict)
    if culprit is not None:
        return charge(session, case, seed, target, culprit)
    last = case.graph.nodes[-1]
    lost = len(case.graph.nodes) == 1
    operator = last.op.name if lost else _first_refused(alone, case, target, verdict)
    version = session.workers[target].hello().version
    return Found(seed, target, verdict, operator, {}, version, case, case)


def charge(session: Session, case: Case, seed: int, target: str, culprit: Culprit) -> Found:
    """The finding of a call that is wrong by itself, reduced to that call where it still is."""
    attributes = {key: show(value) for key, value in culprit.node.attrs.items()}
    reduced, verdict = isolate(case, culprit), culprit.verdict
    again = session.only(target).compare([reduced])[0].verdicts[target]
    if gravest([v.verdict for v in again]) in FINDINGS:
        verdict = _worst(again)
    else:
        reduced = case
    version = session.workers[target].hello().version
    operator = culprit.node.op.name
    verdict = _classed(case, verdict)
    return Found(seed, target, verdict, operator, attributes, version, reduced, case)


def _classed(case: Case, verdict: Verdict) -> Verdict:
    return replace(verdict, verdict=at_edge(verdict.verdict)) if case.edge else verdict


def _sort(number: float | None) -> str:
    """What kind of number it is, for telling findings apart."""
    if number is None:
        return "nothing"
    if math.isnan(number) or math.isinf(number):
        return str(number)
    return "finite" if number else "zero"


def _first_refused(alone: Session, case: Case, target: str, verdict: Verdict) -> str:
    """The first call that by itself has the same fate; `program` where none has."""
    from irlang.interp.program import run

    try:
        values = run(case.graph, case.values, case.catalog)
    except InvalidInput:  # the oracle refuses the program, so that there is nothing to feed
        return "program"
    from irlang.dtypes import DTYPES

    with np.errstate(over="ignore"):
        typed = {n: a.astype(DTYPES[case.graph.values[n].dtype].numpy) for n, a in values.items()}
    singles = [
        isolate(case, Culprit(node, verdict, {n: typed[n] for n in node.operands()}))
        for node in case.graph.nodes
    ]
    for node, outcome in zip(case.graph.nodes, alone.compare(singles), strict=True):
        if gravest([v.verdict for v in outcome.verdicts[target]]) == verdict.verdict:
            return node.op.name
    return "program"


def _worst(verdicts: list[Verdict]) -> Verdict:
    grave = gravest([v.verdict for v in verdicts])
    return next(v for v in verdicts if v.verdict == grave)


def write(found: Found, folder: Path, identity: str) -> dict[str, Any]:
    """Writes a finding's files; gives its entry in `irlang fuzz --format json`."""
    folder.mkdir(parents=True, exist_ok=True)
    reduced = folder / "finding.nnir"
    reduced.write_text(
        to_text(
            found.reduced.graph, (f"{found.verdict.verdict}: {found.target}, {found.operator}",)
        ),
        "utf-8",
    )
    (folder / "program.nnir").write_text(
        to_text(found.whole.graph, (f"seed {found.seed}",)), "utf-8"
    )
    for name, array in found.reduced.inputs.items():
        stored = array.astype(np.float32) if array.dtype.name == "bfloat16" else array
        np.save(folder / f"{name}.npy", stored)
    lowered = lower(found.reduced.graph, found.target, found.reduced.catalog, found.reduced.params)
    script = write_program(lowered, folder / "program", found.reduced.inputs)
    report = folder / "report.md"
    report.write_text(_markdown(found, identity, script.name), "utf-8")
    return {
        "id": identity, "verdict": found.verdict.verdict, "target": found.target,
        "operator": found.operator, "attributes": found.attributes,
        "operators": len(found.reduced.graph.nodes), "message": found.verdict.message,
        "reduced": str(reduced), "script": str(script), "report": str(report), "seed": found.seed,
    }  # fmt: skip


def _markdown(found: Found, identity: str, script: str) -> str:
    v = found.verdict
    lines = [f"# {identity}: {v.verdict}, {found.operator} on {found.target} {found.version}", ""]
    if v.message:
        lines += [v.message, ""]
    if v.expected is not None:
        place = "".join(f"[{i}]" for i in v.index or ())
        lines += [
            f"Element `{v.name}{place}` is `{v.got!r}`; the definition gives `{v.expected!r}`,",
            "and no order of evaluation in this precision is further from it than this:",
            f"`{v.radius!r}`.",
            "",
        ]  # fmt: skip
    if found.attributes:
        lines += [
            "Attributes: " + ", ".join(f"`{k} = {w}`" for k, w in found.attributes.items()),
            "",
        ]
    inputs = " ".join(f"--input {n}={n}.npy" for n in found.reduced.inputs)
    lines += [
        f"- `{script}` shows it with the framework alone.",
        f"- `irlang diff finding.nnir --targets {found.target} {inputs}` judges it.",
        f"- The generated program is `program.nnir` (seed {found.seed}).",
        "", "```", to_text(found.reduced.graph).strip(), "```", "",
    ]  # fmt: skip
    return "\n".join(lines)


def to_text(graph: Graph, notes: tuple[str, ...] = ()) -> str:
    """A graph as a `.nnir` file, its first lines saying what it is."""
    model = to_ast(graph)
    model.comments = tuple(f"# {' '.join(note.split())}" for note in notes)
    return print_file(ast.File((model,), 1))
