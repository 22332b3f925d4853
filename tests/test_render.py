"""Diagnostics as text, JSON and SARIF: places, carets, and nothing that a terminal would obey."""

import io
import json

import pytest

from irlang.diagnostics import Diagnostic, Edit, Note, Span
from irlang.render import coloured, report, show, text_of, visible
from irlang.sarif import sarif

SOURCE = "nnir 1\n\n  h1 = conv(image, w1; stride = 2)\n"
FAULT = Diagnostic(
    "conv.channels",
    "input has 3 channels; 1 group of 1 needs 1",
    Span("c.nnir", 3, 13, 3, 18),
    node="h1",
    badness=2.0,
    label="image is f32[N, 3, 28, 28]",
    help="declare w1 as f32[8, 3, 5, 5]",
    notes=(Note("declared here", Span("c.nnir", 1, 1, 1, 5)), Note("by the way")),
    edits=(Edit(Span("c.nnir", 3, 20, 3, 22), "w2"),),
)
SHOWN = """\
error[conv.channels]: input has 3 channels; 1 group of 1 needs 1
  ┌─ c.nnir:3:13
  │
3 │   h1 = conv(image, w1; stride = 2)
  │             ^^^^^ image is f32[N, 3, 28, 28]
  = declared here   (line 1)
1 │ nnir 1
  │ ^^^^
  = by the way
  = help: declare w1 as f32[8, 3, 5, 5]   badness 2
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_text() -> None:
    assert text_of([FAULT], {"c.nnir": SOURCE}) == SHOWN


def test_a_file_that_is_not_at_hand_is_named_all_the_same() -> None:
    assert "c.nnir:3:13" in text_of([FAULT], {})


@pytest.mark.parametrize(
    ("line", "column", "end", "caret"),
    [
        ("ab = c", 1, 3, "^^"),
        ("\tab", 2, 4, "    ^^"),
        ("a\tb", 3, 4, "    ^"),
        ('f("日本", x)', 9, 10, "          ^"),
        ("e\u0301 x", 4, 5, "  ^"),
        ("ab", 3, 3, "  ^"),
        ("a\x1bb", 3, 4, "     ^"),
    ],
)
def test_the_caret_stands_under_its_text(line: str, column: int, end: int, caret: str) -> None:
    fault = Diagnostic("a.b", "m", Span("f", 1, column, 1, end))
    shown = text_of([fault], {"f": line}).split("\n")
    assert shown[4] == f"  │ {caret}"


def test_a_long_line_is_shown_around_its_place() -> None:
    fault = Diagnostic("a.b", "m", Span("f", 1, 50_001, 1, 50_004))
    shown = text_of([fault], {"f": "x" * 50_000 + "abc" + "y" * 50_000}).split("\n")
    assert len(shown[3]) < 200
    start = shown[4].index("^")
    assert shown[3][start : start + 3] == "abc"


def test_what_spans_lines_is_marked_to_the_end_of_its_first() -> None:
    fault = Diagnostic("a.b", "m", Span("f", 1, 3, 2, 2))
    assert text_of([fault], {"f": "a (b\n)"}).split("\n")[4] == "  │   ^^"


def test_nothing_of_a_file_reaches_the_terminal_as_a_command() -> None:
    evil = "\x1b[2J\x07[bold red]\u202e[/]\r"
    fault = Diagnostic(
        f"a.{evil}", evil, Span(evil, 1, 1, 1, 2), label=evil, help=evil, notes=(Note(evil),)
    )
    out = Terminal()
    show([fault], {evil: evil + "\n"}, out)
    plain = text_of([fault], {evil: evil})
    for text in (plain, out.getvalue()):
        assert "\x1b[2J" not in text
        assert "\x07" not in text
        assert "\r" not in text
        assert "\u202e" not in text
        assert "[bold red]" in text
    assert visible("a\n\t\x00\u2066") == "a\\n\\t\\x00\\u2066"


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert coloured(Terminal())
    assert not coloured(io.StringIO())
    out = Terminal()
    show([FAULT], {"c.nnir": SOURCE}, out)
    assert "\x1b[" in out.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    out = Terminal()
    show([FAULT], {"c.nnir": SOURCE}, out)
    assert out.getvalue() == SHOWN + "\n"


def test_an_old_terminal_gets_plain_signs() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    show([Diagnostic("a.b", "größer", Span("f", 1, 1, 1, 2))], {"f": "x"}, out)
    out.flush()
    assert b"--> f:1:1" in raw.getvalue()
    assert b"gr\\xf6\\xdfer" in raw.getvalue()


def test_json_has_the_keys_of_the_interface() -> None:
    data = json.loads(json.dumps(report([FAULT])))
    assert data["valid"] is False
    (fault,) = data["diagnostics"]
    keys = ("code", "severity", "message", "file", "line", "column", "end_line", "end_column")
    assert [fault[key] for key in keys] == [
        "conv.channels", "error", FAULT.message, "c.nnir", 3, 13, 3, 18,
    ]  # fmt: skip
    assert (fault["node"], fault["badness"], fault["help"]) == ("h1", 2.0, FAULT.help)
    assert fault["edits"][0]["text"] == "w2"
    assert report([]) == {"valid": True, "diagnostics": []}


def test_faults_are_sorted_by_place_and_told_once() -> None:
    def at(file: str, line: int) -> Diagnostic:
        return Diagnostic("a.b", "m", Span(file, line, 1, line, 2))

    found = report([at("b", 9), at("a", 5), at("b", 2), at("a", 5)])["diagnostics"]
    assert [(d["file"], d["line"]) for d in found] == [("b", 2), ("b", 9), ("a", 5)]


def test_a_warning_does_not_make_a_file_invalid() -> None:
    assert report([Diagnostic("a.b", "m", severity="warning")])["valid"] is True


def test_sarif_has_regions_related_places_and_fixes() -> None:
    log = json.loads(json.dumps(sarif([FAULT, Diagnostic("file.unreadable", "gone")])))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [
        "conv.channels",
        "file.unreadable",
    ]
    first, second = run["results"]
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "c.nnir"
    assert place["region"] == {"startLine": 3, "startColumn": 13, "endLine": 3, "endColumn": 18}
    assert first["relatedLocations"][0]["message"]["text"] == "declared here"
    change = first["fixes"][0]["artifactChanges"][0]
    assert change["replacements"][0]["insertedContent"] == {"text": "w2"}
    assert "locations" not in second
