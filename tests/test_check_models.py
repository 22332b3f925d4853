"""What the checker says of models and definitions, as texts: `check/*.md`.

A heading, prose, a block of `nnir`, and a block of what is said of it, `line:column code: message`
in the order of places. `IRLANG_REWRITE=1 pytest tests/test_check_models.py` writes what is said now
into the files; read the difference before you keep it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from irlang.catalog import builtin
from irlang.diagnostics import Diagnostic
from irlang.edits import apply
from irlang.interp import definition
from irlang.interp.shape import check
from irlang.parser import parse
from irlang.render import ordered

FOLDER = Path(__file__).parent / "check"
SECTION = re.compile(
    r"^## +(.+)\n(?:.*\n)*?```nnir\n((?:.*\n)*?)```\n\n```diagnostics\n((?:.*\n)*?)```$",
    re.MULTILINE,
)
MODULES = ("shape", "model", "operation", "call", "declaration", "definition", "frame", "terms")


class Case(NamedTuple):
    file: Path
    title: str
    text: str
    expected: str


def cases() -> list[Case]:
    found = []
    for path in sorted(FOLDER.glob("*.md")):
        text = path.read_text("utf-8")
        found += [Case(path, *match.groups()) for match in SECTION.finditer(text)]
        assert len(re.findall("^## ", text, re.MULTILINE)) == sum(c.file == path for c in found)
    return found


def line(diagnostic: Diagnostic) -> str:
    warning = "" if diagnostic.severity == "error" else f"{diagnostic.severity} "
    place = f"{diagnostic.span.line}:{diagnostic.span.column}"
    lines = [f"{place} {warning}{diagnostic.code}: {diagnostic.message}"]
    if diagnostic.help:
        lines.append(f"    help: {diagnostic.help}")
    lines += [f"    {n.span.line}:{n.span.column} {n.message}" for n in diagnostic.notes]
    return "\n".join(lines) + "\n"


def faults(text: str) -> list[Diagnostic]:
    return ordered(check(parse(text, "m.nnir"), builtin()).diagnostics)


def told(text: str) -> str:
    return "".join(map(line, faults(text)))


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.file.stem}: {case.title}")
def test_what_is_said(case: Case) -> None:
    said = told(case.text)
    if os.environ.get("IRLANG_REWRITE"):
        old = f"{case.text}```\n\n```diagnostics\n{case.expected}```"
        whole = case.file.read_text("utf-8")
        assert whole.count(old) == 1
        new = f"{case.text}```\n\n```diagnostics\n{said}```"
        case.file.write_text(whole.replace(old, new), "utf-8")
        return
    assert said == case.expected


def test_every_code_of_the_checker_is_met() -> None:
    folder = Path(definition.__file__).parent
    codes = set()
    for name in MODULES:
        text = (folder / f"{name}.py").read_text("utf-8")
        codes |= set(re.findall(r"\"((?:model|param|type|definition)\.[a-z]+)\"", text))
        if name == "definition":
            codes |= {f"definition.{code}" for code in re.findall(r"report\(\s*\"([a-z]+)\"", text)}
    met = {code for case in cases() for code in re.findall(r"\b([a-z]+\.[a-z]+):", case.expected)}
    assert len(codes) > 25
    assert codes - met == set()


def test_a_warning_leaves_a_model_valid() -> None:
    text = "model m(x: f32[2]) -> y: f32[2] { param w: f32[2] y = relu(x) }"
    checked = check(parse(text, "m.nnir"), builtin())
    assert [(d.code, d.severity) for d in checked.diagnostics] == [("param.unused", "warning")]
    assert checked.valid
    assert len(checked.graphs) == 1


def test_a_suggested_number_mends_the_fault() -> None:
    text = (
        "model m(x: f32[1, 3, 9, 9]) -> y: f32[1, 8, 3, 3] {\n"
        "  param w: f32[8, 1, 3, 3]\n"
        "  h = conv(x, w)\n"
        "  y = avg_pool(h; window = 12, stride = 2)\n}\n"
    )
    (channels, *_) = [d for d in faults(text) if d.code == "conv.channels"]
    assert channels.help == "declare w as f32[8, 3, 3, 3]"
    mended = apply(text, channels.edits)
    assert mended == text.replace("f32[8, 1, 3, 3]", "f32[8, 3, 3, 3]")
    assert not [d for d in faults(mended) if d.code == "conv.channels"]


def test_sizes_can_be_bound() -> None:
    text = "model m(x: f32[N, M]) -> y: f32[N, 3] { y = relu(x) }"
    file = parse(text, "m.nnir")
    assert not check(file, builtin()).valid
    checked = check(file, builtin(), {"M": 3, "N": 7})
    assert checked.valid
    assert checked.graphs[0].sizes == {"N": 7, "M": 3}


@pytest.mark.parametrize("family", sorted(builtin().families()))
def test_the_definitions_that_come_with_it_are_clean(family: str) -> None:
    catalog = builtin()
    for op in catalog:
        if catalog.family(op.name) == family:
            assert definition.definition_faults(op, catalog) == []
