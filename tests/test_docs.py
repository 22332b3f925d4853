"""What the documentation shows is true: files are valid, transcripts are what is printed.

`IRLANG_REWRITE=1 pytest tests/test_docs.py` writes what is printed now into the README; read the
difference before you keep it. `python -m irlang.docs` writes the pages of operators.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from irlang.catalog import Catalog, builtin
from irlang.cli import status
from irlang.docs.markdown import pages, write
from irlang.interp import reference
from irlang.interp.program import run
from irlang.interp.shape import check
from irlang.interp.values import initial_values, inputs
from irlang.parser import parse

ROOT = Path(__file__).parents[1]
LANGUAGE = ROOT / "docs" / "language.md"
README = ROOT / "README.md"
BLOCK = re.compile(r"^```(\w+)(?: title=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def blocks(path: Path, kind: str) -> list[tuple[str, str]]:
    """(title, text) of the blocks of a kind."""
    found = BLOCK.findall(path.read_text("utf-8"))
    return [(title, text) for language, title, text in found if language == kind]


@pytest.fixture(scope="module")
def written() -> dict[str, str]:
    """The pages of operators as they would be written now."""
    return pages(builtin())


def test_the_pages_of_operators_are_what_the_definitions_say(written: dict[str, str]) -> None:
    docs = ROOT / "docs"
    there = {"operators.md", *(f"operators/{path.name}" for path in docs.glob("operators/*"))}
    assert there == set(written), "python -m irlang.docs"
    stale = [name for name, page in written.items() if (docs / name).read_text("utf-8") != page]
    assert not stale, "python -m irlang.docs"


def test_every_operator_has_a_section(written: dict[str, str]) -> None:
    index = written["operators.md"]
    for op in builtin():
        path = f"operators/{builtin().family(op.name)}.md"
        assert f"({path}#{op.name})" in index
        text = written[path].partition(f"\n## {op.name}\n")[2].partition("\n## ")[0]
        assert "```math\n\\begin{aligned}\n" in text
        assert "```nnir\nop " in text
        assert "Gradient" in text
        assert all(f"`{attr.name}`" in text for attr in op.attrs)


def test_pages_are_small_enough_to_be_shown(written: dict[str, str]) -> None:
    assert max(len(page.encode()) for page in written.values()) < 500_000


def test_pages_of_families_that_are_gone_are_removed(tmp_path: Path) -> None:
    gone = tmp_path / "operators" / "gone.md"
    gone.parent.mkdir()
    gone.write_text("", "utf-8")
    (op,) = parse(SMALL, "small.nnir").ops
    changed = write(Catalog([("small", op)]), tmp_path / "operators.md")
    assert sorted(path.name for path in changed) == ["gone.md", "operators.md", "small.md"]
    assert write(Catalog([("small", op)]), tmp_path / "operators.md") == []
    assert sorted(path.name for path in gone.parent.iterdir()) == ["small.md"]
    assert "(operators/small.md#halve)" in (tmp_path / "operators.md").read_text("utf-8")


SMALL = """nnir 1

\"\"\"Half of every element.\"\"\"
op halve[T: float](x: T[S..]) -> y: T[S..] {
  y[s..] = x[s..] / 2
}
"""


def test_the_language_is_shown() -> None:
    assert len(blocks(LANGUAGE, "nnir")) >= 7


@pytest.mark.parametrize("text", [text for _, text in blocks(LANGUAGE, "nnir")])
def test_what_the_language_shows_is_valid_and_has_a_value(text: str) -> None:
    checked = check(parse(text, "shown.nnir"), builtin())
    assert checked.diagnostics == ()
    assert checked.graphs
    for graph in checked.graphs:
        values = {**inputs(graph, 0), **initial_values(graph, 0)}
        found = run(graph, values, checked.catalog, reference.evaluate)
        assert set(graph.outputs.values()) <= set(found)


def test_transcripts_are_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for title, text in blocks(README, "nnir"):
        (tmp_path / title).write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    compared = 0
    for _, text in blocks(README, "console"):
        for command, shown in COMMAND.findall(text):
            program, *arguments = shlex.split(command)
            if program != "irlang" or {"fuzz", "diff", "analyze"} & {*arguments}:
                continue  # what frameworks give differs from machine to machine
            status(arguments)
            printed = capsys.readouterr()
            lines = [line.rstrip() for line in (printed.out + printed.err).splitlines()]
            if os.environ.get("IRLANG_REWRITE"):
                new = f"$ {command}\n" + "".join(f"{line}\n" for line in lines)
                whole = README.read_text("utf-8")
                README.write_text(whole.replace(f"$ {command}\n{shown}", new), "utf-8")
            else:
                assert lines == shown.rstrip().splitlines(), command
            compared += 1
    assert compared >= 4
