"""Diagnostics as text for people and as JSON for programs; SARIF is in `sarif`.

Whatever comes from a file is untrusted: control characters are shown, never sent to a terminal, and
no text is read as markup.
"""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from irlang.diagnostics import Diagnostic, Span

TAB = 4
_WINDOW = 160  # columns shown of a line that is longer

# Styles are rich's; where there is no colour the words say the same.
_STYLES = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff]"
)

Piece = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Signs:
    """The lines around a snippet."""

    corner: str
    bar: str
    ellipsis: str


BOX = Signs("┌─", "│", "…")
ASCII = Signs("-->", "|", "...")


def visible(text: str) -> str:
    """`text` with control, bidirectional and invisible characters spelled out."""
    return _UNSAFE.sub(lambda match: _spelled(match.group()), text)


def _spelled(character: str) -> str:
    code = ord(character)
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(
        character, f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
    )


def ordered(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """By file and place; files in the order in which they first appear; each fault once."""
    unique = list(dict.fromkeys(diagnostics))
    files: dict[str, int] = {}
    for diagnostic in unique:
        files.setdefault(diagnostic.span.file, len(files))
    return sorted(unique, key=lambda d: (files[d.span.file], d.span[1:], d.code))


def to_json(diagnostic: Diagnostic) -> dict[str, Any]:
    """The keys that other programs rely on, and `notes` and `edits` besides."""
    span = diagnostic.span
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        **_place(span),
        "node": diagnostic.node,
        "badness": diagnostic.badness,
        "help": diagnostic.help,
        "label": diagnostic.label,
        "notes": [{"message": note.message, **_place(note.span)} for note in diagnostic.notes],
        "edits": [{"text": edit.text, **_place(edit.span)} for edit in diagnostic.edits],
    }


def _place(span: Span) -> dict[str, Any]:
    return {
        "file": span.file,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
    }


def report(diagnostics: Iterable[Diagnostic]) -> dict[str, Any]:
    """What `irlang check --format json` prints."""
    found = ordered(diagnostics)
    valid = all(diagnostic.severity != "error" for diagnostic in found)
    return {"valid": valid, "diagnostics": [to_json(diagnostic) for diagnostic in found]}


# ---- text ---------------------------------------------------------------------------------------


def show(
    diagnostics: Iterable[Diagnostic],
    sources: Mapping[str, str],
    stream: IO[str] | None = None,
) -> None:
    """Write `diagnostics` to `stream` (standard output), each with the lines it is about."""
    stream = sys.stdout if stream is None else stream
    signs = BOX if _encodes(stream, "┌─│…") else ASCII
    lines = {file: text.split("\n") for file, text in sources.items()}
    for diagnostic in ordered(diagnostics):
        pieces = list(_diagnostic(diagnostic, lines, signs))
        write([*pieces, ("\n", "")], stream)


def text_of(diagnostics: Iterable[Diagnostic], sources: Mapping[str, str]) -> str:
    """What `show` writes, without colour."""
    lines = {file: text.split("\n") for file, text in sources.items()}
    return "\n".join(
        "".join(text for text, _ in _diagnostic(diagnostic, lines, BOX))
        for diagnostic in ordered(diagnostics)
    )


def write(pieces: Sequence[Piece], stream: IO[str] | None = None) -> None:
    """Write styled text; the styles only where `stream` is a terminal that wants colour."""
    stream = sys.stdout if stream is None else stream
    if not coloured(stream):
        text = "".join(text for text, _ in pieces)
        encoding = getattr(stream, "encoding", None) or "utf-8"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=True)
    console.print(Text.assemble(*pieces), end="")


def coloured(stream: IO[str]) -> bool:
    """Whether to use colour: a terminal, and no wish to the contrary (https://no-color.org)."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def _encodes(stream: IO[str], text: str) -> bool:
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _diagnostic(
    diagnostic: Diagnostic, lines: Mapping[str, list[str]], signs: Signs
) -> Iterator[Piece]:
    style = _STYLES.get(diagnostic.severity, "bold")
    yield f"{diagnostic.severity}[{visible(diagnostic.code)}]", style
    yield f": {visible(diagnostic.message)}\n", "bold"
    span = diagnostic.span
    noted = [note for note in diagnostic.notes if _snippet_line(note.span, lines) is not None]
    gutter = max((len(str(s.line)) for s in (span, *(n.span for n in noted))), default=1)
    margin = " " * gutter
    if span.file:
        place = f":{span.line}:{span.column}" if span.line else ""
        yield f"{margin} {signs.corner} ", "blue"
        yield f"{visible(span.file)}{place}\n", ""
    source = _snippet_line(span, lines)
    if source is not None:
        yield f"{margin} {signs.bar}\n", "blue"
        yield from _snippet(span, source, diagnostic.label, gutter, signs, style)
    for note in diagnostic.notes:
        where = f"   (line {note.span.line})" if note.span.line else ""
        yield f"{margin} = ", "blue"
        yield f"{visible(note.message)}{where}\n", ""
        source = _snippet_line(note.span, lines)
        if source is not None and note.span.line != span.line:
            yield from _snippet(note.span, source, "", gutter, signs, _STYLES["note"])
    badness = f"badness {diagnostic.badness:g}" if diagnostic.badness != 1 else ""
    if diagnostic.help or badness:
        yield f"{margin} = ", "blue"
        way_out = f"help: {visible(diagnostic.help)}" if diagnostic.help else ""
        yield way_out, "green"
        yield f"{'   ' if way_out and badness else ''}{badness}\n", ""


def _snippet_line(span: Span, lines: Mapping[str, list[str]]) -> str | None:
    text = lines.get(span.file)
    if text is None or not 1 <= span.line <= len(text):
        return None
    return text[span.line - 1]


def _snippet(
    span: Span, source: str, label: str, gutter: int, signs: Signs, style: str
) -> Iterator[Piece]:
    """The line of `span` and carets under it; what the span has on further lines is not shown."""
    start = min(max(span.column - 1, 0), len(source))
    end = min(span.end_column - 1, len(source)) if span.end_line == span.line else len(source)
    first = max(0, start - _WINDOW // 2) if len(source) > _WINDOW else 0
    last = min(len(source), first + _WINDOW)
    end = min(end, last)
    shown, widths = _expand(source[first:last])
    before = signs.ellipsis if first else ""
    after = signs.ellipsis if last < len(source) else ""
    yield f"{span.line:>{gutter}} {signs.bar} ", "blue"
    yield f"{before}{shown}{after}".rstrip() + "\n", ""
    pad = len(before) + sum(widths[: start - first])
    carets = max(1, sum(widths[start - first : end - first]))
    yield f"{' ' * gutter} {signs.bar} ", "blue"
    yield " " * pad, ""
    yield f"{'^' * carets}{' ' if label else ''}{visible(label)}\n", style


def _expand(source: str) -> tuple[str, list[int]]:
    """A line as it is shown, and how many columns each of its characters takes there."""
    shown: list[str] = []
    widths: list[int] = []
    column = 0
    for character in source:
        if character == "\t":
            width = TAB - column % TAB
            text = " " * width
        elif _UNSAFE.match(character):
            text = _spelled(character)
            width = len(text)
        else:
            text = character
            width = _width(character)
        shown.append(text)
        widths.append(width)
        column += width
    return "".join(shown), widths


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
