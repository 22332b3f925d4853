"""Text to tokens and comments: one pass of one regular expression, derived from the grammar."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field

from irlang.diagnostics import Span
from irlang.parser.table import END, Table

# A token that is none: what the scanner could not read.
ERROR = "ERROR"

# Comments are found beside the strings that may contain what looks like one.
_COMMENT = re.compile(r'"""[\s\S]*?"""|"[^"\n]*"|(?P<comment>#(?:[ \t!#][^\n]*|(?=\n|\Z)))')
_BLANK = re.compile(r"\s*")
_UNREADABLE = re.compile(r'"""[\s\S]*|"[^\n]*|&&|\|\||\*\*|[^\W\d]\w*|.', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment with its `#`, without trailing blanks; `own_line` where nothing stands before."""

    start: int
    text: str
    own_line: bool


@dataclass(slots=True)
class Source:
    """A text whose offsets become lines and columns."""

    text: str
    file: str
    lines: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.lines = [0]
        self.lines += [match.end() for match in re.finditer("\n", self.text)]

    def line(self, offset: int) -> int:
        """The line of an offset, counted from 1."""
        return bisect_right(self.lines, offset)

    def offset(self, line: int, column: int) -> int:
        """The offset of a line and column."""
        return self.lines[line - 1] + column - 1

    def span(self, start: int, end: int) -> Span:
        """The place of `text[start:end]`."""
        lines = self.lines
        first = bisect_right(lines, start)
        last = first if first == len(lines) or end < lines[first] else bisect_right(lines, end)
        return Span(self.file, first, start - lines[first - 1] + 1, last, end - lines[last - 1] + 1)


@dataclass(slots=True)
class Tokens:
    """Parallel lists: kind (a terminal of the grammar), text and offsets of every token.

    The last is `$END`, at the end of the last token before it.
    """

    kinds: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)

    def add(self, kind: str, text: str, start: int, end: int) -> None:
        """Append a token."""
        self.kinds.append(kind)
        self.texts.append(text)
        self.starts.append(start)
        self.ends.append(end)

    def without(self, first: int, last: int) -> Tokens:
        """These tokens but for `first <= i < last`."""
        return Tokens(
            self.kinds[:first] + self.kinds[last:],
            self.texts[:first] + self.texts[last:],
            self.starts[:first] + self.starts[last:],
            self.ends[:first] + self.ends[last:],
            self.comments,
        )


def scan(text: str, table: Table) -> Tokens:
    """All tokens of `text`; what is none becomes an `ERROR` token, for the parser to report."""
    tokens = Tokens()
    if "#" in text:
        text = _take_comments(text, tokens.comments)
    match_token, match_blank = table.scanner.match, _BLANK.match
    position, length = 0, len(text)
    while True:
        blank = match_blank(text, position)
        position = blank.end() if blank else position
        if position >= length:
            break
        match = match_token(text, position)
        kind = ERROR
        if match is None:
            match = _UNREADABLE.match(text, position)
            assert match is not None, "`.` matches whatever there is"
        else:
            kind = match.lastgroup or ERROR
        end = match.end()
        tokens.add(kind, match.group(), position, end)
        position = end
    last = tokens.ends[-1] if tokens.ends else 0
    tokens.add(END, "", last, last)
    return tokens


def _take_comments(text: str, comments: list[Comment]) -> str:
    """`text` with blanks in place of its comments, which are appended to `comments`."""
    pieces: list[str] = []
    position = 0
    for match in _COMMENT.finditer(text):
        if match.lastgroup is None:
            continue
        start, end = match.span()
        line = text.rfind("\n", 0, start) + 1
        own_line = not text[line:start].strip()
        comments.append(Comment(start, match.group().rstrip(), own_line))
        pieces += (text[position:start], " " * (end - start))
        position = end
    pieces.append(text[position:])
    return "".join(pieces)
