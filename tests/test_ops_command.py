"""`irlang ops`: everything about one operator as text, data and a page, and the table of all."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from irlang.catalog import Catalog, builtin
from irlang.cli import status
from irlang.docs import lowering
from irlang.docs.calls import calls
from irlang.docs.coverage import MEANINGS, cover
from irlang.docs.facts import differences
from irlang.docs.lowering import lowerings
from irlang.docs.page import marked
from irlang.lower.lower import tables
from irlang.parser import parse

OWN = '''nnir 1

"""Twice an element, or its square (torch.mine (where `a` is b), Keras Mine (never))."""
op own[T: float](x: T[S..]; mode: {twice, square} = twice) -> y: T[S..] {
  require axes: 0 <= rank(S) else "there are {rank(S)} axes"
  y[s..] = match mode { twice: 2 * x[s..], square: sq(x[s..]) }
}

"""A mask that is left open."""
op open[T: float](x: T[S..]; rate: real = 0.5) -> y: T[S..] {
  require rate: 0 <= rate <= 1 else "a rate of {rate}"
  some keep: bool[S..] = bernoulli(1 - rate)
  y[s..] = if keep[s..] then x[s..] else 0
  ensure values: all(s.. < S..) y[s..] == x[s..] or y[s..] == 0 else "an element is another"
}
'''


@pytest.fixture
def own(tmp_path: Path) -> str:
    """A file with definitions of its own."""
    path = tmp_path / "own.nnir"
    path.write_text(OWN, "utf-8")
    return str(path)


@pytest.fixture
def catalog() -> Catalog:
    return builtin().with_file(parse(OWN, "own.nnir"))


def test_the_text_has_everything(capsys: pytest.CaptureFixture[str], own: str) -> None:
    assert status(["ops", "own", "--file", own]) == 0
    shown = capsys.readouterr().out
    for title in ("mathematics", "attributes", "preconditions", "element types", "lowers to",
                  "gradient"):  # fmt: skip
        assert f"\n{title}\n" in shown
    assert "2 · x[𝐬]   if mode = twice" in shown
    assert "mode: {twice, square}, default twice" in shown
    assert re.search(r"torch +composed from the definition", shown)
    assert "d_x[" in shown
    assert all(len(line) <= 100 for line in shown.splitlines())


def test_the_data_has_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["ops", "conv", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["mathematics"]) == {"text", "latex", "mathml"}
    assert set(found["lowers_to"]) == set(tables())
    assert [way["target"] for way in found["lowering"]] == list(tables())
    torch = found["lowering"][0]
    assert torch["how"] == "partly"
    assert torch["when"] == "if rank(x) is 3, 4 or 5"
    assert torch["calls"]["native"] > 0 < torch["calls"]["composed"]
    assert {"d_x", "d_w"} <= set(found["gradient"]["outputs"])
    assert "conv.channels" in {p["code"] for p in found["preconditions"]}


@pytest.mark.parametrize("name", ["conv", "lstm", "argmax", "concat"])
def test_a_page_needs_nothing_else(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["ops", name, "--format", "html"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("<!doctype html>")
    root = ET.fromstring(re.sub(r"<meta [^>]*>", "", page.removeprefix("<!doctype html>")))
    titles = [title.text for title in root.iter("h2")]
    assert {"Definition", "Mathematics", "Lowers to", "Gradient"} <= set(titles)
    for section in root.iter("section"):
        title = section.findtext("h2")
        if title == "Mathematics" or (title == "Gradient" and name in ("conv", "lstm")):
            assert section.find(".//math") is not None
    assert not re.search(r"<script|<link|<img|https?://|@import|url\(", page)
    assert "prefers-color-scheme: dark" in page
    assert "width=device-width" in page


def test_a_page_escapes_what_is_foreign() -> None:
    assert marked("<b> `a < b`") == "&lt;b&gt; <code>a &lt; b</code>"


def test_an_open_definition(capsys: pytest.CaptureFixture[str], own: str) -> None:
    assert status(["ops", "open", "--file", own]) == 0
    shown = capsys.readouterr().out
    assert "keep is drawn, element by element, from bernoulli(1 − rate)" in shown
    assert "open.values, or else: an element is another" in shown
    assert "if keep[" in shown[shown.index("\ngradient") :]


def test_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["ops", "convv"]) == 2
    assert "did you mean conv" in capsys.readouterr().err
    assert status(["ops", "--format", "html"]) == 2
    assert "html is the page of one operator" in capsys.readouterr().err


def test_differences_of_conventions(catalog: Catalog) -> None:
    op = catalog.op("batch_norm")
    assert op is not None
    assert {"of": "Keras BatchNormalization", "how": "whose `axis` is -1 and `eps` 0.001 by default"
            } in differences(op)  # fmt: skip


# ---- what targets run, by trying


def test_a_users_operator_is_composed(catalog: Catalog) -> None:
    op = catalog.op("own")
    assert op is not None
    ways = lowerings(op, catalog, calls(op, catalog, 8))
    assert [(way.target, way.how, way.spelling) for way in ways] == [
        (target, "composed", "") for target in tables()
    ]


def test_conditions_separate_calls(catalog: Catalog) -> None:
    """On an attribute of two choices: told by that choice, and only if it is the choice."""
    op = catalog.op("own")
    assert op is not None
    nodes = [graph.nodes[0] for graph in calls(op, catalog, 40)]
    modes = [node.attrs.get("mode", "twice") for node in nodes]
    assert set(modes) == {"twice", "square"}
    told = lowering.condition(op, [(n, m == "twice") for n, m in zip(nodes, modes, strict=True)])
    assert told == "if mode = twice"
    alternating = [(node, number % 2 == 0) for number, node in enumerate(nodes)]
    assert lowering.condition(op, alternating).endswith("for 20 of 40 calls tried")


# ---- the table


@pytest.mark.parametrize("op", list(builtin()), ids=builtin().names())
def test_no_operator_lacks_a_meaning(op: object) -> None:
    row = cover(op, builtin(), 4)  # type: ignore[arg-type]
    assert not row.faults, row.remarks()
    for name in MEANINGS:
        assert row.meanings[name].mark == "+" or row.meanings[name].reason
    for way in row.targets.values():
        assert way.how != "untried" or not row.calls


def test_the_table_shows_what_fails(catalog: Catalog) -> None:
    """A definition whose reading is outside: there is a row, and it says so."""
    text = OWN.replace("2 * x[s..]", "2 * x[(s + 1)..]")
    broken = builtin().with_file(parse(text, "own.nnir"))
    op = broken.op("own")
    assert op is not None
    row = cover(op, broken)
    assert row.faults
    assert row.remarks()
    fine = catalog.op("own")
    assert fine is not None
    assert not cover(fine, catalog).faults


def test_coverage_on_the_command_line(capsys: pytest.CaptureFixture[str], own: str) -> None:
    assert status(["ops", "open", "--coverage", "--file", own, "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["meanings"]["reference"]["works"]
    assert row["meanings"]["ensure"]["works"]
    assert status(["ops", "own", "--coverage", "--file", own, "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["meanings"]["ensure"]["works"] is None
    assert status(["ops", "own", "--coverage", "--file", own]) == 0
    shown = capsys.readouterr().out
    head, line = shown.splitlines()[:2]
    assert head.split() == ["operator", *MEANINGS, *tables(), "types"]
    marks = ["-" if name == "ensure" else "+" for name in MEANINGS]
    assert line.split() == ["own", *marks, *["composed"] * len(tables()), "T:float"]
