"""Every precondition of every definition refuses what it is there to refuse, and nothing else does.

The cases are texts: `requires/*.md`, where a heading is the code of a precondition (`concat.axis`)
and the block below it a model that violates it alone. A line that starts with `>` is the message
that a user then reads. Preconditions on sizes and attributes are found by the checker; those on
values when the model is computed from the values that stand in it.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from irlang import ast
from irlang import equations as eq
from irlang.catalog import builtin
from irlang.diagnostics import Diagnostic, InvalidInput
from irlang.interp import exact, reference
from irlang.interp.program import run
from irlang.interp.shape import check
from irlang.interp.values import initial_values, inputs
from irlang.parser import parse

FOLDER = Path(__file__).parent / "requires"
SECTION = re.compile(r"^## +(\S+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```nnir\n(.*?)^```", re.MULTILINE | re.DOTALL)


class Case(NamedTuple):
    """A model, the code that it must be refused with, and the message if the text gives it."""

    code: str
    text: str
    message: str | None
    file: str


def cases() -> list[Case]:
    found = []
    for path in sorted(FOLDER.glob("*.md")):
        for code, body in SECTION.findall(path.read_text("utf-8")):
            blocks = BLOCK.findall(body)
            quoted = re.findall(r"^> *(.*)$", body, re.MULTILINE)
            assert len(blocks) == 1, f"{path.name}: `{code}` needs one block of nnir"
            found.append(Case(code, blocks[0], " ".join(quoted) or None, path.name))
    return found


def declared(family: str) -> set[str]:
    catalog = builtin()
    return {
        f"{op.name}.{statement.name}"
        for op in catalog
        for statement in op.body
        if isinstance(statement, ast.Require) and catalog.family(op.name) == family
    }


def exactly(expansion: eq.Expansion, inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: t.numpy() for name, t in exact.evaluate(expansion, inputs).items()}


def refusals(text: str) -> list[Diagnostic]:
    """What the checker says, or else what both evaluators say, which must be the same."""
    checked = check(parse(text, "case.nnir"), builtin())
    if checked.diagnostics:
        return list(checked.diagnostics)
    (graph,) = checked.graphs
    values = {**inputs(graph, 0), **initial_values(graph, 0)}
    told = []
    for evaluate in (exactly, reference.evaluate):
        with pytest.raises(InvalidInput) as caught:
            run(graph, values, checked.catalog, evaluate)
        told.append(list(caught.value.diagnostics))
    assert [d.code for d in told[0]] == [d.code for d in told[1]]
    return told[0]


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.file}:{case.code}")
def test_a_violated_precondition_is_the_only_fault(case: Case) -> None:
    found = refusals(case.text)
    assert [d.code for d in found] == [case.code]
    (fault,) = found
    assert fault.badness > 0
    assert fault.span.line, "a fault has a place in the text"
    assert "{" not in fault.message, "an expression of the message has no value"
    if case.message is not None:
        assert fault.message == case.message


@pytest.mark.parametrize("family", sorted(builtin().families()))
def test_every_precondition_has_a_case(family: str) -> None:
    assert declared(family) - {case.code for case in cases()} == set()
